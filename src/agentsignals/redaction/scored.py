"""Judges values near a word for a secret by what they look like and what stands around them, whatever the grammar.

Rules know places where a secret stands. A writer who uses another place is met here: each word, phrase and code of
digits on a line that speaks of secrets, logins or commands that take one, and on the lines below it, gets a score. A
score above `least` masks; one below `veto` takes back what a rule masked. The scores are of a net of one hidden layer
over facts of a value and its place (`scored.msgpack`), fitted on made-up forms (`benchmarks/secret_forms.jsonl` and
those of the tests) against values of real traces, where nothing is a secret. `python -m benchmarks.secret_words FOLDER`
fits it and tells what it finds of writers who were left out.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import compress, groupby
from operator import mul
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple, TypeVar

import msgspec

from agentsignals.model.lazy import deferred_pattern
from agentsignals.redaction import values
from agentsignals.redaction.values import (
    Present,
    Span,
    alternates,
    common,
    has_mask,
    is_random,
    named,
    places,
    speaks_of_other,
)
from agentsignals.shell.tokens import names

_TOKEN = deferred_pattern(r"[^\s\"'`<>()\[\]{},;|\\「」«»“”„、，。：；（）]{4,200}")
_PHRASE = deferred_pattern(r"([\"'`])((?:(?!\1)[^\n\\]){5,80})\1")
_REST = deferred_pattern(
    r"[:=>ts](?:(?<=[:=])|(?<=[-=]>)|(?<=\bis)|(?<=\b[ie]st))[ \t]+"
    r"([^\s:=\"'`<>{}\[\]()|][^\n:=\"'`<>{}\[\]()|]{3,60}?[^\s:=\"'`<>{}\[\]()|,;.])"
    r"[ \t]*(?=\n|\Z|[/(,;.]\s|[.]\Z)"
)
"""Words after a name, to the end of the line or the clause."""
_QUOTED = deferred_pattern(r"([\"'])(?=[^\"'\n]*[,;|()<>{}\[\]])([^\s\"'\\]{5,60})\1")
_GROUPS = deferred_pattern(r"\d(?<![\w.:/-].)(?:\d{1,3}(?:[ -]\d{2,4}){1,3}|\d{3,7}[#*]?)(?![\w:/-]|\.\d)")
"""A code of digits, in groups."""
_ADDRESS = deferred_pattern(
    r"://[^/\s:@]{0,60}:([^/\s@]{4,80})@|[?&;]?[\w.\[\]%-]{1,40}=([^&;\s#]{4,200})|/([\w:=~.-]{12,100})(?=[/?#]|\Z)"
)
"""In an address the password of a user, the value of a parameter, a long part of the path."""
_IN_SIGNS = (("phrase", _PHRASE, 2), ("quoted", _QUOTED, 2), ("rest", _REST, 1))
_TELEPHONE = deferred_pattern(r"\d{9,13}")
_OF_WORDS = frozenset(("phrase", "rest"))
_MARK = deferred_pattern(r"[0-9!@#$%^&*+?~]")
_HEAD = deferred_pattern(
    r"-{1,2}[\w.-]{1,60}=|[\w.-]{1,60}:?=(?!=*\Z)|-[a-zA-Z](?=[^-]{5})|[\w.@-]{1,40}:(?!//|\Z)"
    r"|[*_:=@/#&?$!~+^%-]{1,3}(?=\w)"
)
_TAIL, _TAIL_SIGNS = deferred_pattern(r"(?:\*\*|__|[.:?_=])+\Z"), "*_.:?="
"""What stands before a value within its word, and after it."""
_BOUND = deferred_pattern(r"([^\W\d][\w.@-]*)[\"'`\])]{0,2}\s{0,3}(:?=>?|:|\|\||->|→)\s{0,3}[\"'`(\[]{0,2}\Z")
"""The name that a value is given to, and what joins them."""
_BINDS = (":", "=", ">", "|", "→")
_SAID = deferred_pattern(
    r"((?:[^\W\d]\w* )?[^\W\d][\w.-]*)(?:[\"'`*]{0,2} (?:is|ist|est|es|to be|[|]) [\"'`*]{0,2}|[> \t])\Z"
)
_OPTION = deferred_pattern(r"(?:\A|\s)(--?[A-Za-z][\w.-]*|/[a-z]+)[= :]?[\"']?\Z")
_WORD = deferred_pattern(r"[^\W\d_]+")
_NAME = deferred_pattern(r"[^\W_][\w.-]*")
_COMMAND_ENDS = deferred_pattern(r"[|&;]|\$\(")
_PROMPTS = frozenset(("$", "#", ">", "+", ">>>", "C:\\>", "sudo", "time", "env", "export", "nohup"))
_CODE, _SIGNS_OF_CODE = deferred_pattern(r"[({;]"), deferred_pattern(r"[={}();]")
_CELLS = deferred_pattern(r"\s{2,}")
_PREFIX = deferred_pattern(r"[A-Za-z]{2,9}[_-]")
_YEAR, _LAST_DIGITS = deferred_pattern(r"(?:19|20)\d\d\Z"), deferred_pattern(r"\d+\Z")
_HEX, _LEAST_HEX = deferred_pattern(r"(?:0x)?[0-9a-fA-F-]+"), 16
_LEAST_CHARS = 4
_LEAST_WORD = 5
_LINE_CHARS = 200
_LINES_BELOW = 3
_NEAR_CHARS = 300
"""So far before and behind a value its line is read, and the two above it."""
_REPEAT_CHARS = 2_000
_DRAWN_CHARS = 12
_RUN = deferred_pattern(r"(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9+/]{16,}={0,2}")
_JOINED_CHARS = 90
"""So near to a value its name or its option is."""
_MOST_WORDS = 8
_TOLD_WORDS, _TOLD_PLAIN = 7, 3
"""So many words before one a name of a secret stands: before a rare word, and one of programs."""
_OPTION_CHARS = 4
"""An option of one letter, a sign and a quote."""
_FREQUENT = frozenset(("content", "kind", "uint", "instead", "default"))
"""Words that rules look for, and that stand anywhere."""
_SHORT, _OF_NAMES = 4, frozenset(("pass", "pwd", "psk", "pw", "key", "auth"))
"""A shorter word counts by itself, but for those that names end in."""
_LENGTHS = (5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 33, 40, 41, 64, 65, 100)
_NEAR = (1, 2, 3, 4, 6, 6, 9, 9, 9)
"""Distances of names in words, in steps."""
_NEXT_NAMES = 6


class Candidate(NamedTuple):
    """A value that may be a secret: its place, how it was found, and the rules that would mask it."""

    start: int
    end: int
    way: str
    rules: tuple[tuple[Span, str], ...] = ()


def candidates(text: str, low: str, parts: Present, rules: Sequence[tuple[Span, str]] = ()) -> list[Candidate]:
    """Return the values to judge, on lines with a word for a secret, a login or a command that takes one, and below.

    `low`: the text in lower case; `parts`: the parts of words that it contains; `rules`: spans and the rules that would
    mask them, each of which is judged too."""
    found: dict[tuple[int, int], str] = {}

    def add(start: int, end: int, way: str) -> None:
        if not has_mask(text[max(0, start - 1) : end + 1]):
            found.setdefault((start, end), way)

    of_names = parts.names | parts.calls | parts.logins
    lines = [(*line, True, False) for line in _lines(text, low, of_names, _LINES_BELOW)]
    lines += [(*line, True, True) for line in _lines(text, low, parts.commands, 0)]
    lines += [(*line, False, False) for line in _lines(text, low, parts.texts - _FREQUENT, 1)]
    for start, end, is_named, is_command in lines:
        names = [may.start() for may in values.MAY_NAME.finditer(low, start, end)] if is_named else []
        for token in _TOKEN.finditer(text, start, end):
            for first, last, way, needed in _in_word(token[0]):
                at = token.start()
                if needed <= is_named or (
                    is_named
                    and needed >= _TOLD_PLAIN
                    and ((is_command and needed == _TOLD_WORDS) or _is_told(text, start, at + first, needed, names))
                ):
                    add(at + first, at + last, way)
        stop = min(end + 1, len(text))
        for way, pattern, n in _IN_SIGNS if is_named else ():
            for part in pattern.finditer(text, start, stop):
                words = part[n].split(" ")
                is_phrase = 1 < len(words) <= _MOST_WORDS and words[0] and words[-1]
                if (way == "quoted" or is_phrase) and not values.stands_for_a_value(part[n]):
                    add(*part.span(n), way)
        for code in _GROUPS.finditer(text, start, end):
            add(*code.span(), "digits")
    if not rules:
        return [Candidate(start, end, way) for (start, end), way in found.items()]
    near = _blocks(found)
    for span, _ in rules:
        if not any(_is_of(span, place) for place in _within(near, span)):
            found[span.start, span.end] = "rule"
    masked = _blocks((span.start, span.end, rule) for span, rule in rules)
    return [
        Candidate(
            start,
            end,
            way,
            tuple((Span(a, b, ""), rule) for a, b, rule in _within(masked, (start, end)) if a < end and start < b),
        )
        for (start, end), way in found.items()
    ]


_BLOCK_CHARS = 256
_Place = TypeVar("_Place", bound=tuple[Any, ...])


def _blocks(spans: Iterable[_Place]) -> dict[int, list[_Place]]:
    """Return spans by the blocks of text that they touch, so that what overlaps is found without a look at all."""
    found: dict[int, list[_Place]] = defaultdict(list)
    for span in spans:
        for block in range(span[0] // _BLOCK_CHARS, span[1] // _BLOCK_CHARS + 1):
            found[block].append(span)
    return found


def _within(blocks: dict[int, list[_Place]], span: tuple[Any, ...]) -> set[_Place]:
    return {one for n in range(span[0] // _BLOCK_CHARS, span[1] // _BLOCK_CHARS + 1) for one in blocks.get(n, ())}


def _is_of(span: Span, place: tuple[int, int]) -> bool:
    """Return whether a candidate is what a rule would mask: neither has much that the other has not."""
    shared = min(span.end, place[1]) - max(span.start, place[0])
    return shared * 10 >= 7 * (span.end - span.start) and shared * 3 >= 2 * (place[1] - place[0])


def _lines(text: str, low: str, words: Iterable[str], below: int) -> list[tuple[int, int]]:
    """Return the bounds of the lines to read, disjoint: those with one of the words, and some below each."""
    found: list[tuple[int, int]] = []
    for at, end in places(low, words):
        if (
            end - at <= _SHORT
            and low[at:end] not in _OF_NAMES
            and (low[at - 1 : at].isalpha() or low[end : end + 1].isalpha())
        ):
            continue
        start = text.rfind("\n", max(0, at - _LINE_CHARS), at) + 1 or max(0, at - _LINE_CHARS)
        for _ in range(below + 1):
            line = text.find("\n", end, end + _LINE_CHARS)
            end = min(len(text), line if line >= 0 else end + _LINE_CHARS) + 1  # noqa: PLW2901  (line by line)
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end - 1, found[-1][1]))
        else:
            found.append((start, end - 1))
    return found


@lru_cache(maxsize=16384)
def _in_word(word: str) -> tuple[tuple[int, int, str, int], ...]:
    """Return the values in a word: their bounds, how they were found, and what counts one: nothing (0), a line with a
    name (1), a name among so many words before it."""
    found: list[tuple[int, int, str, int]] = []
    if "://" in word or "&" in word:
        for part in _ADDRESS.finditer(word):
            n = part.lastindex or 0
            if n == 1 or not _is_plain(part[n]):
                found.append((*part.span(n), f"url{n}", 0))
    else:
        first, last = _core(word)
        value = word[first:last]
        is_marked = _MARK.search(value) is not None
        if len(value) < _LEAST_CHARS or values.is_file(value) or (value.isdigit() and _TELEPHONE.fullmatch(value)):
            return ()
        if not is_marked and value.isascii():
            if len(value) >= _LEAST_WORD:
                found.append((first, last, "word", _TOLD_PLAIN if _is_plain(value) else _TOLD_WORDS))
        else:
            found.append((first, last, "token", not is_marked))
            if value.count("/") in (1, 2):
                n = value.index("/")
                host = value.find("@", n)
                if n >= 2 and not _is_plain(value[n + 1 :]):
                    found.append((first + n + 1, first + (host if host >= 0 else len(value)), "slash", not is_marked))
    return tuple(
        one for one in found if one[1] - one[0] >= _LEAST_CHARS and not values.stands_for_a_value(word[one[0] : one[1]])
    )


def _core(word: str) -> tuple[int, int]:
    """Return the bounds of the value in a word such as `NAME=VALUE`, `-pVALUE`, `USER:VALUE@HOST`."""
    start, end = 0, len(word)
    while (head := _HEAD.match(word, start)) and end - head.end() >= _LEAST_CHARS:
        start = head.end()
    host = word.rfind("@", start)
    if host - start >= _LEAST_CHARS and ":" in word[:start]:
        end = host
    if (
        word[end - 1] in _TAIL_SIGNS
        and (tail := _TAIL.search(word, start, end))
        and tail.start() - start >= _LEAST_CHARS
    ):
        end = tail.start()
    return start, start + len(word[start:end].rstrip(".,:;?"))


def _is_plain(value: str) -> bool:
    """Return whether a value is only words that programs use, as names of things are."""
    if any(map(str.isdigit, value)) or not value.isascii() or not {*"!@#$%^&*+?~"}.isdisjoint(value):
        return False
    if value.isalpha():
        return value.lower() in common()
    return all(part.lower() in common() for part in values.words_in(value) if len(part) > 2)


def _is_told(text: str, first: int, at: int, most: int, names: Sequence[int]) -> bool:
    """Return whether a name of a secret stands among so many words before a place, or an option of one letter; of a
    rare word also whether it stands in quotes, in a cell or at the beginning of its line. `names`: where names may
    begin to tell."""
    first = max(first, at - _JOINED_CHARS)
    begin = text.rfind("\n", first, at) + 1 or first
    if most == _TOLD_WORDS:
        line = text[begin:at]
        if not line.strip() or line[-1] in "\"'>" or line.rstrip()[-1] in "|;" or line[-2:] == "  ":
            return True
    n = bisect_left(names, begin)
    if n < len(names) and names[n] < at and any(map(named, _NAME.findall(text[begin:at])[-most:])):
        return True
    signs = text[max(first, at - _OPTION_CHARS) : at]
    option = _OPTION.search(text[first:at]) if "-" in signs or "/" in signs else None
    return option is not None and len(option[1]) == 2


# -- facts ------------------------------------------------------------------------------------------------------------

_TESTS = names(
    "is_known is_public is_strong is_rare_word has_all_kinds looks_chosen looks_typed looks_given says_of_it"
)
"""Names of tests of `values` that are facts where they hold."""
_SIGNS = frozenset("!@#$%^&*+?~")
_JOINING = frozenset("._-/=:@+%#$!&?*~^ ")
_RANDOM_CHARS = 8


@lru_cache(maxsize=4096)
def _of_form(value: str) -> tuple[str, ...]:
    """Return facts about the characters and the words of a value."""
    kinds = value.translate(_KINDS)
    shape = "".join(kind for kind, _ in groupby(kinds[:60]))
    told = [f"len {bisect_right(_LENGTHS, len(value))}", f"shape {shape[:7]}", f"changes {min(8, len(shape))}"]
    words = [part.lower() for part in values.words_in(value) if len(part) > 2]
    of_programs = sum(word in common() for word in words)
    share = "none" if not words else "all" if of_programs == len(words) else "some" if of_programs else "no"
    told += [f"common {share}", f"words {min(5, len(words))}", f"blanks {min(5, value.count(' '))}"]
    told += [f"has {sign}" for sign in {*value} & _JOINING]
    has = ("A" in kinds, "a" in kinds, "9" in kinds, not _SIGNS.isdisjoint(value), not value.isascii())
    told.append("kinds " + "".join(compress("ULDSX", has)))
    if digits := _LAST_DIGITS.search(value):
        told.append(f"ends digits {min(5, len(digits[0]))}")
    if _YEAR.search(value):
        told.append("ends year")
    if prefix := _PREFIX.match(value):
        told.append(f"pre {prefix[0].lower()}")
    if is_random(value, _RANDOM_CHARS):
        told += ["random8", *(("random12",) if len(value) >= _DRAWN_CHARS else ())]
    if alternates(value):
        told.append("alternates")
    told += ["looks_drawn"] if values.looks_drawn(value) else []
    told += [f"vw {word}" for word in words[:6]]
    return *told, f"first {shape[0]}", f"last {value[-1].translate(_KINDS)}"


@lru_cache(maxsize=4096)
def _of_look(value: str) -> tuple[str, tuple[str, ...]]:
    """Return the class of what a value looks like, and what is true of it."""
    tests = [test for test in _TESTS if getattr(values, test)(value)]
    look = _look(value, [*tests, *(["looks_drawn"] if values.looks_drawn(value) else ())])
    told = [f"look {look}", *tests, *values.marks(value)]
    if " " in value:
        coarse = "phrase"
    elif look != "none":
        coarse = look
    else:
        coarse = "digits" if value.strip("#* -").isdigit() else "aword" if value.isalpha() else "other"
    return coarse, (*told, f"coarse {coarse}")


def _look(value: str, tests: Collection[str]) -> str:
    """Return the class of what a value looks like. `tests`: those that hold."""
    if _HEX.fullmatch(value):
        is_number = len(value) < _LEAST_HEX or value.isdigit()
        return "none" if is_number else "uuid" if "is_public" in tests else "hex"
    if "is_public" in tests or max(value) > "\u2e80":
        return "none"
    looks = (("strong", "is_strong"), ("drawn", "looks_drawn"), ("chosen", "looks_chosen"), ("typed", "looks_typed"))
    return next((name for name, test in looks if test in tests), "none")


class _Kinds(dict[int, str]):
    """Kinds of characters: A, a, 9, a blank as _, other ASCII as it is, U."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        kind = "A" if letter.isupper() else "a" if letter.islower() else "9" if letter.isdigit() else letter
        kind = self[code] = "_" if kind.isspace() else kind if kind.isascii() else "U"
        return kind


