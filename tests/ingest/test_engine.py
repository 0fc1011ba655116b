"""Engines: what is done comes back in any order, a death costs a task its size, a broken machine is an error, and a run
makes the same tables on each. It holds of every engine there is; Ray's part is skipped where Ray is not installed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agentsignals.cli import demo_corpus, main
from agentsignals.errors import StoreError, UsageError, WorkerError
from agentsignals.ingest import collection, pipeline, plan, shard
from agentsignals.ingest.collection import attribute_repository
from agentsignals.ingest.engine import ENGINES
from agentsignals.ingest.engine.local import in_background
from agentsignals.ingest.pipeline import Summary
from agentsignals.ingest.plan import FileGroup, RecognisedArtifact
from agentsignals.repositories.scanners import OwnRules
from agentsignals.sources import RawFile
from agentsignals.store import Store
from agentsignals.store.index import SHARDS_FOLDER
from tests.ingest.test_pipeline import assert_same, tables
from tests.repositories.story import Story
from tests.repositories.test_scan import story_of_agent_and_human

resource = pytest.importorskip("resource", reason="limits of a process are POSIX")

Task = tuple[str, ...]


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """Ray of this machine, begun once for all tests."""
    started = pytest.importorskip("ray", reason="Ray is not installed: `make test-engines` has it")
    started.init("local", num_cpus=2, include_dashboard=False, object_store_memory=100 << 20, log_to_driver=False)
    yield started
    started.shutdown()


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str:
    """The name of an engine that can be used."""
    name: str = request.param
    if name == "ray":
        request.getfixturevalue("ray")
    return name


every_engine = pytest.mark.parametrize(
    "engine",
    [
        pytest.param(name, marks=[pytest.mark.slow, pytest.mark.engines]) if name == "ray" else name
        for name in sorted(ENGINES.places)
    ],
    indirect=True,
)


def results(engine: str, function: Callable[..., Any], tasks: list[Any], workers: int, smaller: Any) -> list[Any]:
    return sorted(ENGINES.get(engine)().map(function, tasks, workers, smaller))


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
@every_engine
def test_a_task_that_ends_its_worker_is_done_in_parts(engine: str, tmp_path: Path) -> None:
    once = str(tmp_path / "once")
    tasks: list[Task] = [("a", "b"), ("die", "c"), (once,)]
    assert results(engine, work, tasks, 2, smaller) == ["a-b", "c", "given up", "once"]


@every_engine
def test_where_every_worker_dies_the_machine_is_broken(engine: str) -> None:
    with pytest.raises(WorkerError, match="processes crash"):
        results(engine, work, [("die",)], 1, lambda task: [])


@every_engine
def test_an_error_of_a_worker_is_raised_as_it_is(engine: str) -> None:
    with pytest.raises(StoreError, match="No space") as caught:
        results(engine, work, [("fail",)], 1, smaller)
    assert type(caught.value) is StoreError and caught.value.hint == "Make some."


class Stubborn:
    """What can't be sent from one process to another."""

    def __reduce__(self) -> str:
        raise TypeError("It stays here.")


def stubborn(task: Task) -> Stubborn:
    return Stubborn()


@pytest.mark.slow
@every_engine
def test_an_answer_that_can_not_be_sent_is_an_error_that_says_so(engine: str) -> None:
    with pytest.raises(WorkerError, match="TypeError: It stays here"):
        results(engine, stubborn, [("a",)], 1, smaller)


@pytest.mark.slow
@every_engine
def test_more_workers_than_tasks_and_no_task_at_all(engine: str) -> None:
    assert results(engine, work, [("a",)], 3, smaller) == ["a"]
    assert results(engine, work, [], 3, smaller) == []


def writes_on(task: str) -> str:
    """Writes to a file for a minute; at once done where it is not named one."""
    until = time.monotonic() + 60 if task.startswith("/") else 0
    while time.monotonic() < until:
        with Path(task).open("a") as file:
            file.write("x")
    return task


@pytest.mark.slow
@every_engine
def test_who_stops_asking_leaves_no_worker_behind(engine: str, tmp_path: Path) -> None:
    busy = tmp_path / "busy"
    answers = ENGINES.get(engine)().map(writes_on, [str(busy), "a", "b"], 2, lambda task: [])
    assert next(answers) == "a"
    while not busy.exists():
        time.sleep(0.01)
    answers.close()
    before = busy.stat().st_size
    time.sleep(0.3)
    assert busy.stat().st_size == before


