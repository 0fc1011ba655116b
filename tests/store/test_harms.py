"""Each verb on a store that was harmed in each way: an answer is that of the whole store, or it names what is harmed.

Nothing ends in a traceback, and what sources still hold is whole again after `analyze`, or `doctor --repair`.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache, reduce
from pathlib import Path

import msgspec
import pytest

from agentsignals.cli import main
from agentsignals.errors import AgentSignalsError
from agentsignals.ingest import pipeline
from agentsignals.store import Store, sidecars
from agentsignals.store.index import INDEX_FILE
from agentsignals.ui.server import Server
from tests.golden import SAMPLES
from tests.repositories.story import Story, block

SHELL = "import subprocess\n\n\ndef listed(folder):\n    return subprocess.run(f'ls {folder}', shell=True)\n"


class Stage:
    """A store with all that one can hold, a copy of which is harmed each time; its sources, and the repository."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, folder / "store"
        self.sources = [str(folder / name) for name in ("pi", "terminal-bench")]
        story = Story(folder)
        story.human("app.py", block("old", 5))
        story.commit("base")
        agent = story.agent("writer")
        agent.prompt()
        agent.write("listing.py", SHELL)
        agent.say()
        story.commit("by agent", agent)
        story.publish()
        self.repository = story.root
        for source in self.sources:
            shutil.copytree(SAMPLES / Path(source).name, source)
            pipeline.analyze([source], self.store, jobs=1)
        for words in (
            ["attribute", str(self.repository)],
            ["scan", str(self.repository)],
            ["label", "sentiment", "--by", "rules"],
            ["measure"],
        ):
            assert main([*words, "--store", str(self.store), "--quiet"]) == 0, words
        held = sidecars.labels_of(self.store, "sentiment", "rules")
        sidecars.write_labels(
            self.store,
            "sentiment",
            "other",
            [msgspec.structs.replace(r, label=msgspec.structs.replace(r.label, labeller="other")) for r in held],
        )
        self.session = min(s for s, e in Store(self.store).manifest.sessions.items() if e.context == "product")


def shard(store: Path) -> Path:
    """The shard that holds the first of people's sessions."""
    known = Store(store).manifest.sessions
    return store / "shards" / known[min(s for s, e in known.items() if e.context == "product")].shard


