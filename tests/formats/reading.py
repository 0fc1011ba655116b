"""Files that a test makes up, and what a format makes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentsignals.formats import Format, Input, identify
from agentsignals.formats.records import HEAD_BYTES, Head
from agentsignals.model import Artifact, Session


def lines(*rows: Any) -> bytes:
    """JSON Lines. A row that is text stays as it is."""
    return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows).encode()


def as_bytes(content: Any) -> bytes:
    """Bytes and texts as they are, any other value as JSON."""
    return (
        content
        if isinstance(content, bytes)
        else (content if isinstance(content, str) else json.dumps(content)).encode()
    )


def placed(folder: Path, files: Mapping[str, Any]) -> Path:
    """Write files by their path below a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(as_bytes(content))
    return folder


def given(content: Any, format_name: str, path: str = "a", hint: str | None = None) -> Input:
    """A file; `content` is its bytes, or a value that is written as JSON."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    artifact = Artifact(
        artifact_id=path, source="t", path=path, format=format_name, sha256=path, bytes=len(data)
    )  # fmt: skip
    return Input(data, artifact, hint)


def read_one(format_: Format, *files: Input | Any) -> Session:
    """The one session of these files, or of their contents."""
    inputs = [file if isinstance(file, Input) else given(file, format_.name) for file in files]
    (session,) = format_.read(inputs).sessions
    return session


def claimed(content: Any, path: str = "x") -> tuple[str, list[str]] | None:
    """Name of the format that claims a file, and its keys."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    found = identify(Head(data[:HEAD_BYTES], path, len(data) <= HEAD_BYTES))
    return (found[0].name, found[1].keys) if found else None


def format_of(content: Any, path: str = "x") -> str | None:
    found = claimed(content, path)
    return found and found[0]
