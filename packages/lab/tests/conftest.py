"""A folder for a user's data that is nobody's, a chat server, and what the lab wrote as agentsignals reads it."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from agentsignals.formats import Input, Reading, identify
from agentsignals.formats.records import HEAD_BYTES, Head
from agentsignals.model import Artifact


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


@pytest.fixture(scope="session", autouse=True)
def of_nobody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Programs that tests start get it, too. Lines are printed whole; tests of the terminal name its width."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        patch.setenv("COLUMNS", "1000")
        yield


def some(cases: Iterable[Any], every: int) -> list[Any]:
    """The cases of a table whose rows all hold the same behaviour: every so many-th is quick, the others are slow."""
    rows = [case if type(case) is tuple else (case,) for case in cases]
    return [pytest.param(*row, marks=() if n % every == 0 else pytest.mark.slow) for n, row in enumerate(rows)]


def read_files(paths: list[Path], root: Path) -> Reading:
    """The sessions that agentsignals reads in files of one format."""
    inputs = []
    for path in paths:
        data, name = path.read_bytes(), path.relative_to(root).as_posix()
        found = identify(Head(data[:HEAD_BYTES], name, len(data) <= HEAD_BYTES))
        assert found is not None, f"no format claims {name}"
        digest = hashlib.sha256(data).hexdigest()
        artifact = Artifact(
            artifact_id=name, source="run", path=name, format=found[0].name, sha256=digest, bytes=len(data)
        )
        inputs.append(Input(data, artifact))
    return found[0].read(inputs)
