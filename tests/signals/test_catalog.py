"""The catalogue of signals: its names, what reads a verdict, what never varies, and evidence for every value."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from agentsignals.changes.hunks import Hunk
from agentsignals.errors import CatalogError
from agentsignals.model import Absent, Statement
from agentsignals.questions.drivers.predictors import hindsight_of
from agentsignals.signals.catalog import INTERNAL_ERROR, by_path, catalogue, explain, inventory, measure
from agentsignals.store import Store
from agentsignals.store.query import rows
from agentsignals.views.session import SessionView
from tests.build import START, call, say, think, user, view
from tests.signals.ask import absent, detail, value
from tests.signals.attempts import graded, patched, ran, unseen

NAMES: dict[str, str] = tomllib.loads((Path(__file__).parents[1] / "word_tables.toml").read_text("utf-8"))["signals"]
"""The last part of every path of the inventory, by its group; `[]` is a list over the session."""
STATUSES = {"computed", "needs a judge", "needs a repository", "needs an artifact", "blocked upstream"}


def named() -> set[str]:
    return {f"{group}.{name}" for group, names in NAMES.items() for name in names.split()}


def test_every_signal_of_the_inventory_is_declared_and_every_other_says_that_it_is_ours() -> None:
    declared = {s.path: s.origin for s in catalogue().values()}
    assert len(named()) == 156
    assert named() - declared.keys() == set()
    assert {origin for path, origin in declared.items() if path not in named()} == {"agentsignals", "this project"}


def test_each_is_in_the_inventory_with_a_status_and_a_meaning() -> None:
    rows = {row["path"]: row for row in inventory()}
    assert rows.keys() >= named() and len(rows) == len(catalogue())
    assert {row["status"] for row in rows.values()} <= STATUSES
    assert [p for p, row in rows.items() if not (row["description"] and row["unit"] and row["origin"])] == []


def test_a_status_that_is_none_is_refused() -> None:
    with pytest.raises(CatalogError, match="no status 'judged'"):
        inventory(status="judged")


def test_filters_of_the_inventory_narrow_it() -> None:
    every = inventory()
    for given in ({"context": "eval"}, {"high_value": True}, {"status": "needs a judge"}, {"text": "hedg"}):
        found = inventory(**given)  # type: ignore[arg-type]  # one filter at a time
        assert 0 < len(found) < len(every), given
    assert {row["context"] for row in inventory(context="eval")} == {"eval", "both"}


# -- what reads how an attempt was judged says so: nothing else may change when only the verdict does

SOLVED: dict[str, Any] = {
    "reward": 1.0,
    "rewards": {"visible": 1.0, "hidden": 1.0},
    "verification": graded(fixed=2, kept=3),
    "gold_patch": [patched("a.py")],
    "localization": {"attempt1Mode": "hit", "trialRecoveryMode": "none", "finalFailureMode": "none"},
    "wall_time_s": 60.0,
}
FAILED: dict[str, Any] = {
    "reward": 0.0,
    "rewards": {"visible": 0.0, "hidden": 0.0},
    "verification": graded(unfixed=2, broken=3, status="crashed", patch_applies=False),
    "gold_patch": [patched("b.py")],
    "localization": {"attempt1Mode": "miss", "trialRecoveryMode": "retry", "finalFailureMode": "lost"},
    "wall_time_s": 2000.0,
}


def judged_as(verdict: dict[str, Any]) -> dict[str, Any]:
    work = (
        call("Read", path="/testbed/a.py"),
        call("Edit", path="/testbed/a.py"),
        call("Bash", command="pytest -q", status="error"),
        say("Done.", input_tokens=10, output_tokens=5),
    )
    same = {"patch": [patched("a.py")], "attempt_index": 0, "knobs": {"timeout_s": 1800}}
    kinds = ["session_jsonl", "result_json", "verifier_report", "gold_patch", "attempt_log"]
    return {r.signal.path: (r.value, r.detail) for r in measure(ran(*work, **same, **verdict, kinds=kinds))}


@pytest.mark.parametrize("name", [*SOLVED, "all"])
def test_a_signal_that_changes_with_the_verdict_declares_it(name: str) -> None:
    changed = FAILED if name == "all" else {**SOLVED, name: FAILED[name]}
    before, after = judged_as(SOLVED), judged_as(changed)
    moved = {path for path in before if before[path] != after.get(path)}
    assert moved, f"no signal reads {name}: the case is none"
    assert {path for path in moved if not hindsight_of(by_path(path))} == set()


def test_what_needs_a_signal_that_reads_the_verdict_reads_it_too() -> None:
    assert hindsight_of(by_path("verification.reward")) == "the verdict"
    assert hindsight_of(by_path("loop.attempt_result")) == "the verdict, through verification.reward"
    assert hindsight_of(by_path("behavior.localized_correct_file")) == "the gold patch"
    assert hindsight_of(by_path("behavior.tool_call_count")) == ""


# -- a signal that never varies, or never says anything else than another one, says so in the catalogue

VALUES = "SELECT signal, session_id, turn, value, absent FROM signals JOIN sessions USING (session_id)"
UNVARIED = f"SELECT signal FROM ({VALUES}) GROUP BY ALL HAVING count(DISTINCT value) FILTER (absent IS NULL) < 2"
EQUAL = f"""
WITH whole AS (SELECT signal, string_agg(concat_ws(' ', session_id, turn, coalesce(value, '-')), '|'
  ORDER BY session_id, turn) AS text FROM ({VALUES}) GROUP BY ALL HAVING count(DISTINCT value) > 1)
