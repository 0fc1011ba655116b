"""Plans that a person approves by going on in a fresh context, wherever they are counted; and dollars by list prices.

Whose words a text is shows in `claude-code/_cases`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import main
from agentsignals.formats import claude_code
from agentsignals.ingest import pipeline, plan
from agentsignals.model import Session, prices
from agentsignals.store import Store
from agentsignals.store.index import Manifest
from agentsignals.ui.page import Query
from agentsignals.ui.rendering import answer_of
from agentsignals.ui.snapshot import Snapshot
from tests.claude import SESSION, STOP, Log, given, read
from tests.questions.stores import findings

NEXT = "6f1d2c3b-0000-4000-8000-000000000002"
PLAN = "# Plan\n1. parse\n2. test"
CUT = [{"type": "text", "text": "[Request interrupted by user for tool use]"}]
MASKED = [(n, f"6f1d2c3b-0000-4000-8000-00000000001{n}") for n in range(2)]


def planned(refusal: str = STOP, plan: str = PLAN) -> Log:
    log = Log()
    log.user("please plan it")
    log.ran("ExitPlanMode", refusal, error=True, plan=plan)
    if refusal == STOP:
        log.user(CUT)
    return log


def taken_up(planning: Log, plan: str = PLAN, after_s: float = 0, where: str = NEXT, pointer: str = "") -> Log:
    log = planning if where == SESSION else Log(where)
    # The refusal is two records back where a marker follows it: each is a second after the one before.
    log.now = planning.now
    log.wait(after_s - 2)
    text = f"Implement the following plan:\n\n{plan}"
    if pointer:
        text += (
            "\n\n\nIf you need specific details from before exiting plan mode (like exact code snippets), read the full"
            f" transcript at: /home/me/.claude/projects/-work-shop/{pointer}.jsonl"
        )
    log.user(text)
    log.say("I do it.")
    return log


def sessions(*logs: Log) -> dict[str, Session]:
    each = {id(log): log for log in logs}.values()
    return {session.session_id: session for session in read(*each).sessions}


@pytest.mark.slow
@pytest.mark.parametrize("pointer", ["", SESSION])
@pytest.mark.parametrize("first", [SESSION, NEXT])
def test_the_two_ends_find_each_other_in_the_store_whichever_was_read_first(
    tmp_path: Path, first: str, pointer: str
) -> None:
    planning = planned()
    logs = {SESSION: planning, NEXT: taken_up(planning, pointer=pointer)}
    folder = tmp_path / "in"
    folder.mkdir()
    for name in sorted(logs, key=lambda name: name != first):
        (folder / f"{name}.jsonl").write_bytes(logs[name].data())
        pipeline.analyze([str(folder)], tmp_path / "store", jobs=1)
    store = Store(tmp_path / "store")
    assert store.frame("tool_calls")["status"].to_list() == ["ok"]
    parents = dict(store.frame("sessions").select("session_id", "parent_session_id").rows())
    assert parents == {SESSION: None, NEXT: SESSION}
    logs[SESSION].say("Anything else?")
    (folder / f"{SESSION}.jsonl").write_bytes(logs[SESSION].data())
    pipeline.analyze([str(folder)], tmp_path / "store", jobs=1)
    assert Store(tmp_path / "store").frame("tool_calls")["status"].to_list() == ["ok"]


def test_a_hand_off_is_read_with_the_session_it_names_and_with_none_where_that_was_masked(tmp_path: Path) -> None:
    planning = planned()
    named = taken_up(planning, pointer=SESSION)
    masked = [taken_up(planned(plan=f"# {n}"), where=name, plan=f"# {n}", pointer=".REDACTED") for n, name in MASKED]
    folder = tmp_path / "in"
    folder.mkdir()
    for n, log in enumerate([planning, named, *masked]):
        (folder / f"{n}.jsonl").write_bytes(log.data())
    shards = plan.make_plan([str(folder)], Manifest()).shards
    assert sorted(len(family.files) for shard in shards for family in shard) == [1, 1, 2]
    pipeline.ingest([str(folder)], tmp_path / "store", jobs=1)
    assert len({entry.group for entry in Store(tmp_path / "store").manifest.files.values()}) == 3


def test_analyze_the_list_the_page_and_the_report_count_what_people_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two prompts; the hand-off of the plan is a turn and no prompt, wherever it is counted."""
    logs = {SESSION: planned(), NEXT: taken_up(planned())}
    logs[NEXT].user("thanks")
    (tmp_path / "in").mkdir()
    for name, log in logs.items():
        (tmp_path / "in" / f"{name}.jsonl").write_bytes(log.data())
    folder = tmp_path / "store"
    assert pipeline.analyze([str(tmp_path / "in")], folder, jobs=1).prompts == 2
    assert main(["sessions", "--store", str(folder), "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {row["session_id"]: row["n_prompts"] for row in listed} == {SESSION: 1, NEXT: 1}
    store = Store(folder)
    assert findings(store, "sessions")["turns.total"].value == 2
    assert {name: row["n_turns"] for name, row in _sessions(store).items()} == {SESSION: 1, NEXT: 2}
    assert main(["show", NEXT, "--store", str(folder)]) == 0
    assert "1 prompts, 0 tool calls" in capsys.readouterr().out
    reading, query = Snapshot(store), Query()
    assert [row["prompts"] for row in answer_of(reading, "/", query).filled["contexts"]] == [2]
    assert [row["n_prompts"] for row in answer_of(reading, "/sessions", query).filled["rows"]] == [1, 1]
    reading.close()


def _sessions(store: Store) -> dict[str, Any]:
    return {row["session_id"]: row for row in store.frame("sessions").to_dicts()}


NATIVE = Path(__file__).parents[3] / "shared/corpus/native/claude-agent-sdk/sdk-ts"




@pytest.mark.skipif(not NATIVE.is_dir(), reason="no corpus at ../shared/corpus/native/claude-agent-sdk")
def test_list_prices_come_to_what_claude_code_counted() -> None:
    """0.0043575 dollars, its own `cost-state` says, of 5 calls."""
    (path,) = NATIVE.iterdir()
    (made,) = claude_code.FORMAT.read([given(path.read_bytes())]).sessions
    prices.apply(made)
    assert [turn.kind for turn in made.turns] == ["scripted_prompt"]
    assert len(made.steps) == 5
    assert sum(step.cost_usd or 0 for step in made.steps) == pytest.approx(0.0043575)
    assert not [event for event in made.events if event.kind == "unknown"]
    assert [(call.name, call.status) for call in made.tool_calls] == [
        ("Write", "ok"), ("Read", "ok"), ("Edit", "ok"), ("Bash", "error"),
    ]  # fmt: skip
