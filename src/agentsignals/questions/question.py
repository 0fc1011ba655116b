"""What a study is: a question, the rows it needs, and a pure function from rows to findings, tables and charts.

A study asks for rows in SQL over the store's tables and never sees the store: whoever runs it hands the rows in. So a
new study is one file in `studies/`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import repeat
from operator import itemgetter
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from agentsignals.stats.intervals import Interval

Row = dict[str, Any]
Kind = Literal[
    "text", "count", "tokens", "number", "share", "usd", "bytes", "seconds", "date", "session", "code", "figure"
]
"""How a value is written: `number` has decimals, `tokens` are rounded to three figures, `session` is an id, `code` a
path or a name out of a trace, `figure` a number in words already, where the rows of a column have different units."""
Context = Literal["product", "eval", "either", "both"]
"""Whose sessions a study is about: people's, attempts of eval runs, those of the report's context, or the whole store.
Only what is said of files may be of both: a figure over people's sessions and eval runs together tells of neither."""


BEHIND_ALL = 1000
SIGNAL = re.compile(r"'(\w+\.\w+(?:\[\])?)'")
"""A signal's path as SQL has it."""


class Versions(Struct, frozen=True):
    """What a value was computed with; a newer version of any of it may give another value."""

    schema: int
    signals: dict[str, int] = field(default_factory=dict)
    prices: tuple[str, ...] = ()
    """Price tables applied; `recorded` for costs the trace itself states."""


class Finding(Struct, frozen=True, kw_only=True):
    """One number, with everything needed to quote it."""

    id: str
    """Unique among all studies."""
    title: str
    value: float | str | None
    """None when it can't be computed; `note` says why."""
    unit: str
    n: int
    """How many observations the value rests on; `of` says of what."""
    of: str
    command: str = ""
    """Makes the value again from the same store; where no single query does, the study's report, which `Study.run` puts
    in."""
    kind: Kind = "count"
    interval: Interval | None = None
    """At 95 percent; None for a plain count, and where there is too little to say."""
    signals: tuple[str, ...] = ()
    """The signals it is made of; their versions are put in when the study is run."""
    classes: tuple[str, ...] = ()
    """The values of those signals that it counts; how often these were right stands beside it."""
    validation: str = ""
    """What it rests on and how often that was right, where a signal claims a meaning; put in when the study is run."""
    priced: bool = False
    """Whether it rests on prices."""
    note: str = ""
    """What a reader has to know beside the figure, `caveat` at its end."""
    caveat: str = ""
    """What the interval rests on, and what speaks against the figure."""
    sessions: tuple[str, ...] = ()
    """Those that make most of a share or a ratio, at most `grouped.MOST_BEHIND`: where to look first."""
    headline: bool = False
    at_least: bool = False
    """Whether it is a lower bound, and is written with `>=`; the note says why."""
    versions: Versions | None = None


class Column(Struct, frozen=True):
    """A column of a table."""

    key: str
    label: str
    kind: Kind = "text"


class Table(Struct, frozen=True, kw_only=True):
    """Rows to look something up in."""

    id: str
    title: str
    columns: tuple[Column, ...]
    rows: list[list[Any]]
    n: int
    of: str
    note: str = ""


class Chart(Struct, frozen=True, kw_only=True):
    """A picture of rows: a Vega-Lite specification without colours or fonts, which belong to the page."""

    id: str
    title: str
    says: str
    """What it shows, in words, for those who can't see it."""
    spec: dict[str, Any]
    n: int
    of: str
    note: str = ""


class Outcome(Struct, frozen=True):
    """What a study found."""

    findings: list[Finding] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    """What can't be concluded from it, as sentences."""
    validation: dict[str, str] = field(default_factory=dict)
    """Of each signal among its rows that claims a meaning, how often it was right; put in when the study is run."""


class Rows:
    """Rows of an answer that has many of them: each is made when it is read, as dictionaries they take four times the
    memory."""

    def __init__(self, names: Sequence[str], values: Sequence[tuple[Any, ...]]) -> None:
        self._names, self._values = names, values

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Row]:
        return map(dict, map(zip, repeat(self._names), self._values))


