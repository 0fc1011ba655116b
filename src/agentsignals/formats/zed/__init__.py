"""Threads of Zed's agent (design/formats.md#zed): each row of its database as a JSON document."""

from collections.abc import Iterator

import msgspec
from msgspec import structs

from agentsignals.formats import Ask, Claim, Database, Format, Held
from agentsignals.formats import profile as tools
from agentsignals.formats.records import Head
from agentsignals.model import from_iso

_ALWAYS, _LATER = ("id", "summary", "updated_at", "data_type"), ("parent_id", "folder_paths", "created_at")
_PIECE_BYTES = 64 * 1024


def sessions(ask: Ask) -> Iterator[Held]:
    """Yield every thread. Columns after `data` are not queried: SQLite would read all of it on the way to them."""
    for thread_id, updated in ask("SELECT id, updated_at FROM threads ORDER BY id"):
        at = from_iso(updated.decode("utf-8", "replace")) if isinstance(updated, bytes) else None
        yield Held(thread_id, (at or 0) // 1000, 1)


def document(ask: Ask, session_id: bytes) -> Iterator[bytes]:
    """Yield a thread. Of data that breaks off, the part before is read; of an unknown kind only the columns."""
    columns = [*_ALWAYS, *(name for name in _LATER if name in ask.tables["threads"])]
    query = f"SELECT {', '.join(columns)}, data FROM threads WHERE id = ?"  # noqa: S608  (columns are named here)
    row = next(ask(query, session_id.decode()), None)
    if row is None:
        return
    facts = {
        name: (value.decode("utf-8", "replace") if isinstance(value, bytes) else None)
        for name, value in zip(columns, row[:-1], strict=True)
    }
    yield b'{"zedThread":' + msgspec.json.encode(facts)
    comma = b","
    for piece in _pieces(facts["data_type"], row[-1]):
        if comma:
            piece = piece.lstrip()[1:]  # noqa: PLW2901  (its bracket: the columns' object goes on in it)
            comma = b"" if piece.lstrip()[:1] == b"}" else comma
        yield comma + piece
        comma = b""
    if comma:
        yield b"}"


def _pieces(kind: str | None, data: object) -> Iterator[bytes]:
    """Yield the JSON of a row, decompressed as needed."""
    if not isinstance(data, bytes):
        return
    if kind == "json":
        yield data
    elif kind == "zstd":
        import pyarrow as pa  # noqa: PLC0415  (heavy: loaded where such a row is met)

        try:
            with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
                while piece := stream.read(_PIECE_BYTES):
                    yield piece
        except OSError:  # broken or cut: the document then breaks off where it does, and its reader says so
            yield b" "


DATABASE = Database(
    columns={"threads": (*_ALWAYS, "data")}, some_have={"threads": _LATER}, sessions=sessions, document=document
)


_ROLES = structs.replace(tools.EDIT_ROLES, replace=(*tools.EDIT_ROLES.replace, ("old_text", "new_text")))

PROFILE = tools.Profile(
    agent="zed",
    instructions_perhaps=(  # the first that is there: https://zed.dev/docs/ai/rules
        *(".rules", ".cursorrules", ".windsurfrules", ".clinerules", ".github/copilot-instructions.md"),
        *("AGENT.md", "AGENTS.md", "CLAUDE.md", "GEMINI.md"),
    ),
    homes=(
        "~/.local/share/zed/threads/threads.db",
        "$XDG_DATA_HOME/zed/threads/threads.db",
        "~/Library/Application Support/Zed/threads/threads.db",
        "$LOCALAPPDATA/Zed/threads/threads.db",
    ),
    tools=tools.named(
        (tools.READ, "read_file open diagnostics"),
        (tools.SEARCH, "grep find_references go_to_definition"),
        (tools.FIND, "find_path list_directory"),
        (structs.replace(tools.EDIT, roles=_ROLES), "edit_file streaming_edit_file create_file"),
        (structs.replace(tools.EDIT, path=("path", "destination_path")), "delete_path move_path copy_path"),
        (structs.replace(tools.WRITE, roles=_ROLES), "write_file"),
        (tools.SHELL.within("timeout_ms", 0.001), "terminal sandboxed_terminal"),
        (tools.PLAN, "update_plan"),
        (tools.TASK, "spawn_agent subagent create_thread"),
        (tools.SKILL, "skill"),
        (tools.WEB, "fetch web_search"),
        (tools.ASK, "ask_user"),
        (tools.ASIDE, "thinking save_file restore_file_from_disk create_directory update_title"),
    ),
    stopped=(
        ("cancelled", ("The user stopped this command.",)),
        ("error", ("timed out. Output captured before timeout:", "timed out. No output was captured.")),
    ),
    nothing_found=("No matches found", "No matches"),
    frame=(r'Command "(?s:.*?)" failed with exit code -?\d+\.', r"Command executed successfully\."),
)


def claims(head: Head) -> Claim | None:
    """Recognize the document that the database gives."""
    row = head.document.get("zedThread")
    return Claim(keys=[f"session:{row.get('id') or ''}"]) if isinstance(row, dict) else None


FORMAT = Format(name="zed", marks=(b'"zedThread"',), version=1, claims=claims, profile=PROFILE, database=DATABASE)
