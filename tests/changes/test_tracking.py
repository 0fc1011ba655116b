"""Regions: line ranges followed through later edits (design/signals.md#regions)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsignals.changes.regions import GAP_LINES, records, track
from agentsignals.model import Edit, EditOp

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
