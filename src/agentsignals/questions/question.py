"""The question: queries over the store, a function from their rows to a result, and the parts a result is made of.

A question never sees the store: whoever asks hands in the rows, so each one is tested with rows alone. A `Study` is a
question whose result is shown as findings, tables and charts. Each figure can name the sessions it counts (its
evidence), so that a list of sessions never differs from the number that opens it (design/findings.md#drill-down).
Page, table and tooltip format their numbers by the functions at the end, so that they agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import partial
from itertools import compress, repeat
from math import floor, isfinite, log10
from operator import itemgetter
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from agentsignals.model.lazy import deferred_pattern
from agentsignals.questions.sql import declared
from agentsignals.stats.intervals import Interval, sums

Row = dict[str, Any]
_Made = TypeVar("_Made")
Kind = Literal[
    "text", "count", "tokens", "number", "share", "usd", "bytes", "seconds", "date", "session", "code", "figure"
]
"""Format of a value: `number` has decimals, `tokens` three digits, `session` is an id, `code` a path or a name out of a
trace, `figure` a formatted number, where the rows of a column have different units."""
Context = Literal["product", "eval", "either", "both"]
"""Whose sessions it is about: people's, attempts of eval runs, those of the report's context, or the whole store. Only
questions about files may take both: a figure over people's sessions and eval runs together describes neither."""

LAST = 1000
PLACE_SIGNAL = "user.place"
"""The signal behind the column `place` that the table `sessions` has for questions (`sql.LIES`)."""
SIGNAL_PATH = deferred_pattern(r"'(\w+\.\w+(?:\[\])?)'")
"""A signal's path in SQL."""


# -- results ----------------------------------------------------------------------------------------------------------


class Versions(Struct, frozen=True):
    """Versions that a value was computed with. A newer version of any part may give another value."""

    schema: int
    signals: dict[str, int] = field(default_factory=dict)
    prices: tuple[str, ...] = ()
    """Price tables applied; `recorded` for costs stated in the trace."""


class Finding(Struct, frozen=True, kw_only=True):
    """One number, with everything needed to quote it."""

    id: str
    """Unique among all studies."""
    title: str
    value: int | float | str | None
    """None if it cannot be computed; `note` says why."""
    unit: str
    n: int
    """Number of observations behind the value; `of` names them."""
    of: str
    command: str = ""
    """Recomputes the value from the same store. Without one, `Study.run` puts in the study's report."""
    kind: Kind = "count"
    interval: Interval | None = None
    """At 95 %. None for a plain count, and with too few observations."""
    signals: tuple[str, ...] = ()
    """Signals it is computed from. `Study.run` adds their versions."""
    classes: tuple[str, ...] = ()
    """The values of those signals that it counts; their precision is shown with it."""
    validation: str = ""
    """Measured precision of the signals that claim a meaning; put in by `Study.run`."""
    priced: bool = False
    """True if it depends on prices."""
    note: str = ""
    """Shown with the figure; ends with `caveat`."""
    caveat: str = ""
    """Method and weaknesses of the interval."""
    sessions: tuple[str, ...] = ()
    """The sessions with the largest parts of a share or ratio, at most `estimates.TOP_SESSIONS`."""
    headline: bool = False
    at_least: bool = False
    """True if it is a lower bound, written with `>=`; the note says why."""
    versions: Versions | None = None


class Column(Struct, frozen=True):
    key: str
    label: str
    kind: Kind = "text"


class Table(Struct, frozen=True, kw_only=True):
    id: str
    title: str
    columns: tuple[Column, ...]
    rows: list[list[Any]]
    n: int
    of: str
    note: str = ""


class Form(Struct, frozen=True):
    """Form of a chart's marks (`charts`, `ui.drawing`)."""

    name: str
    kind: Kind
    """Kind of the values: how they are formatted."""
    title: str = ""
    """Title of the axis of values."""
    across: str = ""
    """Title of the other axis."""
    names: tuple[str, ...] = ()
    """Columns of a heatmap; of other forms the names in the order of their colours."""
    span: tuple[str, str] | None = None
    """First and last moment of an axis of time."""


