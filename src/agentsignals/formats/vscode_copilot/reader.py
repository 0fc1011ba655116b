"""Read chats of Copilot Chat in VS Code, each from its fullest copy, with what traces and transcripts add.

What the model asked for and was answered is in the rounds of a request's result. The panel shows the same calls under
other ids: it says whether a person allowed a call, and how a command ended. For a request that was stopped before it
had a result, the panel is all there is.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Raw, Struct, field, structs

from agentsignals.changes.hunks import EditText, Hunk, edit_texts, replaced
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import count, number, whole
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.copilot_cli.reader import sessions
from agentsignals.formats.documents import Snapshot, each, largest, tally
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.edits import first_file, record_arguments
from agentsignals.formats.otel_genai.reader import PARTS, as_int, spoken
from agentsignals.formats.otel_genai.reader import Message as SpokenMessage
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.records import decoded, decoder, document, saw
from agentsignals.formats.usage import charge, tokens_of
from agentsignals.formats.vscode_copilot import PARENT, PROFILE, SHOWN_AS, WRITTEN, id_of_place
from agentsignals.formats.vscode_copilot.records import (
    Asked,
    Chat,
    Item,
    Request,
    Round,
    TextEdit,
    encoded,
    particulars,
    path_of,
    replay,
    requests_of,
    result_text,
    words,
)
from agentsignals.model import ABANDONED, MAIN, CallStatus, Session, Step, ToolCall, logged_ms

# -- changes of files: the arguments say what, the panel says where in the file


class _Replacement(Struct, gc=False):
    filePath: str = ""
    oldString: str = ""
    newString: str = ""


class _Arguments(Struct, gc=False):
    input: str | None = None
    replacements: list[_Replacement] = []


def first_path(arguments: str | bytes) -> str | None:
    """Return the file that a patch or a list of replacements names first. Other arguments name theirs."""
    edit = decoded(arguments, _Arguments) or _Arguments()
    if edit.replacements:
        return edit.replacements[0].filePath or None
    return first_file(edit.input) if edit.input else None


class Changes:
    """The file changes of one request that the panel shows, in order."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._left: list[tuple[str, list[TextEdit]]] = []
        for item in items:
            if item.uri is not None and (path := item.uri.file):
                batches = decoded(item.edits, list[list[TextEdit]]) or []
                self._left.append((path, [edit for batch in batches for edit in batch]))

    def record(self, builder: SessionBuilder, call: ToolCall) -> None:
        """Record the change of a call that succeeded."""
        replacements = (decoded(call.arguments, _Arguments) or _Arguments()).replacements
        for replacement in replacements:
            text = EditText(kind="replace", old=replacement.oldString, new=replacement.newString)
            builder.edit(call, replacement.filePath, "modify", [self._hunk(builder, replacement.filePath, text)])
        if replacements:
            return
        texts = edit_texts(call.arguments, call.argument_roles)
        if len(texts) == 1 and texts[0].kind == "replace" and call.path:
            builder.edit(call, None, "modify", [self._hunk(builder, call.path, texts[0])])
        else:
            record_arguments(builder, call)

    def _hunk(self, builder: SessionBuilder, path: str, text: EditText) -> Hunk:
        """Return the change, with its lines if the panel shows the very text at one place of the file."""
        sizes = replaced(text.old, text.new)
        wanted = builder.relative(path)
        for n, (at, edits) in enumerate(self._left):
            if builder.relative(at) == wanted and len(edits) == 1 and edits[0].text == text.new:
                del self._left[n]
                lines = zip(text.old.split("\n"), text.new.split("\n"), strict=False)
                same = next((n for n, (old, new) in enumerate(lines) if old != new), None)
                if same is None:
                    same = min(text.old.count("\n"), text.new.count("\n")) + 1
                start = edits[0].range.startLineNumber + same
                end = start + max(sizes.added or 0, 1) - 1
                return structs.replace(sizes, start_line=start, end_line=end, old_start=start)
        return sizes


# -- calls: begun as the model asked for them

_DENIED, _SKIPPED = 0, 5
"""Answers of the person to a call that asked for permission: no, or on without it (`ToolConfirmKind`)."""
_FAILED = "ERROR while calling tool:"
_REFUSED = "The user chose to skip the tool call"
_SUFFIX = "__vscode-"
"""Begins the suffix that the extension adds to the provider's ids."""


