"""A small real server that speaks what reading data sets asks of the Hub, with faults to order.

GET  /api/datasets?filter=…            the list, in pages (`Link`)
GET  /api/datasets/ID[/revision/REV]   a data set, its commit
GET  /api/datasets/ID/tree/COMMIT      its files, in pages
HEAD, GET /datasets/ID/resolve/COMMIT/PATH   a file, or a part of it (`Range`)
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.http_server import running

PAGE = 2
"""Entries a page: few, so that there are several."""


class DataSet:
    """A data set: its files, what its card says."""

    def __init__(self, files: dict[str, bytes], **facts: Any) -> None:
        self.files = files
        self.facts = facts
        self.large: set[str] = set()
        """Files that are named by SHA-256, as large ones are."""

    @property
    def commit(self) -> str:
        told = "".join(f"{path}\0{oid(data)}\n" for path, data in sorted(self.files.items()))
        return hashlib.sha1(told.encode(), usedforsecurity=False).hexdigest()

    def etag(self, path: str) -> str:
        return hashlib.sha256(self.files[path]).hexdigest() if path in self.large else oid(self.files[path])


class Hub:
    """What it holds, what was asked of it, and what goes wrong."""

    def __init__(self) -> None:
        self.sets: dict[str, DataSet] = {}
        self.requests: list[tuple[str, str, str | None]] = []
        """Method, path, `Range`."""
        self.faults: dict[str, list[tuple[int, dict[str, str]]]] = {}
        """By the end of a path: statuses to answer first, with headers."""
        self.cut_after: dict[str, list[int]] = {}
        """By the end of a path: the connection breaks after so many bytes, once for each."""
        self.url = ""

    def downloads(self) -> list[str]:
        """The files whose bytes were sent, each time."""
        asked = [path.partition("/resolve/")[2] for method, path, _ in self.requests if method == "GET"]
        return [path.partition("/")[2] for path in asked if path]


def oid(data: bytes) -> str:
    """Git's id of a blob."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


@contextmanager
def serving() -> Iterator[Hub]:
    """The server on a free port of this machine."""
    hub = Hub()

    class Handler(_Handler):
        state = hub

    with running(Handler) as hub.url:
        yield hub


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: Hub

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        path = unquote(parts.path)
        self.state.requests.append((self.command, path, self.headers.get("Range")))
        for end, faults in self.state.faults.items():
            if path.endswith(end) and faults:
                status, headers = faults.pop(0)
                self._send(status, b'{"error": "no"}', headers)
                return
        if path == "/api/datasets":
            self._list(parse_qs(parts.query))
        elif path.startswith("/api/datasets/"):
            self._about(path.removeprefix("/api/datasets/").split("/"), parse_qs(parts.query))
        elif path.startswith("/datasets/"):
            self._file(path.removeprefix("/datasets/"))
        else:
            self._send(404, b"")

    def _list(self, asked: dict[str, list[str]]) -> None:
        wanted = set(asked.get("filter", []))
        found = [
            {"id": name, "sha": one.commit, "siblings": [{"rfilename": p} for p in one.files], **one.facts}
            for name, one in sorted(self.state.sets.items())
            if wanted <= set(one.facts.get("tags", ()))
        ]
        self._pages(found, asked)

    def _about(self, words: list[str], asked: dict[str, list[str]]) -> None:
        name, rest = "/".join(words[:2]), words[2:]
        one = self.state.sets.get(name)
        if one is None:
            self._send(401, b"", {"X-Error-Code": "RepoNotFound"})
        elif rest and rest[0] in ("revision", "tree") and rest[1] not in ("main", one.commit):
            self._send(404, b"", {"X-Error-Code": "RevisionNotFound"})
        elif rest and rest[0] == "tree":
            self._pages([_entry(one, path) for path in sorted(one.files)], asked)
        else:
            self._send(200, json.dumps({"id": name, "sha": one.commit}).encode())

    def _pages(self, found: list[dict[str, Any]], asked: dict[str, list[str]]) -> None:
        at = int(asked.get("cursor", ["0"])[0])
        more = {}
        if at + PAGE < len(found):
            query = "&".join(
                [*(f"{k}={v}" for k, vs in asked.items() if k != "cursor" for v in vs), f"cursor={at + PAGE}"]
            )
            more["Link"] = f'<{self.state.url}{urlsplit(self.path).path}?{query}>; rel="next"'
        self._send(200, json.dumps(found[at : at + PAGE]).encode(), more)

    def _file(self, path: str) -> None:
        name, _, rest = path.partition("/resolve/")
        commit, _, inner = rest.partition("/")
        one = self.state.sets.get(name)
        if one is None or inner not in one.files:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        data = one.files[inner]
        headers = {"ETag": f'"{one.etag(inner)}"', "X-Repo-Commit": commit, "Accept-Ranges": "bytes"}
        start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").split("-")[0])
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        cuts = next((c for end, c in self.state.cut_after.items() if path.endswith(end) and c), None)
        if self.command == "GET" and cuts:
            self._cut(data[start:], cuts.pop(0), headers)
        else:
            self._send(206 if start else 200, data[start:], headers)

    def _cut(self, data: bytes, after: int, headers: dict[str, str]) -> None:
        """Promises all of it and breaks off."""
        self._head(200, len(data), headers)
        self.wfile.write(data[:after])
        self.wfile.flush()
        self.close_connection = True

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self._head(status, len(body), headers or {})
        if self.command == "GET":
            self.wfile.write(body)

    def _head(self, status: int, length: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


def _entry(one: DataSet, path: str) -> dict[str, Any]:
    data = one.files[path]
    found: dict[str, Any] = {"type": "file", "path": path, "size": len(data), "oid": oid(data)}
    if path in one.large:
        found["lfs"] = {"size": len(data), "oid": one.etag(path), "pointerSize": 130}
    return found


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A Hub of our own, and an empty cache."""
    pytest.importorskip("huggingface_hub", reason="needs the extra hub")
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_TOKEN_PATH", str(tmp_path / "no-token"))
    with serving() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


def conversation(session_id: str | None, *prompts: str, harness: str = "pi") -> bytes:
    """A conversation in the Hub's simple format: each prompt is answered."""
    header = {"type": "session", "harness": harness, **({"id": session_id} if session_id else {})}
    lines: list[dict[str, Any]] = [header]
    for prompt in prompts:
        lines += [{"type": "message", "message": m} for m in messages(prompt)]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def messages(*prompts: str) -> list[dict[str, Any]]:
    """Prompts and their answers."""
    return [
        m for p in prompts for m in ({"role": "user", "content": p}, {"role": "assistant", "content": f"Done: {p}"})
    ]


def table(**columns: Any) -> bytes:
    """A Parquet file of these columns."""
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()
