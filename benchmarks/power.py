"""How often tests show a difference that is there, as computed and by simulation.

    python -m benchmarks.power [EXPERIMENTS]

Prints the table of docs/design/statistics.md#power: tasks of all difficulties, one arm better by so many log-odds.
"""

from __future__ import annotations

import math
import random
import sys
from functools import lru_cache
from statistics import NormalDist, fmean, median

from agentsignals.stats.paired import LEVEL, POWER, mcnemar_power, paired, power_of, smallest_detectable
from benchmarks.coverage import solves

SIZES = (6, 12, 20, 100)
GAINS = (0.75, 1.5, 3.0)
_SPREAD = 1.5
"""Standard deviation of difficulties, in log-odds."""


@lru_cache
def truth(gain: float) -> tuple[float, float]:
    """The difference of the two arms, and the share of tasks that change where each is tried once."""
    chance = random.Random(1)  # noqa: S311  (draws, no secret)
    both = [(solves(hard + gain), solves(hard)) for hard in (chance.gauss(0, _SPREAD) for _ in range(100_000))]
    return fmean(a - b for a, b in both), fmean(a * (1 - b) + b * (1 - a) for a, b in both)


def cell(tasks: int, attempts: int, gain: float, experiments: int) -> tuple[str, float | None]:
    """Power as computed and as simulated; and how often the range of the smallest difference shown holds it."""
    gap, discordance = truth(gain)
    chance = random.Random(f"{tasks} {attempts} {gain}")  # noqa: S311  (draws, no secret)
    seen = held = 0
    smallest = []
    should = smallest_detectable(tasks, discordance)
    for _ in range(experiments):
        hard = [chance.gauss(0, _SPREAD) for _ in range(tasks)]
        better, plain = (
            {str(n): [float(chance.random() < solves(d + more)) for _ in range(attempts)] for n, d in enumerate(hard)}
            for more in (gain, 0.0)
        )
        compared = paired(better, plain, yes_or_no=True)
        seen += compared.p is not None and compared.p <= LEVEL and (compared.value or 0) > 0
        power = power_of(better, plain, compared, yes_or_no=True)
        if power is not None and power.low is not None and power.high is not None and should is not None:
            held += power.low <= should + 1e-6 and should - 1e-6 <= power.high
        smallest.append(power.detectable if power is not None and power.detectable is not None else math.inf)
    if attempts == 1:
        computed = mcnemar_power(tasks, gap, discordance)
    else:
        normal = NormalDist()
        error, often = normal.inv_cdf(1 - LEVEL / 2), normal.inv_cdf(POWER)
        if median(smallest) == math.inf:
            return f"not told / {seen / experiments:.2f}", None
        computed = normal.cdf((error + often) * gap / median(smallest) - error)
    return f"{computed:.2f} / {seen / experiments:.2f}", held / experiments if attempts == 1 else None


def main(experiments: int) -> None:
    """Prints the table."""
    heads = [f"{truth(gain)[0] * 100:.0f} points" for gain in GAINS]
    print(f"| tasks | attempts | {' | '.join(heads)} | range holds |\n|---|---|---|---|---|---|")
    for attempts in (1, 3):
        for tasks in SIZES:
            cells = [cell(tasks, attempts, gain, experiments) for gain in GAINS]
            holds = ", ".join(f"{held:.2f}" for _, held in cells if held is not None)
            print(f"| {tasks} | {attempts} | {' | '.join(text for text, _ in cells)} | {holds or '-'} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
