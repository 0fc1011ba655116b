"""The treatment as the harness of Agent Signals configures it, under its names."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from agentsignals.formats import Input, Reading
from agentsignals.formats import records as recs
from agentsignals.formats.bounds import count, number
from agentsignals.formats.harbor.reader import moment, word
from agentsignals.formats.subq_eval import CAPS, RUN_ID, TRANSITIONS, stdout
from agentsignals.formats.swe_bench.reader import Instance, verification
from agentsignals.model import Attempt, Statement, Verification, logged_ms

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
NESTED = ("treatment", "config", "harness", "harness_config")
"""Places of the configuration in a file."""
_NAMES = {
    "attempt1_tool_cap": "attempt1_tool_cap",
    "retry_tool_cap": "retry_tool_cap",
    "agent": "agent_type",
    "agent_type": "agent_type",
    "model": "model_id",
    "model_id": "model_id",
    "agent_model": "model_id",
    "dataset": "dataset",
    "concurrency": "concurrency",
    "temperature": "temperature",
    "seed": "seed",
    "condition": "condition",
    "max_turns": "max_turns",
    "max_attempts": "max_attempts",
}
_TIMEOUTS = {
    "timeout": "", "timeout_s": "", "timeout_sec": "", "timeout_secs": "", "timeout_seconds": "", "timeout_ms": " ms",
    "timeout_min": " min", "timeout_mins": " min", "timeout_minutes": " min",
}  # fmt: skip
"""A name may say the unit of its number; the setting then says it too."""


def snake(name: str) -> str:
    """`attempt1ToolCap` as `attempt1_tool_cap`; `AGENT_MODEL`, as the environment has it, as `agent_model`."""
    return name.lower() if name.isupper() else _CAMEL.sub("_", name).lower()


def knobs(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that a file names, as they are written; None is a limit that was lifted."""
    treatment: dict[str, Any] = {}
    by_name = {snake(k): v for k, v in settings.items()}
    inner = [by_name[name] for name in NESTED if isinstance(by_name.get(name), dict)]
    for place in (by_name, *({snake(k): v for k, v in nested.items()} for nested in inner)):
        for name, value in place.items():
            if name in _NAMES and _is_setting(value):
                treatment.setdefault(_NAMES[name], value)
            elif name in _TIMEOUTS and _is_setting(value):
                treatment.setdefault("timeout_s", _with_unit(value, _TIMEOUTS[name]))
    version = by_name.get("dataset_version")
    if isinstance(treatment.get("dataset"), str) and isinstance(version, str) and "@" not in treatment["dataset"]:
        treatment["dataset"] = f"{treatment['dataset']}@{version}"
    return treatment


def _is_setting(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)


def _with_unit(value: Any, unit: str) -> Any:
    return f"{value}{unit}" if unit and isinstance(value, int | float) and not isinstance(value, bool) else value


_MODES = {
    "attempt1_mode": "attempt1Mode",
    "trial_recovery_mode": "trialRecoveryMode",
    "final_failure_mode": "finalFailureMode",
}
_DURATIONS = {"duration": 1.0, "duration_s": 1.0, "duration_seconds": 1.0, "duration_sec": 1.0, "duration_ms": 0.001}
_TREATED = frozenset((*NESTED, "attempts", "tests_status"))
_document = msgspec.json.Decoder(dict[str, Any]).decode
_instance = msgspec.json.Decoder(Instance).decode


def read(inputs: list[Input]) -> Reading:
    """Read a part for each file, attempt or run."""
    reading = Reading()
    decoded = list(_decoded(inputs))
    trials = {
        posixpath.dirname(g.artifact.path): _run_id(document) for g, kind, document in decoded if kind == "result"
    }
    for source, kind, document in decoded:
        root = posixpath.dirname(source.artifact.path)
        if kind == "result":
            reading.attempts += _of_result(source, root, document)
        elif kind == "report":
            reading.attempts += _of_report(source, root, document)
        elif kind == "output":
            reading.attempts += stdout.read([source]).attempts
        elif kind == "config":
            reading.attempts.append(_lent(source, root, knobs(document), "harness_config", 1, run_id=_run_id(document)))
        else:
            reading.attempts += _of_history(source, root, document["rows"], trials)
    return reading


def _decoded(inputs: list[Input]) -> Iterator[tuple[Input, str, dict[str, Any]]]:
    for source in inputs:
        first = _first_line(source.data)
        if isinstance(first.get("event"), str):
            yield source, "output", first
            continue
        # One record a line, each naming its run and its agent.
        if "agent" in first and bool(first.keys() & RUN_ID) and not first.keys() & CAPS and "reward" not in first:
            rows: list[tuple[int, dict[str, Any]]] = list(recs.lines(source.data, source.artifact, _document))
            recs.saw(source.artifact, "history_row", len(rows))
            yield source, "history", {"rows": rows}
            continue
        document = recs.document(source.data, source.artifact, _document)
        if document is None:
            continue
        kind = "config" if document.keys() & CAPS and "reward" not in document else "result"
        if kind == "result" and "reward" not in document:
            kind = "report"
        recs.saw(source.artifact, kind)
        yield source, kind, document


def _first_line(data: bytes) -> dict[str, Any]:
    """Return the object on the first line; empty if it holds none."""
    stop = data.find(b"\n")
    try:
        return _document(bytes(data[: stop if stop >= 0 else len(data)]))
    except recs.UNREADABLE:
        return {}


def _run_id(document: dict[str, Any]) -> str | None:
    return next((name for key in ("runId", "run_id", "run") if (name := word(document.get(key))) is not None), None)


