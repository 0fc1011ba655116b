"""Files that look alike and are of different formats: each is claimed by its own (design/formats.md#recognition)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsignals.formats import conformance
from agentsignals.formats.records import HEAD_BYTES, Head
from tests.quick import each_row


def claimants(content: Any, path: str = "/some/folder/file.json") -> list[str]:
    """The formats that claim a file of this content."""
    text = content if isinstance(content, str) else json.dumps(content)
    data = text.encode()
    return conformance.claimants(Head(data[:HEAD_BYTES], path, len(data) <= HEAD_BYTES))


# -- SWE-agent, mini-SWE-agent, SWE-bench ------------------------------------------------------------------------------

STEP = {"action": "ls", "observation": "a", "response": "ls", "thought": "", "state": {}}
SAID = [{"role": "system", "content": "x", "agent": "main"}, {"role": "user", "content": "y", "agent": "main"}]
OPENING = [{"role": "system", "content": "Answer with ```bash\nx\n```"}, {"role": "user", "content": "Fix it."}]
COMMAND = [
    {"role": "assistant", "content": "So.\n```bash\nls\n```"},
    {"role": "user", "content": "<returncode>0</returncode>"},
]
LONG = "x" * 70_000
INSTANCE = {"patch_successfully_applied": True, "resolved": True, "tests_status": {}}
PREDICTION = {"instance_id": "a__b-1", "model_name_or_path": "m", "model_patch": ""}
SUMMARY = {
    "total_instances": 1,
    "submitted_instances": 1,
    "completed_instances": 1,
    "resolved_instances": 1,
    "empty_patch_instances": 0,
    "submitted_ids": ["a__b-1"],
    "schema_version": 2,
}
ROW = {"instance_id": "a__b-1", "base_commit": "c", "patch": "diff", "test_patch": "", "problem_statement": "x"}


@each_row(
    ("content", "expected"),
    [
        ({"trajectory": [STEP], "history": SAID, "info": {}}, ["swe-agent"]),
        ({"trajectory": [{**STEP, "observation": LONG}], "history": SAID, "info": {}}, ["swe-agent"]),
        ({"environment": "swe_main", "trajectory": [{**STEP, "query": LONG}]}, ["swe-agent"]),
        ({"trajectory": [], "history": SAID, "info": {}}, ["swe-agent"]),
        ({"history": SAID}, ["swe-agent"]),
        ({"history": [*SAID, {**SAID[1], "content": LONG}]}, ["swe-agent"]),
        ({"attempts": [{"trajectory": [STEP]}]}, ["swe-agent"]),
        ({"attempts": [{"trajectory": [{**STEP, "observation": LONG}]}]}, ["swe-agent"]),
        ({"trajectory": [1, 2], "other": 1}, []),
        ({"trajectory": {"x": 1}}, []),
        ({"conversation_id": "", "history": [{"user": None, "assistant": None}]}, ["kiro"]),
        (OPENING + COMMAND, ["mini-swe-agent"]),
        (OPENING, ["mini-swe-agent"]),
        ([*OPENING, *COMMAND, {"role": "assistant", "content": LONG}], ["mini-swe-agent"]),
        ({"messages": OPENING + COMMAND, "info": {}, "trajectory_format": "mini-swe-agent-1.1"}, ["mini-swe-agent"]),
        ({"info": {"mini_version": "1.9"}, "messages": [{"role": "user", "content": LONG}]}, ["mini-swe-agent"]),
        ([{"role": "system", "content": "x"}, {"role": "user", "content": "Hello."}], []),
        ([*OPENING, {"role": "assistant", "content": "No command."}, {"role": "user", "content": "Thanks."}], []),
        ([*OPENING, {"role": "assistant", "content": "No command."}, COMMAND[1]], []),
        ([{"role": "user", "content": "x"}], []),
        ({"info": {"id": "ses_1"}, "messages": []}, ["opencode"]),
        ({"a__b-1": INSTANCE}, ["swe-bench"]),
        ({"a__b-1": {**INSTANCE, "tests_status": {"FAIL_TO_PASS": {"success": [LONG], "failure": []}}}}, ["swe-bench"]),
        (SUMMARY, ["swe-bench"]),
        ({**SUMMARY, "submitted_ids": ["a__b-1"] * 9_000}, ["swe-bench"]),
        (PREDICTION, ["swe-bench"]),
        ({"a__b-1": PREDICTION}, ["swe-bench"]),
        (ROW, ["swe-bench"]),
        ({**ROW, "FAIL_TO_PASS": ["t"], "PASS_TO_PASS": ["u"]}, ["swe-bench"]),
        ({**ROW, "FAIL_TO_PASS": '["t"]', "PASS_TO_PASS": '["u"]'}, ["swe-bench"]),
        ({"overall_rating": {"trace_01": {"rating": 4}}}, ["swe-bench"]),
    ],
)
def test_trajectories_and_what_lies_beside_them(content: Any, expected: list[str]) -> None:
    assert claimants(content) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("+ source /opt/miniconda3/bin/activate\n++ x\n", ["swe-bench-text"]),
        ("Evaluation Form\nRubrics *\nOverall rating *\n\n{}\n", ["swe-bench-text"]),
        ("Evaluation Form\nof something else\n", []),
        ("2025-01-02 03:04:05,678 - INFO - Creating container for a__b-1...\n", ["swe-bench-text"]),
        ("2025-01-02 03:04:05,678 - INFO - Serving on port 80\n", []),
        ("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", ["patch"]),
    ],
)
def test_plain_text_of_an_evaluation(text: str, expected: list[str]) -> None:
    assert claimants(text, "/some/folder/notes.txt") == expected


# -- Inspect, TRAIL, OpenTelemetry, STS --------------------------------------------------------------------------------

INSPECT = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m", "task_id": "T"}, "samples": []}
SPAN = {"span_id": "a", "span_name": "x", "span_attributes": {}, "child_spans": []}
SCORES = [{"reliability_score": 5, "overall": 5}]
STS = {"type": "session", "harness": "acme.app", "id": "s"}
PI = {"type": "session", "id": "s", "cwd": "/r", "version": 3, "timestamp": "2026-01-02T03:04:05Z"}
MESSAGE = {"type": "message", "message": {"role": "user", "content": "hi"}}
SPOKEN = {"spanId": "a", "traceId": "f" * 32, "attributes": [{"key": "gen_ai.operation.name", "value": {}}]}


def rows(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(r) + "\n" for r in records)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (INSPECT, ["inspect-json"]),
        ({**INSPECT, "eval": {**INSPECT["eval"], "x": LONG}}, ["inspect-json"]),  # type: ignore[dict-item]  # a dict it is
        ({"version": 2, "status": "success", "eval": 0.9}, []),
        ({"version": 2, "status": "ok", "eval": INSPECT["eval"]}, []),
        ({"trace_id": "t", "spans": [SPAN]}, ["trail"]),
        ({"trace_id": "t", "spans": [{**SPAN, "status_message": LONG}]}, ["trail"]),
        ({"trace_id": "t", "errors": [], "scores": SCORES}, ["trail"]),
        ({"errors": [{"message": "x"}], "scores": [0.5]}, []),
        ({"trace_id": "t", "spans": 3}, []),
        ({"resourceSpans": [{"scopeSpans": [{"spans": [SPOKEN]}]}]}, ["otel-genai"]),
        (rows({"resourceSpans": [{"scopeSpans": [{"spans": [SPOKEN]}]}]}) * 2, ["otel-genai"]),
        ({"resourceSpans": [{"scopeSpans": [{"spans": [{"spanId": "a"}]}]}]}, []),
        (rows(STS, MESSAGE), ["sts"]),
        (rows({**STS, "cwd": "/r", "version": 3}, MESSAGE), ["sts"]),
        (rows(PI, MESSAGE), ["pi"]),
        (rows({k: v for k, v in PI.items() if k != "version"}, MESSAGE), ["pi"]),
        (rows({k: v for k, v in STS.items() if k != "harness"}, MESSAGE), []),
    ],
)
def test_logs_of_inspect_spans_and_sts(content: Any, expected: list[str]) -> None:
    assert claimants(content) == expected


# -- Harbor, ATIF, Terminal-Bench, the harness of Agent Signals
# ---------------------------------------------------------

TRIED = {"is_resolved": True, "failure_mode": "unset", "parser_results": {}}
TRIAL = {"task_name": "t", "trial_name": "t__1", "config": {}, "reward": 1.0, "timed_out": False, "duration": 1}
ENDED = {"reward": 1.0, "timed_out": False, "duration": 5, "patch_applies": True}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"schema_version": "ATIF-v1.2", "session_id": "s", "agent": {}, "steps": []}, ["atif"]),
        ({"schema_version": "0.2.0", "trace_id": "t", "agent": {}, "steps": []}, ["opentraces"]),
        (SUMMARY, ["swe-bench"]),
        (TRIAL, ["harbor"]),
        ({"id": "1", "n_total_trials": 1, "stats": {}}, ["harbor"]),
        (TRIED, ["terminal-bench"]),
        ({"results": [TRIED], "accuracy": 1.0}, ["terminal-bench"]),
        ({"results": {"tool": {}, "tests": []}}, ["harbor"]),
        (ENDED, ["subq-eval"]),
        ({"reward": 1.0, "duration": 5}, []),
        ({"FAIL_TO_PASS": [], "PASS_TO_PASS": []}, ["subq-eval"]),
        ({"a__b-1": {"patch_successfully_applied": True, "tests_status": {"FAIL_TO_PASS": []}}}, ["swe-bench"]),
        ({"attempt1ToolCap": 3, "retryToolCap": 4}, ["subq-eval"]),
        ('{"runId":"r","agent":"subq","dataset":"d"}\n{"runId":"s","agent":"subq","dataset":"d"}\n', ["subq-eval"]),
        ('{"event":"plannotator-phase","phase":"explore"}\n[subq-eval] Turns: 3\n', ["subq-eval"]),
        ('{"type":"custom","customType":"plannotator","data":{"event":"plannotator-phase"}}\n', []),
        ("[subq-eval] Turns: 3\n", ["subq-eval-log"]),
        ("Our [subq-eval] harness prints turns.\n", []),
        (">>>>> Start Test Output\n", ["swe-bench-text"]),
    ],
    ids=range(19),
)
def test_evaluations_are_told_from_each_other(content: Any, expected: list[str]) -> None:
    assert claimants(content) == expected


@pytest.mark.parametrize("path", ["/j/t/agent/stdout.txt", "/j/t/verifier/stdout.txt", "/j/t/agent/claude-code.txt"])
@pytest.mark.parametrize(
    "text",
    ["words\n", "[subq-eval] Turns: 3\n", ">>>>> Start Test Output\n", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
     '{"type":"system","subtype":"init","session_id":"s"}\n'],
    ids=["words", "figures", "tests", "a diff", "printed records"],
)  # fmt: skip
def test_a_log_in_a_trial_has_one_reader(path: str, text: str) -> None:
    assert len(claimants(text, path)) <= 1


# -- Claude Code's look-alikes, Codex's two logs, Gemini's two, conversations as rows ----------------------------------

CLAUDE = {
    "type": "user",
    "uuid": "u",
    "parentUuid": None,
    "sessionId": "s",
    "cwd": "/r",
    "message": {"role": "user", "content": "x"},
}
SWIVAL = {**CLAUDE, "harness": "swival", "promptId": "p"}
STREAM_INIT = {"type": "system", "subtype": "init", "session_id": "s", "cwd": "/r", "tools": [], "model": "m"}
STREAM_SAID = {
    "type": "assistant",
    "session_id": "s",
    "parent_tool_use_id": None,
    "message": {"role": "assistant", "content": []},
}
STREAM_END = {"type": "result", "subtype": "success", "is_error": False, "session_id": "s", "result": "done"}
ROLLOUT = {"timestamp": "2026-01-02T03:04:05Z", "type": "session_meta", "payload": {"id": "s", "cwd": "/r"}}
THREAD = {"type": "thread.started", "thread_id": "s"}
ITEM = {"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": "x"}}
GEMINI = {"sessionId": "s", "projectHash": "h", "startTime": "2026-01-02T03:04:05Z", "kind": "main"}
COPILOT = {"type": "session.start", "data": {"sessionId": "s"}, "id": "e", "timestamp": "t", "parentId": None}
DROID = {"type": "session_start", "id": "s", "title": "t", "owner": "o"}
TALK = [{"from": "human", "value": "x"}, {"from": "gpt", "value": "y"}]


@each_row(
    ("content", "expected"),
    [
        (rows(CLAUDE), ["claude-code"]),
        (rows(SWIVAL), ["swival"]),
        (rows({"type": "last-prompt", "lastPrompt": "x", "sessionId": "s"}, SWIVAL), ["swival"]),
        (rows(SWIVAL, {"type": "last-prompt", "lastPrompt": "x", "sessionId": "s"}), ["swival"]),
        (rows({**SWIVAL, "message": json.dumps(CLAUDE["message"])}), ["swival"]),
        (rows({**CLAUDE, "harness": "another"}), ["claude-form"]),
        (rows({**CLAUDE, "version": "hermes-agent"}), ["claude-form"]),
        (rows({**CLAUDE, "version": "acme-agent/2.0"}), ["claude-form"]),
        (rows({**CLAUDE, "version": "2.1.0-beta"}), ["claude-code"]),
        (rows({**CLAUDE, "version": "REDACTED"}), ["claude-code"]),
        (rows({**SWIVAL, "message": {"role": "user", "content": LONG}}), []),
        (rows(STREAM_INIT, STREAM_SAID, STREAM_END), ["claude-stream"]),
        (rows({"type": "system", "subtype": "hook_started", "session_id": "s"}, STREAM_INIT), ["claude-stream"]),
        (rows(STREAM_INIT), ["claude-stream"]),
        (STREAM_END, ["claude-stream"]),
        ([STREAM_INIT, STREAM_SAID, STREAM_END], ["claude-stream"]),
        (rows(STREAM_SAID), []),
        (rows({**STREAM_INIT, "session_id": 7}), []),
        (rows(STREAM_INIT, {"type": "tool_call", "subtype": "started", "session_id": "s"}), []),
        (rows(STREAM_INIT, {"type": "message", "role": "assistant", "session_id": "s"}), []),
        (rows({**STREAM_INIT, "sessionId": "s", "parentUuid": None}), ["claude-code"]),
        (rows({"type": "result", "value": 3}), []),
        (rows(ROLLOUT), ["codex"]),
        (rows(THREAD, {"type": "turn.started"}, ITEM), ["codex-exec"]),
        (rows({"type": "turn.started"}, ITEM), ["codex-exec"]),
        (rows({"type": "thread.started"}), []),
        (rows({"type": "item.completed", "item": "x"}), []),
        ({**GEMINI, "messages": []}, ["gemini-cli"]),
        (rows(GEMINI, {"id": "m", "type": "user", "content": "x"}), ["gemini-cli"]),
        (rows(GEMINI, {"$set": {"lastUpdated": "t"}}), ["gemini-cli"]),
        (rows({"sessionId": "s", "projectHash": "h"}), []),
        (rows(COPILOT), ["copilot-cli"]),
        (rows(DROID), ["factory-droid"]),
        (rows({"conversations": TALK}), ["conversation-table"]),
        ([{"conversations": TALK}], ["conversation-table"]),
        ({"conversations": TALK, "id": "x"}, ["conversation-table"]),
        ({"rows": [{"row_idx": 0, "row": {"conversations": TALK}}]}, ["conversation-table"]),
        (rows({"conversations": [{**TALK[0], "value": LONG}]}), ["conversation-table"]),
        ([{"conversations": [{**TALK[0], "value": LONG}]}], ["conversation-table"]),
        ({"conversations": []}, []),
        ({"conversations": {"from": "x", "value": "y"}}, []),
        ({"conversations": [{"role": "user", "content": "x"}]}, []),
        ({"files": [{"conversations": TALK}]}, []),
        ({"trace_id": "t", "conversations": TALK}, ["conversation-table"]),
    ],
)
def test_look_alikes_of_claude_codex_and_gemini_and_rows_of_conversations(content: Any, expected: list[str]) -> None:
    assert claimants(content) == expected


@each_row("value", [None, 7, "x", [], {}, [None], {"a": 1}, [[]]])
@each_row(
    "record", [SWIVAL, STREAM_INIT, STREAM_END, THREAD, ITEM, GEMINI, {"conversations": TALK}, {"rows": [{"row": {}}]}]
)
def test_odd_values_are_nobodys_undoing(record: dict[str, Any], value: Any) -> None:
    for name in record:
        odd = {**record, name: value}
        for content in (odd, [odd], rows(odd), rows(odd, odd), f"[{json.dumps(odd)}, 3]"):
            assert len(claimants(content)) <= 1
