"""What is known of Copilot CLI: its homes and its tools."""

from __future__ import annotations

from agentsignals.formats.profile import Profile, named
from agentsignals.formats.tools import (
    ASIDE,
    ASK,
    EDIT,
    FIND,
    HAND_IN,
    MCP,
    PLAN,
    READ,
    SEARCH,
    SHELL,
    SKILL,
    TASK,
    WEB,
    WRITE,
)

PROFILE = Profile(
    agent="copilot-cli",
    instructions=(".github/copilot-instructions.md", ".github/instructions/**/*.instructions.md", "AGENTS.md"),
    instructions_perhaps=("CLAUDE.md", "GEMINI.md"),
    aliases=("copilot",),
    homes=tuple(
        f"{home}/{place}"
        for home in ("~/.copilot", "$COPILOT_HOME")
        for place in ("session-state", "history-session-state")
    ),
    tools=named(
        (SHELL, "bash powershell local_shell write_bash write_powershell"),
        (READ, "view show_file"),
        (READ.to("poll"), "read_bash list_bash read_powershell list_powershell"),
        (SEARCH, "grep rg lsp search_code_subagent"),
        (SEARCH.to("tool_search"), "tool_search"),
        (FIND, "glob"),
        (EDIT, "edit insert str_replace str_replace_editor apply_patch"),
        (WRITE, "create"),
        (PLAN, "update_todo report_intent task_complete"),
        (HAND_IN, "exit_plan_mode"),
        (TASK, "task read_agent write_agent list_agents stop_bash stop_powershell send_message"),
        (SKILL, "skill"),
        (WEB, "web_fetch web_search"),
        (ASK, "ask_user elicitation"),
        (ASIDE, "sql store_memory fetch_copilot_cli_documentation manage_schedule"),
    ),
    tools_like={"github-mcp-server-*": MCP},
    frame=(r"<(?:shellId: \S+ completed|(?:command )?exited|command) with exit code:? -?\d+>",),
    nothing_found=("No matches found", "No files matched"),
    failures=(("edit_mismatch", ("no match found", "multiple matches found")),),
)
