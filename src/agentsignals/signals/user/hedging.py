"""How the agent puts it: how much it hedges, how often it corrects itself, what it takes for granted."""

from __future__ import annotations

from collections import Counter

from agentsignals.catalog import Measured, ratio, signal
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView
from agentsignals.words.agent_lexicon import (
    assumptions,
    hedges,
    other_language,
    seed_assumptions,
    seed_hedges,
    seed_self_corrections,
)
from agentsignals.words.agent_lexicon import self_corrections as found_self_corrections
from agentsignals.words.prose import Prose

FEW_TOKENS = 20
"""Of a shorter response one hedge makes a high rate (design/signals.md#word-lists)."""


@signal(
    "user.agent_hedging_rate",
    type="float",
    unit="per 100 tokens",
    origin="Agent Signals",
    source="regex",
    priority="P1",
    why="An agent that hedges more and more is losing its way.",
    pitfalls="About one match in eight is no doubt. The trajectory says more than the level. English only.",
)
def agent_hedging_rate(view: SessionView, why: Evidence) -> Measured | Absent:
    """Hedging phrases ("I think", "might be", "probably") per 100 tokens of what the agent said, code left out."""
    prose = view.prose
    tokens = sum(prose.tokens.values())
    if not tokens:
        return Absent("not_applicable", "no_visible_text")
    if (other := other_language(prose)) is not None:
        return other
    spans = prose.spans(hedges)
    why.matches(prose.matches(spans))
    why.denominator(prose.events)
    return ratio(100 * len(spans), tokens, hedges=len(spans), seed_literal=100 * len(seed_hedges(prose)) / tokens)


@signal(
    "user.agent_hedging_curve[]",
    type="list[float]",
    unit="per 100 tokens",
    origin="Agent Signals",
    source="regex",
    priority="P1",
    why="Whether doubt grows while the session goes on.",
    pitfalls="Of a short response one hedge makes a high value: `low_n` names those under 20 tokens.",
)
def agent_hedging_curve(view: SessionView, why: Evidence) -> Measured | Absent:
    """The hedging rate of each response in order; null where the agent said nothing."""
    prose = view.prose
    if (other := other_language(prose)) is not None:
        return other
    spans = prose.spans(hedges)
    why.matches(prose.matches(spans))
    counted = Counter(prose.event(span).turn for span in spans)
    tokens = [prose.tokens.get(t.turn, 0) for t in view.turns]
    curve = [100 * counted[t.turn] / n if n else None for t, n in zip(view.turns, tokens, strict=True)]
    return Measured(curve, {"low_n": [t.turn for t, n in zip(view.turns, tokens, strict=True) if 0 < n < FEW_TOKENS]})


@signal(
    "reasoning.self_correction_count",
    type="int",
    unit="matches",
    context="both",
    level="attempt",
    origin="Agent Signals",
    source="regex",
    priority="P1",
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
    prose = Prose([block])
    spans = assumptions(prose)
    why.matches(prose.matches(spans))
    why.denominator([block])
    return Measured(len(spans), {"block": block.kind, "seed_literal": len(seed_assumptions(prose))})
