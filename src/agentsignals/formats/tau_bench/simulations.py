"""Read tau2-bench runs: each simulation is an attempt. A simulator writes the user's words and may call tools of its
own: no turn is a person's, and its calls are none of the agent's."""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import amount, number, whole
from agentsignals.formats.builder import charge, tokens_of
from agentsignals.formats.documents import Snapshot, each, largest, tally
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.records import as_list, as_text, decoder, inside, string
from agentsignals.formats.tau_bench.reader import Message, SimulatedReader, checks_text, decoded_messages
from agentsignals.model import Attempt, CallStatus, Ending, Verification, logged_iso


class Simulation(Struct, kw_only=True):
    id: str
    task_id: int | str
    termination_reason: str | None = None
    trial: object = None
    seed: object = None
    start_time: str | None = None
    end_time: str | None = None
    duration: object = None
    agent_cost: object = None
    user_cost: object = None
    reward_info: object = None
    info: object = None
    messages: list[Raw] | None = None
    ticks: list[Raw] | None = None


class Run(Struct, kw_only=True):
    """A run's document, or that of one simulation."""

    info: dict[str, Any] | None = None
    simulations: list[Raw] | None = None
    task_id: object = None
    """Only a simulation has one."""


class Told(Struct):
    """A simulation, with what its run says of all, and its place in the file."""

    simulation: Simulation
    messages: list[Message | None]
    info: dict[str, Any]
    line: int


_ENDINGS: dict[str, Ending] = {
    "user_stop": "finished",
    "agent_stop": "finished",
    "agent_error": "finished",
    "max_steps": "budget",
    "too_many_errors": "budget",
    "context_window_exceeded": "budget",
    "timeout": "time",
    "user_error": "infrastructure",
    "infrastructure_error": "infrastructure",
    "unexpected_error": "infrastructure",
}
"""Ends by whose they are. A broken user simulator is the machine's."""


def read(inputs: list[Input]) -> Reading:
    """Read runs and simulations. Those in files of their own take what the run of their folder says."""
    documents = [(source, read_document(source, decoder(Run).decode, "simulations")) for source in inputs]
    shared: dict[str, Any] = {}
    for _, document in documents:
        if document is not None and not document.simulations and "agent_info" in (document.info or {}):
            shared = document.info or {}
    told: list[Snapshot[Told]] = []
    for source, document in documents:
        if document is None:
            continue
        raws = document.simulations
        if raws is None:
            raws = [Raw(bytes(source.data).removeprefix(b"\xef\xbb\xbf"))] if document.task_id is not None else []
        simulations = each(raws, decoder(Simulation).decode, source.artifact)
        tally(
            source.artifact, "simulation", [None if s is None else s.termination_reason or "open" for s in simulations]
        )
        for n, simulation in enumerate(simulations, 1):
            if simulation is None:
                continue
            messages = decoded_messages(source, simulation.messages or [])
            if simulation.ticks:
                tally(source.artifact, "tick", ["not_read"] * len(simulation.ticks))
            info = document.info if document.simulations is not None else shared
            told.append(Snapshot(source, Told(simulation, messages, info or {}, n), simulation.id, len(messages)))
    reading = Reading(keys={f"tau2:{one.session_id}" for one in told})
    for one in largest(told):
        part = _attempt(one.source, one.document)
        if one.messages:
            session = one.source.session(one.session_id, "tau2-bench", "tau2-bench")
            reading.sessions.append(Reader(session, part).build(one.document.messages, one.document.line))
        else:
            part.scope = "trial"
        reading.attempts.append(part)
    return reading


class Reader(SimulatedReader):
    def user(self, message: Message, text: str, at: int | None) -> None:
        if text:
            super().user(message, text, at)
        for call in as_list(message.tool_calls):
            asked = as_text(inside(call, "arguments"))
            self.event("harness", f"the user simulator called {inside(call, 'name')}: {asked}", at)

    def act(self, message: Message, text: str, at: int | None) -> None:
        calls, cost = as_list(message.tool_calls), amount(message.cost)
        if not self.session.turns and not calls and message.usage is None and not cost:
            self.event("harness", text, at)  # the greeting that the harness says for the agent
            return
        step = self.builder.step(None, self.model, at)
        charge(step, tokens_of(message.usage))
        if cost:
            step.cost_usd, step.cost_source = cost, "recorded"
        if text:
            self.event("text", text, at, step)
        for call in calls:
            self.asked(call, inside(call, "name"), msgspec.json.encode(inside(call, "arguments")), at, step)

    def answer(self, result: Message) -> None:
        text, at = as_text(result.content), logged_iso(result.timestamp)
        if result.requestor == "user":
            self.event("harness", f"to the user simulator: {text}", at)
            return
        status: CallStatus = "unknown" if result.error is None else "error" if result.error else "ok"
        self.result(result.id or "", text, status, at)


