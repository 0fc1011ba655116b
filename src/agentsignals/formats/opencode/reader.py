"""The OpenCode sessions of one family, each from its fullest copy: the person's side of it, and the order of things.

An export, the rows of the database (`database`) and the files of the older folder (`storage`) say the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.changes.hunks import Hunk, count_lines, created, of_whole_file, unified
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import amount, whole
from agentsignals.formats.bounds import count as count_of
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.documents import Snapshot, as_text, each, largest, saw_again, tally
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.opencode import KILO, PROFILE, UNNAMED, Ids, ids_of
from agentsignals.formats.records import UNREADABLE, document, saw
from agentsignals.model import Artifact, CallStatus, EditOp, EventKind, Session, Step, ToolCall, logged_ms

# The records of an OpenCode export as typed structs (design/formats.md#opencode): only what is read.
#
# What is never decoded: `before`/`after` file texts of diffs, attached files as data URLs, the metadata of most
# tools.

# No annotations as text: the decoder would evaluate each by itself, which takes longer than all else here.


class Times(Struct, gc=False):
    """Milliseconds since 1970, of a session, a message, a part or a tool run."""

    created: object = None
    completed: object = None
    start: object = None
    end: object = None


class SessionInfo(Struct, gc=False, kw_only=True):
    id: str = ""
    parentID: str | None = None
    directory: str | None = None
    title: str | None = None
    version: str | None = None
    time: Times | None = None


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


class Where(Struct, gc=False):
    cwd: str | None = None
    root: str | None = None


class MessageInfo(Struct, gc=False, kw_only=True):
    """A message of either role. `summary` is true for a compaction, an object with whole files for a user message."""

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
    error: object = None
    metadata: Raw = Raw()
    time: Times | None = None


class Part(Struct, gc=False, kw_only=True):
    """A part of a message, of any type."""

    id: str | None = None
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


class Message(Struct, gc=False):
    info: MessageInfo
    parts: list[Part | None]


class Export(Struct):
    info: SessionInfo
    messages: list[Message | None]


class _RawMessage(Struct, gc=False):
    info: MessageInfo
    parts: list[Raw] = []


class _RawExport(Struct, gc=False):
    info: SessionInfo
    messages: list[Raw] = []


class _Reason(Struct, gc=False):
    message: object = None


class _Failure(Struct, gc=False):
    name: str = ""
    data: _Reason | None = None


_whole = msgspec.json.Decoder(Export).decode
_raw_export = msgspec.json.Decoder(_RawExport).decode
_raw_message = msgspec.json.Decoder(_RawMessage).decode
_part = msgspec.json.Decoder(Part).decode
_failure = msgspec.json.Decoder(_Failure).decode


def decode(data: memoryview | bytes, artifact: Artifact) -> Export:
    """An export; when a record in it is odd, record by record, with None for what can't be read."""
    try:
        return _whole(data)
    except msgspec.ValidationError:
        export = _raw_export(data)
        return Export(export.info, each(export.messages, partial(_message, artifact=artifact), artifact))


def failure(raw: Raw) -> tuple[str, str]:
    """Name and message of an error object."""
    try:
        error = _failure(raw)
    except UNREADABLE:
        return "", bytes(raw).decode("utf-8", "replace")
    return error.name, str(error.data.message or "") if error.data is not None else ""


def _message(data: memoryview | bytes, artifact: Artifact) -> Message:
    message = _raw_message(data)
    return Message(message.info, each(message.parts, _part, artifact))


# The folder in which OpenCode kept its sessions before it had a database: a file a session, message and part.


class Stored(Export):
    """A session of the folder, as its export would be."""

    inputs: list[Input] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    """The artifact of each message and part, by id."""


class _Folder(Struct):
    inputs: list[Input] = field(default_factory=list)
    info: SessionInfo | None = None
    messages: dict[str, MessageInfo] = field(default_factory=dict)
    parts: dict[str, dict[str, Part]] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)


_session = msgspec.json.Decoder(SessionInfo).decode
_message_storage = msgspec.json.Decoder(MessageInfo).decode


