"""Makes the index again from the shards, when it was thrown away or cut short."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentsignals.errors import StoreError
from agentsignals.store import shards, table_files, tables
from agentsignals.store.damage import RETIRED
from agentsignals.store.files import Part
from agentsignals.store.manifest import FIGURES, Manifest, SessionEntry, ShardEntry

_LATER = ("visible_output_tokens", "n_prompts")
"""Which shards of older programs lack."""
_FIGURES = ("context", *(name for name in FIGURES if name not in _LATER))


def rebuilt(root: Path, write: bool) -> Manifest:
    """An index of what is there, each table read once to see that it is sound. A session found in two shards (a run was
    killed between writing and committing) stays in the younger: the older is written again without it, or left out
    where nothing may be written (`write`). Files are forgotten, so the next run reads them again and replaces what it
    finds.
    """
    made = Manifest()
    folders = [p for p in (root / shards.FOLDER).iterdir() if p.is_dir() and not p.name.startswith(shards.DRAFT)]
    made.run = max((run_of(p.name) for p in folders), default=0)
    for folder in sorted(folders, key=lambda p: (-run_of(p.name), -p.stat().st_mtime_ns, p.name)):
        if (folder / RETIRED).exists():
            continue
        name, parts = folder.name, {table: _mark(folder / f"{table}.parquet") for table in tables.NAMES}
        rows = _rows(root, name, "sessions", ["session_id", *_FIGURES], parts)
        versions = {r["signal"]: r["version"] for r in _rows(root, name, "signals", ["signal", "version"], parts)}
        later = {
            column: {
                r["session_id"]: r[column] for r in _rows(root, name, "sessions", ["session_id", column], {**parts})
            }
            for column in _LATER
        }
        twice = {r["session_id"] for r in rows} & set(made.sessions)
        if twice and (not write or len(twice) == len(rows)):
            continue
        if twice:
            name = f"{name}-{len(twice)}"
            parts = shards.without(root, folder.name, name, parts, twice, set())
        made.shards[name] = ShardEntry(signals=versions, tables=parts)
        for row in rows:
            if row["session_id"] not in twice:
                figures = {k: row[k] for k in _FIGURES}
                figures |= {column: values.get(row["session_id"]) for column, values in later.items()}
                made.sessions[row["session_id"]] = SessionEntry(
                    shard=name,
                    family=f"session:{row['session_id']}",
                    **figures,
                )
    values = [(p, int(p.suffixes[0][1:])) for p in root.glob("signals.*.parquet") if p.suffixes[0][1:].isdigit()]
    if values:
        path, number = max(values, key=lambda pair: pair[1])
        made.across, made.run = _mark(path, path.name), max(made.run, number)
    return made


def run_of(name: str) -> int:
    """The run that wrote a shard, by its name."""
    number = name.partition("-")[0]
    return int(number) if number.isdigit() and len(number) < 10 else 0


def _mark(path: Path, file: str = "") -> Part:
    try:
        return table_files.as_it_is(path, file)
    except StoreError:
        return Part(0, 0, "", 0, file)  # matches nothing: damaged, and told so


def _rows(root: Path, name: str, table: str, columns: list[str], parts: dict[str, Part]) -> list[dict[str, Any]]:
    """Rows of a table, none of one that is damaged. One that lacks these columns is."""
    if parts[table].digest:
        try:
            return shards.read_table(root, name, table, columns)
        except StoreError:
            parts[table] = Part(0, 0, "", 0)
    return []
