"""Where a session costs more than elsewhere with the same agents, and for what."""

from __future__ import annotations

from collections import defaultdict
from itertools import compress
from math import fsum
from statistics import median

from agentsignals.questions.cost_causes import CARRIED, CAUSES, QUERIES
from agentsignals.questions.estimates import top_sessions
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Inputs, Question
from agentsignals.questions.ranking import (
    SESSIONS,
    Answer,
    Contrast,
    contrasts,
    finding_id,
    sessions_sql,
    with_source_lines,
)

APART = 1.5
"""By what factor a session has to cost more."""


def _answers(inputs: Inputs) -> list[Answer]:
    cost = {row["session_id"]: row["cost_usd"] for row in inputs.rows["bill"]}
    if not cost:
        return []
    # Whether a session costs more than the middle one: a few that go on without end decide nothing.
    middle = median(cost.values())
    parts = [(session_id, float(usd > middle), 1.0) for session_id, usd in cost.items()]
    paid = {cause: [usd.get(s, 0.0) for s in cost] for cause, usd in inputs.paid.items() if usd}
    return [_answer(contrast, cost, paid) for contrast in contrasts(parts, inputs.rows["sessions"], ("place",))]


def _answer(contrast: Contrast, cost: dict[str, float], paid: dict[str, list[float]]) -> Answer:
    """`paid`: by cause, in order of the sessions of `cost`."""
    here = fsum(cost[s] for s in contrast.in_group) / len(contrast.in_group)
    there = fsum(cost[s] for s in contrast.in_rest) / len(contrast.in_rest)
    size = (here - there) * len(contrast.in_group)
    return Answer(
        id=finding_id("dear-places", contrast.value),
        sentence=f"A session {contrast.where} costs {formatted(here, 'usd')}, against {formatted(there, 'usd')} in"
        f" {contrast.matched}: {formatted(size, 'usd')} more in {len(contrast.in_group):,} sessions, most of it for"
        f" {_for(contrast, cost, paid)}.",
        size=size,
        unit="USD",
        share=size / fsum(cost.values()) if here >= APART * there else 0.0,
        interval=contrast.interval,
        p=contrast.p,
        n=len(contrast.in_group),
        cause=with_source_lines(
            "SELECT session_id, min(seq) AS seq, sum(cost_usd) AS cost_usd FROM steps"
            f" WHERE {sessions_sql(contrast.in_group)} GROUP BY session_id"
        ),
        do=f"See agentsignals report --study cost_causes for what is paid {contrast.where}.",
        caveat="Goes with it, and need not be because of it: larger tasks cost more. Interval and p are of the share of"
        f" sessions that cost more than the median one; {contrast.group.note}.",
        sessions=top_sessions((s, cost[s]) for s in contrast.in_group),
    )


def _for(contrast: Contrast, cost: dict[str, float], paid: dict[str, list[float]]) -> str:
    """The cause of which a session here pays most more than one elsewhere."""
    sides = (contrast.in_group, contrast.in_rest)
    chosen = [[session_id in side for session_id in cost] for side in sides]
    more: defaultdict[str, float] = defaultdict(float)
    for cause, usd in paid.items():
        here, there = (fsum(compress(usd, is_in)) / len(side) for side, is_in in zip(sides, chosen, strict=True))
        if here or there:
            more["carried context" if cause in CARRIED else CAUSES[cause]] += here - there
    return max(more, key=lambda words: (more[words], words), default="nothing that stands out")


FINDING = Question(
    name="dear_places",
    question="Where does a session cost more?",
    queries={"bill": QUERIES["bill"], "sessions": SESSIONS},
    function=_answers,
    needs_charges=True,
)
