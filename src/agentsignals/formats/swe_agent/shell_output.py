"""Whether a command failed, where a trace keeps its output but not its exit code."""

from __future__ import annotations

import re

from agentsignals.formats.error_classes import error_class
from agentsignals.model import ShellKind, ToolClass

_END = 4_000
_LAST = 600
_SHELL_SAYS = re.compile(r"(?:-?bash|/bin/(?:ba|da)?sh|sh|zsh): (?:line )?[^\n]{1,2000}$", re.MULTILINE)
_RAISED = re.compile(r"[A-Za-z_][\w.]{0,200}(?:Error|Exception|Interrupt|Exit|Failure|Timeout|Expired)\b")
_TESTS_FAILED = re.compile(r"\b[1-9]\d{0,6} (?:failed|errors?)\b|^FAILED \((?:failures|errors)=", re.MULTILINE)
_CANCELLED = ("was cancelled because it took more than", "EXECUTION TIMED OUT", "COMMAND TIMED OUT")
_NOT_RUN = ("command contained syntax errors and was NOT executed",)
_HARNESS_CHARS = 2_000


def failure(text: str, command: str, class_: ToolClass, kind: ShellKind | None) -> str | None:
    """The error class of a command whose output shows that it failed; None when nothing shows it.

    What shows it: the harness stopped it, the shell could not run it, a test runner's summary, an exception that ends
    the output, or a program that says one line under its own name and nothing else. No output shows success.
    """
    begin = text[:_HARNESS_CHARS]
    if any(words in begin for words in _CANCELLED):
        return "timeout"
    if any(words in begin for words in _NOT_RUN):
        return "compile_error"
    if class_ == "test" and _TESTS_FAILED.search(text[-_LAST:]):
        return "test_failed"
    if _SHELL_SAYS.match(text.lstrip()) or _ends_raised(text) or _says_one_line(text, command):
        return error_class(f"Exit code 1\n{text}", class_, kind)
    return None


def _ends_raised(text: str) -> bool:
    end = text[-_END:].rstrip()
    if "Traceback (most recent call last)" not in end and "SyntaxError" not in end:
        return False
    return _RAISED.match(end.rpartition("\n")[2]) is not None


def _says_one_line(text: str, command: str) -> bool:
    """`grep: unmatched (`, `cat: x: No such file or directory`: nothing was found or read besides."""
    line = text.strip()
    if not line or "\n" in line or len(line) > _LAST:
        return False
    program, colon, rest = line.partition(": ")
    return bool(colon and rest) and program.isidentifier() and program in command.split()
