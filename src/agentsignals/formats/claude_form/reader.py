"""Readers of records in Claude Code's form: exports of other agents, and streams."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats import Input, Reading, profile_of
from agentsignals.formats.any_agent import ANYBODY
from agentsignals.formats.any_agent import tool as any_tool
from agentsignals.formats.bounds import amount
from agentsignals.formats.builder import Tokens, close, tokens_of, tokens_of_steps
from agentsignals.formats.claude_code import agent_of
from agentsignals.formats.claude_code import records as claude
from agentsignals.formats.claude_code.reader import Seen, SessionReader, Tally, plain, serve_alike
from agentsignals.formats.claude_code.records import File, Line, Message, ToolUseResult
from agentsignals.formats.claude_form import SWIVAL
from agentsignals.formats.documents import each, is_list
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.profile import Profile, Tool
from agentsignals.formats.records import as_text, document, head_of, lines, saw, skip, within
from agentsignals.model import Artifact, Session, Step, logged_iso

# -- records that another agent wrote, read with that agent's tools


def read_form(inputs: list[Input]) -> Reading:
    return read_exports([File(source) for source in inputs], FormReader)


def read_exports(files: list[File], made: Callable[[File], SessionReader]) -> Reading:
    """Read files together. Of several exports of a session the fullest counts: their records share no id."""
    files.sort(key=lambda f: (len(f.lines), len(f.source.data), f.source.artifact.artifact_id), reverse=True)
    best: dict[str, File] = {}
    for file in files:
        kept = best.setdefault(file.session_id, file)
        if kept is not file:
            file.source.artifact.note = f"superseded by {kept.source.artifact.artifact_id}"
            saw(file.source.artifact, "repeated", len(file.lines))
            for line in file.lines:
                saw(file.source.artifact, claude.kind_of(line))
    sessions = []
    for session_id in sorted(best):
        reader = made(best[session_id])
        reader.take(best[session_id])
        sessions.append(reader.finish())
    return Reading([session for session in sessions if session.events])


class _Tools(Profile, frozen=True, kw_only=True, dict=True):
    def tool(self, name: str) -> Tool | None:
        return any_tool(name)


_ANY = _Tools(frame=ANYBODY.frame, nothing_found=ANYBODY.nothing_found, stopped=ANYBODY.stopped)


class FormReader(SessionReader):
    def __init__(self, file: File) -> None:
        super().__init__(file, {}, set())
        records = head_of(file.source.data).records
        named = next((agent for record in records if (agent := agent_of(record)) is not None), ("unknown", None))
        profile = profile_of(named[0])
        self.profile = profile or _ANY
        self.session.format, self.session.agent = "claude-form", profile.agent if profile is not None else named[0]
        self.session.agent_version = named[1] or ""

    def finish(self) -> Session:
        session = super().finish()
        session.agent_version = session.agent_version or None
        return session


# -- Swival's exports, except for what only looks like Claude Code's

_PROMPT = "prompt"
_ERROR = "error:"
"""Start of a failed tool's result."""


class Row(Struct, gc=False, rename="camel", kw_only=True):
    """A record. Its time is that of the export and its ids are new in each: neither is read."""

    type: str = ""
    session_id: str | None = None
    version: str | None = None
    cwd: str | None = None
    is_sidechain: object = None
    is_meta: object = None
    message: Raw = Raw()
    """JSON; or JSON as text, since all rows of a dataset have one shape."""
    content: object = None


_row = msgspec.json.Decoder(Row).decode
_text = msgspec.json.Decoder(str).decode
_message_or_none = msgspec.json.Decoder(Message | None).decode


