"""Tools by name, for formats that carry any agent's sessions: whichever agent's profile knows the name."""

from __future__ import annotations

from agentsignals.formats.atif import profile as atif
from agentsignals.formats.claude_code import profile as claude_code
from agentsignals.formats.codex import profile as codex
from agentsignals.formats.factory_droid import profile as factory_droid
from agentsignals.formats.gemini_cli import profile as gemini_cli
from agentsignals.formats.hermes import profile as hermes
from agentsignals.formats.inspect.tools import tool as eval_tool
from agentsignals.formats.kiro import profile as kiro
from agentsignals.formats.opencode import profile as opencode
from agentsignals.formats.pi import profile as pi
from agentsignals.formats.profile import Profile
from agentsignals.formats.swival import profile as swival
from agentsignals.formats.tools import Tool

_AGENTS = (claude_code, codex, opencode, gemini_cli, factory_droid, kiro, hermes, swival)
_SPEAKERS = tuple(agent.PROFILE for agent in (*_AGENTS, pi, atif))
ANYBODY = Profile(
    frame=tuple(line for agent in _SPEAKERS for line in agent.frame),
    nothing_found=tuple(words for agent in _SPEAKERS for words in agent.nothing_found),
    stopped=tuple(stop for agent in _SPEAKERS for stop in agent.stopped),
    failures=tuple(failure for agent in _SPEAKERS for failure in agent.failures),
)
"""What any of them writes of a call's end."""


def tool(name: str) -> Tool | None:
    """What a tool is. Names that differ in case only are one."""
    named = (agent.PROFILE.tool(name) or agent.PROFILE.tool(name.lower()) for agent in _AGENTS)
    return eval_tool(name) or next((tool for tool in named if tool is not None), None)
