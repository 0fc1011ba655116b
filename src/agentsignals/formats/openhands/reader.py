"""Read OpenHands conversations. The structs hold only the fields that are read."""

import posixpath
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.changes.hunks import between, created
from agentsignals.changes.patches import patched_files
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import amount, count, whole
from agentsignals.formats.builder import charge, tokens_of
from agentsignals.formats.conversation import ROOT, Conversation, path_to_root, returns
from agentsignals.formats.documents import Part, each, saw_again, tally, texts_of
from agentsignals.formats.instances import canonical
from agentsignals.formats.openhands import EVENT_FILE, PROFILE, conversation_of, folder_of, is_output, parent_folder
from agentsignals.formats.records import HEAD_BYTES, as_text, decoded, decoder, document, inside, lines, saw, string
from agentsignals.model import (
    ABANDONED,
    MAIN,
    SESSION_TOTAL,
    Attempt,
    CallStatus,
    EventKind,
    Session,
    Step,
    ToolCall,
    logged_iso,
    logged_ms,
)


class Message(Struct, gc=False):
    content: list[Part] | str = field(default_factory=list)
    reasoning_content: str | None = None


class Metadata(Struct, gc=False):
    suffix: str = ""
    working_dir: str | None = None


class Observation(Struct, gc=False, kw_only=True):
    """The result of a tool. The last four fields hold an edit, with the whole file before and after."""

    content: list[Part] | str = field(default_factory=list)
    is_error: object = None
    exit_code: object = None
    timeout: object = None
    metadata: Metadata | None = None
    path: str | None = None
    old_content: str | None = None
    new_content: str | None = None


class Asked(Struct, gc=False):
    arguments: object = None


class Event(Struct, gc=False, kw_only=True):
    id: str = ""
    kind: str = ""
    timestamp: str | None = None
    source: str = ""
    parent_id: str | None = None
    llm_message: Message | None = None
    llm_response_id: str | None = None
    sender: str | None = None
    extended_content: list[Part] = field(default_factory=list)
    thought: list[Part] = field(default_factory=list)
    reasoning_content: str | None = None
    tool_name: str = ""
    tool_call_id: str = ""
    tool_call: Asked | None = None
    observation: Observation | None = None
    error: object = None
    rejection_reason: str = ""
    rejection_source: str = ""
    code: str = ""
    detail: str = ""
    reason: str | None = None
    blocked: object = None
    summary: str | None = None
    forgotten_event_ids: Raw = Raw()


class Tokens(Struct, gc=False, kw_only=True):
    """Tokens of a model call. `prompt_tokens` includes those read from the cache and written to it."""

    model: str | None = None
    response_id: str = ""
    prompt_tokens: object = None
    completion_tokens: object = None
    cache_read_tokens: object = None
    cache_write_tokens: object = None
    reasoning_tokens: object = None


class Cost(Struct, gc=False):
    cost: object = None
    timestamp: float | None = None


class Metrics(Struct, gc=False):
    """Calls of one use of a model. Costs have the order of usages, if all calls have a price."""

    token_usages: list[Tokens] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)


class Stats(Struct, gc=False):
    usage_to_metrics: dict[str, Raw] = field(default_factory=dict)


class Workspace(Struct, gc=False):
    working_dir: str | None = None


class Model(Struct, gc=False):
    model: str | None = None


class Agent(Struct, gc=False):
    """The agent's model. The API key beside it is never read."""

    llm: Model | None = None


class State(Struct, gc=False, kw_only=True):
    id: str = ""
    agent: Agent | None = None
    workspace: Workspace | None = None
    stats: Stats = field(default_factory=Stats)


