"""Views of one session that many signals look at, each made once."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from functools import cached_property
from itertools import groupby
from operator import attrgetter

from msgspec import Struct

from agentsignals.model import MAIN, Edit, Event, EventKind, Session, Step, ToolCall, Turn
from agentsignals.tracking import Region, track

FILE_CLASSES = ("read", "search", "edit")
_OUTSIDE = re.compile(r"[/~]|[A-Za-z]:/|\.\./")
_TURN_OF = attrgetter("turn")
_OF_AGENT = frozenset(("text", "thinking", "tool_call", "tool_result"))
_COMMITTED = re.compile(r"^\[(?:detached HEAD|[^\s\]]+)(?: \(root-commit\))? [0-9a-f]{7,40}\]", re.M)


def fine_class(call: ToolCall) -> str:
    """The catalogue's finer classes: a shell command by what it does (`shell_write`, `build`, `vcs`)."""
    if call.class_ == "shell":
        kind = call.shell_kind
        if kind == "write":
            return "shell_write"
        return kind if kind in ("build", "vcs") else "shell"
    return "agent" if call.class_ == "task" else call.class_


def target_file(call: ToolCall) -> str | None:
    """The one file a read, search or edit is about; None for folders, several files, and calls of other classes."""
    path = call.path
    if path is None or call.class_ not in FILE_CLASSES or path.endswith("/") or path in (".", ".."):
        return None
    return path if call.class_ != "search" or posixpath.splitext(path)[1] else None


class Usage(Struct, frozen=True, gc=False):
    """Tokens of several model calls together; None where no call says."""

    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None

    @property
    def all_input(self) -> int:
        """Tokens that went in, cached or not."""
        return (self.input_tokens or 0) + (self.cache_read_tokens or 0) + (self.cache_write_tokens or 0)


def _total(known: list[int]) -> int | None:
    return sum(known) if known else None


