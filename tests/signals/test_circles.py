"""What is read and measured goes away by itself, without the collector of circles, which seldom comes."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from agentsignals.formats.builder import SessionBuilder
from agentsignals.model import Session
from agentsignals.signals.catalog import measure
from agentsignals.views.session import SessionView
from tests.golden import SAMPLES, folders, read_files

ROWS = (Session, SessionBuilder, SessionView)


@pytest.fixture(scope="module")
def before() -> Iterator[None]:
    """What was there before is none of this, and is not walked again for every format."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def garbage(before: None) -> Iterator[list[object]]:
    """What the collector would have had to find, for whoever collects."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield gc.garbage
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


@pytest.mark.slow
@pytest.mark.parametrize("name", [folder.name for folder in folders()])
def test_no_session_is_part_of_a_circle(name: str, garbage: list[object]) -> None:
    samples = [p for p in sorted((SAMPLES / name).iterdir()) if not p.name.endswith(".expected.json")]
    n_sessions = 0
    for sample in samples:
        files = [p for p in sorted(sample.rglob("*")) if p.is_file()] if sample.is_dir() else [sample]
        for session in read_files(files, SAMPLES)[2].sessions:
            assert measure(SessionView(session))
            n_sessions += 1
    if n_sessions:
        del session
    gc.collect()
    assert not [type(one).__name__ for one in garbage if isinstance(one, ROWS)]
