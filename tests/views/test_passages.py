"""An embedder's own scale, fitted to sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentsignals.views.passages import Opening, fit, opening
from agentsignals.words.vectors import Chars, Vectors, Words, counting_vectors
from tests.build import say, user, view

SUBJECTS = ("download", "invoice", "parser", "cache", "theme", "login", "search", "export", "socket", "calendar")


def openings(n: int, places: int) -> list[Opening]:
    """Each about a subject of its own, its answer sharing half of the words."""
    made = []
    for k in range(n):
        what = f"{SUBJECTS[k % 10]}{k}"
        made.append(Opening(f"s{k}", f"repo{k % places}", f"alpha{k} {what} broken", f"alpha{k} {what} mended nicely"))
    return made


def vectors() -> Vectors:
    return Vectors(Words())


def test_the_medians_of_answers_and_of_strangers_make_the_scale() -> None:
    """2 of 3 stems shared with an answer of 4: 1 - 2/sqrt(12)."""
    profile = fit(openings(40, 4), vectors())
    assert profile is not None
    assert profile.aligned == pytest.approx(1 - 2 / 12**0.5, abs=0.001)
    assert profile.aligned < profile.unrelated <= 1
    assert profile.origin == "fitted"


@pytest.mark.parametrize(("n", "places"), [(29, 4), (40, 1), (0, 0)])
def test_too_few_sessions_or_places_make_none(n: int, places: int) -> None:
    assert fit(openings(n, places or 1), vectors()) is None


def test_what_tells_nothing_apart_makes_none() -> None:
    same = [Opening(f"s{k}", f"repo{k % 3}", "fix the parser", "fix the parser") for k in range(40)]
    assert fit(same, vectors()) is None


def test_the_order_of_sessions_does_not_matter() -> None:
    given = openings(60, 5)
    shuffled = given[::-1]
    assert fit(given, vectors()) == fit(shuffled, vectors())


def test_a_session_without_place_or_answer_has_no_opening() -> None:
    asked, answered = user("fix the parser of dates"), say("It is fixed.")
    assert opening(view(asked, answered, cwd="/a")) is not None
    assert opening(view(asked, answered)) is None
    assert opening(view(asked, cwd="/a")) is None


@pytest.mark.slow
@pytest.mark.corpus
@pytest.mark.parametrize("embedder", [Words(), Chars()], ids=lambda e: e.id)
def test_the_shipped_scales_are_those_of_the_real_sessions(embedder: Words | Chars, corpus_folder: Path) -> None:
    from agentsignals.store import Store, shards  # noqa: PLC0415
    from agentsignals.views.session import SessionView  # noqa: PLC0415

    store = Store(corpus_folder / "store")
    views = [SessionView(s) for n in store.manifest.shards for s in shards.read_sessions(store.folder, n)]
    found = fit(
        [o for v in views if v.turns and (o := opening(v)) is not None], counting_vectors(embedder.id.split("-")[0])
    )
    assert found is not None
    assert found.aligned == pytest.approx(embedder.profile.aligned, abs=0.015)
    assert found.unrelated == pytest.approx(embedder.profile.unrelated, abs=0.015)
