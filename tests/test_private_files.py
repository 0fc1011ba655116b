"""Another user of the machine: what each verb leaves behind, they can neither read nor change, whatever the umask."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import pytest

import agentsignals
from agentsignals import cli, private_files
from agentsignals.cli import main, verbs
from agentsignals.cli.demo_corpus import make_corpus
from agentsignals.store import Store, disk
from tests.claude import Log
from tests.labels.stores import session_id
from tests.store.test_harms import STATEMENTS, Stage

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
is_root = hasattr(os, "geteuid") and os.geteuid() == 0
needs_other_user = pytest.mark.skipif(
    not is_root or shutil.which("setpriv") is None, reason="only root with setpriv can look as another user"
)
pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")

WRITES: dict[str, list[list[str]]] = {
    "analyze": [["SOURCES", "--report", "OUT/analyzed.html"], ["SOURCES", "--no-report", "--jobs", "2"]],
    "measure": [["--embedder", "chars"]],
    "inventory": [[]],
    "show": [["SESSION"]],
    "explain": [["SESSION", "dynamics.repetition_rate"]],
    "query": [["SELECT text FROM turns"], ["SELECT * FROM findings", "--csv"]],
    "report": [["-o", f"OUT/report{end}", "--study", "sessions"] for end in (".html", ".md", ".json")],
    "demo": [["--folder", "OUT/demo"]],
    "doctor": [[], ["--repair"]],
    "agree": [["sentiment", "rules", "other", "--settle", "OUT/settle.csv"]],
    "align": [["SESSION", "SESSION"]],
    "annotate": [["sentiment", "--as", "ann", "--sample", "3"]],
    "attribute": [["REPOSITORY", "--afresh"]],
    "audit": [["--markdown"]],
    "collect": [["REPOSITORY"]],
    "compare": [["--junit", "OUT/gate.xml", "--fail-if", "solve_rate < baseline - 0.05"]],
    "completion": [["bash"]],
    "discover": [["repos", "REPOSITORY"]],
    "drivers": [["--no-models"]],
    "export": [
        *(["--to", form, "-o", f"OUT/{form}"] for form in ("parquet", "atif", "sts", "hub", "agent-trace")),
        *(
            ["--to", "hub", "-o", "OUT/hub-found", "--transcripts", "found"],
            ["--to", "baseline", "-o", "OUT/base.json"],
        ),
        ["--to", "training", "-o", "OUT/steps", "--kind", "steps"],
    ],
    "failures": [["--markdown"]],
    "findings": [[]],
    "forget": [],  # last, below
    "formats": [[]],
    "lab": [],  # its verbs come from a package of its own
    "label": [
        ["sentiment", "--by", "rules"],
        ["sentiment", "--export-gold", "OUT/gold.jsonl"],
        ["sentiment", "--by", "openai:m@http://127.0.0.1:9/v1", "--export-batch", "OUT/batch.jsonl"],
    ],
    "mcp": [["--skill"]],
    "receipt": [["REPOSITORY", "--markdown"]],
    "refusals": [[]],
    "replicate": [["CLAIMS"]],
    "rules": [["REPOSITORY", "--markdown"]],
    "scan": [["REPOSITORY", "--afresh"]],
    "search": [["listing"]],
    "serve": [],  # below
    "sessions": [[]],
    "study": [["sentiment", "--by", "rules", "--against", "human:ann", "-o", "OUT/study.html"]],
    "today": [[]],
    "share": [["SESSION", "--out", "OUT/share.html"], ["--team", "--out", "OUT/team.json"]],
    "tune": [["PLAN", "--out", "OUT/search"]],
    "validate": [["--write", "OUT/figures.json"]],
    "watch": [["SOURCE", "--once"]],
    "what-if": [[]],
    "witness": [["REPOSITORY"]],
}
"""How each verb is asked for all that it can leave on the disk."""
ENDS_OTHERWISE = {
    "replicate": "its claims are false",
    "study": "nobody else labelled",
    "tune": "its command leaves no outcome",
}
PLAN = """
command = ["sh", "-c", "echo {task}; echo {cap} > {run}/held.txt"]
tasks = [1, 2]
[knobs]
cap = [10, 20]
[default]
cap = 10
[budget]
runs = 6
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody may enter, with a umask that gives everything to everybody; the person's home in it."""
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="open-to-all-"))
    before, kept = os.umask(0), {**os.environ}
    try:
        folder.chmod(0o755)
        for name in ("home", "tmp", "out"):
            (folder / name).mkdir(mode=0o777)
        os.environ.update(HOME=f"{folder}/home", TMPDIR=str(folder / "tmp"))
        os.environ.update(XDG_DATA_HOME=f"{folder}/home/data", XDG_CACHE_HOME=f"{folder}/home/cache")
        tempfile.tempdir = None
        yield folder
    finally:
        os.umask(before)
        os.environ.clear()
        os.environ.update(kept)
        tempfile.tempdir = None
        shutil.rmtree(folder)


def left_open(*folders: Path) -> list[str]:
    """All that has permissions for others, below folders that exist."""
    found = [each for folder in folders for each in private_files.exposed_below(folder) if each.path != str(folder)]
    return [f"{each.mode & 0o777:o} {each.path}" for each in found]


