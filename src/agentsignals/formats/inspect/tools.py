"""Whose tools an eval's agent has: Inspect's own, and those of Claude Code, which it bridges."""

from __future__ import annotations

from agentsignals.formats.claude_code import profile as claude_code
from agentsignals.formats.inspect.profile import PROFILE
from agentsignals.formats.tools import Tool


def tool(name: str) -> Tool | None:
    """What a tool is; None when its name is not known."""
    return PROFILE.tool(name) or claude_code.PROFILE.tool(name)
