"""A store on the page over real HTTP, and what the tests of pages ask it with."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from agentsignals.model import Artifact
from agentsignals.store import Store
from agentsignals.ui.pages.labels import Annotations
from agentsignals.ui.server import Server
from tests.build import call, event, say, session, think, user
from tests.questions.stores import store_of
from tests.signals.attempts import graded, trial

EVIL = '</script></title><script>window.pwned=1</script><img src=x onerror="window.pwned=2">'
EVIL += "'\"`{{7*7}}\u202egpj.exe&lt;\x07"
EVIL_ID = '../..//<s>?x=1#"%00'


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str


class Elements(HTMLParser):
    """Every element with its attributes, and the text outside of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.said = ""
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside != "script":
            self.said += f"{data} "

    def all_of(self, name: str) -> list[str]:
        """Every value of an attribute."""
        return [value for _, attrs in self.elements for key, value in attrs.items() if key == name and value]


@contextmanager
def serving(store: Store, annotations: Annotations | None = None, *, with_token: bool = False) -> Iterator[Server]:
    server = Server(store.folder, annotations=annotations, with_token=with_token)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def ask(server: Server, path: str, method: str = "GET", headers: dict[str, str] | None = None) -> Answer:
    """One request, its path sent as it is written here."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.putrequest(method, path, skip_host=headers is not None and "Host" in headers)
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        connection.endheaders()
        got = connection.getresponse()
        return Answer(got.status, dict(got.getheaders()), got.read().decode())
    finally:
        connection.close()


def page(server: Server, path: str) -> str:
    got = ask(server, path)
    assert got.status == 200, f"{path}: {got.status} {got.text[-400:]}"
    return got.text


def text_of(server: Server, path: str) -> str:
    """The text of a page, its white space made single blanks."""
    return " ".join(Elements(page(server, path)).said.split())


def whole_store(folder: Path) -> Store:
    """People's sessions, one of them hostile in every field, and the two attempts of a trial."""
    fine = session(
        user("Fix the parser, please"),
        think("let me look at it"),
        say("Looking.", model="claude-opus-4-5", input_tokens=10, output_tokens=20),
        call("Read", path="src/parse.py", result="x = 1\n"),
        call("Bash", command="pytest -q", status="error", result="1 failed"),
        call("Read", path="deep.py", thread="agent-7", result="deep"),
        call("Edit", path="src/parse.py", old_string="x", new_string="y"),
        say("w" * 1_900),
        user("thanks"),
        session_id="fine-1",
        cwd="/home/me/tools",
        repo="me/tools",
    )
    hostile = session(
        user(EVIL),
        say(EVIL, model=EVIL, input_tokens=1, output_tokens=1),
        event("meta", EVIL),
        call(f"mcp__{EVIL}", path=EVIL, status="error", result=EVIL),
        call("Bash", command=EVIL, status="error", result=EVIL),
        call("Bash", command="ls", thread=EVIL, result=EVIL),
        session_id=EVIL_ID,
        cwd=f"/home/{EVIL}",
        repo=EVIL,
        branch=EVIL,
    )
    hostile.agent = hostile.title = EVIL
    for tool_call in hostile.tool_calls:
        tool_call.error_class = EVIL if tool_call.status == "error" else None
    runs = trial(
        {"trial_id": "run-1", "verification": graded(fixed=2), "reward": 1.0, "knobs": {"attempt1_tool_cap": 40}},
        {"trial_id": "run-1", "verification": graded(unfixed=2), "reward": 0.0},
    )
    artifacts = (
        Artifact(
            artifact_id="a1",
            source="here",
            path="/traces/fine.jsonl",
            format="claude-code",
            sha256="00",
            bytes=900,
            records=9,
        ),
        Artifact(
            artifact_id="a2",
            source=EVIL,
            path=f"/traces/{EVIL}",
            format=EVIL,
            sha256="00",
            bytes=90,
            mtime_ns=None,
            records=9,
            skipped=3,
            skipped_reasons={"bad_json": 2, EVIL: 1},
            record_kinds={},
            note=EVIL,
        ),
    )
    return store_of(folder, fine, hostile, *(r.session for r in runs), artifacts=artifacts)
