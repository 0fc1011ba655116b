"""The page of attempts: a ladder by treatment, first pass against recovery, and every count opens what it counts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentsignals.ui.pages.attempts import candidates, treatments
from agentsignals.ui.server import Server
from agentsignals.ui.snapshot import Snapshot
from tests.build import session, user
from tests.questions.stores import store_of
from tests.signals.attempts import graded, patched, trial
from tests.ui.served import EVIL, page, serving, text_of

SOLVED = {"verification": graded(fixed=2), "reward": 1.0, "patch": [patched("a.py")]}
HALF = {"verification": graded(fixed=1, unfixed=1), "reward": 0.0, "patch": [patched("a.py")]}
NOTHING = {"verification": graded(unfixed=2), "reward": 0.0, "patch": [patched("a.py")]}
EMPTY: dict[str, Any] = {"patch": [], "reward": 0.0}
BROKEN: dict[str, Any] = {"ending": "infrastructure"}
TRIALS = ((SOLVED,), (HALF, SOLVED), (NOTHING, HALF, NOTHING), (SOLVED, NOTHING), (EMPTY,), (BROKEN,))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = []
    for n, attempts in enumerate(TRIALS):
        knobs = {"agent_type": "codex" if n < 5 else EVIL, "model_id": "m-1"}
        made += trial(*({**facts, "trial_id": f"t{n}", "knobs": knobs} for facts in attempts))
    for n, view in enumerate(made):
        view.session.session_id = f"a{n}"
        if view.session.attempt is not None:
            view.session.attempt.session_id = f"a{n}"
    with serving(store_of(tmp_path_factory.mktemp("attempts") / "s", *(view.session for view in made))) as running:
        yield running


def steps(row: dict[str, Any]) -> dict[str, str]:
    return {name: f"{step['n']}/{step['recorded']}" for name, step in row["steps"].items()}


def test_each_treatment_is_counted_by_how_far_it_came(server: Server) -> None:
    rows = treatments(Snapshot(server.snapshots.current().store))
    first = next(row for row in rows if row["agent_type"] == "codex" and not row["attempt_index"])
    assert first["n"] == 5 and first["judged"] == 5
    counted = steps(first)
    assert counted["solved"] == "2/5" and counted["tests"] == "4/4" and counted["partly"] == "3/4"
    assert counted["patch"] == "4/5", "an empty patch is none"
    broken = next(row for row in rows if row["agent_type"] == EVIL)
    assert steps(broken)["solved"] == "0/0" and broken["infrastructure"] == 1


def test_a_trial_is_recovered_once_and_only_where_the_first_attempt_failed(server: Server) -> None:
    (row,) = candidates(Snapshot(server.snapshots.current().store))
    assert steps(row) == {
        "first": "5/9",
        "first_solved": "2/5",
        "retried": "2/9",
        "recovered": "1/9",
        "unrecovered": "1/9",
    }


@pytest.mark.slow
def test_every_count_opens_as_many_attempts(server: Server) -> None:
    text = page(server, "/attempts")
    links = re.findall(r'href="(/attempts\?treatment=[^"]+)">(\d+)</a>', text)
    assert len(links) > 12
    for link, n in links:
        shown = text_of(server, link.replace("&amp;", "&"))
        assert f"1–{n} of {n} attempts" in shown, link
        assert " · " in shown.partition("Only ")[2]


@pytest.mark.parametrize(
    ("query", "n"),
    [("step=recovered", 1), ("step=nothing", 10), ("treatment=nobody", 0), ("treatment=' OR 1=1 --&step=solved", 0)],
)
def test_a_name_that_is_none_counts_nothing(server: Server, query: str, n: int) -> None:
    said = text_of(server, f"/attempts?{query.replace(' ', '%20')}")
    assert (f"1–{n} of {n} attempts" if n else "No matching attempts") in said


@pytest.mark.parametrize(
    ("query", "n"),
    [("text=t1", 2), ("text=t1&context=product", 2), ("text=t1&step=solved", 1), ("outcome=infrastructure", 1),
     ("outcome=solved&text=t", 3), ("missing=outcome", 0), ("agent=nobody", 0), ("dataset=none", 10)],
)  # fmt: skip
def test_the_filter_of_all_pages_chooses_attempts_as_it_does_sessions(server: Server, query: str, n: int) -> None:
    listed = text_of(server, f"/attempts?{query}")
    assert (f"1–{n} of {n} attempts" if n else "No matching attempts") in listed
    assert '<select name="context"' not in page(server, f"/attempts?{query}")
    if "step" not in query and "context" not in query:
        sessions = text_of(server, f"/sessions?{query}")
        assert (f"1–{n} of {n} sessions" if n else "No matching sessions") in sessions


def test_without_retries_it_says_that_there_is_nothing_to_recover(tmp_path: Path) -> None:
    made = [view.session for view in trial({**SOLVED, "trial_id": "only"})]
    with serving(store_of(tmp_path / "s", *made, session(user("hello")))) as running:
        assert "No retries." in page(running, "/attempts")