class Inputs(Struct, frozen=True, kw_only=True):
    """What a study is given."""

    rows: Mapping[str, list[Row]]
    """The rows of each of the study's queries, by name."""
    versions: Versions
    places: dict[str, str] = field(default_factory=dict)
    """Where each session lies whose place is known (`rows.PLACE`): one mapping for all studies of a context; none for a
    question."""
    no_traces: Mapping[str, int] = field(default_factory=dict)
    """Files under the sources that are no traces, counted by their ending; the store keeps no row of them."""
    context: str = ""
    """The context the rows are of, where the store holds both; commands then name it."""
    labeller: str = ""
    """Whose labels studies of labels are to take; empty for the labeller with most of them."""
    many: Mapping[str, Iterable[Row]] = field(default_factory=dict)
    """The rows of those queries of a question that are asked by slices (`ranking.Question.sliced`), which may be
    read several times."""
    paid: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Of a question that `needs_charges`: by cause of the bill (`cost_causes.CAUSES`) what each session paid for it."""

    def present(self, rows: str, *columns: str) -> list[Any]:
        """The values of a column, or tuples of several, of the rows where none is missing."""
        values = map(itemgetter(*columns), self.rows[rows])
        if len(columns) == 1:
            return [value for value in values if value is not None]
        return [several for several in values if None not in several]


class Study(Struct, frozen=True, kw_only=True):
    """A question answered over many sessions."""

    name: str
    title: str
    question: str
    queries: Mapping[str, str]
    """SQL over the store's tables by the name the function uses."""
    function: Callable[[Inputs], Outcome]
    context: Context = "either"
    needs_charges: bool = False
    """Whether its rows hold the bill by cause, too, as `charges` (`cost_causes.charged`): made once for all."""
    place: int = BEHIND_ALL
    """Where it stands in the report: behind those of lower places."""

    def run(self, inputs: Inputs) -> Outcome:
        """What it finds in these rows: each finding with the versions it rests on, and no table without a row."""
        outcome = self.function(inputs)
        findings = [_stamped(f, inputs, self.name) for f in outcome.findings]
        tables = [t for t in outcome.tables if t.rows]
        return replace(outcome, findings=findings, tables=tables, validation=_validation(self.queries.values()))


def again_in_report(study: str) -> str:
    """The command that makes a value again that no single query gives."""
    return f"agentsignals report --study {study} -o {study}.json"


def again(sql: str) -> str:
    """The command that asks the store this question; the first cell of the answer is the value."""
    return f'agentsignals query "{sql}"'


def _stamped(finding: Finding, inputs: Inputs, study: str) -> Finding:
    store_versions = inputs.versions
    used = {path: store_versions.signals[path] for path in finding.signals if path in store_versions.signals}
    versions = Versions(store_versions.schema, used, store_versions.prices if finding.priced else ())
    command = finding.command or again_in_report(study)
    if inputs.context:
        for verb in ("query", "report"):
            command = command.replace(f"agentsignals {verb} ", f"agentsignals {verb} --context {inputs.context} ", 1)
    from agentsignals.signals.catalog import caption  # noqa: PLC0415  (what was found is read without the signals)
    from agentsignals.stats.validation import misleads  # noqa: PLC0415

    captions = (caption(path, finding.classes) for path in finding.signals)
    validation = finding.validation or "; ".join(filter(None, captions))
    headline = finding.headline and not any(misleads(path, finding.classes) for path in finding.signals)
    return replace(finding, versions=versions, command=command, validation=validation, headline=headline)


def _validation(queries: Iterable[str]) -> dict[str, str]:
    """The captions of the signals that the queries name."""
    from agentsignals.signals.catalog import caption  # noqa: PLC0415  (as above)

    named = sorted({path for sql in queries for path in SIGNAL.findall(sql)})
    return {path: words for path in named if (words := caption(path))}


# The sessions that a number counts: what a study notes of its figures while somebody asks, and at no other time.
#
# A study says it where it makes the figure: an `Estimate` of `clusters` knows its parts, `count`, `bar` and `table`
# take theirs as `behind`. So a list of sessions can't differ from the number that opens it
# (design/findings.md#drill-down).

Part = tuple[str, float, float]
"""Session, k, n: what it has of a numerator, and of what that is of."""


class Asked(NamedTuple):
    """A question to the store, where a study's rows are sums over sessions: rows of session_id and n."""

    sql: str
    values: dict[str, Any]


class Closed(NamedTuple):
    """What counts no sessions, and why."""

    reason: str


