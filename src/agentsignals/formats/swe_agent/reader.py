"""Read SWE-agent trajectories, each an attempt with its session and treatment."""

import posixpath
import re
from typing import Any

from agentsignals.changes.patches import looks_like_diff, patched_files
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import amount, count
from agentsignals.formats.builder import RESULT_CHARS_KEPT, SessionBuilder
from agentsignals.formats.documents import each, saw_again, tally
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.instances import attempt_of, canonical, repo_of, root_of, run_of, stem_of
from agentsignals.formats.records import as_list, decoded, decoder, inside, string
from agentsignals.formats.swe_agent import PROFILE, tools
from agentsignals.formats.swe_agent.tools import Document, Message, Step, as_text, prompt_of, text_of
from agentsignals.model import Attempt, Ending, Session

_LIMITS = ("per_instance_cost_limit", "total_cost_limit", "per_instance_call_limit")
"""Limits of which 0 means none."""
_OF_MODEL = ("temperature", "top_p", "seed", "max_input_tokens", "max_output_tokens")
_TEXTS = ("model_id", "reasoning_effort", "parse_function")
_OF_TOOLS = {"execution_timeout": "execution_timeout_s", "total_execution_timeout": "total_execution_timeout_s"}
_NO_MODELS = frozenset(("replay", "human", "human_thought", "instant_empty_submit"))
"""Names under which SWE-agent lets something other than a model act."""


def knobs(config: dict[str, Any], attempt: int = 0) -> dict[str, Any]:
    """Return the treatment as configured. A limit of 0 means none (None). Null values were left to the provider and are
    left out."""
    agent = inside(config, "agent")
    several = [a for a in as_list(inside(agent, "agent_configs")) if isinstance(a, dict)]  # taken in turn
    retries = inside(agent, "retry_loop", "max_attempts")
    agent = several[attempt % len(several)] if several else agent
    model, settings = inside(agent, "model"), inside(agent, "tools")
    arguments = inside(model, "completion_kwargs")
    stated = {
        "model_id": inside(model, "name") or inside(model, "model_name"),
        **{limit: inside(model, limit) for limit in _LIMITS},
        **{n: value for at in (arguments, model) for n in _OF_MODEL if (value := inside(at, n)) is not None},
        "reasoning_effort": inside(arguments, "reasoning_effort"),
        "max_attempts": retries,
        **{ours: inside(settings, theirs) for theirs, ours in _OF_TOOLS.items()},
        "parse_function": inside(settings, "parse_function", "type"),
        "max_requeries": inside(agent, "max_requeries"),
    }
    treatment: dict[str, Any] = {"agent_type": "swe-agent"}
    for knob, value in stated.items():
        if isinstance(value, str if knob in _TEXTS else int | float) and not isinstance(value, bool):
            treatment[knob] = (value or None) if knob in _LIMITS else value
    bundles = [inside(bundle, "path") for bundle in as_list(inside(settings, "bundles"))]
    named = [posixpath.basename(path.rstrip("/")) for path in bundles if isinstance(path, str)]
    return treatment | ({"tools": named} if named else {})


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
        self._window = tools.Window()
        self._replies = [m for m in messages if m.role == "assistant" and not m.is_demonstration]
        self._next = 0
        self._messages = messages

    def read(self, steps: list[Step | None], stated: str | None) -> None:
        """Read the whole attempt. `stated`: the configured problem, in case the history was lost."""
        opening = self._messages
        if not opening and steps and steps[0] is not None:
            opening = prompt_of(steps[0])
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
            self.builder.unread(message.kinds, tools.PARTS, None)
            for call in (message.tool_calls or ())[1:]:  # of several the harness runs the first
                name = as_text(inside(call, "function", "name"))
                self.builder.event("unknown", f"another call, {name[:80] or 'without a name'}")
        if not steps:
            self._read_history()
            return
        states = [tools.state_of(s) if s is not None else ("", "") for s in steps]
        folders = [folder for folder, _ in states]
        self.builder.visits(f for f in folders if f)
        self.builder.where(next((f for f in folders if f), None))
        for n, step in enumerate(steps):
            self.builder.line = n + 1
            if step is None:
                continue
            if states[n][1] not in ("", _NO_FILE):
                self._window.open = states[n][1]
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
            last = next(reversed(prompt_of(after)), None)
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
        action = (tools.called(calls[0]) if calls else None) or tools.written(line)
        call_id = (as_text(calls[0].get("id")) if calls else "") or f"step-{builder.line}"
        path = action.path
        if path is None and action.name in tools.WINDOWED:
            path = self._window.open
        call = builder.call(
            call_id, action.name, action.arguments, action.tool, None, builder.session.steps[-1], path=path
        )
        status, error = tools.outcome(action, call, observation)
        if refused:
            status, error = "error", error or "other"
        if observation.startswith(_LISTING):
            call.class_ = "search"  # as of any tool that lists a folder: no file was read
        builder.result(call_id, observation, status, error=error)
        tools.record(builder, call, action, observation, self._window)

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
ENDINGS: dict[str, Ending] = {
    _OUT_OF_TIME: "time",
    "exit_command_timeout": "time",
    "exit_cost": "budget",
    "exit_context": "budget",
    "exit_api": "infrastructure",
    "exit_environment_error": "infrastructure",
    "exit_error": "infrastructure",
}


