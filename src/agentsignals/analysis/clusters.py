"""Shares whose interval takes places, not messages, as what was drawn: sessions of one repository or folder are one
person's, or one team's, and alike. Where too few places are known, sessions are drawn, and the note says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import fsum
from operator import itemgetter, mul

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
    clustered_sums,
    median,
    quantile,
    ratio_interval,
    share_interval,
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


def placed_share(parts: Iterable[Part], places: Mapping[str, str], drawn: str = "sessions") -> PlacedShare:
    """The share of sum(k) in sum(n). `drawn`: what the parts are, if no sessions."""
    return _placed(*_columns(parts), places, drawn)


def _placed(
    sessions: Sequence[str],
    ks: Sequence[float],
    ns: Sequence[float],
    places: Mapping[str, str],
    drawn: str = "sessions",
) -> PlacedShare:
    """As `placed_share`, of parts by column."""
    share = _over_places(sessions, ks, ns, places, drawn)
    if drawn != "sessions":
        return replace(share, counted=Closed(f"It counts by {drawn}, not by sessions."))
    return replace(share, counted=partial(zip, sessions, ks, ns), is_sum=True)


def over_places(parts: Iterable[Part], places: Mapping[str, str], drawn: str = "sessions") -> PlacedShare:
    """As `placed_share`, without what it counts."""
    return _over_places(*_columns(parts), places, drawn)


def _columns(parts: Iterable[Part]) -> tuple[list[str], list[float], list[float]]:
    counted = list(parts)
    return [s for s, _, _ in counted], [k for _, k, _ in counted], [n for _, _, n in counted]


def _over_places(
    sessions: Sequence[str],
    ks: Sequence[float],
    ns: Sequence[float],
    places: Mapping[str, str],
    drawn: str = "sessions",
) -> PlacedShare:
    k, n = sum(ks), sum(ns)
    # A session whose place nobody knows is a place of its own; no place is called as a session is.
    clusters = list(map(places.get, sessions, sessions))
    of_k, of_n = cluster_sums(clusters, ks, ns)
    by_place = clustered_sums(of_k, of_n)
    with_any = of_n.keys() if min(ns, default=1) > 0 else {cluster for cluster, of in of_n.items() if of > 0}
    interval, note = _drawn(sessions, ks, ns, by_place, drawn)
    share = PlacedShare(
        value=k / n if n else None,
        n=n,
        k=k,
        interval=interval,
        note=note,
        places=by_place,
        known_places=len(with_any & set(places.values())),
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
    of_top, of_bottom = cluster_sums(list(map(places.get, sessions, sessions)), tops, bottoms)
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
        return _placed(sessions, ks, [1] * len(ks), places)
    ns = [row[weight] for row in held]
    return _placed(sessions, list(map(mul, ks, ns)), ns, places)


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
    sessions = [session_id for session_id, _ in values]
    # Half of those that are exactly the median lie below it, or a value that many share would seem to be the largest.
    halves = [1.0 if v < middle else 0.5 if v == middle else 0.0 for _, v in values]
    below = _over_places(sessions, halves, [1] * len(halves), places)
    if below.interval is None:
        return None, ""
    low, high = below.interval
    return (min(quantile(ascending, low), middle), max(quantile(ascending, high), middle)), below.note
