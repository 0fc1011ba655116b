"""Everything tried against the sandbox: by the audit (29 and 4 controls), and by us. Each defines `f`, called with 2."""

# ruff: noqa: E501 - a table of programs, each on its line

from __future__ import annotations

import platform

from agentsignals_lab.sandbox import Limits
from agentsignals_lab.sandbox.filters import numbers
from tests.sandbox.world import Attack

DENIED = frozenset({"PermissionError", "FileNotFoundError", "OSError"})
SLOW = frozenset({"timeout"})
OURS = ["HOME", "LANG", "PYTHONHASHSEED", "TMPDIR"]
BRIEF = Limits(cpu_s=1, wall_s=1.5)

CALL = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def syscall(*arguments):
    ctypes.set_errno(0)
    got = libc.syscall(*(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))
    if got < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return got
"""

NEVER = """
ptrace 101 117, process_vm_readv 310 270, process_vm_writev 311 271, pidfd_getfd 438 438, process_madvise 440 440,
kcmp 312 272, mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51, unshare 272 97, setns 308 268,
move_mount 429 429, open_tree 428 428, fsopen 430 430, fsconfig 431 431, fsmount 432 432, fspick 433 433,
mount_setattr 442 442, keyctl 250 219, add_key 248 217, request_key 249 218, bpf 321 280, perf_event_open 298 241,
userfaultfd 323 282, io_uring_setup 425 425, io_uring_enter 426 426, io_uring_register 427 427, kexec_load 246 104,
kexec_file_load 320 294, init_module 175 105, finit_module 313 273, delete_module 176 106, reboot 169 142,
swapon 167 224, swapoff 168 225, open_by_handle_at 304 265, name_to_handle_at 303 264, quotactl 179 60, syslog 103 116,
acct 163 89, settimeofday 164 170, clock_settime 227 112, clock_adjtime 305 266, adjtimex 159 171, sethostname 170 161,
setdomainname 171 162, iopl 172 -, ioperm 173 -, personality 135 92, fanotify_init 300 262, lookup_dcookie 212 18,
mbind 237 235, move_pages 279 239, migrate_pages 256 238, set_mempolicy 238 237, vhangup 153 58, nfsservctl 180 42,
uselib 134 -
"""
"""System calls where kernels have had their holes."""
_NUMBERS = numbers(NEVER, platform.machine()) if platform.machine() in ("x86_64", "aarch64") else {}


def _attack(name: str, body: str, refused: frozenset[str] | str = DENIED, weak: bool = False, **more: Limits) -> Attack:
    """A body of indented lines is the function's; other source stands as it is."""
    source = f"def f(x):\n{body}" if body.startswith(" ") else body
    return Attack(name, source, frozenset({refused}) if isinstance(refused, str) else refused, weak, **more)


