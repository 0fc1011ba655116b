"""Tells which words that matter a text contains, so that only those are searched in it."""

from __future__ import annotations

from typing import NamedTuple

from agentsignals.model.lazy import deferred_pattern
from agentsignals.redaction.logins import WORDS
from agentsignals.redaction.names import INFLECTED, NAME_WORDS, PASSWORDS, STEMS

_PARTS_OF_NAMES = (
    *("pass", "pwd", "psk", "pw", "secret", "token", "key", "credential", "jeton", "preshared", *INFLECTED),
    *(stem for stem, _ in STEMS if not stem.isascii()),
    *(word for word in PASSWORDS if not word.isascii()),
)
_WORDS_OF_NAMES: dict[str, tuple[str, ...]] = {
    **{word: (word,) for word in (*(w for w in PASSWORDS if w.isascii()), *NAME_WORDS)},
    "hash": ("api_hash",),
    "sid": ("_sid",),
}
_PARTS_OF_COMMANDS = (
    *("login", "logon", "passw", "passphrase", "secret", "token", "auth", "vault", "cred", "keyring", "keychain"),
    *("kinit", "requirepass", "luks", "sudo", "setx", "securestring", "adduser"),
)
_WORDS_OF_COMMANDS: dict[str, tuple[str, ...]] = {
    **{word: (f" {word} ",) for word in ("configure", "connect", "register", "enroll", "set")},
    **{word: (f"{word} ",) for word in ("add", "variable", "variables", "env", "export", "put", "unlock")},
    **{"user": (" user ", "_user "), "config": (" config ", "config:")},
    **{"net": ("net use", "net user"), "basic": ("http-basic",), "literal": ("--from-literal",)},
    **{
        "stdin": ("--stdin",),
        "pass": ("-pass",),
        "hashes": ("-hashes",),
        "var": (" -var",),
        "e": (" -e ",),
        "parameter": ("put-parameter",),
    },
}
_PARTS_OF_CALLS = (
    *(
        "auth",
        "passw",
        "pwd",
        "secret",
        "cred",
        "login",
        "sign",
        "hmac",
        "wallet",
        "fernet",
        "cipher",
        "crypt",
        "connect",
    ),
    *("encode", "decode", "jwt", "token", "private", "verify", "key", "wifi", "pdo", "drivermanager", "createuser"),
)
_WORDS_OF_LOGINS: dict[str, tuple[str, ...]] = {
    **{word: (word,) for word in ("login", "signin", "credential", "credentials", "creds", "unlock")},
    "user": ('user = "', 'user: "', "user="),
    **{
        word: (word,)
        for word in ["zugangsdaten", "identifiants", "credenciales", "credenziali", "credenciais", "учётные", "учетные"]
    },
    **{word: (f"{word} in",) for word in ("log", "logs", "logged", "sign", "signed")},
}
_PARTS_OF_TEXTS = ("hook", "cookie", "bearer", "authorization", "insert")
_ROLES: tuple[tuple[tuple[str, ...], dict[str, tuple[str, ...]]], ...] = (
    (_PARTS_OF_NAMES, _WORDS_OF_NAMES),
    (_PARTS_OF_COMMANDS, _WORDS_OF_COMMANDS),
    (_PARTS_OF_CALLS, {"user": ("create_user", "add_user")}),
    ((), _WORDS_OF_LOGINS),
    (_PARTS_OF_TEXTS, {word: (word,) for word in WORDS}),
)
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


class _Vocabulary:
    """Tells which parts a text contains, by its distinct words: traces repeat them, and a search for each part or a
    pattern of all costs several times as much."""

    def __init__(self) -> None:
        self._telling: dict[bytes, tuple[frozenset[str], ...]] = {}
        self._dull: set[bytes] = set()

    def in_(self, low: str) -> Present:
        told: tuple[set[str], ...] = (set(), set(), set(), set(), set())
        for word in set(low.encode("utf-8", "replace").translate(_LETTERS).split()) - self._dull:
            for role, found in enumerate(self._telling.get(word) or self._judged(word)):
                told[role].update(found)
        return Present(*map(frozenset, told))

    def _judged(self, word: bytes) -> tuple[frozenset[str], ...]:
        text = word.decode("utf-8", "replace")
        text = text if text.startswith("authori") else text.replace("author", "")
        told: tuple[frozenset[str], ...] = ()
        if _ANY.search(text) or text in _ANY_WORD:
            told = tuple(
                frozenset([*[part for part in parts if part in text], *words.get(text, ())]) for parts, words in _ROLES
            )
        if len(self._dull) > _MOST_WORDS:
            self._dull.clear()
        if any(told):
            self._telling[word] = told
        else:
            self._dull.add(word)
        return told


present = _Vocabulary().in_
