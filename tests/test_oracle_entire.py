"""Our tokens against Entire's own count of the same transcripts: see benchmarks/oracle_entire.py."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from benchmarks import oracle_entire as oracle

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real traces is not here"),
]


@pytest.mark.slow
def test_our_tokens_are_those_entire_recorded_for_each_session_or_the_cause_is_known() -> None:
    found = list(oracle.sessions(CORPUS))
    assert Counter(v.outcome for v in found) == {
        oracle.EXACT: 83,
        oracle.NO_CALLS: 1,
        oracle.AT_CHECKPOINT: 38,
        oracle.COMPACT_START: 3,
        oracle.RESTAMPED: 1,
        oracle.NO_RECORD: 17,
    }
    comparable = [v for v in found if v.recorded is not None]
    assert sum(v.equal for v in comparable) == 125
    assert {v.session for v in comparable if not v.equal} == {v.session for v in found if v.outcome == oracle.RESTAMPED}
    assert [v.session for v in comparable if v.equal and v.recorded_calls != v.calls] == []
