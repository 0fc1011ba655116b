"""A retry loop kept on disk: each episode is done once, whatever interrupts the run in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentsignals.errors import LabError
from msgspec import Struct

from agentsignals_lab.answer_streams import Writer
from agentsignals_lab.coding_tasks import Task
from agentsignals_lab.conditions import Condition
from agentsignals_lab.residual.interface import Generation
from agentsignals_lab.retry.loop import Done, First, Plan, Steered, Work
from agentsignals_lab.retry.pool import episodes
from agentsignals_lab.retry.rows import EPISODE_KEY, AttemptRow, EpisodeRow, ProjectionRow
from agentsignals_lab.retry.trace import lines, name_of, run_id
from agentsignals_lab.runs import Row, Run, Table

_TABLES: tuple[tuple[str, type[Row]], ...] = (
    ("episodes", EpisodeRow),
    ("attempts", AttemptRow),
    ("projections", ProjectionRow),
)

Progress = Callable[[str, int, int | None], None]


class Ran(Struct, frozen=True):
    """Result of a call of `run_loop`."""

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
    """Runs each (condition, task, sample) that the run does not have yet, all conditions of a task side by side: rows
    of `episodes`, `attempts` and `projections`, and a trace each, as soon as an episode is over.

    An episode's row is written last and says that it is whole; what an interrupted one left is taken away first, so
    that a server's second answers do not mix with its first. LabError when two conditions share a name.
    """
    names = [chosen.name for chosen in conditions]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise LabError(f"Two conditions are called {twice[0]!r}.", "Rename one of them.")
    kept = run.table("episodes", EpisodeRow)
    _drop_unfinished(run, kept)
    order = [(c, t, s) for s in range(samples) for t in tasks for c in conditions]
    work = [Work(c, t, s) for c, t, s in order if (c.name, t.key, s) not in kept]
    before, traced = len(kept.rows), run_id(run.config, run.manifest)
    try:
        for done in episodes(writer, plan, work, steered, _firsts(run, conditions)):
            _keep(run, done, lines(done, plan, traced, run.manifest, steered))
            if progress is not None:
                progress("episodes", len(kept.rows), len(order))
    finally:
        arrange(run, _TABLES, [(c.name, t.key, s) for c in conditions for t in tasks for s in range(samples)])
    return Ran(len(kept.rows), len(kept.rows) - before)


def _firsts(run: Run, conditions: Sequence[Condition]) -> dict[First, Generation]:
    """First attempts that are there already and that other conditions share."""
    sharing = {c.name: c for c in conditions if not c.acts_before_feedback}
    return {
        (sharing[row.condition].tone, row.task, row.sample): Generation(
            text=row.answer,
            tokens=(),
            finish="length" if row.finish == "length" else "stop",
            prompt_tokens=row.prompt_tokens,
            new_tokens=row.tokens,
            logprob_sum=row.logprob_sum,
        )
        for row in run.table("attempts", AttemptRow).rows
        if row.attempt == 0 and row.condition in sharing
    }


def arrange(run: Run, tables: Sequence[tuple[str, type[Row]]], order: Sequence[tuple[object, ...]]) -> None:
    """Rows come as episodes end, which no two runs do alike; they are ordered by condition, task and sample."""
    places = {key: n for n, key in enumerate(order)}
    for name, kind in tables:
        run.table(name, kind).arrange(lambda row: places.get(row.key[: len(EPISODE_KEY)], len(places)))


def _keep(run: Run, done: Done, trace: list[dict[str, object]]) -> None:
    episode = done.episode
    run.table("attempts", AttemptRow).add(done.attempts)
    if done.projections:
        run.table("projections", ProjectionRow).add(done.projections)
    run.write_trace(name_of(episode.condition, episode.task, episode.sample), trace)
    run.table("episodes", EpisodeRow).add([episode])


def _drop_unfinished(run: Run, whole: Table[EpisodeRow]) -> None:
    for name, kind in _TABLES[1:]:
        run.table(name, kind).keep(lambda row: row.key[: len(EPISODE_KEY)] in whole)
