"""The words that are looked for before a pattern is: none that matches may be passed over."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentsignals.formats import profiles
from agentsignals.formats.outcome import COMMAND_SAYS, TOOL_SAYS, Pattern, words_of

PATTERNS = [
    *TOOL_SAYS.values(),
    *COMMAND_SAYS.values(),
    *(pattern for profile in profiles() for _, patterns in profile.failures for pattern in patterns),
]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("timed out", ["timed out"]),
        ("timed out|deadline", ["deadline", "timed out"]),
        ("files? are", ["file"]),
        (r"\bno such (?:file|tool)\b", ["no such "]),
        (r"\d+ (?:failed|failing)", ["failed", "failing"]),
        ("(?:old_)?string", ["string"]),
        ("(?:ab|cd)+", ["ab", "cd"]),
        ("edits{0,3} done", [" done"]),
        (r"\[rejected\]", ["[rejected]"]),
        (r"[\[\]x]{2}y\.z", ["y.z"]),
        ('{"status":', ['{"status":']),
        ("a(?=bcd)", ["a"]),
        ("error|errors found", ["error"]),
        (r"error|\d+", []),
        ("x*", []),
        ("", []),
    ],
)
def test_a_match_holds_one_of_these_words(pattern: str, words: list[str]) -> None:
    assert sorted(words_of(pattern)) == words


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_of_an_error_names_its_words(pattern: str) -> None:
    assert all(len(word) >= 3 for word in words_of(pattern)) and words_of(pattern)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(PATTERNS).flatmap(
        lambda p: st.tuples(st.just(p), st.from_regex(p, alphabet=st.characters(max_codepoint=127)))
    )
)
def test_what_a_pattern_matches_is_found_by_its_words(case: tuple[str, str]) -> None:
    pattern, text = case
    assert Pattern(pattern, re.MULTILINE).is_in(text)
