"""The function that computes signals which somebody asks for and nobody asked for before.

The store calls it and does not know it, because what measures is above the store. The package puts it in; the command
line puts in one that shows progress.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentsignals.store import Store

compute: Callable[[Store, frozenset[str], str | None], object] | None = None
"""Takes a store, paths of signals, and the shard whose values are asked for (None: all), and keeps the values."""
