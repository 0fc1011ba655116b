"""Outcome of an attempt, by the evidence that its run left (design/signals.md#outcome-of-an-attempt).

One record for all harnesses: which steps happened (the agent started, it acted, the verifier started), which tests
ended how, the outcome that follows, and the line that shows it. Rates, failures, audits and findings read this record.
"""

from __future__ import annotations

import math
import re
from typing import Literal, get_args

from msgspec import Struct

from agentsignals.changes.patches import PatchFacts, facts_of, judged
from agentsignals.model import Absent, Attempt, Session, Statement

OutcomeName = Literal["solved", "failed", "agent_not_started", "verifier_not_run", "infrastructure", "not_judged"]
OUTCOMES: tuple[OutcomeName, ...] = get_args(OutcomeName)
JUDGED: tuple[OutcomeName, ...] = ("solved", "failed")
"""Outcomes that a rate is over."""
NO_ARTIFACT = "no_artifact"
"""Reason of a failure that left the verifier nothing to judge."""


class AttemptOutcome(Struct, frozen=True, gc=False, kw_only=True):
    """An outcome with its reason and its evidence. None: nothing tells."""

    name: OutcomeName
    reason: str
    inferred: bool = False
    """No harness or verifier said so."""
    agent_started: bool | None
    agent_acted: bool | None
    """The agent called a tool."""
    verifier_started: bool | None
    tests_passed: int | None
    tests_failed: int | None
    shown_by: Statement | None
    """The line of the run's files that shows the outcome."""


def outcome_of(session: Session) -> AttemptOutcome | None:
    """Return the outcome of a session's attempt; None where it is none."""
    attempt = session.attempt
    if attempt is None:
        return None
    acted = _acted(session, attempt)
    started = True if acted or attempt.output_tokens else attempt.agent_started
    facts = facts_of(attempt)
    tests = attempt.verification
    name, reason, fields, inferred = _decided(session, attempt, facts, started)
    passed = [names for names in (tests.passed, tests.fixed, tests.kept) if names is not None] if tests else []
    failed = (
        [n for n in (tests.failed, tests.unfixed, tests.broken, tests.still_failing) if n is not None] if tests else []
    )
    verifier_started = tests.ran if tests is not None else None
    if verifier_started is None:
        timed_out = tests is not None and tests.status == "timed_out"
        is_judged = name in JUDGED and reason != NO_ARTIFACT and not inferred
        verifier_started = True if timed_out or is_judged else None
    return AttemptOutcome(
        name=name,
        reason=reason,
        inferred=inferred,
        agent_started=started,
        agent_acted=acted,
        verifier_started=verifier_started,
        tests_passed=sum(map(len, passed)) if passed else None,
        tests_failed=sum(map(len, failed)) if failed else None,
        shown_by=next((said for field in fields for said in attempt.saying(field)), None),
    )


def _acted(session: Session, attempt: Attempt) -> bool | None:
    counted = attempt.summary.tool_calls if attempt.summary is not None else None
    if session.tool_calls or counted:
        return True
    return False if counted == 0 or attempt.has_transcript else None


_Decision = tuple[OutcomeName, str, tuple[str, ...], bool]
"""Outcome, reason, the attempt's fields that show it, and whether it is inferred."""


def _is_of_task(session: Session, module: str | None) -> bool:
    """Return whether a module that tests could not import is the work itself: a prompt or an edit names it."""
    if module is None:
        return False
    named = re.compile(rf"(?<![\w.]){re.escape(module.partition('.')[0])}(?:\.py\b|/|\b)")
    return any(named.search(turn.text) for turn in session.turns) or any(named.search(e.path) for e in session.edits)


def _decided(session: Session, attempt: Attempt, facts: PatchFacts, started: bool | None) -> _Decision:
    """Return the first outcome that applies. A step that did not happen comes before every reward."""
    tests = attempt.verification
    how_it_ended = ("exception", "exit_status", "fault", "ending")
    if started is False:
        return "agent_not_started", attempt.exception or "its program was missing", ("agent_started",), False
    if attempt.ending == "infrastructure" and not attempt.reward_counts:
        return "infrastructure", attempt.exception or attempt.exit_status or "aborted", how_it_ended, False
    if attempt.reward_counts is False:
        why = attempt.exception or attempt.exit_status or "the harness calls the reward invalid"
        return "not_judged", why, ("reward_counts", *how_it_ended), False
    if "reward" in attempt.conflicts:
        return "not_judged", "two verdicts differ", ("reward",), False
    reward = None if attempt.reward is None or math.isnan(attempt.reward) else attempt.reward
    if facts.present is False and reward != 1:
        return "failed", NO_ARTIFACT, ("patch", "patch_text_bytes", "summary"), reward is None
    if facts.applies is False and reward != 1:
        return "failed", "patch_not_applied", ("verification",), False
    if attempt.fault is not None and (tests is None or not tests.ran):
        return "infrastructure", attempt.fault, ("fault",), False
    if facts.verifier == "not_run" and not _is_of_task(session, tests.missing_module if tests is not None else None):
        line = tests.message if tests is not None else ""
        return "verifier_not_run", line or "it ended before the first test", ("verification",), False
    if facts.verifier in ("crashed", "timed_out") or attempt.ending == "verifier":
        how = facts.verifier.replace("_", " ") if facts.verifier in ("crashed", "timed_out") else "failed"
        return "not_judged", f"verifier {how}", ("verification", "ending", *how_it_ended), False
    stopped = "time" if attempt.ending == "time" or attempt.timed_out else ""
    stopped = stopped or ("budget" if attempt.ending == "budget" else "")
    if reward is None:
        verdict = judged(facts).outcome
        if not isinstance(verdict, Absent) and verdict != "unverifiable":
            return ("solved" if verdict == "correct_patch" else "failed"), "tests", ("verification",), False
        if stopped:
            return "failed", stopped, ("ending", "timed_out", *how_it_ended), True
        return "not_judged", "no verdict", ("reward", *how_it_ended), False
    if reward == 1:
        return "solved", "reward", ("reward", "verification"), False
    return (
        "failed",
        stopped or "tests",
        (("timed_out", "exit_status") if stopped else ("verification", "reward")),
        False,
    )
