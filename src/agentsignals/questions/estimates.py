"""Estimates over sessions: shares, ratios and medians with intervals, which become findings, table rows and chart
marks.

A study declares its question, its SQL and its texts. An `Estimate` carries everything that makes a figure quotable:
interval, n, caveat and evidence. It becomes a finding (`finding`), cells of a row (`value`, `*ends`) or a mark
(`mark`), so a chart, a table and a finding of one thing never differ. Intervals take projects as the sampling unit,
because sessions of one repository or folder are alike; if too few projects are known they take sessions, and the note
says so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from heapq import nlargest, nsmallest
from itertools import repeat
from math import fsum, isclose
from operator import itemgetter, mul
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from agentsignals.questions import sql
from agentsignals.questions.question import (
    Chart,
    Column,
    Evidence,
    EvidenceQuery,
    Finding,
    Form,
    Inputs,
    Kind,
    NoSessions,
    Part,
    Row,
    Table,
    evidence_columns,
    formatted,
    joined_notes,
    mark,
    note_chart_evidence,
    note_evidence,
    note_row_evidence,
    times,
    without_bound,
)
from agentsignals.stats.intervals import (
    FEWEST_CLUSTERS,
    Clustered,
    Interval,
    clustered_kinds,
    clustered_median_interval,
    clustered_sums,
    median,
    nonzero_sums,
    ratio_interval,
    share_interval,
    sums,
)

TOP_SESSIONS = 5
"""Sessions that a finding names (this project's choice: one screen)."""
INTERVAL_NOTE = (
    "lines are 95% intervals over projects: few projects make a long line, however many there are in brackets"
)


class Estimate(Struct, frozen=True, kw_only=True):
    """A figure over observations, with its 95 % interval and its evidence."""

    value: float | str | None
    n: float
    kind: Kind = "share"
    k: float = 0
    """Numerator of a share."""
    interval: Interval | None = None
    note: str = ""
    """Method and weaknesses of the interval."""
    counted: Any = None
    """The sessions it counts, as `Evidence`."""
    is_sum: bool = False
    """True if `counted` are parts of a sum, of which a finding names the largest."""

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """Both ends of the interval, as cells of a row."""
        return self.interval or (None, None)

    def finding(self, id: str, title: str = "", of: str = "", note: str = "", **more: Any) -> Finding:  # noqa: A002  (the finding's field)
        """Return the figure as a finding. Fields that are not given are those that the study's `.sql` file declares.

        `sql`: a query whose first cell is the value; without it the study's report recomputes it. The unit of a share
        is `share of` its denominator, unless `more` says otherwise.
        """
        fields = sql.declared("finding", id) | _given(title=title, of=of, note=note) | more
        query = fields.pop("sql", "")
        fields.pop("any_language", None)  # `Study.run` reads it
        note_evidence(id, self.counted)
        parts = _Parts(self.counted)
        base: dict[str, Any] = {
            "unit": f"share of {fields['of']}",
            "command": f'agentsignals query "{query}"' if query else "",
            "kind": self.kind,
            "caveat": self.note,
            "sessions": _largest(parts.by_session) if self.is_sum else (),
        }
        # Few sessions may make most of the total.
        total, kind = (self.k, "count") if self.kind == "share" else (self.value, self.kind)
        few = ""
        if isinstance(total, int | float) and (kind != "count" or total > 1):
            of_few = parts.ruled(total)
            few = of_few.sentence(partial(formatted, kind=kind)) if of_few and of_few.sessions >= _FEWEST else ""
        fields["note"] = joined_notes(few, fields.get("note") or "", self.note)
        return Finding(id=id, value=self.value, n=int(self.n), interval=self.interval, **base | fields)

    def mark(self, name: str, tip: str, **more: Any) -> Row:
        """Return the figure with its interval as a row of a chart."""
        low, high = self.ends
        return mark({"name": name, "value": self.value, "low": low, "high": high, "tip": tip, **more}, self.counted)

    def words(self, of: str = "") -> str:
        """Return a share as text: `3 of 10 calls, 30.0%`."""
        whole = f"{self.n:,.0f} {of}".rstrip()
        return f"{self.k:,.0f} of {whole}, {formatted(self.value, 'share')}"


def count(value: float | str | None, n: int, kind: Kind = "count", *, evidence: Evidence | None) -> Estimate:
    """Return a plain count, sum or name, without an interval. `evidence`: the sessions it counts."""
    return Estimate(value=value, n=n, kind=kind, counted=evidence)


# -- rows --------------------------------------------------------------------------------------------------------------


def by(rows: Iterable[Row], *keys: str) -> dict[Any, list[Row]]:
    """Group rows by a column, or by tuples of several, in order of appearance."""
    groups: defaultdict[Any, list[Row]] = defaultdict(list)
    key = itemgetter(*keys)
    for row in rows:
        groups[key(row)].append(row)
    return dict(groups)


def tally(rows: Iterable[Row], *keys: str, weight: str = "n") -> Counter[Any]:
    """Sum a column by another one, or by tuples of several."""
    counted: defaultdict[Any, Any] = defaultdict(int)
    key = itemgetter(*keys)
    for row in rows:
        counted[key(row)] += row[weight]
    return Counter(counted)


def n_sessions(rows: Iterable[Row]) -> int:
    return len({row["session_id"] for row in rows})


def top_sessions(parts: Iterable[tuple[str, float]]) -> tuple[str, ...]:
    """Return the sessions with the largest parts of a sum over (session, part)."""
    held = list(parts)
    return _largest(nonzero_sums([session_id for session_id, _ in held], [part for _, part in held]))


def _largest(counted: Mapping[str, float]) -> tuple[str, ...]:
    largest = nlargest(TOP_SESSIONS, counted.values())
    # Of many sessions, equal ones above all, only those that may be among the first are put in order.
    most = {session_id: part for session_id, part in counted.items() if part > 0 and part > largest[-1]}
    as_much = [session_id for session_id, part in counted.items() if part == largest[-1] > 0]
    return tuple(s for s, _ in ranked(most)) + tuple(nsmallest(TOP_SESSIONS - len(most), as_much))


RULED = 0.5
"""Share of a total from which its largest sessions rule it."""
_TOTALS = frozenset(("usd", "tokens", "seconds", "bytes", "count"))
_LARGEST = 0.01
"""The largest sessions of a total: one in a hundred, at least one."""


class Ruled(NamedTuple):
    """A total that few sessions make most of."""

    few: int
    part: float
    share: float
    middle: float
    """Part of the median session, of those that have one."""
    sessions: int

    def sentence(self, written: Callable[[float], str]) -> str:
        """Compare the largest sessions with the median one. `written`: an amount as text, with its unit."""
        if self.sessions == 1:
            return "One session accounts for all of it."
        few = "One session accounts" if self.few == 1 else f"The largest {self.few:,} sessions account"
        part = f"{written(self.part)} ({formatted(self.share, 'share')} of the total)"
        return f"{few} for {part}. The median session accounts for {written(self.middle)}."


def ruled(parts: Iterable[tuple[str, float]]) -> Ruled | None:
    """Return how much the largest one per cent of the sessions, at least one, make of a sum over (session, part). None
    if it is no more than half."""
    held = list(parts)
    return _ruled_sum(nonzero_sums([session_id for session_id, _ in held], [part for _, part in held]).values())


def _ruled_sum(parts: Iterable[float]) -> Ruled | None:
    counted = sorted([part for part in parts if part > 0])
    total = fsum(counted)
    few = max(1, int(_LARGEST * len(counted)))
    part = fsum(counted[-few:])
    middle = median(counted)
    if middle is None or part <= RULED * total:
        return None
    return Ruled(few, part, part / total, middle, len(counted))


class _Parts:
    """The parts of a figure, as its evidence tells them. They are summed by session where that is asked for."""

    def __init__(self, evidence: Evidence | None) -> None:
        self._sessions: Sequence[str] = ()
        self._ks: Sequence[float] = evidence.parts if isinstance(evidence, EvidenceQuery) else ()
        if evidence is not None and not isinstance(evidence, NoSessions | EvidenceQuery):
            self._sessions, self._ks, _ = evidence_columns(evidence, lambda *_: [])
        self._total = fsum(self._ks)

    @cached_property
    def by_session(self) -> Mapping[str, float]:
        return nonzero_sums(self._sessions, self._ks)

    def ruled(self, total: float) -> Ruled | None:
        """Return how much few sessions make of a total; None where these are no parts of it, or few make half at
        most."""
        if not isclose(self._total, total, rel_tol=1e-6):
            return None
        return _ruled_sum(self.by_session.values() if self._sessions else self._ks)


_MOST_NAMED, _FEWEST = 5, 3
"""Named rows of a table that few sessions rule; sessions from which a figure can be ruled: of two one has half."""


def _ruled_rows(made: Table, evidence: Sequence[Evidence | None]) -> str:
    """Name the rows whose total few sessions make most of, largest total first."""
    found: list[tuple[float, str]] = []
    for row, counted in zip(made.rows, evidence, strict=True):
        parts: _Parts | None = None
        for column, cell in zip(made.columns, map(without_bound, row), strict=True):
            if column.kind not in _TOTALS or not isinstance(cell, int | float) or cell <= (column.kind == "count"):
                continue
            parts = _Parts(counted) if parts is None else parts
            few = parts.ruled(cell)
            if few is not None and few.sessions >= _FEWEST:
                name = next((str(name) for name in row if isinstance(name, str)), "")
                words = f"{formatted(few.share, 'share')}; median session {formatted(few.middle, column.kind)}"
                found.append((few.share, f"{name} ({words})"))
                break
    found.sort(key=lambda each: -each[0])
    more = f" and {len(found) - _MOST_NAMED:,} more" if len(found) > _MOST_NAMED else ""
    named = ", ".join(words for _, words in found[:_MOST_NAMED])
    return f"One session (or the largest 1%) makes up most of: {named}{more}." if found else ""


def ranked(counted: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """Return the pairs with the largest values first, then by name."""
    return sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))


