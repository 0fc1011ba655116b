"""How often `watch` is right when it calls something a loop, as `benchmarks.loops` measured.

`loops.json` beside this file is written by it, never by hand: the limits, chosen on one half of the sessions, and the
figures, from the other half.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec
from msgspec import Struct

from agentsignals.stats.validation import HALF, Interval, share_text


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
    return msgspec.json.decode(files("agentsignals.stats.validation").joinpath("loops.json").read_bytes(), type=Loops)


# How much of planted weak code our rules of `scan` find, by language, as `benchmarks.weaknesses` measured.
#
# `planted_recall.json` beside this file is written by it, never by hand. What is planted was written for this: the
# shares are of that code, and of no code in the world.

CAVEAT = (
    "Recall and precision are of weak code and safe twins that were planted for this (`benchmarks/weaknesses.toml`):"
    " they say what the rules miss, and no share of real code. No interval covers how the planted code was chosen."
)


class PlantedRecallFigure(Struct, frozen=True, kw_only=True):
    """What a scanner says of the planted code of one language. Intervals are Wilson's, of 95 percent."""

    language: str
    weak: int
    """Texts with a weakness."""
    detected: int
    """Those of which a finding names the weakness, or a parent, child or neighbour of it in the CWE list."""
    recall_interval: Interval
    safe: int
    """Texts that look alike and have none."""
    flagged: int
    """Those of which a finding names it all the same."""
    precision_interval: Interval | None
    """Of the found among found and flagged; None where there are neither."""
    missed: list[str]
    """Weaknesses planted of which none was found."""

    @property
    def recall(self) -> str:
        """The share that was found, in words."""
        return f"{self.detected}/{self.weak} {share_text(self.detected / self.weak, self.recall_interval)}"

    @property
    def precision(self) -> str:
        """The share of what is named that is so, in words."""
        named = self.detected + self.flagged
        return (
            f"{self.detected}/{named} {share_text(self.detected / named if named else None, self.precision_interval)}"
        )


class Figures(Struct, frozen=True, kw_only=True):
    """Of one scanner in the version that was measured."""

    scanner: str
    version: str
    languages: list[PlantedRecallFigure]

    def of(self, scanner: str, version: str, language: str) -> PlantedRecallFigure | None:
        """Those of a language; None where none were planted, or of a scanner or version that was not measured."""
        if (scanner, version) != (self.scanner, self.version):
            return None
        return next((figure for figure in self.languages if figure.language == language), None)


@cache
def figures() -> Figures:
    """As the package ships them."""
    data = files("agentsignals.stats.validation").joinpath("planted_recall.json").read_bytes()
    return msgspec.json.decode(data, type=Figures)
