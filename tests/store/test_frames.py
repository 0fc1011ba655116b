"""The frames that readers of agent-traces know, over a store of tiny sessions."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from agentsignals.errors import QueryError
from agentsignals.model.prices import maker
from agentsignals.store import Store
from tests.build import call, say, session, think, user
from tests.questions.stores import store_of


@pytest.fixture
def store(tmp_path: Path) -> Store:
    person = session(
        user("fix it"), think("hm"), say("on it", model="claude-opus-4-5", input_tokens=10, output_tokens=5),
        call("Bash", command="make"), user("/x", "slash_command"), user("thanks"), session_id="person", repo="o/r",
    )  # fmt: skip
    short = session(user("hello"), session_id="short")
    run = session(user("solve the task"), session_id="run")
    run.context = "eval"
    return store_of(tmp_path / "s", person, short, run)


def test_user_messages_have_the_columns_of_the_published_data_set(store: Store) -> None:
    found = store.user_messages()
    assert found.columns[:11] == [
        "session_id", "turn", "nTurns", "normPos", "model", "provider", "agent", "cost_total_sum", "n_events",
        "n_tool_calls", "content_text",
    ]  # fmt: skip
    assert len(found.columns) == 18
    assert found.select("session_id", "turn", "nTurns", "normPos", "content_text").rows() == [
        ("person", 1, 3, 0.0, "fix it"),
        ("person", 2, 3, 0.5, "/x"),
        ("person", 3, 3, 1.0, "thanks"),
        ("short", 1, 1, 0.0, "hello"),
    ]
    first = found.row(0, named=True)
    cost = store.sessions().filter(pl.col("session_id") == "person")["cost_usd"][0]
    assert (first["model"], first["provider"], first["n_tool_calls"], first["repo"]) == (
        "claude-opus-4-5", "anthropic", 1, "o/r",
    )  # fmt: skip
    assert first["cost_total_sum"] == cost > 0
    assert found.row(3, named=True)["provider"] is None


def test_prompts_of_eval_runs_come_only_when_asked_for(store: Store) -> None:
    assert "run" not in set(store.user_messages()["session_id"])
    assert store.user_messages("eval")["content_text"].to_list() == ["solve the task"]
    assert len(store.user_messages(None)) == 5


def test_the_autonomy_ratio_of_the_blog_can_be_computed_from_it(store: Store) -> None:
    """Claim 6 of agent-traces: n_tool_calls over nTurns, per session and over all."""
    one = store.user_messages().unique("session_id")
    assert one["n_tool_calls"].sum() / one["nTurns"].sum() == 0.25


def test_content_is_who_said_what_in_order(store: Store) -> None:
    found = store.content("product").filter(pl.col("session_id") == "person")
    assert found.select("turn", "role", "content_type", "tool").rows() == [
        (1, "user", "human_turn", None),
        (1, "assistant", "thinking", None),
        (1, "assistant", "text", None),
        (1, "assistant", "tool_call", "Bash"),
        (1, "tool", "tool_result", None),
        (2, "user", "human_turn", None),
        (3, "user", "human_turn", None),
    ]
    texts = found["content_text"].to_list()
    assert texts[2:5] == ["on it", '{"command": "make"}', "ok"]
    assert found["n_chars"].to_list() == [len(text) for text in texts]


def test_events_and_tool_calls_are_the_tables(store: Store) -> None:
    assert len(store.events()) == store.sql("SELECT count(*) FROM events").fetchall()[0][0]
    assert store.tool_calls()["name"].to_list() == ["Bash"]
    with pytest.raises(QueryError, match="no table"):
        store.frame("weather")


def test_a_store_without_a_session_gives_frames_without_a_row(tmp_path: Path) -> None:
    empty = Store(tmp_path / "empty", create=True)
    assert empty.user_messages().shape == (0, 18) and len(empty.content()) == len(empty.events()) == 0
    assert empty.user_messages().schema["provider"] == pl.String


@pytest.mark.parametrize(
    ("model", "who"),
    [
        ("claude-opus-4-5-20251101", "anthropic"), ("us.anthropic.claude-sonnet-4-v1:0", "anthropic"),
        ("openrouter/anthropic/claude-3-opus", "anthropic"), ("Claude Opus 4.6", "anthropic"),
        ("gpt-5.3-codex", "openai"),
        ("o3", "openai"), ("o4-mini", "openai"), ("openrouter/moonshotai/kimi-k2.5", "moonshot"),
        ("zai-org/GLM-5.1", "zai"), ("gemini-3-flash-preview", "google"), ("olive-1", None), ("my-claude", None),
        ("", None),
    ],
)  # fmt: skip
def test_the_maker_is_told_by_how_the_name_begins(model: str, who: str | None) -> None:
    assert maker(model) == who
