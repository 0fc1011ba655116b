"""Findings that many studies make of a signal: its median over sessions, and its value over all sessions together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import fsum
from typing import Any

from agentsignals.analysis import rows as sql
from agentsignals.analysis.study import Finding, Inputs, Kind, Row, again
from agentsignals.stats.estimates import Interval, median, median_interval, ratio_interval, share_interval, wilson

MOST_AGENTS = 5
"""Agents told apart by colour; the rest are drawn as one."""


def of_signal(inputs: Inputs, path: str, rows: str = "values") -> list[Row]:
    """The rows of one signal, sessions without a value included."""
    return [row for row in inputs.rows[rows] if row["signal"] == path]


def numbers(inputs: Inputs, path: str, rows: str = "values") -> list[float]:
    """The numbers of one signal, of the sessions that have one."""
    return [row["number"] for row in of_signal(inputs, path, rows) if row["number"] is not None]


def parts(rows: Iterable[Row], num: str = "num", den: str = "den") -> list[tuple[float, float]]:
    """Numerator and denominator of each session that has them."""
    return [(row[num], row[den]) for row in rows if row[num] is not None and row[den]]


def of_parts(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Sum over sum; None when there is nothing to divide by."""
    below = fsum(b for _, b in pairs)
    return fsum(a for a, _ in pairs) / below if below else None


def median_finding(inputs: Inputs, path: str, **fields: Any) -> Finding:
    """The median of a signal over the sessions that have it. `fields`: id, title, unit, kind and what else is known."""
    values = numbers(inputs, path)
    return Finding(
        value=median(values),
        n=len(values),
        of="sessions",
        interval=median_interval(values),
        signals=(path,),
        command=again(sql.number_of(path)),
        **{"kind": "number", "note": _without(inputs, path), **fields},
    )


def pooled_finding(inputs: Inputs, path: str, of: str, share: bool = True, **fields: Any) -> Finding:
    """A ratio signal over all sessions together. `share`: the numerator is part of the denominator."""
    pairs = parts(of_signal(inputs, path))
    interval = share_interval(pairs) if share else ratio_interval(pairs)
    kind: Kind = "share" if share else "number"
    sessions = f"over {len(pairs):,} sessions" if pairs else _without(inputs, path)
    note = fields.pop("note", "")
    return Finding(
        value=of_parts(pairs),
        n=int(sum(b for _, b in pairs)),
        of=of,
        interval=interval,
        signals=(path,),
        command=again(sql.pooled(path)),
        note="; ".join(part for part in (sessions, note) if part),
        **{"kind": kind, **fields},
    )


def share_finding(k: int, n: int, **fields: Any) -> Finding:
    """The share of sessions that have a property; sessions are taken as independent."""
    interval: Interval | None = wilson(k, n)
    return Finding(value=k / n if n else None, n=n, interval=interval, **{"kind": "share", "of": "sessions", **fields})


def _without(inputs: Inputs, path: str) -> str:
    """Why sessions are missing from a signal, most frequent reason first."""
    reasons = Counter(row["absent"] for row in of_signal(inputs, path) if row["absent"])
    if not reasons:
        return ""
    return "no value: " + ", ".join(f"{n:,} {reason.replace('_', ' ')}" for reason, n in reasons.most_common())


def agents_in_order(rows: Iterable[Row]) -> list[str]:
    """The agents of rows that are one a session, most sessions first."""
    counted = Counter(row["agent"] for row in rows)
    return sorted(counted, key=lambda agent: (-counted[agent], agent))
