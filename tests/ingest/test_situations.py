"""Situations from public issue trackers and data cards, each with the right answer beside its source.

The inputs were written down before the program read them. A harness log is asked for its attempts, a data set for its
sessions.
"""

from __future__ import annotations

import bz2
import datetime
import gzip
import json
import lzma
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet
import pytest

from agentsignals.ingest import pipeline
from agentsignals.store import Store
from agentsignals.store.query import rows as asked
from tests.formats.reading import as_bytes as plain_bytes
from tests.formats.reading import placed
from tests.hub_server import DataSet, Hub, hub
from tests.ingest.test_data_sets import as_arrow, as_csv, as_lines, as_parquet, chat
from tests.inspect_logs import archive, header, sample
from tests.quick import some

__all__ = ["hub"]

PATCH = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
OUTCOMES = "SELECT task_id, outcome FROM attempts ORDER BY ALL"
CALLS = "SELECT session_id, n_prompts, n_tool_calls FROM sessions ORDER BY ALL"


class Situation(NamedTuple):
    source: str
    files: dict[str, Any]
    """A file's text or bytes, or a value that is written as JSON."""
    right: list[tuple[Any, ...]]
    asked: str = OUTCOMES
    told: str = ""
    """A word that the summary has to say of what is not read."""


def prediction(task: str, patch: str = PATCH, model: str = "acme/coder-1") -> dict[str, Any]:
    return {"instance_id": task, "model_name_or_path": model, "model_patch": patch}


def terminal(task: str, resolved: bool | None, failure: str, **more: Any) -> dict[str, Any]:
    """A trial's result of Terminal-Bench before Harbor."""
    known = {"trial_name": f"{task}.1-of-1.r", "task_id": task, "instruction": "Do it.", "is_resolved": resolved}
    return {"id": f"{zlib.crc32(task.encode()):036x}", **known, "failure_mode": failure, "parser_results": None, **more}


def final_report(**ids: list[str]) -> dict[str, Any]:
    """A report in which each list of ids has its count, and lists that are not named are empty."""
    names = ("submitted", "completed", "incomplete", "resolved", "unresolved", "empty_patch", "error")
    lists = {name: ids.get(name, []) for name in names}
    counts = {f"{name}_instances": len(listed) for name, listed in lists.items()}
    return {"total_instances": 10, **counts, **{f"{name}_ids": listed for name, listed in lists.items()}}


def spoken(source: str, text: str, n: int) -> dict[str, Any]:
    """A message in the events of OpenHands' SDK."""
    role = "user" if source == "user" else "assistant"
    said = {"role": role, "content": [{"type": "text", "text": text}]}
    made = {"id": f"e{n}", "timestamp": f"2026-03-01T10:00:0{n}", "source": source, "llm_message": said}
    return {**made, "kind": "MessageEvent"}


def acted(n: int, command: str) -> list[dict[str, Any]]:
    """A command and its observation in the events of OpenHands' SDK."""
    asks = {"id": f"e{n}", "timestamp": f"2026-03-01T10:00:0{n}", "source": "agent", "thought": [],
            "action": {"command": command, "kind": "TerminalAction"}, "tool_name": "terminal", "tool_call_id": f"c{n}",
            "tool_call": {"id": f"c{n}", "name": "terminal", "arguments": json.dumps({"command": command}),
                          "origin": "completion"}, "llm_response_id": f"r{n}", "kind": "ActionEvent"}  # fmt: skip
    seen = {"content": [{"type": "text", "text": "a.py"}], "exit_code": 0, "kind": "TerminalObservation"}
    answers = {"id": f"o{n}", "timestamp": f"2026-03-01T10:00:0{n + 1}", "source": "environment", "observation": seen}
    answers |= {"tool_name": "terminal", "tool_call_id": f"c{n}", "action_id": f"e{n}", "kind": "ObservationEvent"}
    return [asks, answers]


def evaluated(task: str, attempt: int = 1, error: str | None = None, cost: float = 0.5) -> dict[str, Any]:
    """A line of `output.jsonl` of OpenHands' benchmarks (EvalOutput)."""
    history = [] if error else [spoken("user", f"Fix {task}.", 0), *acted(1, "ls"), spoken("agent", "Done.", 3)]
    usage = {"model": "acme/coder-1", "prompt_tokens": 1000, "completion_tokens": 50, "cache_read_tokens": 400}
    metrics = {"model_name": "acme/coder-1", "accumulated_cost": cost, "accumulated_token_usage": usage}
    return {"instance_id": task, "attempt": attempt, "test_result": {"git_patch": "" if error else PATCH},
            "instruction": f"Fix {task}.", "metadata": None, "history": history, "metrics": metrics, "error": error,
            "instance": {"repo": "acme/shop"}}  # fmt: skip


META = {"llm": {"model": "acme/coder-1"}, "dataset": "acme/set", "dataset_split": "test", "max_iterations": 100,
        "n_critic_runs": 3, "max_retries": 3}  # fmt: skip
ONE, TWO, THREE = "acme__shop-1", "acme__shop-2", "acme__shop-3"
UNREAD_TRIAL = {"task_name": "t", "trial_name": "t__1", "task_checksum": "0", "exception_info": None}
EDITED = {"value": "C", "history": [{"value": "I", "provenance": None}, {"value": "C", "provenance": {"author": "kim",
          "timestamp": "2026-03-01T10:00:00Z", "reason": "the grader misread it"}}]}  # fmt: skip

