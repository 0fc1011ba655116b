"""What a page is made of, and what an address asks of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

MOST_FIELDS = 40
"""More fields than any form here has."""


class Page(NamedTuple):
    """A template and what it is filled with."""

    template: str
    title: str
    filled: dict[str, Any]


class Reply(NamedTuple):
    """What is no page: a file to keep, or data that a script of ours asks for."""

    content: bytes
    type: str
    """Without its charset, which is UTF-8."""
    headers: Mapping[str, str] = {}


class Route(NamedTuple):
    """One address and what answers it. A module of `pages` declares its own in `PAGES`."""

    path: tuple[str, ...]
    """`*` stands for any one part, which is handed to `answer` after the reading and the query."""
    answer: Callable[..., Page | Reply]
    title: str = ""
    """Its name in the navigation; empty for what is reached from another page."""
    place: int = 0
    """Where it stands in the navigation."""
    below: str = ""
    """The address in the navigation that it belongs to, where that is not its own."""


class NotFound(Exception):
    """There is no such page, session or signal; the words say which."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Query:
    """The part of an address after the question mark. Values nobody offered are taken for none. ValueError when there
    are more fields than any form has."""

    def __init__(self, text: str = "") -> None:
        fields = parse_qsl(text, max_num_fields=MOST_FIELDS, errors="replace")
        self._fields = {name: value.strip() for name, value in fields if value.strip()}

    def text(self, name: str) -> str:
        return self._fields.get(name, "")

    def choice(self, name: str, offered: Collection[str], default: str = "") -> str:
        return self._fields[name] if self._fields.get(name) in offered else default

    def number(self, name: str, default: int = 0) -> int:
        """A whole number from 0 on; the default for anything else."""
        text = self._fields.get(name, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) <= 12 else default

    def with_(self, **changed: object) -> str:
        """This query with other values, as it stands in an address; an empty value leaves a field out."""
        fields = {**self._fields, **{name: str(value) for name, value in changed.items()}}
        query = urlencode([(name, value) for name, value in fields.items() if value], errors="replace")
        return f"?{query}" if query else "?"


class Where:
    """The conditions of a filter: their text is ours, their values are bound."""

    def __init__(self) -> None:
        self._conditions: list[str] = []
        self.values: dict[str, Any] = {}

    def add(self, condition: str, **values: Any) -> None:
        """Rows of which this is true; `values` are those it names by `$`."""
        self._conditions.append(condition)
        self.values |= values

    def copy(self) -> Where:
        other = Where()
        other._conditions, other.values = [*self._conditions], {**self.values}
        return other

    def equals(self, column: str, name: str, value: str) -> None:
        """Rows whose column is this; all rows when nothing was chosen."""
        if value:
            self._conditions.append(f"{column} = ${name}")
            self.values[name] = value

    def contains(self, column: str, name: str, value: str) -> None:
        """Rows whose column holds these words, in whatever case."""
        if value:
            self._conditions.append(f"contains(lower({column}), lower(${name}))")
            self.values[name] = value

    def holds(self, column: str, name: str, value: str) -> None:
        """Rows whose list holds this; all rows when nothing was chosen."""
        if value:
            self._conditions.append(f"list_contains({column}, ${name})")
            self.values[name] = value

    def text(self) -> str:
        return f"WHERE {' AND '.join(self._conditions)}" if self._conditions else ""


class Part(NamedTuple):
    """Which part of a list is shown."""

    number: int
    size: int
    total: int

    @property
    def start(self) -> int:
        return self.number * self.size

    @property
    def end(self) -> int:
        return min(self.start + self.size, self.total)

    @property
    def last(self) -> int:
        return max((self.total - 1) // self.size, 0)


def part_of(query: Query, size: int, total: int) -> Part:
    """The part that an address names (`page`, from 1), or the last there is."""
    return Part(min(max(query.number("page", 1) - 1, 0), max((total - 1) // size, 0)), size, total)


def address(*parts: str) -> str:
    """The path of a page; whatever an id holds stays one part of it."""
    return "/" + "/".join(quote(part, safe="", errors="surrogateescape") for part in parts)
