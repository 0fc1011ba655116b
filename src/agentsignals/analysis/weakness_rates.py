"""Findings per 1 000 added lines: whose lines, and in which mode, always with the attribution that says so."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct

from agentsignals.stats.proportions import poisson

Row = dict[str, Any]
PER = 1000
REPLAYED, SURE, RECORDED = "replayed", "replayed_sure", "recorded"
"""The attributions: by replay; by replay, lines that a command left taken for unknown; as the collector recorded."""
_LINES = ("agent_lines", "shell_lines", "human_lines", "unknown_lines", "nobody_lines")
OWNERS = ("agent", "human", "unknown", "nobody", "context")
MODES = ("human_only", "collaborative", "vibe", "unknown")
ALL, CODE = "all", "code"
"""Which files: all that are scanned, or those that are no tests, samples or examples."""


class Rate(Struct, kw_only=True):
    """Findings of a group of lines or commits per 1 000 of their added lines, with exact Poisson intervals (95 %)."""

    attribution: str
    """`replayed`, `replayed_sure`, `recorded`; `any` for what no attribution changes."""
    by: str
    """`owner` of the lines, `mode` of the commit, or `all`."""
    group: str
    files: str
    commits: int
    lines: int
    introduced: int
    fixed: int | None
    """None by owner: who removed a line is not known."""
    introduced_rate: float | None = None
    introduced_low: float | None = None
    introduced_high: float | None = None
    fixed_rate: float | None = None
    fixed_low: float | None = None
    fixed_high: float | None = None
    commits_with: int = 0
    """Commits that introduced any. The interval takes findings for independent, and those of one commit are not."""
    largest_commit: int = 0
    """Findings introduced by the commit with most."""


def rates(scans: Iterable[Row], findings: Iterable[Row]) -> list[Rate]:
    """Every rate of one scanner. `scans` have that table's columns and `mode` and `recorded_mode` of their commit;
    `findings` are those of the same scanner.
    """
    scanned = list(scans)
    modes = {(s["repo"], s["commit_sha"]): {"mode": s["mode"], "recorded_mode": s["recorded_mode"]} for s in scanned}
    of_modes = [f | modes[key] for f in findings if (key := (f["repo"], f["commit_sha"])) in modes]
    counted: list[Rate] = []
    for files in (ALL, CODE):
        of = [s for s in scanned if files == ALL or s["place"] == CODE]
        those = [f for f in of_modes if files == ALL or f["place"] == CODE]
        counted.append(_counted(_empty("any", "all", "all", files), of, those, _all_lines))
        for attribution in (REPLAYED, SURE):
            counted += _by_owner(attribution, files, of, those)
        for attribution, column in ((REPLAYED, "mode"), (RECORDED, "recorded_mode")):
            counted += _by_mode(attribution, column, files, of, those)
    return counted


def _empty(attribution: str, by: str, group: str, files: str) -> Rate:
    return Rate(attribution=attribution, by=by, group=group, files=files, commits=0, lines=0, introduced=0, fixed=0)


def _by_owner(attribution: str, files: str, scans: list[Row], findings: list[Row]) -> Iterator[Rate]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for finding in findings:
        if finding["change"] == "introduced":
            groups[_owner(finding, attribution)].append(finding)
    for owner in OWNERS:
        rate = _empty(attribution, "owner", owner, files)
        _counted(rate, scans, groups[owner], _lines_of(owner, attribution))
        if rate.lines or rate.introduced:
            rate.fixed = rate.fixed_rate = rate.fixed_low = rate.fixed_high = None
            yield rate


def _owner(finding: Row, attribution: str) -> str:
    inferred = attribution == SURE and finding["tag"] == "agent_shell"
    return "unknown" if inferred else str(finding["owner"])


def _lines_of(owner: str, attribution: str) -> Callable[[Row], int]:
    columns = {
        "agent": ("agent_lines",) if attribution == SURE else ("agent_lines", "shell_lines"),
        "human": ("human_lines",),
        "unknown": ("unknown_lines", "shell_lines") if attribution == SURE else ("unknown_lines",),
        "nobody": ("nobody_lines",),
    }.get(owner, ())
    return lambda scan: sum(int(scan[c]) for c in columns)


def _by_mode(attribution: str, column: str, files: str, scans: list[Row], findings: list[Row]) -> Iterator[Rate]:
    for mode in MODES:
        of = [s for s in scans if s[column] == mode]
        those = [f for f in findings if f[column] == mode]
        if of:
            yield _counted(_empty(attribution, "mode", mode, files), of, those, _all_lines)


def _all_lines(scan: Row) -> int:
    return sum(int(scan[c]) for c in _LINES)


def _counted(rate: Rate, scans: list[Row], findings: list[Row], lines: Callable[[Row], int]) -> Rate:
    """Fills in a rate from its commits and findings."""
    counted: Counter[tuple[str, str]] = Counter()
    for scan in scans:
        counted[scan["repo"], scan["commit_sha"]] += lines(scan)
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
