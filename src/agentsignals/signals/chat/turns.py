"""The size of a conversation: its turns, and how much work each sets off."""

from __future__ import annotations

from collections import Counter

from agentsignals.catalog import signal
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView


@signal(
    "chat.turns_per_session",
    type="int",
    unit="turns",
    origin="swe-chat",
    why="The size of a conversation in SWE-chat's unit.",
    pitfalls="Publish quantiles: the distribution is skewed. SWE-chat leaves machine-made repositories out."
    " The same figure as user.user_turn_count.",
)
def turns_per_session(view: SessionView, why: Evidence, user_turn_count: int) -> int:
    """Human prompts, each with everything the agent did until the next."""
    why.support(view.turns)
    return user_turn_count


@signal(
    "chat.tool_calls_per_turn",
    type="int",
    unit="tool_calls",
    level="turn",
    origin="swe-chat",
    priority="P1",
    why="How much work one prompt sets off.",
    pitfalls="Calls before the first prompt belong to no turn.",
)
def tool_calls_per_turn(view: SessionView, why: Evidence) -> list[int]:
    """Main-thread tool calls in the response to the turn."""
    why.support(view.calls)
    n = Counter([c.turn for c in view.calls])
    return [n[t.turn] for t in view.turns]
