"""A small real server that speaks `POST /v1/embeddings`, with faults to order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.http_server import Answering, running


class Server:
    """What was asked of it, and what it answers: `faults` are served first, one a request: a status, or a body."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.faults: list[int | bytes] = []
        self.url = ""

    @property
    def texts(self) -> list[str]:
        """Every text that was sent."""
        return [text for request in self.requests for text in request["input"]]


def vector(text: str) -> list[float]:
    """Letters counted: enough for near and far."""
    return [float(text.lower().count(letter)) for letter in "etaoinshrdlu"] + [1.0]


@contextmanager
def serving() -> Iterator[Server]:
    """The server on a free port of this machine."""
    state = Server()

    class Handler(Answering):
        def do_POST(self) -> None:  # noqa: N802  (the name that http.server calls)
            asked = self.asked()
            state.requests.append(asked)
            state.headers.append(dict(self.headers))
            fault = state.faults.pop(0) if state.faults else None
            if isinstance(fault, int):
                self.reply(fault, b'{"error": "no"}')
            elif fault is not None:
                self.reply(200, fault)
            else:
                rows = [{"index": n, "embedding": vector(t)} for n, t in enumerate(asked["input"])]
                self.reply(200, json.dumps({"data": rows[::-1], "model": asked["model"]}).encode())

    with running(Handler) as url:
        state.url = f"{url}/v1"
        yield state
