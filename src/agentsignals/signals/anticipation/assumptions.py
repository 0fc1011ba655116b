"""What the agent takes for granted."""

from __future__ import annotations

from agentsignals.catalog import Measured, signal
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView
from agentsignals.words.agent_lexicon import assumptions, other_language, seed_assumptions


@signal(
    "anticipation.assumption_count",
    type="int",
    unit="matches",
    origin="Agent Signals",
    source="regex",
    priority="P1",
    why="Assuming is normal on a vague prompt, and a red flag on a detailed one.",
    pitfalls="Non-zero in about one session of a hundred: agents rarely announce what they assume.",
)
def assumption_count(view: SessionView, why: Evidence) -> Measured | Absent:
    """Phrases of assuming in the agent's first thinking block, or, if it thought nothing, in its first message."""
    first = view.responses[0] if view.turns else []
    block = next((e for e in first if e.kind == "thinking" and e.text), None)
    block = block or next((e for e in first if e.kind == "text" and e.text), None)
    if block is None:
        return Measured(0, {"empty": True})
    if (other := other_language(view.prose)) is not None:
        return other
    prose = view.thoughts if block.kind == "thinking" else view.prose
    spans = assumptions(prose, block)
    why.matches(prose.matches(spans))
    why.denominator([block])
    return Measured(len(spans), {"block": block.kind, "seed_literal": len(seed_assumptions(prose, block))})
