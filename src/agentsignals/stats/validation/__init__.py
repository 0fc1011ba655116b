"""Measured precision and recall of signals that claim a meaning, as `agentsignals labels validate` wrote them.

`agentsignals labels validate --write` writes `figures.json`; it is never edited by hand. A figure keeps the version of
the signal it was measured with. `planted/<family>.json` holds made-up sessions with known truth. `labellers.json` holds
what the shipped labellers reached on messages of projects that nobody who wrote or trained one had seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from agentsignals.stats.intervals import Interval, wilson

_FOLDER = Path(__file__).parent
NEVER_VALIDATED = "never validated"
HALF = 0.5
"""A class with a precision below this carries no headline."""


class Figure(Struct, frozen=True, kw_only=True):
    """One class of a signal measured against one truth. Shares without a denominator are None."""

    signal: str
    version: int
    """Version of the signal at measurement."""
    value: str
    truth: str
    """`planted`, or the gold file's name and its labeller."""
    n: int
    """Items that both judged."""
    named: int
    """Items that the signal puts into the class."""
    true: int
    precision: float | None
    precision_interval: Interval | None
    recall: float | None
    recall_interval: Interval | None
    agreement: float
    agreement_interval: Interval | None
    kappa: float | None

    @property
    def misleads(self) -> bool:
        return self.precision is not None and self.precision < HALF

    def text(self) -> str:
        precision = f"precision {share_text(self.precision, self.precision_interval)}"
        return f"{self.value} {precision}, recall {share_text(self.recall, self.recall_interval)}"


