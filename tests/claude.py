"""Writes Claude Code transcripts for tests: envelope, ids, a running clock; a test names only what matters to it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from agentsignals.formats import Input, Reading, claude_code
from agentsignals.model import Session
from tests.formats import reading

SESSION = "6f1d2c3b-0000-4000-8000-000000000001"
START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit,"
    " the new_string was NOT written to the file). "
)
SAID = REFUSED + "To tell you how to proceed, the user said:\n"
STOP = REFUSED + "STOP what you are doing and wait for the user to tell you how to proceed."
NOTE = "\n\nNote: The user's next message may contain a correction or preference. Pay close attention."


class Log:
    """A transcript being written. Each record is one second after the one before it."""

    def __init__(
        self, session: str = SESSION, name: str = "", cwd: str = "/work/shop", version: str = "2.1.20"
    ) -> None:
        self.session = session
        self.name = name or session[-2:]
        self.base = {"userType": "external", "cwd": cwd, "sessionId": session, "version": version, "gitBranch": "main"}
        self.lines: list[str] = []
        self.now = START
        self.last: str | None = None
        self.count = 0

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def raw(self, text: str) -> None:
        """A line as it stands."""
        self.lines.append(text)

    def side(self, type_: str, **facts: Any) -> None:
        """A record without envelope: titles, snapshots, queue operations."""
        self.raw(_json({"type": type_, **facts}))

    def queue(self, operation: str, content: str | None = None) -> None:
        said = {} if content is None else {"content": content}
        self.side("queue-operation", operation=operation, timestamp=self._tick(), **said, sessionId=self.session)

    def record(self, type_: str, **facts: Any) -> str:
        """A record of the conversation; gives its id."""
        self.count += 1
        uuid = facts.pop("uuid", None) or f"{self.name}-{self.count:04d}"
        base = {**self.base, **{k: facts.pop(k) for k in ("cwd", "sessionId", "version") if k in facts}}
        at = facts.pop("timestamp", None) or self._tick()
        whole = {
            "parentUuid": self.last,
            "isSidechain": False,
            **base,
            "type": type_,
            **facts,
            "uuid": uuid,
            "timestamp": at,
        }
        self.raw(_json(whole))
        self.last = uuid
        return uuid

    def user(self, content: str | list[dict[str, Any]], **facts: Any) -> str:
        return self.record("user", message={"role": "user", "content": content}, **facts)

    def assistant(
        self,
        *blocks: dict[str, Any],
        message_id: str = "msg_1",
        model: str = "claude-opus-4-6",
        usage: tuple[int, int, int, int] = (3, 10, 900, 40),
        **facts: Any,
    ) -> str:
        """Blocks of one API message; `usage` is input, output, cache read, cache write."""
        names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        message = {
            "model": model,
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "content": list(blocks),
            "stop_reason": None,
            "usage": dict(zip(names, usage, strict=True)),
        }
        return self.record("assistant", message=message, **facts)

    def say(self, text: str, **more: Any) -> str:
        return self.assistant({"type": "text", "text": text}, **more)

    def call(self, name: str, call_id: str = "toolu_1", **arguments: Any) -> str:
        block = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
        return self.assistant(block, message_id=f"msg_{call_id}")

    def result(self, content: Any, call_id: str = "toolu_1", error: Any = None, told: Any = None) -> str:
        block = {"tool_use_id": call_id, "type": "tool_result", "content": content}
        if error is not None:
            block["is_error"] = error
        return self.user([block], **({"toolUseResult": told} if told is not None else {}))

    def ran(self, name: str, text: Any = "ok", error: Any = None, told: Any = None, **arguments: Any) -> None:
        """A call and its result."""
        call_id = f"toolu_{self.count + 1}"
        self.call(name, call_id, **arguments)
        self.result(text, call_id, error, told)

    def data(self) -> bytes:
        return "".join(f"{line}\n" for line in self.lines).encode("utf-8", "surrogatepass")

    def _tick(self) -> str:
        self.now += timedelta(seconds=1)
        return stamp(self.now)


def stamp(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def micros(seconds: float) -> int:
    """Microseconds since 1970 of that many seconds after the clock's start."""
    return round((START + timedelta(seconds=seconds)).timestamp() * 1_000_000)


def given(data: bytes, name: str = "a", hint: str | None = None) -> Input:
    made = reading.given(data, "claude-code", name, hint)
    made.artifact.path = f"{name}.jsonl"
    return made


def read(*logs: Log) -> Reading:
    """The reading of files that belong together."""
    return claude_code.FORMAT.read([given(log.data(), f"file{n}") for n, log in enumerate(logs)])


def session(*logs: Log) -> Session:
    """The one session of some files."""
    (only,) = read(*logs).sessions
    return only


def turns(log: Log) -> list[tuple[str, str]]:
    return [(turn.kind, turn.text) for turn in session(log).turns]


def kinds(log: Log) -> list[str]:
    return [event.kind for event in session(log).events]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
