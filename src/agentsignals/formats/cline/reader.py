"""Reads tasks of Cline, Roo Code and Kilo Code, and sessions of Cline's CLI. The structs hold only the fields that are
read. The files of a task's folder are read together."""

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeVar, cast

from msgspec import Raw, Struct, field

from agentsignals.changes.hunks import created, edit_texts
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import amount
from agentsignals.formats.builder import charge, tokens_of
from agentsignals.formats.cline import KILO, PROFILE, ROO, kind_of, task_of
from agentsignals.formats.conversation import Block as AnyBlock
from agentsignals.formats.conversation import Conversation, Document, DocumentReader, blocks_of
from agentsignals.formats.documents import Messages, is_list, messages_of, saw_again, tally
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.records import as_list, as_text, decoded, decoder, document, head_of, inside, saw, string
from agentsignals.model import (
    ABANDONED,
    SESSION_TOTAL,
    CallStatus,
    EventKind,
    Session,
    Step,
    ToolCall,
    TurnKind,
    logged_ms,
)

_BLOCKS = frozenset(("text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document", "file"))


class Row(Struct, gc=False, kw_only=True):
    """A row of a task's page."""

    ts: object = None
    type: str = ""
    ask: str | None = None
    say: str | None = None
    text: str | None = None
    partial: bool | None = None
    images: list[str] | None = None
    modelInfo: object = None
    contextCondense: object = None
    """In Roo's `condense_context`: what that request cost. Its tokens are not told."""

    @property
    def kind(self) -> str:
        return (self.say if self.type == "say" else self.ask) or ""


class Usage(Struct, gc=False, kw_only=True):
    """A model call as a row states it. It is filled in when the call is over."""

    request: str = ""
    tokensIn: object = None
    tokensOut: object = None
    cacheReads: object = None
    cacheWrites: object = None
    cost: object = None
    cancelReason: str | None = None
    streamingFailedMessage: str | None = None


class Block(AnyBlock, gc=False, kw_only=True):
    content: object = None  # type: ignore[assignment]  # of a result: a text, parts, or what the tool returned


class Message(Struct, kw_only=True):
    role: str
    content: str | list[Block] = ""
    id: str | None = None
    ts: object = None
    modelInfo: object = None
    metrics: object = None

    @property
    def blocks(self) -> Sequence[Block]:
        return blocks_of(self.content, Block)


class Chat(Document, kw_only=True):
    id: str = field(name="sessionId", default="")
    origin: object = None


T = TypeVar("T")

_PLACES = (
    ("rooveterinaryinc.roo-", ROO),
    ("kilocode.kilo-code", KILO),
    ("saoudrizwan.claude-dev", PROFILE),
    ("/.cline/", PROFILE),
)
_ROO_ROWS = frozenset(
    ("checkpoint_saved", "api_req_retry_delayed", "condense_context", "codebase_search_result", "rooignore_error")
)
"""Rows of Roo Code's page, and of Kilo Code's, which is a fork of it."""


class _Folder(Struct):
    """A task's folder: the rows of its page, the messages between program and model, and two documents about it."""

    page: Input | None = None
    rows: Messages[Row] = field(default_factory=list)
    history: Input | None = None
    messages: Messages[Message] = field(default_factory=list)
    metadata: object = None
    """`task_metadata.json`."""
    item: object = None
    """Roo's `history_item.json`: an entry of the list of tasks."""
    inputs: list[Input] = field(default_factory=list)

    @property
    def size(self) -> tuple[int, int]:
        return sum(row is not None for row in self.rows), sum(message is not None for message in self.messages)

    @property
    def task_id(self) -> str:
        first = self.inputs[0]
        named = string(inside(self.item, "id")) or task_of(first.artifact.path)
        return named or first.session_hint or first.artifact.artifact_id


