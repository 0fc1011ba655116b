"""Masks secrets and personal data in texts: keys, passwords, logins, mail addresses, user names, numbers.

Patterns know the shape of a secret or the name before it, not its meaning: a secret that looks like prose passes. A
mask is one word for each kind, such as `[key]`. People and machines get a pseudonym, which is the same for the same
person and the same pseudonym key.
"""

from __future__ import annotations

import json
import re
import secrets
import shlex
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar
from unicodedata import normalize

from msgspec import Struct
from msgspec.structs import replace

from agentsignals.model.lazy import deferred_pattern
from agentsignals.redaction import commands, encoded, fields, keys, personal, scored, values
from agentsignals.redaction.personal import KEY_BYTES, Pseudonyms, mask_word
from agentsignals.redaction.values import KNOWN, KnownSecrets, Span, masked, merged, names_a_secret, present, unmasked

_T = TypeVar("_T")
_KEPT_CHARS = 4_000_000
"""Masked texts are cached up to so many characters, since traces repeat themselves."""
_SECRET = "secret"  # noqa: S105  (a kind)
_ESCAPED = deferred_pattern(r"\\u00(2[013-9a-f]|[3467][0-9a-f]|5[0-9abd-f])", re.I)
"""A printable character escaped as a number. Quotes and backslashes stay, since they end texts."""
_LITERAL = deferred_pattern(r'"[^"\\]*+\\(?:[^"\\]|\\.)*+(?:"|\Z)')
_EDGES = deferred_pattern(r"\A[^\s\"'`]{8,}|(?:\A|(?<=[\s\"'`]))[^\s\"'`]{8,}\Z")
_MIXED = deferred_pattern(r"\d|[a-z][A-Z]|[A-Z]{3}")
_HARMLESS = deferred_pattern(
    r"[A-Za-z]{1,15}(?:[_.-][A-Za-z]{1,15}){0,5}|(?!\S*(?:[Pp]ass|pw|auth)\S* )[A-Za-z]{1,15} [A-Za-z]{1,15}"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z?|(?:toolu|msg|req|call)_[0-9A-Za-z]{10,40}"
)
"""Short texts that are frequent in traces: words, UUIDs, times, ids of calls and messages."""
_WORD_CHARS = 15
"""Longest word that is harmless by itself."""
_DIGIT = deferred_pattern("[0-9]")
_AUTH = frozenset(("auth", "_auth"))
"""Names of base64 logins that docker and npm store."""
_AUTH_CHARS = max(map(len, _AUTH))
_OF_BINARY = 8
"""One in so many decoded characters that are none: the rest is binary, in which names stand by chance, keys not."""
_ARGUMENT_CHARS = 32
"""A first argument of so many drawn characters is a key, whatever is called."""
_ASSIGNED_RUN = deferred_pattern(
    r"(?<![A-Z0-9_])([A-Z][A-Z0-9_]{2,40})=((?=[A-Za-z0-9]*[A-Z])(?=[A-Za-z0-9]*[a-z])[A-Za-z0-9]{32,100})\Z"
)
"""A variable of the environment that holds drawn letters and digits."""
_ALL_KINDS = deferred_pattern(r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d)(?=(?:.*[^\w\s./:=-]){2})\S{12,64}")
_LONG_DIGITS = 10**11
"""Numbers from here on may be cards or telephone numbers."""


_NONE_KNOWN = KnownSecrets()
_SECRET_KINDS = frozenset(("key", "login", "private key", "secret"))


def _spans(text: str, depth: int = encoded.DEEPEST, known: KnownSecrets = _NONE_KNOWN) -> list[Span]:
    """Return the spans to mask, in order and disjoint. Up to `depth` nested encodings are undone."""
    if depth < encoded.DEEPEST and text.count("\ufffd") * _OF_BINARY > len(text):
        return merged(key_spans(text, depth, known))
    return merged(_found(text, depth, known, named=True))


def key_spans(text: str, depth: int = encoded.DEEPEST, known: KnownSecrets = _NONE_KNOWN) -> list[Span]:
    """Return the keys that their shape gives away and the known secrets, in any encoding, without those masked before.
    Spans may overlap."""
    return _found(text, depth, known, named=False)


