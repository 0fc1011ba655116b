"""corpus.*: the behavioural metrics of agent-traces, of a session and of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agentsignals.model import Absent
from agentsignals.signals import Measured
from agentsignals.signals.catalog import by_path
from tests.build import Part, call, event, say, think, user, view
from tests.signals.ask import absent, detail, evidence, lines, value, values_over_sessions

READ = call("Read", path="a.py")
SUBAGENT = call("Read", path="b.py", thread="agent-1")


def over_sessions(path: str, **values: Sequence[Any]) -> Any:
    return values_over_sessions(by_path(path), values)


def test_autonomy_is_calls_for_each_human_turn() -> None:
    one = view(user("go"), READ, READ, READ, user("more"), READ, SUBAGENT)
    assert value(one, "corpus.autonomy_ratio") == 2.0
    assert detail(one, "corpus.autonomy_ratio") == {"num": 4, "den": 2, "with_subagents": 2.5}
    assert lines(one, "corpus.autonomy_ratio") == [2, 3, 4, 6]
    assert lines(one, "corpus.autonomy_ratio", "denominator") == [1, 5]


def test_autonomy_without_calls_is_zero_and_without_turns_not_computable() -> None:
    assert value(view(user("go"), say("hello")), "corpus.autonomy_ratio") == 0.0
    assert absent(view(READ), "corpus.autonomy_ratio") == ("not_computable", "zero_denominator")


def test_error_rate_is_the_sessions_tool_error_rate() -> None:
    failed, refused = call("Bash", command="make", status="error"), call("Edit", path="a.py", status="rejected")
    one = view(user("go"), READ, failed, refused, READ, READ)
    assert value(one, "corpus.error_rate") == value(one, "user.tool_error_rate") == 0.25
    found = detail(one, "corpus.error_rate")
    assert found["num"] / found["den"] == 0.25
    assert lines(one, "corpus.error_rate") == [3]
    assert any("user.tool_error_rate = 0.25" in i.excerpt for i in evidence(one, "corpus.error_rate").items)


def test_error_rate_without_results_has_nothing_to_go_on() -> None:
    assert absent(view(user("go")), "corpus.error_rate")[0] == "dependency_null"


@pytest.mark.parametrize(
    ("names", "bits", "norm"),
    [
        (["Read"] * 5, 0.0, 0.0),
        (["Read", "Bash"], 1.0, 1.0),
        (["Read", "Read", "Bash", "Edit"], 1.5, 1.5 / 1.584962500721156),
    ],
)
def test_tool_mix_entropy_is_in_bits_and_normed_by_the_number_of_tools(
    names: list[str], bits: float, norm: float
) -> None:
    one = view(user("go"), *(call(name) for name in names), SUBAGENT)
    assert value(one, "corpus.tool_mix_entropy") == pytest.approx(bits)
    assert detail(one, "corpus.tool_mix_entropy")["norm"] == pytest.approx(norm)


def test_tools_of_one_class_add_nothing_to_the_entropy_of_classes() -> None:
    one = view(user("go"), call("mcp__a__x"), call("mcp__b__y"))
    assert value(one, "corpus.tool_mix_entropy") == 1.0
    assert detail(one, "corpus.tool_mix_entropy")["class_entropy"] == 0.0


def test_the_class_mix_has_shares_that_sum_to_one() -> None:
    one = view(user("go"), READ, READ, call("Bash", command="pytest"), call("Bash", command="git log"), SUBAGENT)
    assert value(one, "corpus.tool_class_mix") == {"read": 0.5, "test": 0.25, "vcs": 0.25}
    assert detail(one, "corpus.tool_class_mix") == {"n": 4}
    assert lines(one, "corpus.tool_class_mix") == [2, 3, 4, 5]


@pytest.mark.parametrize("path", ["corpus.tool_mix_entropy", "corpus.tool_class_mix"])
def test_without_calls_there_is_no_mix(path: str) -> None:
    assert absent(view(user("go"), say("hello")), path) == ("not_applicable", "no_calls")


def test_session_length_counts_what_says_something_and_leaves_subagents_out() -> None:
    one = view(
        user("go"),
        think("hm"),
        say("a"),
        READ,
        event("meta"),
        event("interrupt"),
        event("compaction"),
        event("unknown"),
        event("notification"),
        SUBAGENT,
    )
    assert value(one, "corpus.session_length_events") == 7
    assert detail(one, "corpus.session_length_events") == {"subagent_events": 2}
    assert lines(one, "corpus.session_length_events") == [1, 2, 3, 4, 4, 6, 7]


@pytest.mark.parametrize(("lengths", "median"), [([3], 3.0), ([1, 2, 10], 2.0), ([10, 1, 4, 2], 3.0)])
def test_the_median_of_an_even_number_is_between_the_two_in_the_middle(lengths: list[int], median: float) -> None:
    found = over_sessions("corpus.median_session_length_events", session_length_events=lengths)
    assert found == Measured(median, {"n": len(lengths)})


def test_no_sessions_have_no_median() -> None:
    assert over_sessions("corpus.median_session_length_events") == Absent("not_applicable", "no_sessions")


def priced(cost: float | None, thread: str = "main", tokens: int = 5) -> Part:
    return say("x", input_tokens=tokens, output_tokens=tokens, cost_usd=cost, thread=thread)


def test_a_sessions_cost_includes_its_subagents() -> None:
    one = view(user("go"), priced(1.5), priced(0.5, "agent-1"), priced(None, "agent-1", 0))
    assert value(one, "corpus.session_cost_usd") == 2.0
    assert detail(one, "corpus.session_cost_usd")["subagent"] == 0.5
    assert lines(one, "corpus.session_cost_usd") == [2, 3]


@pytest.mark.parametrize("usage", [{"output_tokens": 5}, {"input_tokens": 5}, {"cache_read_tokens": 5}])
def test_a_sessions_cost_is_unknown_when_a_subagents_is(usage: dict[str, int]) -> None:
    one = view(user("go"), priced(1.5), say("x", thread="agent-1", **usage))
    assert absent(one, "corpus.session_cost_usd") == ("dependency_null", "tokens.cost_usd")


def test_a_sessions_cost_is_unknown_when_the_main_threads_is() -> None:
    assert absent(view(user("go"), priced(None)), "corpus.session_cost_usd") == ("dependency_null", "tokens.cost_usd")


def test_cost_per_session_is_the_mean_of_the_known_costs_and_tells_how_many_are_not() -> None:
    found = over_sessions(
        "corpus.cost_per_session",
        session_cost_usd=[1.0, 2.0, 6.0],
        session_length_events=[9] * 5,
    )
    assert found == Measured(3.0, {"median": 2.0, "n": 3, "n_null": 2})


def test_cost_per_session_without_any_cost_is_not_computable() -> None:
    assert over_sessions("corpus.cost_per_session", session_length_events=[9]) == Absent("not_computable", "no_costs")


RATIO = "corpus.output_input_token_ratio"


def test_output_is_compared_with_all_input_cached_or_not() -> None:
    usage = {
        "input_tokens": 10,
        "output_tokens": 30,
        "cache_read_tokens": 80,
        "cache_write_tokens": 10,
        "stop_reason": "x",
    }
    one = view(user("go"), say("a", **usage), say("b", **usage))
    assert value(one, RATIO) == 0.3
    assert detail(one, RATIO) == {"num": 60, "den": 200, "literal": 3.0}
    assert lines(one, RATIO) == [2, 3]


def test_output_counted_in_mid_stream_brings_an_estimate() -> None:
    one = view(user("go"), say("x" * 40, input_tokens=0, output_tokens=1, cache_read_tokens=100))
    estimated = {"confidence": "low", "at_least": True, "estimated": 0.1}
    assert detail(one, RATIO) == {"num": 1, "den": 100, "literal": None, **estimated}


def test_the_token_ratio_needs_usage_and_something_to_divide_by() -> None:
    assert absent(view(user("go"), say("a")), RATIO) == ("missing_field", "usage")
    assert absent(view(user("go"), say("a", output_tokens=3)), RATIO) == ("missing_field", "usage")
    assert absent(view(user("go"), say("a", input_tokens=0, output_tokens=0)), RATIO) == (
        "not_computable",
        "zero_denominator",
    )


def test_short_messages_are_counted_by_characters_of_the_stripped_text() -> None:
    texts = ["x" * 19, f"  {'x' * 20}\n", "x" * 21, "é" * 20, "   "]
    one = view(*(user(text) for text in texts), user("yes", "plan_handoff"), user("", "attachment"))
    assert value(one, "corpus.short_messages") == {"le_20": 3, "lt_20": 1, "n": 4}
    assert lines(one, "corpus.short_messages") == [1, 2, 4]
    assert lines(one, "corpus.short_messages", "denominator") == [1, 2, 3, 4]


def test_a_session_in_which_nothing_was_typed_has_no_short_messages() -> None:
    assert absent(view(user("plan", "plan_handoff")), "corpus.short_messages") == ("not_applicable", "no_messages")


def test_the_share_of_short_messages_pools_the_sessions() -> None:
    counts = [{"le_20": 1, "lt_20": 0, "n": 1}, {"le_20": 1, "lt_20": 1, "n": 7}]
    found = over_sessions("corpus.share_messages_le_20_chars", short_messages=counts)
    assert found == Measured(0.25, {"num": 2, "den": 8, "lt_20": 0.125})
    nothing = over_sessions("corpus.share_messages_le_20_chars")
    assert nothing == Absent("not_computable", "zero_denominator")
