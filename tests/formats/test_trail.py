"""What TRAIL's samples do not show: claims, spelling, durations, depth (design/formats.md#trail)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import identify
from agentsignals.formats.head import HEAD_BYTES, Head
from agentsignals.formats.trail import FORMAT
from agentsignals.formats.trail.reader import category_of, duration_us
from tests.formats.reading import format_of, given

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "eval" / "trail"
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


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.exists(), reason="needs the corpus")
def test_the_corpus() -> None:
    """Figures counted over the JSON by another script; each agent's span sums up the tokens of its model calls."""
    inputs = []
    for path in sorted(CORPUS.rglob("*.json")):
        data = path.read_bytes()
        found = identify(Head(data[:HEAD_BYTES], path.as_posix(), len(data) <= HEAD_BYTES))
        assert found is not None
        assert (found[0].name, found[1].keys) == ("trail", [f"trace:{path.stem}"])
        inputs.append(given(data, "trail", path.as_posix()))
    reading = FORMAT.read(inputs)
    sessions, parts = reading.sessions, reading.attempts
    assert len(sessions) == 14
    assert sum(len(s.steps) for s in sessions) == 141, "142 with an answer, one of them written twice"
    assert Counter((c.name, c.status) for s in sessions for c in s.tool_calls) == {
        ("python_interpreter", "ok"): 120, ("python_interpreter", "error"): 21, ("final_answer", "ok"): 10,
    }  # fmt: skip
    summed = [p for p in parts if p.input_tokens is not None]
    assert len(summed) == 10
    for part in summed:
        (session,) = (s for s in sessions if s.session_id == part.session_id)
        assert part.input_tokens == sum(x.input_tokens or 0 for x in session.steps)
        assert part.output_tokens == sum(x.output_tokens or 0 for x in session.steps)
    errors = [x for s in sessions for x in s.labels if x.task == "trail_error"]
    assert (len(errors), sum(x.seq is None for x in errors)) == (111, 1)
    assert Counter(x.value for x in errors).most_common(2) == [
        ("formatting_error", 36),
        ("instruction_non_compliance", 26),
    ]
    assert sum(p.task_id is not None and p.gold_patch is not None for p in parts) == 13
    assert Counter(p.exit_status for p in parts) == {"completed": 10, "error": 3, None: 1}
    assert not any(i.artifact.skipped for i in inputs)