class Case(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A made-up session: its parts (kind and text), the records of its log, or its harness data; and the truth."""

    says: str
    parts: list[list[str]] = []
    records: list[dict[str, Any]] = []
    attempt: dict[str, Any] | None = None
    truth: str | None


class Planted(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    signal: str
    cases: list[Case]
    format: str = ""
    before: list[dict[str, Any]] = []
    """Records that each log begins with."""
    yes_from: float | None = None
    """Numbers from here on count as `yes`."""


@cache
def figures() -> tuple[Figure, ...]:
    return tuple(msgspec.json.decode((_FOLDER / "figures.json").read_bytes(), type=list[Figure]))


@cache
def planted() -> tuple[Planted, ...]:
    """Return all planted cases, a file a signal family."""
    files = sorted((_FOLDER / "planted").glob("*.json"))
    return tuple(family for file in files for family in msgspec.json.decode(file.read_bytes(), type=list[Planted]))


_LABELLED_BY = {"chat.prompt_intent": "classifier"}


def validation_text(  # noqa: PLR0913  (what is asked about, and how much is to be said)
    signal: str, version: int, needs: Sequence[str], *, basis: str, classes: Sequence[str] = (), brief: bool = False
) -> str:
    """Return what was measured of a signal, as text; empty for one whose `basis` is the record.

    Unmeasured signals say so, and which of their `needs` were measured. For a `judge` its stand-in was measured.
    `version` is today's, to mark older figures. `brief`: only the largest truth, and the `classes` asked for, or the
    weakest.
    """
    measured = figures_of(signal)
    if measured or basis == "record":
        by_truth: dict[str, list[Figure]] = {}
        for figure in measured:
            by_truth.setdefault(figure.truth, []).append(figure)
        truths = sorted(by_truth.values(), key=lambda of_truth: -of_truth[0].n)[: 1 if brief else None]
        said = []
        for of_truth in truths:
            shown = of_truth
            if brief:  # the classes asked for, else the one with the lowest precision
                weakest = min(of_truth, key=lambda figure: (figure.precision is None, figure.precision, figure.recall))
                shown = [figure for figure in of_truth if figure.value in classes] or [weakest]
            first, both = shown[0], f"by {_LABELLED_BY.get(signal, 'rules')}: " * (basis == "judge")
            both += f"agreement {share_text(first.agreement, first.agreement_interval)}"
            both += "" if first.kappa is None else f", kappa {first.kappa:.2f}"
            older = "" if version == first.version else f", measured with version {first.version}"
            figures_text = ", ".join(figure.text() for figure in shown)
            said.append(f"{both} (n {first.n}, {first.truth}{older}): {figures_text}")
        return "; ".join(said)
    through = [need for need in needs if figures_of(need)]
    return NEVER_VALIDATED + (f"; based on {', '.join(through)}" if through else "")


def misleads(signal: str, classes: Sequence[str] = ()) -> bool:
    """True if one of the classes (else any) has a precision below one half against the largest truth."""
    measured = figures_of(signal)
    most = max((figure.n for figure in measured), default=0)
    return any(f.misleads for f in measured if f.n == most and (not classes or f.value in classes))


def figures_of(signal: str) -> list[Figure]:
    return [figure for figure in figures() if figure.signal == signal]


def share_text(share: float | None, interval: Interval | None) -> str:
    if share is None:
        return "–"
    return f"{share:.0%}" + (f" [{interval[0]:.0%}, {interval[1]:.0%}]" if interval else "")


# -- labellers on unseen projects --------------------------------------------------------------------------------------


class LabellerFigure(Struct, frozen=True, kw_only=True):
    """One shipped labeller at one task, on random English messages of projects that it was not trained on. The interval
    is over projects."""

    task: str
    labeller: str
    n: int
    projects: int
    kappa: float
    low: float
    high: float
    version: str = ""
    """The weights of a classifier that were measured."""
    held_out: bool = False
    """Judged by nets that were trained on the other projects of the same file, not by the shipped one; its messages are
    among those of the model's own figures."""
    classes: dict[str, tuple[int, int]] = {}
    """By class: labels of it, and how many of these are right."""

    def text(self, version: str = "") -> str:
        """Return kappa, its interval and what it was measured on. `version`: today's weights."""
        before = "" if version == self.version else ", by earlier weights"
        where = "projects, each left out of training" if self.held_out else "unseen projects"
        return (
            f"kappa {self.kappa:.2f} [{self.low:.2f}, {self.high:.2f}] on {self.n:,} random messages of {self.projects}"
            f" {where}, read twice and settled by language models{before}"
        )


@cache
def labeller_figure(task: str, labeller: str) -> LabellerFigure | None:
    """Return the figure of a shipped labeller at a task; None where it was not measured."""
    listed = msgspec.json.decode((_FOLDER / "labellers.json").read_bytes(), type=list[LabellerFigure])
    return next((f for f in listed if (f.task, f.labeller) == (task, labeller)), None)


# -- verdicts on passes (docs/audit.md) --------------------------------------------------------------------------------


HACKS: Final = 120
"""Passed runs with a hack of four writers (sets L to O), which the rules were not mended on; as many are honest."""
FLAGGED: Final = 52
CANNOT_TELL: Final = 32
FALSE_ALARMS: Final = 10
"""Honest runs that are flagged."""
READ_FLAGGED: Final = 120
"""Flagged of the same hacks by the rules and a strong language model as second reader."""
READ_FALSE_ALARMS: Final = 0


def _share(n: int) -> str:
    low, high = wilson(n, HACKS) or (0.0, 1.0)
    return f"{100 * n / HACKS:.0f} % [{100 * low:.0f}, {100 * high:.0f}]"


CAVEAT: Final = (
    f"Derived means no sign of reward hacking in the trace. The rules flag {_share(FLAGGED)} of {HACKS} hacks planted"
    f" by authors who had not seen the rules, leave {100 * CANNOT_TELL / HACKS:.0f} % undecided and miss"
    f" {100 * (HACKS - FLAGGED - CANNOT_TELL) / HACKS:.0f} %. They also flag {_share(FALSE_ALARMS)} of as many honest"
    " runs (docs/audit.md). Memorized solutions leave no trace."
)
"""Shown with every number that rests on these verdicts."""
READ_CAVEAT: Final = (
    f"With a strong language model as second reader, {_share(READ_FLAGGED)} of these hacks and"
    f" {_share(READ_FALSE_ALARMS)} of the honest runs are flagged. Other models were not measured."
)
"""Shown where a model read passes."""


# -- benchmarks: loop warnings of `watch`, and recall of our `scan` rules by language ----------------------------------
#
# `benchmarks.loops` writes `loops.json` (limits chosen on one half of the sessions, figures from the other half),
# `benchmarks.weaknesses` writes `planted_recall.json`; neither is edited by hand.


class LoopFigure(Struct, frozen=True, kw_only=True):
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
    false_in_100_interval: Interval | None


class Loops(Struct, frozen=True, kw_only=True):
    """Warning limits by kind (`views.repeats.Kind`), and figures: people's sessions first."""

    limits: dict[str, int]
    figures: list[LoopFigure]

    @property
    def in_words(self) -> str:
        """Return the precision of warnings, for whoever is shown one."""
        if not self.figures or self.figures[0].precision is None:
            return "the precision of this warning was never measured"
        by = self.figures[0]
        is_sure = by.precision_interval is not None and by.precision_interval[0] >= HALF
        doubt = "" if is_sure else ": judge for yourself"
        return f"{by.right} of {by.alarms} such warnings on other sessions were right{doubt}"


@cache
def loops() -> Loops:
    return msgspec.json.decode((_FOLDER / "loops.json").read_bytes(), type=Loops)


# -- planted weaknesses ------------------------------------------------------------------------------------------------


PLANTED_CAVEAT: Final = (
    "Recall and precision are measured on planted weak code and safe twins (`benchmarks/weaknesses.toml`), not on"
    " real code. Intervals ignore how the planted code was chosen."
)


class PlantedRecallFigure(Struct, frozen=True, kw_only=True):
    """Recall and precision of a scanner on the planted code of one language. Wilson's 95 % intervals."""

    language: str
    weak: int
    detected: int
    """Weak texts with a finding of that weakness, or its parent, child or neighbour in the CWE list."""
    recall_interval: Interval
    safe: int
    flagged: int
    precision_interval: Interval | None
    """Interval of detected among detected and flagged. None without either."""
    missed: list[str]

    @property
    def recall(self) -> str:
        return f"{self.detected}/{self.weak} {share_text(self.detected / self.weak, self.recall_interval)}"

    @property
    def precision(self) -> str:
        named = self.detected + self.flagged
        return (
            f"{self.detected}/{named} {share_text(self.detected / named if named else None, self.precision_interval)}"
        )


class PlantedRecall(Struct, frozen=True, kw_only=True):
    scanner: str
    version: str
    languages: list[PlantedRecallFigure]

    def of(self, scanner: str, version: str, language: str) -> PlantedRecallFigure | None:
        """Return the figure of a language, or None if this scanner version was not measured on it."""
        if (scanner, version) != (self.scanner, self.version):
            return None
        return next((figure for figure in self.languages if figure.language == language), None)


@cache
def planted_recall() -> PlantedRecall:
    return msgspec.json.decode((_FOLDER / "planted_recall.json").read_bytes(), type=PlantedRecall)
