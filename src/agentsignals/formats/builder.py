"""Paths as the catalogue wants them: relative to the repository, forward slashes, worktree prefix removed."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any
from urllib.parse import unquote

import msgspec
from msgspec import Struct, field, structs

from agentsignals.changes import regions as tracking
from agentsignals.changes.hunks import Hunk, count_lines, created, inserted, of_whole_file, replaced, unified
from agentsignals.formats.outcome import ending
from agentsignals.formats.profile import EDIT, OTHER, READ, SHELL, Profile, Tool, describe
from agentsignals.model import (
    MAIN,
    RAN,
    CallStatus,
    Edit,
    EditOp,
    Event,
    EventKind,
    Session,
    Step,
    ToolCall,
    Turn,
    TurnKind,
    encoded,
)
from agentsignals.shell import Command, writes_of
from agentsignals.shell.arguments import WHOLE_TREE, Write
from agentsignals.shell.outputs import named_like_answers, outside
from agentsignals.words.text import count_tokens

_WORKTREE = re.compile(r"^(?:\.worktrees|\.claude/worktrees|worktrees|\.git/worktrees)/[^/]+/")
_ABSOLUTE = re.compile(r"[/\\~]|[A-Za-z]:[\\/]")
_BESIDE = re.compile(r"(?:__|[.-])worktrees/[^/]+/")
"""Where worktree managers put the checkouts of `<root>`: `<root>__worktrees/<name>/`, `<root>.worktrees/<name>/`."""
_DRIVE = re.compile(r"^[A-Za-z]:[\\/]")
_NO_REPOSITORY = re.compile(
    r"(?:/private)?/(?:tmp|var/folders)(?:/|$)|(?:(?:[A-Za-z]:)?/(?:Users|home)/[^/]+|/root|/)$"
)
"""Scratch and home folders: passing through one does not make it what paths are relative to."""
MOST_ROOTS = 100
"""Every path is compared with every root. No session works in so many checkouts: further folders name no new root."""


def path_of_uri(text: str | None) -> str | None:
    """A path as editors write it (`file:///c%3A/work`); whatever is no `file:` address stays as it is."""
    if text is None or not text.startswith("file://"):
        return text
    path = unquote(text.removeprefix("file://"))
    return path[1:] if path[:1] == "/" and path[2:3] == ":" else path


class Paths:
    """The working folders of one session, and what they make of a path."""

    def __init__(self) -> None:
        self.current: str | None = None
        self._folder = ""
        self._roots: list[str] = []
        self._cleaned: dict[str, str] = {}

    def enter(self, cwd: str) -> None:
        """The agent works in `cwd` now."""
        self.visit((cwd,))
        self.current = cwd
        self._folder = _slashes(cwd).rstrip("/")
        self._cleaned.clear()

    def visit(self, folders: Iterable[str]) -> None:
        """Folders of the session: a root is the first one, an ancestor of it, or another checkout of the repository."""
        for cwd in folders:
            folder = _slashes(cwd).rstrip("/")
            if (
                not folder
                or len(self._roots) == MOST_ROOTS
                or any(folder == root or folder.startswith(f"{root}/") for root in self._roots)
            ):
                continue
            if not self._roots or not _NO_REPOSITORY.match(folder):
                self._roots = [*(r for r in self._roots if not r.startswith(f"{folder}/")), folder]

    def clean(self, path: str, folder: str | None = None) -> str:
        """The path relative to its root; absolute when it lies outside all roots.

        A relative path is relative to `folder`, where the call ran, or else to the folder the agent works in now.
        """
        key = path if not folder else f"{folder}\0{path}"
        cleaned = self._cleaned.get(key)
        if cleaned is None:
            cleaned = self._cleaned[key] = self._clean(
                path.strip(), _slashes(folder).rstrip("/") if folder else self._folder
            )
        return cleaned

    def _clean(self, path: str, folder: str) -> str:
        cleaned = _slashes(path).removeprefix("@")
        if folder and not _ABSOLUTE.match(cleaned):
            if _DRIVE.match(folder):
                cleaned = cleaned.replace("\\", "/")
            cleaned = f"{folder}/{cleaned}"
        if "./" in cleaned or cleaned.endswith(("/.", "/..")):
            cleaned = posixpath.normpath(cleaned)
        for root in self._roots:
            if cleaned.startswith(f"{root}/"):
                cleaned = cleaned[len(root) + 1 :]
                break
            if cleaned == root:
                return "."
            if cleaned.startswith(root) and (beside := _BESIDE.match(cleaned, len(root))):
                cleaned = cleaned[beside.end() :]
                break
        return (_WORKTREE.sub("", cleaned) if "worktrees/" in cleaned else cleaned) or "."


def _slashes(path: str) -> str:
    if "\\" not in path or not (_DRIVE.match(path) or path.startswith("\\\\")):
        return path
    return path.replace("\\", "/")


# What shell commands change, as the rows that other edits are: sizes and places where the words of a command tell
# them, else a file whose lines nobody knows, so that its regions close.

_MOST_TEXTS = 200
_SCRIPT_ENDS = (".py", ".sh", ".bash", ".patch", ".diff")
_NOT_DONE = ("No such file or directory", "Permission denied", "Is a directory", "Read-only file system")


class ShellEdits:
    """The shell commands of one session, whose edits are known once it is known how each ended."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._calls: list[tuple[ToolCall, Command, str | None]] = []

    def ran(self, call: ToolCall, does: Command, folder: str | None) -> None:
        """A command, and the folder that it ran in."""
        writes = tuple(self._placed(does.writes, folder))
        runs = tuple((reader, self._paths.clean(path, folder)) for reader, path in does.runs)
        self._calls.append((call, Command(does.kind, does.path, writes, runs), folder))

    def edits(self, recorded: set[int], events: list[Event]) -> Iterator[Edit]:
        """The edits of commands that the trace does not record itself."""
        texts: dict[str, str] = {}
        for call, does, folder in self._calls:
            writes = list(does.writes)
            for reader, path in does.runs:
                if path in texts:
                    writes += self._placed(writes_of(reader, texts[path]), folder)
            if call.status not in RAN:
                output = events[call.result_seq].text if call.result_seq is not None else None
                writes = (
                    [w for w in writes if w.is_sure and _was_done(w, output or "")] if call.status == "error" else []
                )
            for write in writes:
                if write.how == "whole" and write.path.endswith(_SCRIPT_ENDS) and len(texts) < _MOST_TEXTS:
                    texts[write.path] = write.new
                elif write.path in texts:
                    del texts[write.path]
            if call.seq not in recorded:
                yield from of_call(call, writes)

    def _placed(self, writes: Iterable[Write], folder: str | None) -> Iterator[Write]:
        for write in writes:
            path = tracking.WHOLE_TREE if write.path == WHOLE_TREE else self._paths.clean(write.path, folder)
            yield structs.replace(write, path=path)


