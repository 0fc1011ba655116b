"""What a search over knobs is worth, by simulation: samplers at equal budget, and how often its answers are right.

    python -m benchmarks.tuning [SEEDS] [FOLDER]

Prints the tables of docs/design/tuning.md. The simulated world has four knobs (72 candidates), some of which do
nothing, pairs of values that work on each other, tasks of all difficulties, and one yes or no a run. FOLDER: runs of
the lab's retry loop on a tiny model (`t0`, `t0.4` … by temperature, each with the conditions calm and desperate, four
attempts), whose outcomes are drawn from instead. Optuna takes part where it is installed.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cached_property
from importlib.util import find_spec
from itertools import product
from math import exp
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from agentsignals.experiments.tuning import Budget, Plan, Search, search_status
from agentsignals.experiments.tuning.plan import Candidate, Result, Sampler
from agentsignals.experiments.tuning.samplers import FULL
from agentsignals.stats.intervals import mean_interval

LEVELS = (3, 3, 2, 4)
SEARCHED, HELD_OUT, RUNS = 20, 20, 100
SEEDS = 20


class World(NamedTuple):
    """Knobs, what is used today, and the probability that a candidate solves a task."""

    knobs: dict[str, list[int]]
    default: dict[str, int]
    outcome: Callable[[Candidate, str], float]
    truth: dict[Candidate, float]


def simulated(seed: int, strength: float = 1.0) -> World:
    """Main effects and interactions of half a log-odds or less, tasks 1.5 log-odds apart; all times `strength`."""
    chance = drawing(f"world {seed}")
    knobs = {f"knob{n}": list(range(levels)) for n, levels in enumerate(LEVELS)}
    working = [chance.random() < 0.6 for _ in LEVELS]
    main = [[chance.gauss(0, 0.5) * works for _ in range(n)] for n, works in zip(LEVELS, working, strict=True)]
    between: dict[tuple[int, int, int, int], float] = {}
    crossed = [(i, j) for i in range(len(LEVELS)) for j in range(i) if working[i] and working[j]]
    effects: dict[Candidate, float] = {}
    for candidate in product(*knobs.values()):
        effect = sum(main[n][value] for n, value in enumerate(candidate))
        for i, j in crossed:
            effect += between.setdefault((i, candidate[i], j, candidate[j]), chance.gauss(0, 0.3))
        effects[candidate] = strength * effect
    population = [chance.gauss(-0.4, 1.5) for _ in range(400)]
    truth = {c: fmean(solves(hard + effect) for hard in population) for c, effect in effects.items()}

    def outcome(candidate: Candidate, task: str) -> float:
        hard = drawing(f"task {seed} {task}").gauss(-0.4, 1.5)
        draw = drawing(f"run {seed} {task} {candidate}")
        return float(draw.random() < solves(hard + effects[candidate] + strength * draw.gauss(0, 0.5)))

    start = chance.choice(list(effects))
    return World(knobs, dict(zip(knobs, start, strict=True)), outcome, truth)


def drawing(name: str) -> random.Random:
    return random.Random(name)  # noqa: S311  (draws, no secret)


def solves(log_odds: float) -> float:
    return 1 / (1 + exp(-log_odds))


def of_the_lab(folder: Path) -> Callable[[int], World]:
    """Worlds whose outcomes are those of a tiny model: temperature, condition, and how many attempts there are."""
    temperatures = sorted(folder.glob("t*/traces"), key=lambda path: float(path.parent.name[1:]))
    solved: dict[tuple[int, int, str], list[bool]] = {}
    for heat, traces in enumerate(temperatures):
        for tone, name in enumerate(("baseline", "calm", "desperate")):
            for path in (traces / name).glob("*.jsonl"):
                scores = (json.loads(line).get("attempt") for line in path.read_text("utf-8").splitlines())
                solved[heat, tone, path.stem] = [bool(score["full_pass"]) for score in scores if score]
    knobs = {"temperature": list(range(len(temperatures))), "condition": [0, 1, 2], "attempts": [1, 2, 3, 4]}
    tasks = sorted({task for _, _, task in solved})

    def within(candidate: Candidate, task: str) -> float:
        heat, tone, attempts = (int(value) for value in candidate)
        return float(any(solved[heat, tone, task][:attempts]))

    truth = {candidate: fmean(within(candidate, task) for task in tasks) for candidate in product(*knobs.values())}

    def world(seed: int) -> World:
        mixed = drawing(f"tasks {seed}").sample(tasks, SEARCHED + HELD_OUT)
        names = dict(zip((*SEARCH_TASKS, *HELD_OUT_TASKS), mixed, strict=True))
        start = {"temperature": 2, "condition": 0, "attempts": 2}
        return World(knobs, start, lambda candidate, task: within(candidate, names[task]), truth)

    return world


SEARCH_TASKS = [f"s{n}" for n in range(SEARCHED)]
HELD_OUT_TASKS = [f"h{n}" for n in range(HELD_OUT)]


class Simulation(Search):
    """A search whose runs are draws of a world."""

    @cached_property
    def results(self) -> dict[int, Result]:
        return {}

    def play(self, world: World) -> None:
        while (run := self.proposal()) is not None:
            solved = world.outcome(self.candidate(run), run.task)
            run.state, run.exit_code = "ended", 0
            self.runs.append(run)
            self.results[run.number] = Result(outcomes={run.task: [solved]}, without={}, attempts=1)


class Played(NamedTuple):
    """What came of one search."""

    gain: float
    """Of the winner on the default, in truth."""
    curse: float
    """By how much the winner's share in the search is above the truth."""
    better: bool
    """It says that the winner is better."""
    held: bool | None
    """The held-out interval holds the true difference."""
    dropped: int
    lost: bool
    """The best candidate was dropped."""


