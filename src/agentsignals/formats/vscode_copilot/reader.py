"""Read chats of Copilot Chat in VS Code, each from its fullest copy, with what traces and transcripts add.

What the model asked for and was answered is in the rounds of a request's result. The panel shows the same calls under
other ids: it says whether a person allowed a call, and how a command ended. For a request that was stopped before it
had a result, the panel is all there is.
"""

import posixpath
import re
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

import msgspec
from msgspec import Raw, Struct, field, structs

from agentsignals.changes.hunks import EditText, Hunk, edit_texts, replaced
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import count, number, whole
from agentsignals.formats.builder import SessionBuilder, charge, first_file, record_arguments, tokens_of
from agentsignals.formats.conversation import Conversation
from agentsignals.formats.copilot_cli.reader import sessions
from agentsignals.formats.documents import Snapshot, each, largest, tally
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.otel_genai.reader import PARTS, as_int, spoken
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.records import as_list, decoded, decoder, document, inside, saw, string
from agentsignals.formats.vscode_copilot import PARENT, PROFILE, SHOWN_AS, WRITTEN, id_of_place, records
from agentsignals.formats.vscode_copilot.records import Asked, Item, Request, result_text, words
from agentsignals.model import ABANDONED, MAIN, CallStatus, Session, Step, ToolCall, logged_ms

# -- changes of files: the arguments say what, the panel says where in the file


class _Replacement(Struct, gc=False):
    filePath: str = ""
    oldString: str = ""
    newString: str = ""


class _Arguments(Struct, gc=False):
    input: str | None = None
    replacements: list[_Replacement] = []


class Changes:
    """The file changes of one request that the panel shows, in order."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._left: list[tuple[str, list[records.TextEdit]]] = []
        for item in items:
            if item.uri is not None and (path := item.uri.file):
                batches = decoded(item.edits, list[list[records.TextEdit]]) or []
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


def printed_code(name: str, text: str) -> int | None:
    """Return the exit code at the end of a command's result. None for other tools."""
    tool = PROFILE.tool(name)
    return exit_code(text) if tool is not None and tool.class_ in ("shell", "test") else None


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
        prompt = self.prompt if isinstance(self.prompt, str) else self.facts.get("copilot_chat.user_request")
        return (prompt or "").strip()

    @property
    def failure(self) -> str | None:
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


class TracedChat(Struct):
    chatSessionId: str
    spans: list[Raw] = field(default_factory=list)


class Traces:
    """The spans of one chat, from one database or several copies of it."""

    def __init__(self, sources: Iterable[tuple[Input, TracedChat]]) -> None:
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
        self.turns = [span for span in self.spans if span.kind == "agent" and self._agent(span) is None]
        """Agents' spans that no request took."""

    def take(self, text: str, at: int | None) -> list[Span]:
        """Take the turn of a request from the list. Return its model calls that are not a subagent's."""
        for agent in self.turns:
            is_near = at is not None and agent.began is not None and abs(agent.began - at) <= _NEAR_US
            if is_near and agent.text in ("", text):
                self.turns = [other for other in self.turns if other is not agent]
                return [s for s in self.spans if s.kind == "model" and self._agent(s) is agent]
        return []

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


class Document(Struct):
    """The decoded document of a chat. A request that can't be read is None."""

    chat: records.Chat
    requests: list[Request | None]
    numbers: list[int] = field(default_factory=list)
    """Lines of the requests, in a log."""

    @property
    def other_ids(self) -> list[str]:
        """Ids in the extension's own files. Later versions use the editor's id."""
        ids = (r.metadata.sessionId for r in self.requests if r is not None)
        return list(dict.fromkeys(i for i in ids if i))


_REPOSITORY = re.compile(r"[:/]([^/:\s]+/[^/:\s]+?)(?:\.git)?/*\Z")


