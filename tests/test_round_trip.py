"""What an export can't carry is in the list that it prints, column by column; the rest is read back as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import pytest

from agentsignals.export import Writer
from agentsignals.export.moves import moves
from agentsignals.model import MAIN, CallStatus, Session, Step, ToolCall, Turn
from tests.build import call, event, say, user
from tests.build import session as build
from tests.test_export import READ_BACK, SESSIONS, read_again, writer_of

_COLUMN = re.compile(r"(?:sessions|turns|steps|tool_calls|\*)\.[a-z0-9_]+")
_ROWS = frozenset(("turns", "steps", "events", "tool_calls", "edits", "checkpoints", "labels", "attempt"))
ENDS: tuple[CallStatus, ...] = ("ok", "error", "rejected", "cancelled", "none")
_ONE_THREAD = "all rows of other threads"
_NO_CALL = "that no recorded call of the model said something: it becomes one"


def column(name: str) -> str:
    return name.removesuffix("_")


def changed(before: Any, after: Any, table: str) -> set[str]:
    names = [n for n in before.__struct_fields__ if n not in _ROWS]
    return {f"{table}.{column(n)}" for n in names if getattr(before, n) != getattr(after, n)}


def rows(session: Session, table: str, thread: str) -> list[Turn | Step | ToolCall]:
    return [row for row in getattr(session, table) if getattr(row, "thread", MAIN) == thread]


def losses(session: Session, writer: Writer) -> Iterator[str]:
    """Each column that came back otherwise than it went, and each kind of rows that did not come back."""
    again = read_again(writer.text(session), f"x{writer.suffix}")
    yield from changed(session, again, "sessions")
    wordy = any(m.role == "agent" and m.step is None for m in moves(session))
    for thread in dict.fromkeys([MAIN, *(r.thread for r in (*session.steps, *session.tool_calls))]):
        if thread != MAIN and not rows(again, "steps", thread) and not rows(again, "tool_calls", thread):
            yield _ONE_THREAD
            continue
        for table in ("turns", "steps", "tool_calls"):
            before, after = rows(session, table, thread), rows(again, table, thread)
            if len(before) != len(after):
                assert (table, wordy) == ("steps", True), f"{len(before)} rows of {table} became {len(after)}"
                yield _NO_CALL
                continue
            for one, other in zip(before, after, strict=True):
                yield from changed(one, other, table)


def named(writer: Writer) -> set[str]:
    return {name for loss in writer.loses for name in _COLUMN.findall(loss)}


def is_named(loss: str, writer: Writer) -> bool:
    return any(fnmatchcase(loss, name) for name in named(writer)) or any(loss in text for text in writer.loses)


@pytest.mark.parametrize("name", READ_BACK)
@pytest.mark.parametrize("session", SESSIONS)
def test_every_column_survives_or_is_named_as_lost(session: Session, name: str) -> None:
    if not moves(session):
        pytest.skip("nothing said")
    writer = writer_of(name)
    assert [loss for loss in dict.fromkeys(losses(session, writer)) if not is_named(loss, writer)] == []


@pytest.mark.parametrize("name", READ_BACK)
def test_nothing_is_named_as_lost_that_always_comes_back(name: str) -> None:
    writer = writer_of(name)
    sessions = [every_kind(), *(p.values[0] for p in SESSIONS)]
    seen = {loss for session in sessions if moves(session) for loss in losses(session, writer)}
    assert [column for column in sorted(named(writer)) if not any(fnmatchcase(loss, column) for loss in seen)] == []


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


@pytest.mark.parametrize("name", READ_BACK)
def test_money_context_and_endings_come_back(name: str) -> None:
    session = every_kind()
    writer = writer_of(name)
    again = read_again(writer.text(session), f"x{writer.suffix}")
    assert (again.context, again.cwd, again.branch) == ("product", "/w", "main")
    assert (again.parent_session_id, again.title) == ("before", "A title")
    ends = [(c.status, c.error_class, c.exit_code) for c in again.tool_calls]
    assert ends == [(c.status, c.error_class, c.exit_code) for c in session.tool_calls]
    assert (again.steps[0].cache_write_1h_tokens, again.steps[0].cost_source) == (100_000, "list")
    assert again.steps[0].cache_read_tokens is None, "not recorded is not 0"
    assert (again.steps[-1].message_id, again.steps[-1].output_tokens) == ("closing", 9)


@pytest.mark.parametrize("odd", [7, "x", [], {"context": "nowhere"}, {"conventions": 3, "cwd": "/w"}, None])
@pytest.mark.parametrize("name", ["atif", "opentraces", "sts"])
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
                one["extra"] = odd
    else:
        document["metadata"] = {"agentsignals": odd}
    again = read_again(json.dumps(document), f"x{writer.suffix}")
    assert [t.text for t in again.turns] == ["go"]
    assert [c.name for c in again.tool_calls] == ["Bash"]


@pytest.mark.parametrize("name", READ_BACK)
def test_interruptions_are_named_as_lost(name: str) -> None:
    session = build(user("go"), event("interrupt", "[Request interrupted by user]"), user("go on"))
    writer = writer_of(name)
    assert not any(e.kind == "interrupt" for e in read_again(writer.text(session), f"x{writer.suffix}").events)
    assert any("interruptions" in loss for loss in writer.loses)