def id_of(call_id: str) -> str:
    """Return the provider's id of a call."""
    return call_id.partition(_SUFFIX)[0]


def begin_call(builder: SessionBuilder, asked: Asked, at: int | None, step: Step | None, thread: str) -> None:
    """Add a call that the model asked for."""
    arguments = asked.arguments if isinstance(asked.arguments, str) else msgspec.json.encode(asked.arguments).decode()
    tool = PROFILE.tool(asked.name)
    path = first_path(arguments) if tool is not None and tool.class_ == "edit" else None
    builder.call(asked.id, asked.name, arguments or "{}", tool, at, step, thread, path=path)


def printed_code(name: str, text: str) -> int | None:
    """Return the exit code at the end of a command's result. None for other tools."""
    tool = PROFILE.tool(name)
    return exit_code(text) if tool is not None and tool.class_ in ("shell", "test") else None


def take_shown(shown: list[Item], asked: Asked) -> Item | None:
    """Take the item that the panel shows of a call: by its id, else the first of that tool."""
    wanted = id_of(asked.id)
    mine = [item for item in shown if not item.subAgentInvocationId]
    by_id = (item for item in mine if item.toolCallId and id_of(item.toolCallId) == wanted)
    by_tool = (item for item in mine if SHOWN_AS.get(item.toolId or "", item.toolId) == asked.name)
    item = next(by_id, None) or next(by_tool, None)
    if item is not None:
        shown[:] = [other for other in shown if other is not item]
    return item


def status_of(item: Item | None, text: str, was_answered: bool) -> CallStatus | None:
    """Return the status of a call. None if nothing says that it ended."""
    confirmed = item.isConfirmed if item is not None else None
    kind = confirmed.get("type") if isinstance(confirmed, dict) else _DENIED if confirmed is False else None
    if kind in (_DENIED, _SKIPPED) or text.startswith(_REFUSED):
        return "rejected"
    if text.startswith(_FAILED):
        return "error"
    return "ok" if was_answered else None


# -- traces: each call of the model with its tokens, each tool with its times

_NEAR_US = 60_000_000
"""A request and its agent's span begin within a minute."""
_ERROR = 2
"""The `status_code` of a failed span. 0 says nothing, as in model calls that went well."""
_AGENT, _MODEL, _TOOL = "invoke_agent", "chat", "execute_tool"
_MODELS_TOO = frozenset((_MODEL, "text_completion", "generate_content"))


class Span(Struct, gc=False, kw_only=True):
    """A span of the traces, with the attributes that are read."""

    span_id: str
    parent_span_id: str | None = None
    operation_name: str | None = None
    agent_name: str | None = None
    start_time_ms: object = None
    end_time_ms: object = None
    status_code: object = None
    status_message: str | None = None
    request_model: str | None = None
    response_model: str | None = None
    input_tokens: object = None
    output_tokens: object = None
    cached_tokens: object = None
    reasoning_tokens: object = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    facts: dict[str, str | None] = {}
    prompt: object = None

    @property
    def kind(self) -> str:
        """The kind under which it is counted."""
        kinds = {_AGENT: "agent", _TOOL: "tool", "execute_hook": "hook"}
        return "model" if self.operation_name in _MODELS_TOO else kinds.get(self.operation_name or "", "other")

    @property
    def began(self) -> int | None:
        return logged_ms(self.start_time_ms)

    @property
    def ended(self) -> int | None:
        return logged_ms(self.end_time_ms)

    @property
    def text(self) -> str:
        """The prompt of an agent's span."""
        prompt = self.prompt if isinstance(self.prompt, str) else self.facts.get("copilot_chat.user_request")
        return (prompt or "").strip()

    @property
    def failure(self) -> str | None:
        """The error of a failed span."""
        failed = self.status_code == _ERROR
        return (self.status_message or self.facts.get("error.type") or "failed") if failed else None

    @property
    def result(self) -> str:
        """The result of a tool's span: a text, or a tree of the extension's prompts as JSON."""
        text = self.facts.get("gen_ai.tool.call.result") or ""
        if not text.startswith('{"node"'):
            return text
        tree = decoded(text, dict[str, Any])
        return result_text([{"value": tree}]) if tree is not None else text

    @property
    def replies(self) -> list[SpokenMessage]:
        return spoken(dict(self.facts), []).replies

    @property
    def repository(self) -> tuple[str | None, str | None]:
        """The address of an agent's repository, and the branch."""
        names = ("copilot_chat.repo.remote_url", "copilot_chat.repo.head_branch_name")
        return self.facts.get(names[0]), self.facts.get(names[1])

    @property
    def chat_above(self) -> str | None:
        return self.facts.get(PARENT)


