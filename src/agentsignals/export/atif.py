"""Sessions as ATIF 1.7 trajectories (Harbor's Agent Trajectory Interchange Format;
design/formats.md#harbor-and-atif)."""

from __future__ import annotations

import json
import math
from importlib.metadata import version
from typing import Any

from agentsignals.export import Writer
from agentsignals.export.messages import (
    LOSES,
    RESPELT,
    Message,
    arguments,
    carried_call,
    carried_session,
    conversation,
    iso_time,
    prompt_tokens,
    subagent_threads,
    total,
    without_nones,
)
from agentsignals.model import MAIN, Session, round_trip
from agentsignals.model.prices import USD_DIGITS
from agentsignals.model.round_trip import OfStep, OfTurn
from agentsignals.views.usage import is_lower_bound

VERSION = "ATIF-v1.7"


def text(session: Session) -> str:
    """Return the trajectory as JSON; subagents' conversations are embedded."""
    return json.dumps(_trajectory(session, MAIN, session.session_id), ensure_ascii=False, indent=1)


def _trajectory(session: Session, thread: str, trajectory_id: str) -> dict[str, Any]:
    """Return a thread as an ATIF trajectory; the main thread's holds those of its subagents."""
    is_bound = is_lower_bound(session)
    talk = conversation(session, thread)
    steps = [_step(n, m, session, is_bound) for n, m in enumerate(talk, 1)]
    thread_steps = [s for s in session.steps if s.thread == thread]
    priced = [s.cost_usd for s in thread_steps if s.cost_usd is not None]
    totals = {
        "total_prompt_tokens": total(map(prompt_tokens, thread_steps)),
        "total_completion_tokens": total(s.output_tokens for s in thread_steps),
        "total_cached_tokens": total(s.cache_read_tokens for s in thread_steps),
        "total_cost_usd": round(math.fsum(priced), USD_DIGITS) if priced else None,
        "extra": {"output_and_cost_at_least": True} if is_bound else None,
    }
    agent = {
        "name": session.agent or "unknown",
        "version": session.agent_version or "unknown",
        "model_name": session.model,
        "extra": _extra(version("agentsignals")) if thread == MAIN else None,
    }
    trajectory: dict[str, Any] = {
        "schema_version": VERSION,
        "session_id": session.session_id,
        "trajectory_id": trajectory_id,
        "agent": without_nones(agent),
        "steps": steps or [{"step_id": 1, "source": "system", "message": ""}],  # the schema asks for one at least
        "final_metrics": without_nones(totals) or None,
    }
    if thread == MAIN:
        others = subagent_threads(session)
        trajectory["subagent_trajectories"] = [_trajectory(session, t, t) for t in others] or None
        whole = [*talk, *(move for t in others for move in conversation(session, t))]
        trajectory["extra"] = _extra(carried_session(session, whole))
    return without_nones(trajectory)


def _step(n: int, move: Message, session: Session, is_bound: bool) -> dict[str, Any]:
    """Return one message as an ATIF step, with its calls, results and token counts."""
    common = {"step_id": n, "timestamp": iso_time(move.at), "source": move.role}
    if move.role != "agent":
        extra = {"context_management": {"type": "compaction"}} if "compaction" in move.first else {}
        if move.turn is not None:
            extra = _extra(round_trip.carried_facts(move.turn, OfTurn))
        else:
            extra |= _extra(round_trip.carried_event(move.events[0]))
        return without_nones({**common, "message": move.text, "extra": extra})
    step = move.step
    results = [{"source_call_id": c.id, "content": c.result.text or ""} for c in move.calls if c.result is not None]
    calls = [
        {
            "tool_call_id": c.id,
            "function_name": c.call.name,
            "arguments": arguments(c.call),
            "extra": _extra(carried_call(c)),
        }
        for c in move.calls
    ]
    metrics, extra_facts = None, None
    if step is not None:
        is_bound = is_bound and step.stop_reason is None and step.output_tokens is not None
        mark = {"output_and_cost_at_least": True} if is_bound else {}
        parts = {"cache_write_tokens": step.cache_write_tokens, "reasoning_tokens": step.reasoning_tokens}
        metrics = without_nones(
            {
                "prompt_tokens": prompt_tokens(step),
                "completion_tokens": step.output_tokens,
                "cached_tokens": step.cache_read_tokens,
                "cost_usd": step.cost_usd,
                "extra": (without_nones(parts) | mark) or None,
            }
        )
        extra_facts = _extra(round_trip.carried_facts(step, OfStep) | mark)
    return without_nones(
        {
            **common,
            "model_name": step.model if step is not None and step.model != session.model else None,
            "message": move.text,
            "reasoning_content": move.thought,
            "tool_calls": calls or None,
            "observation": {"results": results} if results else None,
            "metrics": metrics or None,
            "llm_call_count": 0 if step is None and not move.thinking else None,
            "extra": extra_facts,
        }
    )


def _extra(facts: object) -> dict[str, Any]:
    return {"agentsignals": facts}


WRITER = Writer(
    name="atif",
    describes="one ATIF 1.7 trajectory a session (Harbor)",
    suffix=".trajectory.json",
    text=text,
    reads_back="atif",
    loses=(
        *LOSES,
        RESPELT,
        "what harness and verifier know of an eval run: only files that they write themselves say it (attempts)",
    ),
)
