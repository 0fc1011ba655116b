"""Cline, Roo Code and Kilo Code (design/formats.md#cline).

A task is a folder with what the user interface shows (`ui_messages.json`) and the model's history
(`api_conversation_history.json`). A session of Cline's CLI (from 3.0) is a document of messages and one that describes
it.
"""

import posixpath
import re

from msgspec import structs

from agentsignals.formats import Claim, Format, session_folder
from agentsignals.formats import profile as tools
from agentsignals.formats.records import CUT, Head
from agentsignals.model import Roles

_USERS = tuple(
    f"{config}/{editor}/User"
    for config in ("~/.config", "~/Library/Application Support", "$APPDATA")
    for editor in ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
) + tuple(f"~/.{server}/data/User" for server in ("vscode-server", "vscode-server-insiders", "cursor-server"))
"""User folders of editors: on Linux, macOS, Windows, and on remote machines."""


def _tasks(extension: str) -> tuple[str, ...]:
    return tuple(f"{user}/globalStorage/{extension}/tasks" for user in _USERS)


def _at_path(tool: tools.Tool) -> tools.Tool:
    """Models of some families name a file by its whole path."""
    return structs.replace(tool, path=(*tool.path, "absolutePath"))


_EDIT = structs.replace(
    _at_path(tools.EDIT),
    roles=structs.replace(
        tools.EDIT_ROLES,
        replace=(*tools.EDIT_ROLES.replace, ("old_text", "new_text"), ("search", "replace")),
        line=("insert_line",),
    ),
)
_UI_EDIT = structs.replace(tools.EDIT, roles=Roles(patch=("diff", "content")))
"""An edit in `ui_messages.json`, the log of what the user interface shows: search and replace blocks, or a diff."""

PROFILE = tools.Profile(
    agent="cline",
    conventions=("rewinds_logged",),
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
    tools=tools.named(
        (_at_path(tools.READ), "read_file read_files fetch_instructions access_mcp_resource read_command_output"),
        (tools.SEARCH, "search_files search_codebase codebase_search list_code_definition_names"),
        (tools.SEARCH, "searchFiles codebaseSearch listCodeDefinitionNames"),
        (tools.FIND, "list_files listFilesTopLevel listFilesRecursive"),
        (_EDIT, "editor replace_in_file apply_diff apply_patch insert_content search_and_replace search_replace"),
        (_EDIT, "edit edit_file"),
        (_at_path(tools.WRITE), "write_to_file newFileCreated"),
        (_UI_EDIT, "editedExistingFile appliedDiff insertContent searchAndReplace"),
        (tools.SHELL.within("timeout"), "execute_command run_commands"),
        (tools.PLAN, "update_todo_list updateTodoList"),
        (tools.TASK, "new_task newTask use_subagents spawn_agent team_run_task team_spawn_teammate"),
        (tools.SKILL, "skill use_skill run_slash_command"),
        (tools.WEB, "web_fetch web_search fetch_web_content browser_action webFetch webSearch"),
        (tools.ASK, "ask_followup_question ask_question"),
        (tools.MCP, "use_mcp_tool use_mcp_server"),
        (tools.ASIDE, "condense summarize_task switch_mode switchMode finishTask new_rule load_mcp_documentation"),
    ),
    tools_like={"readF*": tools.READ},
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


_TASK = re.compile(r"\d{10,16}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Names of tasks: the millisecond they began, or (Roo, from 3.17) a UUID."""
_UI_MESSAGES = re.compile(r'\[\s*\{\s*"ts":\s*\d+,\s*"type":\s*"(?:say",\s*"say|ask",\s*"ask)":\s*"[a-z_]{3,40}"')
_MODEL_HISTORY = re.compile(
    r'\[\s*\{\s*"role":\s*"user",\s*"content":\s*\[\s*\{\s*"type":\s*"text",\s*"text":\s*"(?:<task>|<user_message>)\\n'
)
_METADATA = frozenset(("files_in_context", "model_usage", "environment_history"))
_OF_ITEM = frozenset(("id", "number", "ts", "task", "tokensIn", "tokensOut", "totalCost"))
_OF_CHAT = frozenset(("agent", "sessionId", "messages", "version"))
_OF_RUN = frozenset(("session_id", "source", "started_at", "status", "workspace_root", "enable_tools"))


def kind_of(head: Head) -> str | None:
    """Return which of the files it is, or None."""
    if head.data[:512].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"[":
        return (
            "shown"
            if _UI_MESSAGES.match(head.text.strip())
            else "history"
            if _MODEL_HISTORY.match(head.text.strip())
            else None
        )
    keys = head.document.keys()
    if _is_chat(head):
        return "chat"
    if keys >= _OF_RUN:
        return "run"
    if keys >= _OF_ITEM:
        return "item"
    return "metadata" if "files_in_context" in keys and keys <= _METADATA else None


def _is_chat(head: Head) -> bool:
    document = head.document
    messages = document.get("messages")
    return (
        document.keys() >= _OF_CHAT
        and isinstance(document["sessionId"], str)
        and (messages is CUT or isinstance(messages, list))
    )


def claims(head: Head) -> Claim | None:
    """Recognize `ui_messages.json` by rows with `ts` and `say` or `ask`, the model's history by a task at its start,
    and the three documents by their keys."""
    kind = kind_of(head)
    if kind is None:
        return None
    if kind in ("chat", "run"):
        return Claim(keys=[f"session:{head.document['sessionId' if kind == 'chat' else 'session_id']}"])
    task = task_of(head.path)
    return Claim(keys=[f"session:{task}"] if task else [], by_folder=True)


def task_of(path: str) -> str | None:
    """Return the task that a file's folder names."""
    name = posixpath.basename(posixpath.dirname(path))
    return name if _TASK.fullmatch(name) else None


FORMAT = Format(
    name="cline",
    marks=(b'"ts"', b"<task>", b"<user_message>", b'"messages"', b'"enable_tools"', b'"files_in_context"'),
    version=1,
    claims=claims,
    unit=session_folder(),
    profile=PROFILE,
    forks=(ROO, KILO),
    snapshots=False,
)
