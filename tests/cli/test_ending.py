"""A request to end is heard wherever it comes."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

_LOST = """
import os, sys, time
from agentsignals.cli import doctor, main

class Dropped:
    def __del__(self):
        os.kill(os.getpid(), {number})
        sum(range(10))  # the handler runs here, where an exception goes nowhere

def run(options):
    Dropped()
    time.sleep(60)

doctor.run_doctor = run
sys.exit(main(["doctor"]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="has no such signals")
@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
def test_a_request_to_end_where_exceptions_go_nowhere_is_made_again(name: str, code: int) -> None:
    program = _LOST.format(number=int(getattr(signal, name)))
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=False)
    assert ended.returncode == code
    assert "Traceback" not in ended.stderr


def test_other_exceptions_that_go_nowhere_are_printed_as_before() -> None:
    program = _LOST.format(number=0).replace("sum(range(10))", "1 / 0").replace("time.sleep(60)", "return 0")
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=False)
    assert ended.returncode == 0
    assert "ZeroDivisionError" in ended.stderr
