"""What a study is: a question, the rows it needs, and a pure function from rows to findings, tables and charts.

A study asks for rows in SQL over the store's tables and never sees the store: whoever runs it hands the rows in. So a
new study is one file in `studies/`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from agentsignals.stats.estimates import Interval

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
    from agentsignals.catalog import caption  # noqa: PLC0415  (what was found is read without the signals)
    from agentsignals.validation import misleads  # noqa: PLC0415

    captions = (caption(path, finding.classes) for path in finding.signals)
    validation = finding.validation or "; ".join(filter(None, captions))
    headline = finding.headline and not any(misleads(path, finding.classes) for path in finding.signals)
    return replace(finding, versions=versions, command=command, validation=validation, headline=headline)


def _validation(queries: Iterable[str]) -> dict[str, str]:
    """The captions of the signals that the queries name."""
    from agentsignals.catalog import caption  # noqa: PLC0415  (as above)

    named = sorted({path for sql in queries for path in SIGNAL.findall(sql)})
    return {path: words for path in named if (words := caption(path))}