# The pipe of answers has whatever number was free in the process that started it: beyond 32 where many files are open.
LIES = [
    _attack("an object equal to everything", " class Any:\n  __eq__ = lambda s, o: True\n return Any()", "not_plain"),
    _attack("a number equal to everything", " class I(int):\n  __eq__ = lambda s, o: True\n return I()", "not_plain"),
    _attack("a text that calls itself str", " class S:\n  __class__ = str\n return S()", "not_plain"),
    _attack("a list that lies about its length", " class L(list):\n  __len__ = lambda s: 1\n return L()", "not_plain"),
    _attack("an object with a trap in __reduce__", " class R:\n  __reduce__ = lambda s: (print, ())\n return R()", "not_plain"),
    _attack("a class whose name lies", " class M(type):\n  __name__ = property(lambda s: 1 / 0)\n return M('x', (), {})()", "not_plain"),
    _attack(
        "the expected value in a caller's frame",
        " import sys\n frame = sys._getframe()\n while frame:\n  for v in [*frame.f_locals.values(), *frame.f_globals.values()]:\n"
        "   if 'can' + 'ary-' in repr(v): return 'reached'\n  frame = frame.f_back\n raise LookupError",
        "LookupError",
    ),
    _attack(
        "the expected value among all objects",
        " import gc\n needle = ''.join(['can', 'ary-'])\n for o in gc.get_objects():\n  for v in (o.values() if type(o) is dict else o if type(o) in (list, tuple) else ()):\n"
        "   if type(v) is str and v.startswith(needle) and len(v) > 8: return v\n raise LookupError",
        "LookupError",
    ),
    _attack(
        "the expected value in memory",
        " import re\n needle = b'can' + b'ary-'\n maps = open('/proc/self/maps').read()\n memory = open('/proc/self/mem', 'rb', 0)\n"
        " for line in maps.splitlines():\n  if ' rw' not in line: continue\n  low, high = (int(p, 16) for p in line.split()[0].split('-'))\n"
        "  memory.seek(low)\n  found = re.search(needle + rb'[0-9]+-[0-9]+', memory.read(high - low))\n  if found: return found[0].decode()\n raise LookupError",
        DENIED | {"LookupError"},
    ),
    _attack("patched builtins", "import builtins\nbuiltins.type = lambda *a: int\nbuiltins.repr = str\ndef f(x): return object()", "int"),
    _attack("patched json", "import json\njson.dumps = lambda m, **k: '{\"equal\": true}'\ndef f(x): return x", "protocol"),
    _attack("sys.exit at import", "import sys\nsys.exit(0)", "SystemExit"),
    _attack("os._exit at import", "import os\nos._exit(0)", "exited"),
    _attack("os._exit in the call", " import os\n os._exit(0)", "exited"),
    _attack("forged answers", "import os\nfor n in range(3, 4096):\n try: os.write(n, b'{\"at\": 0, \"pass\": true}\\n')\n except OSError: pass\ndef f(x): return x", "protocol"),
    _attack("two answers to one call", "import os\nfor n in range(3, 4096):\n try: os.write(n, b'{\"at\": 0, \"value\": 1}\\n')\n except OSError: pass\ndef f(x): return x", "protocol"),
    _attack("done before it began", "import os\nfor n in range(3, 4096):\n try: os.write(n, b'{\"done\": true}\\n')\n except OSError: pass\ndef f(x): return x", "protocol"),
    _attack("a closed pipe of answers", " import os, time\n os.closerange(3, 4096)\n time.sleep(60)", "killed"),
    _attack("an answer after the time is up", "import signal, time\ndef f(x):\n signal.signal(signal.SIGXCPU, signal.SIG_IGN)\n time.sleep(4)\n return 'reached'", SLOW, limits=BRIEF),
    _attack("a timer that goes off in our code", "import signal\ndef f(x):\n signal.signal(signal.SIGALRM, lambda *a: 1 / 0)\n signal.setitimer(signal.ITIMER_REAL, 1e-6)\n while 1: pass", "ZeroDivisionError"),
    _attack("an exception that will not be told", " class E(Exception):\n  __str__ = lambda s: 1 / 0\n raise E", "E"),
    _attack("an exception told without end", " class E(Exception):\n  def __str__(s):\n   while 1: pass\n raise E", SLOW, limits=BRIEF),
]  # fmt: skip

SIZES = [
    _attack("a loop without end", " while 1: pass", SLOW, limits=BRIEF),
    _attack("a loop that ignores every signal", "import signal\nfor s in range(1, 65):\n try: signal.signal(s, signal.SIG_IGN)\n except (OSError, ValueError): pass\ndef f(x):\n while 1: pass", SLOW, limits=BRIEF),
    _attack("a long sleep", " import time\n time.sleep(60)", SLOW, limits=BRIEF),
    _attack("four gigabytes", " return len(bytearray(4 << 30))", "MemoryError"),
    _attack("a file of 64 MiB", " with open('big', 'wb') as file:\n  for n in range(64): file.write(b'x' * (1 << 20)); file.flush()\n return 'reached'", "OSError"),
    _attack("a thousand files of 1 MiB", " import time\n for n in range(1000):\n  with open(f'n{n}', 'wb') as file: file.write(b'x' * 1000000)\n time.sleep(1)\n return 'reached'", "OSError"),
    _attack("a flood of print", " while 1: print('x' * 10000)", SLOW, limits=BRIEF),
    _attack("a flood on the pipe of answers", " import os\n while 1:\n  for n in range(3, 4096):\n   try: os.write(n, b'x' * 60000)\n   except OSError: pass", frozenset({"protocol", "timeout"})),
    _attack("a million items", " return list(range(1000000))", "too_large"),
    _attack("a string of 300 MB", " return 'x' * 300_000_000", "too_large"),
    _attack("a number of a million digits", " return 1 << 3_400_000", "too_large"),
    _attack("a result that holds itself", " a = []\n a.append(a)\n return a", "too_large"),
    _attack("a result of shared halves", " a = []\n for n in range(60): a = [a, a]\n return a", "too_large"),
    _attack("a result nested 100 000 deep", " a = []\n for n in range(100000): a = [a]\n return a", "too_large"),
    _attack("recursion to the end of the stack", "import sys\nsys.setrecursionlimit(10**9)\ndef f(x): return f(x) + 1", frozenset({"killed", "MemoryError", "timeout"})),
    _attack("a segfault", " import ctypes\n ctypes.string_at(0)", "killed"),
    _attack("source nested 100 000 deep", "(" * 100_000, frozenset({"SyntaxError", "MemoryError", "RecursionError"})),
    _attack("source with a null byte", "x = 1\0", frozenset({"ValueError", "SyntaxError"})),
    _attack("more limit than the limit", " import resource\n resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))\n return 'reached'", frozenset({"ValueError", "PermissionError", "OSError"})),
]  # fmt: skip

