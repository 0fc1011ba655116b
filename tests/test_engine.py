"""Workers: what is done comes back in any order, a death costs a task its size, and a broken machine is an error."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from agentsignals.cli import main
from agentsignals.errors import StoreError, WorkerError
from agentsignals.ingest import plan
from agentsignals.ingest.engine import ENGINES, Engine
from agentsignals.ingest.family import Family, Member
from agentsignals.sources import RawFile

Task = tuple[str, ...]


@pytest.fixture(params=sorted(ENGINES.places))
def workers(request: pytest.FixtureRequest) -> Engine:
    """Every engine there is: what follows holds of each."""
    return ENGINES.get(request.param)()


def work(task: Task) -> str:
    """Joins the words; one of them ends the process, one raises."""
    if "die" in task:
        os.kill(os.getpid(), signal.SIGKILL)
    if "fail" in task:
        raise StoreError("No space.", "Make some.")
    for word in task:
        if word.startswith("/") and not Path(word).exists():
            Path(word).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return "-".join(w.rsplit("/", 1)[-1] for w in task)


def smaller(task: Task) -> list[Task]:
    middle = len(task) // 2
    if middle:
        return [task[:middle], task[middle:]]
    return [("given up",)] if task == ("die",) else [task]


@pytest.mark.slow
def test_a_task_that_ends_its_worker_is_done_in_parts(workers: Engine, tmp_path: Path) -> None:
    once = str(tmp_path / "once")
    tasks: list[Task] = [("a", "b"), ("die", "c"), (once,)]
    assert sorted(workers.map(work, tasks, 2, smaller)) == ["a-b", "c", "given up", "once"]


def test_where_every_worker_dies_the_machine_is_broken(workers: Engine) -> None:
    with pytest.raises(WorkerError, match="die whatever"):
        list(workers.map(work, [("die",)], 1, lambda task: []))


def test_an_error_of_a_worker_is_raised_as_it_is(workers: Engine) -> None:
    with pytest.raises(StoreError, match="No space") as caught:
        list(workers.map(work, [("fail",)], 1, smaller))
    assert caught.value.hint == "Make some."


def test_no_worker_is_this_very_process(workers: Engine) -> None:
    assert list(workers.map(process_of, ["a", "b"], 0, lambda task: [])) == [os.getpid()] * 2


def process_of(task: str) -> int:
    """The process that does the task."""
    return os.getpid()


def test_an_unknown_engine_names_those_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.jsonl").write_text("{}\n")
    assert main(["analyze", str(tmp_path / "a.jsonl"), "--store", str(tmp_path / "s"), "--engine", "mules"]) == 2
    assert "There is no engine 'mules'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("beginning", "size", "jobs", "processes"),
    [
        (b"{", plan.SMALL_BYTES - 1, 1, 0),
        (b"{", plan.SMALL_BYTES, 1, 1),
        (b"\x1f\x8b\x08", plan.SHARD_BYTES // 1032, 1, 0),
        (b"\x1f\x8b\x08", plan.SHARD_BYTES // 1032 + 1, 1, 1),
        (b"PK\x03\x04", plan.SHARD_BYTES // 1032 + 1, 1, 1),
        (b"BZh91AY&SY", 100, 1, 1),
        (b"{", 100, 4, 0),
    ],
)
def test_what_may_take_memory_is_read_by_a_process_that_may_die_also_with_one_job(
    tmp_path: Path, beginning: bytes, size: int, jobs: int, processes: int
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(beginning)
    file = RawFile(uri=str(path), source="local", spec=str(tmp_path), bytes=size, stamp=0)
    family = Family("f", (Member(file=file, format="codex", keys=("k",)),))
    assert plan.workers([[family]], jobs) == processes


def is_deaf(task: Task) -> str:
    """Whether this process was begun so that Ctrl-C does not reach it."""
    return f"{task[0]}: {signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())}"


@pytest.mark.slow
def test_a_worker_does_not_hear_an_interrupt_from_its_first_moment_and_its_parent_does() -> None:
    """It would die with a traceback of its own while it loads: the terminal sends Ctrl-C to all."""
    assert list(ENGINES.get("local")().map(is_deaf, [("a",)], 1, smaller)) == ["a: True"]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
