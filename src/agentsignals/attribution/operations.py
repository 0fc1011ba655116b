"""What sessions did to files, in order of time, read off the arguments of their calls: the full texts are there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec
from msgspec import Struct

from agentsignals.attribution.commands import heredocs, substitutions, without_quiet_git
from agentsignals.attribution.patches import patched
from agentsignals.model import Edit, Session, ToolCall

Kind = Literal["write", "append", "replace", "insert", "substitute", "delete", "rename", "shell"]
"""`substitute`: in every line (`sed s/a/b/`); `shell`: a command that writes the file in a way its words don't tell."""

_PAIRS = (("old_string", "new_string"), ("oldText", "newText"), ("old_str", "new_str"), ("oldString", "newString"))
_CONTENTS = ("content", "contents", "file_text")
_PATCHES = ("patch", "patchText", "input", "diff")
_PATHS = ("file_path", "filePath", "path", "notebook_path", "target_file")
_READS = frozenset(("read", "search"))
_LONGEST_COMMAND = 100_000


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
    """Whether a person asked for something in it: subagents' sessions are nobody's coming back."""


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
        call_edits = edits.get(call.seq)
        if call_edits:
            collected += _of_call(session.session_id, call, call_edits, clock)
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
    is_a_persons = session.parent_session_id is None and bool(session.turns)
    return Activity(
        session_id=session.session_id,
        busy=_busy(session),
        writers=writers,
        commands=commands,
        started_at=session.started_at,
        ended_at=session.ended_at,
        is_a_persons=is_a_persons,
    )


def _busy(session: Session) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    asked = {turn.seq for turn in session.turns if turn.kind != "attachment"}
    for event in session.events:
        if event.timestamp is None:
            continue
        if event.seq in asked or not spans:
            spans.append((event.timestamp, event.timestamp))
        elif event.kind != "human_turn" and event.timestamp > spans[-1][1]:
            spans[-1] = (spans[-1][0], event.timestamp)
    return spans


def _may_write(call: ToolCall) -> bool:
    if call.shell_kind in _READS or call.command is None:
        return False
    command = call.command[:_LONGEST_COMMAND]
    plain = without_quiet_git(command)
    return not (call.shell_kind == "vcs" and "git" not in plain) or ">" in plain


def _of_call(session_id: str, call: ToolCall, edits: list[Edit], at: int) -> Iterator[Operation]:
    def made(kind: Kind, path: str, **details: Any) -> Operation:
        return Operation(
            at=at,
            session_id=session_id,
            seq=call.seq,
            turn=call.turn,
            kind=kind,
            path=path,
            via=edits[0].via,
            **details,
        )

    paths = list(dict.fromkeys(edit.path for edit in edits))
    if edits[0].via == "shell":
        yield from _of_command(call.command or "", edits, made)
        return
    arguments = _decoded(call.arguments)
    text = _patch(arguments) or (call.command if call.command and "*** Begin Patch" in call.command else None)
    if text is not None:
        for file in patched(text):
            path = _named(file.path, paths)
            if file.op == "delete":
                yield made("delete", path)
                continue
            if file.moved_to:
                target = _named(file.moved_to, paths)
                yield made("rename", path, to=target)
                path = target
            if file.op == "create":
                yield made("write", path, new="\n".join(new for _, new in file.places))
            else:
                for old, new in file.places:
                    yield made("replace", path, old=old, new=new)
        return
    if isinstance(arguments, dict):
        yield from _of_arguments(arguments, paths[0], made)


def _of_arguments(arguments: dict[str, Any], path: str, made: Any) -> Iterator[Operation]:
    edits = arguments.get("edits")
    if isinstance(edits, list) and edits:
        for edit in edits:
            if isinstance(edit, dict):
                yield from _of_arguments({k: v for k, v in edit.items() if k != "edits"}, path, made)
        return
    everywhere = (
        arguments.get("replace_all") is True
        or arguments.get("replaceAll") is True
        or arguments.get("allow_multiple") is True
    )
    for before, after in _PAIRS:
        old, new = arguments.get(before), arguments.get(after)
        if isinstance(old, str) and isinstance(new, str) and old:
            yield made("replace", path, old=old, new=new, everywhere=everywhere)
            return
        if isinstance(new, str) and isinstance(at := arguments.get("insert_line"), int):
            yield made("insert", path, new=new, line=at)
            return
        if isinstance(new, str) and old == "":  # a new file, for agents whose edit tool also makes files
            yield made("write", path, new=new)
            return
    for name in _CONTENTS:
        if isinstance(content := arguments.get(name), str):
            yield made("append" if arguments.get("command") == "append" else "write", path, new=content)
            return


def _of_command(command: str, edits: list[Edit], made: Any) -> Iterator[Operation]:
    """Here-documents say what they write; of other writes only the file is known."""
    paths = list(dict.fromkeys(edit.path for edit in edits))
    covered: set[str] = set()
    for target, appends, text in heredocs(command[:_LONGEST_COMMAND]):
        path = _named(target, paths)
        if path in paths:
            covered.add(path)
            yield made("append" if appends else "write", path, new=text)
    gone = [edit.path for edit in edits if edit.op == "delete"]
    come = [edit.path for edit in edits if edit.op == "rename"]
    if gone and len(gone) == len(come):
        for path, target in zip(gone, come, strict=True):
            yield made("rename", path, to=target)
        covered.update(gone, come)
    for old, new, everywhere, rest in substitutions(command[:_LONGEST_COMMAND]):
        for path in paths:
            if path not in covered and path[path.rfind("/") + 1 :] in rest:
                yield made("substitute", path, old=old, new=new, everywhere=everywhere)
    for edit in edits:
        if edit.path not in covered:
            yield made("delete" if edit.op == "delete" else "shell", edit.path)


def _patch(arguments: Any) -> str | None:
    if isinstance(arguments, str):
        return arguments if "*** Begin Patch" in arguments or "\n@@" in arguments else None
    if isinstance(arguments, dict):
        for name in _PATCHES:
            text = arguments.get(name)
            if isinstance(text, str) and ("*** " in text or "@@" in text):
                return text
    return None


def _named(raw: str, paths: list[str]) -> str:
    """The path of the session's own record that a path written in a call means."""
    plain = raw.strip().replace("\\", "/").removeprefix("./")
    for path in paths:
        if plain == path or plain.endswith(f"/{path}") or path.endswith(f"/{plain}"):
            return path
    return plain


def _decoded(arguments: str) -> Any:
    try:
        return msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return arguments
