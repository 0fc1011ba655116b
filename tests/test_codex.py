"""Codex, tokens and words: every trap of design/formats.md#codex, each with records made up for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentsignals.formats import Input, identify
from agentsignals.formats.builder import repo_name
from agentsignals.formats.codex import FORMAT
from agentsignals.formats.head import HEAD_BYTES, Head
from agentsignals.model import Artifact
from tests.codex_rows import (
    ID,
    OTHER,
    ROW,
    call,
    context,
    event,
    given,
    item,
    meta,
    one,
    output,
    prompt,
    ran,
    row,
    says,
    texts,
    tokens,
    usage,
    user_item,
)

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"

# -- tokens --------------------------------------------------------------------------------------------------------


def test_totals_are_cumulative_and_cached_input_is_no_input() -> None:
    session = one(
        meta(),
        context(),
        says(),
        tokens((100, 40, 9, 3), (100, 40, 9, 3)),
        says(),
        tokens((250, 140, 20, 5), (150, 100, 11, 2)),
    )
    assert usage(session) == [(60, 40, 9, 3), (50, 100, 11, 2)]


def test_a_repeated_count_is_no_call() -> None:
    count = tokens((100, 40, 9, 3), (100, 40, 9, 3))
    assert len(one(meta(), context(), says(), count, count, count).steps) == 1


def test_a_count_without_figures_is_no_call() -> None:
    session = one(meta(), context(), event("token_count", info=None), says(), tokens((5, 0, 1, 0), (5, 0, 1, 0)))
    assert usage(session) == [(5, 0, 1, 0)]


def test_what_an_interrupted_call_used_is_charged_to_it_when_the_total_tells() -> None:
    session = one(
        meta(),
        context(),
        event("task_started"),
        says("first"),
        event("turn_aborted", reason="interrupted"),
        event("task_started"),
        says("second"),
        tokens((300, 100, 30, 10), (120, 60, 20, 4)),
    )
    assert usage(session) == [(140, 40, 10, 6), (60, 60, 20, 4)]


def test_an_interrupted_call_that_was_never_counted_has_no_tokens() -> None:
    session = one(meta(), context(), says("first"), event("turn_aborted", reason="interrupted"))
    assert usage(session) == [(None, None, None, None)]


def test_a_call_that_only_the_total_knows_is_a_step_of_its_own() -> None:
    session = one(meta(), context(), says(), tokens((300, 0, 30, 0), (100, 0, 10, 0)))
    assert sorted(usage(session), key=str) == [(100, 0, 10, 0), (200, 0, 20, 0)]
    assert all(session.events[step.seq].step == step.step for step in session.steps)


def test_a_total_that_begins_anew_is_counted_from_there() -> None:
    session = one(
        meta(), says(), tokens((500, 0, 50, 0), (500, 0, 50, 0)), says(), tokens((80, 0, 8, 0), (80, 0, 8, 0))
    )
    assert usage(session) == [(500, 0, 50, 0), (80, 0, 8, 0)]


def test_results_that_come_after_the_count_belong_to_the_call_before_it() -> None:
    """0.121 to 0.125 counted the tokens before the tools had run, later versions after."""
    session = one(
        meta(),
        context(),
        call("a", cmd="ls"),
        tokens((10, 0, 1, 0), (10, 0, 1, 0)),
        output("a", ran("Process exited with code 0")),
        says(),
        tokens((30, 0, 2, 0), (20, 0, 1, 0)),
    )
    assert [e.step for e in session.events if e.kind == "tool_result"] == [0]
    assert len(session.steps) == 2


def test_without_any_count_a_call_ends_where_its_results_do() -> None:
    done = ran("Process exited with code 0")
    session = one(
        meta(), context(), call("a", cmd="ls"), call("b", cmd="ls"), output("a", done), output("b", done), says("done")
    )
    assert [e.step for e in session.events if e.kind in ("tool_call", "text")] == [0, 0, 1]


# -- who speaks ----------------------------------------------------------------------------------------------------


def test_what_is_logged_twice_is_said_once() -> None:
    session = one(
        meta(),
        context(),
        user_item("count the pears"),
        prompt("count the pears\n"),
        event("agent_message", message="twelve"),
        says("twelve"),
        event("agent_reasoning", text="hm"),
        item("reasoning", summary=[{"type": "summary_text", "text": "hm"}], content=None, encrypted_content="x"),
    )
    assert [t.text for t in session.turns] == ["count the pears"]
    assert texts(session, "text") == ["twelve"]
    assert texts(session, "thinking") == ["hm"]
    assert texts(session, "meta") == []


@pytest.mark.parametrize(
    "text",
    [
        "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>",
        "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>",
        "<user_instructions>\nx\n</user_instructions>",
        "<skill>\n<name>pruning</name>\n</skill>",
        "<subagent_notification>\n{}\n</subagent_notification>",
    ],
)
@pytest.mark.parametrize("with_events", [True, False])
def test_text_that_the_program_puts_in_the_persons_place_is_not_the_persons(text: str, with_events: bool) -> None:
    said = [user_item("hello there"), prompt("hello there")] if with_events else [user_item("hello there")]
    session = one(meta(), user_item(text), context(), *said)
    assert [t.text for t in session.turns] == ["hello there"]
    assert texts(session, "meta") == [text]


def test_an_item_may_hold_context_and_words() -> None:
    session = one(meta(), context(), user_item("<environment_context>\nx\n</environment_context>", "go on"))
    assert [t.text for t in session.turns] == ["go on"]


def test_of_a_request_from_the_editor_only_the_request_is_the_persons() -> None:
    session = one(
        meta(), prompt("# Context from my IDE setup:\n\n## Active file: a.py\n\n## My request for Codex:\nname it\n")
    )
    assert [t.text for t in session.turns] == ["name it"]


@pytest.mark.parametrize(
    ("rows", "kinds"),
    [
        ([event("task_started"), prompt("a")], ["prompt"]),
        ([event("task_started"), prompt("a"), says(), prompt("b")], ["prompt", "queued_prompt"]),
        (
            [event("task_started"), prompt("a"), event("task_complete"), event("task_started"), prompt("b")],
            ["prompt"] * 2,
        ),
        ([prompt("PLEASE IMPLEMENT THIS PLAN:\n# Plan")], ["plan_handoff"]),
        ([prompt("Implement the plan.")], ["plan_handoff"]),
        ([event("user_message", message="", images=["data:image/png;base64,iVBORw0KGgo="])], ["attachment"]),
        ([event("user_message", message="", images=[])], []),
    ],
)
def test_turns_by_how_they_came(rows: list[ROW], kinds: list[str]) -> None:
    assert [t.kind for t in one(meta(), context(), *rows).turns] == kinds


@pytest.mark.parametrize(
    "rows",
    [
        [event("turn_aborted", reason="interrupted")],
        [user_item("<turn_aborted>\nstopped\n</turn_aborted>")],
        [user_item("<turn_aborted>\nstopped\n</turn_aborted>"), event("turn_aborted", reason="interrupted")],
        [event("turn_aborted", reason="interrupted"), user_item("<turn_aborted>\nstopped\n</turn_aborted>")],
    ],
)
def test_an_interruption_is_one_however_often_it_is_logged(rows: list[ROW]) -> None:
    session = one(meta(), prompt("a"), *rows, prompt("b"), *rows)
    assert len(texts(session, "interrupt")) == 2
    assert len(session.turns) == 2


def test_a_turn_the_program_ended_is_no_interruption() -> None:
    session = one(meta(), prompt("a"), event("turn_aborted", reason="budget_limited"))
    assert (texts(session, "interrupt"), texts(session, "meta")) == ([], ["turn aborted: budget_limited"])


def test_a_command_run_by_hand_is_no_call() -> None:
    rows = (
        user_item("<user_shell_command>\n<command>\nls trees\n</command>\n<result>\n</result>\n</user_shell_command>"),
        event("exec_command_end", call_id="u", source="user_shell", command=["zsh", "-lc", "ls trees"], exit_code=0),
    )
    for given_rows in (rows, rows[:1], rows[1:]):
        session = one(meta(), prompt("a"), *given_rows)
        assert texts(session, "user_shell") == ["ls trees"]
        assert (session.tool_calls, len(session.turns)) == ([], 1)


# -- the session ---------------------------------------------------------------------------------------------------


def test_only_the_turns_context_names_the_model() -> None:
    session = one(
        meta(), context("a"), prompt("x"), says(), context("a"), prompt("y"), says(), context("b"), prompt("z"), says()
    )
    assert [s.model for s in session.steps] == [t.model for t in session.turns] == ["a", "a", "b"]
    assert texts(session, "model_change") == ["a -> b"]


def test_a_header_written_again_on_resume_changes_nothing() -> None:
    assert one(meta(), prompt("a"), meta(), prompt("b")).session_id == ID


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


def test_history_that_replaces_the_old_one_is_not_read_again() -> None:
    again = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "count the pears"}]}]
    compacted = row("compacted", message="", replacement_history=again, window_number=2)
    session = one(meta(), prompt("count the pears"), says(), compacted, event("context_compacted"), says())
    assert len(session.turns) == 1
    assert texts(session, "compaction") == ['{"window":2}']
    assert texts(one(meta(), prompt("a"), event("context_compacted")), "compaction") == ["{}"]


def test_hidden_thinking_is_thinking_without_text() -> None:
    session = one(meta(), context(), item("reasoning", summary=[], content=None, encrypted_content="gAAAA"))
    assert texts(session, "thinking") == [""]


def test_a_limit_reached_is_an_api_error() -> None:
    session = one(meta(), event("error", message="limit reached", codex_error_info="usage_limit_exceeded"))
    assert texts(session, "api_error") == ["limit reached"]


def test_what_is_not_known_is_kept_by_name_and_counted() -> None:
    file = given("a", [meta(), event("ripened", percent=9), row("orchard"), item("graft", id="x")])
    (session,) = FORMAT.read([file]).sessions
    assert texts(session, "unknown") == ["event_msg.ripened", "orchard", "response_item.graft"]
    assert file.artifact.record_kinds["event_msg.ripened"] == 1


def test_a_known_record_of_another_shape_is_counted_not_read() -> None:
    file = given("a", [meta(), event("user_message", message=7), prompt("b")])
    (session,) = FORMAT.read([file]).sessions
    assert [t.text for t in session.turns] == ["b"]
    assert file.artifact.skipped_reasons == {"bad_shape": 1}


# -- recognition ---------------------------------------------------------------------------------------------------


def head(rows: list[ROW]) -> Head:
    data = "".join(json.dumps(r) + "\n" for r in rows).encode()
    return Head(data[:HEAD_BYTES], "x", len(data) <= HEAD_BYTES)


def test_files_are_keyed_by_their_session_and_those_it_copies() -> None:
    claims = [
        FORMAT.claims(head(rows)) for rows in ([meta(OTHER)], [meta(forked_from_id=OTHER), meta(OTHER)], [prompt("a")])
    ]
    assert [(c.keys, c.beside) for c in claims if c is not None] == [
        ([f"session:{OTHER}"], False),
        ([f"session:{ID}", f"session:{OTHER}"], False),
        ([], True),
    ]


def test_a_header_longer_than_the_window_is_recognised() -> None:
    long = meta(base_instructions={"text": "long " * HEAD_BYTES})
    claim = FORMAT.claims(head([long, prompt("a")]))
    assert claim is not None and claim.keys == [f"session:{ID}"]


@pytest.mark.parametrize(
    "record",
    [
        {"type": "session_meta", "id": "x", "timestamp": "2026-03-01"},
        {"type": "session", "payload": {}, "timestamp": "2026-03-01"},
        {"type": "event_msg", "payload": "x", "timestamp": "2026-03-01"},
        {"type": "event_msg", "payload": {}},
    ],
)
def test_other_records_are_not_claimed(record: ROW) -> None:
    assert FORMAT.claims(head([record])) is None


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