def swival_line(data: memoryview | bytes) -> Line:
    """Return a record as Claude Code would have written it, without time and id."""
    row = _row(data)
    raw = bytes(row.message)
    if raw[:1] == b'"':
        try:
            message = _message_or_none(_text(raw))
        except msgspec.ValidationError:  # as an object it can be mended
            raise msgspec.ValidationError("Expected `object`, got `str` - at `$.message`") from None
    else:
        message = within("message", raw, _message_or_none) if raw else None
    if row.type in ("user", "assistant") and message is None:
        raise msgspec.ValidationError("no message")
    if message is not None and isinstance(message.content, list):
        for block in message.content:
            if block.type == "tool_result" and isinstance(block.content, str) and block.content.startswith(_ERROR):
                block.is_error = True
    return Line(
        type=row.type,
        session_id=row.session_id,
        version=row.version,
        cwd=row.cwd,
        is_sidechain=row.is_sidechain,
        is_meta=row.is_meta,
        message=message,
        subtype=_PROMPT if row.type == "system" else None,
        content=row.content,
    )


def rows_of(data: bytes, artifact: Artifact) -> tuple[Sequence[int], list[Line]]:
    """Return the records of a file and their line numbers."""
    numbered = list(lines(data, artifact, swival_line))
    return [number for number, _ in numbered], [line for _, line in numbered]


def read_swival(inputs: list[Input]) -> Reading:
    return read_exports([File(source, rows_of) for source in inputs], SwivalReader)


class SwivalReader(SessionReader):
    profile = SWIVAL

    def __init__(self, file: File) -> None:
        super().__init__(file, {}, set())
        self.session.format = self.session.agent = "swival"

    def _system(self, line: Line) -> None:
        if line.content:
            self.builder.event("meta", claude.as_text(line.content))

    def finish(self) -> Session:
        """Record files that `delete_file` put into the trash as deleted."""
        session = super().finish()
        gone = {call.seq for call in session.tool_calls if call.name == "delete_file"}
        for edit in session.edits:
            if edit.seq in gone:
                edit.op, edit.whole_file = "delete", True
        return session


# -- streams of Claude Code: each session as a transcript, closed with the totals that its results state

_QUIET = frozenset(
    ("stream_event", "rate_limit_event", "tool_progress", "auth_status", "tool_use_summary", "keep_alive",
     "prompt_suggestion", "control_request", "control_response", "control_cancel_request")
)  # fmt: skip
"""Types of records that repeat what others say, or say nothing of the work: partial messages above all."""
_QUIET_SYSTEM = frozenset(
    ("status", "hook_started", "hook_progress", "hook_response", "task_started", "task_progress", "task_updated",
     "session_state_changed", "thinking_tokens", "files_persisted", "elicitation_complete", "plugin_install")
)  # fmt: skip
_FACTS = ("subtype", "is_error", "num_turns", "duration_ms", "duration_api_ms", "total_cost_usd")
_INPUT = (0, 2, 3)
"""Figures of `Tokens` that a stream logs in full: input, cache reads and cache writes."""


class Denial(Struct, gc=False):
    tool_use_id: str | None = None


class StreamLine(Line, gc=False, kw_only=True):
    """A record of the stream. `agent_id` of a subagent's record is the call that started it."""

    model: str | None = None
    raw: bytes = b""
    """The record as bytes, if it is a result."""


class Result(Struct, gc=False, kw_only=True):
    """The end of a run. `subtype` may be `success` while `is_error` is true."""

    subtype: str = ""
    is_error: object = None
    result: object = None
    errors: object = None
    num_turns: object = None
    duration_ms: object = None
    duration_api_ms: object = None
    total_cost_usd: object = None
    usage: Tally | None = None
    """Tokens of the run, for results that do not count models separately."""
    modelUsage: dict[str, Tally] | None = None
    permission_denials: list[Denial] | None = None


class _Wire(Struct, gc=False, kw_only=True):
    type: str = ""
    subtype: str | None = None
    session_id: str | None = None
    uuid: str | None = None
    timestamp: str | None = None
    parent_tool_use_id: str | None = None
    message: Raw = Raw()
    tool_use_result: ToolUseResult = None
    cwd: str | None = None
    model: str | None = None
    claude_code_version: str | None = None
    isSynthetic: object = None
    origin: object = None
    content: object = None
    error: object = None
    compact_metadata: object = None


