"""How a search stands, and what it may be answered by: figures of the search beside those of the confirmation."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from msgspec import Struct

from agentsignals.analysis.compare.candidate import Estimate, estimate
from agentsignals.stats.paired import Arm, Paired, paired
from agentsignals.stats.power import smallest_shown
from agentsignals.tuning.plan import Candidate, Value
from agentsignals.tuning.racing import Drop
from agentsignals.tuning.search import Search

Verdict = Literal["under way", "no result", "default", "better", "worse", "not shown"]


class Tried(Struct, frozen=True, kw_only=True):
    """A candidate in the search. Its figures chose the winner, so they carry no interval: the winner's is too high."""

    treatment: dict[str, Value]
    runs: int
    tasks: int
    solved: int
    trials: int
    expected: float
    """The share to be expected at a task of middling difficulty, drawn towards what its values did elsewhere."""
    dropped: str
    """Why it is out of the race; empty where it is not."""


class Confirmed(Struct, frozen=True, kw_only=True):
    """The winner and the default on held-out tasks."""

    winner: Estimate
    default: Estimate
    difference: Paired
    smallest_seen: float | None
    """The difference that so many tasks show 4 times in 5, where as many change as were seen to."""


class Standing(Struct, frozen=True, kw_only=True):
    """What is to be said of a search."""

    verdict: Verdict
    answer: str
    over: str
    """Why the search ended; empty while it goes on."""
    outcome: str
    sampler: str
    candidates: int
    runs: int
    budget_runs: int
    interrupted: int
    failed: int
    """Runs that ended with another exit code than 0; what they left counts all the same."""
    cost_usd: float
    attempts: int
    unpriced: int
    """Attempts whose cost is not, or not wholly, in `cost_usd`."""
    wall_time_s: float
    without: dict[str, int]
    """Attempts and runs that count nowhere, by reason."""
    winner: dict[str, Value] | None
    """None while the search is under way, or has no outcome."""
    default: dict[str, Value]
    tried: list[Tried]
    """Most promising first."""
    confirmed: Confirmed | None
    caveats: list[str]


def standing(search: Search) -> Standing:
    """How it stands now; nothing is begun."""
    plan, next_run = search.plan, search.proposal()
    arms, held_out = search.arms("search"), search.arms("held_out")
    settled = search.confirms or (next_run is None and bool(arms))
    winner = search.winner if settled else None
    confirmed = None
    if winner is not None and winner != plan.start and held_out:
        confirmed = _confirmed(held_out.get(winner, {}), held_out.get(plan.start, {}))
    verdict, answer = _answer(search, next_run is None, winner, confirmed)
    cost, unpriced = search.cost()
    without: Counter[str] = Counter()
    for result in search.results.values():
        without.update(result.without)
    return Standing(
        verdict=verdict,
        answer=answer,
        over=_over(search) if next_run is None or search.confirms else "",
        outcome=plan.outcome,
        sampler=plan.sampler,
        candidates=len(plan.candidates()),
        runs=len(search.runs),
        budget_runs=plan.budget.runs,
        interrupted=sum(run.state == "interrupted" for run in search.runs),
        failed=sum(run.state == "ended" and run.exit_code != 0 for run in search.runs),
        cost_usd=cost,
        attempts=sum(result.attempts for result in search.results.values()),
        unpriced=unpriced,
        wall_time_s=sum(run.wall_time_s for run in search.runs),
        without=dict(without.most_common()),
        winner=None if winner is None else plan.treatment(winner),
        default=plan.treatment(plan.start),
        tried=_tried(search),
        confirmed=confirmed,
        caveats=_caveats(search, confirmed),
    )


def _tried(search: Search) -> list[Tried]:
    arms, lost = search.arms("search"), search.dropped()
    runs = Counter(search.candidate(run) for run in search.runs if run.phase == "search" and run.state == "ended")
    rows = []
    for candidate in runs:
        outcomes = _outcomes(arms.get(candidate, {}))
        rows.append(
            Tried(
                treatment=search.plan.treatment(candidate),
                runs=runs[candidate],
                tasks=len(arms.get(candidate, {})),
                solved=round(sum(outcomes)),
                trials=len(outcomes),
                expected=search.effects.estimate(candidate),
                dropped=_why(lost[candidate]) if candidate in lost else "",
            )
        )
    return sorted(rows, key=lambda row: (bool(row.dropped), -row.expected))


