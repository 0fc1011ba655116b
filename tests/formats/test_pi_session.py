"""Pi: what becomes of an entry (design/formats.md#pi), each trap with entries made up for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.formats.pi_entries import ROW, call, entry, main_texts, one, result, talk

# -- the person ----------------------------------------------------------------------------------------------------


SKILL = '<skill name="brief" location="/s">\nbody\n</skill>'
ATTACHED = '<file name="/w/a.py">\nx = 1\n</file>'


@pytest.mark.parametrize(
    ("content", "turn", "rest"),
    [
        ("plain", ("prompt", "plain"), []),
        ([{"type": "text", "text": "see"}, {"type": "image", "data": "eA=="}], ("prompt", "see"), []),
        ([{"type": "image", "data": "eA=="}], ("attachment", ""), []),
        (f"{SKILL}\n\nfor us", ("slash_command", "/skill:brief for us"), [SKILL]),
        (SKILL, ("slash_command", "/skill:brief"), [SKILL]),
        (f"{ATTACHED}\nfix it", ("prompt", "fix it"), [ATTACHED]),
        (ATTACHED, ("attachment", ""), [ATTACHED]),
        ("Task: [Read from: /w/plan.md]\n\nDo it", None, ["Task: [Read from: /w/plan.md]\n\nDo it"]),
        ("Task: tidy up", ("prompt", "Task: tidy up"), []),
    ],
)  # fmt: skip
def test_which_words_are_the_persons(content: object, turn: tuple[str, str] | None, rest: list[str]) -> None:
    session = talk({"message": {"role": "user", "content": content}})
    assert [(t.kind, t.text) for t in session.turns] == ([turn] if turn else [])
    assert main_texts(session, "meta") == rest


# -- the agent -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "error", "expected"),
    [
        ("bash", "fine\nCommand exited with code 1", False, ("ok", None, None)),
        ("bash", "boom\n\n\nCommand exited with code 2", True, ("error", "exit_nonzero", 2)),
        ("bash", "x" * 9000 + "\n\nCommand exited with code 7", True, ("error", "exit_nonzero", 7)),
        ("bash", "partial\n\n\nCommand aborted", True, ("cancelled", None, None)),
        ("edit", "Could not find edits[0] in a.py", True, ("error", "edit_mismatch", None)),
        ("read", "Skipped due to queued user message.", True, ("cancelled", None, None)),
        ("bash", "Blocked by user", True, ("rejected", None, None)),
    ],
)
def test_what_became_of_a_call(name: str, text: str, error: bool, expected: tuple[str, str | None, int | None]) -> None:
    (made,) = talk(call("c", name, command="do it", path="a.py"), result("c", name, text, error)).tool_calls
    assert (made.status, made.error_class, made.exit_code) == expected


# -- edits ---------------------------------------------------------------------------------------------------------

DIFF = "     ...\n  40 a\n- 41 old\n+ 41 new\n+ 42 newer\n  42 b\n     ...\n  90 c\n- 91 gone\n  92 d"
DIFF_OF_EARLY_V1 = "     ...\n   1 a\n   2 b\n- 32 old\n+ 32 new\n  33 c"
PAIRS = [{"oldText": "a", "newText": "b\nc"}, {"oldText": "d\ne", "newText": "d"}]
PATCH = "--- a.py\n+++ a.py\n@@ -40,3 +40,4 @@\n a\n-old\n+new\n+newer\n b\n"


@pytest.mark.parametrize(
    ("arguments", "details", "hunks"),
    [
        ({"oldText": "old", "newText": "new"}, {"diff": DIFF}, [(41, 42, 2, 1, 41), (92, 92, 0, 1, 91)]),
        ({"oldText": "old", "newText": "new"}, {"diff": DIFF_OF_EARLY_V1}, [(32, 32, 1, 1, 32)]),
        ({"edits": []}, {"diff": "unused", "patch": PATCH}, [(41, 42, 2, 1, 41)]),
        ({"oldText": "a\nb\nc", "newText": "a\nB\nc"}, {}, [(None, None, 1, 1, None)]),
        ({"edits": PAIRS}, None, [(None, None, 2, 1, None), (None, None, 0, 1, None)]),
        ({"edits": '[{"oldText": "a"}]'}, None, [(None, None, None, None, None)]),
    ],
    ids=["numbered", "numbered from one after a gap", "patch", "one pair", "pairs", "unreadable"],
)  # fmt: skip
def test_changed_lines_come_from_the_diff_else_from_the_arguments(
    arguments: ROW, details: object, hunks: list[Any]
) -> None:
    session = talk(
        call("c", "edit", path="a.py", **arguments), result("c", "edit", "Successfully replaced", details=details)
    )
    assert [(e.start_line, e.end_line, e.added, e.removed, e.old_start) for e in session.edits] == hunks
    assert {(e.path, e.op) for e in session.edits} == {("a.py", "modify")}


# -- other entries -------------------------------------------------------------------------------------------------


PHASE = {"phase": "planning", "lastSubmittedPath": None}
KEPT = {"tokensBefore": 99, "firstKeptEntryId": "a"}
KEPT_V1 = {"tokensBefore": 98, "firstKeptEntryIndex": 4}


@pytest.mark.parametrize(
    ("type_", "fields", "events"),
    [
        ("custom", {"customType": "plannotator", "data": PHASE}, [("phase", PHASE)]),
        ("custom_message", {"customType": "plannotator", "content": "", "details": PHASE}, [("phase", PHASE)]),
        ("custom", {"customType": "todo-state", "data": {"open": 3}}, [("meta", "todo-state")]),
        ("custom_message", {"customType": "lint", "content": "80 of 100"}, [("notification", "80 of 100")]),
        ("message", {"message": {"role": "hookMessage", "content": "v2 hook"}}, [("notification", "v2 hook")]),
        ("compaction", {"summary": "so far", **KEPT}, [("compaction", KEPT), ("meta", "so far")]),
        ("compaction", KEPT_V1, [("compaction", KEPT_V1)]),
        ("branch_summary", {"summary": "tried"}, [("meta", "tried")]),
        ("thinking_level_change", {"thinkingLevel": "high"}, [("meta", "thinking level: high")]),
        ("session_info", {"name": "Clock"}, []),
        ("brand_new_thing", {}, [("unknown", "brand_new_thing")]),
        ("message", {"message": {"role": "brandNew"}}, [("unknown", "message.brandNew")]),
    ],
)
def test_entries_that_are_no_words(type_: str, fields: ROW, events: list[tuple[str, object]]) -> None:
    session = one(entry("a", None, 1, type_, **fields))
    got = [
        (e.kind, json.loads(e.text or "") if isinstance(want, dict) else e.text)
        for e, (_, want) in zip(session.events, events, strict=True)
    ]
    assert got == events
    assert session.title == fields.get("name")
