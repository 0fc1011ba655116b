"""One process a suite: an answer or a reason for each input, and nothing of it left behind."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import agentsignals
import psutil
import pytest
from agentsignals.errors import SandboxError

from agentsignals_lab import sandbox
from agentsignals_lab.sandbox import filters
from tests.sandbox.attacks import NEVER

SRC = Path(sandbox.__file__).parents[2]


pytestmark = pytest.mark.skipif(bool(sandbox.missing()), reason=f"there is no sandbox here: {sandbox.missing()}")


def kinds(outcome: sandbox.Outcome) -> list[str]:
    return [r.kind if isinstance(r, sandbox.Failed) else "value" for r in outcome.results]


def test_each_input_has_its_answer() -> None:
    source = "def f(x, y=1):\n if x == 2:\n  raise KeyError('two')\n return [x, y]"
    outcome = sandbox.call(source, "f", [(1,), (2,), (3, "z")])
    assert outcome.results == (
        sandbox.Returned([1, 1]),
        sandbox.Failed("raised", "'two'", "KeyError", "call", 3),
        sandbox.Returned([3, "z"]),
    )
    assert outcome.wall_s < 5


def test_the_call_that_ends_the_process_gets_the_blame() -> None:
    source = "import os\ndef f(x):\n if x == 1: os._exit(3)\n return x"
    outcome = sandbox.call(source, "f", [(0,), (1,), (2,)])
    assert kinds(outcome) == ["value", "exited", "not_reached"]


@pytest.mark.slow
def test_time_used_up_in_one_call_leaves_the_answers_before() -> None:
    source = "def f(x):\n while x: pass\n return x"
    outcome = sandbox.call(source, "f", [(0,), (1,), (0,)], sandbox.Limits(cpu_s=1, wall_s=3))
    assert kinds(outcome) == ["value", "timeout", "not_reached"]


@pytest.mark.parametrize(
    ("source", "kind", "type_", "line"),
    [
        ("x = 1\ndef f(:", "syntax", "SyntaxError", 2),
        ("\n\nimport no_such_thing", "raised", "ModuleNotFoundError", 3),
        ("def g(): pass", "missing_function", "", None),
        ("f = 3", "missing_function", "", None),
        ("", "missing_function", "", None),
        ("# \ud800", "syntax", "UnicodeEncodeError", None),
    ],
)
def test_source_that_does_not_load_fails_every_input_alike(source: str, kind: str, type_: str, line: int) -> None:
    first, second = sandbox.call(source, "f", [(1,), (2,)]).results
    assert isinstance(first, sandbox.Failed) and first == second
    assert (first.kind, first.type, first.line, first.where) == (kind, type_, line, "load")


@pytest.mark.parametrize("line", [{"at": 2, "value": 7}, {"done": True}, {"at": 0, "done": True}, "no answer"])
@pytest.mark.parametrize("pause_s", [0, 0.05], ids=["read with the answers", "read alone"])
def test_answers_are_taken_in_their_order_only(line: object, pause_s: float) -> None:
    """However the bytes come apart, and whatever number the pipe has: here many files are open before it."""
    said = json.dumps(line).encode() + b"\n"
    source = (
        f"import os, time\nfor n in range(3, 4096):\n try: os.write(n, {said!r})\n"
        f" except OSError: pass\ntime.sleep({pause_s})\ndef f(x): return os._exit(0) if x else x"
    )
    with contextlib.ExitStack() as files:
        for _ in range(40):
            files.enter_context(Path(os.devnull).open())
        outcome = sandbox.call(source, "f", [(0,), (1,)])
    assert kinds(outcome) == ["protocol"] * 2


@pytest.mark.slow
def test_the_package_may_lie_among_temporary_files(tmp_path: Path) -> None:
    shutil.copytree(SRC / "agentsignals_lab", tmp_path / "agentsignals_lab")
    program = "from agentsignals_lab import sandbox; print(sandbox.__file__, sandbox.call('def f(x): return 7 * x', 'f', [(6,)]).results)"  # noqa: E501 - a program
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{Path(agentsignals.__file__).parents[1]}"}
    said = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert str(tmp_path) in said.stdout and "42" in said.stdout, said.stderr


def test_a_main_block_does_not_run() -> None:
    outcome = sandbox.call("def f(x): return x\nif __name__ == '__main__': raise SystemExit", "f", [(1,)])
    assert outcome.results == (sandbox.Returned(1),)


def test_every_input_type_arrives_as_it_is() -> None:
    given = ((1, 2), {3}, frozenset({4}), {5: [6]}, b"7", 8j, None, "\ud800")
    source = "def f(*a): return [type(x).__name__ for x in a], a"
    [result] = sandbox.call(source, "f", [given]).results
    assert isinstance(result, sandbox.Returned)
    assert sandbox.same(result.value, ([type(x).__name__ for x in given], given))


def test_an_input_that_is_no_data_is_our_own_mistake() -> None:
    with pytest.raises(SandboxError, match="can't be handed over"):
        sandbox.call("def f(x): return x", "f", [(object(),)])


def test_the_order_of_a_set_is_the_same_on_every_run() -> None:
    source = "def f(x): return list(set('abcdefghij'))"
    assert len({str(sandbox.call(source, "f", [(1,)]).results) for _ in range(3)}) == 1


def test_what_it_prints_is_nobodys_and_costs_nothing() -> None:
    source = "import sys\ndef f(x):\n sys.stderr.write('err')\n for _ in range(400): print('x' * 10000)\n return x"
    assert sandbox.call(source, "f", [(1,)]).results == (sandbox.Returned(1),)


def test_bubblewrap_takes_its_powers_and_ends_it_with_us(monkeypatch: pytest.MonkeyPatch) -> None:
    """The filter would refuse these questions, so it is left out here."""
    monkeypatch.setattr(sandbox, "locks", lambda _: {})
    source = """
