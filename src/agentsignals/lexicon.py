"""The person's own words: a human turn without code, quotes and pasted text, and the reactions found in it.

Reactions are looked for in the head only (signals_notes sections 2 and 14): behind it people paste logs, reviews and
files, and words found there are not theirs.
"""

from __future__ import annotations

import re
from functools import lru_cache

from agentsignals import reactions
from agentsignals.reactions import Pattern

HEAD_CHARS = 320
WINDOW_CHARS = 4000
"""A turn longer than this is cleaned this far first: a pasted log costs no more than a sentence."""
BULLET = " \u2022 "

_FENCE = re.compile(r"```.*?(?:```|\Z)", re.S)
# U+2502 the terminal's frame; U+23BF, U+276F, U+23FA, U+25CF, U+2714, U+2717 what agents print before their own lines.
_PRINTED_MARKS = "\u2502\u23bf\u276f\u23fa\u25cf\u2714\u2717"
_QUOTED_LINE = re.compile(rf"^[ \t]*[>|{_PRINTED_MARKS}].*$", re.M)
_LOG_LINE = re.compile(
    r"^[ \t]*(?:\d{4}-\d\d-\d\d[T ]\d\d:|\[\d\d:|at \w[\w.$<>]*\(|File \"[^\"]+\", line|[EWI]\d{4} |--- FAIL|=== RUN"
    r"|\$ |#\d+ ).*$",
    re.M,
)
_DIFF_LINE = re.compile(
    r"^(?:[+-]{1,3}(?=[ \t\w/{}#\"])|@@ |diff --git |index [0-9a-f]{7,}|\d{1,5}[ \t]+[+-] ).*$", re.M
)
_INLINE_CODE = re.compile(r"`[^`\n]{1,200}`")
_URL = re.compile(r"https?://\S+")
_STRAIGHT_QUOTE = re.compile(r"\"[^\"\n]{1,200}\"")
_CURLY_QUOTE = re.compile(r"“[^”\n]{1,200}”")
_BLANKS = re.compile(r"[ \t]{2,}|\t")
_PASTED = re.compile(
    r"^\s*(?:(?:low|medium|high|critical) severity\b|location\s*:|additional locations|(?:bug|issue|finding) \d+\s*[:.]"
    r"|operation stopped by hook:|original prompt:|usage:$|error:|panic:|traceback \(most recent|fatal:|npm err!)",
    re.I | re.M,
)
"""Third-party text (review bot, hook output, CI log): from here on it is not the person who speaks."""


@lru_cache(maxsize=1024)
def clean(text: str) -> str:
    """A human turn without code, links, quotations and pasted terminal, log or diff lines."""
    if "```" in text:
        text = _FENCE.sub(" ", text)
    if ">" in text or "|" in text or (not text.isascii() and any(mark in text for mark in _PRINTED_MARKS)):
        text = _QUOTED_LINE.sub(" ", text)
    text = _LOG_LINE.sub(" ", text)
    # One or two lines that start with "-" are a person's list; three are a diff.
    if "\n" in text and len(_DIFF_LINE.findall(text)) >= 3:
        text = _DIFF_LINE.sub(" ", text)
    if "`" in text:
        text = _INLINE_CODE.sub(BULLET, text)
    if "http" in text:
        text = _URL.sub(" ", text)
    if '"' in text:
        text = _STRAIGHT_QUOTE.sub(BULLET, text)
    if "“" in text:
        text = _CURLY_QUOTE.sub(BULLET, text)
    if "  " in text or "\t" in text:
        text = _BLANKS.sub(" ", text)
    return text.replace("\u2019", "'").strip()


@lru_cache(maxsize=1024)
def head(text: str) -> str:
    """The first 320 characters of the cleaned text, up to where pasted third-party text begins."""
    kept = clean(text[:WINDOW_CHARS])
    if len(kept) < HEAD_CHARS and len(text) > WINDOW_CHARS:
        kept = clean(text)
    pasted = _PASTED.search(kept, 0, HEAD_CHARS + 80)
    return kept[: min(pasted.start(), HEAD_CHARS)] if pasted else kept[:HEAD_CHARS]


