"""Runs code nobody has read, a model's answer, in bubblewrap. Values come out, nothing else.

`call(source, function, inputs)` answers with a value or a failure for each input; `same` compares it with what is
expected, here and not there. What locks a process in, and what does not, stands in docs/sandbox.md: a file system of
what is needed and nothing else, no network, ids and processes of its own; then resource limits, no powers of root, and
a filter of system calls. Source: bwrap(1), 0.8.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import select
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from agentsignals import private_files
from agentsignals.errors import SandboxError
from msgspec import Struct

from agentsignals_lab.sandbox import filters, inside

FailureKind = Literal[
    "syntax",
    "missing_function",
    "raised",
    "memory",
    "timeout",
    "killed",
    "exited",
    "not_plain",
    "too_large",
    "protocol",
    "not_reached",
]
"""`raised` an exception; `timeout` of wall or CPU time; `killed` by a signal (a crash); `exited` without an answer;
`not_plain` answered with an object that is no data, `too_large` with too much of it; `protocol` broke the pipe of
answers; `not_reached` an earlier call ended the process."""


class Limits(Struct, frozen=True, gc=False, kw_only=True):
    """Limits of one run. Wall time counts from when the code starts, not from when the process does."""

    cpu_s: int = 2
    wall_s: float = 5.0
    memory_bytes: int = 512 << 20
    file_bytes: int = 1 << 20
    disk_bytes: int = 16 << 20
    open_files: int = 32
    result_bytes: int = 4 << 20


class Returned(Struct, frozen=True):
    """The function gave this value: plain data, rebuilt on our side. It may hold any character, see `shown`."""

    value: Any


class Failed(Struct, frozen=True, gc=False):
    """No value. `where`: while the source was loaded, in the call, or the process. `line` is the source's own."""

    kind: FailureKind
    message: str = ""
    type: str = ""
    where: Literal["load", "call", "process"] = "call"
    line: int | None = None

    def __str__(self) -> str:
        return ": ".join(part for part in (self.type or self.kind, self.message) if part)


Result = Returned | Failed


class Outcome(Struct, frozen=True):
    """One process's answers: as many results as there were inputs, in their order."""

    results: tuple[Result, ...]
    wall_s: float
    """Seconds of the code alone."""


# -- values compared by structure: no `==` of anybody else's is called

MOST_SHOWN_CHARS = 200


def same(actual: Any, expected: Any, *, sequences_alike: bool = False, numbers_alike: bool = False) -> bool:
    """Equal in type and content, all the way down: True is not 1, a tuple is no list, NaN is nothing's equal.

    Args:
        actual: a value that came out of the sandbox.
        expected: our own.
        sequences_alike: a tuple passes for a list and the other way round.
        numbers_alike: 1 and 1.0 are the same; True still is neither.

    Raises:
        SandboxError: what is expected is no plain data, so no answer could ever be right.
    """
    text = _Canonical(sequences_alike, numbers_alike).text
    try:
        ours = inside.encode(expected)
    except inside.Refused as refused:
        raise SandboxError(
            f"Nothing can be the same: {refused.message}.", "Expect plain data: numbers, texts, lists, mappings."
        ) from None
    try:
        return text(inside.encode(actual)) == text(ours)
    except (inside.Refused, _NoEqual):
        return False


def shown(value: Any, most_chars: int = MOST_SHOWN_CHARS) -> str:
    """The value as Python writes it, cut, every character one that can be stored and printed."""
    text = repr(value)
    text = text if len(text) <= most_chars else text[: most_chars - 1] + "…"
    return text.encode("utf-8", "backslashreplace").decode()


class _NoEqual(Exception):
    """A NaN is in it."""


class _Canonical(NamedTuple):
    """Writes a value so that equal ones give one text, whatever the order of their sets and mappings."""

    sequences_alike: bool
    numbers_alike: bool

    def text(self, form: Any) -> str:
        if type(form) is float:
            return str(int(form)) if self.numbers_alike and form.is_integer() else repr(form + 0.0)  # -0.0 is 0.0
        if type(form) is list:
            return f"[{','.join(map(self.text, form))}]"
        if type(form) is not dict:
            return json.dumps(form)
        [(tag, inner)] = form.items()
        return self._tagged(tag, inner)

    def _tagged(self, tag: str, inner: Any) -> str:
        if tag == "tuple":
            return self.text(inner) if self.sequences_alike else f"({','.join(map(self.text, inner))})"
        if tag in ("set", "frozenset"):
            return f"{tag}{sorted(map(self.text, inner))}"
        if tag == "dict":
            return f"dict{sorted((self.text(key), self.text(value)) for key, value in inner)}"
        if tag in ("float", "complex") and "nan" in str(inner):
            raise _NoEqual
        return f"{tag}:{inner!r}"


