"""Where a patch lies: its runs of changed lines with their functions, and how near they are to the gold patch's."""

from __future__ import annotations

import pytest

from agentsignals.changes.patches import Overlap, is_source, localized, patched_files

HEAD = "diff --git a/m.py b/m.py\n--- a/m.py\n+++ b/m.py\n"


def diff(*lines: str, at: str = "@@ -10,9 +10,9 @@", path: str = "m.py") -> str:
    old = sum(line[:1] != "+" for line in lines)
    new = sum(line[:1] != "-" for line in lines)
    first, heading = at.split(" ", 2)[1].split(",", 1)[0].lstrip("-"), at.split("@@", 2)[2]
    return f"{HEAD.replace('m.py', path)}@@ -{first},{old} +{first},{new} @@{heading}\n" + "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        pytest.param(diff("     a", "-    b", "+    c", at="@@ -10 @@ def f(x):"), [(11, 11, "f")], id="heading"),
        pytest.param(diff(" def g():", "-    b", "+    c", at="@@ -10 @@ def f(x):"), [(11, 11, "g")], id="nearer"),
        pytest.param(diff(" def g():", "     b", "+    c", "     d"), [(11, 12, "g")], id="only adds: between two"),
        pytest.param(diff("-def g():", "+def g(x):", "     b"), [(10, 10, "g")], id="the first line of a function"),
        pytest.param(diff("     b", "-X_VALUE = 1", at="@@ -10 @@ def f():"), [(11, 11, "")], id="outside it again"),
        pytest.param(diff(" X_VALUE = 1", "-    b", at="@@ -10 @@ def f():"), [(11, 11, "")], id="left above"),
        pytest.param(diff(" ) -> None:", "-    b", at="@@ -10 @@ def f("), [(11, 11, "f")], id="a wrapped signature"),
        pytest.param(diff("     a", "-    b", at="@@ -10 @@ class C:"), [(11, 11, "")], id="of a class not known"),
        pytest.param(
            diff("+", "+def new():", "+    pass", "     b"), [(9, 10, "new")], id="a blank line decides nothing"
        ),
        pytest.param(diff("-  a", "-  b", "+  c", "   d", "-  e"), [(10, 11, ""), (13, 13, "")], id="two runs"),
        pytest.param(diff("+  a", "-  b"), [(10, 10, "")], id="added first, then taken away"),
        pytest.param(diff("   a", "-  b", at="@@ -4 @@ func (s *S) Do(x int) {"), [(5, 5, "Do")], id="go"),
        pytest.param(diff("   a", "-  b", at="@@ -4 @@ pub(crate) async fn run("), [(5, 5, "run")], id="rust"),
        pytest.param(diff("   a", "-  b", at="@@ -4 @@ export default async function go() {"), [(5, 5, "go")], id="js"),
        pytest.param(diff("   a", "-  b", at="@@ -4 @@ defined = 1"), [(5, 5, "")], id="no definition"),
    ],
)
def test_each_run_of_changed_lines_has_its_lines_and_its_function(
    text: str, changes: list[tuple[int, int, str]]
) -> None:
    assert patched_files(text)[0].changes == changes


def test_lines_are_known_by_what_stands_on_them_whatever_their_number_or_indentation() -> None:
    replaced = patched_files(diff("-    total = price * n", "+    total = 0"))[0]
    moved = patched_files(diff("-        total = price * n", at="@@ -90 @@"))[0]
    added_below = patched_files(diff("     total = price * n", "+    total += 1", "     }"))[0]
    short = patched_files(diff("-    else:", "+    elif x:"))[0]
    assert replaced.digests == moved.digests == added_below.digests and len(replaced.digests) == 1
    assert short.digests == [], "a line of at most eight characters tells no place"
    at_end = patched_files(diff("     total = price * n", "+    more()"))[0]
    assert at_end.digests == replaced.digests, "an addition at the end of a hunk has its place, too"


