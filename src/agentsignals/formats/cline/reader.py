"""The tasks and sessions of one family: what lies in a task's folder is read together."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.changes.hunks import created, edit_texts
from agentsignals.formats import Input, Reading
from agentsignals.formats import documents as one_document
from agentsignals.formats.bounds import amount
from agentsignals.formats.bounds import count as count_of
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.cline import KILO, PROFILE, ROO, kind_of, task_of
from agentsignals.formats.documents import Snapshot, as_text, each, is_list, largest, saw_again, tally
from agentsignals.formats.edits import record_arguments
from agentsignals.formats.head import head_of
from agentsignals.formats.profile import Profile
from agentsignals.formats.records import UNREADABLE, document, saw
from agentsignals.model import RAN, SESSION_TOTAL, CallStatus, EventKind, Session, Step, ToolCall, logged_ms

# The files of Cline's family as they are decoded: only the fields that are read.

Decoded = TypeVar("Decoded")


BLOCKS = frozenset(("text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document", "file"))
"""The types of a message's blocks that are known."""


class ModelInfo(Struct, gc=False, kw_only=True):
    """The model of a row, in the words of the extension (`modelId`) or of the CLI (`id`)."""

    modelId: str | None = None
    providerId: str | None = None
    id: str | None = None
    provider: str | None = None
    mode: str | None = None


class Row(Struct, gc=False, kw_only=True):
    """What the page of a task shows in one place."""

    ts: object = None
    type: str = ""
    ask: str | None = None
    say: str | None = None
    text: str | None = None
    partial: bool | None = None
    images: list[str] | None = None
    modelInfo: ModelInfo | None = None

    @property
    def kind(self) -> str:
        return (self.say if self.type == "say" else self.ask) or ""


class Usage(Struct, gc=False, kw_only=True):
    """What a row says of a model call; filled in when the call is over."""

    request: str = ""
    tokensIn: object = None
    tokensOut: object = None
    cacheReads: object = None
    cacheWrites: object = None
    cost: object = None
    cancelReason: str | None = None
    streamingFailedMessage: str | None = None


class Metrics(Struct, gc=False, kw_only=True):
    """The tokens of a message of the CLI."""

    inputTokens: object = None
    outputTokens: object = None
    cacheReadTokens: object = None
    cacheWriteTokens: object = None
    cost: object = None


class Block(Struct, kw_only=True):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = Raw()
    tool_use_id: str | None = None
    content: object = None
    is_error: bool | None = None


class Message(Struct, kw_only=True):
    """A message of the model's history."""

    role: str
    content: str | list[Block] = ""
    id: str | None = None
    ts: object = None
    modelInfo: ModelInfo | None = None
    metrics: Metrics | None = None

    @property
    def blocks(self) -> list[Block]:
        return [Block(type="text", text=self.content)] if isinstance(self.content, str) else self.content


class Environment(Struct, gc=False, kw_only=True):
    cline_version: str | None = None


class Used(Struct, gc=False, kw_only=True):
    model_id: str | None = None


class Metadata(Struct, kw_only=True):
    """`task_metadata.json`."""

    model_usage: list[Used] = []
    environment_history: list[Environment] = []


class Item(Struct, kw_only=True):
    """Roo's `history_item.json`: what the list of tasks says of one."""

    id: str | None = None
    parentTaskId: str | None = None
    workspace: str | None = None


class Origin(Struct, gc=False, kw_only=True):
    version: str | None = None
    parentThreadId: str | None = None
    """Of a subagent: the session that started it."""


class Chat(Struct, kw_only=True):
    """The messages of a session of the CLI."""

    sessionId: str = ""
    messages: list[Raw] = []
    origin: Origin | None = None


class Titled(Struct, gc=False, kw_only=True):
    title: str | None = None
    sessionHistoryOrigin: Origin | None = None


class Run(Struct, kw_only=True):
    """What the CLI says of a session beside its messages."""

    session_id: str = ""
    cwd: str | None = None
    parent_session_id: str | None = None
    is_subagent: bool | None = None
    metadata: Titled | None = None


class Rows(Struct):
    rows: list[Raw] = []


_list, _rows_records = msgspec.json.Decoder(list[Raw]).decode, msgspec.json.Decoder(Rows).decode
row = msgspec.json.Decoder(Row).decode
decode_message = msgspec.json.Decoder(Message).decode
decode_metadata = msgspec.json.Decoder(Metadata).decode
decode_item = msgspec.json.Decoder(Item).decode
decode_chat = msgspec.json.Decoder(Chat).decode
decode_run = msgspec.json.Decoder(Run).decode


def rows(data: memoryview | bytes) -> Rows:
    """A file that is a list, record by record."""
    return Rows(_list(data)) if is_list(bytes(data)) else _rows_records(data)


def inside(text: str | None, kind: type[Decoded]) -> Decoded | None:
    """JSON that stands in a text; None where it is none."""
    try:
        return msgspec.json.decode((text or "").encode("utf-8", "replace"), type=kind)
    except UNREADABLE:
        return None


