"""anticipation.first_tool_precision."""

from __future__ import annotations

import pytest

from tests.build import Part, call, user, view
from tests.signals.ask import absent, detail, lines, value

PATH = "anticipation.first_tool_precision"
EDIT = call("Edit", path="src/a.py")
LISTING = call("Bash", command="ls src")


@pytest.mark.parametrize(
    ("parts", "expected", "same_dir"),
    [
        ([call("Read", path="src/a.py"), EDIT], True, True),
        ([call("Read", path="src/b.py"), EDIT], False, True),
        ([call("Read", path="README.md"), EDIT], False, False),
        (
            [LISTING, call("Grep", path="src"), call("Bash", command="git log"), call("Read", path="src/a.py"), EDIT],
            True,
            True,
        ),
        ([call("Read", path="gone.py", status="error"), call("Read", path="src/a.py"), EDIT], False, False),
        ([call("Grep", path="src/a.py"), EDIT], True, True),
        ([EDIT], True, True),
        ([call("Read", path="/home/me/shot.png"), call("Read", path="src/a.py"), EDIT], True, True),
        ([call("Read", path="src/b.py", thread="agent-1"), EDIT], True, True),
        ([call("Read", path="src"), EDIT], True, True),
        ([call("Read", path="lib"), call("Read", path="lib/b.py"), EDIT], False, False),
        ([call("Read", path="sr"), EDIT], False, False),
    ],
)
def test_the_first_file_looked_at_is_one_that_changes(parts: list[Part], expected: bool, same_dir: bool) -> None:
    one = view(user("go"), *parts, cwd="/home/me/app")
    assert value(one, PATH) is expected
    assert detail(one, PATH)["same_dir"] is same_dir


def test_the_first_substantive_call_and_the_edits_are_the_evidence() -> None:
    one = view(user("go"), LISTING, call("Read", path="src/b.py"), EDIT)
    assert detail(one, PATH) == {"file": "src/b.py", "class": "read", "same_dir": True}
    assert (lines(one, PATH), lines(one, PATH, "denominator")) == ([3], [4])


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ([call("Read", path="a.py")], "no_edit"),
        ([call("Read", path="a.py"), call("Write", path="/home/me/.claude/plans/p.md")], "no_edit"),
        ([LISTING, call("Bash", command="sed -i s/a/b/ a.py")], "no_substantive_call"),
    ],
)
def test_without_an_edit_or_a_substantive_call_it_does_not_apply(parts: list[Part], why: str) -> None:
    assert absent(view(user("go"), *parts, cwd="/home/me/app"), PATH) == ("not_applicable", why)
