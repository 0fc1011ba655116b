"""What is written is what is read, whatever the traces hold."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agentsignals.errors import StoreError, UnknownSession
from agentsignals.ingest import pipeline
from agentsignals.model import Artifact, Session
from agentsignals.signals.catalog import measure
from agentsignals.store import Store, index, parquet, shards, tables
from agentsignals.store.index import INDEX_FILE, ArtifactEntry, Manifest, SessionEntry, ShardEntry
from agentsignals.store.parquet import signal_rows
from agentsignals.store.query import rows
from agentsignals.views.session import SessionView
from tests.build import call, say, session, think, user, write_shard
from tests.golden import SAMPLES, read_files, samples
from tests.quick import some

ALL = [s for s in samples() if s.relative_to(SAMPLES).parts[0] != "entire"]


def _sessions(sample: Path) -> list[Session]:
    files = [p for p in sorted(sample.rglob("*")) if p.is_file()] if sample.is_dir() else [sample]
    return read_files(files, sample if sample.is_dir() else sample.parent)[2].sessions


def _written(folder: Path, sessions: list[Session]) -> dict[str, Session]:
    write_shard(folder, sessions)
    return {s.session_id: s for s in shards.read_sessions(folder, "one")}


@pytest.mark.parametrize("sample", some(ALL, 4), ids=lambda p: p.relative_to(SAMPLES).as_posix())
def test_a_session_comes_back_as_it_was(sample: Path, tmp_path: Path) -> None:
    found = _sessions(sample)
    for name in {s.session_id for s in found}:
        assert msgspec.to_builtins(_written(tmp_path, found)[name]) == msgspec.to_builtins(
            next(s for s in found if s.session_id == name)
        )


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(words=st.text(max_size=60), command=st.text(max_size=60))
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, words: str, command: str) -> None:
    """Lone surrogates, which UTF-8 can't hold, come back as question marks; everything else unchanged."""
    made = session(user(words or "x"), think(words), say(words), call("Bash", command=command or "ls", result=words))
    back = _written(tmp_path_factory.mktemp("s"), [made])["s1"]
    expected = words.encode("utf-8", "replace").decode()
    assert [e.text for e in back.events if e.kind == "thinking"] == [expected]
    assert back.tool_calls[0].command == (command or "ls").encode("utf-8", "replace").decode()


def test_a_number_no_column_can_hold_is_absent(tmp_path: Path) -> None:
    made = session(user("x"), say("y", output_tokens=2**63, input_tokens=7), say("z", output_tokens=5))
    back = _written(tmp_path, [made])["s1"]
    assert [(s.input_tokens, s.output_tokens) for s in back.steps] == [(7, None), (None, 5)]


@pytest.mark.slow
def test_values_measured_from_the_store_are_those_measured_at_ingest(tmp_path: Path) -> None:
    for sample in ALL:
        found = {s.session_id: s for s in _sessions(sample)}
        back = _written(tmp_path / sample.name, list(found.values()))
        for name, one in found.items():
            fresh = signal_rows(one, measure(SessionView(one)))
            again = signal_rows(back[name], measure(SessionView(back[name])))
            assert fresh == again, sample


def _entry(shard: str) -> SessionEntry:
    return SessionEntry(
        shard=shard,
        group="f",
        context="product",
        n_turns=0,
        n_prompts=0,
        n_tool_calls=0,
        n_edits=0,
        input_tokens=None,
        output_tokens=None,
        cache_read_tokens=None,
        cache_write_tokens=None,
        cost_usd=None,
    )


