"""How far two labellers agree on the same things, and how far chance alone would have them agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct


class Agreement(Struct, frozen=True):
    """Two labellers on the same things."""

    n: int
    agreement: float
    """Share of the things that both gave the same label."""
    chance: float
    """The share that two labellers with these label frequencies would agree on blindly."""
    kappa: float | None
    """Cohen's: (agreement - chance) / (1 - chance). None when both gave all things one label: chance explains it."""
    confusion: dict[str, dict[str, int]]
    """How often the first said the row while the second said the column; every label has a row and a column."""


def agreement(pairs: Iterable[tuple[str, str]], labels: Iterable[str] = ()) -> Agreement | None:
    """The agreement over pairs (first labeller's label, second's); None of none. `labels`: those to show in any case,
    first and in this order.
    """
    counted = Counter(pairs)
    n = counted.total()
    if not n:
        return None
    names = list(dict.fromkeys([*labels, *sorted({name for pair in counted for name in pair})]))
    confusion = {first: {other: counted[first, other] for other in names} for first in names}
    rows = {name: sum(confusion[name].values()) for name in names}
    columns = {name: sum(row[name] for row in confusion.values()) for name in names}
    same = sum(confusion[name][name] for name in names)
    # Counted in whole numbers, so that a chance of exactly 1 is seen as such.
    blind = sum(rows[name] * columns[name] for name in names)
    kappa = None if blind == n * n else (same * n - blind) / (n * n - blind)
    return Agreement(n, same / n, blind / (n * n), kappa, confusion)