def of_call(call: ToolCall, writes: Iterable[Write]) -> list[Edit]:
    """A row for each changed place, in the order of the command."""
    edits: list[Edit] = []
    for write in writes:
        for hunk in _hunks(write):
            edits.append(
                Edit(
                    seq=call.seq,
                    turn=call.turn,
                    thread=call.thread,
                    call_id=call.call_id,
                    path=write.path,
                    op=write.op,
                    via="shell",
                    hunk=len(edits),
                    start_line=hunk.start_line,
                    end_line=hunk.end_line,
                    added=hunk.added,
                    removed=hunk.removed,
                    old_start=hunk.old_start,
                    whole_file=hunk.whole_file,
                    origin=write.origin,
                    source=write.source,
                )
            )
    return edits


def _hunks(write: Write) -> list[Hunk]:
    if write.how == "whole":
        whole = created(write.new)
        whole.removed = None  # whether there was a file before, and how long it was, nobody says
        return [whole]
    if write.how == "append":
        return [inserted(write.new, None)]
    if write.how == "insert":
        return [inserted(write.new, write.line)]
    if write.how == "patch":
        hunks = unified(write.new)
        return (of_whole_file(hunks) if write.op != "modify" else hunks) or [Hunk(whole_file=True)]
    if write.how in ("replace", "substitute") and write.line is not None:
        added = 1 if write.how == "substitute" else count_lines(write.new)
        last = write.line + max(added, 1) - 1
        return [Hunk(start_line=write.line, end_line=last, added=added, removed=write.n_old, old_start=write.line)]
    if write.how == "replace" and (not write.everywhere or "\n" in write.old.strip()):  # several lines stand once
        return [replaced(write.old, write.new)]
    if write.how in ("replace", "substitute") and write.old.count("\n") == write.new.count("\n"):
        return [Hunk()]  # no line comes or goes: which of them changed is not told, and where the others are stays so
    return [Hunk(whole_file=True)]