_QUIET = frozenset(
    (
        *("SystemPromptEvent", "ConversationStateUpdateEvent", "LLMCompletionLogEvent", "TokenEvent"),
        *("StreamingDeltaEvent", "SecurityAnalysisEvent", "CondensationRequest", "CondensationSummaryEvent"),
    )
)
"""Events that the program notes for itself, or repeats."""
_PARTS = frozenset(("text", "image"))
_WORDLESS = ("", "User rejected the action")
_RUNNING = -1
"""Exit code of a command that had not ended when the agent was answered."""
_ROOT = "__root__"
_ZONE_US = 15 * 60 * 1_000_000
"""Time zones are multiples of a quarter of an hour."""
_FURTHEST_US = 14 * 60 * 60 * 1_000_000
_NEAR_US = 5 * 60 * 1_000_000
"""Longest time between the payment of a call and its event, which usually takes seconds."""


class _File(Struct):
    source: Input
    event: Event
    number: int
    line: int = 1


class _Folder(Struct):
    path: str
    files: list[_File] = field(default_factory=list)
    state: State = field(default_factory=State)
    uses: dict[str, Metrics] = field(default_factory=dict)

    @property
    def session_id(self) -> str | None:
        return self.state.id.replace("-", "").lower() or conversation_of(self.path)

    def calls(self) -> Iterator[tuple[str, Tokens, Cost | None]]:
        """Yield each model call with the use of the model that it belongs to, and its cost."""
        for use, metrics in self.uses.items():
            usages, costs = metrics.token_usages, metrics.costs
            priced: list[Any] = list(costs) if len(costs) == len(usages) else [None] * len(usages)
            yield from ((use, tokens, cost) for tokens, cost in zip(usages, priced, strict=True))


def read(inputs: list[Input]) -> Reading:
    """Read all files of a group. Of several copies of a conversation the one with most events counts."""
    outputs = [source for source in inputs if is_output(bytes(source.data[:HEAD_BYTES]))]
    others = [s for s in inputs if s not in outputs and EVENT_FILE.search(s.artifact.path) is None]
    evaluations = [s for s in others if decoded(bytes(s.data), Evaluation) is not None]
    inputs = [source for source in inputs if source not in evaluations and source not in outputs]
    best: dict[str, _Folder] = {}
    for folder in sorted(_folders(inputs), key=lambda f: (-len(f.files), f.path)):
        if folder.files:
            kept = best.setdefault(folder.session_id or folder.files[0].source.artifact.artifact_id, folder)
            for file in folder.files if kept is not folder else ():
                file.source.artifact.note = f"superseded by {kept.path}"
                saw_again(file.source.artifact)
    logged = {file.event.llm_response_id for folder in best.values() for file in folder.files}
    zone_us = _zone_us(best.values())
    sessions = [Reader(name, folder).build(logged, zone_us) for name, folder in sorted(best.items())]
    reading = Reading(sessions, attempts=[part for source in evaluations for part in _configured(source)])
    _evaluated(sorted(outputs, key=lambda source: _ROUND in source.artifact.path), reading)
    return reading


class Output(Struct, gc=False, kw_only=True):
    """A line of the outputs of an evaluation run (`EvalOutput`): an instance, with its conversation and its bill."""

    instance_id: str
    attempt: object = None
    test_result: object = None
    history: list[Raw] = field(default_factory=list)
    metrics: object = None
    error: object = None
    metadata: object = None


_ROUND = ".critic_attempt_"
"""In the names of files with the outputs of one round; the others have those that were handed in."""


