"""One chat of VS Code as a session: its requests, the model's calls of each, and what the panel shows of their tools.

What the model asked for and was answered is in the rounds of a request's result. The panel shows the same calls under
other ids: they say whether a person allowed a call, and how a command ended. Where a request was stopped before it had
a result, they are all there is.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import count, number, whole
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.copilot_cli.reader import sessions
from agentsignals.formats.documents import Snapshot, each, largest, tally
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.records import document, saw
from agentsignals.formats.vscode_copilot import PROFILE, SHOWN_AS, id_of_place, traced
from agentsignals.formats.vscode_copilot import records as calls
from agentsignals.formats.vscode_copilot import records as edits
from agentsignals.formats.vscode_copilot.records import (
    Asked,
    Chat,
    Item,
    Request,
    Round,
    decode_chat,
    decode_item,
    decode_request,
    encoded,
    ended_at,
    is_stopped,
    lacks_usage,
    model_of,
    output_of,
    particulars,
    path_of,
    replay,
    requests_of,
    result_text,
    summary_of,
    words,
)
from agentsignals.formats.vscode_copilot.traced import Document, Follower, Span, Traces, charge, describe, opened
from agentsignals.model import ABANDONED, MAIN, CallStatus, Session, Step, logged_ms

INVOCATION, _EDITED = "toolInvocationSerialized", "textEditGroup"
_OF_THE_EDITOR = ("vscode_editFile_internal",)
"""What the program does for a tool of the model's."""
_WORDS = "words"
_KINDS = frozenset(
    (_WORDS, INVOCATION, _EDITED, "thinking", "inlineReference", "agentTaskSerialized", "clearToPreviousToolInvocation",
     "codeblockUri", "codeCitation", "command", "confirmation", "disabledClaudeHooks", "elicitationSerialized",
     "extensions", "externalEdit", "hook", "markdownContent", "markdownVuln", "mcpServersStarting", "multiDiffData",
     "notebookEditGroup", "planReview", "prepareToolInvocation", "progressMessage", "progressTask",
     "progressTaskSerialized", "pullRequest", "questionCarousel", "reference", "treeData", "undoStop", "usage",
     "warning", "workspaceEdit")
)  # fmt: skip
"""The parts of an answer that the editor's sources name."""


class Conversation(Struct):
    """The document of a file, decoded: its requests in order, None for one that can't be read."""

    chat: Chat
    requests: list[Request | None]
    numbers: list[int] = field(default_factory=list)
    """Their lines, of a log."""

    @property
    def session_id(self) -> str | None:
        return self.chat.sessionId if isinstance(self.chat.sessionId, str) and self.chat.sessionId else None

    @property
    def other_ids(self) -> list[str]:
        """Under which the extension's own files know it, in versions before it took the editor's id."""
        ids = (r.metadata.sessionId for r in self.requests if r is not None)
        return list(dict.fromkeys(i for i in ids if i))


def conversation(chat: Chat, source: Input, numbers: list[int]) -> Conversation:
    """The requests of a document, each counted."""
    requests = each(chat.requests, decode_request, source.artifact)
    tally(source.artifact, "request", [None if r is None else "answered" if r.result else "open" for r in requests])
    return Conversation(chat, requests, numbers)


