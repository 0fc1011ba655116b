"""The pages' SQL by name: each section of `queries.sql` is one query, or a fragment that others include as `{name}`."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from agentsignals.questions.sql import sections

_PART = re.compile(r"\{([a-z_]+)\}")


@cache
def queries() -> dict[str, str]:
    """Every section of the file by its name."""
    return sections(Path(__file__).with_suffix(".sql"))


def sql(name: str, **parts: object) -> str:
    """Return a query with `parts`, or else fragments of the file, in its braces. What people typed is never a part."""
    return _PART.sub(lambda part: str(parts[part[1]]) if part[1] in parts else sql(part[1], **parts), queries()[name])
