"""What nearly every study is made of: shares and medians by group, as findings, rows of tables and marks of charts.

A study declares its question, its SQL and its words; how a figure gets its interval, n and caveat is said here, once.

* An `Estimate` is a figure with what makes it quotable. It comes from `count`, or from `share_of`, `placed_share`,
  `placed_ratio` and `placed_median` of `clusters` (intervals over places, the one rule of the report), and becomes a
  finding (`finding`), cells of a row (`value`, `*ends`) or a mark (`mark`). So a chart, a table and a finding of one
  thing can't differ.
* `table` takes its columns as one line, `table_chart` its marks and their specification; without a row or a mark there
  is neither.
* A finding is data: figure, unit, interval, n, caveat, the sessions that make most of it, the command that makes it
  again. Whatever ranks or quotes findings reads these fields and no text.

Rows are grouped by `by`, counted by `tally` and put in order by `ranked`: most first, equal ones by name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from operator import itemgetter
from typing import Any

from msgspec import Struct

from agentsignals.analysis.behind import Closed, Counted, note_mark, note_marks, note_rows, note_sessions
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.study import Chart, Column, Finding, Kind, Row, Table, again
from agentsignals.stats.estimates import Interval, sums_but_zeros

MOST_BEHIND = 5
"""Sessions that a finding names (this project's choice: a screen of them)."""
INTERVAL_NOTE = "the line is the 95% interval"


class Estimate(Struct, frozen=True, kw_only=True):
    """A figure over observations, with its interval at 95 percent and what it rests on."""

    value: float | str | None
    n: float
    kind: Kind = "share"
    k: float = 0
    """The numerator of a share."""
    interval: Interval | None = None
    note: str = ""
    """What the interval rests on, and what speaks against it."""
    counted: Any = None
    """The sessions it counts, as a `Counted`: what opens behind it."""
    is_sum: bool = False
    """Whether `counted` are parts of a sum, of which a finding names the largest."""

    @property
    def sessions(self) -> tuple[str, ...]:
        """Those that make most of it. Only a finding asks; most estimates are cells and marks."""
        if not self.is_sum:
            return ()
        parts = self.counted() if callable(self.counted) else self.counted
        return behind([(session_id, k) for session_id, k, _ in parts if k])

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """The ends of the interval, as cells of a row."""
        return self.interval or (None, None)

    def finding(self, id: str, title: str, of: str, note: str = "", *, sql: str = "", **more: Any) -> Finding:  # noqa: A002  (the finding's field)
        """The figure as a finding. `sql`: whose first cell is the value; without it the study's report makes it again.
        Of a share the unit is a `share of` what it is of, unless `more` says otherwise.
        """
        caveats = "; ".join(part for part in (note, self.note) if part)
        base: dict[str, Any] = {"unit": f"share of {of}", "command": again(sql) if sql else "", "kind": self.kind}
        base |= {"caveat": self.note, "sessions": self.sessions}
        note_sessions(id, self.counted)
        return Finding(
            id=id,
            title=title,
            of=of,
            value=self.value,
            n=int(self.n),
            interval=self.interval,
            note=caveats,
            **base | more,
        )

    def mark(self, name: str, tip: str, **more: Any) -> Row:
        """The figure with its interval as a row of a chart."""
        low, high = self.ends
        made = {"name": name, "value": self.value, "low": low, "high": high, "tip": tip, **more}
        note_mark(made, self.counted)
        return made

    def words(self, of: str = "") -> str:
        """`3 of 10 calls, 30.0%`: a share in words."""
        whole = f"{self.n:,.0f} {of}".rstrip()
        return f"{self.k:,.0f} of {whole}, {formatted(self.value, 'share')}"


def count(value: float | str | None, n: int, kind: Kind = "count", *, behind: Counted | None) -> Estimate:
    """A plain count, a sum or a name: no estimate, so without an interval. `behind`: the sessions it counts."""
    return Estimate(value=value, n=n, kind=kind, counted=behind)


# -- rows -------------------------------------------------------------------------------------------------------------


def by(rows: Iterable[Row], *keys: str) -> dict[Any, list[Row]]:
    """Rows by a column, or by tuples of several, in the order they come."""
    groups: defaultdict[Any, list[Row]] = defaultdict(list)
    key = itemgetter(*keys)
    for row in rows:
        groups[key(row)].append(row)
    return dict(groups)


def tally(rows: Iterable[Row], *keys: str, weight: str = "n") -> Counter[Any]:
    """The sum of a column by another, or by tuples of several."""
    counted: defaultdict[Any, Any] = defaultdict(int)
    key = itemgetter(*keys)
    for row in rows:
        counted[key(row)] += row[weight]
    return Counter(counted)


def behind(parts: Iterable[tuple[str, float]]) -> tuple[str, ...]:
    """The sessions that make most of a sum over (session, part); those without a part are not behind it."""
    sessions, numbers = zip(*held, strict=True) if (held := list(parts)) else ((), ())
    counted = sums_but_zeros(sessions, numbers)
    largest = sorted(counted.values(), reverse=True)[:MOST_BEHIND]
    # Of many sessions, equal ones above all, only those that may be among the first are put in order.
    most = {session_id: part for session_id, part in counted.items() if part > 0 and part > largest[-1]}
    as_much = [session_id for session_id, part in counted.items() if part == largest[-1] > 0]
    return tuple(s for s, _ in ranked(most)) + tuple(nsmallest(MOST_BEHIND - len(most), as_much))


def ranked(counted: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """Most first; of equal ones by name."""
    return sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))


