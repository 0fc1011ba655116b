"""Reads an episode of the lab's retry loop: its attempts as sessions of one trial, each with verdict and treatment."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct, field

from agentsignals.formats import Input, Reading
from agentsignals.formats import records as recs
from agentsignals.formats.builder import SessionBuilder
from agentsignals.model import Session, Step
from agentsignals.model.attempt import Attempt, Said, Verification
from agentsignals.model.times import logged_iso

AGENT = "lab-retry"
_RENAMED = {"name": "condition", "where": "steered_at", "layers": "steered_layers"}
"""Parts of a condition whose own names mean nothing beside other harnesses' knobs."""
_KNOBS = ("seed", "evaluator", "tier", "wording", "max_attempts", "temperature", "top_p", "max_new_tokens")
_RATED = (
    "valid_python", "hardcoded", "imports_missing", "off_task", "writes_tests", "test_mentions_per_100_words",
    "marker_score", "frustration_per_100_words", "desperation_per_100_words", "give_up_per_100_words", "error_class",
)  # fmt: skip


class Piece(Struct, gc=False):
    role: str = ""
    text: str = ""


class Message(Struct, gc=False):
    speaker: str
    pieces: list[Piece] = []


class Scores(Struct, kw_only=True):
    """What became of an answer; the rest of its columns stand in `more`."""

    attempt: int
    prompt_tokens: int | None = None
    tokens: int | None = None
    finish: str | None = None
    error: str | None = None
    visible_pass: bool | None = None
    hidden_pass: bool | None = None
    full_pass: bool | None = None
    visible_passed: int | None = None
    n_visible: int | None = None
    hidden_passed: int | None = None
    n_hidden: int | None = None


class Header(Struct, kw_only=True):
    trial_id: str | None = None
    run_id: str | None = None
    started_at: str | None = None
    model: dict[str, Any] = {}
    condition: dict[str, Any] = {}
    task: dict[str, Any] = {}


class Try(Struct):
    """An attempt as it is read: what began it, its answer, its scores."""

    before: list[tuple[int, Message]] = field(default_factory=list)
    answer: tuple[int, Message] | None = None
    line: int = 0
    scores: Scores | None = None
    rated: dict[str, Any] = field(default_factory=dict)


_decode = msgspec.json.Decoder(dict[str, Any]).decode


def read(inputs: list[Input]) -> Reading:
    """Sessions and attempts of all episodes; of copies of one, the longest."""
    reading = Reading()
    known: set[str] = set()
    for given in sorted(inputs, key=lambda i: (-len(i.data), i.artifact.artifact_id)):
        header, told, tries = _records(given)
        trial = header.trial_id or given.artifact.artifact_id
        if trial in known:
            given.artifact.record_kinds["repeated"] = given.artifact.records - given.artifact.skipped
            continue
        known.add(trial)
        for number, one in enumerate(tries):
            session = _session(given, header, trial, number, one)
            reading.sessions.append(session)
            reading.attempts.append(_attempt(given, header, told, trial, number, one, session))
    return reading


def _records(given: Input) -> tuple[Header, dict[str, Any], list[Try]]:
    """The header, as it is read and as it is written, and the attempts."""
    artifact = given.artifact
    header, told, tries = Header(), {}, [Try()]
    for line, record in recs.lines(given.data, artifact, _decode):
        kind = next((k for k in ("agentsignals_lab", "message", "attempt", "final") if k in record), None)
        try:
            if kind == "agentsignals_lab":
                header, told = msgspec.convert(record, Header), record
            elif kind == "message":
                _take(tries, line, msgspec.convert(record["message"], Message))
            elif kind == "attempt":
                tries[-1].scores, tries[-1].line = msgspec.convert(record["attempt"], Scores), line
                tries[-1].rated = {name: record["attempt"].get(name) for name in _RATED}
        except msgspec.ValidationError:
            recs.skip(artifact, "bad_shape")
            continue
        if kind is None:
            recs.skip(artifact, "bad_shape")
        else:
            recs.saw(artifact, "header" if kind == "agentsignals_lab" else kind)
    return header, told, [one for one in tries if one.answer is not None or one.scores is not None]


def _take(tries: list[Try], line: int, message: Message) -> None:
    last = tries[-1]
    if message.speaker == "assistant":
        if last.answer is not None:  # the scores of the one before were lost
            tries.append(last := Try())
        last.answer = (line, message)
        return
    if last.answer is not None:
        tries.append(last := Try())
    last.before.append((line, message))


def _text(message: Message) -> str:
    return "".join(piece.text for piece in message.pieces)


