"""What a rule's introduction changed: an interrupted time series over the sessions of one repository, in which most
often nothing can be told (docs/rules.md#effect)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import fsum
from typing import Literal

from msgspec import Struct, field, structs

from agentsignals.stats.estimates import Interval
from agentsignals.stats.interrupted_series import FEWEST, LevelChange, level_change
from agentsignals.stats.paired import apart, benjamini_hochberg
from agentsignals.stats.proportions import wilson

Q = 0.05
"""Of the rules said to have changed something, no larger share may be false (Benjamini and Hochberg 1995)."""
OTHER = 0.2
"""A model, an agent or a version whose share of the sessions moved by more is named as another change."""


class Point(Struct, frozen=True, kw_only=True):
    """A session of a rule's series."""

    session_id: str
    at: int
    """Microseconds since 1970 UTC."""
    is_after: bool
    kept: float
    """0..1: of its occasions that can be told those at which the rule was kept; of what must never be done all or
    none."""
    agent: str
    model: str | None
    agent_version: str | None


class Effect(Struct, frozen=True, kw_only=True):
    """Whether a rule was kept more after it came."""

    verdict: Literal["kept_more", "kept_less", "cannot_tell"]
    because: str
    change: LevelChange | None = None
    q: float | None = None
    """The p value, adjusted for the number of rules whose change was estimated."""
    meanwhile: list[str] = field(default_factory=list)
    """What else changed about then: it may be the cause."""


def effects(
    series: Sequence[Sequence[Point]], others: Sequence[Sequence[Point]], meanwhile: Sequence[Sequence[str]]
) -> list[Effect]:
    """The effect of each rule, given its series; the series of the rules that stood through both of its sides, under
    the same sides; and what else its commit changed."""
    changes = [_change(points) for points in series]
    estimated = [n for n, change in enumerate(changes) if change.p is not None]
    adjusted = dict(zip(estimated, benjamini_hochberg([changes[n].p or 0.0 for n in estimated]), strict=True))
    made = []
    for n, (points, change) in enumerate(zip(series, changes, strict=True)):
        effect = _judged(change, adjusted.get(n), others[n])
        besides = [*meanwhile[n], *_moved(points)]
        made.append(structs.replace(effect, meanwhile=besides))
    return made


def _change(points: Sequence[Point]) -> LevelChange:
    ordered = sorted(points, key=lambda p: (p.at, p.session_id))
    return level_change([p.kept for p in ordered if not p.is_after], [p.kept for p in ordered if p.is_after])


def _judged(change: LevelChange, q: float | None, others: Sequence[Point]) -> Effect:  # noqa: PLR0911  (one for each reason)
    def untold(because: str) -> Effect:
        return Effect(verdict="cannot_tell", because=because, change=change, q=q)

    if change.n_before < FEWEST or change.n_after < FEWEST:
        side = "before" if change.n_before < FEWEST else "after"
        n = change.n_before if side == "before" else change.n_after
        return untold(f"{n} sessions with an occasion {side} it: {FEWEST} are needed on either side")
    plain, beside = change.difference, change.level_interval
    if plain is None or beside is None or q is None:
        return untold("nothing can be estimated")
    if _holds_zero(plain):
        return untold("the difference may be chance")
    if _holds_zero(beside):
        return untold("beside the trend and what neighbouring sessions share, the change may be chance")
    if (plain[0] > 0) != (beside[0] > 0):
        return untold("the trend and the change point opposite ways")
    if q > Q:
        return untold("among so many rules the change may be chance")
    moved = _apart(others)
    if moved is not None and not _holds_zero(moved) and (moved[0] > 0) == (plain[0] > 0):
        return untold("rules that did not change were kept otherwise, too")
    verdict: Literal["kept_more", "kept_less"] = "kept_more" if plain[0] > 0 else "kept_less"
    return Effect(verdict=verdict, because="more than the trend before it and chance explain", change=change, q=q)


def _holds_zero(interval: Interval) -> bool:
    return interval[0] <= 0 <= interval[1]


def _apart(points: Sequence[Point]) -> Interval | None:
    before, after = ([p.kept for p in points if p.is_after is side] for side in (False, True))
    if min(len(before), len(after)) < FEWEST:
        return None
    ends = wilson(fsum(after), len(after)), wilson(fsum(before), len(before))
    if ends[0] is None or ends[1] is None:
        return None
    return apart(fsum(after) / len(after), ends[0], fsum(before) / len(before), ends[1])


def _moved(points: Sequence[Point]) -> Iterable[str]:
    """Agents, models and versions whose share of the sessions is another after."""
    sides = [[p for p in points if p.is_after is side] for side in (False, True)]
    if not all(sides):
        return
    for what in ("agent", "model", "agent_version"):
        before, after = (Counter(getattr(p, what) or "not logged" for p in side) for side in sides)
        for name in sorted(before | after):
            shares = before[name] / len(sides[0]), after[name] / len(sides[1])
            if abs(shares[0] - shares[1]) > OTHER:
                yield f"{what.replace('_', ' ')} {name}: {shares[0]:.0%} of the sessions before, {shares[1]:.0%} after"