# Sessions of Cline's CLI from 3.0 on: the messages of one, in a document, and what is said of it in another.

CACHED_INSIDE = frozenset(("openai-compatible",))
"""Providers whose cached tokens are part of what is logged as input (design/formats.md#token-usage)."""
_INPUT = re.compile(r'<user_input(?: mode="(\w{1,20})")?>(.*?)(?:</user_input>|\Z)', re.DOTALL)
_EXITED = re.compile(r"exited with code (-?\d{1,10})")
_CREATED = "File created"
_arguments_cli = msgspec.json.Decoder(dict[str, Any]).decode


def sessions(files: Iterable[tuple[Input, str]]) -> list[Session]:
    """The sessions of these files, each from its fullest copy."""
    runs: dict[str, Run] = {}
    snapshots: list[Snapshot[Chat]] = []
    for source, kind in files:
        if kind == "run":
            run = document(source.data, source.artifact, decode_run)
            if run is not None:
                saw(source.artifact, "run")
                runs[run.session_id] = run
        elif (chat := one_document.read(source, decode_chat, "messages")) is not None:
            session_id = chat.sessionId or source.session_hint or source.artifact.artifact_id
            snapshots.append(Snapshot(source, chat, session_id, len(chat.messages)))
            read = each(chat.messages, decode_message, source.artifact)
            tally(source.artifact, "message", [None if m is None else m.role for m in read])
    return [_Reader(snapshot, runs).session() for snapshot in largest(snapshots)]


class _Reader:
    """One session in the making."""

    def __init__(self, snapshot: Snapshot[Chat], runs: Mapping[str, Run]) -> None:
        self.chat = snapshot.document
        run = runs.get(snapshot.session_id, Run())
        parent_id = run.parent_session_id or (self.chat.origin.parentThreadId if self.chat.origin is not None else None)
        session = snapshot.source.session(snapshot.session_id, "cline", PROFILE.agent)
        self.builder = SessionBuilder(session, PROFILE)
        self.builder.where(run.cwd or runs.get(parent_id or "", run).cwd)
        described = run.metadata
        origin = self.chat.origin or (described.sessionHistoryOrigin if described is not None else None)
        session.agent_version = origin.version if origin is not None else None
        session.title = described.title if described is not None else None
        session.parent_session_id = parent_id
        self.mode: str | None = None
        self.touched: set[str] = set()

    def session(self) -> Session:
        for number, raw in enumerate(self.chat.messages, 1):
            self.builder.line = number
            try:
                message = decode_message(bytes(raw))
            except UNREADABLE:
                continue
            at = logged_ms(message.ts)
            self.builder.unread((b.type for b in message.blocks), BLOCKS, at)
            if message.role == "assistant":
                self._assistant(message, at)
            elif message.role == "user":
                self._user(message, at)
            else:
                self.builder.event("unknown", f"message of role {message.role}"[:80], at)
        return self.builder.finish()

    def _assistant(self, message: Message, at: int | None) -> None:
        builder, info = self.builder, message.modelInfo
        step = builder.step(message.id, info.id if info is not None else None, at)
        self._count(step, message)
        for block in message.blocks:
            if block.type == "tool_use":
                self._call(block, at, step)
            elif block.type in ("text", "thinking") and (text := block.text or block.thinking):
                builder.event("text" if block.type == "text" else "thinking", text, at, step)

    def _count(self, step: Step, message: Message) -> None:
        used, info = message.metrics, message.modelInfo
        if used is None:
            return
        fields = (used.inputTokens, used.outputTokens, used.cacheReadTokens, used.cacheWriteTokens)
        put_in, put_out, read, write = map(count_of, fields)
        if any((put_in, put_out, read, write)):
            if put_in is not None and info is not None and info.provider in CACHED_INSIDE:
                put_in = max(put_in - (read or 0) - (write or 0), 0)
            step.input_tokens, step.output_tokens = put_in, put_out
            step.cache_read_tokens, step.cache_write_tokens = read, write
        if used.cost:
            step.cost_usd, step.cost_source = amount(used.cost), "recorded"

    def _call(self, block: Block, at: int | None, step: Step) -> None:
        """A list of commands is one script; of files that are read together the first names the call."""
        name, arguments, path = block.name or "", bytes(block.input) or b"{}", None
        try:
            passed = _arguments_cli(arguments)
        except UNREADABLE:
            passed = {}
        commands, files = passed.get("commands"), passed.get("files")
        if isinstance(commands, list) and commands and all(isinstance(c, str) for c in commands):
            arguments = json.dumps({"command": "\n".join(commands)}, ensure_ascii=False).encode()
        if isinstance(files, list) and files and isinstance(files[0], dict):
            path = files[0].get("path") if isinstance(files[0].get("path"), str) else None
        self.builder.call(block.id or "", name, arguments, PROFILE.tool(name), at, step, path=path)

    def _user(self, message: Message, at: int | None) -> None:
        results = [block for block in message.blocks if block.type == "tool_result"]
        for block in results:
            self._result(block, at)
        for block in message.blocks:
            if block.type == "text" and block.text:
                self._text(block.text, at)
        kinds = {block.type for block in message.blocks}
        if kinds and kinds <= {"image", "file"}:
            self._turn("attachment", "", at)

    def _text(self, text: str, at: int | None) -> None:
        """What a person typed stands in a tag; another tag, or a heading in brackets, is the program's."""
        typed = _INPUT.match(text.strip())
        if typed is None:
            if text.lstrip()[:1] in ("<", "[") or PROFILE.machine_kind(text):
                self.builder.event("meta", text, at)
            else:
                self._turn("prompt", text.strip(), at)
            return
        if typed[1] and self.mode and typed[1] != self.mode:
            self.builder.event("phase", typed[1], at)
        self.mode = typed[1] or self.mode
        self._turn("prompt", typed[2].strip(), at)

    def _turn(self, kind: str, text: str, at: int | None) -> None:
        if self.builder.session.parent_session_id is not None:
            self.builder.event("meta", text, at)
        elif text or kind == "attachment":
            self.builder.turn("attachment" if kind == "attachment" else "prompt", text, at)

    def _result(self, block: Block, at: int | None) -> None:
        """Of each command, file or query the result holds what came of it: one that failed is a failure."""
        parts = _parts(block.content)
        text = "\n".join(_part_text(part) for part in parts)
        failed = block.is_error is True or any(isinstance(p, dict) and p.get("success") is False for p in parts)
        asked = self.builder.calls_of(block.tool_use_id or "")
        code = None
        if asked and asked[0].command is not None:
            codes = [int(m[1]) for part in parts if (m := _EXITED.search(_part_text(part)[:400]))]
            code = next((c for c in codes if c), None if failed else 0)
        status: CallStatus = "error" if failed else "ok"
        call = self.builder.result(block.tool_use_id or "", text, status, at, exit_code=code) if asked else None
        if call is None:
            self.builder.event("tool_result", text, at)
            return
        if call.status in RAN and call.class_ == "edit":
            texts = edit_texts(call.arguments, call.argument_roles)
            if texts and text.startswith(_CREATED):
                self.builder.edit(call, None, "create", [created(texts[0].new)])
            else:
                record_arguments(self.builder, call, self.touched)
        if call.path:
            self.touched.add(call.path)


