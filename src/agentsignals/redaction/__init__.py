"""Masks what must not leave the machine in a text: keys, passwords, logins, mail addresses, user names, numbers.

Patterns know the shapes of secrets and the names they go by, not their meaning: what looks like prose passes. A mask
is one word for all of a kind; of people and machines a pseudonym, the same for the same by the same key.
"""

from __future__ import annotations

import json
import re
import secrets
from typing import Any

from agentsignals.redaction import encoded, keys, logins, named, personal, unseen, values
from agentsignals.redaction.pseudonyms import KEY_BYTES, Pseudonyms, word
from agentsignals.redaction.spans import Span, masked, merged, new

_KEPT_CHARS = 4_000_000
"""Texts of so many characters are remembered with what became of them: a trace says the same again and again."""
_SECRET = "secret"  # noqa: S105  (a kind)
_ESCAPED = re.compile(r"\\u00(2[013-9a-f]|[3467][0-9a-f]|5[0-9abd-f])", re.I)
"""A printable character written as a number; a quote and a backslash are left, since they end texts."""
_EDGES = re.compile(r"\A[^\s\"'`]{8,}|(?:\A|(?<=[\s\"'`]))[^\s\"'`]{8,}\Z")
_DRAWN = re.compile(r"\d|[a-z][A-Z]|[A-Z]{3}")
_HARMLESS = re.compile(
    r"[A-Za-z]{1,15}(?:[ _.-][A-Za-z]{1,15}){0,5}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z?|(?:toolu|msg|req|call)_[0-9A-Za-z]{10,40}"
)
"""Short texts that traces are full of: words, UUIDs, times, ids of calls and messages."""
_WORD_CHARS = 15
"""Letters of a word that is harmless by itself."""
_DIGIT = re.compile("[0-9]")
_AUTH = frozenset(("auth", "_auth"))
"""Names of logins in base64, in what docker and npm keep."""
_AUTH_CHARS = max(map(len, _AUTH))
_LONG_DIGITS = 10**11
"""Numbers from here on may be a card or a telephone."""


def _spans(text: str, depth: int = encoded.DEEPEST) -> list[Span]:
    """The places in a text that must not leave, in order and apart; `depth` writings in it are undone."""
    found: list[Span] = []
    if unseen.is_in(text):
        found += unseen.joined(text, _spans, depth)
        text = unseen.without_colours(text)
    low = text.lower()
    if len(low) != len(text):  # of one letter alone, a capital I with a dot
        low = text.replace("\u0130", "i").lower()
    found += (*keys.spans(text), *logins.spans(text, low), *named.spans(text, low), *personal.spans(text, low))
    for run in keys.RUN.finditer(text):
        said = run[0]
        if _DIGIT.search(said):  # of keys without one those that are most at home here are found by their beginning
            found += keys.in_run(text, *run.span())
            found += encoded.in_hex(text, *run.span(), _spans, depth)
        if said.lower() != said != said.upper():
            found += encoded.in_base64(text, *run.span(), _spans, depth)
    found += encoded.escaped(text, _spans, depth)
    return merged(new(text, found)) if found else found


def _key_spans(text: str, depth: int = encoded.DEEPEST) -> list[Span]:
    """The keys in a text that their shape gives away, in any writing, without what was masked."""
    found: list[Span] = []
    if unseen.is_in(text):
        found += unseen.joined(text, _key_spans, depth)
        text = unseen.without_colours(text)
    found += keys.spans(text)
    for run in keys.RUN.finditer(text):
        found += keys.in_run(text, *run.span())
        found += encoded.in_base64(text, *run.span(), _key_spans, depth)
        found += encoded.in_hex(text, *run.span(), _key_spans, depth)
    found += encoded.escaped(text, _key_spans, depth)
    return new(text, found)


def key_kind(text: str) -> str | None:
    """The kind of a key that a text still holds: `key` or `private key`; None where none is seen."""
    found = _key_spans(text)
    return found[0].kind if found else None


def redacted(text: str) -> str:
    """The text with its secrets masked, with one word for all of a kind: the same whoever masks it, and where."""
    return Redactor(apart=False).plain(text)


def redacted_part(text: str) -> str:
    """A part of a text with its secrets masked: a run at either end that looks drawn may be what is left of one."""
    return _EDGES.sub(_edge, redacted(text))


def _edge(found: re.Match[str]) -> str:
    return "[cut]" if _DRAWN.search(found[0]) and found[0][0] != "[" else found[0]


