"""Whose fault it was: a verdict by ordered rules over other signals (design/signals.md#whose-fault)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentsignals.catalog import Measured, signal
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView

VAGUE = 0.75
DRIFT = 2.0
UNREQUESTED = 3
TROUBLED_OUTCOMES = frozenset(("explicitly_rejected", "restarted_same_task"))
_UNWATCHED = ("task_paraphrase_accuracy", "plan_optimality")
"""Inputs of section 6 that take a judge: their conditions are false, and said to be missing."""


@signal(
    "anticipation.session_attribution",
    basis="heuristic",
    type="enum",
    unit="label",
    origin="Agent Signals",
    source="derived",
    version=2,
    priority="P2",
    why="A frustrated person is not yet a failed agent: the prompt may have been the trouble.",
    pitfalls="Never use underspecified_prompt as a bad mark for the agent. Two of its inputs need a judge and count as"
    " false; most sessions are inconclusive, and absent says so.",
)
def session_attribution(  # noqa: PLR0913  (the parameters are the needs of the signal)
    view: SessionView,
    why: Evidence,
    session_outcome: str | Absent,
    objections: dict[str, list[int]] | Absent,
    user_turn_count: int,
    prompt_underspecification: float | Absent,
    clarification_sought: bool | Absent,
    assumption_count: int | Absent,
    first_tool_precision: bool | Absent,
    scope_drift: float | Absent,
    unrequested_files: dict[str, Any] | Absent,
    conflation_turn: int | Absent,
    drift_onset_turn: int | Absent,
) -> Measured | Absent:
    """underspecified_prompt, agent_misunderstood, scope_conflation or correct_anticipation: the first rule that holds;
    absent when none does."""
    if isinstance(session_outcome, Absent) and isinstance(objections, Absent):
        return Absent("dependency_null", "user.session_outcome, dynamics.objections")
    values = {
        "outcome": session_outcome,
        "objections": objections,
        "vagueness": prompt_underspecification,
        "asked": clarification_sought,
        "assumptions": assumption_count,
        "first_tool_precision": first_tool_precision,
        "scope_drift": scope_drift,
        "unrequested_files": unrequested_files,
        "conflation_turn": conflation_turn,
        "drift_onset_turn": drift_onset_turn,
    }
    case = _Case({name: None if isinstance(v, Absent) else v for name, v in values.items()}, user_turn_count)
    label, rule, reason = case.verdict()
    why.support([t for t in view.turns if t.turn in case.corrections], "correction:")
    why.support([t for t in view.turns if t.turn == case.conflation], "scope widened:")
    why.rule(f"rule {rule}: {reason}")
    if label is None:
        true = ", ".join(name for name, holds in case.predicates.items() if holds)
        return Absent("not_computable", f"inconclusive: {true or 'nothing'} holds")
    missing = [name for name, v in values.items() if isinstance(v, Absent) and v.reason != "none_found"]
    return Measured(label, {"rule": rule, "predicates": case.predicates, "missing": [*missing, *_UNWATCHED]})


class _Case:
    """The conditions of section 6. A missing input makes its condition false."""

    def __init__(self, values: Mapping[str, Any], n_turns: int) -> None:
        objections = values["objections"] or {"corrections": [], "pushback": []}
        self.corrections: list[int] = objections["corrections"]
        self.conflation: int | None = values["conflation_turn"]
        self._first = self.corrections[0] if self.corrections else None
        self._drift: int | None = values["drift_onset_turn"]
        files = values["unrequested_files"] or {"n": 0, "first_turn": None}
        self._strayed: int | None = files["first_turn"]
        vague, outcome = values["vagueness"], values["outcome"]
        trouble = bool(self.corrections) or len(objections["pushback"]) >= 2 or outcome in TROUBLED_OUTCOMES
        missed = values["first_tool_precision"] is False
        early = self._first is not None and self._first <= 2
        off_at_once = missed and self._drift in (1, 2)
        told_vague = bool(values["asked"]) or (values["assumptions"] or 0) >= 1 or early
        widened = (values["scope_drift"] or 0) > DRIFT and files["n"] >= UNREQUESTED
        # One turn leaves nobody room to object: its trouble is of the outcome alone and blames no one.
        several = trouble and n_turns > 1
        self.predicates = {
            "trouble": trouble,
            "vague_prompt": several and vague is not None and vague >= VAGUE and told_vague,
            "misunderstood": several and vague is not None and vague < VAGUE and (early or off_at_once),
            # Files that nobody named are no verdict: somebody must have minded.
            "scope_widened": trouble and (widened or self.conflation is not None),
            "anticipated": not trouble and outcome == "accepted" and not missed,
        }

    def verdict(self) -> tuple[str | None, int, str]:
        """The label, the number of the rule and what it says."""
        holds = self.predicates
        if holds["vague_prompt"]:
            return (
                "underspecified_prompt",
                1,
                "trouble after a vague prompt, and a question, a guess or an early correction",
            )
        if holds["misunderstood"] and holds["scope_widened"]:
            scope = self.conflation if self.conflation is not None else self._strayed
            onset = min((n for n in (self._first, self._drift) if n is not None), default=0)
            later = scope is None or onset <= scope
            reason = f"both misread (turn {onset}) and widened (turn {scope}): the earlier counts"
            return ("agent_misunderstood" if later else "scope_conflation"), 2, reason
        if holds["misunderstood"]:
            return (
                "agent_misunderstood",
                3,
                "a clear prompt, and an early correction or a wrong first file and early drift",
            )
        if holds["scope_widened"]:
            return (
                "scope_conflation",
                4,
                "trouble, and more than twice the files that were named, or work in new places unasked",
            )
        if holds["anticipated"]:
            return "correct_anticipation", 5, "no trouble, accepted, and the first file was not a wrong one"
        return None, 6, "no rule holds"
