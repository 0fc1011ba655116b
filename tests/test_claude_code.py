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
from agentsignals.model import MAIN, Session, Step
from tests.claude import SESSION, Log, given, kinds, micros, session

FILES = Path(__file__).parent / "formats" / "claude-code"
CORPUS = Path(__file__).parents[2] / "shared" / "corpus" / "sessions" / "claude-code"


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
