"""Reads episodes of the lab's retry loop."""

from typing import Any

import msgspec
from msgspec import Struct

from agentsignals.formats import Input, Reading
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.lab import AGENT, MARK
from agentsignals.formats.profile import Profile
from agentsignals.formats.records import convert_leniently, decoder, lines, saw, skip, string
from agentsignals.model import Attempt, Session, Statement, Step, Verification, logged_iso

_RENAMED = {"name": "condition", "where": "steered_at", "layers": "steered_layers"}
"""Parts of a condition whose own names mean nothing beside other harnesses' knobs."""


class Piece(Struct, gc=False):
    text: str = ""


class Message(Struct, gc=False):
    speaker: str
    pieces: list[Piece] = []

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)


class Header(Struct, kw_only=True):
    trial_id: str | None = None
    run_id: str | None = None
    started_at: str | None = None
    model: dict[str, Any] = {}
    condition: dict[str, Any] = {}
    task: dict[str, Any] = {}


class Scores(Struct, kw_only=True):
    """Scores of an answer. Its further columns are judgements."""

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


class Try(Struct):
    builder: SessionBuilder
    answer: Step | None = None
    scores: Scores | None = None
    logged: dict[str, Any] = {}
    line: int = 0


_KINDS = ("message", "attempt", "final")
"""Fields that name the kind of a record, besides the mark of a header."""
_SETTINGS = ("seed", "evaluator", "tier", "wording", "max_attempts", "temperature", "top_p", "max_new_tokens")
"""Fields of the header that are knobs."""
_RATED = (
    "valid_python", "hardcoded", "imports_missing", "off_task", "writes_tests", "test_mentions_per_100_words",
    "marker_score", "frustration_per_100_words", "desperation_per_100_words", "give_up_per_100_words", "error_class",
)  # fmt: skip
"""Scores that are ratings. Older runs have more of them."""