def listing(counted: Mapping[str, int]) -> str:
    """Format counts for a cell: `codex 3, pi 1`."""
    return ", ".join(f"{name} {n:,}" for name, n in ranked(counted))


# -- tables and charts -------------------------------------------------------------------------------------------------


def columns(header: str) -> tuple[Column, ...]:
    """Parse a table's columns from a line: `key label:kind`, separated by ` | `.

    The label defaults to the key, the kind to text. `ends:KIND` stands for the two columns of an interval.
    """
    made: list[Column] = []
    for cell in header.split("|"):
        words, _, kind = cell.strip().rpartition(":") if ":" in cell else (cell.strip(), "", "text")
        key, _, label = words.partition(" ")
        if key == "ends":
            made += [Column("low", "95% from", kind), Column("high", "to", kind)]  # type: ignore[arg-type]
        else:
            made.append(Column(key, label or key, kind))  # type: ignore[arg-type]  # held by a test of all tables
    return tuple(made)


def table(
    id: str,  # noqa: A002  (the table's field)
    rows: list[list[Any]],
    *,
    n: float,
    evidence: Sequence[Evidence | None] | NoSessions,
    header: str = "",
    **words: str,
) -> Table:
    """Build a table. `evidence`: the sessions of each row, or why there are none. `header`: its columns, as `columns`
    reads them. Words (title, of, note) that are not given are those that the study's `.sql` file declares."""
    fields = sql.declared("table", id) | _given(columns=header, **words)
    fields.pop("signals", None)  # `Study.run` reads them
    made = Table(id=id, rows=rows, n=int(n), **fields | {"columns": columns(fields["columns"])})
    if not isinstance(evidence, NoSessions) and (few := _ruled_rows(made, evidence)):
        made = replace(made, note=joined_notes(few, made.note))
    note_row_evidence(made, evidence)
    return made


