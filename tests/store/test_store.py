"""What is written is what is read, whatever the traces hold."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections import Counter
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
from agentsignals.model import Artifact, Label, Session
from agentsignals.signals.catalog import measure
from agentsignals.store import Store, index, parquet, shards, sidecars, tables
from agentsignals.store.index import INDEX_FILE, ArtifactEntry, Manifest, SessionEntry, ShardEntry
from agentsignals.store.parquet import signal_rows
from agentsignals.store.query import rows
from agentsignals.store.sidecars import LabelRow
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


@pytest.mark.parametrize("sample", some(ALL, 8), ids=lambda p: p.relative_to(SAMPLES).as_posix())
def test_a_session_comes_back_as_it_was(sample: Path, tmp_path: Path) -> None:
    found = _sessions(sample)
    for name, back in _written(tmp_path, found).items():
        assert msgspec.to_builtins(back) == msgspec.to_builtins(next(s for s in found if s.session_id == name))


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
    stores: list[dict[str, Session]] = [{}]
    for one in (s for sample in ALL for s in _sessions(sample)):
        held = next((s for s in stores if one.session_id not in s), None)
        if held is None:
            stores.append(held := {})
        held[one.session_id] = one
    for n, found in enumerate(stores):
        back = _written(tmp_path / str(n), list(found.values()))
        assert back.keys() == found.keys()
        for name, one in found.items():
            fresh = signal_rows(one, measure(SessionView(one)))
            assert fresh == signal_rows(back[name], measure(SessionView(back[name]))), name


def _entry(shard: str) -> SessionEntry:
    figures: dict[str, Any] = dict.fromkeys(index.FIGURES)
    figures |= dict.fromkeys(("n_turns", "n_prompts", "n_tool_calls", "n_edits"), 0)
    return SessionEntry(shard=shard, group="f", context="product", **figures)


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


# Labels made here: kept beside the traces, seen in the view, given to the signals of their session


@pytest.fixture
def store(tmp_path: Path) -> Store:
    pipeline.analyze([str(SAMPLES / "pi")], tmp_path / "store")
    return Store(tmp_path / "store")


def label(turn: int, value: str, **more: object) -> Label:
    return Label(task="sentiment", labeller="rules", turn=turn, value=value, **more)  # type: ignore[arg-type]  # fields by name


def test_labels_come_back_as_they_were(store: Store) -> None:
    session_id = sorted(store.manifest.sessions)[0]
    made = [label(0, "NEUTRAL", reason="asks", created_at=1_772_359_205_000_000), label(1, "NEGATIVE", number=0.5)]
    sidecars.write_labels(store.folder, "sentiment", "rules", [LabelRow(session_id, one) for one in made])
    assert sidecars.read_labels(store.folder) == {session_id: made}
    assert sidecars.labels_of(store.folder, "sentiment", "rules") == [LabelRow(session_id, one) for one in made]
    assert sidecars.labels_of(store.folder, "sentiment", "gpt") == []
    assert store.session(session_id).labels == made
    found = rows(store, "SELECT session_id, turn, value, created_at FROM labels ORDER BY turn")[1]
    assert [r[:3] for r in found] == [(session_id, 0, "NEUTRAL"), (session_id, 1, "NEGATIVE")]


def test_labelling_again_replaces_one_labellers_labels_of_one_task(store: Store) -> None:
    sidecars.write_labels(store.folder, "sentiment", "rules", [LabelRow("a", label(0, "NEUTRAL"))])
    sidecars.write_labels(store.folder, "sentiment", "org/model", [LabelRow("a", label(0, "POSITIVE"))])
    sidecars.write_labels(store.folder, "sentiment", "rules", [LabelRow("b", label(0, "NEGATIVE"))])
    found = rows(store, "SELECT session_id, value FROM labels ORDER BY ALL")[1]
    assert found == [("a", "POSITIVE"), ("b", "NEGATIVE")]


def test_labels_survive_reading_the_traces_again(store: Store) -> None:
    session_id = sorted(store.manifest.sessions)[0]
    sidecars.write_labels(store.folder, "sentiment", "rules", [LabelRow(session_id, label(0, "NEUTRAL"))])
    files = store.manifest.files
    files.update({uri: replace(e, parser=-1) for uri, e in files.items()})  # as after an update of the parser
    store.manifest.code = ""
    store.save()
    pipeline.analyze([str(SAMPLES / "pi")], store.folder)
    assert [one.value for one in Store(store.folder).session(session_id).labels] == ["NEUTRAL"]
    assert rows(Store(store.folder), "SELECT count(*) FROM labels")[1] == [(1,)]


def test_the_fingerprint_changes_with_the_labels(store: Store) -> None:
    assert sidecars.labels_fingerprint(store.folder) == ""
    sidecars.write_labels(store.folder, "sentiment", "rules", [LabelRow("a", label(0, "NEUTRAL"))])
    first = sidecars.labels_fingerprint(store.folder)
    sidecars.write_labels(store.folder, "sentiment", "rules", [LabelRow("a", label(0, "NEGATIVE", reason="no"))])
    assert "" != first != sidecars.labels_fingerprint(store.folder)


def test_names_that_are_no_file_names_have_files_of_their_own(tmp_path: Path) -> None:
    one, two = (sidecars.write_labels(tmp_path, "sentiment", name, []) for name in ("a/b", "a-b"))
    assert one != two
    assert one.parent == two.parent == tmp_path / "labels"


def test_labelling_makes_the_values_stale_once(store: Store) -> None:
    assert pipeline.measure(store.folder)["sessions"] == 0
    sidecars.write_labels(store.folder, "sentiment", "rules", [LabelRow("a", label(0, "NEUTRAL"))])
    assert pipeline.measure(store.folder)["sessions"] == len(store.manifest.sessions)
    assert pipeline.measure(store.folder)["sessions"] == 0


def test_measuring_says_how_many_values_are_others(store: Store) -> None:
    """After labels, and after another embedder: counted here by a query before and after."""

    def values() -> Counter[tuple[Any, ...]]:
        asked = "SELECT signal, session_id, turn, value, absent, absent_detail, detail FROM signals"
        return Counter(rows(Store(store.folder), asked)[1])

    session_id = sorted(store.manifest.sessions)[0]

    def relabel() -> dict[str, int]:
        sidecars.write_labels(store.folder, "sentiment", "rules", [LabelRow(session_id, label(0, "NEGATIVE"))])
        return pipeline.measure(store.folder)

    for change in (relabel, lambda: pipeline.measure(store.folder, embedder="chars")):
        before = values()
        done = change()
        after = values()
        assert done["values"] == max((before - after).total(), (after - before).total()) > 0
        assert done["signals"] == len({row[0] for row in (before - after) + (after - before)})
    assert pipeline.measure(store.folder) == {"signals": 0, "sessions": 0, "values": 0}
