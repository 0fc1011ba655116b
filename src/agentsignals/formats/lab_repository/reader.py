"""Reads an episode of the lab's agent on a repository: a session with tool calls and edits, its patch and verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from agentsignals.changes.hunks import of_whole_file, unified
from agentsignals.changes.patches import patched_files
from agentsignals.formats import Input, Reading
from agentsignals.formats import records as recs
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.lab_repository import PROFILE
from agentsignals.model import Attempt, CallStatus, PatchedFile, Session, Statement, Step, Verification, logged_iso

AGENT = "lab-repository"
_RENAMED = {"name": "condition", "where": "steered_at", "layers": "steered_layers"}
"""Parts of a condition whose own names mean nothing beside other harnesses' knobs."""
_KNOBS = (
    "seed", "evaluator", "tier", "protocol", "max_steps", "shown_chars", "chat_chars", "temperature", "top_p",
    "max_new_tokens",
)  # fmt: skip
_RATED = (
    "tests_edited", "tests_added", "hardcoding_hints", "forging", "invalid_actions", "refused_actions",
    "failed_actions", "last_test_passed", "untested",
)  # fmt: skip
_ERROR_CLASSES = (
    ("there is no file ", "not_found"), ("the old lines ", "edit_mismatch"), ("does not apply: ", "edit_mismatch"),
)  # fmt: skip
_HEAD = 200
_ENDS = {"submitted": "submitted", "steps": "step_limit", "room": "context_limit"}


class Piece(Struct, gc=False):
    text: str = ""


class Message(Struct, gc=False):
    speaker: str
    pieces: list[Piece] = []


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


class Header(Struct, kw_only=True):
    trial_id: str | None = None
    run_id: str | None = None
    started_at: str | None = None
    model: dict[str, Any] = {}
    condition: dict[str, Any] = {}
    task: dict[str, Any] = {}


_decode = msgspec.json.Decoder(dict[str, Any]).decode


def read(inputs: list[Input]) -> Reading:
    """A session and an attempt of each episode; of copies of one, the longest."""
    reading = Reading()
    trials: set[str] = set()
    for source in sorted(inputs, key=lambda i: (-len(i.data), i.artifact.artifact_id)):
        episode = _Episode(source)
        episode.read()
        if episode.trial in trials:
            source.artifact.record_kinds["repeated"] = source.artifact.records - source.artifact.skipped
            continue
        trials.add(episode.trial)
        reading.sessions.append(episode.session)
        reading.attempts.append(episode.attempt)
    return reading