class Document(Struct):
    chatSessionId: str
    spans: list[Raw] = field(default_factory=list)


class Turn(Struct):
    """An agent's span, and the model calls in it that are not a subagent's."""

    agent: Span
    calls: list[Span]


class Traces:
    """The spans of one chat, from one database or several copies of it."""

    def __init__(self, sources: Iterable[tuple[Input, Document]]) -> None:
        self.places: dict[str, tuple[str, int]] = {}
        """The file and record of each span."""
        spans: dict[str, Span] = {}
        for source, traced in sources:
            found = each(traced.spans, decoder(Span).decode, source.artifact)
            tally(source.artifact, "span", [None if span is None else span.kind for span in found])
            for n, span in enumerate(found, 1):
                if span is not None and span.span_id not in spans:
                    spans[span.span_id] = span
                    self.places[span.span_id] = source.artifact.artifact_id, n
        self.spans = sorted(spans.values(), key=lambda span: (span.began or 0, -(span.ended or 0)))
        self._spans = spans
        self.tools = {id_of(s.tool_call_id): s for s in reversed(self.spans) if s.kind == "tool" and s.tool_call_id}
        self.turns = [
            Turn(agent, [s for s in self.spans if s.kind == "model" and self._agent(s) is agent])
            for agent in self.spans
            if agent.kind == "agent" and self._agent(agent) is None
        ]

    def take(self, text: str, at: int | None) -> Turn | None:
        """Take the turn of a request from the list."""
        for turn in self.turns:
            began = turn.agent.began
            if at is None or began is None or abs(began - at) > _NEAR_US or turn.agent.text not in ("", text):
                continue
            self.turns = [other for other in self.turns if other is not turn]
            return turn
        return None

    def thread(self, span: Span) -> str:
        """Return the thread of a span: main, a subagent's, or the purpose of a call outside all of them (`title`)."""
        agent = self._agent(span)
        if span.kind == "agent":
            return MAIN if agent is None else span.span_id
        if agent is None:
            return span.agent_name or "aside"
        return MAIN if self._agent(agent) is None else agent.span_id

    def outermost(self, span: Span) -> str | None:
        """Return the id of the outermost agent's span around a span, or its own."""
        agent = span if span.kind == "agent" else self._agent(span)
        seen: set[str] = set()
        while agent is not None and agent.span_id not in seen and (above := self._agent(agent)) is not None:
            seen.add(agent.span_id)
            agent = above
        return agent.span_id if agent is not None else None

    def _agent(self, span: Span) -> Span | None:
        """Return the nearest agent's span around a span."""
        seen = {span.span_id}
        at = self._spans.get(span.parent_span_id or "")
        while at is not None and at.span_id not in seen:
            if at.kind == "agent":
                return at
            seen.add(at.span_id)
            at = self._spans.get(at.parent_span_id or "")
        return None


def charge_span(step: Step, span: Span) -> None:
    """Set the tokens and facts of a model call. Cached tokens are part of the input's, unless they are more."""
    logged = span.facts.get(WRITTEN)
    written = as_int(logged)
    figures = {
        "input_tokens": span.input_tokens, "output_tokens": span.output_tokens, "cached_tokens": span.cached_tokens,
        "cache_write_tokens": written if written is not None else logged, "reasoning_tokens": span.reasoning_tokens,
    }  # fmt: skip
    charge(step, tokens_of(figures, "within_if_fewer"))
    step.model = span.response_model or span.request_model or step.model
    step.timestamp = span.began
    reasons = decoded(span.facts.get("gen_ai.response.finish_reasons"), list[str])
    step.stop_reason = reasons[0] if reasons else None


_REPOSITORY = re.compile(r"[:/]([^/:\s]+/[^/:\s]+?)(?:\.git)?/*\Z")


