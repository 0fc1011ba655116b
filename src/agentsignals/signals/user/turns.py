"""The person's side of a session: how often, how long and when they spoke, and how the agent's machinery answered."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import Struct

from agentsignals.model import Absent, Event, Step, ToolCall, decode_roles, to_iso
from agentsignals.signals import Measured, Row, ratio, signals_with
from agentsignals.views.session import FAILURES_UNKNOWN, OF_AGENT, Evidence, SessionView
from agentsignals.views.working_time import Clock
from agentsignals.words.lexicon import Span, asked, clean, hedges, kind_of, other_language, seed_hedges
from agentsignals.words.text import count_tokens, lowered

signal = signals_with(origin="Agent Signals")

LONG_GAP_US = 600_000_000
"""Between two events of one response; behind a longer one somebody was asked for permission, or asleep."""
SECOND = 1_000_000


@signal("user.user_turn_count", "int", "turns")
def user_turn_count(view: SessionView, why: Evidence) -> int:
    """Human turns: rows of `turns` but those of kind scripted_prompt, which a program asked for that drives the agent.

    Pitfalls: Counting role=user is wrong by a factor of ten, because most such records are tool results.
    Why: The denominator of every rate about the person.
    """
    turns = [turn for turn in view.turns if turn.kind != "scripted_prompt"]
    why.support(turns)
    return len(turns)


@signal("user.rewinds", "int", "count", origin="agentsignals")
def rewinds(view: SessionView, why: Evidence) -> int | Absent:
    """How often the person went back to an earlier place in the conversation and left what came after it: `/rewind`,
    `/undo`, an edited prompt. What was left has thread `abandoned`; its prompts are no turns.

    Events of kind rewind, of any thread; absent where there is none and `sessions.conventions` lacks rewinds_logged.

    Pitfalls: A prompt that was stopped before an answer and typed anew counts, too.
    Why: The clearest rejection in a log.
    """
    found = [event for event in view.session.events if event.kind == "rewind"]
    if not found and "rewinds_logged" not in view.session.conventions:
        return Absent("missing_field", "the log does not keep what the person went back from")
    why.support(found)
    return len(found)


@signal("user.user_msg_lengths[]", "list[int]", "tokens")
def user_msg_lengths(view: SessionView, why: Evidence) -> Measured:
    """Length of each row of `turns`: `n_tokens`, words and punctuation marks of the raw text; an attachment is 0.

    Pitfalls: Pastes and plan hand-offs are long and are not the person's words: see cleaned and kinds.
    Why: The input of the length trend.
    """
    turns = view.turns
    why.support(turns)
    cleaned = [t.n_tokens if (kept := clean(t.text)) == t.text else count_tokens(kept) for t in turns]
    kinds = {t.turn: t.kind for t in turns if t.kind != "prompt"}
    return Measured(
        [t.n_tokens for t in turns], {"cleaned": cleaned, "chars": [len(t.text) for t in turns], "kinds": kinds}
    )


@signal("user.turn_timestamps[]", "list[str]", "ISO-8601 UTC")
def turn_timestamps(view: SessionView, why: Evidence) -> Measured | Absent:
    """When each human turn (h) came, and the first (f) and last (l) thing of the response to it, in order.

    For each turn its timestamp, then those of the first and last event of its response; missing ones are left out. With
    milliseconds and `Z`.

    Pitfalls: A gap does not tell whether the person gave up or took a break.
    Why: The clock of the session, for every measure of pace.
    """
    stamped: list[tuple[str, int | None]] = []
    for turn, done in zip(view.turns, view.responses, strict=True):
        stamped.append(("h", turn.timestamp))
        if done:
            stamped += (("f", done[0].timestamp), ("l", done[-1].timestamp))
    stamps = [at for _, at in stamped if at is not None]
    if not stamps:
        return Absent("missing_field", "timestamp")
    why.support(view.turns)
    marks = "".join([mark for mark, at in stamped if at is not None])
    backwards = len([1 for a, b in pairwise(stamps) if b < a])
    return Measured([to_iso(at) for at in stamps], {"marks": marks, "non_monotonic": backwards})


@signal("user.turn_ratio", "float", "ratio")
def turn_ratio(view: SessionView, why: Evidence, user_turn_count: int) -> Measured | Absent:
    """Human turns per model message on the main thread: user.user_turn_count / behavior.turn_count.

    Pitfalls: An agent turn is a model message here; counted by response the ratio would be nearly always 1.
    Why: Near 1: dialogue; below 0.5: the agent works alone; above 1.5: the person steers.
    """
    answered = len([1 for done in view.responses if done])
    with_text = len({e.step for e in view.by_kind.get("text", ()) if e.text})
    why.support(view.turns)
    why.denominator(view.steps)
    by_response = user_turn_count / answered if answered else None
    by_text = user_turn_count / with_text if with_text else None
    return ratio(user_turn_count, len(view.steps), by_response=by_response, by_text=by_text)


@signal("user.tool_error_rate", "float", "ratio", version=2)
def tool_error_rate(view: SessionView, why: Evidence) -> Measured | Absent:
    """Failed results out of all results of main-thread calls; refusals by the person, cancelled calls and those that
    the trace says nothing of are in neither. A search that found nothing did not fail.

    Main-thread calls with status error / with status ok or error. Absent (missing_field) where results are there and no
    status tells.

    Pitfalls: Some errors are probes.
    Why: A rising rate suggests problems with the environment.
    """
    if not view.records_failures:
        return FAILURES_UNKNOWN
    failed, rejected = view.errors, view.rejected
    why.support(failed)
    why.denominator(view.answered)
    why.counter(rejected, "refused by the person")
    n = view.n_answered
    raw = (len(failed) + len(rejected)) / (n + len(rejected)) if n + len(rejected) else None
    return ratio(len(failed), n, rejected=len(rejected), raw=raw)


class _Compaction(Struct):
    """The record of a compaction in the logs of Claude Code, Pi and others."""

    trigger: str | None = None
    kind: str | None = None
    preTokens: int | None = None  # noqa: N815  (the file's own spelling)
    tokensBefore: int | None = None  # noqa: N815


_decode_compaction = msgspec.json.Decoder(_Compaction, strict=False).decode


@signal("user.compaction_events[]", "list[obj]", "events")
def compaction_events(view: SessionView, why: Evidence) -> list[dict[str, Any]]:
    """Each time the context was shortened: where, why, and how large it was before and after.

    Main-thread events of kind compaction. turn_index: its turn. step_index: the number of the last main-thread step
    before it. tokens_before (`preTokens` or `tokensBefore`), trigger and kind (else full): of the event's JSON text.
    tokens_after: all input of the next step. timestamp: ISO 8601.

    Pitfalls: Context that a program cuts without logging it is not seen; look at the context growth curve too.
    Why: A compaction loses instructions: late drift often begins here.
    """
    compactions = view.by_kind.get("compaction", ())
    starts = [s.seq for s in view.steps] if compactions else []
    rows: list[tuple[Event, dict[str, Any]]] = []
    for event in compactions:
        after = bisect_left(starts, event.seq)
        try:
            logged = _decode_compaction(event.text or "{}")
        except msgspec.DecodeError:
            if rows and rows[-1][1]["step_index"] == after - 1:
                continue  # the summary that follows the boundary which was counted
            logged = _Compaction()
        counts = [(s.input_tokens, s.cache_read_tokens, s.cache_write_tokens) for s in view.steps[after : after + 1]]
        parts = [n for of_step in counts for n in of_step if n is not None]
        row = {
            "turn_index": event.turn,
            "step_index": after - 1 if after else None,
            "tokens_before": logged.preTokens if logged.preTokens is not None else logged.tokensBefore,
            "tokens_after": sum(parts) if parts else None,
            "trigger": logged.trigger,
            "kind": logged.kind or "full",
            "timestamp": to_iso(event.timestamp),
        }
        rows.append((event, row))
    why.support([event for event, _ in rows])
    return [row for _, row in rows]


@signal("user.time_to_first_edit_s", "float", "seconds", version=2, priority="P1")
def time_to_first_edit_s(view: SessionView, why: Evidence) -> Measured | Absent:
    """Seconds from the first human turn to the result (`ended_at`, else `started_at`) of the first change's call.

    Pitfalls: Fast is not better. The person's own thinking time and waits are inside; `work_s` leaves them out.
    Why: Shows how long the person waits for the first change.
    """
    if view.first_edit_index is None:
        return Absent("not_applicable", "no_edit")
    first = view.calls[view.first_edit_index]
    began = view.turns[0].timestamp if view.turns else None
    done = first.ended_at if first.ended_at is not None else first.started_at
    if began is None or done is None:
        return Absent("missing_field", "timestamp")
    why.support([view.turns[0], first])
    clock = view.derived(Clock)
    spans = [(span[0], min(span[1], done)) for span in clock.turns if span is not None and span[0] < done]
    return Measured((done - began) / SECOND, {"work_s": clock.between(*spans).work_s})


@signal("user.per_turn_latency_s[]", "list[float]", "seconds", priority="P1")
def per_turn_latency_s(view: SessionView, why: Evidence) -> Measured | Absent:
    """Seconds from each human turn to the last event of its response; null where there is none.

    Absent where no turn has a time.

    Pitfalls: Elapsed time, including waits for approval and sleep of the machine. See chat.turn_autonomy_s for working
    time.
    Why: Shows how long a person waits for one request.
    """
    latencies: list[float | None] = []
    paused: list[int] = []
    for turn, done in zip(view.turns, view.responses, strict=True):
        end = done[-1].timestamp if done else None
        took = end - turn.timestamp if end is not None and turn.timestamp is not None else None
        latencies.append(None if took is None else took / SECOND)
        if took is not None and took > LONG_GAP_US:
            stamps = [e.timestamp for e in done if e.timestamp is not None and e.kind in OF_AGENT]
            if any(b - a > LONG_GAP_US for a, b in pairwise(stamps)):
                paused.append(turn.turn)
    if all(t.timestamp is None for t in view.turns):
        return Absent("missing_field", "timestamp")
    why.support(view.turns)
    why.counter([view.turns[n] for n in paused], "holds a gap of more than ten minutes:")
    return Measured(latencies, {"turns_with_gap": paused})


_SIBLING = ("<tool_use_error>Sibling tool call", "<tool_use_error>Cancelled: parallel tool call")


class ToolErrors(Row):
    """Errors of one class that one tool gave, and how many results it gave at all."""

    tool: str
    error_class: str
    n: int
    n_results: int


@signal("user.tool_errors_by_type[]", "list[obj]", "counts", version=2, priority="P1")
def tool_errors_by_type(view: SessionView, why: Evidence) -> list[ToolErrors] | Absent:
    """Failed main-thread calls for each tool and class of error, most first; n_results counts the tool's results.

    Main-thread calls with status error by `name` and `error_class` (else other), and those with status cancelled whose
    result begins with `<tool_use_error>Sibling tool call` or `<tool_use_error>Cancelled: parallel tool call` as
    sibling_cancelled. Keys: tool, error_class, n, n_results (calls of the tool with status ok or error, and these
    cancelled ones).

    Pitfalls: `sibling_cancelled` is no failure of that call: another call made beside it failed. Calls that a person
    refused or stopped are not listed.
    Why: A wrong path, a stale edit and a failed test need different fixes.
    """
    if not view.records_failures:
        return FAILURES_UNKNOWN
    cancelled = [c for c in view.by_status.get("cancelled", ()) if view.result_text(c).startswith(_SIBLING)]
    why.support(view.errors)
    why.counter(cancelled, "cancelled with another call:")
    why.denominator(view.answered)
    if not view.errors and not cancelled:
        return []
    errors = Counter([(c.name, c.error_class or "other") for c in view.errors])
    errors.update([(c.name, "sibling_cancelled") for c in cancelled])
    results = Counter([c.name for c in (*view.answered, *cancelled)])
    rows = [ToolErrors(tool, class_, n, results[tool]) for (tool, class_), n in errors.items()]
    return sorted(rows, key=lambda row: (-row.n, row.tool, row.error_class))


@signal("user.tool_result_sizes[]", "list[int]", "tokens", priority="P1")
def tool_result_sizes(view: SessionView, why: Evidence) -> Measured:
    """Size of each main-thread tool result, `result_tokens` by `result_seq`: characters / 4, rounded up.

    Pitfalls: An estimate of text alone: a picture counts as nothing. A hosted search whose findings are not logged is
    left out (`unlogged`).
    Why: Shows which results filled the context window.
    """
    answered = [c for c in view.calls if c.result_seq is not None]
    sized = sorted((c for c in answered if c.result_tokens is not None), key=lambda call: call.result_seq or 0)
    why.support(sized)
    unlogged = len(answered) - len(sized)
    return Measured([c.result_tokens for c in sized], {"unlogged": unlogged} if unlogged else {})


class ModelChange(Row):
    """A change of model. `explicit`: the trace has an entry for it, and does not only show another model's answer."""

    from_model: str | None
    to_model: str
    turn_index: int | None
    timestamp: str | None
    explicit: bool


