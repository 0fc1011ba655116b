"""One ledger: whatever a session used is in `steps`, and every other figure of tokens and money sums to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentsignals.ingest import pipeline
from agentsignals.ingest.measure import explain
from agentsignals.model import SESSION_TOTAL, Session
from agentsignals.model.prices import apply
from agentsignals.store import Store
from agentsignals.store.tables import totals
from tests.claude import SESSION, Log
from tests.formats import pi_entries
from tests.formats.copilot_events import event, metrics, one, says, shutdown, start
from tests.model.test_prices import step
from tests.questions.stores import rows_of as ask

USED = {"input_tokens": 10, "output_tokens": 100, "cache_read_input_tokens": 1000, "cache_creation_input_tokens": 200}


def answers(log: Log, **usage: object) -> None:
    message = {"model": "claude-opus-4-8", "id": f"msg_{log.name}", "content": [{"type": "text", "text": "done"}]}
    log.record("assistant", message={**message, "usage": usage, "stop_reason": "end_turn"})


def priced(session: Session) -> dict[str, Any]:
    apply(session)
    return totals(session)


# -- main thread, subagents, branches --------------------------------------------------------------------------------


@pytest.fixture(name="folder")
def with_subagent(tmp_path: Path) -> Path:
    """A session with a subagent's log, and the note of its kind beside that."""
    main = Log()
    main.user("review it")
    answers(main, **USED)
    side = Log(name="sub")
    side.base |= {"isSidechain": True, "agentId": "abc"}
    side.user("Review it")
    answers(side, **{**USED, "output_tokens": 20_000})
    folder = tmp_path / "in" / SESSION / "subagents"
    folder.mkdir(parents=True)
    (tmp_path / "in" / f"{SESSION}.jsonl").write_bytes(main.data())
    (folder / "agent-abc.jsonl").write_bytes(side.data())
    (folder / "agent-abc.meta.json").write_text('{"agentType": "general-purpose"}')
    return tmp_path


def test_sessions_report_and_signals_sum_to_the_steps(folder: Path) -> None:
    summary = pipeline.analyze([str(folder / "in")], folder / "s", jobs=1)
    (row,) = ask(folder / "s", "FROM sessions")
    (whole,) = ask(folder / "s", "SELECT sum(cost_usd) AS usd, sum(output_tokens) AS tokens FROM steps")
    assert (row["cost_usd"], row["output_tokens"]) == (pytest.approx(whole["usd"]), whole["tokens"])
    assert row["cost_usd"] == pytest.approx(row["main_cost_usd"] + row["subagent_cost_usd"])
    assert (row["main_output_tokens"], row["subagent_output_tokens"]) == (100, 20_000)
    assert (row["cost_source"], row["recorded_cost_usd"], summary.cost_usd) == ("2026-11", 0.0, row["cost_usd"])
    cost = explain(Store(folder / "s"), SESSION, "tokens.cost_usd")
    assert cost.value == pytest.approx(whole["usd"])
    assert [i.excerpt for i in cost.evidence if i.role == "support"] == [
        "$0.004300 = 10 in x $5 + 1,000 read x $0.5 + 200 write x $6.25 + 100 out x $25 (claude-opus-4-8, 2026-11)",
        "$0.501800 = 10 in x $5 + 1,000 read x $0.5 + 200 write x $6.25 + 20,000 out x $25 (claude-opus-4-8, 2026-11)",
    ]


def test_a_note_of_a_subagents_kind_is_read_and_nothing_of_it_is_lost(folder: Path) -> None:
    summary = pipeline.analyze([str(folder / "in")], folder / "s", jobs=1)
    assert not summary.skipped
    broken = next((folder / "in").rglob("*.meta.json"))
    broken.write_text('{"agentType": "x", ')
    again = pipeline.analyze([str(folder / "in")], folder / "s2", jobs=1)
    assert (again.skipped, again.sessions) == ({"cut_document": 1}, 1)


def test_a_branch_that_was_left_was_paid_for() -> None:
    usage = {"input": 10, "output": 50, "cacheRead": 0, "cacheWrite": 0}

    def answer(id_: str, parent: str, second: float, cost: float) -> dict[str, object]:
        said = [{"type": "text", "text": "ok"}]
        message = {"role": "assistant", "content": said, "model": "m", "usage": {**usage, "cost": {"total": cost}}}
        return pi_entries.entry(id_, parent, second, message=message)

    rows = [
        pi_entries.entry("a", None, 1, message=pi_entries.user("first")),
        answer("b", "a", 2, 1.0),
        pi_entries.entry("c", "b", 3, message=pi_entries.user("left later")),
        answer("d", "c", 4, 2.0),
        pi_entries.entry("f", "b", 5, message=pi_entries.user("stays")),
        answer("g", "f", 6, 4.0),
    ]
    figures = totals(pi_entries.one(*rows))
    assert (figures["cost_usd"], figures["main_cost_usd"], figures["subagent_cost_usd"]) == (7.0, 5.0, 0.0)
    assert (figures["output_tokens"], figures["main_output_tokens"], figures["cost_source"]) == (150, 100, "recorded")


