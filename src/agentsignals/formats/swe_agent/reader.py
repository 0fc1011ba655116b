"""Read SWE-agent trajectories, each an attempt with its session and treatment."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Raw, Struct

from agentsignals.changes.patches import looks_like_diff, patched_files
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import amount, count
from agentsignals.formats.builder import RESULT_CHARS_KEPT, SessionBuilder
from agentsignals.formats.documents import each, saw_again, tally
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.instances import attempt_of, canonical, repo_of, root_of, run_of, stem_of
from agentsignals.formats.swe_agent import PROFILE
from agentsignals.formats.swe_agent import tools as records
from agentsignals.formats.swe_agent.tools import (
    WINDOWED,
    Document,
    Info,
    Message,
    Step,
    Window,
    as_text,
    called,
    outcome,
    record,
    text_of,
    written,
)
from agentsignals.model import Attempt, Ending, Session, Statement

_LIMITS = ("per_instance_cost_limit", "total_cost_limit", "per_instance_call_limit")
"""Limits of which 0 means none."""
_OF_MODEL = ("temperature", "top_p", "seed", "max_input_tokens", "max_output_tokens")
_OF_TOOLS = {"execution_timeout": "execution_timeout_s", "total_execution_timeout": "total_execution_timeout_s"}
_NO_MODELS = frozenset(("replay", "human", "human_thought", "instant_empty_submit"))
"""Names under which SWE-agent lets something other than a model act."""


def knobs(config: dict[str, Any], attempt: int = 0) -> dict[str, Any]:
    """Return the treatment as configured. A limit of 0 means none (None). Null values were left to the provider and are
    left out."""
    agent = _agent(config, attempt)
    model = _inner(agent, "model")
    treatment: dict[str, Any] = {"agent_type": "swe-agent"}
    name = model.get("name") or model.get("model_name")
    if isinstance(name, str) and name:
        treatment["model_id"] = name
    for limit in _LIMITS:
        value = model.get(limit)
        if _is_number(value):
            treatment[limit] = value or None
    arguments = _inner(model, "completion_kwargs")
    treatment.update({k: v for of in (arguments, model) for k in _OF_MODEL if _is_number(v := of.get(k))})
    if isinstance(arguments.get("reasoning_effort"), str):
        treatment["reasoning_effort"] = arguments["reasoning_effort"]
    retries = _inner(_inner(config, "agent"), "retry_loop").get("max_attempts")
    if _is_number(retries):
        treatment["max_attempts"] = retries
    tools = _inner(agent, "tools")
    treatment.update({ours: tools[theirs] for theirs, ours in _OF_TOOLS.items() if _is_number(tools.get(theirs))})
    parser = _inner(tools, "parse_function").get("type")
    if isinstance(parser, str):
        treatment["parse_function"] = parser
    if _is_number(agent.get("max_requeries")):
        treatment["max_requeries"] = agent["max_requeries"]
    bundles = [_inner({"b": b}, "b").get("path") for b in _list(tools, "bundles")]
    named = [posixpath.basename(b.rstrip("/")) for b in bundles if isinstance(b, str)]
    if named:
        treatment["tools"] = named
    return treatment


def model_of(treatment: dict[str, Any]) -> str | None:
    """The model that acted, by the knobs; None when a person or a recording did."""
    name = treatment.get("model_id")
    return name if isinstance(name, str) and name not in _NO_MODELS else None


def problem(config: dict[str, Any]) -> tuple[str | None, str | None]:
    """Id and text of the problem statement."""
    stated = _inner(config, "problem_statement")
    id_, text = stated.get("id"), stated.get("text")
    return (id_ if isinstance(id_, str) and id_ else None), (text if isinstance(text, str) and text else None)


def _agent(config: dict[str, Any], attempt: int) -> dict[str, Any]:
    """The agent's settings; a run that retries may have several, taken in turn."""
    agent = _inner(config, "agent")
    several = [a for a in _list(agent, "agent_configs") if isinstance(a, dict)]
    return several[attempt % len(several)] if several else agent


def _inner(of: dict[str, Any], name: str) -> dict[str, Any]:
    value = of.get(name)
    return value if isinstance(value, dict) else {}


