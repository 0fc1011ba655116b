"""The main job through its public door: order, processes, growth, interruption and damage."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from agentsignals.cli import demo_corpus
from agentsignals.errors import StoreError
from agentsignals.formats import formats
from agentsignals.ingest import pipeline
from agentsignals.ingest.engine import ENGINES
from agentsignals.model import Session
from agentsignals.model.registry import UnitPlace
from agentsignals.questions import findings
from agentsignals.sources import uri_of
from agentsignals.store import Store
from agentsignals.store.disk import code_stamp
from agentsignals.store.index import INDEX_FILE
from agentsignals.store.query import NAMES
from tests import long_sessions
from tests.claude import Log
from tests.demo_stories import stories
from tests.formats.test_claude_code import planned, taken_up
from tests.golden import SAMPLES

SMALL_SHARDS = 40_000
SUMMARY = '{"type":"summary","summary":"a line more","leafUuid":"00000000-0000-4000-8000-000000000000"}\n'


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_corpus.make_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def whole(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[pipeline.Summary, Path]:
    """The summary of one run over the corpus, and its store: to be read only."""
    folder = tmp_path_factory.mktemp("whole") / "s"
    return pipeline.analyze([str(corpus)], folder, jobs=1), folder


@pytest.fixture
def store(whole: tuple[pipeline.Summary, Path], tmp_path: Path) -> Path:
    """A copy of that store of one's own."""
    return Path(shutil.copytree(whole[1], tmp_path / "s"))


def tables(folder: Path) -> dict[str, pl.DataFrame]:
    """Every table of a store in one canonical order."""
    store = Store(folder)
    frames = {name: store.frame(name) for name in NAMES if name != "findings"}
    return {name: frame.sort(frame.columns) for name, frame in frames.items()}


def assert_same(one: dict[str, pl.DataFrame], two: dict[str, pl.DataFrame]) -> None:
    for name, frame in one.items():
        assert frame.height == two[name].height, name
        assert frame.equals(two[name]), name


def run(*arguments: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "agentsignals", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **(env or {})})


def test_the_demo_corpus_becomes_sessions_in_every_format(whole: tuple[pipeline.Summary, Path]) -> None:
    summary = whole[0]
    assert summary.sessions == demo_corpus.SESSIONS
    assert set(summary.formats) == {"claude-code", "codex", "pi", "gemini-cli"}
    assert summary.skipped == summary.internal_errors == {}
    prompts = sum(beat.kind == "prompt" for story in stories() for beat in story.beats)
    assert summary.prompts >= prompts


def test_a_shard_holds_no_more_small_files_than_memory_is_good_for(tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    for n in range(9):
        (tmp_path / "many" / f"{n}.json").write_text(f'{{"n": {n}}}')
    pipeline.ingest([str(tmp_path / "many")], tmp_path / "s", jobs=1, shard_bytes=100_000)
    assert len(Store(tmp_path / "s").manifest.shards) == 3


@pytest.mark.parametrize(
    ("jobs", "largest", "shards"),
    [(1, 12, [8, 8]), (3, 12, [5, 5, 6]), (2, 6, [4, 4, 4, 4]), (9, 12, [4, 4, 4, 4])],
    ids=["as few as hold them", "one a process", "as many for each process", "each worth a process"],
)
def test_shards_are_about_equal_and_as_many_as_read_them(
    tmp_path: Path, jobs: int, largest: int, shards: list[int]
) -> None:
    (tmp_path / "many").mkdir()
    for n in range(16):
        (tmp_path / "many" / f"{n}.json").write_text(f'{{"n": "{n:<{1 << 20}}"}}')
    pipeline.ingest([str(tmp_path / "many")], tmp_path / "s", jobs=jobs, shard_bytes=largest << 20)
    store = Store(tmp_path / "s")
    held = Counter(entry.shard for entry in store.manifest.files.values())
    assert sorted(held.values()) == shards


class Watched:
    """An engine that notes how many workers it is given, and does all itself."""

    workers: ClassVar[list[int]] = []

    def map(
        self, function: Callable[[Any], Any], tasks: Any, workers: int, smaller: object
    ) -> Generator[Any, None, None]:
        self.workers.append(workers)
        yield from map(function, tasks)


@pytest.mark.parametrize(
    ("megabytes", "jobs", "workers"),
    [(1, 1, 0), (1, 2, 0), (5, 1, 1), (5, 2, 2)],
    ids=["small", "small, more jobs", "one job", "more jobs"],
)
def test_what_is_not_small_is_read_by_a_process_whose_end_ends_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, megabytes: int, jobs: int, workers: int
) -> None:
    monkeypatch.setitem(ENGINES.places, "watched", UnitPlace("watched", f"{__name__}:Watched"))
    monkeypatch.setattr(Watched, "workers", [])
    record = {
        "type": "user",
        "message": {"role": "user", "content": "go"},
        "sessionId": "s",
        "rest": "x" * (megabytes << 20),
    }
    (tmp_path / "a.jsonl").write_text(json.dumps({"parentUuid": None, "isSidechain": False, **record, "uuid": "u"}))
    pipeline.ingest([str(tmp_path / "a.jsonl")], tmp_path / "s", jobs=jobs, engine="watched")
    assert Watched.workers[0] == workers


