"""What is known of Gemini CLI: its home and its tools."""

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
    PLAN_MODE,
    READ,
    SEARCH,
    SHELL,
    SKILL,
    TASK,
    WEB,
    WRITE,
)

PROFILE = Profile(
    agent="gemini-cli",
    aliases=("gemini",),
    homes=("~/.gemini/tmp",),
    tools=named(
        (READ, "read_file read_many_files get_internal_docs"),
        (SEARCH, "grep_search search_file_content codebase_investigator"),
        (FIND, "glob list_directory"),
        (EDIT, "replace edit"),
        (WRITE, "write_file"),
        (SHELL, "run_shell_command"),
        (PLAN, "write_todos update_topic"),
        (PLAN_MODE, "enter_plan_mode"),
        (HAND_IN, "exit_plan_mode"),
        (TASK, "delegate_to_agent invoke_agent complete_task"),
        (SKILL, "activate_skill"),
        (WEB, "google_web_search web_fetch"),
        (ASK, "ask_user"),
        (ASIDE, "save_memory"),
    ),
    tools_like={"mcp_*": MCP, "*__*": MCP},
)
