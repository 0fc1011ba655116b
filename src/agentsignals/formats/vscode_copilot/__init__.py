"""Copilot Chat in VS Code (design/formats.md#vs-code-copilot-chat).

The editor keeps a chat as a document, since 1.109 as a log of changes to it. The extension writes what its agent does
in the events of Copilot CLI, and traces into a database.
"""

import posixpath
import re
from collections.abc import Iterator

import msgspec
from msgspec import structs

from agentsignals.formats import Ask, Claim, Database, Format, Held, plain
from agentsignals.formats import profile as tools
from agentsignals.formats.copilot_cli import IN_VS_CODE
from agentsignals.formats.records import CUT, Head, decoded
from agentsignals.model import Roles

_SEVERAL = structs.replace(tools.EDIT, roles=structs.replace(tools.EDIT_ROLES, several=("replacements",)))
_TODO = structs.replace(tools.PLAN, roles=structs.replace(tools.PLAN.roles or Roles(), steps=("todoList",)))
_TESTS = tools.Tool(class_="test")

PROFILE = tools.Profile(
    agent="vscode-copilot",
    conventions=("rewinds_logged",),
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
    tools=tools.named(
        (tools.READ, "read_file copilot_getNotebookSummary read_notebook_cell_output view_image"),
        (
            tools.READ.to("poll"),
            "get_terminal_output get_task_output terminal_last_command terminal_selection await_terminal",
        ),
        (tools.SEARCH, "grep_search semantic_search list_code_usages search_workspace_symbols get_search_view_results"),
        (tools.SEARCH.to("tool_search"), "tool_search_tool_regex tool_search"),
        (tools.FIND, "file_search list_dir test_search read_project_structure"),
        (tools.EDIT, "replace_string_in_file insert_edit_into_file apply_patch edit_notebook_file edit_files"),
        (_SEVERAL, "multi_replace_string_in_file"),
        (tools.WRITE, "create_file"),
        (tools.SHELL.within("timeout", 0.001), "run_in_terminal"),
        (tools.SHELL, "run_task create_and_run_task run_notebook_cell"),
        (_TESTS, "runTests run_tests"),
        (_TODO, "manage_todo_list"),
        (tools.TASK, "runSubagent run_subagent search_subagent execution_subagent"),
        (tools.WEB, "fetch_webpage github_repo open_simple_browser"),
        (tools.ASK, "ask_questions vscode_askQuestions"),
        (
            tools.ASIDE,
            "get_errors get_changed_files test_failure get_vscode_api get_doc_info memory update_user_preferences"
            " create_directory create_new_workspace create_new_jupyter_notebook get_project_setup_info"
            " install_extension run_vscode_command vscode_get_confirmation vscode_get_terminal_confirmation"
            " kill_terminal terminal_selection tool_replay",
        ),
    ),
    tools_like={"mcp_*": tools.MCP, "activate_*": tools.SEARCH.to("tool_search")},
    frame=(r"Command produced no output", r"Command exited with code -?\d+"),
    nothing_found=("No matches found", "No files found", "No results found", "No workspace symbols"),
    stopped=(("cancelled", ("The user cancelled the tool call.",)),),
    failures=(
        ("edit_mismatch", ("could not find matching text to replace", "string replacement failed", "multiple matches")),
        ("not_found", ("invalid input path", "cannot find file", "file not found")),
    ),
)

