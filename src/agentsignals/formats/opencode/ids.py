"""Which file of OpenCode's older folder a file is, by the ids that stand in it."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from agentsignals.formats.head import Head
from agentsignals.formats.records import UNREADABLE


class Ids(Struct, gc=False, kw_only=True):
    """What a file of the folder is, and where it belongs."""

    id: str = ""
    sessionID: str = ""
    messageID: str = ""
    projectID: str = ""
    role: str = ""
    type: str = ""

    @property
    def session_id(self) -> str | None:
        """The session it belongs to; None for a file of another kind."""
        if self.sessionID.startswith("ses_"):
            is_part = self.id.startswith("prt_") and self.messageID and self.type
            return self.sessionID if is_part or (self.id.startswith("msg_") and self.role) else None
        return self.id if self.id.startswith("ses_") and self.projectID and not self.role else None


_ids = msgspec.json.Decoder(Ids).decode


def claimed(head: Head) -> str | None:
    """The session of a file that begins so; None where it is none of the folder's."""
    values = {name: value for name in Ids.__struct_fields__ if isinstance(value := head.document.get(name), str)}
    if "role" not in values and "type" not in values and "info" in head.document:
        return None
    # The end of a long part is not seen.
    if not head.complete and values.get("messageID"):
        values.setdefault("type", "cut")
    return Ids(**values).session_id


def ids_of(data: bytes) -> Ids | None:
    """Which file of the folder it is; None for an export."""
    try:
        ids = _ids(data)
    except UNREADABLE:
        return None
    return ids if ids.session_id is not None else None
