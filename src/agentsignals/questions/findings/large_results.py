"""Where did the money go: a few tool results so large that carrying them along is a part of the bill."""

from __future__ import annotations

from heapq import nsmallest
from math import ceil, fsum

from agentsignals.model import NO_SUBAGENT
from agentsignals.questions.cost_causes import QUERIES
from agentsignals.questions.estimates import top_sessions
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Inputs, Question, Row
from agentsignals.questions.ranking import Answer, safe_name, sql_text, with_source_lines

FEW, AT_MOST, FEWEST = 0.01, 20, 100
"""One result in a hundred, and no more than a person can look at; of fewer than a hundred none stands out."""
BESIDE = 0.1
"""Of what the dearest costs: the others that are counted with it."""
LEAST_PART = 0.05
"""Of what its session's results cost to carry: smaller ones are no giants, and stay in the database."""
_CARRIED = (
    "WITH moments AS (SELECT session_id, thread, seq, 'step' AS what, NULL AS call_seq, NULL AS name, NULL AS tokens"
    " FROM steps UNION ALL SELECT session_id, thread, seq, 'compaction', NULL, NULL, NULL FROM events"
    " WHERE kind = 'compaction' UNION ALL SELECT session_id, thread, result_seq, 'result', seq, name, result_tokens"
    " FROM tool_calls WHERE result_tokens > 0 AND result_seq IS NOT NULL AND status <> 'error'),"
    " parted AS (SELECT *, count(*) FILTER (what = 'compaction') OVER (PARTITION BY session_id, thread ORDER BY seq"
    f" ROWS UNBOUNDED PRECEDING) AS part FROM moments WHERE thread IN"
    f" ({', '.join(map(sql_text, sorted(NO_SUBAGENT)))})),"
    " counted AS (SELECT *, count(*) FILTER (what = 'step') OVER (PARTITION BY session_id, thread, part ORDER BY seq"
    " ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS times FROM parted)"
    " SELECT session_id, call_seq AS seq, name, tokens, times,"
    " tokens * times / sum(tokens * times) OVER (PARTITION BY session_id) AS part,"
    " count(*) OVER (PARTITION BY session_id) AS results"
    " FROM counted WHERE what = 'result' AND times > 0"
)
"""Each result, and how many model calls it was sent again with before a compaction took it away; `part`: of what its
session's results cost to carry, for a token costs as much whichever it is; `results`: how many its session has."""


def _answers(inputs: Inputs) -> list[Answer]:
    rows, bill = inputs.many["results"], inputs.rows["bill"]
    results = sum({row["session_id"]: row["results"] for row in rows}.values())
    if not bill or results < FEWEST:
        return []
    usd = inputs.paid["carried_results"]
    priced = ((row["part"] * usd.get(row["session_id"], 0.0), row) for row in rows if row["part"] is not None)
    dear = nsmallest(min(AT_MOST, ceil(FEW * results)), priced, key=_dearest)
    few = [each for each in dear if each[0] >= BESIDE * dear[0][0]]
    return [_answer(few, results, fsum(row["cost_usd"] for row in bill), len(bill))] if few else []


def _dearest(priced: tuple[float, Row]) -> tuple[float, str, int]:
    usd, row = priced
    return -usd, row["session_id"], row["seq"]


def _answer(few: list[tuple[float, Row]], results: int, total: float, n: int) -> Answer:
    size = fsum(usd for usd, _ in few)
    _, largest = few[0]
    chosen = ", ".join(f"({sql_text(row['session_id'])}, {row['seq']})" for _, row in few)
    return Answer(
        id="large-results.carried",
        sentence=f"{len(few):,} of {results:,} tool results cost {formatted(size, 'usd')} of {formatted(total, 'usd')}"
        f" ({formatted(size / total, 'share')}) by being sent again with every later call; the dearest, of"
        f" {safe_name(largest['name'])}, has about {largest['tokens']:,} tokens and was sent"
        f" {largest['times']:,} times.",
        size=size,
        unit="USD",
        share=size / total,
        n=n,
        cause=with_source_lines(
            "SELECT session_id, seq, name, path, command, result_tokens FROM tool_calls"
            f" WHERE (session_id, seq) IN ({chosen})"
        ),
        do="Have such output cut or written to a file (head, grep, a range of lines); begin a new session once it is"
        " read.",
        caveat="A count of this store, no estimate; but how much of a context is whose is counted in characters.",
        sessions=top_sessions((row["session_id"], usd) for usd, row in few),
    )


FINDING = Question(
    name="large_results",
    question="Where did the money go?",
    queries={
        "bill": QUERIES["bill"],
        # The largest of each session, be it no giant, stands there for the number of its results.
        "results": f"SELECT * REPLACE (CASE WHEN part >= {LEAST_PART} THEN part END AS part) FROM ({_CARRIED})"
        f" QUALIFY part >= {LEAST_PART} OR row_number() OVER (PARTITION BY session_id ORDER BY part DESC, seq) = 1",
    },
    function=_answers,
    sliced=frozenset({"results"}),
    needs_charges=True,
)
