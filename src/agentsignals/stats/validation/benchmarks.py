"""Benchmark results shipped with the package: `watch`'s loop warnings, and recall of our `scan` rules by language.

`benchmarks.loops` writes `loops.json` (limits chosen on one half of the sessions, figures from the other half),
`benchmarks.weaknesses` writes `planted_recall.json`; neither is edited by hand. Planted code was written for this, so
its shares do not hold for other code.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec
from msgspec import Struct

from agentsignals.stats.validation import HALF, Interval, share_text


class Figure(Struct, frozen=True, kw_only=True):
    """Precision of loop warnings on some sessions. Shares without a denominator are None."""

    of: str
    sessions: int
    alarms: int
    right: int
    precision: float | None
    precision_interval: Interval | None
    base: float | None
    """Share of all failed calls that meet the criterion of a right warning."""
    lead_calls: float | None
    """Median of the calls still made in vain after a right warning."""
    lead_minutes: float | None
    false_in_100: float | None
    """Wrong warnings per 100 sessions."""
    false_in_100_interval: Interval | None


class Loops(Struct, frozen=True, kw_only=True):
    """Warning limits by kind (`views.repeats.Kind`), and figures: people's sessions first."""

    limits: dict[str, int]
    figures: list[Figure]

    @property
    def may_block(self) -> bool:
        """True if a warning may stop a call: its precision is above one half, by the low end of the interval."""
        interval = self.figures[0].precision_interval if self.figures else None
        return interval is not None and interval[0] >= HALF

    @property
    def in_words(self) -> str:
        """Return the precision of warnings, for whoever is shown one."""
        if not self.figures or self.figures[0].precision is None:
            return "how often such a warning is right was never measured: judge for yourself"
        by = self.figures[0]
        doubt = "" if self.may_block else ": judge for yourself"
        return f"{by.right} of {by.alarms} such warnings on other sessions were borne out by what followed{doubt}"


@cache
def loops() -> Loops:
    """Return the limits and figures shipped with the package."""
    return msgspec.json.decode(files("agentsignals.stats.validation").joinpath("loops.json").read_bytes(), type=Loops)


# -- planted weaknesses ------------------------------------------------------------------------------------------------


CAVEAT = (
    "Recall and precision are of weak code and safe twins that were planted for this (`benchmarks/weaknesses.toml`):"
    " they say what the rules miss, and no share of real code. No interval covers how the planted code was chosen."
)


class PlantedRecallFigure(Struct, frozen=True, kw_only=True):
    """Recall and precision of a scanner on the planted code of one language. Wilson's 95 % intervals."""

    language: str
    weak: int
    """Planted texts with a weakness."""
    detected: int
    """Weak texts with a finding of that weakness, or its parent, child or neighbour in the CWE list."""
    recall_interval: Interval
    safe: int
    """Similar texts without a weakness."""
    flagged: int
    """Safe texts with such a finding."""
    precision_interval: Interval | None
    """Interval of detected among detected and flagged. None without either."""
    missed: list[str]
    """Planted weaknesses that were never found."""

    @property
    def recall(self) -> str:
        """Recall as text."""
        return f"{self.detected}/{self.weak} {share_text(self.detected / self.weak, self.recall_interval)}"

    @property
    def precision(self) -> str:
        """Precision as text."""
        named = self.detected + self.flagged
        return (
            f"{self.detected}/{named} {share_text(self.detected / named if named else None, self.precision_interval)}"
        )


class Figures(Struct, frozen=True, kw_only=True):
    """Figures of one scanner version."""

    scanner: str
    version: str
    languages: list[PlantedRecallFigure]

    def of(self, scanner: str, version: str, language: str) -> PlantedRecallFigure | None:
        """Return the figure of a language, or None if this scanner version was not measured on it."""
        if (scanner, version) != (self.scanner, self.version):
            return None
        return next((figure for figure in self.languages if figure.language == language), None)


@cache
def figures() -> Figures:
    """Return the figures shipped with the package."""
    data = files("agentsignals.stats.validation").joinpath("planted_recall.json").read_bytes()
    return msgspec.json.decode(data, type=Figures)