def _found(text: str, depth: int, known: KnownSecrets, *, named: bool) -> list[Span]:
    """Return keys and known secrets, and if `named` also what a name, a place or a form gives away."""
    look = partial(_spans if named else key_spans, known=known)
    if not text.isascii():  # each letter keeps its place
        text = encoded.OTHER_FONT.sub(lambda letter: normalize("NFKC", letter[0]), text)
    hits = known.spans(text)
    if encoded.has_invisible(text):
        hits += encoded.rejoined(text, look, depth)
        text = encoded.COLOUR.sub(lambda colour: " " * len(colour[0]), text)
    # A capital I with a dot alone would become two characters: each keeps its place.
    low = text.lower()
    low = low if len(low) == len(text) else text.replace("\u0130", "i").lower()
    raw = text.encode("latin-1", "replace")  # a character is one byte, its own if it is ASCII
    if named:
        hits += scored.judged(text, low, parts := present(low), [*by_rules(text, low, parts)])
        hits += personal.spans(text, low, raw)
    else:
        hits += keys.spans(text)
    numbered: list[tuple[int, int]] = []
    in_code: list[Span] = []
    coded = encoded.Runs(text, look, depth)
    for run in keys.RUNS(raw):
        start, end = run
        run_text = text[start:end]
        mixes_cases = run_text.lower() != run_text != run_text.upper()
        if mixes_cases or not named:
            in_code += coded.in_base64(*run)
        is_argument = text[max(0, start - 2) : start] in ('("', "('") and text[end : end + 1] in ('"', "'")
        if named and is_argument and mixes_cases and values.looks_drawn(run_text, _ARGUMENT_CHARS):
            hits.append(Span(start, end, "key"))
        if (
            named
            and mixes_cases
            and (assigned := _ASSIGNED_RUN.search(run_text))
            and not values.speaks_of_other(assigned[1])
        ):
            hits += [Span(start + assigned.start(2), end, "secret")] if values.alternates(assigned[2]) else []
        if not named or _DIGIT.search(run_text):
            # Of keys without a digit those that are most at home here are found by their beginning.
            numbered.append(run)
            in_code += coded.in_hex(*run)
        if not (mixes_cases and named):
            in_code += coded.in_base32(*run)
    hits += keys.in_runs(text, low, numbered)
    hits += in_code
    for undo in (encoded.in_dump, encoded.apart, encoded.in_base85):
        hits += undo(text, raw, look, depth)
    hits += encoded.escaped(text, look, depth)
    return unmasked(text, hits)


def by_rules(text: str, low: str, parts: values.Present) -> Iterator[tuple[Span, str]]:
    """Yield what rules would mask, each with the kind of its rule."""
    yield from ((span, "keys") for span in keys.spans(text))
    yield from ((span, "logins") for span in keys.logins(text, low, parts.texts))
    for rule, spans in (
        ("fields", fields.secrets(text, low, parts)),
        ("commands", commands.secrets(text, low, parts.commands)),
    ):
        yield from ((span, rule) for span in spans if not values.is_public_at(text, span.start, span.end))


def with_texts(value: Any, mask: Callable[[str], str]) -> Any:
    """Return the value with `mask` applied to each of its texts, names and fields."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, list | tuple):
        return type(value)(with_texts(held, mask) for held in value)
    if isinstance(value, dict):
        made: dict[Any, Any] = {}
        for name, held in value.items():
            clean = with_texts(name, mask)
            while clean in made:  # two names may have equal masks
                clean = f"{clean} ({len(made) + 1})"
            made[clean] = with_texts(held, mask)
        return made
    if isinstance(value, Struct):
        return replace(value, **{name: with_texts(getattr(value, name), mask) for name in value.__struct_fields__})
    return value


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text of a value, names and fields included."""
    seen: list[str] = []

    def keep(text: str) -> str:
        seen.append(text)
        return text

    with_texts(value, keep)
    return iter(seen)


def redacted(text: str, known: KnownSecrets = _NONE_KNOWN) -> str:
    """Mask a text with one word for each kind, the same whoever masks it."""
    return Redactor(pseudonyms=False, known=known).plain(text)


def redacted_part(text: str, known: KnownSecrets = _NONE_KNOWN) -> str:
    """Mask a part of a text. A random-looking run at either end may be the rest of a secret."""
    return _EDGES.sub(
        lambda run: "[cut]" if _MIXED.search(run[0]) and run[0][0] != "[" else run[0], redacted(text, known)
    )