HARNESSES = {
    "an agent's time-out with a passed test is solved": Situation(
        "laude-institute/terminal-bench-leaderboard#8",
        {"run/a/results.json": terminal("a", True, "agent_timeout"),
         "run/b/results.json": terminal("b", False, "unset")},
        [("a", "solved"), ("b", "failed")],
    ),
    "a test that timed out judged nothing": Situation(
        "laude-institute/terminal-bench-leaderboard#16",
        {"run/a/results.json": terminal("a", None, "test_timeout"),
         "run/b/results.json": terminal("b", True, "unset")},
        [("a", "not_judged"), ("b", "solved")],
    ),
    "ids of a multi-language fork": Situation(
        "multi_swe_bench 1.1.2 harness/report.py FinalReport; OpenHands/benchmarks#152",
        {"eval_files/dataset/final_report.json": final_report(
            submitted=["acme/shop:pr-1", "acme/shop:pr-2", "acme/shop:pr-3", "acme/shop:pr-4"],
            completed=["acme/shop:pr-1", "acme/shop:pr-2"], resolved=["acme/shop:pr-1"],
            unresolved=["acme/shop:pr-2"], empty_patch=["acme/shop:pr-3"], error=["acme/shop:pr-4"])},
        [("acme/shop:pr-1", "solved"), ("acme/shop:pr-2", "failed"), ("acme/shop:pr-3", "failed"),
         ("acme/shop:pr-4", "not_judged")],
    ),
    "an evaluation's output is its sessions": Situation(
        "OpenHands/benchmarks utils/models.py EvalOutput, PR#67",
        {"run/metadata.json": META, "run/output.jsonl": as_lines([evaluated(ONE), evaluated(TWO, error="no runtime")]),
         "run/output.report.json": final_report(submitted=[ONE, TWO], completed=[ONE], resolved=[ONE], error=[TWO])},
        [(ONE, "acme/coder-1", "solved", 1, 0.5), (TWO, "acme/coder-1", "not_judged", 0, 0.5)],
        "SELECT task_id, model_id, outcome, coalesce(n_tool_calls, 0),"
        " json_extract(facts, '$.cost_usd')::DOUBLE FROM attempts"
        " LEFT JOIN sessions USING (session_id) ORDER BY ALL",
    ),
    "the round that a critic took is the attempt": Situation(
        "OpenHands/benchmarks utils/iterative.py aggregate_results; #632",
        {"run/metadata.json": META, "run/output.jsonl": as_lines([evaluated(ONE, 2, cost=0.7)]),
         "run/output.critic_attempt_1.jsonl": as_lines([evaluated(ONE, 1, "it broke", cost=0.2)]),
         "run/output.critic_attempt_2.jsonl": as_lines([evaluated(ONE, 2, cost=0.7)]),
         "run/output.report.json": final_report(submitted=[ONE], completed=[ONE], resolved=[ONE])},
        [(ONE, "solved", 0.7)],
        "SELECT task_id, outcome, json_extract(facts, '$.cost_usd')::DOUBLE FROM attempts"
        " WHERE outcome = 'solved' ORDER BY ALL",
    ),
    "exit statuses of a batch are the environment's": Situation(
        "SWE-agent/SWE-agent PR#1334",
        {"run/preds.json": {ONE: prediction(ONE), TWO: prediction(TWO, "")},
         "run/run_batch_exit_statuses.yaml":
             f"instances_by_exit_status:\n  Uncaught DockerPullError:\n  - {TWO}\n  submitted:\n  - {ONE}\n",
         "run/acme__coder-1.run.json": final_report(
             submitted=[ONE, TWO], completed=[ONE], resolved=[ONE], empty_patch=[TWO])},
        [(ONE, "solved"), (TWO, "infrastructure")],
    ),
    "a report of the service that was saved twice": Situation(
        "sb_cli 0.1.5 get_report.py safe_save_json; SWE-bench/sb-cli#20",
        {f"sb-cli-reports/swe-bench_verified__test__nightly{again}.json": {
            **final_report(submitted=[ONE, TWO, THREE], completed=[ONE, TWO], resolved=[ONE], unresolved=[TWO]),
            "pending_instances": 1, "failed_instances": 0, "pending_ids": [THREE], "failed_ids": []}
         for again in ("", "-1")},
        [(ONE, "solved", "nightly"), (TWO, "failed", "nightly"), (THREE, "not_judged", "nightly")],
        "SELECT task_id, outcome, run_id FROM attempts ORDER BY ALL",
    ),
    "a set of evals that was taken up again keeps finished samples": Situation(
        "UKGovernmentBEIS/inspect_ai#913, #5296",
        {"logs/1.eval": archive(sample(1, uuid="u1", scores={"m": {"value": "C"}}), head=header("error", run_id="R1")),
         "logs/2.eval": archive(sample(1, uuid="u1", scores={"m": {"value": "C"}}),
                                sample(2, uuid="u2", scores={"m": {"value": "I"}}), head=header(run_id="R2"))},
        [("acme/mend/1", "solved"), ("acme/mend/2", "failed")],
    ),
    "a score that a person corrected": Situation(
        "inspect_ai 0.3.285 scorer/_metric.py ScoreEdit",
        {"logs/1.eval": archive(sample(1, scores={"m": EDITED}), sample(2, scores={"m": {"value": "I"}}),
                                head=header())},
        [("acme/mend/1", "solved"), ("acme/mend/2", "failed")],
    ),
    "a trial whose verifier was off": Situation(
        "harbor 0.26.0 models/trial/config.py VerifierConfig.disable",
        {"job/t__1/result.json": {**UNREAD_TRIAL, "verifier_result": None, "config": {"verifier": {"disable": True}}},
         "job/u__1/result.json": {**UNREAD_TRIAL, "task_name": "u", "trial_name": "u__1", "config": {},
                                  "verifier_result": {"rewards": {"correct": 1.0}}}},
        [("t", "not_judged"), ("u", "solved")],
    ),
    "of two predictions the harness takes the last": Situation(
        "swebench 5.0.2 harness/utils.py get_predictions_from_file",
        {"run/preds.jsonl": as_lines([prediction(ONE, PATCH.replace("x", "old")), prediction(ONE, PATCH),
                                      prediction(TWO)]),
         "run/report.json": final_report(submitted=[ONE, TWO], completed=[ONE, TWO], resolved=[ONE], unresolved=[TWO])},
        [(ONE, "solved", '["x"]'), (TWO, "failed", '["x"]')],
        "SELECT task_id, outcome, json_extract(facts, '$.patch[*].path')::VARCHAR FROM attempts ORDER BY ALL",
    ),
    "a report that counts no submissions": Situation(
        "OpenHands/benchmarks PR#209, PR#215 (SWT-Bench)",
        {"run/output.report.json": {name: value for name, value in final_report(
            completed=[ONE, TWO], resolved=[ONE], unresolved=[TWO], error=[THREE]).items()
            if name.split("_")[0] not in ("submitted", "empty", "incomplete")}, "run/metadata.json": META},
        [(ONE, "solved"), (TWO, "failed"), (THREE, "not_judged")],
    ),
}  # fmt: skip


def graded(tests: str, style: float, sample_id: int) -> dict[str, Any]:
    return sample(sample_id, scores={"style": {"value": style}, "tests": {"value": tests}})


def retried(chosen: int | None, *costs: float) -> dict[str, Any]:
    """A trajectory of a run of SWE-agent that retries, of which one attempt was chosen."""
    step = {"action": "ls", "observation": "a.py", "response": "x", "thought": "x", "state": {"working_dir": "/r"}}
    told = [{"model_stats": {"instance_cost": c}, "exit_status": "submitted", "submission": PATCH} for c in costs]
    info = {**told[0], "best_attempt_idx": chosen, "rloop_model_stats": {"instance_cost": 0.25}}
    attempts = [{"trajectory": [step], "history": [], "info": one} for one in told]
    return {"attempts": attempts, **attempts[0], "info": info, "environment": ONE}


INVALID = {"timestamp": "2026-03-01T10:00:00Z", "author": "kim", "reason": "leaked"}
VERDICT = {ONE: {"patch_successfully_applied": True, "resolved": True}}
OF_TRIES = ("SELECT attempt_index, outcome, json_extract(facts, '$.other_cost_usd')::DOUBLE FROM attempts"
            " ORDER BY attempt_index")  # fmt: skip
