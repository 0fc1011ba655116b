"""Paths as the catalogue wants them, from the folders a session works in."""

from __future__ import annotations

import pytest

from agentsignals.formats.builder import MOST_ROOTS, Paths

CLEANED: list[tuple[list[str], str, str]] = [
    ([], "src/a.py", "src/a.py"),
    ([], "./src/../a.py", "a.py"),
    ([], "@src/a.py", "src/a.py"),
    (["/work/shop"], "/work/shop/src/a.py", "src/a.py"),
    (["/work/shop"], "/work/shop", "."),
    (["/work/shop/"], "src/a.py", "src/a.py"),
    (["/work/shop"], "/work/shopping/a.py", "/work/shopping/a.py"),
    (["/work/shop"], "../other/a.py", "/work/other/a.py"),
    (["/work/shop"], "~/notes.md", "~/notes.md"),
    (["/work/shop"], "/work/shop/.claude/worktrees/fix/src/a.py", "src/a.py"),
    (["/work/shop/.worktrees/fix"], "/work/shop/.worktrees/fix/a.py", "a.py"),
    (["/work/shop/web", "/work/shop"], "/work/shop/web/a.ts", "web/a.ts"),
    (["/work/shop", "/work/shop/web"], "a.ts", "web/a.ts"),
    (["/work/shop", "/work/shop/web"], "../a.py", "a.py"),
    (["/home/me/shop", "/srv/checkout/shop"], "/srv/checkout/shop/a.py", "a.py"),
    (["/work/shop", "/var/folders/x/try"], "a.py", "/var/folders/x/try/a.py"),
    (["/home/me/shop", "/home/me"], "/home/me/shop/a.py", "a.py"),
    (["/home/me/shop", "/home/me"], "/home/me/.bashrc", "/home/me/.bashrc"),
    (["/"], "/etc/hosts", "/etc/hosts"),
    (["D:\\work\\shop"], "D:\\work\\shop\\src\\a.cs", "src/a.cs"),
    (["D:\\work\\shop"], "src\\a.cs", "src/a.cs"),
    (["D:\\work\\shop"], "D:\\other\\a.cs", "D:/other/a.cs"),
]


def test_so_many_folders_are_roots_and_no_more() -> None:
    paths = Paths()
    paths.visit(f"/w/{n}" for n in range(MOST_ROOTS + 1))
    last = MOST_ROOTS - 1
    assert paths.clean(f"/w/{last}/a.py") == "a.py"
    assert paths.clean(f"/w/{last + 1}/a.py") == f"/w/{last + 1}/a.py"


@pytest.mark.parametrize(("folders", "path", "cleaned"), CLEANED)
def test_a_path_is_relative_to_the_root_of_the_session(folders: list[str], path: str, cleaned: str) -> None:
    paths = Paths()
    for folder in folders:
        paths.enter(folder)
    assert paths.clean(path) == cleaned
    assert paths.clean(path) == cleaned


def test_a_root_known_beforehand_holds_from_the_first_path() -> None:
    paths = Paths()
    paths.visit(["/work/shop/web", "/work/shop"])
    paths.enter("/work/shop/web")
    assert paths.clean("a.ts") == "web/a.ts"


def test_a_call_may_run_in_a_folder_of_its_own() -> None:
    paths = Paths()
    paths.enter("/work/shop")
    assert [paths.clean("a.ts", folder) for folder in (None, "/work/shop/web", "/srv")] == [
        "a.ts",
        "web/a.ts",
        "/srv/a.ts",
    ]
