"""Finds keys by their shape: by the prefix of their issuer (`issuers.json`), web tokens, private keys.

A key that a terminal or a mail broke over lines is masked to its end.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from agentsignals.model.lazy import deferred_pattern
from agentsignals.redaction.spans import WORD_START, LongRuns, Span, occurrences
from agentsignals.redaction.values import is_mixed, is_random


class Issuer(NamedTuple):
    """A row of `issuers.json`: the key prefixes of an issuer, as issuers and published scanners state them."""

    name: str
    prefixes: str
    """Separated by blanks. One that ends in `_`, `-` or `.` may follow other letters of a word."""
    body: str
    """The characters after the prefix, by a name in `bodies` or as a regular expression."""
    least: int
    """The fewest of them that make a key; more may follow."""
    source: str
    """By a name in `sources`, or an address."""
    whole: int = 0
    """The number of them in a key. The reader then follows it over line ends that far."""
    certain: bool = False
    """The prefix alone proves a key. For other rows the body must look random."""
    ahead: str = ""
    """A regular expression that must match after the prefix."""


def _issuers() -> tuple[Issuer, ...]:
    # JSON, for every run reads it: as TOML, decoded in Python, it took 30 million instructions.
    table = msgspec.json.decode(Path(__file__).with_name("issuers.json").read_bytes())
    for row in table["issuers"].values():
        row["body"] = table["bodies"].get(row["body"], row["body"])
        row["source"] = table["sources"].get(row["source"], row["source"])
    return tuple(Issuer(name=name, **row) for name, row in table["issuers"].items())


ISSUERS = _issuers()
_WORD, _DASHED, _HEX, _UPPER = "[A-Za-z0-9]", r"[\w-]", "[0-9a-f]", "[0-9A-Z]"
_LITERALS = r"\\{0,2}[\"'][ \t]{0,3}(?:\+[ \t]{0,3}(?:\r?\n)?|\r?\n|\\{1,2}n)[ \t]{0,40}\\{0,2}[\"']"
"""Between two literals that a program joins: a plus, or a line end."""
BREAK = (
    r"(?>(?:[\\=]?(?:\r?\n|\r)|[ \t]{0,40}[|│]\r?\n|(?:\\{1,2}r)?\\{1,2}n)[ \t]{0,40}"
    r"(?:\d{1,6}[→\t:.|)])?(?:[+>|│#*-]|//)?[ \t]{0,40}"
    rf"|\t(?=\w{{6}})|{_LITERALS})"
)
"""A line end, written or escaped, also in quoted-printable mail; with what precedes the next line in a diff, a quote
or a numbered listing. Or a joint of two literals.

