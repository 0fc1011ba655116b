"""Patterns that are compiled when they are first used."""

from __future__ import annotations

import re

import pytest

from agentsignals.model.lazy import deferred_pattern


def test_it_finds_what_a_pattern_finds() -> None:
    asked, plain = deferred_pattern(r"(?P<word>[a-z]+)\d", re.I), re.compile(r"(?P<word>[a-z]+)\d", re.I)
    for text in ("Ab1 cd2", "", "1"):
        assert asked.findall(text) == plain.findall(text)
        assert asked.sub("-", text) == plain.sub("-", text)
    found = asked.search("-Ab1")
    assert found is not None and found["word"] == "Ab"
    assert (asked.pattern, asked.flags, asked.groups) == (plain.pattern, plain.flags, plain.groups)


def test_it_is_compiled_when_first_used() -> None:
    broken = deferred_pattern("(")
    with pytest.raises(re.error):
        broken.search("")


def test_what_no_pattern_has_it_has_not() -> None:
    with pytest.raises(AttributeError):
        deferred_pattern("a").seek  # type: ignore[attr-defined]  # noqa: B018
