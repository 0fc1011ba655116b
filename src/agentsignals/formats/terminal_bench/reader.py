"""Terminal-Bench's results as parts of attempts. Each trial is a try of its own: tries of one task are no retries."""

import posixpath
from collections.abc import Callable
from typing import Any

from msgspec import Raw, Struct

from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import count, number
from agentsignals.formats.documents import each, tally
from agentsignals.formats.harbor.reader import Times, arguments, moment
from agentsignals.formats.records import decoder, document, inside, saw, string
from agentsignals.model import Attempt, Ending, Verification

_NO_FAILURE = frozenset(("unset", "none"))
_AGENT_TIMEOUT, _NOT_INSTALLED = "agent_timeout", "agent_installation_failed"
_VERIFIER: dict[str, Verification] = {
    "test_timeout": Verification(status="timed_out", message="test_timeout"),
    "parse_error": Verification(status="crashed", message="parse_error"),
}
"""Failures of the verifier: its tests took too long, or their output could not be read."""
_ENDINGS: dict[str, Ending] = {
    _AGENT_TIMEOUT: "time",
    "context_length_exceeded": "budget",
    "output_length_exceeded": "budget",
    _NOT_INSTALLED: "infrastructure",
    "test_timeout": "verifier",
    "parse_error": "verifier",
}


class Trial(Struct, gc=False, kw_only=True):
    """One trial's results, in a file of its own or in its run's."""

    is_resolved: object
    failure_mode: object
    parser_results: dict[str, Any] | None
    id: object = None
    trial_name: object = None
    task_id: object = None
    total_input_tokens: object = None
    total_output_tokens: object = None
    trial_started_at: object = None
    trial_ended_at: object = None
    agent_started_at: object = None
    agent_ended_at: object = None


class Run(Struct, gc=False):
    results: list[Raw]


def read(inputs: list[Input]) -> Reading:
    """A part for each trial. A row of a run's file only counts where its trial has no file of its own."""
    reading = Reading()
    runs: list[tuple[Input, list[Trial]]] = []
    for source in inputs:
        record = document(source.data, source.artifact, _decode)
        if record is None:
            continue
        if isinstance(record, Run):
            saw(source.artifact, "run_results")
            decoded = each(record.results, decoder(Trial).decode, source.artifact)
            tally(source.artifact, "trial", [None if t is None else "result" for t in decoded])
            runs.append((source, [t for t in decoded if t is not None]))
        elif isinstance(record, Trial):
            saw(source.artifact, "trial_result")
            reading.attempts.append(_part(source, source.folder, record, 1))
        else:
            saw(source.artifact, "run_config")
            reading.attempts.append(_lent(source, record))
    own = [p for p in reading.attempts if p.scope == "trial"]
    ids = {p.record_id for p in own} - {None}
    for source, trials in runs:
        names = {p.trial_id for p in own if f"{p.root}/".startswith(f"{source.folder}/" if source.folder else "")}
        for n, trial in enumerate(trials, 1):  # in the folder that the trial would have
            task, name = ((string(name) or "").replace("/", "_") for name in (trial.task_id, trial.trial_name))
            part = _part(source, posixpath.join(source.folder, task or "trial", name or str(n)), trial, n)
            if part.record_id not in ids and part.trial_id not in names:
                reading.attempts.append(part)
    return reading


def _decode(data: memoryview | bytes) -> Trial | Run | dict[str, Any]:
    keys = decoder(dict[str, Raw]).decode(data).keys()
    kind: Any = Trial if "is_resolved" in keys else Run if "results" in keys else dict[str, Any]
    record: Trial | Run | dict[str, Any] = decoder(kind).decode(data)
    return record


