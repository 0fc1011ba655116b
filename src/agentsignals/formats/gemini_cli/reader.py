"""Reads Gemini CLI chats. The structs hold only the fields that are read."""

import hashlib
import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.changes.hunks import Hunk, created, of_whole_file, replaced, rewrites, unified
from agentsignals.formats import Input
from agentsignals.formats.bounds import count
from agentsignals.formats.conversation import Document, DocumentReader
from agentsignals.formats.documents import Messages, Snapshot, each, tally
from agentsignals.formats.gemini_cli import PROFILE
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.profile import HAND_IN, SHELL
from agentsignals.formats.records import HEAD_BYTES, MAX_RECORDS, Head, as_text, decoded, decoder, inside, lines, saw
from agentsignals.model import ABANDONED, MAIN, CallStatus, EventKind, Step, logged_iso
from agentsignals.model import ToolCall as Call


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
        return next((name for name in _PART_KINDS if getattr(self, name) not in (None, Raw())), "")


_PART_KINDS = ("text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode",
               "codeExecutionResult", "thought")  # fmt: skip


Content = str | Part | list[Part | str] | None


class Thought(Struct, gc=False):
    subject: str | None = None
    description: str | None = None
    timestamp: str | None = None


class ToolCall(Struct, gc=False, kw_only=True):
    """A call with its result. `timestamp` is its end."""

    id: str = ""
    name: str = ""
    args: Raw = Raw()
    result: Raw = Raw()
    status: str | None = None
    timestamp: str | None = None
    resultDisplay: Raw = Raw()


class Message(Struct, gc=False, kw_only=True):
    type: str = ""
    id: str | None = None
    timestamp: str | None = None
    content: Content = None
    displayContent: Content = None
    thoughts: list[Thought] | None = None
    tokens: dict[str, Any] | None = None
    """`input` includes `cached`; total = input + output + thoughts + tool (design/formats.md#token-usage)."""
    model: str | None = None
    toolCalls: list[ToolCall] | None = None


class Chat(Document, kw_only=True):
    id: str = field(name="sessionId")
    projectHash: str | None = None
    startTime: str | None = None
    kind: str | None = None
    summary: str | None = None
    folder: str | None = None
    """The next four are set for JSON Lines: folder, line numbers of the messages, which the person rewound, and the
    number of messages at each rewind."""
    numbers: list[int] = field(default_factory=list)
    rewound: set[int] = field(default_factory=set)
    rewinds: list[int] = field(default_factory=list)


class Response(Struct, gc=False):
    id: str | None = None
    response: Raw = Raw()


class ResultPart(Struct, gc=False):
    text: str | None = None
    functionResponse: Response | None = None


class Arguments(Struct, gc=False, kw_only=True):
    file_path: str | None = None
    absolute_path: str | None = None
    dir_path: str | None = None
    directory: str | None = None
    content: str | None = None
    old_string: str | None = None
    new_string: str | None = None


class FileDiff(Struct, gc=False):
    """An edit as the client shows it. The old and new text of the file are not decoded."""

    fileDiff: str
    filePath: str | None = None
    isNewFile: bool | None = None


class Header(Struct, gc=False, kw_only=True):
    sessionId: str | None = None
    projectHash: str | None = None
    startTime: str | None = None
    kind: str | None = None
    summary: str | None = None
    directories: object = None
    messages: list[Raw] | None = None


class Line(Struct, gc=False, kw_only=True):
    id: object = None
    type: object = None
    content: Raw = Raw()
    sessionId: object = None
    set: Header | None = field(default=None, name="$set")
    rewind: str | None = field(default=None, name="$rewindTo")
    snapshot: object = field(default=None, name="$snapshot")


_SHA256_DIGITS = 64
_CONTEXT, _SUMMARY = "<session_context>", "<state_snapshot>"
_FOLDER = re.compile(r"Workspace Directories:\*{0,2}\s*\n\s*-\s+([^\n]+)")
_DENIED = ("User denied execution", "User did not allow tool call")
_BY_POLICY = "denied by policy"
_PLAN_REFUSED = re.compile(
    r"Plan rejected\. (?:User feedback: (.*?)(?:\n\nThe plan is stored at|\Z)|No feedback)"
    r"|User cancelled the plan approval dialog",
    re.DOTALL,
)
"""Results of a successful `exit_plan_mode` whose plan the person refused."""
_HEAD = 300
_CANCELLED = "Request cancelled."
"""Notice that the person stopped the agent."""
REFERENCED = "--- Content from referenced files ---"
"""The client puts files that a prompt names with `@` after this line."""
_SENT_BY_CLIENT = "Please continue."
"""Sent by the client when it finds that the model should go on."""


