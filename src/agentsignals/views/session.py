"""One session as signals see it: derived facts, each computed once, and the evidence that a value rests on."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Struct

from agentsignals.changes.hunks import Region, track
from agentsignals.model import (
    MAIN,
    NO_SUBAGENT,
    RAN,
    Absent,
    CallStatus,
    Edit,
    Event,
    EventKind,
    Label,
    Session,
    Step,
    ToolCall,
    labeller_rank,
)
from agentsignals.model.lazy import deferred_pattern, once
from agentsignals.model.prices import Kind, cost_formula
from agentsignals.views.usage import final_share, is_lower_bound, last_closing, total_of
from agentsignals.words.lexicon import (
    OTHER,
    Mentions,
    Prose,
    Span,
    asked,
    endings,
    language_spoken,
    limits_work,
    names_of_file,
)

FILE_CLASSES = frozenset(("read", "search", "edit"))
_OUTSIDE = re.compile(r"[/~]|[A-Za-z]:/|\.\./")
OF_AGENT = frozenset(("text", "thinking", "tool_call", "tool_result"))
"""The kinds of events that the agent makes."""
_OF_CALLS = frozenset(("tool_call", "tool_result"))
_TURN_OF = attrgetter("turn")
# With the line break before it: found several times faster than "^".
_COMMITTED = deferred_pattern(r"\n\[(?:detached HEAD|[^\s\]]+)(?: \(root-commit\))? [0-9a-f]{7,40}\]")
_SHELL_CLASSES: dict[str | None, str] = {"write": "shell_write", "build": "build", "vcs": "vcs"}
_Made = TypeVar("_Made")


def target_file(call: ToolCall) -> str | None:
    """The one file a read, search or edit is about; None for folders, several files, and calls of other classes."""
    path = call.path
    if path is None or call.class_ not in FILE_CLASSES or path.endswith("/") or path in (".", ".."):
        return None
    # A search is about a file where the last part of its path has an extension: a dot that it does not begin with.
    return path if call.class_ != "search" or "." in path[path.rfind("/") + 1 :].lstrip(".") else None


class Usage(Struct, frozen=True, gc=False):
    """Tokens of several model calls together; None where no call reports them."""

    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None

    @property
    def all_input(self) -> int:
        """Tokens that went in, cached or not."""
        return (self.input_tokens or 0) + (self.cache_read_tokens or 0) + (self.cache_write_tokens or 0)


class _InRepo(dict[str, bool]):
    """Cache of whether each path lies in the repository: the same few paths are asked for many times."""

    def __init__(self, relative: bool) -> None:
        super().__init__()
        self._relative = relative

    def __missing__(self, path: str) -> bool:
        inside = self[path] = not self._relative or not _OUTSIDE.match(path)
        return inside


FAILURES_UNKNOWN = Absent("missing_field", "the trace does not record which calls failed")
"""Value of a figure of failed calls where `records_failures` is false."""


class SessionView:
    """A session and what is derived from it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.turns = session.turns
        self.in_repo = _InRepo(session.cwd is not None).__getitem__
        """Return whether a path lies in the repository. Paths are relative to it, unless its folder is unknown."""
        self._made: dict[object, Any] = {}

    def derived(self, make: Callable[[SessionView], _Made]) -> _Made:
        """Return the result of a function or class for this session, computed once; for views that few signals use."""
        made: _Made | None = self._made.get(make)
        if made is None:
            made = self._made[make] = make(self)
        return made

    def forget(self) -> None:
        """Drop the session and all derived facts. Some refer to the view: they would stay until the garbage collector
        runs, which is off while a shard is read."""
        self.__dict__.clear()

    def judgements(self, task: str) -> list[Label]:
        """Return the labels of a task by one labeller: the one with most, then with the youngest; rules only where
        nobody else judged."""
        if not self.session.labels:
            return []
        by_labeller: dict[str, list[Label]] = defaultdict(list)
        for label in self.session.labels:
            if label.task == task:
                by_labeller[label.labeller].append(label)
        # Rules and classifiers judge everything they are shown, so better judges have fewer labels, and go first.
        return max(
            by_labeller.values(),
            key=lambda labels: (
                labeller_rank(labels[0].labeller),
                len(labels),
                max(label.created_at or 0 for label in labels),
                labels[0].labeller,
            ),
            default=[],
        )

    @once
    def is_blind(self) -> bool:
        """This is an attempt whose conversation was not collected."""
        return self.session.attempt is not None and not self.session.attempt.has_transcript

    @once
    def calls(self) -> list[ToolCall]:
        """Main-thread tool calls in order."""
        return [c for c in self.session.tool_calls if c.thread == MAIN]

    @once
    def subagent_calls(self) -> list[ToolCall]:
        return [c for c in self.session.tool_calls if c.thread not in NO_SUBAGENT]

    @once
    def classes(self) -> list[str]:
        """The catalogue's finer class of each main-thread call: a shell command by its effect (`shell_write`)."""
        return [
            _SHELL_CLASSES.get(c.shell_kind, "shell") if (class_ := c.class_) == "shell"
            else "agent" if class_ == "task"
            else class_
            for c in self.calls
        ]  # fmt: skip

    @once
    def class_counts(self) -> Counter[str]:
        """Number of main-thread calls of each fine class."""
        return Counter(self.classes)

    @once
    def steps(self) -> list[Step]:
        """Main-thread model calls in order."""
        return [s for s in self.session.steps if s.thread == MAIN]

    @once
    def subagent_steps(self) -> list[Step]:
        """Subagents' model calls in order."""
        return [s for s in self.session.steps if s.thread not in NO_SUBAGENT]

    @once
    def billed_steps(self) -> list[Step]:
        """Main-thread model calls that say what they used."""
        return [s for s in self.steps if s.output_tokens is not None or s.input_tokens is not None]

    @once
    def events(self) -> list[Event]:
        """Main-thread events in order."""
        return [e for e in self.session.events if e.thread == MAIN]

    @once
    def edits(self) -> list[Edit]:
        """Main-thread file changes that succeeded, in order of time; hunks of one call follow each other."""
        return [e for e in self.session.edits if e.thread == MAIN]

    @once
    def edited(self) -> list[int]:
        """Event numbers of successful main-thread calls that changed files, in order. A command that failed is left
        out: run again, it writes the same again."""
        failed = {call.seq for call in self.session.tool_calls if call.status == "error"}
        return sorted({e.seq for e in self.edits} - failed)

    @once
    def repo_edits(self) -> list[Edit]:
        """The edits of the repository's files: a plan in the home folder or a scratch file in /tmp is no work on it."""
        return [e for e in self.edits if self.in_repo(e.path)]

    @once
    def changed_files(self) -> dict[int, set[str]]:
        """For each call that changed files of the repository, by event number: which."""
        by_call: dict[int, set[str]] = {}
        for edit in self.repo_edits:
            files = by_call.get(edit.seq)
            if files is None:
                by_call[edit.seq] = {edit.path}
            else:
                files.add(edit.path)
        return by_call

    @once
    def edit_calls(self) -> list[ToolCall]:
        return [c for c in self.calls if c.class_ == "edit"]

    @once
    def first_edit_index(self) -> int | None:
        """Position among main-thread calls of the first that changed a file of the repository; None when none did."""
        changed = self.changed_files
        return next((i for i, c in enumerate(self.calls) if c.seq in changed), None) if changed else None

    @once
    def looked_at(self) -> list[tuple[ToolCall, str]]:
        """The reads and searches before the first change that are about one file, with that file."""
        before = [c for c in self.calls[: self.first_edit_index] if c.class_ in ("read", "search")]
        return [(c, path) for c in before if (path := target_file(c)) is not None]

    @once
    def by_status(self) -> dict[CallStatus, list[ToolCall]]:
        """Main-thread calls by how they ended."""
        by_status: dict[CallStatus, list[ToolCall]] = defaultdict(list)
        for call in self.calls:
            by_status[call.status].append(call)
        return by_status

    @property
    def answered(self) -> Iterator[ToolCall]:
        """Main-thread calls that went well or failed: not refused, not cancelled, and the trace says which."""
        return (c for c in self.calls if c.status in ("ok", "error"))

    @once
    def n_answered(self) -> int:
        return len(self.by_status.get("ok", ())) + len(self.errors)

    @once
    def rejected(self) -> list[ToolCall]:
        return self.by_status.get("rejected", [])

    @property
    def records_failures(self) -> bool:
        """The trace records of some call whether it failed, or no call has a result."""
        return self.n_answered > 0 or "unknown" not in self.by_status

    @once
    def errors(self) -> list[ToolCall]:
        return self.by_status.get("error", [])

    @once
    def git_calls(self) -> list[ToolCall]:
        """Main-thread calls of a command that names Git."""
        return [c for c in self.calls if c.command and "git" in c.command]

    @once
    def commits(self) -> list[ToolCall]:
        """Main-thread calls that made a Git commit: Git printed `[branch sha]`."""
        return [
            c for c in self.git_calls if "commit" in (c.command or "") and _COMMITTED.search("\n" + self.result_text(c))
        ]

    @once
    def by_kind(self) -> dict[EventKind, list[Event]]:
        """Main-thread events by kind, in order. Without tool calls and results, which are most: `calls` has those."""
        by_kind: dict[EventKind, list[Event]] = defaultdict(list)
        for event in [e for e in self.events if e.kind not in _OF_CALLS]:
            by_kind[event.kind].append(event)
        return by_kind

    @once
    def interrupts(self) -> list[Event]:
        return self.by_kind.get("interrupt", [])

    @once
    def responses(self) -> list[list[Event]]:
        """For each turn the main-thread events from the agent's first (`OF_AGENT`) to its last before the next turn;
        others may lie between them. Empty without a response."""
        by_turn: dict[int | None, list[Event]] = defaultdict(list)
        for number, events in groupby(self.events, _TURN_OF):
            by_turn[number] += events
        responses = []
        for turn in self.turns:
            response = by_turn.pop(turn.turn, [])
            start, end = 0, len(response)
            while start < end and response[start].kind not in OF_AGENT:
                start += 1
            while start < end and response[end - 1].kind not in OF_AGENT:
                end -= 1
            responses.append(response[start:end])
        return responses

    @once
    def foreign(self) -> dict[int, Absent]:
        """Turns in another language than English, each with the reason why no rule for English judges it. A turn that
        tells no language ("ok") is in the one that most of the others are in."""
        told = {t.turn: language_spoken(t.text) for t in self.turns}
        others = Counter(language for language in told.values() if language not in ("", "en"))
        if not others:
            return {}
        usual = others.most_common(1)[0][0]
        if 2 * others.total() > sum(1 for language in told.values() if language):
            told = {n: language or usual for n, language in told.items()}
        return {
            n: Absent("not_computable", "language" if language == OTHER else f"language: {language}")
            for n, language in told.items()
            if language not in ("", "en")
        }

    def mostly_foreign(self, first: int = 0) -> Absent | None:
        """Return why rules for English judge none of the person's words from a turn on; None unless most are in another
        language."""
        reasons = [reason for n, reason in self.foreign.items() if n >= first]
        return reasons[-1] if reasons and 2 * len(reasons) > len(self.turns) - first else None

    @once
    def mentions(self) -> Mentions:
        """The files and folders that the person names, in any turn."""
        return Mentions([t.text for t in self.turns])

    @once
    def scoped_turns(self) -> frozenset[int]:
        """Turns that say where to work: they name a file or folder of the repository that a call of the session is
        about, or limit the work. Other turns ask in words, so no file is known to be unasked for."""
        names: set[str] = set()
        for path in {e.path for e in self.repo_edits} | {c.path for c in self.calls if c.path and self.in_repo(c.path)}:
            names |= names_of_file(path)
            folder = path.rpartition("/")[0]
            while folder and folder not in names:
                names.update(endings(folder))
                folder = folder.rpartition("/")[0]
        return frozenset(t.turn for t in self.turns if limits_work(t.text) or Mentions([t.text]).names(names))

    @once
    def prose(self) -> Prose:
        """The agent's visible messages on the main thread as prose, without code and quotations."""
        return Prose(self.by_kind.get("text", ()))

    @once
    def thoughts(self) -> Prose:
        """The agent's thinking on the main thread as prose."""
        return Prose(self.by_kind.get("thinking", ()))

    @once
    def regions(self) -> list[Region]:
        """The line ranges of the repository's files that were edited, each followed through the session."""
        return track(self.repo_edits)

    @once
    def usage(self) -> Usage:
        """Tokens of the main thread's model calls."""
        steps = self.billed_steps
        return Usage(
            total_of([n for s in steps if (n := s.input_tokens) is not None]),
            total_of([n for s in steps if (n := s.output_tokens) is not None]),
            total_of([n for s in steps if (n := s.cache_read_tokens) is not None]),
            total_of([n for s in steps if (n := s.cache_write_tokens) is not None]),
        )

    @once
    def written_chars(self) -> int:
        """Characters the model wrote on the main thread: visible text, thinking, tool arguments."""
        text, thinking = self.by_kind.get("text", []), self.by_kind.get("thinking", [])
        return (
            sum([e.n_chars for e in text])
            + sum([e.n_chars for e in thinking])
            + sum([len(c.arguments) for c in self.calls])
        )

    @once
    def final_share(self) -> float | None:
        """Share of the billed steps whose usage is final (they have a stop reason); None when none is billed."""
        return final_share(self.billed_steps, last_closing(self.session.steps))

    @once
    def undercounted(self) -> bool:
        """Output tokens were logged as they stood in mid-stream."""
        return is_lower_bound(self.session)

    def result_text(self, call: ToolCall) -> str:
        """The kept text of a call's result; empty when it has none."""
        return (self.session.events[call.result_seq].text or "") if call.result_seq is not None else ""