@signal("user.model_changes[]", "list[obj]", "events", priority="P1")
def model_changes(view: SessionView, why: Evidence) -> list[ModelChange] | Absent:
    """Each change of the model that answers, by an entry of its own or by the next message; from_model is null before
    the first message.

    In order of the main thread: events of kind model_change (the model is what follows ` -> `) and steps whose model
    differs from that of the step or entry before. Models in angle brackets are no model. The first step is no change.
    Keys: from_model, to_model, turn_index, timestamp, explicit (an entry that no step accompanies). Absent where steps
    name no model.

    Pitfalls: What a program's small helper model says is no change; only the main thread's messages are looked at.
    Why: A session whose model changed belongs to no single model.
    """
    entries = view.by_kind.get("model_change", [])
    steps = [s for s in view.steps if _is_model(s.model)]
    if not steps and not entries and view.steps:
        return Absent("missing_field", "model")
    why.denominator(steps)
    if not entries and len({s.model for s in steps}) < 2:
        return []
    changes: list[ModelChange] = []
    changing: list[Event | Step] = []
    answering: str | None = None
    events = view.session.events
    rows: list[Event | Step] = [*entries, *steps]
    rows.sort(key=lambda row: (row.seq, isinstance(row, Step)))
    for row in rows:
        chosen = row.model or "" if isinstance(row, Step) else (row.text or "").rpartition(" -> ")[2]
        if not _is_model(chosen) or chosen == answering:
            continue
        is_shown = isinstance(row, Step) or row.step is not None
        if not isinstance(row, Step) and not is_shown and row.seq + 1 < len(events):
            # The change has no entry of its own, but comes with a message of the new model.
            is_shown = events[row.seq + 1].step is not None and events[row.seq + 1].line == row.line
        if answering is not None or not isinstance(row, Step):
            changing.append(row)
            changes.append(ModelChange(answering, chosen, row.turn, to_iso(row.timestamp), not is_shown))
        answering = chosen
    why.support(changing)
    return changes


