"""What makes a text a secret: the words that name one in many languages, the value itself, secrets found before.

A value may also be the code, words and identifiers that stand where secrets do. A password is recognised by the name
before it. In an error text, a path or a branch it has no name, so known secrets are found by exact match, in one pass
over a text, however many there are.
Spans of a text that are masked are merged, cleared of earlier masks, and replaced.
"""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache, lru_cache
from itertools import chain, groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import quote

import msgspec

from agentsignals.model.lazy import deferred_pattern

_MASK = deferred_pattern(
    r"\[(?P<kind>account|address|card|cut|key|login|mail|phone|private key|random|secret|user)(?P<who>-[0-9a-f]{8})?\]"
)
SIGN = r"(?:(?<=(?<![\w.+-])[+-])|(?<=(?<![\w.+-])[+-]{2})|(?<=\\[nr][+-]))"
"""After the sign of a diff line."""
WORD_START = rf"(?:(?<![A-Za-z0-9_.-])|(?<=\\[nrt])|{SIGN})"
"""Start of a word. Letters of scripts without blanks may precede it, and an escaped line end or tab."""
_JUDGED = frozenset(("login", "secret"))
"""Kinds that what a value looks like decides on."""


class Span(NamedTuple):
    """A place to mask, and the kind of secret there."""

    start: int
    end: int
    kind: str


class LongRuns:
    """Finds long stretches of certain ASCII characters: a pattern would begin anew at each letter of each word, in text
    that has hardly any."""

    def __init__(self, characters: str, least: int) -> None:
        self._table = bytes(120 if chr(n) in characters else 32 for n in range(256))  # x and blank
        self._least = b"x" * least

    def __call__(self, raw: bytes) -> Iterator[tuple[int, int]]:
        """Yield start and end of each run. `raw` is the text, a byte a character."""
        marks = raw.translate(self._table)
        at = marks.find(self._least)
        while at >= 0:
            end = marks.find(b" ", at)
            end = len(marks) if end < 0 else end
            yield at, end
            at = marks.find(self._least, end)


def occurrences(text: str, needle: str) -> Iterator[int]:
    """Yield each place of a needle."""
    at = text.find(needle)
    while at >= 0:
        yield at
        at = text.find(needle, at + 1)


def places(text: str, needles: Iterable[str]) -> list[tuple[int, int]]:
    """Return start and end of each place of each needle, in order: several times faster than a pattern of all."""
    found: list[tuple[int, int]] = []
    for needle in needles:
        at = text.find(needle)
        while at >= 0:
            found.append((at, at + len(needle)))
            at = text.find(needle, at + 1)
    found.sort()
    return found


def has_mask(value: str) -> bool:
    """Return whether part of the value was masked before."""
    return "[" in value and _MASK.search(value) is not None


def without_pseudonyms(text: str) -> str:
    """Reduce each mask to the word of its kind, which is the same for all pseudonym keys."""
    return _MASK.sub(r"[\g<kind>]", text) if "[" in text else text


def unmasked(text: str, spans: list[Span]) -> list[Span]:
    """Drop spans inside earlier masks, and values with a pseudonym in them: whoever put it there has judged them, and
    they now look more like secrets than before."""
    matches = list(_MASK.finditer(text)) if spans and "[" in text else []
    if not matches:
        return spans
    masks = [mask.span() for mask in matches]
    people = [mask.span() for mask in matches if mask["who"]]
    return [
        span
        for span in spans
        if not any(start <= span.start and span.end <= end for start, end in _next(masks, span))
        and not (span.kind in _JUDGED and any(start < span.end for start, _ in _next(people, span)))
    ]


def _next(places: list[tuple[int, int]], span: Span) -> list[tuple[int, int]]:
    at = bisect_right(places, span.start, key=itemgetter(1))
    return places[at : at + 1]


def merged(spans: Iterable[Span]) -> list[Span]:
    """Merge overlapping spans, in order. A merged span has the kind of the first. The host after a login is no mail."""
    disjoint: list[Span] = []
    for span in sorted(spans):
        if disjoint and span.start < disjoint[-1].end:
            if span.end > disjoint[-1].end and (span.kind, disjoint[-1].kind) != ("mail", "login"):
                disjoint[-1] = disjoint[-1]._replace(end=span.end)
        else:
            disjoint.append(span)
    return disjoint


def masked(text: str, spans: list[Span], mask: Callable[[str, str], str]) -> str:
    """Replace merged spans by `mask(kind, value)`."""
    parts: list[str] = []
    done = 0
    for start, end, kind in spans:
        parts += (text[done:start], mask(kind, text[start:end]))
        done = end
    parts.append(text[done:])
    return "".join(parts)


LEAST_CHARS = 6
"""No rule masks shorter values: they would be half of all assignments."""
Word = Literal["password", "secret", "token", "hint", "key"]
"""Kinds of secret that a name or a place states, from certain to vague. A `hint` needs a mixed value."""

