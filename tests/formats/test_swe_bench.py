"""What SWE-bench leaves of a run, put together: reports, summaries, predictions, ratings and logs of trials."""

from __future__ import annotations

import io
import json
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agentsignals.formats import by_name, identify
from agentsignals.formats.records import HEAD_BYTES, Head
from agentsignals.ingest.attempts import attach_attempts
from agentsignals.model import Artifact, Attempt, Session
from tests.formats.reading import given, placed
from tests.golden import SAMPLES
from tests.ingest.test_attempts import analyzed, facts, rows
from tests.ingest.test_data_sets import as_csv
from tests.quick import some

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "eval" / "swe-agent-swebench"
TASK = "acme__tools-12"
TRAJECTORY = (SAMPLES / "swe-agent" / "modern.traj").read_text("utf-8")
RATINGS = (SAMPLES / "swe-bench" / "ratings.json").read_text("utf-8")
FORM = (SAMPLES / "swe-bench-text" / "evaluation.txt").read_text("utf-8")
DIFF = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"


def report(resolved: bool = True, task: str = TASK) -> str:
    status = {"FAIL_TO_PASS": {"success": ["t::a"], "failure": []}, "PASS_TO_PASS": {"success": [], "failure": []}}
    told = {"patch_exists": True, "patch_successfully_applied": True, "resolved": resolved, "tests_status": status}
    return json.dumps({task: told})


def summary(**ids: list[str]) -> str:
    kinds = ("submitted", "completed", "resolved", "unresolved", "empty_patch", "error")
    counts = {f"{k}_instances": len(ids.get(k, [])) for k in kinds}
    return json.dumps({**counts, **{f"{k}_ids": ids.get(k, []) for k in kinds}, "schema_version": 2})


def attempts(tmp_path: Path, files: Mapping[str, str | bytes]) -> list[dict[str, Any]]:
    """What is known of each attempt of these files."""
    analyzed(tmp_path / "store", placed(tmp_path / "runs", files))
    return [json.loads(r["facts"]) for r in rows(tmp_path / "store", "SELECT facts FROM attempts ORDER BY trial_id")]


# -- who was tried -----------------------------------------------------------------------------------------------------


def prediction(model: str, patch: str = DIFF, task: str = TASK) -> str:
    return json.dumps({"instance_id": task, "model_name_or_path": model, "model_patch": patch})


@pytest.mark.parametrize(
    ("files", "model", "run"),
    some([
        ({f"logs/run_evaluation/r1/acme__m-1/{TASK}/report.json": report()}, "acme/m-1", "r1"),
        ({f"logs/run_evaluation/r1/plain/{TASK}/report.json": report()}, "plain", "r1"),
        ({f"logs/run_evaluation/r1/a__b/{TASK}/report.json": report(), "p.jsonl": prediction("a__b") + "\n"},
         "a__b", "r1"),
        ({f"logs/run_evaluation/r1/a__b__c/{TASK}/report.json": report(), "p.json": f"[{prediction('a/b/c')}]"},
         "a/b/c", "r1"),
        ({f"evaluation/verified/2026_me/logs/{TASK}/report.json": report()}, None, "2026_me"),
        ({f"evaluation/verified/2026_me/logs/{TASK}/report.json": report(),
          "evaluation/verified/2026_me/all_preds.jsonl": prediction("a/b") + "\n"}, "a/b", "2026_me"),
        ({f"logs/run_evaluation/r1/a__b__c/{TASK}/report.json": report()}, "a/b/c", "r1"),
        ({f"mine/{TASK}/report.json": report()}, None, "mine"),
        ({"acme__m-1.r7.json": summary(empty_patch=[TASK])}, "acme/m-1", "r7"),
    ], 2),
)  # fmt: skip
def test_model_and_run_are_read_off_predictions_else_folders(
    tmp_path: Path, files: dict[str, str], model: str | None, run: str
) -> None:
    (attempt,) = attempts(tmp_path, files)
    assert (attempt["knobs"].get("model_id"), attempt["run_id"], attempt["conflicts"]) == (model, run, [])


def test_a_file_of_one_prediction_is_no_folder_of_a_trial(tmp_path: Path) -> None:
    files = {f"logs/run_evaluation/r1/{m}/{TASK}/report.json": report() for m in ("a", "b")}
    files |= {f"{m}.jsonl": prediction(m) for m in ("a", "b")}
    assert sorted(a["knobs"]["model_id"] for a in attempts(tmp_path, files)) == ["a", "b"]


# -- a run in one place, its evaluation in another ---------------------------------------------------------------------

RUN = f"trajectories/me/quick__v1/{TASK}/{TASK}"
LOGS = f"logs/run_evaluation/nightly/quick__v1/{TASK}"


def test_a_run_meets_its_evaluation_wherever_the_two_lie(tmp_path: Path) -> None:
    files = {
        f"{RUN}.traj": TRAJECTORY,
        f"{RUN}.pred": json.dumps({"model_name_or_path": "quick__v1", "instance_id": TASK, "model_patch": DIFF}),
        f"{LOGS}/report.json": report(),
        f"{LOGS}/patch.diff": DIFF,
        f"{LOGS}/test_output.txt": "+ source /opt/miniconda3/bin/activate\n1 passed in 0.1s\n",
    }
    (known,) = attempts(tmp_path, files)
    assert (known["reward"], known["exit_status"], known["run_id"]) == (1.0, "submitted", "quick__v1")
    assert sorted(known["kinds"]) == ["attempt_log", "patch", "session_jsonl", "verifier_report"]
    assert [f["path"] for f in known["patch"]] == ["tools/clock.py"], "what the run itself handed in is believed"


def test_a_report_found_later_joins_the_run_already_read(tmp_path: Path) -> None:
    (known,) = attempts(tmp_path, {f"{RUN}.traj": TRAJECTORY})
    assert known["reward"] is None
    (known,) = attempts(tmp_path, {f"{LOGS}/report.json": report()})
    assert known["reward"] == 1.0


