"""What came before and after a session, whatever the order in which the sessions are told."""

from __future__ import annotations

import random
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from agentsignals.ingest import pipeline
from agentsignals.store import Store
from agentsignals.store.query import rows
from agentsignals.views.history import (
    DEEP,
    SHARED_COMMITS,
    SHARED_FILES,
    SHARED_FILES_OF_A_NAME,
    SessionSummary,
    Site,
    histories,
    place_of,
    places,
    similarity,
    user_of,
)
from agentsignals.words.lexicon import words
from tests.build import call, session, user, view
from tests.claude import Log
from tests.signals.ask import absent, value

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


def of(prompt: str | None) -> str | None:
    return None if prompt is None else " ".join(words(prompt))


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


# Which sessions lie in one repository: by name, folder, remote, commits, changed files.

ADDRESS = "git@github.com:Me/Shop.git"
HERE, THERE = "/home/me/shop", "/Users/you/work/shop-2"


def paths(n: int) -> list[str]:
    return [f"src/shop/part{k}.py" for k in range(n)]


def together(one: dict[str, Any], other: dict[str, Any], *more: dict[str, Any]) -> bool:
    """Whether the first two lie in one place, in whatever order the sites come."""
    listed = [Site(session_id=str(n), **site) for n, site in enumerate((one, other, *more))]
    found = {(of := places(order))["0"] == of["1"] for order in permutations(listed)}
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"cwd": HERE}, {"cwd": HERE + "/"}, True),
        ({"cwd": HERE}, {"cwd": THERE}, False),
        ({"cwd": HERE}, {"cwd": f"{HERE}/.claude/worktrees/fix"}, True),
        ({"cwd": HERE}, {"cwd": f"{HERE}/.worktrees/me/fix-it"}, True),
        ({"cwd": HERE}, {"cwd": f"{HERE}__worktrees/fix"}, True),
        ({"cwd": HERE}, {"cwd": f"{HERE}.worktrees/fix"}, True),
        ({"repo": "Me/Shop", "cwd": HERE}, {"repo": "me/shop", "cwd": THERE}, True),
        ({"repo": "me/shop"}, {"repo": "you/shop"}, False),
        ({"cwd": HERE, "remotes": ["me/shop"]}, {"cwd": THERE, "remotes": ["me/shop"]}, True),
        ({"cwd": HERE, "remotes": ["me/shop"]}, {"repo": "me/shop", "cwd": THERE}, True),
        ({"cwd": HERE, "remotes": ["me/shop", "me/lib"]}, {"repo": "me/shop"}, False),
        ({"cwd": HERE, "commits": ["a1b2c3d"]}, {"cwd": THERE, "commits": ["a1b2c3d"]}, False),
        ({"cwd": HERE, "commits": ["a1b2c3d", "b1b2c3d"]}, {"cwd": THERE, "commits": ["b1b2c3d", "a1b2c3d"]}, True),
        ({"cwd": HERE, "files": paths(3)}, {"cwd": THERE, "files": paths(3)}, True),
        ({"cwd": HERE, "files": paths(2)}, {"cwd": THERE, "files": paths(2)}, False),
        ({"cwd": HERE, "files": paths(2)}, {"cwd": "/Users/you/shop", "files": paths(2)}, True),
        ({"cwd": HERE, "files": paths(1)}, {"cwd": "/Users/you/shop", "files": paths(1)}, False),
        ({"cwd": HERE, "files": ["a.py", "b/c.py", ".github/workflows/x.yml"]},
         {"cwd": THERE, "files": ["a.py", "b/c.py", ".github/workflows/x.yml"]}, False),
        ({"repo": "me/shop", "files": paths(9), "commits": ["a1b2c3d", "b1b2c3d"]},
         {"repo": "you/shop", "files": paths(9), "commits": ["a1b2c3d", "b1b2c3d"]}, False),
    ],
)  # fmt: skip
def test_what_makes_two_sessions_lie_in_one_place(one: dict[str, Any], other: dict[str, Any], same: bool) -> None:
    assert (SHARED_COMMITS, SHARED_FILES, SHARED_FILES_OF_A_NAME, DEEP) == (2, 3, 2, 3)
    assert together(one, other) is same


def test_files_that_are_a_small_part_of_both_tell_nothing() -> None:
    others = [[f"app/{name}/x{k}.py" for k in range(4)] for name in ("one", "two")]
    assert not together({"cwd": HERE, "files": paths(3) + others[0]}, {"cwd": THERE, "files": paths(3) + others[1]})
    assert together({"cwd": HERE, "files": paths(4) + others[0]}, {"cwd": THERE, "files": paths(4) + others[1]})


