"""Carefulness, after agent-traces: looking before changing, and making failures good."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque

from agentsignals.catalog import Measured, ratio, signal
from agentsignals.model import Absent, ToolCall
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import FAILURES_UNSAID, SessionView

RECOVERY_CALLS = 5
COMMANDS_LOOKED_AT = 1_000
"""Of the commands that read files no argument names, the last so many: each may name any file, so the file of each edit
is looked for in all of them. What was printed so long ago has left the agent's context."""


@signal(
    "corpus.read_before_edit_rate",
    type="float",
    unit="ratio",
    context="both",
    origin="agent-traces",
    pitfalls="Claude Code enforces it, so it says something only of agents without that guard. A file shown by a search"
    " or attached by the person does not count as read."
    " Of eval runs one value on the project's corpus.",
)
def read_before_edit_rate(view: SessionView, why: Evidence) -> Measured | Absent:
    """Edit attempts on existing files the agent had read or changed before / all edit attempts on existing files."""
    seen = _Seen(view)
    attempts = len(seen.informed) + len(seen.blind)
    if not attempts:
        return Absent("not_applicable", "no_edit")
    why.support(seen.informed, "known file")
    why.counter(seen.blind, "unknown file")
    blocked = sum(c.error_class == "not_read_first" for c in (*seen.informed, *seen.blind))
    return ratio(len(seen.informed), attempts, blocked=blocked, lost_by_compaction=seen.lost)


@signal(
    "corpus.error_recovery_rate",
    type="float",
    unit="ratio",
    context="both",
    origin="this project",
    priority="P1",
    version=2,
    pitfalls="Seed 000 names error recovery as the better lens without a formula: this one is ours.",
    why="How an agent handles failure says more than how pleased the person sounds.",
)
def error_recovery_rate(view: SessionView, why: Evidence) -> Measured | Absent:
    """Failed calls soon made good, by the same tool on the same target within five calls and the same turn / all."""
    if not view.says_failures:
        return FAILURES_UNSAID
    if all(c.error_class == "sibling_cancelled" for c in view.errors):
        return Absent("not_applicable", "no_errors")
    failed = [(i, c) for i, c in enumerate(view.calls) if c.status == "error" and c.error_class != "sibling_cancelled"]
    recovered = []
    episodes = 0
    for i, call in failed:
        target = _target(call)
        for c in view.calls[i + 1 : i + 1 + RECOVERY_CALLS]:
            # The tool's name first: the first word of a command takes a while to find.
            if c.status == "ok" and c.turn == call.turn and c.name == call.name and _target(c) == target:
                recovered.append(call)
                break
        before = view.calls[i - 1] if i else None
        episodes += before is None or before.status != "error" or _target(before) != target
    why.support(recovered)
    why.denominator(c for _, c in failed)
    return ratio(len(recovered), len(failed), episodes=episodes)


class _Seen:
    """Edit attempts on existing files, by whether the agent knew the file: it had read, made or changed it."""

    def __init__(self, view: SessionView) -> None:
        self.informed: list[ToolCall] = []
        self.blind: list[ToolCall] = []
        self.lost = 0
        """Attempts whose file was last seen before a compaction of the context."""
        self._last_seen: dict[str, int] = {}
        self._readers_of_many: deque[str] = deque(maxlen=COMMANDS_LOOKED_AT)
        self._compactions = [e.seq for e in view.by_kind.get("compaction", ())]
        self._created = {(e.seq, e.path) for e in view.repo_edits if e.op == "create"}
        self._follow(view)

    def _follow(self, view: SessionView) -> None:
        seen, changed_files = self._last_seen, view.changed_files
        if not changed_files and not view.edit_calls:
            return
        for call in view.calls:
            class_ = call.class_
            if class_ == "read":
                if call.path is not None:
                    seen[call.path] = call.seq
                elif call.command:
                    self._readers_of_many.append(call.command)
                continue
            changed = changed_files.get(call.seq, ())
            if class_ == "edit" and call.status not in ("rejected", "cancelled"):
                if changed:
                    self._attempt(call, [p for p in changed if p in seen or (call.seq, p) not in self._created])
                elif call.path and view.in_repo(call.path) and (call.path in seen or not _creates(call)):
                    self._attempt(call, [call.path])
            for path in changed:
                seen[path] = call.seq

    def _attempt(self, call: ToolCall, existing: list[str]) -> None:
        if not existing:
            return
        for path in existing:
            if path not in self._last_seen and not self._read_among_many(path):
                self.blind.append(call)
                return
        self.informed.append(call)
        if self._compactions:
            last = max(self._last_seen.get(path, 0) for path in existing)
            self.lost += bisect_right(self._compactions, last) < bisect_left(self._compactions, call.seq)

    def _read_among_many(self, path: str) -> bool:
        return any(path in command for command in self._readers_of_many)


def _creates(call: ToolCall) -> bool:
    """Whether a call that changed nothing would have made a new file, as far as its tool and its error tell."""
    if call.error_class == "not_read_first":
        return False
    return call.error_class == "not_found" or call.purpose == "write_file"


def _target(call: ToolCall) -> tuple[str, str]:
    """Tool and what it was used on: a file, or for a shell command its first word."""
    if call.command is not None:
        return call.name, _first_word(call.command)
    return call.name, call.path or ""


def _first_word(command: str) -> str:
    """The first command of a line, after `cd …` and assignments."""
    words = command.split(maxsplit=12)
    n = 0
    while n < len(words):
        if words[n] == "cd":
            n += 2
        elif "=" in words[n].split("/", 1)[0] or words[n] in ("sudo", "time", "&&", ";"):
            n += 1
        else:
            return words[n]
    return words[0] if words else ""
