"""What every question to a server keeps to: no redirects, no proxy on the way to this machine, no endless answers."""

from __future__ import annotations

import email.utils
import ipaddress
import os
import re
import time
import urllib.error
import urllib.request
from functools import cache
from http.client import HTTPException, HTTPResponse
from typing import Any, NamedTuple

from agentsignals.errors import UsageError

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


# Object stores that speak S3 (Amazon's, MinIO, Ceph, R2 …): addresses, a client, and what a refusal means.
#
# Region, endpoint and credentials come from where Amazon's own programs look for them: `AWS_*` variables, `~/.aws`,
# the machine's role (https://docs.aws.amazon.com/sdkref/latest/guide/settings-reference.html). None is taken from
# an address, and no error's own words are passed on: they may hold what signed a request.

SCHEME = "s3://"
AT_ONCE = 8
"""Requests on their way at a time from one process."""
_ADDRESS = re.compile(r"s3://(?P<bucket>[A-Za-z0-9][\w.-]{1,253}[A-Za-z0-9])(?:/(?P<key>.*))?", re.DOTALL | re.ASCII)
_SIGNED = re.compile(r"[?&][^=&]*(?:key|secret|token|sig|credential|password)[^=&]*=", re.IGNORECASE)
_WAIT_TO_CONNECT_S, _WAIT_S = 10, 60
_TRIES = 5
_REFUSED = frozenset(
    (
        *("AccessDenied", "AllAccessDisabled", "AuthorizationHeaderMalformed", "ExpiredToken", "InvalidAccessKeyId"),
        *("InvalidObjectState", "InvalidToken", "SignatureDoesNotMatch", "TokenRefreshRequired", "Forbidden"),
        *("401", "403", "NoCredentialsError", "PartialCredentialsError", "ProfileNotFound"),
    )
)
_NOT_THERE = frozenset(("NoSuchKey", "NoSuchBucket", "NotFound", "404"))


class Address(NamedTuple):
    """A bucket, and a key or the beginning of keys in it."""

    bucket: str
    key: str


def address(text: str) -> Address:
    """What `s3://BUCKET/KEY` names. UsageError, which does not repeat it, for what is none or holds credentials."""
    parts = _ADDRESS.fullmatch(text)
    if parts is None or _SIGNED.search(text):
        raise UsageError(
            "An address in an object store is a bucket and a prefix, without credentials.",
            "Write s3://BUCKET or s3://BUCKET/PREFIX; credentials are taken from AWS_* variables or ~/.aws.",
        )
    return Address(parts["bucket"], parts["key"] or "")


def client() -> Any:
    """A client of botocore, for many threads. UsageError when botocore is not installed, or its settings are wrong."""
    return _client(os.getpid())


@cache
def _client(process: int) -> Any:
    """Of each process its own: two that share a connection read each other's answers."""
    try:
        import botocore.session  # noqa: PLC0415  (an extra; a quarter of a second)
        from botocore.config import Config  # noqa: PLC0415  (as above)
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415  (as above)
    except ImportError as problem:
        raise UsageError(
            "Object stores take botocore, which is not installed.", "Install it: pip install 'agentsignals[s3]'."
        ) from problem
    settings = Config(
        connect_timeout=_WAIT_TO_CONNECT_S,
        read_timeout=_WAIT_S,
        retries={"mode": "standard", "total_max_attempts": _TRIES},
        max_pool_connections=AT_ONCE,
        request_checksum_calculation="when_required",  # which servers other than Amazon's may not know
        response_checksum_validation="when_required",
    )
    try:
        return botocore.session.get_session().create_client("s3", config=settings)
    except (BotoCoreError, ValueError) as problem:
        raise UsageError(
            f"The settings of AWS can't be used: {type(problem).__name__}.", "Look at AWS_* variables and ~/.aws."
        ) from problem


def errors() -> tuple[type[Exception], ...]:
    """What a request, or the reading of its answer, may raise."""
    try:
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415  (loaded with the client)
    except ImportError:  # so that there was no client
        return ()
    return BotoCoreError, ClientError


def code(problem: Exception) -> str:
    """What the server called its refusal; where none answered the error's name."""
    answer = getattr(problem, "response", None) or {}
    return str(answer.get("Error", {}).get("Code") or type(problem).__name__)


def reason(problem: Exception) -> str:
    """Why something did not come, as `Unreadable` has it."""
    name = code(problem)
    if name in _REFUSED:
        return "no_permission"
    return "file_gone" if name in _NOT_THERE else "download_failed"
