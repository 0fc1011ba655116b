"""Signals of both contexts on eval attempts: what the harness says beside what the transcript shows."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.changes.hunks import Hunk
from agentsignals.model import Absent, HarnessSummary, Statement
from agentsignals.signals.catalog import INTERNAL_ERROR, measure
from tests.build import START, call, say, user, view
from tests.signals.ask import Case, absent, detail, evidence, value
from tests.signals.attempts import patched, ran, trial, unseen

TURNS, CALLS, EDITS = "behavior.turn_count", "behavior.tool_call_count", "behavior.edit_calls"
TOUCHED, DIFF, BASH = "behavior.touched_files[]", "behavior.diff_lines", "behavior.bash_mediated_edits"
WALL, TIMED_OUT = "infra.wall_time_s", "infra.timed_out"
COST = "tokens.cost_usd"
EDIT = call("Edit", path="a.py", hunks=[Hunk(start_line=1, end_line=1, added=1, removed=2)])
SCRIPT = call("Bash", command="python fix.py")
COUNTED = HarnessSummary(turns=9, tool_calls=8, edit_calls=7, touched_files=[("./b.py", 4), ("a.py", 2)])


@pytest.mark.parametrize(("path", "told", "seen"), [(TURNS, 9, 2), (CALLS, 8, 1), (EDITS, 7, 1)])
def test_the_harness_count_wins_and_the_transcripts_stands_beside(path: str, told: int, seen: int) -> None:
    one = ran(say("on it"), EDIT, say("done"), summary=COUNTED)
    assert value(one, path) == told
    assert detail(one, path) == {"method": "harness", "jsonl_count": seen, "conflict": True}
    assert [i.excerpt for i in evidence(one, path).items] == ["summary is said here"]


def test_without_a_summary_the_transcript_counts_as_in_a_product_session() -> None:
    attempt, session = ran(say("a"), EDIT), view(user("fix it"), say("a"), EDIT, cwd="/testbed")
    for path in (TURNS, CALLS, EDITS, TOUCHED, DIFF, BASH):
        assert (value(attempt, path), detail(attempt, path)) == (value(session, path), detail(session, path)), path


def test_an_empty_submission_is_no_proof_that_nothing_changed() -> None:
    wrote = ran(call("Bash", command="echo 'x = 1' > a.py"), patch=[])
    assert value(wrote, TOUCHED) == ["a.py"]
    assert value(wrote, BASH) is True
    assert detail(wrote, DIFF).get("method") != "patch"
    assert value(ran(SCRIPT, patch=[]), TOUCHED) == []


def test_touched_files_are_those_that_differ_in_the_end() -> None:
    one = ran(EDIT, call("Write", path="scratch.py", creates=True), summary=COUNTED)
    assert value(one, TOUCHED) == ["a.py", "b.py"]
    assert detail(one, TOUCHED) == {"method": "harness", "edit_log_only": ["scratch.py"]}
    assert (value(one, DIFF), detail(one, DIFF)) == (6, {"method": "harness"})


def test_touched_files_fall_back_to_the_patch() -> None:
    patch = [patched("new.py", "rename", 3, 1, old_path="old.py"), patched("logo.png", added=0, removed=0, binary=True)]
    one = unseen(patch=patch)
    assert (value(one, TOUCHED), detail(one, TOUCHED)) == (["logo.png", "new.py", "old.py"], {"method": "patch"})
    assert value(one, DIFF) == 4
    assert detail(one, DIFF) == {"method": "patch", "added": 3, "removed": 1, "binary": ["logo.png"]}


def test_a_summary_and_a_patch_that_differ_are_a_conflict() -> None:
    one = unseen(summary=COUNTED, patch=[patched("a.py")])
    assert detail(one, TOUCHED) == {"method": "harness", "conflict": True, "patch": ["a.py"]}
    assert "conflict" not in detail(unseen(summary=COUNTED, patch=[patched("a.py"), patched("b.py")]), TOUCHED)


def test_without_a_transcript_nobody_knows_the_shell_writes() -> None:
    one = unseen(summary=HarnessSummary(edit_calls=0, touched_files=[("a.py", 1)]))
    assert detail(one, BASH) == {"shell_write_calls": None, "pure": True}
    assert absent(unseen(patch=[patched("a.py")]), BASH) == ("dependency_null", EDITS)


@pytest.mark.parametrize(
    ("facts", "seconds", "more"),
    [
        ({"wall_time_s": 656.6, "agent_time_s": 53.2}, 656.6, {"method": "harness", "agent_time_s": 53.2}),
        ({"started_at": START, "ended_at": START + 2_500_000}, 2.5, {"method": "attempt_times"}),
        ({"wall_time_s": 0.0}, 0.0, {"method": "harness"}),
    ],
)
def test_an_attempt_lasts_as_long_as_its_harness_says(
    facts: dict[str, Any], seconds: float, more: dict[str, Any]
) -> None:
    assert (value(unseen(**facts), WALL), detail(unseen(**facts), WALL)) == (seconds, more)
    assert detail(ran(say("a"), say("b"), **facts), WALL) == {**more, "timestamps_s": 2.0}


def test_without_a_duration_the_transcript_tells_and_the_verifiers_time_does_not_count() -> None:
    late = Statement(text="verified", artifact_id="harness-file", line=1, fields=[], at=START * 2)
    assert value(ran(say("a"), say("b"), statements=[late]), WALL) == 2.0
    assert absent(unseen(reward=1.0), WALL) == ("missing_field", "duration")
    assert absent(unseen(wall_time_s=float("nan")), WALL) == ("missing_field", "duration")


def test_attempts_are_counted_from_0_and_modes_are_of_their_attempts() -> None:
    words = {"trialRecoveryMode": "retry_wider", "finalFailureMode": "wrong_file"}
    first, last = trial({"localization": words, "reward": 0.0}, {"localization": words, "reward": 0.0})
    assert [value(one, "infra.attempt_index") for one in (first, last)] == [0, 1]
    assert absent(first, "infra.recovery_mode") == ("not_applicable", "first_attempt")
    assert value(last, "infra.recovery_mode") == "retry_wider"
    assert absent(first, "infra.final_failure_mode") == ("not_applicable", "not_the_last_attempt")
    assert value(last, "infra.final_failure_mode") == "wrong_file"


PRICED = {"input_tokens": 10, "output_tokens": 5, "cost_usd": 0.5}


def test_a_cost_of_0_for_tokens_used_is_no_price() -> None:
    assert absent(unseen(cost_usd=0.0, input_tokens=100), COST)[0] == "missing_field"
    assert value(unseen(cost_usd=0.0), COST) == 0.0


def test_without_any_cost_the_session_is_missing_or_its_usage() -> None:
    assert absent(unseen(reward=1.0), COST) == ("missing_artifact", "session_jsonl")
    assert absent(ran(say("a")), COST) == ("missing_field", "usage")


def test_tokens_are_the_harnesss_as_cost_is_where_the_trace_tells_none() -> None:
    for one in (unseen(input_tokens=1000, output_tokens=20), ran(say("a"), input_tokens=1000, output_tokens=20)):
        assert value(one, "tokens.input_tokens_total") == 1000
        assert value(one, "tokens.output_tokens_total") == 20
        assert detail(one, "tokens.output_tokens_total") == {"method": "harness"}
    assert absent(unseen(output_tokens=20), "tokens.input_tokens_total") == ("missing_artifact", "session_jsonl")


PHASES, TRANSITIONS = "reasoning.plannotator_phases[]", "reasoning.phase_transitions[]"


def test_phases_on_stdout_are_known_without_a_transcript() -> None:
    lines = [f'{{"event": "plannotator-phase", "phase": "{name}"}}' for name in ("explore", "implement")]
    said = [
        Statement(text=line, artifact_id="stdout-file", line=n + 1, fields=[], kind="phase")
        for n, line in enumerate(lines)
    ]
    one = unseen(kinds=["stdout"], statements=said)
    assert [(row["phase"], row["line_no"]) for row in value(one, PHASES)] == [("explore", 1), ("implement", 2)]
    assert (value(one, TRANSITIONS), detail(one, TRANSITIONS)) == (["explore", "implement"], {"method": "plannotator"})


def test_an_eval_session_of_which_no_harness_tells_has_a_reason_for_each_eval_signal() -> None:
    one = view(user("fix it"), EDIT)
    one.session.context = "eval"
    found = {r.signal.path: r.value for r in measure(one) if r.signal.context == "eval"}
    assert {path for path, v in found.items() if not isinstance(v, Absent)} == set()
    assert not [v for v in found.values() if v.detail.startswith(INTERNAL_ERROR)]
    assert value(one, CALLS) == 1


def test_one_end_is_no_duration() -> None:
    for facts in ({"ended_at": START}, {"started_at": START}):
        assert absent(unseen(**facts), WALL) == ("missing_field", "duration")


def test_two_places_that_differ_are_a_conflict() -> None:
    one = unseen(timed_out=True, wall_time_s=5.0, reward=1.0)
    assert one.session.attempt is not None
    one.session.attempt.conflicts = ["timed_out", "wall_time_s", "reward"]
    for path in (TIMED_OUT, WALL, "verification.reward"):
        assert detail(one, path)["conflict"] is True


CASES = (
    Case("counts that agree are no conflict", ran(EDIT, summary=HarnessSummary(tool_calls=1)), CALLS,
         detail={"method": "harness", "jsonl_count": 1, "conflict": False}),
    Case("zero is a count", unseen(summary=HarnessSummary(turns=0, touched_files=[])), TURNS, 0),
    Case("zero is a count", unseen(summary=HarnessSummary(touched_files=[])), TOUCHED, []),
    Case("zero is a count", unseen(summary=HarnessSummary(touched_files=[])), DIFF, 0),
    Case("zero is a count", unseen(patch=[]), TOUCHED, []),
    Case("a final failure of a solved trial contradicts it",
         unseen(reward=1.0, localization={"finalFailureMode": "stuck"}), "infra.final_failure_mode", "stuck",
         {"inconsistent": True}),
    Case("a cost is the sessions own and the harness stands beside", ran(say("a", **PRICED), cost_usd=0.9), COST, 0.5,
         some={"harness": 0.9}),
    Case("stdout without phases is no missing stdout", unseen(kinds=["stdout"]), PHASES, [], {"instrumented": False}),
    Case("stdout without phases is no missing stdout", unseen(reward=1.0), PHASES,
         Absent("missing_artifact", "stdout")),
    Case("stdout without phases is no missing stdout", unseen(kinds=["stdout"]), TRANSITIONS,
         Absent("missing_artifact", "no_phases_and_no_calls")),
    *(Case("the harness count stands alone without a transcript", unseen(summary=COUNTED), path, told,
           {"method": "harness"})
      for path, told in [(TURNS, 9), (CALLS, 8), (EDITS, 7)]),
    *(Case("without summary patch or transcript stdout is missing", unseen(reward=1.0), path,
           Absent("missing_artifact", "stdout"))
      for path in [TURNS, CALLS, EDITS, TOUCHED, DIFF]),
    *(Case("files that differ without edit calls were changed through the shell", one, BASH, expected)
      for one, expected in [
        (unseen(summary=HarnessSummary(edit_calls=0, touched_files=[("a.py", 1)])), True),
        (unseen(summary=HarnessSummary(edit_calls=1, touched_files=[("a.py", 1)])), False),
        (unseen(summary=HarnessSummary(edit_calls=0, touched_files=[])), False),
        (ran(SCRIPT, patch=[patched("a.py")]), True),
        (ran(EDIT, SCRIPT, patch=[patched("a.py")]), False),
      ]),
    *(Case("an attempt timed out", unseen(**facts), TIMED_OUT, expected, more)
      for facts, expected, more in [
        ({"timed_out": True}, True, {}),
        ({"timed_out": False, "wall_time_s": 9.0, "knobs": {"timeout_s": 5}}, False, {}),
        ({"wall_time_s": 5.0, "knobs": {"timeout_s": 5}}, True, {"method": "inferred"}),
        ({"wall_time_s": 9.0, "agent_time_s": 5.5, "knobs": {"timeout_s": 5}}, True, {"method": "inferred"}),
      ]),
    *(Case("a time out that nobody tells is a missing field", unseen(**facts), TIMED_OUT,
           Absent("missing_field", "timed_out"))
      for facts in [
        {},
        {"wall_time_s": 4.0, "knobs": {"timeout_s": 5}},
        {"wall_time_s": 9.0},
        {"wall_time_s": 9.0, "agent_time_s": 4.0, "knobs": {"timeout_s": 5}},
      ]),
    *(Case("a final failure that is not told", unseen(**facts), "infra.final_failure_mode", Absent(*expected))
      for facts, expected in [
        ({"reward": 1.0}, ("not_applicable", "solved")),
        ({"reward": 1.0, "localization": {}}, ("not_applicable", "solved")),
        ({"reward": 0.0}, ("missing_artifact", "harbor_result")),
        ({"reward": 0.0, "localization": {}}, ("missing_field", "finalFailureMode")),
        ({"reward": 0.0, "localization": {"finalFailureMode": 5}}, ("missing_field", "finalFailureMode")),
      ]),
    *(Case("the harness tells the cost that the trace does not",
           ran(*parts, cost_usd=0.9) if parts else unseen(cost_usd=0.9), COST, 0.9, {"method": "harness"})
      for parts in [[], [say("a")]]),
    *(Case("what only the transcript tells waits for it",
           unseen(summary=COUNTED, reward=1.0, input_tokens=5, output_tokens=5, kinds=["stdout", "result_json"]), path,
           Absent("missing_artifact", "session_jsonl"))
      for path in [
        "reasoning.has_reasoning_blocks",
        "reasoning.reasoning_tokens_total",
        "behavior.tool_sequence[]",
        "behavior.files_searched_before_edit",
        "behavior.files_read_before_edit",
        "behavior.edit_to_read_ratio",
        "tokens.cache_read_tokens",
        "tokens.cache_write_tokens",
        "tokens.context_growth_curve[]",
        "tokens.cache_read_ratio",
      ]),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case(case: Case) -> None:
    case.check()