class RetryEpisode:
    """One file, read record by record by the method of its kind. Each attempt is a session of the trial."""

    def __init__(self, source: Input) -> None:
        self.source, self.artifact = source, source.artifact
        self.trial = source.artifact.artifact_id
        self.line = 0
        self.described = Header()
        self.knobs: dict[str, Any] = {"agent_type": AGENT}
        self.tries = [Try(self.begin())]

    @classmethod
    def read(cls, inputs: list[Input]) -> Reading:
        """Read the sessions and attempts of all episodes. Of copies of one the longest counts."""
        reading = Reading()
        trials: set[str] = set()
        for source in sorted(inputs, key=lambda i: (-len(i.data), i.artifact.artifact_id)):
            episode = cls(source)
            episode.take()
            if episode.trial in trials:
                source.artifact.record_kinds["repeated"] = source.artifact.records - source.artifact.skipped
                continue
            trials.add(episode.trial)
            for session, attempt in episode.attempts():
                reading.sessions.append(session)
                reading.attempts.append(attempt)
        return reading

    def take(self) -> None:
        for number, record in lines(self.source.data, self.artifact, decoder(dict[str, Any]).decode):
            self.line = number
            kind = next((kind for kind in (MARK, *_KINDS) if kind in record), None)
            name = "header" if kind == MARK else kind
            try:
                if name is not None:
                    getattr(self, name)(record)
            except msgspec.ValidationError:
                name = None
            if name is None:
                skip(self.artifact, "bad_shape")
            else:
                saw(self.artifact, name)

    def header(self, record: dict[str, Any]) -> None:
        """Read the treatment: the condition, and how the model was loaded and asked."""
        header = self.described = convert_leniently(record, Header, self.artifact)
        self.trial = header.trial_id or self.trial
        settings = {"agent_type": AGENT, "model_id": header.model.get("name")}
        settings |= {_RENAMED.get(name, name): value for name, value in header.condition.items()}
        settings |= {name: record.get(name) for name in _SETTINGS}
        settings |= {f"model_{name}": header.model.get(name) for name in ("revision", "dtype")}
        self.knobs = {
            name: value if isinstance(value, str | int | float | bool) else msgspec.json.encode(value).decode()[:200]
            for name, value in settings.items()
            if value is not None and value != []
        }

    def begin(self) -> SessionBuilder:
        """Begin a session of the trial. The header may be missing, so `finish` names it."""
        session = Session(
            session_id="", context="eval", format=AGENT, agent=AGENT, artifact_id=self.artifact.artifact_id
        )
        return SessionBuilder(session, Profile())

    @property
    def model(self) -> str | None:
        return string(self.described.model.get("name"))

    def finish(self, builder: SessionBuilder, attempt: Attempt, session_id: str) -> tuple[Session, Attempt]:
        """Close a session and its attempt. An episode has no clock: its time is that of the run."""
        header, session = self.described, builder.finish()
        session.session_id, session.model, session.title = session_id, self.model, string(header.task.get("key"))
        session.started_at = logged_iso(header.started_at)
        attempt.task_id, attempt.run_id = session.title, string(header.run_id)
        attempt.session_id, attempt.session_artifact = session_id, self.artifact.artifact_id
        return session, attempt

    def state(self, attempt: Attempt, text: str, fields: list[str], line: int) -> None:
        attempt.statements.append(Statement(text=text, artifact_id=self.artifact.artifact_id, line=line, fields=fields))

    def configure(self, attempt: Attempt) -> None:
        attempt.knobs = dict(self.knobs)
        attempt.kinds.append("harness_config")
        text = ", ".join(f"{name} {value}" for name, value in self.knobs.items())
        self.state(attempt, text, [f"knobs.{name}" for name in self.knobs], 1)

    def judge(self, attempt: Attempt, passes: dict[str, bool | None], scores: dict[str, Any]) -> None:
        """Set rewards and ratings. There are none of what the machine could not run."""
        attempt.rewards = {name: float(passed) for name, passed in passes.items() if passed is not None} or None
        attempt.reward = attempt.rewards.get("task") if attempt.rewards else None
        ratings = {name: scores.get(name) for name in _RATED}
        attempt.ratings = {name: value for name, value in ratings.items() if value is not None} or None

    def message(self, record: dict[str, Any]) -> None:
        """Read a message. What follows an answer begins the next attempt."""
        message = convert_leniently(record["message"], Message, self.artifact)
        if self.tries[-1].answer is not None:
            self.tries.append(Try(self.begin()))
        builder = self.tries[-1].builder
        builder.line = self.line
        if message.speaker == "assistant":
            self.tries[-1].answer = step = builder.step(None, self.model, None)
            builder.event("text", message.text, None, step)
        elif message.speaker == "user":
            builder.turn("prompt", message.text)
        else:
            builder.event("meta", message.text)

    def attempt(self, record: dict[str, Any]) -> None:
        last, scores = self.tries[-1], record["attempt"]
        last.scores, last.logged, last.line = convert_leniently(scores, Scores, self.artifact), scores, self.line

    def final(self, record: dict[str, Any]) -> None:
        """Skip the verdict: the attempts have it."""

    def attempts(self) -> list[tuple[Session, Attempt]]:
        read = [attempt for attempt in self.tries if attempt.answer is not None or attempt.scores is not None]
        return [self._attempt(number, attempt) for number, attempt in enumerate(read)]

    def _attempt(self, number: int, attempt: Try) -> tuple[Session, Attempt]:
        scores, step = attempt.scores, attempt.answer
        index = scores.attempt if scores is not None and scores.attempt >= 0 else number
        part = Attempt(root=f"lab:{self.trial}", trial_id=self.trial, attempt_index=index, kinds=["attempt_log"])
        self.configure(part)
        if scores is not None:
            if step is not None:
                step.input_tokens, step.output_tokens = scores.prompt_tokens, scores.tokens
                step.stop_reason = scores.finish
            passes = {"visible": scores.visible_pass, "hidden": scores.hidden_pass, "task": scores.full_pass}
            self.judge(part, passes, attempt.logged)
            error = scores.error or ""
            part.verification = verification(passes, "" if scores.visible_pass else error)
            if part.verification is None and error:
                part.verification = Verification(status="crashed", message=error)
            part.exit_status = "token_limit" if scores.finish == "length" else scores.finish
            visible = _of(scores.visible_passed, scores.n_visible)
            cases = f"visible cases {visible}, hidden cases {_of(scores.hidden_passed, scores.n_hidden)}"
            fields = ["reward", "rewards", "verification", "exit_status", "ratings"]
            self.state(part, f"{cases}: {error}" if error else cases, fields, attempt.line)
        return self.finish(attempt.builder, part, f"{self.trial}#{index}")


def verification(passes: dict[str, bool | None], message: str) -> Verification | None:
    """Return the two suites as two tests. Which of their own failed is not logged."""
    results = {f"{name} cases": passes[name] for name in ("visible", "hidden") if passes[name] is not None}
    if not results:
        return None
    return Verification(
        passed=[name for name, passed in results.items() if passed],
        failed=[name for name, passed in results.items() if not passed],
        message=message,
    )


def _of(passed: int | None, n: int | None) -> str:
    return "unknown" if passed is None or n is None else f"{passed} of {n}"


read_retry = RetryEpisode.read
