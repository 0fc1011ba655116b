"""Claude Code's own tools in shared words."""

from __future__ import annotations

from agentsignals.formats.tools import ASK, EDIT, MCP, PLAN, READ, SEARCH, SHELL, TASK, WEB, Tool

_LSP = Tool("search", path=("filePath", "path"))
_OTHER = Tool("other")

_TOOLS: dict[str, Tool] = {
    **dict.fromkeys(("Read", "NotebookRead"), READ),
    **dict.fromkeys(("Grep", "Glob", "LS"), SEARCH),
    "LSP": _LSP,
    **dict.fromkeys(("Edit", "MultiEdit", "Write", "NotebookEdit"), EDIT),
    **dict.fromkeys(("Bash", "PowerShell", "Monitor"), SHELL),
    **dict.fromkeys(("TodoWrite", "TodoRead", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet"), PLAN),
    **dict.fromkeys(("EnterPlanMode", "ExitPlanMode", "exit_plan_mode"), PLAN),
    **dict.fromkeys(
        ("Task", "Agent", "Workflow", "Skill", "SlashCommand", "SendMessage", "TeamCreate", "TeamDelete"), TASK
    ),
    **dict.fromkeys(("TaskOutput", "AgentOutput", "AgentOutputTool", "BashOutput"), TASK),
    **dict.fromkeys(("TaskStop", "KillShell", "KillBash"), TASK),
    **dict.fromkeys(("WebFetch", "WebSearch"), WEB),
    "AskUserQuestion": ASK,
    **dict.fromkeys(("ListMcpResourcesTool", "ReadMcpResourceTool"), MCP),
    **dict.fromkeys(("ToolSearch", "StructuredOutput", "ScheduleWakeup", "RemoteTrigger", "PushNotification"), _OTHER),
    **dict.fromkeys(
        ("EnterWorktree", "ExitWorktree", "CronCreate", "CronDelete", "CronList", "Config", "Sleep"), _OTHER
    ),
}


def tool(name: str) -> Tool | None:
    """The tool of that name; any `mcp__server__tool` is an MCP tool; None when the name is not known."""
    return _TOOLS.get(name) or (MCP if name.startswith("mcp__") else None)
