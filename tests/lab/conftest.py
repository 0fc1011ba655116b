"""Of the lab's tests `make test` runs every fourth: `make test-slow` and `make test-lab` run all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "AGENTSIGNALS_LAB" in os.environ:
        return
    for n, item in enumerate(item for item in items if item.path.is_relative_to(HERE)):
        if n % 4:
            item.add_marker(pytest.mark.slow)
