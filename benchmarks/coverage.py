"""Coverage of each kind of interval that the program shows, and type-I errors of paired tests, by simulation.

    python -m benchmarks.coverage [EXPERIMENTS]

Prints the tables of docs/design/statistics.md, on one core in about three minutes: kinds of intervals on the shapes
that they meet (ties, zeros, shares of 0 or 100 %, outliers), from six clusters up. Cells near 0.92 get five times as
many experiments. Ends with the cells under 0.92, and with status 1 if there are any.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Sequence
from functools import partial
from statistics import NormalDist

from agentsignals.labels.agreement import weighted_back
from agentsignals.questions.estimates import median_interval
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
from agentsignals.stats.intervals import (
    poisson,
    ratio_interval,
    share_interval,
    sums_interval,
    wilson,
)
from agentsignals.stats.paired import difference_interval, paired

SIZES = (6, 8, 12, 20, 50)
SPREADS = (0.0, 1.25)
"""Standard deviations of the logarithm of the clusters' sizes."""
LEAST = 0.92
"""Coverage below it is reported."""
Interval = tuple[float | None, float | None]
Sample = Callable[[random.Random, int], Interval | None]
"""The interval of one experiment with so many clusters."""
Coefficient = Callable[[list[tuple[int, list[str]]]], Estimate | None]
_ALL = 50_000
"""So many clusters stand for the population."""
poor: list[str] = []
"""Cells with a coverage under LEAST."""


def seeded(name: object) -> random.Random:
    return random.Random(f"{name}")  # noqa: S311  (draws, no secret)


def covered(intervals: Sequence[Interval | None], truth: float) -> float:
    """Return the share of the intervals that hold the truth, among those that are shown; 1 where none is."""
    ends = [(low, high) for low, high in filter(None, intervals) if low is not None and high is not None]
    return sum(low - 1e-9 <= truth <= high + 1e-9 for low, high in ends) / len(ends) if ends else 1.0


def held(name: str, intervals: Sequence[Interval | None], truth: float) -> str:
    share = covered(intervals, truth)
    if share < LEAST:
        poor.append(f"{name}: {share:.3f}")
    return f"{share:.3f}"


def heading(first: str, columns: Sequence[object]) -> None:
    print(f"\n| {first} | {' | '.join(map(str, columns))} |\n|{'---|' * (len(columns) + 1)}")


def row(name: str, sample: Sample, truth: float, experiments: int, sizes: Sequence[int] = SIZES) -> None:
    """Print the coverage of one kind on one shape, by number of clusters."""
    cells = []
    for n in sizes:
        chance = seeded(f"{name} {n}")
        drawn = [sample(chance, n) for _ in range(experiments)]
        if covered(drawn, truth) < LEAST + 0.02:  # chance could decide
            drawn += [sample(chance, n) for _ in range(4 * experiments)]
        cells.append(held(f"{name}, {n}", drawn, truth))
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


# -- shares and ratios over places -------------------------------------------------------------------------------------


Cluster = Callable[[random.Random, float], tuple[float, float]]
"""Numerator and denominator of one place, whose size has a logarithm with this standard deviation."""


def size(chance: random.Random, spread: float, mean: float = 10) -> int:
    return max(1, round(math.exp(chance.gauss(math.log(mean), spread))))


def yes(chance: random.Random, n: int, likely: float) -> tuple[float, float]:
    return sum(chance.random() < likely for _ in range(n)), n


def dollars(chance: random.Random, spread: float, zeros: float, part: tuple[float, float]) -> tuple[float, float]:
    """A part of each place's cost, nothing in a share `zeros` of the places."""
    cost = math.exp(chance.gauss(0, spread))
    return 0.0 if chance.random() < zeros else cost * chance.betavariate(*part), cost


def scaled(chance: random.Random, spread: float, ratio: float) -> tuple[float, float]:
    n = size(chance, spread)
    return n * ratio, n


