"""Verification: what the task's tests say of the patch, as the verifier recorded it (design/formats.md#swe-bench)."""

from __future__ import annotations

import math
from typing import Any

from agentsignals.catalog import Measured, signal
from agentsignals.edits.patch_outcome import facts_of, judged, patch_presence
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView

_RESULTS = frozenset(("result_json", "verifier_report", "harbor_result", "attempt_log"))
"""The kinds of files that may carry a reward."""
_RULES = {
    1: "no patch",
    2: "the patch does not apply, or the verifier crashed or timed out",
    3: "no counts of tests: a reward of 1 decides alone",
    4: "every target fixed, nothing broken, reward 1",
    5: "a target fixed, but not all, or something broken",
    6: "no target fixed and something broken",
    7: "no target fixed, nothing broken, reward not 1",
    8: "reward and counts contradict each other",
}


@signal(
    "verification.reward",
    type="float",
    unit="reward",
    context="eval",
    level="attempt",
    origin="Agent Signals",
    source="verifier",
    harness=True,
    pitfalls="Hides partial progress: read patch_outcome_label beside it. Not always 0 or 1: `non_binary`. A crashed"
    " verifier gives 0 too.",
    why="Whether the task is solved: every test to be fixed passes and none broke.",
    hindsight="the verdict",
)
def reward(view: SessionView, why: Evidence) -> Measured | Absent:
    """The reward as the harness or verifier recorded it; never computed from counts."""
    attempt = view.session.attempt
    if attempt is None or not (_RESULTS & set(attempt.kinds) or attempt.reward is not None):
        return Absent("missing_artifact", "result_json")
    value = attempt.reward
    if value is None or math.isnan(value):
        return Absent("missing_field", "reward")
    why.support(attempt.saying("reward"))
    detail: dict[str, Any] = {}
    if value not in (0, 1):
        detail["non_binary"] = True
    if attempt.rewards and len(attempt.rewards) > 1:
        detail["rewards"] = attempt.rewards
    if judged(facts_of(attempt)).inconsistent:
        detail["inconsistent"] = True
    if "reward" in attempt.conflicts:
        detail["conflict"] = True
    return Measured(float(value), detail)


@signal(
    "verification.patch_outcome_label",
    type="enum",
    unit="correct_patch|partial_patch|regressive_patch|no_effect_patch|unverifiable",
    context="eval",
    level="attempt",
    origin="Agent Signals",
    source="verifier",
    harness=True,
    high_value=True,
    pitfalls="Speaks of the listed tests only. `inconsistent`: reward and counts contradict each other. An attempt"
    " without a patch has no label: verification.patch_present counts those.",
    why="Tells progress and regression apart, which a reward of 0 merges.",
    hindsight="the verdict",
)
def patch_outcome_label(view: SessionView, why: Evidence, touched_files: list[str] | Absent) -> Measured | Absent:
    """What became of the patch, by tests fixed and tests broken: the first of eight rules that matches."""
    attempt = view.session.attempt
    if attempt is None:
        return Absent("missing_artifact", "verifier_report")
    facts = facts_of(attempt, _inside(view, touched_files))
    verdict = judged(facts)
    for name in ("verification", "reward", "patch"):
        why.support(attempt.saying(name))
    why.rule(f"rule {verdict.rule}: {_RULES[verdict.rule]}")
    if isinstance(verdict.outcome, Absent):
        return verdict.outcome
    detail: dict[str, Any] = {"rule": verdict.rule, "method": verdict.method}
    if verdict.inconsistent:
        detail["inconsistent"] = True
    if attempt.verification is not None and attempt.verification.layout == "B" and facts.targets is not None:
        detail["targets"] = "assumed"
    return Measured(verdict.outcome, detail)


@signal(
    "verification.patch_applies",
    type="bool",
    unit="flag",
    context="eval",
    level="attempt",
    origin="Agent Signals",
    source="verifier",
    harness=True,
    pitfalls="False makes every count of tests absent. One value on the project's corpus.",
    hindsight="the verdict",
)
def patch_applies(view: SessionView, why: Evidence, touched_files: list[str] | Absent) -> bool | Absent:
    """Whether the patch applied cleanly to the repository."""
    attempt = view.session.attempt
    if attempt is None:
        return Absent("missing_artifact", "verifier_report")
    if patch_presence(attempt, _inside(view, touched_files))[0] is False:
        return Absent("not_applicable", "no_patch")
    tests = attempt.verification
    if tests is None or tests.patch_applies is None:
        has_result = tests is not None or _RESULTS & set(attempt.kinds)
        return Absent("missing_field", "patch_applies") if has_result else Absent("missing_artifact", "verifier_report")
    why.support(attempt.saying("verification"))
    return tests.patch_applies


@signal(
    "verification.patch_present",
    type="bool",
    unit="flag",
    context="eval",
    level="attempt",
    origin="this project",
    source="harness",
    priority="P1",
    harness=True,
    pitfalls="With method edit_log it is what the transcript shows: undone edits count, what scripts did does not.",
    why="Makes attempts that read much and change nothing countable: they have no outcome label.",
)
def patch_present(view: SessionView, why: Evidence, touched_files: list[str] | Absent) -> Measured | Absent:
    """Whether the attempt produced a patch that is not empty."""
    attempt = view.session.attempt
    present, method = (None, "") if attempt is None else patch_presence(attempt, _inside(view, touched_files))
    if attempt is None or present is None:
        return Absent("missing_artifact", "patch")
    why.support(attempt.saying("summary" if method == "harness" else "patch"))
    if method == "edit_log":
        why.support(view.edits)
    return Measured(present, {"method": method})


def _inside(view: SessionView, touched: list[str] | Absent) -> list[str] | Absent:
    """The files of the repository: a note written to the home folder is no patch."""
    return touched if isinstance(touched, Absent) else [path for path in touched if view.in_repo(path)]
