"""Runs a repository's tests out here, against code that runs in the sandbox: what decides is out of its reach.

A test file's text is the task's, never the checkout's. It runs in this process with an `import` of its own: modules of
the repository stand for the code over there, which is sent the arguments of each call and sends values back. What is
expected never leaves this process. Each test has a process of the code to itself, so the code can't count tests either.

A test that passes is run again, a random number of times, on what the code answered but with a random value for every
value. Such a canary must fail; where one passes, the test decides nothing, and the code does not pass.
"""

from __future__ import annotations

import ast
import builtins
import re
import secrets
import sys
import unittest
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from agentsignals_lab import sandbox
from agentsignals_lab.sandbox import Code, Limits, NoAnswer, Ran, Remote, Talk

MOST_CANARIES = 3
"""Most canaries of each test; one at least."""

LONGEST_WHY = 300
_COMPARED = (str, list, tuple, dict, set, frozenset)
"""Types whose differences unittest explains at a length, and with an effort, that the code under test would choose."""

_SUMMARY = re.compile(r"^Ran \d+ tests? in ", re.MULTILINE)
_SIGNALS = 128
"""Exit codes above it tell of a signal, as shells and bubblewrap have it."""

_ORDER = secrets.SystemRandom()


class Method(NamedTuple):
    """A test method of a file, by name."""

    file: str
    kind: str
    method: str

    def __str__(self) -> str:
        return f"{self.file}: {self.kind}.{self.method}"


class Judged(Struct, frozen=True, kw_only=True):
    """Outcome of one test."""

    test: Method
    passed: bool
    why: str
    """Why it did not pass; text of the code's own in it can be printed."""
    forged: str = ""
    """Evidence that the code reached for the test run."""
    ran: Ran


class Tests:
    """The tests of these files, by path, of the code of these packages."""

    def __init__(self, files: Mapping[str, str], packages: frozenset[str]) -> None:
        # Asserts stay in, however this process was started.
        self._code = {name: compile(text, name, "exec", dont_inherit=True, optimize=0) for name, text in files.items()}
        self._packages = packages
        self.cases = [case for name, text in files.items() for case in _cases(name, text)]

    def judge(self, folder: Path, limits: Limits) -> list[Judged]:
        """Runs the tests in an order that nobody knows, up to the first that does not pass. Raises SandboxError."""
        judged: list[Judged] = []
        for case in _ORDER.sample(self.cases, len(self.cases)):
            judged.append(self._judge(case, folder, limits))
            if not judged[-1].passed:
                break
        return judged

    def _judge(self, case: Method, folder: Path, limits: Limits) -> Judged:
        def ask(talk: Talk) -> tuple[str, list[Any]]:
            heard = _Heard(talk)
            return self._why(case, heard), heard.answers

        (why, answers), conversed = sandbox.converse(folder, ask, limits)
        # A test may itself catch what the code raises; that the code went away is no such thing.
        why = conversed.broken or why
        forged = _reaching(conversed)
        if not why and self._passes_canary(case, answers):
            why = forged = "a test that must fail passed"
        if conversed.ran.stopped:
            why = f"{conversed.ran.stopped}: {why}"
        return Judged(test=case, passed=not why, why=f"FAILED {case}: {why}", forged=forged, ran=conversed.ran)

    def _passes_canary(self, case: Method, answers: Sequence[Any]) -> bool:
        return any(not self._why(case, Altered(answers)) for _ in range(1 + secrets.randbelow(MOST_CANARIES)))

    def _why(self, case: Method, code: Code) -> str:
        """Why the test does not pass with this code; empty when it does."""
        result = unittest.TestResult()
        try:
            names: dict[str, Any] = {"__name__": case.file, "__builtins__": self._builtins(code)}
            exec(self._code[case.file], names)  # noqa: S102 - the task's own text
            test = names[case.kind](case.method)
            for kind in _COMPARED:
                test.addTypeEqualityFunc(kind, _compared(test))
            test.run(result)
        except Exception as error:  # noqa: BLE001 - the file imports the code, which may do anything
            return _shortened(f"{type(error).__name__}: {error}")
        problems = [text for _, text in result.failures + result.errors]
        if problems:
            return _shortened(problems[0].strip().rpartition("\n")[2])
        # Neither skipped nor expected to fail: that is not what a test that passed is.
        return "" if result.testsRun == 1 and not (result.skipped or result.expectedFailures) else "it was not run"

    def _builtins(self, code: Code) -> dict[str, Any]:
        def importing(name: str, _globals: Any = None, _locals: Any = None, names: Any = (), level: int = 0) -> Any:
            top = name.partition(".")[0]
            if level == 0 and top in self._packages:
                return sandbox.load(code, name, names or ())
            if level == 0 and top in sys.stdlib_module_names:
                return builtins.__import__(name, _globals, _locals, names or ())
            raise ImportError(f"a test imports the repository's packages and the standard library, not {name!r}")

        return {**vars(builtins), "__import__": importing}


def _cases(file: str, text: str) -> list[Method]:
    return [
        Method(file, kind.name, method.name)
        for kind in ast.parse(text).body
        if isinstance(kind, ast.ClassDef)
        for method in kind.body
        if isinstance(method, ast.FunctionDef) and method.name.startswith("test")
    ]


def _compared(test: unittest.TestCase) -> Any:
    def equal(first: Any, second: Any, msg: Any = None) -> None:
        if not first == second:
            raise test.failureException(msg or f"{sandbox.shown(first)} != {sandbox.shown(second)}")

    return equal


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_WHY else f"{text[: LONGEST_WHY - 1]}…"


def _reaching(conversed: sandbox.Conversed) -> str:
    """Return actions that code under test has no reason for, as seen from outside. A crash is none, nor is a long
    run."""
    code = conversed.ran.exit_code
    if conversed.broken and code is not None and code < _SIGNALS:
        return f"when it was asked, {conversed.broken} (exit code {code})"
    return "it prints the summary of a test run" if _SUMMARY.search(conversed.ran.output) else ""


class _Heard:
    """The code, and what it answered."""

    def __init__(self, code: Code) -> None:
        self.answers: list[Any] = []
        self._code = code

    def ask(self, question: dict[str, Any]) -> Any:
        try:
            answer = self._code.ask(question)
        except NoAnswer:
            raise
        except Exception as error:
            self.answers.append(error)
            raise
        self.answers.append(answer)
        # Asked through this one again, so that nothing is missed.
        return sandbox.remote_through(self, answer) if isinstance(answer, Remote) else answer


class Altered:
    """Answers as the code did, but with a random value for every value and exception."""

    def __init__(self, answers: Sequence[Any]) -> None:
        self._answers = iter(answers)

    def ask(self, question: dict[str, Any]) -> Any:
        """As `Code` has it."""
        answer = next(self._answers, None)
        return sandbox.remote_through(self, answer) if isinstance(answer, Remote) else altered(answer)


def altered(value: Any) -> Any:
    """A random value of the same type, where that type has enough of them to never meet the expected one; else text."""
    chance = secrets.token_hex(16)
    match value:
        case bool():
            return not value
        case int() | float():
            return type(value)(int(chance, 16))
        case list() | tuple() | set() | frozenset():
            return type(value)((chance,))
        case dict():
            return {chance: chance}
        case bytes() | bytearray():
            return type(value)(chance.encode())
    return chance
