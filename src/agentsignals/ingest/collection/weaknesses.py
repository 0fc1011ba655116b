"""A repository scanned: attributed first, so that every finding has an owner, and measured after."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from agentsignals.ingest import pipeline
from agentsignals.ingest.collection import attributed, open_repository, several
from agentsignals.ingest.collection.several import Several
from agentsignals.scanning.sarif import Imported, take_in
from agentsignals.scanning.scan import Scan, Tables, scan
from agentsignals.scanning.scanner import Scanner
from agentsignals.store import Store


def scanned(  # noqa: PLR0913  (choices of one run, by keyword)
    place: str,
    scanner: Scanner,
    store_folder: Path | str | None = None,
    *,
    afresh: bool = False,
    jobs: int | None = None,
    engine: str = "local",
    progress: pipeline.Progress = pipeline.silent,
) -> Scan:
    """Which weaknesses the linked commits of a repository introduced and fixed. `place` is a path or an address;
    `afresh`: files that were scanned before are scanned again.
    """
    at = open_repository(place)
    attributed(place, store_folder, jobs=jobs, engine=engine)
    store = Store(store_folder)
    result = scan(store, (at.git_dir, at.name), scanner, progress, afresh=afresh).write(store)
    pipeline.measure(store_folder)
    return result


class Scanning(several.Task, frozen=True, kw_only=True):
    """`scan`, as a task."""

    scanner: Scanner

    def tables(self) -> Tables:
        at = self.at.git_dir, self.at.name
        return scan(Store(self.root), at, self.scanner, pipeline.silent, afresh=self.afresh)


def scanned_several(  # noqa: PLR0913  (choices of one run, by keyword)
    places: Iterable[str],
    scanner: Scanner,
    store_folder: Path | str | None = None,
    *,
    afresh: bool = False,
    jobs: int | None = None,
    engine: str = "local",
    progress: pipeline.Progress = pipeline.silent,
) -> Several[Scan]:
    """As `scanned`, of several repositories."""
    opened, attributions = several.attributed(places, store_folder, jobs=jobs, engine=engine, progress=progress)
    store = Store(store_folder)
    tasks = [Scanning(at=at, root=str(store.folder), afresh=afresh, scanner=scanner) for at in opened]
    made: Several[Scan] = several.over_engine("scanning", tasks, store, jobs, engine, progress)
    made.failed = attributions.failed + made.failed
    pipeline.measure(store_folder)
    return made


def with_report(
    place: str, sarif: Path, store_folder: Path | str | None = None, *, jobs: int | None = None
) -> Imported:
    """Takes the findings of a SARIF file in, each with the commit and the owner of its line."""
    at = open_repository(place)
    attributed(place, store_folder, jobs=jobs)
    return take_in(Store(store_folder), at.git_dir, at.name, sarif)