# The evidence of a value. A signal names it through `why`; unless someone asks, nothing is collected.

EXCERPT_CHARS = 200
MOST_ROWS = 50
"""Most rows of evidence of one role that are shown; the total is counted (design/signals.md#evidence)."""


class Row(Protocol):
    """Anything of a session that has an event: a turn, step, event, tool call or edit."""

    seq: int


class Item(Struct):
    """One piece of evidence: an event, its line in the artifact, and its role in the value."""

    seq: int | None
    artifact: str | None
    line: int | None
    excerpt: str
    role: str


class Evidence:
    """A collector that keeps nothing. Signals call it freely; `CollectedEvidence` keeps what they name."""

    is_kept = False
    """Evidence is kept. Work for the evidence alone is skipped where it is not."""

    def support(self, rows: Iterable[Row], note: str = "") -> None:
        """Name the rows that make the value: the numerator, the counted."""

    def denominator(self, rows: Iterable[Row], note: str = "") -> None:
        """Name the rows that the supporting ones are a part of."""

    def counter(self, rows: Iterable[Row], note: str = "") -> None:
        """Name the rows that speak against the value, or were left out."""

    def match(self, row: Row, pattern: str, words: str) -> None:
        """Name a pattern that matched these words in the row's text."""

    def matches(self, matched: Iterable[tuple[Row, str, str]]) -> None:
        """Name many matches (row, pattern, words); the iterable is consumed only when evidence is kept."""

    def bill(self, steps: Iterable[Step], kinds: Collection[Kind]) -> None:
        """Name the model calls whose tokens of these kinds, or whose cost, make the value."""

    def rule(self, text: str) -> None:
        """Name the rule that decided."""