_NO_VALUE = deferred_pattern(
    r"\[[A-Za-z_ ]+(?:\]|\Z)|<|\{\{|\$\{|\$\(|\$[A-Z_][A-Z0-9_]*(?:/|\Z)|\$[a-z_]+\Z|%\w+%|%[sd({]|\{[\w.]*\}"
    r"|\{[A-Za-z_][\w.]*\Z|\*+\Z|\*{3}|![A-Za-z_]\w*!\Z|[\w/+]{8,}EXAMPLE(?:KEY)?\Z"
    r"|[a-z]{2}-[a-z]+-\d:\d{12}:|arn:|#[0-9a-fA-F]{3,8}\Z|[•●]"
    r"|ENC[\[(]|vault:v\d|@secret:|@[A-Z][\w.]+\(|/?\^?\(\?[=!:<]|#\{|!(?:ref|vault|secret|env|sub)\b|ref\+|op://"
    r"|\([a-z ]+\)\Z"
    r"|[A-Za-z_][\w.]*\[(?:[A-Za-z, ]*|\d{1,2})\]?\Z"
    r"|process\.env|os\.environ|import\.meta|(?:file|env|fd|stdin|prompt):|@?(?:sha\d{1,3}|md5)[:-][0-9a-f]{16}"
    r"|AAAA(?:[BC]3NzaC1|E2VjZ)|(?:age|npub)1[0-9a-z]{50,}"
)
_PLACEHOLDER = deferred_pattern(
    r"x{4,}|X{4,}|[\w-]*(?:x{8,}|X{8,}|EXAMPLE(?:KEY)?)\Z|\.\.\.|…|_{3,}|(?i:(?:your|my|the|an?|some|example|replace|insert|enter|put)[\W_]|change_?me|todo|placeholder|redacted|dummy|undefined)"
)
"""Starts of placeholders. Random letters may begin so too."""
_REFERENCE = deferred_pattern(r"[A-Za-z_$][\w$]{0,60}(?:(?:\.|\?\.|::|->)[A-Za-z_$][\w$]{0,60}){0,12}[!?]?")
_SPEAKS_OF_IT = ("passw", "secret", "token", "cred", "auth", "pwd", "jwt")
_KEY = deferred_pattern(
    r"(?i)(?<![a-z])key(?!board|stone|hole|pad)|(?:api|access|secret|private|public|auth|ssh|host|app|master)key"
)
_SPEAKING_RUN = 2
"""Letters and digits per change of kind: fewer are drawn, and have no words in them but by chance."""
_PASS = deferred_pattern(r"(?i)(?<![ck]om)pass\b")
_PROSE = deferred_pattern(
    r"(?i)\b(?:must|least|require\w*|invalid|incorrect|enter|your|characters?|please|not|is|wrong|too|contain\w*|match\w*|forgot\w*"
    r"|expired|missing)\b|(?-i:\A[A-Z].*\bthe\b)"
)
_PHRASE = deferred_pattern(
    r"(?:the|an?|my) (?!\w*(?:pass|secret|key|token|value))[a-z]+(?: (?!\w*(?:pass|secret|key|token|value))[a-z]+){2,}"
)
"""Words in a row, of which the first may be an article."""
_TYPES = frozenset(("string", "String", "number", "boolean", "unknown", "object", "Object", "optional", "Optional",
                    "SecretStr", "Option", "bytes", "required", "nullable", "binary", "hidden", "default", "undefined",
                    "VARCHAR", "varchar", "return", "logger", "expect", "function", "static", "public", "private",
                    "enabled", "disabled", "prompt", "rolling", "mandatory", "Any", "Text", "Buffer", "CharArray",
                    "readonly", "export", "import", "module", "values", "invalid", "missing", "expired", "username",
                    "integer"))  # fmt: skip
