"""No planted secret passes, in whole or in part; what everybody may know survives; structure and masks are stable."""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentsignals.redaction import Redactor, redacted, redacted_part
from agentsignals.redaction.personal import mask_word
from agentsignals.redaction.values import Span, masked, merged
from tests.quick import each_row, some
from tests.redaction.planted import CONTEXTS, KINDS, OPTION, Secret, broken, pieces, said

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "sessions"
corpus = pytest.mark.skipif(not CORPUS.exists(), reason="shared/corpus is not there")
BREAKS = {"line": "\n", "windows": "\r\n", "shell": "\\\n", "escaped": "\\n", "diff": "\n+", "quote": "\n> ",
          "listing": "\n    13→"}  # fmt: skip
PROSE = (
    "The build of commit 3f2c1aa failed at line 120 of src/app.py, version 1.12.3.\nThen I ran it again, and it ran.\n"
)


def drawn_by(seed: object) -> random.Random:
    return random.Random(str(seed))  # noqa: S311  (draws, no secret)


def forms(text: str) -> dict[str, str]:
    """A text as the ways out mask it."""
    quoted = json.dumps({"type": "text", "text": text})
    return {
        "as it stands": Redactor().plain(text),
        "as a text": Redactor().text(text),
        "as lines": Redactor().lines(f"{text}\n{text}"),
        "in JSON": Redactor().text(quoted),
        "in JSON that is cut": Redactor().text(quoted[:-1]),
        "in JSON in JSON": Redactor().text(json.dumps({"arguments": quoted})),
    }


def contexts(secret: Secret) -> dict[str, Callable[[str, str], str]]:
    return CONTEXTS | OPTION if secret.name else CONTEXTS


def left(secret: Secret, text: str, before: str = "") -> list[str]:
    """How many characters of each part are left, never the part: a failing test says no secret."""
    return [f"{len(p)} characters" for p in pieces(secret) if p in text and p not in before]


def test_there_are_secrets_of_many_kinds_and_contexts() -> None:
    assert (len(KINDS), len(CONTEXTS), len(OPTION)) == (95, 15, 4)