@pytest.mark.slow
def test_order_processes_and_shard_size_do_not_change_the_tables(corpus: Path, tmp_path: Path) -> None:
    folders = [str(p) for p in sorted(corpus.iterdir())]
    pipeline.analyze(folders, tmp_path / "a", jobs=1)
    pipeline.analyze(list(reversed(folders)), tmp_path / "b", jobs=2, shard_bytes=SMALL_SHARDS)
    assert len(Store(tmp_path / "a").manifest.shards) == 1
    assert len(Store(tmp_path / "b").manifest.shards) > 3
    one, two = tables(tmp_path / "a"), tables(tmp_path / "b")
    # the artifact's source is what the person typed, the same here
    assert_same(one, two)


def test_a_run_that_read_everything_leaves_nothing_to_measure(store: Path) -> None:
    assert Store(store).manifest.code == code_stamp()
    assert pipeline.measure(store) == {"signals": 0, "sessions": 0, "values": 0}
    opened = Store(store)
    next(iter(opened.manifest.shards.values())).labels = "others than now"
    opened.save()
    assert pipeline.measure(store)["sessions"] > 0


def test_a_second_run_reads_no_file(corpus: Path, whole: tuple[pipeline.Summary, Path], store: Path) -> None:
    first, again = whole[0], pipeline.analyze([str(corpus)], store, jobs=1)
    assert (first.parsed, again.parsed, again.unchanged) == (demo_corpus.SESSIONS, 0, demo_corpus.SESSIONS)
    assert (again.sessions, again.prompts, again.output_tokens) == (first.sessions, first.prompts, first.output_tokens)


def test_a_file_that_did_not_change_is_not_even_opened(corpus: Path, tmp_path: Path) -> None:
    mine = shutil.copytree(corpus, tmp_path / "corpus")
    pipeline.analyze([str(mine)], tmp_path / "s", jobs=1)
    for path in mine.rglob("*.json*"):
        stamp = path.stat().st_mtime_ns
        path.write_bytes(b"x" * path.stat().st_size)  # what a reader would stumble over
        os.utime(path, ns=(stamp, stamp))
    again = pipeline.analyze([str(mine)], tmp_path / "s", jobs=1)
    assert (again.parsed, again.sessions, again.skipped) == (0, demo_corpus.SESSIONS, {})


@pytest.mark.slow
def test_appended_lines_change_that_session_alone(corpus: Path, tmp_path: Path) -> None:
    mine = shutil.copytree(corpus, tmp_path / "corpus")
    pipeline.analyze([str(mine)], tmp_path / "s", jobs=1, shard_bytes=SMALL_SHARDS)
    before = tables(tmp_path / "s")
    path = sorted((mine / "claude-code").iterdir())[0]
    last = json.loads(path.read_text().splitlines()[-1])
    more = {**last, "uuid": "new-1", "type": "user", "message": {"role": "user", "content": "one more thing"}}
    more.pop("toolUseResult", None)
    with path.open("a") as handle:
        handle.write(json.dumps(more) + "\n")
    again = pipeline.analyze([str(mine)], tmp_path / "s", jobs=1)
    assert again.parsed == 1
    after = tables(tmp_path / "s")
    grown = last["sessionId"]
    assert after["turns"].height == before["turns"].height + 1
    for name in ("sessions", "turns", "steps", "events", "tool_calls", "edits"):
        others = [t[name].filter(pl.col("session_id") != grown) for t in (before, after)]
        assert others[0].equals(others[1]), name
    fresh = tmp_path / "fresh"
    pipeline.analyze([str(mine)], fresh, jobs=1)
    assert_same(after, tables(fresh))


def _aged(folder: Path, change: Callable[[Store], None]) -> None:
    """Makes a store look as if older code had written part of it."""
    store = Store(folder)
    change(store)
    store.manifest.code = ""
    store.save()