NO_EVIDENCE = Evidence()


class CollectedEvidence(Evidence):
    is_kept = True

    def __init__(self, view: SessionView) -> None:
        self.items: list[Item] = []
        self.totals: dict[str, int] = {}
        self.rules: list[str] = []
        self.billed: dict[int, Collection[Kind]] = {}
        """Kinds of tokens in the value, keyed by the `id` of the model call."""
        self._is_bound = view.undercounted
        self._events = view.session.events
        self._calls = {c.seq: c for c in view.session.tool_calls}

    def support(self, rows: Iterable[Row], note: str = "") -> None:
        self._add("support", rows, note)

    def denominator(self, rows: Iterable[Row], note: str = "") -> None:
        self._add("denominator", rows, note)

    def counter(self, rows: Iterable[Row], note: str = "") -> None:
        self._add("counter", rows, note)

    def match(self, row: Row, pattern: str, words: str) -> None:
        self._add("support", [row], f"{pattern}: “{words}”")

    def matches(self, matched: Iterable[tuple[Row, str, str]]) -> None:
        for row, pattern, words in matched:
            self.match(row, pattern, words)

    def bill(self, steps: Iterable[Step], kinds: Collection[Kind]) -> None:
        self.billed |= {id(step): kinds for step in steps}

    def rule(self, text: str) -> None:
        self.rules.append(text)

    def input(self, path: str, value: Any, is_bound: bool = False) -> None:
        """Add another signal's value that was an input, marked where it is a lower bound."""
        text = f"absent ({value.reason})" if isinstance(value, Absent) else _short(msgspec.json.encode(value).decode())
        self.items.append(Item(None, None, None, f"{path} {'>=' if is_bound else '='} {text}", "input"))

    def _add(self, role: str, rows: Iterable[Row], note: str) -> None:
        for row in rows:
            n = self.totals[role] = self.totals.get(role, 0) + 1
            if n > MOST_ROWS:
                continue
            event = self._events[row.seq] if 0 <= row.seq < len(self._events) else None
            excerpt = cost_formula(row, self._is_bound) if isinstance(row, Step) else self._excerpt(row.seq)
            self.items.append(
                Item(
                    row.seq,
                    event.artifact_id if event else None,
                    event.line if event else None,
                    _short(f"{note} {excerpt}".strip()),
                    role,
                )
            )

    def _excerpt(self, seq: int) -> str:
        call = self._calls.get(seq)
        if call is not None:
            return f"{call.name} {call.command or call.path or call.arguments}"
        return self._events[seq].text or self._events[seq].kind if 0 <= seq < len(self._events) else ""


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= EXCERPT_CHARS else flat[: EXCERPT_CHARS - 1] + "…"