def chart(
    id: str,  # noqa: A002  (the chart's field)
    rows: Sequence[Row],
    form: Form,
    *,
    n: float,
    fewest: int = 1,
    **words: str,
) -> Chart | None:
    """Build a chart of these marks, or None for fewer than `fewest`. Words (title, of, note) that are not given are
    those that the study's `.sql` file declares. `says`: the alternative text, else every mark's tip."""
    if len(rows) < fewest:
        return None
    note_chart_evidence(id, rows)
    fields = sql.declared("chart", id) | _given(**words)
    fields.pop("signals", None)
    return Chart(id=id, form=form, marks=rows, n=int(n), **{"says": "; ".join(row["tip"] for row in rows)} | fields)


def _given(**words: str) -> dict[str, Any]:
    return {name: text for name, text in words.items() if text}


def bar(name: str, value: float, tip: str, at_least: bool = False, *, evidence: Evidence) -> Row:
    """Return a mark without an interval. `at_least`: it is a lower bound."""
    return mark({"name": name, "value": value, "tip": tip} | ({"at_least": True} if at_least else {}), evidence)


def count_bars(counts: Sequence[tuple[str, int]], of: str, *, evidence: Mapping[str, Evidence]) -> list[Row]:
    """Return a mark for each count, with its share of the total. `evidence`: the sessions of each, by name."""
    total = sum(n for _, n in counts)
    return [
        bar(name, n, f"{name}: {n:,} of {total:,} {of} ({n / total:.1%})", evidence=evidence.get(name, ()))
        for name, n in counts
    ]


