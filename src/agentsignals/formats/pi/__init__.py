"""Pi sessions (design/formats.md#pi): `~/.pi/agent/sessions/<cwd>/<time>_<id>.jsonl`, trees (v2, v3) or lines (v1);
and OpenClaw's (design/formats.md#openclaw), the same entries in a database."""

import re
from collections.abc import Iterator

import msgspec
from msgspec import structs

from agentsignals.formats import Ask, Claim, Database, Format, Held, whole_of
from agentsignals.formats import profile as tools
from agentsignals.formats.records import Head

_COMPRESSED = b'{"type":"compressed event"}'
"""Replaces a compressed event. The reader counts it as not understood."""
_ASKED_BY = (
    "SELECT n.current_session_id FROM session_windows w JOIN session_nodes n"
    " ON n.session_key = coalesce(w.spawned_by, w.parent_session_key) WHERE w.session_id = ?"
)


def sessions(ask: Ask) -> Iterator[Held]:
    """Yield every session with events. A rewrite changes only the time of the transcript."""
    rows = {i: (n, whole_of(at)) for i, n, at in ask(
        "SELECT session_id, count(*), max(created_at) FROM transcript_events GROUP BY session_id"
    )}  # fmt: skip
    for session_id, updated in ask("SELECT session_id, transcript_updated_at FROM session_windows ORDER BY session_id"):
        if session_id in rows:
            count, last = rows[session_id]
            yield Held(session_id, max(last, whole_of(updated)), count)


def document(ask: Ask, session_id: bytes) -> Iterator[bytes]:
    """Yield the events in order. The header gets the session that spawned this one."""
    name = session_id.decode()
    asked_by = next((row[0] for row in ask(_ASKED_BY, name)), None)
    for seq, event in ask("SELECT seq, event_json FROM transcript_events WHERE session_id = ? ORDER BY seq", name):
        line = event.replace(b"\n", b" ").rstrip() if isinstance(event, bytes) else _COMPRESSED
        if seq == 0 and isinstance(asked_by, bytes) and line.endswith(b"}") and len(line) > len("{}"):
            line = line[:-1] + b',"spawnedBy":' + msgspec.json.encode(asked_by.decode("utf-8", "replace")) + b"}"
        yield line + b"\n"


DATABASE = Database(
    columns={
        "transcript_events": ("session_id", "seq", "event_json", "created_at"),
        "session_windows": ("session_id", "spawned_by", "parent_session_key", "transcript_updated_at"),
        "session_nodes": ("session_key", "current_session_id"),
    },
    sessions=sessions,
    document=document,
)


PROFILE = tools.Profile(
    agent="pi",
    instructions=("AGENTS.md",),
    instructions_perhaps=("CLAUDE.md",),
    homes=("~/.pi/agent/sessions", "$PI_CODING_AGENT_DIR/sessions"),
    tools=tools.named(
        (tools.READ, "read"),
        (tools.SEARCH, "grep"),
        (tools.FIND, "find ls"),
        (tools.EDIT, "edit"),
        (tools.WRITE, "write"),
        (tools.SHELL.within("timeout"), "bash"),
        (tools.TASK, "subagent subagent_supervisor contact_supervisor intercom"),
        (tools.SKILL, "skill"),
        (tools.WEB, "websearch webfetch web_search web_fetch fetch_content searxng_search"),
        (tools.ASK, "ask_user_question ask_user question"),
        (tools.PLAN, "todo"),
        (tools.HAND_IN, "plannotator_submit_plan exit_plan_mode"),
        (tools.MCP, "mcp"),
    ),
    conventions=("phases_logged", "rewinds_logged"),
    machine_written=(
        ("Task: [Read from:", "meta"),
        ("Task: [Write to:", "meta"),
    ),
    nothing_found=("No matches found", "No files found", "No results found"),
    frame=(r"Command exited with code -?\d+",),
    blocks_in_any_words=("edit",),
)

OPENCLAW = structs.replace(
    PROFILE,
    agent="openclaw",
    instructions=(),
    instructions_perhaps=("AGENTS.md",),
    aliases=("clawdbot", "moltbot"),
    homes=(
        *("~/.openclaw/agents", "$OPENCLAW_STATE_DIR/agents"),
        *("~/.clawdbot/agents", "~/.moltbot/agents"),  # as it was called before
    ),
    state=("agents/*.sqlite.*",),
    tools={
        **{name: tool for name, tool in PROFILE.tools.items() if tool is not tools.HAND_IN},
        **tools.named(
            (tools.SHELL.within("timeout"), "exec"),
            (tools.TASK.to("poll"), "process"),
            (tools.EDIT, "apply_patch"),
            (tools.TASK, "sessions_spawn sessions_send subagents"),
            (tools.WEB, "browser"),
            (tools.ASIDE, "openclaw message cron gateway nodes canvas image memory_search memory_get session_status"),
        ),
    },
    frame=(r"\(Command exited with code -?\d+\)",),
)
"""A gateway from chats to an agent built of Pi's parts. It writes the same entries."""


_SESSION_FILE = re.compile(r"_([^_/\\]+)\.jsonl$")


def claims(head: Head) -> Claim | None:
    """Recognize a header of type `session` with the working folder and without a `harness` (that is HF STS) or a
    `delegationDepth` (that is DeepSeek's).

    A fork shares its parent's key, so that what it copied counts once. Forks of a fork share their first entry.
    """
    records = head.records
    header = next((r for r in records if r.get("type") == "session"), None)
    if header is None or {"harness", "delegationDepth"} & header.keys() or not isinstance(header.get("cwd"), str):
        return None
    if not isinstance(header.get("id"), str) or any("harness" in r or "parentUuid" in r for r in records):
        return None
    keys = [f"session:{header['id']}"]
    parent = session_of(header.get("parentSession")) or session_of(header.get("branchedFrom"))
    if parent is not None:
        keys.append(f"session:{parent}")
    first = next((r for r in records if r is not header and r.get("timestamp")), None)
    if first is not None:
        keys.append(f"record:{first['timestamp']}")
    return Claim(keys=keys)


def session_of(file: object) -> str | None:
    """Return the session id in a file name (`<time>_<id>.jsonl`). None for another name."""
    match = _SESSION_FILE.search(file) if isinstance(file, str) else None
    return match.group(1) if match else None


FORMAT = Format(
    name="pi", marks=(b'"session"',), version=7, claims=claims, profile=PROFILE, forks=(OPENCLAW,), database=DATABASE
)