def _parts(content: object) -> Sequence[object]:
    if isinstance(content, str):
        try:
            content = msgspec.json.decode(content)
        except UNREADABLE:
            return [content]
    return content if isinstance(content, list) else [content]


def _part_text(part: object) -> str:
    if not isinstance(part, dict):
        return one_document.as_text(part)
    texts = [one_document.as_text(part.get(name)) for name in ("result", "error", "text")]
    return "\n".join(t for n, t in enumerate(texts) if t and t not in texts[:n]) or one_document.as_text(part)


# What the model's history says of calls: asked for as blocks, or as tags within a text, and answered the same way.

SAYS = frozenset(("attempt_completion", "plan_mode_respond", "act_mode_respond"))
"""Tools by which the model speaks: the page shows their texts."""
_WITHIN = (*PROFILE.tools, "list_code_definition_names", "execute_command", *sorted(SAYS))
_OPENS = re.compile(rf"<({'|'.join(dict.fromkeys(_WITHIN))})>")
_ARGUMENT = re.compile(r"<(\w{1,40})>")
_LONG = frozenset(("content", "diff", "patch", "input", "arguments", "search", "replace", "old_string", "new_string"))
"""Arguments that may hold tags themselves: they end at the last one that closes them."""
_HEADER = re.compile(r"\[(\w{1,60})(?: for [^\n]{0,2000})?\] Result:\n?")
_EXIT = re.compile(r"(?:with exit code|\(exit code|[Ee]xit code:) (-?\d{1,10})")
_NOTHING = "Result:\n(tool did not return anything)"
"""Sent after the result of an edit that failed, of the same call."""
_BEGINNING = 400
_REFUSED = ("The user denied this operation", '"status":"denied"')
_SKIPPED = ("Skipping tool due to user rejecting", "was interrupted and may have unintended side effects")
_FAILED = ("The tool execution failed", '"status":"error"', "was not executed", "does not exist. Please use")
_NO_CODE = ("Command executed.", "Command is still running")


class Asked(Struct, kw_only=True):
    """A call as the model asked for it."""

    call_id: str | None
    """None where calls go by their order."""
    name: str
    arguments: str


class Answered(Struct, kw_only=True):
    """A result as the model got it."""

    call_id: str | None
    text: str
    failed: bool = False
    is_output: bool = False
    """What a command printed, and nothing of how it ended."""


def answered_calls(message: Message) -> list[Asked]:
    """The calls of an answer."""
    asked: list[Asked] = []
    for block in message.blocks:
        if block.type == "tool_use":
            asked.append(
                Asked(
                    call_id=block.id,
                    name=block.name or "",
                    arguments=bytes(block.input).decode("utf-8", "replace") or "{}",
                )
            )
        elif block.type == "text":
            asked += _tagged(block.text or "")
    return [call for call in asked if call.name not in SAYS]


