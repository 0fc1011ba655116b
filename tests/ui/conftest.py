"""A store with something of everything, served once for all tests that only look at it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentsignals.store import Store
from agentsignals.ui.server import Server
from tests.ui.served import serving, whole_store


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return whole_store(tmp_path_factory.mktemp("whole") / "store")


@pytest.fixture(scope="session")
def server(store: Store) -> Iterator[Server]:
    with serving(store) as running:
        yield running
