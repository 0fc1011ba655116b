"""user.region_*: where the code was edited, again, and how that went."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsignals.changes.hunks import Hunk, changed_lines, lines_by_file
from agentsignals.formats.profile import EDIT_ROLES
from agentsignals.model import Absent, encode_roles
from agentsignals.signals.catalog import by_path, explain, measure, values
from agentsignals.signals.user.regions import LOOKED_BACK_CALLS, trend
from agentsignals.views.history import MOST_PRINTS, MOST_SHARERS, History, SessionSummary, histories, prints
from agentsignals.views.session import SessionView
from tests.build import Part, call, user, view
from tests.signals.ask import Case, absent, value

HISTORY, COUNT, TREND = "user.region_edit_history[]", "user.region_re_edit_count", "user.region_edit_convergence[]"


def hunk(at: int, added: int, removed: int, new_at: int | None = None) -> Hunk:
    start = new_at if new_at is not None else at
    return Hunk(start_line=start, end_line=start + max(added, 1) - 1, added=added, removed=removed, old_start=at)


def edit(*hunks: Hunk, path: str = "a.py", old: str = "", new: str = "", **more: Any) -> Part:
    return call("Edit", path=path, hunks=list(hunks), old_string=old, new_string=new, **more)


@pytest.mark.parametrize(
    ("sizes", "rel"),
    [([2, 4], 0.6667), ([4, 2], -0.6667), ([3, 3, 3], 0.0), ([1, 2, 3], 1.0), ([0, 0], 0.0), ([5], 0.0)],
)
def test_the_trend_is_the_slope_over_the_whole_series_as_a_share_of_its_mean(sizes: list[int], rel: float) -> None:
    assert trend(sizes) == rel


# user.prior_sessions_same_region, and the prints of lines it compares.

PRINTS, PATH = "user.edited_line_prints", "user.prior_sessions_same_region"
BEFORE, AFTER = "total = add(first, second)", "total = add(first, third)"


def changing(old: str = BEFORE, new: str = AFTER, path: str = "a.py", **more: Any) -> Part:
    return call("Edit", path=path, old_string=old, new_string=new, **more)


def outline(name: str, at: int, one: SessionView, place: str | None = "r", **more: Any) -> SessionSummary:
    lines = value(one, PRINTS)
    return SessionSummary(
        session_id=name,
        place=place,
        started_at=at,
        ended_at=at + 5,
        lines=lines if isinstance(lines, dict) else {},
        **more,
    )


def prior(one: SessionView, *earlier: SessionView, **more: Any) -> Any:
    """The value for a session behind these others of the same place."""
    outlines = [outline(f"e{n}", n, e, **more) for n, e in enumerate(earlier)]
    history = histories([*outlines, outline("now", 100, one)])["now"]
    return next(r for r in measure(one, values(one), history) if r.signal.path == PATH).value


def session(*parts: Part) -> SessionView:
    return view(user("go"), *parts)


def test_a_session_that_changes_what_an_earlier_one_wrote_works_on_the_same_place() -> None:
    again = session(changing(AFTER, "total = add(third, first)"))
    assert prior(again, session(changing())) == 1
    assert prior(again, session(changing()), session(changing())) == 2


@pytest.mark.parametrize(
    "earlier",
    [
        changing(path="b.py"),
        changing("one = compute()", "two = compute()"),
        # The line is there, and unchanged: quoted around another change.
        changing(f"{AFTER}\none = compute()", f"{AFTER}\ntwo = compute()"),
        changing(status="error"),
        call("Read", path="a.py", result=AFTER),
    ],
    ids=["another file", "another line", "quoted only", "failed", "read only"],
)
def test_what_is_no_change_of_the_same_line_is_no_work_on_the_same_place(earlier: Part) -> None:
    assert prior(session(changing()), session(earlier)) == 0


def test_indentation_does_not_matter_and_short_lines_tell_no_place() -> None:
    assert prior(session(changing(f"    {BEFORE}", "pass")), session(changing(BEFORE, "x"))) == 1
    assert (
        prior(
            session(changing("a = 1234", "b = 1234")),
            session(changing("a = 1234", "c = 1234")),
        )
        == 0
    )
    assert (
        prior(
            session(changing("a = 12345", "b = 1234")),
            session(changing("a = 12345", "c = 1234")),
        )
        == 1
    )


def test_a_line_that_several_files_have_tells_no_place() -> None:
    both = session(changing(), changing("raise Other", BEFORE, path="b.py"))
    assert prior(session(changing(BEFORE, "raise Another")), both) == 0
    elsewhere = session(changing(path="b.py"))
    assert (
        prior(
            session(changing()),
            session(changing()),
            elsewhere,
            session(changing(path="b.py")),
        )
        == 0
    )


def test_a_file_written_whole_is_known_again_by_each_of_its_lines() -> None:
    text = "\n".join(f"value_{n} = {n}" for n in range(50))
    assert (
        prior(
            session(changing("value_31 = 31", "value_31 = 7")),
            session(call("Write", path="a.py", content=text)),
        )
        == 1
    )


ROLES = encode_roles(EDIT_ROLES)
PATCH = f"""*** Begin Patch
*** Update File: a.py
@@ def f
 same = line
