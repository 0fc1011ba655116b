"""Last check before a text leaves: keys by their shape, in any encoding, and secrets that were masked elsewhere.

Masking happens where texts are made; this catches what forgot it. A value that only the name before it gave away may
stand elsewhere without the name. Once it is known, it is masked there too; of a random value also parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from agentsignals.redaction import Redactor, key_spans
from agentsignals.redaction.known import KNOWN, KnownSecrets
from agentsignals.redaction.personal import mask_word
from agentsignals.redaction.spans import Span, masked, merged
from agentsignals.redaction.values import is_mixed

PART_CHARS = 12
"""Letters and digits of a random value in a row that are no coincidence: 36 to the 12th."""
_DIFFERENT = 6
"""Number of them that must differ, because runs of zeros occur anywhere."""
_OF_KEYS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_+/=.~%:!@#^&*$-")
"""Characters of values that are neither quote nor escape, which a file's syntax needs."""
_ELSEWHERE = "secret that was masked elsewhere"
_TOKEN = re.compile(rf"[a-z0-9]{{{PART_CHARS},}}")


class Guard:
    """Searches texts that are about to leave. `redactor` knows the values it masked."""

    def __init__(self, redactor: Redactor | None = None) -> None:
        drawn = redactor.random_values if redactor else ()
        self._parts = {part: value for value in map(str.lower, drawn) for part in _parts(value)}
        self._known = KnownSecrets({*redactor.secrets, *redactor.known.values} if redactor else ())

    def kind(self, text: str) -> str | None:
        """Return what must not leave in a text: `key`, `private key`, or `secret that was masked elsewhere`. None if
        nothing is found."""
        if self._has_part(text):
            return _ELSEWHERE
        hits = key_spans(text, known=self._known)
        return (_ELSEWHERE if hits[0].kind == KNOWN else hits[0].kind) if hits else None

    def without_known(self, text: str) -> str:
        """Mask secrets that were masked elsewhere, in any encoding, and parts of them."""
        spans = [span for span in key_spans(text, known=self._known) if span.kind == KNOWN] if self._known else []
        if self._has_part(text):
            low = text.lower()
            spans += [
                Span(*_stretch(low, at, self._parts[part], part), "cut")
                for token in _TOKEN.finditer(low)
                for at in (token.start(), token.end() - PART_CHARS)
                if (part := low[at : at + PART_CHARS]) in self._parts
            ]
        return masked(text, merged(spans), mask_word) if spans else text

    def _has_part(self, text: str) -> bool:
        """Return whether a text holds part of a random value that was masked elsewhere."""
        # Where a value was cut or embedded, one of its parts is at an end of a token.
        tokens = _TOKEN.findall(text.lower()) if self._parts else ()
        return any(token[:PART_CHARS] in self._parts or token[-PART_CHARS:] in self._parts for token in tokens)


def _stretch(low: str, at: int, value: str, part: str) -> tuple[int, int]:
    """Return the bounds of the text around `at` that equals the masked value around its part."""
    within = value.index(part)
    start, end = at, at + PART_CHARS
    n = within
    while n and start and low[start - 1] == value[n - 1] and low[start - 1] in _OF_KEYS:
        start, n = start - 1, n - 1
    n = within + PART_CHARS
    while n < len(value) and end < len(low) and low[end] == value[n] and low[end] in _OF_KEYS:
        end, n = end + 1, n + 1
    return start, end


def _parts(value: str) -> Iterable[str]:
    for token in _TOKEN.findall(value.lower()):
        for n in range(len(token) - PART_CHARS + 1):
            part = token[n : n + PART_CHARS]
            if len(set(part)) >= _DIFFERENT and is_mixed(part):
                yield part
