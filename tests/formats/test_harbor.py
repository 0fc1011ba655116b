"""The traps of Harbor's jobs and trials that no sample shows (design/formats.md#harbor-and-atif)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import identify
from agentsignals.formats.records import HEAD_BYTES, Head
from agentsignals.ingest import pipeline
from agentsignals.store import Store
from agentsignals.store.query import rows as asked
from tests.atif_steps import agent as step
from tests.atif_steps import document, user
from tests.golden import SAMPLES
from tests.questions.stores import rows_of


def config(**agent: Any) -> dict[str, Any]:
    return {"trial_name": "t__1", "trials_dir": "jobs", "task": {"path": "x"}, "agent": {"name": "oracle", **agent}}


def result(**facts: Any) -> dict[str, Any]:
    return {"task_name": "t", "trial_name": "t__1", "task_checksum": "0", **facts}


@pytest.mark.parametrize(
    ("content", "path", "place"),
    [
        (result(), "/j/t/result.json", "root"),
        (result(agent_result={"rollout_details": "x" * 90_000}), "/j/t/result.json", "root"),
        (config(), "/j/t/config.json", "root"),
        ({"job_name": "j", "jobs_dir": "jobs", "agents": []}, "/j/t/config.json", "lends"),
        ({"id": "1", "n_total_trials": 3, "stats": {}}, "/j/t/result.json", "lends"),
        ({"schema_version": 1, "harbor": {"version": "1"}, "trials": []}, "/j/t/lock.json", "lends"),
        ({"results": {"tool": {"name": "pytest"}, "tests": []}}, "/j/t/verifier/ctrf.json", "companion"),
        ({"reward": 1.0, "speed": 3}, "/j/t/verifier/reward.json", "companion"),
        ({"reward": 1.0, "speed": 3}, "/j/t/reward.json", None),
        ({"reward": "much"}, "/j/t/verifier/reward.json", None),
        ({"harbor": "Oslo", "trials": 3}, "/j/lock.json", None),
        ({"task_name": "t", "trial_name": "t"}, "/j/x.json", None),
    ],
)
def test_files_of_one_name_are_told_apart_by_content(content: Any, path: str, place: str | None) -> None:
    data = json.dumps(content).encode()
    found = identify(Head(data[:HEAD_BYTES], path, len(data) <= HEAD_BYTES))
    if found is None:
        assert place is None
        return
    known, claim = found
    assert known.name == "harbor"
    told = "companion" if claim.companion else "lends" if claim.lends else "root" if claim.gathers else None
    assert told == place
    assert (claim.root or claim.lends or "/j/t") == "/j/t"


@pytest.mark.parametrize(
    ("text", "path", "name"),
    [
        ("1\n", "/j/t/verifier/reward.txt", "harbor-log"),
        ("any words", "/j/t/agent/install.log", "harbor-log"),
        ("any words", "/j/t/exception.txt", "harbor-log"),
        ("any words", "/j/t/notes.txt", None),
        ("any words", "/j/t/agent/notes.md", None),
        ("diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n", "/j/t/agent/fix.txt", "patch"),
        ("[subq-eval] Turns: 3\n", "/j/t/agent/log.txt", "subq-eval-log"),
        (">>>>> Start Test Output\n", "/j/t/verifier/test-stdout.txt", "swe-bench-text"),
    ],
)
def test_plain_text_is_a_companion_by_its_place_unless_it_has_a_reader(text: str, path: str, name: str | None) -> None:
    found = identify(Head(text.encode(), path, True))
    assert (found[0].name if found else None) == name


JOB = SAMPLES / "harbor" / "job"


def attempts(folder: Path, store: Path) -> list[dict[str, Any]]:
    """Every attempt of a folder, with what is known of it, after the whole job."""
    pipeline.analyze([str(folder)], store, jobs=1)
    rows = rows_of(store, "SELECT * FROM attempts ORDER BY trial_id, attempt_index")
    return [{**r, "facts": json.loads(r["facts"])} for r in rows]


def test_a_trial_is_its_folder_and_what_its_job_lends(tmp_path: Path) -> None:
    (known,) = attempts(JOB, tmp_path / "s")
    assert (known["task_id"], known["trial_id"], known["session_id"]) == ("fix-add", "fix-add__ab12CD3", "s-77")
    assert (known["dataset"], known["concurrency"], known["timeout_s"]) == ("acme-bench@1.2", 4, 1200)
    assert (known["model_id"], known["agent_type"]) == ("anthropic/claude-opus-4-5", "claude-code")
    assert (known["reward"], known["timed_out"], known["wall_time_s"], known["agent_time_s"]) == (0.5, True, 1300, 1200)
    assert known["facts"]["verification"]["passed"] == ["test_outputs.py::test_sum"]
    assert known["facts"]["conflicts"] == []
    assert known["has_transcript"] is True


def test_a_trial_of_steps_is_one_trial_with_the_steps_as_parts(tmp_path: Path) -> None:
    """As Harbor 0.25.0 counts a job of its own: three steps, the third of which failed before its verifier."""
    (known,) = attempts(SAMPLES / "harbor" / "steps", tmp_path / "s")
    assert (known["task_id"], known["trial_id"], known["attempt_index"]) == ("ledger", "ledger__q1W2e3R", 0)
    assert (known["outcome"], known["has_transcript"], known["session_id"]) == ("infrastructure", True, "ledger-1")
    assert (known["harness_input_tokens"], known["harness_cost_usd"]) == (300, 0.75), "summed over the steps"
    assert known["facts"]["rewards"] == {"reward": 0.5, "read.reward": 1.0, "post.reward": 0.0}
    assert (known["model_id"], known["timeout_s"], known["concurrency"]) == ("acme/m-1", 600, 2)
    assert known["facts"]["conflicts"] == []
    _, (sums,) = asked(Store(tmp_path / "s"), "SELECT count(*), sum(n_steps), sum(n_tool_calls) FROM sessions")
    trajectories = sorted((SAMPLES / "harbor" / "steps").rglob("trajectory.json"))
    alone = [attempts_of_session(path, tmp_path / path.parent.parent.name) for path in trajectories]
    assert tuple(sums) == (1, *(sum(column) for column in zip(*alone, strict=True)))
    broken = "SELECT count(*) FROM tool_calls c ANTI JOIN steps USING (session_id, step) WHERE c.step IS NOT NULL"
    assert [tuple(r) for r in asked(Store(tmp_path / "s"), broken)[1]] == [(0,)]


def attempts_of_session(path: Path, store: Path) -> tuple[int, int]:
    """Model calls and tool calls of one trajectory that is read by itself."""
    pipeline.analyze([str(path)], store, jobs=1)
    _, (row,) = asked(Store(store), "SELECT n_steps, n_tool_calls FROM sessions")
    return tuple(row)


def steps_of(*facts: dict[str, Any]) -> list[dict[str, Any]]:
    used = {"n_input_tokens": 10, "n_cache_tokens": 4, "n_output_tokens": 1, "cost_usd": 0.5}
    return [{"step_name": f"s{n}", "agent_result": used, **one} for n, one in enumerate(facts, 1)]


def rewarded(reward: float) -> dict[str, Any]:
    return {"verifier_result": {"rewards": {"reward": reward}}}


TIMED_OUT = {"exception_type": "AgentTimeoutError", "exception_message": "over", "policy": {"has_valid_reward": True}}
BROKEN = {"exception_type": "EnvironmentStartTimeoutError", "exception_message": "gone"}


@pytest.mark.parametrize(
    ("trial", "steps", "outcome", "status"),
    [
        (rewarded(1.0), [rewarded(1.0), rewarded(1.0)], "solved", None),
        (rewarded(0.5), [rewarded(1.0), rewarded(0.0)], "failed", None),
        (rewarded(0.0), [rewarded(0.0)], "failed", None),
        (
            {**rewarded(1.0), "reward_valid": True},
            [{**rewarded(1.0), "exception_info": TIMED_OUT}, rewarded(1.0)],
            "solved",
            "AgentTimeoutError",
        ),
        ({**rewarded(1.0), "exception_info": BROKEN}, [rewarded(1.0)], "infrastructure", BROKEN["exception_type"]),
        (
            {**rewarded(1.0), "reward_valid": False},
            [rewarded(1.0), {**rewarded(1.0), "exception_info": BROKEN}],
            "infrastructure",
            BROKEN["exception_type"],
        ),
        ({}, [{"exception_info": BROKEN}], "infrastructure", BROKEN["exception_type"]),
    ],
    ids=["all", "mean", "ended at its first step", "handled", "broke off", "a step broke off", "never judged"],
)
def test_a_trial_of_steps_ends_as_harbor_says(
    tmp_path: Path, trial: dict[str, Any], steps: list[dict[str, Any]], outcome: str, status: str | None
) -> None:
    (tmp_path / "t__1").mkdir()
    written = {**result(finished_at="2026-01-01T00:00:00Z"), **trial, "step_results": steps_of(*steps)}
    (tmp_path / "t__1" / "result.json").write_text(json.dumps(written))
    (tmp_path / "t__1" / "config.json").write_text(json.dumps(config()))
    (known,) = attempts(tmp_path, tmp_path / "s")
    assert (known["outcome"], known["exit_status"]) == (outcome, status)
    assert known["harness_input_tokens"] == 10 * len(steps)
    assert known["harness_cost_usd"] == 0.5 * len(steps)


def test_tests_of_every_step_are_the_trials(tmp_path: Path) -> None:
    trial = tmp_path / "t__1"
    for name, status in (("s1", "passed"), ("s2", "failed")):
        (trial / "steps" / name / "verifier").mkdir(parents=True)
        report = {"results": {"tool": {"name": "pytest"}, "tests": [{"name": "test_it", "status": status}]}}
        (trial / "steps" / name / "verifier" / "ctrf.json").write_text(json.dumps(report))
        (trial / "steps" / name / "verifier" / "reward.txt").write_text("1" if status == "passed" else "0")
    (trial / "result.json").write_text(json.dumps({**result(), **rewarded(0.5), "step_results": steps_of({}, {})}))
    (known,) = attempts(tmp_path, tmp_path / "s")
    tests = known["facts"]["verification"]
    assert (tests["passed"], tests["failed"]) == (["s1/test_it"], ["s2/test_it"])
    assert known["facts"]["rewards"] == {"reward": 0.5, "s1.reward": 1.0, "s2.reward": 0.0}
    assert (known["reward"], known["outcome"]) == (0.5, "failed")


def test_what_harbor_counted_is_kept_beside_the_sessions_own(tmp_path: Path) -> None:
    """For some agents Harbor adds up every repeat of a message's usage."""
    (known,) = attempts(JOB, tmp_path / "s")
    assert (known["harness_input_tokens"], known["harness_cache_read_tokens"]) == (5200, 4000)
    _, rows = asked(Store(tmp_path / "s"), "SELECT input_tokens, cache_read_tokens FROM sessions")
    assert [tuple(r) for r in rows] == [(600, 2000)]


