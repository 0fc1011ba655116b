"""Finds the few things of many that something can't be done with, so that the others don't pay for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from agentsignals.errors import AgentSignalsError
from agentsignals.sources import error_text

T = TypeVar("T")
R = TypeVar("R")


def isolate(things: Sequence[T], attempt: Callable[[Sequence[T]], R]) -> tuple[R, list[tuple[T, str]]]:
    """What `attempt` gives for all of them, or for all it does not fail on; and each of the others with its error.

    Halves are tried, halves of these, and then what went well together. What the machine or the request is to blame
    for (an AgentSignalsError) is raised, and so is a failure over nothing at all.
    """
    try:
        return attempt(things), []
    except AgentSignalsError:
        raise
    except Exception as problem:  # noqa: BLE001  (hostile data finds every kind; each is kept by its name and shown)
        why = error_text(problem)
    fine, set_aside = _parted(things, attempt, why)
    return attempt(fine), set_aside


def _parted(
    things: Sequence[T], attempt: Callable[[Sequence[T]], Any], why: str
) -> tuple[Sequence[T], list[tuple[T, str]]]:
    """Those that go well together, and the others; of things on which `attempt` fails for that reason."""
    if len(things) <= 1:
        return [], [(thing, why) for thing in things]
    fine: list[T] = []
    set_aside: list[tuple[T, str]] = []
    middle = len(things) // 2
    for half in (things[:middle], things[middle:]):
        failure = _failure(half, attempt)
        good, bad = (half, []) if failure is None else _parted(half, attempt, failure)
        set_aside += bad
        together = _failure([*fine, *good], attempt) if fine and good else None
        if together is None:
            fine += good
        else:
            set_aside += [(thing, together) for thing in good]
    return fine, set_aside


def _failure(things: Sequence[T], attempt: Callable[[Sequence[T]], Any]) -> str | None:
    try:
        attempt(things)
    except AgentSignalsError:
        raise
    except Exception as problem:  # noqa: BLE001  (as above)
        return error_text(problem)
    return None
