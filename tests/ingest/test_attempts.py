"""Eval runs as wholes: what lies in a trial's folder, what is lent to it, what means nothing by itself."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats.builder import SessionBuilder
from agentsignals.ingest import pipeline
from agentsignals.ingest.attempts import attach_attempts
from agentsignals.ingest.identity import without_copies
from agentsignals.model import Artifact, Attempt, HarnessSummary, Session, Statement, Verification, merge_attempts
from agentsignals.questions.compare.attempts import attempts_of, outcome_rule, queries
from tests.golden import SAMPLES
from tests.questions.stores import rows_of as rows

TRIAL = SAMPLES / "swe-bench" / "trial"
GOLD = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y\n"


def run_folder(root: Path, *trials: str) -> Path:
    """A task's folder with a dataset row, and a report and a patch for each trial."""
    task = root / "acme__tools-12"
    for name in trials:
        (task / name).mkdir(parents=True)
        for file in ("report.json", "agent_patch.diff"):
            shutil.copy(TRIAL / file, task / name / file)
    return task


def analyzed(store: Path, *sources: Path, jobs: int = 1) -> pipeline.Summary:
    return pipeline.analyze([str(s) for s in sources], store, jobs=jobs)


def facts(store: Path) -> dict[str, dict[str, Any]]:
    """What is known of each attempt, by the name of its trial's folder."""
    known = [json.loads(r["facts"]) for r in rows(store, "SELECT facts FROM attempts ORDER BY trial_id")]
    return {Path(t["root"]).name: t for t in known}


def test_a_trial_is_its_report_and_its_patch_and_what_is_lent_to_it(tmp_path: Path) -> None:
    task = run_folder(tmp_path / "runs", "one", "two")
    shutil.copy(TRIAL / "instance_data.json", task / "instance_data.json")
    summary = analyzed(tmp_path / "store", task.parent)
    assert (summary.sessions, summary.attempts, summary.artifacts) == (2, 2, 5)
    for known in facts(tmp_path / "store").values():
        assert sorted(known["kinds"]) == ["gold_patch", "patch", "verifier_report"]
        assert [f["path"] for f in known["gold_patch"]] == ["tools/parse.py"]
        assert [f["path"] for f in known["patch"]] == ["tools/parse.py", "check.py"]
        assert known["task_id"] == "acme__tools-12"
    assert {r["n"] for r in rows(tmp_path / "store", "SELECT count(*) AS n FROM artifacts GROUP BY path")} == {1}


def test_the_same_row_beside_two_runs_lends_to_each(tmp_path: Path) -> None:
    """A row that was read is kept for the next trial: by its place too, for it lends below its own folder."""
    for run in ("first", "second"):
        task = run_folder(tmp_path / run, "one")
        shutil.copy(TRIAL / "instance_data.json", task / "instance_data.json")
        analyzed(tmp_path / f"store-{run}", task.parent)
        (known,) = facts(tmp_path / f"store-{run}").values()
        assert "gold_patch" in known["kinds"], run


def test_a_patch_without_a_run_is_no_trace(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "fix.diff").write_text(GOLD)
    (tmp_path / "src" / "instance.json").write_text((TRIAL / "instance_data.json").read_text())
    summary = analyzed(tmp_path / "store", tmp_path / "src")
    assert (summary.sessions, summary.artifacts, summary.other_files) == (0, 0, 2)
    run_folder(tmp_path / "runs", "one")
    summary = analyzed(tmp_path / "again", tmp_path / "src", tmp_path / "runs")
    assert (summary.sessions, summary.artifacts, summary.other_files) == (1, 2, 2), "a run elsewhere changes nothing"


