"""What every question to a server keeps to: no redirects, no proxy on the way to this machine, no endless answers."""

from __future__ import annotations

import email.utils
import ipaddress
import time
import urllib.error
import urllib.request
from http.client import HTTPException, HTTPResponse
from typing import Any

AGAIN = frozenset((408, 409, 425, 429, 500, 502, 503, 504, 529))
"""Statuses that another try may mend (529: overloaded)."""
_CHUNK = 64 * 1024


_OVERLOADED = frozenset((429, 503, 529))


class Busy(Exception):
    """A try that another may mend; `wait_s` when the server asks for a pause, `overloaded` when it says so, `timed_out`
    when it did not answer in time."""

    def __init__(
        self, why: str, wait_s: float | None = None, *, overloaded: bool = False, timed_out: bool = False
    ) -> None:
        super().__init__(why)
        self.wait_s = wait_s
        self.overloaded = overloaded
        self.timed_out = timed_out


class Refused(Exception):
    """An answer that asking again won't change: its status, and what the server said."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key and the texts to somewhere nobody named."""

    def redirect_request(self, *_: Any) -> None:
        return None


def opener(local: bool) -> urllib.request.OpenerDirector:
    """What opens requests to a server; `local`: one of this machine."""
    handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
    if local:
        handlers.append(urllib.request.ProxyHandler({}))
    return urllib.request.build_opener(*handlers)


def is_local(host: str) -> bool:
    """Whether a host is this machine by its very name or address; nothing is looked up."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
        # An IPv4 address written as IPv6 (::ffff:127.0.0.1) is that address, which Python says of its own from 3.13 on.
        return (getattr(address, "ipv4_mapped", None) or address).is_loopback
    except ValueError:
        return False


def retry_after_s(header: str | None) -> float | None:
    """The seconds that a Retry-After header asks to wait, given as a number or as a date; None for anything else."""
    if not header:
        return None
    if header.strip().isdecimal():
        return float(header)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def body_of(answer: HTTPResponse, most_bytes: int, until: float) -> bytes:
    """The body of an answer. TimeoutError when it is not whole at `until` (`time.monotonic()`): a server that sends a
    byte now and then runs into no socket's timeout. ValueError beyond `most_bytes`.
    """
    body = bytearray()
    while part := answer.read1(_CHUNK):
        body += part
        if len(body) > most_bytes:
            raise ValueError(f"an answer of more than {most_bytes:,} bytes")
        if time.monotonic() > until:
            raise TimeoutError("the answer was not whole in time")
    return bytes(body)


def exchanged(  # noqa: PLR0913  (a request and its bounds, named at the call)
    opening: urllib.request.OpenerDirector,
    url: str,
    body: bytes | None,
    *,
    key: str | None,
    most_bytes: int,
    timeout_s: float,
) -> bytes:
    """The answer to a POST of JSON, or with no body to a GET. Busy where another try may help, Refused where none does.

    The caller has checked the address's scheme.
    """
    headers = {"Content-Type": "application/json", "User-Agent": "agentsignals"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(url, body, headers, method="GET" if body is None else "POST")  # noqa: S310  (as above)
    until = time.monotonic() + timeout_s
    try:
        with opening.open(request, timeout=timeout_s) as answer:
            return body_of(answer, most_bytes, until)
    except urllib.error.HTTPError as problem:
        raise _of_status(problem) from problem
    except (OSError, HTTPException, ValueError) as problem:  # URLError, time-outs and broken connections
        reason = getattr(problem, "reason", problem)
        raise Busy(str(reason) or type(problem).__name__, timed_out=isinstance(reason, TimeoutError)) from problem


def _of_status(problem: urllib.error.HTTPError) -> Busy | Refused:
    with problem:
        try:
            reason = " ".join(problem.read(300).decode("utf-8", "replace").split())
        except (OSError, HTTPException):
            reason = ""  # the status tells
    message = f"HTTP {problem.code} {reason}".strip()
    if problem.code in AGAIN:
        wait_s = retry_after_s(problem.headers.get("Retry-After"))
        return Busy(message, wait_s, overloaded=problem.code in _OVERLOADED)
    return Refused(problem.code, message)
