"""What is masked before a text leaves, and what is left alone."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from agentsignals.redaction import Redactor, redacted
from agentsignals.redaction.spans import without_pseudonyms


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("use AKIAABCDEFGHIJKLMNOP now", "use [key] now"),
        ("ghp_" + "a1" * 18, "[key]"),
        ("github_pat_" + "a1" * 18, "[key]"),
        ("sk-ant-api03-" + "x" * 30, "[key]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc_def-123", "[key]"),
        ("postgres://bob:hunter22@db/x", "postgres://[login]@db/x"),
        ("PASSWORD=hunter22 next", "PASSWORD=[secret] next"),
        ('"api_key": "abcdef123"', '"api_key": "[secret]"'),
        ("Authorization: Bearer abcdef123", "Authorization: Bearer [secret]"),
        ("ask jo.doe+x@mail.example.org.", "ask [mail]."),
        ("/Users/jo/src/a.py and /home/al/x", "/Users/[user]/src/a.py and /home/[user]/x"),
        (r"C:\Users\jo\x", r"C:\Users\[user]\x"),
        ("/x/projects/-home-jo-src/a.jsonl", "/x/projects/-home-[user]-src/a.jsonl"),
        ("-Users-jo-src", "-Users-[user]-src"),
        ("C--Users-jo-src", "C--Users-[user]-src"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nrest", "[private key]\nrest"),
        ("-----BEGIN PRIVATE KEY-----\ncut", "[private key]"),
    ],
)
def test_secrets_are_masked(text: str, masked: str) -> None:
    assert redacted(text) == masked
    assert redacted(masked) == masked


@pytest.mark.parametrize(
    "text",
    [
        "reset the password form",
        "count the tokens: 12",
        "see https://example.org/a:b",
        "@decorator def f()",
        "task-driven sk-ip",
        "user@host",
        "the all-Users-see-this page",
    ],
)
def test_prose_is_left_alone(text: str) -> None:
    assert redacted(text) == text


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


@pytest.mark.parametrize(
    "code",
    [
        "+         artifact_key = excluded.artifact_key,\n+      input.id,\n+      input.lockfileSha256,\n",
        "+  throw new Failed('GITHUB_PRIVATE_KEY is no PEM');\n+  importKey(\n+    'pkcs8',\n+    privateKeyDer,\n",
        "  equal(state.messages[0]?.openrouterApiKey, 'or_user_token_123');\n  equal(state.createdId, 'acct_123');\n",
        "  pwdhash = hashlib.pbkdf2_hmac(\n      'sha256',\n      password,\n",
    ],
)
def test_indented_code_under_a_name_is_no_column_of_secrets(code: str) -> None:
    assert Redactor().plain(code) == code


@pytest.mark.parametrize(
    "table",
    [
        "user,password\nbob,Falcon!8berg\n",
        "a,api_key\nuser,password\nbob,Falcon!8berg\n",
        "user  password\n----  --------\nbob   Falcon!8berg\n",
        "user      PASSWORD\nbob   Falcon!8berg\n",
        "| user | password |\n|---|---|\n| bob | Falcon!8berg |\n",
    ],
)
def test_cells_under_the_name_of_a_secret_are_masked(table: str) -> None:
    assert Redactor().plain(table) == table.replace("Falcon!8berg", "[secret]")


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
