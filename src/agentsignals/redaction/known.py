"""Secrets that were found once, masked wherever they stand bare.

A password is recognised by the name before it. In an error text, a path or a branch the same password has no name, so
it is found by exact match. The search costs one pass over a text, however many secrets are known.
"""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple
from urllib.parse import quote

from agentsignals.model.lazy import deferred_pattern
from agentsignals.redaction import values
from agentsignals.redaction.spans import Span, has_mask

LEAST_CHARS = 8
"""Shorter secrets are not searched bare: they occur by chance."""
KNOWN = "secret"
"""Kind of a mask of a known secret."""

_MOST_CHARS = 4096
_ANCHORS = "0-9!@#$%^&*~?+"
"""Each searched form holds such a character, which prose has rarely; its four neighbours are looked up."""
_ANCHOR = re.compile(f"[{_ANCHORS}]")
_AFTER = re.compile(rf"[{_ANCHORS}](?=(.{{4}}))", re.S)
_NEIGHBOURS = 4
_LETTERS, _HEAD = re.compile(r"[A-Za-z/_+-]{10,}"), 6
_LETTER, _DIGIT = re.compile(r"[^\W\d_]"), re.compile(r"\d")
_PLAIN_WORD = re.compile(r"[a-z]+\d+|[a-z\d]+(?:[-_.:/ ][a-z\d]*)+")
"""A word with a number, or words and numbers joined by signs: identifiers look so, too."""
_EVERYDAY = deferred_pattern(
    r"(?i)(?:postgres\w{0,3}|mysql|mongo\w{0,2}|redis|rabbit\w{0,2}|minio\w{0,5}|root|admin\w{0,8}|test\w{0,4}|demo|guest"
    r"|default|example|local(?:host)?|user(?:name)?|dev\w{0,6}|pass(?:word|wd)?|secret|change_?me|qwerty|letmein|welcome"
    r"|abc|docker|vagrant|ubuntu|my_?(?:password|secret|token))[-_@!.]?\d{0,6}!?"
)
"""Passwords that everybody knows. They are ordinary words elsewhere."""
_DATED = deferred_pattern(r"\d{4}-\d\d-\d\d(?:[T ]\d.*)?")
_JOINED = re.compile(r"[A-Za-z0-9+=_-]*")
"""The rest of a base64 or hex run, masked with the part that encodes a secret."""
_BOUNDED_HEX = 16
"""Shorter values of hexadecimal digits occur within longer ones by chance."""


class _Form(NamedTuple):
    text: str
    """A spelling of a secret, in lower case."""
    before: int | None
    """Characters before its anchor. None for a form of letters alone, which few encoded secrets have."""
    is_encoded: bool
    is_bounded: bool
    """No letter or digit may adjoin it."""


def is_searched(value: str) -> bool:
    """Return whether a secret is masked where it stands bare: eight characters or more, mixed, not an everyday word and
    not a public identifier."""
    if not LEAST_CHARS <= len(value) <= _MOST_CHARS or not _LETTER.search(value):
        return False
    if values.is_variable(value) or has_mask(value) or _EVERYDAY.fullmatch(value) or _DATED.fullmatch(value):
        return False
    if values.is_public(value):
        return False
    cases = (value.upper() != value) + (value.lower() != value)
    if not _DIGIT.search(value):
        return cases == 2 and _ANCHOR.search(value) is not None
    # Lower-case letters and digits that are joined name things: `app-db-v12`, `lease-0001`.
    is_identifier = any(sign in value for sign in "-_.:/ ") and not values.is_random(value, LEAST_CHARS)
    return cases == 2 or _ANCHOR.search(_DIGIT.sub("", value)) is not None or not is_identifier