def _evaluated(outputs: list[Input], reading: Reading) -> None:
    """Add the instances of a run, those that were handed in before the rounds that gave them."""
    known: dict[tuple[str, int], bool] = {}
    judged: dict[tuple[str, int], Attempt] = {}
    for source in outputs:
        name = posixpath.basename(source.artifact.path).partition(".")[0]
        for line, output in lines(source.data, source.artifact, decoder(Output).decode):
            task, index = canonical(output.instance_id), max(1, whole(output.attempt) or 1) - 1
            saw(source.artifact, "repeated" if (task, index) in known else "output")
            report = inside(output.test_result, "report")  # which the evaluation adds, in a copy of the file
            solved = inside(report, "resolved") if inside(report, "error_eval") is not True else None
            if (task, index) in known:
                if isinstance(solved, bool) and judged[task, index].reward is None:
                    judged[task, index].reward = float(solved)
                    judged[task, index].statements += source.states(f"report of {task}", ["reward"], line)
                continue
            known[task, index] = _ROUND not in source.artifact.path
            history = [_of_sdk(item) for raw in output.history for item in _flat(raw)]
            events = each(history, decoder(Event).decode, source.artifact)
            tally(source.artifact, "event", [event.kind[:80] if event is not None else None for event in events])
            files = [_File(source, event, n, line) for n, event in enumerate(events) if event is not None]
            billed, patch = msgspec.convert(output.metrics or {}, dict), inside(output.test_result, "git_patch")
            used = inside(billed, "accumulated_token_usage")
            if not amount(billed.get("accumulated_cost")) and not count(inside(used, "prompt_tokens")):
                billed, used = {}, None  # counters that nobody filled are no bill of zero
            part = Attempt(
                root=source.folder, attempt_index=index, task_id=task, goes_by=f"{name}/{task}",
                is_handed_in=known[task, index] or None, cost_usd=amount(billed.get("accumulated_cost")),
                exception=string(output.error), reward=float(solved) if isinstance(solved, bool) else None,
            )  # fmt: skip
            judged[task, index] = part
            if any(handed_in and other == task for (other, _), handed_in in known.items()):
                part.is_handed_in = known[task, index]
            part.input_tokens, part.output_tokens = (
                count(inside(used, f"{n}_tokens")) for n in ("prompt", "completion")
            )
            named = inside(used, "model"), billed.get("model_name"), inside(output.metadata, "llm_config", "model")
            if model := next(filter(None, map(string, named)), None):
                part.observed["model_id"] = model
            if isinstance(patch, str) and (patch.strip() or part.exception is None):
                part.patch, part.patch_text_bytes = patched_files(patch), len(patch.encode("utf-8", "replace"))
            fields = ("reward", "cost_usd", "input_tokens", "output_tokens", "patch", "exception")
            told = [n for n in fields if getattr(part, n) not in (None, "", [])]
            part.statements = source.states(f"output of {task}, attempt {index + 1}", [*told, "knobs.model_id"], line)
            if files:
                folder = _Folder(f"{source.artifact.path}/{line}", files)
                folder.uses = {MAIN: decoded(msgspec.json.encode(billed), Metrics) or Metrics()}
                session = Reader(f"{files[0].event.id}-{task}-{index}", folder).build(set(), 0)
                session.model = session.model or model
                part.session_artifact, part.session_id = session.artifact_id, session.session_id
                reading.sessions.append(session)
            reading.attempts.append(part)
            reading.keys.add(f"run:{part.goes_by}")


def _flat(raw: Raw) -> list[Raw]:
    """Return an event; or the action and the observation of a pair, as OpenHands wrote before 0.20."""
    return decoded(raw, list[Raw]) or [raw] if bytes(raw)[:1] == b"[" else [raw]


_TOOLS = {"run": "execute_bash", "edit": "str_replace_editor", "write": "write_file", "read": "read_file"}
_ASIDE = ("system", "recall", "change_agent_state", "agent_state_changed", "null")


