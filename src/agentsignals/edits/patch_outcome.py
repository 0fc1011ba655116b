"""What became of a patch, in one word: the truth table of Agent Signals as ordered rules
(design/signals.md#patch-outcome)."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from agentsignals.model import Absent
from agentsignals.model.attempt import Attempt, Verification

PatchOutcome = Literal["correct_patch", "partial_patch", "regressive_patch", "no_effect_patch", "unverifiable"]


class PatchFacts(Struct, frozen=True, gc=False, kw_only=True):
    """What is known of a patch and its verification. None: not known."""

    present: bool | None = None
    """Whether there is a patch that is not empty; unknown counts as one."""
    applies: bool | None = None
    """Whether it applied cleanly; unknown counts as yes."""
    verifier: Literal["ok", "crashed", "timed_out", "missing"] = "missing"
    reward: float | None = None
    """Solved at 1, not solved at anything else."""
    fixed: int | None = None
    """Tests that should be fixed and were."""
    targets: int | None = None
    """Tests that should be fixed."""
    broken: int | None = None
    """Tests that passed before and fail now."""


class Verdict(Struct, frozen=True, gc=False):
    """A label, or why there is none, and the rule that decided."""

    outcome: PatchOutcome | Absent
    rule: int
    method: Literal["counts", "reward_only", "reward_from_counts", "empty_target_set", "gate"] = "counts"
    inconsistent: bool = False
    """The reward and the counts contradict each other."""


def judged(facts: PatchFacts) -> Verdict:
    """The first rule that matches. Every combination of facts has exactly one label or one reason for none."""
    if facts.present is False:
        return Verdict(Absent("not_applicable", "no_patch"), 1)
    if facts.applies is False or facts.verifier in ("crashed", "timed_out"):
        return Verdict("unverifiable", 2, "gate")
    fixed, targets, broken = facts.fixed, facts.targets, facts.broken
    if facts.verifier == "missing" or fixed is None or targets is None or broken is None:
        if facts.reward == 1:
            return Verdict("correct_patch", 3, "reward_only")
        return Verdict(Absent("missing_artifact", "verifier_report"), 3)
    return _by_counts(facts.reward, fixed, targets, broken)


def _by_counts(reward: float | None, fixed: int, targets: int, broken: int) -> Verdict:
    method: Literal["counts", "reward_from_counts"] = "counts" if reward is not None else "reward_from_counts"
    solved = reward == 1 if reward is not None else fixed == targets > 0 and not broken
    if fixed == targets and not broken and solved:
        return Verdict("correct_patch", 4, method if targets else "empty_target_set")
    if fixed > 0 and (fixed < targets or broken):
        return Verdict("partial_patch", 5, method, inconsistent=solved)
    if fixed == 0 and broken:
        return Verdict("regressive_patch", 6, method, inconsistent=solved)
    if fixed == 0 and targets > 0 and not solved:
        return Verdict("no_effect_patch", 7, method)
    return Verdict("unverifiable", 8, method, inconsistent=True)


def unfixed_targets(verification: Verification, reward: float | None) -> int | None:
    """Tests that should have been fixed and still fail; None when the report lists no tests.

    A report by observed transition (layout B) does not tell targets from other tests that fail before and after: they
    are taken for targets unless the reward says that all targets pass.
    """
    if verification.unfixed is None:
        return None
    if verification.layout == "B" and reward != 1:
        return len(verification.unfixed) + len(verification.still_failing or ())
    return len(verification.unfixed)


def facts_of(attempt: Attempt, touched: list[str] | Absent | None = None) -> PatchFacts:
    """What the harness and the verifier say, and, of `touched`, the transcript."""
    tests = attempt.verification
    present = patch_presence(attempt, touched)[0]
    if tests is None:
        return PatchFacts(present=present, reward=attempt.reward)
    left = unfixed_targets(tests, attempt.reward)
    fixed = len(tests.fixed) if tests.fixed is not None else None
    return PatchFacts(
        present=present,
        applies=tests.patch_applies,
        verifier=tests.status,
        reward=attempt.reward,
        fixed=fixed,
        targets=fixed + left if fixed is not None and left is not None else None,
        broken=len(tests.broken) if tests.broken is not None else None,
    )


def patch_presence(attempt: Attempt, touched: list[str] | Absent | None) -> tuple[bool | None, str]:
    """Whether there is a patch, and how that is known. What the transcript shows counts last: scripts change files
    that it does not name, so a patch that the verifier applied is there."""
    files = attempt.summary.touched_files if attempt.summary is not None else None
    if attempt.patch or attempt.patch_text_bytes:
        return True, "patch"
    if files:
        return True, "harness"
    if attempt.patch is not None or attempt.patch_text_bytes is not None:
        return False, "patch"
    if files is not None:
        return False, "harness"
    applied = attempt.verification is not None and attempt.verification.patch_applies is True
    if isinstance(touched, list) and (touched or not applied):
        return bool(touched), "edit_log"
    return None, ""
