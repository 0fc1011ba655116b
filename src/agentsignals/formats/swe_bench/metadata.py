"""What a submission to the leaderboard says of itself: `metadata.yaml` beside its predictions."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from agentsignals.formats import Input
from agentsignals.formats.records import saw, skip
from agentsignals.model.attempt import Attempt, Statement

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
    except (yaml.YAMLError, RecursionError, ValueError):
        loaded = None
    stated = _stated(loaded) if isinstance(loaded, dict) else {}
    if not stated:
        skip(source.artifact, "bad_shape")
        return []
    saw(source.artifact, "metadata")
    text = "submitted as: " + ", ".join(f"{k} {v}" for k, v in stated.items())
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


def _setting(value: object) -> str | int | float | bool | None:
    """A plain value; several models act together."""
    if isinstance(value, list):
        return " + ".join(str(item) for item in value if isinstance(item, str | int | float)) or None
    return value if isinstance(value, bool | int | float) or (isinstance(value, str) and value) else None


def _inner(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = of.get(name)
    return value if isinstance(value, dict) else {}
