"""Read plain text and YAML of evaluations: a submission's `metadata.yaml`, SWE-agent's `run_batch.config.yaml`, logs,
and forms of ratings."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from agentsignals.formats import Input, Reading
from agentsignals.formats.instances import canonical, evaluation_of, run_of
from agentsignals.formats.records import UNREADABLE, saw, skip
from agentsignals.formats.swe_bench.reader import MODEL, Ratings, rating_parts
from agentsignals.model import Attempt, Statement, Verification

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
    of_batch = posixpath.basename(source.artifact.path) == RUN_BATCH
    stated = (_tasks(_inner(loaded, "instances")) if of_batch else _stated(loaded)) if isinstance(loaded, dict) else {}
    if not stated:
        skip(source.artifact, "bad_shape")
        return []
    saw(source.artifact, "metadata")
    text = "of all trials: " + ", ".join(f"{k} {v}" for k, v in stated.items())
    fields = [f"knobs.{name}" for name in stated]
    statement = Statement(text=text, artifact_id=source.artifact.artifact_id, line=1, fields=fields)
    root = posixpath.dirname(source.artifact.path)
    return [Attempt(root=root, scope="lent", knobs=stated, kinds=["harness_config"], statements=[statement])]


def _stated(loaded: Mapping[str, Any]) -> dict[str, Any]:
    tags = _inner(loaded, "tags")
    places = (loaded, _inner(loaded, "info"), tags, _inner(tags, "system"))
    stated = {}
    for knob, names in _KNOBS.items():
        values = (_setting(place.get(name)) for name in names for place in places)
        value = next((v for v in values if v is not None), None)
        if value is not None:
            stated[knob] = value
    return stated


def _tasks(instances: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tasks of a batch of SWE-agent: a subset of SWE-bench, a data set of the Hub, or a file."""
    subset = instances.get("subset") if instances.get("type") == "swe_bench" else None
    named = (instances.get("path_override"), f"swe-bench_{subset}" if subset else None, instances.get("dataset_name"))
    stated = {"dataset": next((n for n in (*named, instances.get("path")) if n), None), "split": instances.get("split")}
    return {name: value for name, value in stated.items() if isinstance(value, str) and value}


def _setting(value: object) -> str | int | float | bool | None:
    """A plain value; several models act together."""
    if isinstance(value, list):
        return " + ".join(str(item) for item in value if isinstance(item, str | int | float)) or None
    return value if isinstance(value, bool | int | float) or (isinstance(value, str) and value) else None


def _inner(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = of.get(name)
    return value if isinstance(value, dict) else {}


_RUBRICS = "Rubrics rating"
_OVERALL = "Overall rating"
_SUMMARY = re.compile(r"^[^\n]{0,80}\b\d{1,7} (?:passed|failed|errors?|skipped)\b[^\n]{0,200}$", re.MULTILINE)
_END = 8_000
_BY_HARNESS = re.compile(r"\s*\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} - ")
_FAILED = re.compile(r">>>>> Patch Apply Failed|Test timed out after \d{1,9} seconds")
_decoder = json.JSONDecoder(strict=False, parse_constant=lambda _: None)


def read(inputs: list[Input]) -> Reading:
    reading = Reading()
    for source in inputs:
        if posixpath.basename(source.artifact.path).endswith((".yaml", ".yml")):
            reading.attempts += metadata_parts(source)
            continue
        text = bytes(source.data).decode("utf-8", "replace")
        source.artifact.records += 1
        reading.attempts += _form(source, text) if _OVERALL in text else _log(source, text)
    return reading


def _log(source: Input, text: str) -> list[Attempt]:
    """A log: that it is there, and the last summary of a test runner in it. Of an instance whose evaluation failed
    nothing else is left: that its patch did not apply, or its tests took too long."""
    saw(source.artifact, "log")
    shown = [m[0].strip() for m in _SUMMARY.finditer(text[-_END:])]
    name = posixpath.basename(source.artifact.path)
    statement = Statement(
        text=f"{name}: {shown[-1] if shown else 'no summary'}",
        artifact_id=source.artifact.artifact_id,
        line=text.count("\n"),
        fields=[],
    )
    root = posixpath.dirname(source.artifact.path)
    part = Attempt(root=root, scope="trial", kinds=["attempt_log"], statements=[statement])
    instance = posixpath.basename(root)
    evaluation = evaluation_of(source.artifact.path, instance)
    if "model" not in evaluation or not _BY_HARNESS.match(text):
        return [part]
    part.task_id, part.run_id = canonical(instance), evaluation["run"]
    part.goes_by = run_of(source.artifact.path, instance)
    ended = next((m[0] for m in _FAILED.finditer(text)), None)
    if ended is not None:
        part.verification = Verification(patch_applies=False) if "Patch" in ended else Verification(status="timed_out")
        statement.text, statement.fields = f"{name}: {ended}", ["verification"]
    observed = {MODEL: evaluation["model"].replace("__", "/")}
    return [part, Attempt(root=root, scope="lent", goes_by=part.goes_by, observed=observed)]


def _form(source: Input, text: str) -> list[Attempt]:
    """A filled-in form: under its headings `Rubrics rating` and `Overall rating` stand JSON objects by attempt."""
    form: dict[str, Any] = {}
    for heading, name in ((_RUBRICS, "rubrics_rating"), (_OVERALL, "overall_rating")):
        rated = next(_objects_under(text, heading), None)
        if rated is not None:
            form[name] = rated
    try:
        ratings = msgspec.convert(form, Ratings)
    except UNREADABLE:
        ratings = Ratings()
    parts = rating_parts(source, ratings)
    if parts:
        saw(source.artifact, "rating_form")
    else:
        skip(source.artifact, "no_ratings")
    return parts


def _objects_under(text: str, heading: str) -> Iterator[Any]:
    """The first JSON object below a line that begins with the heading."""
    at = text.find(f"\n{heading}")
    begin = text.find("\n{", at) if at >= 0 else -1
    if begin >= 0:
        try:
            yield _decoder.raw_decode(text, begin + 1)[0]
        except (ValueError, RecursionError):
            return
