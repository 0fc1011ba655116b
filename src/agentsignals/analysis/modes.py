"""Who wrote a session's committed lines, on two roads: as the collector recorded it, and as the replay found it.

Figures split by mode follow the road (design/attribution.md#figures-by-mode: of the sessions recorded as human-only
half are agents' work), so
each names its own, and the replay comes first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from agentsignals.analysis.rows import NAMED
from agentsignals.analysis.study import Row

Road = Literal["replayed", "recorded"]
ROADS: tuple[Road, ...] = ("replayed", "recorded")
HUMAN, TOGETHER, VIBE, UNKNOWN = "human_only", "collaborative", "vibe_coding", "unknown"
NAMES = {HUMAN: "human only", TOGETHER: "collaborative", VIBE: "vibe coding", UNKNOWN: "unknown"}
"""The paper's three modes (M2), and what is none: the replay's interval reaches over a border of two."""
OF_ROAD: dict[Road, tuple[str, ...]] = {
    "replayed": (HUMAN, TOGETHER, VIBE, UNKNOWN),
    "recorded": (HUMAN, TOGETHER, VIBE),
}
LABEL, LABELLER = "coding_mode", "attribution"
SIGNAL, PERCENT = "chat.coding_mode", "chat.agent_percentage"

OF_SESSIONS = (
    f"SELECT session_id, max(json_extract_string(value, '')) FILTER (signal = '{SIGNAL}') AS recorded,"
    f" max(number) FILTER (signal = '{PERCENT}') AS recorded_percent, NULL AS replayed, NULL AS replayed_percent,"
    " NULL AS replayed_low, NULL AS replayed_high, NULL AS lines"
    f" FROM {NAMED} WHERE signal IN ('{SIGNAL}', '{PERCENT}') AND absent IS NULL GROUP BY session_id"
    " UNION ALL SELECT session_id, NULL, NULL, replace(value, 'vibe', 'vibe_coding'), 100 * number,"
    " 100 * CAST(detail->>'low' AS DOUBLE), 100 * CAST(detail->>'high' AS DOUBLE), CAST(detail->>'n' AS BIGINT)"
    " FROM labels"
    f" WHERE task = '{LABEL}' AND labeller = '{LABELLER}'"
)
MODES = (
    "SELECT session_id, max(recorded) AS recorded, max(recorded_percent) AS recorded_percent, max(replayed) AS"
    f" replayed, max(replayed_percent) AS replayed_percent, max(replayed_low) AS replayed_low, max(replayed_high) AS"
    f" replayed_high, max(lines) AS lines FROM ({OF_SESSIONS}) JOIN sessions USING (session_id)"
    " GROUP BY session_id ORDER BY session_id"
)
"""One row a session with a mode on either road; `…_percent` of its committed lines are an agent's,
of the replay an estimate that lies from `replayed_low` to `replayed_high`."""

NO_REPLAY = "No repository was attributed: agentsignals attribute REPOSITORY replays whose lines its commits have."


def by_session(rows: Iterable[Row], road: Road) -> dict[str, str]:
    """The mode of each session that has one on this road."""
    return {row["session_id"]: row[road] for row in rows if row[road] is not None}


def road_of(rows: Iterable[Row]) -> Road:
    """The road that figures take where they take one: the replay's, unless nothing was replayed."""
    sessions = list(rows)
    return "replayed" if any(row["replayed"] is not None for row in sessions) or not sessions else "recorded"
