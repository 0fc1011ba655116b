"""A shard is taken into the index at the cost of what it holds, and whoever opens the store meanwhile sees it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from agentsignals.errors import StoreError
from agentsignals.ingest import corpus_signals, pipeline
from agentsignals.model import Artifact
from agentsignals.store import Store, artifact_id, copies, disk, fulltext, index, parquet, query, shards, tables
from agentsignals.store.index import ArtifactEntry, SessionEntry, ShardEntry
from agentsignals.store.query import rows
from agentsignals.store.shards import FEW
from tests.build import call, session, user, write_shard
from tests.claude import Log


def session_entry(shard: str, family: str) -> SessionEntry:
    figures: dict[str, Any] = dict.fromkeys(index.FIGURES)
    return SessionEntry(shard=shard, group=family, context="product", **figures)


def file_entry(shard: str, family: str) -> ArtifactEntry:
    facts: dict[str, Any] = {"container": "", "key": "", "session_hint": None, "repo_hint": None}
    facts |= {"source": "local", "spec": "/in", "bytes": 9, "stamp": 9, "format": "pi", "parser": 1}
    return ArtifactEntry(group=family, keys=[family], shard=shard, **facts)


def taken_in(store: Store, name: str, ids: list[str]) -> None:
    """A shard of these sessions, each of a file of its own, as a run takes it in."""
    made, artifacts = [], []
    for session_id in ids:
        one = session(user(f"hello of {name}"), call("Bash", command="ls"))
        one.session_id, one.artifact_id = session_id, artifact_id(f"/in/{session_id}")
        made.append(one)
        artifacts.append(
            Artifact(
                artifact_id=one.artifact_id, source="/in", path=f"/in/{session_id}", format="pi", sha256="", bytes=9
            )
        )
    parts = write_shard(store.folder, made, artifacts, name=name)
    sessions = {i: session_entry(name, f"family:{i}") for i in ids}
    store.add_shard(
        name, ShardEntry(tables=parts), sessions, {f"/in/{i}": file_entry(name, f"family:{i}") for i in ids}
    )


def state(store: Store) -> tuple[dict[str, str], dict[str, str], set[str]]:
    held = store.manifest
    return (
        {i: e.shard for i, e in held.sessions.items()},
        {u: e.shard for u, e in held.files.items()},
        set(held.shards),
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "s", create=True)
    store.manifest.run = 9  # names of copies come after those here
    return store


def test_who_opens_the_store_between_sees_every_commit(store: Store) -> None:
    taken_in(store, "000001-a", ["s1", "s2", "s3"])
    assert state(Store(store.folder)) == state(store)
    taken_in(store, "000002-b", ["s2"])
    seen = Store(store.folder)
    assert state(seen) == state(store)
    sessions, files_of, shards = state(seen)
    assert sessions["s2"] == files_of["/in/s2"] == "000002-b"
    assert sessions["s1"] == sessions["s3"] == files_of["/in/s1"] == "000001-a"
    assert seen.damage == [] and len(shards) == 2
    assert store.manifest.stamps().keys() == files_of.keys()
    store.manifest.files["/in/other"] = file_entry("000002-b", "family:other")
    del store.manifest.files["/in/s1"]
    store.save()
    assert store.manifest.stamps() == Store(store.folder).manifest.stamps() != seen.manifest.stamps()
    assert state(Store(store.folder)) == state(store)
    assert [p.name for p in store.folder.glob("index*")] == [index.INDEX_FILE], "one file again"


def test_who_opened_the_store_before_sees_it_as_it_was(store: Store) -> None:
    taken_in(store, "000001-a", ["s1", "s2", "s3"])
    once, later = Store(store.folder), Store(store.folder)
    before = state(once)
    taken_in(store, "000002-b", ["s2", "s4"])
    taken_in(store, "000003-c", ["s5"])
    assert state(once) == before and state(later) == before, "loaded before and after"
    held = Store(store.folder).manifest
    assert (held.sessions["s2"].shard, "s4" in held.sessions, len(held.sessions)) == ("000002-b", True, 5)
    then = later.manifest
    assert (len(then.sessions), then.contexts(), then.sessions_by_shard()) == (3, {"product": 3}, {"000001-a": 3})
    assert then.files_with_keys(["family:s2", "family:s4"]) == {"family:s2": ["/in/s2"]}
    assert then.stamps().keys() == before[1].keys() == then.local_files()
    assert index.sessions_only_in(then, {"/in/s1", "/in/s4"}) == {"s1"}


def rows_written(store: Store) -> int:
    last = store.manifest.generation
    with closing(sqlite3.connect(store.folder / index.INDEX_FILE)) as database:
        return sum(
            database.execute(f"SELECT count(*) FROM {table} WHERE born = ?", (last,)).fetchone()[0]
            for table in ("sessions", "files", "shards")
        )


def test_a_commit_costs_what_it_holds(store: Store) -> None:
    taken_in(store, "000001-a", [f"s{n}" for n in range(300)])
    assert rows_written(store) == 601
    taken_in(store, "000002-b", ["few"])
    assert rows_written(store) == 3


def test_a_session_that_comes_back_is_one(store: Store) -> None:
    taken_in(store, "000001-a", ["s1"])
    taken_in(store, "000002-b", ["s1"])
    taken_in(store, "000003-c", ["s1"])
    assert state(Store(store.folder)) == state(store) == ({"s1": "000003-c"}, {"/in/s1": "000003-c"}, {"000003-c"})


@pytest.mark.parametrize("lacks", [(), ("sessions_by_end", "files_by_end")])
def test_rows_that_were_replaced_go_after_an_hour_and_who_needs_them_is_told(
    store: Store, monkeypatch: pytest.MonkeyPatch, lacks: tuple[str, ...]
) -> None:
    """Also those of an index that was made before these rows had indices."""
    with closing(sqlite3.connect(store.folder / index.INDEX_FILE, isolation_level=None)) as database:
        for name in lacks:
            database.execute(f"DROP INDEX {name}")
    taken_in(store, "000001-a", ["secret"])
    old = Store(store.folder)
    taken_in(store, "000002-b", ["other"])
    store.drop({"secret"}, {"/in/secret"})
    store.save()
    store.sweep()
    assert old.manifest.sessions["secret"].shard == "000001-a"
    old = Store(store.folder, write=True)
    other = Store(store.folder)
    taken_in(old, "000003-c", ["third"])
    monkeypatch.setattr(disk, "KEEP_S", -1)
    old.sweep()
    with pytest.raises(StoreError, match="while it was open"):
        len(other.manifest.sessions)
    assert set(Store(store.folder).manifest.sessions) == {"other", "third"}
    assert b"secret" not in (store.folder / index.INDEX_FILE).read_bytes()


def test_two_writers_of_one_state_do_not_overwrite_each_other(store: Store) -> None:
    taken_in(store, "000001-a", ["s1"])
    late = Store(store.folder)
    taken_in(store, "000002-b", ["s2"])
    with pytest.raises(StoreError, match="in the meantime"):
        late.save()
    assert set(Store(store.folder).manifest.sessions) == {"s1", "s2"}


_KILLED = """
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA cache_size = 1")
database.execute("PRAGMA cache_spill = 1")
database.execute("BEGIN IMMEDIATE")
database.execute("UPDATE sessions SET shard = 'x' || hex(randomblob(2000))")
os._exit(9)
"""


@pytest.mark.parametrize("mode", ["rw", "ro"])
def test_a_commit_that_was_killed_is_undone_also_for_who_may_not_write(
    store: Store, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken_in(store, "000001-a", [f"s{n}" for n in range(200)])
    before = state(store)
    subprocess.run([sys.executable, "-c", _KILLED, str(store.folder / index.INDEX_FILE)], check=False)
    assert (store.folder / index.JOURNAL_FILE).stat().st_size > 1000
    with monkeypatch.context() as patch:
        patch.setattr(index, "MODE", mode)
        seen = Store(store.folder)
        assert state(seen) == before and seen.warnings == [] and seen.manifest.contexts() == {"product": 200}
    assert (store.folder / index.JOURNAL_FILE).exists() == (mode == "ro")
    taken_in(Store(store.folder, write=True), "000002-b", ["s1"])
    assert len(Store(store.folder).manifest.sessions) == 200


def test_the_journal_of_an_index_that_is_gone_is_not_played_into_another(store: Store) -> None:
    taken_in(store, "000001-a", [f"s{n}" for n in range(200)])
    subprocess.run([sys.executable, "-c", _KILLED, str(store.folder / index.INDEX_FILE)], check=False)
    (store.folder / index.INDEX_FILE).unlink()
    again = Store(store.folder, write=True)
    assert len(again.manifest.sessions) == 200 and not (store.folder / index.JOURNAL_FILE).exists()
    assert Store(store.folder).warnings == []


@pytest.mark.parametrize("keep", [0, 50, 4096, -4096], ids=str)
def test_an_index_that_was_cut_is_made_again(store: Store, keep: int) -> None:
    taken_in(store, "000001-a", [f"s{n}" for n in range(50)])
    path = store.folder / index.INDEX_FILE
    path.write_bytes(path.read_bytes()[: keep or None] if keep else b"")
    again = Store(store.folder)
    assert "corrupt" in again.warnings[0] or "empty" in again.warnings[0]
    assert len(again.manifest.sessions) == 50 and again.manifest.contexts() == {"product": 50}
    assert len(Store(store.folder, write=True).manifest.sessions) == 50
    assert Store(store.folder).warnings == []


def test_a_full_disk_leaves_the_index_as_it_was(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    taken_in(store, "000001-a", ["s1"])
    real = index._opened

    @contextmanager
    def full(path: Path) -> Iterator[sqlite3.Connection]:
        with real(path) as database:
            (pages,) = database.execute("PRAGMA page_count").fetchone()
            database.execute(f"PRAGMA max_page_count = {pages}")
            yield database

    with monkeypatch.context() as patch, pytest.raises(StoreError, match=r"can't be written.*full"):
        patch.setattr(index, "_opened", full)
        taken_in(store, "000002-b", [f"s{n}" for n in range(500)])
    assert set(Store(store.folder).manifest.sessions) == {"s1"}


def test_only_its_owner_reads_the_index_and_its_journal(store: Store) -> None:
    taken_in(store, "000001-a", [f"s{n}" for n in range(200)])
    subprocess.run([sys.executable, "-c", _KILLED, str(store.folder / index.INDEX_FILE)], check=False)
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in store.folder.glob("index*")}
    assert modes == {index.INDEX_FILE: "0o600", index.JOURNAL_FILE: "0o600"}


def test_a_store_whose_index_was_never_written_gets_one_with_its_first_shard(tmp_path: Path) -> None:
    (tmp_path / "s" / "shards").mkdir(parents=True)
    store = Store(tmp_path / "s", write=True)
    taken_in(store, "000001-a", ["s1"])
    assert Store(tmp_path / "s").warnings == [] and state(Store(tmp_path / "s")) == state(store)


def test_who_held_the_store_too_long_opens_it_again_at_the_next_question(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken_in(store, "000001-a", ["s1"])
    old, lost = Store(store.folder), Store(store.folder)
    taken_in(store, "000002-b", ["s1", "s2"])
    with monkeypatch.context() as patch:
        patch.setattr(disk, "KEEP_S", -1)
        store.sweep()
    assert {one.session_id for one in old.read({"s1", "s2"})} == {"s1", "s2"}
    (store.folder / index.INDEX_FILE).unlink()
    assert {one.session_id for one in lost.read({"s1", "s2"})} == {"s1", "s2"}


# Sessions that left a shard


def told(store: Store) -> dict[str, list[tuple[str, str]]]:
    """Sessions with the shard that they came from, through every door to a shard's rows."""
    prompts = "SELECT session_id, text FROM turns ORDER BY ALL"
    doors = {
        "query": query.rows(store, prompts)[1],
        "query of a context": query.rows(store, prompts, "product")[1],
        "sessions read": [(s.session_id, s.turns[0].text) for s in store.read(set(store.manifest.sessions))],
        "one session": [(i, store.session(i).turns[0].text) for i in store.manifest.sessions],
        "first prompts": [
            pair
            for name, entry in store.manifest.shards.items()
            for pair in shards.first_prompts(store.folder, name, entry.gone).items()
        ],
    }
    out = store.folder.parent / f"out{len(list(store.folder.parent.iterdir()))}"
    out.mkdir()
    copies.write_tables(store, out, set(store.manifest.sessions))
    rows = parquet.read(out / "turns.parquet").to_pylist()
    doors["a copy"] = [(row["session_id"], row["text"]) for row in rows]
    assert {row["artifact_id"] for row in parquet.read(out / "artifacts.parquet").to_pylist()} == {
        artifact_id(f"/in/{i}") for i in store.manifest.sessions
    }
    fulltext.build(store)
    found = fulltext.search(store, "hello")
    assert sorted(s.session_id for s in found.sessions) == sorted(store.manifest.sessions)
    sums = corpus_signals.read_summaries(store, frozenset()).values()
    assert sorted(one.session_id for s in sums for _, one in s.sessions) == sorted(store.manifest.sessions)
    for name in tables.NAMES:
        rows_there = query.rows(store, f"SELECT count(*) FROM {name}")[1]
        assert rows_there == [(parquet.read(out / f"{name}.parquet").num_rows,)], name
    return {door: sorted(pairs) for door, pairs in doors.items()}


