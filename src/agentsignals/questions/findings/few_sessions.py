"""Which few sessions matter: only where the cost is concentrated."""

from __future__ import annotations

from math import ceil, fsum

from agentsignals.questions.cost_causes import QUERIES
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Inputs, Question
from agentsignals.questions.ranking import Answer, sessions_sql, with_source_lines

FEW, MOST_OF_IT, FEWEST = 0.05, 0.5, 20
"""One session in twenty makes half of the bill. Costs of sessions lean far to the right: of a lognormal with a standard
deviation of 1 the dearest twentieth makes a quarter, with 1.5 half."""


def _answers(inputs: Inputs) -> list[Answer]:
    dearest = sorted(inputs.rows["sessions"], key=lambda row: (-row["cost_usd"], row["session_id"]))
    total = fsum(row["cost_usd"] for row in dearest)
    if len(dearest) < FEWEST or not total:
        return []
    few = dearest[: ceil(FEW * len(dearest))]
    size = fsum(row["cost_usd"] for row in few)
    share = size / total
    of = f"{len(few):,} of {len(dearest):,} sessions"
    rest = (total - size) / (len(dearest) - len(few))
    return [
        Answer(
            id="few-sessions.cost",
            sentence=f"{of} make {formatted(size, 'usd')} of {formatted(total, 'usd')} ({formatted(share, 'share')});"
            f" the others cost {formatted(rest, 'usd')} each.",
            size=size,
            unit="USD",
            share=share if share >= MOST_OF_IT else 0.0,
            n=len(dearest),
            cause=with_source_lines(
                "SELECT session_id, min(seq) AS seq, sum(cost_usd) AS cost_usd FROM steps"
                f" WHERE {sessions_sql(row['session_id'] for row in few)} GROUP BY session_id"
            ),
            do=f"Look at them first: agentsignals show {few[0]['session_id'][:8]}"
            if few[0]["session_id"][:8].isalnum()
            else "Look at them first.",
            caveat="A count of this store, no estimate; a long session may have done the work of many.",
            sessions=tuple(row["session_id"] for row in few[:5]),
        )
    ]


FINDING = Question(
    name="few_sessions",
    question="Which few sessions matter?",
    queries={"sessions": QUERIES["bill"]},
    function=_answers,
)
