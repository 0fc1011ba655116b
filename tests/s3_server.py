"""A server on this machine that speaks S3, and what Amazon's programs read to find it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest

from agentsignals import network

SECRET = "wJalrXUtnFEMI"  # noqa: S105  (of a server of this file)


def settings(monkeypatch: pytest.MonkeyPatch, url: str, key: str = "AKIDEXAMPLE", secret: str = SECRET) -> None:
    """What Amazon's programs read. Clients that were made with other settings are forgotten."""
    for name, value in {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }.items():
        monkeypatch.setenv(name, value)
    network._s3_client.cache_clear()


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of a new server with an empty bucket, `traces`."""
    servers = pytest.importorskip("moto.server", reason="moto is not installed: `make test-engines` has it")
    server = servers.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    settings(monkeypatch, f"http://127.0.0.1:{port}")
    post(port, "reset-auth", b"inf")
    post(port, "reset")  # what servers of this process hold is one
    made = network.s3_client()
    made.create_bucket(Bucket="traces")
    made.server = server
    yield made
    server.stop()


def post(port: int, path: str, data: bytes = b"") -> None:
    """Tells the server something about itself."""
    connection = HTTPConnection("127.0.0.1", port)
    connection.request("POST", f"/moto-api/{path}", data)
    assert connection.getresponse().status == 200
    connection.close()


def put(bucket: Any, **objects: bytes) -> None:
    for key, body in objects.items():
        bucket.put_object(Bucket="traces", Key=key, Body=body)
