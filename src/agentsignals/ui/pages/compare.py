"""Candidates of an eval against each other, as `agentsignals compare` has it; each number opens its attempts."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from agentsignals.errors import UsageError
from agentsignals.questions.compare import MEASURES, Arms, Comparison, compare, outcome_rule
from agentsignals.questions.compare.attempts import available
from agentsignals.questions.compare.candidate import place
from agentsignals.questions.compare.pairs import gap_text, without_tasks, worth
from agentsignals.questions.formatting import formatted, signed
from agentsignals.stats.intervals import FEWEST_CLUSTERS
from agentsignals.ui.drill_down import arms_of, compare_key, rows_of
from agentsignals.ui.page import Page, Query, Route, address
from agentsignals.ui.snapshot import Reading

MOST_CANDIDATES = 25
MOST_TASKS = 200
OUTCOMES = ("reward", "resolved")


def page(reading: Reading, query: Query) -> Page:
    """The candidates there are, or `b` against `a`."""
    if "eval" not in reading.contexts:
        note = (
            "There is no eval attempt to compare. Attempts come from eval runs: agentsignals analyze RUNS reads them."
        )
        return Page("note.html.j2", "Compare", {"note": note, "where": "/attempts", "there": "Attempts"})
    outcome = query.text("outcome_by") or "reward"
    by = [column for column in query.text("by").split(",") if column]
    base, other = query.text("a"), query.text("b")
    weight = _weight(query.text("weight"))
    whole = reading.kept(("arms", outcome, *by), lambda: arms_of(reading.store, outcome, by))
    base = base if base in whole.groups else ""  # one of other columns may still stand in the address
    if weight == 1:
        comparison = reading.kept(("compare", outcome, *by, "|", base), lambda: _made(reading, outcome, by, base, 1.0))
    else:  # any number may be typed: not each is kept
        comparison = _made(reading, outcome, by, base, weight)
    shown = [c for c in comparison.candidates if not other or c.name in (other, comparison.baseline)][:MOST_CANDIDATES]
    tasks = _tasks(whole, comparison, other) if other in whole.groups and other != comparison.baseline else []

    pairs = [pair for pair in comparison.pairs if not other or pair.candidate == other][:MOST_CANDIDATES]

    def opens(what: str, name: str) -> str:
        return f"/behind?key={quote(compare_key(outcome, comparison.by, what, name), errors='surrogateescape')}"

    filled = {
        "comparison": comparison,
        "shown": shown,
        "more": len(comparison.candidates) - len(shown),
        "pairs": pairs,
        "took": [(p.candidate, measure, t) for p in pairs for measure, t in p.took.items() if t.p is not None],
        "took_family": sum(t.p is not None for p in comparison.pairs for t in p.took.values()),
        "tested": [pair for pair in pairs if pair.paired.tasks >= FEWEST_CLUSTERS and pair.power is not None],
        "most_tasks": MOST_TASKS,
        "nothing_shared": without_tasks(pairs),
        "names": [c.name for c in comparison.candidates],
        "columns": available(whole.everyone),
        "by": comparison.by if by else [],
        "base": comparison.baseline,
        "other": other,
        "tasks": tasks[:MOST_TASKS],
        "more_tasks": max(len(tasks) - MOST_TASKS, 0),
        "outcome": outcome,
        "outcomes": OUTCOMES,
        "measures": MEASURES,
        "opens": opens,
        "figure": _figure,
        "gap": gap_text,
        "signed": signed,
        "worth": worth,
        "conclusions": {c.candidate: c for c in comparison.conclusions},
        "sides": lambda a, b: f"/sides?a={quote(a, safe='')}&b={quote(b, safe='')}",
        "attempt": lambda session_id: address("session", session_id),
        "query": query,
    }
    return Page("compare.html.j2", "Compare", filled)


def _made(reading: Reading, outcome: str, by: list[str], base: str, weight: float) -> Comparison:
    return compare(outcome_rule(outcome), rows_of(reading.store, outcome), by, base or None, regression_weight=weight)


def _weight(text: str) -> float:
    """What a regression counts. UsageError of what is no number."""
    try:
        return float(text or 1)
    except ValueError as problem:
        raise UsageError(f"{text[:80]!r} is no weight of a regression.", "1 counts it as much as a gain.") from problem


def _tasks(whole: Arms, comparison: Comparison, other: str) -> list[dict[str, Any]]:
    """Tasks of both, those that came out otherwise first: outcome and first attempt of each."""
    sides = []
    for name in (comparison.baseline or "", other):
        tried: dict[str, list[Any]] = {}
        for attempt in whole.first.get(name, []):
            if attempt.task is not None and attempt.outcome is not None:
                tried.setdefault(place(attempt, whole.by_dataset), []).append(attempt)
        sides.append(tried)
    left, right = sides
    rows = []
    for task in sorted(left.keys() & right.keys()):
        a, b = ([attempt.outcome for attempt in side[task]] for side in sides)
        means = sum(a) / len(a), sum(b) / len(b)
        first = left[task][0], right[task][0]
        rows.append({"task": first[0].task, "a": means[0], "b": means[1], "of": (len(a), len(b)), "first": first})
    return sorted(rows, key=lambda row: (-abs(row["b"] - row["a"]), row["b"] - row["a"]))


def _figure(value: float | None, yes_or_no: bool) -> str:
    return formatted(value, "share" if yes_or_no else "number")


PAGES = (Route(("compare",), page, below="/attempts"),)
