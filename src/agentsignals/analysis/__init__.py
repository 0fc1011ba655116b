"""Studies: questions answered over many sessions, with n, interval and versions.

One study is one file in `studies/` and one line here; the report shows them in this order.
"""

from __future__ import annotations

from importlib import import_module

from agentsignals.analysis.study import Study
from agentsignals.errors import UsageError

STUDIES = {
    "sessions": "agentsignals.studies.sessions:STUDY",
    "worth_opening": "agentsignals.studies.worth_opening:STUDY",
    "autonomy": "agentsignals.studies.autonomy:STUDY",
    "tools": "agentsignals.studies.tools:STUDY",
    "tool_categories": "agentsignals.studies.tool_categories:STUDY",
    "tool_positions": "agentsignals.studies.tool_positions:STUDY",
    "transitions": "agentsignals.studies.transitions:STUDY",
    "tool_profiles": "agentsignals.studies.tool_profiles:STUDY",
    "errors": "agentsignals.studies.errors:STUDY",
    "recovery": "agentsignals.studies.recovery:STUDY",
    "repetition": "agentsignals.studies.repetition:STUDY",
    "edits": "agentsignals.studies.edits:STUDY",
    "concentration": "agentsignals.studies.concentration:STUDY",
    "usage": "agentsignals.studies.usage:STUDY",
    "intents": "agentsignals.studies.intents:STUDY",
    "topics": "agentsignals.studies.topics:STUDY",
    "turn_time": "agentsignals.studies.turn_time:STUDY",
    "friction": "agentsignals.studies.friction:STUDY",
    "oversight": "agentsignals.studies.oversight:STUDY",
    "coding_modes": "agentsignals.studies.coding_modes:STUDY",
    "survival": "agentsignals.studies.survival:STUDY",
    "efficiency": "agentsignals.studies.efficiency:STUDY",
    "weaknesses": "agentsignals.studies.weaknesses:STUDY",
    "people": "agentsignals.studies.people:STUDY",
    "messages": "agentsignals.studies.messages:STUDY",
    "sentiment": "agentsignals.studies.sentiment:STUDY",
    "sentiment_turns": "agentsignals.studies.sentiment_turns:STUDY",
    "sentiment_openings": "agentsignals.studies.sentiment_openings:STUDY",
    "sentiment_after": "agentsignals.studies.sentiment_after:STUDY",
    "sentiment_models": "agentsignals.studies.sentiment_models:STUDY",
    "outcomes": "agentsignals.studies.outcomes:STUDY",
    "cost": "agentsignals.studies.cost:STUDY",
    "models": "agentsignals.studies.models:STUDY",
    "agents": "agentsignals.studies.agents:STUDY",
    "data_sets": "agentsignals.studies.data_sets:STUDY",
    "attempts": "agentsignals.studies.attempts:STUDY",
    "reading": "agentsignals.studies.reading:STUDY",
}
"""Where each study is found."""


def study(name: str) -> Study:
    """The study of that name; UsageError names what there is."""
    if name not in STUDIES:
        raise UsageError(f"There is no study {name!r}.", f"The studies: {', '.join(STUDIES)}.")
    module, _, attribute = STUDIES[name].partition(":")
    declared: Study = getattr(import_module(module), attribute)
    return declared
