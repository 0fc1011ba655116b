"""`today`: what agents cost by day, week, month, five-hour block, project, branch, model or agent."""

from __future__ import annotations

import argparse
import os
import time
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import Any

from agentsignals.cli.analyze import selected_store
from agentsignals.cli.output import json_text, printable, table, tell
from agentsignals.errors import NothingFound, UsageError
from agentsignals.formats import PlanLimit, plan_limits
from agentsignals.questions.question import formatted, times
from agentsignals.questions.spending import Spending, Spent, spending, sums
from agentsignals.store.index import INDEX_FILE, main_context
from agentsignals.store.selection import period

_SINCE = {"project": "30d", "branch": "30d", "model": "30d", "agent": "30d"}
"""What a table is of where `--since` does not say and there was any; tables of time show their last rows."""
OVER_BUDGET = 1


def run_today(options: argparse.Namespace) -> int:
    """Print the table. Exit code 1 where the budget of the day, week or month is spent."""
    if options.limit < 1:
        raise UsageError(f"--limit {options.limit} is below 1.", "Give a number of rows.")
    # Time and model are of model calls here, which a long session has of several days.
    since, until, model = options.since, options.until, options.model
    options.since = options.until = options.model = None
    store = selected_store(options)
    context = options.context or main_context(store.contexts())
    by, zone = options.by, _zone(options.timezone)
    begin = period(first, "--since")[0] if (first := since or _SINCE.get(by)) else None
    end = period(until, "--until")[1] if until else None
    kept = sums(store, context)
    asked = partial(spending, kept, by, until=end, model=model, zone=zone, most=options.limit)
    made = asked(since=begin)
    if not (made.rows or since or until):  # nothing lately: all there is
        begin, made = None, asked()
    if made.last is None and model:
        from agentsignals.model.registry import did_you_mean

        known = sorted({row.model for row in kept.rows if row.model})
        raise NothingFound(
            f"No model call used a model {model!r}.", did_you_mean(model, known) or f"The models: {', '.join(known)}."
        )
    if made.last is None:
        raise NothingFound("No model call in the store has a time.", "`agentsignals analyze FOLDER` reads sessions.")
    day = f" since {begin.replace(tzinfo=UTC).astimezone(zone):%Y-%m-%d}" if begin else ""
    if not (made.rows or options.json or options.statusline or options.budget):
        raise NothingFound(f"No model call{day or ' until then'}; the last was on {made.last:%Y-%m-%d}.")
    limits = _limits(kept.logs)
    budget = None if options.budget is None else _budget(made, options.budget)
    if options.json:
        print(json_text({"spending": made, "limits": limits, "budget": budget}))
    elif options.statusline:
        spent = [f"{_cost(made.today)} today", f"{_cost(made.week)} this week", *_block(made)]
        print(printable(" · ".join([*spent, *map(_limit_text, limits)])))
    else:
        print(printable(" · ".join([_head(made), *map(_limit_text, limits)])))
        print(f"\n{_table(made, day)}")
        if len(made.rows) < made.n_rows:
            which = "the last" if by in ("day", "week", "month", "block") else "the largest"
            named = {"branch": "branches"}.get(by, f"{by}s")
            print(f"{which} {len(made.rows):,} of {made.n_rows:,} {named} with calls; --limit {made.n_rows} lists all")
        age = time.time() - (store.folder / INDEX_FILE).stat().st_mtime
        read = f"The store was last updated {_ago(age)} ago; `agentsignals analyze` reads new sessions."
        undated = f" {made.undated:,} model calls without a time are in no sum." if made.undated else ""
        print(f"\nTimes are in {made.zone}. {read}{undated}")
    if budget is not None and budget["is_over"]:
        if not options.json:
            used = formatted(budget["cost_usd"], "usd", budget["at_least"])
            tell(f"Over budget {budget['period']}: {used} of {formatted(options.budget, 'usd')}.")
        return OVER_BUDGET
    return 0


