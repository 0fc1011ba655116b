"""Labels of one message by word rules: pushback, intent and sentiment. English only.

Rules are precise where they match and miss most of what a reader finds, so their counts are lower bounds
(`stats/validation`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from agentsignals.model import Turn
from agentsignals.words.lexicon import acceptance, corrections, failure_report, head, rejection
from agentsignals.words.text import lowered, word_lists

VERSION = 2
"""Version of the rules; raise it when a label would change."""


class RuleLabel(NamedTuple):
    """A label, the rule that decided, and the words it matched; both are empty where no rule did."""

    value: str
    rule: str = ""
    words: str = ""


# -- Pushback and intent


def pushback_of(turn: Turn) -> RuleLabel:
    """Return rejection, correction or failure_report, the first whose patterns match the head of the turn, else
    non_pushback."""
    if refused := rejection(turn.text, turn.kind):
        return RuleLabel("rejection", "rejection", refused)
    if corrected := corrections(turn.text, turn.kind):
        return RuleLabel("correction", *corrected[0])
    if failed := failure_report(turn.text, turn.kind):
        return RuleLabel("failure_report", "failure_report", failed)
    return RuleLabel("non_pushback")


_INTENTS: dict[str, str] = word_lists("requests")["intents"]
_BY_WORD = {word: name for name, words in reversed(_INTENTS.items()) for word in words.split()}
_FIRST_WORDS = 12
"""Number of first words among which a prompt's main verb is looked for."""


def intent_of(turn: Turn) -> RuleLabel:
    """Return the intent of the first word of a prompt that has one; `other` without."""
    for word in head(turn.text).lower().replace("/", " ").split()[:_FIRST_WORDS]:
        plain = word.strip(".,:;!?()*")
        if plain in _BY_WORD:
            return RuleLabel(_BY_WORD[plain], "first telling word", plain)
    return RuleLabel("other")


# -- Sentiment: what a message says about the agent's work


@cache
def _ways_of_saying(sentiment: str) -> dict[str, re.Pattern[str]]:
    """Return the patterns of a sentiment by name."""
    listed: dict[str, str] = word_lists("reactions")["sentiment"][sentiment]
    return {name: re.compile(pattern.replace("\n", "")) for name, pattern in listed.items()}


_WISHED = re.compile(
    r"(?:\b(?:not|never|no|hardly|less|would|could|should|might|can|may|if|unless|until|isn't|aren't|wasn't|doesn't|don't|didn't|won't"
    r"|make|makes|making|ensure|sure|be|want|wants|needs?)\b|'d\b)(?: \w+){0,3} ?\Z"
)
"""Words before praise that deny it, or wish for it."""
_ASKED = re.compile(r"[^.!?\n]{0,120}\?")
"""The rest of a question: whether something is good is asked, not said."""
_HEAT = re.compile(r"!!|\?\?|\?!|!\?|\b(?:fuck|shit|damn|crap|bullshit)\w{0,9}\b")
"""Marks that make an objection NEGATIVE. Alone they mean nothing: swearing is how developers talk (agent-traces)."""
_ORDER = re.compile(r"(?:commit|push|merge|ship|done)\b")
"""Orders that accept without praise."""


def sentiment_of(turn: Turn) -> RuleLabel:
    """Return NEGATIVE, POSITIVE or NEUTRAL: what the message says about the agent's work.

    Displeasure is NEGATIVE, and so is an objection made with heat; praise, thanks or delight without either is
    POSITIVE. Plain orders, reports, corrections and questions are NEUTRAL.
    """
    low = lowered(head(turn.text))
    for name, pattern in _ways_of_saying("negative").items():
        if found := pattern.search(low):
            return RuleLabel("NEGATIVE", name, found[0].strip())
    pushback = pushback_of(turn)
    heated = _HEAT.search(low) if pushback.words else None
    if heated:
        return RuleLabel("NEGATIVE", "objection with heat", f"{pushback.words} … {heated[0]}")
    for name, pattern in _ways_of_saying("positive").items():
        for found in pattern.finditer(low):
            if pushback.words and lowered(pushback.words) not in found[0]:
                continue
            if _ASKED.match(low, found.end()) or _WISHED.search(low, max(0, found.start() - 40), found.start()):
                continue
            return RuleLabel("POSITIVE", name, found[0].strip())
    accepted = None if pushback.words else acceptance(turn.text, turn.kind)
    if accepted and not _ORDER.search(lowered(accepted)):
        return RuleLabel("POSITIVE", "acceptance", accepted)
    return RuleLabel("NEUTRAL")


BY_TASK: dict[str, Callable[[Turn], RuleLabel]] = {
    "sentiment": sentiment_of,
    "pushback": pushback_of,
    "prompt_intent": intent_of,
}
"""The rules of each task that has some."""
