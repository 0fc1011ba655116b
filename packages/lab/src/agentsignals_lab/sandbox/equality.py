"""Comparison of a value with the expected one, by structure: no `==` of anybody else's is called."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from agentsignals.errors import SandboxError

from agentsignals_lab.sandbox.inside import wire

MOST_SHOWN_CHARS = 200


def same(actual: Any, expected: Any, *, sequences_alike: bool = False, numbers_alike: bool = False) -> bool:
    """Equal in type and content, all the way down: True is not 1, a tuple is no list, NaN is nothing's equal.

    Args:
        actual: a value that came out of the sandbox.
        expected: our own.
        sequences_alike: a tuple passes for a list and the other way round.
        numbers_alike: 1 and 1.0 are the same; True still is neither.

    Raises:
        SandboxError: what is expected is no plain data, so no answer could ever be right.
    """
    text = _Canonical(sequences_alike, numbers_alike).text
    try:
        ours = wire.encode(expected)
    except wire.Refused as refused:
        raise SandboxError(
            f"Nothing can be the same: {refused.message}.", "Expect plain data: numbers, texts, lists, mappings."
        ) from None
    try:
        return text(wire.encode(actual)) == text(ours)
    except (wire.Refused, _NoEqual):
        return False


def shown(value: Any, most_chars: int = MOST_SHOWN_CHARS) -> str:
    """The value as Python writes it, cut, every character one that can be stored and printed."""
    text = repr(value)
    text = text if len(text) <= most_chars else text[: most_chars - 1] + "…"
    return text.encode("utf-8", "backslashreplace").decode()


class _NoEqual(Exception):
    """A NaN is in it."""


class _Canonical(NamedTuple):
    """Writes a value so that equal ones give one text, whatever the order of their sets and mappings."""

    sequences_alike: bool
    numbers_alike: bool

    def text(self, form: Any) -> str:
        if type(form) is float:
            return str(int(form)) if self.numbers_alike and form.is_integer() else repr(form + 0.0)  # -0.0 is 0.0
        if type(form) is list:
            return f"[{','.join(map(self.text, form))}]"
        if type(form) is not dict:
            return json.dumps(form)
        [(tag, inner)] = form.items()
        return self._tagged(tag, inner)

    def _tagged(self, tag: str, inner: Any) -> str:
        if tag == "tuple":
            return self.text(inner) if self.sequences_alike else f"({','.join(map(self.text, inner))})"
        if tag in ("set", "frozenset"):
            return f"{tag}{sorted(map(self.text, inner))}"
        if tag == "dict":
            return f"dict{sorted((self.text(key), self.text(value)) for key, value in inner)}"
        if tag in ("float", "complex") and "nan" in str(inner):
            raise _NoEqual
        return f"{tag}:{inner!r}"
