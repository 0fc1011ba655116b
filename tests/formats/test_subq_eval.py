"""What the harness of Agent Signals writes: results, reports, configuration, history. No sample of it is public."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli.doctor import checks
from agentsignals.formats.subq_eval import FORMAT
from agentsignals.formats.subq_eval import SUBQ_EVAL_LOG_FORMAT as LOG
from agentsignals.ingest import pipeline
from agentsignals.model import Attempt
from tests.formats.reading import given
from tests.golden import SAMPLES
from tests.questions.stores import rows_of as asks

RESULT = {"reward": 1.0, "timed_out": False, "duration": 5, "patch_applies": True}


def parts(**files: Any) -> list[Attempt]:
    paths = {name: f"/r/t/{'verifier/' if name == 'report' else ''}{name}.json" for name in files}
    return FORMAT.read([given(one, "subq-eval", paths[name]) for name, one in files.items()]).attempts


# -- results --------------------------------------------------------------------------------------------------------


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


# -- treatment ------------------------------------------------------------------------------------------------------


def printed(text: str | bytes) -> list[Attempt]:
    data = text if isinstance(text, bytes) else text.encode()
    return LOG.read([given(data, "subq-eval-log", "/r/t/stdout.txt")]).attempts


def told(text: str) -> list[tuple[int | None, Any]]:
    """Turns of each attempt by its index."""
    return [(a.attempt_index, a.summary.turns if a.summary else None) for a in printed(text)]


def test_a_history_lends_to_the_runs_beside_it_not_to_those_of_a_folder_whose_name_begins_alike() -> None:
    files = []
    for folder in ("/runs/a", "/runs/ab"):
        files.append(given({**RESULT, "runId": "r"}, "subq-eval", f"{folder}/t/result.json"))
        files.append(given({"runId": "r", "agent": "pi", "model": folder}, "subq-eval", f"{folder}/history.jsonl"))
    lent = {(p.root, p.knobs["model_id"]) for p in FORMAT.read(files).attempts if p.scope == "lent"}
    assert lent == {("/runs/a/t", "/runs/a"), ("/runs/ab/t", "/runs/ab")}


# -- what is printed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "files"),
    [
        ("a.py (3 diff lines)", [("a.py", 3)]),
        ("a.py (3 diff lines), b c/d (1).md (1 diff line)", [("a.py", 3), ("b c/d (1).md", 1)]),
        ("\n  a.py (3 diff lines)\n[subq-eval] b.py (1 diff line)\ndone (4 of 5)\nc.py (2 diff lines)",
         [("a.py", 3), ("b.py", 1)]),
        ("a.py (3 diff lines),\n  b.py (1 diff lines)\n", [("a.py", 3), ("b.py", 1)]),
        ("none", []),
        ("-", []),
        ("0", []),
        ("", []),
        ("a.py", None),
    ],
)  # fmt: skip
def test_touched_files_are_a_list_on_one_line_or_on_many(value: str, files: Any) -> None:
    (found,) = printed(f"[subq-eval] Touched files: {value}")
    assert found.summary is not None
    assert found.summary.touched_files == files


def test_a_line_is_cited_by_its_number_in_a_long_log() -> None:
    text = b"x\n" * 3_000_000 + b"[subq-eval] Turns: 4\n" + b"y\n" * 10 + b"[subq-eval] Tool calls: 2\n"
    (found,) = printed(text)
    assert [s.line for s in found.statements] == [3_000_001, 3_000_012]


RUN = SAMPLES / "subq-eval" / "run-7"
TRIAL = "acme__tools-12"


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


def test_attempts_without_a_transcript_are_rows_and_what_it_would_tell_is_absent(tmp_path: Path) -> None:
    first, retry = attempts(a_copy(tmp_path, "sessions"), tmp_path / "s")
    assert [r["has_transcript"] for r in (first, retry)] == [False, False]
    known = values(tmp_path / "s", retry["session_id"])
    for signal in ("tokens.input_tokens_total", "reasoning.has_reasoning_blocks", "behavior.tool_sequence[]"):
        assert known[signal] == (None, "missing_artifact", "session_jsonl"), signal
    assert known["behavior.turn_count"][0] == 4
    assert known["behavior.bash_mediated_edits"][0] is True
    assert known["behavior.diff_lines"][0] == 16


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