def test_what_is_lent_later_changes_the_trials_below_and_only_those(tmp_path: Path) -> None:
    runs, store = tmp_path / "runs", tmp_path / "store"
    task = run_folder(runs / "a", "one", "two")
    run_folder(runs / "b", "three")
    analyzed(store, runs)
    assert all("gold_patch" not in known["kinds"] for known in facts(store).values())
    (task / "golden_patch.diff").write_text(GOLD)
    summary = analyzed(store, runs)
    assert (summary.parsed, summary.unchanged) == (5, 6)
    known = facts(store)
    assert [[f["path"] for f in known[n]["gold_patch"] or []] for n in ("one", "two")] == [["a.py"], ["a.py"]]
    assert known["three"]["gold_patch"] is None


def test_a_patch_seen_before_its_run_is_read_when_the_run_is_there(tmp_path: Path) -> None:
    runs, store = tmp_path / "runs", tmp_path / "store"
    trial = run_folder(runs, "one") / "one"
    report = (trial / "report.json").read_bytes()
    (trial / "report.json").unlink()
    assert analyzed(store, runs).sessions == 0
    (trial / "report.json").write_bytes(report)
    assert analyzed(store, runs).attempts == 1
    assert len(facts(store)["one"]["patch"]) == 2


def test_a_changed_report_changes_its_own_trial_only(tmp_path: Path) -> None:
    runs, store = tmp_path / "runs", tmp_path / "store"
    task = run_folder(runs, "one", "two")
    (task / "golden_patch.diff").write_text(GOLD)
    analyzed(store, runs)
    report = task / "one" / "report.json"
    report.write_text(report.read_text().replace('"resolved": false', '"resolved": true'))
    assert analyzed(store, runs).parsed == 2, "its report and patch; the gold patch lent to it is not counted again"
    known = facts(store)
    assert (known["one"]["reward"], known["two"]["reward"]) == (1.0, 0.0)
    assert known["one"]["gold_patch"], "what was lent before is lent again"


def test_sessions_of_people_beside_a_run_stay_theirs(tmp_path: Path) -> None:
    mixed, store = tmp_path / "mixed", tmp_path / "store"
    run_folder(mixed, "one")
    shutil.copy(next((SAMPLES / "claude-code").glob("*.jsonl")), mixed / "mine.jsonl")
    analyzed(store, mixed)
    contexts = {r["format"]: r["context"] for r in rows(store, "SELECT format, context FROM sessions")}
    assert contexts == {"": "eval", "claude-code": "product"}


@pytest.mark.parametrize("jobs", [1, 2])
def test_order_and_number_of_workers_do_not_matter(tmp_path: Path, jobs: int) -> None:
    task = run_folder(tmp_path / "runs", "one", "two", "three")
    shutil.copy(TRIAL / "instance_data.json", task / "instance_data.json")
    analyzed(tmp_path / "a", task.parent)
    parts = sorted((p for p in task.rglob("*") if p.is_file()), reverse=True)
    analyzed(tmp_path / "b", *parts, jobs=jobs)
    assert rows(tmp_path / "a", "SELECT * FROM attempts ORDER BY ALL") == rows(
        tmp_path / "b", "SELECT * FROM attempts ORDER BY ALL"
    )


def test_an_attempt_without_a_transcript_has_no_figures_rather_than_zeros(tmp_path: Path) -> None:
    store = tmp_path / "store"
    analyzed(store, run_folder(tmp_path / "runs", "one"))
    (row,) = rows(store, "SELECT n_turns, n_prompts, n_tool_calls, n_edits, input_tokens, cost_usd FROM sessions")
    assert set(row.values()) == {None}
    said = rows(store, "SELECT DISTINCT absent, absent_detail FROM signals WHERE signal = 'tokens.output_tokens_total'")
    assert said == [{"absent": "missing_artifact", "absent_detail": "session_jsonl"}]


# -- putting parts together ---------------------------------------------------------------------------------------


def artifact(name: str, path: str) -> Artifact:
    return Artifact(artifact_id=name, source="local", path=path, format="x", sha256="", bytes=1)