def snapshots(files: Iterable[tuple[Input, Ids]]) -> list[Snapshot[Export]]:
    """The sessions of these files. Messages stand in the order they were begun, parts in that of their ids."""
    folders: dict[str, _Folder] = {}
    for source, ids in files:
        folder = folders.setdefault(ids.session_id or "", _Folder())
        folder.inputs.append(source)
        folder.places[ids.id] = source.artifact.artifact_id
        _take(folder, source, ids)
    made: list[Snapshot[Export]] = []
    for session_id, folder in folders.items():
        messages: list[Message | None] = [
            Message(info, [folder.parts[message_id][part_id] for part_id in sorted(folder.parts.get(message_id, ()))])
            for message_id, info in sorted(folder.messages.items(), key=_begun)
        ]
        info = folder.info or SessionInfo(id=session_id)
        first = next((i for i in folder.inputs if i.artifact.artifact_id == folder.places.get(session_id)), None)
        stored = Stored(info, messages, folder.inputs, folder.places)
        made.append(Snapshot(first or folder.inputs[0], stored, session_id, size(stored)))
    return made


def size(export: Export) -> int:
    """How much of a session is there: its messages and their parts."""
    return len(export.messages) + sum([len(m.parts) for m in export.messages if m is not None])


def repeated(snapshots: Iterable[Snapshot[Export]], kept: list[Snapshot[Export]]) -> None:
    """Says of every file of a session that was read from elsewhere that it holds nothing of its own."""
    for snapshot in snapshots:
        if isinstance(snapshot.document, Stored) and all(snapshot is not k for k in kept):
            for source in snapshot.document.inputs:
                source.artifact.note = snapshot.source.artifact.note
                saw_again(source.artifact)


def _take(folder: _Folder, source: Input, ids: Ids) -> None:
    if ids.id.startswith("ses_"):
        folder.info = document(source.data, source.artifact, _session)
        kind = "session"
    elif ids.id.startswith("msg_"):
        message = document(source.data, source.artifact, _message_storage)
        kind = f"message.{ids.role}"
        if message is not None:
            folder.messages[ids.id] = message
    else:
        part = document(source.data, source.artifact, _part)
        kind = f"part.{ids.type}"
        if part is not None:
            folder.parts.setdefault(ids.messageID, {})[ids.id] = part
    if not source.artifact.skipped:
        saw(source.artifact, kind)


def _begun(message: tuple[str, MessageInfo]) -> tuple[int, str]:
    message_id, info = message
    return (logged_ms(info.time.created) or 0) if info.time is not None else 0, message_id


# OpenCode's tools: what they are in shared words, what became of a run, and which lines it changed.

INVALID = "invalid"
"""The tool that answers in place of one that does not exist, or was called with arguments it does not take. It says
`completed`; what the model wanted is its argument `tool`."""
REFUSED = "The user rejected permission to use this specific tool call"
_FEEDBACK = "with the following feedback: "
_DISMISSED = "The user dismissed this question"
_ABORTED = ("Tool execution aborted", "Cancelled")
_ERROR_HEAD = 200

_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_OPS: dict[str, EditOp] = {"add": "create", "update": "modify", "delete": "delete", "move": "rename"}


class Metadata(Struct, frozen=True, gc=False, kw_only=True):
    """What tools say about a run beside its output."""

    exit: object = None
    interrupted: object = None
    exists: object = None
    diff: object = None
    files: Raw = Raw()
    results: Raw = Raw()


class PatchedFile(Struct, gc=False):
    """A file of an `apply_patch` run; the diff is called `diff` first, `patch` later."""

    filePath: str = ""
    movePath: str | None = None
    type: str = ""
    diff: str | None = None
    patch: str | None = None


class Arguments(Struct, frozen=True, gc=False):
    """The arguments of edit tools and shells that say more than their path and command."""

    patchText: str | None = None
    content: str | None = None
    workdir: str | None = None
    command: str | None = None
    tool: str | None = None


_metadata = msgspec.json.Decoder(Metadata).decode
_patched_files = msgspec.json.Decoder(list[PatchedFile]).decode
_results = msgspec.json.Decoder(list[Metadata]).decode
_arguments = msgspec.json.Decoder(Arguments).decode
_NO_METADATA, _NO_ARGUMENTS = Metadata(), Arguments()


