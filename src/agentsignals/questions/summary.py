"""The summary of a store: span, sessions or attempts, cost with its trend, failed calls, resolved by candidate, and
the first findings. The terminal, the page, the report and JSON documents show this one object."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from math import fsum

from msgspec import Struct

from agentsignals.questions.charts import buckets_of, start_of
from agentsignals.questions.question import Row, formatted, interval, times
from agentsignals.questions.ranking import Findings, Period, ResolvedGroup, Totals, amount, safe_name
from agentsignals.questions.sql import read_queries

SESSIONS = read_queries(__file__)["summary"]["sessions"]
"""Query for `totals`: a row a session."""
MOST_FINDINGS = 3
RECENT_DAYS = (7, 30)
"""Days of a trend: the longer of these that the span holds at least twice."""
NOUNS = {"product": "session", "eval": "attempt"}


def totals(rows: Iterable[Row]) -> Totals:
    """Return the figures of sessions. Rows: those of `SESSIONS`."""
    held = list(rows)
    dated = [row for row in held if row["started_at"] is not None]
    times = [row["started_at"] for row in dated]
    span = buckets_of(times)
    periods: list[Period] = []
    whole = _period("", held)
    recent = before = _period("", [])
    days = 0
    if span is not None:
        by_start: dict[datetime, list[Row]] = {start: [] for start in span.starts()}
        for row in dated:
            by_start[start_of(row["started_at"], span.step)].append(row)
        periods = [_period(f"{start:%Y-%m-%d}", of_it) for start, of_it in by_start.items()]
        end = max(times)
        days = max((n for n in RECENT_DAYS if end - min(times) >= timedelta(days=2 * n)), default=0)
        since, earlier = end - timedelta(days=days), end - timedelta(days=2 * days)
        recent = _period("", [row for row in dated if row["started_at"] > since])
        before = _period("", [row for row in dated if earlier < row["started_at"] <= since])
    return Totals(
        sessions=len(held),
        first=min(times, default=None),
        last=max(times, default=None),
        cost_usd=whole.cost_usd,
        priced=sum(row["cost_usd"] is not None for row in held),
        at_least=whole.at_least,
        answered=whole.answered,
        failed=whole.failed,
        step=span.step if span else "",
        periods=periods,
        recent_days=days,
        recent_usd=recent.cost_usd,
        recent_at_least=recent.at_least,
        before_usd=before.cost_usd,
        before_at_least=before.at_least,
    )


def _period(start: str, rows: Sequence[Row]) -> Period:
    costs = [row["cost_usd"] for row in rows if row["cost_usd"] is not None]
    return Period(
        start=start,
        sessions=len(rows),
        cost_usd=fsum(costs) if costs else None,
        at_least=any(row["is_bound"] or row["unpriced"] for row in rows),
        answered=sum(row["answered"] for row in rows),
        failed=sum(row["failed"] for row in rows),
    )


class Brief(Struct, frozen=True, kw_only=True):
    """A finding in two lines: what is the case; the amount, and what to do."""

    id: str
    sentence: str
    amount: str
    do: str
    again: str
    """The command that shows it with its evidence."""

    @property
    def told_amount(self) -> str:
        """The amount, unless the sentence begins with it."""
        number = self.amount.partition(" ")[0]
        return "" if self.sentence.removeprefix("At least ").startswith(f"{number} ") else self.amount


class ContextSummary(Struct, frozen=True, kw_only=True):
    """The summary of people's sessions (`product`) or of attempts of eval runs (`eval`)."""

    context: str
    totals: Totals
    findings: list[Brief]
    more_findings: int
    """Findings that are not among these."""
    command: str
    """The command for all findings."""
    resolved: list[ResolvedGroup] = []
    """Groups of comparable candidates, the one with most tasks first."""
    no_findings: str = ""
    """Why there are none."""
    changed_files: int = 0
    """Files that changed since this was computed."""


class Summary(Struct, frozen=True, kw_only=True):
    """The summary of a store, by context, the one with most sessions first."""

    contexts: list[ContextSummary]


def summary(every: Iterable[Findings]) -> Summary:
    """Return the summary of a store from the findings of its contexts."""
    parts = [of_context(made) for made in every if made.sessions]
    return Summary(contexts=sorted(parts, key=lambda part: -part.totals.sessions))