def test_the_evaluation_of_another_model_is_another_trial(tmp_path: Path) -> None:
    other = f"logs/run_evaluation/nightly/slow__v1/{TASK}/report.json"
    known = attempts(tmp_path, {f"{RUN}.traj": TRAJECTORY, other: report()})
    assert sorted((k["reward"] is None, "session_jsonl" in k["kinds"]) for k in known) == [(False, False), (True, True)]


def test_of_two_runs_of_one_name_nothing_says_which_was_evaluated(tmp_path: Path) -> None:
    twin = f"trajectories/you/quick__v1/{TASK}/{TASK}.traj"
    other = TRAJECTORY.replace("quick-1", "quick-2")
    known = attempts(tmp_path, {f"{RUN}.traj": TRAJECTORY, twin: other, f"{LOGS}/report.json": report()})
    assert sorted("verifier_report" in k["kinds"] for k in known) == [False, False, True]


def test_two_evaluations_that_found_the_same_are_two(tmp_path: Path) -> None:
    places = [f"logs/run_evaluation/{run}/quick__v1/{TASK}/report.json" for run in ("monday", "tuesday")]
    known = attempts(tmp_path, dict.fromkeys(places, report()))
    assert [k["reward"] for k in known] == [1.0, 1.0]


def test_several_trajectories_in_one_folder_are_several_trials(tmp_path: Path) -> None:
    other = TRAJECTORY.replace(TASK, "acme__tools-13")
    known = attempts(tmp_path, {"a/one.traj": TRAJECTORY, "a/two.traj": other, "a/report.json": report()})
    assert {k["task_id"]: k["reward"] for k in known} == {TASK: 1.0, "acme__tools-13": None}


def test_an_id_is_one_however_its_files_write_it(tmp_path: Path) -> None:
    row = json.dumps({"instance_id": "Acme__Tools-12", "base_commit": "a", "patch": DIFF, "test_patch": ""})
    (known,) = attempts(
        tmp_path, {"a/one/x.traj": TRAJECTORY, "a/one/report.json": report(task="ACME__tools-12"), "a/row.json": row}
    )
    assert (known["task_id"], known["reward"]) == (TASK, 1.0)
    assert [f["path"] for f in known["gold_patch"]] == ["x"]


# -- the summary of a run ----------------------------------------------------------------------------------------------


def test_instances_without_a_report_are_known_from_the_summary(tmp_path: Path) -> None:
    told = summary(empty_patch=["acme__tools-3"], error=["acme__tools-4"], resolved=[TASK], completed=[TASK])
    known = attempts(tmp_path, {"quick__v1.nightly.json": told})
    assert {k["task_id"]: (k["exit_status"], k["reward"], k["patch"]) for k in known} == {
        "acme__tools-3": ("empty_patch", 0.0, []),
        "acme__tools-4": ("evaluation_error", None, None),
        TASK: (None, 1.0, None),
    }
    labels = "SELECT task_id, patch_outcome_label FROM attempts"
    assert {r["task_id"]: r["patch_outcome_label"] for r in rows(tmp_path / "store", labels)} == {
        "acme__tools-3": None,
        "acme__tools-4": "unverifiable",
        TASK: "correct_patch",
    }


def test_a_summary_names_its_runs_trials_and_no_others(tmp_path: Path) -> None:
    files = {
        "quick__v1.nightly.json": summary(empty_patch=[TASK]),
        f"{RUN}.traj": TRAJECTORY,
        f"trajectories/me/slow__v1/{TASK}/{TASK}.traj": TRAJECTORY,
    }
    known = {k["run_id"]: (k["reward"], "session_jsonl" in k["kinds"]) for k in attempts(tmp_path, files)}
    assert known == {"quick__v1": (0.0, True), "slow__v1": (None, True)}


# -- predictions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["preds.json", "all_preds.jsonl"])
def test_predictions_of_a_run_are_lent_to_its_trials(tmp_path: Path, name: str) -> None:
    made = [
        {"model_name_or_path": m, "instance_id": i, "model_patch": p}
        for m, i, p in (("quick__v1", TASK, DIFF), ("quick__v1", "acme__tools-13", ""))
    ]
    lines = "".join(json.dumps(p) + "\n" for p in made)
    content = lines if name.endswith("l") else json.dumps({p["instance_id"]: p for p in made}, indent=4)
    known, empty = attempts(tmp_path, {name: content, f"{LOGS}/report.json": report()})
    assert ([f["path"] for f in known["patch"]], known["patch_text_bytes"]) == (["x"], len(DIFF))
    assert (empty["task_id"], empty["patch"]) == ("acme__tools-13", []), "no report tells of an empty patch"


# -- runs of two models, against a count over their files -------------------------------------------------------------

_FATES = ("resolved", "unresolved", "empty_patch", "error")
_RUNGS = {"resolved": "solved", "unresolved": "failed", "empty_patch": "failed", "error": "not_judged"}