SHOWN_AS = {
    "copilot_applyPatch": "apply_patch", "copilot_createAndRunTask": "create_and_run_task",
    "copilot_createDirectory": "create_directory", "copilot_createFile": "create_file",
    "copilot_createNewJupyterNotebook": "create_new_jupyter_notebook",
    "copilot_createNewWorkspace": "create_new_workspace", "copilot_editFiles": "edit_files",
    "copilot_editNotebook": "edit_notebook_file", "copilot_fetchWebPage": "fetch_webpage",
    "copilot_findFiles": "file_search", "copilot_findTestFiles": "test_search",
    "copilot_findTextInFiles": "grep_search", "copilot_getChangedFiles": "get_changed_files",
    "copilot_getDocInfo": "get_doc_info", "copilot_getErrors": "get_errors",
    "copilot_getProjectSetupInfo": "get_project_setup_info", "copilot_getSearchResults": "get_search_view_results",
    "copilot_getVSCodeAPI": "get_vscode_api", "copilot_githubRepo": "github_repo",
    "copilot_insertEdit": "insert_edit_into_file", "copilot_installExtension": "install_extension",
    "copilot_listCodeUsages": "list_code_usages", "copilot_listDirectory": "list_dir", "copilot_memory": "memory",
    "copilot_multiReplaceString": "multi_replace_string_in_file", "copilot_openSimpleBrowser": "open_simple_browser",
    "copilot_readFile": "read_file", "copilot_readNotebookCellOutput": "read_notebook_cell_output",
    "copilot_readProjectStructure": "read_project_structure", "copilot_replaceString": "replace_string_in_file",
    "copilot_runNotebookCell": "run_notebook_cell", "copilot_runTests1": "run_tests",
    "copilot_runVscodeCommand": "run_vscode_command", "copilot_searchCodebase": "semantic_search",
    "copilot_searchWorkspaceSymbols": "search_workspace_symbols", "copilot_testFailure": "test_failure",
    "copilot_toolReplay": "tool_replay", "copilot_updateUserPreferences": "update_user_preferences",
}  # fmt: skip
"""Names that the model uses for tools that the editor shows under other names."""


# -- the extension's database of traces: the spans of one chat as a document
# A span belongs to the chat that it names, else to that of the span around it. One that makes a title names the chat
# that it is for. Tool definitions, system instructions and the repeated conversation of each call are not read.

PARENT = "copilot_chat.parent_chat_session_id"
WRITTEN = "gen_ai.usage.cache_creation.input_tokens"
_FACTS = (
    "gen_ai.output.messages", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "gen_ai.response.finish_reasons",
    "copilot_chat.repo.remote_url", "copilot_chat.repo.head_branch_name", "copilot_chat.user_request", "error.type",
    PARENT, WRITTEN,
)  # fmt: skip
_COLUMNS = (
    "span_id", "parent_span_id", "operation_name", "agent_name", "start_time_ms", "end_time_ms", "status_code",
    "status_message", "request_model", "response_model", "input_tokens", "output_tokens", "cached_tokens",
    "reasoning_tokens", "tool_name", "tool_call_id",
)  # fmt: skip


def sessions(ask: Ask) -> Iterator[Held]:
    """Yield every chat that spans name, with the end of the last span."""
    query = "SELECT chat_session_id, count(*), max(end_time_ms) FROM spans WHERE chat_session_id <> '' GROUP BY 1"
    for session_id, spans, ended in ask(query):
        yield Held(session_id, int(ended) if isinstance(ended, int | float) else 0, spans)


def document(ask: Ask, session_id: bytes) -> Iterator[bytes]:
    """Yield the document of a chat: its spans in order of their start, of nested ones the outer first."""
    name = session_id.decode("utf-8", "replace")
    yield b'{"chatSessionId":' + msgspec.json.encode(name) + b',"spans":['
    comma = b""
    for row in _rows(ask, name):
        values = next(ask(f"SELECT {', '.join(_COLUMNS)} FROM spans WHERE rowid = ?", row))  # noqa: S608  (our words)
        span = dict(zip(_COLUMNS, map(plain, values), strict=True))
        span_id = str(span["span_id"])
        wanted = ", ".join("?" * len(_FACTS))
        query = f"SELECT key, value FROM span_attributes WHERE span_id = ? AND key IN ({wanted})"  # noqa: S608
        span["facts"] = {str(plain(key)): plain(value) for key, value in ask(query, span_id, *_FACTS)}
        if span["operation_name"] == "invoke_agent":  # the prompt; an attribute of the span may hold it, too
            query = "SELECT attributes FROM span_events WHERE span_id = ? AND name = 'user_message'"
            events = (decoded(attributes, dict[str, object]) for (attributes,) in ask(query, span_id))
            span["prompt"] = next((event.get("content") for event in events if event is not None), None)
        yield comma + msgspec.json.encode(span)
        comma = b","
    yield b"]}"


