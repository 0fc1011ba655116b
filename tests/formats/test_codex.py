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
    user_item,
)

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"

# -- tokens --------------------------------------------------------------------------------------------------------


# -- who speaks ----------------------------------------------------------------------------------------------------


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


def test_a_copy_is_known_by_the_header_in_it_too() -> None:
    files = [given("fork", [meta(), *PARENT, *OWN]), given("parent", PARENT)]
    for inputs, turns in ((files, ["only pears"]), (files[:1], ["draw a map", "only pears"])):
        found = {s.session_id: s for s in FORMAT.read(inputs).sessions}
        assert [t.text for t in found[ID].turns] == turns
        assert found[ID].parent_session_id == OTHER


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


@pytest.mark.parametrize("before", [True, False])
def test_a_code_that_only_the_process_end_tells_is_used(before: bool) -> None:
    end = event("exec_command_end", call_id="a", source="agent", command=["x"], exit_code=4)
    result = output("a", "no header" if before else ran("Process running with session ID 5"))
    found = only_call(call("a", cmd="x"), *([end, result] if before else [result, end]))
    assert (found.status, found.exit_code) == ("error", 4)


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


def edits(session: Session) -> list[tuple[object, ...]]:
    return [(e.path, e.op, e.start_line, e.added, e.removed) for e in session.edits]


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


# -- counts that were written again, and counts before the first context

ONE, TWO, THREE = (
    tokens((1000, 0, 100, 0), (1000, 0, 100, 0)),
    tokens((2500, 1000, 250, 0), (1500, 1000, 150, 0)),
    tokens((4500, 2500, 450, 0), (2000, 1500, 200, 0)),
)


@pytest.mark.parametrize(
    ("rows", "output"),
    [
        ([ONE, TWO, THREE], 450),
        ([ONE, TWO, THREE, TWO, THREE], 450),
        ([ONE, TWO, THREE, TWO], 450),
        ([ONE, TWO, THREE, ONE, TWO, THREE, ONE], 450),
        ([ONE, TWO, THREE, TWO, tokens((6000, 3500, 600, 0), (1500, 1000, 150, 0))], 600),  # goes on from the third
        ([ONE, TWO, THREE, TWO, tokens((4000, 2000, 400, 0), (1500, 1000, 150, 0))], 600),  # goes on from the second
        ([ONE, TWO, tokens((700, 0, 70, 0), (700, 0, 70, 0))], 320),  # counts from zero again
    ],
)
def test_counts_that_a_file_holds_twice_count_once(rows: list[ROW], output: int) -> None:
    session = one(meta(), context(), prompt("go"), *(row for count in rows for row in (says(), count)))
    assert sum(step.output_tokens or 0 for step in session.steps) == output


def test_a_call_before_the_first_context_is_of_the_model_that_is_named_next() -> None:
    session = one(
        meta(), prompt("go"), says(), ONE, context("gpt-5.4"), says(), TWO, context("gpt-5.4-mini"), says(), THREE
    )
    assert [step.model for step in session.steps] == ["gpt-5.4", "gpt-5.4", "gpt-5.4-mini"]


def test_without_any_context_nobody_knows_the_model() -> None:
    assert [step.model for step in one(meta(), prompt("go"), says(), ONE).steps] == [None]


def test_a_switch_of_effort_is_an_event() -> None:
    session = one(
        meta(), context(effort="high"), prompt("go"), says(), context(effort="high"), context(effort="low"), context()
    )
    assert texts(session, "settings_change") == ["effort high -> effort low"]


@pytest.mark.parametrize(
    ("ended", "ran_s"),
    [
        ({"type": "mcp_tool_call_end", "duration": {"secs": 14, "nanos": 500_000_000}}, 15.5),
        ({"type": "exec_command_end", "exit_code": 0, "duration": {"secs": 14, "nanos": 500_000_000}}, 15.5),
        ({"type": "mcp_tool_call_end"}, None),
        ({"type": "mcp_tool_call_end", "duration": "14 s"}, None),
    ],
)
def test_the_event_of_a_calls_end_dates_its_start(ended: ROW, ran_s: float | None) -> None:
    asked = item("function_call", name="shell", call_id="c", arguments='{"command": ["make"]}')
    answered = row("response_item", 61, type="function_call_output", call_id="c", output="ok")
    made = only_call(prompt("go"), asked, row("event_msg", 60, call_id="c", **ended), answered)
    assert made.ran_s == ran_s


def test_a_header_written_again_is_a_resumed_session() -> None:
    session = one(meta(), context(), prompt("go"), says(), meta(), prompt("go on"), says())
    assert [event.kind for event in session.events if event.kind in ("resume", "human_turn")] == [
        "human_turn",
        "resume",
        "human_turn",
    ]
