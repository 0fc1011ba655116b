"""Word lists of agents' messages, in English: hedges, self-corrections, requests for permission, assumptions.

`phrases.toml` has them, as phrases for `Prose`. The lists were made anew from those of design/signals.md#word-lists and
read against real sessions; each condition on what follows a phrase excludes a false match that was met.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from agentsignals.model import Absent, Event
from agentsignals.model.lazy import deferred_pattern
from agentsignals.words.prose import Phrase, Phrases, Prose, Span, questions
from agentsignals.words.text import word_lists

_CLAUSE_BEGINS = re.compile(
    r"(?:^|[.!?\n:;(\u2014\u2013]|\s-)[\s*_#>)-]*"
    r"(?:(?:oh|ah|hm+|but|ok(?:ay)?|so|and|well|no|yes|oops)\b[ ,.!\u2014-]+){0,3}\Z"
)
_LOOKED_BACK = 32
_NOT_ASSUMING = ("instead of ", "without ", "not ", "n't ", "avoid ", "than ", "stop ", "never ")
_LISTS = word_lists("phrases")


def _listed(family: str, name: str, allowed: Callable[[str, int], bool] | None = None) -> Phrases:
    groups: list[dict[str, Any]] = _LISTS[family]
    return Phrases(
        name,
        [
            Phrase(words, group.get("then", ""), group.get("sign", ""), group.get("before", ""))
            for group in groups
            for words in group["words"]
        ],
        allowed,
    )


def _plain(name: str, words: list[str]) -> Phrases:
    return Phrases(name, [Phrase(each) for each in words])


HEDGES = _listed("hedges", "hedge")
"""Doubt in what the agent tells the person. "could be" is not among them: mostly it says what is possible."""
SELF_CORRECTIONS = _listed(
    "self_corrections",
    "self_correction",
    lambda low, start: not start or _CLAUSE_BEGINS.search(low[max(0, start - _LOOKED_BACK) : start]) is not None,
)
"""The agent takes back what it said or did. They stand where a clause begins: "this actually works" is none."""
ASSUMPTIONS = _listed(
    "assumptions", "assumption", lambda low, start: not low.endswith(_NOT_ASSUMING, max(0, start - 12), start)
)
SEED_HEDGES, SEED_SELF_CORRECTIONS, SEED_ASSUMPTIONS = (_plain("seed", words) for words in _LISTS["seeds"].values())
MARKERS = tuple(_plain(name, words) for name, words in _LISTS["markers"].items())
RETRY = b"retry"
SIGNS_OF_MARKERS = frozenset((RETRY,)).union(*(m.signs for m in MARKERS))
_FAMILIES = (HEDGES, SEED_HEDGES, SELF_CORRECTIONS, SEED_SELF_CORRECTIONS, ASSUMPTIONS, SEED_ASSUMPTIONS)
_SIGNS = SIGNS_OF_MARKERS.union(*(f.signs for f in _FAMILIES))
"""The signs of all lists: the words of a text are looked through once."""


class Question:
    """A kind of question by how it is asked."""

    def __init__(self, name: str, forms: str) -> None:
        self.name = name
        self._pattern = deferred_pattern(rf"(?<!\w)(?:{forms})\b".replace("\n", ""))

    def is_asked(self, low: str) -> bool:
        return self._pattern.search(low) is not None


OFFER, PREFERENCE, CONFIRMATION = (Question(name, forms) for name, forms in _LISTS["asked"].items())


def words_said(prose: Prose) -> frozenset[bytes]:
    """Return the signs of all lists here that the prose has."""
    return prose.words(_SIGNS)


def other_language(prose: Prose) -> Absent | None:
    """Return an `Absent` when the agent does not speak English, for which the phrases are. None when it does, or says
    too little."""
    language = prose.language
    return Absent("not_computable", f"language: {language}") if language not in (None, "en") else None


def _finder(phrases: Phrases) -> Callable[[Prose], list[Span]]:
    return lambda prose: phrases.find(prose.low, words_said(prose))


hedges, seed_hedges, seed_self_corrections = map(_finder, (HEDGES, SEED_HEDGES, SEED_SELF_CORRECTIONS))
"""Hedges; and the inventory's four hedges and two phrases of self-correction, for comparison."""
_SENTENCE_ENDS = re.compile(r"[.!?](?=\s)|\n")


def self_corrections(prose: Prose) -> list[Span]:
    """Find self-corrections: at most one in a sentence."""
    kept: list[Span] = []
    for span in SELF_CORRECTIONS.find(prose.low, words_said(prose)):
        if not kept or _SENTENCE_ENDS.search(prose.low, kept[-1].start, span.start):
            kept.append(span)
    return kept


def asked(prose: Prose) -> list[Span]:
    return [Span(start, end, kind_of(prose.low[start:end])) for start, end in questions(prose.low)]


def kind_of(question: str) -> str:
    return next((q.name for q in (OFFER, PREFERENCE, CONFIRMATION) if q.is_asked(question)), "question")


def assumptions(prose: Prose, event: Event) -> list[Span]:
    return prose.spans_in(event, ASSUMPTIONS, words_said(prose))


def seed_assumptions(prose: Prose, event: Event) -> list[Span]:
    """Find the inventory's five phrases of assuming, for comparison."""
    return prose.spans_in(event, SEED_ASSUMPTIONS, words_said(prose))
