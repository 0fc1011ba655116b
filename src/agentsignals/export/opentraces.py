"""Sessions as OpenTraces records, one line each (schema 0.9; design/formats.md#small-formats)."""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import Any

from agentsignals.export import Writer
from agentsignals.export.messages import (
    LOSES,
    NO_BOUNDS,
    RESPELT,
    Message,
    arguments,
    carried_call,
    carried_session,
    conversation,
    iso_time,
    subagent_threads,
    without_nones,
)
from agentsignals.model import MAIN, Session, round_trip
from agentsignals.model.round_trip import OfStep, OfTurn
from agentsignals.views.usage import usage_totals

VERSION = "0.9.0"
_STATES = {"submitted": "goal_reached", "exit_cost": "interrupted", "exit_context": "interrupted"}


def text(session: Session) -> str:
    """Return the record as one line of JSON, with its content hash."""
    whole = [(m, thread) for thread in (MAIN, *subagent_threads(session)) for m in conversation(session, thread)]
    steps = [_step(m, thread) | {"step_index": n} for n, (m, thread) in enumerate(whole)]
    first = session.turns[0].text if session.turns else None
    attempt = session.attempt
    main_steps = [s for s in session.steps if s.thread == MAIN]
    took = None
    if session.started_at is not None and session.ended_at is not None:
        took = (session.ended_at - session.started_at) / 1_000_000
    used = usage_totals(session.steps)
    # Facts that the schema has no field for, by the number of the step.
    numbered = [(n, move) for n, (move, _) in enumerate(whole)]
    carried = {
        "session": carried_session(session, [move for move, _ in whole]),
        "turns": {str(n): round_trip.carried_facts(m.turn, OfTurn) for n, m in numbered if m.turn is not None},
        "steps": {str(n): round_trip.carried_facts(m.step, OfStep) for n, m in numbered if m.step is not None},
        "calls": {f"{n}:{c.id}": carried_call(c) for n, m in numbered for c in m.calls},
        "events": {str(n): round_trip.carried_event(m.events[0]) for n, m in numbered if m.role == "system"},
    }
    vcs = {"type": "none"} if session.branch is None else {"type": "git", "branch": session.branch}
    record = without_nones(
        {
            "schema_version": VERSION,
            "trace_id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"agentsignals:{session.session_id}")),
            "session_id": session.session_id,
            "timestamp_start": iso_time(session.started_at),
            "timestamp_end": iso_time(session.ended_at),
            "execution_context": "devtime" if attempt is None else "runtime",
            "task": without_nones(
                {"description": first, "source": "user_prompt" if first else None, "repository": session.repo}
            ),
            "agent": without_nones(
                {"name": session.agent or "unknown", "version": session.agent_version, "model": session.model}
            ),
            "environment": {"vcs": vcs},
            "steps": steps,
            "outcome": _outcome(session),
            "metrics": without_nones(
                {
                    "total_steps": len(main_steps),
                    "total_input_tokens": used.input_tokens or 0,
                    "total_output_tokens": used.output_tokens or 0,
                    "total_cache_read_tokens": used.cache_read_tokens or 0,
                    "total_cache_creation_tokens": used.cache_write_tokens or 0,
                    "total_duration_s": took,
                    "estimated_cost_usd": used.cost_usd if session.steps else None,
                }
            ),
            "attribution": _attribution(session),
            "metadata": without_nones({"format": session.format, "cwd": session.cwd}) | {"agentsignals": carried},
        }
    )
    canonical = json.dumps({k: v for k, v in record.items() if k != "trace_id"}, sort_keys=True, ensure_ascii=False)
    record["content_hash"] = hashlib.sha256(canonical.encode("utf-8", "replace")).hexdigest()
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"  # as most agents log their arguments


def _step(move: Message, thread: str) -> dict[str, Any]:
    """Return one message as a step of OpenTraces, with its calls and observations."""
    step = move.step
    calls, observations = [], []
    for exchange in move.calls:
        call, result = exchange.call, exchange.result
        took = None
        if call.started_at is not None and call.ended_at is not None:
            took = max(0, (call.ended_at - call.started_at) // 1000)
        called = {"tool_call_id": exchange.id, "tool_name": call.name, "input": arguments(call), "duration_ms": took}
        calls.append(without_nones(called))
        failed = {"ok": None, "none": "no_result"}.get(call.status, call.error_class or call.status)
        content = result.text if result is not None else None
        observations.append(without_nones({"source_call_id": exchange.id, "content": content, "error": failed}))
    # Token counts. The schema has no unknown: missing values are 0.
    return without_nones(
        {
            "step_index": 0,
            "role": move.role,
            "content": move.text or None if move.role == "agent" else move.text,
            "reasoning_content": move.thought,
            "model": step.model if step is not None else None,
            "agent_role": None if thread == MAIN else thread,
            "call_type": None if move.role == "user" else "main" if thread == MAIN else "subagent",
            "tool_calls": calls,
            "observations": observations,
            "token_usage": {
                "input_tokens": step.input_tokens or 0,
                "output_tokens": step.output_tokens or 0,
                "cache_read_tokens": step.cache_read_tokens or 0,
                "cache_write_tokens": step.cache_write_tokens or 0,
            }
            if step is not None
            else None,
            "timestamp": iso_time(move.at),
        }
    )


def _outcome(session: Session) -> dict[str, Any]:
    """Return an attempt's outcome as OpenTraces has it; of a person's session that there is none."""
    attempt = session.attempt
    if attempt is None:
        return {"signal_source": "none", "signal_confidence": "inferred"}
    status = (attempt.exit_status or "").lower()
    state = "error" if attempt.exception else "interrupted" if attempt.timed_out else _STATES.get(status)
    return without_nones(
        {
            "success": None if attempt.reward is None else attempt.reward >= 1,
            "signal_source": "deterministic",
            "signal_confidence": "derived",
            "terminal_state": state,
            "reward": attempt.reward,
            "reward_source": None if attempt.reward is None else "rl_environment",
        }
    )


def _attribution(session: Session) -> dict[str, Any] | None:
    """Lines that edits wrote, as they were right after the edit."""
    files: dict[str, list[dict[str, Any]]] = {}
    for edit in session.edits:
        if edit.start_line is not None and edit.end_line is not None and edit.end_line >= edit.start_line:
            kind = "addition" if not edit.removed else "modification"
            rows = files.setdefault(edit.path, [])
            rows.append({"start_line": edit.start_line, "end_line": edit.end_line, "change_type": kind})
    if not files:
        return None
    by = {"type": "ai", **({"model_id": session.model} if session.model else {})}
    return {
        "experimental": True,
        "files": [{"path": p, "conversations": [{"contributor": by, "ranges": r}]} for p, r in sorted(files.items())],
    }


WRITER = Writer(
    name="opentraces",
    describes="one OpenTraces 0.9 record a session, as JSON Lines",
    suffix=".jsonl",
    text=text,
    reads_back="opentraces",
    loses=(
        *LOSES,
        RESPELT,
        NO_BOUNDS,
        "what harness and verifier know of an eval run, beyond its reward and ending: only files that they write "
        "themselves say it (attempts)",
    ),
)