FILES = [
    _attack("a file outside", " open('$MARK', 'w').write('x')", weak=True),
    _attack("reading the system's users", " open('/etc/passwd').read()\n return 'reached'", weak=True),
    _attack("reading a secret", " return open('$SECRET').read() and 'reached'", weak=True),
    _attack("listing a folder", " import os\n return os.listdir('$FOLDER') and 'reached'", weak=True),
    _attack("reading this package", " import sys, os\n import agentsignals_lab\n open(agentsignals_lab.__path__[0] + '/verbs.py').read()\n return 'reached'", weak=True),
    _attack("listing installed packages", " import os\n return os.listdir(os.path.dirname(os.__file__) + '/site-packages') and 'reached'", DENIED | {"value []"}),
    _attack("importing an installed package", " import msgspec\n return 'reached'", "ModuleNotFoundError"),
    _attack("a link to a secret", " import os\n os.symlink('$SECRET', 'link')\n return open('link').read() and 'reached'", weak=True),
    _attack("a second name of a secret", " import os\n os.link('$SECRET', 'name')\n return open('name').read() and 'reached'", weak=True),
    _attack("moving a secret", " import os\n os.rename('$SECRET', '$MARK')", weak=True),
    _attack("emptying a secret", " import os\n os.truncate('$SECRET', 0)\n return 'reached'", weak=True),
    _attack("permissions of a secret", " import os\n os.chmod('$SECRET', 0o644)\n return 'reached'", weak=True),
    _attack("times of a secret", " import os\n os.utime('$SECRET', (1, 1))\n return 'reached'", weak=True),
    _attack("owner of a secret", " import os\n os.chown('$SECRET', os.getuid(), os.getgid())\n return 'reached'", weak=True),
    _attack("attributes of a secret", " import os\n os.setxattr('$SECRET', 'user.x', b'1')\n return 'reached'"),
    _attack("emptying Python's own library", " import os\n os.close(os.open(os.__file__, os.O_WRONLY))\n return 'reached'"),
    _attack("a folder in the folder", " import os\n os.mkdir('inner')\n return 'reached'", weak=True),
    _attack("a device", " import os\n os.mknod('device', 0o600 | 0o060000, os.makedev(8, 0))\n return 'reached'"),
    _attack("the parent's environment", " open('/proc/$PID/environ').read()\n return 'reached'", weak=True),
    _attack("the parent's memory", " open('/proc/$PID/mem', 'rb').read(0)\n return 'reached'"),
    _attack("its own memory", " open('/proc/self/mem', 'r+b').read(0)\n return 'reached'", weak=True),
    _attack("a module put beside it", "open('colorsys.py', 'w').write('rgb = 1')\ndef f(x):\n import colorsys\n return colorsys.rgb and 'reached'", "AttributeError"),
    _attack("files inherited from the parent", " import os\n n = 0\n for d in range(256):\n  try: os.fstat(d); n += 1\n  except OSError: pass\n return 'reached' if n > 4 else n", "value 4"),
    _attack("the request on standard input", " import os\n os.lseek(0, 0, 0)\n return os.read(0, 10) and 'reached'", "value b''"),
    _attack("an environment that leaks", " import os\n return sorted(os.environ)", frozenset(f"value {names}" for names in (OURS, [*OURS[:2], "PWD", *OURS[2:]]))),
]  # fmt: skip

