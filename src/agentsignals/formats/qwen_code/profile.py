"""What is known of Qwen Code: its homes and its tools. It began as Gemini CLI, whose words it still writes."""

from __future__ import annotations

from msgspec import structs

from agentsignals.formats.gemini_cli import profile as gemini_cli
from agentsignals.formats.profile import named
from agentsignals.formats.tools import (
    ASIDE,
    ASK,
    EDIT,
    FIND,
    HAND_IN,
    PLAN,
    READ,
    SEARCH,
    SHELL,
    SKILL,
    TASK,
    WEB,
    WRITE,
)

PROFILE = structs.replace(
    gemini_cli.PROFILE,
    agent="qwen-code",
    instructions=("QWEN.md",),
    instructions_perhaps=("AGENTS.md",),
    aliases=("qwen",),
    homes=("~/.qwen/projects", "~/.qwen/tmp"),
    tools=named(
        (READ, "read_file read_many_files"),
        (SEARCH, "grep_search search_file_content lsp"),
        (FIND, "glob list_directory"),
        (EDIT, "edit replace"),
        (WRITE, "write_file"),
        (SHELL, "run_shell_command"),
        (PLAN, "todo_write task_update"),
        (PLAN.to("add_task"), "task_create"),
        (HAND_IN, "exit_plan_mode"),
        (TASK, "agent task"),
        (SKILL, "skill"),
        (WEB, "web_fetch web_search"),
        (ASK, "ask_user_question"),
        (READ.to("poll"), "task_output"),
        (ASIDE, "save_memory task_list task_get task_stop"),
    ),
)
