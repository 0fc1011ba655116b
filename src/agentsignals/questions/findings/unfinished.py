"""Which places are never finished: files that most sessions of a repository change again."""

from __future__ import annotations

from math import exp, fsum, lgamma, log, log1p

from agentsignals.questions.estimates import top_sessions
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Inputs, Question
from agentsignals.questions.ranking import (
    SESSIONS,
    Answer,
    finding_id,
    safe_name,
    sessions_sql,
    sql_text,
    with_source_lines,
)
from agentsignals.questions.sql import place_by_session
from agentsignals.stats.intervals import FEWEST_CLUSTERS, wilson

MUCH = 0.25
"""A file that more than a quarter of a repository's sessions change is surely one that everything goes through."""
OFTEN = 0.5
"""What of the estimate is said."""
_BOOKKEEPING = r"(^|/)(changelog|history|todo|tasks?|plan|package|cargo|go)\.[^/]*$|\.(md|lock|json|sum|mod)$"
"""Files that every change is written into: a log, a list of things to do, versions of packages."""


def _answers(inputs: Inputs) -> list[Answer]:
    places = place_by_session(inputs.rows["sessions"])
    by_place: dict[str, set[str]] = {}
    files: dict[str, dict[str, set[str]]] = {}
    for row in inputs.rows["edits"]:
        place = places.get(row["session_id"])
        if place is not None:
            by_place.setdefault(place, set()).add(row["session_id"])
            files.setdefault(place, {}).setdefault(row["path"], set()).add(row["session_id"])
    whole = sum(len(ids) for ids in by_place.values())
    return [
        _answer(place, files[place], everyone, whole)
        for place, everyone in sorted(by_place.items())
        if len(everyone) >= FEWEST_CLUSTERS
    ]


def _answer(place: str, files: dict[str, set[str]], everyone: set[str], whole: int) -> Answer:
    """The file of a place that most sessions change. It was chosen among all: its p counts as often as there are."""
    path, ids = min(files.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    n, part = len(everyone), len(ids) / len(everyone)
    return Answer(
        id=finding_id("unfinished", f"{place} {path}"),
        sentence=f"{safe_name(path)} was changed in {len(ids):,} of the {n:,} sessions in {safe_name(place)} that"
        f" changed anything ({formatted(part, 'share')}): it is never finished.",
        size=len(ids),
        unit="sessions",
        share=len(ids) / whole if part >= OFTEN else 0.0,
        interval=wilson(len(ids), n),
        p=min(1.0, len(files) * _at_least(len(ids), n)),
        n=n,
        cause=with_source_lines(
            f"SELECT session_id, seq, path, start_line, end_line FROM edits WHERE path = {sql_text(path)} AND"
            f" {sessions_sql(ids)}"
        ),
        do=f"Look why everything goes through {safe_name(path)}: it may want to be parted.",
        caveat="A file that much is written into need not be a bad one. The sessions of one repository are drawn,"
        " and speak of no other.",
        sessions=top_sessions((s, 1.0) for s in ids),
    )


def _at_least(k: int, n: int) -> float:
    """The probability that so many of n sessions change a file that `MUCH` of them do."""
    # By logarithms: from some thousand sessions on the number of ways to choose them is no float.
    ways = lgamma(n + 1)
    return fsum(
        exp(ways - lgamma(i + 1) - lgamma(n - i + 1) + i * log(MUCH) + (n - i) * log1p(-MUCH)) for i in range(k, n + 1)
    )


FINDING = Question(
    name="unfinished",
    question="Which places are never finished?",
    queries={
        "sessions": SESSIONS,
        "edits": "SELECT DISTINCT session_id, path FROM edits WHERE path IS NOT NULL AND thread = 'main'"
        f" AND NOT regexp_matches(lower(path), '{_BOOKKEEPING}') ORDER BY session_id, path",
    },
    function=_answers,
)