def read(inputs: list[Input]) -> Reading:
    """Read a group of files. Of several copies of a task the one with most rows counts."""
    folders: dict[str, _Folder] = {}
    chats: list[Input] = []
    runs: dict[object, object] = {}
    for source in inputs:
        kind = kind_of(head_of(source.data, source.artifact.path))
        if kind == "chat":
            chats.append(source)
            continue
        if kind == "run":
            run = _document(source, kind)
            runs[string(inside(run, "session_id"))] = run
            continue
        folder = folders.setdefault(posixpath.dirname(source.artifact.path), _Folder())
        folder.inputs.append(source)
        if kind == "metadata":
            folder.metadata = _document(source, kind)
        elif kind == "item":
            folder.item = _document(source, kind)
        elif kind == "history":
            folder.history, folder.messages = source, _rows(source, Message, "message", lambda m: m.role)
        else:
            folder.page, folder.rows = source, _rows(source, Row, "row", lambda r: f"{r.type}.{r.kind}")
    tasks: dict[str, _Folder] = {}
    for folder in sorted(folders.values(), key=lambda f: f.size, reverse=True):
        if folder.size == (0, 0):
            continue
        first = tasks.setdefault(folder.task_id, folder)
        if first is not folder:
            for source in folder.inputs:
                source.artifact.note = f"superseded by {first.inputs[0].artifact.artifact_id}"
                saw_again(source.artifact)
    read_tasks = [TaskReader(task_id, tasks[task_id]).read() for task_id in sorted(tasks)]
    return Reading(read_tasks + ChatReader.read(chats, runs).sessions)


def _document(source: Input, kind: str) -> dict[str, Any]:
    found = document(source.data, source.artifact, decoder(dict[str, Any]).decode)
    if found is not None:
        saw(source.artifact, kind)
    return found or {}


def _rows(source: Input, type_: Any, group: str, kind: Callable[[Any], str]) -> Messages[Any]:
    """Return the records of a list; None for one that can't be read."""
    decode = decoder(type_).decode
    listed = read_document(source, _list, "rows") or []
    records = messages_of(source.data, listed, lambda raw, _: decode(raw), source.artifact)
    tally(source.artifact, group, (None if record is None else kind(record) for record in records))
    return records


def _list(data: memoryview | bytes) -> list[Raw]:
    """Decode a list, or what `documents.read` salvaged of a broken one."""
    rows: list[Raw] = (
        decoder(list[Raw]).decode(data)
        if is_list(cast("bytes", data))
        else decoder(dict[str, list[Raw]]).decode(data).get("rows", [])
    )
    return rows


def _decoded(text: str | None, type_: type[T]) -> T | None:
    return decoded((text or "").encode("utf-8", "replace"), type_)


# -- tasks -----------------------------------------------------------------------------------------------------------

_SHOWS_CALL = {"tool": "", "command": "execute_command", "use_mcp_server": "use_mcp_server"}
_SHOWS_CALL |= {"browser_action_launch": "browser_action", "followup": "ask_followup_question"}
_IGNORED = frozenset(
    ("api_req_finished", "checkpoint_created", "checkpoint_saved", "task_progress", "resume_task",
     "resume_completed_task", "hook_status", "hook_output", "mcp_server_request_started", "load_mcp_documentation",
     "browser_action", "browser_action_result", "browser_session_status", "conditional_rules_applied",
     "auto_approval_max_req_reached", "subtask_result", "info", "codebase_search_result", "user_edit_todos",
     "shell_integration_warning", "mcp_notification")
)  # fmt: skip
_ROWS: dict[EventKind, str] = {
    "text": "text completion_result plan_mode_respond act_mode_respond",
    "thinking": "reasoning",
    "external_edit": "user_feedback_diff",
    "api_error": "api_req_failed api_req_retried api_req_retry_delayed error_retry",
    "meta": "error diff_error clineignore_error rooignore_error condense_context_error mistake_limit_reached",
    "compaction": "condense_context sliding_window_truncation condense",
}
_EVENTS = {row: kind for kind, rows in _ROWS.items() for row in rows.split()}
_REMOVED = ("deleted_api_reqs", "api_req_deleted")
_OUTPUT_ROWS = ("command_output", "mcp_server_response")
_TEXT_KINDS: tuple[EventKind, ...] = ("thinking", "text")
_TEXT_ROWS = f"{_ROWS['text']} {_ROWS['thinking']}".split()
_FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \(([^\n]{1,4000}?)\) Files")
_MODEL = re.compile(r"<model>([^<\n]{1,200})</model>")
_HUMAN = re.compile(r"\s*<(task|user_message|feedback)>\n?(.*?)\n?</\1>", re.DOTALL)
_STOPPED = "user_cancelled"


