"""Every study: the form of what it finds, its numbers by a second road, and stores that lack what it looks for."""

from __future__ import annotations

import json
import shlex
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import main
from agentsignals.errors import UsageError
from agentsignals.model import Session
from agentsignals.questions.question import LAST, AtLeast, Finding, Outcome, without_bound
from agentsignals.questions.sql import pooled
from agentsignals.questions.studies import studies as every_study
from agentsignals.questions.studies import study
from agentsignals.store import Store
from agentsignals.store.query import connect, run
from agentsignals.ui.document import document
from tests.build import call, say, session, user
from tests.questions.stores import findings, outcome, store_of

USED = {"input_tokens": 10, "output_tokens": 20, "cache_read_tokens": 30, "cache_write_tokens": 5}


@pytest.fixture(scope="module")
def demo_store(demo_folder: Path) -> Store:
    return Store(demo_folder / "store")


@pytest.fixture(scope="module")
def corpus_store(corpus_folder: Path) -> Store:
    return Store(corpus_folder / "store")


@lru_cache(maxsize=2)  # the fixtures' stores: nothing is written to them
def outcomes(folder: Path) -> dict[str, Outcome]:
    store = Store(folder)
    return {name: outcome(store, name) for name in with_something_to_say(folder)}


def all_findings(store: Store) -> dict[str, list[Finding]]:
    return {name: found.findings for name, found in outcomes(store.folder).items()}


@lru_cache(maxsize=2)
def with_something_to_say(folder: Path) -> list[str]:
    """The studies in the report of this store: those of the other context, or without labels, are left out."""
    found = document(Store(folder))
    assert {one.study for one in found.left_out} | {s.study for s in found.sections} == set(every_study())
    assert {"sessions", "tools", "errors", "people", "reading"} <= {s.study for s in found.sections}
    return [s.study for s in found.sections]


def same(value: Any, other: Any) -> bool:
    return value == other or (isinstance(value, int | float) and other == pytest.approx(value, rel=1e-9))


def assert_commands_make_values_again(store: Store, folder: Path) -> None:
    connection = connect(store)
    reports: dict[str, dict[str, Any]] = {}
    for name, found in all_findings(store).items():
        for one in found:
            words = shlex.split(one.command)
            if words[1] == "report":
                file = folder / words[-1]
                if one.command not in reports:
                    assert main([*words[1:-1], str(file), "--store", str(store.folder)]) == 0
                    found_again = [f for s in json.loads(file.read_text())["sections"] for f in s["findings"]]
                    reports[one.command] = {f["id"]: f["value"] for f in found_again}
                again = reports[one.command][one.id]
            else:
                assert words[:2] == ["agentsignals", "query"] and len(words) == 3
                again = run(connection, words[2]).fetchall()[0][0]
            assert same(one.value, again), f"{name}: {one.id} is {one.value}, its command gives {again}"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["demo_store", pytest.param("corpus_store", marks=pytest.mark.corpus)])