class Runs:
    """The tool runs of one session, and what the person said when refusing them."""

    def __init__(self, builder: SessionBuilder) -> None:
        self._builder = builder
        self._ids: set[str] = set()
        self._feedback: list[tuple[str, int | None]] = []
        self._bare: tuple[str, int | None] | None = None

    def add(self, part: Part, at: int | None, step: Step | None) -> None:
        """A tool part: the call, and in the same record its result."""
        state = part.state if part.state is not None else State()
        is_invalid = part.tool == INVALID
        name = (arguments(state).tool if is_invalid else None) or part.tool or ""
        tool = PROFILE.tool(name)
        args = arguments(state) if tool is not None and tool.class_ in ("edit", "shell") else _NO_ARGUMENTS
        began = logged_ms(state.time.start) if state.time is not None else None
        call = self._builder.call(
            self._unique_id(part.callID),
            name,
            _compact(state.input),
            tool,
            began if began is not None else at,
            step,
            path=_patched_path(args),
            folder=args.workdir,
        )
        if state.status in ("completed", "error"):
            self._answer(call, state, args, is_invalid)

    def close(self) -> None:
        """The message is over. Refusing one call rejects all that wait: that is one interruption, not many."""
        for feedback, at in self._feedback:
            if self._builder.session.parent_session_id is None:
                self._builder.turn("rejection_feedback", feedback, at)
            else:
                self._builder.event("meta", feedback, at)
        if self._bare is not None and not self._feedback:
            self._builder.event("interrupt", *self._bare)
        self._feedback, self._bare = [], None

    def _answer(self, call: ToolCall, state: State, args: Arguments, is_invalid: bool) -> None:
        ended = logged_ms(state.time.end) if state.time is not None else None
        telling = call.shell_kind is not None or call.class_ == "edit" or state.status == "error"
        metadata = _decoded(state.metadata) if telling else _NO_METADATA
        text = as_text(state.output if state.status == "completed" else state.error)
        status = outcome("error" if is_invalid else state.status, text, metadata)
        self._builder.result(call.call_id, text, status, ended, call.thread, whole(metadata.exit))
        if status == "rejected":
            self._refused(text, ended)
        elif status == "ok" and call.class_ == "edit":
            _edits(self._builder, call, metadata, args)

    def _refused(self, text: str, at: int | None) -> None:
        where = text.find(_FEEDBACK)
        feedback = text[where + len(_FEEDBACK) :].strip() if where >= 0 else ""
        if feedback:
            self._feedback.append((feedback, at))
        else:
            self._bare = (text, at)

    def _unique_id(self, call_id: str | None) -> str:
        """The call's id, made unique: REDACTED stands for many, and a result must find its own call."""
        if call_id is None or call_id in UNNAMED or call_id in self._ids:
            return f"{call_id or 'call'}#{len(self._builder.session.tool_calls)}"
        self._ids.add(call_id)
        return call_id


def arguments(state: State) -> Arguments:
    """The arguments of a run; none of them when they are no object of the expected kind."""
    try:
        return _arguments(state.input) if state.input else _NO_ARGUMENTS
    except UNREADABLE:
        return _NO_ARGUMENTS


def outcome(status: str, text: str, metadata: Metadata) -> CallStatus:
    """What the state says: `completed` says nothing of an exit code, `error` mixes failures and refusals."""
    if status == "completed":
        return "ok"
    head = text[:_ERROR_HEAD]
    if REFUSED in head or _DISMISSED in head:
        return "rejected"
    if metadata.interrupted is True or head.removeprefix("Error: ") in _ABORTED:
        return "cancelled"
    return "error"


def _edits(builder: SessionBuilder, call: ToolCall, metadata: Metadata, args: Arguments) -> None:
    if metadata.files:
        _patch_edits(builder, call, metadata.files)
    elif call.name == "write":
        _write_edit(builder, call, metadata, args)
    else:
        for path, diff in _diffs(metadata):
            hunks = unified(diff)
            op: EditOp = "create" if "\n@@ -0,0 " in diff else "delete" if " +0,0 @@" in diff else "modify"
            builder.edit(call, path, op, hunks if op == "modify" else of_whole_file(hunks))


