"""The records of `codex exec --json` as typed structs: only what is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec
from msgspec import Raw, Struct

from agentsignals.changes.hunks import Hunk, count_lines, created, unified
from agentsignals.formats import Input, Reading, gathered
from agentsignals.formats.bounds import count
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.codex_exec import PROFILE
from agentsignals.formats.records import UNREADABLE, lines, read_before, saw
from agentsignals.formats.usage import Tokens, charge, close
from agentsignals.model import Artifact, CallStatus, EditOp, EventKind, Step, ToolCall


class Usage(Struct, gc=False):
    """The thread's running total. Cached tokens are part of the input, reasoning is part of the output."""

    input_tokens: object = None
    cached_input_tokens: object = None
    cache_write_input_tokens: object = None
    output_tokens: object = None
    reasoning_output_tokens: object = None


class Failure(Struct, gc=False):
    message: str | None = None


class Change(Struct, gc=False):
    path: str = ""
    kind: str = ""
    """`add`, `delete`, `update`."""
    diff: str | None = None
    """Newer versions: the new file, the old one, or a unified diff."""


class Item(Struct, gc=False, kw_only=True):
    id: str = ""
    type: str = ""
    text: str | None = None
    message: str | None = None
    status: str | None = None
    command: str | None = None
    aggregated_output: str | None = None
    exit_code: int | None = None
    changes: list[Change] | None = None
    server: str | None = None
    tool: str | None = None
    arguments: Raw = Raw()
    result: Raw = Raw()
    error: Failure | None = None
    query: str | None = None
    items: Raw = Raw()
    prompt: str | None = None


class Record(Struct, gc=False, kw_only=True):
    type: str = ""
    thread_id: str | None = None
    item: Item | None = None
    usage: Usage | None = None
    error: Failure | None = None
    message: str | None = None


class Answer(Struct, gc=False):
    """What an MCP server gave back."""

    content: Raw = Raw()
    structured_content: Raw = Raw()


class Part(Struct, gc=False):
    """A piece of it, of a kind that the protocol of these servers (MCP) has."""

    type: str = ""
    text: str | None = None


PARTS = frozenset(("text", "image", "audio", "resource", "resource_link"))


DECODER = msgspec.json.Decoder(Record)
decode = DECODER.decode
answer_of = msgspec.json.Decoder(Answer | None).decode
parts_of = msgspec.json.Decoder(list[Part]).decode


def kind_of(record: Record) -> str:
    """The record's type with that of its item, as counted in the artifact."""
    kind = record.type or "untyped"
    return f"{kind}.{record.item.type}" if record.item is not None else kind


# Items of `codex exec --json` that are calls of tools: begun by one record, ended by a later one of the same id.

_OPS: dict[str, EditOp] = {"add": "create", "delete": "delete", "update": "modify"}
_ENDED: dict[str | None, CallStatus] = {"failed": "error", "declined": "rejected", "in_progress": "none"}


def begin(builder: SessionBuilder, item: Item, call_id: str, step: Step) -> ToolCall:
    """The call that an item is. Its arguments are what the item says of them."""
    path = item.changes[0].path if item.changes else None
    tool = PROFILE.tool(item.type)
    return builder.call(call_id, _name(item), _arguments(item), tool, None, step, path=path)


def end(builder: SessionBuilder, item: Item, call: ToolCall) -> ToolCall | None:
    """The result of the call; None for an item that was never finished."""
    status = _ENDED.get(item.status, "ok")
    if status == "none":
        return None
    text = _text(item)
    ended = builder.result(call.call_id, text, status, None, call.thread, item.exit_code)
    if ended is None:
        return None
    builder.unread(_kinds(item), PARTS, None, call.thread)
    if item.type in ("web_search", "todo_list"):
        ended.result_tokens = None  # what was found went to the model, not to the log
    if ended.status == "ok":
        for change in item.changes or ():
            if not change.path:
                builder.event("unknown", f"change {change.kind[:80] or 'without a path'}", None, None, call.thread)
                continue
            builder.edit(ended, change.path, _OPS.get(change.kind, "modify"), _hunks(change))
    return ended


