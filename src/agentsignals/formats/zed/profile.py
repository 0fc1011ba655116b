"""What is known of Zed's agent: its homes and its tools."""

from __future__ import annotations

from msgspec import structs

from agentsignals.formats.profile import Profile, named
from agentsignals.formats.tools import (
    ASIDE,
    ASK,
    EDIT,
    EDIT_ROLES,
    FIND,
    PLAN,
    READ,
    SEARCH,
    SHELL,
    SKILL,
    TASK,
    WEB,
    WRITE,
)

_ROLES = structs.replace(EDIT_ROLES, replace=(*EDIT_ROLES.replace, ("old_text", "new_text")))

PROFILE = Profile(
    agent="zed",
    instructions_perhaps=(  # the first that is there: https://zed.dev/docs/ai/rules
        ".rules",
        ".cursorrules",
        ".windsurfrules",
        ".clinerules",
        ".github/copilot-instructions.md",
        "AGENT.md",
        "AGENTS.md",
        "CLAUDE.md",
        "GEMINI.md",
    ),
    homes=(
        "~/.local/share/zed/threads/threads.db",
        "$XDG_DATA_HOME/zed/threads/threads.db",
        "~/Library/Application Support/Zed/threads/threads.db",
        "$LOCALAPPDATA/Zed/threads/threads.db",
    ),
    tools=named(
        (READ, "read_file open diagnostics"),
        (SEARCH, "grep find_references go_to_definition"),
        (FIND, "find_path list_directory"),
        (structs.replace(EDIT, roles=_ROLES), "edit_file streaming_edit_file create_file"),
        (structs.replace(EDIT, path=("path", "destination_path")), "delete_path move_path copy_path"),
        (structs.replace(WRITE, roles=_ROLES), "write_file"),
        (SHELL.within("timeout_ms", 0.001), "terminal sandboxed_terminal"),
        (PLAN, "update_plan"),
        (TASK, "spawn_agent subagent create_thread"),
        (SKILL, "skill"),
        (WEB, "fetch web_search"),
        (ASK, "ask_user"),
        (ASIDE, "thinking save_file restore_file_from_disk create_directory update_title"),
    ),
    stopped=(
        ("cancelled", ("The user stopped this command.",)),
        ("error", ("timed out. Output captured before timeout:", "timed out. No output was captured.")),
    ),
    nothing_found=("No matches found", "No matches"),
    frame=(r'Command "(?s:.*?)" failed with exit code -?\d+\.', r"Command executed successfully\."),
)