CLOSING_CHARS = 300
"""The last characters of a message, where a question is one to the person
(design/signals.md#questions-to-the-person)."""
_NO_CLARIFYING = frozenset(("confirmation", "offer"))
_CARRIED_OUT = RAN | {"error"}


def closing_question(view: SessionView, response: list[Event]) -> Span | None:
    """Return the last question near a response's end that is neither a request for permission nor an offer."""
    last = next((e for e in reversed(response) if e.kind == "text" and e.text), None)
    if last is None:
        return None
    prose = view.prose
    questions = [s for s in prose.spans_at(last, asked) if s.name not in _NO_CLARIFYING]
    return questions[-1] if questions and prose.end_of(last) - questions[-1].end <= CLOSING_CHARS else None


def cut_short(view: SessionView, seq: int) -> list[Event | ToolCall]:
    """Return interruptions and refusals after an event, without those after which the agent went on. Calls of the same
    step as a refused one were requested together with it, and do not count as going on."""
    last = next((c for c in reversed(view.calls) if c.thread == MAIN and c.status in _CARRIED_OUT), None)
    both: list[Event | ToolCall] = [*view.interrupts, *view.rejected]
    rows = [row for row in both if row.seq > seq]
    if last is None:
        return rows
    return [row for row in rows if row.seq > last.seq or (row.step is not None and row.step == last.step)]


def plan_handed_on(view: SessionView) -> bool:
    """Return whether the session ends with an approved plan, whose work is another session's."""
    last = view.calls[-1] if view.calls else None
    if last is None or last.purpose != "plan_handoff" or last.status != "ok" or last.result_seq is None:
        return False
    return not any(e.kind in OF_AGENT and e.seq > last.result_seq for e in view.events)