class SessionView:
    """A session and what is derived from it. `main_…` leaves out subagents and abandoned branches."""

    def __init__(self, session: Session) -> None:
        self.session = session

    @cached_property
    def turns(self) -> list[Turn]:
        return self.session.turns

    @cached_property
    def calls(self) -> list[ToolCall]:
        """Main-thread tool calls in order."""
        return [c for c in self.session.tool_calls if c.thread == MAIN]

    @cached_property
    def subagent_calls(self) -> list[ToolCall]:
        return [c for c in self.session.tool_calls if c.thread != MAIN]

    @cached_property
    def classes(self) -> list[str]:
        """The fine class of each main-thread call."""
        return [fine_class(c) for c in self.calls]

    @cached_property
    def class_counts(self) -> Counter[str]:
        """How many main-thread calls each fine class has."""
        return Counter(self.classes)

    @cached_property
    def steps(self) -> list[Step]:
        """Main-thread model calls in order."""
        return [s for s in self.session.steps if s.thread == MAIN]

    @cached_property
    def billed_steps(self) -> list[Step]:
        """Main-thread model calls that say what they used."""
        return [s for s in self.steps if s.output_tokens is not None or s.input_tokens is not None]

    @cached_property
    def events(self) -> list[Event]:
        """Main-thread events in order."""
        return [e for e in self.session.events if e.thread == MAIN]

    @cached_property
    def edits(self) -> list[Edit]:
        """Main-thread file changes that succeeded, in order of time; hunks of one call follow each other."""
        return [e for e in self.session.edits if e.thread == MAIN]

    @cached_property
    def repo_edits(self) -> list[Edit]:
        """The edits of the repository's files: a plan in the home folder or a scratch file in /tmp is no work on it."""
        return [e for e in self.edits if self.in_repo(e.path)]

    @cached_property
    def changed_files(self) -> dict[int, set[str]]:
        """For each call that changed files of the repository, by event number: which."""
        found: dict[int, set[str]] = {}
        for edit in self.repo_edits:
            files = found.get(edit.seq)
            if files is None:
                found[edit.seq] = {edit.path}
            else:
                files.add(edit.path)
        return found

    @cached_property
    def edit_calls(self) -> list[ToolCall]:
        return [c for c in self.calls if c.class_ == "edit"]

    @cached_property
    def edited_seqs(self) -> set[int]:
        """The calls, by event number, that changed a file."""
        return {e.seq for e in self.edits}

    @cached_property
    def first_edit_index(self) -> int | None:
        """Position among main-thread calls of the first that changed a file of the repository; None when none did."""
        changed = self.changed_files
        return next((i for i, c in enumerate(self.calls) if c.seq in changed), None)

    @cached_property
    def answered(self) -> list[ToolCall]:
        """Main-thread calls with a result that was not a person's refusal or a cancelled sibling."""
        return [c for c in self.calls if c.status in ("ok", "error")]

    @cached_property
    def rejected(self) -> list[ToolCall]:
        return [c for c in self.calls if c.status == "rejected"]

    @cached_property
    def errors(self) -> list[ToolCall]:
        return [c for c in self.calls if c.status == "error"]

    @cached_property
    def interrupts(self) -> list[Event]:
        return self.by_kind.get("interrupt", [])

    @cached_property
    def by_kind(self) -> dict[EventKind, list[Event]]:
        """Main-thread events by kind, in order."""
        found: dict[EventKind, list[Event]] = {}
        for event in self.events:
            kept = found.get(event.kind)
            if kept is None:
                found[event.kind] = [event]
            else:
                kept.append(event)
        return found

    @cached_property
    def by_turn(self) -> dict[int | None, list[Event]]:
        """Main-thread events by the turn they follow."""
        found: dict[int | None, list[Event]] = {}
        for turn, events in groupby(self.events, _TURN_OF):
            found.setdefault(turn, []).extend(events)
        return found

    @cached_property
    def responses(self) -> list[list[Event]]:
        """For each turn what the agent did until the next: main-thread text, thinking, calls and results."""
        by_turn = self.by_turn
        return [[e for e in by_turn.get(t.turn, ()) if e.kind in _OF_AGENT] for t in self.turns]

    @cached_property
    def commits(self) -> list[ToolCall]:
        """Main-thread calls that made a Git commit: Git printed `[branch sha]`."""
        return [
            c
            for c in self.calls
            if c.command and "commit" in c.command and "git" in c.command and _COMMITTED.search(self.result_text(c))
        ]

    @cached_property
    def regions(self) -> list[Region]:
        """The line ranges of the repository's files that were edited, each followed through the session."""
        return track(self.repo_edits)

    @cached_property
    def usage(self) -> Usage:
        """What the main thread's model calls used."""
        steps = self.billed_steps
        return Usage(
            _total([n for s in steps if (n := s.input_tokens) is not None]),
            _total([n for s in steps if (n := s.output_tokens) is not None]),
            _total([n for s in steps if (n := s.cache_read_tokens) is not None]),
            _total([n for s in steps if (n := s.cache_write_tokens) is not None]),
        )

    @cached_property
    def written_chars(self) -> int:
        """Characters the model wrote on the main thread: visible text, thinking, tool arguments."""
        text, thinking = self.by_kind.get("text", []), self.by_kind.get("thinking", [])
        return (
            sum([e.n_chars for e in text])
            + sum([e.n_chars for e in thinking])
            + sum([len(c.arguments) for c in self.calls])
        )

    @cached_property
    def final_share(self) -> float | None:
        """Share of the billed steps whose usage is final (they have a stop reason); None when none is billed."""
        steps = self.billed_steps
        return sum(s.stop_reason is not None for s in steps) / len(steps) if steps else None

    @cached_property
    def undercounted(self) -> bool:
        """Older Claude Code logs output tokens as they stood in mid-stream; other agents just log no stop reason."""
        share = self.final_share
        return share is not None and share < 0.5 and self.session.format.startswith("claude")

    def in_repo(self, path: str) -> bool:
        """Whether a path lies in the repository. Paths are relative to it, unless nobody knows where it is."""
        return self.session.cwd is None or not _OUTSIDE.match(path)

    def result_text(self, call: ToolCall) -> str:
        """The kept text of a call's result; empty when it has none."""
        return (self.session.events[call.result_seq].text or "") if call.result_seq is not None else ""
