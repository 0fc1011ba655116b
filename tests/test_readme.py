"""What the README tells people to type works as it stands there, on the demo's traces instead of theirs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

from agentsignals.cli import demo_corpus, main
from agentsignals.store import Store

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with Claude Code sessions, a store of its own, and a folder to work in with an eval run."""
    demo_corpus.make_corpus(tmp_path / "corpus")
    (tmp_path / ".claude").mkdir()
    (tmp_path / "corpus" / "claude-code").rename(tmp_path / ".claude" / "projects")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AGENTSIGNALS_STORE", str(tmp_path / "store"))
    (tmp_path / "work").mkdir()
    shutil.copytree(Path(__file__).parent / "formats" / "harbor" / "job", tmp_path / "work" / "jobs")
    monkeypatch.chdir(tmp_path / "work")
    for package in ("polars", "sklearn", "mcp", "huggingface_hub", "botocore", "shtab", "optuna"):
        monkeypatch.setitem(sys.modules, package, None)  # extras, which a plain `pip install .` does not bring
    return tmp_path


def serve(words: list[str]) -> None:
    """It says where, answers there, and Ctrl-C ends it. The browser it opens is `true`."""
    command = [sys.executable, "-m", "agentsignals", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "BROWSER": "true"}) as server:
        try:
            assert server.stdout
            browser = build_opener(HTTPCookieProcessor())  # the address gives a cookie, and leads on
            with browser.open(server.stdout.readline().split()[0]) as page:
                assert b"<h1" in page.read()
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(20) == 0


@pytest.mark.slow
def test_the_commands_run(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = [c for block in blocks("sh") for c in block.splitlines() if c.startswith("agentsignals ")]
    assert len(commands) >= 5
    for command in commands:
        words = shlex.split(command, comments=True)[1:]
        if "SESSION" in words:
            words[words.index("SESSION")] = next(iter(Store().manifest.sessions))
        if words[0] == "serve":
            serve(words)
            continue
        assert main([w.replace("~", str(home)) for w in words]) == 0, command
        assert capsys.readouterr().out, command
    assert (home / "work" / "report.html").stat().st_size > 50_000


def test_the_python_lines_run(home: Path) -> None:
    assert (home / ".claude" / "projects").is_dir()
    lines = blocks("python")
    assert lines
    for block in lines:
        names: dict[str, object] = {}
        exec(block, names)  # noqa: S102  (our own README)
        store = names["store"]
        assert isinstance(store, Store)
        (signals,) = store.sql("SELECT count(*) FROM signals").fetchall()[0]
        assert signals > 100
