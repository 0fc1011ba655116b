"""The prompts of a store that can have a topic."""

from __future__ import annotations

from agentsignals.analysis.places import by_session
from agentsignals.analysis.prompt_words import Kept
from agentsignals.analysis.rows import WHERE_EACH_LIES
from agentsignals.store import Store
from agentsignals.store.query import rows

_LANGUAGE = "chat.prompt_language"


def kept_prompts(store: Store, where: str) -> tuple[int, Kept]:
    """How many prompts the sessions have that meet an SQL condition over `sessions`, and those of them that are
    compared. Prompts of eval runs are nobody's words."""
    chosen = f"(SELECT session_id FROM sessions WHERE ({where})) AND context <> 'eval'"  # noqa: S608  (the person's SQL)
    asked = (
        "SELECT turns.session_id, turns.turn, turns.text, json_extract_string(told.value, '') AS language FROM turns"  # noqa: S608
        " JOIN sessions USING (session_id) LEFT JOIN (SELECT session_id, turn, value FROM signals WHERE signal ="
        f" '{_LANGUAGE}' AND absent IS NULL) AS told ON told.session_id = turns.session_id AND told.turn = turns.turn"
        f" WHERE turns.kind IN ('prompt', 'queued_prompt') AND turns.session_id IN {chosen} ORDER BY ALL"
    )
    prompts = _dicts(store, asked)
    places = by_session(_dicts(store, WHERE_EACH_LIES))
    return len(prompts), Kept(prompts, places)


def _dicts(store: Store, asked: str) -> list[dict[str, object]]:
    names, values = rows(store, asked)
    return [dict(zip(names, row, strict=True)) for row in values]
