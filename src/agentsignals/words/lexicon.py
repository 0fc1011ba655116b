"""People's reactions to an agent's work, as word patterns over the head of a turn (design/signals.md#word-lists).

English only. Each pattern is guarded by words of which at least one must occur; a head without any costs a set lookup.
They find a tenth to a third of the corrections a reader finds; most of their finds are corrections.
"""

from __future__ import annotations

import re
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from agentsignals.model import UNSPOKEN
from agentsignals.model.lazy import deferred_pattern
from agentsignals.words.text import is_of_word, lowered


class Pattern:
    """A named reaction, for text in lower case: ignoring the case costs three times as much, to compile and to search.

    Its words stand where a clause begins, or anywhere. Without one of the `triggers` (lower-case words) among the words
    of the text it can't match; without one of `also`, not `anywhere`. Compiled when first needed: few texts need many.
    """

    def __init__(self, name: str, triggers: str, *anywhere: str, clause: str = "", also: str = "") -> None:
        self.name = name
        self.triggers = frozenset(triggers.split())
        self.also = frozenset(also.split())
        self.clause = deferred_pattern(clause) if clause else None
        self.anywhere = deferred_pattern("|".join(anywhere)) if anywhere else None

    def find(self, low: str, words: frozenset[str]) -> tuple[int, int] | None:
        """Return where the reaction begins and ends, an opener ("ok, ") included. `words` are those of the text."""
        span = None
        if self.clause is not None:
            for start, at in clauses(low):
                match = self.clause.match(low, at)
                if match:
                    span = start, match.end()
                    break
        if self.anywhere is not None and not (self.also and self.also.isdisjoint(words)):
            match = self.anywhere.search(low)
            if match and (span is None or match.start() < span[0]):
                span = match.span()
        return span


# A clause begins at the start, behind a full stop or line break, and behind a short opener ("ok, ").
_STOP = re.compile(r"[.!?;\n]")
_BLANKS = re.compile(r"\s*")
_OPENER = re.compile(
    r"(?:oh|ah|hm+|hmm|ok(?:ay)?|so|well|but|and|uh+|ugh|argh|sorry|yeah|yes|hey|please|pls|claude|great|cool)"
    r"[,.!: -]{1,3}"
)
_MOST_OPENERS = 3


@lru_cache(maxsize=64)
def clauses(low: str) -> list[tuple[int, int]]:
    """Return the clauses of a text as (start, start of its words): behind all openers first, then with them."""
    spans: list[tuple[int, int]] = []
    for start in (0, *[stop.end() for stop in _STOP.finditer(low)]):
        words = [_BLANKS.match(low, start).end()]  # type: ignore[union-attr]  # it always matches
        while len(words) <= _MOST_OPENERS and (opener := _OPENER.match(low, words[-1])):
            words.append(opener.end())
        spans += [(start, at) for at in reversed(words)]
    return spans


