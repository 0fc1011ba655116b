"""Read Cursor sessions: conversations of its IDE, else chats of its CLI, else transcripts.

A session in a database has a transcript, too. The database says more, so it counts.
"""

import re
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
from msgspec import Struct

from agentsignals.changes.hunks import Hunk, between, created, trimmed
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import whole
from agentsignals.formats.builder import record_arguments, tokens_of
from agentsignals.formats.conversation import Block as AnyBlock
from agentsignals.formats.conversation import Conversation, blocks_of
from agentsignals.formats.cursor_agent import PROFILE, parent_of, session_of
from agentsignals.formats.cursor_agent.database import CHAT_BEGINS, COMPACTED, COMPOSER_BEGINS, model_of
from agentsignals.formats.documents import saw_again, texts_of
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.records import as_text, decoded, decoder, inside, lines, saw, string
from agentsignals.model import EPOCH, CallStatus, Session, Step, logged_iso, logged_ms


def read(inputs: list[Input]) -> Reading:
    """Read each session once: the longest conversation of an id, or else a chat or a transcript."""
    composers: dict[str, list[Composer]] = {}
    named: dict[str, list[Input]] = {}
    for source in inputs:
        if bytes(source.data[: len(COMPOSER_BEGINS)]) == COMPOSER_BEGINS:
            composer = Composer(source)
            session_id = string(composer.about.get("composerId")) or source.artifact.artifact_id
            composers.setdefault(session_id, []).append(composer)
        else:
            first = bytes(source.data[: source.data.find(b"\n") + 1]) if _is_chat(source) else b""
            session_id = (
                string(inside(decoded(first, Any), "cursorChat", "agentId")) or source.session_hint
                or session_of(source.artifact.path) or source.artifact.artifact_id
            )  # fmt: skip
            named.setdefault(session_id, []).append(source)
    sessions: list[Session] = []
    for session_id in sorted(composers.keys() | named.keys()):
        session = _longest(session_id, composers[session_id]) if session_id in composers else None
        if session is not None:
            sessions.append(session)
            for source in named.get(session_id, []):
                _repeats(source, "the conversation in the IDE's database")
        elif session_id in named:
            session = _read_transcript(session_id, named[session_id])
            sessions += [session] if session is not None else []
    return Reading(sessions)


# -- conversations of the IDE: each bubble is a record

PERSON, AGENT = 1, 2
"""Values of a bubble's `type`."""
COMPACTION = 22
"""The `capabilityType` of the mark of a compaction."""
_STATUSES: dict[str, CallStatus] = {"completed": "ok", "error": "error", "cancelled": "cancelled"}
_RUNNING = ("loading", "pending")
_PATHS = ("relativeWorkspacePath", "targetFile", "effectiveUri", "path", "targetDirectory")


class Tool(Struct, gc=False, kw_only=True):
    """A call and its result. `params`, `rawArgs` and `result` are JSON in a string."""

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


class Bubble(Struct, gc=False, kw_only=True):
    """A bubble, or the facts of the conversation."""

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


class Composer:
    """The facts of a conversation, and its bubbles with their lines. Each bubble is counted."""

    def __init__(self, source: Input) -> None:
        self.source = source
        self.about: dict[str, Any] = {}
        self.bubbles: list[tuple[int, Bubble]] = []
        for line, bubble in lines(source.data, source.artifact, decoder(Bubble).decode):
            saw(source.artifact, bubble.kind)
            if bubble.cursorComposer is None:
                self.bubbles.append((line, bubble))
            else:
                self.about = bubble.cursorComposer


def _longest(session_id: str, copies: list[Composer]) -> Session | None:
    """Read the copy with most bubbles. None for a draft that was never sent, or an emptied conversation."""
    kept = max(copies, key=lambda copy: (len(copy.bubbles), len(copy.source.data), copy.source.artifact.sha256))
    artifact = kept.source.artifact
    for other in copies:
        if other is not kept:
            other.source.artifact.note = f"an earlier copy of {artifact.path}, which counts"
            saw_again(other.source.artifact)
    if unlisted := kept.about.get("unlisted"):
        artifact.note = f"{unlisted} bubbles that the conversation does not list are not read"
    if not kept.bubbles:
        artifact.note = artifact.note or "a draft: nothing was sent"
        return None
    reader = ComposerReader(kept.source.session(session_id, "cursor-agent", PROFILE.agent), kept.about)
    for line, bubble in kept.bubbles:
        reader.builder.line = line
        reader.take(bubble)
    if kept.about.get("status") == "aborted":
        reader.event("interrupt", "aborted")
    return reader.builder.finish()


