"""Finds keys by their shape, and logins in fixed places.

Keys: the prefix of their issuer (`issuers.json`), web tokens, private keys. A key that a terminal or a mail broke over
lines is masked to its end. Logins: addresses, headers of Basic, netrc, docker's files, SQL, password hashes, web keys.
"""

from __future__ import annotations

import re
import string
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from agentsignals.model.lazy import deferred_pattern
from agentsignals.redaction.values import (
    WORD_START,
    LongRuns,
    Span,
    has_digit,
    is_known,
    is_mixed,
    is_public,
    is_public_at,
    is_random,
    is_rare,
    is_rare_word,
    is_strong,
    is_variable,
    looks_chosen,
    looks_drawn,
    looks_given,
    looks_typed,
    names_a_secret,
    occurrences,
    places,
)
from agentsignals.shell.tokens import names


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


_LOGIN = deferred_pattern(r"[^\s/@:\"'<>]{0,200}:[^\s/@\"'<>]{1,200}(?=@)|[\w-]{16,255}={0,2}(?=@)")
_OF_DOCUMENTS = deferred_pattern(r"(?i)user(?:name)?:(?:pass(?:word|wd)?|pwd)")
_VARIABLE = deferred_pattern(r"(?:\A|:)(?:\$?\{|\$\(|\$[A-Z_]+\Z|\[)")
_BASIC = deferred_pattern(r"(?i:basic) (?P<value>[A-Za-z0-9+/]{8,400}={0,2})")
_AUTH = deferred_pattern(
    r"(?i:auth)\\{0,16}[\"']?\s{0,3}[:=]\s{0,3}\\{0,16}[\"']?(?P<value>[A-Za-z0-9+/_-]{8,400}={0,2})"
)
_VALUE = r"\\{0,4}[NE]?\\{0,4}[\"']?(?P<value>[^\s\"'\\<>\[{$-][^\s\"'\\|;&]{2,200})"
_NEXT = r"(?:\s|\\{1,2}[nrt]){1,8}(?:\d{1,6}[→\t:|]\s{0,4})?(?:[+>|#-]{1,3}\s{0,8})?"
"""Between two words of a file: blanks, a line end, and what a listing, diff or quote puts before a line."""
_NETRC = deferred_pattern(
    rf"(?:machine{_NEXT}\S{{1,200}}|default){_NEXT}(?:(?:login|account){_NEXT}\S{{1,200}}{_NEXT}){{1,2}}password{_NEXT}{_VALUE}"
)
_IDENTIFIED = deferred_pattern(rf"(?i:identified\s+(?:with\s+\S+\s+)?(?:by|as)\s+(?:password\s+)?){_VALUE}")
_PLACES = (("machine", _NETRC, "password"), ("default", _NETRC, "password"), ("identified", _IDENTIFIED, ""))
_PGPASS = deferred_pattern(r":(?<=[\w*\]]:)(?:\d{2,5}|\*):[\w*.-]+:[\w*.-]+:(?P<value>[^\s:\"'`]{4,100})")
_HASHED = deferred_pattern(r"\$(?:apr1|2[abxy]|[156y]|argon2\w{1,2}|scrypt|pbkdf2[\w-]*|S|P|H)\$[\w./+=,$!-]{12,200}")
_LABELLED = deferred_pattern(
    r"\{(?i:plain|noop|clear(?:text)?)\}[^\s:\"']{6,}|\{S?(?:SHA|SSHA|MD5|SMD5|CRYPT)\d*\}[\w+/=]{16,}"
)
_LICENCE = deferred_pattern(
    r"-(?:(?<=(?<![\w-])(?P<five>[A-Z0-9]{5})-)[A-Z0-9]{5}(?:-[A-Z0-9]{5}){2,4}"
    r"|(?<=(?<![\w-])[A-Z0-9]{4}-)[A-Z0-9]{4}(?:-[A-Z0-9]{4}){3,5}"
    r"|(?<=(?<![\w-])(?P<drive>\d{6})-)\d{6}(?:-\d{6}){6})(?![\w-])"
)
"""A key that a person types."""
_LISTED = r"(?:[ \t]*\d{1,6}[→\t|])?"
_KIND = deferred_pattern(rf"(?m)^{_LISTED}[ \t]*kind:[ ]*[\"']?Secret\b")
_MANIFEST = deferred_pattern(
    rf"(?m)^{_LISTED}(?P<in>[ \t]*)"
    r"(?:data|stringData|(?P<named>secrets|credentials|passwords|basic_auth\w{0,20})):[ \t]*\n"
    rf"(?P<body>(?:{_LISTED}(?P=in)[ \t]+\S.*(?:\n|\Z))+)"
)
_MANIFEST_VALUE = deferred_pattern(rf"(?m)^{_LISTED}[ \t]+(?:[\w.-]+:|-)[ ]*[\"']?(?P<value>[^\s\"'#|>][^\s\"']{{3,}})")
"""Kubernetes' manifests of secrets: everything under `data` and `stringData`. Elsewhere what is under `secrets`."""
_NTLM = deferred_pattern(r":(?:[0-9a-fA-F]{32}:)?[0-9a-fA-F]{32}(?=:|\s|\Z)")
_QUERY = deferred_pattern(r"[?&;](?:amp;)?(?P<name>[\w.%-]{1,60})=(?P<value>[\w%.~+/=!-]{8,4000})")
_IN_QUERIES = tuple(
    names("appid sig signature code ticket sessionid assertion policy hmac hash state auth key private")
)
"""Ends of names of parameters that authorize."""
_HOST = deferred_pattern(r"@(?!sha\d|md5)(?<=[\w!#$%^&*+=?~)\"'-]@)(?:tcp|unix)?[(]?/{0,2}[\w\[]")
_AT_CHARS = 170
_AT_HOST = deferred_pattern(
    r"(?:\A|(?<=[\s\"'`(=,|<>/]))(?::?(?:[a-z]+:)*[\w.\\-]{1,60}(?:/[\w.\\-]{1,60})?:[\"']?(?P<colon>[^\s:@/\"'`]{5,100})[\"']?|(?:[a-z]+:)*@?"
    r"[\w$#]{2,30}/(?P<slash>[^\s/@\"':?&=\\]{5,60}))\Z"
)
"""`USER:PASSWORD@HOST` and Oracle's `USER/PASSWORD@HOST`, without a scheme."""
_OF_ORACLE = deferred_pattern(r"(?i)\bthin:|\b(?:sqlplus|impdp|expdp|imp|exp|rman|sqlldr|connect)\b")
_NETWORK_HOST = deferred_pattern(r"@[\w.-]*[:/(]")
_PHRASE = deferred_pattern(
    r"(?i:mnemonic|(?:seed|recovery|secret|backup)[ _-]?(?:phrase|words))[\"'`]?\s?(?:is|are|[:=(])[:\s\"'`\[]{0,4}"
    r"(?P<value>(?:[a-z]{3,40}[ ,\"']{1,6}){3,}[a-z]{3,40})"
    r"|(?P<bare>(?:\b(?:\d{1,2}[.)] ?)?(?!(?:the|and|for|are|not|but|from|can|with)\b)[a-z]{3,8}[\s,\"']{1,4}){11,}"
    r"(?:\d{1,2}[.)] ?)?[a-z]{3,8})\b"
)
"""Words that a wallet is restored from."""
_DIGEST = deferred_pattern(r"\bresponse=\"(?P<given>[0-9a-f]{32,})\"")
_OF_NETWORK = deferred_pattern(
    r"(?m)^\s*(?:r[ow]community6?\s(?P<value>(?!public|private)\S{6,60})|(?:[\w-]*server\b[^\n]{0,60}?\s(?:key|community)|key-string"
    r"|(?:enable|username\s\S+)[^\n]{0,40}?\s(?:secret|password)"
    r"|\W{0,6}(?:[\w.:]{1,30}[>:]\s)?(?:quote\s)?(?:AUTH|PASS|(?:msg \w+ )?IDENTIFY)"
    r"|[\w.:~ ]{1,40}>\s(?i:auth|pass|(?:login|user)\s\S+))\s(?:\d\s)?(?P<typed>\S{6,60}))"
)
"""Words that switches and routers share with servers."""
_KEYED = deferred_pattern(r"(?i)\b(?:md5|sha(?:-?\d+)?|aes(?:[ -]?\d+)?|des)\s\"?(?P<typed>[^\s\"]{6,60})")
"""After the name of an algorithm."""
_OF_ACL = deferred_pattern(r"(?i)\b(?:user|setuser)\s\S+\s[^\n]{0,40}?[\s'\"]>(?P<typed>[^\s'\"]{6,60})")
_CHAP = deferred_pattern(
    r"(?m)^(?:# *client\s+server\s+secret\b[^\n]*\n(?:#[^\n]*\n)*)?\"?[\w*@.-]+\"? +\"?[\w*.-]+\"? +\"?(?P<typed>[^\s"
    r"\"]{6,60})\"?(?= +[\d*]| *$)"
)
_FTP = deferred_pattern(r"(?m)^[ \t]*user \S+ (?P<typed>\S{6,60})[ \t]*$")
_RELAY = deferred_pattern(r"(?m)^\[[\w.-]+\](?::\d+)?\s+\S{1,60}?:(?P<typed>\S{6,60})$")
_MAIL_LOGIN = deferred_pattern(
    r"(?:AUTH(?:ENTICATE)? (?:LOGIN|PLAIN)[^\n]{0,60}\n(?:\W{0,6}(?:334 )?[\w+/=]+\r?\n){0,4}?"
    r"|334 [Uc]GFzc3dvcmQ6\s*\n)(?:C: )?"
    r"\W{0,6}(?P<value>[A-Za-z0-9+/]{8,}={0,2})(?=\s*(?:\Z|\n\W{0,6}(?:235|535|[A-Z]+\b)))"
)
_SHOWN = deferred_pattern(
    r"(?m)^(?:[\w@.:~/\[\] -]{0,40}[$#❯]|PS [^>\n]{0,60}>)\s(?P<command>\S[^\n]{3,200})"
    r"\n(?P<value>\S{6,200}|[a-z]{3,}(?: [a-z]{3,}){1,6})[ \t]*(?:\n|\Z)"
)
_NOT_FOUND = deferred_pattern(
    r"command not found: (?P<zsh>[^\s:]{8,40})(?=\s|\Z)|: (?P<bash>[^\s:]{8,40}): command not found"
)
"""A password that was typed where a command was asked for."""
_SHOWS = deferred_pattern(
    r"(?:go)?pass(?: show)? |op read |secret-tool lookup |security find-\S+ .*-w\b|bw get password |pwgen "
    r"|openssl rand "
)
"""A command that prints a secret alone, and its first line; of these commands any."""
_DECODES = deferred_pattern(r"\bsecrets?\b.*base64 (?:-d|-D|--decode)|\b(?:go)?pass (?:show )?\w|\bop read ")
_MAKES = deferred_pattern(r"\b(?:keys? list|list-keys|generate|gen|genkey|keygen|mint|issue)\b")
"""A command that makes something, as it may print a key."""
_DUMPS = deferred_pattern(
    r"(?:sudo )?(?:xxd|od|hexdump|base64|cat|head|type|Get-Content)\b[^\n|;]*[/\\ .](?!pub)\w*key(?:file|s)?\b"
)
_RANDOM_PASSWORD = deferred_pattern(
    r"\"result\"\s*:\s*\"(?P<value>[^\"\s]{6,200})\"(?=(?s:.{0,800})\"(?:random_password|special)\")"
    r"|(?i:temporary password is generated for \S{1,80}:)\s(?P<drawn>\S{6,60})"
)
"""As Terraform keeps what it has drawn, and as MySQL tells it."""
_PIN = deferred_pattern(
    r"(?:\bPIN|\bTAN|(?<![A-Za-z])pin|Pin|(?i:passcode|\botp|\bpuk"
    r"|\b(?:verification|confirmation|security|one-time|login|access|2fa|sms|auth\w*|alarm|door|gate|unlock|keybox"
    r"|key box|safe|locker|entry|garage|tresor|tür|schließfach)[ _-]?(?:code|pin|combination|combo)"
    r"|\bcode (?:for|to|of) (?:the |our |my )?(?:garage|door|gate|alarm|safe|lock|keypad|building|locker|bike)\w*))\b"
    r"(?:(?:[^.\n]|\.(?=[\d.]|\s[a-z])){0,80}?(?:\b(?:is|ist|lautet|es|est|to|jest|je)|[:=éè]|(?i:pin|puk|code))|(?<=-pin)(?=\s)|(?=\s#\d)|(?<=[Cc]ode)(?=\s\d{4}\s*(?:[,.;)#]|\Z|\n))|(?<=P[IU][NK])(?=\s\d+\s*(?:[,.;)]|\Z|\n|for\b|on\b)))\s?[\"'#]?"
    r"(?P<value>\d{4,8}|(?!\d{4}-\d\d-\d\d)\d{2,4}(?:-\d{2,4}){1,2})\b"
    r"|\bAT\+(?:CPIN|CPWD|CLCK)=(?P<sim>\"?\d{4,8}(?:\"?,\"?\d{4,8})*|\"[A-Z]{2}\",(?:\d,)?\"?\d{4,8}(?:\"?,\"?\d{4,8})*)"
    r"|(?i:(?:bestätigungs|sicherheits|anmelde)code|(?:code|codice|código|kod) (?:de|di|d['’]) ?\w*(?:vérif|verif"
    r"|confirm|sécur|segur|sicur|accès|acceso|accesso|conex)\w*"
    r"|(?:(?<=\b(?:tu|su) )|(?<=\b(?:tuo|seu|ihr|ваш) )|(?<=\bdein )|(?<=\bvotre ))"
    r"(?:code|codice|código|код)(?: \w+)?)\s?(?:is|ist|lautet|es|est|è|é|:"
    r"|=)\s?(?P<foreign>\d{4,8})\b"
    r"|(?i:(?:code|codice|código|kod) (?:del|della|dell['’]|de|da|do|di|d['’])\s?(?:la |l['’])?(?:alarm\w*|puerta"
    r"|port[ea]\w*|allarme"
    r"|portão|garage|garaje|coffre|caja|cassaforte|entrada|entrée|ingresso)[^.\n]{0,50}?\s(?:es|est|è|é|:))\s(?P<way>\d{4,8})\b"
    r"|(?i:alarm|keypad|lock|door)\w*:?[^\n]{0,40}(?:\n[^\n]{0,60}){1,4}?\n\s+(?:user_|master_)?(?:code|pin):\s[\"']?(?P<field>\d{4,8})\b"
)
_SENT = deferred_pattern(
    r"(?P<first>\d(?<=\b\d)\d{3,7})\s(?:is|ist|es|est|è|to|é)\s(?:your|ihr|Ihr|dein|tu|su|votre|ton|il tuo"
    r"|o seu)\s[^\n]{0,40}(?i:code|código|codice|kod|pin)\b"
)
_TO_USE = deferred_pattern(
    r"\b(?i:use|enter)\s(?P<used>\d{4,8})\s(?:to|as)\s(?i:sign|log|verify|confirm|complete|authenticate|your)"
)
"""A code for a login, as messages give it."""
_CODES = deferred_pattern(
    r"(?i:(?:backup|recovery|rescue|scratch)[ _-]?codes?)(?:[\"']?:?|[^:\n]{0,40}(?::|\bis))\s[\s*-]{0,8}"
    r"(?P<codes>(?:(?:\d{1,2}[.)] ?)?[\"']?(?:\d{4} \d{4}|(?=[a-z-]*\d)[\w-]{6,20})[\"']?"
    r"(?: \(\w{1,12}\))?[\s,*-]{0,6}){1,20})"
)
"""Logins of point-to-point links, of FTP and of mail; codes for a lost device."""
_NUMBERED_WORD = deferred_pattern(r"[\"']?(?P<word>[a-z]+)-\d+[\"'\s,*-]*")
"""A code that stands alone: one of an everyday word and a number is a part of a plan."""
_CHARACTERS = deferred_pattern(r"[\"'](?P<typed>[^\"'\n]{6,200})[\"']\.toCharArray\(\)")
"""A password in Java, which is no String."""
_IN_PATHS = frozenset(("hook", "reset", "invit", "activat", "confirm", "verif", "magic", "rtmp"))
_HOOK = deferred_pattern(
    r"(?i:hooks?|(?:reset|invit|activat|confirm|verif|magic)[\w-]{0,20}|rtmps?:/)[./](?:[\w.-]{1,60}/){0,6}(?![0-9a-f]{8}-[0-9a-f]{4}-|\d{8}T\d)(?P<value>(?=[\w-]*\d)[A-Za-z0-9-]{16,64})(?![\w-])"
    r"|rtmps?://(?:[\w.-]{1,60}/){1,6}(?P<stream>[\w-]{16,64})(?![\w/-])"
)
_WAY_IN = deferred_pattern(r"(?i)(?:reset|confirm|verif|invit|magic|activat|unsubscri)[^\s\"']*\Z")
"""An address whose parameters let somebody in."""
_KEY_LINES = deferred_pattern(
    r"(?i:key\w*(?:\[\w*\])?\s*=\s*\{\s*)(?P<bytes>(?:0x[0-9a-fA-F]{2},?\s*){16,64})\}"
    r"|Private-Lines: \d+\s+(?P<putty>(?:[A-Za-z0-9+/=]{20,}\s*)+)"
    r"|(?:privateExponent|prime[12]|exponent[12]|coefficient|priv):\s*(?P<hex>(?:(?:[0-9a-f]{2}:?){4,}\s*)+)"
    r"|Private-MAC: (?P<mac>[0-9a-f]{40,})"
    r"|-----BEGIN [\w ]{0,30}[Ss]tatic key[\w ]{0,5}-----\s(?P<static>[0-9a-f\s]+)"
)
"""Private keys of PuTTY, of `openssl -text` and of OpenVPN."""
_OF_TOTP = deferred_pattern(
    r"(?i)\b(?:key|code|secret|manually|app)\b[^\n]{0,60}?\b(?P<value>(?=[a-z \t-]{0,40}[2-7][a-z \t-]{0,40}[2-7])(?:"
    r"[a-z2-7]{4}[ -]){3,12}[a-z2-7]{4})\b"
)
"""What an app for codes is set up with, typed by hand."""
_INSTEAD = deferred_pattern(
    r"(?i)\b(?:try|use|it['’]?s)\s(?P<value>[a-z]{5,}[-_.!]?\d{1,4}!?)\sinstead\b[^\n]{0,40}\b(?:user\w*|login|account)\b"
)
_DIRECTIVE = deferred_pattern(
    r"(?m)^[ \t]*(?:requirepass|masterauth|bindpw|rootpw|crypto isakmp key)[ \t]+[\"']?(?P<value>[^\s\"';]{6,60})"
    r"[\"']?(?=[ \t]*(?:\n|\Z)|[ \t]+address\b)"
)
_SURE: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (sign, deferred_pattern(rf"(?m){pattern}"))
    for sign, pattern in (
        ("LOGIN ", r"^(?:[\w.]{1,12}\s)?LOGIN \S{1,60} \"?(?P<value>[^\s\"]{6,60})\"?[ \t]*$"),
        ("IDENTIFY ", r"^(?:[\w:/ -]{0,20}NickServ )?:?IDENTIFY (?:\w+ )?(?P<value>\S{6,60})[ \t]*$"),
        ("IDENTIFIED BY ", r"\bIDENTIFIED BY (?P<value>(?!VALUES)[\w$#]{6,60})(?=\s|;|\Z)"),
        ("> AUTH ", r"^[\w.:-]{1,40}> AUTH (?:\w+ )?(?P<value>\S{6,60})$"),
        ("//INPUT ", r"^//INPUT +DD +\*\n\S+(?: \d+)?\n\S+\n(?P<value>\S{4,60})\n"),
        ("PASSWORD(", r"\bPASSWORD\((?P<value>(?=[A-Z]*\d)[A-Z\d@#$]{5,8})\)"),
        ("WIFI:", r"\bWIFI:(?:[A-Z]:[^;\n]*;)*?P:(?P<value>[^;\n]{6,63});"),
        ("pre-shared-", r"\bpre-shared-(?:secret|key) (?P<value>[^\s\"';]{6,60})[ \t]*$"),
        ("<key>", r"<key>\w*(?i:passw|secret)\w*</key>\s*<(?:string|data)>(?P<value>[^<\s]{6,200})<"),
        ("static:", r"\bstatic:[\w.@-]+:(?P<value>[^\s:]{6,60})$"),
        (" 7 ", r"\b(?:password|key|secret|md5) 7 (?P<value>[0-9A-F]{8,})\b"),
        ("&p=", r"[?&](?:amp;)?u(?:ser(?:name)?)?=[^&\s]+&(?:amp;)?p=(?P<value>[^&\s\"'`]{6,100})"),
        ("lock:", r"lock:\s*\n(?:[^\n]{0,60}\n){0,4}?\s+(?:code|pin):\s[\"']?(?P<value>\d{4,8})\b"),
        ("K10", r"\b(?P<value>K10[0-9a-f]{16,}::\w+:[0-9a-f]{8,})"),
        (
            " key ",
            r"(?<=(?:this |.api |cret |auth ))key\b(?! id)[^\n:]{0,40}: (?P<value>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9"
            r"a-f]{12})",
        ),
    )
)
"""Lines of which a grammar says what stands where, so that the look of the value says nothing: with a text that each
contains. Among them are Cisco's reversible cipher (7), and what a node joins a cluster of K3s with (K10)."""
_LOGIN_FILE = deferred_pattern(r"\bcat [^\n]*(?:login|auth|cred|pass)[^\n]*\n[^\s:=]{3,40}\n(?P<typed>[^\s:=]{6,60})\n")
"""A file of a user's name and the password below it."""
_USERS_BELOW = deferred_pattern(r"(?m)^[ \t]+(?:- )?[a-z_][\w-]*:(?P<value>[^\s:]{4,60})$")
_HEX_KEY = deferred_pattern(r"0x[0-9a-fA-F]{64}(?![0-9a-fA-F])")


