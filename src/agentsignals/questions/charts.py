"""Forms of charts, which `ui.drawing` draws, and time buckets.

Every mark brings its own `tip`, the text shown on hover and read aloud. All times are UTC.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from itertools import repeat
from math import ceil, fsum
from operator import itemgetter
from typing import Any, Literal, TypeVar

from msgspec import Struct

from agentsignals.questions.estimates import MOST_AGENTS, agents_by_sessions, bar, chart
from agentsignals.questions.question import Chart, EvidenceRows, Form, Kind, Part, Row, formatted, mark
from agentsignals.stats.intervals import quantile

OTHERS = "others"


def bars(title: str, kind: Kind = "count") -> Form:
    """Draw a horizontal bar for each mark, labelled with its value. Marks: name, value; at_least for lower bounds."""
    return Form("bars", kind, title)


def dots(title: str, kind: Kind = "share") -> Form:
    """Draw an estimate with its interval for each mark. Marks: name, value, low, high; low and high may be missing."""
    return Form("dots", kind, title)


def heatmap(columns: Sequence[str]) -> Form:
    """Draw shares as shaded cells. Marks: name, column, value."""
    return Form("heatmap", "share", names=tuple(columns))


def intervals_by_position(across: str, title: str, names: Sequence[str]) -> Form:
    """Draw estimates with intervals by position, one for each name. Marks: name, at, value, low, high."""
    return Form("intervals_by_position", "share", title, across, tuple(names))


def over_time(form: str, title: str, kind: Kind, names: Sequence[str], span: tuple[str, str]) -> Form:
    """Draw `lines` (marks: name, from, value) or `stacked_columns` (name, from, to, low, high of the stack)."""
    return Form(form, kind, title, names=tuple(names), span=span)


# -- histograms and quantiles ------------------------------------------------------------------------------------------


COUNTS: tuple[float, ...] = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Upper bounds of the classes of a count, doubling."""
RATIOS: tuple[float, ...] = (0, 1, 2, 5, 10, 20, 40, 80)
SHARES: tuple[float, ...] = (0, 0.02, 0.05, 0.1, 0.2, 0.5, 1)
QUANTILES = ((0.0, "least"), (0.25, "25%"), (0.5, "median"), (0.75, "75%"), (0.9, "90%"), (1.0, "most"))


def quantile_columns(kind: Kind) -> str:
    """Return the columns of a row of quantiles, as `estimates.columns` reads them."""
    return " | ".join(f"{label}:{kind}" for _, label in QUANTILES)


def quantiles(values: Sequence[float]) -> list[float | None]:
    """Return a value for each quantile column, None without values."""
    ascending = sorted(values)
    return [quantile(ascending, share) if ascending else None for share, _ in QUANTILES]


def histogram_chart(  # noqa: PLR0913  (a chart's words, each named at the call)
    values: Sequence[tuple[str, float]],
    edges: Sequence[float],
    *,
    id: str,  # noqa: A002  (the chart's field)
    title: str,
    unit: str,
    of: str = "sessions",
    note: str = "",
) -> Chart | None:
    """Build a histogram of (session, value). The last class is open. None if all values fall into one class."""
    classes: list[list[str]] = [[] for _ in range(len(edges) + 1)]
    for session_id, value in values:
        classes[bisect_left(edges, value)].append(session_id)
    filled = [i for i, sessions in enumerate(classes) if sessions]
    if len(filled) < 2:
        return None
    rows = []
    for i in range(filled[0], filled[-1] + 1):
        (label, words), n = _class_names(edges, i), len(classes[i])
        rows.append(bar(label, n, f"{words} {unit}: {n:,} of {len(values):,} {of}", evidence=classes[i]))
    says = f"{title}: " + "; ".join(row["tip"] for row in rows)
    return chart(
        id, rows, Form("histogram", "count", of, unit), n=len(values), title=title, of=of, note=note, says=says
    )


def _class_names(edges: Sequence[float], i: int) -> tuple[str, str]:
    """Label under a column (the class's only value, or its upper bound), and the class in words for its tip."""

    def text(edge: float) -> str:
        return f"{edge * 100:g}%" if edges is SHARES else f"{edge:g}"

    if i == len(edges):
        return f">{text(edges[-1])}", f"more than {text(edges[-1])}"
    label = text(edges[i])
    if i == 0 or (edges is COUNTS and edges[i] - edges[i - 1] == 1):
        return label, label
    below = edges[i - 1]
    words = f"{below + 1:g} to {edges[i]:g}" if edges is COUNTS else f"over {text(below)} to {label}"
    return f"≤{label}", words


