"""Money and tokens of model calls by day, week, month, five-hour block, project, branch, model or agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from math import fsum
from typing import Literal

import msgspec
from msgspec import Struct

from agentsignals.store import Store, sidecars

By = Literal["day", "week", "month", "block", "project", "branch", "model", "agent"]
BLOCK = timedelta(hours=5)
"""A plan's window, which opens at the hour of its first model call."""
_QUARTER_S = 900
"""Seconds of the finest time that sums are of. Every time zone's midnight begins one."""
_SPENT = """
    SELECT s.session_id, s.place AS project, s.branch, s.agent, coalesce(steps.model, s.model) AS model,
        floor(epoch(coalesce(steps.timestamp, s.started_at)) / 900)::BIGINT AS quarter, count(*) AS calls,
        sum(steps.input_tokens) AS input_tokens, sum(steps.output_tokens) AS output_tokens,
        sum(steps.cache_read_tokens) AS cache_read_tokens, sum(steps.cache_write_tokens) AS cache_write_tokens,
        sum(steps.cost_usd) AS cost_usd,
        count(*) FILTER (steps.cost_usd IS NULL AND
            coalesce(steps.input_tokens, 0) + coalesce(steps.output_tokens, 0) > 0) AS unpriced,
        bool_or(s.is_bound) AS is_bound
    FROM steps JOIN (SELECT *, {is_bound} AS is_bound FROM ({sessions})) AS s USING (session_id)
    WHERE s.context = $1
    GROUP BY ALL ORDER BY quarter, s.session_id, model
"""
_NEWEST = """
    SELECT format, path FROM sessions JOIN artifacts USING (artifact_id, format)
    WHERE context = 'product' AND starts_with(path, '/') ORDER BY ended_at DESC NULLS LAST LIMIT 20
"""
_KINDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


class Spent(Struct, frozen=True, kw_only=True):
    """Sums over model calls. None where no call reports a figure."""

    name: str
    sessions: int
    calls: int
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cost_usd: float | None
    is_bound: bool
    """The cost is a lower bound: output was logged in mid-stream, or a call has no price."""


class Block(Struct, frozen=True, kw_only=True):
    """The five-hour window that is open now."""

    start: datetime
    end: datetime
    spent: Spent


class Spending(Struct, frozen=True, kw_only=True):
    """What was spent lately, and in a table."""

    zone: str
    date: str
    """Today in that zone."""
    today: Spent
    week: Spent
    month: Spent
    block: Block | None
    last: datetime | None
    """The last model call."""
    by: By
    rows: list[Spent]
    n_rows: int
    """Rows of the table, listed or not."""
    whole: Spent
    """The sum of all rows, also of those that are not listed."""
    undated: int
    """Model calls without a time, which are in no sum."""


class Quarter(Struct, array_like=True, frozen=True):
    """Sums over the model calls of a session with one model in a quarter of an hour."""

    session_id: str
    project: str | None
    branch: str | None
    agent: str | None
    model: str | None
    number: int | None
    """Since 1970; None for calls without a time."""
    calls: int
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cost_usd: float | None
    unpriced: int
    is_bound: bool | None


class Sums(Struct):
    """What is kept of a store, so that DuckDB is loaded only where the store changed."""

    rows: list[Quarter]
    logs: list[tuple[str, str]]
    """Format and path of the logs of the sessions that were active last."""


def sums(store: Store, context: str) -> Sums:
    """Return the sums of model calls by session, place, model and quarter of an hour: kept ones, or computed."""
    if (kept := sidecars.read_cache(store, context, "spending")) is not None:
        return msgspec.json.decode(kept, type=Sums)
    from agentsignals.questions.sql import IS_COST_BOUND, with_place  # noqa: PLC0415
    from agentsignals.store.query import rows  # noqa: PLC0415

    _, values = rows(store, _SPENT.format(sessions=with_place(), is_bound=IS_COST_BOUND), values=[context])
    made = Sums(rows=[Quarter(*row) for row in values], logs=rows(store, _NEWEST)[1])
    sidecars.write_cache(store, context, msgspec.json.encode(made), "spending")
    return made


