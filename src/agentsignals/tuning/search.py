"""A search: asks for runs, reads what came of them from the store, confirms its winner on tasks it has not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from agentsignals.errors import StoreError
from agentsignals.store import Store
from agentsignals.tuning.effects import Effects
from agentsignals.tuning.history import History, Phase, Run, State
from agentsignals.tuning.plan import Candidate, Plan, check
from agentsignals.tuning.racing import Drop, dropped
from agentsignals.tuning.results import Result, results
from agentsignals.tuning.samplers import Race, next_candidate

SILENT = 3
"""A candidate is out after so many runs that left no outcome, and no run did."""

Arms = dict[Candidate, dict[str, list[float]]]


class Search:
    """The search of a plan, kept in a folder: made again over the same folder, it goes on where it stood.

        search = Search(read_plan(Path("plan.toml")), Path("search"))
        while (run := search.ask()) is not None:
            ...                      # start it: search.plan.argv(run.treatment, run.task, search.output(run))
            search.tell(run)         # reads search.place(run) into the store

    `store`: where runs are read to (default: a store of its own in the folder).
    """

    def __init__(self, plan: Plan, folder: Path, store: Path | None = None) -> None:
        check(plan)
        self.plan = plan
        self.folder = folder.resolve()
        self.store = store or self.folder / "store"
        self.look()
        self.tasks, self.held_out = plan.parted()

    def look(self) -> None:
        """Takes in what its folder holds now."""
        self.history = History(self.folder, self.plan)
        self._forget()

    def _forget(self) -> None:
        """What was read from the store is asked for again."""
        self.__dict__.pop("results", None)
        self._modelled = (0, Effects())

    @property
    def runs(self) -> list[Run]:
        return self.history.runs

    def place(self, run: Run) -> Path:
        """What is read of a run: its traces, and what the command printed."""
        return self.folder / "runs" / f"{run.number:04}"

    def output(self, run: Run) -> str:
        """The folder that the command is told to write to (`{run}`)."""
        return str(self.place(run) / "output")

    def ask(self) -> Run | None:
        """The next run, kept as begun; None when there is none, and `over` says why."""
        run = self.proposal()
        if run is not None:
            self.history.asked(run)
        return run

    def proposal(self) -> Run | None:
        """The next run, without beginning it."""
        chosen = self._confirming() if self.confirms else self._searching()
        if chosen is None:
            return None
        phase, candidate, task = chosen
        return Run(number=len(self.runs) + 1, phase=phase, treatment=self.plan.treatment(candidate), task=task)

    def tell(self, run: Run, exit_code: int | None = 0, wall_time_s: float = 0.0) -> Result:
        """A run has ended: reads its folder into the store, and what came of it from there."""
        self._keep(run, "ended", exit_code, wall_time_s)
        self.read([run])
        return self.results[run.number]

    def read(self, runs: Sequence[Run]) -> None:
        """Reads the folders of runs into the store; what has been read costs a look."""
        from agentsignals.ingest import pipeline  # noqa: PLC0415  (asking needs none of it)

        pipeline.ingested([str(self.place(run)) for run in runs], self.store, jobs=1)
        self._forget()

    def interrupted(self, run: Run, wall_time_s: float = 0.0) -> None:
        """A run was broken off: what it has left is never read, and its task is asked for again."""
        self._keep(run, "interrupted", None, wall_time_s)

    def _keep(self, run: Run, state: State, exit_code: int | None, wall_time_s: float) -> None:
        run.state, run.exit_code, run.wall_time_s = state, exit_code, wall_time_s
        self.history.ended(run)

    @cached_property
    def results(self) -> dict[int, Result]:
        """What came of the runs that have ended, by number; read from the store."""
        ended = [run for run in self.runs if run.state == "ended"]
        try:
            store = Store(self.store)
        except StoreError:
            if ended:
                raise
            return {}
        return results(store, self.plan, ended, self.folder / "runs") if ended else {}

    def candidate(self, run: Run) -> Candidate:
        return tuple(run.treatment[name] for name in self.plan.knobs)

    def arms(self, phase: Phase) -> Arms:
        """The outcomes of a phase by candidate and task."""
        arms: Arms = {}
        for run in self.runs:
            result = self.results.get(run.number)
            if run.phase != phase or result is None:
                continue
            for task, outcomes in result.outcomes.items():
                arms.setdefault(self.candidate(run), {}).setdefault(task, []).extend(outcomes)
        return arms

    @property
    def confirms(self) -> bool:
        """Whether the winner is settled: from the first held-out run on, whatever the budget is raised to."""
        return any(run.phase == "held_out" for run in self.runs)

    @property
    def winner(self) -> Candidate:
        """The best candidate of the search; the default where none is better."""
        for run in self.runs:
            if run.phase == "held_out":
                return self.candidate(run)  # the first one is the winner's
        others = [candidate for candidate in self.arms("search") if candidate != self.plan.start]
        return max([self.plan.start, *others], key=self.effects.estimate)

    @property
    def effects(self) -> Effects:
        """The model of the search's outcomes; made anew where there are more of them."""
        if self._modelled[0] != len(self.results):
            effects = Effects()
            for candidate, arm in self.arms("search").items():
                for task, outcomes in arm.items():
                    effects.add(candidate, task, sum(outcomes) / len(outcomes), len(outcomes))
            self._modelled = (len(self.results), effects)
        return self._modelled[1]

    def dropped(self) -> Mapping[Candidate, Drop | None]:
        """Candidates that are out of the race, and why; None: their runs left no outcome."""
        arms = self.arms("search")
        ended = self._counts(("ended",))
        silent: dict[Candidate, Drop | None] = {c: None for c, n in ended.items() if n >= SILENT and c not in arms}
        return silent | dropped(self.effects, list(arms))

    def _counts(self, states: tuple[str, ...]) -> dict[Candidate, int]:
        counts: dict[Candidate, int] = {}
        for run in self.runs:
            if run.phase == "search" and run.state in states:
                counts[self.candidate(run)] = counts.get(self.candidate(run), 0) + 1
        return counts

    @property
    def race(self) -> Race | None:
        """What the next run of the search is chosen from; None when only one candidate, or no task, is left."""
        runs, lost = self._counts(("ended", "running")), self.dropped()
        remaining = [c for c in self.plan.candidates() if c not in lost]
        open_ = [c for c in remaining if runs.get(c, 0) < len(self.tasks)]
        if len(remaining) < 2 or not open_:
            return None
        return Race(plan=self.plan, arms=self.arms("search"), effects=self.effects, runs=runs, open=open_)

    def _searching(self) -> tuple[Phase, Candidate, str] | None:
        race = None if self.spent(2 * len(self.held_out)) else self.race
        if race is None:
            return self._confirming()
        candidate = next_candidate(race)
        return "search", candidate, self.tasks[race.runs.get(candidate, 0)]

    def _confirming(self) -> tuple[Phase, Candidate, str] | None:
        """Task by task the winner, then the default: what a budget breaks off is whole pairs but for one."""
        if self.winner == self.plan.start or self.spent(0):
            return None
        made = {(self.candidate(run), run.task) for run in self.runs
                if run.phase == "held_out" and run.state != "interrupted"}  # fmt: skip
        wanted = ((candidate, task) for task in self.held_out for candidate in (self.winner, self.plan.start))
        missing = next((pair for pair in wanted if pair not in made), None)
        return None if missing is None else ("held_out", *missing)

    def spent(self, reserved: int) -> str:
        """Why no other run fits into the budget beside so many `reserved` ones; empty where one does."""
        budget = self.plan.budget
        if len(self.runs) + 1 + reserved > budget.runs:
            return f"{budget.runs} runs are the budget"
        ended = len(self.results)
        cost, unpriced = self.cost()
        if budget.cost_usd is not None and ended:
            attempts = sum(result.attempts for result in self.results.values())
            if attempts and unpriced == attempts:
                return "no attempt has a cost in the store, so that budget.cost_usd can't be kept"
            # What has no cost is taken to have cost as much as the others.
            expected = cost * attempts / max(1, attempts - unpriced)
            if expected * (1 + (1 + reserved) / ended) > budget.cost_usd:
                return f"${budget.cost_usd:,.2f} are the budget"
        took = sum(run.wall_time_s for run in self.runs)
        if budget.wall_time_s is not None and ended and took * (1 + (1 + reserved) / ended) > budget.wall_time_s:
            return f"{budget.wall_time_s:,.0f} seconds are the budget"
        return ""

    def cost(self) -> tuple[float, int]:
        """Dollars of all runs, and the attempts whose cost is not, or not wholly, in them."""
        return (
            sum(result.cost_usd for result in self.results.values()),
            sum(result.unpriced for result in self.results.values()),
        )