def _patch_edits(builder: SessionBuilder, call: ToolCall, raw: Raw) -> None:
    try:
        files = _patched_files(raw)
    except UNREADABLE:
        builder.edit(call, None, "modify", [])
        return
    for file in files:
        op = _OPS.get(file.type, "modify")
        hunks = unified(file.diff or file.patch or "")
        if op == "rename":
            builder.edit(call, file.filePath, "delete", [])
        path = file.movePath or file.filePath if op == "rename" else file.filePath
        builder.edit(call, path, op, of_whole_file(hunks) if op in ("create", "delete") else hunks)


def _write_edit(builder: SessionBuilder, call: ToolCall, metadata: Metadata, args: Arguments) -> None:
    """`write` records no diff: a new file is known line by line, an overwritten one only as replaced whole."""
    content = args.content or ""
    if metadata.exists is False:
        builder.edit(call, None, "create", [created(content)])
    else:
        builder.edit(call, None, "modify", [Hunk(start_line=1, end_line=max(count_lines(content), 1), whole_file=True)])


def _diffs(metadata: Metadata) -> list[tuple[str | None, str]]:
    """The diff of each file of an edit, with its path where the call names none; one empty diff when none is recorded.

    A `multiedit` keeps the diff of each of its edits; an early `patch` one text for all files, each behind `Index: `.
    """
    recorded = [metadata.diff]
    if metadata.results:
        try:
            recorded = [r.diff for r in _results(metadata.results)]
        except UNREADABLE:
            recorded = []
    diffs = [d for d in recorded if isinstance(d, str)]
    if len(diffs) == 1 and diffs[0].count("\nIndex: ") > 0:
        files = [f for f in f"\n{diffs[0]}".split("\nIndex: ") if f.strip()]
        return [(f.split("\n", 1)[0].strip(), f) for f in files]
    return [(None, d) for d in diffs] or [(None, "")]


def _decoded(raw: Raw) -> Metadata:
    try:
        return _metadata(raw) if raw else _NO_METADATA
    except UNREADABLE:
        return _NO_METADATA


def _patched_path(args: Arguments) -> str | None:
    """The one file of a patch; None when it names several."""
    named = set(_PATCHED.findall(args.patchText)) if args.patchText else set()
    return named.pop().strip() if len(named) == 1 else None


def _compact(raw: Raw) -> bytes:
    """JSON without the indentation of the document around it."""
    return msgspec.json.format(bytes(raw), indent=-1) if raw else b"{}"


# The agent's messages in an OpenCode export: model calls, their tokens, and everything their parts say.

ABORTED = "MessageAbortedError"
REASONING_BESIDE_OUTPUT = (1, 4)
"""From this version on `output` leaves reasoning out: inside up to 1.2.26, beside from 1.4.3
(design/formats.md#token-usage)."""

_VERSION = re.compile(r"(\d+)\.(\d+)")
_UNCOUNTED = frozenset(("step-start", "step-finish", "snapshot", "file", "agent"))
"""Parts that leave no event; `step-finish` repeats the tokens and the cost of its message."""


