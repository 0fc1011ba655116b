"""Where ten real pairs of runs of one task part, judged by reading the traces before the tool was run on them
(docs/design/alignment.md#read-by-hand)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from agentsignals.ingest import pipeline
from agentsignals.questions.alignment import Place, align
from agentsignals.store import Store, artifact_id

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "eval"
Judged = tuple[int, int] | None
"""Calls of the first and the second, from 1; one more than there are: it had ended. None: never."""


class Pair(NamedTuple):
    """Two traces and where a reader has them stray and part."""

    first: str
    second: str
    strays: Judged
    parts: Judged


SWE, DEMOS = "swe-agent-swebench", "swe-agent-demos/trajectories/demonstrations"
PAIRS = (
    Pair(f"{SWE}/*/dask__dask-8685/*gpt-5*/*.traj", f"{SWE}/*/dask__dask-8685/*kimi*/*.traj", (12, 7), (12, 7)),
    Pair(f"{SWE}/*/dask__dask-8685/*gpt-5*/*.traj", f"{SWE}/*/dask__dask-8685/*qwen*/*.traj", (7, 4), (12, 15)),
    Pair(f"{SWE}/*/dask__dask-8685/*kimi*/*.traj", f"{SWE}/*/dask__dask-8685/*qwen*/*.traj", (4, 4), (12, 21)),
    Pair(f"{SWE}/*/getmoto__moto-4799/*gpt-5*/*.traj", f"{SWE}/*/getmoto__moto-4799/*kimi*/*.traj", (5, 4), (13, 12)),
    Pair(f"{SWE}/*/*monai-5416/*kimi*/*.traj", f"{SWE}/*/*monai-5416/*qwen*/*.traj", (7, 6), (9, 9)),
    Pair(f"{SWE}/*/getmoto__moto-5862/*kimi*/*.traj", f"{SWE}/*/getmoto__moto-5862/*qwen*/*.traj", (13, 17), (13, 17)),
    Pair(f"{DEMOS}/*default__*from_source/*.traj", f"{DEMOS}/*calling_replace_from_source/*.traj", (10, 10), None),
    Pair(f"{DEMOS}/*default__*from_source/*.traj", f"{DEMOS}/*default_sys-env_window100*/*.traj", (2, 1), None),
    Pair("trail/data/81d7ec04*.json", "trail/data/da17836a*.json", (3, 3), None),
    Pair("trail/data/f12834d0*.json", "trail/data/fdaf88f3*.json", (8, 8), (8, 8)),
)


@pytest.mark.slow
def test_it_parts_where_a_reader_says(tmp_path: Path) -> None:
    if not CORPUS.is_dir():
        pytest.skip("the corpus of real traces is not here")
    corpus = CORPUS.resolve()
    paths = {pattern: path for pair in PAIRS for pattern in pair[:2] for path in corpus.glob(pattern)}
    pipeline.ingest(sorted(set(map(str, paths.values()))), tmp_path / "store", jobs=1)
    store = Store(tmp_path / "store")
    sessions = {s.artifact_id: s for s in map(store.session, store.manifest.sessions)}
    read = {pattern: sessions[artifact_id(str(path))] for pattern, path in paths.items()}
    strays, parts = [], []
    for pair in PAIRS:
        [made] = align([read[pair.first], read[pair.second]], {})
        apart = made.divergence
        strays.append(_off(pair.strays, apart.strays))
        parts.append(_off(pair.parts, apart.parts and apart.parts.place))
    assert [parts.count(0), sum(off <= 2 for off in parts)] == [8, 10]
    assert [strays.count(0), sum(off <= 2 for off in strays)] == [4, 7]


def _off(judged: Judged, place: Place | None) -> int:
    """By how many calls the two are apart, on the side where that is more."""
    if judged is None or place is None:
        return 0 if judged is place else 99
    return max(abs(judged[0] - place.left), abs(judged[1] - place.right))
