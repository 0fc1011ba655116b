"""corpus.cross_dataset_variance[] and the figures of sessions it is made of."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.model import Absent, Label
from agentsignals.signals import Measured
from agentsignals.signals.catalog import by_path, plain
from agentsignals.views.session import SessionView
from tests.build import call, say, session, user, view
from tests.signals.ask import absent, value, values_over_sessions

INPUTS, PATH = "corpus.metric_inputs", "corpus.cross_dataset_variance[]"
READ = call("Read", path="a.py")


def figures(place: str, **more: Any) -> dict[str, Any]:
    same = {
        "autonomy": 10.0, "errors": [1, 10], "tools": {"Read": 1, "Edit": 1}, "events": 20, "reads": 1.0, "edits": 2,
        "cost": 1.0, "pattern": "question", "tokens": [1, 100], "short": [1, 4], "felt": {},
    }  # fmt: skip
    return {"place": place, **same, **more}


def rows(*sessions: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = values_over_sessions(by_path(PATH), {"metric_inputs": list(sessions)})
    assert isinstance(found, Measured), found
    return {row["metric"]: row for row in plain(found.value)}


def sets(name: str, *values: Any, n: int = 5) -> list[dict[str, Any]]:
    """A data set a value, each of five sessions that have it."""
    return [figures(f"place{at}", **{name: one}) for at, one in enumerate(values) for _ in range(n)]


@pytest.mark.parametrize(
    ("name", "values", "metric", "cv", "robust"),
    [
        ("autonomy", (1.0, 2.0, 3.0), "autonomy_ratio", (2 / 3) ** 0.5 / 2, 1.4826 / 2),
        ("errors", ([1, 10], [2, 10], [3, 10]), "error_rate", (2 / 3) ** 0.5 / 2, 1.4826 / 2),
        ("events", (10, 20, 30), "median_session_length_events", (2 / 3) ** 0.5 / 2, 1.4826 / 2),
        ("cost", (0.0, 0.0, 3.0), "cost_per_session", 2**0.5, None),
        ("tokens", ([1, 10], [1, 10], [4, 10]), "output_input_token_ratio", 2**0.5 / 2, 0.0),
        ("short", ([1, 4], [2, 4], [3, 4]), "share_messages_le_20_chars", (2 / 3) ** 0.5 / 2, 1.4826 / 2),
        ("reads", (0.5, 0.5, 0.5), "read_before_edit_rate", 0.0, 0.0),
        ("tools", ({"R": 1, "E": 1}, {"R": 2, "E": 2}, {"R": 9}), "tool_mix_entropy", 0.5**0.5, 0.0),
    ],
)
def test_a_metric_varies_by_its_deviation_over_its_mean_and_by_its_robust_counterpart(
    name: str, values: tuple[Any, ...], metric: str, cv: float, robust: float | None
) -> None:
    found = rows(*sets(name, *values))[metric]
    assert found["n_datasets"] == 3
    assert found["cv"] == pytest.approx(cv)
    assert found["robust_cv"] == (robust if robust is None else pytest.approx(robust))


def test_a_pattern_varies_by_the_share_that_is_not_the_commonest_of_all() -> None:
    found = rows(*sets("pattern", "question", "question", "bug_report"))["first_message_pattern"]
    assert found["cv"] == pytest.approx(2**0.5)


def test_the_most_different_metric_comes_first_and_those_without_a_middle_last() -> None:
    sessions = sets("autonomy", 1.0, 2.0, 3.0)
    for one in sessions:
        one["cost"] = 3.0 if one["place"] == "place0" else 0.0
    order = list(rows(*sessions))
    assert (order[0], order[-1]) == ("autonomy_ratio", "cost_per_session")


def test_what_cannot_be_computed_is_named() -> None:
    found = values_over_sessions(by_path(PATH), {"metric_inputs": sets("cost", None, None, 1.0)})
    assert found.detail["left_out"] == ["neg_pct_turn5", "cost_per_session", "first_message_pattern"]
    assert found.detail["data_sets"] == 3


def test_negativity_at_turn_five_is_of_the_labeller_with_most_labels() -> None:
    """Shares of 0, 1/2 and 1; the other labeller, whose labels are younger, is not asked."""
    felt = [{"a": [9, 0, k, 2], "b": [1, 5, 1, 1]} for k in (0, 1, 2)]
    found = rows(*sets("felt", *felt))["neg_pct_turn5"]
    assert found["n_datasets"] == 3
    assert (found["cv"], found["robust_cv"]) == (pytest.approx((1 / 6) ** 0.5 / 0.5), pytest.approx(1.4826))


def test_a_session_without_a_label_at_turn_five_takes_no_part_in_it() -> None:
    sessions = sets("felt", {"a": [9, 0, 1, 2]}, {"a": [9, 0, 1, 2]}, {})
    assert "neg_pct_turn5" not in rows(*sessions)


def test_what_a_labeller_said_of_turn_five_is_a_sessions_part() -> None:
    made = session(*(part for n in range(6) for part in (user(f"say {n}"), say("so"))), cwd="/r")
    made.labels = [Label(task="sentiment", labeller="a", turn=n, value="NEGATIVE", created_at=7) for n in (0, 4, 5)]
    made.labels.append(Label(task="sentiment", labeller="b", turn=4, value="NEUTRAL"))
    assert value(SessionView(made), INPUTS)["felt"] == {"a": [3, 7, 1, 1], "b": [1, 0, 0, 1]}


def test_small_data_sets_are_left_out_and_three_are_needed() -> None:
    few = sets("autonomy", 1.0, 2.0) + sets("autonomy", 9.0, 9.0, 9.0, 9.0, n=4)[8:12]
    assert values_over_sessions(by_path(PATH), {"metric_inputs": few}) == Absent(
        "not_computable", "fewer_than_3_data_sets"
    )
    assert values_over_sessions(by_path(PATH), {}) == Absent("not_computable", "fewer_than_3_data_sets")


def test_a_sessions_figures_are_its_parts_of_each_metric() -> None:
    failed = call("Bash", command="./x", status="error", result="Exit code 1")
    said = say("a", input_tokens=10, output_tokens=5, cache_read_tokens=90, cost_usd=0.5)
    found = value(view(user("fix it"), said, READ, call("Edit", path="a.py"), failed, cwd="/r"), INPUTS)
    assert found == {
        "place": "/r", "autonomy": 3.0, "errors": [1, 3], "tools": {"Read": 1, "Edit": 1, "Bash": 1},
        "events": found["events"], "reads": 1.0, "edits": 1, "cost": 0.5, "pattern": found["pattern"],
        "tokens": [5, 100], "short": [1, 1], "felt": {},
    }  # fmt: skip
    assert (found["events"], found["pattern"]) == (8, "task_imperative")


def test_a_session_of_no_place_belongs_to_no_data_set() -> None:
    assert absent(view(user("go")), INPUTS) == ("not_applicable", "repo_unknown")
    bare = value(view(cwd="/r"), INPUTS)
    assert (bare["autonomy"], bare["pattern"], bare["short"], bare["tokens"]) == (None, None, [0, 0], [0, 0])
