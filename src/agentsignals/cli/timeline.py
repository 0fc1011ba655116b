"""One session as a readable timeline."""

from __future__ import annotations

from agentsignals.cli.output import printable
from agentsignals.model import MAIN, Event, Session, ToolCall, to_iso
from agentsignals.questions.formatting import AT_LEAST, formatted
from agentsignals.store.tables import totals
from agentsignals.views.calls import call_summary

_SAID_CHARS = 400
_QUIET = frozenset(("thinking", "meta", "tool_result"))


def timeline(session: Session, everything: bool = False) -> str:
    """Header, then what happened in order; with `everything` also thinking, results, subagents and side notes."""
    calls = {c.seq: c for c in session.tool_calls}
    lines = [*_header(session), ""]
    for event in session.events:
        if is_shown(event, everything):
            lines.append(_line(event, calls.get(event.seq), session))
    return "\n".join(lines)


def is_shown(event: Event, everything: bool) -> bool:
    """Whether an event has a line."""
    return everything or (event.thread == MAIN and event.kind not in _QUIET)


def _header(session: Session) -> list[str]:
    sums = totals(session)
    bound = AT_LEAST if sums["visible_output_tokens"] is not None else ""
    tokens = [(sums[f"{kind}_tokens"], kind.replace("_", " ")) for kind in ("input", "output", "cache_read")]
    facts = {
        "session": session.session_id,
        "title": session.title,
        "agent": f"{session.agent} {session.agent_version or ''}".strip(),
        "model": session.model,
        "where": session.repo or session.cwd,
        "branch": session.branch,
        "when": f"{to_iso(session.started_at) or 'unknown'} – {to_iso(session.ended_at) or 'unknown'}",
        "counts": f"{sum(turn.is_prompt for turn in session.turns)} prompts,"
        f" {sum(c.thread == MAIN for c in session.tool_calls)} tool calls,"
        f" {len({(e.seq, e.path) for e in session.edits if e.thread == MAIN})} edits",
        "tokens": ", ".join(f"{bound if kind == 'output' else ''}{n:,} {kind}" for n, kind in tokens if n is not None),
        "cost": "" if sums["cost_usd"] is None else f"{bound}{formatted(sums['cost_usd'], 'usd')}",
    }
    return [f"{name:8} {printable(str(value))}" for name, value in facts.items() if value]


def _line(event: Event, call: ToolCall | None, session: Session) -> str:
    clock = (to_iso(event.timestamp) or "")[11:19] or "--:--:--"
    place = "" if event.thread == MAIN else f"[{event.thread}] "
    if call is not None:
        summary = call_summary(call.class_, call.path, call.command, call.arguments)
        text = f"{call.name} {summary}{_lines(call, session)}".strip()
        mark = {"ok": "", "none": " (no result)"}.get(call.status, f" ({call.error_class or call.status})")
        return f"{event.seq:5} {clock}   {place}→ {_cut(text, 120)}{mark}"
    if event.kind == "human_turn" and event.turn is not None:
        kind = session.turns[event.turn].kind
        return f"\n{event.seq:5} {clock} turn {event.turn + 1} ({kind})\n      {_cut(event.text or '', _SAID_CHARS)}"
    text = _cut(event.text or "", _SAID_CHARS if event.kind == "text" else 120)
    return f"{event.seq:5} {clock}   {place}{event.kind}: {text}"


def _lines(call: ToolCall, session: Session) -> str:
    """How many lines a call added and took away, where the log says so."""
    hunks = [e for e in session.edits if e.seq == call.seq and e.added is not None and e.removed is not None]
    added, removed = sum(e.added or 0 for e in hunks), sum(e.removed or 0 for e in hunks)
    return f" +{added} -{removed}" if hunks else ""


def _cut(text: str, n: int) -> str:
    flat = printable(" ".join(text.split()))
    return flat if len(flat) <= n else flat[: n - 1] + "…"
