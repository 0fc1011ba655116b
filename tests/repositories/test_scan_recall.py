"""What is said of recall: measured on planted code by the rules of today, and unknown where nothing was planted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.weaknesses import figures, judged, planted

from agentsignals.cli import main
from agentsignals.repositories.scanners import OwnRules
from agentsignals.stats.intervals import wilson
from agentsignals.stats.validation import benchmarks as planted_recall
from tests.repositories.story import Story


def test_shipped_figures_are_those_of_the_rules_of_today() -> None:
    assert planted_recall.figures() == figures(OwnRules())


def test_every_text_is_planted_once_and_beside_a_twin() -> None:
    for language, groups in planted().items():
        texts = [group.head + text for group in groups for text in (*group.weak, *group.safe)]
        assert len(texts) == len(set(texts)), language
        for group in groups:
            assert group.weak and group.safe, (language, group.cwe)


def test_a_share_counts_what_a_finding_names() -> None:
    """By another road: the texts counted by hand-written sets, not by the benchmark's figures."""
    [python] = [f for f in planted_recall.figures().languages if f.language == "python"]
    said = [one for one in judged(OwnRules()) if one.language == "python"]
    assert python.detected == len({one.text for one in said if one.is_weak and one.is_named})
    assert python.recall_interval == pytest.approx(wilson(python.detected, python.weak), abs=0.001)
    assert python.precision_interval == pytest.approx(
        wilson(python.detected, python.detected + python.flagged), abs=0.001
    )
    assert "CWE-208" in python.missed and "CWE-89" not in python.missed
    assert python.recall.startswith(f"{python.detected}/{python.weak} ")


@pytest.mark.parametrize(
    ("scanner", "version", "language", "is_measured"),
    [
        ("rules", "", "go", True),
        ("rules", "", "rust", False),
        ("rules", "other", "go", False),
        ("bandit", "", "python", False),
    ],
)
def test_figures_are_of_the_scanner_and_version_that_was_measured(
    scanner: str, version: str, language: str, is_measured: bool
) -> None:
    measured = planted_recall.figures()
    assert (measured.of(scanner, version or measured.version, language) is not None) == is_measured


def test_scan_says_recall_beside_the_count_and_where_it_is_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = Story(tmp_path)
    with story.agent("writer") as a:
        a.write("a.py", "def worth(text):\n    return eval(text)\n")
        a.write("a.rs", "fn main() {}\n")
    story.commit("made", a)
    story.publish()
    at = ["--store", str(tmp_path / "store"), "--quiet"]
    assert main(["scan", str(story.root), *at, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    python, rust = said["languages"]
    assert (python["language"], python["files"], python["introduced"]) == ("python", 1, 1)
    assert python["planted"]["weak"] > python["planted"]["detected"] > 0
    assert (rust["language"], rust["introduced"], rust["planted"]) == ("rust", 0, None)
    assert "no share of real code" in said["recall_caveat"]
    assert main(["scan", str(story.root), *at]) == 0
    lines = capsys.readouterr().out.splitlines()
    [shown] = [line for line in lines if line.startswith("python ")]
    assert f"{python['planted']['detected']}/{python['planted']['weak']} " in shown
    assert any(line.startswith("rust ") and line.count("unknown") == 2 for line in lines)
    assert any("no share of real code" in line for line in lines)
