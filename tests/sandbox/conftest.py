"""Each attack is run in both tiers where the lab is tested; `make test` runs them in the default tier alone."""

from __future__ import annotations

import os

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "AGENTSIGNALS_LAB" in os.environ:
        return
    later = pytest.mark.skip(reason="the other tier, and who is not root: make test-lab")
    for item in items:
        if not item.nodeid.startswith("tests/sandbox/"):
            continue
        params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        if (
            params.get("tier") == "strict"
            or item.get_closest_marker("slow")
            or item.name.startswith("test_it_would_succeed")
        ):
            item.add_marker(later)