SIBLINGS = {
    "one epoch is invalidated": Situation(
        "inspect_ai PR#2913",
        {"a.eval": archive(sample(1, 1, scores={"m": {"value": "C"}}, invalidation=INVALID),
                           sample(1, 2, scores={"m": {"value": "C"}}), head=header())},
        [("acme/mend/1", "not_judged"), ("acme/mend/1", "solved")],
    ),
    "an invalidation that was taken back": Situation(
        "inspect_ai PR#2913",
        {"a.eval": archive(sample(1, scores={"m": {"value": "I"}}, invalidation=None), head=header())},
        [("acme/mend/1", "failed")],
    ),
    "the headline is not the first scorer": Situation(
        "inspect_ai PR#5053",
        {"a.eval": archive(graded("C", 0.1, 1), graded("I", 0.9, 2),
                           head=header(headline_metric={"scorer": "tests", "score": "tests", "metric": "accuracy"}))},
        [("acme/mend/1", "solved"), ("acme/mend/2", "failed")],
    ),
    "results alone name the headline": Situation(
        "inspect_ai PR#5053",
        {"a.eval": archive(graded("C", 0.1, 1), graded("I", 0.9, 2), head={
            **header(), "results": {"headline": {"scorer": "tests", "score": "tests", "metric": "accuracy"}}})},
        [("acme/mend/1", "solved"), ("acme/mend/2", "failed")],
    ),
    "the second of three attempts was chosen": Situation(
        "SWE-agent/SWE-agent#1485",
        {f"run/{ONE}/{ONE}.traj": retried(1, 1.0, 2.0, 3.0), f"run/{ONE}/report.json": VERDICT},
        [(0, "not_judged", None), (1, "solved", 0.25), (2, "not_judged", None)], OF_TRIES,
    ),
    "no attempt is said to be chosen": Situation(
        "SWE-agent/SWE-agent#1485",
        {f"run/{ONE}/{ONE}.traj": retried(None, 1.0, 2.0), f"run/{ONE}/report.json": VERDICT},
        [(0, "not_judged", None), (1, "solved", None)], OF_TRIES,
    ),
}  # fmt: skip


def numbered(n: int, **more: Any) -> dict[str, Any]:
    return {"trajectory_id": f"trajectory-{n}", "messages": chat(f"task {n}"), **more}


TRIED = [{"id": f"swebench__DeepSeek-R1__t{t}__pass{n}", "benchmark": "swebench", "task_id": f"t{t}", "pass": n,
          "source_model": "DeepSeek-R1", "messages": json.dumps(chat(f"t{t} {n}")), "num_turns": 7,
          "reward": float(t == n)} for t in (1, 2) for n in (1, 2)]  # fmt: skip
ACTS = [{"tool": "bash", "action": "ls", "observation": "a.py", "exit_code": 0},
        {"tool": "bash", "action": "make", "observation": "no rule", "exit_code": 2}]  # fmt: skip
FACTORY = [{"from": "human", "value": "What is in it?"},
           {"from": "function_call", "value": json.dumps({"name": "bash", "arguments": {"command": "ls"}})},
           {"from": "observation", "value": "a.py"}, {"from": "gpt", "value": "One file."}]  # fmt: skip
TOKENS = {"trajectory_id": ["trajectory-1"], "reward": [1.0], "chat_template_applied": ["<|im_start|>user"],
          "input_ids": [[1, 2, 3]], "labels": [[-100, 2, 3]]}  # fmt: skip
CARD = """---
license: mit
configs:
- config_name: trajectories
  data_files:
  - split: SWE_Rebench
    path: trajectories/SWE_Rebench-*
  - split: filtered_reward1
    path:
    - "trajectories/filtered_reward1-*"
- config_name: manual
  data_files: more/*.parquet
---
# Trajectories
"""


def times(n: int) -> list[dict[str, Any]]:
    return [{**message, "timestamp": 1_772_359_200 + 60 * n + k} for k, message in enumerate(chat(f"task {n}"))]


def zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)  # type: ignore[no-any-return]


DATA_SETS = {
    "the number of a try is called pass": Situation(
        "card of cx-cmu/agent_trajectories",
        {"data/train.parquet": as_parquet(TRIED)},
        [(f"t{t}", "DeepSeek-R1", "solved" if t == n else "failed", str(n)) for t in (1, 2) for n in (1, 2)],
        "SELECT task_id, model_id, outcome, json_extract_string(facts, '$.knobs.repeat') FROM attempts ORDER BY ALL",
    ),
    "tokens of conversations beside the conversations": Situation(
        "card of togethercomputer/CoderForge-Preview (trajectories-tokenized_qwencoder)",
        {"trajectories/train.parquet": as_parquet([numbered(1, reward=1.0)]),
         "tokenized/train.parquet": pa.table(TOKENS)},
        [("trajectory-1", 1, 2)], CALLS, "input_ids",
    ),
    "configurations of a card": Situation(
        "card of togethercomputer/CoderForge-Preview (configs)",
        {"README.md": CARD, "trajectories/SWE_Rebench-00000-of-00002.parquet": as_parquet([numbered(1)]),
         "trajectories/filtered_reward1-00000-of-00001.parquet": as_parquet([numbered(2)]),
         "more/a.parquet": as_parquet([numbered(3)])},
        [("manual", None), ("trajectories", "SWE_Rebench"), ("trajectories", "filtered_reward1")],
        "SELECT config, split FROM artifacts WHERE path LIKE '%.parquet' ORDER BY ALL",
    ),
    "what the Hub converts to Parquet": Situation(
        "refs/convert/parquet of ricdomolm/mini-coder-trajs-400k",
        {"default/train/0000.parquet": as_parquet([numbered(1)]),
         "default/train/0001.parquet": as_parquet([numbered(2)])},
        [("default", "train"), ("default", "train")],
        "SELECT config, split FROM artifacts ORDER BY ALL",
    ),
    "steps that are tools and what they gave": Situation(
        "card of gss1147/OpenToolTrace-X",
        {"data/train.jsonl": as_lines([{"task_id": f"t{n}", "domain": "bash", "prompt": "List.", "trajectory": ACTS,
                                        "final_state": {}, "verification": {"exit_code": 0}} for n in (1, 2)])},
        [(None, 1, 2), (None, 1, 2)],
        "SELECT NULL, n_prompts, n_tool_calls FROM sessions",
    ),
    "calls and observations as speakers": Situation(
        "hiyouga/LlamaFactory#5866 and data/README.md",
        {"train.json": [{"conversations": FACTORY, "tools": "[]", "system": "You list."}] * 2},
        [(1, 1)], "SELECT n_prompts, n_tool_calls FROM sessions",
    ),
    "arguments as one struct of all tools": Situation(
        "SWE-bench/SWE-smith card (Parquet of tool_calls)",
        {"train.parquet": as_parquet([{"trajectory_id": "trajectory-1", "messages": [
            {"role": "user", "content": "Go.", "tool_calls": None},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "1", "function": {"name": "bash", "arguments": {"command": "ls", "path": None}}},
                {"id": "2", "function": {"name": "view", "arguments": {"command": None, "path": "a.py"}}}]}]}])},
        [("bash", '{"command": "ls"}'), ("view", '{"path": "a.py"}')],
        "SELECT name, arguments FROM tool_calls ORDER BY ALL",
    ),
    "Zstandard": Situation(
        "huggingface/datasets docs (compressed files)",
        {"train.jsonl.zst": zstd(as_lines([numbered(1), numbered(2)]))},
        [("trajectory-1", 1, 2), ("trajectory-2", 1, 2)], CALLS,
    ),
    "rows in a field": Situation(
        "huggingface/datasets docs (load_dataset('json', field='data'))",
        {"train.json": {"version": "0.1.0", "data": [numbered(1), numbered(2)]}},
        [("trajectory-1", 1, 2), ("trajectory-2", 1, 2)], CALLS,
    ),
    "two columns of conversations, of which each row has one": Situation(
        "nebius and SWE-Gym rows merged by concatenate_datasets (huggingface/datasets docs)",
        {"train.parquet": as_parquet([{**numbered(1), "trajectory": None},
                                      {**numbered(2), "messages": None, "trajectory": chat("task 2")}])},
        [("trajectory-1", 1, 2), ("trajectory-2", 1, 2)], CALLS,
    ),
    "times in seconds since 1970": Situation(
        "DataClaw and WildChat cards (timestamp as int64)",
        {"train.parquet": as_parquet([{"trajectory_id": "trajectory-1", "messages": times(1)}])},
        [(1_772_359_260, 1_772_359_266)],
        "SELECT epoch(started_at)::BIGINT, epoch(ended_at)::BIGINT FROM sessions",
    ),
    "conversations as Python writes them": Situation(
        "huggingface/datasets#4101 and pandas' to_csv",
        {"train.csv": "trajectory_id,messages\n" + "".join(
            f'trajectory-{n},"' + repr(chat("task").copy()).replace('"', '""') + '"\n' for n in (1, 2))},
        [("trajectory-1", 1, 2), ("trajectory-2", 1, 2)], CALLS,
    ),
}  # fmt: skip


