"""Where something happens more often than in the person's other sessions: by agent, place, model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from agentsignals.analysis.clusters import PlacedShare, over_places
from agentsignals.analysis.grouped import by
from agentsignals.analysis.places import by_session
from agentsignals.analysis.ranking import apart_from, shown
from agentsignals.analysis.rows import PLACE
from agentsignals.analysis.study import Row
from agentsignals.stats.estimates import FEWEST_CLUSTERS, Interval

KEYS = {"place": "in {}", "agent": "with {}", "model": "with {}"}
"""What sessions are held apart by, and how a sentence says it."""
SESSIONS = f"SELECT session_id, agent, model, {PLACE} FROM sessions ORDER BY session_id"
"""What `contrasts` is given."""


LEAST_PART = 0.1
"""Of the observations, on either side. Which sizes are looked at is settled before any share is seen: what can't be
much takes no place among the candidates (Bourgon, Gentleman and Huber 2010)."""


class Contrast(NamedTuple):
    """The sessions of one value against others, alike in the rest where there are such."""

    key: str
    value: str
    group: PlacedShare
    rest: PlacedShare
    excess: float
    """What is more than it would be at the others' share, as a part of the whole."""
    interval: Interval
    """Of the difference."""
    p: float
    """One-sided."""
    matched: str
    """Who the others are."""
    in_group: frozenset[str]
    """Its sessions."""
    in_rest: frozenset[str]

    @property
    def where(self) -> str:
        return KEYS[self.key].format(shown(self.value))

    def more(self, observations: float, of: str, whole: float) -> dict[str, Any]:
        """The fields of an answer whose size is what is more than elsewhere: of so many observations, in `of`, as a
        share of `whole`."""
        size = self.excess * observations
        return {
            "size": size,
            "unit": f"{of} more than elsewhere",
            "share": size / whole,
            "interval": self.interval,
            "p": self.p,
            "n": len(self.in_group),
        }


def contrasts(
    parts: Iterable[tuple[str, float, float]], sessions: Sequence[Row], keys: Iterable[str] = tuple(KEYS)
) -> list[Contrast]:
    """Every value of these keys with enough sessions on both sides; the same sessions once. `parts`: of a session how
    many observations hold, and how many there are. `sessions`: rows of `SESSIONS`."""
    by_id = {row["session_id"]: row for row in sessions}
    counted = [{**by_id[session_id], "k": k, "n": n} for session_id, k, n in parts if n > 0]
    places = by_session(sessions)
    whole = sum(row["n"] for row in counted)
    made: list[Contrast] = []
    seen: set[frozenset[str]] = set()
    for key in keys:
        for value, group in by((row for row in counted if row[key] is not None), key).items():
            rest, matched = _others(key, group, [row for row in counted if row[key] != value])
            in_group = frozenset(row["session_id"] for row in group)
            sizes = [sum(row["n"] for row in rows) for rows in (group, rest)]
            if min(len(group), len(rest)) < FEWEST_CLUSTERS or min(sizes) < LEAST_PART * whole or in_group in seen:
                continue
            seen.add(in_group)
            here, there = _share(group, places), _share(rest, places)
            between = apart_from(here, there)
            if between is None:
                continue
            gap = float(here.value or 0) - float(there.value or 0)
            made.append(
                Contrast(
                    key=key,
                    value=value,
                    group=here,
                    rest=there,
                    excess=gap * here.n / whole,
                    interval=between[0],
                    p=between[1],
                    matched=matched,
                    in_group=in_group,
                    in_rest=frozenset(row["session_id"] for row in rest),
                )
            )
    return made


def _share(rows: Sequence[Row], places: dict[str, str]) -> PlacedShare:
    return over_places([(row["session_id"], row["k"], row["n"]) for row in rows], places)


def _others(key: str, group: Sequence[Row], rest: Sequence[Row]) -> tuple[Sequence[Row], str]:
    """The other sessions that are alike: of the same agents where places differ, of the same places where agents do."""
    other = "agent" if key == "place" else "place"
    values = {row[other] for row in group}
    alike = [row for row in rest if row[other] in values]
    if len({row["session_id"] for row in alike}) < FEWEST_CLUSTERS:
        return rest, f"your other sessions, of any {other}"
    return alike, f"your other sessions of the same {other}s"
