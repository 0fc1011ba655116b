"""A study of one's own from files only: the documented commands, on the shipped tiny model, from texts to report."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra lab)")
pytest.importorskip("transformers", reason="transformers is not installed (extra lab)")

from agentsignals.cli import main  # noqa: E402  (after the check that it can be loaded)

from agentsignals_lab import directions  # noqa: E402
from agentsignals_lab.coding_tasks import read_tasks  # noqa: E402
from agentsignals_lab.experiments.directions import SeparationRow  # noqa: E402
from agentsignals_lab.experiments.grid import EffectRow  # noqa: E402
from agentsignals_lab.experiments.setting import Continuation  # noqa: E402
from agentsignals_lab.retry_loop import EpisodeRow  # noqa: E402
from agentsignals_lab.runs import Run  # noqa: E402
from tests import tiny_world  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.slow]
ROOT = Path(__file__).parents[1]
PAGE = (ROOT.parents[1] / "docs" / "lab.md").read_text()
OWN = ROOT / "src" / "agentsignals_lab" / "sample_study"
TINY = ROOT / "src" / "agentsignals_lab" / "sample_study" / "model"


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    torch.set_num_threads(1)
    assert main(["lab", "new", str(tmp_path / "study"), "--quiet"]) == 0
    monkeypatch.chdir(tmp_path / "study")
    return tmp_path / "study"


def lab(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    code = main(["lab", *map(str, words), "--quiet"])
    said = capsys.readouterr()
    assert code == 0, said
    return said.out


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_documented_study_runs_from_its_files_to_its_reports(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    section = PAGE.split("## Studies of your own")[1].split("\n## ")[0]
    (block,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    assert block in (study / "README.md").read_text()
    for line in block.splitlines():
        lab(capsys, *shlex.split(line)[2:])
    made = Run.read(study / "runs" / "directions")
    assert directions.read(made.folder / "directions-contrast.npz").names == ("at_ease", "in_need")
    assert directions.read(made.folder / "directions-feedback.npz").names == ("harsh",)
    assert not (made.folder / "directions-published.npz").exists()  # these texts have no neutral class
    rows = made.table("separation", SeparationRow).rows
    assert {
        r.auroc > 0.9 for r in rows if (r.recipe, r.learnt_from, r.judged_on) == ("contrast",) + ("stories",) * 2
    } == {True}
    assert made.manifest.files == {
        "setting": digest(OWN / "setting.toml"),
        "tasks tasks.jsonl": digest(OWN / "tasks.jsonl"),
        "texts": digest(OWN / "texts.toml"),
    }
    assert made.config.settings["setting"]["file"] == "setting.toml"  # wherever the folder lies
    # The world's law: its shortcuts are rare after kind words, and the direction of one's own texts brings them about.
    chosen: list[dict[str, Any]] = json.loads((study / "runs" / "steering" / "chosen.json").read_text())
    for road in chosen:
        assert road["up"]["unit"] == "P(no honest word)"
        assert road["up"]["plain"] < 0.15
        assert road["up"]["effect"] > 0.3 + road["random_most"]
    loop = Run.read(study / "runs" / "agent")
    by_condition: dict[str, list[EpisodeRow]] = {}
    for row in loop.table("episodes", EpisodeRow).rows:
        by_condition.setdefault(row.condition, []).append(row)
    passes = {name: sum(bool(row.full_pass) for row in rows) for name, rows in by_condition.items()}
    assert {name: len(rows) for name, rows in by_condition.items()} == dict.fromkeys(passes, 10)
    assert passes["harsh words"] < passes["baseline"]
    for report in ("steering", "agent"):
        assert (study / "runs" / report / "report.html").exists()
    assert "harsh words" in (loop.folder / "report.md").read_text()
    nothing_hidden_is_told(study, loop)


def nothing_hidden_is_told(study: Path, loop: Run) -> None:
    told = {path.stem: path.read_text() for path in (loop.folder / "traces").rglob("*.jsonl")}
    assert len(told) >= 10
    for task in read_tasks(study / "tasks.jsonl").tasks:
        traces = [text for name, text in told.items() if name.startswith(f"{task.id}@")]
        assert traces
        chats = [json.loads(line) for text in traces for line in text.splitlines()]
        heard = json.dumps([line["message"] for line in chats if line.get("message", {}).get("speaker") == "user"])
        for case in task.hidden:
            assert f"( {case.args[0]} )" not in heard
            assert f"f({case.args[0]})" not in heard


def test_texts_of_ones_own_go_with_the_packages_setting(
    study: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (study / "few.toml").write_text('layers = [1]\nshuffles = 5\nrecipes = ["contrast"]\n[setting]\ntasks = 2\n')
    lab(capsys, "run", "directions", "--texts", "texts.toml", "--config", "few.toml", "--model", TINY, "--out", "r")
    assert directions.read(Path("r/directions-contrast.npz")).names == ("at_ease", "in_need")
    assert directions.read(Path("r/directions-feedback.npz")).names == ("pressing",)
    assert Run.read(Path("r")).manifest.files == {"texts": digest(OWN / "texts.toml")}
    (study / "texts.toml").write_text((OWN / "texts.toml").read_text() + "\n")
    assert main(["lab", "run", "directions", "--texts", "texts.toml", "--config", "few.toml", "--model", str(TINY),
                 "--out", "r"]) == 1  # fmt: skip
    assert "another files" in capsys.readouterr().err


def test_the_documented_conditions_steer_along_what_directions_wrote(
    capsys: pytest.CaptureFixture[str], study: Path
) -> None:
    """At another layer, the tiny model being flat, and with fewer random directions; else as it stands there."""
    (block,) = [block for block in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL) if "[[condition]]" in block]
    block = block.replace("layers = [14]", "layers = [1]").replace("randoms = 119", "randoms = 1")
    (study / "c.toml").write_text(block)
    (study / "few.toml").write_text("layers = [1]\nshuffles = 5\n[setting]\ntasks = 4\n")
    lab(capsys, "run", "directions", "--config", "few.toml", "--model", TINY, "--out", "d")
    lab(capsys, "agent", "--model", TINY, "--directions", "d/directions-grand_mean.npz", "--conditions", "c.toml",
        "--tasks", tiny_world.tasks_file(study / "tiny.jsonl", 2),
        "--max-new-tokens", 16, "--attempts", 2, "--out", "run")  # fmt: skip
    rows = Run.read(Path("run")).table("episodes", EpisodeRow).rows
    assert {row.condition for row in rows} == {"baseline", "calm words", "desperate up", "desperate up, random:1"}


def test_an_outcome_holds_a_wrong_answer_against_the_right_one(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    setting = (study / "setting.toml").read_text()
    setting = setting[: setting.index("[outcome]")]
    setting += '[outcome]\nkind = "continuation"\nworse = "{wrong}"\nbetter = "{reference}"\n'
    (study / "answers.toml").write_text(setting)
    (study / "few.toml").write_text(
        'interventions = ["suppress"]\nplaces = ["feedback"]\n[setting]\nfile = "answers.toml"\ntasks = 4\n'
    )
    lab(capsys, "run", "grid", "--config", "few.toml", "--model", TINY, "--out", "r")
    effects = Run.read(Path("r")).table("effects", EffectRow).rows
    assert {(row.n, row.unit) for row in effects} == {(4, Continuation(worse="a", better="b").unit)}
    assert any(abs(row.effect) > 0.01 for row in effects)
