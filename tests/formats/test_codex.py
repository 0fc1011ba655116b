"""Codex, tokens and words: every trap of design/formats.md#codex, each with records made up for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentsignals.formats import Input, identify
from agentsignals.formats.builder import repo_name
from agentsignals.formats.codex import FORMAT
from agentsignals.formats.head import HEAD_BYTES, Head
from agentsignals.model import MAIN, Artifact, Session
from tests.formats.codex_rows import (
    ID,
    OLD_TURN,
    OTHER,
    OWN_TURN,
    ROW,
    call,
    context,
    event,
    given,
    item,
    meta,
    one,
    only_call,
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

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"

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


def test_copied_history_counts_for_the_parent_where_the_parent_is() -> None:
    files = [given("fork", FORK), given("parent", PARENT)]
    found = {s.session_id: s for s in FORMAT.read(files).sessions}
    assert [t.text for t in found[OTHER].turns] == ["draw a map"]
    assert [t.text for t in found[ID].turns] == ["only pears"]
    assert usage(found[ID]) == [(20, 60, 15, 0)]
    assert [s.model for s in found[ID].steps] == ["gpt-5.5"]
    assert found[ID].parent_session_id == OTHER
    assert files[0].artifact.record_kinds["repeated"] == len(PARENT)


def test_without_the_parent_one_fork_keeps_the_copy() -> None:
    sibling = [meta("019e0000-0000-7000-8000-000000000003", forked_from_id=OTHER), *PARENT[:4], *OWN]
    found = {s.session_id: s for s in FORMAT.read([given("s", sibling), given("f", FORK)]).sessions}
    assert [t.text for t in found[ID].turns] == ["draw a map", "only pears"]
    assert usage(found[ID]) == [(100, 0, 10, 0), (20, 60, 15, 0)]
    assert sorted(len(s.turns) for s in found.values()) == [1, 2]


def test_a_copy_is_known_by_the_header_in_it_too() -> None:
    files = [given("fork", [meta(), *PARENT, *OWN]), given("parent", PARENT)]
    for inputs, turns in ((files, ["only pears"]), (files[:1], ["draw a map", "only pears"])):
        found = {s.session_id: s for s in FORMAT.read(inputs).sessions}
        assert [t.text for t in found[ID].turns] == turns
        assert found[ID].parent_session_id == OTHER


def test_of_a_copy_of_a_copy_only_what_is_missing_is_kept() -> None:
    middle, middle_turn = "019d8000-0000-7000-8000-000000000004", "019d8000-1000-7000-8000-0000000000c1"
    added = [event("task_started", 20, turn_id=middle_turn), prompt("and the lakes", 21), says("drawn too")]
    fork = [meta(forked_from_id=middle), meta(middle, forked_from_id=OTHER), *PARENT, *added, *OWN]
    found = {s.session_id: s for s in FORMAT.read([given("fork", fork), given("root", PARENT)]).sessions}
    assert [t.text for t in found[OTHER].turns] == ["draw a map"]
    assert [t.text for t in found[ID].turns] == ["and the lakes", "only pears"]


def test_a_slice_of_a_forks_own_part_loses_nothing() -> None:
    files = [given("fork", FORK), given("parent", PARENT), given("slice", [prompt("more", 40), prompt("and more", 50)])]
    files[2].session_hint = ID
    found = {s.session_id: s for s in FORMAT.read(files).sessions}
    assert [t.text for t in found[ID].turns] == ["only pears", "more", "and more"]


def test_the_end_of_a_copy_without_turn_ids_is_a_pause() -> None:
    bare = [row(r["type"], 0, **{k: v for k, v in r["payload"].items() if k != "turn_id"}) for r in PARENT]
    own = [prompt("only pears", 30), says("pears")]
    found = FORMAT.read([given("fork", [meta(forked_from_id=OTHER), *bare, *own]), given("parent", bare)]).sessions
    assert [[t.text for t in s.turns] for s in found if s.session_id == ID] == [["only pears"]]


def test_a_fork_without_own_words_is_empty() -> None:
    found = FORMAT.read([given("fork", FORK[: -len(OWN)]), given("parent", PARENT)]).sessions
    assert [len(s.events) for s in found if s.session_id == ID] == [0]


def test_snapshots_of_a_session_are_united() -> None:
    rows = [meta(), prompt("a", 1), says("x"), prompt("b", 2), prompt("c", 3)]
    files = [given("slice", rows[3:]), given("early", rows[:3]), given("middle", rows[:4])]
    files[0].session_hint = ID
    (session,) = FORMAT.read(files).sessions
    assert [t.text for t in session.turns] == ["a", "b", "c"]
    assert texts(session, "text") == ["x"]
    assert [f.artifact.record_kinds.get("repeated", 0) for f in files] == [1, 3, 0]


def test_a_subagents_words_are_its_parents_and_its_work_is_a_session_of_its_own() -> None:
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": OTHER, "depth": 1}}}
    rows = [row("session_meta", id=ID, cwd="/w", source=spawned), context(), prompt("count"), says("two")]
    session = one(*rows)
    assert (session.turns, session.parent_session_id, session.model) == ([], OTHER, "gpt-5.5")
    assert {e.thread for e in session.events} == {s.thread for s in session.steps} == {MAIN}
    assert texts(session, "meta") == ["count"]


WRAPPED = json.dumps({"output": "no", "metadata": {"exit_code": 3, "duration_seconds": 0.1}})


@pytest.mark.parametrize(
    ("name", "arguments", "said", "expected"),
    [
        ("shell", {"command": ["bash", "-lc", "make it"]}, WRAPPED, ("make it", 3, "error")),
        ("shell", {"command": ["ls", "a b"]}, {"content": "x", "success": False}, ("ls 'a b'", None, "error")),
        ("shell_command", {"command": "x"}, "Exit code: 2\nWall time: 1 seconds\nOutput:\n", ("x", 2, "error")),
        ("exec_command", {"cmd": "x"}, ran("Process exited with code 0"), ("x", 0, "ok")),
        ("exec_command", {"cmd": "x"}, ran("Process exited with code -1"), ("x", -1, "error")),
        ("exec_command", {"cmd": "x"}, ran("Process running with session ID 5", "Exit code: 1"), ("x", None, "ok")),
        (
            "exec_command",
            {"cmd": "cat log"},
            ran("Process exited with code 0", "rejected by user"),
            ("cat log", 0, "ok"),
        ),
        ("exec_command", {"cmd": "x"}, "exec command rejected by user", ("x", None, "rejected")),
        ("exec_command", {"cmd": "x"}, "aborted by user after 4.1s", ("x", None, "cancelled")),
        ("exec_command", {"cmd": "x"}, "exec_command failed for `x`: no such file", ("x", None, "error")),
        ("exec_command", {"cmd": "x"}, [{"type": "input_text", "text": "fine"}], ("x", None, "ok")),
    ],
)
def test_each_generation_of_the_shell_tool_says_how_it_ended(
    name: str, arguments: ROW, said: object, expected: tuple[object, ...]
) -> None:
    found = only_call(call("c", name, **arguments), output("c", said))
    assert (found.command, found.exit_code, found.status) == expected


def test_a_code_that_comes_with_a_later_poll_is_the_commands() -> None:
    session = one(
        meta(),
        context(),
        call("a", cmd="pytest -q"),
        output("a", ran("Process running with session ID 5")),
        call("b", "write_stdin", session_id=5, chars=""),
        output("b", ran("Process running with session ID 5")),
        call("c", "write_stdin", session_id=5, chars=""),
        output("c", ran("Process exited with code 1", "1 failed")),
    )
    outcomes = [(c.name, c.status, c.exit_code, c.error_class) for c in session.tool_calls]
    assert outcomes == [
        ("exec_command", "error", 1, "test_failed"),
        ("write_stdin", "ok", None, None),
        ("write_stdin", "ok", None, None),
    ]


@pytest.mark.parametrize("before", [True, False])
def test_a_code_that_only_the_process_end_tells_is_used(before: bool) -> None:
    end = event("exec_command_end", call_id="a", source="agent", command=["x"], exit_code=4)
    result = output("a", "no header" if before else ran("Process running with session ID 5"))
    found = only_call(call("a", cmd="x"), *([end, result] if before else [result, end]))
    assert (found.status, found.exit_code) == ("error", 4)


def test_a_search_among_tools_and_a_search_of_the_web_are_calls_with_results() -> None:
    session = one(
        meta(),
        context(),
        event("web_search_end", call_id="ws", query="pears"),
        item("web_search_call", status="completed", action={"type": "search", "query": "pears"}),
        item("tool_search_call", call_id="t", status="completed", arguments={"query": "git"}),
        item("tool_search_output", call_id="t", tools=[{"name": "mcp__git"}]),
    )
    rows = [(c.name, c.class_, c.status, c.result_tokens) for c in session.tool_calls]
    assert rows == [("web_search", "web", "ok", None), ("tool_search", "search", "ok", 6)]


@pytest.mark.parametrize(
    ("namespace", "name", "full"),
    [
        ("mcp__deepwiki", "ask", "mcp__deepwiki__ask"),
        ("mcp__apps__github", "_fetch_pr", "mcp__apps__github_fetch_pr"),
        (None, "mcp__files__read", "mcp__files__read"),
    ],
)
@pytest.mark.parametrize(
    ("result", "status"),
    [
        ({"Ok": {"content": [], "isError": False}}, "ok"),
        ({"Ok": {"isError": True}}, "error"),
        ({"Err": "gone"}, "error"),
    ],
)
def test_an_mcp_tool_has_its_servers_name_and_its_events_verdict(
    namespace: str | None, name: str, full: str, result: ROW, status: str
) -> None:
    begun = item("function_call", call_id="m", name=name, namespace=namespace, arguments="{}")
    end = event("mcp_tool_call_end", call_id="m", invocation={"server": "s", "tool": "t"}, result=result)
    found = only_call(begun, end, output("m", "Wall time: 1.0 seconds\nOutput:\nx"))
    assert (found.name, found.class_, found.status) == (full, "mcp", status)


def test_paths_are_relative_to_where_the_command_ran() -> None:
    session = one(
        meta(),
        context(),
        call("a", cmd="cat x.py", workdir="/w/sub"),
        call("b", cmd="cat x.py", workdir="/elsewhere"),
        call("c", cmd="cat x.py"),
        call("d", cmd="echo 1 > y.py", workdir="/w/sub"),
        output("d", ran("Process exited with code 0")),
    )
    assert [c.path for c in session.tool_calls[:3]] == ["sub/x.py", "/elsewhere/x.py", "x.py"]
    assert [(e.path, e.via) for e in session.edits] == [("sub/y.py", "shell")]


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
PATCH_TEXT_EDITS = [
    ("a.py", "delete", None, 0, None),
    ("b.py", "rename", None, 2, 1),
    ("c.py", "create", 1, 2, 0),
    ("d.py", "delete", None, 0, None),
    ("b.py", "rename", None, 0, 1),
]


def edits(session: Session) -> list[tuple[object, ...]]:
    return [(e.path, e.op, e.start_line, e.added, e.removed) for e in session.edits]


def patched(*between: ROW, said: str = "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.") -> Session:
    begun = item("custom_tool_call", call_id="p", name="apply_patch", status="completed", input=PATCH)
    return one(meta(), context(), begun, *between, item("custom_tool_call_output", call_id="p", output=said))


def test_a_recorded_patch_gives_real_lines() -> None:
    session = patched(event("patch_apply_end", call_id="p", success=True, changes=CHANGES))
    assert edits(session) == [
        ("a.py", "delete", None, 0, None),
        ("b.py", "rename", 5, 2, 1),
        ("c.py", "create", 1, 2, 0),
        ("d.py", "delete", None, 0, 1),
        ("b.py", "rename", 22, 0, 1),
    ]
    assert {e.via for e in session.edits} == {"edit_tool"}
    assert (session.tool_calls[0].path, session.tool_calls[0].class_) == ("a.py", "edit")


def test_a_patch_that_is_not_recorded_gives_sizes_only() -> None:
    assert edits(patched()) == PATCH_TEXT_EDITS


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


def test_a_patch_given_to_the_oldest_shell_as_words_is_an_edit() -> None:
    session = one(
        meta(), context(), call("p", "shell", command=["apply_patch", PATCH]), output("p", WRAPPED.replace("3", "0"))
    )
    assert session.tool_calls[0].class_ == "edit"
    assert edits(session) == PATCH_TEXT_EDITS


def test_a_patch_applied_through_the_shell_is_recorded_once_and_as_the_shells() -> None:
    begun = call("p", cmd=f"apply_patch <<'EOF'\n{PATCH}EOF")
    recorded = event("patch_apply_end", call_id="p", success=True, changes={"/w/c.py": CHANGES["/w/c.py"]})
    session = one(meta(), context(), begun, recorded, output("p", ran("Process exited with code 0")))
    assert [(e.path, e.via, e.start_line) for e in session.edits] == [("c.py", "shell", 1)]
