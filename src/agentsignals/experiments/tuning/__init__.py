"""Search over knobs: which treatments to run next, given the results in the store.

from agentsignals.experiments.tuning import Search, read_plan
search = Search(read_plan(Path("plan.toml")), Path("search"))
run = search.ask()      # a treatment and a task
search.tell(run)        # after it ran: reads its folder into the store, and its outcomes from there
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

from msgspec import Struct

from agentsignals import private_files
from agentsignals.errors import StoreError, TuningError
from agentsignals.experiments.tuning.plan import (
    Budget,
    Candidate,
    History,
    Phase,
    Plan,
    Result,
    Run,
    State,
    Value,
    check,
    read_plan,
    results,
    value_text,
)
from agentsignals.experiments.tuning.samplers import Drop, Effects, Race, dropped_candidates, next_candidate
from agentsignals.questions.compare.candidate import Estimate, estimate
from agentsignals.stats.paired import Paired, paired, smallest_detectable
from agentsignals.store import Store
from agentsignals.store.disk import locked

SILENT = 3
"""A candidate is dropped after so many runs if none left an outcome."""

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
        self.history = History(self.folder, self.plan)
        self._forget()

    def _forget(self) -> None:
        self.__dict__.pop("results", None)
        self._modelled = (0, Effects())

    @property
    def runs(self) -> list[Run]:
        return self.history.runs

    def place(self, run: Run) -> Path:
        return self.folder / "runs" / f"{run.number:04}"

    def output(self, run: Run) -> str:
        """Return the folder that the command writes to (`{run}`)."""
        return str(self.place(run) / "output")

    def ask(self) -> Run | None:
        run = self.proposal()
        if run is not None:
            self.history.asked(run)
        return run

    def proposal(self) -> Run | None:
        """Return the next run without starting it."""
        chosen: tuple[Phase, Candidate, str] | None
        if self.confirms or self.spent(2 * len(self.held_out)) or (race := self.race) is None:
            chosen = None
            if self.winner != self.plan.start and not self.spent(0):
                # Winner and default alternate task by task, so that an exhausted budget leaves whole pairs.
                held_out = [run for run in self.runs if run.phase == "held_out" and run.state != "interrupted"]
                made = {(self.candidate(run), run.task) for run in held_out}
                pairs = ((candidate, task) for task in self.held_out for candidate in (self.winner, self.plan.start))
                chosen = next((("held_out", *pair) for pair in pairs if pair not in made), None)
        else:
            candidate = next_candidate(race)
            chosen = "search", candidate, self.tasks[race.runs.get(candidate, 0)]
        if chosen is None:
            return None
        phase, candidate, task = chosen
        return Run(number=len(self.runs) + 1, phase=phase, treatment=self.plan.treatment(candidate), task=task)

    def tell(self, run: Run, exit_code: int | None = 0, wall_time_s: float = 0.0) -> Result:
        self._keep(run, "ended", exit_code, wall_time_s)
        self.read([run])
        return self.results[run.number]

    def read(self, runs: Sequence[Run]) -> None:
        """Read the folders of runs into the store. Unchanged ones are skipped."""
        from agentsignals.ingest import pipeline  # noqa: PLC0415  (asking needs none of it)

        pipeline.ingest_into([str(self.place(run)) for run in runs], self.store, jobs=1)
        self._forget()

    def interrupted(self, run: Run, wall_time_s: float = 0.0) -> None:
        """Mark a run as broken off: its output is never read, and its task is asked for again."""
        self._keep(run, "interrupted", None, wall_time_s)

    def _keep(self, run: Run, state: State, exit_code: int | None, wall_time_s: float) -> None:
        run.state, run.exit_code, run.wall_time_s = state, exit_code, wall_time_s
        self.history.ended(run)

    @cached_property
    def results(self) -> dict[int, Result]:
        """Results of ended runs by number, read from the store."""
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
        """Return the outcomes of a phase by candidate and task."""
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
        """True from the first held-out run on: the winner is fixed, even if the budget is raised."""
        return any(run.phase == "held_out" for run in self.runs)

    @property
    def winner(self) -> Candidate:
        """Best candidate of the search; the default if none is better."""
        for run in self.runs:
            if run.phase == "held_out":
                return self.candidate(run)  # the first one is the winner's
        others = [candidate for candidate in self.arms("search") if candidate != self.plan.start]
        return max([self.plan.start, *others], key=self.effects.estimate)

    @property
    def effects(self) -> Effects:
        """Model of the search's outcomes, refitted when there are more."""
        if self._modelled[0] != len(self.results):
            effects = Effects()
            for candidate, arm in self.arms("search").items():
                for task, outcomes in arm.items():
                    effects.add(candidate, task, sum(outcomes) / len(outcomes), len(outcomes))
            self._modelled = (len(self.results), effects)
        return self._modelled[1]

    def dropped(self) -> Mapping[Candidate, Drop | None]:
        """Return dropped candidates with the reason; None if their runs left no outcome."""
        arms = self.arms("search")
        ended = self._counts(("ended",))
        silent: dict[Candidate, Drop | None] = {c: None for c, n in ended.items() if n >= SILENT and c not in arms}
        return silent | dropped_candidates(self.effects, list(arms))

    def _counts(self, states: tuple[str, ...]) -> dict[Candidate, int]:
        counts: dict[Candidate, int] = {}
        for run in self.runs:
            if run.phase == "search" and run.state in states:
                counts[self.candidate(run)] = counts.get(self.candidate(run), 0) + 1
        return counts

    @property
    def race(self) -> Race | None:
        """State from which the next candidate is chosen. None if only one candidate, or no task, is left."""
        runs, lost = self._counts(("ended", "running")), self.dropped()
        remaining = [c for c in self.plan.candidates() if c not in lost]
        open_ = [c for c in remaining if runs.get(c, 0) < len(self.tasks)]
        if len(remaining) < 2 or not open_:
            return None
        return Race(plan=self.plan, arms=self.arms("search"), effects=self.effects, runs=runs, open=open_)

    def spent(self, reserved: int) -> str:
        """Return why the budget has no room for another run next to `reserved` ones, or an empty string."""
        budget = self.plan.budget
        if len(self.runs) + 1 + reserved > budget.runs:
            return f"the budget of {budget.runs} runs is used up"
        ended = len(self.results)
        cost, unpriced = self.cost()
        if budget.cost_usd is not None and ended:
            attempts = sum(result.attempts for result in self.results.values())
            if attempts and unpriced == attempts:
                return "no attempt has a cost in the store, so that budget.cost_usd can't be kept"
            # What has no cost is taken to have cost as much as the others.
            expected = cost * attempts / max(1, attempts - unpriced)
            if expected * (1 + (1 + reserved) / ended) > budget.cost_usd:
                return f"the budget of ${budget.cost_usd:,.2f} is used up"
        took = sum(run.wall_time_s for run in self.runs)
        if budget.wall_time_s is not None and ended and took * (1 + (1 + reserved) / ended) > budget.wall_time_s:
            return f"the budget of {budget.wall_time_s:,.0f} seconds is used up"
        return ""

    def cost(self) -> tuple[float, int]:
        return (
            sum(result.cost_usd for result in self.results.values()),
            sum(result.unpriced for result in self.results.values()),
        )


