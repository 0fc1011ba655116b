"""Findings about eval runs: who solved more, at what cost, why attempts failed, and passes that were not earned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import fsum
from typing import Any

from msgspec.structs import replace

from agentsignals.questions.compare import (
    OF_ATTEMPTS,
    QUERIES,
    RULE,
    Arms,
    Comparison,
    arms,
    comparable,
    eval_comparisons,
    named,
    treatments_option,
)
from agentsignals.questions.compare.attempts import proposed
from agentsignals.questions.compare.pairs import held_over
from agentsignals.questions.estimates import ClusteredShare, clustered_share
from agentsignals.questions.question import Inputs, Question, Row, formatted, times
from agentsignals.questions.ranking import (
    Answer,
    finding_id,
    safe_excerpt,
    safe_name,
    sessions_sql,
    share_fields,
    sql_text,
)
from agentsignals.questions.sql import declared, read_queries
from agentsignals.stats.validation import CAVEAT
from agentsignals.views.reward_hacking import NOT_EARNED

_SQL = read_queries(__file__)


def _arms(inputs: Inputs, comparison: Comparison) -> Arms:
    whole = arms(RULE, inputs.rows, comparison.by)
    return comparable(whole, comparison.by, comparison.baseline, only=[c.name for c in comparison.candidates])


def _with_parts(parts: Iterable[tuple[str, float]], column: str) -> dict[str, Any]:
    """Return the fields of evidence that is attempts with their parts of the claim, largest first."""
    held = ", ".join(f"({sql_text(session_id)}, {part!r}::DOUBLE)" for session_id, part in parts)
    if not held:
        return {"cause": f"{OF_ATTEMPTS} WHERE false"}
    cause = (
        f"SELECT session_id, {column}, attempts.* EXCLUDE (session_id) FROM ({OF_ATTEMPTS}) AS attempts"
        f" JOIN (VALUES {held}) AS parts (session_id, {column}) USING (session_id) ORDER BY {column} DESC, session_id"
    )
    return {"cause": cause, "part": column}


def solved_more(inputs: Inputs) -> list[Answer]:
    made = eval_comparisons(inputs)
    others = made[0].other_groups if made else []
    if others and not any(comparison.pairs for comparison in made):
        reasons = dict.fromkeys(reason for group in others for reason in group.reasons)
        return [
            Answer(
                id="solved-more.unlike",
                sentence=f"No two of the {len(made):,} candidates ran the same tasks under the same limits, so none are"
                f" compared: {safe_excerpt(', '.join(dict.fromkeys(why.partition(':')[0] for why in reasons)))}.",
                size=made[0].attempts,
                unit="attempts",
                share=1.0,
                n=made[0].attempts,
                cause=OF_ATTEMPTS,
                do="Run the missing tasks under the same limits.",
                caveat=f"Settings that no run records may differ too. {safe_excerpt('; '.join(reasons), 400)}.",
            )
        ]
    answers = []
    for comparison in made:
        tried = _arms(inputs, comparison)
        for pair in comparison.pairs:
            matched = pair.paired
            if matched.p is None:
                continue
            gap = float(matched.value or 0.0)
            better, other, gained, lost = pair.candidate, pair.baseline, matched.gained, matched.lost
            ends = None if matched.low is None or matched.high is None else (matched.low, matched.high)
            if gap < 0:
                better, other, gained, lost = other, better, lost, gained
                ends = (-ends[1], -ends[0]) if ends is not None else None
            # Tasks that one solved more often: each with the attempt of the better one, and with how much more of it.
            sides: list[dict[str, list[tuple[str, float]]]] = [{}, {}]
            for side, name in zip(sides, (better, other), strict=True):
                for attempt in tried.first[name]:
                    if attempt.outcome is not None:
                        side.setdefault(attempt.task_key, []).append((attempt.session_id, attempt.outcome))
            ours, theirs = sides
            means = [{task: fsum(k for _, k in held) / len(held) for task, held in side.items()} for side in sides]
            more = {task: mean - means[1][task] for task, mean in means[0].items() if task in theirs}
            parts = [(ours[task][0][0], gap_here) for task, gap_here in more.items() if gap_here]
            how = f"Retries are not counted; test: {matched.test or 'paired by task'}.{held_over(pair, True)}"
            answers.append(
                Answer(
                    id=finding_id("solved-more", pair.candidate),
                    sentence=f"{named(better)} solved {abs(gap) * 100:.0f} percentage points more than {named(other)}"
                    " on"
                    f" the same {matched.tasks:,} tasks: better on {gained:,}, worse on {lost:,}.",
                    size=abs(gap) * matched.tasks,
                    unit="tasks",
                    share=abs(gap),
                    interval=ends,
                    p=pair.p,
                    n=matched.tasks,
                    **_with_parts(parts, "tasks_more"),
                    do="Choose it if its cost per solved task is acceptable.",
                    caveat=" ".join([*comparison.warnings[:1], how]),
                )
            )
    return answers


SOLVED_MORE_FINDING = Question(**declared("asked", "solved_more", **QUERIES), function=solved_more)


# -- Models that only the folders' names tell


def no_model(inputs: Inputs) -> list[Answer]:
    rows = inputs.rows["attempts"]
    lacking = [row for row in rows if not row["model_id"]]
    proposal = proposed(rows)
    if not proposal:
        return []
    return [
        Answer(
            id="no-model.folders",
            sentence=f"{len(lacking):,} of {len(rows):,} attempts record no model, but their folder names contain it.",
            size=len(lacking),
            unit="attempts",
            share=len(lacking) / len(rows),
            n=len(rows),
            cause=f"{OF_ATTEMPTS} WHERE model_id IS NULL",
            do="Take the model of each candidate from its folder name:"
            f" `agentsignals evals compare {treatments_option(proposal)}`.",
            caveat="People choose folder names. Check that the names match what ran.",
            of_data=True,
        )
    ]


NO_MODEL_FINDING = Question(**declared("asked", "no_model", attempts=QUERIES["attempts"]), function=no_model)


# -- Cost of a solved task

APART = 1.5
"""By what factor one must cost more for each solved task to be worth a sentence."""


def solved_cost(inputs: Inputs) -> list[Answer]:
    answers = []
    for comparison in eval_comparisons(inputs):
        per_solved = ((c, c.per_solved.get("cost_usd")) for c in comparison.candidates)
        priced = [(c, per.value) for c, per in per_solved if per is not None and per.n and per.value is not None]
        if len(priced) < 2:
            continue
        cheapest, least = min(priced, key=lambda pair: (pair[1], pair[0].name))
        tried = _arms(inputs, comparison)
        for dear, usd in priced:
            if dear is cheapest:
                continue
            low, high = dear.took["cost_usd"].low, cheapest.took["cost_usd"].high
            is_apart = low is not None and high is not None and low > high
            parts = [
                (attempt.session_id, cost - least * attempt.outcome)
                for attempt in tried.shared(dear.name)
                if attempt.outcome is not None and isinstance(cost := attempt.measures["cost_usd"], float)
            ]
            answers.append(
                Answer(
                    id=finding_id("solved-cost", dear.name),
                    sentence=f"A solved task cost {formatted(usd, 'usd')} with {named(dear.name)} and"
                    f" {formatted(least, 'usd')} with {named(cheapest.name)}, on the same tasks.",
                    size=fsum(usd_more for _, usd_more in parts),
                    unit="USD",
                    # The medians' intervals stand in for a test of the ratio: numerator and denominator go together.
                    share=1 - least / usd if is_apart and usd >= APART * least else 0.0,
                    n=min(dear.first.n, cheapest.first.n),
                    **_with_parts(parts, "more_usd"),
                    do="Check whether the cheaper one solves what you need.",
                    caveat="Failed attempts are included. A candidate that solves only the easier tasks looks cheaper.",
                )
            )
    return answers


SOLVED_COST_FINDING = Question(**declared("asked", "solved_cost", **QUERIES), function=solved_cost)


# -- Reasons for failure

LEAST_FAILED = 0.02
"""The share of attempts from which it is worth a sentence."""
LEAST_REASON = 0.5
"""Share of the failed attempts from which one class is named, if there is anything to do about it."""
_NO_NEWS = ("tests", "tests_failed", "wrong_answer", "cannot_tell")
"""Classes that suggest no action."""
_NO_VERDICT = "no verdict"
"""Repeats that there is no verdict."""
_BY_LINES, _BY_HARNESS = "Based on lines in the run's files", "As the eval harness recorded it"
_RUNGS = {
    "agent_not_started": (
        "never started the agent",
        "Fix the agent's installation and repeat these attempts: a reward of 0 is not a failure here.",
        _BY_LINES,
    ),
    "verifier_not_run": (
        "were judged without a single test run",
        "Run the tests again: a reward of 0 is not a failure here.",
        _BY_LINES,
    ),
    "infrastructure": (
        "were stopped by infrastructure errors",
        "Repeat these attempts: they say nothing about the model or agent under test.",
        _BY_HARNESS,
    ),
    "not_judged": (
        "have no verdict (solved or failed)",
        "Run their tests again. Solve rates leave these attempts out.",
        _BY_HARNESS,
    ),
    "failed": (
        "failed for the same reason",
        "Run `agentsignals evals failures` to list them by candidate. One change may fix many of them.",
        "Classified by rules over what the run recorded (design/failures.md)",
    ),
}
"""What attempts of a rung did, what to do about it, and what that rests on."""


def _share_of_ids(rows: list[Row], ids: set[str], drawn: str) -> ClusteredShare:
    tasks = {row["session_id"]: row["task_id"] for row in rows if row["task_id"] is not None}
    parts = ((row["session_id"], float(row["session_id"] in ids), 1) for row in rows)
    share = clustered_share(parts, tasks, drawn)
    return replace(share, note=share.note.replace("project", "task").replace("of one task", "at one task"))


def _these(ids: set[str]) -> dict[str, Any]:
    cause = f"{OF_ATTEMPTS} WHERE {sessions_sql(ids) if ids else 'false'}"
    return {"size": len(ids), "unit": "attempts", "cause": cause, "sessions": tuple(sorted(ids)[:5])}


def why_failed(inputs: Inputs) -> list[Answer]:
    rows = inputs.rows["rungs"]
    answers = []
    for rung, (words, do, rests) in _RUNGS.items() if rows else ():
        of = [row for row in rows if row["rung"] == rung]
        reason, n = next(iter(Counter(row["reason"] or "not recorded" for row in of).most_common(1)), ("none", 0))
        named_reason = safe_name(reason.replace("_", " "))
        mostly = f", mostly “{named_reason}”" if reason != _NO_VERDICT else ""
        if rung == "failed":
            mostly = f": {named_reason}"
            is_news = reason not in _NO_NEWS and n >= LEAST_REASON * len(of)
            of = [row for row in of if row["reason"] == reason] if is_news else []
        ids = {row["session_id"] for row in of}
        share = _share_of_ids(rows, ids, "attempts")
        answers.append(
            Answer(
                id=f"why-failed.{rung.replace('_', '-')}",
                sentence=f"{len(ids):,} of {len(rows):,} attempts ({formatted(share.value, 'share')}) {words}{mostly}.",
                **_these(ids),
                **share_fields(share, LEAST_FAILED),
                n=len(rows),
                do=do,
                caveat=f"{rests}; {share.note}.",
                of_data=rung == "not_judged",
            )
        )
    return answers


WHY_FAILED_FINDING = Question(**declared("asked", "why_failed"), function=why_failed)


# -- Passes that were not earned

LEAST_UNEARNED = 0.02
"""The share of passes from which it is worth a sentence: as much as two entries of a leaderboard lie apart."""


def not_earned(inputs: Inputs) -> list[Answer]:
    rows = inputs.rows["audits"]
    if not rows:
        return []
    ids = {row["session_id"] for row in rows if row["verdict"] in NOT_EARNED}
    unknown = sum(row["verdict"] == "cannot_tell" for row in rows)
    readers = Counter(row["read_by"] for row in rows if row["read_by"])
    read = "".join(f" {times(n, 'pass was', 'passes were')} read by {name}." for name, n in readers.most_common())
    share = _share_of_ids(rows, ids, "passes")
    return [
        Answer(
            id="not-earned.passes",
            sentence=f"{len(ids):,} of {len(rows):,} passes ({formatted(share.value, 'share')}) show reward hacking:"
            " the agent looked up the fix or changed the verifier.",
            **_these(ids),
            **share_fields(share, LEAST_UNEARNED),
            n=len(rows),
            do="Run `agentsignals evals audit` for the evidence. `agentsignals evals compare --outcome"
            " verification.earned` does not count them as solved.",
            caveat=f"{unknown:,} more passes are undecided; {share.note}.{read} {CAVEAT}",
        )
    ]


NOT_EARNED_FINDING = Question(**declared("asked", "not_earned"), function=not_earned)