class Reader(Conversation):
    """Reads one chat: its document, its traces, or both."""

    profile = PROFILE

    def __init__(self, session: Session, traces: Traces) -> None:
        super().__init__(session)
        self.traces = traces
        self.times: dict[str, tuple[int | None, int | None]] = {}
        """Start and end of calls by the provider's id, from a transcript. Those of traces count before them."""
        self.lacks_usage = False

    def describe(self, remote: object, branch: object) -> None:
        """Note the repository, by its address, and the branch."""
        if (named := _REPOSITORY.search(string(remote) or "")) is not None and self.session.repo is None:
            self.session.repo = named[1]
        self.builder.where(None, string(branch))

    def begin_call(self, asked: Asked, at: int | None, step: Step | None) -> None:
        """Add a call that the model asked for. A patch or a list of replacements names its first file."""
        given = asked.arguments
        arguments = given if isinstance(given, str) else msgspec.json.encode(given).decode()
        tool, path = PROFILE.tool(asked.name), None
        if tool is not None and tool.class_ == "edit":
            edit = decoded(arguments, _Arguments) or _Arguments()
            patched = first_file(edit.input) if edit.input else None
            path = (edit.replacements[0].filePath or None) if edit.replacements else patched
        self.builder.call(asked.id, asked.name, arguments or "{}", tool, at, step, self.thread, path=path)

    # -- spans

    def span(self, span: Span) -> None:
        self.builder.artifact_id, self.builder.line = self.traces.places[span.span_id]
        self.thread = self.traces.thread(span)
        if span.kind == "agent":
            self.repository(span)
            session = self.session
            session.parent_session_id = session.parent_session_id or span.facts.get(PARENT)
            if span.text and self.thread == MAIN and session.parent_session_id is None:
                self.builder.turn("prompt", span.text, span.began, span.request_model)
            elif span.text:
                self.event("meta", span.text, span.began)
        elif span.kind == "model":
            if span.failure is not None:
                self.event("api_error", span.failure, span.ended)
            step = self.builder.step(span.span_id, None, span.began, self.thread)
            charge_span(step, span)
            for message in spoken(dict(span.facts), []).replies:
                for thought in message.thinking:
                    self.event("thinking", thought, span.ended, step)
                if message.text:
                    self.event("text", message.text, span.ended, step)
                for call in message.calls:
                    self.begin_call(Asked(call.id, call.name, call.arguments), span.ended, step)
                self.builder.unread(message.kinds, PARTS, span.ended, self.thread)
        elif span.kind == "tool" and span.tool_call_id:  # without an id the program called it
            self.tool_span(span, span.tool_call_id, span.tool_name or "")

    def repository(self, span: Span) -> None:
        names = ("copilot_chat.repo.remote_url", "copilot_chat.repo.head_branch_name")
        self.describe(*map(span.facts.get, names))

    def tool_span(self, span: Span, call_id: str, name: str) -> None:
        """Add a tool's span. Some tools run another under the same id: the first is the one that the model called."""
        if not self.builder.calls_of(call_id):
            self.begin_call(Asked(call_id, name, span.facts.get("gen_ai.tool.call.arguments")), span.began, None)
        elif self.builder.answered(call_id):
            return
        text = span.result if span.failure is None else "\n".join(t for t in (span.result, span.failure) if t)
        status = status_of(None, text, was_answered=True) or "ok"
        if status == "ok" and span.failure is not None:
            status = "error"
        call = self.builder.result(call_id, text, status, span.ended, self.thread, printed_code(name, text))
        if call is not None:
            call.started_at = span.began
            if call.status == "ok" and call.class_ == "edit":
                Changes(()).record(self.builder, call)

    # -- requests

    def read(self, held: Document, folder: str | None, source: Input) -> Session:
        """Read the chat, with what the traces say of its calls."""
        session, chat = self.session, held.chat
        self.times |= {call_id: (span.began, span.ended) for call_id, span in self.traces.tools.items()}
        session.title = words(chat.customTitle) or None
        session.started_at = logged_ms(chat.creationDate)
        self.describe(inside(chat.repoData, "remoteUrl"), inside(chat.repoData, "localBranch"))
        items: list[list[Item]] = []
        for request in held.requests:
            listed = each(
                (request.response if request is not None else None) or [], decoder(Item).decode, source.artifact
            )
            tally(source.artifact, "response", [None for item in listed if item is None])
            items.append([item for item in listed if item is not None])
        bases = (i.baseUri.file for listed in items for i in listed if i.baseUri is not None)
        self.builder.where(folder or next((base for base in bases if base), None))
        undone = False
        for n, (request, shown) in enumerate(zip(held.requests, items, strict=True)):
            if request is not None:
                was_undone, undone = undone, bool(request.shouldBeRemovedOnSend or request.isHidden is True)
                self.builder.line = held.numbers[n] if n < len(held.numbers) else n + 1
                if undone and not was_undone:
                    self.event("rewind", None, logged_ms(request.timestamp))
                with self.aside(ABANDONED) if undone else nullcontext():
                    self.request(request, shown)
        if self.lacks_usage:
            session.conventions = ["usage_logged_midway", *PROFILE.conventions]
        self.beyond(max((logged_ms(r.timestamp) or 0 for r in held.requests if r is not None), default=0))
        return self.builder.finish()

    def beyond(self, saved: int) -> None:
        """Add what only the traces hold: requests sent since the chat was saved, and model calls of withdrawn requests,
        of subagents, of titles."""
        traces, builder = self.traces, self.builder
        began = {agent.span_id: agent.began or 0 for agent in traces.turns}
        for span in traces.spans:
            outermost = traces.outermost(span)
            if began.get(outermost or "", 0) > saved:
                self.span(span)
                continue
            builder.artifact_id, builder.line = traces.places[span.span_id]
            with self.aside(ABANDONED if outermost in began else traces.thread(span)):
                if span.kind == "agent" and self.thread == ABANDONED:
                    self.event("meta", span.text, span.began)
                elif span.kind == "agent":
                    self.repository(span)
                elif span.kind == "model" and self.thread != MAIN:
                    charge_span(builder.step(span.span_id, None, span.began, self.thread), span)

    def request(self, request: Request, items: list[Item]) -> None:
        builder, at, ended, model = self.builder, logged_ms(request.timestamp), request.ended_at, request.model
        version = string(inside(request.agent, "extensionVersion"))
        self.session.agent_version = version or self.session.agent_version
        text = request.text
        if self.thread != MAIN or request.confirmation:  # a button that was pressed
            self.event("meta", text, at)
        elif text:
            is_command = request.slashCommand is not None and text.startswith("/")
            builder.turn("slash_command" if is_command else "prompt", text, at, model)
        elif as_list(inside(request.variableData, "variables")):
            builder.turn("attachment", "", at, model)
        traced = self.traces.take(text, at)
        if request.rounds:
            self.rounds(request, items, model, traced)
        else:
            step = builder.step(None, model, at, self.thread) if items or traced else None
            if step is not None and traced:
                charge_span(step, traced[0])
            self.shown(items, step, ended or at)
        for span in traced[max(len(request.rounds), 1) :]:  # tried again, or not kept
            charge_span(builder.step(span.span_id, model, span.began, self.thread), span)
        if len(request.rounds) > max(len(traced), 1) and request.output_tokens is not None:
            self.lacks_usage = True  # of several calls the last alone says what it put out
        if request.done.errorDetails is not None and not request.is_stopped:
            self.event("api_error", words(inside(request.done.errorDetails, "message")), ended)
        if request.is_stopped:
            self.event("interrupt", "", ended or at)
        kinds = (item.kind or (_WORDS if item.value is not None else "") for item in items)
        without = len(request.metadata.toolCallRounds or ()) - len(request.rounds)
        builder.unread([*kinds, *[""] * without], _KINDS, ended, self.thread)

    def rounds(self, request: Request, items: list[Item], model: str | None, traced: list[Span]) -> None:
        shown = [item for item in items if item.kind == INVOCATION]
        changes = Changes(item for item in items if item.kind == _EDITED)
        for n, exchange in enumerate(request.rounds):
            is_last = n == len(request.rounds) - 1
            begun = logged_ms(exchange.timestamp)
            at = logged_ms(request.timestamp) if begun is None and n == 0 else begun
            step = self.builder.step(exchange.id, model, at, self.thread)
            if is_last:
                step.output_tokens = request.output_tokens
            if n < len(traced):
                charge_span(step, traced[n])
            done = request.ended_at if is_last else traced[n].ended if n < len(traced) else begun
            if summary := request.summary(exchange):
                self.event("compaction", msgspec.json.encode({"summary": summary}).decode(), done)
            if (thinking := exchange.thinking) is not None:
                step.reasoning_tokens = step.reasoning_tokens or count(thinking.get("tokens")) or None
                if (thought := words(thinking.get("text"))) or thinking.get("encrypted"):
                    self.event("thinking", thought, done, step)
            if text := words(exchange.response):
                self.event("text", text, done, step)
            asked: list[tuple[Asked, Item | None]] = []
            for call in exchange.toolCalls or ():
                # The panel shows a call under its id, else the first of that tool is it.
                mine = [item for item in shown if not item.subAgentInvocationId]
                by_id = (item for item in mine if item.toolCallId and id_of(item.toolCallId) == id_of(call.id))
                by_tool = (item for item in mine if SHOWN_AS.get(item.toolId or "", item.toolId) == call.name)
                item = next(by_id, None) or next(by_tool, None)
                shown = [other for other in shown if other is not item]
                asked.append((call, item))
                self.begin_call(call, None, step)
            for call, item in asked:
                self.answer(request, call, item, changes)
        for item in shown:
            if item.subAgentInvocationId:
                self.invocation(item, None, item.subAgentInvocationId)

    def answer(self, request: Request, asked: Asked, item: Item | None, changes: Changes) -> None:
        """Add the result of a call. On the model's side it is only text; the panel says how the call ended."""
        returned = (request.metadata.toolCallResults or {}).get(asked.id)
        content = returned.get("content") if returned is not None else None
        text = result_text(content)
        status = status_of(item, text, was_answered=returned is not None)
        if status is None:
            return
        state = item.particulars.terminalCommandState if item is not None else None
        code, ran_ms = whole(inside(state, "exitCode")), number(inside(state, "duration"))
        code = printed_code(asked.name, text) if code is None else code
        began, at = self.times.get(id_of(asked.id), (None, None))
        call = self.builder.result(asked.id, text, status, at, self.thread, code, ran_s=ran_ms and ran_ms / 1000)
        if call is None:
            return
        are_read = (isinstance(part, str) or (isinstance(part, dict) and "value" in part) for part in as_list(content))
        self.builder.unread([_WORDS if is_read else "" for is_read in are_read], _KINDS, at, self.thread)
        call.started_at = began
        if call.status == "ok" and call.class_ == "edit":
            changes.record(self.builder, call)

    def shown(self, items: list[Item], step: Step | None, at: int | None) -> None:
        said: list[str] = []

        def say() -> None:
            text = "".join(said)
            if text.strip(" \n`"):
                self.event("text", text, at, step)
            said.clear()

        for item in items:
            if item.kind is None:
                said.append(words(item.value))
            elif item.kind == "inlineReference":
                names = (inside(item.inlineReference, name) for name in ("path", "fsPath", "name"))
                place = next(filter(None, names), None)
                said.append(item.name or (string(place) or "").rpartition("/")[2])
            elif item.kind == INVOCATION:
                say()
                self.invocation(item, step, item.subAgentInvocationId or self.thread)
            elif item.kind == "thinking":
                say()
                if thought := words(item.value):
                    self.event("thinking", thought, at, step)
        say()

    def invocation(self, item: Item, step: Step | None, thread: str) -> None:
        """Add a call without a record on the model's side. Only of commands is it known what was asked."""
        if item.toolId in _OF_THE_EDITOR:
            return
        details = item.particulars
        name = SHOWN_AS.get(item.toolId or "", item.toolId or "")
        command = msgspec.json.encode({"command": details.ran}) if details.ran else bytes(details.rawInput) or b"{}"
        call_id = item.toolCallId or f"{thread}#{len(self.session.tool_calls)}"
        self.builder.call(call_id, name, command, PROFILE.tool(name), None, step, thread)
        text = string(inside(details.terminalCommandOutput, "text")) or details.result or words(item.pastTenseMessage)
        status = status_of(item, text, was_answered=item.isComplete is True)
        if status is not None:
            code = whole(inside(details.terminalCommandState, "exitCode"))
            ended: CallStatus = "unknown" if status == "ok" and code is None else status
            self.builder.result(call_id, text, ended, None, thread, code)


