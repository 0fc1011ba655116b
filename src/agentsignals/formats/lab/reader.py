"""Reads episodes of the lab: an agent on a repository here, and what its retry loop logs in the same way."""

from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from agentsignals.changes.hunks import of_whole_file, unified
from agentsignals.changes.patches import patched_files
from agentsignals.formats import Input, Reading
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.documents import string
from agentsignals.formats.lab import PROFILE, REPOSITORY_MARK, RETRY_MARK
from agentsignals.formats.profile import Profile
from agentsignals.formats.records import convert_leniently, decoder, lines, saw, skip
from agentsignals.model import Attempt, CallStatus, Session, Statement, Step, Verification, logged_iso

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


class Episode:
    """One file, read record by record by the method of its kind."""

    agent: ClassVar[str]
    mark: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]
    """Fields that name the kind of a record, besides the mark of a header."""
    settings: ClassVar[tuple[str, ...]]
    """Fields of the header that are knobs."""
    rated: ClassVar[tuple[str, ...]]
    """Scores that are ratings."""

    def __init__(self, source: Input) -> None:
        self.source, self.artifact = source, source.artifact
        self.trial = source.artifact.artifact_id
        self.line = 0
        self.described = Header()
        self.knobs: dict[str, Any] = {"agent_type": self.agent}

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
            kind = next((kind for kind in (self.mark, *self.kinds) if kind in record), None)
            name = "header" if kind == self.mark else kind
            try:
                if name is not None:
                    getattr(self, name)(record)
            except msgspec.ValidationError:
                name = None
            if name is None:
                skip(self.artifact, "bad_shape")
            else:
                saw(self.artifact, name)

    def attempts(self) -> list[tuple[Session, Attempt]]:
        """Return each attempt of the episode with its session."""
        raise NotImplementedError

    def header(self, record: dict[str, Any]) -> None:
        """Read the treatment: the condition, and how the model was loaded and asked."""
        header = self.described = convert_leniently(record, Header, self.artifact)
        self.trial = header.trial_id or self.trial
        settings = {"agent_type": self.agent, "model_id": header.model.get("name")}
        settings |= {_RENAMED.get(name, name): value for name, value in header.condition.items()}
        settings |= {name: record.get(name) for name in self.settings}
        settings |= {f"model_{name}": header.model.get(name) for name in ("revision", "dtype")}
        self.knobs = {
            name: value if isinstance(value, str | int | float | bool) else msgspec.json.encode(value).decode()[:200]
            for name, value in settings.items()
            if value is not None and value != []
        }

    def begin(self, profile: Profile | None = None) -> SessionBuilder:
        """Begin a session of the trial. The header may be missing, so `finish` names it."""
        session = Session(
            session_id="", context="eval", format=self.agent, agent=self.agent, artifact_id=self.artifact.artifact_id
        )
        return SessionBuilder(session, profile or Profile())

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

    def configure(self, attempt: Attempt, line: int = 1) -> None:
        attempt.knobs = dict(self.knobs)
        attempt.kinds.append("harness_config")
        text = ", ".join(f"{name} {value}" for name, value in self.knobs.items())
        self.state(attempt, text, [f"knobs.{name}" for name in self.knobs], line)

    def judge(self, attempt: Attempt, passes: dict[str, bool | None], scores: dict[str, Any]) -> None:
        """Set rewards and ratings. There are none of what the machine could not run."""
        attempt.rewards = {name: float(passed) for name, passed in passes.items() if passed is not None} or None
        attempt.reward = attempt.rewards.get("task") if attempt.rewards else None
        ratings = {name: scores.get(name) for name in self.rated}
        attempt.ratings = {name: value for name, value in ratings.items() if value is not None} or None


def verification(passes: dict[str, bool | None], noun: str, message: str) -> Verification | None:
    """Return the two suites as two tests. Which of their own failed is not logged."""
    results = {f"{name} {noun}": passes[name] for name in ("visible", "hidden") if passes[name] is not None}
    if not results:
        return None
    return Verification(
        passed=[name for name, passed in results.items() if passed],
        failed=[name for name, passed in results.items() if not passed],
        message=message,
    )


_ERROR_CLASSES = (
    ("there is no file ", "not_found"), ("the old lines ", "edit_mismatch"), ("does not apply: ", "edit_mismatch"),
)  # fmt: skip
_HEAD = 200
_ENDS = {"submitted": "submitted", "steps": "step_limit", "room": "context_limit"}


class Usage(Struct, gc=False):
    prompt_tokens: int | None = None
    tokens: int | None = None
    finish: str | None = None


class Call(Struct, kw_only=True):
    call_id: str
    name: str
    arguments: dict[str, Any] = {}
    status: str = "ok"
    refused: bool = False
    result: str | None = None
    patch: str = ""
    exit_code: int | None = None


class Final(Struct, kw_only=True):
    """The verdict; the rest of its columns are judgements."""

    ended: str | None = None
    applies: bool | None = None
    visible_pass: bool | None = None
    hidden_pass: bool | None = None
    full_pass: bool | None = None
    error: str = ""
    patch: str | None = None
    reference_patch: str | None = None


