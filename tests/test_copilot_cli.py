"""Copilot CLI, words and tokens: every trap of design/formats.md#copilot-cli, each with events made up for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentsignals.formats import Input, identify
from agentsignals.formats.copilot_cli import FORMAT
from agentsignals.formats.head import HEAD_BYTES, Head
from agentsignals.model import Artifact
from tests.copilot_events import (
    ID,
    ROW,
    done,
    event,
    given,
    metrics,
    one,
    request,
    says,
    shutdown,
    start,
    texts,
    usage,
    user,
)

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"

# -- the person ----------------------------------------------------------------------------------------------------


def test_the_persons_words_are_those_shown_not_those_sent() -> None:
    session = one(start(), event("system.message", content="long"), user("count the boats\n"))
    assert [t.text for t in session.turns] == ["count the boats"]


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


def test_a_message_of_pictures_only_is_an_attachment() -> None:
    picture = {"type": "file", "path": "/w/a.png"}
    session = one(start(), event("user.message", content="", attachments=[picture]), event("user.message", content=""))
    assert [t.kind for t in session.turns] == ["attachment"]


def test_turn_ids_begin_anew_and_are_no_turns() -> None:
    rows = [event("assistant.turn_start", turnId="0"), says("a", "x"), event("assistant.turn_end", turnId="0")]
    session = one(start(), user("one"), *rows, user("two"), *rows[:1], says("b", "y"))
    assert [(s.message_id, s.turn) for s in session.steps] == [("api-a", 0), ("api-b", 1)]


def test_an_abort_is_an_interruption() -> None:
    assert texts(one(start(), user("x"), event("abort", reason="user_initiated")), "interrupt") == ["user_initiated"]


def test_a_command_run_by_hand_is_no_call() -> None:
    arguments = {"command": "git status"}
    session = one(
        start(),
        event("tool.user_requested", toolCallId="u", toolName="bash", arguments=arguments),
        event("tool.execution_start", toolCallId="u", toolName="bash", arguments=arguments),
        done("u", "clean"),
    )
    assert (session.tool_calls, texts(session, "user_shell"), texts(session, "command_output")) == (
        [],
        ["git status"],
        ["clean"],
    )


# -- the model's calls ---------------------------------------------------------------------------------------------


def test_parts_of_one_answer_are_one_step_and_its_tokens_count_once() -> None:
    session = one(start(), says("a", "x", outputTokens=30), says("a", "y", outputTokens=30), says("b", outputTokens=5))
    assert [(s.message_id, s.output_tokens) for s in session.steps] == [("api-a", 30), ("api-b", 5)]
    assert [e.step for e in session.events] == [0, 0, 1]


def test_thinking_may_be_hidden_and_is_told_once() -> None:
    session = one(
        start(),
        event("assistant.reasoning", content="hm"),
        says("a", "x", reasoningText="hm", reasoningOpaque="z"),
        says("b", "y", encryptedContent="z"),
        says("c", "z"),
    )
    assert texts(session, "thinking") == ["hm", ""]


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


def test_a_subagents_totals_are_the_subagents() -> None:
    agents = {
        "main": {"modelMetrics": {"opus": metrics(1, 90, 7)}},
        "sub": {"modelMetrics": {"opus": metrics(1, 40, 3)}},
    }
    ended = event("session.shutdown", modelMetrics={"opus": metrics(2, 130, 10)}, agentMetrics=agents)
    session = one(start(), says("a", outputTokens=7), says("b", outputTokens=3, agent="sub"), ended)
    assert [(s.thread, s.input_tokens, s.output_tokens) for s in session.steps] == [("main", 90, 7), ("sub", 40, 3)]
    by_model = shutdown(opus=metrics(1, 90, 7), mini=metrics(2, 40, 3))
    mini = {"model": "mini", "agent": "sub"}
    session = one(
        start(),
        says("a", outputTokens=7),
        says("b", outputTokens=1, **mini),
        says("c", outputTokens=2, **mini),
        by_model,
    )
    assert [s.thread for s in session.steps] == ["main", "sub", "sub", "sub"]


def test_the_model_is_the_one_that_answers_not_the_one_selected() -> None:
    session = one(
        start(selectedModel="auto"),
        user("x"),
        says("a", "hi"),
        event("session.model_change", newModel="mini"),
        says("b", "yo", model="mini"),
    )
    assert [s.model for s in session.steps] == ["opus", "mini"]
    assert [t.model for t in session.turns] == ["auto"]
    assert texts(session, "model_change") == ["opus -> mini"]


# -- the session ---------------------------------------------------------------------------------------------------


def test_a_subagents_work_is_beside() -> None:
    session = one(
        start(),
        user("count"),
        event("subagent.started", "sub", agentName="explore"),
        event("user.message", "sub", content="Count them."),
        says("b", "two", request("t", "grep", pattern="boat"), agent="sub"),
        done("t", "a"),
        says("c", "older", parentToolCallId="k"),
    )
    assert [t.text for t in session.turns] == ["count"]
    assert [s.thread for s in session.steps] == ["sub", "k"]
    assert {e.thread for e in session.events if e.kind != "human_turn"} == {"sub", "k"}


def test_compaction_hooks_and_errors_leave_their_events() -> None:
    session = one(
        start(),
        event("session.compaction_start"),
        event("session.compaction_complete", success=True, preCompactionTokens=90, summaryContent="boats"),
        event("session.compaction_complete", success=False),
        event("session.truncation", preTruncationTokensInMessages=70, postTruncationTokensInMessages=30),
        event(
            "hook.end", hookType="preToolUse", output={"permissionDecision": "deny", "permissionDecisionReason": "no"}
        ),
        event("session.error", errorType="quota", message="used up"),
    )
    assert [(e.kind, e.text) for e in session.events] == [
        ("compaction", '{"preTokens":90,"summary":"boats"}'),
        ("meta", "compaction failed"),
        ("compaction", '{"kind":"truncation","preTokens":70,"postTokens":30}'),
        ("hook_block", "no"),
        ("api_error", "used up"),
    ]


def test_what_is_not_known_is_kept_by_name_and_counted() -> None:
    file = given("a", [start(), event("gangway.lowered", angle=3), {**user("x"), "data": {"content": 7}}])
    (session,) = FORMAT.read([file]).sessions
    assert texts(session, "unknown") == ["gangway.lowered"]
    assert (file.artifact.record_kinds["gangway.lowered"], file.artifact.skipped_reasons) == (1, {"bad_shape": 1})


def test_snapshots_of_a_session_are_united_by_event_id() -> None:
    rows = [{"id": f"k{n}", **r} for n, r in enumerate([start(), user("a"), says("x", "hi"), user("b"), user("c")])]
    files = [given("early", rows[:3]), given("slice", rows[3:]), given("middle", rows[:4])]
    files[1].session_hint = ID
    (session,) = FORMAT.read(files).sessions
    assert sorted(t.text for t in session.turns) == ["a", "b", "c"]
    assert texts(session, "text") == ["hi"]
    assert sum(f.artifact.record_kinds.get("repeated", 0) for f in files) == 4


def test_the_session_says_where_it_took_place() -> None:
    session = one(start(), user("x"))
    assert (session.repo, session.branch, session.cwd, session.agent_version) == ("ilo/ferry", "tide", "/w", "1.0.64")


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


# -- real files ----------------------------------------------------------------------------------------------------


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