PROCESSES = [
    _attack("a shell command", " import os\n os.system('touch $MARK')\n raise LookupError", "LookupError", weak=True),
    _attack("a program", " import subprocess\n subprocess.run(['/usr/bin/touch', '$MARK'])", weak=True),
    _attack("a program in place of this one", " import os\n os.execv('/usr/bin/touch', ['touch', '$MARK'])", weak=True),
    _attack("a program by posix_spawn", " import os\n os.posix_spawn('/bin/sh', ['sh', '-c', 'touch $MARK'], {})\n raise LookupError", DENIED | {"LookupError"}),
    _attack("a program from memory", " import os\n fd = os.memfd_create('x')\n return 'reached'", weak=True),
    _attack("forty forks", " import os\n for n in range(40):\n  if os.fork() == 0: os._exit(0)\n return 'reached'", weak=True),
    _attack("a daemon that writes later", " import os, time\n if os.fork() == 0:\n  os.setsid(); time.sleep(0.7); open('$MARK', 'w'); os._exit(0)\n time.sleep(0.3)\n return 2", weak=True),
    _attack("another session", " import os\n os.setpgid(0, 0)\n return 'reached'"),
    _attack("a signal to the parent", " import os, signal\n os.kill($PID, 0)\n return 'reached'", DENIED | {"ProcessLookupError"}, weak=True),
    _attack("a signal to everybody", " import os, signal\n os.kill(-1, 0)\n return 'reached'", DENIED | {"ProcessLookupError"}),
    _attack("a signal by way of a file", " import fcntl, os\n r, w = os.pipe()\n fcntl.fcntl(r, fcntl.F_SETOWN, $PID)\n return 'reached'", weak=True),
    _attack("life after the parent", CALL + "def f(x):\n if libc.prctl(1, 0, 0, 0, 0) == 0: return 'reached'\n raise OSError", weak=True),
    _attack("privileges", " import os\n os.setuid(1234)\n return 'reached'"),
    _attack("a namespace of users", CALL + "def f(x):\n if libc.unshare(0x10000000) == 0: return 'reached'\n raise OSError", weak=True),
    _attack("clone3", CALL + "def f(x):\n syscall(435, ctypes.create_string_buffer(88), 88)\n return 'reached'", "OSError"),
    _attack("calls of the 32-bit kind", CALL + "def f(x):\n syscall(0x40000000 + 39)\n return 'reached'", "OSError"),
]  # fmt: skip

NETWORK = [
    _attack("a local server", " import socket\n socket.create_connection(('127.0.0.1', $PORT), 6)", weak=True),
    _attack("a socket of datagrams", " import socket\n socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n return 'reached'", weak=True),
    _attack("a pair of datagram sockets", " import socket\n socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n return 'reached'", weak=True),
    _attack("netlink", " import socket\n socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)\n return 'reached'", weak=True),
]  # fmt: skip

CALLS = [
    _attack(f"the system call {name}", f"{CALL}def f(x):\n syscall({number}, 0, 0, 0, 0, 0)\n return 'reached'", "PermissionError")
    for name, number in _NUMBERS.items()
]  # fmt: skip

ATTACKS = [*LIES, *SIZES, *FILES, *PROCESSES, *NETWORK]

CONTROLS = {
    "a plain function": ("def f(x): return x * 2", 4),
    "threads": (
        "import threading\ndef f(x):\n got = []\n ts = [threading.Thread(target=got.append, args=(n,)) for n in range(8)]\n"
        " [t.start() for t in ts]\n [t.join() for t in ts]\n return sorted(got)",
        list(range(8)),
    ),
    "regular expressions": ("import re\ndef f(x): return re.sub('a+', 'b', 'caat')", "cbt"),
    "collections": ("from collections import Counter\ndef f(x): return Counter('aab')", {"a": 2, "b": 1}),
    "an event loop": ("import asyncio\nasync def g(x):\n await asyncio.sleep(0)\n return x\ndef f(x): return asyncio.run(g(x))", 2),
    "a pool of threads": ("from concurrent.futures import ThreadPoolExecutor as P\ndef f(x): return list(P(2).map(abs, [-1, 1]))", [1, 1]),
    "a temporary file": ("import tempfile\ndef f(x):\n with tempfile.TemporaryFile() as t:\n  t.write(b'a'); t.seek(0)\n  return t.read()", b"a"),
    "a dataclass": ("from dataclasses import dataclass, astuple\n@dataclass\nclass P:\n  x: int\ndef f(x): return astuple(P(x))", (2,)),
    "much of the library": (
        "import datetime, decimal, fractions, functools, hashlib, heapq, itertools, json, math, random, statistics, string, time, typing, uuid, zoneinfo\n"
        "def f(x): return str(datetime.date(2020, 1, x)), str(decimal.Decimal(1) / 8), hashlib.md5(b'').hexdigest()[:4], zoneinfo.ZoneInfo('UTC').key",
        ("2020-01-02", "0.125", "d41d", "UTC"),
    ),
}  # fmt: skip
