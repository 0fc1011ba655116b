"""A retry loop kept on disk: each episode is done once, whatever interrupts the run in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from agentsignals.errors import LabError
from agentsignals.lab.coding_tasks import Task
from agentsignals.lab.conditions import Condition
from agentsignals.lab.residual.interface import Writer
from agentsignals.lab.retry.loop import Done, Plan, Steered, episodes
from agentsignals.lab.retry.rows import EPISODE_KEY, AttemptRow, EpisodeRow, ProjectionRow
from agentsignals.lab.retry.trace import lines, name_of, run_id
from agentsignals.lab.runs import Row, Run, Table

Progress = Callable[[str, int, int | None], None]


class Ran(Struct, frozen=True):
    """What a call of `run_loop` did."""

    episodes: int
    """In the run now."""
    new: int
    """Done by this call."""


def run_loop(  # noqa: PLR0913  (what a loop is of)
    run: Run,
    writer: Writer,
    plan: Plan,
    conditions: Sequence[Condition],
    tasks: Sequence[Task],
    samples: int,
    steered: Steered | None = None,
    progress: Progress | None = None,
) -> Ran:
    """Runs each (condition, task, sample) that the run does not have yet: rows of `episodes`, `attempts` and
    `projections`, and a trace each.

    An episode's row is written last and says that it is whole; what an interrupted one left is taken away first, so
    that a server's second answers do not mix with its first. LabError when two conditions share a name.
    """
    names = [chosen.name for chosen in conditions]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise LabError(f"Two conditions are called {twice[0]!r}.", "Rows are told apart by that name.")
    kept = run.table("episodes", EpisodeRow)
    _drop_unfinished(run, kept)
    total, before, traced = len(conditions) * len(tasks) * samples, len(kept.rows), run_id(run.config, run.manifest)
    for condition in conditions:
        work = [(t, s) for t in tasks for s in range(samples) if (condition.name, t.key, s) not in kept]
        for done in episodes(writer, plan, condition, work, steered):
            _keep(run, done, lines(done, plan, traced, run.manifest, steered))
            if progress is not None:
                progress("episodes", len(kept.rows), total)
    return Ran(len(kept.rows), len(kept.rows) - before)


def _keep(run: Run, done: Done, trace: list[dict[str, object]]) -> None:
    episode = done.episode
    run.table("attempts", AttemptRow).add(done.attempts)
    if done.projections:
        run.table("projections", ProjectionRow).add(done.projections)
    run.write_trace(name_of(episode.condition, episode.task, episode.sample), trace)
    run.table("episodes", EpisodeRow).add([episode])


def _drop_unfinished(run: Run, whole: Table[EpisodeRow]) -> None:
    tables: tuple[tuple[str, type[Row]], ...] = (("attempts", AttemptRow), ("projections", ProjectionRow))
    for name, kind in tables:
        run.table(name, kind).keep(lambda row: row.key[: len(EPISODE_KEY)] in whole)
