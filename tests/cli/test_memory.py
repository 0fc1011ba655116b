"""Little memory (`ulimit -v`): the answer, or an error in words, never a traceback; and the store stays sound."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pyarrow as pa
import pytest

from agentsignals.cli import main
from agentsignals.errors import OutOfMemory, StoreError, is_out_of_memory, out_of_memory
from agentsignals.sources import RawFile, local
from agentsignals.store import parquet
from tests.claude import Log
from tests.labels.stores import session_id

resource = pytest.importorskip("resource", reason="only POSIX limits a process's address space")
LIMITS_MB = (70, 130, 200, 250, 300, 400, 550, 900)
VERBS = (["query", "SELECT count(*) AS n FROM events", "--json"], ["findings"], ["search", "module"], ["doctor"],
         ["report", "-o", "REPORT"], ["export", "--to", "parquet", "-o", "EXPORT"])  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    for n in range(3):
        log = Log(session_id(n))
        for turn in range(200):
            log.user(f"Please rename module {turn} of {n} and keep its tests")
            log.say("Renamed. " + "word " * 200, message_id=f"msg_{n}_{turn}")
        (folder / f"{n}.jsonl").write_bytes(log.data())
    return folder


def run(megabytes: int, *words: str) -> subprocess.CompletedProcess[str]:
    """The program, with so much address space."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes * 2**20,) * 2)

    program = [sys.executable, "-m", "agentsignals", *words]
    return subprocess.run(program, capture_output=True, text=True, timeout=120, check=False, preexec_fn=limit)


def is_plain(done: subprocess.CompletedProcess[str]) -> bool:
    """Return whether a run gave its answer, or said that memory was short and what to do."""
    said = done.stdout + done.stderr
    return "Traceback" not in said and (done.returncode == 0 or (done.returncode == 1 and "ulimit -v" in said))


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", LIMITS_MB)
def test_reading_ends_in_words_and_the_store_stays_sound(megabytes: int, corpus: Path, tmp_path: Path) -> None:
    store = ["--store", str(tmp_path / "store")]
    for jobs in ("1", "2"):
        done = run(megabytes, "analyze", str(corpus), *store, "--quiet", "--jobs", jobs)
        assert is_plain(done), (done.returncode, done.stderr[-2000:])
    assert main(["analyze", str(corpus), *store, "--quiet"]) == 0
    assert main(["doctor", *store]) == 0
    counted = run(4000, "query", "SELECT count(*) AS n FROM turns", *store, "--json")
    assert json.loads(counted.stdout)["rows"] == [{"n": 600}] if "rows" in counted.stdout else "600" in counted.stdout


@pytest.mark.slow
@pytest.mark.parametrize("words", VERBS, ids=[words[0] for words in VERBS])
@pytest.mark.nightly
def test_each_answer_is_whole_or_an_error_in_words(words: list[str], corpus: Path, tmp_path: Path) -> None:
    store = ["--store", str(tmp_path / "store")]
    assert main(["analyze", str(corpus), *store, "--quiet"]) == 0
    whole = {}
    for n, megabytes in enumerate((*LIMITS_MB, 1500)):
        names = {"REPORT": str(tmp_path / f"r{n}.md"), "EXPORT": str(tmp_path / f"e{n}")}
        given = [names.get(word, word) for word in words]
        done = run(megabytes, *given, *store)
        assert is_plain(done), (megabytes, done.returncode, done.stderr[-2000:])
        if done.returncode == 0 and words[0] in ("query", "search"):
            whole[megabytes] = done.stdout
    assert len(set(whole.values())) <= 1, "an answer under a limit is the whole answer"


@pytest.mark.parametrize(
    ("problem", "is_short"),
    [
        (MemoryError(), True),
        (pa.lib.ArrowMemoryError("malloc of size 8 failed"), True),
        (RuntimeError("can't start new thread"), True),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), True),
        (RuntimeError("dictionary changed size during iteration"), False),
        (OSError(errno.ENOSPC, "No space left on device"), False),
        (KeyError("memory"), False),
    ],
)
def test_kinds_of_errors_that_are_of_memory(problem: Exception, is_short: bool) -> None:
    assert is_out_of_memory(problem) is is_short
    try:
        raise StoreError("a file can't be read") from problem
    except StoreError as wrapped:
        assert is_out_of_memory(wrapped) is is_short
        assert isinstance(out_of_memory(wrapped), OutOfMemory) is is_short


def test_a_file_that_memory_is_short_for_is_not_called_damaged() -> None:
    told = parquet.unreadable(Path("events.parquet"), pa.lib.ArrowMemoryError("malloc of size 8 failed"))
    assert isinstance(told, OutOfMemory) and not isinstance(told, StoreError)
    assert isinstance(parquet.unreadable(Path("events.parquet"), pa.ArrowInvalid("no magic bytes")), StoreError)


CRASHES = {"SIGSEGV": 1, "SIGABRT": 1, "exit 127": 1, "exit 1": 1, "SIGKILL": -signal.SIGKILL, "return 3": 3,
           "return 0": 0, "sys.exit 2": 2}  # fmt: skip


@pytest.mark.parametrize(("ends", "code"), CRASHES.items(), ids=CRASHES)
def test_a_crash_under_a_limit_is_told_in_words_and_other_ends_go_on(ends: str, code: int, tmp_path: Path) -> None:
    kind, _, number = ends.partition(" ")
    acts = {"exit": f"os._exit({number})", "return": number, "sys.exit": f"sys.exit({number})"}
    act = acts.get(kind, f"os.kill(os.getpid(), signal.{kind})")
    script = tmp_path / "run.py"
    script.write_text(
        "import os, resource, signal, sys\n"
        "resource.setrlimit(resource.RLIMIT_AS, (900 * 2**20,) * 2)\n"
        "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
        f"import agentsignals.cli\nagentsignals.cli.main = lambda: {act}\n"
        "from agentsignals.__main__ import run\nrun()\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code
    assert ("ulimit -v" in done.stderr) is (code == 1)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux lists children there")
@pytest.mark.parametrize("ends", ["SIGTERM", "SIGKILL"])
def test_under_a_limit_no_copy_outlives_the_program(ends: str, tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(
        "import resource, time\nresource.setrlimit(resource.RLIMIT_AS, (900 * 2**20,) * 2)\n"
        "import agentsignals.cli\nagentsignals.cli.main = lambda: (print('up', flush=True), time.sleep(60))\n"
        "from agentsignals.__main__ import run\nrun()\n"
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout and running.stdout.readline() == "up\n"
        (copy,) = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
        os.kill(running.pid, getattr(signal, ends))
        assert running.wait(20) == -getattr(signal, ends)
        until = time.monotonic() + 10
        while Path(f"/proc/{copy}").exists() and time.monotonic() < until:
            if Path(f"/proc/{copy}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                break
            time.sleep(0.05)
        else:
            assert not Path(f"/proc/{copy}").exists()


def test_a_file_that_no_memory_is_left_for_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def contents(file: RawFile, handle: IO[bytes], size: int, limit: int | None) -> bytes:
        if limit is None:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        return handle.read(limit)

    log = Log(session_id(0))
    log.user("hello")
    (tmp_path / "a.jsonl").write_bytes(log.data())
    monkeypatch.setattr(local, "contents", contents)
    assert main(["analyze", str(tmp_path / "a.jsonl"), "--store", str(tmp_path / "store"), "--jobs", "1"]) == 1
    told = capsys.readouterr().err
    assert "not enough memory: " in told
    assert "ulimit -v" in told
    assert "No session was found" in told
