"""What TRAIL's samples do not show: claims, spelling, durations, depth (design/formats.md#trail)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsignals.formats.records import HEAD_BYTES, Head
from agentsignals.formats.trail import FORMAT
from agentsignals.formats.trail.reader import category_of, duration_us
from tests.formats.reading import format_of, given

ERROR = {"category": "Goal deviation", "location": "t1", "impact": "HIGH"}


@pytest.mark.parametrize(
    ("document", "keys"),
    [
        ({"trace_id": "ab12", "spans": []}, ["trace:ab12"]),
        ({"trace_id": "ab12", "spans": [{"span_id": "a"}]}, ["trace:ab12"]),
        ({"trace_id": "ab12", "spans": [{"id": 7}]}, None),
        ({"trace_id": 7, "spans": []}, None),
        ({"trace_id": "", "spans": []}, None),
        ({"trace_id": "x", "spans": "y"}, None),
        ({"trace_id": "ab12", "errors": [ERROR], "scores": []}, ["trace:ab12"]),
        ({"errors": [ERROR], "scores": []}, ["trace:9f"]),
        ({"trace_id": "q", "errors": [], "scores": [{"plan_opt_score": 1}]}, ["trace:q"]),
        ({"trace_id": "q", "errors": [], "scores": []}, None),
        ({"errors": [{"message": "x"}], "scores": [1]}, None),
        ({"errors": 3, "scores": [{"plan_opt_score": 1}]}, None),
    ],
)
def test_a_trace_and_its_annotations_share_a_key(document: Any, keys: list[str] | None) -> None:
    claim = FORMAT.claims(Head(json.dumps(document).encode(), "annotations/9f.json", True))
    assert (claim.keys if claim is not None else None) == keys


def test_a_trace_is_known_by_its_beginning() -> None:
    document = {"trace_id": "ab12", "spans": [{"span_id": str(n), "span_attributes": {}} for n in range(9_000)]}
    assert len(json.dumps(document)) > HEAD_BYTES and format_of(document) == "trail"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("Formatting Errors", "formatting_error"), (" Formatting Error", "formatting_error"),
        ("Goal deviation", "goal_deviation"), ("Instruction non complience", "instruction_non_compliance"),
        ("Instruction Non-compliance", "instruction_non_compliance"), ("Language-only", "language_only"),
        ("Context Handling Failures", "context_handling_failure"), ("Tool Access", "tool_access"), ("??", ""),
    ],
)  # fmt: skip
def test_categories_have_one_spelling(raw: str, expected: str) -> None:
    assert category_of(raw) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("PT2M5.65S", 125_650_000), ("PT0.000118S", 118), ("P1DT1H", 90_000_000_000), ("PT0S", 0), ("PT", None),
     ("P", None), ("P1M", None), ("2.5", None), ("", None), (None, None), ("PT1S ", None)],
)  # fmt: skip
def test_durations_are_iso(text: str | None, expected: int | None) -> None:
    assert duration_us(text) == expected


@pytest.mark.parametrize("depth", [60, 300, 5_000])
@pytest.mark.parametrize("broken", ["", '{"span_id": 7}, '])
def test_spans_nested_too_deep_are_counted_and_no_trouble(depth: int, broken: str) -> None:
    nested = '{"child_spans": [' * depth + broken + '{"span_id": "deep"}' + "]}" * depth
    source = given(b'{"trace_id": "ab12", "spans": [%s]}' % nested.encode(), "trail")
    FORMAT.read([source])
    assert source.artifact.records > 0
