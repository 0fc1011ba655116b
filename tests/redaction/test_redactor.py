"""What is masked before a text leaves, and what is left alone."""

from __future__ import annotations

import html
import json
import random
import string
import time
import tomllib
from base64 import b32encode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from agentsignals.redaction import Guard, Redactor, redacted
from agentsignals.redaction.values import KnownSecrets, RandomValues, is_public_at, is_searched, without_pseudonyms
from tests.quick import each_row

TEXTS = tomllib.loads(Path(__file__).with_name("texts.toml").read_text("utf-8"))


@each_row(("text", "masked"), TEXTS["masked"])
def test_secrets_are_masked_and_what_stands_around_them_stays(text: str, masked: str) -> None:
    assert redacted(text) == Redactor(pseudonyms=False).plain(text) == masked
    assert redacted(masked) == masked


@each_row("text", TEXTS["harmless"])
def test_prose_code_and_identifiers_are_left_alone(text: str) -> None:
    assert redacted(text) == Redactor().plain(text) == text


@pytest.mark.parametrize(
    "text", ["a@" * 30_000, "eyJ-" * 15_000, "-----BEGIN PRIVATE KEY-----" * 2000, "token" * 12_000, "://a:" * 12_000]
)
def test_hostile_text_takes_no_time(text: str) -> None:
    started = time.process_time()
    redacted(text)
    assert time.process_time() - started < 3


def masked(value: Any) -> tuple[Any, dict[str, int]]:
    redactor = Redactor()
    return json.loads(without_pseudonyms(redactor.text(json.dumps(value)))), redactor.counts


@pytest.mark.parametrize(
    ("value", "becomes", "counts"),
    [
        ({"a": ["x\nghp_" + "a1" * 18]}, {"a": ["x\n[key]"]}, {"key": 1}),
        ({"password": "hunter22"}, {"password": "[secret]"}, {"secret": 1}),
        ({"DB_TOKEN": "hunter22", "n": 1}, {"DB_TOKEN": "[secret]", "n": 1}, {"secret": 1}),
        ({"jo@example.org": 1}, {"[mail]": 1}, {"mail": 1}),
        ({"arguments": json.dumps({"api_key": "hunter22"})}, {"arguments": '{"api_key": "[secret]"}'}, {"secret": 1}),
        ({"text": 'say \\"PASSWORD=hun\\"'}, {"text": 'say \\"PASSWORD=hun\\"'}, {}),
        ("jo@example.org", "[mail]", {"mail": 1}),
        ([1, None, True, {"token": 123456}], [1, None, True, {"token": 123456}], {}),
    ],
)
def test_json_is_masked_value_by_value_and_stays_json(value: Any, becomes: Any, counts: dict[str, int]) -> None:
    assert masked(value) == (becomes, counts)


def test_an_escape_hides_nothing() -> None:
    assert Redactor(pseudonyms=False).text('{"a": "jo\\u0040example.org"}') == '{"a": "[mail]"}'


def test_json_without_a_secret_comes_back_as_it_was() -> None:
    text = '{ "b" : 1.50,\n "a":"\\u00e9" }'
    assert Redactor().text(text) == text


def test_a_name_that_stands_twice_hides_nothing() -> None:
    assert "example.org" not in Redactor().text('{"a": "jo@example.org", "a": "x"}')


def test_lines_are_masked_one_by_one_whatever_stands_between_them() -> None:
    text = '{"password": "hunter22"}\nPASSWORD=hunter22\n{"a": "\u2028"}\n\n{"cut": "jo@example.org'
    redactor = Redactor(pseudonyms=False)
    assert redactor.lines(text) == '{"password": "[secret]"}\nPASSWORD=[secret]\n{"a": "\u2028"}\n\n{"cut": "[mail]'
    assert redactor.counts == {"secret": 2, "mail": 1}


def test_a_document_over_many_lines_is_masked_as_one() -> None:
    assert json.loads(Redactor().lines(json.dumps({"password": "hunter22"}, indent=1))) == {"password": "[secret]"}


def test_what_occurs_often_is_counted_as_often() -> None:
    redactor = Redactor()
    redactor.text("jo@example.org al@example.org", 3)
    assert redactor.counts == {"mail": 6}


@pytest.mark.parametrize("text", ["[" * 60_000, '{"a":' * 20_000, '"' + "\\" * 59_999, '["-Users-' + "-Users-" * 8000])
def test_hostile_json_takes_no_time(text: str) -> None:
    started = time.process_time()
    Redactor().text(text)
    assert time.process_time() - started < 3


def test_a_redactor_keeps_every_secret_it_masked() -> None:
    redactor = Redactor()
    redactor.text(json.dumps({"password": "hunter22", "note": "DB_PASSWORD=hunter33"}))
    redactor.plain("https://jo:hunter44@x.example.org/p")
    redactor.plain("export PGPASSWORD=hunter55; psql postgres://svc:Qw7rTz91@db/x; mail jo.doe@example.org")
    logins = {"hunter44": "login", "Qw7rTz91": "login"}
    assert redactor.secrets == dict.fromkeys(("hunter22", "hunter33", "hunter55"), "secret") | logins


# -- secrets that were found once --------------------------------------------------------------------------------------


PASSWORDS = ("Jd6pF4gM0uZx", "kT4w-9pQ", "Walnut-tram-47-Reef", "winter123", "q7!vb%2zr", "Zq\"8<x'&4Lw", "TIGER4711",
             "pa55/word+XY", "hunter2hunter2", "Ünder9Bäume")  # fmt: skip
