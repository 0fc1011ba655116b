"""Read Harbor's JSON files as parts of attempts. A trial is one agent run; its job lends it what all its trials
share."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import amount, count, number
from agentsignals.formats.documents import tally
from agentsignals.formats.records import document, saw, skip
from agentsignals.model import IMPOSSIBLE, Attempt, Ending, Statement, Verification, logged_iso


class Times(Struct, gc=False):
    started_at: object = None
    finished_at: object = None

    @property
    def seconds(self) -> float | None:
        """Return the duration, or None if one of its ends is unknown."""
        start, end = moment(self.started_at), moment(self.finished_at)
        return (end - start) / 1e6 if start is not None and end is not None and end >= start else None


class Server(Struct, gc=False):
    name: object = None


class Agent(Struct, gc=False, kw_only=True):
    """The agent as configured; one of one's own has an import path instead of a name."""

    name: object = None
    import_path: object = None
    model_name: object = None
    override_timeout_sec: object = None
    max_timeout_sec: object = None
    kwargs: dict[str, Any] | None = None
    mcp_servers: list[Server] | None = None


class Task(Struct, gc=False):
    source: object = None
    path: object = None
    name: object = None


class Environment(Struct, gc=False):
    type: object = None
    import_path: object = None


class Dataset(Struct, gc=False):
    name: object = None
    version: object = None
    ref: object = None
    path: object = None


class Retry(Struct, gc=False):
    max_retries: object = None


class Orchestrator(Struct, gc=False):
    n_concurrent_trials: object = None
    retry: Retry | None = None


class Config(Struct, gc=False, kw_only=True):
    """A trial's configuration, or a job's: what is only in one of them is None in the other."""

    trial_name: object = None
    job_id: object = None
    task: Task | None = None
    agent: Agent | None = None
    environment: Environment | None = None
    timeout_multiplier: object = None
    agent_timeout_multiplier: object = None
    job_name: object = None
    n_attempts: object = None
    n_concurrent_trials: object = None
    orchestrator: Orchestrator | None = None
    retry: Retry | None = None
    datasets: list[Dataset] | None = None
    tasks: list[Any] | None = None


class ModelInfo(Struct, gc=False):
    name: object = None
    provider: object = None


class AgentInfo(Struct, gc=False):
    name: object = None
    version: object = None
    model_info: ModelInfo | None = None


class AgentResult(Struct, gc=False):
    n_input_tokens: object = None
    n_cache_tokens: object = None
    n_output_tokens: object = None
    cost_usd: object = None


class VerifierResult(Struct, gc=False):
    rewards: dict[str, Any] | None = None


class ExceptionInfo(Struct, gc=False):
    exception_type: object = None
    exception_message: object = None
    occurred_at: object = None


class StepResult(Struct, gc=False, kw_only=True):
    """One step of a trial of several."""

    step_name: object = None
    agent_result: AgentResult | None = None
    verifier_result: VerifierResult | None = None
    exception_info: ExceptionInfo | None = None
    agent_execution: Times | None = None
    verifier: Times | None = None


class Result(Struct, gc=False, kw_only=True):
    """A trial's `result.json`."""

    step_results: list[StepResult] | None = None

    id: object = None
    task_name: object = None
    trial_name: object = None
    source: object = None
    config: Config | None = None
    agent_info: AgentInfo | None = None
    agent_result: AgentResult | None = None
    verifier_result: VerifierResult | None = None
    exception_info: ExceptionInfo | None = None
    started_at: object = None
    finished_at: object = None
    agent_execution: Times | None = None


class Stats(Struct, gc=False):
    """A job's counts, under their older and newer names."""

    n_trials: object = None
    n_errors: object = None
    n_completed_trials: object = None
    n_errored_trials: object = None


class Job(Struct, gc=False):
    """A job's `result.json`. Its times are local ones without a zone, a trial's are UTC: they are not read."""

    id: object = None
    n_total_trials: object = None
    stats: Stats | None = None


class Harbor(Struct, gc=False):
    version: object = None


class Lock(Struct, gc=False):
    harbor: Harbor | None = None
    n_concurrent_trials: object = None


class Test(Struct, gc=False):
    name: object = None
    status: object = None
    trace: object = None
    message: object = None


class Results(Struct, gc=False):
    tests: list[Test] | None = None


class Ctrf(Struct, gc=False):
    results: Results | None = None


