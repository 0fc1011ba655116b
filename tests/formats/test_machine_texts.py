"""Texts that programs write in a person's name, known by their kind, for every agent; a person's stay a person's."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from agentsignals.formats import profiles
from agentsignals.formats.profile import without_skill
from agentsignals.model import Session
from tests import claude
from tests.claude import Log
from tests.formats import codex_rows as codex
from tests.formats import copilot_events as copilot
from tests.formats import pi_entries as pi
from tests.formats import test_cline as cline
from tests.formats import test_opencode as opencode
from tests.quick import each_row

OF_PROGRAMS = [
    # a tag that is named for a notice, around the whole text
    '<mcp-resource-update server="board" uri="board://card/12">\nmoved to Done\n</mcp-resource-update>',
    '<mcp-polling-update type="tool" server="ci">\ngreen\n</mcp-polling-update>',
    '<agent-message from="reviewer">\nPlease look at the second file.\n</agent-message>',
    '<agent_message from="reviewer">look</agent_message>',
    '<cross-session-message from="b2">\nthe schema changed\n</cross-session-message>\n',
    "<coordinator-relay>\nstep two is done\n</coordinator-relay>",
    '<slack-tag-message channel="C1">can you look?</slack-tag-message>',
    "<voice-call-talk>\nhello\n</voice-call-talk>",
    "<fetched-web-content>\n<title>x</title>\n</fetched-web-content>",
    "<task-notification>\n<task-id>b1</task-id>\n</task-notification>",
    "<subagent_notification>{}</subagent_notification>",
    "<background-task-update>half done</background-task-update>",
    "<monitor-event>deploy failed</monitor-event>",
    "<system-reminder>\nbe brief\n</system-reminder>",
    "<user-prompt-submit-hook>be brief</user-prompt-submit-hook>",
    "<session-start-hook>welcome</session-start-hook>",
    '<agent-message from="a">one</agent-message>\n<agent-message from="b">two</agent-message>',
    # a sentence that says who sent it
    'A peer session sent a message while you were working:\n<cross-session-message from="b">x</cross-session-message>',
    'Another Claude session sent a message:\n\n<agent-message from="a">x</agent-message>',
    "The background task has finished:\n<task-notification>\n<status>completed</status>\n</task-notification>",
    '<agent-message from="a">x</agent-message>\n\nIMPORTANT: Your user did not write this.',
    "<task-notification>\n<status>completed</status>\n</task-notification>\nRead the output file to see more: /tmp/x",
    # reports of hooks
    "UserPromptSubmit operation blocked by hook:\n[checks/guard.sh]: no prompts on main\n\nOriginal prompt: go on",
    "PreToolUse:Bash operation stopped by hook:\nno",
    "UserPromptExpansion operation blocked by hook:\n[x]: no",
    "Execution stopped by hook",
    "Prompt was rejected by a hook",
    # what a parent agent hands to a child
    "<!-- pi-herdr-task:task-1 -->\nList the files under src.",
    "<!-- pi-subagent v2 -->\nList the files under src.",
    "<!-- worker-task:17 -->\nList the files.",
    "You are a fresh Pi instance handling one delegated task.\n\nTask: list the files under lib",
    "You are a fresh Pi instance working on a delegated task.\n\nTask: list them",
    "You are an isolated subagent working on one task: list the files",
    "You are a subagent with a delegated job.\nList the files.",
    # a program that drives the agent
    "[[ ## question ## ]]\nwhat is it?",
    # a skill's body, and nothing else
    "Base directory for this skill: /home/me/skills/notes\n\n# Notes\n\nCollect them.",
    "# Notes\n\nCollect them.\n\nBase directory for this skill: /home/me/skills/notes\n",
]
OF_PERSONS = [
    "Why does <mcp-resource-update> show up in my log? Please have a look",
    "<mcp-resource-update> is new, what sends it?",
    "<agent-message> is the tag that our parser must accept; add a test",
    '<agent-message from="a">x</agent-message> should be parsed, add a test',
    '<agent-message from="a">x</agent-message>\nWhat sent this?',
    "<task-notification> keeps coming up, why?",
    "<teammate-message teammate_id='a'>x</teammate-message> is what I see, why?",
    "Another session sent a message to the board that I can't find, look for it",
    "A peer session sent a message: where is it?",
    "The agent printed this:\n<div>nothing</div>",
    "The hook says:\n<error>no</error>",
    "UserPromptSubmit hooks block my prompts since today, find out why",
    "UserPromptSubmit operation blocked by hook is what I get, why?",
    "My prompt was blocked by a hook: which one?",
    "Prompt blocked by hook: why?",
    "Stop",
    "Stop hook fires twice, mend it",
    "You are a fresh pair of eyes: review src/a.py",
    "You are an expert in parsers. Review this task list.",
    "You are an agent that reviews code. Look at src/a.py",
    "You are the new owner of this instance; list what it needs",
    "<!-- keep --> is in the template, remove it",
    "<!-- task list -->\n- [ ] rename the parser",
    "<!-- TODO: agent -->",
    "Task: rename the parser",
    "The line 'Base directory for this skill:' is printed twice, mend it",
    "Base directory for the build is wrong",
    "Base directory: /srv/app\nuse make",
    "<div>Please center this</div>",
    "<user-card>\n<name>x</name>\n</user-card>",
    "<error-message>disk is full</error-message>",
    "<task_instructions>\nrename it\n</task_instructions>",
    "<task_context>a parser</task_context>\n<task_input>x</task_input>",
    "<system-prompt>be brief</system-prompt>",
    "<commit-message>Rename</commit-message>",
    "<agent-message from='a'>never closed",
    "[[ ## ]] is odd",
    "<skill-card>x</skill-card> is printed, why?",
    "<skill-card>\nx\n</skill-card>",
    "Notification settings: move them",
    "",
]  # fmt: skip


@each_row("text", OF_PROGRAMS)
def test_a_program_s_text_is_known_by_its_kind_for_every_agent(text: str) -> None:
    if not without_skill(text)[1]:
        return  # a skill's body is no agent's own text: see below
    assert [p.agent for p in profiles() if p.machine_kind(text.strip()) is None] == []


@each_row("text", OF_PERSONS)
def test_a_person_s_text_about_such_things_stays_a_person_s(text: str) -> None:
    assert [p.agent for p in profiles() if p.machine_kind(text) is not None] == []
    assert without_skill(text) == ("", text)


def of_claude(text: str) -> Session:
    log = Log()
    log.user(text)
    log.say("ok")
    return claude.session(log)


def of_pi(text: str) -> Session:
    return pi.one(pi.header(), pi.entry("a", None, 1, **pi.user(text)), pi.entry("b", "a", 2, **pi.says("ok")))


READERS: dict[str, Callable[[str], Session]] = {
    "claude-code": of_claude,
    "codex": lambda text: codex.one(codex.meta(), codex.context(), codex.prompt(text), codex.says()),
    "copilot-cli": lambda text: copilot.one(copilot.start(), copilot.user(text), copilot.says("a")),
    "opencode": lambda text: opencode.read(opencode.user(opencode.text(text)), opencode.agent(opencode.text("ok"))),
    "cline": lambda text: cline.task([cline.say("task", text), cline.request(10), cline.say("text", "ok", 20)]),
    "pi": of_pi,
}


@each_row("text", OF_PROGRAMS)
@each_row("reader", READERS.values())
def test_no_program_s_text_is_a_turn(reader: Callable[[str], Session], text: str) -> None:
    session = reader(text)
    assert [turn.text for turn in session.turns] == []
    assert any(event.text and text.strip()[:20] in event.text for event in session.events), "it is kept as an event"


@each_row("text", [text for text in OF_PERSONS if text])
@each_row("reader", READERS.values())
def test_every_person_s_text_is_a_turn(reader: Callable[[str], Session], text: str) -> None:
    assert [turn.text for turn in reader(text).turns] == [text]


BODY = "# Notes\n\nCollect what changed.\n\nBase directory for this skill: /home/me/skills/notes\n"


@pytest.mark.parametrize("more", ["", "Relative paths in this skill are relative to this base directory.\n"])
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_skill_s_tag_before_the_words_is_cut_off(reader: Callable[[str], Session], more: str) -> None:
    session = reader(f"<skill_content name='notes'>\nCollect.\n</skill_content>\n{more}write the notes")
    assert [turn.text for turn in session.turns] == [f"{more}write the notes".strip()]


@pytest.mark.parametrize("more", ["", "Relative paths in this skill are relative to this base directory.\n"])
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_skill_s_body_before_the_words_is_cut_off(reader: Callable[[str], Session], more: str) -> None:
    session = reader(f"{BODY}{more}\nwrite the notes for version four")
    assert [turn.text for turn in session.turns] == ["write the notes for version four"]
    assert any(event.kind == "meta" and event.text == (BODY + more).rstrip() for event in session.events)


@pytest.mark.parametrize(
    ("reason", "is_said"),
    [
        (None, True),
        ("absorbed_mid_turn", True),
        ("delivered_to_agent", True),
        ("delivered_as_tool_result", True),
        ("cancelled", False),
        ("cancelled_by_sender", False),
        ("dropped_by_hook", False),
        ("cleared_on_cancel", False),
        ("withdrawn", False),
        (7, True),
    ],
)
def test_a_queued_message_that_was_taken_back_was_not_said(reason: object, is_said: bool) -> None:
    log = Log()
    log.user("one")
    for operation in ("enqueue", "remove"):
        facts = {} if operation == "enqueue" or reason is None else {"reason": reason}
        log.side("queue-operation", operation=operation, content="two", timestamp="2026-03-02T09:00:09.000Z", **facts)
    log.say("ok")
    session = claude.session(log)
    assert [turn.text for turn in session.turns] == (["one", "two"] if is_said else ["one"])
    assert is_said or any("two" in (event.text or "") for event in session.events), json.dumps(reason)


def test_a_peer_s_message_to_claude_code_needs_no_tag() -> None:
    note = "This came from another Claude session — not typed by your user"
    assert (
        of_claude(f"Another Claude session sent a message while you were working:\nthe schema changed\n\n{note}").turns
        == []
    )
    assert len(of_claude("A peer session sent a message: what did it say?\nLook it up.").turns) == 1