def dated(n: int, day: int) -> list[dict[str, Any]]:
    at = datetime.datetime(2026, 3, day, 10, tzinfo=datetime.UTC)
    said = [("user", f"Say {n}."), ("assistant", f"{n}"), ("user", "Again."), ("assistant", f"{n}, again")]
    return [{"role": role, "content": text, "timestamp": at + datetime.timedelta(minutes=k) if role == "user" else None}
            for k, (role, text) in enumerate(said)]  # fmt: skip


def in_parts(task: str) -> list[dict[str, Any]]:
    parts = ({**m, "content": [{"type": "text", "text": m["content"]}]} for m in chat(task))
    return list(parts)


def mini(task: str, status: str, patch: str) -> dict[str, Any]:
    """A trajectory of mini-SWE-agent 1."""
    said = [("system", "You act in bash."), ("user", f"Fix {task}."),
            ("assistant", "I look.\n\n```bash\nls\n```"),
            ("user", "<returncode>0</returncode>\n<output>\na.py\n</output>"),
            ("assistant", "I submit.\n\n```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```")]  # fmt: skip
    info = {"model_stats": {"instance_cost": 0.1, "api_calls": 2}, "mini_version": "1.17.4", "exit_status": status,
            "submission": patch, "config": {"model": {"model_name": "acme/coder-1"}}}  # fmt: skip
    messages = [{"role": role, "content": text} for role, text in said]
    return {"info": info, "messages": messages, "trajectory_format": "mini-swe-agent-1", "instance_id": task}


def old_output(task: str, report: dict[str, bool] | None, in_pairs: bool = False) -> dict[str, Any]:
    """A line of OpenHands' own evaluation, with the verdict that `eval_infer.sh` adds."""
    result: dict[str, Any] = {"git_patch": PATCH}
    if report is not None:
        verdicts = ("empty_generation", "failed_apply_patch", "error_eval", "test_timeout", "resolved")
        result["report"] = dict.fromkeys(verdicts, False) | report
    said = {
        "id": 0,
        "timestamp": "2026-03-01T10:00:00",
        "source": "user",
        "message": f"Fix {task}.",
        "action": "message",
        "args": {"content": f"Fix {task}.", "image_urls": None, "wait_for_response": False},
    }
    ran = {"id": 1, "timestamp": "2026-03-01T10:00:01", "source": "agent", "message": "Running", "action": "run",
           "args": {"command": "ls", "thought": ""}}  # fmt: skip
    gave = {
        "id": 2,
        "timestamp": "2026-03-01T10:00:02",
        "source": "agent",
        "message": "ran",
        "cause": 1,
        "observation": "run",
        "content": "a.py",
        "extras": {"command": "ls", "metadata": {"exit_code": 0}},
    }
    about = {"agent_class": "CodeActAgent", "llm_config": {"model": "acme/coder-1"}, "max_iterations": 100,
             "eval_output_dir": "out", "dataset": "swe-bench", "data_split": "test", "details": {}}  # fmt: skip
    return {"instance_id": task, "test_result": result, "instruction": f"Fix {task}.", "metadata": about,
            "history": [[said, {"id": 9, "observation": "null", "content": ""}], [ran, gave]] if in_pairs else
            [said, ran, gave], "metrics": {"accumulated_cost": 0.5}, "error": None, "instance": {}}  # fmt: skip


def by_python_call(n: int) -> list[dict[str, Any]]:
    said = [("system", "You call functions."), ("user", "What is in it?"), ("assistant", ""),
            ("environment", '["a.py"]'), ("assistant", "One file.")]  # fmt: skip
    more: dict[int, dict[str, str]] = {0: {"functions": '[{"name": "list_files", "parameters": {}}]'},
                                       2: {"function_calls": f'list_files(path="{n}", deep=True)'}}  # fmt: skip
    return [{"role": role, "content": text, "functions": None, "function_calls": None, **more.get(at, {})}
            for at, (role, text) in enumerate(said)]  # fmt: skip