class Reader:
    """One session in the making."""

    def __init__(self, source: Input, session_id: str) -> None:
        self._source = source
        self.builder = SessionBuilder(source.session(session_id, "vscode-copilot", PROFILE.agent), PROFILE)
        self.times: dict[str, tuple[int | None, int | None]] = {}
        """When calls began and ended, by the provider's id, as a transcript says; traces know better."""
        self._touched: set[str] = set()
        self._thread = MAIN
        self._lacks_usage = False

    def read(self, held: Conversation, folder: str | None, traces: Traces) -> Session:
        """The session, with what the traces say of its calls."""
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
        """What the traces hold beside these requests: those that were sent since the chat was saved, and what was paid
        for, of those that were taken back, of subagents, of titles."""
        traces, builder = self._traces, self.builder
        saved = max((logged_ms(request.timestamp) or 0 for request in requests if request is not None), default=0)
        began = {turn.agent.span_id: turn.agent.began or 0 for turn in traces.turns}
        follower = Follower(builder, traces)
        for span in traces.spans:
            outermost = traces.outermost(span)
            if began.get(outermost or "", 0) > saved:
                follower.take(span)
                continue
            turn, builder.turn_index = builder.turn_index, None
            builder.artifact_id, builder.line = traces.places[span.span_id]
            thread = ABANDONED if outermost in began else traces.thread(span)
            if span.kind == "agent" and thread == ABANDONED:
                builder.event("meta", span.text, span.began, None, thread)
            elif span.kind == "agent":
                describe(builder, *span.repository)
            elif span.kind == "model" and thread != MAIN:
                charge(builder.step(span.span_id, None, span.began, thread), span)
            builder.turn_index = turn

    def _items(self, request: Request) -> list[Item]:
        items = each(request.response or [], decode_item, self._source.artifact)
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
        model = model_of(request)
        self._prompt(request, at, model)
        ended = ended_at(request)
        turn_traced = self._traces.take(request.text, at)
        traced = turn_traced.calls if turn_traced is not None else []
        if request.rounds:
            self._rounds(request, items, model, traced)
        else:
            step = builder.step(None, model, at, self._thread) if items or traced else None
            if step is not None and traced:
                charge(step, traced[0])
            self._shown(items, step, ended or at)
        for span in traced[max(len(request.rounds), 1) :]:  # tried again, or not kept
            charge(builder.step(span.span_id, model, span.began, self._thread), span)
        self._lacks_usage = self._lacks_usage or lacks_usage(request, len(traced))
        if request.result is not None and request.result.errorDetails is not None and not is_stopped(request):
            builder.event("api_error", words(request.result.errorDetails.message), ended, None, self._thread)
        if is_stopped(request):
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

    # -- as the model saw it -------------------------------------------------------------------------------------

    def _rounds(self, request: Request, items: list[Item], model: str | None, traced: list[Span]) -> None:
        rounds = request.rounds
        shown = [item for item in items if item.kind == INVOCATION]
        changes = edits.Changes(item for item in items if item.kind == _EDITED)
        at, ended = logged_ms(request.timestamp), ended_at(request)
        for n, exchange in enumerate(rounds):
            is_last = n == len(rounds) - 1
            begun = logged_ms(exchange.timestamp)
            step = self.builder.step(exchange.id, model, at if begun is None and n == 0 else begun, self._thread)
            if is_last:
                step.output_tokens = output_of(request)
            if n < len(traced):
                charge(step, traced[n])
            done = ended if is_last else traced[n].ended if n < len(traced) else begun
            self._round(exchange, step, done, summary_of(request, exchange))
            asked = [(call, calls.taken(shown, call)) for call in exchange.toolCalls or ()]
            for call, _ in asked:
                calls.begin(self.builder, call, None, step, self._thread)
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

    def _answer(self, request: Request, asked: Asked, item: Item | None, changes: edits.Changes) -> None:
        """What a call came to. A result of the model's side is text alone; the panel's says what became of it."""
        returned = (request.metadata.toolCallResults or {}).get(asked.id)
        details = particulars(item) if item is not None else None
        text = result_text(returned.content) if returned is not None else ""
        status = calls.status(item, text, was_answered=returned is not None)
        if status is None:
            return
        state = details.terminalCommandState if details is not None else None
        code = (
            whole(state.exitCode)
            if state is not None and state.exitCode is not None
            else calls.printed_code(asked.name, text)
        )
        ran_ms = number(state.duration) if state is not None else None
        span = self._traces.tools.get(calls.id_of(asked.id))
        began, at = (
            (span.began, span.ended) if span is not None else self.times.get(calls.id_of(asked.id), (None, None))
        )
        call = self.builder.result(asked.id, text, status, at, self._thread, code, ran_s=ran_ms and ran_ms / 1000)
        if call is None:
            return
        if returned is not None and isinstance(returned.content, list):
            are_read = [isinstance(p, str) or (isinstance(p, dict) and "value" in p) for p in returned.content]
            kinds = [_WORDS if is_read else "" for is_read in are_read]
            self.builder.unread(kinds, _KINDS, at, self._thread)
        call.started_at = began
        if call.status == "ok" and call.class_ == "edit":
            changes.record(self.builder, call, self._touched)
        if call.path:
            self._touched.add(call.path)

    # -- as the panel shows it -----------------------------------------------------------------------------------

    def _shown(self, items: list[Item], step: Step | None, at: int | None) -> None:
        spoken: list[str] = []
        for item in items:
            if item.kind is None or item.kind == "inlineReference":
                spoken.append(words(item.value) if item.kind is None else _name(item))
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
        """A call of which the model's side is not logged: what it was asked to do is known of commands alone."""
        if item.toolId in _OF_THE_EDITOR:
            return
        details = particulars(item)
        name = SHOWN_AS.get(item.toolId or "", item.toolId or "")
        command = msgspec.json.encode({"command": details.ran}) if details.ran else bytes(details.rawInput) or b"{}"
        call_id = item.toolCallId or f"{thread}#{len(self.builder.session.tool_calls)}"
        self.builder.call(call_id, name, command, PROFILE.tool(name), None, step, thread)
        output = details.terminalCommandOutput
        text = (output.text if output is not None else None) or details.result or words(item.pastTenseMessage)
        status = calls.status(item, text, was_answered=item.isComplete is True)
        if status is not None:
            code = whole(details.terminalCommandState.exitCode) if details.terminalCommandState is not None else None
            ended: CallStatus = "unknown" if status == "ok" and code is None else status
            self.builder.result(call_id, text, ended, None, thread, code)


