"""Tool calls: classes, kinds, positions in a turn, transitions, and working styles."""

from __future__ import annotations

from collections import Counter
from math import fsum
from typing import Any

import msgspec

from agentsignals.model import Absent
from agentsignals.questions import sql
from agentsignals.questions.charts import bars, heatmap
from agentsignals.questions.estimates import (
    DOMINANT,
    ONE_PLACE,
    ClusteredShare,
    Sample,
    bar,
    by,
    chart,
    clustered_share,
    count,
    listing,
    mark,
    median_finding,
    ranked,
    share_of,
    table,
    tally,
)
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Chart, EvidenceQuery, Inputs, Outcome, Row, Study
from agentsignals.questions.sql import declared, read_queries
from agentsignals.questions.tool_kinds import HANDS_IN_PLAN, KIND, PUBLISHED
from agentsignals.stats.grouping import INSTALL, MISSING, MOST, Groups, grouped
from agentsignals.stats.intervals import SEED

FEWEST_IN_THIRDS = 10
"""A shorter session has no beginning, middle and end to speak of (as chat.tool_calls_by_position)."""
FEWEST_STYLED, FEWEST, MOST_PROFILES = 10, 30, 8
"""Calls of a session that has a style; sessions that are grouped; groups tried."""
_SQL = read_queries(__file__, kind=KIND, fewest_in_thirds=str(FEWEST_IN_THIRDS), fewest_styled=str(FEWEST_STYLED))

_ENTROPY = "corpus.tool_mix_entropy"
_MOST_NAMES = 15
_OF_NAME = f"SELECT session_id, count(*) AS n {sql.MAIN_CALLS} AND name = $name GROUP BY session_id"


def tools(inputs: Inputs) -> Outcome:
    calls = inputs.rows["calls"]
    counted, groups = tally(calls, "class"), by(calls, "class")
    total = counted.total()
    sessions = {class_: len({row["session_id"] for row in rows}) for class_, rows in groups.items()}
    rows: list[list[Any]] = [[class_, n, n / total, sessions[class_]] for class_, n in ranked(counted)]
    with_a_call = {row["session_id"] for row in calls}
    with_mcp = {row["session_id"] for row in calls if row["class"] == "mcp"}
    places = inputs.places
    shell = share_of(calls, places, lambda row: row["class"] in ("shell", "test"), "n")
    classes = [class_ for class_, _ in ranked(tally(calls, "class"))]
    mix: dict[str, Counter[str]] = {"all agents": tally(calls, "class")}
    of_agent = {"all agents": by(calls, "class")}
    for agent, of in by(calls, "agent").items():
        mix[agent], of_agent[agent] = tally(of, "class"), by(of, "class")
    marks: list[Row] = []
    for agent, counts in sorted(mix.items(), key=lambda pair: -pair[1].total()):
        for class_ in classes:
            value = counts[class_] / counts.total()
            tip = f"{agent}: {counts[class_]:,} of {counts.total():,} calls are {class_} ({formatted(value, 'share')})"
            n_calls = f"{counts.total():,}" if counts.total() < 1000 else f"{counts.total() / 1000:.1f}k"
            cell = {"name": f"{agent} ({n_calls})", "column": class_, "value": value, "tip": tip}
            marks.append(mark(cell, of_agent[agent].get(class_, ())))
    names = inputs.rows["names"]
    names_total = sum(row["n"] for row in names)
    return Outcome(
        [
            shell.finding("tools.shell_share"),
            clustered_share(((s, float(s in with_mcp), 1) for s in sorted(with_a_call)), places).finding(
                "tools.mcp_sessions"
            ),
            count(len(inputs.rows["names"]), int(shell.n), evidence=calls).finding("tools.names"),
            median_finding(inputs, "tools.entropy.median"),
        ],
        [
            table("tools.classes", rows, n=total, evidence=[groups[class_] for class_, _ in ranked(counted)]),
            table(
                "tools.names",
                [[r["name"], r["n"], r["n"] / names_total, r["sessions"], r["agents"]] for r in names[:_MOST_NAMES]],
                n=names_total,
                evidence=[EvidenceQuery(_OF_NAME, {"name": r["name"]}, r["parts"]) for r in names[:_MOST_NAMES]],
                note=f"The {_MOST_NAMES} most used of {len(names):,} names." if len(names) > _MOST_NAMES else "",
            ),
        ],
        [
            chart(
                "tools.mix",
                marks,
                heatmap(marks, classes),
                n=mix["all agents"].total(),
                says="; ".join(r["tip"] for r in marks if r["value"] >= 0.1),
            )
        ],
    )