@pytest.mark.parametrize("engine", sorted(ENGINES.places))
def test_no_worker_is_this_very_process(engine: str) -> None:
    """Of Ray as well, which is not needed then."""
    assert results(engine, process_of, ["a", "b"], 0, lambda task: []) == [os.getpid()] * 2


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
    family = FileGroup("f", (RecognisedArtifact(file=file, format="codex", keys=("k",)),))
    assert plan.worker_count([[family]], jobs) == processes


def is_deaf(task: Task) -> str:
    """Whether this process was begun so that Ctrl-C does not reach it."""
    return f"{task[0]}: {signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())}"


@pytest.mark.slow
def test_a_worker_does_not_hear_an_interrupt_from_its_first_moment_and_its_parent_does() -> None:
    """It would die with a traceback of its own while it loads: the terminal sends Ctrl-C to all."""
    assert list(ENGINES.get("local")().map(is_deaf, [("a",)], 1, smaller)) == ["a: True"]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def read_by(engine: str, corpus: Path, store: Path) -> Summary:
    """A run in small shards over two workers."""
    return pipeline.analyze([str(corpus)], store, jobs=2, engine=engine, shard_bytes=40_000)


def dies_once_while_writing(task: shard.ShardTask) -> shard.ShardReport:
    """Its process is killed when all is written but the name."""
    mark = Path(task.root) / "died"
    if not mark.exists():
        mark.touch()
        shard.shards.disk.flush = lambda _: os.kill(os.getpid(), signal.SIGKILL)
    return shard.read_shard(task)


def dies_over_poison(task: shard.ShardTask) -> shard.ShardReport:
    """One file kills whatever process opens it."""
    if task.deaths < 2 and any("poison" in m.file.uri for f in task.groups for m in f.files):
        os.kill(os.getpid(), signal.SIGKILL)
    return shard.read_shard(task)


def on_a_full_disk(task: shard.ShardTask) -> shard.ShardReport:
    """The operating system refuses to write beyond 4 KB a file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        return shard.read_shard(task)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_shard_written_where_the_store_is_not_ends_the_run(
    demo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a worker on a machine does that has another folder at the store's path."""
    read = shard.read_shard
    (tmp_path / "other").mkdir()
    monkeypatch.setattr(shard, "read_shard", lambda task: read(replace(task, root=str(tmp_path / "other"))))
    with pytest.raises(StoreError, match="is not in") as caught:
        pipeline.analyze([str(demo_folder / "corpus" / "codex")], tmp_path / "s", jobs=1)
    assert "under the same path" in caught.value.hint
    assert Store(tmp_path / "s").manifest.shards == {} and Store(tmp_path / "s").warnings == []


@pytest.mark.slow
@every_engine
def test_a_worker_killed_while_it_writes_changes_no_table(
    engine: str, demo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard, "read_shard", dies_once_while_writing)
    read_by(engine, demo_folder / "corpus", tmp_path / "s")
    assert (tmp_path / "s" / "died").exists()
    assert_same_and_tidy(demo_folder / "store", tmp_path / "s")