def _was_done(write: Write, output: str) -> bool:
    """Whether the output of a line that failed says nothing of why this file could not be written."""
    name = write.path.rpartition("/")[2]
    return not any(name in line and any(reason in line for reason in _NOT_DONE) for line in output.split("\n"))


# Puts a session together in file order, the same way for every format: numbering, merging, pairing, trimming.
#
# A format calls `turn`, `step`, `event`, `call`, `result`, `edit` as it meets records, after setting `line` (and
# `artifact_id` when a session spans files); `finish` closes the session.

RESULT_CHARS_KEPT = 1_200
"""Characters of a tool result kept in the store, head and tail half each: the artifact stays the full record."""
OUTSIDE_CHARS_KEPT = 40_000
"""The same of what a call brought from outside of the working tree: the audit compares it with what was written."""
_MARK_CHARS = 64
"""A result longer by less than what stands for the middle is kept whole; so what was cut once is not cut again."""
RESEND_WINDOW_US = 60_000_000
"""Identical text within 60 s and nothing of the agent in between is one turn (design/signals.md#human-turns)."""

_NOBODY = Profile()
_AGENT_KINDS = ("text", "thinking", "tool_call")


class _Latest(Struct):
    """The kind of the last event of some kinds by thread, and of any under None, among so many events."""

    looked_at: int = 0
    of: dict[str | None, EventKind] = field(default_factory=dict)