TOOLS_STUDY = Study(
    **declared("study", "tools"),
    queries={**_SQL["tools"], "values": sql.values(_ENTROPY, detail=()), "absent": sql.ABSENT},
    function=tools,
)


# -- Kinds of tool calls (SWE-chat, Table 5 and Figure 19b)

_MIX_HEADLINES = {
    "looking": ("read", "grep", "glob"),
    "changing": ("edit", "write"),
    "commands": ("bash", "bash:build", "bash:file", "bash:net", "git/gh"),
}


def tool_categories(inputs: Inputs) -> Outcome:
    mixes: dict[str, dict[str, int]] = {}
    for row in inputs.rows["calls"]:
        mixes.setdefault(row["session_id"], {})[row["kind"]] = row["n"]

    sample = Sample(list(mixes), inputs.places, [sum(mix.values()) for mix in mixes.values()])

    def estimate(*kinds: str) -> ClusteredShare:
        held = [[mix.get(kind, 0) for mix in mixes.values()] for kind in kinds]
        return sample.share(list(map(float, map(sum, zip(*held, strict=True)) if held[1:] else held[0])))

    findings = [estimate(*kinds).finding(f"tool_categories.{name}") for name, kinds in _MIX_HEADLINES.items()]
    used = {kind for mix in mixes.values() for kind in mix}
    shares = [(kind, estimate(kind)) for kind in PUBLISHED if kind in used]
    ranked = sorted(shares, key=lambda pair: (-pair[1].k, pair[0]))
    n, published = (ranked[0][1].n if ranked else 0), sum(PUBLISHED.values())
    rows: list[list[Any]] = []
    for kind, e in ranked:
        sessions = sum(kind in mix for mix in mixes.values())
        rows.append([kind, int(e.k), e.value, *e.ends, sessions, PUBLISHED[kind] / published])
    by_kind = table(
        "tool_categories.calls",
        rows,
        n=n,
        evidence=[[(s, k, k) for s, mix in mixes.items() if (k := mix.get(kind))] for kind, _ in ranked],
        note=f"Main thread. In SWE-chat: shares of {published:,} calls (v1, Table 5).",
    )
    marks = [bar(kind, e.k / e.n, f"{kind}: {e.words('calls')}", evidence=e.counted) for kind, e in ranked]
    shown = bars(marks, "share of calls", "share")
    by_share = chart("tool_categories.shares", marks, shown, n=n)
    return Outcome([f for f in findings if f.n], [by_kind], [by_share])


TOOL_CATEGORIES_STUDY = Study(
    **declared("study", "tool_categories"),
    queries=_SQL["tool_categories"],
    function=tool_categories,
)


# -- Positions in a turn (SWE-chat, Figure 21)

_BANDS = ((1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 10), (11, 20), (21, 29), (30, 10**9))
"""Positions in a turn, counted from 1; the paper draws each up to 30."""
_POSITION_HEADLINES: tuple[tuple[str, str, bool | None, tuple[str, ...]], ...] = (
    ("first_looks", "first", None, ("read", "grep", "glob")),
    ("last_git", "last", False, ("git/gh",)),
    ("last_plan", "last", True, (HANDS_IN_PLAN,)),
)
"""Column, whether of interrupted turns (None: of all), and kinds of calls."""


