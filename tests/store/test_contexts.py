"""Two contexts in one store: product sessions and eval runs, each with its own signals and nothing of the other's."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from agentsignals.cli import demo_corpus
from agentsignals.ingest import pipeline
from agentsignals.ingest.measure import explain
from agentsignals.signals import catalog
from agentsignals.store import Store
from tests.golden import SAMPLES
from tests.questions.stores import rows_of as rows

TRIAL = SAMPLES / "swe-bench" / "trial"

NEEDS_AN_ARTIFACT = {
    *(f"loop.{n}" for n in ("visible_pass", "hidden_pass", "task_pass", "hidden_pass_rate")),
    *(f"loop.{n}" for n in ("visible_hidden_gap", "valid_python_rate", "import_mistake", "import_mistake_rate")),
    *(f"loop.{n}" for n in ("hardcoding", "hardcoding_rate", "test_fixation", "off_task_continuation")),
    *(f"loop.{n}" for n in ("first_failure_error", "condition", "negative_projection")),
}
COMPUTED = {
    *(f"treatment.{n}" for n in ("attempt1_tool_cap", "retry_tool_cap", "agent_type", "model_id", "dataset")),
    *(f"treatment.{n}" for n in ("concurrency", "timeout_s")),
    *(f"behavior.{n}" for n in ("turn_count", "tool_call_count", "edit_calls", "bash_mediated_edits", "diff_lines")),
    *(f"behavior.{n}" for n in ("touched_files[]", "tool_sequence[]", "localization_mode", "localized_correct_file")),
    *(f"behavior.{n}" for n in ("files_searched_before_edit", "files_read_before_edit", "edit_to_read_ratio")),
    *(f"reasoning.{n}" for n in ("plannotator_phases[]", "phase_transitions[]", "has_reasoning_blocks")),
    "reasoning.reasoning_tokens_total",
    *(f"verification.{n}" for n in ("reward", "patch_outcome_label", "patch_applies", "patch_present")),
    *(f"verification.{a}_to_{b}_count" for a in ("fail", "pass") for b in ("fail", "pass")),
    *(f"verification.{n}" for n in ("partial_fix_rate", "regression_rate")),
    *(f"infra.{n}" for n in ("wall_time_s", "timed_out", "attempt_index", "recovery_mode", "final_failure_mode")),
    *(f"tokens.{n}" for n in ("input_tokens_total", "output_tokens_total", "cache_read_tokens", "cache_write_tokens")),
    *(f"tokens.{n}" for n in ("context_growth_curve[]", "cost_usd", "cache_read_ratio", "cost_per_resolved_task")),
    "anticipation.first_tool_precision",
    "loop.attempts_used",
    "loop.retry_recovery",
}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store over one folder with product sessions and a trial in it."""
    folder = tmp_path_factory.mktemp("mixed")
    demo_corpus.make_corpus(folder / "traces")
    shutil.copytree(TRIAL, folder / "traces" / "runs" / "acme__tools-12" / "one")
    pipeline.analyze([str(folder / "traces")], folder / "store", jobs=1)
    return folder / "store"


def test_the_inventory_has_every_eval_signal_with_its_status() -> None:
    status = {row["path"]: row["status"] for row in catalog.inventory(context="eval")}
    assert {p for p in NEEDS_AN_ARTIFACT if status[p] == "needs an artifact"} == NEEDS_AN_ARTIFACT
    assert {p for p in COMPUTED if status[p] == "computed"} == COMPUTED
    assert not {r["path"] for r in catalog.inventory(context="product")} & {p for p in status if "treatment" in p}


def test_sessions_of_one_folder_have_the_context_they_are_from(mixed: Path) -> None:
    found = {r["context"]: r["n"] for r in rows(mixed, "SELECT context, count(*) AS n FROM sessions GROUP BY context")}
    assert found == {"product": demo_corpus.SESSIONS, "eval": 1}


def test_no_signal_of_one_context_is_computed_in_the_other(mixed: Path) -> None:
    known = {s.path: s.context for s in catalog.catalogue().values()}
    query = "SELECT DISTINCT s.context, v.signal FROM signals v JOIN sessions s USING (session_id)"
    found = [(r["context"], known[r["signal"]]) for r in rows(mixed, query)]
    assert set(found) == {("product", "product"), ("product", "both"), ("eval", "eval"), ("eval", "both")}


def test_every_session_has_every_signal_of_its_context_once(mixed: Path) -> None:
    wanted = {
        context: {s.path for scope in ("session", "history") for s in catalog.plan(context, scope) if s.level != "turn"}
        for context in ("product", "eval")
    }
    query = (
        "SELECT s.context, v.session_id, v.signal FROM signals v JOIN sessions s USING (session_id)"
        " WHERE v.turn IS NULL AND v.level <> 'turn'"
    )
    found: dict[tuple[str, str], Counter[str]] = {}
    for row in rows(mixed, query):
        found.setdefault((row["context"], row["session_id"]), Counter())[row["signal"]] += 1
    for (context, _), counted in found.items():
        assert set(counted.values()) == {1}
        assert set(counted) <= wanted[context]
    assert any(set(counted) == wanted["eval"] for (context, _), counted in found.items() if context == "eval")


def test_values_over_all_sessions_are_of_one_context_each(mixed: Path) -> None:
    found = rows(mixed, "SELECT signal, detail FROM signals WHERE level = 'corpus'")
    of_eval = {r["signal"] for r in found if '"context":"eval"' in (r["detail"] or "")}
    of_product = {r["signal"] for r in found} - of_eval | {s.path for s in catalog.plan("product", "corpus")}
    assert {s.path for s in catalog.plan("eval", "corpus")} == of_eval
    assert {s.path for s in catalog.plan("product", "corpus")} == of_product
    lengths = [json.loads(r["detail"]) for r in found if r["signal"] == "corpus.median_session_length_events"]
    assert sorted(d["n"] for d in lengths if "context" not in d) == [demo_corpus.SESSIONS]


def test_a_store_of_eval_runs_alone_has_no_product_values(tmp_path: Path) -> None:
    shutil.copytree(TRIAL, tmp_path / "runs" / "one")
    pipeline.analyze([str(tmp_path / "runs")], tmp_path / "store", jobs=1)
    known = {s.path: s.context for s in catalog.catalogue().values()}
    found = {known[r["signal"]] for r in rows(tmp_path / "store", "SELECT DISTINCT signal FROM signals")}
    assert found == {"eval", "both"}


def test_an_eval_run_is_nobodys_earlier_session(mixed: Path, tmp_path: Path) -> None:
    demo_corpus.make_corpus(tmp_path / "traces")
    pipeline.analyze([str(tmp_path / "traces")], tmp_path / "store", jobs=1)
    query = "SELECT session_id, value FROM signals WHERE signal = 'user.prior_sessions_same_repo' ORDER BY 1"
    assert rows(mixed, query) == rows(tmp_path / "store", query)


def test_a_value_of_an_attempt_cites_the_line_of_its_report(mixed: Path) -> None:
    (session,) = [r["session_id"] for r in rows(mixed, "SELECT session_id FROM sessions WHERE context = 'eval'")]
    found = explain(Store(mixed), session, "verification.fail_to_pass_count")
    assert [Path(found.artifacts[i.artifact or ""]).name for i in found.evidence] == ["report.json"]
