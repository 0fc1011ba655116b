"""`labels study sentiment`: two labellers over one store, where they disagree, and a page, as a person meets it."""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agentsignals.cli import main
from agentsignals.labels.labellers import labeller
from agentsignals.questions.label_shares import trust
from agentsignals.stats.agent_traces import FAILURE_PATTERNS, main_labeller
from agentsignals.store import Store
from tests.labels.server import Server, label, material
from tests.labels.stores import store_of
from tests.verbs import printed, printed_json

MESSAGES = ["please add a flag", "kill that shit", "why would you search the web", "ok that works", "add a test"]
DOMAIN = ["NEUTRAL", "NEUTRAL", "NEGATIVE", "POSITIVE", "NEUTRAL"]
SCORES = [0.3, -0.6, 0.049, -0.049, 0.0]
"""What the classifier off the shelf says: each of the four patterns once, and once the same."""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return store_of(tmp_path, MESSAGES)


@pytest.fixture
def off_the_shelf(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the package vaderSentiment."""

    class Analyzer:
        def polarity_scores(self, text: str) -> dict[str, float]:
            return {"compound": SCORES[MESSAGES.index(text)]}

    package, module = ModuleType("vaderSentiment"), ModuleType("vaderSentiment.vaderSentiment")
    module.SentimentIntensityAnalyzer = Analyzer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vaderSentiment", package)
    monkeypatch.setitem(sys.modules, "vaderSentiment.vaderSentiment", module)
    known = metadata.version
    monkeypatch.setattr(
        "agentsignals.labels.labellers.vader.release_of", lambda n: "3.3.2" if n == "vaderSentiment" else known(n)
    )


def domain_prompt(body: dict[str, Any]) -> str:
    return label(DOMAIN[MESSAGES.index(material(body))])


@pytest.mark.usefixtures("off_the_shelf")
def test_one_command_labels_compares_and_writes_a_page(
    store: Store, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answers = domain_prompt
    asked = ["labels", "study", "sentiment", "--by", f"openai:tiny@{server.url}", "--store", str(store.folder)]
    page = tmp_path / "page.json"
    found = printed_json(capsys, *asked, "-o", page)
    assert [one["labelled"] for one in found["labelled"]] == [5, 5]
    agreement = found["agreement"]
    assert (agreement["a"], agreement["b"], agreement["n"], agreement["agreement"]) == ("vader", "openai:tiny", 5, 0.2)
    assert {(p["a"], p["b"]): (p["name"], p["n"]) for p in agreement["patterns"]} == {
        pair: (name, 1) for pair, name in FAILURE_PATTERNS.items()
    }
    section = next(s for s in json.loads(page.read_text())["sections"] if s["study"] == "sentiment")
    drawn = {chart["id"]: chart for chart in section["charts"]}
    assert {mark["name"] for mark in drawn["sentiment.patterns"]["marks"]} == set(FAILURE_PATTERNS.values())
    # Once more: nothing is asked again, and a person reads it.
    shown = printed(capsys, *asked, "-o", tmp_path / "page.html")
    assert all(name in shown for name in FAILURE_PATTERNS.values()) and "kappa" in shown
    assert set(server.answered.values()) == {1} and "quiet frustration" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--by", "rules", "--against", "rules"], "the same labeller"),
        (["--against", "rules", "--limit", "0"], "not above 0"),
        (["--against", "rules", "-o", "page.txt"], "page.txt"),
    ],
)
def test_what_makes_no_sense_is_refused(
    store: Store, more: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["labels", "study", "sentiment", "--store", str(store.folder), *more]) == 2
    assert says in capsys.readouterr().err


def test_a_name_without_labels_has_nothing_to_compare(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["labels", "study", "sentiment", "--store", str(store.folder), "-o", str(tmp_path / "page.html")]
    assert "no item has labels of both" in printed(capsys, *asked, "--against", "roberta", code=1)


def test_a_classifier_off_the_shelf_is_never_taken_for_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not trust("sentiment", "vader", "NEGATIVE").is_shown
    assert main_labeller({"vader": (9, 9), "rules": (9, 1)}) == "rules"
    assert main_labeller({"vader": (9, 9), "rules": (9, 1), "roberta": (1, 1)}) == "roberta"
    monkeypatch.setitem(sys.modules, "vaderSentiment", None)
    with pytest.raises(Exception, match="vaderSentiment is not installed"):
        labeller("vader")