def test_who_left_a_shard_is_seen_by_no_door_and_nothing_is_written_anew(store: Store) -> None:
    taken_in(store, "000001-a", ["s1", "s2", "s'3"])
    before = Store(store.folder)
    files = {p: p.stat().st_mtime_ns for p in (store.folder / "shards" / "000001-a").glob("*.parquet")}
    taken_in(store, "000002-b", ["s2", "s'3"])
    expected = [("s'3", "hello of 000002-b"), ("s1", "hello of 000001-a"), ("s2", "hello of 000002-b")]
    for seen in (store, Store(store.folder)):
        assert told(seen) == dict.fromkeys(told(seen), expected)
    assert {p: p.stat().st_mtime_ns for p in files} == files
    assert set(told(before)["query"]) == {(i, "hello of 000001-a") for i in ("s1", "s2", "s'3")}
    assert Store(store.folder).strays() == []


def test_an_index_made_again_knows_who_left_a_shard(store: Store) -> None:
    taken_in(store, "000001-a", ["s1", "s2", "s3"])
    taken_in(store, "000002-b", ["s2"])
    store.commit()
    taken_in(store, "000003-c", ["s2", "s4"])
    expected = told(store)
    (store.folder / index.INDEX_FILE).unlink()
    assert told(Store(store.folder)) == expected
    (store.folder / "shards" / "000001-a" / index.GONE_FILE).unlink()
    assert told(Store(store.folder, write=True)) == expected, "the younger shard has it"
    assert told(Store(store.folder)) == expected


