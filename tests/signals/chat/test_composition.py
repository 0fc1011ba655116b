"""chat.file_types_touched and the composition of sessions by position."""

from __future__ import annotations

import pytest

from agentsignals.model import Absent
from agentsignals.signals import Measured
from agentsignals.signals.catalog import by_path, plain
from tests.build import call, user, view
from tests.signals.ask import absent, lines, value, values_over_sessions

TYPES, POSITIONS, SHARES = (
    "chat.file_types_touched",
    "chat.tool_calls_by_position",
    "chat.tool_composition_by_position",
)


def test_extensions_are_counted_in_lower_case_over_reads_edits_and_searches_of_a_file() -> None:
    one = view(
        user("go"),
        call("Read", path="src/a.PY"),
        call("Read", path="src/a.PY"),
        call("Edit", path="src/a.py"),
        call("Grep", path="docs/x.md", pattern="y"),
        call("Grep", path="docs", pattern="y"),
        call("Bash", command="make"),
        call("Read", path="b.py", thread="agent-1"),
    )
    assert value(one, TYPES) == {"py": 3, "md": 1}
    assert lines(one, TYPES) == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("path", "extension"),
    [
        ("Makefile", "(none)"),
        (".gitignore", "(none)"),
        ("..x", "(none)"),
        ("a.tar.gz", "gz"),
        ("v1.2/notes", "(none)"),
        (".eslintrc.json", "json"),
        ("odd.", "(none)"),
    ],
)
def test_the_extension_is_behind_the_last_dot_that_the_name_does_not_begin_with(path: str, extension: str) -> None:
    assert value(view(user("go"), call("Read", path=path)), TYPES) == {extension: 1}


def test_a_session_that_touched_no_file_has_no_types() -> None:
    assert value(view(user("go"), call("Bash", command="make")), TYPES) == {}


def test_each_call_falls_into_its_tenth_of_the_session() -> None:
    reads, edits = [call("Read", path="a.py")] * 15, [call("Edit", path="a.py")] * 5
    one = view(user("go"), *reads, *edits)
    assert value(one, POSITIONS) == {
        "read": [2, 2, 2, 2, 2, 2, 2, 1, 0, 0],
        "edit": [0, 0, 0, 0, 0, 0, 0, 1, 2, 2],
    }
    assert len(lines(one, POSITIONS)) == 20


def test_nine_calls_are_too_few_and_ten_are_one_for_each_tenth() -> None:
    read = call("Read", path="a.py")
    assert absent(view(user("go"), *[read] * 9), POSITIONS) == ("not_applicable", "under_10_calls")
    assert value(view(user("go"), *[read] * 10), POSITIONS) == {"read": [1] * 10}


def test_calls_that_do_not_divide_by_ten_fall_into_the_tenth_they_begin_in() -> None:
    read = call("Read", path="a.py")
    assert value(view(user("go"), *[read] * 13), POSITIONS) == {"read": [2, 1, 1, 2, 1, 1, 2, 1, 1, 1]}


def test_shares_are_of_the_calls_of_all_sessions_in_a_tenth() -> None:
    sessions = [{"read": [3] + [1] * 9}, {"edit": [1] + [0] * 9, "read": [0] * 10}]
    found = values_over_sessions(by_path(SHARES), {"tool_calls_by_position": sessions})
    assert isinstance(found, Measured)
    assert plain(found.value)[:3] == [
        {"position_bin": 0, "class": "edit", "share": 0.25, "n": 4},
        {"position_bin": 0, "class": "read", "share": 0.75, "n": 4},
        {"position_bin": 1, "class": "read", "share": 1.0, "n": 1},
    ]
    assert len(found.value) == 11
    assert found.detail == {"n_sessions": 2, "n_calls": 13}


def test_without_a_long_enough_session_there_is_no_composition() -> None:
    assert values_over_sessions(by_path(SHARES), {}) == Absent("not_applicable", "no_sessions")
