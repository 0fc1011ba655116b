"""What counts as an outcome: any signal of an attempt, as a yes or no, or as a number."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from agentsignals.catalog import by_path
from agentsignals.errors import UsageError

_LABEL = "verification.patch_outcome_label"
REWARD, OUTCOME = "verification.reward", "verification.outcome"
_SHORT = {"reward": REWARD, "patch_outcome_label": _LABEL}
UNKNOWN = ("not_judged", "infrastructure")
"""The rungs of the ladder on which no outcome is known."""
_TESTED = re.compile(r"([A-Za-z0-9_.\[\]]{1,120}) ?(>=|<=|=)(.{1,200})", re.DOTALL)
_TESTS: dict[str, Callable[[float, float], bool]] = {">=": operator.ge, "<=": operator.le, "=": operator.eq}
_WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
_NUMERIC = ("int", "float")
_MOST = 1e100


class OutcomeRule(Struct, frozen=True, kw_only=True):
    """How a signal's value becomes the outcome of an attempt."""

    name: str
    """As it was asked for."""
    signal: str
    """Its dotted path."""
    yes_or_no: bool
    """Outcomes are 1 and 0; else numbers, of which means are taken."""
    test: str = ""
    """`=`, `>=`, `<=`; empty: the value itself."""
    value: str = ""
    unknown: tuple[str, ...] = ()
    """Labels by which a judge says that it can't tell."""

    @property
    def more_is_better(self) -> bool:
        """Whether that much is sure of the outcome: it is what a verifier accepts."""
        accepted = self.test in ("", ">=") or self.value in ("1", "solved", "correct", "correct_patch")
        return self.signal in (REWARD, OUTCOME, _LABEL) and accepted

    def of(self, value: Any) -> float | str:
        """1 or 0, or the number; words where the value says neither."""
        if isinstance(value, str):
            return value if value in self.unknown else self._of_label(value)
        if not is_number(value):
            return "no number, label, or yes or no"
        if not self.test:
            return float(value)
        wanted = _WORDS.get(self.value.lower()) if isinstance(value, bool) else _number(self.value)
        return "of another type than asked for" if wanted is None else float(_TESTS[self.test](value, wanted))

    def of_attempt(self, value: Any, why: str, rung: str, reason: str) -> float | str:
        """The same of an attempt: what its rung on the ladder of outcomes decides comes before the value, which
        may be missing (`why`). `rung` is empty where there is none."""
        if self.signal in (REWARD, OUTCOME) and rung in UNKNOWN:
            return f"{rung.replace('_', ' ')}: {reason}"
        if value is not None:
            return self.of(value)
        if self.signal == REWARD and rung:
            return self.of(float(rung == "solved"))
        if (
            self.signal == _LABEL
            and rung == "failed"
            and (reason == "empty_patch" or "correct_patch".startswith(self.value))
        ):
            return 0.0
        return why

    def _of_label(self, value: str) -> float | str:
        if self.test != "=":
            return "a label, not a number"
        return float(value in (self.value, f"{self.value}_patch"))


def outcome_rule(name: str) -> OutcomeRule:
    """`reward` (solved at 1, as the harness's; anything else is not), `resolved` (solved by the reward, else by the
    tests); in both what was not judged, or broken off by the infrastructure, is unknown; or a signal of attempts:
    SIGNAL of a yes or no or a number, SIGNAL=VALUE, SIGNAL>=NUMBER, SIGNAL<=NUMBER. UsageError or CatalogError where
    it is none.
    """
    if name == "reward":
        return OutcomeRule(name=name, signal=_SHORT[name], yes_or_no=True, test="=", value="1")
    if name == "resolved":
        return OutcomeRule(name=name, signal=OUTCOME, yes_or_no=True, test="=", value="solved", unknown=UNKNOWN)
    tested = _TESTED.fullmatch(name.strip())
    path, test, value = (tested[1], tested[2], tested[3].strip()) if tested else (name.strip(), "", "")
    signal = by_path(_SHORT.get(path, path))
    if signal.context == "product" or signal.level not in ("attempt", "session"):
        raise UsageError(
            f"{signal.path} is no signal of attempts.", "`agentsignals inventory --context eval` lists them."
        )
    if test in (">=", "<=") and (_number(value) is None or signal.type not in _NUMERIC):
        raise UsageError(f"{test} is for numbers; {signal.path} is a {signal.type}.", f"{signal.path}=VALUE")
    if not test and signal.type not in (*_NUMERIC, "bool"):
        raise UsageError(
            f"{signal.path} is no number and no yes or no, but a {signal.type}.", f"Say {signal.path}=VALUE."
        )
    return OutcomeRule(
        name=name.strip(), signal=signal.path, yes_or_no=bool(test) or signal.type == "bool", test=test, value=value
    )


def decoded(value: str | None) -> Any:
    """A stored value; None of text that is no JSON, or nested without end."""
    try:
        return msgspec.json.decode(value) if value is not None else None
    except (msgspec.DecodeError, RecursionError):
        return None


def is_number(value: Any) -> bool:
    """Whether a decoded value is a number, or yes or no, that means can be taken of; sums of larger ones overflow."""
    return isinstance(value, bool | int | float) and -_MOST < value < _MOST


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
