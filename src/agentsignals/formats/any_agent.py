"""Tools by name, for formats that carry any agent's sessions: whichever agent's profile knows the name."""

from __future__ import annotations

from agentsignals.formats.claude_code import profile as claude_code
from agentsignals.formats.codex import profile as codex
from agentsignals.formats.factory_droid import profile as factory_droid
from agentsignals.formats.gemini_cli import profile as gemini_cli
from agentsignals.formats.hermes import profile as hermes
from agentsignals.formats.inspect.tools import tool as eval_tool
from agentsignals.formats.kiro import profile as kiro
from agentsignals.formats.opencode import profile as opencode
from agentsignals.formats.swival import profile as swival
from agentsignals.formats.tools import Tool

_AGENTS = (claude_code, codex, opencode, gemini_cli, factory_droid, kiro, hermes, swival)


def tool(name: str) -> Tool | None:
    """What a tool is. Names that differ in case only are one."""
    named = (agent.PROFILE.tool(name) or agent.PROFILE.tool(name.lower()) for agent in _AGENTS)
    return eval_tool(name) or next((tool for tool in named if tool is not None), None)
