"""An exported session comes back as it went: all rows of it, but for what the export prints that it loses."""

from __future__ import annotations

import copy
import json
import types
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from msgspec import Struct, structs

from agentsignals.export import Writer
from agentsignals.export.messages import conversation, main_messages, subagent_threads
from agentsignals.formats import formats, identify
from agentsignals.formats.records import Head
from agentsignals.ingest.attempts import attach_attempts
from agentsignals.model import (
    MAIN,
    Artifact,
    Attempt,
    CallStatus,
    Checkpoint,
    Edit,
    Event,
    Label,
    Session,
    Step,
    ToolCall,
)
from agentsignals.redaction import Redactor
from agentsignals.store import Store
from agentsignals.views.usage import is_lower_bound
from tests.build import call, event, say, user
from tests.build import session as build
from tests.export.test_writers import PEOPLE, READ_BACK, read_again, sessions_of, writer_of
from tests.formats.reading import given
from tests.quick import each_row

TABLES = ("turns", "steps", "events", "tool_calls", "edits", "checkpoints", "labels")
ENDS: tuple[CallStatus, ...] = ("ok", "error", "rejected", "cancelled", "none")


def place_unknown(session: Session) -> None:
    session.format = session.artifact_id = ""
    for one in session.events:
        one.artifact_id, one.line = "", 0


def words_are_one(session: Session) -> None:
    """Words of one move stand where its first ones stood."""
    written = [move for thread in [MAIN, *subagent_threads(session)] for move in conversation(session, thread)]
    firsts = {first.seq: (move, first) for move in written for first in move.first.values()}
    for one in session.events:
        if one.seq in firsts and one.text:
            move, first = firsts[one.seq]
            one.text, one.n_chars = (move.text if one.kind != "thinking" else move.thought), first.n_chars
    left_out = {e.seq for e in session.events if e.kind in ("text", "thinking") and e.text and e.seq not in firsts}
    renumber(session, lambda row: not (isinstance(row, Event) and row.seq in left_out))


def arguments_respelt(session: Session) -> None:
    for one in session.tool_calls:
        one.arguments = respelt(one.arguments)


def respelt(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments))
    except (ValueError, RecursionError):
        return arguments


def one_thread(session: Session) -> None:
    renumber(session, lambda row: getattr(row, "thread", MAIN) == MAIN)


def unjudged(session: Session) -> None:
    session.attempt = None


def renumber(session: Session, is_kept: Callable[[Struct], bool]) -> None:
    """Leaves rows out; the others keep their order."""
    session.events, session.steps = list(filter(is_kept, session.events)), list(filter(is_kept, session.steps))
    session.tool_calls = list(filter(is_kept, session.tool_calls))
    session.edits = list(filter(is_kept, session.edits))
    seqs = sorted(e.seq for e in session.events)
    at = {seq: n for n, seq in enumerate(seqs)}
    number: dict[int | None, int] = {s.step: n for n, s in enumerate(session.steps)}
    for turn in session.turns:
        turn.seq = at[turn.seq]
    for step in session.steps:
        step.step, step.input_in_step = number[step.step], number.get(step.input_in_step)
        step.seq = sum(seq < step.seq for seq in seqs)
    for one in (*session.events, *session.tool_calls, *session.edits):
        one.seq = at[one.seq]
        if not isinstance(one, Edit):
            one.step = number.get(one.step)
        if isinstance(one, ToolCall) and one.result_seq is not None:
            one.result_seq = at[one.result_seq]
    session.labels = [label for label in session.labels if label.seq is None or label.seq in at]
    for label in session.labels:
        label.seq = None if label.seq is None else at[label.seq]


def nothing_of_a_session(session: Session) -> None:
    """Of what a session does not hold."""


