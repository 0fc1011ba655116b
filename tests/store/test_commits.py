"""A shard is taken into the index at the cost of what it holds, and whoever opens the store meanwhile sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentsignals.store import Store, disk, index
from agentsignals.store.index import ArtifactEntry, SessionEntry, ShardEntry
from tests.build import session, user, write_shard


def session_entry(shard: str, family: str) -> SessionEntry:
    figures: dict[str, Any] = dict.fromkeys(index.FIGURES)
    return SessionEntry(shard=shard, group=family, context="product", **figures)


def file_entry(shard: str, family: str) -> ArtifactEntry:
    facts: dict[str, Any] = {"container": "", "key": "", "session_hint": None, "repo_hint": None}
    facts |= {"source": "local", "spec": "/in", "bytes": 9, "stamp": 9, "format": "pi", "parser": 1}
    return ArtifactEntry(group=family, keys=[family], shard=shard, **facts)


def taken_in(store: Store, name: str, ids: list[str]) -> None:
    """A shard of these sessions, each of a file of its own, as a run takes it in."""
    made = []
    for session_id in ids:
        one = session(user("hello"))
        one.session_id = session_id
        made.append(one)
    parts = write_shard(store.folder, made, name=name)
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
    return Store(tmp_path / "s", create=True)


def test_who_opens_the_store_between_sees_every_commit(store: Store) -> None:
    taken_in(store, "000001-a", ["s1", "s2", "s3"])
    assert state(Store(store.folder)) == state(store)
    taken_in(store, "000002-b", ["s2"])
    seen = Store(store.folder)
    assert state(seen) == state(store)
    sessions, files_of, shards = state(seen)
    assert sessions["s2"] == files_of["/in/s2"] == "000002-b"
    assert sessions["s1"] == sessions["s3"] == files_of["/in/s1"] in shards - {"000001-a", "000002-b"}
    assert seen.damage == [] and len(shards) == 2
    store.save()
    assert state(Store(store.folder)) == state(store)
    assert [p.name for p in store.folder.glob("manifest*")] == [index.INDEX_FILE], "one file again"


def test_a_commit_costs_what_it_holds(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    replace = disk.write_atomically

    def replacing(target: Path, data: bytes) -> None:
        written.append(len(data))
        replace(target, data)

    taken_in(store, "000001-a", [f"s{n}" for n in range(3)])
    monkeypatch.setattr(disk, "write_atomically", replacing)
    taken_in(store, "000002-b", ["few"])
    store.manifest.sessions |= {f"m{n}": session_entry("000001-a", f"family:m{n}") for n in range(500)}
    store.save()
    taken_in(store, "000003-c", ["far"])
    among_few, whole, among_many = written
    assert abs(among_few - among_many) < 50 < whole


def test_a_session_that_comes_back_is_one(store: Store) -> None:
    taken_in(store, "000001-a", ["s1"])
    taken_in(store, "000002-b", ["s1"])
    taken_in(store, "000003-c", ["s1"])
    assert state(Store(store.folder)) == state(store) == ({"s1": "000003-c"}, {"/in/s1": "000003-c"}, {"000003-c"})


def test_commits_to_an_index_that_is_no_more_count_for_nothing(store: Store) -> None:
    taken_in(store, "000001-a", ["s1"])
    (left,) = store.folder.glob("manifest.*.*.json")
    data = left.read_bytes()
    store.save()
    left.write_bytes(data.replace(b"s1", b"s9"))  # a run was ended before it could remove it
    assert set(Store(store.folder).manifest.sessions) == {"s1"}
    Store(store.folder, write=True).save()
    assert not left.exists()


def test_who_reads_while_the_index_is_written_whole_has_the_state_before(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken_in(store, "000001-a", ["s1"])
    taken_in(store, "000002-b", ["s2"])
    read = Path.read_bytes

    def reading(path: Path) -> bytes:
        if path.name.endswith(".2.json"):
            store.save()
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", reading)
    assert set(Store(store.folder).manifest.sessions) == {"s1"}
    assert set(Store(store.folder).manifest.sessions) == {"s1", "s2"}


@pytest.mark.parametrize("harm", [b"", b"{", b"[]", None])
def test_a_commit_that_was_garbled_has_the_index_made_again(store: Store, harm: bytes | None) -> None:
    taken_in(store, "000001-a", ["s1"])
    taken_in(store, "000002-b", ["s2"])
    first = min(store.folder.glob("manifest.*.*.json"))
    if harm is not None:
        first.write_bytes(harm)
    else:
        first.unlink()
        first.mkdir()
    again = Store(store.folder)
    assert "garbled" in again.warnings[0] or "empty" in again.warnings[0]
    assert set(again.manifest.sessions) == {"s1", "s2"}
    assert set(Store(store.folder, write=True).manifest.sessions) == {"s1", "s2"}
    assert Store(store.folder).warnings == []