def reached_by_another(*folders: Path) -> list[str]:
    """All that another user finds, reads or may write below folders that exist."""
    words = ["find", *map(str, folders), "-mindepth", "1", "(", "-readable", "-o", "-writable", ")", "-print"]
    done = subprocess.run([*NOBODY, *words], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def words_of(given: list[str], stage: Stage, place: Path) -> Iterator[str]:
    named = {"SESSION": stage.session, "REPOSITORY": str(stage.repository), "OUT": str(place / "out"),
             "CLAIMS": str(place / "claims.yaml"), "PLAN": str(place / "plan.toml"),
             "SOURCES": stage.sources[0], "SOURCE": stage.sources[0]}  # fmt: skip
    for word in given:
        yield reduce(lambda told, pair: told.replace(*pair), named.items(), word)


def test_each_verb_is_asked() -> None:
    assert set(WRITES) == set(verbs())


@needs_other_user
@pytest.mark.slow
@pytest.mark.parametrize("way", [pytest.param("program", marks=pytest.mark.nightly), "library"])
def test_no_verb_leaves_anything_to_another_user(way: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a library and, by the same functions below the umask that only a program may set, as a program."""
    if way == "library":
        monkeypatch.setattr(cli, "owner_only", contextlib.nullcontext)
    stage = Stage(place / "stage")
    make_corpus(place / "corpus")
    assert main(["analyze", str(place / "corpus"), "--store", str(stage.store), "--quiet"]) == 0
    (place / "claims.yaml").write_text(STATEMENTS)
    (place / "plan.toml").write_text(PLAN)
    monkeypatch.chdir(place / "out")
    seen = (stage.store, place / "out", place / "home", place / "tmp")
    failed: list[str] = []
    found: dict[str, str] = {}
    for verb, asked in [*WRITES.items(), ("forget", [["SESSION"]])]:
        for given in asked:
            words = [verb, *words_of(given, stage, place)]
            store = [] if verb in ("tune", "demo", "completion") else ["--store", str(stage.store)]
            err = io.StringIO()
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
                monkeypatch.setattr(sys, "stdin", io.StringIO("1\n" * 5))
                code = main([*words, *store])
            if code not in (0, 3) and verb not in ENDS_OTHERWISE:
                failed.append(f"{' '.join(words)}: {code} {err.getvalue()[-200:]}")
            # A plan's command writes with its person's umask, into a folder that is closed.
            of_us = [told for told in left_open(*seen) if "/search/runs/" not in told]
            open_now = [*of_us, *reached_by_another(*seen)]
            found |= {path: " ".join(words) for path in open_now if path not in found}
    assert not found
    assert not failed, "\n".join(failed)


def log_of(folder: Path, n: int) -> list[Path]:
    """Transcripts of which each takes a moment to read."""
    folder.mkdir()
    paths = []
    for each in range(n):
        log = Log(session_id(each))
        for turn in range(60):
            log.user(f"Please rename module {turn} of {each} and keep its tests")
            log.say(f"Renamed {turn}.", message_id=f"msg_{each}_{turn}")
        paths.append(folder / f"{each}.jsonl")
        paths[-1].write_bytes(log.data())
        paths[-1].chmod(0o600)
    return paths


KILLED = {
    "analyze": (["SOURCES", "--report", "OUT/r.html", "--jobs", "2"], 12),
    "measure": (["--embedder", "chars"], 3),
    "export": (["--to", "parquet", "-o", "OUT/parquet"], 3),
    "share": ([session_id(1), "--out", "OUT/share.html"], 3),
    "label": (["sentiment", "--by", "rules"], 3),
    "report": (["-o", "OUT/report.html"], 3),
    "search": (["module"], 3),
}
"""Verbs with what they are given, and the number of moments at which each is killed."""


@needs_other_user
@pytest.mark.slow
@pytest.mark.parametrize("verb", KILLED)
def test_what_a_killed_program_leaves_is_its_owners_alone(place: Path, verb: str) -> None:
    """At moments of a run that reads, measures, searches or writes files."""
    log_of(place / "corpus", 24)
    seen = (place / "store", place / "out", place / "home", place / "tmp")
    store = ["--store", str(place / "store"), "--quiet"]
    given, moments = KILLED[verb]
    named = {"SOURCES": str(place / "corpus"), "OUT": str(place / "out")}
    words = [reduce(lambda told, pair: told.replace(*pair), named.items(), word) for word in given]
    if verb != "analyze":
        assert main(["analyze", named["SOURCES"], "--no-report", *store]) == 0
    ended = []
    for n in range(moments):
        if verb == "analyze":
            shutil.rmtree(place / "store", ignore_errors=True)
        begun = subprocess.Popen([sys.executable, "-m", "agentsignals", verb, *words, *store], start_new_session=True)
        time.sleep(0.25 + 0.12 * n)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(begun.pid, signal.SIGKILL)
        ended.append(begun.wait())
        (place / "store").mkdir(exist_ok=True)
        assert not left_open(*seen)
        assert not reached_by_another(*seen)
    assert -signal.SIGKILL in ended


ASKS = """
import sys, urllib.error, urllib.request
try:
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    print(opener.open(sys.argv[1]).status)
except urllib.error.HTTPError as refused:
    print(refused.code)
"""
"""A program that asks for a page."""


@needs_other_user
@pytest.mark.slow
def test_another_user_gets_no_page_and_finds_no_token(place: Path) -> None:
    """Neither from the server, the arguments of programs, nor the file that leads the browser there; killed or not."""
    log_of(place / "corpus", 2)
    store = ["--store", str(place / "store")]
    assert main(["analyze", str(place / "corpus"), "--no-report", "--quiet", *store]) == 0
    browser = place / "browser"
    browser.write_text(f"#!/bin/sh\necho $1 > {place}/out/opened\nexec >/dev/null 2>&1\nsleep 30\n")
    browser.chmod(0o755)
    words = [sys.executable, "-m", "agentsignals", "serve", "--open", "--no-watch", "--port", "0", *store]
    begun = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "BROWSER": f"{browser} %s &"},
    )
    try:
        assert begun.stdout is not None
        url = begun.stdout.readline().split()[0]
        bare, _, token = url.partition("?token=")
        deadline = time.monotonic() + 20
        while not (place / "out/opened").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        arguments = b" ".join(path.read_bytes() for path in running())
        assert b"open.html" in arguments and token.encode() not in arguments
        own = subprocess.run([sys.executable, "-c", ASKS, url], capture_output=True, text=True, check=False)
        assert own.stdout == "200\n"
        for page in ("", "sessions", "search?q=module", "live"):
            words = [*NOBODY, sys.executable, "-c", ASKS, bare + page]
            asked = subprocess.run(words, capture_output=True, text=True, check=False)
            assert asked.stdout == "403\n", (page, asked)
        (place / "out/opened").unlink()  # the browser's own
        assert not reached_by_another(place / "store", place / "home", place / "tmp", place / "out")
    finally:
        os.killpg(begun.pid, signal.SIGKILL)
        begun.communicate()
    assert not reached_by_another(place / "store", place / "home", place / "tmp", place / "out")


def running() -> Iterator[Path]:
    """The arguments of each running program, which all users can read."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            path.read_bytes()
            yield path


@pytest.mark.parametrize("verb", ["sessions", "doctor"])
def test_a_store_that_was_open_is_closed_by_who_opens_it(
    verb: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_of(place / "corpus", 1)
    store = place / "store"
    assert main(["analyze", str(place / "corpus"), "--store", str(store), "--quiet"]) == 0
    outside = place / "outside.txt"
    outside.touch(0o644)
    (store / "shards" / "link").symlink_to(outside)
    for path in [store, *store.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o777 if path.is_dir() else 0o644)
    capsys.readouterr()
    assert main([verb, "--store", str(store), "--quiet"]) == 0
    said = capsys.readouterr()
    assert not list(private_files.exposed_below(store))
    assert outside.stat().st_mode & 0o777 == 0o644
    assert "every user of this machine could read and change this store" in said.err
    assert main(["doctor", "--store", str(store), "--quiet"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "every user of this machine could read and change" in told
    (store / disk.EXPOSURE_FILE).unlink()
    assert main(["doctor", "--store", str(store), "--quiet"]) == 0
    assert "no other user can read it" in " ".join(capsys.readouterr().out.split())


def test_a_folder_with_other_things_keeps_its_mode_and_they_theirs(place: Path) -> None:
    log_of(place / "corpus", 1)
    project = place / "project"
    project.mkdir()
    (project / "main.py").touch(0o644)
    project.chmod(0o755)
    Store(project, create=True)
    (project / "index.sqlite").chmod(0o644)
    agentsignals.analyze(place / "corpus", store=project)
    assert project.stat().st_mode & 0o777 == 0o755
    assert left_open(project) == [f"644 {project / 'main.py'}"]


def test_the_library_never_changes_its_callers_umask(place: Path) -> None:
    """Also not for a moment, in which another thread would create a file."""
    if not Path("/proc/self/status").exists():
        pytest.skip("only Linux tells the umask without changing it")
    log_of(place / "corpus", 6)
    seen: set[str] = set()
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.001):
            seen.update(line for line in Path("/proc/self/status").read_text().splitlines() if "Umask" in line)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        store = agentsignals.analyze(place / "corpus", store=place / "store", jobs=1)
    finally:
        ended.set()
        looking.join()
    assert seen == {"Umask:\t0000"}
    assert not list(private_files.exposed_below(place / "store")), store


def test_a_file_that_was_there_is_closed_before_text_is_in_it(place: Path) -> None:
    target = place / "out" / "old.md"
    target.write_text("old")
    target.chmod(0o666)
    with private_files.open_file(target, "w") as file:
        assert target.stat().st_mode & 0o777 == 0o600
        file.write("new")
    target.chmod(0o664)
    disk.write_atomically(target, b"newer")
    assert target.stat().st_mode & 0o777 == 0o600
    assert (place / "out").stat().st_mode & 0o777 == 0o777, "the person's own folder keeps its mode"
