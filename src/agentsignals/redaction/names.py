"""Words that name a secret, in many languages, and what a whole name states: `dbPassword`, `GH_PAT`, `mot de passe`."""

from __future__ import annotations

from functools import lru_cache

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
    "ko": "암호",
    "ar": "المرور السر مرور",
    "fa": "عبور گذرواژه",
    "he": "סיסמה סיסמא סיסמת הסיסמה",
    "hi": "पासवर्ड",
    "bn": "পাসওয়ার্ড",
}
"""Words for a password besides the English ones; of several words (mot de passe) the one that tells. They may have an
ending. Words of scripts without blanks are among the stems."""
PASSWORDS = frozenset(word for words in _LANGUAGES.values() for word in words.split())
INFLECTED = tuple(word for word in PASSWORDS if len(word) > len("sandi"))
STEMS: tuple[tuple[str, Word], ...] = (
    *((stem, "password") for stem in ("passw", "passphrase", "passcode", "pwd", "psk", "preshared", "shared-key")),
    *(
        (stem, "password")
        for stem in ("密码", "密碼", "口令", "パスワード", "暗証番号", "合言葉", "비밀번호", "패스워드", "รหัสผ่าน")
    ),
    *((stem, "secret") for stem in ("secret", "geheimnis", "segredo", "secreto", "секрет", "秘密", "機密")),
    *((stem, "token") for stem in ("token", "jeton", "токен", "令牌", "トークン", "토큰")),
    *((stem, "key") for stem in ("credential", "_auth", "_sid", "schlüssel", "ключ", "密钥", "密鑰")),
)
"""Parts of names in lower case, from the surest on."""
NAME_WORDS: dict[str, Word] = {
    **dict.fromkeys(("pw", "passwords", "passkey"), "password"),
    **dict.fromkeys(("pat", "jwt", "bearer", "authkey", "jsessionid", "phpsessid", "sessionid"), "token"),
    **dict.fromkeys(("salt", "pepper", "sk"), "token"),
    **dict.fromkeys(("cred", "creds", "auth", "hmac", "sig", "signature", "totp", "clave", "chiave", "clé"), "key"),
    **dict.fromkeys(("pin", "otp", "seed", "unlock", "puk"), "hint"),
}
"""Whole words of names."""
_NO_PASS = ("bypass", "compass", "surpass", "trespass", "overpass", "underpass")
_OPENS = ("api", "access", "account", "private", "auth", "master", "storage", "encryption", "signing")
"""Words before `key` that make it open something. For other keys only the value decides."""
_LETTERS_OF = deferred_pattern(r"[^\W\d_]+")
_HEADER = deferred_pattern(r"(?:[A-Z][a-z]*-)+Key")
_PARTS = deferred_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+")
_OTHER = frozenset(
    word
    for words in (
        "count counts usage limit limits max min num number type len length size file filename path dir name label",
        "field tokenizer tokenize tokens keys url uri hint placeholder prompt policy regex pattern err error errors",
        "message at expiry expires expired ttl budget rate total input output cache cached primary foreign sort",
        "public build commit idempotency keyboard keyword keywords keyframes index env var id ids map set list row",
    )
    for word in words.split()
)
_OF_TOKENS = frozenset(("usage", "input", "output", "total", "cache", "cached", "rate", "budget", "sort", "env", "var"))
"""Words in names of counts, limits and the like, which hold no secret."""


_NAME_CHARS = 16
"""A longer name that looks random is an identifier."""


@lru_cache(maxsize=8192)
def named(name: str) -> Word | None:
    """Return the strongest kind of secret that the words of a name state, or None. `pass` alone is a `hint`."""
    if len(name) > _NAME_CHARS and is_random(name, _NAME_CHARS):
        return None
    low = name.lower()
    for stem, word in STEMS:
        if stem in low:
            return word
    parts = [part.lower() for part in _PARTS.findall(name)]
    if any(part in PASSWORDS or part.startswith(INFLECTED) for part in _LETTERS_OF.findall(low)):
        return "password"
    told = next((NAME_WORDS[part] for part in parts if part in NAME_WORDS), None)
    if told:
        return told
    last = parts[-1] if parts else ""
    if last.endswith("pass") and not last.endswith(_NO_PASS):
        return "password" if len(low.rstrip("0123456789")) > len("pass") else "hint"
    if last.endswith("pw") and 2 < len(last) < 6:
        return "password"
    return _key(parts, name)


def _key(parts: list[str], name: str) -> Word | None:
    """Judge a name with `key`: as a word of its own it states a key; after a word of `_OPENS` a token."""
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
