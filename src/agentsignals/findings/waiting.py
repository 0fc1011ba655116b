"""Where time is waited: commands that take most of the time the agent works."""

from __future__ import annotations

from math import fsum

from agentsignals.analysis.clusters import placed_share
from agentsignals.analysis.contrasts import SESSIONS, placed
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.grouped import behind, by
from agentsignals.analysis.ranking import Answer, Question, above, lines_of, quoted, shown, slug
from agentsignals.analysis.rows import PROGRAM
from agentsignals.analysis.study import Inputs

MUCH = 0.2
"""The share of the time worked from which one command is surely worth a sentence; of the estimate it is `LEAST`."""
LEAST = 0.25
LEAST_HOURS = 1.0
_TOOK = "epoch(ended_at) - epoch(started_at)"


def _answers(inputs: Inputs) -> list[Answer]:
    sessions = placed(inputs.rows["sessions"])
    places = {session_id: row["place"] for session_id, row in sessions.items() if row["place"]}
    worked = {row["session_id"]: row["hours"] for row in inputs.rows["worked"]}
    made = []
    for tool, rows in sorted(by(inputs.rows["calls"], "tool").items()):
        hours = {
            row["session_id"]: min(row["hours"], worked[row["session_id"]])
            for row in rows
            if row["session_id"] in worked
        }
        size = fsum(hours.values())
        if size < LEAST_HOURS:
            continue
        share = placed_share(((s, hours.get(s, 0.0), whole) for s, whole in worked.items()), places)
        part = float(share.value or 0.0)
        made.append(
            Answer(
                id=slug("waiting", tool),
                about=f"waiting.{tool}",
                sentence=f"{shown(tool)} took {formatted(3600 * size, 'seconds')}, {formatted(part, 'share')} of the"
                " time"
                f" the agents worked, in {len(hours):,} sessions.",
                size=size,
                unit="hours",
                kind="number",
                share=part if part >= LEAST else 0.0,
                interval=share.interval,
                p=above(share, MUCH),
                n=len(worked),
                cause=lines_of(
                    f"SELECT session_id, seq, name, {_TOOK} AS seconds FROM tool_calls WHERE {PROGRAM} = {quoted(tool)}"
                    f" AND {_TOOK} > 0"
                ),
                do="Have it run faster, in the background, or on less (one test, one package); allow it once for all.",
                caveat="From a call to its result: waiting for a permission is in it where the agent does not log it."
                f" {share.note}.",
                sessions=behind(hours.items()),
            )
        )
    return made


FINDING = Question(
    name="waiting",
    question="Where do I wait?",
    queries={
        "sessions": SESSIONS,
        "calls": f"SELECT session_id, {PROGRAM} AS tool, sum({_TOOK}) / 3600 AS hours FROM tool_calls WHERE thread ="
        " 'main'"
        f" AND class NOT IN ('ask', 'task') AND {_TOOK} > 0 GROUP BY ALL ORDER BY ALL",
        "worked": "SELECT session_id, sum(number) / 3600 AS hours FROM signals WHERE signal = 'chat.turn_autonomy_s'"
        " AND number > 0 GROUP BY session_id ORDER BY session_id",
    },
    function=_answers,
)
