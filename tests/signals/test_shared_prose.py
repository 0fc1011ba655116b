"""Words that are looked for once in all of an agent's messages: what one message has is what it has by itself."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from agentsignals.words import agent_lexicon
from agentsignals.words.agent_lexicon import ASSUMPTIONS, HEDGES, SEED_ASSUMPTIONS, SELF_CORRECTIONS, words_said
from agentsignals.words.prose import Phrases, Prose
from tests.build import say, view

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
@given(_MESSAGES, st.sampled_from((ASSUMPTIONS, SEED_ASSUMPTIONS, HEDGES, SELF_CORRECTIONS)))
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
    assert [len(agent_lexicon.assumptions(prose, event)) for event in prose.events] == [0, 1]
