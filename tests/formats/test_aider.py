"""Aider's chat history (design/formats.md#small-formats): whose line each is, rounded tokens, sessions in one file."""

from __future__ import annotations

from agentsignals.formats import Reading
from agentsignals.formats.aider import FORMAT
from tests.formats.reading import given

START = (
    "# aider chat started at 2026-09-01 09:00:00\n\n> Aider v0.86.1  \n> Main model: m-1 with diff edit format  \n\n"
)


def read(*texts: str) -> Reading:
    return FORMAT.read(
        [given(text.encode(), "aider", f"/w/{n}/.aider.chat.history.md") for n, text in enumerate(texts)]
    )


def test_a_session_keeps_its_id_while_it_grows_and_counts_once_in_copies() -> None:
    short, long = START + "#### hi  \n", START + "#### hi  \n\nhello\n"
    (before,), (after,) = read(short).sessions, read(short, long).sessions
    assert before.session_id == after.session_id and [event.kind for event in after.events][-1] == "text"
    assert len(read(long + START.replace("09:00", "10:00") + "#### hi  \n").sessions) == 2
