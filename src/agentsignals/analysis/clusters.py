"""Shares whose interval takes places, not messages, as what was drawn: sessions of one repository or folder are one
person's, or one team's, and alike. Where too few places are known, sessions are drawn, and the note says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress
from math import fsum

from msgspec.structs import replace

from agentsignals.analysis.behind import Closed
from agentsignals.analysis.grouped import Estimate
from agentsignals.analysis.study import Kind, Row
from agentsignals.stats.estimates import (
    FEWEST_CLUSTERS,
    Clustered,
    Interval,
    cluster_sums,
    clustered_columns,
    median,
    quantile,
    ratio_interval,
    share_interval,
)

DOMINANT = 0.5
"""A share of one place, person or model from which a figure is theirs (design/attribution.md#figures-by-mode)."""
ONE_PLACE = "one place"

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


def placed_share(parts: Iterable[Part], places: Mapping[str, str], drawn: str = "sessions") -> PlacedShare:
    """The share of sum(k) in sum(n). `drawn`: what the parts are, if no sessions."""
    counted = list(parts)
    share = over_places(counted, places, drawn)
    if drawn != "sessions":
        return replace(share, counted=Closed(f"It counts by {drawn}, not by sessions."))
    return replace(share, counted=counted, is_sum=True)


def over_places(parts: Iterable[Part], places: Mapping[str, str], drawn: str = "sessions") -> PlacedShare:
    """As `placed_share`, without what it counts."""
    counted = list(parts)
    sessions = [session_id for session_id, _, _ in counted]
    ks = [k for _, k, _ in counted]
    ns = [n for _, _, n in counted]
    k, n = sum(ks), sum(ns)
    # A session whose place nobody knows is a place of its own; no place is called as a session is.
    clusters = list(map(places.get, sessions, sessions))
    with_any = sessions if min(ns, default=1) > 0 else compress(sessions, (n > 0 for n in ns))
    named = set(map(places.get, with_any))
    by_place = clustered_columns(clusters, ks, ns)
    interval, note = _drawn(sessions, ks, ns, by_place, drawn)
    share = PlacedShare(
        value=k / n if n else None,
        n=n,
        k=k,
        interval=interval,
        note=note,
        places=by_place,
        known_places=len(named - {None}),
    )
    return replace(share, note=f"{note}; {by_place.largest:.0%} lies in one place") if share.dominated else share


def _drawn(
    sessions: Sequence[str], ks: Sequence[float], ns: Sequence[float], places: Clustered, of: str
) -> tuple[Interval | None, str]:
    if places.interval is not None:
        return (
            places.interval,
            f"the interval is over {places.clusters:,} places, worth {places.effective:.1f} equal ones",
        )
    by_session = clustered_columns(sessions, ks, ns)
    if by_session.interval is not None:
        return by_session.interval, _few_places(places.clusters, of)
    few = share_interval(list(zip(ks, ns, strict=True)))
    return few, f"fewer than {FEWEST_CLUSTERS} {of}" if places.clusters else ""


def _few_places(n: int, of: str) -> str:
    return f"{n} place{'' if n == 1 else 's'}: the interval is over {of}, and speaks of no other place"


def placed_ratio(parts: Iterable[Part], places: Mapping[str, str]) -> Estimate:
    """Sum(a) over sum(b), of what is no share (calls for each prompt)."""
    counted = [(s, a, b) for s, a, b in parts if b > 0]
    sessions, tops, bottoms = zip(*counted, strict=True) if counted else ((), (), ())
    by_place = cluster_sums([places.get(s, (s,)) for s in sessions], tops, bottoms)
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
    if not weight:
        return placed_share([(row["session_id"], float(holds(row) or 0), 1) for row in rows], places)
    weighed = [(row["session_id"], row[weight], row) for row in rows]
    return placed_share([(session, n * float(holds(row) or 0), n) for session, n, row in weighed], places)


def placed_median(
    values: Sequence[tuple[str, float]], places: Mapping[str, str], kind: Kind = "number", fewest: int = 0
) -> Estimate:
    """The median of (session, value), which may be several of a session; without an interval of fewer than `fewest`."""
    interval, note = median_interval(values, places) if len(values) >= fewest else (None, "")
    value = median([value for _, value in values])
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
    ascending = sorted(v for _, v in values)
    middle = median(ascending)
    if middle is None:
        return None, ""
    # Half of those that are exactly the median lie below it, or a value that many share would seem to be the largest.
    halves = [(s, 1.0 if v < middle else 0.5 if v == middle else 0.0, 1.0) for s, v in values]
    below = over_places(halves, places)
    if below.interval is None:
        return None, ""
    low, high = below.interval
    return (min(quantile(ascending, low), middle), max(quantile(ascending, high), middle)), below.note
