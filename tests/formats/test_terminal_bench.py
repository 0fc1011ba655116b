"""The traps of Terminal-Bench's results before Harbor (design/formats.md#terminal-bench). No real file of it is in
the corpus."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from agentsignals.ingest import pipeline
from agentsignals.store import Store
from agentsignals.store.query import rows as asked
from tests.golden import SAMPLES
from tests.questions.stores import rows_of

RUN = SAMPLES / "terminal-bench" / "run-9"


def trial(**facts: Any) -> dict[str, Any]:
    known = {"id": "0" * 36, "trial_name": "t.1", "task_id": "t", "instruction": "x"}
    return {**known, "is_resolved": True, "failure_mode": "unset", "parser_results": {"a": "passed"}, **facts}


def analyzed(store: Path, *sources: Path) -> list[dict[str, Any]]:
    pipeline.analyze([str(s) for s in sources], store, jobs=1)
    return rows_of(store, "SELECT * FROM attempts ORDER BY trial_id")


def test_tries_of_one_task_are_trials_of_their_own(tmp_path: Path) -> None:
    one, two = analyzed(tmp_path / "s", RUN)
    assert [(r["trial_id"], r["attempt_index"], r["is_last"]) for r in (one, two)] == [
        ("hello.1-of-2.run-9", 0, True),
        ("hello.2-of-2.run-9", 0, True),
    ]
    assert [r["reward"] for r in (one, two)] == [1.0, 0.0]


def test_a_run_lends_how_it_was_configured(tmp_path: Path) -> None:
    for row in analyzed(tmp_path / "s", RUN):
        assert (row["agent_type"], row["model_id"], row["dataset"]) == (
            "terminus", "acme/large-1", "terminal-bench-core@0.1.1",
        )  # fmt: skip
        assert (row["concurrency"], row["timeout_s"], row["run_id"]) == (4, 600, "run-9")


def test_a_lock_alone_says_as_much(tmp_path: Path) -> None:
    run = tmp_path / "run-9"
    shutil.copytree(RUN, run)
    (run / "run_metadata.json").unlink()
    names = ("agent_type", "model_id", "dataset", "concurrency", "timeout_s")
    assert [[r[n] for n in names] for r in analyzed(tmp_path / "s", run)] == 2 * [
        ["terminus", "acme/large-1", "terminal-bench-core@0.1.1", 4, 600]
    ]


def test_a_session_in_a_trials_folder_is_the_trials(tmp_path: Path) -> None:
    run = tmp_path / "run-9"
    shutil.copytree(RUN, run)
    shutil.copy(SAMPLES / "pi" / "tree.jsonl", run / "hello" / "hello.2-of-2.run-9" / "session.jsonl")
    assert [r["has_transcript"] for r in analyzed(tmp_path / "s", run)] == [False, True]


def test_a_runs_results_alone_are_its_trials(tmp_path: Path) -> None:
    (tmp_path / "run-9").mkdir()
    for name in ("results.json", "run_metadata.json"):
        shutil.copy(RUN / name, tmp_path / "run-9" / name)
    alone = analyzed(tmp_path / "a", tmp_path / "run-9")
    whole = analyzed(tmp_path / "b", RUN)
    names = ("trial_id", "task_id", "reward", "wall_time_s", "agent_time_s", "agent_type", "concurrency", "timed_out")
    assert [[r[n] for n in names] for r in alone] == [[r[n] for n in names] for r in whole]


def test_a_file_longer_than_the_window_is_known_by_its_first_trials(tmp_path: Path) -> None:
    run = tmp_path / "run"
    trials = [trial(id=f"{n:036d}", trial_name=f"t.{n}", instruction="x" * 9_000) for n in range(20)]
    for n, one in enumerate(trials):
        (run / "t" / f"t.{n}").mkdir(parents=True)
        (run / "t" / f"t.{n}" / "results.json").write_text(json.dumps(one))
    (run / "results.json").write_text(json.dumps({"id": "r", "results": trials, "accuracy": 1.0}))
    assert len(analyzed(tmp_path / "s", run)) == 20
    _, formats = asked(Store(tmp_path / "s"), "SELECT DISTINCT format FROM artifacts")
    assert [tuple(r) for r in formats] == [("terminal-bench",)]


def test_a_row_of_a_runs_table_counts_where_its_trial_has_no_file_and_a_copy_of_a_run_counts_once(
    tmp_path: Path,
) -> None:
    def put(path: str, content: Any) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(json.dumps(content))

    at = {"trial_started_at": "2025-08-07T20:46:16+00:00", "trial_ended_at": "2025-08-07T20:56:16+00:00"}
    rows = [trial(id=f"{n}" * 36, trial_name=f"t{n}.1-of-1.A", task_id=f"t{n}", **at) for n in range(3)]
    put("in/A/run_metadata.json", {"run_id": "A", "dataset_name": "d", "agent_name": "x", "start_time": "t"})
    put("in/B/run_metadata.json", {"run_id": "B", "dataset_name": "d", "agent_name": "x", "start_time": "t"})
    put("in/B/results.json", {"results": [trial(id="9" * 36, trial_name="t0.1-of-1.B", task_id="t0", **at)]})
    for place in ("in/A", "in/B/A"):  # the second is a copy that somebody left in another run's folder
        put(f"{place}/results.json", {"results": rows})
        for row in rows[:2]:
            put(f"{place}/{row['task_id']}/{row['trial_name']}/results.json", row)
    found = analyzed(tmp_path / "s", tmp_path / "in")
    assert sorted(r["task_id"] for r in found) == ["t0", "t0", "t1", "t2"]
