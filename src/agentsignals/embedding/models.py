"""Embedding models: sentence-transformers on this machine, or a server that speaks OpenAI's `POST /v1/embeddings`."""

from __future__ import annotations

import hashlib
import os
import time
import urllib.error
import urllib.request
from array import array
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from agentsignals.embedding import REDACT, Dense, split_words
from agentsignals.errors import EmbedderError, UsageError
from agentsignals.network import LOCAL_NOTICE, MASKED_NOTICE, RETRYABLE_STATUSES, http_opener, is_local, retry_after_s
from agentsignals.redaction import redacted_part
from agentsignals.redaction.guard import Guard

BATCH_TEXTS = 32
"""More is slower on a CPU (128 texts: 57 ms a text against 42; design/speed.md#batches)."""
_ENDS = 65_536


class _Model:
    """A model that embeds texts with words; a text without any has no direction."""

    profile = None

    def embed(self, texts: Sequence[str]) -> list[Dense]:
        """Return one vector a text. EmbedderError when the model is not to be had, or its server fails."""
        with_words = [n for n, text in enumerate(texts) if split_words(text)]
        vectors = [Dense(array("f"))] * len(texts)
        for n, vector in zip(with_words, self._made([texts[n] for n in with_words]), strict=True):
            vectors[n] = vector
        return vectors

    def _made(self, texts: list[str]) -> Iterator[Dense]:
        raise NotImplementedError


class SentenceModel(_Model):
    """A sentence-transformers model: a folder, or a name on the Hub (`NAME@REVISION` pins it), which is downloaded."""

    def __init__(self, model: str, tell: Callable[[str], None] | None = None) -> None:
        self._named = model
        self._tell = tell
        folder = Path(model).expanduser()
        self._folder = folder if folder.is_dir() else None
        name = f"{folder.name}#{digest(folder)}" if self._folder else model
        self.id = f"sentence-transformers:{name}"
        self._model: Any = None

    def _made(self, texts: list[str]) -> Iterator[Dense]:
        if texts:
            options = {"batch_size": BATCH_TEXTS, "convert_to_numpy": True, "show_progress_bar": False}
            for row in self._loaded().encode(texts, **options):
                yield Dense.of(row.tolist())

    def _loaded(self) -> Any:
        if self._model is None:
            try:
                from sentence_transformers import SentenceTransformer  # noqa: PLC0415  (six CPU seconds to load)
            except ImportError as problem:
                raise EmbedderError(
                    "The package sentence-transformers is not installed.",
                    "Install it: pip install 'agentsignals[embed]'.",
                ) from problem
            name, _, revision = self._named.partition("@") if self._folder is None else (str(self._folder), "", "")
            if self._folder is None and self._tell is not None:
                self._tell(
                    f"the model {name} is taken from the Hub, or from its cache here; no text leaves this machine"
                )
            try:
                self._model = SentenceTransformer(name, revision=revision or None, trust_remote_code=False)
            except (OSError, ValueError, RuntimeError) as problem:
                raise EmbedderError(
                    f"The model {self._named!r} can't be loaded: {str(problem)[:300]}",
                    "Name a folder that holds a sentence-transformers model, or a model on the Hub.",
                ) from problem
        return self._model


def digest(folder: Path) -> str:
    """Names a model's files by their names, sizes and both ends: other weights are another embedder."""
    hasher = hashlib.blake2b(digest_size=6)
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.startswith(".")):
        size = path.stat().st_size
        hasher.update(f"{path.relative_to(folder).as_posix()}:{size}\n".encode())
        with path.open("rb") as file:
            hasher.update(file.read(_ENDS))
            file.seek(max(0, size - _ENDS))
            hasher.update(file.read(_ENDS))
    return hasher.hexdigest()


DEFAULT_URL = "https://api.openai.com/v1"
URL_VARIABLE, KEY_VARIABLE = "OPENAI_BASE_URL", "OPENAI_API_KEY"
BATCH_TEXTS_REMOTE = 64
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


class Remote(_Model):
    """A model behind a server: `MODEL@URL`, or `MODEL` at `$OPENAI_BASE_URL`. The key is `$OPENAI_API_KEY`.

    Texts that leave this machine are redacted first. A server on this machine gets them as they are, unless
    `#redact` stands behind its address.
    """

    def __init__(
        self, named: str, tell: Callable[[str], None] | None = None, wait: Callable[[float], None] = time.sleep
    ) -> None:
        model, at, url = named.partition("@")
        url, forced, _ = url.partition(REDACT)
        if not url and (forced or not at):
            url = os.environ.get(URL_VARIABLE) or DEFAULT_URL
        url = url.rstrip("/")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or not model:
            raise UsageError(f"{named!r} names no embedding server.", "Say openai:MODEL@http://HOST:PORT/v1.")
        self.leaves = not is_local(parts.hostname)
        self._redacts = self.leaves or bool(forced)
        self.id = f"openai:{model}@{parts.hostname}{parts.path}{'+redacted' if self._redacts else ''}"
        self._model, self._url = model, f"{url}/embeddings"
        self._tell, self._wait = tell, wait
        self._opener = http_opener(not self.leaves)

    def _made(self, texts: list[str]) -> Iterator[Dense]:
        batch: list[str] = []
        chars = 0
        for text in texts:
            if batch and (len(batch) == BATCH_TEXTS_REMOTE or chars + len(text) > BATCH_CHARS):
                yield from self._asked(batch)
                batch, chars = [], 0
            batch.append(redacted_part(text) if self._redacts else text)
            chars += len(text)
        if batch:
            yield from self._asked(batch)

    def _asked(self, texts: list[str]) -> list[Dense]:
        if self._tell is not None:
            how = MASKED_NOTICE if self._redacts else f"{LOCAL_NOTICE}; --redact masks them"
            self._tell(f"texts of the sessions go to {self._url}, {how}, for vectors by {self._model}")
            self._tell = None
        body = msgspec.json.encode({"model": self._model, "input": texts, "encoding_format": "float"})
        if self._redacts and (kind := Guard().kind(body.decode())):
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
            if problem.code in RETRYABLE_STATUSES:
                raise _Refused(f"HTTP {problem.code}", retry_after_s(problem.headers.get("Retry-After"))) from problem
            raise EmbedderError(
                f"{self._url} refused: HTTP {problem.code} {' '.join(reply.split())}",
                f"Check the model's name, the address and ${KEY_VARIABLE}.",
            ) from problem
        except (OSError, HTTPException) as problem:  # URLError, time-outs and broken connections
            raise _Refused(str(getattr(problem, "reason", problem)) or type(problem).__name__) from problem
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