def told(name: str, **facts: Any) -> Session:
    """A session of the file `a-NAME`, of a format that no agent writes."""
    facts = {"context": "product", "format": "x", "agent": "x", "artifact_id": f"a-{name}"} | facts
    return Session(session_id=name, **facts)


def session(name: str, started_at: int | None = None) -> tuple[Session, Artifact]:
    return told(name, format="pi", agent="pi", started_at=started_at), artifact(f"a-{name}", f"/r/{name}.jsonl")


def joined(parts: list[Attempt], *pairs: tuple[Session, Artifact]) -> list[Session]:
    return attach_attempts([one for one, _ in pairs], parts, {file.artifact_id: file for _, file in pairs})


def attempts(parts: list[Attempt]) -> list[Attempt]:
    return [made.attempt for made in joined(parts) if made.attempt is not None]


def test_retries_are_attempts_of_their_own_in_the_order_of_time() -> None:
    parts = [
        Attempt(root="/r", scope="trial", trial_id="t", task_id="x", knobs={"retry_tool_cap": 5}),
        Attempt(root="/r", attempt_index=0, summary=HarnessSummary(turns=3)),
        Attempt(root="/r", attempt_index=1, summary=HarnessSummary(turns=9)),
    ]
    made = joined(parts, session("late", 200), session("first", 100))
    found = [(s.session_id, s.attempt.attempt_index, s.attempt.summary.turns, s.attempt.is_last) for s in made]  # type: ignore[union-attr]  # assembled
    assert found == [("first", 0, 3, False), ("late", 1, 9, True)]
    assert all(s.context == "eval" and s.attempt is not None and s.attempt.knobs == {"retry_tool_cap": 5} for s in made)


def test_an_attempt_that_only_the_harness_saw_is_a_row_too() -> None:
    made = joined([Attempt(root="/r", attempt_index=n, trial_id="t") for n in (0, 1)], session("only", 5))
    assert [(s.session_id, s.attempt and s.attempt.has_transcript) for s in made] == [("only", True), ("t#1", False)]


def test_files_of_several_tasks_in_one_folder_are_several_trials() -> None:
    parts = [Attempt(root="/r", task_id=f"task-{n}", session_artifact=f"a-{n}") for n in ("one", "two")]
    made = [s.attempt for s in joined(parts, session("one"), session("two")) if s.attempt]
    assert [(a.task_id, a.attempt_index) for a in made] == [("task-one", 0), ("task-two", 0)]
    assert len({a.trial_id for a in made}) == 2


def test_what_is_lent_to_another_task_is_not_taken() -> None:
    parts = [
        Attempt(root="/r/one", task_id="x"),
        Attempt(root="/r", scope="lent", task_id="y", run_id="of y"),
        Attempt(root="/r", scope="lent", task_id="x", run_id="of x"),
        Attempt(root="/elsewhere", scope="lent", exit_status="of nobody"),
    ]
    (made,) = attempts(parts)
    assert (made.run_id, made.exit_status) == ("of x", None)


def test_the_most_specific_part_is_believed_and_a_conflict_is_told() -> None:
    whole = merge_attempts(
        [
            Attempt(root="/r", reward=1.0, knobs={"model_id": "a"}),
            Attempt(root="/r", scope="trial", reward=0.0, task_id="x", knobs={"model_id": "b", "timeout_s": 5}),
        ]
    )
    assert (whole.reward, whole.task_id, whole.knobs) == (1.0, "x", {"model_id": "a", "timeout_s": 5})
    assert whole.conflicts == ["reward", "knobs.model_id"]


