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
from agentsignals.shell import parse
from agentsignals.shell.python import script

PYTHON = "python3 - <<'PY'\n{}\nPY"
DIFF = (
    "--- a/src/a.py\n+++ b/src/a.py\n@@ -3,2 +3,3 @@\n k\n-x\n+y\n+z\n--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+n\n"
)

TEXTS: list[tuple[str, list[tuple[str, str, str | None, str]]]] = [
    # (path, how, origin, new text)
    ("cat > f <<'E'\n$a\nE", [("f", "whole", "written", "$a\n")]),
    ("cat > f <<E\n\\$a\nE", [("f", "whole", "written", "$a\n")]),
    ("cat >> f <<-E\n\ta\n\tE", [("f", "append", "written", "a\n")]),
    ("sudo tee -a f <<E >/dev/null\na\nE", [("f", "append", "written", "a\n")]),
    ("cat <<E | tee f\na\nE", [("f", "whole", "written", "a\n")]),
    ("echo 'a b' > f", [("f", "whole", "written", "a b\n")]),
    ("echo -n a >> f", [("f", "append", "written", "a")]),
    ("printf 'a\\n%s\\n' b > f", [("f", "whole", "written", "a\nb\n")]),
    ("echo $HOME > f", [("f", "", "program", "")]),
    ("./make > f 2> err", [("f", "", "program", ""), ("err", "", "program", "")]),
    ("cp a b", [("b", "", "copied", "")]),
    ("cat > a <<E\nx\nE\ncp a b", [("a", "whole", "written", "x\n"), ("b", "whole", "written", "x\n")]),
    ("sed 's/a/b/' f > t && mv t f", [("t", "", None, ""), ("f", "", "copied", "")]),
    ("git show HEAD~3:f > g", [("g", "", "repository", "")]),
    ("git show v2:f | sed 1d > g", [("g", "", "repository", "")]),
    ("curl -s https://h/x | tee f", [("f", "", "network", "")]),
    ("wget -q https://h/x.py?raw=1", [("x.py", "", "network", "")]),
    ("curl https://h/x", []),
    ("git checkout HEAD~2 -- f", [("f", "", "repository", "")]),
    ("git checkout v2 src/f.py g.py", [("src/f.py", "", "repository", ""), ("g.py", "", "repository", "")]),
    ("git checkout main", []),
    ("git checkout -b fix.py", []),
    ("git stash", [(":/", "", "repository", "")]),
    ("git stash && make; git stash pop", []),
    ("git reset --hard HEAD~1", [(":/", "", "repository", "")]),
    ("git reset --soft HEAD~1; git stash list", []),
    ("pip install --target lib a==2", [("lib", "", "package", "")]),
    ("pip install a; npm install", []),
    ("sed -i 's/a.b/c/g' f", [("f", "substitute", "written", "c")]),
    ("sed -i 's/f(x)/g(x)/' f", [("f", "substitute", "written", "g(x)")]),
    ("sed -E -i 's/f(x)/g(x)/' f", [("f", "", "program", "")]),
    ("sed -i '7s/a/b/' f", [("f", "substitute", "written", "b")]),
    ("sed -i '7,9d' f", [("f", "replace", None, "")]),
    ("sed -i '7a\\\nnew' f", [("f", "insert", "written", "new\n")]),
    ("sed -i '/x/d' f", [("f", "", "program", "")]),
    (f"git apply <<'E'\n{DIFF}E", [("src/a.py", "patch", "written", ""), ("new.py", "patch", "written", "")]),
    (
        f"cat > p.diff <<'E'\n{DIFF}E\npatch -p1 < p.diff",
        [
            ("p.diff", "whole", "written", DIFF),
            ("src/a.py", "patch", "written", ""),
            ("new.py", "patch", "written", ""),
        ],
    ),
    (
        f"cat > p.diff <<'E'\n{DIFF}E\ngit apply p.diff",
        [
            ("p.diff", "whole", "written", DIFF),
            ("src/a.py", "patch", "written", ""),
            ("new.py", "patch", "written", ""),
        ],
    ),
    ("bash <<'E'\necho a > f\nE", [("f", "whole", "written", "a\n")]),
    (PYTHON.format("open('f', 'w').write('a')"), [("f", "whole", "written", "a")]),
    (PYTHON.format("with open('f', 'a') as h:\n  h.write('a')"), [("f", "append", "written", "a")]),
    (
        PYTHON.format("from pathlib import Path\n(Path('d') / 'f').write_text('a' + 'b')"),
        [("d/f", "whole", "written", "ab")],
    ),
    (
        PYTHON.format("p = 'f'\ns = open(p).read()\ns = s.replace('a', 'b', 1)\nopen(p, 'w').write(s)"),
        [("f", "replace", "written", "b")],
    ),
    (
        PYTHON.format(
            "def sub(p, a, b):\n  t = open(p).read()\n  open(p, 'w').write(t.replace(a, b))\n"
            "sub('f', '1', '2')\nsub('g', '3', '4')"
        ),
        [("f", "replace", "written", "2"), ("g", "replace", "written", "4")],
    ),
    (
        PYTHON.format("for p, t in [('f', '1'), ('g', '2')]:\n  open(p, 'w').write(t)"),
        [("f", "whole", "written", "1"), ("g", "whole", "written", "2")],
    ),
    (
        PYTHON.format("out = []\nfor l in open('f'):\n  out.append(l)\nopen('f', 'w').write(''.join(out))"),
        [("f", "", "program", "")],
    ),
    (
        PYTHON.format("out = ''\nfor l in open('f'):\n  out += 'x'\nopen('f', 'w').write(out)"),
        [("f", "", "program", "")],
    ),
    (
        PYTHON.format("import re\ns = open('f').read()\nopen('f', 'w').write(re.sub('a', 'b', s))"),
        [("f", "", "program", "")],
    ),
    (PYTHON.format("import json\nwith open('f', 'w') as h:\n  json.dump({}, h)"), [("f", "", "program", "")]),
    (
        PYTHON.format("from urllib.request import urlopen\nopen('f', 'wb').write(urlopen('https://h/x').read())"),
        [("f", "", "network", "")],
    ),
    (
        PYTHON.format("import shutil, os\nshutil.copy('a', 'f')\nos.remove('g')"),
        [("f", "", "copied", ""), ("g", "", None, "")],
    ),
    (
        PYTHON.format("import subprocess\nsubprocess.run(['sed', '-i', 's/a/b/', 'f'])"),
        [("f", "substitute", "written", "b")],
    ),
    (PYTHON.format("print(open('f').read())"), []),
    (PYTHON.format("open(name, 'w').write('x')"), []),
    (PYTHON.format("this is no python"), []),
]


@pytest.mark.parametrize(("command", "expected"), TEXTS)
def test_a_command_says_what_it_writes_and_where_it_is_from(
    command: str, expected: list[tuple[str, str, str | None, str]]
) -> None:
    writes = [(w.path, w.how, w.origin, w.new if w.how != "patch" else "") for w in parse(command).writes]
    assert writes == expected


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


@settings(max_examples=40)
@given(
    st.lists(
        st.sampled_from(
            [
                "s",
                " = ",
                "open('f','w')",
                ".write(",
                "s.replace('a','b')",
                ")",
                "\n",
                "for s in [1, 'a']:\n ",
                "Path('p')",
                "/",
                "'x'",
                ".read_text()",
                "with open('f') as h:\n ",
                "h.read()",
                "[",
                "]",
                "def s(h):\n ",
                "+",
                "import os\nos.remove(",
                "{1:",
                "}",
            ]
        ),
        max_size=12,
    )
)
def test_any_heap_of_python_is_read(pieces: list[str]) -> None:
    script("".join(pieces))


def test_nothing_is_written_while_a_script_is_read(tmp_path: Path) -> None:
    script(f"open({str(tmp_path / 'f')!r}, 'w').write('a')")
    assert not (tmp_path / "f").exists()
