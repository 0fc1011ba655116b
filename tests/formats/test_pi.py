"""Pi: which file is one, which entries are the conversation, what forks and snapshots count (design/formats.md#pi)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentsignals.formats import Input, identify
from agentsignals.formats.head import HEAD_BYTES, Head
from agentsignals.formats.pi import FORMAT
from agentsignals.model import ABANDONED, MAIN, REPLAYED, Artifact, from_iso
from tests.formats.pi_entries import ROW, at, chain, entry, given, header, main_texts, one, read, says, user

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"


# -- recognising ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "claimed"),
    [
        (header(), True),
        ({k: v for k, v in header().items() if k != "version"}, True),  # v1
        (header(harness="llama.app"), False),  # HF STS
        ({"type": "session", "id": "s1", "timestamp": at(0)}, False),
        ({**header(), "type": "session.start", "data": {}}, False),  # Copilot CLI
        ({**header(), "type": "session_start", "owner": "me"}, False),  # Factory Droid
    ],
)
def test_a_session_header_with_a_folder_and_no_harness_is_pis(first: ROW, claimed: bool) -> None:
    text = json.dumps(first) + "\n" + json.dumps(entry("e0", None, 1, **user("hi"))) + "\n"
    assert (FORMAT.claims(Head(text.encode(), "x.jsonl", True)) is not None) is claimed


def test_a_fork_shares_a_key_with_its_parent() -> None:
    fork = header(id="s2", parentSession="/h/.pi/agent/sessions/--w--/2026-05-01T10-00-00-000Z_s1.jsonl")
    keys = [FORMAT.claims(Head(json.dumps(h).encode(), "x", True)) for h in (header(), fork)]
    assert [k.keys if k else None for k in keys] == [["session:s1"], ["session:s2", "session:s1"]]


# -- the tree ------------------------------------------------------------------------------------------------------


def test_what_the_person_went_back_from_is_abandoned_and_in_no_main_figure() -> None:
    session = one(
        entry("a", None, 1, **user("first")),
        entry("b", "a", 2, **says("yes")),
        entry("c", "b", 3, **user("wrong way")),
        entry("d", "c", 4, **says("went wrong")),
        entry("e", "b", 5, **user("right way")),
        entry("f", "e", 6, **says("went right")),
    )
    assert [t.text for t in session.turns] == ["first", "right way"]
    assert [(s.thread, s.turn) for s in session.steps] == [(MAIN, 0), (ABANDONED, None), (MAIN, 1)]
    gone = [(e.kind, e.text, e.turn) for e in session.events if e.thread == ABANDONED]
    assert gone == [("meta", "wrong way", None), ("text", "went wrong", None)]


def test_a_lost_line_abandons_nothing() -> None:
    session = one(entry("a", None, 1, **user("first")), entry("c", "b-was-torn", 3, **says("answer")))
    assert [t.text for t in session.turns] == ["first"]
    assert {e.thread for e in session.events} == {MAIN}


def test_an_extensions_note_on_an_old_branch_does_not_abandon_the_conversation() -> None:
    session = one(
        entry("a", None, 1, **user("first")),
        entry("b", "a", 2, **says("answer")),
        entry("x", "a", 3, "custom", customType="todo-state", data={}),
    )
    assert {e.thread for e in session.events} == {MAIN}
    assert main_texts(session) == ["answer"]


def test_parents_that_point_in_a_circle_end() -> None:
    session = one(entry("a", "b", 1, **user("x")), entry("b", "a", 2, **says("y")))
    assert len(session.turns) == 1


# -- snapshots and forks -------------------------------------------------------------------------------------------


def test_snapshots_are_united_by_entry_id() -> None:
    rows = chain(
        (1, "message", user("one")), (2, "message", says("1")), (3, "message", user("two")), (4, "message", says("2"))
    )
    files = [given("late-slice", [header(), *rows[1:]]), given("early", [header(), *rows[:3]])]
    (session,) = FORMAT.read(files).sessions
    assert [t.text for t in session.turns] == ["one", "two"]
    assert main_texts(session) == ["1", "2"]
    assert [f.artifact.record_kinds.get("repeated", 0) for f in files] == [2, 0]


def test_of_files_without_ids_the_largest_counts_and_the_others_say_so() -> None:
    rows = [
        {k: v for k, v in r.items() if k not in ("id", "parentId")}
        for r in chain((1, "message", user("one")), (2, "message", user("two")))
    ]
    files = [given("part", [header(), rows[0]]), given("whole", [header(), *rows])]
    (session,) = FORMAT.read(files).sessions
    assert [t.text for t in session.turns] == ["one", "two"]
    assert session.artifact_id == "whole"
    assert files[0].artifact.note == "an earlier copy of whole, which counts"
    assert files[0].artifact.record_kinds == {"session": 1, "message.user": 1, "repeated": 1}


PARENT = "/h/.pi/agent/sessions/--w--/2026-05-01T10-00-00-000Z_s1.jsonl"
TOLD = chain((1, "message", user("one")), (2, "message", says("1")))


def fork_of(rows: list[ROW], *own: ROW, **more: object) -> list[ROW]:
    return [header(id="s2", timestamp=at(100), parentSession=PARENT, **more), *rows, *own]


OWN = entry("own", "e1", 101, **user("mine"))


@pytest.mark.parametrize("with_ids", [True, False], ids=["v3", "v1"])
def test_what_a_fork_copied_counts_in_its_parent(with_ids: bool) -> None:
    def version(rows: list[ROW]) -> list[ROW]:
        return (
            rows
            if with_ids
            else [{k: v for k, v in r.items() if k not in ("id", "parentId") or r["type"] == "session"} for r in rows]
        )

    parent, fork = read(version([header(), *TOLD]), version(fork_of(TOLD, OWN)))
    assert ([t.text for t in parent.turns], [t.text for t in fork.turns]) == (["one"], ["mine"])
    assert (len(parent.steps), len(fork.steps)) == (1, 0)
    assert fork.parent_session_id == "s1"


def test_without_the_parent_the_first_fork_keeps_the_conversation_but_not_its_start() -> None:
    other = [dict(row) for row in fork_of(TOLD, entry("other", "e1", 201, **user("theirs")))]
    other[0] = {**other[0], "id": "s3", "timestamp": at(200)}
    first, second = read(fork_of(TOLD, OWN), other)
    assert [t.text for t in first.turns] == ["one", "mine"]
    assert [t.text for t in second.turns] == ["theirs"]
    assert first.started_at == from_iso(at(100))
    assert first.ended_at == from_iso(at(101))


def test_a_new_v1_session_whose_header_comes_after_its_first_prompt_is_no_fork() -> None:
    (session,) = read([header(timestamp=at(30)), *TOLD])
    assert [t.text for t in session.turns] == ["one"]
    assert session.started_at == from_iso(at(1))


def test_a_subagents_session_has_no_turns_and_keeps_given_history_beside_its_figures() -> None:
    own = [
        entry("n", "e1", 101, "session_info", name="subagent-worker-1a2b-1"),
        entry("t", "n", 102, **user("Task: look at the parser")),
        entry("u", "t", 103, **says("done")),
        entry("v", "u", 104, **user("Tool budget soft limit reached")),
    ]
    (session,) = read(fork_of(TOLD, *own))
    assert session.turns == []
    assert [(s.thread, s.turn) for s in session.steps] == [(REPLAYED, None), (MAIN, None)]
    assert main_texts(session, "meta") == ["Task: look at the parser", "Tool budget soft limit reached"]


# -- real files ----------------------------------------------------------------------------------------------------

REAL = {
    # session id: turns, main steps, calls, results, edits by tools, input, cache read, cache write, output
    "019dd0db-d46c-7681-9092-159528614310": (1, 70, 87, 86, 0, 349151, 4956160, 0, 25887),
    "019f49c6-5766-7f6b-bea0-db67da2f314a": (2, 58, 183, 183, 29, 725179, 8550912, 0, 68144),
    "019fdd7a-c159-7d29-a385-de141607cb78": (14, 315, 314, 314, 126, 618, 79418139, 2725378, 224291),
    "019ffa5e-8407-7b3a-9cc2-1129887e0487": (0, 80, 126, 126, 40, 325970, 7145472, 0, 25574),
    "019ffa5e-8545-778c-b88d-abed31df0e6a": (0, 16, 35, 35, 0, 393347, 635392, 0, 10869),
    "019ffa8c-566d-776b-9088-be2c460909d9": (0, 21, 46, 46, 0, 178653, 1243648, 0, 17647),
    "019dc132-b9ea-736e-aa6f-e20ee7d84b11": (1, 4, 4, 4, 2, 9, 9566, 4529, 446),
    "ffae836b-9420-4060-ac13-7745215f90ff": (55, 484, 454, 448, 136, 3689, 54693675, 1685320, 187895),
    "d703a1a9-1b7b-4fb1-b512-c9738b1fe617": (88, 453, 391, 373, 131, 1049, 43229469, 4296232, 83156),
}


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real traces is not there")
def test_real_sessions_have_the_figures_counted_another_way() -> None:
    """Counted with plain json; tokens of five sessions also equal what the collector recorded beside them."""
    inputs = []
    for path in sorted([*CORPUS.glob("sessions/pi/*/*/transcript.jsonl"), *CORPUS.glob("pi-v1/*.jsonl")]):
        data = path.read_bytes()
        found = identify(Head(data[:HEAD_BYTES], path.name, False))
        assert found is not None and found[0] is FORMAT
        inputs.append(
            Input(
                data,
                Artifact(
                    artifact_id=str(path),
                    source="corpus",
                    path=str(path),
                    format="pi",
                    sha256=str(path),
                    bytes=len(data),
                ),
            )
        )
    got = {}
    for session in FORMAT.read(inputs).sessions:
        steps = [s for s in session.steps if s.thread == MAIN]
        tokens = [
            sum(getattr(s, f"{name}_tokens") or 0 for s in steps)
            for name in ("input", "cache_read", "cache_write", "output")
        ]
        answered = sum(call.result_seq is not None for call in session.tool_calls)
        edits = sum(edit.via == "edit_tool" for edit in session.edits)
        got[session.session_id] = (len(session.turns), len(steps), len(session.tool_calls), answered, edits, *tokens)
    assert got == REAL
    assert sum(given.artifact.records for given in inputs) == 3552
    assert all(given.artifact.skipped == 0 for given in inputs)
