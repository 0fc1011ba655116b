"""What to label next: what labellers differ about or were unsure of, then class by class and project by project, what
a classifier is least sure of first, and projects first where people labelled least.

No sample: what is easy to agree on comes late, so figures over these labels say nothing of all messages. A sample
that does is `human_labels.sample`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agentsignals.labels.agree import Place, places_of
from agentsignals.labels.gold import GoldRow
from agentsignals.labels.gold_file import Key
from agentsignals.labels.human_labels import UNSURE
from agentsignals.labels.task import Task
from agentsignals.labels.units import SPOKEN
from agentsignals.store import Store

MOST = 5_000
"""Things of a plan: more than anybody labels at a sitting."""
_TURNS = f"""
SELECT t.session_id, t.turn, s.repo FROM turns t JOIN sessions s USING (session_id)
WHERE s.context <> 'eval' AND t.kind IN ({", ".join(f"'{kind}'" for kind in sorted(SPOKEN))})
  AND trim(t.text) <> '' AND t.turn + 1 >= $least
"""  # noqa: S608  (kinds of ours)
_SESSIONS = """
SELECT s.session_id, NULL::BIGINT AS turn, s.repo FROM sessions s
WHERE s.context <> 'eval' AND s.n_prompts >= $least
"""
_PLAN = """
SELECT p.session_id, p.turn FROM ({things}) p LEFT JOIN (
  SELECT session_id, turn, min(value) AS class, count(DISTINCT value) > 1
    OR bool_or(detail = $unsure) IS TRUE AS contested, bool_or(starts_with(labeller, 'human:')) AS labelled,
    min(TRY_CAST(regexp_extract(detail, '"probability": ?([0-9.]+)', 1) AS DOUBLE)) AS sureness
  FROM labels WHERE task = $task AND seq IS NULL GROUP BY 1, 2
) l ON l.session_id = p.session_id AND l.turn IS NOT DISTINCT FROM p.turn
ORDER BY coalesce(contested, false) DESC,
  row_number() OVER (
    PARTITION BY coalesce(contested, false), class, repo ORDER BY sureness NULLS LAST, {drawn}),
  count(*) FILTER (labelled) OVER (PARTITION BY repo), {drawn} LIMIT $most
"""
_DRAWN = "md5(concat_ws('/', p.session_id, p.turn))"
"""An order without meaning that is the same in every run."""


def of_store(rows: Callable[[str, dict[str, Any]], list[dict[str, Any]]], task: Task) -> list[Place]:
    """Things of people's sessions, in the order to label them. Each class by whatever label there is, of each
    repository, comes once before any comes twice, so that rare classes and small projects are seen early."""
    asked = _PLAN.format(things=_TURNS if task.level == "turn" else _SESSIONS, drawn=_DRAWN)
    return [
        (row["session_id"], row["turn"])
        for row in rows(asked, {"task": task.name, "least": task.min_turns, "most": MOST, "unsure": UNSURE})
    ]


def asks(rows: Mapping[Key, GoldRow]) -> bool:
    """Whether a file asks about its rows: drawn ones (`--export-gold`) or such as are to be settled (`agree --settle`);
    not where it only holds what was labelled as it came."""
    return any(row.label is None or row.weight is not None or row.by_labeller for row in rows.values())


def of_file(store: Store, rows: Mapping[Key, GoldRow]) -> dict[Place, Key]:
    """The things that a file asks about, in its order, by where they are in the store."""
    placed = places_of(store, list(rows.values()))
    return {place: (row.session_id, row.turn) for row, place in placed if not isinstance(place, str)}
