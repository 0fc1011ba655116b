"""A file of Claude Code: its records, the session it is of, and what a record is known by in another copy of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from operator import attrgetter

from agentsignals.formats import Input
from agentsignals.formats.claude_code import records
from agentsignals.formats.claude_code.records import Line
from agentsignals.model import MAIN, Artifact

Lines = Callable[[bytes, Artifact], tuple[Sequence[int], list[Line]]]
"""Gives all records of a file and their line numbers."""


class File:
    """The decoded records of one file, and where the file stands among its family."""

    def __init__(self, given: Input, read: Lines = records.read_lines) -> None:
        self.given = given
        self.numbers, self.lines = read(given.data, given.artifact)
        self.session_id = self._session_id()
        first = next((line for line in self.lines if line.uuid is not None), None)
        alone = first is not None and all(thread_of(line) != MAIN for line in self.lines if line.uuid is not None)
        self.agent_id = first.agent_id if first is not None and alone else None

    def _session_id(self) -> str:
        ids = Counter(map(attrgetter("session_id"), self.lines))
        del ids[None]
        hint = self.given.session_hint
        if hint is not None and (hint in ids or not ids):  # a resumed session may hold mostly the old one's records
            return hint
        return max(ids, key=lambda i: ids[i]) if ids else self.given.artifact.artifact_id

    @cached_property
    def span(self) -> tuple[str, str]:
        """First and last time, as written."""
        stamps = [line.timestamp for line in self.lines if line.timestamp]
        return min(stamps, default=""), max(stamps, default="")


def thread_of(line: Line) -> str:
    """The main thread, or the subagent's; old versions name no subagent."""
    if not line.is_sidechain or not records.is_true(line.is_sidechain):
        return MAIN
    return line.agent_id or "sidechain"


def key_without_id(line: Line, before: str, nth: Counter[str]) -> str | None:
    """What a record without an id is known by in another copy of its file; None for one that may well be read twice.

    It is what it says and when; without a time, the record it comes after; and the how manieth of its like it is.
    """
    kind = line.type
    if kind in records.QUIET or kind in records.ABOUT_SESSION:
        return None
    key = f"{kind}|{line.session_id}|{line.timestamp or before}|{line.operation}|{line.content}"
    nth[key] += 1
    return f"{key}|{nth[key]}"