class Chart(Struct, frozen=True, kw_only=True):
    id: str
    title: str
    says: str
    """Alternative text."""
    form: Form
    marks: Sequence[Row]
    n: int
    of: str
    note: str = ""


_Figure = TypeVar("_Figure", Table, Chart)


class Outcome(Struct, frozen=True):
    """The result of a study."""

    findings: list[Finding] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    charts: Sequence[Chart | None] = field(default_factory=list)
    """None stands for a chart with nothing to show; `Study.run` drops it."""
    limits: Sequence[str] | None = None
    """Conclusions that the result does not allow, as sentences. None: the study's own `limits`."""
    validation: dict[str, str] = field(default_factory=dict)
    """Measured precision of each signal among its rows that claims a meaning; put in by `Study.run`."""


# -- questions --------------------------------------------------------------------------------------------------------


class Rows:
    """Rows of a large answer, by column. A row is made a dictionary, of four times the memory, when it is read."""

    def __init__(self, names: Sequence[str], columns: Sequence[Sequence[Any]]) -> None:
        self.names = tuple(names)
        self._columns = dict(zip(names, columns, strict=True))
        self._derived: dict[Callable[[Rows], Any], Any] = {}

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def __iter__(self) -> Iterator[Row]:
        return map(dict, map(zip, repeat(tuple(self._columns)), zip(*self._columns.values(), strict=True)))

    def columns(self, *names: str) -> list[Sequence[Any]]:
        """Return these columns."""
        return [self._columns[name] for name in names]

    def known(self, column: str) -> Rows:
        """Return the rows that have a value of this column."""
        is_known = [value is not None for value in self._columns[column]]
        return Rows([*self._columns], [list(compress(values, is_known)) for values in self._columns.values()])

    def derived(self, make: Callable[[Rows], _Made]) -> _Made:
        """Return what `make` makes of the rows: made once, whichever questions want it."""
        if make not in self._derived:
            self._derived[make] = make(self)
        made: _Made = self._derived[make]
        return made


class Inputs(Struct, frozen=True, kw_only=True):
    """The input of a question's function."""

    rows: Mapping[str, list[Row]]
    """Rows of each query, by its name."""
    versions: Versions = field(default_factory=lambda: Versions(0))
    places: dict[str, str] = field(default_factory=dict)
    """The project of each session where it is known (`sql.PLACE`). Only studies get it."""
    no_traces: Mapping[str, int] = field(default_factory=dict)
    """Files under the sources that are no traces, counted by suffix. The store keeps no row of them."""
    context: str = ""
    """Context of the rows, if the store holds several; commands then name it."""
    labeller: str = ""
    """Labeller asked for; empty for the one with most labels."""
    many: Mapping[str, Rows] = field(default_factory=dict)
    """Rows of the queries in `Question.sliced` and `Question.summed`."""
    unjudged: Mapping[str, str] = field(default_factory=dict)
    """By signal, the share that rules made for English did not judge, as a note (`sql.ENGLISH_ONLY`)."""
    paid: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """With `needs_charges`: dollars by cause (`sql.CAUSES`) and session."""

    def present(self, rows: str, *columns: str) -> list[Any]:
        """Return the values of a column, or tuples of several, from the rows where none is missing."""
        values = map(itemgetter(*columns), self.rows[rows])
        if len(columns) == 1:
            return [value for value in values if value is not None]
        return [several for several in values if None not in several]

    def noted(self, note: str, signals: Iterable[str]) -> str:
        """Return the note of a figure with the share that was not judged of the signals it rests on."""
        shares = {path: self.unjudged[path] for path in signals if path in self.unjudged}
        if len(set(shares.values())) > 1:  # each says what it is of
            shares = {p: f"{p.partition('.')[2].replace('_', ' ')}: {share}" for p, share in shares.items()}
        new = "; ".join(share for share in dict.fromkeys(shares.values()) if share not in note)
        return joined_notes(note, new)


