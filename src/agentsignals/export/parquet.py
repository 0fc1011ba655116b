"""The store's tables as a folder of Parquet files, one a table, the columns as `query` shows them."""

from __future__ import annotations

from pathlib import Path

from agentsignals.export import Choice, Exported, WholeWriter, empty_folder
from agentsignals.store import Store


def write(store: Store, ids: list[str], folder: Path, choice: Choice, done: Exported) -> None:
    """Write every table of these sessions."""
    from agentsignals.store.copies import write_tables  # noqa: PLC0415  (pyarrow is loaded when something is written)

    redactor = choice.redactor
    empty_folder(folder)
    choice.tick("writing", 0, None)
    done.tables = write_tables(store, folder, set(ids), redactor.text if redactor else None)
    done.files, done.masked = len(done.tables), redactor.counts if redactor else None


WRITER = WholeWriter(
    name="parquet",
    describes="the store's tables, a Parquet file each",
    put=write,
    redacts=True,
    every_text=True,
    loses=(
        "the wide views of signals, which `query` makes of the long table `signals`",
        "where texts are masked: the names of commits' authors",
    ),
)