def _name(item: Item) -> str:
    if item.type == "mcp_tool_call":
        return f"mcp__{item.server or ''}__{item.tool or ''}"
    return item.tool or item.type


def _arguments(item: Item) -> bytes:
    if item.type == "mcp_tool_call":
        return bytes(item.arguments) or b"{}"
    if item.type == "todo_list":
        return b'{"items":' + (bytes(item.items) or b"[]") + b"}"
    fields = {"command": item.command, "query": item.query, "prompt": item.prompt}
    arguments: dict[str, object] = {name: value for name, value in fields.items() if value is not None}
    if item.changes is not None:
        arguments["changes"] = [{"path": c.path, "kind": c.kind} for c in item.changes]
    return msgspec.json.encode(arguments)


def _kinds(item: Item) -> list[str]:
    """The kinds of the parts that a server gave back."""
    try:
        answer = answer_of(item.result) if item.result else None
        return [part.type for part in parts_of(answer.content)] if answer is not None and answer.content else []
    except UNREADABLE:
        return []


def _text(item: Item) -> str:
    if item.error is not None and item.error.message:
        return item.error.message
    if item.aggregated_output is not None or not item.result:
        return item.aggregated_output or ""
    try:
        answer = answer_of(item.result)
        if answer is None:
            return ""
        text = "\n".join(part.text for part in parts_of(answer.content or b"[]") if part.text)
        return text or bytes(answer.structured_content).decode("utf-8", "replace")
    except UNREADABLE:
        return bytes(item.result).decode("utf-8", "replace")


def _hunks(change: Change) -> list[Hunk]:
    """Most versions say only which files; the lines of a new or deleted file are then unknown, but all of it."""
    if change.kind == "update":
        return unified(change.diff) if change.diff else []
    if change.diff is None:
        return [Hunk(whole_file=True)]
    if change.kind == "add":
        return [created(change.diff)]
    return [Hunk(added=0, removed=count_lines(change.diff), whole_file=True)]


# The `codex exec` streams of one family, and each thread as a session.
#
# A turn's usage is the thread's running total (a resumed thread goes on counting), as the program's source has it
# and probes of it show: what a turn used is what the total has grown by. Calls are not told apart there, so a turn
# of one call has its figures, and one of several a closing step (`run_totals`).

_TEXT_KINDS: dict[str, EventKind] = {"agent_message": "text", "plan": "text", "reasoning": "thinking"}


class _Run:
    """A stretch of a file that is one thread's."""

    def __init__(self, source: Input, thread_id: str) -> None:
        self.source = source
        self.thread_id = thread_id
        self.records: list[tuple[int, Record]] = []

    @property
    def order(self) -> tuple[int, str]:
        """Runs have no times; the thread's total grows from one to the next."""
        totals = [
            (used.input or 0) + (used.cache_read or 0) for _, r in self.records if (used := _used(r.usage)) is not None
        ]
        return (min(totals, default=0), self.source.artifact.path)


def read(inputs: list[Input]) -> Reading:
    """All files of one family; a thread that was resumed goes on in another file, or further down in the same."""
    threads: dict[str, list[_Run]] = {}
    for source in inputs:
        for run in _runs(source, source.artifact):
            threads.setdefault(run.thread_id, []).append(run)
    return gathered(_reading(runs) for runs in threads.values())


def pieces(inputs: list[Input]) -> Iterator[Reading]:
    """The same threads, each when its last run has come: the runs are counted first."""
    left: Counter[str] = Counter()
    for source in inputs:
        left.update(run.thread_id for run in _runs(source, source.artifact))
    threads: dict[str, list[_Run]] = {}
    for source in inputs:
        for run in _runs(source, read_before(source.artifact)):
            threads.setdefault(run.thread_id, []).append(run)
            left[run.thread_id] -= 1
            if not left[run.thread_id]:
                yield _reading(threads.pop(run.thread_id))


def _reading(runs: list[_Run]) -> Reading:
    runs.sort(key=lambda r: r.order)
    reader = _Reader(runs[0].thread_id, runs[0].source)
    for run in runs:
        reader.take(run)
    session = reader.builder.finish()
    return Reading([session] if session.events else [])


