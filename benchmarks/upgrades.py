"""How often `upgrades` says a change where nothing changed, and how large a planted one has to be.

    python -m benchmarks.upgrades STORE [HISTORIES]

A history is drawn from a store's real sessions: each of its days takes whole days of its projects, so sessions of a day
stay alike and their measures real, but no version made any difference. `shuffled` counts histories with a change that
is said. `planted` makes one measure worse from the middle version on, and counts the histories in which that is said,
with that version named, with one of the two beside it, and those in which another measure is. `shifted` leaves the
store's own sessions in their order, drifts of the work and all, and moves versions and models to other sessions.
"""

from __future__ import annotations

import random
import sys
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from functools import partial
from math import log
from statistics import fmean

from msgspec.structs import replace

from agentsignals.questions.findings import Reader
from agentsignals.questions.question import Question
from agentsignals.questions.upgrades import (
    LARGE,
    METRICS,
    QUERIES,
    SLICED,
    Change,
    MeasuredSession,
    compared,
    measured,
)
from agentsignals.stats.intervals import SEED, wilson
from agentsignals.store import Store

SIZES = (60, 120, 250, 500)
A_VERSION = 20
"""Sessions of a version, in the mean."""
PLANTED: dict[str, tuple[float, ...]] = {
    "failed-calls": (0.02, 0.05, 0.1), "cache-misses": (0.02, 0.05, 0.1), "pushback": (0.1, 0.2),
    "cost": (1.5, 2.0), "first-edit": (1.5, 2.0), "loops": (0.3,), "rewinds": (0.2,),
}  # fmt: skip
"""Points added to a share, or a factor; of loops and rewinds the share of sessions that get some."""
Days = list[list[list[MeasuredSession]]]
"""Sessions of a day, of the days of a project, of the projects."""


def days_of(sessions: list[MeasuredSession]) -> Days:
    found: defaultdict[object, defaultdict[object, list[MeasuredSession]]] = defaultdict(lambda: defaultdict(list))
    for session in sessions:
        if session.place is not None and session.agent == "claude-code":
            found[session.place][session.started.date()].append(session)
    return [list(of.values()) for of in found.values() if len(of) >= 3]


def drawn(chance: random.Random, projects: Days, n: int) -> list[MeasuredSession]:
    """A history of so many sessions: one to three projects a day, a version for about twenty sessions, one model."""
    weights = [sum(map(len, of)) for of in projects]
    few = [projects[at] for at in {chance.choices(range(len(projects)), weights)[0] for _ in range(4)}]
    made: list[MeasuredSession] = []
    at, version = datetime(2026, 1, 1), 0
    while len(made) < n:
        if made and chance.random() < 1 / (A_VERSION / 2.5):
            version += 1
        for of in chance.sample(few, min(len(few), chance.randint(1, 3))):
            for session in chance.choice(of):
                started = at + timedelta(minutes=len(made) % 600)
                made.append(
                    replace(session, id=f"s{len(made)}", version=f"2.1.{version}", model="one", started=started)
                )
        at += timedelta(days=1)
    return made[:n]