_NO_GOES_ON = (
    r"i\b|it\b|we\b|you\b|that\b|this\b|don'?t\b|do\b|not\b|let'?s\b|just\b|the\b|there\b|use\b|keep\b|revert\b|undo\b"
    r"|leave\b|put\b|please\b|they\b|he\b|she\b|make\b|remove\b|add\b|only\b|wait\b|stop\b|actually\b|sorry\b|again\b"
    r"|my\b|our\b|instead\b|ignore\b|write\b|skip\b|go\b|look\b|check\b"
)
_NO_IS_FINE = (
    r"(?!\s*[,.]?\s*(?:problem|prob|worries|worry|need|rush|hurry|idea|doubt|harm|issue|issues|changes?|one|longer|more"
    r"|matter|way|other|new|tests?|errors?|further|comments?|biggie|pressure|thanks"
    r"|that's (?:fine|ok|okay|good|great|right|correct|perfect)|it's (?:fine|ok|okay|good|great|correct)"
    r"|(?:that|this|it) (?:is|looks|works) (?:fine|ok|okay|good|great|correct)"
    r"|(?:go ahead|all good|i'?m good|we'?re good|then it'?s good)))"
)
_IS_PRAISE = (
    r"great|good|nice|perfect|fine|awesome|amazing|cool|love|works?|working|worked"
    r"|that(?:'s| is| was) (?:great|good|fine|perfect|nice|right|correct|ok)"
    r"|it(?:'s| is| was)? (?:works?|worked|great|good|fine|perfect|right|correct)|pretty|really (?:good|nice|great)"
    r"|quite (?:good|nice)|looks? (?:good|great|fine)"
)
_UNDO_IS_A_THING = (
    r"button|command|feature|stack|functionality|support|operation|history|logic|test|tests|cmd|key|shortcut|migration"
    r"|strategy|mode|ing\b"
)
_DO = (
    r"do|add|use|change|touch|remove|delete|commit|check|create|write|make|edit|modify|run|push|merge|call|put|include"
    r"|rename|move|go|jump|over|just|try|mock|hardcode|hard-code|assume|skip|ignore|wrap|introduce|squash|rebase|amend"
    r"|be|want|worry"
)
_ERRED = (
    r"misunder\w+|missed|forgot|forgotten|overlooked|ignored|misread|broke|misinterpreted|removed|deleted|overwrote"
    r"|didn't (?:do|add|fix|update|change|run|read|look|use|follow|include|remove|address|actually)"
    r"|did not (?:do|add|fix|update|change|run|read|follow|address)"
    r"|haven't (?:done|added|fixed|updated|changed|run|removed|addressed|actually)|changed the wrong"
    r"|should(?:n't| not) have|weren't supposed|were supposed"
)

