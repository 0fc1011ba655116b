"""A chat of VS Code as typed structs (design/formats.md#vs-code-copilot-chat): only what is read.

The name and the picture of the person at the head, the typed but unsent text of `inputState`, and the context that the
extension adds to a prompt (`renderedUserMessage`) are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

import msgspec
from msgspec import Raw, Struct, field, structs

from agentsignals.changes.hunks import EditText, Hunk, edit_texts, replaced
from agentsignals.formats import Input
from agentsignals.formats.bounds import count, number
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.edits import first_file, record_arguments
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.records import UNREADABLE, lines, saw, skip
from agentsignals.formats.vscode_copilot import PROFILE, SHOWN_AS
from agentsignals.model import CallStatus, Step, ToolCall, logged_ms


class Uri(Struct, gc=False):
    """A place as the editor has it."""

    path: str | None = None
    scheme: str | None = None

    @property
    def file(self) -> str | None:
        """The path on its machine: `/c:/work` is one of Windows."""
        path = (self.path or "").rstrip("/")
        return (path[1:] if path[2:3] == ":" else path) or None


class CommandLine(Struct, gc=False):
    original: str | None = None
    userEdited: str | None = None
    toolEdited: str | None = None


class Ended(Struct, gc=False):
    exitCode: object = None
    duration: object = None


class Output(Struct, gc=False):
    text: str | None = None


class Particulars(Struct, gc=False, kw_only=True):
    """What the editor keeps of a tool of its own: of its terminal, of a subagent."""

    kind: str | None = None
    commandLine: CommandLine | None = None
    command: str | None = None
    terminalCommandState: Ended | None = None
    terminalCommandOutput: Output | None = None
    rawInput: Raw = Raw()
    result: str | None = None

    @property
    def ran(self) -> str | None:
        """The command that the terminal was given; the person may have changed it."""
        line = self.commandLine or CommandLine()
        return line.userEdited or line.toolEdited or line.original or self.command


class Range(Struct, gc=False):
    startLineNumber: int
    endLineNumber: int


class TextEdit(Struct, gc=False):
    text: str
    range: Range


class Item(Struct, gc=False, kw_only=True):
    """A part of an answer as the panel shows it: words where it has no kind."""

    kind: str | None = None
    value: object = None
    baseUri: Uri | None = None
    inlineReference: object = None
    name: str | None = None
    toolId: str | None = None
    toolCallId: str | None = None
    isConfirmed: object = None
    isComplete: bool | None = None
    pastTenseMessage: object = None
    toolSpecificData: Raw = Raw()
    subAgentInvocationId: str | None = None
    uri: Uri | None = None
    edits: Raw = Raw()


class Asked(Struct, gc=False):
    """One call that the model asked for. `arguments` is JSON in a text."""

    id: str = ""
    name: str = ""
    arguments: object = None


class Thinking(Struct, gc=False):
    text: object = None
    tokens: object = None
    encrypted: object = None


class Round(Struct, gc=False, kw_only=True):
    """One call of the model."""

    id: str | None = None
    response: object = None
    toolCalls: list[Asked] | None = None
    thinking: Thinking | None = None
    summary: object = None
    timestamp: object = None


class Summary(Struct, gc=False):
    """What older rounds were cut down to, from this one on."""

    toolCallRoundId: str | None = None
    text: object = None


class Returned(Struct, gc=False):
    content: object = None


class Metadata(Struct, gc=False, kw_only=True):
    toolCallRounds: list[Round] | None = None
    toolCallResults: dict[str, Returned] | None = None
    sessionId: str | None = None
    resolvedModel: str | None = None
    outputTokens: object = None
    summary: Summary | None = None


class Usage(Struct, gc=False):
    completionTokens: object = None


class Problem(Struct, gc=False):
    message: object = None
    code: object = None


class Timings(Struct, gc=False):
    totalElapsed: object = None


class Result(Struct, gc=False, kw_only=True):
    metadata: Metadata | None = None
    usage: Usage | None = None
    details: str | None = None
    errorDetails: Problem | None = None
    timings: Timings | None = None


class Named(Struct, gc=False):
    name: str | None = None


class Agent(Struct, gc=False):
    extensionVersion: str | None = None


class Variables(Struct, gc=False):
    variables: list[Raw] | None = None


class State(Struct, gc=False):
    value: object = None
    completedAt: object = None


class Request(Struct, gc=False, kw_only=True):
    """A prompt and everything until its answer was done."""

    requestId: str | None = None
    timestamp: object = None
    message: object = None
    variableData: Variables | None = None
    slashCommand: Named | None = None
    confirmation: object = None
    shouldBeRemovedOnSend: object = None
    isHidden: bool | None = None
    agent: Agent | None = None
    modelId: str | None = None
    response: list[Raw] | None = None
    result: Result | None = None
    isCanceled: bool | None = None
    modelState: State | None = None
    completionTokens: object = None

    @property
    def metadata(self) -> Metadata:
        return (self.result.metadata if self.result is not None else None) or Metadata()

    @property
    def rounds(self) -> list[Round]:
        """The calls of the model; one that neither says nor asks for anything is of a kind that is not read."""
        rounds = self.metadata.toolCallRounds or ()
        return [exchange for exchange in rounds if exchange.response is not None or exchange.toolCalls is not None]

    @property
    def text(self) -> str:
        """What the person typed; one list of parts in the oldest files."""
        message = self.message
        if isinstance(message, dict):
            message = message.get("text")
        return message.strip() if isinstance(message, str) else ""


class Chat(Struct, kw_only=True):
    """The document: of a file, or what a log of changes comes to."""

    sessionId: object = None
    creationDate: object = None
    customTitle: object = None
    repoData: object = None
    requests: list[Raw] = field(default_factory=list)


decode_chat = msgspec.json.Decoder(Chat).decode
decode_request = msgspec.json.Decoder(Request).decode
decode_item = msgspec.json.Decoder(Item).decode
_particulars = msgspec.json.Decoder(Particulars).decode
_edits = msgspec.json.Decoder(list[list[TextEdit]]).decode


def particulars(item: Item) -> Particulars:
    """What the editor keeps of the call; nothing where it is of another shape."""
    try:
        return _particulars(item.toolSpecificData) if item.toolSpecificData else Particulars()
    except UNREADABLE:
        return Particulars()


def text_edits(item: Item) -> list[TextEdit]:
    """What the editor put into a file, in order; nothing where it is of another shape."""
    try:
        return [edit for batch in _edits(item.edits) for edit in batch] if item.edits else []
    except UNREADABLE:
        return []


def words(value: object) -> str:
    """A text, a Markdown text of the editor, or a list of them."""
    if isinstance(value, dict):
        value = value.get("value")
    if isinstance(value, list):
        return "".join(v for v in value if isinstance(v, str))
    return value if isinstance(value, str) else ""


def result_text(content: object) -> str:
    """What a tool returned: texts, and the trees of the extension's prompts."""
    parts: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        value = part.get("value") if isinstance(part, dict) else part
        node = value.get("node") if isinstance(value, dict) else None
        parts.append(_text_of_tree(node) if isinstance(node, dict) else value if isinstance(value, str) else "")
    return "\n".join(part for part in parts if part)