def of_context(made: Findings, counted: Totals | None = None, most: int = MOST_FINDINGS) -> ContextSummary:
    """Return the summary of one context. `counted`: figures of some of its sessions instead of all."""
    first = made.answers[:most]
    option = f" --context {made.context}" if made.elsewhere else ""
    return ContextSummary(
        context=made.context,
        totals=counted or made.totals,
        findings=[
            Brief(id=a.id, sentence=a.sentence, amount=amount(a.size, a.unit), do=a.do, again=a.again) for a in first
        ],
        more_findings=len(made.answers) - len(first),
        command=f"agentsignals findings{option}",
        resolved=made.resolved,
        no_findings="" if first else "; ".join(made.left_out.values()) or "nothing exceeds the thresholds",
        changed_files=made.changed_files,
    )


# The summary's figures in words.


def noun(context: str, n: int) -> str:
    """Return a count with the noun of its context: `1 attempt`, `12 sessions`."""
    return times(n, NOUNS[context])


def span_text(counted: Totals) -> str:
    """Return the days of the first and last session; empty if no time is recorded."""
    if counted.first is None or counted.last is None:
        return ""
    first, last = f"{counted.first:%Y-%m-%d}", f"{counted.last:%Y-%m-%d}"
    return first if first == last else f"{first} to {last}"


def cost_text(counted: Totals) -> str:
    """Return the cost, marked where it is a lower bound."""
    return formatted(counted.cost_usd, "usd", counted.at_least)


def trend_text(counted: Totals) -> str:
    """Return the cost of the days up to the last session against as many days before; empty where the span is too
    short. Of lower bounds the change is an estimate."""
    if not counted.recent_days or counted.recent_usd is None or counted.last is None:
        return ""
    cost = formatted(counted.recent_usd, "usd", counted.recent_at_least)
    said = f"{counted.recent_days} days to {counted.last:%Y-%m-%d} {cost}"
    if not counted.before_usd:
        return said
    change = counted.recent_usd / counted.before_usd - 1
    less = f"{abs(change):.0%} {'less than' if change < 0 else 'more than'}"
    times = f"{counted.recent_usd / counted.before_usd:.1f} times as much as" if change >= 2 else less
    about = "~" if counted.recent_at_least or counted.before_at_least else ""
    return f"{said}, {about}{times} in the {counted.recent_days} days before"


def failed_text(counted: Totals) -> str:
    """Return the share of failed calls; empty where no call was answered."""
    if not counted.answered:
        return ""
    return f"{formatted(counted.failed / counted.answered, 'share')} of {times(counted.answered, 'tool call')} failed"


def head_text(part: ContextSummary) -> str:
    """Return a context's figures in one line."""
    counted = part.totals
    cost = trend = ""
    if counted.cost_usd is not None:
        priced = "" if counted.priced == counted.sessions else f" for {counted.priced:,} of them"
        cost = f"{cost_text(counted)}{priced}"
        trend = trend_text(counted)
    facts = [noun(part.context, counted.sessions), span_text(counted), cost, trend, failed_text(counted)]
    return " · ".join(fact for fact in facts if fact)


def resolved_text(groups: Sequence[ResolvedGroup], most: int | None = None) -> list[str]:
    """Return what each candidate resolved, a line each under its group; at most so many lines."""
    lines: list[str] = []
    for n, group in enumerate(groups):
        tasks = times(group.tasks, "task") if group.tasks else "no task named"
        apart = ", not comparable with the groups above" if n else ""
        lines.append(f"Resolved, {', '.join([*group.datasets[:_DATASETS], tasks])}{apart}:")
        for c in group.candidates:
            share = "–" if c.share is None else f"{c.share:.0%}"
            solved = "" if c.share is None else f"{round(c.share * c.judged):,} of {c.judged:,}"
            lacking = f", {c.not_judged:,} not judged" if c.not_judged else ""
            lines.append(f"{share:>{_SHARE}}  {interval(c.low, c.high):13}{solved:>12}  {safe_name(c.name)}{lacking}")
        if group.command and n:
            lines.append(f"         {group.command}")
    if nobody := sum(group.unrecorded for group in groups):
        lines.append(f"{'–':>{_SHARE}}  {times(nobody, 'attempt')} without a recorded model or agent: in no line above")
    if most is None or len(lines) <= most:
        return lines
    shown = lines[: most - 1]
    while shown and shown[-1].startswith("Resolved"):
        shown.pop()
    left = sum(not line.startswith("Resolved") for line in lines[len(shown) :])
    return [*shown, f"{'':{_SHARE}}  and {left:,} more: agentsignals findings --context eval"]


_SHARE, _DATASETS = 7, 3
"""Columns of a share, right-aligned; named data sets."""