def joined_notes(*notes: str) -> str:
    """Return the notes of a figure as one text: clauses parted by `;`, after a sentence a sentence."""
    made, *more = [note for note in notes if note] or [""]
    for note in more:
        if made.endswith("."):
            made += f" {note[0].upper()}{note[1:].removesuffix('.')}."
        else:
            made += f"; {note}"
    return made


class Question(Struct, frozen=True, kw_only=True):
    """Queries over the store's tables, and a pure function from their rows to a result."""

    name: str
    question: str
    """In the user's words."""
    queries: Mapping[str, str]
    """SQL by the name under which the function finds its rows."""
    function: Callable[[Inputs], Any]
    context: Context = "product"
    needs_charges: bool = False
    """Pass the cost by cause, read once for all questions: `Inputs.paid`."""
    sliced: frozenset[str] = frozenset()
    """Queries whose rows each depend on one session, which they name `session_id`. In a large store they run over a few
    shards at a time, and the rows of a large shard are kept; they come as `Inputs.many`, in any order. Their table
    `sessions` has no column `place`."""
    summed: frozenset[str] = frozenset()
    """Queries whose rows are sums over sessions, some for each shard. As with `sliced`, `sessions` has no `place` and
    `signals` no values across sessions."""
    why_none: Callable[[Inputs], str] | None = None
    """Return why there was nothing to answer."""

    @property
    def signals(self) -> frozenset[str]:
        """Signals whose values it needs: those its queries name between quotes, and that of the column `place`."""
        return frozenset(path for sql in self.queries.values() for path in SIGNAL_PATH.findall(sql)) | {PLACE_SIGNAL}

    def answer(self, ask: Callable[[str], list[Row]]) -> Any:
        """Run the queries through `ask`, and return what the function makes of the rows."""
        return self.function(Inputs(rows={name: ask(sql) for name, sql in self.queries.items()}))


class Study(Question, frozen=True, kw_only=True):
    """A question over many sessions, answered with findings, tables and charts."""

    title: str
    function: Callable[[Inputs], Outcome]
    context: Context = "either"
    limits: tuple[str, ...] = ()
    """Conclusions that it never allows, whatever the rows are."""
    order: int = LAST
    """Position in the report."""

    def run(self, inputs: Inputs) -> Outcome:
        """Return the study's result, each finding with the versions it rests on, without empty tables and charts."""
        from agentsignals.signals.catalog import caption  # noqa: PLC0415  (reading kept findings must not load the signals)
        from agentsignals.stats.validation import misleads  # noqa: PLC0415

        outcome, known = self.function(inputs), inputs.versions
        named = sorted({path for sql in self.queries.values() for path in SIGNAL_PATH.findall(sql)})
        findings = []
        for finding in outcome.findings:
            used = {path: known.signals[path] for path in finding.signals if path in known.signals}
            command = finding.command or f"agentsignals report --study {self.name} -o {self.name}.json"
            for verb in ("query", "report") if inputs.context else ():
                command = command.replace(
                    f"agentsignals {verb} ", f"agentsignals {verb} --context {inputs.context} ", 1
                )
            in_words = declared("finding", finding.id)
            captions = (caption(path, finding.classes) for path in finding.signals)
            is_misleading = any(misleads(path, finding.classes) for path in finding.signals)
            stamped = replace(
                finding,
                versions=Versions(known.schema, used, known.prices if finding.priced else ()),
                command=command,
                validation=finding.validation or "; ".join(filter(None, captions)),
                headline=finding.headline and not is_misleading,
                note=inputs.noted(finding.note, () if in_words.get("any_language") else finding.signals),
            )
            findings.append(stamped)

        def noted(figure: _Figure, kind: str) -> _Figure:
            return replace(figure, note=inputs.noted(figure.note, declared(kind, figure.id).get("signals", ())))

        return replace(
            outcome,
            findings=findings,
            tables=[noted(table, "table") for table in outcome.tables if table.rows],
            charts=[noted(chart, "chart") for chart in outcome.charts if chart is not None],
            limits=list(self.limits if outcome.limits is None else outcome.limits),
            validation={path: words for path in named if (words := caption(path))},
        )


