"""The key of a machine's pseudonyms: one for all processes of a user, read by nobody else, and missed by no run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentsignals.store import secrets as module
from agentsignals.store.secrets import key_file, pseudonym_key

TELL = """
import sys
from agentsignals.redaction import Redactor
from agentsignals.store.secrets import pseudonym_key
if len(sys.argv) > 1:
    print("ready", flush=True)
    sys.stdin.readline()
print(pseudonym_key().hex(), Redactor(pseudonym_key()).plain("/home/jodoe/x"))
"""
windows = pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for a user's data without a key, and a process that remembers none."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    module._kept_or_passing.cache_clear()
    yield tmp_path / "data"
    module._kept_or_passing.cache_clear()


def started(*, waiting: bool = False) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", TELL, *(["wait"] if waiting else [])], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip


def anew() -> bytes:
    """What the next process of this user has."""
    module._kept_or_passing.cache_clear()
    return pseudonym_key()


def test_a_key_is_made_once_and_kept(home: Path) -> None:
    first = pseudonym_key()
    assert len(first) == 32 and len(set(first)) > 8
    assert key_file().is_relative_to(home) and key_file().read_bytes() == first
    assert anew() == first
    assert [p.name for p in key_file().parent.iterdir()] == ["pseudonyms.key"], "nothing else is left"


def test_another_machine_has_another_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = pseudonym_key()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "another"))
    assert anew() != first


@pytest.mark.slow
def test_processes_that_begin_at_once_have_one_key() -> None:
    crowd = [started(waiting=True) for _ in range(6)]
    for one in crowd:
        assert one.stdout is not None and one.stdout.readline() == "ready\n"
    for one in crowd:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
    told = [one.communicate(timeout=60) for one in crowd]
    assert len({out for out, _ in told}) == 1 and {problem for _, problem in told} == {""}
    assert told[0][0].split()[0] == key_file().read_bytes().hex() == pseudonym_key().hex()


def test_who_makes_a_key_while_another_does_takes_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def later(source: Path, target: Path) -> None:
        target.write_bytes(bytes(range(32)))
        link(source, target)

    monkeypatch.setattr(os, "link", later)
    assert pseudonym_key() == bytes(range(32))
    assert len(list(key_file().parent.iterdir())) == 1


@windows
def test_nobody_else_reads_it_whatever_was_set() -> None:
    before = os.umask(0)
    try:
        key = pseudonym_key()
        assert key_file().stat().st_mode & 0o777 == 0o600
        key_file().chmod(0o644)
        assert anew() == key
        assert key_file().stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


@windows
def test_nobody_else_reads_it_while_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[int] = []
    link = os.link

    def watched(source: Path, target: Path) -> None:
        modes.append(source.stat().st_mode & 0o777)
        link(source, target)

    monkeypatch.setattr(os, "link", watched)
    before = os.umask(0)
    try:
        pseudonym_key()
    finally:
        os.umask(before)
    assert modes == [0o600]


def test_a_key_that_cannot_be_closed_to_others_is_used_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    key_file().parent.mkdir(parents=True)
    key_file().write_bytes(bytes(range(32)))
    key_file().chmod(0o444)

    def refused(*_: object) -> None:
        raise PermissionError(1, "read-only")

    monkeypatch.setattr(os, "fchmod", refused)
    assert pseudonym_key() == bytes(range(32))


def spoil(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    match how:
        case "a file stands where the folder would":
            key_file().parent.parent.mkdir(parents=True)
            key_file().parent.write_text("")
        case "a folder stands where the key would":
            key_file().mkdir(parents=True)
        case "half a key" | "an empty file" | "more than a key":
            key_file().parent.mkdir(parents=True)
            key_file().write_bytes({"h": bytes(16), "a": b"", "m": bytes(33)}[how[0]])
        case "no home":
            monkeypatch.setattr("platformdirs.user_data_dir", lambda *_, **__: "~/.local/share/agentsignals")
        case "no link":
            monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(95, "not supported")))
        case "no room":
            monkeypatch.setattr(os, "fsync", lambda *_: (_ for _ in ()).throw(OSError(28, "no space")))


SPOILT = ("a file stands where the folder would", "a folder stands where the key would", "half a key", "an empty file",
          "more than a key", "no home", "no link", "no room")  # fmt: skip


@pytest.mark.parametrize("how", SPOILT)
def test_where_no_key_can_be_kept_a_run_has_its_own_and_says_so_once(
    how: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    spoil(how, monkeypatch)
    first = pseudonym_key()
    assert pseudonym_key() == first and len(first) == 32
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "this run only" in caplog.text
    assert anew() != first, "the next run has another"
    parent = key_file().parent if how != "no home" else None
    left = [] if parent is None or not parent.is_dir() else [p.name for p in parent.iterdir() if p.name[0] == "."]
    assert left == [], "nothing half-made is left"


def test_what_is_said_comes_on_stderr_once(home: Path) -> None:
    home.write_text("a file, no folder")
    out, problem = started().communicate(timeout=60)
    assert "[user-" in out
    assert problem.count("agentsignals: pseudonyms are for this run only") == 1 and problem.count("\n") == 1
