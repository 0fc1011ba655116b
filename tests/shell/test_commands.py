"""What a shell command is for, which file it is about, and which files it writes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsignals.shell import parse
from agentsignals.shell.outputs import is_polling, search_mode
from agentsignals.shell.tokens import split

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"

COUNTS = {"build": 89, "read": 78, "run": 104, "search": 233, "test": 134, "vcs": 488, "write": 34}
"""Distinct commands of the Claude Code corpus by kind, read by eye when they were pinned."""

READ_BY_EYE = [json.loads(line) for line in Path(__file__).with_name("commands.jsonl").read_text("utf-8").splitlines()]
"""Commands with their reading: kind, file, and each file written (path, operation, how, origin, new text)."""


@pytest.mark.parametrize("expected", READ_BY_EYE, ids=lambda expected: expected["command"])
def test_a_command_is_read_as_by_eye(expected: dict[str, Any]) -> None:
    read = parse(expected["command"])
    writes = [[w.path, w.op, w.how, w.origin, w.new] for w in read.writes]
    assert {"command": expected["command"], "kind": read.kind, "path": read.path, "writes": writes} == expected


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=300))
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
