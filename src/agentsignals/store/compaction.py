"""Merges small shards, so that a store that is updated after every prompt keeps few of them.

Shards are in tiers by their number of sessions: up to `FEW`, up to its square. `FEW` shards of a tier become one of the
next, and larger ones stay. So a store has fewer than `FEW` shards a tier besides the large ones, and a session is
copied once a tier.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator

import pyarrow as pa
from msgspec.structs import replace

from agentsignals.store import Store, parquet, shards, tables
from agentsignals.store.index import SHARDS_FOLDER

FEW = 16
LARGE_BYTES = 1 << 20
"""Size from which a shard is left alone: 64 MB of traces make one to three."""
LARGE_SESSIONS = FEW * FEW
"""Sessions from which a shard is left alone, however small: it is read whole, at some 45 KB a session."""


def compact(store: Store) -> int:
    """Merge small shards where there are many, commit, and return how many were merged. Call it only while no worker
    writes."""
    went = 0
    for group in _groups(store):
        entries = [store.manifest.shards[name] for name in group]
        content = hashlib.blake2b("|".join(group).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
        name = store.new_shard_name(content)
        with shards.Draft(store.folder, name) as draft:
            for table in tables.NAMES:
                for rows in shards.combine_batches(_rows(store, group, table)):
                    draft.add({table: rows})
        errors: Counter[str] = Counter()
        for entry in entries:
            errors.update(entry.internal_errors)
        store.merge_shards(
            group, name, replace(entries[0], tables=draft.parts, values="", internal_errors=dict(errors))
        )
        went += len(group)
    return went


def _groups(store: Store) -> Iterator[list[str]]:
    """Small shards of one tier whose values were computed alike, in order of name."""
    whole = set(store.readable_shards())
    tiers: dict[object, list[str]] = defaultdict(list)
    for name, entry in sorted(store.manifest.shards.items()):
        sessions = len(store.shard_index.sessions_of(name))
        n_bytes = sum(part.bytes for part in entry.tables.values())
        if name in whole and n_bytes < LARGE_BYTES and sessions < LARGE_SESSIONS:
            tier = 0
            while sessions >= FEW:
                tier, sessions = tier + 1, sessions // FEW
            tiers[tier, entry.embedder, entry.labels, tuple(sorted(entry.signals.items()))].append(name)
    for names in tiers.values():
        for at in range(0, len(names) - FEW + 1, FEW):
            yield names[at : at + FEW]


def _rows(store: Store, group: list[str], table: str) -> Iterator[pa.Table]:
    for name in group:
        if table in store.manifest.shards[name].tables:
            for rows in parquet.read_batches(store.folder / SHARDS_FOLDER / name / f"{table}.parquet"):
                yield parquet.with_current_columns(rows, parquet.SCHEMAS[table])
