"""What shell commands change: with which text, from where, and what of it was done where the line failed."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.profile import SHELL
from agentsignals.model import CallStatus, Edit, Session
from agentsignals.shell.python import script

PYTHON = "python3 - <<'PY'\n{}\nPY"
DIFF = (
    "--- a/src/a.py\n+++ b/src/a.py\n@@ -3,2 +3,3 @@\n k\n-x\n+y\n+z\n--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+n\n"
)


def edits(*commands: tuple[str, CallStatus, str]) -> list[Edit]:
    """The edits of a session that ran these commands: each with how it ended and what it printed."""
    session = Session(session_id="s", context="eval", format="f", agent="a", artifact_id="x")
    builder = SessionBuilder(session)
    for n, (command, status, output) in enumerate(commands):
        builder.call(str(n), "bash", json.dumps({"command": command}), SHELL)
        builder.result(str(n), output, status, exit_code=0 if status == "ok" else 1)
    return builder.finish().edits


@pytest.mark.parametrize(
    ("command", "places"),
    [
        ("cat > f <<E\na\nb\nE", [(1, 2, 2, None, True)]),
        ("cat >> f <<E\na\nE", [(None, None, 1, 0, False)]),
        ("sed -i '7s/a/b/' f", [(7, 7, 1, 1, False)]),
        ("sed -i '7,9d' f", [(7, 7, 0, 3, False)]),
        ("sed -i '7i x' f", [(7, 7, 1, 0, False)]),
        ("sed -i 's/a/b/g' f", [(None, None, None, None, False)]),
        ("sed -i 's/a.*/b/g' f", [(None, None, None, None, True)]),
        (
            PYTHON.format("s = open('f').read()\nopen('f','w').write(s.replace('a', 'c\\nd'))"),
            [(None, None, None, None, True)],
        ),
        (f"git apply <<'E'\n{DIFF}E", [(4, 5, 2, 1, False), (1, 1, 1, 0, True)]),
        (
            PYTHON.format("s = open('f').read()\nopen('f','w').write(s.replace('a\\nb', 'c\\nb\\nd'))"),
            [(None, None, 3, 2, False)],
        ),
        ("git checkout -- f", [(None, None, None, None, True)]),
    ],
)
def test_its_edits_have_the_sizes_and_places_that_it_tells(command: str, places: list[tuple[object, ...]]) -> None:
    made = edits((command, "ok", ""))
    assert [(e.start_line, e.end_line, e.added, e.removed, e.whole_file) for e in made] == places
    assert {e.via for e in made} == {"shell"}


@pytest.mark.parametrize(
    ("command", "output", "paths"),
    [
        ("cat > f <<E\na\nE\npytest", "1 failed", ["f"]),
        ("cd d && cat > f <<E && pytest\na\nE", "1 failed", ["d/f"]),
        ("cat > d/f <<E && pytest\na\nE", "bash: d/f: No such file or directory", []),
        ("pytest && rm f && ls", "1 failed", []),
        ("pytest; rm f; ls x", "", ["f"]),
        ("set -e\npytest\nrm f\nls", "", []),
        ("rm f", "", []),
        ("if a; then rm f; fi; b", "", []),
        ("a || rm f; b", "", []),
        (PYTHON.format("open('f','w').write('a')") + "\nls x", "Traceback", []),
    ],
)
def test_of_a_line_that_failed_the_edits_count_that_came_before(command: str, output: str, paths: list[str]) -> None:
    assert [e.path for e in edits((command, "error", output))] == paths


def test_a_script_written_before_and_run_later_makes_its_edits_where_it_is_run() -> None:
    made = edits(
        ("cat > fix.py <<'E'\nopen('f', 'w').write('a')\nE", "ok", ""),
        ("python fix.py", "ok", ""),
        ("sed -i 's/./x/' fix.py", "ok", ""),
        ("python fix.py", "ok", ""),  # what it does now nobody knows
    )
    assert [(e.seq, e.path) for e in made if e.path == "f"] == [(2, "f")]


@pytest.mark.parametrize(
    "text",
    [
        "x = 'a'\n" + "x = x + x\n" * 200,
        "x = ['a']\n" + "x = x + x\n" * 200,
        "x = 'aa'\n" + "x = x.replace('a', x)\n" * 100,
        "for a in [1,2,3,4,5,6,7,8,9]:\n"
        + "".join(" " * n + f"for a{n} in [1,2,3,4,5,6,7,8,9]:\n" for n in range(1, 15))
        + " " * 15
        + "open('f','w')",
        "(" * 5_000,
        "-" * 50_000 + "1",
        "a" + ".b()" * 20_000,
        "def f():\n  f()\nf()",
        "x = [" * 90 + "]" * 90,
    ],
)
def test_a_hostile_script_costs_no_time(text: str) -> None:
    began = time.process_time()
    script(text)
    assert time.process_time() - began < 2


_PIECES = (
    "s| = |open('f','w')|.write(|s.replace('a','b')|)|\n|for s in [1, 'a']:\n |Path('p')|/|'x'|.read_text()"
    "|with open('f') as h:\n |h.read()|[|]|def s(h):\n |+|import os\nos.remove(|{1:|}"
)


@settings(max_examples=40)
@given(st.lists(st.sampled_from(_PIECES.split("|")), max_size=12))
def test_any_heap_of_python_is_read(pieces: list[str]) -> None:
    script("".join(pieces))


def test_nothing_is_written_while_a_script_is_read(tmp_path: Path) -> None:
    script(f"open({str(tmp_path / 'f')!r}, 'w').write('a')")
    assert not (tmp_path / "f").exists()
