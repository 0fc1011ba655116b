"""Every model call behind a message is billed: advisors, compactions, fallbacks, in subagents too."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.model import Session, prices
from agentsignals.views.usage import cost_of, unpriced_parts
from tests.claude import Log, read

OPUS, SONNET = "claude-opus-4-8", "claude-sonnet-4-5"
LIST = {OPUS: (5, 25), SONNET: (3, 15)}
_NAMES = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def usd(model: str, given: int, out: int) -> float:
    return (given * LIST[model][0] + out * LIST[model][1]) / 1e6


def iteration(kind: str, given: int, out: int, **more: Any) -> dict[str, Any]:
    return {"type": kind, **dict(zip(_NAMES, (given, out, 0, 0), strict=True)), **more}


def session(totals: tuple[int, int], iterations: Any, *, times: int = 1, **more: Any) -> Session:
    """A session of one message, logged on so many lines."""
    log = Log()
    log.user("Go")
    usage = {**dict(zip(_NAMES, (*totals, 0, 0), strict=True)), "iterations": iterations}
    block = {"type": "text", "text": "Done."}
    message = {"model": SONNET, "id": "msg_1", "type": "message", "role": "assistant", "content": [block]}
    for _ in range(times):
        log.record("assistant", message={**message, "stop_reason": "end_turn", "usage": usage}, **more)
    (made,) = read(log).sessions
    prices.apply(made)
    return made


OWN = iteration("message", 3000, 400)


@pytest.mark.parametrize(
    ("totals", "iterations", "right"),
    [
        ((3000, 400), [OWN], usd(SONNET, 3000, 400)),
        ((3000, 400), None, usd(SONNET, 3000, 400)),
        ((3000, 400), [], usd(SONNET, 3000, 400)),
        ((3000, 400), [iteration("message", 1000, 100), iteration("message", 2000, 300)], usd(SONNET, 3000, 400)),
        (
            (3000, 400),
            [iteration("advisor_message", 60_000, 1500, model=OPUS), OWN],
            usd(SONNET, 3000, 400) + usd(OPUS, 60_000, 1500),
        ),
        (
            (3000, 400),
            [iteration("compaction", 180_000, 3500), iteration("compaction", 170_000, 2500), OWN],
            usd(SONNET, 353_000, 6400),
        ),
        (
            (3000, 400),
            [OWN, iteration("fallback_message", 3000, 900, model=OPUS)],
            usd(SONNET, 3000, 400) + usd(OPUS, 3000, 900),
        ),
        (  # figures that hold the fallback: not billed again, and at its own price
            (6000, 1300),
            [OWN, iteration("fallback_message", 3000, 900, model=OPUS)],
            usd(SONNET, 3000, 400) + usd(OPUS, 3000, 900),
        ),
        ((3000, 900), [iteration("fallback_message", 3000, 900, model=OPUS)], usd(OPUS, 3000, 900)),
    ],
)
@pytest.mark.parametrize("more", [{}, {"isSidechain": True, "agentId": "a1"}], ids=["main", "subagent"])
@pytest.mark.parametrize("times", [1, 3])
def test_every_iteration_is_billed_once_at_its_models_price(
    totals: tuple[int, int], iterations: Any, right: float, more: dict[str, Any], times: int
) -> None:
    made = session(totals, iterations, times=times, **more)
    assert cost_of(made.steps) == pytest.approx(right)
    assert unpriced_parts(made.steps) is None
    assert sum(not step.is_beside for step in made.steps) == 1


@pytest.mark.parametrize(
    ("iterations", "lacks"),
    [
        ([OWN, iteration("arbiter_message", 60_000, 1500, model="claude-next-1")], "arbiter_message calls"),
        ([OWN, iteration("", 1, 1)], "unnamed calls"),
        (
            [OWN, iteration("advisor_message", 60_000, 1500, model="claude-next-1")],
            "advisor_message calls of claude-next-1",
        ),
        ({"message": 3}, "model calls behind a message, in an unknown shape"),
        ("many", "model calls behind a message, in an unknown shape"),
    ],
)
def test_what_is_not_known_makes_the_cost_a_lower_bound_that_says_so(iterations: Any, lacks: str) -> None:
    made = session((3000, 400), iterations)
    assert cost_of(made.steps) == pytest.approx(usd(SONNET, 3000, 400))
    assert unpriced_parts(made.steps) == lacks


def test_each_iteration_has_the_price_of_its_own_prompt_length() -> None:
    made = session((300_000, 0), [iteration("message", 150_000, 0), iteration("message", 150_000, 0)])
    assert cost_of(made.steps) == pytest.approx(usd(SONNET, 300_000, 0))  # no prompt of over 200,000 tokens
    assert [step.input_tokens for step in made.steps] == [150_000, 150_000]


def test_an_hours_cache_of_an_iteration_costs_its_own_price() -> None:
    written = iteration("compaction", 0, 0, cache_creation={"ephemeral_1h_input_tokens": 1000})
    made = session((3000, 400), [{**written, "cache_creation_input_tokens": 1500}, OWN])
    assert cost_of(made.steps) == pytest.approx(usd(SONNET, 3000, 400) + (1000 * 6 + 500 * 3.75) / 1e6)
