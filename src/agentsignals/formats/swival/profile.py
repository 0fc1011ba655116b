"""What is known of Swival: its tools."""

from __future__ import annotations

from agentsignals.formats.profile import Profile, named
from agentsignals.formats.tools import ASIDE, EDIT, FIND, MCP, PLAN, READ, SEARCH, SHELL, SKILL, TASK, WEB, WRITE

PROFILE = Profile(
    agent="swival",
    tools=named(
        (READ, "read_file read_multiple_files view_image outline"),
        (SEARCH, "grep"),
        (FIND, "list_files"),
        (EDIT, "edit_file delete_file"),
        (WRITE, "write_file"),
        (SHELL, "run_command run_shell_command"),
        (PLAN, "todo"),
        (TASK, "spawn_subagent check_subagents"),
        (SKILL, "use_skill"),
        (WEB, "fetch_url"),
        (ASIDE, "think snapshot goal"),
    ),
    tools_like={"mcp__*": MCP},
)
