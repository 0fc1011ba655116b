"""mini-SWE-agent trajectories: one command a reply, its return code below; usage and times since version 2."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.formats import by_name
from agentsignals.model import Attempt, Session
from tests.formats.reading import given

OPENING = [{"role": "system", "content": "```mswea_bash_command\nx\n```"}, {"role": "user", "content": "Fix it."}]
DIFF = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"


def read(content: Any, path: str = "/runs/a/task.traj.json") -> tuple[Session, Attempt]:
    reading = by_name("mini-swe-agent").read([given(content, "mini-swe-agent", path)])
    (session,), (part,) = reading.sessions, reading.attempts
    return session, part


def reply(command: str, fence: str = "mswea_bash_command", **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": f"THOUGHT: so.\n\n```{fence}\n{command}\n```", **more}


def answer(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **more}


def told(code: int, output: str) -> dict[str, Any]:
    return answer(f"<returncode>{code}</returncode>\n<output>\n{output}</output>")


def document(messages: list[dict[str, Any]], **info: Any) -> dict[str, Any]:
    return {"info": info, "messages": OPENING + messages, "trajectory_format": "mini-swe-agent-1.1"}


def noted(command: str, id_: str = "c1", **more: Any) -> dict[str, Any]:
    extra = {"actions": [{"command": command, "tool_call_id": id_}], **more}
    return {"role": "assistant", "content": "So.", "extra": extra}


@pytest.mark.parametrize(
    ("given", "status", "error", "code", "output"),
    [
        (told(0, "a\n"), "ok", None, 0, "a"),
        (told(1, "cat: a: No such file or directory\n"), "error", "not_found", 1, "cat: a: No such file or directory"),
        (told(-9, ""), "error", "exit_nonzero", -9, ""),
        (answer("Observation: a"), "ok", None, None, "Observation: a"),
        (answer("The last command <command>cat a</command> timed out and has been killed.\n"), "error", "timeout", None,
         "The last command <command>cat a</command> timed out and has been killed.\n"),
        (answer("Command not executed. The user rejected your command"), "rejected", None, None,
         "Command not executed. The user rejected your command"),
    ],
)  # fmt: skip
def test_the_answer_to_a_command_has_its_return_code(
    given: dict[str, Any], status: str, error: str | None, code: int | None, output: str
) -> None:
    session, _ = read([*OPENING, reply("cat a"), given])
    (call,) = session.tool_calls
    assert (call.status, call.error_class, call.exit_code) == (status, error, code)
    assert session.events[call.result_seq or 0].text == output
    assert [t.text for t in session.turns] == ["Fix it."], "answers come from a user that is none"


FINISH = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git diff"


@pytest.mark.parametrize(
    ("content", "patch", "status"),
    [
        (document([], exit_status="Submitted", submission=DIFF), ["x"], "Submitted"),
        (document([], exit_status="LimitsExceeded", submission=""), [], "LimitsExceeded"),
        (document([{"role": "exit", "content": "", "extra": {"exit_status": "Submitted", "submission": DIFF}}]),
         ["x"], "Submitted"),
        ([*OPENING, reply(FINISH), answer(DIFF)], ["x"], None),
        ([*OPENING, reply("git diff"), answer(DIFF)], None, None),
        ([*OPENING, reply(FINISH), answer("")], None, None),
    ],
)  # fmt: skip
def test_what_was_handed_in(content: Any, patch: list[str] | None, status: str | None) -> None:
    _, part = read(content)
    assert (part.patch if part.patch is None else [f.path for f in part.patch]) == patch
    assert part.exit_status == status


def _served(answered: str, cost: float | None, used: tuple[int, int], **more: Any) -> dict[str, Any]:
    response = {"id": "r", "model": answered, "usage": {"prompt_tokens": used[0], "completion_tokens": used[1]}}
    return {"response": response, **({} if cost is None else {"cost": cost}), **more}


MODEL = {"config": {"model": {"model_name": "acme/coder-1"}}}


def test_a_call_that_could_not_be_parsed_is_billed() -> None:
    unread = answer(
        "No tool call was found.", extra=_served("coder-1", 0.5, (20, 7), model_response="I am done.")
    )  # fmt: skip
    info = {"model_stats": {"instance_cost": 1.5, "api_calls": 2}, **MODEL}
    session, _ = read(document([noted("ls", **_served("coder-1", 1.0, (10, 3))), told(0, "a"), unread], **info))
    assert [(s.input_tokens, s.output_tokens, s.cost_usd) for s in session.steps] == [(10, 3, 1.0), (20, 7, 0.5)]
    assert [(e.kind, e.text) for e in session.events][-2:] == [
        ("text", "I am done."),
        ("meta", "No tool call was found."),
    ]
    assert [s.unpriced for s in session.steps] == [None, None]


def test_an_exit_that_keeps_a_call_is_billed() -> None:
    ended = {
        "role": "exit",
        "content": "",
        "extra": _served("coder-1", None, (20, 7), exit_status="RepeatedFormatError"),
    }
    session, part = read(document([noted("ls", **_served("coder-1", 1.0, (10, 3))), told(0, "a"), ended], **MODEL))
    assert [(s.input_tokens, s.cost_usd) for s in session.steps] == [(10, 1.0), (20, None)]
    assert part.exit_status == "RepeatedFormatError"


@pytest.mark.parametrize(
    ("stats", "costs", "unpriced"),
    [
        ({"instance_cost": 1.0, "api_calls": 1}, [1.0], None),
        ({"instance_cost": 1.75, "api_calls": 3}, [1.0, 0.75], None),
        ({"instance_cost": 1.0, "api_calls": 3}, [1.0], "2 model calls of which only the number is logged"),
        ({}, [1.0], None),
    ],
    ids=["all", "tries thrown away", "calls that were counted and not charged", "no totals"],
)
def test_what_the_totals_hold_beyond_the_log_is_in_the_bill(
    stats: dict[str, Any], costs: list[float], unpriced: str | None
) -> None:
    info = {"model_stats": stats, **MODEL}
    session, _ = read(document([noted("ls", **_served("coder-1", 1.0, (10, 3))), told(0, "a")], **info))
    assert [s.cost_usd for s in session.steps] == costs
    assert session.steps[0].unpriced == unpriced


@pytest.mark.parametrize(
    ("answered", "model"), [("coder-1", "acme/coder-1"), ("coder-1-mini", "coder-1-mini"), ("", "acme/coder-1")]
)
def test_a_call_is_of_the_model_that_served_it(answered: str, model: str) -> None:
    session, _ = read(document([noted("ls", **_served(answered, 1.0, (10, 3)))], **MODEL))
    assert session.steps[0].model == model