-{BEFORE}
+{AFTER}
*** Add File: b.py
+other = line()
*** End Patch"""


def test_a_patch_of_several_files_gives_each_file_its_own_lines() -> None:
    assert lines_by_file(json.dumps({"input": PATCH}), ROLES) == {
        "": set(),
        "a.py": {BEFORE, AFTER},
        "b.py": {"other = line()"},
    }


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ("no json", {"": set()}),
        ("[1, 2]", {"": set()}),
        ('{"old_string": 1, "new_string": null}', {"": set()}),
        ('{"edits": [{"oldText": "a\\nb", "newText": "b\\nc"}, 7]}', {"": {"a", "c"}}),
        (
            '{"diff": "--- a/x.py\\n+++ b/x.py\\n@@ -1 +1 @@\\n-old\\n+new\\n kept"}',
            {"": set(), "x.py": {"old", "new"}},
        ),
        ('{"content": "a\\n  b"}', {"": {"a", "b"}}),
    ],
)
def test_lines_are_read_off_whatever_an_edit_tool_is_given(arguments: str, found: dict[str, set[str]]) -> None:
    assert lines_by_file(arguments, ROLES) == found


@pytest.mark.parametrize("depth", [10, 5_000])
def test_edits_within_edits_are_not_followed_into_the_depth(depth: int) -> None:
    nested = '{"edits": [' * depth + "{}" + "]}" * depth
    assert lines_by_file(nested, ROLES) == {"": set()}
    assert changed_lines(nested, ROLES) == (frozenset(), frozenset())


def test_only_earlier_sessions_of_people_in_the_same_place_count() -> None:
    one, other = session(changing()), session(changing())
    assert prior(one, other, place="elsewhere") == 0
    assert prior(one, other, parent_session_id="p") == 0
    assert prior(one, other, n_turns=0) == 0
    later = histories([outline("now", 0, one), outline("later", 50, other)])
    assert (later["now"].same_lines, later["later"].same_lines) == ({}, {"now": ["a.py"]})


def test_of_two_sessions_that_start_together_neither_is_the_earlier() -> None:
    found = histories([outline("a", 7, session(changing())), outline("b", 7, session(changing()))])
    assert (found["a"].same_lines, found["b"].same_lines) == ({}, {})


def test_the_order_of_the_sessions_given_does_not_matter() -> None:
    outlines = [outline(f"s{n}", n, session(changing())) for n in range(4)]
    assert histories(outlines) == histories(reversed(outlines))
    assert list(histories(outlines)["s3"].same_lines) == ["s0", "s1", "s2"]


def test_a_line_that_hundreds_of_sessions_change_is_remembered_for_the_latest() -> None:
    outlines = [outline(f"s{n:03}", n, session(changing())) for n in range(MOST_SHARERS + 9)]
    assert len(histories(outlines)[f"s{MOST_SHARERS + 8:03}"].same_lines) == MOST_SHARERS


def test_prints_are_eight_hexadecimal_digits_of_each_line_and_bounded() -> None:
    assert prints(["short", ""]) == ""
    assert prints([BEFORE]) == prints([BEFORE, "short"]) != prints([AFTER])
    assert len(prints([BEFORE, AFTER])) == 16
    assert len(prints([f"a long line {n}" for n in range(3 * MOST_PRINTS)])) == 8 * MOST_PRINTS
    assert len(prints(["\ud800 half a character"])) == 8


def test_without_edits_or_texts_or_a_place_there_is_nothing_to_compare() -> None:
    nothing, shell = session(call("Read", path="a.py")), session(call("Bash", command="sed -i s/a/b/ a.py"))
    assert absent(nothing, PRINTS) == ("not_applicable", "no_edit")
    assert absent(shell, PRINTS) == ("missing_field", "line_texts")
    assert prior(nothing, session(changing())) == Absent("not_applicable", "no_edit")
    assert prior(shell, session(changing())) == Absent("missing_field", "line_texts")
    one = session(changing())
    alone = measure(one, values(one), History(place=None, known_until=0, known_since=0))
    assert Absent("not_applicable", "repo_unknown") in [r.value for r in alone if r.signal.path == PATH]


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (f"cat > a.py <<'E'\nimport os\n{BEFORE}\nE", [BEFORE]),
        (f"cat >> a.py <<'E'\n{BEFORE}\nE", [BEFORE]),
        (f"git apply <<'E'\n--- a/a.py\n+++ b/a.py\n@@ -4 +4 @@\n-{BEFORE}\n+{AFTER}\nE", [BEFORE, AFTER]),
        (f"sed -i '7i {BEFORE}' a.py", [BEFORE]),
        (f"sed -i 's/{BEFORE}/{AFTER}/' a.py", []),
        (f"cat > b.md <<'E'\n{BEFORE}\nE\nmake > a.py", None),
    ],
)
def test_lines_that_a_command_tells_are_prints_of_its_file(command: str, told: list[str] | None) -> None:
    """Of a part of a line there is none."""
    made = session(call("Bash", command=command))
    if told:
        assert set(value(made, PRINTS)) == {"a.py"}
        assert prior(made, session(changing())) == 1
        assert all(prints([line]) in value(made, PRINTS)["a.py"] for line in told)
    elif told is None:
        assert set(value(made, PRINTS)) == {"b.md"}
    else:
        assert absent(made, PRINTS) == ("missing_field", "line_texts")


def test_the_value_names_the_sessions_and_their_files() -> None:
    one = session(changing())
    history = histories([outline("before", 0, one), outline("now", 100, one)])["now"]
    found, detail, why = explain(by_path(PATH), one, values(one), history)
    assert (found, detail) == (1, {"method": "content", "sessions": ["before"]})
    assert any("session before changed a.py" in rule for rule in why.rules)


CASES = (
    *(Case("what was removed hundreds of edits ago is not brought back",
           view(user("go"), edit(hunk(10, 1, 1), old="total = sum(x)", new="total = 0000"), *[edit(hunk(10, 1, 1),
           old=f"total = {n:04}", new=f"total = {n + 1:04}") for n in range(between)], edit(hunk(10, 3, 1),
           old=f"total = {between:04}", new="total = sum(x)\n\n\n")), TREND, [label])
      for between, label in [(LOOKED_BACK_CALLS - 2, "oscillating"), (LOOKED_BACK_CALLS, "expanding")]),
    *(Case("a command that moves no line leaves regions where they are",
           view(user("go"), edit(hunk(10, 2, 2)), call("Bash", command=command), edit(hunk(11, 1, 1))), COUNT, again)
      for command, again in [("sed -i 's/x/y/g' a.py", 1), ("sed -i 's/x.*/y/' a.py", 0), ("make > a.py", 0)]),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case(case: Case) -> None:
    case.check()
