"""Lengths of text, and times as they are written."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsignals.model import EPOCH, from_iso, to_iso
from agentsignals.words.text import count_tokens

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
