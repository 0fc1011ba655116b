"""The core that readers share: conversations, token usage, the lenient decoder, whose words a prompt is."""

from __future__ import annotations

import json
from math import isnan
from typing import Any

import pytest
from msgspec import Raw, Struct, defstruct

from agentsignals.formats.builder import SessionBuilder, Tokens, charge, close, record_arguments, tokens_of
from agentsignals.formats.profile import EDIT, READ, WRITE, Profile, named
from agentsignals.formats.records import decoded
from agentsignals.model import Session

PROFILE = Profile(
    agent="toy",
    tools=named((READ, "read"), (EDIT, "edit"), (WRITE, "write")),
    machine_written=(("<notice>", "notification"),),
)


class Part(Struct):
    type: str = "text"
    text: str = ""


def builder() -> SessionBuilder:
    session = Session(session_id="s", context="product", format="toy", agent="toy", artifact_id="a")
    return SessionBuilder(session, PROFILE)


@pytest.mark.parametrize(
    ("before", "op"),
    [
        ([], "create"),
        ([("r", "read", "f")], "modify"),
        ([("r", "read", "g")], "create"),
        ([("w", "write", "f")], "modify"),
    ],
)
def test_a_whole_text_makes_a_file_unless_the_session_touched_it(before: list[tuple[str, str, str]], op: str) -> None:
    made = builder()
    for call_id, name, path in before:
        made.call(call_id, name, json.dumps({"path": path, "content": "x"}), PROFILE.tool(name))
        made.result(call_id, "", "ok")
    made.call("c", "write", '{"path": "f", "content": "x"}', PROFILE.tool("write"))
    call = made.result("c", "", "ok")
    assert call is not None
    record_arguments(made, call)
    assert [edit.op for edit in made.session.edits] == [op]


Camel = defstruct("Camel", [(name, object, None) for name in ("inputTokens", "cacheReadInputTokens", "outputTokens")])


NONE = Tokens(None, None, None, None, None)


@pytest.mark.parametrize(
    ("usage", "cached", "tokens"),
    [
        ({"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 7}, "apart", (10, 2, 7, None, None)),
        ({"input_tokens": 10, "output_tokens": 2, "cached_input_tokens": 7}, "within", (3, 2, 7, None, None)),
        ({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 7}}, "within", (0, None, 7, None, None)),
        (
            {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 7}},
            "within_if_fewer",
            (5, None, 7, None, None),
        ),
        (
            {"promptTokens": 9, "cacheWriteTokens": 4, "completionTokens": 3, "reasoningTokens": 1},
            "within_if_fewer",
            (5, 3, None, 4, 1),
        ),
        (Camel(inputTokens=9, cacheReadInputTokens=2), "within", (7, None, 2, None, None)),
        ({"input": 1, "output": 2, "cache": {"read": 3, "write": 4}, "reasoning": 5}, "apart", (1, 2, 3, 4, 5)),
        ({"input_tokens": None, "unknown": 5}, "within", NONE),
        (None, "within", NONE),
        ("12 tokens", "within", NONE),
        ([{"input_tokens": 3}], "within", NONE),
        (7, "apart", NONE),
    ],
)
def test_tokens_are_read_in_any_spelling(usage: Any, cached: Any, tokens: tuple[int | None, ...]) -> None:
    assert tokens_of(usage, cached) == tokens


def test_figures_that_can_not_be_are_no_tokens() -> None:
    figures = tokens_of({"input_tokens": -1, "output_tokens": "7?", "cached_tokens": 10**15}, "apart")
    assert all(isnan(figure) for figure in figures[:3] if figure is not None)


def test_totals_become_a_closing_step_without_zeros() -> None:
    made = builder()
    step = close(made, "m", Tokens(5, 2, 0, 3, 0))
    assert (step.stop_reason, step.input_tokens, step.cache_read_tokens, step.cache_write_tokens) == (
        "session_total",
        5,
        None,
        3,
    )
    charge(step, Tokens(5, 2, 0, 3, 0))
    assert (step.cache_read_tokens, step.reasoning_tokens) == (0, 0)


def test_a_total_that_falls_begins_anew() -> None:
    assert Tokens(9, 5).since(Tokens(4, 2)) == Tokens(5, 3)
    assert Tokens(3, 5).since(Tokens(4, 2)) == Tokens(3, 5)
    assert Tokens(3, 5).without(Tokens(4, 2)) == Tokens(0, 3)


@pytest.mark.parametrize(
    ("raw", "type_", "value"),
    [
        (b'{"type": "text"}', Part, Part("text")),
        (Raw(b"[1, 2]"), list[int], [1, 2]),
        ('"x"', str, "x"),
        (b"[" * 3_000, list[Any], None),
        (b'{"type": 5}', Part, None),
        (b"\xff", str, None),
        (Raw(), str, None),
        (None, str, None),
        (7, int, None),
    ],
)
def test_a_part_that_can_not_be_decoded_is_none(raw: Any, type_: Any, value: Any) -> None:
    assert decoded(raw, type_) == value
