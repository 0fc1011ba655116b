"""Read ATIF runs. Compactions continue a run, and subagents are threads of it."""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.formats import Input, Reading, any_agent
from agentsignals.formats.any_agent import ANYBODY
from agentsignals.formats.atif import PROFILE
from agentsignals.formats.bounds import amount, count
from agentsignals.formats.builder import RESULT_CHARS_KEPT, charge, record_arguments, tokens_of
from agentsignals.formats.conversation import Conversation
from agentsignals.formats.documents import Messages, messages_of, tally
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.records import as_list, as_text, decoded, decoder, inside, repaired, string
from agentsignals.formats.text_calls import answer_of
from agentsignals.model import (
    MAIN,
    Attempt,
    CallStatus,
    EventKind,
    Session,
    Statement,
    ToolCall,
    logged_iso,
    round_trip,
)
from agentsignals.model import Step as Row
from agentsignals.model.round_trip import OfCall, OfEvent, OfSession, OfStep, OfTurn

# The records of ATIF. Leaves are decoded as anything, so that one odd value does not cost its step.


class Trajectory(Struct, gc=False, kw_only=True):
    schema_version: str
    session_id: object = None
    trajectory_id: object = None
    agent: object = None
    steps: list[Raw] = field(default_factory=list)
    final_metrics: object = None
    continued_trajectory_ref: object = None
    subagent_trajectories: list[Raw] | None = None
    extra: Raw = Raw()


class Call(Struct, gc=False):
    tool_call_id: object = None
    function_name: object = None
    arguments: Raw = Raw()
    extra: Raw = Raw()


class StepExtra(Struct, gc=False):
    context_management: object = None
    agentsignals: Raw = Raw()


class Step(Struct, gc=False, kw_only=True):
    source: object = None
    timestamp: object = None
    message: object = None
    model_name: object = None
    reasoning_effort: object = None
    reasoning_content: object = None
    tool_calls: list[Call] | None = None
    observation: object = None
    metrics: object = None
    """Usage. `prompt_tokens` includes the cached ones (design/formats.md#token-usage)."""
    is_copied_context: object = None
    llm_call_count: object = None
    extra: StepExtra | None = None

    @property
    def results(self) -> list[dict[str, Any]]:
        return [result for result in as_list(inside(self.observation, "results")) if isinstance(result, dict)]

    @property
    def refs(self) -> list[object]:
        """References to the other trajectories that its results came from, embedded or in files."""
        references: list[object] = []
        for result in self.results:
            ref = result.get("subagent_trajectory_ref")
            references += ref if isinstance(ref, list) else [ref] if ref is not None else []
        return references


def carried_in(extra: Raw) -> Raw:
    """Return the facts that our own export adds where the format leaves room for producers (`model.round_trip`)."""
    return (decoded(extra, dict[str, Raw]) or {}).get("agentsignals", Raw())


def content(value: object) -> str:
    """Return a message or result as text. Since 1.6 it may be a list of parts; an image becomes a mark."""
    if not isinstance(value, list):
        return as_text(value)
    texts = []
    for part in value:
        text = part.get("text") if isinstance(part, dict) else as_text(part)
        texts.append(text if isinstance(text, str) else f"[{as_text(part.get('type'))[:40] or 'part'}]")
    return "\n".join(texts)


def has_words(value: object) -> bool:
    """Return whether a message holds words, and not images alone."""
    if not isinstance(value, list):
        return bool(as_text(value).strip())
    texts = [part.get("text") if isinstance(part, dict) else part for part in value]
    return any(isinstance(text, str) and text.strip() for text in texts)


_NOT_PARSED = "Previous response had parsing errors"


# Agents without function calling write calls into their messages, as XML (OpenHands) or JSON (Terminus).

KEYSTROKES = "keystrokes"
"""Name for the keystrokes of Terminus, which has none for them."""


class _Batch(Struct, gc=False):
    """An answer of Terminus."""

    commands: list[Raw]
    analysis: str | None = None
    plan: str | None = None
    explanation: str | None = None


def read_actions(message: str) -> tuple[str, list[tuple[str, str]]]:
    """Split a message into text and calls, each a name and its arguments as JSON."""
    if "<function=" in message:
        answer = answer_of(message)
        return "\n".join((*answer.thoughts, *answer.texts)), [(call.name, call.arguments) for call in answer.calls]
    if '"commands"' in message:
        # Text before or behind the JSON is tolerated by Terminus, and here.
        start, end = message.find("{"), message.rfind("}")
        batch = decoded(message[start : end + 1], _Batch)
        if batch is None:
            return message, []
        commands = [raw for raw in batch.commands if isinstance(inside(decoded(raw, Any), "keystrokes"), str)]
        calls = [(KEYSTROKES, bytes(raw).decode("utf-8", "replace")) for raw in commands]
        thoughts = [t for t in (batch.analysis, batch.plan, batch.explanation) if t]
        return "\n\n".join(thoughts), calls
    return message, []


