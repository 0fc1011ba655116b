"""What is said once of all trials of a run: a submission's `metadata.yaml`, SWE-agent's `run_batch.config.yaml`."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

import msgspec

from agentsignals.formats import Input
from agentsignals.formats.records import saw, skip
from agentsignals.model.attempt import Attempt, Statement

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
"""Who was tried, by the names that submissions use: at the top, or under `info`, `tags` or `tags.system`."""


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
    """Which tasks a batch of SWE-agent was given: a subset of SWE-bench, a data set of the Hub, or a file."""
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
