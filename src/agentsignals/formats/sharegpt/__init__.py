"""ShareGPT conversations, as Hermes and many data sets write them (design/formats.md#small-formats): a row is a
conversation.

Rows come as JSON Lines, as one list, or as `{"rows": [{"row": …}]}`. No real file was found: what is read follows the
programs that write and read them.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import msgspec

from agentsignals.formats import Claim, Format, pieces_by
from agentsignals.formats.head import CUT, Head

_ROW = re.compile(rb'"conversations"\s*:\s*\[\s*\{\s*"(?:from|value)"\s*:\s*"')
_LIST = re.compile(rb'\s*(?:\[\s*\{|\{\s*"(?:rows|features|offset)"\s*:)')
_DIGEST_BYTES = 8
_OTHERS = ("trace_id", "schema_version", "sessionId", "type")


def claims(head: Head) -> Claim | None:
    """Rows whose `conversations` are objects of `from` and `value`. The first row is the key of its file: a data set
    and its next upload are read together.
    """
    if b'"conversations"' not in head.data:
        return None
    first = (head.records or head.items or [head.document])[0]
    if "conversations" in first:
        conversation = first["conversations"]
        shown = conversation[:2] if isinstance(conversation, list) else []
        is_one = bool(shown) and all(
            isinstance(message, dict) and {"from", "value"} <= message.keys() for message in shown
        )
        if conversation is CUT:
            is_one = _ROW.search(head.data) is not None
        if not is_one or any(name in first for name in _OTHERS):
            return None
        return Claim(keys=[] if conversation is CUT else [f"session:{name_of(first.get('id'), conversation)}"])
    # A list, or its wrapper, whose first row is longer than the window.
    rows = first.get("rows", CUT if not first else None)
    begin = rows[0] if isinstance(rows, list) and rows else None
    holds_rows = rows is CUT or (isinstance(begin, dict) and isinstance(begin.get("row"), dict))
    is_list = _LIST.match(head.data.lstrip(b"\xef\xbb\xbf \t\r\n")) and _ROW.search(head.data)
    return Claim(keys=[]) if holds_rows and is_list else None


def name_of(row_id: object, conversation: list[dict[str, Any]]) -> str:
    """A row's session: its id and a digest of what was said; the same in another upload, wherever the row stands there.

    An id alone is not enough: most count the rows of one file.
    """
    messages = [(message.get("from"), message.get("value")) for message in conversation if isinstance(message, dict)]
    digest = hashlib.blake2b(msgspec.json.encode(messages), digest_size=_DIGEST_BYTES).hexdigest()
    named = isinstance(row_id, str | int) and not isinstance(row_id, bool) and row_id != ""
    return f"{row_id}-{digest}" if named else digest


FORMAT = Format(
    name="sharegpt",
    marks=(b'"conversations"',),
    version=3,
    claims=claims,
    pieces=pieces_by("sharegpt.reader"),
    snapshots=False,
)
