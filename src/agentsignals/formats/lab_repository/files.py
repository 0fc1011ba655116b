"""Reads an episode of the lab's agent on a repository: a session with tool calls and edits, its patch and verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from agentsignals.edits.hunks import of_whole_file, unified
from agentsignals.edits.unified_diff import patched_files
from agentsignals.formats import Input, Reading
from agentsignals.formats import records as recs
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.lab_repository.profile import PROFILE
from agentsignals.model import CallStatus, Session, Step
from agentsignals.model.attempt import Attempt, PatchedFile, Said, Verification
from agentsignals.model.times import logged_iso

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
_SAID = (
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
    known: set[str] = set()
    for given in sorted(inputs, key=lambda i: (-len(i.data), i.artifact.artifact_id)):
        episode = _Episode(given)
        episode.read()
        if episode.trial in known:
            given.artifact.record_kinds["repeated"] = given.artifact.records - given.artifact.skipped
            continue
        known.add(episode.trial)
        reading.sessions.append(episode.session)
        reading.attempts.append(episode.attempt)
    return reading


class _Episode:
    """One file, read record by record."""

    def __init__(self, given: Input) -> None:
        self._given = given
        artifact_id = given.artifact.artifact_id
        self.trial = artifact_id
        self.session = Session(
            session_id=self.trial, context="eval", format="lab-repository", agent=AGENT, artifact_id=artifact_id
        )
        self.attempt = Attempt(root=f"lab:{self.trial}", attempt_index=0, kinds=["attempt_log"])
        self._builder = SessionBuilder(self.session)
        self._step: Step | None = None

    def read(self) -> None:
        artifact = self._given.artifact
        for line, record in recs.lines(self._given.data, artifact, _decode):
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
        told = msgspec.convert(record, Header)
        session, attempt = self.session, self.attempt
        self.trial = session.session_id = told.trial_id or self.trial
        session.model, session.title = _word(told.model.get("name")), _word(told.task.get("key"))
        session.started_at = logged_iso(told.started_at)
        attempt.root, attempt.trial_id = f"lab:{self.trial}", self.trial
        attempt.task_id, attempt.run_id = session.title, _word(told.run_id)
        attempt.knobs = _knobs(told, record)
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
        told = msgspec.convert(record["tool"], Call)
        arguments = msgspec.json.encode(told.arguments)
        changed = _parts(told.patch)
        path = changed[0][0].path if told.name == "patch" and changed else None
        call = self._builder.call(
            told.call_id, told.name, arguments, PROFILE.tool(told.name), None, self._step, path=path
        )
        if told.result is not None:
            status: CallStatus = "ok" if told.status == "ok" else "error"
            self._builder.result(told.call_id, told.result, status, exit_code=told.exit_code, error=_error(told))
        for file, part in changed:
            hunks = unified(part)
            if file.op == "create":
                hunks = of_whole_file(hunks)
            self._builder.edit(call, file.path, file.op, hunks)

    def final(self, record: dict[str, Any]) -> None:
        told, attempt = msgspec.convert(record["final"], Final), self.attempt
        passes = {"visible": told.visible_pass, "hidden": told.hidden_pass, "task": told.full_pass}
        attempt.rewards = {name: float(passed) for name, passed in passes.items() if passed is not None} or None
        attempt.reward = attempt.rewards.get("task") if attempt.rewards else None
        attempt.verification = _verification(told)
        attempt.exit_status = _ENDS.get(told.ended or "", told.ended)
        rated = {name: record["final"].get(name) for name in _RATED}
        attempt.ratings = {name: value for name, value in rated.items() if value is not None} or None
        fields = ["reward", "rewards", "verification", "exit_status", "ratings"]
        self._says(f"{told.ended}; {', '.join(f'{k} {v}' for k, v in passes.items())} {told.error}".strip(), fields)
        for patch, field in ((told.patch, "patch"), (told.reference_patch, "gold_patch")):
            if patch is not None:
                files = patched_files(patch)
                setattr(attempt, field, files)
                attempt.kinds.append(field)
                self._says(f"{field}: {', '.join(f.path for f in files) or 'nothing'}", [field])
        attempt.patch_text_bytes = None if told.patch is None else len(told.patch.encode())

    def _says(self, text: str, fields: list[str]) -> None:
        self.attempt.said.append(
            Said(text=text, artifact_id=self._given.artifact.artifact_id, line=self._builder.line, fields=fields)
        )


# Not kept by an episode: its own methods would make it part of a circle, which only the collector ends.
_READS: dict[str, Callable[[_Episode, dict[str, Any]], None]] = {
    "agentsignals_lab_repository": _Episode.header,
    "message": _Episode.message,
    "tool": _Episode.call,
    "final": _Episode.final,
}


def _error(told: Call) -> str | None:
    """The class of a failed call, where the lab's own words say it."""
    if told.refused:
        return "permission"
    if told.exit_code:
        return "test_failed"
    return next((name for words, name in _SAID if words in (told.result or "")[:_HEAD]), None)


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


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


def _verification(told: Final) -> Verification | None:
    """The two suites as two tests: which of theirs failed is not told."""
    suites = {"visible tests": told.visible_pass, "hidden tests": told.hidden_pass}
    known = {name: passed for name, passed in suites.items() if passed is not None}
    if not known:
        return None
    return Verification(
        patch_applies=told.applies,
        passed=[name for name, passed in known.items() if passed],
        failed=[name for name, passed in known.items() if not passed],
        message=told.error,
    )


def _parts(patch: str) -> list[tuple[PatchedFile, str]]:
    """A diff file by file."""
    parts = [f"diff --git {part}" for part in f"\n{patch}".split("\ndiff --git ")[1:]]
    return [(files[0], part) for part in parts if (files := patched_files(part))]
