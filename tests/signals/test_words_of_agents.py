"""What the agent asks: for leave, for a choice, for what it must know; and what is no question to the person."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentsignals.model import Absent
from agentsignals.signals.catalog import measure
from agentsignals.views.session import SessionView
from agentsignals.words import lexicon as agents
from agentsignals.words.lexicon import ASSUMPTIONS, SEED_ASSUMPTIONS, Phrases, Prose, words_said
from agentsignals.words.lexicon import HEDGES as HEDGES_EXT
from agentsignals.words.lexicon import SELF_CORRECTIONS as SELF_CORRECTIONS_EXT
from tests.build import Part, call, say, think, user, view
from tests.quick import each_row
from tests.signals.ask import Case, absent, detail, evidence, lines, value

CONFIRM = "user.confirmation_requests"
SOUGHT = "anticipation.clarification_sought"
STOP = "chat.agent_clarification_stop"
EDIT = call("Edit", path="a.py")
READ = call("Read", path="a.py")


def test_a_message_asks_for_leave_once_and_tools_count_too() -> None:
    one = view(
        user("go"),
        say("Should I fix it?", "m1"),
        say("Shall I commit it?", "m1"),
        say("Should I go on?", "m2"),
        call("ExitPlanMode", plan="1. Fix"),
        call("AskUserQuestion", questions=[{"question": "Should I push?"}, {"question": "Why?"}]),
        call("AskUserQuestion", questions=[{"question": "Which branch do you want?"}]),
        call("AskUserQuestion", questions="cut off"),
        say("Should I?", thread="agent-1"),
    )
    assert value(one, CONFIRM) == 4
    assert detail(one, CONFIRM) == {"by_text": 2, "by_tool": 2, "preference_questions": 0}
    assert lines(one, CONFIRM) == [2, 4, 5, 6]
    assert "confirmation: “Should I fix it?”" in evidence(one, CONFIRM).items[0].excerpt


@pytest.mark.parametrize(
    ("parts", "how", "strict"),
    [
        ([call("AskUserQuestion", questions=[]), EDIT], "tool", False),
        ([READ, say("Which of the two parsers is meant?")], "question", False),
        ([say("Which of the two parsers is meant?")], "question", True),
        ([say("Which parser? " + "I ask because both exist. " * 5)], "question", True),
    ],
)
def test_clarification_is_sought_before_anything_is_done(parts: list[Part], how: str, strict: bool) -> None:
    one = view(user("fix the parser"), *parts)
    assert value(one, SOUGHT) is True
    assert detail(one, SOUGHT) == {"how": how, "strict": strict}
    assert lines(one, SOUGHT) != []


def test_an_agent_that_speaks_another_language_can_not_be_understood() -> None:
    asks = say("Ich habe die Datei noch nicht geändert. Soll ich das jetzt für dich machen?")
    one = view(user("los"), asks, user("ja"), EDIT, user("und"), call("AskUserQuestion", questions=[]))
    assert absent(one, CONFIRM) == absent(one, SOUGHT) == ("not_computable", "language: de")
    assert by_turn(one) == ["not_computable", False, True]


def test_each_response_stops_to_ask_or_does_not() -> None:
    one = view(
        user("a"),
        call("AskUserQuestion", questions=[{"question": "Which?"}]),
        EDIT,
        say("Done."),
        user("b"),
        call("Bash", command="ls"),
        say("Which folder is meant?"),
        user("c"),
        EDIT,
        say("Which folder is meant?"),
        user("d"),
        say("Shall I go on?"),
        user("e"),
    )
    assert by_turn(one) == [True, True, False, False, "not_applicable"]
    assert lines(one, STOP) == [2, 7]


def by_turn(one: SessionView) -> list[bool | str]:
    found = [r.value for r in measure(one) if r.signal.path == STOP]
    return [v.reason if isinstance(v, Absent) else v for v in found]


# How the agent puts it: hedges, corrections of itself, assumptions; and the traps of each list.

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


def test_without_words_there_is_no_hedging_rate() -> None:
    assert absent(view(user("go"), call("Read", path="a.py")), RATE) == ("not_applicable", "no_visible_text")
    assert absent(view(user("go"), say("```\nx = 1\n```")), RATE) == ("not_applicable", "no_visible_text")


def test_an_agent_that_speaks_another_language_can_not_be_measured() -> None:
    german = view(user("los"), say("Ich habe die Datei geändert und die Tests laufen jetzt wieder, aber nicht alle."))
    for path in (RATE, CURVE, CORRECTIONS, ASSUMED):
        assert absent(german, path) == ("not_computable", "language: de")
    assert absent(view(user("go"), say("テストは通りました。")), RATE) == ("not_computable", "language: ja")


def test_where_thinking_is_never_recorded_self_corrections_are_unknown() -> None:
    one = view(user("go"), say("I was wrong."))
    one.session.conventions = ["thinking_not_logged"]
    assert absent(one, CORRECTIONS) == ("missing_field", "format_records_no_thinking")


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


# Words that are looked for once in all of an agent's messages: what one message has is what it has by itself.

_PIECES = (
    "I'll assume", "assuming", "I think you mean", "probably wants", "likely refers to", "presumably", "not ", "avoid ",
    "my assumption is", "seems like you want", "Actually, no", "wait, ", "I'm not sure", "maybe", "it seems", "to be",
    "ASSUMING", "\u0130'll assume", "a\u017fsuming", "it\u2019s", " ", ", ", ".\n", "`code`", '"quoted"', "> said",
    "\n\n", "that",
)  # fmt: skip
_MESSAGES = st.lists(
    st.lists(st.sampled_from(_PIECES) | st.text(max_size=3), max_size=8).map("".join), min_size=1, max_size=4
)


@settings(max_examples=30)
@given(_MESSAGES, st.sampled_from((ASSUMPTIONS, SEED_ASSUMPTIONS, HEDGES_EXT, SELF_CORRECTIONS_EXT)))
def test_phrases_of_one_message_are_those_it_has_alone(texts: list[str], phrases: Phrases) -> None:
    prose = Prose(view(*map(say, texts)).by_kind["text"])
    for event in prose.events:
        alone = Prose([event])
        expected = [(s.name, alone.wording(s)) for s in phrases.find(alone.low, words_said(alone))]
        spans = prose.spans_in(event, phrases, words_said(prose))
        assert [(s.name, prose.wording(s)) for s in spans] == expected
        assert all(prose.event(s) is event for s in spans)


def test_what_is_assumed_is_told_from_the_first_message_alone() -> None:
    prose = view(say("Done."), say("I'll assume that it is meant.")).prose
    assert [len(agents.assumptions(prose, event)) for event in prose.events] == [0, 1]


CASES = (
    *(Case("a request for leave counts", view(user("go"), say(text)), CONFIRM, 1)
      for text in [
        "Should I proceed with the refactor?",
        "Do you want me to update the docs too?",
        "Would you like me to commit this?",
        "Want me to fix it (e.g. with a lock)?",
        "Does that look right?",
        "Ready to implement?",
        "**Shall we go on?**",
        "All good. OK to continue?",
        "Which file? No matter. Should I delete it?",
      ]),
    *(Case("other questions ask for no leave", view(user("go"), say(text)), CONFIRM, 0,
           some={"preference_questions": preferences})
      for text, preferences in [
        ("You should use X.", 0),
        ("What is the error?", 0),
        ("I should check the tests.", 0),
        ("Should be fine.", 0),
        ("`Should I proceed?`", 0),
        ("```\nShould I proceed?\n```", 0),
        ('It prints "Do you want me to continue?" and stops.', 0),
        ("> Should I proceed?\n\nNo.", 0),
        ("See https://example.org/?want me to=1", 0),
        ("Open /search?&should i?= there.", 0),
        ("| Should I? |\n|---|", 0),
        ("Let me confirm that (does it relocate?)", 0),
        ("Which option do you prefer?", 1),
        ("Which one should I fix?", 1),
        ("What would you like the message to be?", 1),
        ("Could you share the log?", 1),
        ("What would you like to do next?", 0),
        ("Anything else you'd like me to do?", 0),
      ]),
    *(Case("an offer or a question afterwards seeks no clarification", view(user("fix the parser"), *parts), SOUGHT,
           False)
      for parts in [
        [say("Fixed.")],
        [EDIT, say("Which parser is meant?")],
        [call("Bash", command="make"), say("Which parser is meant?")],
        [READ, call("AskUserQuestion", questions=[]), EDIT],
        [say("It parses files. Want me to fix it?")],
        [say("It parses files. Anything else?")],
        [say("Which parser is meant?"), say("The first, I see.")],
        [say("Which parser? " + "I ask because both exist. " * 20)],
        [say("`which?`")],
        [say("Fixed."), user("and?"), say("Which one is meant?")],
      ]),
)  # fmt: skip


@each_row("case", CASES)
def test_a_case(case: Case) -> None:
    case.check()
