"""The knobs an eval run was given, as configured. An observed number of calls is no cap."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from agentsignals.model import Absent
from agentsignals.model.lazy import deferred_pattern
from agentsignals.signals import Measured, signals_with
from agentsignals.views.session import Evidence, SessionView

signal = signals_with(context="eval", level="attempt", source="harness", harness=True, origin="Agent Signals")

_UNLIMITED = frozenset(("", "0", "none", "null", "unlimited", "inf", "infinity", "auto", "off", "-1"))
_AMOUNT = deferred_pattern(r"(\d{1,15}(?:\.\d{1,9})?) ?([a-z]{0,7})")
_SECONDS = {"": 1.0, "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0, "ms": 0.001, "m": 60.0}
_SECONDS |= {"min": 60.0, "mins": 60.0, "minute": 60.0, "minutes": 60.0, "h": 3600.0, "hour": 3600.0, "hours": 3600.0}
_PLAIN = {"": 1.0}
_MOST = 10**15
"""A larger setting is no limit: it means that there is none."""
_RAW_CHARS = 80


def knob(name: str, unit: str, doc: str, *, units: Mapping[str, float] = _PLAIN, **facts: Any) -> None:
    """Declare a whole number that the run was given. No limit is not applicable; text that is no number can't be
    computed; both keep the raw setting. `units`: what a number with a unit is multiplied by."""

    def configured(view: SessionView, why: Evidence) -> Measured | Absent:
        attempt = view.session.attempt
        if attempt is None or name not in attempt.knobs:
            return Absent("missing_field", name)
        why.support(attempt.saying(f"knobs.{name}"))
        raw = attempt.knobs[name]
        value = _number(raw, units)
        if value is None:
            return Absent("not_computable", f"no_number: {_raw_text(raw)}")
        if not 0 < value < _MOST:
            return Absent("not_applicable", "unlimited" if raw is None else f"unlimited: {_raw_text(raw)}")
        amount = max(round(value), 1)
        detail: dict[str, Any] = {} if raw == amount else {"raw": raw if type(raw) is float else _raw_text(raw)}
        if f"knobs.{name}" in attempt.conflicts:
            detail["conflict"] = True
        return Measured(amount, detail)

    units_taken = "; numbers with ms, s, m, min, h or such a word are converted" if len(units) > 1 else ""
    signal(f"treatment.{name}", "int", unit, doc=doc, computation=f"The knob {name}{units_taken}.", **facts)(configured)


def _number(raw: Any, units: Mapping[str, float]) -> float | None:
    """Return a setting in base units, 0 where it sets no limit; None where it is no number."""
    if raw is None:
        return 0
    if type(raw) is int or (type(raw) is float and not math.isnan(raw)):
        return raw
    if type(raw) is not str or len(raw) > _RAW_CHARS:
        return None
    text = raw.strip().lower()
    if text in _UNLIMITED:
        return 0
    match = _AMOUNT.fullmatch(text)
    factor = units.get(match[2]) if match else None
    return float(match[1]) * factor if match and factor is not None else None


def _raw_text(raw: Any) -> str:
    if type(raw) is int and abs(raw) >= _MOST:
        return "more than anyone counts"
    from agentsignals.redaction import redacted  # noqa: PLC0415  (loaded where a value is asked for, not in each run)

    # Masked before it is cut: no rule recognises half a key.
    return redacted(str(raw))[:_RAW_CHARS] if type(raw) in (str, int, float, bool) else type(raw).__name__


knob(
    "attempt1_tool_cap",
    "tool_calls",
    """Most tool calls that the trial's first attempt was allowed; said on its retries too.

    Pitfalls: Agents with different budgets can't be compared: group by `effective_tool_cap` of the attempts.
    Why: How far the agent was allowed to explore.
    """,
)
knob(
    "retry_tool_cap",
    "tool_calls",
    """Most tool calls that a retry was allowed; said on the first attempt too.

    Pitfalls: Retries usually get more: their success means nothing without this.
    """,
)
knob(
    "concurrency",
    "containers",
    """Containers that ran at the same time, as configured.

    Pitfalls: Loads the inference server: explains differences of wall time between runs.
    """,
    priority="P1",
)
knob(
    "timeout_s",
    "seconds",
    """Seconds after which the container was stopped, as configured; `raw` where that was in another unit.

    Pitfalls: A short limit lowers the share solved of tasks with slow test suites (Sphinx needs 50 minutes and more).
    """,
    units=_SECONDS,
)


@signal("treatment.agent_type", "str", "label")
def agent_type(view: SessionView, why: Evidence) -> Measured | Absent:
    """The scaffold that drove the model: the knob agent_type in lower case (one-shot, subq, mini-swe-agent …).

    Pitfalls: Harnesses often write it into the log of the run only, from where it is carried to the attempts.
    """
    name, detail = _configured_name(view, why, "agent_type")
    if not name:
        return Absent("missing_field", "agent_type")
    if name != name.lower():
        detail["raw"] = name
    return Measured(name.lower(), detail)


@signal("treatment.model_id", "str", "label")
def model_id(view: SessionView, why: Evidence) -> Measured | Absent:
    """The model in full: the knob model_id, else the commonest `model` of the main thread's `steps`, without
    `<synthetic>`.

    Pitfalls: Two snapshots of one family are two models, and `provider/model` is not `model`: nothing is shortened.
    """
    name, detail = _configured_name(view, why, "model_id")
    answering = [s for s in view.steps if s.model and s.model != "<synthetic>"]
    observed = Counter(str(s.model) for s in answering)
    answers_to = {o.rpartition("/")[2] for o in observed}  # the provider aside
    if len(observed) > 1 or (name and observed and answers_to != {name.rpartition("/")[2]}):
        detail["observed"] = dict(observed.most_common())
    if name:
        return Measured(name, {"method": "configured", **detail})
    if not observed:
        return Absent("missing_field", "model_id")
    why.support(answering, "answered")
    return Measured(observed.most_common(1)[0][0], {"method": "observed", **detail})


@signal("treatment.dataset", "str", "name@version")
def dataset(view: SessionView, why: Evidence) -> Measured | Absent:
    """Name and version of the dataset the task is from: the knob dataset.

    Pitfalls: Datasets differ in difficulty: never pool without it.
    """
    name, detail = _configured_name(view, why, "dataset")
    if not name:
        return Absent("missing_field", "dataset")
    if "@" not in name:
        detail["version_missing"] = True
    return Measured(name, detail)


def _configured_name(view: SessionView, why: Evidence, knob: str) -> tuple[str, dict[str, Any]]:
    """Return a configured name, empty when there is none, and a mark when two places differ."""
    attempt = view.session.attempt
    raw = attempt.knobs.get(knob) if attempt is not None else None
    if attempt is None or not isinstance(raw, str):
        return "", {}
    why.support(attempt.saying(f"knobs.{knob}"))
    return raw.strip(), {"conflict": True} if f"knobs.{knob}" in attempt.conflicts else {}
