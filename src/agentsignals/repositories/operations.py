"""Changes that sessions made to files, in order of time: read off the arguments of calls, which hold the full texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal

from msgspec import Struct

from agentsignals.changes.hunks import edit_texts, patched
from agentsignals.model import Edit, Session, ToolCall
from agentsignals.shell import parse

Kind = Literal["write", "append", "replace", "insert", "substitute", "delete", "rename", "shell"]
"""`substitute`: in every line (`sed s/a/b/`); `shell`: a command that writes the file in a way its words don't tell."""

_READS = frozenset(("read", "search"))
_LONGEST_COMMAND = 100_000
_QUIET_GIT = re.compile(
    r"\bgit\b(?:[ \t]+-\S+(?:[ \t]+[^\s-]\S*)?)*[ \t]+"
    r"(?:add|commit|mv|rm|status|diff|log|show|push|fetch|branch|rev-parse|blame)\b"
)
"""Commands of Git that leave the lines of files alone."""


class Operation(Struct, gc=False, kw_only=True):
    """One change that a call made to one file. `at` in microseconds; `path` as the session names it."""

    at: int
    session_id: str
    seq: int
    turn: int | None
    kind: Kind
    path: str
    new: str = ""
    """The text that came in."""
    old: str = ""
    """The text it took the place of: a piece of the file as it was before the call."""
    everywhere: bool = False
    to: str = ""
    """Where a renamed file went."""
    line: int = 0
    """Lines of the file before an inserted text."""
    via: str = "edit_tool"


_Made = Callable[..., Operation]
"""Makes an operation of a call, whose facts are known."""


class Activity(Struct, gc=False, kw_only=True):
    """When a session was busy and what it might have changed unseen."""

    session_id: str
    busy: list[tuple[int, int]]
    """From each human turn to the agent's last sign of life before the next, microseconds."""
    writers: list[int]
    """Times of calls that may change files without saying which lines: commands, subagents whose work isn't logged,
    tools of servers, edits whose outcome isn't logged."""
    commands: list[tuple[int, str]]
    """The commands among them."""
    started_at: int | None = None
    ended_at: int | None = None
    is_a_persons: bool = True
    """True where a person asked for something in the session; false for subagents' sessions."""


def operations(session: Session) -> list[Operation]:
    """The changes of a session that succeeded, in order; the subagents' too."""
    edits: dict[int, list[Edit]] = {}
    for edit in session.edits:
        edits.setdefault(edit.seq, []).append(edit)
    collected: list[Operation] = []
    clocks: dict[str, int] = {}  # of each thread: a subagent works while the call that started it is open
    for call in session.tool_calls:
        clock = clocks.get(call.thread, session.started_at or 0)
        clock = clocks[call.thread] = max(clock, call.ended_at or call.started_at or clock)
        if call_edits := edits.get(call.seq):
            made = partial(
                Operation,
                at=clock,
                session_id=session.session_id,
                seq=call.seq,
                turn=call.turn,
                via=call_edits[0].via,
            )
            of_call = _of_command if call_edits[0].via == "shell" else _of_tool
            collected += of_call(call, call_edits, made)
    return sorted(collected, key=lambda operation: operation.at)


def activity(session: Session) -> Activity:
    """When people could have typed, and when something unseen could have been written."""
    threads = {call.thread for call in session.tool_calls}
    edit_seqs = {edit.seq for edit in session.edits}
    writers, commands = [], []
    clocks: dict[str, int] = {}
    for call in session.tool_calls:
        clock = clocks.get(call.thread, session.started_at or 0)
        clock = clocks[call.thread] = max(clock, call.started_at or call.ended_at or clock)
        if call.status in ("rejected", "cancelled"):
            continue
        if call.command:
            if _may_write(call):
                writers.append(call.ended_at or clock)
                commands.append((call.ended_at or clock, call.command[:_LONGEST_COMMAND]))
        elif (
            call.class_ == "mcp"
            or (call.class_ == "task" and len(threads) == 1)
            or (call.class_ == "edit" and call.status == "none" and call.seq not in edit_seqs)
        ):
            writers.append(call.ended_at or clock)
    # A session that takes up a plan is as much the person's as the one the plan was made in.
    turns = session.turns
    is_a_persons = bool(turns) and (session.parent_session_id is None or turns[0].kind == "plan_handoff")
    spans: list[tuple[int, int]] = []
    asked = {turn.seq for turn in session.turns if turn.kind != "attachment"}
    for event in session.events:
        if event.timestamp is None:
            continue
        if event.seq in asked or not spans:
            spans.append((event.timestamp, event.timestamp))
        elif event.kind != "human_turn" and event.timestamp > spans[-1][1]:
            spans[-1] = (spans[-1][0], event.timestamp)
    return Activity(
        session_id=session.session_id,
        busy=spans,
        writers=writers,
        commands=commands,
        started_at=session.started_at,
        ended_at=session.ended_at,
        is_a_persons=is_a_persons,
    )


