"""Read Inspect logs (design/formats.md#inspect): each sample and epoch is a session with its attempt.

Epochs are separate trials. A sample that ran again in the log of a retry is the next attempt of its trial.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from agentsignals.formats import Input, Reading
from agentsignals.formats.any_agent import ANYBODY
from agentsignals.formats.bounds import amount, count
from agentsignals.formats.builder import SessionBuilder, record_arguments
from agentsignals.formats.columns import score_of
from agentsignals.formats.documents import each
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.harbor.reader import SECRET
from agentsignals.formats.inspect import SAMPLE, SPECIFICATIONS, records, tool
from agentsignals.formats.inspect.records import (
    Attachments,
    Call,
    Document,
    Event,
    Failure,
    Header,
    Message,
    Part,
    Sample,
    Spec,
    Usage,
)
from agentsignals.formats.records import UNREADABLE, as_list, decoded, decoder, document, inside, saw, skip, string
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
from agentsignals.model.prices import same_models

_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Values of grades in Inspect's own metrics: correct, partial, incorrect, no answer, and words for yes and no."""
_RENAMED = {"time_limit": "timeout_s", "max_samples": "concurrency", "effort": "reasoning_effort"}
_CONFIG = ("epochs", "message_limit", "token_limit", "turn_limit", "working_limit", "cost_limit", "time_limit",
           "max_samples", "retry_on_error")  # fmt: skip