TYPED = (KEYSTROKES, "bash_command")
"""Tools that type into a terminal and then show it. They report no exit code and no end."""
_FINISHED = re.compile(r"\[(?:The command completed|Command finished) with exit code (-?\d{1,9})")
_END = 600
"""Length of the end in which OpenHands prints the exit code, below the output."""


def printed_exit(text: str) -> int | None:
    """Return the exit code that the output of a command ends with. None if it states none."""
    printed = _FINISHED.search(text, max(len(text) - _END, 0))
    return int(printed[1]) if printed else exit_code(text)


_FAILED = ("ERROR:", "Error:", "error:", "Error executing tool")


_TERMINUS = "terminus"
_COUNTED = ("prompt_tokens", "completion_tokens", "cached_tokens")
_COUNTED_EXTRA = (
    "cache_creation_input_tokens", "cache_write_tokens", "reasoning_tokens", "reasoning_output_tokens",
    "thoughts_tokens",
)  # fmt: skip
_TOTALS = ("total_prompt_tokens", "total_completion_tokens", "total_cached_tokens", "total_cost_usd")
_DEEPEST = 30
"""Depth of subagents up to which they are read where they were called. Deeper ones are read at the end."""


class _Request(Struct, gc=False):
    call_id: str | None
    name: str
    arguments: str
    extra: Raw = Raw()


class _File(Struct):
    source: Input
    trajectory: Trajectory
    steps: Messages[Step]

    @property
    def path(self) -> str:
        return self.source.artifact.path

    @property
    def folder(self) -> str:
        return posixpath.dirname(self.path)

    def next_to(self, ref: object, files: dict[str, _File]) -> _File | None:
        """Return the file that this one names, in its own folder.

        Runs that were put into one folder got a common prefix, so a renamed file with the same prefix fits too.
        """
        name = posixpath.basename(string(ref) or "")
        if not name:
            return None
        exact = files.get(posixpath.join(self.folder, name))
        if exact is not None:
            return exact
        own_name = posixpath.basename(self.path)
        renamed = (f for path, f in files.items() if path.endswith(name) and f.folder == self.folder)
        return next((f for f in renamed if own_name.startswith(posixpath.basename(f.path)[: -len(name)])), None)

    def subagent(self, ref: object, files: dict[str, _File]) -> _File | None:
        """Return the file of a subagent: by its path, or before 1.7 by a session id that names one other file of the
        folder. None for one that is embedded or not there."""
        if path := string(inside(ref, "trajectory_path")):
            return self.next_to(path, files)
        wanted = string(inside(ref, "session_id"))
        if wanted is None or string(inside(ref, "trajectory_id")) or wanted == self.trajectory.session_id:
            return None
        named = [f for f in files.values() if f.folder == self.folder and f.trajectory.session_id == wanted]
        return named[0] if len(named) == 1 else None


def _file(source: Input, trajectory: Trajectory, group: str) -> _File:
    decode = decoder(Step).decode
    steps = messages_of(source.data, trajectory.steps, lambda raw, _: decode(raw), source.artifact)
    tally(source.artifact, group, map(_kind, steps))
    return _File(source, trajectory, steps)


def _kind(step: Step | None) -> str | None:
    if step is None or step.is_copied_context is True:
        return "copied" if step is not None else None
    return str(step.source) if step.source in ("user", "agent", "system") else "unknown"


def read(inputs: list[Input]) -> Reading:
    """Read every run as a session with its attempt."""
    reading, files = Reading(), dict[str, _File]()
    for source in inputs:
        trajectory = read_document(source, decoder(Trajectory).decode, "steps")
        if trajectory is not None:
            files[source.artifact.path] = _file(source, trajectory, "step")
    in_order = [file for _, file in sorted(files.items())]
    parts_of_others: set[str] = set()
    for file in in_order:
        named = [file.next_to(file.trajectory.continued_trajectory_ref, files)]
        named += [file.subagent(ref, files) for step in file.steps if step is not None for ref in step.refs]
        parts_of_others |= {other.path for other in named if other is not None and other is not file}
    heads = [file for file in in_order if file.path not in parts_of_others]
    ids = Counter(string(file.trajectory.session_id) for file in heads)
    done: set[str] = set()
    for head in heads + in_order:  # those that only name each other come last
        if head.path in done:
            continue
        own_id = string(head.trajectory.session_id)
        run = RunReader(head, files, own_id if own_id is not None and ids[own_id] < 2 else "", done)
        session = run.read()
        reading.sessions.append(session)
        if session.context == "eval":
            reading.attempts.append(run.part())
    return reading


