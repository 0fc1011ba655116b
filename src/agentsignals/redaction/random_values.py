"""Values that look random and that nobody named: masked in what is published or handed on, unless they are known ids.

A random value without a name may be a key of a kind that no rule knows. Hashes, UUIDs, digests of lock files and ids of
records are random too, and are public.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from agentsignals.redaction import values
from agentsignals.redaction.spans import Span

RANDOM = "random"
"""Kind of a mask of such a value."""
LEAST_CHARS = 20
_TOKEN = re.compile(r"[A-Za-z0-9_+-]{20,}={0,2}")
_UUID_OR_TIME = re.compile(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d-]*Z?")
_HEX = re.compile(r"(?i)(?:0x)?[0-9a-f-]+")
_DIGEST = re.compile(r"(?:sha\d{1,3}[-:=]|md5[-:=]|h1:)\Z", re.I)
"""Before a digest in a lock file: npm, Nix, pip, Go."""
_DIGEST_AHEAD = re.compile(r"sha\d{1,3}-", re.I)


class RandomValues:
    """Finds values that look random. `known`: ids that may stand anywhere, such as those of calls and messages."""

    def __init__(self, known: Collection[str] = ()) -> None:
        self._known = frozenset(token for name in known for token in _TOKEN.findall(name))

    def spans(self, text: str) -> list[Span]:
        """Return the places of values that look random."""
        return [
            Span(*hit.span(), RANDOM)
            for hit in _TOKEN.finditer(text)
            if _looks_random(hit[0]) and not self._is_public(text, hit)
        ]

    def _is_public(self, text: str, hit: re.Match[str]) -> bool:
        value, start = hit[0], hit.start()
        return (
            value in self._known
            or _HEX.fullmatch(value) is not None
            or not _looks_random(_UUID_OR_TIME.sub("", value))
            or _DIGEST_AHEAD.match(value) is not None
            or _DIGEST.search(text, max(0, start - 8), start) is not None
        )


def _looks_random(value: str) -> bool:
    return values.is_random(value, LEAST_CHARS) and values.alternates(value)
