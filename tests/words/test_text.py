"""Lengths of text, and times as they are written."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsignals.model import EPOCH, from_iso, to_iso
from agentsignals.words.text import count_tokens, language_of
from tests.quick import each_row

MIXED = st.text(st.one_of(st.characters(max_codepoint=127), st.sampled_from("a_1. \n\u00e9\u4f60")))


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("", 0),
        (" \n", 0),
        ("fix it", 2),
        ("a.b", 3),
        ("don't", 3),
        ("...", 3),
        ("_x1 -", 2),
        ("caf\u00e9!", 2),
        ("a\x1cb", 2),
    ],
)
def test_a_token_is_a_run_of_word_characters_or_one_mark(text: str, n: int) -> None:
    assert count_tokens(text) == n


@given(MIXED)
def test_tokens_are_counted_as_the_pattern_of_the_catalogue_finds_them(text: str) -> None:
    assert count_tokens(text) == len(re.findall(r"\w+|[^\w\s]", text))


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_time_is_written_as_datetime_writes_it_in_milliseconds(moment: datetime) -> None:
    at = (moment - EPOCH) // timedelta(microseconds=1)
    assert to_iso(at) == moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert from_iso(to_iso(at)) == at // 1000 * 1000


def test_no_time_is_none() -> None:
    assert to_iso(None) is None and from_iso(None) is None and from_iso("yesterday") is None


# Languages of short texts about code: by script and small words; nothing where too little speaks for one.


@each_row(
    ("language", "text"),
    [
        ("en", "can you fix the failing test in the parser?"),
        ("en", "please create a new branch and open a PR"),
        ("en", "lint lint lint lint lint lint lint lint as do no"),
        ("en", "don't parse, it's lint"),
        ("de", "Kannst du bitte die Tests in dem Modul noch einmal laufen lassen?"),
        ("de", "fix den Test, aber ändere nicht die API"),
        ("fr", "Est-ce que tu peux corriger le test qui échoue dans le parser ?"),
        ("es", "Puedes arreglar el test que falla en el módulo de pagos, por favor"),
        ("pt", "Você pode corrigir o teste que não passa no módulo?"),
        ("it", "Puoi correggere il test che non passa nel modulo?"),
        ("nl", "Kun je de test in het bestand nog een keer draaien?"),
        ("sv", "Kan du köra testerna igen och se om det är samma fel?"),
        ("pl", "Czy możesz poprawić ten test, który nie działa?"),
        ("tr", "Bu test için bir hata var, lütfen daha iyi olsun"),
        ("ja", "このテストを修正してください"),
        ("ja", "src/parser.py のテストを直して、commit して"),
        ("ja", "設定画面の表示不具合を修正"),
        ("ja", "TestCheckAndNotifySkips を修正してください"),
        ("zh", "请修复这个测试,然后提交"),
        ("ko", "이 테스트를 고쳐 주세요"),
        ("ru", "исправь, пожалуйста, этот тест"),
        ("uk", "виправ, будь ласка, цей тест і запусти його ще раз"),
        ("el", "διόρθωσε αυτό το τεστ"),
        ("ar", "أصلح هذا الاختبار من فضلك"),
        ("fa", "لطفا این تست را درست کن و چیز دیگری را تغییر نده"),
        ("he", "תקן את הבדיקה הזאת"),
        ("th", "แก้ไขการทดสอบนี้"),
        ("hi", "इस परीक्षण को ठीक करो"),
    ],
)
def test_a_prompt_has_the_language_it_is_written_in(language: str, text: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "     ",
        "12345 67890",
        "go test ./... failing",
        "TestCheckAndNotify_SkipsHiddenCommand",
        "lint + typecheck",
        "the the the lint parse",
        "naïve café",
        "✅ 🚀 — …",
    ],
)
def test_too_little_text_has_no_language(text: str) -> None:
    assert language_of(text) is None


def test_a_foreign_word_makes_no_foreign_prompt() -> None:
    assert language_of("can you add the label 保存 to the button of the form?") == "en"
    assert language_of("what does the word привет mean in the test?") == "en"


def test_a_long_text_costs_no_more_than_its_beginning() -> None:
    assert language_of("please fix the test. " * 100 + "あ" * 60_000) == "en"
