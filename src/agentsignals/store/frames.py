"""The store as Polars frames (extra `frames`): tables and views, and the frames that readers of agent-traces know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentsignals.errors import QueryError, StoreError
from agentsignals.model.model_names import maker
from agentsignals.signals.catalog import caption
from agentsignals.store.query import NAMES, run, with_connection

if TYPE_CHECKING:
    from agentsignals.store import Store

try:
    import polars as pl
except ImportError as problem:
    raise StoreError(
        f"Frames need Polars, which can't be loaded: {problem}.",
        "Install it: pip install 'agentsignals[frames]'; `store.sql(…)` does without it.",
    ) from problem

_CONTENT = """
    SELECT session_id, seq, events.turn + 1 AS turn, events.thread,
        CASE WHEN kind = 'human_turn' THEN 'user' WHEN kind IN ('text', 'thinking', 'tool_call') THEN 'assistant'
            WHEN kind = 'tool_result' THEN 'tool' ELSE 'system' END AS role,
        kind AS content_type, coalesce(text, arguments) AS content_text,
        CASE WHEN text IS NULL THEN length(arguments) ELSE n_chars END AS n_chars, name AS tool, timestamp
    FROM events LEFT JOIN tool_calls USING (session_id, seq)
    WHERE coalesce(text, arguments, '') <> '' ORDER BY session_id, seq
"""
_USER_MESSAGES = """
    SELECT session_id, turn + 1 AS turn, n_turns AS "nTurns",
        CASE WHEN n_turns > 1 THEN turn / (n_turns - 1) ELSE 0.0 END AS "normPos",
        coalesce(turns.model, sessions.model) AS model, agent, cost_usd AS cost_total_sum, n_events, n_tool_calls,
        text AS content_text, turns.timestamp, kind, repo, source AS source_dataset, sessions.format, context,
        visible_output_tokens IS NOT NULL AS cost_at_least
    FROM turns JOIN sessions USING (session_id) LEFT JOIN artifacts USING (artifact_id) ORDER BY session_id, turn
"""


def frame(store: Store, table: str, context: str | None = None) -> pl.DataFrame:
    """Return a table or view, whole or of one context; `signals` with how often each is right. QueryError for an
    unknown table."""
    if table not in NAMES:
        raise QueryError(f"There is no table {table!r}.", f"The tables are: {', '.join(NAMES)}.")
    rows = _frame(store, f'SELECT * FROM "{table}"', context)  # noqa: S608  (one of the tables' names)
    if table != "signals":
        return rows
    captions = {path: caption(path) for path in rows["signal"].unique()}
    return rows.with_columns(pl.Series("validation", [captions[path] for path in rows["signal"]], pl.String))


def content(store: Store, context: str | None = None) -> pl.DataFrame:
    """Return one row an event with text, with the role that said it."""
    return _frame(store, _CONTENT, context)


def user_messages(store: Store, context: str | None = None) -> pl.DataFrame:
    """Return one row a human turn, in the columns of agent-traces's data set; see `Store.user_messages`."""
    messages = _frame(store, _USER_MESSAGES, context)
    makers = {name: maker(name) for name in messages["model"].unique() if name is not None}
    provider = pl.Series("provider", [makers.get(name) for name in messages["model"]], pl.String)
    return messages.insert_column(messages.columns.index("model") + 1, provider)


def _frame(store: Store, query: str, context: str | None) -> pl.DataFrame:
    made: pl.DataFrame = with_connection(store, lambda connection: run(connection, query).pl(), context)
    return made
