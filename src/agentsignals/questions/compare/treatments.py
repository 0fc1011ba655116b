"""Who was tried, where a run does not record it: the user's patterns of folders, and patterns that names of folders
suggest."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from agentsignals.errors import UsageError
from agentsignals.model.model_names import maker
from agentsignals.questions.question import Row

_FIELD = re.compile(r"\{([A-Za-z_]\w{0,40})\}|(\*\*|\*|\?)")
_GLOB = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
_CONTENT = re.compile(r"\{\s*[\"']")
"""How the content of a treatments file begins, where it stands in place of the file."""
_SHAPE = (
    "Such a file is YAML or JSON: a pattern of folders each, and fields: '**/trace_??_{model_id}': {dataset: mine}."
)

Rules = Sequence[tuple[re.Pattern[str], Mapping[str, str]]]


def read_mapping(path: Path) -> Rules:
    """Read the patterns of a treatments file, in order. `{field}` in a pattern captures part of the folder's name.

    A pattern can stand in place of the file, and so can the file's content. UsageError if it is invalid.
    """
    import yaml  # noqa: PLC0415  (for such a file alone)

    try:
        if "{" in str(path) and not os.path.lexists(path):
            loaded = yaml.safe_load(str(path)) if _CONTENT.match(str(path)) else {str(path): None}
        else:
            loaded = yaml.safe_load(path.read_text("utf-8"))
        rules = msgspec.convert(loaded, dict[str, dict[str, str | int | float | bool] | None])
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError, RecursionError) as problem:
        raise UsageError(f"{path} is no file of treatments: {problem}", _SHAPE) from problem
    return [(_pattern(p), {k: str(v) for k, v in (fields or {}).items()}) for p, fields in rules.items()]


def mapped(rows: Sequence[Row], rules: Rules) -> list[Row]:
    """Add the fields of the first pattern that matches a trial's folder, where the run records none."""
    made = []
    for row in rows:
        matches = ((pattern.fullmatch(row["root"] or ""), fields) for pattern, fields in rules)
        stated: dict[str, str] = {}
        found = next(((match, fields) for match, fields in matches if match is not None), None)
        if found is None:
            made.append(row)
            continue
        stated = {**found[1], **{k: v for k, v in found[0].groupdict().items() if v}}
        knobs = {k: v for k, v in stated.items() if k not in row}
        columns = {k: v for k, v in stated.items() if k in row and row[k] in (None, "")}
        made.append({**row, **columns, "mapped": knobs})
    return made


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


# -- patterns that names of folders suggest ----------------------------------------------------------------------------

_PARTS = re.compile(r"__|[_@+= ,]")
"""What separates the fields of a folder's name. A dash and a point are parts of models' names."""
_NO_NAME = re.compile(
    r"(?:(?:run|job|trial|exp|experiment|seed|attempt|epoch|batch|part|shard|night|day|v|r|n)?[-.]?\d*|[\dT:.Z-]+|[0-9a-f-]{6,})",
    re.IGNORECASE,
)
"""Numbers, dates and ids, which name nobody."""
_GLOBBED = re.compile(r"[*?{}]")
_MOST_FOLDERS = 12
"""More folders that need a line each are not proposed."""


def proposed(rows: Sequence[Row]) -> str:
    """Return a value of `--treatments` that reads models out of the folders of attempts without one; empty if their
    names show none."""
    lacking = [
        row for row in rows if not row["model_id"] and row.get("root") and "model_id" not in row.get("mapped", {})
    ]
    for level in _levels(lacking):
        agents = {str(row["agent_type"]).lower() for row in lacking if row["agent_type"]}
        named = {folder: _model_in(folder, agents) for folder in level}
        if any(named.values()):
            return _pattern_of({folder: model for folder, model in named.items() if model})
    for level in _levels(lacking):
        if len(level) > 1 and (fields := _differing_field(sorted(level))):
            return _pattern_of(fields)
    return ""


def _levels(rows: Sequence[Row]) -> Iterator[set[str]]:
    """Yield the folders' names above the trials, outermost first: names under which several tasks lie."""
    by_level: dict[int, dict[str, set[str]]] = {}
    for row in rows:
        for at, folder in enumerate(str(row["root"]).strip("/").split("/")):
            by_level.setdefault(at, {}).setdefault(folder, set()).add(row["task_id"] or row["session_id"])
    for folders in by_level.values():
        if all(len(tasks) > 1 for tasks in folders.values()) and not any(map(_GLOBBED.search, folders)):
            yield set(folders)


def _model_in(folder: str, agents: set[str]) -> str:
    """Return the part of a folder's name that names a model of a known maker; empty if none does."""
    for field in _PARTS.split(folder):
        begins = [0, *(dash.end() for dash in re.finditer("-", field))]
        for at in begins:
            part = field[at:]
            is_agent = any(part.lower().startswith(agent) for agent in agents)
            if not is_agent and maker(part) and any(map(str.isdigit, part)) and not _IS_AGENT.match(part.lower()):
                return part
    return ""


_IS_AGENT = re.compile(
    r"(?:claude|qwen)-?code|(?:codex|gemini|kimi|mistral|grok|qwen)-(?:cli|agent)|codex(?=-gpt|-o\d|$)"
)


def _differing_field(folders: Sequence[str]) -> dict[str, str]:
    """Return by folder the one field in which their names differ, if it names something; else nothing."""
    parts = [_PARTS.split(folder) for folder in folders]
    if len({len(fields) for fields in parts}) > 1:
        return {}
    columns = [set(column) for column in zip(*parts, strict=True)]
    differing = [
        at for at, values in enumerate(columns) if len(values) > 1 and not all(map(_NO_NAME.fullmatch, values))
    ]
    if len(differing) != 1 or any(_NO_NAME.fullmatch(fields[differing[0]]) for fields in parts):
        return {}
    return {folder: fields[differing[0]] for folder, fields in zip(folders, parts, strict=True)}


def _pattern_of(models: Mapping[str, str]) -> str:
    """Return one pattern that finds these models in these folders; else the folders, a line each."""
    around = [(folder[: (at := folder.rindex(model))], folder[at + len(model) :]) for folder, model in models.items()]
    before = _alike([b[::-1] for b, _ in around])[::-1]
    after = _alike([a for _, a in around])
    before = before if all(b == before for b, _ in around) else f"*{before}"
    after = after if all(a == after for _, a in around) else f"{after}*"
    pattern = f"**/{before}{{model_id}}{after}/**"
    found = _pattern(pattern)
    matches = {folder: found.fullmatch(f"/{folder}/") for folder in models}
    if all(match is not None and match["model_id"] == models[folder] for folder, match in matches.items()):
        return pattern
    if len(models) > _MOST_FOLDERS:
        return ""
    lines = {f"**/{folder}/**": {"model_id": model} for folder, model in sorted(models.items())}
    return msgspec.json.encode(lines).decode()


def _alike(texts: Sequence[str]) -> str:
    """Return what these texts begin with."""
    first, last = min(texts), max(texts)
    return first[: next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]
