"""The texts of a session that are compared: its first request, the exchanges around a turn, the agent's answers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentsignals.model import Event, Turn
from agentsignals.model.once import once
from agentsignals.views.session import SessionView
from agentsignals.words.text import count_tokens

MOST_CHARS = 8000
"""Of a passage, and of a window of exchanges: the newest part (design/signals.md#context-pollution)."""
MOST_CHARS_OF_A_TURN = 4000
"""Of what a person says beside the answer to it: behind it lie pasted logs and files."""
WINDOW_TURNS = 3
MIN_ANCHOR_TOKENS = 4
"""A first message of fewer ("hello", "continue") names no task: the next one is the anchor."""
_NO_REQUEST = frozenset(("slash_command", "attachment"))
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.S)
_LINK = re.compile(r"https?://\S+")


def without_code(text: str) -> str:
    """The text without fenced code and without links, whose hosts and numbers are no subject."""
    if "```" in text:
        text = _FENCE.sub(" ", text)
    return _LINK.sub(" ", text) if "http" in text else text


def _tokens_read(turn: Turn) -> int:
    return turn.n_tokens if len(turn.text) <= MOST_CHARS else count_tokens(turn.text[:MOST_CHARS])


class Passages:
    """The passages of one session."""

    def __init__(self, view: SessionView) -> None:
        self._turns = view.turns  # not the view, which keeps this: a circle would stay until the collector comes
        self._responses = view.responses
        self._answers: dict[int, str] = {}

    @once
    def anchor(self) -> Turn | None:
        """The turn that says what the session is about: the first that asks for something; None when none does."""
        return next(
            (t for t in self._turns if t.kind not in _NO_REQUEST and _tokens_read(t) >= MIN_ANCHOR_TOKENS),
            None,
        )

    def prompt(self, turn: Turn, most: int = MOST_CHARS) -> str:
        """What the person said, without code."""
        return without_code(turn.text)[:most]

    def answer_events(self, n: int) -> list[Event]:
        """The agent's visible words in its response to turn `n`."""
        return [e for e in self._responses[n] if e.kind == "text" and e.text]

    def answer(self, n: int) -> str:
        """The agent's visible words in its response to turn `n`, without code, the last 8,000 characters; may be
        empty."""
        answer = self._answers.get(n)
        if answer is None:
            answer = without_code("\n".join([e.text or "" for e in self.answer_events(n)]))[-MOST_CHARS:]
            self._answers[n] = answer
        return answer

    def window(self, n: int, anchor: Turn) -> tuple[str, ...]:
        """What both sides said in turn `n` and the two before it, without code, the last 8,000 characters; in order,
        each in a part of its own. Without the anchor's own words: they are as near to themselves as can be, and would
        let no session drift before its third turn.
        """
        parts: list[str] = []
        left = MOST_CHARS
        for k in range(n, max(-1, n - WINDOW_TURNS), -1):
            prompt = self.prompt(self._turns[k], MOST_CHARS_OF_A_TURN) if k != anchor.turn else ""
            for part in (self.answer(k), prompt):
                if part and left > 0:
                    parts.append(part[-left:])
                    left -= len(part) + 1
        return tuple(reversed(parts))

    def all(self) -> Iterator[str]:
        """Every text that signals will ask vectors of, so that a model can be asked for many at once."""
        anchor = self.anchor
        for n, turn in enumerate(self._turns):
            yield self.prompt(turn)
            yield self.answer(n)
            if anchor is not None and n > anchor.turn:
                yield "\n".join(self.window(n, anchor))
