"""Where sessions lie: the repository, else the folder (`rows.PLACE`)."""

from __future__ import annotations

from collections.abc import Iterable

from agentsignals.analysis.study import Row


def by_session(rows: Iterable[Row]) -> dict[str, str]:
    """The place of each session whose place is known. Rows: session_id, place."""
    return {row["session_id"]: row["place"] for row in rows if row["place"] is not None}
