"""Trials of the harness of Agent Signals as wholes: attempts in order, the sessions that were collected and those
that were
not, and what the doctor says of these.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli.doctor import checks
from agentsignals.ingest import pipeline
from agentsignals.store import Store
from agentsignals.store.query import rows as asked
from tests.golden import SAMPLES

RUN = SAMPLES / "subq-eval" / "run-7"
TRIAL = "acme__tools-12"


def asks(store: Path, query: str) -> list[dict[str, Any]]:
    names, found = asked(Store(store), query)
    return [dict(zip(names, r, strict=True)) for r in found]


def attempts(folder: Path, store: Path) -> list[dict[str, Any]]:
    pipeline.analyze([str(folder)], store, jobs=1)
    return asks(store, "SELECT * FROM attempts ORDER BY trial_id, attempt_index")


def a_copy(tmp_path: Path, *left_out: str) -> Path:
    run = tmp_path / "run-7"
    shutil.copytree(RUN, run)
    for name in left_out:
        place = run / TRIAL / name
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    return run


def values(store: Path, session_id: str) -> dict[str, tuple[Any, str | None, str | None]]:
    found = asks(store, f"SELECT signal, value, absent, absent_detail FROM signals WHERE session_id = '{session_id}'")
    return {r["signal"]: (json.loads(r["value"] or "null"), r["absent"], r["absent_detail"]) for r in found}


def test_the_attempts_of_a_trial_are_rows_in_order_each_with_its_own_figures(tmp_path: Path) -> None:
    first, retry = attempts(RUN, tmp_path / "s")
    assert [(r["session_id"], r["attempt_index"], r["is_last"]) for r in (first, retry)] == [
        ("pi-0", 0, False),
        ("pi-1", 1, True),
    ]
    assert first["trial_id"] == retry["trial_id"]
    assert [r["effective_tool_cap"] for r in (first, retry)] == [30, 60]
    assert [json.loads(r["facts"])["summary"]["turns"] for r in (first, retry)] == [7, 4]
    names = ("agent_type", "model_id", "dataset", "concurrency", "timeout_s", "task_id", "run_id")
    for row in (first, retry):
        assert [row[n] for n in names] == [
            "subq", "anthropic/claude-sonnet-4", "swebench-verified@1.0", 8, 3000, TRIAL, "run-7",
        ]  # fmt: skip


def test_the_verdict_is_of_the_last_attempt(tmp_path: Path) -> None:
    first, retry = attempts(RUN, tmp_path / "s")
    assert (first["reward"], first["patch_outcome_label"], first["timed_out"]) == (None, None, None)
    assert (retry["reward"], retry["patch_outcome_label"], retry["timed_out"]) == (0.0, "partial_patch", False)
    assert (retry["fail_to_pass_count"], retry["fail_to_fail_count"], retry["pass_to_pass_count"]) == (1, 1, 2)


def test_sessions_in_a_trial_are_of_the_eval_context_whatever_their_format(tmp_path: Path) -> None:
    attempts(RUN, tmp_path / "s")
    assert asks(tmp_path / "s", "SELECT DISTINCT format, context FROM sessions") == [
        {"format": "pi", "context": "eval"}
    ]


def test_attempts_without_a_transcript_are_rows_and_what_it_would_tell_is_absent(tmp_path: Path) -> None:
    first, retry = attempts(a_copy(tmp_path, "sessions"), tmp_path / "s")
    assert [r["has_transcript"] for r in (first, retry)] == [False, False]
    known = values(tmp_path / "s", retry["session_id"])
    for signal in ("tokens.input_tokens_total", "reasoning.has_reasoning_blocks", "behavior.tool_sequence[]"):
        assert known[signal] == (None, "missing_artifact", "session_jsonl"), signal
    assert known["behavior.turn_count"][0] == 4
    assert known["behavior.bash_mediated_edits"][0] is True
    assert known["behavior.diff_lines"][0] == 16


def test_phases_are_there_without_a_transcript(tmp_path: Path) -> None:
    """The two gaps of the seed are two: phases are printed while the agent works."""
    first, retry = attempts(a_copy(tmp_path, "sessions"), tmp_path / "s")
    assert values(tmp_path / "s", first["session_id"])["reasoning.phase_transitions[]"][0] == ["explore", "implement"]
    (row,) = values(tmp_path / "s", retry["session_id"])["reasoning.plannotator_phases[]"][0]
    assert (row["phase"], row["line_no"], row["source"]) == ("verify", 11, "stdout")


def test_a_trial_without_a_result_is_what_was_printed(tmp_path: Path) -> None:
    found = attempts(a_copy(tmp_path, "result.json"), tmp_path / "s")
    assert [(r["session_id"], r["attempt_index"]) for r in found] == [("pi-0", 0), ("pi-1", 1)]
    assert [r["agent_type"] for r in found] == ["subq", "subq"], "the folder names the run"


def test_an_output_of_phases_alone_is_an_attempt_with_its_session(tmp_path: Path) -> None:
    run = a_copy(tmp_path, "result.json", "verifier", "sessions/s1.jsonl")
    (run / TRIAL / "stdout.txt").write_text('agent: {"event":"plannotator-phase","phase":"explore"}\n')
    (only,) = attempts(run, tmp_path / "s")
    assert (only["session_id"], only["has_transcript"]) == ("pi-0", True)
    assert values(tmp_path / "s", "pi-0")["reasoning.phase_transitions[]"][0] == ["explore"]


def test_a_report_or_a_log_without_a_trial_is_no_trace(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    shutil.copy(RUN / TRIAL / "verifier" / "report.json", tmp_path / "x" / "report.json")
    (tmp_path / "x" / "stdout.txt").write_text("words\n")
    summary = pipeline.analyze([str(tmp_path / "x")], tmp_path / "s", jobs=1)
    assert (summary.artifacts, summary.other_files, summary.sessions) == (0, 2, 0)


def test_an_output_in_a_folder_of_the_trial_is_the_trials(tmp_path: Path) -> None:
    run = a_copy(tmp_path)
    (run / TRIAL / "agent").mkdir()
    (run / TRIAL / "stdout.txt").rename(run / TRIAL / "agent" / "stdout.txt")
    assert [r["session_id"] for r in attempts(run, tmp_path / "s")] == ["pi-0", "pi-1"]


def test_an_output_that_says_nothing_in_its_head_is_read_all_the_same(tmp_path: Path) -> None:
    run = a_copy(tmp_path)
    log = run / TRIAL / "stdout.txt"
    log.write_text("building\n" * 20_000 + log.read_text())
    assert len(attempts(run, tmp_path / "s")) == 2


def test_a_value_cites_the_line_it_was_printed_on(tmp_path: Path) -> None:
    attempts(RUN, tmp_path / "s")
    (event,) = asks(
        tmp_path / "s", "SELECT kind, line FROM events WHERE session_id = 'pi-1' AND text LIKE '%Tool calls%'"
    )
    assert event == {"kind": "harness", "line": 13}


@pytest.mark.parametrize(
    ("left_out", "status", "told"),
    [((), "ok", "2, each with"), (("sessions/s1.jsonl",), "problem", "1 of 2"), (("sessions",), "problem", "2 of 2")],
)
def test_the_doctor_says_how_many_conversations_are_missing_and_what_to_add(
    tmp_path: Path, left_out: tuple[str, ...], status: str, told: str
) -> None:
    attempts(a_copy(tmp_path, *left_out), tmp_path / "s")
    (found,) = [c for c in checks(str(tmp_path / "s")) if c.name == "attempts"]
    assert found.status == status
    assert found.finding.startswith(told)
    assert ('"destination": "sessions"' in found.advice) == (status == "problem")


def test_the_doctor_has_nothing_to_say_of_attempts_where_there_are_none(tmp_path: Path) -> None:
    pipeline.analyze([str(SAMPLES / "pi")], tmp_path / "s", jobs=1)
    assert [c for c in checks(str(tmp_path / "s")) if c.name == "attempts"] == []