@pytest.mark.slow
def test_a_newer_parser_reads_its_files_again_and_no_others(corpus: Path, store: Path) -> None:
    before = tables(store)

    def older(store: Store) -> None:
        files = store.manifest.files
        files.update({u: replace(e, parser=e.parser - 1) for u, e in files.items() if e.format == "pi"})

    _aged(store, older)
    assert pipeline.analyze([str(corpus)], store, jobs=1).parsed == len(list((corpus / "pi").iterdir()))
    assert_same(before, tables(store))


@pytest.mark.slow
def test_a_newer_signal_is_computed_again_without_reading_a_file(store: Path) -> None:
    before = tables(store)

    def older(store: Store) -> None:
        for shard in store.manifest.shards.values():
            shard.signals["behavior.edit_calls"] = 0
            del shard.signals["user.user_turn_count"]

    _aged(store, older)
    assert pipeline.measure(store) == {"signals": 2, "sessions": demo_corpus.SESSIONS, "values": 0}
    assert pipeline.measure(store) == {"signals": 0, "sessions": 0, "values": 0}
    assert_same(before, tables(store))


@pytest.mark.slow
def test_a_run_over_nothing_new_loads_neither_parsers_nor_signals(corpus: Path, store: Path) -> None:
    findings.findings(Store(store))
    loaded = _loaded_by("analyze", str(corpus), "--store", str(store))
    heavy = ("pyarrow", "duckdb", "importlib.metadata", "agentsignals.formats.codex", "agentsignals.redaction")
    heavy += ("agentsignals.shell", "agentsignals.cli.completion", "agentsignals.signals.user.turns")
    assert [m for m in heavy if m in loaded] == []


def _loaded_by(*words: str) -> list[str]:
    """The modules of a process that has run this command line."""
    code = "import sys; from agentsignals.cli import main; main(sys.argv[1:]); print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    return found.stdout.splitlines()[-1].split()


def test_a_log_that_grew_is_what_all_formats_would_call_it(tmp_path: Path) -> None:
    """Its own format alone is asked while its beginning stays; all are when that is another."""
    traces, store = tmp_path / "traces", tmp_path / "s"
    long_sessions.make("claude-code", 20, traces)
    (log,) = traces.rglob("*.jsonl")
    pipeline.analyze([str(traces)], store, jobs=1)
    assert Store(store).manifest.files[uri_of(str(log))].head
    with log.open("a", encoding="utf-8") as grown:
        grown.write(SUMMARY)
    loaded = _loaded_by("analyze", str(traces), "--store", str(store))
    assert [m for m in ("pyarrow.parquet", "pyarrow.compute", "agentsignals.formats.pi") if m in loaded] == []
    assert "agentsignals.formats.claude_code" in loaded
    pipeline.analyze([str(traces)], tmp_path / "at once", jobs=1)
    assert_same(tables(tmp_path / "at once"), tables(store))
    long_sessions.make("codex", 20, tmp_path / "other")
    (other,) = (tmp_path / "other").rglob("*.jsonl")
    log.write_bytes(other.read_bytes())
    assert pipeline.analyze([str(traces)], store, jobs=1).formats == {"codex": 1}


@pytest.mark.slow
def test_an_interrupted_run_keeps_what_it_finished_and_goes_on(corpus: Path, tmp_path: Path) -> None:
    def interrupt(stage: str, done: int, total: int | None) -> None:
        if stage == "reading" and total and done > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pipeline.ingest([str(corpus)], tmp_path / "s", jobs=1, shard_bytes=SMALL_SHARDS, progress=interrupt)
    kept = len(Store(tmp_path / "s").manifest.sessions)
    assert 0 < kept < demo_corpus.SESSIONS
    assert Store(tmp_path / "s").sql("SELECT count(*) FROM sessions").fetchall() == [(kept,)]
    summary = pipeline.analyze([str(corpus)], tmp_path / "s", jobs=1)
    assert 0 < summary.parsed < demo_corpus.SESSIONS
    pipeline.analyze([str(corpus)], tmp_path / "fresh", jobs=1)
    assert_same(tables(tmp_path / "s"), tables(tmp_path / "fresh"))


@pytest.mark.slow
def test_the_index_can_be_thrown_away(corpus: Path, tmp_path: Path) -> None:
    pipeline.analyze([str(corpus)], tmp_path / "s", jobs=1, shard_bytes=SMALL_SHARDS)
    before = tables(tmp_path / "s")
    (tmp_path / "s" / INDEX_FILE).unlink()
    assert_same(before, tables(tmp_path / "s"))
    again = pipeline.analyze([str(corpus)], tmp_path / "s", jobs=1)
    assert again.sessions == demo_corpus.SESSIONS
    assert_same(before, tables(tmp_path / "s"))