def _text(content: Content) -> str:
    """Return the visible text of an answer. Its parts are pieces of one text."""
    return "".join(p.text for p in _parts(content) if p.text and p.thought is not True)


def _parts(content: Content) -> list[Part]:
    if content is None:
        return []
    if isinstance(content, str | Part):
        content = [content]
    return [Part(text=p) if isinstance(p, str) else p for p in content]


def _result_text(call: ToolCall) -> str:
    """Return what the model received from a call.

    A rewritten history files the answers of sibling calls with each of them: the one with the call's id counts.
    """
    result = decoded(call.result, list[ResultPart | str] | ResultPart | str | None)
    if result is None or isinstance(result, str):
        return result or (
            "" if not call.result or bytes(call.result) == b"null" else bytes(call.result).decode("utf-8", "replace")
        )
    parts = result if isinstance(result, list) else [result]
    own = [p for p in parts if isinstance(p, ResultPart) and p.functionResponse and p.functionResponse.id == call.id]
    texts: list[str] = []
    for part in own or parts:
        if isinstance(part, str) or part.functionResponse is None:
            texts.append(part if isinstance(part, str) else part.text or "")
        else:
            raw = part.functionResponse.response
            answer = decoded(raw, Any)
            output = error if (error := inside(answer, "error")) is not None else inside(answer, "output")
            texts.append(as_text(output) if output is not None else bytes(raw).decode("utf-8", "replace"))
    return "\n".join(filter(None, texts))


# JSON Lines (from 0.40): a message is written again, whole, when something of it changes: the last version counts, at
# its first place. `$rewindTo` takes back a message and all after it. `$set` changes the header. Its `messages` are what
# the model sees from now on, not what was said: after a compression a summary and copies under new ids, before the
# first prompt the client's own text about the machine.


def _is_log(data: bytes) -> bool:
    """Return whether the file is JSON Lines: one of the first lines is an object, whatever torn line precedes it.

    A line with `messages` may be a whole chat of the older form: then another object must follow.
    """
    end = -1
    for _ in range(MAX_RECORDS):  # a first prompt may be longer than the head
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


def _line(data: memoryview | bytes) -> Message | Header | str | None:
    """Decode a line: a message, the header or a change of it, the message rewound to, or None for another kind."""
    line: Line = decoder(Line).decode(data)
    if line.rewind is not None or line.set is not None:
        return line.rewind if line.rewind is not None else line.set
    if isinstance(line.sessionId, str) or line.snapshot is True:
        header: Header = decoder(Header).decode(data)
        return header
    named = isinstance(line.id, str), isinstance(line.type, str)
    if all(named) or (any(named) and line.content):  # an odd id or kind costs no message
        message: Message = decoder(Message).decode(data)
        return message
    return None


class Log:
    def __init__(self, source: Input) -> None:
        self.artifact = source.artifact
        self.chat = Chat(id="", numbers=[], rewound=set(), rewinds=[])
        self.directories: object = None
        self.places: dict[str, int] = {}
        """Index of each message by id. Copies have that of their original."""
        self.messages: list[Message | None] = []
        self.has_messages = False
        """True once a message was logged by itself."""
        for number, record in lines(source.data, source.artifact, _line):
            saw(source.artifact, self.take(number, record))

    def take(self, number: int, record: Message | Header | str | None) -> str:
        """Add a line. Return its kind."""
        if record is None:
            return "other"
        if isinstance(record, str):
            if (at := self.places.get(record)) is not None:
                self.chat.rewound.update(range(at, len(self.messages)))
                self.chat.rewinds.append(len(self.messages))
            return "$rewindTo"
        if isinstance(record, Message):
            self.has_messages = True
            self.add(number, record)
            return f"message.{record.type}"
        first = not self.chat.id
        self.chat.id, self.directories = record.sessionId or self.chat.id, record.directories or self.directories
        for name in ("projectHash", "startTime", "kind", "summary"):
            if (value := getattr(record, name)) is not None:
                setattr(self.chat, name, value)
        if record.messages is None:
            return "header" if first else "$set"
        # What the model sees from now on. Once messages were logged by themselves, only a summary is new. Until then
        # all of it is: the client's text about the machine, or everything, as some writers log it.
        by_content = {_content_key(m): n for n, m in enumerate(self.messages) if m is not None}
        messages = each(record.messages, decoder(Message).decode, self.artifact)
        tally(self.artifact, "$set.message", [None for m in messages if m is None])
        for message in messages:
            if message is None:
                continue
            if message.id in self.places:
                if not self.has_messages:  # else an older output may be blanked in the copy, to save tokens
                    self.add(number, message)
            elif (same := by_content.get(_content_key(message))) is not None:
                self.places[message.id or ""] = same
            elif not self.has_messages or _text(message.content).lstrip().startswith(_SUMMARY):
                self.add(number, message)
        return "$set.messages"

    def add(self, number: int, message: Message) -> None:
        at = self.places.get(message.id or "")
        if at is not None and at not in self.chat.rewound:
            self.messages[at] = message
            return
        self.places[message.id or ""] = len(self.messages)
        self.messages.append(message)
        self.chat.numbers.append(number)

    @property
    def says_something(self) -> bool:
        """False for the file that a resumed chat opens beside its own: it has the client's context alone."""
        return self.has_messages or any(
            m is not None and not _text(m.content).startswith(_CONTEXT) for m in self.messages
        )

    def place(self) -> None:
        """Find the folder. The header names it by SHA-256, or, in newer versions, by a word."""
        texts = (_text(m.content) for m in self.messages if m is not None)
        context = next((text for text in texts if text.startswith(_CONTEXT)), "")
        named = _FOLDER.search(context[:HEAD_BYTES])
        listed = self.directories[0] if isinstance(self.directories, list) and self.directories else None
        project = self.chat.projectHash or ""
        for folder in (named.group(1).strip() if named else None, listed):
            if isinstance(folder, str) and (len(project) != _SHA256_DIGITS or _sha256(folder) == project):
                self.chat.folder = folder
                return


