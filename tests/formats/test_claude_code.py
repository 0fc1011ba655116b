"""Claude Code records: tokens counted once, damage survived, nothing lost in silence; the real sessions as a whole."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given as given_some
from hypothesis import settings
from hypothesis import strategies as st

from agentsignals.formats import claude_code
from agentsignals.formats.bounds import validate
from agentsignals.formats.claude_code import PROFILE
from agentsignals.formats.head import Head
from agentsignals.model import MAIN, Edit, Session, Step
from tests.claude import SESSION, Log, given, read, session

FILES = Path(__file__).parent / "claude-code"
CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "sessions" / "claude-code"


REAL = Counter(
    {
        "answered": 4_689,
        "cache_read": 235_677_754,
        "cache_write": 12_967_982,
        "calls": 4_097,
        "edits.edit_tool": 988,
        "edits.shell": 67,
        "events.compaction": 3,
        "events.interrupt": 30,  # two refusals are plans that a fresh context went on with
        "input": 218_949,
        "output": 975_037,
        "records": 21_756,
        "repeated": 3,
        "sessions": 143,
        "steps": 3_604,
        "subagent_calls": 593,
        "subagent_steps": 262,
        "subagents_by_totals": 19,
        "turns.plan_handoff": 23,
        "turns.prompt": 389,
        "turns.queued_prompt": 11,
        "turns.rejection_feedback": 25,
        "turns.slash_command": 24,
    }
)
"""What the 143 real sessions hold. Tokens, steps, calls and edited places were counted by a second reader; the turns
were read by eye, and every prompt that Entire recorded beside a transcript is among them."""


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


def tokens(step: Step) -> tuple[int | None, ...]:
    return step.input_tokens, step.output_tokens, step.cache_read_tokens, step.cache_write_tokens


# -- steps -----------------------------------------------------------------------------------------------------------


# -- records ---------------------------------------------------------------------------------------------------------


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.just([{"type": 1}]),
)
SAMPLES = [line for path in sorted(FILES.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()]


@settings(max_examples=300, deadline=None)
@given_some(st.sampled_from(SAMPLES), VALUES, st.randoms(use_true_random=False))
def test_a_value_of_any_other_kind_anywhere_is_survived(line: str, value: Any, random: Random) -> None:
    try:
        record = json.loads(line, strict=False)
    except ValueError:
        return
    at = record
    while isinstance(at, dict | list) and at:
        key = random.choice(list(at) if isinstance(at, dict) else range(len(at)))
        if not isinstance(at[key], dict | list) or not at[key] or random.random() < 0.2:
            at[key] = value
            break
        at = at[key]
    one = given(json.dumps(record).encode())
    claude_code.FORMAT.read([one])
    kinds_counted = sum(n for kind, n in one.artifact.record_kinds.items() if kind != "repeated")
    assert kinds_counted + one.artifact.skipped == one.artifact.records == 1


# -- recognising -----------------------------------------------------------------------------------------------------


def test_a_first_record_longer_than_the_window_is_recognised() -> None:
    log = Log()
    log.user([{"type": "image", "source": {"data": "x" * 200_000}}])
    claim = claude_code.claims(Head(log.data()[: 64 * 1024]))
    assert claim is not None
    assert claim.keys == [f"session:{SESSION}"]


LOOK_ALIKES = [
    {"type": "user", "parentUuid": None, "sessionId": "s", "uuid": "u", "harness": "swival"},
    {"type": "session", "id": "s", "cwd": "/x"},
    {"type": "system", "subtype": "init", "session_id": "s", "cwd": "/x"},
    {"role": "user", "message": {"content": []}},
]


@pytest.mark.parametrize("record", LOOK_ALIKES, ids=lambda r: str(next(iter(r.values()))))
def test_formats_that_look_alike_are_not_claimed(record: dict[str, Any]) -> None:
    assert claude_code.claims(Head(json.dumps(record).encode() + b"\n", complete=True)) is None


# -- real files ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real traces is not there")
def test_the_real_sessions_have_the_counts_that_a_second_reader_found() -> None:
    """Counted by plain `json` over every line: ids of messages and calls, field-wise maxima of usage, patches."""
    total: Counter[str] = Counter()
    for path in sorted(CORPUS.glob("*/*/transcript.jsonl")):
        one = given(path.read_bytes(), path.parent.name)
        for found in claude_code.FORMAT.read([one]).sessions:
            total += _counts(found)
        total += Counter(records=one.artifact.records, repeated=one.artifact.record_kinds.get("repeated", 0))
        assert one.artifact.skipped == 0
    assert total == REAL


def _counts(found: Session) -> Counter[str]:
    main = [s for s in found.steps if s.thread == MAIN]
    total = Counter(f"turns.{t.kind}" for t in found.turns)
    total += Counter(f"events.{e.kind}" for e in found.events if e.kind in ("interrupt", "compaction", "unknown"))
    total += Counter(f"edits.{e.via}" for e in found.edits if e.thread == MAIN)
    total += Counter(
        sessions=1,
        steps=len(main),
        input=sum(s.input_tokens or 0 for s in main),
        output=sum(s.output_tokens or 0 for s in main),
        cache_read=sum(s.cache_read_tokens or 0 for s in main),
        cache_write=sum(s.cache_write_tokens or 0 for s in main),
        subagent_steps=sum(s.thread != MAIN and s.summed_calls is None for s in found.steps),
        subagents_by_totals=sum(s.summed_calls is not None for s in found.steps),
        calls=sum(c.thread == MAIN for c in found.tool_calls),
        subagent_calls=sum(c.thread != MAIN for c in found.tool_calls),
        unknown_tools=sum(c.class_ == "other" and PROFILE.tool(c.name) is None for c in found.tool_calls),
        answered=sum(c.result_seq is not None for c in found.tool_calls),
    )
    return total


FILE = "/work/shop/cart.py"


def patch(old: int, new: int, *lines: str) -> dict[str, Any]:
    return {"oldStart": old, "oldLines": 0, "newStart": new, "newLines": 0, "lines": list(lines)}


def edit_of(told: Any, name: str = "Edit", **arguments: Any) -> list[Edit]:
    log = Log()
    log.ran(name, "done", told=told, file_path=FILE, **arguments)
    return session(log).edits


def lines(edits: list[Edit]) -> list[tuple[int | None, ...]]:
    return [(e.start_line, e.end_line, e.added, e.removed, e.old_start) for e in edits]


@pytest.mark.parametrize(("changed", "whole"), [(5, True), (4, False)])
def test_a_rewrite_of_most_lines_is_one_of_the_whole_file(changed: int, whole: bool) -> None:
    hunk = patch(1, 1, *(f"-{n}" for n in range(changed)), *(f"+{n}" for n in range(changed)))
    told = {"type": "update", "filePath": FILE, "content": "x\n" * 5, "structuredPatch": [hunk]}
    assert [e.whole_file for e in edit_of(told, "Write", content="x\n" * 5)] == [whole]


def test_a_huge_original_and_odd_neighbours_are_not_read() -> None:
    told = {
        "originalFile": "x" * 100_000,
        "userModified": False,
        "gitDiff": {"a": [1]},
        "structuredPatch": [patch(1, 1, "+a")],
    }
    assert lines(edit_of(told)) == [(1, 1, 1, 0, 1)]


def test_without_a_patch_the_arguments_tell_the_sizes() -> None:
    for told in (None, "Error-free text", {"filePath": FILE}):
        edits = edit_of(told, old_string="a\nb\nc", new_string="a\nB\nB2\nc")
        assert lines(edits) == [(None, None, 2, 1, None)]
        assert edits[0].path == "cart.py"


@pytest.mark.parametrize(("text", "error"), [("<tool_use_error>String to replace not found</tool_use_error>", True)])
def test_an_edit_that_failed_changed_nothing(text: str, error: bool) -> None:
    log = Log()
    log.ran("Edit", text, error, {"structuredPatch": [patch(1, 1, "+a")]}, file_path=FILE)
    assert session(log).edits == []


Ended = tuple[str, str | None, int | None]
RESULTS: list[tuple[str, Any, Any, Ended]] = [
    ("Bash", "ok", None, ("ok", None, None)),
    ("Bash", "Exit code 0 of the inner tool", False, ("ok", None, None)),
    ("Bash", "Exit code 2\nboom", True, ("error", "exit_nonzero", 2)),
    ("Bash", "<tool_use_error>Sibling tool call errored</tool_use_error>", True, ("cancelled", None, None)),
    (
        "Bash",
        "<tool_use_error>Cancelled: parallel tool call Bash(x) errored</tool_use_error>",
        True,
        ("cancelled", None, None),
    ),
    ("Task", "[Request interrupted by user for tool use]", True, ("cancelled", None, None)),
    (
        "Bash",
        "Permission for this tool use was denied. The tool use was rejected (eg.",
        True,
        ("error", "permission", None),
    ),
    ("Read", "<tool_use_error>File does not exist.</tool_use_error>", True, ("error", "not_found", None)),
    ("Edit", "<tool_use_error>File has not been read yet.</tool_use_error>", True, ("error", "not_read_first", None)),
    ("Skill", "<tool_use_error>Unknown skill: x</tool_use_error>", "true", ("error", "not_found", None)),
    (
        "mcp__db__query",
        [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}],
        None,
        ("ok", None, None),
    ),
    ("ToolSearch", [{"type": "tool_reference", "tool_name": "x"}], None, ("ok", None, None)),
    ("Bash", None, None, ("ok", None, None)),
    ("Bash", ["a", None, {"type": "text", "text": "b"}], None, ("ok", None, None)),
    ("Bash", {"type": "text", "text": "one"}, None, ("ok", None, None)),
]


@pytest.mark.parametrize(("name", "text", "error", "ended"), RESULTS)
def test_a_result_tells_how_the_call_ended(name: str, text: Any, error: Any, ended: Ended) -> None:
    log = Log()
    log.ran(name, text, error, command="./x")
    (call,) = session(log).tool_calls
    assert (call.status, call.error_class, call.exit_code) == ended


CLASSES = {
    "read": "Read NotebookRead",
    "search": "Grep Glob LS LSP",
    "edit": "Edit MultiEdit Write NotebookEdit",
    "shell": "Bash PowerShell Monitor",
    "plan": "TodoWrite TaskCreate TaskUpdate TaskList TaskGet EnterPlanMode ExitPlanMode",
    "task": "Task Agent Workflow Skill SlashCommand SendMessage TaskOutput TaskStop BashOutput KillShell",
    "web": "WebFetch WebSearch",
    "ask": "AskUserQuestion",
    "mcp": "mcp__github__get_issue ListMcpResourcesTool ReadMcpResourceTool",
    "other": "ToolSearch EnterWorktree CronCreate ScheduleWakeup StructuredOutput",
}


@pytest.mark.parametrize(("class_", "name"), [(c, n) for c, names in CLASSES.items() for n in names.split()])
def test_a_tool_of_the_program_has_its_class(class_: str, name: str) -> None:
    known = PROFILE.tool(name)
    assert known is not None
    assert known.class_ == class_


@pytest.mark.parametrize("content", [7, ["a"], {"a": 1}])
def test_contents_that_are_no_text_cost_the_lines_only(content: object) -> None:
    (made,) = edit_of({"type": "create", "filePath": FILE, "content": content, "structuredPatch": []}, "Write")
    assert (made.op, made.added) == ("create", None)
    told = {"type": "update", "filePath": FILE, "content": content, "structuredPatch": [patch(1, 1, "-a", "+b")]}
    assert lines(edit_of(told, "Write")) == [(1, 1, 1, 1, 1)]


OTHER = "6f1d2c3b-0000-4000-8000-000000000002"


def text_families(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


# -- subagents -------------------------------------------------------------------------------------------------------


def progress(log: Log, type_: str, content: Any, uuid: str, **message: Any) -> None:
    inner = {"type": type_, "message": {"role": type_, "content": content, **message}, "uuid": uuid}
    data = {
        "type": "agent_progress",
        "agentId": "a1b2",
        "prompt": "Explore.",
        "message": inner,
        "normalizedMessages": [],
    }
    log.record("progress", data=data, parentToolUseID="toolu_1", toolUseID="agent_msg_1")


def with_subagent(log: Log) -> Log:
    log.user("look around")
    log.call("Task", "toolu_1", prompt="Explore.")
    progress(log, "user", [text_families("Explore.")], "in-1")
    usage = {"input_tokens": 50, "output_tokens": 60}
    block = {"type": "tool_use", "id": "toolu_in", "name": "Grep", "input": {"pattern": "x"}}
    progress(log, "assistant", [block], "in-2", id="msg_in", model="claude-haiku-4-5", usage=usage)
    progress(log, "user", [{"type": "tool_result", "tool_use_id": "toolu_in", "content": "found"}], "in-3")
    log.record("progress", data={"type": "bash_progress", "output": "…"})
    log.result("It is in cart.py.", "toolu_1")
    return log


def agent_file(after: float) -> Log:
    log = Log(name="agent")
    log.wait(after)
    facts = {"isSidechain": True, "agentId": "a1b2"}
    log.user("Explore.", **facts)
    block = {"type": "tool_use", "id": "toolu_in", "name": "Grep", "input": {"pattern": "x"}}
    log.assistant(block, message_id="msg_in", usage=(50, 60, 0, 0), **facts)
    log.record(
        "user", message={"content": [{"type": "tool_result", "tool_use_id": "toolu_in", "content": "f"}]}, **facts
    )
    return log


def test_a_subagents_own_file_joins_the_session_at_the_turn_it_ran_in() -> None:
    parent = Log()
    parent.user("look around")
    parent.call("Task", "toolu_1", prompt="Explore.")
    parent.wait(10)
    parent.result("It is in cart.py.", "toolu_1")
    parent.user("thanks")
    for files in ((parent, agent_file(3)), (agent_file(3), parent)):
        found = session(*files)
        assert [(c.name, c.thread, c.turn) for c in found.tool_calls] == [("Task", MAIN, 0), ("Grep", "a1b2", 0)]
        assert [t.text for t in found.turns] == ["look around", "thanks"]
        assert {e.artifact_id for e in found.events if e.thread == "a1b2"} != {found.artifact_id}


def test_a_subagent_told_of_twice_counts_once() -> None:
    parent = with_subagent(Log())
    found = session(parent, agent_file(3))
    assert [c.name for c in found.tool_calls] == ["Task", "Grep"]
    assert sum(s.output_tokens or 0 for s in found.steps if s.thread == "a1b2") == 60


# -- families --------------------------------------------------------------------------------------------------------


def long_log() -> Log:
    log = Log()
    for n in range(4):
        log.user(f"prompt {n}")
        log.queue("enqueue", f"and {n}")
        log.queue("remove")
        log.ran("Read", file_path=f"/work/shop/{n}.py")
        log.side("custom-mystery", sessionId=SESSION)
    return log


def part(log: Log, start: int, end: int) -> Log:
    piece = Log(log.session)
    piece.lines = log.lines[start:end]
    return piece


def facts(found: Session) -> tuple[Any, ...]:
    seen = [(e.kind, e.text, e.timestamp, e.turn) for e in found.events]
    return seen, [t.text for t in found.turns], [c.status for c in found.tool_calls]


@pytest.mark.parametrize(
    "cuts", [[(0, 9), (0, 24)], [(0, 9), (0, 16), (0, 24)], [(0, 12), (12, 24)], [(0, 14), (8, 24)]]
)
def test_snapshots_and_slices_of_a_session_unite_to_the_whole(cuts: list[tuple[int, int]]) -> None:
    whole = long_log()
    expected = facts(session(whole))
    pieces = [part(whole, *cut) for cut in cuts]
    assert facts(session(*pieces)) == expected
    assert facts(session(*reversed(pieces))) == expected


def fork(at: int) -> tuple[Log, Log]:
    """A session, and one that was resumed from its first records under an id of its own."""
    first = long_log()
    second = Log(OTHER, "fork")
    second.lines = [line.replace(SESSION, OTHER) for line in first.lines[:at]]
    second.wait(3600)
    second.user("another way")
    second.say("so be it", message_id="msg_fork")
    return first, second


def test_a_forked_history_counts_in_the_session_that_ended_first() -> None:
    for files in (fork(8), fork(8)[::-1]):
        first, second = sorted(read(*files).sessions, key=lambda s: s.session_id)
        assert [t.text for t in first.turns if t.kind == "prompt"] == [f"prompt {n}" for n in range(4)]
        assert [t.text for t in second.turns if t.kind == "prompt"] == ["another way"]
        assert (first.parent_session_id, second.parent_session_id) == (None, SESSION)
        assert len(first.tool_calls) == 4
        assert [s.message_id for s in second.steps] == ["msg_fork"]


def apart(times: int, **facts: str) -> bytes:
    """Lines of as many sessions in one file, whose records share an id."""
    log = Log()
    for n in range(times):
        log.user(**{"content": f"do the task {n}", "uuid": "the-same", "sessionId": f"s{n}", **facts})
    return log.data()


@pytest.mark.parametrize("facts", [{}, {"content": "the same"}, {"timestamp": "2026-03-02T09:00:00.000Z"}])
def test_records_of_several_sessions_that_share_an_id_are_all_read(facts: dict[str, str]) -> None:
    source = given(apart(40, **facts))
    sessions = claude_code.FORMAT.read([source]).sessions
    assert sorted(s.session_id for s in sessions) == sorted(f"s{n}" for n in range(40))
    assert source.artifact.record_kinds == {"user": 40}


def test_a_session_that_is_all_copies_is_counted() -> None:
    source = given(apart(40, content="the same", timestamp="2026-03-02T09:00:00.000Z"))
    assert len(claude_code.FORMAT.read([source]).sessions) == 1
    assert source.artifact.skipped_reasons == {"session_of_copies": 39}
    assert source.artifact.record_kinds == {"user": 40, "repeated": 39}


def test_a_fork_shares_a_key_with_its_origin() -> None:
    claims = [claude_code.claims(Head(log.data(), complete=True)) for log in fork(8)]
    assert all(claims)
    shared = set.intersection(*(set(claim.keys) for claim in claims if claim))
    assert shared == {"record:01-0001", "record:01-0002", "record:01-0003"}


def test_a_file_that_holds_two_sessions_is_of_the_one_its_name_says() -> None:
    log = Log(OTHER)
    log.user("old", sessionId=SESSION)
    log.user("new", sessionId=OTHER)
    log.user("newer", sessionId=OTHER)
    assert [s.session_id for s in read(log).sessions] == [OTHER]
    (named,) = claude_code.FORMAT.read([given(log.data(), hint=SESSION)]).sessions
    assert named.session_id == SESSION


def test_a_summary_is_the_title_only_of_the_session_it_is_about() -> None:
    log = Log()
    log.side("summary", summary="Another session", leafUuid="elsewhere")
    log.user("go")
    assert session(log).title is None
    log.side("summary", summary="This session", leafUuid="01-0001")
    assert session(log).title == "This session"


# -- how long a call ran, by records that date it ----------------------------------------------------------------------

Record = tuple[str, float, dict[str, Any]]
"""Kind, second after the call, and what it says."""


def report(second: float, type_: str = "bash_progress", **data: Any) -> Record:
    return "progress", second, {"data": {"type": type_, **data}, "parentToolUseID": "toolu_1", "toolUseID": "p"}


def hook(second: float, event: str, took_ms: Any = None) -> Record:
    if took_ms is None:
        return report(second, "hook_progress", hookEvent=event, hookName=event, command="fmt")
    told = {"type": "hook_success", "hookEvent": event, "toolUseID": "toolu_1", "durationMs": took_ms}
    return "attachment", second, {"attachment": told}


def open_for(second: float, *records: Record, name: str = "Bash", told: Any = None) -> Session:
    """A call whose result comes so many seconds after it, and records between the two."""
    log = Log()
    log.user("go")
    log.call(name, command="make all", file_path="a.py")
    asked = log.now
    for kind, at, facts in records:
        log.now = asked
        log.wait(at - 1)
        log.record(kind, **facts)
    log.now = asked
    log.wait(second - 1)
    log.result("ok", told=told)
    return session(log)


EVERY_SECOND = [report(1140 + n, elapsedTimeSeconds=n) for n in range(3, 60)]
NIGHT = 8 * 3600


@pytest.mark.parametrize(
    ("second", "records", "ran_s"),
    [
        (1200, EVERY_SECOND, 60),
        (1200, EVERY_SECOND[::10], 60),
        (1200, EVERY_SECOND[-1:], 60),
        (300, [report(3, elapsedTimeSeconds=3)], 300),
        (1200, [report(1190, "mcp_progress", status="started")], 10),
        (1200, [report(1195, "mcp_progress", status="completed", elapsedTimeMs=2500)], 7.5),
        (1200, [report(1190, "query_update", query="x")], 10),
        (1200, [report(1199.5, "a_type_of_tomorrow")], 0.5),
        (1200, [report(900, "agent_progress", prompt="x")], None),
        (1200, [], None),
        (NIGHT + 60, [report(30, elapsedTimeSeconds=30), report(NIGHT + 59, elapsedTimeSeconds=NIGHT + 59)], 631),
    ],
)
def test_progress_dates_the_start_of_a_call(second: float, records: list[Record], ran_s: float | None) -> None:
    (call,) = open_for(second, *records).tool_calls
    assert (call.ran_s, call.hooks_s, call.not_before) == (ran_s, None, None)


def test_what_the_result_says_of_its_duration_comes_first() -> None:
    (call,) = open_for(1200, report(1000, elapsedTimeSeconds=1), told={"durationMs": 250}).tool_calls
    assert call.ran_s == 0.25


@pytest.mark.parametrize(
    ("records", "hooks_s", "not_before", "ran_s"),
    [
        ([hook(1190, "PostToolUse")], 10, None, None),
        ([hook(1199, "PostToolUse", 40_000)], 41, None, None),
        ([hook(1199, "PostToolUse", 40_000), hook(1199, "PostToolUse", 9_000)], 41, None, None),
        ([hook(2, "PreToolUse")], None, 2, None),
        ([hook(6, "PreToolUse", 5_000), hook(4, "PreToolUse", 3_000)], 5, 6, None),
        ([hook(2, "PreToolUse"), hook(3, "PermissionRequest")], None, 3, None),
        ([hook(1100, "PreToolUse", 5_000), hook(1198, "PostToolUse", 8_000)], 5 + 10, 1100, None),
        ([report(1150, elapsedTimeSeconds=10), hook(1198, "PostToolUse", 8_000)], 10, None, 50),
        ([hook(5, "Stop", 5_000), hook(5, "SessionStart")], None, None, None),
    ],
)
def test_hooks_of_a_call_are_dated(
    records: list[Record], hooks_s: float | None, not_before: float | None, ran_s: float | None
) -> None:
    (call,) = open_for(1200, *records).tool_calls
    moment = None if not_before is None or call.started_at is None else call.started_at + int(not_before * 1e6)
    assert (call.hooks_s, call.not_before, call.ran_s) == (hooks_s, moment, ran_s)


@pytest.mark.parametrize(
    "record",
    [
        report(9, elapsedTimeSeconds=-1),
        report(9, elapsedTimeMs="soon"),
        hook(9, "PreToolUse", -5),
        hook(9, "PostToolUse", 1e300),
    ],
)
def test_a_duration_that_cannot_be_is_counted_and_dates_nothing(record: Record) -> None:
    log = Log()
    log.user("go")
    log.call("Bash", command="make")
    log.record(record[0], **record[2])
    log.result("ok")
    source = given(log.data())
    (made,) = validate(claude_code.FORMAT.read([source]), [source], ()).sessions
    (call,) = made.tool_calls
    assert (call.ran_s, call.hooks_s, call.not_before) == (None, None, None)
    assert source.artifact.skipped_reasons["impossible_duration"] == 1


def test_records_after_the_result_date_nothing() -> None:
    log = Log()
    log.user("go")
    log.ran("Bash", command="make")
    log.record("progress", data={"type": "bash_progress", "elapsedTimeSeconds": 9}, parentToolUseID="toolu_2")
    (call,) = session(log).tool_calls
    assert (call.ran_s, call.hooks_s, call.not_before) == (None, None, None)