class RepositoryEpisode(Episode):
    """A session with tool calls and edits, its patch and its verdict."""

    agent, mark, kinds = "lab-repository", REPOSITORY_MARK, ("message", "tool", "final")
    settings = (
        "seed", "evaluator", "tier", "protocol", "max_steps", "shown_chars", "chat_chars", "temperature", "top_p",
        "max_new_tokens",
    )  # fmt: skip
    rated = (
        "tests_edited", "tests_added", "hardcoding_hints", "forging", "invalid_actions", "refused_actions",
        "failed_actions", "last_test_passed", "untested",
    )  # fmt: skip

    def __init__(self, source: Input) -> None:
        super().__init__(source)
        self.attempt = Attempt(root=f"lab:{self.trial}", attempt_index=0, kinds=["attempt_log"])
        self.builder = self.begin(PROFILE)
        self.step: Step | None = None

    def attempts(self) -> list[tuple[Session, Attempt]]:
        return [self.finish(self.builder, self.attempt, self.trial)]

    def header(self, record: dict[str, Any]) -> None:
        super().header(record)
        self.attempt.root, self.attempt.trial_id = f"lab:{self.trial}", self.trial
        self.configure(self.attempt, self.line)

    def message(self, record: dict[str, Any]) -> None:
        message, builder = convert_leniently(record["message"], Message, self.artifact), self.builder
        builder.line = self.line
        if message.speaker == "assistant":
            usage = convert_leniently(record.get("step") or {}, Usage, self.artifact)
            self.step = step = builder.step(None, self.model, None)
            step.input_tokens, step.output_tokens, step.stop_reason = usage.prompt_tokens, usage.tokens, usage.finish
            builder.event("text", message.text, None, step)
        elif message.speaker == "system":
            builder.event("meta", message.text)
        elif not builder.session.turns:
            builder.turn("prompt", message.text)
        else:  # said of an answer that was no action
            builder.event("harness", message.text)

    def tool(self, record: dict[str, Any]) -> None:
        logged, builder = convert_leniently(record["tool"], Call, self.artifact), self.builder
        builder.line = self.line
        parts = [f"diff --git {part}" for part in f"\n{logged.patch}".split("\ndiff --git ")[1:]]
        changed = [(files[0], part) for part in parts if (files := patched_files(part))]
        path = changed[0][0].path if logged.name == "patch" and changed else None
        tool, arguments = PROFILE.tool(logged.name), msgspec.json.encode(logged.arguments)
        call = builder.call(logged.call_id, logged.name, arguments, tool, None, self.step, path=path)
        if logged.result is not None:
            status: CallStatus = "ok" if logged.status == "ok" else "error"
            named = (name for words, name in _ERROR_CLASSES if words in (logged.result or "")[:_HEAD])
            error = "permission" if logged.refused else "test_failed" if logged.exit_code else next(named, None)
            builder.result(logged.call_id, logged.result, status, exit_code=logged.exit_code, error=error)
        for file, part in changed:
            hunks = unified(part)
            builder.edit(call, file.path, file.op, of_whole_file(hunks) if file.op == "create" else hunks)

    def final(self, record: dict[str, Any]) -> None:
        final, attempt = convert_leniently(record["final"], Final, self.artifact), self.attempt
        passes = {"visible": final.visible_pass, "hidden": final.hidden_pass, "task": final.full_pass}
        self.judge(attempt, passes, record["final"])
        attempt.verification = verification(passes, "tests", final.error)
        if attempt.verification is not None:
            attempt.verification.patch_applies = final.applies
        attempt.exit_status = _ENDS.get(final.ended or "", final.ended)
        text = f"{final.ended}; {', '.join(f'{k} {v}' for k, v in passes.items())} {final.error}".strip()
        self.state(attempt, text, ["reward", "rewards", "verification", "exit_status", "ratings"], self.line)
        for patch, field in ((final.patch, "patch"), (final.reference_patch, "gold_patch")):
            if patch is not None:
                files = patched_files(patch)
                setattr(attempt, field, files)
                attempt.kinds.append(field)
                self.state(attempt, f"{field}: {', '.join(f.path for f in files) or 'nothing'}", [field], self.line)
        attempt.patch_text_bytes = None if final.patch is None else len(final.patch.encode())


read_repository = RepositoryEpisode.read


# -- the retry loop


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


class RetryEpisode(Episode):
    agent, mark, kinds = "lab-retry", RETRY_MARK, ("message", "attempt", "final")
    settings = ("seed", "evaluator", "tier", "wording", "max_attempts", "temperature", "top_p", "max_new_tokens")
    rated = (
        "valid_python", "hardcoded", "imports_missing", "off_task", "writes_tests", "test_mentions_per_100_words",
        "marker_score", "frustration_per_100_words", "desperation_per_100_words", "give_up_per_100_words",
        "error_class",
    )  # fmt: skip

    def __init__(self, source: Input) -> None:
        super().__init__(source)
        self.tries = [Try(self.begin())]

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
            part.verification = verification(passes, "cases", "" if scores.visible_pass else error)
            if part.verification is None and error:
                part.verification = Verification(status="crashed", message=error)
            part.exit_status = "token_limit" if scores.finish == "length" else scores.finish
            visible = _of(scores.visible_passed, scores.n_visible)
            cases = f"visible cases {visible}, hidden cases {_of(scores.hidden_passed, scores.n_hidden)}"
            fields = ["reward", "rewards", "verification", "exit_status", "ratings"]
            self.state(part, f"{cases}: {error}" if error else cases, fields, attempt.line)
        return self.finish(attempt.builder, part, f"{self.trial}#{index}")


def _of(passed: int | None, n: int | None) -> str:
    return "unknown" if passed is None or n is None else f"{passed} of {n}"


read_retry = RetryEpisode.read