class ComposerReader(Conversation):
    profile = PROFILE
    step: Step | None = None
    model_call: str | None = None
    called = False
    """The last bubble of the agent was a call."""

    def __init__(self, session: Session, about: dict[str, Any]) -> None:
        super().__init__(session)
        session.title = string(about.get("name"))
        session.parent_session_id = string(inside(about, "subagentInfo", "parentComposerId"))
        session.started_at = logged_ms(about.get("createdAt"))
        self.is_subagent = session.parent_session_id is not None
        workspace = inside(about, "workspaceIdentifier", "uri")
        self.builder.where(string(inside(workspace, "fsPath")) or string(inside(workspace, "path")))
        self.model = model_of(inside(about, "modelConfig", "modelName"))

    def take(self, bubble: Bubble) -> None:
        created_at = bubble.createdAt
        at = logged_iso(created_at) if isinstance(created_at, str) else logged_ms(created_at)
        if bubble.missing:
            self.event("meta", "a bubble that is listed, and no longer stored", at)
        elif bubble.type == PERSON:
            self.person(bubble, at)
        elif bubble.type == AGENT:
            self.agent(bubble, at)
        else:
            self.event("unknown", f"bubble of type {str(bubble.type)[:80]}", at)

    def person(self, bubble: Bubble, at: int | None) -> None:
        self.step = None
        folder = bubble.workspaceUris[0] if isinstance(bubble.workspaceUris, list) and bubble.workspaceUris else None
        if isinstance(folder, str) and folder.startswith("file:///"):
            self.builder.where(folder.removeprefix("file://"))
        if named := string(inside(bubble.modelInfo, "modelName")):
            self.model = model_of(named)
        text = (bubble.text or "").strip()
        if bubble.isSimulatedMsg is True:
            self.event("notification", text, at)
        else:
            self.builder.prompt(
                text, at, by_person=not self.is_subagent, attached=bool(bubble.images), model=self.model
            )

    def agent(self, bubble: Bubble, at: int | None) -> None:
        tool = bubble.toolFormerData
        thinking = bubble.thinking if isinstance(bubble.thinking, str) else string(inside(bubble.thinking, "text"))
        words = "" if tool is not None and _json(bubble.text) else bubble.text or ""  # an edit's diff once more
        message = string(inside(bubble.errorDetails, "message"))
        tokens = tokens_of(bubble.tokenCount if isinstance(bubble.tokenCount, dict) else None, "apart")
        counted = any((tokens.input, tokens.output))  # 0 means that nothing was counted, which is the rule
        if bubble.capabilityType == COMPACTION:
            self.event("compaction", "{}", at)
        if not (thinking or words.strip() or tool is not None or message or counted):
            return  # an empty place
        # A model call thinks, speaks, and asks for tools: what is said after these is the next call's. Two calls of
        # tools belong to one model call if they name it.
        step, model_call = self.step, tool.modelCallId if tool is not None else None
        if step is None or (self.called and (model_call is None or model_call != self.model_call)):
            step = self.builder.step(None, self.model, at)
        self.step, self.model_call, self.called = step, model_call, tool is not None
        if counted:
            step.input_tokens, step.output_tokens = (
                more if before is None else before + (more or 0)
                for before, more in ((step.input_tokens, tokens.input), (step.output_tokens, tokens.output))
            )
        if thinking:
            self.event("thinking", thinking, at, step)
        if words.strip():
            self.event("text", words, at, step)
        if tool is not None:
            self.tool_call(tool, bubble, at, step)
        if message:
            self.event("api_error", message, at, step)

    def tool_call(self, tool: Tool, bubble: Bubble, at: int | None, step: Step) -> None:
        name = tool.name or (f"tool_{tool.tool}" if isinstance(tool.tool, int) else "")
        kind = PROFILE.tool(name)
        params, result = _json(tool.params) or {}, _json(tool.result) or {}
        arguments = _json(tool.rawArgs) or params
        path = next((text for key in _PATHS if (text := string(params.get(key)))), None)
        call = self.builder.call(
            tool.toolCallId or bubble.bubbleId or f"#{len(self.session.tool_calls)}",
            name,
            msgspec.json.encode(arguments),
            kind,
            at,
            step,
            path=None if any(key in arguments for key in (kind.path if kind else ())) else path,
            folder=string(params.get("cwd")),
        )
        status = _status(tool, result)
        if status != "none":
            error = _json(tool.error) or {}
            texts = (
                error.get("modelVisibleErrorMessage"), error.get("clientVisibleErrorMessage"),
                result.get("output"), result.get("contents"),
            )  # fmt: skip
            text = next((text for text in texts if isinstance(text, str) and text), as_text(tool.error or tool.result))
            code = whole(result.get("exitCodeV2", result.get("exitCode")))
            self.builder.result(call.call_id, text, status, None, call.thread, code)
            if tool.status not in _STATUSES and tool.status is not None:
                self.event("unknown", f"status {tool.status[:80]}", at, step)
        if call.class_ != "edit" or call.status not in ("ok", "unknown"):
            return
        chunks = inside(result, "diff", "chunks")
        hunks: list[Hunk] = []
        for chunk in chunks if isinstance(chunks, list) else ():  # such a record leaves out a line number of 0
            old, new = (n if isinstance(n := inside(chunk, name), int) else 1 for name in ("oldStart", "newStart"))
            if diff := string(inside(chunk, "diffString")):
                hunk = trimmed(max(old, 1), max(new, 1), diff.removesuffix("\n").split("\n"))
                hunks += [hunk] if hunk is not None else []
        if call.name == "delete_file":
            self.builder.edit(call, None, "delete", [Hunk(added=0, whole_file=True)])
        elif bubble.before is not None and bubble.after is not None:
            is_new = bubble.before == ""
            changed = [created(bubble.after)] if is_new else between(bubble.before, bubble.after)
            self.builder.edit(call, None, "create" if is_new else "modify", changed)
        elif hunks:
            self.builder.edit(call, None, "create" if result.get("fileWasCreated") is True else "modify", hunks)
        else:
            record_arguments(self.builder, call)


