"""tokens.*: usage summed over the main thread, context sizes, cost."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.model import Absent
from tests.build import Part, call, say, think, user, view
from tests.signals.ask import Case, absent, detail, evidence, lines, value

TOTALS = [
    "tokens.input_tokens_total",
    "tokens.output_tokens_total",
    "tokens.cache_read_tokens",
    "tokens.cache_write_tokens",
]


def step(name: str, given: int | None, out: int | None, read: int | None, written: int | None, **more: Any) -> Part:
    tokens = {"input_tokens": given, "output_tokens": out, "cache_read_tokens": read, "cache_write_tokens": written}
    return say(name, name, **tokens, **{"stop_reason": "end_turn", **more})


TWO = [step("m1", 10, 100, 0, 2000), step("m2", 5, 50, 2000, 300)]


def test_each_total_is_the_sum_over_the_main_thread() -> None:
    one = view(user("go"), *TWO, step("x", 7, 70, 700, 7000, thread="agent-1"))
    assert [value(one, path) for path in TOTALS] == [15, 150, 2000, 2300]
    assert [detail(one, path)["subagent"] for path in TOTALS] == [7, 70, 700, 7000]
    assert detail(one, TOTALS[0])["all_input"] == 15 + 2000 + 2300
    assert lines(one, TOTALS[0]) == [2, 3]


@pytest.mark.parametrize(
    "path", [*TOTALS, "tokens.context_growth_curve[]", "tokens.cost_usd", "tokens.cache_read_ratio"]
)
def test_a_trace_that_never_reports_usage_misses_the_field(path: str) -> None:
    assert absent(view(user("go"), say("done")), path) == ("missing_field", "usage")


def test_a_provider_without_cache_writes_misses_only_that_field() -> None:
    one = view(user("go"), step("m1", 10, 5, 90, None))
    assert absent(one, "tokens.cache_write_tokens") == ("missing_field", "usage")
    assert value(one, "tokens.cache_read_ratio") == 0.9
    assert value(one, "tokens.context_growth_curve[]") == [100]


def test_without_subagents_nothing_is_said_of_them() -> None:
    one = view(user("go"), *TWO)
    assert "subagent" not in detail(one, TOTALS[0])
    assert "subagent" not in detail(view(user("go"), step("m1", 0, 0, 0, 0)), "tokens.cost_usd")


def test_a_call_that_only_reports_its_output_has_no_context_size() -> None:
    one = view(user("go"), step("m1", None, 7, None, None), step("m2", 5, 7, None, None), step("m3", None, 7, 9, None))
    assert value(one, "tokens.context_growth_curve[]") == [5, 9]
    assert (
        absent(view(user("go"), step("m1", None, 7, None, None)), "tokens.context_growth_curve[]")[0] == "missing_field"
    )


def test_all_zero_usage_is_zero_and_no_denominator() -> None:
    one = view(user("go"), step("m1", 0, 0, 0, 0))
    assert [value(one, path) for path in TOTALS] == [0, 0, 0, 0]
    assert absent(one, "tokens.cache_read_ratio") == ("not_computable", "zero_denominator")
    assert value(one, "tokens.cost_usd") == 0.0


@pytest.mark.parametrize(("stop_reasons", "flagged"), [([None, None, "end_turn"], True), ([None, "a", "b"], False)])
def test_output_of_mid_stream_snapshots_is_flagged_as_too_low(stop_reasons: list[str | None], flagged: bool) -> None:
    steps = [step(f"m{n}", 1, 2, 3, 4, stop_reason=reason) for n, reason in enumerate(stop_reasons)]
    one = view(user("go"), *steps)
    assert detail(one, "tokens.output_tokens_total").get("at_least", False) is flagged
    assert detail(one, "tokens.output_tokens_total").get("confidence") == ("low" if flagged else None)
    assert bool(evidence(one, "tokens.output_tokens_total").rules) is flagged


def test_an_agent_that_never_logs_stop_reasons_is_not_flagged() -> None:
    one = view(user("go"), step("m1", 1, 2, 3, 4, stop_reason=None), format="codex")
    assert "at_least" not in detail(one, "tokens.output_tokens_total")


def test_a_session_without_model_calls_has_an_empty_curve_and_cost_nothing() -> None:
    nothing = view(user("go"))
    assert value(nothing, "tokens.context_growth_curve[]") == []
    assert value(nothing, "tokens.cost_usd") == 0.0
    assert absent(nothing, "tokens.input_tokens_total") == ("missing_field", "usage")


@pytest.mark.parametrize(
    ("sources", "method", "table"),
    [
        (["recorded", "recorded"], "recorded", None),
        (["prices 2026-01", "prices 2026-01"], "price_table", "prices 2026-01"),
        (["recorded", "prices 2026-01"], "mixed", "prices 2026-01"),
    ],
)
def test_cost_says_where_it_came_from(sources: list[str], method: str, table: str | None) -> None:
    steps = [step(f"m{n}", 1, 2, 3, 4, cost_usd=0.25, cost_source=source) for n, source in enumerate(sources)]
    sub = step("x", 1, 1, 1, 1, thread="agent-1", cost_usd=1.0, cost_source="recorded")
    one = view(user("go"), *steps, sub)
    assert value(one, "tokens.cost_usd") == 1.5
    found = detail(one, "tokens.cost_usd")
    if method == "price_table":
        method = "mixed"  # the subagent's is recorded
    assert (found["method"], found.get("price_table"), found["main"], found["subagent"]) == (method, table, 0.5, 1.0)
    assert lines(one, "tokens.cost_usd") == [2, 3, 4]


def test_output_alone_needs_a_price_too() -> None:
    assert absent(view(user("go"), step("m1", 0, 9, 0, 0)), "tokens.cost_usd")[0] == "missing_field"


CASES = (
    Case("calls that report nothing are counted beside those that do", view(user("go"), *TWO, say("aborted", "m3")),
         "tokens.output_tokens_total", 150, some={"steps_without": 1}),
    Case("output is estimated from everything the model wrote",
         view(user("go"), think("t" * 8), step("0123", 1, 9, 1, 1), call("Read", path="a"), say("sub",
         thread="agent-1")), "tokens.output_tokens_total",
         some={"estimated": (8 + 4 + len(view(user("go"), think("t" * 8), step("0123", 1, 9, 1, 1), call("Read",
         path="a"), say("sub", thread="agent-1")).calls[0].arguments) + 3) // 4}),
    Case("cache read ratio has the form that counts writes", view(user("go"), *TWO), "tokens.cache_read_ratio",
         2000 / 4315, {"num": 2000, "den": 4315, "read_or_new": 2000 / 2015}, support=[3], denominator=[2, 3]),
    Case("the context is cached and uncached input together",
         view(user("go"), *TWO, step("m3", 4, 9, 0, 500), step("x", 9, 9, 9, 9, thread="agent-1")),
         "tokens.context_growth_curve[]", [2010, 2305, 504], {"first": 2010, "max": 2305, "last": 504},
         support=[2, 3, 4]),
    Case("a call with tokens and no price leaves the cost unknown and names the model",
         view(user("go"), step("m1", 1, 2, 3, 4, cost_usd=0.25), step("m2", 1, 2, 3, 4, model="new-model")),
         "tokens.cost_usd", Absent("missing_field", "unpriced: new-model"), counter=[3]),
    Case("a call that reports neither tokens nor cost is counted beside the cost",
         view(user("go"), step("m1", 1, 2, 3, 4, cost_usd=0.25), say("aborted", "m2")), "tokens.cost_usd", 0.25,
         some={"steps_without": 1}),
    Case("a session has no cost when a subagent has no price",
         view(user("go"), step("m1", 1, 2, 3, 4, cost_usd=0.25), step("x", 1, 1, 1, 1, thread="agent-1")),
         "tokens.cost_usd", Absent("missing_field", "unpriced: claude-opus-4-5")),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case(case: Case) -> None:
    case.check()
