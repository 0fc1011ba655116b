"""The study of attempts: labels by treatment, first attempts apart from retries, and what is not known of them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import main
from agentsignals.model import Session, Verification
from agentsignals.questions.compare import compare, outcome_rule, queries
from agentsignals.questions.question import Outcome
from agentsignals.stats.intervals import wilson
from agentsignals.store import Store
from agentsignals.store.query import rows as ask
from agentsignals.ui.page import Query
from agentsignals.ui.rendering import answer_of
from agentsignals.ui.snapshot import Snapshot
from tests.build import call, session, user
from tests.questions.stores import outcome, store_of
from tests.signals.attempts import graded, patched, trial

CAPS = {"attempt1_tool_cap": 20, "retry_tool_cap": 50, "agent_type": "subq", "model_id": "m1", "dataset": "d1"}


def attempts(name: str, *facts: dict[str, Any], **knobs: Any) -> Iterator[Session]:
    """The attempts of a trial at the task `name`, each with a patch unless it says otherwise."""
    for view in trial(*({"patch": [patched("a.py")], "knobs": {**CAPS, **knobs}, **one} for one in facts)):
        made = view.session
        assert made.attempt is not None
        made.session_id, made.attempt.trial_id = f"{name}-{made.attempt.attempt_index}", name
        made.attempt.task_id = name
        yield made


SOLVED: dict[str, Any] = {"reward": 1.0, "verification": graded(fixed=2, kept=3)}
REGRESSED: dict[str, Any] = {"reward": 0.0, "verification": graded(unfixed=2, broken=1, kept=2)}
GOLD = {"gold_patch": [patched("a.py")]}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    people = session(user("hello"), call("Bash", command="ls"), session_id="person")
    return store_of(
        tmp_path_factory.mktemp("attempts") / "s",
        people,
        *attempts("t1", {**REGRESSED, **GOLD}, SOLVED),
        *attempts("t2", {**SOLVED, **GOLD}),
        *attempts("t3", {"patch": [], "reward": 0.0}),
        *attempts("t4", {"patch": [patched("b.py")], **REGRESSED, **GOLD}, model_id="m2", attempt1_tool_cap=None),
    )


@pytest.fixture(scope="module")
def found(store: Store) -> Outcome:
    return outcome(store, "attempts")


def rows(found: Outcome, name: str) -> list[dict[str, Any]]:
    table = next(t for t in found.tables if t.id == f"attempts.{name}")
    return [dict(zip([c.key for c in table.columns], row, strict=True)) for row in table.rows]


def test_first_attempts_and_retries_are_never_one_number(found: Outcome) -> None:
    values = {f.id.partition(".")[2]: (f.value, f.n) for f in found.findings}
    assert values["count"] == (5, 5) and values["trials"] == (4, 5) and values["tasks"] == (4, 5)
    assert values["solved"] == (0.25, 4), "the retry that solved t1 does not make its first attempt a success"
    assert values["retries_solved"] == (1.0, 1)
    assert values["localized"] == (pytest.approx(2 / 3), 3), "of a task without a gold patch it is not known"
    assert values["without_transcript"] == (5, 5)


def test_what_is_missing_gives_bounds_and_what_gave_up_is_not_missing(tmp_path: Path) -> None:
    """Of six: two solved, a failed test, no patch, time used up; a crashed verifier and a broken environment apart."""
    crashed = Verification(status="crashed")
    store = store_of(
        tmp_path / "s",
        *attempts("s1", SOLVED | {"wall_time_s": 10.0, "cost_usd": 1.0}),
        *attempts("s2", SOLVED | {"wall_time_s": 20.0}),
        *attempts("f1", REGRESSED | {"wall_time_s": 30.0, "cost_usd": 3.0}),
        *attempts("f2", {"patch": [], "verification": graded()}),
        *attempts("f3", {"ending": "time"}),
        *attempts("u1", {"verification": crashed, "reward": 1.0}),
        *attempts("u2", {"ending": "infrastructure", "exception": "EnvironmentStartError", "reward": 0.0}),
    )
    by_id = {f.id.partition(".")[2]: f for f in outcome(store, "attempts").findings}
    solved = by_id["solved"]
    assert (solved.value, solved.n) == (0.4, 5)
    bounds = "28.6% to 57.1% whatever the outcome of the 1 not judged, 1 infrastructure"
    assert solved.note == f"5 tasks; {bounds}; interval over tasks, because attempts at one task are alike"
    assert (by_id["time_per_solved"].value, by_id["time_per_solved"].n) == (30.0, 3)
    assert (by_id["cost_per_solved"].value, by_id["cost_per_solved"].n) == (4.0, 2)
    (row,) = rows(outcome(store, "attempts"), "by_treatment")
    assert [row[k] for k in ("solved", "failed", "not_judged", "infrastructure")] == [2, 3, 1, 1]
    assert (row["worst"], row["best"]) == (pytest.approx(2 / 7), pytest.approx(4 / 7))
    listed = {r["instance"]: r["outcome"] for r in rows(outcome(store, "attempts"), "each")}
    assert listed["f2"] == "failed: no artifact" and listed["s1"] == "solved"


@pytest.mark.parametrize("tries", [1, 3])
def test_one_rate_has_one_interval_wherever_it_stands(tmp_path: Path, tries: int) -> None:
    """Report, page and comparison take tasks as drawn: three attempts at each of eight are no 24."""
    runs = [
        made
        for task in range(8)
        for n in range(tries)
        for made in attempts(f"t{task}.{n}", {"reward": float(task % 3 == 0)})
    ]
    for made in runs:
        assert made.attempt is not None and made.attempt.task_id is not None
        made.attempt.task_id = made.attempt.task_id.partition(".")[0]
    store = store_of(tmp_path / "s", *runs)
    rule = outcome_rule("reward")
    asked = {name: ask(store, sql) for name, sql in queries(rule).items()}
    (candidate,) = compare(
        rule, {k: [dict(zip(n, r, strict=True)) for r in v] for k, (n, v) in asked.items()}
    ).candidates
    (row,) = rows(outcome(store, "attempts"), "by_treatment")
    (shown,) = answer_of(Snapshot(store), "/attempts", Query()).filled["treatments"]
    expected = (candidate.first.low, candidate.first.high)
    assert (row["low"], row["high"]) == expected
    assert shown["interval"] == pytest.approx(expected)
    assert (expected == wilson(3 * tries, 8 * tries)) == (tries == 1)


def test_where_nothing_was_evaluated_what_gave_up_is_no_rate(tmp_path: Path) -> None:
    """Only failures could be known: no patch, no time left."""
    made = outcome(
        store_of(tmp_path / "s", *attempts("a", {"patch": []}), *attempts("b", {"ending": "time"})), "attempts"
    )
    solved = next(f for f in made.findings if f.id == "attempts.solved")
    assert (solved.value, solved.n) == (None, 0)
    (row,) = rows(made, "by_treatment")
    assert (row["failed"], row["not_judged"], row["worst"], row["best"]) == (0, 2, 0.0, 1.0)


def test_labels_stand_by_treatment_and_attempt(found: Outcome) -> None:
    keyed = {(r["model"], r["cap"], r["attempt"]): r for r in rows(found, "by_treatment")}
    assert set(keyed) == {("m1", 20, "first"), ("m1", 50, "retry"), ("m2", None, "first")}
    first = keyed["m1", 20, "first"]
    assert (first["attempts"], first["correct_patch"], first["regressive_patch"]) == (3, 1, 1)
    assert (first["solved"], first["failed"], first["share"]) == (1, 2, pytest.approx(1 / 3))
    assert keyed["m1", 50, "retry"]["correct_patch"] == 1


def test_each_attempt_has_a_row_and_what_is_not_known_is_empty(found: Outcome) -> None:
    keyed = {r["session"]: r for r in rows(found, "each")}
    assert len(keyed) == 5 and "person" not in keyed
    one = keyed["t1-0"]
    assert (one["instance"], one["model"], one["attempt"], one["label"], one["localized"]) == (
        "t1", "m1", 1, "regressive", "yes",
    )  # fmt: skip
    assert [one[k] for k in ("fail_to_pass_count", "pass_to_fail_count", "pass_to_pass_count")] == [0, 1, 2]
    assert keyed["t1-1"]["attempt"] == 2 and keyed["t4-0"]["localized"] == "no"
    assert keyed["t3-0"]["label"] is None and keyed["t3-0"]["localized"] is None and keyed["t3-0"]["tool_calls"] is None


def test_a_long_list_is_cut_and_says_so(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentsignals.questions.studies.attempts.MOST_LISTED", 3)
    table = next(t for t in outcome(store, "attempts").tables if t.id == "attempts.each")
    assert [row[4] for row in table.rows] == ["regressive", "correct", "regressive"], "most is known of these"
    assert table.n == 5 and table.note.startswith("2 more are not listed")


def test_what_can_not_be_concluded_names_missing_caps_and_what_dominates(found: Outcome) -> None:
    told = " ".join(found.limits)
    assert "1 of 5 attempts without a recorded tool-call limit" in told
    assert "5 of 5 attempts with an outcome are of one dataset, d1" in told
    assert "4 of 5 attempts with an outcome are of one model, m1" in told and "one task" not in told


@pytest.mark.slow
def test_every_command_makes_its_value_again(store: Store, found: Outcome, capsys: Any) -> None:
    assert_again(store, found, capsys)


def assert_again(store: Store, found: Outcome, capsys: Any) -> None:
    for one in found.findings:
        assert main([*shlex.split(one.command)[1:], "--json", "--store", str(store.folder)]) == 0
        ((value,),) = [list(row.values()) for row in json.loads(capsys.readouterr().out)]
        assert value == one.value or value == pytest.approx(one.value), one.id
