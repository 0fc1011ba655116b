"""Which attempts are one candidate, and what else changes with it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from agentsignals.analysis.compare.tried import COLUMNS, Tried
from agentsignals.errors import UsageError

UNKNOWN = "not recorded"
_SHORT = {"model": "model_id", "agent": "agent_type", "run": "run_id"}
_FIRST = ("model_id", "agent_type", "condition", "attempt1_tool_cap", "retry_tool_cap")
"""Where several columns tell the same candidates apart, the earlier one names them."""
_REPETITION = frozenset(("epoch", "epochs", "seed", "sample", "sample_index", "run_id"))
"""They number repetitions of one treatment."""
_NOT_GIVEN = _REPETITION | {"dataset"}
"""No treatment of the agent: the data set is the task's."""
_PLAIN = frozenset(("model_id", "agent_type", "condition", "run_id"))
"""Their values need no name before them."""
_MANY = 10
"""From so many values on, a knob with another one for most trials names trials."""
_LONGEST_VALUE, _LONGEST_NAME = 80, 160

Name = str
Candidates = dict[Name, list[Tried]]


def is_version(column: str) -> bool:
    """Whether a column tells what ran or judged the attempt, rather than what it was given."""
    return column in ("format", "inspect_ai") or column.endswith("version")


def differing(tried: Sequence[Tried]) -> list[str]:
    """The columns and knobs that are not the same for all attempts, those that name candidates best first.

    Without the effective cap: a retry of the same trial has another one.
    """
    names = sorted({name for attempt in tried for name in attempt.treatment} - {"effective_tool_cap"})
    differing_columns = [name for name in names if len({attempt.treatment.get(name) for attempt in tried}) > 1]
    return sorted(differing_columns, key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name))


def chosen(tried: Sequence[Tried], asked: Sequence[str]) -> list[str]:
    """The columns that make candidates: those asked for, else each treatment that tells more attempts apart.

    UsageError names the columns there are, where one is asked for that no attempt has.
    """
    if asked:
        wanted = list(dict.fromkeys(_SHORT.get(name, name) for name in asked))
        recorded = {name for attempt in tried for name in attempt.treatment}
        missing = [name for name in wanted if name not in recorded]
        if missing:
            raise UsageError(
                f"No attempt has a {missing[0]!r}.", f"There is: {', '.join(available(tried))}." if recorded else ""
            )
        return wanted
    taken: list[str] = []
    parts = 1
    for name in _treatment_columns(tried):
        more = len({_key(attempt, [*taken, name]) for attempt in tried})
        if more > parts:
            taken, parts = [*taken, name], more
    everywhere = (name for name in COLUMNS if all(name in attempt.treatment for attempt in tried))
    return (
        taken or ["model_id"]
        if any("model_id" in a.treatment for a in tried)
        else taken or [next(everywhere, "model_id")]
    )


def _treatment_columns(tried: Sequence[Tried]) -> list[str]:
    """The differing columns that are treatments, as far as can be told: not those that number trials, and, where other
    treatments differ between attempts at one task, not the knobs that only differ between tasks (a task's own timeout).
    """
    columns = [c for c in differing(tried) if c not in _NOT_GIVEN and not is_version(c)]
    columns = [c for c in columns if c in _PLAIN or not _numbers_trials(tried, c)]
    crossed = {c for c in columns if _differs_within_tasks(tried, c)}
    return [c for c in columns if c in _PLAIN or c in crossed or not crossed]


def _numbers_trials(tried: Sequence[Tried], column: str) -> bool:
    values = values_of(tried, column) - {None}
    return len(values) >= _MANY and 2 * len(values) > len(
        {attempt.trial for attempt in tried if column in attempt.treatment}
    )


def _differs_within_tasks(tried: Sequence[Tried], column: str) -> bool:
    seen: dict[tuple[str | None, str], str | None] = {}
    for attempt in tried:
        value = attempt.treatment.get(column)
        if attempt.task is not None and seen.setdefault((attempt.dataset, attempt.task), value) != value:
            return True
    return False