class _Listed(Struct, gc=False):
    records: list[Raw] = []


_NAMES = {"parent_tool_use_id": "agent_id", "claude_code_version": "version", "isSynthetic": "is_meta"}
"""Fields that a transcript's line has under another name."""
_wire = msgspec.json.Decoder(_Wire).decode
_message = msgspec.json.Decoder(Message).decode
_listed = msgspec.json.Decoder(list[Raw] | _Listed).decode
_result = msgspec.json.Decoder(Result).decode


def decode(data: memoryview | bytes) -> StreamLine:
    """Decode a record into the struct of a transcript's line. A message of another shape raises."""
    wire = _wire(data)
    if wire.type == "result":
        _result(data)
    compact = wire.compact_metadata
    if isinstance(compact, dict):  # under the names that a transcript gives them (`preTokens`)
        compact = {f + "".join(w.title() for w in rest): v for k, v in compact.items() for f, *rest in [k.split("_")]}
    facts = {_NAMES.get(name, name): getattr(wire, name) for name in _Wire.__struct_fields__}
    facts["message"] = within("message", wire.message, _message) if wire.type in ("assistant", "user") else None
    facts |= {"compact_metadata": compact, "is_sidechain": wire.parent_tool_use_id is not None}
    return StreamLine(**facts, raw=bytes(data) if wire.type == "result" else b"")


def read_lines(data: bytes, artifact: Artifact) -> tuple[Sequence[int], list[Line]]:
    """Return all records of a file and their numbers: a line each, items of a list, or one printed document."""
    if is_list(data):
        listed = read_document(Input(data, artifact), _listed, "records")
        decoded = each(listed.records if isinstance(listed, _Listed) else listed or [], decode, artifact)
        artifact.records += len(decoded)
        for _ in range(decoded.count(None)):
            skip(artifact, "bad_shape")
        kept = [(number, record) for number, record in enumerate(decoded, 1) if record is not None]
        return [number for number, _ in kept], [record for _, record in kept]
    end = data.find(b"\n")
    if end >= 0 and bytes(data[:end]).strip() == b"{" and data.find(b"\n{") < 0:
        only = document(data, artifact, decode)
        return ([1], [only]) if only is not None else ([], [])
    numbered = list(lines(data, artifact, decode))
    return [n for n, _ in numbered], [line for _, line in numbered]


def read_stream(inputs: list[Input]) -> Reading:
    """Read streams that belong together. A resumed run keeps the session's id, and may print earlier records again."""
    files = [part for source in inputs for part in File(source, read_lines).parts()]
    files.sort(key=lambda f: (f.session_id, f.span, f.source.artifact.path, f.source.artifact.sha256))
    readers: dict[str, StreamReader] = {}
    seen: dict[str, Seen] = {}
    for file in files:
        if file.session_id not in readers:
            readers[file.session_id] = StreamReader(file, seen)
        readers[file.session_id].take(file)
    sessions = [reader.finish() for reader in readers.values()]
    return Reading([session for session in sessions if session.events])