def test_a_short_reward_is_not_taken_for_an_earlier_snapshot_of_a_log(tmp_path: Path) -> None:
    trial = tmp_path / "t__1"
    (trial / "verifier").mkdir(parents=True)
    (trial / "config.json").write_text(json.dumps(config()))
    (trial / "verifier" / "reward.txt").write_text("1")
    (trial / "verifier" / "test-stdout.txt").write_text("1 passed in 0.1s\n")
    (known,) = attempts(tmp_path, tmp_path / "s")
    assert known["reward"] == 1.0


@pytest.mark.parametrize(("text", "skipped"), [("one\n", {"no_number": 1}), ("nan", {"no_number": 1}), ("", {})])
def test_a_reward_that_is_no_number_is_counted(tmp_path: Path, text: str, skipped: dict[str, int]) -> None:
    (tmp_path / "t" / "verifier").mkdir(parents=True)
    (tmp_path / "t" / "config.json").write_text(json.dumps(config()))
    (tmp_path / "t" / "verifier" / "reward.txt").write_text(text)
    summary = pipeline.analyze([str(tmp_path / "t")], tmp_path / "s", jobs=1)
    assert {k: n for k, n in summary.skipped.items() if k == "no_number"} == skipped
    assert summary.attempts == 1


def test_a_session_the_agent_wrote_itself_is_told_before_harbors_conversion(tmp_path: Path) -> None:
    trial = tmp_path / "t__1"
    own = next(p for p in sorted((SAMPLES / "claude-code").glob("edits.jsonl")))
    at = next(r["timestamp"] for line in own.read_text().splitlines() if "timestamp" in (r := json.loads(line)))
    (trial / "agent" / "sessions").mkdir(parents=True)
    (trial / "result.json").write_text(json.dumps(result(finished_at="2026-01-01T00:00:00Z")))
    (trial / "agent" / "sessions" / "own.jsonl").write_text(own.read_text())
    copy = document(user("x", timestamp=at), step("y", timestamp=at), session_id="another")
    (trial / "agent" / "trajectory.json").write_text(json.dumps(copy))
    (known,) = attempts(tmp_path, tmp_path / "s")
    _, rows = asked(Store(tmp_path / "s"), "SELECT format, context FROM sessions")
    assert [tuple(r) for r in rows] == [("claude-code", "eval")]
    assert known["attempt_index"] == 0


