"""The comparison of a store's eval runs, as findings about them want it."""

from __future__ import annotations

from agentsignals.analysis.compare import Comparison, compare, outcome_rule, queries
from agentsignals.analysis.ranking import shown
from agentsignals.analysis.study import Inputs
from agentsignals.errors import UsageError

RULE = outcome_rule("resolved")
QUERIES = queries(RULE)
OF_ATTEMPTS = (
    "SELECT session_id, task_id, attempt_index, model_id, agent_type, outcome, reward, exit_status FROM attempts"
)


def compared(inputs: Inputs) -> Comparison | None:
    """The candidates of the store; None where there are none, or nobody recorded who was tried."""
    if not inputs.rows["attempts"]:
        return None
    try:
        return compare(RULE, inputs.rows)
    except UsageError:  # of what the attempts don't record
        return None


def named(candidate: str) -> str:
    """A candidate's name in a sentence."""
    return shown(candidate, 80)