decode_result = msgspec.json.Decoder(Result).decode
decode_config = msgspec.json.Decoder(Config).decode
decode_job = msgspec.json.Decoder(Job).decode
decode_lock = msgspec.json.Decoder(Lock).decode
decode_ctrf = msgspec.json.Decoder(Ctrf).decode
decode_rewards = msgspec.json.Decoder(dict[str, Any]).decode


def word(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def moment(value: object) -> int | None:
    """A time in microseconds UTC."""
    return logged_iso(value) if isinstance(value, str) or value is None else IMPOSSIBLE


# The treatment of a Harbor trial, from its configuration and its job's, under Agent Signals's names.

RENAMED = {
    "attempt1ToolCap": "attempt1_tool_cap",
    "retryToolCap": "retry_tool_cap",
    "effort": "reasoning_effort",
    "version": "agent_version",
}
SECRET = re.compile(r"(?:api_?key|secret|password|credential|token)$", re.IGNORECASE)
"""Names of arguments whose value is nobody's business, and no treatment."""


def trial_knobs(config: Config, dataset: str | None, info: AgentInfo | None) -> dict[str, Any]:
    """The knobs a trial's configuration names. What it leaves to the task (its timeout) or to defaults is not said."""
    agent = config.agent or Agent()
    version = word(info.version) if info is not None else None
    settings: dict[str, Any] = {
        "agent_type": word(agent.name) or word(agent.import_path) or (word(info.name) if info is not None else None),
        "agent_version": (version if version != "unknown" else None),
        "model_id": word(agent.model_name) or _model(info),
        "dataset": dataset,
        "timeout_s": _timeout(config, agent),
        "timeout_multiplier": number(config.timeout_multiplier),
        "agent_timeout_multiplier": number(config.agent_timeout_multiplier),
    }
    if config.environment is not None:
        settings["environment"] = word(config.environment.type) or word(config.environment.import_path)
    servers = [name for server in agent.mcp_servers or () if (name := word(server.name)) is not None]
    settings["mcp_servers"] = servers or None
    return arguments(agent.kwargs, {name: value for name, value in settings.items() if value is not None})


def arguments(kwargs: dict[str, Any] | None, knobs: dict[str, Any]) -> dict[str, Any]:
    """The knobs, and behind them what an agent was called with, all but secrets."""
    for name, value in (kwargs or {}).items():
        if not SECRET.search(name):
            knobs.setdefault(RENAMED.get(name, name), value)
    return knobs


def job_knobs(config: Config) -> dict[str, Any]:
    """The knobs that all trials of a job share: older versions keep their number at once with the orchestrator."""
    older = config.orchestrator.n_concurrent_trials if config.orchestrator is not None else None
    at_once = number(config.n_concurrent_trials)
    retry = config.retry or (config.orchestrator.retry if config.orchestrator is not None else None)
    settings = {
        "concurrency": at_once if at_once is not None else number(older),
        "attempts_per_task": number(config.n_attempts),
        "max_retries": number(retry.max_retries) if retry is not None else None,
    }
    return {name: value for name, value in settings.items() if value is not None}


def _model(info: AgentInfo | None) -> str | None:
    """The model as the agent reports it, with its provider: there the two stand apart."""
    model = info.model_info if info is not None else None
    name, provider = (word(model.name), word(model.provider)) if model is not None else (None, None)
    return f"{provider}/{name}" if name is not None and provider is not None and "/" not in name else name


def _timeout(config: Config, agent: Agent) -> float | None:
    """Seconds the agent had: the configured limit, at most the greatest allowed, times the multiplier."""
    limit, most = number(agent.override_timeout_sec), number(agent.max_timeout_sec)
    if limit is None:
        return None
    of_agent, general = number(config.agent_timeout_multiplier), number(config.timeout_multiplier)
    factor = of_agent if of_agent is not None else general if general is not None else 1
    return (limit if most is None else min(limit, most)) * factor


# The verifier's test report (CTRF), and whether the verifier itself broke.

_END = 4_000
_OF_VERIFIER = re.compile(r"^(/tests/|/verifier/|/oracle/|/solution/|tests/|test_)")
_RAISED = re.compile(r"^(\S{1,300}):\d{1,7}: (\w{1,80})$")
_NO_FILE = re.compile(r"^E\s{1,8}FileNotFoundError: .{0,80}?No such file or directory: '([^'\n]{1,400})'")
_MISSING = "FileNotFoundError"
_FAILED_TO_VERIFY = frozenset(
    ("RewardFileNotFoundError", "RewardFileEmptyError", "VerifierOutputParseError", "AddTestsDirError",
     "DownloadVerifierDirError")
)  # fmt: skip
_TIMED_OUT = "VerifierTimeoutError"


def verification(report: Ctrf) -> Verification | None:
    """The tests by how they end now; how they did before the agent's work, Harbor does not ask."""
    tests = report.results.tests if report.results is not None else None
    if tests is None:
        return None
    passed = [n for t in tests if t.status == "passed" and (n := word(t.name)) is not None]
    failing = [t for t in tests if t.status == "failed"]
    verified = Verification(passed=passed, failed=[n for t in failing if (n := word(t.name)) is not None])
    broken = [_own_failure(t) for t in failing]
    if broken and all(broken):
        verified.status, verified.message = "crashed", broken[0] or ""
    return verified


def _own_failure(test: Test) -> str | None:
    """Return the verifier's message if it lacked a file of its own, and None for any other failure.

    An assertion is the agent's failure, and so is nearly every other error of a test when the work is missing or
    odd. The verifier fails only if its own code opened a file that it names itself and that the agent was not to
    write: no absolute path outside the verifier's folders.
    """
    trace = (word(test.trace) or "")[-_END:]
    lines = trace.rstrip().split("\n")
    raised = _RAISED.match(lines[-1].strip())
    if raised is None or raised[2] != _MISSING or not _OF_VERIFIER.match(raised[1]):
        return None
    error_line = next((line for line in reversed(lines) if line.startswith("E ")), "")
    missing = _NO_FILE.match(error_line)
    if missing is None or (missing[1].startswith("/") and not _OF_VERIFIER.match(missing[1])):
        return None
    return error_line.removeprefix("E").strip()


def failed_by(exception: str | None) -> Verification | None:
    """Return the verification that an exception of the trial implies, or None if the exception was not the
    verifier's."""
    if exception == _TIMED_OUT:
        return Verification(status="timed_out", message=exception)
    return Verification(status="crashed", message=exception) if exception in _FAILED_TO_VERIFY else None


_AGENT_TIMEOUT = "AgentTimeoutError"
_OUT_OF_BUDGET = frozenset(("ContextLengthExceededError", "OutputLengthExceededError"))
"""The model's window or answer was full: tried again, it would be again."""
_REWARD = "reward"
_MESSAGE_CHARS = 300
_keys = msgspec.json.Decoder(dict[str, Raw]).decode


def read(inputs: list[Input]) -> Reading:
    """Read each file as parts of attempts. A trial's dataset is looked up in its job's configuration."""
    read: list[tuple[Input, object]] = []
    for source in inputs:
        kind, record = document(source.data, source.artifact, _decode) or ("", None)
        if kind == "unknown":
            skip(source.artifact, "bad_shape")
        elif kind:
            saw(source.artifact, kind)
            read.append((source, record))
    jobs = {posixpath.dirname(g.artifact.path): f for g, f in read if isinstance(f, Config) and _is_of_job(f)}
    return Reading(attempts=[part for source, record in read for part in _attempts(source, record, jobs)])


def _decode(data: memoryview | bytes) -> tuple[str, object]:
    """Decode a file, and name its kind by its keys."""
    if bytes(data[:64]).lstrip()[:1] == b"[":
        return "collected", None
    keys = _keys(data).keys()
    kinds: tuple[tuple[str, tuple[str, ...], Callable[[Any], object]], ...] = (
        ("trial_result", ("task_name", "trial_name"), decode_result),
        ("trial_config", ("trial_name", "task"), decode_config),
        ("job_result", ("n_total_trials",), decode_job),
        ("job_config", ("job_name",), decode_config),
        ("lock", ("harbor",), decode_lock),
        ("trial_lock", ("task", "verifier"), lambda _: None),
        ("test_report", ("results",), decode_ctrf),
    )
    for kind, needed, decode in kinds:
        if all(k in keys for k in needed):
            return kind, decode(data)
    rewards = _numbers(decode_rewards(data))
    return ("rewards", rewards) if rewards else ("unknown", None)


def _is_of_job(config: Config) -> bool:
    return config.job_name is not None and config.trial_name is None


def _attempts(source: Input, record: object, jobs: dict[str, Config]) -> list[Attempt]:
    """Return the parts of attempts that a file describes."""
    root = posixpath.dirname(source.artifact.path)
    if isinstance(record, Result):
        # The steps of a trial of several steps, each a run of the agent with a verdict of its own.
        tally(source.artifact, "step", [None for step in record.step_results or () if not word(step.step_name)])
        steps = list({name: step for step in record.step_results or () if (name := word(step.step_name))}.values())
        if not steps:
            return [_of_result(source, root, record, jobs)]
        if steps[-1].exception_info is None:
            steps[-1].exception_info = record.exception_info  # the trial's exception ended its last step
        return [_of_step(source, root, record, step, jobs) for step in steps]
    part = Attempt(root=root, scope="trial")
    statements = _Statements(source, part)
    if isinstance(record, Config):
        part.kinds = ["harness_config"]
        if _is_of_job(record):
            part.scope, part.knobs = "lent", job_knobs(record)
        else:
            part.trial_id, part.run_id = word(record.trial_name), word(record.job_id)
            part.knobs = trial_knobs(record, _dataset(None, record, root, jobs), None)
        statements.knobs()
    elif isinstance(record, Lock):
        part.scope = "lent"
        version = word(record.harbor.version) if record.harbor is not None else None
        concurrency = number(record.n_concurrent_trials)
        part.knobs = {k: v for k, v in (("harbor_version", version), ("concurrency", concurrency)) if v is not None}
        statements.knobs()
    elif isinstance(record, Job):
        part.scope, part.run_id, stats = "lent", word(record.id), record.stats or Stats()
        done = count(stats.n_completed_trials if stats.n_completed_trials is not None else stats.n_trials)
        errors = count(stats.n_errored_trials if stats.n_errored_trials is not None else stats.n_errors)
        trials = count(record.n_total_trials)
        statements.add(f"job: {trials} trials, {done} done, {errors} with an exception", "run_id")
    elif isinstance(record, Ctrf) and (verified := verification(record)) is not None:
        part.verification, part.kinds = verified, ["test_report"]
        text = f"{len(verified.passed or ())} tests pass, {len(verified.failed or ())} fail"
        if verified.status == "crashed":
            text += f"; the verifier itself broke: {verified.message[:_MESSAGE_CHARS]}"
        statements.add(text, "verification")
    elif isinstance(record, dict):
        _reward(record, part, statements)
    else:
        return []
    return [part]


def _of_step(source: Input, root: str, result: Result, step: StepResult, jobs: dict[str, Config]) -> Attempt:
    """Return a step as a trial that is never repeated. Rewards of the whole trial are added to its own.

    A step that never began leaves nothing.
    """
    name = word(step.step_name) or ""
    agent, verifier = step.agent_execution or Times(), step.verifier or Times()
    of_trial = result.verifier_result
    alone = msgspec.structs.replace(
        result,
        task_name=f"{word(result.task_name)}/{name}",
        trial_name=f"{word(result.trial_name)}/{name}",
        step_results=None,
        agent_result=step.agent_result,
        verifier_result=step.verifier_result,
        exception_info=step.exception_info,
        agent_execution=step.agent_execution,
        started_at=agent.started_at if agent.started_at is not None else verifier.started_at,
        finished_at=verifier.finished_at if verifier.finished_at is not None else agent.finished_at,
    )
    part = _of_result(source, posixpath.join(root, "steps", name), alone, jobs)
    part.scope = "step"
    rewards = {f"trial.{key}": reward for key, reward in _numbers(of_trial.rewards if of_trial else None).items()}
    if rewards:
        part.rewards = {**(part.rewards or {}), **rewards}
        _Statements(source, part).add(f"of its trial, over all steps: {rewards}", "rewards")
    return part


def _of_result(source: Input, root: str, result: Result, jobs: dict[str, Config]) -> Attempt:
    config, info = result.config or Config(), result.exception_info
    part = Attempt(
        root=root,
        scope="trial",
        trial_id=word(result.trial_name),
        task_id=word(result.task_name),
        run_id=word(config.job_id),
        knobs=trial_knobs(config, _dataset(word(result.source), config, root, jobs), result.agent_info),
        kinds=["result_json", "harbor_result"],
    )
    statements = _Statements(source, part)
    statements.knobs()
    rewards = _numbers(result.verifier_result.rewards) if result.verifier_result is not None else {}
    if rewards:
        _reward(rewards, part, statements)
    part.exception = word(info.exception_type) if info is not None else None
    if part.exception is not None or moment(result.finished_at) is not None:
        # An agent whose time was up may still be verified. Other exceptions say who failed: Harbor repeats
        # all but the agent's time-out and the verifier's failures (design/signals.md#outcome-of-an-attempt).
        part.timed_out = part.exception == _AGENT_TIMEOUT
        part.verification = failed_by(part.exception)
        fields = ["timed_out", "exception", "exit_status", *(["verification"] if part.verification else [])]
        if part.exception is None:
            part.ending = "finished"
            statements.add("it ended without an exception", *fields)
        else:
            part.exit_status = part.exception
            otherwise: Ending = "budget" if part.exception in _OUT_OF_BUDGET else "infrastructure"
            part.ending = "time" if part.timed_out else "verifier" if part.verification is not None else otherwise
            why = word(info.exception_message) if info is not None else None
            statements.add(f"ended by {part.exception}: {(why or '')[:_MESSAGE_CHARS]}", *fields)
    # Set-up may take most of a trial's time, so the agent's own time is recorded apart.
    part.started_at, part.ended_at = moment(result.started_at), moment(result.finished_at)
    part.wall_time_s = Times(result.started_at, result.finished_at).seconds
    part.agent_time_s = result.agent_execution.seconds if result.agent_execution is not None else None
    if part.wall_time_s is not None or part.started_at is not None:
        text = f"the trial took {part.wall_time_s} s, of which the agent {part.agent_time_s} s"
        statements.add(text, "wall_time_s", "agent_time_s", "started_at", "ended_at")
    if (used := result.agent_result) is not None:
        # As Harbor counted; for some agents it counts every repeat of a message's usage
        # (design/formats.md#harbor-and-atif).
        part.input_tokens, part.output_tokens = count(used.n_input_tokens), count(used.n_output_tokens)
        part.cache_read_tokens, part.cost_usd = count(used.n_cache_tokens), amount(used.cost_usd)
        statements.add(
            f"Harbor counted {part.input_tokens} tokens in ({part.cache_read_tokens} of them cached), "
            f"{part.output_tokens} out, cost {part.cost_usd}",
            "input_tokens", "output_tokens", "cache_read_tokens", "cost_usd",
        )  # fmt: skip
    return part


class _Statements:
    """Adds statements of a file to a part."""

    def __init__(self, source: Input, part: Attempt) -> None:
        self._artifact_id = source.artifact.artifact_id
        self._part = part

    def add(self, text: str, *fields: str) -> None:
        self._part.statements.append(Statement(text=text, artifact_id=self._artifact_id, line=1, fields=list(fields)))

    def knobs(self) -> None:
        knobs = self._part.knobs
        if knobs:
            settings = ", ".join(f"{k} {v}"[:_MESSAGE_CHARS] for k, v in knobs.items())
            self.add(f"configured: {settings}", *(f"knobs.{k}" for k in knobs))


def _numbers(rewards: dict[str, Any] | None) -> dict[str, float]:
    return {k: float(n) for k, v in (rewards or {}).items() if (n := number(v)) is not None}


def _reward(rewards: dict[str, float], part: Attempt, statements: _Statements) -> None:
    """Set the rewards. The one that counts is named `reward`, or stands alone."""
    part.rewards = rewards
    part.reward = rewards.get(_REWARD, next(iter(rewards.values())) if len(rewards) == 1 else None)
    statements.add(f"verifier's rewards: {rewards}", "reward", "rewards")


def _dataset(source: str | None, config: Config, root: str, jobs: dict[str, Config]) -> str | None:
    """Return the dataset of a trial's task, with its version if the job's configuration names it."""
    source = source or (word(config.task.source) if config.task is not None else None)
    folder = max((d for d in jobs if d == "" or root.startswith(f"{d}/")), key=len, default=None)
    sets = (jobs[folder].datasets or []) if folder is not None else []
    alone = len(sets) == 1 and folder is not None and not jobs[folder].tasks
    for dataset in sets:
        if source is not None and word(dataset.name) == source:
            return _named(dataset)
    return source or (_named(sets[0]) if alone else None)


def _named(dataset: Dataset) -> str | None:
    name, version = word(dataset.name), word(dataset.version) or word(dataset.ref)
    if name is None:
        return word(dataset.path)
    return f"{name}@{version}" if version is not None else name
