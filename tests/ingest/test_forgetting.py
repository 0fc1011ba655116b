"""Files that are gone since: what a run says of their sessions, and how these leave the store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentsignals.cli import main
from agentsignals.errors import UnknownSession
from agentsignals.ingest import pipeline
from agentsignals.ingest.maintenance import forget
from agentsignals.sources import uri_of
from agentsignals.sources.local import deleted_files
from agentsignals.store import Store, sidecars
from agentsignals.store.query import rows
from agentsignals.store.tables import CommitRow, LineRow
from agentsignals.ui import document as phrases
from agentsignals.ui.document import document
from tests.claude import Log

IDS = [f"{k}1111111-2222-4333-8444-555555555555" for k in range(3)]


@pytest.fixture(name="folder")
def three(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    for session_id in IDS:
        one = Log(session=session_id, name=session_id[:8])
        one.user("please do it")
        (tmp_path / "in" / f"{session_id}.jsonl").write_bytes(one.data())
    pipeline.analyze([str(tmp_path / "in")], tmp_path / "store", jobs=1)
    return tmp_path


def file_of(folder: Path, n: int) -> Path:
    return folder / "in" / f"{IDS[n]}.jsonl"


def held(folder: Path) -> list[str]:
    return [row[0] for row in rows(Store(folder / "store"), "SELECT session_id FROM sessions ORDER BY 1")[1]]


@pytest.mark.parametrize("n", [2, 20])
def test_a_file_is_gone_where_its_folder_has_no_such_name(n: int, tmp_path: Path) -> None:
    files = [tmp_path / f"{k}.jsonl" for k in range(n)]
    for file in files[1:]:
        file.touch()
    files[1].unlink()
    files[1].symlink_to("nowhere")
    elsewhere = [f"{tmp_path}/no/{k}.jsonl" for k in range(n)]
    assert deleted_files([*(uri_of(str(file)) for file in files), *elsewhere]) == {uri_of(str(files[0])), *elsewhere}


def test_a_run_says_what_the_store_holds_and_how_many_files_are_gone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file_of(folder, 0).unlink()
    verb = ["analyze", str(folder / "in"), "--store", str(folder / "store"), "--quiet"]
    assert main([*verb, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    keys = ("sessions", "stored_sessions", "deleted_files", "deleted_sessions")
    assert [summary[key] for key in keys] == [2, 3, 1, 1]
    assert main(verb) == 0
    text = capsys.readouterr().out
    assert "3 sessions in the store" in text and "source files that no longer exist: 1" in text


def test_sessions_and_the_report_say_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = document(Store(folder / "store"), ["sessions"])
    assert made.deleted_sessions == 0 and not any("gone" in limit for limit in phrases.limits_of(made))
    file_of(folder, 0).unlink()
    made = document(Store(folder / "store"), ["sessions"])
    assert made.deleted_sessions == 1 and any("The files of 1 session are gone" in n for n in phrases.limits_of(made))
    assert main(["sessions", "--store", str(folder / "store")]) == 0
    assert "the files of 1 session in the store no longer exist" in capsys.readouterr().out


def test_a_run_over_another_source_tells_what_is_held_and_nothing_of_files_that_are_there(folder: Path) -> None:
    (folder / "other").mkdir()
    one = Log(session="99999999-2222-4333-8444-555555555555", name="other")
    one.user("another")
    (folder / "other" / "a.jsonl").write_bytes(one.data())
    summary = pipeline.analyze([str(folder / "other")], folder / "store", jobs=1)
    assert (summary.sessions, summary.stored_sessions, summary.deleted_files) == (1, 4, 0)


def test_deleted_sessions_are_forgotten_with_rows_values_and_files(folder: Path) -> None:
    file_of(folder, 0).unlink()
    assert forget(folder / "store", deleted=True).sessions == [IDS[0]]
    assert held(folder) == IDS[1:]
    for table in ("events", "turns", "signals", "artifacts"):
        column = "path" if table == "artifacts" else "session_id"
        left = rows(Store(folder / "store"), f"SELECT count(*) FROM {table} WHERE {column} LIKE '%{IDS[0]}%'")[1]
        assert left == [(0,)], table
    assert forget(folder / "store", deleted=True).sessions == []
    summary = pipeline.analyze([str(folder / "in")], folder / "store", jobs=1)
    assert (summary.sessions, summary.stored_sessions, summary.deleted_files) == (2, 2, 0)
    assert not Store(folder / "store").damage


def test_a_session_whose_file_is_there_is_forgotten_until_the_next_run_over_it(folder: Path) -> None:
    gone = forget(folder / "store", [IDS[1][:5]])
    assert gone.sessions == [IDS[1]] and [Path(p).name for p in gone.still_there] == [f"{IDS[1]}.jsonl"]
    assert held(folder) == [IDS[0], IDS[2]]
    pipeline.analyze([str(folder / "in")], folder / "store", jobs=1)
    assert held(folder) == IDS


def test_the_last_sessions_can_be_forgotten(folder: Path) -> None:
    assert forget(folder / "store", IDS).sessions == IDS
    assert held(folder) == []


def test_nothing_is_forgotten_by_mistake(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UnknownSession):
        forget(folder / "store", [IDS[0], "no such session"])
    assert main(["forget", "--store", str(folder / "store")]) == 2
    assert "No session was named" in capsys.readouterr().err
    assert held(folder) == IDS


def test_no_table_and_no_note_of_a_repository_names_a_forgotten_session(folder: Path) -> None:
    store = folder / "store"
    both = [IDS[0], IDS[1]]
    commit = CommitRow(**dict.fromkeys(CommitRow.__struct_fields__))  # type: ignore[arg-type]
    commit.repo, commit.commit_sha, commit.session_ids = "shop", "c1", both
    commit.checkpoint_ids, commit.flags = [], []
    sidecars.write_repository_rows(store, "shop", "commits", [commit])
    lines = [
        LineRow(
            repo="shop", commit_sha="c1", path="a.py", line=n, tag="agent", session_id=session_id, seq=4,
            is_blank=False, alive=True,
        )
        for n, session_id in enumerate([*both, None])
    ]  # fmt: skip
    sidecars.write_repository_rows(store, "shop", "line_attribution", lines)
    sidecars.write_note(store, "shop", "naming", lines[0])
    sidecars.write_note(store, "shop", "other", lines[1])
    forget(store, [IDS[0]])
    left = Store(store)
    assert rows(left, "SELECT session_ids FROM commits")[1] == [([IDS[1]],)]
    kept = rows(left, "SELECT line, tag, session_id, seq FROM line_attribution ORDER BY line")[1]
    assert kept == [(0, "agent", None, None), (1, "agent", IDS[1], 4), (2, "agent", None, 4)]
    assert sidecars.read_note(store, "shop", "naming") is None and sidecars.read_note(store, "shop", "other")
    assert not left.damage
    live = {str(path) for table in ("commits", "line_attribution") for path in sidecars.repository_files(store, table)}
    assert len(live) == 2 and not any(IDS[0].encode() in Path(path).read_bytes() for path in live)