LOST: dict[str, Callable[[Session], None]] = {
    "which file, line and format": place_unknown,
    "words of one model call": words_are_one,
    "the spelling of arguments": arguments_respelt,
    "all rows of other threads": one_thread,
    "harness and verifier": unjudged,
    "labels that were made here": nothing_of_a_session,
    "to other programs": nothing_of_a_session,
    "of a long tool result": nothing_of_a_session,
}
"""What each loss does to a session, by what it is called where it is printed."""


def without_lost(session: Session, writer: Writer) -> Session:
    left = copy.deepcopy(session)
    for loss in writer.loses:
        next(do for name, do in LOST.items() if name in loss)(left)
    return left


def differences(before: Session, after: Session) -> Iterator[str]:
    for name in Session.__struct_fields__:
        if name not in TABLES and getattr(before, name) != getattr(after, name):
            yield f"sessions.{name}: {getattr(before, name)!r} -> {getattr(after, name)!r}"
    for table in TABLES:
        old, new = getattr(before, table), getattr(after, table)
        if len(old) != len(new):
            yield f"{table}: {len(old)} -> {len(new)} rows"
            continue
        for n, (one, other) in enumerate(zip(old, new, strict=True)):
            for name in one.__struct_fields__:
                if getattr(one, name) != getattr(other, name):
                    yield f"{table}[{n}].{name}: {getattr(one, name)!r} -> {getattr(other, name)!r}"


def returned(session: Session, writer: Writer) -> Session:
    return read_again(writer.text(session), f"x{writer.suffix}")


@pytest.mark.parametrize("sample", PEOPLE)
def test_all_comes_back_but_what_is_named(sample: Path) -> None:
    for session, name in product(sessions_of(sample), READ_BACK):
        writer = writer_of(name)
        before, after = without_lost(session, writer), without_lost(returned(session, writer), writer)
        assert list(differences(before, after)) == [], name
        assert is_lower_bound(before) == is_lower_bound(after), name


@pytest.mark.parametrize("name", READ_BACK)
def test_every_column_there_is_comes_back(name: str) -> None:
    """Each has a value that nothing else would give it, so that none is added and forgotten."""
    writer, session = writer_of(name), filled()
    assert list(differences(without_lost(session, writer), without_lost(returned(session, writer), writer))) == []


@pytest.mark.parametrize("name", READ_BACK)
def test_nothing_is_named_as_lost_that_always_comes_back(name: str) -> None:
    writer = writer_of(name)
    for loss in writer.loses:
        does = next(do for words, do in LOST.items() if words in loss)
        kept = structs.replace(writer, loses=tuple(one for one in writer.loses if one != loss))
        assert does is nothing_of_a_session or any(
            list(differences(without_lost(s, kept), without_lost(returned(s, kept), kept))) for s in lossy(loss)
        ), loss


def lossy(loss: str) -> Iterator[Session]:
    if "harness and verifier" in loss:
        yield build(user("go"), say("done"), context="eval", attempt=Attempt(root="r", reward=1.0))
    yield build(
        user("go"),
        say("one", "m1"),
        call("Bash", thread="sub", result="x"),
        say("two", "m1"),
        lambda b, at: void(b.call("odd", "Bash", '{ "command" : "ls" }', None, at)),
    )


def void(_: object) -> None:
    """Parts return nothing."""