@pytest.mark.parametrize(
    ("said", "event"),
    [
        ({"text": "reward 1", "line": 7, "fields": ["reward"]}, ("harness", "reward 1", "a-1", 7, None)),
        ({"text": "{}", "line": 3, "fields": [], "at": 42, "kind": "phase"}, ("phase", "{}", "a-1", 3, 42)),
    ],
)
def test_what_was_said_becomes_events_behind_the_session(said: dict[str, Any], event: tuple[Any, ...]) -> None:
    statement = Statement(artifact_id="a-1", **said)
    (made,) = joined([Attempt(root="/r", reward=1.0, statements=[statement])])
    assert [(e.kind, e.text, e.artifact_id, e.line, e.timestamp) for e in made.events] == [event]
    assert made.attempt is not None
    assert [s.seq for s in made.attempt.saying("reward")] == [0] * len(said["fields"])


def test_a_folder_below_a_trial_is_part_of_it() -> None:
    parts = [
        Attempt(root="/r/t", scope="trial", trial_id="t", reward=1.0),
        Attempt(root="/r/t/verifier", scope="trial", verification=Verification(patch_applies=True)),
        Attempt(root="/r/t2", scope="trial", trial_id="t2"),
    ]
    found = {a.trial_id: (a.reward, a.verification is not None) for a in attempts(parts)}
    assert found == {"t": (1.0, True), "t2": (None, False)}


def test_the_verdict_of_a_trial_is_of_its_last_attempt_and_its_totals_are_of_none() -> None:
    said = Statement(text="result", artifact_id="a-1", line=1, fields=["reward", "wall_time_s", "knobs.timeout_s"])
    whole = Attempt(
        root="/r", scope="trial", trial_id="t", reward=1.0, wall_time_s=9.0, started_at=1, ended_at=5, timed_out=False,
        knobs={"timeout_s": 60}, localization={"attempt1Mode": "wide"}, statements=[said],
    )  # fmt: skip
    first, last = attempts([whole, *(Attempt(root="/r", attempt_index=n) for n in (0, 1))])
    assert (first.reward, first.timed_out, first.started_at, first.ended_at) == (None, None, 1, None)
    assert (last.reward, last.timed_out, last.started_at, last.ended_at) == (1.0, False, None, 5)
    assert (first.wall_time_s, last.wall_time_s) == (None, None)
    assert first.knobs == last.knobs == {"timeout_s": 60}
    assert first.localization == last.localization == {"attempt1Mode": "wide"}
    assert (first.saying("reward"), len(last.saying("reward")), len(first.saying("knobs.timeout_s"))) == ([], 1, 1)


@pytest.mark.parametrize(
    ("starts", "lasted", "expected"),
    [
        ((0, 1_200), 3_000.0, [1_200.0, 1_800.0]),
        ((0, 900, 1_000), 1_500.0, [900.0, 100.0, 500.0]),
        ((0, None), 3_000.0, [None, None]),
        ((0, 4_000), 3_000.0, [None, None]),
        ((0, 1_200), None, [None, None]),
    ],
)
def test_attempts_divide_the_duration_of_their_trial_by_their_starts(
    starts: tuple[int | None, ...], lasted: float | None, expected: list[float | None]
) -> None:
    parts = [
        Attempt(root="/r", attempt_index=n, started_at=None if at is None else at * 1_000_000)
        for n, at in enumerate(starts)
    ]
    whole = Attempt(root="/r", scope="trial", trial_id="t", wall_time_s=lasted)
    assert [a.wall_time_s for a in attempts([whole, *parts])] == expected


@pytest.mark.parametrize(
    ("printed", "kept", "outcome"),
    [
        ("/eval.sh: line 9: pytest: command not found\n", [], "verifier_not_run"),
        ("OSError: [Errno 28] No space left on device\n", [], "infrastructure"),
        ("/eval.sh: line 9: pytest: command not found\n", ["t_keep"], "failed"),
        ("FAILED tests/test_a.py::t_fix - AssertionError\n= 1 failed in 0.1s =\n", [], "failed"),
    ],
)
def test_a_report_of_failures_needs_a_log_in_which_tests_ran(
    tmp_path: Path, printed: str, kept: list[str], outcome: str
) -> None:
    trial = tmp_path / "logs" / "run_evaluation" / "r" / "m" / "acme__shop-1"
    trial.mkdir(parents=True)
    tests = {"FAIL_TO_PASS": {"success": [], "failure": ["t_fix"]}, "PASS_TO_PASS": {"success": kept, "failure": []}}
    facts = {"patch_is_None": False, "patch_exists": True, "patch_successfully_applied": True, "resolved": False}
    (trial / "report.json").write_text(json.dumps({"acme__shop-1": facts | {"tests_status": tests}}))
    (trial / "test_output.txt").write_text("+ source /opt/miniconda3/bin/activate\n" + printed)
    analyzed(tmp_path / "store", tmp_path / "logs")
    assert [row["outcome"] for row in rows(tmp_path / "store", "SELECT outcome FROM attempts")] == [outcome]


