"""Markdown out of texts and figures that are no Markdown: whatever a trace holds is shown and does nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from agentsignals.questions.formatting import MISSING
from agentsignals.words.text import visible

_SPECIAL = re.compile(r"([\\`*_\[\]<>&|~$!]|:(?=//))")
_BREAKS = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]+")


def table_of(head: Sequence[str], align: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are Markdown already."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, align, *rows))


def plain_table(head: Sequence[str], rows: Sequence[Sequence[Any]], most_chars: int | None = None) -> str:
    """A table of figures and of texts that are no Markdown; numbers stand to the right, and texts are cut where
    `most_chars` says so."""

    def told(value: Any) -> str:
        if value is None:
            return ""
        return f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if isinstance(value, float) else str(value)

    numeric = [all(isinstance(row[n], int | float | None) for row in rows) for n in range(len(head))]
    cells = [[escaped(told(value)[:most_chars]) for value in row] for row in rows]
    return visible(table_of([escaped(name) for name in head], ["---:" if right else "---" for right in numeric], cells))


def plain_lines(lines: Iterable[str], mark: str = "- ") -> str:
    """Sentences that are no Markdown, one a line."""
    return visible("\n".join(f"{mark}{escaped(line)}" for line in lines))


def escaped(text: str) -> str:
    """Text of a trace as Markdown that shows it and does nothing else."""
    return _SPECIAL.sub(r"\\\1", _BREAKS.sub(" ", text))


def code(text: str) -> str:
    """Text as a code span inside a table, whatever is in it."""
    clean = _BREAKS.sub(" ", text).replace("|", "\\|").strip()
    if not clean:
        return MISSING
    fence = "`" * (max((len(run) for run in re.findall(r"`+", clean)), default=0) + 1)
    pad = " " if len(fence) > 1 else ""
    return f"{fence}{pad}{clean}{pad}{fence}"
