"""A scanner's report taken in: each finding with the commit and the owner of its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import main
from agentsignals.ingest.collection import import_sarif, scan_repository
from agentsignals.repositories.scanners import OwnRules
from agentsignals.store import Store
from tests.quick import some
from tests.repositories.test_scan import story_of_agent_and_human


def result(uri: str, line: Any, **more: Any) -> dict[str, Any]:
    place = {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}}
    return {"ruleId": "X1", "message": {"text": "bad"}, "locations": [place], **more}


def report(folder: Path, *results: Any, **run: Any) -> Path:
    driver = {
        "name": "other",
        "version": "2",
        "rules": [{"id": "X1", "properties": {"tags": ["external/cwe/cwe-078"]}}],
    }
    path = folder / "report.sarif"
    path.write_text(json.dumps({"version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results, **run}]}))
    return path


@pytest.mark.slow
def test_each_finding_is_its_lines_writers_and_replaces_the_tools_older_ones(tmp_path: Path) -> None:
    story = story_of_agent_and_human(tmp_path)
    story.publish()
    scan_repository(str(story.root), OwnRules(), tmp_path / "store", jobs=1)
    sarif = report(
        tmp_path, result("listing.py", 5, level="error"), result("file:///build/x/worth.py", 2), result("app.py", 1)
    )
    for _ in range(2):
        told = import_sarif(str(story.root), sarif, tmp_path / "store", jobs=1)
    assert (told.findings, told.owners, told.skipped) == (3, {"agent": 1, "human": 1, "unlinked": 1}, {})
    rows = Store(tmp_path / "store").sql(
        "SELECT subject, path, line, change, owner, cwe, severity FROM weaknesses JOIN commits USING (repo, commit_sha)"
        " WHERE scanner = 'sarif:other' ORDER BY ALL"
    )
    assert rows.fetchall() == [
        ("base", "app.py", 1, "present", "unlinked", ["CWE-78"], "medium"),
        ("by agent", "listing.py", 5, "present", "agent", ["CWE-78"], "high"),
        ("by human", "worth.py", 2, "present", "human", ["CWE-78"], "medium"),
    ]
    kept = Store(tmp_path / "store").sql("SELECT count(*) FROM weaknesses WHERE scanner = 'rules'").fetchall()
    assert kept == [(4,)]


def test_what_can_not_be_placed_is_counted_with_a_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = story_of_agent_and_human(tmp_path)
    story.publish()
    sarif = report(
        tmp_path, result("listing.py", 99), result("nowhere.py", 1), result("../../etc/passwd", 1), {"ruleId": "X1"},
        result("listing.py", "5"), result("listing.py", 5, suppressions=[{"kind": "inSource"}]), 7, None,
        result("listing.py", 5, message=3), result("listing.py", -4),
    )  # fmt: skip
    at = ["--store", str(tmp_path / "store"), "--quiet", "--json"]
    assert main(["scan", str(story.root), "--sarif", str(sarif), *at]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["skipped"] == {"malformed": 3, "no_place": 2, "no_such_file": 2, "no_such_line": 1, "suppressed": 1}
    assert told["findings"] == 1


@pytest.mark.parametrize("text", some(["{" * 100_000, "", "[]", '{"runs": 3}', '{"runs": [3, {"tool": 1}]}'], 5))
def test_what_is_no_sarif_says_so(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = story_of_agent_and_human(tmp_path)
    story.publish()
    (tmp_path / "x.sarif").write_text(text)
    code = main(
        [
            "scan",
            str(story.root),
            "--sarif",
            str(tmp_path / "x.sarif"),
            "--store",
            str(tmp_path / "s"),
            "--quiet",
            "--json",
        ]
    )
    told = json.loads(capsys.readouterr().out)
    assert (code, told["error"]["kind"]) == (1, "scan") if "tool" not in text else told["skipped"] == {"malformed": 2}


@pytest.mark.slow
def test_a_report_about_an_older_commit_is_read_against_it(tmp_path: Path) -> None:
    story = story_of_agent_and_human(tmp_path)
    sha = story.git("rev-parse", "HEAD")
    story.human("listing.py", "import os\n")
    story.commit("later")
    story.publish()
    for revision, found in ((sha, 1), (story.git("rev-parse", "HEAD"), 0), ("--help", 0)):
        sarif = report(tmp_path, result("listing.py", 5), versionControlProvenance=[{"revisionId": revision}])
        assert import_sarif(str(story.root), sarif, tmp_path / "store", jobs=1).findings == found