def _session(given: Input, header: Header, trial: str, number: int, one: Try) -> Session:
    """One attempt. What begins it is the harness's prompt; system words are meta."""
    artifact_id = given.artifact.artifact_id
    session = Session(
        session_id=f"{trial}#{_index(one, number)}",
        context="eval",
        format="lab-retry",
        agent=AGENT,
        artifact_id=artifact_id,
    )
    session.model, session.title = _word(header.model.get("name")), _word(header.task.get("key"))
    builder = SessionBuilder(session)
    for line, message in one.before:
        builder.line = line
        if message.speaker == "user":
            builder.turn("prompt", _text(message), None)
        else:
            builder.event("meta", _text(message))
    if one.answer is not None:
        builder.line, message = one.answer
        step = builder.step(None, session.model, None)
        _bill(step, one.scores)
        builder.event("text", _text(message), None, step)
    finished = builder.finish()
    # Of the run: an episode has no clock, and what is not said is not made up.
    finished.started_at = logged_iso(header.started_at)
    return finished


def _bill(step: Step, scores: Scores | None) -> None:
    if scores is None:
        return
    step.input_tokens, step.output_tokens, step.stop_reason = scores.prompt_tokens, scores.tokens, scores.finish


def _index(one: Try, number: int) -> int:
    return one.scores.attempt if one.scores is not None and one.scores.attempt >= 0 else number


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _attempt(  # noqa: PLR0913  (a part has these facts)
    given: Input, header: Header, told: dict[str, Any], trial: str, number: int, one: Try, session: Session
) -> Attempt:
    part = Attempt(root=f"lab:{trial}", trial_id=trial, attempt_index=_index(one, number))
    part.task_id, part.run_id = _word(header.task.get("key")), _word(header.run_id)
    part.session_id, part.session_artifact = session.session_id, given.artifact.artifact_id
    part.knobs = _knobs(header, told)
    part.kinds = ["attempt_log", "harness_config"]
    scores = one.scores
    if scores is not None:
        part.rewards = _rewards(scores) or None
        part.reward = part.rewards.get("task") if part.rewards else None
        part.verification = _verification(scores)
        part.exit_status = "token_limit" if scores.finish == "length" else scores.finish
        part.ratings = {name: value for name, value in one.rated.items() if value is not None} or None
    part.said = _said(given.artifact.artifact_id, part, one)
    return part


def _knobs(header: Header, told: dict[str, Any]) -> dict[str, Any]:
    """The treatment: the condition, how the model was loaded and asked, under Agent Signals's names where it has
    them."""
    found: dict[str, Any] = {"agent_type": AGENT, "model_id": header.model.get("name")}
    found |= {_RENAMED.get(name, name): value for name, value in header.condition.items()}
    found |= {name: told.get(name) for name in _KNOBS}
    found |= {f"model_{name}": header.model.get(name) for name in ("revision", "dtype")}
    return {name: _plain(value) for name, value in found.items() if value is not None and value != []}


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool) else msgspec.json.encode(value).decode()[:200]


def _rewards(scores: Scores) -> dict[str, float]:
    """Passes as numbers; where the machine could not run the code there are none."""
    told = {"visible": scores.visible_pass, "hidden": scores.hidden_pass, "task": scores.full_pass}
    return {name: float(value) for name, value in told.items() if value is not None}


def _verification(scores: Scores) -> Verification | None:
    """The two suites as two tests: which of their cases failed is not told."""
    suites = {"visible cases": scores.visible_pass, "hidden cases": scores.hidden_pass}
    known = {name: passed for name, passed in suites.items() if passed is not None}
    message = "" if scores.visible_pass else scores.error or ""
    if not known:
        return Verification(status="crashed", message=scores.error or "") if scores.error else None
    return Verification(
        passed=[name for name, passed in known.items() if passed],
        failed=[name for name, passed in known.items() if not passed],
        message=message,
    )


def _said(artifact_id: str, part: Attempt, one: Try) -> list[Said]:
    settings = ", ".join(f"{name} {value}" for name, value in part.knobs.items())
    said = [Said(text=settings, artifact_id=artifact_id, line=1, fields=[f"knobs.{name}" for name in part.knobs])]
    if one.scores is None:
        return said
    s = one.scores
    told = f"visible cases {_of(s.visible_passed, s.n_visible)}, hidden cases {_of(s.hidden_passed, s.n_hidden)}"
    text = f"{told}: {s.error}" if s.error else told
    fields = ["reward", "rewards", "verification", "exit_status", "ratings"]
    return [*said, Said(text=text, artifact_id=artifact_id, line=one.line, fields=fields)]


def _of(passed: int | None, n: int | None) -> str:
    return "unknown" if passed is None or n is None else f"{passed} of {n}"