@cache
def filled() -> Session:
    """A session in whose rows every column has a value of its own."""
    session = build(user("go"), say("I begin."), call("Bash", command="ls"), call("Edit", path="a", result="done"))
    session.labels = [Label(task="t", labeller="l", turn=0, value="v", seq=1)]
    session.checkpoints = [Checkpoint(checkpoint_id="c")]
    session.edits = session.edits or [
        Edit(seq=session.tool_calls[1].seq, turn=0, thread=MAIN, call_id="c1", path="a", op="modify", via="edit_tool")
    ]
    for one in (session.tool_calls[0], session.events[session.tool_calls[0].seq]):
        one.step = 0
    kept = frozenset(("seq", "result_seq", "turn", "step", "thread", "text", "n_tokens", "call_id", "message_id"))
    n = 1
    for row in (session, *(row for table in TABLES for row in getattr(session, table))):
        hints = get_type_hints(type(row))
        for name in row.__struct_fields__:
            if name in kept or name == "session_id" or (isinstance(row, Event) and name in ("kind", "timestamp")):
                continue
            n += 1
            value = a_value(name, hints[name], n)
            if value is not None:
                setattr(row, name, value)
    session.turns[0].timestamp = session.events[0].timestamp
    for step in session.steps:
        step.input_in_step = 0
    for one in session.tool_calls:
        one.argument_roles = '{"manner":["slowly"]}'
        one.arguments, session.events[one.seq].text = '{"a":1}', None
    for one in session.edits:
        one.turn, one.call_id = session.tool_calls[1].turn, session.tool_calls[1].call_id
        one.via = "shell"
    return session


def a_value(name: str, hint: Any, n: int) -> Any:
    """A value that the column may have; None where another table holds what it is made of."""
    kinds = [kind for kind in get_args(hint) if kind is not types.NoneType] if type(None) in get_args(hint) else [hint]
    kind = kinds[0]
    if get_origin(kind) is Literal:
        return get_args(kind)[-1]
    if kind in (int, float, str, bool):
        at = name in ("timestamp", "created_at", "not_before") or name.endswith("_at")
        return {int: 1_767_225_600_000_000 + n if at else n, float: n / 8, str: f"{name} {n}", bool: True}[kind]
    return [a_value(name, get_args(kind)[0], n)] if get_origin(kind) is list and name not in TABLES else None


def every_kind() -> Session:
    """Of each kind of call's end one, a write kept for an hour, a listed price, and an answer without words."""
    usage = {"cache_write_tokens": 100_000, "cache_write_1h_tokens": 100_000, "cost_usd": 0.6, "cost_source": "list"}
    session = build(user("go"), say("I begin.", **usage), *(call("Bash", command=f"run {n}") for n in range(5)))
    for one, status in zip(session.tool_calls, ENDS, strict=True):
        one.status, one.error_class = status, "timeout" if status == "error" else None
        one.exit_code = 124 if status == "error" else None
        one.step = session.events[one.seq].step = 0
    session.cwd, session.branch, session.parent_session_id, session.title = "/w", "main", "before", "A title"
    wordless = Step(
        step=len(session.steps),
        turn=0,
        thread=MAIN,
        seq=len(session.events),
        message_id="closing",
        model="m",
        timestamp=None,
        output_tokens=9,
    )
    session.steps.append(wordless)
    return session


@each_row("name", READ_BACK)
@each_row(
    "session",
    [
        every_kind(),
        build(user("go"), event("interrupt", "[Request interrupted by user]"), user("go on"), event("compaction")),
        build(event("harness", "before anybody said a word")),
        build(user("go"), say("no <function=rm><parameter=x>1</parameter></function>"), say('{"commands": [{}]}')),
        build(user("go"), say("a", "m1"), event("hook_block", "stop"), say("b", "m1")),
        *(
            build(user("go"), lambda b, at, a=a: void(b.call("c", "Odd", a, None, at)))
            for a in (
                "",
                "[1, 2]",
                '"text"',
                "null",
                "no JSON {",
                '{"n": NaN}',
                '{"n": 1e999}',
                '{"input": "x"}',
                "[" * 20_000,
                f'{{"a":{"[" * 960}{"]" * 960}}}',
            )
        ),
    ],
)
def test_what_others_would_read_otherwise_comes_back(session: Session, name: str) -> None:
    writer = writer_of(name)
    assert list(differences(without_lost(session, writer), without_lost(returned(session, writer), writer))) == []


