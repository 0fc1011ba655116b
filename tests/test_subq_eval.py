"""What the harness of Agent Signals writes: results, reports, configuration, history. No sample of it is public."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsignals.formats import Input
from agentsignals.formats.subq_eval import FORMAT
from agentsignals.model import Artifact, Attempt

RESULT = {"reward": 1.0, "timed_out": False, "duration": 5, "patch_applies": True}


def parts(**files: Any) -> list[Attempt]:
    inputs = []
    for name, one in files.items():
        data = one if isinstance(one, bytes) else json.dumps(one).encode()
        path = "/r/t/verifier/report.json" if name == "report" else f"/r/t/{name}.json"
        inputs.append(
            Input(
                data, Artifact(artifact_id=path, source="t", path=path, format="subq-eval", sha256="", bytes=len(data))
            )
        )
    return FORMAT.read(inputs).attempts


# -- results --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, (1.0, False, 5.0, True)),
        ({"reward": 0}, (0.0, False, 5.0, True)),
        ({"timed_out": None, "timedOut": True}, (1.0, True, 5.0, True)),
        ({"timed_out": "no"}, (1.0, None, 5.0, True)),
        ({"duration": None, "durationMs": 2500}, (1.0, False, 2.5, True)),
        ({"duration": -1}, (1.0, False, None, True)),
        ({"patch_applies": None, "patchApplies": False}, (1.0, False, 5.0, False)),
        ({"patch_applies": None}, (1.0, False, 5.0, None)),
    ],
)
def test_a_result_is_read_in_camel_case_and_in_snake_case(facts: dict[str, Any], expected: tuple[Any, ...]) -> None:
    (found,) = parts(result={k: v for k, v in {**RESULT, **facts}.items() if v is not None})
    applies = found.verification.patch_applies if found.verification else None
    assert (found.reward, found.timed_out, found.wall_time_s, applies) == expected


@pytest.mark.parametrize(
    "facts",
    [
        {"localizationSignal": {"attempt1Mode": "wide", "finalFailureMode": None}},
        {"localization": {"attempt1_mode": "wide", "final_failure_mode": None}},
        {"attempt1Mode": "wide", "finalFailureMode": None},
    ],
)
def test_the_modes_of_the_controller_are_verbatim(facts: dict[str, Any]) -> None:
    (found,) = parts(result={**RESULT, **facts})
    assert found.localization == {"attempt1Mode": "wide", "finalFailureMode": None}
    assert "harbor_result" in found.kinds
    (without,) = parts(result=RESULT)
    assert (without.localization, without.kinds) == (None, ["result_json"])


def test_attempts_that_a_result_lists_have_their_own_figures() -> None:
    listed = [{"reward": 0, "duration": 3}, 7, {"attemptIndex": 1, "reward": 1, "timedOut": False}]
    whole, first, second = parts(result={**RESULT, "attempts": listed})
    assert (whole.scope, whole.reward) == ("trial", 1.0)
    assert [(p.scope, p.attempt_index, p.reward) for p in (first, second)] == [("attempt", 0, 0.0), ("attempt", 1, 1.0)]


A = {"FAIL_TO_PASS": {"success": ["a"], "failure": ["b"]}, "PASS_TO_PASS": {"success": [], "failure": ["c"]}}
B = {"FAIL_TO_PASS": ["a"], "PASS_TO_FAIL": ["c"], "FAIL_TO_FAIL": ["b"]}


@pytest.mark.parametrize(
    ("report", "layout", "fixed", "broken"),
    [
        (A, "A", ["a"], ["c"]),
        ({"tests_status": A, "patchApplies": True}, "A", ["a"], ["c"]),
        (B, "B", ["a"], ["c"]),
        ({"tests_status": B}, "B", ["a"], ["c"]),
    ],
)
def test_a_report_is_read_in_both_layouts(report: Any, layout: str, fixed: list[str], broken: list[str]) -> None:
    (found,) = parts(report=report)
    assert found.verification is not None
    assert (found.verification.layout, found.verification.fixed, found.verification.broken) == (layout, fixed, broken)
    assert found.verification.patch_applies is (True if "patchApplies" in report else None)


def test_a_report_of_another_shape_is_counted() -> None:
    data = json.dumps({"FAIL_TO_PASS": 3, "PASS_TO_PASS": 4}).encode()
    artifact = Artifact(
        artifact_id="a", source="t", path="/r/t/report.json", format="subq-eval", sha256="", bytes=len(data)
    )
    assert FORMAT.read([Input(data, artifact)]).attempts == []
    assert (artifact.records, artifact.skipped_reasons, artifact.record_kinds) == (1, {"bad_shape": 1}, {})


# -- treatment ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"attempt1ToolCap": 30, "retryToolCap": 60}, {"attempt1_tool_cap": 30, "retry_tool_cap": 60}),
        ({"attempt1_tool_cap": None, "x": {}}, {"attempt1_tool_cap": None}),
        ({"retryToolCap": 1, "timeoutMs": 5000}, {"retry_tool_cap": 1, "timeout_s": "5000 ms"}),
        ({"retryToolCap": 1, "timeout": "50m"}, {"retry_tool_cap": 1, "timeout_s": "50m"}),
        ({"retryToolCap": 1, "timeout_minutes": 50}, {"retry_tool_cap": 1, "timeout_s": "50 min"}),
        ({"retryToolCap": 1, "AGENT_MODEL": "a/b"}, {"retry_tool_cap": 1, "model_id": "a/b"}),
        ({"retryToolCap": 1, "config": {"agent": "subq", "concurrency": 4}},
         {"retry_tool_cap": 1, "agent_type": "subq", "concurrency": 4}),
        ({"retryToolCap": 1, "dataset": "d", "datasetVersion": "2"}, {"retry_tool_cap": 1, "dataset": "d@2"}),
    ],
)  # fmt: skip
def test_the_configuration_keeps_what_was_set_under_the_seeds_names(config: Any, expected: Any) -> None:
    (found,) = parts(config=config)
    assert (found.scope, found.knobs) == ("lent", expected)


def history(*rows: dict[str, Any]) -> bytes:
    return "\n".join(json.dumps(r) for r in rows).encode()


@pytest.mark.parametrize(
    ("rows", "run_id", "agent"),
    [
        ([{"runId": "r-1", "agent": "one", "dataset": "d"}], None, "one"),
        ([{"runId": "r-1", "agent": "one", "model": "d"}, {"run": "r-2", "agent": "two", "model": "d"}], "r-2", "two"),
        ([{"runId": "r", "agent": "one", "dataset": "d"}, {"runId": "s", "agent": "two", "dataset": "d"}], None, "one"),
        ([{"runId": "x", "agent": "one", "dataset": "d"}, {"runId": "y", "agent": "two", "dataset": "d"}], None, None),
    ],
    ids=["a single run", "the trial names its run", "its folder does", "nothing does"],
)  # fmt: skip
def test_the_history_is_joined_down_to_the_trials_of_the_run(rows: Any, run_id: str | None, agent: str | None) -> None:
    found = parts(eval_history=history(*rows), result={**RESULT, **({"runId": run_id} if run_id else {})})
    assert [p.knobs.get("agent_type") for p in found if p.scope == "lent"] == ([agent] if agent else [])


@pytest.mark.parametrize(
    "key", [*RESULT, "attempts", "localization", "attempt1Mode", "runId", "treatment", "started_at"]
)
def test_odd_values_never_raise(key: str) -> None:
    for odd in (None, 7, "x", [], {}, [None], [{}], {"attempt1Mode": {}}, 10**30, -1.5, True):
        parts(result={**RESULT, key: odd}, report={**A, key: odd}, config={"retryToolCap": 1, key: odd})
