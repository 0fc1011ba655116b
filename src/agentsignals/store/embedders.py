"""Embedding models (sentence-transformers on this machine, or a server that speaks OpenAI's `POST /v1/embeddings`), and
the cache of their vectors."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
import time
import weakref
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from agentsignals import private_files
from agentsignals.errors import EmbedderError, StoreError, UsageError, install_command
from agentsignals.network import LOCAL_NOTICE, MASKED_NOTICE, Busy, Refused, http_opener, http_request, is_local
from agentsignals.redaction import Guard, redacted_part
from agentsignals.words.vectors import REDACT, Dense, Embedder, Profile, Vector, parsed, split_words

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
                    f"Install it: {install_command('embed')}",
                ) from problem
            name, _, revision = self._named.partition("@") if self._folder is None else (str(self._folder), "", "")
            if self._folder is None and self._tell is not None:
                self._tell(f"the model {name} comes from the Hub or its local cache; no text leaves this machine")
            try:
                self._model = SentenceTransformer(name, revision=revision or None, trust_remote_code=False)
            except (OSError, ValueError, RuntimeError) as problem:
                raise EmbedderError(
                    f"The model {self._named!r} can't be loaded: {str(problem)[:300]}",
                    "Name a folder with a sentence-transformers model, or a model on the Hub.",
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
            raise UsageError(f"The embedder {named!r} names no server.", "Write openai:MODEL@http://HOST:PORT/v1.")
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
        """Send texts to the server and return their vectors; a busy server is asked again."""
        if self._tell is not None:
            how = MASKED_NOTICE if self._redacts else f"{LOCAL_NOTICE}; --redact masks them"
            self._tell(f"texts of the sessions go to {self._url}, {how}, for vectors by {self._model}")
            self._tell = None
        body = msgspec.json.encode({"model": self._model, "input": texts, "encoding_format": "float"})
        if self._redacts and (kind := Guard().kind(body.decode())):
            raise EmbedderError(
                f"A text was not sent to {self._url}, because it contains a secret ({kind}).",
                "Use an embedding model on this machine.",
            )
        for tried in range(1, TRIES + 1):
            try:
                return self._once(body, len(texts))
            except Refused as problem:
                raise EmbedderError(
                    f"The server {self._url} refused: {problem}", f"Check the model, the address and ${KEY_VARIABLE}."
                ) from problem
            except Busy as problem:
                if tried == TRIES:
                    raise EmbedderError(
                        f"{self._url} returned no embeddings in {TRIES} tries: {problem}",
                        "Finished ones are kept. Run again to continue.",
                    ) from problem
                self._wait(min(LONGEST_WAIT_S, problem.wait_s or 0.5 * 2**tried))
        raise AssertionError("the last try raises")

    def _once(self, body: bytes, n: int) -> list[Dense]:
        """Send one request and return its vectors. Busy for an answer that may be right next time."""
        key = os.environ.get(KEY_VARIABLE)
        data = http_request(self._opener, self._url, body, key=key, most_bytes=_MOST_BYTES, timeout_s=TIMEOUT_S)
        try:
            rows = msgspec.json.decode(data, type=_Answer).data
            if all(r.index is not None for r in rows):
                rows.sort(key=lambda r: r.index or 0)
            vectors = [Dense.of(r.embedding) for r in rows]
        except (msgspec.DecodeError, ValueError) as problem:
            raise Busy(f"an answer that is not a list of vectors ({str(problem)[:100]})") from problem
        if len(vectors) != n or len({len(v.values) for v in vectors}) > 1:
            raise Busy(f"{len(vectors)} vectors for {n} texts, or of different lengths")
        return vectors


_MODELS: dict[str, Callable[..., Embedder]] = {"sentence-transformers": SentenceModel, "openai": Remote}


def model(spec: str, tell: Callable[[str], None] | None = None) -> Embedder:
    """Return the embedder of that name and model. EmbedderError when something it needs is missing."""
    name, wanted = parsed(spec)
    return _MODELS[name](wanted, tell=tell)


# The cache: one file of a store, keyed by the hash of the text. It can be thrown away.

CACHE_FILE = "embeddings.sqlite"
_KEYS_AT_ONCE = 500
_SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors (embedder TEXT, sha256 BLOB, vector BLOB, PRIMARY KEY (embedder, sha256))
WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS profiles (embedder TEXT PRIMARY KEY, aligned REAL, unrelated REAL, origin TEXT);
"""


