"""Word lists of agents' messages, in English: hedges, self-corrections, requests for permission, assumptions.

Each is a list of phrases for `Prose`. The lists were made anew from those of design/signals.md#word-lists and read
against real sessions; each condition on what follows a phrase excludes a false match that was met.
"""

from __future__ import annotations

import re

from agentsignals.model import Absent, Event
from agentsignals.model.lazy import deferred_pattern
from agentsignals.words.prose import Phrase, Phrases, Prose, Span, questions

_NOT_VERY = (
    r"\b(?:i'm|i am|it's|it is) not (?:(?:100%|quite|really|fully|entirely|completely|totally|absolutely|at all) )?"
)
_NO_PLACE = r"(?! (?:in|on|at|as|when|once|twice|here|below|above|under|before|after)\b)"
_BE = r"(?: (?:also|well|just|still|even|actually|simply|not|already))?"
_MODAL = (
    _BE + r" (?:be|have|need|cause|indicate|mean|explain|affect|break|help|work|require|lead|fail|miss|differ|make"
    r"|lose|hit|run into|still|not)\b(?! (?:able to (?:see|view)|found in|called (?:by|from)))"
)

HEDGES = Phrases(
    "hedge",
    (
        *(Phrase(f"i {verb}", r"(?! (?:about|of|through|we're (?:done|good)))") for verb in ("think", "believe")),
        *(Phrase(f"i {verb}") for verb in ("suspect", "guess", "suppose", "assume", "imagine")),
        *(Phrase(f"i{would} {verb}") for would in ("'d", " would") for verb in ("guess", "expect", "assume")),
        *(Phrase(f"i'm {doubting}") for doubting in ("guessing", "assuming", "unsure", "uncertain")),
        *(Phrase(f"i am {doubting}") for doubting in ("guessing", "assuming", "unsure", "uncertain")),
        *(Phrase(sure, before=_NOT_VERY) for sure in ("sure", "certain", "confident", "clear")),
        *(Phrase(words) for words in ("my guess", "my hunch", "best guess", "hard to say", "hard to tell")),
        *(Phrase(words) for words in ("as far as i know", "as far as i can tell", "if i'm not mistaken", "in theory")),
        Phrase("might", _MODAL),
        Phrase("may", r"(?! (?:not )?be (?:used|found|called|added|set|omitted)\b)" + _MODAL),
        *(Phrase(word) for word in ("probably", "perhaps", "possibly", "presumably", "seemingly", "apparently")),
        *(Phrase(word) for word in ("arguably", "hopefully", "supposedly")),
        Phrase("maybe", r"(?!\()"),
        Phrase("likely", r"(?! (?:candidates?|to)\b)"),
        *(Phrase(seems, _NO_PLACE, before=r"\b(?:it|this|that|there) ") for seems in ("seems", "appears")),
        *(Phrase(seems, r" (?:like|to)\b") for seems in ("seems", "seem")),
        *(Phrase(appears, r" to be\b") for appears in ("appears", "appear")),
    ),
)
"""Doubt in what the agent tells the person. "could be" is not among them: mostly it says what is possible."""

SEED_HEDGES = Phrases("seed", [Phrase(w) for w in ("i think", "might be", "probably", "i'm not sure")])
"""The four phrases of Agent Signals."""

_CLAUSE_BEGINS = re.compile(
    r"(?:^|[.!?\n:;(\u2014\u2013]|\s-)[\s*_#>)-]*"
    r"(?:(?:oh|ah|hm+|but|ok(?:ay)?|so|and|well|no|yes|oops)\b[ ,.!\u2014-]+){0,3}\Z"
)
_LOOKED_BACK = 32


