"""How often `watch` is right when it calls something a loop, as `benchmarks.loops` measured.

`loops.json` beside this file is written by it, never by hand: the limits, chosen on one half of the sessions, and the
figures, from the other half.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec
from msgspec import Struct

from agentsignals.validation import HALF, Interval


class Figure(Struct, frozen=True, kw_only=True):
    """What the alarms on some sessions were worth. Shares are None where there is nothing to divide by."""

    of: str
    sessions: int
    alarms: int
    right: int
    precision: float | None
    precision_interval: Interval | None
    base: float | None
    """The share of all failed calls of which the same holds as of a right alarm."""
    lead_calls: float | None
    """Median over the right ones of the calls that were still made in vain."""
    lead_minutes: float | None
    false_in_100: float | None
    """Wrong alarms in a hundred sessions."""
    false_in_100_interval: Interval | None


class Loops(Struct, frozen=True, kw_only=True):
    """Limits by kind (`views.repeats.Kind`), and figures: first those of people's sessions."""

    limits: dict[str, int]
    figures: list[Figure]

    @property
    def may_block(self) -> bool:
        """Whether an alarm may stop a call: where it is right more often than wrong, by the low end of its interval."""
        interval = self.figures[0].precision_interval if self.figures else None
        return interval is not None and interval[0] >= HALF

    @property
    def in_words(self) -> str:
        """What an alarm is worth, for whoever is shown one."""
        if not self.figures or self.figures[0].precision is None:
            return "how often such a warning is right was never measured: judge for yourself"
        by = self.figures[0]
        doubt = "" if self.may_block else ": judge for yourself"
        return f"{by.right} of {by.alarms} such warnings on other sessions were borne out by what followed{doubt}"


@cache
def loops() -> Loops:
    """As the package ships them."""
    return msgspec.json.decode(files("agentsignals.validation").joinpath("loops.json").read_bytes(), type=Loops)
