"""Studies: questions answered over many sessions, with n, interval and versions.

One study is one file in `studies/` and one line here; the report shows them in this order.
"""

from __future__ import annotations

from importlib import import_module

from agentsignals.analysis.study import Study
from agentsignals.errors import UsageError

STUDIES = {
    "sessions": "agentsignals.analysis.studies.sessions:STUDY",
    "worth_opening": "agentsignals.analysis.studies.worth_opening:STUDY",
    "autonomy": "agentsignals.analysis.studies.autonomy:STUDY",
    "tools": "agentsignals.analysis.studies.tools:STUDY",
    "tool_categories": "agentsignals.analysis.studies.tool_categories:STUDY",
    "tool_positions": "agentsignals.analysis.studies.tool_positions:STUDY",
    "transitions": "agentsignals.analysis.studies.transitions:STUDY",
    "tool_profiles": "agentsignals.analysis.studies.tool_profiles:STUDY",
    "errors": "agentsignals.analysis.studies.errors:STUDY",
    "recovery": "agentsignals.analysis.studies.recovery:STUDY",
    "repetition": "agentsignals.analysis.studies.repetition:STUDY",
    "edits": "agentsignals.analysis.studies.edits:STUDY",
    "concentration": "agentsignals.analysis.studies.concentration:STUDY",
    "usage": "agentsignals.analysis.studies.usage:STUDY",
    "intents": "agentsignals.analysis.studies.intents:STUDY",
    "topics": "agentsignals.analysis.studies.topics:STUDY",
    "turn_time": "agentsignals.analysis.studies.turn_time:STUDY",
    "friction": "agentsignals.analysis.studies.friction:STUDY",
    "oversight": "agentsignals.analysis.studies.oversight:STUDY",
    "coding_modes": "agentsignals.analysis.studies.coding_modes:STUDY",
    "survival": "agentsignals.analysis.studies.survival:STUDY",
    "efficiency": "agentsignals.analysis.studies.efficiency:STUDY",
    "weaknesses": "agentsignals.analysis.studies.weaknesses:STUDY",
    "people": "agentsignals.analysis.studies.people:STUDY",
    "messages": "agentsignals.analysis.studies.messages:STUDY",
    "sentiment": "agentsignals.analysis.studies.sentiment:STUDY",
    "sentiment_turns": "agentsignals.analysis.studies.sentiment_turns:STUDY",
    "sentiment_openings": "agentsignals.analysis.studies.sentiment_openings:STUDY",
    "sentiment_after": "agentsignals.analysis.studies.sentiment_after:STUDY",
    "sentiment_models": "agentsignals.analysis.studies.sentiment_models:STUDY",
    "outcomes": "agentsignals.analysis.studies.outcomes:STUDY",
    "cost": "agentsignals.analysis.studies.cost:STUDY",
    "models": "agentsignals.analysis.studies.models:STUDY",
    "agents": "agentsignals.analysis.studies.agents:STUDY",
    "data_sets": "agentsignals.analysis.studies.data_sets:STUDY",
    "attempts": "agentsignals.analysis.studies.attempts:STUDY",
    "reading": "agentsignals.analysis.studies.reading:STUDY",
}
"""Where each study is found."""


def study(name: str) -> Study:
    """The study of that name; UsageError names what there is."""
    if name not in STUDIES:
        raise UsageError(f"There is no study {name!r}.", f"The studies: {', '.join(STUDIES)}.")
    module, _, attribute = STUDIES[name].partition(":")
    found: Study = getattr(import_module(module), attribute)
    return found