def _sha256(folder: str) -> str:
    return hashlib.sha256(folder.encode("utf-8", "replace")).hexdigest()


def _content_key(message: Message) -> tuple[str, str]:
    calls = ",".join(call.id for call in message.toolCalls or ())
    return message.type, calls or _text(message.content).strip()


class Reader(DocumentReader[Chat, Message]):
    profile, document_type, message_type = PROFILE, Chat, Message
    part_types = frozenset(_PART_KINDS)
    step: Step | None = None
    model: str | None = None
    last_thread = MAIN

    @classmethod
    def snapshots(cls, inputs: Iterable[Input]) -> Iterator[Snapshot[tuple[Chat, Messages[Message]]]]:
        for source in inputs:
            if not _is_log(source.data):
                yield from super().snapshots([source])
                continue
            log = Log(source)
            if log.chat.id and log.says_something:
                log.place()
                yield Snapshot(source, (log.chat, log.messages), log.chat.id, len(log.messages))

    @staticmethod
    def role(message: Message) -> str:
        return message.type

    def begin(self) -> None:
        chat, session = self.document, self.session
        session.title, session.started_at = chat.summary, logged_iso(chat.startTime)
        self.call_ids: set[str] = set()
        self.is_subagent = chat.kind == "subagent"
        self.builder.where(_project_folder(chat, self.messages))
        self.builder.where(chat.folder)
        above, parent = posixpath.split(posixpath.dirname(self.source.artifact.path))
        if chat.numbers and self.is_subagent and posixpath.basename(above) == "chats":
            session.parent_session_id = parent  # a subagent's file lies in a folder named after its parent

    def take(self, message: Message) -> None:
        """Messages that the person rewound were paid for, but belong to no turn."""
        place = self.builder.line - 1
        self._rewind(place)
        if self.document.numbers:
            self.builder.line = self.document.numbers[place]
        thread = ABANDONED if place in self.document.rewound else MAIN
        if thread != self.last_thread:
            self.step = None
        self.last_thread = thread
        with self.aside(thread):
            super().take(message)

    def end(self) -> None:
        self._rewind(len(self.messages))

    def _rewind(self, place: int) -> None:
        while self.document.rewinds and self.document.rewinds[0] <= place:
            del self.document.rewinds[0]
            self.builder.event("rewind")

    def at(self, message: Message) -> int | None:
        return logged_iso(message.timestamp)

    def types(self, message: Message) -> list[str]:
        return [part.kind for content in (message.content, message.displayContent) for part in _parts(content)]

    def on_info(self, message: Message, at: int | None) -> None:
        text = _text(message.content)
        kind: EventKind = "api_error" if message.type == "error" else "meta"
        self.event("interrupt" if text.strip() == _CANCELLED else kind, text, at)

    on_warning = on_error = on_info

    def on_user(self, message: Message, at: int | None) -> None:
        """`displayContent` is what the person typed. `content` is what the model received, with the named files."""
        texts: list[str] = []
        for part in _parts(message.displayContent if message.displayContent is not None else message.content):
            text, is_last, _ = (part.text or "").partition(REFERENCED)
            texts.append(text.strip())
            if is_last:
                break
        prompt = "\n".join(filter(None, texts))
        if prompt == _SENT_BY_CLIENT or (prompt and (self.is_subagent or self.thread != MAIN)):
            self.event("meta", prompt, at)
        elif not self.is_subagent and self.thread == MAIN:
            self.prompt(prompt, at, attached=any(p.inlineData or p.fileData for p in _parts(message.content)))

    def on_gemini(self, message: Message, at: int | None) -> None:
        text, step = _text(message.content), self.step
        # A message with nothing but tool calls and no tokens continues the call before it, which a notice cut off.
        continues = message.tokens is None and not text and message.toolCalls
        if step is None or not continues or step.turn != self.builder.turn_index:
            step = self.step = self.builder.step(None, message.model, at, self.thread)
            step.message_id = message.id
            names = ("input", "output", "cached", "thoughts", "tool")
            fresh, output, cached, thoughts, tool = (count(inside(message.tokens, name)) for name in names)
            # As they are billed: the prompt of a built-in tool is input; `thoughts`, which the file counts apart, are
            # output.
            if any((fresh, output, cached, thoughts, tool)):
                step.input_tokens = None if fresh is None else max(fresh - (cached or 0), 0) + (tool or 0)
                step.output_tokens = None if output is None else output + (thoughts or 0)
                step.cache_read_tokens, step.reasoning_tokens = cached, thoughts
            self.model = self.builder.model_changed(self.model, message.model, at, step, self.thread)
        for thought in message.thoughts or ():
            thinking = ": ".join(filter(None, (thought.subject, thought.description)))
            self.event("thinking", thinking, logged_iso(thought.timestamp), step)
        if text:
            self.event("text", text, at, step)
        for call in message.toolCalls or ():
            self.tool_call(call, at, step)

    def tool_call(self, logged: ToolCall, at: int | None, step: Step) -> None:
        call_id = logged.id
        if not call_id or call_id in self.call_ids:
            call_id = f"{call_id or 'call'}#{len(self.call_ids)}"
        self.call_ids.add(call_id)
        args, tool = decoded(logged.args, Arguments) or Arguments(), PROFILE.tool(logged.name)
        folder = (args.dir_path or args.directory) if tool is SHELL else None
        raw = msgspec.json.format(bytes(logged.args), indent=-1) if logged.args else b"{}"
        self.builder.call(call_id, logged.name, raw, tool, at, step, step.thread, folder=folder)
        text, ended = _result_text(logged), logged_iso(logged.timestamp)
        status = outcome(logged.status, text)
        if status == "none":
            return
        refused = _PLAN_REFUSED.match(text) if status == "ok" and tool is HAND_IN else None
        error = "permission" if _BY_POLICY in text[:_HEAD] else None
        code = exit_code(text) if tool is SHELL else None
        self.result(call_id, text, "rejected" if refused else status, ended, (logged, args), code, error)
        if refused and refused[1] and step.thread == MAIN:
            self.builder.turn("rejection_feedback", refused[1].strip(), ended)

    def edit(self, call: Call, text: str, detail: Any) -> bool:
        logged, args = detail
        shown = decoded(logged.resultDisplay, FileDiff)
        if shown is None:
            has_texts = args.old_string is not None and args.new_string is not None
            hunks = [replaced(args.old_string, args.new_string)] if has_texts else [Hunk(whole_file=True)]
            self.builder.edit(call, None, "modify", hunks)
        elif shown.isNewFile and args.content is not None:
            self.builder.edit(call, shown.filePath, "create", [created(args.content)])
        else:
            hunks = unified(shown.fileDiff)
            if shown.isNewFile or (args.content and rewrites(hunks, args.content)):
                hunks = of_whole_file(hunks)
            self.builder.edit(call, shown.filePath, "create" if shown.isNewFile else "modify", hunks)
        return True


