"""What is known of Copilot Chat in VS Code: its homes, its tools, and under which names the editor shows them."""

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
    TASK,
    WEB,
    WRITE,
    Tool,
)
from agentsignals.model.roles import Roles

_SEVERAL = structs.replace(EDIT, roles=structs.replace(EDIT_ROLES, several=("replacements",)))
_TODO = structs.replace(PLAN, roles=structs.replace(PLAN.roles or Roles(), steps=("todoList",)))
_TESTS = Tool(class_="test")

PROFILE = Profile(
    agent="vscode-copilot",
    instructions=(".github/copilot-instructions.md", ".github/instructions/**/*.instructions.md"),
    instructions_perhaps=("AGENTS.md", "CLAUDE.md"),
    aliases=("copilot-chat", "github-copilot-chat"),
    homes=tuple(
        f"{user}/{place}"
        # VS Code, its Insiders, VSCodium and others made of it; on Linux, macOS, Windows; where the window is elsewhere
        for user in (
            "~/.config/*/User",
            "~/Library/Application Support/*/User",
            "$APPDATA/*/User",
            "~/.vs*-server*/data/User",
            "$VSCODE_PORTABLE/user-data/User",
        )
        for place in (
            "workspaceStorage/*/chatSessions",
            "workspaceStorage/*/chatSessions/../workspace.json",
            "workspaceStorage/*/GitHub.copilot-chat/transcripts",
            "globalStorage/emptyWindowChatSessions",
            "globalStorage/github.copilot-chat/agent-traces.db",
        )
    ),
    tools=named(
        (READ, "read_file copilot_getNotebookSummary read_notebook_cell_output view_image"),
        (
            READ.to("poll"),
            "get_terminal_output get_task_output terminal_last_command terminal_selection await_terminal",
        ),
        (SEARCH, "grep_search semantic_search list_code_usages search_workspace_symbols get_search_view_results"),
        (SEARCH.to("tool_search"), "tool_search_tool_regex tool_search"),
        (FIND, "file_search list_dir test_search read_project_structure"),
        (EDIT, "replace_string_in_file insert_edit_into_file apply_patch edit_notebook_file edit_files"),
        (_SEVERAL, "multi_replace_string_in_file"),
        (WRITE, "create_file"),
        (SHELL.within("timeout", 0.001), "run_in_terminal"),
        (SHELL, "run_task create_and_run_task run_notebook_cell"),
        (_TESTS, "runTests run_tests"),
        (_TODO, "manage_todo_list"),
        (TASK, "runSubagent run_subagent search_subagent execution_subagent"),
        (WEB, "fetch_webpage github_repo open_simple_browser"),
        (ASK, "ask_questions vscode_askQuestions"),
        (
            ASIDE,
            "get_errors get_changed_files test_failure get_vscode_api get_doc_info memory update_user_preferences"
            " create_directory create_new_workspace create_new_jupyter_notebook get_project_setup_info"
            " install_extension run_vscode_command vscode_get_confirmation vscode_get_terminal_confirmation"
            " kill_terminal terminal_selection tool_replay",
        ),
    ),
    tools_like={"mcp_*": MCP, "activate_*": SEARCH.to("tool_search")},
    frame=(r"Command produced no output", r"Command exited with code -?\d+"),
    nothing_found=("No matches found", "No files found", "No results found", "No workspace symbols"),
    stopped=(("cancelled", ("The user cancelled the tool call.",)),),
    failures=(
        ("edit_mismatch", ("could not find matching text to replace", "string replacement failed", "multiple matches")),
        ("not_found", ("invalid input path", "cannot find file", "file not found")),
    ),
)

SHOWN_AS = {
    "copilot_applyPatch": "apply_patch",
    "copilot_createAndRunTask": "create_and_run_task",
    "copilot_createDirectory": "create_directory",
    "copilot_createFile": "create_file",
    "copilot_createNewJupyterNotebook": "create_new_jupyter_notebook",
    "copilot_createNewWorkspace": "create_new_workspace",
    "copilot_editFiles": "edit_files",
    "copilot_editNotebook": "edit_notebook_file",
    "copilot_fetchWebPage": "fetch_webpage",
    "copilot_findFiles": "file_search",
    "copilot_findTestFiles": "test_search",
    "copilot_findTextInFiles": "grep_search",
    "copilot_getChangedFiles": "get_changed_files",
    "copilot_getDocInfo": "get_doc_info",
    "copilot_getErrors": "get_errors",
    "copilot_getProjectSetupInfo": "get_project_setup_info",
    "copilot_getSearchResults": "get_search_view_results",
    "copilot_getVSCodeAPI": "get_vscode_api",
    "copilot_githubRepo": "github_repo",
    "copilot_insertEdit": "insert_edit_into_file",
    "copilot_installExtension": "install_extension",
    "copilot_listCodeUsages": "list_code_usages",
    "copilot_listDirectory": "list_dir",
    "copilot_memory": "memory",
    "copilot_multiReplaceString": "multi_replace_string_in_file",
    "copilot_openSimpleBrowser": "open_simple_browser",
    "copilot_readFile": "read_file",
    "copilot_readNotebookCellOutput": "read_notebook_cell_output",
    "copilot_readProjectStructure": "read_project_structure",
    "copilot_replaceString": "replace_string_in_file",
    "copilot_runNotebookCell": "run_notebook_cell",
    "copilot_runTests1": "run_tests",
    "copilot_runVscodeCommand": "run_vscode_command",
    "copilot_searchCodebase": "semantic_search",
    "copilot_searchWorkspaceSymbols": "search_workspace_symbols",
    "copilot_testFailure": "test_failure",
    "copilot_toolReplay": "tool_replay",
    "copilot_updateUserPreferences": "update_user_preferences",
}
"""The names that the model calls tools by, where the editor shows them under others."""
