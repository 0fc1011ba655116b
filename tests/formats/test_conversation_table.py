"""The traps of tables of conversations, one test each (design/formats.md#tables-of-conversations)."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from agentsignals.formats import identify
from agentsignals.formats.conversation_table import FORMAT
from agentsignals.formats.records import HEAD_BYTES, Head
from agentsignals.formats.text_calls import answer_of, results_of
from tests.formats.reading import given, lines

Row = dict[str, Any]


def said(who: str, value: Any) -> Row:
    return {"from": who, "value": value}


def call(name: str, **arguments: Any) -> str:
    return "<tool_call>\n" + json.dumps({"name": name, "arguments": arguments}) + "\n</tool_call>"


def row(*turns: tuple[str, Any], **facts: Any) -> Row:
    return {"conversations": [said(who, value) for who, value in turns], **facts}


@pytest.mark.parametrize(
    ("value", "thoughts", "texts", "calls"),
    [
        ("plain", [], ["plain"], []),
        ("<think>\nhm\n</think>\nyes", ["hm"], ["yes"], []),
        ("<think>\n</think>\nyes", [], ["yes"], []),
        ("<think>a</think><think>b</think>c", ["a", "b"], ["c"], []),
        ("<think>never closed", ["never closed"], [], []),
        ("see <think>x</think>", [], ["see <think>x</think>"], []),
        (f"I look.\n{call('a', x=1)}\n{call('b')}", [], ["I look."], ["a", "b"]),
        (f"{call('a')} then {call('b')} end", [], ["then", "end"], ["a", "b"]),
        ('<tool_call>{"name": "a", "arguments": "{\\"x\\": 1}"}</tool_call>', [], [], ["a"]),
        ("<tool_call>\n{'arguments': {'x': 1}, 'name': 'a'}\n</tool_call>", [], [], ["a"]),
        ("a `<tool_call>` tag, and </tool_call>", [], ["a `<tool_call>` tag, and </tool_call>"], []),
        ('<tool_call>{"no": "name"}</tool_call>', [], ['<tool_call>{"no": "name"}</tool_call>'], []),
        ('<tool_call>{"name": "a"} and so on', [], ['<tool_call>{"name": "a"} and so on'], []),
        (f"<tool_call> opens: {call('a')}", [], ["<tool_call> opens:"], ["a"]),
        ('<tool_call>{"name": "a"', [], ['<tool_call>{"name": "a"'], []),
        (call("write", text="code: <tool_call>\n</tool_call> end"), [], [], ["write"]),
    ],
)
def test_tags_are_calls_and_thoughts_only_where_they_hold_some(
    value: str, thoughts: list[str], texts: list[str], calls: list[str]
) -> None:
    found = answer_of(value)
    assert (found.thoughts, found.texts, [c.name for c in found.calls]) == (thoughts, texts, calls)


def test_an_answer_without_tags_is_one_result() -> None:
    assert [r.content for r in results_of("just text")] == ["just text"]
    assert [r.content for r in results_of("<tool_response>\nfree text\n</tool_response><tool_response>b")] == [
        "free text",
        "b",
    ]


@pytest.mark.parametrize(
    "data",
    [
        lines(row(("human", "a"), ("gpt", "b"))),
        json.dumps([row(("human", "a"), ("gpt", "b"))]).encode(),
        json.dumps([row(("human", "a"), ("gpt", "b"))], indent=2).encode(),
        json.dumps(row(("human", "a"), ("gpt", "b")), indent=2).encode(),
        json.dumps({"rows": [{"row_idx": 0, "row": row(("human", "a"), ("gpt", "b"))}]}).encode(),
        lines(row(("human", "a"), ("gpt", "x" * 70_000))),
        json.dumps([row(("human", "a"), ("gpt", "x" * 70_000))]).encode(),
    ],
    ids=["lines", "list", "printed list", "printed row", "rows of a server", "long line", "long list"],
)
def test_rows_come_in_many_wrappings(data: bytes) -> None:
    found = identify(Head(data[:HEAD_BYTES], "a", len(data) <= HEAD_BYTES))
    assert found is not None and found[0] is FORMAT
    (session,) = FORMAT.read([given(data, "conversation-table")]).sessions
    assert [e.kind for e in session.events] == ["human_turn", "text"]


def test_the_first_row_joins_a_data_set_with_its_next_upload() -> None:
    rows = [row(("human", str(n)), ("gpt", "x")) for n in range(3)]
    keys = [FORMAT.claims(Head(lines(*some), "a", True)) for some in (rows[:2], rows)]
    assert keys[0] is not None and keys[0] == keys[1] and len(keys[0].keys) == 1


@pytest.mark.parametrize(
    "piece",
    [
        "<tool_call>",
        "<tool_call>{",
        "<tool_call>{'",
        "<tool_call>{'a':",
        '<tool_call>{"a":',
        "<think>",
        "<tool_call>[",
        "<tool_response>",
        "<tool_response>{",
        "<tool_call>{}",
        '<tool_call>{"a":"',
    ],
)
def test_hostile_tags_cost_little(piece: str) -> None:
    text = piece * (60_000 // len(piece))
    began = time.process_time()
    answer_of(text + "</tool_call>")
    results_of(text + "</tool_response>")
    assert time.process_time() - began < 1.0
