"""Five studies of code: `edits`, `coding_modes`, `survival`, `efficiency` and `weaknesses`.

Four of them group sessions or commits by coding mode, the share of committed lines that the agent wrote: human only,
collaborative, or vibe coding (nearly all). The names are SWE-chat's; `written_lines` reads the modes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import fsum
from statistics import fmean
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from agentsignals.questions import sql
from agentsignals.questions.charts import bars, dots, histogram_chart, lines_chart
from agentsignals.questions.estimates import (
    INTERVAL_NOTE,
    Estimate,
    Sample,
    agents_by_sessions,
    bar,
    by,
    chart,
    clustered_median,
    clustered_share,
    median_finding,
    pooled_finding,
    pooled_ratio,
    share_of,
    signal_rows,
    table,
)
from agentsignals.questions.question import (
    Chart,
    EvidenceQuery,
    Inputs,
    Kind,
    NoSessions,
    Outcome,
    Part,
    Row,
    Study,
    Table,
    formatted,
)
from agentsignals.questions.sql import declared, read_queries
from agentsignals.questions.written_lines import (
    ALL,
    CODING_MODE_SOURCES,
    LABEL,
    LABELLER,
    MODES,
    MODES_OF_SOURCE,
    NAMES,
    PERCENT,
    SIGNAL,
    CodingModeSource,
    mode_by_session,
    mode_source,
    rates,
)
from agentsignals.stats.intervals import FEWEST_CLUSTERS, median, quantile

IDLE_S = 120
"""A longer gap in which nobody acted is no part of the time a session took (the paper's Equation 7)."""
_SQL = read_queries(__file__, idle_s=str(IDLE_S))

_READ_FIRST, _AGAIN = "corpus.read_before_edit_rate", "user.region_re_edit_count"
_MOST_FILES = 20


def edits(inputs: Inputs) -> Outcome:
    places = inputs.places
    measured = [row for row in signal_rows(inputs, _READ_FIRST) if row["number"] is not None]
    of_agent = by(measured, "agent")
    marks: list[Row] = []
    for agent in agents_by_sessions(measured):
        group = [row for row in of_agent[agent] if row["num"] is not None and row["den"]]
        known = pooled_ratio(group, places)
        share = formatted(known.value, "share")
        tip = f"{agent}: {share} of {known.n:,.0f} edit attempts, {len(group):,} sessions"
        marks.append(known.mark(f"{agent} ({known.n:,.0f})", tip))
    findings = [
        pooled_finding(inputs, "edits.read_first"),
        pooled_finding(inputs, "edits.per_read", is_share=False),
        median_finding(inputs, "edits.lines.median"),
        share_of(inputs.rows["ways"], places, lambda row: row["via"] == "shell", "n").finding("edits.by_shell"),
        pooled_ratio(signal_rows(inputs, _AGAIN), places, "number", "regions").finding("edits.again"),
    ]
    merged: dict[tuple[str, str], list[int]] = {}
    for row in inputs.rows["files"]:
        counts = merged.setdefault((row["place"] or "", row["path"]), [0, 0, 0, 0])
        for i, key in enumerate(("n", "sessions", "added", "removed")):
            counts[i] += int(row[key] or 0)
    most = sorted(merged.items(), key=lambda item: (-item[1][0], item[0]))[:_MOST_FILES]
    more = f" The {len(most)} most changed of {len(merged):,} files." if len(merged) > len(most) else ""
    of_file = _SQL["edits_rows"]["of_file"]
    files = table(
        "edits.files",
        [[path, place.rstrip("/").rsplit("/", 1)[-1], *counts] for (place, path), counts in most],
        n=sum(counts[0] for counts in merged.values()),
        evidence=[EvidenceQuery(of_file, {"place": place, "path": path}) for (place, path), _ in most],
        note=f"Added and removed are lines.{more}",
    )
    n = pooled_ratio(measured, places).n
    return Outcome(findings, [files], [chart("edits.read_first.agents", marks, dots("share of edit attempts"), n=n)])


EDITS_STUDY = Study(
    **declared(
        "study",
        "edits",
        values=sql.values(
            _READ_FIRST,
            "behavior.edit_to_read_ratio",
            "behavior.diff_lines",
            _AGAIN,
            detail=(*sql.RATIO, "regions"),
        ),
        absent=sql.ABSENT,
    ),
    function=edits,
)


# -- Coding modes (SWE-chat, Figures 5, 19e, 25)

_PUBLISHED = {"human_only": "22.7", "collaborative": "36.5", "vibe_coding": "40.8"}
_PERCENTS: tuple[float, ...] = (0, 20, 40, 60, 80, 99, 100)
"""Upper ends of classes: nothing, fifths, and from 99 percent everything."""
WINDOW_DAYS = 14
_FEWEST = 10
"""Sessions behind a point of a line (this project's choice)."""
_CODING_MODES_OF: dict[CodingModeSource, str] = {
    "replayed": "sessions with attributed commits",
    "recorded": "sessions with a record",
}
_REPLAYED_LABELS = f"FROM labels WHERE task = '{LABEL}' AND labeller = '{LABELLER}'"
_NO_MODES = (
    "No session records who wrote the committed lines. Run `agentsignals repo attribute REPOSITORY`, or"
    " `agentsignals analyze git:REPOSITORY` if it has checkpoints."
)
_AS = {"recorded": "as the data set records it", "replayed": "as computed from the edits"}
_UNKNOWN = (
    "A mode computed from the edits is unknown if unexplained lines allow more than one mode. In charts of line"
    " shares an unknown line counts as half."
)
_RECORDED = (
    "Recorded modes come from the collector and under-report agents. In one replayed collection half of the"
    " human-only records were agent work, because the agent committed mid-turn."
)


def coding_modes(inputs: Inputs) -> Outcome:
    places, rows = inputs.places, inputs.rows["modes"]
    if not rows:
        return Outcome(limits=[_NO_MODES])
    findings = []
    marks: list[Row] = []
    sources = [source for source in CODING_MODE_SOURCES if any(row[source] is not None for row in rows)]
    for source in sources:
        classified = [row for row in rows if row[source] is not None]
        sample, modes = Sample([row["session_id"] for row in classified], places), [row[source] for row in classified]
        for mode in MODES_OF_SOURCE[source]:
            share = sample.among(modes, mode)
            of_mode = (
                f"{sql.LABEL} = '{mode}' AS INT)) FROM signals WHERE signal = '{SIGNAL}' AND absent IS NULL"
                if source == "recorded"
                else f"value = '{mode.removesuffix('_coding')}' AS INT)) {_REPLAYED_LABELS}"
            )
            findings.append(
                share.finding(
                    f"coding_modes.{'' if source == 'recorded' else 'replayed.'}{mode}",
                    f"Sessions in mode {NAMES[mode]}, {_AS[source]}",
                    _CODING_MODES_OF[source],
                    f"the SWE-chat paper reports {_PUBLISHED[mode]}%" if mode in _PUBLISHED else "",
                    unit="share of sessions",
                    signals=(SIGNAL, PERCENT) if source == "recorded" else (),
                    sql=f"SELECT avg(CAST({of_mode}",
                )
            )
            tip = f"{NAMES[mode]}, {_AS[source]}: {share.words('sessions')}"
            marks.append(share.mark(f"{NAMES[mode]}, {source} ({share.k:,.0f})", tip))
    n = max(sum(row[source] is not None for row in rows) for source in sources)
    charts = [chart("coding_modes.shares", marks, dots("share of sessions"), n=n)]
    charts += _source_charts(mode_source(rows), rows, inputs)
    if "recorded" in sources:
        recorded = [(row["session_id"], row["recorded_percent"]) for row in rows if row["recorded_percent"] is not None]
        of = _CODING_MODES_OF["recorded"]
        findings.append(clustered_median(recorded, places).finding("coding_modes.percent.median", of=of))
    # The medians of the bounds. The interval of both is that of the two together: none is narrower than its bounds.
    bounded = [row for row in rows if row["replayed_low"] is not None]
    low, high = (
        clustered_median([(row["session_id"], row[f"replayed_{end}"]) for row in bounded], places)
        for end in ("low", "high")
    )
    interval = (low.interval[0], high.interval[1]) if low.interval and high.interval else None
    for end, words, bound in (("low", "at least", low), ("high", "at most", high)):
        findings.append(
            replace(bound, interval=interval).finding(
                f"coding_modes.replayed.percent.{end}.median",
                f"Agent's share of a session's committed lines, median, {words}, from the edits ({_unknown(bounded)})",
                _CODING_MODES_OF["replayed"],
                "median of the sessions' bounds; the interval covers both bounds",
                unit="percent of committed lines",
                sql=f"SELECT median(100 * CAST(detail->>'{end}' AS DOUBLE)) {_REPLAYED_LABELS}",
            )
        )
    limits = [
        *([_UNKNOWN] if "replayed" in sources else []),
        *([_RECORDED] if "recorded" in sources else []),
        "Sessions without a commit have no mode.",
    ]
    # What each recorded mode is by replay.
    both = by([row for row in rows if row["recorded"] is not None and row["replayed"] is not None], "recorded")
    shown: list[list[Any]] = []
    for mode in MODES_OF_SOURCE["recorded"] if both else ():
        replayed = [row["replayed"] for row in both.get(mode, ())]
        shown.append([NAMES[mode], len(replayed), *map(replayed.count, NAMES)])
    columns = " | ".join(f"{mode} {name} by replay:count" for mode, name in NAMES.items())
    roads = table(
        "coding_modes.roads",
        shown,
        header=f"recorded as recorded | n sessions:count | {columns}",
        n=sum(map(len, both.values())),
        evidence=[[row["session_id"] for row in both.get(mode, ())] for mode in MODES_OF_SOURCE["recorded"]][
            : len(shown)
        ],
    )
    return Outcome([f for f in findings if f.n or f.unit == "share of sessions"], [roads], charts, limits)


def _unknown(rows: list[Row]) -> str:
    lines = sum(row["lines"] for row in rows)
    unknown = sum(row["lines"] * (row["replayed_high"] - row["replayed_low"]) / 100 for row in rows)
    return f"{formatted(unknown / lines, 'share')} of lines unknown" if lines else "no known lines"


def _source_charts(source: CodingModeSource, rows: list[Row], inputs: Inputs) -> list[Chart | None]:
    """Charts of one source: distribution of agent-written lines, and modes over time."""
    started = {row["session_id"]: row["started_at"] for row in inputs.rows["sessions"]}
    timed = [(started.get(row["session_id"]), row["session_id"], row) for row in rows]
    percents = [(at, s, row[f"{source}_percent"]) for at, s, row in timed if row[f"{source}_percent"] is not None]
    unknown = f" ({_unknown([row for row in rows if row['lines']])})" if source == "replayed" else ""
    title, rolling = f"Agent share of committed lines, {_AS[source]}{unknown}", f", rolling {WINDOW_DAYS} days"

    def matches(mode: str, of: list[Row]) -> list[float]:
        return [float(row[source] == mode) for row in of]

    window: dict[str, Any] = {"of": "sessions", "days": WINDOW_DAYS, "fewest": _FEWEST}
    spread = [(session_id, percent) for _, session_id, percent in percents]
    return [
        histogram_chart(spread, _PERCENTS, id="coding_modes.percent", title=title, unit="percent of lines"),
        lines_chart(
            [part for part in timed if part[2][source] is not None],
            shares={NAMES[mode]: partial(matches, mode) for mode in MODES_OF_SOURCE[source]},
            id="coding_modes.over_time",
            title=f"Coding modes, {_AS[source]}{rolling}",
            unit="share of sessions",
            kind="share",
            **window,
        ),
        lines_chart(
            percents,
            measures={"mean": fmean, "median": median},
            id="coding_modes.percent.over_time",
            title=f"{title}{rolling}",
            unit="percent of lines",
            kind="number",
            **window,
        ),
    ]


CODING_MODES_STUDY = Study(**declared("study", "coding_modes", modes=MODES), function=coding_modes)


# -- Survival of code (SWE-chat, Table 3; Equations 2 and 3)

NO_REPLAY = "No repository was attributed yet. Run `agentsignals repo attribute REPOSITORY`."
ENOUGH_LINES = 5
"""Commits with fewer lines are left out of figures over commits (design/attribution.md#survival)."""
FATES = {
    "committed": "in a commit",
    "overwritten_by_self": "overwritten by the same session",
    "overwritten_by_other_session": "overwritten by another session",
    "taken": "removed by others before the commit",
    "standing": "not committed yet",
    "rest": "unknown",
}
_WEEK_S = 7 * 86_400
_AGES = (1, 2, 4, 8, 16, 32)
"""Upper bounds of age classes in weeks; the last class is open."""
_Lines: TypeAlias = Callable[[Row], float]
_BY_SESSION: dict[str, tuple[_Lines, _Lines]] = {
    "efficiency": (lambda row: row["committed"], lambda row: row["produced"]),
    "rate": (lambda row: row["committed"], lambda row: row["produced"] - row["overwritten_by_self"]),
}
"""Definitions of survival (Eq 2 and Eq 3): which lines are divided by which."""
_BY_COMMIT: dict[str, tuple[_Lines, _Lines]] = {
    "strict": (lambda row: row["kept"], lambda row: row["written_in_files"]),
    "strict.rate": (lambda row: row["kept"], lambda row: row["written_in_files"] - row["rewritten_in_files"]),
    "window": (lambda row: row["kept"], lambda row: row["written"]),
    "window.rate": (lambda row: row["kept"], lambda row: row["written"] - row["rewritten"]),
}


def survival(inputs: Inputs) -> Outcome:
    sessions, commits, lines = inputs.rows["fates"], inputs.rows["commits"], inputs.rows["lines"]
    if not (sessions or commits):
        return Outcome(limits=[NO_REPLAY])
    places = inputs.places
    repos = {row["commit_sha"]: row["repo"] for row in [*commits, *lines]}
    findings = []
    for definitions, rows, key, clusters, drawn in (
        (_BY_SESSION, sessions, "session_id", places, "sessions"),
        (_BY_COMMIT, commits, "commit_sha", repos, "commits"),
    ):
        for name, lines_of in definitions.items():
            parts = _survivors(rows, key, *lines_of)
            note = f"{declared('finding', f'survival.{name}')['note']}; over {len(parts):,} {drawn}"
            findings.append(clustered_share(parts, clusters, drawn).finding(f"survival.{name}", note=note))
    for name, is_agents in (("alive", True), ("alive.others", False)):
        parts = surviving_lines(row for row in lines if row["is_agents"] == is_agents)
        note = f"in {len(parts):,} commits, by git blame at the head"
        findings.append(clustered_share(parts, repos, "commits").finding(f"survival.{name}", note=note))
    findings.append(share_of(inputs.rows["met"], places, lambda row: row["n"] > 0).finding("survival.met"))
    tables = [_by_mode(sessions, inputs.rows["modes"], places), by_repo(sessions, commits, lines)]
    by_age, age_chart = _by_age([row for row in lines if row["known"]], repos)
    fates = _fates(sessions)
    made = fates.pop("produced")
    of_sessions = [(row["session_id"], _fates([row])) for row in sessions]
    marks = [
        bar(
            words,
            fates[key] / made,
            f"{words}: {fates[key]:,.0f} of {made:,.0f} lines",
            evidence=[(session_id, of[key], of["produced"]) for session_id, of in of_sessions],
        )
        for key, words in FATES.items()
        if made and fates[key]
    ]
    fates_chart = chart("survival.fates", marks, bars("share of lines", "share"), n=made)
    return Outcome([f for f in findings if f.n], [*tables, by_age], [fates_chart, age_chart])


def _survivors(rows: list[Row], key: str, kept: _Lines, made: _Lines) -> list[Part]:
    """Parts of a share of lines. Lines of a commit that come back from before may make more than were written."""
    return [(row[key], min(kept(row), made(row)), made(row)) for row in rows if made(row) > 0]


def surviving_lines(rows: Iterable[Row]) -> list[Part]:
    """Return surviving and known lines of each commit that could be examined."""
    return [(row["commit_sha"], row["alive"], row["known"]) for row in rows if row["known"]]


def _fates(rows: Iterable[Row]) -> dict[str, float]:
    counted = dict.fromkeys(FATES, 0.0)
    made = 0.0
    for row in rows:
        made += row["produced"]
        for fate in FATES:
            counted[fate] += row.get(fate) or 0
    counted["rest"] = max(made - sum(counted.values()), 0)
    return {"produced": made, **counted}


def _by_mode(sessions: list[Row], modes: list[Row], places: dict[str, str]) -> Table:
    """The paper's Table 3, by mode from both sources."""
    groups = {"all": sessions} if sessions else {}
    for source in CODING_MODE_SOURCES:
        mode_of = mode_by_session(modes, source)
        for mode in MODES_OF_SOURCE[source]:
            if group := [row for row in sessions if mode_of.get(row["session_id"]) == mode]:
                groups[f"{NAMES[mode]}, {source}"] = group
    rows: list[list[Any]] = []
    others = {key: words for key, words in FATES.items() if key != "committed"}
    for name, group in groups.items():
        fates = _fates(group)
        made = fates["produced"]
        efficiency, rate = (
            clustered_share(_survivors(group, "session_id", *lines), places) for lines in _BY_SESSION.values()
        )
        shares = [fates[key] / made if made else None for key in others]
        rows.append([name, len(group), int(made), efficiency.value, *efficiency.ends, rate.value, *shares])
    columns = " | ".join(f"{key} {words}:share" for key, words in others.items())
    header = (
        "mode | n sessions:count | produced lines written:count | efficiency efficiency (Eq 2):share"
        f" | ends:share | rate survival (Eq 3):share | {columns}"
    )
    return table("survival.by_mode", rows, header=header, n=len(sessions), evidence=[*groups.values()])


def _told_apart(repos: list[str]) -> list[str]:
    parts = [repo.rstrip("/").split("/") for repo in repos]
    most = max(map(len, parts), default=0)
    shown = [["/".join(segments[-n:]) for segments in parts] for n in range(1, most + 1)]
    return next((names for names in shown if len({*names}) == len(names)), repos)


def by_repo(sessions: list[Row], commits: list[Row], lines: list[Row]) -> Table:
    """Return written and surviving lines of each repository."""
    shown: list[list[Any]] = []
    behind = []
    repos = sorted({row["repo"] for row in [*commits, *lines]})
    known = {key: words for key, words in FATES.items() if key != "rest"}
    for repo, name in zip(repos, _told_apart(repos), strict=True):
        of_repo = [row for row in commits if row["repo"] == repo]
        linked = {session_id for row in of_repo for session_id in row["session_ids"]}
        behind.append(linked)
        fates = _fates(row for row in sessions if row["session_id"] in linked)
        slices = [row for row in of_repo if row["written_in_files"] >= ENOUGH_LINES]
        made, kept = sum(row["written_in_files"] for row in slices), sum(row["kept"] for row in slices)
        cells = [name, len(linked), int(fates["produced"]), *(int(fates[key]) for key in known)]
        cells += [len(slices), min(kept / made, 1.0) if made else None]
        for is_agents in (True, False):
            rows = surviving_lines(row for row in lines if row["repo"] == repo and row["is_agents"] == is_agents)
            k, n = sum(k for _, k, _ in rows), sum(n for _, _, n in rows)
            cells += [int(n), k / n if n else None]
        shown.append(cells)
    header = (
        "repo repository:code | sessions:count | produced lines written:count"
        f" | {' | '.join(f'{key} {words}:count' for key, words in known.items())} | commits:count"
        " | strict kept per commit, in its files:share | agent agent lines in the head's history:count | alive:share"
        " | other other lines:count | other_alive other lines alive:share"
    )
    return table("survival.by_repository", shown, header=header, n=len(shown), evidence=behind)


def _by_age(lines: list[Row], repos: dict[str, str]) -> tuple[Table, Chart | None]:
    """Agents' and other lines by age of their commit, relative to the newest of its repository."""
    newest: dict[str, float] = defaultdict(float)
    for row in lines:
        newest[row["repo"]] = max(newest[row["repo"]], row["newest"])
    classes: dict[int, list[Row]] = defaultdict(list)
    for row in lines:
        weeks = (newest[row["repo"]] - row["committed"]) / _WEEK_S
        classes[sum(weeks > end for end in _AGES)].append(row)
    rows: list[list[Any]] = []
    marks: list[Row] = []
    for n, of in sorted(classes.items()):
        begin = 0 if n == 0 else _AGES[n - 1]
        name = f"over {begin} weeks" if n == len(_AGES) else f"{begin} to {_AGES[n]} weeks"
        agents, others = (
            clustered_share(surviving_lines(r for r in of if r["is_agents"] == is_agents), repos, "commits")
            for is_agents in (True, False)
        )
        cells = [cell for e in (agents, others) for cell in (int(e.n), e.value, *e.ends)]
        rows.append([name, len({row["commit_sha"] for row in of}), *cells])
        if agents.n:
            tip = f"{name}: {formatted(agents.value, 'share')} of {agents.n:,.0f} lines"
            marks.append(agents.mark(f"{name} ({agents.n:,.0f})", tip))
    sides = " | ".join(
        f"{side}_n {words}:count | {side}_alive alive:share | {side}_low 95% from:share | {side}_high to:share"
        for side, words in (("agent", "agent lines"), ("other", "other lines"))
    )
    header = f"age age of the commit | commits:count | {sides}"
    evidence = NoSessions("Counted by lines of commits. See the Code page.")
    by_age = table("survival.by_age", rows, header=header, n=sum(row["known"] for row in lines), evidence=evidence)
    n_agents = sum(row["known"] for row in lines if row["is_agents"])
    return by_age, chart("survival.age", marks, dots("share of lines"), n=n_agents, fewest=2)


SURVIVAL_STUDY = Study(**declared("study", "survival", modes=MODES), function=survival)


# -- Efficiency (SWE-chat, Figures 7 and 29; Equations 4 to 8)

LINES = 100


class Measure(NamedTuple):
    """Something that a session took. `divisor`: from what the rows hold to the unit."""

    key: str
    title: str
    unit: str
    kind: Kind
    medians: Mapping[str, float] = MappingProxyType({})
    """The paper's, by recorded mode, where it prints them (v1)."""
    means: Mapping[str, float] = MappingProxyType({})
    divisor: float = 1


def _of(human: float, together: float, vibe: float) -> dict[str, float]:
    return {"human_only": human, "collaborative": together, "vibe_coding": vibe}


_MINUTES = "minutes"
MEASURES = (
    Measure("usd", "Cost", "USD", "usd", _of(0.07, 0.05, 0.13), _of(1.1, 0.574, 0.916)),
    Measure("tokens", "Tokens", "tokens", "tokens", {"vibe_coding": 204_000}, _of(1.4e6, 0.74e6, 1.2e6)),
    Measure("characters", "Characters of prompts", "characters", "number", {}, _of(22_364, 9_903, 14_810)),
    Measure("seconds", "Time without idle gaps", _MINUTES, "number", _of(8.6, 4.8, 12.6), _of(82.9, 51.3, 80.5), 60),
    Measure("agent_seconds", "Agent working time", _MINUTES, "number", {}, _of(74.0, 47.7, 71.2), 60),
)
_BOUND = ("usd", "tokens")
"""Lower bounds where output is logged in mid-stream."""
_EFFICIENCY_OF: dict[CodingModeSource, str] = {
    "replayed": "sessions that share no commit",
    "recorded": "sessions that share no recorded commit",
}
_NO_COMMITS = "No session has a known commit. Run `agentsignals repo attribute REPOSITORY` to link commits to sessions."


def efficiency(inputs: Inputs) -> Outcome:
    places = inputs.places
    effort = {row["session_id"]: row for row in inputs.rows["effort"]}
    by_source = {
        source: _effort_per_lines(inputs.rows[source], effort, mode_by_session(inputs.rows["modes"], source))
        for source in CODING_MODE_SOURCES
    }
    with_lines = {
        source: [row for row in inputs.rows[source] if (row["lines"] or 0) > 0] for source in CODING_MODE_SOURCES
    }
    sources = [source for source in CODING_MODE_SOURCES if with_lines[source]]
    if not sources:
        return Outcome(limits=[_NO_COMMITS])
    source = next((name for name in sources if by_source[name]), sources[0])
    findings = [
        share_of(with_lines[name], places, lambda row: row["is_alone"]).finding(
            f"efficiency.{name}.alone",
            f"Sessions that share no commit with another session{', as recorded' if name == 'recorded' else ''}",
            "sessions with committed lines",
            "in the SWE-chat paper 48.6% map cleanly, by an unpublished rule",
            unit="share of sessions",
        )
        for name in sources
    ]
    asked = [(measure, source, "") for measure in MEASURES]
    recorded: CodingModeSource = "recorded"
    asked += [(measure, recorded, mode) for measure in MEASURES for mode in measure.medians]
    for measure, name, mode in asked:
        typical, _, low = _of_mode(measure, by_source[name], mode, places)
        published = measure.medians.get(mode) if name == "recorded" else None
        notes = (
            f"the SWE-chat paper reports {formatted(published, measure.kind)}" if published is not None else "",
            "lower bound: some sessions under-report output tokens" if low else "",
        )
        of_mode = f", {NAMES[mode]} as {name}" if mode else ""
        findings.append(
            typical.finding(
                ".".join(part for part in ("efficiency", name, measure.key, mode) if part),
                f"{measure.title} per {LINES} committed lines, median session{of_mode}",
                _EFFICIENCY_OF[name],
                "; ".join(note for note in notes if note),
                unit=f"{measure.unit} per {LINES} lines",
                priced=measure.key == "usd",
                at_least=low,
            )
        )
    limits = [
        "Medians describe sessions, not lines: a session with two lines has an extreme ratio. Lines are all lines its"
        " commits added, including the person's and generated ones. Effort includes work that was discarded or came"
        " after the last commit.",
        "Idle time is a gap of over two minutes that the agent does not end. Agent working time excludes waits for"
        " approval.",
    ]
    if "replayed" not in sources:
        limits.append("No repository was attributed, so lines and modes are as the collector recorded them.")
    charts: list[Chart | None] = []
    tables = [
        _by_mode_and_measure(name, by_source[name], places, charts if name == source else None) for name in sources
    ]
    return Outcome([f for f in findings if f.n], tables, charts, limits)


def _effort_per_lines(lines: list[Row], effort: dict[str, Row], modes: dict[str, str]) -> list[Row]:
    """Mode and measures for a hundred lines, of the sessions that are alone in their commits."""
    rows: list[Row] = []
    for row in lines:
        took = effort.get(row["session_id"])
        if not row["is_alone"] or not row["lines"] or row["lines"] < 0 or took is None:
            continue
        made = {"session_id": row["session_id"], "low": took["low"], "mode": modes.get(row["session_id"])}
        for measure in MEASURES:
            spent = took[measure.key]
            made[measure.key] = None if spent is None else LINES * spent / measure.divisor / row["lines"]
        rows.append(made)
    return rows


def _of_mode(
    measure: Measure, rows: list[Row], mode: str, places: dict[str, str]
) -> tuple[Estimate, list[float], bool]:
    """The median of the sessions of a mode, their values, and whether they are lower bounds; no interval of so few that
    it would be a guess."""
    values = [
        (row["session_id"], row[measure.key])
        for row in rows
        if row[measure.key] is not None and (not mode or row["mode"] == mode)
    ]
    typical = clustered_median(values, places, measure.kind, FEWEST_CLUSTERS)
    return typical, sorted(v for _, v in values), measure.key in _BOUND and any(row["low"] for row in rows)


def _by_mode_and_measure(
    source: CodingModeSource, rows: list[Row], places: dict[str, str], charts: list[Chart | None] | None
) -> Table:
    """Median with interval, quartiles and mean of each measure in each mode, beside what the paper prints. `charts`
    gets a chart of each measure."""
    shown: list[list[Any]] = []
    behind = []
    of = _EFFICIENCY_OF[source]
    for measure in MEASURES:
        marks: list[Row] = []
        is_named = measure.unit in measure.title.lower()
        title = measure.title if is_named else f"{measure.title}, {measure.unit}"
        for mode in ("", *MODES_OF_SOURCE[source]):
            typical, values, low = _of_mode(measure, rows, mode, places)
            if not values:
                continue
            n, name = len(values), NAMES.get(mode, "all")
            figures = [typical.value, *typical.ends, quantile(values, 0.25), quantile(values, 0.75), fsum(values) / n]
            words = [formatted(figure, measure.kind, low) for figure in figures]
            words += [formatted(of_paper.get(mode), measure.kind) for of_paper in (measure.medians, measure.means)]
            shown.append([title, name, n, *words])
            behind.append(typical.counted)
            figure = f"median {formatted(typical.value, measure.kind, low)} {measure.unit} per {LINES} lines"
            marks.append(typical.mark(f"{name} ({n})", f"{name}: {figure}, n = {n:,} sessions"))
        if charts is not None:
            drawn = chart(
                f"efficiency.{measure.key}",
                marks,
                dots(f"{measure.unit} per {LINES} lines, median", measure.kind),
                title=f"{measure.title} per {LINES} committed lines, by mode, {_AS[source]}",
                n=len(rows),
                of=of,
                note=f"sessions in brackets; {INTERVAL_NOTE}",
                fewest=2,
            )
            charts.append(drawn)
    return table(
        f"efficiency.{source}",
        shown,
        title=f"Effort per {LINES} committed lines, by mode, {_AS[source]}",
        header=f"measure | mode mode as {source} | n sessions:count | median:figure | ends:figure | q25 p25:figure |"
        " q75 p75:figure | mean:figure | published_median paper's median:figure | published_mean paper's mean:figure",
        n=len(rows),
        of=of,
        evidence=behind,
        note="The paper's figures are from version 1, with recorded modes. A few sessions dominate a mean of ratios.",
    )


EFFICIENCY_STUDY = Study(**declared("study", "efficiency", modes=MODES), function=efficiency)


# -- Weaknesses (SWE-chat, Table 4, Figures 26 and 27)

_NO_SCANS = "No repository was scanned yet. Run `agentsignals repo scan REPO`."
_EXACT = "the interval treats scanner findings as independent"
_SHOWN = 15
_OF_COMMITS = NoSessions("Counted by lines of commits. See the Code page.")
_NAMES = {"human_only": "human only", "collaborative": "collaborative", "vibe": "vibe coding", "unknown": "unknown"}
_LIMITS = [
    "Findings of a static scanner are not confirmed weaknesses. Rates of different rule sets are not comparable; the"
    " paper does not name its rule set.",
    "Findings of one commit are not independent, so intervals are too narrow if few commits have most findings.",
    "The order of modes can change with the attribution, which each rate names.",
]


def weaknesses(inputs: Inputs) -> Outcome:
    if not inputs.rows["scans"]:
        return Outcome(limits=[_NO_SCANS])
    commits = Counter(row["scanner"] for row in inputs.rows["scans"])
    scanner = min(commits, key=lambda name: (-commits[name], name))
    found = [row for row in inputs.rows["findings"] if row["scanner"] == scanner]
    of_scanner = rates([row for row in inputs.rows["scans"] if row["scanner"] == scanner], found)
    findings = []
    rows: list[list[Any]] = []
    for rate in of_scanner:
        low, high = rate.introduced_low, rate.introduced_high
        size = [rate.lines, rate.introduced, rate.introduced_rate, low, high, rate.fixed, rate.fixed_rate]
        rows.append([rate.attribution, rate.by, rate.group, rate.files, *size])
        is_said = rate.by == "all" or (rate.attribution == "replayed" and rate.group != "nobody")
        if rate.files != ALL or not rate.lines or not is_said:
            continue
        interval = None if low is None or high is None else (low, high)
        words = "all" if rate.by == "all" else f"{rate.by} {_NAMES.get(rate.group, rate.group)}, {rate.attribution}"
        introduced = Estimate(
            value=rate.introduced_rate, n=rate.lines, kind="number", interval=interval, note=_EXACT, counted=_OF_COMMITS
        )
        findings.append(
            introduced.finding(
                "weaknesses.introduced" if rate.by == "all" else f"weaknesses.{rate.by}.{rate.group}",
                f"Introduced findings per 1,000 added lines ({words})",
                "added lines of scanned files",
                f"scanner {scanner}; {rate.introduced} in {rate.commits_with} commits, {rate.largest_commit} in one",
                unit="findings per 1,000 lines",
            )
        )
    new = [row for row in found if row["change"] == "introduced"]
    charts = []
    for name, words, counted in (
        ("rules", "rule", Counter(row["rule"] for row in new)),
        ("cwes", "weakness", Counter(cwe for row in new for cwe in row["cwe"])),
    ):
        marks = [bar(key, n, f"{key}: {n:,}", evidence=_OF_COMMITS) for key, n in counted.most_common(_SHOWN)]
        title, n, of = f"Introduced findings by {words}", counted.total(), "introduced findings"
        charts.append(chart(f"weaknesses.{name}", marks, bars("findings"), title=title, n=n, of=of))
    note = f"scanner {scanner}"
    by_group = table("weaknesses.rates", rows, n=of_scanner[0].commits, evidence=_OF_COMMITS, note=note)
    return Outcome(findings, [by_group], charts, _LIMITS)


WEAKNESSES_STUDY = Study(**declared("study", "weaknesses"), function=weaknesses)