_NAMED = frozenset(("split", "condition"))
"""Arguments of a task, and metadata of a run, that are called as such a knob is here."""
_TIME_LIMITS = ("time", "working")
_NO_MODEL = ("none/none", "none", "")
"""Names of the model of an evaluation that only has roles."""
_UNDER_TEST = "target"
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w{0,60}\.){0,6}([A-Z]\w{0,60})(?=[(:]|$)")
_EXPLANATION_CHARS = 600


def _attempt(header: Header, sample: Sample, session: Session, reader: Reader, place: str) -> Attempt:
    """Return the attempt of a sample. `place` names the sample in its log."""
    graded = reader.graded
    session_id, artifact_id = session.session_id, session.artifact_id
    scores, limit, error = sample.scores or {}, sample.limit, sample.error
    trial = f"{header.eval.task_id or header.eval.run_id or artifact_id}/{sample.id}_epoch_{sample.epoch}"
    part = Attempt(
        root=f"inspect:{trial}",
        trial_id=trial,
        task_id=f"{header.eval.task}/{sample.id}",
        run_id=header.eval.run_id,
        session_artifact=artifact_id,
        session_id=session_id,
        knobs={**_knobs(header, session.model), "epoch": sample.epoch},
        started_at=logged_iso(sample.started_at),
        ended_at=logged_iso(sample.completed_at),
        wall_time_s=sample.total_time,
        ratings={name: score.get("value") for name, score in scores.items()} or None,
        kinds=["harness_config"],
    )

    def state(text: str, *fields: str) -> None:
        part.statements.append(Statement(text=text, artifact_id=artifact_id, line=1, fields=list(fields)))

    settings = ", ".join(f"{k} {v}" for k, v in part.knobs.items())
    state(f"{place}: {settings}", *(f"knobs.{k}" for k in part.knobs))
    # A score of several values gives one reward a value; words that are no grade give none.
    rewards: dict[str, float] = {}
    for name, score in scores.items():
        given = score.get("value")
        for key, value in given.items() if isinstance(given, dict) else [("", given)]:
            if (number := _number(value)) is not None:
                rewards[f"{name}.{key}" if key else name] = number
        explained = string(score.get("explanation")) or ""
        text = f"{name} scored {given!r}: {explained[:_EXPLANATION_CHARS]}".rstrip(": ")
        state(text, "reward", "rewards", "ratings")
    part.rewards, part.reward = rewards or None, next(iter(rewards.values())) if len(rewards) == 1 else None
    if len(rewards) > 1 and header.headline is not None:
        part.reward = rewards.get(header.headline)
    if sample.invalidation is not None:
        part.reward_counts = False
        why = string(inside(sample.invalidation, "reason")) or "no reason given"
        state(f"invalidated: {why[:_EXPLANATION_CHARS]}", "reward_counts")
    reached = string(inside(limit, "type"))
    if limit is not None:
        part.exit_status, part.timed_out = f"limit:{reached}", reached in _TIME_LIMITS
        part.ending = "time" if part.timed_out else "infrastructure" if reached == "operator" else "budget"
    elif error is not None:
        part.exit_status, part.ending = "error", "infrastructure"  # Inspect leaves it out of its metrics
        # The type of the error stands at the beginning of its message, or in the last line of its traceback.
        why = error.message or error.traceback or ""
        last = why.strip().rsplit("\n", 1)[-1] if why.lstrip().startswith("Traceback") else why.strip()
        raised = _EXCEPTION.match(last[:600])
        part.exception = raised[1] if raised else None
        if scores:  # `score_on_error`, or scores from before it: Inspect counts them
            part.reward_counts = True
    elif scores or sample.completed_at:
        part.exit_status, part.timed_out, part.ending = "completed", False, "finished"
    if error is not None:
        state(error.message or "error", "exit_status", "exception", *(["reward_counts"] if scores else []))
    elif limit is not None:
        state(f"{reached} limit of {limit.get('limit')} reached", "exit_status", "timed_out")
    for retried in sample.error_retries or ():
        state(f"an earlier run of this sample failed: {retried.message}")
    if part.wall_time_s is not None:
        working = f", {sample.working_time} s without waiting" if sample.working_time is not None else ""
        state(f"took {part.wall_time_s} s{working}", "wall_time_s")
    # Inspect sums usage over all models, those that graded the sample included.
    if usages := list((sample.model_usage or {}).values()):
        whole, others = _summed(usages), _summed(graded)
        part.input_tokens = max(whole.input_tokens - others.input_tokens, 0)
        part.output_tokens = max(whole.output_tokens - others.output_tokens, 0)
        if any(u.input_tokens_cache_read is not None for u in usages):
            part.cache_read_tokens = max(whole.cache_read_tokens - others.cache_read_tokens, 0)
        if whole.cost_usd is not None and others.cost_usd is not None:
            part.cost_usd = max(whole.cost_usd - others.cost_usd, 0.0)
        fields = ["input_tokens", "output_tokens", "cache_read_tokens", "cost_usd"]
        of_cache = "" if part.cache_read_tokens is None else f" ({part.cache_read_tokens} of them read from a cache)"
        text = f"Inspect counted {part.input_tokens} tokens in{of_cache}"
        # A run of the sample that was thrown away is in the usage of the log alone, not in the sample's.
        thrown = [u for retried in sample.error_retries or () for u in reader.usages(retried.events or [])]
        if graded or thrown:
            others = _summed([*graded, *thrown])
            part.other_input_tokens, part.other_output_tokens = others.input_tokens, others.output_tokens
            part.other_cost_usd = others.cost_usd
            fields += ["other_input_tokens", "other_output_tokens", "other_cost_usd"]
            text += f", besides {others.input_tokens} of graders and of runs that were thrown away"
        state(text, *fields)
    return part


class _Sum(NamedTuple):
    """Usage of several model calls. Input includes cached tokens; the cost is None where a call has none."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cost_usd: float | None


def _summed(usages: Sequence[Usage]) -> _Sum:
    costs = [amount(u.total_cost) for u in usages]
    return _Sum(
        input_tokens=sum((u.uncached or 0) + u.cached for u in usages),
        output_tokens=sum(u.output or 0 for u in usages),
        cache_read_tokens=sum(count(u.input_tokens_cache_read) or 0 for u in usages),
        cost_usd=None if None in costs else math.fsum(c for c in costs if c is not None),
    )


def _served(spec: Spec, work: Counter[str]) -> str | None:
    """Return the model that was tried. `work` counts the calls of each model outside of scoring.

    An evaluation of roles alone names no model of its own, and another one may have had all the calls. Where several
    models worked, the role `target` is the one under test.
    """
    named = spec.model if spec.model not in _NO_MODEL else None
    if named is not None and (not work or any(len({*same_models({named, model}).values()}) == 1 for model in work)):
        return named
    target = string(inside(spec.model_roles, _UNDER_TEST, "model"))
    if target in work:
        return target
    return next(iter(work)) if len(work) == 1 else named


def _knobs(header: Header, model: str | None) -> dict[str, Any]:
    """Return the treatment under the common names, and other settings that the log records."""
    spec = header.eval
    tools = [tool for step in header.steps for tool in as_list(inside(step, "params", "tools"))]
    names = (tool.get("name") if isinstance(tool, dict) else tool for tool in tools)
    settings = {
        "model_id": model,
        "agent_type": header.agent,
        "dataset": string(inside(spec.dataset, "name")) or string(inside(spec.dataset, "location")),
        "tools": sorted({name for name in names if isinstance(name, str)}),
    }
    knobs: dict[str, Any] = {k: v for k, v in settings.items() if v}
    if _is_plain(spec.task_version):
        knobs["task_version"] = spec.task_version
    config = spec.config or {}
    knobs.update({_RENAMED.get(k, k): config[k] for k in _CONFIG if _is_plain(config.get(k))})
    for generated in (inside(header.plan, "config"), spec.model_generate_config):
        if isinstance(generated, dict):
            knobs.update({_RENAMED.get(k, k): v for k, v in generated.items() if _is_plain(v)})
    for place in ("task_args", "solver_args", "metadata"):
        arguments = getattr(spec, place)
        for name, value in arguments.items() if isinstance(arguments, dict) else ():
            if _is_plain(value) and not SECRET.search(name):
                knobs.setdefault(name if name in _NAMED else f"{place}.{name}", value)
    for role, served in (spec.model_roles or {}).items():
        if (name := string(inside(served, "model")) or string(served)) is not None:
            knobs[f"model_roles.{role}"] = name
    named = {"inspect_ai": inside(spec.packages, "inspect_ai"), "sandbox": inside(spec.sandbox, "type")}
    return knobs | {name: value for name, value in named.items() if isinstance(value, str)}


def _number(value: object) -> float | None:
    if isinstance(value, str):
        grade = _GRADES.get(value, _GRADES.get(value.lower()) if len(value) > 1 else None)
        if grade is not None:
            return grade
    return float(value) if isinstance(value, bool) else score_of(value)


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float | bool)


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
_PARTS = frozenset(("text", "reasoning", "image", "audio", "video", "data", "document", "tool_use"))
"""The kinds of content that there are; only of the first two the words are read."""
_ERRORS = {"timeout": "timeout", "permission": "permission", "file_not_found": "not_found"}
_STATUS: dict[str | None, CallStatus] = {"approval": "rejected", "cancelled": "cancelled"}


class Place(NamedTuple):
    """Position of an event in the run."""

    scoring: bool = False
    thread: str = MAIN
    in_tool: bool = False


_Identity = tuple[str, str, str | None]


class Reader:
    """Reads one sample into the session of `builder`."""

    def __init__(self, builder: SessionBuilder, sample: Sample, artifact: Artifact) -> None:
        self._builder = builder
        self._sample = sample
        self._artifact = artifact
        self._attached = Attachments(sample.attachments)
        self._places: dict[str, Place] = {}
        self._scorers = 0
        """Scorer steps that are open; old logs have steps in place of spans."""
        self._tools: dict[str, str] = {}
        """The tool each span runs, until its event comes; then `_ran` has its call."""
        self._ran: dict[str, ToolCall] = {}
        self._seen: set[tuple[object, ...]] = set()
        self._requests: dict[str, tuple[list[Raw], dict[_Identity, int]]] = {}
        """Last messages sent to the model on each thread, and how often each message without an id occurs in them."""
        self._prompted = False
        self._models = 0
        self.work: Counter[str] = Counter()
        """Calls of each model on the main thread, outside of scoring."""
        self.graded: list[Usage] = []

    def read(self) -> None:
        """Read all events, then the messages that no event had."""
        self._events(self._sample.events, Place(), 0)
        for message in self._new_messages(self._sample.messages, MAIN):
            self._add_message(message, None, MAIN)

    def _events(self, raws: list[Raw], outer: Place, depth: int) -> None:
        """Record a sample's events in order, those inside of tool calls too."""
        events = each(raws, decoder(Event).decode, self._artifact)
        for number, (raw, event) in enumerate(zip(raws, events, strict=True), 1):
            self._artifact.records += 1
            if event is None:
                skip(self._artifact, "bad_shape")
                continue
            saw(self._artifact, f"event.{event.event}")
            if depth == 0:
                self._builder.line = number
            place = self._places.get(event.span_id or "", outer)
            if self._scorers:
                place = place._replace(scoring=True)
            kind, at = event.event, logged_iso(event.timestamp)
            if kind == "span_begin":
                self._begin(event, place)
            elif kind == "step":
                begins = 1 if event.action == "begin" else -1
                self._scorers = max(self._scorers + (event.type == "scorer") * begins, 0)
            elif kind == "model":
                if not place.scoring:
                    self._model(event, at, place.thread)
                else:
                    self.graded += self._usage(event)
            elif kind == "tool":
                if not place.scoring:
                    self._tool(event, at, place.thread)
                if event.events and depth < _DEEPEST:
                    self._events(event.events, place._replace(thread=event.id or MAIN), depth + 1)
            elif kind == "sandbox":
                self._sandbox(event, at)
            elif kind in _EVENT_KINDS:
                content = next(
                    (raw for raw in (event.message, event.data, event.error, event.input) if raw), Raw(b'""')
                )
                value = decoded(content, Any)
                text = self._attached.text(value) if isinstance(value, str) else self._attached.json(bytes(content))
                self._builder.event(_EVENT_KINDS[kind], text, at, thread=place.thread)
            elif kind not in _QUIET:
                self._builder.event("unknown", bytes(raw).decode("utf-8", "replace"), thread=place.thread)

    def _begin(self, event: Event, outer: Place) -> None:
        """Note the place of a span: whether a scorer runs it, its thread, and whether it is inside of a tool."""
        if not event.id:
            return
        parent = self._places.get(event.parent_id or "", outer)
        is_tool = event.type in ("tool", "handoff", "subtask")
        is_agent = event.type == "agent" and parent.in_tool
        self._places[event.id] = Place(
            parent.scoring or event.type in ("scorer", "scorers"),
            event.id if is_agent else parent.thread,
            is_tool or (parent.in_tool and not is_agent),
        )
        if is_tool:
            self._tools[event.id] = event.name or ""

    def _model(self, event: Event, at: int | None, thread: str) -> None:
        """Record a model event: the messages that are new in its input, then its answer, tokens and cost."""
        self._models += 1
        spans = decoded(event.input_refs, Any)
        sent = records.spanned(spans, self._sample.pool) if isinstance(spans, list) else None
        for message in self._new_messages(decoded(event.input, list[Raw]) or [] if sent is None else sent, thread):
            self._add_message(message, at, thread)
        failure = records.failure_of(event.error)
        if failure is not None:
            self._builder.event("api_error", failure.message, at, thread=thread)
        output: records.Output | None = records.Output()
        if event.output:
            (output,) = each([event.output], decoder(records.Output).decode, self._artifact)
        if output is None:
            self._builder.event("unknown", bytes(event.output).decode("utf-8", "replace"), at, thread=thread)
            return
        choice = output.choices[0] if output.choices else None
        answer, stop = (choice.message, choice.stop_reason) if choice is not None else (None, None)
        if answer is None or (failure is not None and not answer.content):
            if not any(usage.total_tokens for usage in self._usage(event)):
                return
            answer, stop = Message(role="assistant"), "error"  # it was paid for, and nothing of it could be used
        done = event.completed if isinstance(event.completed, str) else None
        model = string(inside(output.fallback, "fallback_model")) or event.model
        step = self._builder.step(None, model, logged_iso(done) or at, thread)
        step.message_id, step.stop_reason = answer.id, stop
        if event.model is not None and thread == MAIN:
            self.work[event.model] += 1
        usage = output.usage
        if event.cache == "read":  # an answer from Inspect's own cache used nothing
            step.input_tokens = step.output_tokens = step.cache_read_tokens = step.cache_write_tokens = 0
        elif usage is not None:
            step.input_tokens, step.output_tokens = usage.uncached, usage.output
            step.cache_read_tokens, step.cache_write_tokens = (
                usage.input_tokens_cache_read, usage.input_tokens_cache_write
            )  # fmt: skip
            step.reasoning_tokens = usage.reasoning_tokens
            if usage.total_cost is not None:
                step.cost_usd, step.cost_source = usage.total_cost, "recorded"
        self._mark_seen(answer, dict(self._requests[thread][1]))
        self._add_message(answer, step.timestamp, thread, step)

    def usages(self, raws: list[Raw]) -> list[Usage]:
        """Return what the model calls among these events used."""
        events = each(raws, decoder(Event).decode, self._artifact)
        return [
            usage for event in events if event is not None and event.event == "model" for usage in self._usage(event)
        ]

    def _usage(self, event: Event) -> list[Usage]:
        """Return what a call used that is no step. An answer from Inspect's own cache used nothing."""
        if event.cache == "read" or not event.output:
            return []
        (output,) = each([event.output], decoder(records.Output).decode, self._artifact)
        return [output.usage] if output is not None and output.usage is not None else []

    def _new_messages(self, raws: list[Raw], thread: str) -> list[Message]:
        """Return those of the messages sent on a thread that are new."""
        before, occurrences = self._requests.get(thread, ([], {}))
        n_before = len(before) if raws[: len(before)] == before else 0
        occurrences = dict(occurrences) if n_before else {}
        new: list[Message] = []
        for raw in raws[n_before:]:
            (message,) = each([raw], decoder(Message).decode, self._artifact)
            if message is None:
                self._builder.event("unknown", bytes(raw).decode("utf-8", "replace"), thread=thread)
            elif self._mark_seen(message, occurrences):
                new.append(message)
        self._requests[thread] = (raws, occurrences)
        return new

    def _mark_seen(self, message: Message, occurrences: dict[_Identity, int]) -> bool:
        """Return whether a message was not seen before, and remember it. A message without an id is identified by role,
        text, tool call and how often it has occurred in this request."""
        key: tuple[object, ...] = (message.id,)
        if message.id is None:
            same = (message.role, self._text(message.content), message.tool_call_id)
            occurrences[same] = occurrences.get(same, 0) + 1
            key = (*same, occurrences[same])
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _add_message(self, message: Message, at: int | None, thread: str, step: Step | None = None) -> None:
        """Record a message by its role. The first task and an operator's words are prompts, others are not."""
        builder, text = self._builder, self._text(message.content)
        parts = message.content if isinstance(message.content, list) else []
        if message.role == "assistant":
            if step is None and not self._models:
                step = builder.step(message.id, None, at, thread)
            for part in parts:
                if part.type == "reasoning":
                    reasoning = None if part.redacted else part.reasoning
                    builder.event("thinking", reasoning or part.summary or "", at, step, thread)
            if text:
                builder.event("text", text, at, step, thread)
            for call in message.tool_calls or ():
                self._call(call, at, step, thread)
        elif message.role == "tool":  # the result as the model saw it, when no event told of it
            call_id = message.tool_call_id or ""
            if not builder.answered(call_id):
                self._finish(call_id, text, message.error, at, False)
        elif (
            message.role == "user"
            and thread == MAIN
            and (message.source in ("input", "operator") or not self._prompted)
        ):
            # The task is the prompt; so is what an operator types. The rest the scaffold says in the person's name.
            self._prompted = True
            builder.turn("prompt", text, at)
        else:
            builder.event("meta", text, at, thread=thread)
        builder.unread((part.type or "" for part in parts), _PARTS, at, thread)

    def _call(self, call: Call, at: int | None, step: Step | None, thread: str) -> ToolCall:
        arguments = self._attached.json(bytes(call.arguments)) if call.arguments else "{}"
        name = call.function or ""
        return self._builder.call(call.id or "", name, arguments, tool(name), at, step, thread)

    def _text(self, content: str | list[Part] | None) -> str:
        if isinstance(content, str):
            return self._attached.text(content)
        return "\n".join(self._attached.text(p.text) for p in content or () if p.type == "text" and p.text)

    def _tool(self, event: Event, at: int | None, thread: str) -> None:
        """Record a tool's result; a call that the model did not make is recorded with it."""
        call_id, name = event.id or "", event.function or ""
        if self._builder.answered(call_id):  # a call that the model did not make: a solver's own
            self._call(Call(call_id, name, event.arguments), at, None, thread)
        done = logged_iso(event.completed) if isinstance(event.completed, str) else at
        # As the model saw it: the texts of a list of parts, anything else as it is written.
        text = self._attached.json(bytes(event.result))
        try:
            value = msgspec.json.decode(text) if text else ""
        except UNREADABLE:
            value = {}
        if isinstance(value, str) or value is None:
            text = value or ""
        elif isinstance(value, list):
            text = "\n".join(v["text"] for v in value if isinstance(v, dict) and isinstance(v.get("text"), str))
        call = self._finish(call_id, text, records.failure_of(event.error), done, bool(event.failed))
        span = next((span for span, running in self._tools.items() if running == name), None)
        if span is not None:
            del self._tools[span]
            if call is not None:
                self._ran[span] = call

    def _finish(
        self, call_id: str, text: str, failure: Failure | None, at: int | None, failed: bool
    ) -> ToolCall | None:
        status: CallStatus = "error" if failed else "ok"
        error = None
        if failure is not None:
            status, error = _STATUS.get(failure.type, "error"), _ERRORS.get(failure.type or "")
            text = "\n".join(t for t in (text, failure.message) if t)
        call = self._builder.result(call_id, text, status, at, error=error)
        if call is not None and call.class_ == "edit" and status == "ok":
            record_arguments(self._builder, call)
        return call

    def _sandbox(self, event: Event, at: int | None) -> None:
        """Note the exit code of a command that a tool ran in its sandbox. Most tools do not report it."""
        call = self._ran.get(event.span_id or "")
        code: object = decoded(event.result, Any)
        if call is None or call.class_ not in ("shell", "test", "read", "search") or type(code) is not int:
            return
        output = decoded(event.output, Any)
        self._builder.exited(call, code, output if isinstance(output, str) else "", call.ended_at or at)


_Samples = list[tuple[str, Callable[[], Sample | None]]]
"""Samples by name. Each is decoded when it is read, since together they may be larger than memory."""


def read(inputs: list[Input]) -> Reading:
    """Read the samples of all logs of one task run. One in several logs, copied or kept by a retry, counts once."""
    reading = Reading()
    for piece in pieces(inputs):
        reading.sessions += piece.sessions
        reading.attempts += piece.attempts
    return reading


def pieces(inputs: list[Input]) -> Iterator[Reading]:
    """Read the samples in their order."""
    session_ids: set[tuple[object, ...]] = set()
    for source in sorted(inputs, key=lambda i: (-len(i.data), i.artifact.artifact_id)):
        if source.data[:4] == MAGIC:
            header, samples = _archive(source)
        else:
            whole = read_document(source, decoder(Document).decode, "samples") or Document(Spec())
            raws = enumerate(whole.samples or (), 1)
            header, decode = whole, decoder(Sample).decode
            samples = [(f"sample {n}", partial(document, bytes(raw), source.artifact, decode)) for n, raw in raws]
        for place, sample_of in samples:
            sample, artifact_id = sample_of(), source.artifact.artifact_id
            if sample is None:
                continue
            saw(source.artifact, "member.sample")
            run = header.eval.task_id or header.eval.run_id or artifact_id
            session_id = sample.uuid or f"{run}/{sample.id}_epoch_{sample.epoch}"
            # An id alone may be of two people's runs.
            same = (session_id, sample.started_at, *map(bytes, sample.messages[:1]))
            if same in session_ids:
                saw(source.artifact, "repeated", 1)
                continue
            session_ids.add(same)
            session = Session(
                session_id=session_id, context="eval", format="inspect", agent=header.agent or "inspect",
                artifact_id=artifact_id, title=f"{header.eval.task} {sample.id}",
            )  # fmt: skip
            builder = SessionBuilder(session, ANYBODY)
            reader = Reader(builder, sample, source.artifact)
            reader.read()
            builder.finish()
            session.model = _served(header.eval, reader.work) or session.model
            session.started_at = logged_iso(sample.started_at) or session.started_at
            session.ended_at = logged_iso(sample.completed_at) or session.ended_at
            yield Reading([session], attempts=[_attempt(header, sample, session, reader, place)])
        status = f"status {header.status}" if header.status else "no header, the run did not end"
        source.artifact.note = f"{status}, {len(samples)} samples"


def _archive(source: Input) -> tuple[Header, _Samples]:
    """Read the header of an archive. Every member is counted."""
    artifact = source.artifact
    entries, whole = members(source.data)
    contents = Contents(source.data)
    if not whole and all(m.start + m.size <= len(source.data) for m in entries):  # else the cut member tells
        records.lost(artifact, "cut_archive")
    header = Header(Spec())
    chunked = records.by_sample(entries)
    in_chunks = {member.name for of_one in chunked.values() for member in of_one}
    samples: _Samples = [(place, partial(records.sample_of, contents, of, artifact)) for place, of in chunked.items()]
    for member in sorted(entries, key=lambda m: (m.name not in SPECIFICATIONS, m.name == SPECIFICATIONS[-1], m.start)):
        if SAMPLE.match(member.name):
            samples.append((member.name, partial(_sample, contents, member, artifact)))
            continue
        if member.name in in_chunks and member.name.endswith("/sample.json"):
            continue  # counted as the sample
        artifact.records += 1
        if member.name in in_chunks:
            saw(artifact, "member.chunk")
        elif member.name in SPECIFICATIONS:  # that at the archive's end says more than that at its beginning
            try:
                header = decoder(Header).decode(contents.of(member))
            except MemberError as problem:
                skip(artifact, str(problem))
            except UNREADABLE:
                skip(artifact, "bad_shape")
            else:
                saw(artifact, "member.header" if member.name == SPECIFICATIONS[-1] else "member.start")
        elif member.name in ("summaries.json", "reductions.json", "results.json"):
            saw(artifact, f"member.{member.name.removesuffix('.json')}")
        else:
            saw(artifact, "member.journal" if member.name.startswith("_journal/") else "member.other")
    return header, samples


def _sample(contents: Contents, member: Member, artifact: Artifact) -> Sample | None:
    try:
        data = contents.of(member)
    except MemberError as problem:
        records.lost(artifact, str(problem))
        return None
    return document(data, artifact, decoder(Sample).decode)