def _list(of: dict[str, Any], name: str) -> list[Any]:
    value = of.get(name)
    return value if isinstance(value, list) else []


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_EXITS = ("Exit due to", "Exiting due to", "Exited ")
"""First words of the harness's own message when it ends a run."""
_NO_FILE = "n/a"
_SHELL_LINE = re.compile(r"\n\(Open file: ([^\n)]{1,500})\)\n\(Current directory: ([^\n)]{1,500})\)\nbash-\$\s*$")
_OBSERVATION = "OBSERVATION:\n"
_LISTING = "Here's the files and directories"


class Conversation:
    """Reads the steps of an attempt. `messages`: the history, which holds the prompt and the function calls."""

    def __init__(self, builder: SessionBuilder, messages: list[Message], model: str | None) -> None:
        self.builder = builder
        self.model = model
        self._window = Window()
        self._replies = [m for m in messages if m.role == "assistant" and not m.is_demonstration]
        self._next = 0
        self._messages = messages

    def read(self, steps: list[Step | None], stated: str | None) -> None:
        """Read the whole attempt. `stated`: the configured problem, in case the history was lost."""
        opening = self._messages
        if not opening and steps and steps[0] is not None:
            opening = records.prompt_of(steps[0])
        asked = False
        for n, message in enumerate(opening, 1):
            self.builder.line = n
            text = text_of(message.content)
            if message.is_demonstration:
                self._note(f"demonstration ({message.role}): {text}")
            elif message.role == "assistant":
                break
            elif message.role == "system" or asked:
                self._note(text)
            else:
                asked = True
                self.builder.turn("prompt", text.strip(), None, self.model)
        if not asked and stated:
            self.builder.line = 1
            self.builder.turn("prompt", stated.strip(), None, self.model)
        for n, message in enumerate(self._messages, 1):
            self.builder.line = n
            self.builder.unread(message.kinds, records.PARTS, None)
            for call in (message.tool_calls or ())[1:]:  # of several the harness runs the first
                name = as_text(call.function.name) if call.function is not None else ""
                self.builder.event("unknown", f"another call, {name[:80] or 'without a name'}")
        if not steps:
            self._read_history()
            return
        states = [records.state_of(s) if s is not None else records.State() for s in steps]
        folders = [as_text(s.working_dir) for s in states]
        self.builder.visits(f for f in folders if f)
        self.builder.where(next((f for f in folders if f), None))
        for n, step in enumerate(steps):
            self.builder.line = n + 1
            if step is None:
                continue
            if as_text(states[n].open_file) not in ("", _NO_FILE):
                self._window.open = as_text(states[n].open_file)
            self._step(step, steps[n + 1] if n + 1 < len(steps) else None)
            self.builder.where(folders[n] or None)

    def _note(self, text: str) -> None:
        self.builder.event("meta", text[:RESULT_CHARS_KEPT], n_chars=len(text))

    def _step(self, step: Step, after: Step | None) -> None:
        line, thought, response = (as_text(v) for v in (step.action, step.thought, step.response))
        observation = as_text(step.observation)
        if response.startswith(_EXITS) and (not line.strip() or line.startswith("exit_")):
            self._match(line, thought)
            self._note("\n".join(t for t in (response, observation) if t))
            return
        message = self._match(line, thought)
        refusal = None
        if message is None and after is not None and (self._replies or not observation):
            # The model was asked again: the last message of the next call's prompt says why. Otherwise that prompt ends
            # with an answer of the environment, which is marked as such.
            last = next(reversed(records.prompt_of(after)), None)
            if last is not None and last.role == "user" and last.message_type != "observation":
                refusal = text_of(last.content) or None
        self._called(message, thought or (response if not line.strip() else ""), as_text(step.reasoning_content))
        if line.strip():
            refused = refusal is not None and not observation
            self._act(line, message, observation or refusal or "", refused)
        elif refusal:
            self._note(refusal)

    def _match(self, line: str, thought: str) -> Message | None:
        """Return the message of the history that this step became; None if the model was asked again instead."""
        if self._next >= len(self._replies):
            return None
        message = self._replies[self._next]
        same = as_text(message.action).strip() == line.strip()
        if not same or (message.thought is not None and as_text(message.thought).strip() != thought.strip()):
            return None
        self._next += 1
        return message

    def _called(self, message: Message | None, text: str, reasoning: str) -> None:
        step = self.builder.step(None, self.model)
        for block in (message.thinking_blocks if message is not None else None) or ():
            thinking = block.get("thinking")
            self.builder.event("thinking", thinking if isinstance(thinking, str) else "", None, step)
            reasoning = ""
        if reasoning:
            self.builder.event("thinking", reasoning, None, step)
        if text.strip():
            self.builder.event("text", text, None, step)

    def _act(self, line: str, message: Message | None, observation: str, refused: bool = False) -> None:
        """Record an action with its answer. Call ids repeat within a trajectory, so the order pairs them."""
        builder = self.builder
        calls = message.tool_calls if message is not None else None
        action = (called(calls[0]) if calls else None) or written(line)
        call_id = (as_text(calls[0].id) if calls else "") or f"step-{builder.line}"
        path = action.path
        if path is None and action.name in WINDOWED:
            path = self._window.open
        call = builder.call(
            call_id, action.name, action.arguments, action.tool, None, builder.session.steps[-1], path=path
        )
        status, error = outcome(action, call, observation)
        if refused:
            status, error = "error", error or "other"
        if observation.startswith(_LISTING):
            call.class_ = "search"  # as of any tool that lists a folder: no file was read
        builder.result(call_id, observation, status, error=error)
        record(builder, call, action, observation, self._window)

    def _read_history(self) -> None:
        """Read a file without steps. Answers stand between the model's messages; their last lines name the folder."""
        messages = self._messages
        for n, message in enumerate(messages):
            if message.role != "assistant" or message.is_demonstration:
                continue
            self.builder.line = n + 1
            after = messages[n + 1] if n + 1 < len(messages) else None
            answer = text_of(after.content) if after is not None and after.role != "assistant" else ""
            shell_line = _SHELL_LINE.search(answer[-1_500:])
            if shell_line is not None:
                answer = answer[: answer.rfind("\n(Open file: ")]
                self.builder.where(shell_line[2])
                if shell_line[1] != _NO_FILE:
                    self._window.open = shell_line[1]
            line = as_text(message.action)
            self._called(message, as_text(message.thought) or ("" if line.strip() else text_of(message.content)), "")
            if line.strip():
                self._act(line, message, answer.removeprefix(_OBSERVATION))


