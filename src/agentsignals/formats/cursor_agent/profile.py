"""What is known of Cursor's agent: its home and its tools."""

from __future__ import annotations

from agentsignals.formats.profile import Profile, named
from agentsignals.formats.tools import ASK, EDIT, FIND, HAND_IN, MCP, PLAN, READ, SEARCH, SHELL, TASK, WEB, WRITE

PROFILE = Profile(
    agent="cursor-agent",
    aliases=("cursor",),
    homes=("~/.cursor/projects",),
    tools=named(
        (READ, "Read ReadFile read_file"),
        (SEARCH, "Grep SemanticSearch codebase_search grep_search"),
        (FIND, "Glob LS list_dir"),
        (EDIT, "StrReplace ApplyPatch EditNotebook Delete edit_file search_replace"),
        (WRITE, "Write"),
        (SHELL, "Shell run_terminal_cmd"),
        (PLAN, "TodoWrite WriteTodos SwitchMode"),
        (HAND_IN, "CreatePlan"),
        (TASK, "Task"),
        (WEB, "WebSearch WebFetch"),
        (ASK, "AskQuestion"),
        (MCP, "CallMcpTool CallDynamicTool FetchMcpResource"),
    ),
    conventions=("thinking_not_logged",),
)
