"""A gate on a comparison: conditions under which a candidate must not pass.

Each condition is met, not met, or undecided: if an interval reaches both sides, or a figure is missing, it does not
pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import inf, isclose, isfinite
from typing import Literal, NamedTuple

from msgspec import Struct, field

from agentsignals.errors import UsageError
from agentsignals.model.registry import no_such
from agentsignals.questions.compare import CALLED_BASELINE, Comparison
from agentsignals.questions.compare.attempts import MEASURES, TIME
from agentsignals.questions.compare.candidate import SPENT, Candidate, Estimate
from agentsignals.questions.compare.pairs import Conclusion, Pair
from agentsignals.questions.question import interval

Verdict = Literal["met", "not met", "cannot tell"]
Ending = Literal["passed", "failed", "cannot tell"]
EXIT_CODES: dict[Ending, int] = {"passed": 0, "failed": 1, "cannot tell": 3}
"""2 is a usage error."""
_ROUNDING = 1e-12


class Range(NamedTuple):
    value: float | None
    low: float | None
    high: float | None
    why: str = ""
    """Reason why an end or the value is missing."""


class Figure(NamedTuple):
    """A figure that a condition may use, of a candidate or of a pair."""

    says: str
    of_candidate: Callable[[Candidate], Range] | None = None
    of_pair: Callable[[Pair], Range] | None = None
    """Figures of the pair without a counterpart in the baseline, or differences within matched tasks."""
    outcomes: Literal["yes or no", "numbers", "any"] = "any"


class Check(Struct, frozen=True, kw_only=True):
    condition: str
    candidate: str
    verdict: Verdict
    because: str
    """The figures as text."""


class Gate(Struct, frozen=True, kw_only=True):
    """The result of all conditions."""

    ending: Ending
    decided_by: Literal["interval", "value"]
    checks: list[Check] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)
    """Candidates that tried no task of the baseline."""

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.ending]


class Term(NamedTuple):
    """`figure sign factor * baseline + offset`. The factor is 0 without a baseline.

    For a conclusion: its word with the sign `is` or `is not`.
    """

    text: str
    name: str
    sign: str
    factor: float
    offset: float


def _exact(value: float | None, why: str = "unknown") -> Range:
    return Range(value, value, value, "" if value is not None else why)


def _estimated(estimate: Estimate) -> Range:
    why = "no known outcome" if estimate.value is None else f"{estimate.tasks:,} tasks are too few for an interval"
    return Range(estimate.value, estimate.low, estimate.high, why)


def _within_tasks(pair: Pair) -> Range:
    p = pair.paired
    why = "no matched task" if p.value is None else f"{p.tasks:,} matched tasks are too few for an interval"
    return Range(p.value, p.low, p.high, why)


def _tested(value: float | None, pair: Pair) -> Range:
    return _exact(value, f"{pair.paired.tasks:,} matched tasks are too few for a test")


def _bound(candidate: Candidate, which: Literal["worst", "best"]) -> Range:
    return _exact(getattr(candidate.bounds, which, None), "no attempts")


def _counted(pair: Pair, n: int, unknown: int) -> Range:
    """`unknown`: tasks without an outcome of the candidate, which might count too."""
    if not pair.paired.tasks:
        return _exact(None, "no matched task")
    return Range(n, n, n + unknown, f"{unknown:,} more tasks have no outcome of the candidate")


def _median(name: str) -> Callable[[Candidate], Range]:
    def range_of(candidate: Candidate) -> Range:
        taken = candidate.took[name]
        if taken.at_least:
            return Range(taken.median, taken.low, inf, "lower bound")
        reasons = ", ".join(f"{n:,} {reason}" for reason, n in taken.absent.items())
        why = (
            f"{taken.n:,} attempts are too few for an interval" if taken.n else f"unknown for all attempts ({reasons})"
        )
        return Range(taken.median, taken.low, taken.high, why)

    return range_of


def _each_solved(name: str) -> Callable[[Candidate], Range]:
    def range_of(candidate: Candidate) -> Range:
        spent = candidate.per_solved.get(name)
        if spent is None or spent.value is None:
            return Range(None, None, None, "none solved, or nothing measured")
        if spent.at_least:
            return Range(spent.value, None, inf, "lower bound without an interval")
        return Range(spent.value, None, None, "no interval")

    return range_of


FIGURES: dict[str, Figure] = {
    "solve_rate": Figure("share of first attempts solved", lambda c: _estimated(c.first), _within_tasks, "yes or no"),
    "mean": Figure("mean outcome of first attempts", lambda c: _estimated(c.first), _within_tasks, "numbers"),
    "worst_rate": Figure("solve_rate if all missing outcomes failed",
                         lambda c: _bound(c, "worst"), None, "yes or no"),
    "best_rate": Figure("solve_rate if all missing outcomes were solved",
                        lambda c: _bound(c, "best"), None, "yes or no"),
    "attempts": Figure("first attempts", lambda c: _exact(c.first_attempts)),
    "not_judged": Figure("first attempts without an outcome", lambda c: _exact(sum(c.absent.values()))),
    "infrastructure": Figure("first attempts stopped by infrastructure errors",
                             lambda c: _exact(sum(c.infrastructure.values()))),
    "difference": Figure("candidate minus baseline within matched tasks", None, _within_tasks),
    "p": Figure("p value of that difference", None, lambda pair: _tested(pair.paired.p, pair)),
    "p_adjusted": Figure("p adjusted over all candidates", None, lambda pair: _tested(pair.p_adjusted, pair)),
    "matched_tasks": Figure("tasks with a known outcome of both", None, lambda pair: _exact(pair.paired.tasks)),
    "regressions": Figure("matched tasks where the candidate did worse", None,
                          lambda pair: _counted(pair, pair.paired.lost, pair.missing.could_regress)),
    "improvements": Figure("matched tasks where the candidate did better", None,
                           lambda pair: _counted(pair, pair.paired.gained, pair.missing.could_improve)),
    **{name: Figure(f"median {name} of first attempts", _median(name)) for name in MEASURES},
    **{f"{name}_per_solved": Figure(f"{name} of all first attempts per solved one", _each_solved(name), None,
                                    "yes or no") for name in SPENT},
}  # fmt: skip
"""Figures by the name that begins a condition (docs/compare.md)."""
_LEAST: dict[str, Callable[[Pair], float | None]] = {
    "p": lambda pair: pair.paired.least_p,
    "p_adjusted": lambda pair: pair.least_p,
}
"""Smallest value that a figure can reach with so few tasks."""
_COUNTS = ("attempts", "not_judged", "infrastructure")
"""Figures comparable with the baseline's even on other tasks."""