CORRECTIONS = (
    Pattern(
        "no_initial",
        "no nope nah nein",
        clause=rf"(?:no+|nope|nah|nein)(?=[\s,.!:;\u2014-]|$)(?!\s+(?!{_NO_GOES_ON})\w)" + _NO_IS_FINE,
    ),
    Pattern(
        "not_right",
        "not n",
        r"\b(?:that|this|it|which|part|one)(?:'s| is|'s still| is still| isn't| looks| seems| was)?\s+"
        r"(?:definitely |really |just |still |totally |completely )?(?:not|n't)\s+"
        r"(?:quite |really |actually |entirely |at all )?"
        r"(?:right|correct|true|it\b|what\b|how\b|the (?:point|issue|problem|right|correct)|accurate|working as)",
        r"(?:^|[.!\n]\s*|\bstill )not (?:quite |really |entirely )?(?:right|correct|it\b|there yet|what i)",
        r"\b(?:is|are|was)(?: still)? not (?:quite |really |entirely )?(?:right|correct|true|accurate)\b"
        r"(?! (?:if|when)\b)",
    ),
    Pattern(
        "isnt_right",
        "isn wasn doesn",
        r"\b(?:that|this|it)\s+(?:isn't|wasn't|doesn't (?:look|seem|feel|sound))\s+(?:quite |really |actually )?"
        r"(?:right|correct|true|what|how|it\b|accurate)",
    ),
    Pattern(
        "is_wrong",
        "wrong incorrect mistaken",
        r"\b(?:that|this|it|you|you're|your \w+|the \w+(?: \w+)?)"
        r"(?:'s|'re| is| are| was| were| looks| seems| got (?:it|that))?\s+"
        r"(?:still |completely |totally |just |also |actually |plain )?(?:wrong|incorrect|mistaken)\b"
        r"(?!\s+(?:if|when|about|with (?:the|my|our) (?:env|config|machine)))",
    ),
    Pattern(
        "wrong_target",
        "wrong",
        r"\b(?:the |a )?wrong (?:file|files|place|branch|function|method|repo|directory|folder|dir|line|lines|section"
        r"|approach|direction|way|thing|one|test|class|module|version)\b(?=[^?]{0,80}(?:[.!]|$))",
    ),
    Pattern(
        "undo_revert",
        "undo revert rollback rollingback roll rolling back",
        clause=r"(?:(?:can|could|would) you |(?:let's|lets|we should|you should|you need to|we need to|i want you to"
        r"|just|and|then|no,?) (?:please )?)?(?:undo|revert|roll(?:ing)? ?back|back out)\b"
        rf"(?!\s*(?:{_UNDO_IS_A_THING}))",
    ),
    Pattern(
        "put_back",
        "put undo revert",
        r"\bput (?:it|that|this|them|those|the \w+) back\b",
        r"\b(?:you can|can you|could you|please|pls) (?:please )?(?:undo|revert) "
        r"(?:that|this|it|those|these|the (?:last|change))",
    ),
    Pattern("actually_redirect", "actually", clause=rf"actually\b[,\s]+(?!(?:{_IS_PRAISE}))"),
    Pattern(
        "wait",
        "wait",
        clause=r"wait(?=\s*(?:[,.!?\u2026\u2014-]|$|\n)|\s+(?:no|why|what|that|this|i|you|we|the|is|are|isn't|so|don't"
        r"|actually|but|let's|let me|hold on|a (?:sec|second|minute|moment),?\s+(?:why|what|that|you|no|i|this)))"
        r"(?!\s+(?:for|until|till|on\b))",
    ),
    Pattern(
        "stop",
        "stop",
        clause=r"(?:please )?stop(?=\s*(?:[,.!]|$|\n)|\s+(?:\w+ing\b|for a (?:sec|second|moment|minute|bit)\b|it\b"
        r"|that\b|this\b|there\b|here\b|right\b|now\b|and\b|please\b|with\b|what\b))"
        r"(?!\s+(?:hook|hooks|the|words?|sign|button|event|events|signal|codon|gap|loss)\b)",
    ),
    Pattern(
        "i_said_meant",
        "didn did never said told asked mean meant point actually what",
        r"\bi (?:didn't|did not|never) (?:ask|want|say|mean|request)\b",
        r"\bi (?:already )?(?:said|told you|asked (?:you )?(?:for|to)|specifically (?:said|asked))\b",
        r"(?:^|[.!?\n]\s*|\b(?:sorry|no|oh|but),? )(?:i mean|i meant|my point (?:is|was))\b",
        r"\bi actually (?:want|wanted|meant|mean|asked|need|needed)\b",
        r"(?<!think )\bwhat i (?:meant|mean|wanted|want|asked)\b",
        r"\bnot what i\b",
        also="i my",
    ),
    Pattern(
        "you_erred",
        "misunder missed forgot forgotten overlooked ignored misread broke misinterpreted removed deleted overwrote"
        " didn did haven changed should shouldn weren were",
        r"\byou (?:'ve |have )?(?:just |still |also |again |accidentally |clearly )?"
        rf"(?:{_ERRED})\b(?![^.!\n]{{0,60}}\?)",
        also="you",
    ),
    Pattern(
        "dont_do",
        "don dont not shouldn stop",
        clause=r"(?:please )?(?:don't|do not|dont|let's not|lets not|you shouldn't|we shouldn't|stop)\s+(?!worry|forget"
        r"|think (?:so|it)|know|hesitate|need|mind|have|see|understand|get (?:it|why|how)|bother(?:ed)? if|like it when"
        rf"|want to (?:bother|lose))(?:{_DO})\b"
        r"(?!\s+(?:any(?:thing)?|any code|the code|code|files?)\b[^.\n]{0,40}"
        r"\b(?:just|only|yet|let me know|report|tell me)\b)",
    ),
    Pattern(
        "why_did_you",
        "why",
        r"\bwhy (?:did|are|do|would|have|were) you\b"
        r"(?!\s+(?:think|recommend|suggest|prefer|propose|choose|pick|say|believe))",
        r"\bwhy (?:not (?:just )?\w+ing|isn't this|aren't you|didn't you|don't you|can't you|wouldn't you)\b",
    ),
    Pattern(
        "never_mind",
        "never nevermind scratch forget second thinking disregard",
        clause=r"(?:never ?mind|scratch that|forget (?:that|it|about (?:that|it|this))|on second thought|thinking again"
        r"|disregard)\b",
    ),
    Pattern(
        "instead_redirect",
        "instead",
        clause=r"(?:let's|lets|can we|could we|can you|please|just|i'd rather|i would rather|we should|use|do|go with"
        r"|keep|make it)\b[^.?!\n]{0,90}\binstead\b(?!\s+of\s+(?:having|needing) to (?:wait|manually))",
    ),
    Pattern("again_repeat", "again", clause=r"again[,:]\s"),
)

