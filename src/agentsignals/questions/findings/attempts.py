"""Findings about eval runs: who solved more, at what cost, why attempts failed, and passes that were not earned."""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec.structs import replace

from agentsignals.questions.compare import OF_ATTEMPTS, QUERIES, eval_comparisons, named, treatments_option
from agentsignals.questions.compare.attempts import proposed
from agentsignals.questions.compare.pairs import held_over
from agentsignals.questions.estimates import ClusteredShare, clustered_share
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Inputs, Question, Row
from agentsignals.questions.ranking import Answer, finding_id, safe_excerpt, safe_name, sessions_sql, share_fields
from agentsignals.questions.sql import declared, read_queries
from agentsignals.stats.validation import CAVEAT
from agentsignals.views.reward_hacking import NOT_EARNED

_SQL = read_queries(__file__)


def solved_more(inputs: Inputs) -> list[Answer]:
    made = eval_comparisons(inputs)
    others = made[0].other_groups if made else []
    if others and not any(comparison.pairs for comparison in made):
        reasons = dict.fromkeys(reason for group in others for reason in group.reasons)
        return [
            Answer(
                id="solved-more.unlike",
                sentence=f"No two of the {len(made):,} candidates ran the same tasks under the same limits, so none is"
                f" compared: {safe_excerpt(', '.join(dict.fromkeys(why.partition(':')[0] for why in reasons)))}.",
                size=made[0].attempts,
                unit="attempts",
                share=1.0,
                n=made[0].attempts,
                cause=OF_ATTEMPTS,
                do="Run the tasks that the others lack, under the same limits.",
                caveat=f"What is not recorded may differ, too. {safe_excerpt('; '.join(reasons), 400)}.",
            )
        ]
    answers = []
    for comparison in made:
        for pair in comparison.pairs:
            matched = pair.paired
            if matched.p is None:
                continue
            gap = float(matched.value or 0.0)
            better, other, gained, lost = pair.candidate, pair.baseline, matched.gained, matched.lost
            if gap < 0:
                better, other, gained, lost = other, better, lost, gained
            how = f"First attempts only; by {matched.test or 'whole tasks'}.{held_over(pair, True)}"
            answers.append(
                Answer(
                    id=finding_id("solved-more", pair.candidate),
                    sentence=f"{named(better)} solved {abs(gap) * 100:.0f} of 100 tasks more than {named(other)} on the"
                    f" same {matched.tasks:,} tasks: {gained:,} that the other did not, and {lost:,} the other way"
                    " round.",
                    size=abs(gap) * matched.tasks,
                    unit="tasks",
                    share=abs(gap),
                    interval=None if matched.low is None or matched.high is None else (matched.low, matched.high),
                    p=pair.p,
                    n=matched.tasks,
                    cause=OF_ATTEMPTS,
                    do="Take it, if it costs what it is worth; see what a solved task took.",
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
            sentence=f"{len(lacking):,} of {len(rows):,} attempts record no model, and their folders' names show it.",
            size=len(lacking),
            unit="attempts",
            share=len(lacking) / len(rows),
            n=len(rows),
            cause=f"{OF_ATTEMPTS} WHERE model_id IS NULL",
            do=f"Compare them by these names: `agentsignals compare {treatments_option(proposal)}`.",
            caveat="Folders are named by people: look whether the names say what ran.",
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
        for dear, usd in priced:
            if dear is cheapest:
                continue
            low, high = dear.took["cost_usd"].low, cheapest.took["cost_usd"].high
            is_apart = low is not None and high is not None and low > high
            answers.append(
                Answer(
                    id=finding_id("solved-cost", dear.name),
                    sentence=f"A solved task took {formatted(usd, 'usd')} with {named(dear.name)},"
                    f" {formatted(least, 'usd')} with {named(cheapest.name)}, on the same tasks.",
                    size=(usd - least) * (dear.first.value or 0.0) * dear.first.n,
                    unit="USD",
                    # The medians' intervals stand in for a test of the ratio: numerator and denominator go together.
                    share=1 - least / usd if is_apart and usd >= APART * least else 0.0,
                    n=min(dear.first.n, cheapest.first.n),
                    cause=OF_ATTEMPTS,
                    do="Try whether the cheaper one solves what you need.",
                    caveat="What failed attempts cost is in it. Who solves easier tasks is cheaper: mind who solved"
                    " more.",
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
"""Says again that nobody judged."""
_BY_LINES, _BY_HARNESS = "By the line of the run's files that shows it", "As the harness recorded it"
_RUNGS = {
    "agent_not_started": (
        "have no agent that started",
        "Mend the agent's installation and run them again: a reward of 0 is no failure here.",
        _BY_LINES,
    ),
    "verifier_not_run": (
        "have a verifier that ran no test",
        "Run the verifier again: a reward of 0 is no failure here.",
        _BY_LINES,
    ),
    "infrastructure": (
        "were broken off by the infrastructure",
        "Run them again: they say nothing of who was tried.",
        _BY_HARNESS,
    ),
    "not_judged": ("were never judged", "Run the verifier over them: they count on neither side.", _BY_HARNESS),
    "failed": (
        "failed for one reason",
        "`agentsignals failures` lists them, by candidate: they may need one change.",
        "By rules over what the run recorded (design/failures.md)",
    ),
}
"""What attempts of a rung did, what to do about it, and what that rests on."""


def _share_of_ids(rows: list[Row], ids: set[str], drawn: str) -> ClusteredShare:
    """The share of these attempts, with tasks as the sampling unit."""
    tasks = {row["session_id"]: row["task_id"] for row in rows if row["task_id"] is not None}
    parts = ((row["session_id"], float(row["session_id"] in ids), 1) for row in rows)
    share = clustered_share(parts, tasks, drawn)
    return replace(share, note=share.note.replace("places", "tasks"))


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
    share = _share_of_ids(rows, ids, "passes")
    return [
        Answer(
            id="not-earned.passes",
            sentence=f"{len(ids):,} of {len(rows):,} passes ({formatted(share.value, 'share')}) were not the agent's"
            " own: the fix was found elsewhere, or what judges was changed.",
            **_these(ids),
            **share_fields(share, LEAST_UNEARNED),
            n=len(rows),
            do="`agentsignals audit` has the lines; `compare --outcome verification.earned` compares without them.",
            caveat=f"Of {unknown:,} more nobody can tell; {share.note}. {CAVEAT}",
        )
    ]


NOT_EARNED_FINDING = Question(**declared("asked", "not_earned"), function=not_earned)