def _text_of_tree(node: dict[str, object]) -> str:
    """The texts of a tree in order; a leaf may say that it begins a line."""
    texts: list[str] = []
    left: list[object] = [node]
    while left:
        at = left.pop()
        if not isinstance(at, dict):
            continue
        if isinstance(text := at.get("text"), str):
            begins_line = at.get("lineBreakBefore") is True and texts and not texts[-1].endswith("\n")
            texts.append(f"\n{text}" if begins_line else text)
        if isinstance(children := at.get("children"), list):
            left += reversed(children)
    return "".join(texts).strip("\n")


def path_of(uri: str) -> str | None:
    """The path of a `file:` or `vscode-remote:` address."""
    scheme, between, rest = uri.partition("://")
    return Uri(unquote(rest[rest.find("/") :])).file if between and scheme and "/" in rest else None


# What a request of a chat says of its answer: the model, its tokens, when it was done and whether it was stopped.

_CANCELLED = 2
"""Of an answer (`ResponseModelState`)."""
_LONGEST_MS = 10**10
"""Four months: no answer takes longer."""


def model_of(request: Request) -> str | None:
    """The model; `auto` leaves it to the extension, which then names it, older versions for people alone."""
    vendor, between, name = (request.modelId or "").partition("/")
    chosen = name if between else vendor
    if chosen == "auto":
        details = (request.result.details if request.result is not None else None) or ""
        chosen = request.metadata.resolvedModel or details.partition(" • ")[0] or chosen
    return request.metadata.resolvedModel or chosen or None


