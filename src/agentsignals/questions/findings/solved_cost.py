"""What a solved task took, failed attempts included: by candidate, where they differ."""

from __future__ import annotations

from agentsignals.questions.compare import OF_ATTEMPTS, QUERIES, Candidate, eval_comparison, named
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Inputs, Question
from agentsignals.questions.ranking import Answer, finding_id

APART = 1.5
"""By what factor one must cost more for each solved task to be worth a sentence."""


def _answers(inputs: Inputs) -> list[Answer]:
    comparison = eval_comparison(inputs)
    if comparison is None or comparison.unlike:
        return []
    priced = [(c, usd) for c in comparison.candidates if (usd := _usd(c)) is not None]
    if len(priced) < 2:
        return []
    cheapest, least = min(priced, key=lambda pair: (pair[1], pair[0].name))
    return [_answer(dear, usd, cheapest, least) for dear, usd in priced if dear is not cheapest]


def _usd(candidate: Candidate) -> float | None:
    per = candidate.per_solved.get("cost_usd")
    return per.value if per is not None and per.n else None


def _answer(dear: Candidate, usd: float, cheapest: Candidate, least: float) -> Answer:
    low, high = dear.took["cost_usd"].low, cheapest.took["cost_usd"].high
    is_apart = low is not None and high is not None and low > high
    solved = (dear.first.value or 0.0) * dear.first.n
    return Answer(
        id=finding_id("solved-cost", dear.name),
        sentence=f"A solved task took {formatted(usd, 'usd')} with {named(dear.name)}, {formatted(least, 'usd')} with"
        f" {named(cheapest.name)}, on the same tasks.",
        size=(usd - least) * solved,
        unit="USD",
        # The medians' intervals stand in for a test of the ratio, whose numerator and denominator go together.
        share=1 - least / usd if is_apart and usd >= APART * least else 0.0,
        n=min(dear.first.n, cheapest.first.n),
        cause=OF_ATTEMPTS,
        do="Try whether the cheaper one solves what you need.",
        caveat="What failed attempts cost is in it. Who solves easier tasks is cheaper: mind who solved more.",
    )


FINDING = Question(
    name="solved_cost",
    question="What did a solved task take?",
    queries=QUERIES,
    function=_answers,
    context="eval",
)
