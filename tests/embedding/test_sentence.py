"""A model on this machine: what of it is loaded, when, and what names it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

from agentsignals.errors import EmbedderError
from agentsignals.store.embedders import SentenceModel, digest
from tests.embedding.server import vector


class Numbers(list[float]):
    """As much of a NumPy row as is used."""

    def tolist(self) -> list[float]:
        return list(self)


class Fake:
    """Stands for a model of sentence-transformers: loads nothing, notes what it is asked."""

    made: ClassVar[list[tuple[str, dict[str, Any]]]] = []
    asked: ClassVar[list[list[str]]] = []

    def __init__(self, name: str, **settings: Any) -> None:
        if name == "broken":
            raise OSError("no file named model.safetensors")
        self.made.append((name, settings))

    def encode(self, texts: list[str], **_: Any) -> list[Numbers]:
        self.asked.append(texts)
        return [Numbers(vector(t)) for t in texts]


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = Fake  # type: ignore[attr-defined]  # a stand-in for a package of 2 GB
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    Fake.made.clear()
    Fake.asked.clear()


def test_the_model_is_loaded_with_the_first_words_and_once() -> None:
    model = SentenceModel("some/model")
    assert model.embed(["…", ""])[0].cosine(model.embed(["…"])[0]) is None
    assert Fake.made == []
    one, other = model.embed(["fix the parser", "fix the parser"])
    model.embed(["more"])
    assert one.cosine(other) == pytest.approx(1)
    assert len(Fake.made) == 1


def test_texts_without_words_are_not_given_to_it_and_keep_their_place() -> None:
    vectors = SentenceModel("some/model").embed(["…", "fix it", "", "mend it"])
    assert Fake.asked == [["fix it", "mend it"]]
    assert [len(v.values) > 0 for v in vectors] == [False, True, False, True]


def test_code_of_a_model_is_never_run_and_a_revision_is_pinned() -> None:
    told: list[str] = []
    SentenceModel("some/model@abc123", told.append).embed(["fix it"])
    assert Fake.made == [("some/model", {"revision": "abc123", "trust_remote_code": False})]
    assert "no text leaves" in told[0]


def test_a_folder_is_named_by_what_is_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "m@1"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"x" * 300_000)
    first = SentenceModel(str(folder))
    first.embed(["fix it"])
    assert Fake.made[0] == (str(folder), {"revision": None, "trust_remote_code": False})
    assert first.id == f"sentence-transformers:m@1#{digest(folder)}"
    (folder / "model.safetensors").write_bytes(b"x" * 299_999 + b"y")
    assert SentenceModel(str(folder)).id != first.id
    (folder / "model.safetensors").write_bytes(b"x" * 300_000)
    (folder / ".cache").write_bytes(b"anything")
    assert SentenceModel(str(folder)).id == first.id


def test_a_model_that_is_none_is_an_error_with_the_reason() -> None:
    with pytest.raises(EmbedderError, match=r"model\.safetensors"):
        SentenceModel("broken").embed(["fix it"])
