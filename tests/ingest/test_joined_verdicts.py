"""Verdicts that lie above or beside the files of their run: joined by task, run and model, never by a file's name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agentsignals.ingest import pipeline
from agentsignals.store import Store
from agentsignals.store.query import rows as asked
from tests.formats.reading import placed as put
from tests.golden import SAMPLES
from tests.ingest.test_data_sets import as_csv, as_lines, as_parquet

TASKS = [f"acme__shop-{n}" for n in range(4)]
MODEL = "acme/coder-1"
PATCH = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"


def mini(task: str, model: str = MODEL, prompt: str = "Fix it.") -> str:
    opening = [{"role": "system", "content": "s"}, {"role": "user", "content": prompt}]
    info = {"config": {"model": {"model_name": model}}, "exit_status": "Submitted", "submission": PATCH}
    return json.dumps(
        {"info": info, "messages": opening, "trajectory_format": "mini-swe-agent-1.1", "instance_id": task}
    )


def known(root: Path, store: Path | None = None) -> list[tuple[Any, ...]]:
    """Task, model, outcome and whether there is a transcript, of every attempt."""
    store = store or root.parent / "store"
    pipeline.analyze([str(root)], store, jobs=1)
    query = "SELECT task_id, model_id, outcome, has_transcript FROM attempts ORDER BY ALL"
    return [tuple(row) for row in asked(Store(store), query)[1]]


TRIAL = "run/trajs/{0}/{0}.traj.json"
ROWS = [{"instance_id": task, "resolved": task < TASKS[2]} for task in TASKS]
WHOLE = [(task, MODEL, "solved" if task < TASKS[2] else "failed", True) for task in TASKS]


@pytest.mark.parametrize(
    ("place", "name", "table"),
    [
        (TRIAL, "run/outcomes.csv", as_csv(ROWS)),
        (TRIAL, "run/x.json", json.dumps(ROWS).encode()),
        (TRIAL, "run/x.jsonl", as_lines(ROWS)),
        (TRIAL, "run/x.parquet", as_parquet(ROWS)),
        (TRIAL, "run/results/outcomes.csv", as_csv(ROWS)),
        (TRIAL, "run/results/outcomes.csv", as_csv([{**row, "model": MODEL} for row in ROWS])),
        ("{0}.traj.json", "outcomes.csv", as_csv(ROWS)),
        ("coder/{0}/{0}.traj.json", "outcomes.csv", as_csv(ROWS)),
        ("a/b/c/{0}/{0}.traj.json", "outcomes.csv", as_csv(ROWS)),
    ],
)
def test_a_table_above_its_run_or_beside_the_trials_judges_them(
    tmp_path: Path, place: str, name: str, table: bytes
) -> None:
    assert known(put(tmp_path / "in", {**{place.format(t): mini(t) for t in TASKS}, name: table})) == WHOLE


def test_a_folder_of_results_beside_trials_of_no_known_model_judges_none_by_another(tmp_path: Path) -> None:
    trial = {"task_name": "t", "trial_name": "t__1", "task_checksum": "0", "config": {}}
    rows = [{"task_id": "t", "model": "acme/other", "reward": 1}, {"task_id": "u", "model": "acme/other", "reward": 0}]
    root = put(tmp_path / "in", {"job/t__1/result.json": json.dumps(trial), "tables/x.csv": as_csv(rows)})
    assert known(root) == [
        ("t", "acme/other", "solved", False), ("t", None, "not_judged", False), ("u", "acme/other", "failed", False),
    ]  # fmt: skip


def test_a_row_whose_task_has_no_files_is_an_attempt_by_itself(tmp_path: Path) -> None:
    files = {f"run/trajs/{task}/{task}.traj.json": mini(task) for task in TASKS[:2]}
    found = known(put(tmp_path / "in", {**files, "run/outcomes.csv": as_csv(ROWS)}))
    assert found == [*WHOLE[:2], *((task, None, "failed", False) for task in TASKS[2:])]


@pytest.mark.parametrize("column", ["model", "run"])
def test_a_table_above_several_runs_judges_each_by_model_or_run(tmp_path: Path, column: str) -> None:
    names = {"model": ("acme/one", "acme/two"), "run": ("first", "second")}[column]
    rows = [{"instance_id": task, column: name, "resolved": n == 0} for task in TASKS for n, name in enumerate(names)]
    models = ("acme/one", "acme/two")
    files = {
        f"{run}/{task}/{task}.traj.json": mini(task, model)
        for run, model in zip(("first", "second"), models, strict=True)
        for task in TASKS
    }
    found = known(put(tmp_path / "in", {**files, "outcomes.csv": as_csv(rows)}))
    assert found == [(t, m, o, True) for t in TASKS for m, o in zip(models, ("solved", "failed"), strict=True)]


@pytest.mark.parametrize(
    "rows",
    [ROWS, [{**row, "model": "acme/third"} for row in ROWS]],
    ids=["of whichever run", "of another model"],
)
def test_a_verdict_is_lent_to_no_run_that_it_may_not_be_of(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    runs = ("first", "second") if "model" not in rows[0] else ("first",)
    files = {f"{run}/{task}/{task}.traj.json": mini(task, prompt=run) for run in runs for task in TASKS}
    found = known(put(tmp_path / "in", {**files, "outcomes.csv": as_csv(rows)}))
    assert len(found) == len(TASKS) * (len(runs) + 1)
    assert {outcome for _, model, outcome, _ in found if model == MODEL} == {"not_judged"}
    assert sorted(o for _, model, o, _ in found if model != MODEL) == ["failed"] * 2 + ["solved"] * 2


def test_two_verdicts_that_differ_are_stated_and_none_is_chosen(tmp_path: Path) -> None:
    def report(resolved: bool) -> str:
        return json.dumps({TASKS[0]: {"patch_successfully_applied": True, "resolved": resolved}})

    files = {f"run/trajs/{TASKS[0]}/{TASKS[0]}.traj.json": mini(TASKS[0]), "run/outcomes.csv": as_csv(ROWS[:1])}
    for resolved, outcome in ((True, "solved"), (False, "not_judged")):
        root = put(tmp_path / str(resolved), {**files, f"run/logs/{TASKS[0]}/report.json": report(resolved)})
        assert known(root, tmp_path / f"s{resolved}") == [(TASKS[0], MODEL, outcome, True)]
    _, reasons = asked(Store(tmp_path / "sFalse"), "SELECT outcome_reason FROM attempts")
    assert [tuple(r) for r in reasons] == [("two verdicts differ",)]


@pytest.mark.parametrize("harbor", [False, True])
def test_trials_that_come_after_their_table_take_their_verdicts(tmp_path: Path, harbor: bool) -> None:
    trial = {"task_name": TASKS[0], "trial_name": "t__1", "task_checksum": "0", "config": {}}
    name, text = (
        ("run/t__1/result.json", json.dumps(trial)) if harbor else (f"run/{TASKS[0]}.traj.json", mini(TASKS[0]))
    )
    root = put(tmp_path / "in", {"run/outcomes.csv": as_csv(ROWS[:1])})
    assert known(root) == [(TASKS[0], None, "solved", False)]
    assert known(put(root, {name: text})) == [(TASKS[0], None if harbor else MODEL, "solved", not harbor)]


@pytest.mark.parametrize("last", ["run/outcomes.csv", f"run/trajs/{TASKS[3]}/{TASKS[3]}.traj.json"])
def test_the_order_in_which_files_come_does_not_matter(tmp_path: Path, last: str) -> None:
    files: dict[str, str | bytes] = {f"run/trajs/{task}/{task}.traj.json": mini(task) for task in TASKS}
    files["run/outcomes.csv"] = as_csv(ROWS)
    root = put(tmp_path / "in", {name: content for name, content in files.items() if name != last})
    known(root)
    assert known(put(root, {last: files[last]})) == WHOLE


def test_trials_of_other_harnesses_take_verdicts_too(tmp_path: Path) -> None:
    trial = {"task_name": "t", "trial_name": "t__1", "task_checksum": "0", "config": {"agent": {"model_name": MODEL}}}
    root = put(tmp_path / "in", {
        "job/t__1/result.json": json.dumps(trial),
        "job/verdicts.csv": as_csv([{"task_id": name, "model": MODEL, "reward": 1} for name in ("t", "u")]),
    })  # fmt: skip
    assert known(root) == [("t", MODEL, "solved", False), ("u", MODEL, "solved", False)]


def summary(tasks: list[str]) -> str:
    """A run report of swebench: the first resolved, the last with an empty patch."""
    counts = dict.fromkeys(
        ("submitted_instances", "completed_instances", "resolved_instances", "empty_patch_instances"), 1
    )
    ids = {"submitted_ids": tasks, "completed_ids": tasks[:-1], "resolved_ids": tasks[:1]}
    return json.dumps({**counts, **ids, "unresolved_ids": tasks[1:-1], "empty_patch_ids": tasks[-1:]})


JUDGED = [(task, outcome) for task, outcome in zip(TASKS, ("solved", "failed", "failed", "failed"), strict=True)]


def reported(task: str, resolved: bool = True) -> str:
    return json.dumps({task: {"patch_successfully_applied": True, "resolved": resolved}})


@pytest.mark.parametrize(
    ("files", "outcomes"),
    [
        # half of a run's files
        ({f"run/logs/{t}/report.json": reported(t) for t in TASKS[:2]}, ["solved"] * 2 + ["not_judged"] * 2),
        (
            {f"run/logs/{t}/report.json": reported(t) if t < TASKS[3] else "" for t in TASKS},
            ["solved"] * 3 + ["not_judged"],
        ),
        # verdicts that name no task
        ({"run/outcomes.csv": "resolved,patch_applied\nTrue,True\nFalse,True\n"}, ["not_judged"] * 4),
        # a report and a summary that differ
        (
            {**{f"run/logs/{t}/report.json": reported(t) for t in TASKS}, "run/reports/all.json": summary(TASKS)},
            ["solved", *["not_judged"] * 3],
        ),
    ],
)  # fmt: skip
def test_a_run_with_half_its_verdicts_or_with_two_that_differ_is_not_guessed(
    tmp_path: Path, files: dict[str, str | bytes], outcomes: list[str]
) -> None:
    trials: dict[str, str | bytes] = {f"run/trajs/{task}/{task}.traj.json": mini(task) for task in TASKS}
    found = known(put(tmp_path / "in", {**trials, **files}))
    assert found == [(task, MODEL, outcome, True) for task, outcome in zip(TASKS, outcomes, strict=True)]


def test_of_two_runs_in_one_folder_neither_takes_the_verdicts(tmp_path: Path) -> None:
    files = {f"run/{t}/{t}{n}.traj.json": mini(t, f"acme/{n}", f"{n}.") for t in TASKS for n in ("one", "two")}
    found = known(put(tmp_path / "in", {**files, **{f"run/logs/{t}/report.json": reported(t) for t in TASKS}}))
    assert {outcome for _, model, outcome, _ in found if model is not None} == {"not_judged"}
    assert [outcome for _, model, outcome, _ in found if model is None] == ["solved"] * 4


def predicted(name: str) -> bytes:
    """Predictions that all go by a name; the last is empty."""
    rows = [{"instance_id": t, "model_name_or_path": name, "model_patch": PATCH} for t in TASKS]
    return as_lines([*rows[:-1], {**rows[-1], "model_patch": ""}])


def judged(folder: str) -> dict[str, str | bytes]:
    """Reports of all but the last task; the first was resolved."""
    return {f"{folder}/{task}/report.json": reported(task, n == 0) for n, task in enumerate(TASKS[:-1])}


def archived(model: str) -> dict[str, str | bytes]:
    """A run of OpenHands' benchmarks: predictions all go by the agent's name, the model stands in the configuration."""
    meta = {"llm": {"model": model, "api_key": "x"}, "dataset": "acme/set", "max_iterations": 100}
    logs = judged("logs/run_evaluation/eval_1/OpenHands")
    files = {"metadata.json": json.dumps(meta), "output.report.json": summary(TASKS), **logs}
    return {"output.swebench.jsonl": predicted("OpenHands"), **files}


TRIALS: dict[str, str | bytes] = {TRIAL.format(task): mini(task) for task in TASKS}
LOGS = "logs/run_evaluation"


@pytest.mark.parametrize(
    ("files", "name", "model"),
    [
        # whatever its name, a report is of the evaluation below it
        (judged(f"{LOGS}/exp-0.2/openai__gpt-5.2"), "openai__gpt-5.2.exp-0.2.json", "openai/gpt-5.2"),
        (judged(f"{LOGS}/exp-0.2/openai__gpt-5.2"), "final_report.json", "openai/gpt-5.2"),
        (judged(f"{LOGS}/nightly/plain"), "report.v2.final.json", "plain"),
        (judged(f"{LOGS}/nightly/plain"), "swe-bench_verified__test__x.json", "plain"),
        # in a folder beside the trajectories it makes no second attempts
        *(({**TRIALS, **judged("run/logs")}, f"run/trajs/{place}/{name}", MODEL)
          for place in ("sb-cli-reports", "reports")
          for name in ("swe-bench_verified__test__night.json", "acme__coder-1.night.json")),
        # it tells the model of trials that name none
        (judged("nightly_4.5_mini/run_evaluation"), "nightly_4.5_mini/acme__coder-1.nightly_4.5_mini.json", MODEL),
        (judged("v1/run_evaluation"), "v1/acme__coder-1.v1.json", MODEL),
        (judged("subset/run_evaluation"), "subset/acme__coder-1.other_eval.json", MODEL),
        # or predictions beside it do, or the configuration
        ({"run/all.swebench.jsonl": predicted(MODEL)}, "run/all.report.json", MODEL),
        ({f"set/one/{name}": text for name, text in archived(MODEL).items()}, "set/one/output.report.json", MODEL),
        # beside trajectories alone it judges them
        *(({f"run/{task}/{task}.traj.json": mini(task) for task in TASKS}, f"run/{name}", MODEL)
          for name in ("final.json", "a.b.c.json", "acme__coder-1.nightly.json")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_run_report_is_of_the_run_it_lies_in(
    tmp_path: Path, files: dict[str, str | bytes], name: str, model: str
) -> None:
    found = known(put(tmp_path / "in", {**files, name: summary(TASKS)}))
    is_whole = any(".traj.json" in path for path in files)
    assert found == [(task, model, outcome, is_whole) for task, outcome in JUDGED]


@pytest.mark.parametrize("name", ["openai__gpt-9.night.json", "gpt-5-mini.night.json"])
@pytest.mark.parametrize("folder", ["run", "beside"])
def test_a_run_report_whose_name_begins_with_another_model_judges_no_trial(
    tmp_path: Path, folder: str, name: str
) -> None:
    files = {f"run/{task}/{task}.traj.json": mini(task) for task in TASKS}
    found = known(put(tmp_path / "in", {**files, f"{folder}/{name}": summary(TASKS)}))
    assert [row for row in found if row[3]] == [(task, MODEL, "not_judged", True) for task in TASKS]
    assert [(task, outcome) for task, model, outcome, _ in found if model != MODEL] == JUDGED


def test_two_archived_runs_under_one_name_are_two_candidates(tmp_path: Path) -> None:
    files = {f"set/{m.replace('/', '-')}/{n}": text for m in (MODEL, "acme/two") for n, text in archived(m).items()}
    found = known(put(tmp_path / "in", files))
    assert sorted((task, model, outcome) for task, model, outcome, _ in found) == sorted(
        (task, model, outcome) for task, outcome in JUDGED for model in (MODEL, "acme/two")
    )


def test_verdicts_of_swe_bench_pro_judge_the_trials_below(tmp_path: Path) -> None:
    names = [f"instance_acme__shop-{n}{'0' * 8}" for n in range(3)]
    files = {f"run/trajs/{name}/{name}.traj.json": mini(name) for name in names[:2]}
    verdicts = {name: n == 0 for n, name in enumerate(names)}
    found = known(put(tmp_path / "in", {**files, "run/eval_results.json": json.dumps(verdicts)}))
    assert found == [
        (names[0], MODEL, "solved", True), (names[1], MODEL, "failed", True), (names[2], None, "failed", False),
    ]  # fmt: skip


def test_a_verdict_of_a_task_is_not_lent_to_a_trial_that_names_none(tmp_path: Path) -> None:
    """A table beside two runs judges the one of its task; the other's task nobody knows."""
    for place in ("runs", "other", "table"):
        (tmp_path / "in" / place).mkdir(parents=True)
    shutil.copytree(SAMPLES / "swe-agent" / "retries", tmp_path / "in" / "runs", dirs_exist_ok=True)
    steps = [{"step_id": 1, "source": "user", "message": "go"}, {"step_id": 2, "source": "agent", "message": "ok"}]
    whole = {
        "schema_version": "ATIF-v1.4",
        "session_id": "other",
        "agent": {"name": "a", "version": "1"},
        "steps": steps,
    }
    (tmp_path / "in" / "other" / "run.trajectory.json").write_text(json.dumps(whole))
    row = {"instance_id": "acme__tools-12", "resolved": True, "agent": "mini-swe-agent"}
    (tmp_path / "in" / "table" / "outcomes.jsonl").write_text(json.dumps(row) + "\n")
    pipeline.ingest([str(tmp_path / "in")], tmp_path / "store", jobs=1)
    store = Store(tmp_path / "store")
    query = "SELECT task_id, reward FROM attempts JOIN sessions USING (session_id) WHERE session_id = 'other'"
    assert store.sql(query).fetchall() == [(None, None)]
    told = store.sql("SELECT record_kinds, records FROM artifacts WHERE format = 'outcome-table'").fetchall()
    assert [sum(json.loads(kinds).values()) for kinds, _ in told] == [records for _, records in told]
    assert json.loads(told[0][0]) == {"verdict_of_a_trial": 1}
