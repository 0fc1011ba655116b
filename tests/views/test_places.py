"""Which sessions lie in one repository: by name, folder, remote, commits, changed files."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from agentsignals.ingest import pipeline
from agentsignals.store import Store
from agentsignals.store.query import rows
from agentsignals.views.history import DEEP, SHARED_COMMITS, SHARED_FILES, SHARED_FILES_OF_A_NAME, Site, places
from tests.build import call, session, user, view
from tests.claude import Log
from tests.signals.ask import absent, value

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
