"""Reads Swival's exports like Claude Code's, except for what only looks like theirs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats import Input, Reading
from agentsignals.formats.claude_code import records as claude
from agentsignals.formats.claude_code.reader import SessionReader
from agentsignals.formats.claude_code.records import File, Line, Message
from agentsignals.formats.claude_form.reader import read_exports
from agentsignals.formats.records import lines, within
from agentsignals.formats.swival import PROFILE
from agentsignals.model import Artifact, Session

_PROMPT = "prompt"
_ERROR = "error:"
"""Start of a failed tool's result."""


class Row(Struct, gc=False, rename="camel", kw_only=True):
    """A record. Its time is that of the export and its ids are new in each: neither is read."""

    type: str = ""
    session_id: str | None = None
    version: str | None = None
    cwd: str | None = None
    is_sidechain: object = None
    is_meta: object = None
    message: Raw = Raw()
    """JSON; or JSON as text, since all rows of a dataset have one shape."""
    content: object = None


_row = msgspec.json.Decoder(Row).decode
_text = msgspec.json.Decoder(str).decode
_message = msgspec.json.Decoder(Message | None).decode


def decode(data: memoryview | bytes) -> Line:
    """Return a record as Claude Code would have written it, without time and id."""
    row = _row(data)
    raw = bytes(row.message)
    if raw[:1] == b'"':
        try:
            message = _message(_text(raw))
        except msgspec.ValidationError:  # as an object it can be mended
            raise msgspec.ValidationError("Expected `object`, got `str` - at `$.message`") from None
    else:
        message = within("message", raw, _message) if raw else None
    if row.type in ("user", "assistant") and message is None:
        raise msgspec.ValidationError("no message")
    if message is not None and isinstance(message.content, list):
        for block in message.content:
            if block.type == "tool_result" and isinstance(block.content, str) and block.content.startswith(_ERROR):
                block.is_error = True
    return Line(
        type=row.type,
        session_id=row.session_id,
        version=row.version,
        cwd=row.cwd,
        is_sidechain=row.is_sidechain,
        is_meta=row.is_meta,
        message=message,
        subtype=_PROMPT if row.type == "system" else None,
        content=row.content,
    )


def rows_of(data: bytes, artifact: Artifact) -> tuple[Sequence[int], list[Line]]:
    """Return the records of a file and their line numbers."""
    numbered = list(lines(data, artifact, decode))
    return [number for number, _ in numbered], [line for _, line in numbered]


def read(inputs: list[Input]) -> Reading:
    return read_exports([File(source, rows_of) for source in inputs], Reader)


class Reader(SessionReader):
    profile = PROFILE

    def __init__(self, file: File) -> None:
        super().__init__(file, {}, set())
        self.session.format = self.session.agent = "swival"

    def _system(self, line: Line) -> None:
        if line.content:
            self.builder.event("meta", claude.as_text(line.content))

    def finish(self) -> Session:
        """Record files that `delete_file` put into the trash as deleted."""
        session = super().finish()
        gone = {call.seq for call in session.tool_calls if call.name == "delete_file"}
        for edit in session.edits:
            if edit.seq in gone:
                edit.op, edit.whole_file = "delete", True
        return session
