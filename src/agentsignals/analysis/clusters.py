"""Shares whose interval takes places, not messages, as what was drawn: sessions of one repository or folder are one
person's, or one team's, and alike. Where too few places are known, sessions are drawn, and the note says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentsignals.analysis.study import Finding
from agentsignals.stats.estimates import FEWEST_CLUSTERS, Clustered, Interval, clustered, quantile, share_interval

DOMINANT = 0.5
"""A share of one place from which a figure is that place's (design/attribution.md#figures-by-mode; as in the study of
models)."""

Part = tuple[str, float, float]
"""Session, k, n."""


class Estimate:
    """A share over sessions, its interval, and what speaks against it. `drawn`: what the parts are, if no sessions."""

    def __init__(self, parts: Iterable[Part], places: Mapping[str, str], drawn: str = "sessions") -> None:
        self._parts = list(parts)
        self._of = drawn
        self.k, self.n = sum(k for _, k, _ in self._parts), sum(n for _, _, n in self._parts)
        self.value = self.k / self.n if self.n else None
        # A session whose place nobody knows is a place of its own.
        self.places: Clustered = clustered((places.get(s, ("session", s)), k, n) for s, k, n in self._parts)
        self.known_places = len({places[s] for s, _, n in self._parts if n > 0 and s in places})
        self.interval, self._note = self._drawn()

    def _drawn(self) -> tuple[Interval | None, str]:
        places = self.places
        if places.interval is not None:
            return (
                places.interval,
                f"the interval draws {places.clusters:,} places, worth {places.effective:.1f} equal ones",
            )
        by_session = clustered(self._parts)
        if by_session.interval is not None:
            few_places = f"{places.clusters} place{'' if places.clusters == 1 else 's'}"
            return by_session.interval, f"{few_places}: the interval draws {self._of}, and speaks of no other place"
        few = share_interval([(k, n) for _, k, n in self._parts])
        return few, f"fewer than {FEWEST_CLUSTERS} {self._of}" if self.n else ""

    @property
    def dominated(self) -> bool:
        """Whether one place makes more than half of it."""
        return self.known_places > 0 and self.places.largest > DOMINANT

    @property
    def note(self) -> str:
        """What the interval rests on, and whether one place makes most of it."""
        most = f"; {self.places.largest:.0%} lies in one place" if self.dominated else ""
        return self._note + most

    def finding(self, note: str = "", **fields: Any) -> Finding:
        """The share as a finding. `fields`: id, title, unit, of, command and what else is known."""
        more = "; ".join(part for part in (note, self.note) if part)
        return Finding(
            value=self.value, n=int(self.n), interval=self.interval, note=more, **{"kind": "share", **fields}
        )


def median_interval(values: Sequence[tuple[str, float]], places: Mapping[str, str]) -> Interval | None:
    """The interval of the median of (session, value): where the share of values below it lies, turned back into values
    (Woodruff 1952), with the places drawn anew."""
    ascending = sorted(v for _, v in values)
    if not ascending:
        return None
    middle = quantile(ascending, 0.5)
    # Half of those that are exactly the median lie below it, or a value that many share would seem to be the largest.
    below = Estimate([(s, 1.0 if v < middle else 0.5 if v == middle else 0.0, 1.0) for s, v in values], places)
    if below.interval is None:
        return None
    low, high = below.interval
    return min(quantile(ascending, low), middle), max(quantile(ascending, high), middle)
