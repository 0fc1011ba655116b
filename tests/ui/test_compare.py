"""Candidates against each other on the page: what `compare` says, and the attempts behind each number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

import agentsignals
from agentsignals.errors import AgentSignalsError
from agentsignals.store import Store
from agentsignals.ui.filter import arms_of, behind, compare_key
from agentsignals.ui.server import Server
from tests.build import call, session, user
from tests.questions.stores import store_of
from tests.signals.attempts import trial
from tests.ui.served import EVIL, Elements, ask, page, serving, text_of

REWARDS = {"old": "110", "new": "101", EVIL: "0.1"}
"""Of three tasks; a dot is an attempt that nobody judged."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    made = []
    for model, rewards in REWARDS.items():
        for n, reward in enumerate(rewards):
            facts = {"trial_id": f"{len(made)}", "task_id": f"task-{n}", "knobs": {"model_id": model}}
            one = facts if reward == "." else {**facts, "reward": float(reward)}
            again = [{**facts, "reward": 1.0}] if reward == "0" else []
            made.append(trial(one, *again))
    sessions = [view.session for attempts in made for view in attempts]
    return store_of(tmp_path_factory.mktemp("compare") / "store", *sessions)


@pytest.fixture(scope="module")
def server(store: Store) -> Iterator[Server]:
    with serving(store) as running:
        yield running


@pytest.mark.slow
def test_each_number_of_a_comparison_opens_as_many_attempts(store: Store) -> None:
    comparison = agentsignals.compare(store, ["model_id"], anyway=True)
    assert len(comparison.candidates) == len(REWARDS)
    for c in comparison.candidates:
        counted = {
            "attempts": c.attempts,
            "first": c.first_attempts,
            "retries": c.retries,
            "known": c.first.n,
            "not_judged": sum(c.absent.values()),
            "infrastructure": sum(c.infrastructure.values()),
        }
        for what, n in counted.items():
            parts = behind(store, compare_key("reward", ["model_id"], what, c.name)).parts
            assert len(parts) == n, (c.name, what)
            if what == "known":
                assert sum(k for k, _ in parts.values()) == pytest.approx((c.first.value or 0) * n)
    assert arms_of(store, "reward", ["model_id"]).columns == ["model_id"]


def test_a_regression_may_count_more_and_what_is_no_weight_is_refused(server: Server) -> None:
    assert "--regression-weight 2.5" in page(server, "/compare?by=model&a=old&weight=2.5")
    for weight in ("0", "-1", "nan", "much", EVIL):
        assert ask(server, f"/compare?by=model&a=old&weight={quote(weight)}").status == 404, weight


def test_the_page_says_what_the_verb_says_and_its_links_open(server: Server, store: Store) -> None:
    agreed = agentsignals.compare(store, ["model"], baseline="old", anyway=True)
    told = page(server, "/compare?by=model&a=old&b=new")
    said = " ".join(Elements(told).said.split())
    assert "66.7%" in said and "exact McNemar" in said
    (conclusion,) = [c for c in agreed.conclusions if c.candidate == "new"]
    assert conclusion.sentence in said and "Tasks with identical outcomes" in said
    links = [link for link in dict.fromkeys(Elements(told).all_of("href")) if link.startswith(("/behind?", "/sides?"))]
    assert len([link for link in links if link.startswith("/sides?")]) == 3 and len(links) > 8
    for link in links:
        assert ask(server, link).status == 200, link


@pytest.mark.parametrize(("a", "b", "order"), [("old", "new", [1, 2, 0]), ("new", "old", [2, 1, 0])])
def test_tasks_that_came_out_otherwise_come_first_the_lost_ones_before_the_gained(
    server: Server, a: str, b: str, order: list[int]
) -> None:
    told = text_of(server, f"/compare?by=model&a={a}&b={b}")
    rows = re.findall(r"task-(\d)", told[told.index("different outcomes first") :])
    assert list(map(int, rows[:3])) == order


def test_hostile_candidates_stay_text_and_what_is_not_there_is_said(server: Server) -> None:
    told = page(server, f"/compare?by=model&a=old&b={quote(EVIL)}")
    assert "<script>window" not in told and "window.pwned" in Elements(told).said
    assert ask(server, f"/compare?by={quote(EVIL)}").status == 404
    assert ask(server, f"/compare?outcome_by={quote(EVIL)}").status == 404
    assert "baseline" in page(server, "/compare?by=model&a=nobody")


@pytest.mark.parametrize("key", ["compare:", "compare:reward:model_id:known:nobody", "compare:reward:model_id:all:old"])
def test_a_key_of_no_candidate_is_refused_and_one_of_what_is_known_tells_solved_from_failed(
    store: Store, key: str
) -> None:
    known = behind(store, compare_key("reward", ["model_id"], "known", "old")).parts
    assert {outcome for outcome, _ in known.values()} == {0.0, 1.0}
    with pytest.raises(AgentSignalsError):
        behind(store, key)


def test_without_attempts_the_page_says_what_makes_them(tmp_path: Path) -> None:
    store = store_of(tmp_path / "store", session(user("hello"), call("Read", path="a.py")))
    with serving(store) as running:
        assert "no eval attempts to compare" in page(running, "/compare")