def evaluated(folder: Path, layout: str, *, predictions: bool, told: bool) -> dict[str, Counter[str]]:
    """A run of two models at 24 tasks each, written as the harness or as a submission does; by model what came."""
    counted = {}
    for shift, model in enumerate(("acme/m-1", "b")):
        fates = {f"acme__tools-{n}": _FATES[(n * n // 3 + shift * n) % 4] for n in range(24)}
        disk = model.replace("/", "__")
        ids = {fate: [task for task, came in fates.items() if came == fate] for fate in _FATES}
        home = "." if layout == "run" else f"evaluation/lite/2026_{disk}"
        above = f"logs/run_evaluation/r1/{disk}" if layout == "run" else f"{home}/logs"
        judged = [task for task in fates if fates[task] in ("resolved", "unresolved")]
        files = {f"{above}/{task}/report.json": report(fates[task] == "resolved", task) for task in judged}
        if predictions:
            patches = [prediction(model, "" if came == "empty_patch" else DIFF, task) for task, came in fates.items()]
            files[f"{home}/{disk}.jsonl" if layout == "run" else f"{home}/all_preds.jsonl"] = "\n".join(patches)
        if told and layout == "run":
            files[f"{disk}.r1.json"] = summary(submitted=list(fates), completed=judged, **ids)
        elif told:
            lists = {"no_generation": ids["empty_patch"], "no_logs": ids["error"], "resolved": ids["resolved"]}
            files[f"{home}/results/results.json"] = json.dumps(lists)
        placed(folder, files)
        silent = set() if told or predictions else {"error", "empty_patch"}
        known = [came for came in fates.values() if came not in silent]
        counted[model] = Counter(_RUNGS[came] for came in known)
    return counted


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["run", "submission"])
@pytest.mark.parametrize(("predictions", "told"), [(True, True), (True, False), (False, True), (False, False)])
def test_rates_of_two_models_are_those_counted_over_the_files(
    tmp_path: Path, layout: str, predictions: bool, told: bool
) -> None:
    """Whatever is there of reports, predictions and the run's own list: nobody is tried twice, and what no report tells
    (an empty patch, an evaluation that failed) drops out only where no file says that it was handed in: a patch without
    a report is not judged."""
    counted = evaluated(tmp_path / "runs", layout, predictions=predictions, told=told)
    analyzed(tmp_path / "store", tmp_path / "runs")
    who = "model_id" if layout == "run" or predictions else "substr(agent_type, 6)"
    sql = f"SELECT {who} AS who, outcome, count(*) AS n FROM attempts GROUP BY ALL"
    found: dict[str, Counter[str]] = {}
    for row in rows(tmp_path / "store", sql):
        found.setdefault(row["who"].replace("__", "/"), Counter())[row["outcome"]] = row["n"]
    assert found == counted
    assert analyzed(tmp_path / "store", tmp_path / "runs").parsed == 0, "a second reading finds nothing new"


def test_a_summary_alone_makes_a_rate_and_reports_found_later_make_no_second_trial(tmp_path: Path) -> None:
    ids = {"resolved": [TASK, "acme__tools-1"], "unresolved": ["acme__tools-2"], "empty_patch": ["acme__tools-3"]}
    told = {"m.r1.json": summary(**ids)}
    assert sorted(k["reward"] for k in attempts(tmp_path, told)) == [0.0, 0.0, 1.0, 1.0]
    known = attempts(tmp_path, {f"logs/run_evaluation/r1/m/{TASK}/report.json": report()})
    assert sorted(k["task_id"] for k in known) == ["acme__tools-1", TASK, "acme__tools-2", "acme__tools-3"]


def test_of_a_submission_that_lists_the_resolved_alone_no_rate_is_made(tmp_path: Path) -> None:
    place = "evaluation/lite/2026_m/results/results.json"
    lists = {"no_generation": ["acme__tools-7"], "no_logs": ["acme__tools-8"], "resolved": [TASK]}
    analyzed(tmp_path / "store", placed(tmp_path / "runs", {place: json.dumps(lists)}))
    assert rows(tmp_path / "store", "FROM attempts") == []
    lists["generated"] = [TASK, "acme__tools-9"]
    known = attempts(tmp_path, {place: json.dumps(lists)})
    expected = {TASK: 1.0, "acme__tools-7": 0.0, "acme__tools-8": None, "acme__tools-9": 0.0}
    assert {k["task_id"]: k["reward"] for k in known} == expected


def outcomes(store: Path, by: str = "run_id") -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for row in rows(store, f"SELECT {by} AS who, outcome, count(*) AS n FROM attempts GROUP BY ALL"):
        found.setdefault(row["who"], Counter())[row["outcome"]] = row["n"]
    return found


@pytest.mark.parametrize("place", some(["handed/in/", ""], 2))
def test_a_patch_that_nobody_judged_widens_the_bounds_wherever_its_file_lies(tmp_path: Path, place: str) -> None:
    """The harness writes its list where it was called, and reads predictions from anywhere."""
    tasks = [f"acme__tools-{n}" for n in range(6)]
    patches = [prediction("m", "" if n == 5 else DIFF, task) for n, task in enumerate(tasks)]
    files = {f"{place}all.jsonl": "\n".join(patches)}
    files |= {f"logs/run_evaluation/r1/m/{t}/report.json": report(n < 2, t) for n, t in enumerate(tasks[:3])}
    attempts(tmp_path, files)
    whole = {"solved": 2, "failed": 2, "not_judged": 2}
    assert outcomes(tmp_path / "store", "model_id") == {"m": whole}
    ids = {"resolved": tasks[:2], "unresolved": tasks[2:3], "error": tasks[3:5], "empty_patch": tasks[5:]}
    attempts(tmp_path, {"m.r1.json": summary(submitted=tasks, completed=tasks[:3], **ids)})
    assert outcomes(tmp_path / "store", "model_id") == {"m": whole}, "and with the run's own list nobody is tried twice"


def log(*lines: str) -> str:
    opening = f"2026-01-02 03:04:05,678 - INFO - Creating container for {TASK}...\n"
    return opening + "".join(f"2026-01-02 03:05:05,678 - INFO - {line}\n" for line in lines)


@pytest.mark.parametrize("listed", some([True, False], 2))
@pytest.mark.parametrize(
    ("lines", "outcome", "reason"),
    [
        ([">>>>> Patch Apply Failed:", "error: patch failed: x:1"], "failed", "patch_not_applied"),
        (["Test timed out after 1800 seconds."], "not_judged", "verifier timed out"),
        (["Error in evaluating model: container died"], "not_judged", "no verdict"),
    ],
)
def test_of_an_evaluation_that_failed_the_log_is_left(
    tmp_path: Path, lines: list[str], outcome: str, reason: str, listed: bool
) -> None:
    """A patch that does not apply leaves no report, and is the agent's doing."""
    files = {f"logs/run_evaluation/r1/a__b/{TASK}/run_instance.log": log(*lines), "p.jsonl": prediction("a__b")}
    if listed:
        attempts(tmp_path, {"a__b.r1.json": summary(error=[TASK])})
    (known,) = attempts(tmp_path, files)
    assert (known["knobs"]["model_id"], known["run_id"]) == ("a__b", "r1")
    asked = "SELECT value, detail FROM signals WHERE signal = 'verification.outcome'"
    (row,) = rows(tmp_path / "store", asked)
    expected = "verifier crashed" if listed and reason == "no verdict" else reason
    assert (json.loads(row["value"]), json.loads(row["detail"])["reason"]) == (outcome, expected)


def test_a_patch_of_blanks_is_none(tmp_path: Path) -> None:
    attempts(tmp_path, {"p.jsonl": prediction("m", " \n")})
    assert outcomes(tmp_path / "store", "model_id") == {"m": {"failed": 1}}


@pytest.mark.parametrize("reports", [True, False])
def test_two_runs_of_one_model_are_two_runs(tmp_path: Path, reports: bool) -> None:
    tasks = [f"acme__tools-{n}" for n in range(4)]
    fates = {
        "r1": ["resolved", "resolved", "empty_patch", "error"],
        "r2": ["unresolved", "empty_patch", "resolved", "resolved"],
    }
    files = {"all.jsonl": "\n".join(prediction("a/m", DIFF, task) for task in tasks)}
    for run, came in fates.items():
        ids = {fate: [t for t, c in zip(tasks, came, strict=True) if c == fate] for fate in _FATES}
        files[f"a__m.{run}.json"] = summary(submitted=tasks, **ids)
        for task, fate in zip(tasks, came, strict=True):
            if reports and fate in ("resolved", "unresolved"):
                files[f"logs/run_evaluation/{run}/a__m/{task}/report.json"] = report(fate == "resolved", task)
    attempts(tmp_path, files)
    assert outcomes(tmp_path / "store") == {r: Counter(_RUNGS[c] for c in came) for r, came in fates.items()}


@pytest.mark.parametrize(
    ("name", "run", "knobs"),
    [
        ("swe-bench_lite__test__night.1.json", "night.1", {"dataset": "swe-bench_lite", "split": "test"}),
        ("final_report.json", "final_report", {}),
    ],
)
def test_a_list_that_names_no_model_is_a_run_of_nobody(
    tmp_path: Path, name: str, run: str, knobs: dict[str, str]
) -> None:
    ids = {"resolved": ["acme__tools-1"], "unresolved": ["acme__tools-2"], "empty_patch": ["acme__tools-3"]}
    known = attempts(tmp_path, {name: summary(**ids, error=["acme__tools-4"])})
    assert [k["knobs"] for k in known] == [knobs] * 4
    assert outcomes(tmp_path / "store") == {run: {"solved": 1, "failed": 2, "not_judged": 1}}


def test_a_submission_without_its_logs_is_judged_by_its_lists(tmp_path: Path) -> None:
    """As the leaderboard's repository has it: logs and trajectories lie elsewhere."""
    tasks = [f"acme__tools-{n}" for n in range(8)]
    lists = {"no_generation": tasks[6:7], "no_logs": tasks[7:], "resolved": tasks[:3]}
    home = "evaluation/verified/2026_me"
    files = {f"{home}/all_preds.jsonl": "\n".join(prediction("me", "" if t == tasks[6] else DIFF, t) for t in tasks)}
    attempts(tmp_path, {**files, f"{home}/results/results.json": json.dumps(lists)})
    assert outcomes(tmp_path / "store") == {"2026_me": {"solved": 3, "failed": 4, "not_judged": 1}}
    assert analyzed(tmp_path / "store", tmp_path / "runs").parsed == 0


def test_trajectories_of_a_run_in_one_folder_meet_their_predictions(tmp_path: Path) -> None:
    home = "evaluation/verified/2026_me"
    files = {
        f"{home}/trajs/{TASK}.traj": TRAJECTORY,
        f"{home}/all_preds.jsonl": prediction("me"),
        f"{home}/logs/{TASK}/report.json": report(),
    }
    (known,) = attempts(tmp_path, files)
    assert (known["reward"], known["run_id"], "session_jsonl" in known["kinds"]) == (1.0, "2026_me", True)


def mini(model: str = "acme/quick-1", task: str = TASK) -> str:
    """A trajectory of mini-SWE-agent."""
    told = json.loads((SAMPLES / "mini-swe-agent" / "v1_document.traj.json").read_text("utf-8"))
    told["info"].setdefault("config", {}).setdefault("model", {})["model_name"] = model
    return json.dumps(told | {"instance_id": task})


@pytest.mark.parametrize("with_id", [True, False])
@pytest.mark.parametrize(("told", "judged"), [("trajs", "logs"), ("runs", "verdicts")])
def test_trajectories_and_reports_in_folders_side_by_side_are_of_one_run(
    tmp_path: Path, told: str, judged: str, with_id: bool
) -> None:
    said = report() if with_id else json.dumps(json.loads(report())[TASK])
    home = "in/20260504_acme"
    files = {f"{home}/{told}/{TASK}/{TASK}.traj.json": mini(), f"{home}/{judged}/{TASK}/report.json": said}
    (known,) = attempts(tmp_path, files)
    assert (known["reward"], "session_jsonl" in known["kinds"]) == (1.0, True)


def test_a_report_without_an_instance_in_a_verifiers_folder_is_of_another_harness(tmp_path: Path) -> None:
    bare = json.dumps(json.loads(report(False))[TASK])
    result = {"instanceId": TASK, "runId": "r", "reward": 0.0, "patchApplies": True, "timedOut": False, "duration": 9}
    home = f"in/r/{TASK}"
    (known,) = attempts(tmp_path, {f"{home}/result.json": json.dumps(result), f"{home}/verifier/report.json": bare})
    assert (known["task_id"], "verifier_report" in known["kinds"]) == (TASK, True)


@pytest.mark.parametrize(
    ("of_conversation", "of_report"),
    [
        ("trajs/{0}.traj.json", "logs/{0}"),
        ("trajs/{0}/{0}.traj.json", "logs/quick-1/{0}"),
        ("trajs/{0}.traj.json", "logs/quick-1/{0}"),
    ],
)
def test_verdicts_by_model_and_trajectories_without_folders_join_by_task(
    tmp_path: Path, of_conversation: str, of_report: str
) -> None:
    files = {f"in/sub/{of_conversation.format(TASK)}": mini(), f"in/sub/{of_report.format(TASK)}/report.json": report()}
    (known,) = attempts(tmp_path, files)
    assert "session_jsonl" in known["kinds"] and known["reward"] is not None


@pytest.mark.parametrize(
    "files",
    [
        {f"in/quick-1/{TASK}/{TASK}.traj.json": mini(), f"in/slow-1/{TASK}/report.json": report()},
        {f"in/trajs/{TASK}/{TASK}.traj.json": mini(), f"in/run_evaluation/r/slow-1/{TASK}/report.json": report()},
        {f"in/a/{TASK}/{TASK}.traj.json": mini(), f"in/b/{TASK}/{TASK}.traj.json": mini("acme/slow-1"),
         f"in/logs/{TASK}/report.json": report()},
        {f"one/trajs/{TASK}/{TASK}.traj.json": mini(), f"two/logs/{TASK}/report.json": report()},
    ],
    ids=["folders of models", "another model", "two conversations", "two runs"],
)  # fmt: skip
def test_a_verdict_is_not_lent_to_a_folder_that_may_be_anothers(tmp_path: Path, files: dict[str, str]) -> None:
    known = attempts(tmp_path, files)
    assert len(known) == len(files)
    assert not any("session_jsonl" in k["kinds"] and k["reward"] is not None for k in known)


def test_older_evaluations_keep_their_verdicts(tmp_path: Path) -> None:
    """`RUN/report.json` lists what became of `RUN/predictions.jsonl`; logs are named for their instances."""
    tasks = [f"acme__tools-{n}" for n in range(6)]
    files = {}
    for run, good, empty in (("eval-a", 2, 1), ("eval-b", 4, 0)):
        handed = tasks[: 6 - empty]
        lists = {"no_generation": tasks[6 - empty :], "generated": handed, "resolved": handed[:good], "no_apply": []}
        files[f"in/{run}/report.json"] = json.dumps(lists)
        files[f"in/{run}/predictions.jsonl"] = "\n".join(prediction("m", DIFF if t in handed else "", t) for t in tasks)
        files |= {
            f"in/{run}/logs/{t}.m.eval.log": f"Task Metadata:\n\t- Instance ID: {t}\n>>>>> Applied Patch (pred)\n"
            f"===== 1 {'passed' if t in handed[:good] else 'failed'} in 1.20s =====\n>>>>> Tests Passed\n"
            for t in handed
        }
    assert analyzed(tmp_path / "store", placed(tmp_path / "runs", files)).skipped == {"log_of_no_trial": 11}
    assert outcomes(tmp_path / "store") == {
        "eval-a": {"solved": 2, "failed": 4}, "eval-b": {"solved": 4, "failed": 2},
    }  # fmt: skip


@pytest.mark.parametrize("later", [False, True])
def test_a_run_that_nobody_judged_is_not_taken_for_one_of_its_model_that_was(tmp_path: Path, later: bool) -> None:
    tasks = [f"acme__tools-{n}" for n in range(3)]
    files: dict[str, str | bytes] = {}
    for n, run in enumerate(("monday", "tuesday", "wednesday")):
        patch = DIFF.replace("+b", f"+{n}")
        files[f"in/{run}/preds.jsonl"] = "\n".join(prediction("m", patch, t) for t in tasks)
        for task in tasks if run != "wednesday" else ():
            files[f"in/{run}/logs/run_evaluation/{run}/m/{task}/report.json"] = report(n == 1, task)
    if later:
        attempts(tmp_path, {name: said for name, said in files.items() if "wednesday" in name})
    known = attempts(tmp_path, files)
    assert Counter(k["reward"] for k in known) == {0.0: 3, 1.0: 3, None: 3}
    assert all(k["patch"] for k in known)


# -- tables of results -------------------------------------------------------------------------------------------------

_RESULTS: list[dict[str, Any]] = [
    {"instance_id": TASK, "resolved": True, "model": "m1", "agent": "mini", "dataset": "lite", "seed": 1, "cost": 0.5},
    {"instance_id": TASK, "resolved": False, "model": "m1", "agent": "mini", "dataset": "lite", "seed": 2, "cost": 0.7},
    {"instance_id": TASK, "resolved": None, "model": "m2", "agent": "mini", "dataset": "lite", "seed": 1, "cost": 0.1},
]


def as_parquet(table: list[dict[str, Any]]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(table), out, row_group_size=2)
    return out.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("results.json", json.dumps(_RESULTS, indent=1)),
        ("results.jsonl", "".join(json.dumps(row) + "\n" for row in _RESULTS)),
        ("results.csv", as_csv(_RESULTS)),
        ("results.parquet", as_parquet(_RESULTS)),
        ("long.parquet", as_parquet([{**row, "trace": os.urandom(HEAD_BYTES).hex()} for row in _RESULTS])),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 40 else "",
)
def test_a_table_of_results_is_an_attempt_a_row(tmp_path: Path, name: str, content: str | bytes) -> None:
    known = attempts(tmp_path, {f"mine/{name}": content})
    columns = ("model_id", "agent_type", "dataset", "seed")
    made = sorted((*(str(k["knobs"].get(c)) for c in columns), str(k["reward"]), k["cost_usd"]) for k in known)
    assert made == [
        ("m1", "mini", "lite", "1", "1.0", 0.5),
        ("m1", "mini", "lite", "2", "0.0", 0.7),
        ("m2", "mini", "lite", "1", "None", 0.1),
    ]
    asked = "SELECT outcome FROM attempts ORDER BY model_id, outcome"
    assert [r["outcome"] for r in rows(tmp_path / "store", asked)] == ["failed", "solved", "not_judged"]


def test_a_damaged_group_of_a_parquet_table_costs_itself(tmp_path: Path) -> None:
    whole = as_parquet([{**row, "instance_id": f"{TASK}{n}"} for n, row in enumerate(_RESULTS)])
    spoilt = whole[:40] + b"\xff" * 30 + whole[70:]
    assert len(attempts(tmp_path, {"mine/t.parquet": spoilt})) == 1
    asked = "SELECT skipped_reasons FROM artifacts WHERE path LIKE '%t.parquet'"
    assert json.loads(rows(tmp_path / "store", asked)[0]["skipped_reasons"]) == {"bad_parquet": 2}


@pytest.mark.parametrize("table", [[{"id": 1, "resolved": True}], [{"session_id": "s", "tokens": 5}]])
def test_another_parquet_table_is_named(tmp_path: Path, table: list[dict[str, Any]]) -> None:
    done = analyzed(tmp_path / "store", placed(tmp_path / "runs", {"mine/t.parquet": as_parquet(table)}))
    assert (done.skipped, done.other_files) == ({"no_conversation_column": 1}, 0)


# -- the dataset as one file ------------------------------------------------------------------------------------------

_GOLD = DIFF.replace("a/x b/x", "a/gold.py b/gold.py").replace("a/x\n", "a/gold.py\n").replace("b/x\n", "b/gold.py\n")
_DATASET: list[dict[str, Any]] = [
    {"instance_id": f"Acme__tools-{n}", "repo": "Acme/tools", "base_commit": "0f", "patch": _GOLD, "test_patch": DIFF,
     "problem_statement": "p", "FAIL_TO_PASS": '["a", "b"]', "PASS_TO_PASS": ["c"]}
    for n in (11, 12, 13)
]  # fmt: skip
_SETS: dict[str, str | bytes] = {
    "set.jsonl": "".join(json.dumps(row) + "\n" for row in _DATASET),
    "set.json": json.dumps(_DATASET, indent=1),
    "by_id.json": json.dumps({row["instance_id"]: row for row in _DATASET}),
    "set.parquet": as_parquet([{**row, "PASS_TO_PASS": '["c"]', "labels": ["x"]} for row in _DATASET]),
}


@pytest.mark.parametrize("name", _SETS)
def test_a_whole_dataset_is_claimed_and_tells_of_no_attempt_itself(name: str) -> None:
    content = _SETS[name]
    data = content if isinstance(content, bytes) else content.encode()
    claimed = identify(Head(data[:HEAD_BYTES], f"/r/{name}", len(data) <= HEAD_BYTES))
    assert claimed is not None and (claimed[0].name, claimed[1].everywhere) == ("swe-bench", True)
    file = given(data, "swe-bench", f"/r/{name}")
    parts, artifact = claimed[0].read([file]).attempts, file.artifact
    assert [(p.scope, p.root, p.task_id) for p in parts] == [("lent", "", f"acme__tools-{n}") for n in (11, 12, 13)]
    assert artifact.record_kinds == {"dataset_row": 3} and (artifact.records, artifact.skipped) == (3, 0)
    assert parts[0].statements[0].text == (
        "gold patch of Acme__tools-11: gold.py; tests to fix: 2, to keep: 1; the tests' patch: x"
    )


@pytest.mark.parametrize(
    "row",
    [
        {"instance_id": "a__b-1", "repo": "a/b", "patch": "x"},
        {**_DATASET[0], "model_patch": "x", "model_name_or_path": "m"},
        {**_DATASET[0], "trajectory": []},
        {**_DATASET[0], "instance_id": 7},
        _DATASET[0],
    ],
    ids=["few columns", "a prediction", "a conversation", "no name", "one instance, written again"],
)
def test_rows_that_somebody_tried_or_that_say_little_are_no_dataset(row: dict[str, Any]) -> None:
    data = "".join(json.dumps(row) + "\n" for _ in range(3)).encode()
    claimed = identify(Head(data, "/r/set.jsonl", True))
    assert claimed is None or not claimed[1].everywhere


@pytest.mark.slow
@pytest.mark.parametrize("name", _SETS)
def test_a_dataset_lends_gold_patches_to_attempts_anywhere_in_what_was_named(tmp_path: Path, name: str) -> None:
    files = {
        f"sets/swe/{name}": _SETS[name],
        f"run/logs/run_evaluation/r1/m/{TASK}/report.json": report(),
        "other/preds.jsonl": prediction("m-2", task="acme__tools-13") + "\n",
        "run/logs/run_evaluation/r1/m/acme__tools-99/report.json": report(task="acme__tools-99"),
    }
    known = attempts(tmp_path, files)
    gold = {k["task_id"]: [f["path"] for f in k["gold_patch"] or ()] for k in known}
    assert gold == {TASK: ["gold.py"], "acme__tools-13": ["gold.py"], "acme__tools-99": []}


@pytest.mark.slow
@pytest.mark.parametrize("first", ["set", "run"])
def test_a_dataset_lends_whenever_it_comes(tmp_path: Path, first: str) -> None:
    files = {
        "set": {"a/set.jsonl": _SETS["set.jsonl"]},
        "run": {f"b/run_evaluation/r1/m/{TASK}/report.json": report(), "c/preds.json": f"[{prediction('m')}]"},
    }
    for name in (first, *({"set", "run"} - {first})):
        known = attempts(tmp_path, files[name])
    assert known and all([f["path"] for f in k["gold_patch"]] == ["gold.py"] for k in known)


# -- what a submission says of itself ----------------------------------------------------------------------------------

_OLD = "name: Mender + M-1\noss: true\nsite: https://acme.test\nverified: false\n"
_NEW = """
info:
  name: Mender + M-1
  authors: Acme
tags:
  checked: false
  model: [acme/m-1, acme/m-2]
  os_model: false
  os_system: true
  system: {attempts: '2+'}
"""


def test_metadata_beside_predictions_is_of_a_submission_wherever_it_lies(tmp_path: Path) -> None:
    (known,) = attempts(tmp_path, {"x/metadata.yaml": _NEW, "x/preds.jsonl": prediction("m")})
    assert known["knobs"]["model_id"] == "acme/m-1 + acme/m-2"


@pytest.mark.parametrize("logs", some([True, False], 2))
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (_OLD, {"agent_type": "Mender + M-1", "model_id": "2026_me", "os_system": True}),
        (_NEW, {"agent_type": "Mender + M-1", "model_id": "acme/m-1 + acme/m-2", "os_model": False, "os_system": True,
                "max_attempts": "2+"}),
        ("name: Mender\nagent: mender\nmodels: [m-9]\n", {"agent_type": "mender", "model_id": "m-9"}),
    ],
)  # fmt: skip
def test_a_submissions_metadata_says_who_was_tried(
    tmp_path: Path, text: str, expected: dict[str, Any], logs: bool
) -> None:
    home = "evaluation/verified/2026_me"
    files = {f"{home}/metadata.yaml": text, f"{home}/all_preds.jsonl": prediction("2026_me")}
    files |= {f"{home}/logs/{TASK}/report.json": report()} if logs else {}
    (known,) = attempts(tmp_path, files)
    assert known["knobs"] == {"dataset": "verified", **expected}
    assert (known["conflicts"], known["run_id"]) == ([], "2026_me")


