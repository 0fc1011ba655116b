"""What the person went back from, by one rule for all agents: billed, on the thread `abandoned`, none of it a turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentsignals.formats import factory_droid, opencode
from agentsignals.formats.conversation import returns
from agentsignals.model import ABANDONED, MAIN, Session
from agentsignals.signals.user.turns import rewinds
from agentsignals.views.session import Evidence, SessionView
from tests import claude
from tests.claude import Log
from tests.formats import codex_rows as codex
from tests.formats import copilot_events as copilot
from tests.formats import test_cline as cline
from tests.formats import test_opencode as opencode_export
from tests.formats.reading import given, lines, read_one

Written = Callable[[Log], object]


def asks(log: Log, prompt: str, **facts: Any) -> None:
    """A prompt, an edit, and an answer."""
    log.user(prompt, **facts)
    log.ran("Edit", file_path="/work/shop/a.py", old_string="a", new_string="b")
    log.say("ok", message_id=f"msg_{log.count}")


def to_before_the_last(log: Log) -> None:
    asks(log, "one")
    place = log.last
    asks(log, "left")
    log.last = place
    asks(log, "two")


def over_two_prompts(log: Log) -> None:
    asks(log, "one")
    place = log.last
    asks(log, "left")
    asks(log, "left, too")
    log.last = place
    asks(log, "two")


def to_the_first(log: Log) -> None:
    asks(log, "left")
    log.last = None
    asks(log, "one")


def three_times_at_one_place(log: Log) -> None:
    asks(log, "one")
    place = log.last
    for prompt in ("left", "left again", "two"):
        log.last = place
        asks(log, prompt)


def within_what_was_left(log: Log) -> None:
    asks(log, "one")
    place = log.last
    asks(log, "left")
    inner = log.last
    asks(log, "left within")
    log.last = inner
    asks(log, "left within, again")
    log.last = place
    asks(log, "two")


def and_back_to_what_was_left(log: Log) -> None:
    asks(log, "one")
    place = log.last
    asks(log, "two")
    end = log.last
    log.last = place
    asks(log, "left")
    log.last = end
    asks(log, "three")


def before_a_compaction(log: Log) -> None:
    to_before_the_last(log)
    before, log.last = log.last, None
    log.record("system", subtype="compact_boundary", logicalParentUuid=before, compactMetadata={"trigger": "auto"})
    log.user("This session is being continued from a previous conversation. All is well.", isCompactSummary=True)
    asks(log, "three")


def with_a_command(log: Log) -> None:
    asks(log, "one")
    place = log.last
    asks(log, "left")
    log.last = place
    asks(log, "<command-name>/review</command-name><command-args>a.py</command-args>")


def a_prompt_that_was_stopped_at_once(log: Log) -> None:
    asks(log, "one")
    place = log.last
    log.user("left")
    log.user("[Request interrupted by user]")
    log.last = place
    asks(log, "two")


def and_nothing_more(log: Log) -> None:
    asks(log, "one")
    place = log.last
    asks(log, "left")
    log.side("last-prompt", lastPrompt="one", leafUuid=place, sessionId=log.session)


def and_says_so(log: Log) -> None:
    asks(log, "one")
    log.side("last-prompt", lastPrompt="one", leafUuid=log.last, sessionId=log.session)
    place = log.last
    asks(log, "left")
    log.side("last-prompt", lastPrompt="one", leafUuid=place, explicit=True, sessionId=log.session)


@pytest.mark.parametrize(
    ("written", "standing", "left", "times"),
    [
        (to_before_the_last, ["one", "two"], 2, 1),
        (over_two_prompts, ["one", "two"], 4, 1),
        (to_the_first, ["one"], 2, 1),
        (three_times_at_one_place, ["one", "two"], 4, 2),
        (within_what_was_left, ["one", "two"], 6, 2),
        (and_back_to_what_was_left, ["one", "two", "three"], 2, 2),
        (before_a_compaction, ["one", "two", "three"], 2, 1),
        (with_a_command, ["one", "/review a.py"], 2, 1),
        (a_prompt_that_was_stopped_at_once, ["one", "two"], 0, 1),
        (and_nothing_more, ["one"], 2, 1),
        (and_says_so, ["one"], 2, 1),
    ],
)
def test_claude_code_rewinds(written: Written, standing: list[str], left: int, times: int) -> None:
    log = Log()
    written(log)
    session = claude.session(log)
    assert [turn.text for turn in session.turns] == standing
    assert [turn.turn for turn in session.turns] == list(range(len(standing)))
    assert all(session.events[turn.seq].text == turn.text for turn in session.turns)
    assert sum(step.thread == ABANDONED for step in session.steps) == left
    assert sum(edit.thread == ABANDONED for edit in session.edits) == left // 2
    assert all(step.output_tokens == 10 for step in session.steps), "all of it was paid for"
    rows = [*session.events, *session.steps, *session.tool_calls, *session.edits]
    assert all(row.turn is None for row in rows if row.thread == ABANDONED)
    assert counted(session) == times


def parallel_results(log: Log) -> None:
    log.user("one")
    first = log.call("Bash", "toolu_a", command="ls a")
    second = log.call("Bash", "toolu_b", command="ls b")
    log.last = first
    log.result("a", "toolu_a")
    log.last = second
    log.result("b", "toolu_b")
    asks(log, "two")


def results_that_are_never_followed(log: Log) -> None:
    log.user("one")
    call = log.call("Bash", "toolu_a", command="ls a")
    log.result("a", "toolu_a")
    log.last = call
    log.record("progress", data={"type": "hook_progress"}, toolUseID="toolu_a")
    asks(log, "two")


def retried_answer(log: Log) -> None:
    prompt = log.user("one")
    log.say("half of it", message_id="msg_half")
    log.last = prompt
    log.say("all of it", message_id="msg_all")
    asks(log, "two")


def notification_at_the_same_place(log: Log) -> None:
    asks(log, "one")
    place = log.last
    log.user("<task-notification>\n<task-id>b1</task-id>\n</task-notification>")
    log.last = place
    asks(log, "two")


def typed_while_the_agent_worked(log: Log) -> None:
    log.user("one")
    log.ran("Bash", command="ls")
    place = log.last
    log.user("and be brief")
    log.last = place
    log.say("brief", message_id="msg_brief")
    asks(log, "two")


def a_new_root_after_clear(log: Log) -> None:
    asks(log, "one")
    log.last = None
    log.record("progress", data={"type": "hook_progress", "hookName": "SessionStart:clear"})
    asks(log, "two")


def a_compaction_without_a_boundary(log: Log) -> None:
    asks(log, "one")
    log.last = None
    log.user("This session is being continued from a previous conversation. All is well.", isCompactSummary=True)
    asks(log, "two")


def a_lost_parent(log: Log) -> None:
    asks(log, "one")
    log.last = "gone"
    asks(log, "two")


def a_sidechain_within(log: Log) -> None:
    log.user("one")
    place = log.last
    log.user("look", isSidechain=True)
    log.say("seen", isSidechain=True, message_id="msg_side")
    log.last = place
    log.say("ok", message_id="msg_main")
    asks(log, "two")


def an_attachment_aside(log: Log) -> None:
    asks(log, "one")
    place = log.last
    log.record("attachment", attachment={"type": "hook_success"})
    log.last = place
    asks(log, "two")


def a_marker_that_lags(log: Log) -> None:
    asks(log, "one")
    place = log.last
    log.side("last-prompt", lastPrompt="one", leafUuid=place, explicit=True, sessionId=log.session)
    asks(log, "two")
    log.side("last-prompt", lastPrompt="two", leafUuid=place, sessionId=log.session)


def a_circle(log: Log) -> None:
    log.user("one", parentUuid="x", uuid="x")
    asks(log, "two")


STRAIGHT = [
    (parallel_results, ["one", "two"]),
    (results_that_are_never_followed, ["one", "two"]),
    (retried_answer, ["one", "two"]),
    (notification_at_the_same_place, ["one", "two"]),
    (typed_while_the_agent_worked, ["one", "and be brief", "two"]),
    (a_new_root_after_clear, ["one", "two"]),
    (a_compaction_without_a_boundary, ["one", "two"]),
    (a_lost_parent, ["one", "two"]),
    (a_sidechain_within, ["one", "two"]),
    (an_attachment_aside, ["one", "two"]),
    (a_marker_that_lags, ["one", "two"]),
    (a_circle, ["one", "two"]),
]


@pytest.mark.parametrize(("written", "prompts"), STRAIGHT)
def test_other_branches_of_claude_code_are_no_rewinds(written: Written, prompts: list[str]) -> None:
    log = Log()
    written(log)
    session = claude.session(log)
    assert [turn.text for turn in session.turns] == prompts
    assert not any(event.thread == ABANDONED for event in session.events)
    assert counted(session) == 0


def test_snapshots_of_one_session_are_one_tree() -> None:
    log = Log()
    asks(log, "one")
    place = log.last
    asks(log, "left")
    early = Log()
    early.lines = list(log.lines)
    log.last = place
    asks(log, "two")
    for files in ((early, log), (log, early), (log, log)):
        session = claude.session(*files)
        assert [turn.text for turn in session.turns] == ["one", "two"]
        assert sum(step.thread == ABANDONED for step in session.steps) == 2


def test_codex_rolls_back_user_messages() -> None:
    rows = [codex.meta(), codex.context()]
    for second, text in enumerate(("one", "left", "left, too")):
        rows += [codex.user_item(text), codex.prompt(text, 10 * second), codex.says(f"to {text}")]
    rows += [codex.event("thread_rolled_back", 40, num_turns=2), codex.prompt("two", 50), codex.says("to two")]
    session = codex.one(*rows)
    assert [turn.text for turn in session.turns] == ["one", "two"]
    assert [step.thread for step in session.steps] == [MAIN, ABANDONED, ABANDONED, MAIN]
    assert [step.turn for step in session.steps] == [0, None, None, 1]
    assert counted(session) == 1


@pytest.mark.parametrize(("n", "standing"), [(0, ["one"]), (1, []), (9, []), (None, ["one"]), (-1, ["one"])])
def test_codex_rolls_back_no_more_than_there_is(n: object, standing: list[str]) -> None:
    session = codex.one(
        codex.meta(), codex.context(), codex.prompt("one"), codex.says(), codex.event("thread_rolled_back", num_turns=n)
    )
    assert [turn.text for turn in session.turns] == standing


def test_copilot_rewinds_from_the_first_event_that_was_removed() -> None:
    rows = [copilot.start(), copilot.user("one"), copilot.says("a"), copilot.user("left"), copilot.says("b")]
    rows += [copilot.event("session.snapshot_rewind", upToEventId="e3", eventsRemoved=2), copilot.user("two")]
    session = copilot.one(*({**row, "id": f"e{n}"} for n, row in enumerate(rows)))
    assert [turn.text for turn in session.turns] == ["one", "two"]
    assert [step.thread for step in session.steps] == [MAIN, ABANDONED]
    assert counted(session) == 1


@pytest.mark.parametrize(
    ("revert", "standing", "threads"),
    [
        ({"messageID": "msg_u2"}, ["one"], [MAIN, ABANDONED]),
        ({"messageID": "msg_30", "partID": "prt_2"}, ["one", "left"], [MAIN, MAIN]),
        ({"messageID": "msg_gone"}, ["one", "left"], [MAIN, MAIN]),
        (None, ["one", "left"], [MAIN, MAIN]),
    ],
)
def test_opencode_undoes_from_a_message_on(revert: Any, standing: list[str], threads: list[str]) -> None:
    text = opencode_export.text
    messages = [
        opencode_export.user(text("one"), id="msg_u1"),
        opencode_export.agent(text("a", id="prt_0"), at=10),
        opencode_export.user(text("left"), at=20, id="msg_u2"),
        opencode_export.agent(text("b", id="prt_1"), text("c", id="prt_2"), at=30),
    ]
    session = opencode_export.read(*messages, revert=revert)
    assert [turn.text for turn in session.turns] == standing
    assert [step.thread for step in session.steps] == threads
    by_thread = {event.text: event.thread for event in session.events if event.kind == "text"}
    assert by_thread["b"] == threads[1] and by_thread["a"] == MAIN
    assert by_thread["c"] == (ABANDONED if revert and revert["messageID"] != "msg_gone" else MAIN)
    assert sum(event.kind == "rewind" for event in session.events) == (revert is not None and by_thread["c"] != MAIN)


def droid(*rows: tuple[str, str | None, str]) -> Session:
    records: list[dict[str, Any]] = [{"type": "session_start", "id": "s1", "title": "t", "owner": "o", "cwd": "/w"}]
    for id_, parent, text in rows:
        message = {"role": "user" if id_[0] == "u" else "assistant", "content": [{"type": "text", "text": text}]}
        named = {} if parent is None else {"parentId": parent}
        records.append({"type": "message", "id": id_, "timestamp": "2026-03-01T10:00:00Z", "message": message, **named})
    return read_one(factory_droid.FORMAT, given(lines(*records), "factory-droid"))


@pytest.mark.parametrize(
    ("rows", "standing", "left", "times"),
    [
        ([("u1", None, "one"), ("a1", "u1", "ok"), ("u2", "a1", "two"), ("a2", "u2", "ok")], ["one", "two"], 0, 0),
        ([("u1", None, "one"), ("a1", None, "ok"), ("u2", None, "two"), ("a2", "u2", "ok")], ["one", "two"], 0, 0),
        (
            [("u1", None, "one"), ("a1", "u1", "ok"), ("u2", "a1", "left"), ("a2", "u2", "ok"), ("u3", "a1", "two")],
            ["one", "two"],
            1,
            1,
        ),
        ([("u1", None, "left"), ("a1", "u1", "ok"), ("u2", None, "one"), ("a2", "u2", "ok")], ["one"], 1, 1),
    ],
)
def test_droid_branches_by_parent(rows: Any, standing: list[str], left: int, times: int) -> None:
    session = droid(*rows)
    assert [turn.text for turn in session.turns] == standing
    assert sum(step.thread == ABANDONED for step in session.steps) == left
    assert sum(event.kind == "rewind" for event in session.events) == times


def test_cline_keeps_the_cost_of_what_was_deleted() -> None:
    removed = '{"tokensIn": 50, "tokensOut": 5, "cost": 0.25}'
    rows = [cline.say("task", "one"), cline.request(10, tokensIn=9, tokensOut=2), cline.say("text", "ok", 20)]
    session = cline.task([*rows, cline.say("deleted_api_reqs", removed, 30)])
    (step,) = [step for step in session.steps if step.thread == ABANDONED]
    assert (step.cost_usd, step.turn, counted(session)) == (0.25, None, 1)


@pytest.mark.parametrize(
    ("parents", "prompts", "found"),
    [
        ([-1, 0, 1, 2], [0, 2], []),
        ([-1, 0, 1, 2, 1, 4], [0, 2, 4], [4]),
        ([-1, 0, -1], [0, 2], [2]),
        ([-1, 0, 0, 0], [0, 1, 2, 3], [2, 3]),
        ([-1, 0, 0, 2], [0, 3], []),
        ([5, 0], [0, 1], []),
    ],
)
def test_a_prompt_returns_where_it_follows_on_another_than_the_last(
    parents: list[int], prompts: list[int], found: list[int]
) -> None:
    assert sorted(returns(parents, [n in prompts for n in range(len(parents))])) == found


def test_no_rewind_is_known_where_the_log_keeps_none() -> None:
    session = read_one(opencode.FORMAT, {"info": {"id": "ses_1"}, "messages": [opencode_export.user({"type": "x"})]})
    value = rewinds(SessionView(session), Evidence())
    assert not isinstance(value, int) and value.reason == "missing_field"


def counted(session: Session) -> object:
    """The signal's value. The conventions are set where the session's format is looked up by name."""
    return rewinds(SessionView(session), Evidence())
