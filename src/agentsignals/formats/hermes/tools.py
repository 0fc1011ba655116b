"""Hermes's own tools in shared words."""

from __future__ import annotations

from agentsignals.formats.tools import ASK, EDIT, PLAN, READ, SEARCH, SHELL, TASK, WEB, Tool

TOOLS: dict[str, Tool] = {
    "terminal": SHELL,
    **dict.fromkeys(("process", "execute_code"), Tool("shell")),
    "read_file": READ,
    **dict.fromkeys(("search_files", "session_search"), SEARCH),
    **dict.fromkeys(("write_file", "patch"), EDIT),
    **dict.fromkeys(("web_search", "web_extract", "web_crawl"), WEB),
    "todo": PLAN,
    **dict.fromkeys(("delegate_task", "mixture_of_agents", "skill_view", "skill_manage", "skills_list"), TASK),
    "clarify": ASK,
    **dict.fromkeys(("memory", "vision_analyze", "image_generate", "send_message", "cronjob"), Tool("other")),
}


def tool(name: str) -> Tool | None:
    """The tool of that name; None when it is not known."""
    return TOOLS.get(name) or (WEB if name.startswith("browser_") else None)
