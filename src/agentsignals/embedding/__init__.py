"""How near two texts are in meaning: vectors of texts, by one of several embedders.

`words` counts words and needs nothing; `chars` counts runs of characters; `sentence-transformers:MODEL` runs a model
here; `openai:MODEL[@URL]` asks a server. Distances of different embedders are not comparable: each has a `Profile`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Protocol

from agentsignals.embedding.lexical import Chars, Words
from agentsignals.embedding.vectors import Embedder, Profile, Vector
from agentsignals.errors import UsageError
from agentsignals.model import Absent

DEFAULT = "words"
NONE = "none"
_LEXICAL: dict[str, Callable[[], Embedder]] = {"words": Words, "chars": Chars}
_MODELS = {
    "sentence-transformers": "agentsignals.embedding.sentence:SentenceModel",
    "openai": "agentsignals.embedding.remote:Remote",
}
"""Name to `module:class`, imported on use; the class takes the model's name."""
MOST_RECENT = 1000
"""Texts whose vectors are at hand: several signals ask for the same ones of a session."""
DISABLED = Absent("backend_disabled", "embedder")


class Kept(Protocol):
    """Where vectors that took a model to make are kept."""

    def get(self, texts: Sequence[str]) -> dict[str, Vector]:
        """Those that are known."""

    def put(self, vectors: dict[str, Vector]) -> None:
        """Keeps them; what was put is there after a crash."""


class Vectors:
    """What signals ask for vectors: an embedder, its profile, and what is known already."""

    def __init__(self, embedder: Embedder, profile: Profile | None = None, kept: Kept | None = None) -> None:
        self.embedder = embedder
        self.profile = profile or embedder.profile or Profile()
        self.kept = kept
        self._recent: dict[str, Vector] = {}

    def of(self, texts: Iterable[str]) -> list[Vector]:
        """One vector a text, in order. EmbedderError when one must be made and can't be."""
        wanted = list(texts)
        if len(self._recent) > MOST_RECENT:
            self._recent.clear()
        recent = self._recent
        missing = [text for text in dict.fromkeys(wanted) if text not in recent]
        if missing and self.kept is not None:
            recent |= self.kept.get(missing)
            missing = [text for text in missing if text not in recent]
        if missing:
            made = dict(zip(missing, self.embedder.embed(missing), strict=True))
            if self.kept is not None:
                self.kept.put(made)
            recent |= made
        return [recent[text] for text in wanted]

    def of_joined(self, texts: Iterable[tuple[str, ...]]) -> list[Vector]:
        """One vector for each text given in parts. Counts of parts add up; a model sees the whole."""
        wanted = list(texts)
        if not isinstance(self.embedder, Words | Chars):
            return self.of("\n".join(parts) for parts in wanted)
        return [self.embedder.joined(self.of(parts)) for parts in wanted]

    @property
    def provenance(self) -> dict[str, Any]:
        """What belongs into the detail of every value that rests on vectors."""
        profile = self.profile
        return {
            "method": "embedding",
            "embedder": self.embedder.id,
            "calibration": {"a": profile.aligned, "m": profile.unrelated, "origin": profile.origin},
        }

    @property
    def confidence(self) -> str:
        """`low` where the cuts were not measured for this embedder, or it only counts words."""
        return "low" if self.profile.origin == "identity" else "medium"


def parsed(spec: str) -> tuple[str, str]:
    """The embedder's name and model out of `NAME[:MODEL]`. UsageError for what is none."""
    name, _, model = spec.partition(":")
    if name in _MODELS and not model:
        raise UsageError(f"The embedder {name!r} came without a model.", f"Say {name}:MODEL.")
    if name not in _MODELS and (model or name not in (*_LEXICAL, NONE)):
        choices = ", ".join((*_LEXICAL, *(f"{n}:MODEL" for n in _MODELS), NONE))
        raise UsageError(f"There is no embedder {spec!r}.", f"The embedders are: {choices}.")
    return name, model


def is_model(spec: str) -> bool:
    """Whether the embedder is worth keeping its vectors: it loads a model, or asks a server."""
    return parsed(spec)[0] in _MODELS


@cache
def light(spec: str = DEFAULT) -> Vectors | Absent:
    """Vectors by counting, made where they are needed. Absent for `none`, and for models, whose vectors are kept."""
    made = _LEXICAL.get(spec)
    return Vectors(made()) if made is not None else DISABLED


def model(spec: str, **settings: Any) -> Embedder:
    """The embedder of that name and model. EmbedderError when something it needs is missing."""
    name, wanted = parsed(spec)
    module, _, attribute = _MODELS[name].partition(":")
    made: Embedder = getattr(import_module(module), attribute)(wanted, **settings)
    return made
