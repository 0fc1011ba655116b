"""Continue sessions (design/formats.md#continue): `sessions/<id>.json`, one document each, rewritten with every
message, and `sessions.json`, which alone has their start times."""

from msgspec import structs

from agentsignals.formats import Claim, Format, read_by
from agentsignals.formats import profile as tools
from agentsignals.formats.records import CUT, Head

_PATH = ("filepath", "file_path", "dirpath", "path")
_READ, _SEARCH, _FIND, _EDIT, _WRITE = (
    structs.replace(tool, path=_PATH) for tool in (tools.READ, tools.SEARCH, tools.FIND, tools.EDIT, tools.WRITE)
)

PROFILE = tools.Profile(
    agent="continue",
    homes=("~/.continue/sessions", "$CONTINUE_GLOBAL_DIR/sessions"),
    tools=tools.named(
        (_READ, "Read read_file read_file_range read_currently_open_file"),
        (_SEARCH, "Search grep_search codebase"),
        (_FIND, "List ls file_glob_search view_subdirectory view_repo_map"),
        (_EDIT, "Edit MultiEdit single_find_and_replace multi_edit"),
        (structs.replace(_EDIT, roles=None), "edit_existing_file"),
        (_WRITE, "Write create_new_file"),
        (tools.SHELL.within("timeout"), "Bash run_terminal_command"),
        (tools.READ.to("poll"), "CheckBackgroundJob"),
        (tools.PLAN, "Checklist"),
        (tools.TASK, "Subagent"),
        (tools.SKILL, "Skills read_skill"),
        (tools.WEB, "Fetch search_web fetch_url_content"),
        (tools.ASK, "AskQuestion"),
        (tools.ASIDE, "Diff view_diff Exit Status ReportFailure UploadArtifact create_rule_block request_rule"),
    ),
    tools_like={"mcp_*": tools.MCP},
    nothing_found=("No matches found for pattern",),
    stopped=(("error", ("[Command timed out after",)),),
    failures=(("edit_mismatch", ("string not found in file",)), ("permission", ("blocked by security policy",))),
)


def claims(head: Head) -> Claim | None:
    """Recognize `workspaceDirectory` with the `history` of a session, or in all entries of a list."""
    document = head.document
    session_id, history = document.get("sessionId"), document.get("history")
    if isinstance(session_id, str) and "workspaceDirectory" in document:
        is_session = history is CUT or (
            isinstance(history, list)
            and (not history or any(isinstance(item, dict) and "message" in item for item in history))
        )
        return Claim(keys=[f"session:{session_id}"], by_folder=True) if is_session else None
    listed = {"sessionId", "dateCreated", "workspaceDirectory"}
    is_list = any(listed <= entry.keys() and "history" not in entry for entry in head.items)
    return Claim(keys=[], by_folder=True) if is_list else None


FORMAT = Format(
    name="continue",
    marks=(b'"workspaceDirectory"',),
    version=2,
    claims=claims,
    read=read_by("continue_.reader"),
    profile=PROFILE,
)
