"""What a scan says of single sessions, as labels: new findings in the commits of a session, per 1 000 added lines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from agentsignals.analysis.weakness_rates import PER
from agentsignals.model import Label
from agentsignals.stats.proportions import poisson
from agentsignals.store import Store, label_files
from agentsignals.store.label_files import LabelRow
from agentsignals.store.tables import FindingRow, ScanRow

TASK = "vulnerabilities"


class OfSession(Struct, kw_only=True):
    """What a session's rate is made of."""

    introduced: int = 0
    on_own_lines: int = 0
    """Of the introduced ones, those on lines that the session wrote."""
    fixed: int = 0
    lines: int = 0
    """Added lines that are not blank, of files that the scanner takes, whoever wrote them."""
    commits: int = 0
    low: float | None = None
    high: float | None = None
    """Exact Poisson interval of the rate, 95 percent."""
    scanner_version: str = ""
    attribution: str = "commits linked to the session by checkpoints, or by the files it changed"


def of_sessions(
    scanner: str,
    commits: Mapping[str, Mapping[str, Any]],
    findings: Sequence[FindingRow],
    scans: Sequence[ScanRow],
) -> list[LabelRow]:
    """Labels of the sessions that these commits are linked to. A session whose commits added no line that the scanner
    takes has none.
    """
    by_session: dict[str, OfSession] = defaultdict(OfSession)
    seen: set[tuple[str, str]] = set()
    for scan in scans:
        for session_id in commits[scan.commit_sha]["session_ids"]:
            totals = by_session[session_id]
            totals.lines += sum(
                (scan.agent_lines, scan.shell_lines, scan.human_lines, scan.unknown_lines, scan.nobody_lines)
            )
            totals.commits += (session_id, scan.commit_sha) not in seen
            totals.scanner_version = scan.scanner_version
            seen.add((session_id, scan.commit_sha))
    for finding in findings:
        for session_id in commits[finding.commit_sha]["session_ids"]:
            totals = by_session[session_id]
            totals.introduced += finding.change == "introduced"
            totals.on_own_lines += finding.change == "introduced" and finding.session_id == session_id
            totals.fixed += finding.change == "fixed"
    return [_row(scanner, session_id, totals) for session_id, totals in sorted(by_session.items()) if totals.lines]


def write(store: Store, scanner: str, sessions: set[str], rows: list[LabelRow]) -> None:
    """Puts a scanner's labels of these sessions beside those of others, in the place of what these had before."""
    label_files.replace(store.folder, TASK, _labeller(scanner), sessions, rows)


def _labeller(scanner: str) -> str:
    return f"scan:{scanner}"


def _row(scanner: str, session_id: str, totals: OfSession) -> LabelRow:
    rate = totals.introduced / totals.lines * PER
    interval = poisson(totals.introduced, totals.lines / PER)
    if interval is not None:
        totals.low, totals.high = interval
    reason = "findings after but not before the session's commits / 1 000 lines they added to files that are scanned"
    detail = msgspec.json.encode(totals).decode()
    return LabelRow(
        session_id,
        Label(
            task=TASK,
            labeller=_labeller(scanner),
            turn=None,
            value=f"{rate:.4f}",
            reason=reason,
            number=rate,
            detail=detail,
        ),
    )