def outcome(status: str | None, text: str) -> CallStatus:
    """Return the status of a call. `cancelled` is a refusal if the person answered no. `none`: it has no result."""
    if status == "cancelled":
        return "rejected" if any(answer in text[:_HEAD] for answer in _DENIED) else "cancelled"
    return "ok" if status == "success" else "error" if status == "error" else "none"


def _project_folder(chat: Chat, messages: Messages[Message]) -> str | None:
    """Return the session's folder. The file names it only by SHA-256; a path of a call must lie in it."""
    if not chat.projectHash or len(chat.projectHash) != _SHA256_DIGITS:
        return None
    tried: set[str] = set()
    for message in messages:
        for call in (message.toolCalls if message is not None else None) or ():
            args, tool = decoded(call.args, Arguments) or Arguments(), PROFILE.tool(call.name)
            shown = decoded(call.resultDisplay, FileDiff) if tool is not None and tool.class_ == "edit" else None
            for path in (args.file_path, args.absolute_path, args.dir_path, shown.filePath if shown else None):
                pure = PurePosixPath(path or "") if (path or "").startswith("/") else PureWindowsPath(path or "")
                for folder in map(str, (pure, *pure.parents)) if pure.is_absolute() else ():
                    if folder in tried:
                        break
                    tried.add(folder)
                    if _sha256(folder) == chat.projectHash:
                        return folder
    return None


read = Reader.read
