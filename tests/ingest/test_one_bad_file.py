"""One bad file costs itself alone: whatever it does, its neighbours' rows stay, and it is counted by name."""

from __future__ import annotations

import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from benchmarks import bounds

from agentsignals.cli.doctor import checks
from agentsignals.formats import FORMATS, Claim, Format, Input, Reading, formats, marks, searched
from agentsignals.formats.records import Head
from agentsignals.ingest import pipeline, shard
from agentsignals.model import Session
from agentsignals.model.registry import UnitPlace
from agentsignals.sources import local, path_of, storable_text, uri_of
from agentsignals.store import Store, shards
from tests.claude import Log
from tests.quick import some

GOOD = ("good-1", "good-2")
TABLES = ("sessions", "turns", "steps", "events", "tool_calls", "edits", "signals")
Rows = dict[str, list[Any]]


def written(path: Path, session: str, prompt: str = "Mend the parser", extra: str = "") -> Path:
    log = Log(session, name=f"{session}-{prompt}")
    log.user(prompt)
    log.assistant({"type": "tool_use", "id": f"t-{session}", "name": "Bash", "input": {"command": "echo 1 > a.py"}})
    log.user([{"type": "tool_result", "tool_use_id": f"t-{session}", "content": "a.py"}])
    log.assistant({"type": "text", "text": "Done."}, message_id="msg_2")
    path.write_bytes(("\n".join(log.lines) + "\n" + extra).encode())
    return path


def test_a_session_in_too_many_files_is_left_out_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bounds.make("openhands", tmp_path / "in", 2_000)
    n_files = len([*(tmp_path / "in").rglob("event-*.json")])
    for most, sessions, skipped in ((n_files, 1, 0), (n_files - 1, 0, n_files)):
        monkeypatch.setattr(shard, "MOST_FILES", most)
        summary = pipeline.analyze([str(tmp_path / "in")], tmp_path / f"store-{most}", jobs=1)
        assert len(Store(tmp_path / f"store-{most}").manifest.sessions) == sessions
        assert summary.skipped.get("too_many_files", 0) == skipped


def neighbours(folder: Path) -> None:
    folder.mkdir()
    for session in GOOD:
        written(folder / f"{session}.jsonl", session)


def rows_of_good(store: Path) -> dict[str, list[Any]]:
    """Read from the shards themselves: a query engine for each of so many tests takes its time."""
    found: dict[str, list[Any]] = {}
    for table in TABLES:
        rows = [r for s in Store(store).manifest.shards for r in shards.read_table(store, s, table)]
        mine = [{k: str(v) for k, v in r.items() if k != "artifact_id"} for r in rows if r["session_id"] in GOOD]
        found[table] = sorted(mine, key=lambda r: tuple(r.values()))
    return found


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    folder = tmp_path_factory.mktemp("clean") / "in"
    neighbours(folder)
    pipeline.analyze([str(folder)], folder.parent / "store", jobs=1)
    return rows_of_good(folder.parent / "store")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    neighbours(tmp_path / "in")
    return tmp_path / "in"


def analyzed(folder: Path, *more: str) -> pipeline.Summary:
    return pipeline.analyze([str(folder), *more], folder.parent / "store", jobs=1)


def assert_good(folder: Path, clean: Rows) -> None:
    found = rows_of_good(folder.parent / "store")
    assert {r["session_id"] for r in found["sessions"]} == set(GOOD)
    for table, rows in clean.items():
        assert rows
        assert found[table] == rows, table


def counted(folder: Path) -> dict[str, dict[str, int]]:
    """The files of the store of which something was skipped, by uri."""
    known = Store(folder.parent / "store").manifest.files
    counts = {u: {r: n for r, n in e.skipped.items() if not r.startswith("repeated_")} for u, e in known.items()}
    return {uri: skipped for uri, skipped in counts.items() if skipped}


# -- what lies in a folder -------------------------------------------------------------------------------------------


def elsewhere(linked: Path) -> None:
    other = linked.parent.parent / "elsewhere"
    other.mkdir()
    written(other / "x.jsonl", "elsewhere")
    linked.symlink_to(other)


