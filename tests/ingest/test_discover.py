"""`discover hub`: what the Hub lists, before anything is fetched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import main
from tests.hub_server import DataSet, Hub, hub

__all__ = ["hub"]

TRACES = "format:agent-traces"
FILES = {f"sessions/{n}1111111-aaaa.jsonl": b"{}\n" for n in range(3)}


@pytest.fixture
def listed(hub: Hub) -> Hub:
    """Five data sets, of which one is an upload of another, and one that is no traces."""

    def add(name: str, files: dict[str, bytes], downloads: int, licence: Any, *tags: str, **more: Any) -> None:
        card = {"license": licence} if licence else {}
        facts = {"tags": [TRACES, *tags], "cardData": card, "downloads": downloads, "gated": False, **more}
        hub.sets[name] = DataSet(files, **facts)

    add("ann/pi", {"pi/a.jsonl": b"{}\n", "README.md": b"x"}, 9, "mit", "pi", mainSize=1234)
    add("bob/codex", FILES, 7, ["apache-2.0", "mit"], "harness:codex", lastModified="2026-04-20T00:00:00.000Z")
    add("cat/again", {f"copy/{Path(p).name}": b"{}\n" for p in FILES}, 5, None, "claude_code")
    add("dan/table", {"data/train-0.parquet": b"", "data/test-0.parquet": b""}, 3, None, "license:cc-by-4.0")
    add("eve/table", {"data/train-0.parquet": b"", "data/test-0.parquet": b""}, 1, None, gated="manual")
    hub.sets["fay/other"] = DataSet({"x.csv": b""}, tags=["format:csv"])
    return hub


def discovered(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(["discover", "hub", "--json", *arguments]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_data_sets_are_listed_over_all_pages_with_what_the_hub_says(
    listed: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {d["name"]: d for d in discovered(capsys)}
    assert list(found) == ["ann/pi", "bob/codex", "cat/again", "dan/table", "eve/table"]
    assert (found["ann/pi"]["bytes"], found["bob/codex"]["bytes"]) == (1234, None), "unknown is not 0"
    assert [d["licence"] for d in found.values()] == ["mit", "apache-2.0, mit", None, "cc-by-4.0", None]
    assert [d["harnesses"] for d in found.values()] == [["pi"], ["codex"], ["claude-code"], [], []]
    assert [d["gated"] for d in found.values()] == [False, False, False, False, True]
    assert found["bob/codex"]["modified"] == "2026-04-20T00:00:00+00:00"
    assert listed.downloads() == []


def test_an_upload_of_another_data_set_is_marked_and_tables_of_common_names_are_not(
    listed: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {d["name"]: d["duplicate_of"] for d in discovered(capsys)}
    assert found == {"ann/pi": None, "bob/codex": None, "cat/again": "bob/codex", "dan/table": None, "eve/table": None}


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--license", "MIT"], ["ann/pi", "bob/codex"]),
        (["--license", "none"], ["cat/again", "eve/table"]),
        (["--harness", "codex"], ["bob/codex"]),
        (["--distinct"], ["ann/pi", "bob/codex", "dan/table", "eve/table"]),
        (["--limit", "2"], ["ann/pi", "bob/codex"]),
        (["--limit", "0"], []),
        (["--tag", "pi"], ["ann/pi"]),
        (["--untagged", "--tag", "format:csv"], ["fay/other"]),
    ],
)
def test_filters_choose(
    listed: Hub, arguments: list[str], names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert [d["name"] for d in discovered(capsys, *arguments)] == names


def test_what_a_list_excludes_is_left_out_and_said(
    listed: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "list").write_text("hub:bob/codex\n# ann/pi\n")
    assert main(["discover", "hub", "--exclude", str(tmp_path / "list"), "--json"]) == 0
    told = capsys.readouterr()
    assert [d["name"] for d in json.loads(told.out)] == ["ann/pi", "cat/again", "dan/table", "eve/table"]
    assert "1 left out" in told.err


def test_the_table_counts_copies_and_missing_licences(listed: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["discover", "hub"]) == 0
    told = capsys.readouterr().out
    assert "files of bob/codex" in told
    assert "5 data sets, 1 of them hold the files of another; 2 state no licence" in told
    assert "agentsignals analyze hub:ann/pi" in told


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [(["--limit", "-1"], 2, "counts data sets"), (["--untagged"], 2, "the whole Hub")],
)
def test_wrong_words_are_told(
    listed: Hub, arguments: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["discover", "hub", *arguments]) == code
    assert says in capsys.readouterr().err


def test_without_a_network_it_says_so(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    hub.faults["/api/datasets"] = [(503, {})] * 9
    assert main(["discover", "hub", "--json"]) == 1
    assert "can't be searched" in json.loads(capsys.readouterr().out)["error"]["message"]
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert main(["discover", "hub"]) == 1
    assert "HF_HUB_OFFLINE" in capsys.readouterr().err