@pytest.mark.parametrize("name", READ_BACK)
def test_what_is_masked_takes_no_place_from_the_rest(name: str) -> None:
    writer = writer_of(name)
    session = build(user("my key is AKIAQ3EGRZ6DMNF2KXW7"), event("meta", "note"), call("Bash", command="ls"))
    text = Redactor(b"k" * 32).lines(writer.text(session))
    assert "AKIAQ3EGRZ6DMNF2KXW7" not in text
    assert [e.kind for e in read_again(text, f"x{writer.suffix}").events] == [e.kind for e in session.events]


@pytest.mark.parametrize("name", ["atif", "opentraces", "sts"])
def test_a_message_taken_out_costs_the_others_nothing(name: str) -> None:
    """Places that are not those of what is there are passed over; what stands with each row is not."""
    writer = writer_of(name)
    session = build(user("go"), event("meta", "note"), call("Bash", command="x", status="rejected"), say("bye"))
    if name == "sts":
        rows = writer.text(session).splitlines()
        again = read_again("\n".join([*rows[:2], *rows[3:]]), f"x{writer.suffix}")
    else:
        document = json.loads(writer.text(session))
        del document["steps"][1 if name == "atif" else -1]
        again = read_again(json.dumps(document), f"x{writer.suffix}")
    assert [(c.name, c.status) for c in again.tool_calls] == [("Bash", "rejected")]
    assert again.context == "product"


def test_trajectories_exported_into_one_folder_are_no_trial() -> None:
    """Others' files of one folder are of one run; ours are a session each, people's and of eval runs side by side."""
    writer = writer_of("atif")
    sessions = [build(user("go"), say("x"), session_id=c, context=c) for c in ("product", "eval")]
    files = {f"out/{s.session_id}{writer.suffix}": writer.text(s).encode() for s in sessions}
    claims = [identify(Head(data, path, is_whole)) for path, data in files.items() for is_whole in (True, False)]
    assert [claim and claim[1].root for claim in claims] == [None] * 4
    readings = [formats()["atif"].read([given(data, "atif", path)]) for path, data in files.items()]
    parts = [part for reading in readings for part in reading.attempts]
    again = attach_attempts([s for r in readings for s in r.sessions], parts, {})
    assert sorted((s.session_id, s.context, s.attempt is not None) for s in again) == [
        ("eval", "eval", True),
        ("product", "product", False),
    ]


def test_what_no_part_speaks_of_is_beside_the_trial() -> None:
    """It lies in the trial's folder, and the only part there is of another session."""
    files = {n: Artifact(artifact_id=n, source="s", path=f"t/{n}", format="", sha256="", bytes=1) for n in "ab"}
    sessions = [build(user("go"), session_id=n, artifact_id=n) for n in files]
    part = Attempt(root="t", session_artifact="b", session_id="b")
    again = {s.session_id: s for s in attach_attempts(sessions, [part], files)}
    assert again["a"].attempt is None
    assert (again["b"].attempt and again["b"].attempt.is_last) is True


ODD: list[Any] = [
    7, "x", [], {"context": "nowhere"}, {"conventions": 3, "cwd": "/w"}, None,
    {"status": "ok", "argument_roles": "no roles"}, {"status": "ok", "result_tokens": 10**30},
    {"places": {"events": [["human_turn", 9, 9, 9, 1, 1]], "steps": []}},
    {"kind": "tool_call"}, {"kind": "human_turn"},
]  # fmt: skip