class AgentSide:
    """Turns assistant messages into steps, calls and events. One message is one model call."""

    def __init__(self, builder: SessionBuilder, version: str | None) -> None:
        self.builder = builder
        self.reasoning_beside = _version(version) >= REASONING_BESIDE_OUTPUT
        self.runs = Runs(builder)
        self.just_compacted = False
        self.shell_by_person = False
        """The next message runs a command that the person typed."""
        self.trigger: str | None = None
        """What asked for the next compaction."""
        self._model: str | None = None
        self._place: tuple[str | None, str | None] = None, None

    def message(self, message: Message, at_record: Callable[[str | None], None] = lambda _: None) -> None:
        """`at_record` hears which message or part is read."""
        info = message.info
        at = logged_ms(info.time.created) if info.time is not None else None
        self._where(info)
        if self.shell_by_person:
            self._person_ran(message, at)
            return
        self.just_compacted = bytes(info.summary) == b"true" and not info.error
        step = self._step(info, at) if _is_model_call(message) else None
        if step is not None and not self.just_compacted:
            self._model_change(step)
        if self.just_compacted:
            self._compacted(at, step)
        for part in message.parts:
            if part is not None:
                at_record(part.id)
                self._part(part, at, step)
        at_record(info.id)
        self.runs.close()
        if info.error:
            self._error(info, at, step)
        elif step is not None and _is_unfinished(message):
            self.builder.event("meta", "not finished: no answer, no end and no reason is recorded", at, step)

    def _step(self, info: MessageInfo, at: int | None) -> Step:
        """Always a step of its own: ids may be REDACTED, and then many messages share one."""
        step = self.builder.step(None, info.modelID, at)
        step.message_id = None if info.id in UNNAMED else info.id
        step.stop_reason = info.finish
        if info.tokens is not None:
            count(step, info.tokens, self.reasoning_beside)
        if info.cost:  # 0 is what a subscription or a free model shows
            step.cost_usd, step.cost_source = amount(info.cost), "recorded"
        return step

    def _part(self, part: Part, at: int | None, step: Step | None) -> None:
        builder = self.builder
        began = logged_ms(part.time.start) if part.time is not None else None
        when = began if began is not None else at
        if part.type == "tool":
            self.runs.add(part, when, step)
        elif part.type == "text":
            machine = part.synthetic or part.ignored or self.just_compacted
            builder.event("meta" if machine else "text", part.text or "", when, step)
        elif part.type == "reasoning":
            builder.event("thinking", part.text or "", when, step)
        elif part.type == "patch":
            builder.event("meta", "\n".join(["files changed since the step began:", *(part.files or ())]), at, step)
        elif part.type == "retry":
            failed = logged_ms(part.time.created) if part.time is not None else None
            builder.event("api_error", ": ".join(filter(None, failure(part.error))), failed or at, step)
        elif part.type not in _UNCOUNTED:
            builder.event("unknown", part.type or "part without a type", when, step)

    def _error(self, info: MessageInfo, at: int | None, step: Step | None) -> None:
        ended = logged_ms(info.time.completed) if info.time is not None else None
        name, message = failure(info.error)
        kind: EventKind = "interrupt" if name == ABORTED else "api_error"
        self.builder.event(kind, ": ".join(filter(None, (name, message))), ended if ended is not None else at, step)

    def _compacted(self, at: int | None, step: Step | None) -> None:
        self.builder.event("compaction", json.dumps({"trigger": self.trigger} if self.trigger else {}), at, step)
        self.trigger = None

    def _person_ran(self, message: Message, at: int | None) -> None:
        """`!command`: the client logs it as a message of the agent with a tool run; the agent had no part in it."""
        self.shell_by_person = False
        for part in message.parts:
            if part is not None and part.state is not None:
                self.builder.event("user_shell", arguments(part.state).command or "", at)
                self.builder.event("command_output", as_text(part.state.output), at)

    def _model_change(self, step: Step) -> None:
        if step.model and step.model != self._model:
            if self._model is not None:
                self.builder.event("model_change", f"{self._model} -> {step.model}", step.timestamp, step)
            self._model = step.model

    def _where(self, info: MessageInfo) -> None:
        """The working tree's root (`/` when there is none), which paths are relative to, and the folder of the call."""
        place = info.path
        if place is None or (place.cwd, place.root) == self._place:
            return
        self._place = place.cwd, place.root
        if place.root and place.root != "/":
            self.builder.where(place.root)
        self.builder.where(place.cwd)


