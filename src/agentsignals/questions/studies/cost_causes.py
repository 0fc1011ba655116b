"""Where the money went: the bill by cause, and that by place, branch, model and day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from itertools import compress
from math import fsum
from typing import Any

from agentsignals.questions.charts import bars
from agentsignals.questions.cost_causes import BOUNDED, CARRIED, CAUSES, QUERIES
from agentsignals.questions.estimates import bar, chart, count, ranked, table, top_sessions
from agentsignals.questions.formatting import formatted, with_bound, without_bound
from agentsignals.questions.question import Chart, Evidence, Finding, Inputs, Outcome, Part, Row, Study, Table
from agentsignals.questions.sql import BOUND
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
    bill = inputs.rows["bill"]
    paid = _Paid(charges)
    branches = {row["session_id"]: row["branch"] for row in bill}
    keys = {
        "place": list(map(inputs.places.get, paid.sessions)),
        "branch": list(map(branches.get, paid.sessions)),
        "model": [charge["model"] for charge in charges],
        "day": [charge["day"] for charge in charges],
    }
    low = {row["session_id"] for row in bill if row[BOUND] is not None}
    tables = [_causes(paid, bill, bool(low))]
    tables += [_by(name, values, paid, low) for name, values in keys.items()]
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
    return Outcome(_findings(paid, bill), tables, [_chart(paid, len(bill), bool(low))], limits)


class _Paid:
    """The charges by column, and what each cause comes to."""

    def __init__(self, charges: list[Row]) -> None:
        self.sessions: list[str] = [charge["session_id"] for charge in charges]
        self.causes: list[str] = [charge["cause"] for charge in charges]
        self.usd: list[float] = [charge["usd"] for charge in charges]
        self.of_cause: dict[str, list[tuple[str, float]]] = {cause: [] for cause in CAUSES}
        for session_id, cause, usd in zip(self.sessions, self.causes, self.usd, strict=True):
            self.of_cause[cause].append((session_id, usd))
        self.sums = {cause: fsum([usd for _, usd in parts]) for cause, parts in self.of_cause.items()}

    def of(self, values: Sequence[Any], wanted: Any) -> list[Part]:
        """The charges of one value, where `values` are those of each charge."""
        each = zip(values, self.sessions, self.usd, strict=True)
        return [(session_id, usd, 1) for value, session_id, usd in each if value == wanted]


def _findings(paid: _Paid, bill: list[Row]) -> list[Finding]:
    total = fsum(row["cost_usd"] for row in bill)
    is_bound = any(row[BOUND] is not None for row in bill)
    return [
        count(usd, len(bill), "usd", evidence=partial(_of_bill, bill, paid.of_cause[cause])).finding(
            f"cost_causes.{cause}",
            f"Of the cost, {CAUSES[cause]}",
            _OF,
            f"{formatted(usd / total, 'share')} of {formatted(total, 'usd', is_bound)}" if total else "",
            unit="USD",
            priced=True,
            at_least=is_bound and cause in BOUNDED and usd > 0,
            sessions=top_sessions(paid.of_cause[cause]),
        )
        for cause, usd in paid.sums.items()
    ]


def _of_bill(bill: list[Row], paid: list[tuple[str, float]]) -> list[Part]:
    """What each session of the bill paid for a cause."""
    return [
        *((row["session_id"], 0, 1) for row in bill),
        *((session_id, usd, 0) for session_id, usd in paid),
    ]


def _causes(paid: _Paid, bill: list[Row], is_bound: bool) -> Table:
    total = fsum(paid.sums.values())
    rows: list[list[Any]] = [
        [
            CAUSES[cause],
            with_bound(usd, is_bound and cause in BOUNDED and usd > 0),
            usd / total if total else None,
            len({session_id for session_id, _ in paid.of_cause[cause]}),
        ]
        for cause, usd in paid.sums.items()
    ]
    rows.append(["all", with_bound(total, is_bound), 1.0 if total else None, len(bill)])
    header = "cause | usd cost:usd | share of the bill:share | sessions in sessions:count"
    behind: list[Evidence] = [partial(paid.of, paid.causes, cause) for cause in paid.sums]
    behind.append([(row["session_id"], row["cost_usd"], 1) for row in bill])
    return table("cost_causes.causes", "The bill by cause", header, rows, n=len(bill), of=_OF, evidence=behind)


def _by(name: str, values: list[Any], paid: _Paid, low: set[str]) -> Table:
    """The bill by something else, each with its causes. `low`: sessions whose output is a lower bound."""
    grouped: defaultdict[Any, defaultdict[str, float]] = defaultdict(partial(defaultdict, float))
    for value, cause, part in zip(values, paid.causes, paid.usd, strict=True):
        grouped[value][cause] += part
    totals = {value: fsum(causes.values()) for value, causes in grouped.items() if value is not None}
    is_low = set(compress(values, map(low.__contains__, paid.sessions))) if low else set()
    rows: list[list[Any]] = []
    for value, usd in ranked(totals)[:_MOST]:
        parts = [
            with_bound(part, value in is_low and group[0] in BOUNDED and part > 0)
            for group in _GROUPS.values()
            for part in [fsum(grouped[value][cause] for cause in group)]
        ]
        rows.append([redacted(str(value)), with_bound(usd, value in is_low), *parts])
    rest = fsum(paid.usd) - fsum(without_bound(row[1]) for row in rows)
    note = f"The {_MOST} largest of {len(totals):,}." if len(totals) > _MOST else ""
    unsaid = f"{formatted(rest, 'usd')} more lies elsewhere, or where none is named." if rest > 0.005 else ""
    return table(
        f"cost_causes.by_{name}",
        f"The bill by {name} and cause",
        f"{name}{':code' if name != 'day' else ''} | usd cost:usd | " + " | ".join(f"{group}:usd" for group in _GROUPS),
        rows,
        n=len({session_id for value, session_id in zip(values, paid.sessions, strict=True) if value is not None}),
        of=_OF,
        evidence=[partial(paid.of, values, named) for named, _ in ranked(totals)[:_MOST]],
        note=" ".join(part for part in (note, unsaid) if part),
    )


def _chart(paid: _Paid, n: int, is_bound: bool) -> Chart | None:
    total = fsum(paid.sums.values())
    rows = []
    for cause, usd in ranked(paid.sums):
        low = is_bound and cause in BOUNDED
        tip = f"{CAUSES[cause]}: {formatted(usd, 'usd', low)} ({formatted(usd / total, 'share')})" if usd > 0 else ""
        behind = partial(paid.of, paid.causes, cause)
        rows += [bar(CAUSES[cause], usd, tip, low, evidence=behind)] if tip else []
    return chart("cost_causes.bill", "The bill by cause", rows, bars(rows, "USD", "usd"), n=n, of=_OF)


STUDY = Study(
    name="cost_causes",
    order=325,
    title="Cost by cause",
    question="Where did the money go?",
    queries={"bill": QUERIES["bill"]},
    function=_outcome,
    needs_charges=True,
)