def test_a_trial_that_broke_off_is_an_attempt_too(tmp_path: Path) -> None:
    trial = tmp_path / "t__1"
    (trial / "agent").mkdir(parents=True)
    (trial / "config.json").write_text(json.dumps(config()))
    (trial / "agent" / "out.txt").write_text("starting\n")
    (trial / "exception.txt").write_text("Traceback\n  x\ndocker.errors.DockerException: no space\n")
    (known,) = attempts(tmp_path, tmp_path / "s")
    assert (known["trial_id"], known["reward"], known["has_transcript"]) == ("t__1", None, False)
    assert known["facts"]["exception"] == "DockerException"


NOT_VERIFIED = {"exception_info": {"exception_type": "VerifierTimeoutError", "exception_message": "over"}}
NOT_REGRADED = {"exception_info": {"exception_type": "RegradeError", "exception_message": "no manifest"}}


@pytest.mark.parametrize("folder", ["again", "z"])
@pytest.mark.parametrize(
    ("verdicts", "outcome", "reason", "rewards"),
    [
        ((rewarded(0.0), rewarded(0.0)), "failed", "tests", [0.0, 0.0]),
        ((rewarded(0.0), rewarded(1.0)), "not_judged", "two verdicts differ", [0.0, 1.0]),
        ((rewarded(0.2), rewarded(0.7)), "not_judged", "two verdicts differ", [0.2, 0.7]),
        ((NOT_VERIFIED, rewarded(1.0)), "solved", "reward", [None, 1.0]),
        ((rewarded(1.0), NOT_REGRADED), "solved", "reward", [1.0, None]),
        ((rewarded(1.0), rewarded(1.0), rewarded(0.0)), "not_judged", "two verdicts differ", [1.0, 1.0, 0.0]),
        ((NOT_VERIFIED, rewarded(0.0), rewarded(1.0)), "not_judged", "two verdicts differ", [None, 0.0, 1.0]),
    ],
)
def test_a_trial_that_was_judged_again_is_one_attempt_with_each_verdict(
    tmp_path: Path, folder: str, verdicts: tuple[dict[str, Any], ...], outcome: str, reason: str, rewards: list[Any]
) -> None:
    """As Harbor 0.26.0 writes a regrade: usage, the agent's files and its exception are copies of the first trial's."""
    used = {"agent_result": {"n_input_tokens": 10, "n_output_tokens": 2, "cost_usd": 0.5}, "finished_at": "2026-01-01"}
    files = {}
    for n, verdict in enumerate(verdicts):
        source = {"source_trial": {"action": "regrade", "type": "hub", "trial_id": f"id-{n - 1}"}} if n else {}
        named = {"id": f"id-{n}", "trial_name": f"t__{n}", "config": {**config(), **source, "trial_name": f"t__{n}"}}
        place = tmp_path / "in" / (folder if n else "job") / f"t__{n}"
        files[place / "result.json"] = json.dumps(result(**named, **used, **verdict))
        files[place / "agent" / "trajectory.json"] = json.dumps(document(user("x"), step("y"), session_id="s-1"))
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if path.parent.name == "t__0" and folder == "z":
            pipeline.analyze([str(tmp_path / "in")], tmp_path / "s", jobs=1)  # before anybody judged again
    (known,) = attempts(tmp_path / "in", tmp_path / "s")
    assert (known["trial_id"], known["session_id"], known["outcome"], known["outcome_reason"]) == (
        "t__0", "s-1", outcome, reason,
    )  # fmt: skip
    assert (known["harness_input_tokens"], known["harness_cost_usd"], known["has_transcript"]) == (10, 0.5, True)
    names = ["reward", *(f"t__{n}.reward" for n in range(1, len(verdicts)))]
    assert known["facts"]["rewards"] == {n: v for n, v in zip(names, rewards, strict=True) if v is not None}
    said = [row["text"] for row in rows_of(tmp_path / "s", "SELECT text FROM events WHERE kind = 'harness'")]
    assert sum("verifier's rewards" in text for text in said) == sum(r is not None for r in rewards)


