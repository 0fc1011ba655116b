"""A secret that was found once is masked wherever it stands bare, in any spelling; ordinary words stay."""

from __future__ import annotations

import html
import json
import random
import string
import time
from base64 import b64encode
from collections.abc import Callable
from urllib.parse import quote

import pytest

from agentsignals.redaction import Guard, Redactor, redacted
from agentsignals.redaction.known import KnownSecrets, is_searched

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


@pytest.mark.parametrize("where", BARE)
@pytest.mark.parametrize("value", PASSWORDS)
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


def test_what_one_text_gives_away_is_masked_in_another() -> None:
    redactor = Redactor()
    redactor.text("DB_PASSWORD=Jd6pF4gM0uZx")
    guard = Guard(redactor)
    assert guard.kind("with Jd6pF4gM0uZx") == "secret that was masked elsewhere"
    assert guard.without_known("with Jd6pF4gM0uZx in it") == "with [secret] in it"
    assert guard.kind("with nothing") is None


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
