"""Tool calls: classes, kinds, positions in a turn, transitions, working styles, failures and repetition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from math import fsum
from typing import Any

import msgspec

from agentsignals.model import Absent
from agentsignals.questions import sql
from agentsignals.questions.charts import COUNTS, SHARES, bars, dots, heatmap, histogram_chart
from agentsignals.questions.estimates import (
    DOMINANT,
    INTERVAL_NOTE,
    ONE_PLACE,
    ClusteredShare,
    Sample,
    bar,
    by,
    chart,
    clustered_share,
    count,
    count_bars,
    listing,
    median_finding,
    n_sessions,
    pooled_finding,
    ranked,
    share_of,
    signal_values,
    table,
    tally,
)
from agentsignals.questions.question import Chart, EvidenceQuery, Inputs, Outcome, Part, Row, Study, formatted, mark
from agentsignals.questions.sql import declared, read_queries
from agentsignals.questions.tool_kinds import HANDS_IN_PLAN, KIND, PUBLISHED
from agentsignals.stats.grouping import MISSING, MOST, grouped, install_hint
from agentsignals.stats.intervals import SEED

FEWEST_IN_THIRDS = 10
"""A shorter session has no beginning, middle and end to speak of (as chat.tool_calls_by_position)."""
FEWEST_STYLED, FEWEST, MOST_PROFILES = 10, 30, 8
"""Calls of a session that has a style; sessions that are grouped; groups tried."""
MIN_REPEAT_RUN = 3
"""Equal calls without an edit between that count as a loop."""
_SQL = read_queries(
    __file__,
    kind=KIND,
    fewest_in_thirds=str(FEWEST_IN_THIRDS),
    fewest_styled=str(FEWEST_STYLED),
    min_repeat_run=str(MIN_REPEAT_RUN),
)

_MOST_NAMES = 15


def tools(inputs: Inputs) -> Outcome:
    calls, names, places = inputs.rows["calls"], inputs.rows["names"], inputs.places
    groups, counted = by(calls, "class"), ranked(tally(calls, "class"))
    classes, total = [class_ for class_, _ in counted], sum(n for _, n in counted)
    rows: list[list[Any]] = [[class_, n, n / total, n_sessions(groups[class_])] for class_, n in counted]
    with_mcp = {row["session_id"] for row in calls if row["class"] == "mcp"}
    with_a_call = sorted({row["session_id"] for row in calls})
    mcp = clustered_share(((s, float(s in with_mcp), 1) for s in with_a_call), places)
    shell = share_of(calls, places, lambda row: row["class"] == "shell", "n")
    of_agent = {"all agents": calls, **by(calls, "agent")}
    marks: list[Row] = []
    for agent, rows_of in sorted(of_agent.items(), key=lambda pair: -tally(pair[1], "class").total()):
        mix, behind = tally(rows_of, "class"), by(rows_of, "class")
        n = mix.total()
        name = f"{agent} ({f'{n:,}' if n < 1000 else f'{n / 1000:.1f}k'})"
        for class_ in classes:
            value = mix[class_] / n
            tip = f"{agent}: {mix[class_]:,} of {n:,} calls are {class_} ({formatted(value, 'share')})"
            cell = {"name": name, "column": class_, "value": value, "tip": tip}
            marks.append(mark(cell, behind.get(class_, ())))
    says = "; ".join(row["tip"] for row in marks if row["value"] >= 0.1)
    most, n_named = names[:_MOST_NAMES], sum(row["n"] for row in names)
    by_name = table(
        "tools.names",
        [[row["name"], row["n"], row["n"] / n_named, row["sessions"], row["agents"]] for row in most],
        n=n_named,
        evidence=[EvidenceQuery(_SQL["tools_rows"]["of_name"], {"name": row["name"]}, row["parts"]) for row in most],
        note=f"The {_MOST_NAMES} most used of {len(names):,} names." if len(names) > _MOST_NAMES else "",
    )
    findings = [
        shell.finding("tools.shell_share"),
        mcp.finding("tools.mcp_sessions"),
        count(len(names), int(shell.n), evidence=calls).finding("tools.names"),
        median_finding(inputs, "tools.entropy.median"),
    ]
    by_class = table("tools.classes", rows, n=total, evidence=[groups[class_] for class_ in classes])
    return Outcome(findings, [by_class, by_name], [chart("tools.mix", marks, heatmap(classes), n=total, says=says)])


TOOLS_STUDY = Study(
    **declared("study", "tools", values=sql.values("corpus.tool_mix_entropy", detail=()), absent=sql.ABSENT),
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
        return sample.share([float(sum(mix.get(kind, 0) for kind in kinds)) for mix in mixes.values()])

    findings = [estimate(*kinds).finding(f"tool_categories.{name}") for name, kinds in _MIX_HEADLINES.items()]
    used = {kind for mix in mixes.values() for kind in mix}
    shares = [(kind, estimate(kind)) for kind in PUBLISHED if kind in used]
    shares.sort(key=lambda pair: (-pair[1].k, pair[0]))
    n, published = (shares[0][1].n if shares else 0), sum(PUBLISHED.values())
    rows: list[list[Any]] = [
        [kind, int(e.k), e.value, *e.ends, sum(kind in mix for mix in mixes.values()), PUBLISHED[kind] / published]
        for kind, e in shares
    ]
    behind = [[(s, k, k) for s, mix in mixes.items() if (k := mix.get(kind))] for kind, _ in shares]
    note = (
        f"Subagents' calls are left out. The SWE-chat paper's shares are of {published:,} calls (version 1, Table 5)."
    )
    by_kind = table("tool_categories.calls", rows, n=n, evidence=behind, note=note)
    marks = [bar(kind, e.k / e.n, f"{kind}: {e.words('calls')}", evidence=e.counted) for kind, e in shares]
    by_share = chart("tool_categories.shares", marks, bars("share of calls", "share"), n=n)
    return Outcome([f for f in findings if f.n], [by_kind], [by_share])


TOOL_CATEGORIES_STUDY = Study(**declared("study", "tool_categories"), function=tool_categories)


# -- Positions in a turn (SWE-chat, Figure 21)

_BANDS = ((1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 10), (11, 20), (21, 29), (30, 10**9))
"""Positions in a turn, counted from 1; the paper draws each up to 30."""
_POSITION_HEADLINES: tuple[tuple[str, str, bool | None, tuple[str, ...]], ...] = (
    ("first_looks", "first", None, ("read", "grep", "glob")),
    ("last_git", "last", False, ("git/gh",)),
    ("last_plan", "last", True, (HANDS_IN_PLAN,)),
)
"""Column, whether of turns cut short (None: of all), and kinds of calls."""


def tool_positions(inputs: Inputs) -> Outcome:
    turns, calls = inputs.rows["turns"], inputs.rows["calls"]
    findings = []
    for name, column, cut, wanted in _POSITION_HEADLINES:
        of_cut = [row for row in turns if cut is None or row["cut"] == cut]
        share = share_of(of_cut, inputs.places, lambda row: row[column] in wanted, "n")  # noqa: B023  (called at once)
        findings.append(share.finding(f"tool_positions.{name}"))
    charts = [
        _tool_positions_chart("forward", "Calls by position from the start of the turn", None, calls),
        _tool_positions_chart("natural", "Calls by position from the end of finished turns", False, calls),
        _tool_positions_chart("interrupted", "Calls by position from the end of turns cut short", True, calls),
    ]
    # First calls of turns, last ones of finished turns, last ones of turns cut short, by kind.
    counted = (
        tally(turns, "first"),
        tally((row for row in turns if not row["cut"]), "last"),
        tally((row for row in turns if row["cut"]), "last"),
    )
    kinds = sorted(set().union(*counted), key=lambda kind: (-counted[0][kind], kind))
    ends = {"first": "first call", "last": "last, finished", "cut": "last, cut short"}
    behind = [
        [
            (row["session_id"], row["n"] if row["first"] == kind else 0, row["n"])
            for row in turns
            if kind in (row["first"], row["last"])
        ]
        for kind in kinds
    ]
    by_end = table(
        "tool_positions.ends",
        [
            [kind, *(v for c in counted for v in (c[kind], c[kind] / c.total() if c.total() else None))]
            for kind in kinds
        ],
        header="kind | " + " | ".join(f"{key} {words}:count | {key}_share share:share" for key, words in ends.items()),
        n=counted[0].total(),
        evidence=behind,
        note=f"{counted[2].total():,} of these turns were cut short.",
    )
    return Outcome([f for f in findings if f.n], [by_end], charts)


def _tool_positions_chart(name: str, title: str, cut: bool | None, calls: list[Row]) -> Chart | None:
    """Shares of kinds at each position: a column a position, adding up to 100. `cut`: of turns cut short, of
    finished ones, or from the beginning of both."""
    direction, sign = ("forward", "") if cut is None else ("back", "−")
    at = {low: Counter[str]() for low, _ in _BANDS}
    for row in calls:
        if cut is None or bool(row["cut"]) == cut:
            band = next(low for low, high in _BANDS if low <= row[direction] <= high)
            at[band][row["kind"]] += row["n"]
    order = [kind for kind in PUBLISHED if any(counted[kind] for counted in at.values())]
    # from the end the last call stands on the right, as it happened
    bands = [b for b in _BANDS if at[b[0]].total()][:: 1 if cut is None else -1]
    rows: list[Row] = []
    columns = [sign + (f"{a}" if a == b else f"{a}+" if b > 1000 else f"{a}–{b}") for a, b in bands]
    for kind in order:
        for (low, high), column in zip(bands, columns, strict=True):
            k, n = at[low][kind], at[low].total()
            cell = {"low": low, "high": high, "kind": kind, "cut": cut}
            asked = (
                f"{_SQL['positions_rows']['of_cell']} WHERE {direction} BETWEEN $low AND $high AND kind = $kind"
                " AND ($cut IS NULL OR cut = $cut) GROUP BY session_id"
            )
            tip = f"{kind} at call {column}: {k:,} of {n:,} calls"
            shown = {"name": kind, "column": column, "value": k / n, "tip": tip}
            rows.append(mark(shown, EvidenceQuery(asked, cell) if k else ()))
    tops = (max((r for r in rows if r["column"] == c), key=lambda r: float(r["value"])) for c in columns)
    return chart(
        f"tool_positions.{name}",
        rows,
        heatmap(columns),
        title=f"{title}, in percent",
        n=sum(counted.total() for counted in at.values()),
        of="tool calls",
        note="each column adds up to 100",
        says="most common kind per position: " + "; ".join(row["tip"] for row in tops),
    )


TOOL_POSITIONS_STUDY = Study(**declared("study", "tool_positions"), function=tool_positions)


# -- Transitions

_MOST_PAIRS = 20
_THIRDS = ("beginning", "middle", "end")


def transitions(inputs: Inputs) -> Outcome:
    places, classes, kinds, rows = inputs.places, *(inputs.rows[name] for name in ("classes", "kinds", "thirds"))
    edits = [row for row in classes if row["class"] == "edit"]
    edited_next = [row for row in classes if row["following"] == "edit"]
    looked = share_of(edited_next, places, lambda row: row["class"] in ("read", "search"), "n")
    findings = [
        share_of(classes, places, lambda row: row["class"] == row["following"], "n").finding("transitions.same"),
        share_of(edits, places, lambda row: row["following"] == "test", "n").finding("transitions.tested"),
        looked.finding("transitions.looked"),
    ]
    # The commonest pairs of kinds, and how much commoner than chance.
    pairs, first, second = tally(kinds, "kind", "following"), tally(kinds, "kind"), tally(kinds, "following")
    groups, total = by(kinds, "kind", "following"), pairs.total()
    most = ranked(pairs)[:_MOST_PAIRS]
    more = f" The {_MOST_PAIRS} most frequent of {len(pairs):,}." if len(pairs) > _MOST_PAIRS else ""
    by_pair = table(
        "transitions.pairs",
        [[a, b, n, n / total, n * total / (first[a] * second[b]), len(groups[a, b])] for (a, b), n in most],
        n=total,
        evidence=[groups[pair] for pair, _ in most],
        note=f"In the SWE-chat paper's categories. Lift compares with calls in random order; 1 is chance.{more}",
    )
    # The commonest transitions by third of the session.
    together, of_third = tally(rows, "class", "following"), by(rows, "third")
    thirds = [tally(of_third.get(third, ()), "class", "following") for third in range(3)]
    most = ranked(together)[:_MOST_PAIRS]
    by_third = table(
        "transitions.thirds",
        [[*pair, n, *(third[pair] / third.total() if third.total() else None for third in thirds)] for pair, n in most],
        header=f"first call | second next call | n times:count | {' | '.join(f'{name}:share' for name in _THIRDS)}",
        n=together.total(),
        of=f"transitions in sessions of at least {FEWEST_IN_THIRDS} calls",
        evidence=[
            EvidenceQuery(_SQL["transitions_rows"]["of_pair"], {"class": a, "following": b}) for (a, b), _ in most
        ],
    )
    # Shares of the next call's class, by class.
    pairs, before, groups = (
        tally(classes, "class", "following"),
        tally(classes, "class"),
        by(classes, "class", "following"),
    )
    after = sorted({following for _, following in pairs}, key=lambda c: (-before[c], c))
    marks: list[Row] = []
    for class_, n in ranked(before):
        for following in after:
            k = pairs[class_, following]
            tip = f"after {class_}: {following} {k:,} of {n:,} times ({formatted(k / n, 'share')})"
            cell = {"name": f"{class_} ({n:,})", "column": following, "value": k / n, "tip": tip}
            marks.append(mark(cell, groups.get((class_, following), ())))
    says = "; ".join(row["tip"] for row in marks if row["value"] >= 0.25)
    matrix = chart("transitions.matrix", marks, heatmap(after), n=before.total(), says=says)
    return Outcome([f for f in findings if f.n], [by_pair, by_third], [matrix])


TRANSITIONS_STUDY = Study(**declared("study", "transitions"), function=transitions)


# -- Working styles (agent-traces)

WEAK = 0.25
"""Below this mean silhouette nothing much stands apart (Kaufman and Rousseeuw 1990)."""


def tool_profiles(inputs: Inputs) -> Outcome:
    rows = [row for row in inputs.rows["mixes"] if row["n"] >= FEWEST_STYLED][:MOST]
    n = len(rows)
    if n < FEWEST:
        limit = f"{n:,} sessions have at least {FEWEST_STYLED} calls; {FEWEST} are needed for profiles."
        return Outcome(limits=[limit])
    mixes: list[dict[str, float]] = [msgspec.json.decode(row["value"]) for row in rows]
    classes = sorted(set().union(*mixes), key=lambda c: (-fsum(mix.get(c, 0.0) for mix in mixes), c))
    groups = grouped([[mix.get(class_, 0.0) for class_ in classes] for mix in mixes], MOST_PROFILES)
    if isinstance(groups, Absent):
        return Outcome(limits=[install_hint() if groups is MISSING else f"There are no profiles: {groups.detail}."])

    def means(of: list[int]) -> dict[str, float]:
        return {c: fsum(mixes[at].get(c, 0.0) for at in of) / len(of) for c in classes}

    whole, ids = means([*range(n)]), [row["session_id"] for row in rows]
    shown: list[list[Any]] = []
    behind = []
    marks: list[Row] = []
    for number in range(groups.count):
        members = [at for at, group in enumerate(groups.of) if group == number]
        mean = means(members)
        # A style is named by the classes of which it has most more than sessions have on the whole.
        above = sorted(classes, key=lambda c: (whole[c] - mean[c], c))
        name = "more " + " and ".join([c for c in above if mean[c] > whole[c]][:2])
        where = Counter(place for at in members if (place := inputs.places.get(ids[at])) is not None)
        largest = max(where.values(), default=0) / len(members)
        agents, fit = listing(Counter(rows[at]["agent"] for at in members)), fsum(groups.fit[at] for at in members)
        size = [name, len(members), len(members) / n, agents, len(where), largest or None, fit / len(members)]
        shown.append([*size, ONE_PLACE if largest > DOMINANT else ""])
        behind.append([ids[at] for at in members])
        for class_ in classes:
            tip = f"style {number + 1}, {name}: {formatted(mean[class_], 'share')} of calls are {class_}"
            label = f"{number + 1}. {name} ({len(members):,})"
            cell = {"name": label, "column": class_, "value": mean[class_], "tip": tip}
            marks.append(mark(cell, [(ids[at], mixes[at].get(class_, 0.0), 1) for at in members]))
    k_means = f"k-means, 2 to {MOST_PROFILES} clusters, best silhouette; seed {SEED}"
    weak = "weak: the styles overlap" if groups.silhouette < WEAK else ""
    findings = [
        count(groups.count, n, evidence=ids).finding("tool_profiles.count", note=k_means),
        count(round(groups.silhouette, 3), n, evidence=ids).finding("tool_profiles.silhouette", note=weak),
    ]
    says = "; ".join(row["tip"] for row in marks if row["value"] >= 0.2)
    mix = chart("tool_profiles.mix", marks, heatmap(classes), n=n, says=says)
    return Outcome(findings, [table("tool_profiles.styles", shown, n=n, evidence=behind)], [mix])


TOOL_PROFILES_STUDY = Study(**declared("study", "tool_profiles"), function=tool_profiles)


# -- Errors

FAILED = "failures are non-zero exits, errors and time-outs; a search without results is not"
"""The rule of `tool_calls.outcome`, where rates of failure are compared."""
_UNANSWERED = ("rejected", "cancelled", "unknown", "none")


def errors(inputs: Inputs) -> Outcome:
    calls = inputs.rows["calls"]
    answered = [row for row in calls if row["status"] in ("ok", "error")]
    failed = by([row for row in calls if row["status"] == "error"], "error_class")
    groups = {(kind or "not said").replace("_", " "): rows for kind, rows in failed.items()}
    kinds = Counter({kind: tally(rows, "status").total() for kind, rows in groups.items()})
    statuses, n, n_failed = tally(calls, "status"), sum(row["n"] for row in answered), kinds.total()
    marks = count_bars(ranked(kinds), "failed calls", evidence=groups)
    charts: list[Chart | None] = []
    rows: list[list[Any]] = []
    behind = []
    for key in ("class", "agent"):
        drawn: list[Row] = []
        rates = [
            (name, share_of(of, inputs.places, lambda row: row["status"] == "error", "n"), n_sessions(of))
            for name, of in by(answered, key).items()
        ]
        for name, rate, sessions in sorted(rates, key=lambda each: (-each[1].n, each[0])):
            ends = "–".join(formatted(end, "share") for end in rate.ends)
            tip = f"{name}: {rate.k:,.0f} of {rate.n:,.0f} calls failed, {formatted(rate.value, 'share')}"
            tip += f"{f', 95% {ends}' if rate.interval else ''}, {sessions:,} sessions"
            drawn.append(rate.mark(f"{name} ({rate.n:,.0f})", tip))
            if key == "class":
                rows.append([name, int(rate.k), int(rate.n), rate.value, *rate.ends, sessions])
                behind.append(rate.counted)
        title = f"Error rate by {key}"
        note = f"{FAILED}; answered calls in brackets; {INTERVAL_NOTE}"
        spec = dots("share of answered calls")
        charts.append(chart(f"errors.rate_by_{key}", drawn, spec, title=title, n=n, of="answered calls", note=note))
    charts.append(chart("errors.kinds", marks, bars("failed calls"), n=n_failed))
    words: list[list[Any]] = []
    for kind, k in ranked(kinds):
        classes = ", ".join(f"{name} {of:,}" for name, of in tally(groups[kind], "class").most_common())
        words.append([kind, k, k / n_failed, n_sessions(groups[kind]), classes])
    findings = [pooled_finding(inputs, "errors.rate"), pooled_finding(inputs, "errors.recovery")]
    for status in _UNANSWERED:
        unanswered = count(statuses[status], statuses.total(), evidence=partial(_of_status, calls, status))
        findings.append(unanswered.finding(f"errors.{status}"))
    tables = [
        table("errors.by_class", rows, n=n, evidence=behind),
        table("errors.kinds", words, n=n_failed, evidence=[groups[kind] for kind, _ in ranked(kinds)]),
    ]
    return Outcome(findings, tables, charts)


def _of_status(calls: list[Row], status: str) -> list[Part]:
    return [(row["session_id"], row["n"] if row["status"] == status else 0, row["n"]) for row in calls]


ERRORS_STUDY = Study(
    **declared(
        "study", "errors", values=sql.values("user.tool_error_rate", "corpus.error_recovery_rate"), absent=sql.ABSENT
    ),
    function=errors,
)


# -- After a failure

PATTERNS = {
    "again": "same call again",
    "varied": "same tool, other arguments",
    "looked": "read or search",
    "other": "another tool",
    "turn_over": "no call before the next prompt",
    "over": "no further call",
}
"""Next actions, in the order in which they are matched."""


def recovery(inputs: Inputs) -> Outcome:
    failed, places = inputs.rows["failed"], inputs.places

    def among(*patterns: str) -> Callable[[Row], bool]:
        return lambda row: row["pattern"] in patterns

    answered = [row for row in failed if not among("turn_over", "over")(row) and row["worked"] is not None]
    findings = [
        share_of(failed, places, among("again"), "n").finding("recovery.again"),
        share_of(failed, places, among("looked"), "n").finding("recovery.looked"),
        share_of(failed, places, among("turn_over", "over"), "n").finding("recovery.given_up"),
        share_of(answered, places, lambda row: row["worked"], "n").finding("recovery.next_worked"),
    ]
    runs = [(row["session_id"], int(row["length"])) for row in inputs.rows["runs"] for _ in range(row["n"])]
    title, unit, of = "Consecutive failed calls", "failed calls", "runs of failures"
    in_a_row = histogram_chart(runs, COUNTS, id="recovery.runs", title=title, unit=unit, of=of)
    groups, counted = by(failed, "pattern"), tally(failed, "pattern")
    total = counted.total()
    rows: list[list[Any]] = []
    marks: list[Row] = []
    seen = [(groups[pattern], counted[pattern], words) for pattern, words in PATTERNS.items() if pattern in groups]
    for group, n, words in seen:
        known = [row for row in group if row["worked"] is not None]
        n_known = sum(row["n"] for row in known)
        worked = sum(row["n"] * row["worked"] for row in known) / n_known if n_known else None
        rows.append([words, n, n / total, n_sessions(group), n_known, worked])
        if n:
            tip = f"{words}: {n:,} of {total:,} failed calls ({formatted(n / total, 'share')})"
            marks.append(bar(words, n / total, tip, evidence=group))
    # Next actions by the error of the failed call.
    kinds = {(kind or "not said").replace("_", " "): of for kind, of in by(failed, "error_class").items()}
    by_error: list[list[Any]] = []
    for kind, n in ranked({kind: sum(row["n"] for row in of) for kind, of in kinds.items()}):
        of_kind = tally(kinds[kind], "pattern")
        by_error.append([kind, n, *(of_kind[pattern] / n for pattern in PATTERNS)])
    header = f"kind error | n failed calls:count | {' | '.join(f'{k} {words}:share' for k, words in PATTERNS.items())}"
    behind = [kinds[row[0]] for row in by_error]
    tables = [
        table("recovery.patterns", rows, n=total, evidence=[group for group, _, _ in seen]),
        table("recovery.by_error", by_error, header=header, n=total, evidence=behind),
    ]
    next_ = chart("recovery.next", marks, bars("share of failed calls", "share"), n=total)
    return Outcome([f for f in findings if f.n], tables, [next_, in_a_row])


RECOVERY_STUDY = Study(**declared("study", "recovery"), function=recovery)


# -- Repetition

_REPETITION = "dynamics.repetition_rate"


def repetition(inputs: Inputs) -> Outcome:
    """Study of repeated tool calls: their share, and the longest run of equal calls without an edit between.

    The signal stores the length of that run as `stale_max`.
    """
    runs = [row for row in inputs.rows["values"] if row["stale_max"] is not None]
    repeating = share_of(runs, inputs.places, lambda row: row["stale_max"] >= MIN_REPEAT_RUN)
    findings = [
        pooled_finding(inputs, "repetition.pooled"),
        median_finding(inputs, "repetition.median"),
        repeating.finding("repetition.stale"),
    ]
    title, unit = "Share of repeated calls", "of calls are repeats"
    rates = histogram_chart(signal_values(inputs, _REPETITION), SHARES, id="repetition.spread", title=title, unit=unit)
    lengths = [(row["session_id"], int(row["stale_max"])) for row in runs]
    title, unit = "Longest loop: one call without an edit in between", "equal calls"
    longest_repeat_run = histogram_chart(lengths, COUNTS, id="repetition.stale.spread", title=title, unit=unit)
    return Outcome(findings, [], [rates, longest_repeat_run], [])


REPETITION_STUDY = Study(
    **declared(
        "study", "repetition", values=sql.values(_REPETITION, detail=(*sql.RATIO, "stale_max")), absent=sql.ABSENT
    ),
    function=repetition,
)
