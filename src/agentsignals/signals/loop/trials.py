"""Trials: what their attempts came to, put together over all attempts in the store (llm-emotions, Agent Signals)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from agentsignals.catalog import Measured, ratio, signal
from agentsignals.model import Absent
from agentsignals.redaction import redacted
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView

_TREATMENT = (
    "agent_type", "attempt1_tool_cap", "concurrency", "condition", "dataset", "model_id", "retry_tool_cap", "timeout_s",
)  # fmt: skip
_KNOB_CHARS = 200
_MOST = 10**15
"""A larger cap is none."""


@signal(
    "loop.attempt_result",
    type="obj",
    unit="row",
    context="eval",
    level="attempt",
    origin="this project",
    source="harness",
    harness=True,
    version=2,
    pitfalls="For adding up over attempts; each of its parts is a signal of its own, which says why it is missing.",
    why="Figures over trials (recovery, cost of a solved task) are made of these.",
)
def attempt_result(  # noqa: PLR0913  (each is a signal of its own that it puts together)
    view: SessionView,
    why: Evidence,
    reward: float | Absent,
    visible_pass: bool | Absent,
    hidden_pass: bool | Absent,
    task_pass: bool | Absent,
    cost_usd: float | Absent,
    model_id: str | Absent,
    agent_type: str | Absent,
) -> dict[str, Any] | Absent:
    """What the attempt came to: its trial and place in it, reward, tests passed, cost, whether its code parses, and
    under which treatment."""
    attempt = view.session.attempt
    if attempt is None or attempt.trial_id is None:
        return Absent("missing_artifact", "result_json")
    why.support(attempt.statements)
    knobs = {**attempt.knobs, "model_id": _or_none(model_id), "agent_type": _or_none(agent_type)}
    valid = (attempt.ratings or {}).get("valid_python")
    settings = [f"{name}={_short(knobs[name])}" for name in _TREATMENT if knobs.get(name) is not None]
    return {
        "trial": attempt.trial_id,
        "attempt_index": attempt.attempt_index or 0,
        "reward": _or_none(reward),
        "visible": _or_none(visible_pass),
        "hidden": _or_none(hidden_pass),
        "task": _or_none(task_pass),
        "valid": valid if isinstance(valid, bool) else None,
        "cost_usd": _or_none(cost_usd),
        "treatment": "; ".join(settings),
    }


@signal(
    "loop.retry_recovery",
    type="float",
    unit="ratio",
    context="eval",
    level="corpus",
    origin="llm-emotions",
    source="derived",
    priority="P1",
    pitfalls="Depends on how many retries were allowed: `retried` of the `den` trials had one at all.",
    why="Tells better recovery from better first attempts.",
)
def retry_recovery(attempt_result: list[dict[str, Any]]) -> Measured | Absent:
    """Trials that fail their first attempt and pass on a later one / trials that fail their first attempt."""
    trials = list(_trials(attempt_result))
    failed = [t for t in trials if _first_outcome(t) is False]
    at = [next((a["attempt_index"] for a in t[1:] if _outcome(a)), None) for t in failed]
    recovered = sorted(n for n in at if n is not None)
    by_attempt = [bisect_right(recovered, k) for k in range(recovered[-1] + 1)] if recovered else []
    visible = [t for t in trials if t[0]["attempt_index"] == 0 and t[0]["visible"] is False]
    return ratio(
        len(recovered),
        len(failed),
        retried=len([t for t in failed if len(t) > 1]),
        unknown_first=len([t for t in trials if _first_outcome(t) is None]),
        recovered_by_attempt=by_attempt,
        visible={"num": len([t for t in visible if any(a["visible"] for a in t[1:])]), "den": len(visible)},
    )


@signal(
    "loop.hidden_pass_rate",
    type="float",
    unit="ratio",
    context="eval",
    level="corpus",
    origin="llm-emotions",
    source="derived",
    priority="P1",
    status="needs an artifact",
    pitfalls="Look at the gap to the visible tests attempt by attempt too.",
)
def hidden_pass_rate(attempt_result: list[dict[str, Any]]) -> Measured | Absent:
    """Trials whose last attempt passes the hidden tests / trials with hidden tests."""
    ends = [t[-1] for t in _trials(attempt_result) if t[-1]["hidden"] is not None]
    pass_rates = {f"{name}_pass_rate": _share([a[name] for a in ends]) for name in ("visible", "task")}
    return ratio(len([a for a in ends if a["hidden"]]), len(ends), **pass_rates)


@signal(
    "loop.visible_hidden_gap",
    type="float",
    unit="difference",
    context="eval",
    level="corpus",
    origin="llm-emotions",
    source="derived",
    priority="P1",
    status="needs an artifact",
    pitfalls="Small where hidden tests resemble the visible ones.",
    why="Code fitted to the tests it was shown.",
)
def visible_hidden_gap(attempt_result: list[dict[str, Any]]) -> Measured | Absent:
    """Share of trials whose last attempt passes the visible tests minus the share that passes the hidden ones."""
    ends = [t[-1] for t in _trials(attempt_result) if t[-1]["hidden"] is not None and t[-1]["visible"] is not None]
    if not ends:
        return Absent("not_computable", "zero_denominator")
    more = len([a for a in ends if a["visible"]]) - len([a for a in ends if a["hidden"]])
    return Measured(more / len(ends), {"num": more, "den": len(ends)})


def _short(knob: object) -> str:
    """A setting as configured, of a harmless length; masked first, since no rule knows what was cut."""
    if type(knob) is int and abs(knob) > _MOST:
        return "unlimited"
    return _masked(str(knob))[:_KNOB_CHARS] if type(knob) in (str, int, float, bool) else type(knob).__name__


_masked = lru_cache(maxsize=1024)(redacted)
"""All attempts of a run have the same settings."""


def _or_none(value: Any) -> Any:
    return None if isinstance(value, Absent) else value


def _trials(attempts: Iterable[dict[str, Any]]) -> Iterable[list[dict[str, Any]]]:
    """The attempts of each trial in order."""
    trials: dict[str, list[dict[str, Any]]] = {}
    for attempt in attempts:
        trials.setdefault(attempt["trial"], []).append(attempt)
    return [sorted(t, key=lambda a: int(a["attempt_index"])) for _, t in sorted(trials.items())]


def _outcome(attempt: dict[str, Any]) -> bool | None:
    """Whether the attempt solved the task: by its tests, else by its reward."""
    if attempt["task"] is not None:
        return bool(attempt["task"])
    return None if attempt["reward"] is None else attempt["reward"] == 1


def _first_outcome(trial: list[dict[str, Any]]) -> bool | None:
    return _outcome(trial[0]) if trial[0]["attempt_index"] == 0 else None


def _share(flags: list[Any]) -> float | None:
    outcomes = [bool(f) for f in flags if f is not None]
    return sum(outcomes) / len(outcomes) if outcomes else None
