"""A run on disk: what is killed half-way goes on, what differs never mixes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import ClassVar, Literal

import msgspec
import pytest
from agentsignals.errors import LabError

from agentsignals_lab.runs import Config, Manifest, Row, Run, seed_of


class Tried(Row, frozen=True):
    KEY: ClassVar[tuple[str, ...]] = ("task", "sample")
    task: str
    sample: int
    passed: bool | None = None
    score: float | None = None
    scores: tuple[float, ...] = ()
    how: Literal["well", "badly"] | None = None


CONFIG = Config("retry_loop", {"tasks": ["a", "b"], "layers": (1, 2)})
MANIFEST = Manifest(
    model={"name": "tiny"},
    evaluator="1",
    texts="0123",
    sandbox="default",
    seed=7,
    packages={"agentsignals": "0.1.0"},
    started_at="2026-11-20T00:00:00Z",
)


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    rows = [Tried("a", 0, True, 0.5, (1.0, 2.0), "well"), Tried("b", 1)]
    run = Run.open(tmp_path / "run", CONFIG, MANIFEST)
    run.table("tried", Tried).add(rows)
    assert Run.read(tmp_path / "run").table("tried", Tried).rows == rows
    tried = run.table("tried", Tried)
    tried.rewrite(sorted(tried.rows, key=lambda row: -row.sample))
    assert Run.read(tmp_path / "run").table("tried", Tried).rows == rows[::-1]
    lines = (tmp_path / "run" / "rows" / "tried.jsonl").read_bytes().splitlines()
    assert [msgspec.json.decode(line)["task"] for line in lines] == ["b", "a"]


def test_work_that_is_there_is_known_and_not_kept_twice(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run", CONFIG, MANIFEST) as run:
        run.table("tried", Tried).add([Tried("a", 0, True)])
    with Run.open(tmp_path / "run", CONFIG, MANIFEST) as run:
        table = run.table("tried", Tried)
        assert ("a", 0) in table
        assert ("a", 1) not in table
        table.add([Tried("a", 0, False), Tried("a", 1, False)])
    assert [r.passed for r in Run.read(tmp_path / "run").table("tried", Tried).rows] == [True, False]


def test_of_rows_with_one_key_the_first_is_kept(tmp_path: Path) -> None:
    table = Run.open(tmp_path / "run", CONFIG, MANIFEST).table("tried", Tried)
    table.add([Tried("a", 0, True), Tried("a", 0, False)])
    assert table.rows == [Tried("a", 0, True)]


@pytest.mark.parametrize("row", [Tried("a", 0, score=float("nan")), Tried("a", 0, scores=(1.0, float("inf")))])
def test_a_number_that_json_does_not_have_is_refused_before_it_makes_the_run_unreadable(
    tmp_path: Path, row: Tried
) -> None:
    table = Run.open(tmp_path / "run", CONFIG, MANIFEST).table("tried", Tried)
    with pytest.raises(LabError, match="which JSON does not have"):
        table.add([Tried("b", 0), row])
    assert Run.read(tmp_path / "run").table("tried", Tried).rows == table.rows == []


@pytest.mark.slow
def test_a_killed_run_has_every_row_that_it_had_added(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from tests.test_runs import CONFIG, MANIFEST, Tried
        from agentsignals_lab.runs import Run
        table = Run.open(Path(sys.argv[1]), CONFIG, MANIFEST).table("tried", Tried)
        for n in range(100000):
            table.add([Tried("a", 2 * n), Tried("a", 2 * n + 1)])
            print(n, flush=True)
        """
    )
    command = [sys.executable, "-c", script, str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]) as worker:
        assert worker.stdout is not None
        said = [int(worker.stdout.readline()) for _ in range(20)]
        worker.send_signal(signal.SIGKILL)
    found = Run.open(tmp_path / "run", CONFIG, MANIFEST).table("tried", Tried)
    assert [row.sample for row in found.rows] == list(range(len(found.rows)))
    assert len(found.rows) >= 2 * len(said)


