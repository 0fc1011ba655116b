"""Causes of failures against those that a person read off the raw files before (`failures_by_eye.json`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentsignals.store import Store
from agentsignals.store.query import rows as asked

BY_EYE = json.loads((Path(__file__).parent / "failures_by_eye.json").read_text("utf-8"))["causes"]


@pytest.mark.corpus
@pytest.mark.slow
def test_causes_of_real_failures_are_those_that_a_person_saw(eval_folder: Path) -> None:
    query = """SELECT a.facts, s.value FROM attempts a JOIN signals s USING (session_id)
        WHERE a.outcome = 'failed' AND s.signal = 'verification.failure_class' ORDER BY ALL"""
    told = asked(Store(eval_folder / "store"), query)[1]
    all_found = {json.loads(facts)["root"]: json.loads(value) for facts, value in told}
    found = {root: v for root, v in all_found.items() if "/swe-agent-swebench/" in root or "/harbor/" in root}
    seen = {place: cause for root, cause in found.items() for place in BY_EYE if root.endswith(place)}
    assert len(found) == len(BY_EYE)
    assert seen == BY_EYE