BY_FUNCTION = [
    {"role": "system", "content": "You use tools."}, {"role": "user", "content": "What is in it?"},
    {"role": "assistant", "content": "", "function_call": {"name": "fs-list", "arguments": '{"path": "."}'}},
    {"role": "function", "name": "fs-list", "content": "a.py"}, {"role": "assistant", "content": "One file."},
]  # fmt: skip
UUID = "0f3c1c1e-1111-5222-8333-44445555666{}"
OF_TRIALS = "SELECT task_id, outcome, coalesce(n_tool_calls, 0) FROM attempts LEFT JOIN sessions USING (session_id)"
AGAIN_HARNESSES = {
    "a sample that was tried again after an error": Situation(
        "inspect_ai 0.3.285 log/_log.py EvalSample.error_retries, EvalSampleLimit",
        {"a.eval": archive(
            sample(1, scores={"m": {"value": "C"}},
                   error_retries=[{"message": "timeout", "traceback": "t", "traceback_ansi": "t"}]),
            sample(2, scores={"m": {"value": "I"}}, limit={"type": "token", "limit": 1000}), head=header())},
        [("acme/mend/1", "solved"), ("acme/mend/2", "failed")],
    ),
    "a job's own result beside its trials": Situation(
        "harbor 0.26.0 models/job/result.py JobResult, models/trial/result.py ExceptionInfo",
        {"job/result.json": {"id": "5b0d4f6e-0000-4000-8000-000000000000", "started_at": "2026-03-01T10:00:00",
                             "finished_at": "2026-03-01T11:00:00", "n_total_trials": 2,
                             "stats": {"n_trials": 2, "n_errors": 1, "evals": {}}},
         "job/t__1/result.json": {**UNREAD_TRIAL, "config": {}, "verifier_result": {"rewards": {"reward": 1.0}},
                                  "exception_info": {"exception_type": "AgentTimeoutError", "exception_message": "late",
                                                     "exception_traceback": "", "occurred_at": "2026-03-01T10:30:00"}},
         "job/u__1/result.json": {**UNREAD_TRIAL, "task_name": "u", "trial_name": "u__1", "config": {},
                                  "verifier_result": None,
                                  "exception_info": {"exception_type": "EnvironmentStartTimeoutError",
                                                     "exception_message": "no room", "exception_traceback": "",
                                                     "occurred_at": "2026-03-01T10:30:00"}}},
        [("t", "solved"), ("u", "infrastructure")],
    ),
    "a submission to the leaderboard's repository": Situation(
        "SWE-bench/experiments README (evaluation/verified/…: all_preds.jsonl, results/results.json, logs)",
        {"20260301_acme/all_preds.jsonl": as_lines([prediction(ONE), prediction(TWO), prediction(THREE, "")]),
         "20260301_acme/results/results.json": {"no_generation": [THREE], "no_logs": [], "resolved": [ONE]},
         f"20260301_acme/logs/{ONE}/report.json": {ONE: {"patch_is_None": False, "patch_exists": True,
                                                         "patch_successfully_applied": True, "resolved": True}},
         f"20260301_acme/logs/{TWO}/report.json": {TWO: {"patch_is_None": False, "patch_exists": True,
                                                         "patch_successfully_applied": True, "resolved": False}}},
        [(ONE, "solved"), (TWO, "failed"), (THREE, "failed")],
    ),
    "a batch of which one trial ran into its limit": Situation(
        "mini-swe-agent 1.17.4 run/extra/swebench.py, agents/default.py LimitsExceeded",
        {"run/preds.json": {ONE: prediction(ONE), TWO: prediction(TWO, "")},
         f"run/{ONE}/{ONE}.traj.json": mini(ONE, "Submitted", PATCH),
         f"run/{TWO}/{TWO}.traj.json": mini(TWO, "LimitsExceeded", ""),
         "run/acme__coder-1.run.json": final_report(
             submitted=[ONE, TWO], completed=[ONE], resolved=[ONE], empty_patch=[TWO])},
        [(ONE, "solved", 2), (TWO, "failed", 2)], OF_TRIALS,
    ),
    "an output and its copy with verdicts": Situation(
        "OpenHands evaluation/benchmarks/swe_bench/eval_infer.py (output.swebench_eval.jsonl)",
        {"run/output.jsonl": as_lines([old_output(ONE, None), old_output(TWO, None)]),
         "run/output.swebench_eval.jsonl": as_lines([old_output(ONE, {"resolved": True}), old_output(TWO, {})])},
        [(ONE, "solved", 1), (TWO, "failed", 1)], OF_TRIALS,
    ),
    "two tries of a task and the run's table": Situation(
        "terminal-bench 0.2.18 harness/models.py BenchmarkResults (n_attempts)",
        {**{f"run/t/t.{n}-of-2.r/results.json": {**terminal("t", n == 1, "unset"), "trial_name": f"t.{n}-of-2.r",
                                                "id": f"{n:036x}"} for n in (1, 2)},
         "run/results.json": {"id": "r", "n_resolved": 1, "n_unresolved": 1, "accuracy": 0.5, "resolved_ids": ["t"],
                              "unresolved_ids": ["t"], "pass_at_k": {"2": 1.0}, "results": [
                                  {**terminal("t", n == 1, "unset"), "trial_name": f"t.{n}-of-2.r", "id": f"{n:036x}"}
                                  for n in (1, 2)]}},
        [("t", "failed"), ("t", "solved")],
    ),
}  # fmt: skip
AGAIN_SIBLINGS = {
    "actions and observations in pairs": Situation(
        "OpenHands before 0.20 (evaluation/utils/shared.py EvalOutput.history)",
        {"run/output.swebench_eval.jsonl": as_lines([old_output(ONE, {"resolved": True}, in_pairs=True),
                                                     old_output(TWO, {"error_eval": True}, in_pairs=True)])},
        [(ONE, "solved", 1), (TWO, "not_judged", 1)], OF_TRIALS,
    ),
    "calls as Python writes them, in a list": Situation(
        "the pythonic form of Llama 4 and BFCL",
        {"train.jsonl": as_lines([{"id": f"use-{n}-of-tools", "source": "made", "messages": [
            {"role": "user", "content": "What is in it?"},
            {"role": "assistant", "content": "", "function_calls": "[fs.list(path='.'), fs.read('a.py')]"},
            {"role": "environment", "content": "a.py"}, {"role": "assistant", "content": "One."}]} for n in (1, 2)])},
        [("fs.list", '{"path": "."}'), ("fs.read", '{"0": "a.py"}')] * 2, "SELECT name, arguments FROM tool_calls",
    ),
}  # fmt: skip
AGAIN_DATA_SETS = {
    "splits on a disk, in several files, with a row of nulls": Situation(
        "huggingface/datasets docs (DatasetDict.save_to_disk, num_shards)",
        {"dataset_dict.json": {"splits": ["train", "test"]},
         "train/dataset_info.json": {"features": {}, "splits": {"train": {"name": "train", "num_examples": 3}}},
         "train/state.json": {"_data_files": [{"filename": f"data-0000{n}-of-00002.arrow"} for n in (0, 1)]},
         "train/data-00000-of-00002.arrow": as_arrow([numbered(1), {"trajectory_id": None, "messages": None}]),
         "train/data-00001-of-00002.arrow": as_arrow([numbered(2)]),
         "test/data-00000-of-00001.arrow": as_arrow([numbered(3)])},
        [("trajectory-1", "train", 2), ("trajectory-2", "train", 2), ("trajectory-3", "test", 2)],
        "SELECT session_id, split, n_tool_calls FROM sessions JOIN artifacts USING (artifact_id)",
    ),
    "a verdict that is a number, in a column of trajectories": Situation(
        "card of nebius/SWE-rebench-openhands-trajectories (resolved: int64, exit_status)",
        {"trajectories.parquet": as_parquet([
            {"trajectory_id": f"{task}_{n}", "instance_id": task, "repo": "acme/shop", "trajectory": chat(task),
             "tools": [{"type": "function", "function": {"name": "bash", "description": "d"}}], "model_patch": PATCH,
             "exit_status": "submit", "resolved": n, "gen_tests_correct": None, "pred_passes_gen_tests": 1 - n}
            for n, task in enumerate((TWO, ONE))])},
        [(ONE, "solved", 2), (TWO, "failed", 2)], OF_TRIALS,
    ),
    "calls as Python writes them, in a field of their own": Situation(
        "card of ai2-adapt-dev/interactive_tool_use_gpt4o (function_calls, functions, environment)",
        {"data/train-00000-of-00001.parquet": as_parquet([
            {"id": f"use-{n}-of-tools", "messages": by_python_call(n), "source": "made", "n_turn": "single"}
            for n in (1, 2)])},
        [(1, "list_files", '{"path": "1", "deep": true}', '["a.py"]'),
         (1, "list_files", '{"path": "2", "deep": true}', '["a.py"]')],
        "SELECT n_prompts, name, arguments, (SELECT max(text) FROM events WHERE events.session_id = t.session_id"
        " AND kind = 'tool_result') FROM tool_calls AS t JOIN sessions USING (session_id)",
    ),
    "a function's answer under the role function": Situation(
        "card of Agent-Ark/Toucan-1.5M (messages as text; assessments are of the question)",
        {"SFT/train-00000-of-00001.parquet": as_parquet([
            {"uuid": UUID.format(n), "subset_name": "single-turn-original", "messages": json.dumps(BY_FUNCTION),
             "question": "What is in it?", "available_tools": "[]", "target_tools": "fs-list",
             "question_quality_assessment": json.dumps({"overall_score": 4.5}), "metadata": "{}"} for n in (1, 2)])},
        [(UUID.format(1), 1, 1, "product"), (UUID.format(2), 1, 1, "product")],
        "SELECT session_id, n_prompts, n_tool_calls, context FROM sessions",
    ),
    "trajectories that were loaded as rows": Situation(
        "mini-swe-agent 1.17.4 .traj.json through load_dataset('json') and to_parquet",
        {"train.parquet": as_parquet([mini(ONE, "Submitted", PATCH), mini(TWO, "LimitsExceeded", "")])},
        [(ONE, 1, 2), (TWO, 1, 2)],
        "SELECT task_id, n_prompts, n_tool_calls FROM attempts JOIN sessions USING (session_id)",
    ),
    "verdicts as words beside contents in parts, compressed": Situation(
        "pandas to_csv(compression='gzip') of SWE-bench/SWE-smith-trajectories rows",
        {"train.csv.gz": gzip.compress(as_csv([
            {"traj_id": f"{task}.tryout", "instance_id": task, "messages": in_parts(task), "resolved": word}
            for task, word in ((ONE, "True"), (TWO, "False"))]))},
        [(ONE, "solved", 2), (TWO, "failed", 2)], OF_TRIALS,
    ),
    "typed times on the person's messages alone": Situation(
        "card of allenai/WildChat-4.8M (conversation: timestamp[us, tz], null on answers)",
        {"data/train-00000-of-00001.parquet": as_parquet([
            {"conversation_hash": f"{n:032x}", "model": "gpt-4o-2024-08-06", "timestamp": dated(n, n)[2]["timestamp"],
             "conversation": dated(n, n), "turn": 2, "language": "English"} for n in (1, 2)])},
        [(2, "gpt-4o-2024-08-06", "2026-03-01 10:00"), (2, "gpt-4o-2024-08-06", "2026-03-02 10:00")],
        "SELECT n_prompts, model, strftime(started_at, '%Y-%m-%d %H:%M') FROM sessions",
    ),
}  # fmt: skip


