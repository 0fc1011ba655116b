"""Who may ask the page: requests without its token, of another server, of another site, on each route and spelling."""

from __future__ import annotations

import http.client
import http.server
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest

from agentsignals.labels.gold import GoldFile
from agentsignals.store import Store
from agentsignals.ui import live, rendering
from agentsignals.ui import server as ui
from agentsignals.ui.pages import labels
from agentsignals.ui.pages.labels import Annotations
from agentsignals.ui.server import Server
from tests.quick import some
from tests.ui.browser import browsing, needs_browser
from tests.ui.served import Answer, ask, serving

ANYWHERE = {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
OPENS = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-User": "?1"}
FOREIGN = (
    [
        {"Sec-Fetch-Site": site, **how}
        for site in ("cross-site", "same-site", "SAME-ORIGIN", "")
        for how in (ANYWHERE, OPENS)
    ]
    + [{"Origin": origin} for origin in ("https://pages.example", "http://127.0.0.1:1", "null", "")]
    + [
        {"Referer": page}
        for page in ("https://pages.example/", "http://127.0.0.1:1/", "http://127.0.0.1.pages.example/")
    ]
)
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "TRACE", "FROBNICATE")


@pytest.fixture(scope="module")
def server(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    gold = GoldFile(str(tmp_path_factory.mktemp("gold") / "gold.jsonl"))
    with serving(store, Annotations(gold), with_token=True) as running:
        yield running


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Addresses of the pages that were made for anybody."""
    pages: list[str] = []
    answer = ui.answer_of

    def counted(snapshot: Any, path: str, query: Any) -> Any:
        pages.append(path)
        return answer(snapshot, path, query)

    monkeypatch.setattr(ui, "answer_of", counted)
    monkeypatch.setattr(ui.Live, "stream", lambda *_: pages.append(live.PATH))
    monkeypatch.setattr(labels, "taken", lambda *_: pages.append(labels.ADDRESS))
    return pages


def addresses() -> list[str]:
    """An address of each route of the page's own table, and of what the server answers beside it."""
    named = {"session": "fine-1", "raw": "1", "explain": "sessions.cost_usd", "signal": "user.tool_error_rate",
             "studies": "tools", "finding": "data-quality.records"}  # fmt: skip
    paths = []
    for route in rendering.routes():
        parts = [named.get(before, "fine-1") if part == "*" else part
                 for before, part in zip(("", *route.path), route.path, strict=False)]  # fmt: skip
        paths.append("/" + "/".join(parts))
    return [*paths, live.PATH, labels.ADDRESS, "/search?q=parser", "/nowhere"]


def spellings(path: str) -> list[str]:
    """Ways to write an address that a server might take for another one, or for an open one."""
    encoded = "".join(f"%{ord(c):02x}" if c.isalpha() else c for c in path)
    odd = [f"/{path}", f"//{path}", path.replace("/", "//"), f"/static/..{path}", f"/static/%2e%2e{path}", f"/.{path}",
           f"{path}/", f"{path}?", f"{path};x", f"{path}#x", path.upper(),
           f"/static/ui.css/..{path}", f"/static/ui.css%00{path}",
           f"{path}%20", f"\\{path[1:]}", f"{path}?token", f"{path}?TOKEN=x"]  # fmt: skip
    return [path, encoded, *odd]


def cookie_of(server: Server) -> str:
    """The cookie that the printed address gives, as a browser sends it."""
    got = ask(server, server.address.removeprefix(server.url.rstrip("/")))
    assert got.status == 303
    ((name, morsel),) = SimpleCookie(got.headers["Set-Cookie"]).items()
    assert (morsel["httponly"], morsel["samesite"], morsel["path"], morsel["domain"]) == (True, "Strict", "/", "")
    return f"{name}={morsel.value}"


def is_refused(got: Answer) -> bool:
    return got.status in (400, 403, 421) and "parser" not in got.text.lower() and "Set-Cookie" not in got.headers


def test_the_printed_address_lets_in_by_a_cookie_and_leaves_the_address(server: Server) -> None:
    got = ask(server, f"/sessions?agent=codex&token={server.access.token}&page=2")
    assert (got.status, got.headers["Location"]) == (303, "/sessions?agent=codex&page=2")
    assert server.access.token not in got.headers["Set-Cookie"] + got.headers["Location"]
    cookie = cookie_of(server)
    assert cookie.startswith(f"agentsignals-{server.port}=")
    others = 'theme={"a": "b"}; agentsignals-1=x; _xsrf=2|a'
    for header in (cookie, f"{others}; {cookie}", f"{cookie}; {others}"):
        assert "parser" in ask(server, "/sessions", headers={"Cookie": header}).text
    assert ask(server, "/", headers={"Cookie": cookie, "Sec-Fetch-Site": "none", **OPENS}).status == 200
    assert ask(server, "/", headers={"Cookie": cookie, "Sec-Fetch-Site": "same-origin"}).status == 200
    stale = ask(server, "/sessions?token=of-yesterday", headers={"Cookie": cookie})
    assert (stale.status, stale.headers["Location"]) == (303, "/sessions")


def test_an_address_that_was_appended_to_leads_there_and_never_elsewhere(server: Server) -> None:
    token = server.access.token
    for path, leads in (
        (f"/?token={token}/session/fine-1", "/session/fine-1"),
        (f"/?token={token}/sessions?agent=codex", "/sessions?agent=codex"),
        (f"/?token={token}//evil.example", "/evil.example"),
        (f"/?token={token}/\\evil.example", "/%5Cevil.example"),
        (f"//evil.example/?token={token}", "/evil.example/"),
        (f"/\\evil.example?token={token}", "/%5Cevil.example"),
        (f"/{'%0d%0a'}Set-Cookie:x?token={token}", "/%0d%0aSet-Cookie:x"),
        (f"http://127.0.0.1:{server.port}/sessions?token={token}", "/sessions"),
    ):
        got = ask(server, path)
        assert (got.status, got.headers["Location"]) == (303, leads), path


@pytest.mark.parametrize("path", some(addresses(), 3))
def test_no_route_answers_without_the_token(server: Server, made: list[str], path: str) -> None:
    token, mark = server.access.token, "&" if "?" in path else "?"
    wrong = ["", "x", token[:-1], token + "x", token.swapcase(), "%00", "é", token.replace(token[0], "%41", 1) + "a"]
    name, cookie = f"agentsignals-{server.port}", cookie_of(server)
    cookies = [
        "",
        f"{name}=",
        f"{name}={token}",
        cookie[:-1],
        cookie.replace(name, "agentsignals-8321"),
        cookie.upper(),
    ]
    for written in spellings(path):
        assert is_refused(ask(server, written.replace("\\", "%5c"))), written
    for given in wrong:
        assert is_refused(ask(server, f"{path}{mark}token={given.replace('é', '%c3%a9')}")), given
    for sent in cookies:
        assert is_refused(ask(server, path, headers={"Cookie": sent})), sent
    for method in METHODS:
        assert is_refused(ask(server, path, method)), method
    for method in METHODS[2:]:
        assert is_refused(ask(server, f"{path}{mark}token={token}", method)), method
    assert made == []


@pytest.mark.parametrize("path", some(["/static/ui.css", *addresses()], 3))
def test_no_route_answers_another_site_also_where_the_browser_has_the_cookie(
    server: Server, made: list[str], path: str
) -> None:
    cookie = cookie_of(server)
    for foreign in FOREIGN:
        for method in METHODS:
            assert is_refused(ask(server, path, method, headers={"Cookie": cookie, **foreign})), (method, foreign)
    for host in ("evil.example", f"evil.example:{server.port}", f"127.0.0.1.evil.example:{server.port}", ""):
        assert ask(server, path, headers={"Cookie": cookie, "Host": host}).status == 421
    assert made == []


def test_token_and_cookie_are_of_one_start(server: Server, store: Store) -> None:
    with serving(store, with_token=True) as other:
        assert is_refused(ask(server, f"/?token={other.access.token}"))
        theirs = cookie_of(other)
        for cookie in (theirs, theirs.replace(str(other.port), str(server.port))):
            assert is_refused(ask(server, "/sessions", headers={"Cookie": cookie}))
        assert other.access.token != server.access.token and len(other.access.token) >= 43


def test_guessing_costs_the_same_wherever_it_is_wrong(server: Server) -> None:
    """Compared in constant time: the function says so of itself, and no other comparison is made with the token."""
    source = Path(rendering.__file__).with_name("server.py").read_text("utf-8")
    assert source.count("compare_digest") == 1
    assert not re.search(r"(==|!=|\bin\b)\s*self\.(token|_cookie)|self\.(token|_cookie)\s*(==|!=|\[)", source)


def test_a_refusal_says_what_to_do_and_styles_are_open(server: Server) -> None:
    for path, says in (("/sessions", "This address has no token."), ("/?token=x", "token in this address is wrong")):
        got = ask(server, path)
        assert got.status == 403 and says in got.text and "agentsignals serve" in got.text
        assert "default-src 'none'" in got.headers["Content-Security-Policy"]
    assert ask(server, "/static/page.css").status == 200
    assert is_refused(ask(server, "/static/../sessions"))


def test_without_a_token_other_sites_are_refused_all_the_same(store: Store) -> None:
    with serving(store) as running:
        assert running.address == running.url and ask(running, "/sessions").status == 200
        for foreign in FOREIGN:
            assert is_refused(ask(running, "/search?q=parser", headers=foreign)), foreign


@contextmanager
def printed(store: Store, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`serve` as a program, and the address that it prints."""
    given = [sys.executable, "-m", "agentsignals", "serve", "--store", str(store.folder), "--port", "0", "--no-watch"]
    with subprocess.Popen([*given, *words], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        try:
            yield running, running.stdout.readline().split()[0]
        finally:
            running.terminate()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="only Linux lists arguments there")
def test_the_token_stands_in_no_programs_arguments(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The browser that `--open` starts is another program: its arguments are kept by a script in its place."""
    kept, browser = tmp_path / "arguments", tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\necho "$@" > {kept}; umask >> {kept}; cp "${{1#file://}}" {tmp_path}/page.html; sleep 5\n'
    )
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    before = os.umask(0o022)
    try:
        with printed(store, "--open") as (running, address):
            until = time.monotonic() + 20
            while not (tmp_path / "page.html").exists() and time.monotonic() < until:
                time.sleep(0.05)
            token = address.partition("token=")[2]
            said = kept.read_text()
            lines = [p.read_bytes() for p in Path("/proc").glob("[0-9]*/cmdline") if os.access(p, os.R_OK)]
            assert len(token) >= 43 and not any(token.encode() in line for line in lines)
            opened = Path(said.split()[0].removeprefix("file://"))
            assert said.split()[1] == "0022" and address in (tmp_path / "page.html").read_text()
            assert (opened.stat().st_mode & 0o777, opened.parent.stat().st_mode & 0o777) == (0o600, 0o700)
            running.send_signal(signal.SIGTERM)
            running.wait(20)
            assert not opened.exists()
    finally:
        os.umask(before)


class _Elsewhere(http.server.BaseHTTPRequestHandler):
    """A page of another port that asks for ours in each way a page can."""

    asks = ""

    def do_GET(self) -> None:
        page = f"""<!doctype html><img src="{self.asks}/search?q=parser"><script src="{self.asks}/sessions"></script>
        <iframe src="{self.asks}/sessions"></iframe><link rel="stylesheet" href="{self.asks}/static/ui.css">
        <form method="post" action="{self.asks}/labels/annotate"><button id="send">send</button></form>
        <a id="go" href="{self.asks}/sessions">go</a>
        <script>fetch("{self.asks}/search?q=parser", {{mode: "no-cors", credentials: "include"}}).catch(() => 0);
        new EventSource("{self.asks}/live");</script>""".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (http.server's word)
        pass


@contextmanager
def elsewhere(server: Server) -> Iterator[int]:
    handler = type("Handler", (_Elsewhere,), {"asks": server.url.rstrip("/")})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        yield other.server_port
        other.shutdown()


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_browser_that_is_let_in_answers_no_other_page(
    server: Server, made: list[str], host: str, tmp_path: Path
) -> None:
    """`127.0.0.1` of another port is the same site to a browser, `localhost` is another one."""
    way = tmp_path / "open.html"
    way.write_text(f'<meta http-equiv="refresh" content="0;url={server.address}">')
    with elsewhere(server) as port, pytest.raises(AssertionError, match="complains"), browsing() as tab:
        tab.goto(way.as_uri())
        tab.wait_for_url(server.url)
        assert tab.locator("nav.site").count() and "token" not in tab.url
        tab.goto(server.address)
        assert tab.url == server.url and tab.locator("nav.site").count()
        tab.goto(f"{server.url}sessions")
        tab.locator("a[href^='/session/']").first.click()
        tab.locator("nav.site").wait_for()
        assert "/session/" in tab.url
        tab.goto("about:blank")
        answers: dict[str, int] = {}
        tab.on("response", lambda got: answers.update({got.url.removeprefix(server.url): got.status}))
        made.clear()
        tab.goto(f"http://{host}:{port}/", wait_until="networkidle")
        for act in ("#go", "#send"):
            tab.goto(f"http://{host}:{port}/", wait_until="networkidle")
            tab.locator(act).click()
            tab.wait_for_load_state()
            assert "Access denied" in tab.inner_text("h1") or "Request refused" in tab.inner_text("h1")
        own_style = answers.pop("static/page.css")  # of the refusal, which is a page of ours
        asked = {path: status for path, status in answers.items() if not path.startswith("http")}
        assert {"sessions", "labels/annotate"} <= set(asked) and set(asked.values()) == {403}, asked
        assert own_style == 200
        assert made == []


def test_the_verbs_option_turns_the_token_off(store: Store) -> None:
    with (
        printed(store, "--no-token") as (_, address),
        closing(
            http.client.HTTPConnection("127.0.0.1", int(address.rstrip("/").rpartition(":")[2]), timeout=30)
        ) as connection,
    ):
        connection.request("GET", "/sessions")
        assert b"parser" in connection.getresponse().read()
