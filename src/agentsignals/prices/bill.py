"""What model calls used and cost, line by line and in decimals, so that a sum can be checked by hand."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from decimal import Decimal
from math import isnan
from typing import Literal, get_args

from msgspec import Struct

from agentsignals.model import ABANDONED, MAIN, REPLAYED, Step
from agentsignals.prices import charge

Kind = Literal[
    "input", "cache read", "cache write 5m", "cache write 1h", "output", "reasoning", "web searches", "not split",
    "recorded", "rounding",
]  # fmt: skip
"""`cache write 5m`: for minutes, or for how long is not logged; `reasoning`: a part of the output; `not split`: a
subagent's tokens, of which the log tells neither kind nor model; `recorded`: what the trace says was paid, whatever the
list prices are; `rounding`: what the value leaves out behind its last digit."""
_ORDER = {kind: n for n, kind in enumerate(get_args(Kind))}
CACHE_WRITES: frozenset[Kind] = frozenset(("cache write 5m", "cache write 1h"))
PROMPT: frozenset[Kind] = CACHE_WRITES | {"input", "cache read"}
PAID: frozenset[Kind] = PROMPT | {"output", "web searches", "recorded"}
_WHOSE = {MAIN: "main thread", ABANDONED: "left branches", REPLAYED: "copied history"}
_A_MILLION = 1_000_000


class Line(Struct, frozen=True, kw_only=True):
    """Tokens (or searches) of one kind that have one price."""

    whose: str
    """`main thread`, `subagents`, `left branches`, `copied history`."""
    model: str
    kind: Kind | Literal[""]
    """Empty of a sum."""
    calls: int
    amount: int
    usd_each_million: Decimal | None = None
    """The list price, times the factor of a speed, tier or place; None: not known, or not what was paid."""
    usd: Decimal | None = None
    counts: bool
    """Whether it is part of the value."""
    at_least: bool = False
    """Whether it was logged in mid-stream: a lower bound."""


def lines(steps: Collection[Step], counted: Mapping[int, Collection[Kind]], is_bound: bool = False) -> list[Line]:
    """The bill of these calls, first what is part of a value: the kinds that `counted` names by the `id` of a call.
    `is_bound`: their output was logged in mid-stream."""
    sums: dict[tuple[bool, str, str, Kind, Decimal | None], tuple[int, int, Decimal | None]] = {}
    for step in steps:
        whose, model = _WHOSE.get(step.thread, "subagents"), step.model or "unknown model"
        for kind, amount, price in _parts(step):
            counts = kind in counted.get(id(step), ())
            paid = Decimal(repr(step.cost_usd)) if kind == "recorded" else price and amount * price / _A_MILLION
            calls, before, usd = sums.get((counts, whose, model, kind, price), (0, 0, None))
            total = paid if usd is None or paid is None else usd + paid
            sums[counts, whose, model, kind, price] = (calls + 1, before + amount, total)
    return [
        Line(whose=whose, model=model, kind=kind, calls=calls, amount=amount, usd_each_million=price, usd=usd,
             counts=counts, at_least=is_bound and kind in ("output", "reasoning"))
        for (counts, whose, model, kind, price), (calls, amount, usd) in sorted(
            sums.items(), key=lambda s: (not s[0][0], s[0][1] != _WHOSE[MAIN], *s[0][1:3], _ORDER[s[0][3]])
        )
    ]  # fmt: skip


def rounding(value: float, bill: Collection[Line]) -> Line | None:
    """What a value in USD differs by from its lines; None where they sum to its last digit."""
    rest = Decimal(repr(value)) - usd_of(bill)
    return Line(whose="", model="", kind="rounding", calls=0, amount=0, usd=rest, counts=True) if rest else None


def usd_of(bill: Collection[Line]) -> Decimal:
    """The dollars of those lines that are part of the value."""
    return sum((line.usd for line in bill if line.counts and line.usd is not None), Decimal())


def summed(bill: Collection[Line]) -> Line:
    """The lines that are part of the value as one: their tokens, without a part of the output twice, and their USD."""
    counted = [line for line in bill if line.counts]
    all_kinds = {line.kind for line in counted}
    beside = ("web searches", "recorded", "rounding", *(("reasoning",) if "output" in all_kinds else ()))
    return Line(
        whose="",
        model="",
        kind="",
        calls=0,
        amount=sum(line.amount for line in counted if line.kind not in beside),
        usd=usd_of(counted),
        counts=True,
        at_least=any(line.at_least for line in counted),
    )


def in_digits(usd: Decimal | None) -> str:
    """An amount with all its digits and no more; empty where it is not known."""
    return "" if usd is None else f"{usd.normalize():f}"


def _parts(step: Step) -> list[tuple[Kind, int, Decimal | None]]:
    """Amounts by kind, each with the price of a million; of what was recorded, or has no price, None."""
    is_recorded = step.cost_source == "recorded"
    is_listed = step.cost_usd is not None and not is_recorded
    terms, factor, search = charge(step)
    hour = step.cache_write_1h_tokens or 0
    kinds: tuple[tuple[Kind, int, float], ...] = (
        ("input", step.input_tokens or 0, terms.input),
        ("cache read", step.cache_read_tokens or 0, terms.cache_read),
        ("cache write 5m", (step.cache_write_tokens or 0) - hour, terms.cache_write),
        ("cache write 1h", hour, terms.cache_write_1h),
        ("output", step.output_tokens or 0, terms.output),
    )
    parts = [(kind, n, _million(price, factor) if is_listed else None) for kind, n, price in kinds if n]
    if step.web_searches:
        parts.append(("web searches", step.web_searches, _million(search) if is_listed else None))
    if step.reasoning_tokens:
        parts.append(("reasoning", step.reasoning_tokens, None))
    if step.summed_tokens:
        parts.append(("not split", step.summed_tokens, None))
    if is_recorded and step.cost_usd is not None:
        parts.append(("recorded", 1, None))
    return parts


def _million(price: float, factor: float = 1.0) -> Decimal | None:
    """A price of one as that of a million, in the digits it is listed with; None of nan."""
    return None if isnan(price) else Decimal(repr(round(price * _A_MILLION, 6))) * Decimal(repr(factor))
