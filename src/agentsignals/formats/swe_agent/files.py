"""The SWE-agent trajectories of a trial's folder, each attempt a session with what the harness knows of it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Any

from msgspec import Raw, Struct

from agentsignals.edits.unified_diff import looks_like_diff, patched_files
from agentsignals.formats import Input, Reading
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.figures import amount, count
from agentsignals.formats.instances import attempt_of, canonical, repo_of, root_of, run_of, stem_of
from agentsignals.formats.one_document import each, saw_again, tally
from agentsignals.formats.one_document import read as read_document
from agentsignals.formats.swe_agent import records
from agentsignals.formats.swe_agent.config import knobs, model_of, problem
from agentsignals.formats.swe_agent.profile import PROFILE
from agentsignals.formats.swe_agent.records import Document, Info, Message, Step, as_text
from agentsignals.formats.swe_agent.session import Conversation
from agentsignals.model import Session
from agentsignals.model.attempt import Attempt, Ending, Statement

_NO_INSTANCE = frozenset(("", "swe_main", "main"))
"""What `environment` says when it does not name the instance."""
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
    tally(source.artifact, "step", [None if s is None else _kind(s) for s in read_steps])
    tally(source.artifact, "message", [None if m is None else m.type for m in read_messages])
    return read_steps, [m for m in read_messages if m is not None]


def _kind(step: Step) -> str:
    return "action" if as_text(step.action).strip() else "no_action"


def _attempt(run: _Run) -> tuple[Session, Attempt]:
    source, info = run.source, run.info
    config = records.config_of(run.document.replay_config)
    set_to = knobs(config, run.index or 0)
    stated_id, stated = problem(config)
    task = _task(run, stated_id)
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


def _task(run: _Run, stated_id: str | None) -> str:
    named = as_text(run.document.environment)
    return stated_id or (named if named not in _NO_INSTANCE else "") or stem_of(run.source.artifact.path)


def _part(run: _Run, session: Session, task: str, set_to: dict[str, Any]) -> Attempt:
    path, info, stats = run.source.artifact.path, run.info, run.info.model_stats or records.ModelStats()
    exit_status = as_text(info.exit_status) or None
    goes_by = run_of(path)
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
        ending=_ending(exit_status) if exit_status is not None else None,
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


def _ending(status: str) -> Ending:
    """By the exit status. What was there when the run broke off is submitted all the same: `submitted (exit_cost)`."""
    return _ENDINGS.get(status, "finished")


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
