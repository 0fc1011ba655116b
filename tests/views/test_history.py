"""What came before and after a session, whatever the order in which the sessions are told."""

from __future__ import annotations

import random
from typing import Any

import pytest

from agentsignals.views.history import SessionSummary, histories, place_of, similarity, user_of
from agentsignals.words.lexicon import words

MINUTE = 60_000_000


def outline(name: str, start: int | None, end: int | None, place: str | None = "me/app", **more: Any) -> SessionSummary:
    """`start` and `end` in minutes."""
    return SessionSummary(
        session_id=name,
        place=place,
        started_at=None if start is None else start * MINUTE,
        ended_at=None if end is None else end * MINUTE,
        files=more.pop("files", []),
        **more,
    )


def test_the_next_session_is_the_first_to_start_after_this_one_ended() -> None:
    found = histories(
        [
            outline("a", 0, 60),
            outline("parallel", 30, 90),
            outline("same moment", 60, 61),
            outline("b", 70, 80),
            outline("c", 75, 99),
        ]
    )
    assert (found["a"].next_id, found["a"].next_started_at) == ("b", 70 * MINUTE)
    assert found["b"].next_id is None
    assert found["parallel"].next_id is None
    assert found["same moment"].next_id == "b"
    assert {h.known_until for h in found.values()} == {99 * MINUTE}
    assert {h.known_since for h in found.values()} == {0}


def test_earlier_sessions_of_the_place_count_also_parallel_ones() -> None:
    found = histories([outline("a", 0, 60), outline("b", 30, 90), outline("c", 30, 40), outline("d", 99, 100, "other")])
    assert {n: h.n_prior for n, h in found.items()} == {"a": 0, "b": 1, "c": 1, "d": 0}


def test_subagents_and_sessions_nobody_spoke_in_are_no_coming_back() -> None:
    found = histories(
        [
            outline("a", 0, 10),
            outline("sub", 20, 21, parent_session_id="a"),
            outline("warm-up", 30, 31, n_turns=0),
            outline("b", 40, 50, n_turns=2),
        ]
    )
    assert found["a"].next_id == "b"
    assert found["b"].n_prior == 1
    assert found["sub"].n_prior == 1


def test_another_persons_session_is_prior_but_no_reopening() -> None:
    found = histories(
        [outline("a", 0, 10, user="ann"), outline("b", 20, 30, user="bob"), outline("c", 40, 50, user="ann")]
    )
    assert (found["a"].next_id, found["c"].n_prior, found["c"].n_prior_same_user) == ("c", 2, 1)


@pytest.mark.parametrize(
    ("mine", "theirs", "shared"), [(["a.py", "b.py"], ["b.py"], True), (["a.py"], ["b.py"], False), ([], [], False)]
)
def test_whether_the_next_session_touches_the_same_files(mine: list[str], theirs: list[str], shared: bool) -> None:
    found = histories([outline("a", 0, 1, files=mine), outline("b", 2, 3, files=theirs)])
    assert found["a"].next_shares_file is shared
    assert found["b"].next_shares_file is None


def of(prompt: str | None) -> frozenset[str] | None:
    return None if prompt is None else words(prompt)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("fix the login form", "fix the login form", 1.0),
        ("fix the login form", "Fix the login page!", 0.75),
        ("fix the login form", "write docs about exports", 0.0),
        ("commit this", "commit this", None),
        (None, "fix the login form", None),
    ],
)
def test_likeness_of_two_prompts_is_the_f1_of_their_words(one: str | None, other: str, alike: float | None) -> None:
    assert similarity(of(one), of(other)) == alike
    found = histories([outline("a", 0, 1, words=of(one)), outline("b", 2, 3, words=of(other))])
    assert found["a"].next_similarity == alike


def test_a_session_without_place_or_time_has_a_history_that_says_so() -> None:
    found = histories([outline("nowhere", 0, 1, None), outline("never", None, None), outline("a", 5, 6)])
    assert found["nowhere"].place is None and found["nowhere"].next_id is None
    assert found["never"].n_prior == 0 and found["never"].next_id is None
    assert found["a"].n_prior == 0
    assert histories([]) == {}


def test_a_session_whose_end_is_unknown_ends_where_it_began() -> None:
    found = histories([outline("a", 5, None), outline("b", 6, 7)])
    assert found["a"].next_id == "b"


def test_the_order_of_the_input_never_shows() -> None:
    rng = random.Random(1)  # noqa: S311  (a shuffle, no secret)
    many = [
        outline(f"s{n}", (start := rng.randrange(500)), start + rng.randrange(50), f"p{n % 3}", user=f"u{n % 2}")
        for n in range(60)
    ]
    expected = histories(many)
    for _ in range(5):
        rng.shuffle(many)
        assert histories(many) == expected
    for one in many:
        mine = [
            o for o in many if (o.place, o.user) == (one.place, one.user) and (o.started_at or 0) > (one.ended_at or 0)
        ]
        first = min(mine, key=lambda o: (o.started_at or 0, o.session_id), default=None)
        assert expected[one.session_id].next_id == (first.session_id if first else None)
        earlier = [o for o in many if o.place == one.place and (o.started_at or 0) < (one.started_at or 0)]
        assert expected[one.session_id].n_prior == len(earlier)


@pytest.mark.parametrize(
    ("repo", "cwd", "place"),
    [
        ("Me/App", "/home/me/app", "me/app"),
        (None, "/home/me/app/", "/home/me/app"),
        (None, "/home/me/app/.claude/worktrees/fix-7", "/home/me/app"),
        (None, "/home/me/app/.worktrees/x", "/home/me/app"),
        (None, r"C:\Users\me\app", r"C:\Users\me\app"),
        (None, "/", "/"),
        (None, None, None),
    ],
)
def test_the_place_is_the_repository_or_the_folder_of_its_worktrees(
    repo: str | None, cwd: str | None, place: str | None
) -> None:
    assert place_of(repo, cwd) == place


@pytest.mark.parametrize(
    ("cwd", "user"),
    [
        ("/home/ann/app", "ann"),
        ("/Users/bob/dev/app", "bob"),
        (r"C:\Users\cy\app", "cy"),
        ("/workspace", None),
        (None, None),
    ],
)
def test_the_home_folder_names_the_person(cwd: str | None, user: str | None) -> None:
    assert user_of(cwd) == user
