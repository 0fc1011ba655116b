"""How much of planted weak code our rules of `scan` find, by language, as `benchmarks.weaknesses` measured.

`planted_recall.json` beside this file is written by it, never by hand. What is planted was written for this: the shares
are of that code, and of no code in the world.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec
from msgspec import Struct

from agentsignals.validation import Interval, share_text

CAVEAT = (
    "Recall and precision are of weak code and safe twins that were planted for this (`benchmarks/weaknesses.toml`):"
    " they say what the rules miss, and no share of real code. No interval covers how the planted code was chosen."
)


class Figure(Struct, frozen=True, kw_only=True):
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
    languages: list[Figure]

    def of(self, scanner: str, version: str, language: str) -> Figure | None:
        """Those of a language; None where none were planted, or of a scanner or version that was not measured."""
        if (scanner, version) != (self.scanner, self.version):
            return None
        return next((figure for figure in self.languages if figure.language == language), None)


@cache
def figures() -> Figures:
    """As the package ships them."""
    data = files("agentsignals.validation").joinpath("planted_recall.json").read_bytes()
    return msgspec.json.decode(data, type=Figures)