def _of_sdk(raw: Raw) -> Raw:
    """Return an event of OpenHands before its SDK, which has an action or an observation and no kind, as the SDK's."""
    event = decoded(raw, dict[str, Any]) or {}
    did, args = event.get("action"), event.get("args")
    name = string(did) or string(event.get("observation"))
    if name is None or "kind" in event:
        return raw
    told: dict[str, Any] = {
        "id": str(event.get("id")),
        "timestamp": event.get("timestamp"),
        "source": event.get("source"),
    }
    tool = string(inside(event, "tool_call_metadata", "function_name")) or _TOOLS.get(name, name)
    if name in _ASIDE:
        told["kind"] = "ConversationStateUpdateEvent"
    elif did is None:
        codes = (inside(event, "extras", *path) for path in (("metadata", "exit_code"), ("exit_code",)))
        seen = {"content": as_text(event.get("content")), "is_error": name == "error"}
        seen["exit_code"] = next((code for code in codes if code is not None), None)
        told |= {"kind": "ObservationEvent", "tool_call_id": f"c{event.get('cause')}", "observation": seen}
    elif name == "message":
        said = {"content": as_text(inside(args, "content")) or as_text(event.get("message"))}
        told |= {"kind": "MessageEvent", "llm_message": said}
    else:
        given = {key: value for key, value in args.items() if key != "thought"} if isinstance(args, dict) else {}
        call = {"name": tool, "arguments": msgspec.json.encode(given).decode()}
        told |= {"kind": "ActionEvent", "tool_name": tool, "tool_call_id": f"c{event.get('id')}", "tool_call": call}
        told["thought"] = as_text(inside(args, "thought"))
    return Raw(msgspec.json.encode(told))


class Evaluation(Struct, gc=False, kw_only=True):
    """The configuration of an evaluation run (`metadata.json` of OpenHands/benchmarks), which its instances share."""

    llm: dict[str, Any]
    dataset: str
    dataset_split: object = None
    max_iterations: object = None
    max_retries: object = None
    n_critic_runs: object = None
    agent_type: object = None
    openhands_sdk_version: object = None
    acp_agent_version: object = None


_OPTIONS = ("temperature", "top_p", "reasoning_effort", "seed")
"""Of the model. Its key and its address are never read."""


def _configured(source: Input) -> list[Attempt]:
    """Return what a run lends to its attempts: predictions all go by the name of the agent, which is no model."""
    run = document(source.data, source.artifact, decoder(Evaluation).decode)
    if run is None:
        return []
    saw(source.artifact, "evaluation")
    settings = {
        "model_id": run.llm.get("model"),
        "agent_type": "openhands" if run.agent_type in (None, "default") else run.agent_type,
        "agent_version": run.acp_agent_version or run.openhands_sdk_version,
        "dataset": run.dataset,
        "split": run.dataset_split,
        "max_steps": run.max_iterations,
        "max_retries": run.max_retries,
        "n_critic_runs": run.n_critic_runs,
        **{name: run.llm.get(name) for name in _OPTIONS},
    }
    knobs = {name: value for name, value in settings.items() if isinstance(value, str | int | float)}
    part = Attempt(root=source.folder, scope="lent", knobs=knobs, kinds=["harness_config"])
    listed = ", ".join(f"{name} {value}" for name, value in knobs.items())
    part.statements = source.states(f"configured: {listed}", [f"knobs.{name}" for name in knobs])
    return [part]


def _folders(inputs: list[Input]) -> list[_Folder]:
    """Group the files by conversation folder: its state, and its events in order."""
    folders: dict[str, _Folder] = {}
    for source in sorted(inputs, key=lambda i: i.artifact.path):
        path = folder_of(source.artifact.path)
        folder = folders.setdefault(path, _Folder(path))
        name = EVENT_FILE.search(source.artifact.path)
        if name is None:
            state = document(source.data, source.artifact, decoder(State).decode)
            folder.state = state or State()
            if state is not None:
                saw(source.artifact, "state")
                # A use of a model that can't be read costs only itself.
                logged = state.stats.usage_to_metrics
                read = each(list(logged.values()), decoder(Metrics).decode, source.artifact)
                tally(source.artifact, "use", [None for metrics in read if metrics is None])
                folder.uses = {use: m for use, m in zip(logged, read, strict=True) if m is not None}
        elif (event := document(source.data, source.artifact, decoder(Event).decode)) is not None:
            saw(source.artifact, event.kind[:80] or "untyped")
            folder.files.append(_File(source, event, int(name[1])))
    for folder in folders.values():
        folder.files.sort(key=lambda f: (f.number, f.event.timestamp or "", f.event.id))
    return list(folders.values())


