"""Ranges of lines in blocks, against a plain list of them."""

from __future__ import annotations

import random

import pytest

from agentsignals.changes.regions import BLOCK, Range, Ranges


def _listed(ranges: Ranges[Range]) -> list[tuple[int, int]]:
    return sorted((r.start, r.end) for r in ranges)


@pytest.mark.parametrize("seed", range(4))
def test_they_are_what_a_plain_list_of_them_would_be(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  (the same every time)
    ranges, plain = Ranges[Range](), list[tuple[int, int]]()
    for _ in range(6 * BLOCK):
        first = chance.randrange(20_000)
        last = first + chance.randrange(-1, 5)
        what = chance.random()
        if what < 0.7:
            ranges.add(Range(first, last))
            plain.append((first, last))
        elif what < 0.85:
            by = chance.randrange(-9, 10)
            ranges.move(first, by)
            plain = [(a + by, b + by) if a >= first else (a, b) for a, b in plain]
        else:
            taken = sorted((r.start, r.end) for r in ranges.take(first, last))
            assert taken == sorted((a, b) for a, b in plain if b >= first and a <= last)
            plain = [(a, b) for a, b in plain if b < first or a > last]
    assert len(plain) > 2 * BLOCK, "several blocks"
    assert _listed(ranges) == sorted(plain)
    assert _listed(ranges) == sorted(plain), "looking changes nothing"
    everything = ranges.take(-10_000, 40_000)
    assert len(everything) == len(plain)
    assert _listed(ranges) == []
