"""Sessions grouped by what their calls are: working styles (agent-traces)."""

from __future__ import annotations

from collections import Counter
from math import fsum
from typing import Any

import msgspec

from agentsignals.model import Absent
from agentsignals.questions import sql
from agentsignals.questions.charts import heatmap
from agentsignals.questions.estimates import DOMINANT, ONE_PLACE, chart, count, listing, mark, table
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Chart, Inputs, Outcome, Row, Study, Table
from agentsignals.stats.grouping import INSTALL, MISSING, MOST, Groups, grouped
from agentsignals.stats.intervals import SEED

_MIX = "corpus.tool_class_mix"
FEWEST_CALLS, FEWEST, MOST_PROFILES = 10, 30, 8
"""Calls of a session that has a style; sessions that are grouped; groups tried."""
_OF = f"sessions of at least {FEWEST_CALLS} calls"
WEAK = 0.25
"""Below this mean silhouette nothing much stands apart (Kaufman and Rousseeuw 1990)."""


def _outcome(inputs: Inputs) -> Outcome:
    rows = [row for row in inputs.rows["mixes"] if row["n"] >= FEWEST_CALLS][:MOST]
    if len(rows) < FEWEST:
        return Outcome(
            limits=[f"{len(rows):,} sessions have {FEWEST_CALLS} calls or more: {FEWEST} are needed for profiles."]
        )
    mixes: list[dict[str, float]] = [msgspec.json.decode(row["value"]) for row in rows]
    classes = sorted(set().union(*mixes), key=lambda c: (-fsum(mix.get(c, 0.0) for mix in mixes), c))
    groups = grouped([[mix.get(class_, 0.0) for class_ in classes] for mix in mixes], MOST_PROFILES)
    if isinstance(groups, Absent):
        return Outcome(limits=[INSTALL if groups is MISSING else f"There are no profiles: {groups.detail}."])
    profiles = [_Profile(rows, mixes, classes, groups, n) for n in range(groups.count)]
    k_means = f"k-means of 2 to {MOST_PROFILES} groups, the number with the greatest silhouette; seed {SEED}"
    weak = "weak: the styles run into each other" if groups.silhouette < WEAK else ""
    findings = [
        count(groups.count, len(rows), evidence=[row["session_id"] for row in rows]).finding(
            "tool_profiles.count",
            "Working styles by the classes of calls",
            _OF,
            k_means,
            unit="styles",
            signals=(_MIX,),
        ),
        count(round(groups.silhouette, 3), len(rows), evidence=[row["session_id"] for row in rows]).finding(
            "tool_profiles.silhouette",
            "How far the styles stand apart: mean silhouette",
            _OF,
            weak,
            unit="of 1",
            signals=(_MIX,),
        ),
    ]
    places = inputs.places
    limits = [
        "A style is a cut through a cloud: sessions at its edges could be in the next. Agents whose shell does what"
        " others have tools for look like another style."
    ]
    return Outcome(findings, [_table(profiles, rows, places)], [_chart(profiles, classes, len(rows))], limits)


class _Profile:
    """Sessions of one style."""

    def __init__(
        self, rows: list[Row], mixes: list[dict[str, float]], classes: list[str], groups: Groups, n: int
    ) -> None:
        members = [at for at, group in enumerate(groups.of) if group == n]
        self.rows = [rows[at] for at in members]
        self.mixes = [(rows[at]["session_id"], mixes[at]) for at in members]
        self.means = {c: fsum(mixes[at].get(c, 0.0) for at in members) / len(members) for c in classes}
        self.fit = fsum(groups.fit[at] for at in members) / len(members)
        whole = {c: fsum(mix.get(c, 0.0) for mix in mixes) / len(mixes) for c in classes}
        above = sorted(classes, key=lambda c: (whole[c] - self.means[c], c))
        self.name = " and ".join([c for c in above if self.means[c] > whole[c]][:2])
        """The classes of which it has most more than sessions have on the whole."""


def _table(profiles: list[_Profile], rows: list[Row], places: dict[str, str]) -> Table:
    shown: list[list[Any]] = []
    for profile in profiles:
        where = Counter(place for row in profile.rows if (place := places.get(row["session_id"])) is not None)
        largest = max(where.values(), default=0) / len(profile.rows)
        agents = listing(Counter(row["agent"] for row in profile.rows))
        shown.append(
            [
                *(f"more {profile.name}", len(profile.rows), len(profile.rows) / len(rows), agents),
                *(len(where), largest or None, profile.fit, ONE_PLACE if largest > DOMINANT else ""),
            ]
        )
    return table(
        "tool_profiles.styles",
        "Working styles",
        "style | n sessions:count | share:share | agents | places:count | largest largest place:share"
        " | fit silhouette:number | warning says little because",
        shown,
        n=len(rows),
        of=_OF,
        evidence=[[row["session_id"] for row in profile.rows] for profile in profiles],
        note="Named by the classes of call of which it has most more than sessions have on the whole.",
    )


def _chart(profiles: list[_Profile], classes: list[str], n: int) -> Chart | None:
    rows: list[Row] = [
        mark(
            {
                "name": f"{at + 1}. more {profile.name} ({len(profile.rows):,})",
                "column": class_,
                "value": profile.means[class_],
                "tip": f"style {at + 1}, more {profile.name}:"
                f" {formatted(profile.means[class_], 'share')} of calls are {class_}",
            },
            [(session_id, mix.get(class_, 0.0), 1) for session_id, mix in profile.mixes],
        )
        for at, profile in enumerate(profiles)
        for class_ in classes
    ]
    return chart(
        "tool_profiles.mix",
        "What the calls of each style are, in percent",
        rows,
        heatmap(rows, classes),
        n=n,
        of=_OF,
        note="means of sessions; sessions in brackets",
        says="; ".join(row["tip"] for row in rows if row["value"] >= 0.2),
    )


STUDY = Study(
    name="tool_profiles",
    order=80,
    title="Working styles",
    question="Do sessions fall into groups by the tools they use?",
    queries={
        "mixes": "SELECT session_id, agent, value, CAST(detail->>'n' AS BIGINT) AS n"
        f" FROM {sql.NAMED} JOIN sessions USING (session_id) WHERE signal = '{_MIX}' AND absent IS NULL"
        " ORDER BY session_id",
    },
    function=_outcome,
)