# -- evidence: the sessions that a figure counts, collected only while somebody asks ----------------------------------


Part = tuple[str, float, float]
"""Session, k and n: its part of a numerator and of a denominator."""


class EvidenceQuery(NamedTuple):
    """A query for the sessions behind a figure whose rows are sums over sessions. It returns session_id and n."""

    sql: str
    values: dict[str, Any]
    parts: Sequence[float] = ()
    """The sessions' parts of the figure, where they are known without asking."""


class NoSessions(NamedTuple):
    """Marks a figure that counts no sessions, with the reason."""

    reason: str


EvidenceRows: TypeAlias = "Iterable[str | Part | Row]"
"""Session ids, parts, or rows with a session_id, which count their `n` where they have one, else 1, and of that `k`
where they have one, else all."""
Evidence: TypeAlias = "EvidenceRows | Callable[[], EvidenceRows] | EvidenceQuery | NoSessions"
"""A function builds its parts on demand: the windows of a line chart hold each observation many times."""
Ask = Callable[[str, Mapping[str, Any]], list[Row]]
LONGEST_NAME = 80
_IN_BRACKETS = deferred_pattern(r" \([^()]*\)$")
_marks: ContextVar[dict[int, tuple[Row, Evidence]]] = ContextVar("marks")
_notes: ContextVar[dict[str, Evidence] | None] = ContextVar("notes", default=None)


@contextmanager
def collecting_evidence() -> Iterator[dict[str, Evidence]]:
    """Collect the evidence of each figure of the studies that run meanwhile."""
    notes: dict[str, Evidence] = {}
    tokens = _notes.set(notes), _marks.set({})
    try:
        yield notes
    finally:
        _notes.reset(tokens[0])
        _marks.reset(tokens[1])


def note_evidence(name: str, evidence: Evidence | None) -> None:
    """Note the sessions of a figure, by its id, or of a table's row, by the table's id, a colon and the row's name."""
    notes = _notes.get()
    if notes is not None and evidence is not None:
        notes[name] = evidence


def note_row_evidence(table: Table, evidence: Sequence[Evidence | None] | NoSessions) -> None:
    if _notes.get() is None:
        return
    each = [evidence] * len(table.rows) if isinstance(evidence, NoSessions) else evidence
    for name, counted in zip(row_names(table), each, strict=True):
        note_evidence(f"{table.id}:{name}", counted)


def mark(made: Row, evidence: Evidence | None) -> Row:
    """Note the sessions that a chart's mark counts, and return it; `note_chart_evidence` says which chart it is of."""
    if _notes.get() is not None and evidence is not None:
        _marks.get()[id(made)] = made, evidence
    return made


def note_chart_evidence(chart: str, marks: Sequence[Row]) -> None:
    """Note the sessions of a chart's marks, by the chart's id."""
    if _notes.get() is None:
        return
    for name, mark in zip(mark_names(marks), marks, strict=True):
        if id(mark) in _marks.get():
            note_evidence(f"{chart}:{name}", _marks.get()[id(mark)][1])


def ranked_evidence(evidence: Evidence, ask: Ask) -> dict[str, tuple[float, float]]:
    """Return k and n of each session that has any, largest k first, then by id."""
    return dict(sorted(evidence_sums(evidence, ask).items(), key=lambda item: (-item[1][0], item[0])))


