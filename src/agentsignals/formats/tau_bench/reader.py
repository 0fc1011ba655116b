"""Read tau-bench results: each trial is an attempt. A simulator writes the user's words, so no turn is a person's."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import amount, number, whole
from agentsignals.formats.conversation import Conversation
from agentsignals.formats.documents import each, or_list, tally
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.records import as_list, as_text, decoded, decoder, inside, string
from agentsignals.formats.tau_bench import LOOKS, PROFILE
from agentsignals.model import Attempt, Session, Step, Verification, logged_iso


class Result(Struct, kw_only=True):
    task_id: int | str
    reward: object = None
    info: object = None
    traj: list[Raw]
    trial: object = None


class Message(Struct, kw_only=True):
    """A message of tau-bench or of tau2-bench, whose messages have more."""

    role: str | None = None
    content: object = None
    tool_calls: object = None
    tool_call_id: object = None
    tool_messages: list[Message] | None = None
    """Results of several calls of one message."""
    id: str | None = None
    requestor: str | None = None
    error: bool | None = None
    timestamp: str | None = None
    cost: object = None
    usage: object = None


class Document(Struct):
    results: list[Raw]


_NAMED = re.compile(
    r"(?P<agent_type>tool-calling|act|react|few-shot)-(?P<model_id>.+)-(?P<temperature>\d+(?:\.\d+)?)_range_-?\d+--?\d+"
    r"_user-(?P<user_model>.+)-(?P<user_strategy>[a-z_]+)_\d+"
)
"""A file's name as the harness writes it."""
_ACTION, _OUTPUT = "Action:", "API output: "
"""Marks of a call and its result where the agent calls in its text (`act`, `react`)."""
_RESPOND = "respond"
"""The action that is an answer to the user."""
_FAILED = ("Error:", "Unknown action ")
"""First words of the environment about a call that raised or named no tool."""


def read(inputs: list[Input]) -> Reading:
    reading = Reading()
    for source in inputs:
        document = read_document(source, or_list(Document), "results")
        if document is None:
            continue
        results = each(document.results, decoder(Result).decode, source.artifact)
        tally(source.artifact, "result", [None if result is None else "trial" for result in results])
        run = posixpath.basename(source.artifact.path).removesuffix(".json")
        # A trial that broke off before its first message doesn't say whom the task is about; another trial of it does.
        named = ((r.task_id, string(inside(r.info, "task", "user_id"))) for r in results if r is not None)
        users = {task: user for task, user in named if user is not None}
        for n, (raw, result) in enumerate(zip(document.results, results, strict=True), 1):
            if result is None:
                continue
            part = _attempt(source, result, run, users.get(result.task_id), n)
            if result.traj:
                same = hashlib.sha256(f"{run}\0".encode() + bytes(raw)).hexdigest()[:24]
                part.record_id = f"tau-bench-{same}"
                session = source.session(part.record_id, "tau-bench", "tau-bench")
                messages = decoded_messages(source, result.traj)
                conversation = Reader(session, part).build(messages, n)
                reading.sessions.append(conversation)
                part.verification = _verified(conversation, part.reward, inside(result.info, "reward_info"))
                if (tests := part.verification) is not None:
                    part.statements += source.states(checks_text(tests), ["verification"], n)
            reading.attempts.append(part)
    return reading


def checks_text(tests: Verification) -> str:
    """Return in words what the environment checked."""
    failed = ", ".join(tests.failed or ()) or "none"
    return f"checks: {len(tests.passed or ())} passed, {len(tests.failed or ())} failed: {failed}"[:600]


def decoded_messages(source: Input, raws: list[Raw]) -> list[Message | None]:
    """Decode and count the messages of a trial."""
    messages = each(raws, decoder(Message).decode, source.artifact)
    tally(source.artifact, "message", [None if m is None else m.role or "untold" for m in messages])
    return messages


class SimulatedReader(Conversation):
    """Reads the conversation of an attempt with a simulated user."""

    profile = PROFILE

    def __init__(self, session: Session, part: Attempt) -> None:
        session.context = "eval"
        super().__init__(session)
        part.session_id, part.session_artifact = session.session_id, session.artifact_id
        self.model: str | None = part.knobs.get("model_id")

    def build(self, messages: Sequence[Message | None], line: int) -> Session:
        self.builder.line = line
        for message in messages:
            if message is not None:
                self.take(message, as_text(message.content), logged_iso(message.timestamp))
        return self.builder.finish()

    def take(self, message: Message, text: str, at: int | None) -> None:
        if message.role == "system":
            self.event("meta", text, at)
        elif message.role == "user":
            self.user(message, text, at)
        elif message.role == "assistant":
            self.act(message, text, at)
        elif message.role == "tool":
            for result in message.tool_messages or [message]:
                self.answer(result)
        else:
            self.event("unknown", message.role or "message without a role", at)

    def user(self, message: Message, text: str, at: int | None) -> None:
        self.builder.turn("scripted_prompt", text, at, self.model)

    def act(self, message: Message, text: str, at: int | None) -> None:
        raise NotImplementedError

    def answer(self, result: Message) -> None:
        raise NotImplementedError

    def asked(self, call: object, name: object, arguments: bytes | str, at: int | None, step: Step) -> None:
        """Record a call that a message lists."""
        if (tool := string(name)) is None:
            self.event("unknown", "call without a name", at, step)
        else:
            self.call(string(inside(call, "id")) or "", tool, arguments, at, step)