def test_a_file_its_agent_deleted_stays_in_the_store(corpus: Path, tmp_path: Path) -> None:
    mine = shutil.copytree(corpus, tmp_path / "corpus")
    pipeline.analyze([str(mine)], tmp_path / "s", jobs=1)
    shutil.rmtree(mine / "codex")
    again = pipeline.analyze([str(mine)], tmp_path / "s", jobs=1)
    assert again.parsed == 0
    assert len(Store(tmp_path / "s").manifest.sessions) == demo_corpus.SESSIONS


def test_two_copies_of_one_session_are_one_session(corpus: Path, tmp_path: Path) -> None:
    mine = shutil.copytree(corpus, tmp_path / "corpus")
    path = sorted((mine / "claude-code").iterdir())[0]
    lines = path.read_text().splitlines(keepends=True)
    (mine / "earlier-snapshot.jsonl").write_text("".join(lines[: len(lines) // 2]))
    summary = pipeline.analyze([str(mine)], tmp_path / "s", jobs=1)
    assert summary.sessions == demo_corpus.SESSIONS
    assert summary.artifacts == demo_corpus.SESSIONS + 1
    notes = Store(tmp_path / "s").sql("SELECT note FROM artifacts WHERE note IS NOT NULL").fetchall()
    assert len(notes) == 1 and notes[0][0].startswith("prefix of ")


@pytest.mark.slow
def test_a_huge_line_is_skipped_and_counted(tmp_path: Path, corpus: Path) -> None:
    path = tmp_path / "corpus" / "huge.jsonl"
    path.parent.mkdir()
    shutil.copy(sorted((corpus / "claude-code").iterdir())[0], path)
    with path.open("ab") as handle:
        handle.write(b'{"type":"user","message":{"content":"' + b"a" * (65 << 20) + b'"}}\n')
    summary = pipeline.analyze([str(path)], tmp_path / "s", jobs=1)
    assert (summary.sessions, summary.skipped) == (1, {"line_too_long": 1})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_without_permission_is_counted(corpus: Path, tmp_path: Path) -> None:
    mine = shutil.copytree(corpus, tmp_path / "corpus")
    (mine / "codex").chmod(0)
    try:
        summary = pipeline.analyze([str(mine)], tmp_path / "s", jobs=1)
    finally:
        (mine / "codex").chmod(0o700)
    assert summary.skipped == {"no_permission": 1}


def test_a_store_that_can_not_be_made_is_a_clear_error(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="can't be made"):
        pipeline.analyze([str(corpus)], tmp_path / "file" / "store")


@pytest.mark.slow
def test_a_disk_that_takes_no_more_is_a_clear_error(corpus: Path, tmp_path: Path) -> None:
    """The operating system refuses to write beyond 4 KB a file, as a full disk would."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); "
        "from agentsignals.cli import main; sys.exit(main(['analyze', *sys.argv[1:], '--jobs', '1']))"
    )
    command = [sys.executable, "-c", code, str(corpus), "--store", str(tmp_path / "s")]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert "can't be written" in found.stderr and "Traceback" not in found.stderr
    again = pipeline.analyze([str(corpus)], tmp_path / "s", jobs=1)
    assert again.sessions == demo_corpus.SESSIONS


def test_an_unknown_source_names_what_there_is(tmp_path: Path) -> None:
    found = run("analyze", tmp_path / "nowhere", "--store", tmp_path / "s", "--json")
    assert found.returncode == 2
    error = json.loads(found.stdout)["error"]
    assert error["kind"] == "source" and "claude-code" in error["hint"]


def test_forcing_a_format_reads_with_it(corpus: Path, tmp_path: Path) -> None:
    path = sorted((corpus / "codex").iterdir())[0]
    summary = pipeline.analyze([str(path)], tmp_path / "s", jobs=1, force_format="codex")
    assert summary.formats == {"codex": 1}
    other = pipeline.analyze([str(path)], tmp_path / "t", jobs=1, force_format="pi")
    assert other.formats == {"pi": 1}
    assert other.tool_calls == 0


def test_only_one_run_writes_a_store(corpus: Path, tmp_path: Path) -> None:
    def meanwhile(stage: str, done: int, total: int | None) -> None:
        if stage == "reading":
            with pytest.raises(StoreError, match="Another run"):
                pipeline.ingest([str(corpus)], tmp_path / "s", jobs=1, wait_s=0.1)

    pipeline.ingest([str(corpus)], tmp_path / "s", jobs=1, progress=meanwhile)


def test_files_that_turn_out_to_belong_together_cost_their_group_alone(tmp_path: Path) -> None:
    """Only reading shows that one session goes on with another's plan; shards with other sessions stay as they are."""
    planning = planned()
    logs = [planning, taken_up(planning)]
    for n in range(14):
        log = Log(f"{n:08d}-2222-4333-8444-555555555555", f"s{n}", "/work/x")
        for _ in range(20):
            log.user("please fix the login form")
            log.say("Done, it works now.")
        logs.append(log)
    folder = tmp_path / "in"
    folder.mkdir()
    for n, log in enumerate(logs):
        (folder / f"{n}.jsonl").write_bytes(log.data())
    pipeline.analyze([str(folder)], tmp_path / "s", jobs=1, shard_bytes=300_000)
    store = Store(tmp_path / "s")
    left = {name: entry.gone for name, entry in store.manifest.shards.items() if entry.gone}
    assert {session_id for gone in left.values() for session_id in gone} == {logs[0].session, logs[1].session}
    on_disk = {path.name for path in (tmp_path / "s" / "shards").iterdir()}
    assert on_disk == set(store.manifest.shards) and len(on_disk) > 2, "no shard was written twice"
    pipeline.analyze([str(folder)], tmp_path / "one", jobs=1)
    assert_same(tables(tmp_path / "one"), tables(tmp_path / "s"))


# A file of many sessions is read, measured and written piece by piece, with the tables that the whole would give

WHOLE = 1 << 30


def traces(path: Path, sessions: int, said: str = "done", **more: object) -> Path:
    """OpenTraces records, a session each."""
    rows = []
    for n in range(sessions):
        steps = [{"step_index": 0, "role": "user", "content": f"look at {n}"}]
        steps.append({"step_index": 1, "role": "agent", "content": f"{said} {n}"})
        rows.append({"schema_version": "0.3", "trace_id": f"t{n}", "agent": {"name": "x"}, "steps": steps, **more})
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(n for n, f in formats().items() if f.pieces is not None))
def test_pieces_make_the_tables_that_the_whole_file_does(name: str, tmp_path: Path) -> None:
    # Without `_cases`: two of its files are one trial. Attempts are numbered within a shard, so they would differ.
    sources = [str(path) for path in sorted((SAMPLES / name).iterdir()) if path.name != "_cases"]
    whole = pipeline.analyze(sources, tmp_path / "whole", jobs=1, shard_bytes=WHOLE)
    pieces = pipeline.analyze(sources, tmp_path / "pieces", jobs=1, shard_bytes=1)
    assert whole.sessions == pieces.sessions > 0
    assert whole.skipped == pieces.skipped
    assert_same(tables(tmp_path / "whole"), tables(tmp_path / "pieces"))


def test_a_piece_is_written_before_the_next_is_read(tmp_path: Path) -> None:
    source = traces(tmp_path / "t.jsonl", 40, "x" * 2_000)
    for limit, least in ((WHOLE, 1), (60_000, 8)):
        folder = tmp_path / str(limit)
        assert pipeline.analyze([str(source)], folder, jobs=1, shard_bytes=limit).sessions == 40
        (events,) = folder.glob("shards/*/events.parquet")
        assert pq.ParquetFile(events).num_row_groups >= least
        assert (pq.ParquetFile(events).num_row_groups == 1) == (limit == WHOLE)


@pytest.mark.slow
def test_of_records_of_one_session_the_youngest_counts_wherever_it_stands(tmp_path: Path) -> None:
    old, new = traces(tmp_path / "old", 3, "old"), traces(tmp_path / "new", 3, "new", generation_index=2)
    source = tmp_path / "t.jsonl"
    for n, text in enumerate((old.read_text() + new.read_text(), new.read_text() + old.read_text())):
        source.write_text(text)
        pipeline.analyze([str(source)], tmp_path / str(n), jobs=1, shard_bytes=1)
        frame = tables(tmp_path / str(n))["events"]
        assert {str(t).split()[0] for t in frame["text"].to_list()} == {"look", "new"}


@pytest.mark.slow
def test_no_session_outlives_its_shard_while_the_collector_is_off(tmp_path: Path) -> None:
    source = traces(tmp_path / "t.jsonl", 30)
    gc.collect()
    before = sum(type(o) is Session and bool(o.events) for o in gc.get_objects())
    gc.disable()
    try:
        pipeline.ingest([str(source)], tmp_path / "s", jobs=1, shard_bytes=1)
        after = sum(type(o) is Session and bool(o.events) for o in gc.get_objects())
    finally:
        gc.enable()
    assert after - before <= 1