def test_a_session_that_nobody_holds_any_more_does_not_come_back_with_a_lost_index(store: Store) -> None:
    taken_in(store, "000001-a", ["s1", "s2"])
    store._drop(store.manifest.sessions.known(["s2"]), {})
    store.commit()
    (store.folder / index.INDEX_FILE).unlink()
    assert set(Store(store.folder).manifest.sessions) == {"s1"}


def test_what_is_dropped_on_request_leaves_all_files_that_hold_it(store: Store) -> None:
    taken_in(store, "000001-a", ["s1", "secret", "s2"])
    taken_in(store, "000002-b", ["secret", "s3"])
    taken_in(store, "000003-c", ["s3"])
    store.drop({"secret"}, {"/in/secret"})
    store.save()
    left = Store(store.folder)
    for name in left.manifest.shards:
        for path in (store.folder / "shards" / name).iterdir():
            held = path.read_text() if path.suffix == ".json" else str(parquet.read(path).to_pylist())
            assert "secret" not in held and artifact_id("/in/secret") not in held, path
    assert [row[0] for row in query.rows(left, "SELECT session_id FROM sessions ORDER BY 1")[1]] == ["s1", "s2", "s3"]
    assert told(left) == told(store)


def test_a_shard_that_half_of_its_sessions_left_is_written_anew(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "FEW", 2)
    monkeypatch.setattr(shards, "LARGE_BYTES", 0)
    taken_in(store, "000001-a", ["s1", "s2", "s3", "s4"])
    taken_in(store, "000002-b", ["s1"])
    assert shards.compact(store) == 0 and "000001-a" in store.manifest.shards
    taken_in(store, "000003-c", ["s2"])
    expected = told(store)
    shards.compact(store)
    assert "000001-a" not in store.manifest.shards
    assert not any(entry.gone or entry.gone_artifacts for entry in store.manifest.shards.values())
    assert told(Store(store.folder)) == expected


