"""The demo's sessions: made-up ones in the formats of four agents. `tests/demo_stories.py` makes the archive."""

from __future__ import annotations

import tarfile
from importlib.resources import files
from io import BytesIO
from pathlib import Path

from agentsignals import private_files

SESSIONS = 36


def make_corpus(folder: Path) -> Path:
    """Write the sample sessions under the folder, a folder a format; the same files every time."""
    packed = (files("agentsignals.cli") / "demo_sessions.tar.gz").read_bytes()
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        for member in archive:
            path, content = folder / member.name, archive.extractfile(member)
            assert content is not None, "the archive holds files only"  # noqa: S101
            private_files.make_folder(path.parent)
            private_files.write(path, content.read())
    return folder