def _is_model(name: str | None) -> bool:
    # Messages that a program writes in the model's place carry a name like `<synthetic>`.
    return bool(name) and not str(name).startswith("<")


FEW_TOKENS = 20
"""In a shorter response one hedge makes a high rate (design/signals.md#word-lists)."""


@signal("user.agent_hedging_rate", "float", "per 100 tokens", source="regex", priority="P1")
def agent_hedging_rate(view: SessionView, why: Evidence) -> Measured | Absent:
    """Hedging phrases ("I think", "might be", "probably") per 100 tokens of what the agent said, code left out.

    100 * matches of the pattern table `hedges` / tokens, over the main thread's prose. Absent without prose, and where
    the agent writes another language.

    Pitfalls: About one match in eight is not a hedge. The trend matters more than the level. English only.
    Why: Increasing hedging suggests that the agent is losing track.
    """
    prose = view.prose
    tokens = sum(prose.tokens.values())
    if not tokens:
        return Absent("not_applicable", "no_visible_text")
    if (other := other_language(prose)) is not None:
        return other
    spans = prose.spans(hedges)
    why.matches(prose.matches(spans))
    why.denominator(prose.events)
    return ratio(100 * len(spans), tokens, hedges=len(spans), seed_literal=100 * len(seed_hedges(prose)) / tokens)