def test_a_damaged_shard_that_all_sessions_left_is_not_missed(store: Store) -> None:
    taken_in(store, "000001-a", ["s1"])
    store.manifest.files["/in/other"] = file_entry("000001-a", "family:other")
    store.commit()
    (store.folder / "shards" / "000001-a" / "turns.parquet").unlink()
    broken = Store(store.folder, write=True)
    assert [d.table for d in broken.damage] == ["turns"]
    taken_in(broken, "000002-b", ["s1"])
    again = Store(store.folder)
    assert again.damage == [] and len(again.manifest.shards) == 2
    assert query.rows(again, "SELECT session_id FROM turns")[1] == [("s1",)]


def test_an_index_that_nobody_touched_is_not_checked_at_each_opening(store: Store) -> None:
    taken_in(store, "000001-a", [f"s{n}" for n in range(50)])
    path, note = store.folder / index.INDEX_FILE, store.folder / index.CHECKED_FILE
    data, status = bytearray(path.read_bytes()), path.stat()
    data[-3000:] = os.urandom(3000)
    path.write_bytes(data)
    assert "corrupt" in Store(store.folder).warnings[0], "its time is another"
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    trusting = Store(store.folder)
    assert trusting.warnings == [], "the cheap look trusts length and time"
    trusting.check_files(thorough=True)
    assert [d.place for d in trusting.damage] == [index.INDEX_FILE]
    note.unlink()
    assert "corrupt" in Store(store.folder).warnings[0]
    assert Store(store.folder, write=True).warnings and not Store(store.folder).warnings and note.exists()


