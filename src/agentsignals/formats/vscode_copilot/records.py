"""A chat of VS Code (design/formats.md#vs-code-copilot-chat). The structs hold only the fields that are read.

Not read are the person's name and picture, the typed but unsent text of `inputState`, and the context that the
extension adds to a prompt (`renderedUserMessage`).
"""

from typing import Any
from urllib.parse import unquote

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.formats import Input
from agentsignals.formats.bounds import count, number
from agentsignals.formats.records import UNREADABLE, as_list, decoded, decoder, inside, lines, saw, skip, string
from agentsignals.model import logged_ms

_CANCELLED = 2
"""State of an answer (`ResponseModelState`)."""
_LONGEST_MS = 10**10
"""Four months: no answer takes longer."""


class Uri(Struct, gc=False):
    """A place as the editor writes it."""

    path: str | None = None

    @property
    def file(self) -> str | None:
        """The path on its machine. `/c:/work` is a path of Windows."""
        path = (self.path or "").rstrip("/")
        return (path[1:] if path[2:3] == ":" else path) or None


class Particulars(Struct, gc=False, kw_only=True):
    """Details of a tool of the editor: of its terminal, of a subagent."""

    commandLine: object = None
    command: str | None = None
    terminalCommandState: object = None
    terminalCommandOutput: object = None
    rawInput: Raw = Raw()
    result: str | None = None

    @property
    def ran(self) -> str | None:
        """The command that the terminal ran. The person may have changed it."""
        lines = (inside(self.commandLine, name) for name in ("userEdited", "toolEdited", "original"))
        return next(filter(None, map(string, lines)), self.command)


class Range(Struct, gc=False):
    startLineNumber: int


class TextEdit(Struct, gc=False):
    text: str
    range: Range


class Item(Struct, gc=False, kw_only=True):
    """A part of an answer as the panel shows it. One without a kind is text."""

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

    @property
    def particulars(self) -> Particulars:
        return decoded(self.toolSpecificData, Particulars) or Particulars()


class Asked(Struct, gc=False):
    """A call that the model asked for. `arguments` is JSON in a text."""

    id: str = ""
    name: str = ""
    arguments: object = None


class Round(Struct, gc=False, kw_only=True):
    """A call of the model."""

    id: str | None = None
    response: object = None
    toolCalls: list[Asked] | None = None
    thinking: dict[str, Any] | None = None
    summary: object = None
    timestamp: object = None


class Metadata(Struct, gc=False, kw_only=True):
    toolCallRounds: list[Round] | None = None
    toolCallResults: dict[str, dict[str, Any]] | None = None
    sessionId: str | None = None
    resolvedModel: str | None = None
    outputTokens: object = None
    summary: object = None
    """The summary that replaces the rounds before the one that it names."""


class Result(Struct, gc=False, kw_only=True):
    metadata: Metadata | None = None
    usage: object = None
    details: str | None = None
    errorDetails: object = None
    timings: object = None


class Request(Struct, gc=False, kw_only=True):
    """A prompt, and everything until its answer was done."""

    timestamp: object = None
    message: object = None
    variableData: object = None
    slashCommand: dict[str, Any] | None = None
    confirmation: object = None
    shouldBeRemovedOnSend: object = None
    isHidden: bool | None = None
    agent: object = None
    modelId: str | None = None
    response: list[Raw] | None = None
    result: Result | None = None
    isCanceled: bool | None = None
    modelState: object = None
    completionTokens: object = None

    @property
    def done(self) -> Result:
        """The result; an empty one while there is none."""
        return self.result or Result()

    @property
    def metadata(self) -> Metadata:
        return self.done.metadata or Metadata()

    @property
    def rounds(self) -> list[Round]:
        """The calls of the model. One that neither says nor asks for anything is of a kind that is not read."""
        rounds = self.metadata.toolCallRounds or ()
        return [exchange for exchange in rounds if exchange.response is not None or exchange.toolCalls is not None]

    @property
    def text(self) -> str:
        """The text that the person typed. In the oldest files it is a list of parts."""
        message = self.message.get("text") if isinstance(self.message, dict) else self.message
        return message.strip() if isinstance(message, str) else ""

    @property
    def model(self) -> str | None:
        """The model. `auto` leaves the choice to the extension, which names it, older versions in a text for people."""
        vendor, between, name = (self.modelId or "").partition("/")
        chosen = name if between else vendor
        if chosen == "auto":
            chosen = (self.done.details or "").partition(" • ")[0] or chosen
        return self.metadata.resolvedModel or chosen or None

    @property
    def output_tokens(self) -> int | None:
        """Tokens of the last call's answer. Each call replaces what the one before it reported."""
        figures = (inside(self.done.usage, "completionTokens"), self.completionTokens, self.metadata.outputTokens)
        return count(next((n for n in figures if n is not None), None)) or None

    @property
    def ended_at(self) -> int | None:
        if (completed := inside(self.modelState, "completedAt")) is not None:
            return logged_ms(completed)
        began, lasted = logged_ms(self.timestamp), number(inside(self.done.timings, "totalElapsed"))
        if began is None or began < 0 or lasted is None or not 0 <= lasted <= _LONGEST_MS:
            return None
        return began + int(lasted * 1000)

    @property
    def is_stopped(self) -> bool:
        code = inside(self.done.errorDetails, "code")
        is_cancelled = inside(self.modelState, "value") == _CANCELLED or code in ("canceled", "cancelled")
        return self.isCanceled is True or is_cancelled

    def summary(self, exchange: Round) -> str:
        """Return the summary that replaced the rounds before this one."""
        summary = self.metadata.summary
        is_here = exchange.id is not None and inside(summary, "toolCallRoundId") == exchange.id
        return words(inside(summary, "text") if is_here else exchange.summary)


