"""Trials of subq-eval, the eval harness of Agent Signals: results, test reports, configuration, history, output.

No sample of it is public: the grammar is the one inferred in design/signals.md#tool-classes, and names are taken in
camel case and snake case alike.
"""

import posixpath
import re

from agentsignals.formats import Claim, Format, patch, read_by, swe_bench_text
from agentsignals.formats.columns import holds_conversations, may_hold
from agentsignals.formats.instances import is_bare_report
from agentsignals.formats.records import Head

CAPS = frozenset(("attempt1ToolCap", "attempt1_tool_cap", "retryToolCap", "retry_tool_cap"))
MODES = frozenset(("attempt1Mode", "attempt1_mode", "trialRecoveryMode", "trial_recovery_mode", "finalFailureMode",
                   "final_failure_mode"))  # fmt: skip
SIGNAL = frozenset(("localization", "localizationSignal", "localization_signal"))
_ENDED = frozenset(("timed_out", "timedOut"))
_APPLIED = frozenset(("patch_applies", "patchApplies"))
_LASTED = frozenset(("duration", "duration_s", "durationS", "durationSeconds", "duration_ms", "durationMs"))
TRANSITIONS = frozenset(("FAIL_TO_PASS", "PASS_TO_FAIL", "PASS_TO_PASS", "FAIL_TO_FAIL"))
RUN_ID = frozenset(("runId", "run_id", "run"))
_HISTORY_ALSO = frozenset(("dataset", "concurrency", "model", "resolved", "timeout"))
_OF_OTHERS = frozenset(("task_name", "trial_name", "is_resolved", "spans", "messages", "steps"))
_OF_ROWS = frozenset(("base_commit", "problem_statement", "patch", "test_patch", "repo"))
_OF_ATTEMPTS = frozenset(("type", "instance_id"))
_RESULT_FACTS = 2

PRINTED = re.compile(r"\[subq-eval\]\s{0,9}(?:Turns|Tool calls|Edit calls|Touched files|Attempt)\b")
PHASE = re.compile(r'"event"\s{0,9}:\s{0,9}"plannotator-phase"')


def claims(head: Head) -> Claim | None:
    """The JSON files: a result, a report of tests at its top level, the configuration, the history of runs."""
    document = head.document
    if not document or (may_hold(document) and holds_conversations(head)):
        return None
    keys = document.keys()
    folder = posixpath.dirname(head.path)
    if isinstance(document.get("event"), str) and (PHASE.search(head.text) or PRINTED.search(head.text)):
        return Claim(keys=[], root=folder, gathers=True)  # an output whose first line is an event
    # A reward, and two things more of those that this harness writes beside it.
    facts = sum(1 for names in (_ENDED, _APPLIED, _LASTED, SIGNAL | MODES) if keys & names)
    if "reward" in keys and not keys & _OF_OTHERS and facts >= _RESULT_FACTS:
        return Claim(keys=[], root=folder, gathers=True)
    # The transitions of tests, without an instance's id around them or in the folder's name, as SWE-bench has it, and
    # no dataset's row.
    status = document.get("tests_status", document)
    is_of_swe_bench = bool(keys & _OF_ROWS) or is_bare_report(document, head.path)
    if not is_of_swe_bench and isinstance(status, dict) and len(TRANSITIONS & status.keys()) >= 2:
        return Claim(keys=[], companion=True)
    is_history = bool(head.records) and all(
        isinstance(row.get("agent"), str)
        and row.keys() & RUN_ID
        and row.keys() & _HISTORY_ALSO
        and not row.keys() & _OF_ATTEMPTS
        for row in head.records
    )
    return Claim(keys=[], lends=folder) if keys & CAPS or is_history else None


FORMAT = Format(name="subq-eval", version=2, claims=claims, snapshots=False)


def claims_of_output(head: Head) -> Claim | None:
    """Claim text with `[subq-eval]` lines and phase events. A `stdout.txt` without any in its head is read inside of a
    trial, where they may come late."""
    folder, name = posixpath.split(head.path)
    if "[subq-eval]" in head.text and PRINTED.search(head.text):
        return Claim(keys=[], root=folder, gathers=True)
    if "plannotator-phase" in head.text and PHASE.search(head.text):
        return Claim(keys=[], root=folder, gathers=True)
    if name != "stdout.txt" or any(other.claims(head) is not None for other in (patch, swe_bench_text)):
        return None
    return Claim(keys=[], companion=True)


SUBQ_EVAL_LOG_FORMAT = Format(
    name="subq-eval-log",
    version=1,
    claims=claims_of_output,
    read=read_by("subq_eval.reader", "read_stdout"),
    of_json=False,
    snapshots=False,
)
