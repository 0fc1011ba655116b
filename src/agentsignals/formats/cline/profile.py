"""What is known of Cline and of Roo Code and Kilo Code, which began as Cline: their homes and their tools."""

from __future__ import annotations

from msgspec import structs

from agentsignals.formats.profile import Profile, named
from agentsignals.formats.tools import (
    ASIDE,
    ASK,
    EDIT,
    EDIT_ROLES,
    FIND,
    MCP,
    PLAN,
    READ,
    SEARCH,
    SHELL,
    SKILL,
    TASK,
    WEB,
    WRITE,
    Tool,
)
from agentsignals.model.roles import Roles

_USERS = tuple(
    f"{config}/{editor}/User"
    for config in ("~/.config", "~/Library/Application Support", "$APPDATA")
    for editor in ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
) + tuple(f"~/.{server}/data/User" for server in ("vscode-server", "vscode-server-insiders", "cursor-server"))
"""Where editors keep what is a person's: on Linux, macOS, Windows, and on a machine that one works on from afar."""


def _tasks(extension: str) -> tuple[str, ...]:
    return tuple(f"{user}/globalStorage/{extension}/tasks" for user in _USERS)


def _at_path(tool: Tool) -> Tool:
    """The same tool where models of some families name a file by its whole path."""
    return structs.replace(tool, path=(*tool.path, "absolutePath"))


_PAIRS = structs.replace(
    _at_path(EDIT),
    roles=structs.replace(
        EDIT_ROLES,
        replace=(*EDIT_ROLES.replace, ("old_text", "new_text"), ("search", "replace")),
        line=("insert_line",),
    ),
)
_SHOWN = structs.replace(EDIT, roles=Roles(patch=("diff", "content")))
"""An edit as the page shows it: pairs of texts, or a unified diff."""

PROFILE = Profile(
    agent="cline",
    instructions=(".clinerules", ".clinerules/**/*.md"),
    instructions_perhaps=("AGENTS.md", ".cursorrules", ".windsurfrules"),
    homes=(
        *_tasks("saoudrizwan.claude-dev"),
        *(
            f"{data}/{place}"
            for data in ("~/.cline/data", "$CLINE_DIR/data", "$CLINE_DATA_DIR")
            for place in ("tasks", "sessions")
        ),
    ),
    tools=named(
        (_at_path(READ), "read_file read_files fetch_instructions access_mcp_resource read_command_output"),
        (SEARCH, "search_files search_codebase codebase_search list_code_definition_names"),
        (SEARCH, "searchFiles codebaseSearch listCodeDefinitionNames"),
        (FIND, "list_files listFilesTopLevel listFilesRecursive"),
        (_PAIRS, "editor replace_in_file apply_diff apply_patch insert_content search_and_replace search_replace"),
        (_PAIRS, "edit edit_file"),
        (_at_path(WRITE), "write_to_file newFileCreated"),
        (_SHOWN, "editedExistingFile appliedDiff insertContent searchAndReplace"),
        (SHELL.within("timeout"), "execute_command run_commands"),
        (PLAN, "update_todo_list updateTodoList"),
        (TASK, "new_task newTask use_subagents spawn_agent team_run_task team_spawn_teammate"),
        (SKILL, "skill use_skill run_slash_command"),
        (WEB, "web_fetch web_search fetch_web_content browser_action webFetch webSearch"),
        (ASK, "ask_followup_question ask_question"),
        (MCP, "use_mcp_tool use_mcp_server"),
        (ASIDE, "condense summarize_task switch_mode switchMode finishTask new_rule load_mcp_documentation"),
    ),
    tools_like={"readF*": READ},
    frame=(
        r"\[?Command (?:exited with code|failed with exit code) -?\d+[].]?",
        r"Command executed successfully \(exit code 0\)\.",
        r"Output:",
    ),
    nothing_found=("Found 0 results", "No results found", "No files found"),
    stopped=(("error", ("Command execution timed out",)),),
    failures=(
        (
            "edit_mismatch",
            ("does not match anything in the file", "no sufficiently similar match", "text not found in"),
        ),
        ("not_found", ("file not found", "nosuchtoolerror", "unavailable tool")),
    ),
)
ROO = structs.replace(
    PROFILE,
    agent="roo-code",
    homes=_tasks("rooveterinaryinc.roo-cline"),
    # https://docs.roocode.com/features/custom-instructions: single files where the folder has none, others of a mode
    instructions=(".roo/rules/**/*.md",),
    instructions_perhaps=(".roorules", ".roo/rules-*/**/*.md", "AGENTS.md", ".clinerules"),
)
KILO = structs.replace(
    PROFILE,
    agent="kilo",
    homes=_tasks("kilocode.kilo-code"),
    instructions=(".kilocode/rules/**/*.md",),
    instructions_perhaps=("AGENTS.md",),
)