# -- clustered estimates -----------------------------------------------------------------------------------------------


DOMINANT = 0.5
"""If one project, person or model has a larger share, the figure is theirs (design/attribution.md#figures-by-mode)."""
ONE_PLACE = "one project"

_SESSION = itemgetter("session_id")


class ClusteredShare(Estimate, frozen=True, kw_only=True):
    """A share over sessions whose interval takes projects as the sampling unit."""

    places: Clustered
    known_places: int

    @property
    def largest(self) -> float | None:
        """The largest project's share of the observations, or None if no project is known."""
        return self.places.largest if self.known_places else None

    @property
    def dominated(self) -> bool:
        """True if one project has more than half of the observations."""
        return self.known_places > 0 and self.places.largest > DOMINANT

    def warning(self, fewest: int = 0, of: str = "") -> str:
        """Return why it says little, or an empty string."""
        return ", ".join([*([f"few {of}"] if self.n < fewest else []), *([ONE_PLACE] if self.dominated else [])])


class Sample:
    """Sessions and their numbers of observations (one each without `ns`), from which several shares are taken.

    Projects are looked up once. A session may occur several times. `drawn`: what the parts are, if not sessions;
    `place`: what a place is, if not a project.
    """

    def __init__(
        self,
        sessions: Sequence[str],
        places: Mapping[str, str],
        ns: Sequence[float] | None = None,
        drawn: str = "sessions",
        place: str = "project",
    ) -> None:
        self._sessions = sessions
        self._ns = [1] * len(sessions) if ns is None else ns
        self._drawn = drawn
        self._place = place
        self._n = sum(self._ns)
        # A session whose place nobody knows is a place of its own; no place is called as a session is.
        self._clusters = list(map(places.get, sessions, sessions))
        self._of_n = sums(self._clusters, self._ns)
        where = self._of_n.keys() & set(places.values())
        self._n_places = sum([self._of_n[place] > 0 for place in where])

    @cached_property
    def _n_by_session(self) -> Mapping[str, float]:
        return sums(self._sessions, self._ns)

    def among(self, values: Sequence[Any], *wanted: Any) -> ClusteredShare:
        """Return the share of observations, one a session, with one of these values."""
        return self.share(list(map(float, map(wanted.__contains__, values))))

    def share(self, ks: Sequence[float]) -> ClusteredShare:
        """Return the share of sum(k) in the observations, with its evidence."""
        of_k = nonzero_sums(self._clusters, ks)
        is_of_sessions = self._drawn == "sessions"
        return _clustered(
            sum(ks),
            self._n,
            Counter(zip(map(of_k.get, self._of_n, repeat(0.0)), self._of_n.values(), strict=True)),
            lambda: clustered_sums(nonzero_sums(self._sessions, ks), self._n_by_session).interval,
            lambda: share_interval(zip(ks, self._ns, strict=True)),
            self._n_places,
            self._drawn,
            self._place,
            partial(zip, self._sessions, ks, self._ns)
            if is_of_sessions
            else NoSessions(f"Counted by {self._drawn}, not by sessions."),
        )


