"""OpenCode sessions (design/formats.md#opencode): the database, the older folder (a file for each message and part),
and exports, one JSON document a session.

Version 2 writes its sessions to tables of its own in the same database, and may go on with a session of version 1.

A session with `parentID` is a subagent's: its "user" is the parent agent, so it has no human turns. A message's own
tokens count; the `step-finish` part repeats them.
"""

import re
from collections.abc import Iterator
from itertools import chain

import msgspec
from msgspec import Raw, Struct, structs

from agentsignals.formats import (
    Ask,
    Claim,
    Database,
    Format,
    Held,
    json_of,
    listed,
    plain,
    rows_in_order,
    rows_of,
    whole_of,
)
from agentsignals.formats import profile as tools
from agentsignals.formats.records import CUT, Head, decoded

# A row's `data` is the object of the export without its ids, which are columns. `event` repeats every change of
# every part, and the session tables have sums of what the messages say: neither is read.
_DESCRIBED = ("id", "parent_id", "project_id", "directory", "title", "version", "time_created", "time_updated")
_ORIGIN = ("fork_session_id", "revert")
_SESSIONS = ("session_v2", "session")
_MESSAGE = ("id", "session_id", "time_created", "time_updated", "data")
_PART = ("id", "message_id", "session_id", "time_updated", "data")
_SECOND = ("id", "session_id", "type", "seq", "time_created", "time_updated", "data")
_CHANGES = "SELECT session_id, count(*), max(time_updated) FROM {} GROUP BY session_id"


def _tables(ask: Ask) -> Iterator[str]:
    """Yield the tables of messages. Before version 2, some files have `session_message` with other columns."""
    if {"message", "part"} <= ask.tables.keys():
        yield from ("message", "part")
        if not set(_SECOND) <= ask.tables.get("session_message", set()):
            return
    yield "session_message"


def sessions(ask: Ask) -> Iterator[Held]:
    """Yield every session with the last change of any of its rows. Its own is not updated with its parts."""
    import sqlite3  # noqa: PLC0415  (loaded where such a file is met)

    rows: dict[bytes, tuple[int, int]] = {}
    for table in _tables(ask):
        try:
            for session_id, count, changed in ask(_CHANGES.format(table)):
                before = rows.get(session_id, (0, 0))
                rows[session_id] = before[0] + count, max(before[1], whole_of(changed))
        except sqlite3.DatabaseError as problem:
            if type(problem) is not sqlite3.DatabaseError:  # others are of the question; this is of a page
                raise
    listed: dict[bytes, int] = {}
    for table in _SESSIONS:
        query = f"SELECT id, time_updated FROM {table} ORDER BY id"  # noqa: S608
        for session_id, changed in ask(query) if table in ask.tables else ():
            listed[session_id] = max(listed.get(session_id, 0), whole_of(changed))
    for session_id, changed in listed.items():
        count, last = rows.get(session_id, (0, 0))
        yield Held(session_id, max(last, changed), count)


def document(ask: Ask, session_id: bytes) -> Iterator[bytes]:
    """Yield a session as its export, with what both versions wrote. Rows are selected by session alone, since messages
    of parent and subagents interleave.

    A row that is no JSON object becomes `null`, which the reader counts as unreadable.
    """
    own_id: object = session_id.decode()
    described = (
        row
        for table in _SESSIONS if table in ask.tables
        for row in ask(f"SELECT {', '.join(_DESCRIBED)} FROM {table} WHERE id = ?", own_id)  # noqa: S608
    )  # fmt: skip
    if (row := next(described, None)) is None:
        return
    own_id, parent_id, project_id, directory, title, version, created, updated = map(plain, row)
    info = {"id": own_id, "parentID": parent_id, "projectID": project_id, "directory": directory, "title": title}
    info |= {"version": version, "time": {"created": created, "updated": updated}}
    for table in _SESSIONS:
        for origin in rows_of(ask, table, _ORIGIN, "WHERE id = ?", own_id):
            info |= {name: value if name != "revert" else json_of(value) for name, value in origin.items()}
    yield b'{"info":' + msgspec.json.encode(info) + b',"messages":['
    read = set(_tables(ask))
    columns, order = ("id", "type", "seq", "data"), "WHERE session_id = ? ORDER BY seq, id"
    second = rows_in_order(ask, "session_message", columns, order, own_id) if "session_message" in read else ()
    pieces = chain(
        _of_first(ask, own_id) if "message" in read else (),
        (b"," + _with_ids(data, {"id": plain(i), "type": plain(type_), "seq": n}) for i, type_, n, data in second),
    )
    yield next(pieces, b",")[1:]
    yield from pieces
    yield b"]}"