_KINDS = _Kinds()


class _Line(NamedTuple):
    """The words and names of a line, read once for all its values."""

    words: tuple[str, ...]
    names: tuple[str, ...]


@lru_cache(maxsize=512)
def _line(text: str) -> _Line:
    return _Line(tuple(map(str.lower, _WORD.findall(text))), tuple(_NAME.findall(text)))


def facts(text: str, found: Candidate) -> list[str]:
    """Return facts about a value and its place."""
    return [fact for part in in_turn(text, found) for fact in part]


def in_turn(text: str, found: Candidate) -> Iterator[Sequence[str]]:
    """Yield facts in four parts, none in two: the form of the value; the names, the option and the words before it in
    its line; its look; the program, the column and the lines above, the words behind it, the rules that would mask it,
    and much of this with the look."""
    start, end = found.start, found.end
    yield _of_form(text[start:end])
    told, crossed = [f"cand {found.way}"], list[str]()

    first = text.rfind("\n", max(0, start - _NEAR_CHARS), start) + 1 or max(0, start - _NEAR_CHARS)
    last = text.find("\n", end, end + _NEAR_CHARS)
    last = last if last >= 0 else min(len(text), end + _NEAR_CHARS)
    before, after = text[first:start], text[end:last]

    tail = before[-_JOINED_CHARS:]
    bound, joint = None, tail.rstrip("\"'`([").rstrip()
    if joint.endswith(_BINDS):  # only the last word is a name: else each letter of each word is tried
        name_end = len(joint.rstrip(":=>|→-").rstrip().rstrip("\"'`])"))
        bound = _BOUND.search(tail, max(tail.rfind(sign, 0, name_end) for sign in " \"'({[,") + 1)
    kind = named(bound[1]) if bound else None
    if bound:
        crossed.append(f"bound {kind}{' other' if speaks_of_other(bound[1]) else ''} {bound[2]}")
    near = tail.rstrip("\"'= :").rsplit(None, 1)
    option = _OPTION.search(tail) if near and near[-1][0] in "-/" else None
    if option:
        crossed.append(f"opt {option[1].lower()}")
        if of_option := named(option[1]):
            crossed.append(f"optn {of_option}")
            kind = kind if bound else of_option
    told += [f"left {_sign(before.rstrip()[-1:])}", f"right {_sign(after.lstrip()[:1])}"]
    told.append(f"adj {_sign(before[-1:])} {_sign(after[:1])}")
    if before[-1:] in ('"', "'", "`"):
        crossed.append(f"quoted {before[-1:] == after[:1]}")
    left = _line(before)
    nearest = ""
    for distance, name in zip(_NEAR, reversed(left.names), strict=False):
        if word := named(name):
            is_other = speaks_of_other(name.rpartition(".")[2].removeprefix("set"))
            said = f"{word} of other" if is_other else word
            crossed.append(f"{said} before {distance}")
            nearest = nearest or said
    words = left.words
    if words:
        crossed.append(f"next {words[-1]}")
        told += [f"n4 {words[-1][:4]}", f"ne4 {words[-1][-4:]}", f"starts {words[0]}"]
        told += [f"w5 {word[:5]}" for word in words[-5:] if len(word) >= _LEAST_WORD]
    told += [f"beside {word}" for word in words[-8:]]
    if not after.strip():
        crossed.append("ends line")
    if not before.strip():
        crossed.append("begins line")
    yield [*told, *crossed]
    coarse, of_look = _of_look(text[start:end])
    yield of_look

    told, before_look = [], len(crossed)
    line, above = text[first:last], _above(text, first)
    above2 = _above(text, first - len(above) - 1)
    right = _line(after)
    behind = right.words
    if bound:
        name = bound[1]
        low, parts = name.lower(), values.name_parts(name)
        told += [f"bname {low[-30:]}", *(f"bpart {part.lower()}" for part in parts[-4:])]
        told += [f"b4 {low[:4]}", f"e4 {low[-4:]}", f"b5 {low[:5]}"]
        told.append(f"blast {parts[-1].lower() if parts else ''} x {coarse}")
    command = _COMMAND_ENDS.split(before)[-1].split()
    while command and (command[0] in _PROMPTS or "=" in command[0]):
        command.pop(0)
    program = command[0].rsplit("/", 1)[-1].lower()[:20] if command else ""
    if option:
        told.append(f"opt {option[1].lower()} of {program}")
    told.append(f"prog {program}")
    if command:
        told.append(f"arg {min(9, len(command))} of {program}")
    if len(command) > 1:
        told += [f"sub {command[1].lower()[:20]}", f"prog {program} {command[1].lower()[:20]}"]

    for lines, text_above in enumerate(() if nearest else (above, above2), 1):
        name = next(filter(named, reversed(_line(text_above).names)), "")
        if name:
            nearest = f"{named(name)} above {lines}"
            crossed.append(nearest)
            told.append(nearest + (" end" if text_above.rstrip().rstrip(":").endswith(name) else ""))
            break
    crossed.append(f"after {nearest}")
    if bound:
        told.append(f"boundkind {kind} near {nearest}")
    for distance, name in zip(_NEAR, right.names[:_NEXT_NAMES], strict=False):
        if (word := named(name)) and not speaks_of_other(name):
            crossed.append(f"{word} behind {distance}")
            break

    if len(words) > 1:
        told.append(f"next2 {words[-2]} {words[-1]}")
    told += [f"beyond {word}" for word in behind[:4]]
    told += [f"then {word}" for word in behind[:1]]
    told += [f"under {word}" for word in _line(above).words[-6:]]
    told += [f"under2 {word}" for word in _line(above2).words[-4:]]

    sign = line.strip()[:1]
    if not before.strip() and not after.strip():
        form = "alone"
        told.append(f"alone under {_line(above).words[-1] if _line(above).words else ''}")
    elif sign in ("|", "<"):
        form = "table" if sign == "|" else "xml"
    elif sign in ("$", ">", "#"):
        form = "prompt"
    elif len(words) + len(behind) > _NEXT_NAMES and not _SIGNS_OF_CODE.search(line):
        form = "prose"
    else:
        form = "code" if _CODE.search(line) else "kv" if bound else "plain"
    crossed.append(f"line {form}")
    for cell in _heads(line, before, (above, above2)):
        if word := named(cell):
            crossed.append(f"column {word}")
        told.append(f"col {cell.lower()[:20]}")
    if text.count(text[start:end], max(0, start - _REPEAT_CHARS), end + _REPEAT_CHARS) > 1:
        told.append("repeats")

    for rule in sorted({rule for _, rule in found.rules}):
        crossed.append(f"src {rule}")
    told += [f"src any x {nearest}", "src any", f"src any x kind {kind}"] if found.rules else ["src none"]
    yield [*told, *crossed[before_look:], *(f"{fact} x {coarse}" for fact in crossed)]


