"""Collected from every layout in which Entire has kept checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentsignals.ingest.collection import collect
from agentsignals.store import Store
from tests.claude import SESSION, Log
from tests.git_repositories import V1, Repository, metadata
from tests.quick import some


def snapshots(ids: list[str]) -> dict[str, str]:
    """The transcript of one session as each checkpoint has it: each holds the one before, and a turn more."""
    log = Log()
    found = {}
    for n, checkpoint_id in enumerate(ids):
        log.user(f"turn {n}")
        log.ran("Write", file_path=f"/work/shop/{n}.py", content=f"line_{n} = {n}\n")
        found[checkpoint_id] = log.data().decode()
    return found


def on_one_ref(ref: str, transcripts: dict[str, str]) -> list[tuple[str, dict[str, str]]]:
    files: dict[str, str] = {}
    for one, text in transcripts.items():
        folder = f"{one[:2]}/{one[2:]}/0"
        files |= {f"{folder}/metadata.json": metadata(SESSION, one), f"{folder}/full.jsonl": text}
    return [(ref, files)]


def on_two_refs(transcripts: dict[str, str]) -> list[tuple[str, dict[str, str]]]:
    about = {f"{one[:2]}/{one[2:]}/0/metadata.json": metadata(SESSION, one) for one in transcripts}
    raw = {f"{one[:2]}/{one[2:]}/0/raw_transcript": text for one, text in transcripts.items()}
    return [("refs/entire/checkpoints/v2/main", about), ("refs/entire/checkpoints/v2/full/current", raw)]


def on_a_ref_each(transcripts: dict[str, str]) -> list[tuple[str, dict[str, str]]]:
    return [
        (f"refs/entire/checkpoints/{one[-2:]}/{one}", {"0/metadata.json": metadata(SESSION, one), "0/full.jsonl": text})
        for one, text in transcripts.items()
    ]


HEX = ["a1b2c3d4e5f6", "b2c3d4e5f6a1", "c3d4e5f6a1b2"]
ULIDS = [f"01KQ4Z9T7S3V5W7X9YABCDEF{n:02d}" for n in range(3)]


@pytest.mark.parametrize(
    ("names", "kept"),
    some(
        [
            (HEX, lambda t: on_one_ref(V1, t)),
            (HEX, lambda t: on_one_ref("refs/entire/checkpoints/v1", t)),
            (HEX, on_two_refs),
            (ULIDS, on_a_ref_each),
        ],
        2,
    ),
    ids=["v1 branch", "v1 as a ref", "v2, two refs", "a ref each"],
)
def test_every_layout_gives_the_longest_transcript_of_a_session_once(
    names: list[str], kept: Any, tmp_path: Path
) -> None:
    repository = Repository(tmp_path / "shop.git")
    parent: list[str] = []
    for n, checkpoint_id in enumerate(names):
        tree = repository.tree({f"{k}.py": f"line_{k} = {k}\n" for k in range(n + 1)})
        message = f"work {n}\n\nEntire-Checkpoint: {checkpoint_id}"
        parent = ["-p", repository.git("commit-tree", tree, *parent, "-m", message)]
    repository.git("update-ref", "refs/heads/main", parent[1])
    for ref, files in kept(snapshots(names)):
        repository.put(ref, files)
    store = tmp_path / "store"
    found = collect([str(repository.path)], store)
    assert (found.sessions, found.checkpoints, found.commits) == (1, 3, 3)
    assert [o.linked for o in found.repositories] == [3]
    turns = Store(store).sql("SELECT text FROM turns ORDER BY turn").fetchall()
    assert turns == [("turn 0",), ("turn 1",), ("turn 2",)]
    assert Store(store).sql("SELECT n_tool_calls FROM sessions").fetchall() == [(3,)]
    assert Store(store).sql("SELECT DISTINCT session_ids FROM commits").fetchall() == [([SESSION],)]