def read_traces(session: Session, traces: Traces, folder: str | None) -> Session:
    """Read a chat of which there are only traces. They name no folder."""
    builder = SessionBuilder(session, PROFILE)
    builder.where(folder)
    reader = Follower(builder, traces)
    for span in traces.spans:
        reader.take(span)
    return builder.finish()


def describe(builder: SessionBuilder, remote: object, branch: object) -> None:
    """Note the repository, by its address, and the branch."""
    named = _REPOSITORY.search(remote) if isinstance(remote, str) else None
    if named is not None and builder.session.repo is None:
        builder.session.repo = named[1]
    builder.where(None, branch if isinstance(branch, str) else None)


class Follower:
    """Adds spans to a session in order."""

    def __init__(self, builder: SessionBuilder, traces: Traces) -> None:
        self.builder = builder
        self._traces = traces

    def take(self, span: Span) -> None:
        self.builder.artifact_id, self.builder.line = self._traces.places[span.span_id]
        thread = self._traces.thread(span)
        if span.kind == "agent":
            self._agent(span, thread)
        elif span.kind == "model":
            self._model(span, thread)
        elif span.kind == "tool" and span.tool_call_id:  # without an id the program called it
            self._tool(span, span.tool_call_id, thread)

    def _agent(self, span: Span, thread: str) -> None:
        describe(self.builder, *span.repository)
        session = self.builder.session
        session.parent_session_id = session.parent_session_id or span.chat_above
        if not span.text:
            return
        if thread == MAIN and session.parent_session_id is None:
            self.builder.turn("prompt", span.text, span.began, span.request_model)
        else:
            self.builder.event("meta", span.text, span.began, None, thread)

    def _model(self, span: Span, thread: str) -> None:
        builder = self.builder
        if span.failure is not None:
            builder.event("api_error", span.failure, span.ended, None, thread)
        step = builder.step(span.span_id, None, span.began, thread)
        charge_span(step, span)
        for message in span.replies:
            for thought in message.thinking:
                builder.event("thinking", thought, span.ended, step, thread)
            if message.text:
                builder.event("text", message.text, span.ended, step, thread)
            for call in message.calls:
                begin_call(builder, Asked(call.id, call.name, call.arguments), span.ended, step, thread)
            builder.unread(message.kinds, PARTS, span.ended, thread)

    def _tool(self, span: Span, call_id: str, thread: str) -> None:
        """Add a tool's span. Some tools run another under the same id: the first is the one that the model called."""
        builder, name = self.builder, span.tool_name or ""
        if not builder.calls_of(call_id):
            arguments = span.facts.get("gen_ai.tool.call.arguments")
            begin_call(builder, Asked(call_id, name, arguments), span.began, None, thread)
        elif builder.answered(call_id):
            return
        text = span.result if span.failure is None else "\n".join(t for t in (span.result, span.failure) if t)
        status = status_of(None, text, was_answered=True) or "ok"
        if status == "ok" and span.failure is not None:
            status = "error"
        call = builder.result(call_id, text, status, span.ended, thread, printed_code(name, text))
        if call is None:
            return
        call.started_at = span.began
        if call.status == "ok" and call.class_ == "edit":
            Changes(()).record(builder, call)


# -- chats: the model's calls of each request, and what the panel shows of their tools

INVOCATION, _EDITED = "toolInvocationSerialized", "textEditGroup"
_OF_THE_EDITOR = ("vscode_editFile_internal",)
"""Tools that the program runs for a tool of the model."""
_WORDS = "words"
_KINDS = frozenset(
    (_WORDS, INVOCATION, _EDITED, "thinking", "inlineReference", "agentTaskSerialized", "clearToPreviousToolInvocation",
     "codeblockUri", "codeCitation", "command", "confirmation", "disabledClaudeHooks", "elicitationSerialized",
     "extensions", "externalEdit", "hook", "markdownContent", "markdownVuln", "mcpServersStarting", "multiDiffData",
     "notebookEditGroup", "planReview", "prepareToolInvocation", "progressMessage", "progressTask",
     "progressTaskSerialized", "pullRequest", "questionCarousel", "reference", "treeData", "undoStop", "usage",
     "warning", "workspaceEdit")
)  # fmt: skip
"""Kinds of parts of an answer in the editor's sources."""


