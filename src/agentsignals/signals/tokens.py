"""Tokens and money of the model calls, as the trace reports them (design/formats.md#token-usage)."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from agentsignals.model import Absent
from agentsignals.model.prices import CACHE_WRITES, PAID, PROMPT, Kind
from agentsignals.signals import Measured, ratio, signals_with
from agentsignals.views.session import Evidence, SessionView
from agentsignals.views.usage import VISIBLE_ERROR, cost_of, replaced_usd, unpriced_parts, usd_of, used_tokens
from agentsignals.words.text import estimate_tokens

signal = signals_with(context="both", level="attempt", origin="Agent Signals")

_NO_TABLES = frozenset(("recorded", None))


@signal("tokens.input_tokens_total", "int", "tokens", version=2, harness=True)
def input_tokens_total(view: SessionView, why: Evidence) -> Measured | Absent:
    """Input tokens of the main thread's model calls that came from no cache, each call once.

    Sum of `steps.input_tokens` of the main thread; absent where no step has it.

    Pitfalls: With prompt caching this is a tiny remainder: ratios want `all_input`, which counts cached tokens too.
    """
    total = _total(view, why, "input_tokens", {"input"})
    if isinstance(total, Measured) and "method" not in total.detail:
        total.detail["all_input"] = view.usage.all_input
    return total


@signal("tokens.output_tokens_total", "int", "tokens", version=3, grows_with_output=True, harness=True)
def output_tokens_total(view: SessionView, why: Evidence) -> Measured | Absent:
    """Output tokens of the main thread's model calls, reasoning included where the provider counts it so.

    Sum of `steps.output_tokens` of the main thread; absent where no step has it.

    Pitfalls: Older Claude Code logs a mid-stream count: with `at_least` the number is a lower bound (2.4 times too low
    in one corpus); never compare such versions with others. `estimated` is characters / 4.
    """
    total = _total(view, why, "output_tokens", {"output"})
    if isinstance(total, Measured) and "method" not in total.detail:
        total.detail["estimated"] = estimate_tokens(view.written_chars)
        total.detail["final_share"] = view.final_share
        if view.undercounted:
            why.rule(
                "fewer than half of the model calls have a stop reason: their counts are from mid-stream, and this is"
                f" at least what was used; the visible text alone comes to `estimated` tokens ({VISIBLE_ERROR})"
            )
    return total


def usage_total(name: str, kinds: Collection[Kind], doc: str, **facts: Any) -> None:
    """Declare the sum of one usage field over the main thread."""
    facts["computation"] = f"Sum of `steps.{name}` of the main thread; absent where no step has it."
    signal(f"tokens.{name}", "int", "tokens", doc=doc, **facts)(lambda view, why: _total(view, why, name, kinds))


usage_total(
    "cache_read_tokens",
    {"cache read"},
    """Input tokens that the main thread's model calls had read from a cache.

    Pitfalls: Dominates volume and often cost.
    """,
    version=2,
    harness=True,
)
usage_total(
    "cache_write_tokens",
    CACHE_WRITES,
    """Input tokens that the main thread's model calls wrote to a cache.

    Pitfalls: Priced above plain input, and forgotten by many cost tools. Absent where the provider has no such thing.
    Of eval runs one value on the project's corpus.
    """,
    priority="P1",
)


@signal("tokens.cache_read_ratio", "float", "ratio", version=2, priority="P1")
def cache_read_ratio(view: SessionView, why: Evidence) -> Measured | Absent:
    """Cache reads / (cache reads + cache writes + uncached input), summed over the main thread's `steps`.

    A missing count is 0. Absent where no step has cache reads logged.

    Pitfalls: Without the writes (`read_or_new`) it is near 1 everywhere: new text is logged as a cache write.
    """
    used = view.usage
    if used.cache_read_tokens is None:
        return Absent("missing_field", "usage")
    why.support(s for s in view.billed_steps if s.cache_read_tokens)
    why.denominator(view.billed_steps)
    why.bill(view.billed_steps, PROMPT)
    unwritten = used.cache_read_tokens + (used.input_tokens or 0)
    read_or_new = used.cache_read_tokens / unwritten if unwritten else None
    return ratio(used.cache_read_tokens, used.all_input, read_or_new=read_or_new)


@signal("tokens.context_growth_curve[]", "list[int]", "tokens per step")
def context_growth_curve(view: SessionView, why: Evidence) -> Measured | Absent:
    """Size of the context at each model call of the main thread: uncached input + cache reads + cache writes.

    For each row of `steps` of the main thread with input or cache reads logged, in order, input_tokens +
    cache_read_tokens + cache_write_tokens. Steps whose stop_reason is session_total or begins with `iteration_` (an
    advisor's call) are left out.

    Pitfalls: A drop is a compaction (user.compaction_events) or an aborted call, which reports zeros.
    Why: Fast growth is code read in bulk, a plateau is economy; tells more than totals.
    """
    sized = [
        s for s in view.billed_steps
        if (s.input_tokens is not None or s.cache_read_tokens is not None) and not s.is_beside
    ]  # fmt: skip
    if view.steps and not sized:
        return Absent("missing_field", "usage")
    why.support(sized)
    why.bill(sized, PROMPT)
    curve = [(s.input_tokens or 0) + (s.cache_read_tokens or 0) + (s.cache_write_tokens or 0) for s in sized]
    return Measured(curve, {"first": curve[0], "max": max(curve), "last": curve[-1]} if curve else {})


@signal("tokens.cost_usd", "float", "USD", version=7, grows_with_output=True, harness=True)
def cost_usd(view: SessionView, why: Evidence) -> Measured | Absent:
    """Cost of all model calls, subagents' and left branches' too: as the trace recorded it, else tokens times a
    versioned price table, or prices of a person's own. Dollars that an agent records for a model of another maker than
    it has prices of are replaced.

    Sum of `cost_usd` over all rows of `steps`, any thread, 0 without a row; absent where none reports tokens or
    cost, and where calls used tokens and none has a cost.

    Pitfalls: List prices where the trace recorded none; a lower bound with `at_least` (output logged in mid-stream),
    and too low by what `unpriced` names. Means little alone. Method harness: of an eval attempt whose trace tells no
    cost, as its harness recorded it, subagents included.
    """
    attempt = view.session.attempt
    computed = _own_cost(view, why) if attempt is None or view.steps else Absent("missing_field", "usage")
    recorded = None if attempt is None else attempt.cost_usd
    if isinstance(computed, Measured) and recorded is not None:
        computed.detail["harness"] = recorded
    if attempt is None or isinstance(computed, Measured):
        return computed
    if attempt.replaced_cost_usd is not None:
        return Absent("missing_field", f"the harness's ${attempt.replaced_cost_usd:,.2f} is at another maker's prices")
    if recorded is None:
        return computed if attempt.has_transcript else Absent("missing_artifact", "session_jsonl")
    if not recorded > 0 and (attempt.input_tokens or attempt.output_tokens):
        return Absent("missing_field", "unpriced: the harness says 0 for tokens used")
    why.support(attempt.saying("cost_usd"))
    return Measured(float(recorded), {"method": "harness"})


def _own_cost(view: SessionView, why: Evidence) -> Measured | Absent:
    """Return the cost of the session's priced model calls, with its source; absent where none has a price."""
    steps = view.session.steps
    cost = cost_of(steps)
    unpriced = [s for s in steps if s.cost_usd is None and used_tokens(s)]
    why.counter(unpriced, "no price")
    if cost is None:
        if not unpriced:
            return Absent("missing_field", "usage")
        models = ", ".join(sorted({s.model or "unknown model" for s in unpriced}))
        return Absent("missing_field", f"unpriced: {models}")
    priced = [s for s in steps if s.cost_usd is not None]
    why.support(priced)
    why.bill(steps, PAID)
    sources = {s.cost_source for s in priced}
    tables = sources - _NO_TABLES
    detail: dict[str, Any] = {"method": "recorded" if priced else "no_usage"}
    if tables:
        detail["method"] = "mixed" if len(tables) < len(sources) else "price_table"
        detail["price_table"] = ", ".join(sorted(map(str, tables)))
    if (replaced := replaced_usd(steps)) is not None:
        detail["replaced_recorded"] = replaced
    if len(view.steps) < len(steps):
        detail["main"] = usd_of(view.steps)
        detail["subagent"] = usd_of(view.subagent_steps)
    if len(priced) < len(steps):
        detail["steps_without"] = len(steps) - len(priced)
    if (lacking := unpriced_parts(steps)) is not None:
        detail["unpriced"] = lacking
    if view.undercounted:
        why.rule("lower bound: output tokens are under-reported")
    return Measured(cost, detail)


def _total(view: SessionView, why: Evidence, field: str, kinds: Collection[Kind]) -> Measured | Absent:
    """Return the sum of one usage field over the main thread; `subagent` is the sum over the others. An eval attempt
    whose trace has none gets the harness's figure, which includes subagents. Cached input is taken off; where the
    harness does not tell it, `with_cached` marks the figure."""
    total = getattr(view.usage, field)
    if total is None:
        attempt = view.session.attempt
        recorded: int | None = None if attempt is None else getattr(attempt, field, None)
        if attempt is None or recorded is None:
            collected = attempt is None or attempt.has_transcript
            return Absent("missing_field", "usage") if collected else Absent("missing_artifact", "session_jsonl")
        why.support(attempt.saying(field))
        if field != "input_tokens":
            return Measured(recorded, {"method": "harness"})
        if attempt.cache_read_tokens is None:
            return Measured(recorded, {"method": "harness", "with_cached": True})
        return Measured(max(recorded - attempt.cache_read_tokens, 0), {"method": "harness", "all_input": recorded})
    why.support(view.billed_steps)
    why.bill(view.billed_steps, kinds)
    detail: dict[str, Any] = {}
    if len(view.billed_steps) < len(view.steps):
        detail["steps_without"] = len(view.steps) - len(view.billed_steps)
    if len(view.steps) < len(view.session.steps):
        detail["subagent"] = sum([getattr(s, field) or 0 for s in view.subagent_steps])
    return Measured(total, detail)


MOST_WITHOUT_COST = 0.05
"""Share of attempts without a cost above which a cost per solved task would be too low."""


@signal("tokens.cost_per_resolved_task", "float", "USD per task", version=2, grows_with_output=True, level="corpus",
        priority="P1")  # fmt: skip
def cost_per_resolved_task(attempt_result: list[dict[str, Any]]) -> Measured | Absent:
    """Cost of all attempts / trials that some attempt solved.

    Sum of tokens.cost_usd of all attempts / different trials with an attempt of reward 1. Absent where more than 5
    % of the attempts have no cost.

    Pitfalls: Over several `treatments` it compares nothing: `by_treatment` has each. Costs nobody recorded are missing
    from the sum (`n_missing`).
    Why: A cost without an outcome says nothing; a cost for each attempt is undefined where the reward is 0.
    """
    if not attempt_result:
        return Absent("not_applicable", "no_attempts")
    missing = len([a for a in attempt_result if a["cost_usd"] is None])
    if missing > MOST_WITHOUT_COST * len(attempt_result):
        return Absent("dependency_null", f"tokens.cost_usd: {missing} of {len(attempt_result)} attempts")
    groups: dict[str, list[dict[str, Any]]] = {}
    for attempt in attempt_result:
        groups.setdefault(attempt["treatment"], []).append(attempt)
    rows = [{"treatment": name, **_cost_of_solving(group)} for name, group in sorted(groups.items())]
    whole = _cost_of_solving(attempt_result)
    if not whole["solved"]:
        return Absent("not_computable", "zero_denominator")
    num, den = whole["cost_usd"], whole["solved"]
    return ratio(num, den, n_missing=missing, treatments=len(groups), by_treatment=rows)


def _cost_of_solving(attempts: list[dict[str, Any]]) -> dict[str, Any]:
    cost = math.fsum([a["cost_usd"] or 0.0 for a in attempts])
    solved = len({a["trial"] for a in attempts if a["reward"] == 1})
    return {"cost_usd": cost, "solved": solved, "per_solved": cost / solved if solved else None, "n": len(attempts)}
