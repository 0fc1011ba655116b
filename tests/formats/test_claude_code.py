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
from agentsignals.model import MAIN, Edit, Session
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


@settings(max_examples=100, deadline=None)
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


def test_a_huge_original_and_odd_neighbours_are_not_read() -> None:
    told = {
        "originalFile": "x" * 100_000,
        "userModified": False,
        "gitDiff": {"a": [1]},
        "structuredPatch": [patch(1, 1, "+a")],
    }
    assert lines(edit_of(told)) == [(1, 1, 1, 0, 1)]


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


OTHER = "6f1d2c3b-0000-4000-8000-000000000002"


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


def fork(at: int) -> tuple[Log, Log]:
    """A session, and one that was resumed from its first records under an id of its own."""
    first = long_log()
    second = Log(OTHER, "fork")
    second.lines = [line.replace(SESSION, OTHER) for line in first.lines[:at]]
    second.wait(3600)
    second.user("another way")
    second.say("so be it", message_id="msg_fork")
    return first, second


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
