"""The script of `agentsignals completion`, typed at in the shells that it is for."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentsignals.cli import main

LONGEST_S = 30.0
START = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}
BEFORE = {"bash": "", "zsh": "autoload -U compinit; compinit -D -u;"}


def typed(shell: str, script: Path, keys: str, folder: Path) -> str:
    """What arrives at a program called agentsignals when these keys are typed behind its name."""
    ours, theirs = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "dumb", "LC_ALL": "C.UTF-8"}
    with subprocess.Popen(
        START[shell], stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=environment, start_new_session=True
    ) as process:
        os.close(theirs)
        try:
            stub = 'agentsignals() { printf "<%s>" "$@" > arrived; }'
            os.write(ours, f'{BEFORE[shell]} eval "$(cat {script})"; {stub}; echo re""ady\n'.encode())
            _until(ours, b"ready\r")
            os.write(ours, f"agentsignals {keys}".encode())
            _quiet(ours)
            os.write(ours, b"; echo do''ne\n")
            _until(ours, b"done\r")
            return (folder / "arrived").read_text("utf-8")
        finally:
            process.kill()
            os.close(ours)


def _until(descriptor: int, words: bytes) -> None:
    seen, end = b"", time.monotonic() + LONGEST_S
    while words not in seen:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, end - time.monotonic()))
        assert ready, seen.decode("utf-8", "replace")
        seen += os.read(descriptor, 4096)


def _quiet(descriptor: int, seconds: float = 0.5) -> None:
    """Reads on until the shell has said nothing for so long: it is done with the tabs."""
    while select.select([descriptor], [], [], seconds)[0]:
        os.read(descriptor, 4096)


@pytest.fixture(scope="module", params=sorted(START))
def shell(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not on this machine")
    pytest.importorskip("shtab", reason="the extra `completion` is not installed")
    return name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "arrives"),
    [
        ("finding\t--contex\tprod\t", "<findings><--context><product>"),
        ("analyze tra\t", "<analyze><traces>"),
        ("report --out\tpag\t", "<report><--output><page.html>"),
        ("labels annot\t", "<labels><annotate>"),
        ("completion zs\t", "<completion><zsh>"),
    ],
    ids=["verb, option, choice", "a folder", "a file", "a verb of a verb", "its own"],
)
def test_a_tab_completes(
    shell: str, keys: str, arrives: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out)
    (tmp_path / "traces").mkdir()
    (tmp_path / "page.html").touch()
    assert typed(shell, script, keys, tmp_path).replace("traces/", "traces") == arrives


def test_without_its_package_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    assert "pip install 'shtab" in capsys.readouterr().err
    assert main(["completion", "fish"]) == 2
    assert "bash" in capsys.readouterr().err