_LOOKS = (
    r"(?!,? (?:let me|let's|i(?:'ll| will| should| need to)) (?:(?:also|just|first|now|quickly) ){0,2}"
    r"(?:check|confirm|examine|find|grep|inspect|list|look|open|read|run|search|see|take a|test|verify|view)\b)"
)
"""Words after which the phrase announces a look, and takes nothing back."""
_ACTUALLY = (
    rf"{_LOOKS}"
    r"(?:,? (?:no\b|wait\b|i (?:was|need|should|missed|see|think|realize|realise|misread|made)\b"
    r"|(?:that|it)(?:'s| is| was| won't| doesn't)|this (?:is|won't|doesn't)|looking|let me|there(?:'s| is)|on second"
    r"|the (?:issue|problem|real|better|correct)\b)|,)"
)
_WAIT = (
    r"(?:[,.!\u2026\u2014-]+| [\u2014-]+)(?!\s*(?:until|till|for)\b)"
    r"| (?:no|that|this|i|actually|the|it|but|there|maybe|let me)\b(?! (?:seconds|minutes))"
)
_MY = (
    r" (?:assumption|approach|analysis|edit|change|attempt|fix|reading|claim|answer)\b"
    r"[^.\n]{0,40}?\b(?:was|were|broke|missed|had|did)\b"
)
SELF_CORRECTIONS = Phrases(
    "self_correction",
    (
        Phrase("actually", _ACTUALLY),
        Phrase("wait", _WAIT),
        *(Phrase(words) for words in ("no, wait", "no wait", "hold on", "on second thought", "scratch that")),
        Phrase("wrong", before=r"\bno,? (?:that|this)(?:'s| is) "),
        Phrase("that's not", r" (?:it|what|right|correct)\b", before=r"\bno,? "),
        *(Phrase(f"let me {again}") for again in ("reconsider", "rethink", "re-think", "start over", "backtrack")),
        *(Phrase(f"let me {again}") for again in ("step back", "take a step back", "try again")),
        Phrase("let me try", r" (?:a different|another)\b", sign="try"),
        *(
            Phrase(f"let me {undo}", r" (?:that|this|it|my)\b", sign=undo)
            for undo in ("undo", "revert", "correct", "redo")
        ),
        *(Phrase(f"i {erred}") for erred in ("was wrong", "made a mistake", "made an error", "misread", "overlooked")),
        *(Phrase(f"i {erred}") for erred in ("misunderstood", "misstated", "mis-stated")),
        Phrase("i shouldn't have", sign="shouldn"),
        *(Phrase(f"i {erred}", sign="should") for erred in ("should not have", "should have")),
        Phrase("i forgot", sign="forgot"),
        Phrase("i missed", r" (?:that|the|a|this|one|some)\b", sign="missed"),
        *(Phrase(words) for words in ("my mistake", "my bad", "my apologies", "apologies")),
        *(Phrase(f"my {before}", _MY) for before in ("earlier", "previous", "initial")),
        *(Phrase(f"that {fails}n't work", sign=f"{fails}n") for fails in ("did", "does")),
        Phrase("that won't work", sign="won"),
        Phrase(
            "right",
            r"(?=[^.\n]{0,80}\b(?:i|my|missed|forgot|wrong)\b)",
            before=r"\byou(?:'re| are) (?:absolutely |completely |totally |quite )?",
        ),
        *(Phrase(f"sorry {about}") for about in ("about that", "for that", "about the", "for the")),
    ),
    lambda low, start: not start or _CLAUSE_BEGINS.search(low[max(0, start - _LOOKED_BACK) : start]) is not None,
)
"""The agent takes back what it said or did. They stand where a clause begins: "this actually works" is none."""

SEED_SELF_CORRECTIONS = Phrases("seed", [Phrase("actually"), Phrase("wait, that won't work")])
"""The two phrases of Agent Signals."""

_NOT_ASSUMING = ("instead of ", "without ", "not ", "n't ", "avoid ", "than ", "stop ", "never ")


