"""Reads Windsurf transcripts."""

from typing import Any

import msgspec

from agentsignals.changes.hunks import between, created
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import whole
from agentsignals.formats.conversation import Conversation
from agentsignals.formats.documents import Snapshot, largest
from agentsignals.formats.records import decoder, lines, saw, string
from agentsignals.formats.windsurf import PROFILE, session_of
from agentsignals.model import CallStatus, Step, ToolCall

_RESULT_FIELDS = ("content", "output", "total_results", "exit_code", "user_rejected", "acknowledgement_type")
"""Fields of a step that are no arguments of its tool."""
_REFUSED = "ACKNOWLEDGEMENT_TYPE_REJECT"

_Record = dict[str, Any]


def read(inputs: list[Input]) -> Reading:
    """Read one session a file, named by its place. Of several files with one name the largest counts."""
    copies = []
    for source in inputs:
        records = list(lines(source.data, source.artifact, decoder(_Record).decode))
        for _, record in records:
            saw(source.artifact, _kind(record)[:80] or "untyped")
        session_id = source.session_hint or session_of(source.artifact.path) or source.artifact.artifact_id
        copies.append(Snapshot(source, records, session_id, 0))
    reading = Reading()
    for kept in largest(copies):
        reader = Reader(kept.source.session(kept.session_id, "windsurf", PROFILE.agent))
        folders = (string(_body(record).get("cwd")) for _, record in kept.document)
        reader.builder.where(next(filter(None, folders), None))
        for reader.builder.line, record in kept.document:
            reader.take(record)
        reading.sessions.append(reader.builder.finish())
    return reading


class Reader(Conversation):
    """Calls after the agent's text belong to its model call, until somebody speaks again."""

    profile = PROFILE
    step: Step | None = None

    def take(self, record: _Record) -> None:
        kind, body = _kind(record), _body(record)
        if kind == "user_input":
            self.step = None
            if text := (string(body.get("user_response")) or "").strip():
                self.builder.turn("prompt", text)
        elif kind == "planner_response":
            self.step = self.builder.step(None, None)
            self.event("text", string(body.get("response")) or "", None, self.step)
        elif PROFILE.tool(kind) is None:
            self.event("unknown", kind[:80] or "step without a type")
        else:
            self.step = self.step or self.builder.step(None, None)
            arguments = {name: value for name, value in body.items() if name not in _RESULT_FIELDS}
            for name, value in arguments.items():  # the path of a `file:` URL
                if isinstance(value, str) and value.startswith("file:///"):
                    arguments[name] = value.removeprefix("file://")
            call = self.builder.call(
                f"#{len(self.session.tool_calls)}", kind, msgspec.json.encode(arguments), PROFILE.tool(kind), None,
                self.step, folder=string(body.get("cwd")),
            )  # fmt: skip
            text = string(body.get("output")) or string(body.get("content")) or ""
            ended = record.get("status")
            status: CallStatus = "unknown"
            if body.get("user_rejected") is True or body.get("acknowledgement_type") == _REFUSED:
                status = "rejected"
            elif ended in ("done", "error"):
                status = "ok" if ended == "done" else "error"
            self.result(call.call_id, text, status, None, body, whole(body.get("exit_code")))

    def edit(self, call: ToolCall, text: str, detail: _Record) -> bool:
        """Both texts are whole. An empty one is left out."""
        if call.status == "ok":
            before, after = string(detail.get("original_content")), string(detail.get("new_content"))
            if before is None and after is not None:
                self.builder.edit(call, None, "create", [created(after)])
            else:
                self.builder.edit(call, None, "modify", between(before or "", after or ""))
        return True


def _kind(record: _Record) -> str:
    return string(record.get("type")) or ""


def _body(record: _Record) -> _Record:
    body = record.get(_kind(record))
    return body if isinstance(body, dict) else {}
