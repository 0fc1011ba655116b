"""Codex, sessions that share their history: forks, subagents, snapshots (design/formats.md#codex)."""

from __future__ import annotations

from agentsignals.formats.codex import FORMAT
from agentsignals.model import MAIN
from tests.codex_rows import (
    ID,
    OLD_TURN,
    OTHER,
    OWN_TURN,
    context,
    event,
    given,
    meta,
    one,
    prompt,
    row,
    says,
    texts,
    tokens,
    usage,
)

# -- copies --------------------------------------------------------------------------------------------------------

PARENT = [
    meta(OTHER),
    event("task_started", turn_id=OLD_TURN),
    context(turn_id=OLD_TURN),
    prompt("draw a map"),
    says("drawn"),
    tokens((100, 0, 10, 0), (100, 0, 10, 0)),
]
OWN = [
    event("task_started", 30, turn_id=OWN_TURN),
    prompt("only pears", 31),
    says("pears"),
    tokens((180, 60, 25, 0), (80, 60, 15, 0)),
]
FORK = [meta(forked_from_id=OTHER), *PARENT, *OWN]


def test_copied_history_counts_for_the_parent_where_the_parent_is() -> None:
    files = [given("fork", FORK), given("parent", PARENT)]
    found = {s.session_id: s for s in FORMAT.read(files).sessions}
    assert [t.text for t in found[OTHER].turns] == ["draw a map"]
    assert [t.text for t in found[ID].turns] == ["only pears"]
    assert usage(found[ID]) == [(20, 60, 15, 0)]
    assert [s.model for s in found[ID].steps] == ["gpt-5.5"]
    assert found[ID].parent_session_id == OTHER
    assert files[0].artifact.record_kinds["repeated"] == len(PARENT)


def test_without_the_parent_one_fork_keeps_the_copy() -> None:
    sibling = [meta("019e0000-0000-7000-8000-000000000003", forked_from_id=OTHER), *PARENT[:4], *OWN]
    found = {s.session_id: s for s in FORMAT.read([given("s", sibling), given("f", FORK)]).sessions}
    assert [t.text for t in found[ID].turns] == ["draw a map", "only pears"]
    assert usage(found[ID]) == [(100, 0, 10, 0), (20, 60, 15, 0)]
    assert sorted(len(s.turns) for s in found.values()) == [1, 2]


def test_a_copy_is_known_by_the_header_in_it_too() -> None:
    files = [given("fork", [meta(), *PARENT, *OWN]), given("parent", PARENT)]
    for inputs, turns in ((files, ["only pears"]), (files[:1], ["draw a map", "only pears"])):
        found = {s.session_id: s for s in FORMAT.read(inputs).sessions}
        assert [t.text for t in found[ID].turns] == turns
        assert found[ID].parent_session_id == OTHER


def test_of_a_copy_of_a_copy_only_what_is_missing_is_kept() -> None:
    middle, middle_turn = "019d8000-0000-7000-8000-000000000004", "019d8000-1000-7000-8000-0000000000c1"
    added = [event("task_started", 20, turn_id=middle_turn), prompt("and the lakes", 21), says("drawn too")]
    fork = [meta(forked_from_id=middle), meta(middle, forked_from_id=OTHER), *PARENT, *added, *OWN]
    found = {s.session_id: s for s in FORMAT.read([given("fork", fork), given("root", PARENT)]).sessions}
    assert [t.text for t in found[OTHER].turns] == ["draw a map"]
    assert [t.text for t in found[ID].turns] == ["and the lakes", "only pears"]


def test_a_slice_of_a_forks_own_part_loses_nothing() -> None:
    files = [given("fork", FORK), given("parent", PARENT), given("slice", [prompt("more", 40), prompt("and more", 50)])]
    files[2].session_hint = ID
    found = {s.session_id: s for s in FORMAT.read(files).sessions}
    assert [t.text for t in found[ID].turns] == ["only pears", "more", "and more"]


def test_the_end_of_a_copy_without_turn_ids_is_a_pause() -> None:
    bare = [row(r["type"], 0, **{k: v for k, v in r["payload"].items() if k != "turn_id"}) for r in PARENT]
    own = [prompt("only pears", 30), says("pears")]
    found = FORMAT.read([given("fork", [meta(forked_from_id=OTHER), *bare, *own]), given("parent", bare)]).sessions
    assert [[t.text for t in s.turns] for s in found if s.session_id == ID] == [["only pears"]]


def test_a_fork_without_own_words_is_empty() -> None:
    found = FORMAT.read([given("fork", FORK[: -len(OWN)]), given("parent", PARENT)]).sessions
    assert [len(s.events) for s in found if s.session_id == ID] == [0]


def test_snapshots_of_a_session_are_united() -> None:
    rows = [meta(), prompt("a", 1), says("x"), prompt("b", 2), prompt("c", 3)]
    files = [given("slice", rows[3:]), given("early", rows[:3]), given("middle", rows[:4])]
    files[0].session_hint = ID
    (session,) = FORMAT.read(files).sessions
    assert [t.text for t in session.turns] == ["a", "b", "c"]
    assert texts(session, "text") == ["x"]
    assert [f.artifact.record_kinds.get("repeated", 0) for f in files] == [1, 3, 0]


def test_a_subagents_words_are_its_parents_and_its_work_is_a_session_of_its_own() -> None:
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": OTHER, "depth": 1}}}
    rows = [row("session_meta", id=ID, cwd="/w", source=spawned), context(), prompt("count"), says("two")]
    session = one(*rows)
    assert (session.turns, session.parent_session_id, session.model) == ([], OTHER, "gpt-5.5")
    assert {e.thread for e in session.events} == {s.thread for s in session.steps} == {MAIN}
    assert texts(session, "meta") == ["count"]
