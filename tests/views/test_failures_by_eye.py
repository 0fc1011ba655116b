"""Causes of failures against those that a person read off the raw files before (`failures_by_eye.json`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentsignals.ingest import pipeline
from agentsignals.store import Store
from agentsignals.store.query import rows as asked

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "eval"
BY_EYE = json.loads((Path(__file__).parent / "failures_by_eye.json").read_text("utf-8"))["causes"]


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.exists(), reason="needs the corpus")
def test_causes_of_real_failures_are_those_that_a_person_saw(tmp_path: Path) -> None:
    pipeline.analyze([str(CORPUS / "swe-agent-swebench"), str(CORPUS / "harbor")], tmp_path, jobs=1)
    query = """SELECT a.facts, s.value FROM attempts a JOIN signals s USING (session_id)
        WHERE a.outcome = 'failed' AND s.signal = 'verification.failure_class' ORDER BY ALL"""
    found = {json.loads(facts)["root"]: json.loads(value) for facts, value in asked(Store(tmp_path), query)[1]}
    told = {place: cause for root, cause in found.items() for place in BY_EYE if root.endswith(place)}
    assert len(found) == len(BY_EYE)
    assert told == BY_EYE