@pytest.mark.parametrize("seeds", [(0,), pytest.param((1, 2), marks=pytest.mark.slow)], ids=["one", "more"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_part_of_a_planted_secret_passes_in_any_context(kind: str, seeds: tuple[int, ...]) -> None:
    leaks = Counter[str]()
    for seed in seeds:
        secret = KINDS[kind](drawn_by(f"{kind} {seed}"))
        for context, say in contexts(secret).items():
            for form, told in forms(PROSE + said(secret, say) + PROSE).items():
                leaks[f"{context}, {form}"] += len(left(secret, told))
                assert told.count("3f2c1aa") >= 2 and told.count("line 120") >= 2, f"{context}, {form}: too much"
    assert {k: n for k, n in leaks.items() if n} == {}


@each_row("kind", [kind for kind, make in KINDS.items() if make(drawn_by(0)).breaks])
@each_row("way", BREAKS)
def test_a_key_over_two_lines_is_masked_to_its_end_and_no_further(kind: str, way: str) -> None:
    for seed in range(8):
        chance = drawn_by(f"{kind} {seed}")
        secret = KINDS[kind](chance)
        at = chance.randrange(len(secret.value) // 3, len(secret.value))
        told = redacted(f'x = "{broken(secret.value, at, BREAKS[way])}"\n{PROSE}')
        assert left(secret, told) == []
        assert PROSE in told


@cache
def corpus_texts() -> tuple[str, ...]:
    """Texts of real traces, whole values, of every format; the same ones each time."""
    found: list[str] = []
    for folder in sorted(p for p in CORPUS.iterdir() if p.is_dir()):
        paths = sorted(folder.rglob("transcript.*"), key=lambda p: p.stat().st_size)
        for path in paths[len(paths) // 4 :: max(1, len(paths) // 3)][:3]:
            records = path.read_text("utf-8", "replace")[:1_500_000].split("\n")
            found += [v for r in records for v in values(r) if len(v) > 200]
    return tuple(dict.fromkeys(found))


@cache
def masked_corpus_texts() -> list[tuple[str, str]]:
    redactor = Redactor()
    return [(text, redactor.plain(text)) for text in corpus_texts()]


def values(record: str) -> Iterator[str]:
    try:
        yield from strings(json.loads(record))
    except ValueError:
        yield record


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for one in value if isinstance(value, list) else value.values():
            yield from strings(one)


@pytest.mark.corpus
@corpus
@pytest.mark.parametrize("kind", some(KINDS, 3))
def test_no_part_of_a_secret_planted_in_real_texts_passes(kind: str) -> None:
    chance = drawn_by(kind)
    texts = corpus_texts()
    leaks = Counter[str]()
    for _ in range(3):
        for context, say in contexts(KINDS[kind](chance)).items():
            secret = KINDS[kind](chance)
            text = chance.choice(texts)[:20_000]
            at = chance.choice([0, len(text), *(m.end() for m in re.finditer(r"\n", text))])
            planted = f"{text[:at]}\n{said(secret, say)}\n{text[at:]}"
            for form, told in (("text", redacted(planted)), ("JSON", Redactor().text(json.dumps([planted])))):
                leaks[f"{context}, {form}"] += len(left(secret, told, text))
    assert {k: n for k, n in leaks.items() if n} == {}


KNOWN = {
    "hash": re.compile(
        r"(?<![\w/+=.-])(?=[0-9a-f]{0,39}[a-f])(?=[a-f]{0,39}\d)(?:[0-9a-f]{40}|[0-9a-f]{7,12})(?![\w/+=-])"
    ),
    "uuid": re.compile(r"(?<![\w-])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![\w-])"),
    "path": re.compile(
        r"(?<![\w./~-])(?![ab]?/?home/)(?:[\w.-]{1,40}/){1,8}[\w.-]{1,40}\.(?:py|ts|tsx|go|rs|js|md|json)\b"
    ),
    "version": re.compile(r"(?<![\w.-])v?\d{1,3}\.\d{1,3}\.\d{1,3}(?:-\w{1,10})?(?![\w.-])"),
    "line": re.compile(r"(?:(?<=line )|(?<=:)|(?<=\n))\d{1,5}(?=[:→\t])"),
    "time": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z?"),
}


@pytest.mark.slow
@pytest.mark.corpus
@corpus
@pytest.mark.parametrize("kind", KNOWN)
def test_what_everybody_may_know_survives_in_real_texts(kind: str) -> None:
    total, lost = 0, Counter[str]()
    for text, told in masked_corpus_texts():
        before = Counter(KNOWN[kind].findall(text))
        total += before.total()
        lost += before - Counter(KNOWN[kind].findall(told))
    assert total > 200
    assert lost == {}


@pytest.mark.parametrize(
    ("value", "becomes"),
    [
        ({"name": "DB_PASSWORD", "value": "hunter22"}, {"name": "DB_PASSWORD", "value": "[secret]"}),
        ({"passwords": ["hunter22", "hunter33"]}, {"passwords": ["[secret]", "[secret]"]}),
        ({"password": 12345678, "tokens": 12345678}, {"password": "[secret]", "tokens": 12345678}),
        ({"card": 4111111111111111, "n": 4111111111111112}, {"card": "[card]", "n": 4111111111111112}),
        ({"a@x.org": 1, "b@x.org": 2}, {"[mail]": 1, "[mail]1": 2}),
    ],
)
def test_in_json_names_beside_values_tell_too_and_no_entry_is_lost(value: Any, becomes: Any) -> None:
    assert json.loads(Redactor(pseudonyms=False).text(json.dumps(value))) == becomes


@each_row("kind", [kind for kind, make in KINDS.items() if make(drawn_by(0)).breaks])
def test_what_is_left_of_a_key_that_was_cut_is_masked_in_a_part_of_a_text(kind: str) -> None:
    for seed in range(6):
        secret = KINDS[kind](drawn_by(seed))
        at = drawn_by(seed).randrange(16, len(secret.value))
        assert left(secret, redacted_part(f"{secret.value[at:]}\n{PROSE}x = {secret.value[:at]}")) == []
    assert redacted_part(PROSE + "src/app.py") == PROSE + "src/app.py"


@pytest.mark.parametrize("kind", ["gcp account", "rsa", "ssh", "pgp"])
def test_a_private_key_without_its_beginning_is_one(kind: str) -> None:
    secret = KINDS[kind](drawn_by(kind))
    for text in (secret.value[100:] + secret.around[1], json.dumps(secret.value[30:] + secret.around[1])):
        told = redacted(PROSE + text + PROSE)
        assert left(secret, told) == []
        assert told.startswith(PROSE) and told.endswith(PROSE)


def test_spans_that_overlap_are_one_and_leave_nothing_between_them() -> None:
    found = merged([Span(4, 9, "secret"), Span(2, 6, "key"), Span(3, 5, "mail"), Span(9, 10, "user")])
    assert masked("0123456789", found, mask_word) == "01[key][user]"


def test_escapes_hide_nothing_in_json_that_is_cut() -> None:
    assert "example" not in Redactor().text('{"a": "jo\\u0040example.org')


PARTS = st.sampled_from([
    "token", "password", "=", ": ", '"', "'", "\n", "\\n", " ", "[secret]", "[key]", "ghp_", "sk-", "eyJ", ".", "@",
    "/home/", "jo", "a1B2c3D4e5F6g7H8i9J0", "://", ":", "4111 1111 1111 1111", "+49 170 1234567", "API_KEY", "{", "}",
    "-----BEGIN PRIVATE KEY-----", "Bearer ", "x.org", "-", "_", "\\", "C:\\Users\\", "is", "2a01:4f8::1",
])  # fmt: skip
TEXTS = st.lists(PARTS, max_size=14).map("".join) | st.text(max_size=40)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def shape(value: Any) -> Any:
    """What a value is made of; texts and numbers are alike, for a number may be a card."""
    if isinstance(value, dict):
        return [shape(v) for v in value.values()]
    if isinstance(value, list):
        return [shape(v) for v in value]
    return None if isinstance(value, str | int | float) and not isinstance(value, bool) else value


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(JSON.map(lambda v: {"a": v}))
def test_json_keeps_its_structure(value: Any) -> None:
    told = json.loads(Redactor().text(json.dumps(value)))
    assert shape(told) == shape(value)


@settings(max_examples=150, deadline=None)
@given(TEXTS, TEXTS)
def test_a_text_has_the_same_mask_whoever_masks_it_and_whatever_came_before(text: str, other: str) -> None:
    key = bytes(range(32))
    redactor = Redactor(key)
    redactor.text(other)
    assert redactor.plain(text) == Redactor(key).plain(text) == redactor.plain(text)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(KINDS)), st.integers(0, 10**6), st.sampled_from(sorted(CONTEXTS)))
def test_what_is_masked_stays_as_it_is(kind: str, seed: int, context: str) -> None:
    text = said(KINDS[kind](drawn_by(seed)), CONTEXTS[context])
    for form in (text, json.dumps({"type": "text", "text": text})):
        once = Redactor().text(form)
        assert Redactor().text(once) == once == Redactor(pseudonyms=False).text(once)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["ghp_", "sk-1-", "eyJ-", "eyJa.\n",
     "hf_\n", "token=", "password:\n", "password='", "1.2.3.4.", "4111 ", "DE89", "2a01:",
     "-----BEGIN PRIVATE KEY-----\n", "a", "\\", "@a.", "C:\\Users\\", "AC0", "Cookie: a=", "\\n", "secret", "api_key_",
     "M.aaaaaa.", "://a:", "/home/", "+49 ", "Bearer ", "ssh -u a:", "curl -u a:", "sig=",
     "AIza" + "\n-a" * 14 + "!", "eyJ" + "\n-a" * 3000 + "!", "eyJ" + "\\n>a" * 3000, "npm_" + "\n-a" * 30 + "!",
     f"{'a' * 8000}PRIVATE KEY", f"{'a' * 300}-----END PRIVATE KEY", "-----END PRIVATE KEY", '"token": '],
)  # fmt: skip
def test_hostile_text_takes_no_time(text: str) -> None:
    started = time.process_time()
    redacted("x" + (text * 30_000)[:30_000] + "7Q")
    assert time.process_time() - started < 1.5