class _Exchange(Struct, kw_only=True):
    """A model call: the row of its request, the rows after it, its answer, and the text of the next request."""

    line: int = 0
    row: Row | None = None
    usage: Usage = field(default_factory=Usage)
    shown: list[tuple[int, Row]] = field(default_factory=list)
    answer: tuple[int, Message] | None = None
    after: tuple[int, Message] | None = None
    sent: str = ""
    until: int | None = None
    """Time of the next request."""

    @property
    def at(self) -> int | None:
        return logged_ms(self.row.ts) if self.row is not None else None


class _Places(Struct, gc=False):
    """Places of a model call's records in the lists of its folder; -1 for one that is not there. A long task has a
    hundred thousand."""

    request: int = -1
    end: int = -1
    """After its last row."""
    began_ms: float = 0
    is_cancelled: bool = False
    answer: int = -1
    after: int = -1


class TaskReader(Conversation):
    """A task. Its page has model calls, times, tokens and prompts; the history has calls and results in full."""

    def __init__(self, task_id: str, folder: _Folder) -> None:
        first = folder.page or folder.inputs[0]
        path = folder.inputs[0].artifact.path
        named = next((profile for place, profile in _PLACES if place in path), None)
        is_roo = any(row.kind in _ROO_ROWS for row in folder.rows if row is not None)
        self.profile = named or (ROO if is_roo else PROFILE)
        super().__init__(first.session(task_id, "cline", self.profile.agent))
        self.folder = folder
        self.session.parent_session_id = string(inside(folder.item, "parentTaskId"))
        self.builder.where(string(inside(folder.item, "workspace")))
        models = [string(inside(used, "model_id")) for used in as_list(inside(folder.metadata, "model_usage"))]
        self.model = next(filter(None, models), None)
        ran_in = as_list(inside(folder.metadata, "environment_history"))
        versions = [string(inside(environment, "cline_version")) for environment in ran_in]
        self.session.agent_version = next(filter(None, reversed(versions)), None)
        self.mode: str | None = None
        self.provider: str | None = None
        self.last_text = ""

    def read(self) -> Session:
        folder = self.folder
        has_page, waiting = any(row is not None for row in folder.rows), 0
        first = next((message for message in folder.messages if message is not None), None)
        if first is not None:
            self.environment(_texts(first.blocks, "text"))
        planned = self.planned()
        requests = [places.request for places in planned if places.request >= 0]
        for line, row in self.rows(0, requests[0] if requests else len(folder.rows)):
            self.row(line, row)
        for places, (exchange, then) in zip(planned, pairwise(self.exchanges(planned)), strict=True):
            if then is not None:
                exchange.sent, exchange.until = then.usage.request, then.at
            if not has_page:
                self.prompts(waiting, places.answer)
                waiting = places.answer + 1
            self.exchange(exchange)
        for number, message in enumerate(folder.messages, 1):
            if message is not None:
                self.place(folder.history, number)
                self.builder.unread((b.type for b in message.blocks), _BLOCKS, logged_ms(message.ts))
        return self.builder.finish()

    def planned(self) -> list[_Places]:
        """Return the places of all model calls: of the page's requests, then of answers without one."""
        planned: list[_Places] = []
        for n, row in enumerate(self.folder.rows):
            if row is not None and row.kind == "api_req_started":
                if planned:
                    planned[-1].end = n
                began = row.ts if isinstance(row.ts, int | float) else 0
                cancelled = bool((_decoded(row.text, Usage) or Usage()).cancelReason)
                planned.append(_Places(n, len(self.folder.rows), began, cancelled))
        return _with_answers(planned, self.folder.messages)

    def exchanges(self, planned: list[_Places]) -> Iterator[_Exchange | Any]:
        """Yield each model call with its records, and at last None."""
        for places in planned:
            exchange = _Exchange(answer=self.message(places.answer), after=self.message(places.after))
            for exchange.line, exchange.row in self.rows(places.request, places.request + 1):
                exchange.usage = _decoded(exchange.row.text, Usage) or Usage()
            exchange.shown = list(self.rows(places.request + 1, places.end))
            yield exchange
        yield None

    def rows(self, start: int, end: int) -> Iterator[tuple[int, Row]]:
        """Yield rows of the page that can be read, each with its number."""
        rows = self.folder.rows[start:end] if 0 <= start < end else ()
        return ((n, row) for n, row in enumerate(rows, start + 1) if row is not None)

    def message(self, place: int) -> tuple[int, Message] | None:
        message = self.folder.messages[place] if place >= 0 else None
        return (place + 1, message) if message is not None else None

    def prompts(self, start: int, end: int) -> None:
        """Record the prompts before an answer, if there is no page."""
        for number, message in enumerate(self.folder.messages[start:end], start + 1):
            for block in message.blocks if message is not None and message.role == "user" else ():
                if human := _HUMAN.match(block.text or ""):
                    self.place(self.folder.history, number)
                    self.builder.turn("prompt", human[2].strip(), logged_ms(message.ts) if message else None)

    def environment(self, text: str) -> None:
        if (folder := _FOLDER.search(text)) and self.session.cwd is None:
            self.builder.where(folder[1])
        if model := _MODEL.search(text):
            self.model = model[1]

    def place(self, source: Input | None, line: int) -> None:
        self.builder.artifact_id = source.artifact.artifact_id if source is not None else ""
        self.builder.line = line

    def exchange(self, exchange: _Exchange) -> None:
        builder = self.builder
        self.place(self.folder.page, exchange.line)
        if exchange.row is None and exchange.answer is not None:
            self.place(self.folder.history, exchange.answer[0])
        self.environment(exchange.usage.request)
        self.model_info(exchange.row, exchange.at)
        step = builder.step(None, self.model, exchange.at)
        self.count(step, exchange.usage)
        rest = list(exchange.shown)
        while rest and rest[0][1].kind in _TEXT_ROWS:
            self.row(*rest.pop(0), step, exchange.usage)
        if exchange.answer is not None:  # the page drops a text that a call follows at once
            shown = {_EVENTS[row.kind] for _, row in exchange.shown if row.kind in _TEXT_ROWS}
            number, message = exchange.answer
            at = logged_ms(message.ts)
            for kind in _TEXT_KINDS:
                if kind not in shown and (text := _OPENS.split(_texts(message.blocks, kind), 1)[0].strip()):
                    self.place(self.folder.history, number)
                    self.event(kind, text, at if at is not None else exchange.at, step)
        refused = self.calls(exchange, rest, step)
        if exchange.usage.cancelReason:
            ended: EventKind = "interrupt" if exchange.usage.cancelReason == _STOPPED else "api_error"
            agent_rows = [row for _, row in exchange.shown if row.kind in _TEXT_ROWS or row.kind in _SHOWS_CALL]
            self.place(self.folder.page, exchange.line)
            last = logged_ms(agent_rows[-1].ts) if agent_rows else exchange.at
            self.event(ended, exchange.usage.streamingFailedMessage or exchange.usage.cancelReason, last, step)
        for line, row in rest:
            if row.kind not in _SHOWS_CALL and row.kind not in _OUTPUT_ROWS:
                self.row(line, row, step, exchange.usage, refused)

    def calls(self, exchange: _Exchange, rest: list[tuple[int, Row]], step: Step) -> bool:
        """Record the calls of an answer and their results. Return whether the person refused one."""
        shows = [(line, row) for line, row in rest if row.kind in _SHOWS_CALL and row.partial is not True]
        times = [logged_ms(row.ts) for _, row in shows]
        logged = _calls(exchange.answer[1]) if exchange.answer is not None else []
        if logged and exchange.answer is not None:
            ended, calls = logged_ms(exchange.answer[1].ts), []
            self.place(self.folder.history, exchange.answer[0])
            for n, call in enumerate(logged):
                at = times[n] if n < len(times) else ended if ended is not None else exchange.at
                call_id = call.call_id or f"{step.step}.{len(self.session.tool_calls)}"
                calls.append(self.call(call_id, call.name, call.arguments, at, step))
            back = list(_results(exchange.after[1])) if exchange.after is not None else []
        else:
            calls, back = [self.page_call(line, row, step) for line, row in shows], []
        if not back and len(calls) == 1:
            # A request as the page shows it has the result of one call, since its end is unmarked. Else the page shows
            # the output of a command, in pieces.
            if (header := _HEADER.match(exchange.sent)) is not None:
                text = exchange.sent[header.end() :].partition("<environment_details>")[0].strip()
                back = [LoggedResult(None, text)]
            else:
                outputs = [row for _, row in rest if row.kind in _OUTPUT_ROWS]
                said = [row for row in outputs if row.type == "say"] or outputs
                text = "".join(row.text or "" for row in said)
                back = [LoggedResult(None, text, is_output=True)] if text else []
        # The results were sent with the next request. A task that continues later writes its last results again.
        ended = next((logged_ms(row.ts) for _, row in rest if row.kind == "user_feedback"), None)
        if ended is None:
            sent = logged_ms(exchange.after[1].ts) if exchange.after is not None else None
            known = [at for at in (sent, exchange.until) if at is not None]
            ended = min(known) if known else logged_ms(rest[-1][1].ts) if rest else exchange.at
        if exchange.after is not None and back:
            self.place(self.folder.history, exchange.after[0])
        for n, result in enumerate(back):
            call_id = result.call_id or (calls[n].call_id if n < len(calls) else "")
            status, code = _status(result, is_command=self.is_command(call_id))
            self.result(call_id, result.text, status, ended, None, code)
            if status == "rejected" and not exchange.shown and (words := _FEEDBACK.search(result.text)):
                spoken = words[1] or _decoded(words[2], str) or words[2].strip('"')
                self.builder.turn("rejection_feedback", spoken, ended)
        return any(call.status == "rejected" for call in calls)

    def page_call(self, line: int, row: Row, step: Step) -> ToolCall:
        """Record a call as the page shows it: an edit by its outcome, a command by its line."""
        self.place(self.folder.page, line)
        name, arguments = _SHOWS_CALL[row.kind], row.text or "{}"
        if row.kind == "tool":
            tool = _decoded(row.text, dict) or {}
            name = str(tool.get("tool") or "tool")
        elif row.kind == "command":
            arguments = json.dumps({"command": row.text or ""}, ensure_ascii=False)
        elif row.kind == "browser_action_launch":
            arguments = json.dumps({"action": "launch", "url": row.text or ""}, ensure_ascii=False)
        call_id = f"{step.step}.{len(self.session.tool_calls)}"
        return self.call(call_id, name, arguments, logged_ms(row.ts), step)

    def row(
        self, line: int, row: Row, step: Step | None = None, usage: Usage | None = None, refused: bool = False
    ) -> None:
        """Record a row that is no call. `refused`: a prompt in it explains a refusal."""
        self.place(self.folder.page, line)
        at, text = logged_ms(row.ts), row.text or ""
        self.model_info(row, at)
        if row.partial is True and (usage is None or not usage.cancelReason):
            return  # another row has it in full
        if row.kind in ("task", "user_feedback") or (row.kind == "text" and step is None and not self.session.turns):
            self.user(row, text, at, refused)
        elif row.kind in (*_REMOVED, "subagent_usage"):
            # Requests that the person went back from, and those of subagents, were paid for, but have no rows.
            if (unseen := _decoded(row.text, Usage)) is not None:
                if row.kind in _REMOVED:
                    self.event("rewind", None, at)
                step = self.builder.step(None, self.model, at, ABANDONED if row.kind in _REMOVED else "subagents")
                step.turn, step.stop_reason = None, SESSION_TOTAL
                self.count(step, unseen)
        elif row.kind in _EVENTS:
            if row.type == "ask" and row.kind in _TEXT_ROWS and text in ("", self.last_text):
                return  # an earlier row has the same text
            kind = _EVENTS[row.kind]
            text = (_decoded(text, dict) or {}).get("response") or text if row.kind == "plan_mode_respond" else text
            text = text or ("{}" if kind == "compaction" else "")
            if text or kind != "text":
                self.event(kind, str(text), at, step if kind in ("text", "thinking") else None)
            self.last_text = str(text) if kind == "text" else self.last_text
            if (paid := amount(inside(row.contextCondense, "cost"))) and kind == "compaction":
                condensed = self.builder.step(None, self.model, at)
                condensed.cost_usd, condensed.cost_source = paid, "recorded"
        elif row.kind not in _IGNORED and row.kind not in _OUTPUT_ROWS and row.kind not in _SHOWS_CALL:
            self.event("unknown", f"{row.type} {row.kind}"[:80], at)

    def user(self, row: Row, text: str, at: int | None, refused: bool) -> None:
        is_parent = self.session.parent_session_id is not None and not self.session.events
        kind: TurnKind = "rejection_feedback" if refused else "prompt"
        self.builder.prompt(text.strip(), at, kind, by_person=not is_parent, attached=bool(row.images))
        if self.session.title is None and row.kind != "user_feedback" and text.strip():
            self.session.title = text.strip().split("\n", 1)[0][:200]

    def model_info(self, row: Row | None, at: int | None) -> None:
        info = row.modelInfo if row is not None else None
        self.provider = string(inside(info, "providerId")) or self.provider
        self.model = string(inside(info, "modelId")) or self.model
        mode = string(inside(info, "mode"))
        if mode and self.mode and mode != self.mode:
            self.event("phase", mode, at)
        self.mode = mode or self.mode

    def count(self, step: Step, usage: Usage) -> None:
        _charge(step, usage, usage.cost, self.provider == _CACHED_WITHIN_TASK)


