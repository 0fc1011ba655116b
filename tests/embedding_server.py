"""A small real server that speaks `POST /v1/embeddings`, with faults to order."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


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

    class Handler(BaseHTTPRequestHandler):
        wbufsize = -1  # headers and body in one packet

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.requests.append(asked)
            state.headers.append(dict(self.headers))
            fault = state.faults.pop(0) if state.faults else None
            if isinstance(fault, int):
                self.answer(fault, b'{"error": "no"}')
            elif fault is not None:
                self.answer(200, fault)
            else:
                rows = [{"index": n, "embedding": vector(t)} for n, t in enumerate(asked["input"])]
                self.answer(200, json.dumps({"data": rows[::-1], "model": asked["model"]}).encode())

        def answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if status == 429:
                self.send_header("Retry-After", "7")
            if status == 302:
                self.send_header("Location", "http://127.0.0.1:9/elsewhere")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