def test_a_verdict_is_of_the_attempt_that_was_handed_in() -> None:
    parts = [Attempt(root="/r", attempt_index=n, is_handed_in=n == 1) for n in range(3)]
    verdict = Attempt(root="/r", scope="trial", trial_id="t", reward=1.0)
    lent = Attempt(root="", scope="lent", patch_text_bytes=9, knobs={"model_id": "m"})
    made = attempts([verdict, lent, *parts])
    found = [(a.reward, a.patch_text_bytes, a.is_last) for a in made]
    assert found == [(None, None, False), (1.0, 9, False), (None, None, True)]
    assert all(a.knobs == {"model_id": "m"} for a in made)


@pytest.mark.parametrize(("versions", "lent"), [(("2.4", "2.4"), {"2.4": 4}), (("2.4", "2.5"), {"2.4": 1, "2.5": 1})])
def test_an_empty_prediction_is_of_the_agent_that_made_the_others_of_its_run(
    tmp_path: Path, versions: tuple[str, str], lent: dict[str, int]
) -> None:
    run, names = tmp_path / "run", [f"acme__shop-{n}" for n in range(4)]
    run.mkdir()
    predicted = {n: {"model_name_or_path": "acme/one", "instance_id": n, "model_patch": ""} for n in names}
    (run / "preds.json").write_text(json.dumps(predicted))
    listed = {"submitted_ids": names, "empty_patch_ids": names, "resolved_ids": [], "unresolved_ids": []}
    (run / "acme__one.ev1.json").write_text(
        json.dumps({**listed, "submitted_instances": 4, "completed_instances": 0, "resolved_instances": 0})
    )
    for name, version in zip(names, versions, strict=False):
        config = {"agent": {}, "model": {"model_name": "acme/one"}, "agent_type": "x"}
        info = {"exit_status": "Submitted", "submission": "", "mini_version": version, "config": config}
        messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "Fix it."}]
        file = {"info": info, "instance_id": name, "messages": messages, "trajectory_format": "mini-swe-agent-1"}
        (run / name).mkdir()
        (run / name / f"{name}.traj.json").write_text(json.dumps(file))
    analyzed(tmp_path / "store", run)
    rule = outcome_rule("resolved")
    found = {name: rows(tmp_path / "store", query) for name, query in queries(rule).items()}
    made = [attempt.treatment for attempt in attempts_of(rule, found)]
    assert {treatment.get("agent_type") for treatment in made} == {"mini-swe-agent"}
    assert Counter(treatment["agent_version"] for treatment in made if "agent_version" in treatment) == lent


