"""Figures of a commit and of a session out of the tags: shares with their interval, coding modes."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct, field

from agentsignals.repositories.checkpoints import Attributed
from agentsignals.repositories.replay import AddedLine

SURE = ("agent_exact", "agent_ws", "agent_other_session")
"""Lines that stand in a call's arguments."""
AGENT = (*SURE, "agent_shell")
NOBODY = ("preexisting", "moved", "generated")
"""Added lines whose author is not in question: left out of shares."""
VIBE_FROM = 0.99
"""A session's or commit's lines are `vibe` from this share on, `human_only` at 0 (paper, M2)."""


class Share(Struct):
    """Agent's share of the authored lines: lower bound, upper bound, and an estimate between them."""

    low: float | None = None
    high: float | None = None
    likely: float | None = None
    n: int = 0
    """Added lines that are not blank and have an author."""
    unknown: int = 0
    """Authored lines that nothing explains."""


class OfCommit(Struct):
    """A commit's added lines by tag, and the figures from them."""

    tags: dict[str, int] = field(default_factory=dict)
    added: int = 0
    blank: int = 0
    share: Share = field(default_factory=Share)
    mode: str = "unknown"


def of_commit(lines: list[AddedLine]) -> OfCommit:
    """Counts, share and mode of a commit's added lines. A commit that added none has no mode."""
    tags = Counter(line.tag for line in lines)
    share = share_of(authored(lines))
    return OfCommit(
        dict(sorted(tags.items())),
        len(lines),
        sum(line.is_blank for line in lines),
        share,
        mode_of(share.low, share.high),
    )


def authored(lines: list[AddedLine]) -> Counter[str]:
    """Lines by tag: those that are not blank and that somebody wrote."""
    return Counter(line.tag for line in lines if not line.is_blank and line.tag not in NOBODY)


def share_of(tags: Counter[str]) -> Share:
    """The interval [surely an agent's, not surely a person's] of authored lines (design/attribution.md#replay)."""
    n = sum(tags.values())
    if not n:
        return Share()
    sure = sum(tags[t] for t in SURE)
    human = tags["human_observed"]
    likely = sum(tags[t] for t in AGENT)
    # Nobody knows whose the unknown lines are: left out, they would seem to be shared as the others are.
    estimate = (likely + tags["unknown"] / 2) / n if likely + human else None
    return Share(sure / n, (n - human) / n, estimate, n, tags["unknown"])


def mode_of(low: float | None, high: float | None) -> str:
    """`human_only`, `collaborative` or `vibe`; `unknown` where the interval reaches over a border."""
    if low is None or high is None:
        return "unknown"
    names = {_mode(low), _mode(high)}
    return names.pop() if len(names) == 1 else "unknown"


def recorded_mode(attributed: Attributed | None) -> str:
    """The mode by Entire's own percentage."""
    percent = attributed.agent_percentage if attributed is not None else None
    return "unknown" if percent is None else _mode(percent / 100)


def _mode(share: float) -> str:
    return "human_only" if share <= 0 else "vibe" if share >= VIBE_FROM else "collaborative"
