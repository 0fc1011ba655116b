"""What can't be told: costs without a price, output as it stood in mid-stream, records that were not read."""

from __future__ import annotations

from agentsignals.questions.estimates import listing, tally
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Inputs, Question, Row
from agentsignals.questions.ranking import Answer, safe_excerpt, with_source_lines
from agentsignals.questions.sql import BOUND

_CAVEAT = "A count of this store, no estimate."


def _answers(inputs: Inputs) -> list[Answer]:
    sessions = inputs.rows["sessions"]
    if not sessions:
        return []
    unpriced = [row for row in sessions if row["cost_usd"] is None]
    low = [row for row in sessions if row[BOUND] is not None]
    made = [
        _share(
            "unpriced",
            [row["session_id"] for row in unpriced],
            len(sessions),
            f"cost an unknown amount ({_agents(unpriced)}): what they used or their model's price is not known",
            "SELECT session_id, min(seq) AS seq, any_value(model) AS model FROM steps JOIN sessions USING (session_id)"
            " WHERE sessions.cost_usd IS NULL GROUP BY session_id",
            "Collect the agent's own log beside what you read; agentsignals report --study cost names the reasons.",
        ),
        _share(
            "output",
            [row["session_id"] for row in low],
            len(sessions),
            f"log their output as it stood in mid-stream ({_agents(low)}): their output and its cost are too low",
            f"SELECT session_id, min(seq) AS seq, {BOUND} FROM steps JOIN sessions USING (session_id)"
            f" WHERE {BOUND} IS NOT NULL GROUP BY ALL",
            "Take output of those agents as a lower bound.",
        ),
    ]
    return [*made, *_unread(inputs.rows["artifacts"], len(sessions))]


def _agents(rows: list[Row]) -> str:
    return safe_excerpt(
        listing(tally(({**row, "agent": row["agent"] or "not named", "n": 1} for row in rows), "agent"))
    )


def _share(name: str, ids: list[str], n: int, words: str, rows: str, do: str) -> Answer:  # noqa: PLR0913  (the words of one sentence)
    return Answer(
        id=f"untold.{name}",
        sentence=f"{len(ids):,} of {n:,} sessions ({formatted(len(ids) / n, 'share')}) {words}.",
        size=len(ids),
        unit="sessions",
        share=len(ids) / n,
        n=n,
        cause=with_source_lines(rows),
        do=do,
        caveat=_CAVEAT,
        of_data=True,
        sessions=tuple(ids[:5]),
    )


def _unread(artifacts: list[Row], n: int) -> list[Answer]:
    records, skipped = sum(row["records"] for row in artifacts), sum(row["skipped"] for row in artifacts)
    if not records + skipped:
        return []
    share = skipped / (records + skipped)
    return [
        Answer(
            id="untold.records",
            sentence=f"{skipped:,} of {records + skipped:,} records ({formatted(share, 'share')}) were not read or not"
            " understood: every figure is without them.",
            size=skipped,
            unit="records",
            share=share,
            n=n,
            cause="SELECT path, skipped, skipped_reasons FROM artifacts WHERE skipped > 0 ORDER BY skipped DESC",
            do="agentsignals doctor says of each reason what helps.",
            caveat=_CAVEAT,
            of_data=True,
        )
    ]


FINDING = Question(
    name="untold",
    question="What can't be told?",
    queries={
        "sessions": f"SELECT session_id, agent, cost_usd, {BOUND} FROM sessions ORDER BY session_id",
        "artifacts": "SELECT sum(records) AS records, sum(skipped) AS skipped FROM artifacts HAVING sum(records) > 0 OR"
        " sum(skipped) > 0",
    },
    function=_answers,
)