def _with_answers(planned: list[_Places], messages: Messages[Message]) -> list[_Places]:
    """Match each answer with the request that was under way; without times, with the next request not broken off.

    An answer without a request is a call of its own.
    """
    at = 0
    unmatched: list[_Places] = []
    last: _Places | None = None
    for n, message in enumerate(messages):
        if message is not None and message.role == "user" and last is not None:
            last.after = n
        last = None if message is not None else last
        if message is None or message.role != "assistant":
            continue
        came = message.ts
        if isinstance(came, int | float):
            while at + 1 < len(planned) and planned[at + 1].began_ms <= came:
                at += 1
            fits = at < len(planned) and planned[at].began_ms <= came and planned[at].answer < 0
        else:
            while at < len(planned) and (planned[at].answer >= 0 or planned[at].is_cancelled):
                at += 1
            fits = at < len(planned)
        last = planned[at] if fits else _Places()
        last.answer = n
        unmatched += [] if fits else [last]
    return planned + unmatched


# -- calls and results in the model's history: blocks, or tags inside a text -----------------------------------------

_SPEAKING_TOOLS = frozenset(("attempt_completion", "plan_mode_respond", "act_mode_respond"))
"""Tools by which the model speaks. The page shows their texts."""
_WITHIN = (*PROFILE.tools, "list_code_definition_names", "execute_command", *sorted(_SPEAKING_TOOLS))
_OPENS = re.compile(rf"<({'|'.join(dict.fromkeys(_WITHIN))})>")
_ARGUMENT = re.compile(r"<(\w{1,40})>")
_LONG = frozenset(("content", "diff", "patch", "input", "arguments", "search", "replace", "old_string", "new_string"))
"""Arguments that may contain tags. They end at the last closing tag."""
_HEADER = re.compile(r"\[(\w{1,60})(?: for [^\n]{0,2000})?\] Result:\n?")
_EXIT = re.compile(r"(?:with exit code|\(exit code|[Ee]xit code:) (-?\d{1,10})")
_NOTHING = "Result:\n(tool did not return anything)"
"""Follows the result of a failed edit, for the same call."""
_BEGINNING = 400
_REFUSED = ("The user denied this operation", '"status":"denied"')
_FEEDBACK = re.compile(r'<feedback>\s*(.+?)\s*</feedback>|"feedback":\s*("(?:[^"\\]|\\.)+")', re.DOTALL)
"""A person's words in the result of a call that they refused. A task's page has them as a row of its own."""
_SKIPPED = ("Skipping tool due to user rejecting", "was interrupted and may have unintended side effects")
_FAILED = ("The tool execution failed", '"status":"error"', "was not executed", "does not exist. Please use")
_NO_CODE = ("Command executed.", "Command is still running")