def rot(path: Path) -> None:
    """Other bytes under the same length and time: only who reads them sees it."""
    before = path.stat()
    data = bytearray(path.read_bytes())
    data[4 : len(data) // 2] = bytes(len(data) // 2 - 4)
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def garble(path: Path) -> None:
    path.write_bytes(bytes(b ^ 0x5A for b in path.read_bytes()))


def newer(path: Path) -> None:
    held = json.loads(path.read_bytes())
    path.write_text(json.dumps({**held, "schema_version": 99}))


def newer_index(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 99")


def swap(one: Path, other: Path) -> None:
    between = one.with_name("between")
    one.rename(between)
    other.rename(one)
    between.rename(other)


def in_place(path: Path, make: Callable[[Path], object]) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    make(path)


def swapped(store: Path) -> None:
    one, other, *_ = sorted(Store(store).manifest.shards)
    swap(store / "shards" / one, store / "shards" / other)


def part(store: Path, ends: str) -> Path:
    return next(store / p.file for key, p in sidecars.SidecarList(store).live() if ends in key)


Harm = Callable[[Path], object]
TABLES = ("sessions", "turns", "events", "signals")
HARMS: dict[str, tuple[Harm, str]] = {
    **{f"{t} rotten": (lambda s, t=t: rot(shard(s) / f"{t}.parquet"), f"{t}.parquet") for t in TABLES},
    "turns gone": (lambda s: (shard(s) / "turns.parquet").unlink(), "turns.parquet"),
    "turns cut": (lambda s: os.truncate(shard(s) / "turns.parquet", 200), "turns.parquet"),
    "turns unreadable": (lambda s: (shard(s) / "turns.parquet").chmod(0), "turns.parquet"),
    "a shard gone": (lambda s: shutil.rmtree(shard(s)), "shards/"),
    "a shard unreadable": (lambda s: shard(s).chmod(0), "shards/"),
    "the shards' folder unreadable": (lambda s: (s / "shards").chmod(0), "shards/"),
    "two shards swapped": (swapped, "shards/"),
    "a folder for a table": (lambda s: in_place(shard(s) / "turns.parquet", Path.mkdir), "turns.parquet"),
    "a folder for the index": (lambda s: in_place(s / INDEX_FILE, Path.mkdir), "index"),
    "a folder for the list of parts": (lambda s: in_place(s / "parts.json", Path.mkdir), "parts.json"),
    "a file for a shard": (lambda s: in_place(shard(s), Path.touch), "shards/"),
    "a file for the shards' folder": (lambda s: in_place(s / "shards", Path.touch), "shards"),
    "a link to nothing for a table": (
        lambda s: in_place(shard(s) / "turns.parquet", lambda p: p.symlink_to("nowhere")), "turns.parquet"),
    "a link to itself for the index": (
        lambda s: in_place(s / INDEX_FILE, lambda p: p.symlink_to(p)), "index"),
    "the index garbled": (lambda s: garble(s / INDEX_FILE), "index"),
    "the index gone": (lambda s: (s / INDEX_FILE).unlink(), "index"),
    "the index of another kind": (lambda s: (s / INDEX_FILE).write_text("[1, 2]"), "index"),
    "the index of a newer program": (lambda s: newer_index(s / INDEX_FILE), "newer agentsignals"),
    "the index unreadable": (lambda s: (s / INDEX_FILE).chmod(0), INDEX_FILE),
    "the list of parts garbled": (lambda s: garble(s / "parts.json"), "parts.json"),
    "the list of parts gone": (lambda s: (s / "parts.json").unlink(), "parts.json"),
    "the list of parts of a newer program": (lambda s: newer(s / "parts.json"), "newer agentsignals"),
    "the list of parts unreadable": (lambda s: (s / "parts.json").chmod(0), "parts.json"),
    "labels rotten": (lambda s: rot(part(s, "sentiment--")), "sentiment--"),
    "labels gone": (lambda s: part(s, "sentiment--").unlink(), "sentiment--"),
    "lines of a repository rotten": (lambda s: rot(part(s, "/line_attribution")), "line_attribution"),
    "weaknesses gone": (lambda s: part(s, "/weaknesses").unlink(), "weaknesses"),
    "a note of a repository garbled": (lambda s: [garble(p) for p in (s / "repos").glob("*/*.json")], ".json"),
    "values across sessions rotten": (lambda s: rot(next(s.glob("signals.*.parquet"))), "signals."),
    "values across sessions gone": (lambda s: next(s.glob("signals.*.parquet")).unlink(), "signals."),
    "the embeddings garbled": (lambda s: (s / "embeddings.sqlite").write_bytes(b"no" * 4000), "embeddings"),
    "a folder for the embeddings": (lambda s: (s / "embeddings.sqlite").mkdir(), "embeddings"),
    "stray files": (lambda s: [shutil.copytree(shard(s), s / "shards" / "stray"), (s / "x.parquet").touch(),
                               (shard(s) / "notes.txt").touch(), (s / "labels" / "x.parquet").touch()], "stray"),
    "a folder for the lock": (lambda s: in_place(s / ".lock", Path.mkdir), "Is a directory"),
}  # fmt: skip

VERBS: dict[str, list[str]] = {
    "query": ["query", "SELECT text FROM turns", "--json"],
    "query of signals": ["query", "SELECT * FROM signals ORDER BY ALL", "--csv"],
    "query as CSV": ["query", "SELECT * FROM turns ORDER BY ALL", "--csv"],
    "sessions": ["sessions", "--json"],
    "show": ["show", "SESSION", "--all", "--json"],
    "explain": ["explain", "SESSION", "dynamics.repetition_rate", "--json"],
    "inventory": ["inventory", "--json"],
    "report": ["report", "-o", "OUT/report.md", "--json"],
    "report --study": ["report", "--study", "sessions", "-o", "OUT/study.md", "--json"],
    "compare": ["compare", "--json"],
    "export parquet": ["export", "--to", "parquet", "-o", "OUT/tables", "--json"],
    "export sts": ["export", "--to", "sts", "-o", "OUT/sts", "--json"],
    "export hub": ["export", "--to", "hub", "-o", "OUT/hub", "--json"],
    "export baseline": ["export", "--to", "baseline", "-o", "OUT/baseline.json", "--json"],
    "label": ["label", "sentiment", "--by", "rules", "--json"],
    "label --export-gold": ["label", "sentiment", "--export-gold", "OUT/gold.jsonl", "--json"],
    "agree": ["agree", "sentiment", "rules", "other", "--json"],
    "collect": ["collect", "REPOSITORY", "--json"],
    "attribute": ["attribute", "REPOSITORY", "--json"],
    "scan": ["scan", "REPOSITORY", "--json"],
    "replicate": ["replicate", "CLAIMS", "--json"],
    "serve": [],
    "measure": ["measure", "--json"],
    "analyze": ["analyze", "SOURCES", "--jobs", "1", "--json"],
    "analyze --no-report": ["analyze", "SOURCES", "--no-report", "--jobs", "1", "--json"],
    "doctor": ["doctor", "--json"],
    "doctor --repair": ["doctor", "--repair", "--json"],
}
STATEMENTS = ("claims:\n  - {id: turns, query: 'SELECT count(*) AS turns FROM turns', expected: 1}\n"
              "  - {id: values, query: 'SELECT count(*) AS v FROM signals', expected: 1}\n")  # fmt: skip
PAGES = ("", "sessions", "session/SESSION", "signals", "studies")


class Said:
    """What a verb gave: its exit code, and all that it said."""

    def __init__(self, code: int, text: str, place: Path) -> None:
        self.code = code
        self.text = text
        plain = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.+Z]*", "TIME", text).replace(str(place), "PLACE")
        of_the_run = r"\s*\"(?:unchanged|scanned)\": \w+,?|127\.0\.0\.1:\d+|data-live-state=\"\w*\""
        self.answer = re.sub(of_the_run, "HERE", plain)


def said(verb: str, stage: Stage, place: Path) -> Said:
    """Runs a verb on the store in a place."""
    store, out = place / "store", place / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    told, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(err):
        if verb == "serve":
            code = served(store, stage)
        else:
            (place / "claims.yaml").write_text(STATEMENTS)
            code = main([*words_of(verb, stage, place), "--store", str(store), "--quiet"])
    written = "".join(p.read_text("utf-8") for p in sorted(out.iterdir()) if p.is_file())
    return Said(code, f"{told.getvalue()}{written}\n{err.getvalue()}", place)


def words_of(verb: str, stage: Stage, place: Path) -> Iterator[str]:
    for word in VERBS[verb]:
        if word == "SOURCES":
            yield from stage.sources
        else:
            named = {"SESSION": stage.session, "REPOSITORY": str(stage.repository), "OUT": str(place / "out"),
                     "CLAIMS": str(place / "claims.yaml")}  # fmt: skip
            yield reduce(lambda told, pair: told.replace(*pair), named.items(), word)


def served(store: Path, stage: Stage) -> int:
    """Opens pages as a browser does; 1 where the server does not start or a page is an error."""
    try:
        server = Server(store, with_token=False)
    except AgentSignalsError as problem:
        print(problem.message, "hint:", problem.hint)
        return 1
    code = 0
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        for page in PAGES:
            with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
                connection.request("GET", "/" + page.replace("SESSION", stage.session))
                answer = connection.getresponse()
                code = max(code, int(answer.status != 200))
                print(answer.status, answer.read().decode())
        server.shutdown()
        thread.join()
    return code


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(tmp_path_factory.mktemp("stage"))


@pytest.fixture(scope="module")
def whole(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Said]:
    """What a verb says of the whole store."""

    @cache
    def of(verb: str) -> Said:
        return said(verb, stage, copied(stage, tmp_path_factory.mktemp("whole")))

    return of


def copied(stage: Stage, place: Path) -> Path:
    shutil.copytree(stage.store, place / "store")
    return place


def harmed(harm: str, stage: Stage, place: Path) -> Path:
    copied(stage, place)
    HARMS[harm][0](place / "store")
    if "unreadable" in harm and any(
        not path.stat().st_mode & 0o700 and os.access(path, os.R_OK)
        for path in [place / "store", *(place / "store").rglob("*")]
    ):
        pytest.skip("this user reads what nobody may")
    return place


@pytest.fixture(autouse=True)
def removable(tmp_path: Path) -> Iterator[None]:
    """What was closed is opened again, so that it can be removed."""
    yield
    for path in (tmp_path, *tmp_path.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)


def is_sound(found: Said, of_whole: Said, names: str) -> bool:
    """Whether it is the answer of the whole store, or says what is harmed; and what to do, where it is none."""
    ways_out = ("doctor", "hint", "agentsignals", "--store")
    helped = found.code == 0 or any(words in found.text for words in ways_out)
    return "Traceback" not in found.text and (found.answer == of_whole.answer or (names in found.text and helped))


PAIRS = (
    ("turns rotten", "replicate"), ("labels rotten", "query"), ("lines of a repository rotten", "query as CSV"),
    ("signals rotten", "serve"), ("two shards swapped", "explain"), ("a folder for the index", "sessions"),
    ("a link to itself for the index", "doctor --repair"), ("a folder for the list of parts", "label"),
    ("the list of parts of a newer program", "inventory"), ("a file for the shards' folder", "doctor"),
    ("a shard unreadable", "analyze"), ("the shards' folder unreadable", "analyze --no-report"),
    ("the index unreadable", "query"),
    ("a folder for the lock", "measure"),
)  # fmt: skip
"""What no other test asks, and is quick."""


@pytest.mark.slow
@pytest.mark.parametrize(("harm", "verb"), PAIRS, ids=[f"{harm}, {verb}" for harm, verb in PAIRS])
def test_an_answer_is_whole_or_names_what_is_harmed(
    harm: str, verb: str, stage: Stage, whole: Callable[[str], Said], tmp_path: Path
) -> None:
    found = said(verb, stage, harmed(harm, stage, tmp_path))
    assert is_sound(found, whole(verb), HARMS[harm][1]), found.text[-2000:]


CROSSED = [harm for harm in HARMS if harm.split()[0] != "values" and "embeddings" not in harm and "stray" not in harm]
"""What touches files that every verb reads; the rest stands in `PAIRS` and in `test_store_damage`."""
RESTORED = ("turns gone", "turns cut", "a shard gone", "two shards swapped", "a folder for a table",
            "a file for a shard", "a link to nothing for a table", "the index garbled", "the index gone")  # fmt: skip
"""What reading the sources again makes whole."""
PARTS = len(VERBS)


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(1, PARTS))])
@pytest.mark.parametrize("harm", CROSSED)
def test_every_verb_is_sound_on_a_harmed_store_and_sources_restore_it(
    harm: str, part: int, stage: Stage, whole: Callable[[str], Said], tmp_path: Path
) -> None:
    """Every harm with a verb, every verb with a harm; the others by night."""
    verb = [*VERBS][(part - CROSSED.index(harm)) % PARTS]
    found = said(verb, stage, harmed(harm, stage, tmp_path))
    assert is_sound(found, whole(verb), HARMS[harm][1]), f"{verb}: {found.text[-500:]}"
    if harm in RESTORED and part == 0:
        (tmp_path / "again").mkdir()
        place = harmed(harm, stage, tmp_path / "again")
        assert said("analyze", stage, place).code == 0
        assert said("doctor --repair", stage, place).code == 0
        assert rows_of(place / "store") == rows_of(stage.store)


