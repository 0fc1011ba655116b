"""Tokens and money of model calls: the one ledger that sessions, signals, reports and exports sum up to."""

from __future__ import annotations

import math

from msgspec import Struct

from agentsignals.model import Step


def total_of(counts: list[int]) -> int | None:
    """The sum; None of nothing."""
    return sum(counts) if counts else None


def used_tokens(step: Step) -> bool:
    """Whether a model call says that it used any."""
    return bool(step.input_tokens or step.output_tokens or step.cache_read_tokens or step.cache_write_tokens)


def cost_of(steps: list[Step]) -> float | None:
    """What model calls cost together, in USD; None when one that used tokens has no price, or none says what it used.

    No call at all costs nothing.
    """
    if steps and not any(
        s.cost_usd is not None or s.output_tokens is not None or s.input_tokens is not None for s in steps
    ):
        return None
    if any(s.cost_usd is None and used_tokens(s) for s in steps):
        return None
    return math.fsum([s.cost_usd or 0.0 for s in steps])


class Ledger(Struct, frozen=True, gc=False, kw_only=True):
    """Tokens and money of model calls together: None where no call says, of money also where one has no price."""

    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cost_usd: float | None


def ledger(steps: list[Step]) -> Ledger:
    """The sums of model calls."""
    billed = [s for s in steps if s.output_tokens is not None or s.input_tokens is not None]
    return Ledger(
        input_tokens=total_of([n for s in billed if (n := s.input_tokens) is not None]),
        output_tokens=total_of([n for s in billed if (n := s.output_tokens) is not None]),
        cache_read_tokens=total_of([n for s in billed if (n := s.cache_read_tokens) is not None]),
        cache_write_tokens=total_of([n for s in billed if (n := s.cache_write_tokens) is not None]),
        cost_usd=cost_of(steps),
    )


def cost_source(steps: list[Step]) -> str | None:
    """Where the costs of model calls are from: `recorded`, a version of the price table, or both, joined by ` + `."""
    return " + ".join(sorted({s.cost_source for s in steps if s.cost_source is not None}, reverse=True)) or None


def unpriced_parts(steps: list[Step]) -> str | None:
    """What the costs of model calls leave out, so that they are too low; None: nothing."""
    return "; ".join(sorted({s.unpriced for s in steps if s.unpriced is not None})) or None
