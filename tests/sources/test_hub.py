"""Data sets on a Hub, through huggingface_hub against a real server: fetched once, kept, gone on with, read offline."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import main
from agentsignals.errors import SourceError
from agentsignals.ingest import pipeline
from agentsignals.sources import RawFile, Unreadable, open_source, read
from agentsignals.sources import hub as source
from agentsignals.store import Store
from tests.hub_server import DataSet, Hub, conversation, hub, messages
from tests.ingest.test_data_sets import as_lines, as_parquet
from tests.verbs import printed, printed_json

__all__ = ["hub"]

ONE, TWO, THREE = "11111111-aaaa", "22222222-bbbb", "33333333-cccc"


def prompts(store: Path) -> list[tuple[str, int, str]]:
    return sorted(Store(store).sql("SELECT session_id, turn, text FROM turns").fetchall())


def reasons(found: list[RawFile | Unreadable]) -> list[str]:
    return [f.reason for f in found if isinstance(f, Unreadable)]


def fetched(found: list[RawFile | Unreadable]) -> list[str]:
    """The paths of the files that were fetched."""
    return [f.uri.split(":", 2)[2] for f in found if isinstance(f, RawFile) and not f.key.startswith("-")]


@pytest.fixture
def small(hub: Hub) -> Hub:
    """A data set of two sessions, and what lies beside them."""
    hub.sets["ann/traces"] = DataSet(
        {
            "a.jsonl": conversation(ONE, "Fix it.", "Again."),
            "more/b.jsonl": conversation(TWO, "Go on."),
            "README.md": b"# Traces\n",
            "data/pictures.tar": b"ustar",
        }
    )
    return hub


@pytest.mark.slow
def test_a_data_set_is_read_and_costs_no_download_the_next_time(small: Hub, tmp_path: Path) -> None:
    store = tmp_path / "store"
    summary = pipeline.analyze(["hub:ann/traces"], store, jobs=1)
    assert (summary.sessions, summary.prompts, summary.parsed, summary.skipped) == (2, 3, 2, {})
    assert summary.other_files == 2, "the card and the pictures beside the transcripts are counted, not fetched"
    assert sorted(small.downloads()) == ["a.jsonl", "more/b.jsonl"]
    assert prompts(store) == [(ONE, 0, "Fix it."), (ONE, 1, "Again."), (TWO, 0, "Go on.")]
    again = pipeline.analyze(["hub:ann/traces"], store, jobs=1)
    assert (again.parsed, again.unchanged, again.sessions) == (0, 4, 2)
    assert len(small.downloads()) == 2


def test_a_newer_commit_brings_only_what_changed(small: Hub, tmp_path: Path) -> None:
    store = tmp_path / "store"
    pipeline.analyze(["hub:ann/traces"], store, jobs=1)
    small.sets["ann/traces"].files["a.jsonl"] = conversation(ONE, "Fix it.", "Again.", "And once more.")
    summary = pipeline.analyze(["hub:ann/traces"], store, jobs=1)
    assert (summary.parsed, summary.prompts, summary.unchanged) == (1, 4, 3)
    assert small.downloads().count("a.jsonl") == 2
    assert small.downloads().count("more/b.jsonl") == 1


def test_a_large_file_is_known_by_its_sha256(small: Hub) -> None:
    small.sets["ann/traces"].large.add("a.jsonl")
    (first, *_) = [f for f in open_source("hub:ann/traces") if isinstance(f, RawFile) and f.uri.endswith("a.jsonl")]
    assert len(first.key) == 64
    assert next(read([first])) == small.sets["ann/traces"].files["a.jsonl"]


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        ("hub:ann/traces", ["a.jsonl", "more/b.jsonl"]),
        ("hub:ann/traces#more/*", ["more/b.jsonl"]),
        ("hub:ann/traces@main#*.md", ["README.md"]),
    ],
)
def test_a_pattern_chooses_files(small: Hub, spec: str, paths: list[str]) -> None:
    assert fetched(list(open_source(spec))) == paths
    assert sorted(small.downloads()) == paths


def test_without_a_network_what_was_fetched_serves(small: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    online = pipeline.analyze(["hub:ann/traces"], tmp_path / "online", jobs=1)
    small.faults["ann/traces/revision/main"] = [(503, {})] * 9
    monkeypatch.setattr(time, "sleep", lambda _: None)
    unreachable = pipeline.analyze(["hub:ann/traces"], tmp_path / "unreachable", jobs=1)
    assert unreachable.skipped == {"fetch_failed": 1}, "said, since the data set may have changed"
    asked = len(small.requests)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    offline = pipeline.analyze(["hub:ann/traces"], tmp_path / "offline", jobs=1)
    assert offline.skipped == {}
    assert online.prompts == unreachable.prompts == offline.prompts == 3
    assert len(small.requests) == asked, "nothing was asked"


def test_a_commit_is_asked_about_once(small: Hub) -> None:
    spec = f"hub:ann/traces@{small.sets['ann/traces'].commit}"
    first = list(open_source(spec))
    asked = len(small.requests)
    assert list(open_source(spec)) == first
    assert len(small.requests) == asked


def test_offline_without_anything_from_before_is_an_error(small: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(SourceError, match="is not downloaded"):
        open_source("hub:ann/traces")


@pytest.mark.slow
def test_a_broken_connection_is_gone_on_with_where_it_broke(hub: Hub) -> None:
    body = conversation(ONE, *(f"{n} {'x' * 1000}" for n in range(11_000)))
    assert len(body) > 20 * 1024 * 1024, "huggingface_hub writes ten megabytes at a time"
    hub.sets["ann/big"] = DataSet({"a.jsonl": body})
    hub.cut_after["a.jsonl"] = [15 * 1024 * 1024]
    (file,) = open_source("hub:ann/big")
    assert isinstance(file, RawFile)
    assert bytes(next(read([file]))) == body  # type: ignore[arg-type]  (not Unreadable, or it is not equal)
    ranges = [r for method, path, r in hub.requests if method == "GET" and path.endswith("a.jsonl")]
    assert ranges == [None, f"bytes={10 * 1024 * 1024}-"]


def test_an_interrupted_run_is_taken_up_with_what_is_missing(
    small: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr("agentsignals.sources.hub._AT_ONCE", 1)
    small.sets["ann/traces"].files["z.jsonl"] = conversation(THREE, "Last.")
    small.cut_after["b.jsonl"] = [5] * 50
    first = pipeline.analyze(["hub:ann/traces"], tmp_path / "store", jobs=1)
    assert (first.sessions, first.skipped) == (1, {"download_failed": 2}), "after one that broke off no other is tried"
    small.cut_after.clear()
    before = len(small.downloads())
    second = pipeline.analyze(["hub:ann/traces"], tmp_path / "store", jobs=1)
    assert (second.sessions, second.skipped, second.parsed) == (3, {}, 2)
    assert sorted(small.downloads()[before:]) == ["more/b.jsonl", "z.jsonl"]


@pytest.mark.slow
def test_a_server_that_asks_to_wait_is_waited_for(small: Hub) -> None:
    small.faults["/b.jsonl"] = [(429, {"Retry-After": "2"})] * 2  # it looks once more at once, and then waits
    started = time.monotonic()
    assert reasons(list(open_source("hub:ann/traces"))) == []
    assert time.monotonic() - started >= 2, "its own first pause would be one second"


@pytest.mark.parametrize(("status", "reason"), [(403, "no_permission"), (404, "file_gone")])
def test_a_refused_file_costs_its_neighbours_nothing(small: Hub, status: int, reason: str) -> None:
    small.faults["/a.jsonl"] = [(status, {"X-Error-Code": "EntryNotFound"} if status == 404 else {})] * 9
    found = list(open_source("hub:ann/traces"))
    assert (reasons(found), fetched(found)) == ([reason], ["more/b.jsonl"])


def test_the_same_content_in_two_data_sets_is_fetched_and_counted_once(small: Hub, tmp_path: Path) -> None:
    nameless = conversation(None, "Who am I?")
    small.sets["ann/traces"].files["nameless.jsonl"] = nameless
    small.sets["bob/copy"] = DataSet(
        {
            "renamed.jsonl": small.sets["ann/traces"].files["a.jsonl"],
            "longer.jsonl": conversation(TWO, "Go on.", "Further."),
            "other.jsonl": nameless,
        }
    )
    store = tmp_path / "store"
    summary = pipeline.analyze(["hub:ann/traces", "hub:bob/copy"], store, jobs=1)
    assert (summary.artifacts, summary.repeated, summary.sessions) == (6, 3, 3)
    assert "renamed.jsonl" not in small.downloads()
    rows = prompts(store)
    assert len({(session, turn) for session, turn, _ in rows}) == len(rows) == 5
    assert [text for session, _, text in rows if session == TWO] == ["Go on.", "Further."], "the fuller copy counts"
    apart = pipeline.analyze(["hub:ann/traces"], tmp_path / "apart", jobs=1)
    pipeline.analyze(["hub:bob/copy"], tmp_path / "apart", jobs=1)
    assert prompts(tmp_path / "apart") == rows, "also when the copy comes in a later run"
    assert apart.repeated == 0


@pytest.mark.parametrize(
    "path", ["../a.jsonl", "x/../../a.jsonl", "/etc/a.jsonl", "C:/a.jsonl", "x\\..\\a.jsonl", "a/./b.jsonl"]
)
def test_a_path_that_leaves_its_data_set_is_not_fetched(hub: Hub, path: str) -> None:
    hub.sets["eve/traces"] = DataSet({path: conversation(ONE, "x"), "b.jsonl": conversation(TWO, "y")})
    found = list(open_source("hub:eve/traces"))
    assert (reasons(found), fetched(found)) == (["unsafe_path"], ["b.jsonl"])
    assert hub.downloads() == ["b.jsonl"]


def test_a_name_that_could_drive_a_terminal_is_shown_in_escapes(hub: Hub) -> None:
    hub.sets["eve/traces"] = DataSet({"a\x1b[2J.jsonl": conversation(ONE, "x")})
    (file,) = open_source("hub:eve/traces")
    assert file.uri == "hub:eve/traces@main:a\\x1b[2J.jsonl"
    assert isinstance(file, RawFile)
    assert next(read([file])) == hub.sets["eve/traces"].files["a\x1b[2J.jsonl"]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("hub:ann/nothing", "There is no dataset 'ann/nothing'"),
        ("hub:ann/traces@v9", "has no revision 'v9'"),
        ("hub:ann/traces#*.txt", "contains no file like"),
        ("hub:ann/empty", "contains no file that may hold traces"),
        ("hub:ann", "is not a dataset"),
        ("hub:ann/traces@../x", "is not a dataset"),
    ],
)
def test_what_is_not_there_is_said(small: Hub, spec: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    small.sets["ann/empty"] = DataSet({"README.md": b"x"})
    error = printed_json(capsys, "analyze", spec, "--no-report", "--store", "unused", "--quiet", code=1)["error"]
    assert says in error["message"]
    assert error["hint"]
    shutil.rmtree("unused", ignore_errors=True)


def test_without_the_extra_it_is_said_how_to_get_it(small: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    source._hub.cache_clear()
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(SourceError) as caught:
        open_source("hub:ann/traces")
    assert "pip install 'huggingface" in caught.value.hint


def test_a_cache_that_was_emptied_is_filled_again(small: Hub) -> None:
    found = [f for f in open_source("hub:ann/traces") if isinstance(f, RawFile)]
    shutil.rmtree(source.cache_folder())
    assert [d if isinstance(d, bytes) else d.reason for d in read(found)] == [
        b"\0",
        b"\0",
        small.sets["ann/traces"].files["a.jsonl"],
        small.sets["ann/traces"].files["more/b.jsonl"],
    ]


def test_a_listing_that_was_cut_is_asked_for_again(small: Hub) -> None:
    first = list(open_source("hub:ann/traces"))
    for path in (source.cache_folder() / "listings").rglob("*.json"):
        path.write_bytes(path.read_bytes()[:20])
    assert list(open_source("hub:ann/traces")) == first


PAGE = (Path(__file__).parents[2] / "docs" / "data-sets.md").read_text("utf-8")


def test_the_page_on_data_sets_runs_from_a_filled_cache(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    began = 1_767_225_600
    rows = [
        {
            "trajectory_id": f"trajectory-{n:04}", "instance_id": f"o__r-{n}", "resolved": n % 2 == 0, "model": "m",
            "messages": [{**m, "timestamp": began + 86_400 * n} for m in messages(f"Please fix issue {n}.")],
        }
        for n in range(24)
    ]  # fmt: skip
    parts = {f"data/{name}-00000-of-00001.parquet": rows[at : at + 12] for name, at in (("train", 0), ("test", 12))}
    said = [messages("Why does it fail?", f"No, fix issue {n} again.") for n in range(24)]
    parts["chats/train.parquet"] = [{"session_id": f"session-{n:04}", "messages": m} for n, m in enumerate(said)]
    hub.sets["anna/runs"] = DataSet({path: as_parquet(some) for path, some in parts.items()})
    list(open_source("hub:anna/runs"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("AGENTSIGNALS_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    asked = len(hub.requests)
    ran = []
    for language, block in re.findall(r"```(sh|yaml|python)\n(.*?)```", PAGE, re.DOTALL):
        if language == "yaml":
            Path("claims.yaml").write_text(block)
        elif language == "python":
            if find_spec(block.split()[1]) is not None:
                exec(block, {})  # noqa: S102  (our own page)
                ran.append(capsys.readouterr().out)
        else:
            for command in re.split(r"^agentsignals ", block, flags=re.MULTILINE)[1:]:
                if "--from" in command:  # somebody read them
                    given = [json.loads(line) for line in Path("sample.jsonl").read_text().splitlines()]
                    Path("sample.jsonl").write_bytes(
                        as_lines([{**row, "label": ("debug", "understand")[n % 2]} for n, row in enumerate(given)])
                    )
                    assert given
                assert main(shlex.split(command)) == 0, command
                ran.append(capsys.readouterr().out)
    assert all(ran) and len(hub.requests) == asked
    (commit,) = Store(tmp_path / "store").sql("SELECT DISTINCT revision FROM artifacts").fetchall()
    assert commit == (hub.sets["anna/runs"].commit,)


# -- exclusion lists ---------------------------------------------------------------------------------------------------


def excluded(tmp_path: Path, text: str, *sources: str, **options: Any) -> pipeline.Summary:
    from agentsignals.sources import read_exclusions  # noqa: PLC0415

    (tmp_path / "list.txt").write_text(text)
    names = read_exclusions(str(tmp_path / "list.txt"))
    return pipeline.analyze(sources, tmp_path / "store", jobs=1, exclude=names, **options)


def test_a_list_leaves_out_data_sets_and_sessions_and_says_how_many(small: Hub, tmp_path: Path) -> None:
    small.sets["bob/more"] = DataSet({"c.jsonl": conversation(THREE, "Third.")})
    text = f"# off-prompt\nhub:bob/more  # security audits\n{TWO}\n\n"
    summary = excluded(tmp_path, text, "hub:ann/traces", "hub:bob/more@main#*.jsonl")
    assert (summary.sessions, summary.excluded_sessions, summary.excluded_sources) == (1, 1, 1)
    assert prompts(tmp_path / "store") == [(ONE, 0, "Fix it."), (ONE, 1, "Again.")]
    assert "c.jsonl" not in small.downloads()


@pytest.mark.slow
def test_what_was_left_out_is_told_each_time_and_comes_back_without_the_list(small: Hub, tmp_path: Path) -> None:
    everything = pipeline.analyze(["hub:ann/traces"], tmp_path / "store", jobs=1)
    assert everything.sessions == 2
    for _ in range(2):
        summary = excluded(tmp_path, TWO, "hub:ann/traces")
        assert (summary.sessions, summary.excluded_sessions) == (1, 1)
        assert {session for session, _, _ in prompts(tmp_path / "store")} == {ONE}
    assert pipeline.analyze(["hub:ann/traces"], tmp_path / "store", jobs=1).sessions == 2
    assert {session for session, _, _ in prompts(tmp_path / "store")} == {ONE, TWO}


def test_one_session_of_several_in_a_file_is_left_out_alone(tmp_path: Path) -> None:
    from tests.golden import SAMPLES  # noqa: PLC0415

    source = str(SAMPLES / "opentraces" / "two_sessions.jsonl")
    pipeline.analyze([source], tmp_path / "whole", jobs=1)
    known = sorted(Store(tmp_path / "whole").manifest.sessions)
    assert len(known) == 2
    summary = excluded(tmp_path, known[0], source)
    assert (summary.sessions, summary.excluded_sessions) == (1, 1)
    assert sorted(Store(tmp_path / "store").manifest.sessions) == known[1:]


def test_a_list_that_is_not_there_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--no-report", "--exclude", str(tmp_path / "none"), "--store", str(tmp_path / "s")]
    assert main(["analyze", str(tmp_path), *words]) == 1
    assert "can't be read" in capsys.readouterr().err


# `discover hub`: what the Hub lists, before anything is fetched

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
    found: list[dict[str, Any]] = printed_json(capsys, "discover", "hub", *arguments)
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
    told = printed(capsys, "discover", "hub")
    assert "files of bob/codex" in told
    assert "5 data sets, 1 of them duplicate another; 2 state no licence" in told
    assert "agentsignals analyze hub:ann/pi" in told


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [(["--limit", "-1"], 2, "--limit -1 is below 0"), (["--untagged"], 2, "the whole Hub")],
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
    assert "can't be searched" in printed_json(capsys, "discover", "hub", code=1)["error"]["message"]
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert main(["discover", "hub"]) == 1
    assert "HF_HUB_OFFLINE" in capsys.readouterr().err
