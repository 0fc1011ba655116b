"""Hints that a patch reaches for the test run itself, read from the code alone, to be read by a person.

The verdict does not rest on them: code under test has no way to the tests. They tell of the attempt.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

MOST_FOLDED_CHARS = 1_000
"""Most characters of a text that is put together of constants."""

MOST_SHOWN_CHARS = 80

_REACHING = frozenset((
    "_exit", "_getframe", "_current_frames", "atexit", "builtins", "ctypes", "currentframe", "execv", "execve", "exit",
    "fork", "gc", "get_objects", "get_referrers", "importlib", "inspect", "kill", "killpg", "meta_path", "ptrace",
    "pytest", "setprofile", "settrace", "signal", "sitecustomize", "stderr", "stdout", "unittest", "usercustomize",
    "AssertionError", "__build_class__", "__builtins__", "__import__", "__stderr__", "__stdout__",
))  # fmt: skip
_IN_TEXT = re.compile(
    r"\b(?:_exit|_getframe|atexit|unittest|pytest|settrace|sitecustomize|conftest)\b"
    r"|\bRan %?\w|/proc\b|\btests?/|\bdef test"
)
_FOR_THE_RUN = frozenset(("sitecustomize.py", "usercustomize.py", "conftest.py", "pyvenv.cfg", "pytest.ini", "tox.ini"))
_NO_SOURCE = frozenset((".pth", ".pyc", ".pyo", ".so", ".pyd"))


def forging_hints(before: Mapping[str, bytes], after: Mapping[str, bytes | None]) -> tuple[str, ...]:
    """Return what the files hold after a patch and did not before: `file: what`, each once.

    A name that runs programs, ends or watches the process, or belongs to a test runner, also where it is put together
    of constants; an attribute whose name is computed; a comparison that holds for everything; a file that Python or a
    test runner takes up by its name, or that stands in for the standard library's.
    """
    hints: dict[str, None] = {}
    for name, data in after.items():
        was = before.get(name)
        if data is None or data == was or name.startswith("tests/"):
            continue  # the patch's own tests are not run
        hints |= dict.fromkeys(_of_name(name) if was is None else ())
        if name.endswith(".py"):
            seen = _of_code(was or b"")
            hints |= {f"{name}: {what}": None for what in _of_code(data) if what not in seen}
    return tuple(hints)


def _of_name(name: str) -> Iterator[str]:
    path = PurePosixPath(name)
    top = path.parts[0].removesuffix(".py")
    if path.name in _FOR_THE_RUN or path.suffix in _NO_SOURCE or top in sys.stdlib_module_names:
        yield name


def _of_code(data: bytes) -> list[str]:
    try:
        return [what for node in ast.walk(ast.parse(data)) for what in _of_node(node)]
    except (SyntaxError, ValueError):
        return []  # it can't be run, either
    except (RecursionError, MemoryError):
        return ["code nested too deep to be read"]


def _of_node(node: ast.AST) -> Iterator[str]:
    yield from (word for word in _words(node) if word in _REACHING)
    text = _folded(node)
    if text in _REACHING or _IN_TEXT.search(text):
        yield f"the text {text[:MOST_SHOWN_CHARS]!r}"
    if isinstance(node, ast.Call) and _computes_a_name(node):
        yield "an attribute whose name is computed"
    if isinstance(node, ast.FunctionDef) and node.name in ("__eq__", "__ne__") and _is_constant(node):
        yield f"an {node.name} that says one thing of everything"


def _words(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            yield name
        case ast.alias(name=name):
            yield from name.split(".")
        case ast.ImportFrom(module=str(name)):
            yield from name.split(".")


def _folded(node: ast.AST) -> str:
    """The text that constants are put together to; empty for anything else."""
    match node:
        case ast.Constant(value=str(text)):
            return text[:MOST_FOLDED_CHARS]
        case ast.Constant(value=bytes(data)):
            return data[:MOST_FOLDED_CHARS].decode("latin-1")
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _folded(left), _folded(right)
            return (first + second)[:MOST_FOLDED_CHARS] if first and second else ""
    return ""


def _computes_a_name(call: ast.Call) -> bool:
    reaches = isinstance(call.func, ast.Name) and call.func.id in ("getattr", "setattr", "delattr")
    return reaches and len(call.args) > 1 and not isinstance(call.args[1], ast.Constant)


def _is_constant(function: ast.FunctionDef) -> bool:
    match function.body[-1]:
        case ast.Return(value=ast.Constant()):
            return True
    return False
