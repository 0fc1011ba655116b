"""Read Harbor's JSON files and logs as parts of attempts. A trial is one agent run; its job lends it what all its
trials share."""

import posixpath
import re
from math import inf
from typing import Any

from msgspec import Struct

from agentsignals.formats import Input, Reading, identify
from agentsignals.formats.bounds import amount, count, number
from agentsignals.formats.documents import saw_again, tally
from agentsignals.formats.harbor import EXCEPTION, TERMINALS
from agentsignals.formats.records import HEAD_BYTES, Head, as_list, decoder, document, inside, saw, skip, string
from agentsignals.formats.terminal import printed
from agentsignals.formats.test_report import program_not_there, read_ctrf, read_junit, read_log, tests_text
from agentsignals.model import IMPOSSIBLE, Attempt, Ending, Session, Verification, logged_iso

_Record = dict[str, Any]

RENAMED = {
    "attempt1ToolCap": "attempt1_tool_cap",
    "retryToolCap": "retry_tool_cap",
    "effort": "reasoning_effort",
    "version": "agent_version",
}
SECRET = re.compile(r"(?:api_?key|secret|password|credential|token)$", re.IGNORECASE)
"""Names of arguments whose value is nobody's business, and no treatment."""
_KINDS = {
    "trial_result": ("task_name", "trial_name"),
    "trial_config": ("trial_name", "task"),
    "job_result": ("n_total_trials",),
    "job_config": ("job_name",),
    "lock": ("harbor",),
    "trial_lock": ("task", "verifier"),
    "test_report": ("results",),
}
"""Keys of each kind of file. The first kind counts whose keys are all there."""
_END = 4_000
_OF_VERIFIER = re.compile(r"^(/tests/|/verifier/|/oracle/|/solution/|tests/|test_)")
_RAISED = re.compile(r"^(\S{1,300}):\d{1,7}: (\w{1,80})$")
_NO_FILE = re.compile(r"^E\s{1,8}FileNotFoundError: .{0,80}?No such file or directory: '([^'\n]{1,400})'")
_MISSING = "FileNotFoundError"
_FAILED_TO_VERIFY = frozenset(
    ("RewardFileNotFoundError", "RewardFileEmptyError", "VerifierOutputParseError", "AddTestsDirError",
     "DownloadVerifierDirError")
)  # fmt: skip
_VERIFIER_TIMEOUT, _AGENT_TIMEOUT = "VerifierTimeoutError", "AgentTimeoutError"
_OUT_OF_BUDGET = frozenset(("ContextLengthExceededError", "OutputLengthExceededError"))
"""The model's window or answer was full: tried again, it would be again."""
_MESSAGE_CHARS = 300


def moment(value: object) -> int | None:
    """Read a time, in microseconds UTC."""
    return logged_iso(value) if isinstance(value, str) or value is None else IMPOSSIBLE


class Times(Struct, gc=False):
    started_at: object = None
    finished_at: object = None

    @property
    def seconds(self) -> float | None:
        """Return the duration, or None if one of its ends is unknown."""
        start, end = moment(self.started_at), moment(self.finished_at)
        return (end - start) / 1e6 if start is not None and end is not None and end >= start else None


def arguments(kwargs: object, knobs: dict[str, Any]) -> dict[str, Any]:
    """Add to the knobs what an agent was called with, all but secrets."""
    named: dict[str, Any] = kwargs if isinstance(kwargs, dict) else {}
    for name, value in named.items():
        if not SECRET.search(name):
            knobs.setdefault(RENAMED.get(name, name), value)
    return knobs


