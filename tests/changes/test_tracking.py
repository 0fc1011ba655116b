"""Regions of files followed through edits, the lines that edits change, and how near a patch came to the gold patch."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsignals.changes.hunks import (
    BLOCK,
    GAP_LINES,
    NOTHING,
    Range,
    Ranges,
    between,
    changed_lines,
    records,
    replaced,
    track,
)
from agentsignals.changes.patches import Overlap, is_source, localized, patched_files
from agentsignals.formats.profile import EDIT_ROLES
from agentsignals.model import Edit, EditOp, encode_roles

Change = tuple[int, int, int]
"""(first line before the call, lines removed, lines added)."""


def edits(*calls: list[Change], path: str = "a.py", first_seq: int = 1) -> list[Edit]:
    """The edits of these calls; the places of one call are given from the top down, as agents log them."""
    made = []
    for seq, changes in enumerate(calls, first_seq):
        shift = 0
        for n, (at, removed, added) in enumerate(changes):
            start = at + shift
            made.append(edit(seq, path, n, start, start + max(added, 1) - 1, added, removed, at))
            shift += added - removed
    return made


def edit(
    seq: int,
    path: str,
    n: int,
    start: int | None,
    end: int | None,
    added: int | None,
    removed: int | None,
    old: int | None,
    op: EditOp = "modify",
    whole: bool = False,
) -> Edit:
    return Edit(
        seq=seq,
        turn=0,
        thread="main",
        call_id=f"c{seq}",
        path=path,
        op=op,
        via="edit_tool",
        hunk=n,
        start_line=start,
        end_line=end,
        added=added,
        removed=removed,
        old_start=old,
        whole_file=whole,
    )


def regions(made: Iterable[Edit]) -> list[tuple[int | None, int | None, list[int]]]:
    return [(r.start, r.end, [e.seq for e in r.edits]) for r in track(made)]


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        # One edit makes one region.
        ([[(10, 2, 4)]], [(10, 13, [1])]),
        # Overlap, and nearness up to three lines, edit it again.
        ([[(10, 2, 4)], [(12, 1, 1)]], [(10, 13, [1, 2])]),
        ([[(10, 1, 1)], [(13, 1, 1)]], [(10, 13, [1, 2])]),
        ([[(10, 1, 1)], [(14, 1, 1)]], [(10, 10, [1]), (14, 14, [2])]),
        ([[(10, 1, 1)], [(7, 1, 1)]], [(7, 10, [1, 2])]),
        ([[(10, 1, 1)], [(6, 1, 1)]], [(10, 10, [1]), (6, 6, [2])]),
        # What is above moves what is below; line 20 became line 25.
        ([[(20, 1, 1)], [(5, 1, 6)], [(25, 1, 1)]], [(25, 25, [1, 3]), (5, 10, [2])]),
        ([[(20, 1, 1)], [(5, 1, 6)], [(20, 1, 1)]], [(25, 25, [1]), (5, 10, [2]), (20, 20, [3])]),
        # A deletion above moves it up.
        ([[(20, 1, 1)], [(5, 6, 0)], [(14, 1, 1)]], [(14, 14, [1, 3]), (5, 5, [2])]),
        # An edit over two regions joins them, and they stay one.
        ([[(10, 1, 1)], [(20, 1, 1)], [(11, 9, 2)], [(11, 1, 1)]], [(10, 13, [1, 2, 3, 4])]),
        # Places of one call, however near, never edit each other; each is placed as before the call.
        ([[(10, 1, 5), (12, 1, 1)]], [(10, 14, [1]), (16, 16, [1])]),
        ([[(10, 1, 5), (30, 1, 1)], [(34, 1, 1)]], [(10, 14, [1]), (34, 34, [1, 2])]),
        # Growing and shrinking in place.
        ([[(10, 1, 3)], [(11, 1, 5)]], [(10, 16, [1, 2])]),
        ([[(10, 1, 6)], [(11, 4, 0)]], [(10, 11, [1, 2])]),
    ],
)
def test_regions(calls: list[list[Change]], expected: list[tuple[int, int, list[int]]]) -> None:
    assert regions(edits(*calls)) == expected


def test_files_are_followed_apart_also_within_one_call() -> None:
    made = [
        edit(1, "a.py", 0, 10, 10, 1, 1, 10),
        edit(1, "b.py", 0, 10, 10, 1, 1, 10),
        edit(1, "a.py", 1, 50, 50, 1, 1, 50),
        edit(2, "b.py", 0, 11, 11, 1, 1, 11),
    ]
    assert [(r.path, r.n_calls) for r in track(made)] == [("a.py", 1), ("a.py", 1), ("b.py", 2)]


@pytest.mark.parametrize(
    "reset",
    [
        edit(2, "a.py", 0, 1, 90, 90, 80, 1, whole=True),
        edit(2, "a.py", 0, None, None, None, None, None, whole=True),
        edit(2, "a.py", 0, None, None, None, None, None, op="delete"),
        edit(2, "a.py", 0, None, None, None, None, None, op="rename"),
    ],
)
def test_a_file_written_anew_or_gone_ends_its_regions(reset: Edit) -> None:
    made = [*edits([(10, 1, 1)]), reset, *edits([(10, 1, 1)], first_seq=3)]
    assert [seqs for _, _, seqs in regions(made)] == [[1], [2], [3]]


def test_resetting_the_whole_tree_ends_the_regions_of_every_file() -> None:
    reset = edit(2, ".", 0, None, None, None, None, None, whole=True)
    made = [*edits([(10, 1, 1)]), reset, *edits([(10, 1, 1)], first_seq=3)]
    assert [seqs for _, _, seqs in regions(made)] == [[1], [2], [3]]


def test_an_edit_without_lines_stands_alone_and_ends_nothing() -> None:
    unplaced = edit(2, "a.py", 0, None, None, 4, 1, None)
    assert regions([*edits([(10, 1, 1)]), unplaced, *edits([(10, 1, 1)], first_seq=3)]) == [
        (10, 10, [1, 3]),
        (None, None, [2]),
    ]


def test_a_hunk_with_unchanged_lines_between_its_changes_spans_them() -> None:
    """Lines 10 and 14 changed in one hunk: five lines before and after, one added and one removed each."""
    wide = edit(1, "a.py", 0, 10, 14, 2, 2, 10)
    assert regions([wide, *edits([(17, 1, 1)], first_seq=2)]) == [(10, 17, [1, 2])]


def test_records_name_the_region_of_every_edit_in_order_of_time() -> None:
    made = edits([(10, 1, 1), (40, 1, 1)], [(41, 1, 1)], [(10, 1, 1)])
    found = list(records(track(made)))
    assert [(n, e.seq, e.hunk) for n, e in found] == [(0, 1, 0), (1, 1, 1), (1, 2, 0), (0, 3, 0)]


calls_of_one_place = st.lists(
    st.lists(st.tuples(st.integers(1, 60), st.integers(0, 4), st.integers(0, 6)), min_size=1, max_size=1), max_size=12
)


@given(calls_of_one_place)
def test_regions_agree_with_lines_that_carry_their_region(calls: list[list[Change]]) -> None:
    """The second opinion: a file of lines, each marked with the region it belongs to, spliced by every edit.

    Lines that a deletion leaves behind carry no mark, so calls that end with an empty place are left out.
    """
    calls = [[(at, removed, max(added, 1))] for ((at, removed, added),) in calls]
    tracked = track(edits(*calls))
    marks: list[int | None] = [None] * 400
    seen: dict[int, list[int]] = {}
    names = itertools.count()
    for seq, ((at, removed, added),) in enumerate(calls, 1):
        low, high = max(1, at - GAP_LINES), at + max(removed, 1) - 1 + GAP_LINES
        hit = {m for m in marks[low - 1 : high] if m is not None}
        name = next(names)
        seen[name] = sorted([s for m in hit for s in seen.pop(m)] + [seq])
        marks[at - 1 : at - 1 + removed] = [name] * added
        whole = [n for n, m in enumerate(marks) if m in hit or m == name]
        for n in range(whole[0], whole[-1] + 1):
            marks[n] = name
    assert sorted([e.seq for e in r.edits] for r in tracked) == sorted(seen.values())


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


ROLES = encode_roles(EDIT_ROLES)
PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n keep(this)\n-old(line)\n+new(line)\n"


@pytest.mark.parametrize(
    ("arguments", "removed", "added"),
    [
        ({"old_string": "keep(1)\nold(line)", "new_string": "keep(1)\nnew(line)"}, {"old(line)"}, {"new(line)"}),
        ({"oldText": "old(line)", "newText": "new(line)"}, {"old(line)"}, {"new(line)"}),
        ({"oldString": "old(line)", "newString": ""}, {"old(line)"}, set()),
        ({"old_str": "    old(line)", "new_str": "old(line)"}, set(), set()),
        (
            {"edits": [{"old_string": "one()", "new_string": "two()"}, {"oldText": "three()", "newText": "four()"}]},
            {"one()", "three()"},
            {"two()", "four()"},
        ),
        ({"patchText": PATCH}, {"old(line)"}, {"new(line)"}),
        ({"input": "--- a/x.py\n+++ b/x.py\n-old(line)\n+new(line)\n"}, {"old(line)"}, {"new(line)"}),
        (PATCH, {"old(line)"}, {"new(line)"}),
        ({"old_string": "}\n)", "new_string": "end"}, set(), set()),
        ({"file_path": "a.py", "content": "x = 1"}, set(), set()),
        ({"old_string": 1, "new_string": 2}, set(), set()),
        (["old"], set(), set()),
    ],
)
def test_which_lines_a_call_changes(arguments: Any, removed: set[str], added: set[str]) -> None:
    assert changed_lines(json.dumps(arguments), ROLES) == (removed, added)


def test_arguments_that_are_no_json_are_read_as_a_patch() -> None:
    assert changed_lines(PATCH, ROLES) == ({"old(line)"}, {"new(line)"})
    assert changed_lines("", ROLES) is NOTHING


@pytest.mark.parametrize(
    ("old", "new", "sizes"),
    [("a\na", "a", (0, 1)), ("a", "a\na", (1, 0)), ("a\nb\nc", "a\nx\ny\nc", (2, 1)), ("a", "b", (1, 1)),
     ("a", "a", (0, 0))],
)  # fmt: skip
def test_lines_that_two_texts_begin_and_end_with_are_no_change(old: str, new: str, sizes: tuple[int, int]) -> None:
    made = replaced(old, new)
    assert (made.added, made.removed) == sizes
    assert [(hunk.added, hunk.removed) for hunk in between(old, new)] == ([sizes] if sizes != (0, 0) else [])


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