class Chat(Struct, kw_only=True):
    """The document of a file, or the outcome of a log of changes."""

    sessionId: object = None
    creationDate: object = None
    customTitle: object = None
    repoData: object = None
    requests: list[Raw] = field(default_factory=list)


def words(value: object) -> str:
    """Return the text of a string, of a Markdown value of the editor, or of a list of strings."""
    if isinstance(value, dict):
        value = value.get("value")
    if isinstance(value, list):
        return "".join(v for v in value if isinstance(v, str))
    return value if isinstance(value, str) else ""


def result_text(content: object) -> str:
    """Return the text of what a tool returned: texts, and trees of the extension's prompts."""
    parts: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        value = part.get("value") if isinstance(part, dict) else part
        node = value.get("node") if isinstance(value, dict) else None
        if not isinstance(node, dict):
            parts.append(value if isinstance(value, str) else "")
            continue
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
        parts.append("".join(texts).strip("\n"))
    return "\n".join(part for part in parts if part)


def path_of(uri: str) -> str | None:
    """Return the path of a `file:` or `vscode-remote:` address."""
    scheme, between, rest = uri.partition("://")
    return Uri(unquote(rest[rest.find("/") :])).file if between and scheme and "/" in rest else None


# -- the log of changes that VS Code keeps of a chat, replayed into the document that it would have saved
# A line is an entry (design/formats.md#vs-code-copilot-chat): 0 the whole document, 1 a value set at a path, 2 values
# added to the end of a list, of which the first `i` stay, 3 a value removed. Older values are gone, as in the editor.

_KINDS = ("snapshot", "set", "push", "delete")
_SNAPSHOT, _SET, _PUSH, _DELETE = range(4)
_DEEPEST = 16
"""Steps of a path. The editor's own schema has five."""


class Entry(Struct, gc=False):
    """A line of the log. A step of its path is a name, or a place in a list."""

    kind: int
    k: list[str | int] = []
    v: Any = None
    i: int | None = None


class Replayed(Struct):
    """The document after the last line, and the line on which each of its requests was added."""

    document: dict[str, Any] | None = None
    numbers: list[int] = []


def replay(source: Input) -> Replayed:
    """Replay a log. A change of what is not there is counted as `lost_place`: a line before it is lost.

    Nothing is made bigger than what the lines hold.
    """
    replayed = Replayed(numbers=[])
    for line, entry in lines(source.data, source.artifact, decoder(Entry).decode):
        reason = None
        if entry.kind == _SNAPSHOT and isinstance(entry.v, dict):
            replayed.document = entry.v
            replayed.numbers = [line] * len(as_list(entry.v.get("requests")))
        elif not _SNAPSHOT < entry.kind <= _DELETE:
            reason = "bad_shape"
        elif replayed.document is None:
            reason = "no_snapshot"
        else:
            before = len(as_list(replayed.document.get("requests")))
            if not 0 < len(entry.k) <= _DEEPEST or not _change(replayed.document, entry):
                reason = "lost_place"
            elif entry.k[0] == "requests":
                # Requests that this entry added came on its line.
                numbers, now = replayed.numbers, len(as_list(replayed.document.get("requests")))
                if len(entry.k) == 1:
                    kept = (before if entry.i is None else entry.i) if entry.kind == _PUSH else 0
                    del numbers[kept:]
                elif len(entry.k) == 2 and isinstance(entry.k[1], int) and entry.k[1] < len(numbers):
                    numbers[entry.k[1]] = line
                numbers += [line] * (now - len(numbers))
        if reason is not None:
            skip(source.artifact, reason)
        else:
            saw(source.artifact, f"log.{_KINDS[entry.kind]}")
    return replayed


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


def encoded(value: Any) -> bytes:
    """Encode a part of the document as JSON. `null` if it is nested too deep."""
    try:
        return msgspec.json.encode(value)
    except UNREADABLE:
        return b"null"
