"""The pages of eval runs: candidates with their attempts, their comparison, and why attempts failed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from agentsignals.errors import UsageError
from agentsignals.questions.compare import QUERIES, Arms, Comparison, resolved_groups, treatments_option
from agentsignals.questions.compare import question as compare_question
from agentsignals.questions.compare.attempts import MEASURES, available
from agentsignals.questions.compare.pairs import gap_text, weight_text, without_tasks
from agentsignals.questions.failure_map import FailureMap, class_text, passes_text
from agentsignals.questions.failure_map import question as failure_question
from agentsignals.questions.question import Inputs, formatted, signed
from agentsignals.stats.intervals import FEWEST_CLUSTERS, rate_interval
from agentsignals.ui.filter import arms_of, compare_key, filtered
from agentsignals.ui.page import Page, Query, Route, Where, address, part_of, sql
from agentsignals.ui.snapshot import Snapshot
from agentsignals.views.failure import RULES

SIZE = 50
COLUMNS = {
    "task_id": "task",
    "attempt_index": "attempt",
    "reward": "reward",
    "wall_time_s": "took",
    "n_tool_calls": "tool calls",
    "output_tokens": "tokens out",
    "cost_usd": "cost",
}
"""Columns that the list can be ordered by, and their headings."""
MOST_TREATMENTS = 60
"""Treatments in a table, those with most attempts."""
OF_TREATMENT = ("agent_type", "model_id", "dataset", "effective_tool_cap", "attempt_index")
OF_CANDIDATE = OF_TREATMENT[:3]
"""Columns in which the attempts of one trial agree: a retry has a cap of its own."""


class Step(NamedTuple):
    """A thing that attempts are counted by: `reached` and `recorded` are SQL over `attempts` of queries.sql."""

    label: str
    means: str
    reached: str
    recorded: str = "true"
    """A condition on attempts that record it."""


RUNGS = {
    "transcript": Step("transcript", "the conversation was collected", "has_transcript"),
    "patch": Step("patch", "the patch is not empty", "has_patch", "has_patch IS NOT NULL"),
    "applied": Step("applied", "the patch applied", "patch_applies", "patch_applies IS NOT NULL"),
    "tests": Step(
        "tests run",
        "the verifier reported test counts",
        "fail_to_pass_count IS NOT NULL",
        "fail_to_pass_count IS NOT NULL",
    ),
    "partly": Step(
        "some fixed", "at least one failing test now passes", "fail_to_pass_count > 0", "fail_to_pass_count IS NOT NULL"
    ),
    "solved": Step(
        "solved",
        "by the harness reward, or else by the tests",
        "outcome = 'solved'",
        "outcome IN ('solved', 'failed')",
    ),
}
"""The ladder: what an attempt has to have come to, in order (docs/design/signals.md#outcome-of-an-attempt)."""
PASSES = {
    "first": Step("trials", "first attempts", "nth = 0"),
    "first_solved": Step(
        "solved on first attempt",
        "first attempt with a verdict",
        "nth = 0 AND is_solved",
        "nth = 0 AND outcome IN ('solved', 'failed')",
    ),
    "retried": Step("retried", "retried after an unsolved first attempt", "nth = 0 AND NOT first_solved AND last > 0"),
    "recovered": Step("recovered", "solved by a retry", "NOT first_solved AND nth = solved_at"),
    "unrecovered": Step(
        "not recovered",
        "not solved by any retry",
        "NOT first_solved AND nth > 0 AND nth = last AND solved_at IS NULL",
    ),
}
"""First pass and recovery, each by one attempt of a trial, so that attempts count trials."""


def treatments(snapshot: Snapshot) -> list[dict[str, Any]]:
    """The attempts of each treatment, counted by the rungs of the ladder."""
    rows = _counted(snapshot, OF_TREATMENT, RUNGS, sql("attempts.judged"))
    for row in rows:
        # Where no verifier spoke of any, what gave up is no rate: only failures could be known.
        if not row["verified"]:
            row["judged"] = row["steps"]["solved"]["recorded"] = 0
        # Solved and judged attempts of each task: attempts at one task are alike, and tasks are what was drawn.
        counted: dict[str, list[int]] = {}
        for attempt in row["judgements"] if row["judged"] else ():
            pair = counted.setdefault(attempt["task"], [0, 0])
            pair[0] += attempt["solved"]
            pair[1] += 1
        row["interval"] = rate_interval([(float(k), float(n)) for k, n in counted.values()])
    return rows


def candidates(snapshot: Snapshot) -> list[dict[str, Any]]:
    """The trials of each candidate: first pass, retries, and what these recovered. Those alone that retried any."""
    rows = _counted(snapshot, OF_CANDIDATE, PASSES)
    return [row for row in rows if row["steps"]["retried"]["n"]]


def narrowed(snapshot: Snapshot, where: Where, treatment: str, step: str) -> dict[str, Any] | None:
    """Has the condition choose the attempts that a table counts; gives the row of the treatment that was named."""
    steps = {**RUNGS, **PASSES}
    if step in steps:
        where.add(f"coalesce({steps[step].reached}, false)")
    rows = [
        *snapshot.kept("treatments", lambda: treatments(snapshot)),
        *snapshot.kept("candidates", lambda: candidates(snapshot)),
    ]
    row = next((row for row in rows if row["key"] == treatment), None)
    if treatment:
        where.add("true" if row is not None else "false")
    for n, (column, value) in enumerate(row["columns"].items() if row is not None else ()):
        where.add(f"{column} IS NOT DISTINCT FROM $of{n}", **{f"of{n}": value})
    return row


def _counted(snapshot: Snapshot, columns: Sequence[str], steps: dict[str, Step], *more: str) -> list[dict[str, Any]]:
    """Return, for each treatment, how many attempts reached each step and how many record it."""
    counts = [
        f"count(*) FILTER ({sql}) AS {kind}_{name}"
        for name, step in steps.items()
        for kind, sql in (("n", f"{step.reached}"), ("recorded", step.recorded))
    ]
    by = ", ".join(columns)
    asked = sql("attempts.by_treatment", columns=by, counts=", ".join([*counts, *more]), most=MOST_TREATMENTS)
    rows = snapshot.rows(asked)
    for row in rows:
        row["columns"] = {column: row[column] for column in columns}
        row["key"] = hashlib.blake2b(msgspec.json.encode(row["columns"]), digest_size=6).hexdigest()
        row["steps"] = {name: {"n": row[f"n_{name}"], "recorded": row[f"recorded_{name}"]} for name in steps}
    return rows


def attempts_page(snapshot: Snapshot, query: Query) -> Page:
    """Attempts whose sessions fit the filter, and above them the treatments there are."""
    # Attempts are of eval runs alone, so the filter "people or eval runs" of other pages selects nothing here.
    choice = filtered(Query(query.with_(context="").removeprefix("?")), snapshot)
    choice = choice._replace(offered={**choice.offered, "context": []})
    of_data_sets = snapshot.kept("attempts:data sets", lambda: snapshot.rows(sql("attempts.data_sets")))
    data_sets = [row["v"] for row in of_data_sets]
    dataset = query.choice("dataset", data_sets)
    where = Where()
    where.choose("dataset = $dataset", dataset=dataset)
    if choice.words:
        where.add(f"session_id IN ({choice.sessions})", **choice.where.values)
    step = query.choice("step", {**RUNGS, **PASSES})
    treatment = narrowed(snapshot, where, query.text("treatment"), step)
    order = query.choice("order", COLUMNS, "task_id")
    upward = query.choice("way", ("up", "down"), "up" if order in ("task_id", "attempt_index") else "down") == "up"
    total = snapshot.rows(sql("attempts.count", where=where.text()), where.values)[0]["n"]
    part = part_of(query, SIZE, total)
    ordered = f"{order} {'ASC' if upward else 'DESC'} NULLS LAST"
    asked = sql("attempts.page", where=where.text(), order=ordered)
    filled = {
        "rows": snapshot.rows(asked, {**where.values, "size": SIZE, "start": part.start}),
        "resolved": snapshot.kept(
            "resolved",
            lambda: resolved_groups(Inputs(rows={name: snapshot.rows(asked) for name, asked in QUERIES.items()})),
        ),
        "treatments": snapshot.kept("treatments", lambda: treatments(snapshot)),
        "candidates": snapshot.kept("candidates", lambda: candidates(snapshot)),
        "rungs": RUNGS,
        "passes": PASSES,
        "step": {**RUNGS, **PASSES}.get(step),
        "treatment": treatment,
        "filter": choice,
        "data_sets": data_sets,
        "dataset": dataset,
        "columns": COLUMNS,
        "order": order,
        "upward": upward,
        "part": part,
    }
    return Page("attempts.html.j2", "Evals", filled)


# Why attempts of eval runs failed, by candidate: each number lists its attempts, each with the event that shows it.

MOST_CANDIDATES = 60


def failures_page(snapshot: Snapshot, query: Query) -> Page:
    """The map, and the attempts of the chosen `candidate` and `class`."""
    if "eval" not in snapshot.contexts:
        note = "The store has no eval attempts. Run agentsignals analyze RUNS on a folder of eval runs."
        return Page("note.html.j2", "Failures", {"note": note, "where": "/attempts", "there": "Attempts"})
    by = [column for column in query.text("by").split(",") if column]
    made: FailureMap = snapshot.recent(("failures", *by), lambda: failure_question(by).answer(snapshot.rows))
    counted = {c.name: {share.name: share for share in c.classes} for c in made.candidates}
    rules = [rule for rule in RULES if any(rule.name in shares for shares in counted.values())]
    candidate = query.choice("candidate", counted)
    chosen = query.choice("class", [rule.name for rule in RULES])
    which = query.choice("which", ("first", "retries"))
    listed = []
    for f in made.listed:
        is_of = candidate in ("", f.candidate) and chosen in ("", f.name)
        if is_of and which in ("", "retries" if f.attempt else "first"):
            listed.append(f)
    part = part_of(query, SIZE, len(listed))
    filled = {
        "made": made,
        "rules": rules,
        "shares": {share.name: share for share in made.classes},
        "counted": counted,
        "shown": [c for c in made.candidates if c.failed or c.retries_failed][:MOST_CANDIDATES],
        "candidate": candidate,
        "chosen": chosen,
        "which": which,
        "listed": listed[part.start : part.end],
        "part": part,
        "by": by,
        "class_words": class_text,
        "passes": passes_text(made),
        "size": SIZE,
        "evidence": lambda session_id, signal: address("session", session_id, "explain", signal),
        "at": lambda session_id, seq: f"{address('session', session_id)}?at={seq}#e{seq}",
    }
    return Page("failures.html.j2", "Failures", filled)


# Candidates of an eval against each other, as `agentsignals evals compare` has it; each number opens its attempts.

MOST_COMPARED = 25
MOST_TASKS = 200
OUTCOMES = ("reward", "resolved")


def compare_page(snapshot: Snapshot, query: Query) -> Page:
    """The candidates there are, or `b` against `a`."""
    if "eval" not in snapshot.contexts:
        note = "The store has no eval attempts to compare. Run agentsignals analyze RUNS on a folder of eval runs."
        return Page("note.html.j2", "Compare", {"note": note, "where": "/attempts", "there": "Attempts"})
    outcome = query.text("outcome_by") or "reward"
    by = [column for column in query.text("by").split(",") if column]
    base, other = query.text("a"), query.text("b")
    try:
        weight = float(query.text("weight") or 1)
    except ValueError as problem:
        typed = query.text("weight")[:80]
        raise UsageError(
            f"{typed!r} is not a valid regression weight.",
            "Use a number from 0.001 to 1000. With 1 a task lost counts like a task gained.",
        ) from problem
    whole = snapshot.kept(("arms", outcome, *by), lambda: arms_of(snapshot.store, outcome, by))
    base = base if base in whole.groups else ""  # one of other columns may still stand in the address

    def made(only: Sequence[str] = ()) -> Comparison:
        asked = compare_question(outcome, by, base or None, regression_weight=weight, only=only, anyway=bool(only))
        comparison: Comparison = asked.answer(snapshot.rows)
        return comparison

    # Any weight may be typed: only the comparison without one is kept.
    comparison = snapshot.kept(("compare", outcome, *by, "|", base), made) if weight == 1 else made()
    if other in whole.groups and other not in {c.name for c in comparison.candidates}:
        base = base or comparison.baseline or ""
        comparison = made([other])
    shown = [c for c in comparison.candidates if not other or c.name in (other, comparison.baseline)][:MOST_COMPARED]
    tasks = _tasks(whole, comparison, other) if other in whole.groups and other != comparison.baseline else []

    pairs = [pair for pair in comparison.pairs if not other or pair.candidate == other][:MOST_COMPARED]

    def opens(what: str, name: str) -> str:
        key = compare_key(outcome, comparison.by, what, name, comparison.baseline)
        return f"/behind?key={quote(key, errors='surrogateescape')}"

    filled = {
        "comparison": comparison,
        "shown": shown,
        "more": len(comparison.candidates) - len(shown),
        "zeros": any(c.zeros.judged < c.zeros.n for c in shown),
        "pairs": pairs,
        "took": [(p.candidate, measure, t) for p in pairs for measure, t in p.took.items() if t.p is not None],
        "took_family": sum(t.p is not None for p in comparison.pairs for t in p.took.values()),
        "tested": [pair for pair in pairs if pair.paired.tasks >= FEWEST_CLUSTERS and pair.power is not None],
        "most_tasks": MOST_TASKS,
        "nothing_shared": without_tasks(pairs),
        "names": list(whole.groups),
        "lacking": [c for c in comparison.candidates if c.missing_tasks],
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
        "figure": lambda value, yes_or_no: formatted(value, "share" if yes_or_no else "number"),
        "gap": gap_text,
        "signed": signed,
        "worth": weight_text,
        "treatments_option": treatments_option,
        "conclusions": {c.candidate: c for c in comparison.conclusions},
        "sides": lambda a, b: f"/sides?a={quote(a, safe='')}&b={quote(b, safe='')}",
        "attempt": lambda session_id: address("session", session_id),
    }
    return Page("compare.html.j2", "Compare", filled)


def _tasks(whole: Arms, comparison: Comparison, other: str) -> list[dict[str, Any]]:
    """Tasks of both, those that came out otherwise first: outcome and first attempt of each."""
    sides = []
    for name in (comparison.baseline or "", other):
        tried: dict[str, list[Any]] = {}
        for attempt in whole.first.get(name, []):
            if attempt.task is not None and attempt.outcome is not None:
                tried.setdefault(attempt.task_key, []).append(attempt)
        sides.append(tried)
    left, right = sides
    rows = []
    for task in sorted(left.keys() & right.keys()):
        a, b = ([attempt.outcome for attempt in side[task]] for side in sides)
        means = sum(a) / len(a), sum(b) / len(b)
        first = left[task][0], right[task][0]
        rows.append({"task": first[0].task, "a": means[0], "b": means[1], "of": (len(a), len(b)), "first": first})
    return sorted(rows, key=lambda row: (-abs(row["b"] - row["a"]), row["b"] - row["a"]))


PAGES = (
    Route(("attempts",), attempts_page, "Evals", 30, holds=lambda snapshot: "eval" in snapshot.contexts),
    Route(("failures",), failures_page, below="/attempts", is_ranged=True),
    Route(("compare",), compare_page, below="/attempts", is_ranged=True),
)
