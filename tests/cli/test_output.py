"""What a terminal gets: tables and sentences at its width, colours where it has them, numbers for people."""

from __future__ import annotations

import io
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from agentsignals.cli import Visible
from agentsignals.cli.output import STYLE, Fitted, cell, named_in, table, wrapped
from agentsignals.questions.question import number

ROWS = [("3f2a81", "2026-03-31 16:21", 22, 0.25, "Rename the module and keep its tests, then say which of them failed")]
NAMES = ("session", "last active", "calls", "cost", "title")


@pytest.mark.parametrize("room", [20, 40, 60, 80, 120, 300])
def test_a_table_is_as_wide_as_the_terminal(room: int) -> None:
    lines = table(NAMES, ROWS, 200, as_wide_as=room).splitlines()
    assert max(map(len, lines)) <= room and lines[1].startswith("3f2a81")
    assert ("not shown" in " ".join(lines)) is (room < 60)


def test_words_are_wrapped_whole_and_numbers_set_to_the_right() -> None:
    lines = table(NAMES, [*ROWS, ("a", None, 1234567, 12.5, "x")], 200, as_wide_as=70).splitlines()
    words = {word for line in lines for word in line.split()}
    assert set(ROWS[0][4].split()) <= words, "no word is cut"
    assert "1,234,567" in words and lines[-1].index("12.5") + 4 == lines[1].index("0.25") + 4


def test_columns_go_by_importance_and_a_line_says_which() -> None:
    text = table(NAMES, ROWS, 200, optional=("cost", "calls"), as_wide_as=48)
    assert "title" in text.splitlines()[0] and "(not shown at this width: calls, cost;" in text
    many = table([f"column {n}" for n in range(30)], [[str(n) * 9 for n in range(30)]], as_wide_as=60)
    assert re.search(r"\(not shown at this width: 2\d columns; --json has all\)", many)


def test_on_one_line_cells_are_cut_where_their_column_ends() -> None:
    head, row = table(NAMES, ROWS, 200, optional=("cost",), one_line=True, as_wide_as=64).splitlines()[:2]
    assert row.endswith("…") and len(row) <= 64 and len(head.split()) >= 4


def test_names_that_differ_behind_the_cut_are_told_apart() -> None:
    common = "gpt-4o · swe-agent · parse_function=function_calling · tools with "
    text = table(("candidate", "attempts"), [(f"{common}edit_linting", 1), (f"{common}edit_replace", 1)], as_wide_as=80)
    assert "edit_linting" in text and "edit_replace" in text
    assert "…" in table(("candidate", "attempts"), [(f"{common}edit_linting", 1), ("b", 1)], as_wide_as=80)


def test_markup_in_cells_is_text() -> None:
    text = table(("a", "b"), [("[bold]x[/bold]", "[link=file:///etc]y[/link] :smile:")], 200, as_wide_as=80)
    assert "[bold]x[/bold]" in text and ":smile:" in text and "\x1b" not in text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.06818181818181818, "0.0682"), (39880.4, "39,880"), (3.988e12, "3,988,000,000,000"), (12.345, "12.3"),
        (1.0, "1"), (-0.5, "-0.5"), (0.000012345, "0.0000123"), (0.0, "0"), (123.6, "124"), (float("nan"), "nan"),
        (9.999, "10"), (1e-9, "<0.000001"), (99.96, "100"),
    ],
)  # fmt: skip
def test_numbers_have_three_digits_and_no_exponent(value: float, shown: str) -> None:
    assert number(value) == shown


def test_whole_numbers_are_exact_and_years_have_no_separator() -> None:
    assert [cell(value) for value in (2026, 9999, 10_000, -1_234_567, True, None)] == [
        "2026", "9999", "10,000", "-1,234,567", "yes", ""]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "indent"),
    [
        ("1. " + "word " * 40, "   "),
        ("session    " + "word " * 40, " " * 11),
        ("   " + "word " * 40, "   "),
        ("word " * 40, ""),
        ("- " + "word " * 40, "  "),
    ],
)
def test_long_lines_are_wrapped_below_what_they_say(line: str, indent: str) -> None:
    lines = wrapped(line, 60)
    assert len(lines) > 2 and all(len(part) <= 60 for part in lines)
    assert all(part.startswith(f"{indent}word") for part in lines[1:])
    assert " ".join(" ".join(lines).split()) == " ".join(line.split())