def tool_positions(inputs: Inputs) -> Outcome:
    places = inputs.places
    turns = inputs.rows["turns"]
    findings = []
    for name, column, cut, wanted in _POSITION_HEADLINES:
        of_cut = [row for row in turns if cut is None or row["cut"] == cut]
        share = share_of(of_cut, places, lambda row: row[column] in wanted, "n")  # noqa: B023  (called at once)
        findings.append(share.finding(f"tool_positions.{name}"))
    calls = inputs.rows["calls"]
    finished, interrupted = [r for r in calls if not r["cut"]], [r for r in calls if r["cut"]]
    charts = [
        _tool_positions_chart("forward", "Calls by position from the beginning of the turn", None, calls),
        _tool_positions_chart("natural", "Calls by position from the end of finished turns", False, finished),
        _tool_positions_chart("interrupted", "Calls by position from the end of interrupted turns", True, interrupted),
    ]
    # First and last calls of turns, by kind.
    first: Counter[str] = Counter()
    last: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
    for row in turns:
        first[row["first"]] += row["n"]
        last[row["cut"]][row["last"]] += row["n"]
    counted = (first, last[False], last[True])
    kinds = sorted(set().union(*counted), key=lambda kind: (-first[kind], kind))
    ends = {"first": "first call", "last": "last, finished", "cut": "last, interrupted"}
    return Outcome(
        [f for f in findings if f.n],
        [
            table(
                "tool_positions.ends",
                [
                    [kind, *(v for c in counted for v in (c[kind], c[kind] / c.total() if c.total() else None))]
                    for kind in kinds
                ],
                header="kind | "
                + " | ".join(f"{key} {words}:count | {key}_share share:share" for key, words in ends.items()),
                n=first.total(),
                evidence=[
                    [
                        (row["session_id"], row["n"] if row["first"] == kind else 0, row["n"])
                        for row in turns
                        if kind in (row["first"], row["last"])
                    ]
                    for kind in kinds
                ],
                note=f"{last[True].total():,} of these turns were interrupted.",
            )
        ],
        charts,
    )


def _tool_positions_chart(name: str, title: str, cut: bool | None, calls: list[Row]) -> Chart | None:
    """Shares of kinds at each position: a column a position, adding up to 100. `cut`: of interrupted turns, of
    finished ones, or from the beginning of both."""
    direction = "forward" if cut is None else "back"
    at = {low: Counter[str]() for low, _ in _BANDS}
    for row in calls:
        band = next(low for low, high in _BANDS if low <= row[direction] <= high)
        at[band][row["kind"]] += row["n"]
    total = sum(counted.total() for counted in at.values())
    order = [kind for kind in PUBLISHED if any(counted[kind] for counted in at.values())]
    # from the end the last call stands on the right, as it happened
    bands = [b for b in _BANDS if at[b[0]].total()][:: -1 if direction == "back" else 1]
    columns = {
        low: ("−" if direction == "back" else "")
        + (str(low) if low == high else f"{low}+" if high > 1000 else f"{low}–{high}")
        for low, high in bands
    }
    rows: list[Row] = [
        mark(
            {
                "name": kind,
                "column": columns[low],
                "value": at[low][kind] / at[low].total(),
                "tip": f"{kind} at call {columns[low]}: {at[low][kind]:,} of {at[low].total():,} calls",
            },
            EvidenceQuery(
                f"{_SQL['positions_rows']['of_cell']} WHERE {direction} BETWEEN $low AND $high AND kind = $kind"
                " AND ($cut IS NULL OR cut = $cut) GROUP BY session_id",
                {"low": low, "high": high, "kind": kind, "cut": cut},
            )
            if at[low][kind]
            else (),
        )
        for kind in order
        for low, high in bands
    ]
    tops = (max((r for r in rows if r["column"] == c), key=lambda r: float(r["value"])) for c in columns.values())
    return chart(
        f"tool_positions.{name}",
        rows,
        heatmap(rows, list(columns.values())),
        title=f"{title}, in percent",
        n=total,
        of="tool calls",
        note="each column adds up to 100",
        says="the commonest kind of each position: " + "; ".join(row["tip"] for row in tops),
    )


TOOL_POSITIONS_STUDY = Study(
    **declared("study", "tool_positions"),
    queries=_SQL["tool_positions"],
    function=tool_positions,
    context="product",
)


# -- Transitions

_MOST_PAIRS = 20
_THIRDS = ("beginning", "middle", "end")


