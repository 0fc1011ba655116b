"""Compares the store with what its index says was written."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from agentsignals.store import files, parts
from agentsignals.store.manifest import Manifest
from agentsignals.store.parts import Damage

FOLDER = "shards"
RETIRED = ".retired"
"""Marks a shard that others took the place of: no index names it, a reader may still hold it."""


def damage(root: Path, manifest: Manifest, thorough: bool = False) -> list[Damage]:
    """What is not as it was written. Lengths and times are compared, and the bytes where a time differs; with
    `thorough` all bytes are.
    """
    counted = Counter(entry.shard for entry in manifest.sessions.values())
    broken: list[Damage] = []
    for name, shard in sorted(manifest.shards.items()):
        folder, n = f"{root}/{FOLDER}/{name}", counted[name]
        wrong = {
            table: what
            for table, part in shard.tables.items()
            if (what := files.what_is_wrong(f"{folder}/{table}.parquet", part, thorough))
        }
        for table, what in wrong.items():
            if thorough:  # what only its bytes show is looked at by them from now on
                shard.tables[table].stamp = 0
            rows = f"{shard.tables[table].rows:,} rows of {table}, of {n:,} sessions, are missing"
            broken.append(
                Damage(place=f"{FOLDER}/{name}/{table}.parquet", what=what, lacks=rows, shard=name, table=table)
            )
    across = manifest.across
    if across is not None and (what := files.what_is_wrong(f"{root}/{across.file}", across, thorough)):
        across.stamp = 0 if thorough else across.stamp
        broken.append(Damage(place=across.file, what=what, lacks="values across sessions are missing", table="signals"))
    return [*broken, *parts.load(root).damage(thorough=thorough)]


def in_words(damages: list[Damage], manifest: Manifest) -> list[str]:
    """A line for each damaged part; a shard of which nothing is left is one."""
    by_shard: dict[str, list[Damage]] = {}
    lines = []
    for damage in damages:
        if damage.shard:
            by_shard.setdefault(damage.shard, []).append(damage)
        else:
            lines.append(str(damage))
    counted = Counter(entry.shard for entry in manifest.sessions.values())
    for name, those in by_shard.items():
        if len(those) == len(manifest.shards[name].tables) and len({d.what for d in those}) == 1:
            lines.append(f"{FOLDER}/{name} {those[0].what}: {counted[name]:,} sessions are missing")
        else:
            lines += map(str, those)
    return sorted(lines)