def words(text: str) -> str:
    """A text of the model without the calls within it."""
    opens = _OPENS.search(text)
    return (text[: opens.start()] if opens else text).strip()


def results(message: Message) -> Iterator[Answered]:
    """The results in a user's message, which also holds what the person said and what the program adds."""
    opened: Answered | None = None
    for block in message.blocks:
        if (block.text or "").endswith(_NOTHING):
            continue
        if block.type == "tool_result":
            yield Answered(call_id=block.tool_use_id, text=text_of(block.content), failed=block.is_error is True)
        elif block.type == "text":
            header = _HEADER.match(block.text or "")
            if header is not None:
                if opened is not None:
                    yield opened
                opened = Answered(call_id=None, text=(block.text or "")[header.end() :])
            elif opened is not None and not opened.text:
                opened.text = block.text or ""
    if opened is not None:
        yield opened


def result_in(request: str) -> Answered | None:
    """The same in the text of a request, as the page keeps it: of one call, for there is no telling where it ends."""
    header = _HEADER.match(request)
    if header is None:
        return None
    return Answered(call_id=None, text=request[header.end() :].partition("<environment_details>")[0].strip())


def status_of(result: Answered, is_command: bool) -> tuple[CallStatus, int | None]:
    """How a call ended, as its result says, and the exit code that stands in it."""
    head = result.text[:_BEGINNING]
    if any(words in head for words in _REFUSED):
        return "rejected", None
    if any(words in head for words in _SKIPPED):
        return "cancelled", None
    if result.is_output:
        return "unknown", None
    failed = result.failed or any(words in head for words in _FAILED)
    code = _EXIT.search(head.partition("Output:")[0]) if is_command else None
    if code is not None:
        return "error" if failed or int(code[1]) else "ok", int(code[1])
    return "error" if failed else "unknown" if is_command and head.startswith(_NO_CODE) else "ok", None


def text_of(content: object) -> str:
    """What a result holds, as text; pictures are left out."""
    if not isinstance(content, list):
        return as_text(content)
    texts = [part.get("text") if isinstance(part, dict) and part.get("type") == "text" else part for part in content]
    kept = [as_text(t) for t in texts if not (isinstance(t, dict) and t.get("type") == "image")]
    return "\n".join(kept)


def _tagged(text: str) -> Iterator[Asked]:
    at = 0
    while opens := _OPENS.search(text, at):
        close = f"</{opens[1]}>"
        end = text.find(close, opens.end())
        end = len(text) if end < 0 else end
        arguments = dict(_arguments(text[opens.end() : end]))
        yield Asked(call_id=None, name=opens[1], arguments=json.dumps(arguments, ensure_ascii=False))
        at = end + len(close)