WEAK = frozenset(("why_did_you", "instead_redirect"))
"""Corrections only when said while refusing: "why did you use a list here?" is no pushback in SWE-chat's codebook."""

FAILURE_REPORTS = (
    Pattern(
        "still_failing",
        "still again now",
        r"\b(?:still|again|now)\s+(?:get(?:ting)?|see(?:ing)?|fail\w*|broken|crash\w*"
        r"|not (?:working|showing|there|fixed)|doesn't|does not|the same (?:error|issue|problem))\b",
    ),
    Pattern(
        "not_working",
        "doesn does didn did don isn is not never",
        r"\b(?:doesn't|does not|didn't|did not|don't|isn't|is not|not|never)\s+(?:seem to |actually |really )?"
        r"(?:work(?:ing)?|show(?:ing)? up|appear(?:ing)?|fix(?:ed)? (?:it|the)|compile|build|render|update|fire"
        r"|trigger(?:ed)?)\b",
        also="work working show showing appear appearing fix fixed compile build render update fire trigger triggered",
    ),
    Pattern(
        "failing",
        "fail fails failed failing crashes crashed crashing broke broken hangs hanging panic panics panicked error"
        " errors errored erroring",
        r"\b(?:tests?|build|ci|lint(?:er|ing)?|pipeline|command|it|this|that)\s+(?:is|are|now|still|just|also)?\s*"
        r"(?:fail(?:s|ed|ing)?|crash(?:es|ed|ing)|broke(?:n)?|hang(?:s|ing)|panic(?:s|ked)?|error(?:s|ed|ing)? out)\b",
    ),
    Pattern(
        "getting_an_error",
        "error errors exception exceptions failure failures panic panics traceback tracebacks 404 404s 500 500s warning"
        " warnings",
        r"\b(?:i(?:'m| am)? (?:get(?:ting)?|got|see(?:ing)?)|getting|got|there's|there is|same|another)\s+"
        r"(?:this |the |an? |that |same |following )*(?:\w+ )?"
        r"(?:error|exception|failure|panic|traceback|404|500|warning)s?\b",
    ),
    Pattern(
        "did_not_help",
        "did didn doesn does",
        r"\b(?:did not|didn't|doesn't|does not) (?:help|change anything|do anything|make a difference)\b",
        also="help change do make",
    ),
)

REJECTION = Pattern(
    "rejection",
    "no nope nah undo revert rollback roll discard throw drop scrap don not put",
    r"\bi (?:don't|do not) (?:want|like|need) (?:that|this|it)\b",
    r"\bput (?:it|that|them) back\b",
    clause=r"(?:no+|nope|nah)\s*[.!]*\s*$"
    r"|(?:please |just |let's |no,? )*(?:undo|revert|roll ?back|discard|throw away|drop|scrap)\s+"
    r"(?:that|this|it|everything|all|those|these|the (?:last|change|changes|commit|edit|edits|whole))\b",
    also="want like need put",
)

NEW_INSTRUCTION = re.compile(
    r"\b(?:instead|rather|let's|lets|use|try|make|do|keep|add|change|rename|move|write|only|should|want|need|must)\b"
)
"""A refusal that also says what to do is a correction (SWE-chat's codebook)."""