# -- time buckets ------------------------------------------------------------------------------------------------------


Step = Literal["day", "week", "month"]
_DAYS_UP_TO = 45
_WEEKS_UP_TO = 2 * 366


class Buckets(Struct, frozen=True):
    """A division of time into equal steps."""

    step: Step
    first: datetime
    last: datetime
    """Start of the last bucket."""

    @property
    def end(self) -> datetime:
        return next_start(self.last, self.step)

    def starts(self) -> Iterator[datetime]:
        start = self.first
        while start <= self.last:
            yield start
            start = next_start(start, self.step)


def buckets_of(moments: Sequence[datetime]) -> Buckets | None:
    """Divide a span into days (up to six weeks), weeks (up to two years) or months. None without a moment."""
    if not moments:
        return None
    first, last = min(moments), max(moments)
    days = (last - first).days
    step: Step = "day" if days <= _DAYS_UP_TO else "week" if days <= _WEEKS_UP_TO else "month"
    return Buckets(step, start_of(first, step), start_of(last, step))


def start_of(moment: datetime, step: Step) -> datetime:
    """Return the start of the day, the week (Monday) or the month."""
    day = moment.replace(day=1 if step == "month" else moment.day, hour=0, minute=0, second=0, microsecond=0)
    return day - timedelta(days=day.weekday()) if step == "week" else day


def next_start(start: datetime, step: Step) -> datetime:
    if step == "month":
        return start_of(start + timedelta(days=32), "month")
    return start + timedelta(days=7 if step == "week" else 1)


MOST_POINTS = 150
"""Points that a chart can show; a longer span draws every n-th day only."""


def rolling_windows(ascending: Sequence[datetime], days: int, fewest: int = 1) -> Iterator[tuple[datetime, slice]]:
    """Yield for each day the slice of observations from that day and the `days` - 1 before it.

    Days with fewer than `fewest` observations are left out.
    """
    if not ascending:
        return
    first, last = start_of(ascending[0], "day"), start_of(ascending[-1], "day")
    step = ceil(((last - first).days + 1) / MOST_POINTS)
    day, low, high = first, 0, 0
    while day <= last:
        end, begin = day + timedelta(days=1), day - timedelta(days=days - 1)
        while high < len(ascending) and ascending[high] < end:
            high += 1
        while low < high and ascending[low] < begin:
            low += 1
        if high - low >= fewest:
            yield day, slice(low, high)
        day += timedelta(days=step)


def iso_time(day: datetime) -> str:
    return day.strftime("%Y-%m-%dT%H:%M:%SZ")


# -- lines over days ---------------------------------------------------------------------------------------------------


T = TypeVar("T")


def lines_chart(  # noqa: PLR0913  (a chart's words, each named at the call)
    stamped: Sequence[tuple[datetime | None, str, T]],
    *,
    shares: Mapping[str, Callable[[list[T]], list[float]]] | None = None,
    measures: Mapping[str, Callable[[list[T]], float | None]] | None = None,
    id: str,  # noqa: A002  (the chart's field)
    title: str,
    unit: str,
    kind: Kind,
    of: str,
    days: int,
    fewest: int,
) -> Chart | None:
    """Draw a line for each share or measure of the observations in the last `days` days. None without a second day.

    `stamped`: time, session and observation; those without a time are not drawn. `shares`: each observation's part of a
    share, 0 to 1. Days with fewer than `fewest` observations have no point.
    """
    timed = sorted(((at, session_id, value) for at, session_id, value in stamped if at is not None), key=itemgetter(0))
    sessions, values = [session_id for _, session_id, _ in timed], [value for _, _, value in timed]
    drawn_lines: dict[str, tuple[list[Any], Callable[[list[Any]], float | None], bool]] = {
        **{name: (part(values), lambda parts: sum(parts) / len(parts), True) for name, part in (shares or {}).items()},
        **{name: (values, measure, False) for name, measure in (measures or {}).items()},
    }
    rows: list[Row] = []
    drawn_days: list[datetime] = []
    for day, window in rolling_windows([at for at, _, _ in timed], days, fewest):
        drawn_days.append(day)
        n = window.stop - window.start
        for name, (column, measure, is_share) in drawn_lines.items():
            value = measure(column[window])
            if value is not None:
                tip = f"{name}, {days} days to {day:%Y-%m-%d}: {formatted(value, kind)}, n = {n:,} {of}"
                behind = partial(_parts, sessions, column if is_share else None, window)
                rows.append(mark({"name": name, "from": iso_time(day), "value": value, "tip": tip}, behind))
    if len(drawn_days) < 2 or not rows:
        return None
    first, last = drawn_days[0], drawn_days[-1]
    drawn = {row["name"] for row in rows}
    ends = [row["tip"] for row in rows if row["from"] == iso_time(last)]
    return chart(
        id,
        rows,
        over_time("lines", unit, kind, [n for n in drawn_lines if n in drawn], (iso_time(first), iso_time(last))),
        n=len(timed),
        title=title,
        of=of,
        note=f"each point covers the {days} days up to it; points with fewer than {fewest} {of} are omitted",
        says=f"{title}, from {first:%Y-%m-%d} to {last:%Y-%m-%d}, UTC. At the end: " + "; ".join(ends),
    )