def read(inputs: list[Input]) -> Reading:
    """Read each file as parts of attempts. A trial's dataset is looked up in its job's configuration."""
    files: list[tuple[Input, str, _Record]] = []
    for source in inputs:
        kind, record = document(source.data, source.artifact, _decode) or ("", {})
        if kind == "unknown":
            skip(source.artifact, "bad_shape")
        elif kind:
            saw(source.artifact, kind)
            files.append((source, kind, record))
    jobs = {source.folder: record for source, kind, record in files if kind.endswith("_config") and _is_of_job(record)}
    made = [(kind, record, part) for source, kind, record in files for part in _attempts(source, kind, record, jobs)]
    named = {part.root for _, _, part in made if part.task_id is not None}
    for kind, record, part in made:  # a trial without its result: the task is in its configuration
        if kind == "trial_config" and part.scope == "trial" and part.root not in named:
            path = string(inside(record, "task", "path")) or ""
            part.task_id = string(inside(record, "task", "name")) or posixpath.basename(path.rstrip("/")) or None
    return Reading(attempts=[part for _, _, part in made])


def _decode(data: memoryview | bytes) -> tuple[str, _Record]:
    """Decode a file, and name its kind by its keys."""
    if bytes(data[:64]).lstrip()[:1] == b"[":
        return "collected", {}
    record: _Record = decoder(_Record).decode(data)
    for kind, needed in _KINDS.items():
        if all(key in record for key in needed):
            return kind, record
    rewards = _numbers(record)
    return ("rewards", rewards) if rewards else ("unknown", {})


def _is_of_job(config: _Record) -> bool:
    return config.get("job_name") is not None and config.get("trial_name") is None


def _attempts(source: Input, kind: str, record: _Record, jobs: dict[str, _Record]) -> list[Attempt]:
    """Return the parts of attempts that a file describes."""
    root = source.folder
    if kind == "trial_result":
        # The steps of a trial of several steps, each a run of the agent that is verified by itself.
        logged = _items(record.get("step_results"))
        tally(source.artifact, "step", [None for step in logged if not string(step.get("step_name"))])
        steps = list({name: step for step in logged if (name := string(step.get("step_name")))}.values())
        whole = _of_result(source, root, _over_steps(record, steps), jobs)
        times = [t for step in steps if (t := _times(step.get("agent_execution")).seconds) is not None]
        if times:
            whole.agent_time_s = sum(times)
        return [whole, *(_of_step(source, root, step) for step in steps)]
    part = Attempt(root=root, scope="trial")
    if kind in ("trial_config", "job_config"):
        part.kinds = ["harness_config"]
        if _is_of_job(record):  # older versions keep the number of trials at once with the orchestrator
            older, at_once = record.get("orchestrator"), number(record.get("n_concurrent_trials"))
            retry = record.get("retry") or inside(older, "retry")
            part.scope = "lent"
            part.knobs = _present(
                concurrency=at_once if at_once is not None else number(inside(older, "n_concurrent_trials")),
                attempts_per_task=number(record.get("n_attempts")),
                max_retries=number(inside(retry, "max_retries")),
            )
        else:
            part.trial_id, part.run_id = string(record.get("trial_name")), string(record.get("job_id"))
            part.knobs = _trial_knobs(record, _dataset(None, record, root, jobs), None)
        _configure(source, part)
    elif kind == "lock":
        part.scope = "lent"
        part.knobs = _present(
            harbor_version=string(inside(record, "harbor", "version")),
            concurrency=number(record.get("n_concurrent_trials")),
        )
        _configure(source, part)
    elif kind == "job_result":
        part.scope, part.run_id = "lent", string(record.get("id"))
        done, errors = (
            count(newer if (newer := inside(record, "stats", name)) is not None else inside(record, "stats", older))
            for name, older in (("n_completed_trials", "n_trials"), ("n_errored_trials", "n_errors"))
        )
        trials = count(record["n_total_trials"])
        text = f"job: {trials} trials, {done} done, {errors} with an exception"
        part.statements = source.states(text, ["run_id"])
    elif kind == "test_report" and isinstance(tests := inside(record, "results", "tests"), list):
        # The tests by how they end now; how they did before the agent's work, Harbor does not ask.
        part.verification = read_ctrf(_items(tests), _own_failure)
        part.kinds = ["test_report"]
        text = tests_text(part.verification)
        if part.verification.status == "crashed":
            text += f"; the verifier itself broke: {part.verification.message[:_MESSAGE_CHARS]}"
        part.statements = source.states(text, ["verification"])
    elif kind == "rewards":
        _reward(source, part, record)
    else:
        return []
    return [part]


