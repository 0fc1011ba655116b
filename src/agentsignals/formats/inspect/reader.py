"""Read Inspect logs (design/formats.md#inspect): each sample and epoch is a session with its attempt.

Epochs are separate trials. A sample that ran again in the log of a retry is the next attempt of its trial.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from agentsignals.formats import Input, Reading
from agentsignals.formats.any_agent import ANYBODY
from agentsignals.formats.bounds import amount, count, refuse
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.documents import each
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.edits import record_arguments
from agentsignals.formats.harbor.reader import SECRET
from agentsignals.formats.inspect import SAMPLE, SPECIFICATIONS, records, tool
from agentsignals.formats.inspect import records as chunks
from agentsignals.formats.inspect.records import (
    Attachments,
    Call,
    Event,
    Failure,
    Header,
    Message,
    Part,
    Sample,
    Score,
    Spec,
    Usage,
)
from agentsignals.formats.records import UNREADABLE, document, saw, skip
from agentsignals.formats.zip_members import MAGIC, Contents, Member, MemberError, members
from agentsignals.model import (
    MAIN,
    Artifact,
    Attempt,
    CallStatus,
    EventKind,
    Session,
    Statement,
    Step,
    ToolCall,
    logged_iso,
)

_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Values of grades in Inspect's own metrics: correct, partial, incorrect, no answer, and words for yes and no."""
_RENAMED = {"time_limit": "timeout_s", "max_samples": "concurrency", "effort": "reasoning_effort"}
_CONFIG = ("epochs", "message_limit", "token_limit", "turn_limit", "working_limit", "cost_limit", "time_limit",
           "max_samples", "retry_on_error")  # fmt: skip