def _name(item: Item) -> str:
    reference = item.inlineReference if isinstance(item.inlineReference, dict) else {}
    place = reference.get("path") or reference.get("fsPath") or reference.get("name")
    return item.name or (place.rpartition("/")[2] if isinstance(place, str) else "")


# The chats of one family, each from its fullest copy; where the editor's own is missing, from the extension's.


class _Workspace(Struct, gc=False):
    folder: str | None = None


_decode_workspace = msgspec.json.Decoder(_Workspace).decode
_WORKSPACE = re.compile(rb'[\xef\xbb\xbf\s]{0,64}\{\s{0,64}"(?:folder|workspace|configuration)"\s{0,64}:')
_FORM = re.compile(rb'[\xef\xbb\xbf\s]{0,64}\{\s{0,64}"(type|kind|chatSessionId)"\s{0,64}:')
_SECOND_LINE = re.compile(rb'[^\n]*\n[ \t]*\{[ \t]*"(type|kind)"[ \t]*:')
_FORMS = {b"type": "transcript", b"kind": "log", b"chatSessionId": "traces"}
"""By the first name in them; of lines whose first one is torn, by the second's."""
_Held = dict[str, list[tuple[Input, Document]]]
"""The traces of each chat."""


def read(inputs: list[Input]) -> Reading:
    """All files of one family; of several copies of a chat the fullest, with what traces and transcripts add."""
    forms: dict[str, list[Input]] = {}
    folders: dict[str, str | None] = {}
    for source in inputs:
        if _WORKSPACE.match(source.data):
            folders[posixpath.dirname(source.artifact.path)] = _folder(source)
            continue
        begins = _FORM.match(source.data) or _SECOND_LINE.match(source.data)
        forms.setdefault(_FORMS[begins[1]] if begins else "chat", []).append(source)
    documents: _Held = {}
    for source in forms.get("traces", ()):
        if (held := opened(source)) is not None:
            documents.setdefault(held.chatSessionId, []).append((source, held))
    family = _Family(folders, forms.get("transcript", []), documents)
    for snapshot in _chats(forms.get("chat", []), forms.get("log", [])):
        family.chat(snapshot)
    family.others()
    return family.reading


