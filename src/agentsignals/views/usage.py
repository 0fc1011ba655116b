"""Tokens and money of model calls: the only place where sessions, signals, reports and exports get their sums from."""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec import Struct

from agentsignals.model import ITERATION, NO_SUBAGENT, REPLAYED, SESSION_TOTAL, Session, Step
from agentsignals.model.prices import USD_DIGITS
from agentsignals.words.text import estimate_tokens

FINAL_SHARE = 0.5
"""Below it, the output of a session whose agent may log usage in mid-stream is a lower bound
(design/formats.md#output-in-mid-stream)."""
VISIBLE_ERROR = (
    "characters / 4; in sessions with complete logs output is 3.2 times that (median) or 4.8 times (p90), because"
    " thinking is billed but seldom logged"
)
"""Error of the estimate from the visible text, over 58 sessions (design/formats.md#output-in-mid-stream)."""
_WRITTEN = frozenset(("text", "thinking"))


def total_of(counts: list[int]) -> int | None:
    """Return the sum; None for an empty list."""
    return sum(counts) if counts else None


def used_tokens(step: Step) -> bool:
    """Return whether a model call reports any tokens."""
    return bool(step.input_tokens or step.output_tokens or step.cache_read_tokens or step.cache_write_tokens)


def cost_of(steps: list[Step]) -> float | None:
    """Return the cost of model calls in USD: of those with a price, a lower bound where `unpriced_parts` names others.
    None where none that used tokens has a price, or none reports usage. No call at all costs nothing."""
    unpriced = [s for s in steps if s.cost_usd is None]
    if unpriced:
        silent = len(unpriced) == len(steps) and all(s.output_tokens is s.input_tokens is None for s in unpriced)
        if silent or (any(map(used_tokens, unpriced)) and not any(s.cost_usd for s in steps)):
            return None
    return usd_of(steps)


def usd_of(steps: Iterable[Step]) -> float:
    """Return the sum of the known costs in USD, rounded to the decimals of prices."""
    return round(math.fsum([s.cost_usd or 0.0 for s in steps]), USD_DIGITS)


class UsageTotals(Struct, frozen=True, gc=False, kw_only=True):
    """Tokens and money of model calls together: None where no call reports them; money also where one has no price."""

    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cost_usd: float | None


def usage_totals(steps: list[Step]) -> UsageTotals:
    """Return the sums of model calls."""
    billed = [s for s in steps if s.output_tokens is not None or s.input_tokens is not None]
    return UsageTotals(
        input_tokens=total_of([n for s in billed if (n := s.input_tokens) is not None]),
        output_tokens=total_of([n for s in billed if (n := s.output_tokens) is not None]),
        cache_read_tokens=total_of([n for s in billed if (n := s.cache_read_tokens) is not None]),
        cache_write_tokens=total_of([n for s in billed if (n := s.cache_write_tokens) is not None]),
        cost_usd=cost_of(steps),
    )


def last_closing(steps: list[Step]) -> int:
    """Return the last step with the totals of a run, which include whatever calls before it lack; -1 without one."""
    closing = [s.step for s in steps if s.stop_reason == SESSION_TOTAL and s.output_tokens is not None]
    return max(closing, default=-1)


def final_share(steps: list[Step], closing: int = -1) -> float | None:
    """Return the share of model calls with usage that have a stop reason, or totals after them (`closing`, see
    `last_closing`); None when none has usage."""
    final = [
        s.stop_reason is not None or s.step < closing
        for s in steps
        if (s.output_tokens is not None or s.input_tokens is not None)
        and not (s.stop_reason or "").startswith(ITERATION)
    ]
    return sum(final) / len(final) if final else None


def is_lower_bound(session: Session) -> bool:
    """Return whether output tokens, and so the cost, were logged in mid-stream: the true ones are higher. For agents
    that log usage once an answer is complete, a missing stop reason means nothing. Main thread and subagents are tested
    apart: a long complete thread does not hide gaps of the other."""
    if "usage_logged_midway" not in session.conventions:
        return False
    closing = last_closing(session.steps)
    for of_subagents in (False, True):
        part = [s for s in session.steps if (s.thread not in NO_SUBAGENT) is of_subagents]
        share = final_share(part, closing)
        if share is not None and share < FINAL_SHARE:
            return True
    return False


def visible_output_tokens(session: Session) -> int | None:
    """Estimate output tokens from the visible text, thinking and arguments (`VISIBLE_ERROR`), where the logged output
    is a lower bound; None where it is exact."""
    if not is_lower_bound(session):
        return None
    chars = sum(e.n_chars for e in session.events if e.kind in _WRITTEN and e.thread != REPLAYED)
    chars += sum(len(c.arguments) for c in session.tool_calls if c.thread != REPLAYED)
    return max(estimate_tokens(chars), sum(s.output_tokens or 0 for s in session.steps))


def cost_source(steps: list[Step]) -> str | None:
    """Return the source of costs: `recorded`, a version of the price table, or both, joined by ` + `."""
    return " + ".join(sorted({s.cost_source for s in steps if s.cost_source is not None}, reverse=True)) or None


def replaced_usd(steps: list[Step]) -> float | None:
    """Return the dollars that the agent recorded and that are not believed; None where all are."""
    amounts = [s.replaced_cost_usd for s in steps if s.replaced_cost_usd is not None]
    return round(math.fsum(amounts), USD_DIGITS) if amounts else None


def unpriced_parts(steps: list[Step]) -> str | None:
    """Return what the cost of model calls (`cost_of`) leaves out, models without a price among it, so that it is too
    low; None where nothing is missing, or no cost is known."""
    parts = {s.unpriced for s in steps if s.unpriced is not None}
    if any(s.cost_usd for s in steps):
        parts |= {s.model or "unnamed models" for s in steps if s.cost_usd is None and used_tokens(s)}
    return "; ".join(sorted(parts)) or None
