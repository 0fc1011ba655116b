"""Messages typed while the agent works: said once, whichever records tell of them."""

from __future__ import annotations

from tests.claude import Log, kinds, session, turns


def working() -> Log:
    log = Log()
    log.user("go")
    log.say("working")
    return log


def attached(log: Log, text: str, **facts: str) -> None:
    log.record("attachment", attachment={"type": "queued_command", "prompt": text, **facts})


def test_a_removed_message_reached_the_running_turn() -> None:
    log = working()
    log.queue("enqueue", "stop at the tests")
    log.say("still working")
    log.queue("remove")
    assert turns(log)[1:] == [("queued_prompt", "stop at the tests")]
    assert [e.line for e in session(log).events if e.kind == "human_turn"] == [1, 5]


def test_a_dequeued_message_comes_as_a_record_of_its_own() -> None:
    log = working()
    log.queue("enqueue", "now commit")
    log.queue("dequeue")
    log.user("now commit")
    assert turns(log)[1:] == [("prompt", "now commit")]


def test_a_message_pulled_back_into_the_editor_was_not_said() -> None:
    log = working()
    log.queue("enqueue", "amend it")
    log.queue("popAll", "amend it")
    log.queue("enqueue", "squash it")
    log.queue("remove")
    assert turns(log)[1:] == [("queued_prompt", "squash it")]


def test_messages_are_removed_in_the_order_they_were_typed() -> None:
    log = working()
    for text in ("first", "second"):
        log.queue("enqueue", text)
    log.queue("remove")
    log.queue("remove")
    assert turns(log)[1:] == [("queued_prompt", "first"), ("queued_prompt", "second")]


def test_two_removals_in_the_same_millisecond_are_two_messages() -> None:
    log = working()
    log.queue("enqueue", "wait until the")
    log.queue("enqueue", "end")
    log.queue("remove")
    log.lines.append(log.lines[-1])
    assert [t for _, t in turns(log)[1:]] == ["wait until the", "end"]


def test_an_attachment_says_again_what_was_removed() -> None:
    log = working()
    log.queue("enqueue", "squash it")
    log.queue("remove")
    log.record("progress", data={"type": "hook_progress"})
    attached(log, "squash it", commandMode="prompt")
    assert turns(log)[1:] == [("queued_prompt", "squash it")]


def test_an_attachment_before_its_removal_is_said_once_too() -> None:
    log = working()
    log.queue("enqueue", "squash it")
    attached(log, "squash it", commandMode="prompt")
    log.queue("remove")
    assert turns(log)[1:] == [("queued_prompt", "squash it")]


def test_an_attachment_alone_is_a_turn() -> None:
    log = working()
    attached(log, "use tabs", commandMode="prompt")
    assert turns(log)[1:] == [("queued_prompt", "use tabs")]


def test_the_same_message_typed_and_sent_twice_is_said_twice() -> None:
    log = working()
    for _ in range(2):
        log.queue("enqueue", "go on")
        log.queue("remove")
        attached(log, "go on", commandMode="prompt")
        log.say("going on")
    assert turns(log)[1:] == [("queued_prompt", "go on")] * 2


def test_notices_of_background_tasks_are_no_turns_and_told_once() -> None:
    notice = "<task-notification>\n<task-id>b1</task-id>\n</task-notification>"
    log = working()
    log.queue("enqueue", notice)
    log.queue("remove")
    attached(log, notice, commandMode="task-notification")
    attached(log, "b2 is done", commandMode="task-notification")
    assert turns(log)[1:] == []
    assert kinds(log)[2:] == ["notification", "notification"]


def test_a_waiting_notice_does_not_stand_before_the_persons_message() -> None:
    log = working()
    log.queue("enqueue", '{"task_id":"a1","description":"explore","task_type":"local_agent"}')
    log.queue("enqueue", "only the frontend")
    log.queue("remove")
    assert turns(log)[1:] == [("queued_prompt", "only the frontend")]


def test_a_dequeue_without_content_took_the_message_whose_record_follows() -> None:
    log = working()
    log.queue("enqueue", "first")
    log.queue("enqueue", "second")
    log.queue("dequeue")
    log.user("second")
    log.queue("remove")
    assert turns(log)[1:] == [("prompt", "second"), ("queued_prompt", "first")]


def test_a_queued_command_of_the_program_is_no_turn_but_a_path_is_one() -> None:
    log = working()
    for text in ("/model", "/compact now", "/work/shop/a.py is wrong"):
        log.queue("enqueue", text)
        log.queue("remove")
    assert turns(log)[1:] == [("queued_prompt", "/work/shop/a.py is wrong")]
    assert kinds(log)[2:] == ["meta", "meta", "human_turn"]


def test_a_message_that_still_waits_at_the_end_is_kept_but_no_turn() -> None:
    log = working()
    log.queue("enqueue", "and push")
    log.say("done")
    assert turns(log)[1:] == []
    last = session(log).events[-1]
    assert (last.kind, last.text, last.line) == ("meta", "queued, never sent: and push", 3)


def test_operations_without_a_message_are_harmless() -> None:
    log = Log()
    for operation in ("dequeue", "remove", "popAll", "shuffle"):
        log.queue(operation)
    log.queue("enqueue")
    log.user("go")
    assert turns(log) == [("prompt", "go")]
