"""Where the money went: the bill by cause, and that by place, branch, model and day."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from math import fsum
from typing import Any

from agentsignals.analysis.behind import Counted, Part
from agentsignals.analysis.charts import bars
from agentsignals.analysis.cost_causes import BOUNDED, CARRIED, CAUSES, QUERIES
from agentsignals.analysis.figures import bounded, formatted, plain
from agentsignals.analysis.grouped import bar, behind, chart, count, drawn, ranked, table
from agentsignals.analysis.places import by_session
from agentsignals.analysis.rows import BOUND
from agentsignals.analysis.study import Chart, Finding, Inputs, Outcome, Row, Study, Table
from agentsignals.redaction import redacted

_GROUPS = {
    "carried carried": CARRIED,
    "lost caches lost": ("rebuilt", "missed", "compaction"),
    "wasted failed or twice": ("failed", "repeated", "reread"),
    "subagents subagents": ("subagents",),
    "new new": ("cache_write", "input"),
    "output output": ("output",),
    "other other": ("other",),
}
"""Causes together, as columns of the smaller tables; every cause is in one."""
_MOST = 15
_OF = "priced sessions"


def _outcome(inputs: Inputs) -> Outcome:
    charges = inputs.rows["charges"]
    if not charges:
        return Outcome()
    sessions = {row["session_id"]: row for row in inputs.rows["bill"]}
    places = by_session(inputs.rows["bill"])
    keys: dict[str, Callable[[Row], Any]] = {
        "place": lambda charge: places.get(charge["session_id"]),
        "branch": lambda charge: sessions[charge["session_id"]]["branch"],
        "model": lambda charge: charge["model"],
        "day": lambda charge: charge["day"],
    }
    low = {session_id for session_id, row in sessions.items() if row[BOUND] is not None}
    tables = [_causes(charges, inputs.rows["bill"], bool(low))]
    tables += [_by(name, key, charges, low) for name, key in keys.items()]
    limits = [
        "A dollar is under one cause, the first of the list that claims it; the causes sum to the bill.",
        "Which part of a context is whose is counted in tokens estimated from characters, never beyond what was sent."
        " What was read again or called again counts only where arguments and length of the result are equal and"
        " no edit is seen between: at least so much.",
        "Subagents are one cause: what they were sent and answered is not taken apart.",
    ]
    if low:
        limits.append(
            f"{len(low):,} sessions log their output in mid-stream: output, subagents and bill are at least that."
        )
    return Outcome(
        _findings(charges, inputs.rows["bill"]), tables, drawn(_chart(charges, len(sessions), bool(low))), limits
    )


def _sums(charges: list[Row]) -> dict[str, float]:
    parts: dict[str, list[float]] = {cause: [] for cause in CAUSES}
    for charge in charges:
        parts[charge["cause"]].append(charge["usd"])
    return {cause: fsum(usd) for cause, usd in parts.items()}


def _findings(charges: list[Row], bill: list[Row]) -> list[Finding]:
    total = fsum(row["cost_usd"] for row in bill)
    is_bound = any(row[BOUND] is not None for row in bill)
    return [
        count(usd, len(bill), "usd", behind=partial(_paid, bill, charges, cause)).finding(
            f"cost_causes.{cause}",
            f"Of the cost, {CAUSES[cause]}",
            _OF,
            f"{formatted(usd / total, 'share')} of {formatted(total, 'usd', is_bound)}" if total else "",
            unit="USD",
            priced=True,
            at_least=is_bound and cause in BOUNDED and usd > 0,
            sessions=behind((charge["session_id"], charge["usd"]) for charge in charges if charge["cause"] == cause),
        )
        for cause, usd in _sums(charges).items()
    ]


def _paid(bill: list[Row], charges: list[Row], cause: str) -> list[Part]:
    """What each session of the bill paid for a cause."""
    return [
        *((row["session_id"], 0, 1) for row in bill),
        *((charge["session_id"], charge["usd"], 0) for charge in charges if charge["cause"] == cause),
    ]


def _causes(charges: list[Row], bill: list[Row], is_bound: bool) -> Table:
    sums = _sums(charges)
    total = fsum(sums.values())
    causes = [charge["cause"] for charge in charges]
    pairs = set(zip((charge["session_id"] for charge in charges), causes, strict=True))
    paid = Counter(cause for _, cause in pairs)
    rows: list[list[Any]] = [
        [
            CAUSES[cause],
            bounded(usd, is_bound and cause in BOUNDED and usd > 0),
            usd / total if total else None,
            paid[cause],
        ]
        for cause, usd in sums.items()
    ]
    rows.append(["all", bounded(total, is_bound), 1.0 if total else None, len(bill)])
    header = "cause | usd cost:usd | share of the bill:share | sessions in sessions:count"
    behind: list[Counted] = [partial(_charged, charges, causes, cause) for cause in sums]
    behind.append([(row["session_id"], row["cost_usd"], 1) for row in bill])
    return table("cost_causes.causes", "The bill by cause", header, rows, n=len(bill), of=_OF, behind=behind)


def _charged(charges: list[Row], values: Sequence[Any], wanted: Any) -> list[Part]:
    """The charges of one value, where `values` are those of each charge."""
    return [(c["session_id"], c["usd"], 1) for value, c in zip(values, charges, strict=True) if value == wanted]


def _by(name: str, key: Callable[[Row], Any], charges: list[Row], low: set[str]) -> Table:
    """The bill by something else, each with its causes. `low`: sessions whose output is a lower bound."""
    grouped: dict[Any, defaultdict[str, float]] = {}
    values = [key(charge) for charge in charges]
    for value, charge in zip(values, charges, strict=True):
        grouped.setdefault(value, defaultdict(float))[charge["cause"]] += charge["usd"]
    totals = {value: fsum(causes.values()) for value, causes in grouped.items() if value is not None}
    is_low = {value for value, charge in zip(values, charges, strict=True) if charge["session_id"] in low}
    rows: list[list[Any]] = []
    for value, usd in ranked(totals)[:_MOST]:
        parts = [
            bounded(part, value in is_low and group[0] in BOUNDED and part > 0)
            for group in _GROUPS.values()
            for part in [fsum(grouped[value][cause] for cause in group)]
        ]
        rows.append([redacted(str(value)), bounded(usd, value in is_low), *parts])
    rest = fsum(charge["usd"] for charge in charges) - fsum(plain(row[1]) for row in rows)
    note = f"The {_MOST} largest of {len(totals):,}." if len(totals) > _MOST else ""
    unsaid = f"{formatted(rest, 'usd')} more lies elsewhere, or where none is named." if rest > 0.005 else ""
    return table(
        f"cost_causes.by_{name}",
        f"The bill by {name} and cause",
        f"{name}{':code' if name != 'day' else ''} | usd cost:usd | " + " | ".join(f"{group}:usd" for group in _GROUPS),
        rows,
        n=len({c["session_id"] for value, c in zip(values, charges, strict=True) if value is not None}),
        of=_OF,
        behind=[partial(_charged, charges, values, named) for named, _ in ranked(totals)[:_MOST]],
        note=" ".join(part for part in (note, unsaid) if part),
    )


def _chart(charges: list[Row], n: int, is_bound: bool) -> Chart | None:
    sums = _sums(charges)
    total = fsum(sums.values())
    rows = []
    causes = [charge["cause"] for charge in charges]
    for cause, usd in ranked(sums):
        low = is_bound and cause in BOUNDED
        tip = f"{CAUSES[cause]}: {formatted(usd, 'usd', low)} ({formatted(usd / total, 'share')})" if usd > 0 else ""
        behind = partial(_charged, charges, causes, cause)
        rows += [bar(CAUSES[cause], usd, tip, low, behind=behind)] if tip else []
    return chart("cost_causes.bill", "The bill by cause", rows, bars(rows, "USD", "usd"), n=n, of=_OF)


STUDY = Study(
    name="cost_causes",
    place=325,
    title="Cost by cause",
    question="Where did the money go?",
    queries={"bill": QUERIES["bill"]},
    function=_outcome,
    needs_charges=True,
)