_NAMED = frozenset(("split", "condition"))
"""Arguments of a task, and metadata of a run, that are called as such a knob is here."""
_TIME_LIMITS = ("time", "working")
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w{0,60}\.){0,6}([A-Z]\w{0,60})(?=[(:]|$)")
_EXPLANATION_CHARS = 600


def part_of(header: Header, sample: Sample, session_id: str, artifact_id: str, place: str) -> Attempt:
    """Return the attempt of a sample. `place` names the sample in its log."""
    task = f"{header.eval.task}/{sample.id}"
    trial = f"{header.eval.task_id or header.eval.run_id or artifact_id}/{sample.id}_epoch_{sample.epoch}"
    rewards = rewards_of(sample.scores or {})
    limit, error = sample.limit, sample.error
    part = Attempt(root=f"inspect:{trial}", trial_id=trial, task_id=task, run_id=header.eval.run_id)
    part.session_artifact, part.session_id = artifact_id, session_id
    part.knobs = knobs(header)
    part.knobs["epoch"] = sample.epoch
    part.rewards = rewards or None
    part.reward = next(iter(rewards.values())) if len(rewards) == 1 else None
    part.started_at, part.ended_at = logged_iso(sample.started_at), logged_iso(sample.completed_at)
    part.wall_time_s = sample.total_time
    if limit is not None:
        part.exit_status, part.timed_out = f"limit:{limit.type}", limit.type in _TIME_LIMITS
        part.ending = "time" if part.timed_out else "infrastructure" if limit.type == "operator" else "budget"
    elif error is not None:
        part.exit_status, part.exception = "error", exception_of(error.message or error.traceback or "")
        part.ending = "infrastructure"  # Inspect leaves a sample with an error out of its metrics
    elif sample.scores or sample.completed_at:
        part.exit_status, part.timed_out = "completed", False
        part.ending = "finished"
    _count(part, sample)
    part.ratings = {name: score.value for name, score in (sample.scores or {}).items()} or None
    part.kinds = ["harness_config"]
    part.statements = list(_statements(part, sample, artifact_id, place))
    return part


def knobs(header: Header) -> dict[str, Any]:
    """Return the treatment under the common names, and other settings that the log records."""
    spec, plan = header.eval, header.plan
    treatment: dict[str, Any] = {}
    agent = agent_of(header)
    dataset = (spec.dataset.name or spec.dataset.location) if spec.dataset else None
    named = {"model_id": spec.model, "agent_type": agent, "dataset": dataset, "tools": _tools(header)}
    treatment.update({k: v for k, v in named.items() if v})
    if _is_plain(spec.task_version):
        treatment["task_version"] = spec.task_version
    config = spec.config or {}
    treatment.update({_RENAMED.get(k, k): config[k] for k in _CONFIG if _is_plain(config.get(k))})
    for settings in ((plan.config if plan else None) or {}, spec.model_generate_config or {}):
        treatment.update({_RENAMED.get(k, k): v for k, v in settings.items() if _is_plain(v)})
    for place, arguments in (
        ("task_args", spec.task_args),
        ("solver_args", spec.solver_args),
        ("metadata", spec.metadata),
    ):
        for name, value in arguments.items() if isinstance(arguments, dict) else ():
            if _is_plain(value) and not SECRET.search(name):
                treatment.setdefault(name if name in _NAMED else f"{place}.{name}", value)
    version = (spec.packages or {}).get("inspect_ai")
    if isinstance(version, str):
        treatment["inspect_ai"] = version
    sandbox = spec.sandbox.get("type") if isinstance(spec.sandbox, dict) else None
    if isinstance(sandbox, str):
        treatment["sandbox"] = sandbox
    return treatment


def _tools(header: Header) -> list[str]:
    """Return the names of the tools that the plan's steps were given."""
    steps = header.plan.steps if header.plan is not None else None
    handed = [step.params.get("tools") for step in steps or () if isinstance(step.params, dict)]
    tools = [tool for several in handed if isinstance(several, list) for tool in several]
    names = (tool.get("name") if isinstance(tool, dict) else tool for tool in tools)
    return sorted({name for name in names if isinstance(name, str)})


def agent_of(header: Header) -> str | None:
    """Return the solver that was asked for, else the last solver of the plan."""
    steps = header.plan.steps if header.plan is not None else None
    return header.eval.solver or next((s.solver for s in reversed(steps or ()) if s.solver), None)


def rewards_of(scores: dict[str, Score]) -> dict[str, float]:
    """Return scores as numbers. A score of several values gives one a value; words that are no grade give none."""
    rewards: dict[str, float] = {}
    for name, score in scores.items():
        values = score.value.items() if isinstance(score.value, dict) else [("", score.value)]
        for key, value in values:
            number = _number(value)
            if number is not None:
                rewards[f"{name}.{key}" if key else name] = number
    return rewards


def exception_of(text: str) -> str | None:
    """Return the type of an error, from the beginning of its message or the last line of its traceback."""
    last = text.strip().rsplit("\n", 1)[-1] if text.lstrip().startswith("Traceback") else text.strip()
    match = _EXCEPTION.match(last[:600])
    return match.group(1) if match else None


def _number(value: object) -> float | None:
    if isinstance(value, str):
        grade = _GRADES.get(value, _GRADES.get(value.lower()) if len(value) > 1 else None)
        if grade is not None:
            return grade
    elif not isinstance(value, bool | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float | bool)


def _count(part: Attempt, sample: Sample) -> None:
    """Usage as Inspect summed it over all models: a model that graded the sample is among them."""
    usages = list((sample.model_usage or {}).values())
    if not usages:
        return
    part.input_tokens = sum(u.uncached or 0 for u in usages)
    part.output_tokens = sum(count(u.output_tokens) or 0 for u in usages)
    if any(u.input_tokens_cache_read is not None for u in usages):
        part.cache_read_tokens = sum(count(u.input_tokens_cache_read) or 0 for u in usages)
    costs = [amount(u.total_cost) for u in usages]
    if None not in costs:
        part.cost_usd = math.fsum(c for c in costs if c is not None)


def _statements(part: Attempt, sample: Sample, artifact_id: str, place: str) -> Iterator[Statement]:
    settings = ", ".join(f"{k} {v}" for k, v in part.knobs.items())
    yield Statement(
        text=f"{place}: {settings}", artifact_id=artifact_id, line=1, fields=[f"knobs.{k}" for k in part.knobs]
    )
    for name, score in (sample.scores or {}).items():
        text = f"{name} scored {score.value!r}: {(score.explanation or '')[:_EXPLANATION_CHARS]}".rstrip(": ")
        yield Statement(text=text, artifact_id=artifact_id, line=1, fields=["reward", "rewards", "ratings"])
    if sample.error is not None:
        yield Statement(
            text=sample.error.message or "error", artifact_id=artifact_id, line=1, fields=["exit_status", "exception"]
        )
    elif sample.limit is not None:
        limit = f"{sample.limit.type} limit of {sample.limit.limit} reached"
        yield Statement(text=limit, artifact_id=artifact_id, line=1, fields=["exit_status", "timed_out"])
    for retried in sample.error_retries or ():
        yield Statement(
            text=f"an earlier run of this sample failed: {retried.message}", artifact_id=artifact_id, line=1, fields=[]
        )
    if part.wall_time_s is not None:
        working = f", {sample.working_time} s without waiting" if sample.working_time is not None else ""
        yield Statement(
            text=f"took {part.wall_time_s} s{working}", artifact_id=artifact_id, line=1, fields=["wall_time_s"]
        )


# A message counts when it first appears: every model event repeats those before it. Model calls of a scorer are no work
# of the agent and leave no step.

_DEEPEST = 8
"""Events of a tool within events of a tool, as old logs nest them."""
_EVENT_KINDS: dict[str, EventKind] = {
    "compaction": "compaction", "interrupt": "interrupt", "info": "meta", "input": "meta", "error": "harness",
    "sample_limit": "harness",
}  # fmt: skip
_QUIET = frozenset((
    "sample_init", "state", "store", "span_end", "score", "score_edit", "approval", "subtask", "logger", "branch",
    "anchor", "checkpoint", "review", "sentinel",
))  # fmt: skip
"""Kinds of events that are counted and leave none here: what they say is said elsewhere, or to the harness only."""
_UNDERSTOOD = _QUIET | _EVENT_KINDS.keys() | {"span_begin", "step", "model", "tool", "sandbox"}
_PARTS = frozenset(("text", "reasoning", "image", "audio", "video", "data", "document", "tool_use"))
"""The kinds of content that there are; only of the first two the words are read."""
_ERRORS = {"timeout": "timeout", "permission": "permission", "file_not_found": "not_found"}
_STATUS: dict[str | None, CallStatus] = {"approval": "rejected", "cancelled": "cancelled"}


class Place(NamedTuple):
    """Position of an event in the run."""

    scoring: bool = False
    thread: str = MAIN
    in_tool: bool = False


_TOP = Place()
_Words = tuple[str, str, str | None]


class Reader:
    """Reads one sample into the session of `builder`."""

    def __init__(self, builder: SessionBuilder, sample: Sample, artifact: Artifact) -> None:
        self._builder = builder
        self._sample = sample
        self._artifact = artifact
        self._attached = Attachments(sample.attachments)
        self._pool = sample.pool
        self._places: dict[str, Place] = {}
        self._scorers = 0
        """Scorer steps that are open; old logs have steps in place of spans."""
        self._tools: dict[str, str] = {}
        """The tool each span runs, until its event comes; then `_ran` has its call."""
        self._ran: dict[str, ToolCall] = {}
        self._seen: set[tuple[object, ...]] = set()
        self._asked: dict[str, tuple[list[Raw], dict[_Words, int]]] = {}
        """Last messages sent to the model on each thread, and how often each message without an id occurs in them."""
        self._prompted = False
        self._models = 0

    def read(self) -> None:
        """All events, then the messages that no event had."""
        self._events(self._sample.events, _TOP, 0)
        left = self._messages(self._sample.messages, MAIN)
        for message in left:
            self._say(message, None, MAIN)

    # -- events ----------------------------------------------------------------------------------------------------

    def _events(self, raws: list[Raw], outer: Place, depth: int) -> None:
        for number, (raw, event) in enumerate(zip(raws, records.events_of(raws, self._artifact), strict=True), 1):
            self._artifact.records += 1
            if event is None:
                skip(self._artifact, "bad_shape")
                continue
            saw(self._artifact, f"event.{event.event}")
            if depth == 0:
                self._builder.line = number
            place = self._place_of(event, outer)
            if not self._event(event, place, depth):
                self._builder.event("unknown", bytes(raw).decode("utf-8", "replace"), thread=place.thread)

    def _place_of(self, event: Event, outer: Place) -> Place:
        place = self._places.get(event.span_id, outer) if event.span_id else outer
        return place._replace(scoring=True) if self._scorers else place

    def _event(self, event: Event, place: Place, depth: int) -> bool:
        """Record an event. Return False if its kind is unknown."""
        kind, at = event.event, logged_iso(event.timestamp)
        if kind == "span_begin":
            self._begin(event, place)
        elif kind == "step":
            self._scorers = max(self._scorers + (event.type == "scorer") * (1 if event.action == "begin" else -1), 0)
        elif kind == "model":
            self._model(event, place, at)
        elif kind == "tool":
            self._tool(event, place, at, depth)
        elif kind == "sandbox":
            self._sandbox(event, at)
        elif kind in _EVENT_KINDS:
            self._tell(event, _EVENT_KINDS[kind], place, at)
        return kind in _UNDERSTOOD

    def _begin(self, event: Event, outer: Place) -> None:
        parent = self._places.get(event.parent_id, outer) if event.parent_id else outer
        type_, name = event.type, event.id
        if not name:
            return
        scoring = parent.scoring or type_ in ("scorer", "scorers")
        if type_ in ("tool", "handoff", "subtask"):
            self._places[name] = Place(scoring, parent.thread, True)
            self._tools[name] = event.name or ""
        elif type_ == "agent" and parent.in_tool:
            self._places[name] = Place(scoring, name, False)
        else:
            self._places[name] = Place(scoring, parent.thread, parent.in_tool)

    def _tell(self, event: Event, kind: EventKind, place: Place, at: int | None) -> None:
        content = next((raw for raw in (event.message, event.data, event.error, event.input) if raw), Raw(b'""'))
        value = records.value_of(content)
        text = self._attached.text(value) if isinstance(value, str) else self._attached.json(bytes(content))
        self._builder.event(kind, text, at, thread=place.thread)

    # -- the model -------------------------------------------------------------------------------------------------

    def _model(self, event: Event, place: Place, at: int | None) -> None:
        if place.scoring:
            return
        self._models += 1
        for message in self._messages(self._input(event), place.thread):
            self._say(message, at, place.thread)
        failure = records.failure_of(event.error)
        if failure is not None:
            self._builder.event("api_error", failure.message, at, thread=place.thread)
        output = each([event.output], records.decode_output, self._artifact)[0] if event.output else records.Output()
        if output is None:
            self._builder.event("unknown", bytes(event.output).decode("utf-8", "replace"), at, thread=place.thread)
            return
        choice = output.choices[0] if output.choices else None
        if choice is None or choice.message is None or (failure is not None and not choice.message.content):
            return
        done = event.completed if isinstance(event.completed, str) else None
        step = self._builder.step(None, event.model, logged_iso(done) or at, place.thread)
        step.message_id, step.stop_reason = choice.message.id, choice.stop_reason
        _bill(step, output.usage, event.cache == "read")
        self._is_new(choice.message, dict(self._asked[place.thread][1]))
        self._say(choice.message, step.timestamp, place.thread, step)

    def _input(self, event: Event) -> list[Raw]:
        spans = records.value_of(event.input_refs) if event.input_refs else None
        if not isinstance(spans, list):
            return records.items(event.input)
        return records.spanned(spans, self._pool)

    def _messages(self, raws: list[Raw], thread: str) -> list[Message]:
        """Return those of these messages that are new."""
        before, times = self._asked.get(thread, ([], {}))
        n_before = len(before) if raws[: len(before)] == before else 0
        times = dict(times) if n_before else {}
        new: list[Message] = []
        for raw in raws[n_before:]:
            message = each([raw], records.decode_message, self._artifact)[0]
            if message is None:
                self._builder.event("unknown", bytes(raw).decode("utf-8", "replace"), thread=thread)
                continue
            if self._is_new(message, times):
                new.append(message)
        self._asked[thread] = (raws, times)
        return new

    def _is_new(self, message: Message, times: dict[_Words, int]) -> bool:
        """Return whether a message is the first of its id; without an id, the first n-th repeat of its words."""
        key: tuple[object, ...] = (message.id,)
        if message.id is None:
            same = (message.role, self._words(message.content), message.tool_call_id)
            times[same] = times.get(same, 0) + 1
            key = (*same, times[same])
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    # -- messages --------------------------------------------------------------------------------------------------

    def _say(self, message: Message, at: int | None, thread: str, step: Step | None = None) -> None:
        text = self._words(message.content)
        if message.role == "user":
            self._user(message, text, at, thread)
        elif message.role == "assistant":
            if step is None and not self._models:
                step = self._builder.step(message.id, None, at, thread)
            self._assistant(message, text, at, thread, step)
        elif message.role == "tool":
            self._answer(message, text, at, thread)
        else:
            self._builder.event("meta", text, at, thread=thread)
        if isinstance(message.content, list):
            self._builder.unread((part.type or "" for part in message.content), _PARTS, at, thread)

    def _user(self, message: Message, text: str, at: int | None, thread: str) -> None:
        """The task is the prompt; so is what an operator types. The rest the scaffold says in the person's name."""
        if thread == MAIN and (message.source in ("input", "operator") or not self._prompted):
            self._prompted = True
            self._builder.turn("prompt", text, at)
        else:
            self._builder.event("meta", text, at, thread=thread)

    def _assistant(self, message: Message, text: str, at: int | None, thread: str, step: Step | None) -> None:
        for part in message.content if isinstance(message.content, list) else ():
            if part.type == "reasoning":
                self._builder.event(
                    "thinking",
                    (part.summary or "") if part.redacted else (part.reasoning or part.summary or ""),
                    at,
                    step,
                    thread,
                )
        if text:
            self._builder.event("text", text, at, step, thread)
        for call in message.tool_calls or ():
            self._call(call, at, step, thread)

    def _call(self, call: Call, at: int | None, step: Step | None, thread: str) -> ToolCall:
        arguments = self._attached.json(bytes(call.arguments)) if call.arguments else "{}"
        name = call.function or ""
        return self._builder.call(call.id or "", name, arguments, tool(name), at, step, thread)

    def _words(self, content: str | list[Part] | None) -> str:
        if isinstance(content, str):
            return self._attached.text(content)
        return "\n".join(self._attached.text(p.text) for p in content or () if p.type == "text" and p.text)

    # -- tools -----------------------------------------------------------------------------------------------------

    def _tool(self, event: Event, place: Place, at: int | None, depth: int) -> None:
        if not place.scoring:
            call_id, name = event.id or "", event.function or ""
            if self._builder.answered(call_id):  # a call that the model did not make: a solver's own
                self._call(Call(call_id, name, event.arguments), at, None, place.thread)
            done = logged_iso(event.completed) if isinstance(event.completed, str) else at
            call = self._finish(
                call_id,
                _result_text(self._attached.json(bytes(event.result))),
                records.failure_of(event.error),
                done,
                bool(event.failed),
            )
            for span in [s for s, running in self._tools.items() if running == name][:1]:
                del self._tools[span]
                if call is not None:
                    self._ran[span] = call
        if event.events and depth < _DEEPEST:
            self._events(event.events, place._replace(thread=event.id or MAIN), depth + 1)

    def _answer(self, message: Message, text: str, at: int | None, thread: str) -> None:
        """The result as the model saw it, when no event told of it."""
        call_id = message.tool_call_id or ""
        if not self._builder.answered(call_id):
            self._finish(call_id, text, message.error, at, False)

    def _finish(
        self, call_id: str, text: str, failure: Failure | None, at: int | None, failed: bool
    ) -> ToolCall | None:
        if failure is None:
            status: CallStatus = "error" if failed else "ok"
        else:
            status = _STATUS.get(failure.type, "error")
            text = "\n".join(t for t in (text, failure.message) if t)
        error = _ERRORS.get(failure.type or "") if failure is not None else None
        call = self._builder.result(call_id, text, status, at, error=error)
        if call is not None and call.class_ == "edit" and status == "ok":
            record_arguments(self._builder, call)
        return call

    def _sandbox(self, event: Event, at: int | None) -> None:
        """Note the exit code of a command that a tool ran in its sandbox. Most tools do not report it."""
        call = self._ran.get(event.span_id or "")
        code = records.value_of(event.result)
        if call is None or call.class_ not in ("shell", "test", "read", "search") or type(code) is not int:
            return
        output = records.value_of(event.output)
        self._builder.exited(call, code, output if isinstance(output, str) else "", call.ended_at or at)


def _bill(step: Step, usage: Usage | None, cached: bool) -> None:
    """Record the usage of a call. An answer from Inspect's own cache used nothing."""
    if cached:
        step.input_tokens = step.output_tokens = step.cache_read_tokens = step.cache_write_tokens = 0
        return
    if usage is None:
        return
    step.input_tokens, step.output_tokens = usage.uncached, usage.output_tokens
    step.cache_read_tokens, step.cache_write_tokens = usage.input_tokens_cache_read, usage.input_tokens_cache_write
    step.reasoning_tokens = usage.reasoning_tokens
    if usage.total_cost is not None:
        step.cost_usd, step.cost_source = usage.total_cost, "recorded"


def _result_text(encoded: str) -> str:
    """A result, given as JSON, as the model saw it: the texts of a list of parts, anything else as it is written."""
    try:
        value = msgspec.json.decode(encoded) if encoded else None
    except UNREADABLE:
        return encoded
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(v["text"] for v in value if isinstance(v, dict) and isinstance(v.get("text"), str))
    return "" if value is None else encoded


_Reader = Callable[[], Sample | None]


def read(inputs: list[Input]) -> Reading:
    """The samples of all logs of one task run. One in several logs, copied or kept by a retry, counts once."""
    reading = Reading()
    for piece in pieces(inputs):
        reading.sessions += piece.sessions
        reading.attempts += piece.attempts
    return reading


def pieces(inputs: list[Input]) -> Iterator[Reading]:
    """The samples, in their order."""
    session_ids: set[str] = set()
    for source in sorted(inputs, key=lambda i: (-len(i.data), i.artifact.artifact_id)):
        header, samples = _archive(source) if source.data[:4] == MAGIC else _document(source)
        n = 0
        for place, reader in samples:
            n += 1
            made = _session(source, header, place, reader, session_ids)
            if made is not None:
                yield Reading([made[0]], attempts=[made[1]])
        status = f"status {header.status}" if header.status else "no header, the run did not end"
        source.artifact.note = f"{status}, {n} samples"


def _archive(source: Input) -> tuple[Header, list[tuple[str, _Reader]]]:
    """The header, and the samples by name."""
    entries, whole = members(source.data)
    contents = Contents(source.data)
    if not whole and all(m.start + m.size <= len(source.data) for m in entries):  # else the cut member tells
        source.artifact.records += 1
        skip(source.artifact, "cut_archive")
    header = Header(Spec())
    chunked = chunks.by_sample(entries)
    samples: list[tuple[str, _Reader]] = [
        (place, partial(chunks.sample_of, contents, of_one, source.artifact)) for place, of_one in chunked.items()
    ]
    in_chunks = {member.name for of_one in chunked.values() for member in of_one}
    for member in sorted(entries, key=lambda m: (m.name not in SPECIFICATIONS, m.name == SPECIFICATIONS[-1], m.start)):
        if SAMPLE.match(member.name):
            samples.append((member.name, partial(_whole, contents, member, source)))
            continue
        if member.name in in_chunks and member.name.endswith("/sample.json"):
            continue  # counted as the sample
        source.artifact.records += 1
        if member.name in in_chunks:
            saw(source.artifact, "member.chunk")
        elif member.name in SPECIFICATIONS:
            header = _header(source, contents, member, header)
        else:
            saw(source.artifact, f"member.{_kind(member.name)}")
    return header, samples


def _kind(name: str) -> str:
    if name in ("summaries.json", "reductions.json", "results.json"):
        return name.removesuffix(".json")
    return "journal" if name.startswith("_journal/") else "other"


def _whole(contents: Contents, member: Member, source: Input) -> Sample | None:
    try:
        data = contents.of(member)
    except MemberError as problem:
        source.artifact.records += 1
        skip(source.artifact, str(problem))
        return None
    return document(data, source.artifact, records.decode_sample)


def _header(source: Input, contents: Contents, member: Member, earlier: Header) -> Header:
    """The specification at the archive's end says more than that at its beginning."""
    try:
        decoded = records.decode_header(contents.of(member))
    except MemberError as problem:
        skip(source.artifact, str(problem))
        return earlier
    except UNREADABLE:
        skip(source.artifact, "bad_shape")
        return earlier
    saw(source.artifact, "member.header" if member.name == SPECIFICATIONS[-1] else "member.start")
    return decoded


def _document(source: Input) -> tuple[Header, list[tuple[str, _Reader]]]:
    whole = read_document(source, records.decode_document, "samples")
    if whole is None:
        return Header(Spec()), []
    readers = (partial(document, bytes(raw), source.artifact, records.decode_sample) for raw in whole.samples or ())
    return whole, [(f"sample {n}", reader) for n, reader in enumerate(readers, 1)]


def _session(
    source: Input, header: Header, place: str, reader: _Reader, session_ids: set[str]
) -> tuple[Session, Attempt] | None:
    artifact = source.artifact
    sample = reader()
    if sample is None:
        return None
    saw(artifact, "member.sample")
    run = header.eval.task_id or header.eval.run_id or artifact.artifact_id
    session_id = sample.uuid or f"{run}/{sample.id}_epoch_{sample.epoch}"
    if session_id in session_ids:
        saw(artifact, "repeated", 1)
        refuse(artifact, "session_id_of_another")
        return None
    session_ids.add(session_id)
    artifact_id = source.artifact.artifact_id
    session = Session(
        session_id=session_id,
        context="eval",
        format="inspect",
        agent=agent_of(header) or "inspect",
        artifact_id=artifact_id,
    )
    session.title = f"{header.eval.task} {sample.id}"
    builder = SessionBuilder(session, ANYBODY)
    Reader(builder, sample, source.artifact).read()
    builder.finish()
    session.model = header.eval.model or session.model
    session.started_at = logged_iso(sample.started_at) or session.started_at
    session.ended_at = logged_iso(sample.completed_at) or session.ended_at
    return session, part_of(header, sample, session_id, artifact_id, place)
