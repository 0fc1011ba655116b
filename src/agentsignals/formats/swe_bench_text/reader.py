"""Read plain text and YAML of evaluations: a submission's `metadata.yaml`, SWE-agent's `run_batch.config.yaml`, logs,
and forms of ratings."""

import json
import posixpath
import re
from contextlib import suppress
from typing import Any

import msgspec

from agentsignals.formats import Input, Reading
from agentsignals.formats.instances import canonical, evaluation_of, is_named_for_instance, run_of
from agentsignals.formats.mini_swe_agent.reader import ending_of
from agentsignals.formats.records import UNREADABLE, inside, saw, skip
from agentsignals.formats.swe_agent.reader import ENDINGS
from agentsignals.formats.swe_bench.reader import MODEL, Ratings, rating_parts
from agentsignals.formats.swe_bench_text import STATUSES
from agentsignals.formats.test_report import read_log
from agentsignals.model import Attempt, Verification

RUN_BATCH = "run_batch.config.yaml"
_KNOBS = {
    "model_id": ("model", "models"),
    "agent_type": ("agent", "name"),
    "agent_version": ("agent_version",),
    "dataset": ("dataset",),
    "split": ("split",),
    "max_attempts": ("attempts",),
    "os_model": ("os_model",),
    "os_system": ("os_system", "oss"),
}
"""Names under which submissions say who was tried: at the top, or under `info`, `tags` or `tags.system`."""


def exit_status_parts(source: Input) -> list[Attempt]:
    """Return how instances of a batch of SWE-agent or mini-SWE-agent ended, where something else than the agent ended
    them. An instance whose container did not start leaves no trajectory."""
    import yaml  # noqa: PLC0415  (for such a file alone)

    source.artifact.records += 1
    try:
        listed = yaml.safe_load(bytes(source.data).decode("utf-8", "replace"))[STATUSES.rstrip(":")]
        by_status = msgspec.convert(listed, dict[str, list[str]])
    except (yaml.YAMLError, msgspec.ValidationError, RecursionError, ValueError, KeyError, TypeError):
        skip(source.artifact, "bad_shape")
        return []
    saw(source.artifact, "exit_statuses")
    parts = []
    for status, instances in by_status.items():
        ending = ENDINGS.get(status) or ending_of(status)
        for instance in instances if ending != "finished" else ():
            said = source.states(f"{instance} ended by {status}", ["ending", "exception", "exit_status"])
            part = Attempt(root=source.folder, scope="lent", task_id=canonical(instance), statements=said)
            part.exit_status, part.ending = status, ending
            part.exception = status if ending == "infrastructure" else None
            parts.append(part)
    return parts


def metadata_parts(source: Input) -> list[Attempt]:
    """One part, lent to all trials below."""
    import yaml  # noqa: PLC0415  (for such a file alone)

    source.artifact.records += 1
    try:
        loaded = yaml.safe_load(bytes(source.data).decode("utf-8", "replace"))
        if isinstance(loaded, str):  # SWE-agent writes its settings as JSON into a YAML text
            loaded = msgspec.json.decode(loaded)
    except (yaml.YAMLError, msgspec.DecodeError, RecursionError, ValueError):
        loaded = None
    stated: dict[str, Any] = {}
    if isinstance(loaded, dict) and posixpath.basename(source.artifact.path) == RUN_BATCH:
        # The tasks of a batch of SWE-agent: a subset of SWE-bench, a data set of the Hub, or a file.
        override, subset, dataset, path, split, type_ = (
            inside(loaded, "instances", name)
            for name in ("path_override", "subset", "dataset_name", "path", "split", "type")
        )
        subset = f"swe-bench_{subset}" if type_ == "swe_bench" and subset else None
        facts = {"dataset": override or subset or dataset or path, "split": split}
        stated = {name: value for name, value in facts.items() if isinstance(value, str) and value}
    elif isinstance(loaded, dict):
        places: tuple[tuple[str, ...], ...] = ((), ("info",), ("tags",), ("tags", "system"))
        for knob, names in _KNOBS.items():
            for named in (inside(loaded, *place, name) for name in names for place in places):
                value = named
                if isinstance(value, list):  # several models act together
                    value = " + ".join(str(item) for item in value if isinstance(item, str | int | float))
                if isinstance(value, bool | int | float) or (isinstance(value, str) and value):
                    stated[knob] = value
                    break
    if not stated:
        skip(source.artifact, "bad_shape")
        return []
    saw(source.artifact, "metadata")
    text = "of all trials: " + ", ".join(f"{k} {v}" for k, v in stated.items())
    statements = source.states(text, [f"knobs.{name}" for name in stated])
    return [Attempt(root=source.folder, scope="lent", knobs=stated, kinds=["harness_config"], statements=statements)]