# -- status ------------------------------------------------------------------------------------------------------------


Verdict = Literal["under way", "no result", "default", "better", "worse", "not shown"]


class CandidateStatus(Struct, frozen=True, kw_only=True):
    """A candidate in the search. Its figures selected the winner, so they are biased and carry no interval."""

    treatment: dict[str, Value]
    runs: int
    tasks: int
    solved: int
    trials: int
    expected: float
    dropped: str
    """Reason why it was dropped; empty if it was not."""


class Confirmed(Struct, frozen=True, kw_only=True):
    winner: Estimate
    default: Estimate
    difference: Paired
    smallest_seen: float | None
    """Difference that so many tasks detect with 80 % power."""


class SearchStatus(Struct, frozen=True, kw_only=True):
    """Progress and result of a search."""

    verdict: Verdict
    answer: str
    over: str
    """Reason why the search ended; empty while it runs."""
    outcome: str
    sampler: str
    candidates: int
    runs: int
    budget_runs: int
    interrupted: int
    failed: int
    """Runs with a non-zero exit code. Their results count all the same."""
    cost_usd: float
    attempts: int
    unpriced: int
    wall_time_s: float
    without: dict[str, int]
    winner: dict[str, Value] | None
    """None while the search runs, or without outcomes."""
    default: dict[str, Value]
    tried: list[CandidateStatus]
    confirmed: Confirmed | None
    caveats: list[str]