def listening(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path may be no longer than 108 bytes
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def forbidden(path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    written(path, "bad").chmod(0)


def plain(path: Path) -> bytes:
    """The transcript beside it, of another session."""
    return (path.parent / "good-1.jsonl").read_bytes().replace(b"good-1", b"packed")


def damaged_gzip(path: Path) -> None:
    second = bytearray(gzip.compress(b'{"type":"summary"}\n'))
    second[12] ^= 0xFF
    path.write_bytes(gzip.compress(plain(path)) + second)


NOISE = "".join(map(str, range(40_000))).encode()
IN_A_FOLDER: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "loop": ("loop.jsonl", lambda path: path.symlink_to("loop.jsonl"), "link_loop"),
    "dangling": ("gone.jsonl", lambda path: path.symlink_to("nowhere"), "dangling_link"),
    "folder_elsewhere": ("linked", elsewhere, "linked_folder"),
    "pipe": ("pipe.jsonl", os.mkfifo, "not_a_file"),
    "listening": ("s.jsonl", listening, "not_a_file"),
    "device": ("zero.jsonl", lambda path: path.symlink_to("/dev/zero"), "not_a_file"),
    "forbidden": ("bad.jsonl", forbidden, "no_permission"),
    "damaged_gzip": ("bad.jsonl.gz", damaged_gzip, "bad_gzip"),
    "gzip_and_more": (
        "bad.jsonl.gz",
        lambda path: path.write_bytes(gzip.compress(plain(path)) + b"no member of a gzip file"),
        "bad_gzip",
    ),
    "cut_gzip": (
        "bad.jsonl.gz",
        lambda path: path.write_bytes(gzip.compress(plain(path) + NOISE)[:-9_000]),
        "cut_gzip",
    ),
}


@pytest.mark.parametrize(("name", "make", "reason"), IN_A_FOLDER.values(), ids=IN_A_FOLDER)
@pytest.mark.parametrize("named", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["in_folder", "named"])
def test_what_is_no_readable_file_is_counted(
    folder: Path, clean: Rows, name: str, make: Callable[[Path], object], reason: str, named: bool
) -> None:
    bad = folder / name
    make(bad)
    if named and reason == "linked_folder":
        pytest.skip("a link that is named is followed")
    summary = analyzed(folder, *([str(bad)] if named else []))
    assert_good(folder, clean)
    assert reason in summary.skipped
    assert counted(folder)[str(bad)][reason] == 1
    assert summary.internal_errors == {}


def test_a_link_to_a_folder_that_is_read_anyway_is_not_counted(folder: Path) -> None:
    (folder / "sub").mkdir()
    written(folder / "sub" / "x.jsonl", "sub")
    (folder / "latest").symlink_to("sub")
    assert analyzed(folder).skipped == {}


def deep(folder: Path, levels: int, name: str) -> None:
    handle = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=handle)
        below = os.open(name, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(os.open("x.jsonl", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
    os.close(handle)


@pytest.mark.parametrize(("levels", "name", "reason"), [(1_050, "d", "empty_file"), (20, "d" * 250, "path_too_long")])
def test_folders_nested_deeper_than_calls_can_be(
    folder: Path, clean: Rows, levels: int, name: str, reason: str
) -> None:
    deep(folder, levels, name)
    try:
        assert analyzed(folder).skipped == {reason: 1}
        assert_good(folder, clean)
    finally:
        subprocess.run(["rm", "-rf", str(folder)], check=True)


# -- names and ids ---------------------------------------------------------------------------------------------------

NAMES = [
    b"\xff\xfe.jsonl",
    b"\\xff\xff.jsonl",
    b"new\nline.jsonl",
    b"\x1b[31mred.jsonl",
    "mathématiques 😀.jsonl".encode(),
    "\u202egpj.jsonl".encode(),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_any_bytes_is_read(folder: Path, clean: Rows, name: bytes) -> None:
    named = os.fsencode(folder) + b"/" + name
    written(folder / "x", "odd").rename(os.fsdecode(named))
    summary = analyzed(folder)
    assert (summary.sessions, summary.skipped, summary.internal_errors) == (3, {}, {})
    assert_good(folder, clean)
    again = pipeline.analyze([os.fsdecode(named)], folder.parent / "store", jobs=1)
    assert (again.unchanged, again.sessions) == (1, 1)
    assert [path_of(u) for u in Store(folder.parent / "store").manifest.files if "good" not in u] == [
        os.fsdecode(named)
    ]


def test_an_address_is_turned_back_and_is_no_other_files() -> None:
    names = [os.fsdecode(n) for n in (b"/a\xff/b", b"/a\\xff/b", b"/a\\xff/\xffb", b"/a\xff/\xffb", b"/\\/\\x\xff")]
    assert [path_of(uri_of(n)) for n in names] == names
    assert len({uri_of(n) for n in names}) == len(names)
    assert all(storable_text(uri_of(n)) == uri_of(n) for n in names)


IDS = ["\\ud800half", "nul\\u0000", "\\u001b[2Jclear", "../../etc/passwd", "x" * 50_000, "", " ", "\\u202egpj"]


@pytest.mark.parametrize("written_id", IDS)
def test_a_session_id_of_any_text_is_kept_apart(folder: Path, clean: Rows, written_id: str) -> None:
    text = (folder / "good-1.jsonl").read_text().replace("good-1-", "bad-")
    (folder / "bad.jsonl").write_text(text.replace("good-1", written_id))
    summary = analyzed(folder)
    assert_good(folder, clean)
    assert (summary.sessions, summary.internal_errors) == (3, {})
    found = [s for s in Store(folder.parent / "store").manifest.sessions if s not in GOOD]
    assert len(found[0]) <= 200
    assert found[0] == "".join(c for c in found[0] if c.isprintable()) != ""


def test_two_odd_ids_stay_two(folder: Path) -> None:
    text = (folder / "good-1.jsonl").read_text()
    for n, end in enumerate(("a", "b")):
        (folder / f"{n}.jsonl").write_text(text.replace("good-1-", f"{n}-").replace("good-1", "x" * 300 + end))
    assert analyzed(folder).sessions == 4


def concatenated(folder: Path, resumed: bool) -> list[str]:
    """One file of three sessions, each after the other, or each resuming the one before."""
    ids = [f"s-{n}" for n in range(3)]
    texts: list[str] = []
    last: str | None = None
    for session in ids:
        log = Log(session)
        log.last = last if resumed else None
        log.user("Mend the parser")
        log.assistant({"type": "text", "text": "Done."}, message_id=f"msg-{session}")
        last = log.last
        texts += log.lines
    (folder / "many.jsonl").write_text("\n".join(texts) + "\n")
    return ids


@pytest.mark.parametrize(("resumed", "expected"), [(False, {"s-0", "s-1", "s-2"}), (True, {"s-0"})])
def test_sessions_written_behind_each_other_are_as_many(
    folder: Path, clean: Rows, resumed: bool, expected: set[str]
) -> None:
    concatenated(folder, resumed)
    summary = analyzed(folder)
    assert set(Store(folder.parent / "store").manifest.sessions) == {*GOOD, *expected}
    assert (summary.prompts, summary.skipped) == (len(GOOD) + 3, {})
    assert_good(folder, clean)


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("shard_bytes", some([1, 10_000_000], 2))
def test_a_session_that_another_file_tells_of_too_loses_nothing(
    folder: Path, clean: Rows, at_once: bool, shard_bytes: int
) -> None:
    """The other file names the session so late that nobody can know when the files are put together."""
    if not at_once:
        pipeline.analyze([str(folder)], folder.parent / "store", jobs=1, shard_bytes=shard_bytes)
    log = Log("first")
    for n in range(20):
        log.user(f"question {n}")
    more = Log("good-1", name="more")
    more.now, more.last = log.now, "good-1-Mend the parser-0004"
    more.user("One more thing")
    (folder / "a.jsonl").write_text("\n".join(log.lines + more.lines) + "\n")
    pipeline.analyze([str(folder)], folder.parent / "store", jobs=1, shard_bytes=shard_bytes)
    found = rows_of_good(folder.parent / "store")
    assert sorted(r["session_id"] for r in found["sessions"]) == list(GOOD)
    texts = [r["text"] for r in found["turns"]]
    assert sorted(texts) == ["Mend the parser", "Mend the parser", "One more thing"]
    assert len(found["tool_calls"]) == len(clean["tool_calls"])
    again = pipeline.analyze([str(folder)], folder.parent / "store", jobs=1, shard_bytes=shard_bytes)
    assert again.parsed == 0


# -- errors of ours --------------------------------------------------------------------------------------------------


def _stumbles(error: Exception) -> Callable[[Any], Any]:
    def fail(_: Any) -> Any:
        raise error

    return fail


def _session(artifact_id: str, **facts: Any) -> Session:
    made = Session(session_id="hostile", context="product", format="hostile", agent="x", artifact_id=artifact_id)
    for name, value in facts.items():
        setattr(made, name, value)  # also what the types forbid
    return made


def _gives(**facts: Any) -> Callable[[list[Input]], Reading]:
    return lambda inputs: Reading([_session(one.artifact.artifact_id, **facts) for one in inputs])


def _claim(head: Head) -> Claim | None:
    return Claim(keys=["session:hostile"]) if head.data.startswith(b"hostile") else None


def _claim_or(fail: Callable[[Any], Any]) -> Callable[[Head], Claim | None]:
    return lambda head: fail(head) if head.data.startswith(b"hostile") else None


ERRORS = [KeyError("\ud800"), MemoryError(), RecursionError("too deep"), OSError("odd"), AssertionError()]
STEPS: list[tuple[str, Callable[[Head], Claim | None], Callable[[list[Input]], Reading]]] = [
    *((f"claims {type(e).__name__}", _claim_or(_stumbles(e)), _gives()) for e in ERRORS),
    *((f"reads {type(e).__name__}", _claim, _stumbles(e)) for e in ERRORS),
    ("gives steps that can't be priced", _claim, _gives(steps=[None])),
    ("gives turns that can't be measured", _claim, _gives(turns=[None])),
    ("gives what can't be written", _claim, _gives(title=["a list"])),
    ("gives an id that is none", _claim, _gives(session_id=7)),
]


@contextmanager
def known(*added: Format) -> Iterator[None]:
    """While this lasts, these formats are found as others are."""
    for each in added:
        setattr(sys.modules[__name__], each.name.upper(), each)
        FORMATS.places[each.name] = UnitPlace(each.name, f"{__name__}:{each.name.upper()}")
    for cached in (formats, marks, searched):
        cached.cache_clear()
    try:
        yield
    finally:
        for each in added:
            del FORMATS.places[each.name]
            FORMATS._own.pop(each.name, None)
        for cached in (formats, marks, searched):
            cached.cache_clear()


SLOW = range(1, 2 * len(ERRORS), 2)
"""Each error is quick at one of its two places."""


@pytest.fixture(
    params=[pytest.param(s, id=s[0], marks=pytest.mark.slow if n in SLOW else ()) for n, s in enumerate(STEPS)]
)
def stumbling(request: pytest.FixtureRequest) -> Iterator[None]:
    """A format with a defect: what a hostile file finds in one of ours."""
    _, claims, read = request.param
    with known(Format(name="hostile", version=1, claims=claims, read=read, of_json=False)):
        yield


def test_an_error_of_ours_costs_its_file_and_is_shown(
    folder: Path, clean: Rows, stumbling: None, request: pytest.FixtureRequest
) -> None:
    (folder / "bad.txt").write_text("hostile")
    reason = "out_of_memory" if "MemoryError" in request.node.name else "internal_error"
    summary = analyzed(folder)
    assert_good(folder, clean)
    assert summary.skipped == {reason: 1}
    assert counted(folder) == {str(folder / "bad.txt"): {reason: 1}}
    (shown,) = summary.internal_errors
    assert shown.startswith(f"{folder / 'bad.txt'}: ")
    assert shown in [c.finding for c in checks(str(folder.parent / "store"))]
    again = analyzed(folder)
    assert (again.parsed <= 1, again.skipped) == (True, {reason: 1})
    assert_good(folder, clean)


def test_a_file_that_an_error_of_ours_cost_is_read_when_it_is_mended(folder: Path, clean: Rows) -> None:
    (folder / "bad.txt").write_text("hostile")
    hostile = Format(name="hostile", version=1, claims=_claim, read=_stumbles(KeyError("x")), of_json=False)
    with known(hostile):
        assert analyzed(folder).internal_errors
    with known(Format(name="hostile", version=1, claims=_claim, read=_gives(), of_json=False)):
        mended = analyzed(folder)
    assert (mended.sessions, mended.skipped, mended.internal_errors) == (3, {}, {})
    assert_good(folder, clean)


def test_of_files_that_belong_together_only_those_at_fault_are_set_aside(folder: Path) -> None:
    def read(inputs: list[Input]) -> Reading:
        if any(b"bad" in i.data for i in inputs):
            raise ValueError("bad")
        return Reading([_session(inputs[0].artifact.artifact_id)])

    for n, word in enumerate(("a", "bad", "b", "c", "bad")):
        (folder / f"{n}.txt").write_text(f"hostile {word}")
    with known(Format(name="hostile", version=1, claims=_claim, read=read, of_json=False, snapshots=False)):
        summary = analyzed(folder)
    assert summary.sessions == 3
    assert counted(folder) == {str(folder / f"{n}.txt"): {"internal_error": 1} for n in (1, 4)}


def test_two_formats_that_claim_a_file_cost_that_file(folder: Path, clean: Rows) -> None:
    (folder / "bad.txt").write_text("hostile")
    names = ("hostile", "hostile2")
    with known(*(Format(name=name, version=1, claims=_claim, read=_gives(), of_json=False) for name in names)):
        assert analyzed(folder).skipped == {"ambiguous_format": 1}
    assert_good(folder, clean)


# -- files that change -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_memory", [64 * 1024 * 1024, 1_000])
def test_a_file_that_is_cut_while_it_is_read_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: int
) -> None:
    monkeypatch.setattr("agentsignals.sources.IN_MEMORY", in_memory)
    path = tmp_path / "big.jsonl"
    path.write_bytes(b"x" * 3_000_000)
    (file,) = list(local.find(str(path)))
    (data,) = list(local.read([file], None))  # type: ignore[list-item]
    os.truncate(path, 10)
    assert (len(data), data[-5:]) == (3_000_000, b"xxxxx")  # type: ignore[arg-type, index]


def test_what_is_too_large_for_memory_is_read_all_the_same(
    folder: Path, clean: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentsignals.sources.IN_MEMORY", 1_000)
    packed = folder / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(plain(packed)))
    summary = analyzed(folder)
    assert (summary.sessions, summary.prompts, summary.skipped) == (3, 3, {})
    assert_good(folder, clean)


def test_what_is_packed_a_thousandfold_is_read_up_to_a_bound(
    folder: Path, clean: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentsignals.sources._UNPACKED_MAX", 2_000)
    bomb = folder / "bomb.jsonl.gz"
    bomb.write_bytes(gzip.compress(plain(bomb) + b" " * 100_000))
    summary = analyzed(folder)
    assert_good(folder, clean)
    assert summary.skipped["unpacked_too_large"] == 1
    assert summary.sessions == 3


def test_a_file_that_cannot_be_read_any_more_keeps_what_was_read_of_it(folder: Path, clean: Rows) -> None:
    """It shares a family with another file, whose rows must not go either."""
    text = (folder / "good-1.jsonl").read_text()
    (folder / "copy.jsonl").write_text(text)
    analyzed(folder)
    (folder / "copy.jsonl").unlink()
    (folder / "copy.jsonl").symlink_to("copy.jsonl")
    summary = analyzed(folder)
    assert_good(folder, clean)
    assert counted(folder) == {str(folder / "copy.jsonl"): {"link_loop": 1}}
    (folder / "copy.jsonl").unlink()
    (folder / "copy.jsonl").write_text(text)
    summary = analyzed(folder)
    assert (summary.skipped, summary.sessions) == ({}, 2)


# -- processes -------------------------------------------------------------------------------------------------------

_HOSTILE = """
import os, signal, sys, time, types
import agentsignals.formats as formats
from agentsignals.formats import Claim, Format
from agentsignals.model.registry import UnitPlace

def claims(head):
    return Claim(keys=[f"file:{head.path}"]) if head.data.startswith(b"hostile") else None

def read(inputs):
    if b"die" in inputs[0].data:
        os.kill(os.getpid(), signal.SIGKILL)
    open(inputs[0].artifact.path + ".read", "w").close()
    time.sleep(600)

made = types.ModuleType("agentsignals.formats.hostile")
made.FORMAT = Format(name="hostile", version=1, claims=claims, read=read, of_json=False)
sys.modules["agentsignals.formats.hostile"] = made
formats.FORMATS.places["hostile"] = UnitPlace("hostile", "agentsignals.formats.hostile:FORMAT")
"""


_PROGRAM = """
import sys
sys.path.insert(0, {site!r})
import hostile_format
from agentsignals.ingest import pipeline, plan
from agentsignals.cli import main

pipeline.ingest_into.__kwdefaults__["shard_bytes"] = 1
plan.SMALL_BYTES = 1
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
"""


_ASKED_WHILE_COPIED = """
import os, signal
os.register_at_fork(before=lambda: os.kill(os.getpid(), {number}))
"""


_PATIENCE_S = 60
"""Of a machine that is busy with something else; a quiet one takes a second."""


@pytest.fixture
def program(tmp_path: Path) -> Callable[[int, Path], subprocess.Popen[str]]:
    """The program with a format that kills its process, or never ends, in every process of it."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "hostile_format.py").write_text(_HOSTILE)
    main = tmp_path / "program.py"

    def started(jobs: int, folder: Path, before: str = "") -> subprocess.Popen[str]:
        main.write_text(before + _PROGRAM.format(site=str(site)))
        words = ["analyze", str(folder), "--store", str(folder.parent / "store"), "--jobs", str(jobs), "--json"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([sys.executable, str(main), *words], text=True, start_new_session=True, **pipes)

    return started


@pytest.mark.slow
def test_a_family_that_kills_the_process_that_reads_it_is_named_and_the_others_are_read(
    folder: Path, clean: Rows, program: Callable[[int, Path], subprocess.Popen[str]]
) -> None:
    (folder / "bad.txt").write_text("hostile: die")
    out, err = program(1, folder).communicate(timeout=_PATIENCE_S)
    summary = json.loads(out)
    assert summary["skipped"] == {"worker_died": 1}
    assert "bad.txt" in err
    assert_good(folder, clean)
    assert counted(folder) == {str(folder / "bad.txt"): {"worker_died": 1}}


def alive(group: int) -> list[int]:
    """The processes of a group that still run."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                state = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if state[2] == str(group) and state[0] != "Z":
                found.append(int(folder.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_workers_end_with_the_program(
    folder: Path, program: Callable[[int, Path], subprocess.Popen[str]], number: int, code: int
) -> None:
    for n in range(2):
        (folder / f"{n}.txt").write_text("hostile: hang")
    shards_folder = folder.parent / "store" / "shards"
    running = program(2, folder)
    try:
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until and running.poll() is None and not (folder / "0.txt.read").exists():
            time.sleep(0.02)
        assert len(alive(running.pid)) >= 2
        running.send_signal(number)
        assert running.wait(_PATIENCE_S) == code
        until = time.monotonic() + _PATIENCE_S
        while alive(running.pid) and time.monotonic() < until:
            time.sleep(0.02)
        assert alive(running.pid) == []
    finally:
        for process in alive(running.pid):
            os.kill(process, signal.SIGKILL)
        running.communicate()
    if number != signal.SIGKILL:
        assert [p.name for p in shards_folder.iterdir() if p.name.startswith(".tmp")] == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="copies processes")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_request_to_end_that_comes_while_a_worker_is_begun_is_heard(
    folder: Path, program: Callable[..., subprocess.Popen[str]], number: int, code: int
) -> None:
    (folder / "0.txt").write_text("hostile: hang")
    running = program(2, folder, _ASKED_WHILE_COPIED.format(number=int(number)))
    try:
        assert running.wait(_PATIENCE_S) == code
        assert alive(running.pid) == []
    finally:
        for process in alive(running.pid):
            os.kill(process, signal.SIGKILL)
        assert "Traceback" not in running.communicate()[1]