@pytest.mark.parametrize("place", [".sources/id-0", "a", "z"])
def test_a_copy_of_a_trial_is_the_same_attempt(tmp_path: Path, place: str) -> None:
    """Harbor lays trials of its hub into `.sources/ID` of the job that judges them again."""
    facts = {"id": "id-0", "finished_at": "2026-01-01", "agent_result": {"n_input_tokens": 10}}
    for folder in (tmp_path / "in" / "job" / "t__1", tmp_path / "in" / place / "t__1"):
        (folder / "agent").mkdir(parents=True)
        (folder / "result.json").write_text(json.dumps(result(**facts, **rewarded(1.0))))
        (folder / "agent" / "trajectory.json").write_text(json.dumps(document(user("x"), step("y"), session_id="s-1")))
    (known,) = attempts(tmp_path / "in", tmp_path / "s")
    assert (known["session_id"], known["outcome"], known["harness_input_tokens"]) == ("s-1", "solved", 10)
    assert (known["has_transcript"], known["facts"]["conflicts"]) == (True, [])


def test_a_regrade_whose_trial_is_not_here_is_an_attempt_by_itself(tmp_path: Path) -> None:
    source = {"source_trial": {"action": "regrade", "type": "local", "path": "/x", "trial_id": "gone"}}
    (tmp_path / "t__1").mkdir()
    (tmp_path / "t__1" / "result.json").write_text(json.dumps(result(config={**config(), **source}, **rewarded(1.0))))
    (known,) = attempts(tmp_path, tmp_path / "s")
    assert (known["trial_id"], known["outcome"]) == ("t__1", "solved")