# -- the process: whatever it does, this returns

START_S = 20.0
"""Until the process says it has locked itself in. A machine that needs longer has a problem of its own."""
EXIT_GRACE_S = 1.0
DONE = b'{"done": true}\n'
CHUNK = 1 << 16


class Ended(Struct, frozen=True):
    """A process that is gone."""

    frames: bytes
    """Its answers, a line each."""
    stopped: Failed | None
    """Why we ended it."""
    exit_code: int
    """Minus the signal of one that was killed."""
    wall_s: float


def run(limits: Limits, **code: Any) -> Ended:
    """Runs the inside under bubblewrap with some code, and leaves nothing of it. SandboxError when it can't be started,
    or a lock is not on: nothing was run then."""
    here = Path(__file__).resolve().parent
    argv = [*computing(limits), "--", executable(), *FLAGS, "-c", BOOT, str(here.parent), str(here)]
    results, pipe = os.pipe()
    try:
        with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as printed:
            asked.write(json.dumps({"pipe": pipe, "locks": locks(limits), **code}).encode())
            asked.seek(0)
            try:
                process = subprocess.Popen(  # noqa: S603 - our own program, no shell
                    argv,
                    stdin=asked,
                    stdout=printed,
                    stderr=printed,
                    env={"PYTHONHASHSEED": "0", "LANG": "C.UTF-8", "HOME": HOME, "TMPDIR": HOME},
                    pass_fds=(pipe,),
                    start_new_session=True,
                    umask=private_files.persons_umask(),  # its tests find the modes they expect
                )
            except OSError as error:
                raise SandboxError(
                    f"{argv[0]} can't be started: {error}", "See docs/sandbox.md for what it needs."
                ) from error
            try:
                os.close(pipe)
                pipe = -1
                frames, stopped, wall_s = _watched(results, limits)
                if stopped is None:
                    _wait_a_little(process.pid)
            finally:
                # Before the wait: while it is not waited for, its id (and so its group's) can't be somebody else's.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                exit_code = process.wait()
            printed.seek(0)
            said = printed.read(CHUNK).decode("utf-8", "replace")  # before the code ran: why it did not start
    finally:
        os.close(results)
        if pipe >= 0:
            os.close(pipe)
    try:
        frame = inside.loads(frames.partition(b"\n")[0])  # said before the code could run
    except inside.Refused:
        frame = {}
    if "ready" not in frame:
        reasons = frame.get("not_ready", {})
        why = "; ".join(f"{name}: {reason}" for name, reason in reasons.items()) or said.strip()[-500:]
        raise SandboxError(
            f"The sandbox could not be closed, so nothing was run: {why or 'its process did not start'}.",
            "See docs/sandbox.md for what it needs.",
        )
    return Ended(frames, stopped, exit_code, wall_s)


def _watched(results: int, limits: Limits) -> tuple[bytes, Failed | None, float]:
    """Read answers until it is done, has closed its pipe, or took too much; and the seconds that its code had."""
    frames, begun, started = bytearray(), False, time.monotonic()
    deadline = started + START_S
    stopped: Failed | None = None
    poll = select.poll()
    poll.register(results, select.POLLIN)
    while not frames.endswith(DONE):
        if not poll.poll(1000 * max(0.0, deadline - time.monotonic())):
            stopped = Failed("timeout", f"took longer than {limits.wall_s:g} s", where="process")
            break
        if not (chunk := os.read(results, CHUNK)):
            break
        frames += chunk
        if len(frames) > limits.result_bytes:
            stopped = Failed("protocol", f"answered more than {limits.result_bytes} bytes", where="process")
            break
        if not begun and b"\n" in chunk:
            begun, started = True, time.monotonic()
            deadline = started + limits.wall_s
    return bytes(frames), stopped, time.monotonic() - started