_WORD = re.compile(r"[a-z0-9]+")
_STEMS = (("noo", "no"), ("misunder", "misunder"))
"""Triggers that are no whole words: "nooo" counts as "no", and "misunderstood" as its stem."""
_CORRECTING = frozenset().union(*(p.triggers for p in reactions.CORRECTIONS))
NO_WITHIN_CHARS = 160
"""A "no" that far behind the start answers something else than the agent."""
_UNREAD = ("plan_handoff", "attachment")
"""Turns whose words the person approved or never wrote."""


@lru_cache(maxsize=1024)
def words(text: str) -> frozenset[str]:
    """The lower-case words of the head of a turn, as the triggers of the patterns name them."""
    low = head(text).lower()
    found = set(_WORD.findall(low))
    found.update(trigger for stem, trigger in _STEMS if stem in low)
    return frozenset(found)


@lru_cache(maxsize=1024)
def corrections(text: str, kind: str = "prompt") -> tuple[tuple[str, str], ...]:
    """The corrections in the head of a turn of that kind: (pattern, matched words) each."""
    said = words(text)
    if kind in _UNREAD or _CORRECTING.isdisjoint(said):
        return ()
    searched = head(text)
    found: list[tuple[str, str]] = []
    for pattern in reactions.CORRECTIONS:
        if pattern.triggers.isdisjoint(said) or (pattern.name in reactions.WEAK and kind != "rejection_feedback"):
            continue
        match = pattern.regex.search(searched)
        if match is None or (pattern.name == "no_initial" and _is_not_a_no(searched, match.start())):
            continue
        found.append((pattern.name, match.group().strip()))
    return tuple(found)


def _is_not_a_no(searched: str, at: int) -> bool:
    return at > NO_WITHIN_CHARS or reactions.QUOTED_DIALOG.search(searched, 0, at) is not None


def rejection(text: str, kind: str = "prompt") -> str | None:
    """The words with which a turn refuses or takes back what was done, without saying what to do instead."""
    found = _search(reactions.REJECTION, text, kind)
    if found is None:
        return None
    searched = head(text)
    named = reactions.REJECTED_THING.match(searched, found.end())
    rest = searched[: found.start()] + " " + searched[named.end() if named else found.end() :]
    return None if reactions.NEW_INSTRUCTION.search(rest) else found.group().strip()


def failure_report(text: str, kind: str = "prompt") -> str | None:
    """The words that say the result does not work."""
    return _matched(reactions.FAILURE_REPORT, text, kind)


def acceptance(text: str, kind: str = "prompt") -> str | None:
    """The words of praise, thanks, or a bare order to commit."""
    return _matched(reactions.ACCEPTANCE, text, kind)


def revert_all(text: str, kind: str = "prompt") -> str | None:
    """The words that want everything taken back."""
    return _matched(reactions.REVERT_ALL, text, kind)


def seed_corrections(text: str) -> str | None:
    """The first of the seed's literal keywords anywhere in the raw text; for comparison only."""
    found = reactions.SEED_CORRECTION.search(text.lower())
    return found.group() if found else None


def _matched(pattern: Pattern, text: str, kind: str) -> str | None:
    found = _search(pattern, text, kind)
    return found.group().strip() if found else None


def _search(pattern: Pattern, text: str, kind: str) -> re.Match[str] | None:
    if kind in _UNREAD or pattern.triggers.isdisjoint(words(text)):
        return None
    return pattern.regex.search(head(text))


_SMALL_WORDS = (
    "the and is it of for this that you to with be are not have should can we my your please what how why when from if"
    " but just there now than through without into then does which or at by"
)
"""Words that hardly another language in Latin letters shares."""
_ENGLISH = frozenset(_SMALL_WORDS.split())
FEW_LETTERS = 4
ENOUGH_WORDS = 12
"""A text of fewer words may do without any of the small words of its language."""


@lru_cache(maxsize=1024)
def is_english(text: str) -> bool:
    """False when the head is mostly in another script, or long without one of English's small words."""
    searched = head(text)
    if not searched.replace(BULLET.strip(), "").isascii():
        letters = [c for c in searched if c.isalpha()]
        # U+024F ends the Latin blocks.
        if sum(c > "\u024f" for c in letters) * 2 > len(letters) >= FEW_LETTERS:
            return False
    said = words(text)
    return len(said) < ENOUGH_WORDS or not said.isdisjoint(_ENGLISH)