class SessionBuilder:
    """Collects one session. `turn_index` is the turn now running, None before the first prompt."""

    def __init__(self, session: Session, profile: Profile = _NOBODY) -> None:
        self.session = session
        self.profile = profile
        self.artifact_id = session.artifact_id
        self.line = 0
        self.turn_index: int | None = None
        self._steps: dict[tuple[str, str], Step] = {}
        self._calls: dict[str, list[ToolCall]] = {}
        self._answered: dict[str, int] = {}
        """Of an id that several calls share, how many from the first on have their result."""
        self._touches: Counter[str] = Counter()
        self._touches_counted = 0
        self._folders: dict[int, str] = {}
        self._paths = Paths()
        self._latest: dict[tuple[EventKind, ...], _Latest] = {}
        self._shell_edits = ShellEdits(self._paths)

    # -- records -------------------------------------------------------------------------------------------------

    def event(  # noqa: PLR0913  (a record has these facts; formats pass what theirs has)
        self,
        kind: EventKind,
        text: str | None = None,
        at: int | None = None,
        step: Step | None = None,
        thread: str = MAIN,
        n_chars: int | None = None,
    ) -> Event:
        """Something happened. `at` is in microseconds UTC."""
        if n_chars is None:
            n_chars = 0 if text is None else len(text)
        events = self.session.events
        index = None if step is None else step.step
        event = Event(
            seq=len(events),
            turn=self.turn_index,
            step=index,
            thread=thread,
            kind=kind,
            text=text,
            n_chars=n_chars,
            timestamp=at,
            artifact_id=self.artifact_id,
            line=self.line,
        )
        events.append(event)
        return event

    def turn(self, kind: TurnKind, text: str, at: int | None = None, model: str | None = None) -> Turn:
        """A human turn begins. A resend (same words within a minute, no agent between) replaces the last."""
        turns = self.session.turns
        if turns and self._is_resend(turns[-1], text, at):
            last = turns.pop()
            self.session.events[last.seq].kind = "meta"
        turn = Turn(
            turn=len(turns),
            kind=kind,
            text=text,
            n_tokens=count_tokens(text),
            timestamp=at,
            model=model,
            seq=len(self.session.events),
        )
        self.turn_index = turn.turn
        turns.append(turn)
        self.event("human_turn", text, at)
        return turn

    def step(self, message_id: str | None, model: str | None, at: int | None = None, thread: str = MAIN) -> Step:
        """The model call `message_id`: the one already begun, wherever its other lines were, or a new one.

        Without an id each call of this method is a step of its own.
        """
        key = (thread, message_id or "")
        if message_id is not None:
            begun = self._steps.get(key)
            if begun is not None:
                return begun
        steps = self.session.steps
        step = Step(
            step=len(steps),
            turn=self.turn_index,
            thread=thread,
            seq=len(self.session.events),
            message_id=message_id,
            model=model,
            timestamp=at,
        )
        steps.append(step)
        if message_id is not None:
            self._steps[key] = step
        return step

    def call(  # noqa: PLR0913  (a record has these facts; formats pass what theirs has)
        self,
        call_id: str,
        name: str,
        arguments: bytes | str,
        tool: Tool | None,
        at: int | None = None,
        step: Step | None = None,
        thread: str = MAIN,
        path: str | None = None,
        folder: str | None = None,
    ) -> ToolCall:
        """A tool call. `arguments` is its JSON as logged; `tool` what the format says this tool is (None: unknown).

        `path` is the file it is about, when no argument names it; `folder` where it ran, when that is not the session's
        folder and no `workdir` among the arguments.
        """
        event = self.event("tool_call", None, at, step, thread)
        what = describe(tool if tool is not None else OTHER, name, arguments)
        about = path or what.path
        folder = folder or what.folder
        if folder:
            self._folders[event.seq] = folder
        call = ToolCall(
            seq=event.seq,
            turn=self.turn_index,
            step=event.step,
            thread=thread,
            call_id=call_id,
            name=name,
            class_=what.class_,
            shell_kind=what.shell_kind,
            path=self._paths.clean(about, folder) if about else None,
            command=what.command,
            arguments=arguments if isinstance(arguments, str) else arguments.decode("utf-8", "replace"),
            started_at=at,
            purpose=what.tool.purpose,
            argument_roles=encoded(what.tool.roles) if what.tool.roles is not None else None,
            limit_s=what.limit_s,
        )
        self.session.tool_calls.append(call)
        self._calls.setdefault(call_id, []).append(call)
        if what.does is not None and (what.does.writes or what.does.runs):
            self._shell_edits.ran(call, what.does, folder)
        return call

    def result(  # noqa: PLR0913  (a record has these facts; formats pass what theirs has)
        self,
        call_id: str,
        text: str,
        status: CallStatus,
        at: int | None = None,
        thread: str = MAIN,
        exit_code: int | None = None,
        error: str | None = None,
        ran_s: float | None = None,
    ) -> ToolCall | None:
        """The result of a call: paired with the oldest unanswered call of that id; None when there is none.

        `status` is what the record says by itself: what it means with the exit code and the text is one rule for all
        (`outcome.ending`), so that the call's status counts afterwards. `error` names the error class when the format
        knows it; otherwise it is read off the text.
        """
        call = self._unanswered(call_id)
        limit = RESULT_CHARS_KEPT
        if len(text) > limit and call is not None and _is_from_outside(call):
            limit = OUTSIDE_CHARS_KEPT
        kept = text if len(text) <= limit + _MARK_CHARS else _cut(text, limit)
        if call is None:
            self.event("tool_result", kept, at, None, thread, len(text))
            return None
        event = self.event("tool_result", kept, at, None, call.thread, len(text))
        event.step = call.step
        ended = ending(call, text, status, exit_code, error, self.profile)
        call.status, call.outcome, call.error_class = ended.status, ended.outcome, ended.error
        call.ended_at = at
        call.ran_s = ran_s
        call.exit_code = exit_code
        call.result_tokens = (len(text) + 3) // 4
        call.result_seq = event.seq
        return call

    def exited(self, call: ToolCall, code: int, text: str = "", at: int | None = None) -> None:
        """The process that a call left running has ended: its exit code and last output come after the result."""
        call.exit_code = code
        call.ended_at = at if at is not None else call.ended_at
        if call.status in RAN:
            ended = ending(call, text, "ok", code, None, self.profile)
            call.status, call.outcome, call.error_class = ended.status, ended.outcome, ended.error

    def edit(self, call: ToolCall, path: str | None, op: EditOp, hunks: list[Hunk]) -> None:
        """A successful file change that the trace records with the call; no hunks means: changed, lines unknown."""
        cleaned = self._paths.clean(path, self._folders.get(call.seq)) if path else call.path
        if not cleaned:
            return
        for n, hunk in enumerate(hunks or [Hunk()]):
            self.session.edits.append(
                Edit(
                    seq=call.seq,
                    turn=call.turn,
                    thread=call.thread,
                    call_id=call.call_id,
                    path=cleaned,
                    op=op,
                    via="edit_tool" if call.shell_kind is None else "shell",
                    hunk=n,
                    start_line=hunk.start_line,
                    end_line=hunk.end_line,
                    added=hunk.added,
                    removed=hunk.removed,
                    old_start=hunk.old_start,
                    whole_file=hunk.whole_file,
                )
            )

    def unread(self, types: Iterable[str], read: frozenset[str], at: int | None, thread: str = MAIN) -> None:
        """An `unknown` event for each block of a message whose type is none of those that the format reads."""
        for kind in types:
            if kind not in read:
                self.event("unknown", f"block {kind[:80] or 'without a type'}", at, None, thread)

    # -- facts about the session ---------------------------------------------------------------------------------

    def where(self, cwd: str | None, branch: str | None = None) -> None:
        """The working folder of the records that follow; the session's own is the first one named."""
        session = self.session
        if cwd and cwd != self._paths.current:
            self._paths.enter(cwd)
            if session.cwd is None:
                session.cwd = cwd
        if branch and session.branch is None:
            session.branch = branch

    def visits(self, cwds: Iterable[str]) -> None:
        """The working folders of records to come, where a format knows them: paths are then relative to one root."""
        self._paths.visit(cwds)

    def relative(self, path: str) -> str:
        """A path as edits and calls name it, for a record that is neither."""
        return self._paths.clean(path) if path else path

    def calls_of(self, call_id: str) -> Sequence[ToolCall]:
        """The calls of that id so far."""
        return self._calls.get(call_id, ())

    def touched(self, call: ToolCall) -> bool:
        """Whether another call so far reads or edits the file that this edit is about."""
        calls = self.session.tool_calls
        for n in range(self._touches_counted, len(calls)):
            if calls[n].path and calls[n].class_ in ("read", "edit"):
                self._touches[calls[n].path or ""] += 1
        self._touches_counted = len(calls)
        return self._touches[call.path or ""] > 1  # it is among them itself

    def latest(self, kinds: tuple[EventKind, ...], thread: str | None = None) -> EventKind | None:
        """The kind of the last event of these kinds, of a thread or of any. Each event is looked at once."""
        events, latest = self.session.events, self._latest.setdefault(kinds, _Latest())
        for n in range(latest.looked_at, len(events)):
            if events[n].kind in kinds:
                latest.of[events[n].thread] = latest.of[None] = events[n].kind
        latest.looked_at = len(events)
        return latest.of.get(thread)

    def answered(self, call_id: str) -> bool:
        """Whether every call of that id has its result."""
        return self._unanswered(call_id) is None

    def finish(self) -> Session:
        """The finished session: times, model, and the edits of shell commands that the trace doesn't record itself."""
        session = self.session
        stamps = [e.timestamp for e in session.events if e.timestamp is not None]
        if stamps:
            first = min(stamps)
            session.started_at = first if session.started_at is None else min(session.started_at, first)
            session.ended_at = max(stamps)
        if session.model is None:
            session.model = _most_used_model(session.steps)
        recorded = {edit.seq for edit in session.edits}
        session.edits.extend(self._shell_edits.edits(recorded, session.events))
        session.edits.sort(key=lambda e: (e.seq, e.hunk))
        return session

    # -- parts ---------------------------------------------------------------------------------------------------

    def _is_resend(self, last: Turn, text: str, at: int | None) -> bool:
        return (
            last.text == text
            and bool(text)
            and at is not None
            and last.timestamp is not None
            and abs(at - last.timestamp) <= RESEND_WINDOW_US
            and not any(e.thread == MAIN and e.kind in _AGENT_KINDS for e in self.session.events[last.seq :])
        )

    def _unanswered(self, call_id: str) -> ToolCall | None:
        calls = self._calls.get(call_id, ())
        for n in range(self._answered.get(call_id, 0), len(calls)):
            if calls[n].result_seq is None:
                return calls[n]
            self._answered[call_id] = n + 1
        return None


