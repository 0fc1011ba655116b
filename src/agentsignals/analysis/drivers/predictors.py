"""Which signals may go with an outcome, and which can't but by being it: told by what they declare to read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from agentsignals.analysis.compare.outcome import decoded, is_number
from agentsignals.analysis.study import Row
from agentsignals.catalog import Signal, by_path, catalogue
from agentsignals.errors import UsageError

_NUMERIC = ("int", "float", "bool")
GOLD = "the gold patch"


class Excluded(Struct, frozen=True):
    """A signal that foretells nothing here, and why."""

    signal: str
    because: str


class Predictor(Struct, frozen=True):
    """A signal's values by session."""

    signal: str
    values: dict[str, float]
    same_as: tuple[str, ...] = ()
    """Signals with the same value at every attempt: they are asked once."""


def eligible(outcome: str, keep: Collection[str] = ()) -> tuple[list[str], list[Excluded]]:
    """Paths of the signals of attempts that may foretell `outcome`, and the others. `keep`: signals that are let in
    although they read the gold patch. UsageError of one there that reads the verdict, or is none of attempts."""
    aside = _kin(by_path(outcome))
    paths: list[str] = []
    excluded: list[Excluded] = []
    kept = {by_path(name).path for name in keep}
    for signal in sorted(catalogue().values(), key=lambda s: s.path):
        if signal.context == "product" or signal.level not in ("attempt", "session"):
            continue
        because = _because(signal, outcome, aside)
        if signal.path in kept and not because.startswith(f"reads {GOLD}"):
            kept.discard(signal.path)
            if because:
                raise UsageError(f"{signal.path} can't be kept: it {because}.", "Leave it out of --keep.")
        if because and signal.path not in kept:
            excluded.append(Excluded(signal.path, because))
        else:
            kept.discard(signal.path)
            paths.append(signal.path)
    if kept:
        raise UsageError(
            f"{', '.join(sorted(kept))}: no signal of attempts.", "`agentsignals inventory --context eval`"
        )
    return paths, excluded


def _because(signal: Signal, outcome: str, aside: Collection[str]) -> str:
    if signal.path == outcome:
        return "is the outcome"
    if read := hindsight_of(signal):
        return f"reads {read}"
    if signal.path in aside:
        return f"makes up {outcome}, or is made of it"
    if signal.path.startswith("treatment.") or signal.path == "loop.condition":
        return "is what the attempt was to work under"
    return "" if signal.type in _NUMERIC else "is no number and no yes or no"


def hindsight_of(signal: Signal) -> str:
    """What the signal, or one that it needs, reads of how the attempt was judged; empty: nothing. Such a signal can't
    foretell an outcome, nor be what brought it about."""
    if signal.hindsight:
        return signal.hindsight
    for need in (catalogue()[name] for name in signal.needs):
        if read := hindsight_of(need):
            return f"{read}, through {need.path}" if ", through" not in read else read
    return ""


def _kin(outcome: Signal) -> set[str]:
    """What the outcome is made of, and what is made of it."""
    signals = catalogue()

    def below(signal: Signal) -> Iterator[str]:
        for name in signal.needs:
            yield signals[name].path
            yield from below(signals[name])

    return {*below(outcome), *(s.path for s in signals.values() if outcome.path in set(below(s)))}


def query(paths: Sequence[str], sessions: str) -> str:
    """SQL for the values of signals. `sessions`: SQL whose rows are the ids of sessions."""
    wanted = ", ".join(f"'{path}'" for path in paths)
    return (
        "SELECT session_id, signal, value FROM signals"
        f" WHERE level = 'attempt' AND absent IS NULL AND signal IN ({wanted}) AND session_id IN ({sessions})"
    )


def predictors(
    paths: Sequence[str], rows: Sequence[Row], sessions: Collection[str]
) -> tuple[list[Predictor], list[Excluded]]:
    """The signals of `paths` that differ between these sessions, and those that have no value, or one only."""
    wanted = set(sessions)
    values: dict[str, dict[str, float]] = {path: {} for path in paths}
    for row in rows:
        value = decoded(row["value"])
        if row["session_id"] in wanted and row["signal"] in values and is_number(value):
            values[row["signal"]][row["session_id"]] = float(value)
    excluded: list[Excluded] = []
    alike: dict[tuple[tuple[str, float], ...], list[str]] = {}
    for path, by_session in values.items():
        if len(set(by_session.values())) > 1:
            alike.setdefault(tuple(sorted(by_session.items())), []).append(path)
        else:
            excluded.append(Excluded(path, "is the same at every attempt" if by_session else "has no value here"))
    kept = [Predictor(first, values[first], tuple(others)) for first, *others in alike.values()]
    return kept, excluded


def correlated(columns: Mapping[str, Mapping[str, float]], least: float) -> dict[str, dict[str, float]]:
    """Of each column (values by session, already less their stratum's mean) those whose correlation with it is `least`
    or more, either way, over the sessions that have both; strongest first."""
    names = list(columns)
    near: dict[str, dict[str, float]] = {name: {} for name in names}
    for at, first in enumerate(names):
        for second in names[at + 1 :]:
            rho = _correlation(columns[first], columns[second])
            if abs(rho) >= least:
                near[first][second] = near[second][first] = rho
    return {name: dict(sorted(others.items(), key=lambda pair: -abs(pair[1]))) for name, others in near.items()}


def _correlation(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    both = first.keys() & second.keys()
    a, b = [first[s] for s in both], [second[s] for s in both]
    if len(both) < _FEWEST:
        return 0.0
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    product = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True))
    scale = sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b)
    return product / scale**0.5 if scale > 0 else 0.0


_FEWEST = 30
"""Sessions with both values: of fewer a correlation of 0.7 is hardly told from one of 0.4."""
