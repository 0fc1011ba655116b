"""Code of a checkout that is asked from outside: values come back, objects stay, and nothing else happens here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agentsignals.errors import SandboxError

from agentsignals_lab import sandbox
from agentsignals_lab.sandbox.capability import WHOLE

MISSING = sandbox.capabilities().missing(WHOLE["strict"])
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"the strict sandbox is not to be had here: {MISSING}")

SOURCE = """
import json, os
from pathlib import PurePosixPath

class Thing:
    name = "thing"
    def __init__(self, n=1):
        self.n = n
    def times(self, by, *, more=0):
        return self.n * by + more
    def same(self, other):
        return other is self
    def __eq__(self, other):
        return True

class Own(ValueError):
    pass

class Odd(BaseException):
    pass

def give(value): return value
def fail(kind): raise {"own": Own("\x1b[31mred"), "odd": Odd("x"), "unicode": UnicodeDecodeError("a", b"b", 0, 1, "c"),
                       "exit": SystemExit(3), "key": KeyError("k")}[kind]
def leave(code): os._exit(code)
def listed(value): return [value]
def stands_in(): return json.__file__ == "/checkout/json.py"
def tree(): return sorted(os.listdir("/checkout"))
def write(): open("/checkout/new", "w").write("x")
def endless():
    while True: pass
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("code")
    (made / "code_of_it.py").write_text(SOURCE, "utf-8")
    (made / "json.py").write_text("raise RuntimeError", "utf-8")
    return made


def asked(folder: Path, ask: Callable[[Any], Any], **limits: Any) -> tuple[Any, sandbox.Conversed]:
    return sandbox.converse(folder, lambda talk: ask(sandbox.load(talk, "code_of_it", ["x"])), sandbox.Limits(**limits))


def raised(ask: Callable[[], Any]) -> str:
    try:
        return f"gave {ask()!r}"
    except Exception as error:  # noqa: BLE001 - whatever comes of it is what is compared
        return f"{type(error).__name__}: {error}"


def test_values_come_back_and_objects_stay(folder: Path) -> None:
    def ask(code: Any) -> list[Any]:
        thing, other = code.Thing(), code.Thing(n=3)
        return [
            [code.give(value) for value in (None, True, 1.5, "\u00e9\ud800", b"x", (1, [2]), {1: {2}})],
            [thing.name, thing.times(2), other.times(2, more=1), thing.same(thing), thing.same(other)],
            [raised(lambda: thing == other), raised(lambda: bool(thing)), raised(lambda: hash(thing))],
            [type(thing) is sandbox.Remote, type(code.listed(thing)) is sandbox.Remote],
            [raised(lambda: len(code.give("abc"))), raised(lambda: list(thing)), raised(lambda: thing.missing)],
            [code.stands_in(), code.tree(), code.write()],
        ]

    answers, conversed = asked(folder, ask)
    plain = "NotPlain: <an object of type Thing> is no plain data: only that is compared"
    assert answers == [
        [None, True, 1.5, "\u00e9\ud800", b"x", (1, [2]), {1: {2}}],
        ["thing", 2, 7, True, False],
        [plain, plain, plain],
        [True, True],
        [
            "gave 3",
            "TypeError: 'Remote' object is not iterable",
            "AttributeError: 'Thing' object has no attribute 'missing'",
        ],
        [False, ["code_of_it.py", "json.py"], None],
    ]
    assert (conversed.broken, conversed.ran.exit_code, conversed.ran.stopped) == ("", 0, None)
    assert not (folder / "new").exists()


@pytest.mark.parametrize(("kind", "text"), [
    ("own", "ValueError: \\x1b[31mred"),
    ("odd", "RemoteError: BaseException: x"),
    ("unicode", "UnicodeError: 'a' codec can't decode byte 0x62 in position 0: c"),
    ("exit", "RemoteError: SystemExit: 3"),
    ("key", "KeyError: \"'k'\""),
])  # fmt: skip
def test_what_is_raised_is_raised_as_one_of_python_s_own(folder: Path, kind: str, text: str) -> None:
    assert asked(folder, lambda code: raised(lambda: code.fail(kind)))[0] == text


def test_a_process_that_leaves_is_asked_no_more(folder: Path) -> None:
    def ask(code: Any) -> list[str]:
        return [raised(lambda: code.leave(5)), raised(lambda: code.give(3))]

    answers, conversed = asked(folder, ask)
    assert answers == ["NoAnswer: its process ended before it answered"] * 2
    assert (conversed.broken, conversed.ran.exit_code) == ("its process ended before it answered", 5)


def test_a_process_that_takes_too_long_is_ended(folder: Path) -> None:
    answer, conversed = asked(folder, lambda code: raised(code.endless), wall_s=0.3)
    assert answer.startswith("NoAnswer")
    assert conversed.ran.stopped == "timeout"


def test_what_the_asking_raises_is_raised_here(folder: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        asked(folder, lambda code: 1 / (code.give(1) - 1))
    with pytest.raises(SandboxError, match="nothing to run"):
        asked(folder / "none", lambda code: None)
