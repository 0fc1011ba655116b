"""What signals say of tiny sessions: value, detail, evidence and rules (`tests/signals/cases`)."""

from __future__ import annotations

from typing import Any

from tests.quick import each_row
from tests.signals.cases import cases, told, view_of


@each_row("case", [case for listed in cases().values() for case in listed])
def test_a_tiny_session(case: dict[str, Any]) -> None:
    view = view_of(case)
    assert {path: told(view, path, case) for path in case["expect"]} == case["expect"]