Each: TypeAlias = "Iterable[str | Part | Row]"
"""Ids; parts; rows with a session_id, each of which counts its `n` where it has one, and else for one."""
Counted: TypeAlias = "Each | Callable[[], Each] | Asked | Closed"
"""A function makes its parts when they are asked for: the windows of a line hold each observation many times."""
Ask = Callable[[str, Mapping[str, Any]], list[Row]]
LONGEST_NAME = 80
_IN_BRACKETS = re.compile(r" \([^()]*\)$")
_marks: ContextVar[dict[int, tuple[Row, Counted]]] = ContextVar("marks")
_notes: ContextVar[dict[str, Counted] | None] = ContextVar("notes", default=None)


def note_sessions(name: str, counted: Counted | None) -> None:
    """The sessions of a figure, by its id, or a table's id and the name of its row, parted by a colon."""
    notes = _notes.get()
    if notes is not None and counted is not None:
        notes[name] = counted


def note_rows(table: Table, behind: Sequence[Counted | None] | Closed) -> None:
    """The sessions of each row of a table."""
    if _notes.get() is None:
        return
    each = [behind] * len(table.rows) if isinstance(behind, Closed) else behind
    for name, counted in zip(row_names(table), each, strict=True):
        note_sessions(f"{table.id}:{name}", counted)


def note_mark(mark: Row, counted: Counted | None) -> None:
    """The sessions of a chart's mark; `note_marks` tells which chart it is of."""
    if _notes.get() is not None and counted is not None:
        _marks.get()[id(mark)] = mark, counted


def note_marks(chart: str, marks: Sequence[Row]) -> None:
    """The sessions of the marks of a chart, by its id, as far as they were told."""
    if _notes.get() is None:
        return
    for name, mark in zip(mark_names(marks), marks, strict=True):
        if id(mark) in _marks.get():
            note_sessions(f"{chart}:{name}", _marks.get()[id(mark)][1])


@contextmanager
def noting() -> Iterator[dict[str, Counted]]:
    """What each figure of the studies that run meanwhile counts."""
    notes: dict[str, Counted] = {}
    tokens = _notes.set(notes), _marks.set({})
    try:
        yield notes
    finally:
        _notes.reset(tokens[0])
        _marks.reset(tokens[1])


def parts_of(counted: Counted, ask: Ask) -> dict[str, tuple[float, float]]:
    """k and n of each session that has any, largest k first; of equal ones by id."""
    return dict(sorted(sums_of(counted, ask).items(), key=lambda item: (-item[1][0], item[0])))


def sums_of(counted: Counted, ask: Ask) -> dict[str, tuple[float, float]]:
    """The same in no order."""
    rows = ask(counted.sql, counted.values) if isinstance(counted, Asked) else counted
    each = () if isinstance(rows, Closed) else rows() if callable(rows) else rows
    sums: dict[str, tuple[float, float]] = {}
    for session_id, k, n in map(_part, each):
        if n or k:
            before = sums.get(session_id, (0, 0))
            sums[session_id] = before[0] + k, before[1] + n
    return sums


def _part(counted: str | Part | Row) -> Part:
    if isinstance(counted, str):
        return counted, 1, 1
    if isinstance(counted, tuple):
        return counted
    n: float = counted.get("n", 1)
    return counted["session_id"], n, n


def row_names(table: Table) -> list[str]:
    """What each row is called: the cells in front of its first figure, and of those called alike which it is."""
    first = next((i for i, column in enumerate(table.columns) if column.kind not in ("text", "code", "session")), None)
    return _told_apart([row[: first or 1] for row in table.rows])


def mark_names(marks: Sequence[Row]) -> list[str]:
    """What each mark of a chart is called: its name without the figure in brackets, and where it stands: its column,
    its place in a row, or the day it begins."""
    return _told_apart([[_IN_BRACKETS.sub("", str(mark.get("name"))), _stands(mark)] for mark in marks])


def _stands(mark: Row) -> Any:
    day: str | None = mark.get("from")
    return mark.get("at", mark.get("column", day and day[:10]))


def _told_apart(rows: list[list[Any]]) -> list[str]:
    from agentsignals.redaction import without_keys  # noqa: PLC0415  (0.1 s, which a run over nothing new does without)

    names: dict[str, int] = {}
    shown: list[str] = []
    for cells in rows:
        name = " · ".join(without_keys(str(cell)) for cell in cells if cell is not None)[:LONGEST_NAME]
        names[name] = names.get(name, 0) + 1
        shown.append(name if names[name] == 1 else f"{name} ({names[name]})")
    return shown
