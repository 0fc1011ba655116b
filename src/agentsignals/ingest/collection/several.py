"""Several repositories in one run: a task for each, of whatever engine. This process alone writes into the store, in
the order in which they were named, so that the tables are those of one run after the other. One that fails, or ends its
worker, costs no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from agentsignals.attribution.attribute import Attribution, attribute
from agentsignals.attribution.attribute import Tables as AttributionTables
from agentsignals.errors import AgentSignalsError
from agentsignals.git.objects import GitError
from agentsignals.ingest import pipeline
from agentsignals.ingest.collection import Opened, brought_in, open_repository, reason_of
from agentsignals.ingest.engine import ENGINES
from agentsignals.store import Store

R = TypeVar("R")
_DIED = "A worker died over it, twice: killed, or out of memory."
_MOST_DEATHS = 2
"""A worker may die of something else, so a repository is tried again, once (as `shard` does with a family)."""


class Failed(Struct, frozen=True):
    """A repository that nothing came of."""

    repo: str
    reason: str


class Several(Struct, Generic[R]):
    """What came of each repository, in the order in which they were named."""

    repositories: list[R] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)


class Tables(Protocol[R]):  # type: ignore[misc]  # R is given out alone; which variance it has is nobody's concern
    """Rows of one repository, made in a worker."""

    def write(self, store: Store) -> R: ...


class Task(Struct, frozen=True, kw_only=True):
    """One repository to work on."""

    at: Opened
    root: str
    """The store's folder."""
    afresh: bool
    deaths: int = 0
    """How often a worker died over it."""

    def tables(self) -> Tables[Any]:
        """Does the work."""
        raise NotImplementedError


class Attributing(Task, frozen=True, kw_only=True):
    """`attribute`, as a task."""

    def tables(self) -> AttributionTables:
        return attribute(Store(self.root), self.at.git_dir, self.at.name, self.at.spec, self.afresh)


def attributed(  # noqa: PLR0913  (choices of one run, by keyword)
    places: Iterable[str],
    store_folder: Path | str | None = None,
    *,
    afresh: bool = False,
    jobs: int | None = None,
    engine: str = "local",
    progress: pipeline.Progress = pipeline.silent,
) -> tuple[list[Opened], Several[Attribution]]:
    """As `collection.attributed`, of several repositories; gives those that were, too."""
    opened, failed = _opened(places)
    without = brought_in(opened, store_folder, jobs=jobs, engine=engine)
    failed += [Failed(name, reason_of(problem)) for name, problem in without.items()]
    opened = [at for at in opened if at.name not in without]
    store = Store(store_folder)
    tasks = [Attributing(at=at, root=str(store.folder), afresh=afresh) for at in opened]
    made: Several[Attribution] = over_engine("attributing", tasks, store, jobs, engine, progress)
    made.failed = failed + made.failed
    pipeline.measure(store_folder)
    lost = {failure.repo for failure in made.failed}
    return [at for at in opened if at.name not in lost], made


def over_engine(  # noqa: PLR0913  (what is done, by how many, of which engine, telling whom)
    stage: str,
    tasks: Sequence[Task],
    store: Store,
    jobs: int | None,
    engine: str,
    progress: pipeline.Progress,
) -> Several[Any]:
    """Does the tasks and writes what they made."""
    several: Several[Any] = Several()
    workers = min(jobs or pipeline.default_jobs(), len(tasks))
    with closing(ENGINES.get(engine)().map(_answer, list(enumerate(tasks)), workers, _again)) as answers:
        for tables in _in_order(answers):
            if isinstance(tables, Failed):
                several.failed.append(tables)
            else:
                several.repositories.append(tables.write(store))
            progress(stage, len(several.repositories) + len(several.failed), len(tasks))
    return several


def _opened(places: Iterable[str]) -> tuple[list[Opened], list[Failed]]:
    """The repositories of these places, each once, and what can't be opened."""
    opened: dict[str, Opened] = {}
    failed = []
    for place in places:
        try:
            at = open_repository(place)
        except (AgentSignalsError, GitError) as problem:
            failed.append(Failed(place, reason_of(problem)))
        else:
            opened[at.name] = at
    return list(opened.values()), failed


def _in_order(answers: Iterable[tuple[int, R]]) -> Iterator[R]:
    waiting: dict[int, R] = {}
    due = 0
    for nth, answer in answers:
        waiting[nth] = answer
        while due in waiting:
            yield waiting.pop(due)
            due += 1


def _answer(numbered: tuple[int, Task]) -> tuple[int, Tables[Any] | Failed]:
    """What a worker does."""
    nth, task = numbered
    if task.deaths == _MOST_DEATHS:
        return nth, Failed(task.at.name, _DIED)
    try:
        return nth, task.tables()
    except (AgentSignalsError, GitError) as problem:
        return nth, Failed(task.at.name, reason_of(problem))


def _again(numbered: tuple[int, Task]) -> list[tuple[int, Task]]:
    """What to do in the place of a task that ended its worker."""
    nth, task = numbered
    return [(nth, replace(task, deaths=task.deaths + 1))] if task.deaths < _MOST_DEATHS else []