class Conversation(Struct):
    """The decoded document of a file. A request that can't be read is None."""

    chat: Chat
    requests: list[Request | None]
    numbers: list[int] = field(default_factory=list)
    """Lines of the requests, in a log."""

    @property
    def session_id(self) -> str | None:
        return self.chat.sessionId if isinstance(self.chat.sessionId, str) and self.chat.sessionId else None

    @property
    def other_ids(self) -> list[str]:
        """Ids in the extension's own files. Later versions use the editor's id."""
        ids = (r.metadata.sessionId for r in self.requests if r is not None)
        return list(dict.fromkeys(i for i in ids if i))


def conversation(chat: Chat, source: Input, numbers: list[int]) -> Conversation:
    """Decode the requests of a document and count them."""
    requests = each(chat.requests, decoder(Request).decode, source.artifact)
    tally(source.artifact, "request", [None if r is None else "answered" if r.result else "open" for r in requests])
    return Conversation(chat, requests, numbers)


class Reader:
    """Reads one chat."""

    def __init__(self, source: Input, session_id: str) -> None:
        self._source = source
        self.builder = SessionBuilder(source.session(session_id, "vscode-copilot", PROFILE.agent), PROFILE)
        self.times: dict[str, tuple[int | None, int | None]] = {}
        """Start and end of calls by the provider's id, from a transcript. Those of traces count before them."""
        self._thread = MAIN
        self._lacks_usage = False

    def read(self, held: Conversation, folder: str | None, traces: Traces) -> Session:
        """Read the chat, with what the traces say of its calls."""
        session, self._traces = self.builder.session, traces
        self.times |= {call_id: (span.began, span.ended) for call_id, span in traces.tools.items()}
        session.title = words(held.chat.customTitle) or None
        session.started_at = logged_ms(held.chat.creationDate)
        repository = held.chat.repoData if isinstance(held.chat.repoData, dict) else {}
        describe(self.builder, repository.get("remoteUrl"), repository.get("localBranch"))
        items = [self._items(request) if request is not None else [] for request in held.requests]
        bases = (i.baseUri.file for listed in items for i in listed if i.baseUri is not None)
        self.builder.where(folder or next((base for base in bases if base), None))
        for n, (request, listed) in enumerate(zip(held.requests, items, strict=True)):
            if request is not None:
                self.builder.line = held.numbers[n] if n < len(held.numbers) else n + 1
                self._request(request, listed)
        if self._lacks_usage:
            session.conventions = ["usage_logged_midway"]
        self._beyond(held.requests)
        return self.builder.finish()

    def _beyond(self, requests: list[Request | None]) -> None:
        """Add what only the traces hold: requests sent since the chat was saved, and model calls of withdrawn requests,
        of subagents, of titles."""
        traces, builder = self._traces, self.builder
        saved = max((logged_ms(request.timestamp) or 0 for request in requests if request is not None), default=0)
        began = {turn.agent.span_id: turn.agent.began or 0 for turn in traces.turns}
        follower = Follower(builder, traces)
        for span in traces.spans:
            outermost = traces.outermost(span)
            if began.get(outermost or "", 0) > saved:
                follower.take(span)
                continue
            builder.artifact_id, builder.line = traces.places[span.span_id]
            thread = ABANDONED if outermost in began else traces.thread(span)
            with builder.aside():
                if span.kind == "agent" and thread == ABANDONED:
                    builder.event("meta", span.text, span.began, None, thread)
                elif span.kind == "agent":
                    describe(builder, *span.repository)
                elif span.kind == "model" and thread != MAIN:
                    charge_span(builder.step(span.span_id, None, span.began, thread), span)

    def _items(self, request: Request) -> list[Item]:
        items = each(request.response or [], decoder(Item).decode, self._source.artifact)
        tally(self._source.artifact, "response", [None for item in items if item is None])
        return [item for item in items if item is not None]

    def _request(self, request: Request, items: list[Item]) -> None:
        builder, at = self.builder, logged_ms(request.timestamp)
        session = builder.session
        if request.agent is not None and request.agent.extensionVersion:
            session.agent_version = request.agent.extensionVersion
        turn = builder.turn_index
        is_left = bool(request.shouldBeRemovedOnSend) or request.isHidden is True
        self._thread = ABANDONED if is_left else MAIN
        if is_left:
            builder.turn_index = None
        model = request.model
        self._prompt(request, at, model)
        ended = request.ended_at
        turn_traced = self._traces.take(request.text, at)
        traced = turn_traced.calls if turn_traced is not None else []
        if request.rounds:
            self._rounds(request, items, model, traced)
        else:
            step = builder.step(None, model, at, self._thread) if items or traced else None
            if step is not None and traced:
                charge_span(step, traced[0])
            self._shown(items, step, ended or at)
        for span in traced[max(len(request.rounds), 1) :]:  # tried again, or not kept
            charge_span(builder.step(span.span_id, model, span.began, self._thread), span)
        if len(request.rounds) > max(len(traced), 1) and request.output_tokens is not None:
            self._lacks_usage = True  # of several calls the last alone says what it put out
        if request.result is not None and request.result.errorDetails is not None and not request.is_stopped:
            builder.event("api_error", words(request.result.errorDetails.message), ended, None, self._thread)
        if request.is_stopped:
            builder.event("interrupt", "", ended or at, None, self._thread)
        kinds = (item.kind or (_WORDS if item.value is not None else "") for item in items)
        without = len(request.metadata.toolCallRounds or ()) - len(request.rounds)
        builder.unread([*kinds, *[""] * without], _KINDS, ended, self._thread)
        if is_left:
            builder.turn_index = turn

    def _prompt(self, request: Request, at: int | None, model: str | None) -> None:
        text = request.text
        if self._thread != MAIN or request.confirmation:  # a button that was pressed
            self.builder.event("meta", text, at, None, self._thread)
        elif text:
            is_command = request.slashCommand is not None and text.startswith("/")
            self.builder.turn("slash_command" if is_command else "prompt", text, at, model)
        elif request.variableData is not None and request.variableData.variables:
            self.builder.turn("attachment", "", at, model)

    def _rounds(self, request: Request, items: list[Item], model: str | None, traced: list[Span]) -> None:
        rounds = request.rounds
        shown = [item for item in items if item.kind == INVOCATION]
        changes = Changes(item for item in items if item.kind == _EDITED)
        at, ended = logged_ms(request.timestamp), request.ended_at
        for n, exchange in enumerate(rounds):
            is_last = n == len(rounds) - 1
            begun = logged_ms(exchange.timestamp)
            step = self.builder.step(exchange.id, model, at if begun is None and n == 0 else begun, self._thread)
            if is_last:
                step.output_tokens = request.output_tokens
            if n < len(traced):
                charge_span(step, traced[n])
            done = ended if is_last else traced[n].ended if n < len(traced) else begun
            self._round(exchange, step, done, request.summary(exchange))
            asked = [(call, take_shown(shown, call)) for call in exchange.toolCalls or ()]
            for call, _ in asked:
                begin_call(self.builder, call, None, step, self._thread)
            for call, item in asked:
                self._answer(request, call, item, changes)
        for item in shown:
            if item.subAgentInvocationId:
                self._invocation(item, None, item.subAgentInvocationId)

    def _round(self, exchange: Round, step: Step, at: int | None, summary: str) -> None:
        builder, thinking = self.builder, exchange.thinking
        if summary:
            text = msgspec.json.encode({"summary": summary}).decode()
            builder.event("compaction", text, at, None, self._thread)
        if thinking is not None:
            step.reasoning_tokens = step.reasoning_tokens or count(thinking.tokens) or None
            if (thought := words(thinking.text)) or thinking.encrypted:
                builder.event("thinking", thought, at, step, self._thread)
        if text := words(exchange.response):
            builder.event("text", text, at, step, self._thread)

    def _answer(self, request: Request, asked: Asked, item: Item | None, changes: Changes) -> None:
        """Add the result of a call. On the model's side it is only text; the panel says how the call ended."""
        returned = (request.metadata.toolCallResults or {}).get(asked.id)
        details = particulars(item) if item is not None else None
        text = result_text(returned.content) if returned is not None else ""
        status = status_of(item, text, was_answered=returned is not None)
        if status is None:
            return
        state = details.terminalCommandState if details is not None else None
        code = (
            whole(state.exitCode)
            if state is not None and state.exitCode is not None
            else printed_code(asked.name, text)
        )
        ran_ms = number(state.duration) if state is not None else None
        span = self._traces.tools.get(id_of(asked.id))
        began, at = (span.began, span.ended) if span is not None else self.times.get(id_of(asked.id), (None, None))
        call = self.builder.result(asked.id, text, status, at, self._thread, code, ran_s=ran_ms and ran_ms / 1000)
        if call is None:
            return
        if returned is not None and isinstance(returned.content, list):
            are_read = [isinstance(p, str) or (isinstance(p, dict) and "value" in p) for p in returned.content]
            kinds = [_WORDS if is_read else "" for is_read in are_read]
            self.builder.unread(kinds, _KINDS, at, self._thread)
        call.started_at = began
        if call.status == "ok" and call.class_ == "edit":
            changes.record(self.builder, call)

    def _shown(self, items: list[Item], step: Step | None, at: int | None) -> None:
        spoken: list[str] = []
        for item in items:
            if item.kind is None or item.kind == "inlineReference":
                reference = item.inlineReference if isinstance(item.inlineReference, dict) else {}
                place = reference.get("path") or reference.get("fsPath") or reference.get("name")
                name = item.name or (place.rpartition("/")[2] if isinstance(place, str) else "")
                spoken.append(words(item.value) if item.kind is None else name)
                continue
            if item.kind in (INVOCATION, "thinking"):
                self._say(spoken, step, at)
            if item.kind == INVOCATION:
                self._invocation(item, step, item.subAgentInvocationId or self._thread)
            elif item.kind == "thinking" and (thought := words(item.value)):
                self.builder.event("thinking", thought, at, step, self._thread)
        self._say(spoken, step, at)

    def _say(self, spoken: list[str], step: Step | None, at: int | None) -> None:
        text = "".join(spoken)
        if text.strip(" \n`"):
            self.builder.event("text", text, at, step, self._thread)
        spoken.clear()

    def _invocation(self, item: Item, step: Step | None, thread: str) -> None:
        """Add a call without a record on the model's side. Only of commands is it known what was asked."""
        if item.toolId in _OF_THE_EDITOR:
            return
        details = particulars(item)
        name = SHOWN_AS.get(item.toolId or "", item.toolId or "")
        command = msgspec.json.encode({"command": details.ran}) if details.ran else bytes(details.rawInput) or b"{}"
        call_id = item.toolCallId or f"{thread}#{len(self.builder.session.tool_calls)}"
        self.builder.call(call_id, name, command, PROFILE.tool(name), None, step, thread)
        output = details.terminalCommandOutput
        text = (output.text if output is not None else None) or details.result or words(item.pastTenseMessage)
        status = status_of(item, text, was_answered=item.isComplete is True)
        if status is not None:
            code = whole(details.terminalCommandState.exitCode) if details.terminalCommandState is not None else None
            ended: CallStatus = "unknown" if status == "ok" and code is None else status
            self.builder.result(call_id, text, ended, None, thread, code)


