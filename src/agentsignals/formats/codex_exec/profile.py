"""What is known of the items of `codex exec --json` that are calls of tools."""

from __future__ import annotations

from agentsignals.formats.profile import Profile, named
from agentsignals.formats.tools import EDIT, MCP, PLAN, SHELL, TASK, WEB

PROFILE = Profile(
    tools=named(
        (SHELL, "command_execution"),
        (EDIT, "file_change"),
        (MCP, "mcp_tool_call"),
        (WEB, "web_search"),
        (PLAN, "todo_list"),
        (TASK, "collab_tool_call"),
    ),
)
