"""Swival's own tools in shared words."""

from __future__ import annotations

from agentsignals.formats.tools import EDIT, MCP, PLAN, READ, SEARCH, SHELL, TASK, WEB, Tool

TOOLS: dict[str, Tool] = {
    **dict.fromkeys(("read_file", "read_multiple_files", "view_image", "outline"), READ),
    **dict.fromkeys(("list_files", "grep"), SEARCH),
    **dict.fromkeys(("write_file", "edit_file", "delete_file"), EDIT),
    **dict.fromkeys(("run_command", "run_shell_command"), SHELL),
    "todo": PLAN,
    **dict.fromkeys(("use_skill", "spawn_subagent", "check_subagents"), TASK),
    "fetch_url": WEB,
    **dict.fromkeys(("think", "snapshot", "goal"), Tool("other")),
}


def tool(name: str) -> Tool | None:
    """The tool of that name; any `mcp__server__tool` is an MCP tool; None when the name is not known."""
    return TOOLS.get(name) or (MCP if name.startswith("mcp__") else None)