def _why(drop: Drop | None) -> str:
    if drop is None:
        return "its runs left no outcome"
    return f"{drop.probability:.1%} likely to be better than the first"


def _outcomes(arm: Arm) -> list[float]:
    return [outcome for outcomes in arm.values() for outcome in outcomes]


def _confirmed(winner: Arm, default: Arm) -> Confirmed:
    difference = paired(winner, default, yes_or_no=True)
    power = smallest_shown(difference.tasks, difference.discordance) if difference.discordance else None
    shares = [estimate([(t, o) for t, outcomes in arm.items() for o in outcomes], True) for arm in (winner, default)]
    return Confirmed(winner=shares[0], default=shares[1], difference=difference, smallest_seen=power)


def _answer(search: Search, ended: bool, winner: Candidate | None, confirmed: Confirmed | None) -> tuple[Verdict, str]:
    if not ended:
        doing = "confirming its winner" if search.confirms else "searching"
        return "under way", f"The search is under way: {doing}."
    if winner is None:
        return "no result", "No run left an outcome: nothing can be said."
    if winner == search.plan.start:
        return (
            "default",
            "No better than the default: nothing tried is expected to do better, so nothing was confirmed.",
        )
    return _confirmation(words(search.plan.treatment(winner)), None if confirmed is None else confirmed.difference)


def _confirmation(name: str, difference: Paired | None) -> tuple[Verdict, str]:
    """What the held-out tasks say of the winner."""
    if difference is None or difference.value is None:
        return "not shown", f"{name} came first in the search, and no held-out task has outcomes of it and the default."
    gap = f"{100 * difference.value:+.1f} points on {difference.tasks} held-out tasks"
    if difference.low is None or difference.high is None:
        return "not shown", f"Whether {name} is better than the default can't be told: {gap}, {difference.method}."
    gap += f" (95% interval {100 * difference.low:+.1f} to {100 * difference.high:+.1f})"
    if difference.low > 0:
        return "better", f"{name} is better than the default: {gap}."
    if difference.high < 0:
        return "worse", f"{name}, first in the search, is worse than the default: {gap}. Keep the default."
    return "not shown", f"No better than the default, as far as can be told: {name}, first in the search, has {gap}."


def _over(search: Search) -> str:
    """Why no more is searched."""
    made, reserved = sum(run.phase == "search" for run in search.runs), 2 * len(search.held_out)
    if made + 1 + reserved > search.plan.budget.runs:
        return f"{search.plan.budget.runs} runs are the budget, {reserved} of them for the confirmation"
    if search.race is None:
        return "every candidate in the race has run every task"
    return search.spent(reserved) or "what the budget left was for the confirmation"


def _caveats(search: Search, confirmed: Confirmed | None) -> list[str]:
    lines = []
    if confirmed is not None:
        seen = {task for arm in search.arms("search").values() for task in arm}
        again = seen & {task for arm in search.arms("held_out").values() for task in arm}
        if again:
            lines.append(
                f"{len(again)} held-out tasks were searched on, too: the interval speaks of other runs at these tasks,"
                " not of other tasks"
            )
        shown = (confirmed.difference.low or 0) > 0 or (confirmed.difference.high or 0) < 0
        if confirmed.smallest_seen is not None and not shown:
            lines.append(
                f"with {confirmed.difference.tasks} held-out tasks a difference under"
                f" {100 * confirmed.smallest_seen:.0f} points is mostly missed"
            )
        missing = 2 * len(search.held_out) - sum(r.phase == "held_out" and r.state == "ended" for r in search.runs)
        if missing > 0:
            lines.append(f"{missing} held-out runs were not made")
    unpriced, attempts = search.cost()[1], sum(result.attempts for result in search.results.values())
    if 0 < unpriced < attempts:
        lines.append(f"the cost is a lower bound: {unpriced} of {attempts} attempts have none, or not the whole")
    return lines


def words(treatment: dict[str, Value]) -> str:
    """A treatment in words."""
    return ", ".join(
        f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in treatment.items()
    )