class Redactor:
    """Masks texts and counts what it masked, by kind: `account`, `address`, `card`, `key`, `login`, `mail`, `phone`,
    `private key`, `secret`, `user`.

    Users, mail addresses, telephones and addresses get pseudonyms by the key, 32 bytes; without one they are the same
    in what this redactor masks, and nowhere else. `apart=False` tells nobody from another. ValueError for a key of
    another length.
    """

    def __init__(self, key: bytes | None = None, *, apart: bool = True) -> None:
        made = secrets.token_bytes(KEY_BYTES) if key is None else key
        self._mask = Pseudonyms(made).mask if apart else word
        self.counts: dict[str, int] = {}
        self.drawn: set[str] = set()
        """What was masked and looks drawn by chance: parts of it may stand nowhere else."""
        self._known: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._known_chars = 0

    def text(self, text: str, times: int = 1) -> str:
        """The text masked, where it is JSON value by value: it stays JSON, and escapes hide nothing.

        `times`: how often it occurs, for the counts. JSON without a secret comes back as it was.
        """
        if text[:1] not in ("{", "[", '"'):
            return self.plain(text, times)
        try:
            found = json.loads(text, object_pairs_hook=_once)
            clean = self._value(found, times)
            return text if clean == found else json.dumps(clean, ensure_ascii=False)
        except (ValueError, RecursionError):
            return self.plain(_ESCAPED.sub(lambda found: chr(int(found[1], 16)), text), times)

    def lines(self, text: str) -> str:
        """JSON Lines masked line by line; any other text as a whole."""
        parts = text.split("\n")  # other separators may stand inside a value
        if len(parts) < 2 or not _is_json(parts[0]):
            return self.text(text)
        return "\n".join(self.text(part) for part in parts)

    def plain(self, text: str, times: int = 1) -> str:
        """The text masked as it stands."""
        if len(text) < values.LEAST_CHARS:
            return text
        return self._told(self._known.get(text) or self._looked_through(text), times)

    def _told(self, known: tuple[str, tuple[str, ...]], times: int) -> str:
        for kind in known[1]:
            self.counts[kind] = self.counts.get(kind, 0) + times
        return known[0]

    def _looked_through(self, text: str) -> tuple[str, tuple[str, ...]]:
        """The text masked, and the kinds of what was masked."""
        found = [] if _HARMLESS.fullmatch(text) else _spans(text)
        self.drawn.update(text[s.start : s.end] for s in found if _is_drawn(s.kind, text[s.start : s.end]))
        told = (masked(text, found, self._mask), tuple(span.kind for span in found)) if found else (text, ())
        if self._known_chars > _KEPT_CHARS:
            self._known.clear()
            self._known_chars = 0
        self._known[text] = told
        self._known_chars += len(text)
        return told

    def _value(self, value: Any, times: int) -> Any:
        if isinstance(value, str):
            known = self._known.get(value)
            return self.text(value, times) if known is None else self._told(known, times)
        if isinstance(value, dict):
            return self._object(value, times)
        if isinstance(value, list):
            return [self._value(v, times) for v in value]
        if isinstance(value, int) and value >= _LONG_DIGITS:
            digits = str(value)
            clean = self.plain(digits, times)
            return value if clean == digits else clean
        return value

    def _object(self, value: dict[str, Any], times: int) -> dict[str, Any]:
        """An object with as many names as before: of names that are masked alike the later ones are numbered."""
        found: dict[str, Any] = {}
        for name, held in value.items():
            clean = name if name.isalpha() and len(name) <= _WORD_CHARS else self.plain(name, times)
            while clean in found or (clean != name and clean in value):
                clean = f"{clean}{len(found)}"
            found[clean] = self._named(name, held, times)
        if "value" in value:  # {"name": "API_KEY", "value": "…"}, as deployments write it
            beside = value.get("name", value.get("key"))
            if isinstance(beside, str) and found["value"] == value["value"]:
                found["value"] = self._named(beside, value["value"], times)
        return found

    def _named(self, name: str, value: Any, times: int) -> Any:
        """A value whose name says that it is a secret is one, where it looks like one."""
        found = self._value(value, times)
        if (
            len(name) <= _AUTH_CHARS
            and name.lower() in _AUTH
            and found == value
            and isinstance(value, str)
            and logins.is_login(value)
        ):
            self.counts["login"] = self.counts.get("login", 0) + times
            return "[login]"
        word = named.names_a_secret(name)
        if word is None or found != value:
            return found
        if isinstance(value, list):
            return [self._named(name, v, times) for v in value]
        said = str(value) if isinstance(value, int) and word in ("password", "secret") else value
        if not isinstance(said, str) or not values.is_secret(word, name, said):
            return found
        if _is_drawn(_SECRET, said):
            self.drawn.add(said)
        self.counts[_SECRET] = self.counts.get(_SECRET, 0) + times
        return f"[{_SECRET}]"


def _is_drawn(kind: str, value: str) -> bool:
    return kind == "key" or (kind == _SECRET and values.is_random(value, 20) and not values.is_known(value))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; ValueError when it says a name twice, of which a parsed object would hide one."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice")
    return found


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