import ctypes
libc = ctypes.CDLL(None)
def f(x):
    header, powers, signal = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(*[7] * 6), ctypes.c_int()
    libc.capget(header, powers)
    libc.prctl(2, ctypes.byref(signal), 0, 0, 0)
    return list(powers), libc.prctl(39, 0, 0, 0, 0), signal.value
"""
    assert sandbox.call(source, "f", [(1,)]).results == (sandbox.Returned(([0] * 6, 1, 9)),)


def test_many_at_once_do_not_disturb_each_other() -> None:
    got: dict[int, object] = {}

    def one(n: int) -> None:
        got[n] = sandbox.call("def f(x): return x * x", "f", [(n,)], sandbox.Limits(wall_s=20)).results

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == {n: (sandbox.Returned(n * n),) for n in range(8)}


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = set(Path("/proc/self/fd").iterdir())
    for source in ("def f(x): open('a', 'w').write('x')", "def f(x):\n import os\n os._exit(1)", "def f("):
        sandbox.call(source, "f", [(1,)])
    assert list(tmp_path.iterdir()) == []
    assert set(Path("/proc/self/fd").iterdir()) == before


def test_it_dies_with_whoever_started_it() -> None:
    asleep = "import time\ndef f(x): time.sleep(60)"
    program = f"from agentsignals_lab import sandbox; sandbox.missing(); print('.', flush=True); sandbox.call({asleep!r}, 'f', [(1,)], sandbox.Limits(wall_s=60))"  # noqa: E501 - a program
    starter = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert starter.stdout is not None and starter.stdout.readline()
    within = time.monotonic() + 20
    children: list[psutil.Process] = []
    while time.monotonic() < within and len(children) < 3:
        children = psutil.Process(starter.pid).children(recursive=True)
        time.sleep(0.2)
    assert children
    starter.kill()
    starter.communicate()
    _, alive = psutil.wait_procs(children, timeout=5)
    assert alive == []


# What a machine lacks


def test_code_is_not_run_without_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "missing", lambda: "bwrap is not installed")
    with pytest.raises(SandboxError, match="bwrap is not installed") as refused:
        sandbox.call("def f(x): return x", "f", [(1,)])
    assert "apt install bubblewrap" in refused.value.hint


def test_a_lock_that_fails_at_the_last_moment_runs_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sandbox.filters, "computing", lambda _: [(6, 0, 0, 0)] * 5000)  # longer than the kernel takes
    with pytest.raises(SandboxError, match=r"nothing was run.*seccomp"):
        sandbox.call(f"open({str(tmp_path / 'mark')!r}, 'w')", "f", [(1,)])
    assert not (tmp_path / "mark").exists()


def test_numbers_of_system_calls_are_the_kernel_s() -> None:
    headers = {"x86_64": "x86_64-linux-gnu/asm/unistd_64.h", "aarch64": "asm-generic/unistd.h"}
    found = 0
    for machine, header in headers.items():
        path = Path("/usr/include", header)
        if not path.is_file():
            continue
        text = path.read_text("utf-8")
        named = {n: int(v) for n, v in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)}
        named["newfstatat"] = named.get("newfstatat", named.get("fstatat", -1))
        for table in (filters.COMPUTING, filters.BY_ARGUMENT, NEVER):
            for name, number in filters.numbers(table, machine).items():
                assert named.get(name, number) == number, (machine, name)
                found += name in named
    if not found:
        pytest.skip("no kernel headers here")
    assert found > 100


# As somebody without rights

AS_NOBODY = """
import json, sys
from pathlib import Path
from agentsignals_lab import sandbox
from tests.sandbox.attacks import CONTROLS, FILES, LIES, NETWORK, PROCESSES
from tests.sandbox.world import World
world = World(Path(sys.argv[1]))
attacks = [*LIES, *FILES, *PROCESSES, *NETWORK]
said = {a.name: [world.attacked(a), sorted(a.refused)] for a in attacks}
for name, (source, expected) in CONTROLS.items():
    [result] = sandbox.call(source, "f", [(2,)], sandbox.Limits(wall_s=10)).results
    said[name] = [str(getattr(result, "value", result) == expected), ["True"]]
json.dump(said, sys.stdout)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    getattr(os, "getuid", lambda: 1)() != 0, reason="only root can become nobody; else all tests are this"
)
def test_it_holds_for_a_user_without_rights(tmp_path_factory: pytest.TempPathFactory) -> None:
    import msgspec  # noqa: PLC0415 - where it lies matters, for a Python that has it not

    packages = (sandbox.__path__[0], __file__, agentsignals.__file__, msgspec.__file__)
    paths = [str(Path(p).parents[n]) for p, n in zip(packages, (1, 2, 1, 1), strict=True)]
    folder = Path(tempfile.mkdtemp())
    os.chown(folder, 65534, 65534)
    environment = {"PYTHONPATH": ":".join(paths), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}

    def as_nobody(python: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, *arguments], env=environment, cwd="/", user=65534, group=65534, extra_groups=[],
            capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip

    try:
        pythons = [p for p in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}") if Path(p).exists()]
        for python in pythons:
            try:
                if as_nobody(python, "-c", "import agentsignals_lab.sandbox, tests.sandbox.world").returncode == 0:
                    break
            except PermissionError:
                continue
        else:
            pytest.skip("no Python of this version that nobody can run")
        ended = as_nobody(python, "-c", AS_NOBODY, str(folder))
        said = json.loads(ended.stdout or "{}")
    finally:
        shutil.rmtree(folder)
    assert said, ended.stderr
    assert {name: got for name, (got, refused) in said.items() if got not in refused} == {}
