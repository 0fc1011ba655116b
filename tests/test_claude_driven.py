"""Sessions that a program drives: whose the prompts are, and what Claude Code itself says that a session used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import claude_code
from agentsignals.model import Step, prices
from tests.claude import SESSION, Log, given, read, session, turns

NATIVE = Path(__file__).parents[2] / "shared/corpus/native/claude-agent-sdk/sdk-ts"
OPUS, HAIKU = "claude-opus-4-6", "claude-haiku-4-5"
AGENT = {"entrypoint": "sdk-ts", "promptSource": "sdk"}


def used(*figures: int, usd: float = 0.0) -> dict[str, Any]:
    names = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    return {**dict(zip(names, figures, strict=True)), "costUSD": usd}


def of_a_call(*states: dict[str, Any] | str, more: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
    """The closing steps of a session of one call of 3, 10, 900 and 40 tokens, with these states behind it."""
    log = Log()
    log.user("hello", **AGENT)
    log.say("hi", **(more or {}))
    for state in states:
        log.side("cost-state", sessionId=SESSION, totalCostUSD=1.0, modelUsage=state)
    return [of(step) for step in session(log).steps[1:]]


def of(step: Step) -> tuple[Any, ...]:
    tokens = (step.input_tokens, step.output_tokens, step.cache_read_tokens or 0, step.cache_write_tokens or 0)
    assert step.stop_reason == "session_total"
    return step.model, *tokens, step.cost_usd


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        (AGENT, "scripted_prompt"),
        ({"entrypoint": "sdk-cli", "promptSource": "sdk"}, "scripted_prompt"),
        ({"entrypoint": "sdk-py", "promptSource": "sdk"}, "scripted_prompt"),
        ({"entrypoint": "claude-desktop", "promptSource": "sdk"}, "prompt"),  # a person types in the desktop program
        ({"entrypoint": "claude-vscode", "promptSource": "sdk"}, "prompt"),
        ({"entrypoint": "cli", "promptSource": "typed"}, "prompt"),
        ({"entrypoint": "sdk-ts", "promptSource": "typed"}, "prompt"),
        ({"entrypoint": "sdk-ts"}, "prompt"),  # older versions do not say who asked
        ({"entrypoint": ["sdk-ts"], "promptSource": "sdk"}, "prompt"),
    ],
)
def test_who_asked(facts: dict[str, Any], kind: str) -> None:
    log = Log()
    log.user("run the tests", **facts)
    assert turns(log) == [(kind, "run the tests")]


def test_what_a_script_says_later_is_a_scripts_too() -> None:
    log = Log()
    log.user("run the tests", **AGENT)
    log.say("at it")
    log.queue("enqueue", "all of them")
    log.queue("remove")
    log.user("<command-name>/review</command-name>\n<command-args>it</command-args>", **AGENT)
    assert [kind for kind, _ in turns(log)] == ["scripted_prompt"] * 3
    assert not any(turn.is_prompt for turn in session(log).turns)


@pytest.mark.parametrize(
    ("states", "closing"),
    [
        ([], []),
        ([{OPUS: used(3, 10, 900, 40)}], []),
        ([{OPUS: used(3, 25, 900, 40, usd=0.5)}], [(OPUS, 0, 15, 0, 0, None)]),  # its dollars are of all calls
        ([{OPUS: used(3, 10, 900, 40), HAIKU: used(7, 2, 0, 0, usd=0.25)}], [(HAIKU, 7, 2, 0, 0, 0.25)]),
        ([{f"{OPUS}[1m]": used(3, 10, 900, 40)}], []),
        ([{f"{OPUS}-20260115": used(3, 10, 900, 40)}], []),
        ([{HAIKU: used(7, 2, 0, 0, usd=0.25)}], []),  # the call's model is called otherwise there
        ([{OPUS: used(1, 1, 1, 1)}], []),  # as it stood before the last run, which did not end
        # A resumed session goes on from its totals.
        ([{OPUS: used(3, 10, 900, 40)}, {OPUS: used(3, 11, 900, 40)}], [(OPUS, 0, 1, 0, 0, None)]),
        ([{OPUS: {"inputTokens": None, "costUSD": None}}], []),
        (["none"], []),
        ([{OPUS: []}], []),
    ],
)  # fmt: skip
def test_what_no_message_is_by(states: list[Any], closing: list[tuple[Any, ...]]) -> None:
    assert of_a_call(*states) == closing


def test_a_forks_totals_go_on_from_the_others() -> None:
    first, fork = Log(), Log("6f1d2c3b-0000-4000-8000-000000000002")
    first.user("hello", **AGENT)
    first.say("hi")
    fork.lines = [line.replace(SESSION, fork.session) for line in first.lines]
    fork.wait(60)
    fork.user("again", **AGENT)
    fork.say("hi again", message_id="msg_2")
    fork.side("cost-state", sessionId=fork.session, modelUsage={OPUS: used(6, 20, 1800, 80)})
    assert [[s.output_tokens for s in made.steps] for made in read(first, fork).sessions] == [[10], [10]]
    assert [[s.output_tokens for s in made.steps] for made in read(fork).sessions] == [[10, 10]]


def test_a_subagent_of_which_the_totals_are_logged_is_not_counted_beside_them() -> None:
    log = Log()
    log.user("hello", **AGENT)
    told = {"agentId": "a1", "status": "completed", "totalToolUseCount": 4, "totalTokens": 900, "totalDurationMs": 5}
    log.ran("Task", "done", told=told, prompt="look")
    log.side("cost-state", sessionId=SESSION, modelUsage={OPUS: used(3, 10, 900, 40), HAIKU: used(800, 100, 0, 0)})
    _, of_agent, closing = session(log).steps
    assert (of_agent.summed_calls, of_agent.summed_tokens, of_agent.unpriced) == (4, None, None)
    assert of(closing)[:3] == (HAIKU, 800, 100)


@pytest.mark.skipif(not NATIVE.is_dir(), reason="no corpus at ../shared/corpus/native/claude-agent-sdk")
def test_list_prices_come_to_what_claude_code_counted() -> None:
    """0.0043575 dollars, its own `cost-state` says, of 5 calls."""
    (path,) = NATIVE.iterdir()
    (made,) = claude_code.FORMAT.read([given(path.read_bytes())]).sessions
    prices.apply(made)
    assert [turn.kind for turn in made.turns] == ["scripted_prompt"]
    assert len(made.steps) == 5
    assert sum(step.cost_usd or 0 for step in made.steps) == pytest.approx(0.0043575)
    assert not [event for event in made.events if event.kind == "unknown"]
    assert [(call.name, call.status) for call in made.tool_calls] == [
        ("Write", "ok"), ("Read", "ok"), ("Edit", "ok"), ("Bash", "error"),
    ]  # fmt: skip
