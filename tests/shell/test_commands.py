"""Command lines: any text is read, what they write, wait for, and fetch from outside."""

from __future__ import annotations

import json
import time
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.profile import SHELL
from agentsignals.model import CallStatus, Edit, Session
from agentsignals.shell import parse
from agentsignals.shell.commands import answer_paths, is_log, is_polling, outside_sources, search_mode, sources_in_code
from agentsignals.shell.python import script
from agentsignals.shell.tokens import split
from tests.quick import each_row

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"

COUNTS = {"build": 89, "read": 78, "run": 104, "search": 233, "test": 134, "vcs": 488, "write": 34}
"""Distinct commands of the Claude Code corpus by kind, read by eye when they were pinned."""

READ_BY_EYE = [json.loads(line) for line in Path(__file__).with_name("commands.jsonl").read_text("utf-8").splitlines()]
"""Commands with their reading: kind, file, and each file written (path, operation, how, origin, new text)."""


@each_row("expected", READ_BY_EYE)
def test_a_command_is_read_as_by_eye(expected: dict[str, Any]) -> None:
    read = parse(expected["command"])
    writes = [[w.path, w.op, w.how, w.origin, w.new] for w in read.writes]
    assert {"command": expected["command"], "kind": read.kind, "path": read.path, "writes": writes} == expected


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=100))
def test_any_text_is_read(command: str) -> None:
    assert parse(command).kind in COUNTS


_WORDS = "cat sed -i git rm mv -c bash a/b $X *.py 2>&1 EOF <<EOF > >> < << ( ) $( ${ ` ' \" \\ | || && ; & # { } [ ]"
SHELLISH = [*_WORDS.split(), "\n", "*** Begin Patch", "*** Add File: x", " "]


@given(st.lists(st.sampled_from(SHELLISH), max_size=60))
def test_any_heap_of_shell_words_is_read(words: list[str]) -> None:
    assert parse("".join(f"{w} " for w in words)).kind in COUNTS
    assert parse("".join(words)).kind in COUNTS