ZEROS = {"accumulated_cost": 0, "max_budget_per_task": None, "costs": [], "response_latencies": [], "token_usages": [],
         "accumulated_token_usage": {"model": "default", "prompt_tokens": 0, "completion_tokens": 0,
                                     "cache_read_tokens": 0, "cache_write_tokens": 0}}  # fmt: skip
COSTS = "SELECT task_id, outcome, json_extract(facts, '$.cost_usd')::DOUBLE FROM attempts"
CANCELLED = {"exception_type": "CancelledError", "exception_message": "", "exception_traceback": "",
             "occurred_at": "2026-03-01T10:30:00"}  # fmt: skip
THIRD_HARNESSES = {
    "metrics that nobody filled are no cost of zero": Situation(
        "OpenHands/OpenHands#10534, #12948",
        {"run/metadata.json": META, "run/output.jsonl": as_lines([
            {**evaluated(ONE), "metrics": ZEROS}, evaluated(TWO)])},
        [(ONE, "not_judged", None), (TWO, "not_judged", 0.5)], COSTS,
    ),
    "a task that the aggregation dropped": Situation(
        "OpenHands/benchmarks#297",
        {"run/metadata.json": META, "run/output.jsonl": as_lines([evaluated(TWO)]),
         "run/output.critic_attempt_1.jsonl": as_lines([evaluated(ONE), evaluated(TWO)]),
         "run/output.critic_attempt_2.jsonl": as_lines([evaluated(ONE, 2, "no pod")]),
         "run/output.report.json": final_report(submitted=[TWO], completed=[TWO], resolved=[TWO])},
        [(ONE, "not_judged"), (TWO, "solved")], "SELECT DISTINCT task_id, outcome FROM attempts",
    ),
    "a service's report that counts and names nobody": Situation(
        "SWE-bench/sb-cli#27",
        {"sb-cli-reports/swe-bench_lite__test__v3.json": {
            "total_instances": 300, "submitted_instances": 300, "completed_instances": 0, "failed_instances": 300,
            "resolved_instances": 0, "schema_version": 2},
         "preds.json": [prediction(ONE)]},
        [(ONE, "not_judged")],
    ),
    "a report of lists that are all empty": Situation(
        "OpenHands/benchmarks#152",
        {"eval_files/dataset/final_report.json": {**final_report(), "total_instances": 0},
         "output.jsonl": as_lines([evaluated(ONE)])},
        [(ONE, "not_judged")],
    ),
    "a sample that broke and was scored all the same": Situation(
        "UKGovernmentBEIS/inspect_ai#4412, PR#4485 (score_on_error)",
        {"a.eval": archive(
            sample(1, scores={"m": {"value": "C"}}),
            sample(2, scores={"m": {"value": "I"}}, error={"message": "down", "traceback": "t", "traceback_ansi": "t"}),
            sample(3, scores={}, error={"message": "down", "traceback": "t", "traceback_ansi": "t"}),
            head=header(config={"score_on_error": True}))},
        [("acme/mend/1", "solved"), ("acme/mend/2", "failed"), ("acme/mend/3", "infrastructure")],
    ),
    "a log that was never scored": Situation(
        "UKGovernmentBEIS/inspect_ai PR#1293 (--no-score)",
        {"a.eval": archive(sample(1, scores=None), sample(2, scores=None), head=header())},
        [("acme/mend/1", "not_judged"), ("acme/mend/2", "not_judged")],
    ),
    "a trial that was cancelled": Situation(
        "harbor 0.26.0 models/job/result.py JobStats.n_cancelled_trials",
        {"job/t__1/result.json": {**UNREAD_TRIAL, "config": {}, "verifier_result": None, "exception_info": CANCELLED},
         "job/u__1/result.json": {**UNREAD_TRIAL, "task_name": "u", "trial_name": "u__1", "config": {},
                                  "verifier_result": {"rewards": {"reward": 0.0}}}},
        [("t", True), ("u", False)],
        "SELECT task_id, outcome IN ('not_judged', 'infrastructure') FROM attempts",
    ),
    "a report that lists verdicts and no submissions": Situation(
        "OpenHands/benchmarks PR#215 (SWT-bench)",
        {"run/output.report.json": {"resolved_ids": [ONE], "unresolved_ids": [TWO], "resolved_instances": 1,
                                    "unresolved_instances": 1, "error_ids": [], "Mean coverage": 0.8}},
        [(ONE, "solved"), (TWO, "failed")],
    ),
}  # fmt: skip


