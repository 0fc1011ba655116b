"""How often `drivers` names planted causes, and how often it names decoys, by simulation.

    python -m benchmarks.drivers [SEEDS]

Prints the tables of docs/design/statistics.md#drivers. Beside it the naive way: solved against failed over all
attempts, by the same test, as if there were one task and one treatment.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.plants import drivers as planted
from tests.plants.drivers import CAUSE, WITH_IT, World

from agentsignals.questions.compare import outcome_rule
from agentsignals.questions.drivers import Drivers, drivers
from agentsignals.stats.paired import benjamini_hochberg

PLANTED = frozenset((CAUSE, WITH_IT))
RULE = outcome_rule("reward")
WORLDS = {
    "40 tasks, 2 treatments, 4 runs": World(),
    "the same, no cause": World(effect=0.0),
    "20 tasks, 2 treatments, 4 runs": World(tasks=20),
    "12 tasks, 2 treatments, 4 runs": World(tasks=12),
    "60 tasks, 6 treatments, once": World(tasks=60, treatments=6, repeats=1),
    "the same, no cause ": World(tasks=60, treatments=6, repeats=1, effect=0.0),
    "100 tasks, 2 treatments, once": World(tasks=100, repeats=1),
    "60 tasks, 6 treatments, once, crossed": World(tasks=60, treatments=6, repeats=1, crossed=0.5),
    "40 tasks, 2 treatments, 4 runs, crossed": World(crossed=0.5),
}


def naive(rows: planted.Rows) -> list[str]:
    """The signals that differ between solved and failed attempts by Mann and Whitney's test over all of them."""
    from scipy.stats import mannwhitneyu  # noqa: PLC0415

    solved = {v["session_id"]: v["value"] == "1.0" for v in rows["values"]}
    sides: dict[str, tuple[list[float], list[float]]] = {}
    for row in rows["signals"]:
        sides.setdefault(row["signal"], ([], []))[not solved[row["session_id"]]].append(float(row["value"]))
    q = benjamini_hochberg([float(mannwhitneyu(a, b).pvalue) for a, b in sides.values()])
    return [name for name, value in zip(sides, q, strict=True) if value <= 0.05]


def main(seeds: int) -> None:
    head = ("runs", "within", "mixed tasks", "cause named", "decoys among named", "type-I error", "naive: decoys")
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for name, world in WORLDS.items():
        made: list[Drivers] = []
        wrong_naively = []
        for seed in range(seeds):
            rows = planted.rows(seed, _fresh(world))
            made.append(drivers(RULE, rows, fit=False))
            flagged = naive(rows)
            wrong_naively.append(len(set(flagged) - _causes(world)) / max(1, len(flagged)))
        print(_line(name.strip(), world, made, wrong_naively), flush=True)


def _fresh(world: World) -> World:
    fields = {name: getattr(world, name) for name in World.__dataclass_fields__ if name != "rows"}
    return World(**fields)


def _causes(world: World) -> frozenset[str]:
    return PLANTED if world.effect else frozenset()


def _line(name: str, world: World, made: Sequence[Drivers], wrong_naively: Sequence[float]) -> str:
    causes = _causes(world)
    hit = [bool({c.signal for c in m.named} & causes) for m in made]
    false = [len({c.signal for c in m.named} - causes) / max(1, len(m.named)) for m in made]
    p = [c.p <= 0.05 for m in made for c in m.contrasts if c.p is not None and c.signal not in causes]
    cells = (
        name,
        made[0].within,
        f"{_mean([m.mixed[m.within] for m in made]):.0f}",
        f"{_mean(hit):.2f}" if causes else "-",
        f"{_mean(false):.3f}",
        f"{_mean(p):.3f}",
        f"{_mean(wrong_naively):.2f}",
    )
    return f"| {' | '.join(cells)} |"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
