"""The end of one transcript, read by itself: what an agent at work has done lately, without a store."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from agentsignals.errors import FormatError
from agentsignals.formats import Input, identify
from agentsignals.formats.head import HEAD_BYTES, Head
from agentsignals.model import Artifact, Session
from agentsignals.sources import RawFile, Unreadable, read
from agentsignals.sources.packed import without_waiting

TAIL_BYTES = 4 * 1024 * 1024
"""The last thousand calls of most agents; reading them takes 0.1 s."""


def session_of(path: Path | str, most_bytes: int = TAIL_BYTES) -> Session:
    """The session that a transcript tells of, as far as its last `most_bytes` go. A line that is half written, and the
    one that the cut goes through, are left out. FormatError where no format claims it or it holds none; OSError.
    """
    with open(path, "rb", buffering=0, opener=without_waiting) as file:
        seen = os.fstat(file.fileno())
        if not stat.S_ISREG(seen.st_mode):
            raise FormatError(f"{path} is no file.", "Name a transcript.")
        head = file.read(HEAD_BYTES)
        skipped = max(0, seen.st_size - most_bytes)
        file.seek(skipped)
        data = file.read(most_bytes)
    if skipped:
        data = data.partition(b"\n")[2]
    return _session(str(path), Head(head, str(path), len(head) == seen.st_size), data)


def session_held(file: RawFile) -> Session:
    """The session that a database holds, whole; FormatError where it can't be read."""
    data = next(read([file]))
    if isinstance(data, Unreadable):
        raise FormatError(f"{file.uri} can't be read: {data.reason}.", "Ask again when its agent has begun.")
    return _session(file.uri, Head(data[:HEAD_BYTES], file.uri, len(data) <= HEAD_BYTES), data)


def _session(path: str, head: Head, data: bytes) -> Session:
    identified = identify(head)
    if identified is None:
        raise FormatError(f"{path} is of no format that is known.", "`agentsignals doctor` names those there are.")
    trace_format = identified[0]
    artifact = Artifact(
        artifact_id="tail", source="local", path=path, format=trace_format.name, sha256="", bytes=len(data)
    )
    sessions = trace_format.read([Input(data, artifact)]).sessions
    if not sessions:
        raise FormatError(f"{path} tells of no session yet.", "Ask again when its agent has begun.")
    return max(sessions, key=lambda session: len(session.events))
