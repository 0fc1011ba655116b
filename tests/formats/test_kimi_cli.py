"""The traps of kimi-cli's wire files that no sample shows (design/formats.md#kimi-cli)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.formats.reading import format_of, lines

T = 1_780_000_000.5
Row = dict[str, Any]


def row(kind: str, at: float = 0, **payload: Any) -> Row:
    return {"timestamp": T + at, "message": {"type": kind, "payload": payload}}


def prompt(text: object = "go", at: float = 0) -> Row:
    return row("TurnBegin", at, user_input=text)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([{"type": "metadata", "protocol_version": "1.9"}, prompt()], "kimi-cli"),
        ([prompt()], "kimi-cli"),
        ([{"timestamp": T, "message": {"type": "x", "text": "y"}}], None),
        ([{"timestamp": "2026-01-01", "message": {"type": "x", "payload": {}}}], None),
    ],
)
def test_it_is_known_by_its_messages(rows: list[Row], expected: str | None) -> None:
    assert format_of(lines(*rows), "w.jsonl") == expected
