"""Judges words near a word for a secret by what they look like and what stands around them, whatever the grammar.

Rules know places where a secret stands. A writer who uses another place is met here: each word with a digit or a sign,
on a line that speaks of secrets or the line below one, gets a score, a sum of weights. The weights (`scored.json`) are
a logistic regression on the made-up forms of the tests against words of real traces, where nothing is a secret:
`python -m benchmarks.secret_words FOLDER` fits them and tells what they find of writers who were left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from agentsignals.model.lazy import deferred_pattern
from agentsignals.redaction.values import (
    LEAST_CHARS,
    Present,
    Span,
    alternates,
    has_mask,
    is_public,
    is_random,
    is_rare,
    is_strong,
    is_variable,
    looks_chosen,
    looks_drawn,
    looks_typed,
    named,
    places,
    speaks_of_other,
)
from agentsignals.shell.tokens import names

_T = r"[^\s\"'`<>()\[\]{},;|\\]"
_TOKEN = deferred_pattern(rf"(?<!{_T})[^\s\"'`<>()\[\]{{}},;|\\0-9!@#$%^&*+?~]*+[0-9!@#$%^&*+?~]{_T}*+")
"""A word with a digit or a sign."""
_PLAIN = deferred_pattern(r"(?<![\w.$@/\\:+-])[A-Za-z](?:[A-Za-z]|[._-](?=[A-Za-z])){5,40}(?![\w(./\\@+-]|\s?[=:])")
"""A word without a digit or a sign, which may be a password where one is spoken of."""
_BOUND = deferred_pattern(r"([\w.-]+)[\"'`]?\s{0,3}[:=]{1,2}>?\s{0,3}[\"'`]?\Z")
_PROSE_BEFORE = deferred_pattern(r"(?:\A|\s)(?!-)[^\W\d_]+\s\(?\Z|[(]\Z")
_PROSE_AFTER = deferred_pattern(r"\s[^\W\d_]{2,}")
"""The name that a value is given to, before it; a sentence that leads to a word, and one that goes on after it."""
_HEAD = deferred_pattern(
    r"-{1,2}[\w.-]{1,60}=|[\w.-]{1,60}:?=(?!=*\Z)|-[a-zA-Z](?=[^-]{5})|[\w.@-]{1,40}:(?!//|\Z)|[*_:=@/#&?$!~+^%-]{1,3}(?=\w)"
)
_TAIL = deferred_pattern(r"(?:\*\*|__|[.:?_=])+\Z")
_HOST = deferred_pattern(r"@[\w.-]+(?:[:/].*)?\Z")
"""What stands before a value within its word, and after it."""
_NO_VALUE = deferred_pattern(
    r"://|\*\*\*|\.\.\.|&\w+=|\A(?:toolu|msg|req|resp|call)_|\A(?i:arn|sha\d{1,3}|md5)[:-]|\A(?:Ctrl|Cmd|Alt|Shift|Meta)\+"
)
"""What an address, an id or a masked value has in it, and no secret."""
_MOST_CHARS = 63
_FAR_WORDS = 8
"""So many words before a plain word, in another clause, speak of another thing."""
_LINE_CHARS = 160
"""So far before and behind a word for a secret a line is read, and as much of the next line."""
_BEFORE_CHARS, _AFTER_CHARS = 100, 60
_HEX = deferred_pattern(r"(?:0x)?[0-9a-fA-F-]+")
_LEAST_HEX = 16
_PREFIX = deferred_pattern(r"[a-z]{2,9}[_-](?=[0-9A-Za-z]{8,}\Z)")
_NAME = deferred_pattern(r"[^\W_][\w.-]*")
_WORD = deferred_pattern(r"[^\W\d_]+")
_PARTS = deferred_pattern(r"[A-Za-z][a-z]{2,}")
_KINDS = deferred_pattern(r"[A-Z]+|[a-z]+|\d+|[^A-Za-z\d]+")
_LAST_DIGITS = deferred_pattern(r"\d+\Z")
_IS_NAME = deferred_pattern(r"[\"'`]?\s?[:=]")
_OPTION = deferred_pattern(r"(?:\A|\s)(--?[\w-]+)[= ][\"']?\Z")
_NUMBERED = deferred_pattern(r"(?=[^\d]{7})[A-Za-z]{3,}(?:[._-][A-Za-z]{3,})*\d{1,4}")
_OF_RULES = names(
    "tresor garage code codice código kod код safe locker keybox static shared key instead lock addresses keypad tan"
)
"""Words that only rules look for."""
_LENGTHS = (8, 12, 17, 24, 48)
_NEAR = (1, 2, 3, 4, 6, 6, 9, 9, 9)
"""Distances of names in words, in steps."""
_NEXT_NAMES = 6


class _Weights(msgspec.Struct):
    """`scored.json`: what a fact about a word adds to its score."""

    bias: float
    least: float
    """The score from which on a word is masked."""
    least_of_words: float
    """The same of a word without a digit or a sign that programs hardly use."""
    of: dict[str, float]


WEIGHTS = msgspec.json.decode(Path(__file__).with_name("scored.json").read_bytes(), type=_Weights)


class Candidate(NamedTuple):
    """A word that may be a secret: its place, the class of its look, and facts about it."""

    start: int
    end: int
    look: str
    facts: tuple[str, ...]


def secrets(text: str, low: str, parts: Present) -> Iterator[Span]:
    """Yield the words whose score says that they are secrets. `low`: the text in lower case; `parts`: the parts of
    words that it contains."""
    of = WEIGHTS.of
    for found in candidates(text, low, parts):
        score = WEIGHTS.bias + sum(of.get(fact, 0.0) for fact in found.facts)
        least = WEIGHTS.least_of_words if found.look == "word" else WEIGHTS.least
        if score + sum(of.get(fact, 0.0) for fact in around(text, found)) > least:
            near = text[max(0, found.start - _LINE_CHARS) : found.end + _LINE_CHARS]
            if not has_mask(near):  # whoever masked it has judged the words beside
                yield Span(found.start, found.end, "secret")


def candidates(text: str, low: str, parts: Present) -> Iterator[Candidate]:
    """Yield the words to judge: on lines with a word for a secret, a login or a call that takes one, and below."""
    seen = done = 0
    of_passwords = [name for name in parts.names if named(name) in ("password", "hint")]
    for at, end in places(low, parts.names | parts.commands | parts.calls | parts.logins | parts.texts - _OF_RULES):
        if at < seen:
            continue
        start = max(text.rfind("\n", max(0, at - _LINE_CHARS), at) + 1, at - _LINE_CHARS, done, 0)
        line = text.find("\n", end, end + _LINE_CHARS)
        seen = line = line if line >= 0 else end + _LINE_CHARS
        done = text.find("\n", line + 1, line + _LINE_CHARS)
        done = done if done >= 0 else line + _LINE_CHARS
        if any(low.find(name, start, done) >= 0 for name in of_passwords):
            for word in _PLAIN.finditer(text, start, done):
                if is_rare(word[0]) and _is_value(text, *word.span()):
                    yield Candidate(*word.span(), "word", ("look word", *_facts(word[0], "word")))
        for token in _TOKEN.finditer(text, start, done):
            is_cut = token.end() == done and not text[done : done + 1].isspace()
            is_quoted = text[token.start() - 1 : token.start()] in ('"', "'")
            if (
                LEAST_CHARS <= len(token[0]) <= _MOST_CHARS * (1 + is_quoted)
                and not is_cut
                and (core := _core(token[0]))
            ):
                first, last = token.start() + core[0], token.start() + core[1]
                if core[2][0] != "word" or _is_value(text, first, last):
                    yield Candidate(first, last, *core[2])


def _is_value(text: str, start: int, end: int) -> bool:
    """Return whether a plain word may be what a name or a sentence gives: no part of a quoted text or of a sentence
    that goes on, no value of another name."""
    before = text[max(0, start - _BEFORE_CHARS) : start].rpartition("\n")[2]
    after = text[end : end + _BEFORE_CHARS].partition("\n")[0]
    if before[-1:] in ("'", '"', "`") and before[-1:] != after[:1]:
        return False
    if before.rstrip().endswith(">>") or ((bound := _BOUND.search(before)) and named(bound[1]) is None):
        return False
    is_far = before.count(" ") > _FAR_WORDS and text[start:end].isalpha() and "," in before
    if _PROSE_BEFORE.search(before) and (is_far or _PROSE_AFTER.match(after)):
        return False
    return not before.strip() or any(map(named, _NAME.findall(before + after)))


@lru_cache(maxsize=65536)
def _core(token: str) -> tuple[int, int, tuple[str, tuple[str, ...]]] | None:
    """Return the bounds of the value in a word such as `NAME=VALUE`, `-pVALUE`, `USER:VALUE@HOST`, and its look. None
    if it can be no secret."""
    start, end = 0, len(token)
    while head := _HEAD.match(token, start):
        start = head.end()
    if (host := _HOST.search(token, start)) and ":" in token[:start] and host.start() - start >= LEAST_CHARS:
        end = host.start()
    if tail := _TAIL.search(token, start, end):
        end = tail.start()
    value = token[start:end]
    if len(value) < LEAST_CHARS or any(map(is_variable, (token, value))) or any(map(_NO_VALUE.search, (value, token))):
        return None
    look = _look(value)
    return (start, end, (look, tuple(_facts(value, look)))) if look else None


def _look(value: str) -> str | None:
    """Return the class of what a value looks like, None for what is a path, a version, a number or a word."""
    if _HEX.fullmatch(value):
        is_number = len(value) < _LEAST_HEX or value.isdigit()
        return None if is_number else "uuid" if is_public(value) else "hex"
    if is_public(value):
        return None
    if max(value) > "\u2e80":  # a sentence of a script without blanks
        return None
    looks = (("strong", is_strong), ("drawn", looks_drawn), ("chosen", looks_chosen), ("typed", looks_typed))
    look = next((name for name, has_look in looks if has_look(value)), None)
    is_numbered = look is None and _NUMBERED.fullmatch(value) is not None and is_rare(value.rstrip("0123456789"))
    return "word" if is_numbered else look


def _facts(value: str, look: str) -> Iterator[str]:
    """Yield facts about a value alone."""
    yield f"look {look}"
    n = len(value)
    if look == "hex":
        yield f"hex {n if n in (32, 40, 64) else 'other'}"
    if is_random(value, 12):
        yield "random"
    if alternates(value):
        yield "alternates"
    if prefix := _PREFIX.match(value):
        yield f"prefix {prefix[0]}"
    kinds = (str.isupper, str.islower, str.isdigit, lambda c: c in "!@#$%^&*+?~")
    yield "kinds " + "".join(name for name, kind in zip("ULDS", kinds, strict=True) if any(map(kind, value)))
    yield f"chars {sum(n >= least for least in _LENGTHS)}"
    for sign in {*value} & {*"._-/=:@+%#$!&?*~^"}:
        yield f"has {sign}"
    if digits := _LAST_DIGITS.search(value):
        yield f"ends in digits {min(4, len(digits[0]))}"
    yield f"begins {'upper' if value[0].isupper() else 'digit' if value[0].isdigit() else 'lower'}"
    yield f"words {min(3, len(_PARTS.findall(value)))}"
    yield f"changes {min(5, 10 * sum(1 for _ in _KINDS.finditer(value)) // n)}"
    if 2 * len({*value}) < n:
        yield "repeats"


def around(text: str, found: Candidate) -> set[str]:
    """Return facts about the place of a word: the names before and behind it, what encloses it, the words near it."""
    start, end, look, _ = found
    above, _, before = text[max(0, start - _BEFORE_CHARS) : start].rpartition("\n")
    after = text[end : end + _AFTER_CHARS].partition("\n")[0]
    facts: set[str] = set()
    nearest = ""
    for distance, name in zip(_NEAR, reversed(_NAME.findall(before)), strict=False):
        if word := named(name):
            is_other = speaks_of_other(name.rpartition(".")[2].removeprefix("set"))
            said = f"{word} of another" if is_other else word
            facts.add(f"{said} before {distance}")
            nearest = nearest or said
    for name in () if nearest else reversed(_NAME.findall(above.rpartition("\n")[2])):
        if word := named(name):
            nearest = f"{word} above"
            break
    facts.add(f"{look} after {nearest}")
    for distance, name in zip(_NEAR, _NAME.findall(after)[:_NEXT_NAMES], strict=False):
        if (word := named(name)) and not speaks_of_other(name):
            facts |= {f"{word} behind {distance}", f"{look} and {word} behind" if not nearest else ""}
            break
    left, right = before[-1:], after[:1]
    if look == "word":
        facts |= {f"word {said}" for said in facts}
    sign = before.rstrip()[-1:]
    facts |= {f"sign {'a word' if sign.isalnum() else sign}", f"left {_of(left)}", f"right {_of(right)}"}
    if left and left in "\"'`" and left == right:
        facts |= {"quoted", f"quoted {look}", f"quoted after {nearest}"}
    if _IS_NAME.match(after):
        facts.add("is a name")
    if not before.strip() and not after:
        facts |= {"alone", f"alone after {nearest}"}
    if option := _OPTION.search(before):
        facts |= {f"option of {len(option[1].lstrip('-')) == 1}", f"option {look}", f"option {option[1].lower()}"}
    words = [word.lower() for word in _WORD.findall(before)]
    facts.update(f"next to {word}" for word in words[-1:])
    facts.update(f"beside {word}" for word in (*words[-8:], *map(str.lower, _WORD.findall(after)[:4])))
    facts.update(f"under {word.lower()}" for word in _WORD.findall(above)[-6:])
    return facts


def _of(sign: str) -> str:
    return "word" if sign.isalnum() else "blank" if sign.isspace() else sign