def listing(counted: Mapping[str, int]) -> str:
    """`codex 3, pi 1`: a few counts in a cell."""
    return ", ".join(f"{name} {n:,}" for name, n in ranked(counted))


# -- tables and charts ------------------------------------------------------------------------------------------------


def columns(header: str) -> tuple[Column, ...]:
    """The columns of a table in a line: `key label:kind`, parted by ` | `. Without a label it is the key, without a
    kind it is text; `ends:KIND` are the two columns of an interval.
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


def table(  # noqa: PLR0913  (a table's fields, in the order they are read)
    id: str,  # noqa: A002  (the table's field)
    title: str,
    header: str,
    rows: list[list[Any]],
    *,
    n: float,
    of: str,
    behind: Sequence[Counted | None] | Closed,
    note: str = "",
) -> Table:
    """A table whose columns are written as in `columns`. `behind`: the sessions of each row, or why there are none."""
    made = Table(id=id, title=title, columns=columns(header), rows=rows, n=int(n), of=of, note=note)
    note_rows(made, behind)
    return made


def chart(  # noqa: PLR0913  (a chart's fields, in the order they are read)
    id: str,  # noqa: A002  (the chart's field)
    title: str,
    rows: Sequence[Row],
    spec: dict[str, Any],
    *,
    n: float,
    of: str,
    note: str = "",
    says: str = "",
    fewest: int = 1,
) -> Chart | None:
    """A chart of these marks; None of fewer than `fewest`. `says`: in words what it shows, else every mark's tip."""
    if len(rows) < fewest:
        return None
    words = says or "; ".join(row["tip"] for row in rows)
    note_marks(id, rows)
    return Chart(id=id, title=title, says=words, spec=spec, n=int(n), of=of, note=note)


def drawn(*charts: Chart | None) -> list[Chart]:
    """The charts that have something to show."""
    return [made for made in charts if made is not None]


def bar(name: str, value: float, tip: str, at_least: bool = False, *, behind: Counted) -> Row:
    """A mark without an interval; `at_least`: of a lower bound. `behind`: the sessions it counts."""
    return mark({"name": name, "value": value, "tip": tip} | ({"at_least": True} if at_least else {}), behind)


def mark(made: Row, behind: Counted) -> Row:
    """A mark of a chart, which counts these sessions."""
    note_mark(made, behind)
    return made


def count_bars(
    counts: Sequence[tuple[str, int]], of: str, more: str = "", *, behind: Mapping[str, Counted]
) -> list[Row]:
    """A mark a count, with its share of them all. `behind`: the sessions of each, by its name."""
    total = sum(n for _, n in counts)
    return [
        bar(name, n, f"{name}: {n:,} of {total:,} {of} ({n / total:.1%}){more}", behind=behind.get(name, ()))
        for name, n in counts
    ]
