"""The treatment as the harness of Agent Signals configures it, under its names."""

from __future__ import annotations

import re
from typing import Any

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
NESTED = ("treatment", "config", "harness", "harness_config")
"""Where a file may keep its configuration."""
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
