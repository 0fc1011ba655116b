"""Read what `codex exec --json` prints: each thread as a session."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from agentsignals.changes.hunks import Hunk, count_lines, created, unified
from agentsignals.formats import Input, Reading
from agentsignals.formats.builder import SessionBuilder, Tokens, charge, close, tokens_of
from agentsignals.formats.codex import EXEC_PROFILE as PROFILE
from agentsignals.formats.records import as_list, decoded, decoder, inside, lines, read_before, saw, string
from agentsignals.model import Artifact, CallStatus, EditOp, EventKind, Step, ToolCall


class Change(Struct, gc=False):
    path: str = ""
    kind: str = ""
    """`add`, `delete`, `update`."""
    diff: str | None = None
    """The new file, the old one, or a unified diff. Only newer versions print it."""


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
    error: object = None
    query: str | None = None
    items: Raw = Raw()
    prompt: str | None = None


class Record(Struct, gc=False, kw_only=True):
    type: str = ""
    thread_id: str | None = None
    item: Item | None = None
    usage: dict[str, Any] | None = None
    """The thread's running total. Cached tokens are part of the input, reasoning is part of the output."""
    error: object = None
    message: str | None = None


class Answer(Struct, gc=False):
    content: object = ()
    structured_content: Raw = Raw()


_PARTS = frozenset(("text", "image", "audio", "resource", "resource_link"))
_TEXT_KINDS: dict[str, EventKind] = {"agent_message": "text", "plan": "text", "reasoning": "thinking"}
_OPS: dict[str, EditOp] = {"add": "create", "delete": "delete", "update": "modify"}
_ENDED: dict[str | None, CallStatus] = {"failed": "error", "declined": "rejected", "in_progress": "none"}


class _Run(Struct):
    source: Input
    thread_id: str
    records: list[tuple[int, Record]] = []

    @property
    def order(self) -> tuple[int, str]:
        """Runs have no times. The thread's total grows from one to the next."""
        totals = [tokens_of(r.usage) for _, r in self.records if r.usage is not None]
        prompts = [(t.input or 0) + (t.cache_read or 0) for t in totals]
        return (min(prompts, default=0), self.source.artifact.path)


def pieces(inputs: list[Input]) -> Iterator[Reading]:
    """Read each thread when its last run has come. A resumed thread goes on in another file, or further down in the
    same. A first pass counts the runs."""
    left: Counter[str] = Counter()
    for source in inputs:
        left.update(run.thread_id for run in _runs(source, source.artifact))
    threads: dict[str, list[_Run]] = {}
    for source in inputs:
        for run in _runs(source, read_before(source.artifact)):
            threads.setdefault(run.thread_id, []).append(run)
            left[run.thread_id] -= 1
            if not left[run.thread_id]:
                whole = sorted(threads.pop(run.thread_id), key=lambda r: r.order)
                reader = _Reader(run.thread_id, whole[0].source)
                for each in whole:
                    reader.take(each)
                session = reader.builder.finish()
                yield Reading([session] if session.events else [])


def _runs(source: Input, artifact: Artifact) -> Iterator[_Run]:
    run: _Run | None = None
    for number, record in lines(source.data, artifact, decoder(Record).decode):
        kind = record.type or "untyped"
        saw(artifact, f"{kind}.{record.item.type}" if record.item is not None else kind)
        if record.type == "thread.started" or run is None:
            if run is not None and run.records:
                yield run
            run = _Run(source, record.thread_id or source.session_hint or artifact.artifact_id)
        run.records.append((number, record))
    if run is not None:
        yield run


