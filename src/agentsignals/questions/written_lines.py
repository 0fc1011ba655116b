"""Lines that sessions wrote: who wrote them, and how many weaknesses they contain.

Authorship comes from two sources: recorded by the collector, or found by the replay. Figures by mode depend on the
source (half of the sessions recorded as human-only are agents' work), so each names its own, and the replay comes first
(design/attribution.md#figures-by-mode).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from agentsignals.questions.question import Row
from agentsignals.questions.sql import NAMED, read_queries
from agentsignals.stats.intervals import poisson

CodingModeSource = Literal["replayed", "recorded"]
CODING_MODE_SOURCES: tuple[CodingModeSource, ...] = ("replayed", "recorded")
HUMAN, TOGETHER, VIBE, UNKNOWN = "human_only", "collaborative", "vibe_coding", "unknown"
NAMES = {HUMAN: "human only", TOGETHER: "collaborative", VIBE: "vibe coding", UNKNOWN: "unknown"}
"""The paper's three modes (M2), and `unknown`, where the replay's interval covers two."""
MODES_OF_SOURCE: dict[CodingModeSource, tuple[str, ...]] = {
    "replayed": (HUMAN, TOGETHER, VIBE, UNKNOWN),
    "recorded": (HUMAN, TOGETHER, VIBE),
}
LABEL, LABELLER = "coding_mode", "attribution"
SIGNAL, PERCENT = "chat.coding_mode", "chat.agent_percentage"

MODES = read_queries(__file__, signal=SIGNAL, percent=PERCENT, named=NAMED, label=LABEL, labeller=LABELLER)["modes"][
    "modes"
]


def mode_by_session(rows: Iterable[Row], source: CodingModeSource) -> dict[str, str]:
    """Return the mode of each session that has one from this source."""
    return {row["session_id"]: row[source] for row in rows if row[source] is not None}


def mode_source(rows: Iterable[Row]) -> CodingModeSource:
    """Return the source that figures use: the replay, unless nothing was replayed."""
    sessions = list(rows)
    return "replayed" if any(row["replayed"] is not None for row in sessions) or not sessions else "recorded"


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
