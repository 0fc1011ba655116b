"""Logins in fixed places: in addresses, headers of Basic, options of commands, netrc, what docker keeps."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator
from typing import NamedTuple

from agentsignals.patterns import deferred_pattern
from agentsignals.redaction.spans import Span, places
from agentsignals.redaction.values import is_known, is_random, is_variable

_LOGIN = deferred_pattern(r"[^\s/@:\"'<>]{0,200}:[^\s/@\"'<>]{1,200}(?=@)|[\w-]{16,255}(?=@)")
_VARIABLE = deferred_pattern(r"(?:\A|:)(?:\$?\{|\$\(|\$[A-Z_]+\Z|\[)")
_BASIC = deferred_pattern(r"(?i:basic) (?P<value>[A-Za-z0-9+/]{8,400}={0,2})")
_AUTH = deferred_pattern(
    r"(?i:auth)\\{0,16}[\"']?\s{0,3}[:=]\s{0,3}\\{0,16}[\"']?(?P<value>[A-Za-z0-9+/_-]{8,400}={0,2})"
)
_SAME_COMMAND = r"[^\n|;&]{0,300}?"
_VALUE = r"\\{0,4}[\"']?(?P<value>[^\s\"'\\<>\[{$-][^\s\"'\\|;&]{2,200})"
_NEXT = r"(?:\s|\\{1,2}[nrt]){1,8}(?:\d{1,6}[→\t:|]\s{0,4})?(?:[+>|#-]{1,3}\s{0,8})?"
"""Between two words of a file: blanks, the line's end, and what a listing, a diff or a quote puts before a line."""


_OPTIONS = deferred_pattern(" -[pPawuU]")
"""Options that say a password begin so."""
_WORD = r"(?:\b|(?<=\\[nrt]))"
"""Where a command's name begins: also after an escaped line end or tab."""


class _Way(NamedTuple):
    """A place in which a password stands."""

    signs: tuple[str, ...]
    """Small letters with one of which it begins."""
    pattern: re.Pattern[str]
    """What stands there; the password is its `value`."""
    needed: tuple[str, ...]
    """Small letters one of which such a text has anywhere."""


def _ways(*rows: tuple[str, str, str]) -> tuple[_Way, ...]:
    return tuple(
        _Way(tuple(signs.split()), deferred_pattern(pattern), tuple(n.split(","))) for signs, pattern, n in rows
    )


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
"""Places in texts that speak of a password."""
_OF_OTHERS = _ways(
    ("echo", rf"{_WORD}echo\s+(?:-n\s+)?{_VALUE}\s*\|\s*sudo\s+-\w*S", "sudo -s"),
    ("identified", rf"(?i:{_WORD}identified\s+(?:with\s+\S+\s+)?by\s+){_VALUE}", ""),
)


def spans(text: str, low: str) -> Iterator[Span]:
    """Every login that its place gives away. `low`: the text in small letters."""
    for at in places(text, "://") if "://" in text else ():
        login = _LOGIN.match(text, at + 3)
        if login and not _VARIABLE.search(login[0]):
            yield Span(login.start(), login.end(), "login")
    for sign, encoded in (("basic ", _BASIC), ("auth", _AUTH)):
        if sign in low:
            for at in places(low, sign):
                hit = encoded.match(text, at)
                if hit and is_login(hit["value"]):
                    yield Span(*hit.span("value"), "login")
    options = _OPTIONS.search(text) is not None
    for asked, ways in ((options, _OF_COMMANDS), ("passw" in low, _OF_PASSWORDS), (True, _OF_OTHERS)):
        for way in ways if asked else ():
            if any(word in low for word in way.needed):
                yield from _passwords(text, low, way)


def _passwords(text: str, low: str, way: _Way) -> Iterator[Span]:
    """The passwords in such places. Patterns are in small letters; a text may be in capitals as a whole."""
    done = 0
    for at in sorted(at for sign in way.signs for at in places(low, sign)):
        hit = way.pattern.match(text, at) if at >= done else None
        if at >= done and hit is None and text[at : at + 2].isupper():
            hit = way.pattern.match(low, at)
            hit = hit if hit and text[at : hit.start("value")].isupper() else None
        if hit:
            done = hit.end()
            if not is_variable(text[slice(*hit.span("value"))]):
                yield Span(*hit.span("value"), "login")


def is_login(encoded: str) -> bool:
    """Whether it says NAME:PASSWORD in base64, or may have before its letters became of one case: then it says nothing
    any more, and is guessed."""
    try:
        plain = encoded.replace("-", "+").replace("_", "/")
        decoded = b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (NotBase64, ValueError):
        return False
    if encoded in (encoded.lower(), encoded.upper()) and not is_known(encoded):
        return is_random(encoded, 20) or encoded.endswith("=")
    return b":" in decoded and decoded.isascii() and decoded.decode().isprintable()