def count(step: Step, tokens: Tokens, reasoning_beside: bool) -> None:
    """The tokens of a message; all zero is what an aborted call shows, and says nothing.

    `output_tokens` is what was billed as output, reasoning included, as in every other format: where `output` leaves
    reasoning out, it is added. `total` tells, and the client's version where the total fits neither reading.
    """
    parts = tokens.input, tokens.output, tokens.reasoning
    fresh, output, reasoning = (count_of(v) for v in parts)
    read = count_of(tokens.cache.read) if tokens.cache is not None else None
    write = count_of(tokens.cache.write) if tokens.cache is not None else None
    if not any((fresh, output, reasoning, read, write)):
        return
    step.input_tokens, step.cache_read_tokens, step.cache_write_tokens = fresh, read, write
    step.output_tokens, step.reasoning_tokens = output, reasoning
    if output is None or not reasoning:
        return
    inside = (fresh or 0) + output + (read or 0) + (write or 0)
    total = count_of(tokens.total)
    beside = reasoning_beside if total not in (inside, inside + reasoning) else total != inside
    if beside or reasoning > output:
        step.output_tokens = output + reasoning


def _is_model_call(message: Message) -> bool:
    """False for the message the client writes itself to run a subagent for a command: a tool run and nothing else."""
    if message.info.error or not message.parts:
        return True
    if any(p is None or p.type != "tool" for p in message.parts):
        return True
    tokens = message.info.tokens
    return tokens is not None and any((tokens.input, tokens.output, tokens.reasoning))


def _is_unfinished(message: Message) -> bool:
    """A call that was being tried when the client ended: attempts that a provider turned away leave nothing else."""
    info = message.info
    ended = info.finish or (info.time is not None and info.time.completed)
    return not ended and all(p is None or p.type in _UNCOUNTED for p in message.parts)


def _version(text: str | None) -> tuple[int, int]:
    match = _VERSION.match(text or "")
    return (int(match.group(1)), int(match.group(2))) if match else REASONING_BESIDE_OUTPUT


SHELL_MARK = "The following tool was executed by the user"
"""What the client writes before the command of a person's `!command`."""
_OF_KILO = re.compile(r"/kilo[^/]*\.db//")


def read(inputs: list[Input]) -> Reading:
    """All files of one family; of several snapshots of a session the fullest."""
    stored = [(source, ids) for source in inputs if (ids := ids_of(source.data)) is not None]
    exports = [source for source in inputs if all(source is not s for s, _ in stored)] if stored else inputs
    folders = snapshots(stored)
    kept = largest([*_snapshots(exports), *folders])
    repeated(folders, kept)
    return Reading([_Reader(snapshot).session() for snapshot in kept])


def _snapshots(inputs: list[Input]) -> Iterator[Snapshot[Export]]:
    for source in inputs:
        export = read_document(source, partial(decode, artifact=source.artifact), "messages")
        if export is None:
            continue
        _count(source.artifact, export)
        own_id = "" if export.info.id in UNNAMED else export.info.id
        session_id = own_id or source.session_hint or source.artifact.artifact_id
        yield Snapshot(source, export, session_id, size(export))


def _count(artifact: Artifact, export: Export) -> None:
    """Every message and every part is a record."""
    messages = [m for m in export.messages if m is not None]
    tally(artifact, "message", [None if m is None else m.info.role for m in export.messages])
    tally(artifact, "part", [None if p is None else p.type for m in messages for p in m.parts])