_LONGEST = 500
"""Longest condition in characters: longer ones make the patterns backtrack for minutes."""
_NUMBER = r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_TERM = re.compile(
    rf"\s*(?P<name>[A-Za-z_]\w*)\s*(?P<sign><=|>=|<|>)\s*"
    rf"(?:(?P<number>{_NUMBER})|(?:(?P<before>{_NUMBER})\s*\*\s*)?baseline(?:\s*\*\s*(?P<after>{_NUMBER}))?"
    rf"(?:\s*(?P<plus>[+-])\s*(?P<offset>{_NUMBER}))?)\s*"
)
_WORDS = ("better", "worse", "higher", "lower", "undecided")
_WORD = re.compile(rf"\s*(not\s+)?({'|'.join(_WORDS)})\s*")
_SHAPE = (
    "Write FIGURE < BOUND (or <=, >, >=), joined by `and`, or a conclusion such as `worse` or `not better`. A BOUND"
    " is a number or [NUMBER *] baseline [+ or - NUMBER]. Example: `solve_rate < baseline - 0.05`."
)


def parse_condition(condition: str) -> list[Term]:
    """Parse the terms of a condition, all of which must hold. UsageError names the available figures."""
    if len(condition) > _LONGEST:
        raise UsageError(
            f"The --fail-if condition has {len(condition):,} characters; {_LONGEST} are allowed.",
            "Split it into several --fail-if.",
        )
    return [_term(part) for part in re.split(r"\band\b", condition)]