def _own_failure(test: _Record) -> str | None:
    """Return the verifier's message if it lacked a file of its own, and None for any other failure.

    An assertion is the agent's failure, and so is nearly every other error of a test when the work is missing or
    odd. The verifier fails only if its own code opened a file that it names itself and that the agent was not to
    write: no absolute path outside the verifier's folders.
    """
    lines = (string(test.get("trace")) or "")[-_END:].rstrip().split("\n")
    raised = _RAISED.match(lines[-1].strip())
    if raised is None or raised[2] != _MISSING or not _OF_VERIFIER.match(raised[1]):
        return None
    error_line = next((line for line in reversed(lines) if line.startswith("E ")), "")
    missing = _NO_FILE.match(error_line)
    if missing is None or (missing[1].startswith("/") and not _OF_VERIFIER.match(missing[1])):
        return None
    return error_line.removeprefix("E").strip()


def _over_steps(result: _Record, steps: list[_Record]) -> _Record:
    """Return a trial's result with what Harbor keeps with its steps alone: usage, and exceptions that it handled.

    Harbor's own rule: the trial's exception comes before those of its steps, and usage is the sum of the steps'.
    """
    if not steps:
        return result
    used = [u for step in steps if isinstance(u := step.get("agent_result"), dict)]
    summed = {
        name: sum(values)
        for name in ("n_input_tokens", "n_cache_tokens", "n_output_tokens", "cost_usd")
        if (values := [n for u in used if (n := number(u.get(name))) is not None])
    }
    raised = [result.get("exception_info"), *(step.get("exception_info") for step in steps)]
    return {
        **result,
        "agent_result": result.get("agent_result") or (summed or None),
        "exception_info": next((e for e in raised if e is not None), None),
        "agent_execution": result.get("agent_execution") or steps[0].get("agent_execution"),
    }


def _of_step(source: Input, root: str, step: _Record) -> Attempt:
    """Return what a step adds to its trial: its rewards, under its name. A step that never began leaves nothing."""
    name = string(step.get("step_name")) or ""
    part = Attempt(root=posixpath.join(root, "steps", name), scope="step")
    rewards = _numbers(inside(step, "verifier_result", "rewards"))
    part.rewards = {f"{name}.{key}": value for key, value in rewards.items()} or None
    raised = string(inside(step, "exception_info", "exception_type"))
    took = _times(step.get("agent_execution")).seconds
    lasted = "" if took is None else f", agent {took} s"
    text = f"step {name}: rewards {rewards or 'none'}{lasted}" + (f", ended by {raised}" if raised else "")
    part.statements = source.states(text, ["rewards"])
    return part


def _times(timing: object) -> Times:
    return Times(inside(timing, "started_at"), inside(timing, "finished_at"))