def _zone_us(folders: Collection[_Folder]) -> int:
    """Return how far local time is ahead: a call's cost is logged in UTC, its event in local time."""
    paid = {
        tokens.response_id: cost.timestamp
        for folder in folders
        for _, tokens, cost in folder.calls()
        if cost is not None and cost.timestamp is not None
    }
    ahead: Counter[int] = Counter()
    for file in (file for folder in folders for file in folder.files):
        stamp, at = paid.get(file.event.llm_response_id or ""), logged_iso(file.event.timestamp)
        if stamp is not None and at is not None:
            apart = at - (logged_ms(stamp * 1000) or 0)
            zone = (apart + _ZONE_US // 2) // _ZONE_US * _ZONE_US
            if abs(zone) <= _FURTHEST_US and abs(apart - zone) <= _NEAR_US:
                ahead[zone] += 1
    return ahead.most_common(1)[0][0] if ahead else 0


class Reader(Conversation):
    profile = PROFILE

    def __init__(self, session_id: str, folder: _Folder) -> None:
        super().__init__(folder.files[0].source.session(session_id, "openhands", PROFILE.agent))
        self.folder = folder
        above = parent_folder(folder.path)
        self.session.parent_session_id = conversation_of(above) if above is not None else None
        self.is_subagent = self.session.parent_session_id is not None

    def build(self, logged: set[str | None], zone_us: int) -> Session:
        """`logged`: the answers of the model of which any folder has an event."""
        builder, state = self.builder, self.folder.state
        live, returned = self._live()
        builder.where(state.workspace.working_dir if state.workspace is not None else None)
        for file in self.folder.files:
            at = logged_iso(file.event.timestamp)
            at = at - zone_us if at is not None else None
            builder.artifact_id, builder.line = file.source.artifact.artifact_id, file.line
            if file.event.id in returned:
                builder.event("rewind", None, at)
            with self.aside(MAIN if file.event.id in live else ABANDONED):
                self.take(file.event, at)
        # Only the state has tokens, by answer of the model. Calls without an event, and those of a subagent whose own
        # folder is not among the files, become closing steps.
        steps = {step.message_id: step for step in self.session.steps}
        for use, tokens, cost in self.folder.calls():
            step = steps.get(tokens.response_id)
            if step is None:
                if tokens.response_id in logged:
                    continue
                thread = use if use.startswith("task:") else MAIN  # a subagent's
                step = builder.step(tokens.response_id or None, tokens.model, thread=thread)
                step.stop_reason = SESSION_TOTAL
            step.model = tokens.model
            charge(step, tokens_of(tokens))
            if cost is not None and (paid := amount(cost.cost)):  # LiteLLM's; 0 if the model has no price
                step.cost_usd, step.cost_source = paid, "recorded"
        session = builder.finish()
        llm = state.agent.llm if state.agent is not None else None
        session.model = session.model or (llm.model if llm is not None else None)
        return session

    def _live(self) -> tuple[set[str], set[str]]:
        """Return the ids of events from the last one back to the first, since the person went back from the others; and
        those of the prompts with which they did.

        An event without a parent follows the one before it in number.
        """
        events = [file.event for file in self.folder.files]
        place = {event.id: n for n, event in enumerate(events)}
        parents = [ROOT if e.parent_id == _ROOT else place.get(e.parent_id or "", n - 1) for n, e in enumerate(events)]
        live = {events[n].id for n in path_to_root(parents, len(events) - 1)}
        is_prompt = [e.kind == "MessageEvent" and e.source == "user" for e in events]
        return live, {events[n].id for n in returns(parents, is_prompt)}

    def take(self, event: Event, at: int | None) -> None:
        kind = event.kind
        if kind == "MessageEvent" and event.llm_message is not None and event.source == "agent":
            # Calls made at once, and the message with them, belong to one answer of the model.
            step = self.builder.step(event.llm_response_id, None, at, self.thread)
            self.unread(event.llm_message.content, at)
            self.say("thinking", event.llm_message.reasoning_content, at, step)
            self.say("text", texts_of(event.llm_message.content), at, step)
        elif kind == "MessageEvent" and event.llm_message is not None:
            self.message(event, event.llm_message.content, at)
        elif kind == "ActionEvent":
            step = self.builder.step(event.llm_response_id, None, at, self.thread)
            self.say("thinking", event.reasoning_content, at, step)
            self.say("text", texts_of(event.thought), at, step)
            self.unread(event.thought, at)
            arguments = as_text(event.tool_call.arguments) if event.tool_call is not None else ""
            self.call(event.tool_call_id, event.tool_name, arguments, at, step)
        elif kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
            self.answer(event, at)
        elif kind == "Condensation":
            if event.llm_response_id:
                self.builder.step(event.llm_response_id, None, at, self.thread)
            n = len(decoded(event.forgotten_event_ids, list[Raw]) or [])
            self.event("compaction", msgspec.json.encode({"forgotten_events": n}).decode(), at)
            if event.summary:
                self.event("meta", event.summary, at)
        elif kind == "ConversationErrorEvent":
            self.event("api_error", f"{event.code}: {event.detail}", at)
        elif kind in ("PauseEvent", "InterruptEvent"):
            self.event("interrupt", event.detail or kind, at)
        elif kind == "HookExecutionEvent":
            self.event("hook_block" if event.blocked is True else "meta", event.reason or kind, at)
        elif kind not in _QUIET:
            self.event("unknown", kind[:80] or "event without a kind", at)

    def unread(self, content: list[Part] | str, at: int | None) -> None:
        if not isinstance(content, str):
            self.builder.unread((part.type for part in content), _PARTS, at, self.thread)

    def say(self, kind: EventKind, text: str | None, at: int | None, step: Step | None) -> None:
        if text and text.strip():
            self.event(kind, text, at, step)

    def message(self, event: Event, content: list[Part] | str, at: int | None) -> None:
        for parts in (content, event.extended_content):
            self.unread(parts, at)
        text = texts_of(content).strip()
        by_person = event.source == "user" and not event.sender and not self.is_subagent and self.thread == MAIN
        if not by_person:
            self.event("notification" if event.source != "user" else "meta", text, at)
        elif text or content:
            self.builder.turn("prompt" if text else "attachment", text, at)
        if added := texts_of(event.extended_content):  # skills and micro-agents that the words called up
            self.event("meta", added, at)

    def answer(self, event: Event, at: int | None) -> None:
        call_id, reason, seen = event.tool_call_id, event.rejection_reason, event.observation
        if event.kind == "UserRejectObservation":
            by_person = event.rejection_source in ("", "user")
            ended: CallStatus = "rejected" if by_person else "error"
            self.result(call_id, reason, ended, at, error=None if by_person else "permission")
            if by_person and reason.strip() not in _WORDLESS and self.thread == MAIN:
                self.builder.turn("rejection_feedback", reason, at)
        elif seen is None:
            self.result(call_id, as_text(event.error), "error", at)
        else:
            text, code = texts_of(seen.content), whole(seen.exit_code)
            self.unread(seen.content, at)
            status: CallStatus = "error" if seen.is_error is True or seen.timeout is True else "ok"
            if code == _RUNNING:  # it may end well yet
                status, code = status if status == "error" else "unknown", None
                text += seen.metadata.suffix if seen.metadata is not None else ""
            if event.tool_name == "finish" and status == "ok":
                self.say("text", text, at, None)
            self.result(call_id, text, status, at, seen, code)

    def edit(self, call: ToolCall, text: str, detail: Any) -> bool:
        if detail is None or detail.new_content is None:
            return False
        if detail.old_content is None:
            self.builder.edit(call, detail.path, "create", [created(detail.new_content)])
        elif hunks := between(detail.old_content, detail.new_content):
            self.builder.edit(call, detail.path, "modify", hunks)
        return True