@each_row("odd", ODD)
@each_row("name", ["atif", "opentraces", "sts"])
def test_what_is_carried_amiss_costs_nothing_else(name: str, odd: object) -> None:
    """The room for producers is anybody's: what stands there otherwise than we write it says nothing."""
    writer = writer_of(name)
    text = writer.text(build(user("go"), call("Bash", command="ls")))
    if name == "sts":
        amiss = [{**json.loads(line), "agentsignals": odd} for line in text.splitlines()]
        for line in amiss[1:]:
            line["message"]["agentsignals"] = odd
            for one in line["message"].get("toolCalls", ()):
                one["agentsignals"] = odd
        again = read_again("".join(f"{json.dumps(line)}\n" for line in amiss), f"x{writer.suffix}")
        assert ([t.text for t in again.turns], [c.name for c in again.tool_calls]) == (["go"], ["Bash"])
        return
    document = json.loads(text)
    if name == "atif":
        document["extra"] = {"agentsignals": odd}
        for step in document["steps"]:
            step["extra"] = {"agentsignals": odd}
            for one in step.get("tool_calls", ()):
                one["extra"] = {"agentsignals": odd}
    else:
        rows = {f"{n}{of}": odd for n in range(3) for of in ("", ":c0")}
        document["metadata"] = {"agentsignals": odd}
        assert [t.text for t in read_again(json.dumps(document), "x.jsonl").turns] == ["go"]
        document["metadata"] = {"agentsignals": dict.fromkeys(("turns", "steps", "calls", "events"), rows)}
    again = read_again(json.dumps(document), f"x{writer.suffix}")
    assert [t.text for t in again.turns] == ["go"]
    assert [c.name for c in again.tool_calls] == ["Bash"]
    assert all(c.result_tokens is None or c.result_tokens < 2**40 for c in again.tool_calls)


@pytest.mark.parametrize("name", READ_BACK)
@pytest.mark.parametrize(
    "spoilt",
    [
        lambda p: p["events"].reverse(),
        lambda p: p["events"][0].__setitem__(1, p["events"][1][1]),
        lambda p: p["events"][0].__setitem__(2, 99),
        lambda p: p["events"][2].__setitem__(3, 99),
        lambda p: p["events"].pop(),
        lambda p: p["steps"].append([0, 0, 0, 0]),
        lambda p: p.update(blanks=[["tool_call", 99, None, None, None, 0, "main"]]),
        lambda p: p.update(edits=[[99, "x", "modify", "shell", 0, None, None, None, None, None, False]]),
        lambda p: p.update(labels=[{"task": "t", "labeller": "l", "turn": 99, "value": "v"}]),
    ],
)
def test_places_that_can_not_be_are_not_taken(name: str, spoilt: Callable[[Any], Any]) -> None:
    session = build(user("go"), say("I begin."), call("Edit", path="a", old_string="x", new_string="y"), user("on"))
    writer = writer_of(name)
    text = writer.text(session)
    rows = [json.loads(line) for line in text.splitlines()] if name == "sts" else [json.loads(text)]
    last = rows[-1]
    holder = last["message"] if name == "sts" else last["extra"] if name == "atif" else last["metadata"]
    spoilt((holder["agentsignals"] if name != "opentraces" else holder["agentsignals"]["session"])["places"])
    again = read_again("\n".join(json.dumps(row) for row in rows), f"x{writer.suffix}")
    assert [e.kind for e in again.events] == [e.kind for e in session.events]
    assert [t.seq for t in again.turns] == [t.seq for t in session.turns]
    assert {t for e in again.events if (t := e.turn) is not None} <= {0, 1}
    assert {s for e in again.events if (s := e.step) is not None} <= {s.step for s in again.steps}
    assert again.labels == []
    assert {e.seq for e in again.edits} <= {c.seq for c in again.tool_calls}


def test_those_that_say_nothing_come_back() -> None:
    """Thinking that only its provider can read has no words, and is counted."""
    session = build(user("go"), say("x", "m"), lambda b, at: void(b.event("thinking", "", at, b.session.steps[0])))
    for name in READ_BACK:
        assert [e.kind for e in returned(session, writer_of(name)).events] == ["human_turn", "text", "thinking"]
    assert len(main_messages(session)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", READ_BACK)
def test_real_sessions_come_back(corpus_folder: Path, name: str) -> None:
    store, writer = Store(corpus_folder / "store"), writer_of(name)
    compared = 0
    for session in store.read(set(sorted(store.manifest.sessions)[::5])):
        before, after = without_lost(session, writer), without_lost(returned(session, writer), writer)
        assert list(differences(before, after)) == [], session.session_id
        compared += 1
    assert compared >= 40