def _above(text: str, first: int) -> str:
    """Return the line above the one that begins at `first`."""
    if first <= 0:
        return ""
    end = first - 1
    return text[text.rfind("\n", max(0, end - _NEAR_CHARS), end) + 1 or max(0, end - _NEAR_CHARS) : end]


def _sign(sign: str) -> str:
    return "w" if sign.isalnum() else sign


def _heads(line: str, before: str, above: Sequence[str]) -> Iterator[str]:
    """Yield the cells above a value, in lines with as many cells."""
    sign = next((sign for sign in "|;\t," if sign in line), None)
    for other in above:
        if sign is not None:
            if other.count(sign) == line.count(sign):
                yield other.split(sign)[before.count(sign)].strip()
        elif "  " in line.strip():
            cells = _CELLS.split(other.strip())
            if len(cells) == len(_CELLS.split(line.strip())):
                yield cells[min(len(cells) - 1, len(_CELLS.findall(before.strip())))]


# -- the net ----------------------------------------------------------------------------------------------------------


class Net(msgspec.Struct):
    """`scored.msgpack`: vectors of facts, whose sum goes through one hidden layer, and whose first number adds up."""

    least: float
    """The score above which a value is masked."""
    veto: float
    """The score below which a rule's mask is taken back."""
    step: float
    """What a step of a vector's numbers is worth."""
    names: list[str]
    vectors: bytes
    """The vectors of the facts one after another, a byte for each number and 128 for nought."""
    bias: float
    hidden: list[list[float]]
    hidden_bias: list[float]
    out: list[float]