Atomic: a dash after it has one reading only, otherwise a text of dashes would have exponentially many.
"""
_RUNS_ON = r"(?=[\w.+/=-]{0,200}?(?:\d|[a-z][A-Z]|[A-Z]{2}[a-z]))"
"""Looks like the next line of a key, not like a word."""
_BROKEN = deferred_pattern(BREAK)
_IN_BREAKS = deferred_pattern(r"[\\\r\n\"']")


def _exactly(body: str, n: int) -> str:
    return rf"(?:(?:{BREAK})?{body}){{{n}}}{body}{{0,400}}"


def _at_least(body: str, n: int) -> str:
    """Match a body of at least `n` characters, and further lines that look like a key."""
    more = rf"{BREAK}{_RUNS_ON}{body}{{8,400}}(?![\w:(])"
    return rf"(?:{body}{{{n},4000}}|{body}{{0,{n}}}(?={BREAK}))(?:{more}){{0,60}}"


class _Shape(NamedTuple):
    """Body of a key after its prefix."""

    body: re.Pattern[str]
    drawn: int
    """Number of characters that must look random; 0 if any body will do."""
    mixed: bool
    """True if it must mix letters and digits."""


_BEGINNINGS: dict[str, tuple[Issuer, bool]] = {
    prefix: (issuer, False) for issuer in reversed(ISSUERS) for prefix in reversed(issuer.prefixes.split())
}
"""Issuers by prefix: as the issuer writes it, then in lower and upper case (True)."""
for _issuer in ISSUERS:
    for _prefix in _issuer.prefixes.split():
        if _issuer.body != _HEX or _prefix.lower().strip("abcdef0123456789"):  # else it is a hash
            _BEGINNINGS.setdefault(_prefix.lower(), (_issuer, True))
        _BEGINNINGS.setdefault(_prefix.upper(), (_issuer, True))


@cache
def _shape(prefix: str) -> _Shape:
    """Return the body that follows a prefix. In another case than the issuer's, the body must look random, or be
    mixed where its characters exclude signs between words."""
    issuer, folds = _BEGINNINGS[prefix]
    more = _at_least(issuer.body, issuer.least)
    if folds or issuer.body == _HEX:
        more = f"{issuer.body}{{{issuer.least},4000}}"
    elif issuer.whole:
        more = f"{_exactly(issuer.body, issuer.whole)}|{issuer.body}{{{issuer.least},255}}"
    ends = "(?![0-9A-Za-z])" if issuer.body == _HEX else "(?![a-z])" if issuer.body == _UPPER and not folds else ""
    pattern = re.compile(f"{issuer.ahead}(?:{more}){ends}", re.I if folds or issuer.body == _HEX else re.NOFLAG)
    mixed = folds and issuer.certain and issuer.body in (_WORD, _UPPER)
    return _Shape(pattern, 0 if mixed or (issuer.certain and not folds) else min(issuer.least, 16), mixed)


_GLUED_CHARS = 16
_HEAD_CHARS = 128
"""After a body that is no key, so much of it shows whether another key begins there: of 64 random letters and digits
one in 100,000 has no digit. Otherwise a text of prefixes would be read to its end from each."""
_GLUED = frozenset(
    prefix
    for prefix, (issuer, folds) in _BEGINNINGS.items()
    if len(prefix) >= 4 and not folds and issuer.certain and (prefix[-1] in "_-." or issuer.body == _UPPER)
)
"""Prefixes that no word ends in by chance. Their keys may follow other letters, as in file names."""
_ENDS = "_-."
"""A prefix is searched by its last character, which is rarer in texts than its first."""
_ENDED = sorted((p for p in _BEGINNINGS if p[-1] in _ENDS), key=lambda p: (-len(p), p))
_LENGTHS = sorted({len(p) for p in _ENDED}, reverse=True)
_FOLLOWS = r"(?=[\w%+/=.-]{10}|[\w%+/=.-]{0,9}(?:[\\\r\n\t\"'*…]|[ \t]{0,40}[|│]))"


@cache
def _ended() -> list[re.Pattern[str]]:
    patterns = []
    for last in _ENDS:
        by_length = ("|".join(re.escape(p) for p in _ENDED if p[-1] == last and len(p) == n) for n in _LENGTHS)
        behind = "|".join(f"(?<={ways})" for ways in by_length if ways)
        patterns.append(re.compile(f"{re.escape(last)}{_FOLLOWS}(?:{behind})"))
    return patterns


_START_CHARS = 2


_BY_START: dict[str, list[str]] = {}
"""Prefixes that end in a letter or digit, longest first, by their first two characters."""
for _prefix in sorted((p for p in _BEGINNINGS if p[-1] not in _ENDS), key=lambda p: (-len(p), p)):
    _BY_START.setdefault(_prefix[:_START_CHARS], []).append(_prefix)
_START = "|".join(
    f"{first}[{''.join(re.escape(s[1]) for s in _BY_START if s[0] == first)}]"
    for first in sorted({s[0] for s in _BY_START})
)
_STARTS = deferred_pattern(rf"(?<![A-Za-z0-9])(?:{_START}|[nrt](?<=\\.)(?:{_START}))")
"""Start of a word that may be a key. An escaped line end or tab may precede it."""
LEAST_CHARS = 12
"""Shorter texts hold no key."""
RUNS = LongRuns(string.ascii_letters + string.digits + "_+/=~$%.-", 20)
"""Runs long enough for a key, or for a secret in base64."""

_PICTURE_CHARS = 400
"""Longer runs are base64 of pictures and the like, with prefixes by chance. Only their start is searched."""
_BROKEN_TOO = tuple(map(re.compile, ("I(?:A(?<=A[KSB]IA)|za(?<=AIza))", "CCA(?<=ACCA)", "E(?<=pypi-AgE)")))
"""Prefixes that are also searched in broken keys, by their rarest letter."""
_BARE: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("eyJ", deferred_pattern(rf"(?:{_DASHED}|{BREAK}){{8,8000}}\.(?:[\w.-]|{BREAK}(?=[\w-]{{1,200}}\.)){{4,8000}}"
                       rf"(?:{BREAK}{_RUNS_ON}[\w.-]{{8,400}}(?![\w:(])){{0,60}}")),
    ("hooks.slack.com/", deferred_pattern("(?i:services|workflows|triggers)/" + _at_least("[A-Za-z0-9_/+-]", 16))),
    ("/api/webhooks/", deferred_pattern(r"\d{10,24}/" + _at_least(_DASHED, 20))),
    ("sig=", deferred_pattern(r"[A-Za-z0-9%+/=_-]{20,200}")),
)  # fmt: skip
"""A needle and what follows it. A needle in lower case matches in any case."""
_IN_RUN = deferred_pattern(
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))(?:[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,70}"
    r"|[0-9a-f]{32}-us\d{1,2}(?![0-9A-Za-z])"
    r"|[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}"
    r"|eyj[\w-]{16,8000}\.[\w-]{16,8000}\.[\w-]{16,8000}"
    r"|A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}(?![A-Z0-9])"
    r"|\d/\d{13,20}(?:/\d{13,20})?:[0-9a-f]{32}"
    r")",
    re.I,
)
"""Keys known by a sign in their middle: Terraform Cloud, Mailchimp, Azure, web tokens in lower case, 1Password,
Asana."""
_SIGNS = ("atlasv1.", "-us", "q~", "eyj", "a3-")
_RUN_WORD = deferred_pattern(r"[\w-]*")

_BOT = deferred_pattern(_exactly(_DASHED, 35))
_BOT_ID = deferred_pattern(r"(?<!\d)\d{6,12}\Z")
_DISCORD = deferred_pattern(r"\.[\w-]{6}\.[\w-]{27,80}(?![\w-])")
_DISCORD_ID = deferred_pattern(rf"{WORD_START}[MNO][\w-]{{22,27}}\Z", re.I)

_PEM_NAMES = ("PRIVATE KEY", "private key")
_PEM_HEAD = deferred_pattern(r"(?i:-----BEGIN [A-Z0-9 ]{0,40})\Z")
_PEM_REST = deferred_pattern(
    r"(?i: BLOCK)?-----(?![\"'`]\s*[,)\]])"
    r"(?:(?:(?!-----).){0,20000}?-?-----(?i:END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----"
    r"|[A-Za-z0-9+/=\s\\\"',:>|*#→-]{0,20000})",
    re.S,
)
_PEM_END = deferred_pattern(r"-?-----(?i:END [A-Z0-9 ]{0,40})\Z")
_PEM_LINES = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\\\"'>|# \t\r\n"
_PEM_LINE = deferred_pattern(r"[A-Za-z0-9+/=]{16}")
_MOST_KEY_CHARS = 8_000


def spans(text: str) -> Iterator[Span]:
    """Yield keys that their shape gives away: by a prefix that ends in a sign, broken over lines, and private keys."""
    for pattern in _ended():
        done = refused = 0
        for hit in pattern.finditer(text):
            end = hit.end()
            for length in _LENGTHS if end >= done else ():
                prefix = text[max(0, end - length) : end]
                if end < length or prefix not in _BEGINNINGS:
                    continue
                begins = _begins_word(text, end - length)
                if begins or prefix in _GLUED:
                    body_end, is_key = _body(text, end, _shape(prefix), begins, refused)
                    if not is_key and begins and (rest_end := _elsewhere(text, end, prefix)):
                        body_end, is_key = rest_end, True
                    if is_key:
                        done = body_end
                        yield Span(end - length, done, "key")
                        break
                    refused = max(refused, body_end)
    for pattern in _BROKEN_TOO:  # short keys, also over line ends, which are in no long run
        done = 0
        for hit in pattern.finditer(text):
            end = hit.end()
            at = end - (len("pypi-AgE") if hit[0] == "E" else len("AKIA"))
            glued = not _begins_word(text, at)
            if at < done or (glued and text[at:end] not in _GLUED):
                continue
            body = _shape(text[at:end]).body.match(text, end)
            rest_end = 0 if body else _elsewhere(text, end, text[at:end])
            done = body.end() if body else rest_end or _run_end(text, at)
            if rest_end or (body and not (glued and not is_mixed(body[0]))):
                yield Span(at, done, "key")
    for name in _PEM_NAMES:
        done = 0
        for at in occurrences(text, name):
            head = _PEM_HEAD.search(text, max(done, at - 60), at)
            rest = head and _PEM_REST.match(text, at + len(name))
            if head and rest:
                done = rest.end()
                yield Span(head.start(), done, "private key")
            elif tail := _PEM_END.search(text, max(done, at - 60), at):
                # The lines left of a private key whose head was cut off.
                first = max(done, at - _MOST_KEY_CHARS)
                lines = len(text[first : tail.start()].rstrip(_PEM_LINES))
                if line := _PEM_LINE.search(text, first + lines, tail.start()):
                    yield Span(line.start(), at, "private key")


_APART = r"[\"'](?:[^\"'\n]{0,60}[\"']){1,3}"
_CUT_BODY = deferred_pattern(r"[\w-]{6,200}(?=…|\.{3}|\*{3})")


def _elsewhere(text: str, end: int, prefix: str) -> int:
    """Return where a key ends whose body is cut short, or stands in the next literal. 0 if there is none."""
    issuer, folds = _BEGINNINGS[prefix]
    if not issuer.certain or folds:
        return 0
    if text[end : end + 1] in ("'", '"'):
        more = re.compile(f"{_APART}({issuer.body}{{{issuer.least},400}})[\"']").match(text, end)
    else:
        more = _CUT_BODY.match(text, end)
    return more.end() if more and (is_mixed(more[0]) or issuer.body == _UPPER) else 0


def _begins_word(text: str, at: int) -> bool:
    """Return whether a word begins here. It may follow an escaped line end or tab."""
    before = text[at - 1] if at else " "
    if not (before.isalnum() and before.isascii()):
        return True
    return before in "nrt" and at > 1 and text[at - 2] == "\\"


def _body(text: str, at: int, shape: _Shape, begins: bool, refused: int) -> tuple[int, bool]:
    """Return where the body ends, and whether it is a key. Up to `refused` the text was read and is none."""
    if at < refused and not _is_key(shape, shape.body.match(text, at, at + _HEAD_CHARS), begins):
        return at, False
    body = shape.body.match(text, at)
    return (body.end(), _is_key(shape, body, begins)) if body else (at, False)


def _is_key(shape: _Shape, match: re.Match[str] | None, begins: bool) -> bool:
    """`begins`: the prefix begins a word. Otherwise the body must look random."""
    if match is None or not (begins or is_random(match[0], _GLUED_CHARS)):
        return False
    if shape.mixed:
        return is_mixed(match[0])
    if not shape.drawn or not is_mixed(match[0]):
        return not shape.drawn
    body = _BROKEN.sub("", match[0]) if _IN_BREAKS.search(match[0]) else match[0]
    return is_random(body, shape.drawn)


def in_runs(text: str, low: str, runs: Iterable[tuple[int, int]]) -> Iterator[Span]:
    """Yield keys in long runs: by a prefix that ends in a letter, in any case, or by a sign in their middle."""
    bare = [way for way in _BARE if way[0] in (low if way[0].islower() else text)]
    signs = any(sign in low for sign in _SIGNS)
    done = refused = 0
    for start, whole_end in runs:
        end = min(whole_end, start + _PICTURE_CHARS)
        for piece in _STARTS.finditer(text, start, end):
            at = piece.end() - _START_CHARS
            if at < done:
                continue
            for prefix in _BY_START[piece[0][-_START_CHARS:]]:
                if text.startswith(prefix, at):
                    body_end, is_key = _body(text, at + len(prefix), _shape(prefix), True, refused)
                    if is_key:
                        done = body_end
                        yield Span(at, done, "key")
                        break
                    refused = max(refused, body_end)
        for needle, pattern in bare:
            after = start
            for within in occurrences((low if needle.islower() else text)[start:end], needle):
                at = start + within
                if at >= after and (_begins_word(text, at) or needle[-1] == "/"):
                    body = pattern.match(text, at + len(needle))
                    after = body.end() if body else _run_end(text, at)
                    if body:
                        yield Span(at, after, "key")
        # Keys of Telegram's and Discord's bots begin with a number, in any case.
        bot = text[max(0, start - 1) : start + 2].lower() == ":aa"
        number = _BOT_ID.search(text, max(0, start - 13), start - 1) if bot else None
        if number and (token := _BOT.match(text, start)):
            yield Span(number.start(), token.end(), "key")
        for hit in _DISCORD.finditer(text, start, end):
            if number := _DISCORD_ID.search(text, max(0, hit.start() - 28), hit.start()):
                yield Span(number.start(), hit.end(), "key")
        if signs or text[end : end + 1] == ":":
            for hit in _IN_RUN.finditer(text, start, min(len(text), end + 40)):
                yield Span(*hit.span(), "key")


def _run_end(text: str, at: int) -> int:
    """Return where the word that begins here ends. Its parts are not searched again."""
    run = _RUN_WORD.match(text, at)
    return run.end() if run else at
