"""Where sessions lie: the repository, else the folder. Some agents log only the folder of a repository others name."""

from __future__ import annotations

from collections.abc import Iterable

from agentsignals.analysis.study import Row
from agentsignals.views.history import place_of


class Places:
    """Learns from rows with `repo` and `cwd` which folder is which repository."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._repos = {row["cwd"]: row["repo"] for row in rows if row["repo"] and row["cwd"]}

    def of(self, row: Row) -> str | None:
        """The place of a row; None when it names neither."""
        return place_of(row["repo"] or self._repos.get(row["cwd"]), row["cwd"])


def by_session(rows: Iterable[Row]) -> dict[str, str]:
    """The place of each session whose place is known. Rows: session_id, repo, cwd."""
    sessions = list(rows)
    where = Places(sessions)
    return {row["session_id"]: place for row in sessions if (place := where.of(row)) is not None}