@pytest.mark.parametrize("text", ["name: [\ntags: {", "name: &a [*a]\ninfo: *a\n", "name: !!python/none\ninfo: 1\n"])
def test_metadata_that_can_not_be_read_costs_itself(tmp_path: Path, text: str) -> None:
    (known,) = attempts(tmp_path, {"x/metadata.yaml": text, "x/preds.jsonl": prediction("m")})
    assert known["knobs"] == {"model_id": "m"}


def test_a_broken_row_of_a_table_costs_itself(tmp_path: Path) -> None:
    good = [json.dumps(row) for row in _RESULTS]
    broken = [good[0], '{"instance_id": 5, "resolved": true}', '{"instance_id": "x"', good[1]]
    assert len(attempts(tmp_path, {"mine/t.jsonl": "\n".join(broken)})) == 2
    asked = "SELECT skipped FROM artifacts WHERE path LIKE '%t.jsonl'"
    assert rows(tmp_path / "store", asked) == [{"skipped": 2}]


# -- what people and logs say ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "content"), [("ratings.json", RATINGS), ("evaluation.txt", FORM)])
def test_ratings_go_to_the_attempt_whose_folder_they_name(tmp_path: Path, name: str, content: str) -> None:
    files = {f"task/{t}/report.json": report() for t in ("trace_01_quick", "trace_02_slow", "trace_03_idle")}
    attempts(tmp_path, {**files, f"task/{name}": content})
    rated = {k: v["ratings"] for k, v in facts(tmp_path / "store").items()}
    assert rated["trace_01_quick"]["rating"] == 4
    assert rated["trace_01_quick"]["rubrics_passed"] == 1
    assert rated["trace_01_quick"]["rubrics"] == {"rubric_01": "PASS", "rubric_02": "FAIL"}
    assert rated["trace_02_slow"]["rating"] == 5
    assert rated["trace_03_idle"] is None
    kept = rows(tmp_path / "store", "SELECT count(*) AS n FROM artifacts WHERE path LIKE '%task/%.%'")
    assert kept == [{"n": 4}], "the ratings are accounted for, once"