def _of_result(source: Input, root: str, result: dict[str, Any]) -> Iterator[Attempt]:
    """Yield the trial's result, whose verdict is its last attempt's, and the attempts listed in it."""
    whole = _facts(source, root, result, "trial")
    whole.kinds = ["result_json"]
    tells_modes = whole.localization is not None
    whole.kinds += ["harbor_result"] if tells_modes else []
    yield whole
    listed = result.get("attempts")
    for n, attempt in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(attempt, dict):
            part = _facts(source, root, attempt, "attempt")
            index = count(_by_snake(attempt).get("attempt_index"))
            part.attempt_index = index if index is not None and index >= 0 else n
            yield part


def _by_snake(record: dict[str, Any]) -> dict[str, Any]:
    return {snake(name): value for name, value in record.items()}


def _facts(source: Input, root: str, record: dict[str, Any], scope: str) -> Attempt:
    facts = _by_snake(record)
    part = Attempt(root=root, scope="trial" if scope == "trial" else "attempt")
    part.trial_id, part.run_id = word(facts.get("trial_id")), _run_id(record)
    part.task_id = next((t for k in ("task_id", "instance_id", "task") if (t := word(facts.get(k))) is not None), None)
    part.reward = number(facts.get("reward"))
    part.timed_out = facts["timed_out"] if isinstance(facts.get("timed_out"), bool) else None
    part.wall_time_s = _duration(facts)
    part.started_at, part.ended_at = _moment(facts.get("started_at")), _moment(facts.get("ended_at"))
    part.exit_status = word(facts.get("exit_status")) or word(facts.get("status"))
    if isinstance(facts.get("patch_applies"), bool):
        part.verification = Verification(patch_applies=facts["patch_applies"])
    # The controller's modes, verbatim, under the inventory's names; they may stand in a signal of their
    # own.
    inner: dict[str, Any] = next(
        (facts[k] for k in ("localization_signal", "localization") if isinstance(facts.get(k), dict)), {}
    )
    merged = {**facts, **_by_snake(inner)}
    modes = {name: merged[key] for key, name in _MODES.items() if key in merged}
    part.localization = modes or None
    part.knobs = knobs(record)
    names = ("task_id", "reward", "timed_out", "wall_time_s", "exit_status", "verification", "localization")
    fields = [n for n in names if getattr(part, n) is not None]
    shown = {k: v for k, v in record.items() if k not in _TREATED and not isinstance(v, list)}
    text = msgspec.json.encode(shown).decode()[:1_200]
    part.statements = [
        Statement(
            text=text,
            artifact_id=source.artifact.artifact_id,
            line=1,
            fields=[*fields, *(f"knobs.{k}" for k in part.knobs)],
        )
    ]
    return part


def _duration(facts: dict[str, Any]) -> float | None:
    """Return seconds, whatever unit the name states."""
    for name, unit in _DURATIONS.items():
        value = number(facts.get(name))
        if value is not None and value >= 0:
            return value * unit
    return None


def _moment(value: object) -> int | None:
    return moment(value) if isinstance(value, str) else logged_ms(value)


def _of_report(source: Input, root: str, report: dict[str, Any]) -> list[Attempt]:
    """Read tests by transition, without an instance around them (layout A or B of SWE-bench's reports)."""
    status = report.get("tests_status", {k: v for k, v in report.items() if k in TRANSITIONS})
    applied = report.get("patch_successfully_applied", report.get("patch_applies", report.get("patchApplies")))
    shown = {"tests_status": status, "patch_successfully_applied": applied if isinstance(applied, bool) else None}
    try:
        verified = verification(_instance(msgspec.json.encode(shown)))
    except recs.UNREADABLE:
        source.artifact.record_kinds.clear()
        recs.skip(source.artifact, "bad_shape")
        return []
    resolved = report.get("resolved")
    part = Attempt(root=root, scope="trial", verification=verified, kinds=["verifier_report"])
    part.reward = float(resolved) if isinstance(resolved, bool) else None
    counts = ", ".join(f"{name} {_n(getattr(verified, name))}" for name in ("fixed", "unfixed", "kept", "broken"))
    fields = ["verification", *(["reward"] if part.reward is not None else [])]
    part.statements = [
        Statement(text=f"verifier report: {counts}", artifact_id=source.artifact.artifact_id, line=1, fields=fields)
    ]
    return [part]


def _n(tests: list[str] | None) -> str:
    return "unknown" if tests is None else str(len(tests))


def _lent(  # noqa: PLR0913  (a part has these facts)
    source: Input, root: str, settings: dict[str, Any], kind: str, line: int, run_id: str | None = None
) -> Attempt:
    listed = ", ".join(f"{k} {v}"[:200] for k, v in settings.items())
    part = Attempt(root=root, scope="lent", knobs=settings, run_id=run_id, kinds=[kind])
    part.statements = [
        Statement(
            text=f"configured: {listed}",
            artifact_id=source.artifact.artifact_id,
            line=line,
            fields=[f"knobs.{k}" for k in settings],
        )
    ]
    return part


def _of_history(
    source: Input, folder: str, rows: list[tuple[int, dict[str, Any]]], trials: dict[str, str | None]
) -> Iterator[Attempt]:
    """Yield the row of each trial's run. The trial or a folder names the run; a single run needs no name."""
    for line, row in rows:
        run_id = _run_id(row)
        if run_id is None:
            continue
        below = [
            r
            for r, trial_run in trials.items()
            if trial_run == run_id or (trial_run is None and run_id in r.split("/"))
        ]
        if not below and (len(rows) == 1 or run_id in folder.split("/")):
            below = [folder]
        elif not below and not trials:
            below = [posixpath.join(folder, run_id)]
        settings = knobs(row)
        yield from (_lent(source, root, settings, "eval_history", line, run_id) for root in below)
