"""The pages' SQL by name: each section of `queries.sql` is one query, or a fragment that others include as `{name}`."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_NAME = re.compile(r"^-- name: ([\w.]+)\n", re.MULTILINE)
_PART = re.compile(r"\{([a-z_]+)\}")


@cache
def queries() -> dict[str, str]:
    """Every section of the file by its name."""
    _, *pieces = _NAME.split(Path(__file__).with_suffix(".sql").read_text("utf-8"))
    return {name: text.strip() for name, text in zip(pieces[::2], pieces[1::2], strict=True)}


def sql(name: str, **parts: object) -> str:
    """Return a query with `parts`, or else fragments of the file, in its braces. What people typed is never a part."""
    return _PART.sub(lambda part: str(parts[part[1]]) if part[1] in parts else sql(part[1], **parts), queries()[name])
