"""Goose sessions (design/formats.md#goose): the rows of `sessions.db`, each session as a document, and files of JSON
Lines.

The files are from before 1.10. Newer versions copied them into the database and left them.
"""

import posixpath
from collections import Counter
from collections.abc import Iterator

import msgspec
from msgspec import structs

from agentsignals.formats import Ask, Claim, Database, Format, Held, json_of, listed, plain, rows_of
from agentsignals.formats import profile as tools
from agentsignals.formats.records import Head
from agentsignals.model import from_iso

_SESSION = (
    "id", "name", "session_type", "working_dir", "created_at", "updated_at", "provider_name", "model_config_json",
    "accumulated_output_tokens",
)  # fmt: skip
_MESSAGE = ("id", "session_id", "role", "content_json", "created_timestamp", "metadata_json")
_CALL = (
    "created_timestamp", "model", "input_tokens", "output_tokens", "total_tokens", "cache_read_tokens",
    "cache_write_tokens", "cost", "cost_source", "is_compaction",
)  # fmt: skip
_SECONDS = 10**11
"""A larger number of seconds is one of milliseconds, which newer versions write."""


def sessions(ask: Ask) -> Iterator[Held]:
    """Yield every session with its last change, logged in whole seconds, and its number of rows, which tells more."""
    rows: Counter[bytes] = Counter()
    for table in ask.tables.keys() & {"messages", "usage_ledger"}:
        rows.update(dict(ask(f"SELECT session_id, count(*) FROM {table} GROUP BY session_id")))  # noqa: S608
    for session_id, updated in ask("SELECT id, updated_at FROM sessions ORDER BY id"):
        yield Held(session_id, (from_iso(str(plain(updated))) or 0) // 1000, rows[session_id])


def document(ask: Ask, session_id: bytes) -> Iterator[bytes]:
    """Yield a session with its messages in order, and its model calls."""
    own_id = session_id.decode()
    facts = next(rows_of(ask, "sessions", (*_SESSION, "parent_session_id"), "WHERE id = ?", own_id), None)
    if facts is None:
        return
    yield msgspec.json.encode(facts)[:-1] + b',"conversation":['
    in_order = "WHERE session_id = ? ORDER BY created_timestamp, id"
    rows = rows_of(ask, "messages", (*_MESSAGE, "message_id"), in_order, own_id)
    yield from listed(
        msgspec.json.encode({
            "id": row.get("message_id"), "role": row["role"], "created": _seconds(row["created_timestamp"]),
            "metadata": json_of(row["metadata_json"]), "content": json_of(row["content_json"]),
        }) for row in rows
    )  # fmt: skip
    calls = rows_of(ask, "usage_ledger", _CALL, "WHERE session_id = ? ORDER BY id", own_id)
    ledger = [{**call, "created_timestamp": _seconds(call["created_timestamp"])} for call in calls]
    yield b'],"usage_ledger":' + msgspec.json.encode(ledger) + b"}"


def _seconds(value: object) -> object:
    return value / 1000 if isinstance(value, int) and value > _SECONDS else value


DATABASE = Database(
    columns={"sessions": _SESSION, "messages": _MESSAGE, "schema_version": ("version",)},
    some_have={
        "sessions": ("parent_session_id",),
        "messages": ("message_id",),
        "usage_ledger": ("id", "session_id", *_CALL),
    },
    sessions=sessions,
    document=document,
)


_EDITOR = structs.replace(tools.EDIT, roles=structs.replace(tools.EDIT_ROLES, part=("new_str",)))
_BEFORE_EDIT = structs.replace(tools.EDIT, roles=structs.replace(tools.EDIT_ROLES, replace=(("before", "after"),)))

PROFILE = tools.Profile(
    agent="goose",
    instructions=(".goosehints",),
    instructions_perhaps=("AGENTS.md",),
    homes=(
        "~/.local/share/goose/sessions",
        "$XDG_DATA_HOME/goose/sessions",
        "$GOOSE_PATH_ROOT/data/sessions",
        "$APPDATA/Block/goose/data/sessions",
    ),
    tools=tools.named(
        (tools.SHELL.within("timeout_secs"), "shell developer__shell"),
        (_EDITOR, "developer__text_editor"),
        (_BEFORE_EDIT, "edit developer__edit"),
        (tools.WRITE, "write developer__write"),
        (tools.READ, "read developer__read read_image developer__image_processor analyze developer__analyze"),
        (tools.FIND, "tree developer__tree"),
        (tools.PLAN, "todo_write todo__todo_write todo__write"),
        (tools.TASK, "delegate subagent dynamic_task__create_task subagent__execute_task"),
        (tools.SKILL, "load_skill skills__loadSkill"),
        (tools.WEB, "computercontroller__web_scrape"),
        (tools.ASIDE, "todo__todo_read platform__manage_schedule platform__search_available_extensions"),
    ),
    tools_like={"*__*": tools.MCP},
    failures=(("edit_mismatch", ("no match found for the specified text", "to identify a unique match")),),
)


def claims(head: Head) -> Claim | None:
    """Recognize `working_dir`, `session_type` and a `conversation`; or lines, of which the first has `working_dir`
    and `message_count`. The name of such a file is the session's id."""
    document = head.document
    session_id = document.get("id")
    if {"working_dir", "session_type", "conversation"} <= document.keys() and isinstance(session_id, str):
        return Claim(keys=[f"session:{session_id}"])
    messages = all({"role", "created", "content"} <= record.keys() for record in head.records[1:2])
    return Claim(keys=[f"session:{session_id_of(head.path)}"]) if is_of_lines(head) and messages else None


def is_of_lines(head: Head) -> bool:
    """Return whether it is a file from before the database, whose first line alone is no message."""
    keys = head.document.keys()
    return head.is_lines and {"working_dir", "message_count"} <= keys and "session_type" not in keys


def session_id_of(path: str) -> str:
    """Return the session id, which only the file name has."""
    return posixpath.basename(path).partition(".")[0]


FORMAT = Format(name="goose", marks=(b'"working_dir"',), version=1, claims=claims, database=DATABASE, profile=PROFILE)
