"""Where text leaves for a terminal: no character that would drive it, whoever wrote it and whoever prints it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import IO, Any

from agentsignals.words.text import visible


class Visible:
    """A stream of text in front of another: what is unseen goes on as its number, what the other's encoding has no byte
    for as an escape. JSON passes as it is: its strings have such characters escaped already.
    """

    def __init__(self, beneath: IO[str], *, lines: bool = False) -> None:
        """`lines`: a carriage return, with which libraries draw their progress anew, begins a line."""
        self.beneath = beneath
        self._lines = lines

    def write(self, text: str) -> int:
        shown = visible(text.replace("\r", "\n") if self._lines else text)
        try:
            self.beneath.write(shown)
        except UnicodeEncodeError as problem:
            self.beneath.write(shown.encode(problem.encoding, "backslashreplace").decode(problem.encoding))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.beneath, name)


@contextmanager
def visible_streams() -> Iterator[None]:
    """Inside, all that is printed to stdout and stderr is `Visible`."""
    out: Any = Visible(sys.stdout)
    err: Any = Visible(sys.stderr, lines=True)
    with redirect_stdout(out), redirect_stderr(err):
        yield
