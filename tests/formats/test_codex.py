"""Codex, tokens and words: every trap of design/formats.md#codex, each with records made up for it."""

from __future__ import annotations

import json

import pytest

from agentsignals.formats.builder import repo_name
from agentsignals.formats.codex import FORMAT
from agentsignals.model import Session
from tests.formats.codex_rows import (
    ID,
    OLD_TURN,
    OTHER,
    OWN_TURN,
    ROW,
    context,
    event,
    given,
    item,
    meta,
    one,
    prompt,
    row,
    says,
    texts,
    tokens,
)

# -- the session ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.com/mira/orchard.git", "mira/orchard"),
        ("git@github.com:mira/orchard.git", "mira/orchard"),
        ("ssh://git@host:22/mira/orchard", "mira/orchard"),
        ("https://gitlab.com/group/mira/orchard", "mira/orchard"),
        ("https://github.com/..git", None),
        ("https://github.com/REDACTED/orchard.git", None),
        ("", None),
        (None, None),
    ],
)
def test_the_repository_is_named_by_its_remote(url: str | None, name: str | None) -> None:
    assert repo_name(url) == name
    session = one(meta(git={"repository_url": url, "branch": "harvest"}))
    assert (session.repo, session.branch) == (name, "harvest")


# -- real files ----------------------------------------------------------------------------------------------------


PARENT = [
    meta(OTHER),
    event("task_started", turn_id=OLD_TURN),
    context(turn_id=OLD_TURN),
    prompt("draw a map"),
    says("drawn"),
    tokens((100, 0, 10, 0), (100, 0, 10, 0)),
]
OWN = [
    event("task_started", 30, turn_id=OWN_TURN),
    prompt("only pears", 31),
    says("pears"),
    tokens((180, 60, 25, 0), (80, 60, 15, 0)),
]
FORK = [meta(forked_from_id=OTHER), *PARENT, *OWN]


def test_a_slice_of_a_forks_own_part_loses_nothing() -> None:
    files = [given("fork", FORK), given("parent", PARENT), given("slice", [prompt("more", 40), prompt("and more", 50)])]
    files[2].session_hint = ID
    found = {s.session_id: s for s in FORMAT.read(files).sessions}
    assert [t.text for t in found[ID].turns] == ["only pears", "more", "and more"]


def test_snapshots_of_a_session_are_united() -> None:
    rows = [meta(), prompt("a", 1), says("x"), prompt("b", 2), prompt("c", 3)]
    files = [given("slice", rows[3:]), given("early", rows[:3]), given("middle", rows[:4])]
    files[0].session_hint = ID
    (session,) = FORMAT.read(files).sessions
    assert [t.text for t in session.turns] == ["a", "b", "c"]
    assert texts(session, "text") == ["x"]
    assert [f.artifact.record_kinds.get("repeated", 0) for f in files] == [1, 3, 0]


WRAPPED = json.dumps({"output": "no", "metadata": {"exit_code": 3, "duration_seconds": 0.1}})


# -- patches -------------------------------------------------------------------------------------------------------

PATCH = (
    "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@ def f\n x\n-old\n+new\n+newer\n@@\n-gone\n"
    "*** Add File: c.py\n+one\n+two\n*** Delete File: d.py\n*** End Patch\n"
)
DIFF = "@@ -4,3 +4,4 @@ def f\n x\n-old\n+new\n+newer\n y\n@@ -20,2 +21 @@\n z\n-gone\n"
CHANGES = {
    "/w/a.py": {"type": "update", "unified_diff": DIFF, "move_path": "/w/b.py"},
    "/w/c.py": {"type": "add", "content": "one\ntwo\n"},
    "/w/d.py": {"type": "delete", "content": "x\n"},
}


def patched(*between: ROW, said: str = "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.") -> Session:
    begun = item("custom_tool_call", call_id="p", name="apply_patch", status="completed", input=PATCH)
    return one(meta(), context(), begun, *between, item("custom_tool_call_output", call_id="p", output=said))


@pytest.mark.parametrize(
    "session",
    [
        patched(said="apply_patch verification failed: Failed to find expected lines in /w/a.py"),
        patched(event("patch_apply_end", call_id="p", success=False, changes=CHANGES), said=WRAPPED),
        patched(said="patch rejected by user"),
    ],
)
def test_a_patch_that_failed_changed_nothing(session: Session) -> None:
    assert session.edits == []
    assert session.tool_calls[0].status in ("error", "rejected")


def test_usage_records_count_where_there_are_no_counts() -> None:
    """With what was written into the cache, which newer models charge for."""

    def used(total: tuple[int, ...], last: tuple[int, ...]) -> ROW:
        names = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens")
        both = {"thread_token_usage": total, "usage": last}
        return row("token_usage_record", **{k: dict(zip(names, v, strict=True)) for k, v in both.items()})

    first, second = used((100, 30, 20, 5), (100, 30, 20, 5)), used((250, 80, 20, 11), (150, 50, 0, 6))
    rows = (meta(), context(), prompt("a"), says(), first, prompt("b"), says(), second, second)
    session = one(*rows)
    assert [(s.input_tokens, s.cache_read_tokens, s.cache_write_tokens, s.output_tokens) for s in session.steps] == [
        (50, 30, 20, 5),
        (100, 50, 0, 6),
    ]
    assert not texts(session, "unknown")
    counted = one(*rows, tokens((250, 80, 11, 0), (150, 50, 6, 0)))
    assert sum(s.output_tokens or 0 for s in counted.steps) == 11
