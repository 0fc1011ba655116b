"""A conversation of Cursor's IDE, as its database gives it (`database`): each bubble is a record."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from agentsignals.changes.hunks import Hunk, between, created, trimmed
from agentsignals.formats import Input
from agentsignals.formats.bounds import count, whole
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.cursor_agent import PROFILE
from agentsignals.formats.cursor_agent.database import inside, model_of, nonempty
from agentsignals.formats.documents import as_text
from agentsignals.formats.edits import record_arguments
from agentsignals.formats.records import UNREADABLE, lines, saw
from agentsignals.model import CallStatus, Session, Step, ToolCall, logged_iso, logged_ms

PERSON, AGENT = 1, 2
"""What a bubble's `type` says."""
COMPACTED = 22
"""The `capabilityType` of the mark that a compaction leaves."""
_STATUSES: dict[str, CallStatus] = {"completed": "ok", "error": "error", "cancelled": "cancelled"}
_RUNNING = ("loading", "pending")


class Tool(Struct, gc=False, kw_only=True):
    """A call, and in the same record its result. `params`, `rawArgs` and `result` are JSON in a string."""

    name: str | None = None
    tool: object = None
    status: str | None = None
    toolCallId: str | None = None
    modelCallId: str | None = None
    rawArgs: object = None
    params: object = None
    result: object = None
    error: object = None
    userDecision: object = None
    additionalData: object = None


class Record(Struct, gc=False, kw_only=True):
    """The conversation, or a bubble."""

    cursorComposer: dict[str, Any] | None = None
    bubbleId: str = ""
    type: object = None
    text: str | None = None
    createdAt: object = None
    thinking: object = None
    toolFormerData: Tool | None = None
    tokenCount: object = None
    modelInfo: object = None
    capabilityType: object = None
    errorDetails: object = None
    isSimulatedMsg: object = None
    images: object = None
    workspaceUris: object = None
    missing: bool = False
    before: str | None = None
    after: str | None = None

    @property
    def kind(self) -> str:
        if self.cursorComposer is not None:
            return "conversation"
        who = {PERSON: "person", AGENT: "agent"}.get(self.type if isinstance(self.type, int) else 0, "other")
        return f"bubble.{who}.missing" if self.missing else f"bubble.{who}"


_decode = msgspec.json.Decoder(Record).decode


class Held(Struct):
    """What a document holds."""

    about: dict[str, Any] = {}
    bubbles: list[tuple[int, Record]] = []
    """With their lines."""

    @property
    def session_id(self) -> str | None:
        return nonempty(self.about.get("composerId"))


def records(source: Input) -> Held:
    """The conversation of a document and its bubbles; each is counted."""
    held = Held()
    for number, record in lines(source.data, source.artifact, _decode):
        saw(source.artifact, record.kind)
        if record.cursorComposer is None:
            held.bubbles.append((number, record))
        else:
            held.about = record.cursorComposer
    return held


def read(source: Input, session_id: str, held: Held) -> Session | None:
    """The session; None of a draft that was never sent, or a conversation that was emptied."""
    unlisted = held.about.get("unlisted")
    if unlisted:
        source.artifact.note = f"{unlisted} bubbles that the conversation does not list are not read"
    if not held.bubbles:
        source.artifact.note = source.artifact.note or "a draft: nothing was sent"
        return None
    reader = _Reader(source.session(session_id, "cursor-agent", PROFILE.agent), held.about)
    for number, bubble in held.bubbles:
        reader.take(number, bubble)
    return reader.finish()


