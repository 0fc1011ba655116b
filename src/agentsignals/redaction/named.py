"""Finds secrets by their name: `DB_PASSWORD=…`, `"client_secret": "…"`, `--token …`, `Authorization: …`; and logins.

A name is not enough: `token: string`, `password = form.password` and `api_key=$KEY` are code. The look of the value
decides (`values`), the more so the less its name states.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from agentsignals.model.lazy import deferred_pattern
from agentsignals.redaction.keys import BREAK
from agentsignals.redaction.spans import Span, occurrences
from agentsignals.redaction.values import (
    LEAST_CHARS,
    Word,
    alternates,
    in_header,
    is_known,
    is_mixed,
    is_random,
    is_secret,
    is_variable,
)

_NEEDLES: tuple[tuple[str, Word], ...] = (
    *((needle, "password") for needle in ("assw", "assphrase", "_pass", "dbpass", "pwd")),
    ("ecret", "secret"),
    ("oken", "token"),
    *((needle, "key") for needle in ("redential", "_auth", "_sid")),
)
"""Parts of names in lower case, and the kind of secret they state. `_keys` decides about names of keys."""
_OPENS = ("api", "access", "account", "private")
"""Prefixes of keys that open something. For other keys only the value decides."""
_LINE_END = r"(?:\\?\r?\n|\\{1,2}n)"
_JOINT = deferred_pattern(
    r"(?P<rest>[\w-]{0,40})(?:\\{0,4}[\"'`])?[\])*]{0,3}[ \t]{0,24}"
    r"(?P<op>:=|=>|->|={1,2}|:|\||>|,|\bis\b|\bwas\b|(?=[ \t]))[*]{0,3}"
    rf"(?P<gap>[ \t]{{0,24}}(?:(?:[>|][-+]?)?{_LINE_END}[ \t+|#-]{{0,40}})?)[*(]{{0,3}}"
    r"(?:[bBrRfFuU]{1,2}(?=\\{0,4}[\"'`]))?(?=[^\s])"
)
"""The rest of a name, and what joins it to a value."""
_QUOTE = deferred_pattern(r"\\{0,4}[\"'`]")
_MOST_QUOTED = 2000
_BARE_CHAR = r"(?:(?!&\w+=|\\{1,4}[\"'`]|\\[nrt])[^\s\"'`;<>,)\]}])"
_BARE_REST = deferred_pattern(f"{_BARE_CHAR}{{0,4000}}")
_BARE_END = deferred_pattern(r"[\s\"'`;<>,)\]}&\\](?:(?<![&\\])|(?<=&)(?=\w+=)|(?<=\\)(?=\\{0,3}[\"'`]|[nrt]))")
_BARE_CHARS = 100
"""So much of an unquoted value shows whether it is a secret. Only then the rest is read."""
_NEXT_LINE = deferred_pattern(BREAK + r"(?P<rest>[\w+/.-]{6,400}={0,2})(?=[ \t]{0,40}(?:[\r\n\"'`|│\\]|\Z))")
_BROKEN_CHARS = 12
"""Characters of a broken value on each of its lines but the last."""
_CUT = deferred_pattern(r"[|]|[^\0-\x7f]")
"""Where an unquoted value may end inside a word: a table cell, a pipe, another script."""
_TELLS = frozenset((":", "=", ":=", "=>"))
"""Operators that always stand between a name and its value."""
_NAME = deferred_pattern(r"[\w.-]*")
_HEADER = deferred_pattern(
    r"(?i:authorization)\\{0,4}[\"'`]?[ \t]{0,3}[:=,][ \t]{0,3}\\{0,4}[\"'`]?[brf]?"
    r"(?:(?i:bearer|basic|token|digest|apikey|bot|ssws|splunk)[ ])?(?P<bare>[^\s\"'`\\,;<>\[{$][^\s\"'`\\,;<>]{5,4000})"
)
_BEARER = deferred_pattern(r"(?i:bearer)[ :]{1,2}(?P<bare>[\w.~+/-]{8,4000}={0,2})")
_COOKIE = deferred_pattern(
    r"(?i:cookie)\\{0,4}[\"'`]?:[ ]?\\{0,4}[\"'`]?(?P<bare>[\w.-]{1,60}=[^\s\"'`\\][^\"'`\n\\]{5,4000})"
)
_HEADERS = (("authorization", _HEADER), ("bearer", _BEARER))

_WORDS = deferred_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_OTHER = frozenset(
    word
    for words in (
        "count counts usage limit limits max min num number type len length size file filename path dir name label",
        "field tokenizer tokenize tokens keys url uri hint placeholder prompt policy regex pattern err error errors",
        "message at expiry expires expired ttl budget rate total input output cache cached primary foreign sort",
        "public idempotency keyboard keyword keywords keyframes index reset change env var id ids map set list row",
    )
    for word in words.split()
)
"""Words in names of counts, limits and the like, which hold no secret."""


def secrets(text: str, low: str) -> Iterator[Span]:
    """Yield values whose name states a secret, and values of headers that carry one. `low`: the text in lower case."""
    passes, authorizes = "ass" in low, "auth" in low
    for needle, word in _NEEDLES:
        if (passes or "ass" not in needle) and (authorizes or needle != "_auth") and needle in low:
            yield from _values(text, ((at, needle, word) for at in occurrences(low, needle)))
    yield from _values(text, _keys(text, low))
    for part, pattern in _HEADERS:
        if (authorizes or part == "bearer") and part in low:
            for at in occurrences(low, part):
                hit = pattern.match(text, at)
                if hit and in_header(hit["bare"]):
                    yield Span(hit.start("bare"), _last(text, *hit.span("bare")), "secret")
    if "cookie" in low:
        done = 0
        for at in occurrences(low, "cookie"):
            hit = _COOKIE.match(text, at) if at >= done else None
            if hit and not is_variable(hit["bare"].partition("=")[2]):
                done = hit.end()
                yield Span(*hit.span("bare"), "secret")


@lru_cache(maxsize=4096)
def names_a_secret(name: str) -> Word | None:
    """Return the strongest kind of secret that a name states, or None."""
    low = name.lower()
    strongest = next((word for needle, word in _NEEDLES if needle in low), None)
    strongest = strongest or next((word for _, _, word in _keys(name, low)), None)
    return None if strongest is None or _speaks_of_other(name) else strongest


def _values(text: str, named: Iterable[tuple[int, str, Word]]) -> Iterator[Span]:
    """Yield the secrets of names, each given by the place of its needle, the needle and its kind."""
    done = 0
    for at, needle, word in named:
        if at >= done and (span := _value(text, at, needle, word)):
            done = span.end
            yield span


def _keys(text: str, low: str) -> Iterator[tuple[int, str, Word]]:
    """Yield names of keys: one that opens something, or `key` as a word of its own."""
    for at in occurrences(low, "key"):
        word = text[at : at + 3]
        if word[1:] not in ("ey", "EY"):
            continue
        if low[max(0, at - 8) : at].rstrip("_-").endswith(_OPENS):
            yield at, word, "token"
        elif word[0] == "K" or text[max(0, at - 1) : at] in ("_", "-"):
            yield at, word, "key"


def _value(text: str, at: int, needle: str, word: Word) -> Span | None:
    """Return the secret whose name has the needle, if there is one."""
    joint = _JOINT.match(text, at + len(needle))
    if joint is None:
        return None
    op, before = joint["op"], _NAME.match(text[max(0, at - 40) : at][::-1])  # from the end: else from each place
    name = (before[0][::-1] if before else "") + text[at : at + len(needle)] + joint["rest"]
    if op == "" and not name.startswith("--") and not name.isupper():
        return None
    start, end, quoted = _place(text, joint.end())
    value = text[start:end]
    if not value or not _joined(needle, name, value, joint, quoted=quoted):
        return None
    is_assigned = op in _TELLS or name.startswith("--")
    if _speaks_of_other(name) and not (is_assigned and word != "key" and is_random(value, 16) and not is_known(value)):
        return None
    called = not quoted and text[end : end + 1] in ("(", "[")
    if called or not is_secret(word, name, value, quoted=quoted):
        cut = None if called or quoted else _CUT.search(value)
        is_cut = cut and is_secret(word, name, value[: cut.start()], quoted=False)
        return Span(start, start + cut.start(), "secret") if cut and is_cut else None
    rest = None if quoted else _BARE_REST.match(text, end)
    if rest and rest[0]:
        end = max(end, len(text[: rest.end()].rstrip(".:\\")))
    return Span(start, end if quoted else _last(text, start, end), "secret")


def _last(text: str, start: int, end: int) -> int:
    """Return where a value ends that a terminal or a mail broke over lines: each next line looks random too."""
    while is_random(text[start:end], _BROKEN_CHARS) and (more := _NEXT_LINE.match(text, end)):
        if not (is_random(more["rest"], LEAST_CHARS) or alternates(more["rest"])):
            break
        end = more.end()
    return end


def _place(text: str, at: int) -> tuple[int, int, bool]:
    """Return start and end of the value, and whether it is quoted. The bounds are equal if there is none."""
    quote = _QUOTE.match(text, at)
    if quote:
        end = text.find(quote[0], quote.end(), quote.end() + _MOST_QUOTED)
        if end >= 0 and "\n" not in text[quote.end() : end]:
            return quote.end(), end, True
        at = quote.end()
    ending = _BARE_END.search(text, at, at + _BARE_CHARS)
    bare = text[at : ending.start() if ending else at + _BARE_CHARS]
    return at, at + (len(bare.rstrip(".:\\")) if len(bare) >= LEAST_CHARS else 0), False


def _joined(needle: str, name: str, value: str, joint: re.Match[str], *, quoted: bool) -> bool:
    """Return whether the text between a name and a value can join them."""
    op, gap = joint["op"], joint["gap"]
    if needle.lower() == "pwd" and (value[:1] in "/~.-" or op not in ("=", ":")):
        return False
    drawn = is_random(value, 8) or (needle.lower().startswith(("assw", "assp", "_pass")) and is_mixed(value))
    if "n" in gap or "\n" in gap:  # the next line is another thing more often than not
        return op == ":" and drawn and value[-1] != ":" and "/" not in value[:1]
    if op == "":
        return value[0] != "-" if name.startswith("--") else is_random(value, 12)
    return op in _TELLS or (drawn and (quoted or op != ","))


def _speaks_of_other(name: str) -> bool:
    return any(word.lower() in _OTHER for word in _WORDS.findall(name))


# -- logins in fixed places: addresses, headers of Basic, options of commands, netrc, docker's files -------------------

_LOGIN = deferred_pattern(r"[^\s/@:\"'<>]{0,200}:[^\s/@\"'<>]{1,200}(?=@)|[\w-]{16,255}(?=@)")
_VARIABLE = deferred_pattern(r"(?:\A|:)(?:\$?\{|\$\(|\$[A-Z_]+\Z|\[)")
_BASIC = deferred_pattern(r"(?i:basic) (?P<value>[A-Za-z0-9+/]{8,400}={0,2})")
_AUTH = deferred_pattern(
    r"(?i:auth)\\{0,16}[\"']?\s{0,3}[:=]\s{0,3}\\{0,16}[\"']?(?P<value>[A-Za-z0-9+/_-]{8,400}={0,2})"
)
_SAME_COMMAND = r"[^\n|;&]{0,300}?"
_VALUE = r"\\{0,4}[\"']?(?P<value>[^\s\"'\\<>\[{$-][^\s\"'\\|;&]{2,200})"
_NEXT = r"(?:\s|\\{1,2}[nrt]){1,8}(?:\d{1,6}[→\t:|]\s{0,4})?(?:[+>|#-]{1,3}\s{0,8})?"
"""Between two words of a file: blanks, a line end, and what a listing, diff or quote puts before a line."""


_OPTIONS = deferred_pattern(" -[pPawuU]")
"""Start of options that carry a password."""
_WORD = r"(?:\b|(?<=\\[nrt]))"
"""Start of a command name, also after an escaped line end or tab."""


class _Way(NamedTuple):
    """A place of a password."""

    signs: list[str]
    """Lower-case signs, one of which begins it."""
    pattern: re.Pattern[str]
    """Its group `value` is the password."""
    needed: list[str]
    """Lower-case words, one of which the text must contain."""


def _ways(*rows: tuple[str, str, str]) -> list[_Way]:
    return [_Way(signs.split(), deferred_pattern(pattern), needed.split(",")) for signs, pattern, needed in rows]


_OF_COMMANDS = _ways(
    (
        "-u --user --proxy-user",
        r"(?:-u|-U|--user|--proxy-user)[ =]?[\"']?(?P<value>[^\s\"':@/]{1,80}:(?!\d{1,5}\b)[^\s\"'$]{3,200})",
        "curl,wget",
    ),
    ("mysql maria mycli", rf"(?i:{_WORD}(?:mysql|maria|mycli)[\w-]*)\b{_SAME_COMMAND}\s-p(?!rotocol|ort){_VALUE}", ""),
    ("sshpass", rf"(?i:{_WORD}sshpass)\s+{_SAME_COMMAND}-p\s*{_VALUE}", ""),
    ("login", rf"(?i:{_WORD}login)\b{_SAME_COMMAND}\s(?:-p|-password|--password|--token)[ =]{{1,3}}{_VALUE}", ""),
    ("redis-cli", rf"{_WORD}redis-cli\b{_SAME_COMMAND}\s-a\s+{_VALUE}", ""),
    ("mongo cqlsh", rf"{_WORD}(?:mongo\w*|cqlsh)\b{_SAME_COMMAND}\s-p\s+{_VALUE}", ""),
    ("sqlcmd bcp isql", rf"{_WORD}(?:sqlcmd|bcp|isql)\b{_SAME_COMMAND}\s-P\s*{_VALUE}", ""),
    ("ldap", rf"{_WORD}ldap\w+\b{_SAME_COMMAND}\s-w\s+{_VALUE}", ""),
    ("plink pscp psftp", rf"{_WORD}(?:plink|pscp|psftp)\b{_SAME_COMMAND}\s-pw\s+{_VALUE}", ""),
    ("ipmitool", rf"{_WORD}ipmitool\b{_SAME_COMMAND}\s-P\s*{_VALUE}", ""),
    ("smb", rf"{_WORD}(?:smbclient|smbmap)\b{_SAME_COMMAND}\s-U\s*[\"']?[^\s%\"']{{1,60}}%{_VALUE}", ""),
    ("-pass", rf"(?<=\s)-pass\w{{0,4}}\s+pass:{_VALUE}", "pass:"),
    ("zip unzip", rf"{_WORD}(?:zip|unzip)\b{_SAME_COMMAND}\s-P\s*{_VALUE}", ""),
)
"""Options of commands."""
_OF_PASSWORDS = _ways(
    ("htpasswd", rf"{_WORD}htpasswd\b\s+-\w*b\w*\s+\S+\s+\S+\s+{_VALUE}", ""),
    ("echo", rf"{_WORD}echo\s+(?:-n\s+)?{_VALUE}\s*\|[^\n]{{0,80}}--password-stdin", "password-stdin"),
    ("machine default", rf"{_WORD}(?:machine{_NEXT}\S{{1,200}}|default){_NEXT}"
                        rf"(?:(?:login|account){_NEXT}\S{{1,200}}{_NEXT}){{1,2}}password{_NEXT}{_VALUE}", "password"),
)  # fmt: skip
"""Places in texts that mention a password."""
_OF_OTHERS = _ways(
    ("echo", rf"{_WORD}echo\s+(?:-n\s+)?{_VALUE}\s*\|\s*sudo\s+-\w*S", "sudo -s"),
    ("identified", rf"(?i:{_WORD}identified\s+(?:with\s+\S+\s+)?by\s+){_VALUE}", ""),
)


def logins(text: str, low: str) -> Iterator[Span]:
    """Yield logins in fixed places: addresses, headers, options, netrc, docker's files. `low`: the text in lower
    case."""
    for at in occurrences(text, "://") if "://" in text else ():
        login = _LOGIN.match(text, at + 3)
        if login and not _VARIABLE.search(login[0]):
            yield Span(login.start(), login.end(), "login")
    for sign, encoded in (("basic ", _BASIC), ("auth", _AUTH)):
        if sign in low:
            for at in occurrences(low, sign):
                hit = encoded.match(text, at)
                if hit and is_login(hit["value"]):
                    yield Span(*hit.span("value"), "login")
    options = _OPTIONS.search(text) is not None
    for asked, ways in ((options, _OF_COMMANDS), ("passw" in low, _OF_PASSWORDS), (True, _OF_OTHERS)):
        for way in ways if asked else ():
            done = 0
            is_there = any(word in low for word in way.needed)
            for at in sorted(at for sign in way.signs for at in occurrences(low, sign)) if is_there else ():
                if at < done:
                    continue
                hit = way.pattern.match(text, at)
                if hit is None and text[at : at + 2].isupper():  # patterns are in lower case
                    hit = way.pattern.match(low, at)
                    hit = hit if hit and text[at : hit.start("value")].isupper() else None
                if hit:
                    done = hit.end()
                    if not is_variable(text[slice(*hit.span("value"))]):
                        yield Span(*hit.span("value"), "login")


def is_login(encoded: str) -> bool:
    """Return whether a text is NAME:PASSWORD in base64. Base64 in one case decodes to nothing and is judged by its
    look."""
    try:
        plain = encoded.replace("-", "+").replace("_", "/")
        decoded = b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (NotBase64, ValueError):
        return False
    if encoded in (encoded.lower(), encoded.upper()) and not is_known(encoded):
        return is_random(encoded, 20) or encoded.endswith("=")
    return b":" in decoded and decoded.isascii() and decoded.decode().isprintable()
