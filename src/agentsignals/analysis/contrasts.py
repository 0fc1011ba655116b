"""Where something happens more often than in the person's other sessions: by agent, place, model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any, NamedTuple

from agentsignals.analysis.clusters import Part, PlacedShare, over_places
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


def contrasts(parts: Iterable[Part], sessions: Sequence[Row], keys: Iterable[str] = tuple(KEYS)) -> list[Contrast]:
    """Every value of these keys with enough sessions on both sides; the same sessions once. `parts`: of a session how
    many observations hold, and how many there are. `sessions`: rows of `SESSIONS`."""
    by_id = {row["session_id"]: row for row in sessions}
    counted = [part for part in parts if part[2] > 0]
    rows = [by_id[session_id] for session_id, _, _ in counted]
    columns = {key: [row[key] for row in rows] for key in KEYS}
    places = by_session(sessions)
    whole = sum(n for _, _, n in counted)
    made: list[Contrast] = []
    seen: set[frozenset[str]] = set()
    for key in keys:
        for value, group in _grouped(columns[key], counted).items():
            # Others may be fewer than all that are left, and are looked for where these are enough.
            left = len(counted) - len(group)
            if min(len(group), left) < FEWEST_CLUSTERS or sum(n for _, _, n in group) < LEAST_PART * whole:
                continue
            rest, in_rest, matched = _others(key, value, columns, counted)
            in_group = frozenset([session_id for session_id, _, _ in group])
            if len(rest) < FEWEST_CLUSTERS or sum(n for _, _, n in rest) < LEAST_PART * whole or in_group in seen:
                continue
            seen.add(in_group)
            here, there = over_places(group, places), over_places(rest, places)
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
                    in_rest=in_rest,
                )
            )
    return made


def _grouped(values: list[str | None], counted: list[Part]) -> dict[str, list[Part]]:
    """The parts of each value that is known."""
    groups: dict[str, list[Part]] = {}
    for value, part in zip(values, counted, strict=True):
        if value is not None:
            groups.setdefault(value, []).append(part)
    return groups


def _others(
    key: str, value: str, columns: dict[str, list[str | None]], counted: list[Part]
) -> tuple[list[Part], frozenset[str], str]:
    """The other sessions that are alike: of the same agents where places differ, of the same places where agents do."""
    other = "agent" if key == "place" else "place"
    pairs = list(zip(columns[key], columns[other], strict=True))
    values = {beside for this, beside in set(pairs) if this == value}
    alike = list(compress(counted, [this != value and beside in values for this, beside in pairs]))
    ids = frozenset([session_id for session_id, _, _ in alike])
    if len(ids) >= FEWEST_CLUSTERS:
        return alike, ids, f"your other sessions of the same {other}s"
    rest = list(compress(counted, [this != value for this in columns[key]]))
    return rest, frozenset([session_id for session_id, _, _ in rest]), f"your other sessions, of any {other}"
