"""Passages of a session that are compared (its first request, the exchanges around a turn, the agent's answers), and
the fit of an embedder's profile to them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from statistics import median

from msgspec import Struct

from agentsignals.model import Absent, Event, Turn
from agentsignals.model.lazy import once
from agentsignals.views.session import SessionView
from agentsignals.words.text import count_tokens
from agentsignals.words.vectors import Profile, Vector, Vectors

MOST_CHARS = 8000
"""Most characters of a passage, and of a window of exchanges: the newest part (design/signals.md#context-pollution)."""
MOST_CHARS_OF_A_TURN = 4000
"""Most characters of a person's turn in a window: pasted logs and files come after them."""
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


class Passages:
    """The passages of one session."""

    def __init__(self, view: SessionView) -> None:
        self._turns = view.turns  # not the view, which keeps this: a circle would stay until the collector comes
        self._responses = view.responses
        self._answers: dict[int, str] = {}

    @once
    def anchor(self) -> Turn | None:
        """The turn that says what the session is about: the first that asks for something; None when none does."""
        for turn in self._turns:
            if turn.kind not in _NO_REQUEST:
                is_short = len(turn.text) <= MOST_CHARS
                if (turn.n_tokens if is_short else count_tokens(turn.text[:MOST_CHARS])) >= MIN_ANCHOR_TOKENS:
                    return turn
        return None

    def prompt(self, turn: Turn, most: int = MOST_CHARS) -> str:
        """Return a turn's own words, without code."""
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
        """Return the words of both sides in turn `n` and the two before it, without code, the last 8,000 characters,
        each in a part of its own. The request itself is left out: it is identical to itself, and no session would drift
        before turn 3."""
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


DIGITS = 4
"""Decimals of distances and of values made of them."""


def request_vectors(
    view: SessionView, vectors: Vectors | Absent, passages: Passages, min_turns: int = 2
) -> tuple[Vectors, Turn, Vector] | Absent:
    """Return the vectors, the session's first request and its vector; absent below `min_turns` turns."""
    if len(view.turns) < min_turns:
        return Absent("not_applicable", "one_turn" if view.turns else "no_turn")
    if isinstance(vectors, Absent):
        return vectors
    anchor = passages.anchor
    if anchor is None:
        return Absent("not_applicable", "no_request")
    return vectors, anchor, vectors.of([passages.prompt(anchor)])[0]


def cosine_distance(first: Vector, other: Vector) -> float | None:
    """1 - cosine, 0 to 1; None when either text said nothing."""
    near = first.cosine(other)
    return None if near is None else round(1 - near, DIGITS)


# Fits an embedder's profile to the sessions of a store (design/signals.md#context-pollution).

MIN_SESSIONS = 30
MIN_PLACES = 2
"""Sessions of one repository resemble each other, which would make the unrelated seem near (section 4)."""
MOST_SESSIONS = 300
"""More move the medians by less than a hundredth."""
MIN_SPREAD = 0.02
"""Below it, an embedder does not tell an answer from a stranger, and a profile of it would blow up noise."""


class Opening(Struct, frozen=True):
    """The start of a session: its first request, the answer, both together, and its place."""

    session_id: str
    place: str
    request: str
    answer: str

    @property
    def exchange(self) -> str:
        """Both together."""
        return f"{self.request}\n{self.answer}"


def opening(view: SessionView) -> Opening | None:
    """The opening of a session; None where a place, a request or an answer is missing."""
    passages, session = Passages(view), view.session
    anchor, place = passages.anchor, session.repo or session.cwd
    if anchor is None or not place:
        return None
    answer = passages.answer(anchor.turn)
    return Opening(session.session_id, place, passages.prompt(anchor), answer) if answer else None


def fit(openings: Iterable[Opening], vectors: Vectors) -> Profile | None:
    """The profile of these sessions; None with fewer than 30, of fewer than 2 places, or when it tells nothing apart.

    The same sessions give the same profile in whatever order they come.
    """
    chosen = sorted(openings, key=lambda o: hashlib.sha256(o.session_id.encode("utf-8", "surrogatepass")).digest())
    chosen = chosen[:MOST_SESSIONS]
    if len(chosen) < MIN_SESSIONS or len({o.place for o in chosen}) < MIN_PLACES:
        return None
    requests = vectors.of(o.request for o in chosen)
    aligned = _distances(requests, vectors.of(o.answer for o in chosen))
    exchanges = vectors.of(o.exchange for o in chosen)
    strangers = []  # for each session the next one of another place
    for n, this in enumerate(chosen):
        following = (*range(n + 1, len(chosen)), *range(n))
        strangers.append(exchanges[next(k for k in following if chosen[k].place != this.place)])
    unrelated = _distances(requests, strangers)
    if len(aligned) < MIN_SESSIONS or len(unrelated) < MIN_SESSIONS:
        return None
    a, m = median(aligned), median(unrelated)
    return Profile(round(a, 4), round(m, 4), "fitted") if m - a >= MIN_SPREAD else None


def _distances(some: Iterable[Vector], others: Iterable[Vector]) -> list[float]:
    cosines = [vector.cosine(other) for vector, other in zip(some, others, strict=True)]
    return [1 - c for c in cosines if c is not None]
