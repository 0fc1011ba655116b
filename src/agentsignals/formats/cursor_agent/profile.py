"""What is known of Cursor's agent: its homes, and its tools in transcripts and in the IDE's database."""

from __future__ import annotations

from msgspec import structs

from agentsignals.formats.profile import Profile, named
from agentsignals.formats.tools import ASIDE, ASK, EDIT, FIND, HAND_IN, MCP, PLAN, READ, SEARCH, SHELL, TASK, WEB, WRITE

_IDE = ("targetFile", "relativeWorkspacePath", "effectiveUri")
_LOOKED_IN = (*SEARCH.path, "target_directory", "targetDirectory")

PROFILE = Profile(
    agent="cursor-agent",
    instructions=(".cursor/rules/**/*.mdc", "AGENTS.md"),
    instructions_perhaps=(".cursorrules", "CLAUDE.md"),
    aliases=("cursor",),
    homes=(
        "~/.cursor/projects",
        "~/.cursor/chats",
        *(
            f"{data}/Cursor/User/globalStorage/state.vscdb"
            for data in ("~/.config", "~/Library/Application Support", "$APPDATA")
        ),
    ),
    tools=named(
        (structs.replace(READ, path=(*READ.path, *_IDE)), "Read ReadFile read_file read_file_v2"),
        (
            structs.replace(SEARCH, path=_LOOKED_IN),
            "Grep SemanticSearch codebase_search semantic_search_full grep_search grep ripgrep_search "
            "ripgrep_raw_search",
        ),
        (structs.replace(FIND, path=_LOOKED_IN), "Glob LS list_dir list_dir_v2 file_search glob_file_search"),
        (
            structs.replace(EDIT, path=(*EDIT.path, *_IDE)),
            "StrReplace ApplyPatch EditNotebook Delete edit_file edit_file_v2 search_replace delete_file reapply",
        ),
        (structs.replace(WRITE, path=(*WRITE.path, *_IDE)), "Write write"),
        (SHELL, "Shell run_terminal_cmd run_terminal_command run_terminal_command_v2"),
        (PLAN, "TodoWrite WriteTodos SwitchMode todo_write switch_mode"),
        (HAND_IN, "CreatePlan create_plan"),
        (TASK, "Task task task_v2"),
        (WEB, "WebSearch WebFetch web_search web_fetch"),
        (ASK, "AskQuestion ask_question"),
        (MCP, "CallMcpTool CallDynamicTool FetchMcpResource call_mcp_tool"),
        (ASIDE, "read_lints fetch_rules"),
    ),
    tools_like={"mcp-*": MCP},
    machine_written=(("<system_notification>", "notification"),),
)
