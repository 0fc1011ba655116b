"""The treatment as the harness of Agent Signals configures it, under its names."""

import posixpath
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from agentsignals.formats import Input, Reading
from agentsignals.formats import records as recs
from agentsignals.formats.bounds import count, number
from agentsignals.formats.harbor.reader import moment
from agentsignals.formats.records import string
from agentsignals.formats.subq_eval import CAPS, RUN_ID, TRANSITIONS, stdout
from agentsignals.formats.swe_bench.reader import Instance, counted_tests, verification
from agentsignals.model import Attempt, Verification, logged_ms

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
NESTED = ("treatment", "config", "harness", "harness_config")
"""Places of the configuration in a file."""
_SAME = (
    "attempt1_tool_cap", "retry_tool_cap", "agent_type", "model_id", "dataset", "concurrency", "temperature", "seed",
    "condition", "max_turns", "max_attempts",
)  # fmt: skip
_NAMES = {name: name for name in _SAME} | {"agent": "agent_type", "model": "model_id", "agent_model": "model_id"}
"""Knobs by the names that a file may give them."""
_TIMEOUTS = {
    "timeout": "", "timeout_s": "", "timeout_sec": "", "timeout_secs": "", "timeout_seconds": "", "timeout_ms": " ms",
    "timeout_min": " min", "timeout_mins": " min", "timeout_minutes": " min",
}  # fmt: skip
"""A name may say the unit of its number; the setting then says it too."""
_MODES = {
    "attempt1_mode": "attempt1Mode", "trial_recovery_mode": "trialRecoveryMode",
    "final_failure_mode": "finalFailureMode",
}  # fmt: skip
_DURATIONS = {"duration": 1.0, "duration_s": 1.0, "duration_seconds": 1.0, "duration_sec": 1.0, "duration_ms": 0.001}
_TREATED = frozenset((*NESTED, "attempts", "tests_status"))
_document = msgspec.json.Decoder(dict[str, Any]).decode


def _by_snake(record: dict[str, Any]) -> dict[str, Any]:
    """Name `attempt1ToolCap` `attempt1_tool_cap`, and `AGENT_MODEL`, as the environment has it, `agent_model`."""
    return {(n if n.isupper() else _CAMEL.sub("_", n)).lower(): value for n, value in record.items()}