# Sums that the index gives


def _crowd(store: Store) -> None:
    """Files and sessions that differ in what is summed."""
    rng = Random(7)  # noqa: S311  (a choice, no secret)
    for n in range(60):
        shard, group = rng.choice(("", "000001-a", "000002-b")), f"group:{n // 2}"
        store.manifest.files[f"/in/{n}"] = replace(
            file_entry(shard, group),
            keys=[group, f"root:/in/{n % 3}", *([f"record:{n % 5}"] if n % 2 else [])],
            source=rng.choice(("local", "git")),
            spec=rng.choice(("/in", "pi")),
            stamp=rng.choice((None, 5)),
            key=rng.choice(("", "k1", "k2")),
            format=rng.choice((None, "pi", "codex")),
            parser=rng.choice((-2, 1, 3)),
            skipped=rng.choice(({}, {"unrecognised": 1}, {"bad_json": 2, "x": 1})),
            error=rng.choice(("", "", "KeyError: 'x'")),
            note=rng.choice(("", "JSON with a")),
            version=rng.choice(("", "1.0", "0.10")),
            unknown_fields=rng.choice(([], ["b", "a"])),
        )
        figures = {name: rng.choice((None, 0, 3)) for name in index.FIGURES} | {"cost_usd": rng.choice((None, 0.25))}
        context = rng.choice(("product", "eval"))
        store.manifest.sessions[f"s{n}"] = replace(
            session_entry(shard or "000001-a", group), context=context, **figures
        )
    store.save()


