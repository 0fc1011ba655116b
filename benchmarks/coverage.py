"""How often intervals hold what they are about, and how often tests see what is not there, by simulation.

    python -m benchmarks.coverage [EXPERIMENTS]

Prints the tables of docs/design/statistics.md: paired differences of tasks, shares, ratios,
kappas and other coefficients over clusters, and AUROCs over groups.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Sequence
from functools import partial
from statistics import NormalDist

from agentsignals.labels.agreement import weighted_back
from agentsignals.stats import agreement as jackknife
from agentsignals.stats.agreement import (
    Estimate,
    ac1,
    alpha,
    coincidences,
    icc,
    kappa_estimate,
    spearman,
    weighted_kappa,
)
from agentsignals.stats.intervals import clustered, ratio_interval
from agentsignals.stats.paired import paired

SIZES = (6, 8, 12, 20, 50)
Interval = tuple[float | None, float | None]
Coefficient = Callable[[list[tuple[int, list[str]]]], Estimate | None]
_ALL = 50_000
"""So many things stand for all that there are."""
Sample = Callable[[random.Random, int, float], Interval]


def solves(difficulty: float) -> float:
    """The probability of solving a task."""
    return 1 / (1 + math.exp(-difficulty))


def experiment(chance: random.Random, tasks: int, seeds: int, gain: float) -> tuple[Interval, float | None]:
    """The interval and the p of one comparison: tasks of all difficulties, `gain` log-odds easier for one arm."""
    hard = [chance.gauss(0, 1.5) for _ in range(tasks)]
    better, plain = (
        {str(n): [float(chance.random() < solves(d + more)) for _ in range(seeds)] for n, d in enumerate(hard)}
        for more in (gain, 0.0)
    )
    difference = paired(better, plain, yes_or_no=True)
    return (difference.low, difference.high), difference.p


def differences(experiments: int) -> None:
    """Coverage of paired differences, and the type-I error of their tests."""
    many = _normal(200_000)
    print("| tasks | seeds | no difference | 13 points | 25 points | type-I error |\n|---|---|---|---|---|---|")
    for seeds in (1, 3):
        for tasks in SIZES:
            cells = []
            error = 0
            for gain in (0.0, 0.75, 1.5):
                truth = math.fsum(solves(d + gain) - solves(d) for d in many) / len(many)
                chance = random.Random(f"{tasks} {seeds} {gain}")  # noqa: S311  (draws, no secret)
                drawn = [experiment(chance, tasks, seeds, gain) for _ in range(experiments)]
                cells.append(_held([ends for ends, _ in drawn], truth))
                if not gain:
                    error = sum(p is not None and p <= 0.05 for _, p in drawn)
            print(f"| {tasks} | {seeds} | {' | '.join(cells)} | {error / experiments:.3f} |", flush=True)


def _normal(n: int) -> list[float]:
    chance = random.Random(1)  # noqa: S311  (draws, no secret)
    return [chance.gauss(0, 1.5) for _ in range(n)]


def _held(intervals: Sequence[Interval], truth: float) -> str:
    with_ends = [(low, high) for low, high in intervals if low is not None and high is not None]
    held = sum(low - 1e-12 <= truth <= high + 1e-12 for low, high in with_ends)
    return f"{held / len(with_ends):.3f}" if with_ends else "-"


def clusters(
    experiments: int, name: str, sample: Callable[[random.Random, int, float], Interval], truth: float
) -> None:
    """Coverage over clusters of one size, and of sizes whose logarithms have a standard deviation of 1 and 1.5."""
    print(f"| clusters | {name}, one size | sizes 1.0 | sizes 1.5 |\n|---|---|---|---|")
    for n in SIZES:
        cells = []
        for spread in (0.0, 1.0, 1.5):
            chance = random.Random(f"{n} {spread} {name}")  # noqa: S311  (draws, no secret)
            cells.append(_held([sample(chance, n, spread) for _ in range(experiments)], truth))
        print(f"| {n} | {' | '.join(cells)} |", flush=True)


def _size(chance: random.Random, spread: float) -> int:
    return max(1, round(math.exp(chance.gauss(2.3, spread))))


def a_share(chance: random.Random, n: int, spread: float) -> Interval:
    """A quarter on average, by place from nearly none to most."""
    parts = []
    for place in range(n):
        likely, size = chance.betavariate(2, 6), _size(chance, spread)
        parts.append((place, sum(chance.random() < likely for _ in range(size)), size))
    return clustered(parts).interval or (None, None)


def a_ratio(chance: random.Random, n: int, spread: float) -> Interval:
    """One on average, lying to the right (gamma, a standard deviation of one half)."""
    parts = [(size * chance.gammavariate(4, 0.25), size) for size in (_size(chance, spread) for _ in range(n))]
    return ratio_interval(parts) or (None, None)


def judged(chance: random.Random, n: int, spread: float, alike: float) -> list[tuple[int, str, str]]:
    """Two labellers' words by session: sessions differ in how often a thing is there (a third on average) and in how
    often the second says as the first, `alike` on average; else it guesses."""
    pairs = []
    for session in range(n):
        there, agree = chance.betavariate(2.4, 5.6), chance.betavariate(8 * alike, 8 * (1 - alike))
        for _ in range(_size(chance, spread)):
            first = chance.random() < there
            second = first if chance.random() < agree else chance.random() < 0.3
            pairs.append((session, str(first), str(second)))
    return pairs


def kappas(experiments: int, alike: float) -> None:
    """Coverage of Cohen's kappa over sessions; the truth is that of very many."""
    truth = kappa_estimate(judged(random.Random(1), 60_000, 0.0, alike))  # noqa: S311  (draws, no secret)
    if truth is None:
        raise ValueError("no kappa")

    def a_kappa(chance: random.Random, n: int, spread: float) -> Interval:
        estimate = kappa_estimate(judged(chance, n, spread, alike))
        return (estimate.low, estimate.high) if estimate is not None else (None, None)

    clusters(experiments, f"kappa of {truth.value:.2f}", a_kappa, truth.value)