@pytest.mark.parametrize(
    "piece",
    ["<<a\n", "$(", "\"'", "'", '`$("', "a;", "(", "bash -c ", "\\", "a>b ", "*** Begin Patch", "find . -exec ",
     "sudo ", "xargs ", "A=1 "],
)  # fmt: skip
def test_a_hostile_command_costs_no_more_than_its_length(piece: str) -> None:
    command = piece * (1_000_000 // len(piece))
    began = time.process_time()
    parse(command)
    assert time.process_time() - began < 2


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real traces is not there")
def test_the_commands_of_the_corpus_by_kind() -> None:
    """Counts of distinct commands; a change here is to be read by eye, command by command."""
    counts: dict[str, int] = {}
    for command in _commands():
        kind = parse(command).kind
        counts[kind] = counts.get(kind, 0) + 1
    assert counts == COUNTS


def test_a_line_is_split_once_for_all_who_ask_about_it() -> None:
    before = split.cache_info().misses
    command = "cd src && sleep 3; tail -f run-of-this-test.log | grep -c error"
    assert parse(command).kind == "read" and is_polling(command) and search_mode(command) == "prints"
    assert split.cache_info().misses == before + 1


def _commands() -> set[str]:
    found: set[str] = set()
    for path in sorted((CORPUS / "sessions" / "claude-code").glob("*/*/transcript.jsonl")):
        for line in path.read_bytes().splitlines():
            if b'"name":"Bash"' not in line:
                continue
            record = msgspec.json.decode(line)
            if record["type"] == "assistant":
                blocks = record["message"]["content"]
                found.update(
                    b["input"]["command"] for b in blocks if b.get("name") == "Bash" and "command" in b["input"]
                )
    return found


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


ANSWERS = """gold.json Solution.py oracle.txt answers.md expected.json reference.c upstream.tar.x CACHE secret hidden
    grader.py grading verifier.sh x/eval/y.json judge.py attempt_2 attempt3.log previous.txt instance.json a.patch
    a.diff a.orig a.rej a.bak \u017folution.py upst\u0130ream/gold"""


@pytest.mark.parametrize("name", ANSWERS.split())
def test_a_file_is_named_like_an_answer_by_one_word(name: str) -> None:
    path = f"/srv/task/{name}"
    assert answer_paths(f"cat {path} | head") == [path]


@pytest.mark.parametrize("command", ["cat /srv/task/a.txt", "cat gold.json", "cat /usr/share/gold.json", "cat", ""])
def test_other_files_are_not(command: str) -> None:
    assert answer_paths(command) == []


@pytest.mark.parametrize("name", ["src/a.py.orig", "a.rej", "b.c.bak"])
def test_what_was_left_beside_a_file_needs_no_root(name: str) -> None:
    assert answer_paths(f"cat {name}") == [name]
    assert answer_paths(f"cat {name.upper()}") == []


PACKAGES = """lib/site-packages/a.py lib/dist-packages/a.py node_modules/a/b.js pkg/mod/a.go ~/.cargo/registry/a.rs
    ~/.m2/repository/a.jar ruby/gems/a.rb $(GOMODCACHE)/a.go ${GOMODCACHE}/a.go inspect.getsource(a)"""


@pytest.mark.parametrize("place", PACKAGES.split())
def test_a_package_is_known_by_its_place(place: str) -> None:
    assert [source.origin for source in outside_sources(f"cat {place}")] == ["package"]


@pytest.mark.parametrize(
    "call",
    [
        *("urlopen('{}')", "urlretrieve('{}')", "requests.get('{}')", "httpx.get('{}')", "aiohttp.get('{}')"),
        *("fetch('{}')", "axios.get('{}')"),
    ],
)
def test_code_that_gets_an_address_is_from_the_network(call: str) -> None:
    address = "https://example.org/a"
    assert [(source.origin, source.source) for source in sources_in_code(call.format(address))] == [
        ("network", address)
    ]
    assert (
        sources_in_code(call.format("http://localhost/a"))
        == sources_in_code(call.format("a"))
        == sources_in_code(address)
        == []
    )


@pytest.mark.parametrize("call", ["load_dataset", "hf_hub_download", "snapshot_download"])
def test_a_data_set_is_from_the_network(call: str) -> None:
    assert [source.source for source in sources_in_code(f"{call}('org/set')")] == ["data set org/set"]


@pytest.mark.parametrize("program", ["open('.git/objects/ab'); zlib.decompress", "['rev-list', '--all']"])
def test_code_that_reads_all_objects_is_of_the_repository(program: str) -> None:
    assert [source.origin for source in sources_in_code(f"import x\n{program}")] == ["repository"]
    assert sources_in_code(program) == []


POLLING = tomllib.loads(Path(__file__).with_name("polling.toml").read_text("utf-8"))


@each_row(
    ("command", "is_one"),
    [(line, key == "looks") for key, lines in POLLING.items() for line in lines.split("\n") if line],
)
def test_a_line_waits_or_looks_and_does_nothing_else(command: str, is_one: bool) -> None:
    assert is_polling(command) is is_one


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        (r"C:\app\logs\today.txt", True),
        ("build/nohup.out", True),
        ("logs/web/run.3.jsonl", False),  # it may be data of that name: a dot more than an ending is not read
        ("app/logs.py", False),
        ("src/log/handler.go", False),
        ("src/catalog.txt", False),
        ("server.log.ts", False),
    ],
)
def test_a_log_is_known_by_its_ending_or_its_folder(path: str, is_one: bool) -> None:
    assert is_log(path) is is_one


def test_a_long_line_costs_no_more_than_its_length() -> None:
    started = time.process_time()
    for text in ("sleep 1; " * 40_000, "kubectl " + "get " * 900, "tail " + "a.log " * 600, "log" * 1300):
        is_polling(text)
    for path in ("/log" * 9_000, "/log-" * 9_000 + ".", "log." * 9_000):
        is_log(path * 100)
    assert time.process_time() - started < 0.5
