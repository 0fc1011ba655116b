"""A file in the replay: what stays keeps its hand, what is replaced is found, what is lost is remembered."""

from __future__ import annotations

import random

import pytest

from agentsignals.repositories.line_states import (
    HUMAN,
    PREEXISTING,
    SHELL,
    FileState,
    committed,
    lines_of,
    swap_equals,
    written_by,
)


def state(text: str) -> FileState:
    return FileState(lines_of(text), 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", []), ("a", ["a"]), ("a\n", ["a"]), ("a\r\nb\r\n", ["a", "b"]), ("\n", [""]), ("a\n\nb", ["a", "", "b"])],
)
def test_lines_have_no_ends(text: str, expected: list[str]) -> None:
    assert lines_of(text) == expected


@pytest.mark.parametrize(
    ("before", "old", "new", "everywhere", "after", "marks"),
    [
        ("a\nb\nc", "b", "x", False, "a\nx\nc", "-7-"),
        ("a\nfoo(b)\nc", "b)", "x)", False, "a\nfoo(x)\nc", "-7-"),
        ("a\nb\nc", "a\nb\nc", "a\nnew\nb\nc", False, "a\nnew\nb\nc", "-7--"),
        ("b\na\nb", "b", "x", True, "x\na\nx", "7-7"),
        ("b\na\nb", "b", "x", False, "x\na\nb", "7--"),
        ("x = b + b", "b", "cc", True, "x = cc + cc", "7"),
        ("a\nb\nc", "b\n", "", False, "a\nc", "--"),
        ("a\nb", "b\n", "x\n", False, "a\nx", "-7"),
        ("line 1\nline 2", "line 1\r\nline 2", "line 1\r\nnew\r\nline 2", False, "line 1\nnew\nline 2", "-7-"),
        ("aa\n  indented\nbb", "\tindented", "\tindented\n\tmore", False, "aa\n\tindented\n\tmore\nbb", "-77-"),
    ],
)  # fmt: skip
def test_a_replacement_marks_what_is_new_and_nothing_else(
    before: str, old: str, new: str, everywhere: bool, after: str, marks: str
) -> None:
    file = state(before)
    assert file.replace(old, new, 7, everywhere, 7)
    assert file.lines == after.split("\n")
    assert "".join("7" if m == 7 else "-" for m in file.marks) == marks


def test_a_file_that_differs_from_what_an_edit_saw_is_brought_up_to_it() -> None:
    file = state("first line\nsecond line\nthird line\nfourth line")
    assert file.replace(
        "second line\ntyped by hand\nthird line", "second line\ntyped by hand\nnew line\nthird line", 3, False, HUMAN
    )
    assert file.lines == ["first line", "second line", "typed by hand", "new line", "third line", "fourth line"]
    assert file.marks == [PREEXISTING, PREEXISTING, HUMAN, 3, PREEXISTING, PREEXISTING]
    assert file.made == 1


def test_a_place_that_is_not_there_leaves_the_file_and_remembers_the_new_lines() -> None:
    file = state("one\ntwo")
    assert not file.replace("nothing like it\nat all here", "nothing like it\nsomething new", 4, False, HUMAN)
    assert (file.lines, file.made) == (["one", "two"], 1)
    assert file.find_lost("something new") == (4, True)
    assert file.find_lost("something new") is None


def test_rewriting_keeps_the_hands_of_lines_that_stay_and_counts_those_that_go() -> None:
    file = state("kept line\nold line")
    file.write("kept line\nmine one\nmine two", 1)
    file.write("kept line\nmine two\nmine three", 2)
    assert file.marks == [PREEXISTING, 1, 2]
    assert file.gone == [PREEXISTING, 1]
    assert file.find_lost("  mine one") == (1, False)


def test_lone_brackets_are_never_looked_for_elsewhere() -> None:
    file = state("")
    file.lose("  }", 3)
    assert file.find_lost("  }") is None


def test_a_substitution_is_made_in_every_line() -> None:
    file = state("a b a\nc\na")
    file.substitute("a", "x", 5, False)
    assert (file.lines, file.marks) == (["x b a", "c", "x"], [5, PREEXISTING, 5])
    file.substitute("a", "y", 6, True)
    assert (file.lines[0], file.made) == ("x b y", 3)


def test_insertions_and_appended_lines_have_their_place() -> None:
    file = state("a\nb")
    file.insert(1, "between", 1)
    file.insert(99, "end", 2)
    file.insert(None, "last", 3)
    assert file.lines == ["a", "between", "b", "end", "last"]
    assert file.marks == [PREEXISTING, 1, PREEXISTING, 2, 3]


@pytest.mark.parametrize("new", [4, SHELL, HUMAN])
def test_of_equal_lines_the_added_ones_are_the_new_ones(new: int) -> None:
    marks = [new, PREEXISTING, PREEXISTING, committed(2)]
    swap_equals(["}", "x", "}", "}"], marks, [False, False, True, False])
    assert marks == [PREEXISTING, PREEXISTING, new, committed(2)]


def test_added_lines_that_are_new_already_are_left_alone() -> None:
    marks = [4, 5]
    swap_equals(["}", "}"], marks, [True, True])
    assert marks == [4, 5]


def test_a_committed_line_still_names_its_operation() -> None:
    assert [written_by(committed(n)) for n in (0, 1, 500)] == [0, 1, 500]
    assert {written_by(m) for m in (PREEXISTING, HUMAN, SHELL, 0, 7)} == {-1}


def test_whatever_is_done_to_it_every_line_has_a_mark() -> None:
    rng = random.Random(3)  # noqa: S311  (examples, no secrets)
    for _ in range(200):
        file = state(_text(rng))
        for mark in range(12):
            _change(file, rng, mark)
            assert len(file.lines) == len(file.marks)
            assert not any("\n" in line for line in file.lines)
            assert set(file.marks) <= {PREEXISTING, HUMAN, *range(mark + 1)}


def _text(rng: random.Random) -> str:
    words = ["a", "b b", "  c", "}", "", "long line here", "\t", "x\ry"]
    return "\n".join(rng.choice(words) for _ in range(rng.randrange(6)))


def _change(file: FileState, rng: random.Random, mark: int) -> None:
    new = _text(rng)
    match rng.randrange(5):
        case 0:
            file.replace(_text(rng) or "a", new, mark, rng.random() < 0.5, HUMAN)
        case 1:
            file.write(new, mark)
        case 2:
            file.insert(None, new, mark)
        case 3:
            file.insert(rng.randrange(-2, 9), new, mark)
        case _:
            file.substitute("b", new.partition("\n")[0], mark, True)
