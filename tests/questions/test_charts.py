"""What charts draw, as rows: classes of values, spans of time, positions in a session."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsignals.model import Session
from agentsignals.questions.charts import COUNTS, RATIOS, SHARES, buckets_of, histogram_chart, next_start, start_of
from agentsignals.questions.question import Chart, Kind, formatted, singular
from tests.build import call, event, say, session, user
from tests.questions.stores import findings, outcome, store_of
from tests.quick import each_row

SINGULAR = {
    "sessions of at least 5 calls": "session of at least 5 calls",
    "answered calls": "answered call",
    "lines of commits in HEAD's history": "line of commits in HEAD's history",
    "your sessions, at most": "your session, at most",
    "prompts whose language is known": "prompt whose language is known",
    "repositories": "repository",
    "passes that looked up the fix": "pass that looked up the fix",
    "metric": "metric",
}
DAY = 86_400_000_000
START = 1_767_225_600_000_000  # Thursday 2026-01-01, 00:00 UTC


def test_one_thing_is_named_in_the_singular() -> None:
    assert {nouns: singular(nouns) for nouns in SINGULAR} == SINGULAR


def columns(chart: Chart | None) -> list[tuple[str, int]]:
    assert chart is not None
    return [(row["name"], row["value"]) for row in chart.marks]


def spread(values: list[float], edges: tuple[float, ...]) -> Chart | None:
    return histogram_chart([("s", value) for value in values], edges, id="x", title="x", unit="things")


def test_counts_fall_into_classes_that_double() -> None:
    found = spread([0, 1, 1, 2, 3, 4, 5, 8, 9, 600], COUNTS)
    names = ["0", "1", "2", "≤4", "≤8", "≤16", "≤32", "≤64", "≤128", "≤256", "≤512", ">512"]
    assert columns(found) == list(zip(names, [1, 2, 1, 2, 2, 1, 0, 0, 0, 0, 0, 1], strict=True))
    assert found is not None
    tips = [row["tip"] for row in found.marks]
    assert tips[1] == "1 things: 2 of 10 sessions" and tips[3] == "3 to 4 things: 2 of 10 sessions"
    assert tips[-1] == "more than 512 things: 1 of 10 sessions"


def test_ratios_and_shares_lie_over_one_end_up_to_the_other() -> None:
    assert columns(spread([0.5, 1.0, 1.5, 20.5], RATIOS)) == [
        ("≤1", 2), ("≤2", 1), ("≤5", 0), ("≤10", 0), ("≤20", 0), ("≤40", 1),
    ]  # fmt: skip
    found = spread([0.0, 0.02, 0.021, 1.0], SHARES)
    assert columns(found) == [("0%", 1), ("≤2%", 1), ("≤5%", 1), ("≤10%", 0), ("≤20%", 0), ("≤50%", 0), ("≤100%", 1)]
    assert found is not None and found.marks[2]["tip"].startswith("over 2% to 5% things")


@pytest.mark.parametrize("values", [[], [3.0], [3.0, 4.0]])
def test_one_class_makes_no_histogram(values: list[float]) -> None:
    assert spread(values, COUNTS) is None


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=50))
def test_every_value_is_in_one_class(values: list[float]) -> None:
    for edges in (COUNTS, RATIOS):
        found = spread(values, edges)
        assert found is None or sum(n for _, n in columns(found)) == len(values) == found.n


@pytest.mark.parametrize(
    ("moment", "day", "week", "month"),
    [
        ("2026-01-01 13:45", "2026-01-01", "2025-12-29", "2026-01-01"),
        ("2026-03-02 00:00", "2026-03-02", "2026-03-02", "2026-03-01"),
        ("2024-02-29 23:59", "2024-02-29", "2024-02-26", "2024-02-01"),
    ],
)
def test_days_weeks_from_monday_and_months(moment: str, day: str, week: str, month: str) -> None:
    at = datetime.fromisoformat(moment)
    assert start_of(at, "day") == datetime.fromisoformat(day)
    assert start_of(at, "week") == datetime.fromisoformat(week)
    assert start_of(at, "month") == datetime.fromisoformat(month)


@pytest.mark.parametrize(("days", "step"), [(0, "day"), (45, "day"), (46, "week"), (732, "week"), (733, "month")])
def test_the_span_decides_the_step(days: int, step: str) -> None:
    first = datetime(2026, 1, 1)
    found = buckets_of([first + timedelta(days=days), first])
    assert found is not None and found.step == step
    assert found.first <= first < found.end
    assert next_start(found.first, found.step) > found.first


def timed(name: str, at: int, agent: str = "codex", turns: int = 1) -> Session:
    parts = [part for _ in range(turns) for part in (user("go"), say("x"))]
    made = session(*parts, session_id=name)
    made.agent, made.started_at = agent, at
    return made


def test_columns_over_time_stand_on_each_other_and_add_up(tmp_path: Path) -> None:
    sessions = [
        timed("a", START), timed("b", START + DAY), timed("c", START + DAY, "pi"), timed("d", START + 60 * DAY, "pi"),
    ]  # fmt: skip
    found = outcome(store_of(tmp_path / "s", *sessions), "sessions").charts[0]
    assert (found.title, found.n) == ("Sessions started by week", 4)
    rows = [(r["name"], r["from"][:10], r["low"], r["high"]) for r in found.marks]
    assert rows == [("codex", "2025-12-29", 0, 2), ("pi", "2025-12-29", 2, 3), ("pi", "2026-03-02", 0, 1)]
    for row in found.marks:
        assert row["from"] < row["to"] < "2026-03-09T00:00:00Z"


def test_what_is_drawn_of_costs_is_what_is_told_of_them(tmp_path: Path) -> None:
    used = {"input_tokens": 1000, "output_tokens": 500, "cache_read_tokens": 0, "cache_write_tokens": 0}
    used |= {"stop_reason": "end_turn"}  # else the output may be as it stood in mid-stream, and is not drawn
    sessions = []
    for n in range(6):
        made = session(user("go"), say("x", **used), session_id=f"s{n}")
        made.started_at = START + n * DAY
        sessions.append(made)
    store = store_of(tmp_path / "s", *sessions)
    chart = outcome(store, "cost").charts[0]
    assert chart.id == "cost.over_time"
    drawn = sum(row["high"] - row["low"] for row in chart.marks)
    assert drawn == pytest.approx(findings(store, "cost")["total"].value) and drawn > 0


def test_objections_and_cuts_by_the_number_of_the_prompt(tmp_path: Path) -> None:
    """First prompts have nothing to object to: they are in the cuts' n and not in the objections'."""
    cut = session(
        user("add a retry to the worker"),
        call("Bash", command="ls"),
        event("interrupt", "[Request interrupted by user]"),
        user("no, that is wrong"),
        say("ok"),
        user("now update the docs please"),
        say("done"),
        session_id="cut",
    )
    calm = session(
        user("review the parser"), say("fine"), user("thanks, and the tests too"), say("ok"), session_id="calm"
    )
    chart = next(c for c in outcome(store_of(tmp_path / "s", cut, calm), "people").charts if c.id == "people.positions")
    rows = {(r["at"], r["name"]): r["tip"].partition(": ")[2] for r in chart.marks}
    assert rows == {
        ("1", "cut short"): "1 of 2, 50.0%",
        ("2", "pushback, at least"): "at least 1 of 2 prompts",
        ("2", "cut short"): "0 of 2, 0.0%",
        ("3", "pushback, at least"): "at least 0 of 1 prompts",
        ("3", "cut short"): "0 of 1, 0.0%",
    }


def test_late_prompts_are_one_class(tmp_path: Path) -> None:
    long = [timed(f"s{n}", START + n, turns=9) for n in range(2)]
    chart = next(c for c in outcome(store_of(tmp_path / "s", *long), "people").charts if c.id == "people.positions")
    cuts = [r for r in chart.marks if r["name"] == "cut short"]
    assert [r["at"] for r in cuts] == ["1", "2", "3", "4", "5", "6+"]
    assert [r["tip"].split(" of ")[1].split(",")[0] for r in cuts] == ["2", "2", "2", "2", "2", "8"]
    assert all(a["high"] >= b["high"] for a, b in pairwise(cuts)), "more prompts, a narrower interval"


@each_row(("value", "kind", "words"), [
        (None, "count", "–"), (0, "count", "0"), (1234567, "count", "1,234,567"), (62.5, "count", "62.5"),
        (7.365, "number", "7.37"), (9.0, "number", "9"), (6.5, "number", "6.5"),
        (10.04, "number", "10"), (315.4, "number", "315"),
        (0.0, "share", "0.0%"), (0.0004, "share", "<0.1%"), (0.0515, "share", "5.1%"), (1.0, "share", "100.0%"),
        (0.0012, "usd", "$0.0012"), (0.65, "usd", "$0.65"), (415.357, "usd", "$415.36"), (12345.6, "usd", "$12,346"),
        (999, "tokens", "999"), (2_204_309, "tokens", "2.2 M"), (494_457_300, "tokens", "494 M"),
        (5.2e12, "tokens", "5,200 G"),
        (5, "bytes", "5 B"), (59_717_572, "bytes", "59.7 MB"),
        (3.2, "seconds", "3.2 s"), (58, "seconds", "58 s"), (228, "seconds", "3.8 min"), (9000, "seconds", "2.5 h"),
        (datetime(2026, 3, 2, 9), "date", "2026-03-02"),
        ("statement", "text", "statement"),
    ])  # fmt: skip
def test_figures_as_people_read_them(value: object, kind: Kind, words: str) -> None:
    assert formatted(value, kind) == words
