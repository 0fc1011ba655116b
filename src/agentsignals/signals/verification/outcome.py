"""What came of an attempt: the rung of the ladder that all harnesses share."""

from __future__ import annotations

from agentsignals.catalog import Measured, signal
from agentsignals.edits.attempt_outcome import ladder
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView


@signal(
    "verification.outcome",
    type="enum",
    unit="solved|failed|not_judged|infrastructure",
    context="eval",
    level="attempt",
    origin="this project",
    source="harness",
    harness=True,
    high_value=True,
    version=2,
    pitfalls="`not_judged` and `infrastructure` belong in no rate but in its bounds. `inferred`: no verifier spoke,"
    " the attempt left no patch or ran out of time or budget.",
    why="A rate over known outcomes is one of the agent only when what is known does not depend on what came.",
    hindsight="the verdict",
)
def outcome(view: SessionView, why: Evidence) -> Measured | Absent:
    """Solved; failed (tests, empty patch, time, budget); not judged; or broken off by the infrastructure."""
    attempt = view.session.attempt
    if attempt is None:
        return Absent("missing_artifact", "result_json")
    rung = ladder(attempt)
    for name in ("reward", "verification", "patch", "exit_status"):
        why.support(attempt.saying(name))
    why.rule(f"{rung.outcome}: {rung.reason}")
    return Measured(rung.outcome, {"reason": rung.reason, **({"inferred": True} if rung.inferred else {})})