@signal("user.agent_hedging_curve[]", "list[float]", "per 100 tokens", source="regex", priority="P1")
def agent_hedging_curve(view: SessionView, why: Evidence) -> Measured | Absent:
    """user.agent_hedging_rate of each response in order; null where the agent said nothing.

    Pitfalls: Of a short response one hedge makes a high value: `low_n` names those under 20 tokens.
    Why: Shows whether hedging grows during the session.
    """
    prose = view.prose
    if (other := other_language(prose)) is not None:
        return other
    spans = prose.spans(hedges)
    why.matches(prose.matches(spans))
    counted = Counter(prose.event(span).turn for span in spans)
    tokens = [prose.tokens.get(t.turn, 0) for t in view.turns]
    curve = [100 * counted[t.turn] / n if n else None for t, n in zip(view.turns, tokens, strict=True)]
    return Measured(curve, {"low_n": [t.turn for t, n in zip(view.turns, tokens, strict=True) if 0 < n < FEW_TOKENS]})


def _asks_permission(call: ToolCall) -> bool:
    """Return whether a call asks the person to confirm: a plan handed in, or a yes-or-no question."""
    if call.purpose == "plan_handoff":
        return True
    if call.class_ != "ask":
        return False
    roles = decode_roles(call.argument_roles)
    try:
        arguments = msgspec.json.decode(call.arguments, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return False  # arguments cut off or of another shape ask nothing that could be read
    several = arguments.get(roles.questions)
    asked_for = [arguments, *(several if isinstance(several, list) else ())]
    texts = [question.get(roles.question) for question in asked_for if isinstance(question, dict)]
    return any(isinstance(text, str) and kind_of(lowered(text)) == "confirmation" for text in texts)


@signal("user.confirmation_requests", "int", "requests", source="regex", priority="P1")
def confirmation_requests(view: SessionView, why: Evidence) -> Measured | Absent:
    """Requests for approval by the agent: messages, plans, and questions by tool.

    Main-thread messages (text events of one step are one) whose prose has a question of kind confirmation, plus calls
    of purpose plan_handoff and of class ask whose question is of that kind. Absent where the agent writes another
    language.

    Pitfalls: Permission dialogs of the client are not the agent's. Of 33 read, 33 asked for leave. English only.
    Why: Useful for a risky step, noise for a trivial one.
    """
    if (other := other_language(view.prose)) is not None:
        return other
    spans = view.prose.spans(asked)
    by_kind: dict[str, dict[object, Span]] = {}
    for span in spans:
        event = view.prose.event(span)
        message = event.seq if event.step is None else ("step", event.step)
        by_kind.setdefault(span.name, {}).setdefault(message, span)
    confirming = by_kind.get("confirmation", {})
    calls = [c for c in view.calls if c.class_ in ("plan", "ask") and _asks_permission(c)]
    why.matches(view.prose.matches(confirming.values()))
    why.support(calls, "asked by tool:")
    n_preferences = len(by_kind.get("preference", ()))
    detail = {"by_text": len(confirming), "by_tool": len(calls), "preference_questions": n_preferences}
    return Measured(len(confirming) + len(calls), detail)
