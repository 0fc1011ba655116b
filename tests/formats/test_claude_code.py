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
from agentsignals.formats.claude_code import PROFILE
from agentsignals.formats.head import Head
from agentsignals.model import MAIN, Edit, Session, Step
from tests.claude import SESSION, Log, given, kinds, micros, read, session, turns

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


def test_usage_repeated_on_every_line_of_a_message_counts_once_at_its_most() -> None:
    log = Log()
    for output in (4, 31, 12):
        log.say("x", usage=(3, output, 900, 40))
    assert [tokens(s) for s in session(log).steps] == [(3, 31, 900, 40)]


def test_lines_of_two_messages_that_interleave_are_two_steps() -> None:
    log = Log()
    for message_id, output in (("msg_a", 5), ("msg_b", 7), ("msg_a", 9)):
        log.say(message_id, message_id=message_id, usage=(1, output, 0, 0))
    found = session(log)
    assert [(s.message_id, s.output_tokens) for s in found.steps] == [("msg_a", 9), ("msg_b", 7)]
    assert [e.step for e in found.events] == [0, 1, 0]


def test_usage_that_is_not_told_is_absent_not_zero() -> None:
    log = Log()
    log.record("assistant", message={"id": "m", "model": "x", "content": [text("hi")], "usage": {"output_tokens": 0}})
    assert [tokens(s) for s in session(log).steps] == [(None, 0, None, None)]


def test_messages_whose_ids_a_redactor_overwrote_are_not_one_message() -> None:
    log = Log()
    for n in range(2):
        log.say(str(n), message_id="REDACTED", uuid="REDACTED")
    assert len(session(log).steps) == 2


def test_a_message_of_the_program_itself_is_no_step() -> None:
    log = Log()
    log.say("API Error: 500 …", model="<synthetic>", isApiErrorMessage=True)
    log.say("No response requested.", model="<synthetic>", isApiErrorMessage=False)
    log.record("system", subtype="api_error", error={"status": 529, "error": {"error": {"message": "Overloaded"}}})
    found = session(log)
    assert found.steps == []
    assert [(e.kind, e.text) for e in found.events] == [
        ("api_error", "API Error: 500 …"),
        ("meta", "No response requested."),
        ("api_error", "529 Overloaded"),
    ]


def test_a_change_of_model_is_an_event_and_each_turn_has_its_model() -> None:
    log = Log()
    for n, model in enumerate(("claude-opus-4-6", "claude-opus-4-6", "claude-haiku-4-5")):
        log.user(f"prompt {n}")
        log.say("ok", message_id=f"m{n}", model=model)
    found = session(log)
    assert [e.text for e in found.events if e.kind == "model_change"] == ["claude-opus-4-6 -> claude-haiku-4-5"]
    assert [t.model for t in found.turns] == ["claude-opus-4-6", "claude-opus-4-6", "claude-haiku-4-5"]
    assert found.model == "claude-opus-4-6"


def test_thinking_without_words_and_blocks_of_other_kinds_are_kept() -> None:
    log = Log()
    others = ("redacted_thinking", "fallback", "hologram")
    log.assistant({"type": "thinking", "thinking": "", "signature": "x"}, *({"type": t} for t in others))
    log.assistant({"type": "server_tool_use", "id": "s1", "name": "WebSearch", "input": {"query": "x"}})
    log.assistant({"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result"}]})
    found = session(log)
    assert kinds(log) == ["thinking", "thinking", "meta", "unknown", "tool_call", "tool_result"]
    assert found.events[3].text == "block hologram"
    assert [(c.class_, c.status) for c in found.tool_calls] == [("web", "ok")]


def test_a_recorded_cost_is_kept() -> None:
    log = Log(version="1.0.24")
    log.say("x", costUSD=0.25)
    assert [(s.cost_usd, s.cost_source) for s in session(log).steps] == [(0.25, "recorded")]


# -- records ---------------------------------------------------------------------------------------------------------