def _arguments(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    unclosed: set[str] = set()
    while opens := _ARGUMENT.search(text, at):
        name, at = opens[1], opens.end()
        if name in unclosed:
            continue
        close = f"</{name}>"
        end = text.rfind(close, at) if name in _LONG else text.find(close, at)
        if end < 0:
            unclosed.add(name)
            continue
        value = text[at:end]
        yield name, value.removeprefix("\n").removesuffix("\n") if name in _LONG else value.strip()
        at = end + len(close)


def of_blocks(blocks: list[Block], kind: str) -> str:
    """The texts of the blocks of a kind (`text`, `thinking`)."""
    return "\n".join(text for b in blocks if b.type == kind and (text := b.text if kind == "text" else b.thinking))


# A task of Cline, Roo Code or Kilo Code: model calls, times, tokens and the person's words as its page shows them;
# what was called for and what came back as the model's history has it, for the page shows less of it, and
# differently.

CACHED_INSIDE_TASK = frozenset(("openai",))
"""Providers whose cached tokens are part of what is logged as input (design/formats.md#token-usage)."""
_SHOWS_CALL = {"tool": "", "command": "execute_command", "use_mcp_server": "use_mcp_server"}
_SHOWS_CALL |= {"browser_action_launch": "browser_action", "followup": "ask_followup_question"}
_QUIET = frozenset(
    (
        *("api_req_finished", "checkpoint_created", "checkpoint_saved", "task_progress"),
        *("resume_task", "resume_completed_task", "hook_status", "hook_output"),
        *("mcp_server_request_started", "load_mcp_documentation", "browser_action", "browser_action_result"),
        *("browser_session_status", "conditional_rules_applied", "auto_approval_max_req_reached", "subtask_result"),
        *("info", "codebase_search_result", "user_edit_todos", "shell_integration_warning"),
        *("mcp_notification"),
    )
)
_EVENTS: dict[str, EventKind] = {
    "text": "text",
    "completion_result": "text",
    "plan_mode_respond": "text",
    "act_mode_respond": "text",
    "reasoning": "thinking",
    "user_feedback_diff": "external_edit",
    "api_req_failed": "api_error",
    "api_req_retried": "api_error",
    "api_req_retry_delayed": "api_error",
    "error_retry": "api_error",
    "error": "meta",
    "diff_error": "meta",
    "clineignore_error": "meta",
    "rooignore_error": "meta",
    "condense_context_error": "meta",
    "mistake_limit_reached": "meta",
    "condense_context": "compaction",
    "sliding_window_truncation": "compaction",
    "condense": "compaction",
}
_REMOVED = ("deleted_api_reqs", "api_req_deleted")
_OUTPUTS = ("command_output", "mcp_server_response")
_WORDS: tuple[EventKind, ...] = ("thinking", "text")
_SAYS = ("text", "reasoning", "completion_result", "plan_mode_respond", "act_mode_respond")
_FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \(([^\n]{1,4000}?)\) Files")
_MODEL = re.compile(r"<model>([^<\n]{1,200})</model>")
_HUMAN = re.compile(r"\s*<(task|user_message|feedback)>\n?(.*?)\n?</\1>", re.DOTALL)
_STOPPED = "user_cancelled"


class Shown(Struct):
    """The page of a task."""

    source: Input
    rows: Sequence[tuple[int, Row]]


class History(Struct):
    """What the model got and answered."""

    source: Input
    messages: Sequence[tuple[int, Message]]


class _Exchange(Struct, kw_only=True):
    """A model call: the row of its request, what was shown until the next one, its answer, and what that one sent."""

    line: int = 0
    row: Row | None = None
    usage: Usage = field(default_factory=Usage)
    shown: list[tuple[int, Row]] = field(default_factory=list)
    answer: tuple[int, Message] | None = None
    after: tuple[int, Message] | None = None
    sent: str = ""
    until: int | None = None
    """When the next request was made."""

    @property
    def at(self) -> int | None:
        return logged_ms(self.row.ts) if self.row is not None else None


class TaskReader:
    """One task in the making."""

    def __init__(self, session: Session, profile: Profile, model: str | None) -> None:
        self.session = session
        self.builder = SessionBuilder(session, profile)
        self.profile = profile
        self.model = model
        self.mode: str | None = None
        self.provider: str | None = None
        self.touched: set[str] = set()
        self.page = self.talk = ""
        self.last_text = ""

    def read(self, shown: Shown | None, history: History | None) -> Session:
        self.page = shown.source.artifact.artifact_id if shown is not None else ""
        self.talk = history.source.artifact.artifact_id if history is not None else ""
        messages = history.messages if history is not None else ()
        before, exchanges = _exchanges(shown.rows if shown is not None else ())
        is_shown = bool(before or exchanges)
        exchanges = _with_answers(exchanges, messages)
        if messages:
            self._place(of_blocks(messages[0][1].blocks, "text"))
        for line, row in before:
            self._shown(line, row, "prompt")
        for n, exchange in enumerate(exchanges):
            if n + 1 < len(exchanges):
                exchange.sent, exchange.until = exchanges[n + 1].usage.request, exchanges[n + 1].at
            if not is_shown:
                self._words_before(messages, exchanges[n - 1].answer if n else None, exchange.answer)
            self._exchange(exchange)
        for number, message in messages:
            self._at(self.talk, number)
            self.builder.unread((b.type for b in message.blocks), BLOCKS, logged_ms(message.ts))
        return self.builder.finish()

    def _words_before(
        self,
        messages: Sequence[tuple[int, Message]],
        last: tuple[int, Message] | None,
        here: tuple[int, Message] | None,
    ) -> None:
        """The person's words before an answer, where the history alone is there."""
        first, end = last[0] if last else 0, here[0] if here else 0
        for number, message in messages:
            if not first < number < end or message.role != "user":
                continue
            for block in message.blocks:
                if human := _HUMAN.match(block.text or ""):
                    self._at(self.talk, number)
                    self.builder.turn("prompt", human[2].strip(), logged_ms(message.ts))

    def _place(self, text: str) -> None:
        if (folder := _FOLDER.search(text)) and self.session.cwd is None:
            self.builder.where(folder[1])
        if model := _MODEL.search(text):
            self.model = model[1]

    def _at(self, artifact_id: str, line: int) -> None:
        self.builder.artifact_id, self.builder.line = artifact_id, line

    def _exchange(self, exchange: _Exchange) -> None:
        builder = self.builder
        self._at(self.page, exchange.line)
        if exchange.row is None and exchange.answer is not None:
            self._at(self.talk, exchange.answer[0])
        self._place(exchange.usage.request)
        self._model(exchange.row, exchange.at)
        step = builder.step(None, self.model, exchange.at)
        self._count(step, exchange.usage)
        rest = list(exchange.shown)
        while rest and rest[0][1].kind in _SAYS:
            self._shown(*rest.pop(0), "prompt", step, exchange.usage)
        self._unshown(exchange, step)
        refused = self._calls(exchange, rest, step)
        if exchange.usage.cancelReason:
            ended: EventKind = "interrupt" if exchange.usage.cancelReason == _STOPPED else "api_error"
            agent_rows = [row for _, row in exchange.shown if row.kind in _SAYS or row.kind in _SHOWS_CALL]
            self._at(self.page, exchange.line)
            last = logged_ms(agent_rows[-1].ts) if agent_rows else exchange.at
            builder.event(ended, exchange.usage.streamingFailedMessage or exchange.usage.cancelReason, last, step)
        for line, row in rest:
            if row.kind not in _SHOWS_CALL and row.kind not in _OUTPUTS:
                self._shown(line, row, "rejection_feedback" if refused else "prompt", step, exchange.usage)

    def _unshown(self, exchange: _Exchange, step: Step) -> None:
        """What the model said and thought that the page lacks: it drops a text that a call follows at once."""
        if exchange.answer is None:
            return
        shown = {_EVENTS[row.kind] for _, row in exchange.shown if row.kind in _SAYS}
        number, message = exchange.answer
        at = logged_ms(message.ts)
        for kind in _WORDS:
            if kind not in shown and (text := words(of_blocks(message.blocks, kind))):
                self._at(self.talk, number)
                self.builder.event(kind, text, at if at is not None else exchange.at, step)

    def _calls(self, exchange: _Exchange, rest: list[tuple[int, Row]], step: Step) -> bool:
        """The calls of an answer and their results; whether the person refused one."""
        shows = [(line, row) for line, row in rest if row.kind in _SHOWS_CALL and row.partial is not True]
        times = [logged_ms(row.ts) for _, row in shows]
        asked = answered_calls(exchange.answer[1]) if exchange.answer is not None else []
        if asked and exchange.answer is not None:
            ended = logged_ms(exchange.answer[1].ts)
            calls = [
                self._call(
                    call, times[n] if n < len(times) else ended if ended is not None else exchange.at, step, exchange
                )
                for n, call in enumerate(asked)
            ]
            back = list(results(exchange.after[1])) if exchange.after is not None else []
        else:
            calls, back = [self._shown_call(line, row, step) for line, row in shows], []
        if not back and len(calls) == 1:
            answered = result_in(exchange.sent)
            back = [answered] if answered is not None else _outputs(rest)
        feedback = next((logged_ms(row.ts) for _, row in rest if row.kind == "user_feedback"), None)
        ended = feedback if feedback is not None else _last_time(exchange, rest)
        if exchange.after is not None and back:
            self._at(self.talk, exchange.after[0])
        for n, result in enumerate(back):
            call = calls[n] if n < len(calls) else None
            self._result(result.call_id or (call.call_id if call is not None else ""), result, ended)
        return any(call.status == "rejected" for call in calls)

    def _call(self, asked: Asked, at: int | None, step: Step, exchange: _Exchange) -> ToolCall:
        if exchange.answer is not None:
            self._at(self.talk, exchange.answer[0])
        call_id = asked.call_id or f"{step.step}.{len(self.session.tool_calls)}"
        return self.builder.call(call_id, asked.name, asked.arguments, self.profile.tool(asked.name), at, step)

    def _shown_call(self, line: int, row: Row, step: Step) -> ToolCall:
        """A call as the page shows it: an edit as what became of it, a command as its words."""
        self._at(self.page, line)
        name, arguments = _SHOWS_CALL[row.kind], row.text or "{}"
        if row.kind == "tool":
            shown = inside(row.text, dict) or {}
            name = str(shown.get("tool") or "tool")
        elif row.kind == "command":
            arguments = json.dumps({"command": row.text or ""}, ensure_ascii=False)
        elif row.kind == "browser_action_launch":
            arguments = json.dumps({"action": "launch", "url": row.text or ""}, ensure_ascii=False)
        call_id = f"{step.step}.{len(self.session.tool_calls)}"
        return self.builder.call(call_id, name, arguments, self.profile.tool(name), logged_ms(row.ts), step)

    def _result(self, call_id: str, result: Answered, at: int | None) -> None:
        asked = self.builder.calls_of(call_id)
        is_command = bool(asked) and asked[0].command is not None
        status, code = status_of(result, is_command)
        call = self.builder.result(call_id, result.text, status, at, exit_code=code) if asked else None
        if call is None:
            self.builder.event("tool_result", result.text, at)
            return
        if call.status in RAN and call.class_ == "edit":
            record_arguments(self.builder, call, self.touched)
        if call.path:
            self.touched.add(call.path)

    def _shown(self, line: int, row: Row, as_turn: str, step: Step | None = None, usage: Usage | None = None) -> None:
        """A row that is no call: words of the agent or the person, or something that happened."""
        self._at(self.page, line)
        builder, at, text = self.builder, logged_ms(row.ts), row.text or ""
        self._model(row, at)
        if row.partial is True and (usage is None or not usage.cancelReason):
            return  # another row says it whole
        if row.kind in ("task", "user_feedback") or (row.kind == "text" and step is None and not self.session.turns):
            self._turn(row, text, at, as_turn)
        elif row.kind in _REMOVED:
            self._removed(row, at)
        elif row.kind in _EVENTS:
            if row.type == "ask" and row.kind in _SAYS and text in ("", self.last_text):
                return  # said before it is asked about
            kind = _EVENTS[row.kind]
            text = (inside(text, dict) or {}).get("response") or text if row.kind == "plan_mode_respond" else text
            text = text or ("{}" if kind == "compaction" else "")
            if text or kind != "text":
                builder.event(kind, str(text), at, step if kind in ("text", "thinking") else None)
            self.last_text = str(text) if kind == "text" else self.last_text
        elif row.kind not in _QUIET and row.kind not in _OUTPUTS and row.kind not in _SHOWS_CALL:
            builder.event("unknown", f"{row.type} {row.kind}"[:80], at)

    def _turn(self, row: Row, text: str, at: int | None, as_turn: str) -> None:
        is_parent = self.session.parent_session_id is not None and not self.session.events
        kind = self.profile.machine_kind(text)
        if is_parent or kind:
            self.builder.event(kind or "meta", text, at)
        elif text.strip():
            self.builder.turn("rejection_feedback" if as_turn == "rejection_feedback" else "prompt", text.strip(), at)
        elif row.images:
            self.builder.turn("attachment", "", at)
        if self.session.title is None and row.kind != "user_feedback" and text.strip():
            self.session.title = text.strip().split("\n", 1)[0][:200]

    def _removed(self, row: Row, at: int | None) -> None:
        """What requests cost that the person went back from: their rows are gone."""
        if (usage := inside(row.text, Usage)) is not None:
            step = self.builder.step(None, self.model, at)
            step.stop_reason = SESSION_TOTAL
            self._count(step, usage)

    def _model(self, row: Row | None, at: int | None) -> None:
        info = row.modelInfo if row is not None else None
        if info is None:
            return
        self.provider = info.providerId or self.provider
        self.model = info.modelId or self.model
        if info.mode and self.mode and info.mode != self.mode:
            self.builder.event("phase", info.mode, at)
        self.mode = info.mode or self.mode

    def _count(self, step: Step, usage: Usage) -> None:
        """A call that never answered says nothing, or zeros."""
        fields = (usage.tokensIn, usage.tokensOut, usage.cacheReads, usage.cacheWrites)
        put_in, put_out, read, write = map(count_of, fields)
        if any((put_in, put_out, read, write)):
            if put_in is not None and self.provider in CACHED_INSIDE_TASK:
                put_in = max(put_in - (read or 0) - (write or 0), 0)
            step.input_tokens, step.output_tokens = put_in, put_out
            step.cache_read_tokens, step.cache_write_tokens = read, write
        if usage.cost:  # 0 is what a model without a price shows
            step.cost_usd, step.cost_source = amount(usage.cost), "recorded"


def _exchanges(rows: Iterable[tuple[int, Row]]) -> tuple[list[tuple[int, Row]], list[_Exchange]]:
    """What was shown before the first request, and each request with what was shown after it."""
    before: list[tuple[int, Row]] = []
    exchanges: list[_Exchange] = []
    for line, row in rows:
        if row.kind == "api_req_started":
            exchanges.append(_Exchange(line=line, row=row, usage=inside(row.text, Usage) or Usage()))
        else:
            (exchanges[-1].shown if exchanges else before).append((line, row))
    return before, exchanges


def _with_answers(exchanges: list[_Exchange], messages: Sequence[tuple[int, Message]]) -> list[_Exchange]:
    """Each answer goes to the request that was under way when it came; where no times are logged, to the next request
    that was not broken off. One that no request stands for makes a call of its own."""
    pairs = [
        (place, (messages[n + 1] if n + 1 < len(messages) and messages[n + 1][1].role == "user" else None))
        for n, place in enumerate(messages)
        if place[1].role == "assistant"
    ]
    at = 0
    beside: list[_Exchange] = []
    for answer, after in pairs:
        came = answer[1].ts
        if isinstance(came, int | float):
            while at + 1 < len(exchanges) and _began(exchanges[at + 1]) <= came:
                at += 1
            fits = at < len(exchanges) and _began(exchanges[at]) <= came and exchanges[at].answer is None
        else:
            while at < len(exchanges) and (exchanges[at].answer is not None or exchanges[at].usage.cancelReason):
                at += 1
            fits = at < len(exchanges)
        if fits:
            exchanges[at].answer, exchanges[at].after = answer, after
        else:
            beside.append(_Exchange(answer=answer, after=after))
    return exchanges + beside


def _began(exchange: _Exchange) -> float:
    began = exchange.row.ts if exchange.row is not None else None
    return began if isinstance(began, int | float) else 0


def _outputs(rest: Iterable[tuple[int, Row]]) -> list[Answered]:
    """What commands printed, as the page shows it: together, for it comes in pieces."""
    texts = [row.text or "" for _, row in rest if row.kind in _OUTPUTS and row.type == "say"]
    texts = texts or [row.text or "" for _, row in rest if row.kind in _OUTPUTS]
    return [Answered(call_id=None, text="".join(texts), is_output=True)] if any(texts) else []


def _last_time(exchange: _Exchange, rest: Sequence[tuple[int, Row]]) -> int | None:
    """When the results were sent. A task that goes on later writes its last message of results anew."""
    sent = logged_ms(exchange.after[1].ts) if exchange.after is not None else None
    if sent is not None or exchange.until is not None:
        return min(at for at in (sent, exchange.until) if at is not None)
    return logged_ms(rest[-1][1].ts) if rest else exchange.at


T = TypeVar("T", Row, Message)

_PLACES = (
    ("rooveterinaryinc.roo-", ROO),
    ("kilocode.kilo-code", KILO),
    ("saoudrizwan.claude-dev", PROFILE),
    ("/.cline/", PROFILE),
)
_OF_ROO = frozenset(
    ("checkpoint_saved", "api_req_retry_delayed", "condense_context", "codebase_search_result", "rooignore_error")
)
"""What Roo Code's page shows, and Kilo Code's, that began as it."""


class _Folder(Struct):
    """A task's folder."""

    shown: Shown | None = None
    history: History | None = None
    metadata: Metadata = field(default_factory=Metadata)
    item: Item = field(default_factory=Item)
    inputs: list[Input] = field(default_factory=list)

    @property
    def size(self) -> tuple[int, int]:
        return (len(self.shown.rows) if self.shown else 0, len(self.history.messages) if self.history else 0)


def read(inputs: list[Input]) -> Reading:
    """All files of one family; of several copies of a task the one with most rows."""
    folders: dict[str, _Folder] = {}
    of_cli: list[tuple[Input, str]] = []
    for source in inputs:
        kind = kind_of(head_of(source.data, source.artifact.path))
        if kind in ("chat", "run"):
            of_cli.append((source, kind))
        else:
            folder = folders.setdefault(posixpath.dirname(source.artifact.path), _Folder())
            folder.inputs.append(source)
            _take(folder, source, kind)
    tasks: dict[str, _Folder] = {}
    for folder in sorted(folders.values(), key=lambda f: f.size, reverse=True):
        if folder.size == (0, 0):
            continue
        kept = tasks.setdefault(_id_of(folder), folder)
        if kept is not folder:
            for source in folder.inputs:
                source.artifact.note = f"superseded by {kept.inputs[0].artifact.artifact_id}"
                saw_again(source.artifact)
    return Reading([_read(task_id, tasks[task_id]) for task_id in sorted(tasks)] + sessions(of_cli))


def _take(folder: _Folder, source: Input, kind: str | None) -> None:
    if kind == "metadata":
        if (metadata := document(source.data, source.artifact, decode_metadata)) is not None:
            saw(source.artifact, kind)
            folder.metadata = metadata
    elif kind == "item":
        if (item := document(source.data, source.artifact, decode_item)) is not None:
            saw(source.artifact, kind)
            folder.item = item
    elif kind == "history":
        messages = list(_rows(source, decode_message, "message", lambda m: m.role))
        folder.history = History(source=source, messages=messages)
    else:
        folder.shown = Shown(source=source, rows=list(_rows(source, row, "row", lambda r: f"{r.type}.{r.kind}")))


def _rows(
    source: Input, decode: Callable[[memoryview | bytes], T], group: str, kind: Callable[[T], str]
) -> Iterator[tuple[int, T]]:
    """The records of a list that can be read, each with its place in it."""
    listed = one_document.read(source, rows, "rows")
    read = [] if listed is None else each(listed.rows, decode, source.artifact)
    tally(source.artifact, group, [None if row is None else kind(row) for row in read])
    return ((number, row) for number, row in enumerate(read, 1) if row is not None)


def _id_of(folder: _Folder) -> str:
    source = folder.inputs[0]
    return folder.item.id or task_of(source.artifact.path) or source.session_hint or source.artifact.artifact_id


def _read(task_id: str, folder: _Folder) -> Session:
    first = folder.shown.source if folder.shown is not None else folder.inputs[0]
    profile = _agent(folder)
    session = first.session(task_id, "cline", profile.agent)
    session.parent_session_id = folder.item.parentTaskId
    used = folder.metadata.model_usage
    reader = TaskReader(session, profile, next((u.model_id for u in used if u.model_id), None))
    reader.builder.where(folder.item.workspace)
    versions = [e.cline_version for e in folder.metadata.environment_history if e.cline_version]
    session.agent_version = versions[-1] if versions else None
    return reader.read(folder.shown, folder.history)


def _agent(folder: _Folder) -> Profile:
    """By the extension that the place names; else by what the page shows."""
    path = folder.inputs[0].artifact.path
    named = next((profile for place, profile in _PLACES if place in path), None)
    if named is not None:
        return named
    rows = folder.shown.rows if folder.shown is not None else ()
    return ROO if any(row.kind in _OF_ROO for _, row in rows) else PROFILE