def _wait_a_little(pid: int) -> None:
    """For a process that is done, or closed its pipe, which most do by ending; only then is its exit code its own."""
    deadline = time.monotonic() + EXIT_GRACE_S
    while hasattr(os, "waitid") and time.monotonic() < deadline:  # macOS has none
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return
        time.sleep(0.002)


# -- what locks it in

TIER = "strict"
"""The one way that model-written code runs, as manifests and rows name it."""
APART = ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox")
HOME = "/tmp"  # noqa: S108 - inside, a file system of its own

PACKAGES = ("site-packages", "dist-packages")
DATA = ("/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo", "/usr/lib/locale", "/dev/urandom")
LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")

FLAGS = ("-P", "-s", "-S", "-B")
"""No script's folder, no user's and no installed packages, no bytecode written. Not -I, which would also ignore the
one setting we make: a hash seed, so that the order of a set is the same on every run."""
BOOT = (
    "import sys,types\n"
    "for name,folder in zip(('agentsignals_lab','agentsignals_lab.sandbox'),sys.argv[1:]):\n"
    " module=sys.modules[name]=types.ModuleType(name);module.__path__=[folder]\n"
    "from agentsignals_lab.sandbox.inside import main\n"
    "main()"
)
"""Imports the inside without the packages around it, which need libraries that are not to be readable."""


@cache
def missing() -> str:
    """Return why this machine has no sandbox; empty: it has. Tried once in the life of this process."""
    if sys.platform != "linux" or platform.machine() not in filters.ARCHITECTURES:
        return f"there is none for {sys.platform} on {platform.machine()}"
    if shutil.which("bwrap") is None:
        return "bwrap is not installed"
    try:
        run(Limits(), source=None)
    except SandboxError as error:
        return error.message
    return ""


def require() -> None:
    """Raises SandboxError where there is no sandbox: nothing is run in less."""
    if why := missing():
        raise SandboxError(
            f"Model-written code runs in bubblewrap only, and {why}.",
            "Install it (apt install bubblewrap), and allow user namespaces: docs/sandbox.md.",
        )


def locks(limits: Limits) -> dict[str, Any]:
    """Return what the process puts on itself, by name; bubblewrap takes its capabilities, and ends it with us."""
    return {
        "rlimits": {
            "RLIMIT_CPU": limits.cpu_s,
            "RLIMIT_AS": limits.memory_bytes,
            "RLIMIT_FSIZE": limits.file_bytes,
            "RLIMIT_NOFILE": limits.open_files,
            "RLIMIT_CORE": 0,
        },
        "seccomp": filters.computing(platform.machine()),
    }


def computing(limits: Limits) -> list[str]:
    """A bare Python, devices, and a small folder in memory.

    That folder comes before what may lie in the real one, such as this package. The seal comes last: the root and the
    devices are file systems in memory, too, as large as half of the machine's.
    """
    begun = [shutil.which("bwrap") or "bwrap", *APART, "--size", str(limits.disk_bytes), "--tmpfs", HOME]
    return [*begun, *_python(), "--dev", "/dev", "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", HOME]


@cache
def executable() -> str:
    """The interpreter itself, outside of any virtual environment."""
    return str(Path(getattr(sys, "_base_executable", "") or sys.executable).resolve())


@cache
def _python() -> list[str]:
    """A bare Python, where it also is outside, and the inside of this package; without any installed package, and
    without the rest of this one, which knows what is expected."""
    library = Path(sysconfig.get_path("stdlib")).resolve()
    system = [Path(root) for root in (*LIBRARIES, "/usr/local/lib", "/usr/local/lib64")]
    installed = [library / name for name in PACKAGES]
    installed += [path for root in system for name in PACKAGES for path in root.glob(f"python3*/{name}")]
    of_machine = f"{platform.machine()}-linux-gnu"
    folders = [str(library), *(str(p) for root in LIBRARIES if (p := Path(root) / of_machine).is_dir())]
    loose = [root for root in map(Path, LIBRARIES) if root.is_dir()] + [Path(sys.base_prefix).resolve() / "lib"]
    files = sorted({str(file) for folder in loose for file in folder.glob("*.so*") if file.is_file()})
    here = Path(__file__).resolve().parent
    hidden = [*dict.fromkeys(str(path.resolve()) for path in installed if path.is_dir()), str(here.parent)]
    return [
        *_read_only(folders),
        *(word for folder in hidden for word in ("--tmpfs", folder)),
        *_read_only([str(here / "inside.py")]),
        *(word for folder in hidden for word in ("--remount-ro", folder)),
        *_read_only([executable(), *files, *DATA]),
    ]


