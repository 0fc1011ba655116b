"""How the agent puts it: hedges, corrections of itself, assumptions; and the traps of each list."""

from __future__ import annotations

import pytest

from tests.build import call, say, think, user, view
from tests.signals.ask import absent, detail, evidence, lines, value

RATE, CURVE = "user.agent_hedging_rate", "user.agent_hedging_curve[]"
CORRECTIONS = "reasoning.self_correction_count"
ASSUMED = "anticipation.assumption_count"

HEDGES = (
    "I think this is it.",
    "I suspect a race.",
    "This might be a race.",
    "It may still fail on Windows.",
    "It's probably the cache.",
    "Perhaps the lock is stale.",
    "The cause is likely a stale lock.",
    "I'm not sure why.",
    "I’m not entirely certain that it helps.",
    "It seems to be unused.",
    "There appears to be no caller.",
    "My guess is the proxy.",
    "That is hard to say.",
    "One ` here\nI think it is odd, another ` there.",
    "One ` here, " + "then much else, " * 14 + "and I think another ` there.",
)
NO_HEDGES = (
    "I will think about it.",
    "The test passes.",
    "One might as well read it.",
    "Call maybeSingle() and maybe_retry there.",
    "Make sure that it is clear.",
    "If you're not sure, ask.",
    "You may use either flag.",
    "It could be faster.",
    "The likely candidates are below.",
    "It appears in the list.",
    "Run `probably --might be` first.",
    'The person said "I think it might be wrong".',
    "> probably\n\nFixed.",
    "```\nI think maybe\n```\nFixed.",
    "```python\n# probably, perhaps",
)
SELF_CORRECTIONS = (
    "Actually, that won't work because the lock is held.",
    "Wait, that's the old path.",
    "Hmm, wait - the test reads both.",
    "But wait, it was renamed.",
    "I made a mistake in the edit.",
    "Let me reconsider.",
    "Let me undo that.",
    "No, that's wrong.",
    "You're right, I missed that case.",
    "Hold on — there are two.",
    "The plan fails. On second thought, skip it.",
    "My earlier claim that it is unused was wrong.",
    "That didn't work.",
    "Hold on — wait, that's the old path.",
)
NO_SELF_CORRECTIONS = (
    "This actually works.",
    "Does it actually run? Yes.",
    "Wait for CI and then merge.",
    "Wait until the build is green.",
    "I'll wait, the waitlist is long.",
    "The correct approach is a lock.",
    "No, this is not caused by the flag.",
    "No problem, I'll do it.",
    "Let me check whether it runs.",
    "Let me undo the linter's change.",
    "I was told so.",
    "The undo button is there. Revert support too.",
    "You're right about the path.",
    "Run `wait, no`.",
    '"Actually, no." is what it prints.',
    "```\nWait, that's wrong.\n```",
)
ASSUMING = (
    "I'll assume Python 3.11.",
    "The user probably wants a table.",
    "Presumably they mean the CLI.",
    "It likely refers to the parser.",
    "It seems like the user wants a fix.",
    "I'm interpreting it as a rename.",
    "Assuming main is the target, go on.",
)
NO_ASSUMING = (
    "I'll check instead of assuming.",
    "assuming the function returns a list",
    "The user wants a table.",
    "That is likely the cause.",
    "Never assume anything. Look, not assuming.",
    "`I'll assume`",
)


def found(path: str, text: str) -> int:
    """How many phrases of a signal the agent's one message holds."""
    one = view(user("go"), say(text))
    return detail(one, path)["hedges"] if path == RATE else value(one, path)


@pytest.mark.parametrize("text", HEDGES)
def test_a_hedge_counts_once(text: str) -> None:
    assert found(RATE, text) == 1


@pytest.mark.parametrize("text", NO_HEDGES)
def test_what_only_looks_like_a_hedge_does_not_count(text: str) -> None:
    assert found(RATE, "Done.\n" + text) == 0


@pytest.mark.parametrize("text", SELF_CORRECTIONS)
def test_a_correction_of_itself_counts_once(text: str) -> None:
    assert found(CORRECTIONS, text) == 1


@pytest.mark.parametrize("text", NO_SELF_CORRECTIONS)
def test_what_only_looks_like_a_correction_does_not_count(text: str) -> None:
    assert found(CORRECTIONS, text) == 0


@pytest.mark.parametrize("text", ASSUMING)
def test_an_assumption_counts_once(text: str) -> None:
    assert found(ASSUMED, text) == 1


