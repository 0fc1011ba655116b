"""Findings that many studies make of a signal: its median over sessions, and its value over all sessions together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from agentsignals.analysis import rows as sql
from agentsignals.analysis.clusters import placed_median, placed_ratio, placed_share
from agentsignals.analysis.grouped import Estimate, ranked
from agentsignals.analysis.study import Finding, Inputs, Kind, Row

MOST_AGENTS = 5
"""Agents told apart by colour; the rest are drawn as one."""


def of_signal(inputs: Inputs, path: str, rows: str = "values") -> list[Row]:
    """The rows of one signal: a session with a value each."""
    return [row for row in inputs.rows[rows] if row["signal"] == path]


def numbers(inputs: Inputs, path: str, rows: str = "values") -> list[tuple[str, float]]:
    """The sessions that have a number of one signal, each with it."""
    return [(row["session_id"], row["number"]) for row in of_signal(inputs, path, rows) if row["number"] is not None]


def pooled(
    rows: Iterable[Row], places: Mapping[str, str], num: str = "num", den: str = "den", *, is_share: bool = True
) -> Estimate:
    """The sum of a ratio's numerators over that of its denominators, of the sessions that have both. `is_share`: the
    numerator is part of the denominator. Rows: session_id and the two."""
    parts = [(row["session_id"], row[num], row[den]) for row in rows if row[num] is not None and row[den]]
    return (placed_share if is_share else placed_ratio)(parts, places)


def median_finding(
    inputs: Inputs,
    path: str,
    id: str,  # noqa: A002  (the finding's field)
    title: str,
    *,
    kind: Kind = "number",
    **more: Any,
) -> Finding:
    """The median of a signal over the sessions that have it. `more`: its unit, and what else there is to say."""
    note = more.pop("note", _without(inputs, path))
    estimate = placed_median(numbers(inputs, path), inputs.places, kind)
    return estimate.finding(id, title, "sessions", note, sql=sql.number_of(path), signals=(path,), **more)


def pooled_finding(  # noqa: PLR0913  (a finding's words, in the order they are read)
    inputs: Inputs,
    path: str,
    id: str,  # noqa: A002  (the finding's field)
    title: str,
    of: str,
    note: str = "",
    *,
    is_share: bool = True,
    **more: Any,
) -> Finding:
    """A ratio signal over all sessions together. `is_share`: the numerator is part of the denominator."""
    rows = [row for row in of_signal(inputs, path) if row["num"] is not None and row["den"]]
    sessions = f"over {len(rows):,} sessions" if rows else _without(inputs, path)
    notes = "; ".join(part for part in (sessions, note) if part)
    together = pooled(rows, inputs.places, is_share=is_share)
    return together.finding(id, title, of, notes, sql=sql.pooled(path), signals=(path,), **more)


def _without(inputs: Inputs, path: str) -> str:
    """Why sessions are missing from a signal, most frequent reason first."""
    reasons = [f"{row['n']:,} {row['absent'].replace('_', ' ')}" for row in of_signal(inputs, path, "absent")]
    return f"no value: {', '.join(reasons)}" if reasons else ""


def agents_in_order(rows: Iterable[Row]) -> list[str]:
    """The agents of rows that are one a session, most sessions first."""
    return [agent for agent, _ in ranked(Counter(row["agent"] for row in rows))]
