"""Counting embedders: what is alike to them, and what is not."""

from __future__ import annotations

import time

import pytest

from agentsignals.errors import UsageError
from agentsignals.words import vectors as lexical
from agentsignals.words.vectors import Chars, Dense, Profile, Words, counting_vectors, parsed, split_words

EMBEDDERS = pytest.mark.parametrize("embedder", [Words(), Chars()], ids=lambda e: e.id)


def near(embedder: Words | Chars, one: str, other: str) -> float | None:
    a, b = embedder.embed([one, other])
    return a.cosine(b)


@EMBEDDERS
def test_the_same_words_are_one_and_none_in_common_zero(embedder: Words | Chars) -> None:
    assert near(embedder, "retry the download", "Retry the DOWNLOAD!") == pytest.approx(1)
    assert near(embedder, "retry download", "quick brown fox") == 0


@EMBEDDERS
def test_a_text_without_words_compares_to_nothing(embedder: Words | Chars) -> None:
    assert near(embedder, "…", "retry the download") is None
    assert near(embedder, "retry", "") is None


@EMBEDDERS
def test_either_order_gives_the_same(embedder: Words | Chars) -> None:
    one, other = "retry the download of the archive", "the archive is downloaded again"
    assert near(embedder, one, other) == near(embedder, other, one)


@EMBEDDERS
def test_parts_add_up_to_the_whole(embedder: Words | Chars) -> None:
    vectors = counting_vectors(embedder.id.partition("-")[0])
    whole, question = vectors.of(["fix the parser bug\nand the lexer bug", "parser bug"])
    (joined,) = vectors.of_joined([("fix the parser bug", "and the lexer bug")])
    # Only the one run of characters across the seam is missing from the parts.
    assert joined.cosine(question) == pytest.approx(whole.cosine(question), abs=0.02)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("getUserName", ["get", "user", "name"]),
        ("get_user_name", ["get", "user", "name"]),
        ("src/user-name.py", ["src", "user", "name", "py"]),
        ("HTTPServer2 is up", ["httpserver2", "is", "up"]),
        ("fixed — it’s done…", ["fixed", "it", "s", "done"]),
        ("Größe prüfen", ["größe", "prüfen"]),
        ("fooÜber caféBar", ["fooüber", "cafébar"]),
        ("broken \ud800half", ["broken", "half"]),
        ("a\u3000b\u00a0c\u0085d", ["a", "b", "c", "d"]),
        ("", []),
    ],
)
def test_identifiers_fall_apart_into_words(text: str, words: list[str]) -> None:
    assert split_words(text) == words


def test_a_word_is_the_same_word_however_often_it_was_met_before() -> None:
    text = "parseConfig parseconfig ParseConfig 東京都 x 42"
    first, again = (dict(Words().embed([text])[0].counts) for _ in range(2))
    assert first == again == {"parse": 2, "config": 2, "parsec": 1, "東京": 1, "京都": 1, "42": 1}


def test_words_are_remembered_within_bounds() -> None:
    many = " ".join(f"w{n}" for n in range(lexical.MOST_KNOWN + 10))
    keys = " ".join(f"{n:064x}" for n in range(100))
    known = lexical._stem_of.__self__
    known.clear()
    Words().embed([keys])
    assert not known, "long runs of letters are keys and digests, which do not come again"
    (vector,) = Words().embed([many])
    assert 0 < len(known) <= lexical.MOST_KNOWN
    assert len(vector.counts) == lexical.MOST_KNOWN + 10


def test_forms_of_a_word_are_one_and_small_words_say_nothing() -> None:
    assert near(Words(), "committing the changes", "commit changed") == pytest.approx(1)
    assert near(Words(), "please can you do that for me", "commit this") is None


def test_chinese_and_thai_are_compared_by_pairs_of_characters() -> None:
    assert 0 < near(Words(), "请修复下载错误", "下载错误已修复") < 1
    assert near(Words(), "请修复下载错误", "翻译发票模板") == 0
    assert near(Words(), "แก้ไขไฟล์", "แก้ไขไฟล์แล้ว") > 0.5


def test_a_lone_surrogate_is_no_reason_to_fail() -> None:
    assert near(Words(), "retry \ud800 download", "retry download") is not None
    assert near(Chars(), "retry \ud800 download", "retry download") is not None


@EMBEDDERS
@pytest.mark.parametrize(
    "text", ["a" * 60_000, "aB" * 30_000, "下" * 60_000, "a " * 30_000, "—" * 60_000, "\x00" * 60_000]
)
def test_sixty_thousand_odd_characters_take_no_time(embedder: Words | Chars, text: str) -> None:
    started = time.process_time()
    embedder.embed([text])
    assert time.process_time() - started < 1


def test_dense_vectors_are_of_length_one() -> None:
    one, other = Dense.of([3.0, 4.0]), Dense.of([4.0, 3.0])
    assert list(one.values) == pytest.approx([0.6, 0.8])
    assert one.cosine(other) == pytest.approx(0.96)
    assert one.cosine(Dense.of([0.0, 0.0])) is None
    with pytest.raises(ValueError, match="dimensions"):
        one.cosine(Dense.of([1.0]))
    with pytest.raises(ValueError, match="finite"):
        Dense.of([float("nan"), 1.0])


def test_a_profile_stretches_distances_to_its_own_scale() -> None:
    profile = Profile(0.5, 0.9)
    assert [round(profile.pollution(d), 2) for d in (0.3, 0.5, 0.7, 0.9, 1.0)] == [0, 0, 0.5, 1, 1]
    assert Profile().pollution(0.3) == 0.3


@pytest.mark.parametrize("spec", ["nonsense", "words:x", "none:x", "openai", "sentence-transformers", ""])
def test_what_is_no_embedder_is_wrong_usage(spec: str) -> None:
    with pytest.raises(UsageError):
        parsed(spec)


def test_a_model_name_may_hold_colons() -> None:
    assert parsed("openai:bge:large@http://127.0.0.1:8080/v1") == ("openai", "bge:large@http://127.0.0.1:8080/v1")