class _Family:
    """What several forms say of the same chats, one session each."""

    def __init__(self, folders: dict[str, str | None], transcripts: list[Input], traces: _Held) -> None:
        self.reading = Reading()
        self._folders = folders
        self._transcripts = {source.artifact.artifact_id: source for source in transcripts}
        self._by_events = {s.session_id: s for s in sessions(transcripts, PROFILE, self._folder_of)}
        self._traces = traces

    def chat(self, snapshot: Snapshot[Conversation]) -> None:
        names = list(dict.fromkeys((snapshot.session_id, *snapshot.document.other_ids)))
        self.reading.keys.update(f"session:{name}" for name in names)
        if all(request is None for request in snapshot.document.requests):
            snapshot.source.artifact.note = "nothing was asked in this chat"
            return
        reader = Reader(snapshot.source, snapshot.session_id)
        events = self._superseded(names, snapshot.source)
        reader.times = {calls.id_of(c.call_id): (c.started_at, c.ended_at) for s in events for c in s.tool_calls}
        traces = Traces([held for name in names for held in self._traces.pop(name, [])])
        folder = _folder_in(events) or self._folder_of(snapshot.source)
        self.reading.sessions.append(reader.read(snapshot.document, folder, traces))

    def others(self) -> None:
        """What the editor keeps no chat of: by its traces, else by its transcript."""
        for name, held in self._traces.items():
            source = held[0][0]
            session = source.session(name, PROFILE.agent, PROFILE.agent)
            folder = _folder_in(self._superseded([name], source))
            self.reading.sessions.append(traced.read(session, Traces(held), folder))
        self.reading.sessions += self._by_events.values()

    def _folder_of(self, source: Input) -> str | None:
        """The folder that the window of a file was for."""
        above = posixpath.dirname(posixpath.dirname(source.artifact.path))
        return self._folders.get(above) or self._folders.get(posixpath.dirname(above))

    def _superseded(self, names: list[str], source: Input) -> list[Session]:
        """Takes out the sessions that transcripts of these names are, for what they alone say."""
        superseded = [self._by_events.pop(name) for name in names if name in self._by_events]
        for artifact_id in {event.artifact_id for session in superseded for event in session.events}:
            self._transcripts[artifact_id].artifact.note = f"the same session as in {source.artifact.artifact_id}"
        return superseded


def _folder_in(sessions: list[Session]) -> str | None:
    return next((session.cwd for session in sessions if session.cwd), None)


def _chats(documents: list[Input], logs: list[Input]) -> list[Snapshot[Conversation]]:
    """The fullest copy of each chat."""
    made = [*(_snapshot(source, is_log=False) for source in documents), *(_snapshot(s, is_log=True) for s in logs)]
    snapshots = [snapshot for snapshot in made if snapshot is not None]
    names_of = {name: s.session_id for s in snapshots for name in s.document.other_ids if s.session_id != name}
    for snapshot in snapshots:  # an exported chat goes by the extension's id alone
        snapshot.session_id = names_of.get(snapshot.session_id, snapshot.session_id)
    return largest(snapshots)


def _folder(source: Input) -> str | None:
    """What `workspace.json` says; of several folders none is meant."""
    workspace = document(source.data, source.artifact, _decode_workspace)
    if workspace is not None and not source.lent:
        saw(source.artifact, "workspace")
    return path_of(workspace.folder) if workspace is not None and workspace.folder is not None else None


def _snapshot(source: Input, is_log: bool) -> Snapshot[Conversation] | None:
    numbers: list[int] = []
    if is_log:
        replayed = replay(source)
        numbers = replayed.numbers
        chat = _saved(replayed.document) if replayed.document is not None else None
    else:
        chat = read_document(source, decode_chat, "requests")
    if chat is None:
        return None
    held = conversation(chat, source, numbers)
    session_id = held.session_id or source.session_hint or id_of_place(source.artifact.path)
    session_id = session_id or next(iter(held.other_ids), source.artifact.artifact_id)
    return Snapshot(source, held, session_id, len(held.requests))


def _saved(document: dict[str, Any]) -> Chat:
    """The document as the editor would have saved it."""
    return Chat(
        sessionId=document.get("sessionId"),
        creationDate=document.get("creationDate"),
        customTitle=document.get("customTitle"),
        repoData=document.get("repoData"),
        requests=[Raw(encoded(request)) for request in requests_of(document)],
    )
