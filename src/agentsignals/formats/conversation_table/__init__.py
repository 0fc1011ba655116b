"""Tables of conversations, a row a session (design/formats.md#tables-of-conversations): Parquet, Arrow, JSON, CSV.

Data sets of agent traces come so, and ShareGPT rows. Columns, roles and forms of calls are known by `formats.columns`.
A file that another format claims is that format's.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agentsignals.formats import Claim, Format, pieces_by
from agentsignals.formats.columns import ROLE, are_rows, columns_of, first_rows_of, holds_conversations, may_hold
from agentsignals.formats.records import Head
from agentsignals.formats.rows import first_rows, is_packed, schema_of

_IN_CSV = re.compile(r'[\[{]\s*[\[{"]|<function=')
DIGEST_BYTES = 8


def claims(head: Head) -> Claim | None:
    """Recognise a table by a column that holds conversations: of packed tables by its name or its type, else by what it
    holds. Files with the same first row, or the same footer, are read together: they are copies or states of one
    table."""
    if is_packed(head.data):
        schema = schema_of(head.data)
        if schema is None or not candidates(schema):
            return None
        return Claim(keys=[f"rows:{_digest(head.data)}"])
    if head.looks_like_json:
        rows = first_rows_of(head)
        if not holds_conversations(head) and not _holds_outcomes(rows):
            return None
        return Claim(keys=[f"rows:{_digest(msgspec.json.encode(rows[0], enc_hook=str))}"] if rows else [])
    header, rows = first_rows(head.text, head.complete)
    if len(header) < 2 or not may_hold(header):
        return None
    begins = [value for row in rows for name in may_hold(header) if (value := row[name]) not in ("", "[]")]
    is_told = any(map(_IN_CSV.match, begins)) if begins else _IN_CSV.search(head.text.partition("\n")[2]) is not None
    return Claim(keys=[f"rows:{_digest(head.data)}"]) if is_told or _holds_outcomes(rows) else None


def _holds_outcomes(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether rows have outcomes beside conversations, of whatever form: the outcomes are read then."""
    columns = columns_of(list(rows[0])) if len(rows) > 1 else None
    return columns is not None and not columns.lacks and are_rows(rows, columns)


def candidates(schema: Any) -> list[str]:
    """Return the columns of a packed table that may hold conversations, by their names, else by their types."""
    import pyarrow as pa  # noqa: PLC0415  (for tables only)

    types = {field.name: field.type for field in schema}
    fitting = [
        name
        for name, type_ in types.items()
        if pa.types.is_nested(type_) or pa.types.is_string(type_) or pa.types.is_large_string(type_)
        or pa.types.is_binary(type_) or pa.types.is_large_binary(type_)
    ]  # fmt: skip
    named = may_hold(fitting)
    return named or [name for name in fitting if _is_of_messages(types[name])]


def _is_of_messages(type_: Any) -> bool:
    import pyarrow as pa  # noqa: PLC0415

    if not (pa.types.is_list(type_) or pa.types.is_large_list(type_)) or not pa.types.is_struct(type_.value_type):
        return False
    return not {field.name for field in type_.value_type}.isdisjoint(ROLE)


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).hexdigest()


FORMAT = Format(
    name="conversation-table",
    version=5,
    claims=claims,
    pieces=pieces_by("conversation_table.reader"),
    of_json=None,
    weight=500,
    is_last=True,
)
