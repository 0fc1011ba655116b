"""Lists of what to leave out: data sets, repositories and sessions, one a line."""

from __future__ import annotations

from pathlib import Path

from agentsignals.errors import SourceError


def read(path: str) -> frozenset[str]:
    """The names in a list; what follows a `#` at the start of a line or after a space is a remark. SourceError when
    the file can't be read.
    """
    try:
        lines = Path(path).expanduser().read_text("utf-8", "replace").splitlines()
    except OSError as problem:
        raise SourceError(
            f"{path!r} can't be read: {problem.strerror}.", "Name a text file, one name a line."
        ) from None
    entries = (f" {line}".split(" #", 1)[0].strip() for line in lines)
    return frozenset(name for line in entries if line for name in (line, place(line)))


def place(spec: str) -> str:
    """The data set that `hub:OWNER/NAME@REVISION#PATTERN` names, as OWNER/NAME; anything else as it is."""
    if not spec.startswith("hub:"):
        return spec
    return spec.removeprefix("hub:").partition("#")[0].partition("@")[0]