@pytest.mark.parametrize(
    ("told", "task"),
    [
        ({"path": "/data/tasks/fix-it/"}, "fix-it"),
        ({"name": "org/fix-it"}, "org/fix-it"),
        ({"git_url": "https://x", "path": "tasks/fix-it"}, "fix-it"),
        ({}, None),
    ],
)
@pytest.mark.parametrize("result_text", [None, '{"task_name": "other", "trial_name": "fix__1", "task_checksum": '])
def test_a_trial_without_its_result_has_the_task_of_its_configuration(
    tmp_path: Path, told: dict[str, str], task: str | None, result_text: str | None
) -> None:
    trial = tmp_path / "job" / "fix__1"
    (trial / "verifier").mkdir(parents=True)
    (trial / "config.json").write_text(json.dumps({**config(), "trial_name": "fix__1", "task": told}))
    (trial / "verifier" / "reward.txt").write_text("0")
    if result_text is not None:
        (trial / "result.json").write_text(result_text)
    pipeline.analyze([str(tmp_path / "job")], tmp_path / "store", jobs=1)
    assert asked(Store(tmp_path / "store"), "SELECT task_id, outcome FROM attempts")[1] == [(task, "failed")]
    (trial / "result.json").write_text(json.dumps({**result(), "task_name": "whole", "trial_name": "fix__1"}))
    pipeline.analyze([str(tmp_path / "job")], tmp_path / "store", jobs=1)
    assert asked(Store(tmp_path / "store"), "SELECT task_id FROM attempts")[1] == [("whole",)]