class RunReader(Conversation):
    """Reads a run of an agent: its first file, those that continue it, and the trajectories of subagents."""

    profile = ANYBODY

    def __init__(self, head: _File, files: dict[str, _File], session_id: str, done: set[str]) -> None:
        """`done`: paths of the files that were read as part of a run. It grows."""
        agent, artifact = head.trajectory.agent, head.source.artifact
        name, version = string(inside(agent, "name")) or "", string(inside(agent, "version"))
        super().__init__(
            Session(session_id=session_id, context="eval", format="atif", agent=name, artifact_id=artifact.artifact_id)
        )
        self.session.agent_version = None if version == "unknown" else version
        self.session.repo = head.source.repo_hint
        self.model = self.own_model = string(inside(agent, "model_name"))
        self.carried = carried_in(head.trajectory.extra)
        self.facts = round_trip.read_carried(self.carried, OfSession)
        """Facts of our own export, if that wrote the run."""
        if self.facts is not None:
            self.builder.where(self.facts.cwd, self.facts.branch)
        self.files, self.done = files, done
        self.chain: list[_File] = []
        file: _File | None = head
        while file is not None and file.path not in done:
            done.add(file.path)
            self.chain.append(file)
            file = file.next_to(file.trajectory.continued_trajectory_ref, files)
        self.embedded: dict[str, _File] = {}
        self.names: Counter[str] = Counter()
        self.depth = 0
        self.goes_on = False
        """The steps continue a run, so what the harness says in the user's name is no prompt."""
        self.compacted = False
        """True if the last step was a compaction of Terminus, which hands on its summary in the user's name."""
        self.subagents: list[object] = []
        """References to the other trajectories that results came from."""
        self.ids: defaultdict[str, dict[str, str]] = defaultdict(dict)
        """The ids of calls by those that are logged, for each thread."""
        self.asked: dict[str, int] = {}
        """What was asked for in each call, as a digest: a long run has a hundred thousand."""
        self.calls: dict[str, ToolCall] = {}
        self.call_facts: dict[str, OfCall] = {}

    def read(self) -> Session:
        for file in self.chain:
            self.embed(file)
        for n, file in enumerate(self.chain):
            self.goes_on = n > 0
            self.steps(file)
            self.threads(file)
        while self.embedded:
            name = next(iter(self.embedded))
            self.subagent(self.embedded.pop(name), name)
        session = self.builder.finish()
        round_trip.restore_places(session, self.carried)
        round_trip.restore(session, self.facts)
        return session

    def embed(self, file: _File) -> None:
        """Note the trajectories embedded in a file, by name. Nameless ones are numbered."""
        for raw in file.trajectory.subagent_trajectories or ():
            decode = decoder(Trajectory).decode
            trajectory = decoded(raw, Trajectory) or repaired(bytes(raw), file.source.artifact, decode)
            if trajectory is None:
                tally(file.source.artifact, "subagent_step", [None])
                continue
            name = string(trajectory.trajectory_id) or string(trajectory.session_id) or "subagent"
            self.names[name] += 1
            name = name if self.names[name] == 1 else f"{name}#{self.names[name]}"
            self.embedded[name] = _file(file.source, trajectory, "subagent_step")

    def steps(self, file: _File) -> None:
        self.builder.artifact_id = file.source.artifact.artifact_id
        for self.builder.line, step in enumerate(file.steps, 1):
            if step is not None:
                self.step(step)

    def threads(self, file: _File) -> None:
        """Read the threads that results of this file came from."""
        asked, self.subagents = self.subagents, []
        for ref in asked if self.depth < _DEEPEST else ():
            name = string(inside(ref, "trajectory_id"))
            if name is not None and name in self.embedded:
                self.subagent(self.embedded.pop(name), name)
                continue
            other = file.subagent(ref, self.files)
            if other is not None and other.path not in self.done:
                self.done.add(other.path)
                stem = posixpath.splitext(posixpath.basename(other.path))[0]
                self.subagent(other, string(other.trajectory.trajectory_id) or stem)

    def subagent(self, file: _File, name: str) -> None:
        before, self.model = self.model, string(inside(file.trajectory.agent, "model_name")) or self.model
        with self.aside(name):
            self.embed(file)
            self.steps(file)
            self.model = before
            self.depth += 1
            self.threads(file)
            self.depth -= 1

    def step(self, step: Step) -> None:
        at, text = logged_iso(string(step.timestamp)), content(step.message)
        facts = round_trip.read_carried(step.extra.agentsignals, OfEvent) if step.extra is not None else None
        handed_on, self.compacted = self.compacted, False
        if facts is not None and step.source == "system":
            self.event(facts.kind, None if facts.wordless else text, at)
        elif step.is_copied_context is True:
            self.shortened("meta", text, at)  # told in full where it happened
        elif step.source == "agent":
            self.answer(step, text, at)
        elif step.source == "user" and (handed_on or self.thread != MAIN or self.goes_on):
            self.shortened("meta", text, at)
        elif step.source == "user":
            turn = self.builder.turn("prompt" if has_words(step.message) else "attachment", text, at)
            if turn is not None and step.extra is not None:
                round_trip.restore(turn, round_trip.read_carried(step.extra.agentsignals, OfTurn))
        else:
            managed = step.extra.context_management if step.extra is not None else None
            if inside(managed, "type") == "compaction":
                trigger = string(inside(managed, "trigger"))
                self.event("compaction", msgspec.json.encode({"trigger": trigger} if trigger else {}).decode(), at)
                self.compacted = self.session.agent.startswith(_TERMINUS)
            for said in (text, *(content(result.get("content")) for result in step.results)):
                if said:
                    self.shortened("meta", said, at)
        self.subagents += step.refs

    def shortened(self, kind: EventKind, text: str, at: int | None, row: Row | None = None) -> None:
        self.builder.event(kind, text[:RESULT_CHARS_KEPT], at, row, self.thread, len(text))

    def answer(self, step: Step, text: str, at: int | None) -> None:
        requests = [
            _Request(string(call.tool_call_id), string(call.function_name) or "", _json(call), call.extra)
            for call in step.tool_calls or ()
        ]
        unread = ""
        if not requests and len(step.results) == 1:
            # Terminus' answer to a message that it could not parse.
            said = content(step.results[0].get("content"))
            unread = said if said.startswith(_NOT_PARSED) else ""
        if not requests and text and self.facts is None and not unread:
            text, written = read_actions(text)
            requests = [_Request(None, name, arguments) for name, arguments in written]
        fresh = [request for request in requests if not self.is_repeated(request)]
        is_call_of_model = step.llm_call_count != 0 and (not requests or fresh or step.metrics is not None)
        if self.facts is not None:
            is_call_of_model = step.extra is not None and bool(step.extra.agentsignals)
        row = self.model_call(step, at) if is_call_of_model else None
        if thought := content(step.reasoning_content):
            self.event("thinking", thought, at, row)
        if text:
            self.event("text", text, at, row)
        calls = [self.request(request, at, row) for request in fresh]
        if unread:  # what it asked for was not carried out
            self.shortened("harness", unread, at, row)
        else:
            self.results(step, calls, at)
        for call in calls:
            round_trip.restore(call, self.call_facts.get(call.call_id))

    def model_call(self, step: Step, at: int | None) -> Row:
        named = string(step.model_name)
        full = self.model is not None and named is not None and self.model.endswith(f"/{named}")
        row = self.builder.step(None, self.model if full else named or self.model, at, self.thread)
        if step.metrics is not None:
            usage = {name: inside(step.metrics, name) for name in _COUNTED}
            usage |= {name: inside(step.metrics, "extra", name) for name in _COUNTED_EXTRA}
            tokens = tokens_of(usage, "apart")
            if tokens.input is not None:
                # Cached tokens, and those written to the cache where it says so, are part of the prompt's.
                rest, written = tokens.input - (tokens.cache_read or 0), tokens.cache_write or 0
                tokens = tokens._replace(input=max(rest - written if rest >= written else rest, 0))
            charge(row, tokens)
            row.cost_usd = amount(inside(step.metrics, "cost_usd"))
            row.cost_source = "recorded" if row.cost_usd is not None else None
        if step.extra is not None:
            round_trip.restore(row, round_trip.read_carried(step.extra.agentsignals, OfStep))
        return row

    def is_repeated(self, request: _Request) -> bool:
        """Return whether a call was recorded before. Some harnesses repeat it in the step that holds its result."""
        earlier_id = self.ids[self.thread].get(request.call_id or "")
        if earlier_id is None or self.asked.get(earlier_id) != hash((request.name, request.arguments)):
            return False
        return not self.builder.answered(earlier_id)

    def request(self, request: _Request, at: int | None, row: Row | None) -> ToolCall:
        logged, name, arguments = request.call_id, request.name, request.arguments
        n = len(self.session.tool_calls)
        call_id = logged if logged is not None and logged not in self.asked else f"{logged or 'call'}#{n}"
        if logged is not None:
            self.ids[self.thread][logged] = call_id
        self.asked[call_id] = hash((name, arguments))
        if (facts := round_trip.read_carried(carried_in(request.extra), OfCall)) is not None:
            self.call_facts[call_id] = facts
        tool = PROFILE.tool(name) or any_agent.tool(name)
        call = self.calls[call_id] = self.builder.call(call_id, name, arguments, tool, at, row, self.thread)
        return call

    def results(self, step: Step, calls: list[ToolCall], at: int | None) -> None:
        unnamed = [result for result in step.results if string(result.get("source_call_id")) is None]
        waiting = list(calls)
        for result in step.results:
            text, logged = content(result.get("content")), string(result.get("source_call_id"))
            if logged is not None:
                call_id = self.ids[self.thread].get(logged, logged)
                call = self.calls.get(call_id)
                call = call if call is not None and call.result_seq is None else None
                self.result_of(call, call_id, text, result, at)
                waiting = [c for c in waiting if c is not call]
                continue
            if len(unnamed) == 1:
                # One look at the terminal answers all that was typed before it; that the task is done, nobody types.
                waiting.sort(key=lambda call: call.name in TYPED)
                for earlier in waiting[:-1]:
                    self.result_of(earlier, earlier.call_id, "", result, at)
                waiting = waiting[-1:]
            call = waiting.pop(0) if waiting else None
            self.result_of(call, call.call_id if call else "", text, result, at)

    def result_of(self, call: ToolCall | None, call_id: str, text: str, result: dict[str, Any], at: int | None) -> None:
        if call is None:
            if text:
                self.builder.result(call_id, text, "ok", at, self.thread)
            elif not call_id and result.get("content") is None and result.get("subagent_trajectory_ref") is None:
                self.event("unknown", "result of nothing", at)
            return
        status: CallStatus = "unknown" if call.name in TYPED else "ok"
        code = None
        if call.command is not None and call.name not in TYPED:
            code = printed_exit(text)
        extra = result.get("extra")
        failed = inside(extra, "is_error") is True or inside(extra, "tool_result_is_error") is True
        if failed or (code is None and call.name not in TYPED and text.lstrip()[:40].startswith(_FAILED)):
            status = "error"
        facts, error = self.call_facts.get(call.call_id), None
        if facts is not None:  # read off the agent's own log, which says more than the text
            status, code, error, at = facts.status, facts.exit_code, facts.error_class, facts.ended_at
        self.builder.result(call_id, text, status, at, self.thread, code, error)
        if status == "ok" and call.class_ == "edit":
            record_arguments(self.builder, call)

    def part(self) -> Attempt:
        """Return the attempt as the run's files describe it. Totals count on through continuations, so the last file's
        are the run's."""
        head, session = self.chain[0], self.session
        efforts = {e for f in self.chain for s in f.steps if s is not None and (e := string(s.reasoning_effort))}
        settings = {"agent_type": session.agent or None, "model_id": self.own_model}
        settings["reasoning_effort"] = efforts.pop() if len(efforts) == 1 else None
        observed = {name: value for name, value in settings.items() if value is not None}
        summary = ", ".join(f"{name} {value}" for name, value in observed.items())
        artifact_id = head.source.artifact.artifact_id
        part = Attempt(
            root=head.folder if self.facts is None else head.path,
            session_artifact=artifact_id,
            session_id=session.session_id or None,
            observed=observed,
        )
        fields = [f"knobs.{name}" for name in observed]
        last = next((f.trajectory.final_metrics for f in reversed(self.chain) if f.trajectory.final_metrics), None)
        if last is not None:
            totals = {name: inside(last, name) for name in _TOTALS}
            part.input_tokens, part.output_tokens, part.cache_read_tokens = map(count, [*totals.values()][:3])
            part.cost_usd = amount(totals["total_cost_usd"])
            fields += ["input_tokens", "output_tokens", "cache_read_tokens", "cost_usd"]
            summary += f", totals {msgspec.json.encode(totals).decode()}"
        statement = f"{head.trajectory.schema_version}: {summary}"
        part.statements = [Statement(text=statement, artifact_id=artifact_id, line=1, fields=fields)]
        return part


def _json(call: Call) -> str:
    try:
        return msgspec.json.format(bytes(call.arguments or Raw(b"{}")), indent=-1).decode("utf-8", "replace")
    except msgspec.DecodeError:
        return bytes(call.arguments).decode("utf-8", "replace")
