"""Factory Droid sessions (design/formats.md#small-formats): `~/.factory/sessions/<cwd>/<id>.jsonl`, with the model and
the session's tokens in `<id>.settings.json`; and what `droid exec --output-format stream-json` prints: a start,
messages, thoughts and calls, each a record, and a completion with the run's tokens."""

from agentsignals.formats import Claim, Format, in_path, read_by
from agentsignals.formats import profile as tools
from agentsignals.formats.records import Head

PROFILE = tools.Profile(
    agent="factory-droid",
    instructions=("AGENTS.md",),
    aliases=("droid",),
    homes=("~/.factory/sessions",),
    tools=tools.named(
        (tools.READ, "Read"),
        (tools.SEARCH, "Grep"),
        (tools.FIND, "Glob LS"),
        (tools.EDIT, "Edit MultiEdit ApplyPatch"),
        (tools.WRITE, "Create Write"),
        (tools.SHELL, "Execute"),
        (tools.PLAN, "TodoWrite ProposeMission"),
        (tools.HAND_IN, "ExitSpecMode"),
        (tools.TASK, "Task"),
        (tools.SKILL, "Skill"),
        (tools.WEB, "WebSearch FetchUrl"),
        (tools.ASK, "AskUser"),
    ),
    frame=(r"\[Process exited with code -?\d+\]", r"Error: Command failed \(exit code: -?\d+\)"),
    nothing_found=("No matches found", "No files found", "No results found"),
    failures=(("edit_mismatch", ("could not find the text", "old_str not found", "old_str and new_str are")),),
)


def claims(head: Head) -> Claim | None:
    """Recognize a `session_start` (Copilot's is `session.start`) with an owner or title, or followed by messages; and a
    session's settings, whose place names the session."""
    if is_settings(head):
        session_id = session_of(head.path)
        return Claim(keys=[f"session:{session_id}"] if session_id else [], by_folder=not session_id)
    records = head.records
    start = next((r for r in records if r.get("type") == "session_start"), None)
    if start is None or not isinstance(start.get("id"), str):
        return None
    messages = any(r.get("type") == "message" and isinstance(r.get("message"), dict) for r in records)
    if not messages and not any(key in start for key in ("owner", "sessionTitle", "title")):
        return None
    return Claim(keys=[f"session:{start['id']}"])


session_of = in_path(r"(?:\A|/)([^/]+)\.settings\.json\Z")
"""Returns the session that the path of a file names."""


def is_settings(head: Head) -> bool:
    """Return whether a file is the settings of a session, which hold its tokens."""
    return "assistantActiveTimeMs" in head.document and "type" not in head.document


FORMAT = Format(
    name="factory-droid",
    marks=(b'"session_start"', b'"assistantActiveTimeMs"'),
    version=5,
    claims=claims,
    profile=PROFILE,
)


_OWN = {"tool_call": "toolName", "tool_result": "isError", "completion": "finalText", "message": "text"}
"""Records that the streams of Claude and of Cursor have not, with a field of each."""


def claims_printed(head: Head) -> Claim | None:
    """Claim records that name their session in snake case, if one of them is of Droid's own kind."""
    records = head.records
    ids = [r["session_id"] for r in records if isinstance(r.get("session_id"), str) and r["session_id"]]
    if not ids or not any(
        _OWN.get(str(r.get("type")), "") in r or (r.get("subtype") == "init" and "reasoning_effort" in r)
        for r in records
    ):
        return None
    return Claim(keys=[f"session:{session_id}" for session_id in dict.fromkeys(ids)])


DROID_EXEC_FORMAT = Format(
    name="droid-exec",
    marks=(b'"tool_call"', b'"completion"', b'"session_id"'),
    version=2,
    claims=claims_printed,
    read=read_by("factory_droid.reader", "read_printed"),
    profile=PROFILE,
)
