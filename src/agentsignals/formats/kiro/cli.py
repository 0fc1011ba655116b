"""Reads sessions of Kiro's newer command line: `<id>.jsonl`, a message a line, and facts on it in `<id>.json`."""

import posixpath
import re
from typing import Any

from msgspec import Raw, Struct

from agentsignals.formats import Input
from agentsignals.formats.conversation import Conversation
from agentsignals.formats.documents import as_text, inside, string
from agentsignals.formats.kiro import PROFILE, is_log
from agentsignals.formats.records import decoded, decoder, document, lines, saw
from agentsignals.model import CallStatus, Session, logged_iso, logged_seconds

_CODE = re.compile(r"exit status: (-?\d+)")


class Part(Struct, gc=False):
    kind: str = ""
    data: Raw = Raw()


class Data(Struct, gc=False):
    message_id: str | None = None
    content: list[Part] = []
    meta: dict[str, Any] | None = None


class Line(Struct, gc=False):
    kind: str = ""
    data: Data | None = None


class Facts(Struct, gc=False):
    session_id: str = ""
    cwd: str | None = None
    title: str | None = None
    created_at: str | None = None
    parent_session_id: str | None = None
    session_created_reason: str | None = None


def sessions(inputs: list[Input]) -> list[Session]:
    """Read the logs of a folder. Facts without a log are a session in which nobody said anything."""
    facts: dict[str, Facts] = {}
    for source in inputs:
        if not is_log(source.data) and (told := document(source.data, source.artifact, decoder(Facts).decode)):
            facts[told.session_id] = told
            saw(source.artifact, "session")
    logs = [source for source in inputs if is_log(source.data)]
    return [Reader(source, facts.get(_name(source))).read(source) for source in logs]


def _name(source: Input) -> str:
    return posixpath.basename(source.artifact.path).partition(".")[0]


class Reader(Conversation):
    profile = PROFILE

    def __init__(self, source: Input, facts: Facts | None) -> None:
        super().__init__(source.session(_name(source), "kiro", PROFILE.agent))
        if facts is not None:
            session = self.session
            session.title, session.started_at = facts.title, logged_iso(facts.created_at)
            session.parent_session_id = facts.parent_session_id
            self.is_subagent = facts.session_created_reason == "subagent"
            self.builder.where(facts.cwd)

    def read(self, source: Input) -> Session:
        for number, line in lines(source.data, source.artifact, decoder(Line).decode):
            self.builder.line = number
            saw(source.artifact, line.kind or "line")
            data = line.data or Data()
            at = logged_seconds(inside(data.meta, "timestamp"))
            if line.kind == "Prompt":
                texts = [as_text(decoded(p.data, Any)) for p in data.content if p.kind == "text"]
                self.prompt("\n".join(texts), at, attached=len(texts) < len(data.content))
            elif line.kind == "AssistantMessage":
                self.answer(data, at)
            elif line.kind == "ToolResults":
                self.results(data, at)
            else:
                self.event("unknown", line.kind[:80], at)
        return self.builder.finish()

    def answer(self, data: Data, at: int | None) -> None:
        step = self.builder.step(data.message_id, None, at)
        for part in data.content:
            value = decoded(part.data, Any)
            if part.kind == "text":
                self.event("text", as_text(value), at, step)
            elif part.kind == "thinking":
                step.model = string(inside(value, "modelId")) or step.model
                self.event("thinking", as_text(inside(value, "text")), at, step)
            elif part.kind == "toolUse":
                call_id, name = (string(inside(value, key)) or "" for key in ("toolUseId", "name"))
                self.call(call_id, name, as_text(inside(value, "input")), at, step)
            else:
                self.event("unknown", f"part of type {part.kind}"[:80], at)

    def results(self, data: Data, at: int | None) -> None:
        for part in data.content:
            value = decoded(part.data, Any)
            if part.kind != "toolResult":
                self.event("unknown", f"part of type {part.kind}"[:80], at)
                continue
            texts, code = [], None
            for item in inside(value, "content") or ():
                held = inside(item, "data")
                ended = _CODE.fullmatch(string(inside(held, "exit_status")) or "")
                code = int(ended[1]) if ended is not None else code
                shown = (inside(held, "stdout"), inside(held, "stderr")) if ended is not None else (held,)
                texts += [as_text(text) for text in shown if text]
            failed = inside(value, "status") == "error" or bool(code)
            status: CallStatus = "error" if failed else "ok"
            self.result(string(inside(value, "toolUseId")) or "", "\n".join(texts), status, at, None, code)