def transitions(inputs: Inputs) -> Outcome:
    places = inputs.places
    classes, kinds = inputs.rows["classes"], inputs.rows["kinds"]
    edits = [row for row in classes if row["class"] == "edit"]
    edited_next = [row for row in classes if row["following"] == "edit"]
    findings = [
        share_of(classes, places, lambda row: row["class"] == row["following"], "n").finding("transitions.same"),
        share_of(edits, places, lambda row: row["following"] == "test", "n").finding("transitions.tested"),
        share_of(edited_next, places, lambda row: row["class"] in ("read", "search"), "n").finding(
            "transitions.looked"
        ),
    ]
    # The commonest pairs of kinds, and how much commoner than chance.
    pairs, first, second = tally(kinds, "kind", "following"), tally(kinds, "kind"), tally(kinds, "following")
    groups = by(kinds, "kind", "following")
    total = pairs.total()
    shown: list[list[Any]] = [
        [a, b, n, n / total, n * total / (first[a] * second[b]), len(groups[a, b])]
        for (a, b), n in ranked(pairs)[:_MOST_PAIRS]
    ]
    more = f" The {_MOST_PAIRS} most frequent of {len(pairs):,}." if len(pairs) > _MOST_PAIRS else ""
    # The commonest transitions by third of the session.
    rows = inputs.rows["thirds"]
    together, thirds_groups = tally(rows, "class", "following"), by(rows, "third")
    thirds = [tally(thirds_groups.get(third, ()), "class", "following") for third in range(3)]
    thirds_shown: list[list[Any]] = [
        [*pair, n, *(third[pair] / third.total() if third.total() else None for third in thirds)]
        for pair, n in ranked(together)[:_MOST_PAIRS]
    ]
    tables = [
        table(
            "transitions.pairs",
            shown,
            n=total,
            evidence=[groups[pair] for pair, _ in ranked(pairs)[:_MOST_PAIRS]],
            note=f"In the kinds of SWE-chat. Times chance: against calls in any order; 1 is as often as that.{more}",
        ),
        table(
            "transitions.thirds",
            thirds_shown,
            header=f"first call | second next call | n times:count | {' | '.join(f'{name}:share' for name in _THIRDS)}",
            n=together.total(),
            of=f"transitions in sessions of at least {FEWEST_IN_THIRDS} calls",
            evidence=[
                EvidenceQuery(_SQL["transitions_rows"]["of_pair"], {"class": a, "following": b})
                for (a, b), _ in ranked(together)[:_MOST_PAIRS]
            ],
        ),
    ]
    # Shares of the next call's class, by class.
    matrix_pairs, before, matrix_groups = (
        tally(classes, "class", "following"),
        tally(classes, "class"),
        by(classes, "class", "following"),
    )
    after = sorted({following for _, following in matrix_pairs}, key=lambda c: (-before[c], c))
    marks: list[Row] = []
    for class_, n in ranked(before):
        for following in after:
            k = matrix_pairs[class_, following]
            tip = f"after {class_}: {following} {k:,} of {n:,} times ({formatted(k / n, 'share')})"
            cell = {"name": f"{class_} ({n:,})", "column": following, "value": k / n, "tip": tip}
            marks.append(mark(cell, matrix_groups.get((class_, following), ())))
    return Outcome(
        [f for f in findings if f.n],
        tables,
        [
            chart(
                "transitions.matrix",
                marks,
                heatmap(marks, after),
                n=before.total(),
                says="; ".join(row["tip"] for row in marks if row["value"] >= 0.25),
            )
        ],
    )


TRANSITIONS_STUDY = Study(
    **declared("study", "transitions"),
    queries=_SQL["transitions"],
    function=transitions,
)


# -- Working styles (agent-traces)

WEAK = 0.25
"""Below this mean silhouette nothing much stands apart (Kaufman and Rousseeuw 1990)."""


def tool_profiles(inputs: Inputs) -> Outcome:
    rows = [row for row in inputs.rows["mixes"] if row["n"] >= FEWEST_STYLED][:MOST]
    if len(rows) < FEWEST:
        return Outcome(
            limits=[f"{len(rows):,} sessions have {FEWEST_STYLED} calls or more: {FEWEST} are needed for profiles."]
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
            "tool_profiles.count", note=k_means
        ),
        count(round(groups.silhouette, 3), len(rows), evidence=[row["session_id"] for row in rows]).finding(
            "tool_profiles.silhouette", note=weak
        ),
    ]
    places = inputs.places
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
    n = len(rows)
    profiles_rows: list[Row] = [
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
    return Outcome(
        findings,
        [
            table(
                "tool_profiles.styles",
                shown,
                n=len(rows),
                evidence=[[row["session_id"] for row in profile.rows] for profile in profiles],
            )
        ],
        [
            chart(
                "tool_profiles.mix",
                profiles_rows,
                heatmap(profiles_rows, classes),
                n=n,
                says="; ".join(row["tip"] for row in profiles_rows if row["value"] >= 0.2),
            )
        ],
    )


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


TOOL_PROFILES_STUDY = Study(
    **declared("study", "tool_profiles"),
    queries=_SQL["tool_profiles"],
    function=tool_profiles,
)