def graded(chance: random.Random, n: int, spread: float, alike: float) -> list[tuple[int, list[str]]]:
    """Three labellers' words of three classes with an order, by session: each gives the real one `alike` often, which
    differs by session, else one that it guesses."""
    things = []
    for session in range(n):
        mood, agree = chance.betavariate(3, 5), chance.betavariate(8 * alike, 8 * (1 - alike))
        for _ in range(_size(chance, spread)):
            real = sum(chance.random() < mood for _ in range(2))
            labels = [real if chance.random() < agree else chance.randrange(3) for _ in range(3)]
            things.append((session, [str(label) for label in labels]))
    return things


def an_ac1(things: list[tuple[int, list[str]]]) -> Estimate | None:
    return jackknife.pairs_estimate(((at, (a, b), 1.0) for at, (a, b, _) in things), partial(ac1, labels=3))


def a_weighted_kappa(things: list[tuple[int, list[str]]]) -> Estimate | None:
    return jackknife.pairs_estimate(
        ((at, (a, b), 1.0) for at, (a, b, _) in things), partial(weighted_kappa, order="012")
    )


def an_alpha(things: list[tuple[int, list[str]]]) -> Estimate | None:
    cells = ((at, pair, n) for at, labels in things for pair, n in coincidences(labels).items())
    return jackknife.pairs_estimate(cells, partial(alpha, order="012"))


def a_weighted_back(things: list[tuple[int, list[str]]]) -> Estimate | None:
    """Of a sample that is even over the first's labels, at most twenty of each, weighed back to all."""
    strata: dict[str, list[tuple[int, list[str]]]] = {}
    for thing in things:
        strata.setdefault(thing[1][0], []).append(thing)
    chance, drawn = random.Random(len(things)), []  # noqa: S311  (draws, no secret)
    for stratum in strata.values():
        some = chance.sample(stratum, min(20, len(stratum))) if len(things) < _ALL else stratum
        drawn += [(f"{at}", a, b, len(stratum) / len(some)) for at, (a, b, _) in some]
    found = weighted_back(drawn)
    return None if found is None else found.kappa