class _Reader:
    """One session in the making."""

    def __init__(self, snapshot: Snapshot[Export]) -> None:
        source, info = snapshot.source, snapshot.document.info
        profile = KILO if _OF_KILO.search(source.artifact.path) else PROFILE
        session = source.session(snapshot.session_id, "opencode", profile.agent)
        _describe(session, info)
        self.export = snapshot.document
        self.builder = SessionBuilder(session, PROFILE)
        self.builder.where(info.directory)
        self.agent_side = AgentSide(self.builder, info.version)
        self.places = self.export.places if isinstance(self.export, Stored) else {}
        self.agent: str | None = None
        self.busy_until: int | None = None
        self.last_completed = 0

    def session(self) -> Session:
        for number, message in enumerate(self.export.messages, 1):
            self.builder.line = 1 if self.places else number
            if message is None:
                continue
            self.at(message.info.id)
            if message.info.role == "user":
                self._user(message)
            elif message.info.role == "assistant":
                self.agent_side.message(message, self.at)
                self.busy_until = self._busy_until(message)
            else:
                self.builder.event("unknown", f"message of role {message.info.role or 'unknown'}")
        session = self.builder.finish()
        if session.ended_at is not None:
            session.ended_at = max(session.ended_at, self.last_completed)
        return session

    def at(self, record_id: str | None) -> None:
        """What follows stands in the file of this message or part, where each has its own."""
        self.builder.artifact_id = self.places.get(record_id or "", self.builder.artifact_id)

    def _busy_until(self, message: Message) -> int | None:
        """When the agent was done with this message: what the person sent before that had to wait."""
        completed = logged_ms(message.info.time.completed) if message.info.time is not None else None
        self.last_completed = max(self.last_completed, completed or 0)
        return None if message.info.error else completed

    def _user(self, message: Message) -> None:
        info = message.info
        at = logged_ms(info.time.created) if info.time is not None else None
        self._phase(info.agent, at)
        parts = [p for p in message.parts if p is not None]
        typed = [p for p in parts if _is_said(p) and p.text]
        text = "\n".join(_unquoted((p.text or "").strip()) for p in typed).strip()
        if typed:
            self.at(typed[0].id)
        model = info.model.modelID if info.model is not None else None
        if self.builder.session.parent_session_id is not None:
            if text:
                self.builder.event("meta", text, at)
        else:
            self._turn(parts, text, at, model)
        for part in parts:
            self.at(part.id)
            self._beside(part, at)

    def _turn(self, parts: list[Part], text: str, at: int | None, model: str | None) -> None:
        """The one turn of a user message, when the person wrote or attached something."""
        builder = self.builder
        subtask = next((p for p in parts if p.type == "subtask"), None)
        if subtask is not None and subtask.command:
            builder.turn("slash_command", f"/{subtask.command} {text}".strip(), at, model)
        elif text and (self._is_replayed(text) or PROFILE.machine_kind(text)):
            builder.event("meta", text, at)
        elif text or (subtask is not None and subtask.prompt):
            busy = self.busy_until is not None and at is not None and at < self.busy_until
            builder.turn("queued_prompt" if busy else "prompt", text or (subtask and subtask.prompt) or "", at, model)
        elif any(p.type == "file" for p in parts):
            builder.turn("attachment", "", at, model)

    def _is_replayed(self, text: str) -> bool:
        """After a compaction that overflowed the client repeats the last prompt in the person's name."""
        turns = self.builder.session.turns
        return self.agent_side.just_compacted and bool(turns) and turns[-1].text == text

    def _beside(self, part: Part, at: int | None) -> None:
        """What a user message holds that nobody typed."""
        if part.type == "text":
            if part.text == SHELL_MARK and part.synthetic:
                self.agent_side.shell_by_person = True
            elif not _is_said(part):
                self.builder.event("meta", part.text or "", at)
        elif part.type == "compaction":
            self.agent_side.trigger = None if part.auto is None else "auto" if part.auto else "manual"
        elif part.type == "subtask":
            self.builder.event("meta", part.prompt or "", at)
        elif part.type not in ("file", "agent"):
            self.builder.event("unknown", part.type or "part without a type", at)

    def _phase(self, agent: str | None, at: int | None) -> None:
        """The person switched between the client's modes (`build`, `plan`, …)."""
        if agent and self.agent and agent != self.agent:
            self.builder.event("phase", agent, at)
        self.agent = agent or self.agent


def _describe(session: Session, info: SessionInfo) -> None:
    session.title = info.title
    session.agent_version = info.version
    session.parent_session_id = info.parentID
    session.started_at = logged_ms(info.time.created) if info.time is not None else None


def _unquoted(text: str) -> str:
    """`opencode run` puts marks around words that hold a blank, and a backslash before each mark in them."""
    inner = text[1:-1]
    if text[:1] != '"' or text[-1:] != '"' or " " not in inner or '"' in inner.replace('\\"', "") or inner[-1:] == "\\":
        return text
    return inner.replace('\\"', '"')


def _is_said(part: Part) -> bool:
    """`synthetic` text is the client's, `ignored` text a plugin's note that the model never sees."""
    return part.type == "text" and part.synthetic is not True and part.ignored is not True