# -- files that belong together


_WORKSPACE = re.compile(rb'[\xef\xbb\xbf\s]{0,64}\{\s{0,64}"(?:folder|workspace|configuration)"\s{0,64}:')
_FORM = re.compile(rb'[\xef\xbb\xbf\s]{0,64}\{\s{0,64}"(type|kind|chatSessionId)"\s{0,64}:')
_SECOND_LINE = re.compile(rb'[^\n]*\n[ \t]*\{[ \t]*"(type|kind)"[ \t]*:')
_FORMS = {b"type": "transcript", b"kind": "log", b"chatSessionId": "traces"}
"""Forms of files by the first name in them. If the first line is torn, the second line's counts."""


def read(inputs: list[Input]) -> Reading:
    """Read files that belong together: each chat once, from all its forms."""
    files: dict[str, list[Input]] = {}
    folders: dict[str, str | None] = {}
    for source in inputs:
        if _WORKSPACE.match(source.data):
            workspace = document(source.data, source.artifact, decoder(dict[str, Any]).decode)
            if workspace is not None and not source.lent:
                saw(source.artifact, "workspace")
            folder = string(inside(workspace, "folder"))  # None if it names several
            folders[source.folder] = records.path_of(folder) if folder is not None else None
            continue
        begins = _FORM.match(source.data) or _SECOND_LINE.match(source.data)
        files.setdefault(_FORMS[begins[1]] if begins else "chat", []).append(source)
    traced: dict[str, list[tuple[Input, TracedChat]]] = {}
    for source in files.get("traces", ()):
        if (of_chat := read_document(source, decoder(TracedChat).decode, "spans")) is not None:
            traced.setdefault(of_chat.chatSessionId, []).append((source, of_chat))

    def folder_of(source: Input) -> str | None:
        """Return the folder of the window that a file belongs to."""
        above = posixpath.dirname(source.folder)
        return folders.get(above) or folders.get(posixpath.dirname(above))

    transcripts = {source.artifact.artifact_id: source for source in files.get("transcript", ())}
    by_events = {s.session_id: s for s in sessions(files.get("transcript", []), PROFILE, folder_of)}

    def superseded(names: list[str], source: Input) -> list[Session]:
        """Take the sessions of transcripts of these names, for what only they say."""
        taken = [by_events.pop(name) for name in names if name in by_events]
        for artifact_id in {event.artifact_id for session in taken for event in session.events}:
            transcripts[artifact_id].artifact.note = f"the same session as in {source.artifact.artifact_id}"
        return taken

    reading = Reading()
    copies = [_snapshot(source, is_log=False) for source in files.get("chat", ())]
    copies += [_snapshot(source, is_log=True) for source in files.get("log", ())]
    snapshots = [snapshot for snapshot in copies if snapshot is not None]
    names_of = {name: s.session_id for s in snapshots for name in s.document.other_ids if s.session_id != name}
    for snapshot in snapshots:  # an exported chat has only the extension's id
        snapshot.session_id = names_of.get(snapshot.session_id, snapshot.session_id)
    for snapshot in largest(snapshots):
        source, chat = snapshot.source, snapshot.document
        names = list(dict.fromkeys((snapshot.session_id, *chat.other_ids)))
        reading.keys.update(f"session:{name}" for name in names)
        if all(request is None for request in chat.requests):
            source.artifact.note = "nothing was asked in this chat"
            continue
        events = superseded(names, source)
        traces = Traces([held for name in names for held in traced.pop(name, [])])
        reader = Reader(source.session(snapshot.session_id, PROFILE.agent, PROFILE.agent), traces)
        reader.times = {id_of(c.call_id): (c.started_at, c.ended_at) for s in events for c in s.tool_calls}
        folder = next((session.cwd for session in events if session.cwd), None) or folder_of(source)
        reading.sessions.append(reader.read(chat, folder, source))
    for name, held in traced.items():  # chats that the editor does not keep
        source = held[0][0]
        folder = next((session.cwd for session in superseded([name], source) if session.cwd), None)
        reader = Reader(source.session(name, PROFILE.agent, PROFILE.agent), Traces(held))
        reader.builder.where(folder)
        for span in reader.traces.spans:
            reader.span(span)
        reading.sessions.append(reader.builder.finish())
    reading.sessions += by_events.values()
    return reading


def _snapshot(source: Input, is_log: bool) -> Snapshot[Document] | None:
    numbers: list[int] = []
    if is_log:
        replayed = records.replay(source)
        numbers, chat = replayed.numbers, None
        if (saved := replayed.document) is not None:  # as the editor would have saved it
            facts = {name: saved.get(name) for name in ("sessionId", "creationDate", "customTitle", "repoData")}
            chat = records.Chat(**facts, requests=[Raw(records.encoded(r)) for r in as_list(saved.get("requests"))])
    else:
        chat = read_document(source, decoder(records.Chat).decode, "requests")
    if chat is None:
        return None
    requests = each(chat.requests, decoder(Request).decode, source.artifact)
    tally(source.artifact, "request", [None if r is None else "answered" if r.result else "open" for r in requests])
    held = Document(chat, requests, numbers)
    own_id = chat.sessionId if isinstance(chat.sessionId, str) else None
    named = own_id or source.session_hint or id_of_place(source.artifact.path)
    return Snapshot(source, held, named or next(iter(held.other_ids), source.artifact.artifact_id), len(requests))