def test_what_a_batch_says_of_instances_without_a_trajectory(tmp_path: Path) -> None:
    run, names = tmp_path / "run", [f"acme__shop-{n}" for n in range(4)]
    run.mkdir()
    predicted = {n: {"model_name_or_path": "acme/one", "instance_id": n, "model_patch": ""} for n in names}
    lists = {"empty_patch_ids": names[2:], "resolved_ids": [], "unresolved_ids": names[:2], "error_ids": []}
    more = {"infra_failure_ids": names[:1], "failure_reasons": {names[0]: "out_of_memory"}}
    counts = {f"{n}_instances": 2 for n in ("submitted", "completed", "resolved", "empty_patch")}
    (run / "preds.json").write_text(json.dumps({n: predicted[n] | {"model_patch": PATCH} for n in names[:2]} | {
        n: predicted[n] for n in names[2:]}))  # fmt: skip
    (run / "acme__one.ev1.json").write_text(json.dumps({**counts, **lists, **more, "submitted_ids": names}))
    config = {"agent": {}, "model": {"model_name": "acme/one"}, "agent_type": "x"}
    info = {"exit_status": "Submitted", "submission": PATCH, "config": config, "mini_version": "2.4.6"}
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "Fix it."}]
    trajectory = {"info": info, "instance_id": names[1], "messages": messages, "trajectory_format": "mini-swe-agent-1"}
    (run / names[1]).mkdir()
    (run / names[1] / f"{names[1]}.traj.json").write_text(json.dumps(trajectory))
    (run / "exit_statuses_1.5.yaml").write_text(
        f"instances_by_exit_status:\n  Submitted:\n  - {names[3]}\n  CalledProcessError:\n  - {names[2]}\n"
    )
    analyzed(tmp_path / "store", run)
    found = rows(tmp_path / "store", "SELECT task_id, outcome, outcome_reason FROM attempts ORDER BY 1")
    assert [(row["outcome"], row["outcome_reason"]) for row in found] == [
        ("infrastructure", "out_of_memory"),
        ("failed", "tests"),
        ("infrastructure", "CalledProcessError"),
        ("failed", "no_artifact"),
    ]


PATCH = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
OUTPUTS = {
    "ran": ("FAILED t.py::test_a - no\n== 1 failed in 0.1s ==\n", "failed", "tests"),
    "runner": ("/tests/test.sh: line 9: pytest: command not found\n", "verifier_not_run", "/tests/test.sh: line 9"),
    "killed": ("collected 2 items\nKilled\n", "infrastructure", "out of memory"),
    "script": ("FAIL: 2 of 3 rows differ\n", "failed", "tests"),
    "module": (
        "collected 0 items / 1 error\ntests/test_a.py:1: in <module>\n"
        "E   ModuleNotFoundError: No module named 'psutil'\n",
        "verifier_not_run",
        "ModuleNotFoundError",
    ),
}


@pytest.mark.parametrize("harness", ["harbor", "terminal-bench"])
def test_an_outcome_rests_on_the_verifiers_own_output(tmp_path: Path, harness: str) -> None:
    for name, (output, _, _) in OUTPUTS.items():
        trial = tmp_path / "run" / name
        if harness == "harbor":
            result = {
                "task_name": name, "trial_name": f"{name}__1", "started_at": "2026-05-04T09:00:00Z",
                "finished_at": "2026-05-04T09:10:00Z", "verifier_result": {"rewards": {"reward": 0.0}}, "config": {},
            }  # fmt: skip
            files = {"result.json": json.dumps(result), "verifier/test-stdout.txt": output}
        else:
            result = {
                "id": f"00000000-0000-4000-8000-{len(name):012}", "trial_name": f"{name}.1-of-1", "task_id": name,
                "is_resolved": False, "failure_mode": "unset", "parser_results": None,
            }  # fmt: skip
            files = {"results.json": json.dumps(result), "panes/post-test.txt": output}
        for path, text in files.items():
            (trial / path).parent.mkdir(parents=True, exist_ok=True)
            (trial / path).write_text(text)
    analyzed(tmp_path / "store", tmp_path / "run")
    columns = "task_id, outcome, outcome_reason, outcome_shown_by, reward"
    found = rows(tmp_path / "store", f"SELECT {columns} FROM attempts")
    assert {row["task_id"]: row["outcome"] for row in found} == {name: end for name, (_, end, _) in OUTPUTS.items()}
    for row in found:
        assert row["outcome_reason"].startswith(OUTPUTS[row["task_id"]][2]) and row["outcome_shown_by"]
        assert row["reward"] == (0.0 if row["outcome"] == "failed" else None), "nobody judged it"