@pytest.mark.parametrize("before", ["", "    ", "next: ", "      "])
@pytest.mark.parametrize(
    "arguments",
    [
        ["evals", "drivers", "--by", "model", "--outcome", "resolved", "--markdown", "--store", "/a/folder"],
        [
            "evals",
            "compare",
            "--baseline",
            'gpt-4o · swe-agent · it\'s "one" of many tools with edits',
            "--anyway",
        ],
        ["evals", "compare", "--only", "azureai/" + "x" * 90, "--where", "it's " * 30, "--by", "model"],
    ],
)
def test_a_long_command_is_continued_so_that_a_shell_reads_it_whole(before: str, arguments: list[str]) -> None:
    lines = wrapped(f"{before}agentsignals {shlex.join(arguments)}", 60)
    assert lines[0].startswith(f"{before}agentsignals ") and len(lines) > 1
    assert max(map(len, lines)) <= 60
    ran = subprocess.run(
        ["sh", "-c", "agentsignals() { printf '%s\\n' \"$@\"; }\n" + "\n".join(lines).removeprefix("next: ")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ran.stdout.splitlines() == arguments


def test_a_sentence_that_begins_with_the_program_is_no_command() -> None:
    assert not any("\\" in line for line in wrapped("agentsignals reads what agents log " * 4 + "here.", 60))


def test_an_address_stays_whole_and_another_long_word_does_not() -> None:
    address = f"http://127.0.0.1:8321/?token={'x' * 60}"
    assert address in wrapped(f"{address}  serves /store", 60)
    assert max(map(len, wrapped(f"artifact   {'/folder' * 20}", 60))) <= 60


def test_what_is_printed_piece_by_piece_comes_whole() -> None:
    out = io.StringIO()
    stream = Fitted(out)
    for piece in ("a", "b\nc", " ", "\n", "the end"):
        stream.write(piece)
    assert out.getvalue() == "ab\nc \n"
    stream.flush()
    assert out.getvalue() == "ab\nc \nthe end"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("settings", "coloured"),
    [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_colours_are_for_terminals_that_want_them(
    settings: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    for stream, wants in ((Terminal(), coloured), (io.StringIO(), False)):
        with redirect_stdout(Visible(stream)):  # type: ignore[type-var]  # a stream in front of another
            print(table(("a",), [("\x1b[31mred",)]))
        shown = stream.getvalue()
        assert ("\x1b[1m" in shown) is wants and "\x1b[31m" not in shown and STYLE not in shown


def at_a_terminal(columns: int, words: list[str]) -> list[str]:
    """Return the lines that a terminal of so many columns gets."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
    command = [sys.executable, "-m", "agentsignals", *words]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        seen = b""
        while process.poll() is None or seen[-1:] != b"":
            try:
                part = os.read(ours, 65536)
            except OSError:
                break
            if not part:
                break
            seen += part
    os.close(ours)
    text = re.sub(r"\x1b\[[\d;]*[A-Za-z]", "", seen.decode("utf-8", "replace")).replace("\r\n", "\n")
    return [line.rpartition("\r")[2] for line in text.split("\n")]  # a bar is drawn over by what follows


VERBS: dict[str, Callable[[str], list[str]]] = {
    "sessions": lambda session: [],
    "findings": lambda session: [],
    "doctor": lambda session: [],
    "formats": lambda session: [],
    "inventory": lambda session: ["tool"],
    "explain": lambda session: [session, "user.tool_error_rate"],
    "query": lambda session: ["SELECT * FROM tool_calls LIMIT 3"],
    "show": lambda session: [session],
    "search": lambda session: ["test"],
    "labels": lambda session: [],
    "today": lambda session: [],
    "what-if": lambda session: ["--subscription", "100"],
}


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_fits_the_terminal(verb: str, columns: int, demo_folder: Path, tmp_path: Path) -> None:
    store = shutil.copytree(demo_folder / "store", tmp_path / "store")
    lines = at_a_terminal(columns, [verb, *VERBS[verb]("3819e141"), "--store", str(store)])
    assert len(lines) > 3 and max(map(len, lines)) <= columns


@pytest.mark.parametrize("cells", [
    ("-14.5 to -2.2", "-11.0 to +0.8"), ("-21 s to -5.8 s", "-80 s to -32 s"), ("50.1% to 69.9%", ""),
    ("11.3 min (10 min to 12 min)", "5.9 min (5.2 min to 6.9 min)"), ("$1.02 to $3.40", ">= $0.12 to $1.10"),
])  # fmt: skip
def test_an_interval_is_never_broken_over_lines(cells: tuple[str, str]) -> None:
    rows = [(f"candidate {n}", "words " * 9, cell) for n, cell in enumerate(cells)]
    for room in (48, 60, 80):
        text = table(("candidate", "reason", "95%"), rows, 200, optional=("reason",), as_wide_as=room)
        assert all(cell in text for cell in cells) and max(map(len, text.splitlines())) <= room


def test_a_note_is_printed_where_its_column_is() -> None:
    notes = {"cost": "of the priced calls", "calls": "without refused ones"}
    narrow = table(NAMES, ROWS, 200, optional=("cost",), as_wide_as=52, notes=notes)
    assert "not shown at this width: cost" in narrow and "priced calls" not in narrow
    assert narrow.splitlines()[-1] == "  calls: without refused ones"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Run `agentsignals evals audit` again.", "Run `agentsignals evals audit --store s` again."),
        ("    agentsignals evals compare --by x", "    agentsignals evals compare --by x --store s"),
        ("others: agentsignals findings --since 7d", "others: agentsignals findings --since 7d --store s"),
        ("`agentsignals query q --store t`, `pip install x`", "`agentsignals query q --store t`, `pip install x`"),
        ("The folder agentsignals is here.", "The folder agentsignals is here."),
    ],
)  # fmt: skip
def test_a_shown_command_names_the_store_in_use(text: str, shown: str) -> None:
    assert named_in(text, " --store s") == shown