def _may_write(call: ToolCall) -> bool:
    if call.shell_kind in _READS or call.command is None:
        return False
    command = call.command[:_LONGEST_COMMAND]
    plain = _QUIET_GIT.sub("", command)
    return not (call.shell_kind == "vcs" and "git" not in plain) or ">" in plain


def _of_tool(call: ToolCall, edits: list[Edit], made: _Made) -> Iterator[Operation]:
    paths = list(dict.fromkeys(edit.path for edit in edits))
    for text in edit_texts(call.arguments, call.argument_roles):
        if text.kind == "patch":
            yield from _of_patch(text.new, paths, made)
        elif text.kind == "replace" and text.old:
            yield made(kind="replace", path=paths[0], old=text.old, new=text.new, everywhere=text.everywhere)
        elif text.kind in ("insert", "append"):
            yield made(kind=text.kind, path=paths[0], new=text.new, line=text.line)
        elif text.kind != "part":
            yield made(kind="write", path=paths[0], new=text.new)


def _of_patch(patch: str, paths: list[str], made: _Made) -> Iterator[Operation]:
    for file in patched(patch.removesuffix("\n"), diffs=True):
        path = _named(file.path, paths)
        if file.op == "delete":
            yield made(kind="delete", path=path)
            continue
        if file.moved_to:
            target = _named(file.moved_to, paths)
            yield made(kind="rename", path=path, to=target)
            path = target
        if file.op == "create":
            yield made(kind="write", path=path, new="\n".join(new for _, new in file.texts))
        else:
            for old, new in file.texts:
                yield made(kind="replace", path=path, old=old, new=new)


def _of_command(call: ToolCall, edits: list[Edit], made: _Made) -> Iterator[Operation]:
    """Read the texts a command writes from its words; where they do not tell, only the file is known."""
    paths = list(dict.fromkeys(edit.path for edit in edits))
    writes = [(_named(write.path, paths), write) for write in parse(call.command or "").writes]
    renamed = {_named(write.source, paths) for _, write in writes if write.op == "rename" and write.source}
    for path, write in writes:
        if path not in paths:
            continue
        if write.op == "delete":
            if path not in renamed:
                yield made(kind="delete", path=path)
        elif write.op == "rename" and write.source is not None:
            yield made(kind="rename", path=_named(write.source, paths), to=path)
        elif write.how in ("whole", "append"):
            yield made(kind="write" if write.how == "whole" else "append", path=path, new=write.new)
        elif write.how == "insert" and write.line is not None:
            yield made(kind="insert", path=path, new=write.new, line=write.line)
        elif write.how == "patch":
            yield from _of_patch(f"--- a/{path}\n+++ b/{path}\n{write.new}", [path], made)
        elif write.how in ("replace", "substitute") and write.line is None:
            yield made(kind=write.how, path=path, old=write.old, new=write.new, everywhere=write.everywhere)
        else:
            yield made(kind="shell", path=path)
    covered = {path for path, _ in writes}
    for path in paths:
        if path not in covered:
            gone = all(edit.op == "delete" for edit in edits if edit.path == path)
            yield made(kind="delete" if gone else "shell", path=path)


def _named(raw: str, paths: list[str]) -> str:
    """The path of the session's own record that a path written in a call means."""
    plain = raw.strip().replace("\\", "/").removeprefix("./")
    for path in paths:
        if plain == path or plain.endswith(f"/{path}") or path.endswith(f"/{plain}"):
            return path
    return plain