def rows_of(store: Path) -> dict[str, int]:
    return {
        t: len(Store(store).sql(f"SELECT 1 FROM {t}").fetchall()) for t in ("sessions", "turns", "events", "labels")
    }


READ_ONLY = ("query", "sessions", "show", "explain", "inventory", "report", "compare", "export parquet", "serve")


@pytest.mark.slow
def test_what_may_only_be_read_is_read_and_writers_say_what_to_do(
    stage: Stage, whole: Callable[[str], Said], tmp_path: Path
) -> None:
    place = copied(stage, tmp_path)
    for path in sorted((place / "store").rglob("*"), reverse=True):
        path.chmod(0o555 if path.is_dir() else 0o444)
    (place / "store").chmod(0o555)
    if os.access(place / "store", os.W_OK):
        pytest.skip("this user writes where nobody may")
    for verb in READ_ONLY:
        assert said(verb, stage, place).answer == whole(verb).answer, verb
    for verb in ("measure", "label", "analyze", "attribute", "doctor --repair"):
        told = said(verb, stage, place).text
        assert "can't be written" in told and "--store" in told and "Traceback" not in told, (verb, told)


@pytest.mark.slow
@pytest.mark.parametrize("most_bytes", [0, 3_000])
def test_a_disk_that_is_full_is_told_and_the_next_run_goes_on(most_bytes: int, stage: Stage, tmp_path: Path) -> None:
    """No file can be longer than that, as where no space is left."""
    resource = pytest.importorskip("resource")
    store = tmp_path / "store"
    line = [sys.executable, "-m", "agentsignals", "analyze", *stage.sources, "--jobs", "1", "--store", str(store)]
    done = subprocess.run(
        line,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes)),
    )
    assert done.returncode == 1 and "can't be" in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert subprocess.run(line, capture_output=True, check=False).returncode == 0
    assert Store(store).warnings == []
    pipeline.analyze(stage.sources, tmp_path / "other", jobs=1)
    assert Store(store).manifest.sessions.keys() == Store(tmp_path / "other").manifest.sessions.keys()
