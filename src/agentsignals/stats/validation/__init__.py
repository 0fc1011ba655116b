"""How often a signal that claims a meaning was right where the truth is at hand, as `agentsignals validate` measured.

`figures.json` beside this file is written by `agentsignals validate --write`, never by hand; a figure keeps the version
of the signal that it was measured with. `planted/<family>.json` holds made-up sessions whose truth is as written.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from agentsignals.stats.intervals import wilson

Interval = tuple[float, float]
NEVER_VALIDATED = "never validated"
HALF = 0.5
"""A class that is named wrongly more often than rightly carries no headline."""


class Figure(Struct, frozen=True, kw_only=True):
    """One class of a signal against one truth. Shares are None where there is nothing to divide by."""

    signal: str
    version: int
    """Of the signal, when it was measured."""
    value: str
    """The class."""
    truth: str
    """`planted`, or the gold file's name and who labelled it."""
    n: int
    """Things that both judged."""
    named: int
    """How many of them the signal calls so."""
    true: int
    """How many are so."""
    precision: float | None
    precision_interval: Interval | None
    recall: float | None
    recall_interval: Interval | None
    agreement: float
    """Share of the things that both call the same, over all classes."""
    agreement_interval: Interval | None
    kappa: float | None
    """Cohen's over all classes."""

    @property
    def misleads(self) -> bool:
        """Whether what it calls so mostly is not."""
        return self.precision is not None and self.precision < HALF

    def text(self) -> str:
        """The class's shares in words."""
        precision = f"precision {share_text(self.precision, self.precision_interval)}"
        return f"{self.value} {precision}, recall {share_text(self.recall, self.recall_interval)}"


class Case(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A made-up session: its parts in order (a kind and a text each), the records of its log, or what its harness tells
    of it; and what is true of it."""

    says: str
    parts: list[list[str]] = []
    records: list[dict[str, Any]] = []
    attempt: dict[str, Any] | None = None
    """Fields of a `model.attempt.Attempt`."""
    truth: str | None
    """The class; None where nothing can be said."""


class Planted(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The planted cases of one signal."""

    signal: str
    cases: list[Case]
    format: str = ""
    """Of the records."""
    before: list[dict[str, Any]] = []
    """Records that each log begins with."""
    yes_from: float | None = None
    """Of a number: from where on it says `yes`."""


@cache
def figures() -> tuple[Figure, ...]:
    """What was measured, by signal."""
    text = (Path(__file__).parent / "figures.json").read_bytes()
    return tuple(msgspec.json.decode(text, type=list[Figure]))


@cache
def planted() -> tuple[Planted, ...]:
    """The planted cases, a file a signal family."""
    files = sorted((Path(__file__).parent / "planted").glob("*.json"))
    return tuple(family for file in files for family in msgspec.json.decode(file.read_bytes(), type=list[Planted]))


def validation_text(  # noqa: PLR0913  (what is asked about, and how much is to be said)
    signal: str, version: int, needs: Sequence[str], *, basis: str, classes: Sequence[str] = (), brief: bool = False
) -> str:
    """What was measured of a signal; of one that claims a meaning else that nothing was, and of which of its needs
    something was. Empty for one whose `basis` is the record. Of what a `judge` does the rules were measured.

    `version`: the signal's of today, to say where a figure is of another. `brief`: against the largest truth alone, of
    the `classes` that a number is of, or of its weakest.
    """
    measured = figures_of(signal)
    if measured or basis == "record":
        by_truth: dict[str, list[Figure]] = {}
        for figure in measured:
            by_truth.setdefault(figure.truth, []).append(figure)
        truths = sorted(by_truth.values(), key=lambda of_truth: -of_truth[0].n)[: 1 if brief else None]
        shown = [_shown(of_truth, classes) if brief else of_truth for of_truth in truths]
        return "; ".join(_against(of_truth, version, basis) for of_truth in shown)
    through = [need for need in needs if figures_of(need)]
    return NEVER_VALIDATED + (f"; rests on {', '.join(through)}" if through else "")


def _shown(of_truth: list[Figure], classes: Sequence[str]) -> list[Figure]:
    """The classes asked for, else the one that is named wrongly most often."""
    weakest = min(of_truth, key=lambda figure: (figure.precision is None, figure.precision, figure.recall))
    return [figure for figure in of_truth if figure.value in classes] or [weakest]


def _against(shown: Sequence[Figure], version: int, basis: str) -> str:
    """Classes of one signal against one truth."""
    first = shown[0]
    both = "by rules: " * (basis == "judge")
    both += f"agreement {share_text(first.agreement, first.agreement_interval)}"
    both += "" if first.kappa is None else f", kappa {first.kappa:.2f}"
    older = "" if version == first.version else f", measured with version {first.version}"
    return f"{both} (n {first.n}, {first.truth}{older}): {', '.join(figure.text() for figure in shown)}"


def misleads(signal: str, classes: Sequence[str] = ()) -> bool:
    """Whether one of the classes that a number is of (else any) is mostly named wrongly, against the largest truth."""
    measured = figures_of(signal)
    most = max((figure.n for figure in measured), default=0)
    return any(f.misleads for f in measured if f.n == most and (not classes or f.value in classes))


def figures_of(signal: str) -> list[Figure]:
    """Those of one signal; none where it was never validated."""
    return [figure for figure in figures() if figure.signal == signal]


def share_text(share: float | None, interval: Interval | None) -> str:
    """A share with its interval, in percent."""
    if share is None:
        return "–"
    return f"{share:.0%}" + (f" [{interval[0]:.0%}, {interval[1]:.0%}]" if interval else "")


# How much to think of the verdicts on passes: what they were worth on hacks nobody had in mind (docs/audit.md).

HACKS: Final = 136
"""Passed runs of the second, blind set in which a hack was planted; as many are honest twins:
`python -m benchmarks.stories.measure FOLDER second all`."""
FLAGGED: Final = 70
CANNOT_TELL: Final = 32
FALSE_ALARMS: Final = 4
"""Honest runs that are flagged."""


def _share(n: int) -> str:
    low, high = wilson(n, HACKS) or (0.0, 1.0)
    return f"{100 * n / HACKS:.0f} % [{100 * low:.0f}, {100 * high:.0f}]"


CAVEAT: Final = (
    f"Derived: nothing was found in what the trace keeps. Of {HACKS} hacks that another writer planted blind,"
    f" {_share(FLAGGED)} are flagged, {100 * CANNOT_TELL / HACKS:.0f} % cannot be told, and"
    f" {100 * (HACKS - FLAGGED - CANNOT_TELL) / HACKS:.0f} % are called derived; of as many honest runs"
    f" {_share(FALSE_ALARMS)} are flagged (docs/audit.md). What a model knows by heart is in no trace."
)
"""Stands beside every number that rests on them."""
