"""What sessions did until a commit: the checks they ran and what they changed after, what failed and stayed so,
what they read and left alone (design/attribution.md#receipts)."""

from __future__ import annotations

from collections import defaultdict
from typing import Literal

from msgspec import Struct, field

from agentsignals.attribution.operations import operations
from agentsignals.git.worktrees import Naming, Tree
from agentsignals.model import Session, ToolCall
from agentsignals.shell.checks import Check, checks, tells_its_end

MOST_LISTED = 20

Result = Literal["passed", "failed", "hidden", "unknown"]
"""How a check ended. `hidden`: it ended within a line whose own end says nothing of it (a pipe, `|| true`)."""


class Place(Struct, frozen=True):
    """Where in the store it stands: a session's event."""

    session_id: str
    seq: int


class CheckRun(Struct, kw_only=True):
    """A check, and the last time that it ran before the commit."""

    name: str
    kind: str
    runs: int
    result: Result
    is_part: bool
    """The last run was asked about some files or some tests alone."""
    place: Place
    command: str
    """Of the last run."""
    edits_after: int
    """Changes of the commits' files by the agents after that run."""
    files_after: list[str] = field(default_factory=list)


class FailedCommand(Struct, kw_only=True):
    """A command that failed, and that no later run of the same words mended."""

    command: str
    place: Place
    error_class: str | None


def checks_of(call: ToolCall) -> tuple[Check, ...]:
    """The checks that a call runs: those of its command line, or the tool itself, where it is one that runs tests."""
    if call.command:
        return checks(call.command)
    return (Check(call.name, "test", call.path is not None),) if call.class_ == "test" else ()


class Work:
    """What sessions did until a moment, their calls in order of time."""

    def __init__(self, sessions: list[Session], tree: Tree, files: set[str], until: int) -> None:
        self.read: set[str] = set()
        self.changed: dict[str, int] = {}
        """Files that calls changed, with the last time, microseconds."""
        self.checks: list[CheckRun] = []
        self.failed: list[FailedCommand] = []
        edits: list[tuple[int, str]] = []
        calls: list[tuple[int, Session, ToolCall]] = []
        folders = {s.cwd or "" for s in sessions}
        for session in sessions:
            made = operations(session)
            looked = [c.path for c in session.tool_calls if c.class_ == "read" and c.path and c.status == "ok"]
            naming = Naming(tree, session.cwd, [p for o in made for p in (o.path, o.to) if p] + looked, folders)
            for operation in made:
                path = naming.of(operation.path)
                if path is not None and operation.at <= until:
                    self.changed[path] = max(operation.at, self.changed.get(path, 0))
                    if path in files:
                        edits.append((operation.at, path))
            clocks: dict[str, int] = {}  # of each thread: a subagent works while the call that started it is open
            for call in session.tool_calls:
                clock = clocks.get(call.thread, session.started_at or 0)
                clock = clocks[call.thread] = max(clock, call.ended_at or call.started_at or clock)
                if clock > until or call.thread in ("abandoned", "replayed"):
                    continue
                calls.append((clock, session, call))
                if call.class_ == "read" and call.path and call.status == "ok":
                    path = naming.of(call.path)
                    if path is not None and path in tree.paths:
                        self.read.add(path)
        calls.sort(key=lambda entry: (entry[0], entry[1].session_id, entry[2].seq))
        self._check(calls, edits)
        self._fail(calls)

    def _check(self, calls: list[tuple[int, Session, ToolCall]], edits: list[tuple[int, str]]) -> None:
        runs: dict[str, list[tuple[int, Session, ToolCall, Check]]] = defaultdict(list)
        for at, session, call in calls:
            if call.status not in ("rejected", "cancelled"):
                for check in checks_of(call):
                    runs[check.name].append((at, session, call, check))
        for name, ran in runs.items():
            at, session, call, check = ran[-1]
            after = [path for moment, path in edits if moment > at]
            self.checks.append(
                CheckRun(
                    name=name,
                    kind=check.kind,
                    runs=len(ran),
                    result=_result(call),
                    is_part=check.is_part,
                    place=Place(session.session_id, call.seq),
                    command=(call.command or call.name)[:300],
                    edits_after=len(after),
                    files_after=sorted(set(after))[:MOST_LISTED],
                )
            )
        self.checks.sort(key=lambda run: (run.kind != "test", run.name))

    def _fail(self, calls: list[tuple[int, Session, ToolCall]]) -> None:
        last: dict[str, tuple[Session, ToolCall]] = {}
        for _, session, call in calls:
            if call.command and call.status in ("ok", "error"):
                last[" ".join(call.command.split())] = (session, call)
        results = {run.name: run.result for run in self.checks}
        for command, (session, call) in last.items():
            if call.status != "error" or call.shell_kind not in ("test", "build", "run"):
                continue
            ends = {results[check.name] for check in checks(call.command or "")}
            if not ends or "failed" in ends:  # of a check that went on otherwise its own row tells
                place = Place(session.session_id, call.seq)
                self.failed.append(FailedCommand(command=command[:300], place=place, error_class=call.error_class))
        del self.failed[MOST_LISTED:]


def _result(call: ToolCall) -> Result:
    if call.status == "error":
        return "failed"
    if call.status != "ok":
        return "unknown"
    return "passed" if tells_its_end(call.command or "") else "hidden"
