"""Words of people and of agents: reactions at the head of a turn, and phrases in an agent's messages.

People's reactions (`reactions.toml`, English only, design/signals.md#word-lists) are patterns, each guarded by words of
which at least one must occur; a head without any costs a set lookup. They find a tenth to a third of the corrections a
reader finds; most of their finds are corrections. An agent's messages are read as prose: one text without code and
quotations that keeps the places of its words. Phrases are literal; a pattern, if any, decides what must follow. Time is
linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import cache, lru_cache
from itertools import accumulate
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from agentsignals.model import UNSPOKEN, Absent, Event, Turn
from agentsignals.model.lazy import deferred_pattern, once
from agentsignals.words.text import count_tokens, hinted_language, is_of_word, language_of, lowered, word_lists


class Pattern:
    """A named reaction, for text in lower case: ignoring the case costs three times as much, to compile and to search.

    Its words stand where a clause begins, or anywhere. Without one of the `triggers` (lower-case words) among the words
    of the text it can't match; without one of `also`, not `anywhere`. Compiled when first needed: few texts need many.
    """

    def __init__(self, name: str, triggers: str, anywhere: str = "", clause: str = "", also: str = "") -> None:
        self.name = name
        self.triggers = frozenset(triggers.split())
        self.also = frozenset(also.split())
        self.clause = deferred_pattern(clause.replace("\n", "")) if clause else None
        self.anywhere = deferred_pattern(anywhere.replace("\n", "")) if anywhere else None

    def find(self, low: str, words: frozenset[str]) -> tuple[int, int] | None:
        """Return the span of the earliest match in a lowercased text, an opener before it ("ok, ") included: of
        `clause` where a clause begins, of `anywhere` at any place. `words`: all words of the text. Without one of
        `also` among them `anywhere` is not searched."""
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
_STOP = deferred_pattern(r"[.!?;\n]")
_BLANKS = deferred_pattern(r"\s*")
_OPENER = deferred_pattern(
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


_LISTS = word_lists("reactions")
CORRECTIONS = tuple(Pattern(**listed) for listed in _LISTS["corrections"])
FAILURE_REPORTS = tuple(Pattern(**listed) for listed in _LISTS["failure_reports"])
REJECTION, ACCEPTANCE, REVERT_ALL, GIVING_UP = (Pattern(**listed) for listed in _LISTS["others"])

WEAK = frozenset(("why_did_you", "instead_redirect"))
"""Corrections only when said while refusing: "why did you use a list here?" is no pushback in SWE-chat's codebook."""

NEW_INSTRUCTION = deferred_pattern(
    r"\b(?:instead|rather|let's|lets|use|try|make|do|keep|add|change|rename|move|write|only|should|want|need|must)\b"
)
"""A refusal that also says what to do is a correction (SWE-chat's codebook)."""

SEED_CORRECTIONS = ("no", "that's not", "wrong", "undo", "revert", "actually", "wait", "stop")
"""The seed's own keywords, kept for comparison. A quarter of their hits are corrections."""

ALL = (*CORRECTIONS, *FAILURE_REPORTS, REJECTION, ACCEPTANCE, REVERT_ALL, GIVING_UP)

REJECTED_THING = deferred_pattern(r"\s*(?:commits?|changes?|edits?|one|thing)\b")
"""Objects of a phrase that takes something back: "revert the last" *change*."""
QUOTED_DIALOG = deferred_pattern(r"^\s*(?:\d[.)] )?yes\b", re.MULTILINE)
"""A dialog's "Yes" line: a "No." behind it is the dialog's, not the person's."""


# The person's own words: a human turn without code, quotes and pasted text, and the reactions found in it.
#
# Reactions are looked for in the head only (design/signals.md#human-turns and design/signals.md#word-lists): behind
# it people paste logs, reviews and files, and words found there are not theirs.

HEAD_CHARS = 320
WINDOW_CHARS = 4000
"""A turn longer than this is cleaned this far first: a pasted log costs no more than a sentence."""
BULLET = " \u2022 "

