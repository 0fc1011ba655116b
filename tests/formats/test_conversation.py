"""The core that readers share: conversations, token usage, the lenient decoder, whose words a prompt is."""

from __future__ import annotations

import json
from math import isnan
from typing import Any

import pytest
from msgspec import Raw, Struct, defstruct

from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.conversation import Document, DocumentReader
from agentsignals.formats.edits import record_arguments
from agentsignals.formats.profile import EDIT, READ, WRITE, Profile, named
from agentsignals.formats.records import decoded
from agentsignals.formats.usage import Tokens, charge, close, tokens_of
from agentsignals.model import MAIN, Artifact, Session
from tests.formats import reading

PROFILE = Profile(
    agent="toy",
    tools=named((READ, "read"), (EDIT, "edit"), (WRITE, "write")),
    machine_written=(("<notice>", "notification"),),
)


class Part(Struct):
    type: str = "text"
    text: str = ""


class Message(Struct, kw_only=True):
    role: str = ""
    parts: list[Part] = []
    calls: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []


class Reader(DocumentReader[Document, Message]):
    profile, document_type, message_type = PROFILE, Document, Message
    part_types = frozenset(("text",))

    def begin(self) -> None:
        self.is_subagent = self.document.id.startswith("sub")

    def on_user(self, message: Message, at: int | None) -> None:
        for result in message.results:
            self.result(result["id"], result["text"], "ok", at)
        self.prompt(
            "\n".join(part.text for part in message.parts), at, attached=any(p.type == "image" for p in message.parts)
        )

    def on_assistant(self, message: Message, at: int | None) -> None:
        step = self.builder.step(None, "m", at)
        for call in message.calls:
            self.call(call["id"], call["name"], json.dumps(call["input"]), at, step)
        for part in message.parts:
            with self.aside("agent-1"):
                self.event("text", part.text, at, step)


def read(*messages: Any, session_id: str = "s") -> tuple[Session, Artifact]:
    data = json.dumps({"id": session_id, "messages": messages}).encode()
    source = reading.given(data, "toy")
    (session,) = Reader.read([source]).sessions
    return session, source.artifact


def user(*texts: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": text} for text in texts], **more}


def builder() -> SessionBuilder:
    session = Session(session_id="s", context="product", format="toy", agent="toy", artifact_id="a")
    return SessionBuilder(session, PROFILE)


def test_a_malformed_message_costs_only_itself_and_an_unknown_role_is_told() -> None:
    session, artifact = read(user("one"), {"role": 5}, {"role": "judge"}, user("two"))
    assert [turn.text for turn in session.turns] == ["one", "two"]
    assert artifact.record_kinds == {"document": 1, "message.user": 2, "message.judge": 1}
    assert artifact.skipped_reasons == {"bad_shape": 1}
    assert [(e.kind, e.text, e.line) for e in session.events if e.kind == "unknown"] == [("unknown", "judge", 3)]


def test_parts_of_a_type_that_is_not_read_are_told_and_may_be_an_attachment() -> None:
    session, _ = read({"role": "user", "parts": [{"type": "image"}]})
    assert [turn.kind for turn in session.turns] == ["attachment"]
    assert [e.text for e in session.events if e.kind == "unknown"] == ["block image"]


@pytest.mark.parametrize(
    ("session_id", "text", "kinds"),
    [
        ("s", "do it", ["human_turn"]),
        ("s", "<notice>done</notice>", ["notification"]),
        ("sub-1", "do it", ["meta"]),
        ("sub-1", "<notice>done</notice>", ["notification"]),
        ("s", "", []),
    ],
)
def test_whose_words_a_prompt_is(session_id: str, text: str, kinds: list[str]) -> None:
    session, _ = read(user(text), session_id=session_id)
    assert [event.kind for event in session.events] == kinds


def test_what_is_aside_belongs_to_its_thread_and_to_no_turn() -> None:
    session, _ = read(user("one"), {"role": "assistant", "parts": [{"text": "hello"}]}, user("two"))
    assert [(e.text, e.thread, e.turn) for e in session.events] == [
        ("one", MAIN, 0), ("hello", "agent-1", None), ("two", MAIN, 1),
    ]  # fmt: skip


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