def _rows(ask: Ask, name: str) -> list[int]:
    """Return the rows of a chat's spans."""
    of_traces = (
        "SELECT rowid, span_id, parent_span_id, chat_session_id, start_time_ms, end_time_ms FROM spans"
        " WHERE trace_id IN (SELECT trace_id FROM spans WHERE chat_session_id = ?)"
    )
    spans = {plain(row[1]): [plain(value) for value in row] for row in ask(of_traces, name)}
    mine = [span for span in spans.values() if _chat_of(span, spans) == name]
    of_titles = (
        "SELECT s.rowid, s.span_id, s.parent_span_id, s.chat_session_id, s.start_time_ms, s.end_time_ms FROM spans s"
        " JOIN span_attributes a ON a.span_id = s.span_id AND a.key = ?"
        " WHERE s.parent_span_id IS NULL AND s.chat_session_id IS NULL AND a.value = ?"
    )
    mine += [[plain(value) for value in row] for row in ask(of_titles, PARENT, name) if plain(row[1]) not in spans]

    def times(span: list[object]) -> tuple[float, float]:
        began, ended = (at if isinstance(at, int | float) else 0 for at in span[4:6])
        return began, -ended

    return [span[0] for span in sorted(mine, key=times) if isinstance(span[0], int)]


def _chat_of(span: list[object], spans: dict[object, list[object]]) -> object:
    """Return the chat that a span names, or the nearest span above it that names one."""
    seen: set[object] = set()
    at: list[object] | None = span
    while at is not None and at[1] not in seen:
        if at[3]:
            return at[3]
        seen.add(at[1])
        at = spans.get(at[2])
    return None


DATABASE = Database(
    columns={
        "spans": (*_COLUMNS, "trace_id", "chat_session_id"),
        "span_attributes": ("span_id", "key", "value"),
        "span_events": ("span_id", "name", "attributes"),
    },
    sessions=sessions,
    document=document,
)


_FOLDERS = frozenset(("chatSessions", "emptyWindowChatSessions", "transcripts"))
_SNAPSHOT = re.compile(r'\s*\{\s*"kind"\s*:\s*0\s*,\s*"v"\s*:\s*\{[^\[\]]{0,4000}"(?:responderUsername|creationDate)"')
_ID = re.compile(r'"sessionId"\s*:\s*"([^"\\]{1,100})"')
_WORKSPACE = ("folder", "workspace", "configuration")
_OF_A_CHAT = ("responderUsername", "inputState", "initialLocation", "creationDate", "requesterUsername")


def claims(head: Head) -> Claim | None:
    """Claim a document of `requests` with the name of who answers them, or a log whose first line is one; events that
    say that the extension wrote them; traces; and `workspace.json`, which names the folder."""
    events = (r["data"] for r in head.records if r.get("type") == "session.start" and isinstance(r.get("data"), dict))
    begun = next((data for data in events if IN_VS_CODE in data), None)
    if begun is not None:
        return _claim(begun.get("sessionId"), head.path)
    document = head.document
    places = [document[name] for name in _WORKSPACE if name in document]
    if len(places) == len(document) > 0 and all(isinstance(place, str) and "://" in place for place in places):
        return Claim(keys=[], companion=True, lends=posixpath.dirname(head.path))
    if "spans" in document and isinstance(document.get("chatSessionId"), str):
        return _claim(document["chatSessionId"], "")
    if document.get("kind") == 0 and document.get("v") is CUT:
        begin = head.text[:8192]
        named = _ID.search(begin)
        return _claim(named[1] if named else None, head.path) if _SNAPSHOT.match(begin) else None
    chat = document.get("v") if document.get("kind") == 0 else document
    if not isinstance(chat, dict) or not (isinstance(chat.get("requests"), list) or chat.get("requests") is CUT):
        return None
    return _claim(chat.get("sessionId"), head.path) if any(name in chat for name in _OF_A_CHAT) else None


def _claim(session_id: object, path: str) -> Claim:
    names = [session_id, id_of_place(path)]
    keys = list(dict.fromkeys(f"session:{name}" for name in names if isinstance(name, str) and name))
    return Claim(keys=keys, root=path if names[1] is not None else None)  # what its workspace says may be lent to it


def id_of_place(path: str) -> str | None:
    """Return the session that the name of a file says. None outside of the folders where files are named so."""
    folder, name = posixpath.split(path)
    return name.rpartition(".")[0] or None if posixpath.basename(folder) in _FOLDERS else None


FORMAT = Format(name="vscode-copilot", version=1, claims=claims, profile=PROFILE, database=DATABASE)
