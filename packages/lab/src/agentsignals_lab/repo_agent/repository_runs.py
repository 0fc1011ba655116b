"""An agent's work on repositories kept on disk: each episode is done once, whatever interrupts the run in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentsignals.errors import LabError

from agentsignals_lab.coding_tasks.repository import RepositoryTask
from agentsignals_lab.conditions import Condition
from agentsignals_lab.evaluation.patches import EVALUATOR, Runner
from agentsignals_lab.repo_agent.loop import Done, Plan, Work, episodes
from agentsignals_lab.repo_agent.rows import EPISODE_KEY, RepoEpisodeRow, RepoStepRow
from agentsignals_lab.repo_agent.trace import lines
from agentsignals_lab.residual.interface import Writer
from agentsignals_lab.retry.loop import Steered
from agentsignals_lab.retry.retry_runs import Ran, arrange
from agentsignals_lab.retry.trace import name_of, run_id
from agentsignals_lab.runs import Row, Run

_TABLES: tuple[tuple[str, type[Row]], ...] = (("repo_episodes", RepoEpisodeRow), ("repo_steps", RepoStepRow))

Progress = Callable[[int, int], None]


def run_agent(  # noqa: PLR0913  (what a loop is of)
    run: Run,
    writer: Writer,
    plan: Plan,
    conditions: Sequence[Condition],
    tasks: Sequence[RepositoryTask],
    samples: int,
    steered: Steered | None = None,
    progress: Progress | None = None,
    runner: Runner | None = None,
) -> Ran:
    """Runs each (condition, task, sample) that the run does not have yet, all conditions of a task side by side: rows
    of `repo_episodes` and `repo_steps`, and a trace each, as soon as an episode is over.

    An episode's row is written last and says that it is whole; steps of an interrupted one are taken away first. Raises
    what `episodes` raises, and LabError when two conditions share a name, or another evaluator judged what is there.
    """
    names = [chosen.name for chosen in conditions]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise LabError(f"Two conditions are called {twice[0]!r}.", "Rows are told apart by that name.")
    kept = run.table("repo_episodes", RepoEpisodeRow)
    if others := sorted({row.evaluator for row in kept.rows} - {EVALUATOR}):
        raise LabError(
            f"The run's episodes were judged by evaluator {' and '.join(others)}, and would now be by {EVALUATOR}.",
            "Their passes mean different things: start another folder.",
        )
    run.table("repo_steps", RepoStepRow).keep(lambda row: row.key[: len(EPISODE_KEY)] in kept)
    order = [(c, t, s) for s in range(samples) for t in tasks for c in conditions]
    work = [Work(c, t, s) for c, t, s in order if (c.name, t.key, s) not in kept]
    before, traced = len(kept.rows), run_id(run.config, run.manifest)
    try:
        for done in episodes(writer, plan, work, steered, runner):
            _keep(run, done, lines(done, plan, traced, run.manifest, steered))
            if progress is not None:
                progress(len(kept.rows), len(order))
    finally:
        arrange(run, _TABLES, [(c.name, t.key, s) for c in conditions for t in tasks for s in range(samples)])
    return Ran(len(kept.rows), len(kept.rows) - before)


def _keep(run: Run, done: Done, trace: list[dict[str, object]]) -> None:
    episode = done.episode
    run.table("repo_steps", RepoStepRow).add([step.row for step in done.steps])
    run.write_trace(name_of(episode.condition, episode.task, episode.sample), trace)
    run.table("repo_episodes", RepoEpisodeRow).add([episode])
