"""One signal's value, detail and evidence of a tiny session, by its path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from unittest.mock import ANY

from agentsignals.model import Absent
from agentsignals.signals import Row, Signal
from agentsignals.signals.catalog import by_path, explain, measure, plain, values
from agentsignals.views.session import CollectedEvidence, SessionView


def value(view: SessionView, path: str) -> Any:
    """The value; rows as plain data."""
    found = _result(view, path).value
    return [plain(v) if isinstance(v, Row) else v for v in found] if isinstance(found, list) else found


def by_turn(view: SessionView, path: str) -> list[Any]:
    """The values of a signal that has one a turn."""
    return [r.value for r in measure(view) if r.signal.path == path]


def detail(view: SessionView, path: str) -> dict[str, Any]:
    return _result(view, path).detail or {}


def absent(view: SessionView, path: str) -> tuple[str, str]:
    """Reason and detail; an assertion error when there is a value."""
    found = value(view, path)
    assert isinstance(found, Absent), found
    return found.reason, found.detail


def evidence(view: SessionView, path: str) -> CollectedEvidence:
    return explain(by_path(path), view, values(view))[2]


def lines(view: SessionView, path: str, role: str = "support") -> list[int]:
    """The lines of the artifact that speak for a value: the parts of the tiny session, counted from 1."""
    return [i.line for i in evidence(view, path).items if i.role == role and i.line is not None]


class Case(NamedTuple):
    """A row of a table: the value of a signal of a tiny session, and what else is said of it; `support`, `counter` and
    `denominator` are `lines`, `some` is a part of the detail."""

    name: str
    one: SessionView
    path: str
    value: Any = ANY
    detail: Any = ANY
    support: Any = ANY
    counter: Any = ANY
    denominator: Any = ANY
    some: Mapping[str, Any] = {}

    def __str__(self) -> str:
        return self.name

    def check(self) -> None:
        found, told = value(self.one, self.path), detail(self.one, self.path)
        assert (found, told) == (self.value, self.detail)
        assert isinstance(found, bool) or not isinstance(self.value, bool)
        assert {name: told.get(name) for name in self.some} == self.some
        shown = {role: lines(self.one, self.path, role) for role in ("support", "counter", "denominator")}
        assert shown == {"support": self.support, "counter": self.counter, "denominator": self.denominator}


def _result(view: SessionView, path: str) -> Any:
    wanted = by_path(path)
    return next(r for r in measure(view) if r.signal is wanted)


def values_over_sessions(signal: Signal, values: Mapping[str, Sequence[Any]]) -> Any:
    """A corpus signal's value from the values its needs have in all sessions that have one."""
    return signal.function(*[values.get(need, ()) for need in signal.needs])