def _cut(text: str, limit: int) -> str:
    half = limit // 2
    # ASCII, as most results are: one other character would double what the text takes.
    return f"{text[:half]}\n... {len(text) - 2 * half} characters cut ...\n{text[-half:]}"


def _most_used_model(steps: list[Step]) -> str | None:
    counts: dict[str, int] = {}
    for step in steps:
        if step.model and step.thread == MAIN:
            counts[step.model] = counts.get(step.model, 0) + 1
    return max(counts, key=lambda m: counts[m]) if counts else None


def _is_from_outside(call: ToolCall) -> bool:
    """Whether what a call shows may be from outside of the working tree."""
    command = call.command or ""
    return call.class_ == "web" or bool(outside(command) or named_like_answers(command or call.path or ""))


# Sessions that nobody had, from a list of parts: what signals are held against where the truth is planted.

_START, _SECOND = 1_767_225_600_000_000, 1_000_000


def session_of(parts: Sequence[Sequence[str]]) -> Session:
    """The session of these parts (a kind, then texts), each a second behind the end of the one before; `pause` is one
    of so many seconds."""
    session = Session(session_id="planted", context="product", format="planted", agent="planted", artifact_id="planted")
    builder = SessionBuilder(session)
    at = _START
    for builder.line, (kind, *texts) in enumerate(parts, 1):
        if kind == "pause":
            at += int(texts[0]) * _SECOND
        else:
            _PARTS[kind](builder, at, *texts)
            at += int(texts[2]) * _SECOND if len(texts) > 2 else 0
        at += _SECOND
    return builder.finish()


