"""A signal that never varies, or never says anything else than another one, says so in the catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentsignals.ingest import pipeline
from agentsignals.signals.catalog import inventory
from agentsignals.store import Store
from agentsignals.store.query import rows

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
VALUES = "SELECT signal, s.session_id, turn, value, absent, context FROM signals s JOIN sessions USING (session_id)"
UNVARIED = f"""
SELECT signal, context FROM ({VALUES}) GROUP BY ALL HAVING count(DISTINCT value) FILTER (absent IS NULL) < 2
"""
EQUAL = f"""
WITH whole AS (SELECT signal, context, string_agg(concat_ws(' ', session_id, turn, coalesce(value, '-')), '|'
  ORDER BY session_id, turn) AS text FROM ({VALUES}) GROUP BY ALL HAVING count(DISTINCT value) > 1)
SELECT a.signal, b.signal FROM whole a JOIN whole b USING (context, text) WHERE a.signal < b.signal
"""


@pytest.fixture(name="store", scope="module")
def of_the_corpus(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("unvaried")
    pipeline.analyze([str(CORPUS / "sessions"), str(CORPUS / "eval")], folder, jobs=1)
    return Store(folder)


def by_path() -> dict[str, dict[str, Any]]:
    return {row["path"]: row for row in inventory()}


@pytest.mark.slow
@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real traces is not here")
def test_what_never_varies_and_what_is_the_same_figure_is_marked(store: Store) -> None:
    listed = by_path()
    unmarked = [
        (path, context)
        for path, context in rows(store, UNVARIED)[1]
        if not path.startswith("treatment.")  # what was tried is one thing in a corpus of few runs
        and listed[path]["status"] == "computed"
        and "on the project's corpus" not in listed[path]["pitfalls"]
    ]
    assert unmarked == []
    pairs = [(a, b) for a, b in rows(store, EQUAL)[1] if "same figure" not in f"{listed[a]} {listed[b]}"]
    assert pairs == []
