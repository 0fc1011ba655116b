"""Who solved more, on the same tasks; or that it can't be said."""

from __future__ import annotations

from agentsignals.questions.compare import OF_ATTEMPTS, QUERIES, Comparison, Pair, eval_comparison, named
from agentsignals.questions.question import Inputs, Question
from agentsignals.questions.ranking import Answer, finding_id, safe_excerpt

_COMMAND = "agentsignals compare --outcome resolved"


def _answers(inputs: Inputs) -> list[Answer]:
    comparison = eval_comparison(inputs)
    if comparison is None or len(comparison.candidates) < 2:
        return []
    if comparison.unlike:
        return [_unlike(comparison)]
    return [_pair(pair, comparison) for pair in comparison.pairs if pair.paired.p is not None]


def _unlike(comparison: Comparison) -> Answer:
    return Answer(
        id="solved-more.unlike",
        sentence=f"The {len(comparison.candidates):,} candidates can't be held against each other:"
        f" {safe_excerpt(', '.join(why.partition(':')[0] for why in comparison.unlike))}.",
        size=comparison.attempts,
        unit="attempts",
        share=1.0,
        n=comparison.attempts,
        cause=OF_ATTEMPTS,
        do=f"{_COMMAND} --where … chooses attempts that are alike; run what the others lack.",
        caveat=f"What is not recorded may differ, too. {safe_excerpt('; '.join(comparison.unlike), 400)}.",
    )


def _pair(pair: Pair, comparison: Comparison) -> Answer:
    matched = pair.paired
    gap = float(matched.value or 0.0)
    better, other = (pair.candidate, pair.baseline) if gap >= 0 else (pair.baseline, pair.candidate)
    interval = None if matched.low is None or matched.high is None else (matched.low, matched.high)
    gained, lost = (matched.gained, matched.lost) if gap >= 0 else (matched.lost, matched.gained)
    return Answer(
        id=finding_id("solved-more", pair.candidate),
        sentence=f"{named(better)} solved {abs(gap) * 100:.0f} of 100 tasks more than {named(other)} on the same"
        f" {matched.tasks:,} tasks: {gained:,} that the other did not, and {lost:,} the other way round.",
        size=abs(gap) * matched.tasks,
        unit="tasks",
        share=abs(gap),
        interval=interval,
        p=matched.p,
        n=matched.tasks,
        cause=OF_ATTEMPTS,
        do="Take it, if it costs what it is worth; see what a solved task took.",
        caveat=" ".join([*comparison.warnings[:1], f"First attempts only; by {matched.test or 'whole tasks'}."]),
    )


FINDING = Question(
    name="solved_more",
    question="Who solved more, on the same tasks?",
    queries=QUERIES,
    function=_answers,
    context="eval",
)
