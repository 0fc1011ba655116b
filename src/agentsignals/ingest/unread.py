"""What the files are that no format reads: a run that reads nothing says what there was instead."""

from __future__ import annotations

import os

from msgspec import Struct

from agentsignals.formats import homes
from agentsignals.store import Store
from agentsignals.store.manifest import FileEntry

MOST = 20
"""So many groups are told apart: a folder of data has as many as it has kinds of files."""


class Unread(Struct, kw_only=True):
    """Files of one kind that were found and not read."""

    reason: str
    what: str
    """What they are, as far as they say; empty where they don't."""
    files: int
    bytes: int
    example: str
    """The path of one of them."""
    agent: str = ""
    """In whose folder they lie, where an agent's was named."""


def unread(store: Store, uris: set[str]) -> list[Unread]:
    """The files of a run that no format reads, by what they are: those that say it before those that don't, of these
    most of them first."""
    left = {uri: e for uri, e in store.manifest.files.items() if e.format is None and e.shard and uri in uris}
    if not left:
        return []
    groups: dict[tuple[str, str, str], list[str]] = {}
    for uri, e in left.items():
        whose = e.spec if os.sep not in e.spec and e.spec in homes() else ""  # which loads what a path needs not
        for reason in e.skipped:
            groups.setdefault((reason, e.note, whose), []).append(uri)
    made = [_of(*named, members, left) for named, members in groups.items()]
    return sorted(
        made, key=lambda u: (u.reason == "unrecognised" and not u.agent, -u.files, u.reason, u.what, u.example)
    )[:MOST]


def _of(reason: str, what: str, agent: str, members: list[str], left: dict[str, FileEntry]) -> Unread:
    size = sum(left[uri].bytes for uri in members)
    return Unread(reason=reason, what=what, files=len(members), bytes=size, example=min(members), agent=agent)
