"""Every query of the pages is run, on an empty store and on one that has something of everything."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from agentsignals.store import Store
from agentsignals.store.query import ask, connect
from agentsignals.ui.page import queries, sql
from tests.quick import each_row

PARTS = {
    "where": "",
    "chosen": "",
    "sessions": "true",
    "labels": "",
    "things": "true",
    "condition": "true",
    "items": "SELECT session_id, turn, seq, 1 AS n, 1 AS n_values, 0 AS apart FROM labels",
    "ids": "'fine-1'",
    "column": "s.agent",
    "columns": "agent_type",
    "counts": "count(*) AS n0",
    "most": 5,
    "cause": "SELECT * FROM sessions",
    "table": "turns",
    "when": "",
    "mask": "0",
    "numbered": "",
    "order": "1",
    "owner": "'agent'",
    "lines": "added AS agent",
    "sums": "sum(added) AS agent",
    "region_lines": 20,
    "in_repository": "",
}
"""A part for each brace that no section fills."""
OWN_PARTS: dict[str, dict[str, Any]] = {
    "figures.tools": {"sessions": "SELECT session_id FROM sessions"},
    "figures.edited_files": {"sessions": "SELECT session_id FROM sessions"},
    "signal.extremes": {"order": "number DESC"},
    "report.sessions": {"columns": "session_id"},
    "sessions.page": {"order": "ORDER BY started_at LIMIT 5"},
}
VALUES = {
    "ids": ["fine-1"],
    "shown": ["fine-1"],
    "seqs": [0, 1],
    "enums": ["user.session_outcome"],
    "low": 0,
    "high": 9,
    "size": 5,
    "start": 0,
    "most": 5,
    "bins": 20,
    "n": 9,
    "seq": 1,
    "fewest": 1,
}
"""What is bound; every other value is a text."""


def whole_queries() -> list[str]:
    return [name for name, text in queries().items() if re.match(r"(?:--.*\n)*(?:SELECT|WITH)\b", text)]


@pytest.fixture(scope="module")
def stores(store: Store, tmp_path_factory: pytest.TempPathFactory) -> list[Store]:
    empty = Store(tmp_path_factory.mktemp("empty") / "store", create=True)
    empty.save()
    for each in (empty, store):
        each.require()
    return [empty, store]


@each_row("name", whole_queries())
def test_every_query_runs(name: str, stores: list[Store]) -> None:
    text = sql(name, **PARTS | OWN_PARTS.get(name, {}))
    values: Any = {each: VALUES.get(each, "x") for each in re.findall(r"\$(\w+)", text)}
    for store in stores:
        connection = connect(store)
        ask(connection, text.replace("(?)", "(['x'])"), values)


def test_a_condition_is_a_condition_on_sessions(stores: list[Store]) -> None:
    conditions = [name for name in queries() if name.startswith("condition.")]
    assert conditions
    for name in conditions:
        text = sql(name, call="true", edit="true", value="true")
        values = {each: VALUES.get(each, ["x"] if each == "behind" else "x") for each in re.findall(r"\$(\w+)", text)}
        for store in stores:
            ask(connect(store), sql("filter.sessions", where=f"WHERE {text}"), values)


def test_every_section_is_asked_by_some_page() -> None:
    folder = Path(__file__).parents[2] / "src" / "agentsignals" / "ui"
    code = "\n".join(path.read_text("utf-8") for path in [*folder.rglob("*.py"), folder / "queries.sql"])
    unused = [name for name in queries() if f'"{name}"' not in code and f"{{{name}}}" not in code]
    assert unused == []
