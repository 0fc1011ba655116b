"""Copilot CLI, words and tokens: every trap of design/formats.md#copilot-cli."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentsignals.formats import Input, identify
from agentsignals.formats.copilot_cli import FORMAT
from agentsignals.formats.head import HEAD_BYTES, Head
from agentsignals.model import Artifact
from tests.formats.copilot_events import (
    ID,
    ROW,
    done,
    event,
    failed,
    given,
    metrics,
    one,
    only_call,
    request,
    says,
    shutdown,
    start,
    texts,
    usage,
    user,
)

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"


@pytest.mark.parametrize(
    ("more", "kinds"),
    [
        ({}, ["prompt"]),
        ({"delivery": "idle"}, ["prompt"]),
        ({"delivery": "steering"}, ["queued_prompt"]),
        ({"delivery": "queued"}, ["queued_prompt"]),
        ({"source": "skill-pdf"}, []),
        ({"source": "agent-7"}, []),
        ({"isAutopilotContinuation": True}, []),
    ],
)
def test_a_message_is_the_persons_unless_it_names_another_source(more: ROW, kinds: list[str]) -> None:
    session = one(start(), user("go on", **more))
    assert [t.kind for t in session.turns] == kinds
    assert texts(session, "meta") == ([] if kinds else ["go on"])


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # one call: the totals are its own; input as logged contains what the cache gave and took
        ([says("a", outputTokens=7), shutdown(opus=metrics(1, 100, 7, 60, 10))], [("opus", 30, 60, 10, 7, None)]),
        # two calls: nobody knows who used what
        (
            [says("a", outputTokens=7), says("b", outputTokens=8), shutdown(opus=metrics(2, 300, 15, 200, 0))],
            [
                ("opus", None, None, None, 7, None),
                ("opus", None, None, None, 8, None),
                ("opus", 100, 200, 0, None, "session_total"),
            ],
        ),
        # a call that left no message
        (
            [says("a", outputTokens=7), shutdown(opus=metrics(2, 100, 9, 0, 0))],
            [("opus", None, None, None, 7, None), ("opus", 100, 0, 0, 2, "session_total")],
        ),
        # a model that only worked unseen
        ([shutdown(mini=metrics(1, 50, 2, 0, 0))], [("mini", 50, 0, 0, 2, "session_total")]),
        # a provider that reports nothing
        (
            [says("a", "hi", outputTokens=0), shutdown(opus=metrics(1, 0, 0, 0, 0))],
            [("opus", None, None, None, None, None)],
        ),
        # a crash
        ([says("a", outputTokens=7)], [("opus", None, None, None, 7, None)]),
        # resumed: the totals of the second run are its own
        (
            [
                says("a", outputTokens=7),
                shutdown(opus=metrics(1, 100, 7, 0, 0)),
                event("session.resume"),
                says("b", outputTokens=8),
                shutdown(opus=metrics(1, 150, 8, 100, 0)),
            ],
            [("opus", 100, 0, 0, 7, None), ("opus", 50, 100, 0, 8, None)],
        ),
    ],
)
def test_input_is_known_at_shutdown_only(rows: list[ROW], expected: list[tuple[object, ...]]) -> None:
    session = one(start(), *rows)
    assert usage(session) == expected
    assert all(step.cost_usd is None for step in session.steps), "premium requests are no money"
    assert all(step.seq < len(session.events) for step in session.steps)


def test_snapshots_of_a_session_are_united_by_event_id() -> None:
    rows = [{"id": f"k{n}", **r} for n, r in enumerate([start(), user("a"), says("x", "hi"), user("b"), user("c")])]
    files = [given("early", rows[:3]), given("slice", rows[3:]), given("middle", rows[:4])]
    files[1].session_hint = ID
    (session,) = FORMAT.read(files).sessions
    assert sorted(t.text for t in session.turns) == ["a", "b", "c"]
    assert texts(session, "text") == ["hi"]
    assert sum(f.artifact.record_kinds.get("repeated", 0) for f in files) == 4


@pytest.mark.parametrize(
    ("record", "keys", "beside"),
    [
        (start(), [f"session:{ID}"], False),
        (user("x"), [], True),
        ({"type": "session_start", "data": {}, "parentId": None}, None, False),
        ({"type": "session", "id": "x", "parentId": None}, None, False),
        ({"type": "user.message", "data": "x", "parentId": None}, None, False),
    ],
)
def test_events_are_recognised_by_their_envelope(record: ROW, keys: list[str] | None, beside: bool) -> None:
    claim = FORMAT.claims(Head(json.dumps(record).encode() + b"\n", "x", True))
    assert (claim.keys if claim else None, claim.beside if claim else False) == (keys, beside)


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real traces is not there")
def test_real_sessions_have_the_figures_counted_another_way() -> None:
    """Counted with plain json; the collector recorded the same tokens of the ten sessions that shut down."""
    totals = dict.fromkeys(("turns", "steps", "calls", "output", "prompt", "failed", "edits"), 0)
    recorded = 0
    for path in sorted(CORPUS.glob("sessions/copilot-cli/*/*/transcript.jsonl")):
        data = path.read_bytes()
        claimed = identify(Head(data[:HEAD_BYTES], path.name, len(data) <= HEAD_BYTES))
        assert claimed is not None and claimed[0] is FORMAT
        artifact = Artifact(
            artifact_id=path.name, source="corpus", path=path.name, format="copilot-cli", sha256="", bytes=len(data)
        )
        (session,) = FORMAT.read([Input(data, artifact)]).sessions
        got = {
            "turns": len(session.turns),
            "steps": len(session.steps),
            "calls": len(session.tool_calls),
            "output": sum(s.output_tokens or 0 for s in session.steps),
            "prompt": sum((s.input_tokens or 0) + (s.cache_read_tokens or 0) for s in session.steps),
            "failed": sum(c.status == "error" for c in session.tool_calls),
            "edits": sum(e.via == "edit_tool" for e in session.edits),
        }
        assert got == count(data), path.parent.name
        assert (artifact.skipped, texts(session, "unknown")) == (0, [])
        totals = {key: totals[key] + n for key, n in got.items()}
        theirs = json.loads((path.parent / "entire.metadata.json").read_text())["token_usage"]
        recorded += theirs["input_tokens"] == got["prompt"] > 0 and theirs["output_tokens"] == got["output"]
    assert totals == {
        "turns": 6, "steps": 120, "calls": 129, "output": 62143, "prompt": 100640, "failed": 5, "edits": 12,
    }  # fmt: skip
    assert recorded == 7, "three of the ten shut down without any figure"


def count(data: bytes) -> dict[str, int]:
    """A second road to the same figures."""
    events = [json.loads(line) for line in data.splitlines()]
    by_type: dict[str, list[ROW]] = {}
    for one_event in events:
        by_type.setdefault(one_event["type"], []).append(one_event["data"])
    completed = by_type.get("tool.execution_complete", [])
    results = [c.get("result") or {} for c in completed]
    models = [m["usage"] for s in by_type.get("session.shutdown", []) for m in s["modelMetrics"].values()]
    ends = [r.get("content", "")[-60:] for r in results]
    names = {b["toolCallId"]: b["toolName"] for b in by_type.get("tool.execution_start", [])}
    changed = [c["result"]["detailedContent"] for c in completed if names[c["toolCallId"]] in ("edit", "create")]
    return {
        "turns": sum(not d["content"].startswith("[[ ## ") for d in by_type["user.message"]),
        "steps": len(by_type["assistant.message"]),
        "calls": len(names),
        "output": sum(m["outputTokens"] for m in by_type["assistant.message"]),
        "prompt": sum(u["inputTokens"] for u in models),
        "failed": sum("with exit code" in e and not e.endswith("code 0>") for e in ends)
        + sum(not c["success"] for c in completed),
        "edits": sum(text.count("\n@@ -") for text in changed),
    }


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        (done("t", "x\n<shellId: 3 completed with exit code 0>"), ("ok", 0, None)),
        (done("t", "x\n<shellId: 3 completed with exit code 1>"), ("error", 1, "exit_nonzero")),
        (done("t", "x\n<exited with exit code 2>"), ("error", 2, "exit_nonzero")),
        (
            done("t", "x", contents=[{"type": "shell_exit", "shellId": "3", "exitCode": 4}]),
            ("error", 4, "exit_nonzero"),
        ),
        (done("t", "it says <shellId: 3 completed with exit code 1> somewhere"), ("ok", None, None)),
        (failed("t", "Path does not exist", "failure"), ("error", None, "not_found")),
        (failed("t", "stopped", "aborted"), ("cancelled", None, None)),
        (failed("t", "The user rejected this tool call.", "rejected"), ("rejected", None, None)),
    ],
)
def test_success_only_means_that_the_tool_ran(completion: ROW, expected: tuple[object, ...]) -> None:
    found = only_call(says("a", "", request("t", "bash", command="npm test")), completion)
    assert (found.status, found.exit_code, found.error_class) == expected


@pytest.mark.parametrize(
    ("name", "server", "class_"),
    [
        ("bash", None, "shell"),
        ("view", None, "read"),
        ("grep", None, "search"),
        ("edit", None, "edit"),
        ("task", None, "task"),
        ("report_intent", None, "plan"),
        ("ask_user", None, "ask"),
        ("web_fetch", None, "web"),
        ("github-mcp-server-list_issues", None, "mcp"),
        ("tides-lookup", "tides", "mcp"),
        ("tides-lookup", None, "other"),
    ],
)
def test_tools_have_the_classes_every_agent_shares(name: str, server: str | None, class_: str) -> None:
    begun = event("tool.execution_start", toolCallId="t", toolName=name, arguments={}, mcpServerName=server)
    assert only_call(says("a", "", request("t", name)), begun).class_ == class_


def diff(*hunks: str, header: str = "index 0..0 100644\n") -> str:
    names = "--- a/w/a.py\n+++ b/w/a.py\n"
    return f"\ndiff --git a/w/a.py b/w/a.py\n{header}{names}" + "".join(hunks)


EDIT = {"path": "/w/a.py", "old_str": "x\nold\n", "new_str": "x\nnew\nnewer\n"}
TWO_PLACES = [("a.py", "modify", 1, 1, 1, 1), ("a.py", "modify", 9, 9, 1, 1)]
PATCH = "*** Begin Patch\n*** Update File: b.py\n@@\n-old\n+new\n*** End Patch\n"


@pytest.mark.parametrize(
    ("name", "arguments", "detailed", "expected"),
    [
        ("edit", EDIT, diff("@@ -4,2 +4,3 @@\n x\n-old\n+new\n+newer\n"), [("a.py", "modify", 5, 6, 2, 1)]),
        ("edit", EDIT, diff("@@ -1 +1 @@\n-a\n+b\n", "@@ -9 +9 @@\n-c\n+d\n"), TWO_PLACES),
        ("edit", EDIT, "updated", [("a.py", "modify", None, None, 2, 1)]),
        ("create", {"path": "/w/a.py", "file_text": "one\ntwo\n"}, "", [("a.py", "create", 1, 2, 2, 0)]),
        ("str_replace_editor", {"command": "view", "path": "/w/a.py"}, "1. x", []),
        ("apply_patch", {"input": PATCH}, "Done", [("b.py", "modify", None, None, 1, 1)]),
        ("apply_patch", {"patch": PATCH}, diff("@@ -7 +7 @@\n-old\n+new\n"), [("b.py", "modify", 7, 7, 1, 1)]),
    ],
)  # fmt: skip
def test_edits_have_the_lines_of_their_diff(name: str, arguments: ROW, detailed: str, expected: list[object]) -> None:
    session = one(start(), says("a", "", request("t", name, **arguments)), done("t", "ok", detailed=detailed))
    assert [(e.path, e.op, e.start_line, e.end_line, e.added, e.removed) for e in session.edits] == expected


@pytest.mark.parametrize(
    ("kind", "ran_s"),
    [("approved", 20.0), ("approved-for-session", 20.0), ("denied-interactively-by-user", None), (None, None)],
)
def test_a_call_runs_from_its_permission(kind: str | None, ran_s: float | None) -> None:
    asked = event("permission.requested", requestId="r", permissionRequest={"toolCallId": "c"})
    told = event("permission.completed", requestId="r", toolCallId="c", result={"kind": kind} if kind else None)
    rows = [start(), user("go"), says("m", "", request("c", "bash", command="make")), asked, told, done("c", "ok")]
    for row, minute in zip(rows, ("00", "00", "01", "01", "30", "30"), strict=True):
        row["timestamp"] = f"2026-04-01T09:{minute}:{'20' if row is rows[-1] else '00'}.000Z"
    assert only_call(*rows).ran_s == ran_s