def output_of(request: Request) -> int | None:
    """Tokens of the last call's answer: each call replaces what the one before it reported."""
    result = request.result
    usage = result.usage.completionTokens if result is not None and result.usage is not None else None
    logged = next((n for n in (usage, request.completionTokens, request.metadata.outputTokens) if n is not None), None)
    return count(logged) or None


def lacks_usage(request: Request, traced: int) -> bool:
    """Whether several calls were made, of which the last alone says what it put out, and so many are traced."""
    return len(request.rounds) > max(traced, 1) and output_of(request) is not None


def summary_of(request: Request, exchange: Round) -> str:
    summary = request.metadata.summary
    is_here = summary is not None and summary.toolCallRoundId is not None and summary.toolCallRoundId == exchange.id
    return words(summary.text) if summary is not None and is_here else words(exchange.summary)


def ended_at(request: Request) -> int | None:
    """When the answer was done."""
    if request.modelState is not None and request.modelState.completedAt is not None:
        return logged_ms(request.modelState.completedAt)
    began = logged_ms(request.timestamp)
    timings = request.result.timings if request.result is not None else None
    lasted = number(timings.totalElapsed) if timings is not None else None
    is_sound = began is not None and began >= 0 and lasted is not None and 0 <= lasted <= _LONGEST_MS
    return began + int((lasted or 0) * 1000) if began is not None and is_sound else None


def is_stopped(request: Request) -> bool:
    state = request.modelState.value if request.modelState is not None else None
    problem = request.result.errorDetails if request.result is not None else None
    code = problem.code if problem is not None else None
    return request.isCanceled is True or state == _CANCELLED or code in ("canceled", "cancelled")


# The log of changes that VS Code keeps of a chat, replayed into the document that it would have saved.
#
# A line is an entry (design/formats.md#vs-code-copilot-chat): 0 the whole document, 1 a value set at a path, 2
# values put at the end of a list, of which the first `i` stay, 3 a value removed. What was set before is gone, as
# in the editor.

_KINDS = ("snapshot", "set", "push", "delete")
_SNAPSHOT, _SET, _PUSH, _DELETE = range(4)
_DEEPEST = 16
"""Steps of a path; the editor's own schema has five."""


class Entry(Struct, gc=False):
    """One line. A step of a path is a name, or a place in a list."""

    kind: int
    k: list[str | int] = []
    v: Any = None
    i: int | None = None


_decode = msgspec.json.Decoder(Entry).decode


class Replayed(Struct):
    """The document after the last line, and on which line each of its requests was put there."""

    document: dict[str, Any] | None = None
    numbers: list[int] = []


def replay(source: Input) -> Replayed:
    """The document that a log comes to. A change of what is not there is counted as `lost_place`: a line before it is
    lost. Nothing is made bigger than what the lines hold."""
    replayed = Replayed(numbers=[])
    for line, entry in lines(source.data, source.artifact, _decode):
        reason = apply(replayed, entry, line)
        if reason is not None:
            skip(source.artifact, reason)
        else:
            saw(source.artifact, f"log.{_KINDS[entry.kind]}")
    return replayed


