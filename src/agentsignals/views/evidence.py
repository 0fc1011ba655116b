"""What a value rests on. A signal says it through `why`; unless someone asks, nothing is collected or costs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from agentsignals.model import Absent, Step
from agentsignals.prices import written_out
from agentsignals.prices.bill import Kind
from agentsignals.views.session import SessionView

EXCERPT_CHARS = 200
MOST_ROWS = 50
"""At most so many rows of evidence of one role are shown; the total is told (design/signals.md#evidence)."""


class Row(Protocol):
    """Anything of a session that has an event: a turn, step, event, tool call or edit."""

    seq: int


class Item(Struct):
    """One piece of evidence: an event, the line of the artifact it stands on, and its part in the value."""

    seq: int | None
    artifact: str | None
    line: int | None
    excerpt: str
    role: str


class Evidence:
    """Takes notes for nobody. Signals call it freely; only `Collected` keeps anything."""

    is_kept = False
    """Whether notes are kept: what must be worked out for them alone is left undone where they are not."""

    def support(self, rows: Iterable[Row], note: str = "") -> None:
        """These make the value what it is: the numerator, the counted."""

    def denominator(self, rows: Iterable[Row], note: str = "") -> None:
        """Out of these."""

    def counter(self, rows: Iterable[Row], note: str = "") -> None:
        """These speak against it, or were left out."""

    def match(self, row: Row, pattern: str, words: str) -> None:
        """A pattern of that name matched these words in the row's text."""

    def matches(self, matched: Iterable[tuple[Row, str, str]]) -> None:
        """Many matches (row, pattern, words), which nobody makes unless someone asks."""

    def bill(self, steps: Iterable[Step], kinds: Collection[Kind]) -> None:
        """The value is what these model calls used, or paid for, of these kinds of tokens."""

    def rule(self, text: str) -> None:
        """The rule that decided."""


SILENT = Evidence()


class Collected(Evidence):
    """The evidence of one value."""

    is_kept = True

    def __init__(self, view: SessionView) -> None:
        self.items: list[Item] = []
        self.totals: dict[str, int] = {}
        self.rules: list[str] = []
        self.billed: dict[int, Collection[Kind]] = {}
        """Of model calls, by their `id`: the kinds of tokens that the value is made of."""
        self._is_bound = view.undercounted
        self._events = view.session.events
        self._calls = {c.seq: c for c in view.session.tool_calls}

    def support(self, rows: Iterable[Row], note: str = "") -> None:
        self._add("support", rows, note)

    def denominator(self, rows: Iterable[Row], note: str = "") -> None:
        self._add("denominator", rows, note)

    def counter(self, rows: Iterable[Row], note: str = "") -> None:
        self._add("counter", rows, note)

    def match(self, row: Row, pattern: str, words: str) -> None:
        self._add("support", [row], f"{pattern}: “{words}”")

    def matches(self, matched: Iterable[tuple[Row, str, str]]) -> None:
        for row, pattern, words in matched:
            self.match(row, pattern, words)

    def bill(self, steps: Iterable[Step], kinds: Collection[Kind]) -> None:
        self.billed |= {id(step): kinds for step in steps}

    def rule(self, text: str) -> None:
        self.rules.append(text)

    def input(self, path: str, value: Any, is_bound: bool = False) -> None:
        """Another signal's value that went in; a lower bound where that is one."""
        text = f"absent ({value.reason})" if isinstance(value, Absent) else _short(msgspec.json.encode(value).decode())
        self.items.append(Item(None, None, None, f"{path} {'>=' if is_bound else '='} {text}", "input"))

    def _add(self, role: str, rows: Iterable[Row], note: str) -> None:
        for row in rows:
            n = self.totals[role] = self.totals.get(role, 0) + 1
            if n > MOST_ROWS:
                continue
            event = self._events[row.seq] if 0 <= row.seq < len(self._events) else None
            excerpt = written_out(row, self._is_bound) if isinstance(row, Step) else self._excerpt(row.seq)
            self.items.append(
                Item(
                    row.seq,
                    event.artifact_id if event else None,
                    event.line if event else None,
                    _short(f"{note} {excerpt}".strip()),
                    role,
                )
            )

    def _excerpt(self, seq: int) -> str:
        call = self._calls.get(seq)
        if call is not None:
            return f"{call.name} {call.command or call.path or call.arguments}"
        return self._events[seq].text or self._events[seq].kind if 0 <= seq < len(self._events) else ""


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= EXCERPT_CHARS else flat[: EXCERPT_CHARS - 1] + "…"
