"""Our answers to all cases of `conformance/`, and the table of everybody's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conformance import adapters, suite

from agentsignals.ingest import pipeline


def _rows(relation: Any) -> Iterator[dict[str, Any]]:
    return (dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall())


def test_each_case_is_answered_rightly(tmp_path: Path) -> None:
    """All homes are read at once, as `python -m conformance` reads them."""
    cases = list(suite.cases())
    homes = {case.name: case.lay_out(tmp_path / "homes" / case.name) for case in cases}
    _, store = pipeline.ingest_into([str(home) for home in homes.values()], tmp_path / "store", jobs=1)
    sessions, files = list(_rows(store.sql(adapters.OURS))), list(_rows(store.sql("FROM artifacts")))
    answers = {name: adapters.told(home, sessions, files) for name, home in homes.items()}
    assert not {case.name: w for case in cases if (w := suite.wrong(case, answers[case.name]))}
    assert {suite.verdict(case, answers[case.name]) for case in cases} == {"right"}


def test_the_table_has_every_case_of_every_tool_and_many_agents() -> None:
    cases = list(suite.cases())
    assert len(cases) >= 120 and len({case.agent for case in cases}) >= 15
    assert all(case.situation and case.source and case.expect for case in cases)
    kept = {path.stem: json.loads(path.read_text("utf-8")) for path in suite.RESULTS.glob("*.json")}
    assert kept.keys() == adapters.TOOLS.keys()
    assert kept["agentsignals"]["answers"].keys() == {case.name for case in cases}
