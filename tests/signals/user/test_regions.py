"""user.region_*: where the code was edited, again, and how that went."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.changes.hunks import Hunk
from agentsignals.signals.user.regions import LOOKED_BACK_CALLS, trend
from tests.build import Part, call, say, user, view
from tests.signals.ask import absent, detail, evidence, lines, value

HISTORY, COUNT, TREND = "user.region_edit_history[]", "user.region_re_edit_count", "user.region_edit_convergence[]"


def hunk(at: int, added: int, removed: int, new_at: int | None = None) -> Hunk:
    start = new_at if new_at is not None else at
    return Hunk(start_line=start, end_line=start + max(added, 1) - 1, added=added, removed=removed, old_start=at)


def edit(*hunks: Hunk, path: str = "a.py", old: str = "", new: str = "", **more: Any) -> Part:
    return call("Edit", path=path, hunks=list(hunks), old_string=old, new_string=new, **more)


def test_each_changed_place_is_a_record_in_order_of_time() -> None:
    one = view(user("go"), edit(hunk(5, 2, 1), hunk(40, 0, 3, 41)), user("more"), edit(hunk(6, 1, 1)))
    assert value(one, HISTORY) == [
        {
            "file": "a.py",
            "start_line": start,
            "end_line": end,
            "turn_index": turn,
            "timestamp": f"2026-01-01T00:00:0{second}.000Z",
            "added": added,
            "removed": removed,
            "event_id": event,
            "region_id": region,
        }
        for start, end, turn, second, added, removed, event, region in [
            (5, 6, 0, 1, 2, 1, 1, "r0"),
            (41, 41, 0, 1, 0, 3, 1, "r1"),
            (6, 6, 1, 3, 1, 1, 4, "r0"),
        ]
    ]
    assert detail(one, HISTORY) == {"regions": 2}
    assert lines(one, HISTORY) == [2, 2, 4]


def test_a_session_without_edits_has_an_empty_history_and_nothing_to_count() -> None:
    one = view(user("go"), call("Edit", path="a.py", status="error", result="x"))
    assert value(one, HISTORY) == []
    assert absent(one, COUNT) == ("not_applicable", "no_edit")
    assert absent(one, TREND) == ("not_applicable", "no_edit")


def test_an_edit_near_an_earlier_one_edits_that_region_again() -> None:
    near = view(user("go"), edit(hunk(10, 2, 2)), edit(hunk(14, 1, 1)))
    far = view(user("go"), edit(hunk(10, 2, 2)), edit(hunk(15, 1, 1)))
    assert (value(near, COUNT), value(far, COUNT)) == (1, 0)
    assert lines(near, COUNT) == [2, 3]
    assert detail(far, COUNT) == {"regions": 2, "lines_unknown": 0}
    assert value(far, TREND) == []


def test_plans_and_scratch_files_outside_the_repository_are_no_code() -> None:
    plan = edit(hunk(1, 1, 1), path="/home/me/.claude/plans/p.md")
    one = view(user("go"), plan, plan, edit(hunk(1, 1, 1), path="/r/a.py"), cwd="/r")
    assert value(one, COUNT) == 0
    assert [r["file"] for r in value(one, HISTORY)] == ["a.py"]


def test_a_trace_without_line_numbers_cannot_tell_what_was_edited_again() -> None:
    unplaced = edit(Hunk(added=2, removed=1))
    assert absent(view(user("go"), unplaced, unplaced), COUNT) == ("missing_field", "line_numbers")
    mixed = view(user("go"), unplaced, edit(hunk(3, 1, 1)), edit(hunk(3, 1, 1)))
    assert value(mixed, COUNT) == 1
    assert detail(mixed, COUNT) == {"regions": 2, "lines_unknown": 1}
    assert detail(mixed, HISTORY)["lines_unknown"] == 1


@pytest.mark.parametrize(
    ("command", "start", "added"),
    [("echo x > a.txt", 1, 1), ("echo $X > a.txt", None, None), ("make > a.txt", None, None)],
)
def test_a_file_written_by_the_shell_is_one_record(command: str, start: int | None, added: int | None) -> None:
    """Of its lines where the words of the command tell them."""
    one = view(user("go"), call("Bash", command=command))
    assert [(r["file"], r["start_line"], r["added"]) for r in value(one, HISTORY)] == [("a.txt", start, added)]
    assert value(one, COUNT) == 0


@pytest.mark.parametrize(
    ("sizes", "label"),
    [
        ([(4, 4), (2, 2)], "converging"),
        ([(2, 2), (2, 2)], "unchanged"),
        ([(1, 1), (2, 2), (1, 1)], "unchanged"),
        ([(0, 0), (0, 0)], "unchanged"),
        ([(1, 1), (3, 3)], "expanding"),
        ([(6, 6), (3, 3), (1, 1)], "converging"),
        ([(1, 1), (2, 2), (4, 4)], "expanding"),
        ([(4, 4), (2, 2), (4, 4), (2, 2), (4, 4)], "oscillating"),
        ([(1, 1), (9, 9), (2, 2), (30, 30)], "expanding"),
    ],
)
def test_how_the_edits_of_a_region_trend(sizes: list[tuple[int, int]], label: str) -> None:
    one = view(user("go"), *(edit(hunk(10, added, removed)) for added, removed in sizes))
    assert value(one, TREND) == [label]
    told = detail(one, TREND)["regions"]
    assert [(r["region_id"], r["file"], r["sizes"]) for r in told] == [("r0", "a.py", [a + b for a, b in sizes])]
    assert evidence(one, TREND).totals["support"] == len(sizes)


def test_bringing_back_what_was_removed_is_oscillation() -> None:
    there = edit(hunk(10, 2, 2), old="total = sum(x)\nreturn total", new="total = mean(x)\nreturn total * 2")
    back = edit(hunk(10, 2, 2), old="total = mean(x)\nreturn total * 2", new="total = sum(x)\nreturn total")
    onward = edit(hunk(10, 2, 2), old="total = mean(x)\nreturn total * 2", new="total = median(x)\nreturn total * 3")
    assert value(view(user("go"), there, back), TREND) == ["oscillating"]
    assert value(view(user("go"), there, onward), TREND) == ["unchanged"]


@pytest.mark.parametrize(
    ("between", "label"), [(LOOKED_BACK_CALLS - 2, "oscillating"), (LOOKED_BACK_CALLS, "expanding")]
)
def test_what_was_removed_hundreds_of_edits_ago_is_not_brought_back(between: int, label: str) -> None:
    there = edit(hunk(10, 1, 1), old="total = sum(x)", new="total = 0000")
    others = [edit(hunk(10, 1, 1), old=f"total = {n:04}", new=f"total = {n + 1:04}") for n in range(between)]
    back = edit(hunk(10, 3, 1), old=f"total = {between:04}", new="total = sum(x)\n\n\n")
    assert value(view(user("go"), there, *others, back), TREND) == [label]


def applied(*lines: str) -> Part:
    """A command that applies a diff of line 10 of a file."""
    diff = "\n".join(("--- a/a.py", "+++ b/a.py", "@@ -10 +10 @@", *lines))
    return call("Bash", command=f"git apply <<'E'\n{diff}\nE")


def test_what_commands_remove_and_bring_back_is_oscillation_too() -> None:
    there, back = applied("-total = sum(x)", "+total = mean(x)"), applied("-total = mean(x)", "+total = sum(x)")
    onward = applied("-total = mean(x)", "+total = median(x)")
    assert value(view(user("go"), there, back), TREND) == ["oscillating"]
    assert value(view(user("go"), there, onward), TREND) == ["unchanged"]
    by_tool = edit(hunk(10, 1, 1), old="total = mean(x)", new="total = sum(x)")
    assert value(view(user("go"), there, by_tool), TREND) == ["oscillating"]


def test_of_a_command_that_changes_several_files_each_region_has_its_own_lines() -> None:
    two = "--- a/a.py\n+++ b/a.py\n@@ -10 +10 @@\n-{0}\n+{1}\n--- a/b.py\n+++ b/b.py\n@@ -10 +10 @@\n-{2}\n+{3}\n"
    first = call("Bash", command="git apply <<'E'\n" + two.format("alpha", "beta", "gamma", "delta") + "E")
    # The line that goes from a.py comes in b.py: nothing is brought back.
    second = call("Bash", command="git apply <<'E'\n" + two.format("beta", "other", "delta", "alpha") + "E")
    assert value(view(user("go"), first, second), TREND) == ["unchanged", "unchanged"]


@pytest.mark.parametrize(
    ("command", "again"), [("sed -i 's/x/y/g' a.py", 1), ("sed -i 's/x.*/y/' a.py", 0), ("make > a.py", 0)]
)
def test_a_command_that_moves_no_line_leaves_regions_where_they_are(command: str, again: int) -> None:
    one = view(user("go"), edit(hunk(10, 2, 2)), call("Bash", command=command), edit(hunk(11, 1, 1)))
    assert value(one, COUNT) == again


def test_readding_without_taking_away_what_came_since_is_no_oscillation() -> None:
    removed = edit(hunk(10, 1, 1), old="check(user)", new="pass  # later")
    readded = edit(hunk(11, 1, 1), old="unrelated = 1", new="check(user)")
    assert value(view(user("go"), removed, readded), TREND) == ["unchanged"]


@pytest.mark.parametrize(
    ("sizes", "rel"),
    [([2, 4], 0.6667), ([4, 2], -0.6667), ([3, 3, 3], 0.0), ([1, 2, 3], 1.0), ([0, 0], 0.0), ([5], 0.0)],
)
def test_the_trend_is_the_slope_over_the_whole_series_as_a_share_of_its_mean(sizes: list[int], rel: float) -> None:
    assert trend(sizes) == rel


def test_editing_nothing_but_text_of_the_answer_leaves_no_region() -> None:
    assert value(view(user("go"), say("done")), HISTORY) == []