def planted(
    chance: random.Random, history: list[MeasuredSession], name: str, size: float
) -> tuple[list[MeasuredSession], str]:
    """The history with one measure worse from the middle version on, and that version."""
    versions = list(dict.fromkeys(s.version or "" for s in history))
    first = versions[len(versions) // 2]
    later = set(versions[versions.index(first) :])
    made = []
    for each in history:
        session, value = each, each.values.get(name)
        if value is not None and session.version in later:
            if name in ("loops", "rewinds"):
                new = value._replace(value=min(1.0, value.value + 0.1)) if chance.random() < size else value
            elif name in ("cost", "first-edit"):
                new = value._replace(value=value.value + log(size))
            else:  # each call, token or answer fails with that chance
                more = sum(chance.random() < size for _ in range(min(200, round(value.n)))) / max(
                    1, min(200, round(value.n))
                )
                new = value._replace(value=value.value + (1 - value.value) * more)
            session = replace(each, measure=partial(dict, {**session.values, name: new}))
        made.append(session)
    return made, first


def said(history: list[MeasuredSession]) -> list[Change]:
    return [change for change in compared(history) if change.is_said]


def share(k: int, n: int) -> str:
    low, high = wilson(k, n) or (0.0, 1.0)
    return f"{k / n:.1%} [{low:.1%}, {high:.1%}]"


def shuffled(projects: Days, histories: int) -> None:
    print(f"Histories in which nothing changed that have a change that is said, of {histories} each:")
    for n in SIZES:
        chance = random.Random(f"{SEED} {n}")  # noqa: S311  (draws, no secret)
        found = [compared(drawn(chance, projects, n)) for _ in range(histories)]
        alarms = sum(any(change.is_said for change in of) for of in found)
        tested = fmean(sum(change.p is not None for change in of) for of in found)
        print(f"  {n} sessions, {tested:.0f} comparisons: {share(alarms, histories)}", flush=True)


def shifted(sessions: list[MeasuredSession], histories: int) -> None:
    agents: defaultdict[str, list[MeasuredSession]] = defaultdict(list)
    for session in sorted(sessions, key=lambda s: (s.started, s.id)):
        agents[session.agent].append(session)
    for axis in ("version", "model"):
        chance = random.Random(SEED)  # noqa: S311  (draws, no secret)
        alarms, by_metric = 0, Counter[str]()
        for _ in range(histories):
            moved: list[MeasuredSession] = []
            for of in agents.values():
                by = chance.randrange(len(of))
                names = [s.version if axis == "version" else s.model for s in (*of[by:], *of[:by])]
                order = {name: f"1.{n}" for n, name in enumerate(dict.fromkeys(names))}
                moved += [
                    replace(s, version=order[name]) if axis == "version" else replace(s, model=name)
                    for s, name in zip(of, names, strict=True)
                    if name
                ]
            found = [change for change in said(moved) if change.axis == axis]
            alarms += bool(found)
            by_metric.update({change.metric for change in found})
        print(f"The store's sessions in their order, each {axis} moved: {share(alarms, histories)} {dict(by_metric)}")


def power(projects: Days, histories: int) -> None:
    print(
        "| measure | worse by | " + " | ".join(f"{n} sessions" for n in SIZES) + " |\n|---|---|" + "---|" * len(SIZES)
    )
    named = beside = found = wrong = tried = 0
    for name, sizes in PLANTED.items():
        kind = next(metric for metric in METRICS if metric.name == name)
        for size in sizes:
            cells = []
            for n in SIZES:
                chance = random.Random(f"{SEED} {name} {size} {n}")  # noqa: S311  (draws, no secret)
                seen = 0
                for _ in range(histories):
                    history, first = planted(chance, drawn(chance, projects, n), name, size)
                    every = compared(history)
                    changes = [change for change in every if change.is_said]
                    here = [change for change in changes if change.metric == name]
                    seen += bool(here)
                    tried += 1
                    wrong += any(change.metric != name for change in changes)
                    order = sorted({change.name for change in every if change.metric == name}, key=_number)
                    for change in here[:1]:
                        found += 1
                        gap = abs(order.index(change.name) - _nearest(order, first))
                        named += gap == 0
                        beside += gap == 1
                cells.append(f"{seen / histories:.0%}")
            words = f"{size:g} times" if not kind.is_share else f"{size * 100:g} points"
            words = f"{size:.0%} of sessions" if name in ("loops", "rewinds") else words
            print(f"| {name} | {words} | {' | '.join(cells)} |", flush=True)
    words = (
        f"{named / max(1, found):.0%} name the version or the group with it, {beside / max(1, found):.0%} one beside it"
    )
    print(f"Of {found} said {words}.")
    print(f"Another measure is said: {share(wrong, tried)}")


def _number(version: str) -> int:
    return int(version.rpartition(".")[2])


def _nearest(order: list[str], version: str) -> int:
    """The place of the group of versions that holds one."""
    return max((n for n, name in enumerate(order) if _number(name) <= _number(version)), default=0)


def main(folder: str, histories: int) -> None:
    question = Question(name="upgrades", question="", queries=QUERIES, function=measured, sliced=SLICED, large=LARGE)
    sessions: list[MeasuredSession] = measured(Reader(Store(folder), [question]).inputs(question))
    projects = days_of(sessions)
    print(f"{sum(len(day) for of in projects for day in of)} sessions of {len(projects)} projects")
    shuffled(projects, histories)
    shifted(sessions, histories)
    power(projects, max(20, histories // 10))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200)
