"""Which cases of a long table `make test` runs; the others are marked slow, for `make test-slow` and CI."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def some(cases: Iterable[Any], every: int, others: Any = pytest.mark.slow) -> list[Any]:
    """The cases of a table whose rows all hold the same behaviour: every so many-th is quick, from the first.

    A plain tuple is one row of several parameters.
    """
    rows = [case if type(case) is tuple else (case,) for case in cases]
    return [pytest.param(*row, marks=() if n % every == 0 else others) for n, row in enumerate(rows)]


AT_NIGHT = (pytest.mark.slow, pytest.mark.nightly)