_NOUGHT = 128
_UNLIKELY = -10.0
"""The score of a value's form and of what stands before it in its line, below which nothing else is asked. Of 19,285
values of forms that the net masks where no rule does the least is -7.6, and of traces' values two thirds are below."""


class Scorer:
    """Scores of lists of facts."""

    def __init__(self, net: Net) -> None:
        self.net = net
        self._width = len(net.vectors) // len(net.names)
        self._place = {name: n * self._width for n, name in enumerate(net.names)}
        self._numbers = Struct(f"<{self._width + 1}I")
        self._units = sorted(zip(net.out, net.hidden_bias, net.hidden, strict=True), key=lambda unit: -abs(unit[0]))
        self._units.sort(key=lambda unit: unit[0] < 0)
        """Those that raise a score first, then those that lower it most."""
        self.total_of_value = lru_cache(maxsize=4096)(self.total)
        self._vectors: dict[str, int] = {}
        """The numbers of a fact in parts of 32 bits of an integer, whose parts add up at once, and a one above them,
        which counts facts."""

    def __call__(self, told: Iterable[str]) -> float:
        return self.of(self.total(told))

    def total(self, told: Iterable[str]) -> int:
        """Return the sum of the vectors of facts."""
        total, vectors, places = 0, self._vectors, self._place
        for fact in {*told}:
            if (vector := vectors.get(fact)) is not None:
                total += vector
            elif (place := places.get(fact)) is not None:
                spread = b"".join(bytes((number, 0, 0, 0)) for number in self.net.vectors[place : place + self._width])
                vectors[fact] = vector = int.from_bytes(spread + b"\1", "little")
                total += vector
        return total

    def of(self, total: int, floor: float = -math.inf) -> float:
        """Return the score of a sum. Of a score below `floor` it is enough that what is returned is below it, too."""
        step = self.net.step
        *sums, facts = self._numbers.unpack(total.to_bytes(self._numbers.size, "little"))
        nought = facts * _NOUGHT
        shown = [(number - nought) * step if number > nought else 0.0 for number in sums[1:]]
        score: float = (sums[0] - nought) * step + self.net.bias
        for out, bias, weights in self._units:
            if out < 0 and score < floor:
                break
            if (passed := sum(map(mul, weights, shown), bias)) > 0:
                score += out * passed
        return score