class LoggedCall(Struct):
    call_id: str | None
    """None if results follow the order of calls."""
    name: str
    arguments: str


class LoggedResult(Struct):
    call_id: str | None
    text: str
    failed: bool = False
    is_output: bool = False
    """True if it is only the output of a command, not its end."""


def _calls(message: Message) -> list[LoggedCall]:
    """Return the calls of an answer."""
    logged: list[LoggedCall] = []
    for block in message.blocks:
        if block.type == "tool_use":
            arguments = bytes(block.input).decode("utf-8", "replace") or "{}"
            logged.append(LoggedCall(block.id, block.name or "", arguments))
        elif block.type == "text":
            logged += _tagged(block.text or "")
    return [call for call in logged if call.name not in _SPEAKING_TOOLS]


def _results(message: Message) -> Iterator[LoggedResult]:
    """Yield the results in a user message, which also holds the prompt and text of the program."""
    opened: LoggedResult | None = None
    for block in message.blocks:
        if (block.text or "").endswith(_NOTHING):
            continue
        if block.type == "tool_result":
            yield LoggedResult(block.tool_use_id, _content(block.content), block.is_error is True)
        elif block.type == "text":
            header = _HEADER.match(block.text or "")
            if header is not None:
                if opened is not None:
                    yield opened
                opened = LoggedResult(None, (block.text or "")[header.end() :])
            elif opened is not None and not opened.text:
                opened.text = block.text or ""
    if opened is not None:
        yield opened