ACCEPTANCE = Pattern(
    "acceptance",
    "perfect great awesome excellent amazing nice lovely brilliant cool sweet beautiful fantastic wonderful superb love"
    " look looks lgtm ship work works worked well good thank thanks thx ty cheers all that thats done commit push"
    " merge",
    # "Commit and push." accepts as a whole message only: at the end of a long instruction it is a part of the order.
    r"\A\s*(?:(?:ok(?:ay)?|yes|great|cool|now|then|please|pls|and|can you|could you|let's|lets)[, ]+){0,3}"
    r"(?:commit|push|merge|ship)(?: it| this| that| these| everything| all(?: of it)?| and (?:push|commit)"
    r"| (?:the |these |those |all )?changes?| to (?:main|origin|remote)| please| now| pls){0,4}\s*[.!?]*\s*\Z",
    clause=r"(?:perfect|great|awesome|excellent|amazing|nice|lovely|brilliant|cool|sweet|beautiful|fantastic"
    r"|wonderful|superb|love it|looks? (?:good|great|perfect|fine|nice)|lgtm|ship it|works? (?:great|perfectly|now"
    r"|well)|(?:that|this|it) (?:works?|worked)|well done|good job|nice work|good work|thanks?|thank you|thx|ty|cheers"
    r"|all good|that'?s (?:great|perfect|good|it)|done\b)(?:[\s,.!\u2026-]|$)(?!\s*(?:but|however|except|though)\b)",
)

REVERT_ALL = Pattern(
    "revert_all",
    "undo revert discard throw rollback roll scrap drop start git",
    r"\b(?:undo|revert|discard|throw away|roll ?back|scrap|drop)\s+"
    r"(?:all|everything|the whole|all (?:of )?(?:the|your|these|those) changes|your changes|the entire)\b",
    r"\bstart (?:over|from scratch|again from)\b",
    r"\bgit (?:reset --hard|checkout -- ?\.|checkout \.|restore \.)(?![\w/])",
)

GIVING_UP = Pattern(
    "gives_up",
    "forget never nevermind give giving stop abandon abandoning",
    clause=r"(?:forget (?:it|(?:about )?(?:it|this|that))|never ?mind|(?:i(?:'m| am)? |let'?s |just )?giv(?:e|ing) up"
    r"|(?:let'?s |just )?(?:stop here|abandon(?:ing)? (?:it|this|that)))(?:[\s,.!\u2026-]|$)",
)

SEED_CORRECTIONS = ("no", "that's not", "wrong", "undo", "revert", "actually", "wait", "stop")
"""The seed's own keywords, kept for comparison. A quarter of their hits are corrections."""

ALL = (*CORRECTIONS, *FAILURE_REPORTS, REJECTION, ACCEPTANCE, REVERT_ALL, GIVING_UP)

REJECTED_THING = re.compile(r"\s*(?:commits?|changes?|edits?|one|thing)\b")
"""Objects of a phrase that takes something back: "revert the last" *change*."""
QUOTED_DIALOG = re.compile(r"^\s*(?:\d[.)] )?yes\b", re.MULTILINE)
"""A dialog's "Yes" line: a "No." behind it is the dialog's, not the person's."""


# The person's own words: a human turn without code, quotes and pasted text, and the reactions found in it.
#
# Reactions are looked for in the head only (design/signals.md#human-turns and design/signals.md#word-lists): behind
# it people paste logs, reviews and files, and words found there are not theirs.

HEAD_CHARS = 320
WINDOW_CHARS = 4000
"""A turn longer than this is cleaned this far first: a pasted log costs no more than a sentence."""
BULLET = " \u2022 "

