"""A repository scanned: attributed first, so that every finding has an owner, and measured after."""

from __future__ import annotations

from pathlib import Path

from agentsignals.ingest import pipeline
from agentsignals.ingest.collection import attributed, open_repository
from agentsignals.scanning.sarif import Imported, take_in
from agentsignals.scanning.scan import Scan, scan
from agentsignals.scanning.scanner import Scanner
from agentsignals.store import Store


def scanned(  # noqa: PLR0913  (choices of one run, by keyword)
    place: str,
    scanner: Scanner,
    store_folder: Path | str | None = None,
    *,
    afresh: bool = False,
    jobs: int | None = None,
    progress: pipeline.Progress = pipeline.silent,
) -> Scan:
    """Which weaknesses the linked commits of a repository introduced and fixed. `given` is a path or an address;
    `afresh`: files that were scanned before are scanned again.
    """
    at = open_repository(place)
    attributed(place, store_folder, jobs=jobs)
    result = scan(Store(store_folder), (at.git_dir, at.name), scanner, progress, afresh=afresh)
    pipeline.measure(store_folder)
    return result


def with_report(
    place: str, sarif: Path, store_folder: Path | str | None = None, *, jobs: int | None = None
) -> Imported:
    """Takes the findings of a SARIF file in, each with the commit and the owner of its line."""
    at = open_repository(place)
    attributed(place, store_folder, jobs=jobs)
    return take_in(Store(store_folder), at.git_dir, at.name, sarif)
