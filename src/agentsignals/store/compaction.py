"""Small shards put together, so that a store that is brought up to date after every prompt keeps few of them.

Shards lie in tiers by their sessions: up to `FEW`, up to its square. As many of a tier as `FEW` become one of the next,
and what is larger stays. So a store has fewer than `FEW` shards a tier beside the large ones, and a session is copied
once a tier.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator

import pyarrow as pa
from msgspec.structs import replace

from agentsignals.store import Store, shards, tables
from agentsignals.store import parquet as arrow_tables
from agentsignals.store import parquet as table_files
from agentsignals.store.index import FOLDER, ShardEntry

FEW = 16
LARGE_BYTES = 1 << 20
"""A shard of so much is left alone: 64 MB of traces make one to three."""
LARGE_SESSIONS = FEW * FEW
"""As is one of so many sessions, however small: a shard is read whole, at some 45 KB a session."""


def compact(store: Store) -> int:
    """Puts small shards together where there are many, and commits it; how many went. Only while no worker writes."""
    went = 0
    for group in _groups(store):
        entries = [store.manifest.shards[name] for name in group]
        content = hashlib.blake2b("|".join(group).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
        name = store.next_name(content)
        with shards.Draft(store.folder, name) as draft:
            for table in tables.NAMES:
                for rows in shards.together(_rows(store, group, table)):
                    draft.add({table: rows})
        errors: Counter[str] = Counter()
        for entry in entries:
            errors.update(entry.internal_errors)
        store.unite(group, name, replace(entries[0], tables=draft.parts, values="", internal_errors=dict(errors)))
        went += len(group)
    return went


def _groups(store: Store) -> Iterator[list[str]]:
    """Small shards of one tier whose values were made alike, in order of name."""
    whole = set(store.whole())
    tiers: dict[object, list[str]] = defaultdict(list)
    for name, entry in sorted(store.manifest.shards.items()):
        sessions = len(store.holdings.sessions_of(name))
        n_bytes = sum(part.bytes for part in entry.tables.values())
        if name in whole and n_bytes < LARGE_BYTES and sessions < LARGE_SESSIONS:
            tiers[_tier(sessions), _alike(entry)].append(name)
    for names in tiers.values():
        for at in range(0, len(names) - FEW + 1, FEW):
            yield names[at : at + FEW]


def _tier(sessions: int) -> int:
    tier = 0
    while sessions >= FEW:
        tier, sessions = tier + 1, sessions // FEW
    return tier


def _alike(entry: ShardEntry) -> object:
    return entry.embedder, entry.labels, tuple(sorted(entry.signals.items()))


def _rows(store: Store, group: list[str], table: str) -> Iterator[pa.Table]:
    for name in group:
        if table in store.manifest.shards[name].tables:
            for rows in table_files.pieces(store.folder / FOLDER / name / f"{table}.parquet"):
                yield arrow_tables.of_today(rows, arrow_tables.SCHEMAS[table])
