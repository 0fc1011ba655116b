"""Pages and their addresses: templates with their values, routes, queries, filters in SQL, values in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

import msgspec
from markupsafe import Markup

from agentsignals.questions.question import AT_LEAST, MISSING, Kind, formatted
from agentsignals.questions.question import cut as cut_off
from agentsignals.questions.question import times as times  # noqa: PLC0414  (templates take it from here)
from agentsignals.questions.sql import sections
from agentsignals.words.text import visible

MOST_FIELDS = 40
"""More fields than any form here has."""


class Page(NamedTuple):
    template: str
    title: str
    filled: dict[str, Any]


class Reply(NamedTuple):
    """An answer that is no page: a file to keep, or data that a script of ours asks for."""

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
    """Its position in the navigation."""
    below: str = ""
    """The address in the navigation that it belongs to, where that is not its own."""
    is_ranged: bool = False
    """It shows the sessions of a store; with `days` in the address those of the last days alone."""
    holds: Callable[..., bool] = lambda _: True
    """Whether it has anything to show of a snapshot; else it is left out of the navigation."""


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

    def choose(self, condition: str, **values: str) -> None:
        """Rows of which this is true; all rows where its value is empty, as nothing was chosen."""
        if all(values.values()):
            self.add(condition, **values)

    def text(self) -> str:
        return f"WHERE {' AND '.join(self._conditions)}" if self._conditions else ""


class Part(NamedTuple):
    """The part of a list that is shown."""

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


# Values as a reader of the page sees them.

_SHORTEST_ID = 8
CUT_CHARS = 90
"""A value longer than this is cut in a table; the page that explains it shows it whole."""
REASONS = {
    "not_applicable": "does not apply here",
    "missing_artifact": "the file was not collected",
    "missing_field": "the trace does not record it",
    "not_computable": "can’t be computed",
    "none_found": "none found",
    "dependency_null": "a required input is absent",
    "backend_disabled": "needs a judge or model that is not enabled",
    "censored": "the session ended too early",
    "parse_error": "parse error",
}
"""The contract's reasons of absence, in words."""
_KINDS: dict[str, Kind] = {"USD": "usd", "seconds": "seconds", "tokens": "tokens"}


def reason(name: str) -> str:
    """Why a value is absent, in words."""
    return REASONS.get(name, name.replace("_", " "))


def figure(number: float | None, unit: str, at_least: bool = False) -> str:
    """A number in the words of its unit, which it carries only where it would not be understood without."""
    return formatted(number, _KINDS.get(unit, "number"), at_least)


def worth(value: str | None, number: float | None, type_: str, unit: str, at_least: bool = False) -> str:
    """A stored value (JSON text) in a few words; `at_least`: it is a lower bound."""
    if at_least and value is not None:
        return AT_LEAST + worth(value, number, type_, unit)
    if value is None:
        return MISSING
    if type_ == "bool":
        return "yes" if number else "no"
    if number is not None and type_ in ("int", "float"):
        return figure(number, unit)
    plain = msgspec.json.decode(value)
    if isinstance(plain, list) and not all(isinstance(item, str) for item in plain):
        return f"{len(plain):,} {'entry' if len(plain) == 1 else 'entries'}"
    if isinstance(plain, dict):
        for name, held in plain.items():
            if isinstance(held, float):
                plain[name] = formatted(held, "number")
            elif isinstance(held, list | dict):
                plain[name] = msgspec.json.encode(held).decode()
        plain = [f"{name} {held}" for name, held in plain.items()]
    return cut(", ".join(plain) or "none" if isinstance(plain, list) else str(plain))