ASSUMPTIONS = Phrases(
    "assumption",
    (
        *(Phrase(f"{i} assume") for i in ("i'll", "i will", "i")),
        *(Phrase(f"{i} assuming") for i in ("i'm", "i am")),
        Phrase("assuming", r"(?! (?:that )?the (?:function|caller|test))"),
        Phrase("i think", r" (?:you|they|the user) (?:mean|want|are asking|is asking|'re asking)", sign="think"),
        Phrase("i think", r" (?:they|the user)(?:'re|'s) asking", sign="think"),
        *(
            Phrase(maybe, r" (?:wants?|means?|needs?|refers?|expects?|intends?|referring to|asking)\b")
            for maybe in ("probably", "likely")
        ),
        Phrase("presumably"),
        *(Phrase(f"{i} take", r" (?:this|that|it) to mean\b", sign="take") for i in ("i'll", "i will")),
        *(Phrase(f"{i} interpret", r" (?:this|that|it)\b") for i in ("i'll", "i will")),
        *(Phrase(f"{i} go with", sign="go") for i in ("i'll", "i will")),
        *(Phrase(f"my {view}", r" (?:is|here)\b") for view in ("assumption", "interpretation")),
        *(Phrase(f"{i} interpreting") for i in ("i'm", "i am")),
        Phrase("seems", r"(?: like)? (?:you|they|the user) (?:wants?|means?|needs?|are|is)\b", sign="seems"),
    ),
    lambda low, start: not low.endswith(_NOT_ASSUMING, max(0, start - 12), start),
)
"""Assumptions about the request."""

SEED_ASSUMPTIONS = Phrases(
    "seed", [Phrase(w) for w in ("i'll assume", "assuming", "i think you mean", "probably wants", "likely refers to")]
)
"""The five phrases of Agent Signals."""


class Question:
    """A kind of question by how it is asked."""

    def __init__(self, name: str, *forms: str) -> None:
        self.name = name
        self._pattern = deferred_pattern(rf"(?<!\w)(?:{'|'.join(forms)})\b")

    def is_asked(self, low: str) -> bool:
        """Return whether a sentence in lower case asks the question."""
        return self._pattern.search(low) is not None


_ASKED_OPENLY = (
    r"(?:what|which|how|where|who|when)\b[^,;:?\u2014]{0,60} (?:should|shall|would|do|did|can|could) (?:you|i|we)"
)

CONFIRMATION = Question(
    "confirmation",
    r"(?:should|shall|may) i",
    r"(?:do )?you want me to|want me to|(?:would|do) you (?:like|prefer|want) (?:me )?to",
    r"would you (?:like me|prefer i)",
    r"can i (?:go ahead|proceed)|(?:should|shall) we",
    r"is (?:it|that|this) (?:ok|okay|alright|fine|all right) (?:if|to|with you)",
    r"(?:are you )?ok(?:ay)? (?:with|to (?:proceed|go ahead|continue))",
    r"ready (?:for me )?to (?:proceed|implement|start|execute|continue|commit|go)|proceed with",
    r"(?<!me )(?<!to )confirm",
    r"(?:does|do) (?:that|this|these|it|the (?:plan|approach|design)|my \w+)(?: \w+)? (?:look|sound|seem|match)",
    r"(?:proceed|sound good|look good|go ahead)(?=\W*\?)",
)
"""The agent asks for permission or approval, and could go on at a bare yes."""

PREFERENCE = Question(
    "preference",
    _ASKED_OPENLY,
    r"(?:could|can) you (?:clarify|tell me|provide|share|confirm|describe|paste|show me)",
    r"what (?:exactly|specifically)|which \w+ are you|do you (?:prefer|mean)|did you mean|decide\W",
)
"""The agent asks for a choice or for a fact: a bare yes would be no answer."""


def _marker(name: str, *phrases: str) -> Phrases:
    return Phrases(name, [Phrase(p) for p in phrases])


