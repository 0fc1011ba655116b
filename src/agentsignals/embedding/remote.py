"""Vectors from a server that speaks OpenAI's `POST /v1/embeddings`; the standard library is all it takes."""

from __future__ import annotations

import os
import time
import urllib.error
import urllib.request
from array import array
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPException
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from agentsignals.embedding.lexical import split_words
from agentsignals.embedding.vectors import Dense
from agentsignals.errors import EmbedderError, UsageError
from agentsignals.http_client import AGAIN, is_local, opener, retry_after_s
from agentsignals.redaction import redacted_part
from agentsignals.redaction.guard import Guard

DEFAULT_URL = "https://api.openai.com/v1"
URL_VARIABLE, KEY_VARIABLE = "OPENAI_BASE_URL", "OPENAI_API_KEY"
BATCH_TEXTS = 64
BATCH_CHARS = 200_000
"""Servers cap the tokens of one request (OpenAI: 300,000)."""
TIMEOUT_S = 60.0
TRIES = 4
LONGEST_WAIT_S = 30.0
_MOST_BYTES = 256 * 2**20


class _Row(Struct):
    embedding: list[float]
    index: int | None = None


class _Answer(Struct):
    data: list[_Row]


class _Refused(Exception):
    """A try that failed, and how long the server asks to wait."""

    def __init__(self, why: str, wait_s: float | None = None) -> None:
        super().__init__(why)
        self.wait_s = wait_s


class Remote:
    """A model behind a server: `MODEL@URL`, or `MODEL` at `$OPENAI_BASE_URL`. The key is `$OPENAI_API_KEY`.

    Texts that leave this machine are redacted first; a server on this machine gets them as they are.
    """

    profile = None

    def __init__(
        self, named: str, tell: Callable[[str], None] | None = None, wait: Callable[[float], None] = time.sleep
    ) -> None:
        model, at, url = named.partition("@")
        url = (url if at else os.environ.get(URL_VARIABLE) or DEFAULT_URL).rstrip("/")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or not model:
            raise UsageError(f"{named!r} names no embedding server.", "Say openai:MODEL@http://HOST:PORT/v1.")
        self.leaves = not is_local(parts.hostname)
        self.id = f"openai:{model}@{parts.hostname}{parts.path}{'+redacted' if self.leaves else ''}"
        self._model, self._url = model, f"{url}/embeddings"
        self._tell, self._wait = tell, wait
        self._opener = opener(not self.leaves)

    def embed(self, texts: Sequence[str]) -> list[Dense]:
        """One vector a text. EmbedderError when the server can't be reached, refuses, or answers something else."""
        with_words = [n for n, text in enumerate(texts) if split_words(text)]
        vectors = [Dense(array("f"))] * len(texts)
        for batch in _batches(with_words, texts):
            sent = [redacted_part(texts[n]) if self.leaves else texts[n] for n in batch]
            for n, vector in zip(batch, self._asked(sent), strict=True):
                vectors[n] = vector
        return vectors

    def _asked(self, texts: list[str]) -> list[Dense]:
        if self._tell is not None:
            how = "secrets, addresses and user names masked" if self.leaves else "which is this machine"
            self._tell(f"texts of the sessions go to {self._url}, {how}, for vectors by {self._model}")
            self._tell = None
        body = msgspec.json.encode({"model": self._model, "input": texts, "encoding_format": "float"})
        if self.leaves and (kind := Guard().kind(body.decode())):
            raise EmbedderError(f"A text would have sent a {kind} to {self._url}.", "Use an embedder on this machine.")
        for tried in range(1, TRIES + 1):
            try:
                return self._once(body, len(texts))
            except _Refused as problem:
                if tried == TRIES:
                    raise EmbedderError(
                        f"{self._url} gave no vectors in {TRIES} tries: {problem}",
                        "What it gave is kept; run again to go on.",
                    ) from problem
                self._wait(min(LONGEST_WAIT_S, problem.wait_s or 0.5 * 2**tried))
        raise AssertionError("the last try raises")

    def _once(self, body: bytes, n: int) -> list[Dense]:
        headers = {"Content-Type": "application/json", "User-Agent": "agentsignals"}
        if key := os.environ.get(KEY_VARIABLE):
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(self._url, body, headers, method="POST")  # noqa: S310  (scheme checked above)
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as answer:
                data = answer.read(_MOST_BYTES)
        except urllib.error.HTTPError as problem:
            with problem:
                reply = problem.read(300).decode("utf-8", "replace")
            if problem.code in AGAIN:
                raise _Refused(f"HTTP {problem.code}", retry_after_s(problem.headers.get("Retry-After"))) from problem
            raise EmbedderError(
                f"{self._url} refused: HTTP {problem.code} {' '.join(reply.split())}",
                f"Check the model's name, the address and ${KEY_VARIABLE}.",
            ) from problem
        except (OSError, HTTPException) as problem:  # URLError, time-outs and broken connections
            raise _Refused(str(getattr(problem, "reason", problem)) or type(problem).__name__) from problem
        return _vectors(data, n)


def _vectors(data: bytes, n: int) -> list[Dense]:
    try:
        rows = msgspec.json.decode(data, type=_Answer).data
        if all(r.index is not None for r in rows):
            rows.sort(key=lambda r: r.index or 0)
        vectors = [Dense.of(r.embedding) for r in rows]
    except (msgspec.DecodeError, ValueError) as problem:
        raise _Refused(f"an answer that is no list of vectors ({str(problem)[:100]})") from problem
    if len(vectors) != n or len({len(v.values) for v in vectors}) > 1:
        raise _Refused(f"{len(vectors)} vectors for {n} texts, or of different lengths")
    return vectors


def _batches(numbers: list[int], texts: Sequence[str]) -> Iterator[list[int]]:
    batch: list[int] = []
    chars = 0
    for n in numbers:
        if batch and (len(batch) == BATCH_TEXTS or chars + len(texts[n]) > BATCH_CHARS):
            yield batch
            batch, chars = [], 0
        batch.append(n)
        chars += len(texts[n])
    if batch:
        yield batch