def _term(text: str) -> Term:
    """Parse one term of a condition, such as `solve_rate < baseline - 0.05`."""
    word = _WORD.fullmatch(text)
    if word is not None:
        return Term(text.strip(), word[2], "is not" if word[1] else "is", 0.0, 0.0)
    match = _TERM.fullmatch(text)
    begins = match or re.match(r"\s*(?P<name>[A-Za-z_]\w*)", text)
    if begins is not None and begins["name"] not in FIGURES:
        raise UsageError(*no_such("--fail-if figure", begins["name"], [*FIGURES, *_WORDS]))
    if match is None:
        raise UsageError(f"{text.strip()!r} is not a --fail-if condition.", _SHAPE)
    name, part = match["name"], match.groupdict()
    factor, offset = 0.0, float(part["number"] or 0)
    if part["number"] is None:
        if FIGURES[name].of_candidate is None:
            raise UsageError(
                f"{name!r} already is a comparison with the baseline, so it can't be compared with it again.",
                f"Compare it with a number: `{name} {match['sign']} 0.05`.",
            )
        factor = float(part["before"] or 1) * float(part["after"] or 1)
        offset = float(part["offset"] or 0) * (-1 if part["plus"] == "-" else 1)
        if factor <= 0:
            raise UsageError(f"--fail-if {text.strip()!r} multiplies the baseline by {factor:g}.", "Use one above 0.")
    if not isfinite(factor) or not isfinite(offset):
        raise UsageError(f"--fail-if {text.strip()!r} contains a number that is too large.", _SHAPE)
    return Term(text.strip(), name, match["sign"], factor, offset)


def gate(
    comparison: Comparison, conditions: Sequence[str], *, baseline: str | None = None, by_value: bool = False
) -> Gate:
    """Check every condition for every candidate but the baseline. The gate fails if one candidate meets a condition.

    A candidate under other limits, or with few of the baseline's tasks, can't be told. One that tried none of them is
    not checked.
    `baseline`: the one asked for. `by_value`: decide by the estimate, else by the whole 95 % interval. UsageError for
    an invalid condition, and if the baseline among several candidates is only a guess, which could change tomorrow.
    """
    terms = {condition.strip(): parse_condition(condition) for condition in conditions}
    for name in (term.name for parts in terms.values() for term in parts if term.name in FIGURES):
        outcomes = FIGURES[name].outcomes
        if outcomes != "any" and (outcomes == "yes or no") != comparison.yes_or_no:
            kind, instead = ("a number", "mean") if outcomes == "yes or no" else ("yes or no", "solve_rate")
            raise UsageError(f"The outcome {comparison.outcome} is {kind}, so there is no {name}.", f"Use {instead}.")
    names = [candidate.name for candidate in comparison.candidates]
    if baseline is None and len(names) > 1 and (comparison.baseline or "").lower() not in CALLED_BASELINE:
        raise UsageError(
            "The --fail-if condition compares with a baseline, and none is named.",
            f"Add --baseline NAME. Candidates: {', '.join(names[:10])}.",
        )
    judged = [c for c in comparison.candidates if c.name != comparison.baseline]
    if not judged and baseline is None:
        judged = list(comparison.candidates)
    base = next((c for c in comparison.candidates if c.name == comparison.baseline and c not in judged), None)
    pairs = {pair.candidate: pair for pair in comparison.pairs}
    concluded = {conclusion.candidate: conclusion for conclusion in comparison.conclusions}
    checks = []
    for c in judged:
        sides = _Sides(c, base, pairs.get(c.name), concluded.get(c.name), comparison.common_tasks == 0)
        for condition, parts in terms.items():
            results = [_judged(term, sides, by_value) for term in parts]
            verdict = _worst([verdict for verdict, _ in results], "not met", "cannot tell", "met")
            because = "; ".join(because for _, because in results)
            checks.append(Check(condition=condition, candidate=c.name, verdict=verdict, because=because))
    for group in comparison.other_groups:
        because = f"not comparable with {comparison.baseline}: {'. '.join(group.reasons)}"
        for name in group.candidates if group.shares_tasks else ():
            checks += [Check(condition=c, candidate=name, verdict="cannot tell", because=because) for c in terms]
    if not checks:
        alone = f"the baseline, {comparison.baseline}, is the only candidate"
        checks = [Check(condition=c, candidate="", verdict="cannot tell", because=alone) for c in terms]
    endings: dict[Verdict, Ending] = {"met": "failed", "cannot tell": "cannot tell", "not met": "passed"}
    return Gate(
        ending=endings[_worst([check.verdict for check in checks], "met", "cannot tell", "not met")],
        decided_by="value" if by_value else "interval",
        checks=checks,
        not_compared=[name for group in comparison.other_groups if not group.shares_tasks for name in group.candidates],
    )