class Redactor:
    """Masks texts and counts what it masked by kind: `account`, `address`, `card`, `key`, `login`, `mail`, `phone`,
    `private key`, `secret`, `user`.

    Users, mail addresses, telephone numbers and IP addresses get pseudonyms by `key`, 32 bytes. Without a key they are
    the same within this redactor only. With `pseudonyms=False` each kind is one word. A key of another length is a
    ValueError. `known` secrets are masked wherever they stand bare, `random` values wherever they stand.
    """

    def __init__(
        self,
        key: bytes | None = None,
        *,
        pseudonyms: bool = True,
        known: KnownSecrets = _NONE_KNOWN,
        random: values.RandomValues | None = None,
    ) -> None:
        self.known = known
        self._random = random
        key = secrets.token_bytes(KEY_BYTES) if key is None else key
        self._mask = Pseudonyms(key).mask if pseudonyms else mask_word
        self.counts: dict[str, int] = {}
        self.random_values: set[str] = set()
        """Masked values that look random. No part of them may stand anywhere else."""
        self.secrets: dict[str, str] = {}
        """Every masked secret as exact string with its kind: `key`, `login`, `private key` or `secret`."""
        self._cache: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._cached_chars = 0

    def learn(self, known: KnownSecrets) -> None:
        """Mask these secrets from now on, wherever they stand bare."""
        if known is not self.known:
            self.known = known
            self._cache.clear()
            self._cached_chars = 0

    def text(self, text: str, times: int = 1) -> str:
        """Mask a text. JSON is masked value by value and stays JSON, so that escapes hide nothing.

        `times`: how often the text occurs, for the counts. JSON without a secret is returned unchanged.
        """
        if text[:1] not in ("{", "[", '"'):
            return self.plain(text, times)
        try:
            parsed = json.loads(text, object_pairs_hook=_once)
            clean = self._value(parsed, times)
            return text if clean == parsed else json.dumps(clean, ensure_ascii=False)
        except (ValueError, RecursionError):
            told = self.plain(_ESCAPED.sub(lambda escape: chr(int(escape[1], 16)), text), times)
            return _LITERAL.sub(lambda literal: self._literal(literal[0], times), told)

    def _literal(self, literal: str, times: int) -> str:
        """Mask a text in JSON that is cut."""
        end = "" if literal[-1] == '"' else '"'
        try:
            inner = json.loads(literal + end, strict=False)
        except ValueError:
            return literal
        clean = self.plain(inner, times)
        return literal if clean == inner else json.dumps(clean, ensure_ascii=False).removesuffix(end)

    def lines(self, text: str) -> str:
        """Mask JSON Lines line by line, any other text as a whole."""
        parts = text.split("\n")  # other separators may stand inside a value
        try:
            json.loads(parts[0] if len(parts) > 1 else "")
        except (ValueError, RecursionError):
            return self.text(text)
        return "\n".join(self.text(part) for part in parts)

    def plain(self, text: str, times: int = 1) -> str:
        """Mask a text that is not parsed."""
        if len(text) < values.LEAST_CHARS:
            return text
        return self._counted(self._cache.get(text) or self._looked_through(text), times)

    def _counted(self, cached: tuple[str, tuple[str, ...]], times: int) -> str:
        for kind in cached[1]:
            self.counts[kind] = self.counts.get(kind, 0) + times
        return cached[0]

    def _looked_through(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Return the masked text, and the kinds of what was masked."""
        spans = merged(self.known.spans(text)) if _HARMLESS.fullmatch(text) else _spans(text, known=self.known)
        self.random_values.update(text[s.start : s.end] for s in spans if _looks_random(s.kind, text[s.start : s.end]))
        for start, end, kind in spans:
            if kind in _SECRET_KINDS:  # of a login `NAME:PASSWORD` the password
                begin = start + 1 + text[start:end].find(":") if kind == "login" else start
                self.secrets[text[begin:end]] = kind
        if self._random is not None and (drawn := self._random.spans(text)):
            free = [d for d in drawn if not any(d.start < span.end and span.start < d.end for span in spans)]
            spans = merged([*spans, *unmasked(text, free)])
        entry = (masked(text, spans, self._mask), tuple(span.kind for span in spans)) if spans else (text, ())
        if self._cached_chars > _KEPT_CHARS:
            self._cache.clear()
            self._cached_chars = 0
        self._cache[text] = entry
        self._cached_chars += len(text)
        return entry

    def _value(self, value: Any, times: int) -> Any:
        """Mask a value of decoded JSON, with its inner values. A list of words is also read as a command."""
        if isinstance(value, str):
            cached = self._cache.get(value)
            return self.text(value, times) if cached is None else self._counted(cached, times)
        if isinstance(value, dict):
            return self._object(value, times)
        if isinstance(value, list):
            clean_list = [self._value(v, times) for v in value]
            is_command = clean_list == value and all(isinstance(v, str) for v in value)
            if is_command and any(v[:1] == "-" for v in value):  # its arguments, one by one
                line = self.plain(shlex.join(value), times)
                told = shlex.split(line) if "[" in line else ()
                return told if len(told) == len(value) else value
            return clean_list
        if isinstance(value, int) and value >= _LONG_DIGITS:
            digits = str(value)
            clean = self.plain(digits, times)
            return value if clean == digits else clean
        return value

    def _object(self, value: dict[str, Any], times: int) -> dict[str, Any]:
        """Mask an object, which keeps its number of names: equal masks are numbered."""
        cleaned: dict[str, Any] = {}
        for name, held in value.items():
            clean = name if name.isalpha() and len(name) <= _WORD_CHARS else self.plain(name, times)
            while clean in cleaned or (clean != name and clean in value):
                clean = f"{clean}{len(cleaned)}"
            cleaned[clean] = self._named(name, held, times)
        for place in ("data", "stringData") if value.get("kind") == "Secret" else ():  # Kubernetes
            if isinstance(held := value.get(place), dict):
                cleaned[place] = {name: self._named("secret", text, times) for name, text in held.items()}
        # Another field tells that a name holds a secret: `{"name": "API_KEY", "value": "…"}`, as deployments write it,
        # cookies of browsers, private web keys.
        by_name = {name.lower(): name for name in value}
        told = next(
            (value[by_name[n]] for n in ("name", "key", "id", "label", "field", "parameterkey") if n in by_name), None
        )
        for low, place in by_name.items():
            beside = ""
            if low in _VALUE_NAMES and isinstance(told, str):
                is_cookie = "domain" in by_name or "httponly" in by_name
                beside = "session_key" if is_cookie and names_a_secret(told) is None else told
            elif low in _WEB_KEY and "kty" in by_name:
                beside = "private_key"
            if beside and cleaned.get(place) == value[place]:
                cleaned[place] = self._named(beside, value[place], times)
        return cleaned

    def _named(self, name: str, value: Any, times: int) -> Any:
        """Mask a value if its name states a secret and it looks like one."""
        clean = self._value(value, times)
        if isinstance(value, str) and clean == value and " " in value and name.lower().endswith(("mnemonic", "phrase")):
            return self.plain(f"mnemonic: {value}", times).removeprefix("mnemonic: ")
        is_auth = len(name) <= _AUTH_CHARS and name.lower() in _AUTH and clean == value
        if is_auth and isinstance(value, str) and keys.is_login(value):
            self.counts["login"] = self.counts.get("login", 0) + times
            return "[login]"
        word = names_a_secret(name)
        if isinstance(value, dict) and isinstance(clean, dict) and clean.get("key") == value.get("key", clean):
            inner_name = f"{name}_key"  # {"api": {"key": "…"}}
            if names_a_secret(inner_name) == "token":
                clean["key"] = self._named(inner_name, value["key"], times)
        if name == "key" and isinstance(value, str) and _ALL_KINDS.fullmatch(value):
            word = "password"
        if word is None or clean != value:
            return clean
        if isinstance(value, list):
            return [self._named(name, v, times) for v in value]
        if isinstance(value, dict):  # {"db_password": {"value": "…"}}, as deployments put it out
            inner = {n: self._named(name, v, times) for n, v in value.items() if n.lower() in _VALUE_NAMES}
            return {**clean, **inner} if clean.keys() == value.keys() else clean
        written = str(value) if isinstance(value, int) and word in ("password", "secret") else value
        if not isinstance(written, str) or not values.is_secret(word, name, written):
            return clean
        self.secrets[written] = _SECRET
        if _looks_random(_SECRET, written):
            self.random_values.add(written)
        self.counts[_SECRET] = self.counts.get(_SECRET, 0) + times
        return f"[{_SECRET}]"


_VALUE_NAMES = frozenset(("value", "parametervalue", "val", "default", "text", "string", "content", "data"))
_WEB_KEY = frozenset(("d", "p", "q", "dp", "dq", "qi", "k"))


def redacted_in(value: _T, known: KnownSecrets | None = None) -> _T:
    """Return the value with all its texts and names masked, with one word for each kind."""
    made: _T = with_texts(value, Redactor(pseudonyms=False, known=known or _NONE_KNOWN).text)
    return made


def _looks_random(kind: str, value: str) -> bool:
    return kind == "key" or (kind == _SECRET and values.is_random(value, 20) and not values.is_known(value))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; ValueError if a name occurs twice, since a parsed object would hide one."""
    parsed = dict(pairs)
    if len(parsed) < len(pairs):
        raise ValueError("a name occurs twice")
    return parsed


# -- last check before a text leaves -----------------------------------------------------------------------------------
#
# Masking happens where texts are made; this catches what forgot it: keys by their shape, in any encoding, and secrets
# that were masked elsewhere. A value that only the name before it gave away may stand elsewhere without the name. Once
# it is known, it is masked there too; of a random value also parts.

PART_CHARS = 12
"""Letters and digits of a random value in a row that are no coincidence: 36 to the 12th."""
_DIFFERENT = 6
"""Number of them that must differ, because runs of zeros occur anywhere."""
_OF_KEYS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_+/=.~%:!@#^&*$-")
"""Characters of values that are neither quote nor escape, which a file's syntax needs."""
_ELSEWHERE = "secret that was masked elsewhere"
_TOKEN = re.compile(rf"[a-z0-9]{{{PART_CHARS},}}")


class Guard:
    """Searches texts that are about to leave. `redactor` knows the values it masked."""

    def __init__(self, redactor: Redactor | None = None) -> None:
        drawn = redactor.random_values if redactor else ()
        self._parts = {part: value for value in map(str.lower, drawn) for part in _parts(value)}
        self._known = KnownSecrets({*redactor.secrets, *redactor.known.values} if redactor else ())

    def kind(self, text: str) -> str | None:
        """Return what must not leave in a text: `key`, `private key`, or `secret that was masked elsewhere`. None if
        nothing is found."""
        if self._has_part(text):
            return _ELSEWHERE
        hits = key_spans(text, known=self._known)
        return (_ELSEWHERE if hits[0].kind == KNOWN else hits[0].kind) if hits else None

    def without_known(self, text: str) -> str:
        """Mask secrets that were masked elsewhere, in any encoding, and parts of them."""
        spans = [span for span in key_spans(text, known=self._known) if span.kind == KNOWN] if self._known else []
        if self._has_part(text):
            low = text.lower()
            spans += [
                Span(*_stretch(low, at, self._parts[part], part), "cut")
                for token in _TOKEN.finditer(low)
                for at in (token.start(), token.end() - PART_CHARS)
                if (part := low[at : at + PART_CHARS]) in self._parts
            ]
        return masked(text, merged(spans), mask_word) if spans else text

    def _has_part(self, text: str) -> bool:
        """Return whether a text holds part of a random value that was masked elsewhere."""
        # Where a value was cut or embedded, one of its parts is at an end of a token.
        tokens = _TOKEN.findall(text.lower()) if self._parts else ()
        return any(token[:PART_CHARS] in self._parts or token[-PART_CHARS:] in self._parts for token in tokens)


def _stretch(low: str, at: int, value: str, part: str) -> tuple[int, int]:
    """Return the bounds of the text around `at` that equals the masked value around its part."""
    within = value.index(part)
    start, end = at, at + PART_CHARS
    n = within
    while n and start and low[start - 1] == value[n - 1] and low[start - 1] in _OF_KEYS:
        start, n = start - 1, n - 1
    n = within + PART_CHARS
    while n < len(value) and end < len(low) and low[end] == value[n] and low[end] in _OF_KEYS:
        end, n = end + 1, n + 1
    return start, end


def _parts(value: str) -> Iterable[str]:
    for token in _TOKEN.findall(value.lower()):
        for n in range(len(token) - PART_CHARS + 1):
            part = token[n : n + PART_CHARS]
            if len(set(part)) >= _DIFFERENT and values.is_mixed(part):
                yield part