# -- files that belong together


class _Workspace(Struct, gc=False):
    folder: str | None = None


_WORKSPACE = re.compile(rb'[\xef\xbb\xbf\s]{0,64}\{\s{0,64}"(?:folder|workspace|configuration)"\s{0,64}:')
_FORM = re.compile(rb'[\xef\xbb\xbf\s]{0,64}\{\s{0,64}"(type|kind|chatSessionId)"\s{0,64}:')
_SECOND_LINE = re.compile(rb'[^\n]*\n[ \t]*\{[ \t]*"(type|kind)"[ \t]*:')
_FORMS = {b"type": "transcript", b"kind": "log", b"chatSessionId": "traces"}
"""Forms of files by the first name in them. If the first line is torn, the second line's counts."""
_TracesByChat = dict[str, list[tuple[Input, Document]]]
"""The traces of each chat."""


def read(inputs: list[Input]) -> Reading:
    """Read files that belong together."""
    forms: dict[str, list[Input]] = {}
    folders: dict[str, str | None] = {}
    for source in inputs:
        if _WORKSPACE.match(source.data):
            workspace = document(source.data, source.artifact, decoder(_Workspace).decode)
            if workspace is not None and not source.lent:
                saw(source.artifact, "workspace")
            folder = workspace.folder if workspace is not None else None  # None if it names several
            folders[posixpath.dirname(source.artifact.path)] = path_of(folder) if folder is not None else None
            continue
        begins = _FORM.match(source.data) or _SECOND_LINE.match(source.data)
        forms.setdefault(_FORMS[begins[1]] if begins else "chat", []).append(source)
    documents: _TracesByChat = {}
    for source in forms.get("traces", ()):
        if (traced := read_document(source, decoder(Document).decode, "spans")) is not None:
            documents.setdefault(traced.chatSessionId, []).append((source, traced))
    chats = _Chats(folders, forms.get("transcript", []), documents)
    copies = [_snapshot(source, is_log=False) for source in forms.get("chat", [])]
    copies += [_snapshot(source, is_log=True) for source in forms.get("log", [])]
    snapshots = [snapshot for snapshot in copies if snapshot is not None]
    names_of = {name: s.session_id for s in snapshots for name in s.document.other_ids if s.session_id != name}
    for snapshot in snapshots:  # an exported chat has only the extension's id
        snapshot.session_id = names_of.get(snapshot.session_id, snapshot.session_id)
    for snapshot in largest(snapshots):
        chats.add(snapshot)
    chats.add_others()
    return chats.reading


