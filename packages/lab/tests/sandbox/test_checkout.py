"""An agent's commands: they can run what they like, in the copy, and nowhere else."""

from __future__ import annotations

import os
import socket
import stat
import time
from pathlib import Path

import pytest
from agentsignals.errors import SandboxError

from agentsignals_lab import sandbox
from agentsignals_lab.sandbox.capability import WHOLE

PYTHON = sandbox.capabilities().python
SHORT = sandbox.Limits(wall_s=20, processes=20, memory_bytes=1 << 30, open_files=256)

pytestmark = pytest.mark.skipif(
    bool(sandbox.capabilities().missing(WHOLE["strict"])),
    reason=f"the strict sandbox is not to be had here: {sandbox.capabilities().missing(WHOLE['strict'])}",
)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    made = tmp_path / "copy"
    made.mkdir()
    (made / "test_it.py").write_text(
        "import unittest\nfrom it import double\n\n"
        "class T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(double(2), 4)\n",
        "utf-8",
    )
    (made / "it.py").write_text("def double(x):\n    return x + x\n", "utf-8")
    return made


def ran(copy: Path, program: str, limits: sandbox.Limits = SHORT) -> sandbox.Ran:
    return sandbox.run_in_checkout(copy, [PYTHON, "-c", program], limits)


def test_tests_of_the_repository_run(copy: Path) -> None:
    passed = sandbox.run_in_checkout(copy, [PYTHON, "-m", "unittest"], SHORT)
    assert (passed.exit_code, passed.stopped) == (0, None)
    assert "Ran 1 test" in passed.output
    assert {"bubblewrap", "seccomp"} <= set(passed.layers)

    (copy / "it.py").write_text("def double(x):\n    return x\n", "utf-8")
    assert sandbox.run_in_checkout(copy, [PYTHON, "-m", "unittest"], SHORT).exit_code == 1


def test_what_it_changes_in_the_copy_stays(copy: Path) -> None:
    assert sandbox.run_in_checkout(copy, ["sh", "-c", "mkdir new && mv it.py new/ && exit 3"], SHORT).exit_code == 3
    assert (copy / "new" / "it.py").is_file()


SHELL = {
    "a setuid program": ("cp /bin/true t; chmod 6755 t", "t", 0o755, "setuid, setgid or sticky bit"),
    "a sticky folder": ("mkdir t; chmod 3777 t", "t", 0o777, "setuid, setgid or sticky bit"),
    "a folder that nobody may enter": ("mkdir t; touch t/x; chmod 0 t", "t", 0o700, ""),
    "a file that nobody may read": ("touch t; chmod 0 t", "t", 0o600, ""),
    "a pipe": ("mkfifo t", "", 0, "device, pipe or socket"),
    "a socket": (
        f"{PYTHON} -c 'from socket import *; socket(AF_UNIX).bind(\"t\")'", "", 0, "device, pipe or socket"
    ),
    "a link to a file outside": ("ln -s /etc/passwd t", "", 0, "link that leads outside"),
    "a link that climbs out": ("mkdir d; ln -s ../../etc d/t", "", 0, "link that leads outside"),
    "a link that climbs out through another": ("ln -s . a; ln -s a/../../etc t", "", 0, "link that leads outside"),
}  # fmt: skip
"""What a command leaves: the file and its permissions afterwards, and what is counted."""


@pytest.mark.parametrize("name", SHELL)
def test_what_is_left_behind_is_harmless(copy: Path, name: str) -> None:
    command, file, mode, kind = SHELL[name]
    got = sandbox.run_in_checkout(copy, ["sh", "-c", command], SHORT)
    assert got.exit_code == 0, got.output
    assert got.left_out == ({kind: 1} if kind else {})
    if file:
        assert stat.S_IMODE((copy / file).stat().st_mode) == mode
    for path in copy.rglob("*"):
        assert not path.lstat().st_mode & 0o7000
        assert path.is_file() or path.is_dir()


def test_links_times_and_names_that_are_no_text_stay_as_they_are(copy: Path) -> None:
    os.utime(copy / "it.py", ns=(5_000_000_007, 5_000_000_007))
    (copy / "d").mkdir()
    (copy / "d" / "up").symlink_to("../it.py")
    make = "ln -s d/up l; ln it.py hard; mkdir -p e/f; printf x > \"$(printf 'a\\377')\"; rm test_it.py; chmod 755 e/f"
    got = sandbox.run_in_checkout(copy, ["sh", "-c", make], SHORT)
    assert (got.exit_code, got.left_out) == (0, {})
    assert (copy / "it.py").stat().st_mtime_ns == 5_000_000_007
    assert ((copy / "l").readlink(), (copy / "d" / "up").readlink()) == (Path("d/up"), Path("../it.py"))
    assert (copy / "hard").stat().st_nlink == 1
    assert os.fsdecode(b"a\xff") in {path.name for path in copy.iterdir()}
    assert not (copy / "test_it.py").exists()


SMALL = sandbox.Limits(
    wall_s=20, memory_bytes=1 << 30, open_files=256, file_bytes=1 << 20, disk_bytes=4 << 20, disk_files=300
)


