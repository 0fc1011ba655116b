"""The treatment as the harness of Agent Signals configures it, and its standard output, attempt by attempt.

Logs may be long: only lines with its marks are looked at.
"""

import json
import posixpath
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct, field

from agentsignals.formats import Input, Reading
from agentsignals.formats import records as recs
from agentsignals.formats.bounds import count, number
from agentsignals.formats.harbor.reader import moment
from agentsignals.formats.records import saw, string
from agentsignals.formats.subq_eval import CAPS, RUN_ID, TRANSITIONS
from agentsignals.formats.swe_bench.reader import Instance, counted_tests, verification
from agentsignals.model import Attempt, HarnessSummary, Statement, Verification, from_iso, logged_ms

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
            reading.attempts += read_stdout([source]).attempts
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
        # Another person's run may have the same name: a history tells of those that lie with it.
        here = source.folder and f"{source.folder}/"
        below = [root for root in below if f"{root}/".startswith(here)] or below
        if not below and (len(rows) == 1 or run_id in source.folder.split("/")):
            below = [source.folder]
        elif not below and not trials:
            below = [posixpath.join(source.folder, run_id)]
        for root in below:
            part = _lent(source, root, row, line)
            part.kinds = ["eval_history"]
            yield part


_MARKS = (b"[subq-eval]", b"plannotator-phase")
_CHUNK = 1 << 20
_MOST_OF_LINE = 64 * 1024
"""Limit of a line. A list of touched files may be long; progress on one line may be longer."""
_ESCAPES = re.compile(r"\x1b\[[0-9;]{0,12}[A-Za-z]")
_SUMMARY = re.compile(r"\[subq-eval\]\s{0,9}(Turns|Tool calls|Edit calls|Touched files)\s{0,9}:(.*)")
_ATTEMPT = re.compile(r"\[subq-eval\]\s{0,9}Attempt\s{0,9}#?(\d{1,6})\b")
_FILE = re.compile(r"\((\d{1,9}) diff lines?\)")
_TIME = re.compile(r"\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)\b")
_NOTHING = frozenset(("", "none", "-", "0", "(none)", "[]"))
_FILES = "Touched files"
_NUMBERS = {"Turns": "turns", "Tool calls": "tool_calls", "Edit calls": "edit_calls"}
_INDEX, _SUMMED_UP = "attempt_index", "summary"
_TRIES = 40
"""Braces tried as the beginning of a phase event on one line."""
_decoder = json.JSONDecoder(strict=False)


class _Line(Struct, gc=False):
    number: int
    text: str
    end: int
    """Byte at which the next line begins."""


class _Block(Struct):
    """The printed lines of one attempt."""

    index: int | None
    """The attempt's number as printed; None where nothing is."""
    facts: dict[str, str] = field(default_factory=dict)
    files: list[tuple[str, int]] | None = None
    statements: list[Statement] = field(default_factory=list)
    last_line: int = 0


def read_stdout(inputs: list[Input]) -> Reading:
    """A part for each attempt of each file."""
    return Reading(attempts=[part for source in inputs for part in _parts(source, _Printed(source).blocks())])


class _Printed:
    """Reads one file's marked lines into blocks, an attempt each: where attempts are announced, by that; else a new one
    begins where a figure is told again, other lines lie between, and the last summary was whole.
    """

    def __init__(self, source: Input) -> None:
        self._source = source
        self._blocks: list[_Block] = []
        self._waiting: list[Statement] = []
        self._announced = False

    def blocks(self) -> list[_Block]:
        artifact = self._source.artifact
        for line in _marked(self._source.data):
            artifact.records += 1
            attempt = _ATTEMPT.search(line.text)
            summary = _SUMMARY.search(line.text)
            phase = _phase(line.text) if "plannotator-phase" in line.text else None
            if attempt is not None:
                saw(artifact, "attempt")
                self._announce(int(attempt[1]), line)
            elif summary is not None:
                saw(artifact, "summary")
                self._summary(summary[1], summary[2].strip(), line)
            elif phase is not None:
                saw(artifact, "phase")
                self._phase(phase, line)
            else:
                saw(artifact, "other")
        if artifact.records == 0:
            artifact.records = 1
            saw(artifact, "log")
        if self._waiting:
            self._current(0).statements += self._waiting
        return self._blocks

    def _announce(self, number: int, line: _Line) -> None:
        if not self._announced:
            # The blocks before the first announcement are earlier attempts: some runs announce only retries.
            kept = [b for b in self._blocks if b.facts][-max(number - 1, 0) :] if number > 1 else []
            self._waiting = [s for b in self._blocks if b not in kept for s in b.statements] + self._waiting
            for n, unannounced in enumerate(reversed(kept), 1):
                unannounced.index = number - n
            self._blocks = kept
        self._announced = True
        earlier = next((b for b in self._blocks if b.index == number), None)
        block = earlier or _Block(number)
        if earlier is None:
            block.statements += self._waiting
            self._waiting = []
        else:
            self._blocks.remove(earlier)
        self._blocks.append(block)
        block.statements.append(self._statement(line.text.strip(), line, [_INDEX]))

    def _current(self, line: int) -> _Block:
        if not self._blocks:
            self._blocks.append(_Block(None))
        self._blocks[-1].last_line = line
        return self._blocks[-1]

    def _summary(self, name: str, value: str, line: _Line) -> None:
        last = self._blocks[-1] if self._blocks else None
        is_again = not self._announced and last is not None and name in last.facts
        if last is not None and is_again and len(last.facts) > 1 and line.number > last.last_line + 1:
            self._blocks.append(_Block(None))
        block = self._current(line.number)
        if not self._announced:
            block.statements += self._waiting
            self._waiting = []
        block.facts[name] = value
        text = line.text.strip()
        if name == _FILES:
            files, block.last_line, more = _touched(value, line, self._source.data)
            block.files = files if files or value.strip().lower() in _NOTHING else None
            text = "\n".join([text, *more])
        block.statements = [s for s in block.statements if f"summary.{name}" not in s.fields]
        block.statements.append(self._statement(text, line, [_SUMMED_UP, f"summary.{name}"]))

    def _phase(self, event: str, line: _Line) -> None:
        """Before a summary is printed its attempt's phases are; those behind the last one are the last one's."""
        statement = self._statement(event, line, [])
        statement.kind = "phase"
        value = json.loads(event, strict=False)
        for stamp in (value.get(name) for name in ("timestamp", "ts", "time", "at")):
            if isinstance(stamp, str) and (at := from_iso(stamp)) is not None:
                statement.at = at
                break
            if isinstance(stamp, int | float) and not isinstance(stamp, bool) and 1e8 < stamp < 1e14:
                statement.at = int(stamp * (1_000 if stamp > 1e11 else 1_000_000))
                break
        (self._blocks[-1].statements if self._announced else self._waiting).append(statement)

    def _statement(self, text: str, line: _Line, fields: list[str]) -> Statement:
        (statement,) = self._source.states(text, fields, line.number)
        clock = _TIME.match(line.text.lstrip())
        statement.at = from_iso(clock[1].replace(" ", "T")) if clock else None
        return statement


