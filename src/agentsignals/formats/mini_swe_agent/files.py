"""mini-SWE-agent trajectories, each an attempt with its session."""

from __future__ import annotations

from typing import Any

from agentsignals.edits.unified_diff import looks_like_diff, patched_files
from agentsignals.formats import Input, Reading
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.figures import amount, number
from agentsignals.formats.instances import canonical, of_submission, repo_of, root_of, run_of, run_of_model, stem_of
from agentsignals.formats.mini_swe_agent.profile import PROFILE
from agentsignals.formats.mini_swe_agent.records import Document, Info, Message, decode, decode_message
from agentsignals.formats.mini_swe_agent.session import Conversation
from agentsignals.formats.one_document import each, tally
from agentsignals.formats.one_document import read as read_document
from agentsignals.model import Session
from agentsignals.model.attempt import Attempt, Ending, Statement

_ENDINGS: dict[str, Ending] = {
    "LimitsExceeded": "budget",
    "TimeExceeded": "time",
    "ContextWindowExceededError": "budget",
    "FormatError": "finished",
    "RepeatedFormatError": "finished",
}
_LIMITS = ("step_limit", "cost_limit", "wall_time_limit_seconds")
"""Of these 0 means none."""
_BROKEN_OFF = ("Error", "Exception", "Timeout", "Interrupt", "Interruption")
"""How the names of exceptions end that are the provider's, the environment's, or of who stopped it."""
_OF_MODEL = ("temperature", "top_p", "seed", "max_tokens")


def read(inputs: list[Input]) -> Reading:
    """Each file is an attempt of its own."""
    reading = Reading()
    for source in inputs:
        document = read_document(source, decode, "messages")
        if document is None:
            continue
        messages = each(document.messages, decode_message, source.artifact)
        tally(source.artifact, "message", [None if m is None else m.speaker for m in messages])
        session, part = _attempt(source, document, messages)
        reading.sessions.append(session)
        reading.attempts.append(part)
    return reading


def _attempt(source: Input, document: Document, messages: list[Message | None]) -> tuple[Session, Attempt]:
    path, info = source.artifact.path, document.info or Info()
    set_to, observed = knobs(info)
    model = set_to.get("model_id")
    instance = _text(document.instance_id) or stem_of(path)
    session = Session(
        session_id="",
        context="eval",
        format="mini-swe-agent",
        agent="mini-swe-agent",
        artifact_id=source.artifact.artifact_id,
    )
    session.agent_version, session.repo = _text(info.mini_version) or None, repo_of(instance)
    builder = SessionBuilder(session, PROFILE)
    builder.where(observed)
    conversation = Conversation(builder, model if isinstance(model, str) else None)
    for n, message in enumerate(messages, 1):
        builder.line = n
        if message is not None:
            conversation.take(message)
    builder.finish()
    goes_by = _name(path, model)
    part = Attempt(
        root=root_of(path),
        task_id=canonical(instance),
        run_id=(run_of(path) or "").rpartition("/")[0] or None,
        goes_by=goes_by,
        session_artifact=session.artifact_id,
        knobs=set_to,
        started_at=session.started_at,
        ended_at=session.ended_at,
    )
    _end(part, info, conversation, max(len(messages), 1))
    return session, part


def knobs(info: Info) -> tuple[dict[str, Any], str | None]:
    """The treatment as configured, and the working folder. A limit of 0 is none (None)."""
    config = info.config if isinstance(info.config, dict) else {}
    agent, model, environment = (_inner(config, name) for name in ("agent", "model", "environment"))
    treatment: dict[str, Any] = {"agent_type": "mini-swe-agent"}
    name = model.get("model_name")
    if isinstance(name, str) and name:
        treatment["model_id"] = name
    for limit in _LIMITS:
        if number(agent.get(limit)) is not None:
            treatment["timeout_s" if limit == "wall_time_limit_seconds" else limit] = agent[limit] or None
    kwargs = _inner(model, "model_kwargs")
    treatment.update({k: kwargs[k] for k in _OF_MODEL if number(kwargs.get(k)) is not None})
    if isinstance(kwargs.get("reasoning_effort"), str):
        treatment["reasoning_effort"] = kwargs["reasoning_effort"]
    if number(environment.get("timeout")) is not None:
        treatment["execution_timeout_s"] = environment["timeout"]
    return treatment, _text(environment.get("cwd")) or None


def _name(path: str, model: object) -> str | None:
    """What an evaluation calls the trial: its folders are named for the model (`provider__name`), else for the run."""
    run = run_of(path)
    if run is None or of_submission(path) or not isinstance(model, str):
        return run
    return run_of_model(model, run.rpartition("/")[2])


def _end(part: Attempt, info: Info, conversation: Conversation, line: int) -> None:
    """How the attempt ended, what it handed in, and what it cost."""
    ended = conversation.ended
    artifact_id = part.session_artifact or ""
    status = _text(info.exit_status) or (_text(ended.exit_status) if ended is not None else "")
    handed_in = _text(info.submission) or _text(info.result)
    if not handed_in and ended is not None:
        handed_in = _text(ended.submission)
    if not handed_in and not status:
        handed_in = conversation.handed_in
    fields = ["exit_status", "timed_out"]
    part.exit_status = status or None
    part.ending = _ending(status) if status else None
    part.timed_out = status == "TimeExceeded" if status else None
    if looks_like_diff(handed_in):
        part.patch, part.patch_text_bytes = patched_files(handed_in), len(handed_in.encode("utf-8", "replace"))
    elif status and not handed_in.strip():
        part.patch, part.patch_text_bytes = [], 0
    text = f"exit status {status or 'unknown'}"
    if part.patch is not None:
        text, fields = f"{text}, submitted {', '.join(f.path for f in part.patch) or 'nothing'}", [*fields, "patch"]
    if status or part.patch is not None:
        part.statements.append(Statement(text=text, artifact_id=artifact_id, line=line, fields=fields))
    set_to = ", ".join(f"{k} {v}" for k, v in part.knobs.items())
    part.statements.append(
        Statement(
            text=f"configured: {set_to}", artifact_id=artifact_id, line=1, fields=[f"knobs.{k}" for k in part.knobs]
        )
    )
    cost = amount(info.model_stats.instance_cost) if info.model_stats is not None else None
    if cost:  # 0 is what a model without a price costs
        part.cost_usd = cost
        part.statements.append(
            Statement(text=f"model stats: cost_usd {cost}", artifact_id=artifact_id, line=line, fields=["cost_usd"])
        )


def _ending(status: str) -> Ending:
    """By the exit status: a limit's, or the name of the exception that ended it."""
    if status in _ENDINGS:
        return _ENDINGS[status]
    return "infrastructure" if status.endswith(_BROKEN_OFF) else "finished"


def _inner(of: dict[str, Any], name: str) -> dict[str, Any]:
    value = of.get(name)
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
