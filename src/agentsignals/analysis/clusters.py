"""Shares whose interval takes places, not messages, as what was drawn: sessions of one repository or folder are one
person's, or one team's, and alike. Where too few places are known, sessions are drawn, and the note says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import fsum
from operator import itemgetter, mul
from typing import Any

from msgspec.structs import replace

from agentsignals.analysis.behind import Closed
from agentsignals.analysis.grouped import Estimate
from agentsignals.analysis.study import Kind, Row
from agentsignals.stats.estimates import (
    FEWEST_CLUSTERS,
    Clustered,
    Interval,
    clustered_columns,
    clustered_sums,
    median,
    quantile,
    ratio_interval,
    share_interval,
    sums,
    sums_but_zeros,
)

DOMINANT = 0.5
"""A share of one place, person or model from which a figure is theirs (design/attribution.md#figures-by-mode)."""
ONE_PLACE = "one place"

_SESSION = itemgetter("session_id")

Part = tuple[str, float, float]
"""Session, k, n."""


class PlacedShare(Estimate, frozen=True, kw_only=True):
    """A share over sessions whose interval is over places."""

    places: Clustered
    known_places: int

    @property
    def largest(self) -> float | None:
        """The largest place's share of the observations; None where no place is known."""
        return self.places.largest if self.known_places else None

    @property
    def dominated(self) -> bool:
        """Whether one place makes more than half of it."""
        return self.known_places > 0 and self.places.largest > DOMINANT

    def warning(self, fewest: int = 0, of: str = "") -> str:
        """Why it says little; empty when nothing speaks against it."""
        return ", ".join([*([f"few {of}"] if self.n < fewest else []), *([ONE_PLACE] if self.dominated else [])])


class Sample:
    """Sessions and how many observations each has, one without `ns`, of which several shares are taken: where they lie,
    and how many lie there, is looked up once. A session may come several times."""

    def __init__(
        self,
        sessions: Sequence[str],
        places: Mapping[str, str],
        ns: Sequence[float] | None = None,
        drawn: str = "sessions",
    ) -> None:
        self._sessions = sessions
        self._ns = [1] * len(sessions) if ns is None else ns
        self._drawn = drawn
        self._n = sum(self._ns)
        # A session whose place nobody knows is a place of its own; no place is called as a session is.
        self._clusters = list(map(places.get, sessions, sessions))
        self._of_n = sums(self._clusters, self._ns)
        where = self._of_n.keys() & set(places.values())
        self._n_places = sum([self._of_n[place] > 0 for place in where])

    def share(self, ks: Sequence[float]) -> PlacedShare:
        """The share of sum(k) in the observations, with what it counts."""
        share = self.over_places(ks)
        if self._drawn != "sessions":
            return replace(share, counted=Closed(f"It counts by {self._drawn}, not by sessions."))
        return replace(share, counted=partial(zip, self._sessions, ks, self._ns), is_sum=True)

    def among(self, values: Sequence[Any], *wanted: Any) -> PlacedShare:
        """The share of the observations, one a session, whose value is one of these."""
        return self.share(list(map(float, map(wanted.__contains__, values))))

    def over_places(self, ks: Sequence[float]) -> PlacedShare:
        """As `share`, without what it counts."""
        k = sum(ks)
        by_place = clustered_sums(sums_but_zeros(self._clusters, ks), self._of_n)
        interval, note = self._interval(ks, by_place)
        share = PlacedShare(
            value=k / self._n if self._n else None,
            n=self._n,
            k=k,
            interval=interval,
            note=note,
            places=by_place,
            known_places=self._n_places,
        )
        return replace(share, note=f"{note}; {by_place.largest:.0%} lies in one place") if share.dominated else share

    def _interval(self, ks: Sequence[float], places: Clustered) -> tuple[Interval | None, str]:
        if places.interval is not None:
            return (
                places.interval,
                f"the interval is over {places.clusters:,} places, worth {places.effective:.1f} equal ones",
            )
        by_session = clustered_columns(self._sessions, ks, self._ns)
        if by_session.interval is not None:
            return by_session.interval, _few_places(places.clusters, self._drawn)
        few = share_interval(list(zip(ks, self._ns, strict=True)))
        return few, f"fewer than {FEWEST_CLUSTERS} {self._drawn}" if places.clusters else ""


def placed_share(parts: Iterable[Part], places: Mapping[str, str], drawn: str = "sessions") -> PlacedShare:
    """The share of sum(k) in sum(n). `drawn`: what the parts are, if no sessions."""
    sessions, ks, ns = _columns(parts)
    return Sample(sessions, places, ns, drawn).share(ks)


def over_places(parts: Iterable[Part], places: Mapping[str, str], drawn: str = "sessions") -> PlacedShare:
    """As `placed_share`, without what it counts."""
    sessions, ks, ns = _columns(parts)
    return Sample(sessions, places, ns, drawn).over_places(ks)


def _columns(parts: Iterable[Part]) -> tuple[list[str], list[float], list[float]]:
    counted = list(parts)
    return [s for s, _, _ in counted], [k for _, k, _ in counted], [n for _, _, n in counted]


def _few_places(n: int, of: str) -> str:
    return f"{n} place{'' if n == 1 else 's'}: the interval is over {of}, and speaks of no other place"


def placed_ratio(parts: Iterable[Part], places: Mapping[str, str]) -> Estimate:
    """Sum(a) over sum(b), of what is no share (calls for each prompt)."""
    counted = [(s, a, b) for s, a, b in parts if b > 0]
    sessions, tops, bottoms = zip(*counted, strict=True) if counted else ((), (), ())
    clusters = list(map(places.get, sessions, sessions))
    of_top, of_bottom = sums_but_zeros(clusters, tops), sums(clusters, bottoms)
    by_place = [(of_top.get(cluster, 0.0), of) for cluster, of in of_bottom.items()]
    drawn = ratio_interval(by_place)
    note = f"the interval draws {len(by_place):,} places" if drawn is not None else ""
    if drawn is None and (drawn := ratio_interval([(a, b) for _, a, b in counted])) is not None:
        note = _few_places(len(by_place), "sessions")
    k, n = fsum(tops), fsum(bottoms)
    value = k / n if n else None
    return Estimate(
        value=value,
        n=n,
        k=k,
        kind="number",
        interval=drawn,
        note=note,
        counted=counted,
        is_sum=True,
    )


def share_of(
    rows: Iterable[Row], places: Mapping[str, str], holds: Callable[[Row], float | None], weight: str = ""
) -> PlacedShare:
    """The share of rows that hold. `weight`: a column of how many observations a row stands for; without it, one."""
    held = list(rows)
    sessions = list(map(_SESSION, held))
    ks = [float(holds(row) or 0) for row in held]
    if not weight:
        return Sample(sessions, places).share(ks)
    ns = [row[weight] for row in held]
    return Sample(sessions, places, ns).share(list(map(mul, ks, ns)))


def placed_median(
    values: Sequence[tuple[str, float]], places: Mapping[str, str], kind: Kind = "number", fewest: int = 0
) -> Estimate:
    """The median of (session, value), which may be several of a session; without an interval of fewer than `fewest`."""
    ascending = sorted([value for _, value in values])
    interval, note = _of_median(values, ascending, places) if len(values) >= fewest else (None, "")
    value = median(ascending)
    return Estimate(
        value=value,
        n=len(values),
        kind=kind,
        interval=interval,
        note=note,
        counted=lambda: [(session_id, value, 1) for session_id, value in values],
    )


def median_interval(values: Sequence[tuple[str, float]], places: Mapping[str, str]) -> tuple[Interval | None, str]:
    """The interval of the median of (session, value), and what it rests on: where the share of values below it lies,
    turned back into values (Woodruff 1952), over places."""
    return _of_median(values, sorted([value for _, value in values]), places)


def _of_median(
    values: Sequence[tuple[str, float]], ascending: Sequence[float], places: Mapping[str, str]
) -> tuple[Interval | None, str]:
    middle = median(ascending)
    if middle is None:
        return None, ""
    sessions, numbers = zip(*values, strict=True)
    # Half of those that are exactly the median lie below it, or a value that many share would seem to be the largest.
    halves = [1.0 if v < middle else 0.5 if v == middle else 0.0 for v in numbers]
    below = Sample(sessions, places).over_places(halves)
    if below.interval is None:
        return None, ""
    low, high = below.interval
    return (min(quantile(ascending, low), middle), max(quantile(ascending, high), middle)), below.note