SELECT a.signal, b.signal FROM whole a JOIN whole b USING (text) WHERE a.signal < b.signal
"""


@pytest.mark.slow
@pytest.mark.corpus
@pytest.mark.parametrize(("folder", "context"), [("corpus_folder", "product"), ("eval_folder", "eval")])
def test_what_never_varies_and_what_is_the_same_figure_is_marked(
    folder: str, context: str, request: pytest.FixtureRequest
) -> None:
    listed, store = {row["path"]: row for row in inventory()}, Store(request.getfixturevalue(folder) / "store")
    unmarked = [
        path
        for (path,) in rows(store, UNVARIED, context)[1]
        if not path.startswith("treatment.")  # what was tried is one thing in a corpus of few runs
        and listed[path]["status"] == "computed"
        and "on the project's corpus" not in listed[path]["pitfalls"]
    ]
    assert unmarked == []
    pairs = [(a, b) for a, b in rows(store, EQUAL, context)[1] if "same figure" not in f"{listed[a]} {listed[b]}"]
    assert pairs == []


# -- every value tells what it rests on, zero and empty ones too

GROUPS = ("behavior.", "tokens.", "reasoning.", "infra.", "anticipation.", "corpus.")
USAGE = {"input_tokens": 5, "output_tokens": 7, "cache_read_tokens": 90, "cache_write_tokens": 9}


@pytest.mark.parametrize(
    "one",
    [
        view(user("go"), say("done")),
        view(user("go"), call("Read", path="a.py"), say("done", **USAGE)),
        view(
            user("go"),
            think("hm"),
            call("Read", path="a.py"),
            call("Edit", path="a.py"),
            say("done", **USAGE, cost_usd=1),
        ),
    ],
    ids=["talk", "read", "edit"],
)
def test_no_value_stands_without_evidence_and_explaining_repeats_it(one: SessionView) -> None:
    known = {r.signal.name: r.value for r in measure(one)}
    told = {}
    for result in measure(one):
        if not result.signal.path.startswith(GROUPS):
            continue
        value, _, collected = explain(result.signal, one, known)
        assert value == result.value, result.signal.path
        if not isinstance(value, Absent):
            told[result.signal.path] = bool(collected.items or collected.rules)
    assert len(told) > 15
    assert [path for path, any_evidence in told.items() if not any_evidence] == []


# -- what is missing or contradicts itself is said

WALL, TIMED_OUT = "infra.wall_time_s", "infra.timed_out"
EDIT = call("Edit", path="a.py", hunks=[Hunk(start_line=1, end_line=1, added=1, removed=2)])


def test_without_a_duration_the_transcript_tells_and_the_verifiers_time_does_not_count() -> None:
    late = Statement(text="verified", artifact_id="harness-file", line=1, fields=[], at=START * 2)
    assert value(ran(say("a"), say("b"), statements=[late]), WALL) == 2.0
    assert absent(unseen(reward=1.0), WALL) == ("missing_field", "duration")
    assert absent(unseen(wall_time_s=float("nan")), WALL) == ("missing_field", "duration")


def test_an_eval_session_of_which_no_harness_tells_has_a_reason_for_each_eval_signal() -> None:
    one = view(user("fix it"), EDIT)
    one.session.context = "eval"
    found = {r.signal.path: r.value for r in measure(one) if r.signal.context == "eval"}
    assert {path for path, v in found.items() if not isinstance(v, Absent)} == set()
    assert not [v for v in found.values() if v.detail.startswith(INTERNAL_ERROR)]
    assert value(one, "behavior.tool_call_count") == 1


def test_two_places_that_differ_are_a_conflict() -> None:
    one = unseen(timed_out=True, wall_time_s=5.0, reward=1.0)
    assert one.session.attempt is not None
    one.session.attempt.conflicts = ["timed_out", "wall_time_s", "reward"]
    for path in (TIMED_OUT, WALL):
        assert detail(one, path)["conflict"] is True
    assert absent(one, "verification.reward") == ("not_computable", "not_judged")


TOTALS = [
    "tokens.input_tokens_total",
    "tokens.output_tokens_total",
    "tokens.cache_read_tokens",
    "tokens.cache_write_tokens",
]


@pytest.mark.parametrize(
    "path", [*TOTALS, "tokens.context_growth_curve[]", "tokens.cost_usd", "tokens.cache_read_ratio"]
)
def test_a_trace_that_never_reports_usage_misses_the_field(path: str) -> None:
    assert absent(view(user("go"), say("done")), path) == ("missing_field", "usage")


PLAN_STEPS = "reasoning.plan_steps_detected"


def test_reading_the_plan_out_of_long_text_is_linear() -> None:
    for text in ("1. " * 20_000, "\n- " * 20_000, "\n" + " " * 60_000, "\n```" * 15_000, "\n- **" * 12_000):
        assert value(view(user("go"), say(text)), PLAN_STEPS) >= 0
