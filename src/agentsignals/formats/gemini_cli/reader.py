"""The Gemini CLI chats of one family, and each as a session."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import PurePosixPath, PureWindowsPath
from typing import cast

import msgspec
from msgspec import Raw, Struct

from agentsignals.changes.hunks import Hunk, created, of_whole_file, replaced, rewrites, unified
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import count as count_of
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.documents import Snapshot, as_text, each, largest, tally
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.gemini_cli import PROFILE
from agentsignals.formats.head import HEAD_BYTES, MAX_RECORDS, Head
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.profile import HAND_IN, SHELL
from agentsignals.formats.records import UNREADABLE, lines, saw
from agentsignals.model import ABANDONED, MAIN, Artifact, CallStatus, EventKind, Session, Step, logged_iso
from agentsignals.model import ToolCall as Row

# The records of a Gemini CLI chat file as typed structs (design/formats.md#gemini-cli): only what is read.

# No annotations as text: the decoder would evaluate each by itself, which takes longer than all else here.


class Part(Struct, gc=False, kw_only=True):
    """A part of a content: text, or something attached (never decoded: it may be a whole image)."""

    text: str | None = None
    thought: object = None
    inlineData: Raw = Raw()
    fileData: Raw = Raw()
    functionCall: Raw = Raw()
    functionResponse: Raw = Raw()
    executableCode: Raw = Raw()
    codeExecutionResult: Raw = Raw()

    @property
    def kind(self) -> str:
        """What is in it; nothing for a part that says none of this."""
        return next((name for name in _PART_KINDS if getattr(self, name) not in (None, Raw())), "")


_PART_KINDS = ("text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode",
               "codeExecutionResult", "thought")  # fmt: skip
PARTS = frozenset(_PART_KINDS)


Content = str | Part | list[Part | str] | None


class Thought(Struct, gc=False):
    subject: str | None = None
    description: str | None = None
    timestamp: str | None = None


class Tokens(Struct, gc=False):
    """`cached` is part of `input`; total = input + output + thoughts + tool (design/formats.md#token-usage)."""

    input: object = None
    output: object = None
    cached: object = None
    thoughts: object = None
    tool: object = None


class ToolCall(Struct, gc=False, kw_only=True):
    """A call with its result; `timestamp` is when it ended."""

    id: str = ""
    name: str = ""
    args: Raw = Raw()
    result: Raw = Raw()
    status: str | None = None
    timestamp: str | None = None
    resultDisplay: Raw = Raw()


class Message(Struct, gc=False, kw_only=True):
    """A message of any type: user, gemini, info, warning, error."""

    type: str = ""
    id: str | None = None
    timestamp: str | None = None
    content: Content = None
    displayContent: Content = None
    thoughts: list[Thought] | None = None
    tokens: Tokens | None = None
    model: str | None = None
    toolCalls: list[ToolCall] | None = None


class Chat(Struct, kw_only=True):
    sessionId: str
    messages: list[Message | None]
    projectHash: str | None = None
    startTime: str | None = None
    kind: str | None = None
    summary: str | None = None


class _RawChat(Struct, kw_only=True):
    sessionId: str
    messages: list[Raw] = []
    projectHash: str | None = None
    startTime: str | None = None
    kind: str | None = None
    summary: str | None = None


class _Response(Struct, gc=False):
    id: str | None = None
    response: Raw = Raw()


class _ResultPart(Struct, gc=False):
    text: str | None = None
    functionResponse: _Response | None = None


class _Answer(Struct, gc=False):
    output: object = None
    error: object = None


_whole = msgspec.json.Decoder(Chat).decode
_raw_chat = msgspec.json.Decoder(_RawChat).decode
decode_message = msgspec.json.Decoder(Message).decode
_result = msgspec.json.Decoder(list[_ResultPart | str] | _ResultPart | str | None).decode
_answer = msgspec.json.Decoder(_Answer).decode


def decode_records(data: memoryview | bytes, artifact: Artifact) -> Chat:
    """A chat; when a message in it is odd, message by message, with None for what can't be read."""
    try:
        return _whole(data)
    except msgspec.ValidationError:
        chat = _raw_chat(data)
        messages = each(chat.messages, decode_message, artifact)
        return Chat(
            sessionId=chat.sessionId,
            messages=messages,
            projectHash=chat.projectHash,
            startTime=chat.startTime,
            kind=chat.kind,
            summary=chat.summary,
        )


def parts_of(content: Content) -> list[Part]:
    """A content as parts, whatever its spelling."""
    if content is None:
        return []
    if isinstance(content, str):
        return [Part(text=content)]
    if isinstance(content, Part):
        return [content]
    return [Part(text=p) if isinstance(p, str) else p for p in content]


def text_of(content: Content) -> str:
    """The visible text of an answer: its parts are pieces of one text."""
    return "".join(p.text for p in parts_of(content) if p.text and p.thought is not True)


def result_text(call: ToolCall) -> str:
    """What the model got back from a call.

    A rewritten history files the answers of sibling calls with each of them: the one with the call's id counts.
    """
    if not call.result:
        return ""
    try:
        result = _result(call.result)
    except UNREADABLE:
        return bytes(call.result).decode("utf-8", "replace")
    if isinstance(result, str) or result is None:
        return result or ""
    parts = result if isinstance(result, list) else [result]
    of_call = [
        p for p in parts if isinstance(p, _ResultPart) and p.functionResponse and p.functionResponse.id == call.id
    ]
    return "\n".join(filter(None, (_part_text(p) for p in of_call or parts)))


def _part_text(part: _ResultPart | str) -> str:
    if isinstance(part, str):
        return part
    if part.functionResponse is None:
        return part.text or ""
    raw = part.functionResponse.response
    try:
        answer = _answer(raw)
    except UNREADABLE:
        return bytes(raw).decode("utf-8", "replace")
    output = answer.error if answer.error is not None else answer.output
    return as_text(output) if output is not None else bytes(raw).decode("utf-8", "replace")


# Gemini CLI's JSON Lines (0.40 on) folded into a chat.
#
# A message is written anew, whole, whenever something of it changes: the last version counts, at its first place.
# `$rewindTo` takes back a message and all after it. `$set` changes the header; its `messages` are what the model is
# shown from now on, not what was said: after a compression they are a summary and copies under new ids, before the
# first prompt they are the client's own words about the machine.

_SHA256_DIGITS = 64
_CONTEXT, _SUMMARY = "<session_context>", "<state_snapshot>"
_FOLDER = re.compile(r"Workspace Directories:\*{0,2}\s*\n\s*-\s+([^\n]+)")


class Log(Chat, kw_only=True):
    """A chat, where its messages stand in the file, and which of them were taken back."""

    numbers: Sequence[int] = ()
    rewound: frozenset[int] = frozenset()
    """Places in `messages`."""
    folder: str | None = None


class Header(Struct, gc=False, kw_only=True):
    """Facts about the session: of the first line, and of each `$set`."""

    sessionId: str | None = None
    projectHash: str | None = None
    startTime: str | None = None
    kind: str | None = None
    summary: str | None = None
    directories: object = None
    messages: list[Raw] | None = None


class _Line(Struct, gc=False, kw_only=True):
    id: object = None
    type: object = None
    sessionId: object = None
    set: Header | None = msgspec.field(default=None, name="$set")
    rewind: str | None = msgspec.field(default=None, name="$rewindTo")
    snapshot: object = msgspec.field(default=None, name="$snapshot")


_line = msgspec.json.Decoder(_Line).decode
_header = msgspec.json.Decoder(Header).decode
_Record = Message | Header | str | None
"""A message, the header or a change of it, the message that the person went back to, or a line of another kind."""


def is_log(data: bytes) -> bool:
    """Whether the file is JSON Lines: one of the first lines is an object by itself, whatever stands torn before it.

    A line with `messages` may be a whole chat of the older kind: then another object must follow.
    """
    end = -1
    for _ in range(MAX_RECORDS):  # a first prompt may be longer than what files are recognised by
        at = data.find(b"\n", end + 1)
        if at < 0:
            break
        end = at
    start = bytes(data[: max(HEAD_BYTES, end + 1)])
    records = Head(start, complete=len(data) <= HEAD_BYTES).records
    if not records:
        return False
    rest = start.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[2]
    return "messages" not in records[0] or rest.lstrip()[:1] == b"{"


def decode(data: memoryview | bytes) -> _Record:
    """One line."""
    line = _line(data)
    if line.rewind is not None:
        return line.rewind
    if line.set is not None:
        return line.set
    if isinstance(line.sessionId, str) or line.snapshot is True:
        return _header(data)
    if isinstance(line.id, str) and isinstance(line.type, str):
        return decode_message(data)
    return None


def fold(source: Input) -> Log | None:
    """The chat that a file tells; None when it names no session."""
    folded = _Fold(source.artifact)
    for number, record in lines(source.data, source.artifact, decode):
        saw(source.artifact, folded.take(number, record))
    return folded.log()


class _Fold:
    def __init__(self, artifact: Artifact) -> None:
        self._artifact = artifact
        self.facts = Header()
        self.places: dict[str, int] = {}
        """The place of each message by id; copies have that of their original."""
        self.messages: list[Message] = []
        self.numbers: list[int] = []
        self.rewound: set[int] = set()
        self.spoken = False
        """Whether a message was logged by itself."""

    def take(self, number: int, record: _Record) -> str:
        """Adds a line; gives its kind, as counted in the artifact."""
        if record is None:
            return "other"
        if isinstance(record, str):
            at = self.places.get(record)
            if at is not None:
                self.rewound.update(range(at, len(self.messages)))
            return "$rewindTo"
        if isinstance(record, Message):
            self.spoken = True
            self._add(number, record)
            return f"message.{record.type}"
        first = self.facts.sessionId is None
        for name in ("sessionId", "projectHash", "startTime", "kind", "summary", "directories"):
            value = getattr(record, name)
            if value is not None:
                setattr(self.facts, name, value)
        if record.messages is not None:
            shown = each(record.messages, decode_message, self._artifact)
            tally(self._artifact, "$set.message", [None for m in shown if m is None])
            self._shown(number, [m for m in shown if m is not None])
            return "$set.messages"
        return "header" if first else "$set"

    def _add(self, number: int, message: Message) -> None:
        at = self.places.get(message.id or "")
        if at is not None and at not in self.rewound:
            self.messages[at] = message
            return
        self.places[message.id or ""] = len(self.messages)
        self.messages.append(message)
        self.numbers.append(number)

    def _shown(self, number: int, messages: list[Message]) -> None:
        """What the model is shown. Once messages were logged by themselves, only a summary is new among it.

        Until then all of it is: the client's words about the machine; or everything, as some writers log it.
        """
        by_likeness = {_likeness(m): n for n, m in enumerate(self.messages)}
        for message in messages:
            if message.id in self.places:
                if not self.spoken:
                    self._add(number, message)
                continue  # else an older output may have been blanked out in it, to save tokens
            same = by_likeness.get(_likeness(message))
            if same is not None:
                self.places[message.id or ""] = same
            elif not self.spoken or text_of(message.content).lstrip().startswith(_SUMMARY):
                self._add(number, message)

    def log(self) -> Log | None:
        facts = self.facts
        if facts.sessionId is None or not self.messages:
            return None
        shown = next((text for m in self.messages if (text := text_of(m.content)).startswith(_CONTEXT)), "")
        named = _FOLDER.search(shown[:HEAD_BYTES])
        listed = facts.directories[0] if isinstance(facts.directories, list) and facts.directories else None
        folders = (named.group(1).strip() if named else None, listed)
        return Log(
            sessionId=facts.sessionId,
            messages=cast("list[Message | None]", self.messages),
            projectHash=facts.projectHash,
            startTime=facts.startTime,
            kind=facts.kind,
            summary=facts.summary,
            numbers=self.numbers,
            rewound=frozenset(self.rewound),
            folder=next((f for f in folders if isinstance(f, str) and _is_project(f, facts.projectHash)), None),
        )


def _likeness(message: Message) -> tuple[str, str]:
    calls = ",".join(call.id for call in message.toolCalls or ())
    return message.type, calls or text_of(message.content).strip()


def _is_project(folder: str, project: str | None) -> bool:
    """Whether a folder is the session's: the header names it by SHA-256, newer versions by a word."""
    if not project or len(project) != _SHA256_DIGITS:
        return True
    return hashlib.sha256(folder.encode("utf-8", "replace")).hexdigest() == project


def parent_of(log: Log, path: str) -> str | None:
    """The session that started a subagent's: its file lies in a folder of that name, below `chats`."""
    above, parent = posixpath.split(posixpath.dirname(path))
    return parent if log.kind == "subagent" and posixpath.basename(above) == "chats" else None


# Gemini CLI's tools: what they are in shared words, what became of a call, and which lines it changed.

_DENIED = ("User denied execution", "User did not allow tool call")
_BY_POLICY = "denied by policy"
_PLAN_REFUSED = re.compile(
    r"Plan rejected\. (?:User feedback: (.*?)(?:\n\nThe plan is stored at|\Z)|No feedback)"
    r"|User cancelled the plan approval dialog",
    re.DOTALL,
)
"""How `exit_plan_mode` succeeds where the person said no."""
_HEAD = 300


class Arguments(Struct, gc=False, kw_only=True):
    file_path: str | None = None
    absolute_path: str | None = None
    dir_path: str | None = None
    directory: str | None = None
    content: str | None = None
    old_string: str | None = None
    new_string: str | None = None


class FileDiff(Struct, gc=False):
    """What the client shows of an edit; the file's old and new text beside it are never decoded."""

    fileDiff: str
    filePath: str | None = None
    isNewFile: bool | None = None


_arguments = msgspec.json.Decoder(Arguments).decode
_file_diff = msgspec.json.Decoder(FileDiff).decode


def run(builder: SessionBuilder, logged: ToolCall, at: int | None, step: Step | None, unique_id: str) -> None:
    """A call and, in the same record, its result."""
    args = arguments(logged)
    tool = PROFILE.tool(logged.name)
    folder = (args.dir_path or args.directory) if tool is SHELL else None
    raw = msgspec.json.format(bytes(logged.args), indent=-1) if logged.args else b"{}"
    thread = step.thread if step is not None else MAIN
    call = builder.call(unique_id, logged.name, raw, tool, at, step, thread, folder=folder)
    text = result_text(logged)
    status = outcome(logged.status, text)
    if status == "none":
        return
    refused = _PLAN_REFUSED.match(text) if status == "ok" and tool is HAND_IN else None
    status = "rejected" if refused else status
    code = exit_code(text) if tool is SHELL else None
    error = "permission" if _BY_POLICY in text[:_HEAD] else None
    builder.result(unique_id, text, status, logged_iso(logged.timestamp), call.thread, code, error)
    if refused and refused[1] and thread == MAIN:
        builder.turn("rejection_feedback", refused[1].strip(), logged_iso(logged.timestamp))
    if status == "ok" and call.class_ == "edit":
        _edit(builder, call, logged, args)


def outcome(status: str | None, text: str) -> CallStatus:
    """`cancelled` is a refusal when the person answered no, else a call that was stopped. Unfinished: no result."""
    if status == "success":
        return "ok"
    if status == "error":
        return "error"
    if status == "cancelled":
        return "rejected" if any(words in text[:_HEAD] for words in _DENIED) else "cancelled"
    return "none"


def arguments(call: ToolCall) -> Arguments:
    """The arguments that are read here; none when they are of another shape."""
    try:
        return _arguments(call.args) if call.args else Arguments()
    except UNREADABLE:
        return Arguments()


def project_folder(chat: Chat) -> str | None:
    """The folder the session ran in: the file names it only by SHA-256, and a path in a call must lie in it."""
    if not chat.projectHash or len(chat.projectHash) != _SHA256_DIGITS:
        return None
    tried: set[str] = set()
    for path in _absolute_paths(chat):
        for folder in _upwards(path):
            if folder in tried:
                break
            tried.add(folder)
            if hashlib.sha256(folder.encode()).hexdigest() == chat.projectHash:
                return folder
    return None


def _absolute_paths(chat: Chat) -> Iterator[str]:
    for message in chat.messages:
        for call in (message.toolCalls if message is not None else None) or ():
            args = arguments(call)
            tool = PROFILE.tool(call.name)
            shown = _shown(call) if tool is not None and tool.class_ == "edit" else None
            for path in (args.file_path, args.absolute_path, args.dir_path, shown.filePath if shown else None):
                if path:
                    yield path


def _upwards(path: str) -> Iterator[str]:
    pure = PurePosixPath(path) if path.startswith("/") else PureWindowsPath(path)
    if pure.is_absolute():
        yield str(pure)
        yield from (str(folder) for folder in pure.parents)


def _shown(call: ToolCall) -> FileDiff | None:
    try:
        return _file_diff(call.resultDisplay) if call.resultDisplay else None
    except UNREADABLE:
        return None


def _edit(builder: SessionBuilder, call: Row, logged: ToolCall, args: Arguments) -> None:
    shown = _shown(logged)
    if shown is None:
        has_texts = args.old_string is not None and args.new_string is not None
        hunks = [replaced(args.old_string or "", args.new_string or "")] if has_texts else [Hunk(whole_file=True)]
        builder.edit(call, None, "modify", hunks)
        return
    if shown.isNewFile and args.content is not None:
        builder.edit(call, shown.filePath, "create", [created(args.content)])
        return
    hunks = unified(shown.fileDiff)
    if shown.isNewFile or (args.content and rewrites(hunks, args.content)):
        hunks = of_whole_file(hunks)
    builder.edit(call, shown.filePath, "create" if shown.isNewFile else "modify", hunks)


CANCELLED = "Request cancelled."
"""The notice that the person stopped the agent."""
REFERENCED = "--- Content from referenced files ---"
"""Behind this in a prompt stand the files it names with `@`, put there by the client."""

_SENT_BY_CLIENT = "Please continue."
"""What the client sends, word for word, when it finds that the model should go on by itself."""


def read(inputs: list[Input]) -> Reading:
    """All files of one family; of several snapshots of a session the fullest."""
    return Reading([_Reader(snapshot).session() for snapshot in largest(_snapshots(inputs))])


def _snapshots(inputs: list[Input]) -> Iterator[Snapshot[Chat]]:
    for source in inputs:
        if is_log(source.data):
            chat: Chat | None = fold(source)
        else:
            chat = read_document(source, partial(decode_records, artifact=source.artifact), "messages")
            if chat is not None:
                _count(source.artifact, chat)
        if chat is None:
            continue
        session_id = chat.sessionId or source.session_hint or source.artifact.artifact_id
        yield Snapshot(source, chat, session_id, len(chat.messages))


def _count(artifact: Artifact, chat: Chat) -> None:
    tally(artifact, "message", [None if m is None else m.type for m in chat.messages])


class _Reader:
    """One session in the making."""

    def __init__(self, snapshot: Snapshot[Chat]) -> None:
        source, chat = snapshot.source, snapshot.document
        session = source.session(snapshot.session_id, "gemini-cli", "gemini-cli")
        session.title = chat.summary
        session.started_at = logged_iso(chat.startTime)
        self.chat = chat
        self.builder = SessionBuilder(session, PROFILE)
        self.builder.where(project_folder(chat))
        self.thread = MAIN
        log = chat if isinstance(chat, Log) else None
        self.numbers = log.numbers if log is not None else range(1, len(chat.messages) + 1)
        self.rewound = log.rewound if log is not None else frozenset()
        if log is not None:
            self.builder.where(log.folder)
            session.parent_session_id = parent_of(log, source.artifact.path)
        self.step: Step | None = None
        self.model: str | None = None
        self.call_ids: set[str] = set()

    def session(self) -> Session:
        for n, message in enumerate(self.chat.messages):
            self.builder.line = self.numbers[n]
            if message is not None:
                self._on_thread(message, ABANDONED if n in self.rewound else MAIN)
        return self.builder.finish()

    def _on_thread(self, message: Message, thread: str) -> None:
        """What the person went back from was paid for, but is no turn, nor part of one."""
        if thread != self.thread:
            self.step = None
        self.thread, turn = thread, self.builder.turn_index
        if thread != MAIN:
            self.builder.turn_index = None
        self._message(message)
        if thread != MAIN:
            self.builder.turn_index = turn

    def _message(self, message: Message) -> None:
        at = logged_iso(message.timestamp)
        if message.type == "gemini":
            self._gemini(message, at)
        elif message.type == "user":
            self._user(message, at)
        elif message.type in ("info", "warning", "error"):
            self._notice(message.type, text_of(message.content), at)
        else:
            self.builder.event("unknown", message.type or "message without a type", at, thread=self.thread)
        for content in (message.content, message.displayContent):
            self.builder.unread((part.kind for part in parts_of(content)), PARTS, at, self.thread)

    def _notice(self, type_: str, text: str, at: int | None) -> None:
        kind: EventKind = "api_error" if type_ == "error" else "meta"
        self.builder.event("interrupt" if text.strip() == CANCELLED else kind, text, at, thread=self.thread)

    def _user(self, message: Message, at: int | None) -> None:
        """`displayContent` is what was typed; `content` is what the model got, with the named files behind it."""
        builder = self.builder
        shown = message.displayContent if message.displayContent is not None else message.content
        prompt = typed(shown)
        kind = _not_said(prompt) if self.chat.kind != "subagent" and self.thread == MAIN else "meta"
        if kind is not None and (prompt or kind != "meta"):
            builder.event(kind, prompt, at, thread=self.thread)
        elif prompt:
            builder.turn("prompt", prompt, at)
        elif kind is None and any(p.inlineData or p.fileData for p in parts_of(message.content)):
            builder.turn("attachment", "", at)

    def _gemini(self, message: Message, at: int | None) -> None:
        builder = self.builder
        text = text_of(message.content)
        step = self._step(message, text, at)
        for thought in message.thoughts or ():
            thinking = ": ".join(filter(None, (thought.subject, thought.description)))
            builder.event("thinking", thinking, logged_iso(thought.timestamp), step, self.thread)
        if text:
            builder.event("text", text, at, step, self.thread)
        for call in message.toolCalls or ():
            run(builder, call, at, step, self._unique_id(call.id))

    def _unique_id(self, call_id: str) -> str:
        unique = call_id if call_id and call_id not in self.call_ids else f"{call_id or 'call'}#{len(self.call_ids)}"
        self.call_ids.add(unique)
        return unique

    def _step(self, message: Message, text: str, at: int | None) -> Step:
        """One message is one model call, save one with nothing but tool calls and no tokens.

        Such a message holds the calls of the model call before it, cut off from that by a notice.
        """
        builder = self.builder
        before = self.step
        if message.tokens is None and not text and message.toolCalls and before and before.turn == builder.turn_index:
            return before
        step = builder.step(None, message.model, at, self.thread)
        step.message_id = message.id
        if message.tokens is not None:
            count(step, message.tokens)
        if message.model and message.model != self.model:
            if self.model is not None:
                builder.event("model_change", f"{self.model} -> {message.model}", at, step, self.thread)
            self.model = message.model
        self.step = step
        return step


def count(step: Step, tokens: Tokens) -> None:
    """The tokens of a message, as they are billed (design/formats.md#token-usage).

    `cached` is taken out of the input; the prompt of a built-in tool (`tool`) is input, and `thoughts`, which the file
    counts beside `output`, is output, as reasoning is in every other format.
    """
    fresh, output, cached, thoughts, tool = (
        count_of(v) for v in (tokens.input, tokens.output, tokens.cached, tokens.thoughts, tokens.tool)
    )
    if not any((fresh, output, cached, thoughts, tool)):
        return
    if fresh is not None:
        step.input_tokens = max(fresh - (cached or 0), 0) + (tool or 0)
    if output is not None:
        step.output_tokens = output + (thoughts or 0)
    step.cache_read_tokens = cached
    step.reasoning_tokens = thoughts


def typed(content: Content) -> str:
    """The words of a prompt, without the files the client put behind them."""
    texts: list[str] = []
    for part in parts_of(content):
        text = part.text or ""
        at = text.find(REFERENCED)
        if at >= 0:
            texts.append(text[:at])
            break
        texts.append(text)
    return "\n".join(filter(None, (s.strip() for s in texts)))


def _not_said(text: str) -> EventKind | None:
    if text == _SENT_BY_CLIENT:
        return "meta"
    return PROFILE.machine_kind(text)
