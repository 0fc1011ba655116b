"""Puts a session together in file order, the same way for every format: numbering, merging, pairing, trimming.

A format calls `prompt`, `step`, `event`, `call`, `result` and `edit` as it meets records, after setting `line` (and
`artifact_id` when a session spans files). `finish` closes the session. `Tokens` are those of a model call, however a
log spells them, and a run's totals are spread over its calls.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from math import nan
from sys import intern
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote

import msgspec
from msgspec import Struct, structs

from agentsignals.changes.hunks import (
    WHOLE_TREE,
    Hunk,
    count_lines,
    created,
    edit_texts,
    inserted,
    of_whole_file,
    patched,
    replaced,
    trimmed,
    unified,
)
from agentsignals.formats.bounds import MOST_SECONDS, count, whole
from agentsignals.formats.documents import REDACTED
from agentsignals.formats.outcome import ending
from agentsignals.formats.profile import EDIT, OTHER, READ, SHELL, Profile, Tool, describe, without_skill
from agentsignals.model import (
    ABANDONED,
    MAIN,
    RAN,
    SESSION_TOTAL,
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
    columnar,
    encode_roles,
)
from agentsignals.model.lazy import deferred_pattern
from agentsignals.shell import Command, writes_of
from agentsignals.shell.commands import answer_paths, outside_sources
from agentsignals.shell.tokens import WHOLE_TREE as SHELL_TREE
from agentsignals.shell.tokens import Write
from agentsignals.words.text import count_tokens

_WORKTREE = deferred_pattern(r"^(?:\.worktrees|\.claude/worktrees|worktrees|\.git/worktrees)/[^/]+/")
_ABSOLUTE = re.compile(r"[/\\~]|[A-Za-z]:[\\/]")
_BESIDE = deferred_pattern(r"(?:__|[.-])worktrees/[^/]+/")
"""Worktree managers put checkouts of `<root>` into `<root>__worktrees/<name>/` or `<root>.worktrees/<name>/`."""
_DRIVE = deferred_pattern(r"^[A-Za-z]:[\\/]")
_NO_REPOSITORY = deferred_pattern(
    r"(?:/private)?/(?:tmp|var/folders)(?:/|$)|(?:(?:[A-Za-z]:)?/(?:Users|home)/[^/]+|/root|/)$"
)
"""Scratch and home folders. Visiting one does not make it a root that paths are relative to."""
MOST_ROOTS = 100
"""Every path is compared with every root, and no session works in so many checkouts. Further folders are no roots."""


def path_of_uri(text: str | None) -> str | None:
    """Return the path of a `file:` address as editors write it (`file:///c%3A/work`). Other texts stay as they are."""
    if text is None or not text.startswith("file://"):
        return text
    path = unquote(text.removeprefix("file://"))
    return path[1:] if path[:1] == "/" and path[2:3] == ":" else path


_REMOTE = deferred_pattern(r"(?:://[^/]+/|@[^/:]+[:/])(?:.*/)?([^/]+)/([^/]+?)(?:\.git)?/?$")


def repo_name(url: str | None) -> str | None:
    """Return `owner/name` of a remote's address. None for one that redaction has eaten."""
    match = _REMOTE.search(url or "")
    if match is None or any(not part.strip(".") or "REDACTED" in part for part in match.groups()):
        return None
    return f"{match[1]}/{match[2]}"


class Paths:
    """The working folders of one session. They make paths relative: to a checkout, with forward slashes, without the
    prefix of a worktree."""

    def __init__(self) -> None:
        self.current: str | None = None
        self._folder = ""
        self._roots: list[str] = []
        self._cleaned: dict[str, str] = {}

    def enter(self, cwd: str) -> None:
        """Note that the agent works in `cwd` from now on."""
        self.visit((cwd,))
        self.current = cwd
        self._folder = _slashes(cwd).rstrip("/")
        self._cleaned.clear()

    def visit(self, folders: Iterable[str]) -> None:
        """Note folders of the session. The first is a root; so are its ancestors and other checkouts."""
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
        """Return the path relative to its root, or absolute if it lies outside all roots.

        A relative path starts at `folder`, where the call ran, or else at the folder the agent works in now.
        """
        key = path if not folder else f"{folder}\0{path}"
        if (known := self._cleaned.get(key)) is not None:
            return known
        start = _slashes(folder).rstrip("/") if folder else self._folder
        cleaned = _slashes(path.strip()).removeprefix("@")
        if start and not _ABSOLUTE.match(cleaned):
            if _DRIVE.match(start):
                cleaned = cleaned.replace("\\", "/")
            cleaned = f"{start}/{cleaned}"
        if "./" in cleaned or cleaned.endswith(("/.", "/..")):
            cleaned = posixpath.normpath(cleaned)
        for root in self._roots:
            if cleaned.startswith(f"{root}/"):
                cleaned = cleaned[len(root) + 1 :]
                break
            if cleaned == root:
                cleaned = ""
                break
            if cleaned.startswith(root) and (beside := _BESIDE.match(cleaned, len(root))):
                cleaned = cleaned[beside.end() :]
                break
        cleaned = self._cleaned[key] = (_WORKTREE.sub("", cleaned) if "worktrees/" in cleaned else cleaned) or "."
        return cleaned