def pretty(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode()


def cut(text: str, chars: int = CUT_CHARS) -> str:
    """A text in one line, its end cut off."""
    return cut_off(" ".join(text.split()), chars)


def ending(text: str, chars: int) -> str:
    """A path in one line, its beginning cut off."""
    return text if len(text) <= chars else f"…{text[1 - chars :]}"


def with_code(text: str) -> Markup:
    """Return a text as HTML, with what stands between backticks as code."""
    forms = Markup("{}"), Markup("<code>{}</code>")
    return Markup("").join(forms[n % 2].format(part) for n, part in enumerate(visible(text).split("`")))


_LONG = 6
"""Words from which a part of a note is written once."""
_NUMBERS = re.compile(r"\d[\d.,]*")
_ON_ITS_OWN = re.compile(r"\b(agreement|kappa|recall|precision|interval clustered)\b")
"""A part of a note that says how sure a figure is."""


class Notes:
    """The notes of one page: each part is written out once, and is a mark with its words in the tooltip after that.
    Parts that differ in their numbers alone are the same. A part that others of its note follow upon stays."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def __call__(self, *notes: str) -> Markup:
        """Return notes as HTML. Each is understood without the others."""
        made: list[Markup] = []
        marks: list[Markup] = []
        for note in map(visible, filter(None, notes)):
            parts = note.split("; ")
            keys = [_NUMBERS.sub("#", part) for part in parts]
            tail = len(parts)  # from here on all parts were written before
            while tail and keys[tail - 1] in self._seen:
                tail -= 1
            for at, (part, key) in enumerate(zip(parts, keys, strict=True)):
                if key in self._seen and (at >= tail or _ON_ITS_OWN.search(part)):
                    again = Markup('<a class="note-again" href="#note-{}" title="{}">[{}]</a>')
                    marks.append(again.format(self._seen[key], part, self._seen[key]))
                elif key in self._seen or len(key.split()) < _LONG:
                    made.append(with_code(part))
                else:
                    n = self._seen[key] = len(self._seen) + 1
                    made.append(Markup('<span id="note-{}">{}</span><sup>[{}]</sup>').format(n, with_code(part), n))
        return Markup(" ").join([Markup("; ").join(made), *marks])


_GOOD = frozenset(("solved", "accepted"))
_BAD = frozenset(("failed", "explicitly_rejected"))
_UNFINISHED = frozenset(("abandoned_mid_session", "restarted_same_task"))
COLOURS = {"good": 3, "bad": 2, "unfinished": 5, "absent": 6, "other": 4}
"""The colour of each meaning, the same on every page: green is good, orange is bad, yellow was left unfinished, grey is
not there. Blue is any amount."""


def colour_of(outcome: str | None) -> str:
    """Return the meaning of an outcome, which names its colour."""
    if outcome in _GOOD:
        return "good"
    if outcome in _BAD:
        return "bad"
    if outcome in _UNFINISHED:
        return "unfinished"
    return "absent" if not outcome or outcome.startswith(("no", "not_")) else "other"


def candidate(name: str) -> str:
    """A candidate's name without the folders of its model: `openai/gpt-4o · agent` is `gpt-4o · agent`."""
    model, separator, rest = name.partition(" · ")
    return f"{model.rpartition('/')[2] or model}{separator}{rest}"


def unit(name: str) -> str:
    return name.replace("_", " ")


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Return for each id the shortest beginning, of at least eight characters, that no other id has."""
    short = {name: name[:_SHORTEST_ID] for name in ids}
    counted = Counter(short.values())
    alike = sorted(name for name, beginning in short.items() if counted[beginning] > 1)
    shared = [
        next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
        for a, b in pairwise(alike)
    ]
    longest = zip(alike, [0, *shared], [*shared, 0], strict=False)
    return short | {name: name[: max(_SHORTEST_ID, before + 1, after + 1)] for name, before, after in longest}


# The pages' SQL by name: each section of `queries.sql` is one query, or a fragment that others include as `{name}`.

_PART = re.compile(r"\{([a-z_]+)\}")


@cache
def queries() -> dict[str, str]:
    """Every section of the file by its name."""
    return sections(Path(__file__).with_name("queries.sql"))


def sql(name: str, **parts: object) -> str:
    """Return a query with `parts`, or else fragments of the file, in its braces. What people typed is never a part."""
    return _PART.sub(lambda part: str(parts[part[1]]) if part[1] in parts else sql(part[1], **parts), queries()[name])
