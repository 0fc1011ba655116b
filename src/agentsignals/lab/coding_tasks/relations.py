"""Metamorphic relations: what must hold between answers, whatever the answers are (Chen, Cheung, Yiu 1998).

A relation looks at a call and its answer, may ask for another call made from them, and says whether the two agree. It
runs in the parent process over plain values that came back from the sandbox.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

Args = tuple[Any, ...]


class Relation(Struct, frozen=True):
    """`follow` makes the other call (None: this call has none); `holds` gets the call, its answer and the other's."""

    name: str
    holds: Callable[[Args, Any, Any], bool]
    follow: Callable[[Args, Any], Args | None] | None = None


def unchanged(name: str, change: Callable[..., Args | None]) -> Relation:
    """The answer stays the same when the arguments change so."""
    return Relation(name, lambda _args, out, other: bool(other == out), lambda args, _out: change(*args))


def becomes(name: str, change: Callable[..., Args | None], answer: Callable[[Any], Any]) -> Relation:
    """When the arguments change so, the answer changes to `answer` of it."""
    return Relation(name, lambda _args, out, other: bool(other == answer(out)), lambda args, _out: change(*args))


def follows(name: str, change: Callable[..., Args | None], holds: Callable[[Any, Any], bool]) -> Relation:
    """`holds` of the answer and of the answer to the changed arguments."""
    return Relation(name, lambda _args, out, other: holds(out, other), lambda args, _out: change(*args))


def always(name: str, holds: Callable[..., bool]) -> Relation:
    """`holds` of every answer and its arguments: `holds(answer, *arguments)`."""
    return Relation(name, lambda args, out, _other: holds(out, *args))


def idempotent(name: str = "a second time changes nothing") -> Relation:
    """The answer put back as the first argument is answered by itself."""
    return Relation(name, lambda _args, out, other: bool(other == out), lambda args, out: (out, *args[1:]))


def undone_by_itself(name: str = "twice gives what it was") -> Relation:
    """The answer put back as the first argument is answered by what that was."""
    return Relation(name, lambda args, _out, other: bool(other == args[0]), lambda args, out: (out, *args[1:]))
