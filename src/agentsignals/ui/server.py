"""The HTTP side: listens on this machine alone, answers only for its own name and to whom `Access` lets in, and has
nothing that writes but labels into a gold file, where one was named."""

from __future__ import annotations

import secrets
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from email.message import Message
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import SHUT_RDWR, socket
from threading import Lock
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from agentsignals.errors import AgentSignalsError, CatalogError, QueryError, StoreError, UnknownSession, UsageError
from agentsignals.store.query import OURS
from agentsignals.ui import rendering
from agentsignals.ui.live import PATH as LIVE
from agentsignals.ui.live import Live
from agentsignals.ui.page import NotFound, Page, Query, Reply
from agentsignals.ui.pages import labels
from agentsignals.ui.pages.labels import Annotations
from agentsignals.ui.rendering import answer_of, html
from agentsignals.ui.snapshot import Snapshot, Snapshots

ADDRESS = "127.0.0.1"
PORT = 8321
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data: blob:; base-uri 'none';"
    " form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
MOST_CONNECTIONS = 64
"""Each has a thread. A browser opens six."""
MOST_STREAMS = 32
"""Connections to `/live`, besides the others: each lasts as long as its page is open."""
WAIT_S = 10.0
"""A request is there, to its last header, so long after the connection was made or the answer before it was sent."""
ANSWER_S = 60.0
"""So long after it was there, its answer is made and taken; no page over the largest stores needs as long."""
_TOO_MANY = b"Too many connections: try again soon.\n"
_BUSY = b"".join(
    f"{line}\r\n".encode()
    for line in (
        "HTTP/1.1 503 Service Unavailable",
        *(f"{name}: {value}" for name, value in HEADERS.items()),
        "Content-Type: text/plain; charset=utf-8",
        f"Content-Length: {len(_TOO_MANY)}",
        "Retry-After: 1",
        "Connection: close",
        "",
    )
)


class Server(ThreadingHTTPServer):
    """Serves a store. `port` 0 takes any that is free; AgentSignalsError when the port is taken, StoreError where there
    is no store. `with_token`: only to whom opened `address`."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self,
        folder: Path | str | None,
        port: int = 0,
        annotations: Annotations | None = None,
        *,
        with_token: bool = True,
    ) -> None:
        self.snapshots = Snapshots(folder, annotations)
        self.live = Live(self.snapshots)
        self._due: dict[socket, float] = {}
        """The connections, each with the moment at which it is cut."""
        self._streams: set[socket] = set()
        """Connections that pages listen on; they are never cut."""
        self._lock = Lock()
        try:
            super().__init__((ADDRESS, port), Handler)
        except (OSError, OverflowError) as problem:
            raise AgentSignalsError(
                f"Cannot listen on {ADDRESS}:{port}: {getattr(problem, 'strerror', None) or problem}.",
                "Choose another port with --port. --port 0 picks a free one.",
            ) from problem
        self.port = int(self.server_address[1])
        self.names = frozenset(f"{name}:{self.port}" for name in (ADDRESS, "localhost"))
        """The `Host` of a browser that we sent here. Any other name was pointed here by someone else."""

        self.access = Access(self.port, with_token=with_token)

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.port}/"

    @property
    def address(self) -> str:
        """The address that lets a browser in. It is a secret: it may stand in no argument of a program."""
        return f"{self.url}?{PARAMETER}={self.access.token}" if self.access.token else self.url

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for the connection, while there are fewer than the cap; else it is told so and closed."""
        with self._lock:
            free = len(self._due) < MOST_CONNECTIONS
            if free:
                self._due[request] = time.monotonic() + WAIT_S
        if free:
            super().process_request(request, client_address)
            return
        with suppress(OSError):
            request.setblocking(False)
            request.send(_BUSY + _TOO_MANY)
            request.recv(65536)  # a socket that is closed with bytes unread in it takes back what it has sent
        self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._due.pop(request, None)
            self._streams.discard(request)
        super().shutdown_request(request)

    def due_in(self, connection: socket, seconds: float) -> None:
        """The connection is cut when it is not renewed within so many seconds."""
        with self._lock:
            self._due[connection] = time.monotonic() + seconds

    def is_stream(self, connection: socket) -> bool:
        """Takes the connection out of those that are cut, where there is room for it among the streams."""
        with self._lock:
            if len(self._streams) >= MOST_STREAMS:
                return False
            self._due.pop(connection, None)
            self._streams.add(connection)
            return True

    def service_actions(self) -> None:
        """Cuts, twice a second, the connections whose time is over: their threads see the end of the stream."""
        now = time.monotonic()
        with self._lock:
            over = [connection for connection, due in self._due.items() if due < now]
        for connection in over:
            with suppress(OSError):
                connection.shutdown(SHUT_RDWR)

    def server_close(self) -> None:
        super().server_close()
        self.live.close()
        self.snapshots.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader that goes away in the middle of an answer is no error of ours; others are told on stderr."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def started(
    folder: Path | str | None,
    port: int | None = None,
    annotations: Annotations | None = None,
    *,
    with_token: bool = True,
) -> Server:
    """A server at that port; without one at the usual port, or any other when that is taken."""
    if port is not None:
        return Server(folder, port, annotations, with_token=with_token)
    try:
        return Server(folder, PORT, annotations, with_token=with_token)
    except StoreError:
        raise
    except AgentSignalsError:
        return Server(folder, 0, annotations, with_token=with_token)