def _of_result(source: Input, root: str, result: _Record, jobs: dict[str, _Record]) -> Attempt:
    """Return what a trial's `result.json` says of its attempt: reward, ending, times, tokens, configuration."""
    config, served = result.get("config"), inside(result.get("agent_result"), "model_usage")
    part = Attempt(
        root=root,
        scope="trial",
        trial_id=string(result["trial_name"]),
        record_id=string(result.get("id")),
        regrade_of=string(inside(config, "source_trial", "trial_id")),
        task_id=string(result["task_name"]),
        run_id=string(inside(config, "job_id")),
        knobs=_trial_knobs(
            config, _dataset(string(result.get("source")), config, root, jobs), result.get("agent_info")
        ),
        observed={"model_id": next(iter(served))} if isinstance(served, dict) and len(served) == 1 else {},
        kinds=["result_json", "harbor_result"],
    )
    _configure(source, part)
    if rewards := _numbers(inside(result, "verifier_result", "rewards")):
        _reward(source, part, rewards)
    part.exception = string(inside(result, "exception_info", "exception_type"))
    if part.exception is not None or moment(result.get("finished_at")) is not None:
        # An agent whose time was up may still be verified. Other exceptions say who failed: Harbor repeats
        # all but the agent's time-out and the verifier's failures (design/signals.md#outcome-of-an-attempt).
        part.timed_out = part.exception == _AGENT_TIMEOUT
        if part.exception == _VERIFIER_TIMEOUT:
            part.verification = Verification(status="timed_out", message=part.exception)
        elif part.exception in _FAILED_TO_VERIFY:
            part.verification = Verification(status="crashed", message=part.exception)
        fields = ["timed_out", "exception", "exit_status", *(["verification"] if part.verification else [])]
        if part.exception is None:
            part.ending = "finished"
            part.statements += source.states("it ended without an exception", fields)
        else:
            part.exit_status = part.exception
            otherwise: Ending = "budget" if part.exception in _OUT_OF_BUDGET else "infrastructure"
            part.ending = "time" if part.timed_out else "verifier" if part.verification is not None else otherwise
            # Since 0.26 Harbor says itself whether a reward counts in spite of the exception.
            policy = inside(result, "exception_info", "policy", "has_valid_reward")
            valid = result.get("reward_valid") if rewards else policy
            part.reward_counts = valid if isinstance(valid, bool) else None
            fields += ["reward_counts"] if part.reward_counts is not None else []
            why = string(inside(result, "exception_info", "exception_message")) or ""
            part.statements += source.states(f"ended by {part.exception}: {why[:_MESSAGE_CHARS]}", fields)
    # Set-up may take most of a trial's time, so the agent's own time is recorded apart.
    started_at, finished_at = result.get("started_at"), result.get("finished_at")
    part.started_at, part.ended_at = moment(started_at), moment(finished_at)
    part.wall_time_s = Times(started_at, finished_at).seconds
    agent = result.get("agent_execution")
    is_set_up = inside(result, "agent_setup", "started_at") and inside(agent, "started_at") is None
    if part.exception is not None and is_set_up:
        part.agent_started = False
        text = f"its set-up ended by {part.exception}, before the agent began"
        part.statements += source.states(text, ["agent_started"])
    part.agent_time_s = _times(agent).seconds
    if part.wall_time_s is not None or part.started_at is not None:
        text = f"the trial took {part.wall_time_s} s, of which the agent {part.agent_time_s} s"
        part.statements += source.states(text, ["wall_time_s", "agent_time_s", "started_at", "ended_at"])
    if isinstance(used := result.get("agent_result"), dict):
        # As Harbor counted; for some agents it counts every repeat of a message's usage
        # (design/formats.md#harbor-and-atif).
        part.input_tokens, part.output_tokens = count(used.get("n_input_tokens")), count(used.get("n_output_tokens"))
        part.cache_read_tokens, part.cost_usd = count(used.get("n_cache_tokens")), amount(used.get("cost_usd"))
        text = f"Harbor counted {part.input_tokens} tokens in ({part.cache_read_tokens} of them cached)"
        text += f", {part.output_tokens} out, cost {part.cost_usd}"
        part.statements += source.states(text, ["input_tokens", "output_tokens", "cache_read_tokens", "cost_usd"])
    return part