def _status(tool: Tool, result: dict[str, Any]) -> CallStatus:
    """Return the status of a call. One that failed is `completed`, and so is one that the person refused."""
    if tool.status in _RUNNING:
        return "none"
    further = inside(tool.additionalData, "status")
    if result.get("rejected") is True or tool.userDecision == "rejected" or further == "rejected":
        return "rejected"
    if tool.status != "cancelled" and (further == "error" or tool.error):
        return "error"
    if tool.status in _STATUSES:
        return _STATUSES[tool.status]
    return "unknown" if tool.result else "none"


def _json(value: object) -> dict[str, Any] | None:
    """Return a JSON object, or the one that a string holds. None if it is empty or something else."""
    if isinstance(value, str) and value[:1] == "{":
        value = decoded(value, dict[str, Any])
    return value if isinstance(value, dict) and value else None


# -- chats of the CLI, and transcripts

_QUERY, _END = "<user_query>", "</user_query>"
_CONTEXT = re.compile(r"\s*<([a-z_]+)>.*?</\1>\s*", re.DOTALL)
_TIME = re.compile(
    r"<timestamp>\w+, (\w{3} \d{1,2}, \d{4}, \d{1,2}:\d\d [AP]M) \(UTC([+-]\d{1,2})?(?::(\d\d))?\)</timestamp>"
)
_OF_A_PERSON = frozenset(("text", "image", "tool_result"))


class Block(AnyBlock, gc=False, kw_only=True):
    status: CallStatus = "ok"


class Message(Struct, gc=False):
    content: str | list[Block] | None = None


class Line(Struct, gc=False, kw_only=True):
    """A message, or `{type: turn_ended, status, error}` of newer versions. In a chat also the facts of the chat."""

    role: str | None = None
    message: Message | None = None
    type: str | None = None
    status: str | None = None
    error: str | None = None
    cursorChat: dict[str, Any] | None = None
    model: str | None = None
    is_summary: bool = False

    @property
    def kind(self) -> str:
        return ("conversation" if self.cursorChat is not None else self.role or self.type or "untyped")[:80]

    @property
    def blocks(self) -> Sequence[Block]:
        return blocks_of(self.message.content if self.message is not None else None, Block)


def _is_chat(source: Input) -> bool:
    return bytes(source.data[: len(CHAT_BEGINS)]) == CHAT_BEGINS


def _read_transcript(session_id: str, copies: list[Input]) -> Session | None:
    """Read a session from the best of its copies; the others count as repeated."""

    def worth(source: Input) -> tuple[int, int, str]:
        """A chat counts before a transcript, unless a compaction removed its earlier messages."""
        rank = 1 if not _is_chat(source) else 2 if source.data.find(COMPACTED) < 0 else 0
        return rank, len(source.data), source.artifact.sha256

    kept = max(copies, key=worth)
    for source in copies:
        if source is not kept:
            _repeats(source, kept.artifact.path)
    session = kept.session(session_id, "cursor-agent", PROFILE.agent)
    session.parent_session_id = parent_of(kept.artifact.path)
    reader = TranscriptReader(session)
    if not _is_chat(kept):
        session.conventions = ["thinking_not_logged"]
    for reader.builder.line, line in lines(kept.data, kept.artifact, decoder(Line).decode):
        saw(kept.artifact, line.kind)
        reader.take(line)
    if reader.is_chat and not session.events:
        kept.artifact.note = "a draft: nothing was sent"
        return None
    # A logged call has run; if no results are logged at all, every edit was made.
    done = "ok" if any(call.status != "none" for call in session.tool_calls) else "none"
    touched: set[str] = set()
    for call in session.tool_calls:
        if call.class_ == "edit" and call.status == done:
            if call.name == "Delete":
                reader.builder.edit(call, None, "delete", [Hunk(added=0, whole_file=True)])
            else:
                record_arguments(reader.builder, call, existed=call.path in touched)
        if call.path and call.class_ in ("edit", "read"):
            touched.add(call.path)
    return reader.builder.finish()