class Cache:
    """The vectors of one embedder in a store. A damaged file is replaced by a new one."""

    def __init__(self, folder: Path, embedder: str) -> None:
        self._path = folder / CACHE_FILE
        self._embedder = embedder
        try:
            self._db = self._open()
        except sqlite3.DatabaseError:
            self._path.unlink(missing_ok=True)
            self._db = self._open()

    def _open(self) -> sqlite3.Connection:
        try:
            private_files.create(self._path)
            db = sqlite3.connect(self._path, timeout=10, check_same_thread=False)
            weakref.finalize(self, db.close)  # whoever forgets it: an open database is a warning of Python 3.13
        except (OSError, sqlite3.OperationalError) as problem:
            raise StoreError(f"{self._path} can't be opened: {problem}.", "Check the store's permissions.") from problem
        try:
            db.executescript(_SCHEMA)
        except sqlite3.DatabaseError:
            db.close()
            raise
        return db

    def get(self, texts: Sequence[str]) -> dict[str, Vector]:
        """The vectors of those texts that are known."""
        wanted = {_key(text): text for text in texts}
        vectors: dict[str, Vector] = {}
        every = list(wanted)
        for keys in (every[n : n + _KEYS_AT_ONCE] for n in range(0, len(every), _KEYS_AT_ONCE)):
            marks = ",".join("?" * len(keys))
            query = f"SELECT sha256, vector FROM vectors WHERE embedder = ? AND sha256 IN ({marks})"  # noqa: S608  (marks)
            for key, blob in self._all(query, (self._embedder, *keys)):
                values: array[float] = array("f")
                values.frombytes(blob)
                vectors[wanted[key]] = Dense(_little_endian(values))
        return vectors

    def _all(self, query: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """The rows of a query; none where the file turns out to be damaged, which is begun anew then."""
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.OperationalError as problem:
            raise StoreError(
                f"The embeddings {self._path} can't be read: {problem}.",
                "Another run may be writing it. Try again when it has finished.",
            ) from problem
        except sqlite3.DatabaseError:
            self._db.close()
            self._path.unlink(missing_ok=True)
            self._db = self._open()
            return []

    def _change(self, query: str, rows: Sequence[Sequence[object]]) -> None:
        try:
            with self._db:
                self._db.executemany(query, rows)
        except sqlite3.DatabaseError as problem:
            raise StoreError(
                f"The embeddings {self._path} can't be written: {problem}.",
                "Free some space, or let this user write there. The file can be deleted: embeddings are recomputed.",
            ) from problem

    def put(self, vectors: dict[str, Vector]) -> None:
        """Store vectors in one transaction: a run that is killed has all of them or none."""
        rows = [
            (self._embedder, _key(t), _little_endian(v.values).tobytes())
            for t, v in vectors.items()
            if isinstance(v, Dense)
        ]
        self._change("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)

    def profile(self) -> Profile | None:
        """The profile that was fitted for this embedder in this store."""
        query = "SELECT aligned, unrelated, origin FROM profiles WHERE embedder = ?"
        rows = self._all(query, (self._embedder,))
        return Profile(*rows[0]) if rows else None

    def keep_profile(self, profile: Profile) -> None:
        """Keeps a profile, so that values measured later are on the same scale."""
        row = (self._embedder, profile.aligned, profile.unrelated, profile.origin)
        self._change("INSERT OR REPLACE INTO profiles VALUES (?, ?, ?, ?)", [row])

    def close(self) -> None:
        """Lets go of the file."""
        self._db.close()


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _little_endian(values: array[float]) -> array[float]:
    if sys.byteorder == "little":
        return values
    turned = array("f", values)
    turned.byteswap()
    return turned