BARE: dict[str, Callable[[str], str]] = {
    "prose": lambda value: f"authentication failed for svc with {value}.",
    "path": lambda value: f"/srv/backups/{value}/dump.sql",
    "branch": lambda value: f"fix/login-{value}",
    "option": lambda value: f"mysql --defaults '{value}' prod",
    "lower case": lambda value: f"id of-{value.lower()}-1",
    "json": lambda value: json.dumps({"said": f"try {value} now"}),
    "json in json": lambda value: json.dumps({"arguments": json.dumps({"x": value})}),
    "url": lambda value: f"https://x.test/?q={quote(value, safe='')}&n=1",
    "html": lambda value: f"<b>{html.escape(value)}</b>",
    "hex": lambda value: f"dump {value.encode().hex()} end",
    "base64": lambda value: f"dump {b64encode(value.encode()).decode()} end",
    "base64 of more": lambda value: f"{b64encode(f'svc {value} and some more text behind it'.encode()).decode()}",
    "base64, shifted": lambda value: f"{b64encode(f'to {value}'.encode()).decode()}",
}


@each_row("where", BARE)
@each_row("value", PASSWORDS)
def test_a_known_secret_is_masked_in_every_place_and_spelling(value: str, where: str) -> None:
    text = BARE[where](value)
    for masked in (Redactor(known=KnownSecrets([value])).text(text), Guard(knowing(value)).without_known(text)):
        assert "[secret]" in masked, masked
        for form in (value, quote(value, safe=""), value.encode().hex(), b64encode(value.encode()).decode()[:-4]):
            assert form.lower() not in masked.lower()


def knowing(value: str) -> Redactor:
    redactor = Redactor()
    redactor.secrets[value] = "secret"
    return redactor


@pytest.mark.parametrize("value", ["postgres", "changeme", "password123", "admin", "Postgres1!", "12345678", "hunter2",
                                   "app-db-v12", "550e8400-e29b-41d4-a716-446655440000", "/home/x/secret1.txt",
                                   "2026-04-01T10:00:00Z", "${DB_PASSWORD1}", "[secret] or 1a"])  # fmt: skip
def test_ordinary_words_and_public_identifiers_stay(value: str) -> None:
    assert not is_searched(value)
    assert redacted(f"it says {value} here", KnownSecrets([value])) == redacted(f"it says {value} here")


@pytest.mark.parametrize(("value", "text"), [
    ("winter123", "thewinter1234 and xwinter123x"), ("a1b2c3d4", "commit 9fa1b2c3d4e5"),
])  # fmt: skip
def test_a_value_that_words_or_hashes_may_hold_is_masked_as_a_whole_word_only(value: str, text: str) -> None:
    known = KnownSecrets([value])
    assert redacted(text, known) == text and "[secret]" in redacted(f"says '{value}'", known)


def base64(data: bytes) -> str:
    return b64encode(data).decode()


def base32(data: bytes) -> str:
    return b32encode(data).decode()


@pytest.mark.parametrize("encode", [bytes.decode, bytes.hex, base64, base32])
@pytest.mark.parametrize("key", ["ghp_" + "a1B2" * 9, "AKIAABCDEFGHIJKLMNOP"])
def test_a_guard_finds_keys_in_every_encoding(key: str, encode: Callable[[bytes], str]) -> None:
    assert Guard().kind(f"it says {encode(f'item {key} here'.encode())} there") == "key"


def test_what_one_text_gives_away_is_masked_in_another() -> None:
    redactor = Redactor()
    redactor.text("DB_PASSWORD=Jd6pF4gM0uZx")
    guard = Guard(redactor)
    assert guard.kind("with Jd6pF4gM0uZx") == "secret that was masked elsewhere"
    assert guard.without_known("with Jd6pF4gM0uZx in it") == "with [secret] in it"
    assert guard.kind("with nothing") is guard.kind("with Jd6pF4gM0uZy, which is another") is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("it is a8Kd03mQx92LpVt7Rw4Zc1", True),
        ("sha512-a8Kd03mQx92LpVt7Rw4Zc1==", False),
        ("sha256:a8Kd03mQx92LpVt7Rw4Zc1", False),
        ("h1:a8Kd03mQx92LpVt7Rw4Zc1", False),
        ("0b9f3c52-41aa-4c1e-9d2e-7a1f00c0ffee", False),
        ("3f2c1aa9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3", False),
        ("toolu_a8Kd03mQx92LpVt7Rw4Zc1", False),
    ],
)
def test_random_values_that_nobody_named_are_found_and_public_ones_are_not(text: str, found: bool) -> None:
    assert bool(RandomValues(["toolu_a8Kd03mQx92LpVt7Rw4Zc1"]).spans(text)) is found


def test_the_search_costs_the_same_for_one_and_two_thousand_secrets() -> None:
    draw = random.Random(5)  # noqa: S311  (draws, no secret)
    texts = [" ".join(f"line {n} of src/app_{n}.py said: expected 'value' here" for n in range(40))] * 200

    def seconds(n: int) -> float:
        known = KnownSecrets("".join(draw.choices(string.ascii_letters + string.digits, k=14)) for _ in range(n))
        known.spans("ready 123456")
        begun = time.process_time()
        assert not any(known.spans(text) for text in texts)
        return time.process_time() - begun

    one = min(seconds(1) for _ in range(3))
    assert min(seconds(2000) for _ in range(3)) < 4 * one + 0.05


def test_a_sign_without_a_name_is_no_option() -> None:
    assert redacted("curl -u bob:Secret99x -=x https://x.io") == "curl -u [login] -=x https://x.io"


def test_an_empty_value_is_not_public() -> None:
    assert not is_public_at("version 1.5", 8, 8)