@pytest.mark.parametrize("tied", ["trial", "regrade"])
def test_a_regrade_of_which_only_conversations_are_known_loses_nothing(tied: str) -> None:
    """Either the trial's folder has subagents alone and so no attempt, or the regrade's has its conversation alone."""
    if tied == "trial":
        pairs = [(told(n, parent_session_id="p"), artifact(f"a-{n}", f"/r/one/{n}.json")) for n in "xy"]
        facts = {"root": "/r/one", "record_id": "1", "task_id": "z"}
        first = [Attempt(**facts, session_artifact=f"a-{n}", session_id=n) for n in "xy"]
        again = Attempt(root="/r/two", scope="trial", record_id="2", regrade_of="1", reward=1.0)
    else:
        pairs = [(told("x"), artifact("a-x", "/r/two/x.json"))]
        first = [Attempt(root="/r/one", scope="trial", record_id="1", reward=1.0)]
        again = Attempt(root="/r/two", record_id="2", regrade_of="1", session_artifact="a-x", session_id="x")
    made = joined([*first, again], *pairs)
    assert {s.session_id for s in made} >= {s.session_id for s, _ in pairs}
    assert [s.attempt.reward for s in made if s.attempt is not None] == [1.0]


def test_each_attempt_cites_its_own_event() -> None:
    said = Statement(text="b", artifact_id="a", line=1, fields=["knobs.timeout_s"])
    other = Statement(text="a", artifact_id="a", line=2, fields=[])
    whole = Attempt(root="/r", scope="trial", knobs={"timeout_s": 60}, statements=[said])
    first, second = Attempt(root="/r", attempt_index=0, statements=[other]), Attempt(root="/r", attempt_index=1)
    made = attempts([whole, first, second])
    assert [[s.seq for s in a.saying("knobs.timeout_s")] for a in made] == [[1], [0]]


@pytest.mark.parametrize(
    ("name", "started_at", "n"),
    [("own", None, 1), ("other", 150, 1), ("other", 301, 2), ("other", 99, 2), ("other", None, 2)],
    ids=["same id", "while it ran", "after it", "before it", "no times"],
)
def test_a_conversion_of_a_collected_session_is_told_once(name: str, started_at: int | None, n: int) -> None:
    own, own_file = session("own", 100)
    own.ended_at = 300
    converted = told(name, context="eval", agent="pi", artifact_id="a-c", started_at=started_at)
    file = artifact("a-c", "/r/agent/trajectory.json")
    parts = [
        Attempt(root="/r", scope="trial", trial_id="t"),
        Attempt(root="/r/agent", session_artifact="a-c", session_id=name, input_tokens=7),
    ]
    made = joined(parts, (converted, file), (own, own_file))
    assert len(made) == n
    assert file.note == ("converted from a-own" if n == 1 else None)
    assert [s.attempt.input_tokens for s in made if s.attempt and s.session_id == "own"] == [7 if n == 1 else None]


def test_two_sessions_that_agents_wrote_themselves_are_never_one() -> None:
    pairs = [session("one", 100), session("two", 100)]
    for one, _ in pairs:
        one.ended_at = 200
    assert len(joined([Attempt(root="/r", scope="trial", trial_id="t")], *pairs)) == 2


def test_sessions_without_an_id_in_one_folder_have_names_apart() -> None:
    pairs = [(told("", context="eval", artifact_id=f"a-{n}"), artifact(f"a-{n}", f"/r/{n}.json")) for n in range(3)]
    names = [s.session_id for s in joined([Attempt(root="/r", session_artifact=f"a-{n}") for n in range(3)], *pairs)]
    assert len(set(names)) == 3
    assert all(name.endswith("#0") for name in names), "runs side by side are no retries of each other"


