"""A run computes the signals that findings rest on. Others are computed when somebody asks, once, and kept."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from agentsignals import on_demand
from agentsignals.cli import main
from agentsignals.errors import NotComputed
from agentsignals.ingest import pipeline
from agentsignals.ingest.corpus_signals import FILES, LINES, MARKS
from agentsignals.ingest.measure import explain
from agentsignals.questions.findings import Reader, findings, questions
from agentsignals.questions.question import Inputs, Question
from agentsignals.questions.studies import studies
from agentsignals.signals.catalog import FIRST, catalogue, with_needs
from agentsignals.store import PLACE, Store
from agentsignals.store.query import rows
from agentsignals.store.shards import MOST_FILES
from agentsignals.store.tables import AttemptRow
from tests.build import call, say, session, user
from tests.claude import Log
from tests.planted_stores import evaluated
from tests.questions.stores import store_of
from tests.quick import some

ASKED = "SELECT session_id, value FROM signals WHERE signal = 'user.user_turn_count' ORDER BY 1"
ACROSS = "SELECT session_id, value FROM signals WHERE signal = 'user.session_outcome' ORDER BY 1"


def _never(store: Store, signals: frozenset[str], shard: str | None) -> None:
    pytest.fail(f"{sorted(signals)} are computed, though nothing asked for them")


@pytest.fixture
def nothing_more(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From its call on, whoever asks for a value that is not computed fails."""
    return lambda: monkeypatch.setattr(on_demand, "compute", _never)