@pytest.mark.parametrize(("lines", "kept"), [(1_000, 1_000), (1_003, 1_000)])
def test_of_a_generated_file_that_is_replaced_the_first_thousand_places_are_kept(lines: int, kept: int) -> None:
    replaced = patched_files(diff(*(f"-    generated_value_{n} = {n}" for n in range(lines))))[0]
    assert len(replaced.digests) == kept


def test_what_a_new_file_holds_is_no_place() -> None:
    made = patched_files("--- /dev/null\n+++ b/new.py\n@@ -0,0 +1,2 @@\n+def f():\n+    return 12345\n")[0]
    assert (made.op, made.changes, made.digests) == ("create", [], [])


GOLD = diff("-    total = price * n", "+    total = price", at="@@ -10 @@ def price(n):")


@pytest.mark.parametrize(
    ("patch", "level", "functions", "lines"),
    [
        pytest.param(GOLD, "line", Overlap(1, 1, 1), Overlap(1, 1, 1), id="the line"),
        pytest.param(GOLD.replace("-10,", "-99,"), "line", Overlap(1, 1, 1), Overlap(1, 1, 1), id="of another commit"),
        pytest.param(
            diff("-    other = price / n", at="@@ -12 @@ def price(n):"),
            "function",
            Overlap(1, 1, 1),
            Overlap(0, 1, 1),
            id="another line of the function",
        ),
        pytest.param(
            diff("-    other = price / n", at="@@ -40 @@ def tax(n):"), "file", Overlap(0, 1, 1), Overlap(0, 1, 1),
            id="another function",
        ),
        pytest.param(
            diff("-    other = price / n", at="@@ -40 @@ class Tax:"), "file", None, Overlap(0, 1, 1),
            id="a function that the diff does not show",
        ),
        pytest.param(GOLD.replace("m.py", "n.py"), "elsewhere", None, None, id="another file"),
    ],
)  # fmt: skip
def test_a_patch_comes_as_near_as_the_finest_place_it_shares(
    patch: str, level: str, functions: Overlap | None, lines: Overlap | None
) -> None:
    place = localized(patched_files(patch), patched_files(GOLD))
    assert place is not None and (place.level, place.functions, place.lines) == (level, functions, lines)


def test_tests_and_prose_count_only_where_the_gold_patch_is_nothing_else() -> None:
    tests = GOLD.replace("m.py", "tests/test_m.py")
    beside = localized(patched_files(tests), patched_files(GOLD + tests))
    assert beside is not None and beside.level == "elsewhere" and beside.files == Overlap(0, 1, 1)
    alone = localized(patched_files(tests), patched_files(tests))
    assert alone is not None and alone.level == "line"


def test_both_names_of_a_renamed_file_are_the_file() -> None:
    renamed = GOLD.replace("--- a/m.py\n+++ b/m.py", "rename from m.py\nrename to n.py\n--- a/m.py\n+++ b/n.py")
    place = localized(patched_files(GOLD), patched_files(renamed))
    assert place is not None and place.level == "line"


def test_only_new_files_beside_tests_and_prose_change_nothing_that_was_there() -> None:
    new = "--- /dev/null\n+++ b/repro.py\n@@ -0,0 +1 @@\n+print(1)\n"
    for patch, expected in ((new, True), (new + GOLD.replace("m.py", "tests/m.py"), True), (new + GOLD, False)):
        place = localized(patched_files(patch), patched_files(GOLD))
        assert place is not None and place.only_new is expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [("src/a.py", True), ("src/testing/a.py", False), ("a/test_b.py", False), ("a/b_test.go", False),
     ("src/contest.py", True), ("src/latest/a.py", True), ("x.spec.ts", False), ("README.md", False),
     ("conftest.py", False), ("src/test.py", True)],
)  # fmt: skip
def test_a_tests_path_is_known_by_its_name(path: str, expected: bool) -> None:
    assert is_source(path) is expected


def test_nothing_is_said_of_an_empty_patch_or_an_empty_gold_patch() -> None:
    assert localized([], patched_files(GOLD)) is None and localized(patched_files(GOLD), []) is None
