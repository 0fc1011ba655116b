"""The few sentences that matter of a store: what stands out, ranked by size and sureness (design/findings.md).

A finding is one file in this folder that declares `FINDING`; none knows the store or another finding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from math import fsum
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from agentsignals.analysis.cost_causes import CARRIED, CAUSES, QUERIES
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.grouped import ranked
from agentsignals.analysis.ranking import Answer, Bounds, Findings, Question, decoded, standing_out
from agentsignals.analysis.rows import BOUND
from agentsignals.analysis.study import Inputs, Row
from agentsignals.errors import UsageError
from agentsignals.findings.inputs import Reader
from agentsignals.redaction import without_keys_in
from agentsignals.registry import Registry
from agentsignals.store import Store, kept_findings
from agentsignals.store.manifest import contexts, main_context

FINDINGS = Registry[Question](
    "finding", "agentsignals.findings", "FINDING", lambda unit: isinstance(unit, Question), r"\w+\.py"
)
_BILL = Question(
    name="bill",
    question="",
    queries={"bill": QUERIES["bill"]},
    function=lambda _: [],
    context="either",
    needs_charges=True,
)
Beside = Callable[[Callable[[], Any]], Callable[[], Any]]
"""Begins a function beside what is done next; what it gives waits for the answer."""
_NEAREST = 12
_LARGEST = 4
"""Causes that the line on the bill names."""


@cache
def questions() -> dict[str, Question]:
    """Every question by name."""
    return dict(sorted(FINDINGS.all().items()))


def findings(
    store: Store,
    context: str | None = None,
    bounds: Bounds | None = None,
    *,
    reader: Reader | None = None,
    beside: Beside | None = None,
) -> Findings:
    """What is worth saying of a store, ranked. `context`: `product` or `eval`; without one, people's sessions when
    there are any. `bounds`: below which nothing is said. `reader`: one that knows of `asking`. `beside`: how the
    questions about costs are begun, half of all that is done; without it they come second. Keys in names are masked,
    also in SQL.

    With the usual bounds it is computed once for each state of the store, and kept there as its table `findings`."""
    bounds = bounds or Bounds()
    context = context or main_context(store.manifest)
    is_usual = bounds == Bounds()
    if is_usual and (kept := decoded(kept_findings.read(store, context))) is not None:
        return kept
    candidates, frame = _candidates(store, context, questions(), reader, beside)
    made: Findings = without_keys_in(replace(frame, answers=standing_out(candidates, bounds), bounds=bounds))
    if is_usual:
        kept_findings.keep(store, context, msgspec.json.encode(made))
    return made


def asking(store: Store, context: str | None = None) -> list[Question]:
    """What `findings` would ask the store now; nothing where its answer was kept."""
    context = context or main_context(store.manifest)
    return [] if kept_findings.read(store, context) is not None else [_BILL, *questions().values()]


def every_context(store: Store) -> list[Findings]:
    """Those of each context that the store has: its table `findings`."""
    return [findings(store, context) for context in sorted(contexts(store.manifest))]


def answer(store: Store, id: str, context: str | None = None) -> Answer:  # noqa: A002  (the answer's field)
    """A candidate by its id, whether or not it is said, with the SQL that gives its rows: names stand there as they
    are. UsageError where there is none."""
    asked = {name: question for name, question in questions().items() if id.startswith(f"{name.replace('_', '-')}.")}
    candidates, _ = _candidates(store, context, asked)
    for made in candidates:
        if made.id == id:
            return made
    near = ", ".join(sorted(made.id for made in candidates)[:_NEAREST])
    raise UsageError(
        f"There is no finding {id!r}.",
        f"Of this kind there are: {near}." if near else "`agentsignals findings` names those that are said.",
    )


class _Answers(Struct):
    """What some questions make of a store."""

    candidates: dict[str, list[Answer]] = field(default_factory=dict)
    """By question."""
    left_out: dict[str, str] = field(default_factory=dict)
    bill: str = ""


def _candidates(
    store: Store,
    context: str | None,
    asked: dict[str, Question],
    reader: Reader | None = None,
    beside: Beside | None = None,
) -> tuple[list[Answer], Findings]:
    """What these questions make of the store, and the frame of what is said of it."""
    reader = reader or Reader(store, [_BILL, *asked.values()], context)
    asked = {name: question for name, question in asked.items() if question.context in (reader.context, "either")}
    costs_of = partial(_of_costs, reader, asked)
    answer = beside(costs_of) if beside else costs_of
    others = _answers(reader, {name: question for name, question in asked.items() if not question.needs_charges})
    costs = answer()
    made = costs.candidates | others.candidates
    frame = Findings(
        answers=[],
        sessions=sum(entry.context == reader.context for entry in store.manifest.sessions.values()),
        context=reader.context,
        bill=costs.bill,
        looked_at={name: len(made[name]) for name in asked},
        bounds=Bounds(),
        left_out={name: why for name in asked if (why := (costs.left_out | others.left_out).get(name))},
    )
    return [candidate for name in asked for candidate in made[name]], frame


def _of_costs(reader: Reader, asked: dict[str, Question]) -> _Answers:
    """What the questions about costs make of it, and the bill."""
    made = _answers(reader, {name: question for name, question in asked.items() if question.needs_charges})
    of_bill = reader.inputs(_BILL)
    made.bill = _bill(of_bill.rows["bill"], of_bill.paid)
    return made


def _answers(reader: Reader, asked: dict[str, Question]) -> _Answers:
    made = _Answers()
    for name, question in asked.items():
        made.candidates[name], why = _asked(question, reader.inputs(question))
        if why:
            made.left_out[name] = why
    return made


def _asked(question: Question, inputs: Inputs) -> tuple[list[Answer], str]:
    """Its candidates. What another package's raises leaves it out; what ours raises is a defect."""
    if not FINDINGS.places[question.name].distribution:
        return question.candidates(inputs), ""
    try:
        return question.candidates(inputs), ""
    except Exception as problem:  # noqa: BLE001  (whatever it is, the other questions are answered)
        FINDINGS.leave_out(FINDINGS.places[question.name], f"{type(problem).__name__}: {problem}")
        return [], FINDINGS.broken[question.name]


def _bill(bill: list[Row], paid: Mapping[str, Mapping[str, float]]) -> str:
    """What the sessions cost, and the largest causes of it."""
    total = fsum(row["cost_usd"] for row in bill)
    if not total:
        return ""
    causes: dict[str, float] = {}
    for cause, of_cause in paid.items():
        words = "carried context" if cause in CARRIED else CAUSES[cause]
        causes[words] = causes.get(words, 0.0) + fsum(of_cause.values())
    parts = [f"{formatted(usd / total, 'share')} {words}" for words, usd in ranked(causes)[:_LARGEST]]
    at_least = "at least " if any(row[BOUND] is not None for row in bill) else ""
    return f"{at_least}{formatted(total, 'usd')} over {len(bill):,} sessions: {', '.join(parts)}"
