"""Where time goes by: agents that wait for the person, and commands that take much of the time they work."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from math import fsum
from operator import itemgetter

from agentsignals.questions.estimates import clustered_share_alone, ranked, top_sessions
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Inputs, Question
from agentsignals.questions.ranking import (
    SESSIONS,
    Answer,
    finding_id,
    safe_name,
    share_fields,
    sql_text,
    with_source_lines,
)
from agentsignals.questions.sql import NAMED, PROGRAM, place_by_session
from agentsignals.views.working_time import LONGEST_S

MUCH = 0.2
"""The share of the time from which it is surely worth a sentence; of the estimate it is `LEAST`."""
LEAST = 0.25
LEAST_HOURS = 1.0
_MOST_NAMED = 3
_KINDS = " ".join(f"WHEN '{class_}' THEN {seconds}" for class_, seconds in LONGEST_S.items())
_LONGEST = (
    "CASE WHEN status = 'rejected' OR purpose = 'plan_handoff' THEN 0"
    " ELSE coalesce(ran_s, CASE WHEN class IN ('shell', 'test') THEN limit_s END,"
    f" least(coalesce(limit_s, 1e9), CASE class {_KINDS} END)) END"
)
"""As `views.work.longest_s` has it: for how long a call can have run."""
_OPEN = "epoch(ended_at) - epoch(started_at)"
_CALLS = (
    f"SELECT session_id, seq, class, {PROGRAM} AS tool, least({_OPEN}, {_LONGEST}) AS ran_s,"
    f" greatest(0, {_OPEN} - {_LONGEST}) AS waited_s FROM tool_calls WHERE thread = 'main' AND {_OPEN} > 0"
)


def _answers(inputs: Inputs) -> list[Answer]:
    places = place_by_session(inputs.rows["sessions"])
    times = {row["session_id"]: row for row in inputs.rows["times"]}
    return [*_for_person(inputs, times, places), *_for_commands(inputs, times, places)]


def _for_person(inputs: Inputs, times: dict[str, dict[str, float]], places: dict[str, str]) -> list[Answer]:
    waited = {s: row["waited_s"] / 3600 for s, row in times.items() if row["waited_s"]}
    size = fsum(waited.values())
    if size < LEAST_HOURS:
        return []
    parts = ((s, waited.get(s, 0.0), (row["worked_s"] + row["waited_s"]) / 3600) for s, row in times.items())
    share = clustered_share_alone(parts, places)
    open_calls: Counter[str] = Counter()
    for row in inputs.many["calls"]:
        open_calls[row["tool"]] += row["waited_s"]
    longest = [safe_name(tool) for tool, seconds in ranked(open_calls)[:_MOST_NAMED] if seconds]
    return [
        Answer(
            id="waiting.for-you",
            sentence=f"Agents waited {formatted(3600 * size, 'seconds')} with a question or a call open,"
            f" {formatted(share.value, 'share')} of the time they were at it, longest with"
            f" {', '.join(longest) or 'what was asked'}.",
            size=size,
            unit="hours",
            **share_fields(share, MUCH, LEAST),
            n=len(times),
            cause=with_source_lines(
                f"SELECT session_id, seq, class, tool, waited_s FROM ({_CALLS}) WHERE waited_s > 0"
            ),
            do="Allow once for all what you always allow; have yourself called when an agent waits.",
            caveat="No log says when a call was allowed: of what was open for longer than it can have run, the rest is"
            f" waiting, for you or with a machine that slept; {share.note}.",
            sessions=top_sessions(waited.items()),
        )
    ]


def _for_commands(inputs: Inputs, times: dict[str, dict[str, float]], places: dict[str, str]) -> list[Answer]:
    made = []
    for tool, rows in groupby(inputs.many["calls"], itemgetter("tool")):
        hours = {
            row["session_id"]: min(row["ran_s"], times[row["session_id"]]["worked_s"]) / 3600
            for row in rows
            if row["session_id"] in times and row["ran_s"] is not None
        }
        size = fsum(hours.values())
        if size < LEAST_HOURS:
            continue
        share = clustered_share_alone(
            ((s, hours.get(s, 0.0), row["worked_s"] / 3600) for s, row in times.items()), places
        )
        made.append(
            Answer(
                id=finding_id("waiting", tool),
                sentence=f"{safe_name(tool)} ran for {formatted(3600 * size, 'seconds')}, "
                f"{formatted(share.value, 'share')} of the time the agents worked, in {len(hours):,} sessions.",
                size=size,
                unit="hours",
                **share_fields(share, MUCH, LEAST),
                n=len(times),
                cause=with_source_lines(f"SELECT session_id, seq, ran_s FROM ({_CALLS}) WHERE tool = {sql_text(tool)}"),
                do="Have it run faster, in the background, or on less (one test, one package).",
                caveat=f"A call counts for at most as long as its kind can take; {share.note}.",
                sessions=top_sessions(hours.items()),
            )
        )
    return made


FINDING = Question(
    name="waiting",
    question="Where do I wait, where does it wait for me?",
    queries={
        "sessions": SESSIONS,
        # A person or a subagent is asked: that is no time that a command ran.
        "calls": "SELECT tool, session_id, sum(ran_s) FILTER (class NOT IN ('ask', 'task')) AS ran_s,"
        f" sum(waited_s) AS waited_s FROM ({_CALLS}) GROUP BY ALL ORDER BY ALL",
        "times": f"SELECT session_id, number AS worked_s, waited_s FROM (SELECT session_id, number FROM {NAMED}"
        " WHERE signal = 'infra.work_time_s' AND number IS NOT NULL) JOIN (SELECT session_id,"
        " TRY_CAST(detail->>'asked_s' AS DOUBLE)"
        f" + TRY_CAST(detail->>'calls_s' AS DOUBLE) AS waited_s FROM {NAMED} WHERE signal = 'infra.waiting_time_s' AND"
        " number IS NOT NULL) USING (session_id) JOIN sessions USING (session_id) ORDER BY session_id",
    },
    function=_answers,
    sliced=frozenset({"calls"}),
)