class _Reader:
    """Reads one session.

    A turn's usage is the thread's running total (a resumed thread goes on counting), as the program's source has it and
    probes of it show. So a turn used what the total has grown by. Calls are not counted separately: a turn of one call
    has its figures, one of several gets a closing step.
    """

    def __init__(self, thread_id: str, source: Input) -> None:
        session = source.session(thread_id, "codex-exec", "codex")
        self.builder = SessionBuilder(session, PROFILE)
        self._total = Tokens()
        self._steps: list[Step] = []
        """Model calls of this turn."""
        self._answered = False
        self._runs = 0
        self._calls: dict[str, ToolCall] = {}
        self._failure: str | None = None

    def take(self, run: _Run) -> None:
        """Add a run. Its items are numbered from zero."""
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
                self._failed(string(inside(record.error, "message")))
            if record.usage is not None:
                total = tokens_of(record.usage)
                used, self._total = total.since(self._total), total
                if any(used) and len(self._steps) == 1:
                    charge(self._steps[0], used, zeros=False)
                elif any(used):
                    close(self.builder, None, used)
            self._new_turn()
        elif kind == "error":
            self._failed(record.message)
        elif kind not in ("thread.started", "item.plan.delta"):
            self.builder.event("unknown", kind or "untyped")

    def _failed(self, message: str | None) -> None:
        """Add an error that ends a turn. It is printed once by itself and once as the turn's."""
        if message is None or message != self._failure:
            self.builder.event("api_error", message or "error")
        self._failure = message

    def _new_turn(self) -> None:
        self._steps, self._answered, self._failure = [], False, None

    def _model_call(self) -> Step:
        """Return the step of a call of the model, which ends where the results of its tools do."""
        if not self._steps or self._answered:
            self._steps.append(self.builder.step(None, None, None))
            self._answered = False
        return self._steps[-1]

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
        """Add a call. A list of tasks is one item: each update of it is a call, its end is the turn's and none."""
        planned = item.type == "todo_list"
        call = self._calls.get(item.id)
        if call is None or (planned and kind == "item.updated"):
            call_id = f"{item.id}.{len(self.builder.session.tool_calls)}" if planned else item.id
            call_id = call_id if self._runs == 1 else f"{call_id}#{self._runs}"
            path = item.changes[0].path if item.changes else None
            name = item.tool or item.type
            if item.type == "mcp_tool_call":
                name = f"mcp__{item.server or ''}__{item.tool or ''}"
            # Its arguments: what the item says of them.
            fields: dict[str, object] = {"command": item.command, "query": item.query, "prompt": item.prompt}
            if item.changes is not None:
                fields["changes"] = [{"path": c.path, "kind": c.kind} for c in item.changes]
            arguments = msgspec.json.encode({name: value for name, value in fields.items() if value is not None})
            if item.type == "mcp_tool_call":
                arguments = bytes(item.arguments) or b"{}"
            elif planned:
                arguments = b'{"items":' + (bytes(item.items) or b"[]") + b"}"
            tool, step = PROFILE.tool(item.type), self._model_call()
            call = self.builder.call(call_id, name, arguments, tool, None, step, path=path)
            self._calls[item.id] = call
        if (kind == "item.completed" or planned) and call.result_seq is None:
            self._answered = self._end(item, call) is not None or self._answered

    def _end(self, item: Item, call: ToolCall) -> ToolCall | None:
        """Add the result of a call. None for an item that was never finished."""
        builder, status = self.builder, _ENDED.get(item.status, "ok")
        if status == "none":
            return None
        answer = decoded(item.result, Answer)
        text = item.aggregated_output or ""
        if message := string(inside(item.error, "message")):
            text = message
        elif item.aggregated_output is None and answer is not None and isinstance(answer.content, list | tuple):
            text = "\n".join(filter(None, (string(inside(part, "text")) for part in answer.content)))
            text = text or bytes(answer.structured_content).decode("utf-8", "replace")
        elif item.aggregated_output is None and bytes(item.result) != b"null":
            text = bytes(item.result).decode("utf-8", "replace")
        ended = builder.result(call.call_id, text, status, None, call.thread, item.exit_code)
        if ended is None:
            return None
        parts = as_list(answer.content) if answer is not None else []
        builder.unread([string(inside(part, "type")) or "" for part in parts], _PARTS, None, call.thread)
        if item.type in ("web_search", "todo_list"):
            ended.result_tokens = None  # what was found went to the model, not to the log
        for change in (item.changes or ()) if ended.status == "ok" else ():
            if not change.path:
                builder.event("unknown", f"change {change.kind[:80] or 'without a path'}", None, None, call.thread)
                continue
            hunks = [Hunk(whole_file=True)]  # most versions print no lines of a new or deleted file
            if change.kind == "update":
                hunks = unified(change.diff) if change.diff else []
            elif change.kind == "add" and change.diff is not None:
                hunks = [created(change.diff)]
            elif change.diff is not None:
                hunks = [Hunk(added=0, removed=count_lines(change.diff), whole_file=True)]
            builder.edit(ended, change.path, _OPS.get(change.kind, "modify"), hunks)
        return ended