def _zone(name: str | None) -> tzinfo | None:
    if name is None:
        return None
    from zoneinfo import ZoneInfo, available_timezones

    try:
        return UTC if name.upper() == "UTC" else ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        from agentsignals.model.registry import did_you_mean

        hint = f"{did_you_mean(name, available_timezones())} Write a name such as Europe/Berlin, or UTC.".lstrip()
        raise UsageError(f"There is no time zone {name!r}.", hint) from None


def _budget(made: Spending, limit: float) -> dict[str, Any]:
    """Compare the cost of the current period with a limit: the week with `--by week`, the month with `--by month`, the
    open block with `--by block`, else the day. A lower bound above it is over it."""
    block = made.block.spent if made.block else None
    spent = {"week": made.week, "month": made.month, "block": block}.get(made.by, made.today)
    cost = spent.cost_usd if spent is not None else 0.0
    return {
        "limit_usd": limit,
        "period": {"week": "this week", "month": "this month", "block": "in this block"}.get(made.by, "today"),
        "cost_usd": cost,
        "at_least": spent is not None and spent.is_bound,
        "is_over": cost is not None and cost > limit,
    }


_END_BYTES = 256 * 1024


def _limits(logs: list[tuple[str, str]]) -> list[PlanLimit]:
    """Return the limits of the person's plan whose windows are open, from the newest log that states any."""
    for name, path in logs:
        with suppress(OSError), Path(path).open("rb") as log:
            log.seek(-min(_END_BYTES, log.seek(0, os.SEEK_END)), os.SEEK_END)
            if limits := plan_limits(name, log.read()):
                return [limit for limit in limits if limit.resets_at is None or limit.resets_at > time.time()]
    return []


def _limit_text(limit: PlanLimit) -> str:
    hours = limit.window_s / 3600
    name = {5: "five-hour limit", 168: "weekly limit"}.get(round(hours), f"{hours:.0f} h limit" if hours else "limit")
    ends = ""
    if limit.resets_at is not None:
        at = datetime.fromtimestamp(limit.resets_at)
        ends = f", resets {at:%a %H:%M}" if hours > 24 else f", resets {at:%H:%M}"
    return f"{name} {limit.used:.0%} used{ends}"


def _cost(spent: Spent) -> str:
    return formatted(spent.cost_usd, "usd", spent.is_bound)


def _head(made: Spending) -> str:
    today = f"Today {_cost(made.today)} ({times(made.today.sessions, 'session')})"
    if not made.today.calls and made.last is not None:
        today = f"No model call today ({made.date}); the last was on {made.last:%Y-%m-%d}"
    parts = [today, f"this week {_cost(made.week)}", f"this month {_cost(made.month)}"]
    return " · ".join([*parts, *_block(made)])


def _block(made: Spending) -> list[str]:
    if made.block is None:
        return []
    left = int((made.block.end.timestamp() - time.time()) // 60)
    ends = f"{made.block.start:%H:%M} to {made.block.end:%H:%M}"
    return [f"block {ends} {_cost(made.block.spent)}, {left // 60} h {left % 60} min left"]


def _table(made: Spending, since: str) -> str:
    def row(spent: Spent) -> tuple[Any, ...]:
        cached = (spent.cache_read_tokens or 0) + (spent.cache_write_tokens or 0)
        has_cache = spent.cache_read_tokens is not None or spent.cache_write_tokens is not None
        tokens = (spent.input_tokens, spent.output_tokens, cached if has_cache else None)
        counts = [formatted(n, "count") for n in (spent.sessions, spent.calls)]
        return spent.name, *counts, *(formatted(n, "tokens") for n in tokens), _cost(spent)

    heads = (made.by, "sessions", "calls", "input", "output", "cached", "cost")
    lines = [row(spent) for spent in made.rows]
    lines.append((f"all{since}", *row(made.whole)[1:]))
    return table(heads, lines, optional=("calls", "input", "output", "cached", "sessions"))


def _ago(seconds: float) -> str:
    minutes = int(seconds // 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // 1440} days"
