"""What the second pass keeps of each session is small: all sessions of a store are in memory at once."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

from agentsignals.ingest import across, pipeline
from agentsignals.store import Store
from tests.claude import Log

PROMPTS = 120
MOST_BYTES = 12_000
"""Of a session of so many prompts; unfolded they took 33,000."""


def test_a_session_of_many_prompts_takes_little_in_the_second_pass(tmp_path: Path) -> None:
    log = Log("many-prompts")
    for n in range(PROMPTS):
        log.user(f"Please look at part {n} of the parser")
    (tmp_path / "a.jsonl").write_text("\n".join(log.lines) + "\n")
    pipeline.analyze([str(tmp_path / "a.jsonl")], tmp_path / "store", jobs=1)
    store = Store(tmp_path / "store")
    (shard,) = store.manifest.shards
    across.gists_of(store, shard)  # what is loaded on first use
    tracemalloc.start()
    try:
        (kept,) = across.gists_of(store, shard)
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept.n_turns == PROMPTS
    assert size < MOST_BYTES
