"""The last look at what is about to leave: keys by their shape, in any writing, and parts of what was masked.

Masking is done where texts are; this is for whatever forgot it. It changes nothing, it says no.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from agentsignals.redaction import Redactor, key_kind
from agentsignals.redaction.values import is_mixed

PART_CHARS = 12
"""So many letters and digits in a row of something drawn are no chance: 36 to the 12th."""
_DIFFERENT = 6
"""Of those so many are different: zeros in a row stand anywhere."""
_TOKEN = re.compile(rf"[a-z0-9]{{{PART_CHARS},}}")


class Guard:
    """Looks through texts that are about to leave. `redactor`: what masked them, which knows what it masked."""

    def __init__(self, redactor: Redactor | None = None) -> None:
        values = redactor.drawn if redactor else ()
        self._parts = frozenset(part for value in values for part in _parts(value))

    def kind(self, text: str) -> str | None:
        """The kind of what must not leave in a text: `key`, `private key`, or `part` of a value that was masked
        elsewhere; None where nothing is seen.
        """
        if self._parts and not self._parts.isdisjoint(_ends(text)):
            return "part of a secret that was masked elsewhere"
        return key_kind(text)


def _parts(value: str) -> Iterable[str]:
    for token in _TOKEN.findall(value.lower()):
        for n in range(len(token) - PART_CHARS + 1):
            part = token[n : n + PART_CHARS]
            if len(set(part)) >= _DIFFERENT and is_mixed(part):
                yield part


def _ends(text: str) -> set[str]:
    """Both ends of each token: where a value was cut, or stands within another, one of its parts is there."""
    tokens = _TOKEN.findall(text.lower())
    return {token[:PART_CHARS] for token in tokens} | {token[-PART_CHARS:] for token in tokens}
