"""Masks what must not leave the machine in a text: keys, passwords, logins, mail addresses, user names, numbers.

Patterns know the shapes of secrets and the names they go by, not their meaning: what looks like prose passes. A mask
is one word for all of a kind, not a pseudonym: a hash of a name is found again by whoever has a list of names.
"""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

from agentsignals.redaction import keys, named, personal, values
from agentsignals.redaction.spans import masked

_KEPT_CHARS, _MOST_KEPT = 200, 20_000
"""Short texts without a secret are remembered: a trace says the same few again and again."""
_SECRET = "secret"  # noqa: S105  (a kind)
_LONG_DIGITS = 10**11
"""Numbers from here on may be a card or a telephone."""


def redacted(text: str) -> str:
    """The text with its secrets masked."""
    return Redactor().plain(text)


class Redactor:
    """Masks texts and counts what it masked, by kind: `account`, `address`, `card`, `key`, `login`, `mail`, `phone`,
    `private key`, `secret`, `user`.
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self._harmless: set[str] = set()

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
            return self.plain(text, times)

    def lines(self, text: str) -> str:
        """JSON Lines masked line by line; any other text as a whole."""
        parts = text.split("\n")  # other separators may stand inside a value
        if len(parts) < 2 or not _is_json(parts[0]):
            return self.text(text)
        return "\n".join(self.text(part) for part in parts)

    def plain(self, text: str, times: int = 1) -> str:
        """The text masked as it stands."""
        if len(text) < values.LEAST_CHARS or text in self._harmless:
            return text
        found = list(chain(keys.spans(text), named.spans(text), personal.spans(text)))
        if found:
            return masked(text, found, self.counts, times)
        if len(text) <= _KEPT_CHARS and len(self._harmless) < _MOST_KEPT:
            self._harmless.add(text)
        return text

    def _value(self, value: Any, times: int) -> Any:
        if isinstance(value, str):
            return self.text(value, times)
        if isinstance(value, list):
            return [self._value(v, times) for v in value]
        if isinstance(value, dict):
            return self._object(value, times)
        if isinstance(value, int) and value >= _LONG_DIGITS:
            told = str(value)
            masked_number = self.plain(told, times)
            return value if masked_number == told else masked_number
        return value

    def _object(self, value: dict[str, Any], times: int) -> dict[str, Any]:
        found = {self.plain(k, times): self._named(k, v, times) for k, v in value.items()}
        name = next((v for k in ("name", "key", "Name", "Key") if isinstance(v := value.get(k), str)), None)
        for k in ("value", "Value"):
            if name is not None and k in found and found[k] == value[k]:
                found[k] = self._named(name, value[k], times)
        return found

    def _named(self, name: str, value: Any, times: int) -> Any:
        """A value whose name says that it is a secret is one, where it looks like one."""
        found = self._value(value, times)
        word = named.names_a_secret(name)
        if word is None:
            return found
        if isinstance(value, list):
            return [
                self._named(name, v, times) if isinstance(v, str) and v == f else f
                for v, f in zip(value, found, strict=True)
            ]
        if not isinstance(value, str) or found != value or not values.is_secret(word, name, value):
            return found
        self.counts[_SECRET] = self.counts.get(_SECRET, 0) + times
        return f"[{_SECRET}]"


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