_FENCE = re.compile(r"```.*?(?:```|\Z)", re.S)
# U+2502 the terminal's frame; U+23BF, U+276F, U+23FA, U+25CF, U+2714, U+2717 what agents print before their own lines.
_PRINTED_MARKS = "\u2502\u23bf\u276f\u23fa\u25cf\u2714\u2717"
# Patterns of lines begin with the line break before them (`_without` puts one before the first line): a character that
# is always there is found several times faster than "^".
_QUOTED_LINE = re.compile(rf"\n[ \t]*[>|{_PRINTED_MARKS}].*")
_LOG_LINE = re.compile(
    r"\n[ \t]*(?:\d{4}-\d\d-\d\d[T ]\d\d:|\[\d\d:|at \w[\w.$<>]*\(|File \"[^\"]+\", line|[EWI]\d{4} |--- FAIL|=== RUN"
    r"|\$ |#\d+ ).*"
)
_DIFF_LINE = re.compile(r"\n(?:[+-]{1,3}(?=[ \t\w/{}#\"])|@@ |diff --git |index [0-9a-f]{7,}|\d{1,5}[ \t]+[+-] ).*")
_DIFF_LINES = 3
"""One or two lines that start with "-" are a person's list; three are a diff."""
_INLINE_CODE = re.compile(r"`[^`\n]{1,200}`")
_URL = re.compile(r"https?://\S+")
_STRAIGHT_QUOTE = re.compile(r"\"[^\"\n]{1,200}\"")
_CURLY_QUOTE = re.compile(r"“[^”\n]{1,200}”")
_PASTED = re.compile(
    r"\n\s*(?:(?:low|medium|high|critical) severity\b|location\s*:|additional locations"
    r"|(?:bug|issue|finding) \d+\s*[:.]|operation stopped by hook:|original prompt:"
    r"|usage:$|error:|panic:|traceback \(most recent|fatal:|npm err!)",
    re.M,
)
"""Third-party text (review bot, hook output, CI log), in lower case: from here on it is not the person who speaks."""

_ACTIONS = (
    "add adjust align allow analyse analyze apply ask audit build change check clean commit compare configure"
    " convert create debug delete deploy describe design disable display document draft drop edit enable ensure"
    " examine execute explain explore extend extract fetch find fix generate give go handle hide identify implement"
    " improve inspect install integrate introduce investigate invoke list locate look make merge migrate modify move"
    " open optimise optimize port prepare print push put read rebase redo reduce refactor remove rename render"
    " replace reproduce research rework rewrite run scan search set setup show simplify split start summarise"
    " summarize support swap switch take tell test tidy trace translate try turn understand update upgrade use"
    " validate verify wire wrap write"
)
ACTIONS = frozenset(_ACTIONS.split())
"""Verbs that a request begins with."""


@lru_cache(maxsize=1024)
def clean(text: str) -> str:
    """A human turn without code, links, quotations and pasted terminal, log or diff lines."""
    if "```" in text:
        text = _FENCE.sub(" ", text)
    if ">" in text or "|" in text or (not text.isascii() and any(mark in text for mark in _PRINTED_MARKS)):
        text = _without(_QUOTED_LINE, text)
    text = _without(_LOG_LINE, text)
    if text.count("\n") >= _DIFF_LINES - 1 and len(_DIFF_LINE.findall("\n" + text)) >= _DIFF_LINES:
        text = _without(_DIFF_LINE, text)
    if "`" in text:
        text = _INLINE_CODE.sub(BULLET, text)
    if "http" in text:
        text = _URL.sub(" ", text)
    if '"' in text:
        text = _STRAIGHT_QUOTE.sub(BULLET, text)
    if "“" in text:
        text = _CURLY_QUOTE.sub(BULLET, text)
    text = text.replace("\t", " ")
    while "  " in text:
        text = text.replace("  ", " ")
    return text.replace("\u2019", "'").strip()


def _without(lines: re.Pattern[str], text: str) -> str:
    return lines.sub("\n ", "\n" + text)[1:]


_LETTERS = bytes(n if chr(n) in "abcdefghijklmnopqrstuvwxyz0123456789" else ord(" ") for n in range(256))
"""ASCII letters and digits stay, everything else becomes a blank: splits words three times as fast as a pattern."""
_TRIGGERS = frozenset().union(*(p.triggers for p in ALL))


