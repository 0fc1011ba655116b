"""The records of a Claude Code stream, decoded into the transcript's own structs, and what only a stream has."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import amount
from agentsignals.formats.claude_code import records as claude
from agentsignals.formats.claude_code.reader import Seen, SessionReader, Tally, plain, serve_alike
from agentsignals.formats.claude_code.records import Beside, File, Line, Message
from agentsignals.formats.documents import as_text, each, is_list
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.records import document, lines, skip
from agentsignals.formats.usage import Tokens, close, tokens_of_steps
from agentsignals.model import Artifact, Step, logged_iso

QUIET = frozenset(
    (
        *("stream_event", "rate_limit_event", "tool_progress", "auth_status", "tool_use_summary", "keep_alive"),
        *("prompt_suggestion", "control_request", "control_response", "control_cancel_request"),
    )
)
"""Types of records that repeat what others say, or say nothing of the work: partial messages above all."""
QUIET_SYSTEM = frozenset(
    (
        *("status", "hook_started", "hook_progress", "hook_response", "task_started", "task_progress", "task_updated"),
        *("session_state_changed", "thinking_tokens", "files_persisted", "elicitation_complete", "plugin_install"),
    )
)


class Total(Struct, gc=False):
    """What a run used altogether, where the result does not tell models apart."""

    input_tokens: object = None
    output_tokens: object = None
    cache_read_input_tokens: object = None
    cache_creation_input_tokens: object = None


class Denial(Struct, gc=False):
    tool_name: str | None = None
    tool_use_id: str | None = None


class StreamLine(Line, gc=False, kw_only=True):
    """A record of the stream. `agent_id` of a subagent's is the call that started it."""

    model: str | None = None
    raw: bytes = b""
    """A result, whole."""


class Result(Struct, gc=False, kw_only=True):
    """How a run ended. `subtype` may be `success` while `is_error` is true."""

    subtype: str = ""
    is_error: object = None
    result: object = None
    errors: object = None
    num_turns: object = None
    duration_ms: object = None
    duration_api_ms: object = None
    total_cost_usd: object = None
    usage: Total | None = None
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
    tool_use_result: Beside = None
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


_wire = msgspec.json.Decoder(_Wire).decode
_message = msgspec.json.Decoder(Message).decode
_listed = msgspec.json.Decoder(list[Raw] | _Listed).decode
decode_result = msgspec.json.Decoder(Result).decode


def decode(data: memoryview | bytes) -> StreamLine:
    """One record. A message that is none raises; other kinds say no more than is read of them."""
    wire = _wire(data)
    spoken = wire.type in ("assistant", "user")
    if wire.type == "result":
        decode_result(data)
    return StreamLine(
        type=wire.type,
        subtype=wire.subtype,
        session_id=wire.session_id,
        uuid=wire.uuid,
        timestamp=wire.timestamp,
        is_sidechain=wire.parent_tool_use_id is not None,
        agent_id=wire.parent_tool_use_id,
        message=_message(wire.message) if spoken else None,
        tool_use_result=wire.tool_use_result,
        cwd=wire.cwd,
        version=wire.claude_code_version,
        model=wire.model,
        is_meta=wire.isSynthetic,
        origin=wire.origin,
        content=wire.content,
        error=wire.error,
        compact_metadata=_in_camel_case(wire.compact_metadata),
        raw=bytes(data) if wire.type == "result" else b"",
    )


def _in_camel_case(facts: object) -> object:
    """The facts of a compaction under the names that a transcript gives them (`preTokens`)."""
    if not isinstance(facts, dict):
        return facts
    return {first + "".join(w.title() for w in rest): v for k, v in facts.items() for first, *rest in [k.split("_")]}


def read_lines(data: bytes, artifact: Artifact) -> tuple[Sequence[int], list[Line]]:
    """All records of a file and their numbers: a line each, or items of one list."""
    if is_list(data):
        return _of_list(data, artifact)
    if _is_one_result(data):
        only = document(data, artifact, decode)
        return ([1], [only]) if only is not None else ([], [])
    numbered = list(lines(data, artifact, decode))
    return [n for n, _ in numbered], [line for _, line in numbered]


def _is_one_result(data: bytes) -> bool:
    """Whether the file is one printed document: its first line is no record by itself, and none begins behind it."""
    end = data.find(b"\n")
    return end >= 0 and bytes(data[:end]).strip() == b"{" and data.find(b"\n{") < 0


def _of_list(data: bytes, artifact: Artifact) -> tuple[Sequence[int], list[Line]]:
    document = read_document(Input(data, artifact), _listed, "records")
    numbers: list[int] = []
    kept: list[Line] = []
    raws = document.records if isinstance(document, _Listed) else document or []
    for number, record in enumerate(each(raws, decode, artifact), 1):
        artifact.records += 1
        if record is None:
            skip(artifact, "bad_shape")
        else:
            numbers.append(number)
            kept.append(record)
    return numbers, kept


