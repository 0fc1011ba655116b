"""Words that name a secret, in many languages, and what a whole name states: `dbPassword`, `GH_PAT`, `mot de passe`."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from agentsignals.model.lazy import deferred_pattern
from agentsignals.redaction.values import Word, is_random

_LANGUAGES = {
    "de": "passwort kennwort zugangscode",
    "fr": "passe mdp",
    "es": "contraseña contrasena",
    "pt": "senha",
    "nl": "wachtwoord",
    "sv": "lösenord losenord lösenordet",
    "no": "passord passordet",
    "da": "adgangskode kodeord",
    "fi": "salasana",
    "is": "lykilorð",
    "pl": "hasło hasła haslo",
    "cs": "heslo",
    "hu": "jelszó jelszava jelszo",
    "ro": "parolă parola",
    "hr": "lozinka zaporka",
    "sl": "geslo",
    "lt": "slaptažodis",
    "lv": "parole",
    "et": "parool salasõna",
    "ca": "contrasenya",
    "eu": "pasahitza",
    "ru": "пароль пароля паролем",
    "sr": "лозинка",
    "el": "κωδικός κωδικος συνθηματικό",
    "tr": "şifre sifre şifresi",
    "vi": "khẩu khau",
    "id": "sandi",
    "zh": "密码 密碼 口令",
    "ja": "パスワード 暗証番号 合言葉",
    "ko": "비밀번호 패스워드 암호",
    "ar": "المرور السر مرور",
    "fa": "عبور گذرواژه",
    "he": "סיסמה סיסמא סיסמת הסיסמה",
    "hi": "पासवर्ड",
    "bn": "পাসওয়ার্ড",
    "th": "รหัสผ่าน",
}
"""Words for a password besides the English ones; of several words (mot de passe) the one that tells."""
_PASSWORDS = frozenset(word for words in _LANGUAGES.values() for word in words.split())
_STEMS: tuple[tuple[str, Word], ...] = (
    *((stem, "password") for stem in ("passw", "passphrase", "passcode", "pwd", "psk")),
    *((stem, "secret") for stem in ("secret", "geheimnis", "segredo", "secreto", "секрет", "秘密", "機密")),
    *((stem, "token") for stem in ("token", "jeton", "токен", "令牌", "トークン", "토큰")),
    *((stem, "key") for stem in ("credential", "_auth", "_sid", "schlüssel", "ключ", "密钥", "密鑰")),
)
"""Parts of names in lower case, from the surest on."""
_WORDS: dict[str, Word] = {
    **dict.fromkeys(("pw", "passwords", "passkey"), "password"),
    **dict.fromkeys(("pat", "jwt", "bearer", "authkey", "jsessionid", "phpsessid", "sessionid"), "token"),
    **dict.fromkeys(("cred", "creds", "salt", "pepper", "hmac", "sig", "signature", "totp", "clave", "chiave"), "key"),
}
"""Whole words of names."""
_NO_PASS = ("bypass", "compass", "surpass", "trespass", "overpass", "underpass")
_OPENS = ("api", "access", "account", "private", "auth", "master", "storage", "encryption", "signing")
"""Words before `key` that make it open something. For other keys only the value decides."""
_PARTS = deferred_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+")
_OTHER = frozenset(
    word
    for words in (
        "count counts usage limit limits max min num number type len length size file filename path dir name label",
        "field tokenizer tokenize tokens keys url uri hint placeholder prompt policy regex pattern err error errors",
        "message at expiry expires expired ttl budget rate total input output cache cached primary foreign sort",
        "public idempotency keyboard keyword keywords keyframes index env var id ids map set list row",
    )
    for word in words.split()
)
"""Words in names of counts, limits and the like, which hold no secret."""


_PARTS_OF_NAMES = (
    *("pass", "pwd", "psk", "pw", "secret", "token", "key", "credential", "jeton"),
    *(stem for stem, _ in _STEMS if not stem.isascii()),
    *(word for word in _PASSWORDS if not word.isascii()),
)
_WORDS_OF_NAMES: dict[str, tuple[str, ...]] = {
    **{word: (word,) for word in (*(w for w in _PASSWORDS if w.isascii()), *_WORDS)},
    "auth": ("_auth",),
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
    **{"stdin": ("--stdin",), "var": (" -var",), "e": (" -e ",), "parameter": ("put-parameter",)},
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
    *("encode", "decode", "jwt", "token", "private", "verify"),
)
_WORDS_OF_LOGINS: dict[str, tuple[str, ...]] = {
    **{word: (word,) for word in ("login", "signin", "credential", "credentials", "creds")},
    **{word: (f"{word} in",) for word in ("log", "logs", "logged", "sign", "signed")},
}
_ROLES: tuple[tuple[tuple[str, ...], dict[str, tuple[str, ...]]], ...] = (
    (_PARTS_OF_NAMES, _WORDS_OF_NAMES),
    (_PARTS_OF_COMMANDS, _WORDS_OF_COMMANDS),
    (_PARTS_OF_CALLS, {}),
    ((), _WORDS_OF_LOGINS),
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


class _Vocabulary:
    """Tells which parts a text contains, by its distinct words: traces repeat them, and a search for each part or a
    pattern of all costs several times as much."""

    def __init__(self) -> None:
        self._telling: dict[bytes, tuple[frozenset[str], ...]] = {}
        self._dull: set[bytes] = set()

    def in_(self, low: str) -> Present:
        told: tuple[set[str], ...] = (set(), set(), set(), set())
        for word in set(low.encode("utf-8", "replace").translate(_LETTERS).split()) - self._dull:
            for role, found in enumerate(self._telling.get(word) or self._judged(word)):
                told[role].update(found)
        return Present(*map(frozenset, told))

    def _judged(self, word: bytes) -> tuple[frozenset[str], ...]:
        text = word.decode("utf-8", "replace").replace("author", "")
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


_NAME_CHARS = 16
"""A longer name that looks random is an identifier."""


@lru_cache(maxsize=8192)
def named(name: str) -> Word | None:
    """Return the strongest kind of secret that the words of a name state, or None. `pass` alone is a `hint`."""
    if len(name) > _NAME_CHARS and is_random(name, _NAME_CHARS):
        return None
    low = name.lower()
    for stem, word in _STEMS:
        if stem in low:
            return word
    parts = [part.lower() for part in _PARTS.findall(name)]
    if low in _PASSWORDS or any(part in _PASSWORDS for part in parts):
        return "password"
    told = next((_WORDS[part] for part in parts if part in _WORDS), None)
    if told:
        return told
    last = parts[-1] if parts else ""
    if last.endswith("pass") and not last.endswith(_NO_PASS):
        return "password" if len(low.rstrip("0123456789")) > len("pass") else "hint"
    if last.endswith("pw") and len(last) in (4, 5):
        return "password"
    return _key(parts, name)


def _key(parts: list[str], name: str) -> Word | None:
    """Judge a name with `key`: as a word of its own it states a key; after a word of `_OPENS` a token."""
    for n, part in enumerate(parts):
        if part == "key":
            return "token" if n and parts[n - 1] in _OPENS else "key" if n or name[:1] == "K" else None
        if part.endswith("key") and part[:-3] in _OPENS:
            return "token"
    return None


def speaks_of_other(name: str) -> bool:
    """Return whether a name is of a count, a limit, a path or the like."""
    return any(part.lower() in _OTHER for part in _PARTS.findall(name))


@lru_cache(maxsize=8192)
def names_a_secret(name: str) -> Word | None:
    """Return the strongest kind of secret that a name states, or None."""
    word = named(name)
    return None if word is None or speaks_of_other(name) else word
