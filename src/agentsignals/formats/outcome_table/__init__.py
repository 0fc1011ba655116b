"""Tables of outcomes, a row an attempt (design/formats.md#tables-of-outcomes): CSV, JSON, JSON Lines, Parquet, Arrow.
Columns are known by their usual names."""

import posixpath

from agentsignals.formats import Claim, Format, pieces_by
from agentsignals.formats.columns import are_rows, columns_of, may_hold, messages_of
from agentsignals.formats.head import Head
from agentsignals.formats.rows import first_rows, is_packed, schema_of


def claims(head: Head) -> Claim | None:
    """Recognise a table by its columns and its first rows. Rows that hold conversations are another format's.

    A JSON table that lacks a column is not claimed. Other kinds are read by no other format, so they are claimed and
    say what they lack. Trials below its folder take their verdicts from it.
    """
    folder = posixpath.dirname(head.path)
    if head.looks_like_json:
        return Claim(keys=[], judges=folder) if is_of_json(head) else None
    rows: list[dict[str, str]] = []
    if packed := is_packed(head.data):
        schema = schema_of(head.data)
        header = [] if schema is None else [str(name) for name in schema.names]
    else:
        header, rows = first_rows(head.text, head.complete)
    columns = columns_of(header)
    if may_hold(header):
        return None
    if columns.lacks:
        is_table = columns.is_near and (packed or bool(rows))
    else:
        is_table = packed or (bool(rows) and are_rows(rows, columns))
    return Claim(keys=[], judges=folder) if is_table else None


def is_of_json(head: Head) -> bool:
    """Return whether a file is such a table in JSON. Formats whose rows have the same names ask this too."""
    rows = (head.items or head.records) if head.looks_like_json else []
    if not rows or any(isinstance(v := rows[0][name], list) or messages_of(v) for name in may_hold(rows[0])):
        return False
    columns = columns_of(list(rows[0]))
    if columns.lacks or not (columns.is_swe_bench or len(rows) > 1):
        return False  # one object with such keys may be anything
    return are_rows(rows, columns)


FORMAT = Format(
    name="outcome-table",
    version=4,
    claims=claims,
    pieces=pieces_by("outcome_table.reader"),
    of_json=None,
    weight=500,
    snapshots=False,
)