def _marked(data: bytes) -> Iterator[_Line]:
    """The lines with one of the marks, each with its number; the others are only counted."""
    number, counted, at = 1, 0, 0
    ahead = {mark: data.find(mark) for mark in _MARKS}
    while True:
        hits = [n for n in ahead.values() if n >= 0]
        if not hits:
            return
        hit = min(hits)
        start = data.rfind(b"\n", at, hit) + 1 or at
        for chunk in range(counted, start, _CHUNK):
            number += data[chunk : min(chunk + _CHUNK, start)].count(b"\n")
        counted = start
        stop = data.find(b"\n", hit)
        end = stop if stop >= 0 else len(data)
        window = data[max(start, hit - _MOST_OF_LINE) : min(end, hit + _MOST_OF_LINE)]
        at = end + 1
        yield _Line(number, _ESCAPES.sub("", window.decode("utf-8", "replace")), at)
        ahead = {mark: n if n >= at or n < 0 else data.find(mark, at) for mark, n in ahead.items()}


def _touched(value: str, line: _Line, data: bytes) -> tuple[list[tuple[str, int]], int, list[str]]:
    """Files with the lines of their diff, of this line and of those below it that go on with the list."""
    files, more = _files(value), []
    at, number = line.end, line.number
    while at < len(data):
        stop = data.find(b"\n", at, at + _MOST_OF_LINE)
        text = data[at : stop if stop >= 0 else at + _MOST_OF_LINE].decode("utf-8", "replace")
        if stop < 0 and at + _MOST_OF_LINE < len(data):
            break
        listed = [] if "[subq-eval]" in text and _SUMMARY.search(text) else _files(text)
        if not listed:
            break
        files += listed
        more.append(text.strip())
        number += 1
        at = stop + 1 if stop >= 0 else len(data)
    return files, number, more


def _files(text: str) -> list[tuple[str, int]]:
    """`path (N diff lines)`, separated by commas; nothing where it says none."""
    if text.strip().lower() in _NOTHING:
        return []
    touched, at = [], 0
    for match in _FILE.finditer(text):
        path = text[at : match.start()].strip().removeprefix("[subq-eval]").lstrip(",;-* \t").strip()
        at = match.end()
        if path:
            touched.append((path, int(match[1])))
    return touched


def _phase(text: str) -> str | None:
    """The phase event on a line, as JSON; whatever stands before and behind it is a log's."""
    mark = text.find("plannotator-phase")
    at = text.find("{")
    for _ in range(_TRIES):
        if at < 0 or at > mark:
            return None
        try:
            value, end = _decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            value, end = None, at
        if isinstance(value, dict) and value.get("event") == "plannotator-phase":
            return text[at:end]
        at = text.find("{", at + 1)
    return None


def _parts(source: Input, blocks: list[_Block]) -> list[Attempt]:
    root = source.folder
    if not blocks:
        return [Attempt(root=root, scope="trial", kinds=["stdout"])]
    numbers = [b.index for b in blocks if b.index is not None]
    first = min(numbers, default=0)
    base = 0 if first == 0 else 1  # announced as people count, unless one is called 0
    parts = []
    for n, block in enumerate(sorted(blocks, key=lambda b: b.index if b.index is not None else 0)):
        index = n if block.index is None else block.index - base
        part = Attempt(root=root, scope="attempt", attempt_index=index, kinds=["stdout"], statements=block.statements)
        if block.facts:
            part.summary = HarnessSummary(touched_files=block.files)
            for name, attribute in _NUMBERS.items():
                if digits := re.match(r"\d{1,9}", block.facts.get(name, "").replace(",", "")):
                    setattr(part.summary, attribute, int(digits[0]))
        timed = [(s.at, s.fields) for s in block.statements if s.at is not None]
        part.started_at = min((at for at, fields in timed if _INDEX in fields), default=None)
        if part.started_at is not None:
            part.ended_at = max((at for at, fields in timed if _SUMMED_UP in fields), default=None)
        parts.append(part)
    return parts