def _trial_knobs(config: _Record | None, dataset: str | None, info: _Record | None) -> dict[str, Any]:
    """Return the knobs that a trial's configuration names. What it leaves to the task or to defaults is absent."""
    agent, version = inside(config, "agent"), string(inside(info, "version"))
    # The agent reports its model and the provider apart.
    name, provider = string(inside(info, "model_info", "name")), string(inside(info, "model_info", "provider"))
    model = f"{provider}/{name}" if name is not None and provider is not None and "/" not in name else name
    # The agent had the configured seconds, at most the greatest allowed, times the multiplier.
    limit, most = number(inside(agent, "override_timeout_sec")), number(inside(agent, "max_timeout_sec"))
    general, of_agent = number(inside(config, "timeout_multiplier")), number(inside(config, "agent_timeout_multiplier"))
    if limit is not None:
        factor = of_agent if of_agent is not None else general if general is not None else 1
        limit = (limit if most is None else min(limit, most)) * factor
    environment = inside(config, "environment")
    settings = _present(
        agent_type=string(inside(agent, "name"))
        or string(inside(agent, "import_path"))
        or string(inside(info, "name")),
        agent_version=version if version != "unknown" else None,
        model_id=string(inside(agent, "model_name")) or model,
        dataset=dataset,
        timeout_s=limit,
        timeout_multiplier=general,
        agent_timeout_multiplier=of_agent,
        environment=string(inside(environment, "type")) or string(inside(environment, "import_path")),
        mcp_servers=[n for server in _items(inside(agent, "mcp_servers")) if (n := string(server.get("name")))] or None,
    )
    return arguments(inside(agent, "kwargs"), settings)


def _dataset(source: str | None, config: _Record | None, root: str, jobs: dict[str, _Record]) -> str | None:
    """Return the dataset of a trial's task, with its version if the job's configuration names it."""
    source = source or string(inside(config, "task", "source"))
    folder = max((d for d in jobs if d == "" or root.startswith(f"{d}/")), key=len, default=None)
    sets = _items(jobs[folder].get("datasets")) if folder is not None else []
    alone = len(sets) == 1 and folder is not None and not jobs[folder].get("tasks")
    found = next((d for d in sets if source is not None and string(d.get("name")) == source), None)
    dataset = found if found is not None else sets[0] if alone and source is None else None
    if dataset is None:
        return source
    name, version = string(dataset.get("name")), string(dataset.get("version")) or string(dataset.get("ref"))
    if name is None:
        return string(dataset.get("path"))
    return f"{name}@{version}" if version is not None else name


def _configure(source: Input, part: Attempt) -> None:
    if part.knobs:
        settings = ", ".join(f"{k} {v}"[:_MESSAGE_CHARS] for k, v in part.knobs.items())
        part.statements += source.states(f"configured: {settings}", [f"knobs.{k}" for k in part.knobs])


def _reward(source: Input, part: Attempt, rewards: dict[str, float]) -> None:
    """Set the rewards. The one that counts is named `reward`, or stands alone."""
    part.rewards = rewards
    part.reward = rewards.get("reward", next(iter(rewards.values())) if len(rewards) == 1 else None)
    part.statements += source.states(f"verifier's rewards: {rewards}", ["reward", "rewards"])


def _present(**settings: Any) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


def _items(value: object) -> list[_Record]:
    return [item for item in as_list(value) if isinstance(item, dict)]


def _numbers(rewards: object) -> dict[str, float]:
    named = rewards.items() if isinstance(rewards, dict) else ()
    return {k: float(n) for k, v in named if (n := number(v)) is not None}


_REWARD, _RETURN_CODE = "reward.txt", "return-code.txt"
_MOST_OF_REWARD = 64
_NOT_STARTED = (126, 127)
_LOG_RAISED = re.compile(r"^([A-Za-z_][\w.]{0,200}(?:Error|Exception|Exit|Interrupt|Timeout))(?::|$)", re.MULTILINE)