def _read_only(paths: Iterable[str]) -> list[str]:
    """These paths, where they are there."""
    return [argument for path in paths for argument in ("--ro-bind-try", path, path)]


# -- a function called in it

FROM_INSIDE = frozenset(get_args(FailureKind)) - {"timeout", "killed", "exited", "not_reached"}
"""The kinds a process may say of itself."""
NOT_REACHED = Failed("not_reached", "an earlier call ended the process", where="process")


def call(source: str, function: str, inputs: Sequence[tuple[Any, ...]], limits: Limits | None = None) -> Outcome:
    """Loads untrusted source in a process of its own and calls one of its functions with each of the inputs.

    Args:
        source: a whole Python module; imports of the standard library work.
        function: its name.
        inputs: the arguments of each call, plain data. Never what is expected: compare with `same` here, outside.
        limits: for all calls together.

    Raises:
        SandboxError: there is no sandbox here, the inputs are no plain data, or the process could not be locked.
    """
    limits = limits or Limits()
    require()
    try:
        forms = [inside.encode(tuple(arguments)) for arguments in inputs]
    except inside.Refused as refused:
        raise SandboxError(
            f"An input can't be handed over: {refused.message}.", "Give plain data: numbers, texts, lists, mappings."
        ) from None
    ended = run(limits, source=source, function=function, inputs=forms)
    results = _answers(ended.frames.split(b"\n")[1:-1], len(forms))
    if len(results) < len(forms):
        results.append(ended.stopped or _exit(ended, limits))
        results += [NOT_REACHED] * (len(forms) - len(results))
    return Outcome(tuple(results), round(ended.wall_s, 4))


def _answers(lines: list[bytes], n: int) -> list[Result]:
    """Return the answers there are; a failure for each where nothing could be run, or the code tampered with the
    pipe."""
    results: list[Result] = []
    try:
        for line in lines:
            frame = inside.loads(line)
            if type(frame) is not dict:
                raise inside.Refused("protocol", "an answer of no known kind")
            if "load" in frame and not results:
                return [_failed(frame["load"], "load")] * n
            if frame == {"done": True} and len(results) == n:
                break  # the last word; what may follow it is not read
            if type(frame.get("at")) is not int or frame["at"] != len(results) or len(results) >= n:
                raise inside.Refused("protocol", "answers out of order")
            if "failed" in frame:
                results.append(_failed(frame["failed"], "call"))
            elif "value" in frame:
                results.append(Returned(inside.decode(frame["value"])))
            else:
                raise inside.Refused("protocol", "an answer without a value")
    except inside.Refused as refused:
        return [Failed("protocol", refused.message, where="process")] * n
    return results


def _failed(frame: Any, where: Any) -> Failed:
    """Its texts may be forged, and may hold anything."""
    if type(frame) is not dict or frame.get("kind") not in FROM_INSIDE:
        raise inside.Refused("protocol", "a failure of no known kind")
    line = frame.get("line")
    return Failed(
        frame["kind"],
        printable(frame.get("message"), 500),
        printable(frame.get("type"), 200),
        where,
        line if type(line) is int and 0 < line < 1 << 31 else None,
    )


def printable(value: Any, most_chars: int) -> str:
    """Text that untrusted code chose: cut, and whatever a terminal may act on, or no file takes, written out."""
    if type(value) is not str:
        return ""
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in value[:most_chars])


def _exit(ended: Ended, limits: Limits) -> Failed:
    """Return the reason why the process ended in the middle of a call."""
    code = ended.exit_code
    number = code - 128 if code > 128 else -code  # bubblewrap tells a signal as shells do
    if number == signal.SIGXCPU or (number == signal.SIGKILL and ended.wall_s >= limits.cpu_s):
        return Failed("timeout", f"took more than {limits.cpu_s} s of CPU time", where="process")
    if number > 0:
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        return Failed("killed", f"ended by {name}", where="process")
    return Failed("exited", f"left with code {code} before it answered", where="process")