def test_two_objects_torn_into_one_line_are_both_read() -> None:
    log = Log()
    log.user("one")
    log.say("two")
    log.lines[-2:] = ["".join(log.lines[-2:])]
    log.user("three")
    assert [(e.text, e.line) for e in session(log).events] == [("one", 1), ("two", 1), ("three", 2)]


def test_two_objects_and_their_newlines_in_the_wrong_order_keep_their_line() -> None:
    log = Log()
    for said in ("one", "two"):
        log.user(said)
    log.lines[-2:] = ["".join(log.lines[-2:]), ""]
    log.user("three")
    assert [(e.text, e.line) for e in session(log).events] == [("one", 1), ("two", 1), ("three", 3)]


def test_damage_costs_the_damaged_record_and_is_counted() -> None:
    log = Log()
    log.user("one")
    log.raw('{"type":"user","message":{"role"')
    log.raw("")
    log.user("lone SURROGATE")
    log.lines[-1] = log.lines[-1].replace("SURROGATE", "\\ud83d half")
    log.record("user", message={"content": 7})
    log.say("two")
    data = log.data()[:-9]
    one = given(data)
    (found,) = claude_code.FORMAT.read([one]).sessions
    assert [t.text for t in found.turns] == ["one", "lone ? half"]
    assert one.artifact.skipped_reasons == {"bad_json": 1, "bad_shape": 1, "cut_line": 1, "unsound_text": 1}
    assert one.artifact.records == 5


def test_a_record_of_a_kind_that_is_not_known_is_kept_and_named() -> None:
    log = Log()
    log.record("hologram", content=[1, {"x": 2}])
    log.record("hologram", message="of another shape", data=7)
    log.record("system", subtype="tea_time")
    log.record("attachment", attachment={"type": "postcard"})
    log.record("system", subtype="turn_duration", durationMs=4)
    one = given(log.data())
    (found,) = claude_code.FORMAT.read([one]).sessions
    assert [(e.kind, e.text) for e in found.events] == [
        ("unknown", "hologram"),
        ("unknown", "hologram of unknown shape"),
        ("unknown", "system.tea_time"),
        ("unknown", "attachment.postcard"),
    ]
    assert one.artifact.record_kinds["system.turn_duration"] == 1
    assert one.artifact.skipped == 0


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


def test_times_that_go_backwards_leave_the_order_of_the_file() -> None:
    log = Log()
    log.user("one", timestamp="2026-03-02T09:00:05.000Z")
    log.say("two", timestamp="2026-03-02T09:00:01.500Z")
    found = session(log)
    assert [e.text for e in found.events] == ["one", "two"]
    assert (found.started_at, found.ended_at) == (micros(1.5), micros(5))


def test_a_session_takes_its_first_facts_and_paths_of_all_its_folders() -> None:
    log = Log(cwd="/work/shop/web")
    log.ran("Read", file_path="/work/shop/web/a.ts")
    log.base["cwd"] = "/work/shop"
    log.base["version"] = "2.1.21"
    log.ran("Read", file_path="/work/shop/.claude/worktrees/fix/b.py")
    log.ran("Read", file_path="/etc/hosts")
    found = session(log)
    assert [c.path for c in found.tool_calls] == ["web/a.ts", "b.py", "/etc/hosts"]
    assert (found.cwd, found.branch, found.agent_version) == ("/work/shop/web", "main", "2.1.20")


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


def test_context_lines_are_trimmed_off_a_hunk() -> None:
    edits = edit_of({"filePath": FILE, "structuredPatch": [patch(10, 10, " a", " b", "-c", "+C", "+D", " e")]})
    assert lines(edits) == [(12, 13, 2, 1, 12)]
    assert (edits[0].path, edits[0].op, edits[0].via, edits[0].whole_file) == ("cart.py", "modify", "edit_tool", False)


def test_a_hunk_that_only_deletes_has_the_line_after_it() -> None:
    assert lines(edit_of({"structuredPatch": [patch(4, 4, " a", "-b", "-c", " d")]})) == [(5, 5, 0, 2, 5)]


