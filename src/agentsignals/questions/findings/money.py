"""Where did the money go: caches that were lost, and results that were dragged along."""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum
from typing import NamedTuple

from agentsignals.questions.cost_causes import LIFETIME_S, LONG_LIFETIME_S, QUERIES, SHRUNK
from agentsignals.questions.estimates import clustered_share_alone, top_sessions
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Inputs, Question, Row
from agentsignals.questions.ranking import Answer, share_fields, with_source_lines
from agentsignals.questions.sql import BOUND, place_by_session


class _Cause(NamedTuple):
    name: str
    words: str
    much: float
    """The share of the bill from which it is surely worth a sentence."""
    do: str
    rows: str


_SIZE = "coalesce(input_tokens, 0) + coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0)"
_LOST = (
    "SELECT session_id, seq, step, model, least(size, lag(size) OVER w) - coalesce(cache_read_tokens, 0) AS"
    " lost_tokens,"
    " cost_usd, epoch(timestamp) - lag(epoch(timestamp)) OVER w AS pause_s,"
    f" CASE WHEN max(cache_write_1h_tokens) OVER earlier > 0 THEN {LONG_LIFETIME_S} ELSE {LIFETIME_S} END AS lives_s"
    f" FROM (SELECT *, {_SIZE} AS size FROM steps WHERE thread IN ('main', 'abandoned', 'replayed')"
    " AND cost_usd > 0 AND stop_reason IS DISTINCT FROM 'session_total' AND input_in_step IS NULL"
    " AND session_id NOT IN (SELECT session_id FROM sessions WHERE parent_session_id IS NOT NULL))"
    " WHERE size > 0 WINDOW w AS (PARTITION BY session_id, thread ORDER BY step),"
    " earlier AS (PARTITION BY session_id, thread ORDER BY step ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    f" QUALIFY size >= {SHRUNK} * lag(size) OVER w"
    " AND max(coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0)) OVER earlier > 0"
)
"""Model calls that were sent again what the call before was sent, and did not read it from the cache there was."""
_WORTH = "lost_tokens > 1000"
"""What providers leave uncached at the end of a prompt, by blocks of hundreds of tokens, is no loss to look at."""
_CAUSES = (
    _Cause(
        name="rebuilt",
        words="went on caches that had died in a pause and were built again",
        much=0.02,
        do="Come back within five minutes, or begin a new session after a long pause instead of going on in a full"
        " one.",
        rows=f"SELECT * FROM ({_LOST}) WHERE pause_s > lives_s AND {_WORTH}",
    ),
    _Cause(
        name="missed",
        words="went on context that was sent again past the cache though nobody had paused",
        much=0.02,
        do="Look what changes in the middle of a session: model, tools, instructions, a context edited by the agent.",
        rows=f"SELECT * FROM ({_LOST}) WHERE coalesce(pause_s, 0) <= lives_s AND {_WORTH}",
    ),
    _Cause(
        name="compaction",
        words="went on contexts written anew after compactions",
        much=0.02,
        do="Begin a new session for a new task before the context is full.",
        rows="SELECT session_id, seq, turn FROM events WHERE kind = 'compaction'",
    ),
    _Cause(
        name="carried_results",
        words="went on tool results sent again with every later call",
        much=0.25,
        do="Have long outputs cut or written to a file (head, grep, a range of lines); begin a new session for a new"
        " task.",
        rows="SELECT session_id, seq, name, path, result_tokens FROM tool_calls WHERE result_tokens > 0",
    ),
)
CENT = 0.01
"""What a session has to have paid to be counted: caches leave the end of a prompt out by blocks of tokens."""
_CAVEAT = "By the tokens that each model call logs; a provider may drop a cache for reasons that no trace shows"
_OF_RESULTS = "Estimated inside an exact sum: how much of a context is whose is counted in characters"


def _answers(inputs: Inputs) -> list[Answer]:
    bill = inputs.rows["bill"]
    if not bill:
        return []
    places = place_by_session(bill)
    return [_answer(cause, inputs.paid[cause.name], bill, places) for cause in _CAUSES]


def _answer(cause: _Cause, usd: Mapping[str, float], bill: list[Row], places: dict[str, str]) -> Answer:
    """`usd`: what the cause took, by session."""
    share = clustered_share_alone(
        ((row["session_id"], usd.get(row["session_id"], 0.0), row["cost_usd"]) for row in bill), places
    )
    size = fsum(usd.values())
    # What was sent is logged whole, the output of some sessions is not: of a larger bill this were a smaller share.
    at_least, at_most = ("at least ", "at most ") if any(row[BOUND] is not None for row in bill) else ("", "")
    return Answer(
        id=f"money.{cause.name.replace('_', '-')}",
        sentence=f"{formatted(size, 'usd')} of {at_least}{formatted(share.n, 'usd')}"
        f" ({at_most}{formatted(share.value or 0.0, 'share')})"
        f" {cause.words}, in {sum(part >= CENT for part in usd.values()):,} of {len(bill):,} sessions.",
        size=size,
        unit="USD",
        **share_fields(share, cause.much),
        n=len(bill),
        cause=with_source_lines(cause.rows),
        do=cause.do,
        caveat=f"{_OF_RESULTS if cause.name == 'carried_results' else _CAVEAT}; {share.note}.",
        sessions=top_sessions(usd.items()),
    )


FINDING = Question(
    name="money",
    question="Where did the money go?",
    queries={"bill": QUERIES["bill"]},
    function=_answers,
    needs_charges=True,
)