def spending(  # noqa: PLR0913  (the options of the verb)
    kept: Sums,
    by: By = "day",
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    model: str | None = None,
    zone: tzinfo | None = None,
    now: datetime | None = None,
    most: int | None = None,
) -> Spending:
    """Return what was spent. `since`, `until`: limits of the table (UTC, no zone); `model`: a part of its name; `zone`:
    of days and blocks, this machine's without one; `most`: rows of the table, the last or the largest."""
    moment = (now or datetime.now(UTC)).astimezone(zone)
    every = [row for row in kept.rows if model is None or model.lower() in (row.model or "").lower()]
    quarters = sorted({row.number for row in every if row.number is not None})
    at = {quarter: datetime.fromtimestamp(quarter * _QUARTER_S, zone) for quarter in quarters}
    dated = [(row, row.number) for row in every if row.number is not None]
    day = moment.replace(tzinfo=None).date()
    monday, first = day - timedelta(days=day.weekday()), day.replace(day=1)
    begin, end = (None if at is None else at.replace(tzinfo=UTC).timestamp() / _QUARTER_S for at in (since, until))
    among = [
        (row, quarter)
        for row, quarter in dated
        if (begin is None or quarter >= begin // 1) and (end is None or quarter < end)
    ]
    starts: dict[int, int] = {}
    start = None  # of the five-hour block of a quarter of an hour, in seconds since 1970
    for quarter in quarters:
        second = quarter * _QUARTER_S
        if start is None or second >= start + BLOCK.total_seconds():
            start = second // 3600 * 3600
        starts[quarter] = start
    of_time: dict[By, Callable[[int], str]] = {
        "day": lambda quarter: f"{at[quarter]:%Y-%m-%d}",
        "week": lambda quarter: f"{at[quarter].date() - timedelta(days=at[quarter].weekday()):%Y-%m-%d}",
        "month": lambda quarter: f"{at[quarter]:%Y-%m}",
        "block": lambda quarter: f"{datetime.fromtimestamp(starts[quarter], zone):%Y-%m-%d %H:%M}",
    }
    groups: dict[str, list[Quarter]] = {}
    if by in of_time:
        names = {quarter: of_time[by](quarter) for quarter in quarters}
        for row, quarter in among:
            groups.setdefault(names[quarter], []).append(row)
    else:
        for row, _ in among:
            groups.setdefault(getattr(row, by) or "unknown", []).append(row)
    made = [_sum(name, of) for name, of in groups.items()]
    is_time = by in of_time
    made.sort(key=(lambda spent: spent.name) if is_time else (lambda spent: (-(spent.cost_usd or 0.0), spent.name)))

    def since_day(begin: date) -> list[Quarter]:
        lately = {quarter for quarter in quarters if begin <= at[quarter].date() <= day}
        return [row for row, quarter in dated if quarter in lately]

    listed = made if most is None else made[-most:] if is_time else made[:most]
    return Spending(
        zone=moment.tzname() or "",
        date=f"{day:%Y-%m-%d}",
        today=_sum("today", since_day(day)),
        week=_sum("this week", since_day(monday)),
        month=_sum("this month", since_day(first)),
        block=_open_block(dated, starts, moment, zone),
        last=at[quarters[-1]] if quarters else None,
        by=by,
        rows=listed,
        n_rows=len(made),
        whole=_sum("all", [row for row, _ in among]),
        undated=sum(row.calls for row in every if row.number is None),
    )


def _sum(name: str, of: Sequence[Quarter]) -> Spent:
    costs = [row.cost_usd for row in of if row.cost_usd is not None]
    return Spent(
        name=name,
        sessions=len({row.session_id for row in of}),
        calls=sum(row.calls for row in of),
        **{
            kind: int(sum(known)) if (known := [n for row in of if (n := getattr(row, kind)) is not None]) else None
            for kind in _KINDS
        },
        cost_usd=fsum(costs) if costs or not of else None,
        is_bound=any(row.is_bound or row.unpriced for row in of),
    )


def _open_block(
    dated: Sequence[tuple[Quarter, int]], starts: dict[int, int], moment: datetime, zone: tzinfo | None
) -> Block | None:
    seconds = moment.timestamp()
    past = [start for quarter, start in starts.items() if quarter * _QUARTER_S <= seconds]
    start = max(past, default=None)
    if start is None or seconds >= start + BLOCK.total_seconds():
        return None
    begin = datetime.fromtimestamp(start, zone)
    inside = [row for row, quarter in dated if starts[quarter] == start]
    return Block(
        start=begin, end=datetime.fromtimestamp(start + BLOCK.total_seconds(), zone), spent=_sum("block", inside)
    )