def test_context_inside_a_hunk_is_part_of_its_range() -> None:
    assert lines(edit_of({"structuredPatch": [patch(1, 1, "+a", " b", "-c", "+d")]})) == [(1, 3, 2, 1, 1)]


def test_the_missing_newline_mark_is_no_line() -> None:
    hunk = patch(7, 7, " a", "-b", "\\ No newline at end of file", "+b", "+c")
    assert lines(edit_of({"structuredPatch": [hunk]})) == [(8, 9, 2, 1, 8)]


def test_each_hunk_of_a_call_is_an_edit_of_its_own() -> None:
    edits = edit_of({"structuredPatch": [patch(1, 1, "-a", "+b", "+c"), patch(20, 21, " x", "-y", "+z")]}, "MultiEdit")
    assert lines(edits) == [(1, 2, 2, 1, 1), (22, 22, 1, 1, 21)]
    assert [e.hunk for e in edits] == [0, 1]


def test_a_new_file_is_created_whole() -> None:
    edits = edit_of(
        {"type": "create", "filePath": FILE, "content": "a\nb\nc", "structuredPatch": []}, "Write", content="a\nb\nc"
    )
    assert lines(edits) == [(1, 3, 3, 0, 1)]
    assert (edits[0].op, edits[0].whole_file) == ("create", True)


@pytest.mark.parametrize(("changed", "whole"), [(5, True), (4, False)])
def test_a_rewrite_of_most_lines_is_one_of_the_whole_file(changed: int, whole: bool) -> None:
    hunk = patch(1, 1, *(f"-{n}" for n in range(changed)), *(f"+{n}" for n in range(changed)))
    told = {"type": "update", "filePath": FILE, "content": "x\n" * 5, "structuredPatch": [hunk]}
    assert [e.whole_file for e in edit_of(told, "Write", content="x\n" * 5)] == [whole]


def test_writing_what_is_there_already_changes_nothing() -> None:
    assert edit_of({"type": "update", "content": "x\n", "structuredPatch": []}, "Write", content="x\n") == []


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


def test_files_that_the_shell_writes_are_edits_where_the_command_ran() -> None:
    log = Log()
    log.user("go")
    log.base["cwd"] = "/work/shop/web"
    log.ran("Bash", "", command="sed -i 's/a/b/' ../cart.py && git checkout -- app.ts && rm /etc/x")
    log.ran("Bash", "Exit code 1\nno", True, command="rm gone.py")
    assert [(e.path, e.op, e.via, e.whole_file) for e in session(log).edits] == [
        ("cart.py", "modify", "shell", False),
        ("web/app.ts", "modify", "shell", True),
        ("/etc/x", "delete", "shell", True),
    ]


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


def test_result_texts_are_joined_and_sized() -> None:
    log = Log()
    log.ran("mcp__db__query", [{"type": "text", "text": "abcd"}, {"type": "text", "text": "efgh"}])
    found = session(log)
    assert found.events[-1].text == "abcd\nefgh"
    assert found.tool_calls[0].result_tokens == 3


def test_a_result_written_before_its_call_is_still_its_result() -> None:
    log = Log()
    log.result("early", "toolu_9")
    log.call("Bash", "toolu_9", command="ls")
    log.result("nobody's", "toolu_lost")
    found = session(log)
    assert [(e.kind, e.line) for e in found.events] == [("tool_call", 2), ("tool_result", 1), ("tool_result", 3)]
    assert (found.tool_calls[0].status, found.tool_calls[0].result_seq) == ("ok", 1)


def test_a_call_without_a_result_has_no_status() -> None:
    log = Log()
    log.call("Bash", command="sleep 9")
    (call,) = session(log).tool_calls
    assert (call.status, call.result_seq, call.ended_at) == ("none", None, None)