class KnownSecrets:
    """Finds known secrets in texts, in letters of any case: as they are, escaped for JSON, HTML and URLs, in hex and in
    base64. Values that `is_searched` refuses are left out."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.values = frozenset(part for secret in secrets for part in _parts(secret) if is_searched(part))
        self._after: dict[str, list[_Form]] = {}
        self._before: dict[str, list[_Form]] = {}
        self._letters: dict[str, list[_Form]] = {}
        for form in {form for value in self.values for form in _forms(value)}:
            text, at = form.text, form.before
            if at is None:
                self._letters.setdefault(text[:_HEAD], []).append(form)
            elif at + 1 + _NEIGHBOURS <= len(text):
                self._after.setdefault(text[at + 1 : at + 1 + _NEIGHBOURS], []).append(form)
            else:
                self._before.setdefault(text[at - _NEIGHBOURS : at][::-1], []).append(form)

    def __bool__(self) -> bool:
        return bool(self.values)

    def spans(self, text: str) -> list[Span]:
        """Return the places of known secrets."""
        if not self.values or len(text) < LEAST_CHARS:
            return []
        low = text.lower()
        if len(low) != len(text):  # a capital I with a dot alone becomes two
            low = text.replace("\u0130", "i").lower()
        may_be = not self._after.keys().isdisjoint(_AFTER.findall(low)) or (
            bool(self._before) and not self._before.keys().isdisjoint(_AFTER.findall(low[::-1]))
        )
        in_letters = self._placed_in_letters(text, low) if self._letters else ()
        found = []
        for at, form in chain(self._placed(low) if may_be else (), in_letters):
            if at < 0 or not low.startswith(form.text, at):
                continue
            start, end = at, at + len(form.text)
            if form.is_encoded:
                run = _JOINED.match(text, end)
                end = run.end() if run else end
                while start and _JOINED.fullmatch(text[start - 1]):
                    start -= 1
            elif form.is_bounded and (text[max(0, start - 1) : start].isalnum() or text[end : end + 1].isalnum()):
                continue
            found.append(Span(start, end, KNOWN))
        return found

    def _placed(self, low: str) -> Iterator[tuple[int, _Form]]:
        for anchor in _ANCHOR.finditer(low):
            at = anchor.start()
            for form in self._after.get(low[at + 1 : at + 1 + _NEIGHBOURS], ()):
                yield at - (form.before or 0), form
            for form in self._before.get(low[max(0, at - _NEIGHBOURS) : at][::-1], ()):
                yield at - (form.before or 0), form

    def _placed_in_letters(self, text: str, low: str) -> Iterator[tuple[int, _Form]]:
        for run in _LETTERS.finditer(text):
            for at in () if run[0].islower() else range(run.start(), run.end() - _HEAD + 1):
                for form in self._letters.get(low[at : at + _HEAD], ()):
                    yield at, form


def _parts(secret: str) -> Iterable[str]:
    """Return a secret, or the lines of one that has several: each line of a private key may stand alone."""
    lines = [line.strip() for line in secret.splitlines()] if "\n" in secret else [secret]
    return (line for line in lines if not line.startswith("-----"))


def _forms(value: str) -> Iterator[_Form]:
    """Yield the spellings of a secret that are searched."""
    low = value.lower()
    is_hex = len(value) < _BOUNDED_HEX and not low.strip("0123456789abcdef")
    is_bounded = is_hex or (not values.is_random(value, LEAST_CHARS) and _PLAIN_WORD.fullmatch(low) is not None)
    plain = {low}
    for text in (low, value):
        once = {json.dumps(text, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)}
        plain |= once | {json.dumps(escaped)[1:-1] for escaped in once} | {quote(text, safe=""), html.escape(text)}
    plain = {text.lower() for text in plain}
    data = value.encode("utf-8", "surrogatepass")
    encoded = {data.hex()}
    for shift in range(3):  # where in a group of three bytes it begins; what shares a character with neighbours is left
        first, last = -(-shift * 8 // 6), (shift + len(data)) * 8 // 6
        encoded.add(b64encode(bytes(shift) + data).decode()[first:last].lower())
    encoded |= {text.replace("+", "-").replace("/", "_") for text in encoded}
    for text in plain | encoded:
        anchor = _ANCHOR.search(text)
        yield _Form(text, anchor.start() if anchor else None, text not in plain, is_bounded and text in plain)
