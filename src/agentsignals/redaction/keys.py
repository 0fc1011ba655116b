"""Secrets that their shape gives away: keys with a prefix, tokens in three parts, private keys, logins in addresses.

The shapes are those that their issuers document. A key that a terminal or a mail broke over lines is masked to its end.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator

from agentsignals.redaction.spans import Span, places

_BREAK = r"(?>(?:\\?\r?\n|(?:\\{1,2}r)?\\{1,2}n)[ \t]{0,40}(?:\d{1,6}[→\t])?[+>|#-]?[ \t]{0,40})"
"""A line's end, written or escaped, and what stands before the next line of a diff, a quote, a numbered listing.

Atomic: a dash after it is read in one way only, or a text of dashes would be read in endlessly many.
"""
_RUNS_ON = r"(?=[\w.+/=-]{0,200}?(?:\d|[a-z][A-Z]|[A-Z]{2}[a-z]))"
"""What a key's next line looks like, and a word's does not."""


def _exactly(body: str, n: int) -> str:
    """A body of that length, on however many lines; longer ones, as issuers lengthen theirs."""
    return rf"(?:(?:{_BREAK})?{body}){{{n}}}{body}{{0,400}}"


def _at_least(body: str, n: int) -> str:
    """A body of that length or longer; its next lines where they look like one."""
    more = rf"{_BREAK}{_RUNS_ON}{body}{{8,400}}(?![\w:(])"
    return rf"(?:{body}{{{n},4000}}|{body}{{0,{n}}}(?={_BREAK}))(?:{more}){{0,60}}"


_WORD, _DASHED = "[A-Za-z0-9]", r"[\w-]"
_NUMBERED = r"(?=[\w-]{0,60}\d)"
"""`sk-` begins words, too; a key has a digit."""
_BODIES: dict[str, str] = {
    **dict.fromkeys(("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), f"{_exactly(_WORD, 36)}|{_WORD}{{20,255}}"),
    "github_pat_": f"{_exactly('[A-Za-z0-9_]', 82)}|{_at_least('[A-Za-z0-9_]', 20)}",
    "npm_": f"{_exactly(_WORD, 36)}|{_WORD}{{30,255}}",
    "hf_": f"{_exactly(_WORD, 34)}|{_WORD}{{20,255}}",
    **dict.fromkeys(("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"), _at_least(_WORD, 10)),
    **dict.fromkeys(("gsk_", "r8_", "dop_v1_", "shpat_", "sbp_", "glsa_", "dckr_pat_"), _at_least(_DASHED, 20)),
    **dict.fromkeys(("sb_secret_", "lin_api_", "ntn_", "pscale_tkn_", "sntrys_", "figd_"), _at_least(_DASHED, 16)),
    "sk-": _NUMBERED + _at_least(_DASHED, 16),
    **dict.fromkeys(("sk-ant-", "sk-proj-", "sk-svcacct-", "sk-or-"), _at_least(_DASHED, 10)),
    **dict.fromkeys(("glpat-", "gldt-", "glrt-", "GOCSPX-"), _at_least(_DASHED, 16)),
    **dict.fromkeys(("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xapp-"), _at_least(_DASHED, 10)),
    **dict.fromkeys(("pplx-", "xai-", "tvly-", "NRAK-", "PMAK-"), _NUMBERED + _at_least(_DASHED, 24)),
    "pypi-": f"(?=AgE|{_DASHED}{{40}}){_at_least(_DASHED, 20)}|(?={_DASHED}{{0,60}}\\d){_at_least(_DASHED, 30)}",
    "key-": "[0-9a-f]{32}(?![0-9a-f])",
    "AGE-SECRET-KEY-": _exactly("[0-9A-Z]", 59),
    "SG.": _at_least(r"[\w.-]", 40),
    "ya29.": _at_least(r"[\w.-]", 20),
    "hvs.": _at_least(_DASHED, 20),
}
"""What follows each prefix."""
_PATTERNS = {prefix: re.compile(body) for prefix, body in _BODIES.items()}
_BY_LENGTH = sorted(_BODIES, key=len, reverse=True)
_PREFIXED = tuple(
    re.compile(re.escape(last) + "(?:" + "|".join(f"(?<={re.escape(p)})" for p in _BY_LENGTH if p[-1] == last) + ")")
    for last in "_-."
)
"""A prefix by its last character, which is rare in texts: its first ones are not."""

_BARE: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("AKIA", re.compile(_exactly("[0-9A-Z]", 16) + r"(?![a-z])")),
    ("ASIA", re.compile(_exactly("[0-9A-Z]", 16) + r"(?![a-z])")),
    ("AIza", re.compile(_exactly(_DASHED, 35))),
    ("eyJ", re.compile(rf"(?:{_DASHED}|{_BREAK}){{8,8000}}\.(?:[\w.-]|{_BREAK}(?=[\w-]{{1,200}}\.)){{4,8000}}"
                       rf"(?:{_BREAK}{_RUNS_ON}[\w.-]{{8,400}}(?![\w:(])){{0,60}}")),
    ("AC", re.compile("[0-9a-f]{32}(?![0-9a-f])")),
    ("SK", re.compile("[0-9a-f]{32}(?![0-9a-f])")),
    ("dapi", re.compile("[0-9a-f]{32}(?![0-9a-f])")),
    ("hooks.slack.com/", re.compile(r"(?:services|workflows|triggers)/" + _at_least("[A-Za-z0-9_/+-]", 16))),
    ("/api/webhooks/", re.compile(r"\d{10,24}/" + _at_least(_DASHED, 20))),
    ("sig=", re.compile(r"[A-Za-z0-9%+/=_-]{20,200}")),
)  # fmt: skip
"""A needle, and what follows it."""
_RUN = re.compile(r"[\w-]*")

_BOT = re.compile(_exactly(_DASHED, 35))
_BOT_ID = re.compile(r"(?<!\d)\d{6,12}\Z")
_DISCORD = re.compile(r"\.[\w-]{6}\.[\w-]{27,80}(?![\w-])")
_DISCORD_ID = re.compile(r"(?<![\w-])[MNO][\w-]{22,27}\Z")

_PEM_HEAD = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}\Z")
_PEM_REST = re.compile(
    r"(?: BLOCK)?-----(?![\"'`]\s*[,)\]])"
    r"(?:(?:(?!-----).){0,20000}?-?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"|[A-Za-z0-9+/=\s\\\"',:>|*#→-]{0,20000})",
    re.S,
)
_PEM_END = re.compile(r"-?-----END [A-Z0-9 ]{0,40}\Z")
_PEM_LINES = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\\\"'>|# \t\r\n"
_PEM_LINE = re.compile(r"[A-Za-z0-9+/=]{16}")
_MOST_KEY_CHARS = 8_000
_LOGIN = re.compile(r"[^\s/@:\"'<>]{0,200}:[^\s/@\"'<>]{1,200}(?=@)|[\w-]{16,255}(?=@)")
_VARIABLE = re.compile(r"(?:\A|:)(?:\$?\{|\$\(|\$[A-Z_]+\Z|\[)")
_CURL_USER = re.compile(r"(?:-u|--user)[ =]?[\"']?([^\s\"':@/]{1,80}:(?!\d{1,5}\b)[^\s\"'$]{3,200})")
_BASIC = re.compile(r"(?<=[Bb]asic )[A-Za-z0-9+/]{8,400}={0,2}")


def spans(text: str) -> Iterator[Span]:
    """Every key, private key and login that its shape gives away."""
    yield from _prefixed(text)
    yield from _bare(text)
    yield from _private_keys(text)
    yield from _logins(text)


def _begins_word(text: str, at: int) -> bool:
    """Whether no word runs into this place; an escaped line end or tab before it is none."""
    before = text[at - 1] if at else " "
    if not (before.isalnum() and before.isascii()):
        return True
    return before in "nrt" and at > 1 and text[at - 2] == "\\"


def _prefixed(text: str) -> Iterator[Span]:
    for pattern in _PREFIXED:
        done = 0
        for hit in pattern.finditer(text):
            if hit.end() < done:
                continue
            head = text[max(0, hit.end() - 16) : hit.end()]
            for prefix in _BY_LENGTH:
                if head.endswith(prefix) and _begins_word(text, hit.end() - len(prefix)):
                    found = _PATTERNS[prefix].match(text, hit.end())
                    if found:
                        done = found.end()
                        yield Span(hit.end() - len(prefix), done, "key")
                        break


def _bare(text: str) -> Iterator[Span]:
    for needle, pattern in _BARE:
        if needle not in text:
            continue
        done = 0
        for at in places(text, needle):
            if at < done or not (_begins_word(text, at) or needle[-1] == "/"):
                continue
            found = pattern.match(text, at + len(needle))
            done = found.end() if found else _run_end(text, at)
            if found:
                yield Span(at, done, "key")
    for at in places(text, ":AA") if ":AA" in text else ():
        number = _BOT_ID.search(text, max(0, at - 13), at)
        if number and (found := _BOT.match(text, at + 1)):
            yield Span(number.start(), found.end(), "key")
    for hit in _DISCORD.finditer(text):
        if number := _DISCORD_ID.search(text, max(0, hit.start() - 28), hit.start()):
            yield Span(number.start(), hit.end(), "key")


def _run_end(text: str, at: int) -> int:
    """Where the word ends that begins here: what was not found in it is not looked for again in its parts."""
    run = _RUN.match(text, at)
    return run.end() if run else at


def _private_keys(text: str) -> Iterator[Span]:
    done = 0
    for at in places(text, "PRIVATE KEY") if "PRIVATE KEY" in text else ():
        head = _PEM_HEAD.search(text, max(done, at - 60), at)
        rest = head and _PEM_REST.match(text, at + len("PRIVATE KEY"))
        if head and rest:
            done = rest.end()
            yield Span(head.start(), done, "private key")
        elif (start := _tail_of_key(text, done, at)) is not None:
            yield Span(start, at, "private key")


def _tail_of_key(text: str, done: int, at: int) -> int | None:
    """Where the lines begin that are left of a private key whose beginning was cut off; None where there are none."""
    end = _PEM_END.search(text, max(done, at - 60), at)
    if end is None:
        return None
    first = max(done, at - _MOST_KEY_CHARS)
    lines = len(text[first : end.start()].rstrip(_PEM_LINES))
    found = _PEM_LINE.search(text, first + lines, end.start())
    return found.start() if found else None


def _logins(text: str) -> Iterator[Span]:
    for at in places(text, "://") if "://" in text else ():
        found = _LOGIN.match(text, at + 3)
        if found and not _VARIABLE.search(found[0]):
            yield Span(found.start(), found.end(), "login")
    if "curl" in text or "wget" in text:
        for hit in _CURL_USER.finditer(text):
            yield Span(hit.start(1), hit.end(1), "login")
    if "asic " in text:
        for hit in _BASIC.finditer(text):
            if _is_login(hit[0]):
                yield Span(hit.start(), hit.end(), "login")


def _is_login(encoded: str) -> bool:
    """Whether it says NAME:PASSWORD in base64."""
    try:
        told = b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (NotBase64, ValueError):
        return False
    return b":" in told and told.isascii()