def coefficients(experiments: int) -> None:
    """Coverage of the other coefficients of classes over sessions; the truth is that of very many."""
    for name, coefficient in (
        ("AC1", an_ac1),
        ("weighted kappa", a_weighted_kappa),
        ("ordinal alpha of three", an_alpha),
        ("kappa weighted back", a_weighted_back),
    ):
        truth = coefficient(graded(random.Random(1), 10_000, 0.0, 0.7))  # noqa: S311  (draws, no secret)
        if truth is None:
            raise ValueError(f"no {name}")

        def ends(chance: random.Random, n: int, spread: float, of: Coefficient = coefficient) -> Interval:
            found = of(graded(chance, n, spread, 0.7))
            return (found.low, found.high) if found is not None else (None, None)

        clusters(experiments, f"{name} of {truth.value:.2f}", ends, truth.value)
        print()


def scored(chance: random.Random, n: int, noise: float, form: str) -> list[tuple[float, float]]:
    """Two labellers' scores of a session each, a fifth of a standard deviation apart: `normal`, leaning to the right
    (`exponential`), or in `steps`."""
    pairs = []
    for _ in range(n):
        real = chance.expovariate(1) if form == "exponential" else chance.gauss(0, 1)
        pair = real + chance.gauss(0, noise), real + 0.2 + chance.gauss(0, noise)
        pairs.append((float(round(pair[0])), float(round(pair[1]))) if form == "steps" else pair)
    return pairs


def scores(experiments: int) -> None:
    """Coverage of ICC and Spearman's, one score a session."""
    forms = ("normal", "exponential", "steps")
    print(f"| sessions | {' | '.join(f'{name}, {form}' for name in ('ICC', 'Spearman') for form in forms)} |")
    print(f"|{'---|' * 7}")
    truths = {form: scored(random.Random(1), 100_000, 0.6, form) for form in forms}  # noqa: S311  (draws, no secret)
    for n in SIZES:
        cells = []
        for of in (icc, spearman):
            for form in forms:
                chance = random.Random(f"{n} {form}")  # noqa: S311  (draws, no secret)
                ends = []
                for _ in range(experiments):
                    found = jackknife.jackknife_estimate(scored(chance, n, 0.6, form), [1.0] * n, of)
                    ends.append((found.low, found.high) if found is not None else (None, None))
                cells.append(_held(ends, of(truths[form]) or 0.0))
        print(f"| {n} | {' | '.join(cells)} |", flush=True)


def an_auroc(seed: int, groups: int, target: float, spread: float, experiments: int) -> str:
    """Scores of two classes in each group: groups lie at different heights (half a standard deviation) and part the
    classes more or less well (likewise); about four texts a class and group, by a lognormal of that spread."""
    import numpy as np  # noqa: PLC0415  (the lab's)

    from agentsignals.lab.separation import interval  # noqa: PLC0415

    chance = np.random.default_rng(seed)
    apart = NormalDist().inv_cdf(target) * math.sqrt(2 * (1 + 0.5**2) + 0.5**2)
    ends = []
    for _ in range(experiments):
        sizes = np.maximum(1, np.round(4 * np.exp(chance.normal(0, spread, groups) - spread**2 / 2))).astype(int)
        member = np.repeat(np.arange(groups), sizes)
        height, gain = chance.normal(0, 0.5, groups), chance.normal(apart, 0.5, groups)
        below = height[member] + chance.normal(size=len(member))
        above = (height + gain)[member] + chance.normal(size=len(member))
        positive = np.arange(2 * len(member)) >= len(member)
        names = [str(g) for g in (*member, *member)]
        ends.append(interval(np.concatenate([below, above]), positive, names) or (None, None))
    return _held(ends, target)


def aurocs(experiments: int) -> None:
    """Coverage over groups of one size, and of sizes whose logarithms have a standard deviation of 1."""
    print("| groups | AUROC .73, one size | sizes 1.0 | AUROC .89, one size | sizes 1.0 |\n|---|---|---|---|---|")
    for groups in (3, *SIZES):
        cells = [an_auroc(groups, groups, target, spread, experiments) for target in (0.73, 0.89) for spread in (0, 1)]
        print(f"| {groups} | {' | '.join(cells)} |", flush=True)


def main(experiments: int) -> None:
    """Prints all tables."""
    differences(experiments)
    print()
    clusters(experiments, "share", a_share, 0.25)
    print()
    clusters(experiments, "ratio", a_ratio, 1.0)
    for alike in (0.5, 0.85):
        print()
        kappas(experiments, alike)
    print()
    coefficients(experiments)
    scores(experiments)
    print()
    aurocs(experiments)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