def apply(replayed: Replayed, entry: Entry, number: int) -> str | None:
    """Makes one change; the reason why not, where it can't be made."""
    if entry.kind == _SNAPSHOT and isinstance(entry.v, dict):
        replayed.document = entry.v
        replayed.numbers = [number] * len(requests_of(entry.v))
        return None
    if not _SNAPSHOT < entry.kind <= _DELETE:
        return "bad_shape"
    if replayed.document is None:
        return "no_snapshot"
    before = len(requests_of(replayed.document))
    if not 0 < len(entry.k) <= _DEEPEST or not _change(replayed.document, entry):
        return "lost_place"
    if entry.k[0] == "requests":
        _number(replayed, entry, number, before)
    return None


def requests_of(document: dict[str, Any]) -> list[Any]:
    """The requests of a document; none where something else stands there."""
    listed = document.get("requests")
    return listed if isinstance(listed, list) else []


def _change(document: dict[str, Any], entry: Entry) -> bool:
    parent: Any = document
    *above, last = entry.k
    for step in above:
        parent = _inside(parent, step)
    if entry.kind == _PUSH:
        values = _inside(parent, last)
        if values is None:
            values = []
        if not isinstance(values, list) or not isinstance(entry.v, list | None):
            return False
        if entry.i is not None:
            if not 0 <= entry.i <= len(values):
                return False
            del values[entry.i :]
        values += entry.v or ()
        return _put(parent, last, values)
    if entry.kind == _SET:
        return _put(parent, last, entry.v)
    if isinstance(parent, dict) and isinstance(last, str):
        parent.pop(last, None)
        return True
    return _has(parent, last) and _put(parent, last, None)


def _inside(value: Any, step: str | int) -> Any:
    if isinstance(value, dict):
        return value.get(step)
    return value[step] if _has(value, step) else None


def _has(value: Any, step: str | int) -> bool:
    return isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value)


def _put(parent: Any, step: str | int, value: Any) -> bool:
    if isinstance(parent, list) and step == len(parent):
        parent.append(value)
        return True
    if _has(parent, step) or (isinstance(parent, dict) and isinstance(step, str)):
        parent[step] = value
        return True
    return False


def _number(replayed: Replayed, entry: Entry, number: int, before: int) -> None:
    """Keeps where requests came from: those that this entry put there came on its line."""
    numbers, now = replayed.numbers, len(requests_of(replayed.document or {}))
    if len(entry.k) == 1:
        kept = (before if entry.i is None else entry.i) if entry.kind == _PUSH else 0
        del numbers[kept:]
    elif len(entry.k) == 2 and isinstance(entry.k[1], int) and entry.k[1] < len(numbers):
        numbers[entry.k[1]] = number
    numbers += [number] * (now - len(numbers))


def encoded(value: Any) -> bytes:
    """A part of the document as JSON; `null` for what is nested too deep."""
    try:
        return msgspec.json.encode(value)
    except UNREADABLE:
        return b"null"


# What a tool of Copilot Chat changed: its arguments say what, the panel says where in the file.


class _Replacement(Struct, gc=False):
    filePath: str = ""
    oldString: str = ""
    newString: str = ""


class _Arguments(Struct, gc=False):
    input: str | None = None
    replacements: list[_Replacement] = []


_decode_edits = msgspec.json.Decoder(_Arguments).decode


def first_path(arguments: str | bytes) -> str | None:
    """The file that a patch or a list of replacements names first; None of other arguments, which name theirs."""
    decoded = _decoded(arguments)
    if decoded.replacements:
        return decoded.replacements[0].filePath or None
    return first_file(decoded.input) if decoded.input else None


def _decoded(arguments: str | bytes) -> _Arguments:
    try:
        return _decode_edits(arguments)
    except UNREADABLE:
        return _Arguments()


