"""Attempts as they are compared: under which treatment, at which task, with what outcome. Rows in, structs out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agentsignals.analysis.compare.outcome import OUTCOME, OutcomeRule, decoded, is_number
from agentsignals.analysis.study import Kind, Row

MEASURES: dict[str, tuple[str, Kind]] = {
    "cost_usd": ("tokens.cost_usd", "usd"),
    "input_tokens": ("tokens.input_tokens_total", "tokens"),
    "output_tokens": ("tokens.output_tokens_total", "tokens"),
    "turns": ("behavior.turn_count", "count"),
    "tool_calls": ("behavior.tool_call_count", "count"),
    "wall_time_s": ("infra.wall_time_s", "seconds"),
}
"""What an attempt took, by the name here: its signal, and how it is written."""
COLUMNS = (
    "model_id",
    "agent_type",
    "attempt1_tool_cap",
    "retry_tool_cap",
    "effective_tool_cap",
    "timeout_s",
    "concurrency",
    "dataset",
    "run_id",
    "format",
    "agent_version",
)
"""Columns of attempts and their sessions by which candidates may be told apart; any knob may, too."""
TIME = "wall_time_s"
_LONGEST = 160
_NOT_EVALUATED = "nothing of this candidate was evaluated"


class Tried(Struct, frozen=True, gc=False, kw_only=True):
    """One attempt."""

    session_id: str
    trial: str
    index: int
    task: str | None
    dataset: str | None
    treatment: dict[str, str]
    """Columns and knobs by name, as text; what is not recorded is not there."""
    outcome: float | None
    why: str
    """Why there is no outcome."""
    rung: str = ""
    """Of the ladder of outcomes (`verification.outcome`); empty where it was not measured."""
    reason: str = ""
    """Of the rung: what failed, or broke."""
    inferred: bool = False
    """No verifier said so."""
    measures: dict[str, float | str]
    """By the name in MEASURES: the number, or why there is none."""
    at_least: frozenset[str] = frozenset()
    """Those of them that are lower bounds."""
    clock: str = ""
    """By what the wall time was taken: the harness's, or first to last time stamp, which is another time."""


def queries(rule: OutcomeRule, where: str = "true") -> dict[str, str]:
    """SQL over the store's tables by the name `tried_of` uses. `where`: a person's own condition."""
    wanted = ", ".join(
        f"'{path}'" for path in {rule.signal: 0, OUTCOME: 0, **{path: 0 for path, _ in MEASURES.values()}}
    )
    columns = ", ".join(f"a.{c}" for c in COLUMNS if c not in ("model_id", "agent_type", "format", "agent_version"))
    chosen = (
        "SELECT session_id FROM sessions JOIN (SELECT * EXCLUDE (trial_id, attempt_index) FROM attempts)"
        f" USING (session_id) WHERE ({where})"
    )
    return {
        "attempts": "SELECT a.session_id, a.trial_id, a.attempt_index, a.task_id, a.knobs, s.format, s.agent_version,"
        " a.facts->>'$.root' AS root,"
        f" coalesce(a.agent_type, s.agent) AS agent_type, coalesce(a.model_id, s.model) AS model_id, {columns}"
        " FROM attempts a JOIN sessions s USING (session_id)"
        f" WHERE session_id IN ({chosen}) ORDER BY session_id",
        "values": "SELECT session_id, signal, value, absent, absent_detail, detail FROM signals"
        f" WHERE level = 'attempt' AND signal IN ({wanted}) AND session_id IN ({chosen})",
    }


def tried_of(rule: OutcomeRule, rows: Mapping[str, list[Row]]) -> list[Tried]:
    """The attempts of these rows, in the order of their sessions' ids."""
    by_session: dict[str, dict[str, Row]] = {}
    for row in rows["values"]:
        by_session.setdefault(row["session_id"], {})[row["signal"]] = row
    return [_tried(rule, row, by_session.get(row["session_id"], {})) for row in rows["attempts"]]


def _tried(rule: OutcomeRule, row: Row, values: Mapping[str, Row]) -> Tried:
    rung, reason, inferred = _rung(values.get(OUTCOME))
    outcome = rule.of_attempt(*_value(values.get(rule.signal)), rung, reason)
    measures: dict[str, float | str] = {}
    for name, (path, _) in MEASURES.items():
        value, why = _value(values.get(path))
        measures[name] = float(value) if is_number(value) else why
    return Tried(
        session_id=row["session_id"],
        trial=row["trial_id"] or row["session_id"],
        index=row["attempt_index"] or 0,
        task=row["task_id"],
        dataset=row["dataset"],
        treatment=_treatment(row),
        outcome=outcome if isinstance(outcome, float) else None,
        why=outcome if isinstance(outcome, str) else "",
        measures=measures,
        at_least=frozenset(name for name, (path, _) in MEASURES.items() if _details(values.get(path)).get("at_least")),
        clock=str(_details(values.get(MEASURES[TIME][0])).get("method", ""))[:_LONGEST],
        rung=rung,
        reason=reason,
        inferred=inferred,
    )


def _value(row: Row | None) -> tuple[Any, str]:
    if row is None:
        return None, "not measured"
    if row["absent"]:
        detail = f": {row['absent_detail']}" if row["absent_detail"] else ""
        return None, f"{row['absent']}{detail}"[:_LONGEST]
    return decoded(row["value"]), "no number"


def _rung(row: Row | None) -> tuple[str, str, bool]:
    value, _ = _value(row)
    if not isinstance(value, str):
        return "", "", False
    detail = _details(row)
    return value, str(detail.get("reason", ""))[:_LONGEST], detail.get("inferred") is True


def _details(row: Row | None) -> dict[str, Any]:
    detail = decoded(row.get("detail")) if row is not None else None
    return detail if isinstance(detail, dict) else {}


def evaluated(attempts: Sequence[Tried]) -> list[Tried]:
    """The attempts of a candidate; those that failed by inference alone (no patch, no time left) as not judged where
    no verifier spoke of any of them: only failures could be known, and the rate would be 0."""
    if any(o.outcome is not None and not o.inferred for o in attempts):
        return list(attempts)
    return [
        replace(o, outcome=None, why=_NOT_EVALUATED, rung="not_judged", reason=_NOT_EVALUATED)
        if o.inferred and o.outcome is not None
        else o
        for o in attempts
    ]


def _treatment(row: Row) -> dict[str, str]:
    treatment = {name: _text(row[name]) for name in COLUMNS if row[name] not in (None, "")}
    knobs = decoded(row["knobs"])
    stated = knobs if isinstance(knobs, dict) else {}
    for name, value in (*stated.items(), *row.get("mapped", {}).items()):
        treatment.setdefault(name, _text(value))
    return treatment


def _text(value: Any) -> str:
    """A setting as text, the same however its file writes it; one that is set to nothing is told from one nobody
    recorded."""
    if value is None:
        return "none"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    elif isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = sorted(value)
    return value if isinstance(value, str) else msgspec.json.encode(value, order="deterministic").decode()
