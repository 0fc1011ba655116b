"""Asks code in a checkout from outside, one question at a time: what decides about the code never runs beside it.

Values come back, of exact plain types and limited size. Any other object stays where it is; a `Remote` stands for it,
which can be called and asked for attributes, and refuses to be compared, counted or taken for true.
"""

from __future__ import annotations

import builtins
import contextlib
import json
import socket
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Thread
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from msgspec import Struct

from agentsignals_lab.sandbox import process
from agentsignals_lab.sandbox.calling import printable
from agentsignals_lab.sandbox.checkout import Checkout
from agentsignals_lab.sandbox.inside import wire
from agentsignals_lab.sandbox.outcome import Limits, Ran
from agentsignals_lab.sandbox.working_copy import PLACE

Answer = TypeVar("Answer")

MOST_LINE_BYTES = 4 << 20
LEAVING_S = 0.5
"""For the process to end by itself, once nobody asks."""


class NoAnswer(Exception):
    """The code's process ended, or did not keep to the protocol; it is asked no more."""


class RemoteError(Exception):
    """The code raised something that is no exception of Python's own."""


class NotPlain(TypeError):
    """An object that is no plain data was to be compared or taken for true."""


class Code(Protocol):
    """Code that answers: the code itself, or a stand-in."""

    def ask(self, question: dict[str, Any]) -> Any:
        """A plain value or a Remote. Raises what the code raised, as a built-in exception, or NoAnswer."""


class Remote:
    """An object of the code's, in the code's process."""

    __slots__ = ("_code", "_number", "_type")

    def __init__(self, code: Code, number: int, kind: str) -> None:
        self._code, self._number, self._type = code, number, kind

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._code.ask({"object": self._number, "attribute": name})

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        question = {
            "object": self._number,
            "arguments": [_argument(value) for value in arguments],
            "named": [[name, _argument(value)] for name, value in named.items()],
        }
        return self._code.ask(question)

    def __repr__(self) -> str:
        return f"<an object of type {self._type}>"

    def _refuse(self, *_: object) -> NoReturn:
        raise NotPlain(f"{self!r} is no plain data: only that is compared")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __hash__ = _refuse


def _argument(value: Any) -> dict[str, Any]:
    if type(value) is Remote:
        return {"object": object.__getattribute__(value, "_number")}
    return {"value": wire.encode(value)}


def remote_through(code: Code, remote: Remote) -> Remote:
    """Return the object, asked through another way to its code."""
    number, kind = (object.__getattribute__(remote, name) for name in ("_number", "_type"))
    return Remote(code, number, kind)


def load(code: Code, module: str, names: Iterable[str] = ()) -> Any:
    """A module of the code's as a Remote, as `import module` or `from module import names` has it."""
    return code.ask({"module": module, "names": list(names)})


class Talk:
    """The code itself, at the other end of a socket that it was given."""

    def __init__(self, line: socket.socket) -> None:
        self.broken = ""
        """Why it is asked no more."""
        self._lines = line.makefile("rwb")

    def ask(self, question: dict[str, Any]) -> Any:
        """As `Code` has it."""
        if self.broken:
            raise NoAnswer(self.broken)
        try:
            return self._read(self._asked(question))
        except wire.Refused as refused:
            self.broken = f"it broke the protocol: {refused.message}"
        except OSError:
            self.broken = "its process ended before it answered"
        raise NoAnswer(self.broken) from None

    def close(self) -> None:
        """Hangs up."""
        with contextlib.suppress(OSError):
            self._lines.close()

    def _asked(self, question: dict[str, Any]) -> dict[str, Any]:
        self._lines.write(json.dumps(question).encode() + b"\n")
        self._lines.flush()
        line = self._lines.readline(MOST_LINE_BYTES)
        if not line.endswith(b"\n"):
            raise ConnectionResetError if len(line) < MOST_LINE_BYTES else wire.Refused("protocol", "a long answer")
        answer = wire.loads(line)
        if type(answer) is not dict:
            raise wire.Refused("protocol", "an answer of no known kind")
        return answer

    def _read(self, answer: dict[str, Any]) -> Any:
        match answer:
            case {"value": form}:
                return wire.decode(form)
            case {"object": number, "type": kind} if type(number) is int and number >= 0:
                return Remote(self, number, printable(kind, 200))
            case {"raised": list(names), "message": message}:
                raise _exception(names, printable(message, 500))
        raise wire.Refused("protocol", "an answer of no known kind")


def _exception(names: list[Any], message: str) -> Exception:
    """The nearest built-in one that a message alone makes."""
    for name in names[:20]:
        kind = getattr(builtins, name, None) if type(name) is str else None
        if isinstance(kind, type) and issubclass(kind, Exception):
            with contextlib.suppress(TypeError):
                return kind(message)
    return RemoteError(f"{printable(names[0], 200) if names else 'something'}: {message}")


class Conversed(Struct, frozen=True):
    """End of the code's process."""

    broken: str
    """Why the code was asked no more; empty: it answered every question."""
    ran: Ran


def converse(folder: Path, ask: Callable[[Talk], Answer], limits: Limits) -> tuple[Answer, Conversed]:
    """Runs a function of ours that asks the code of a checkout, which runs in the strict sandbox on a copy of it.

    Args:
        folder: the checkout. Nothing in it is changed.
        ask: trusted; runs in a thread of this process. What it gives is given.
        limits: of the code's process; as many questions as it answers in that time.

    Raises:
        SandboxError: there is no bubblewrap here, or the process could not be locked. And what `ask` raises.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs, Checkout(folder, limits) as checkout:
        asking = _Asking(ask, ours)

        def started(_: int) -> None:
            theirs.close()  # so that the end of the process is the end of the line
            asking.start()

        try:
            talk = {"socket": theirs.fileno(), "folder": PLACE}
            result = checkout.run(started=started, check=asking.check, passed=(theirs.fileno(),), talk=talk)
        finally:
            ours.close()
            asking.end()
    return asking.answer(), Conversed(asking.talk.broken, result)


class _Asking(Thread, Generic[Answer]):
    def __init__(self, ask: Callable[[Talk], Answer], line: socket.socket) -> None:
        super().__init__(daemon=True)
        self.talk = Talk(line)
        self._ask = ask
        self._line = line
        self._answer: list[Answer] = []
        self._failed: BaseException | None = None
        self._over_at = 0.0

    def run(self) -> None:
        """Asks, and hangs up."""
        try:
            self._answer.append(self._ask(self.talk))
        except BaseException as error:  # noqa: BLE001 - raised again where it was started
            self._failed = error
        self._over_at = time.monotonic()
        with contextlib.suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)

    def check(self) -> process.Stopped:
        """Return whether the process is still there although nobody asks."""
        return "over" if self._over_at and time.monotonic() > self._over_at + LEAVING_S else ""

    def end(self) -> None:
        """Waits for it: the other end of the line is gone, so no question waits for an answer."""
        if self.ident is not None:
            self.join()
        self.talk.close()

    def answer(self) -> Answer:
        """Return its answer. Raises what it raised."""
        if self._failed is not None:
            raise self._failed
        return self._answer[0]
