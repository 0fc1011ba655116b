"""Session ids short enough to read and long enough for `agentsignals show`."""

from __future__ import annotations

from collections.abc import Iterable

_SHORTEST = 8


def beginnings(ids: Iterable[str]) -> dict[str, str]:
    """For each id the shortest beginning, of at least eight characters, that no other id has."""
    ascending = sorted(ids)
    shortened = {}
    for i, name in enumerate(ascending):
        near = [*ascending[max(i - 1, 0) : i], *ascending[i + 1 : i + 2]]
        shared = max((_shared(name, other) for other in near), default=0)
        shortened[name] = name[: max(shared + 1, _SHORTEST)]
    return shortened


def _shared(first: str, other: str) -> int:
    """How many characters two ids begin with alike."""
    return next((i for i, (a, b) in enumerate(zip(first, other, strict=False)) if a != b), min(len(first), len(other)))
