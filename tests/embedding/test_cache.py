"""Vectors kept in a store: once made, they are not made again."""

from __future__ import annotations

from array import array
from pathlib import Path

import pytest

from agentsignals.errors import StoreError
from agentsignals.store.embedders import CACHE_FILE, Cache
from agentsignals.words.vectors import Dense, Profile


def test_what_was_put_is_there_for_the_next_run(tmp_path: Path) -> None:
    first = Cache(tmp_path, "m1")
    first.put({"fix it": Dense.of([3.0, 4.0]), "": Dense(array("f")), "\ud800": Dense.of([1.0])})
    first.close()
    again = Cache(tmp_path, "m1").get(["fix it", "", "\ud800", "never seen"])
    assert set(again) == {"fix it", "", "\ud800"}
    assert list(again["fix it"].values) == pytest.approx([0.6, 0.8])


def test_another_embedder_has_none_of_them(tmp_path: Path) -> None:
    Cache(tmp_path, "m1").put({"fix it": Dense.of([1.0])})
    assert Cache(tmp_path, "m2").get(["fix it"]) == {}


def test_thousands_of_texts_are_asked_for_at_once(tmp_path: Path) -> None:
    cache = Cache(tmp_path, "m1")
    cache.put({f"text {n}": Dense.of([float(n), 1.0]) for n in range(1700)})
    assert len(cache.get([f"text {n}" for n in range(1800)])) == 1700


def test_a_profile_is_kept(tmp_path: Path) -> None:
    assert Cache(tmp_path, "m1").profile() is None
    Cache(tmp_path, "m1").keep_profile(Profile(0.3, 0.8, "fitted"))
    assert Cache(tmp_path, "m1").profile() == Profile(0.3, 0.8, "fitted")
    assert Cache(tmp_path, "m2").profile() is None


def test_a_file_that_is_no_cache_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / CACHE_FILE).write_bytes(b"this is no database at all, but long enough to look like one" * 99)
    cache = Cache(tmp_path, "m1")
    assert cache.get(["fix it"]) == {}
    cache.put({"fix it": Dense.of([1.0])})
    assert set(cache.get(["fix it"])) == {"fix it"}


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="can't be opened"):
        Cache(tmp_path / "gone", "m1")