# The streams of one family, and each session: read as a transcript, closed with the totals its results state.

_INPUT = (0, 2, 3)
"""Fields of `Tokens` that a stream logs whole: input, what was read from the cache and what was written to it."""
_FACTS = ("subtype", "is_error", "num_turns", "duration_ms", "duration_api_ms", "total_cost_usd")


def read(inputs: list[Input]) -> Reading:
    """All files of one family: a resumed run keeps the session's id, and may print what an earlier one printed."""
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
    """One session in the making."""

    def __init__(self, first: File, seen: dict[str, Seen]) -> None:
        super().__init__(first, seen, set())
        self.session.format = "claude-stream"
        self._counted: dict[str, Tokens] = {}
        self._paid: dict[str, float] = {}
        self._closed = 0
        """How many steps were there when the last run ended."""
        self._is_new = True
        """Whether this process has printed no totals yet."""

    def take(self, file: File) -> None:
        """A file is a process of its own."""
        self._is_new = True
        super().take(file)

    def _record(self, line: Line, n: int) -> None:
        kind = line.type
        if kind == "result" and isinstance(line, StreamLine):
            self._result(decode_result(line.raw), logged_iso(line.timestamp))
        elif kind == "system" and line.subtype == "init" and isinstance(line, StreamLine):
            self.builder.where(line.cwd)
            self.session.model = self.session.model or line.model
        elif kind not in QUIET and not (kind == "system" and line.subtype in QUIET_SYSTEM):
            super()._record(line, n)

    def _system(self, line: Line) -> None:
        at = logged_iso(line.timestamp)
        if line.subtype == "api_retry":
            self.builder.event("api_error", claude.error_text(line.error) or line.subtype, at)
        elif line.subtype == "task_notification":
            self.builder.event("notification", claude.as_text(line.content) or line.subtype, at)
        else:
            super()._system(line)

    # -- how a run ended ------------------------------------------------------------------------------------------

    def _result(self, result: Result, at: int | None) -> None:
        facts = {name: getattr(result, name) for name in _FACTS}
        facts["permission_denials"] = len(result.permission_denials or ())
        present = {name: value for name, value in facts.items() if value is not None}
        failed = claude.is_true(result.is_error)
        if failed and result.subtype in ("success", "error_during_execution"):
            self.builder.event("api_error", as_text(result.result or result.errors) or result.subtype, at)
        self.builder.event("meta", msgspec.json.encode(present).decode(), at)
        for denial in result.permission_denials or ():
            self._denied(denial)
        self._close(result, at)

    def _denied(self, denial: Denial) -> None:
        """Nobody sits there to allow it: a denied call failed for want of permission."""
        for call in self.builder.calls_of(denial.tool_use_id) if denial.tool_use_id is not None else ():
            if call.status == "error":
                call.error_class = "permission"

    def _close(self, result: Result, at: int | None) -> None:
        """While a message streams, its output is counted at its start only: the totals know the rest.

        They count every model of the process, those too that no message is by (titles, summaries).
        """
        steps = self.session.steps[self._closed :]
        tallies = _by_model(result, self.session.model)
        if self._is_new and not self._goes_on(tallies, steps):
            self._counted.clear()
            self._paid.clear()
        self._is_new = not tallies
        for model, tally in tallies.items():
            of_model = [s for s in steps if plain(s.model) == plain(model)]
            total = tally.used
            used = total.since(self._counted.get(model, Tokens())).without(tokens_of_steps(of_model))
            self._counted[model] = total
            cost = self._cost(model, tally)
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
        """Whether the totals of a resumed run hold those of the runs before it, as of 2.1.330; older versions began at
        zero. What they grew by is no less then than what the calls of this run logged, whose input is exact."""
        grown, logged = dict.fromkeys(_INPUT, 0), dict.fromkeys(_INPUT, 0)
        for model in tallies.keys() | self._counted.keys():
            total = tallies[model].used if model in tallies else Tokens()
            before = self._counted.get(model, Tokens())
            of_model = tokens_of_steps(s for s in steps if plain(s.model) == plain(model))
            for n in _INPUT:
                grown[n] += (total[n] or 0) - (before[n] or 0)
                logged[n] += of_model[n] or 0
        return any(logged.values()) and all(grown[n] >= logged[n] for n in _INPUT)

    def _cost(self, model: str, tally: Tally) -> float | None:
        paid = amount(tally.costUSD)
        if paid is None:
            return None
        before = self._paid.get(model, 0.0)
        self._paid[model] = paid
        return paid - before if paid >= before else paid


def _by_model(result: Result, model: str | None) -> dict[str, Tally]:
    if result.modelUsage:
        return result.modelUsage
    total = result.usage
    if total is None:
        return {}
    tally = Tally(
        total.input_tokens, total.output_tokens, total.cache_read_input_tokens, total.cache_creation_input_tokens,
        result.total_cost_usd,
    )  # fmt: skip
    return {model or "": tally}
