"""Who was tried, from a file of the user's, where the layout of a run is silent: folders by pattern, their fields."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from agentsignals.analysis.study import Row
from agentsignals.errors import StoreError, UsageError

_FIELD = re.compile(r"\{([A-Za-z_]\w{0,40})\}|(\*\*|\*|\?)")
_GLOB = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
_SHAPE = (
    "Such a file is YAML or JSON: a pattern of folders each, and fields: '**/trace_??_{model_id}': {dataset: mine}."
)

Rules = Sequence[tuple[re.Pattern[str], Mapping[str, str]]]


def tables_of(
    asked: Mapping[str, tuple[Sequence[str], Sequence[Sequence[Any]]]], treatments: Path | None, where: str
) -> dict[str, list[Row]]:
    """What a store answers to queries (names and rows by query), as rows; attempts with what the file `treatments` says
    of them. StoreError without an attempt."""
    tables = {name: [dict(zip(names, row, strict=True)) for row in values] for name, (names, values) in asked.items()}
    if treatments is not None:
        tables["attempts"] = mapped(tables["attempts"], read_mapping(treatments))
    if not tables["attempts"]:
        raise StoreError(
            "There is no eval attempt" + (" under this condition." if where != "true" else "."),
            "Attempts come from eval runs (Harbor, SWE-bench, Inspect …): `agentsignals analyze RUNS` reads them in.",
        )
    return tables


def read_mapping(path: Path) -> Rules:
    """The patterns of a file, in its order; `{field}` in a pattern is what the folder has there. UsageError where it
    can't be read or is no such file."""
    import yaml  # noqa: PLC0415  (for such a file alone)

    try:
        loaded = yaml.safe_load(path.read_text("utf-8"))
        rules = msgspec.convert(loaded, dict[str, dict[str, str | int | float | bool] | None])
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError, RecursionError) as problem:
        raise UsageError(f"{path} is no file of treatments: {problem}", _SHAPE) from problem
    return [(_pattern(p), {k: str(v) for k, v in (fields or {}).items()}) for p, fields in rules.items()]


def mapped(rows: Sequence[Row], rules: Rules) -> list[Row]:
    """The rows of attempts, with fields of the first pattern that fits the trial's folder where the run is silent."""
    return [_mapped(row, rules) for row in rows]


def _mapped(row: Row, rules: Rules) -> Row:
    for pattern, fields in rules:
        match = pattern.fullmatch(row["root"] or "")
        if match is not None:
            stated = {**fields, **{k: v for k, v in match.groupdict().items() if v}}
            knobs = {k: v for k, v in stated.items() if k not in row}
            columns = {k: v for k, v in stated.items() if k in row and row[k] in (None, "")}
            return {**row, **columns, "mapped": knobs}
    return row


def _pattern(text: str) -> re.Pattern[str]:
    parts, at, seen = [], 0, set[str]()
    for match in _FIELD.finditer(text):
        parts.append(re.escape(text[at : match.start()]))
        name, glob = match.groups()
        if name in seen:
            raise UsageError(f"{text!r} names {{{name}}} twice.", _SHAPE)
        seen.update([name] if name else ())
        parts.append(f"(?P<{name}>[^/]+)" if name else _GLOB[glob])
        at = match.end()
    return re.compile("".join((*parts, re.escape(text[at:]))), re.DOTALL)