def test_one_structured_result_for_two_results_is_given_to_neither() -> None:
    log = Log()
    for n in ("a", "b"):
        log.call("Edit", n, file_path=f"/work/shop/{n}.py", old_string="x", new_string="y")
    both = [{"tool_use_id": n, "type": "tool_result", "content": "ok"} for n in ("a", "b")]
    log.user(both, toolUseResult={"filePath": "/work/shop/a.py", "structuredPatch": [patch(5, 5, "-x", "+y")]})
    assert [(e.path, e.start_line, e.added) for e in session(log).edits] == [("a.py", None, 1), ("b.py", None, 1)]


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


def test_an_unknown_tool_is_other_and_keeps_its_path() -> None:
    log = Log()
    log.ran("Teleport", file_path=FILE)
    (call,) = session(log).tool_calls
    assert (call.class_, call.path, PROFILE.tool("Teleport")) == ("other", "cart.py", None)


def test_windows_paths_and_power_shell_are_understood() -> None:
    log = Log(cwd="D:\\work\\shop")
    log.ran("PowerShell", "x", command="Get-Content -Path .\\src\\cart.cs -TotalCount 20")
    log.ran(
        "Edit", told={"filePath": "D:\\work\\shop\\src\\cart.cs", "structuredPatch": [patch(1, 1, "+a")]}, file_path="x"
    )
    found = session(log)
    assert [(c.class_, c.shell_kind) for c in found.tool_calls] == [("read", "read"), ("edit", None)]
    assert found.tool_calls[0].path == "src/cart.cs"
    assert [e.path for e in found.edits] == ["src/cart.cs"]


def test_a_tool_class_follows_the_command() -> None:
    log = Log()
    for command in ("go test ./...", "cat a.py", "rg x", "git status", "go vet ./...", "echo x > a", "./run"):
        log.ran("Bash", command=command)
    calls = session(log).tool_calls
    assert [c.class_ for c in calls] == ["test", "read", "search", "shell", "shell", "shell", "shell"]
    assert [c.shell_kind for c in calls] == ["test", "read", "search", "vcs", "build", "write", "run"]


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


def test_an_embedded_subagent_is_a_thread_of_its_own() -> None:
    found = session(with_subagent(Log()))
    assert [(c.name, c.thread, c.status, c.turn) for c in found.tool_calls] == [
        ("Task", MAIN, "ok", 0),
        ("Grep", "a1b2", "ok", 0),
    ]
    assert [(s.thread, s.output_tokens) for s in found.steps] == [(MAIN, 10), ("a1b2", 60)]
    assert [e.thread for e in found.events if e.kind == "meta"] == ["a1b2"]
    assert [t.text for t in found.turns] == ["look around"]
    assert found.model == "claude-opus-4-6"


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


def test_sidechain_records_in_the_main_file_are_no_turns() -> None:
    log = Log(version="1.0.43")
    log.user("look around")
    log.user("Explore the code.", isSidechain=True)
    log.say("I see.", isSidechain="True", message_id="m2")
    log.say("Done.", isSidechain="False", message_id="m3")
    assert turns(log) == [("prompt", "look around")]
    assert [(e.kind, e.thread) for e in session(log).events[1:]] == [
        ("meta", "sidechain"),
        ("text", "sidechain"),
        ("text", MAIN),
    ]


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


def test_a_file_without_an_event_is_no_session() -> None:
    log = Log()
    log.side("summary", summary="Cart", leafUuid="x")
    log.side("file-history-snapshot", messageId="m", snapshot={})
    assert read(log).sessions == []


def test_the_title_a_person_gave_stands_over_others() -> None:
    log = Log()
    log.side("custom-title", customTitle="Mine", sessionId=SESSION)
    log.side("ai-title", aiTitle="Guess", sessionId=SESSION)
    log.user("go")
    assert session(log).title == "Mine"


def test_a_summary_is_the_title_only_of_the_session_it_is_about() -> None:
    log = Log()
    log.side("summary", summary="Another session", leafUuid="elsewhere")
    log.user("go")
    assert session(log).title is None
    log.side("summary", summary="This session", leafUuid="01-0001")
    assert session(log).title == "This session"
