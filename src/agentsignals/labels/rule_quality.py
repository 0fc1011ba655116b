"""How good the rules were found to be, said wherever they are used. A test computes these figures again."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from agentsignals.model import RULES

GOLD = "real messages as one language model read them, which is no gold of people's"
"""The development half of the gold set: 252 messages, 214 of them not their session's first
(design/labels.md#gold-set). The
rules were frozen before they met it."""


class Measured(Struct, frozen=True):
    """A labeller against other labels of the same messages."""

    on: str
    n: int
    agreement: float
    kappa: float
    """Cohen's."""
    per_class: dict[str, dict[str, Any]]
    """precision, recall and n (how many there are) of each class; null where there is nothing to divide by."""

    def text(self) -> str:
        """In a line."""
        classes = "; ".join(
            f"{name} precision {_percent(c['precision'])}, recall {_percent(c['recall'])} (n {c['n']})"
            for name, c in self.per_class.items()
        )
        return f"agreement {self.agreement:.0%}, kappa {self.kappa:.2f} on {self.n} {self.on}: {classes}"


def measured(task: str, labeller: str) -> Measured | None:
    """The figures of a labeller at a task; None where nobody measured."""
    return _RULES.get(task) if labeller == RULES else None


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def _of(n: int, agreement: float, kappa: float, **classes: tuple[float | None, float | None, int]) -> Measured:
    by_class = {name: {"precision": p, "recall": r, "n": k} for name, (p, r, k) in classes.items()}
    return Measured(GOLD, n, agreement, kappa, by_class)


_RULES: dict[str, Measured] = {
    "sentiment": _of(
        252,
        0.901,
        0.554,
        NEGATIVE=(1.0, 0.19, 21),
        NEUTRAL=(0.905, 0.986, 212),
        POSITIVE=(0.824, 0.737, 19),
    ),
    "pushback": _of(
        214,
        0.603,
        0.092,
        correction=(0.833, 0.067, 75),
        failure_report=(0.4, 0.154, 13),
        non_pushback=(0.599, 0.968, 125),
        rejection=(1.0, 1.0, 1),
    ),
    "prompt_intent": _of(
        252,
        0.357,
        0.234,
        connect=(0.0, 0.0, 5),
        create_new_code=(0.36, 0.281, 32),
        debug=(0.857, 0.2, 60),
        git=(0.467, 0.737, 19),
        other=(0.231, 0.5, 42),
        refactor=(0.0, 0.0, 24),
        test=(0.636, 0.35, 20),
        understand=(0.346, 0.54, 50),
    ),
}
