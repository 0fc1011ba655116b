"""What came of an attempt, on one ladder for all harnesses (design/signals.md#outcome-of-an-attempt)."""

from __future__ import annotations

import math
from typing import Literal

from msgspec import Struct

from agentsignals.edits.patch_outcome import PatchFacts, facts_of, judged
from agentsignals.model import Absent
from agentsignals.model.attempt import Attempt

AttemptOutcome = Literal["solved", "failed", "not_judged", "infrastructure"]


class Ladder(Struct, frozen=True, gc=False):
    """A rung, why, and whether a harness or verifier said so itself."""

    outcome: AttemptOutcome
    reason: str
    inferred: bool = False


def ladder(attempt: Attempt) -> Ladder:
    """The first rung that holds. Whether an outcome is known never rests on the reward's value: what the
    infrastructure or the verifier broke is that with a reward of 1 as with one of 0."""
    if attempt.ending == "infrastructure":
        return Ladder("infrastructure", attempt.exception or attempt.exit_status or "broken off")
    facts = facts_of(attempt)
    reward = None if attempt.reward is None or math.isnan(attempt.reward) else attempt.reward
    if facts.present is False and reward != 1:
        return Ladder("failed", "empty_patch", inferred=reward is None)
    if facts.applies is False and reward != 1:
        return Ladder("failed", "patch_not_applied")
    if facts.verifier in ("crashed", "timed_out") or attempt.ending == "verifier":
        return Ladder(
            "not_judged", f"verifier {facts.verifier if facts.verifier in ('crashed', 'timed_out') else 'failed'}"
        )
    if reward is None:
        return _without_reward(attempt, facts)
    return Ladder("solved", "reward") if reward == 1 else Ladder("failed", _stopped_by(attempt) or _by_tests(facts))


def _without_reward(attempt: Attempt, facts: PatchFacts) -> Ladder:
    verdict = judged(facts).outcome
    if not isinstance(verdict, Absent) and verdict != "unverifiable":
        return Ladder("solved", "tests") if verdict == "correct_patch" else Ladder("failed", _by_tests(facts))
    stopped = _stopped_by(attempt)
    return Ladder("failed", stopped, inferred=True) if stopped else Ladder("not_judged", "no verdict")


def _stopped_by(attempt: Attempt) -> str:
    if attempt.ending == "time" or attempt.timed_out:
        return "time"
    return "budget" if attempt.ending == "budget" else ""


def _by_tests(facts: PatchFacts) -> str:
    return "patch_not_applied" if facts.applies is False else "tests"