def test_text_beside_no_run_is_no_trace(tmp_path: Path) -> None:
    texts = {
        p.name: p.read_text("utf-8") for p in (SAMPLES / "swe-bench-text").glob("[!b]*") if p.suffix in (".txt", ".log")
    }
    summary_ = analyzed(tmp_path / "store", placed(tmp_path / "notes", {**texts, "ratings.json": RATINGS}))
    assert (summary_.artifacts, summary_.other_files) == (0, 4)


def test_a_log_tells_the_last_summary_of_its_tests() -> None:
    text = (
        b"+ source /opt/miniconda3/bin/activate\n1 failed in 2s\nx\n== 3 passed, 1 skipped in 9s ==\n+ git checkout\n"
    )
    (part,) = by_name("swe-bench-text").read([given(text, "swe-bench-text", "/r/test_output.txt")]).attempts
    assert [s.text for s in part.statements] == ["test_output.txt: == 3 passed, 1 skipped in 9s =="]


# -- parts from several places -----------------------------------------------------------------------------------------


def test_parts_of_one_name_are_brought_to_where_the_session_is() -> None:
    session = Session(session_id="s", context="eval", format="swe-agent", agent="swe-agent", artifact_id="a-1")
    artifact = Artifact(artifact_id="a-1", source="t", path="/run/x/x.traj", format="swe-agent", sha256="", bytes=1)
    parts = [
        Attempt(root="/run/x", goes_by="r/x", session_artifact="a-1", task_id="x"),
        Attempt(root="/logs/x", scope="trial", goes_by="r/x", task_id="x", reward=1.0),
        Attempt(root="/logs/x", scope="trial", patch=[]),
        Attempt(root="/logs/y", scope="trial", goes_by="r/y", task_id="y", reward=0.0),
    ]
    made = attach_attempts([session], parts, {"a-1": artifact})
    told = {s.attempt.task_id: (s.attempt.root, s.attempt.reward, s.attempt.patch) for s in made if s.attempt}
    assert told == {"x": ("/run/x", 1.0, []), "y": ("/logs/y", 0.0, None)}