_SUMMARY = re.compile(r"^[^\n]{0,80}\b\d{1,7} (?:passed|failed|errors?|skipped)\b[^\n]{0,200}$", re.MULTILINE)
_END = 8_000
_BY_HARNESS = re.compile(r"\s*\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} - ")
_FAILED = re.compile(r">>>>> Patch Apply Failed|Test timed out after \d{1,9} seconds")
_HEADINGS = {"Rubrics rating": "rubrics_rating", "Overall rating": "overall_rating"}
"""Headings of a form, below which JSON objects by attempt stand."""
_decoder = json.JSONDecoder(strict=False, parse_constant=lambda _: None)


def read(inputs: list[Input]) -> Reading:
    reading = Reading()
    for source in inputs:
        if bytes(source.data[:64]).lstrip().startswith(STATUSES.encode()):
            reading.attempts += exit_status_parts(source)
            continue
        if source.artifact.path.endswith((".yaml", ".yml")):
            reading.attempts += metadata_parts(source)
            continue
        text = bytes(source.data).decode("utf-8", "replace")
        source.artifact.records += 1
        reading.attempts += _form(source, text) if "Overall rating" in text else _log(source, text)
    return reading


def _log(source: Input, text: str) -> list[Attempt]:
    """A log: that it is there, and the last summary of a test runner in it. Of an instance whose evaluation failed
    nothing else is left: that its patch did not apply, or its tests took too long."""
    root, name = posixpath.split(source.artifact.path)
    instance = posixpath.basename(root)
    if is_named_for_instance(name) and not name.lower().startswith(instance.lower()):
        # A folder of logs of many instances is no trial, and nothing names the run of each.
        skip(source.artifact, "log_of_no_trial")
        return []
    saw(source.artifact, "log")
    shown = [m[0].strip() for m in _SUMMARY.finditer(text[-_END:])]
    statements = source.states(f"{name}: {shown[-1] if shown else 'no summary'}", line=text.count("\n"))
    part = Attempt(root=root, scope="trial", kinds=["attempt_log"], statements=statements)
    evaluation = evaluation_of(source.artifact.path, instance)
    if not _BY_HARNESS.match(text):
        # Tests by name are the report's; the log tells whether any ran: without one the report lists all as failed.
        tests = read_log(source.data)
        if tests.state in ("not_run", "fault"):
            part.verification, part.fault = tests.verification, tests.fault or None
            part.statements = source.states(tests.text, ["fault" if tests.fault else "verification"], tests.line)
    if "model" not in evaluation or not _BY_HARNESS.match(text):
        return [part]
    part.task_id, part.run_id = canonical(instance), evaluation["run"]
    part.goes_by = run_of(source.artifact.path, instance)
    ended = next((m[0] for m in _FAILED.finditer(text)), None)
    if ended is not None:
        part.verification = Verification(patch_applies=False) if "Patch" in ended else Verification(status="timed_out")
        statements[0].text, statements[0].fields = f"{name}: {ended}", ["verification"]
    observed = {MODEL: evaluation["model"].replace("__", "/")}
    return [part, Attempt(root=root, scope="lent", goes_by=part.goes_by, observed=observed)]


def _form(source: Input, text: str) -> list[Attempt]:
    """A filled-in form: the first JSON object below each heading."""
    form: dict[str, Any] = {}
    for heading, name in _HEADINGS.items():
        at = text.find(f"\n{heading}")
        begin = text.find("\n{", at) if at >= 0 else -1
        if begin >= 0:
            with suppress(ValueError, RecursionError):
                form[name] = _decoder.raw_decode(text, begin + 1)[0]
    try:
        parts = rating_parts(source, msgspec.convert(form, Ratings))
    except UNREADABLE:
        parts = []
    if parts:
        saw(source.artifact, "rating_form")
    else:
        skip(source.artifact, "no_ratings")
    return parts
