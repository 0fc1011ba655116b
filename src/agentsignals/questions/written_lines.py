"""Lines that sessions wrote: who wrote them, how many survive, and how many weaknesses they contain.

Authorship comes from two sources: recorded by the collector, or found by the replay. Figures by mode depend on the
source (half of the sessions recorded as human-only are agents' work), so each names its own, and the replay comes first
(design/attribution.md#figures-by-mode).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from msgspec import Struct

from agentsignals.questions.charts import bars, dots
from agentsignals.questions.estimates import Part, bar, chart, clustered_share, table
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Chart, NoSessions, Row, Table
from agentsignals.questions.sql import NAMED, read_queries
from agentsignals.stats.intervals import poisson

ModeSource = Literal["replayed", "recorded"]
MODE_SOURCES: tuple[ModeSource, ...] = ("replayed", "recorded")
HUMAN, TOGETHER, VIBE, UNKNOWN = "human_only", "collaborative", "vibe_coding", "unknown"
NAMES = {HUMAN: "human only", TOGETHER: "collaborative", VIBE: "vibe coding", UNKNOWN: "unknown"}
"""The paper's three modes (M2), and `unknown`, where the replay's interval covers two."""
MODES_OF_SOURCE: dict[ModeSource, tuple[str, ...]] = {
    "replayed": (HUMAN, TOGETHER, VIBE, UNKNOWN),
    "recorded": (HUMAN, TOGETHER, VIBE),
}
LABEL, LABELLER = "coding_mode", "attribution"
SIGNAL, PERCENT = "chat.coding_mode", "chat.agent_percentage"

MODES = read_queries(__file__, signal=SIGNAL, percent=PERCENT, named=NAMED, label=LABEL, labeller=LABELLER)["modes"][
    "modes"
]

NO_REPLAY = "No repository was attributed: agentsignals attribute REPOSITORY replays whose lines its commits have."


def mode_by_session(rows: Iterable[Row], source: ModeSource) -> dict[str, str]:
    """Return the mode of each session that has one from this source."""
    return {row["session_id"]: row[source] for row in rows if row[source] is not None}


def mode_source(rows: Iterable[Row]) -> ModeSource:
    """Return the source that figures use: the replay, unless nothing was replayed."""
    sessions = list(rows)
    return "replayed" if any(row["replayed"] is not None for row in sessions) or not sessions else "recorded"


# -- survival ----------------------------------------------------------------------------------------------------------


ENOUGH_LINES = 5
"""Commits with fewer lines are left out of figures over commits (design/attribution.md#survival)."""
FATES = {
    "committed": "in a commit",
    "overwritten_by_self": "overwritten by the same session",
    "overwritten_by_other_session": "overwritten by another session",
    "taken": "taken away by others before the commit",
    "standing": "in no commit yet",
    "rest": "not known",
}
_WEEK_S = 7 * 86_400
_AGES = (1, 2, 4, 8, 16, 32)
"""Upper bounds of age classes in weeks; the last class is open."""


def surviving_lines(rows: Iterable[Row]) -> list[Part]:
    """Return surviving and known lines of each commit that could be examined."""
    return [(row["commit_sha"], row["alive"], row["known"]) for row in rows if row["known"]]


def written(row: Row) -> float:
    """Lines written by a session's calls (Eq 2)."""
    made: float = row["produced"]
    return made


def kept_by_session(row: Row) -> float:
    """Lines written and not overwritten by the same session (Eq 3)."""
    return written(row) - float(row["overwritten_by_self"])


def _fates(rows: Iterable[Row]) -> dict[str, float]:
    """Lines by fate."""
    counted = dict.fromkeys(FATES, 0.0)
    made = 0.0
    for row in rows:
        made += row["produced"]
        for fate in FATES:
            counted[fate] += row.get(fate) or 0
    counted["rest"] = max(made - sum(counted.values()), 0)
    return {"produced": made, **counted}


def by_mode(sessions: list[Row], modes: list[Row], places: dict[str, str]) -> Table:
    """Return the paper's Table 3, by mode from both sources."""
    shown: list[list[Any]] = []
    behind = []
    for source in MODE_SOURCES:
        mode_of = mode_by_session(modes, source)
        for mode in MODES_OF_SOURCE[source]:
            group = [row for row in sessions if mode_of.get(row["session_id"]) == mode]
            if group:
                shown.append([f"{NAMES[mode]}, {source}", *_figures(group, places)])
                behind.append(group)
    if sessions:
        shown.insert(0, ["all", *_figures(sessions, places)])
        behind.insert(0, sessions)
    fates = " | ".join(f"{key} {words}:share" for key, words in FATES.items() if key != "committed")
    return table(
        "survival.by_mode",
        shown,
        header="mode | n sessions:count | produced lines written:count | efficiency efficiency (Eq 2):share"
        f" | ends:share | rate survival (Eq 3):share | {fates}",
        n=len(sessions),
        evidence=behind,
    )


def _figures(rows: list[Row], places: dict[str, str]) -> list[Any]:
    fates = _fates(rows)
    made = fates["produced"]
    efficiency, rate = (
        clustered_share([(r["session_id"], min(r["committed"], n), n) for r in rows if (n := whole(r)) > 0], places)
        for whole in (written, kept_by_session)
    )
    shares = [fates[key] / made if made else None for key in FATES if key != "committed"]
    return [len(rows), int(made), efficiency.value, *efficiency.ends, rate.value, *shares]


def _told_apart(repos: list[str]) -> list[str]:
    """Shortest unique suffixes of repository addresses."""
    parts = [repo.rstrip("/").split("/") for repo in repos]
    most = max(map(len, parts), default=0)
    shown = [["/".join(segments[-n:]) for segments in parts] for n in range(1, most + 1)]
    return next((names for names in shown if len({*names}) == len(names)), repos)


def by_repo(sessions: list[Row], commits: list[Row], lines: list[Row]) -> Table:
    """Return written and surviving lines of each repository."""
    shown: list[list[Any]] = []
    behind = []
    repos = sorted({row["repo"] for row in [*commits, *lines]})
    for repo, name in zip(repos, _told_apart(repos), strict=True):
        linked = {session_id for row in commits if row["repo"] == repo for session_id in row["session_ids"]}
        behind.append(linked)
        fates = _fates(row for row in sessions if row["session_id"] in linked)
        repo_lines = [row for row in lines if row["repo"] == repo]
        by_author = {
            who: surviving_lines(row for row in repo_lines if row["is_agents"] == who) for who in (True, False)
        }
        alive = [(sum(k for _, k, _ in rows), sum(n for _, _, n in rows)) for rows in by_author.values()]
        slices = [row for row in commits if row["repo"] == repo and row["written_in_files"] >= ENOUGH_LINES]
        made = sum(row["written_in_files"] for row in slices)
        kept = sum(row["kept"] for row in slices)
        shown.append(
            [
                *(name, len(linked), int(fates["produced"])),
                *(int(fates[key]) for key in FATES if key != "rest"),
                *(len(slices), min(kept / made, 1.0) if made else None),
                *(figure for k, n in alive for figure in (int(n), k / n if n else None)),
            ]
        )
    header = " | ".join(f"{key} {words}:count" for key, words in FATES.items() if key != "rest")
    return table(
        "survival.by_repository",
        shown,
        header=f"repo repository:code | sessions:count | produced lines written:count | {header} | commits:count"
        " | strict kept by commit, in its files:share | agent agents' lines in the head's history:count | alive:share"
        " | other other lines:count | other_alive alive of them:share",
        n=len(shown),
        evidence=behind,
    )


def _aged(lines: list[Row]) -> list[tuple[str, list[Row], list[Row]]]:
    """Agents' and other lines by age of their commit, relative to the newest of its repository."""
    newest: dict[str, float] = defaultdict(float)
    for row in lines:
        newest[row["repo"]] = max(newest[row["repo"]], row["newest"])
    classes: dict[int, list[Row]] = defaultdict(list)
    for row in lines:
        weeks = (newest[row["repo"]] - row["committed"]) / _WEEK_S
        classes[sum(weeks > end for end in _AGES)].append(row)
    aged = []
    for n, rows in sorted(classes.items()):
        begin = 0 if n == 0 else _AGES[n - 1]
        name = f"over {begin} weeks" if n == len(_AGES) else f"{begin} to {_AGES[n]} weeks"
        aged.append((name, [r for r in rows if r["is_agents"]], [r for r in rows if not r["is_agents"]]))
    return aged


def by_age(lines: list[Row], repos: dict[str, str]) -> Table:
    shown: list[list[Any]] = []
    for name, agents, others in _aged([row for row in lines if row["known"]]):
        row: list[Any] = [name, len({r["commit_sha"] for r in [*agents, *others]})]
        for rows in (agents, others):
            estimate = clustered_share(surviving_lines(rows), repos, "commits")
            row += [int(estimate.n), estimate.value, *estimate.ends]
        shown.append(row)
    sides = " | ".join(
        f"{side}_n {words}:count | {side}_alive alive:share | {side}_low 95% from:share | {side}_high to:share"
        for side, words in (("agent", "agents' lines"), ("other", "other lines"))
    )
    return table(
        "survival.by_age",
        shown,
        header=f"age age of the commit | commits:count | {sides}",
        n=sum(row["known"] for row in lines),
        evidence=NoSessions("It counts lines of commits: the page Code has them."),
    )


def fates_chart(sessions: list[Row]) -> Chart | None:
    fates, of_sessions = _fates(sessions), [(row["session_id"], _fates([row])) for row in sessions]
    made = fates.pop("produced")
    rows = [
        bar(
            words,
            fates[key] / made,
            f"{words}: {fates[key]:,.0f} of {made:,.0f} lines",
            evidence=[(session_id, of[key], of["produced"]) for session_id, of in of_sessions],
        )
        for key, words in FATES.items()
        if fates[key]
    ]
    _title, spec = "What became of the lines that agents wrote", bars(rows, "share of lines", "share")
    return chart("survival.fates", rows if made else [], spec, n=made)


def age_chart(lines: list[Row], repos: dict[str, str]) -> Chart | None:
    rows: list[Row] = []
    for name, agents, _ in _aged([row for row in lines if row["known"]]):
        estimate = clustered_share(surviving_lines(agents), repos, "commits")
        if estimate.n:
            tip = f"{name}: {formatted(estimate.value, 'share')} of {estimate.n:,.0f} lines"
            rows.append(estimate.mark(f"{name} ({estimate.n:,.0f})", tip))
    return chart(
        "survival.age",
        rows,
        dots(rows, "share of lines"),
        n=sum(row["known"] for row in lines if row["is_agents"]),
        fewest=2,
    )


# -- weaknesses --------------------------------------------------------------------------------------------------------


PER = 1000
REPLAYED, SURE, RECORDED = "replayed", "replayed_sure", "recorded"
"""Attributions: by replay; by replay with shell-written lines as unknown; as recorded by the collector."""
_LINES = ("agent_lines", "shell_lines", "human_lines", "unknown_lines", "nobody_lines")
OWNERS = ("agent", "human", "unknown", "nobody", "context")
SCANNED_MODES = ("human_only", "collaborative", "vibe", "unknown")
ALL, CODE = "all", "code"
"""All files scanned, or only those that are no tests, samples or examples."""


class Rate(Struct, kw_only=True):
    """Findings per 1,000 added lines of a group, with exact Poisson intervals (95 %)."""

    attribution: str
    """`replayed`, `replayed_sure`, `recorded`; `any` if it makes no difference."""
    by: str
    """`owner` of the lines, `mode` of the commit, or `all`."""
    group: str
    files: str
    commits: int
    lines: int
    introduced: int
    fixed: int | None
    """None by owner: who removed a line is unknown."""
    introduced_rate: float | None = None
    introduced_low: float | None = None
    introduced_high: float | None = None
    fixed_rate: float | None = None
    fixed_low: float | None = None
    fixed_high: float | None = None
    commits_with: int = 0
    """Commits that introduced any. The interval treats findings as independent, which those of one commit are not."""
    largest_commit: int = 0
    """Findings introduced by the commit with most."""


def rates(scans: Iterable[Row], findings: Iterable[Row]) -> list[Rate]:
    """Return every rate of one scanner.

    `scans`: rows of that table with `mode` and `recorded_mode` of their commit. `findings`: of the same scanner.
    """
    scanned = list(scans)
    modes = {(s["repo"], s["commit_sha"]): {"mode": s["mode"], "recorded_mode": s["recorded_mode"]} for s in scanned}
    of_modes = [f | modes[key] for f in findings if (key := (f["repo"], f["commit_sha"])) in modes]
    counted: list[Rate] = []
    for files in (ALL, CODE):
        of = [s for s in scanned if files == ALL or s["place"] == CODE]
        those = [f for f in of_modes if files == ALL or f["place"] == CODE]
        counted.append(_counted(_empty("any", "all", "all", files), of, those, _LINES))
        for attribution in (REPLAYED, SURE):
            groups: dict[str, list[Row]] = defaultdict(list)
            for finding in those:
                if finding["change"] == "introduced":
                    inferred = attribution == SURE and finding["tag"] == "agent_shell"
                    groups["unknown" if inferred else str(finding["owner"])].append(finding)
            for owner in OWNERS:
                columns = {
                    "agent": ("agent_lines",) if attribution == SURE else ("agent_lines", "shell_lines"),
                    "human": ("human_lines",),
                    "unknown": ("unknown_lines", "shell_lines") if attribution == SURE else ("unknown_lines",),
                    "nobody": ("nobody_lines",),
                }.get(owner, ())
                rate = _counted(_empty(attribution, "owner", owner, files), of, groups[owner], columns)
                if rate.lines or rate.introduced:
                    rate.fixed = rate.fixed_rate = rate.fixed_low = rate.fixed_high = None
                    counted.append(rate)
        for attribution, column in ((REPLAYED, "mode"), (RECORDED, "recorded_mode")):
            for mode in SCANNED_MODES:
                scans_of_mode = [s for s in of if s[column] == mode]
                if scans_of_mode:
                    rate = _empty(attribution, "mode", mode, files)
                    counted.append(_counted(rate, scans_of_mode, [f for f in those if f[column] == mode], _LINES))
    return counted


def _empty(attribution: str, by: str, group: str, files: str) -> Rate:
    return Rate(attribution=attribution, by=by, group=group, files=files, commits=0, lines=0, introduced=0, fixed=0)


def _counted(rate: Rate, scans: list[Row], findings: list[Row], columns: Sequence[str]) -> Rate:
    counted: Counter[tuple[str, str]] = Counter()
    for scan in scans:
        counted[scan["repo"], scan["commit_sha"]] += sum(int(scan[column]) for column in columns)
    by_commit = Counter((f["repo"], f["commit_sha"]) for f in findings if f["change"] == "introduced")
    fixed = sum(f["change"] == "fixed" for f in findings)
    total, n = counted.total(), by_commit.total()
    rate.commits, rate.lines, rate.introduced, rate.fixed = sum(v > 0 for v in counted.values()), total, n, fixed
    rate.commits_with, rate.largest_commit = len(by_commit), max(by_commit.values(), default=0)
    exposure = total / PER
    if (interval := poisson(n, exposure)) is not None:
        rate.introduced_rate, (rate.introduced_low, rate.introduced_high) = n / exposure, interval
    if (interval := poisson(fixed, exposure)) is not None:
        rate.fixed_rate, (rate.fixed_low, rate.fixed_high) = fixed / exposure, interval
    return rate