class _Head(NamedTuple):
    """The head of a turn, prepared for all patterns."""

    text: str
    low: str
    """The text in lower case, each character in its place."""
    words: frozenset[str]
    signs: frozenset[str]
    """Words that trigger a reaction: few or none, so that a test of them costs nothing."""


@lru_cache(maxsize=1024)
def _head(text: str) -> _Head:
    kept = clean(text[:WINDOW_CHARS])
    if len(kept) < HEAD_CHARS and len(text) > WINDOW_CHARS:
        kept = clean(text)
    kept = kept[: HEAD_CHARS + 80]
    low = lowered(kept)
    pasted = _PASTED.search("\n" + low)
    end = min(pasted.start(), HEAD_CHARS) if pasted else HEAD_CHARS
    kept, low = kept[:end], low[:end]
    letters = (low if kept.isascii() else kept.lower()).encode("ascii", "replace").translate(_LETTERS)
    words = frozenset(letters.decode().split())
    # Two stems are triggers that are no words by themselves.
    words |= {stem for sign, stem in (("noo", "no"), ("misunder", "misunder")) if sign in low}
    return _Head(kept, low, words, _TRIGGERS & words)


def head(text: str) -> str:
    """Return the first 320 characters of the cleaned text, up to pasted third-party text."""
    return _head(text).text


def words(text: str) -> frozenset[str]:
    """Return the lower-case words of the head of a turn in the form of the triggers: "nooo" counts as "no", and
    "misunderstood" as its stem."""
    return _head(text).words


_CORRECTED_BY: dict[str, list[int]] = {}
"""Numbers of the corrections, keyed by trigger."""
for _n, _correction in enumerate(CORRECTIONS):
    for _trigger in _correction.triggers:
        _CORRECTED_BY.setdefault(_trigger, []).append(_n)
NO_WITHIN_CHARS = 160
"""A "no" further from the start answers something else than the agent."""


@lru_cache(maxsize=1024)
def corrections(text: str, kind: str = "prompt") -> tuple[tuple[str, str], ...]:
    """Return the corrections in the head of a turn, each as (pattern, matched words)."""
    searched = _head(text)
    if kind in UNSPOKEN or not searched.signs:
        return ()
    matches: list[tuple[str, str]] = []
    for n in sorted({n for sign in searched.signs for n in _CORRECTED_BY.get(sign, ())}):
        pattern = CORRECTIONS[n]
        if pattern.name in WEAK and kind != "rejection_feedback":
            continue
        span = pattern.find(searched.low, searched.words)
        if span is None:
            continue
        if pattern.name == "no_initial" and (
            span[0] > NO_WITHIN_CHARS or QUOTED_DIALOG.search(searched.low, 0, span[0]) is not None
        ):
            continue  # a "no" to something else than the agent
        matches.append((pattern.name, searched.text[slice(*span)].strip()))
    return tuple(matches)


def rejection(text: str, kind: str = "prompt") -> str | None:
    """Return the words that refuse or take back the work without a new instruction."""
    span = _search(REJECTION, text, kind)
    if span is None:
        return None
    searched = _head(text)
    start, end = span
    named = REJECTED_THING.match(searched.low, end)
    rest = searched.low[:start] + " " + searched.low[named.end() if named else end :]
    return None if NEW_INSTRUCTION.search(rest) else searched.text[start:end].strip()


def failure_report(text: str, kind: str = "prompt") -> str | None:
    """Return the first words that report a failure of the result."""
    searched = _head(text)
    if kind in UNSPOKEN or not searched.signs:
        return None
    likely = [p for p in FAILURE_REPORTS if not p.triggers.isdisjoint(searched.signs)]
    spans = [span for p in likely if (span := p.find(searched.low, searched.words))]
    return searched.text[slice(*min(spans, key=_START))].strip() if spans else None


