"""Crush sessions (design/formats.md#crush): the rows of each project's `crush.db`, each session as a document."""

from collections.abc import Iterator

import msgspec
from msgspec import structs

from agentsignals.formats import Ask, Claim, Database, Format, Held, json_of, listed, rows_of, whole_of
from agentsignals.formats import profile as tools
from agentsignals.formats.records import Head

_SESSION = ("id", "parent_session_id", "title", "cost", "created_at", "updated_at")
_MESSAGE = ("id", "session_id", "role", "parts", "model", "created_at", "updated_at")


def sessions(ask: Ask) -> Iterator[Held]:
    """Yield every session with its last change, which is logged in whole seconds."""
    query = "SELECT session_id, count(*), max(updated_at) FROM messages GROUP BY session_id"
    rows = {session_id: (count, changed) for session_id, count, changed in ask(query)}
    for session_id, updated in ask("SELECT id, updated_at FROM sessions ORDER BY id"):
        count, changed = rows.get(session_id, (0, 0))
        yield Held(session_id, max(whole_of(updated), whole_of(changed)) * 1000, count)


def document(ask: Ask, session_id: bytes) -> Iterator[bytes]:
    """Yield a session with its messages in order."""
    own_id = session_id.decode()
    facts = next(rows_of(ask, "sessions", _SESSION, "WHERE id = ?", own_id), None)
    if facts is None:
        return
    (facts["children_cost"],) = next(ask("SELECT sum(cost) FROM sessions WHERE parent_session_id = ?", own_id))
    yield msgspec.json.encode(facts)[:-1] + b',"messages":['
    columns, in_order = (*_MESSAGE, "is_summary_message"), "WHERE session_id = ? ORDER BY created_at, rowid"
    rows = rows_of(ask, "messages", columns, in_order, own_id)
    yield from listed(msgspec.json.encode({**row, "parts": json_of(row["parts"])}) for row in rows)
    yield b"]}"


DATABASE = Database(
    columns={"sessions": _SESSION, "messages": _MESSAGE},
    some_have={"messages": ("is_summary_message",)},
    sessions=sessions,
    document=document,
)


PROFILE = tools.Profile(
    agent="crush",
    instructions_perhaps=(  # by version: https://github.com/charmbracelet/crush/blob/main/internal/config/config.go
        "CRUSH.md",
        "CRUSH.local.md",
        "AGENTS.md",
        "CLAUDE.md",
        "CLAUDE.local.md",
        "GEMINI.md",
        ".cursorrules",
        ".cursor/rules/**/*",
        ".github/copilot-instructions.md",
    ),
    homes=tuple(
        f"{data}/projects.json:data_dir/crush.db"
        for data in ("~/.local/share/crush", "$XDG_DATA_HOME/crush", "$LOCALAPPDATA/crush", "$CRUSH_GLOBAL_DATA")
    ),
    tools=tools.named(
        (tools.READ, "view"),
        (tools.SEARCH, "grep sourcegraph lsp_references references"),
        (tools.FIND, "glob ls"),
        (tools.EDIT, "edit multiedit"),
        (tools.WRITE, "write"),
        (structs.replace(tools.SHELL, folder=("working_dir",)), "bash"),
        (tools.READ.to("poll"), "job_output"),
        (tools.PLAN, "todos"),
        (tools.TASK, "agent agentic_fetch"),
        (tools.WEB, "fetch web_fetch web_search download"),
        (tools.ASIDE, "diagnostics lsp_diagnostics lsp_restart job_kill"),
    ),
    tools_like={"mcp_*": tools.MCP},
    frame=(r"<cwd>.*</cwd>", r"exit status -?\d+", "no output"),
    nothing_found=("No files found",),
    stopped=(("cancelled", ("user cancelled assistant tool calling", "Command was aborted before completion")),),
)


def claims(head: Head) -> Claim | None:
    """Recognize a session's columns, its children's cost, and messages."""
    document = head.document
    session_id = document.get("id")
    is_session = {"parent_session_id", "children_cost", "messages"} <= document.keys()
    return Claim(keys=[f"session:{session_id}"]) if is_session and isinstance(session_id, str) else None


FORMAT = Format(name="crush", marks=(b'"children_cost"',), version=1, claims=claims, database=DATABASE, profile=PROFILE)