def search_status(search: Search) -> SearchStatus:
    """Return the search's status. Starts nothing."""
    plan, next_run = search.plan, search.proposal()
    arms, held_out = search.arms("search"), search.arms("held_out")
    settled = search.confirms or (next_run is None and bool(arms))
    winner = search.winner if settled else None
    confirmed = None
    if winner is not None and winner != plan.start and held_out:
        pair = held_out.get(winner, {}), held_out.get(plan.start, {})
        difference = paired(*pair, yes_or_no=True)
        power = smallest_detectable(difference.tasks, difference.discordance) if difference.discordance else None
        best, default = (estimate([(t, o) for t, outcomes in arm.items() for o in outcomes], True) for arm in pair)
        confirmed = Confirmed(winner=best, default=default, difference=difference, smallest_seen=power)
    verdict, answer = _answer(search, next_run is None, winner, confirmed)
    over = ""
    if next_run is None or search.confirms:
        made, reserved = sum(run.phase == "search" for run in search.runs), 2 * len(search.held_out)
        if made + 1 + reserved > plan.budget.runs:
            over = f"the budget of {plan.budget.runs} runs is used up ({reserved} reserved for the confirmation)"
        elif search.race is None:
            over = "every remaining candidate has run every task"
        else:
            over = search.spent(reserved) or "the rest of the budget is reserved for the confirmation"
    cost, unpriced = search.cost()
    without: Counter[str] = Counter()
    for result in search.results.values():
        without.update(result.without)
    return SearchStatus(
        verdict=verdict,
        answer=answer,
        over=over,
        outcome=plan.outcome,
        sampler=plan.sampler,
        candidates=len(plan.candidates()),
        runs=len(search.runs),
        budget_runs=plan.budget.runs,
        interrupted=sum(run.state == "interrupted" for run in search.runs),
        failed=sum(run.state == "ended" and run.exit_code != 0 for run in search.runs),
        cost_usd=cost,
        attempts=sum(result.attempts for result in search.results.values()),
        unpriced=unpriced,
        wall_time_s=sum(run.wall_time_s for run in search.runs),
        without=dict(without.most_common()),
        winner=None if winner is None else plan.treatment(winner),
        default=plan.treatment(plan.start),
        tried=_tried(search),
        confirmed=confirmed,
        caveats=_caveats(search, confirmed),
    )


def _tried(search: Search) -> list[CandidateStatus]:
    arms, lost = search.arms("search"), search.dropped()
    runs = Counter(search.candidate(run) for run in search.runs if run.phase == "search" and run.state == "ended")
    rows = []
    for candidate in runs:
        outcomes = [outcome for outcomes in arms.get(candidate, {}).values() for outcome in outcomes]
        dropped = ""
        if candidate in lost:
            drop = lost[candidate]
            probable = f"{drop.probability:.1%} likely to be better than the best" if drop else ""
            dropped = probable or "its runs have no outcome"
        rows.append(
            CandidateStatus(
                treatment=search.plan.treatment(candidate),
                runs=runs[candidate],
                tasks=len(arms.get(candidate, {})),
                solved=round(sum(outcomes)),
                trials=len(outcomes),
                expected=search.effects.estimate(candidate),
                dropped=dropped,
            )
        )
    return sorted(rows, key=lambda row: (bool(row.dropped), -row.expected))


def _answer(search: Search, ended: bool, winner: Candidate | None, confirmed: Confirmed | None) -> tuple[Verdict, str]:
    """Return the verdict of a search and the sentence that states it, by the interval of the confirmed difference."""
    if not ended:
        doing = "confirming its winner" if search.confirms else "searching"
        return "under way", f"The search is under way: {doing}."
    if winner is None:
        return "no result", "No run has an outcome, so there is no result."
    if winner == search.plan.start:
        return (
            "default",
            "No better than the default: no candidate is expected to improve, so nothing was confirmed.",
        )
    name = treatment_text(search.plan.treatment(winner))
    difference = None if confirmed is None else confirmed.difference
    if difference is None or difference.value is None:
        return "not shown", f"{name} won the search, but no held-out task has outcomes for it and the default."
    gap = f"{100 * difference.value:+.1f} points on {difference.tasks} held-out tasks"
    if difference.low is None or difference.high is None:
        return "not shown", f"Whether {name} is better than the default can't be told: {gap}, {difference.method}."
    gap += f" (95% interval {100 * difference.low:+.1f} to {100 * difference.high:+.1f})"
    if difference.low > 0:
        return "better", f"{name} is better than the default: {gap}."
    if difference.high < 0:
        return "worse", f"{name} won the search but is worse than the default: {gap}. Keep the default."
    return "not shown", f"No significant improvement over the default: {name}, winner of the search, has {gap}."


