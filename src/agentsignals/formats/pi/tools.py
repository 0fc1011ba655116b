"""Pi's own tools, and those of extensions met in real sessions, in shared words."""

from __future__ import annotations

from agentsignals.formats.tools import ASK, EDIT, MCP, PLAN, READ, SEARCH, SHELL, TASK, WEB, Tool

_TOOLS: dict[str, Tool] = {
    "read": READ,
    **dict.fromkeys(("grep", "find", "ls"), SEARCH),
    **dict.fromkeys(("edit", "write"), EDIT),
    "bash": SHELL,
    **dict.fromkeys(("subagent", "subagent_supervisor", "contact_supervisor", "intercom", "skill"), TASK),
    **dict.fromkeys(("websearch", "webfetch", "web_search", "web_fetch", "fetch_content", "searxng_search"), WEB),
    **dict.fromkeys(("ask_user_question", "ask_user", "question"), ASK),
    **dict.fromkeys(("todo", "plannotator_submit_plan", "exit_plan_mode"), PLAN),
    "mcp": MCP,
}


def tool(name: str) -> Tool | None:
    """The tool of that name; None when an extension brought one that is not known."""
    return _TOOLS.get(name)
