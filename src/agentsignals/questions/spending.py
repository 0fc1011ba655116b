"""Money and tokens of model calls by day, week, month, five-hour block, project, branch, model or agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from math import fsum
from typing import Any, Literal

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


Row = dict[str, Any]


class Sums(Struct):
    """What is kept of a store, so that DuckDB is loaded only where the store changed."""

    rows: list[Row]
    logs: list[tuple[str, str]]
    """Format and path of the logs of the sessions that were active last."""


def sums(store: Store, context: str) -> Sums:
    """Return the sums of model calls by session, place, model and quarter of an hour: kept ones, or computed."""
    if (kept := sidecars.read_cache(store, context, "spending")) is not None:
        return msgspec.json.decode(kept, type=Sums)
    from agentsignals.questions.sql import IS_COST_BOUND, with_place  # noqa: PLC0415
    from agentsignals.store.query import rows  # noqa: PLC0415

    names, values = rows(store, _SPENT.format(sessions=with_place(), is_bound=IS_COST_BOUND), values=[context])
    made = Sums(rows=[dict(zip(names, row, strict=True)) for row in values], logs=rows(store, _NEWEST)[1])
    sidecars.write_cache(store, context, msgspec.json.encode(made), "spending")
    return made


def spending(  # noqa: PLR0913  (the options of the verb)
    store: Store,
    by: By = "day",
    *,
    context: str = "product",
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
    every = [row for row in sums(store, context).rows if model is None or model.lower() in (row["model"] or "").lower()]
    dated = [row for row in every if row["quarter"] is not None]
    for row in dated:
        row["at"] = datetime.fromtimestamp(row["quarter"] * _QUARTER_S, zone)
    day = moment.replace(tzinfo=None).date()
    monday, first = day - timedelta(days=day.weekday()), day.replace(day=1)
    begin, end = (None if at is None else at.replace(tzinfo=UTC).timestamp() / _QUARTER_S for at in (since, until))
    among = [
        row
        for row in dated
        if (begin is None or row["quarter"] >= begin // 1) and (end is None or row["quarter"] < end)
    ]
    starts: dict[int, int] = {}
    start = None  # of the five-hour block of a quarter of an hour, in seconds since 1970
    for quarter in sorted({row["quarter"] for row in dated}):
        second = quarter * _QUARTER_S
        if start is None or second >= start + BLOCK.total_seconds():
            start = second // 3600 * 3600
        starts[quarter] = start
    names_of: dict[By, Callable[[Row], str]] = {
        "day": lambda row: f"{row['at']:%Y-%m-%d}",
        "week": lambda row: f"{row['at'].date() - timedelta(days=row['at'].weekday()):%Y-%m-%d}",
        "month": lambda row: f"{row['at']:%Y-%m}",
        "block": lambda row: f"{datetime.fromtimestamp(starts[row['quarter']], zone):%Y-%m-%d %H:%M}",
        "project": lambda row: row["project"] or "unknown",
        "branch": lambda row: row["branch"] or "unknown",
        "model": lambda row: row["model"] or "unknown",
        "agent": lambda row: row["agent"] or "unknown",
    }
    groups: dict[str, list[Row]] = {}
    for row in among:
        groups.setdefault(names_of[by](row), []).append(row)
    made = [_sum(name, of) for name, of in groups.items()]
    is_time = by in ("day", "week", "month", "block")
    made.sort(key=(lambda spent: spent.name) if is_time else (lambda spent: (-(spent.cost_usd or 0.0), spent.name)))
    listed = made if most is None else made[-most:] if is_time else made[:most]
    return Spending(
        zone=moment.tzname() or "",
        date=f"{day:%Y-%m-%d}",
        today=_sum("today", [row for row in dated if row["at"].date() == day]),
        week=_sum("this week", [row for row in dated if monday <= row["at"].date() <= day]),
        month=_sum("this month", [row for row in dated if first <= row["at"].date() <= day]),
        block=_open_block(dated, starts, moment, zone),
        last=max((row["at"] for row in dated), default=None),
        by=by,
        rows=listed,
        n_rows=len(made),
        whole=_sum("all", among),
        undated=sum(row["calls"] for row in every if row["quarter"] is None),
    )


def _sum(name: str, of: Sequence[Row]) -> Spent:
    costs = [row["cost_usd"] for row in of if row["cost_usd"] is not None]
    return Spent(
        name=name,
        sessions=len({row["session_id"] for row in of}),
        calls=sum(row["calls"] for row in of),
        **{
            kind: int(sum(known)) if (known := [n for row in of if (n := row[kind]) is not None]) else None
            for kind in _KINDS
        },
        cost_usd=fsum(costs) if costs or not of else None,
        is_bound=any(row["is_bound"] or row["unpriced"] for row in of),
    )


def _open_block(dated: Sequence[Row], starts: dict[int, int], moment: datetime, zone: tzinfo | None) -> Block | None:
    seconds = moment.timestamp()
    past = [start for quarter, start in starts.items() if quarter * _QUARTER_S <= seconds]
    start = max(past, default=None)
    if start is None or seconds >= start + BLOCK.total_seconds():
        return None
    begin = datetime.fromtimestamp(start, zone)
    inside = [row for row in dated if starts[row["quarter"]] == start]
    return Block(
        start=begin, end=datetime.fromtimestamp(start + BLOCK.total_seconds(), zone), spent=_sum("block", inside)
    )
