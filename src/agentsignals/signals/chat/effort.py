"""What the work cost: how long the agent was busy for a turn, and what a hundred committed lines took (SWE-chat)."""

from __future__ import annotations

from agentsignals.catalog import Measured, signal
from agentsignals.model import Absent
from agentsignals.prices.bill import PAID
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView
from agentsignals.views.work import Clock

LINES = 100
SECONDS_A_MINUTE = 60


@signal(
    "chat.turn_autonomy_s",
    type="float",
    unit="seconds",
    level="turn",
    origin="SWE-chat",
    priority="P2",
    version=2,
    pitfalls="Each stretch counts for at most as long as its kind can take (design/signals.md#time-at-work): short"
    " waits for leave are inside, longer ones and a machine's sleep are not.",
    why="For how long a person can turn to something else.",
)
def turn_autonomy_s(view: SessionView, why: Evidence) -> list[float | Absent]:
    """How long the agent worked for the turn, subagents' time included, without waits for leave or of a machine that
    slept (infra.waiting_time_s)."""
    why.support(view.turns)
    clock = view.made(Clock)
    return [
        clock.between(span).work_s
        if span is not None
        else Absent("missing_field", "timestamp")
        if done
        else Absent("not_applicable", "no_response")
        for span, done in zip(clock.turns if view.turns else [], view.responses, strict=True)
    ]


@signal(
    "chat.cost_per_100_committed_lines",
    type="obj",
    unit="per 100 committed lines",
    origin="SWE-chat",
    source="derived",
    version=3,
    priority="P1",
    grows_with_output=True,
    pitfalls="Publish medians: a session that commits two lines costs a fortune for each hundred. The lines are all of"
    " the commit, the person's too. A session may go on after its last recorded commit.",
    why="What code costs in money, time and attention, where it was kept.",
)
def cost_per_100_committed_lines(  # noqa: PLR0913  (the parameters are the needs of the signal)
    view: SessionView,
    why: Evidence,
    cost_usd: float | Absent,
    wall_time_s: float | Absent,
    work_time_s: float | Absent,
    user_turn_count: int,
) -> Measured | Absent:
    """100 * usd, tokens, minutes, agent_minutes and user_turns / lines of the commits recorded with the session."""
    recorded = [n for c in view.session.checkpoints if (n := c.total_committed) is not None]
    if not recorded:
        return Absent("not_applicable", "no_commit")
    lines = sum(recorded)
    why.rule(f"attribution recorded with the session: {len(recorded)} commits of {lines} lines together")
    why.support(view.billed_steps)
    why.bill(view.session.steps, PAID)
    why.denominator(view.commits, "commit:")
    if lines <= 0:
        return Absent("not_computable", "zero_denominator")
    took = {
        "usd": None if isinstance(cost_usd, Absent) else cost_usd,
        "tokens": _tokens(view),
        "minutes": None if isinstance(wall_time_s, Absent) else wall_time_s / SECONDS_A_MINUTE,
        "agent_minutes": None if isinstance(work_time_s, Absent) else work_time_s / SECONDS_A_MINUTE,
        "user_turns": user_turn_count,
    }
    value = {name: None if n is None else LINES * n / lines for name, n in took.items()}
    return Measured(value, {"committed_lines": lines, "checkpoints": len(recorded)})


def _tokens(view: SessionView) -> int | None:
    used = view.usage
    return (
        None if used.input_tokens is None and used.output_tokens is None else used.all_input + (used.output_tokens or 0)
    )