@pytest.mark.parametrize("text", NO_ASSUMING)
def test_what_only_looks_like_an_assumption_does_not_count(text: str) -> None:
    assert found(ASSUMED, text) == 0


def test_the_hedging_rate_is_per_hundred_tokens_of_prose() -> None:
    one = view(
        user("go"),
        think("I think maybe perhaps"),
        say("I think so. `perhaps` one two three four five"),
        say("perhaps", thread="agent-1"),
    )
    assert value(one, RATE) == pytest.approx(100 * 1 / 9)
    assert detail(one, RATE)["den"] == 9
    assert detail(one, RATE)["seed_literal"] == pytest.approx(100 / 9)
    assert lines(one, RATE) == [3]
    assert evidence(one, RATE).items[0].excerpt.startswith("hedge: “I think”")


def test_the_curve_has_the_rate_of_each_response_and_null_where_nothing_was_said() -> None:
    one = view(
        user("go"), say("Probably so."), call("Read", path="a.py"), user("more"), user("and?"), say("word " * 30)
    )
    assert value(one, CURVE) == [pytest.approx(100 / 3), None, 0.0]
    assert detail(one, CURVE) == {"low_n": [0]}


def test_hedges_do_not_reach_from_one_message_into_the_next() -> None:
    one = view(user("go"), say("Then I"), say("think not"))
    assert value(one, RATE) == 0.0


def test_without_words_there_is_no_hedging_rate() -> None:
    assert absent(view(user("go"), call("Read", path="a.py")), RATE) == ("not_applicable", "no_visible_text")
    assert absent(view(user("go"), say("```\nx = 1\n```")), RATE) == ("not_applicable", "no_visible_text")


def test_an_agent_that_speaks_another_language_can_not_be_measured() -> None:
    german = view(user("los"), say("Ich habe die Datei geändert und die Tests laufen jetzt wieder, aber nicht alle."))
    for path in (RATE, CURVE, CORRECTIONS, ASSUMED):
        assert absent(german, path) == ("not_computable", "language: de")
    assert absent(view(user("go"), say("テストは通りました。")), RATE) == ("not_computable", "language: ja")


def test_self_corrections_are_told_apart_by_thinking_and_text_and_count_once_a_sentence() -> None:
    one = view(
        user("go"), think("Wait, no, actually, that's wrong. Actually, it is fine."), say("I was wrong."), say("Done.")
    )
    assert value(one, CORRECTIONS) == 3
    assert detail(one, CORRECTIONS) == {"thinking": 2, "text": 1, "seed_literal": 2}
    assert lines(one, CORRECTIONS) == [2, 2, 3]


def test_no_agent_text_has_no_self_corrections() -> None:
    assert value(view(user("go")), CORRECTIONS) == 0


def test_where_thinking_is_never_recorded_self_corrections_are_unknown() -> None:
    one = view(user("go"), say("I was wrong."))
    one.session.conventions = ["thinking_not_logged"]
    assert absent(one, CORRECTIONS) == ("missing_field", "format_records_no_thinking")


def test_assumptions_are_looked_for_in_the_first_thinking_block_only() -> None:
    one = view(
        user("go"),
        say("Presumably."),
        think("I'll assume yes."),
        think("I'll assume no."),
        user("x"),
        think("Assuming."),
    )
    assert (value(one, ASSUMED), lines(one, ASSUMED)) == (1, [3])
    assert detail(one, ASSUMED) == {"block": "thinking", "seed_literal": 1}


def test_an_agent_that_said_nothing_assumed_nothing() -> None:
    one = view(user("go"))
    assert (value(one, ASSUMED), detail(one, ASSUMED)) == (0, {"empty": True})


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "`" * 60_000,
        "``` " * 15_000,
        '"' * 60_000,
        "\n>" * 30_000,
        "I think " * 7_500,
        "wait, " * 10_000,
        "what " * 12_000 + "?",
        "?" * 60_000,
        "no " * 20_000 + "that's not right",
        " " * 60_000,
        "\n" * 60_000,
    ],
)
def test_hostile_text_costs_no_more_than_its_length(text: str) -> None:
    one = view(user("go"), think(text), say(text))
    assert value(one, CORRECTIONS) >= 0
    assert value(one, "user.confirmation_requests") >= 0
    assert value(one, "loop.marker_score") >= 0