def _clustered(  # noqa: PLR0913  (what a share is made of)
    k: float,
    n: float,
    clusters: Counter[tuple[float, float]],
    by_session: Callable[[], Interval | None],
    few: Callable[[], Interval | None],
    known_places: int,
    drawn: str = "sessions",
    place: str = "project",
    counted: Any = None,
) -> ClusteredShare:
    """Return the share of k in n. `clusters`: how many places have each k and n; `by_session`: the interval over
    sessions, where places are too few; `few`: that over the parts, where these are few, too."""
    by_place = clustered_kinds(clusters)
    interval = by_place.interval
    if interval is not None:
        note = f"interval over {by_place.clusters:,} {place}s, because {drawn} of one {place} are alike"
    elif (interval := by_session()) is not None:
        note = _few_places(by_place.clusters, drawn, place)
    else:
        interval = few()
        note = f"this figure is from fewer than {FEWEST_CLUSTERS} {drawn}" if by_place.clusters else ""
    share = ClusteredShare(
        value=k / n if n else None,
        n=n,
        k=k,
        interval=interval,
        note=note,
        places=by_place,
        known_places=known_places,
        counted=counted,
        is_sum=drawn == "sessions" and counted is not None,
    )
    # The remark is on the total that the figure tells, which one place can rule where it has few observations.
    of_total = max(clusters)[0] / k if k and known_places else 0.0
    if of_total > DOMINANT:
        largest = f"makes up {of_total:.0%} of this figure"
    else:
        largest = f"holds {by_place.largest:.0%} of the data" if share.dominated else ""
    more = f"; one {place} {largest}" if largest and known_places > 1 else ""
    return replace(share, note=f"{note}{more}")


Kinds = Mapping[tuple[str | None, float, float], int]
"""How many sessions of a place have k and n. Where nobody knows its place, a session is a place of its own."""


def share_of_kinds(kinds: Kinds) -> ClusteredShare:
    """Return the share of sum(k) in sum(n) over sessions, without evidence."""
    by_place: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    clusters: Counter[tuple[float, float]] = Counter()
    sessions: Counter[tuple[float, float]] = Counter()
    for (place, k, n), of in kinds.items():
        sessions[k, n] += of
        if place is None:
            clusters[k, n] += of
        else:
            by_place[place].append((of * k, of * n))
    # Exact sums: no order of shards or sessions changes a digit.
    sums_of = [(fsum(k for k, _ in parts), fsum(n for _, n in parts)) for parts in by_place.values()]
    clusters.update(sums_of)
    return _clustered(
        fsum(of * k for (k, _), of in sessions.items()),
        fsum(of * n for (_, n), of in sessions.items()),
        clusters,
        lambda: clustered_kinds(sessions).interval,
        lambda: share_interval(sessions),
        sum(n > 0 for _, n in sums_of),
    )


def clustered_share(
    parts: Iterable[Part], places: Mapping[str, str], drawn: str = "sessions", place: str = "project"
) -> ClusteredShare:
    """Return the share of sum(k) in sum(n). `drawn`: what the parts are, if not sessions; `place`: what a place is."""
    counted = list(parts)
    sessions, ks, ns = [s for s, _, _ in counted], [k for _, k, _ in counted], [n for _, _, n in counted]
    return Sample(sessions, places, ns, drawn, place).share(ks)


def _few_places(n: int, of: str, place: str = "project") -> str:
    places = f"all from one {place}" if n == 1 else f"from only {n} {place}s"
    return f"{places}, so others may differ; the interval treats {of} as independent and may be too narrow"


def clustered_ratio(parts: Iterable[Part], places: Mapping[str, str]) -> Estimate:
    """Return sum(a) over sum(b), for ratios that are no share (calls per prompt)."""
    counted = [(s, a, b) for s, a, b in parts if b > 0]
    sessions, tops, bottoms = [s for s, _, _ in counted], [a for _, a, _ in counted], [b for _, _, b in counted]
    clusters = list(map(places.get, sessions, sessions))
    of_top, of_bottom = nonzero_sums(clusters, tops), sums(clusters, bottoms)
    by_place = [(of_top.get(cluster, 0.0), of) for cluster, of in of_bottom.items()]
    drawn = ratio_interval(by_place)
    note = f"interval over {len(by_place):,} projects, because sessions of one project are alike" if drawn else ""
    if drawn is None and (drawn := ratio_interval([(a, b) for _, a, b in counted])) is not None:
        note = _few_places(len(by_place), "sessions")
    k, n = fsum(tops), fsum(bottoms)
    value = k / n if n else None
    return Estimate(value=value, n=n, k=k, kind="number", interval=drawn, note=note, counted=counted, is_sum=True)