def _is_given(text: str, span: Span) -> bool:
    """Return whether a value looks drawn, or is given to a name of a password, a secret or a token."""
    value = text[span.start : span.end]
    if values.looks_drawn(value) or values.is_strong(value) or is_random(value, _DRAWN_CHARS) or _RUN.fullmatch(value):
        return True
    before = text[max(0, span.start - _JOINED_CHARS) : span.start]
    joined = _BOUND.search(before) or _OPTION.search(before) or _SAID.search(before)
    return joined is not None and values.names_a_secret(joined[1]) in ("password", "secret", "token")


@cache
def scorer() -> Scorer:
    return Scorer(msgspec.msgpack.decode(Path(__file__).with_name("scored.msgpack").read_bytes(), type=Net))


def judged(text: str, low: str, parts: Present, rules: Sequence[tuple[Span, str]]) -> list[Span]:
    """Return what to mask: the values whose score says that they are secrets, and what `rules` would mask but for
    values whose score says that they are none. What looks drawn or is given to a name stays masked, and known keys."""
    score = scorer()
    kept: dict[tuple[int, int], str] = {}
    harmless: set[tuple[int, int]] = set()
    for found in candidates(text, low, parts, rules):
        turns = in_turn(text, found)
        total = score.total_of_value(next(turns)) + score.total(next(turns))
        if not found.rules and score.of(total, _UNLIKELY) < _UNLIKELY:
            continue
        total += score.total_of_value(next(turns)) + score.total(next(turns))
        value = score.of(total, score.net.veto)
        if value > score.net.least:
            # Whoever masked a part of a line has judged what stands beside it.
            if not has_mask(text[max(0, found.start - _LINE_CHARS) : found.end + _LINE_CHARS]):
                kept[found.start, found.end] = found.way
        elif value < score.net.veto:
            harmless.update(
                (span.start, span.end)
                for span, rule in found.rules
                if rule != "keys" and _is_of(span, (found.start, found.end)) and not _is_given(text, span)
            )
    masked = [span for span, rule in rules if rule == "keys" or (span.start, span.end) not in harmless]
    single = _blocks([*(place for place, way in kept.items() if way not in _OF_WORDS), *(span[:2] for span in masked)])
    for (start, end), way in kept.items():
        # Of several words those are masked that a rule or a score picks out.
        if way not in _OF_WORDS or not any(start <= one[0] and one[1] <= end for one in _within(single, (start, end))):
            masked.append(Span(start, end, "secret"))
    return masked