@pytest.mark.parametrize("among", [None, {f"/in/{n}" for n in range(5)}, {f"/in/{n}" for n in range(57)}, {"/none"}])
def test_sums_are_those_over_the_rows(store: Store, among: set[str] | None) -> None:
    _crowd(store)
    held = Store(store.folder).manifest
    files = {u: e for u, e in held.files.items() if among is None or u in among}
    chosen = index.EVERY_FILE if among is None else index.among_files(among, held.stamps())
    kinds = held.kinds(chosen)
    assert sum(kind.files for kind in kinds) == len(files) and sum(kind.bytes for kind in kinds) == 9 * len(files)
    told_of = Counter[str]()
    for kind in kinds:
        told_of[repr((kind.is_trace, kind.format, kind.spec, kind.skipped, kind.note, kind.version))] += kind.files
        assert kind.example in files
    assert told_of == Counter(
        repr((bool(e.shard), e.format, e.spec, e.skipped, e.note, e.version)) for e in files.values()
    )
    assert sorted(held.file_errors(chosen)) == sorted((u, e.error) for u, e in files.items() if e.error and e.shard)
    contents = [e.key for e in files.values() if e.shard and e.stamp is None and e.key]
    assert held.repeated(chosen) == len(contents) - len(set(contents))
    groups = {e.group for e in files.values() if e.shard}
    here = [s for s in held.sessions.values() if s.group in groups]
    totals = held.totals(chosen)
    assert (totals["sessions"], totals["attempts"]) == (len(here), sum(s.context == "eval" for s in here))
    assert totals["prompts"] == sum(s.n_prompts or 0 for s in here)
    assert totals["visible_output_tokens"] == sum(s.visible_output_tokens or 0 for s in here)
    assert totals["lower_bounds"] == sum(s.visible_output_tokens is not None for s in here)
    assert totals["cost_usd"] == sum(s.cost_usd or 0 for s in here)
    assert totals["unpriced_sessions"] == sum(s.cost_usd is None for s in here)
    silent = Counter(
        s.group
        for s in here
        if (s.context, s.n_turns, s.n_tool_calls) == ("product", 0, 0) and not (s.input_tokens or s.output_tokens)
    )
    formats = {
        group: {e.format for e in files.values() if e.group == group and e.shard and e.format} for group in silent
    }
    expected = [(n, formats[group]) for group, n in silent.items() if formats[group]]
    assert sorted(held.silent_groups(chosen), key=str) == sorted(expected, key=str)


