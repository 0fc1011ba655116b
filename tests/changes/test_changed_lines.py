"""Removed and added lines, read off the arguments of edit calls of several agents."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsignals.changes.hunks import NOTHING, changed_lines
from agentsignals.formats.profile import EDIT_ROLES
from agentsignals.model import encode_roles

ROLES = encode_roles(EDIT_ROLES)
PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n keep(this)\n-old(line)\n+new(line)\n"


@pytest.mark.parametrize(
    ("arguments", "removed", "added"),
    [
        ({"old_string": "keep(1)\nold(line)", "new_string": "keep(1)\nnew(line)"}, {"old(line)"}, {"new(line)"}),
        ({"oldText": "old(line)", "newText": "new(line)"}, {"old(line)"}, {"new(line)"}),
        ({"oldString": "old(line)", "newString": ""}, {"old(line)"}, set()),
        ({"old_str": "    old(line)", "new_str": "old(line)"}, set(), set()),
        (
            {"edits": [{"old_string": "one()", "new_string": "two()"}, {"oldText": "three()", "newText": "four()"}]},
            {"one()", "three()"},
            {"two()", "four()"},
        ),
        ({"patchText": PATCH}, {"old(line)"}, {"new(line)"}),
        ({"input": "--- a/x.py\n+++ b/x.py\n-old(line)\n+new(line)\n"}, {"old(line)"}, {"new(line)"}),
        (PATCH, {"old(line)"}, {"new(line)"}),
        ({"old_string": "}\n)", "new_string": "end"}, set(), set()),
        ({"file_path": "a.py", "content": "x = 1"}, set(), set()),
        ({"old_string": 1, "new_string": 2}, set(), set()),
        (["old"], set(), set()),
    ],
)
def test_which_lines_a_call_changes(arguments: Any, removed: set[str], added: set[str]) -> None:
    assert changed_lines(json.dumps(arguments), ROLES) == (removed, added)


def test_arguments_that_are_no_json_are_read_as_a_patch() -> None:
    assert changed_lines(PATCH, ROLES) == ({"old(line)"}, {"new(line)"})
    assert changed_lines("", ROLES) is NOTHING