def test_money_that_traces_record_is_told_from_list_prices() -> None:
    both = Session(
        session_id="s",
        context="product",
        format="f",
        agent="a",
        artifact_id="x",
        steps=[
            step("claude-opus-4-8", input_tokens=1_000_000, output_tokens=0),
            step("other", input_tokens=1, output_tokens=1, cost_usd=2.0, cost_source="recorded"),
        ],
    )
    figures = priced(both)
    assert (figures["cost_usd"], figures["recorded_cost_usd"]) == (7.0, 2.0)
    assert figures["cost_source"] == "recorded + 2026-11"


# -- subagents of which only totals are logged -----------------------------------------------------------------------


def ended(**more: object) -> dict[str, object]:
    return {"agentId": "abc", "totalToolUseCount": 17, "totalTokens": 81_234, "usage": USED, **more}


@pytest.mark.parametrize(
    ("structured", "calls", "tokens", "unpriced"),
    [
        (ended(), 17, 81_234, "subagents of which only totals are logged"),
        (ended(agentId=None), 17, 81_234, "subagents of which only totals are logged"),
        ({"agentId": "abc", "status": "async_launched"}, 0, None, None),
        (ended(totalToolUseCount="many"), 0, 81_234, "subagents of which only totals are logged"),
    ],
)
def test_closing_totals_of_a_subagent_count(
    structured: dict[str, object], calls: int, tokens: int | None, unpriced: str | None, tmp_path: Path
) -> None:
    log = Log()
    log.user("review it")
    log.ran("Task", "fine", told=structured, description="review", prompt="Review it")
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(log.data())
    pipeline.analyze([str(path)], tmp_path / "s", jobs=1)
    (row,) = ask(tmp_path / "s", "FROM sessions")
    assert (row["n_subagent_tool_calls"], row["subagent_summed_tokens"], row["unpriced"]) == (calls, tokens, unpriced)


def test_a_subagent_with_a_log_of_its_own_counts_once(folder: Path) -> None:
    path = folder / "in" / f"{SESSION}.jsonl"
    log = Log()
    log.user("review it")
    log.ran("Task", "fine", told=ended(), description="review", prompt="Review it")
    path.write_bytes(log.data())
    pipeline.analyze([str(folder / "in")], folder / "s", jobs=1)
    (row,) = ask(folder / "s", "FROM sessions")
    assert (row["n_subagent_tool_calls"], row["subagent_summed_tokens"], row["unpriced"]) == (0, None, None)


def notice(calls: int, agent: str = "abc", usage: bool = True) -> str:
    tokens = f"<total_tokens>81234</total_tokens><tool_uses>{calls}</tool_uses><duration_ms>9</duration_ms>"
    ids = f"<task-id>{agent}</task-id>\n<tool-use-id>call</tool-use-id>"
    closing = f"<result>fine</result>\n<usage>{tokens}</usage>" if usage else "<summary>exit code 0</summary>"
    return f"<task-notification>\n{ids}\n<status>completed</status>\n{closing}\n</task-notification>"


@pytest.mark.parametrize(
    ("notices", "calls", "tokens"),
    [
        ([notice(17)], 17, 81_234),
        ([notice(3), notice(17)], 17, 81_234),
        ([notice(3, "abc"), notice(4, "def")], 7, 162_468),
        ([notice(0, "shell", usage=False)], 0, None),
    ],
)
def test_closing_totals_of_a_subagent_in_the_background_count(
    notices: list[str], calls: int, tokens: int | None, tmp_path: Path
) -> None:
    log = Log()
    log.user("review it")
    log.ran("Agent", "Async agent launched", told={"agentId": "abc", "status": "async_launched"}, prompt="Review it")
    for text in notices:
        log.queue("enqueue", text)
        log.user(text, origin={"kind": "task-notification"})
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(log.data())
    pipeline.analyze([str(path)], tmp_path / "s", jobs=1)
    (row,) = ask(tmp_path / "s", "FROM sessions")
    assert (row["n_subagent_tool_calls"], row["subagent_summed_tokens"], row["n_prompts"]) == (calls, tokens, 1)


