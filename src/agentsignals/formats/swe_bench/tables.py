"""Tables of results that people and leaderboards keep (JSON, JSON Lines, CSV, Parquet): a row an attempt, with
`instance_id` and `resolved`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from agentsignals.formats import Input
from agentsignals.formats.instances import canonical
from agentsignals.formats.records import UNREADABLE, saw, skip
from agentsignals.formats.swe_bench.columns import COLUMNS, PARQUET, parquet_rows
from agentsignals.model.attempt import Attempt, Statement

_KNOBS = {
    "model_id": ("model_id", "model", "model_name", "model_name_or_path"),
    "agent_type": ("agent_type", "agent", "scaffold", "system"),
    "agent_version": ("agent_version",),
    "dataset": ("dataset", "benchmark"),
    "split": ("split",),
    "condition": ("condition",),
    "seed": ("seed",),
    "reasoning_effort": ("reasoning_effort", "effort"),
    "temperature": ("temperature",),
    "tools": ("tools",),
    "timeout_s": ("timeout_s",),
    "attempt1_tool_cap": ("tool_cap", "attempt1_tool_cap"),
    "max_steps": ("max_steps", "max_turns", "step_limit"),
    "max_retries": ("max_retries", "retries"),
    "cost_limit": ("cost_limit",),
}
"""Who was tried, by the columns' usual names, best first; other columns are the table's own."""
_RUN, _COST, _PATCH = ("run_id", "run"), ("cost_usd", "cost"), "model_patch"
_READ = COLUMNS | {*_RUN, *_COST, _PATCH, *(name for names in _KNOBS.values() for name in names)}
_YES = frozenset(("true", "yes", "1", "1.0", "resolved"))
_NO = frozenset(("false", "no", "0", "0.0", "unresolved"))
_decode = msgspec.json.Decoder().decode


def table_parts(source: Input) -> list[Attempt]:
    """The rows of a table as attempts, each a trial of its own; of JSON, JSON Lines or CSV."""
    parts = []
    for line, row in _rows(source):
        source.artifact.records += 1
        if isinstance(row, str):
            skip(source.artifact, row)
            continue
        if row is None or not isinstance(row.get("instance_id"), str) or not row["instance_id"]:
            skip(source.artifact, "bad_shape")
            continue
        saw(source.artifact, "result", 1)
        parts.append(_part(source, line, row))
    return parts


def _rows(source: Input) -> Iterator[tuple[int, Mapping[str, Any] | str | None]]:
    """The rows by number; None for what is no row, a reason for many that could not be read."""
    if bytes(source.data[: len(PARQUET)]) == PARQUET:
        rows_read = parquet_rows(bytes(source.data), _READ)
        yield from ((0, row) if isinstance(row, str) else row for row in rows_read)
        return
    text = bytes(source.data).decode("utf-8-sig", "replace")
    if text.lstrip()[:1] not in ("{", "["):
        yield from enumerate(_of_csv(text), 2)
        return
    try:
        whole = _decode(text)
    except UNREADABLE:
        whole = [_object(line) for line in text.splitlines() if line.strip()]
    rows: Iterable[object] = whole if isinstance(whole, list) else [whole]
    yield from ((n, row if isinstance(row, dict) else None) for n, row in enumerate(rows, 1))


def _of_csv(text: str) -> Iterator[Mapping[str, Any] | None]:
    rows = csv.DictReader(io.StringIO(text))
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error:
            yield None
            continue
        yield {k: v for k, v in row.items() if isinstance(k, str) and v not in (None, "")}


def _object(line: str) -> object:
    try:
        return _decode(line)
    except UNREADABLE:
        return None


def _part(source: Input, line: int, row: Mapping[str, Any]) -> Attempt:
    knobs = {knob: _first(row, names) for knob, names in _KNOBS.items()}
    observed = {knob: value for knob, value in knobs.items() if value is not None}
    resolved, cost = _yes_or_no(row.get("resolved")), _number(_first(row, _COST))
    run = _first(row, _RUN)
    became = {None: "not judged", True: "resolved", False: "not resolved"}[resolved]
    return Attempt(
        root=f"{source.artifact.path}/{line}",
        scope="trial",
        task_id=canonical(row["instance_id"]),
        run_id=str(run) if run is not None else None,
        reward=None if resolved is None else float(resolved),
        cost_usd=cost,
        patch=[] if row.get(_PATCH) == "" else None,
        observed=observed,
        statements=[
            Statement(
                text=f"row {line}: {row['instance_id']} {became}",
                artifact_id=source.artifact.artifact_id,
                line=line,
                fields=["reward", "cost_usd", *(f"knobs.{knob}" for knob in observed)],
            )
        ],
    )


def _first(row: Mapping[str, Any], names: Iterable[str]) -> str | int | float | list[str] | None:
    values = (row.get(name) for name in names)
    return next((v for v in values if _is_setting(v)), None)


def _is_setting(value: object) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, str) for item in value)
    missing = isinstance(value, bool) or value == "" or value != value  # noqa: PLR0124  (what is no number)
    return isinstance(value, str | int | float) and not missing


def _yes_or_no(value: object) -> bool | None:
    word = str(value).strip().lower()
    return True if word in _YES else False if word in _NO else None


def _number(value: object) -> float | None:
    try:
        number = float(value) if isinstance(value, str | int | float) else None
    except (ValueError, OverflowError):
        return None
    return number if number is not None and 0 <= number < 1e9 else None