_NO_INSTANCE = frozenset(("", "swe_main", "main"))
"""Values of `environment` that name no instance."""
_OUT_OF_TIME = "exit_total_execution_time"
_ENDINGS: dict[str, Ending] = {
    _OUT_OF_TIME: "time",
    "exit_command_timeout": "time",
    "exit_cost": "budget",
    "exit_context": "budget",
    "exit_api": "infrastructure",
    "exit_environment_error": "infrastructure",
    "exit_error": "infrastructure",
}


class _Run(Struct, kw_only=True):
    """One attempt as a file holds it."""

    source: Input
    document: Document
    steps: list[Step | None]
    messages: list[Message]
    info: Info
    index: int | None = None
    is_last: bool | None = None


def read(inputs: list[Input]) -> Reading:
    """All files of a trial. A retrying run writes its attempts together and each in a folder: the first counts."""
    reading = Reading()
    several: set[str] = set()
    for source in sorted(inputs, key=lambda g: (attempt_of(g.artifact.path) is not None, g.artifact.path)):
        document = read_document(source, records.decode, "trajectory")
        if document is None:
            continue
        runs = list(_runs(source, document))
        place = f"{root_of(source.artifact.path)}/{stem_of(source.artifact.path)}"
        if document.attempts:
            several.add(place)
        elif place in several and attempt_of(source.artifact.path) is not None:
            source.artifact.note = "an attempt of the trajectory above it, which counts"
            saw_again(source.artifact)
            continue
        for run in runs:
            session, part = _attempt(run)
            reading.sessions.append(session)
            reading.attempts.append(part)
    return reading


def _runs(source: Input, document: Document) -> Iterator[_Run]:
    """The attempts of a file; of one that retried, what stands beside the list is its best attempt again."""
    artifact = source.artifact
    attempts = each(document.attempts or [], records.decode_attempted, artifact)
    tally(artifact, "attempt", [None if a is None else "of_several" for a in attempts])
    if not any(a is not None for a in attempts):
        steps, messages = _pieces(source, document.trajectory or [], document.history or [])
        info = records.info_of(document.info)
        yield _Run(
            source=source, document=document, steps=steps, messages=messages, info=info, index=attempt_of(artifact.path)
        )
        return
    for n, attempt in enumerate(attempts):
        if attempt is not None:
            steps, messages = _pieces(source, attempt.trajectory, attempt.history)
            info = records.info_of(attempt.info)
            yield _Run(
                source=source,
                document=document,
                steps=steps,
                messages=messages,
                info=info,
                index=n,
                is_last=n == len(attempts) - 1,
            )