class _Reader:
    """One session in the making."""

    def __init__(self, session: Session, about: dict[str, Any]) -> None:
        session.title = nonempty(about.get("name"))
        session.parent_session_id = nonempty(inside(about, "subagentInfo", "parentComposerId"))
        session.started_at = logged_ms(about.get("createdAt"))
        self.builder = SessionBuilder(session, PROFILE)
        workspace = inside(about, "workspaceIdentifier", "uri")
        self.builder.where(nonempty(inside(workspace, "fsPath")) or nonempty(inside(workspace, "path")))
        self.model = model_of(inside(about, "modelConfig", "modelName"))
        self.aborted = about.get("status") == "aborted"
        self.touched: set[str] = set()
        self._step: Step | None = None
        self._model_call: str | None = None
        self._called = False

    def take(self, number: int, bubble: Record) -> None:
        self.builder.line = number
        at = _time(bubble.createdAt)
        if bubble.missing:
            self.builder.event("meta", "a bubble that is listed, and no longer stored", at)
        elif bubble.type == PERSON:
            self._person(bubble, at)
        elif bubble.type == AGENT:
            self._agent(bubble, at)
        else:
            self.builder.event("unknown", f"bubble of type {str(bubble.type)[:80]}", at)

    def finish(self) -> Session:
        if self.aborted:
            self.builder.event("interrupt", "aborted")
        return self.builder.finish()

    def _person(self, bubble: Record, at: int | None) -> None:
        self._step = None
        self.builder.where(_folder(bubble.workspaceUris))
        if named := nonempty(inside(bubble.modelInfo, "modelName")):
            self.model = model_of(named)
        text = (bubble.text or "").strip()
        if bubble.isSimulatedMsg is True:
            self.builder.event("notification", text, at)
        elif (kind := PROFILE.machine_kind(text)) or (text and self.builder.session.parent_session_id):
            self.builder.event(kind or "meta", text, at)
        elif text:
            self.builder.turn("prompt", text, at, self.model)
        elif bubble.images:
            self.builder.turn("attachment", "", at, self.model)

    def _agent(self, bubble: Record, at: int | None) -> None:
        tool = bubble.toolFormerData
        thinking = bubble.thinking if isinstance(bubble.thinking, str) else nonempty(inside(bubble.thinking, "text"))
        words = "" if tool is not None and _json(bubble.text) else bubble.text or ""  # an edit's diff once more
        message = nonempty(inside(bubble.errorDetails, "message"))
        if bubble.capabilityType == COMPACTED:
            self.builder.event("compaction", "{}", at)
        if not (thinking or words.strip() or tool is not None or message or _counted(bubble.tokenCount)):
            return  # a place that nothing came to stand in
        step = self._step_of(tool, at)
        _count(step, bubble.tokenCount)
        if thinking:
            self.builder.event("thinking", thinking, at, step)
        if words.strip():
            self.builder.event("text", words, at, step)
        if tool is not None:
            self._call(tool, bubble, at, step)
        if message:
            self.builder.event("api_error", message, at, step)

    def _step_of(self, tool: Tool | None, at: int | None) -> Step:
        """A model call thinks, speaks, and asks for tools: what is said after one is the next call's. Two calls of
        tools are of one where they name it."""
        step, model_call = self._step, tool.modelCallId if tool is not None else None
        if step is None or (self._called and (model_call is None or model_call != self._model_call)):
            step = self.builder.step(None, self.model, at)
        self._step, self._model_call, self._called = step, model_call, tool is not None
        return step

    def _call(self, tool: Tool, bubble: Record, at: int | None, step: Step) -> None:
        name = tool.name or (f"tool_{tool.tool}" if isinstance(tool.tool, int) else "")
        kind = PROFILE.tool(name)
        params, raw = _json(tool.params), _json(tool.rawArgs)
        arguments = raw or params or {}
        path = next((text for key in _PATHS if (text := nonempty((params or {}).get(key)))), None)
        call = self.builder.call(
            tool.toolCallId or bubble.bubbleId or f"#{len(self.builder.session.tool_calls)}",
            name,
            msgspec.json.encode(arguments),
            kind,
            at,
            step,
            path=None if any(key in arguments for key in (kind.path if kind else ())) else path,
            folder=nonempty((params or {}).get("cwd")) or None,
        )
        result = _json(tool.result)
        status = _status(tool, result or {})
        if status != "none":
            code = (result or {}).get("exitCodeV2", (result or {}).get("exitCode"))
            self.builder.result(call.call_id, _output(tool, result), status, None, call.thread, whole(code))
            if tool.status not in _STATUSES and tool.status is not None:
                self.builder.event("unknown", f"status {tool.status[:80]}", at, step)
        if call.class_ == "edit" and call.status in ("ok", "unknown"):
            self._edit(call, bubble, result or {})
        if call.path and call.class_ in ("edit", "read"):
            self.touched.add(call.path)

    def _edit(self, call: ToolCall, bubble: Record, result: dict[str, Any]) -> None:
        chunks = inside(result, "diff", "chunks")
        hunks = [hunk for chunk in chunks if (hunk := _chunk(chunk))] if isinstance(chunks, list) else []
        if call.name == "delete_file":
            self.builder.edit(call, None, "delete", [Hunk(added=0, whole_file=True)])
        elif bubble.before == "" and bubble.after is not None:
            self.builder.edit(call, None, "create", [created(bubble.after)])
        elif bubble.before is not None and bubble.after is not None:
            self.builder.edit(call, None, "modify", between(bubble.before, bubble.after))
        elif hunks:
            self.builder.edit(call, None, "create" if result.get("fileWasCreated") is True else "modify", hunks)
        else:
            record_arguments(self.builder, call, self.touched)