_SHAPES: tuple[tuple[frozenset[str], re.Pattern[str], str, tuple[str, ...]], ...] = tuple(
    (frozenset(words.split()), pattern, kind, tuple(" ".join(begins).split()))
    for words, pattern, kind, *begins in (
        ("mnemonic phrase seed words wallet", _PHRASE, "secret"),
        ("privateexponent putty openvpn uint unsigned", _KEY_LINES, "private key"),
        ("realm digest", _DIGEST, "secret"),
        (
            "server community rocommunity rwcommunity enable username auth pass identify ftp lftp",
            _OF_NETWORK,
            "secret",
        ),
        ("random special temporary", _RANDOM_PASSWORD, "secret"),
        (
            "pin puk tan cpin clck cpwd passcode otp verification alarm door gate unlock keypad keybox combination "
            "tresor garage türcode bestätigungscode sicherheitscode vérification verificación verifica conferma código "
            "codice код kod",
            _PIN,
            "secret",
            "pin tan passcode otp puk verification confirmation security one-time login access 2fa sms auth alarm door"
            " gate unlock key safe lock entry garage tresor tür schließfach keypad code codice código код kod at+c"
            " bestätigungscode sicherheitscode anmeldecode",
        ),
        ("snmp ntp createuser authpriv ospf", _KEYED, "secret"),
        ("setuser default", _OF_ACL, "secret", "user setuser"),
        ("chap pap pptpd ppp addresses", _CHAP, "secret"),
        ("ftp", _FTP, "secret"),
        ("auth authenticate ugfzc cgfzc", _MAIL_LOGIN, "secret"),
        ("smtp mail relay mx", _RELAY, "secret"),
        ("code", _SENT, "secret"),
        ("code", _TO_USE, "secret", "use enter"),
        ("codes code", _CODES, "secret", "backup recovery rescue scratch"),
        ("tochararray", _CHARACTERS, "secret"),
        ("authenticator totp", _OF_TOTP, "secret"),
        ("instead", _INSTEAD, "secret", "try use it"),
        ("auth", _LOGIN_FILE, "secret", "cat"),
        ("requirepass masterauth bindpw rootpw isakmp", _DIRECTIVE, "secret"),
        ("wallet signer private mnemonic", _HEX_KEY, "key"),
    )
)
"""Words that a text must contain, one of them (`text_words` in `words.json`); what they introduce; its kind; and where
it can only begin with certain words, these: then it is tried there alone."""


