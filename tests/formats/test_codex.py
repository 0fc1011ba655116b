"""Codex, tokens and words: every trap of design/formats.md#codex, each with records made up for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentsignals.formats import Input, identify
from agentsignals.formats.builder import repo_name
from agentsignals.formats.codex import FORMAT
from agentsignals.formats.head import HEAD_BYTES, Head
from agentsignals.model import Artifact, Session
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
    says,
    texts,
    tokens,
)

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"

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


@pytest.mark.slow
@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real traces is not there")
def test_real_sessions_have_the_figures_counted_another_way() -> None:
    """Counted with plain json: prompts by event, calls by item, tokens as the last total, hunks by their `@@` lines."""
    totals = dict.fromkeys(("turns", "steps", "calls", "input", "cached", "output", "hunks", "failed"), 0)
    for path in sorted(CORPUS.glob("sessions/codex/*/*/transcript.jsonl")):
        data = path.read_bytes()
        claimed = identify(Head(data[:HEAD_BYTES], path.name, False))
        assert claimed is not None and claimed[0] is FORMAT
        artifact = Artifact(
            artifact_id=path.name, source="corpus", path=path.name, format="codex", sha256="", bytes=len(data)
        )
        (session,) = FORMAT.read([Input(data, artifact)]).sessions
        counted = count(data)
        got = {
            "turns": len(session.turns),
            "steps": sum(s.input_tokens is not None for s in session.steps),
            "calls": len(session.tool_calls),
            "input": sum((s.input_tokens or 0) + (s.cache_read_tokens or 0) for s in session.steps),
            "cached": sum(s.cache_read_tokens or 0 for s in session.steps),
            "output": sum(s.output_tokens or 0 for s in session.steps),
            "hunks": sum(e.via == "edit_tool" for e in session.edits),
            "failed": sum(c.exit_code not in (None, 0) for c in session.tool_calls),
        }
        # One session has a call more than counts: the interrupted one, which only the total tells of.
        got["steps"] -= path.parent.name.startswith("019eef3d")
        # And in another a process that was left running failed without anybody asking: its end is an event.
        got["failed"] -= path.parent.name.startswith("019da9bd")
        assert got == counted, path.parent.name
        assert artifact.skipped == 0
        assert not texts(session, "unknown")
        totals = {key: totals[key] + n for key, n in counted.items()}
    assert totals == {
        "turns": 167, "steps": 1484, "calls": 2616, "input": 152329282, "cached": 143437312, "output": 605983,
        "hunks": 397, "failed": 129,
    }  # fmt: skip


def count(data: bytes) -> dict[str, int]:
    """A second road to the same figures."""
    payloads = [json.loads(line)["payload"] for line in data.splitlines()]
    types = [p.get("type") for p in payloads]
    totals = [p["info"]["total_token_usage"] for p in payloads if p.get("type") == "token_count" and p["info"]]
    changes = [c for p in payloads if p.get("type") == "patch_apply_end" for c in p["changes"].values()]
    heads = [p["output"][:200].split("\nOutput:")[0] for p in payloads if isinstance(p.get("output"), str)]
    codes = [
        line.rsplit(" ", 1)[1]
        for h in heads
        for line in h.splitlines()
        if "exited with code" in line or "Exit code" in line
    ]
    return {
        "turns": types.count("user_message"),
        "steps": len({t["total_tokens"] for t in totals}),
        "calls": sum(t in ("function_call", "custom_tool_call", "web_search_call", "tool_search_call") for t in types),
        "input": totals[-1]["input_tokens"],
        "cached": totals[-1]["cached_input_tokens"],
        "output": totals[-1]["output_tokens"],
        "hunks": sum(c["unified_diff"].count("\n@@ -") + 1 if c["type"] == "update" else 1 for c in changes),
        "failed": sum(code != "0" for code in codes),
    }


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