@pytest.mark.parametrize(("program", "stopped"), [
    ("for n in range(20): open(f'/checkout/{n}', 'wb').write(bytes(1 << 20))", None),
    ("for n in range(20): open(f'/tmp/{n}', 'wb').write(bytes(1 << 20))", None),
    ("for n in range(20): open(f'/dev/shm/{n}', 'wb').write(bytes(1 << 20))", None),
    ("open('/dev/x', 'wb')", None),
    ("open('/x', 'wb')", None),
    ("open('/original/x', 'wb')", None),
    ("import time\nfor n in range(400): open(str(n), 'w')\ntime.sleep(9)", "disk"),
    ("import time\nfor n in range(400): open(f'/tmp/{n}', 'w')\ntime.sleep(9)", "disk"),
    ("for n in range(400): open(str(n), 'w')", "disk"),
    ("for n in range(9): open(str(n), 'wb').truncate(1 << 20)", "disk"),
    ("import os\nopen('big', 'wb').write(bytes(1 << 20))\nfor n in range(9): os.link('big', str(n))", "disk"),
    ("import os\nfor n in range(200): os.mkdir('d'); os.chdir('d')", "disk"),
])  # fmt: skip
def test_no_command_writes_without_bound(copy: Path, program: str, stopped: str | None) -> None:
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    got = ran(copy, program, SMALL)
    assert got.stopped == stopped
    if stopped is None:
        assert got.exit_code == 1
        assert "No space left" in got.output or "Read-only" in got.output
    else:
        assert {path.name: path.read_bytes() for path in copy.iterdir()} == before
    assert sum(path.stat().st_size for path in copy.rglob("*")) <= SMALL.disk_bytes


def test_a_checkout_larger_than_the_limit_is_told(copy: Path) -> None:
    (copy / "big").write_bytes(bytes(5 << 20))
    with pytest.raises(SandboxError, match=r"checkout: .*No space left"):
        ran(copy, "", SMALL)
    assert (copy / "big").stat().st_size == 5 << 20


def test_a_program_that_is_not_there_is_told_as_shells_do(copy: Path) -> None:
    got = sandbox.run_in_checkout(copy, ["no-such-program"], SHORT)
    assert (got.exit_code, got.output) == (127, "no-such-program: No such file or directory\n")


def test_an_argument_is_never_read_by_a_shell(copy: Path) -> None:
    assert sandbox.run_in_checkout(copy, ["echo", "$(touch mark); `touch mark`"], SHORT).exit_code == 0
    assert not (copy / "mark").exists()


def test_nothing_outside_is_there(copy: Path) -> None:
    (copy.parent / "secret").write_text("x", "utf-8")
    ours = Path(sandbox.__file__).parent
    for place in (copy.parent / "secret", Path("/etc/passwd"), ours / "calling.py", ours.parent / "errors.py"):
        got = ran(copy, f"open({str(place)!r})")
        assert "FileNotFoundError" in got.output, place
    assert ran(copy, "open('/usr/mark', 'w')").exit_code == 1
    assert "ModuleNotFoundError" in ran(copy, "import msgspec").output


def test_what_is_named_can_be_read_and_not_written(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("some", "utf-8")
    place = str(tmp_path / "data")
    told = [PYTHON, "-c", f"print(open({place!r}).read()); open({place!r}, 'w')"]
    got = sandbox.run_in_checkout(copy, told, SHORT, readable=[tmp_path / "data"])
    assert "some\n" in got.output and "Read-only file system" in got.output


def test_there_is_no_network(copy: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        got = ran(copy, f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)")
    assert "ConnectionRefusedError" in got.output or "unreachable" in got.output


def test_processes_of_others_are_not_there(copy: Path) -> None:
    got = ran(copy, "import os; print(max(int(p) for p in os.listdir('/proc') if p.isdigit()) < 50)")
    assert got.output == "True\n"


def test_there_can_be_so_many_processes(copy: Path) -> None:
    if not {"cgroup", "nproc"} & set(ran(copy, "").layers):
        pytest.skip("root without a control group of its own: nothing limits processes here")
    bomb = (
        "import os,time\nn = 0\ntry:\n  while n < 500:\n    if os.fork() == 0: time.sleep(20); os._exit(0)\n"
        "    n += 1\nexcept OSError: print(n < 20)"
    )
    assert ran(copy, bomb).output == "True\n"


def test_what_it_leaves_running_ends_with_it(copy: Path) -> None:
    daemon = "import os,time\nif os.fork() == 0:\n  os.setsid(); time.sleep(0.5); open('late', 'w'); os._exit(0)"
    assert ran(copy, daemon).exit_code == 0
    time.sleep(0.9)
    assert not (copy / "late").exists()


@pytest.mark.parametrize(
    ("program", "limits", "stopped"),
    [
        ("import time; time.sleep(60)", sandbox.Limits(wall_s=1), "timeout"),
        ("while 1: print('x' * 1000)", sandbox.Limits(wall_s=20), "output"),
    ],
)
def test_what_takes_too_much_is_stopped(copy: Path, program: str, limits: sandbox.Limits, stopped: str) -> None:
    got = ran(copy, program, limits)
    assert (got.exit_code, got.stopped) == (None, stopped)


@pytest.mark.parametrize("call", ["unshare(0x10000000)", "mount(b'x', b'/tmp', b'tmpfs', 0, 0)", "ptrace(0, 0, 0, 0)"])
def test_the_kernel_s_sharp_ends_are_shut(copy: Path, call: str) -> None:
    got = ran(copy, f"import ctypes; c = ctypes.CDLL(None, use_errno=True); print(c.{call}, ctypes.get_errno())")
    assert got.output == "-1 1\n"


def test_no_folder_and_no_command_are_told(copy: Path) -> None:
    for folder, argv in ((copy / "none", ["true"]), (copy, [])):
        with pytest.raises(SandboxError, match="nothing to run"):
            sandbox.run_in_checkout(folder, argv)


def test_a_copy_that_is_still_being_changed_is_taken_back(copy: Path) -> None:
    daemon = "import os\nif os.fork() == 0:\n  os.setsid()\n  while 1:\n    os.mkdir('d')\n    os.rmdir('d')"
    for _ in range(3):
        assert ran(copy, daemon).exit_code == 0
        assert (copy / "it.py").is_file()
