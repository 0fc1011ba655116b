"""How a session failed, if it did: a decision tree over other signals (design/signals.md#failure-mode)."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import Any

from agentsignals.catalog import Measured, signal
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView, target_file
from agentsignals.words.lexicon import ACTIONS
from agentsignals.words.text import lowered

STALE_CALLS = 4
REPEATED = 0.20
"""Nearly twice the 98th percentile of repetition (design/signals.md#failure-mode); one to three stale calls are a
habit, four a loop."""
FEW_CALLS, FEW_FILE_CALLS = 10, 9
CORRECTED = 0.20
NEAR_TURNS = 3
GOALS, PLAN_STEPS = 3, 8
MANY_FILES, AT_ONCE = 4, 0.7
SOME_CORRECTED, SOME_PUSHBACK = 0.15, 0.25
FAR = 0.45
DRIFT, UNREQUESTED, NEW_FILES = 2.0, 3, 3
MOST_NULL = 2
_CORE = ("cp_curve", "correction_ratio", "repetition_rate", "scope_drift", "assumption_lock_turn")
_EXPECTED = frozenset(("none_found", "not_applicable"))
_SEARCHED = 4000
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.S)
_LISTED = re.compile(r"\n[ \t]{0,6}(?:[-*\u2022]|\d{1,2}[.)])[ \t]+\S")
_CLAUSE = re.compile(r"[.!?;\n]|,? (?:and|then)(?: then| also)? |, ")
_WORD = re.compile(
    r"\W*(?:(?:please|can you|could you|also|then|now|finally|i want you to|we should|let's)\b\W*){0,3}(\w+)"
)


@signal(
    "dynamics.session_failure_mode",
    basis="heuristic",
    type="enum",
    unit="label",
    origin="Agent Signals",
    source="derived",
    priority="P1",
    why="One word for how a session went wrong, with the reasons kept: where to look first.",
    pitfalls="shifted_intent is no failure of the agent: the person moved on. Look at `confidence`: scope is told by"
    " the files that are named, intent by counted words. Clean says that nothing matched, not that the work was good.",
)
def session_failure_mode(  # noqa: PLR0913  (the parameters are the needs of the signal)
    view: SessionView,
    why: Evidence,
    user_turn_count: int,
    cp_curve: list[float | None] | Absent,
    correction_ratio: float | Absent,
    repetition_rate: float | Absent,
    repeated_calls: dict[str, Any],
    assumption_lock_turn: int | Absent,
    scope_drift: float | Absent,
    unrequested_files: dict[str, Any] | Absent,
    conflation_turn: int | Absent,
    pushback_rate: float | Absent,
    plan_steps_detected: int | Absent,
    objections: dict[str, list[int]] | Absent,
    vectors: Any,
) -> Measured | Absent:
    """stuck_loop, assumption_locked, multi_intent_confusion, shifted_intent or scope_bleed: the first whose condition
    holds; else clean."""
    if not view.steps and not any(view.responses):
        return Absent("not_applicable", "no_response")
    core = (cp_curve, correction_ratio, repetition_rate, scope_drift, assumption_lock_turn)
    missing = [n for n, v in zip(_CORE, core, strict=True) if isinstance(v, Absent) and v.reason not in _EXPECTED]
    if len(missing) > MOST_NULL:
        return Absent("dependency_null", ", ".join(missing))
    corrected = _number(correction_ratio)
    at = [] if isinstance(objections, Absent) else objections["corrections"]
    away = [] if isinstance(cp_curve, Absent) else _far_turns(cp_curve)
    pushed = _number(pushback_rate)
    troubled = corrected >= SOME_CORRECTED or pushed >= SOME_PUSHBACK
    strayed = 0 if isinstance(unrequested_files, Absent) else unrequested_files["n"]
    drifted = user_turn_count > 1 and _number(scope_drift) > DRIFT and strayed >= UNREQUESTED
    locked = not isinstance(assumption_lock_turn, Absent)
    predicates = {
        "stuck_loop": _is_stuck(view, repeated_calls["stale_max"], _number(repetition_rate)),
        "assumption_locked": locked or (corrected >= CORRECTED and any(b - a <= NEAR_TURNS for a, b in pairwise(at))),
        "multi_intent_confusion": troubled and _is_wide(view) and _is_manifold(view, plan_steps_detected),
        "shifted_intent": bool(away) and not isinstance(correction_ratio, Absent) and corrected < CORRECTED,
        "scope_bleed": drifted and (not isinstance(conflation_turn, Absent) or _spreads_late(view)),
    }
    candidates = [name for name, holds in predicates.items() if holds]
    label = candidates[0] if candidates else "clean"
    why.rule(f"{label}: {', '.join(candidates) or 'no condition'} holds; the order is {', '.join(predicates)}")
    for turns, note in ((frozenset(at), "correction:"), (frozenset(away), f"CP {FAR} or more:")):
        why.support([t for t in view.turns if t.turn in turns], note)
    why.denominator(view.turns)
    detail: dict[str, Any] = {"predicates": {**predicates, "clean": not candidates}}
    detail["stale_max"] = repeated_calls["stale_max"]
    if missing:
        detail["missing"] = missing
    if len(candidates) > 1:
        detail["candidates"] = candidates
    weak = label == "stuck_loop" and repeated_calls["stale_max"] < STALE_CALLS
    detail["confidence"] = "low" if weak else _confidence(label, candidates, vectors)
    return Measured(label, detail)


def _confidence(label: str, candidates: list[str], vectors: Any) -> str:
    """Files named in words are a weak measure of scope, and counted words one of intent."""
    if label == "scope_bleed" or (label == "shifted_intent" and getattr(vectors, "confidence", "low") == "low"):
        return "low"
    return "medium" if len(candidates) > 1 else "high"


def _number(value: float | Absent) -> float:
    return 0.0 if isinstance(value, Absent) else value


def _far_turns(curve: list[float | None]) -> list[int]:
    """The turns far from the request next to another such."""
    far = {n for n, v in enumerate(curve) if v is not None and v >= FAR}
    return [n for n in sorted(far) if n - 1 in far or n + 1 in far]


def _is_stuck(view: SessionView, stale: int, repeated: float) -> bool:
    """Equal calls without an edit between them, or much repeated while the last third of the calls about files is about
    no new one. Something must have been repeated in vain: tests run again after each edit are how work is done.
    """
    if stale >= STALE_CALLS:
        return True
    if stale < 2 or repeated < REPEATED or len(view.calls) < FEW_CALLS:
        return False
    files = [path for c in view.calls if (path := target_file(c)) is not None]
    last = len(files) - len(files) // 3
    return len(files) >= FEW_FILE_CALLS and set(files[last:]) <= set(files[:last])


def _is_wide(view: SessionView) -> bool:
    """Most of the many files were changed in the first response."""
    touched = {e.path for e in view.repo_edits}
    if len(touched) < MANY_FILES:
        return False
    return len({e.path for e in view.repo_edits if e.turn == 0}) >= AT_ONCE * len(touched)


def _is_manifold(view: SessionView, plan_steps: int | Absent) -> bool:
    return _number(plan_steps) >= PLAN_STEPS or (bool(view.turns) and goals(view.turns[0].text) >= GOALS)


def goals(text: str) -> int:
    """How many things a prompt asks for: its list items, or its clauses that begin with a verb of action."""
    bare = "\n" + lowered(_FENCE.sub("\n", text[:_SEARCHED]))
    begins = [match[1] for clause in _CLAUSE.split(bare) if (match := _WORD.match(clause))]
    return max(len(_LISTED.findall(bare)), sum(word in ACTIONS for word in begins))


def _spreads_late(view: SessionView) -> bool:
    """A response after the first changes several files for the first time."""
    first: dict[str, int] = {}
    for edit in view.repo_edits:
        first.setdefault(edit.path, edit.turn or 0)
    return any(n >= NEW_FILES for turn, n in Counter(first.values()).items() if turn)
