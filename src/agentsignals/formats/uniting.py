"""Several files of one session, each a snapshot of it at another time: every record counts once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

from agentsignals.formats import Input
from agentsignals.formats.records import saw


class File(Protocol):
    """The records of one file."""

    source: Input
    session_id: str
    order: tuple[Any, ...]
    """Which of two files of a session is read first: its records are the ones that are pointed at."""


F = TypeVar("F", bound=File)
R = TypeVar("R")


def by_session(inputs: Iterable[Input], read: Callable[[Input], F]) -> dict[str, list[F]]:
    """The files of each session in order, the sessions in order of their first file."""
    sessions: dict[str, list[F]] = {}
    for file in sorted(map(read, inputs), key=lambda file: file.order):
        sessions.setdefault(file.session_id, []).append(file)
    return sessions


def once(
    files: Iterable[F], records: Callable[[F], Iterable[tuple[int, R]]], key: Callable[[R], str | None]
) -> Iterator[tuple[F, int, R]]:
    """The records of a session's files with their lines. One whose key an earlier one had is counted as repeated; one
    without a key can't be told from others."""
    seen: set[str] = set()
    for file in files:
        for number, record in records(file):
            name = key(record)
            if name is not None and name in seen:
                saw(file.source.artifact, "repeated")
                continue
            if name is not None:
                seen.add(name)
            yield file, number, record