MARKERS = (
    _marker("profanity", "fuck", "fucking", "shit", "damn", "crap", "hell"),
    _marker(
        "frustration", "frustrat", "frustrated", "frustrating", "frustration", "stuck", "impossible", "annoying", "ugh",
        "confusing",
    ),
    _marker("desperation", "desperate", "panic", "last chance", "no choice", "whatever passes"),
    _marker(
        "hardcode", "hardcode", "special-case", "visible test", "visible tests", "test harness", "shortcut", "hack",
    ),
    _marker("give_up", "can't solve", "cannot solve", "give up", "not possible", "no valid solution"),
)  # fmt: skip
"""The five word lists of llm-emotions's published scorer (design/lab.md#markers), whole words, case ignored."""
RETRY = b"retry"
SIGNS_OF_MARKERS = frozenset((RETRY,)).union(*(m.signs for m in MARKERS))

_FAMILIES = (HEDGES, SEED_HEDGES, SELF_CORRECTIONS, SEED_SELF_CORRECTIONS, ASSUMPTIONS, SEED_ASSUMPTIONS)
_SIGNS = SIGNS_OF_MARKERS.union(*(f.signs for f in _FAMILIES))
"""The signs of all lists: the words of a text are looked through once."""


OFFER = Question(
    "offer",
    r"anything else|(?:do|work on|tackle) next|what'?s next|next (?:task|step)",
    r"any (?:other )?(?:concerns|questions|thoughts)|\A[\W_]*want to",
    r"what(?:'s| is) (?:on your mind|your take)|what do you think",
    r"(?:does|do) (?:that|this|these|the) [^?\n]{0,60}\b(?:make sense|address|help|answer|work for you)",
)
"""The agent offers more: no work waits for the answer."""


def words_said(prose: Prose) -> frozenset[bytes]:
    """Return the signs of all lists here that the prose has."""
    return prose.words(_SIGNS)


def other_language(prose: Prose) -> Absent | None:
    """Return an `Absent` when the agent does not speak English, for which the phrases are. None when it does, or says
    too little."""
    language = prose.language
    return Absent("not_computable", f"language: {language}") if language not in (None, "en") else None


def hedges(prose: Prose) -> list[Span]:
    """Find hedges, in order."""
    return HEDGES.find(prose.low, words_said(prose))


_SENTENCE_ENDS = re.compile(r"[.!?](?=\s)|\n")


def self_corrections(prose: Prose) -> list[Span]:
    """Find self-corrections: at most one in a sentence."""
    kept: list[Span] = []
    for span in SELF_CORRECTIONS.find(prose.low, words_said(prose)):
        if not kept or _SENTENCE_ENDS.search(prose.low, kept[-1].start, span.start):
            kept.append(span)
    return kept


def asked(prose: Prose) -> list[Span]:
    """Find questions, each named by its kind: offer, preference, confirmation in this order, else `question`."""
    return [Span(start, end, kind_of(prose.low[start:end])) for start, end in questions(prose.low)]


def kind_of(question: str) -> str:
    """Return the kind of a question in lower case."""
    return next((q.name for q in (OFFER, PREFERENCE, CONFIRMATION) if q.is_asked(question)), "question")


def seed_hedges(prose: Prose) -> list[Span]:
    """Find the inventory's four hedges, for comparison."""
    return SEED_HEDGES.find(prose.low, words_said(prose))


def seed_self_corrections(prose: Prose) -> list[Span]:
    """Find the inventory's two phrases of self-correction, for comparison."""
    return SEED_SELF_CORRECTIONS.find(prose.low, words_said(prose))


def assumptions(prose: Prose, event: Event) -> list[Span]:
    """Find the assumptions that one of the agent's messages states."""
    return prose.spans_in(event, ASSUMPTIONS, words_said(prose))


def seed_assumptions(prose: Prose, event: Event) -> list[Span]:
    """Find the inventory's five phrases of assuming, for comparison."""
    return prose.spans_in(event, SEED_ASSUMPTIONS, words_said(prose))
