"""An agent's messages as prose: one text without code and quotations that keeps the places of its words.

Phrases are literal, each tried only where one of its words occurs at all; a pattern, if any, decides what must follow.
Time is linear in the text, and most phrases cost a set lookup.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from itertools import accumulate
from operator import attrgetter
from typing import Any, NamedTuple

from agentsignals.model import Absent, Event
from agentsignals.model.lazy import deferred_pattern, once
from agentsignals.words.text import count_tokens, is_of_word, language_of, lowered, word_lists

_FENCE = re.compile(r"(\n[ \t>]*```[^`\n]*)(?=\n|\Z)")
"""The line that opens a code block or closes one."""
_THINK_TAG = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_INLINE_CODE = re.compile(r"`([^`\n]{1,200})`")
_STRAIGHT_QUOTE = re.compile(r"\"[^\"\n]{1,200}\"")
_CURLY_QUOTE = re.compile(r"“[^”\n]{1,200}”")
_QUOTED_LINE = re.compile(r"\n[ \t]*>.*")
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
            parts = _FENCE.split("\n" + text)  # text, fence, code, fence, and again
            code += [part for n, part in enumerate(parts) if n % 4]
            text = "\n".join(parts[::4])[1:]
        pieces = _INLINE_CODE.split(text)  # text, code, and again
        code += pieces[1::2]
        text = " ".join(pieces[::2])
    if "<think>" in text:
        text = _cut(_THINK_TAG, text, quoted)
    if '"' in text:
        text = _cut(_STRAIGHT_QUOTE, text, quoted)
    if ">" in text:
        text = _cut(_QUOTED_LINE, "\n" + text, quoted)
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
        """Return the matches of phrases in one of the messages. `words`: the signs of the phrases that the messages
        have."""
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


_SENTENCE_END = re.compile(r"(?<!e\.g)(?<!i\.e)[.!?](?=\s)|\n")
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


_NAMING = re.compile(r"[_-]|[a-z][A-Z]|\d")
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

_CLAUSE_BEGINS = re.compile(
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
