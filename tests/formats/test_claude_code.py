"""Claude Code: records, plans that a person approves, dollars by list prices; the real sessions as a whole.

Whose words a text is, and all else that one file shows, is in `claude-code` and its `_cases`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import claude_code
from agentsignals.formats.claude_code import PROFILE
from agentsignals.formats.records import Head
from agentsignals.ingest import pipeline, plan
from agentsignals.model import MAIN, Edit, Session, prices
from agentsignals.store import Store
from agentsignals.store.index import Manifest
from agentsignals.ui.page import Query
from agentsignals.ui.rendering import answer_of
from agentsignals.ui.snapshot import Snapshot
from agentsignals.views.usage import cost_of, unpriced_parts
from tests.claude import SESSION, STOP, Log, given, read, session
from tests.questions.stores import findings
from tests.quick import each_row
from tests.verbs import printed, printed_json

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "sessions" / "claude-code"


REAL = Counter(
    {
        "answered": 4_689,
        "cache_read": 235_677_754,
        "cache_write": 12_967_982,
        "calls": 4_097,
        "edits.edit_tool": 988,
        "edits.shell": 67,
        "events.compaction": 3,
        "events.interrupt": 30,  # two refusals are plans that a fresh context went on with
        "input": 218_949,
        "output": 975_037,
        "records": 21_756,
        "repeated": 3,
        "sessions": 143,
        "steps": 3_604,
        "subagent_calls": 593,
        "subagent_steps": 262,
        "subagents_by_totals": 19,
        "turns.plan_handoff": 23,
        "turns.prompt": 389,
        "turns.queued_prompt": 11,
        "turns.rejection_feedback": 25,
        "turns.slash_command": 24,
    }
)
"""What the 143 real sessions hold. Tokens, steps, calls and edited places were counted by a second reader; the turns
were read by eye, and every prompt that Entire recorded beside a transcript is among them."""


# -- real files ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real traces is not there")
def test_the_real_sessions_have_the_counts_that_a_second_reader_found() -> None:
    """Counted by plain `json` over every line: ids of messages and calls, field-wise maxima of usage, patches."""
    total: Counter[str] = Counter()
    for path in sorted(CORPUS.glob("*/*/transcript.jsonl")):
        one = given(path.read_bytes(), path.parent.name)
        for found in claude_code.FORMAT.read([one]).sessions:
            total += _counts(found)
        total += Counter(records=one.artifact.records, repeated=one.artifact.record_kinds.get("repeated", 0))
        assert one.artifact.skipped == 0
    assert total == REAL


def _counts(found: Session) -> Counter[str]:
    main = [s for s in found.steps if s.thread == MAIN]
    total = Counter(f"turns.{t.kind}" for t in found.turns)
    total += Counter(f"events.{e.kind}" for e in found.events if e.kind in ("interrupt", "compaction", "unknown"))
    total += Counter(f"edits.{e.via}" for e in found.edits if e.thread == MAIN)
    total += Counter(
        sessions=1,
        steps=len(main),
        input=sum(s.input_tokens or 0 for s in main),
        output=sum(s.output_tokens or 0 for s in main),
        cache_read=sum(s.cache_read_tokens or 0 for s in main),
        cache_write=sum(s.cache_write_tokens or 0 for s in main),
        subagent_steps=sum(s.thread != MAIN and s.summed_calls is None for s in found.steps),
        subagents_by_totals=sum(s.summed_calls is not None for s in found.steps),
        calls=sum(c.thread == MAIN for c in found.tool_calls),
        subagent_calls=sum(c.thread != MAIN for c in found.tool_calls),
        unknown_tools=sum(c.class_ == "other" and PROFILE.tool(c.name) is None for c in found.tool_calls),
        answered=sum(c.result_seq is not None for c in found.tool_calls),
    )
    return total


FILE = "/work/shop/cart.py"


def patch(old: int, new: int, *lines: str) -> dict[str, Any]:
    return {"oldStart": old, "oldLines": 0, "newStart": new, "newLines": 0, "lines": list(lines)}


def edit_of(told: Any, name: str = "Edit", **arguments: Any) -> list[Edit]:
    log = Log()
    log.ran(name, "done", told=told, file_path=FILE, **arguments)
    return session(log).edits


def lines(edits: list[Edit]) -> list[tuple[int | None, ...]]:
    return [(e.start_line, e.end_line, e.added, e.removed, e.old_start) for e in edits]


def test_a_huge_original_and_odd_neighbours_are_not_read() -> None:
    told = {
        "originalFile": "x" * 100_000,
        "userModified": False,
        "gitDiff": {"a": [1]},
        "structuredPatch": [patch(1, 1, "+a")],
    }
    assert lines(edit_of(told)) == [(1, 1, 1, 0, 1)]


OTHER = "6f1d2c3b-0000-4000-8000-000000000002"


# -- families --------------------------------------------------------------------------------------------------------


def long_log() -> Log:
    log = Log()
    for n in range(4):
        log.user(f"prompt {n}")
        log.queue("enqueue", f"and {n}")
        log.queue("remove")
        log.ran("Read", file_path=f"/work/shop/{n}.py")
        log.side("custom-mystery", sessionId=SESSION)
    return log


def fork(at: int) -> tuple[Log, Log]:
    """A session, and one that was resumed from its first records under an id of its own."""
    first = long_log()
    second = Log(OTHER, "fork")
    second.lines = [line.replace(SESSION, OTHER) for line in first.lines[:at]]
    second.wait(3600)
    second.user("another way")
    second.say("so be it", message_id="msg_fork")
    return first, second


def test_a_fork_shares_a_key_with_its_origin() -> None:
    claims = [claude_code.claims(Head(log.data(), complete=True)) for log in fork(8)]
    assert all(claims)
    shared = set.intersection(*(set(claim.keys) for claim in claims if claim))
    assert shared == {"record:01-0001", "record:01-0002", "record:01-0003"}


def test_a_file_that_holds_two_sessions_is_of_the_one_its_name_says() -> None:
    log = Log(OTHER)
    log.user("old", sessionId=SESSION)
    log.user("new", sessionId=OTHER)
    log.user("newer", sessionId=OTHER)
    assert [s.session_id for s in read(log).sessions] == [OTHER]
    (named,) = claude_code.FORMAT.read([given(log.data(), hint=SESSION)]).sessions
    assert named.session_id == SESSION


# -- plans that a person approves by going on in a fresh context ---------------------------------------------------

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
    listed = printed_json(capsys, "sessions", "--store", folder)
    assert {row["session_id"]: row["n_prompts"] for row in listed} == {SESSION: 1, NEXT: 1}
    store = Store(folder)
    assert findings(store, "sessions")["turns.total"].value == 2
    assert {name: row["n_turns"] for name, row in _sessions(store).items()} == {SESSION: 1, NEXT: 2}
    assert "1 prompts, 0 tool calls" in printed(capsys, "show", NEXT, "--store", folder)
    reading, query = Snapshot(store), Query()
    assert [shown["part"].totals.sessions for shown in answer_of(reading, "/", query).filled["parts"]] == [2]
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


# -- model calls behind a message: advisors, compactions, fallbacks, in subagents too ------------------------------

OPUS, SONNET = "claude-opus-4-8", "claude-sonnet-4-5"
LIST = {OPUS: (5, 25), SONNET: (3, 15)}
_NAMES = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def usd(model: str, given: int, out: int) -> float:
    return (given * LIST[model][0] + out * LIST[model][1]) / 1e6


def iteration(kind: str, given: int, out: int, **more: Any) -> dict[str, Any]:
    return {"type": kind, **dict(zip(_NAMES, (given, out, 0, 0), strict=True)), **more}


def billed(totals: tuple[int, int], iterations: Any, *, times: int = 1, **more: Any) -> Session:
    """A session of one message, logged on so many lines."""
    log = Log()
    log.user("Go")
    usage = {**dict(zip(_NAMES, (*totals, 0, 0), strict=True)), "iterations": iterations}
    block = {"type": "text", "text": "Done."}
    message = {"model": SONNET, "id": "msg_1", "type": "message", "role": "assistant", "content": [block]}
    for _ in range(times):
        log.record("assistant", message={**message, "stop_reason": "end_turn", "usage": usage}, **more)
    (made,) = read(log).sessions
    prices.apply(made)
    return made


OWN = iteration("message", 3000, 400)


@each_row(
    ("totals", "iterations", "right"),
    [
        ((3000, 400), [OWN], usd(SONNET, 3000, 400)),
        ((3000, 400), None, usd(SONNET, 3000, 400)),
        ((3000, 400), [], usd(SONNET, 3000, 400)),
        ((3000, 400), [iteration("message", 1000, 100), iteration("message", 2000, 300)], usd(SONNET, 3000, 400)),
        (
            (3000, 400),
            [iteration("advisor_message", 60_000, 1500, model=OPUS), OWN],
            usd(SONNET, 3000, 400) + usd(OPUS, 60_000, 1500),
        ),
        (
            (3000, 400),
            [iteration("compaction", 180_000, 3500), iteration("compaction", 170_000, 2500), OWN],
            usd(SONNET, 353_000, 6400),
        ),
        (
            (3000, 400),
            [OWN, iteration("fallback_message", 3000, 900, model=OPUS)],
            usd(SONNET, 3000, 400) + usd(OPUS, 3000, 900),
        ),
        (  # figures that hold the fallback: not billed again, and at its own price
            (6000, 1300),
            [OWN, iteration("fallback_message", 3000, 900, model=OPUS)],
            usd(SONNET, 3000, 400) + usd(OPUS, 3000, 900),
        ),
        ((3000, 900), [iteration("fallback_message", 3000, 900, model=OPUS)], usd(OPUS, 3000, 900)),
    ],
)
@each_row("more", [{}, {"isSidechain": True, "agentId": "a1"}])
@each_row("times", [1, 3])
def test_every_iteration_is_billed_once_at_its_models_price(
    totals: tuple[int, int], iterations: Any, right: float, more: dict[str, Any], times: int
) -> None:
    made = billed(totals, iterations, times=times, **more)
    assert cost_of(made.steps) == pytest.approx(right)
    assert unpriced_parts(made.steps) is None
    assert sum(not step.is_beside for step in made.steps) == 1


@pytest.mark.parametrize(
    ("iterations", "lacks"),
    [
        ([OWN, iteration("arbiter_message", 60_000, 1500, model="claude-next-1")], "arbiter_message calls"),
        ([OWN, iteration("", 1, 1)], "unnamed calls"),
        (
            [OWN, iteration("advisor_message", 60_000, 1500, model="claude-next-1")],
            "advisor_message calls of claude-next-1",
        ),
        ({"message": 3}, "model calls behind a message, in an unknown shape"),
        ("many", "model calls behind a message, in an unknown shape"),
    ],
)
def test_what_is_not_known_makes_the_cost_a_lower_bound_that_says_so(iterations: Any, lacks: str) -> None:
    made = billed((3000, 400), iterations)
    assert cost_of(made.steps) == pytest.approx(usd(SONNET, 3000, 400))
    assert unpriced_parts(made.steps) == lacks


def test_each_iteration_has_the_price_of_its_own_prompt_length() -> None:
    made = billed((300_000, 0), [iteration("message", 150_000, 0), iteration("message", 150_000, 0)])
    assert cost_of(made.steps) == pytest.approx(usd(SONNET, 300_000, 0))  # no prompt of over 200,000 tokens
    assert [step.input_tokens for step in made.steps] == [150_000, 150_000]


def test_an_hours_cache_of_an_iteration_costs_its_own_price() -> None:
    written = iteration("compaction", 0, 0, cache_creation={"ephemeral_1h_input_tokens": 1000})
    made = billed((3000, 400), [{**written, "cache_creation_input_tokens": 1500}, OWN])
    assert cost_of(made.steps) == pytest.approx(usd(SONNET, 3000, 400) + (1000 * 6 + 500 * 3.75) / 1e6)
