"""Object stores that speak S3 (Amazon's, MinIO, Ceph, R2 …): addresses, a client, and what a refusal means.

Region, endpoint and credentials come from where Amazon's own programs look for them: `AWS_*` variables, `~/.aws`, the
machine's role (https://docs.aws.amazon.com/sdkref/latest/guide/settings-reference.html). None is taken from an address,
and no error's own words are passed on: they may hold what signed a request.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Any, NamedTuple

from agentsignals.errors import UsageError

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