def _runs(source: Input, artifact: Artifact) -> Iterator[_Run]:
    run: _Run | None = None
    for number, record in lines(source.data, artifact, decode):
        saw(artifact, kind_of(record))
        if record.type == "thread.started" or run is None:
            if run is not None and run.records:
                yield run
            run = _Run(source, record.thread_id or source.session_hint or artifact.artifact_id)
        run.records.append((number, record))
    if run is not None:
        yield run


class _Reader:
    """One session in the making."""

    def __init__(self, thread_id: str, source: Input) -> None:
        session = source.session(thread_id, "codex-exec", "codex")
        self.builder = SessionBuilder(session, PROFILE)
        self._total = Tokens()
        self._step: Step | None = None
        self._steps: list[Step] = []
        self._answered = False
        self._runs = 0
        self._calls: dict[str, ToolCall] = {}
        self._failure: str | None = None

    def take(self, run: _Run) -> None:
        """Items are numbered from zero in every run."""
        self._runs += 1
        self._calls.clear()
        self._new_turn()
        self.builder.artifact_id = run.source.artifact.artifact_id
        for number, record in run.records:
            self.builder.line = number
            self._record(record)

    def _record(self, record: Record) -> None:
        kind = record.type
        if record.item is not None and kind.startswith("item."):
            self._item(kind, record.item)
        elif kind == "turn.started":
            self._new_turn()
        elif kind in ("turn.completed", "turn.failed"):
            if kind == "turn.failed":
                self._failed(record.error.message if record.error is not None else None)
            self._used_by_turn(_used(record.usage))
            self._new_turn()
        elif kind == "error":
            self._failed(record.message)
        elif kind not in ("thread.started", "item.plan.delta"):
            self.builder.event("unknown", kind or "untyped")

    def _failed(self, message: str | None) -> None:
        """An error that ends a turn is said once by itself and once as the turn's."""
        if message is None or message != self._failure:
            self.builder.event("api_error", message or "error")
        self._failure = message

    def _item(self, kind: str, item: Item) -> None:
        if item.type in PROFILE.tools:
            self._call(kind, item)
        elif kind != "item.completed":
            return  # a text is repeated whole when it is complete
        elif item.type in _TEXT_KINDS:
            self.builder.event(_TEXT_KINDS[item.type], item.text or "", None, self._model_call())
        elif item.type == "error":
            self.builder.event("meta", item.message or "")
        else:
            self.builder.event("unknown", f"item {item.type}")

    def _call(self, kind: str, item: Item) -> None:
        """A list of tasks is one item that is updated: each update is a call; its end is the turn's, and none."""
        planned = item.type == "todo_list"
        call = self._calls.get(item.id)
        if call is None or (planned and kind == "item.updated"):
            call_id = f"{item.id}.{len(self.builder.session.tool_calls)}" if planned else item.id
            name = call_id if self._runs == 1 else f"{call_id}#{self._runs}"
            call = self._calls[item.id] = begin(self.builder, item, name, self._model_call())
        if (kind == "item.completed" or planned) and call.result_seq is None:
            self._answered = end(self.builder, item, call) is not None or self._answered

    # -- model calls ----------------------------------------------------------------------------------------------

    def _model_call(self) -> Step:
        """A call of the model ends where the results of its tools do."""
        if self._step is None or self._answered:
            self._step = self.builder.step(None, None, None)
            self._steps.append(self._step)
            self._answered = False
        return self._step

    def _new_turn(self) -> None:
        self._step, self._answered, self._failure = None, False, None
        self._steps = []

    def _used_by_turn(self, total: Tokens | None) -> None:
        if total is None:
            return
        used = total.since(self._total)
        self._total = total
        if not any(used):
            return
        if len(self._steps) == 1:
            charge(self._steps[0], used, zeros=False)
        else:
            close(self.builder, None, used)


def _used(usage: Usage | None) -> Tokens | None:
    if usage is None:
        return None
    read, wrote = count(usage.cached_input_tokens) or 0, count(usage.cache_write_input_tokens) or 0
    whole, reasoning = count(usage.input_tokens), count(usage.reasoning_output_tokens) or 0
    fresh = None if whole is None else max(whole - read - wrote, 0)
    return Tokens(fresh, count(usage.output_tokens), read, wrote, reasoning)
