"""Vectors by a model on this machine, through sentence-transformers; the only place that loads it."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agentsignals.embedding.lexical import split_words
from agentsignals.embedding.vectors import Dense
from agentsignals.errors import EmbedderError

BATCH_TEXTS = 32
"""More is slower on a CPU (128 texts: 57 ms a text against 42; design/speed.md#batches)."""
_ENDS = 65_536


class SentenceModel:
    """A sentence-transformers model: a folder, or a name on the Hub (`NAME@REVISION` pins it), which is downloaded."""

    profile = None

    def __init__(self, model: str, tell: Callable[[str], None] | None = None) -> None:
        self._named = model
        self._tell = tell
        folder = Path(model).expanduser()
        self._folder = folder if folder.is_dir() else None
        name = f"{folder.name}#{digest(folder)}" if self._folder else model
        self.id = f"sentence-transformers:{name}"
        self._model: Any = None

    def embed(self, texts: Sequence[str]) -> list[Dense]:
        """One vector a text. EmbedderError when the package or the model is not to be had."""
        with_words = [n for n, text in enumerate(texts) if split_words(text)]
        vectors = [Dense(array("f"))] * len(texts)
        if not with_words:
            return vectors
        rows = self._loaded().encode(
            [texts[n] for n in with_words], batch_size=BATCH_TEXTS, convert_to_numpy=True, show_progress_bar=False
        )
        for n, row in zip(with_words, rows, strict=True):
            vectors[n] = Dense.of(row.tolist())
        return vectors

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