@pytest.fixture(scope="module")
def fresh(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Stores as a run leaves them: of people's sessions, and of attempts."""
    folder = tmp_path_factory.mktemp("fresh")
    pipeline.analyze([str(demo_folder / "corpus")], folder / "product", jobs=1)
    store_of(folder / "eval", *evaluated(1), first=True)
    return {"product": folder / "product", "eval": folder / "eval"}


@pytest.fixture(scope="module")
def whole(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Store]:
    folder = tmp_path_factory.mktemp("whole")
    store_of(folder / "eval", *evaluated(1))
    pipeline.measure(folder / "eval", every=True)
    return {"product": Store(demo_folder / "store"), "eval": Store(folder / "eval")}


def copied(store: Path, folder: Path) -> Store:
    shutil.copytree(store, folder / "store")
    return Store(folder / "store")


def parts(store: Store) -> dict[str, list[str]]:
    """Files of values by shard."""
    return {name: [path.name for path in store.signal_files(name)] for name in store.manifest.shards}


def test_a_run_computes_what_findings_attempts_and_places_rest_on_and_nothing_else() -> None:
    signals, paths = catalogue(), {signal.path: signal.name for signal in catalogue().values()}
    asked = {paths[path] for question in questions().values() for path in question.signals}
    columns = {*AttemptRow.__struct_fields__, "attempt1_tool_cap", "retry_tool_cap"} & signals.keys()
    assert with_needs(frozenset(asked | columns | {FILES, MARKS})) == FIRST


@pytest.mark.parametrize("context", ["product", "eval"])
def test_findings_rest_on_what_a_run_computes(
    context: str, fresh: dict[str, Path], whole: dict[str, Store], tmp_path: Path, nothing_more: Callable[[], None]
) -> None:
    nothing_more()
    made = findings(copied(fresh[context], tmp_path), context)
    expected = findings(whole[context], context)
    assert msgspec.to_builtins(made) == msgspec.to_builtins(expected)


ASKED_IN = [
    (context, name)
    for name, asked in (studies() | questions()).items()
    for context in ("product", "eval")
    if asked.context in (context, "either", "both")
]


@pytest.mark.parametrize(("context", "name"), some(ASKED_IN, 4))
def test_a_question_gets_the_same_rows_with_its_declared_signals_alone(
    context: str,
    name: str,
    fresh: dict[str, Path],
    whole: dict[str, Store],
    tmp_path: Path,
    nothing_more: Callable[[], None],
) -> None:
    asked = (studies() | questions())[name]
    store = copied(fresh[context], tmp_path)
    store.require(asked.signals)
    nothing_more()
    assert {p for held in store.manifest.shards.values() for p in held.signals} < {*_paths()}
    made, expected = (Reader(s, [asked], context).inputs(asked) for s in (store, whole[context]))
    assert msgspec.to_builtins(_plain(made, asked)) == msgspec.to_builtins(_plain(expected, asked))


def _paths() -> list[str]:
    return [signal.path for signal in catalogue().values() if signal.scope == "session"]


def _plain(inputs: Inputs, asked: Question) -> dict[str, object]:
    fields = {name: getattr(inputs, name) for name in ("rows", "versions", "places", "paid")}
    return fields | {"many": {name: sorted(inputs.many[name], key=repr) for name in asked.sliced | asked.summed}}


@pytest.mark.parametrize("query", [ASKED, ACROSS, 'SELECT session_id, "user.session_outcome" FROM session_signals'])
def test_the_second_who_asks_reads_what_the_first_had_computed(
    query: str, fresh: dict[str, Path], whole: dict[str, Store], tmp_path: Path, nothing_more: Callable[[], None]
) -> None:
    store = copied(fresh["product"], tmp_path)
    before = {path: path.stat().st_mtime_ns for path in store.folder.rglob("*.parquet")}
    first = sorted(rows(store, query)[1])
    assert first == sorted(rows(whole["product"], query)[1])
    assert first
    assert {path: path.stat().st_mtime_ns for path in before} == before, "what was there is not written again"
    nothing_more()
    assert sorted(rows(store, query)[1]) == sorted(rows(Store(store.folder), query)[1]) == first
    assert all(len(files) == 2 for files in parts(store).values())
    assert not Store(store.folder).strays()


def test_across_sessions_too_only_what_is_asked_for_is_computed(
    fresh: dict[str, Path], whole: dict[str, Store], tmp_path: Path, nothing_more: Callable[[], None]
) -> None:
    def asked(*paths: str) -> str:
        return f"SELECT * FROM signals WHERE signal IN ({str(paths)[1:].rstrip(',)')}) ORDER BY ALL"

    store, there = copied(fresh["product"], tmp_path), set[str]()
    for path in ("user.prior_sessions_same_repo", "corpus.top_duplicate_messages[]", "user.session_outcome"):
        assert rows(store, asked(path)) == rows(whole["product"], asked(path))
        there.add(path)
        assert there <= store.manifest.across_signals.keys()
    assert store.manifest.across_signals.keys() == there | {"user.session_reopened_within_s"}
    assert f"user.{LINES}" not in {name for shard in store.manifest.shards.values() for name in shard.signals}
    nothing_more()
    assert rows(store, asked(*there)) == rows(whole["product"], asked(*there)), "what was asked first is still there"


def test_all_signals_are_there_after_a_report_and_labels(demo_folder: Path, tmp_path: Path) -> None:
    pipeline.analyze([str(demo_folder / "corpus")], tmp_path / "store", jobs=1)
    rows(Store(tmp_path / "store"), "SELECT * FROM signals WHERE signal = 'corpus.top_duplicate_messages[]'")
    assert main(["label", "sentiment", "--by", "rules", "--quiet", "--store", str(tmp_path / "store")]) == 0
    _, ((n,),) = rows(Store(tmp_path / "store"), "SELECT count(DISTINCT signal) FROM signals")
    assert n > len(Store(tmp_path / "store").manifest.across_signals) > 20


SHARED = """
import os, sys
from agentsignals.ingest import engine, measure, pipeline
from agentsignals.store import Store
pipeline._FEW_TO_MEASURE, pipeline.default_jobs, add, mother = 1, lambda: 3, measure.add_values, os.getpid()

def added(store, vectors, task):
    assert os.getpid() != mother
    return add(store, vectors, task) if sys.argv[2] == "live" else os._exit(9)

measure.add_values = added
pipeline.measure(sys.argv[1], every=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forks")
def test_workers_compute_what_one_process_does(demo_folder: Path, tmp_path: Path) -> None:
    pipeline.analyze([str(demo_folder / "corpus")], tmp_path / "shared", jobs=1, shard_bytes=100_000)
    alone = copied(tmp_path / "shared", tmp_path / "alone")
    assert len(alone.manifest.shards) > 1
    before, asked = parts(alone), "SELECT * FROM signals ORDER BY ALL"
    alone.require()
    for how in ("die", "live"):
        command = [sys.executable, "-c", SHARED, tmp_path / "shared", how]
        ran = subprocess.run(command, capture_output=True, check=False, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"})
        assert (ran.returncode, b"Worker processes crash" in ran.stderr) == ((1, True), (0, False))[how == "live"]
        assert how == "live" or parts(Store(tmp_path / "shared")) == before
    assert rows(Store(tmp_path / "shared"), asked) == rows(alone, asked)


def test_many_questions_leave_few_files(fresh: dict[str, Path], tmp_path: Path) -> None:
    store = copied(fresh["product"], tmp_path)
    for path in (
        "user.user_turn_count",
        "dynamics.repetition_rate",
        "chat.agent_percentage",
        "dynamics.cp_curve[]",
        "x.y",
    ):
        rows(store, f"SELECT * FROM signals WHERE signal = '{path}'")
    assert all(len(files) <= MOST_FILES + 1 for files in parts(store).values())
    store.require()
    assert all(len(files) <= MOST_FILES + 1 for files in parts(store).values())
    assert not store.not_computed()


def test_a_session_that_grows_is_computed_anew_when_somebody_asks(tmp_path: Path) -> None:
    folder, logs = (
        tmp_path / "in",
        [Log(f"{n}1111111-2222-4333-8444-555555555555", f"s{n}", "/home/me") for n in (1, 2)],
    )
    folder.mkdir()
    for log in logs:
        log.user("please mend the parser of dates")
        (folder / f"{log.session}.jsonl").write_bytes(log.data())
    store = pipeline.analyze_into([str(folder)], tmp_path / "store", jobs=1, shard_bytes=1)[1]
    (before,) = {value for _, value in rows(store, ASKED)[1]}
    across = dict(rows(store, ACROSS)[1])
    logs[0].user("and now its tests")
    (folder / f"{logs[0].session}.jsonl").write_bytes(logs[0].data())
    store = pipeline.analyze_into([str(folder)], tmp_path / "store", jobs=1, shard_bytes=1)[1]
    assert sorted(map(len, parts(store).values())) == [1, 3], "the other session keeps what was asked for"
    assert dict(rows(store, ASKED)[1]) == {logs[0].session: "2", logs[1].session: before}
    assert dict(rows(store, ACROSS)[1]).keys() == across.keys()
    pipeline.analyze([str(folder)], tmp_path / "fresh", jobs=1)
    for query in (ASKED, ACROSS):
        assert rows(store, query) == rows(Store(tmp_path / "fresh"), query)


def test_values_that_nothing_can_compute_are_named(
    fresh: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = copied(fresh["product"], tmp_path)
    monkeypatch.setattr(on_demand, "compute", None)
    with pytest.raises(NotComputed, match=r"not computed: user\.user_turn_count\.") as told:
        rows(store, ASKED)
    assert "measure --all" in told.value.hint
    assert rows(store, "SELECT count(*) FROM sessions")[1] == [(36,)]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes wherever it likes")
def test_a_store_that_nobody_may_write_says_so(fresh: dict[str, Path], tmp_path: Path) -> None:
    store = copied(fresh["product"], tmp_path)
    store.folder.chmod(0o555)
    try:
        with pytest.raises(NotComputed, match=r"not computed: user\.user_turn_count\."):
            rows(store, ASKED)
        assert rows(store, "SELECT count(*) FROM sessions")[1] == [(36,)]
    finally:
        store.folder.chmod(0o755)


def test_a_run_that_is_killed_while_it_adds_values_leaves_the_store_as_it_was(
    fresh: dict[str, Path], whole: dict[str, Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = copied(fresh["product"], tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Store, "save", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            rows(store, ASKED)
    again = Store(store.folder)
    assert not again.damage
    assert [len(files) for files in parts(again).values()] == [1] * len(again.manifest.shards)
    assert rows(again, ASKED) == rows(whole["product"], ASKED)
    assert not Store(store.folder).strays()


def test_errors_of_a_damaged_shard_are_still_counted_when_it_can_not_be_measured_anew(
    fresh: dict[str, Path], tmp_path: Path
) -> None:
    store = Store(copied(fresh["product"], tmp_path).folder, write=True)
    (name, entry), *_ = sorted(store.manifest.shards.items())
    entry.internal_errors, entry.embedder = {"user.x: internal_error: boom": 2}, "older"
    store.save()
    turns = store.folder / "shards" / name / "turns.parquet"
    data, seen = bytearray(turns.read_bytes()), turns.stat()
    data[4 : len(data) // 2] = os.urandom(len(data) // 2 - 4)
    turns.write_bytes(data)
    os.utime(turns, ns=(seen.st_atime_ns, seen.st_mtime_ns))  # only reading shows it
    rows(Store(store.folder), ASKED)
    after = Store(store.folder).manifest.shards[name]
    assert (after.internal_errors, after.embedder) == ({"user.x: internal_error: boom": 2}, "older")


def test_evidence_needs_no_values(fresh: dict[str, Path], tmp_path: Path, nothing_more: Callable[[], None]) -> None:
    store = copied(fresh["product"], tmp_path)
    nothing_more()
    assert explain(store, "3819e141", "user.user_turn_count").value


def test_everything_can_be_computed_at_once(
    fresh: dict[str, Path], whole: dict[str, Store], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = copied(fresh["product"], tmp_path)
    assert main(["measure", "--all", "--json", "--store", str(store.folder)]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done["sessions"] == 36 and done["signals"] > 60
    assert pipeline.measure(store.folder, every=True) == {"signals": 0, "sessions": 0, "values": 0}
    everything = "SELECT * EXCLUDE (detail), detail::VARCHAR AS d FROM signals ORDER BY ALL"
    assert rows(Store(store.folder), everything) == rows(whole["product"], everything)


def test_places_are_computed_with_every_run(tmp_path: Path, nothing_more: Callable[[], None]) -> None:
    nothing_more()
    store = store_of(tmp_path, session(user("go"), call("Read", path="a.py"), say("done"), repo="me/shop"), first=True)
    assert rows(store, f"SELECT value FROM signals WHERE signal = '{PLACE}'")[1] == [('"me/shop"',)]
