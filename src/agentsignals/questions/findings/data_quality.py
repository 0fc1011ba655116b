"""Findings about data quality: costs without a price, output logged in mid-stream, records that were not read."""

from __future__ import annotations

from agentsignals.questions.estimates import listing, tally
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Inputs, Question, Row
from agentsignals.questions.ranking import Answer, safe_excerpt, with_source_lines
from agentsignals.questions.sql import BOUND, read_queries

_SQL = read_queries(__file__)
_CAVEAT = "A count of this store, no estimate."


def untold(inputs: Inputs) -> list[Answer]:
    sessions = inputs.rows["sessions"]
    if not sessions:
        return []
    unpriced = [row for row in sessions if row["cost_usd"] is None]
    low = [row for row in sessions if row[BOUND] is not None]
    answers = [
        Answer(
            id=f"untold.{name}",
            sentence=f"{len(affected):,} of {len(sessions):,} sessions"
            f" ({formatted(len(affected) / len(sessions), 'share')}) {words}.",
            size=len(affected),
            unit="sessions",
            share=len(affected) / len(sessions),
            n=len(sessions),
            cause=with_source_lines(_SQL["evidence"][name]),
            do=do,
            caveat=_CAVEAT,
            of_data=True,
            sessions=tuple(row["session_id"] for row in affected[:5]),
        )
        for name, affected, words, do in (
            (
                "unpriced",
                unpriced,
                f"cost an unknown amount ({_agents(unpriced)}): what they used or their model's price is not known",
                "Collect the agent's own log beside what you read; agentsignals report --study cost names the reasons.",
            ),
            (
                "output",
                low,
                f"log their output as it stood in mid-stream ({_agents(low)}): their output and its cost are too low",
                "Take output of those agents as a lower bound.",
            ),
        )
    ]
    records, skipped = (sum(row[column] for row in inputs.rows["artifacts"]) for column in ("records", "skipped"))
    if records + skipped:
        share = skipped / (records + skipped)
        answers.append(
            Answer(
                id="untold.records",
                sentence=f"{skipped:,} of {records + skipped:,} records ({formatted(share, 'share')}) were not read or"
                " not understood: every figure is without them.",
                size=skipped,
                unit="records",
                share=share,
                n=len(sessions),
                cause=_SQL["evidence"]["records"],
                do="agentsignals doctor says of each reason what helps.",
                caveat=_CAVEAT,
                of_data=True,
            )
        )
    return answers


def _agents(rows: list[Row]) -> str:
    return safe_excerpt(
        listing(tally(({**row, "agent": row["agent"] or "not named", "n": 1} for row in rows), "agent"))
    )


UNTOLD_FINDING = Question(name="untold", question="What can't be told?", queries=_SQL["untold"], function=untold)