def _status(result: LoggedResult, is_command: bool) -> tuple[CallStatus, int | None]:
    """Return the status of a call and the exit code that its result states."""
    head = result.text[:_BEGINNING]
    if any(text in head for text in _REFUSED):
        return "rejected", None
    if any(text in head for text in _SKIPPED):
        return "cancelled", None
    if result.is_output:
        return "unknown", None
    failed = result.failed or any(text in head for text in _FAILED)
    code = _EXIT.search(head.partition("Output:")[0]) if is_command else None
    if code is not None:
        return "error" if failed or int(code[1]) else "ok", int(code[1])
    return "error" if failed else "unknown" if is_command and head.startswith(_NO_CODE) else "ok", None


def _content(content: object) -> str:
    """Return a result as text, without pictures."""
    if not isinstance(content, list):
        return as_text(content)
    parts = [part for part in content if inside(part, "type") != "image"]
    return "\n".join(as_text(part["text"] if inside(part, "type") == "text" else part) for part in parts)


def _tagged(text: str) -> Iterator[LoggedCall]:
    at = 0
    while opens := _OPENS.search(text, at):
        close = f"</{opens[1]}>"
        end = text.find(close, opens.end())
        end = len(text) if end < 0 else end
        arguments = dict(_arguments(text[opens.end() : end]))
        yield LoggedCall(None, opens[1], json.dumps(arguments, ensure_ascii=False))
        at = end + len(close)