def _worst(verdicts: Sequence[Verdict], *order: Verdict) -> Verdict:
    """Return the first in this order that is among the verdicts; the last if none is."""
    return next((verdict for verdict in order if verdict in verdicts), order[-1])


class _Sides(NamedTuple):
    candidate: Candidate
    base: Candidate | None
    pair: Pair | None
    conclusion: Conclusion | None
    tasks_differ: bool
    """True if no task is shared, so that rates are about other tasks."""


def _judged(term: Term, sides: _Sides, by_value: bool) -> tuple[Verdict, str]:
    """Decide whether a term is met by its whole interval (or by its value), with the sentence that says why."""
    if term.name not in FIGURES:
        conclusion = sides.conclusion
        if conclusion is None:
            return "cannot tell", f"{term.text}: no baseline to compare with"
        if conclusion.word == "too few":
            return "cannot tell", conclusion.sentence
        return "met" if (conclusion.word == term.name) == (term.sign == "is") else "not met", conclusion.sentence
    figure = FIGURES[term.name]
    name, bound = term.name, _exact(term.offset)
    against = f"{term.offset:g}"
    if figure.of_pair is not None and (figure.of_candidate is None or term.factor == 1):
        if sides.pair is None:
            return "cannot tell", f"{name}: no baseline to compare with"
        asked = figure.of_pair(sides.pair)
        least = _exact(_LEAST[name](sides.pair) if name in _LEAST else None)
        if term.sign.startswith("<") and _verdict(term.sign, least, bound) == "not met":
            n = sides.pair.paired.tasks
            return "cannot tell", f"{name} of {n:,} matched tasks is at least {_shown(least)}, whatever the outcomes"
        name = f"{name} minus the baseline's" if figure.of_candidate else name
    elif figure.of_candidate is not None:
        asked = figure.of_candidate(sides.candidate)
        if term.factor:
            why = _not_alike(name, sides)
            if why or sides.base is None:
                return "cannot tell", f"{name}: {why}"
            base = figure.of_candidate(sides.base)
            value, low, high = (None if end is None else term.factor * end + term.offset for end in base[:3])
            bound = Range(value, low, high, base.why)
            against = _shown(bound)
    if by_value:
        asked, bound = _narrowed(asked), _narrowed(bound)
    return _verdict(term.sign, asked, bound), f"{name} {_shown(asked)}, compared with {against}"


def _not_alike(name: str, sides: _Sides) -> str:
    """Return why a figure is not comparable with the baseline's, or an empty string."""
    if sides.base is None:
        return "no baseline to compare with"
    if sides.tasks_differ and name not in _COUNTS:
        return "no shared task, and the tasks may differ in difficulty"
    if name.startswith(TIME) and sides.candidate.took[TIME].clocks != sides.base.took[TIME].clocks:
        return "candidate and baseline use different clocks"
    return ""


def _narrowed(range_: Range) -> Range:
    """Replace the interval by the value; a lower bound stays open above."""
    return Range(range_.value, range_.value, inf if range_.high == inf else range_.value, range_.why)


def _verdict(sign: str, figure: Range, bound: Range) -> Verdict:
    if sign.startswith(">"):
        figure, bound = bound, figure  # a > b is b < a
    if sign.endswith("="):
        met, unmet = _below(figure.high, bound.low, True), _below(bound.high, figure.low, False)
    else:
        met, unmet = _below(figure.high, bound.low, False), _below(bound.high, figure.low, True)
    return "met" if met else "not met" if unmet else "cannot tell"


def _below(left: float | None, right: float | None, or_equal: bool) -> bool:
    """True if all of the left is below the right. A missing or open end never is."""
    if left is None or right is None or inf in (left, right):
        return False
    return or_equal if isclose(left, right, rel_tol=_ROUNDING, abs_tol=_ROUNDING) else left < right


def _shown(range_: Range) -> str:
    if range_.value is None:
        return f"unknown: {range_.why}"
    if range_.low == range_.high == range_.value:
        return f"{range_.value:.4g}"
    if range_.low is None or range_.high is None:
        return f"{range_.value:.4g} ({range_.why})"
    if range_.high == inf:
        return f"{range_.value:.4g} or more ({range_.why})"
    return f"{range_.value:.4g}{interval(range_.low, range_.high, '{:.4g}', ' ({})')}"