def _parts(sessions: Sequence[str], parts: Sequence[float] | None, window: slice) -> EvidenceRows:
    of_window = sessions[window]
    return of_window if parts is None else zip(of_window, parts[window], repeat(1))


# -- stacked columns ---------------------------------------------------------------------------------------------------


_GAP = 0.12
"""Share of a bucket left white between columns."""


def stacked_chart(  # noqa: PLR0913  (a chart's words, each named at the call)
    sessions: Sequence[Row],
    column: str | None,
    *,
    id: str,  # noqa: A002  (the chart's field)
    title: str,
    unit: str,
    kind: Kind,
    left_out: str = "",
) -> Chart | None:
    """Sum a column of the sessions (None: their number) by agent and time of start. None if they lie in one bucket.

    `left_out`: which sessions are missing, and why.
    """
    placed = [s for s in sessions if s["started_at"] is not None and (column is None or s[column] is not None)]
    span = buckets_of([s["started_at"] for s in placed])
    if span is None or span.first == span.last:
        return None
    order = agents_by_sessions(sessions)
    named = order[:MOST_AGENTS]
    names = [*named, OTHERS] if len(order) > MOST_AGENTS else named
    parts: dict[datetime, dict[str, list[Part]]] = defaultdict(lambda: defaultdict(list))
    days: dict[date, datetime] = {}
    for s in placed:
        at, name = s["started_at"], s["agent"] if s["agent"] in named else OTHERS
        start = days.get(at.date()) or days.setdefault(at.date(), start_of(at, span.step))
        parts[start][name].append((s["session_id"], 1 if column is None else s[column], 1))
    short = {"short": True} if span.end - span.first < timedelta(days=200) else {}
    rows: list[Row] = []
    for start in sorted(parts):
        end = next_start(start, span.step)
        until = iso_time(end - (end - start) * _GAP)
        low = 0.0
        for name in names:
            if of := parts[start].get(name):
                amount = fsum(value for _, value, _ in of)
                said = f"{formatted(amount, kind)}{'' if kind == 'usd' else f' {unit}'}"
                tip = f"{name}, {span.step} of {start:%Y-%m-%d}: {said}, n = {len(of):,} sessions"
                drawn = {
                    "name": name,
                    "from": iso_time(start),
                    "to": until,
                    "low": low,
                    "high": low + amount,
                    "tip": tip,
                }
                rows.append(mark(drawn | short, evidence=of))
                low += amount
    missing = len(sessions) - len(placed)
    lacking = "" if column is None else f" or {title.lower()}"
    undrawn = [part for part in (f"{missing:,} without a timestamp{lacking}" if missing else "", left_out) if part]
    return chart(
        id,
        rows,
        over_time(
            "stacked_columns", f"{unit} per {span.step}", kind, names, (iso_time(span.first), iso_time(span.end))
        ),
        n=len(placed),
        title=f"{title} by {span.step}",
        of="sessions",
        note=f"not shown: {' and '.join(undrawn)}" if undrawn else "",
        says=f"{title} by {span.step} and agent, from {span.first:%Y-%m-%d} to {span.end:%Y-%m-%d}, UTC.",
    )