def read(inputs: list[Input]) -> Reading:
    """All files of a trial. A retrying run writes its attempts together and each in a folder: the first counts."""
    reading = Reading()
    several: set[str] = set()
    for source in sorted(inputs, key=lambda g: (attempt_of(g.artifact.path) is not None, g.artifact.path)):
        artifact = source.artifact
        document = read_document(source, decoder(Document).decode, "trajectory")
        if document is None:
            continue
        attempts = each(document.attempts or [], decoder(tools.Attempted).decode, artifact)
        tally(artifact, "attempt", [None if attempt is None else "of_several" for attempt in attempts])
        indexed: list[tuple[tools.Attempted, int | None, bool | None]] = [
            (attempt, n, n == len(attempts) - 1) for n, attempt in enumerate(attempts) if attempt is not None
        ]
        if not indexed:  # beside a list its best attempt stands again
            alone = tools.Attempted(document.trajectory or [], document.history or [], document.info)
            indexed = [(alone, attempt_of(artifact.path), None)]
        parts = [_attempt(source, document, *attempt) for attempt in indexed]
        told = decoded(document.info, Any)
        chosen, spent = inside(told, "best_attempt_idx"), inside(told, "rloop_model_stats")
        for _, part in parts if isinstance(chosen, int) else ():
            part.is_handed_in = part.attempt_index == chosen if len(parts) > 1 else None
            if part.attempt_index == chosen:  # reviewers and choosers are billed with the attempt that they took
                part.other_cost_usd = amount(inside(spent, "instance_cost")) or None
                part.other_input_tokens = count(inside(spent, "tokens_sent")) or None
                part.other_output_tokens = count(inside(spent, "tokens_received")) or None
        place = f"{root_of(artifact.path)}/{stem_of(artifact.path)}"
        if document.attempts:
            several.add(place)
        elif place in several and attempt_of(artifact.path) is not None:
            artifact.note = "an attempt of the trajectory above it, which counts"
            saw_again(artifact)
            continue
        for session, part in parts:
            reading.sessions.append(session)
            reading.attempts.append(part)
    return reading


def _attempt(
    source: Input, document: Document, attempt: tools.Attempted, index: int | None, is_last: bool | None
) -> tuple[Session, Attempt]:
    steps = each(attempt.trajectory, decoder(Step).decode, source.artifact)
    messages = each(attempt.history, decoder(Message).decode, source.artifact)
    kinds = [None if s is None else ("action" if as_text(s.action).strip() else "no_action") for s in steps]
    tally(source.artifact, "step", kinds)
    tally(source.artifact, "message", [None if m is None else m.type for m in messages])
    info = decoded(attempt.info, Any)
    config = tools.config_of(document.replay_config)
    treatment = knobs(config, index or 0)
    stated_id, problem = (string(inside(config, "problem_statement", name)) for name in ("id", "text"))
    named = as_text(document.environment)
    task = stated_id or (named if named not in _NO_INSTANCE else "") or stem_of(source.artifact.path)
    session = Session(
        session_id="", context="eval", format="swe-agent", agent="swe-agent", artifact_id=source.artifact.artifact_id
    )
    session.agent_version = string(inside(info, "swe_agent_version"))
    session.repo = repo_of(task)
    session.title = next((line.strip() for line in (problem or "").split("\n") if line.strip()), None)
    name = treatment.get("model_id")
    model = name if name not in _NO_MODELS else None  # a person or a recording acted
    builder = SessionBuilder(session, PROFILE)
    Conversation(builder, [m for m in messages if m is not None], model).read(steps, problem)
    builder.finish()
    session.model = model
    if index is not None:
        session.session_id = f"{canonical(task)}/{index}~{source.artifact.artifact_id}"
    goes_by, exit_status = run_of(source.artifact.path), string(inside(info, "exit_status"))
    sent, received, cost = (
        inside(info, "model_stats", name) for name in ("tokens_sent", "tokens_received", "instance_cost")
    )
    part = Attempt(
        root=root_of(source.artifact.path), attempt_index=index, is_last=is_last, task_id=canonical(task),
        run_id=goes_by.rpartition("/")[0] if goes_by is not None else None, goes_by=goes_by, knobs=treatment,
        session_id=session.session_id or None, session_artifact=session.artifact_id, exit_status=exit_status,
        input_tokens=count(sent) or None, output_tokens=count(received) or None, cost_usd=amount(cost) or None,
    )  # fmt: skip
    part.statements = source.states(_listed("configured", treatment), [f"knobs.{knob}" for knob in treatment])
    line, submission = max(len(steps), 1), as_text(inside(info, "submission")).replace("\r\n", "\n")
    if looks_like_diff(submission):
        part.patch, part.patch_text_bytes = patched_files(submission), len(submission.encode("utf-8", "replace"))
    elif exit_status is not None and not submission.strip():
        part.patch, part.patch_text_bytes = [], 0
    if exit_status is not None:
        # What was there when the run broke off is submitted all the same: `submitted (exit_cost)`.
        part.ending, part.timed_out = ENDINGS.get(exit_status, "finished"), _OUT_OF_TIME in exit_status
        text, fields = f"exit status {exit_status}", ["exit_status", "timed_out"]
        if part.patch is not None:
            names = ", ".join(posixpath.normpath(f.path) for f in part.patch)
            text, fields = f"{text}, submitted {names or 'nothing'}", [*fields, "patch"]
        part.statements += source.states(text, fields, line)
    usage = {n: v for n in ("input_tokens", "output_tokens", "cost_usd") if (v := getattr(part, n)) is not None}
    if usage:
        part.statements += source.states(_listed("model stats", usage), usage, line)
    return session, part


def _listed(what: str, facts: dict[str, Any]) -> str:
    return f"{what}: " + ", ".join(f"{name} {value}" for name, value in facts.items())
