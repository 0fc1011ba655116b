"""Trials of subq-eval, the eval harness of Agent Signals: results, test reports, configuration, history, output.

No sample of it is public: the grammar is the one inferred in design/signals.md#tool-classes, and names are taken in
camel case
and snake case alike.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import KeysView

from agentsignals.formats import Card, Claim, Format, Material, read_by
from agentsignals.formats.head import Head

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
    if not document:
        return None
    keys = document.keys()
    folder = posixpath.dirname(head.path)
    if isinstance(document.get("event"), str) and (PHASE.search(head.text) or PRINTED.search(head.text)):
        return Claim(keys=[], root=folder, gathers=True)  # an output whose first line is an event
    if _is_result(keys):
        return Claim(keys=[], root=folder, gathers=True)
    if _is_report(document):
        return Claim(keys=[], companion=True)
    if keys & CAPS:
        return Claim(keys=[], lends=folder)
    return Claim(keys=[], lends=folder) if _is_history(head) else None


def _is_result(keys: KeysView[str]) -> bool:
    """A reward, and two things more of those that this harness writes beside it."""
    if "reward" not in keys or keys & _OF_OTHERS:
        return False
    facts = (_ENDED, _APPLIED, _LASTED, SIGNAL | MODES)
    return sum(1 for names in facts if keys & names) >= _RESULT_FACTS


def _is_report(document: dict[str, object]) -> bool:
    """The transitions of tests, without the id of an instance around them as SWE-bench has it, and no dataset's row."""
    if document.keys() & _OF_ROWS:
        return False
    status = document.get("tests_status", document)
    return isinstance(status, dict) and len(TRANSITIONS & status.keys()) >= 2


def _is_history(head: Head) -> bool:
    rows = head.records
    return bool(rows) and all(
        isinstance(r.get("agent"), str)
        and r.keys() & RUN_ID
        and r.keys() & _HISTORY_ALSO
        and not r.keys() & _OF_ATTEMPTS
        for r in rows
    )


CARD = Card(
    material=(Material("documents", "the harness's description"),),
    limits=(
        "No real run was seen: there is no public one.",
        "What a harness did not collect of a conversation is absent, and says so.",
    ),
)
FORMAT = Format(
    name="subq-eval", version=2, claims=claims, read=read_by("subq_eval.reader"), snapshots=False, card=CARD
)
