"""Every dollar of the ledger stands under one cause, and under the right one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import fsum
from pathlib import Path
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from agentsignals.ingest import pipeline
from agentsignals.model import Step, ToolCall, prices
from agentsignals.questions.question import AtLeast, without_bound
from agentsignals.questions.sql import BOUNDED, CAUSES
from agentsignals.store import Store
from agentsignals.store.query import rows
from agentsignals.ui.filter import behind
from agentsignals.views.usage import (
    LIFETIME_S,
    LONG_LIFETIME_S,
    SHRUNK,
    Cause,
    Result,
    ResultKind,
    cost_by_cause,
    session_bill,
    tool_results,
)
from tests.build import call, event, say, session, user
from tests.questions.stores import findings, outcome, store_of

MODEL = "claude-opus-4-5"
"""5 USD a million in, 25 out, 0.5 read from the cache, 6.25 written to it."""
CENT = 0.005


def by_cause(charges: Iterable[tuple[str, float]]) -> dict[str, float]:
    sums: Counter[str] = Counter()
    for cause, usd in charges:
        sums[cause] += usd
    return dict(sums)


def assert_sums_to_the_bill(store: Store, most_other: float = 0.05) -> None:
    ledger = dict(store.sql("SELECT session_id, cost_usd FROM sessions WHERE cost_usd IS NOT NULL").fetchall())
    charges = store.sql("SELECT session_id, cause, cost_usd, tokens, calls FROM charges").fetchall()
    assert ledger
    sums: Counter[str] = Counter()
    for session_id, cause, usd, tokens, calls in charges:
        assert usd > -1e-9 and cause in CAUSES and tokens >= 0 and calls > 0
        sums[session_id] += usd
    assert {s: usd for s, usd in ledger.items() if abs(sums[s] - usd) >= CENT} == {}
    assert sums.keys() <= ledger.keys()
    causes = by_cause((cause, usd) for _, cause, usd, *_ in charges)
    assert abs(fsum(causes.values()) - fsum(ledger.values())) < CENT
    bare = "SELECT session_id FROM sessions WHERE coalesce(input_tokens, 0) + coalesce(output_tokens, 0) = 0"
    without_tokens = {row[0] for row in store.sql(bare).fetchall()}  # a sum of money tells no cause
    told = by_cause((cause, usd) for session_id, cause, usd, *_ in charges if session_id not in without_tokens)
    assert told.get("other", 0) <= most_other * fsum(told.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["demo", "corpus", "samples"])
@pytest.mark.nightly
def test_the_causes_of_real_sessions_sum_to_their_bill(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if name != "samples":
        assert_sums_to_the_bill(Store(request.getfixturevalue(f"{name}_folder") / "store"))
        return
    pipeline.analyze([str(Path(__file__).parents[1] / "formats")], tmp_path / "s", jobs=1)
    # Five samples state round dollars for a few tokens, whose price is a small part of that.
    assert_sums_to_the_bill(Store(tmp_path / "s"), most_other=0.65)


def step(n: int, read: int = 0, written: int = 0, new: int = 0, *, at: float, **more: Any) -> Step:
    """A model call; `at` in seconds."""
    made = Step(step=n, turn=0, thread="main", seq=10 * n, message_id=None, model=MODEL, timestamp=int(at * 1e6))
    made.cache_read_tokens, made.cache_write_tokens, made.input_tokens = read, written, new
    made.output_tokens, made.cost_source = more.pop("output", 0), prices.VERSION
    for name, value in more.items():
        setattr(made, name, value)
    listed = prices.cost_usd(MODEL, new, made.output_tokens, read, written)
    made.cost_usd = made.cost_usd if made.cost_usd is not None else listed
    return made


def result(after: int, tokens: int, kind: ResultKind = "result") -> Result:
    """The result of a call that the step asked for."""
    seq = 10 * after + 1
    asked = ToolCall(seq=seq, turn=0, step=after, thread="main", call_id=str(seq), name="Read", class_="read")
    return Result(asked, seq + 1, tokens, kind)


def causes(*parts: Step | Result, compacted: int | None = None, is_subagents: bool = False) -> dict[Cause, float]:
    """USD by cause, in millionths."""
    steps = [part for part in parts if isinstance(part, Step)]
    compactions = [] if compacted is None else [("main", compacted)]
    results = [part for part in parts if isinstance(part, Result)]
    charges = cost_by_cause("s", steps, results, compactions, is_subagents=is_subagents)
    assert len({charge.cause for charge in charges}) == len(charges)
    assert all(0 < charge.calls <= len(steps) for charge in charges)
    assert fsum(charge.cost_usd for charge in charges) == pytest.approx(fsum(step.cost_usd or 0 for step in steps))
    used = sum((s.input_tokens or 0) + (s.cache_read_tokens or 0) + (s.cache_write_tokens or 0) for s in steps)
    unknown = any(charge.cause == "other" for charge in charges)
    assert unknown or sum(c.tokens for c in charges) == used + sum(s.output_tokens or 0 for s in steps)
    return {charge.cause: round(1e6 * charge.cost_usd, 3) for charge in charges}


def test_each_cause_has_its_text() -> None:
    assert tuple(CAUSES) == get_args(Cause)


FIRST = step(0, written=10_000, at=0)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param([FIRST], {"cache_write": 62_500}, id="what a session starts with is new once"),
        pytest.param(
            [FIRST, step(1, read=10_000, written=2_000, at=9, output=100)],
            {"cache_write": 62_500 + 12_500, "carried_start": 5_000, "output": 2_500},
            id="and carried from then on",
        ),
        pytest.param(
            [FIRST, result(0, 2_000), step(1, read=10_000, written=2_000, at=9), step(2, read=12_000, at=18)],
            {"cache_write": 75_000, "carried_start": 10_000, "carried_results": 1_000},
            id="a result is carried as often as it is sent again",
        ),
        pytest.param(
            [FIRST, result(0, 9_000), step(1, read=10_000, written=2_000, at=9), step(2, read=12_000, at=18)],
            {"cache_write": 75_000, "carried_start": 10_000, "carried_results": 1_000},
            id="an estimate never exceeds what the context grew by",
        ),
        pytest.param(
            [FIRST, result(0, 1_000), step(1, read=10_000, written=2_000, at=9), step(2, read=12_000, at=18)],
            {"cache_write": 75_000, "carried_start": 10_000, "carried_results": 500, "carried_words": 500},
            id="what grew beside it is words",
        ),
        *(
            pytest.param(
                [FIRST, result(0, 2_000, kind), step(1, read=10_000, written=2_000, at=9), step(2, read=12_000, at=18)],
                {"cache_write": 62_500, "carried_start": 10_000, kind: 12_500 + 1_000},
                id=f"{kind}: the first sending and every later one",
            )
            for kind in ("failed", "repeated", "reread")
        ),
        pytest.param(
            [step(0, written=10_000, at=0, output=100), result(0, 0, "failed"), result(0, 0, "reread")],
            {"cache_write": 62_500, "failed": 2_500},
            id="an answer that only asked for what was wasted",
        ),
        pytest.param(
            [step(0, written=10_000, at=0, output=100), result(0, 0, "failed"), result(0, 0)],
            {"cache_write": 62_500, "output": 2_500},
            id="an answer that asked for something else, too",
        ),
        pytest.param(
            [FIRST, step(1, written=11_000, at=LIFETIME_S + 1)],
            {"cache_write": 62_500 + 6_250, "rebuilt": 62_500},
            id="a cache that died in a pause",
        ),
        pytest.param(
            [FIRST, step(1, written=11_000, at=LIFETIME_S - 1)],
            {"cache_write": 62_500 + 6_250, "missed": 62_500},
            id="a cache that was missed without one",
        ),
        pytest.param(
            [
                step(0, written=10_000, at=0, cache_write_1h_tokens=10_000, cost_usd=0.1),
                step(1, written=10_000, at=LONG_LIFETIME_S - 1),
            ],
            {"cache_write": 100_000, "missed": 62_500},
            id="a cache that lives for an hour",
        ),
        pytest.param(
            [
                step(0, written=10_000, at=0, cache_write_1h_tokens=10_000, cost_usd=0.1),
                step(1, written=10_000, at=LONG_LIFETIME_S + 1),
            ],
            {"cache_write": 100_000, "rebuilt": 62_500},
            id="and no longer",
        ),
        pytest.param(
            [step(0, new=1_000, at=0), result(0, 500), step(1, new=2_000, at=9), step(2, new=2_000, at=9999)],
            {"input": 10_000, "carried_start": 10_000, "carried_results": 2_500, "carried_words": 2_500},
            id="without a cache all is carried at the full price",
        ),
        pytest.param(
            [FIRST, result(0, 8_000), step(1, read=10_000, written=8_000, at=9), step(2, read=10_000, at=18)],
            {"cache_write": 112_500, "carried_start": 10_000},
            id="a context that became shorter has lost its end",
        ),
        pytest.param(
            [step(0, written=10_000, at=0), step(1, read=1_000, written=10_000 * SHRUNK - 1_001, at=9)],
            {"cache_write": 62_500, "carried_start": 500, "compaction": 6.25 * (10_000 * SHRUNK - 1_001)},
            id="one that fell below half of itself began anew",
        ),
        pytest.param(
            [step(0, written=10_000, at=0, cost_usd=1.0, cost_source="recorded", model="nobody's")],
            {"other": 1_000_000},
            id="a recorded cost whose parts nobody knows",
        ),
        pytest.param(
            [step(0, written=10_000, at=0, output=100, cost_usd=0.13, cost_source="recorded")],
            {"cache_write": 125_000, "output": 5_000},
            id="a recorded cost is parted as the list would",
        ),
        pytest.param(
            [step(0, read=10_000, new=500, at=0, stop_reason="session_total")],
            {"carried_words": 5_000, "input": 2_500},
            id="a closing step is of many calls",
        ),
    ],
)  # fmt: skip
def test_a_dollar_has_its_cause(parts: list[Step | Result], expected: dict[Cause, float]) -> None:
    assert causes(*parts) == pytest.approx(expected)


def test_a_compaction_pays_for_the_context_written_anew() -> None:
    parts = [FIRST, step(1, read=10_000, written=2_000, at=9), step(2, read=2_000, written=9_000, at=18)]
    assert causes(*parts, compacted=15) == pytest.approx(
        {"cache_write": 75_000, "carried_start": 6_000, "compaction": 56_250}
    )
    assert causes(*parts)["missed"] > 0, "without it nobody knows why it was sent again"


def test_subagents_are_one_cause_whoever_logs_them() -> None:
    assert causes(FIRST, is_subagents=True) == {"subagents": 62_500}
    assert causes(replace(FIRST, thread="agent-1")) == {"subagents": 62_500}
    assert causes(replace(FIRST, thread="abandoned")) == {"cache_write": 62_500}


def read(path: str, result: str = "x" * 40, **more: Any) -> Any:
    return call("Read", path=path, result=result, **more)


WASTE = {
    "read again": ([read("a.py"), read("a.py")], ["result", "reread"]),
    "another range": ([read("a.py", offset=1), read("a.py", offset=9)], ["result", "result"]),
    "read again after a change": ([read("a.py"), call("Edit", path="a.py"), read("a.py")], ["result"] * 3),
    "another file changed": ([read("a.py"), call("Edit", path="b.py"), read("a.py")], ["result", "result", "reread"]),
    "changed by somebody else": ([read("a.py"), read("a.py", "x" * 400)], ["result", "result"]),
    "the same command": ([call("Bash", command="ls"), call("Bash", command="ls")], ["result", "repeated"]),
    "checked again after a change": (
        [call("Bash", command="pytest"), call("Edit", path="a.py"), call("Bash", command="pytest")],
        ["result"] * 3,
    ),
    "failed": ([read("a.py", status="error"), read("a.py")], ["failed", "result"]),
    "a look whether it has ended": ([call("BashOutput", bash_id="1"), call("BashOutput", bash_id="1")], ["result"] * 2),
}


@pytest.mark.parametrize("name", WASTE)
def test_what_was_had_before_is_seen(name: str) -> None:
    parts, expected = WASTE[name]
    made = session(user("go"), *parts, say("done", input_tokens=9, output_tokens=9))
    assert [result.kind for result in tool_results(made.tool_calls, made.edits)] == expected


def test_charges_and_repeated_calls_are_tables(tmp_path: Path) -> None:
    used: dict[str, Any] = {"input_tokens": 0, "cache_write_tokens": 0, "output_tokens": 0}
    parts = [say("", **used | {"cache_write_tokens": 1_000}), read("a.py"), read("a.py"), say("", **used)]
    free = session(user("go"), read("b.py"), read("b.py"), say("", model="nobody's", input_tokens=9), session_id="free")
    store = store_of(tmp_path, session(user("go"), *parts), free)
    columns = "session_id, model, day, cause, round(cost_usd, 6), tokens, calls"
    paid = [("s1", MODEL, "2026-01-01", "cache_write", 0.00625, 1_000, 1)]
    assert rows(store, f"SELECT {columns} FROM charges")[1] == paid, "a session without a price has none"
    columns = "session_id, name, path, kind, result_tokens, seq < result_seq"
    again = rows(store, f"SELECT {columns} FROM repeated_calls ORDER BY ALL")[1]
    assert again == [(of, "Read", path, "reread", 10, True) for of, path in (("free", "b.py"), ("s1", "a.py"))]


BIG: dict[str, Any] = {"input_tokens": 0, "cache_write_tokens": 90_000, "cache_read_tokens": 0, "output_tokens": 0}
LOST = BIG | {"cache_write_tokens": 60_000, "cache_read_tokens": 32_000}
NONE = BIG | {"cache_write_tokens": 200, "cache_read_tokens": 90_000}


@pytest.mark.parametrize(
    ("between", "after"),
    [
        ([], "work"),
        ([call("Read", path="a.py")], "work"),
        ([user("go on")], "prompt"),
        ([user("/review", "slash_command")], "skill"),
        ([call("Skill", skill="review")], "skill"),
        ([event("interrupt"), user("go on")], "interruption"),
        ([event("interrupt"), event("resume"), user("go on")], "resume"),
        ([event("interrupt"), event("settings_change"), user("go on")], "settings"),
    ],
)
def test_a_lost_cache_tells_what_came_before_it(between: list[Any], after: str, tmp_path: Path) -> None:
    made = session(user("go"), event("settings_change"), say("a", **BIG), *between, say("b", **LOST), say("c", **NONE))
    columns = "cause, after, tokens, round(cost_usd, 4), round(read_usd, 4), lives_s"
    (row,) = rows(store_of(tmp_path, made), f"SELECT {columns} FROM cache_losses")[1]
    assert row == ("missed", after, 58_000, 0.3625, 0.029, 300)


def test_another_model_is_what_lost_the_cache(tmp_path: Path) -> None:
    made = session(user("go"), say("a", **BIG), user("go on"), say("b", model="claude-opus-4-6", **LOST))
    assert rows(store_of(tmp_path, made), "SELECT after FROM cache_losses")[1] == [("model",)]


def test_a_longer_life_costs_more_only_for_what_would_still_be_written(tmp_path: Path) -> None:
    parts = [FIRST, step(1, written=11_000, at=LIFETIME_S + 1), step(2, written=12_000, at=3 * LONG_LIFETIME_S)]
    made = session(user("go"))
    made.steps = parts
    (short, long) = session_bill(made, is_priced=True, is_subagents=False).losses
    assert (short.cause, round(short.pause_s), long.cause) == ("rebuilt", LIFETIME_S + 1, "rebuilt")
    written = 10_000 + 1_000 + 12_000  # those of the first pause would have been read
    assert short.longer_usd == pytest.approx(written * (10 - 6.25) / 1e6)


def test_the_study_shows_the_bill_by_cause(tmp_path: Path) -> None:
    big = say("", input_tokens=0, cache_write_tokens=100_000, cache_read_tokens=0, output_tokens=0)
    again = say("", input_tokens=0, cache_write_tokens=0, cache_read_tokens=100_000, output_tokens=1_000)
    made = session(user("go"), big, again, event("compaction"), repo="a/b", branch="main")
    store = store_of(tmp_path, made, session(user("go"), session_id="free"))
    by_id = findings(store, "cost_causes")
    assert {name: f.value for name, f in by_id.items() if f.value} == pytest.approx(
        {"cache_write": 0.625, "carried_start": 0.05, "output": 0.025}
    )
    assert by_id["output"].sessions == ("s1",)
    tables = {table.id.partition(".")[2]: table for table in outcome(store, "cost_causes").tables}
    assert [without_bound(cell) for cell in tables["causes"].rows[-1]] == ["all", pytest.approx(0.7), 1.0, 2]
    for name, value in (("place", "a/b"), ("branch", "main"), ("model", MODEL), ("day", "2026-01-01")):
        ((first, *cells),) = tables[f"by_{name}"].rows
        assert (first, [without_bound(usd) for usd in cells]) == (
            value,
            pytest.approx([0.7, 0.05, 0, 0, 0, 0.625, 0.025, 0]),
        )
        assert behind(store, f"study:cost_causes:cost_causes.by_{name}:{value}").parts == {
            "s1": (pytest.approx(0.7), 1)
        }


def test_what_is_logged_in_mid_stream_makes_output_and_bill_a_lower_bound(tmp_path: Path) -> None:
    low = say("word " * 400, input_tokens=10, output_tokens=1)
    store = store_of(tmp_path, session(user("go"), *[low] * 3))
    by_id = findings(store, "cost_causes")
    assert {name for name, f in by_id.items() if f.at_least} == {"output"} < set(BOUNDED)
    made = outcome(store, "cost_causes")
    causes_table = next(table for table in made.tables if table.id == "cost_causes.causes")
    assert isinstance(causes_table.rows[-1][1], AtLeast) and any("under-report" in limit for limit in made.limits)


def test_a_part_without_a_price_makes_every_sum_over_its_session_a_lower_bound(tmp_path: Path) -> None:
    used: dict[str, Any] = {"input_tokens": 1000, "output_tokens": 1000, "stop_reason": "end_turn"}
    made = session(user("go"), say("a", **used), say("b", model="a-model-nobody-prices", **used), repo="a/b")
    store = store_of(tmp_path, made)
    tables = {t.id: t for study in ("cost", "cost_causes") for t in outcome(store, study).tables}
    for name, column in (("causes", 1), ("by_place", 1), ("by_model", 1)):
        assert isinstance(tables[f"cost_causes.{name}"].rows[-1][column], AtLeast), name
    by_agent = tables["cost.by_agent"]
    cost, output = ([c.key for c in by_agent.columns].index(name) for name in ("cost", "output"))
    assert isinstance(by_agent.rows[0][cost], AtLeast) and not isinstance(by_agent.rows[0][output], AtLeast)
    assert {f.id for f in outcome(store, "cost").findings if f.at_least} >= {"cost.total", "cost.median"}


def test_a_subagent_with_a_session_of_its_own_is_one_cost_in_all_figures_and_a_fork_is_none(tmp_path: Path) -> None:
    used: dict[str, Any] = {"input_tokens": 0}
    store = store_of(
        tmp_path / "s",
        session(user("go"), say("a", output_tokens=1000, **used)),
        session(say("b", output_tokens=2000, **used), session_id="child", parent_session_id="s1"),
        session(user("go on"), say("c", output_tokens=4000, **used), session_id="fork", parent_session_id="s1"),
    )
    (one,) = [f for f in outcome(store, "cost").findings if f.id == "cost.subagents"]
    (other,) = [f for f in outcome(store, "cost_causes").findings if f.id == "cost_causes.subagents"]
    assert one.value == other.value == pytest.approx(0.05)
    assert rows(store, one.command.split('"')[1])[1] == [(one.value,)]


def test_totals_that_one_session_rules_are_named_in_every_table(tmp_path: Path) -> None:
    def one(name: str, calls: int) -> Any:
        answers = [say("a", input_tokens=100, output_tokens=1000) for _ in range(calls)]
        searches = [call("Grep", pattern=f"x{n}") for n in range(calls)]
        return session(user("go"), *answers, *searches, session_id=name, repo="a/b", branch="main")

    store = store_of(tmp_path, *[one(f"s{n}", 2) for n in range(3)], one("big", 30))
    notes = {t.id: t.note for study in ("cost_causes", "tools") for t in outcome(store, study).tables}
    ruled = "One session (or the largest 1%) makes up most of: {} (83.3%; median session "
    assert notes["tools.names"].startswith(ruled.format("Grep"))
    for name, value in (("place", "a/b"), ("branch", "main"), ("model", MODEL), ("day", "2026-01-01")):
        assert notes[f"cost_causes.by_{name}"].startswith(ruled.format(value))
    assert "output (83.3%" in notes["cost_causes.causes"]
    assert "One session accounts for" in findings(store, "cost")["total"].note
