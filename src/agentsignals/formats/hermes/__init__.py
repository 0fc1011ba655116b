"""Hermes' sessions (design/formats.md#small-formats): rows of `~/.hermes/state.db`, and before that
`~/.hermes/sessions/session_<id>.json`. Its tools also occur in data sets of other formats."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from agentsignals.formats import Ask, Claim, Database, Format, Held, json_of, listed, rows_of, whole_of
from agentsignals.formats import profile as tools
from agentsignals.formats.records import CUT, Head

PROFILE = tools.Profile(
    agent="hermes",
    aliases=("hermes-agent",),
    homes=("~/.hermes/sessions", "~/.hermes/state.db", "$HERMES_HOME/sessions", "$HERMES_HOME/state.db"),
    state=("sessions/sessions.json", "sessions/request_dump_*"),
    tools=tools.named(
        (tools.SHELL, "terminal"),
        (tools.NO_SHELL, "process execute_code"),
        (tools.READ, "read_file"),
        (tools.SEARCH, "search_files session_search"),
        (tools.EDIT, "patch"),
        (tools.WRITE, "write_file"),
        (tools.WEB, "web_search web_extract web_crawl"),
        (tools.PLAN, "todo"),
        (tools.TASK, "delegate_task mixture_of_agents skill_manage skills_list"),
        (tools.SKILL, "skill_view"),
        (tools.ASK, "clarify"),
        (tools.ASIDE, "memory vision_analyze image_generate send_message cronjob"),
    ),
    tools_like={"browser_*": tools.WEB},
    machine_written=(("[CONTEXT COMPACTION", "compaction"), ("[CONTEXT SUMMARY]:", "compaction")),
)


_OF_ROWS = ("api_calls", "tool_stats", "toolsets_used")
_EXPORTED = frozenset(("source", "started_at", "message_count"))
"""What `hermes sessions export` writes of every session, a line each, beside its messages."""
_FACTS = ("completed", "partial", "api_calls", "category", "subcategory", "task")


def is_row(row: Mapping[str, Any]) -> bool:
    """Return whether a row of a table of conversations is of those that Hermes writes."""
    if row.keys() >= _EXPORTED or {"completed", "partial"} <= row.keys():
        return True
    return any(row.get(name) is not None for name in _OF_ROWS)


def facts_of(row: Mapping[str, Any]) -> str:
    """Return what such a row says of its run."""
    return msgspec.json.encode({name: row[name] for name in _FACTS if row.get(name) is not None}).decode()


_SESSION = ("id", "source", "model", "parent_session_id", "started_at", "title")
_PLACE = ("cwd", "git_branch")
_MESSAGE = ("role", "content", "tool_call_id", "tool_calls", "timestamp", "finish_reason", "reasoning")
_STATE = ("active", "compacted")
_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


def sessions(ask: Ask) -> Iterator[Held]:
    """Yield every session with the time of its last message."""
    query = (
        "SELECT s.id, max(m.timestamp), count(m.id), max(m.id) FROM sessions s"
        " LEFT JOIN messages m ON m.session_id = s.id GROUP BY s.id ORDER BY s.id"
    )
    for session_id, changed, rows, last in ask(query):
        yield Held(session_id, int((changed or 0) * 1000), rows, whole_of(last))


def document(ask: Ask, session_id: bytes) -> Iterator[bytes]:
    """Yield a session with its messages in order, and its tokens by model."""
    own_id = session_id.decode()
    facts = next(rows_of(ask, "sessions", (*_SESSION, *_PLACE, *_TOKENS), "WHERE id = ?", own_id), None)
    if facts is None:
        return
    models = list(rows_of(ask, "session_model_usage", ("model", *_TOKENS), "WHERE session_id = ?", own_id))
    named = {"session_id": facts["id"], "platform": facts["source"], "session_start": facts["started_at"]}
    yield msgspec.json.encode({**facts, **named, "usage": models or [facts]})[:-1] + b',"messages":['
    rows = rows_of(ask, "messages", (*_MESSAGE, *_STATE), "WHERE session_id = ? ORDER BY id", own_id)
    yield from listed(msgspec.json.encode({**row, "tool_calls": json_of(row["tool_calls"])}) for row in rows)
    yield b"]}"


DATABASE = Database(
    columns={"sessions": _SESSION, "messages": ("id", "session_id", *_MESSAGE)},
    some_have={
        "sessions": (*_PLACE, *_TOKENS),
        "messages": _STATE,
        "session_model_usage": ("session_id", "model", *_TOKENS),
    },
    sessions=sessions,
    document=document,
)


def claims(head: Head) -> Claim | None:
    """Recognize a session by its platform, its start and its messages. The head may end before the messages."""
    document = head.document
    session_id, messages = document.get("session_id"), document.get("messages", None if head.complete else CUT)
    is_session = isinstance(session_id, str) and {"platform", "session_start"} <= document.keys()
    return (
        Claim(keys=[f"session:{session_id}"])
        if is_session and (messages is CUT or isinstance(messages, list))
        else None
    )


FORMAT = Format(
    name="hermes", marks=(b'"session_start"',), version=3, claims=claims, profile=PROFILE, database=DATABASE
)