def coded(n: int) -> list[dict[str, Any]]:
    """A transcript of Claude Code: a prompt, a call, its result, an answer."""
    name = f"{n}{n}{n}{n}{n}{n}{n}{n}-aaaa-4bbb-8ccc-dddddddddddd"
    said: list[tuple[str, Any]] = [
        ("user", "What is in it?"),
        ("assistant", [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]),
        ("user", [{"type": "tool_result", "tool_use_id": "t1", "content": "a.py"}]),
        ("assistant", [{"type": "text", "text": "One file."}]),
    ]
    return [
        {"type": role, "uuid": f"u{k}", "parentUuid": f"u{k - 1}" if k else None, "sessionId": name, "cwd": "/r",
         "version": "2.1.0", "timestamp": f"2026-03-01T10:00:0{k}.000Z", "isSidechain": False, "userType": "external",
         "message": {"role": role, "content": content, **({"id": f"m{k}", "model": "claude-sonnet-4-5", "type":
                     "message", "usage": {"input_tokens": 5, "output_tokens": 5}} if role == "assistant" else {})}}
        for k, (role, content) in enumerate(said)
    ]  # fmt: skip


TEICH = [{"harness": "claude_code", "session_id": coded(n)[0]["sessionId"], "prompt": "What is in it?",
          "messages": [{"role": "user", "content": "What is in it?"}, {"role": "assistant", "content": "One file."}],
          "tools": None, "metadata": json.dumps({"model": "claude-sonnet-4-5"}), "sent_at": "2026-03-01T10:00:00Z",
          "num_user_messages": 1, "num_tool_calls": 1, "file_path": f"{n}.jsonl"} for n in (1, 2)]  # fmt: skip
OF_AGENTS = "SELECT agent, n_prompts, n_tool_calls FROM sessions"
FENCED = [
    {"role": "system", "content": "Every response must contain EXACTLY ONE bash code block.\n```bash\n<command>\n```"},
    {"role": "user", "content": "Please solve this issue."},
    {"role": "assistant", "content": "THOUGHT: I look.\n\n```bash\nls -la\n```\n"},
    {"role": "user", "content": "Observation: total 4\na.py"},
    {"role": "assistant", "content": "I read it.\n\n```bash\ncat a.py\n```\n"},
    {"role": "user", "content": "Observation: x = 1"},
    {"role": "assistant", "content": "```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```"},
]
STEPS = [{"action": "ls -a", "observation": "a.py", "response": "DISCUSSION I look.\n```\nls -a\n```",
          "state": '{"open_file": "n/a"}', "thought": "I look."},
         {"action": "submit", "observation": "", "response": "I submit.\n```\nsubmit\n```",
          "state": '{"open_file": "n/a"}', "thought": "I submit."}]  # fmt: skip
HERMES = [{"id": f"2025030{n}_091523_a1b2c3", "source": "cli", "model": "hermes-4", "title": None,
           "started_at": 1_772_359_200 + n, "ended_at": None, "message_count": 4, "messages": [
               {"id": 1, "role": "user", "content": "What is in it?", "timestamp": 1_772_359_200 + n},
               {"id": 2, "role": "assistant", "content": "", "timestamp": 1_772_359_201 + n, "tool_calls": [
                   {"id": "c1", "type": "function", "function": {"name": "terminal",
                                                                 "arguments": '{"command": "ls"}'}}]},
               {"id": 3, "role": "tool", "tool_call_id": "c1", "tool_name": "terminal", "content": "a.py",
                "timestamp": 1_772_359_202 + n},
               {"id": 4, "role": "assistant", "content": "One file.", "timestamp": 1_772_359_203 + n}]}
          for n in (1, 2)]  # fmt: skip


def categories(rows: list[dict[str, Any]]) -> bytes:
    """A table as pandas writes it: words as categories, and the index in a column."""
    made = pa.Table.from_pylist(rows)
    for name in ("model", "instance_id"):
        at = made.schema.get_field_index(name)
        made = made.set_column(at, name, made.column(name).dictionary_encode())
    out = pa.BufferOutputStream()
    pa.parquet.write_table(made.append_column("__index_level_0__", pa.array(range(len(rows)))), out)
    return out.getvalue().to_pybytes()  # type: ignore[no-any-return]


