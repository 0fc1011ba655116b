"""The replay: which line is which, a file whose lines keep their hands, and who can have made a change that no call
shows."""

from __future__ import annotations

import random
import time

import pytest

from agentsignals.repositories.line_states import (
    HUMAN,
    NEW,
    PREEXISTING,
    SHELL,
    UNKNOWN,
    FileState,
    align,
    align_loosely,
    committed,
    lines_of,
    swap_equals,
    written_by,
)
from agentsignals.repositories.replay import Chances
from agentsignals.repositories.working_trees import Activity


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("a b c", "a b c", [0, 1, 2]),
        ("a b c", "a x c", [0, NEW, 2]),
        ("a b c", "a c", [0, 2]),
        ("", "a b", [NEW, NEW]),
        ("a b", "", []),
        ("} a }", "} a } b }", [0, 1, 2, NEW, NEW]),
        ("a b c d", "d a b c", [NEW, 0, 1, 2]),
        ("x x x", "x x", [0, 1]),
    ],
)
def test_lines_are_matched_in_order(old: str, new: str, expected: list[int]) -> None:
    assert align(old.split(), new.split()) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected", "loosely"),
    [
        (["\tif x:", "\t\treturn 1"], ["    if x:", "        return 1"], [0, 1], {0, 1}),
        (["f(a, b)"], ["f(", "    a,", "    b,", ")"], [0, 0, 0, 0], {0, 1, 2, 3}),
        (["x = 'y'"], ['x = "y"'], [0], {0}),
        (["keep", "x = 1", "end"], ["keep", "x = 2", "end"], [0, NEW, 2], set()),
        (["a = [1,", "     2]", "tail"], ["a = [1, 2]", "tail"], [0, 2], {0}),
        (["one()"], ["one()", "", "two()"], [0, NEW, NEW], set()),
    ],
)
def test_what_a_formatter_changes_still_matches(
    old: list[str], new: list[str], expected: list[int], loosely: set[int]
) -> None:
    matched, told = align_loosely(old, new)
    assert (matched, told) == (expected, loosely)


def test_a_match_is_always_of_equal_lines_in_rising_order() -> None:
    rng = random.Random(7)  # noqa: S311  (examples, no secrets)
    for _ in range(300):
        old = [rng.choice("abcde}") for _ in range(rng.randrange(40))]
        new = [rng.choice("abcde}x") for _ in range(rng.randrange(40))]
        found = [(x, y) for y, x in enumerate(align(old, new)) if x != NEW]
        assert [old[x] for x, _ in found] == [new[y] for _, y in found]
        assert [x for x, _ in found] == sorted({x for x, _ in found})


def test_as_much_is_matched_as_a_plain_longest_common_subsequence_nearly_has() -> None:
    rng = random.Random(11)  # noqa: S311  (examples, no secrets)
    ours = best = 0
    for _ in range(60):
        old = [f"line {rng.randrange(60)}" for _ in range(40)]
        new = [line for line in old if rng.random() > 0.2]
        for _ in range(6):
            new.insert(rng.randrange(len(new) + 1), f"line {rng.randrange(90)}")
        ours += sum(x != NEW for x in align(old, new))
        best += _longest(old, new)
    assert ours >= 0.97 * best


def _longest(a: list[str], b: list[str]) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        last = 0
        for n, y in enumerate(b):
            last, row[n + 1] = row[n + 1], last + 1 if x == y else max(row[n], row[n + 1])
    return row[-1]


@pytest.mark.parametrize("kind", ["unique", "repeated", "reversed", "other"])
def test_fifty_thousand_lines_take_seconds(kind: str) -> None:
    old = [f"line {n if kind != 'repeated' else n % 5}" for n in range(50_000)]
    new = {
        "unique": [*old[:20_000], "new", *old[20_000:]],
        "repeated": [line for n, line in enumerate(old) if n % 7],
        "reversed": old[::-1],
        "other": [f"other {n}" for n in range(50_000)],
    }[kind]
    began = time.process_time()
    align_loosely(old, new)
    assert time.process_time() - began < 10


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


S = 1_000_000


def chances(busy: list[tuple[int, int]], *writers: int, said: str = "") -> Chances:
    spans = [(a * S, b * S) for a, b in busy]
    return Chances(
        [
            Activity(
                session_id="s", busy=spans, writers=[w * S for w in writers], commands=[(w * S, said) for w in writers]
            )
        ]
    )


@pytest.mark.parametrize(
    ("busy", "writers", "expected"),
    [
        ([(0, 100)], [], UNKNOWN),
        ([(0, 100)], [50], SHELL),
        ([(0, 40), (60, 100)], [], HUMAN),
        ([(0, 40), (60, 100)], [50], UNKNOWN),
        ([(0, 40), (45, 100)], [30], SHELL),
        ([(0, 40)], [], HUMAN),
        ([(0, 100), (20, 60)], [], UNKNOWN),
        ([], [], HUMAN),
    ],
)
def test_a_change_is_somebodys_only_when_nobody_else_had_the_chance(
    busy: list[tuple[int, int]], writers: list[int], expected: int
) -> None:
    assert chances(busy, *writers).unseen(10 * S, 90 * S, None, False) == expected


@pytest.mark.parametrize(
    ("busy", "written", "is_new", "expected"),
    [
        ([(0, 100)], 50, False, SHELL),
        ([(0, 60)], 50, False, UNKNOWN),
        ([(0, 20), (40, 100)], 50, False, UNKNOWN),
        ([(0, 20), (40, 100)], 50, True, SHELL),
        ([(0, 20), (40, 100)], 5, False, UNKNOWN),
    ],
)
def test_a_file_that_a_command_wrote_is_the_commands_until_a_person_has_the_chance(
    busy: list[tuple[int, int]], written: int, is_new: bool, expected: int
) -> None:
    assert chances(busy, 50).unseen(10 * S, 90 * S, written * S, is_new) == expected


@pytest.mark.parametrize(
    ("line", "after", "expected"),
    [
        ("    total = compute(1)", 10, True),
        ("total = compute(1)", 60, False),
        ("total = compute(2)", 10, False),
        ("x = 1", 10, False),
        ("\tquoted('text')", 10, True),
    ],
)
def test_a_line_that_stands_in_a_command_came_from_there(line: str, after: int, expected: bool) -> None:
    said = "python3 -c \"\ntotal = compute(1)\nx = 1\ntext = 'a\\n\\tquoted(\\'text\\')\\nb'\n\""
    assert chances([(0, 100)], 50, said=said).typed_by_command(line, after * S, 90 * S) is expected


def test_rest_is_what_no_session_was_busy_in() -> None:
    told = chances([(0, 20), (10, 30), (50, 60)])
    assert told.idle_us(0, 100 * S) == 60 * S
    assert told.idle_us(55 * S, 70 * S) == 10 * S
    assert not told.idle(0, 30 * S)
    assert told.idle(0, 45 * S)