# -- hostile files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b'{"a": {"patch_successfully_applied": 5}}',
        b'{"submitted_instances": 1, "completed_instances": 1, "resolved_instances": 1, "empty_patch_instances": 1,'
        b' "submitted_ids": {}, "empty_patch_ids": [1]}',
        b'{"instance_id": 5, "model_patch": [], "model_name_or_path": {}}',
        b'{"overall_rating": [], "rubrics_rating": 4}',
        b'{"overall_rating": {"trace_01": 4}}',
        b'{"instance_id": "x", "base_commit": "a", "patch": 4, "test_patch": ""}',
    ],
)
def test_files_of_odd_shape_are_refused_or_counted(content: bytes) -> None:
    found = identify(Head(content, "/r/x.json", True))
    if found is None:
        return
    file = given(content, found[0].name, "/r/x.json")
    parts = found[0].read([file]).attempts
    assert all(p.reward is None and p.verification is None and not p.patch and not p.ratings for p in parts)
    assert file.artifact.skipped_reasons.keys() & {"bad_shape", "odd_value"}


def _prediction(task: str) -> dict[str, Any]:
    return {"instance_id": task, "model_name_or_path": "m", "model_patch": DIFF}


_ONE, _TWO = (json.dumps(_prediction(f"acme__tools-{n}")) for n in (1, 2))