def _repeats(source: Input, kept: str) -> None:
    source.artifact.note = f"an earlier copy of {kept}, which counts"
    for _, line in lines(source.data, source.artifact, decoder(Line).decode):
        saw(source.artifact, line.kind)
        saw(source.artifact, "repeated")


class TranscriptReader(Conversation):
    """Reads one transcript or chat. A result without a call id answers the oldest open call."""

    profile = PROFILE
    is_chat = False
    model: str | None = None

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.open: deque[str] = deque()

    def take(self, line: Line) -> None:
        if line.cursorChat is not None:
            session, self.is_chat, about = self.session, True, line.cursorChat
            session.title = string(about.get("name"))
            session.parent_session_id = string(inside(about, "subagentInfo", "parentAgentId"))
            session.started_at = logged_ms(about.get("createdAt"))
            self.model = model_of(about.get("lastUsedModel"))
        elif line.is_summary:
            self.event("compaction", texts_of(line.blocks))
        elif line.role == "user":
            self.user(line.blocks)
        elif line.role == "assistant":
            self.answer(line.blocks, line.model or self.model)
        elif line.type == "turn_ended" and line.status in ("aborted", "error"):
            self.event("interrupt" if line.status == "aborted" else "api_error", line.error or line.status)
        elif self.is_chat and line.role in ("system", "tool"):  # the system's prompt, and results
            for block in line.blocks:
                if block.type == "tool_result" and line.role == "tool":
                    self.tool_result(block)
                elif block.type == "text" and line.role == "system":
                    self.event("meta", block.text or "")
                else:
                    self.event("unknown", f"{line.role}: {block.type}"[:80])
        elif line.type != "turn_ended":
            self.event("unknown", line.kind)

    def answer(self, blocks: Sequence[Block], model: str | None) -> None:
        step = self.builder.step(None, model_of(model))
        for n, block in enumerate(blocks):
            if block.type == "text":
                self.event("text", block.text or "", None, step)
            elif block.type == "thinking":
                self.event("thinking", block.thinking or block.text or "", None, step)
            elif block.type == "tool_use":
                call_id = block.id or f"{self.builder.line}.{n}"
                self.open.append(call_id)
                self.call(call_id, block.name or "", bytes(block.input), None, step)
            elif block.type == "tool_result":
                self.tool_result(block)
            else:
                self.event("unknown", block.type[:80], None, step)

    def tool_result(self, block: Block) -> None:
        call_id = block.tool_use_id or (self.open[0] if self.open else "")
        if call_id in self.open:
            self.open.remove(call_id)
        text = texts_of(block.content) or block.text or ""
        tool = PROFILE.tool(block.name or "")
        code = exit_code(text) if self.is_chat and tool is not None and tool.class_ == "shell" else None
        self.builder.result(call_id, text, "error" if block.is_error else block.status, exit_code=code)

    def user(self, blocks: Sequence[Block]) -> None:
        """Take a message. The person's words are in `<user_query>`; older versions put context before them."""
        self.builder.unread((block.type for block in blocks), _OF_A_PERSON, None)
        for block in blocks:
            if block.type == "tool_result":
                self.tool_result(block)
        text = texts_of([block for block in blocks if block.type == "text"]).strip()
        if not text:
            self.builder.prompt("", attached=any(block.type == "image" for block in blocks))
            return
        at = _time(text)
        start, stop = text.find(_QUERY), text.rfind(_END)
        if start >= 0:
            words = text[start + len(_QUERY) : stop if stop > start else len(text)].strip()
            context = (text[:start] + (text[stop + len(_END) :] if stop > start else "")).strip()
        else:
            end = 0
            while (block_of_context := _CONTEXT.match(text, end)) is not None:
                end = block_of_context.end()
            context, words = text[:end].strip(), text[end:].strip()
        if context:
            self.event("meta", context, at)
        if words:
            self.builder.prompt(words, at, by_person=self.session.parent_session_id is None)


def _time(text: str) -> int | None:
    """Read the time that newer versions put before the words, to the minute. None if there is none."""
    if (match := _TIME.search(text)) is None:
        return None
    hours, minutes = int(match[2] or 0), int(match[3] or 0)
    zone = timezone(timedelta(hours=hours, minutes=minutes if hours >= 0 else -minutes)) if abs(hours) < 24 else UTC
    try:
        moment = datetime.strptime(match[1], "%b %d, %Y, %I:%M %p").replace(tzinfo=zone)
    except ValueError:
        return None
    return (moment - EPOCH) // timedelta(microseconds=1)