class StreamReader(SessionReader):
    def __init__(self, first: File, seen: dict[str, Seen]) -> None:
        super().__init__(first, seen, set())
        self.session.format = "claude-stream"
        self._counted: dict[str, Tokens] = {}
        self._paid: dict[str, float] = {}
        self._closed = 0
        """Number of steps when the last run ended."""
        self._is_new = True
        """This process has printed no totals yet."""

    def take(self, file: File) -> None:
        """Add the records of a file, which is a process of its own."""
        self._is_new = True
        super().take(file)

    def _record(self, line: Line, n: int) -> None:
        kind = line.type
        if kind == "result" and isinstance(line, StreamLine):
            self._result(_result(line.raw), logged_iso(line.timestamp))
        elif kind == "system" and line.subtype == "init" and isinstance(line, StreamLine):
            self.builder.where(line.cwd)
            self.session.model = self.session.model or line.model
        elif kind not in _QUIET and not (kind == "system" and line.subtype in _QUIET_SYSTEM):
            super()._record(line, n)

    def _system(self, line: Line) -> None:
        at = logged_iso(line.timestamp)
        if line.subtype == "api_retry":
            self.builder.event("api_error", claude.error_text(line.error) or line.subtype, at)
        elif line.subtype == "task_notification":
            self.builder.event("notification", claude.as_text(line.content) or line.subtype, at)
        else:
            super()._system(line)

    def _result(self, result: Result, at: int | None) -> None:
        """Record the end of a run: its error, facts and denied calls, and tokens that no message counted."""
        facts = {name: getattr(result, name) for name in _FACTS}
        facts["permission_denials"] = len(result.permission_denials or ())
        present = {name: value for name, value in facts.items() if value is not None}
        if claude.is_true(result.is_error) and result.subtype in ("success", "error_during_execution"):
            self.builder.event("api_error", as_text(result.result or result.errors) or result.subtype, at)
        self.builder.event("meta", msgspec.json.encode(present).decode(), at)
        for denial in result.permission_denials or ():
            # Nobody is there to allow it: a denied call failed for want of permission.
            for call in self.builder.calls_of(denial.tool_use_id) if denial.tool_use_id is not None else ():
                if call.status == "error":
                    call.error_class = "permission"
        self._close(result, at)

    def _close(self, result: Result, at: int | None) -> None:
        """Add closing steps by model for what the totals count and no message does.

        The output of a message is logged at its start only. Some models (of titles, of summaries) have no message.
        """
        self.bill_iterations()
        steps = self.session.steps[self._closed :]
        tallies = result.modelUsage
        if not tallies:
            usage = result.usage
            tallies = (
                {self.session.model or "": {**usage, "costUSD": result.total_cost_usd}} if usage is not None else {}
            )
        if self._is_new and not self._goes_on(tallies, steps):
            self._counted.clear()
            self._paid.clear()
        self._is_new = not tallies
        for model, tally in tallies.items():
            # Totals that are not by model hold every model's calls.
            of_model = [s for s in steps if not result.modelUsage or plain(s.model) == plain(model)]
            total = tokens_of(tally, "apart")
            used = total.since(self._counted.get(model, Tokens())).without(tokens_of_steps(of_model))
            self._counted[model] = total
            cost = paid = amount(tally.get("costUSD"))
            if paid is not None:
                before = self._paid.get(model, 0.0)
                self._paid[model] = paid
                cost = paid - before if paid >= before else paid
            if not any(used) and not cost:
                continue
            closing = close(self.builder, plain(model), used, at)
            serve_alike(closing, of_model)
            if cost is not None:
                for step in of_model:  # the figure is of all of them together
                    step.cost_usd, step.cost_source = 0.0, "recorded"
                closing.cost_usd, closing.cost_source = cost, "recorded"
        self._closed = len(self.session.steps)

    def _goes_on(self, tallies: dict[str, Tally], steps: list[Step]) -> bool:
        """Return whether the totals of a resumed run include the runs before it, as since 2.1.330.

        They then grew by no less than what the calls of this run logged, whose input is exact.
        """
        grown, logged = dict.fromkeys(_INPUT, 0), dict.fromkeys(_INPUT, 0)
        for model in tallies.keys() | self._counted.keys():
            total: Any = tokens_of(tallies.get(model), "apart")
            before = self._counted.get(model, Tokens())
            of_model = tokens_of_steps(s for s in steps if plain(s.model) == plain(model))
            for n in _INPUT:
                grown[n] += (total[n] or 0) - (before[n] or 0)
                logged[n] += of_model[n] or 0
        return any(logged.values()) and all(grown[n] >= logged[n] for n in _INPUT)
