"""What `make test` asks of long tables: some rows and not the others, or all rows in one test."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def some(cases: Iterable[Any], every: int, others: Any = pytest.mark.slow) -> list[Any]:
    """The cases of a table whose rows all hold the same behaviour: every so many-th is quick, from the first.

    A plain tuple is one row of several parameters.
    """
    rows = [case if type(case) is tuple else (case,) for case in cases]
    return [pytest.param(*row, marks=() if n % every == 0 else others) for n, row in enumerate(rows)]


AT_NIGHT = (pytest.mark.slow, pytest.mark.nightly)


def each_row(
    names: str | tuple[str, ...], cases: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Ask a test of every row of a table, as `pytest.mark.parametrize` does, but as one test.

    A test of its own costs 3 ms, more than most rows. Every row that fails is told. Rows share the test's fixtures.
    """
    columns = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else names
    rows = [tuple(case) if len(columns) > 1 else (case,) for case in cases]
    assert rows, "a table without rows asks nothing"

    def of(test: Callable[..., None]) -> Callable[..., None]:
        def ask(**fixtures: Any) -> None:
            failed: list[Exception] = []
            for row in rows:
                try:
                    test(**dict(zip(columns, row, strict=True)), **fixtures)
                except Exception as problem:  # noqa: BLE001  (each is raised below)
                    problem.add_note(f"the row {row!r:.300}")
                    failed.append(problem)
            if failed:
                raise failed[0] if len(failed) == 1 else ExceptionGroup(f"{len(failed)} of {len(rows)} rows", failed)

        left = [p for name, p in inspect.signature(test).parameters.items() if name not in columns]
        ask.__signature__ = inspect.Signature(left)  # type: ignore[attr-defined]
        for name in ("__name__", "__qualname__", "__doc__", "__module__"):
            setattr(ask, name, getattr(test, name))
        ask.pytestmark = list(getattr(test, "pytestmark", ()))  # type: ignore[attr-defined]
        return ask

    return of