def evidence_sums(evidence: Evidence, ask: Ask) -> dict[str, tuple[float, float]]:
    """Return k and n of each session that has any, unordered."""
    sessions, ks, ns = evidence_columns(evidence, ask)
    of_k = sums(sessions, ks)
    return {session_id: (of_k[session_id], n) for session_id, n in sums(sessions, ns).items() if n or of_k[session_id]}


def evidence_columns(evidence: Evidence, ask: Ask) -> tuple[Sequence[str], Sequence[float], Sequence[float]]:
    """Return the sessions of evidence with their k and n; a session may be there several times."""
    rows = ask(evidence.sql, evidence.values) if isinstance(evidence, EvidenceQuery) else evidence
    if isinstance(rows, partial) and rows.func is zip and all(isinstance(column, Sequence) for column in rows.args):
        sessions, ks, ns = rows.args
        return sessions, ks, ns
    held: list[Any] = [] if isinstance(rows, NoSessions) else list(rows() if callable(rows) else rows)
    kinds = set(map(type, held))
    if kinds <= {str}:
        return held, [1] * len(held), [1] * len(held)
    if kinds == {dict}:
        ns = [row.get("n", 1) for row in held]
        return [row["session_id"] for row in held], [row.get("k", n) for row, n in zip(held, ns, strict=True)], ns
    if kinds != {tuple}:
        held = [
            part
            if isinstance(part, tuple)
            else (part, 1, 1)
            if isinstance(part, str)
            else (part["session_id"], part.get("k", part.get("n", 1)), part.get("n", 1))
            for part in held
        ]
    return [s for s, _, _ in held], [k for _, k, _ in held], [n for _, _, n in held]


def row_names(table: Table) -> list[str]:
    """Return a unique name for each row: the cells before its first figure, numbered if they repeat."""
    first = next((i for i, column in enumerate(table.columns) if column.kind not in ("text", "code", "session")), None)
    return _unique_names([row[: first or 1] for row in table.rows])


def mark_names(marks: Sequence[Row]) -> list[str]:
    """Return a unique name for each mark of a chart: its name without the figure in brackets, and its position."""

    def position(mark: Row) -> Any:
        day: str | None = mark.get("from")
        return mark.get("at", mark.get("column", day and day[:10]))

    return _unique_names([[_IN_BRACKETS.sub("", str(mark.get("name"))), position(mark)] for mark in marks])


def _unique_names(rows: list[list[Any]]) -> list[str]:
    from agentsignals.redaction import redacted  # noqa: PLC0415  (0.1 s that a run over nothing new saves)

    names: dict[str, int] = {}
    shown: list[str] = []
    for cells in rows:
        name = " · ".join(redacted(str(cell)) for cell in cells if cell is not None)[:LONGEST_NAME]
        names[name] = names.get(name, 0) + 1
        shown.append(name if names[name] == 1 else f"{name} ({names[name]})")
    return shown


MISSING = "–"
AT_LEAST = ">= "


class AtLeast(Struct, frozen=True):
    """A figure in a table that is a lower bound, shown and encoded as one."""

    at_least: float


def with_bound(value: float | None, is_bound: bool) -> float | AtLeast | None:
    """Mark a figure as a lower bound if it is one."""
    return AtLeast(value) if is_bound and value is not None else value


_SMALL_USD, _MOST_DIGITS = 0.001, 12
"""Smaller dollar amounts get two significant digits, up to so many decimals, so that only 0 is written as 0."""
_UNITS = (("G", 1e9), ("M", 1e6), ("k", 1e3))


def without_bound(value: Any) -> Any:
    """Return the figure without its lower-bound mark."""
    return value.at_least if isinstance(value, AtLeast) else value