THIRD_DATA_SETS = {
    "what the Hub makes of traces, as one JSON text": Situation(
        "huggingface/datasets PR#8232, PR#8255 (trace: Json)",
        {"data/train.parquet": as_parquet([{**row, "trace": json.dumps(coded(n))} for n, row in enumerate(TEICH, 1)])},
        [("claude-code", 1, 1)] * 2, OF_AGENTS,
    ),
    "what the Hub made of traces before, as a list of JSON texts": Situation(
        "huggingface/datasets PR#8113 (traces: List(Json))",
        {"data/train.parquet": as_parquet([
            {"harness": "claude_code", "session_id": row["session_id"], "file_name": f"{n}.jsonl",
             "traces": [json.dumps(record) for record in coded(n)]} for n, row in enumerate(TEICH, 1)])},
        [("claude-code", 1, 1)] * 2, OF_AGENTS,
    ),
    "an export of several sessions, one a line": Situation(
        "huggingface/datasets PR#8255 (hermes sessions export sessions.jsonl)",
        {"sessions.jsonl": as_lines(HERMES)},
        [("hermes", 1, 1)] * 2, OF_AGENTS,
    ),
    "one fenced command an answer, and its observation": Situation(
        "card of AlienKevin/SWE-ZERO-12M-trajectories",
        {"data/train.parquet": as_parquet([{"instance_id": task, "repo": "acme/shop", "messages": FENCED}
                                           for task in (ONE, TWO)])},
        [(1, 3, "total 4\na.py")] * 2,
        "SELECT n_prompts, n_tool_calls, (SELECT min_by(text, seq) FROM events WHERE kind = 'tool_result'"
        " AND events.session_id = sessions.session_id) FROM sessions",
    ),
    "steps with state and thought": Situation(
        "card of JetBrains-Research/swe-traj-complete",
        {"data/train.parquet": as_parquet([{"environment": "swe_main", "trajectory": STEPS, "history": [],
                                            "info": {"exit_status": "submitted", "submission": PATCH},
                                            "instance_id": task, "resolved": task == ONE, "model": "acme/coder-1"}
                                           for task in (ONE, TWO)])},
        [(ONE, "solved", 2), (TWO, "failed", 2)], OF_TRIALS,
    ),
    "shards of unlike columns": Situation(
        "Lillianwei-h/MMIE#7 (CastError of datasets)",
        {"data/train-00000-of-00002.parquet": as_parquet([numbered(1, instance_id=ONE, resolved=True)]),
         "data/train-00001-of-00002.parquet": as_parquet([
             {"trajectory_id": "trajectory-2", "messages": in_parts("task 2"), "instance_id": TWO}])},
        [(ONE, "solved", 2), (TWO, "not_judged", 2)], OF_TRIALS,
    ),
    "other compressions that datasets reads": Situation(
        "huggingface/datasets docs (bz2, xz)",
        {"a.jsonl.bz2": bz2.compress(as_lines([numbered(1)])), "b.jsonl.xz": lzma.compress(as_lines([numbered(2)]))},
        [("trajectory-1", 1, 2), ("trajectory-2", 1, 2)], CALLS,
    ),
    "categories and an index, as pandas writes them": Situation(
        "pandas to_parquet of SWE-bench/SWE-smith-trajectories rows",
        {"train.parquet": categories([numbered(n, instance_id=task, model="acme/coder-1", resolved=n == 1)
                                      for n, task in enumerate((ONE, TWO), 1)])},
        [(ONE, "acme/coder-1", "solved"), (TWO, "acme/coder-1", "failed")],
        "SELECT task_id, model_id, outcome FROM attempts",
    ),
}  # fmt: skip


FREE = {**ZEROS, "accumulated_token_usage": {"model": "acme/coder-1", "prompt_tokens": 900, "completion_tokens": 9}}
WATCHED = [
    {"role": "user", "content": "Observation: the page is slow."},
    {"role": "assistant", "content": "I look."},
    {"role": "user", "content": "Observation: it is fast now."},
    {"role": "assistant", "content": "Good."},
]
THIRD_HARNESSES |= {
    "a model that costs nothing": Situation(
        "sibling of OpenHands/OpenHands#10534: tokens were counted",
        {"run/metadata.json": META, "run/output.jsonl": as_lines([{**evaluated(ONE), "metrics": FREE}])},
        [(ONE, "not_judged", 0.0)], COSTS,
    ),
    "metrics of another shape": Situation(
        "sibling of OpenHands/OpenHands#10534",
        {"run/metadata.json": META, "run/output.jsonl": as_lines([
            {**evaluated(ONE), "metrics": {"accumulated_cost": 0.5, "token_usages": 7}}])},
        [(ONE, "not_judged", 1)], OF_TRIALS,
    ),
    "a benchmark's own results beside lists of verdicts": Situation(
        "sibling of OpenHands/benchmarks PR#215: Terminal-Bench's run has lists of that name, too",
        {"run/a/results.json": terminal("a", True, "unset"),
         "run/results.json": {"id": "r", "n_resolved": 1, "n_unresolved": 0, "accuracy": 1.0, "resolved_ids": ["a"],
                              "unresolved_ids": [], "pass_at_k": {}, "results": [terminal("a", True, "unset")]}},
        [("a", "solved")],
    ),
}  # fmt: skip
THIRD_DATA_SETS |= {
    "an agent by another spelling of its name": Situation(
        "sibling of huggingface/datasets PR#8255: messages alone",
        {"train.jsonl": as_lines([{**row, "harness": name} for row, name in zip(TEICH, ("Claude Code", "claude_code"),
                                                                                strict=True)])},
        [("claude-code", 1, 0)] * 2, OF_AGENTS,
    ),
    "an export of sessions as a list": Situation(
        "sibling of huggingface/datasets PR#8255",
        {"sessions.json": HERMES}, [("hermes", 1, 1)] * 2, OF_AGENTS,
    ),
    "a person who writes Observation": Situation(
        "sibling of SWE-ZERO: nobody acted",
        {"train.jsonl": as_lines([{"session_id": f"watched-{n}", "messages": WATCHED} for n in (1, 2)])},
        [(2, 0, "Observation: it is fast now.")] * 2,
        "SELECT n_prompts, n_tool_calls, (SELECT max_by(text, turn) FROM turns WHERE turns.session_id ="
        " sessions.session_id) FROM sessions",
    ),
}  # fmt: skip


def as_bytes(content: Any) -> bytes:
    return as_parquet(content.to_pylist()) if isinstance(content, pa.Table) else plain_bytes(content)


def written(folder: Path, files: dict[str, Any]) -> Path:
    return placed(folder, {name: as_bytes(content) for name, content in files.items()})


def answered(one: Situation, summary: pipeline.Summary, store: Path) -> None:
    _, found = asked(Store(store), one.asked)
    assert sorted(map(tuple, found), key=str) == sorted(one.right, key=str), one.source
    assert one.told in json.dumps([unread.what for unread in summary.unread])


@pytest.mark.parametrize("name", [*HARNESSES, *SIBLINGS, *AGAIN_HARNESSES, *AGAIN_SIBLINGS, *THIRD_HARNESSES])
def test_a_harness_log_says_what_counts(tmp_path: Path, name: str) -> None:
    one = (HARNESSES | SIBLINGS | AGAIN_HARNESSES | AGAIN_SIBLINGS | THIRD_HARNESSES)[name]
    summary = pipeline.analyze([str(written(tmp_path / "in", one.files))], tmp_path / "store", jobs=1)
    answered(one, summary, tmp_path / "store")


SETS = DATA_SETS | AGAIN_DATA_SETS | THIRD_DATA_SETS
OF_THE_HUB = [name for name, one in SETS.items() if "artifacts" in one.asked]
"""What is asked of these, only a set of the Hub has."""


@pytest.mark.parametrize("name", [name for name in SETS if name not in OF_THE_HUB])
def test_a_data_set_in_a_folder_says_what_counts(tmp_path: Path, name: str) -> None:
    summary = pipeline.analyze([str(written(tmp_path / "in", SETS[name].files))], tmp_path / "store", jobs=1)
    answered(SETS[name], summary, tmp_path / "store")


@pytest.mark.parametrize("name", [*OF_THE_HUB, *some((name for name in SETS if name not in OF_THE_HUB), 5)])
def test_a_data_set_of_the_hub_says_the_same(hub: Hub, tmp_path: Path, name: str) -> None:
    one = SETS[name]
    hub.sets["ann/set"] = DataSet({path: as_bytes(content) for path, content in one.files.items()})
    summary = pipeline.analyze(["hub:ann/set"], tmp_path / "store", jobs=1)
    answered(one, summary, tmp_path / "store")
