"""The traps of OpenHands' conversations, one test each (design/formats.md#openhands)."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from agentsignals.formats import Input, identify
from agentsignals.formats.head import HEAD_BYTES, Head
from agentsignals.formats.openhands import FORMAT
from agentsignals.model import Artifact, Session

ID = "3f0c6f0e9a1b4c5d8e7f60718293a4b5"
START = datetime(2026, 11, 20, 9, 0)


def part(words: str) -> dict[str, Any]:
    return {"cache_prompt": False, "type": "text", "text": words}


class Folder:
    """The files of one conversation, by path."""

    def __init__(self, path: str = f"conversations/{ID}") -> None:
        self.path = path
        self.files: dict[str, bytes] = {}
        self.last: str | None = None
        self.usages: list[dict[str, Any]] = []
        self.costs: list[dict[str, Any]] = []
        self.uses: dict[str, Any] = {}

    def event(self, kind: str, source: str = "environment", parent: str | None = None, **facts: Any) -> str:
        n = len(self.files)
        name = f"{n:08x}-0000-4000-8000-000000000000"
        at = (START + timedelta(seconds=n)).isoformat(timespec="microseconds")
        row = {"id": name, "timestamp": at, "source": source, "parent_id": parent or self.last, **facts, "kind": kind}
        row = {key: value for key, value in row.items() if value is not None}
        self.files[f"{self.path}/events/event-{n:05d}-{name}.json"] = json.dumps(row).encode()
        self.last = name
        return name

    def message(self, words: str | None, source: str = "user", **more: Any) -> str:
        content = [part(words)] if words else [{"type": "image", "image_urls": ["data:image/png;base64,iVBO"]}]
        role = "user" if source == "user" else "assistant"
        return self.event("MessageEvent", source, llm_message={"role": role, "content": content}, **more)

    def call(self, name: str, answer: str = "r1", call_id: str = "c1", says: str = "", **arguments: Any) -> str:
        asked = {"id": call_id, "name": name, "arguments": json.dumps(arguments), "origin": "completion"}
        return self.event(
            "ActionEvent",
            "agent",
            thought=[part(says)],
            tool_name=name,
            tool_call_id=call_id,
            tool_call=asked,
            llm_response_id=answer,
        )

    def result(self, words: str, call_id: str = "c1", name: str = "terminal", **facts: Any) -> str:
        seen = {"content": [part(words)], "is_error": False, **facts}
        return self.event("ObservationEvent", tool_name=name, tool_call_id=call_id, observation=seen, action_id="a")

    def used(self, answer: str, *figures: int, usd: float | None = None, at: float | None = None) -> None:
        names = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
        self.usages.append({"model": "anthropic/toy", "response_id": answer, **dict(zip(names, figures, strict=False))})
        if usd is not None:
            self.costs.append({"model": "anthropic/toy", "cost": usd, "timestamp": at})

    def state(self, **more: Any) -> None:
        agent = {"llm": {"model": "anthropic/toy", "api_key": "**********"}, "kind": "Agent"}
        stats = {"usage_to_metrics": {"default": {"token_usages": self.usages, "costs": self.costs}, **self.uses}}
        name = self.path.rpartition("/")[2]
        facts = {"id": name, "agent": agent, "workspace": {"working_dir": "/work/shop"}, "stats": stats}
        whole = {**facts, "execution_status": "finished", "persistence_dir": self.path, **more}
        self.files[f"{self.path}/base_state.json"] = json.dumps(whole).encode()

    def inputs(self) -> list[Input]:
        return [
            Input(
                data,
                Artifact(artifact_id=path, source="t", path=path, format="openhands", sha256=path, bytes=len(data)),
            )
            for path, data in self.files.items()
        ]


def read(*folders: Folder) -> list[Session]:
    return FORMAT.read([i for folder in folders for i in folder.inputs()]).sessions


CHILD = "aa0c6f0e9a1b4c5d8e7f60718293a4b5"


def claim(path: str, data: bytes) -> tuple[str, list[str]] | None:
    made = identify(Head(data[:HEAD_BYTES], path, len(data) <= HEAD_BYTES))
    return made and (made[0].name, made[1].keys)


def test_the_place_says_which_conversation_an_event_is_of() -> None:
    folder = Folder(f"/h/conversations/{ID}/subagents/{CHILD}")
    folder.message("hello")
    folder.call("file_editor", command="create", path="/a", file_text="x" * 2 * HEAD_BYTES)
    folder.state()
    keys = [f"folder:{folder.path}", f"session:{CHILD}", f"folder:/h/conversations/{ID}"]
    assert [claim(path, data) for path, data in folder.files.items()] == [("openhands", keys)] * 3
    ((path, data), *_) = folder.files.items()
    assert claim(f"/h/mine/{path.rpartition('/')[2]}", data) == ("openhands", ["folder:/h/mine"])
    assert claim("/h/other.json", data) is None


@pytest.mark.parametrize(
    "row",
    [
        {"id": "a", "timestamp": "2026-01-01", "source": "sensor", "kind": "MessageEvent"},
        {"id": 1, "timestamp": "2026-01-01", "source": "agent", "kind": "MessageEvent"},
        {"id": "a", "timestamp": "2026-01-01", "source": "agent", "type": "message"},
        {"id": "a", "agent": {"llm": {}}, "stats": {}},
    ],
)
def test_what_is_not_claimed(row: dict[str, Any]) -> None:
    assert claim(f"{ID}/events/event-00001-0000000a-0000.json", json.dumps(row).encode()) is None