def _pieces(source: Input, steps: list[Raw], messages: list[Raw]) -> tuple[list[Step | None], list[Message]]:
    read_steps = each(steps, records.decode_step, source.artifact)
    read_messages = each(messages, records.decode_message, source.artifact)
    tally(
        source.artifact,
        "step",
        [None if s is None else ("action" if as_text(s.action).strip() else "no_action") for s in read_steps],
    )
    tally(source.artifact, "message", [None if m is None else m.type for m in read_messages])
    return read_steps, [m for m in read_messages if m is not None]


def _attempt(run: _Run) -> tuple[Session, Attempt]:
    source, info = run.source, run.info
    config = records.config_of(run.document.replay_config)
    set_to = knobs(config, run.index or 0)
    stated_id, stated = problem(config)
    named = as_text(run.document.environment)
    task = stated_id or (named if named not in _NO_INSTANCE else "") or stem_of(run.source.artifact.path)
    session = Session(
        session_id="", context="eval", format="swe-agent", agent="swe-agent", artifact_id=source.artifact.artifact_id
    )
    session.agent_version = as_text(info.swe_agent_version) or None
    session.repo = repo_of(stated_id or task)
    session.title = next((line.strip() for line in (stated or "").split("\n") if line.strip()), None)
    builder = SessionBuilder(session, PROFILE)
    Conversation(builder, run.messages, model_of(set_to)).read(run.steps, stated)
    builder.finish()
    session.model = model_of(set_to)
    if run.index is not None:
        session.session_id = f"{canonical(task)}/{run.index}~{source.artifact.artifact_id}"
    return session, _part(run, session, canonical(task), set_to)


def _part(run: _Run, session: Session, task: str, set_to: dict[str, Any]) -> Attempt:
    path, info, stats = run.source.artifact.path, run.info, run.info.model_stats or records.ModelStats()
    exit_status = as_text(info.exit_status) or None
    goes_by = run_of(path)
    # By the exit status. What was there when the run broke off is submitted all the same: `submitted
    # (exit_cost)`.
    part = Attempt(
        root=root_of(path),
        attempt_index=run.index,
        is_last=run.is_last,
        task_id=task,
        run_id=goes_by.rpartition("/")[0] if goes_by is not None else None,
        goes_by=goes_by,
        session_id=session.session_id or None,
        session_artifact=session.artifact_id,
        knobs=set_to,
        exit_status=exit_status,
        ending=_ENDINGS.get(exit_status, "finished") if exit_status is not None else None,
        timed_out=_OUT_OF_TIME in exit_status if exit_status is not None else None,
        input_tokens=count(stats.tokens_sent) or None,
        output_tokens=count(stats.tokens_received) or None,
        cost_usd=amount(stats.instance_cost) or None,
    )
    submission = as_text(info.submission).replace("\r\n", "\n")
    if looks_like_diff(submission):
        part.patch, part.patch_text_bytes = patched_files(submission), len(submission.encode("utf-8", "replace"))
    elif exit_status is not None and not submission.strip():
        part.patch, part.patch_text_bytes = [], 0
    _tell(run, part)
    return part


def _tell(run: _Run, part: Attempt) -> None:
    """The file's own words for what the attempt's fields rest on."""
    artifact_id, line = run.source.artifact.artifact_id, max(len(run.steps), 1)
    set_to = ", ".join(f"{k} {v}" for k, v in part.knobs.items())
    part.statements.append(
        Statement(
            text=f"configured: {set_to}", artifact_id=artifact_id, line=1, fields=[f"knobs.{k}" for k in part.knobs]
        )
    )
    if part.exit_status is not None:
        text = f"exit status {part.exit_status}"
        fields = ["exit_status", "timed_out"]
        if part.patch is not None:
            names = ", ".join(posixpath.normpath(f.path) for f in part.patch)
            text, fields = f"{text}, submitted {names or 'nothing'}", [*fields, "patch"]
        part.statements.append(Statement(text=text, artifact_id=artifact_id, line=line, fields=fields))
    usage = {n: getattr(part, n) for n in ("input_tokens", "output_tokens", "cost_usd")}
    stated = {n: v for n, v in usage.items() if v is not None}
    if stated:
        text = ", ".join(f"{n} {v}" for n, v in stated.items())
        part.statements.append(
            Statement(text=f"model stats: {text}", artifact_id=artifact_id, line=line, fields=list(stated))
        )
