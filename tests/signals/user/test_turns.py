"""user.*: turns, lengths, clocks, errors, compactions."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.formats.builder import SessionBuilder
from agentsignals.model import MAIN, Absent
from agentsignals.views.session import SessionView
from tests.build import Part, call, event, say, session, user, view
from tests.signals.ask import Case, absent, detail, value


def timeless(text: str) -> Part:
    return lambda b, at: b.turn("prompt", text, None) and None


def later(seconds: int, part: Part) -> Part:
    """The part, that long after its place in the row."""
    return lambda b, at: part(b, at + seconds * 1_000_000)


def test_a_clock_that_jumps_back_is_kept_and_counted() -> None:
    one = view(user("go"), later(-10, say("ok")))
    assert value(one, "user.turn_timestamps[]")[1] == "2025-12-31T23:59:51.000Z"
    assert detail(one, "user.turn_timestamps[]")["non_monotonic"] == 1


USAGE = {"input_tokens": 5, "cache_read_tokens": 40_000, "cache_write_tokens": 2_000}


EDIT = call("Edit", path="a.py")


def test_a_pause_of_ten_minutes_within_a_response_is_told() -> None:
    asleep = view(user("go"), say("a"), later(700, say("b")))
    assert value(asleep, "user.per_turn_latency_s[]") == [702.0]
    assert detail(asleep, "user.per_turn_latency_s[]") == {"turns_with_gap": [0]}
    busy: list[Any] = [later(300 * n, say("x")) for n in range(4)]
    assert detail(view(user("go"), *busy), "user.per_turn_latency_s[]") == {"turns_with_gap": []}


def test_a_resend_within_a_minute_is_one_turn() -> None:
    def twice(b: SessionBuilder, at: int) -> None:
        b.turn("prompt", "fix the parser", at)
        b.turn("prompt", "fix the parser", at + 5_000_000)

    assert value(view(twice), "user.user_turn_count") == 1


# user.tool_errors_by_type[] and user.tool_result_sizes[].

ERRORS, SIZES = "user.tool_errors_by_type[]", "user.tool_result_sizes[]"


def bash(result: str, status: str = "error", **more: object) -> Part:
    return call("Bash", command="./deploy", result=result, status=status, **more)  # type: ignore[arg-type]  # a status


def test_results_that_came_in_another_order_than_their_calls_are_listed_as_they_came() -> None:
    def both(builder: SessionBuilder, at: int) -> None:
        for n in ("1", "2"):
            builder.call(n, "Bash", '{"command": "make"}', None, at)
        builder.result("2", "xxxxx", "ok", at)
        builder.result("1", "x", "ok", at)

    assert value(view(user("go"), both), SIZES) == [2, 1]


def test_a_result_that_is_not_logged_is_left_out_and_counted() -> None:
    def hosted(builder: SessionBuilder, at: int) -> None:
        builder.call("h", "web_search", "{}", None, at)
        found = builder.result("h", "", "ok", at)
        assert found
        found.result_tokens = None

    one = view(user("go"), hosted, bash("abc", "ok"), event("notification", "x"))
    assert (value(one, SIZES), detail(one, SIZES)) == ([1], {"unlogged": 1})


# user.model_changes[].

PATH = "user.model_changes[]"


def switched(line_of_its_own: bool) -> SessionView:
    def shown(b: SessionBuilder, at: int) -> None:
        b.event("model_change", "a -> b", at)
        if line_of_its_own:
            b.line += 100
        step = b.step(None, "b", at)
        b.event("text", "hello", at, step, MAIN)

    return view(user("go"), say("x", model="a"), user("more"), shown)


def change(before: str | None, after: str, turn: int, second: int, explicit: bool) -> dict[str, Any]:
    return {
        "from_model": before,
        "to_model": after,
        "turn_index": turn,
        "timestamp": f"2026-01-01T00:00:0{second}.000Z",
        "explicit": explicit,
    }


def test_an_entry_with_a_line_of_its_own_is_explicit_and_counts_once() -> None:
    assert value(switched(True), PATH) == [change("a", "b", 1, 3, True)]
    assert value(switched(False), PATH) == [change("a", "b", 1, 3, False)]


def test_a_trace_that_names_no_model_cannot_tell() -> None:
    made = session(user("go"), say("x"))
    made.steps[0].model = None
    assert absent(SessionView(made), PATH) == ("missing_field", "model")


CASES = (
    Case("a turn without a time leaves no stamp but its response does", view(timeless("go"), say("ok")),
         "user.turn_timestamps[]", some={"marks": "fl"}),
    Case("a turn without a time leaves no stamp but its response does", view(timeless("go"), say("ok")),
         "user.per_turn_latency_s[]", Absent("missing_field", "timestamp")),
    Case("active time leaves out how long the person took to answer",
         view(user("go"), say("which one?"), later(100, user("the left")), later(100, EDIT)),
         "user.time_to_first_edit_s", 103.5, {"work_s": 2.5}),
    Case("a result too long to keep has the size it was found with", view(user("go"), bash("x" * 1_000_000, "ok")),
         SIZES, [250_000]),
    *(Case("a compaction tells the context before and after",
           view(user("go"), say("a"), event("compaction", logged), say("b", **USAGE)), "user.compaction_events[]",
           [{"turn_index": 0, "step_index": 0, "tokens_before": before, "tokens_after": 42_005, "trigger": trigger,
           "kind": kind, "timestamp": "2026-01-01T00:00:02.000Z"}], support=[3])
      for logged, before, trigger, kind in [
        ('{"trigger":"auto","preTokens":167361}', 167_361, "auto", "full"),
        ('{"tokensBefore":90000,"firstKeptEntryId":"x"}', 90_000, None, "full"),
        ('{"kind":"micro"}', None, None, "micro"),
        ("{}", None, None, "full"),
        ("This session is being continued from a previous conversation", None, None, "full"),
        ('{"preTokens":"12"}', 12, None, "full"),
      ]),
    *(Case("without an edit or a clock there is no time to it", view(*parts), "user.time_to_first_edit_s", Absent(*why))
      for parts, why in [
        ([user("go"), say("no idea")], ("not_applicable", "no_edit")),
        ([timeless("go"), EDIT], ("missing_field", "timestamp")),
        ([EDIT], ("missing_field", "timestamp")),
      ]),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case(case: Case) -> None:
    case.check()
