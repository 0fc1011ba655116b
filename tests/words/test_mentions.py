"""Which files and folders words name."""

from __future__ import annotations

import time

import pytest

from agentsignals.words.lexicon import Mentions


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("fix parser.py", "src/parser.py"),
        ("fix `src/parser.py`.", "src/parser.py"),
        ("@src/parser.py please", "src/parser.py"),
        ("(see ./src/parser.py:12)", "src/parser.py"),
        ("/home/me/repo/src/parser.py", "src/parser.py"),
        ("Makefile? no: build/Makefile", "build/Makefile"),
    ],
)
def test_a_file_is_named_with_or_without_its_folders(text: str, path: str) -> None:
    assert Mentions([text]).file(path)
    assert Mentions([text]).place(path)


@pytest.mark.parametrize("text", ["fix parser", "parser.pyc", "the parser. Py is fine", "", "a/parser.pyx"])
def test_another_word_names_no_file(text: str) -> None:
    assert not Mentions([text]).file("src/parser.py")


@pytest.mark.parametrize(
    ("text", "path", "named"),
    [
        ("look into src/core/", "src/core/a.py", True),
        ("look into src/core/", "src/core/deep/a.py", True),
        ("look into core/", "src/core/a.py", True),
        ("look into src/core", "src/core/a.py", True),
        ("look into src/core", "src/corer/a.py", False),
        ("/home/me/repo/src/core/ is it", "src/core/a.py", True),
        # A named file speaks for its own folder alone.
        ("fix src/core/b.py", "src/core/a.py", True),
        ("fix src/core/b.py", "src/core/deep/a.py", False),
        ("fix src/core/b.py", "src/a.py", False),
        ("fix b.py", "a.py", False),
        ("nothing at all", "a.py", False),
    ],
)
def test_a_place_is_named_by_its_folder_or_by_a_file_beside_it(text: str, path: str, named: bool) -> None:
    assert Mentions([text]).place(path) is named


@pytest.mark.parametrize(
    "text", ["a/" * 30_000, "a" * 60_000, "a." * 30_000, "/" * 60_000, "\u2028/x/\ud800/" * 9_000, "a/b.c " * 10_000]
)
def test_a_paste_of_any_shape_takes_no_time(text: str) -> None:
    began = time.process_time()
    found = Mentions([text])
    assert not found.place("/".join(["x"] * 5_000))
    assert time.process_time() - began < 1
