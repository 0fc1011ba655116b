"""What `droid exec` prints, and the settings beside Droid's logs (design/formats.md#small-formats)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsignals.formats import droid_exec, factory_droid
from agentsignals.formats.head import Head
from agentsignals.model import SESSION_TOTAL, Session
from tests.formats.reading import given, lines

USED = {"inputTokens": 1000, "outputTokens": 200, "cacheCreationTokens": 300, "cacheReadTokens": 4000}


@pytest.mark.parametrize(
    ("record", "claimed"),
    [
        ({"type": "tool_call", "toolName": "Read", "parameters": {}}, True),
        ({"type": "message", "role": "user", "text": "hi"}, True),
        ({"type": "tool_call", "subtype": "started", "tool_call": {}}, False),  # Cursor's
        ({"type": "message", "role": "user", "content": "hi"}, False),  # Gemini CLI's
        ({"type": "assistant", "message": {}}, False),  # Claude's
    ],
)
def test_streams_of_other_agents_are_theirs(record: dict[str, Any], claimed: bool) -> None:
    head = Head(json.dumps({**record, "session_id": "s"}).encode(), "run.jsonl", True)
    assert (droid_exec.claims(head) is not None) == claimed


def settled(models: tuple[str | None, ...], settings: dict[str, Any], place: str = "/s/one.settings.json") -> Session:
    """A session whose answers name these models, next to its settings."""
    start = {"type": "session_start", "id": "one", "title": "t", "owner": "me"}
    says = [
        {"type": "message", "id": f"m{n}", "message": {"role": "assistant", "modelId": model, "content": "hi"}}
        for n, model in enumerate(models)
    ]
    files = [
        given(lines(start, *says), "factory-droid", "/s/one.jsonl"),
        given({"assistantActiveTimeMs": 1, **settings}, "factory-droid", place),
    ]
    (session,) = factory_droid.FORMAT.read(files).sessions
    return session


@pytest.mark.parametrize(
    ("models", "priced"),
    [
        ((None, None), "m-1"),
        (("m-1", None), "m-1"),
        (("m-2",), "m-2"),  # the settings name the model chosen last, which may not have answered
        (("m-1", "m-2"), None),
    ],
)
def test_tokens_of_the_settings_have_the_model_that_answered(
    models: tuple[str | None, ...], priced: str | None
) -> None:
    (total,) = [
        step
        for step in settled(models, {"model": "m-1", "tokenUsage": USED}).steps
        if step.stop_reason == SESSION_TOTAL
    ]
    assert (total.model, total.input_tokens, total.cache_write_tokens) == (priced, 1000, 300)


@pytest.mark.parametrize("used", [{}, {"tokenUsage": {}}, {"tokenUsage": None}])
def test_settings_without_tokens_add_none(used: dict[str, Any]) -> None:
    session = settled((None,), {"model": "m-1", **used})
    assert (session.model, [step.stop_reason for step in session.steps]) == ("m-1", [None])


def test_settings_of_another_session_say_nothing_of_this_one() -> None:
    assert settled((None,), {"model": "m-1", "tokenUsage": USED}, "/s/two.settings.json").model is None
