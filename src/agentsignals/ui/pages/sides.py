"""Two sessions or attempts side by side: what is known of each, how their signals differ, what each did when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentsignals.questions.alignment import BECAUSE, FACTS, OF_TASK, OF_TRIAL, Facing, align, reference_of
from agentsignals.signals.catalog import catalogue
from agentsignals.ui.page import Page, Query, Route
from agentsignals.ui.snapshot import WITH_PROMPT, Reading

MOST_SIGNALS = 60
"""Differences that are listed, those furthest apart first."""
MOST_RUNS = 20
"""Attempts at a task that are aligned for a page, first attempts first."""
MOST_SHOWN = 1500
"""Rows of steps on the page."""
ENDS = 5
"""Rows that are shown of each end of a stretch in which both do the same."""
_FACTS = " ".join(
    (
        "SELECT s.*, left(prompt, 400) AS prompt, a.task_id, a.trial_id AS trial, a.attempt_index AS attempt,",
        "a.outcome, a.reward, a.patch_outcome_label, a.wall_time_s, a.exit_status,",
        "a.effective_tool_cap, a.model_id, a.agent_type",
        "FROM sessions s",
        WITH_PROMPT,
        "LEFT JOIN (SELECT * EXCLUDE (trial_id, attempt_index), trial_id, attempt_index FROM attempts) a",
        "USING (session_id) WHERE session_id = $session",
    )
)
_NEAR = " ".join(
    (
        "WITH all_of AS (SELECT s.session_id, context, agent, model, title, started_at, left(prompt, 300) AS prompt,",
        "CASE WHEN context = 'eval' THEN task_id ELSE coalesce(repo, cwd) END AS place FROM sessions s",
        WITH_PROMPT,
        "LEFT JOIN (SELECT session_id, task_id FROM attempts) USING (session_id))",
        "SELECT o.* FROM all_of o JOIN all_of t ON t.session_id = $session AND o.place = t.place",
        "AND o.context = t.context AND o.session_id <> t.session_id",
        "ORDER BY abs(epoch(o.started_at) - epoch(t.started_at)) NULLS LAST, o.session_id LIMIT 15",
    )
)
_NUMBERS = """
WITH pair AS (
  SELECT signal, max(number) FILTER (session_id = $a) AS a, max(number) FILTER (session_id = $b) AS b,
    max(value) FILTER (session_id = $a) AS a_value, max(value) FILTER (session_id = $b) AS b_value
  FROM signals WHERE session_id IN ($a, $b) AND turn IS NULL AND level <> 'corpus' AND isfinite(number)
  GROUP BY signal HAVING a <> b
)
SELECT signal, any_value(a) AS a, any_value(b) AS b, any_value(a_value) AS a_value, any_value(b_value) AS b_value,
  count(*) AS n,
  avg(CASE WHEN number < greatest(a, b) THEN 1.0 WHEN number = greatest(a, b) THEN 0.5 ELSE 0 END)
  - avg(CASE WHEN number < least(a, b) THEN 1.0 WHEN number = least(a, b) THEN 0.5 ELSE 0 END) AS apart
FROM pair JOIN signals USING (signal)
WHERE turn IS NULL AND level <> 'corpus' AND isfinite(number) GROUP BY signal ORDER BY apart DESC, signal
"""
"""How far apart two numbers lie: the share of the store's sessions between them, those at an end counted by half."""
_WORDS = """
SELECT signal, max(value) FILTER (session_id = $a) AS a_value, max(value) FILTER (session_id = $b) AS b_value
FROM signals WHERE session_id IN ($a, $b) AND turn IS NULL AND level <> 'corpus' AND number IS NULL AND absent IS NULL
GROUP BY signal HAVING a_value <> b_value ORDER BY signal
"""


