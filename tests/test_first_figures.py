"""The figures that a report begins with, against those recomputed from three agents' raw files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from agentsignals.cli import main
from agentsignals.store import Store
from tests.first_figures import row, table

CORPUS = Path(__file__).parents[2] / "shared" / "corpus" / "sessions"
THREE = {
    "claude_code": "claude-code/EntityProcess+agentv/f6b7329a-914c-4f62-8090-4e29b032b173/transcript.jsonl",
    "pi": "pi/computermode+test-repo/019dc132-b9ea-736e-aa6f-e20ee7d84b11/transcript.jsonl",
    "opencode": "opencode/dayhaysoos+nimbus/ses_318598817ffeMcHfgi69cd9sMT/transcript.json",
}


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real traces is not here")
def test_the_first_figures_of_a_report_are_those_of_the_raw_files(tmp_path: Path) -> None:
    rows = [row(agent, CORPUS / path) for agent, path in THREE.items()]
    print(table(rows))
    for agent, path in THREE.items():
        (tmp_path / "in" / agent).mkdir(parents=True)
        shutil.copyfile(CORPUS / path, tmp_path / "in" / agent / Path(path).name)
    store, page = str(tmp_path / "store"), tmp_path / "report.json"
    assert main(["analyze", str(tmp_path / "in"), "--store", store, "--quiet", "--jobs", "1"]) == 0
    assert main(["report", "--store", store, "-o", str(page), "--quiet"]) == 0
    sections = json.loads(page.read_text("utf-8"))["sections"]
    shown = {f["id"]: f["value"] for section in sections for f in section["findings"]}
    assert shown["sessions.count"] == len(rows)
    assert shown["sessions.turns.total"] == sum(r.prompts for r in rows)
    assert shown["sessions.tool_calls.total"] == sum(r.calls for r in rows)
    assert shown["errors.rate"] == pytest.approx(sum(r.failed for r in rows) / sum(r.calls for r in rows))
    for kind in ("input", "cache_read", "cache_write", "output"):
        assert shown[f"cost.{kind}_tokens"] == sum(getattr(r, kind) for r in rows), kind
    assert shown["cost.total"] == pytest.approx(sum(r.usd for r in rows))
    asked = "SELECT agent, number FROM signals JOIN sessions USING (session_id) WHERE signal = 'infra.work_time_s'"
    worked = {agent.replace("-", "_"): seconds for agent, seconds in Store(store).sql(asked).fetchall()}
    timed = {r.name: r.work_s for r in rows if r.work_s is not None}
    # One call of Claude Code says itself that it ran 11 ms shorter than from record to record.
    assert {name: worked[name] for name in timed} == pytest.approx(timed, abs=0.012) and len(timed) == 2
