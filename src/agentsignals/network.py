"""HTTP requests to model servers, and the client of S3 object stores.

The HTTP modules of the standard library take 50 ms to load, so the first request loads them.
"""

from __future__ import annotations

import ipaddress
import os
import re
import time
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from agentsignals.errors import UsageError, install_command

if TYPE_CHECKING:
    import urllib.request

# ruff: noqa: PLC0415  (see above; botocore is an optional package)

RETRYABLE_STATUSES = frozenset((408, 409, 425, 429, 500, 502, 503, 504, 529))
"""HTTP statuses after which a request is repeated. 529 means overloaded."""
_OVERLOADED = frozenset((429, 503, 529))
_CHUNK_BYTES = 64 * 1024


class Busy(Exception):
    """A request failed, and repeating it may help.

    `wait_s`: the pause the server asked for. `overloaded`: it said so. `timed_out`: it did not answer in time.
    """

    def __init__(
        self, why: str, wait_s: float | None = None, *, overloaded: bool = False, timed_out: bool = False
    ) -> None:
        super().__init__(why)
        self.wait_s = wait_s
        self.overloaded = overloaded
        self.timed_out = timed_out


class Refused(Exception):
    """A request failed, and repeating it would not help."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def http_opener(local: bool) -> urllib.request.OpenerDirector:
    """Return an opener that follows no redirects, and uses no proxy for a server of this machine (`local`)."""
    import urllib.request

    class NoRedirect(urllib.request.HTTPRedirectHandler):
        """Refuse redirects: one would carry the key and the texts to a host that nobody named."""

        def redirect_request(self, *_: Any) -> None:
            return None

    handlers: list[urllib.request.BaseHandler] = [NoRedirect()]
    if local:
        handlers.append(urllib.request.ProxyHandler({}))
    return urllib.request.build_opener(*handlers)


LOCAL_NOTICE = "unmasked; a server on this machine may forward them (a proxy, a tunnel, a cloud model)"
"""Shown before texts go to a server on this machine without `--redact`."""
MASKED_NOTICE = "secrets, addresses and user names masked"


def is_local(host: str) -> bool:
    """Return whether a host name or address is this machine. Nothing is looked up. The server there may forward."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    # Python below 3.13 calls an IPv4 loopback address written as IPv6 (::ffff:127.0.0.1) no loopback.
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def retry_after_s(header: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks to wait, or None if it holds neither a number nor a date."""
    if not header:
        return None
    if header.strip().isdecimal():
        return float(header)
    import email.utils

    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def http_request(  # noqa: PLR0913  (a request and its bounds, named at the call)
    opener: urllib.request.OpenerDirector,
    url: str,
    body: bytes | None,
    *,
    key: str | None,
    most_bytes: int,
    timeout_s: float,
) -> bytes:
    """POST JSON, or GET if there is no body, and return the answer's body.

    The caller has checked the URL's scheme. Raises Busy if repeating the request may help, else Refused. The whole
    answer must arrive in `timeout_s`: a server that sends a byte now and then never meets a socket's timeout.
    """
    import urllib.error
    import urllib.request
    from http.client import HTTPException

    headers = {"Content-Type": "application/json", "User-Agent": "agentsignals"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(url, body, headers, method="GET" if body is None else "POST")  # noqa: S310
    until = time.monotonic() + timeout_s
    try:
        with opener.open(request, timeout=timeout_s) as answer:
            content = bytearray()
            while part := answer.read1(_CHUNK_BYTES):
                content += part
                if len(content) > most_bytes:
                    raise ValueError(f"an answer of more than {most_bytes:,} bytes")
                if time.monotonic() > until:
                    raise TimeoutError("the answer was incomplete at the time limit")
            return bytes(content)
    except urllib.error.HTTPError as problem:
        with problem:
            try:
                reason = " ".join(problem.read(300).decode("utf-8", "replace").split())
            except (OSError, HTTPException):
                reason = ""  # the status tells enough
        message = f"HTTP {problem.code} {reason}".strip()
        if problem.code not in RETRYABLE_STATUSES:
            raise Refused(problem.code, message) from problem
        wait_s = retry_after_s(problem.headers.get("Retry-After"))
        raise Busy(message, wait_s, overloaded=problem.code in _OVERLOADED) from problem
    except (OSError, HTTPException, ValueError) as problem:  # URLError, time-outs, broken connections
        cause = getattr(problem, "reason", problem)
        raise Busy(str(cause) or type(problem).__name__, timed_out=isinstance(cause, TimeoutError)) from problem


# Object stores that speak S3: Amazon's, MinIO, Ceph, R2. Region, endpoint and credentials come from where Amazon's own
# programs look for them: AWS_* variables, ~/.aws, the machine's role
# (https://docs.aws.amazon.com/sdkref/latest/guide/settings-reference.html). None is taken from an address, and no
# error's own words are passed on: they may hold what signed a request.

S3_SCHEME = "s3://"
S3_CONNECTIONS = 8
"""Requests of one process at a time."""
_ADDRESS = re.compile(r"s3://(?P<bucket>[A-Za-z0-9][\w.-]{1,253}[A-Za-z0-9])(?:/(?P<key>.*))?", re.DOTALL | re.ASCII)
_SIGNED = re.compile(r"[?&][^=&]*(?:key|secret|token|sig|credential|password)[^=&]*=", re.IGNORECASE)
_NO_PERMISSION = frozenset(
    (
        *("AccessDenied", "AllAccessDisabled", "AuthorizationHeaderMalformed", "ExpiredToken", "InvalidAccessKeyId"),
        *("InvalidObjectState", "InvalidToken", "SignatureDoesNotMatch", "TokenRefreshRequired", "Forbidden"),
        *("401", "403", "NoCredentialsError", "PartialCredentialsError", "ProfileNotFound"),
    )
)
_NOT_FOUND = frozenset(("NoSuchKey", "NoSuchBucket", "NotFound", "404"))


class S3Address(NamedTuple):
    """A bucket, and a key or a prefix of keys in it."""

    bucket: str
    key: str


def s3_address(text: str) -> S3Address:
    """Parse `s3://BUCKET/KEY`. UsageError, which does not repeat it, if it is no such address or holds credentials."""
    parts = _ADDRESS.fullmatch(text)
    if parts is None or _SIGNED.search(text):
        raise UsageError(
            "An s3:// address must be a bucket and a prefix, without credentials.",
            "Write s3://BUCKET or s3://BUCKET/PREFIX; credentials come from AWS_* variables or ~/.aws.",
        )
    return S3Address(parts["bucket"], parts["key"] or "")


def s3_client() -> Any:
    """Return this process's botocore client, for any thread. UsageError without botocore, or if settings are wrong."""
    return _s3_client(os.getpid())


@cache
def _s3_client(process: int) -> Any:
    """Return the client of one process: two processes that share a connection read each other's answers."""
    try:
        import botocore.session
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError as problem:
        raise UsageError(
            "Reading s3:// needs botocore, which is not installed.", f"Install it: {install_command('s3')}"
        ) from problem
    settings = Config(
        connect_timeout=10,
        read_timeout=60,
        retries={"mode": "standard", "total_max_attempts": 5},
        max_pool_connections=S3_CONNECTIONS,
        request_checksum_calculation="when_required",  # servers other than Amazon's may not know checksums
        response_checksum_validation="when_required",
    )
    try:
        return botocore.session.get_session().create_client("s3", config=settings)
    except (BotoCoreError, ValueError) as problem:
        raise UsageError(
            f"The AWS settings can't be used: {type(problem).__name__}.", "Check the AWS_* variables and ~/.aws."
        ) from problem


def s3_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that a request, or reading its answer, may raise."""
    try:
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:  # then there was no client either
        return ()
    return BotoCoreError, ClientError


def s3_error_code(problem: Exception) -> str:
    """Return the server's code for a refusal, or the exception's name if no server answered."""
    answer = getattr(problem, "response", None) or {}
    return str(answer.get("Error", {}).get("Code") or type(problem).__name__)


def s3_skip_reason(problem: Exception) -> str:
    """Return the reason by which `Unreadable` counts a failed request."""
    code = s3_error_code(problem)
    if code in _NO_PERMISSION:
        return "no_permission"
    return "file_gone" if code in _NOT_FOUND else "download_failed"