def knobs(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that a file names, as they are written; None is a limit that was lifted."""
    treatment: dict[str, Any] = {}
    by_name = _by_snake(settings)
    inner = [by_name[name] for name in NESTED if isinstance(by_name.get(name), dict)]
    for place in (by_name, *map(_by_snake, inner)):
        for name, value in place.items():
            if value is not None and not isinstance(value, str | int | float):
                continue
            if name in _NAMES:
                treatment.setdefault(_NAMES[name], value)
            elif name in _TIMEOUTS:
                has_unit = _TIMEOUTS[name] and isinstance(value, int | float) and not isinstance(value, bool)
                treatment.setdefault("timeout_s", f"{value}{_TIMEOUTS[name]}" if has_unit else value)
    version = by_name.get("dataset_version")
    if isinstance(treatment.get("dataset"), str) and isinstance(version, str) and "@" not in treatment["dataset"]:
        treatment["dataset"] = f"{treatment['dataset']}@{version}"
    return treatment


def read(inputs: list[Input]) -> Reading:
    """Read a part for each file, attempt or run."""
    reading = Reading()
    decoded = list(_decoded(inputs))
    trials = {source.folder: _run_id(document) for source, kind, document in decoded if kind == "result"}
    for source, kind, document in decoded:
        if kind == "result":
            reading.attempts += _of_result(source, document)
        elif kind == "report":
            reading.attempts += _of_report(source, document)
        elif kind == "output":
            reading.attempts += stdout.read([source]).attempts
        elif kind == "config":
            configured = _lent(source, source.folder, document)
            configured.kinds = ["harness_config"]
            reading.attempts.append(configured)
        else:
            reading.attempts += _of_history(source, document["rows"], trials)
    return reading


def _decoded(inputs: list[Input]) -> Iterator[tuple[Input, str, dict[str, Any]]]:
    for source in inputs:
        stop = source.data.find(b"\n")
        try:
            first = _document(bytes(source.data[: stop if stop >= 0 else len(source.data)]))
        except recs.UNREADABLE:
            first = {}
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
        kind = "result" if "reward" in document else "config" if document.keys() & CAPS else "report"
        recs.saw(source.artifact, kind)
        yield source, kind, document


def _run_id(document: dict[str, Any]) -> str | None:
    return next(filter(None, (string(document.get(key)) for key in ("runId", "run_id", "run"))), None)


def _of_result(source: Input, result: dict[str, Any]) -> Iterator[Attempt]:
    """Yield the trial's result, whose verdict is its last attempt's, and the attempts listed in it."""
    whole = _facts(source, result)
    whole.scope = "trial"
    whole.kinds = ["result_json", *(["harbor_result"] if whole.localization is not None else [])]
    yield whole
    listed = result.get("attempts")
    for n, attempt in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(attempt, dict):
            part = _facts(source, attempt)
            index = count(_by_snake(attempt).get("attempt_index"))
            part.attempt_index = index if index is not None and index >= 0 else n
            yield part


def _facts(source: Input, record: dict[str, Any]) -> Attempt:
    """Return what a record says of its attempt: ids, outcome, times, localization, knobs."""
    facts = _by_snake(record)
    part = Attempt(root=source.folder)
    part.trial_id, part.run_id = string(facts.get("trial_id")), _run_id(record)
    part.task_id = next(filter(None, (string(facts.get(k)) for k in ("task_id", "instance_id", "task"))), None)
    part.reward = number(facts.get("reward"))
    part.timed_out = facts["timed_out"] if isinstance(facts.get("timed_out"), bool) else None
    lasted = ((number(facts.get(name)), unit) for name, unit in _DURATIONS.items())
    part.wall_time_s = next((value * unit for value, unit in lasted if value is not None and value >= 0), None)
    stamps = (facts.get("started_at"), facts.get("ended_at"))
    part.started_at, part.ended_at = (moment(at) if isinstance(at, str) else logged_ms(at) for at in stamps)
    part.exit_status = string(facts.get("exit_status")) or string(facts.get("status"))
    if isinstance(facts.get("patch_applies"), bool):
        part.verification = Verification(patch_applies=facts["patch_applies"])
    # The controller's modes, verbatim, under the inventory's names; they may stand in a signal of their own.
    signals = (facts[k] for k in ("localization_signal", "localization") if isinstance(facts.get(k), dict))
    merged = {**facts, **_by_snake(next(signals, {}))}
    part.localization = {name: merged[key] for key, name in _MODES.items() if key in merged} or None
    part.knobs = knobs(record)
    names = ("task_id", "reward", "timed_out", "wall_time_s", "exit_status", "verification", "localization")
    fields = [name for name in names if getattr(part, name) is not None]
    shown = {k: v for k, v in record.items() if k not in _TREATED and not isinstance(v, list)}
    text = msgspec.json.encode(shown).decode()[:1_200]
    part.statements = source.states(text, (*fields, *(f"knobs.{k}" for k in part.knobs)))
    return part


def _of_report(source: Input, report: dict[str, Any]) -> list[Attempt]:
    """Read tests by transition, without an instance around them (layout A or B of SWE-bench's reports)."""
    status = report.get("tests_status", {k: v for k, v in report.items() if k in TRANSITIONS})
    applied = report.get("patch_successfully_applied", report.get("patch_applies", report.get("patchApplies")))
    shown = {"tests_status": status, "patch_successfully_applied": applied if isinstance(applied, bool) else None}
    instance = recs.decoded(msgspec.json.encode(shown), Instance)
    if instance is None:
        source.artifact.record_kinds.clear()
        recs.skip(source.artifact, "bad_shape")
        return []
    part = Attempt(root=source.folder, scope="trial", verification=verification(instance), kinds=["verifier_report"])
    resolved = report.get("resolved")
    part.reward = float(resolved) if isinstance(resolved, bool) else None
    counts = counted_tests(verification(instance))
    fields = ("verification", *(["reward"] if part.reward is not None else []))
    part.statements = source.states(f"verifier report: {counts}", fields)
    return [part]


def _lent(source: Input, root: str, settings: dict[str, Any], line: int = 1) -> Attempt:
    """Return the treatment that a configuration or a row of the history names, lent to the trials below `root`."""
    treatment = knobs(settings)
    listed = ", ".join(f"{k} {v}"[:200] for k, v in treatment.items())
    statements = source.states(f"configured: {listed}", [f"knobs.{k}" for k in treatment], line)
    return Attempt(root=root, scope="lent", knobs=treatment, run_id=_run_id(settings), statements=statements)


def _of_history(
    source: Input, rows: list[tuple[int, dict[str, Any]]], trials: dict[str, str | None]
) -> Iterator[Attempt]:
    """Yield the row of each trial's run. The trial or a folder names the run; a single run needs no name."""
    for line, row in rows:
        run_id = _run_id(row)
        if run_id is None:
            continue
        below = [root for root, run in trials.items() if run == run_id or (run is None and run_id in root.split("/"))]
        if not below and (len(rows) == 1 or run_id in source.folder.split("/")):
            below = [source.folder]
        elif not below and not trials:
            below = [posixpath.join(source.folder, run_id)]
        for root in below:
            part = _lent(source, root, row, line)
            part.kinds = ["eval_history"]
            yield part
