"""Read ATIF runs. Compactions continue a run, and subagents are threads of it."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.formats import Input, Reading, any_agent
from agentsignals.formats.any_agent import ANYBODY
from agentsignals.formats.atif import PROFILE
from agentsignals.formats.bounds import amount, count
from agentsignals.formats.builder import RESULT_CHARS_KEPT, SessionBuilder
from agentsignals.formats.documents import as_text, each, tally
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.edits import record_arguments
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.profile import Tool
from agentsignals.formats.records import UNREADABLE
from agentsignals.model import MAIN, Attempt, CallStatus, Session, Statement, ToolCall, logged_iso, round_trip
from agentsignals.model import Step as Row
from agentsignals.model.round_trip import OfCall, OfEvent, OfSession, OfStep, OfTurn

# The records of ATIF. Leaves are decoded as anything, so that one odd value does not cost its step.


class Agent(Struct, gc=False):
    name: object = None
    version: object = None
    model_name: object = None


class Totals(Struct, gc=False):
    """Sums of the run, as its harness counted."""

    total_prompt_tokens: object = None
    total_completion_tokens: object = None
    total_cached_tokens: object = None
    total_cost_usd: object = None


class Trajectory(Struct, gc=False, kw_only=True):
    schema_version: str
    session_id: object = None
    trajectory_id: object = None
    agent: Agent | None = None
    steps: list[Raw] = field(default_factory=list)
    final_metrics: Totals | None = None
    continued_trajectory_ref: object = None
    subagent_trajectories: list[Raw] | None = None
    extra: Raw = Raw()


class Carrying(Struct, gc=False):
    """Facts that our own export adds where the format leaves room for producers (`model.round_trip`)."""

    agentsignals: Raw = Raw()


class Call(Struct, gc=False):
    tool_call_id: object = None
    function_name: object = None
    arguments: Raw = Raw()
    extra: Raw = Raw()


class ResultExtra(Struct, gc=False):
    is_error: object = None
    tool_result_is_error: object = None


class Ref(Struct, gc=False):
    """A reference to the trajectory that a result came from, embedded or in a file."""

    trajectory_id: object = None
    trajectory_path: object = None
    session_id: object = None


class Result(Struct, gc=False):
    source_call_id: object = None
    content: object = None
    subagent_trajectory_ref: list[Ref] | Ref | None = None
    extra: ResultExtra | None = None


class Observation(Struct, gc=False):
    results: list[Result] | None = None


class MetricsExtra(Struct, gc=False):
    cache_creation_input_tokens: object = None
    cache_write_tokens: object = None
    reasoning_tokens: object = None
    reasoning_output_tokens: object = None
    thoughts_tokens: object = None


class Metrics(Struct, gc=False):
    """Usage of a step. `prompt_tokens` includes the cached ones (design/formats.md#token-usage)."""

    prompt_tokens: object = None
    completion_tokens: object = None
    cached_tokens: object = None
    cost_usd: object = None
    extra: MetricsExtra | None = None


class ContextManagement(Struct, gc=False):
    type: object = None
    trigger: object = None


class StepExtra(Struct, gc=False):
    context_management: ContextManagement | None = None
    agentsignals: Raw = Raw()


class Step(Struct, gc=False, kw_only=True):
    source: object = None
    timestamp: object = None
    message: object = None
    model_name: object = None
    reasoning_effort: object = None
    reasoning_content: object = None
    tool_calls: list[Call] | None = None
    observation: Observation | None = None
    metrics: Metrics | None = None
    is_copied_context: object = None
    llm_call_count: object = None
    extra: StepExtra | None = None


decode = msgspec.json.Decoder(Trajectory).decode
decode_step = msgspec.json.Decoder(Step).decode
_carrying = msgspec.json.Decoder(Carrying).decode


def carried_in(extra: Raw) -> Raw:
    """Return the facts of our own export in a producer's field, or nothing."""
    try:
        return _carrying(extra).agentsignals if extra else extra
    except UNREADABLE:
        return Raw()


def words(value: object) -> str | None:
    """Return a text that is not empty, and None for anything else."""
    return value if isinstance(value, str) and value else None


def content(value: object) -> str:
    """Return a message or result as text. Since 1.6 it may be a list of parts; an image becomes a mark."""
    if not isinstance(value, list):
        return as_text(value)
    return "\n".join(_part(part) for part in value)


def _part(part: object) -> str:
    if isinstance(part, dict):
        text = part.get("text")
        return text if isinstance(text, str) else f"[{as_text(part.get('type'))[:40] or 'part'}]"
    return as_text(part)


def has_words(value: object) -> bool:
    """Return whether a message holds words, and not images alone."""
    if not isinstance(value, list):
        return bool(as_text(value).strip())
    texts = [part.get("text") if isinstance(part, dict) else part for part in value]
    return any(isinstance(text, str) and text.strip() for text in texts)


_NOT_PARSED = "Previous response had parsing errors"


def refused(step: Step) -> str:
    """Return Terminus's answer to a message that it could not parse, or nothing."""
    results = (step.observation.results if step.observation else None) or ()
    text = content(results[0].content) if len(results) == 1 else ""
    return text if text.startswith(_NOT_PARSED) else ""


def refs(step: Step) -> list[Ref]:
    """Return the other trajectories that a step's results came from."""
    references: list[Ref] = []
    for result in (step.observation.results if step.observation else None) or ():
        ref = result.subagent_trajectory_ref
        references += ref if isinstance(ref, list) else [ref] if ref is not None else []
    return references


# Agents without function calling write calls into their messages, as XML (OpenHands) or JSON (Terminus).

_FUNCTION, _END_FUNCTION = "<function=", "</function>"
_PARAMETER, _END_PARAMETER = "<parameter=", "</parameter>"
KEYSTROKES = "keystrokes"
"""Name for the keystrokes of Terminus, which has none for them."""


class Actions(Struct, gc=False):
    """Text and calls of a message. A call is a name and its arguments as JSON."""

    text: str
    calls: list[tuple[str, str]]


class _Batch(Struct, gc=False):
    """An answer of Terminus."""

    commands: list[Raw]
    analysis: str | None = None
    plan: str | None = None
    explanation: str | None = None


class _Command(Struct, gc=False):
    keystrokes: str


_batch = msgspec.json.Decoder(_Batch).decode
_command = msgspec.json.Decoder(_Command).decode


def read_actions(message: str) -> Actions:
    """Split a message into text and calls. Without an action all of it is text."""
    if _FUNCTION in message:
        prose, calls = [], []
        at = 0
        while (start := message.find(_FUNCTION, at)) >= 0:
            prose.append(message[at:start])
            name_end = message.find(">", start)
            if name_end < 0:
                at = start
                break
            end = message.find(_END_FUNCTION, name_end)
            body = message[name_end + 1 : end if end >= 0 else len(message)]
            calls.append((message[start + len(_FUNCTION) : name_end].strip(), _parameters(body)))
            at = end + len(_END_FUNCTION) if end >= 0 else len(message)
        prose.append(message[at:])
        return Actions("\n".join(t.strip() for t in prose if t.strip()), calls)
    if '"commands"' in message:
        # Text before or behind the JSON is tolerated by Terminus, and here.
        start, end = message.find("{"), message.rfind("}")
        try:
            batch = _batch(message[start : end + 1])
        except UNREADABLE:
            return Actions(message, [])
        calls = [(KEYSTROKES, bytes(raw).decode("utf-8", "replace")) for raw in batch.commands if _is_command(raw)]
        thoughts = [t for t in (batch.analysis, batch.plan, batch.explanation) if t]
        return Actions("\n\n".join(thoughts), calls)
    return Actions(message, [])


def _is_command(raw: Raw) -> bool:
    try:
        _command(raw)
    except UNREADABLE:
        return False
    return True


def _parameters(body: str) -> str:
    """Return parameters as JSON. A value may hold tags itself: it lasts until the next parameter begins."""
    parameters: dict[str, str] = {}
    for part in body.split(_PARAMETER)[1:]:
        name, opened, value = part.partition(">")
        if opened:
            end = value.rfind(_END_PARAMETER)
            parameters[name.strip()] = (value[:end] if end >= 0 else value).removeprefix("\n")
    return msgspec.json.encode(parameters).decode()


TYPED = (KEYSTROKES, "bash_command")
"""Tools that type into a terminal and then show it. They report no exit code and no end."""
_FINISHED = re.compile(r"\[(?:The command completed|Command finished) with exit code (-?\d{1,9})")
_END = 600
"""Length of the end in which OpenHands prints the exit code, below the output."""
_FAILED = ("ERROR:", "Error:", "error:", "Error executing tool")


def tool(name: str) -> Tool | None:
    """Return the tool of that name, or None if no agent has one."""
    return PROFILE.tool(name) or any_agent.tool(name)


def outcome(call: ToolCall, text: str, result: Result) -> tuple[CallStatus, int | None]:
    """Return the status of a call and a printed exit code of a command."""
    code = _code(text) if call.command is not None and call.name not in TYPED else None
    extra = result.extra
    failed = extra is not None and (extra.is_error is True or extra.tool_result_is_error is True)
    if failed or (code is None and call.name not in TYPED and text.lstrip()[:40].startswith(_FAILED)):
        return "error", code
    return "unknown" if call.name in TYPED else "ok", code


def _code(text: str) -> int | None:
    match = _FINISHED.search(text, max(len(text) - _END, 0))
    return int(match[1]) if match else exit_code(text)


COMPACTION = "compaction"


_TERMINUS = "terminus"


class _Request(Struct, gc=False):
    call_id: str | None
    name: str
    arguments: str
    extra: Raw = Raw()


class Conversation:
    """Reads the steps of a run.

    `goes_on`: the steps continue a run, so what the harness says in the user's name is no prompt. `is_ours`: our own
    export wrote them.
    """

    def __init__(self, builder: SessionBuilder, model: str | None, is_ours: bool) -> None:
        self.builder = builder
        self.model = model
        self.is_ours = is_ours
        self.goes_on = False
        self.subagents: list[Ref] = []
        """The other trajectories that results came from."""
        self._compacted = False
        """True if the last step was a compaction of Terminus, which hands on its summary in the user's name."""
        self._ids: dict[tuple[str, str], str] = {}
        self._asked: dict[str, tuple[str, str]] = {}
        self._calls: dict[str, ToolCall] = {}
        self._facts: dict[str, OfCall | None] = {}

    def take(self, step: Step, thread: str = MAIN) -> None:
        at = logged_iso(words(step.timestamp))
        text = content(step.message)
        facts = round_trip.read_carried(step.extra.agentsignals, OfEvent) if step.extra is not None else None
        handed_on, self._compacted = self._compacted, False
        if facts is not None and step.source == "system":
            self.builder.event(facts.kind, None if facts.wordless else text, at, None, thread)
        elif step.is_copied_context is True:
            self._meta(text, at, thread)  # told in full where it happened
        elif step.source == "agent":
            self._agent(step, text, at, thread)
        elif step.source == "user" and (handed_on or thread != MAIN or self.goes_on):
            self._meta(text, at, thread)
        elif step.source == "user":
            turn = self.builder.turn("prompt" if has_words(step.message) else "attachment", text, at)
            if step.extra is not None:
                round_trip.restore(turn, round_trip.read_carried(step.extra.agentsignals, OfTurn))
        else:
            self._system(step, text, at, thread)
        self.subagents += refs(step)

    def _meta(self, text: str, at: int | None, thread: str) -> None:
        self.builder.event("meta", text[:RESULT_CHARS_KEPT], at, None, thread, len(text))

    def _system(self, step: Step, text: str, at: int | None, thread: str) -> None:
        managed = step.extra.context_management if step.extra is not None else None
        if managed is not None and managed.type == COMPACTION:
            trigger = words(managed.trigger)
            self.builder.event(
                "compaction", msgspec.json.encode({"trigger": trigger} if trigger else {}).decode(), at, None, thread
            )
            self._compacted = self.builder.session.agent.startswith(_TERMINUS)
        if text:
            self._meta(text, at, thread)
        for result in (step.observation.results if step.observation else None) or ():
            result_text = content(result.content)
            if result_text:
                self._meta(result_text, at, thread)

    def _agent(self, step: Step, text: str, at: int | None, thread: str) -> None:
        builder = self.builder
        requests = [
            _Request(words(c.tool_call_id), words(c.function_name) or "", _json(c), c.extra)
            for c in step.tool_calls or ()
        ]
        unread = "" if requests else refused(step)
        if not requests and text and not self.is_ours and not unread:
            parsed = read_actions(text)
            text, requests = parsed.text, [_Request(None, name, arguments) for name, arguments in parsed.calls]
        fresh = [request for request in requests if not self._is_repeated(request, thread)]
        is_call_of_model = step.llm_call_count != 0 and (not requests or fresh or step.metrics is not None)
        if self.is_ours:
            is_call_of_model = step.extra is not None and bool(step.extra.agentsignals)
        row = self._model_call(step, at, thread) if is_call_of_model else None
        thought = content(step.reasoning_content)
        if thought:
            builder.event("thinking", thought, at, row, thread)
        if text:
            builder.event("text", text, at, row, thread)
        calls = [self._call(request, at, row, thread) for request in fresh]
        if unread:  # what it asked for was not carried out
            builder.event("harness", unread[:RESULT_CHARS_KEPT], at, row, thread, len(unread))
        else:
            self._results(step, calls, at, thread)
        for call in calls:
            round_trip.restore(call, self._facts[call.call_id])

    def _model_call(self, step: Step, at: int | None, thread: str) -> Row:
        named = words(step.model_name)
        full = self.model is not None and named is not None and self.model.endswith(f"/{named}")
        row = self.builder.step(None, self.model if full else named or self.model, at, thread)
        if step.metrics is not None:
            # Cached tokens, and those written to the cache where it says so, are part of the prompt's.
            metrics = step.metrics
            extra = metrics.extra
            prompt, cached = count(metrics.prompt_tokens), count(metrics.cached_tokens)
            written = None
            if extra is not None:
                says = (extra.cache_creation_input_tokens, extra.cache_write_tokens)
                written = next((n for s in says if (n := count(s)) is not None), None)
            if prompt is not None:
                rest = prompt - (cached or 0)
                row.input_tokens = max(rest - (written or 0) if rest >= (written or 0) else rest, 0)
            row.output_tokens = count(metrics.completion_tokens)
            row.cache_read_tokens, row.cache_write_tokens = cached, written
            if extra is not None:
                thoughts = (extra.reasoning_tokens, extra.reasoning_output_tokens, extra.thoughts_tokens)
                row.reasoning_tokens = next((n for t in thoughts if (n := count(t)) is not None), None)
            row.cost_usd = amount(metrics.cost_usd)
            row.cost_source = "recorded" if row.cost_usd is not None else None
        if step.extra is not None:
            round_trip.restore(row, round_trip.read_carried(step.extra.agentsignals, OfStep))
        return row

    def _is_repeated(self, request: _Request, thread: str) -> bool:
        """Return whether a call was recorded before. Some harnesses repeat it in the step that holds its result."""
        earlier_id = self._ids.get((thread, request.call_id or ""))
        if earlier_id is None or self._asked.get(earlier_id) != (request.name, request.arguments):
            return False
        return not self.builder.answered(earlier_id)

    def _call(self, request: _Request, at: int | None, row: Row | None, thread: str) -> ToolCall:
        logged, name, arguments = request.call_id, request.name, request.arguments
        n = len(self.builder.session.tool_calls)
        call_id = logged if logged is not None and logged not in self._asked else f"{logged or 'call'}#{n}"
        if logged is not None:
            self._ids[thread, logged] = call_id
        self._asked[call_id] = (name, arguments)
        self._facts[call_id] = round_trip.read_carried(carried_in(request.extra), OfCall)
        call = self._calls[call_id] = self.builder.call(call_id, name, arguments, tool(name), at, row, thread)
        return call

    def _results(self, step: Step, calls: list[ToolCall], at: int | None, thread: str) -> None:
        results = (step.observation.results if step.observation else None) or []
        unnamed = [r for r in results if words(r.source_call_id) is None]
        waiting = list(calls)
        for result in results:
            logged = words(result.source_call_id)
            if logged is not None:
                call_id = self._ids.get((thread, logged), logged)
                call = self._calls.get(call_id)
                call = call if call is not None and call.result_seq is None else None
                self._answer(call, call_id, content(result.content), result, at, thread)
                waiting = [c for c in waiting if c is not call]
                continue
            if len(unnamed) == 1:
                # One look at the terminal answers all that was typed before it; that the task is done, nobody types.
                waiting.sort(key=lambda call: call.name in TYPED)
                for earlier in waiting[:-1]:
                    self._answer(earlier, earlier.call_id, "", result, at, thread)
                waiting = waiting[-1:]
            call = waiting.pop(0) if waiting else None
            self._answer(call, call.call_id if call else "", content(result.content), result, at, thread)

    def _answer(  # noqa: PLR0913  (a result has these facts)
        self, call: ToolCall | None, call_id: str, text: str, result: Result, at: int | None, thread: str
    ) -> None:
        if call is None:
            if text:
                self.builder.result(call_id, text, "ok", at, thread)
            elif result.content is None and not call_id and result.subagent_trajectory_ref is None:
                self.builder.event("unknown", "result of nothing", at, None, thread)
            return
        status, code = outcome(call, text, result)
        facts, error = self._facts[call.call_id], None
        if facts is not None:  # read off the agent's own log, which says more than the text
            status, code, error, at = facts.status, facts.exit_code, facts.error_class, facts.ended_at
        self.builder.result(call_id, text, status, at, thread, code, error)
        if status == "ok" and call.class_ == "edit":
            record_arguments(self.builder, call)


def _json(call: Call) -> str:
    try:
        return msgspec.json.format(bytes(call.arguments or Raw(b"{}")), indent=-1).decode("utf-8", "replace")
    except msgspec.DecodeError:
        return bytes(call.arguments).decode("utf-8", "replace")


_DEEPEST = 30
"""Depth of subagents up to which they are read where they were called. Deeper ones are read at the end."""
_COPIED, _UNKNOWN = "copied", "unknown"
_SOURCES = ("user", "agent", "system")


class _File(Struct):
    """A trajectory of a file or embedded in one."""

    source: Input
    trajectory: Trajectory
    steps: list[Step | None]

    @property
    def path(self) -> str:
        return self.source.artifact.path

    def beside(self, ref: object, files: dict[str, _File]) -> _File | None:
        """Return the file that this one names, in its own folder.

        Runs that were put into one folder got a common prefix, so a renamed file with the same prefix fits too.
        """
        name = posixpath.basename(words(ref) or "")
        folder, file_name = posixpath.split(self.path)
        if not name:
            return None
        exact = files.get(posixpath.join(folder, name))
        if exact is not None:
            return exact
        ends = len(name)
        renamed = (f for path, f in files.items() if path.endswith(name) and posixpath.dirname(path) == folder)
        return next((f for f in renamed if file_name.startswith(posixpath.basename(f.path)[:-ends])), None)


def read(inputs: list[Input]) -> Reading:
    """Read every run as a session with its attempt."""
    reading = Reading()
    files = {f.path: f for f in _files(inputs)}
    parts_of_others = set(_named_by_others(files))
    heads = [f for path, f in sorted(files.items()) if path not in parts_of_others]
    ids = Counter(words(f.trajectory.session_id) for f in heads)
    read_so_far: set[str] = set()
    for head in [*heads, *(f for _, f in sorted(files.items()))]:  # those that only name each other come last
        if head.path in read_so_far:
            continue
        chain = list(_chain(head, files, read_so_far))
        own_id = words(head.trajectory.session_id)
        run = _Run(chain, files, own_id if own_id is not None and ids[own_id] < 2 else "")
        session = run.session(read_so_far)
        reading.sessions.append(session)
        if session.context == "eval":
            reading.attempts.append(run.part())
    return reading


def _files(inputs: list[Input]) -> Iterator[_File]:
    for source in inputs:
        trajectory = read_document(source, decode, "steps")
        if trajectory is not None:
            steps = each(trajectory.steps, decode_step, source.artifact)
            tally(source.artifact, "step", [None if s is None else _kind(s) for s in steps])
            yield _File(source, trajectory, steps)


def _kind(step: Step) -> str:
    if step.is_copied_context is True:
        return _COPIED
    return step.source if isinstance(step.source, str) and step.source in _SOURCES else _UNKNOWN


def _named_by_others(files: dict[str, _File]) -> Iterator[str]:
    """Yield the files that belong to another file's run."""
    for file in files.values():
        # The files that a trajectory's results came from; None for those that are embedded or not there.
        named = [
            file.beside(file.trajectory.continued_trajectory_ref, files),
            *[_file_of(ref, file, files) for step in file.steps if step is not None for ref in refs(step)],
        ]
        yield from (other.path for other in named if other is not None and other is not file)


def _file_of(ref: Ref, file: _File, files: dict[str, _File]) -> _File | None:
    """Return the file of a subagent: by its path, or before 1.7 by a session id that names one other file of the
    folder."""
    if words(ref.trajectory_path) is not None:
        return file.beside(ref.trajectory_path, files)
    wanted = words(ref.session_id)
    if wanted is None or words(ref.trajectory_id) is not None or wanted == words(file.trajectory.session_id):
        return None
    folder = posixpath.dirname(file.path)
    beside = [f for f in files.values() if posixpath.dirname(f.path) == folder and f.trajectory.session_id == wanted]
    return beside[0] if len(beside) == 1 else None


def _chain(head: _File, files: dict[str, _File], read_so_far: set[str]) -> Iterator[_File]:
    """Yield the files of a run in order."""
    file: _File | None = head
    while file is not None and file.path not in read_so_far:
        read_so_far.add(file.path)
        yield file
        file = file.beside(file.trajectory.continued_trajectory_ref, files)


class _Run:
    """A run of an agent and its files."""

    def __init__(self, chain: list[_File], files: dict[str, _File], session_id: str) -> None:
        self.chain = chain
        self.files = files
        head = chain[0]
        self.agent = head.trajectory.agent
        name = words(self.agent.name) if self.agent is not None else None
        version = words(self.agent.version) if self.agent is not None else None
        artifact_id = head.source.artifact.artifact_id
        self.builder = SessionBuilder(
            Session(session_id=session_id, context="eval", format="atif", agent=name or "", artifact_id=artifact_id),
            ANYBODY,
        )
        self.builder.session.agent_version = None if version == "unknown" else version
        self.builder.session.repo = head.source.repo_hint
        self.model = words(self.agent.model_name) if self.agent is not None else None
        self.carried = carried_in(head.trajectory.extra)
        self.facts = round_trip.read_carried(self.carried, OfSession)
        if self.facts is not None:
            self.builder.where(self.facts.cwd, self.facts.branch)
        self._names: Counter[str] = Counter()
        self._depth = 0

    def session(self, read_so_far: set[str]) -> Session:
        talk = Conversation(self.builder, self.model, is_ours=self.facts is not None)
        embedded: dict[str, _File] = {}
        for file in self.chain:
            self._embedded(file, embedded)
        for n, file in enumerate(self.chain):
            talk.goes_on = n > 0
            self._take(talk, file, MAIN)
            self._subagents(talk, file, embedded, read_so_far)
        while embedded:
            name = next(iter(embedded))
            self._thread(talk, embedded.pop(name), name, embedded, read_so_far)
        session = self.builder.finish()
        round_trip.restore_places(session, self.carried)
        round_trip.restore(session, self.facts)
        return session

    def _take(self, talk: Conversation, file: _File, thread: str) -> None:
        self.builder.artifact_id = file.source.artifact.artifact_id
        for number, step in enumerate(file.steps, 1):
            self.builder.line = number
            if step is not None:
                talk.take(step, thread)

    def _subagents(self, talk: Conversation, file: _File, embedded: dict[str, _File], read_so_far: set[str]) -> None:
        """Read the threads that results of this file came from."""
        asked, talk.subagents = talk.subagents, []
        for ref in asked if self._depth < _DEEPEST else ():
            name = words(ref.trajectory_id)
            if name is not None and name in embedded:
                self._thread(talk, embedded.pop(name), name, embedded, read_so_far)
                continue
            other = _file_of(ref, file, self.files)
            if other is not None and other.path not in read_so_far:
                read_so_far.add(other.path)
                thread = words(other.trajectory.trajectory_id) or posixpath.splitext(posixpath.basename(other.path))[0]
                self._thread(talk, other, thread, embedded, read_so_far)

    def _thread(
        self, talk: Conversation, file: _File, name: str, embedded: dict[str, _File], read_so_far: set[str]
    ) -> None:
        with self.builder.aside():
            own_model = words(file.trajectory.agent.model_name) if file.trajectory.agent is not None else None
            main_model, talk.model = talk.model, own_model or talk.model
            self._embedded(file, embedded)
            self._take(talk, file, name)
            talk.model = main_model
            self._depth += 1
            self._subagents(talk, file, embedded, read_so_far)
            self._depth -= 1

    def _embedded(self, file: _File, files: dict[str, _File]) -> None:
        """Add the trajectories embedded in a file, by name. Nameless ones are numbered."""
        for raw in file.trajectory.subagent_trajectories or ():
            trajectory = _decoded(raw)
            if trajectory is None:
                tally(file.source.artifact, "subagent_step", [None])
                continue
            steps = each(trajectory.steps, decode_step, file.source.artifact)
            tally(file.source.artifact, "subagent_step", [None if s is None else _kind(s) for s in steps])
            name = words(trajectory.trajectory_id) or words(trajectory.session_id) or "subagent"
            self._names[name] += 1
            files[name if self._names[name] == 1 else f"{name}#{self._names[name]}"] = _File(
                file.source, trajectory, steps
            )

    def part(self) -> Attempt:
        """Return the attempt as the run's files describe it. Totals count on through continuations, so the last file's
        are the run's."""
        head = self.chain[0]
        session = self.builder.session
        totals = next((f.trajectory.final_metrics for f in reversed(self.chain) if f.trajectory.final_metrics), None)
        efforts = {e for f in self.chain for s in f.steps if s is not None and (e := words(s.reasoning_effort))}
        settings = {"agent_type": session.agent or None, "model_id": self.model}
        settings["reasoning_effort"] = efforts.pop() if len(efforts) == 1 else None
        observed = {name: value for name, value in settings.items() if value is not None}
        summary = ", ".join(f"{name} {value}" for name, value in observed.items())
        part = Attempt(
            root=posixpath.dirname(head.path) if self.facts is None else head.path,
            session_artifact=head.source.artifact.artifact_id,
            session_id=session.session_id or None,
            observed=observed,
        )
        fields = [f"knobs.{name}" for name in observed]
        if totals is not None:
            part.input_tokens = count(totals.total_prompt_tokens)
            part.output_tokens = count(totals.total_completion_tokens)
            part.cache_read_tokens = count(totals.total_cached_tokens)
            part.cost_usd = amount(totals.total_cost_usd)
            fields += ["input_tokens", "output_tokens", "cache_read_tokens", "cost_usd"]
            summary += f", totals {msgspec.json.encode(totals).decode()}"
        statement = f"{head.trajectory.schema_version}: {summary}"
        part.statements = [
            Statement(text=statement, artifact_id=head.source.artifact.artifact_id, line=1, fields=fields)
        ]
        return part


def _decoded(raw: Raw) -> Trajectory | None:
    try:
        return decode(memoryview(raw))
    except UNREADABLE:
        return None
