"""How much the agent hedges."""

from __future__ import annotations

from collections import Counter

from agentsignals.catalog import Measured, ratio, signal
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView
from agentsignals.words.agent_lexicon import hedges, other_language, seed_hedges

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