class Handler(BaseHTTPRequestHandler):
    """One request: GET or HEAD, of a page or of one of our own files; POST, of a label where these are written."""

    protocol_version = "HTTP/1.1"
    server_version = "agentsignals"
    sys_version = ""
    timeout = ANSWER_S
    server: Server

    def parse_request(self) -> bool:
        whole = super().parse_request()
        self.server.due_in(self.connection, ANSWER_S)
        if not whole:
            return False
        # Whether it may go on, of whatever method; it is refused otherwise.
        if self.headers.get_all("Host", []) not in [[name] for name in self.server.names]:
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST, "This server answers only to 127.0.0.1 and localhost.")
            return False
        try:
            is_open = rendering.is_asset(urlsplit(self.path).path)
            answer = self.server.access.answer(self.command, self.path, self.headers, is_open=is_open)
        except ValueError as problem:  # an address that is none, such as `//[`
            self._refuse(HTTPStatus.BAD_REQUEST, f"Invalid address: {problem}.")
            return False
        if answer is None:
            return True
        self.close_connection = True  # what came with the request stays unread
        self._send(answer.status, answer.html.encode(), "text/html", {**answer.headers, "Cache-Control": "no-store"})
        return False

    def handle_one_request(self) -> None:
        super().handle_one_request()
        self.server.due_in(self.connection, WAIT_S)

    def do_GET(self) -> None:
        began = time.perf_counter()
        address = urlsplit(self.path)
        if address.path == LIVE:  # events, as long as the page is open
            self.close_connection = True
            if self.command == "HEAD" or not self.server.is_stream(self.connection):
                self._send(HTTPStatus.SERVICE_UNAVAILABLE, _TOO_MANY, "text/plain", {"Retry-After": "60"})
            else:
                self._head(HTTPStatus.OK, "text/event-stream", {"Cache-Control": "no-store"})
                self.server.live.stream(self.wfile.write)
            return
        asset_file = rendering.asset(address.path)
        if asset_file is not None:
            self._send(HTTPStatus.OK, asset_file.content, asset_file.type, {"Cache-Control": "private, max-age=600"})
            return
        try:
            asked = Query(address.query)
        except ValueError as problem:
            status, reply = HTTPStatus.BAD_REQUEST, _error(f"Invalid address: {problem}.", "", address.path)
        else:
            status, reply = self._answered(address.path, lambda: (HTTPStatus.OK, self._reply(address.path, asked)))
        took = {"Server-Timing": f"page;dur={(time.perf_counter() - began) * 1000:.1f}", "Cache-Control": "no-store"}
        self._send(status, reply.content, reply.type, {**reply.headers, **took})

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        """A label for the gold file, where there is one."""
        open_file = self.server.snapshots.annotations
        if open_file is None or self.path != labels.ADDRESS:
            self._refused()
            return
        try:
            fields = open_file.form(self.headers, self.rfile, self.server.names)
        except labels.Refused as problem:
            self._refuse(problem.status, str(problem))
            return

        def taken() -> tuple[HTTPStatus, Reply]:
            answer = labels.taken(self.server.snapshots.current(), fields)
            if isinstance(answer, str):
                return HTTPStatus.SEE_OTHER, Reply(b"", "text/plain", {"Location": answer})
            return HTTPStatus.CONFLICT, _html(answer, labels.ADDRESS)

        status, reply = self._answered(labels.ADDRESS, taken)
        self._send(status, reply.content, reply.type, {**reply.headers, "Cache-Control": "no-store"})

    def __getattr__(self, name: str) -> Any:
        """http.server asks for `do_` and the method's name: of any other method than the two above this is told."""
        if name.startswith("do_"):
            return self._refused
        raise AttributeError(name)

    def _refused(self) -> None:
        self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "This page is read-only. Use GET or HEAD.", {"Allow": "GET, HEAD"})

    def _refuse(self, status: HTTPStatus, why: str, more: dict[str, str] | None = None) -> None:
        self.close_connection = True  # what came with the request stays unread
        self._send(status, f"{why}\n".encode(), "text/plain", more)

    def _answered(self, path: str, make: Callable[[], tuple[HTTPStatus, Reply]]) -> tuple[HTTPStatus, Reply]:
        """Return the answer, or the page that says why it can't be made."""
        try:
            return make()
        except (NotFound, UnknownSession, CatalogError, UsageError) as problem:
            return HTTPStatus.NOT_FOUND, _error(problem.message, problem.hint, path)
        except QueryError as problem:
            # The store is as it was, which `_reply` has looked after: the query is wrong, and every query is ours.
            traceback.print_exc()
            return HTTPStatus.INTERNAL_SERVER_ERROR, _error(problem.message, OURS, path)
        except AgentSignalsError as problem:
            return HTTPStatus.SERVICE_UNAVAILABLE, _error(problem.message, problem.hint, path)
        except OSError as problem:
            message = f"Cannot read the store: {problem.strerror or problem}."
            return HTTPStatus.SERVICE_UNAVAILABLE, _error(message, "Run `agentsignals analyze` to create it.", path)
        except Exception:  # noqa: BLE001  (told to the reader and, whole, on stderr: one page costs no other)
            traceback.print_exc()
            message = "Internal error. The terminal that runs `agentsignals serve` shows the traceback."
            return HTTPStatus.INTERNAL_SERVER_ERROR, _error(message, "", path)

    def _reply(self, path: str, query: Query) -> Reply:
        """The page of the present store, made twice where the store changed meanwhile: a shard that was there is gone
        when an `analyze` has just replaced it, and its successor is named by now. StoreError where it changed twice."""
        snapshots = self.server.snapshots
        snapshot = snapshots.current()
        try:
            return _made(snapshot, path, query)
        except (QueryError, OSError):
            again = snapshots.after(snapshot)
            if again is snapshot:
                raise
        try:
            return _made(again, path, query)
        except QueryError as problem:
            if snapshots.after(again) is again:
                raise
            raise StoreError("The store changed while this page was loading.", "Reload the page.") from problem

    def _send(self, status: HTTPStatus, content: bytes, type_: str, more: dict[str, str] | None = None) -> None:
        self._head(status, type_, {**(more or {}), "Content-Length": str(len(content))})
        if self.command != "HEAD":
            self.wfile.write(content)

    def _head(self, status: HTTPStatus, type_: str, more: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, **more}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{type_}; charset=utf-8")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what http.server refuses by itself, with our headers and none of the request's text."""
        self.close_connection = True
        self.command = getattr(self, "command", None) or "GET"
        self._send(HTTPStatus(code), f"{HTTPStatus(code).phrase}\n".encode(), "text/plain")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (http.server's word)
        """Says nothing: addresses hold ids and what people searched for."""


def _made(snapshot: Snapshot, path: str, query: Query) -> Reply:
    answer = answer_of(snapshot, path, query)
    return answer if isinstance(answer, Reply) else _html(answer, path, snapshot, query)


def _html(page: Page, path: str, snapshot: Snapshot | None = None, query: Query | None = None) -> Reply:
    return Reply(html(page, path, snapshot, query).encode("utf-8", "replace"), "text/html")


def _error(message: str, hint: str, path: str) -> Reply:
    return _html(Page("error.html.j2", "Page not available", {"message": message, "hint": hint}), path)


# Who may ask the page: its own browser tab, known by a cookie that the printed address gave it, and nobody else.
#
# 127.0.0.1 is no secret: every user of the machine, every container with its network and every website that the person
# visits can send a request there. So each start draws a token, which stands in the address that `serve` prints. Whoever
# comes with it gets a cookie and is sent on to the address without it. Browsers say which site a request came from
# (https://www.w3.org/TR/fetch-metadata/); one of another site, port or origin is refused before anything is looked up,
# so that the time of an answer tells it nothing.

PARAMETER = "token"
_SAFE = "/%:@!$&'()*+,;=~-._?"
_PRINTED = "Open the full address that <code>agentsignals serve</code> printed, with <code>?token=…</code>."
_PAGE = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">{more}<title>{title} · agentsignals</title>'
    '<link rel="icon" href="data:,"><link rel="stylesheet" href="/static/page.css"></head>'
    "<body><main><h1>{title}</h1><p>{says}</p></main></body></html>\n"
)