def test_a_unique_beginning_of_an_id_will_do(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", create=True)
    store.manifest.sessions.update({"abc1": _entry("x"), "abd2": _entry("x")})
    store.save()
    assert store.resolve("abc") == "abc1"
    for wrong in ("ab", "z", ""):
        with pytest.raises(UnknownSession):
            store.resolve(wrong)


def _unclaimed(uri: str, shard: str = "one", **other: Any) -> ArtifactEntry:
    key = f"file:{uri}" if shard else ""
    kept = {"container": "", "key": "", "session_hint": None, "repo_hint": None, "format": None, "parser": 9}
    kept |= {"source": "local", "spec": "/data", "bytes": 30, "stamp": 1_772_442_000_000_000_007}
    kept |= {"group": key, "keys": [key] if key else [], "shard": shard, "skipped": {"unrecognised": 1}}
    return ArtifactEntry(**(kept | other))


_ODD_ENTRIES: dict[str, dict[str, Any]] = {
    "plain": {},
    "no trace": {"shard": "", "skipped": {"not_a_trace": 1}},
    "claimed": {"format": "pi", "skipped": {}},
    "of a family": {"keys": ["file:/data/a/0", "session:x"]},
    "of another family": {"group": "file:/data/b"},
    "two reasons": {"skipped": {"unrecognised": 1, "internal_error": 1}},
    "twice": {"skipped": {"unrecognised": 2}},
    "an error": {"error": "ValueError: x"},
    "from Git": {"source": "git", "stamp": None, "container": "/r", "key": "abc"},
    "with a hint": {"session_hint": "s"},
    "of a repository": {"repo_hint": "r"},
}


@pytest.mark.parametrize("other", _ODD_ENTRIES.values(), ids=_ODD_ENTRIES)
@pytest.mark.parametrize("uri", ["/data/a/0", "/0", "/data/\\\\a//\\xff.json", "/data/'\"; DROP TABLE files"])
def test_the_index_gives_back_each_file_as_it_was(tmp_path: Path, uri: str, other: dict[str, Any]) -> None:
    entries = {uri: _unclaimed(uri, **other), "/data/a/1": _unclaimed("/data/a/1")}
    made = Manifest()
    made.files.update(entries)
    made.create(tmp_path)
    loaded, lost = index.load(tmp_path)
    assert loaded is not None and not lost
    assert loaded.files[uri] == entries[uri] and loaded.files == entries
    moved = {key: replace(entry, shard="two") for key, entry in entries.items()}
    loaded.files.update(moved)
    loaded.commit()
    again, _ = index.load(tmp_path)
    assert again is not None and again.files == loaded.files == moved


def test_a_cut_index_is_made_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", create=True)
    made = session(user("hello"), say("hi"))
    parts = write_shard(
        store.folder,
        [made],
        [Artifact(artifact_id="a1", source="s", path="p", format="claude-code", sha256="", bytes=1)],
    )
    store.add_shard("one", ShardEntry(tables=parts), {"s1": _entry("one")}, {})
    (store.folder / INDEX_FILE).write_bytes(b'{"schema_version":1,"sha')
    assert set(Store(tmp_path / "s").manifest.sessions) == {"s1"}


def test_an_index_of_an_older_schema_is_made_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", create=True)
    (store.folder / "shards" / "x").mkdir()
    store.manifest.history_of = "x"
    store.save()
    _set_version(store.folder, 1)
    again = Store(tmp_path / "s")
    assert again.manifest.history_of == ""
    assert "version 1" in again.warnings[0]


def _set_version(folder: Path, version: int) -> None:
    with closing(sqlite3.connect(folder / INDEX_FILE)) as database:
        database.execute(f"PRAGMA user_version = {version}")


@pytest.mark.parametrize("harm", ["", "DROP TABLE state", "ALTER TABLE files RENAME TO others"])
def test_an_index_of_a_newer_program_is_refused_and_left_alone(tmp_path: Path, harm: str) -> None:
    store = Store(tmp_path / "s", create=True)
    _set_version(store.folder, 99)
    with closing(sqlite3.connect(store.folder / INDEX_FILE)) as database:
        database.execute(harm or "SELECT 1")
    left = (store.folder / INDEX_FILE).read_bytes()
    for opening in (Store, pipeline.measure, partial(pipeline.ingest, [str(SAMPLES / "pi")])):
        with pytest.raises(StoreError, match=r"newer.*version 99"):
            opening(tmp_path / "s")  # type: ignore[operator]  # three ways in
    assert (store.folder / INDEX_FILE).read_bytes() == left


def test_a_shard_of_an_older_program_has_null_in_the_columns_it_lacks(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", create=True)
    whole = shards.shard_rows([session(user("hello"), call("Bash", command="ls"))], [], []).tables
    whole["tool_calls"] = whole["tool_calls"].drop_columns(["purpose", "argument_roles"])
    whole["sessions"] = whole["sessions"].drop_columns(["conventions", "n_prompts", "visible_output_tokens"])
    with shards.Draft(store.folder, "one") as draft:
        draft.add(whole)
        draft.add({"artifacts": parquet.plain_table(tables.ARTIFACTS, [])})
    store.add_shard("one", ShardEntry(tables=draft.parts), {"s1": _entry("one")}, {})
    asked = "SELECT name, purpose, argument_roles, conventions FROM tool_calls JOIN sessions USING (session_id)"
    assert rows(store, asked)[1] == [("Bash", None, None, None)]
    assert store.session("s1").conventions == []
    (store.folder / INDEX_FILE).unlink()
    made_again = Store(store.folder).manifest.sessions["s1"]
    assert (made_again.n_turns, made_again.n_prompts, made_again.visible_output_tokens) == (1, None, None)


def test_opening_a_store_that_is_none_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no store"):
        Store(tmp_path)


def test_reading_a_store_writes_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", create=True)
    made = session(user("hello"), say("hi"))
    parts = write_shard(store.folder, [made])
    store.add_shard("one", ShardEntry(tables=parts), {"s1": _entry("one")}, {})
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "s").rglob("*")}
    assert rows(Store(tmp_path / "s"), "SELECT session_id FROM sessions")[1] == [("s1",)]
    assert Store(tmp_path / "s").session("s1").turns[0].text == "hello"
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "s").rglob("*")} == before


def _arrows_pool(**chosen: str) -> str:
    """The pool in a process of its own that loads the store's tables in this environment."""
    environment = {k: v for k, v in os.environ.items() if k != "ARROW_DEFAULT_MEMORY_POOL"} | chosen
    code = "import agentsignals.store.parquet, pyarrow; print(pyarrow.default_memory_pool().backend_name)"
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return told.stdout.strip()


def test_arrow_takes_its_memory_from_the_system() -> None:
    assert _arrows_pool() == "system"


def test_the_environment_can_name_another_pool_for_arrow() -> None:
    others = [name for name in pa.supported_memory_backends() if name != "system"]
    if not others:
        pytest.skip("this pyarrow has one pool only")
    assert _arrows_pool(ARROW_DEFAULT_MEMORY_POOL=others[0]) == others[0]
