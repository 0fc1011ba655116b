"""One summary of a store: the same figures on the terminal, on the page, in the report and in JSON."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from agentsignals.cli import main
from agentsignals.cli.analyze import summary_of
from agentsignals.questions.ranking import (
    ResolvedCandidate,
    ResolvedGroup,
    Told,
    failed_text,
    resolved_text,
    totals,
    trend_text,
)
from tests.build import call, session, user
from tests.questions.stores import store_of
from tests.signals.attempts import trial

DAY = datetime(2026, 3, 1)


def told(day: float, usd: float | None = 1.0, failed: int = 0, answered: int = 10) -> Told:
    return None if day < 0 else DAY + timedelta(days=day), usd, False, answered, failed


def test_totals_are_sums_of_the_sessions_and_of_their_periods() -> None:
    made = totals([told(0, 1.0, 2), told(1.5, None, 1), told(-1, 4.0), told(20, 3.0)])
    assert (made.sessions, made.priced, made.cost_usd, made.failed, made.answered) == (4, 3, 8.0, 3, 40)
    assert (made.first, made.last, made.step, len(made.periods)) == (DAY, DAY + timedelta(days=20), "day", 21)
    assert sum(period.sessions for period in made.periods) == 3, "a session without a time has no period"
    assert failed_text(made) == "7.5% of 40 tool calls failed"


def test_a_cut_list_of_groups_ends_with_no_heading_of_its_own() -> None:
    groups = [
        ResolvedGroup(tasks=n, datasets=[], command="", candidates=[
            ResolvedCandidate(name=f"m{n}", share=0.5, low=0.2, high=0.8, judged=4, not_judged=0)])
        for n in (3, 2, 0)
    ]  # fmt: skip
    assert [line.split()[0] for line in resolved_text(groups, 4)] == ["Resolved,", "50%", "and"]
    assert resolved_text(groups)[4].startswith("Resolved, no task named")


def test_attempts_of_nobody_are_told_beside_the_resolved() -> None:
    group = ResolvedGroup(tasks=3, datasets=[], command="", unrecorded=400, candidates=[
        ResolvedCandidate(name="m", share=0.5, low=0.2, high=0.8, judged=4, not_judged=0)])  # fmt: skip
    assert resolved_text([group])[-1].split(maxsplit=1)[1].startswith("400 attempts without a recorded model or agent")


@pytest.mark.parametrize(
    ("days", "said"),
    [
        ([0, 5], ""),
        ([0, 14], "7 days to {last} $1.00"),
        ([0, 8, 14], "7 days to {last} $2.00"),
        ([0, 6, 14, 14], "7 days to {last} $2.00, 100% more than in the 7 days before"),
        ([0, 40, 80], "30 days to {last} $1.00, 0% more than in the 30 days before"),
        ([0, 40, *[80] * 4], "30 days to {last} $4.00, 4.0 times as much as in the 30 days before"),
    ],
)
def test_the_trend_compares_equal_stretches(days: list[float], said: str) -> None:
    counted = totals([told(day) for day in days])
    assert trend_text(counted) == said.format(last=f"{counted.last:%Y-%m-%d}")


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        (0, "7 days to {last} $2.00, 100% more than in the 7 days before"),
        (6, "7 days to {last} $2.00, ~100% more than in the 7 days before"),
        (14, "7 days to {last} >= $2.00, ~100% more than in the 7 days before"),
    ],
)
def test_the_trend_of_lower_bounds_says_so(bound: int, said: str) -> None:
    rows = [(at, usd, day == bound, *calls) for day in (0, 6, 14, 14) for at, usd, _, *calls in [told(day)]]
    counted = totals(rows)
    assert trend_text(counted) == said.format(last=f"{counted.last:%Y-%m-%d}")


def test_absent_is_not_zero() -> None:
    nothing = totals([told(-1, None, 0, 0)])
    assert (nothing.cost_usd, nothing.first, nothing.step) == (None, None, "") and failed_text(nothing) == ""


def test_a_mixed_store_has_both_contexts_and_attempts_are_listed_with_their_outcome(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = [{"trial_id": f"r/{n}", "task_id": f"t{n}", "reward": float(n < 3), "knobs": {"model_id": "m"}}
             for n in range(6)]  # fmt: skip
    facts += [{"trial_id": f"u/{n}", "task_id": f"u{n}", "knobs": {"model_id": "unjudged"}} for n in range(9)]
    attempts = [view.session for one in facts for view in trial(one)]
    store = store_of(tmp_path / "s", session(user("go"), call("Bash", command="ls")), *attempts)
    first, second = summary_of(store)[1].contexts
    assert (first.context, first.totals.sessions, second.context) == ("eval", 15, "product")
    assert [group.candidates[0].name for group in first.resolved] == ["m", "unjudged"], "judged ones first"
    (candidate,) = first.resolved[0].candidates
    assert (candidate.share, candidate.judged) == (0.5, 6)
    assert main(["sessions", "--store", str(tmp_path / "s")]) == 0
    head, _, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[1:4] == ["task", "outcome", "reward"] and any(
        "t0" in line and "solved" in line for line in lines
    )