OF_APP = deferred_pattern(r"[a-z]{4}(?: [a-z]{4}){3}")
"""A password that Google draws for a program."""
_UUID = deferred_pattern(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HASH = deferred_pattern(r"[0-9a-f]{7,64}|[0-9A-F]{16,64}")
_PATH = deferred_pattern(
    r"(?:~|\.{1,2})?/[\w.@-]+(?:/|\Z)|[A-Za-z]:[\\/]|[a-z]{2,12}://|[\w-]+(?:/[\w.-]+)*\.[a-z]{1,5}\Z"
)
_ROOT = deferred_pattern(
    r"(?i)~|\.{1,2}/|[a-z]:|[a-z]+://|/(?:users|home|root|usr|var|tmp|private|etc|opt|srv|mnt|run|dev|proc|sys|app|data|nix"
    r"|lib|bin|volumes|workspaces?|testbed|repo|code|work|src|build)(?:/|\Z)"
)
"""Starts of paths that no secret has by chance."""
_KEY_CHARS = deferred_pattern(r"[\w+/=.~%:!@#^&*$-]++\Z")
_RANDOM = deferred_pattern(rf"(?=[^\d]*+\d)(?=[^A-Za-z]*+[A-Za-z]){_KEY_CHARS.pattern}")
_RUNS = deferred_pattern(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_WORDS = deferred_pattern(r"[A-Za-z\d]+")
_DIGIT, _LETTER, _BLANK = deferred_pattern(r"[0-9]"), deferred_pattern(r"[^\W\d_]"), deferred_pattern(r"\s")
_ALTERNATING_CHARS = 16
_ALTERNATING_RUN = 3
"""Letters and digits per change of kind within a word: 1.9 when all are random, 2.5 for random lower-case letters and
digits, about ten for words with numbers."""
_PLAIN_PART = r"(?:[A-Za-z]*+\d{0,3}[a-z]?|\d++|\d{1,3}[A-Za-z]{0,8})(?=[_\-./:]|\Z)"
_PLAIN_PARTS = deferred_pattern(rf"{_PLAIN_PART}(?>(?:[_\-./:]{_PLAIN_PART})*)")


def is_secret(word: Word, name: str, value: str, *, quoted: bool = True) -> bool:
    """Return whether the value of such a name is a secret. A `quoted` value is no code."""
    is_phrase = quoted and word == "password" and _PHRASE.fullmatch(value) is not None
    if (
        len(value) < LEAST_CHARS or (is_variable(value) and not is_phrase) or has_mask(value) or max(value) > "\u2e80"
    ):  # a sentence
        return False
    if word == "key":
        return (is_random(value, 12) and not is_known(value)) or has_all_kinds(value)
    if word == "hint" and value.isdigit():
        return _PARTS.findall(name)[-1].lower() in ("pin", "puk", "otp")
    if word == "hint":
        if OF_APP.fullmatch(value):
            return True
        return (looks_typed if name.lower().endswith("pass") else looks_chosen)(value)
    if _BLANK.search(value):
        is_told = quoted and word == "password" and not _has_its_words(value) and value[-1] not in " :"
        is_told = is_told and not any(map(named, value.split()))
        return is_told and (name[:1] == "-" or not _PROSE.search(value))
    called = "(" in value and _REFERENCE.fullmatch(value.partition("(")[0]) and (not quoted or value[-1] in ")]")
    is_name = word == "password" and quoted and "/" not in value and not _FILE.fullmatch(value)
    if called or (not is_name and _is_path(value) and not is_random(value.rsplit("/", 1)[-1], 12)):
        return False
    if has_digit(value):
        # Values with a digit are mostly secrets.
        if _ALGORITHM.fullmatch(value):
            return False
        if word in ("password", "secret") and (quoted or value.isdigit()):
            return True
        if word == "token" and (_CONSTANT.fullmatch(value) or (_PLAIN_PARTS.fullmatch(value) and _speaks_of_it(value))):
            return False
        if value.isdigit():
            return False
        if not quoted and _REFERENCE.fullmatch(value) and ("." in value or _speaks_of_it(value)):
            is_word = word == "password" and is_rare(value)
            return is_word or looks_drawn(value) or any(is_random(part, 12) for part in value.split("."))
        return quoted or word in ("password", "secret") or name.isupper() or is_random(value, 8)
    # Values without a digit are mostly code.
    if word == "token":
        return quoted and len(value) >= 20 and value.isalnum() and not (value.islower() or value[1:].islower())
    if value.isalpha() and named(value) in ("password", "secret"):  # a label
        return False
    if _is_type(value) or _speaks_of_it(value) or says_of_it(value):
        return False
    if quoted or name.replace("-", "_").isupper():
        is_reference = "." in value and _REFERENCE.fullmatch(value) is not None
        return not is_reference or (word == "password" and is_rare(value))
    return word == "password" and ((value.isalpha() and value.islower()) or looks_typed(value))


def _is_type(value: str) -> bool:
    return value.strip("[]!?&*") in _TYPES or value == "[]byte"


def is_variable(value: str) -> bool:
    """Return whether it stands for a secret: a variable, a placeholder, an earlier mask."""
    if _PLACEHOLDER.match(value):
        return not alternates(value)
    return bool(_NO_VALUE.match(value)) or "${" in value[:200]


def stands_for_a_value(value: str) -> bool:
    """Return whether it is a variable, a reference or a ciphertext. Placeholders in words may be anything."""
    return bool(_NO_VALUE.match(value)) or "${" in value


def marks(value: str) -> list[str]:
    """Return the names of forms of a value that say what it is, or that it is none."""
    found = [name for name, form in _FORMS if form.match(value)]
    found += [name for name, form in _WHOLE_FORMS if form.fullmatch(value)]
    if _PROSE.search(value):
        found.append("prose")
    if EVERYDAY.fullmatch(value):
        found.append("everyday")
    if _is_type(value):
        found.append("type")
    if _has_its_words(value):
        found += ["speaks", *(["speaks only"] if _speaks_of_it(value) else ())]
    return [*found, f"hash {len(value)}"] if _HASH.fullmatch(value) else found


def is_random(value: str, least: int) -> bool:
    """Return whether a value looks random: it mixes letters and digits unlike any word, version or list of words."""
    if len(value) < least or not _RANDOM.match(value):
        return False
    return not _PLAIN_PARTS.fullmatch(value) or alternates(value)


_CONSTANT = deferred_pattern(r"[A-Z]{2,}(?:_[A-Z]+)*_?\d{1,2}")
_NUMBERED = deferred_pattern(r"(?:[A-Z]?[a-z]+|[A-Z]+)[_.-]?\d{1,2}")
_ALGORITHM = deferred_pattern(
    r"(?i:(?:hmac|rsa|rsassa|pkcs|es|ps|hs|sha|aes|md|pbkdf|bcrypt|argon|ed|blake|utf|base|scram|chacha|poly|salsa|secp|win|arm|x|amd|node|python)"
    r"[_-]?){1,3}\d{1,4}(?:[_.-]?(?:[a-z]{1,6}|[A-Z]{1,6})?\d{0,3}){0,2}"
)
"""Names of algorithms, platforms and runtimes, which mix letters and digits."""
_ID = deferred_pattern(r"(?:[a-z]{2,9}_){1,2}[0-9A-Za-z]{8,}\Z")
_CLASSES = deferred_pattern(r"[A-Z]+|[a-z]+|\d+|[^A-Za-z\d]+")
_HEX = deferred_pattern(r"(?:[\w/-]*@)?[0-9a-f.-]+")
_FILE = deferred_pattern(
    r"[\w./\\*-]*\.(?:[jt]sx?|[cm]js|pyi?|ipynb|go|rs|rb|java|kt|swift|cs?|cc|cpp|h|hpp|php|sh|ps1|bat|sql|json\w?|ya?ml|toml|ini"
    r"|cfg|conf|env|md|mdx|rst|txt|csv|tsv|xml|html?|s?css|svg|png|jpe?g|gif|pdf|zip|t?gz|tar|bz2|xz|7z|rar|jar|war|deb|rpm|exe"
    r"|dll|so|dylib|o|a|log|lock|tmp|bak|db|sqlite3?|parquet|pem|crt|cer|key|pub|p12|pfx|ovpn|jks|ks|kdbx?|gpg|asc|ldif|tf|vue|nix"
    r"|proto|properties|gradle|com|org|net|io|dev)(?::[\d,:-]+)?|[a-z]{2,}/[\w./-]+|\.?env\.[\w.]+"
)
_OPTION_NUMBER = deferred_pattern(
    r"\d+(?:\.\d+)+[-+~][\w.~+-]+,?\Z|\d+(?:\.\d+)+[-+][a-z]|v?\d[\d.:,_/x%-]*[a-zA-Z]{0,3}\Z|0[xob][\da-f]+\Z|\d{4}-\d\d-\d\d|(?:[a-z\d_.-]*[=@]|[\w./-]*=)v?\d+(?:\.\d|\Z)"
)


@lru_cache(maxsize=8192)
def looks_chosen(value: str) -> bool:
    """Return whether a value looks like a password where one is expected: it mixes letters, digits or signs, and is no
    path, file, version, address, number, identifier or code."""
    value = value.rstrip(".,")
    if len(value) < LEAST_CHARS or _BLANK.search(value) or is_variable(value) or has_mask(value) or is_known(value):
        return False
    if value[0] in "<[({" or "(" in value or "://" in value or _FILE.fullmatch(value) or _OPTION_NUMBER.match(value):
        return False
    value = value.lstrip("!#$&*~^@+").rstrip("*?:")
    if "***" in value:  # masked by another
        return False
    if not _LETTER.search(value) or _speaks_of_it(value):
        return False
    if has_digit(value):
        return not (
            _STEP.fullmatch(value)
            or _NUMBERED.fullmatch(value)
            or _REFERENCES.fullmatch(value)
            or _ALGORITHM.fullmatch(value)
        )
    signs = sum(map(value.count, "!@#$%^&*+=?~"))
    is_word = _REFERENCE.fullmatch(value) and not _CAMEL_SHOUT.fullmatch(value)
    return signs > 0 and not is_word and not {*"/=,:"} & {*value} and not value.isalpha()


_PARTS_OF = deferred_pattern(r"[A-Z]?[a-z]+|[A-Z]+")
"""The words that a name in camel case is made of."""
_WORDS_AND_NUMBER = deferred_pattern(r"[A-Za-z]{3,}(?:[._-][A-Za-z]+)*(?P<number>(?:[._-]?\d{1,4})?)")


@lru_cache(maxsize=65536)
def is_rare(value: str, least: int = 4) -> bool:
    """Return whether a word has a part of so many letters that programs and traces hardly use, as names there do."""
    if (value.count(".") > 1 and "_" in value) or is_variable(value) or EVERYDAY.fullmatch(value) or has_mask(value):
        return False
    if says_of_it(value):
        return False
    parts = [part.lower() for part in _PARTS_OF.findall(value)]
    return any(len(part) >= least and part not in common() for part in parts) and not any(map(named, parts))


def says_of_it(value: str) -> bool:
    """Return whether a word says of a password that it is wrong, required or changed, in any language of the table."""
    return value.isalpha() and value.lower().startswith(_SAYS)


def is_rare_word(value: str) -> bool:
    """Return whether a value is words joined by signs, with a number at most, of which programs hardly use one."""
    words = _WORDS_AND_NUMBER.fullmatch(value)
    return words is not None and not _FILE.fullmatch(value) and is_rare(value[: words.start("number")], 5)


@cache
def common() -> frozenset[str]:
    """Words that programs and traces use: those that traces use often and Python's library, its packages or an English
    dictionary also has, and names of well-known tools. No words of traces alone: they may be names of people."""
    return frozenset(Path(__file__).with_name("common.txt").read_text("ascii").split())


_STEP = deferred_pattern(r"[a-z]+[-_.]\d{1,2}|[a-z]{2,}-[a-z]+\.\d{1,2}|(?:[A-Za-z]+-){1,2}\d+\.\d+")
"""A part of a plan: `step-06`, `Story-6.3`, `av-vwa.15`."""
_CALLED = deferred_pattern(r"[a-z_$][\w$.]*[!?]")
"""A method or a value of code that ends in a sign."""
_CAMEL_SHOUT = deferred_pattern(r"(?:[A-Z][a-z]+){2,}[!?]")
_TYPED = deferred_pattern(
    r"(?=.*[^\W\d_].*[^\W\d_])(?=.*\d.*\d|.*[!@#$%^&+?~]|(?:[^-]+-){3})[^\s\"'`<>(){}\[\]|;,/\\=:]{7,80}"
)


@lru_cache(maxsize=8192)
def looks_typed(value: str) -> bool:
    """Return whether a value may be a password where hardly another thing stands: words with digits or a sign."""
    if looks_chosen(value):
        return value[0] != "-"
    value = value.rstrip("*?:.,")
    if is_variable(value) or has_mask(value) or is_known(value) or value[:1] in "-$%{!" or _is_type(value):
        return False
    is_other = (
        _STEP.fullmatch(value) or _FILE.fullmatch(value) or _OPTION_NUMBER.match(value) or _ALGORITHM.fullmatch(value)
    )
    return (
        not is_other
        and (_TYPED.fullmatch(value) is not None or (value[-1:].isdigit() and is_rare_word(value)))
        and not _speaks_of_it(value)
        and not _CALLED.fullmatch(value)
    )


def is_strong(value: str) -> bool:
    """Return whether a value has all that a password is asked for: letters of both cases, a digit and a sign."""
    return bool(_STRONG.fullmatch(value)) and looks_chosen(value)


_STRONG = deferred_pattern(r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d)(?=.*[!$&^~#@%*+?])[^\s/\\=:\"'`<>(){}\[\]|;,]{8,64}")
_REFERENCES = deferred_pattern(
    r"(?!.*[a-z]{4}\d{3,}\Z)[a-z]+(?:[_-][a-z0-9]+)+|[A-Z]+(?:_[A-Z0-9]+)+|[A-Za-z]+(?:\.[A-Za-z_]+\d?)+|[a-z_]+(?:\.[a-z_]+\d{0,3})+"
)


_LONG_HEX = deferred_pattern(r"[0-9a-fA-F]{32,}")


def words_in(value: str) -> list[str]:
    """Return the words that a value in camel case or with signs is made of."""
    return _PARTS_OF.findall(value)


def name_parts(name: str) -> list[str]:
    """Return the words of a name, of any script."""
    return _PARTS.findall(name)


def is_file(value: str) -> bool:
    """Return whether it begins as a path does or is a file's name."""
    return _ROOT.match(value) is not None or _FILE.fullmatch(value) is not None


def looks_given(value: str) -> bool:
    """Return whether a value looks like a password or a key where either is expected. There hex is no hash."""
    return looks_chosen(value) or _LONG_HEX.fullmatch(value) is not None


def looks_drawn(value: str, least: int = 8) -> bool:
    """Return whether a value looks drawn by chance wherever it is: its kinds of characters alternate."""
    if (
        len(value) < least
        or not has_digit(value)
        or not looks_chosen(value)
        or _ID.match(value)
        or _HEX.fullmatch(value)
    ):
        return False
    changes = max(
        (sum(1 for _ in _CLASSES.finditer(part)) - 1 - part[:2].istitle() for part in _SPLIT.split(value) if part),
        default=0,
    )
    return changes >= _DRAWN_CHANGES and not _PLAIN_PARTS.fullmatch(value)


_SPLIT = deferred_pattern(r"[_\-./:@=,]")
_DRAWN_CHANGES = 3


def has_all_kinds(value: str) -> bool:
    """Return whether a long value has letters of both cases, digits and several signs, as generators of salts give."""
    return _ALL_KINDS.fullmatch(value) is not None and len({*value} & {*"!#$%&()*+,;<>?@[]^{|}~"}) >= _MANY_SIGNS


_ALL_KINDS = deferred_pattern(r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[^\s\"'`]{24,100}")
_MANY_SIGNS = 4


def is_mixed(value: str) -> bool:
    return has_digit(value) and _LETTER.search(value) is not None


def has_digit(value: str) -> bool:
    """Return whether it has a digit of any script."""
    return _DIGIT.search(value) is not None or (not value.isascii() and any(map(str.isdigit, value)))


def is_known(value: str) -> bool:
    """Return whether it is a public identifier: a UUID, a hash, a path."""
    return bool(_HASH.fullmatch(value)) or is_public(value)


def is_public(value: str) -> bool:
    """Return whether it is a UUID or a path."""
    return bool(_UUID.fullmatch(value)) or _is_path(value)


def _speaks_of_it(value: str) -> bool:
    if not _has_its_words(value) or alternates(value):
        return False
    runs = _RUNS.findall(value)
    return len(value) > _SPEAKING_RUN * len(runs) and any(map(_has_its_words, runs))


def _has_its_words(value: str) -> bool:
    low = value.lower()
    if "key" in low and _KEY.search(value):
        return True
    return any(word in low for word in _SPEAKS_OF_IT) or ("pass" in low and _PASS.search(value) is not None)


def _is_path(value: str) -> bool:
    if _PATH.match(value) is None:
        return False
    if _ROOT.match(value):
        return True
    parts = (p for p in value.split("/") if not (_PLAIN_PARTS.fullmatch(p) or _UUID.fullmatch(p) or _HASH.fullmatch(p)))
    return not is_random("".join(parts), 20)


def alternates(value: str) -> bool:
    """Return whether letters and digits alternate more often than in words."""
    if len(value) < _ALTERNATING_CHARS or not _KEY_CHARS.match(value):
        return False
    runs, words = _RUNS.findall(value), _WORDS.findall(value)
    return sum(map(len, words)) < _ALTERNATING_RUN * (len(runs) - len(words) + 1)


# -- public by what stands around it ----------------------------------------------------------------------------------

_RELEASE = (
    r"(?:[-+._]?(?:a|b|rc|alpha|beta|dev|post|preview|canary|snapshot|final|next|build|alpine|slim|el|deb)[\w.-]*)?"
)
_NUMBERED_THING = deferred_pattern(
    rf"(?i)(?:[a-z][\w./+-]*[-@=:])?[\^~<>=!v]{{0,3}}\d{{1,6}}(?:\.\d{{1,9}}){{1,4}}{_RELEASE}[.,]?|[a-z][\w./-]{{1,40}}:v?\d{{1,3}}"
    r"|(?:\d:)?\d{1,6}\.\d{1,9}[\w.+~-]{0,20}|\d{4}-\d\d-\d\d[T ][\d:.]{5,12}Z?"
    r"|(?-i:[A-Z]{2,6}-\d{1,6}[.,]?)|[\d.,]+[km]?/[\d.,]+[km]?|(?:[0-9a-f]{2}:){5,}[0-9a-f]{2}|(?:trace|span|request|correlation)_?id=[\w-]+"
)
"""Versions, packages and images with one, tickets, shares."""
_DIGEST_CHARS = (32, 40, 56, 64, 96, 128)
_OF_DIGESTS = deferred_pattern(
    r"(?i)\b(?:md5|sha-?\d*|checksum|digest|commit|revision|rev|etag|image|container|blob|tree|layer|fingerprint|thumbprint"
    r"|integrity|got|expected)\b|\b(?:git|docker|podman|nerdctl)\s[^\n]*\n\Z"
)
_PUBLIC_BEFORE = deferred_pattern(
    r"(?i:(?:request|trace|span|correlation|host|event|build|run|job|device|order|object|resource|message|response|error)[\s_-]?id"
    r"|public[\s_-]?key|sourcemappingurl)[\"'`]?\s{0,3}[:=]?\s{0,3}[\"'`]?\Z"
    r"|\bclass(?:Name)?=[\"'][^\"'\n]*\Z|;base64,\Z|\b(?:SHA-?\d+|MD5):\Z|\|1\|[\w+/=|]*\Z"
)
"""Names of ids, of public keys, of classes of a page, and of pictures and fonts."""
_PUBLIC_BEHIND = deferred_pattern(r"[\"']?\s(?:created|deleted|configured|unchanged|patched|not found)\b")
_FILE_BEHIND = deferred_pattern(r" {1,2}\*?[\w./-]+\.\w{1,5}\s*(?:\n|\Z)")
_OF_FILE = deferred_pattern(r"\([\w./-]+\.\w{1,5}\) = \Z")
"""Behind an object of a cluster its new state; behind or before a digest its file."""
_IMPORTED = deferred_pattern(r"^\s*(?:from\s+[\w.]+\s+)?import\s[\w.,{}\s]*\Z|:\s\Z|\bclass\s(?:\w+\(_?)?\Z")
_IDENTIFIER = deferred_pattern(r"[A-Za-z_]\w*(?:\.\w+)*")
_OPTION_BEFORE = deferred_pattern(r"\s-(?:[aApPwW]|u\s?[\w.@-]+[:,%])\s*[\"']?\Z")
_GIVEN_TO = deferred_pattern(r"\w[\"']?\s*(?::?=|=>|:)\s*[\"']\Z|\w=\Z")
_TYPE_BEHIND = deferred_pattern(r"<[A-Z&']")
_WRAPPERS = (("ENC[", "]"), ("ENC(", ")"), ("vault:v", " "), ("@secret:", " "), ("lookup(", ")"))
"""What encloses a ciphertext, and a reference in a template."""
_WRAPPED_CHARS = 400
_NAMES_VALUE = deferred_pattern(r"=|:\s")
"""In front of a value of its own name, which is no part of what encloses it."""
_RELEASED = deferred_pattern(r"[\^~]?\d+\.\d+\.\d+-(?:alpha|beta|rc|dev|next|canary)(?:[.\d]*)|0x[0-9a-fA-F]{40}")
"""A version, and the address of a wallet or a contract."""
_MODULE = deferred_pattern(r"\bpam_\w+\.so\b[^\n=:]*\Z")
"""Before a flag of a login's module."""
_SEALED = deferred_pattern(r"encryptedData:\s*\n(?:[ \t]+\S+: \S+\n)*[ \t]+\S+: \Z")
_SEALED_CHARS = 40
"""A sealed value begins with `Ag` and has hundreds of characters."""
_RANGES = deferred_pattern(r"a-z|A-Z|0-9[\]a-z]")
_CLASS_NAME = deferred_pattern(r"(?:[A-Z]+[a-z]*\d?){2,}")
_PEM_CHARS = 8_000
_PEM_BODY = deferred_pattern(
    r"(?:[\s\"'+]|\\[nr])*+(?:[A-Za-z0-9+/]{16,}+={0,2}(?:[\s\"'+]|\\[nr])*+)++[A-Za-z0-9+/]*+={0,2}"
)
"""Lines of base64; the last may be short. Of words and of `NAME=VALUE` none is one."""


def _is_pattern(value: str) -> bool:
    return _RANGES.search(value) is not None and not is_random(value, 40)


def is_public_at(text: str, start: int, end: int) -> bool:
    """Return whether a value is public by its form and what stands around it: a version, a digest, an id, a part of a
    certificate. Behind a name of a password or a secret, its form makes nothing public."""
    value, before = text[start:end], text[max(0, start - 80) : start]
    if not value:
        return False
    line_start = text.rfind("\n", max(0, start - _WRAPPED_CHARS), start) + 1 or max(0, start - _WRAPPED_CHARS)
    for sign, ends in _WRAPPERS:
        at = text.rfind(sign, line_start, start)
        if at > text.rfind(ends, line_start, start) and not _NAMES_VALUE.search(text, at, start):
            return True
    if (
        _RELEASED.fullmatch(value)
        or _MODULE.search(text, max(0, start - 80), start)
        or (value[:2] == "Ag" and len(value) >= _SEALED_CHARS and _SEALED.search(text, max(0, start - 4000), start))
    ):
        return True
    line = before.rpartition("\n")[2]
    names = _LETTERS_OF.findall(_OF_FILE.sub("", line).replace("_", ""))
    kinds = {*map(names_a_secret, names[-3:])}
    told = _OPTION_BEFORE.search(line) is not None or not kinds.isdisjoint(("password", "secret"))
    is_token = "token" in kinds and (looks_drawn(value) or ("." not in value and _GIVEN_TO.search(line) is not None))
    if value.isalpha() and _TYPE_BEHIND.match(text, end):
        return True
    if not (told or is_token):
        if (value[-1] in "[(" and not _BLANK.search(value)) or ("-" in value and _is_pattern(value)):
            return True
        if _NUMBERED_THING.fullmatch(value) or _PUBLIC_BEFORE.search(before):
            return True
        if text[start - 1 : start] not in ("'", '"') and _IDENTIFIER.fullmatch(value) and not alternates(value):
            if text[end : end + 1] in ("[", "(") and "_" in value:
                return True
            if _CLASS_NAME.fullmatch(value) and _IMPORTED.search(line):
                return True
        if _PUBLIC_BEHIND.match(text, end) and value.islower() and "-" in value:
            return True
    if len(value) in _DIGEST_CHARS and _LONG_HEX.fullmatch(value):
        pairs = map("_".join, pairwise(names))
        if not (told or is_token or "login" in names or any(map(names_a_secret, chain(names, pairs)))) and (
            _OF_DIGESTS.search(line or before) or _FILE_BEHIND.match(text, end)
        ):
            return True
    begins = text.rfind("-----BEGIN ", max(0, start - _PEM_CHARS), start)
    head = text.find("-----", begins + 11, begins + 60) if begins >= 0 else -1
    is_private = "PRIVATE" in text[begins : begins + 40]
    return head >= 0 and not is_private and _PEM_BODY.fullmatch(text, head + 5, end) is not None


# -- random values that nobody named -----------------------------------------------------------------------------------
#
# They are masked in what is published or handed on, unless they are known ids: one may be a key of a kind that no rule
# knows. Hashes, UUIDs, digests of lock files and ids of records are random too, and are public.

RANDOM = "random"
"""Kind of a mask of such a value."""
_RANDOM_CHARS = 20
_RANDOM_TOKEN = deferred_pattern(r"[A-Za-z0-9_+-]{20,}={0,2}")
_UUID_OR_TIME = deferred_pattern(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d-]*Z?")
_BARE_HEX = deferred_pattern(r"(?i)(?:0x)?[0-9a-f-]+")
_DIGEST = deferred_pattern(r"(?:sha\d{1,3}[-:=]|md5[-:=]|h1:)\Z", re.I)
"""Before a digest in a lock file: npm, Nix, pip, Go."""
_DIGEST_AHEAD = deferred_pattern(r"sha\d{1,3}-", re.I)


_FORMS = (("placeholder", _PLACEHOLDER),)
_WHOLE_FORMS = (
    ("file", _FILE),
    ("reference", _REFERENCE),
    ("algorithm", _ALGORITHM),
    ("numbered", _NUMBERED_THING),
)


class RandomValues:
    """Finds values that look random. `known`: ids that may stand anywhere, such as those of calls and messages."""

    def __init__(self, known: Collection[str] = ()) -> None:
        self._known = frozenset(token for name in known for token in _RANDOM_TOKEN.findall(name))

    def spans(self, text: str) -> list[Span]:
        return [
            Span(*hit.span(), RANDOM)
            for hit in _RANDOM_TOKEN.finditer(text)
            if _looks_random(value := hit[0])
            and value not in self._known
            and not _BARE_HEX.fullmatch(value)
            and _looks_random(_UUID_OR_TIME.sub("", value))
            and not _DIGEST_AHEAD.match(value)
            and not _DIGEST.search(text, max(0, hit.start() - 8), hit.start())
        ]


def _looks_random(value: str) -> bool:
    return is_random(value, _RANDOM_CHARS) and alternates(value)


class _Table(msgspec.Struct):
    """`words.json`; words are separated by blanks. JSON, since every run reads it."""

    says: str
    """Beginnings of words that say of a password that it is wrong, required, forgotten or changed."""
    passwords: dict[str, str]
    """Words for a password by language, besides the English ones. Of several words (mot de passe) the one that tells.
    They may have an ending. Words of scripts without blanks are among the stems."""
    stems: dict[Word, str]
    """Parts of names in lower case, from the surest on."""
    words: dict[Word, str]
    """Whole words of names."""
    no_pass: str
    opens: str
    """Words before `key` that make it open something. For other keys only the value decides."""
    other: str
    """Words in names of counts, limits, paths and the like, which hold no secret."""
    of_tokens: str
    """Those of them that say nothing of a password."""
    name_parts: str
    """Parts of words to look for in a text, by what they begin; and whole words, with the texts to look for then."""
    name_words: dict[str, list[str]]
    command_parts: str
    command_words: dict[str, list[str]]
    call_parts: str
    call_words: dict[str, list[str]]
    login_words: dict[str, list[str]]
    text_parts: str
    text_words: str


_TABLE = msgspec.json.decode(Path(__file__).with_name("words.json").read_bytes(), type=_Table)
_PASSWORDS = frozenset(word for words in _TABLE.passwords.values() for word in words.split())
_SAYS = tuple(_TABLE.says.split())
_INFLECTED = tuple(word for word in _PASSWORDS if len(word) > len("sandi"))
_STEMS = tuple((stem, word) for word, stems in _TABLE.stems.items() for stem in stems.split())
_NAME_WORDS = {name: word for word, names in _TABLE.words.items() for name in names.split()}
_RANKS = ("password", "secret", "token", "hint", "key")
_NO_PASS, _OPENS = tuple(_TABLE.no_pass.split()), tuple(_TABLE.opens.split())
_OF_TOKENS = frozenset(_TABLE.of_tokens.split())
_OTHER = _OF_TOKENS.union(_TABLE.other.split())
_LETTERS_OF = deferred_pattern(r"[^\W\d_]+")
_HEADER = deferred_pattern(r"(?:[A-Z][a-z]*-)+(?:Key|Auth)")
_PARTS = deferred_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+")


def _any_of(words: Collection[str]) -> str:
    """Return a pattern of any of these words, by their first letters: otherwise each place tries each word."""
    least = sorted(word for word in {*words} if not any(part != word and part in word for part in words))
    by_letter = groupby(map(re.escape, least), itemgetter(0))
    return "|".join(f"{first}(?:{'|'.join(word[1:] for word in chosen)})" for first, chosen in by_letter)


MAY_NAME = deferred_pattern(_any_of({"pass", "pw", "key", "hash", *_NAME_WORDS, *_PASSWORDS, *(s for s, _ in _STEMS)}))
"""What every name of a secret contains, in lower case."""
_NAME_CHARS = 16
"""A longer name that looks random is an identifier."""


@lru_cache(maxsize=8192)
def named(name: str) -> Word | None:
    """Return the strongest kind of secret that the words of a name state, or None. `pass` alone is a `hint`."""
    low = name.lower()
    if not MAY_NAME.search(low) or (len(name) > _NAME_CHARS and name.isascii() and alternates(name)):
        return None
    for stem, word in _STEMS:
        if stem in low:
            return word
    parts = [part.lower() for part in _PARTS.findall(name)]
    if any(part in _PASSWORDS or part.startswith(_INFLECTED) for part in _LETTERS_OF.findall(low)):
        return "password"
    told = min((_NAME_WORDS[part] for part in parts if part in _NAME_WORDS), key=_RANKS.index, default=None)
    last = parts[-1] if parts else ""
    if told == "key" and _HEADER.fullmatch(name):
        return "token"
    if told and (told != "key" or not last.endswith("pass")):
        return told
    if last.endswith("pass") and not last.endswith(_NO_PASS):
        return "password" if len(low.rstrip("0123456789")) > len("pass") else "hint"
    if last.endswith("pw") and 2 < len(last) < 9:
        return "password"
    # As a word of its own `key` states a key; after a word of `_OPENS` a token.
    for n, part in enumerate(parts):
        if part == "key":
            is_token = n and (parts[n - 1] in _OPENS or name.isupper() or _HEADER.fullmatch(name))
            return "token" if is_token else "key" if n or name[:1] == "K" else None
        if part.endswith("key") and part[:-3].endswith(_OPENS):
            return "token"
        if part == "hash" and parts[:n] == ["api"]:
            return "token"
    return None


def speaks_of_other(name: str) -> bool:
    """Return whether a name is of a count, a limit, a path or the like."""
    word = named(name)
    other = _OTHER - _OF_TOKENS if word in ("password", "secret") else _OTHER
    if word == "password" and "secret" not in name.lower():  # charts name a Secret by `existingSecret`
        other = other - {"existing"}
    return any(part.lower() in other for part in _PARTS.findall(name))


@lru_cache(maxsize=8192)
def names_a_secret(name: str) -> Word | None:
    """Return the strongest kind of secret that a name states, or None."""
    word = named(name)
    return None if word is None or speaks_of_other(name) else word


# -- words of a text ---------------------------------------------------------------------------------------------------

_ROLES: tuple[tuple[tuple[str, ...], dict[str, list[str]]], ...] = (
    (
        (
            *_TABLE.name_parts.split(),
            *_INFLECTED,
            *(stem for stem, _ in _STEMS if not any(part in stem for part in _TABLE.name_parts.split())),
            *(word for word in _PASSWORDS if not word.isascii()),
        ),
        {word: [word] for word in (*filter(str.isascii, _PASSWORDS), *_NAME_WORDS)} | _TABLE.name_words,
    ),
    (tuple(_TABLE.command_parts.split()), _TABLE.command_words),
    (tuple(_TABLE.call_parts.split()), _TABLE.call_words),
    ((), _TABLE.login_words),
    (tuple(_TABLE.text_parts.split()), {word: [word] for word in _TABLE.text_words.split()}),
)
"""In the order of `Present`."""
_ANY = deferred_pattern(_any_of({part for parts, _ in _ROLES for part in parts}))
_ANY_WORD = frozenset(word for _, words in _ROLES for word in words)
_LETTERS = bytes(n if chr(n).isalpha() or n > 127 else 32 for n in range(256))
_MOST_WORDS = 200_000


class Present(NamedTuple):
    """Parts of words that a text contains: of names of secrets, of commands and calls that take one, of sentences about
    a login."""

    names: frozenset[str]
    commands: frozenset[str]
    calls: frozenset[str]
    logins: frozenset[str]
    texts: frozenset[str]
    """Words of texts in which something else is searched."""


_TELLING: dict[bytes, tuple[frozenset[str], ...]] = {}
_DULL: set[bytes] = set()
"""Words that were looked at: what they tell, and those that tell nothing."""


def present(low: str) -> Present:
    """Return the parts that a text in lower case contains, by its distinct words: traces repeat them, and a search for
    each part or a pattern of all costs several times as much."""
    told: tuple[set[str], ...] = (set(), set(), set(), set(), set())
    for word in set(low.encode("utf-8", "replace").translate(_LETTERS).split()) - _DULL:
        for role, found in enumerate(_TELLING.get(word) or _judged(word)):
            told[role].update(found)
    return Present(*map(frozenset, told))


def _judged(word: bytes) -> tuple[frozenset[str], ...]:
    """Return, for each role of a name, the telling words that it holds; both answers are cached."""
    text = word.decode("utf-8", "replace")
    text = text if text.startswith("authori") else text.replace("author", "")
    told: tuple[frozenset[str], ...] = ()
    if _ANY.search(text) or text in _ANY_WORD:
        told = tuple(
            frozenset([*[part for part in parts if part in text], *words.get(text, ())]) for parts, words in _ROLES
        )
    if len(_DULL) > _MOST_WORDS:
        _DULL.clear()
    if any(told):
        _TELLING[word] = told
    else:
        _DULL.add(word)
    return told


LEAST_BARE_CHARS = 8
"""Shorter secrets are not searched bare: they occur by chance."""
KNOWN = "secret"
"""Kind of a mask of a known secret."""

_MOST_CHARS = 4096
_ANCHORS = "0-9!@#$%^&*~?+"
"""Each searched form holds such a character, which prose has rarely; its four neighbours are looked up."""
_ANCHOR = deferred_pattern(f"[{_ANCHORS}]")
_AFTER = deferred_pattern(rf"[{_ANCHORS}](?=(.{{4}}))", re.S)
_NEIGHBOURS = 4
_LETTER_RUNS, _HEAD = re.compile(r"[A-Za-z/_+-]{10,}"), 6
_ANY_DIGIT = deferred_pattern(r"\d")
_PLAIN_WORD = deferred_pattern(r"[a-z]+\d+|[a-z\d]+(?:[-_.:/ ][a-z\d]*)+")
"""A word with a number, or words and numbers joined by signs: identifiers look so, too."""
EVERYDAY = deferred_pattern(
    r"(?i)(?:postgres\w{0,3}|mysql|mongo\w{0,2}|redis|rabbit\w{0,2}|minio\w{0,5}|root|admin\w{0,8}|test\w{0,4}|demo|guest"
    r"|default|example|local(?:host)?|user(?:name)?|dev\w{0,6}|pass(?:word|wd)?|secret|change_?me|qwerty|letmein|welcome"
    r"|abc|foobar\w{0,2}|docker|vagrant|ubuntu|my_?(?:password|secret|token))[-_@!.]?\d{0,6}!?"
)
"""Passwords that everybody knows. They are ordinary words elsewhere."""
_DATED = deferred_pattern(r"\d{4}-\d\d-\d\d(?:[T ]\d.*)?")
_JOINED = deferred_pattern(r"[A-Za-z0-9+=_-]*")
"""The rest of a base64 or hex run, masked with the part that encodes a secret."""
_BOUNDED_HEX = 16
"""Shorter values of hexadecimal digits occur within longer ones by chance."""


class _Form(NamedTuple):
    text: str
    """A spelling of a secret, in lower case."""
    before: int | None
    """Characters before its anchor. None for a form of letters alone, which few encoded secrets have."""
    is_encoded: bool
    is_bounded: bool
    """No letter or digit may adjoin it."""


def is_searched(value: str) -> bool:
    """Return whether a secret is masked where it stands bare: eight characters or more, mixed, not an everyday word and
    not a public identifier."""
    if not LEAST_BARE_CHARS <= len(value) <= _MOST_CHARS or not _LETTER.search(value):
        return False
    if is_variable(value) or has_mask(value) or EVERYDAY.fullmatch(value) or _DATED.fullmatch(value):
        return False
    if is_public(value):
        return False
    cases = (value.upper() != value) + (value.lower() != value)
    if not _ANY_DIGIT.search(value):
        return cases == 2 and _ANCHOR.search(value) is not None
    # Lower-case letters and digits that are joined name things: `app-db-v12`, `lease-0001`.
    is_identifier = any(sign in value for sign in "-_.:/ ") and not is_random(value, LEAST_BARE_CHARS)
    return cases == 2 or _ANCHOR.search(_ANY_DIGIT.sub("", value)) is not None or not is_identifier


class KnownSecrets:
    """Finds known secrets in texts, in letters of any case: as they are, escaped for JSON, HTML and URLs, in hex and in
    base64. Values that `is_searched` refuses are left out."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.values = frozenset(part for secret in secrets for part in _parts(secret) if is_searched(part))
        self._after: dict[str, list[_Form]] = {}
        self._before: dict[str, list[_Form]] = {}
        self._letters: dict[str, list[_Form]] = {}
        for form in {form for value in self.values for form in _forms(value)}:
            text, at = form.text, form.before
            if at is None:
                self._letters.setdefault(text[:_HEAD], []).append(form)
            elif at + 1 + _NEIGHBOURS <= len(text):
                self._after.setdefault(text[at + 1 : at + 1 + _NEIGHBOURS], []).append(form)
            else:
                self._before.setdefault(text[at - _NEIGHBOURS : at][::-1], []).append(form)

    def __bool__(self) -> bool:
        return bool(self.values)

    def spans(self, text: str) -> list[Span]:
        """Return the places of known secrets."""
        if not self.values or len(text) < LEAST_BARE_CHARS:
            return []
        low = text.lower()
        if len(low) != len(text):  # a capital I with a dot alone becomes two
            low = text.replace("\u0130", "i").lower()
        may_be = not self._after.keys().isdisjoint(_AFTER.findall(low)) or (
            bool(self._before) and not self._before.keys().isdisjoint(_AFTER.findall(low[::-1]))
        )
        in_letters = self._placed_in_letters(text, low) if self._letters else ()
        found = []
        for at, form in chain(self._placed(low) if may_be else (), in_letters):
            if at < 0 or not low.startswith(form.text, at):
                continue
            start, end = at, at + len(form.text)
            if form.is_encoded:
                run = _JOINED.match(text, end)
                end = run.end() if run else end
                while start and _JOINED.fullmatch(text[start - 1]):
                    start -= 1
            elif form.is_bounded and (text[max(0, start - 1) : start].isalnum() or text[end : end + 1].isalnum()):
                continue
            found.append(Span(start, end, KNOWN))
        return found

    def _placed(self, low: str) -> Iterator[tuple[int, _Form]]:
        for anchor in _ANCHOR.finditer(low):
            at = anchor.start()
            for form in self._after.get(low[at + 1 : at + 1 + _NEIGHBOURS], ()):
                yield at - (form.before or 0), form
            for form in self._before.get(low[max(0, at - _NEIGHBOURS) : at][::-1], ()):
                yield at - (form.before or 0), form

    def _placed_in_letters(self, text: str, low: str) -> Iterator[tuple[int, _Form]]:
        for run in _LETTER_RUNS.finditer(text):
            for at in () if run[0].islower() else range(run.start(), run.end() - _HEAD + 1):
                for form in self._letters.get(low[at : at + _HEAD], ()):
                    yield at, form


def _parts(secret: str) -> Iterable[str]:
    """Return a secret, or the lines of one that has several: each line of a private key may stand alone."""
    lines = [line.strip() for line in secret.splitlines()] if "\n" in secret else [secret]
    return (line for line in lines if not line.startswith("-----"))


def _forms(value: str) -> Iterator[_Form]:
    """Yield the spellings of a secret that are searched."""
    low = value.lower()
    is_hex = len(value) < _BOUNDED_HEX and not low.strip("0123456789abcdef")
    is_bounded = is_hex or (not is_random(value, LEAST_BARE_CHARS) and _PLAIN_WORD.fullmatch(low) is not None)
    plain = {low}
    for text in (low, value):
        once = {json.dumps(text, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)}
        plain |= once | {json.dumps(escaped)[1:-1] for escaped in once} | {quote(text, safe=""), html.escape(text)}
    plain = {text.lower() for text in plain}
    data = value.encode("utf-8", "surrogatepass")
    encoded = {data.hex()}
    for shift in range(3):  # where in a group of three bytes it begins; what shares a character with neighbours is left
        first, last = -(-shift * 8 // 6), (shift + len(data)) * 8 // 6
        encoded.add(b64encode(bytes(shift) + data).decode()[first:last].lower())
    encoded |= {text.replace("+", "-").replace("/", "_") for text in encoded}
    for text in plain | encoded:
        anchor = _ANCHOR.search(text)
        yield _Form(text, anchor.start() if anchor else None, text not in plain, is_bounded and text in plain)