def _arguments(text: str) -> Iterator[tuple[str, str]]:
    """Yield the arguments of a call written as XML tags. In long ones the last closing tag counts."""
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


def _texts(blocks: Sequence[Block], kind: str) -> str:
    return "\n".join(text for b in blocks if b.type == kind and (text := b.text if kind == "text" else b.thinking))


# -- sessions of the CLI ---------------------------------------------------------------------------------------------

_CACHED_WITHIN, _CACHED_WITHIN_TASK = "openai-compatible", "openai"
"""The provider of the CLI, and that of the extensions, whose input includes cached tokens
(design/formats.md#token-usage)."""
_INPUT = re.compile(r'<user_input(?: mode="(\w{1,20})")?>(.*?)(?:</user_input>|\Z)', re.DOTALL)
_EXITED = re.compile(r"exited with code (-?\d{1,10})")
_CREATED = "File created"


class ChatReader(DocumentReader[Chat, Message]):
    profile, document_type, message_type = PROFILE, Chat, Message
    mode: str | None = None

    def begin(self) -> None:
        """Read the document that describes the session, if it is there."""
        session, runs, origin = self.session, self.extra, self.document.origin
        run = runs.get(session.session_id, {})
        parent_id = string(inside(run, "parent_session_id")) or string(inside(origin, "parentThreadId"))
        self.builder.where(string(inside(run, "cwd")) or string(inside(runs.get(parent_id, run), "cwd")))
        origin = origin or inside(run, "metadata", "sessionHistoryOrigin")
        session.agent_version = string(inside(origin, "version"))
        session.title = string(inside(run, "metadata", "title"))
        session.parent_session_id = parent_id
        self.is_subagent = parent_id is not None

    def take(self, message: Message) -> None:
        at = logged_ms(message.ts)
        self.builder.unread((b.type for b in message.blocks), _BLOCKS, at)
        if message.role == "assistant":
            self.answer(message, at)
        elif message.role == "user":
            self.user(message, at)
        else:
            self.event("unknown", f"message of role {message.role}"[:80], at)

    def answer(self, message: Message, at: int | None) -> None:
        step = self.builder.step(message.id, string(inside(message.modelInfo, "id")), at)
        is_within = inside(message.modelInfo, "provider") == _CACHED_WITHIN
        _charge(step, message.metrics, inside(message.metrics, "cost"), is_within)
        for block in message.blocks:
            if block.type == "tool_use":
                self.tool_use(block, at, step)
            elif block.type in ("text", "thinking") and (text := block.text or block.thinking):
                self.event("text" if block.type == "text" else "thinking", text, at, step)

    def tool_use(self, block: Block, at: int | None, step: Step) -> None:
        """A list of commands is one script. Of files that are read together the first names the call."""
        name, arguments, path = block.name or "", bytes(block.input) or b"{}", None
        passed = decoded(arguments, dict[str, Any]) or {}
        commands, files = passed.get("commands"), passed.get("files")
        if isinstance(commands, list) and commands and all(isinstance(c, str) for c in commands):
            arguments = json.dumps({"command": "\n".join(commands)}, ensure_ascii=False).encode("utf-8", "replace")
        if isinstance(files, list) and files and isinstance(files[0], dict):
            path = files[0].get("path") if isinstance(files[0].get("path"), str) else None
        self.builder.call(block.id or "", name, arguments, PROFILE.tool(name), at, step, path=path)

    def user(self, message: Message, at: int | None) -> None:
        for block in message.blocks:
            if block.type == "tool_result":
                self.tool_result(block, at)
        for block in message.blocks:
            if block.type != "text" or not block.text:
                continue
            # A prompt is in this tag. Another tag, or a heading in brackets, is the program's.
            typed = _INPUT.match(block.text.strip())
            if typed is not None:
                if typed[1] and self.mode and typed[1] != self.mode:
                    self.event("phase", typed[1], at)
                self.mode = typed[1] or self.mode
                self.said(typed[2].strip(), at)
            elif block.text.lstrip()[:1] in ("<", "[") or PROFILE.machine_kind(block.text):
                self.event("meta", block.text, at)
            else:
                self.said(block.text.strip(), at)
        kinds = {block.type for block in message.blocks}
        if kinds and kinds <= {"image", "file"}:
            self.said("", at, attached=True)

    def said(self, text: str, at: int | None, attached: bool = False) -> None:
        if self.is_subagent:
            self.event("meta", text, at)
        elif text or attached:
            self.builder.turn("prompt" if text else "attachment", text, at)

    def tool_result(self, block: Block, at: int | None) -> None:
        """The result has a part for each command, file or query. One that failed makes the call a failure."""
        content = block.content
        if isinstance(content, str):
            content = decoded(content, Any) if content else content
            content = block.content if content is None else content
        parts: Sequence[object] = content if isinstance(content, list) else [content]
        text = "\n".join(map(_part_text, parts))
        failed = block.is_error is True or any(isinstance(p, dict) and p.get("success") is False for p in parts)
        code = None
        if self.is_command(block.tool_use_id or ""):
            codes = [int(m[1]) for part in parts if (m := _EXITED.search(_part_text(part)[:400]))]
            code = next((c for c in codes if c), None if failed else 0)
        self.result(block.tool_use_id or "", text, "error" if failed else "ok", at, None, code)

    def edit(self, call: ToolCall, text: str, detail: Any) -> bool:
        texts = edit_texts(call.arguments, call.argument_roles)
        is_new = bool(texts) and text.startswith(_CREATED)
        if is_new:
            self.builder.edit(call, None, "create", [created(texts[0].new)])
        return is_new


def _part_text(part: object) -> str:
    if not isinstance(part, dict):
        return as_text(part)
    texts = [as_text(part.get(name)) for name in ("result", "error", "text")]
    return "\n".join(t for n, t in enumerate(texts) if t and t not in texts[:n]) or as_text(part)


def _charge(step: Step, usage: object, cost: object, cached_within: bool) -> None:
    """Set tokens and cost of a call. A call without an answer has none, or zeros. Without a price the cost is 0."""
    if any(tokens_of(usage, "apart")):
        charge(step, tokens_of(usage, "within" if cached_within else "apart"))
    if cost:
        step.cost_usd, step.cost_source = amount(cost), "recorded"
