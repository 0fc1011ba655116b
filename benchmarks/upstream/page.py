"""The page of the watch: `docs/upstream.md`."""

from __future__ import annotations

from benchmarks.upstream.compare import Report


def written(reports: list[Report], date: str) -> str:
    return ""