_FENCE = deferred_pattern(r"```.*?(?:```|\Z)", re.S)
# U+2502 the terminal's frame; U+23BF, U+276F, U+23FA, U+25CF, U+2714, U+2717 what agents print before their own lines.
_PRINTED_MARKS = "\u2502\u23bf\u276f\u23fa\u25cf\u2714\u2717"
# Patterns of lines begin with the line break before them (`_without` puts one before the first line): a character that
# is always there is found several times faster than "^".
_QUOTED_LINE = deferred_pattern(rf"\n[ \t]*[>|{_PRINTED_MARKS}].*")
_LOG_LINE = re.compile(
    r"\n[ \t]*(?:\d{4}-\d\d-\d\d[T ]\d\d:|\[\d\d:|at \w[\w.$<>]*\(|File \"[^\"]+\", line|[EWI]\d{4} |--- FAIL|=== RUN"
    r"|\$ |#\d+ ).*"
)
_DIFF_LINE = deferred_pattern(
    r"\n(?:[+-]{1,3}(?=[ \t\w/{}#\"])|@@ |diff --git |index [0-9a-f]{7,}|\d{1,5}[ \t]+[+-] ).*"
)
_DIFF_LINES = 3
"""One or two lines that start with "-" are a person's list; three are a diff."""
_INLINE_CODE = deferred_pattern(r"`[^`\n]{1,200}`")
_URL = deferred_pattern(r"https?://\S+")
_STRAIGHT_QUOTE = deferred_pattern(r"\"[^\"\n]{1,200}\"")
_CURLY_QUOTE = deferred_pattern(r"“[^”\n]{1,200}”")
_PASTED = re.compile(
    r"\n\s*(?:(?:low|medium|high|critical) severity\b|location\s*:|additional locations"
    r"|(?:bug|issue|finding) \d+\s*[:.]|operation stopped by hook:|original prompt:"
    r"|usage:$|error:|panic:|traceback \(most recent|fatal:|npm err!)",
    re.M,
)
"""Third-party text (review bot, hook output, CI log), in lower case: from here on it is not the person who speaks."""

ACTIONS = frozenset(word_lists("requests")["actions"].split())


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
    words: frozenset[str]
    signs: frozenset[str]
    """Words that trigger a reaction: few or none, so that a test of them costs nothing."""


@lru_cache(maxsize=1024)
def _head(text: str) -> _Head:
    """Return the part of a text in which reactions are looked for: cleaned, without pasted text, with its words."""
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
    return _matched(ACCEPTANCE, text, kind)