@pytest.mark.parametrize(
    ("name", "content", "skipped"),
    [
        ("all_preds.jsonl", f"{_ONE[:40]}\n{_ONE}\n{_TWO}\n", {"bad_json": 1}),
        ("all_preds.jsonl", f"[]\n{_ONE}\n{_TWO}\n", {"bad_shape": 1}),
        ("preds", f"{_ONE[:40]}\n{_ONE}\n{_TWO}\n", {"bad_json": 1}),
        ("preds.json", f"[5, {_ONE}, {_TWO}]", {"bad_shape": 1}),
        ("preds.json", f'{{"a": {{}}, "b": {_ONE}, "c": {_TWO}}}', {"bad_shape": 1}),
        ("preds.json", f'{{"b": {_ONE}, "c": {_TWO[:-1]}, "odd": 1e400}}}}', {}),
        ("report.json", f'{{"a": 5, {report(task="t-1")[1:-1]}, {report(task="t-2")[1:-1]}}}', {"bad_shape": 1}),
    ],
)
def test_a_bad_entry_among_others_costs_itself(name: str, content: str, skipped: dict[str, int]) -> None:
    file = given(content.encode(), "swe-bench", f"/r/{name}")
    parts, artifact = by_name("swe-bench").read([file]).attempts, file.artifact
    assert (len({p.task_id for p in parts}), artifact.skipped_reasons) == (2, skipped)
    assert sum(artifact.record_kinds.values()) + artifact.skipped == artifact.records


