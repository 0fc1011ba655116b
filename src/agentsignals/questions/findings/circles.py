"""Where it goes in circles: the same failing call again and again, and the same region rewritten across turns."""

from __future__ import annotations

from agentsignals.questions.estimates import clustered_share_alone, top_sessions
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Inputs, Question
from agentsignals.questions.ranking import SESSIONS, Answer, with_source_lines
from agentsignals.questions.sql import place_by_session

FEWEST_EQUAL = 3
"""Equal failing calls, with no success of the same call and no edit between, from which they are a circle: once more is
a retry."""
_RUNS = (
    "WITH again AS (SELECT session_id, seq, thread, name, arguments, status,"
    " sum(CASE WHEN status = 'error' THEN 0 ELSE 1 END) OVER (PARTITION BY session_id, thread, name, arguments ORDER"
    " BY seq) AS worked, (SELECT count(*) FROM edits JOIN tool_calls AS made"
    " USING (session_id, seq) WHERE edits.session_id = calls.session_id AND edits.seq < calls.seq AND"
    " made.status <> 'error') AS edited FROM tool_calls AS calls"
    " WHERE purpose IS DISTINCT FROM 'poll' AND class NOT IN ('plan', 'task', 'ask')"
    " AND (session_id, name, arguments) IN (SELECT (session_id, name, arguments) FROM tool_calls"
    f" WHERE status = 'error' GROUP BY session_id, name, arguments HAVING count(*) >= {FEWEST_EQUAL})),"
    " runs AS (SELECT *, count(*) OVER (PARTITION BY session_id, thread, name, arguments, worked, edited)"
    " AS equal_calls FROM again WHERE status = 'error')"
    f" SELECT session_id, seq, name, equal_calls FROM runs WHERE equal_calls >= {FEWEST_EQUAL}"
)


def _answers(inputs: Inputs) -> list[Answer]:
    calls: dict[str, int] = {row["session_id"]: row["n"] for row in inputs.rows["calls"]}
    wasted: dict[str, int] = {}
    longest = 0
    for row in inputs.many["runs"]:
        wasted[row["session_id"]] = wasted.get(row["session_id"], 0) + 1
        longest = max(longest, row["equal_calls"])
    parts = ((session_id, wasted.get(session_id, 0), n) for session_id, n in calls.items())
    share = clustered_share_alone(parts, place_by_session(inputs.rows["sessions"]))
    if not share.n:
        return []
    n = sum(wasted.values())
    return [
        Answer(
            id="circles.failing",
            sentence=f"{n:,} of {share.n:,.0f} calls ({formatted(share.value, 'share')}) were the same failing call,"
            f" {FEWEST_EQUAL} times or more with nothing changed, in {len(wasted):,} of {len(calls):,} sessions: up to"
            f" {longest:,} times.",
            size=n,
            unit="calls",
            share=float(share.value or 0.0),
            interval=share.interval,
            n=len(calls),
            cause=with_source_lines(_RUNS),
            do="Interrupt at the third equal failure; say in the instructions what to do when that call fails.",
            caveat="A count of this store, no estimate. Other calls may stand between. What changed outside the"
            f" agent's edits (a server that starts) is not seen; {share.note}.",
            sessions=top_sessions((session_id, float(k)) for session_id, k in wasted.items()),
        )
    ]


FINDING = Question(
    name="circles",
    question="Where does it go in circles?",
    queries={
        "sessions": SESSIONS,
        "calls": "SELECT session_id, count(*) AS n FROM tool_calls GROUP BY session_id ORDER BY session_id",
        "runs": f"{_RUNS} ORDER BY session_id, seq",
    },
    function=_answers,
    sliced=frozenset({"runs"}),
)
