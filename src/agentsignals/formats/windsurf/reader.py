"""The Windsurf transcripts of one family, and each as a session."""

from __future__ import annotations

from typing import Any

import msgspec

from agentsignals.changes.hunks import between, created
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import whole
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.records import lines, saw
from agentsignals.formats.windsurf import PROFILE, session_of
from agentsignals.model import CallStatus, Session, Step, ToolCall

_RESULTS = ("content", "output", "total_results", "exit_code", "user_rejected", "acknowledgement_type")
"""What a step holds that is no argument of its tool."""
_REFUSED = "ACKNOWLEDGEMENT_TYPE_REJECT"

_Record = dict[str, Any]
_decode = msgspec.json.Decoder(_Record).decode


def read(inputs: list[Input]) -> Reading:
    """One session a file, named by its place. Of several files with one name the largest counts: there are no ids."""
    named: dict[str, list[Input]] = {}
    for source in inputs:
        session_id = source.session_hint or session_of(source.artifact.path) or source.artifact.artifact_id
        named.setdefault(session_id, []).append(source)
    return Reading([_read(session_id, named[session_id]) for session_id in sorted(named)])


def _read(session_id: str, copies: list[Input]) -> Session:
    kept = max(copies, key=lambda i: (len(i.data), i.artifact.sha256))
    for source in copies:
        records = list(lines(source.data, source.artifact, _decode))
        for _, record in records:
            saw(source.artifact, _kind(record)[:80] or "untyped")
        if source is kept:
            steps = records
        else:
            source.artifact.note = f"an earlier copy of {kept.artifact.path}, which counts"
            saw(source.artifact, "repeated", len(records))
    reader = _Reader(kept.session(session_id, "windsurf", PROFILE.agent))
    folders = (_string(_body(record), "cwd") for _, record in steps)
    reader.builder.where(next(filter(None, folders), None))
    for number, record in steps:
        reader.builder.line = number
        reader.take(record)
    return reader.builder.finish()


class _Reader:
    """One session in the making: what follows the agent's words, until somebody speaks again, is of one model call."""

    def __init__(self, session: Session) -> None:
        self.builder = SessionBuilder(session, PROFILE)
        self._step: Step | None = None

    def take(self, record: _Record) -> None:
        kind, body = _kind(record), _body(record)
        if kind == "user_input":
            self._step = None
            if text := (_string(body, "user_response") or "").strip():
                self.builder.turn("prompt", text)
        elif kind == "planner_response":
            self._step = self.builder.step(None, None)
            self.builder.event("text", _string(body, "response") or "", None, self._step)
        elif PROFILE.tool(kind) is None:
            self.builder.event("unknown", kind[:80] or "step without a type")
        else:
            self._call(kind, body, record.get("status"))

    def _call(self, kind: str, body: _Record, status: object) -> None:
        self._step = self._step or self.builder.step(None, None)
        arguments = {name: _plain(value) for name, value in body.items() if name not in _RESULTS}
        call = self.builder.call(
            f"#{len(self.builder.session.tool_calls)}",
            kind,
            msgspec.json.encode(arguments),
            PROFILE.tool(kind),
            None,
            self._step,
            folder=_string(body, "cwd"),
        )
        text = _string(body, "output") or _string(body, "content") or ""
        code = whole(body.get("exit_code"))
        self.builder.result(call.call_id, text, _status(body, status), None, call.thread, code)
        if call.class_ == "edit" and call.status == "ok":
            self._edit(call, body)

    def _edit(self, call: ToolCall, body: _Record) -> None:
        """Both texts are whole; one of nothing is left out."""
        before, after = _string(body, "original_content"), _string(body, "new_content")
        if before is None and after is not None:
            self.builder.edit(call, None, "create", [created(after)])
        else:
            self.builder.edit(call, None, "modify", between(before or "", after or ""))


def _status(body: _Record, status: object) -> CallStatus:
    if body.get("user_rejected") is True or body.get("acknowledgement_type") == _REFUSED:
        return "rejected"
    return "ok" if status == "done" else "error" if status == "error" else "unknown"


def _kind(record: _Record) -> str:
    return _string(record, "type") or ""


def _body(record: _Record) -> _Record:
    body = record.get(_kind(record))
    return body if isinstance(body, dict) else {}


def _plain(value: Any) -> Any:
    """A path instead of its address."""
    return value.removeprefix("file://") if isinstance(value, str) and value.startswith("file:///") else value


def _string(fields: _Record, name: str) -> str | None:
    value = fields.get(name)
    return value or None if isinstance(value, str) else None
