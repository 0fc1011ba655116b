"""Whose lines a finding stands on, and how many lines of each there are to divide by."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from agentsignals.attribution.commit_figures import AGENT, NOBODY, SURE

Owner = Literal["agent", "human", "unknown", "nobody", "context"]
"""`nobody`: moved, generated or older lines; `context`: no line of the finding was added, a change beside it made it;
`unknown`: nothing tells who wrote it, which never means a person (design/attribution.md#replay)."""


class Line(Struct, gc=False):
    """An added line of a commit."""

    tag: str
    session_id: str | None


class Lines:
    """The added lines of a repository's commits, by (commit, path, line)."""

    def __init__(self, rows: Iterable[Mapping[str, Any]], takes: Callable[[str], bool]) -> None:
        self._lines: dict[tuple[str, str], dict[int, Line]] = defaultdict(dict)
        self.counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        """By (commit, path): lines that are not blank, in files that a scanner takes, by tag."""
        taken: dict[str, bool] = {}
        for row in rows:
            sha, path = row["commit_sha"], row["path"]
            self._lines[sha, path][row["line"]] = Line(row["tag"], row["session_id"])
            if path not in taken:
                taken[path] = takes(path)
            if taken[path] and not row["is_blank"]:
                self.counts[sha, path][row["tag"]] += 1

    def of(self, sha: str, path: str, first: int, last: int) -> list[Line]:
        """The added ones of these lines."""
        by_number = self._lines.get((sha, path), {})
        return [by_number[n] for n in range(first, last + 1) if n in by_number]


def owner_of(lines: list[Line]) -> tuple[Owner, str | None, str | None]:
    """Whose a finding on these added lines is; the tag that says so, and the session that wrote the line.

    An agent's when any of its added lines is; a person's when all are (design/attribution.md#weaknesses).
    """
    if not lines:
        return "context", None, None
    agents = sorted((line for line in lines if line.tag in AGENT), key=lambda line: line.tag not in SURE)
    if agents:
        return "agent", agents[0].tag, agents[0].session_id
    if all(line.tag == "human_observed" for line in lines):
        return "human", "human_observed", None
    if all(line.tag in NOBODY for line in lines):
        return "nobody", lines[0].tag, None
    return "unknown", next(line.tag for line in lines if line.tag not in NOBODY), None
