"""Which entries of a Pi file are the conversation: a session is a tree, and a fork begins with a copy of another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentsignals.formats.pi.records import Entry, at_of
from agentsignals.model import ABANDONED, MAIN

_CONVERSATION = frozenset(("message", "custom_message", "compaction", "branch_summary"))


def threads(entries: Sequence[Entry]) -> list[str]:
    """`main` for the conversation, `abandoned` for other branches. Entries without ids (v1) are one conversation."""
    live = _live(entries)
    return [MAIN if entry.id is None or n in live else ABANDONED for n, entry in enumerate(entries)]


def copied(header: Entry | None, born: int | None, stamps: Sequence[int | None]) -> list[bool]:
    """Whether each entry is a copy that a fork took over from its parent: written before the fork's own header.

    Only a fork's: v1 writes the header of a new session after its first prompt.
    """
    if born is None or header is None or not (header.parentSession or header.branchedFrom):
        return [False] * len(stamps)
    return [at is not None and at < born for at in stamps]


def copy_key(entry: Entry) -> tuple[object, ...]:
    """The same for an entry and its copy in a fork; ids won't do, a v1 file has none until Pi rewrites it."""
    message = entry.message
    return (
        at_of(entry),
        entry.type,
        entry.customType,
        message.role if message is not None else None,
        message.toolCallId if message is not None else None,
    )


def _live(entries: Sequence[Entry]) -> set[int]:
    """Positions on the path from the last entry to the root, and from the last entry in which something was said.

    The two differ when an extension has noted its state on an older branch after the conversation's last word.
    """
    position = {entry.id: n for n, entry in enumerate(entries) if entry.id is not None}
    live: set[int] = set()
    spoken_leaf = next((n for n in range(len(entries) - 1, -1, -1) if entries[n].type in _CONVERSATION), None)
    for leaf in (spoken_leaf, len(entries) - 1):
        if leaf is not None and leaf >= 0:
            for n in _path(entries, position, leaf):
                if n in live:
                    break
                live.add(n)
    return live


def _path(entries: Sequence[Entry], position: dict[str, int], leaf: int) -> Iterator[int]:
    """From an entry to its root. A parent that is lost (a skipped line, a slice) is taken to follow the entry before:
    one bad line must not abandon everything said earlier."""
    n = leaf
    for _ in range(len(entries)):
        yield n
        entry = entries[n]
        if entry.parentId is None and entry.id is not None:
            return
        n = position.get(entry.parentId or "", n - 1)
        if n < 0:
            return
