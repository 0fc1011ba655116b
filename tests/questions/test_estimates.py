"""Intervals that draw whole places anew: against every possible draw, simulation, and places that are all alike."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from agentsignals.questions.estimates import (
    clustered_share,
    count,
    median_interval,
    ruled,
    share_of_kinds,
    table,
    top_sessions,
)
from agentsignals.stats.intervals import clustered, share_interval, wilson

SIX = [("a", 1, 2), ("b", 3, 4), ("c", 0, 4), ("d", 2, 2), ("e", 1, 3), ("f", 1, 1)]


def test_the_order_of_the_parts_and_how_a_place_is_cut_up_change_nothing() -> None:
    cut = [("e", 0, 2), *reversed(SIX[:4]), ("e", 1, 1), SIX[5]]
    assert clustered(cut) == clustered(SIX)


@pytest.mark.parametrize("n_places", [0, 1, 3, 7, 30])
@pytest.mark.parametrize("n_sessions", [0, 1, 5, 8, 200])
def test_a_share_of_kinds_is_that_of_the_sessions(n_sessions: int, n_places: int) -> None:
    drawn = random.Random(n_places)  # noqa: S311  (made-up data, the same every time)
    ns = [drawn.randrange(1, 4) for _ in range(n_sessions)]
    parts = [(f"s{at}", drawn.randrange(n + 1), n) for at, n in enumerate(ns)]
    places = {name: f"p{drawn.randrange(n_places)}" for name, _, _ in parts if n_places and drawn.random() < 0.8}
    of_sessions = clustered_share(parts, places)
    of_kinds = share_of_kinds(Counter((places.get(name), k, n) for name, k, n in parts))
    alike = ("value", "k", "n", "interval", "note", "places", "known_places")
    assert [getattr(of_kinds, name) for name in alike] == [getattr(of_sessions, name) for name in alike]


def test_the_largest_parts_of_a_total_come_first_however_small() -> None:
    parts = [("f", 0.1), ("e", 0.1), ("a", 0.2), ("c", 3.0), ("b", 0.5), ("d", 0.3), ("a", 0.5), ("none", 0.0)]
    assert top_sessions(parts) == ("c", "a", "b", "d", "e")
    assert top_sessions([("a", 0.0)]) == top_sessions([]) == ()


def test_what_is_left_of_a_share_has_the_mirrored_interval() -> None:
    low, high = clustered(SIX).interval or (0, 0)
    left = clustered([(name, n - k, n) for name, k, n in SIX]).interval or (0, 0)
    assert left == (pytest.approx(1 - high), pytest.approx(1 - low))


def test_places_are_counted_weighed_and_the_largest_told() -> None:
    found = clustered([("a", 1, 6), ("b", 0, 2), ("c", 0, 0), ("a", 0, 2)])
    assert (found.clusters, found.largest, found.interval) == (2, 0.8, None)
    assert found.effective == pytest.approx(100 / 68)
    assert clustered([]) == (None, 0, 0.0, 0.0)


def test_five_places_are_too_few() -> None:
    assert clustered(SIX[:5]).interval is None
    assert clustered([*SIX[:5], ("f", 0, 0)]).interval is None


def test_a_share_that_no_draw_can_move_has_wilsons_interval_for_the_places() -> None:
    assert clustered([(n, 0, 10) for n in range(10)]).interval == wilson(0, 10)
    assert clustered([(n, 10, 10) for n in range(10)]).interval == wilson(10, 10)
    assert clustered([(n, 5, 10) for n in range(10)]).interval == wilson(5, 10)


def test_messages_of_one_place_that_are_alike_count_as_one() -> None:
    """All or nothing in each of 40 places of 10 messages: 40 observations, not 400."""
    low, high = clustered([(n, 10 * (n % 2), 10) for n in range(40)]).interval or (0, 0)
    right, naive = wilson(20, 40) or (0, 0), wilson(200, 400) or (0, 0)
    assert high - low == pytest.approx(right[1] - right[0], rel=0.1)
    assert high - low > 2.5 * (naive[1] - naive[0])


@pytest.mark.parametrize("places", [6, 8, 12, 20, 50])
@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_the_interval_holds_the_share_in_about_95_of_100_samples(places: int, spread: float) -> None:
    """Places of one size, and of very different ones; the whole table is made by benchmarks/coverage.py."""
    chance = random.Random(5)  # noqa: S311  (draws, no secret)
    held, samples = 0, 300
    for _ in range(samples):
        parts = []
        for place in range(places):
            own_share = chance.betavariate(2, 6)  # a quarter on average
            n = max(1, round(math.exp(chance.gauss(2.3, spread))))
            parts.append((place, sum(chance.random() < own_share for _ in range(n)), n))
        low, high = clustered(parts).interval or (0, 1)
        held += low <= 0.25 <= high
    assert held >= 0.925 * samples, held


def test_a_large_place_leaves_few_that_count() -> None:
    even = clustered([(n, n % 3, 4) for n in range(12)])
    uneven = clustered([(n, n % 3 * (30 if n == 4 else 1), 4 * (30 if n == 4 else 1)) for n in range(12)])
    (low, high), (less, more) = even.interval or (0, 0), uneven.interval or (0, 0)
    assert uneven.effective < 2 < even.effective and more - less > high - low


# -- places, and sessions where these are too few ----------------------------------------------------------------------


def sessions(n: int) -> list[tuple[str, int, int]]:
    return [(f"s{i}", i % 3, 4) for i in range(n)]


def test_sessions_of_one_place_are_drawn_together() -> None:
    parts = sessions(24)
    places = {s: f"p{i // 3}" for i, (s, _, _) in enumerate(parts)}
    found = clustered_share(parts, places)
    assert (found.value, found.n, found.known_places) == (0.25, 96, 8)
    assert found.interval == clustered([(places[s], k, n) for s, k, n in parts]).interval
    assert found.note == "interval over 8 projects, because sessions of one project are alike"
    assert not found.dominated


def test_of_few_places_sessions_are_drawn_and_the_note_says_so() -> None:
    parts = sessions(12)
    found = clustered_share(parts, {s: "p0" if i < 8 else "p1" for i, (s, _, _) in enumerate(parts)})
    assert found.interval == clustered(parts).interval
    assert found.note == (
        "from only 2 projects, so others may differ; the interval treats sessions as independent and may be too"
        " narrow; one project makes up 58% of this figure"
    )
    assert found.dominated


def test_sessions_whose_place_is_unknown_are_places_of_their_own() -> None:
    parts = sessions(12)
    found = clustered_share(parts, {})
    assert found.interval is not None and found.places.clusters == 12
    assert (found.known_places, found.dominated) == (0, False)


def test_half_of_the_messages_is_no_dominance() -> None:
    assert not clustered_share([("a", 0, 1), ("b", 0, 1)], {"a": "p", "b": "q"}).dominated


def test_a_long_session_whose_place_nobody_knows_is_no_place_that_dominates() -> None:
    assert not clustered_share([("a", 0, 9), ("b", 0, 1)], {}).dominated
    assert clustered_share([("a", 0, 9), ("b", 0, 1)], {"a": "p"}).dominated


def test_of_few_sessions_the_interval_is_the_sessions_and_of_nothing_there_is_none() -> None:
    few = clustered_share([("a", 1, 1), ("b", 0, 1)], {})
    assert few.interval == share_interval([(1, 1), (0, 1)]) and few.note == "this figure is from fewer than 6 sessions"
    assert clustered_share([("a", 1, 3)], {}).interval is None
    nothing = clustered_share([("a", 0, 0)], {"a": "p"})
    assert (nothing.value, nothing.n, nothing.interval, nothing.note) == (None, 0, None, "")


def test_a_finding_carries_all_of_it() -> None:
    found = clustered_share(sessions(12), {}).finding("x", "X", "messages", "3 left out", unit="share", command="c")
    assert (found.value, found.n, found.kind, found.of) == (0.25, 48, "share", "messages")
    assert found.note == "3 left out; interval over 12 projects, because sessions of one project are alike"


def test_a_median_lies_between_the_values_at_the_ends_of_the_share_below_it() -> None:
    chance = random.Random(2)  # noqa: S311  (draws, no secret)
    values = [(f"s{chance.randrange(20)}", float(i)) for i in range(200)]
    low, high = median_interval(values, {})[0] or (0, 0)
    assert low < 99.5 < high and high - low < 60
    apart = [(f"s{i // 10}", float(i)) for i in range(200)]  # each session has values of its own size
    wide = median_interval(apart, {})[0] or (0, 0)
    assert wide[1] - wide[0] > 2 * (high - low)
    assert median_interval([], {}) == (None, "")
    assert median_interval([("s", 1.0)], {}) == (None, "this figure is from fewer than 6 sessions")


def test_a_median_that_most_messages_share_is_held_by_its_interval() -> None:
    low, high = median_interval([(f"s{i}", 7.0) for i in range(30)], {})[0] or (0, 0)
    assert (low, high) == (7.0, 7.0)
    mixed = [1.0] * 50 + [7.0] * 150 + [9.0] * 100
    assert median_interval([(f"s{i}", v) for i, v in enumerate(mixed)], {})[0] == (7.0, 7.0)


# -- totals that few sessions rule -------------------------------------------------------------------------------------

EVEN = {f"s{n}": 2.0 for n in range(32)}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, None),
        (EVEN, None),
        ({**EVEN, "big": 64.0}, None),
        ({**EVEN, "big": 65.0}, (1, 65.0, 2.0, 33)),
        ({**EVEN, "none": 0.0, "big": 65.0}, (1, 65.0, 2.0, 33)),
        ({**{f"s{n}": 1.0 for n in range(198)}, "a": 120.0, "b": 90.0}, (2, 210.0, 1.0, 200)),
        ({**{f"s{n}": 1.0 for n in range(197)}, "a": 190.0, "b": 5.0}, None),
        ({"only": 3.0}, (1, 3.0, 3.0, 1)),
    ],
)
def test_a_total_is_ruled_where_its_largest_hundredth_makes_more_than_half(
    parts: dict[str, float], expected: tuple[float, ...] | None
) -> None:
    found = ruled(parts.items())
    assert (found and (found.few, found.part, found.middle, found.sessions)) == expected


def test_parts_of_one_session_are_summed_before_they_are_looked_at() -> None:
    found = ruled([*[("big", 1.0)] * 40, *EVEN.items()])
    assert found is None
    found = ruled([*[("big", 1.0)] * 70, *EVEN.items()])
    assert found is not None and found.sentence(lambda usd: f"${usd:.0f}") == (
        "One session accounts for $70 (52.2% of the total). The median session accounts for $2."
    )


def test_a_figure_of_a_report_says_who_rules_it() -> None:
    evidence = [(session_id, k, 1) for session_id, k in {**EVEN, "big": 80.0}.items()]
    made = count(144.0, 33, "usd", evidence=evidence).finding("x", "X", "sessions", "a note")
    assert made.note == (
        "One session accounts for $80.00 (55.6% of the total). The median session accounts for $2.00. A note."
    )
    share = clustered_share([(s, k, 100) for s, k, _ in evidence], {}).finding("y", "Y", "calls")
    assert share.note.startswith("One session accounts for 80 (55.6% of the total). The median session accounts for 2.")
    assert "accounts for" not in count(33, 33, evidence=evidence).finding("z", "Z", "sessions").note
    assert "accounts for" not in count(60.0, 32, "usd", evidence=evidence[:30]).finding("v", "V", "sessions").note


def test_rows_of_a_table_that_few_sessions_rule_are_named() -> None:
    behind = [[(s, k, 1) for s, k in {**EVEN, "big": big}.items()] for big in (80.0, 3.0, 640.0)]
    rows = [[name, sum(k for _, k, _ in parts), 33] for name, parts in zip("abc", behind, strict=True)]
    made = table("t", rows, n=33, evidence=behind, header="cause | usd:usd | sessions:count", title="T", of="sessions")
    assert made.note == (
        "One session (or the largest 1%) makes up most of: c (90.9%; median session $2.00),"
        " a (55.6%; median session $2.00)."
    )