def _attempt(source: Input, told: Told) -> Attempt:
    """Return the treatment, the reward and the end of a simulation."""
    one, info = told.simulation, told.info
    domain = string(inside(info, "environment_info", "domain_name"))
    reward = number(inside(one.reward_info, "reward"))
    ending = _ENDINGS.get(one.termination_reason or "")
    settings = {
        "model_id": string(inside(info, "agent_info", "llm")),
        "agent_type": string(inside(info, "agent_info", "implementation")),
        "temperature": number(inside(info, "agent_info", "llm_args", "temperature")),
        "reasoning_effort": string(inside(info, "agent_info", "llm_args", "reasoning_effort")),
        "user_model": string(inside(info, "user_info", "llm")),
        "user_strategy": string(inside(info, "user_info", "implementation")),
        "dataset": f"tau2-bench/{domain}" if domain is not None else "tau2-bench",
        "max_steps": whole(inside(info, "max_steps")),
        "max_errors": whole(inside(info, "max_errors")),
        "epoch": whole(one.trial),
        "seed": whole(one.seed),
    }
    part = Attempt(
        root=f"{source.artifact.path}/{one.id}",
        trial_id=one.id,
        record_id=one.id,
        task_id=f"{domain}/{one.task_id}" if domain is not None else str(one.task_id),
        knobs={name: value for name, value in settings.items() if value is not None},
        reward=reward,
        exit_status=one.termination_reason,
        ending=ending,
        timed_out=None if ending is None else ending == "time",
        started_at=logged_iso(one.start_time),
        ended_at=logged_iso(one.end_time),
        wall_time_s=number(one.duration),
        cost_usd=amount(one.agent_cost) or None,
        other_cost_usd=amount(one.user_cost) or None,
    )
    if reward is None and ending in ("time", "budget"):
        part.reward_counts = False  # the harness judges those, too: without its word nobody did
    if ending == "infrastructure":
        part.exception = string(inside(one.info, "error_type"))
    became = "not judged" if reward is None else f"reward {reward:g}"
    why = string(inside(one.info, "error"))
    fields = (
        "reward", "reward_counts", "exit_status", "ending", "exception", "timed_out", "started_at", "ended_at",
        "wall_time_s", "cost_usd", "other_cost_usd",
    )  # fmt: skip
    text = f"simulation of task {part.task_id}: {one.termination_reason or 'no end'}, {became}"
    stated = [name for name in fields if getattr(part, name) is not None]
    stated += [] if reward is not None else ["reward"]
    part.statements = source.states(
        f"{text}, {why[:600]}" if why else text, [*stated, *(f"knobs.{k}" for k in part.knobs)], told.line
    )
    part.verification = _verified(one.reward_info)
    if part.verification is not None:
        part.statements += source.states(checks_text(part.verification), ["verification"], told.line)
    return part


_CHECKS = (
    ("env_assertions", "ENV_ASSERTION", ("env_assertion", "func_name"), "environment"),
    ("nl_assertions", "NL_ASSERTION", ("nl_assertion",), "assertion"),
    ("communicate_checks", "COMMUNICATE", ("info",), "told"),
    ("action_checks", "ACTION", ("action", "name"), "action"),
)
"""Lists of checks, their names in the basis of the reward, where each has its name, and the word for it."""
_LONGEST_CHECK = 120


def _verified(judged: object) -> Verification | None:
    """Return the checks that the reward rests on, by name. Where the database is not as it should be, expected changes
    that were not made as expected are among them."""
    if not isinstance(judged, dict):
        return None
    basis = {string(name) for name in as_list(judged.get("reward_basis"))} or {"DB", "COMMUNICATE", "ENV_ASSERTION"}
    found: dict[str, bool] = {}
    matches = inside(judged, "db_check", "db_match")
    if isinstance(matches, bool) and "DB" in basis:
        found["database"] = matches
    for checks, kind, place, word in _CHECKS:
        for check in as_list(judged.get(checks)):
            name, met = string(inside(check, *place)), inside(check, "met")
            met = met if met is not None else inside(check, "action_match")
            changes = inside(check, "tool_type") in ("write", None)
            explains = word == "action" and found.get("database") is False and changes and met is False
            if name is not None and isinstance(met, bool) and (kind in basis or explains):
                named = f"{word}: {name}"[:_LONGEST_CHECK]
                found[named] = found.get(named, True) and met
    return Verification(
        passed=[name for name, holds in found.items() if holds],
        failed=[name for name, holds in found.items() if not holds],
    ) if found else None  # fmt: skip