_PATHS = ("relativeWorkspacePath", "targetFile", "effectiveUri", "path", "targetDirectory")


def _status(tool: Tool, result: dict[str, Any]) -> CallStatus:
    """A command that failed is `completed`, and so is a call that the person turned down. Without a status and a result
    nobody knows."""
    if tool.status in _RUNNING:
        return "none"
    beside = inside(tool.additionalData, "status")
    if result.get("rejected") is True or tool.userDecision == "rejected" or beside == "rejected":
        return "rejected"
    if tool.status != "cancelled" and (beside == "error" or tool.error):
        return "error"
    if tool.status in _STATUSES:
        return _STATUSES[tool.status]
    return "unknown" if tool.result else "none"


def _output(tool: Tool, result: dict[str, Any] | None) -> str:
    """The words of a result: what a command printed, what a file holds, or all of it as it is."""
    error = _json(tool.error)
    texts = [(error or {}).get("modelVisibleErrorMessage"), (error or {}).get("clientVisibleErrorMessage")]
    texts += [(result or {}).get("output"), (result or {}).get("contents")]
    return next((text for text in texts if isinstance(text, str) and text), as_text(tool.error or tool.result))


def _chunk(chunk: object) -> Hunk | None:
    """A place of a diff; a line number of 0 is left out of such a record."""
    diff = nonempty(inside(chunk, "diffString"))
    old, new = inside(chunk, "oldStart"), inside(chunk, "newStart")
    at = (old if isinstance(old, int) else 1, new if isinstance(new, int) else 1)
    return trimmed(max(at[0], 1), max(at[1], 1), diff.removesuffix("\n").split("\n")) if diff else None


def _counted(logged: object) -> tuple[int | None, int | None] | None:
    """Tokens in and out; None where both are 0: nothing was counted, which is the rule."""
    used = count(inside(logged, "inputTokens")), count(inside(logged, "outputTokens"))
    return used if any(used) else None


def _count(step: Step, logged: object) -> None:
    if (used := _counted(logged)) is not None:
        step.input_tokens, step.output_tokens = _sum(step.input_tokens, used[0]), _sum(step.output_tokens, used[1])


def _sum(before: int | None, more: int | None) -> int | None:
    return more if before is None else before + (more or 0)


def _time(value: object) -> int | None:
    return logged_iso(value) if isinstance(value, str) else logged_ms(value)


def _folder(uris: object) -> str | None:
    first = uris[0] if isinstance(uris, list) and uris else None
    return first.removeprefix("file://") if isinstance(first, str) and first.startswith("file:///") else None


def _json(value: object) -> dict[str, Any] | None:
    """A JSON object, or the one that a string holds; None where it is something else, or empty."""
    if isinstance(value, str) and value[:1] == "{":
        try:
            value = msgspec.json.decode(value)
        except UNREADABLE:
            return None
    return value if isinstance(value, dict) and value else None