def read_logs(inputs: list[Input]) -> Reading:
    """Read a part of the trial from each file that says something of it."""
    reading = Reading()
    on_screen: dict[tuple[str, str], list[tuple[Input, Session]]] = {}
    for source in inputs:
        artifact, data = source.artifact, source.data
        for session in _transcripts(source):
            trial = posixpath.dirname(source.folder)
            on_screen.setdefault((trial, session.session_id), []).append((source, session))
        artifact.records += 1
        part = Attempt(root=source.folder, scope="trial", kinds=["attempt_log"])
        folder, name = posixpath.split(artifact.path)
        inner = posixpath.basename(folder)
        if name in (_REWARD, _RETURN_CODE):
            try:
                number = float(bytes(data[:_MOST_OF_REWARD]).decode("utf-8", "replace").strip())
            except ValueError:
                number = inf
            if not abs(number) < inf:
                skip(artifact, "no_number")
                continue
            if name == _REWARD:
                saw(artifact, "reward")
                part.reward, part.statements = number, source.states(f"verifier's reward: {number}", ["reward"])
            else:
                saw(artifact, "return_code")
                if number in _NOT_STARTED and inner.startswith("command"):
                    part.agent_started = False
                    part.statements = source.states(f"{inner} ended with exit code {number:g}", ["agent_started"])
        elif name == EXCEPTION:
            saw(artifact, "exception")
            # A traceback ends in the name of the exception and its message.
            start = max(len(data) - _END, 0)
            text = bytes(data[start:]).decode("utf-8", "replace")
            if raised := list(_LOG_RAISED.finditer(text)):
                last = raised[-1]
                part.exception = last[1].rpartition(".")[2]
                line = bytes(source.data[:start]).count(b"\n") + text.count("\n", 0, last.start()) + 1
                part.statements = source.states(text[last.start() :].split("\n", 1)[0], ["exception"], line)
        elif name.endswith(".xml"):
            part.verification = read_junit(data)
            if part.verification is None:
                skip(artifact, "bad_shape")
                continue
            saw(artifact, "test_report")
            part.statements = source.states(_shown(part.verification), ["verification"])
        elif inner == "verifier" or (inner in TERMINALS and "test" in name):
            saw(artifact, "verifier_log")
            log = read_log(data)
            part.verification, part.fault = log.verification, log.fault or None
            if log.text:
                text = _shown(part.verification) if log.state == "ran" and part.verification is not None else log.text
                part.statements = source.states(text, ["fault" if log.fault else "verification"], log.line)
        elif inner not in TERMINALS or name.startswith(("post-agent", "agent")):
            saw(artifact, "agent_log")
            if (shown := program_not_there(data, name.partition(".")[0] if inner == "agent" else "")) is not None:
                part.agent_started = False
                part.statements = source.states(shown[1], ["agent_started"], shown[0])
        else:
            saw(artifact, "log")
        reading.attempts.append(part)
    for copies in on_screen.values():  # a pane may begin late, and a log may break off
        best = max((session for _, session in copies), key=lambda s: (len(s.steps), len(s.events)))
        reading.sessions.append(best)
        for source, session in copies:
            if session is not best:
                source.artifact.note = f"shows the session of {best.artifact_id}"
                saw_again(source.artifact)
    return reading


def _transcripts(source: Input) -> list[Session]:
    """Return the sessions whose records a terminal or an agent's log shows, as the format of these records reads them.

    What a terminal shows of other files is no session: records without a model call or a tool call.
    """
    inner = posixpath.basename(source.folder)
    if inner == "verifier" or (records := printed(source.data)) is None:
        return []
    head = Head(records.data[:HEAD_BYTES], source.artifact.path, len(records.data) <= HEAD_BYTES)
    found = identify(head)
    if found is None or found[0].name == "harbor-log":
        return []
    sessions = [s for s in found[0].read([Input(records.data, source.artifact)]).sessions if s.steps or s.tool_calls]
    for session in sessions:
        for event in session.events:
            event.line = records.lines[min(max(event.line, 1), len(records.lines)) - 1]
    return sessions


def _shown(tests: Verification) -> str:
    return tests.message or tests_text(tests)