_START = itemgetter(0)


def acceptance(text: str, kind: str = "prompt") -> str | None:
    """Return words of praise or thanks, or a bare order to commit."""
    return _matched(ACCEPTANCE, text, kind)


_CHANGE = r"(?:touch|chang|edit|modif|alter|rewrit|creat|writ|add|refactor|rename|remov|delet)\w*"
_LIMITS = re.compile(
    rf"\bnothing else\b|\bno (?:other|further|more) (?:files?|changes?|edits?|places?|parts?)\b"
    rf"|\b(?:don't|do not|dont|must not|mustn't|never|without) (?:\w+ )?{_CHANGE} (?:\w+ ){{0,2}}"
    r"(?:else|other|anything|everything|rest)\b"
    r"|\bleave (?:(?:\w+ ){0,2}(?:rest|else|other|others)|everything|all)\b(?: \w+){0,3}"
    r" (?:alone|is|are|was|were|untouched|unchanged)\b"
    r"|(?<!not )(?<!n't )\b(?:only|just) (?:fix|correct|change|edit|touch|update|rename|adjust|tweak|modify)\b"
    r"(?![^.!?\n]*\b(?:all|every|everything|each|whole|rest|both)\b)"
)


def limits_work(text: str) -> bool:
    """Return whether a turn limits the work: "change nothing else", "only fix the heading"."""
    return _LIMITS.search(_head(text).low) is not None


def revert_all(text: str, kind: str = "prompt") -> str | None:
    """Return words that want everything taken back."""
    return _matched(REVERT_ALL, text, kind)


def giving_up(text: str, kind: str = "prompt") -> str | None:
    """Return words that give the work up."""
    return _matched(GIVING_UP, text, kind)


def seed_corrections(text: str) -> str | None:
    """Return the first of the seed's literal keywords anywhere in the raw text; for comparison only."""
    low = text.lower()
    # The raw text may be long, and looking for eight words is faster than for a pattern of them.
    likely = [word for word in SEED_CORRECTIONS if word in low]
    matches = [(at, word) for word in likely if (at := _find_word(low, word)) >= 0]
    return min(matches)[1] if matches else None


def _find_word(low: str, word: str) -> int:
    """Return where a word stands by itself in the text; -1 when it doesn't."""
    at = low.find(word)
    while at >= 0:
        end = at + len(word)
        if not is_of_word(low[at - 1 : at]) and not is_of_word(low[end : end + 1]):
            return at
        at = low.find(word, end)
    return -1


def _matched(pattern: Pattern, text: str, kind: str) -> str | None:
    span = _search(pattern, text, kind)
    return _head(text).text[slice(*span)].strip() if span else None


def _search(pattern: Pattern, text: str, kind: str) -> tuple[int, int] | None:
    searched = _head(text)
    if kind in UNSPOKEN or pattern.triggers.isdisjoint(searched.signs):
        return None
    return pattern.find(searched.low, searched.words)


_SMALL_WORDS = (
    "the and is it of for this that you to with be are not have should can we my your please what how why when from if"
    " but just there now than through without into then does which or at by"
)
"""Words that hardly another language in Latin letters shares."""
_ENGLISH = frozenset(_SMALL_WORDS.split())
_NOT_LATIN = re.compile(r"[^\x00-\u024f]")
FEW_LETTERS = 4
ENOUGH_WORDS = 12
"""A text of fewer words may do without any of the small words of its language."""


def is_english(text: str) -> bool:
    """Return False when the head is mostly in another script, or long without one of English's small words."""
    searched, _, words, _ = _head(text)
    if not searched.isascii():
        foreign = [c for c in _NOT_LATIN.findall(searched) if c.isalpha()]
        if foreign and 2 * len(foreign) > len([c for c in searched if c.isalpha()]) >= FEW_LETTERS:
            return False
    return len(words) < ENOUGH_WORDS or not words.isdisjoint(_ENGLISH)
