"""Words that name a secret, in many languages: what a whole name states (`dbPassword`, `GH_PAT`, `mot de passe`), and
which of these words a text contains, so that only those are searched in it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from agentsignals.model.lazy import deferred_pattern
from agentsignals.redaction.values import Word, alternates


class _Table(msgspec.Struct):
    """`words.json`; words are separated by blanks. JSON, since every run reads it."""

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
_NAME_CHARS = 16
"""A longer name that looks random is an identifier."""


@lru_cache(maxsize=8192)
def named(name: str) -> Word | None:
    """Return the strongest kind of secret that the words of a name state, or None. `pass` alone is a `hint`."""
    if len(name) > _NAME_CHARS and alternates(name):
        return None
    low = name.lower()
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
    other = _OTHER if named(name) != "password" else _OTHER - _OF_TOKENS
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
_ANY = deferred_pattern("|".join(part for parts, _ in _ROLES for part in parts))
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
