"""The report as one JSON document: findings, tables as rows of objects, charts as Vega-Lite specifications."""

from __future__ import annotations

from typing import Any

import msgspec

from agentsignals.analysis.study import Table
from agentsignals.report.document import Document
from agentsignals.words.text import visible_in_json


def render(document: Document) -> str:
    """The document as indented JSON."""
    plain = msgspec.to_builtins(document)
    for section, plain_section in zip(document.sections, plain["sections"], strict=True):
        for table, told_table in zip(section.tables, plain_section["tables"], strict=True):
            told_table["rows"] = _objects(table)
    return visible_in_json(msgspec.json.format(msgspec.json.encode(plain), indent=1).decode())


def _objects(table: Table) -> list[dict[str, Any]]:
    keys = [column.key for column in table.columns]
    return [dict(zip(keys, row, strict=True)) for row in table.rows]
