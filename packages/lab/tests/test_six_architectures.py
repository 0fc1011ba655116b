"""The whole loop on random models of six architectures: directions, a steered retry loop, its report, its traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra torch)")
pytest.importorskip("transformers", reason="transformers is not installed (extra torch)")

from agentsignals.cli import main  # noqa: E402  (after the check that they can be loaded)

from agentsignals_lab import sandbox  # noqa: E402
from agentsignals_lab.retry_loop import (  # noqa: E402
    AttemptRow,
    EpisodeRow,
    ManipulationRow,
)
from agentsignals_lab.runs import Run  # noqa: E402
from tests.residual import small  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.slow,
    pytest.mark.skipif(bool(sandbox.missing()), reason=f"there is no sandbox here: {sandbox.missing()}"),
]
torch.set_num_threads(1)
TASKS = (
    {"id": "inc", "says": "Add one.", "signature": "inc(n)", "visible": ["inc(1) == 2"], "hidden": ["inc(5) == 6"]},
    {"id": "dec", "says": "Take one.", "signature": "dec(n)", "visible": ["dec(1) == 0"], "hidden": ["dec(5) == 4"]},
)
TEXTS = """low = "calm"
high = "tense"
[classes.calm]
river = ["the river is slow"]
road = ["the road is soft"]
[classes.tense]
river = ["the river is loud"]
road = ["the road is hard"]
"""
CONDITIONS = """[[condition]]
name = "up"
direction = "tense"
dose = 0.5
layers = [1]
randoms = 2
[[condition]]
name = "at feedback"
direction = "tense"
dose = 0.5
layers = [1]
where = "feedback"
"""


@pytest.mark.parametrize("name", small.CONFIGS)
def test_a_loop_runs_on_every_architecture(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small.transformer(name, positions=4096).save_pretrained(tmp_path / "model")
    small.tokenizer().save_pretrained(tmp_path / "model")
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, TASKS)))
    (tmp_path / "texts.toml").write_text(TEXTS)
    (tmp_path / "conditions.toml").write_text(CONDITIONS)
    (tmp_path / "directions.toml").write_text(
        'layers = [1]\nscenes = false\nrecipes = ["contrast"]\n[setting]\ntasks = 2\n'
    )
    shared = ("--model", str(tmp_path / "model"), "--dtype", "float32", "--device", "cpu", "--quiet")
    made, run = tmp_path / "directions", tmp_path / "run"
    of_texts = ("--config", str(tmp_path / "directions.toml"), "--texts", str(tmp_path / "texts.toml"))
    assert main(["lab", "run", "directions", *of_texts, *shared, "--out", str(made)]) == 0
    steered = ("--conditions", str(tmp_path / "conditions.toml"), "--directions", str(made / "directions-contrast.npz"))
    given = ("--tasks", str(tmp_path / "tasks.jsonl"), "--attempts", "2", "--max-new-tokens", "8", *steered)
    assert main(["lab", "agent", *given, *shared, "--out", str(run)]) == 0
    for written in (("report",), ("inspect",)):
        assert main(["lab", *written, str(run), "--quiet"]) == 0
    capsys.readouterr()
    held = Run.read(run)
    assert len(held.table("episodes", EpisodeRow).rows) == 2 * 5
    assert {row.attempt for row in held.table("attempts", AttemptRow).rows} == {0, 1}
    moved = {row.condition: row.verdict for row in held.table("manipulation", ManipulationRow).rows}
    assert moved == {"up": "moved", "at feedback": "moved"}
    assert "Manipulation checks" in (run / "report.md").read_text("utf-8")
    assert len(list((run / "inspect").glob("*.json"))) == 5