def candidates(tried: Sequence[Tried], by: Sequence[str]) -> Candidates:
    """The attempts of each candidate, most attempts first."""
    groups: dict[tuple[str | None, ...], list[Tried]] = {}
    for attempt in tried:
        groups.setdefault(_key(attempt, by), []).append(attempt)
    ranked = sorted(groups.items(), key=lambda pair: (-len(pair[1]), [value or "" for value in pair[0]]))
    names = [_candidate_name(key, by) for key, _ in ranked]
    counts = Counter(names)
    unique = (n if counts[n] == 1 else f"{n} #{_digest(key)}" for n, (key, _) in zip(names, ranked, strict=True))
    return {name: attempts for name, (_, attempts) in zip(unique, ranked, strict=True)}


def unrecorded(attempt: Tried, by: Sequence[str]) -> bool:
    """Whether nobody recorded who was tried: nothing of `by`, or not the model where models are compared."""
    missing = [name for name in by if name not in attempt.treatment]
    return len(missing) == len(by) or "model_id" in missing


def named(name: str, among: Sequence[Name]) -> Name:
    """The candidate of that name, or the one whose name alone contains it. UsageError lists them."""
    matches = [candidate for candidate in among if candidate == name] or [
        candidate for candidate in among if name in candidate
    ]
    if len(matches) == 1:
        return matches[0]
    problem = "Several candidates are" if matches else "No candidate is"
    raise UsageError(f"{problem} called {name!r}.", f"The candidates: {', '.join((matches or list(among))[:10])}.")


def values_of(tried: Sequence[Tried], column: str) -> set[str | None]:
    """The values a column has among these attempts."""
    return {attempt.treatment.get(column) for attempt in tried}


def confounded_columns(tried: Sequence[Tried], columns: Sequence[str]) -> list[list[str]]:
    """Groups of columns that always change together: each tells the same attempts apart."""
    alike: dict[tuple[int, ...], list[str]] = {}
    for column in columns:
        seen: dict[str | None, int] = {}
        parts = tuple(seen.setdefault(attempt.treatment.get(column), len(seen)) for attempt in tried)
        if len(seen) > 1 and column not in _REPETITION:
            alike.setdefault(parts, []).append(column)
    return [group for group in alike.values() if len(group) > 1]


def also_differ(
    attempts: Sequence[Tried], other: Sequence[Tried], by: Sequence[str], columns: Sequence[str]
) -> list[str]:
    """What two candidates never share although it does not tell candidates apart: a difference may be its doing."""
    if not attempts or not other:
        return []
    apart = [c for c in columns if c not in by and c not in _REPETITION]
    return [c for c in apart if not values_of(attempts, c) & values_of(other, c)]


def pooled(attempts: Sequence[Tried], by: Sequence[str], columns: Sequence[str]) -> dict[str, int]:
    """What differs between attempts of one candidate, with the number of values."""
    counted = {c: len(values_of(attempts, c)) for c in columns if c not in by and c not in _REPETITION}
    return {c: n for c, n in counted.items() if n > 1}


def available(tried: Sequence[Tried]) -> list[str]:
    """The columns that candidates may be told apart by."""
    recorded = {name for attempt in tried for name in attempt.treatment}
    return [*(c for c in COLUMNS if c in recorded), *sorted(recorded - set(COLUMNS))]


def _key(attempt: Tried, by: Sequence[str]) -> tuple[str | None, ...]:
    return tuple(attempt.treatment.get(name) for name in by)


def _candidate_name(key: tuple[str | None, ...], by: Sequence[str]) -> Name:
    """Of a single column the value; of several what is recorded, with the column's name where the value needs it."""
    filled = [(column, _cut(value, _LONGEST_VALUE)) for column, value in zip(by, key, strict=True) if value is not None]
    parts = [value if len(by) == 1 or column in _PLAIN else f"{column}={value}" for column, value in filled]
    return _cut(" · ".join(parts) or UNKNOWN, _LONGEST_NAME)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _digest(key: tuple[str | None, ...]) -> str:
    return hashlib.sha256(repr(key).encode("utf-8", "surrogatepass")).hexdigest()[:6]
