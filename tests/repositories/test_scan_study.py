"""The study of weaknesses: the rates of a scan, and what it says without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentsignals.store import Store
from tests.questions.stores import outcome
from tests.repositories.test_scan import scan_of, story_of_agent_and_human


@pytest.mark.slow
def test_the_study_gives_the_rates_of_the_scan_with_interval_and_attribution(tmp_path: Path) -> None:
    told = scan_of(story_of_agent_and_human(tmp_path))
    found = outcome(Store(tmp_path / "store"), "weaknesses")
    findings = {f.id: f for f in found.findings}
    assert findings["weaknesses.introduced"].value == pytest.approx(4 / 10 * 1000)
    agent = findings["weaknesses.owner.agent"]
    assert (agent.value, agent.n, "replayed" in agent.title) == (pytest.approx(2 / 6 * 1000), 6, True)
    assert agent.interval is not None and agent.interval[0] < agent.value < agent.interval[1]
    assert len(found.tables[0].rows) == len(told.rates)
    assert {c.id: c.n for c in found.charts} == {"weaknesses.rules": 4, "weaknesses.cwes": 4}


def test_without_a_scan_it_says_how_to_make_one(tmp_path: Path) -> None:
    story_of_agent_and_human(tmp_path).attributed()
    found = outcome(Store(tmp_path / "store"), "weaknesses")
    assert (found.findings, found.tables, "scan REPO" in found.limits[0]) == ([], [], True)