def share_of(
    rows: Iterable[Row], places: Mapping[str, str], holds: Callable[[Row], float | None], weight: str = ""
) -> ClusteredShare:
    """Return the share of rows for which `holds` is true. `weight`: a column with the observations a row stands for."""
    held = list(rows)
    sessions = list(map(_SESSION, held))
    ks = [float(holds(row) or 0) for row in held]
    if not weight:
        return Sample(sessions, places).share(ks)
    ns = [row[weight] for row in held]
    return Sample(sessions, places, ns).share(list(map(mul, ks, ns)))


def clustered_median(
    values: Sequence[tuple[str, float]], places: Mapping[str, str], kind: Kind = "number", fewest: int = 0
) -> Estimate:
    """Return the median of (session, value). Several values a session are allowed. No interval under `fewest`."""
    interval, note = median_interval(values, places) if len(values) >= fewest else (None, "")
    return Estimate(
        value=median([value for _, value in values]),
        n=len(values),
        kind=kind,
        interval=interval,
        note=note,
        counted=lambda: [(session_id, value, 1) for session_id, value in values],
    )


def median_interval(values: Sequence[tuple[str, float]], places: Mapping[str, str]) -> tuple[Interval | None, str]:
    """Return the interval of the median of (session, value) over projects, and its note."""
    if not values:
        return None, ""
    sessions, numbers = [session_id for session_id, _ in values], [number for _, number in values]
    interval = clustered_median_interval(numbers, list(map(places.get, sessions, sessions)))
    interval = interval or clustered_median_interval(numbers, sessions)
    return interval, Sample(sessions, places).share([0] * len(numbers)).note


# -- signals -----------------------------------------------------------------------------------------------------------


MOST_AGENTS = 5
"""Agents with a colour of their own; the others share one."""


def signal_rows(inputs: Inputs, path: str, rows: str = "values") -> list[Row]:
    """Return the rows of one signal: one for each session with a value."""
    return [row for row in inputs.rows[rows] if row["signal"] == path]


def signal_values(inputs: Inputs, path: str) -> list[tuple[str, float]]:
    """Return (session, number) for the sessions that have a number of this signal."""
    return [(row["session_id"], row["number"]) for row in signal_rows(inputs, path) if row["number"] is not None]


def pooled_ratio(
    rows: Iterable[Row], places: Mapping[str, str], num: str = "num", den: str = "den", *, is_share: bool = True
) -> Estimate:
    """Return sum over sum of the sessions that have both. `is_share`: the numerator is part of the denominator."""
    parts = [(row["session_id"], row[num], row[den]) for row in rows if row[num] is not None and row[den]]
    return (clustered_share if is_share else clustered_ratio)(parts, places)


def median_finding(inputs: Inputs, id: str, **more: Any) -> Finding:  # noqa: A002  (the finding's field)
    """Return the median over its sessions of the signal that the finding's declaration names."""
    fields = sql.declared("finding", id) | more
    (path,) = fields["signals"]
    more["note"] = fields.get("note") or _without(inputs, path)
    estimate = clustered_median(signal_values(inputs, path), inputs.places, fields.get("kind", "number"))
    return estimate.finding(
        id, of="sessions", sql=f"SELECT median(number) FROM signals WHERE signal = '{path}'", **more
    )


def pooled_finding(inputs: Inputs, id: str, *, is_share: bool = True, **more: Any) -> Finding:  # noqa: A002  (the finding's field)
    """Return the ratio that the finding's declaration names, over all sessions together. `is_share`: the numerator is
    part of the denominator."""
    fields = sql.declared("finding", id) | more
    (path,) = fields["signals"]
    rows = [row for row in signal_rows(inputs, path) if row["num"] is not None and row["den"]]
    sessions = f"over {times(len(rows), 'session')}" if rows else _without(inputs, path)
    more["note"] = "; ".join(part for part in (sessions, fields.get("note")) if part)
    return pooled_ratio(rows, inputs.places, is_share=is_share).finding(id, sql=sql.pooled(path), **more)


def _without(inputs: Inputs, path: str) -> str:
    reasons = [f"{row['n']:,} {row['absent'].replace('_', ' ')}" for row in signal_rows(inputs, path, "absent")]
    return f"no value: {', '.join(reasons)}" if reasons else ""


def agents_by_sessions(rows: Iterable[Row]) -> list[str]:
    """Return the agents of rows that are one a session, most sessions first."""
    return [agent for agent, _ in ranked(Counter(row["agent"] for row in rows))]
