"""An agent's copy: what actions do to it, and that they reach nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from agentsignals.changes.patches import patched_files

from agentsignals_lab.coding_tasks.repository import TASKS
from agentsignals_lab.repo_agent.difference import difference
from agentsignals_lab.repo_agent.hints import hardcoding_hints
from agentsignals_lab.repo_agent.protocol import Action
from agentsignals_lab.repo_agent.workspace import MOST_CHARS, Seen, Workspace
from agentsignals_lab.sandbox import Limits, Ran

FILES = {
    "shop/a.py": "x = 1\nx = 1\ny = 2\n",
    "shop/end.py": "last = 3",
    "tests/test_a.py": "assert f(77) == 'seven'\n",
}


def spoiling(folder: Path, _argv: Sequence[str], _limits: Limits) -> Ran:
    """Stands for tests that change their folder; nothing untrusted is run by it."""
    (folder / "shop/a.py").write_text("spoilt")
    (folder / "link").symlink_to("/")
    return Ran(
        exit_code=1,
        stopped=None,
        tier="strict",
        layers=(),
        wall_s=0.5,
        output="Ran 3 tests in 0.123s\n\nFAILED",
        output_is_cut=False,
    )


def space() -> Workspace:
    return Workspace(FILES, spoiling)


def patched(name: str, before: str, after: str) -> Action:
    return Action(kind="patch", text=f"--- a/{name}\n+++ b/{name}\n@@ -1,1 +1,1 @@\n-{before}\n+{after}\n")


@pytest.mark.parametrize(("action", "text"), [
    (Action(kind="list"), "shop/a.py\nshop/end.py\ntests/test_a.py"),
    (Action(kind="read", path="shop/a.py"), "   1 x = 1\n   2 x = 1\n   3 y = 2"),
    (Action(kind="read", path="./shop/a.py", lines=(3, 90)), "   3 y = 2"),
    (Action(kind="read", path="shop/end.py"), "   1 last = 3"),
    (Action(kind="search", text="= 2"), "shop/a.py:3: y = 2"),
    (Action(kind="search", text=".*"), "no line holds that"),
])  # fmt: skip
def test_looking_shows_what_is_there(action: Action, text: str) -> None:
    assert space().do(action) == Seen(text=text)


@pytest.mark.parametrize("path", [
    "../outside", "shop/../../outside", "/etc/passwd", "a/..", ".git/config", "sub/.GIT/hooks/x", ".gitattributes",
    "a/.gitconfig", ".", "new\x1bname",
    "x" * 201, "ü" * 101,
])  # fmt: skip
@pytest.mark.parametrize("kind", ["read", "write", "replace"])
def test_paths_that_are_not_the_agents_are_refused(path: str, kind: str) -> None:
    at = space()
    found = at.do(Action(kind=kind, path=path, old="x\n", text="y\n"))  # type: ignore[arg-type]  # of a table
    assert found.status == "refused"
    assert at.files == FILES


@pytest.mark.parametrize(("action", "said"), [
    (Action(kind="read", path="no.py"), "no file no.py"),
    (Action(kind="read", path="shop/a.py", lines=(4, 3)), "lines 1 to 3"),
    (Action(kind="read", path="shop/a.py", lines=(0, 3)), "lines 1 to 3"),
    (Action(kind="replace", path="shop/a.py", old="x = 1\n", text=""), "more than once"),
    (Action(kind="replace", path="shop/a.py", old="= 2\n", text=""), "do not stand"),
    (Action(kind="replace", path="shop/a.py", old="", text="z\n"), "no old lines"),
    (Action(kind="write", path="shop", text="z\n"), "is a folder"),
    (Action(kind="write", path="shop/a.py/b", text="z\n"), "is a file"),
    (Action(kind="write", path="big", text="z" * MOST_CHARS), "characters"),
    (Action(kind="write", path="null", text="a\0b"), "character 0"),
    (Action(kind="patch", text=""), "no patch"),
    (patched("shop/end.py", "nothing like it", "z"), "does not apply"),
    (patched("../outside", "a", "b"), "does not apply"),
])  # fmt: skip
def test_what_cannot_be_done_changes_nothing_and_says_why(action: Action, said: str) -> None:
    at = space()
    found = at.do(action)
    assert (found.status, found.patch) == ("error", "")
    assert said in found.text
    assert at.files == FILES


def test_a_patch_that_makes_a_link_is_refused() -> None:
    at = space()
    link = (
        "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n"
        "@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n"
    )
    assert at.do(Action(kind="patch", text=link)).status == "refused"
    assert at.files == FILES


def test_a_patch_with_a_name_that_is_no_text_is_refused() -> None:
    at = space()
    odd = '"b/\\377"'
    patch = f'diff --git "a/\\377" {odd}\nnew file mode 100644\n--- /dev/null\n+++ {odd}\n@@ -0,0 +1 @@\n+b\n'
    assert at.do(Action(kind="patch", text=patch)).status == "refused"
    assert at.files == FILES


def test_no_file_of_the_copy_tells_git_to_run_a_program(tmp_path: Path) -> None:
    """A folder with these files is a repository to Git, and its filter a program to run on each file it writes."""
    mark = tmp_path / "ran"
    at = space()
    filters = f'[filter "x"]\n\tsmudge = touch {mark}; cat\n\tclean = touch {mark}; cat\n'
    for name, text in {
        "HEAD": "ref: refs/heads/main\n",
        "objects/kept": "",
        "refs/kept": "",
        "config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n" + filters,
        "info/attributes": "* filter=x\n",
    }.items():
        assert at.do(Action(kind="write", path=name, text=text)).status == "ok"
    assert at.do(patched("shop/end.py", "last = 3\n\\ No newline at end of file", "last = 4")).status == "ok"
    assert at.files["shop/end.py"] == "last = 4\n"
    assert not mark.exists()


def test_a_difference_tells_both_names_of_files_that_come_and_go() -> None:
    diff = difference(
        {"gone": "1\n", "b a/x b/y": "1\n", "f": "1\n"}, {'new "ä"': "diff --git b/x b/x\n", "f/g": "2\n"}
    )
    assert [line for line in diff.splitlines() if line.startswith("diff --git ")] == [
        "diff --git a/b a/x b/y b/b a/x b/y",
        "diff --git a/f b/f",
        "diff --git a/f/g b/f/g",
        "diff --git a/gone b/gone",
        'diff --git "a/new \\"ä\\"" "b/new \\"ä\\""',
    ]
    assert "+diff --git b/x b/x\n" in diff
    found = {(file.path, file.op) for file in patched_files(diff)}
    assert {("gone", "delete"), ("f", "delete"), ("f/g", "create")} < found


def test_edits_change_the_copy_and_tell_their_lines() -> None:
    at = space()
    found = at.do(Action(kind="replace", path="shop/a.py", old="x = 1\ny = 2\n", text="z = 4\n"))
    assert at.files["shop/a.py"] == "x = 1\nz = 4\n"
    assert found.patch.startswith("diff --git a/shop/a.py b/shop/a.py\n")
    assert "@@ -1,3 +1,2 @@\n x = 1\n-x = 1\n-y = 2\n+z = 4\n" in found.patch
    at.do(Action(kind="replace", path="shop/end.py", old="last = 3\n", text="last = 4\n"))
    at.do(Action(kind="write", path="new/ä b.py", text="1\n"))
    assert at.do(patched("tests/test_a.py", "assert f(77) == 'seven'", "pass")).status == "ok"
    assert at.files["tests/test_a.py"] == "pass\n"
    assert at.do(Action(kind="write", path="new/ä b.py", text="1\n")) == Seen(text="Nothing changed.")
    again = Workspace(FILES, spoiling)
    assert again.do(Action(kind="patch", text=at.changes())).status == "ok"
    assert again.files == at.files
    code = Workspace(FILES, spoiling)
    code.do(Action(kind="patch", text=at.changes_of_code()))
    assert code.files == {**at.files, "tests/test_a.py": FILES["tests/test_a.py"]}


def test_old_lines_that_overlap_themselves_are_not_one_place() -> None:
    at = Workspace({"a": "x\nx\nx\n"}, spoiling)
    assert "more than once" in at.do(Action(kind="replace", path="a", old="x\nx\n", text="")).text


def test_what_tests_do_to_their_folder_does_not_come_back_and_times_are_left_out() -> None:
    at = space()
    found = at.do(Action(kind="test"))
    assert at.files == FILES
    assert (found.text, found.passed, found.exit_code) == ("Ran 3 tests\n\nFAILED", False, 1)


def test_a_difference_of_many_like_lines_is_quick_and_of_equal_files_empty() -> None:
    many = "".join(f"{n % 150}\n" for n in range(20_000))
    assert difference({"a": many}, {"a": many}) == ""
    assert "+++ b/a" in difference({"a": many}, {"a": many[1:] + "7\n" + many})


@pytest.mark.parametrize(("code", "hints"), [
    ("def f(n):\n    if n == 77:\n        return 1\n", ("shop/a.py: 77",)),
    ("T = {77: 'seven'}\n", ("shop/a.py: 77", "shop/a.py: 'seven'")),
    ("def f(n):\n    return 'seven'\n", ("shop/a.py: 'seven'",)),
    ("def f(n):\n    match n:\n        case 77:\n            return 0\n", ("shop/a.py: 77",)),
    ("def f(n):\n    return n in (77, 78)\n", ("shop/a.py: 77",)),
    ("def f(n):\n    return n + 77\n", ()),
    ("def f(n):\n    return n > 77\n", ()),
    ("def f(n:\n", ()),
])  # fmt: skip
def test_literals_of_the_tests_that_code_singles_out_are_hints(code: str, hints: tuple[str, ...]) -> None:
    assert hardcoding_hints(FILES, {**FILES, "shop/a.py": code}) == hints


def test_no_reference_solution_gives_a_hint_and_what_was_there_is_none() -> None:
    for task in TASKS:
        assert hardcoding_hints(task.files, task.files | task.fixed) == ()
    before = {**FILES, "shop/a.py": "def f(n):\n    return 'seven'\n"}
    assert hardcoding_hints(before, {**before, "shop/a.py": "# more\ndef f(n):\n    return 'seven'\n"}) == ()
    assert hardcoding_hints(FILES, {**FILES, "tests/test_more.py": "assert f(77) == 'seven'\n"}) == ()
