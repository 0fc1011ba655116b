"""The inventory of the four seeds, name by name: written out, so that code and catalogue can't be wrong together."""

from __future__ import annotations

import pytest

from agentsignals.errors import CatalogError
from agentsignals.signals.catalog import catalogue, inventory

NAMES = {
    "treatment": ("attempt1_tool_cap retry_tool_cap agent_type model_id dataset concurrency timeout_s"),
    "behavior": (
        "turn_count tool_call_count edit_calls bash_mediated_edits touched_files[] diff_lines "
        "tool_sequence[] localization_mode localized_correct_file files_searched_before_edit "
        "files_read_before_edit edit_to_read_ratio"
    ),
    "reasoning": (
        "plannotator_phases[] phase_transitions[] has_reasoning_blocks reasoning_tokens_total "
        "plan_steps_detected self_correction_count"
    ),
    "verification": (
        "reward patch_outcome_label fail_to_pass_count pass_to_fail_count pass_to_pass_count "
        "fail_to_fail_count patch_applies patch_present partial_fix_rate regression_rate"
    ),
    "infra": ("wall_time_s timed_out attempt_index recovery_mode final_failure_mode"),
    "tokens": (
        "input_tokens_total output_tokens_total cache_read_tokens cache_write_tokens "
        "context_growth_curve[] cost_usd cache_read_ratio cost_per_resolved_task"
    ),
    "anticipation": (
        "session_attribution task_paraphrase_accuracy plan_optimality first_tool_precision scope_drift "
        "clarification_sought assumption_count prompt_underspecification conflation_turn "
        "instruction_adherence goal_alignment_at_close"
    ),
    "dynamics": (
        "cp_curve[] max_cp drift_onset_turn correction_ratio assumption_lock_turn gd_inaction gd_actions "
        "plan_ged repetition_rate user_msg_length_slope intent_coherence_curve[] session_failure_mode"
    ),
    "user": (
        "session_outcome output_applied changes_reverted turn_ratio user_turn_count user_msg_lengths[] "
        "turn_timestamps[] region_edit_history[] region_re_edit_count region_edit_convergence[] "
        "agent_hedging_rate agent_hedging_curve[] confirmation_requests time_to_first_edit_s "
        "per_turn_latency_s[] compaction_events[] model_changes[] tool_error_rate tool_errors_by_type[] "
        "tool_result_sizes[] prior_sessions_same_repo prior_sessions_same_region "
        "session_reopened_within_s"
    ),
    "corpus": (
        "autonomy_ratio error_rate tool_mix_entropy median_session_length_events read_before_edit_rate "
        "cost_per_session neg_pct_turn5 first_message_pattern output_input_token_ratio "
        "share_messages_le_20_chars sentiment_label neutral_share pure_neutral_session_share "
        "neg_by_turn_curve[] recovery_rate post_negative_shift neg_share_by_model[] "
        "top_duplicate_messages[] error_recovery_rate tool_class_mix cross_dataset_variance[] "
        "labeller_agreement"
    ),
    "chat": (
        "turns_per_session tool_calls_per_turn file_types_touched tool_composition_by_position "
        "pushback_type hard_interruption pushback_rate agent_clarification_stop agent_percentage "
        "coding_mode code_survival_rate agent_self_overwrite_share vulnerabilities_introduced_per_kloc "
        "cost_per_100_committed_lines session_success_score user_persona prompt_intent prompt_language "
        "repo_domain prompt_topic_cluster turn_autonomy_s"
    ),
    "loop": (
        "visible_pass hidden_pass task_pass hidden_pass_rate valid_python_rate attempts_used "
        "retry_recovery import_mistake import_mistake_rate hardcoding hardcoding_rate test_fixation "
        "visible_hidden_gap marker_score mean_marker_score off_task_continuation first_failure_error "
        "condition negative_projection"
    ),
}
"""The last part of every path of the inventory, by its group; `[]` is a list over the session."""
STATUSES = {"computed", "needs a judge", "needs a repository", "needs an artifact", "blocked upstream"}


def named() -> set[str]:
    return {f"{group}.{name}" for group, names in NAMES.items() for name in names.split()}


def test_every_signal_of_the_inventory_is_declared_and_every_other_says_that_it_is_ours() -> None:
    declared = {s.path: s.origin for s in catalogue().values()}
    assert len(named()) == 156
    assert named() - declared.keys() == set()
    assert {origin for path, origin in declared.items() if path not in named()} == {"agentsignals", "this project"}


def test_each_is_in_the_inventory_with_a_status_and_a_meaning() -> None:
    rows = {row["path"]: row for row in inventory()}
    assert rows.keys() >= named() and len(rows) == len(catalogue())
    assert {row["status"] for row in rows.values()} <= STATUSES
    assert [p for p, row in rows.items() if not (row["description"] and row["unit"] and row["origin"])] == []


def test_a_status_that_is_none_is_refused() -> None:
    with pytest.raises(CatalogError, match="no status 'judged'"):
        inventory(status="judged")


def test_filters_of_the_inventory_narrow_it() -> None:
    every = inventory()
    for given in ({"context": "eval"}, {"high_value": True}, {"status": "needs a judge"}, {"text": "hedg"}):
        found = inventory(**given)  # type: ignore[arg-type]  # one filter at a time
        assert 0 < len(found) < len(every), given
    assert {row["context"] for row in inventory(context="eval")} == {"eval", "both"}