class Reader(SimulatedReader):
    open = ""
    """Id of the call that the agent wrote into its last text."""

    def user(self, message: Message, text: str, at: int | None) -> None:
        if self.open and text.startswith(_OUTPUT):
            self.returned(self.open, text.removeprefix(_OUTPUT))
        else:
            super().user(message, text, at)

    def act(self, message: Message, text: str, at: int | None) -> None:
        step = self.builder.step(None, self.model)
        self.open = ""
        calls = as_list(message.tool_calls)
        written, _, action = text.rpartition(_ACTION)
        called = decoded(action.strip(), Any) if not calls and _ACTION in text else None
        name = string(inside(called, "name"))
        if name == _RESPOND:
            text = f"{written.strip()}\n{as_text(inside(called, 'arguments', 'content'))}".strip()
        elif name is not None:
            text = written.strip()
        if text:
            self.event("text", text, None, step)
        if name is not None and name != _RESPOND:
            self.open = f"message-{len(self.session.events)}"
            self.call(self.open, name, msgspec.json.encode(inside(called, "arguments")), None, step)
        for call in calls:
            arguments = as_text(inside(call, "function", "arguments"))
            self.asked(call, inside(call, "function", "name"), arguments, None, step)

    def answer(self, result: Message) -> None:
        self.returned(string(result.tool_call_id) or "", as_text(result.content))

    def returned(self, call_id: str, text: str) -> None:
        self.result(call_id, text, "error" if text.startswith(_FAILED) else "ok")


def _attempt(source: Input, result: Result, run: str, user: str | None, n: int) -> Attempt:
    """Return the treatment, the reward and the end of a trial."""
    info, reward, trial = result.info, number(result.reward), whole(result.trial)
    task = f"{user}/{result.task_id}" if user is not None else str(result.task_id)
    part = Attempt(
        root=f"{source.artifact.path}/{n}", scope="attempt" if result.traj else "trial",
        trial_id="/".join([run, task, *([] if trial is None else [str(trial)])]), task_id=task, run_id=run,
        reward=reward, knobs={"dataset": "tau-bench"},
    )  # fmt: skip
    if (named := _NAMED.fullmatch(run)) is not None:
        part.knobs |= named.groupdict() | {"temperature": float(named["temperature"])}
    if trial is not None:
        part.knobs["epoch"] = trial
    part.other_cost_usd = amount(inside(info, "user_cost")) or None
    error = string(inside(info, "error"))
    became = "not judged" if reward is None else f"reward {reward:g}"
    fields = ["reward", *(f"knobs.{knob}" for knob in part.knobs)]
    if part.other_cost_usd is not None:
        became, fields = f"{became}, the simulated user cost ${part.other_cost_usd:g}", [*fields, "other_cost_usd"]
    if error is not None:
        # The harness writes a reward of 0 where a program of its own or a model's server raised.
        part.ending, part.exit_status = "infrastructure", "error"
        raised = (string(inside(info, "traceback")) or "").strip().rpartition("\n")[2]
        part.exception = raised.partition(":")[0].rpartition(".")[2].strip() or None
        became, fields = f"{became}, {error[:600]}", [*fields, "ending", "exit_status", "exception"]
    elif isinstance(inside(info, "reward_info"), dict):
        part.ending, part.exit_status = "finished", "done"
        fields += ["ending", "exit_status"]
    elif isinstance(info, dict) and "reward_info" in info:
        # The environment judges once the conversation is over. Without that the steps ran out.
        part.ending, part.exit_status = "budget", "steps"
        became, fields = f"{became}, the conversation was not over", [*fields, "ending", "exit_status"]
    named_trial = f", trial {trial}" if trial is not None else ""
    part.statements = source.states(f"task {task}{named_trial}: {became}", fields, n)
    return part


def _verified(session: Session, reward: float | None, judged: object) -> Verification | None:
    """Return what the environment checked, by name: the database, the actions that should have changed it, and what the
    user should have been told. None where it judged nothing.

    The harness compares databases, and says of a task with outputs only which of these were told. Which action made the
    difference it does not say: its own list of actions and the agent's calls do.
    """
    if not isinstance(judged, dict) or reward is None:
        return None
    outputs = inside(judged, "info", "outputs")
    told = {f"told: {text}": bool(found) for text, found in outputs.items()} if isinstance(outputs, dict) else {}
    stored = number(inside(judged, "info", "r_actions"))
    matches = stored == 1 if stored is not None else True if reward == 1 else False if all(told.values()) else None
    unlike = _unlike(session, as_list(judged.get("actions"))) if matches is not True else ()
    found = {**dict.fromkeys(unlike, False), **told, **({} if matches is None else {"database": matches})}
    return Verification(
        passed=[name for name, holds in found.items() if holds],
        failed=[name for name, holds in found.items() if not holds],
    )


def _unlike(session: Session, expected: list[Any]) -> Iterator[str]:
    """Yield the expected changes that the agent did not make so, and the changes that nobody expected."""
    made = [
        (c.name, decoded(c.arguments.encode("utf-8", "replace"), Any))
        for c in session.tool_calls
        if c.status != "error"
    ]
    wanted = [(name, inside(action, "kwargs")) for action in expected if (name := string(inside(action, "name")))]
    for name, arguments in wanted:
        same = [given for called, given in made if called == name]
        if LOOKS.fullmatch(name) or arguments in same:
            continue
        if not same:
            yield f"{name} not called"
            continue
        theirs: dict[str, Any] = arguments if isinstance(arguments, dict) else {}
        differing: list[list[str]] = []
        for own in same:
            if isinstance(own, dict):
                keys = dict.fromkeys((*theirs, *own))
                differing.append([key for key in keys if own.get(key) != theirs.get(key)])
        differing.sort(key=len)
        yield f"{name} called with other {', '.join(differing[0]) if differing else 'arguments'}"
    names = {name for name, _ in wanted}
    for name in dict.fromkeys(called for called, _ in made):
        if name not in names and not LOOKS.fullmatch(name):
            yield f"{name} called, not expected"