def _caveats(search: Search, confirmed: Confirmed | None) -> list[str]:
    lines = []
    if confirmed is not None:
        seen = {task for arm in search.arms("search").values() for task in arm}
        again = seen & {task for arm in search.arms("held_out").values() for task in arm}
        if again:
            lines.append(
                f"{len(again)} held-out tasks were also searched, so the interval covers new runs on these tasks, not"
                " other tasks"
            )
        shown = (confirmed.difference.low or 0) > 0 or (confirmed.difference.high or 0) < 0
        if confirmed.smallest_seen is not None and not shown:
            lines.append(
                f"with {confirmed.difference.tasks} held-out tasks a difference under"
                f" {100 * confirmed.smallest_seen:.0f} points is usually not detected"
            )
        missing = 2 * len(search.held_out) - sum(r.phase == "held_out" and r.state == "ended" for r in search.runs)
        if missing > 0:
            lines.append(f"{missing} held-out runs are missing")
    unpriced, attempts = search.cost()[1], sum(result.attempts for result in search.results.values())
    if 0 < unpriced < attempts:
        lines.append(f"the cost is a lower bound: {unpriced} of {attempts} attempts have no complete cost")
    return lines


def treatment_text(treatment: dict[str, Value]) -> str:
    return ", ".join(f"{name}={value_text(value)}" for name, value in treatment.items())


__all__ = ["Budget", "Plan", "Search", "SearchStatus", "read_plan", "search_status"]


# -- running the command -----------------------------------------------------------------------------------------------


_GRACE_S = 5.0
_LAST_CHARS = 300
_LOCK = ".search.lock"


def drive(search: Search, began: Callable[[Run], None] = lambda run: None) -> None:
    """Run the search to its end. Ctrl-C ends the current command and keeps earlier runs.

    TuningError if the command cannot be started, or repeatedly leaves no outcome; StoreError if another program drives
    this search.
    """
    private_files.make_folder(search.folder)
    with locked(search.folder, _LOCK, wait_s=0):
        search.look()  # another program may have driven it meanwhile
        for lost in [run for run in search.runs if run.state == "running"]:
            search.interrupted(lost)  # of a program that is gone
        if ended := [past for past in search.runs if past.state == "ended"]:
            search.read(ended)  # the last one's reading may have been broken off
        silent = 0
        while (run := search.ask()) is not None:
            began(run)
            result = search.tell(run, *_ran(search, run))
            silent = 0 if result.outcomes else silent + 1
            ever = any(earlier.outcomes for earlier in search.results.values())
            if silent >= (2 * SILENT if ever else SILENT):
                stderr = (search.place(run) / "stderr.txt").read_bytes()[-4 * _LAST_CHARS :].decode("utf-8", "replace")
                last = f", saying: {words[-_LAST_CHARS:]}" if (words := stderr.strip()) else "."
                code = run.exit_code
                how = "was stopped at its time limit" if code is None else f"ended with exit code {code}"
                raise TuningError(
                    f"The last {silent} runs left no outcome: {'; '.join(result.without)}."
                    f" The last command {how}{last}",
                    f"Look at the files in {search.place(run)}. Repeat the command to continue from here.",
                )


def _ran(search: Search, run: Run) -> tuple[int | None, float]:
    """Run the command. Returns its exit code (None after a timeout) and its duration."""
    plan, place = search.plan, search.place(run)
    output = search.output(run)
    argv = plan.argv(run.treatment, run.task, output)
    variables = {**os.environ, **plan.variables(run.treatment, run.task, output)}
    private_files.make_folder(place / "output")
    began = time.monotonic()
    with (
        private_files.open_file(place / "stdout.jsonl", "wb") as out,
        private_files.open_file(place / "stderr.txt", "wb") as err,
    ):
        try:
            process = subprocess.Popen(  # noqa: S603  (the words of the person's plan, and no shell)
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=variables,
                start_new_session=True,
                umask=private_files.persons_umask(),
            )
        except OSError as problem:
            search.interrupted(run)
            raise TuningError(
                f"{argv[0]!r} can't be started: {problem.strerror}.",
                "Check the plan's command: its first word must be a program.",
            ) from problem
        try:
            code: int | None = process.wait(plan.timeout_s)
        except subprocess.TimeoutExpired:
            _end(process)
            code = None
        except BaseException:  # Ctrl-C: what the command began is not left running
            _end(process)
            search.interrupted(run, time.monotonic() - began)
            raise
    return code, time.monotonic() - began


def _end(process: subprocess.Popen[bytes]) -> None:
    for ending in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, ending)
            process.wait(_GRACE_S)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