def _of_first(ask: Ask, own_id: object) -> Iterator[bytes]:
    # Their order by few bytes each: SQLite would sort the rows with all that is in them.
    """Yield a session of the older tables as the JSON of an export, message by message."""
    places: dict[object, list[tuple[object, int]]] = {}
    for row, message_id, part_id in ask("SELECT rowid, message_id, id FROM part WHERE session_id = ?", own_id):
        places.setdefault(message_id, []).append((part_id, row))
    order = "WHERE session_id = ? ORDER BY time_created, id"
    messages = rows_in_order(ask, "message", ("id", "data"), order, own_id)
    for message_id, data in messages:
        ids = {"id": plain(message_id), "sessionID": own_id}
        yield b',{"info":' + _with_ids(data, ids) + b',"parts":['
        in_order = sorted(places.get(message_id, ()), key=lambda place: (str(place[0]), place[1]))
        yield from listed(
            _with_ids(part, {"id": plain(part_id), "messageID": ids["id"], "sessionID": own_id})
            for part_id, row in in_order
            for (part,) in ask("SELECT data FROM part WHERE rowid = ?", row)
        )
        yield b"]}"


def _with_ids(data: object, ids: dict[str, object]) -> bytes:
    """Return the object of a row with its ids at the end: of two equal keys the later counts."""
    text = data if isinstance(data, bytes) else b""
    fields = decoded(text, dict[str, Raw])
    return b"null" if fields is None else text.rstrip()[:-1] + (b"," if fields else b"") + msgspec.json.encode(ids)[1:]


DATABASES = (
    Database(
        columns={"session": _DESCRIBED, "message": _MESSAGE, "part": _PART},
        some_have={"session": _ORIGIN, "session_v2": (*_DESCRIBED, *_ORIGIN), "session_message": _SECOND},
        sessions=sessions,
        document=document,
    ),
    Database(
        columns={"session_message": _SECOND},
        some_have={
            "session": (*_DESCRIBED, *_ORIGIN),
            "session_v2": (*_DESCRIBED, *_ORIGIN),
            "message": _MESSAGE,
            "part": _PART,
        },
        sessions=sessions,
        document=document,
    ),
)
"""The second is a file that version 2 began."""


class Ids(Struct, gc=False, kw_only=True):
    """The ids of a file in the older storage folder."""

    id: str = ""
    sessionID: str = ""
    messageID: str = ""
    projectID: str = ""
    role: str = ""
    type: str = ""

    @property
    def session_id(self) -> str | None:
        """The session of the file. None for a file of another kind."""
        if self.sessionID.startswith("ses_"):
            is_part = self.id.startswith("prt_") and self.messageID and self.type
            return self.sessionID if is_part or (self.id.startswith("msg_") and self.role) else None
        return self.id if self.id.startswith("ses_") and self.projectID and not self.role else None


def session_of_storage_file(head: Head) -> str | None:
    """Return the session that a file of the older storage folder names. None for any other file."""
    values = {name: value for name in Ids.__struct_fields__ if isinstance(value := head.document.get(name), str)}
    if "role" not in values and "type" not in values and "info" in head.document:
        return None
    # The end of a long part is not seen.
    if not head.complete and values.get("messageID"):
        values.setdefault("type", "cut")
    return Ids(**values).session_id