# -- Copilot CLI's totals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "output"),
    [
        # no model at the messages, one in the totals
        ([says("a", model=None, outputTokens=120), says("b", model=None, outputTokens=67),
          shutdown(**{"gpt-5": metrics(2, 2000, 187)})], 187),
        # no model at the messages, two in the totals
        ([says("a", model=None, outputTokens=120), says("b", model=None, outputTokens=67),
          shutdown(**{"gpt-5": metrics(1, 2000, 120), "gpt-5-mini": metrics(1, 900, 67)})], 187),
        # another name at the messages
        ([says("a", model="gpt-5-preview", outputTokens=120), says("b", model="gpt-5-preview", outputTokens=67),
          shutdown(**{"gpt-5": metrics(2, 2000, 187)})], 187),
        # messages that say more than the totals
        ([says("a", model="gpt-5", outputTokens=120), says("b", model="gpt-5", outputTokens=120),
          shutdown(**{"gpt-5": metrics(2, 2000, 187)})], 187),
        # resumed twice
        ([says("a", model=None, outputTokens=120), shutdown(**{"gpt-5": metrics(1, 1000, 120)}),
          event("session.resume"), says("b", model=None, outputTokens=60), says("c", model=None, outputTokens=7),
          shutdown(**{"gpt-5": metrics(2, 1000, 67)})], 187),
        # an agent of another name than its messages have
        ([says("a", model="gpt-5", outputTokens=120), says("b", model="gpt-5", agent="call_1", outputTokens=67),
          event("session.shutdown", modelMetrics={"gpt-5": metrics(2, 2000, 187)}, agentMetrics={
              "main": {"modelMetrics": {"gpt-5": metrics(1, 1000, 120)}},
              "explore": {"modelMetrics": {"gpt-5": metrics(1, 1000, 67)}}})], 187),
    ],
)  # fmt: skip
def test_output_is_what_the_totals_say_and_its_cost_is_known(rows: list[dict[str, Any]], output: int) -> None:
    session = one(start(), *rows)
    figures = priced(session)
    assert figures["output_tokens"] == output
    assert figures["cost_usd"] is not None
    assert figures["n_steps"] == len([s for s in session.steps if s.thread == "main" and s.stop_reason is None])


def test_a_run_that_crashed_is_in_no_totals_and_its_cost_is_left_out() -> None:
    session = one(
        start(),
        says("a", model="gpt-5", outputTokens=120),
        event("session.resume"),
        says("b", model="gpt-5", outputTokens=60),
        says("c", model="gpt-5", outputTokens=7),
        shutdown(**{"gpt-5": metrics(2, 1000, 67)}),
    )
    figures = priced(session)
    assert (figures["output_tokens"], figures["cost_usd"], figures["unpriced"]) == (187, 0.00192, "gpt-5")


# -- what makes a call dearer ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "served", "usd", "unpriced"),
    [
        ("claude-opus-4-8", {}, 5.0, None),
        ("claude-opus-4-8", {"speed": "fast"}, 10.0, None),
        ("claude-opus-4-6", {"speed": "fast"}, 30.0, None),
        ("claude-opus-4-8", {"inference_geo": "us"}, 5.5, None),
        ("claude-opus-4-8", {"speed": "fast", "inference_geo": "us"}, 11.0, None),
        ("claude-opus-4-8", {"web_searches": 3}, 5.03, None),
        ("claude-haiku-4-5", {"speed": "fast"}, 1.0, "fast"),
        ("claude-haiku-4-5", {"web_searches": 3}, 1.0, "3 web searches"),
        ("claude-opus-4-8", {"service_tier": "priority"}, 5.0, "priority"),
    ],
)
def test_how_a_call_was_served_is_priced_or_named(
    model: str, served: dict[str, Any], usd: float, unpriced: str | None
) -> None:
    # Under the limit of a long prompt, of which the older model costs more.
    call = step(model, 1_780_000_000_000_000, input_tokens=1_000_000, output_tokens=0, **served)
    session = Session(session_id="s", context="product", format="f", agent="a", artifact_id="x", steps=[call])
    assert (priced(session)["cost_usd"], call.unpriced) == (pytest.approx(usd), unpriced)


def test_totals_of_many_calls_are_not_priced_as_one_long_prompt() -> None:
    """Nobody knows how long their prompts were: the price of short ones is the least they cost, and it says so."""
    call = step("gpt-5.4", input_tokens=1_000_000, output_tokens=0)
    total = step("gpt-5.4", input_tokens=1_000_000, output_tokens=0, stop_reason=SESSION_TOTAL)
    session = Session(session_id="s", context="product", format="f", agent="a", artifact_id="x", steps=[call, total])
    apply(session)
    assert (call.cost_usd, total.cost_usd, total.unpriced) == (5.0, 2.5, "long prompts")


def test_a_claude_message_says_how_it_was_served(tmp_path: Path) -> None:
    log = Log()
    log.user("go")
    served = {"speed": "fast", "service_tier": "standard", "inference_geo": "us"}
    usage = {**USED, **served, "server_tool_use": {"web_search_requests": 2}}
    answers(log, **usage)
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(log.data())
    pipeline.analyze([str(path)], tmp_path / "s", jobs=1)
    (row,) = ask(tmp_path / "s", "SELECT speed, service_tier, inference_geo, web_searches, cost_usd FROM steps")
    assert row == {**served, "service_tier": None, "web_searches": 2, "cost_usd": pytest.approx(0.0043 * 2.2 + 0.02)}