def _slashes(path: str) -> str:
    if "\\" not in path or not (_DRIVE.match(path) or path.startswith("\\\\")):
        return path
    return path.replace("\\", "/")


_MOST_TEXTS = 200
_SCRIPT_ENDS = (".py", ".sh", ".bash", ".patch", ".diff")
_NOT_WRITTEN = ("No such file or directory", "Permission denied", "Is a directory", "Read-only file system")


class ShellEdits:
    """The shell commands of one session. Their edits are known once all results are in.

    Sizes and places are given where the words of a command tell them. Else the edit is of a file with unknown lines, so
    that its regions close.
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._calls: list[tuple[ToolCall, Command, str | None]] = []

    def ran(self, call: ToolCall, does: Command, folder: str | None) -> None:
        """Note a command and the folder that it ran in."""
        writes = tuple(self._placed(does.writes, folder))
        runs = tuple((reader, self._paths.clean(path, folder)) for reader, path in does.runs)
        self._calls.append((call, Command(does.kind, does.path, writes, runs), folder))

    def edits(self, recorded: set[int], events: list[Event]) -> Iterator[Edit]:
        """Yield the edits of commands that the trace does not record itself."""
        texts: dict[str, str] = {}
        for call, does, folder in self._calls:
            writes = list(does.writes)
            for reader, path in does.runs:
                if path in texts:
                    writes += self._placed(writes_of(reader, texts[path]), folder)
            if call.status not in RAN:
                output = events[call.result_seq].text if call.result_seq is not None else None
                # Of a line that failed those files were written whose names stand with no reason for the failure.
                excused = [line for line in (output or "").split("\n") if any(r in line for r in _NOT_WRITTEN)]
                writes = [
                    w for w in writes
                    if call.status == "error" and w.is_sure
                    and not any(w.path.rpartition("/")[2] in line for line in excused)
                ]  # fmt: skip
            for write in writes:
                if write.how == "whole" and write.path.endswith(_SCRIPT_ENDS) and len(texts) < _MOST_TEXTS:
                    texts[write.path] = write.new
                elif write.path in texts:
                    del texts[write.path]
            if call.seq not in recorded:
                hunks = [(write, hunk) for write in writes for hunk in _hunks(write)]
                for n, (write, hunk) in enumerate(hunks):
                    edit = _edit(call, write.path, write.op, n, hunk)
                    edit.origin, edit.source = write.origin, write.source
                    yield edit

    def _placed(self, writes: Iterable[Write], folder: str | None) -> Iterator[Write]:
        for write in writes:
            path = WHOLE_TREE if write.path == SHELL_TREE else self._paths.clean(write.path, folder)
            yield structs.replace(write, path=path)


def _edit(call: ToolCall, path: str, op: EditOp, n: int, hunk: Hunk) -> Edit:
    return Edit(
        seq=call.seq, turn=call.turn, thread=call.thread, call_id=call.call_id, path=path, op=op,
        via="edit_tool" if call.shell_kind is None else "shell", hunk=n, start_line=hunk.start_line,
        end_line=hunk.end_line, added=hunk.added, removed=hunk.removed, old_start=hunk.old_start,
        whole_file=hunk.whole_file,
    )  # fmt: skip


def _hunks(write: Write) -> list[Hunk]:
    """Return the hunks of a write by a shell command, as far as its words tell their lines."""
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


RESULT_CHARS_KEPT = 1_200
"""Characters of a tool result that the store keeps, half from its head and half from its tail."""
OUTSIDE_CHARS_KEPT = 40_000
"""Characters kept of a result from outside of the working tree: the audit compares it with what was written."""
_MARK_CHARS = 64
"""A result longer by less than the mark of the cut is kept whole, so that a cut result is not cut again."""
RESEND_WINDOW_US = 60_000_000
"""A text repeated within 60 s, with nothing of the agent between, is one turn (design/signals.md#human-turns)."""

_NOBODY = Profile()
_AGENT_KINDS = ("text", "thinking", "tool_call")


_FEWEST_OF_ONE_TIME = 5
"""Events that show that a log's one time is of none of them: several answers of a model take longer."""


class SessionBuilder:
    """Collects one session. `turn_index` is the turn that runs now, None before the first prompt."""

    def __init__(self, session: Session, profile: Profile = _NOBODY) -> None:
        columnar.hold(session)
        self.session = session
        self.profile = profile
        self.artifact_id = session.artifact_id
        self.line = 0
        self.turn_index: int | None = None
        self._steps: dict[int, Step] = {}
        """By a digest of thread and message id, which takes half of their memory."""
        self._calls: dict[str, ToolCall] = {}
        """The first call of each id."""
        self._several: dict[str, list[ToolCall]] = {}
        """All calls of ids that several have."""
        self._answered: dict[str, int] = {}
        """Number of calls of an id that have their result, from the first on. For ids of several calls."""
        self._runs: dict[str, _Run] = {}
        self._first_answered: dict[str, ToolCall] = {}
        """The first call on each path that has its result."""
        self._folders: dict[int, str] = {}
        self._paths = Paths()
        self._latest: dict[tuple[EventKind, ...], dict[str | None, EventKind]] = {}
        self._latest_looked_at: dict[tuple[EventKind, ...], int] = {}
        self._shell_edits = ShellEdits(self._paths)

    def event(  # noqa: PLR0913  (a record has these facts; formats pass what theirs has)
        self,
        kind: EventKind,
        text: str | None = None,
        at: int | None = None,
        step: Step | None = None,
        thread: str = MAIN,
        n_chars: int | None = None,
    ) -> Event:
        """Add an event. `at` is in microseconds UTC."""
        if n_chars is None:
            n_chars = 0 if text is None else len(text)
        events = self.session.events
        event = Event(
            seq=len(events), turn=self.turn_index, step=None if step is None else step.step, thread=thread, kind=kind,
            text=text, n_chars=n_chars, timestamp=at, artifact_id=self.artifact_id, line=self.line,
        )  # fmt: skip
        events.append(event)
        return events[-1]

    def prompt(  # noqa: PLR0913  (a record has these facts; formats pass what theirs has)
        self,
        text: str,
        at: int | None = None,
        kind: TurnKind = "prompt",
        *,
        by_person: bool = True,
        attached: bool = False,
        model: str | None = None,
        thread: str = MAIN,
    ) -> None:
        """Record a user message: a turn of the person, or text that a program or another agent put there.

        The profile knows what the agent's program writes in the person's name. `by_person` is false where another agent
        wrote the prompts, as in a subagent's session. `attached`: a message without text is a turn if it holds a file.
        """
        if text and not by_person:
            self.event(self.profile.machine_kind(text) or "meta", text, at, None, thread)
        elif text:
            self.turn(kind, text, at, model)
        elif attached:
            self.turn("attachment", "", at, model)

    def turn(self, kind: TurnKind, text: str, at: int | None = None, model: str | None = None) -> Turn | None:
        """Begin a human turn. A resend (the same words within a minute, no agent between) replaces the last turn.

        None where a program wrote the text in the person's name: it is an event. So is a skill's body before the words.
        """
        if text and kind in ("prompt", "queued_prompt"):
            body, text = without_skill(text)
            if body:
                self.event("meta", body, at)
            if not text:
                return None
            if (machine := self.profile.machine_kind(text.strip())) is not None:
                self.event(machine, text, at)
                return None
        turns, events = self.session.turns, self.session.events
        last = turns[-1] if turns and text and turns[-1].text == text else None
        if (
            last is not None and at is not None and last.timestamp is not None
            and abs(at - last.timestamp) <= RESEND_WINDOW_US
            and not any(e.thread == MAIN and e.kind in _AGENT_KINDS for e in events[last.seq :])
        ):  # fmt: skip
            turns.pop()
            events[last.seq].kind = "meta"
        turn = Turn(
            turn=len(turns), kind=kind, text=text, n_tokens=count_tokens(text), timestamp=at, model=model,
            seq=len(events),
        )  # fmt: skip
        self.turn_index = turn.turn
        turns.append(turn)
        self.event("human_turn", text, at)
        return turns[-1]

    def step(self, message_id: str | None, model: str | None, at: int | None = None, thread: str = MAIN) -> Step:
        """Return the step of model call `message_id`, which earlier records may have begun. Without an id it is new."""
        key = hash((thread, message_id))
        if message_id is not None and (begun := self._steps.get(key)) is not None:
            return begun
        steps = self.session.steps
        step = Step(
            step=len(steps), turn=self.turn_index, thread=thread, seq=len(self.session.events), message_id=message_id,
            model=None if model is None else intern(model), timestamp=at,
        )  # fmt: skip
        steps.append(step)
        if message_id is not None:
            self._steps[key] = steps[-1]
        return steps[-1]

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
        """Add a tool call. `arguments` is its JSON as logged, `tool` what the profile says of the tool (None: unknown).

        `path` is the file it is about, if no argument names it. `folder` is where it ran, if that is neither the
        session's folder nor among the arguments.
        """
        event = self.event("tool_call", None, at, step, thread)
        what = describe(tool if tool is not None else OTHER, name, arguments)
        about = path or what.path
        folder = folder or what.folder
        if folder:
            self._folders[event.seq] = folder
        call = ToolCall(
            seq=event.seq, turn=self.turn_index, step=event.step, thread=thread, call_id=call_id, name=intern(name),
            class_=what.class_, shell_kind=what.shell_kind, command=what.command, started_at=at, limit_s=what.limit_s,
            path=self._paths.clean(about, folder) if about else None,
            arguments=arguments if isinstance(arguments, str) else arguments.decode("utf-8", "replace"),
            purpose=what.tool.purpose,
            argument_roles=encode_roles(what.tool.roles) if what.tool.roles is not None else None,
        )  # fmt: skip
        self.session.tool_calls.append(call)
        call = self.session.tool_calls[-1]
        if (first := self._calls.setdefault(call_id, call)) is not call:
            self._several.setdefault(call_id, [first]).append(call)
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
        """Add a result to the oldest unanswered call of that id, and return the call. None if there is none.

        `status` is what the record says by itself. One rule for all formats (`outcome.ending`) judges it together with
        the exit code and the text, and sets the call's status. `error` is the error class, if the format knows it.
        """
        call = self._unanswered(call_id)
        limit = RESULT_CHARS_KEPT
        if len(text) > limit and call is not None:
            about = call.command or call.path or ""
            if call.class_ == "web" or outside_sources(call.command or "") or answer_paths(about):
                limit = OUTSIDE_CHARS_KEPT
        kept = text
        if len(text) > limit + _MARK_CHARS:
            half = limit // 2
            # ASCII, as most results are: one other character would double what the text takes.
            kept = f"{text[:half]}\n... {len(text) - 2 * half} characters cut ...\n{text[-half:]}"
        event = self.event("tool_result", kept, at, None, thread if call is None else call.thread, len(text))
        if call is None:
            return None
        event.step = call.step
        ended = ending(call, text, status, exit_code, error, self.profile)
        call.status, call.outcome, call.error_class = ended.status, ended.outcome, ended.error
        call.ended_at = at
        call.ran_s = ran_s
        if self._runs and (run := self._runs.pop(call_id, None)) is not None:
            run.date(call)
        call.exit_code = exit_code
        call.result_tokens = (len(text) + 3) // 4
        call.result_seq = event.seq
        if call.path:
            self._first_answered.setdefault(call.path, call)
        return call

    def exited(self, call: ToolCall, code: int, text: str = "", at: int | None = None) -> None:
        """Note that the process a call left running has ended, with its exit code and last output."""
        call.exit_code = code
        if at is not None:
            if call.ran_s is not None and call.ended_at is not None:  # it went on running by itself
                call.ran_s += max(0, at - call.ended_at) / 1_000_000
            call.ended_at = at
        if call.status in RAN:
            ended = ending(call, text, "ok", code, None, self.profile)
            call.status, call.outcome, call.error_class = ended.status, ended.outcome, ended.error

    def ran(self, call_id: str, at: int | None, elapsed_s: float = 0.0) -> None:
        """Note a record which says that an unanswered call runs at this time, and has run for so long."""
        if at is not None and not self.answered(call_id):
            run = self._runs.setdefault(call_id, _Run())
            if not 0 <= elapsed_s <= MOST_SECONDS:
                run.is_impossible = True
                return
            began = at - int(elapsed_s * 1_000_000)
            if run.began is None:
                run.began = run.last = began
            run.asleep += max(0, at - run.last - _MOST_SILENT)
            run.last = max(run.last, at)

    def permitted(self, call_id: str, at: int | None) -> None:
        """Note that an unanswered call got its permission, and began to run."""
        if at is not None and not self.answered(call_id):
            run = self._runs.setdefault(call_id, _Run())
            run.began = run.last = at
            run.asleep = 0

    def hooked(self, call_id: str, at: int | None, *, is_before: bool, took_s: float | None = None) -> None:
        """Note a hook of an unanswered call, or the question for its permission. With `took_s` the record is of the
        hook's end, else of its start."""
        if at is None or self.answered(call_id):
            return
        run = self._runs.setdefault(call_id, _Run())
        if took_s is not None and not 0 <= took_s <= MOST_SECONDS:
            run.is_impossible = True
        elif is_before:
            run.not_before = max(at, run.not_before or at)
            run.hooks_before_s = max(took_s or 0.0, run.hooks_before_s)  # hooks of one event run side by side
        else:
            ended = at - int((took_s or 0.0) * 1_000_000)
            run.ended = min(ended, run.ended or ended)

    def edit(self, call: ToolCall, path: str | None, op: EditOp, hunks: list[Hunk]) -> None:
        """Add a file change that the trace records with a call. No hunks means that the changed lines are unknown."""
        cleaned = self._paths.clean(path, self._folders.get(call.seq)) if path else call.path
        if not cleaned:
            return
        for n, hunk in enumerate(hunks or [Hunk()]):
            self.session.edits.append(_edit(call, cleaned, op, n, hunk))

    def unread(self, types: Iterable[str], read: frozenset[str], at: int | None, thread: str = MAIN) -> None:
        """Add an `unknown` event for each block of a message whose type is not one that the format reads."""
        for kind in types:
            if kind not in read:
                self.event("unknown", f"block {kind[:80] or 'without a type'}", at, None, thread)

    def model_changed(
        self, before: str | None, model: str | None, at: int | None, step: Step | None = None, thread: str = MAIN
    ) -> str | None:
        """Note a call's model. Another than before is an event. Return the model that is in use."""
        if model and before is not None and model != before:
            self.event("model_change", f"{before} -> {model}", at, step, thread)
        return model or before

    def where(self, cwd: str | None, branch: str | None = None) -> None:
        """Set the working folder of the records that follow. The session's own is the first one named."""
        session = self.session
        if cwd and cwd != self._paths.current:
            self._paths.enter(cwd)
            if session.cwd is None:
                session.cwd = cwd
        if branch and session.branch is None:
            session.branch = branch

    def visits(self, cwds: Iterable[str]) -> None:
        """Note the working folders of records to come, so that all paths are relative to one root."""
        self._paths.visit(cwds)

    def relative(self, path: str) -> str:
        """Return a path as edits and calls name it."""
        return self._paths.clean(path) if path else path

    def calls_of(self, call_id: str) -> Sequence[ToolCall]:
        """Return the calls of that id so far."""
        if call_id in self._several:
            return self._several[call_id]
        return (self._calls[call_id],) if call_id in self._calls else ()

    def touched(self, call: ToolCall) -> bool:
        """Return whether another call on the same path got its result earlier."""
        return self._first_answered.get(call.path or "", call) is not call

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Events inside this block belong to no turn."""
        running, self.turn_index = self.turn_index, None
        yield
        self.turn_index = running

    def latest(self, kinds: tuple[EventKind, ...], thread: str | None = None) -> EventKind | None:
        """Return the kind of the last event of these kinds, of a thread or of any. Each event is looked at once."""
        events, latest = self.session.events, self._latest.setdefault(kinds, {})
        for n in range(self._latest_looked_at.get(kinds, 0), len(events)):
            if events[n].kind in kinds:
                latest[events[n].thread] = latest[None] = events[n].kind
        self._latest_looked_at[kinds] = len(events)
        return latest.get(thread)

    def abandon(self, first: int) -> None:
        """Move the main thread from event `first` on to the thread `abandoned`: the person went back from it.

        It was paid for, but belongs to no turn, and its prompts do not stand.
        """
        session = self.session
        kept = [turn for turn in session.turns if turn.seq < first]
        session.turns[len(kept) :] = []
        self.turn_index = kept[-1].turn if kept else None
        for event in session.events[first:]:
            if event.kind == "human_turn" and event.thread == MAIN:
                event.kind = "meta"
        rows: list[Event | Step | ToolCall | Edit] = [*session.events[first:], *session.tool_calls, *session.edits]
        for row in (*rows, *session.steps):
            if row.seq >= first:
                row.thread = ABANDONED if row.thread == MAIN else row.thread
                if row.thread == ABANDONED or (row.turn is not None and row.turn >= len(kept)):
                    row.turn = None
        self._latest.clear()
        self._latest_looked_at.clear()

    def answered(self, call_id: str) -> bool:
        """Return whether every call of that id has its result."""
        return self._unanswered(call_id) is None

    def finish(self) -> Session:
        """Return the finished session, with its times, its model, and the edits of shell commands."""
        session = self.session
        first, last = (end((e.timestamp for e in session.events if e.timestamp is not None), default=None)
                       for end in (min, max))  # fmt: skip
        if first is not None:
            session.started_at = first if session.started_at is None else min(session.started_at, first)
            session.ended_at = last
        if session.model is None:
            used = Counter(step.model for step in session.steps if step.model and step.thread == MAIN)
            session.model = max(used, key=lambda model: used[model], default=None)
        recorded = {edit.seq for edit in session.edits}
        session.edits.extend(self._shell_edits.edits(recorded, session.events))
        session.edits.sort(key=lambda e: (e.seq, e.hunk))
        return session

    def drop_one_time(self) -> None:
        """Drop the times of a finished session whose records all have one: that of an export or a conversion."""
        session = self.session
        stamps = (e.timestamp for e in session.events if e.timestamp is not None)
        first, n = next(stamps, None), 1
        for at in stamps:
            n += 1
            if at != first:
                return
        if n < _FEWEST_OF_ONE_TIME or len(session.steps) < 2:
            return
        for event in session.events:
            event.timestamp = None
        for turn in session.turns:
            turn.timestamp = None
        for step in session.steps:
            step.timestamp = None
        for call in session.tool_calls:
            call.started_at = call.ended_at = None
        session.started_at = session.ended_at = None

    def _unanswered(self, call_id: str) -> ToolCall | None:
        calls = self.calls_of(call_id)
        for n in range(self._answered.get(call_id, 0), len(calls)):
            if calls[n].result_seq is None:
                return calls[n]
            if len(calls) > 1:
                self._answered[call_id] = n + 1
        return None


_MOST_SILENT = 600_000_000
"""Between two signs of life of a running call; for the rest of a longer gap the machine slept."""


class _Run(Struct, gc=False):
    """Recorded times of a call's run, in microseconds where no unit is in the name."""

    began: int | None = None
    last: int = 0
    """Latest sign of life."""
    asleep: int = 0
    not_before: int | None = None
    ended: int | None = None
    """Start of the hooks after it."""
    hooks_before_s: float = 0.0
    is_impossible: bool = False
    """A record has a duration that cannot be, which is counted with the call's values."""

    def date(self, call: ToolCall) -> None:
        """Set the run time of an answered call."""
        end = call.ended_at
        if self.is_impossible:
            call.hooks_s = nan
        if end is None or self.is_impossible:
            return
        ended = end if self.ended is None else min(end, self.ended)
        hooks_s = self.hooks_before_s + (end - ended) / 1_000_000
        if hooks_s:
            call.hooks_s = hooks_s
        call.not_before = self.not_before
        if self.began is not None and call.ran_s is None:
            asleep = self.asleep + max(0, ended - self.last - _MOST_SILENT if self.last > self.began else 0)
            call.ran_s = max(0, ended - self.began - asleep) / 1_000_000


# -- changes of files read from the arguments of edit tools, for logs without a diff: sizes, and whole new contents

_FILE = deferred_pattern(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)


def record_arguments(builder: SessionBuilder, call: ToolCall, existed: bool | None = None) -> None:
    """Record the change of a call that succeeded. A whole text makes a file, unless the file `existed`.

    None: it existed if the session touched it before.
    """
    texts = edit_texts(call.arguments, call.argument_roles)
    if existed is None:
        existed = builder.touched(call)
    if texts and texts[0].kind == "patch":
        record_patch(builder, call, texts[0].new)
    elif texts and texts[0].kind == "whole" and (texts[0].creates or not existed):
        builder.edit(call, None, "create", [created(texts[0].new)])
    else:
        hunks: list[Hunk] = []
        for text in texts:
            if text.kind == "replace":
                hunks.append(replaced(text.old, text.new))
            elif text.kind in ("insert", "append"):
                hunks.append(inserted(text.new, text.line if text.kind == "insert" else None))
            elif text.kind == "whole":  # how long the file was before is not logged
                hunks.append(structs.replace(created(text.new), removed=None))
        builder.edit(call, None, "modify", hunks)


def record_patch(builder: SessionBuilder, call: ToolCall, patch: str) -> None:
    """Record the changes of an `apply_patch` text: numbers of lines, but not where in the file they are."""
    for file in patched(patch):
        if file.op == "create":
            content = "\n".join(line[1:] for place in file.places for line in place)
            builder.edit(call, file.path, "create", [created(content)])
        elif file.op == "delete":
            record_deletion(builder, call, file.path)
        else:
            hunks = (trimmed(1, 1, lines) for lines in file.places)
            sizes = [Hunk(added=hunk.added, removed=hunk.removed) for hunk in hunks if hunk is not None]
            record_modification(builder, call, file.path, file.moved_to, sizes)


def record_deletion(builder: SessionBuilder, call: ToolCall, path: str, content: str | None = None) -> None:
    """Record that a call deleted a file. `content` is what the file held, if it is known."""
    removed = count_lines(content) if content is not None else None
    builder.edit(call, path, "delete", [Hunk(added=0, removed=removed, whole_file=True)])


def record_modification(
    builder: SessionBuilder, call: ToolCall, path: str, moved_to: str | None, hunks: list[Hunk]
) -> None:
    """Record the changed places of a file that a patch may also have moved."""
    if moved_to and moved_to != path:
        record_deletion(builder, call, path)
        builder.edit(call, moved_to, "rename", hunks)
    else:
        builder.edit(call, path, "modify", hunks)


def place(old_at: object, new_at: object, old: Iterable[str], new: Iterable[str]) -> list[Hunk]:
    """Return the change of a place: its first lines before and after, and its lines. Nothing without line numbers."""
    before, after = whole(old_at), whole(new_at)
    hunk = trimmed(before, after, [*(f"-{t}" for t in old), *(f"+{t}" for t in new)]) if before and after else None
    return [hunk] if hunk is not None else []


def first_file(patch: str) -> str | None:
    """Return the file that an `apply_patch` text names first."""
    match = _FILE.search(patch)
    return match.group(1).strip() if match else None


_FIRST_US, _SECOND_US = 1_767_225_600_000_000, 1_000_000
_MADE_UP_TOOLS = {
    "edit": (EDIT, "path"),
    "read": (READ, "path"),
    "shell": (SHELL, "command"),
    "poll": (OTHER.to("poll"), "id"),
}


def session_of(parts: Sequence[Sequence[str]]) -> Session:
    """Make up a session for tests of signals, from parts a second apart: `person`, `agent`, `thinking` (a text),
    `interrupt`, `edit`, `read` (a path), `shell`, `poll` (a command or its id, output, seconds until it came), `pause`
    (seconds)."""
    session = Session(session_id="planted", context="product", format="planted", agent="planted", artifact_id="planted")
    builder, at = SessionBuilder(session), _FIRST_US
    for builder.line, (kind, *texts) in enumerate(parts, 1):
        if kind == "pause":
            at += int(texts[0]) * _SECOND_US
        elif kind == "person":
            builder.turn("prompt", texts[0], at)
        elif kind in ("agent", "thinking"):
            builder.event("thinking" if kind == "thinking" else "text", texts[0], at, builder.step(None, None, at))
        elif kind == "interrupt":
            builder.event("interrupt", "", at)
        else:
            tool, argument = _MADE_UP_TOOLS[kind]
            about, output, seconds = (*texts, *("ok", "0.5")[len(texts) - 1 :])
            call_id, arguments = f"c{builder.line}", msgspec.json.encode({argument: about}).decode()
            call = builder.call(call_id, tool.class_, arguments, tool, at)
            builder.result(call_id, output, "ok", at + int(float(seconds) * _SECOND_US))
            if tool is EDIT:
                builder.edit(call, about, "modify", [])
            at += int(texts[2]) * _SECOND_US if len(texts) > 2 else 0
        at += _SECOND_US
    return builder.finish()


Cached = Literal["apart", "within", "within_if_fewer"]
"""The place of cached tokens, read or written, in a log. `apart`: its input holds none of them (Anthropic). `within`:
its input holds them (OpenAI). `within_if_fewer`: it holds them, unless they are more than the input."""

_SPELLINGS = {
    "input": "input_tokens inputTokens prompt_tokens promptTokens promptTokenCount input_other inputOther tokensIn"
    " prompt_n input",
    "output": "output_tokens outputTokens completion_tokens completionTokens candidatesTokenCount tokensOut predicted_n"
    " output",
    "cache_read": "cache_read_input_tokens cacheReadInputTokens cached_input_tokens cachedInputTokens cache_read_tokens"
    " cacheReadTokens cached_read_tokens input_tokens_cache_read input_cache_read inputCacheRead "
    "cachedContentTokenCount cachedReadTokens cached_tokens cachedTokens cacheReads cacheRead cache_n cached read",
    "cache_write": "cache_creation_input_tokens cacheCreationInputTokens cache_write_input_tokens cache_creation_tokens"
    " cache_write_tokens cacheWriteTokens input_tokens_cache_write input_cache_creation inputCacheCreation"
    " cacheCreationTokens cacheWrites cacheWrite write",
    "reasoning": "reasoning_output_tokens reasoningOutputTokens reasoning_tokens reasoningTokens thoughtsTokenCount"
    " thoughts_tokens thoughts reasoning",
}
"""Names of each figure in the logs that are read. Of several in one record the first counts."""
_DETAILS = (
    "prompt_tokens_details", "input_tokens_details", "promptTokensDetails", "completion_tokens_details",
    "output_tokens_details", "completionTokensDetails", "cache",
)  # fmt: skip
"""Records inside of a record of usage that hold further figures."""


_STANDARD = frozenset(("", "standard", "default", "auto", "global", "not_available", REDACTED))
"""Speeds, service tiers and places that cost what the price list says."""


def special(name: object) -> str | None:
    """Return the name of a speed, tier or place that has a price of its own."""
    return name if isinstance(name, str) and name not in _STANDARD else None


class Tokens(NamedTuple):
    """Tokens of a model call or a run. `input` holds no cached tokens, `output` holds reasoning. None: not logged."""

    input: int | None = 0
    output: int | None = 0
    cache_read: int | None = 0
    cache_write: int | None = 0
    reasoning: int | None = 0

    def since(self, before: "Tokens") -> "Tokens":
        """Return what was used since an earlier total. A figure that has fallen means that counting began anew."""
        grown = Tokens(*(None if now is None else now - (then or 0) for now, then in zip(self, before, strict=True)))
        return self if any(n is not None and n < 0 for n in grown) else grown

    def without(self, counted: "Tokens") -> "Tokens":
        """Return what is left of a total that other steps count in part. No figure falls below 0."""
        pairs = zip(self, counted, strict=True)
        return Tokens(*(None if now is None else max(now - (then or 0), 0) for now, then in pairs))


@cache
def _names(type_: Hashable) -> tuple[tuple[str, ...], ...]:
    """Return the spellings of each figure; of a struct those that it has, of any other type none."""
    has = None if type_ is None else frozenset(getattr(type_, "__struct_fields__", ()))
    return tuple(tuple(name for name in names.split() if has is None or name in has) for names in _SPELLINGS.values())


def tokens_of(usage: Any, cached: Cached = "within") -> Tokens:
    """Read the tokens of a record of usage, a dict or a struct in any spelling. All None for anything else."""
    if usage is None:
        return Tokens(None, None, None, None, None)
    found: Iterable[object]
    if isinstance(usage, dict):
        parts = [usage, *(inner for name in _DETAILS if isinstance(inner := usage.get(name), dict))]
        found = [
            next((v for part in parts for n in names if (v := part.get(n)) is not None), None) for names in _names(None)
        ]
    else:
        type_: Any = type(usage)
        found = [next((v for n in names if (v := getattr(usage, n)) is not None), None) for names in _names(type_)]
    tokens = Tokens(*map(count, found))
    held = 0 if cached == "apart" else (tokens.cache_read or 0) + (tokens.cache_write or 0)
    if not held or tokens.input is None or (cached == "within_if_fewer" and held > tokens.input):
        return tokens
    return tokens._replace(input=max(tokens.input - held, 0))


def charge(step: Step, tokens: Tokens, zeros: bool = True) -> None:
    """Set the tokens of a model call. Without `zeros` a cache or reasoning of 0 tokens stays absent, and so do all of
    a call that has none."""
    if not zeros and not any(tokens):
        return
    step.input_tokens, step.output_tokens, *others = tokens
    read, written, reasoning = others if zeros else [n or None for n in others]
    step.cache_read_tokens, step.cache_write_tokens, step.reasoning_tokens = read, written, reasoning


def summed(parts: Iterable[Iterable[int | None]]) -> Tokens:
    """Sum tokens. A figure that is not logged counts as 0."""
    columns = list(zip(*parts, strict=True))
    return Tokens(*(sum(n or 0 for n in column) for column in columns)) if columns else Tokens()


def tokens_of_steps(steps: Iterable[Step]) -> Tokens:
    """Sum the tokens of model calls."""
    return summed(
        (s.input_tokens, s.output_tokens, s.cache_read_tokens, s.cache_write_tokens, s.reasoning_tokens) for s in steps
    )


def close(builder: SessionBuilder, model: str | None, tokens: Tokens, at: int | None = None) -> Step:
    """Add the closing step of a run: tokens that no logged call accounts for.

    Its `stop_reason` is "session_total". The session's sums are right, and no call gets a context size it did not have.
    """
    step = builder.step(None, model, at)
    step.stop_reason = SESSION_TOTAL
    charge(step, tokens, zeros=False)
    builder.event("meta", f"session totals of {model or 'the model'}", at, step)
    return step