def ids_of(data: bytes) -> Ids | None:
    """Return the ids of a file of the older storage folder. None for an export."""
    ids = decoded(data, Ids)
    return ids if ids is not None and ids.session_id is not None else None


PROFILE = tools.Profile(
    agent="opencode",
    instructions=("AGENTS.md",),  # https://opencode.ai/docs/rules: CLAUDE.md where there is none, `@FILE` is not read
    instructions_perhaps=("CLAUDE.md",),
    homes=tuple(
        f"{data}/opencode/{place}"
        for data in ("~/.local/share", "$XDG_DATA_HOME")
        for place in ("opencode*.db", "storage/session", "storage/message", "storage/part", "export")
    ),
    tools=tools.named(
        (tools.READ, "read"),
        (tools.SEARCH, "grep lsp"),
        (tools.FIND, "glob list"),
        (tools.EDIT, "edit multiedit patch apply_patch"),
        (tools.WRITE, "write"),
        (tools.SHELL.within("timeout", 0.001), "bash shell"),
        (tools.PLAN, "todowrite todoread"),
        (tools.PLAN_MODE, "plan_enter"),
        (tools.HAND_IN, "plan_exit"),
        (tools.TASK, "task subagent"),
        (tools.SKILL, "skill"),
        (tools.WEB, "webfetch websearch codesearch"),
        (tools.ASK, "question"),
    ),
    nothing_found=("No files found", "No matches found"),
    stopped=(
        ("error", ("terminated command after exceeding timeout", "terminated after exceeding timeout")),
        ("cancelled", ("User aborted the command",)),
    ),
    failures=(
        ("permission", ("the user has specified a rule which prevents you",)),
        ("not_read_first", ("must read file",)),
        (
            "edit_mismatch",
            (
                "could not find oldstring",
                "multiple matches for oldstring",
                "modified since it was last read",
                "newstring are identical",
                "newstring must be different",
                "oldstring not found",
            ),
        ),
        ("not_found", (r"\A(?:error: )?file .* not found",)),
    ),
)
"""Other names are tools of MCP servers (`<server>_<tool>`) and plugins. Nothing in the trace distinguishes them."""
KILO = structs.replace(
    PROFILE, agent="kilo", homes=tuple(f"{data}/kilo/kilo*.db" for data in ("~/.local/share", "$XDG_DATA_HOME"))
)
"""A fork with the same tables. Only the name of the database names it."""


PLACEHOLDER_IDS = (None, "", "REDACTED")
"""Values in place of an id that a collector left out or redacted."""

_BEGINS = re.compile(r'\s*\{\s*"info"\s*:\s*\{\s*"id"\s*:\s*"(ses_\w+)"')


def claims(head: Head) -> Claim | None:
    """Recognize an export (`info.id` = `ses_…`, and `messages`) or a file of the older storage folder by its
    `sessionID`/`messageID`. An export whose id was redacted is grouped with the files of its folder."""
    if (session_id := session_of_storage_file(head)) is not None:
        return Claim(keys=[f"session:{session_id}"])
    info = head.document.get("info")
    if info is CUT:
        cut = _BEGINS.match(head.text)
        return Claim(keys=[f"session:{cut.group(1)}"]) if cut else None
    if not isinstance(info, dict) or "messages" not in head.document:
        return None
    session_id = info.get("id")
    is_described = "projectID" in info and "directory" in info
    if (
        isinstance(session_id, str)
        and session_id not in PLACEHOLDER_IDS
        and (is_described or session_id.startswith("ses_"))
    ):
        return Claim(keys=[f"session:{session_id}"])
    return Claim(keys=[], by_folder=True) if session_id in PLACEHOLDER_IDS and is_described else None


FORMAT = Format(
    name="opencode",
    marks=(b'"info"', b"ses_"),
    version=7,
    claims=claims,
    unit=lambda path: path.partition("/storage/")[0] if "/storage/" in path else path,
    database=DATABASES,
    profile=PROFILE,
    forks=(KILO,),
)
