"""Aggregate numbers of many sessions that name nobody, for `report --baseline` of somebody else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentsignals.errors import ExportError
from agentsignals.export import Choice, Exported, WholeWriter, refuse_secrets
from agentsignals.questions.baseline import FEWEST, QUERY, baseline_of, encode
from agentsignals.questions.question import Inputs, Versions
from agentsignals.questions.sql import with_place
from agentsignals.redaction import Guard
from agentsignals.store import Store, disk
from agentsignals.store.index import SCHEMA_VERSION


def write(store: Store, ids: list[str], path: Path, choice: Choice, done: Exported) -> None:
    """Write the baseline of these sessions as one JSON file: of people's sessions, or of attempts when there are no
    others. ExportError where there are too few, or `path` can't be written."""
    from agentsignals.store import query as asking  # noqa: PLC0415  (DuckDB is loaded when something is written)

    entries = store.manifest.sessions
    context = "product" if any(entries[i].context == "product" for i in ids) else "eval"
    wanted = {i for i in ids if entries[i].context == context}
    if len(wanted) < FEWEST:
        raise ExportError(
            f"A baseline of {len(wanted)} sessions could reveal individual ones.", f"Choose at least {FEWEST} sessions."
        )
    tables, connections = {}, dict[str | None, asking.Connection]()
    for n, (name, query) in enumerate(QUERY.items()):
        choice.tick("measuring", n, len(QUERY))

        def take(connection: asking.Connection, query: str = query) -> tuple[list[str], list[tuple[Any, ...]]]:
            connection.hold("sessions", with_place())
            asked = asking.execute(connection, query)
            return asking.column_names(asked), asked.fetchall()

        columns, values = asking.with_connection(store, take, context, connections)
        measured = (dict(zip(columns, row, strict=True)) for row in values)
        tables[name] = [row for row in measured if row["session_id"] in wanted]
    made = baseline_of(Inputs(rows=tables, versions=Versions(SCHEMA_VERSION)), context)
    encoded = encode(made)
    refuse_secrets(path.name, [("whole", encoded.decode())], Guard())
    disk.write_atomically(path, encoded)
    done.files, done.sessions = 1, len(wanted)
    done.tables = {"measures": len(made.measures), "turns with labels": len(made.negative_by_turn)}
    done.notes.append("it holds counts, means and quantiles, of no fewer than five: no text, id, path or name")
    if others := len(ids) - len(wanted):
        done.notes.append(f"{others:,} attempts of eval runs are left out: --where \"context = 'eval'\" gives theirs")


WRITER = WholeWriter(
    name="baseline",
    describes="what these sessions are like, in aggregate numbers, to hold others against",
    put=write,
)