def _person(builder: SessionBuilder, at: int, text: str) -> None:
    builder.turn("prompt", text, at)


def _agent(builder: SessionBuilder, at: int, text: str) -> None:
    builder.event("text", text, at, builder.step(None, None, at))


def _thinking(builder: SessionBuilder, at: int, text: str) -> None:
    builder.event("thinking", text, at, builder.step(None, None, at))


def _interrupt(builder: SessionBuilder, at: int) -> None:
    builder.event("interrupt", "", at)


def _call(  # noqa: PLR0913  (a part says what was called, about what, what came, and how long after)
    tool: Tool, argument: str, builder: SessionBuilder, at: int, about: str, result: str = "ok", seconds: str = "0.5"
) -> None:
    call_id = f"c{builder.line}"
    arguments = msgspec.json.encode({argument: about}).decode()
    call = builder.call(call_id, tool.class_, arguments, tool, at)
    builder.result(call_id, result, "ok", at + int(float(seconds) * _SECOND))
    if tool is EDIT:
        builder.edit(call, about, "modify", [])


_PARTS: dict[str, Any] = {
    "person": _person,
    "agent": _agent,
    "thinking": _thinking,
    "interrupt": _interrupt,
    "edit": partial(_call, EDIT, "path"),
    "read": partial(_call, READ, "path"),
    "shell": partial(_call, SHELL, "command"),
    "poll": partial(_call, OTHER.to("poll"), "id"),
}
