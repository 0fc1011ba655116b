"""chat.agent_self_overwrite_share."""

from __future__ import annotations

import pytest

from agentsignals.changes.hunks import Hunk
from agentsignals.model import Edit
from agentsignals.views.session import SessionView
from tests.build import Part, call, session, user, view
from tests.signals.ask import absent, detail, lines, value

PATH = "chat.agent_self_overwrite_share"


def hunk(at: int, added: int, removed: int, new_at: int | None = None) -> Hunk:
    start = new_at if new_at is not None else at
    return Hunk(start_line=start, end_line=start + max(added, 1) - 1, added=added, removed=removed, old_start=at)


def edit(*hunks: Hunk, path: str = "a.py", **more: object) -> Part:
    return call("Edit", path=path, hunks=list(hunks), **more)  # type: ignore[arg-type]  # fields of a call


def whole(lines_added: int, removed: int | None = 0) -> Hunk:
    return Hunk(
        start_line=1,
        end_line=lines_added,
        added=lines_added,
        removed=removed,
        old_start=None if removed is None else 1,
        whole_file=True,
    )


@pytest.mark.parametrize(
    ("parts", "num", "den"),
    [
        ([edit(hunk(1, 10, 0))], 0, 10),
        ([edit(hunk(1, 10, 0)), edit(hunk(3, 0, 4))], 4, 10),
        ([edit(hunk(1, 10, 0)), edit(hunk(3, 2, 4))], 4, 12),
        ([edit(hunk(1, 10, 0)), edit(hunk(50, 0, 4))], 0, 10),
        ([edit(hunk(1, 10, 0)), edit(hunk(9, 0, 4))], 2, 10),
        # A hunk above moves the lines below it along.
        ([edit(hunk(20, 5, 0)), edit(hunk(1, 10, 0)), edit(hunk(30, 0, 5))], 5, 15),
        ([edit(hunk(20, 5, 0)), edit(hunk(1, 10, 0)), edit(hunk(20, 0, 5))], 0, 15),
        ([edit(hunk(20, 5, 0)), edit(hunk(1, 0, 10)), edit(hunk(10, 0, 5))], 5, 5),
        # Two hunks of one call: the second's old place is from before the call.
        ([edit(hunk(20, 5, 0)), edit(hunk(1, 10, 0), hunk(20, 0, 5, 30))], 5, 15),
        # A line put into the middle does not make the lines around it lost.
        ([edit(hunk(1, 10, 0)), edit(hunk(5, 1, 0)), edit(hunk(1, 0, 11))], 11, 11),
        # A line of the agent, replaced by the agent, is its line again.
        ([edit(hunk(1, 1, 1)), edit(hunk(1, 1, 1)), edit(hunk(1, 1, 1))], 2, 3),
        # Another file is another matter.
        ([edit(hunk(1, 5, 0)), edit(hunk(1, 0, 5), path="b.py")], 0, 5),
    ],
)
def test_lines_the_agent_added_and_removed_again_are_followed_by_their_place(
    parts: list[Part], num: float, den: int
) -> None:
    one = view(user("go"), *parts)
    assert (detail(one, PATH)["num"], detail(one, PATH)["den"]) == (num, den)
    assert value(one, PATH) == pytest.approx(num / den)


def test_a_hunk_of_two_changes_loses_no_more_than_it_removed() -> None:
    spread = Hunk(
        start_line=1, end_line=10, added=1, removed=1, old_start=1
    )  # ten lines long, of which one was replaced
    one = view(user("go"), edit(hunk(1, 10, 0)), edit(spread))
    assert detail(one, PATH)["num"] == 1


def test_a_file_written_anew_loses_what_it_held_and_a_deleted_file_everything() -> None:
    again = view(user("go"), call("Write", path="a.py", hunks=[whole(10)], creates=True), edit(whole(4, 10)))
    assert (detail(again, PATH)["num"], detail(again, PATH)["den"]) == (10, 14)
    gone = view(user("go"), edit(hunk(1, 5, 0)), call("Bash", command="rm a.py"))
    assert (detail(gone, PATH)["num"], detail(gone, PATH)["den"]) == (5, 5)
    assert lines(gone, PATH) == [3]


def test_a_rewrite_that_does_not_say_what_it_removed_is_followed_anew() -> None:
    one = view(user("go"), edit(hunk(1, 5, 0)), edit(whole(8, None)), edit(hunk(1, 0, 8)))
    assert (detail(one, PATH)["num"], detail(one, PATH)["den"]) == (8, 13)
    assert detail(one, PATH)["unfollowed_lines"] == 5


def test_a_change_through_the_shell_ends_the_following_of_that_file() -> None:
    one = view(user("go"), edit(hunk(1, 5, 0)), call("Bash", command="sed -i s/a/b/ a.py"), edit(hunk(1, 0, 5)))
    found = detail(one, PATH)
    assert (found["num"], found["edits_without_lines"], found["unfollowed_lines"]) == (0, 1, 5)


def test_resetting_the_whole_tree_is_not_counted_as_removing_lines() -> None:
    one = view(user("go"), edit(hunk(1, 5, 0)), call("Bash", command="git restore ."), edit(hunk(1, 0, 5)))
    assert (detail(one, PATH)["num"], detail(one, PATH)["unfollowed_lines"]) == (0, 5)


def test_evidence_names_the_edits_that_removed_lines_and_those_that_added() -> None:
    one = view(user("go"), edit(hunk(1, 10, 0)), edit(hunk(40, 0, 1)), edit(hunk(2, 0, 2)))
    assert lines(one, PATH) == [4]
    assert lines(one, PATH, "denominator") == [2]


def test_without_edits_or_line_counts_or_added_lines_there_is_no_share() -> None:
    assert absent(view(user("go")), PATH) == ("not_applicable", "no_edit")
    shell = view(user("go"), call("Bash", command="sed -i s/a/b/ a.py"))
    assert absent(shell, PATH) == ("missing_field", "line_counts")
    assert absent(view(user("go"), edit(hunk(1, 0, 3))), PATH) == ("not_computable", "zero_denominator")


def test_many_edits_of_one_file_are_followed_in_reasonable_time() -> None:
    made = session(user("go"))
    made.edits = [
        Edit(
            seq=n,
            turn=0,
            thread="main",
            call_id="c",
            path="a.py",
            op="modify",
            via="edit_tool",
            hunk=0,
            start_line=2 * n + 1,
            end_line=2 * n + 1,
            added=1,
            removed=0,
            old_start=2 * n + 1,
        )
        for n in range(2_000)
    ]
    assert value(SessionView(made), PATH) == 0.0
