"""A chat server for the lab's tests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class Server(ThreadingHTTPServer):
    """Answers with `says(body)`: a document, a status, or bytes as they are."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: list[dict[str, Any]] = []
        self.says: Any = lambda body: said(body["messages"][-1]["content"].upper())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.bodies.append(body)
        answer = self.server.says(body)
        status = answer if isinstance(answer, int) else 200
        sent = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(sent)))
        if status == 429:
            self.send_header("Retry-After", "7")
        if status == 302:
            self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: Any) -> None:
        pass


def said(text: str | None, finish: str = "stop", **more: Any) -> dict[str, Any]:
    choice = {"message": {"content": text}, "finish_reason": finish, **more}
    return {"choices": [choice], "usage": {"prompt_tokens": 12, "completion_tokens": 3}}


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()
