"""Reads OpenCode sessions: exports, rows of the database and files of the older folder.

The structs hold only the fields that are read: no texts of diffs, no attached files, no metadata of most tools.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.changes.hunks import Hunk, count_lines, created, of_whole_file, unified
from agentsignals.formats import ANSWERS, ASKS, Input, Reading
from agentsignals.formats.bounds import amount, count, refuse, whole
from agentsignals.formats.conversation import Document, DocumentReader
from agentsignals.formats.documents import Messages, Snapshot, each, largest, messages_of, saw_again, tally
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.opencode import KILO, PLACEHOLDER_IDS, PROFILE, Ids, ids_of
from agentsignals.formats.records import as_text, decoded, decoder, document, saw
from agentsignals.model import Artifact, CallStatus, EditOp, EventKind, Session, Step, ToolCall, logged_ms


class Times(Struct, gc=False):
    """Milliseconds since 1970, of a session, a message, a part or a tool run."""

    created: object = None
    ran: object = None
    completed: object = None
    start: object = None
    end: object = None


def _ms(times: Times | None, name: str = "created") -> int | None:
    return logged_ms(getattr(times, name)) if times is not None else None


class Revert(Struct, gc=False):
    """The first message, or part, that the last `/undo` took back. The next prompt deletes it for good."""

    messageID: str | None = None
    partID: str | None = None


class SessionInfo(Struct, gc=False, kw_only=True):
    id: str = ""
    parentID: str | None = None
    fork_session_id: str | None = None
    directory: str | None = None
    title: str | None = None
    version: str | None = None
    time: Times | None = None
    revert: Revert | None = None


class Cache(Struct, gc=False):
    read: object = None
    write: object = None


class Tokens(Struct, gc=False):
    total: object = None
    input: object = None
    output: object = None
    reasoning: object = None
    cache: Cache | None = None


class Model(Struct, gc=False):
    modelID: str | None = None
    id: str | None = None
    """The model in records of version 2."""


class Where(Struct, gc=False):
    cwd: str | None = None
    root: str | None = None
    directory: str | None = None
    """The only one in records of version 2."""


class MessageInfo(Struct, gc=False, kw_only=True):
    """A message of either role. `summary` is true for a compaction. For a user message it is an object with files."""

    role: str = ""
    id: str | None = None
    time: Times | None = None
    agent: str | None = None
    model: Model | None = None
    modelID: str | None = None
    path: Where | None = None
    cost: object = None
    tokens: Tokens | None = None
    finish: str | None = None
    error: Raw = Raw()
    summary: Raw = Raw()


class State(Struct, gc=False, kw_only=True):
    """A tool run: `output` when it completed, `error` when it failed, neither while it runs."""

    status: str = ""
    input: Raw = Raw()
    output: object = None
    content: list[Any] | None = None
    """The output in version 2."""
    error: Raw = Raw()
    metadata: Raw = Raw()
    structured: Raw = Raw()
    """The metadata, in the first betas of version 2."""
    time: Times | None = None


class Part(Struct, gc=False, kw_only=True):
    """A part of a message. In version 2 the call's id and the tool's name are `id` and `name`."""

    id: str | None = None
    name: str | None = None
    type: str = ""
    text: str | None = None
    synthetic: bool | None = None
    ignored: bool | None = None
    time: Times | None = None
    callID: str | None = None
    tool: str | None = None
    state: State | None = None
    files: list[str] | None = None
    auto: bool | None = None
    prompt: str | None = None
    command: str | None = None
    error: Raw = Raw()


class Record(Struct, gc=False, kw_only=True):
    """A record of version 2 (packages/schema/src/session-message.ts). `type` is the role, or what happened."""

    id: str | None = None
    type: str = ""
    time: Times | None = None
    text: str | None = None
    files: list[Raw] | None = None
    agent: str | None = None
    model: Model | None = None
    content: list[Raw] | None = None
    finish: str | None = None
    cost: object = None
    tokens: Tokens | None = None
    error: Raw = Raw()
    retry: Raw = Raw()
    command: str | None = None
    output: object = None
    status: str | None = None
    reason: str | None = None
    summary: str | None = None
    outcome: str | None = None
    location: Where | None = None


class Retry(Struct, gc=False):
    at: object = None
    error: Raw = Raw()


class Message(Struct, gc=False):
    info: MessageInfo
    parts: list[Part | None]
    record: Record | None = None
    """The record of version 2 that it stands for."""


class RawMessage(Struct, gc=False):
    info: MessageInfo | None = None
    parts: list[Raw] = []
    type: str | None = None
    """Of a record of version 2, which has no `info`."""


class Export(Document, kw_only=True):
    id: str = field(name="info.id", default="")  # no key: it is in `info`
    info: SessionInfo
    places: dict[str, str] = field(default_factory=dict)
    """The artifact of each message and part by id, for a session of the folder."""


class Failure(Struct, gc=False):
    """An error. In version 2 it has a type and a message, before a name and data."""

    name: str = ""
    data: dict[str, Any] | None = None
    type: str = ""
    message: object = None


class Metadata(Struct, frozen=True, gc=False, kw_only=True):
    """Facts that a tool states with its output."""

    exit: object = None
    interrupted: object = None
    exists: object = None
    diff: object = None
    files: Raw = Raw()
    results: Raw = Raw()


class PatchedFile(Struct, gc=False):
    """A file of an `apply_patch` run. Old versions call the diff `diff`, newer ones `patch`; version 2 has `file` and
    `status`, of every edit."""

    filePath: str = ""
    file: str = ""
    movePath: str | None = None
    type: str = ""
    status: str = ""
    diff: str | None = None
    patch: str | None = None


class Arguments(Struct, frozen=True, gc=False):
    patchText: str | None = None
    content: str | None = None
    workdir: str | None = None
    command: str | None = None
    tool: str | None = None


_INVALID = "invalid"
"""The tool that answers for one that does not exist or was called with wrong arguments. It says `completed`. Its
argument `tool` is the name that the model used."""
_REFUSED = "The user rejected permission to use this specific tool call"
_FEEDBACK = "with the following feedback: "
_DISMISSED = "The user dismissed this question"
_ABORTED_TOOL = ("Tool execution aborted", "Cancelled")
_ERROR_HEAD = 200
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_OPS: dict[str, EditOp] = {
    "add": "create", "update": "modify", "delete": "delete", "move": "rename", "added": "create", "deleted": "delete",
}  # fmt: skip
_ABORTED = ("MessageAbortedError", "aborted")
_REASONING_APART = (1, 4)
"""From this version on `output` leaves reasoning out. It holds it up to 1.2.26, and does not from 1.4.3
(design/formats.md#token-usage)."""
_VERSION = re.compile(r"(\d+)\.(\d+)")
_UNCOUNTED = frozenset(("step-start", "step-finish", "snapshot", "file", "agent"))
"""Parts that leave no event. `step-finish` repeats the tokens and the cost of its message."""
SHELL_MARK = "The following tool was executed by the user"
"""Written by the client before the command of a person's `!command`."""
_KILO_PLACE = re.compile(r"/kilo[^/]*\.db//")
_Snapshot = Snapshot[tuple[Export, Messages[Message]]]


class _Folder(Struct):
    """The files of one session in the folder that OpenCode used before it had a database."""

    inputs: list[Input] = field(default_factory=list)
    info: SessionInfo | None = None
    messages: dict[str, MessageInfo] = field(default_factory=dict)
    parts: dict[str, dict[str, Part]] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    def add(self, source: Input, ids: Ids) -> None:
        self.inputs.append(source)
        self.places[ids.id] = source.artifact.artifact_id
        if ids.id.startswith("ses_"):
            kind = "session"
            self.info = document(source.data, source.artifact, decoder(SessionInfo).decode)
        elif ids.id.startswith("msg_"):
            kind = f"message.{ids.role}"
            if (message := document(source.data, source.artifact, decoder(MessageInfo).decode)) is not None:
                self.messages[ids.id] = message
        else:
            kind = f"part.{ids.type}"
            if (part := document(source.data, source.artifact, decoder(Part).decode)) is not None:
                self.parts.setdefault(ids.messageID, {})[ids.id] = part
        if not source.artifact.skipped:
            saw(source.artifact, kind)

    def snapshot(self, session_id: str) -> _Snapshot:
        began = {id_: _ms(info.time) or 0 for id_, info in self.messages.items()}
        messages: list[Message | None] = []
        for message_id in sorted(self.messages, key=lambda id_: (began[id_], id_)):
            parts = self.parts.get(message_id, {})
            messages.append(Message(self.messages[message_id], [parts[part_id] for part_id in sorted(parts)]))
        export = Export(info=self.info or SessionInfo(id=session_id), places=self.places)
        first = next((i for i in self.inputs if i.artifact.artifact_id == self.places.get(session_id)), self.inputs[0])
        return Snapshot(first, (export, messages), session_id, _size(messages))


def read(inputs: list[Input]) -> Reading:
    """Read a group of files. Of several copies of a session the fullest counts."""
    folders: dict[str, _Folder] = {}
    exports: list[Input] = []
    for source in inputs:
        if (ids := ids_of(source.data)) is not None:
            folders.setdefault(ids.session_id or "", _Folder()).add(source, ids)
        else:
            exports.append(source)
    from_folders = [folder.snapshot(session_id) for session_id, folder in folders.items()]
    used = largest([*Reader.snapshots(exports), *from_folders])
    for snapshot in from_folders:
        if all(snapshot is not u for u in used):
            for source in folders[snapshot.session_id].inputs:
                source.artifact.note = snapshot.source.artifact.note
                saw_again(source.artifact)
    originals, keys = _without_copies(used)
    reading = Reading(keys=keys)
    for snapshot in used:
        session = Reader(snapshot).build()
        original = originals.get(id(snapshot))
        if original is not None and not session.events:
            refuse(snapshot.source.artifact, "session_of_copies")
            continue
        session.parent_session_id = session.parent_session_id or original
        reading.sessions.append(session)
    return reading


def _without_copies(snapshots: list[_Snapshot]) -> tuple[dict[int, str], set[str]]:
    """Take out of forks the messages that they copied. A fork copies them under new ids, as they are: with their times,
    before its own, and tokens. They stay in the session that was made first.

    Return the session that each fork copied first, and keys by which the files of a fork and its original meet.
    """
    originals: dict[int, str] = {}
    keys: set[str] = set()
    seen: dict[tuple[object, ...], str] = {}
    for snapshot in sorted(snapshots, key=_made_at):
        export, messages = snapshot.document
        if export.info.parentID is not None:
            continue
        marks = [None if message is None else _mark(message) for message in messages]
        answers = [mark for mark in marks if mark is not None and mark[0] == "assistant" and any(mark[_USED:])]
        times = [at for m in messages if m is not None and (at := _ms(m.info.time))]
        is_fork = bool(times) and times[0] < _made_at(snapshot)[0]  # it was made after its first message
        if answers:
            key = f"answer:{hashlib.blake2b(repr(answers[0]).encode(), digest_size=12).hexdigest()}"
            keys |= {ANSWERS + key, ASKS + key} if is_fork else {ANSWERS + key}
        if is_fork and any(mark in seen for mark in answers):
            originals[id(snapshot)] = next(seen[mark] for mark in answers if mark in seen)
            copied = [n for n, mark in enumerate(marks) if mark in seen]
            for n in copied:
                messages[n] = None
            saw(snapshot.source.artifact, "repeated", len(copied))
        seen |= {mark: seen.get(mark, snapshot.session_id) for mark in marks if mark is not None}
    return originals, keys


def _made_at(snapshot: _Snapshot) -> tuple[int, str]:
    at = _ms(snapshot.document[0].info.time)
    return 2**62 if at is None else at, snapshot.session_id


_USED = 4
"""Place in an answer's mark where its tokens begin."""


def _mark(message: Message) -> tuple[object, ...] | None:
    """Return what a message and its copies have in common. None for one without a time."""
    info = message.info
    if info.time is None or (at := _ms(info.time)) is None:
        return None
    if info.role == "assistant":
        used = _counted(info.tokens) if info.tokens is not None else ()
        return info.role, at, _ms(info.time, "completed"), info.modelID, *used
    texts = tuple(part.text for part in message.parts if part is not None and part.type == "text")
    return info.role, at, texts


def _counted(tokens: Tokens) -> tuple[int | None, ...]:
    cache = tokens.cache or Cache()
    return tuple(map(count, (tokens.input, tokens.output, tokens.reasoning, cache.read, cache.write)))


def _size(messages: Messages[Message]) -> int:
    return len(messages) + sum([len(m.parts) for m in messages if m is not None])


class Reader(DocumentReader[Export, Message]):
    """An assistant message is a model call."""

    profile, document_type, message_type = PROFILE, Export, Message

    @classmethod
    def snapshots(cls, inputs: Iterable[Input]) -> Iterator[_Snapshot]:
        for source in inputs:
            read = read_document(source, partial(cls._decode, artifact=source.artifact), "messages")
            if read is None:
                continue
            export, messages = read
            tally(source.artifact, "message", [None if m is None else m.info.role for m in messages])
            parts = (part for m in messages if m is not None for part in m.parts)
            tally(source.artifact, "part", [None if p is None else p.type for p in parts])
            own_id = "" if export.info.id in PLACEHOLDER_IDS else export.info.id
            session_id = own_id or source.session_hint or source.artifact.artifact_id
            yield Snapshot(source, read, session_id, _size(messages))

    @classmethod
    def _decode(cls, data: memoryview | bytes, artifact: Artifact) -> tuple[Export, Messages[Message]]:
        def message(raw: memoryview | bytes, artifact: Artifact) -> Message:
            held = decoder(RawMessage).decode(raw)
            if held.info is not None:
                return Message(held.info, each(held.parts, decoder(Part).decode, artifact))
            if held.type is None:
                raise msgspec.ValidationError("Object missing required field `info`")
            return _second(decoder(Record).decode(raw), artifact)

        export = decoder(Export).decode(data)
        return export, _once(messages_of(data, export.messages, message, artifact))

    def begin(self) -> None:
        info, session = self.document.info, self.session
        if _KILO_PLACE.search(self.source.artifact.path):
            session.agent = KILO.agent
        session.title, session.agent_version = info.title, info.version
        session.parent_session_id = info.parentID or info.fork_session_id
        session.started_at = _ms(info.time)
        self.is_subagent = info.parentID is not None
        self.builder.where(info.directory)
        version = _VERSION.match(info.version or "")
        self.reasoning_apart = version is None or (int(version[1]), int(version[2])) >= _REASONING_APART
        self.call_ids: set[str] = set()
        self.feedback: list[tuple[str, int | None]] = []
        """Reasons that the person gave when refusing calls of the current message."""
        self.refused: tuple[str, int | None] | None = None
        """A call of it that was refused without words."""
        self.just_compacted = self.shell_by_person = False
        """`shell_by_person`: the next message runs a command that the person typed."""
        self.trigger: str | None = None
        """Cause of the next compaction."""
        self.model: str | None = None
        self.where: tuple[str | None, str | None] = None, None
        self.agent: str | None = None
        self.busy_until: int | None = None
        """End of the last agent message. Prompts before it had to wait."""
        self.last_completed = 0
        revert = info.revert or Revert()
        self.undone_from, self.undone = revert.partID or revert.messageID, -1

    def place(self, record_id: str | None) -> None:
        """Name the file of the next message or part, if each has its own."""
        if self.undone < 0 and record_id is not None and record_id == self.undone_from:
            self.undone = len(self.session.events)
        self.builder.artifact_id = self.document.places.get(record_id or "", self.builder.artifact_id)

    def take(self, message: Message) -> None:
        if self.document.places:
            self.builder.line = 1
        info = message.info
        at = _ms(info.time)
        self.place(info.id)
        if info.role == "user":
            self.on_user(message, at)
        elif info.role == "assistant":
            self.on_assistant(message, at)
            completed = _ms(info.time, "completed")
            self.last_completed = max(self.last_completed, completed or 0)
            self.busy_until = None if info.error else completed
        elif message.record is None or not self.on_record(message.record, at):
            self.event("unknown", f"message of role {info.role or 'unknown'}", at)

    def on_record(self, record: Record, at: int | None) -> bool:
        """Take a record of version 2 that is no message of either side. Return False for an unknown one."""
        completed = _ms(record.time, "completed")
        if record.type in ("synthetic", "system", "skill"):
            self.event("meta", record.text or "", at)
        elif record.type == "agent-switched":
            if record.agent and self.agent and record.agent != self.agent:
                self.event("phase", record.agent, at)
            self.agent = record.agent or self.agent
        elif record.type == "location-switched":
            self.builder.where(record.location.directory if record.location is not None else None)
        elif record.type == "shell":
            self.event("user_shell", record.command or "", at)
            output: Any = record.output  # a text, or an object with it
            output = output.get("output", output.get("text", output)) if isinstance(output, dict) else output
            self.event("command_output", as_text(output), completed or at)
        elif record.type == "compaction":
            model = record.model.id if record.model is not None else None
            info = MessageInfo(id=record.id, modelID=model, tokens=record.tokens, cost=record.cost)
            step = self.model_call(info, at) if record.tokens is not None or record.cost else None
            self.event("compaction", json.dumps({"trigger": record.reason} if record.reason else {}), at, step)
            self.event("meta", record.summary or "", at, step)
            if record.error:
                self.event("api_error", _failure_text(record.error), at, step)
        elif record.type == "idle":
            events = self.session.events
            if record.outcome == "interrupted" and not (events and events[-1].kind == "interrupt"):
                self.event("interrupt", "", at)
        elif record.type != "model-switched":  # each answer names its model
            return False
        return True

    def end(self) -> None:
        if self.undone >= 0:
            self.builder.abandon(self.undone)
            self.event("rewind", None)

    def build(self) -> Session:
        session = super().build()
        if session.ended_at is not None:
            session.ended_at = max(session.ended_at, self.last_completed)
        return session

    # -- the person ----------------------------------------------------------------------------------------------

    def on_user(self, message: Message, at: int | None) -> None:
        info = message.info
        if info.agent and self.agent and info.agent != self.agent:
            self.event("phase", info.agent, at)  # the person switched modes (`build`, `plan`, …)
        self.agent = info.agent or self.agent
        parts = [p for p in message.parts if p is not None]
        typed = [p for p in parts if _is_typed(p) and p.text]
        words: list[str] = []
        for part in typed:
            word = (part.text or "").strip()
            inner = word[1:-1]  # undo the quotes that `opencode run` puts around arguments with blanks
            is_quoted = word[:1] == word[-1:] == '"' and " " in inner and inner[-1:] != "\\"
            words.append(inner.replace('\\"', '"') if is_quoted and '"' not in inner.replace('\\"', "") else word)
        text = "\n".join(words).strip()
        if typed:
            self.place(typed[0].id)
        if not self.is_subagent:
            self.turn(parts, text, at, info.model.modelID if info.model is not None else None)
        elif text:
            self.event("meta", text, at)
        for part in parts:
            self.place(part.id)
            if part.type == "text":
                if part.text == SHELL_MARK and part.synthetic:
                    self.shell_by_person = True
                elif not _is_typed(part):
                    self.event("meta", part.text or "", at)
            elif part.type == "compaction":
                self.trigger = None if part.auto is None else "auto" if part.auto else "manual"
            elif part.type == "subtask":
                self.event("meta", part.prompt or "", at)
            elif part.type not in ("file", "agent"):
                self.event("unknown", part.type or "part without a type", at)

    def turn(self, parts: list[Part], text: str, at: int | None, model: str | None) -> None:
        """Record the one turn of a user message, if the person wrote or attached something."""
        subtask, turns = next((p for p in parts if p.type == "subtask"), None), self.session.turns
        # After a compaction that overflowed, the client repeats the last prompt in the person's name.
        is_replayed = self.just_compacted and bool(turns) and turns[-1].text == text
        if subtask is not None and subtask.command:
            self.builder.turn("slash_command", f"/{subtask.command} {text}".strip(), at, model)
        elif text and is_replayed:
            self.event("meta", text, at)
        elif text or (subtask is not None and subtask.prompt):
            busy = self.busy_until is not None and at is not None and at < self.busy_until
            prompt = text or (subtask and subtask.prompt) or ""
            self.builder.prompt(prompt, at, "queued_prompt" if busy else "prompt", model=model)
        elif any(p.type == "file" for p in parts):
            self.builder.turn("attachment", "", at, model)

    # -- the agent -----------------------------------------------------------------------------------------------

    def on_assistant(self, message: Message, at: int | None) -> None:
        info = message.info
        if info.path is not None and (info.path.cwd, info.path.root) != self.where:
            self.where = info.path.cwd, info.path.root
            if info.path.root and info.path.root != "/":  # "/" when there is no working tree
                self.builder.where(info.path.root)
            self.builder.where(info.path.cwd)
        if self.shell_by_person:  # `!command`: logged as a tool run of the agent, which had no part in it
            self.shell_by_person = False
            for part in message.parts:
                if part is not None and part.state is not None:
                    self.event("user_shell", (decoded(part.state.input, Arguments) or Arguments()).command or "", at)
                    self.event("command_output", as_text(part.state.output), at)
            return
        self.just_compacted = bytes(info.summary) == b"true" and not info.error
        # By a tool run and nothing else the client runs a subagent for a command: that is no call of the model.
        is_run = bool(message.parts) and all(p is not None and p.type == "tool" for p in message.parts)
        used = info.tokens is not None and any((info.tokens.input, info.tokens.output, info.tokens.reasoning))
        step = self.model_call(info, at) if info.error or not is_run or used else None
        if step is not None and not self.just_compacted:
            self.model = self.builder.model_changed(self.model, step.model, step.timestamp, step, self.thread)
        if self.just_compacted:
            self.event("compaction", json.dumps({"trigger": self.trigger} if self.trigger else {}), at, step)
            self.trigger = None
        for part in message.parts:
            if part is not None:
                self.place(part.id)
                self.part(part, at, step)
        self.place(info.id)
        self.refusals()
        completed = _ms(info.time, "completed")
        if info.error:
            kind: EventKind = "interrupt" if _failure(info.error)[0] in _ABORTED else "api_error"
            self.event(kind, _failure_text(info.error), completed if completed is not None else at, step)
        elif (
            step is not None
            and not (info.finish or completed)
            and not any(p is not None and p.type not in _UNCOUNTED for p in message.parts)
        ):  # attempts that a provider turned away leave nothing else
            self.event("meta", "not finished: no answer, no end and no reason is recorded", at, step)

    def model_call(self, info: MessageInfo, at: int | None) -> Step:
        """Return a step of its own, since ids may be REDACTED, and many messages then share one."""
        step = self.builder.step(None, info.modelID, at)
        step.message_id = None if info.id in PLACEHOLDER_IDS else info.id
        step.stop_reason = info.finish
        if info.tokens is not None:
            _charge(step, info.tokens, self.reasoning_apart)
        if info.cost:  # 0 is what a subscription or a free model shows
            step.cost_usd, step.cost_source = amount(info.cost), "recorded"
        return step

    def part(self, part: Part, at: int | None, step: Step | None) -> None:
        began = _ms(part.time, "start")
        when = began if began is not None else at
        if part.type == "tool":
            self.tool_run(part, when, step)
        elif part.type == "text":
            is_machine = part.synthetic or part.ignored or self.just_compacted
            self.event("meta" if is_machine else "text", part.text or "", when, step)
        elif part.type == "reasoning":
            self.event("thinking", part.text or "", when, step)
        elif part.type == "patch":
            self.event("meta", "\n".join(["files changed since the step began:", *(part.files or ())]), at, step)
        elif part.type == "retry":
            failed = _ms(part.time)
            self.event("api_error", _failure_text(part.error), failed or at, step)
        elif part.type not in _UNCOUNTED:
            self.event("unknown", part.type or "part without a type", when, step)

    def tool_run(self, part: Part, at: int | None, step: Step | None) -> None:
        state, logged = part.state if part.state is not None else State(), None
        is_invalid = part.tool == _INVALID
        if is_invalid:
            logged = decoded(state.input, Arguments)
        name = (logged.tool if logged is not None else None) or part.tool or ""
        tool = PROFILE.tool(name)
        args = Arguments()
        if tool is not None and tool.class_ in ("edit", "shell"):
            args = decoded(state.input, Arguments) or args
        paths = set(_PATCHED.findall(args.patchText)) if args.patchText else set()
        began = _ms(state.time, "start")
        call_id = part.callID
        if call_id is None or call_id in PLACEHOLDER_IDS or call_id in self.call_ids:  # REDACTED stands for many
            call_id = f"{call_id or 'call'}#{len(self.session.tool_calls)}"
        else:
            self.call_ids.add(call_id)
        arguments = msgspec.json.format(bytes(state.input), indent=-1) if state.input else b"{}"
        path = paths.pop().strip() if len(paths) == 1 else None
        call = self.builder.call(
            call_id, name, arguments, tool, began if began is not None else at, step, path=path, folder=args.workdir
        )
        if state.status not in ("completed", "error"):
            return
        ended = _ms(state.time, "end")
        metadata = Metadata()
        if call.shell_kind is not None or call.class_ == "edit" or state.status == "error":
            metadata = decoded(state.metadata, Metadata) or metadata
        text = as_text(state.output if state.status == "completed" else decoded(state.error, Any))
        # `completed` tells no exit code, `error` mixes failures and refusals.
        head = text[:_ERROR_HEAD]
        status: CallStatus = "ok" if state.status == "completed" and not is_invalid else "error"
        if status == "error" and (_REFUSED in head or _DISMISSED in head):
            status = "rejected"
        elif status == "error" and (metadata.interrupted is True or head.removeprefix("Error: ") in _ABORTED_TOOL):
            status = "cancelled"
        self.builder.result(call_id, text, status, ended, call.thread, whole(metadata.exit))
        if status == "rejected":
            feedback = text.partition(_FEEDBACK)[2].strip()
            if feedback:
                self.feedback.append((feedback, ended))
            else:
                self.refused = (text, ended)
        elif status == "ok" and call.class_ == "edit":
            self.edits(call, metadata, args)

    def refusals(self) -> None:
        """Record the refusals of a message. Refusing one call rejects all that wait: that is one interruption."""
        for feedback, at in self.feedback:
            if self.is_subagent:
                self.event("meta", feedback, at)
            else:
                self.builder.turn("rejection_feedback", feedback, at)
        if self.refused is not None and not self.feedback:
            self.event("interrupt", *self.refused)
        self.feedback, self.refused = [], None

    def edits(self, call: ToolCall, metadata: Metadata, args: Arguments) -> None:
        if metadata.files:
            patched = decoded(metadata.files, list[PatchedFile])
            if patched is None:
                self.builder.edit(call, None, "modify", [])
            for file in patched or ():
                op = _OPS.get(file.type or file.status, "modify")
                hunks = unified(file.diff or file.patch or "")
                own_path = file.filePath or file.file
                if op == "rename":
                    self.builder.edit(call, own_path, "delete", [])
                path = file.movePath or own_path if op == "rename" else own_path
                self.builder.edit(call, path, op, of_whole_file(hunks) if op in ("create", "delete") else hunks)
        elif call.name == "write" and metadata.exists is False:  # it logs no diff
            self.builder.edit(call, None, "create", [created(args.content or "")])
        elif call.name == "write":
            last = max(count_lines(args.content or ""), 1)
            self.builder.edit(call, None, "modify", [Hunk(start_line=1, end_line=last, whole_file=True)])
        else:
            # The path, if the call names none, and the diff of each file. A `multiedit` logs the diff of each of its
            # edits. An early `patch` logs one text, each file after `Index: `.
            results = (decoded(metadata.results, list[Metadata]) or []) if metadata.results else [metadata]
            diffs: list[tuple[str | None, str]] = [(None, r.diff) for r in results if isinstance(r.diff, str)]
            if len(diffs) == 1 and "\nIndex: " in diffs[0][1]:
                files = [f for f in f"\n{diffs[0][1]}".split("\nIndex: ") if f.strip()]
                diffs = [(f.split("\n", 1)[0].strip(), f) for f in files]
            for changed_path, diff in diffs or [(None, "")]:
                hunks = unified(diff)
                op = "create" if "\n@@ -0,0 " in diff else "delete" if " +0,0 @@" in diff else "modify"
                self.builder.edit(call, changed_path, op, hunks if op == "modify" else of_whole_file(hunks))


def _failure(raw: Raw) -> tuple[str, str]:
    error = decoded(raw, Failure)
    if error is None:
        return "", bytes(raw).decode("utf-8", "replace")
    if error.type:
        return error.type, str(error.message or "")
    return error.name, str((error.data or {}).get("message") or "")


def _failure_text(raw: Raw) -> str:
    return ": ".join(filter(None, _failure(raw)))


def _charge(step: Step, tokens: Tokens, reasoning_apart: bool) -> None:
    """Set the tokens of a message. An aborted call shows zeros, which mean nothing.

    `output_tokens` includes reasoning, as in every other format: where `output` leaves it out, it is added. The total
    tells which is the case, or the client's version if the total fits neither.
    """
    fresh, output, reasoning, read, write = _counted(tokens)
    if not any((fresh, output, reasoning, read, write)):
        return
    step.input_tokens, step.cache_read_tokens, step.cache_write_tokens = fresh, read, write
    step.output_tokens, step.reasoning_tokens = output, reasoning
    if output is None or not reasoning:
        return
    inside = (fresh or 0) + output + (read or 0) + (write or 0)
    total = count(tokens.total)
    is_apart = reasoning_apart if total not in (inside, inside + reasoning) else total != inside
    if is_apart or reasoning > output:
        step.output_tokens = output + reasoning


def _second(record: Record, artifact: Artifact) -> Message:
    """Return a record of version 2 as the message of version 1 that says the same."""
    model = record.model.id if record.model is not None else None
    info = MessageInfo(role=record.type, id=record.id, time=record.time, agent=record.agent)
    parts: list[Part | None] = []
    if record.type == "user":
        parts = [Part(type="text", text=record.text), *(Part(type="file") for _ in record.files or ())]
    elif record.type == "assistant":
        info.modelID, info.cost, info.tokens = model, record.cost, record.tokens
        info.finish, info.error = record.finish, record.error
        parts = [
            None if part is None else _second_part(part)
            for part in each(record.content or [], decoder(Part).decode, artifact)
        ]
        if (retry := decoded(record.retry, Retry) if record.retry else None) is not None:
            parts.append(Part(type="retry", time=Times(created=retry.at), error=retry.error))
    return Message(info, parts, record)


def _second_part(part: Part) -> Part:
    """Return a part of the second version's tables in the shape of the first's."""
    times = part.time or Times()
    time = Times(start=times.ran if times.ran is not None else times.created, end=times.completed)
    if (held := part.state) is None:
        return Part(type=part.type, text=part.text, time=time)
    if held.content is not None:
        texts = []
        for block in held.content:  # of images, files, and what is not known only the type is kept
            fields = block if isinstance(block, dict) else {}
            texts.append(as_text(fields["text"]) if "text" in fields else f"[{as_text(fields.get('type', 'part'))}]")
        held.output = "\n".join(texts)
    held.error = Raw(msgspec.json.encode(_failure(held.error)[1])) if held.error else held.error
    held.metadata, held.time = held.metadata or held.structured, time
    return Part(type=part.type, callID=part.id, tool=part.name, state=held, time=time)


def _once(messages: Messages[Message]) -> Messages[Message]:
    """Leave out messages of version 1 that version 2 took over: of one id, or of one role and time."""
    seconds = [m.info for m in messages if m is not None and m.record is not None]
    taken = {info.id for info in seconds} | {_moment(info) for info in seconds}
    return [
        m for m in messages
        if m is None or m.record is not None or (m.info.id not in taken and _moment(m.info) not in taken)
    ] if seconds else messages  # fmt: skip


def _moment(info: MessageInfo) -> tuple[object, ...]:
    return info.role, _ms(info.time) or info.id


def _is_typed(part: Part) -> bool:
    """`synthetic` text is the client's. `ignored` text is a plugin's note that the model never sees."""
    return part.type == "text" and part.synthetic is not True and part.ignored is not True
