"""Aider's chat history (design/formats.md#small-formats): whose line each is, rounded tokens, sessions in one file."""

from __future__ import annotations

import pytest

from agentsignals.formats import Reading
from agentsignals.formats.aider import FORMAT
from agentsignals.model import Session
from tests.formats.reading import given

START = (
    "# aider chat started at 2026-09-01 09:00:00\n\n> Aider v0.86.1  \n> Main model: m-1 with diff edit format  \n\n"
)


def read(*texts: str) -> Reading:
    return FORMAT.read(
        [given(text.encode(), "aider", f"/w/{n}/.aider.chat.history.md") for n, text in enumerate(texts)]
    )


def talk(text: str) -> Session:
    (session,) = read(START + text).sessions
    return session


@pytest.mark.parametrize(
    ("line", "used", "cost"),
    [
        ("730 sent, 895 received.", (730, 895, None, None), None),
        ("1.2k sent, 516 received. Cost: $0.0012 message, $0.02 session.", (1200, 516, None, None), 0.0012),
        ("16k sent, 5.1k cache write, 9k cache hit, 20 received. Cost: $0.05 message, $0.05 session.",
         (1900, 20, 9000, 5100), 0.05),
        ("120 sent, 9k cache hit, 20 received.", (120, 20, 9000, None), None),
    ],
)  # fmt: skip
def test_tokens_of_a_call(line: str, used: tuple[int | None, ...], cost: float | None) -> None:
    (step,) = talk(f"#### hi  \n\nhello\n\n> Tokens: {line}  \n").steps
    assert (step.input_tokens, step.output_tokens, step.cache_read_tokens, step.cache_write_tokens) == used
    assert (step.cost_usd, step.model) == (cost, "m-1")


def test_a_call_that_said_nothing_counts_and_no_tokens_are_no_zeros() -> None:
    session = talk("#### hi  \n\n> Tokens: 10 sent, 1 received.\n> Tokens: 20 sent, 2 received.\n\n#### on  \n\nyes\n")
    assert [step.output_tokens for step in session.steps] == [1, 2, None]


def test_whose_line_it_is() -> None:
    session = talk(
        "#### first  \n#### second  \n\nan answer\n\n> Add it? (Y)es [Yes]: y  \n\n#### /add a.py  \n> Added a.py  \n"
    )
    assert [(turn.kind, turn.text) for turn in session.turns] == [
        ("prompt", "first\nsecond"),
        ("slash_command", "/add a.py"),
    ]
    assert [event.text for event in session.events if event.kind == "text"] == ["an answer"]


def test_a_prompt_of_the_command_line_in_several_lines_is_no_answer() -> None:
    begins = "# aider chat started at 2026-09-01 09:00:00\n\n> aider --message do\n\nthis\n> Aider v0.86.1  \n"
    text = f"{begins}\n#### do  \n\ndone\n"
    (session,) = read(text).sessions
    assert [event.text for event in session.events if event.kind == "text"] == ["done"]


@pytest.mark.parametrize(
    ("old", "new", "op", "added", "removed"),
    [("a\nb\n", "a\nc\n", "modify", 1, 1), ("", "a\nb\n", "create", 2, 0)],
)
def test_an_applied_edit_changes_what_its_block_says(old: str, new: str, op: str, added: int, removed: int) -> None:
    block = f"src/a.py\n```python\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n```\n"
    session = talk(f"#### go  \n\n{block}\n> Tokens: 1 sent, 1 received.\n> Applied edit to src/a.py  \n")
    assert [(e.path, e.op, e.added, e.removed) for e in session.edits] == [("src/a.py", op, added, removed)]


def test_an_edit_that_was_not_applied_changes_nothing() -> None:
    block = "a.py\n```\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```\n"
    assert talk(f"#### go  \n\n{block}\n> Tokens: 1 sent, 1 received.\n").edits == []


def test_a_session_keeps_its_id_while_it_grows_and_counts_once_in_copies() -> None:
    short, long = START + "#### hi  \n", START + "#### hi  \n\nhello\n"
    (before,), (after,) = read(short).sessions, read(short, long).sessions
    assert before.session_id == after.session_id and [event.kind for event in after.events][-1] == "text"
    assert len(read(long + START.replace("09:00", "10:00") + "#### hi  \n").sessions) == 2


def test_a_start_after_which_nobody_spoke_is_no_session() -> None:
    assert read(START).sessions == []