# -- the corpus --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_corpus_of_trials_gives_the_figures_that_a_plain_count_gives(tmp_path: Path) -> None:
    """Counted apart from this reader: lists of the reports, and `grep` over the ratings."""
    if not CORPUS.is_dir():
        pytest.skip("the corpus of eval runs is not here")
    done = analyzed(tmp_path / "store", CORPUS)
    assert (done.sessions, done.attempts, done.other_files) == (24, 24, 8), "8 forms rate runs that are not here"
    counts = "fail_to_pass_count, fail_to_fail_count, pass_to_pass_count, pass_to_fail_count"
    told = rows(tmp_path / "store", f"SELECT reward, has_transcript, facts, {counts} FROM attempts")
    assert (sum(r["reward"] for r in told), sum(r["has_transcript"] for r in told)) == (17.0, 11)
    assert [sum(r[c] for r in told) for c in counts.split(", ")] == [29, 7, 5515, 13]
    known = [json.loads(r["facts"]) for r in told]
    ratings = [k["ratings"] for k in known if k["ratings"]]
    assert Counter(r["rating"] for r in ratings) == {5: 5, 4: 5, 3: 2, 2: 2, 1: 2}
    assert (sum(r["rubrics_passed"] for r in ratings), sum(r["rubrics_total"] for r in ratings)) == (110, 148)
    assert all({"patch", "gold_patch", "verifier_report", "attempt_log"} <= set(k["kinds"]) for k in known)
    assert [k["conflicts"] for k in known if k["conflicts"]] == []
    assert rows(tmp_path / "store", "SELECT sum(skipped) AS n FROM artifacts") == [{"n": 0}]


@pytest.mark.parametrize(
    ("facts", "outcome"),
    [
        ({"infra_failure": False}, "failed"),
        ({"infra_failure": True, "infra_failure_reason": "docker_pull"}, "infrastructure"),
        ({"infra_failure": False, "infra_failure_reason": "network"}, "not_judged"),
        ({"resolved": True, "infra_failure": False, "infra_failure_reason": "network"}, "solved"),
    ],
)
def test_a_report_says_itself_whether_the_environment_failed(
    tmp_path: Path, facts: dict[str, Any], outcome: str
) -> None:
    told = {"patch_exists": True, "patch_successfully_applied": False, "resolved": False, **facts}
    told["patch_successfully_applied"] = told["resolved"] or "infra_failure_reason" in facts or None
    attempts(tmp_path, {f"{LOGS}/report.json": json.dumps({TASK: told})})
    assert rows(tmp_path / "store", "SELECT outcome FROM attempts") == [{"outcome": outcome}]


def merged(*tasks: str) -> str:
    """A report of several instances in one file, each second one resolved."""
    each = {"patch_is_None": False, "patch_exists": True, "patch_successfully_applied": True}
    return json.dumps({task: {**each, "resolved": n % 2 == 0} for n, task in enumerate(tasks)})


def predictions(*tasks: str, model: str = "org/a") -> str:
    patch = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n"
    rows = [{"instance_id": task, "model_name_or_path": model, "model_patch": patch} for task in tasks]
    return "".join(f"{json.dumps(row)}\n" for row in rows)


@pytest.mark.parametrize(
    ("files", "solved", "unjudged"),
    [
        ({"predictions.jsonl": predictions("a__b-1", "a__b-2", "a__b-3")}, {"org/a": 1}, 1),
        ({"mine.jsonl": predictions("a__b-1", "a__b-2")}, {"org/a": 1}, 0),
        ({"mine.jsonl": predictions("a__b-1", "a__b-2"), "b.jsonl": predictions("a__b-1", model="b")}, {"org/a": 1}, 1),
        # Either may be meant, or none has all of the instances: the report's verdicts are nobody's.
        (
            {"mine.jsonl": predictions("a__b-1", "a__b-2"), "b.jsonl": predictions("a__b-1", "a__b-2", model="b")},
            {None: 1}, 4,
        ),
        ({"predictions.jsonl": predictions("a__b-1")}, {None: 1}, 1),
        ({"below/predictions.jsonl": predictions("a__b-1", "a__b-2")}, {None: 1}, 2),
    ],
)  # fmt: skip
@pytest.mark.parametrize("at_once", [True, False])
def test_one_report_of_many_instances_judges_the_only_predictions_beside_it(
    tmp_path: Path, files: dict[str, str], solved: dict[str | None, int], unjudged: int, at_once: bool
) -> None:
    told = {"evaluation_report.json": merged("a__b-1", "a__b-2"), **files}
    for name in sorted(told, reverse=True):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text(told[name])
        if (not at_once and unjudged < 4) or len(list((tmp_path / "in").rglob("*.json*"))) == len(told):
            analyzed(tmp_path / "store", tmp_path / "in")
    sql = "SELECT json_extract_string(knobs, 'model_id') AS model, outcome, count(*) AS n FROM attempts GROUP BY ALL"
    made = rows(tmp_path / "store", sql)
    assert {row["model"]: row["n"] for row in made if row["outcome"] == "solved"} == solved
    assert sum(row["n"] for row in made if row["outcome"] == "not_judged") == unjudged
    assert {row["model"]: row["n"] for row in made if row["outcome"] == "failed"} == solved