def test_a_third_session_joins_two_but_no_two_repositories_of_names_of_their_own() -> None:
    link = {"cwd": "/third", "commits": ["a1b2c3d", "b1b2c3d", "c1b2c3d", "d1b2c3d"]}
    first, second = ["a1b2c3d", "b1b2c3d"], ["c1b2c3d", "d1b2c3d"]
    assert together({"cwd": HERE, "commits": first}, {"cwd": THERE, "commits": second}, link)
    named = {"repo": "me/shop", "commits": first}, {"repo": "me/lib", "commits": second}
    assert not together(*named, link)


def test_a_folder_that_held_several_repositories_joins_none() -> None:
    assert not together({"repo": "me/shop", "cwd": "/workspace"}, {"repo": "me/lib", "cwd": "/workspace"})


def test_a_place_is_called_after_its_repository_else_after_its_folder_with_most_sessions() -> None:
    sites = [Site(session_id="1", cwd=HERE, remotes=["me/shop"]), Site(session_id="2", cwd=f"{HERE}/.worktrees/x")]
    assert set(places(sites).values()) == {"me/shop"}
    folders = [Site(session_id=str(n), cwd=cwd, files=paths(3)) for n, cwd in enumerate((HERE, THERE, THERE))]
    assert set(places(folders).values()) == {THERE}
    assert places([Site(session_id="1")]) == {}


def git(command: str, result: str) -> Any:
    return value(view(user("go"), call("Bash", command=command, result=result)), "user.repository_marks")


@pytest.mark.parametrize(
    ("command", "result", "remotes", "commits"),
    [
        ("git remote -v", f"origin\t{ADDRESS} (fetch)\norigin\t{ADDRESS} (push)", ["me/shop"], []),
        ("git remote -v", "origin  https://gitlab.com/group/me/shop (fetch)", ["me/shop"], []),
        ("git push", "To github.com:me/shop.git\n   a1b2c3d..b2c3d4e  main -> main", ["me/shop"], []),
        ("git push", "To /srv/me/shop.git", [], []),
        ("cd ../lib && git push", "To github.com:me/lib.git", [], []),
        ("git -C ../lib log", "a1b2c3d fix", [], []),
        ("git clone https://github.com/me/lib.git", "From github.com:me/lib", [], []),
        ("git log --oneline", "a1b2c3d fix\n* b1b2c3d more\n1234567 all digits", [], ["a1b2c3d", "b1b2c3d"]),
        ("git log", "commit a1b2c3d4e5f60718293a4b5c6d7e8f9012345678\nAuthor: x", [], ["a1b2c3d"]),
        ("git commit -m x", "[main a1b2c3d] x", [], ["a1b2c3d"]),
        ("git diff", "index a1b2c3d..b1b2c3d 100644", [], []),
    ],
)  # fmt: skip
def test_what_git_printed_of_the_sessions_own_folder(
    command: str, result: str, remotes: list[str], commits: list[str]
) -> None:
    assert git(command, result) == {"remotes": remotes, "commits": commits}


def test_without_a_word_of_git_there_are_no_marks() -> None:
    assert absent(view(user("go"), call("Read", path="a.py")), "user.repository_marks") == ("none_found", "no_git_call")
    assert session(user("go")).repo is None


def test_the_store_knows_two_clones_for_one_place_however_they_were_read(tmp_path: Path) -> None:
    for n, cwd in enumerate((HERE, THERE, "/elsewhere")):
        one = Log(session=f"{n}1111111-2222-4333-8444-555555555555", name=f"s{n}", cwd=cwd)
        one.user("what is new?")
        one.ran("Bash", "ok" if n == 2 else "a1b2c3d fix\nb1b2c3d more", command="git log --oneline")
        (tmp_path / f"in{n}").mkdir()
        (tmp_path / f"in{n}" / "a.jsonl").write_bytes(one.data())
    for n in range(3):
        pipeline.analyze([str(tmp_path / f"in{n}")], tmp_path / "store", jobs=1)
    asked = "SELECT session_id, value FROM signals WHERE signal = 'user.place'"
    found = dict(rows(Store(tmp_path / "store"), asked)[1])
    first, second, third = (found[s] for s in sorted(found))
    assert first == second != third