def played(world: World, sampler: Sampler, seed: int) -> Played:
    plan = Plan(
        command=["run", "{run}", "{task}", *(f"{{{name}}}" for name in world.knobs)],
        knobs=world.knobs,
        default=world.default,
        tasks=SEARCH_TASKS,
        held_out=HELD_OUT_TASKS,
        budget=Budget(runs=RUNS),
        sampler=sampler,
        seed=seed,
    )
    with tempfile.TemporaryDirectory() as folder:
        search = Simulation(plan, Path(folder))
        search.play(world)
        made = search_status(search)
        winner = search.winner
        row = next(tried for tried in made.tried if search.plan.treatment(winner) == tried.treatment)
        gain = world.truth[winner] - world.truth[plan.start]
        difference = made.confirmed.difference if made.confirmed else None
        held = None
        if difference is not None and difference.low is not None and difference.high is not None:
            held = difference.low <= gain <= difference.high
        best = max(world.truth, key=world.truth.__getitem__)
        out = search.dropped()
        return Played(
            gain=gain,
            curse=row.solved / row.trials - world.truth[winner],
            better=made.verdict == "better",
            held=held,
            dropped=len(out),
            lost=best in out,
        )


def plain_random(world: World, seed: int) -> float:
    """Random search as it is mostly done: the default and others on the same tasks, the best mean wins."""
    chance = drawing(f"plain {seed}")
    start = tuple(world.default.values())
    others = chance.sample([c for c in world.truth if c != start], (RUNS - 2 * HELD_OUT) // FULL - 1)
    shares = {c: fmean(world.outcome(c, task) for task in SEARCH_TASKS[:FULL]) for c in (start, *others)}
    return world.truth[max(shares, key=shares.__getitem__)] - world.truth[start]


def compare(name: str, worlds: Sequence[World]) -> None:
    """Prints a line for each sampler: its gain, less that of random search, and how often its answers are right."""
    plain = [plain_random(world, seed) for seed, world in enumerate(worlds)]
    possible = fmean(max(w.truth.values()) - w.truth[tuple(w.default.values())] for w in worlds)
    print(f"\n{name}: {len(worlds)} searches; the best candidate is {100 * possible:.1f} points above the default\n")
    heads = ("points gained", "more than random search", "says better: right", "wrong", "holds", "too high")
    print(f"| search | {' | '.join(heads)} | dropped | the best |")
    print("|---|---|---|---|---|---|---|---|---|")
    print(f"| random search, best mean | {100 * fmean(plain):.1f} | | | | | | | |")
    samplers: tuple[Sampler, ...] = ("optuna", "thompson")
    for sampler in samplers if find_spec("optuna") else ("thompson",):
        done = [played(world, sampler, seed) for seed, world in enumerate(worlds)]
        more = [search.gain - other for search, other in zip(done, plain, strict=True)]
        low, high = mean_interval(more) or (0.0, 0.0)
        held = [search.held for search in done if search.held is not None]
        cells = (
            f"{100 * fmean(search.gain for search in done):.1f}",
            f"{100 * fmean(more):+.1f} ({100 * low:+.1f} to {100 * high:+.1f})",
            f"{sum(search.better and search.gain > 0 for search in done)}",
            f"{sum(search.better and search.gain <= 0 for search in done)}",
            f"{sum(held)} of {len(held)}",
            f"{100 * fmean(search.curse for search in done):+.1f}",
            f"{fmean(search.dropped for search in done):.1f}",
            f"{sum(search.lost for search in done)}",
        )
        print(f"| {sampler} | {' | '.join(cells)} |", flush=True)


def main(words: Sequence[str]) -> None:
    seeds = int(words[0]) if words else SEEDS
    first = 1_000  # worlds that nothing here was chosen by
    compare("Simulated world", [simulated(first + n) for n in range(seeds)])
    compare("Simulated world in which no knob does anything", [simulated(first + n, 0.0) for n in range(seeds)])
    if len(words) > 1:
        world = of_the_lab(Path(words[1]))
        compare("Retry loop on the tiny model", [world(n) for n in range(seeds)])


if __name__ == "__main__":
    main(sys.argv[1:])