def test_an_interrupt_while_a_row_is_written_loses_it_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Run.open(tmp_path / "run", CONFIG, MANIFEST) as run:
        run.table("tried", Tried).add([Tried("a", 0)])
        monkeypatch.setattr(os, "fsync", interrupted)
        run.table("tried", Tried).add([Tried("a", 1)])
    assert Run.read(tmp_path / "run").table("tried", Tried).rows == [Tried("a", 0), Tried("a", 1)]


def test_a_line_that_was_cut_is_no_row_and_does_not_spoil_the_next(tmp_path: Path) -> None:
    run = Run.open(tmp_path / "run", CONFIG, MANIFEST)
    run.table("tried", Tried).add([Tried("a", 0)])
    with (tmp_path / "run" / "rows" / "tried.jsonl").open("ab") as rows_file:
        rows_file.write(b'{"task":"a","sam')
    again = Run.open(tmp_path / "run", CONFIG, MANIFEST).table("tried", Tried)
    again.add([Tried("b", 1)])
    assert Run.read(tmp_path / "run").table("tried", Tried).rows == [Tried("a", 0), Tried("b", 1)]


@pytest.mark.parametrize(
    ("differs", "says"),
    [
        ({"evaluator": "2"}, "another evaluator"),
        ({"model": {"name": "other"}}, "another model"),
        ({"texts": "9", "seed": 8}, "another texts and another seed"),
        ({"sandbox": "strict"}, "another sandbox"),
    ],
)
def test_what_stands_on_other_ground_is_refused(tmp_path: Path, differs: dict[str, object], says: str) -> None:
    Run.open(tmp_path / "run", CONFIG, MANIFEST)
    with pytest.raises(LabError, match=says):
        Run.open(tmp_path / "run", CONFIG, msgspec.structs.replace(MANIFEST, **differs))


def test_the_same_ground_later_and_with_other_packages_goes_on(tmp_path: Path) -> None:
    Run.open(tmp_path / "run", CONFIG, MANIFEST)
    later = msgspec.structs.replace(MANIFEST, started_at="2027-01-01T00:00:00Z", packages={})
    assert Run.open(tmp_path / "run", CONFIG, later).manifest.started_at == MANIFEST.started_at


def test_a_folder_that_is_no_run_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(LabError, match="not empty and is not a run"):
        Run.open(tmp_path, CONFIG, MANIFEST)
    with pytest.raises(LabError, match="holds no run"):
        Run.read(tmp_path)
    with pytest.raises(LabError, match="other settings"):
        Run.open(Run.open(tmp_path / "run", CONFIG, MANIFEST).folder, Config("retry_loop", {}), MANIFEST)


def test_rows_of_another_shape_are_refused(tmp_path: Path) -> None:
    class Other(Row, frozen=True):
        name: float

    with Run.open(tmp_path / "run", CONFIG, MANIFEST) as run:
        run.table("tried", Other).add([Other(1.0)])
    with pytest.raises(LabError, match="not those that this version writes"):
        Run.read(tmp_path / "run").table("tried", Tried)


def test_seeds_depend_on_what_they_are_of_and_nothing_else() -> None:
    assert seed_of(13, "task", 0, 1) == seed_of(13, "task", 0, 1)
    assert len({seed_of(13, "task", attempt, sample) for attempt in range(5) for sample in range(50)}) == 250
    assert 0 <= seed_of(13) < 2**32


def test_a_run_that_fails_before_its_first_result_leaves_its_folder_to_mended_settings(tmp_path: Path) -> None:
    folder, mended = tmp_path / "run", Config("retry_loop", {"tasks": ["a"]})
    with pytest.raises(LabError, match="layer 9"), Run.open(folder, CONFIG, MANIFEST) as run:
        run.table("tried", Tried)
        raise LabError("There is no layer 9.", "Name another.")
    with pytest.raises(LabError, match="layer 9"), Run.open(folder, mended, MANIFEST) as run:
        run.table("tried", Tried).add([Tried("a", 0, True)])
        raise LabError("There is no layer 9.", "Name another.")
    with pytest.raises(LabError, match="other settings"):
        Run.open(folder, CONFIG, MANIFEST)
