"""The page's server under many slow connections: bounded threads, bounded time, an answer to those beyond, and back."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from agentsignals.store import Store
from agentsignals.ui import server as ui
from agentsignals.ui.page import Reply
from agentsignals.ui.server import Server

CAP = 8
ASSET = "/static/ui.css"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(ui, "MOST_CONNECTIONS", CAP)
    monkeypatch.setattr(ui, "WAIT_S", 2.0)
    Store(tmp_path / "store", create=True).save()
    with Server(tmp_path / "store", with_token=False) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def _status(server: Server) -> int:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)) as connection:
        connection.request("GET", ASSET)
        return connection.getresponse().status


def _answered(server: Server, within_s: float) -> float:
    """Seconds until a request is answered, with 503 before."""
    began = time.monotonic()
    while (status := _status(server)) != 200:
        assert status == 503 and time.monotonic() - began < within_s
        time.sleep(0.05)
    return time.monotonic() - began


def test_beyond_the_cap_is_503_and_no_thread_and_it_recovers(server: Server) -> None:
    before = threading.active_count()
    with ExitStack() as held:
        slow = [held.enter_context(socket.create_connection(("127.0.0.1", server.port), 10)) for _ in range(5 * CAP)]
        for one in slow[:CAP]:
            one.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        assert _status(server) == 503
        assert threading.active_count() <= before + CAP
        told = [one.recv(4096) for one in slow[CAP:]]
        assert all(t.startswith(b"HTTP/1.1 503 ") and b"nosniff" in t and t.endswith(b"soon.\n") for t in told)
    assert _answered(server, 1.5) < 1.5, "the slow ones went away"


def test_a_slow_client_is_cut_although_it_never_pauses(server: Server) -> None:
    with ExitStack() as held:
        slow = [held.enter_context(socket.create_connection(("127.0.0.1", server.port), 10)) for _ in range(CAP)]
        assert _status(server) == 503
        began, cut = time.monotonic(), 0
        while time.monotonic() - began < 30 and cut < CAP:
            time.sleep(0.1)
            cut = 0
            for one in slow:
                try:
                    one.send(b"x")
                except OSError:
                    cut += 1
        assert cut == CAP and time.monotonic() - began > 1.5
        _answered(server, 30)


def test_a_connection_that_goes_on_asking_is_kept(server: Server) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)) as connection:
        connection.connect()
        first = connection.sock
        for _ in range(7):
            connection.request("GET", ASSET)
            assert connection.getresponse().read()
            time.sleep(0.4)
        assert connection.sock is first is not None


def test_an_answer_that_nobody_takes_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui, "ANSWER_S", 1.0)
    monkeypatch.setattr(ui.Handler, "_reply", lambda *_: Reply(b"x" * 50_000_000, "text/html"))
    with socket.create_connection(("127.0.0.1", server.port), 10) as greedy:
        greedy.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
        for wanted in (1, 0):  # taken in, and let go
            until = time.monotonic() + 30
            while len(server._due) != wanted:
                assert time.monotonic() < until
                time.sleep(0.01)