@pytest.mark.slow
@every_engine
def test_a_file_that_kills_every_worker_is_named_and_the_others_are_read(
    engine: str, demo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = shutil.copytree(demo_folder / "corpus", tmp_path / "corpus")
    (corpus / "poison.jsonl").write_bytes(next((corpus / "codex").rglob("*.jsonl")).read_bytes().replace(b"-", b"0"))
    monkeypatch.setattr(shard, "read_shard", dies_over_poison)
    summary = read_by(engine, corpus, tmp_path / "s")
    assert summary.skipped == {"worker_died": 1}
    assert summary.sessions == demo_corpus.SESSIONS


@pytest.mark.slow
@every_engine
def test_a_full_disk_ends_the_run_with_its_reason_and_the_next_one_goes_on(
    engine: str, demo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(StoreError, match="can't be written"):
        patch.setattr(shard, "read_shard", on_a_full_disk)
        read_by(engine, demo_folder / "corpus", tmp_path / "s")
    assert list((tmp_path / "s" / SHARDS_FOLDER).iterdir()) == []
    read_by(engine, demo_folder / "corpus", tmp_path / "s")
    assert_same_and_tidy(demo_folder / "store", tmp_path / "s")


def assert_same_and_tidy(expected: Path, store: Path) -> None:
    """All tables are equal, and nothing lies in the store that belongs to none."""
    assert_same(tables(expected), tables(store))
    assert Store(store).warnings == [] and Store(store).strays() == []


@pytest.mark.engines
@pytest.mark.slow
def test_a_node_that_goes_takes_no_session_with_it(
    demo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two nodes, one of which is killed after the first shard; the run joins the cluster, and leaves it running."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: `make test-engines` has it")
    from ray.cluster_utils import Cluster  # noqa: PLC0415  (as above)

    ray.shutdown()
    small = {"num_cpus": 1, "object_store_memory": 100 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
    nodes = [cluster.add_node(**small)]
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)

    def progress(stage: str, done: int, total: int | None) -> None:
        if stage == "reading" and done and nodes:
            cluster.remove_node(nodes.pop(), allow_graceful=False)

    try:
        corpus = demo_folder / "corpus"
        pipeline.analyze([str(corpus)], tmp_path / "s", jobs=2, engine="ray", shard_bytes=40_000, progress=progress)
        assert nodes == [] and not ray.is_initialized()
        assert_same_and_tidy(demo_folder / "store", tmp_path / "s")
        ray.init(cluster.address, log_to_driver=False)
        assert len(ray.nodes()) == 2
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.mark.engines
@pytest.mark.slow
def test_a_cluster_begun_for_a_run_ends_with_it() -> None:
    ray = pytest.importorskip("ray", reason="Ray is not installed: `make test-engines` has it")
    ray.shutdown()
    assert results("ray", work, [("a",), ("b",)], 2, smaller) == ["a", "b"]
    assert not ray.is_initialized()


@pytest.mark.engines
@pytest.mark.slow
def test_a_cluster_whose_address_is_none_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: `make test-engines` has it").shutdown()
    monkeypatch.setenv("RAY_ADDRESS", "no address")
    with pytest.raises(WorkerError, match="Cannot join or start a Ray cluster"):
        results("ray", work, [("a",)], 1, smaller)


def test_without_ray_its_engine_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError) as caught:
        results("ray", work, [("a",)], 1, smaller)
    assert caught.value.hint.startswith("Install it: pip install 'ray")


def test_what_is_begun_beside_answers_and_refuses_as_here() -> None:
    """In a copy of this process where there can be one, which may hold what can't be sent to a process of its own."""

    def refuse() -> int:
        raise StoreError("No.", "Yes.")

    assert in_background(lambda: [refuse, 7][1])() == 7
    with pytest.raises(StoreError, match="No"):
        in_background(refuse)()


_ALONE = """
import os, sys
from agentsignals.ingest.engine.local import in_background

parent = os.getpid()

def where():
    if os.getpid() != parent and sys.argv[1] == "dies":
        os._exit(9)
    return "here" if os.getpid() == parent else "there"

print(in_background(where)())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="where it is not known to have one thread: no copy")
@pytest.mark.parametrize(("fate", "where"), [("lives", "there"), ("dies", "here")])
def test_it_is_done_by_a_copy_and_here_where_that_dies(fate: str, where: str) -> None:
    ran = subprocess.run([sys.executable, "-c", _ALONE, fate], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.split() == [where]


_WITH_A_BAR = """
from agentsignals.cli.output import Bar
from agentsignals.ingest.engine.local import can_fork

bar = Bar(False)
bar("reading", 1, 2)
print(can_fork())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="where it is not known to have one thread: no copy")
def test_a_bar_in_a_terminal_leaves_the_process_one_that_can_be_copied() -> None:
    """Workers are copies there, too: each that is none loads all again."""
    import pty  # noqa: PLC0415  (not on every system)
    import termios  # noqa: PLC0415

    ours, theirs = pty.openpty()
    termios.tcsetwinsize(ours, (24, 80))
    try:
        command = [sys.executable, "-c", _WITH_A_BAR]
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, text=True, check=True, timeout=60)
        os.set_blocking(ours, False)
        assert "reading" in os.read(ours, 10_000).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert ran.stdout.split() == ["True"]


