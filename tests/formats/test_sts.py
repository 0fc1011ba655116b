"""The traps of STS conversations, one test each (design/formats.md#small-formats)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.formats.reading import format_of, lines


@pytest.mark.parametrize(
    ("header", "claimant"),
    [
        ({"type": "session", "harness": "acme.app", "id": "x", "cwd": "/r", "version": 3}, "sts"),
        ({"type": "session", "id": "x", "cwd": "/r", "version": 3}, "pi"),
        ({"type": "session", "harness": "acme.app"}, "sts"),
        ({"type": "session", "id": "x"}, None),
        ({"type": "session", "harness": 7, "id": "x"}, None),
    ],
)
def test_a_session_with_a_harness_is_sts_and_one_without_may_be_pi(
    header: dict[str, Any], claimant: str | None
) -> None:
    said = {"type": "message", "message": {"role": "user", "content": "hi"}}
    assert format_of(lines(header, said), "x.jsonl") == claimant