_PHRASE_LENGTHS = (12, 15, 18, 21, 24)
"""Words of a recovery phrase (BIP 39)."""
_OF_SENTENCES = names("this that you have was were will would which what when then than has had its they")


def _is_phrase(words: str) -> bool:
    """Return whether words in a row are a recovery phrase: of its length, hardly one twice, and no sentence."""
    each = re.findall(r"[a-z]{3,}", words)
    return (
        len(each) in _PHRASE_LENGTHS and len(set(each)) >= len(each) - 1 and len(_OF_SENTENCES.intersection(each)) <= 2
    )


def logins(text: str, low: str, words: frozenset[str]) -> Iterator[Span]:
    """Yield logins in fixed places. `low`: the text in lower case; `words`: those of `text_words` that it contains."""
    for at in occurrences(text, "://") if "://" in text else ():
        login = _LOGIN.match(text, at + 3)
        password = login[0].partition(":")[2] if login else ""
        is_placeholder = password.isupper() and password.isalpha() and names_a_secret(password) is not None
        is_placeholder = is_placeholder or (login is not None and _OF_DOCUMENTS.fullmatch(login[0]) is not None)
        is_placeholder = is_placeholder or (password != "" and not password.strip("*•"))
        if login and not _VARIABLE.search(login[0]) and not is_placeholder:
            yield Span(login.start(), login.end(), "login")
    for sign, encoded in (("basic", _BASIC), ("auth", _AUTH)):
        for at in occurrences(low, sign) if sign in words else ():
            hit = encoded.match(text, at)
            if hit and is_login(hit["value"]):
                yield Span(*hit.span("value"), "login")
    for sign, pattern, needed in _PLACES:
        done = 0
        for at in occurrences(low, sign) if sign in words and needed in low else ():
            hit = pattern.match(text, at) if at >= done else None
            quoted = hit is not None and text[hit.start("value") - 1] in "\"'"
            if hit and not is_variable(hit["value"]) and (quoted or looks_typed(hit["value"]) or needed):
                done = hit.end()
                yield Span(*hit.span("value"), "login")
    if "@" in text:
        for host in _HOST.finditer(text):
            before = text[max(0, host.start() - _AT_CHARS) : host.start()].rsplit(None, 1)
            hit = _AT_HOST.search(before[-1]) if before else None
            may_be_typed = hit and (
                _OF_ORACLE.search(text, max(0, host.start() - _AT_CHARS), host.start())
                if hit.lastgroup == "slash"
                else _NETWORK_HOST.match(text, host.start())
            )
            value = hit[hit.lastgroup or 0] if hit else ""
            is_sure = text.startswith(("@tcp(", "@unix("), host.start()) and not is_variable(value)
            is_word = may_be_typed and hit and hit.lastgroup == "slash" and is_rare_word(value)
            if hit and (is_sure or is_word or (looks_typed if may_be_typed else looks_chosen)(value)):
                at = host.start() - len(before[-1]) + hit.start(hit.lastgroup or 0)
                yield Span(at, at + len(value), "secret")  # no login, before which a mail's host stays
    if "hashes" in words or text.count(":") > 3:
        for hit in _PGPASS.finditer(text):
            if looks_typed(hit["value"]) or is_rare_word(hit["value"]):
                yield Span(*hit.span("value"), "login")
        for hit in _NTLM.finditer(text):
            if ":" in hit[0][1:] or text.endswith("hashes ", 0, hit.start()):
                yield Span(hit.start() + 1, hit.end(), "login")
    if not words.isdisjoint(("kind", "secrets", "credentials", "passwords", "auth")):
        for manifest in _MANIFEST.finditer(text):
            first, last = text.rfind("\n---", 0, manifest.start()), text.find("\n---", manifest.end())
            if manifest["named"] or _KIND.search(text, max(0, first), last if last >= 0 else len(text)):
                for hit in _MANIFEST_VALUE.finditer(text, *manifest.span("body")):
                    if looks_given(hit["value"]) if manifest["named"] else not is_variable(hit["value"]):
                        yield Span(*hit.span("value"), "secret")
    for pattern, sign in ((_HASHED, "$"), (_LABELLED, "{")):
        for hit in pattern.finditer(text) if sign in text else ():
            yield Span(*hit.span(), "secret")
    for at in occurrences(text, "chpasswd:\n") if "chpasswd" in words else ():
        for hit in _USERS_BELOW.finditer(text, at, at + _MOST_KEY_CHARS):
            yield Span(*hit.span("value"), "secret")
    for sign, pattern in _SURE:
        for hit in pattern.finditer(text) if sign in text else ():
            if not is_variable(hit["value"]):
                yield Span(*hit.span("value"), "secret")
    for hit in _LICENCE.finditer(text):
        start = hit.start() - (5 if hit["five"] else 6 if hit["drive"] else 4)
        if hit["drive"] or is_mixed(text[start : hit.end()]):
            yield Span(start, hit.end(), "secret")
    for needed_words, pattern, kind, begins in _SHAPES:
        if needed_words.isdisjoint(words):
            continue
        tried = filter(None, (pattern.match(text, at) for at, _ in places(low, begins)))
        for hit in tried if begins else pattern.finditer(text):
            group = hit.lastgroup or 0
            if is_variable(hit[group]) or (group == "bare" and not _is_phrase(hit[group])):
                continue
            if group == "codes" and (one := _NUMBERED_WORD.fullmatch(hit[group])) and not is_rare(one["word"]):
                continue
            is_typed = group == "typed" and (looks_typed(hit[group]) or is_rare_word(hit[group]))
            if is_typed or group not in ("given", "typed") or (group == "given" and looks_given(hit[group])):
                yield Span(*hit.span(group), kind)
    for hit in _SHOWN.finditer(text) if "$ " in text or "# " in text or "PS " in text or "❯" in text else ():
        value, command = hit["value"], hit["command"]
        if " " in value:
            if _DECODES.search(command):
                yield Span(*hit.span("value"), "secret")
            continue
        is_told = _SHOWS.match(command) is not None
        is_told = is_told or (_DUMPS.match(command) is not None and (looks_given(value) or is_random(value, 20)))
        is_told = is_told or (_MAKES.search(command) is not None and is_random(value, 16) and not is_public(value))
        if not is_told and any(names_a_secret(word.strip("-")) for word in command.split()):
            is_told = looks_typed(value) or (looks_given(value) and not is_public_at(text, *hit.span("value")))
        if is_told and not is_variable(value):
            yield Span(*hit.span("value"), "secret")
    for hit in _NOT_FOUND.finditer(text) if "command not found" in low else ():
        value = hit[hit.lastgroup or 0]
        if is_strong(value) or (is_rare_word(value) and has_digit(value) and value != value.lower()):
            yield Span(*hit.span(hit.lastgroup or 0), "secret")
    for at, _ in places(low, words & _IN_PATHS):
        hit = _HOOK.match(text, at)
        group = hit.lastgroup or 0 if hit else 0
        if hit and (looks_given(hit[group]) or (is_random(hit[group], 20) and not is_known(hit[group]))):
            yield Span(*hit.span(group), "secret")
    if "=" in text and ("://" in text or "?" in text):
        for hit in _QUERY.finditer(text):
            value = hit["value"]
            is_way_in = _WAY_IN.search(text, max(0, hit.start() - _AT_CHARS), hit.start())
            if (is_way_in or hit["name"].lower().endswith(_IN_QUERIES)) and (
                looks_drawn(value) or looks_given(value) or (is_random(value, 12) and not is_known(value))
            ):
                yield Span(*hit.span("value"), "secret")


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