def test_files_are_found_by_their_keys(store: Store) -> None:
    _crowd(store)
    store.manifest.files["/in/1"] = replace(store.manifest.files["/in/1"], keys=["record:new"])
    del store.manifest.files["/in/3"]
    store.commit()
    held = Store(store.folder).manifest
    rows_there = held.files.items()
    asked = ["record:1", "record:new", "group:4", "root:/in/1", "none"]
    found = {key: sorted(uris) for key, uris in held.files_with_keys(asked).items()}
    assert found == {k: uris for k in asked if (uris := sorted(u for u, e in rows_there if k in e.keys))}
    by_prefix = {uri: sorted(keys) for uri, keys in held.keys_with_prefix("root:", "record:").items()}
    assert by_prefix == {
        u: keys for u, e in rows_there if (keys := sorted(k for k in e.keys if k.startswith(("root:", "record:"))))
    }
    assert held.parsers() == {(e.format, e.parser) for e in held.files.values()}
    assert sorted(held.no_traces()) == sorted(u for u, e in rows_there if not e.shard)
    assert held.local_specs().keys() == {e.spec for e in held.files.values() if e.source == "local"}
    bound = {s.shard for s in held.sessions.values() if s.context == "eval" and s.visible_output_tokens is not None}
    assert held.has_lower_bounds("eval", bound) is bool(bound) and not held.has_lower_bounds("eval", [])
    gone = {"/in/4", "/in/5", "/in/8"}
    groups = {held.files[u].group for u in gone}
    groups -= {e.group for u, e in rows_there if e.shard and u not in gone}
    assert index.sessions_only_in(held, gone) == {i for i, s in held.sessions.items() if s.group in groups}
    assert held.local_files() == {u for u, e in rows_there if e.shard and e.source == "local"}
    assert index.last_run(store.folder) == (held.mark, 0)
    store.manifest.history_of = "all"
    store.commit()
    assert index.last_run(store.folder) == (held.mark, store.manifest.generation)


# A store that is brought up to date again and again keeps few shards, and its tables


def content(store: Store) -> dict[str, list[str]]:
    return {name: sorted(map(str, rows(store, f"SELECT * FROM {name}")[1])) for name in tables.NAMES}


def grown(folder: Path, n: int) -> Store:
    """The store after one more session was written and read."""
    log = Log(f"{n:08d}-2222-4333-8444-555555555555", f"s{n}", f"/work/{n % 2}")
    log.user("Please fix it")
    log.say("Done.")
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / f"{n}.jsonl").write_bytes(log.data())
    pipeline.analyze([str(folder / "in")], folder / "store", jobs=1)
    return Store(folder / "store")


@pytest.mark.parametrize("few", [2, pytest.param(FEW, marks=pytest.mark.slow)])
def test_many_small_shards_become_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(shards, "FEW", few)
    counted = []
    for n in range(few * 2 + 1):
        store = grown(tmp_path, n)
        counted.append(len(store.manifest.shards))
    assert max(counted) == few
    assert counted[-1] < few + 1 < len(counted)
    assert len(store.manifest.sessions) == 2 * few + 1
    assert store.damage == [] and store.strays() == []
    pipeline.analyze([str(tmp_path / "in")], tmp_path / "fresh", jobs=1)
    assert content(store) == content(Store(tmp_path / "fresh"))


def test_shards_whose_values_were_made_otherwise_stay_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "FEW", 2)
    store = grown(tmp_path, 0)
    (first,) = store.manifest.shards.values()
    first.labels = "others"
    store.save()
    assert shards.compact(store) == 0
    monkeypatch.setattr(shards, "LARGE_BYTES", 1)
    first.labels = ""
    store.save()
    assert len(grown(tmp_path, 1).manifest.shards) == 2, "large ones are left"
    monkeypatch.setattr(shards, "LARGE_BYTES", 1 << 20)
    monkeypatch.setattr(shards, "LARGE_SESSIONS", 1)
    assert shards.compact(Store(tmp_path / "store", write=True)) == 0, "so are those of many sessions"
    monkeypatch.setattr(shards, "LARGE_SESSIONS", 2)
    assert shards.compact(Store(tmp_path / "store", write=True)) == 2


def test_a_damaged_shard_is_put_together_with_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grown(tmp_path, 0)
    store = grown(tmp_path, 1)
    monkeypatch.setattr(shards, "FEW", 2)
    (store.folder / "shards" / min(store.manifest.shards) / "turns.parquet").unlink()
    store.check_files()
    assert shards.compact(store) == 0
