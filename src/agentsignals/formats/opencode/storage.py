"""The folder in which OpenCode kept its sessions before it had a database: a file a session, message and part."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct, field

from agentsignals.formats import Input
from agentsignals.formats.one_document import Snapshot, saw_again
from agentsignals.formats.opencode.ids import Ids
from agentsignals.formats.opencode.records import Export, Message, MessageInfo, Part, SessionInfo
from agentsignals.formats.records import document, saw
from agentsignals.model.times import logged_ms


class Stored(Export):
    """A session of the folder, as its export would be."""

    inputs: list[Input] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    """The artifact of each message and part, by id."""


class _Folder(Struct):
    inputs: list[Input] = field(default_factory=list)
    info: SessionInfo | None = None
    messages: dict[str, MessageInfo] = field(default_factory=dict)
    parts: dict[str, dict[str, Part]] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)


_session = msgspec.json.Decoder(SessionInfo).decode
_message = msgspec.json.Decoder(MessageInfo).decode
_part = msgspec.json.Decoder(Part).decode


def snapshots(files: Iterable[tuple[Input, Ids]]) -> list[Snapshot[Export]]:
    """The sessions of these files. Messages stand in the order they were begun, parts in that of their ids."""
    folders: dict[str, _Folder] = {}
    for source, ids in files:
        folder = folders.setdefault(ids.session_id or "", _Folder())
        folder.inputs.append(source)
        folder.places[ids.id] = source.artifact.artifact_id
        _take(folder, source, ids)
    made: list[Snapshot[Export]] = []
    for session_id, folder in folders.items():
        messages: list[Message | None] = [
            Message(info, [folder.parts[message_id][part_id] for part_id in sorted(folder.parts.get(message_id, ()))])
            for message_id, info in sorted(folder.messages.items(), key=_begun)
        ]
        info = folder.info or SessionInfo(id=session_id)
        first = next((i for i in folder.inputs if i.artifact.artifact_id == folder.places.get(session_id)), None)
        stored = Stored(info, messages, folder.inputs, folder.places)
        made.append(Snapshot(first or folder.inputs[0], stored, session_id, size(stored)))
    return made


def size(export: Export) -> int:
    """How much of a session is there: its messages and their parts."""
    return len(export.messages) + sum([len(m.parts) for m in export.messages if m is not None])


def repeated(snapshots: Iterable[Snapshot[Export]], kept: list[Snapshot[Export]]) -> None:
    """Says of every file of a session that was read from elsewhere that it holds nothing of its own."""
    for snapshot in snapshots:
        if isinstance(snapshot.document, Stored) and all(snapshot is not k for k in kept):
            for source in snapshot.document.inputs:
                source.artifact.note = snapshot.source.artifact.note
                saw_again(source.artifact)


def _take(folder: _Folder, source: Input, ids: Ids) -> None:
    if ids.id.startswith("ses_"):
        folder.info = document(source.data, source.artifact, _session)
        kind = "session"
    elif ids.id.startswith("msg_"):
        message = document(source.data, source.artifact, _message)
        kind = f"message.{ids.role}"
        if message is not None:
            folder.messages[ids.id] = message
    else:
        part = document(source.data, source.artifact, _part)
        kind = f"part.{ids.type}"
        if part is not None:
            folder.parts.setdefault(ids.messageID, {})[ids.id] = part
    if not source.artifact.skipped:
        saw(source.artifact, kind)


def _begun(message: tuple[str, MessageInfo]) -> tuple[int, str]:
    message_id, info = message
    return (logged_ms(info.time.created) or 0) if info.time is not None else 0, message_id
