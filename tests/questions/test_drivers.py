"""`drivers`: planted causes are named, decoys are not, what tells the outcome is set aside, few tasks tell nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import main
from agentsignals.cli.attempts import drivers_text
from agentsignals.errors import UsageError
from agentsignals.model import Session
from agentsignals.questions.compare import outcome_rule
from agentsignals.questions.drivers import Drivers, drivers
from agentsignals.questions.drivers.predictors import VerifiedAttempt, adjusted, contrast, correlated, near_copy_of
from tests.build import call, say, session, user
from tests.plants import drivers as planted
from tests.plants.drivers import CAUSE, CROSSED, LEAK, OF_BOTH, OF_THE_TASK, OF_THE_TREATMENT, WITH_IT, Rows, World
from tests.questions.stores import store_of
from tests.signals.attempts import graded, patched, ran
from tests.verbs import printed, printed_json

PLANTED = {CAUSE, WITH_IT}


def analysed(rows: Rows, **how: Any) -> Drivers:
    return drivers(outcome_rule(how.pop("outcome", "reward")), rows, **{"fit": False, **how})


def named(made: Drivers) -> set[str]:
    return {c.signal for c in made.named}


@pytest.fixture(scope="module")
def rows() -> Rows:
    return planted.rows(1, World(leak=0.98))


def test_the_planted_cause_is_named_decoys_are_not_and_the_leak_is_refused(rows: Rows) -> None:
    made = analysed(rows)
    assert made.within == "treatment" and made.mixed["treatment"] >= 25
    assert named(made) == PLANTED
    cause = next(c for c in made.contrasts if c.signal == CAUSE)
    assert cause.goes_with == "success" and cause.low is not None and cause.low > 0.6
    assert set(cause.moves_with) == {WITH_IT}, "which of the two it is, is not in the data"
    assert [c.signal for c in made.near_copies] == [LEAK] and made.near_copies[0].auc > 0.97
    assert LEAK not in {c.signal for c in made.contrasts}
    assert all("associat" in line or "correlation" in line for line in made.answer), made.answer
    assert any("not cause" in line for line in made.warnings)


def test_without_repeats_pairs_are_of_one_task_less_what_treatments_do() -> None:
    made = analysed(planted.rows(3, World(tasks=60, treatments=6, repeats=1)))
    assert made.within == "task" and made.mixed["treatment"] == 0
    assert named(made) == PLANTED
    decoys = {c.signal: c for c in made.contrasts if c.signal in (OF_THE_TASK, OF_THE_TREATMENT, OF_BOTH, CROSSED)}
    assert len(decoys) == 4 and all(c.low < 0.5 < c.high for c in decoys.values() if c.low and c.high)
    assert any("Candidates' means" in line for line in made.warnings)


def test_where_nothing_goes_with_success_that_is_the_answer() -> None:
    made = analysed(planted.rows(5, World(effect=0.0)))
    assert made.named == [] and made.answer[0].startswith("None of 11 signals is associated")


@pytest.mark.parametrize("share", [0.05, 0.6])
def test_how_many_may_be_wrong_is_chosen(rows: Rows, share: float) -> None:
    made = analysed(rows, false_discoveries=share)
    assert (named(made) > PLANTED) == (share > 0.5)


@pytest.mark.parametrize(("tasks", "can_tell"), [(5, False), (6, True)])
def test_under_six_mixed_tasks_nothing_is_told(tasks: int, can_tell: bool) -> None:
    attempts = [
        VerifiedAttempt(session_id=f"{t}{good}", task=f"t{t}", treatment="m", solved=good)
        for t in range(tasks)
        for good in (True, False)
    ]
    values = {a.session_id: float(a.solved) for a in attempts}
    one = contrast(CAUSE, attempts, values, "treatment")
    assert one.superiority == 1 and one.tasks == tasks
    assert (one.p is not None, one.low is not None) == (can_tell, can_tell)
    assert one.p is None or one.p == 2 / 64, "so few tasks can't say more"
    made = analysed(_of(attempts, values), keep=[CAUSE])
    assert made.answer[0].startswith("Too few mixed tasks") != can_tell


def _of(attempts: Sequence[VerifiedAttempt], values: dict[str, float]) -> Rows:
    made: Rows = {"attempts": [], "values": [], "signals": [], "prompts": []}
    for a in attempts:
        planted._add(made, a.session_id, a.task, a.treatment, a.solved, 10)
    made["signals"] = [{"session_id": s, "signal": CAUSE, "value": json.dumps(v)} for s, v in values.items()]
    return made


@pytest.mark.parametrize(("sessions", "is_near"), [(29, False), (30, True)])
def test_signals_are_called_correlated_from_thirty_sessions_with_both_on(sessions: int, is_near: bool) -> None:
    first = {f"s{n}": float(n) for n in range(sessions)}
    second = {session_id: -value for session_id, value in first.items()} | {"other": 1.0}
    assert correlated({"a": first, "b": second}, 0.7)["a"] == ({"b": pytest.approx(-1.0)} if is_near else {})


def test_a_contrast_is_the_share_of_pairs_by_hand() -> None:
    """Cells are weighed by what they tell: (wins of 2 x 1) / 3 and (wins of 1 x 3) / 4."""
    cells = {"a": ([5.0, 1.0], [3.0]), "b": ([2.0], [1.0, 2.0, 9.0])}
    attempts, values = [], {}
    for task, sides in cells.items():
        for side, numbers in enumerate(sides):
            for n, value in enumerate(numbers):
                attempts.append(
                    VerifiedAttempt(session_id=f"{task}{side}{n}", task=task, treatment="m", solved=not side)
                )
                values[f"{task}{side}{n}"] = value
    one = contrast(CAUSE, attempts, values, "treatment")
    assert one.superiority == pytest.approx((1 / 3 + 1.5 / 4) / (2 / 3 + 3 / 4))
    assert (one.solved, one.failed, one.tasks) == (3, 4, 2) and (one.solved_median, one.failed_median) == (2, 2.5)
    alone = contrast(CAUSE, [a for a in attempts if a.task == "b"], values, "treatment")
    assert alone.superiority == pytest.approx(1.5 / 3), "Mann and Whitney's U over pairs"


def test_two_way_effects_are_those_of_least_squares() -> None:
    np = pytest.importorskip("numpy")
    tried = [(t, m) for t in range(5) for m in range(3) if (t + 2 * m) % 4]
    attempts = [VerifiedAttempt(session_id=f"{t}.{m}", task=f"t{t}", treatment=f"m{m}", solved=True) for t, m in tried]
    values = {a.session_id: float((n * 7) % 10) for n, a in enumerate(attempts)}
    ranks = np.argsort(np.argsort(list(values.values()))) / (len(values) - 1)
    dummies = np.array([[t == k for k in range(5)] + [m == k for k in range(3)] for t, m in tried], dtype=float)
    left = ranks - dummies @ np.linalg.lstsq(dummies, ranks, rcond=None)[0]
    assert list(adjusted(attempts, values).values()) == pytest.approx(left.tolist(), abs=1e-6)


def coin(n: int, of: int) -> tuple[list[VerifiedAttempt], dict[str, float]]:
    """`of` attempts at tasks of their own, half of them solved; a signal that is the outcome but at `n` of them."""
    attempts = [
        VerifiedAttempt(session_id=f"{k}", task=f"t{k:03}", treatment="m", solved=k % 2 == 0) for k in range(of)
    ]
    return attempts, {a.session_id: float(a.solved != (int(a.session_id) < n)) for a in attempts}


@pytest.mark.parametrize(
    ("wrong", "of", "refused"),
    [(0, 20, True), (0, 18, False), (2, 38, False), (2, 40, True), (8, 100, True), (12, 100, False)],
)
def test_a_near_copy_is_told_by_its_auc_and_from_ten_of_each_on(wrong: int, of: int, refused: bool) -> None:
    assert (near_copy_of(CAUSE, *coin(wrong, of)) is not None) == refused


def test_a_copy_that_hides_is_told_too() -> None:
    attempts, copied = coin(0, 60)
    parity = {s: 2.0 * (int(s) % 3) + v for s, v in copied.items()}
    only_solved = {s: 7.0 for s, v in copied.items() if v}
    shifted = [VerifiedAttempt(session_id=a.session_id, task=f"t{n // 2}", treatment="m", solved=a.solved)
               for n, a in enumerate(attempts)]  # fmt: skip
    by_task = {a.session_id: 10.0 * n + a.solved for n, a in enumerate(shifted)}
    ways = {
        "in which values": (attempts, parity, "by its values"),
        "in being there": (attempts, only_solved, "by its values"),
        "under the task's level": (shifted, {s: v // 20 * 20 + (v % 2) for s, v in by_task.items()}, "within tasks"),
    }
    for name, (group, values, how) in ways.items():
        copy = near_copy_of(CAUSE, group, values)
        assert copy is not None and copy.auc >= 0.95 and how in copy.how, name


def test_a_near_copy_can_be_kept_what_reads_the_verdict_can_not(rows: Rows) -> None:
    kept = analysed(rows, keep=[LEAK])
    assert kept.near_copies == [] and LEAK in named(kept)
    with pytest.raises(UsageError, match="reads the verdict"):
        analysed(rows, keep=["verification.patch_outcome_label"])
    with pytest.raises(UsageError, match="not a signal of eval attempts"):
        analysed(rows, keep=["user.user_turn_count"])
    gold = {e.signal: e.because for e in analysed(rows).excluded}
    assert gold["behavior.localized_correct_file"] == "reads the gold patch"
    assert gold["verification.reward"] == "is the outcome" and gold["infra.wall_time_s"] == "reads the verifier's time"
    assert "behavior.localized_correct_file" not in {
        e.signal for e in analysed(rows, keep=["localized_correct_file"]).excluded if "reads" in e.because
    }


def test_what_an_outcome_is_made_of_does_not_predict_it(rows: Rows) -> None:
    with pytest.raises(UsageError, match="is a number"):
        analysed(rows, outcome="behavior.turn_count")
    because = {e.signal: e.because for e in analysed(rows, outcome="anticipation.first_tool_precision").excluded}
    assert because["anticipation.first_tool_precision"] == "is the outcome"


def test_what_a_treatment_pools_is_said(rows: Rows) -> None:
    mixed = {
        **rows,
        "attempts": [{**row, "knobs": f'{{"temperature": {n % 2}}}'} for n, row in enumerate(rows["attempts"])],
    }
    said_by = {name: analysed(mixed, by=list(name.split())).warnings for name in ("model", "model temperature")}
    assert [any("differ in temperature" in w for w in lines) for lines in said_by.values()] == [True, False]


def test_of_nothing_judged_and_of_nothing_failed_there_is_no_answer_and_no_crash(rows: Rows) -> None:
    solved = [{**v, "value": "1.0"} for v in rows["values"]]
    for values, n in (([], 0), (solved, 320)):
        made = analysed({**rows, "values": values}, fit=True)
        assert made.attempts == n and made.answer[0].startswith("Too few mixed tasks") and made.without_models
        assert drivers_text(made).count("Too few mixed tasks") and drivers_text(made, markdown=True)


def test_attempts_that_nobody_judged_are_left_out_by_name(rows: Rows) -> None:
    more = {name: list(values) for name, values in rows.items()}
    for n, (fields, outcome) in enumerate(
        (
            ({"attempt_index": 1}, None),
            ({"task_id": None}, None),
            ({}, {"value": '"failed"', "detail": '{"reason": "no_artifact"}'}),
            ({}, {"value": '"failed"', "detail": '{"reason": "time", "inferred": true}'}),
            ({}, {"value": '"not_judged"', "detail": '{"reason": "no verdict"}'}),
        )
    ):
        planted._add(more, f"x{n}", "t0", "m0", False, 10)
        more["attempts"][-1].update(fields)
        if outcome:
            absent = {"session_id": f"x{n}", "signal": "verification.outcome", "absent": None}
            more["values"].append({**absent, **outcome})
    made = analysed(more)
    assert made.attempts == 320 and sorted(made.left_out) == [
        "empty patch, failed by definition",
        "no outcome: not judged: no verdict",
        "no task recorded",
        "no verifier verdict, failed by definition",
        "retries, which depend on the first verdict",
    ]


def runs(tasks: int) -> Iterator[Session]:
    """Trials at so many tasks, four each: the two that read the file before they change it are solved."""
    for task in range(tasks):
        for n in range(4):
            parts = [call("Read", path="/testbed/a.py")] * (n < 2) + [call("Edit", path="/testbed/a.py"), say("done")]
            facts = {"reward": float(n < 2), "verification": graded(fixed=2 * (n < 2), unfixed=2 * (n > 1))}
            made = ran(*parts, patch=[patched("a.py")], knobs={"model_id": "m"}, attempt_index=0, **facts).session
            assert made.attempt is not None
            made.session_id = made.attempt.trial_id = f"{task}-{n}"
            made.attempt.task_id = f"task-{task}"
            yield made


@pytest.mark.slow
def test_the_verb_asks_a_store_and_says_it_in_each_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = store_of(tmp_path / "s", session(user("hello"), session_id="person"), *runs(8))
    command = ["drivers", "--store", str(store.folder), "--keep", CAUSE]
    made = printed_json(capsys, *command)
    assert (made["attempts"], made["solved"], made["mixed"]) == (32, 16, {"treatment": 8, "task": 8})
    top = next(c for c in made["contrasts"] if c["signal"] == CAUSE)
    assert (top["superiority"], top["solved_median"], top["failed_median"], top["p"]) == (1, 1, 0, 2 / 256)
    assert "8 tasks with a known outcome" in made["without_models"]
    text = printed(capsys, *command)
    assert f"{CAUSE} is associated with success." in text and "reads the verdict" in text
    page = printed(capsys, *command, "--markdown")
    assert (
        page.startswith("# Signals associated with success")
        and "| behavior.files\\_read\\_before\\_edit | 100% |" in page
    )
    assert "excluded as near copies of the outcome" in printed(capsys, "drivers", "--store", store.folder)
    assert main(["drivers", "--store", str(store.folder), "--false-discoveries", "2"]) == 2


def test_without_scikit_learn_contrasts_stand_and_what_it_adds_is_said(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    made = analysed(rows, fit=True)
    assert made.models is None and "scikit-learn" in made.without_models and named(made) == PLANTED


@pytest.mark.parametrize(
    ("world", "words"),
    [(World(tasks=19), "19 tasks"), (World(tasks=20, treatments=1, repeats=1), "solved,"), (World(tasks=20), "")],
)
def test_models_want_twenty_tasks_and_twenty_of_each_outcome(
    world: World, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentsignals.questions.drivers.fit_models", lambda *_: None)
    monkeypatch.setattr("agentsignals.questions.drivers.sklearn_available", lambda: True)
    monkeypatch.setattr("agentsignals.questions.drivers._of_models", lambda _: [])
    assert words in analysed(planted.rows(1, world), fit=True).without_models


@pytest.mark.slow
def test_models_predict_unseen_tasks_by_the_cause_and_not_by_decoys() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn, of the extra `drivers`, is not installed")
    made = analysed(planted.rows(4, World(tasks=50, treatments=1, effect=1.5)), fit=True).models
    assert made is not None and made.adds and made.jointly is not None and (made.jointly.low or 0) > 0
    scores = {(s.features, s.model): s for s in made.scores}
    baselines = [s.brier for s in made.scores if s.gain is None]
    assert made.judged.brier < min(baselines) and made.judged.gain == pytest.approx(min(baselines) - made.judged.brier)
    assert scores["base rate", "none"].auc == 0.5
    logistic = [i for i in made.importance if i.model == "logistic"]
    assert logistic[0].signals == (CAUSE, WITH_IT) and (logistic[0].low or 0) > 0
    assert all(i.value < logistic[0].value / 5 for i in logistic[1:])
    assert sum(r.n for r in made.reliability) == made.attempts == 200
    assert made.reliability[0].solved < 0.6 and made.reliability[-1].solved > 0.85


@pytest.mark.slow
def test_a_model_of_noise_is_shrunk_to_the_base_rate() -> None:
    """How strongly is chosen by tasks that the model has not seen."""
    pytest.importorskip("sklearn", reason="scikit-learn, of the extra `drivers`, is not installed")
    made = analysed(planted.rows(5, World(tasks=24, effect=0.0)), fit=True).models
    assert made is not None
    brier = {(s.features, s.model): s.brier for s in made.scores}
    assert brier["candidate", "logistic"] - brier["base rate", "none"] < 0.0035
