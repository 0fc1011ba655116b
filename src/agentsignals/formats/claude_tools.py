"""Claude Code's own tools in shared words."""

from __future__ import annotations

from agentsignals.formats.tools import ASK, EDIT, MCP, PLAN, READ, SEARCH, SHELL, TASK, WEB, Tool

_TOOLS: dict[str, Tool] = {
    **dict.fromkeys(("Read", "NotebookRead", "BashOutput", "TaskOutput", "AgentOutputTool", "ReadMcpResourceTool"), READ),
    **dict.fromkeys(("Grep", "Glob", "LS", "LSP", "ToolSearch", "ListMcpResourcesTool"), SEARCH),
    **dict.fromkeys(("Edit", "MultiEdit", "Write", "NotebookEdit"), EDIT),
    **dict.fromkeys(("Bash", "PowerShell", "Monitor"), SHELL),
    **dict.fromkeys(
        ("TodoWrite", "TodoRead", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "EnterPlanMode", "ExitPlanMode"), PLAN
    ),
    **dict.fromkeys(
        ("Task", "Agent", "Skill", "SlashCommand", "SendMessage", "TeamCreate", "TeamDelete", "TaskStop", "KillShell", "KillBash"),
        TASK,
    ),
    **dict.fromkeys(("WebFetch", "WebSearch"), WEB),
    "AskUserQuestion": ASK,
    **dict.fromkeys(
        ("EnterWorktree", "ExitWorktree", "CronCreate", "CronDelete", "CronList", "ScheduleWakeup", "RemoteTrigger", "StructuredOutput"),
        Tool("other"),
    ),
}


def tool(name: str) -> Tool | None:
    """The tool of that name; any `mcp__server__tool` is an MCP tool; None when the name is not known."""
    return _TOOLS.get(name) or (MCP if name.startswith("mcp__") else None)