class Answer(NamedTuple):
    """Answer to a request that reaches no page: a refusal, or the way in."""

    status: HTTPStatus
    html: str
    headers: dict[str, str]


class Access:
    """The token and the cookie of one start. Without a token every request of this machine's browsers is let in."""

    def __init__(self, port: int, *, with_token: bool = True) -> None:
        self.token = secrets.token_urlsafe(32) if with_token else ""
        self._cookie = secrets.token_urlsafe(32)
        self._name = f"agentsignals-{port}"
        """Browsers send a cookie to every port of a host: each server needs a name of its own."""

    def answer(self, method: str, target: str, headers: Message, *, is_open: bool = False) -> Answer | None:
        """Return how to answer a request that may not go on to the pages; None for one that may. `is_open`: what it
        asks for holds no data, so that it needs no token."""
        is_reading, address = method in ("GET", "HEAD"), urlsplit(target)
        given = next(
            (v for n, _, v in (part.partition("=") for part in address.query.split("&")) if n == PARAMETER), ""
        )
        token, slash, rest = given.partition("/")
        comes_in = is_reading and bool(self.token) and _equal(token, self.token)
        # The browser says that a page of this server, or the person, sent it. Other programs say nothing.
        sites, origins = headers.get_all("Sec-Fetch-Site", []), headers.get_all("Origin", [])
        own = f"http://{headers.get('Host')}"
        is_of_this_page = sites in ([], ["same-origin"], ["none"]) and origins in ([], [own])
        # Browsers before 2020 tell the page alone that a request came from.
        is_of_this_page = is_of_this_page and all(page.startswith(f"{own}/") for page in headers.get_all("Referer", []))
        if origins == ["null"]:  # of our own forms, whose pages tell nobody where they are
            is_of_this_page = sites == ["same-origin"]
        # A link of another site may open this page as a whole tab.
        told = [headers.get_all(f"Sec-Fetch-{name}", []) for name in ("Site", "Mode", "Dest")]
        is_link = method == "GET" and told == [["cross-site"], ["navigate"], ["document"]] and "Origin" not in headers
        if not is_of_this_page and not (comes_in and is_link):
            return _refusal("Request refused", f"Another website sent this request. {_PRINTED}")
        # Other servers of this host set cookies, too, in whatever form.
        pairs = [part.strip().partition("=") for line in headers.get_all("Cookie", []) for part in line.split(";")]
        has_cookie = any(_equal(value, self._cookie) for name, _, value in pairs if name == self._name)
        if not (comes_in or is_open or not self.token or has_cookie):
            wrong = "The token in this address is wrong." if given else "This address has no token."
            return _refusal("Access denied", f"{wrong} {_PRINTED} Every start has a new token.")
        if not (comes_in or (is_reading and given and not is_open)):
            return None
        left = "&".join(part for part in address.query.split("&") if part.partition("=")[0] != PARAMETER)
        # Whoever appends a path to the printed address means that page. It begins with one slash: two lead elsewhere.
        path = f"/{rest}" if slash and comes_in else f"/{address.path.lstrip('/')}" + (f"?{left}" if left else "")
        where = quote(f"/{path.lstrip('/')}", _SAFE)
        kept = {"Set-Cookie": f"{self._name}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"} if comes_in else {}
        if headers.get("Sec-Fetch-Site") != "cross-site":
            return Answer(HTTPStatus.SEE_OTHER, "", {"Location": where, **kept})
        # A strict cookie is not sent along a redirect that began elsewhere (the file that `--open` opens, a terminal in
        # a browser). A page of ours that goes on by itself begins anew.
        on = f'<meta http-equiv="refresh" content="0;url={escape(where)}">'
        says = f'<a href="{escape(where)}">Continue</a>'
        return Answer(HTTPStatus.OK, _PAGE.format(title="Opening", says=says, more=on), kept)


def _equal(given: str, wanted: str) -> bool:
    """Compare in a time that does not depend on where they differ."""
    return secrets.compare_digest(given.encode("utf-8", "surrogateescape"), wanted.encode())


def _refusal(title: str, says: str) -> Answer:
    return Answer(HTTPStatus.FORBIDDEN, _PAGE.format(title=title, says=says, more=""), {})
