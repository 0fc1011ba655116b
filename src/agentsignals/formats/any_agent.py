"""Tools by name, for formats that carry any agent's sessions: whichever agent's profile knows the name."""

from agentsignals.formats import atif, claude_code, codex, factory_droid, gemini_cli, hermes, kiro, opencode, pi
from agentsignals.formats.claude_form import SWIVAL
from agentsignals.formats.inspect import tool as eval_tool
from agentsignals.formats.profile import Profile, Tool

_AGENTS = *(m.PROFILE for m in (claude_code, codex, opencode, gemini_cli, factory_droid, kiro, hermes)), SWIVAL
_SPEAKERS = (*_AGENTS, pi.PROFILE, atif.PROFILE)
ANYBODY = Profile(
    frame=tuple(line for agent in _SPEAKERS for line in agent.frame),
    nothing_found=tuple(words for agent in _SPEAKERS for words in agent.nothing_found),
    stopped=tuple(stop for agent in _SPEAKERS for stop in agent.stopped),
    failures=tuple(failure for agent in _SPEAKERS for failure in agent.failures),
)
"""Texts that any of them writes about the end of a call."""


def tool(name: str) -> Tool | None:
    """Return a tool by name. Names that differ only in case are one."""
    named = (agent.tool(name) or agent.tool(name.lower()) for agent in _AGENTS)
    return eval_tool(name) or next((tool for tool in named if tool is not None), None)
