"""Reads an episode of the lab's retry loop: its attempts as sessions of one trial, each with verdict and treatment."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct, field

from agentsignals.formats import Input, Reading
from agentsignals.formats import records as recs
from agentsignals.formats.builder import SessionBuilder
from agentsignals.model import Attempt, Session, Statement, Step, Verification, logged_iso

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
    """Scores of an answer; the other columns are in `more`."""

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
    trials: set[str] = set()
    for source in sorted(inputs, key=lambda i: (-len(i.data), i.artifact.artifact_id)):
        header, raw_header, tries = _records(source)
        trial = header.trial_id or source.artifact.artifact_id
        if trial in trials:
            source.artifact.record_kinds["repeated"] = source.artifact.records - source.artifact.skipped
            continue
        trials.add(trial)
        for number, attempt in enumerate(tries):
            session = _session(source, header, trial, number, attempt)
            reading.sessions.append(session)
            reading.attempts.append(_attempt(source, header, raw_header, trial, number, attempt, session))
    return reading


def _records(source: Input) -> tuple[Header, dict[str, Any], list[Try]]:
    """The header, as it is read and as it is written, and the attempts."""
    artifact = source.artifact
    header, raw_header, tries = Header(), {}, [Try()]
    for line, record in recs.lines(source.data, artifact, _decode):
        kind = next((k for k in ("agentsignals_lab", "message", "attempt", "final") if k in record), None)
        try:
            if kind == "agentsignals_lab":
                header, raw_header = msgspec.convert(record, Header), record
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
    return (
        header,
        raw_header,
        [attempt for attempt in tries if attempt.answer is not None or attempt.scores is not None],
    )


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


def _session(source: Input, header: Header, trial: str, number: int, attempt: Try) -> Session:
    """One attempt. What begins it is the harness's prompt; system words are meta."""
    artifact_id = source.artifact.artifact_id
    session = Session(
        session_id=f"{trial}#{_index(attempt, number)}",
        context="eval",
        format="lab-retry",
        agent=AGENT,
        artifact_id=artifact_id,
    )
    session.model, session.title = _word(header.model.get("name")), _word(header.task.get("key"))
    builder = SessionBuilder(session)
    for line, message in attempt.before:
        builder.line = line
        if message.speaker == "user":
            builder.turn("prompt", _text(message), None)
        else:
            builder.event("meta", _text(message))
    if attempt.answer is not None:
        builder.line, message = attempt.answer
        step = builder.step(None, session.model, None)
        _bill(step, attempt.scores)
        builder.event("text", _text(message), None, step)
    finished = builder.finish()
    # Of the run: an episode has no clock, and what is not said is not made up.
    finished.started_at = logged_iso(header.started_at)
    return finished


def _bill(step: Step, scores: Scores | None) -> None:
    if scores is None:
        return
    step.input_tokens, step.output_tokens, step.stop_reason = scores.prompt_tokens, scores.tokens, scores.finish


def _index(attempt: Try, number: int) -> int:
    return attempt.scores.attempt if attempt.scores is not None and attempt.scores.attempt >= 0 else number


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _attempt(  # noqa: PLR0913  (a part has these facts)
    source: Input, header: Header, raw_header: dict[str, Any], trial: str, number: int, attempt: Try, session: Session
) -> Attempt:
    part = Attempt(root=f"lab:{trial}", trial_id=trial, attempt_index=_index(attempt, number))
    part.task_id, part.run_id = _word(header.task.get("key")), _word(header.run_id)
    part.session_id, part.session_artifact = session.session_id, source.artifact.artifact_id
    part.knobs = _knobs(header, raw_header)
    part.kinds = ["attempt_log", "harness_config"]
    scores = attempt.scores
    if scores is not None:
        part.rewards = _rewards(scores) or None
        part.reward = part.rewards.get("task") if part.rewards else None
        part.verification = _verification(scores)
        part.exit_status = "token_limit" if scores.finish == "length" else scores.finish
        part.ratings = {name: value for name, value in attempt.rated.items() if value is not None} or None
    part.statements = _statements(source.artifact.artifact_id, part, attempt)
    return part


def _knobs(header: Header, raw_header: dict[str, Any]) -> dict[str, Any]:
    """The treatment: the condition, how the model was loaded and asked, under Agent Signals's names where it has
    them."""
    settings: dict[str, Any] = {"agent_type": AGENT, "model_id": header.model.get("name")}
    settings |= {_RENAMED.get(name, name): value for name, value in header.condition.items()}
    settings |= {name: raw_header.get(name) for name in _KNOBS}
    settings |= {f"model_{name}": header.model.get(name) for name in ("revision", "dtype")}
    return {name: _plain(value) for name, value in settings.items() if value is not None and value != []}


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool) else msgspec.json.encode(value).decode()[:200]


def _rewards(scores: Scores) -> dict[str, float]:
    """Passes as numbers; where the machine could not run the code there are none."""
    passes = {"visible": scores.visible_pass, "hidden": scores.hidden_pass, "task": scores.full_pass}
    return {name: float(value) for name, value in passes.items() if value is not None}


def _verification(scores: Scores) -> Verification | None:
    """The two suites as two tests: which of their cases failed is not told."""
    suites = {"visible cases": scores.visible_pass, "hidden cases": scores.hidden_pass}
    results = {name: passed for name, passed in suites.items() if passed is not None}
    message = "" if scores.visible_pass else scores.error or ""
    if not results:
        return Verification(status="crashed", message=scores.error or "") if scores.error else None
    return Verification(
        passed=[name for name, passed in results.items() if passed],
        failed=[name for name, passed in results.items() if not passed],
        message=message,
    )


def _statements(artifact_id: str, part: Attempt, attempt: Try) -> list[Statement]:
    settings = ", ".join(f"{name} {value}" for name, value in part.knobs.items())
    statements = [
        Statement(text=settings, artifact_id=artifact_id, line=1, fields=[f"knobs.{name}" for name in part.knobs])
    ]
    if attempt.scores is None:
        return statements
    s = attempt.scores
    cases = f"visible cases {_of(s.visible_passed, s.n_visible)}, hidden cases {_of(s.hidden_passed, s.n_hidden)}"
    text = f"{cases}: {s.error}" if s.error else cases
    fields = ["reward", "rewards", "verification", "exit_status", "ratings"]
    return [*statements, Statement(text=text, artifact_id=artifact_id, line=attempt.line, fields=fields)]


def _of(passed: int | None, n: int | None) -> str:
    return "unknown" if passed is None or n is None else f"{passed} of {n}"