def test_every_command_makes_its_value_again(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """A second road: the studies count in Python, the commands in SQL."""
    assert_commands_make_values_again(request.getfixturevalue(name), tmp_path)


@pytest.mark.slow
def test_estimates_carry_versions_and_an_interval(demo_store: Store) -> None:
    """A share of sessions or calls, and a median: never bare, but for shares of a sum, which are no estimate."""
    every = [one for found in all_findings(demo_store).values() for one in found]
    for one in every:
        assert one.n > 0 and one.versions is not None and one.versions.schema >= 1, one.id
        assert set(one.versions.signals) == set(one.signals), one.id
        assert bool(one.versions.prices) == one.priced, one.id
        inside = one.command.removeprefix('agentsignals query "').removesuffix('"')
        assert not set(inside) & set('"`$\\!\n'), "words that a shell leaves alone"
    bare = {e.id for e in every if e.interval is None and (e.kind in ("share", "number") or "median" in e.id)}
    assert bare == {"worth.cost_share", "worth.error_share", "models.largest_place"}


def test_every_study_has_a_place_of_its_own_in_the_report() -> None:
    orders = [one.order for one in every_study().values()]
    assert orders == sorted(set(orders)) and orders[-1] < LAST


def test_an_unknown_study_names_what_there_is() -> None:
    with pytest.raises(UsageError) as caught:
        study("weather")
    assert "'weather'" in caught.value.message and "worth_opening" in caught.value.hint


# -- stores that lack something ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_empty_store_has_no_value_but_counts(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", create=True)
    for name in every_study():
        found = outcome(store, name)
        for one in found.findings:
            assert one.value in (0, None), f"{name}: {one.id}"
            assert one.n == 0 and one.interval is None
        assert found.charts == found.tables == []


def bare_session(name: str) -> Session:
    """A session as the poorest formats leave it: no time, no tokens, no folder."""
    made = session(user("fix it"), say("done"), call("Read", path="a.py"), session_id=name)
    for row in (*made.turns, *made.events, *made.steps):
        row.timestamp = None
    for tool_call in made.tool_calls:
        tool_call.started_at = tool_call.ended_at = None
    made.started_at = made.ended_at = None
    return made


def test_sessions_without_times_tokens_and_costs(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s", bare_session("one"), bare_session("two"))
    sizes = findings(store, "sessions")
    assert (sizes["count"].value, sizes["without_time"].value, sizes["work_s.median"].value) == (2, 2, None)
    costs = findings(store, "cost")
    assert (costs["total"].value, costs["total"].n, costs["unpriced"].value) == (None, 0, 2)
    assert [chart.id for name in ("sessions", "cost") for chart in outcome(store, name).charts] == []
    assert any("2 of 2 sessions is unknown" in limit for limit in outcome(store, "cost").limits)


def test_unknown_costs_are_left_out_and_told_never_zero(tmp_path: Path) -> None:
    priced = session(user("a"), say("b", **USED), session_id="priced")
    unpriced = session(user("a"), say("b", model="a-model-nobody-sells", **USED), session_id="unpriced")
    store = store_of(tmp_path / "s", priced, unpriced)
    costs = findings(store, "cost")
    assert costs["total"].n == 1 and costs["total"].value == pytest.approx(priced.steps[0].cost_usd)
    assert costs["unpriced"].value == 1 and costs["total"].note.startswith("excluded: 1 session without a known price")
    assert costs["output_tokens"].value == 40
    row = outcome(store, "cost").tables[0].rows[0]
    assert row[:4] == ["claude-code", 2, 1, 1] and without_bound(row[4]) == costs["total"].value
    assert [r[1] for r in outcome(store, "cost").tables[1].rows] == ["unpriced: a-model-nobody-sells"]


def test_a_clock_that_was_never_set_does_not_stretch_the_axis(tmp_path: Path) -> None:
    sessions = [session(user("a"), session_id=f"s{n}") for n in range(3)]
    sessions[0].started_at = 0
    sessions[2].started_at = 1_767_225_600_000_000 + 3 * 86_400_000_000
    store = store_of(tmp_path / "s", *sessions)
    assert findings(store, "sessions")["without_time"].value == 1
    chart = outcome(store, "sessions").charts[0]
    assert chart.id == "sessions.over_time" and chart.n == 2
    assert chart.form.span == ("2026-01-01T00:00:00Z", "2026-01-05T00:00:00Z")


def test_sessions_of_one_day_make_no_chart_over_time(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s", *(session(user("a"), session_id=f"s{n}") for n in range(3)))
    assert "sessions.over_time" not in {chart.id for chart in outcome(store, "sessions").charts}


def test_agents_beyond_five_share_a_colour(tmp_path: Path) -> None:
    sessions = []
    for n in range(7):
        for day in range(2):
            made = session(user("a"), session_id=f"s{n}-{day}")
            made.agent, made.started_at = f"agent-{n}", 1_767_225_600_000_000 + day * 86_400_000_000
            sessions.append(made)
    chart = outcome(store_of(tmp_path / "s", *sessions), "sessions").charts[0]
    assert chart.form.names == (*(f"agent-{n}" for n in range(5)), "others")
    rows = chart.marks
    assert [(r["name"], r["low"], r["high"]) for r in rows if r["from"].startswith("2026-01-01")][-1] == (
        "others",
        5,
        7,
    )


# -- single findings ---------------------------------------------------------------------------------------------------


def test_a_loop_is_found_and_named(tmp_path: Path) -> None:
    looping = session(
        user("go"), *[call("Bash", command="make") for _ in range(6)], session_id="loops", title="Turning"
    )
    calm = session(user("go"), call("Bash", command="make"), call("Read", path="a.py"), session_id="calm")
    store = store_of(tmp_path / "s", looping, calm)
    found = findings(store, "repetition")
    assert found["pooled"].value == pytest.approx(5 / 8)
    assert (found["stale"].value, found["stale"].n) == (0.5, 2)
    table = outcome(store, "worth_opening").tables[0]
    assert table.id == "worth.loops" and [row[:4] for row in table.rows] == [["loops", 6, 5 / 6, "Turning"]]
    assert store.session(table.rows[0][0]).title == "Turning"


def test_sessions_worth_opening_are_told_by_their_first_prompt_in_one_line(tmp_path: Path) -> None:
    made = session(user("fix\n  this\x07 " + "x" * 200), call("Bash", command="false", status="error"), session_id="f")
    table = outcome(store_of(tmp_path / "s", made), "worth_opening").tables[0]
    assert table.id == "worth.failing"
    about = table.rows[0][3]
    assert about.startswith("fix this") and about.endswith("…") and len(about) == 90


def model_session(name: str, model: str, cwd: str, calls: int = 12, failed: int = 1) -> Session:
    parts: list[Any] = []
    for n in range(calls):
        parts += [say("x", model=model), call("Bash", command=f"run {n}", status="error" if n < failed else "ok")]
    made = session(user("go"), *parts, session_id=name, cwd=cwd)
    for tool_call, step in zip(made.tool_calls, made.steps, strict=True):
        tool_call.step = step.step
    return made


def test_models_are_told_with_what_speaks_against_their_figures(tmp_path: Path) -> None:
    wide = [model_session(f"w{n}", "wide", f"/p/{n % 5}") for n in range(12)]
    narrow = [model_session(f"n{n}", "narrow", "/p/0", failed=3) for n in range(12)]
    thin = [model_session("t", "thin", "/p/1")]
    found = outcome(store_of(tmp_path / "s", *wide, *narrow, *thin), "models")
    rows = {row[0]: row for row in found.tables[0].rows}
    assert {name: row[-1] for name, row in rows.items()} == {
        "wide": "",
        "narrow": "one project",
        "thin": "few sessions, few calls, one project",
    }
    assert rows["narrow"][6:8] == [144, pytest.approx(0.25)]
    assert [row["name"] for row in found.charts[0].marks] == ["narrow", "wide"]
    assert any("leaderboard" in limit for limit in found.limits)
    assert any("2 of 3 models have more than half" in limit for limit in found.limits)


@pytest.mark.slow
def test_the_row_of_all_agents_says_what_the_other_studies_say(demo_store: Store) -> None:
    table = outcome(demo_store, "agents").tables[0]
    assert [row[0] for row in table.rows] == ["all agents", "claude-code", "codex", "gemini-cli", "pi"]
    row = dict(zip([c.key for c in table.columns], table.rows[0], strict=True))
    elsewhere = {one.id: one.value for found in all_findings(demo_store).values() for one in found}
    for key, name in {
        "n": "sessions.count",
        "autonomy": "autonomy.median",
        "errors": "errors.rate",
        "recovery": "errors.recovery",
        "entropy": "tools.entropy.median",
        "events": "sessions.events.median",
        "read_first": "edits.read_first",
        "cost": "cost.median",
        "short": "people.short",
        "opening": "people.opening",
    }.items():
        assert same(elsewhere[name], without_bound(row[key])), name
    assert same(demo_store.sql(pooled("chat.pushback_rate")).fetchall()[0][0], without_bound(row["pushback"]))
    assert isinstance(row["pushback"], AtLeast), "what word rules find is a lower bound"


def test_a_session_with_two_models_counts_for_each(tmp_path: Path) -> None:
    made = session(user("go"), say("a", model="first"), say("b", model="second"), session_id="both")
    found = findings(store_of(tmp_path / "s", made), "models")
    assert (found["count"].value, found["count"].n, found["unnamed"].value) == (2, 1, 0)
