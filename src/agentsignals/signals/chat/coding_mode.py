"""Whose lines were committed: the person's, the agent's, or both."""

from __future__ import annotations

from agentsignals.catalog import Measured, signal
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView

VIBE_PERCENT = 99


@signal(
    "chat.agent_percentage",
    type="float",
    unit="percent",
    origin="swe-chat",
    source="git",
    priority="P1",
    why="Whose lines went into the commits of the session.",
    pitfalls="The collector's attribution is taken as recorded; the attribution audit tells how good it is.",
)
def agent_percentage(view: SessionView, why: Evidence) -> Measured | Absent:
    """The agent's share of the committed lines, 0..100, as recorded beside the session."""
    recorded = [c for c in view.session.checkpoints if c.agent_lines is not None or c.agent_percentage is not None]
    if not recorded:
        return Absent("missing_artifact", "git_attribution")
    lines = sum(c.agent_lines or 0 for c in recorded)
    total = sum(c.total_committed or 0 for c in recorded)
    detail = {"num": lines, "den": total, "checkpoints": len(recorded)}
    why.rule(f"attribution recorded with the session: {lines} of {total} committed lines are the agent's")
    only = recorded[0].agent_percentage if len(recorded) == 1 else None
    if only is not None and (total or only):
        # The recorded figure also knows the lines the agent removed; a commit that only deletes adds up to 0 of 0.
        return Measured(float(only), detail)
    return Measured(100 * lines / total, detail) if total else Absent("not_computable", "zero_denominator")


@signal(
    "chat.coding_mode",
    type="enum",
    unit="label",
    origin="swe-chat",
    source="derived",
    priority="P1",
    why="Who writes the code: the person, the agent, or both.",
    pitfalls="A cut through a continuous share; 98 and 99 percent are neighbours.",
)
def coding_mode(why: Evidence, agent_percentage: float) -> str:
    """human_only at 0 percent of agent lines, vibe_coding from 99, collaborative between."""
    why.rule("0: human_only; 99 and more: vibe_coding; otherwise collaborative")
    if agent_percentage <= 0:
        return "human_only"
    return "vibe_coding" if agent_percentage >= VIBE_PERCENT else "collaborative"