class _Chats:
    """The sessions of files that belong together, each chat once, from all its forms."""

    def __init__(self, folders: dict[str, str | None], transcripts: list[Input], traces: _TracesByChat) -> None:
        self.reading = Reading()
        self._folders = folders
        self._transcripts = {source.artifact.artifact_id: source for source in transcripts}
        self._by_events = {s.session_id: s for s in sessions(transcripts, PROFILE, self._folder_of)}
        self._traces = traces

    def add(self, snapshot: Snapshot[Conversation]) -> None:
        names = list(dict.fromkeys((snapshot.session_id, *snapshot.document.other_ids)))
        self.reading.keys.update(f"session:{name}" for name in names)
        if all(request is None for request in snapshot.document.requests):
            snapshot.source.artifact.note = "nothing was asked in this chat"
            return
        reader = Reader(snapshot.source, snapshot.session_id)
        events = self._superseded(names, snapshot.source)
        reader.times = {id_of(c.call_id): (c.started_at, c.ended_at) for s in events for c in s.tool_calls}
        traces = Traces([held for name in names for held in self._traces.pop(name, [])])
        folder = _folder_in(events) or self._folder_of(snapshot.source)
        self.reading.sessions.append(reader.read(snapshot.document, folder, traces))

    def add_others(self) -> None:
        """Read chats that the editor does not keep from their traces, else from their transcript."""
        for name, held in self._traces.items():
            source = held[0][0]
            session = source.session(name, PROFILE.agent, PROFILE.agent)
            folder = _folder_in(self._superseded([name], source))
            self.reading.sessions.append(read_traces(session, Traces(held), folder))
        self.reading.sessions += self._by_events.values()

    def _folder_of(self, source: Input) -> str | None:
        """Return the folder of the window that a file belongs to."""
        above = posixpath.dirname(posixpath.dirname(source.artifact.path))
        return self._folders.get(above) or self._folders.get(posixpath.dirname(above))

    def _superseded(self, names: list[str], source: Input) -> list[Session]:
        """Take the sessions of transcripts of these names, for what only they say."""
        superseded = [self._by_events.pop(name) for name in names if name in self._by_events]
        for artifact_id in {event.artifact_id for session in superseded for event in session.events}:
            self._transcripts[artifact_id].artifact.note = f"the same session as in {source.artifact.artifact_id}"
        return superseded


def _folder_in(sessions: list[Session]) -> str | None:
    return next((session.cwd for session in sessions if session.cwd), None)


def _snapshot(source: Input, is_log: bool) -> Snapshot[Conversation] | None:
    numbers: list[int] = []
    if is_log:
        replayed = replay(source)
        numbers, saved = replayed.numbers, replayed.document
        chat = None
        if saved is not None:  # as the editor would have saved it
            facts = {name: saved.get(name) for name in ("sessionId", "creationDate", "customTitle", "repoData")}
            chat = Chat(**facts, requests=[Raw(encoded(request)) for request in requests_of(saved)])
    else:
        chat = read_document(source, decoder(Chat).decode, "requests")
    if chat is None:
        return None
    decoded_chat = conversation(chat, source, numbers)
    session_id = decoded_chat.session_id or source.session_hint or id_of_place(source.artifact.path)
    session_id = session_id or next(iter(decoded_chat.other_ids), source.artifact.artifact_id)
    return Snapshot(source, decoded_chat, session_id, len(decoded_chat.requests))