# Several repositories over each engine: the tables of one run after the other, and what fails or kills is named

BESIDE = ("commits", "line_attribution", "weaknesses", "scans")


def repositories(folder: Path, *names: str) -> list[str]:
    """A story of its own in each: sessions of equal names would be one."""
    return [str(published(story_of_agent_and_human(folder / name), name)) for name in names]


def published(story: Story, name: str) -> Path:
    for agent in story.agents:
        agent.log.session = f"{agent.log.session}-{name}"
    for checkpoint in story.checkpoints:
        checkpoint["session"] += f"-{name}"
    story.publish()
    return story.root


def rows(store: Path) -> dict[str, list[Any]]:
    return {name: Store(store).sql(f'SELECT * FROM "{name}" ORDER BY ALL').fetchall() for name in BESIDE}


def cut_off(repository: str) -> None:
    """Takes the commit at its head away, as a disk does: its checkpoints are there still."""
    git = Path(repository) / ".git"
    oid = (git / "refs" / "heads" / "main").read_text().strip()
    (git / "objects" / oid[:2] / oid[2:]).unlink()


class Deadly(collection.RepositoryTask, frozen=True, kw_only=True):
    """Ends its process over one repository, as often as it is tried; over another once."""

    def tables(self) -> Any:
        once = Path(self.at.name) / "died"
        if "poison" in self.at.name or ("frail" in self.at.name and not once.exists()):
            once.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().tables()


@pytest.mark.slow
@every_engine
def test_several_repositories_have_the_tables_of_one_after_the_other(engine: str, tmp_path: Path) -> None:
    places = repositories(tmp_path, "a", "b", "c")
    for place in places:
        attribute_repository(place, tmp_path / "one", jobs=1)
        collection.scan_repository(place, OwnRules(), tmp_path / "one", jobs=1)
    done = collection.scan_repositories([*places, places[0]], OwnRules(), tmp_path / "all", jobs=2, engine=engine)
    assert [scan.repo for scan in done.repositories] == places and done.failed == []
    assert rows(tmp_path / "one") == rows(tmp_path / "all")
    assert len(rows(tmp_path / "all")["weaknesses"]) == 4 * len(places)
    assert_same(tables(tmp_path / "one"), tables(tmp_path / "all"))
    _, again = collection.attribute_repositories(places, tmp_path / "all", jobs=2, engine=engine)
    assert [attribution.unchanged for attribution in again.repositories] == [True] * 3


@pytest.mark.slow
@every_engine
def test_a_repository_that_fails_or_kills_its_worker_is_named_and_the_others_are_done(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = repositories(tmp_path, "poison", "a", "torn", "frail")
    cut_off(places[2])
    monkeypatch.setattr(collection, "RepositoryTask", Deadly)
    nothing = str(tmp_path / "nothing")
    done = collection.scan_repositories([*places, nothing], OwnRules(), tmp_path / "s", jobs=2, engine=engine)
    assert [scan.repo for scan in done.repositories] == [places[1], places[3]]
    reasons = {failure.repo: failure.reason for failure in done.failed}
    assert reasons.keys() == {nothing, places[0], places[2]}
    assert "is not a Git repository" in reasons[nothing] and "A worker died" in reasons[places[0]]
    assert {row[0] for row in rows(tmp_path / "s")["commits"]} == {places[1], places[3]}


def test_the_verbs_take_several_and_say_which_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places, nothing = repositories(tmp_path, "a"), str(tmp_path / "nothing")
    how = ["--store", str(tmp_path / "s"), "--quiet", "--jobs", "1"]
    assert main(["attribute", *places, nothing, *how]) == 0
    said = capsys.readouterr().out
    assert f"repository  {places[0]}\n" in said and f"failed      {nothing}: " in said
    assert main(["scan", *places, nothing, "--json", *how]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [scan["introduced"] for scan in told["repositories"]] == [4] and told["failed"][0]["repo"] == nothing
    assert main(["attribute", nothing, f"{nothing}2", *how]) == 1
    assert main(["scan", *places, nothing, "--sarif", "x.sarif", *how]) == 2
