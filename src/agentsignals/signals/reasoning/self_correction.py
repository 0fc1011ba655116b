"""How often the agent corrects itself."""

from __future__ import annotations

from agentsignals.catalog import Measured, signal
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView
from agentsignals.words.agent_lexicon import other_language, seed_self_corrections
from agentsignals.words.agent_lexicon import self_corrections as found_self_corrections


@signal(
    "reasoning.self_correction_count",
    type="int",
    unit="matches",
    context="both",
    level="attempt",
    origin="Agent Signals",
    source="regex",
    priority="P1",
    version=3,
    why="The agent notices its own mistakes, or is stuck in them.",
    pitfalls="The sign is ambiguous: read it with the outcome. Models that hide their thinking show few.",
)
def self_correction_count(view: SessionView, why: Evidence, has_reasoning_blocks: bool | Absent) -> Measured | Absent:
    """Sentences in thinking and visible text in which the agent takes back what it said or did ("Wait, that's not")."""
    if isinstance(has_reasoning_blocks, Absent):
        return Absent("missing_field", has_reasoning_blocks.detail)
    if (other := other_language(view.prose if view.prose.text else view.thoughts)) is not None:
        return other
    counts = []
    for prose in (view.thoughts, view.prose):
        spans = prose.spans(found_self_corrections)
        why.matches(prose.matches(spans))
        counts.append(len(spans))
    literal = len(seed_self_corrections(view.thoughts)) + len(seed_self_corrections(view.prose))
    return Measured(sum(counts), {"thinking": counts[0], "text": counts[1], "seed_literal": literal})
