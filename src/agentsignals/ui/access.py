"""Who may ask the page: its own browser tab, known by a cookie that the printed address gave it, and nobody else.

127.0.0.1 is no secret: every user of the machine, every container with its network and every website that the person
visits can send a request there. So each start draws a token, which stands in the address that `serve` prints and opens.
Whoever comes with it gets a cookie and is sent on to the address without it. Browsers say which site a request came
from (https://www.w3.org/TR/fetch-metadata/); one of another site, another port or another origin is refused before
anything is looked up, so that the time of an answer tells it nothing.
"""

from __future__ import annotations

import secrets
from email.message import Message
from html import escape
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import quote, urlsplit

PARAMETER = "token"
_SAFE = "/%:@!$&'()*+,;=~-._?"
_PRINTED = "Open the address that <code>agentsignals serve</code> printed: its end, <code>?token=…</code>, lets you in."
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
        if not _is_of_this_page(headers) and not (comes_in and _is_navigation(method, headers)):
            return _refusal("This page answers itself alone", f"Another page sent this request. {_PRINTED}")
        if not (comes_in or is_open or not self.token or self._has_cookie(headers)):
            wrong = "The token in this address is not of this server." if given else "This address has no token."
            return _refusal("Not let in", f"{wrong} {_PRINTED} Each start has another.")
        if not (comes_in or (is_reading and given and not is_open)):
            return None
        left = "&".join(part for part in address.query.split("&") if part.partition("=")[0] != PARAMETER)
        # Whoever appends a path to the printed address means that page. It begins with one slash: two lead elsewhere.
        path = f"/{rest}" if slash and comes_in else f"/{address.path.lstrip('/')}" + (f"?{left}" if left else "")
        return self._way_in(quote(f"/{path.lstrip('/')}", _SAFE), headers, with_cookie=comes_in)

    def _way_in(self, where: str, headers: Message, *, with_cookie: bool) -> Answer:
        kept = {"Set-Cookie": f"{self._name}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"} if with_cookie else {}
        if headers.get("Sec-Fetch-Site") != "cross-site":
            return Answer(HTTPStatus.SEE_OTHER, "", {"Location": where, **kept})
        # A strict cookie is not sent along a redirect that began elsewhere (the file that `--open` opens, a terminal in
        # a browser). A page of ours that goes on by itself begins anew.
        on = f'<meta http-equiv="refresh" content="0;url={escape(where)}">'
        says = f'<a href="{escape(where)}">Go on</a>'
        return Answer(HTTPStatus.OK, _PAGE.format(title="Opening", says=says, more=on), kept)

    def _has_cookie(self, headers: Message) -> bool:
        """Return whether the cookie is among those sent. Other servers of this host set theirs, in whatever form."""
        pairs = [part.strip().partition("=") for line in headers.get_all("Cookie", []) for part in line.split(";")]
        return any(_equal(value, self._cookie) for name, _, value in pairs if name == self._name)


def _equal(given: str, wanted: str) -> bool:
    """Compare in a time that does not depend on where they differ."""
    return secrets.compare_digest(given.encode("utf-8", "surrogateescape"), wanted.encode())


def _is_of_this_page(headers: Message) -> bool:
    """Return whether the browser says that a page of this server, or the person, sent the request; also where a program
    that is no browser says nothing."""
    sites, origins = headers.get_all("Sec-Fetch-Site", []), headers.get_all("Origin", [])
    if sites not in ([], ["same-origin"], ["none"]):
        return False
    if origins == ["null"]:  # of our own forms, whose pages tell nobody where they are
        return sites == ["same-origin"]
    return origins in ([], [f"http://{headers.get('Host')}"])


def _is_navigation(method: str, headers: Message) -> bool:
    """Return whether a request of another site opens this page as a whole tab."""
    told = {name: headers.get_all(f"Sec-Fetch-{name}", []) for name in ("Site", "Mode", "Dest")}
    sent_by_link = told == {"Site": ["cross-site"], "Mode": ["navigate"], "Dest": ["document"]}
    return method == "GET" and sent_by_link and "Origin" not in headers


def _refusal(title: str, says: str) -> Answer:
    return Answer(HTTPStatus.FORBIDDEN, _PAGE.format(title=title, says=says, more=""), {})
