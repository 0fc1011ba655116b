"""Sums over what was read so far: on a terminal in place, elsewhere one early line, on stdout nothing of it."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import demo_corpus, output
from agentsignals.cli.output import Reading, sentence
from agentsignals.ingest import pipeline
from agentsignals.ingest.engine import heard, tell
from agentsignals.ingest.engine.local import Local
from agentsignals.ingest.shard import SoFar
from agentsignals.store import Store
from tests.quick import some

MB = 10**6
SUMS = SoFar(bytes=45 * MB, sessions=1234, prompts=5678, tool_calls=91_011, cost_usd=12.3, lower_bounds=2)
SENTENCES = [
    (SUMS, 100 * MB, 0, "45% read: 1,234 sessions, 5,678 prompts, 91,011 calls, >= $12.30 so far"),
    (SUMS, 100 * MB, 79, "45% read: 1,234 sessions, 5,678 prompts, 91,011 calls, >= $12.30 so far"),
    (SUMS, 100 * MB, 60, "45% read: 1,234 sessions, 5,678 prompts, >= $12.30"),
    (SUMS, 100 * MB, 40, "45% read: 1,234 sessions, >= $12.30"),
    (SUMS, 100 * MB, 20, "45% read: 1,234 sess"),
    (SUMS, None, 0, "1,234 sessions, 5,678 prompts, 91,011 calls, >= $12.30 so far"),
    (SoFar(bytes=9, sessions=1, unpriced_sessions=1), 5, 50, "100% read: 1 session, 0 prompts, cost unknown"),
    (SoFar(sessions=2, unpriced_sessions=1, cost_usd=1.0), 0, 0, "2 sessions, 0 prompts, 0 calls, $1.00 so far"),
]  # fmt: skip


@pytest.mark.parametrize(("sums", "total", "width", "line"), SENTENCES)
def test_the_sums_in_a_line(sums: SoFar, total: int | None, width: int, line: str) -> None:
    assert sentence(sums, total, width) == line
    assert not width or len(line) <= width


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_corpus.make_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.mark.parametrize("jobs", some([2, 1], 2))
def test_the_last_sums_are_those_of_the_summary(corpus: Path, tmp_path: Path, jobs: int) -> None:
    told: list[SoFar] = []
    options: dict[str, Any] = {"jobs": jobs, "shard_bytes": 50_000}
    summary = pipeline.ingest([str(corpus / "pi")], tmp_path / "heard", so_far=told.append, **options)
    last = told[-1]
    names = ("sessions", "prompts", "tool_calls", "unpriced_sessions", "lower_bounds")
    assert {n: getattr(last, n) for n in names} == {n: getattr(summary, n) for n in names}
    assert last.cost_usd == pytest.approx(summary.cost_usd)
    assert [t.sessions for t in told] == sorted(t.sessions for t in told) and told[0].sessions < last.sessions
    pipeline.ingest([str(corpus / "pi")], tmp_path / "unheard", **options)
    heard_of, unheard = Store(tmp_path / "heard"), Store(tmp_path / "unheard")
    for name in ("sessions", "turns", "steps", "events", "tool_calls", "edits"):
        query = f"SELECT * FROM {name} ORDER BY ALL"
        assert heard_of.sql(query).fetchall() == unheard.sql(query).fetchall(), name


def tells(task: tuple[str, str]) -> str:
    """Tell the task's first word; die over the second task that has two."""
    name, marker = task
    tell(name)
    if marker and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return name


def test_what_a_dead_worker_told_is_taken_back(tmp_path: Path) -> None:
    told: list[Any] = []
    tasks = [("a", ""), ("b", str(tmp_path / "died"))]
    with heard(told.append):
        done = list(Local().map(tells, tasks, 1, lambda task: [("b1", ""), ("b2", "")]))
    assert done == ["a", "b1", "b2"] and told == ["a", "b", tasks[1], "b1", "b2"]
    assert list(Local().map(tells, tasks[:1], 1, list)) == ["a"]  # nobody listens: nothing is sent


def test_elsewhere_than_on_a_terminal_one_line_comes_early(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "EARLY_S", 0.0)
    for quiet, lines in ((True, []), (False, [SENTENCES[0][-1]])):
        with Reading(quiet) as bar:
            bar("reading", 0, 100 * MB)
            for _ in range(3):
                if bar.heard is not None:
                    bar.heard(SUMS)
            bar("reading", 50 * MB, 100 * MB)
        shown = capsys.readouterr()
        assert (shown.out, shown.err.splitlines()) == ("", lines)


def terminal(words: list[str], columns: int) -> Iterator[bytes]:
    """Yield what a run writes to a terminal of this width."""
    pty, fcntl, termios = (pytest.importorskip(name) for name in ("pty", "fcntl", "termios"))
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {**os.environ, "NO_COLOR": "1"}
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as child:
        os.close(theirs)
        while True:
            try:
                data = os.read(ours, 65_536)
            except OSError:  # Linux's word for the end of a terminal
                data = b""
            if not data:
                break
            yield data
    assert child.returncode == 0
    os.close(ours)


@pytest.mark.parametrize("columns", some([40, 80], 2))
def test_on_a_terminal_sums_come_before_totals_and_totals_before_findings(
    corpus: Path, tmp_path: Path, columns: int
) -> None:
    command = [sys.executable, "-m", "agentsignals", "analyze", str(corpus), "--jobs", "1", "--store"]
    screen = b"".join(terminal([*command, str(tmp_path / "seen")], columns)).decode()
    places = [screen.index(word) for word in ("% read: ", "\nprompts ", "\n1. ")]
    assert places == sorted(places)
    lines = [line for line in screen[: places[1]].split("\r") if "% read" in line]
    assert lines and all(len(line.rstrip()) < columns for line in lines)
    assert "\x1b" not in screen.replace("\x1b[A", "")  # tqdm alone moves the cursor, and nothing colours
    piped = subprocess.run([*command, str(tmp_path / "piped")], capture_output=True, text=True, check=True)
    assert "% read" not in piped.stdout