_CHANGE = r"(?:touch|chang|edit|modif|alter|rewrit|creat|writ|add|refactor|rename|remov|delet)\w*"
_LIMITS = deferred_pattern(
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
    return _matched(REVERT_ALL, text, kind)


def giving_up(text: str, kind: str = "prompt") -> str | None:
    return _matched(GIVING_UP, text, kind)


def seed_corrections(text: str) -> str | None:
    """Return the first of the seed's literal keywords anywhere in the raw text; for comparison only."""
    low = text.lower()
    # The raw text may be long, and looking for eight words is faster than for a pattern of them.
    likely = [word for word in SEED_CORRECTIONS if word in low]
    matches = [(at, word) for word in likely if (at := _find_word(low, word)) >= 0]
    return min(matches)[1] if matches else None


def _find_word(low: str, word: str) -> int:
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
_NOT_LATIN = deferred_pattern(r"[^\x00-\u024f]")
OTHER = "other"
ENOUGH_WORDS = 12
"""A text of fewer words may do without any of the small words of its language."""


def language_spoken(text: str) -> str:
    """Return the language of a turn's head: a code, `other` for one that is not English and has no code, or empty where
    the head tells none.

    `other`: mostly in another script, long without a small word of English, or short without one and with letters that
    English lacks.
    """
    searched, _, words, _ = _head(text)
    language = language_of(searched)
    if not searched.isascii():
        foreign = [c for c in _NOT_LATIN.findall(searched) if c.isalpha()]
        if 2 * len(foreign) > len([c for c in searched if c.isalpha()]):
            return language if language not in (None, "en") else OTHER
    if language is not None:
        return language
    if not words.isdisjoint(_ENGLISH):
        return "en"
    if (hinted := hinted_language(searched)) is not None:
        return hinted
    is_other = len(words) >= ENOUGH_WORDS or any(c.isalpha() and not c.isascii() for c in searched)
    return OTHER if is_other else ""


def is_english(text: str) -> bool:
    """Return whether the head of a turn is in English, or tells no language."""
    return language_spoken(text) in ("", "en")


# -- Labels of one message by word rules. They miss most of what a reader finds, so their counts are lower bounds
# (`stats/validation`).

RULES_VERSION = 2
"""Version of the rules; raise it when a label would change."""


class RuleLabel(NamedTuple):
    """A label, the rule that decided, and the words it matched; both are empty where no rule did."""

    value: str
    rule: str = ""
    words: str = ""


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
    listed: dict[str, str] = word_lists("reactions")["sentiment"][sentiment]
    return {name: re.compile(pattern.replace("\n", "")) for name, pattern in listed.items()}


_WISHED = deferred_pattern(
    r"(?:\b(?:not|never|no|hardly|less|would|could|should|might|can|may|if|unless|until|isn't|aren't|wasn't|doesn't|don't|didn't|won't"
    r"|make|makes|making|ensure|sure|be|want|wants|needs?)\b|'d\b)(?: \w+){0,3} ?\Z"
)
"""Words before praise that deny it, or wish for it."""
_ASKED = deferred_pattern(r"[^.!?\n]{0,120}\?")
"""The rest of a question: whether something is good is asked, not said."""
_HEAT = deferred_pattern(r"!!|\?\?|\?!|!\?|\b(?:fuck|shit|damn|crap|bullshit)\w{0,9}\b")
"""Marks that make an objection NEGATIVE. Alone they mean nothing: swearing is how developers talk (agent-traces)."""
_ORDER = deferred_pattern(r"(?:commit|push|merge|ship|done)\b")
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


RULES_BY_TASK: dict[str, Callable[[Turn], RuleLabel]] = {
    "sentiment": sentiment_of,
    "pushback": pushback_of,
    "prompt_intent": intent_of,
}
"""The rules of each task that has some."""


def unmatched_class(task: str) -> str:
    """Return the label that the rules of a task give to a message that no pattern matches."""
    return RULES_BY_TASK[task](
        Turn(turn=0, kind="prompt", text="", n_tokens=0, timestamp=None, model=None, seq=0)
    ).value


_FENCED = deferred_pattern(r"(\n[ \t>]*```[^`\n]*)(?=\n|\Z)")
"""The line that opens a code block or closes one."""
_THINK_TAG = deferred_pattern(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_CODE_SPAN = deferred_pattern(r"`([^`\n]{1,200})`")
_CITED_LINE = deferred_pattern(r"\n[ \t]*>.*")
_BETWEEN = "\n\n"
FIRST_WORDS_CHARS = 500
"""Enough to tell a language by."""
_LOOKED_BACK = 40
"""Characters before a phrase in which what must stand before it is looked for."""
_SEQ = attrgetter("seq")

_WORDS = bytes(n if chr(n) in "abcdefghijklmnopqrstuvwxyz0123456789" else ord(" ") for n in range(256))
"""ASCII letters and digits stay, everything else becomes a blank."""
_NONE = frozenset[bytes]()


def prose(text: str, code: list[str], quoted: list[str]) -> str:
    """A message without code blocks, inline code, quoted lines and quotations; typographic apostrophes made plain.

    The code that was taken out is added to `code`, other people's words to `quoted`.
    """
    if "`" in text:
        if "```" in text:
            # What lies between the first fence and the second is code, and so on; the last may be open.
            parts = _FENCED.split("\n" + text)  # text, fence, code, fence, and again
            code += [part for n, part in enumerate(parts) if n % 4]
            text = "\n".join(parts[::4])[1:]
        pieces = _CODE_SPAN.split(text)  # text, code, and again
        code += pieces[1::2]
        text = " ".join(pieces[::2])
    if "<think>" in text:
        text = _cut(_THINK_TAG, text, quoted)
    if '"' in text:
        text = _cut(_STRAIGHT_QUOTE, text, quoted)
    if ">" in text:
        text = _cut(_CITED_LINE, "\n" + text, quoted)
    if not text.isascii():
        if "“" in text:
            text = _cut(_CURLY_QUOTE, text, quoted)
        text = text.replace("\u2019", "'")
    return text


def _cut(pattern: re.Pattern[str], text: str, removed: list[str]) -> str:
    """Replace each match by a blank, or by the line break it began with; matches are added to `removed`."""
    matches = pattern.findall(text)
    if not matches:
        return text
    removed += matches
    return pattern.sub(lambda match: "\n" if match[0].startswith("\n") else " ", text)


def words_among(words: frozenset[bytes], low: str) -> frozenset[bytes]:
    """Return those of the words that a lower-case text has. Words are runs of ASCII letters and digits."""
    if not low:
        return _NONE
    # Looking each word of the text up in a small set takes two thirds of the time of making a set of them.
    return words.intersection(low.encode("ascii", "replace").translate(_WORDS).split())


class Span(NamedTuple):
    """A named match in a `Prose`."""

    start: int
    end: int
    name: str


class Prose:
    """The words of several messages, each in its place. No match reaches from one message into the next."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = [e for e in events if e.text]
        self.code: list[str] = []
        """Code that was cut out, in pieces."""
        self.quoted: list[str] = []
        """Quotations, and thinking between tags, that were cut out."""
        self.parts = [prose(e.text or "", self.code, self.quoted) for e in self.events]
        self.text = _BETWEEN.join(self.parts)
        self._asked_for: frozenset[bytes] = frozenset()
        self._present: frozenset[bytes] = frozenset()
        self._spans: dict[Callable[[Prose], list[Span]], list[Span]] = {}
        self._starts = list(accumulate([len(part) + len(_BETWEEN) for part in self.parts], initial=0))

    @once
    def low(self) -> str:
        return lowered(self.text)

    def words(self, among: frozenset[bytes]) -> frozenset[bytes]:
        """Return those of the words that occur, cached by the set of words."""
        if among is not self._asked_for:
            self._asked_for, self._present = among, words_among(among, self.low)
        return self._present

    def index(self, at: int) -> int:
        return bisect_right(self._starts, at) - 1

    @once
    def language(self) -> str | None:
        """The language of its first words; None where they are too few."""
        return language_of(self.text[:FIRST_WORDS_CHARS])

    @once
    def tokens(self) -> dict[int | None, int]:
        """Tokens of each response's words, keyed by turn."""
        by_turn: dict[int | None, list[str]] = {}
        for event, part in zip(self.events, self.parts, strict=True):
            by_turn.setdefault(event.turn, []).append(part)
        return {turn: count_tokens(_BETWEEN.join(parts)) for turn, parts in by_turn.items()}

    def spans(self, find: Callable[[Prose], list[Span]]) -> list[Span]:
        """Return the matches of a function, computed once."""
        if find not in self._spans:
            self._spans[find] = find(self)
        return self._spans[find]

    def matches(self, spans: Iterable[Span]) -> Iterator[tuple[Event, str, str]]:
        """Yield matches as evidence: the message, the name, the words."""
        return ((self.event(span), span.name, self.wording(span)) for span in spans)

    def end_of(self, event: Event) -> int:
        n = bisect_left(self.events, event.seq, key=_SEQ)
        return self._starts[n] + len(self.parts[n].rstrip())

    def spans_at(self, event: Event, find: Callable[[Prose], list[Span]]) -> list[Span]:
        """Return the matches of a function in one of the messages."""
        spans = self.spans(find)
        n = bisect_left(self.events, event.seq, key=_SEQ)
        return spans[bisect_left(spans, (self._starts[n],)) : bisect_left(spans, (self._starts[n + 1],))]

    def spans_in(self, event: Event, phrases: Phrases, words: frozenset[bytes]) -> list[Span]:
        """Return the matches of phrases in one of the messages. `words`: the phrases' signs that the messages have."""
        if phrases.signs.isdisjoint(words):
            return []
        n = bisect_left(self.events, event.seq, key=_SEQ)
        start = self._starts[n]
        low = self.low[start : start + len(self.parts[n])]
        spans = phrases.find(low, words_among(phrases.signs, low))
        return [Span(start + s.start, start + s.end, s.name) for s in spans]

    def event(self, span: Span) -> Event:
        return self.events[self.index(span.start)]

    def wording(self, span: Span) -> str:
        return self.text[span.start : span.end]


class Phrase:
    """Words with a meaning, if the text after them matches `then` and the text before them `before` (both optional).

    Whole words only. `sign` is the rarest of the phrase's words: without it nothing is searched.
    """

    def __init__(self, words: str, then: str = "", sign: str = "", before: str = "") -> None:
        self.words = words
        self.sign = (sign or max(re.split(r"[^a-z0-9]+", words), key=len)).encode()
        self._following = deferred_pattern(then.replace("\n", "")) if then else None
        self._preceding = deferred_pattern(rf"(?:{before})\Z".replace("\n", "")) if before else None

    def spans(self, low: str) -> Iterator[tuple[int, int]]:
        at = low.find(self.words)
        while at >= 0:
            end = at + len(self.words)
            if not (is_of_word(low[at - 1 : at]) or is_of_word(low[end : end + 1])):
                match = self._following.match(low, end) if self._following is not None else None
                if match or self._following is None:
                    behind = self._preceding
                    preceding = None if behind is None else behind.search(low, max(0, at - _LOOKED_BACK), at)
                    if behind is None or preceding is not None:
                        yield preceding.start() if preceding else at, match.end() if match else end
            at = low.find(self.words, end)


class Phrases:
    """Phrases of one meaning. `allowed(low, start)` can refuse a place by the text before it."""

    def __init__(self, name: str, phrases: Iterable[Phrase], allowed: Callable[[str, int], bool] | None = None) -> None:
        self.name = name
        self._by_sign: dict[bytes, list[Phrase]] = {}
        for phrase in phrases:
            self._by_sign.setdefault(phrase.sign, []).append(phrase)
        self.signs = frozenset(self._by_sign)
        self._allowed = allowed

    def find(self, low: str, words: frozenset[bytes]) -> list[Span]:
        """Return matches in order; of two that overlap the first. `words` are those of the text."""
        matched = [
            (start, end)
            for sign in self.signs & words
            for phrase in self._by_sign[sign]
            for start, end in phrase.spans(low)
            if self._allowed is None or self._allowed(low, start)
        ]
        matched.sort(key=lambda span: (span[0], -span[1]))
        spans: list[Span] = []
        for start, end in matched:
            if not spans or start >= spans[-1].end:
                spans.append(Span(start, end, self.name))
        return spans


_SENTENCE_END = deferred_pattern(r"(?<!e\.g)(?<!i\.e)[.!?](?=\s)|\n")
_NO_END = ("?", "=", "/", "&")
"""Behind a question mark: another one, or the rest of an address."""
MOST_OF_A_QUESTION = 300
"""Characters of a sentence that are looked at before its question mark."""


def questions(low: str) -> Iterator[tuple[int, int]]:
    """Yield the sentences that end in a question mark, as (start, end), cut to their last 300 characters."""
    at = low.find("?")
    while at >= 0:
        following = low[at + 1 : at + 2]
        if not is_of_word(following) and following not in _NO_END:
            start = max(0, at - MOST_OF_A_QUESTION)
            start = max(start, low.rfind("\n", start, at) + 1)
            for stop in _SENTENCE_END.finditer(low, start, at):
                start = stop.end()
            if low[start : start + 2].strip() != "|":  # no heading of a table
                yield start, at + 1
        at = low.find("?", at + 1)


_IN_PATHS = bytes(n if chr(n).isalnum() or chr(n) in "._-/" else ord(" ") for n in range(128)).ljust(256)
_DEEPEST = 40
"""A path of more folders is nobody's."""


class Mentions:
    """The names of files and folders in some texts, found in linear time. Names are compared as written. A named folder
    covers everything in it; the folder of a named file covers only the files next to that file."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._files: set[str] = set()
        self._folders: set[str] = set()
        self._beside: set[str] = set()
        self.words = frozenset("\n".join(texts).encode("ascii", "replace").translate(_IN_PATHS).decode().split())
        """The words of the texts, split where names of files and folders end."""
        self.marked = [word for word in self.words if "." in word or "/" in word]
        """Words with a character that only names of files have."""
        for word in self.marked:
            if "/" not in word:
                self._files.add(word.strip("."))
                continue
            path = word.removeprefix("./").rstrip(".")
            head, _, name = path.strip("/").rpartition("/")
            if path.count("/") > _DEEPEST:
                continue
            if path.endswith("/") or "." not in name:
                self._folders.update(endings(path.strip("/")))
            if not path.endswith("/"):
                self._files.add(name)
                self._beside.update(endings(head))

    def names(self, names: Set[str]) -> bool:
        """Return whether one of these names of files (`names_of_file`) or folders (`endings`) is named."""
        return not (self.by_name.isdisjoint(names) and self._folders.isdisjoint(names))

    @once
    def by_name(self) -> frozenset[str]:
        """The words, those with a dot or slash without the marks around them, and without their folders."""
        plain = {word.strip("./") for word in self.marked}
        return self.words.union(plain, {word.rpartition("/")[2] for word in plain})

    def file(self, path: str) -> bool:
        """Return whether the file is named, with or without its folders."""
        return path.rpartition("/")[2] in self._files

    def place(self, path: str) -> bool:
        """Return whether the file, a folder it lies in, or another file of its folder is named."""
        folder = path.rpartition("/")[0]
        if self.file(path) or folder in self._beside:
            return True
        if folder.count("/") > _DEEPEST or not self._folders:
            return False
        while folder:
            if not self._folders.isdisjoint(endings(folder)):
                return True
            folder = folder.rpartition("/")[0]
        return False


_NAMING = deferred_pattern(r"[_-]|[a-z][A-Z]|\d")
"""A stem with one of these is a name, not a word that happens to be one ("main", "index")."""


def names_of_file(path: str) -> set[str]:
    """Return what a person may call a file: its path, its name, and the name's stem where that is no plain word."""
    name = path.rpartition("/")[2]
    stem = name.partition(".")[0]
    return {path, name, stem} if len(stem) > 3 and _NAMING.search(stem) is not None else {path, name}


def endings(folder: str) -> Iterator[str]:
    """Yield the names of a folder from anywhere above it: a/b/c, b/c, c."""
    while folder:
        yield folder
        folder = folder.partition("/")[2]


# -- Phrases of agents' messages, in English (`phrases.toml`; design/signals.md#word-lists). Each condition on what
# follows a phrase excludes a false match that was met in real sessions.

_CLAUSE_BEGINS = deferred_pattern(
    r"(?:^|[.!?\n:;(\u2014\u2013]|\s-)[\s*_#>)-]*"
    r"(?:(?:oh|ah|hm+|but|ok(?:ay)?|so|and|well|no|yes|oops)\b[ ,.!\u2014-]+){0,3}\Z"
)
_CLAUSE_CHARS = 32
_NOT_ASSUMING = ("instead of ", "without ", "not ", "n't ", "avoid ", "than ", "stop ", "never ")
_PHRASES = word_lists("phrases")


def _listed(family: str, name: str, allowed: Callable[[str, int], bool] | None = None) -> Phrases:
    groups: list[dict[str, Any]] = _PHRASES[family]
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
    lambda low, start: not start or _CLAUSE_BEGINS.search(low[max(0, start - _CLAUSE_CHARS) : start]) is not None,
)
"""The agent takes back what it said or did. They stand where a clause begins: "this actually works" is none."""
ASSUMPTIONS = _listed(
    "assumptions", "assumption", lambda low, start: not low.endswith(_NOT_ASSUMING, max(0, start - 12), start)
)
SEED_HEDGES, SEED_SELF_CORRECTIONS, SEED_ASSUMPTIONS = (_plain("seed", words) for words in _PHRASES["seeds"].values())
MARKERS = tuple(_plain(name, words) for name, words in _PHRASES["markers"].items())
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


OFFER, PREFERENCE, CONFIRMATION = (Question(name, forms) for name, forms in _PHRASES["asked"].items())


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
_SENTENCE_ENDS = deferred_pattern(r"[.!?](?=\s)|\n")


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
