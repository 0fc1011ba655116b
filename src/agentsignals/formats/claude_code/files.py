"""A file of Claude Code: its records, the session it is of, and what a record is known by in another copy of it."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from operator import attrgetter

import msgspec
from msgspec import Struct

from agentsignals.formats import Input
from agentsignals.formats.claude_code import records
from agentsignals.formats.claude_code.records import Line
from agentsignals.formats.records import lines as records_of
from agentsignals.model import MAIN, Artifact

Lines = Callable[[bytes, Artifact], tuple[Sequence[int], list[Line]]]
"""Gives all records of a file and their line numbers."""


class _Link(Struct, gc=False, rename="camel"):
    """What a record follows on."""

    session_id: str = ""
    uuid: str | None = None
    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None


_LINKS = msgspec.json.Decoder(_Link)


class File:
    """The decoded records of one file, and where the file stands among its family."""

    def __init__(self, source: Input, read: Lines = records.read_lines) -> None:
        self.source = source
        self.numbers, self.lines = read(source.data, source.artifact)
        self.ids = self._named()
        self.session_id = self._session_id()
        first = next((line for line in self.lines if line.uuid is not None), None)
        alone = first is not None and all(thread_of(line) != MAIN for line in self.lines if line.uuid is not None)
        self.agent_id = first.agent_id if first is not None and alone else None

    def _session_id(self) -> str:
        hint, ids = self.source.session_hint, self.ids
        if hint is not None and (hint in ids or not ids):  # a resumed session may hold mostly the old one's records
            return hint
        if len(ids) > 1:
            times: Counter[str] = Counter(map(attrgetter("session_id"), self.lines))
            del times[None]
            return max(times, key=lambda i: times[i])
        return next(iter(ids), self.source.artifact.artifact_id)

    def _named(self) -> set[str]:
        return {session_id for session_id in map(attrgetter("session_id"), self.lines) if session_id is not None}

    def parts(self) -> list[File]:
        """Itself; or, of a file that several sessions were written into one behind the other, a file for each.

        A session that was resumed begins with the records of the one before it, under the id they had: what follows on
        a record of another session is of one session with it.
        """
        ids = self.ids - {""}
        if len(ids) < 2 or self.source.session_hint in ids:
            return [self]
        group_of = self._groups(ids)
        if len(set(group_of.values())) < 2:
            return [self]
        held: dict[str, list[int]] = {}
        group = group_of[next(line.session_id for line in self.lines if line.session_id)]
        for n, line in enumerate(self.lines):
            group = group_of.get(line.session_id or "", group)
            held.setdefault(group, []).append(n)
        return [self._part(places) for places in held.values()]

    def _groups(self, ids: set[str]) -> dict[str, str]:
        """Each session id, with one id for all that follow on each other's records."""
        follows: dict[str, str] = {}
        owner: dict[str | None, str] = {}
        ours: set[tuple[str, str | None]] = set()

        def first(session_id: str) -> str:
            while (before := follows.get(session_id)) is not None:
                follows[session_id] = follows.get(before, before)  # so that long chains are walked once
                session_id = before
            return session_id

        aside = Artifact(artifact_id="", source="", path="", format=None, sha256="", bytes=0)
        for _, link in records_of(self.source.data, aside, _LINKS.decode):
            if link.session_id not in ids:
                continue
            owner.setdefault(link.uuid, link.session_id)
            ours.add((link.session_id, link.uuid))
            for before in (link.parent_uuid, link.logical_parent_uuid):
                if before is None or (link.session_id, before) in ours:  # also where others have that id
                    continue
                other, this = first(owner.get(before, link.session_id)), first(link.session_id)
                if other != this:
                    follows[this] = other
        return {session_id: first(session_id) for session_id in ids}

    def _part(self, places: list[int]) -> File:
        part = copy.copy(self)
        part.numbers = [self.numbers[n] for n in places]
        part.lines = [self.lines[n] for n in places]
        part.ids = part._named()
        part.session_id = part._session_id()
        return part

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