SHARES: dict[str, Cluster] = {
    "a quarter": lambda chance, spread: yes(chance, size(chance, spread), chance.betavariate(2, 6)),
    "0 or 100 %, 42 % of places": lambda chance, spread: scaled(chance, spread, float(chance.random() < 0.42)),
    "0 or 100 %, 10 % of places": lambda chance, spread: scaled(chance, spread, float(chance.random() < 0.1)),
    "rare (2 %)": lambda chance, spread: yes(chance, size(chance, spread), chance.betavariate(0.1, 4)),
    "nearly all (95 %)": lambda chance, spread: yes(chance, size(chance, spread), chance.betavariate(8, 0.4)),
    "dollars, 45 % zeros": lambda chance, spread: dollars(chance, spread, 0.45, (2, 5)),
    "dollars, 80 % zeros": lambda chance, spread: dollars(chance, spread, 0.8, (2, 2)),
}
RATIOS: dict[str, Cluster] = {
    "gamma": lambda chance, spread: scaled(chance, spread, chance.gammavariate(4, 0.25)),
    "45 % zeros": lambda chance, spread: scaled(
        chance, spread, (chance.random() >= 0.45) * chance.gammavariate(4, 0.25)
    ),
    "80 % zeros": lambda chance, spread: scaled(
        chance, spread, (chance.random() >= 0.8) * chance.gammavariate(4, 0.25)
    ),
    "outliers (lognormal)": lambda chance, spread: scaled(chance, spread, chance.lognormvariate(0, 1)),
    "small counts": lambda chance, spread: scaled(chance, spread, yes(chance, 26, 0.1)[0]),
}
BEYOND: dict[str, Cluster] = {
    "one place of 20 makes 20 times the others": lambda chance, spread: scaled(
        chance, spread, chance.gammavariate(4, 0.25) * (20 if chance.random() < 0.05 else 1)
    )
}
"""No interval can hold what most samples do not show; printed, and no failure."""


def over_places(
    kind: str,
    shapes: dict[str, Cluster],
    interval: Callable[[list[tuple[float, float]]], Interval | None],
    experiments: int,
    groups: int = 1,
) -> None:
    """Coverage of a kind of interval over places of one size and of unequal sizes. Two groups do not differ."""
    heading(f"{kind}, sizes", SIZES)
    for name, cluster in shapes.items():
        for spread in SPREADS:
            many = seeded(f"{name} {spread}")
            total = [math.fsum(part) for part in zip(*(cluster(many, spread) for _ in range(2 * _ALL)), strict=True)]

            def sample(
                chance: random.Random, n: int, cluster: Cluster = cluster, spread: float = spread
            ) -> Interval | None:
                return interval([cluster(chance, spread) for _ in range(groups * n)])

            truth = total[0] / total[1] if groups == 1 else 0.0
            row(f"{kind}: {name}, {'unequal' if spread else 'equal'}", sample, truth, experiments)


def difference(kept: list[tuple[float, float]]) -> Interval | None:
    """Two independent shares: of the first half of the places, and of the other."""
    half = len(kept) // 2
    sides = kept[:half], kept[half:]
    ends = [share_interval(side) or (0.0, 1.0) for side in sides]
    values = [math.fsum(k for k, _ in side) / math.fsum(n for _, n in side) for side in sides]
    return difference_interval(values[0], ends[0], values[1], ends[1])


# -- medians -----------------------------------------------------------------------------------------------------------


Value = Callable[[random.Random, float], float]
"""One value of a place with this effect, a standard normal number."""


def likely(effect: float) -> float:
    return 1 / (1 + math.exp(-effect))


VALUES: dict[str, Value] = {
    "no ties": lambda chance, effect: chance.lognormvariate(0.7 * effect, 1),
    "0 or 100 %": lambda chance, effect: 100.0 * (chance.random() < likely(effect - 0.3)),
    "45 % zeros": lambda chance, effect: (
        0.0 if chance.random() < likely(effect - 0.2) else chance.lognormvariate(effect, 1)
    ),
    "small counts": lambda chance, effect: yes(chance, 26, likely(0.4 * effect - 2.2))[0],
    "low, else 100 %": lambda chance, effect: 100.0 if chance.random() < likely(effect + 0.2) else 40 * chance.random(),
    "outliers": lambda chance, effect: math.exp(chance.gauss(0.7 * effect, 1)) ** 3,
}


