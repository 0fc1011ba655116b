"""An answer as tables and sentences: aligned text for a terminal, or Markdown for a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agentsignals.cli.output import MAX_CELL, printable, table
from agentsignals.ui.markdown import plain_lines, plain_table


class Printed:
    """Collects the parts of an answer; `str` puts them together, with a blank line between two.

    `widest`: the most characters of a cell; `cut`: also in Markdown, which else shows cells whole.
    """

    def __init__(self, *, markdown: bool, widest: int = MAX_CELL, cut: bool = False) -> None:
        self.parts: list[str] = []
        self._markdown = markdown
        self._widest = widest
        self._most_chars = widest if cut else None

    def lines(self, sentences: Iterable[str], mark: str = "- ") -> None:
        """Add sentences, one a line; in Markdown behind a mark. None of no sentence."""
        listed = list(sentences)
        if listed:
            self.parts.append(plain_lines(listed, mark) if self._markdown else "\n".join(map(printable, listed)))

    def table(
        self,
        names: Sequence[str],
        rows: Sequence[Sequence[Any]],
        title: str = "",
        mark: str = "### ",
        widest: int | None = None,
    ) -> None:
        """Add a table below its title. None of no row."""
        if not rows:
            return
        if self._markdown:
            heading = f"{mark}{title}\n\n" if title else ""
            self.parts.append(heading + plain_table(names, rows, self._most_chars))
        else:
            self.parts.append((f"{title}\n" if title else "") + table(names, rows, widest or self._widest))

    def __str__(self) -> str:
        return "\n\n".join(self.parts)
