"""The store's tables and views as Polars frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from agentsignals.errors import QueryError
from agentsignals.store.query import connect, view_names

if TYPE_CHECKING:
    from agentsignals.store import Store


def frame(store: Store, table: str) -> pl.DataFrame:
    """A table or view, whole. QueryError when there is no such table."""
    if table not in view_names():
        raise QueryError(f"There is no table {table!r}.", f"The tables are: {', '.join(view_names())}.")
    found: pl.DataFrame = connect(store).table(table).pl()
    return found