class Changes:
    """What the panel shows as changed in the files of one request, in order."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._left = [(path, text_edits(item)) for item in items if item.uri is not None and (path := item.uri.file)]

    def record(self, builder: SessionBuilder, call: ToolCall, touched: set[str]) -> None:
        """The change of a call that succeeded."""
        replacements = _decoded(call.arguments).replacements
        for replacement in replacements:
            text = EditText(kind="replace", old=replacement.oldString, new=replacement.newString)
            builder.edit(call, replacement.filePath, "modify", [self._hunk(builder, replacement.filePath, text)])
        if replacements:
            return
        texts = edit_texts(call.arguments, call.argument_roles)
        if len(texts) == 1 and texts[0].kind == "replace" and call.path:
            builder.edit(call, None, "modify", [self._hunk(builder, call.path, texts[0])])
        else:
            record_arguments(builder, call, touched)

    def _hunk(self, builder: SessionBuilder, path: str, text: EditText) -> Hunk:
        """The change with its lines, where the panel shows the very text at one place of the file."""
        sizes = replaced(text.old, text.new)
        wanted = builder.relative(path)
        for n, (at, edits) in enumerate(self._left):
            if builder.relative(at) == wanted and len(edits) == 1 and edits[0].text == text.new:
                del self._left[n]
                return _placed(sizes, edits[0], text)
        return sizes


def _placed(sizes: Hunk, edit: TextEdit, text: EditText) -> Hunk:
    same = 0
    for before, after in zip(text.old.split("\n"), text.new.split("\n"), strict=False):
        if before != after:
            break
        same += 1
    start = edit.range.startLineNumber + same
    return structs.replace(sizes, start_line=start, end_line=start + max(sizes.added or 0, 1) - 1, old_start=start)


# Calls of Copilot Chat's tools: begun as the model asked for them, and what became of them.

_DENIED, _SKIPPED = 0, 5
"""Of a call that asked for leave: the person said no, or went on without it (`ToolConfirmKind`)."""
_FAILED = "ERROR while calling tool:"
_REFUSED = "The user chose to skip the tool call"
_SUFFIX = "__vscode-"
"""Begins the end of the ids that the extension makes of the provider's."""


def id_of(call_id: str) -> str:
    """The provider's id."""
    return call_id.partition(_SUFFIX)[0]


def begin(builder: SessionBuilder, asked: Asked, at: int | None, step: Step | None, thread: str) -> None:
    """A call that the model asked for."""
    arguments = asked.arguments if isinstance(asked.arguments, str) else msgspec.json.encode(asked.arguments).decode()
    tool = PROFILE.tool(asked.name)
    path = first_path(arguments) if tool is not None and tool.class_ == "edit" else None
    builder.call(asked.id, asked.name, arguments or "{}", tool, at, step, thread, path=path)


def printed_code(name: str, text: str) -> int | None:
    """The exit code that the result of a command ends with; None of other tools."""
    tool = PROFILE.tool(name)
    return exit_code(text) if tool is not None and tool.class_ in ("shell", "test") else None


def taken(shown: list[Item], asked: Asked) -> Item | None:
    """Takes out what the panel shows of a call: by its id where both have one, else the first of that tool."""
    wanted = id_of(asked.id)
    mine = [item for item in shown if not item.subAgentInvocationId]
    by_id = (item for item in mine if item.toolCallId and id_of(item.toolCallId) == wanted)
    by_tool = (item for item in mine if SHOWN_AS.get(item.toolId or "", item.toolId) == asked.name)
    item = next(by_id, None) or next(by_tool, None)
    if item is not None:
        shown[:] = [other for other in shown if other is not item]
    return item


def status(item: Item | None, text: str, was_answered: bool) -> CallStatus | None:
    """What became of a call; None where nothing says that it ended."""
    confirmed = item.isConfirmed if item is not None else None
    kind = confirmed.get("type") if isinstance(confirmed, dict) else _DENIED if confirmed is False else None
    if kind in (_DENIED, _SKIPPED) or text.startswith(_REFUSED):
        return "rejected"
    if text.startswith(_FAILED):
        return "error"
    return "ok" if was_answered else None