def test_what_two_files_say_of_a_verification_is_put_together() -> None:
    parts = [
        Attempt(root="/r", verification=Verification(patch_applies=True)),
        Attempt(root="/r", verification=Verification(layout="B", patch_applies=False, fixed=["a"])),
        Attempt(root="/r", verification=Verification(status="crashed", message="no space")),
    ]
    found = merge_attempts(parts).verification
    assert found == Verification(status="crashed", layout="B", patch_applies=True, fixed=["a"], message="no space")


def test_what_a_trace_says_of_a_knob_gives_way_to_the_configuration() -> None:
    own = Attempt(root="/r", observed={"model_id": "gpt", "agent_type": "terminus"})
    whole = merge_attempts([own, Attempt(root="/r", scope="trial", knobs={"model_id": "openai/gpt"})])
    assert whole.knobs == {"model_id": "openai/gpt", "agent_type": "terminus"}
    assert whole.conflicts == []


def test_a_part_that_comes_with_its_session_names_the_trial() -> None:
    part = Attempt(root="/r", trial_id="t", session_artifact="a-s", session_id="s")
    (made,) = joined([part], (told("s", context="eval"), artifact("a-s", "/elsewhere")))
    assert made.attempt is not None and made.attempt.trial_id == "t"


def printed_and_written(*kinds: tuple[str, int]) -> tuple[list[Session], dict[str, Artifact]]:
    """Sessions of one id in several formats, each with so many events."""
    made = [told("s", format=kind, artifact_id=f"a-{kind}") for kind, _ in kinds]
    for one, (_, n) in zip(made, kinds, strict=True):
        for text in map(str, range(n)):
            SessionBuilder(one).event("text", text)
    return made, {s.artifact_id: artifact(s.artifact_id, f"/r/{s.format}") for s in made}


@pytest.mark.parametrize(
    ("kinds", "kept"),
    [
        ((("claude-stream", 9), ("claude-code", 2)), ["claude-code"]),
        ((("sts", 3), ("claude-stream", 9)), ["claude-stream"]),
        ((("claude-code", 1),), ["claude-code"]),
        ((("claude-code", 1), ("claude-code", 2)), ["claude-code", "claude-code"]),
    ],
)
def test_what_an_agent_wrote_down_and_printed_is_one_session(
    kinds: tuple[tuple[str, int], ...], kept: list[str]
) -> None:
    made, files = printed_and_written(*kinds)
    assert [s.format for s in without_copies(made, files)] == kept
    assert [a.note is not None for a in files.values()].count(True) == len({s.artifact_id for s in made}) - len(
        set(kept)
    )


def test_sessions_without_an_id_are_no_copies_of_each_other() -> None:
    made, files = printed_and_written(("sts", 1), ("claude-stream", 1))
    for one in made:
        one.session_id = ""
    assert len(without_copies(made, files)) == 2


def test_what_a_harness_printed_and_converted_is_one_attempt() -> None:
    made, files = printed_and_written(("claude-stream", 9), ("atif", 3))
    parts = [Attempt(root="/r", session_artifact="a-atif", session_id="s", reward=1.0)]
    (only,) = attach_attempts(made, parts, files)
    assert only.format == "claude-stream" and only.attempt is not None and only.attempt.reward == 1.0


def test_what_is_said_of_another_attempt_makes_no_attempt_of_a_session() -> None:
    """Two sessions in a trial's folder, and one statement about its second attempt."""
    pairs = [
        (told(name, started_at=n), artifact(f"a-{name}", f"/run/trial/{name}.json")) for n, name in enumerate("ab")
    ]
    part = Attempt(root="/run/trial", attempt_index=5, kinds=["verifier_report"])
    said_of = {s.session_id: s.attempt for s in joined([part], *pairs)}
    assert [said_of.pop("a"), said_of.pop("b")] == [None, None]
    ((_, attempt),) = said_of.items()
    assert attempt is not None and attempt.attempt_index == 5
