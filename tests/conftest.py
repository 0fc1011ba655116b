"""What every test has: a folder for a user's data that is nobody's, one profile of hypothesis, and stores that many
tests read and none changes, made once a run however many processes it has.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"

gc.disable()  # until all tests are collected: walking what is found so far again and again is a fifth of that time

# Hundreds of processes begin here, and each would compile hundreds of modules anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A busy machine is no defect of what is tested: neither one slow example nor slow drawing fails a test.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_collection_finish() -> None:
    """Thousands of collected tests live to the end: the collector need not walk them again and again."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Once more for what was left open (a warning about it is an error), and not the five times that pytest has."""
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)  # libraries that count their objects at the end find them all gone


@pytest.fixture(scope="session", autouse=True)
def wide_terminal() -> Iterator[None]:
    """Lines are printed whole; tests of the terminal name its width."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "1000")
        yield


@pytest.fixture(scope="session", autouse=True)
def no_data_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Programs that tests start get it, too: what is kept for a user (a key, a store) is kept there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the demo's traces (`corpus`) and their `store`. To be read only: copy what a test changes."""
    from agentsignals.cli import demo_corpus  # noqa: PLC0415  (tests without it need not load it)
    from agentsignals.ingest import pipeline  # noqa: PLC0415  (tests without it need not load it)

    def make(folder: Path) -> None:
        pipeline.analyze([str(demo_corpus.make_corpus(folder / "corpus"))], folder / "store", jobs=1)
        pipeline.measure(folder / "store", every=True)  # else the first test that asks would change it

    return made_once(tmp_path_factory, "demo", make)


@pytest.fixture(scope="session")
def corpus_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the `store` of the corpus's sessions. To be read only: copy what a test changes."""
    return _of_corpus(tmp_path_factory, "sessions")


@pytest.fixture(scope="session")
def eval_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the `store` of the corpus's eval runs. To be read only: copy what a test changes."""
    return _of_corpus(tmp_path_factory, "eval")


def _of_corpus(factory: pytest.TempPathFactory, part: str) -> Path:
    if not (CORPUS / part).is_dir():
        pytest.skip("the corpus of real traces is not on this machine")
    from agentsignals.ingest import pipeline  # noqa: PLC0415

    def make(folder: Path) -> None:
        pipeline.analyze([str(CORPUS / part)], folder / "store", jobs=1)
        pipeline.measure(folder / "store", every=True)

    return made_once(factory, part, make)


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that the first process to ask for it fills; the others of this run wait for it."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"shared-{name}"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / "done"
        if not done.exists():
            folder.mkdir()
            make(folder)
            done.touch()
    return folder
