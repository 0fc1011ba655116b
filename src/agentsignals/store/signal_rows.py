"""Computed values as rows of the table `signals`, column by column: a session has a hundred and more, a shard of small
sessions half a million, and a tuple for each would be taken apart again for its columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import Struct

from agentsignals.catalog import Result, Signal
from agentsignals.model import Absent, Session
from agentsignals.store import arrow_tables, parquet

_NUMBERS = frozenset((bool, int, float))
_OF_A_SESSION = frozenset(("session", "attempt", "region"))


class SignalRows(Struct, kw_only=True, gc=False):
    """The values of a session, of an eval run's attempt, or of the whole store; a column each, alike in length."""

    session_id: str | None
    trial_id: str | None
    attempt_index: int | None
    whole: str
    """The level of what is of no turn: `session` or `attempt`."""
    signal: list[Signal]
    turn: list[int | None]
    value: list[bytes | None]
    number: list[float | None]
    absent: list[str | None]
    absent_detail: list[str | None]
    detail: list[bytes | None]


def signal_rows(session: Session | None, results: list[Result]) -> SignalRows:
    """Computed values in the long form: of a session, of an eval run's attempt, or (None) of the whole store."""
    encode = msgspec.json.encode
    attempt = session.attempt if session is not None else None
    values = [r.value for r in results]
    kinds = [*map(type, values)]
    return SignalRows(
        session_id=session.session_id if session is not None else None,
        trial_id=attempt.trial_id if attempt is not None else None,
        attempt_index=attempt.attempt_index if attempt is not None else None,
        whole="attempt" if attempt is not None else "session",
        signal=[r.signal for r in results],
        turn=[r.turn for r in results],
        value=[None if k is Absent else encode(v) for v, k in zip(values, kinds, strict=True)],
        number=[float(v) if k in _NUMBERS else None for v, k in zip(values, kinds, strict=True)],
        absent=[v.reason if k is Absent else None for v, k in zip(values, kinds, strict=True)],
        absent_detail=[v.detail or None if k is Absent else None for v, k in zip(values, kinds, strict=True)],
        detail=[encode(r.detail) if r.detail else None for r in results],
    )


def signal_table(rows: Sequence[SignalRows]) -> pa.Table:
    """The table of these values, in their order."""
    schema = arrow_tables.SCHEMAS["signals"]
    signals = list({s.path: s for r in rows for s in r.signal}.values())
    places = {s.path: place for place, s in enumerate(signals)}
    place = pa.array([places[s.path] for r in rows for s in r.signal], pa.int32())
    paths, versions = (
        pa.array([s.path for s in signals], pa.string()),
        pa.array([s.version for s in signals], pa.int64()),
    )
    counts = [len(r.signal) for r in rows]
    columns: dict[str, Any] = {
        "level": arrow_tables.array(_levels(rows), pa.string()),
        **{
            name: arrow_tables.repeated([getattr(r, name) for r in rows], counts, schema.field(name).type)
            for name in ("session_id", "trial_id", "attempt_index")
        },
        **{
            name: arrow_tables.array([v for r in rows for v in getattr(r, name)], schema.field(name).type)
            for name in ("turn", "value", "number", "absent", "absent_detail", "detail")
        },
        "signal": parquet.taken(paths, place),
        "version": parquet.taken(versions, place),
    }
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def _levels(rows: Sequence[SignalRows]) -> list[str]:
    return [
        "turn" if turn is not None else r.whole if signal.level in _OF_A_SESSION else signal.level
        for r in rows
        for signal, turn in zip(r.signal, r.turn, strict=True)
    ]