def page(reading: Reading, query: Query) -> Page:
    """The sessions that `a` and `b` name; or the attempts at a `task`, or of a `trial`, beside one of them."""
    ids = [query.text("a"), query.text("b")]
    if not any(ids) and (query.text("task") or query.text("trial")):
        return _of_task(reading, query)
    if not all(ids):
        return Page("pair.html.j2", "Side by side", {"query": query, "near": _near(reading, ids[0]) if ids[0] else []})
    facts = []
    for session_id in ids:
        facts += reading.rows(_FACTS, {"session": reading.store.resolve(session_id)})
    pair = {"a": facts[0]["session_id"], "b": facts[1]["session_id"]}
    context = facts[0]["context"] if facts[0]["context"] == facts[1]["context"] else ""
    declared = {signal.path: signal for signal in catalogue().values()}
    seen = context if reading.contexts - {context} else ""
    numbers = [row for row in reading.rows(_NUMBERS, pair, seen) if row["signal"] in declared]
    words = [row for row in reading.rows(_WORDS, pair) if row["signal"] in declared]
    [alignment] = align([reading.store.session(side) for side in pair.values()], {})
    rows = shown(alignment.rows)
    filled = {
        "sides": facts,
        "names": _told_apart(facts),
        "alignment": alignment,
        "rows": rows,
        "listed": {number for number, _ in rows},
        "because": BECAUSE,
        "is_cut": bool(rows) and rows[-1][0] < len(alignment.rows) and not isinstance(rows[-1][1], int),
        "numbers": numbers[:MOST_SIGNALS],
        "more_numbers": max(len(numbers) - MOST_SIGNALS, 0),
        "words_apart": words[:MOST_SIGNALS],
        "declared": declared,
        "query": query,
        "others": _others(reading, facts),
    }
    return Page("sides.html.j2", "Side by side", filled)


def _of_task(reading: Reading, query: Query) -> Page:
    """Where each attempt parts from one that solved the task, or from the first attempt of the trial."""
    task, trial = query.text("task"), query.text("trial")
    rows = reading.rows(OF_TASK if task else OF_TRIAL, {"name": task or trial})
    ids = [row["session_id"] for row in rows]
    facts = {row["session_id"]: row for row in reading.rows(FACTS, {"ids": ids})}
    sessions = [reading.store.session(session_id) for session_id in ids[:MOST_RUNS]]
    if task and sessions:
        reference = reference_of(sessions, facts)
        sessions = [reference, *(session for session in sessions if session is not reference)]
    filled = {
        "of": task or trial,
        "is_task": bool(task),
        "alignments": align(sessions, facts) if len(sessions) > 1 else [],
        "is_cut": len(ids) > MOST_RUNS,
        "because": BECAUSE,
        "query": query,
    }
    return Page("sides_of_task.html.j2", "Attempts side by side", filled)


def _near(reading: Reading, session_id: str) -> list[dict[str, Any]]:
    """Sessions to put beside this one: attempts at its task, or those of its place, nearest in time first."""
    return reading.rows(_NEAR, {"session": reading.store.resolve(session_id)})


def shown(rows: Sequence[Facing]) -> list[tuple[int, Facing | int]]:
    """The rows by number from 1, at most `MOST_SHOWN`: of a long stretch in which both do the same its ends, and
    between them how many are left out."""
    listed: list[tuple[int, Facing | int]] = []
    at = 0
    while at < len(rows) and len(listed) < MOST_SHOWN:
        end = at
        while end < len(rows) and rows[end].how == "same":
            end += 1
        if end - at > 2 * ENDS + 1:
            listed += [(n + 1, rows[n]) for n in range(at, at + ENDS)]
            listed.append((at + ENDS + 1, end - at - 2 * ENDS))
            listed += [(n + 1, rows[n]) for n in range(end - ENDS, end)]
            at = end
        else:
            listed.append((at + 1, rows[at]))
            at += 1
    return listed


def _told_apart(facts: list[dict[str, Any]]) -> list[str]:
    """What each is called, in a word or two: what differs between them first."""
    for keys in (("agent",), ("model",), ("attempt",), ("session_id",)):
        names = [str(side[key]) for side in facts for key in keys if side[key] is not None]
        if len(set(names)) == len(facts):
            return [f"attempt {int(name) + 1}" if keys == ("attempt",) else name for name in names]
    return ["a", "b"]


def _others(reading: Reading, facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Further attempts at the task of the first, to put beside it."""
    if facts[0]["task_id"] is None:
        return []
    asked = """
    SELECT session_id, coalesce(model_id, agent_type, '') AS who, attempt_index FROM attempts
    WHERE task_id = $task AND NOT list_contains($shown, session_id) ORDER BY who, attempt_index, session_id LIMIT 20
    """
    return reading.rows(asked, {"task": facts[0]["task_id"], "shown": [side["session_id"] for side in facts]})


PAGES = (Route(("sides",), page, below="/sessions"),)