def medians(experiments: int) -> None:
    """Coverage of medians of one value a place (order statistics), and of about four values a place."""
    heading("median, values a place", SIZES)
    for name, value in VALUES.items():
        for mean, spread in ((1, 0.0), (4, 0.0), (4, 1.25)):
            many = seeded(name)

            def draw(
                chance: random.Random, n: int, value: Value = value, mean: float = mean, spread: float = spread
            ) -> list[tuple[str, float]]:
                drawn = []
                for place in range(n):
                    effect = chance.gauss(0, 1)
                    drawn += [(f"{place}", value(chance, effect)) for _ in range(size(chance, spread, mean))]
                return drawn

            everything = sorted(value for _, value in draw(many, _ALL))
            row(
                f"median: {name}, {'one' if mean == 1 else 'four' if not spread else 'unequal'}",
                lambda chance, n, draw=draw: median_interval(draw(chance, n), {})[0],  # type: ignore[misc]
                everything[len(everything) // 2],
                experiments,
            )


# -- independent observations ------------------------------------------------------------------------------------------


def independent(experiments: int) -> None:
    """Coverage of intervals whose observations are independent, averaged over 20 true values near each other."""
    heading("independent observations", SIZES)
    for target in (0.02, 0.25, 0.5, 0.95):
        average(f"share {target} (Wilson)", target, lambda chance, n, p: wilson(yes(chance, n, p)[0], n), experiments)
    for target in (0.1, 1.0):
        average(
            f"{target} events a unit (Poisson)",
            target,
            lambda chance, n, rate: poisson(int(yes(chance, 100 * n, rate / 100)[0]), n),
            experiments,
        )


def average(
    name: str, target: float, interval: Callable[[random.Random, int, float], Interval | None], experiments: int
) -> None:
    cells = []
    for n in SIZES:
        chance, found = seeded(f"{name} {n}"), []
        for _ in range(experiments):
            truth = target * chance.uniform(0.95, 1.05)
            low, high = interval(chance, n, truth) or (None, None)
            if low is not None and high is not None:
                found.append((low - truth, high - truth))
        cells.append(held(f"{name}, {n}", found, 0.0))
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


# -- paired differences ------------------------------------------------------------------------------------------------


def experiment(chance: random.Random, tasks: int, seeds: int, gain: float) -> tuple[Interval, float | None]:
    """The interval and the p of one comparison: tasks of all difficulties, `gain` log-odds easier for one arm."""
    hard = [chance.gauss(0, 1.5) for _ in range(tasks)]
    better, plain = (
        {str(n): [float(chance.random() < likely(d + more)) for _ in range(seeds)] for n, d in enumerate(hard)}
        for more in (gain, 0.0)
    )
    found = paired(better, plain, yes_or_no=True)
    return (found.low, found.high), found.p


NUMBERS: dict[str, Callable[[random.Random], float]] = {
    "normal": lambda chance: chance.gauss(0.3, 1),
    "ties and zeros": lambda chance: float(chance.choice((0, 0, 0, 0, 1, 1, 2, -1))),
    "outliers (lognormal less 1)": lambda chance: chance.lognormvariate(0, 1) - 1,
}


def differences(experiments: int) -> None:
    """Coverage of paired differences, and the type-I error of their tests."""
    chance = seeded(1)
    many = [chance.gauss(0, 1.5) for _ in range(4 * _ALL)]
    heading("tasks, attempts", ("no difference", "13 points", "25 points", "type-I error"))
    for seeds in (1, 3):
        for tasks in SIZES:
            cells = []
            error = 0
            for gain in (0.0, 0.75, 1.5):
                truth = math.fsum(likely(d + gain) - likely(d) for d in many) / len(many)
                chance = seeded(f"{tasks} {seeds} {gain}")
                drawn = [experiment(chance, tasks, seeds, gain) for _ in range(experiments)]
                cells.append(held(f"paired, {tasks} tasks, {seeds}", [ends for ends, _ in drawn], truth))
                if not gain:
                    error = sum(p is not None and p <= 0.05 for _, p in drawn)
            print(f"| {tasks}, {seeds} | {' | '.join(cells)} | {error / experiments:.3f} |", flush=True)
    heading("paired numbers", SIZES)
    for name, number in NUMBERS.items():
        many = [number(chance) for _ in range(4 * _ALL)]

        def sample(chance: random.Random, n: int, number: Callable[[random.Random], float] = number) -> Interval:
            found = paired(
                {f"{t}": [number(chance)] for t in range(n)}, {f"{t}": [0.0] for t in range(n)}, yes_or_no=False
            )
            return found.low, found.high

        row(f"paired: {name}", sample, math.fsum(many) / len(many), experiments)


# -- agreement ---------------------------------------------------------------------------------------------------------


def judged(chance: random.Random, n: int, spread: float, alike: float) -> list[tuple[int, str, str]]:
    """Two labellers' classes by session. The class is there in a third of the cases; the second agrees with a
    probability that is `alike` on average, else guesses."""
    pairs = []
    for session in range(n):
        there, agree = chance.betavariate(2.4, 5.6), chance.betavariate(8 * alike, 8 * (1 - alike))
        for _ in range(size(chance, spread)):
            first = chance.random() < there
            second = first if chance.random() < agree else chance.random() < 0.3
            pairs.append((session, str(first), str(second)))
    return pairs


def graded(chance: random.Random, n: int, spread: float, alike: float) -> list[tuple[int, list[str]]]:
    """Three labellers' classes of an ordinal task, by session. Each is right with a probability that is `alike` on
    average, else guesses."""
    things = []
    for session in range(n):
        mood, agree = chance.betavariate(3, 5), chance.betavariate(8 * alike, 8 * (1 - alike))
        for _ in range(size(chance, spread)):
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
    """Kappa of a sample with at most twenty of each class of the first labeller, weighed back to all."""
    strata: dict[str, list[tuple[int, list[str]]]] = {}
    for thing in things:
        strata.setdefault(thing[1][0], []).append(thing)
    chance, drawn = seeded(len(things)), []
    for stratum in strata.values():
        some = chance.sample(stratum, min(20, len(stratum))) if len(things) < _ALL else stratum
        drawn += [(f"{at}", a, b, len(stratum) / len(some)) for at, (a, b, _) in some]
    found = weighted_back(drawn)
    return None if found is None else found.kappa


def coefficients(experiments: int) -> None:
    """Coverage of coefficients of agreement of classes over sessions; the truth is that of very many."""
    kinds: list[tuple[str, Callable[[random.Random, int, float], Estimate | None]]] = [
        (
            f"kappa, alike {alike}",
            lambda chance, n, spread, alike=alike: kappa_estimate(judged(chance, n, spread, alike)),  # type: ignore[misc]
        )
        for alike in (0.5, 0.85)
    ]
    kinds += [
        (name, lambda chance, n, spread, of=of: of(graded(chance, n, spread, 0.7)))  # type: ignore[misc]
        for name, of in (
            ("AC1", an_ac1),
            ("weighted kappa", a_weighted_kappa),
            ("ordinal alpha of three", an_alpha),
            ("kappa weighted back", a_weighted_back),
        )
    ]
    heading("agreement, sizes", SIZES)
    for name, kind in kinds:
        truth = kind(seeded(1), 10_000, 0.0)
        if truth is None:
            raise ValueError(f"no {name}")
        for spread in SPREADS:

            def sample(
                chance: random.Random,
                n: int,
                kind: Callable[[random.Random, int, float], Estimate | None] = kind,
                spread: float = spread,
            ) -> Interval | None:
                found = kind(chance, n, spread)
                return None if found is None else (found.low, found.high)

            row(f"{name} of {truth.value:.2f}, {'unequal' if spread else 'equal'}", sample, truth.value, experiments)
    row(
        "difference of two labellers' accuracy, unequal",
        lambda chance, n: sums_interval(
            [
                (yes(chance, k, 0.8 * more)[0] - yes(chance, k, 0.7 * more)[0], k)
                for k, more in ((size(chance, 1.5), chance.uniform(0.75, 1.25)) for _ in range(n))
            ]
        ),
        0.1,
        experiments,
    )


def scored(chance: random.Random, n: int, noise: float, form: str) -> list[tuple[float, float]]:
    """Two labellers' scores of a session each, a fifth of a standard deviation apart: `normal`, `exponential`, or in
    `steps`."""
    pairs = []
    for _ in range(n):
        real = chance.expovariate(1) if form == "exponential" else chance.gauss(0, 1)
        pair = real + chance.gauss(0, noise), real + 0.2 + chance.gauss(0, noise)
        pairs.append((float(round(pair[0])), float(round(pair[1]))) if form == "steps" else pair)
    return pairs


def scores(experiments: int) -> None:
    """Coverage of ICC and Spearman's, one score a session."""
    heading("scores", SIZES)
    for name, coefficient in (("ICC", icc), ("Spearman", spearman)):
        for form in ("normal", "exponential", "steps"):

            def sample(
                chance: random.Random,
                n: int,
                coefficient: Callable[[Sequence[tuple[float, float]]], float | None] = coefficient,
                form: str = form,
            ) -> Interval | None:
                found = jackknife.jackknife_estimate(scored(chance, n, 0.6, form), [1.0] * n, coefficient)
                return None if found is None else (found.low, found.high)

            truth = coefficient(scored(seeded(1), 2 * _ALL, 0.6, form)) or 0.0
            row(f"{name}, {form}", sample, truth, experiments)


def aurocs(experiments: int) -> None:
    """Coverage of the lab's AUROC: groups differ in level and in separation, four texts a class and group."""
    import numpy as np  # noqa: PLC0415  (the lab's)
    from agentsignals_lab.separation import interval  # noqa: PLC0415

    heading("AUROC over groups", (3, *SIZES))
    for target in (0.73, 0.89):
        apart = NormalDist().inv_cdf(target) * math.sqrt(2 * (1 + 0.5**2) + 0.5**2)
        for spread in (0, 1):

            def sample(
                seeds: random.Random, groups: int, apart: float = apart, spread: int = spread
            ) -> Interval | None:
                chance = np.random.default_rng(seeds.randrange(2**32))
                sizes = np.maximum(1, np.round(4 * np.exp(chance.normal(0, spread, groups) - spread**2 / 2)))
                member = np.repeat(np.arange(groups), sizes.astype(int))
                height, gain = chance.normal(0, 0.5, groups), chance.normal(apart, 0.5, groups)
                below = height[member] + chance.normal(size=len(member))
                above = (height + gain)[member] + chance.normal(size=len(member))
                positive = np.arange(2 * len(member)) >= len(member)
                names = [str(group) for group in (*member, *member)]
                return interval(np.concatenate([below, above]), positive, names)

            name = f"AUROC {target}, {'unequal' if spread else 'equal'}"
            row(name, sample, target, experiments, (3, *SIZES))


def main(experiments: int) -> int:
    """Print all tables; return 1 if a cell is under LEAST."""
    differences(experiments)
    over_places("share", SHARES, share_interval, experiments)
    over_places("ratio", RATIOS, ratio_interval, experiments)
    over_places("difference of shares", SHARES, difference, experiments // 2, groups=2)
    medians(experiments)
    independent(experiments)
    coefficients(experiments // 2)
    scores(experiments)
    aurocs(experiments // 2)
    print(f"\nUnder {LEAST}: {'; '.join(poor) or 'no cell'}")
    failed = bool(poor)
    over_places("ratio beyond any interval", BEYOND, ratio_interval, experiments)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 400))
