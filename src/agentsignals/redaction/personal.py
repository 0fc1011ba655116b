"""Finds what identifies a person or machine: mail addresses, home folders, telephone numbers, cards, accounts, IP
addresses.

Numbers are masked only where their own checksum or form holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from hashlib import blake2b
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from itertools import chain

from agentsignals.model.lazy import deferred_pattern
from agentsignals.redaction.values import SIGN, WORD_START, LongRuns, Span, occurrences

_ENDS = r"(?![A-Za-z0-9_-]|\.\d)"
_LOCAL = deferred_pattern(rf"(?:(?<=\\[nrt])|(?<![A-Za-z0-9_.+-])|{SIGN})[A-Za-z0-9_][\w.+-]{{0,63}}\Z")
_DOMAIN = deferred_pattern(r"(?!\d+\.\d)(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w-])")
_NOBODY = frozenset(("git", "noreply", "no-reply", "actions", "bot"))
"""Local parts of addresses that belong to no person."""
_HOMES = (
    ("users", ("/users/", "%2fusers%2f", "users\\", "-users-")),
    ("home", ("/home/", "%2fhome%2f", "-home-")),
)
"""Ways to write a home folder, in lower case, by a word that each contains."""
_ROUTE = deferred_pattern(
    r"(?i:me|self|all|new|edit|list|login|logout|sign\w*|register|profile|settings|search|count|by|current|admin|index|api"
    r"|create|update|delete|verify|password|avatar|\d+|[0-9a-f-]{24,})\Z"
)
"""Words after `/users/` in URLs of programs that name nobody."""
_PLACE = deferred_pattern(r"/[\w.-]")
_NO_PLACE = deferred_pattern(
    rf"(?:(?!{SIGN})(?<=[\w.~}})*-])(?<!\\[nrt])|(?i:get|post|put|patch|delete|head|route)\W{{1,4}})\Z"
)
_USER = deferred_pattern(r"(?!\[)[^\s/\\\"'`:;,<>()\[\]{}|*?$%&=]{1,64}")
_FOLDER_USER = deferred_pattern(r"(?!\[)[^\s/\\\"'`:;,<>()\[\]{}|*?$%&=-]{1,64}")
_PATH_BEFORE = deferred_pattern(r"[\w./~:+-]*")
_RELATIVE = deferred_pattern(
    r"https?://|(?:\./)?(?!.*\.\.|(?:usr|export|var|data|rootfs|host)\b|-\w{1,2}\b)[\w~-][\w.~-]+(?:/[\w.~-]+)*\Z|\./?\Z|~"
)
"""A path in which `home` is no folder of homes: `src/home/`, a page of a site."""
_WINDOWS = deferred_pattern(r"[A-Za-z]:\\{1,8}\Z")
_MUNGED = deferred_pattern(r"(?:^|(?<=[/\\\s\"'`]))(?:-|[A-Za-z]--)\Z")

_NUMBERS = deferred_pattern(r"[0-9][0-9 ().-]{6,}[0-9]")
_MAY_BE_NUMBERS = LongRuns("0123456789 ().-", 8)
_IPV4 = deferred_pattern(rf"{WORD_START}\d{{1,3}}(?:\.\d{{1,3}}){{3}}{_ENDS}")
_VERSION = deferred_pattern(r"(?:[=<>~^!]=|ersions?\W{0,4}|release\W{1,3})\Z")
_NOT_PUBLIC_V4 = tuple(
    map(
        IPv4Network,
        (
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.0.0.0/24", "192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
            "240.0.0.0/4",
        ),
    )
)
"""Networks without public hosts (IANA's IPv4 special-purpose address registry). Written out, because `is_global`
differs between Python versions."""
_NOT_PUBLIC_V6 = tuple(map(IPv6Network, ("2001:2::/48", "2001:db8::/32", "3fff::/20")))
"""Networks without public hosts inside 2000::/3: benchmarks and documentation. An address that embeds an IPv4 address
(2002::/16, 2001::/32) identifies a machine."""
_COLONS = deferred_pattern(r":[0-9a-fA-F]{0,4}:")
_BEFORE_ADDRESS = deferred_pattern(r"(?:\A|[^A-Za-z0-9_.:]|(?<![0-9A-Fa-f:]):|\\[nrt])\Z")
_IPV6 = deferred_pattern(r"[23][0-9a-fA-F]{3}:[0-9a-fA-F:]{4,34}")
_CARD = deferred_pattern(
    rf"{WORD_START}"
    r"(?:[3-6]\d{3}([ -]?)\d{4}\1\d{4}\1\d{4}|3[47]\d{2}([ -]?)\d{6}\2\d{5}|3[068]\d{2}([ -]?)\d{6}\3\d{4})"
    rf"{_ENDS}"
)
_PHONE = deferred_pattern(
    rf"(?:(?<![A-Za-z0-9_.+-])|(?<=\\[nrt])|{SIGN})"
    r"(?:(?:\(\d{3}\) ?\d{3}[-. ]\d{4}|\d{3}([-.])\d{3}\1\d{4})"
    r"|(?:\+|00)[1-9]\d{0,2}[ .-]\(?\d{1,4}\)?(?:[ .-]?\d{2,4}){2,5})"
    rf"{_ENDS}|(?:(?<=[ \t(:\"'`=,|>]|[^\0-\x7f])|{SIGN}|\A(?=\+\d+\Z))"
    rf"\+[1-9]\d{{9,13}}{_ENDS}"
)
_ACCOUNT_CHARS = 20
_GROUPS = 3
_ACCOUNT = deferred_pattern(r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))[A-Z]{2}\d{2}(?= ?[A-Z0-9]{4})", re.I | re.A)
_ACCOUNT_REST = deferred_pattern(r"(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])", re.I | re.A)


def spans(text: str, low: str, raw: bytes) -> Iterator[Span]:
    """Yield mail addresses, users, numbers and IP addresses. `low`: the text in lower case; `raw`: as bytes."""
    for sign in ("@", "%40"):
        for at in occurrences(text, sign) if sign in text else ():
            domain = _DOMAIN.match(text, at + len(sign))
            local = domain and _LOCAL.search(text, max(0, at - 64), at)
            escape = local and len(local[0]) == 1 and text[local.start() - 1 : local.start()] == "\\"
            if local and domain and not escape and local[0] not in _NOBODY:
                yield Span(local.start(), domain.end(), "mail")
    yield from _users(text, low)
    yield from _numbers(text, raw)
    yield from _addresses_v6(text)


def _users(text: str, low: str) -> Iterator[Span]:
    """Yield user names in paths of home folders, on any system, and in names made of such paths."""
    for home in (home for word, homes in _HOMES if word in low for home in homes if home in low):
        for at in occurrences(low, home):
            munged, windows = home[0] == "-", home[-1] == "\\"
            before = text[max(0, at - 10) : at]
            if home[0] == "/":
                # The path that ends here, without diff signs or an escaped line end; backwards: else from each start.
                above = _PATH_BEFORE.match(text[max(0, at - 120) : at][::-1])
                path = above[0][::-1] if above else ""
                if path[:1] in ("n", "r", "t") and text[at - len(path) - 1 : at - len(path)] == "\\":
                    path = path[1:]
                if path.strip("+-") and _RELATIVE.match(path):
                    continue
            if (munged and not _MUNGED.search(before + "-")) or (windows and not _WINDOWS.search(before)):
                continue
            start = at + len(home)
            while windows and text[start : start + 1] == "\\":
                start += 1
            user = (_FOLDER_USER if munged else _USER).match(text, start)
            if user is None:
                continue
            if home == "/users/" and text[at + 1] != "U":  # in lower case it may be the address of a program
                is_folder = _PLACE.match(text, user.end()) and not _ROUTE.match(user[0])
                if not is_folder or _NO_PLACE.search(text, max(0, at - 12), at):
                    continue
            yield Span(user.start(), user.end(), "user")


def _numbers(text: str, raw: bytes) -> Iterator[Span]:
    """Yield cards, telephone numbers, accounts and public addresses in runs of digits."""
    for run in chain.from_iterable(_NUMBERS.finditer(text, *stretch) for stretch in _MAY_BE_NUMBERS(raw)):
        start, end = max(0, run.start() - 3), run.end() + 1
        for hit in _IPV4.finditer(text, start, end):
            if _is_public(hit[0]) and not _VERSION.search(text, max(0, hit.start() - 12), hit.start()):
                yield Span(hit.start(), hit.end(), "address")
        for hit in _CARD.finditer(text, start, end):
            if _checks(hit[0]):
                yield Span(hit.start(), hit.end(), "card")
        for hit in _PHONE.finditer(text, start, end):
            yield Span(hit.start(), hit.end(), "phone")
        for hit in _ACCOUNT.finditer(text, max(0, run.start() - _ACCOUNT_CHARS), run.end()):
            rest = _ACCOUNT_REST.match(text, hit.end())
            if rest and _is_account(hit[0] + rest[0]):
                yield Span(hit.start(), rest.end(), "account")


def _addresses_v6(text: str) -> Iterator[Span]:
    done = 0
    for colon in _COLONS.finditer(text):
        for at in (colon.start() - 4, colon.start() + 1):  # a colon may stand before an address, too
            if at < done or text[at] not in "23" or not _BEFORE_ADDRESS.search(text, max(0, at - 2), at):
                continue
            match = _IPV6.match(text, at)
            address = match[0].rstrip(":") if match else ""
            if _is_public(address):
                done = at + len(address)
                yield Span(at, done, "address")


def _is_public(text: str) -> bool:
    """Return whether it is a public address. Versions such as 1.2.3.4 look the same and are not masked."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    if isinstance(address, IPv6Address):
        return not any(address in network for network in _NOT_PUBLIC_V6)
    return max(address.packed) > 31 and not any(address in network for network in _NOT_PUBLIC_V4)


def _checks(number: str) -> bool:
    """Check the last digit by ISO/IEC 7812 (Luhn)."""
    digits = [int(c) for c in number if c.isdigit()][::-1]
    return (sum(digits[::2]) + sum(sum(divmod(2 * d, 10)) for d in digits[1::2])) % 10 == 0


def _is_account(number: str) -> bool:
    """Check an account by ISO 13616: modulo 97 it is 1. In lower case, common in hashes, it must be grouped or
    digits."""
    bare = number.replace(" ", "")
    if not number.isupper() and not bare[2:].isdigit() and number.count(" ") < _GROUPS:
        return False
    return 15 <= len(bare) <= 34 and int("".join(str(int(c, 36)) for c in bare[4:] + bare[:4])) % 97 == 1


# -- pseudonyms --------------------------------------------------------------------------------------------------------
#
# A person or machine has the same pseudonym wherever the key is the same, and cannot be identified without the key. An
# unkeyed hash could be reversed with a list of names, of which there are few, and of numbers there are fewer.

KEY_BYTES = 32
_HASH_BYTES = 4
"""8 hex digits: of 1,000 names two collide once in 8,600 cases; with 6 digits once in 34."""


def _address(value: str) -> str:
    try:
        return ip_address(value).compressed
    except ValueError:  # put together with what stood over it
        return value


_SAME: dict[str, Callable[[str], str]] = {
    "user": str,
    "mail": lambda mail: mail.replace("%40", "@").lower(),
    "phone": lambda phone: "".join(c for c in phone if c.isdigit()).removeprefix("00"),  # 00 before a country is +
    "address": _address,
}
"""Kinds that get pseudonyms, each with a function that unifies its spellings.

A conversation needs to distinguish people and machines. Cards and accounts identify neither. Of a key or password not
even equality should be visible.
"""


def mask_word(kind: str, value: str) -> str:
    """Return the mask that is the same for a whole kind."""
    del value
    return f"[{kind}]"


class Pseudonyms:
    """Masks by a key: `[user-3f9a1c07]` for kinds that identify people, a word for others."""

    def __init__(self, key: bytes) -> None:
        """A key of another length is a ValueError: an empty one would be none."""
        if len(key) != KEY_BYTES:
            raise ValueError(f"the key that pseudonyms are made with has {len(key)} bytes; it must have {KEY_BYTES}")
        self._key = key

    def mask(self, kind: str, value: str) -> str:
        """Return the mask of a value: a keyed hash (BLAKE2b, RFC 7693) if its kind gets pseudonyms."""
        same = _SAME.get(kind)
        if same is None:
            return mask_word(kind, value)
        plain = same(value).encode("utf-8", "surrogatepass")  # half a character is in traces, too
        return f"[{kind}-{blake2b(plain, digest_size=_HASH_BYTES, key=self._key, person=kind.encode()).hexdigest()}]"
