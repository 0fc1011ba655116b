"""Numbers as records have them. What can't be true becomes `IMPOSSIBLE`, which `soundness` counts and takes out.

It is no number, so that whatever is computed from it is none either: no sum or difference hides it, nor does
`max(it, 0)`, in this order.
"""

from __future__ import annotations

from math import nan
from typing import cast

MOST_TOKENS = 10**11
"""Of a model call, or all of a run: 10 000 prompts of the largest context window sold (10 million tokens). A table
needs 90 million rows of it before a sum leaves 64 bits."""
MOST_USD = 1e6
"""Of a call or a run: 160 full prompts of that size at the dearest list price of any model (600 USD a million)."""
LARGEST = 2**63
"""What 64 bits hold."""
IMPOSSIBLE = cast("int", nan)


def count(value: object) -> int | None:
    """Tokens, or whatever else is counted: None for none, `IMPOSSIBLE` for no whole number from 0 to `MOST_TOKENS`."""
    if value is None:
        return None
    n = whole(value)
    return n if n is not None and 0 <= n <= MOST_TOKENS else IMPOSSIBLE


def whole(value: object) -> int | None:
    """A whole number of either sign, as exit codes are: None for none, `IMPOSSIBLE` for anything else."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not -LARGEST < value < LARGEST:
        return IMPOSSIBLE
    return int(value) if value == int(value) else IMPOSSIBLE


def amount(value: object) -> float | None:
    """Dollars: None for none, `IMPOSSIBLE` for no number from 0 to `MOST_USD`."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_USD:
        return nan
    return float(value)


def number(value: object) -> float | None:
    """Any number: None for none, `IMPOSSIBLE` for a truth value, text, or a number beyond 64 bits."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not -LARGEST < value < LARGEST:
        return nan
    return value
