"""user.tool_errors_by_type[] and user.tool_result_sizes[]."""

from __future__ import annotations

from agentsignals.formats.builder import SessionBuilder
from tests.build import Part, call, event, user, view
from tests.signals.ask import detail, evidence, lines, value

ERRORS, SIZES = "user.tool_errors_by_type[]", "user.tool_result_sizes[]"
SIBLING = "<tool_use_error>Sibling tool call errored</tool_use_error>"
MISSING = "<tool_use_error>File does not exist.</tool_use_error>"


def bash(result: str, status: str = "error", **more: object) -> Part:
    return call("Bash", command="./deploy", result=result, status=status, **more)  # type: ignore[arg-type]  # a status


def test_errors_are_counted_for_each_tool_and_class_most_first() -> None:
    one = view(
        user("go"),
        call("Read", path="a.py", status="error", result=MISSING),
        bash("Exit code 1"),
        bash("Exit code 2"),
        bash("fine", "ok"),
        call("Read", path="b.py"),
    )
    assert value(one, ERRORS) == [
        {"tool": "Bash", "error_class": "exit_nonzero", "n": 2, "n_results": 3},
        {"tool": "Read", "error_class": "not_found", "n": 1, "n_results": 2},
    ]
    assert lines(one, ERRORS) == [2, 3, 4]
    assert evidence(one, ERRORS).totals["denominator"] == 5


def test_no_error_is_an_empty_list_and_a_subagents_error_is_not_listed() -> None:
    assert value(view(user("go"), bash("Exit code 1", thread="agent-1"), bash("ok", "ok")), ERRORS) == []
    assert value(view(user("go")), ERRORS) == []


def test_what_a_person_refused_or_stopped_is_no_error() -> None:
    refused = call("Edit", path="a.py", status="rejected", result="The user doesn't want to proceed")
    assert value(view(user("go"), refused, bash("Command aborted", "cancelled")), ERRORS) == []


def test_a_call_cancelled_because_its_sibling_failed_has_a_class_of_its_own() -> None:
    one = view(user("go"), bash("Exit code 1"), bash(SIBLING, "cancelled"))
    assert value(one, ERRORS) == [
        {"tool": "Bash", "error_class": "exit_nonzero", "n": 1, "n_results": 2},
        {"tool": "Bash", "error_class": "sibling_cancelled", "n": 1, "n_results": 2},
    ]
    assert lines(one, ERRORS, "counter") == [3]


def test_sizes_are_a_quarter_of_the_characters_rounded_up_in_order_of_the_results() -> None:
    one = view(user("go"), bash("x" * 9, "ok"), bash("", "ok"), call("Read", path="a.py", result=None), bash("x" * 4))
    assert value(one, SIZES) == [3, 0, 1]
    assert detail(one, SIZES) == {}
    assert lines(one, SIZES) == [2, 3, 5]


def test_a_result_too_long_to_keep_has_the_size_it_was_found_with() -> None:
    assert value(view(user("go"), bash("x" * 1_000_000, "ok")), SIZES) == [250_000]


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