def _part(source: Input, root: str, trial: Trial, line: int) -> Attempt:
    """Return what a trial's results say of its attempt."""
    mode = string(trial.failure_mode)
    whole = Times(trial.trial_started_at, trial.trial_ended_at)
    agent = Times(trial.agent_started_at, trial.agent_ended_at)
    solved = trial.is_resolved if isinstance(trial.is_resolved, bool) else None
    part = Attempt(
        root=root, scope="trial", trial_id=string(trial.trial_name), record_id=string(trial.id),
        task_id=string(trial.task_id), kinds=["result_json"], reward=None if solved is None else float(solved),
        exit_status=mode if mode not in _NO_FAILURE else None,
        started_at=moment(whole.started_at), ended_at=moment(whole.finished_at), wall_time_s=whole.seconds,
        agent_time_s=agent.seconds, verification=_VERIFIER.get(mode or ""),
    )  # fmt: skip
    if mode is not None and (solved is not None or mode in _ENDINGS):
        part.ending = _ENDINGS.get(mode, "finished")
    if mode is not None and (solved is not None or mode not in _NO_FAILURE):  # else nobody knows
        part.timed_out = mode == _AGENT_TIMEOUT
    if mode == _NOT_INSTALLED:
        part.agent_started = False
    if trial.parser_results is not None:
        # The tests by how they end now: nobody ran them before the agent's work.
        by, verified = trial.parser_results, Verification()
        verified.passed = [n for n, status in by.items() if status == "passed"]
        verified.failed = [n for n, status in by.items() if status == "failed"]
        if part.verification is not None:
            verified.status, verified.message = part.verification.status, part.verification.message
        part.verification = verified
    # An agent that does not count its tokens reports 0 of them.
    used = count(trial.total_input_tokens), count(trial.total_output_tokens)
    part.input_tokens, part.output_tokens = used if any(used) else (None, None)
    tests = part.verification
    counts = f"{len(tests.passed or ())} tests pass, {len(tests.failed or ())} fail" if tests else "no tests"
    fields = ["reward", "verification", "exit_status", "timed_out", "wall_time_s", "agent_time_s", "started_at"]
    fields += ["ended_at", "input_tokens", "output_tokens", *(["agent_started"] if mode == _NOT_INSTALLED else [])]
    text = f"resolved {solved}, failure mode {mode}, {counts}, {part.wall_time_s} s, agent {part.agent_time_s} s"
    part.statements = source.states(text, fields, line)
    return part


def _lent(source: Input, run: dict[str, Any]) -> Attempt:
    """Return what a run lends to its trials: `run_metadata.json` is flat, `tb.lock` nested."""

    def either(kind: Callable[[object], Any], name: str, *place: str) -> Any:
        value = kind(run.get(name))
        return value if value is not None else kind(inside(run, *place))

    name, version = (
        either(string, "dataset_name", "dataset", "name"),
        either(string, "dataset_version", "dataset", "version"),
    )
    limit, factor = (
        number(inside(run, "run_config", name)) for name in ("global_agent_timeout_sec", "global_timeout_multiplier")
    )
    settings = {
        "agent_type": either(string, "agent_name", "agent", "name") or string(inside(run, "agent", "import_path")),
        "agent_version": string(inside(run, "agent", "version")),
        "model_id": either(string, "model_name", "agent", "model_name"),
        "dataset": f"{name}@{version}" if name and version else name or string(run.get("dataset_path")),
        "attempts_per_task": either(number, "n_attempts", "run_config", "n_attempts"),
        "concurrency": either(number, "n_concurrent_trials", "run_config", "n_concurrent_trials"),
        "timeout_s": limit * (factor if factor is not None else 1) if limit is not None else None,
        "timeout_multiplier": factor,
    }
    passed = run.get("agent_kwargs") or inside(run, "agent", "agent_kwargs")
    knobs = arguments(passed, {k: v for k, v in settings.items() if v is not None})
    text = "configured: " + ", ".join(f"{k} {v}" for k, v in knobs.items())
    return Attempt(
        root=source.folder, scope="lent", run_id=string(run.get("run_id")), knobs=knobs, kinds=["harness_config"],
        statements=source.states(text, [f"knobs.{k}" for k in knobs]),
    )  # fmt: skip