def formatted(value: Any, kind: Kind, at_least: bool = False) -> str:
    """Format a value of this kind; a dash if it is missing. `at_least`: it is a lower bound."""
    if value is None:
        return MISSING
    if isinstance(value, AtLeast):
        value, at_least = without_bound(value), True
    if at_least:
        return AT_LEAST + formatted(value, kind)
    if isinstance(value, str):
        return value
    writer = _WRITERS.get(kind)
    return writer(value) if writer else str(value)


def interval(
    low: float | None, high: float | None, form: str | Callable[[float], str] = "{:.0%}", shown: str = "{}"
) -> str:
    """Format the ends of an interval, `37% to 96%`, in the text where it is `shown`; empty without ends."""
    write = form.format if isinstance(form, str) else form
    return "" if low is None or high is None else shown.format(f"{write(low)} to {write(high)}")


def part_text(n: int, of: int, low: float | None, high: float | None) -> str:
    """Format a part of a whole with its interval: `7 of 12, 58.3% (31% to 82%)`."""
    return f"{n:,} of {of:,}, {formatted(n / of, 'share')}{interval(low, high, shown=' ({})')}"


def times(n: int | None, singular: str, many: str = "") -> str:
    """A count with its noun: `1 call`, `2 calls`."""
    return f"{n or 0:,} {singular if n == 1 else many or singular + 's'}"


def cut(text: str, most: int) -> str:
    """Return at most so many characters of a text; a longer one ends in …"""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def singular(nouns: str) -> str:
    """Return plural nouns for a count of one: `turn with a call` of `turns with a call`."""
    return _PLURAL.sub(lambda word: f"{word[1]}y" if word[2] == "ies" else word[1], nouns, count=1)


_PLURAL = deferred_pattern(r"\b(\w+?(?:ss|ch|x)(?=es\b)|\w+?(?=ies\b)|\w*[a-rt-z](?=s\b))(ies|es|s)\b")


def signed(value: float | None, kind: Kind) -> str:
    """Format a difference with its sign."""
    if not value:
        return formatted(value, kind)
    return ("+" if value > 0 else "-") + formatted(abs(value), kind)


def number(value: float) -> str:
    """Return a number with three significant digits at least, thousands separated, never with an exponent."""
    if not isfinite(value):
        return str(value)
    size = abs(value)
    if size >= 100 or value == int(value):
        return f"{value:,.0f}"
    if size < _TINY:
        return f"{'-' if value < 0 else ''}<{_TINY:f}"
    return f"{value:.{2 - floor(log10(size))}f}".rstrip("0").rstrip(".")


_TINY = 0.000001


def _tokens(value: float) -> str:
    for letter, size in _UNITS:
        if value >= size:
            return f"{value / size:.3g} {letter}" if value < 1000 * size else f"{value / size:,.0f} {letter}"
    return f"{value:,.0f}"


def _usd(value: float) -> str:
    if 0 < value < 0.01:
        return f"${value:.4f}" if value >= _SMALL_USD else f"${value:.{min(_MOST_DIGITS, 1 - floor(log10(value)))}f}"
    return f"${value:,.2f}" if value < 1000 else f"${value:,.0f}"


def _bytes(value: float) -> str:
    for letter, size in _UNITS:
        if value >= size:
            return f"{value / size:,.1f} {letter}B"
    return f"{value:.0f} B"


def _seconds(value: float) -> str:
    if value < 120:
        return f"{value:.0f} s" if value >= 10 else f"{value:.1f} s"
    return f"{value / 60:.1f} min" if value < 7200 else f"{value / 3600:.1f} h"


_WRITERS: dict[Kind, Callable[[Any], str]] = {
    "count": lambda value: f"{value:,.0f}" if float(value).is_integer() else number(value),
    "number": number,
    "tokens": _tokens,
    "share": lambda value: "<0.1%" if 0 < value < 0.001 else f"{value:.1%}",
    "usd": _usd,
    "bytes": _bytes,
    "seconds": _seconds,
    "date": lambda value: f"{value:%Y-%m-%d}" if isinstance(value, datetime) else str(value),
}