class _Episode:
    """One file, read record by record."""

    def __init__(self, source: Input) -> None:
        self._source = source
        artifact_id = source.artifact.artifact_id
        self.trial = artifact_id
        self.session = Session(
            session_id=self.trial, context="eval", format="lab-repository", agent=AGENT, artifact_id=artifact_id
        )
        self.attempt = Attempt(root=f"lab:{self.trial}", attempt_index=0, kinds=["attempt_log"])
        self._builder = SessionBuilder(self.session, PROFILE)
        self._step: Step | None = None

    def read(self) -> None:
        artifact = self._source.artifact
        for line, record in recs.lines(self._source.data, artifact, _decode):
            self._builder.line = line
            kind = next((kind for kind in _READS if kind in record), None)
            if kind is None:
                recs.skip(artifact, "bad_shape")
                continue
            try:
                _READS[kind](self, record)
            except msgspec.ValidationError:
                recs.skip(artifact, "bad_shape")
            else:
                recs.saw(artifact, "header" if kind == "agentsignals_lab_repository" else kind)
        started = self.session.started_at
        self._builder.finish()
        # Of the run: an episode has no clock, and what is not said is not made up.
        self.session.started_at = started
        self.attempt.session_id, self.attempt.session_artifact = self.session.session_id, artifact.artifact_id

    def header(self, record: dict[str, Any]) -> None:
        header = msgspec.convert(record, Header)
        session, attempt = self.session, self.attempt
        self.trial = session.session_id = header.trial_id or self.trial
        session.model, session.title = _word(header.model.get("name")), _word(header.task.get("key"))
        session.started_at = logged_iso(header.started_at)
        attempt.root, attempt.trial_id = f"lab:{self.trial}", self.trial
        attempt.task_id, attempt.run_id = session.title, _word(header.run_id)
        attempt.knobs = _knobs(header, record)
        attempt.kinds.append("harness_config")
        settings = ", ".join(f"{name} {value}" for name, value in attempt.knobs.items())
        self._says(settings, [f"knobs.{name}" for name in attempt.knobs])

    def message(self, record: dict[str, Any]) -> None:
        message = msgspec.convert(record["message"], Message)
        text = "".join(piece.text for piece in message.pieces)
        if message.speaker == "assistant":
            usage = msgspec.convert(record.get("step") or {}, Usage)
            self._step = step = self._builder.step(None, self.session.model, None)
            step.input_tokens, step.output_tokens, step.stop_reason = usage.prompt_tokens, usage.tokens, usage.finish
            self._builder.event("text", text, None, step)
        elif message.speaker == "system":
            self._builder.event("meta", text)
        elif not self.session.turns:
            self._builder.turn("prompt", text)
        else:  # said of an answer that was no action
            self._builder.event("harness", text)

    def call(self, record: dict[str, Any]) -> None:
        logged = msgspec.convert(record["tool"], Call)
        arguments = msgspec.json.encode(logged.arguments)
        changed = _parts(logged.patch)
        path = changed[0][0].path if logged.name == "patch" and changed else None
        call = self._builder.call(
            logged.call_id, logged.name, arguments, PROFILE.tool(logged.name), None, self._step, path=path
        )
        if logged.result is not None:
            status: CallStatus = "ok" if logged.status == "ok" else "error"
            self._builder.result(
                logged.call_id, logged.result, status, exit_code=logged.exit_code, error=_error(logged)
            )
        for file, part in changed:
            hunks = unified(part)
            if file.op == "create":
                hunks = of_whole_file(hunks)
            self._builder.edit(call, file.path, file.op, hunks)

    def final(self, record: dict[str, Any]) -> None:
        final, attempt = msgspec.convert(record["final"], Final), self.attempt
        passes = {"visible": final.visible_pass, "hidden": final.hidden_pass, "task": final.full_pass}
        attempt.rewards = {name: float(passed) for name, passed in passes.items() if passed is not None} or None
        attempt.reward = attempt.rewards.get("task") if attempt.rewards else None
        attempt.verification = _verification(final)
        attempt.exit_status = _ENDS.get(final.ended or "", final.ended)
        rated = {name: record["final"].get(name) for name in _RATED}
        attempt.ratings = {name: value for name, value in rated.items() if value is not None} or None
        fields = ["reward", "rewards", "verification", "exit_status", "ratings"]
        self._says(f"{final.ended}; {', '.join(f'{k} {v}' for k, v in passes.items())} {final.error}".strip(), fields)
        for patch, field in ((final.patch, "patch"), (final.reference_patch, "gold_patch")):
            if patch is not None:
                files = patched_files(patch)
                setattr(attempt, field, files)
                attempt.kinds.append(field)
                self._says(f"{field}: {', '.join(f.path for f in files) or 'nothing'}", [field])
        attempt.patch_text_bytes = None if final.patch is None else len(final.patch.encode())

    def _says(self, text: str, fields: list[str]) -> None:
        self.attempt.statements.append(
            Statement(text=text, artifact_id=self._source.artifact.artifact_id, line=self._builder.line, fields=fields)
        )


# Not kept by an episode: its own methods would make it part of a circle, which only the collector ends.
_READS: dict[str, Callable[[_Episode, dict[str, Any]], None]] = {
    "agentsignals_lab_repository": _Episode.header,
    "message": _Episode.message,
    "tool": _Episode.call,
    "final": _Episode.final,
}


def _error(call: Call) -> str | None:
    """The class of a failed call, where the lab's own words say it."""
    if call.refused:
        return "permission"
    if call.exit_code:
        return "test_failed"
    return next((name for words, name in _ERROR_CLASSES if words in (call.result or "")[:_HEAD]), None)


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _knobs(header: Header, record: dict[str, Any]) -> dict[str, Any]:
    """The treatment: the condition, how the model was loaded and asked, under Agent Signals's names where it has
    them."""
    settings: dict[str, Any] = {"agent_type": AGENT, "model_id": header.model.get("name")}
    settings |= {_RENAMED.get(name, name): value for name, value in header.condition.items()}
    settings |= {name: record.get(name) for name in _KNOBS}
    settings |= {f"model_{name}": header.model.get(name) for name in ("revision", "dtype")}
    return {name: _plain(value) for name, value in settings.items() if value is not None and value != []}


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool) else msgspec.json.encode(value).decode()[:200]


def _verification(final: Final) -> Verification | None:
    """The two suites as two tests: which of theirs failed is not told."""
    suites = {"visible tests": final.visible_pass, "hidden tests": final.hidden_pass}
    results = {name: passed for name, passed in suites.items() if passed is not None}
    if not results:
        return None
    return Verification(
        patch_applies=final.applies,
        passed=[name for name, passed in results.items() if passed],
        failed=[name for name, passed in results.items() if not passed],
        message=final.error,
    )


def _parts(patch: str) -> list[tuple[PatchedFile, str]]:
    """A diff file by file."""
    parts = [f"diff --git {part}" for part in f"\n{patch}".split("\ndiff --git ")[1:]]
    return [(files[0], part) for part in parts if (files := patched_files(part))]
