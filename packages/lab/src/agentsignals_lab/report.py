"""Report of a retry loop, as findings, tables and charts: by condition, against the baseline, by attempt.

Answers that the machine could not run count nowhere; the tables say how many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from agentsignals.questions import charts
from agentsignals.questions.question import Chart, Finding, Outcome
from msgspec import Struct

from agentsignals_lab.comparing import (
    OUTCOMES,
    Rate,
    asked_of,
    by_chance,
    conditions_of,
    episodes_of,
    paired,
    paired_table,
    rate,
    short,
    table_of,
)
from agentsignals_lab.conditions import BASELINE, Condition, beside, over_steered
from agentsignals_lab.retry.rows import AttemptRow, EpisodeRow, ProjectionRow
from agentsignals_lab.run_setup import ManipulationRow
from agentsignals_lab.runs import Run
from agentsignals_lab.statistics import caveat

_FEW_TASKS = 60
"""Fewer tasks tell little: about 390 trials an arm show .50 against .60 (design/lab.md#power)."""


class Part(Struct, frozen=True):
    """A section of a report."""

    name: str
    title: str
    question: str
    outcome: Outcome


def parts(run: Run) -> list[Part]:
    """The sections of a retry loop's report; of random directions it tells what others are beside them. LabError when
    the run has no episode yet."""
    every, conditions = episodes_of(run), asked_of(run)
    controls = beside(conditions)
    episodes = [row for row in every if row.condition not in controls]
    of_all = run.table("attempts", AttemptRow).rows
    attempts = [row for row in of_all if row.condition not in controls]
    made = [_by_condition(run.folder, episodes, attempts), _against(every, of_all, conditions)]
    made.append(_by_attempt(attempts))
    projections = [row for row in run.table("projections", ProjectionRow).rows if row.condition not in controls]
    if projections:
        made.append(_projections(projections))
    if checks := run.table("manipulation", ManipulationRow).rows:
        made.append(_checks(checks))
    return made


def again(folder: Path) -> str:
    """The command that makes a run's figures again. A folder with odd characters is quoted by who types it."""
    return f"agentsignals lab report {folder}"


# -- by condition ------------------------------------------------------------------------------------------------------


def _by_condition(folder: Path, episodes: Sequence[EpisodeRow], attempts: Sequence[AttemptRow]) -> Part:
    grouped = conditions_of(episodes)
    valid = _valid(attempts)
    findings, rows, points = [], [], []
    for number, (name, rows_of_condition) in enumerate(grouped.items()):
        full = rate(rows_of_condition, OUTCOMES["full pass"])
        findings.append(
            Finding(
                id=f"lab.full_pass.{number}",
                title=f"Full pass, {name}",
                value=full.value,
                unit="share of episodes",
                n=full.n,
                of="episodes",
                command=again(folder),
                kind="share",
                interval=full.interval,
                headline=number == 0,
                note="" if full.n else "no answer could be run",
            )
        )
        rows.append(_condition_row(name, rows_of_condition, full, valid.get(name)))
        if full.value is not None:
            low, high = full.interval or (None, None)
            tip = f"{name}: {full.yes} of {full.n} pass{f', {full.interval_text}' if full.interval_text else ''}"
            points.append({"name": name, "value": full.value, "low": low, "high": high, "tip": tip})
    told = "Passes are of the last attempt. Recovered: of the episodes whose first attempt failed its visible tests."
    table = table_of("lab.conditions", "Conditions", rows, len(episodes), "episodes", told)
    limits = [
        f"{name!r} breaks the model: its answers are invalid far more often than the baseline's, and what it does to"
        " behaviour is not to be read from it."
        for name in _broken(valid)
    ]
    charted = [_dots("lab.full_pass", "Full pass by condition", points, len(episodes))] if len(points) > 1 else []
    return Part(
        "conditions", "Conditions", "How do episodes end under each condition?",
        Outcome(findings, [table], charted, limits + _limits(episodes)),
    )  # fmt: skip


def _valid(attempts: Sequence[AttemptRow]) -> dict[str, float | None]:
    """The share of valid answers, by condition."""
    names = dict.fromkeys(row.condition for row in attempts)
    return {name: _mean([row.valid_python for row in attempts if row.condition == name]) for name in names}


def _broken(valid: Mapping[str, float | None]) -> list[str]:
    """Return the conditions that broke the model."""
    plain = valid.get(BASELINE.name)
    return [
        name
        for name, share in valid.items()
        if name != BASELINE.name and share is not None and plain is not None and over_steered(1 - share, 1 - plain)
    ]


def _condition_row(name: str, episodes: Sequence[EpisodeRow], full: Rate, valid: float | None) -> dict[str, Any]:
    failed = [row for row in episodes if row.failed_first]
    return {
        "condition": name,
        "episodes": len(episodes),
        "tasks": len({row.task for row in episodes}),
        "attempts": fmean(row.attempts for row in episodes),
        "visible": rate(episodes, OUTCOMES["visible pass"]).value,
        "hidden": rate(episodes, lambda row: row.hidden_pass).value,
        "full": full.value,
        "interval": full.interval_text,
        "recovered": f"{sum(row.recovered for row in failed)} of {len(failed)}",
        "hardcoded": rate(episodes, OUTCOMES["hardcoded"]).value,
        "valid": valid,
        "unknown": sum(row.full_pass is None for row in episodes),
    }


def _limits(episodes: Sequence[EpisodeRow]) -> list[str]:
    tasks = len({row.task for row in episodes})
    limits = ["Passing visible tests can be cheating: read hidden passes and the hardcoding flag beside them."]
    if tasks < _FEW_TASKS:
        limits.append(f"{tasks} tasks: only large differences show. About 390 trials an arm tell .50 from .60.")
    return limits


def _dots(name: str, title: str, points: list[dict[str, Any]], n: int) -> Chart:
    says = "; ".join(str(point["tip"]) for point in points)
    return Chart(id=name, title=title, says=says, form=charts.dots(""), marks=points, n=n, of="episodes")


# -- against the baseline ----------------------------------------------------------------------------------------------


def _against(episodes: Sequence[EpisodeRow], attempts: Sequence[AttemptRow], conditions: Sequence[Condition]) -> Part:
    grouped = conditions_of(episodes)
    base = grouped.get(BASELINE.name, [])
    every = [
        comparison
        for outcome in OUTCOMES
        for name, rows_of_condition in grouped.items()
        if name != BASELINE.name and (comparison := paired(name, outcome, rows_of_condition, base)) is not None
    ]
    controls = beside(conditions)
    chance = by_chance(every, conditions, _broken(_valid(attempts)))
    comparisons = [comparison for comparison in every if comparison.name not in controls]
    unpaired = sum(comparison.unpaired for comparison in comparisons if comparison.outcome == "full pass")
    limits = [f"{unpaired} episodes have no partner and are not in the differences."] if unpaired else []
    if len(grouped) == 1:
        limits.append("There is one condition: nothing to hold it against.")
    most = max(Counter(one.place for one in conditions if one.name in controls).values(), default=0)
    if chance and (short := caveat(most, len(chance))) is not None:
        limits.append(short)
    title = "Against the baseline"
    tables = [paired_table("lab.against", title, comparisons, chance=chance)] if comparisons else []
    return Part("against", title, "What does a condition change, task by task?", Outcome([], tables, [], limits))


# -- by attempt --------------------------------------------------------------------------------------------------------


def _by_attempt(attempts: Sequence[AttemptRow]) -> Part:
    grouped: dict[tuple[str, int], list[AttemptRow]] = {}
    for row in attempts:
        grouped.setdefault((row.condition, row.attempt), []).append(row)
    order = sorted(grouped, key=lambda key: (key[0] != BASELINE.name, key[0], key[1]))
    rows = [
        {
            "condition": condition,
            "attempt": attempt,
            "n": len(of),
            "visible": _mean([row.visible_pass for row in of]),
            "valid": fmean(row.valid_python for row in of),
            "hardcoded": fmean(row.hardcoded for row in of),
            "tokens": _mean([row.tokens for row in of]),
            "frustration": _mean([row.frustration_per_100_words for row in of]),
            "desperation": _mean([row.desperation_per_100_words for row in of]),
            "give_up": _mean([row.give_up_per_100_words for row in of]),
            "markers": fmean(row.marker_score for row in of),
        }
        for condition, attempt in order
        if (of := grouped[condition, attempt])
    ]
    note = (
        "Later attempts are of the episodes that still failed: their rates are not those of all. Words are counted in"
        " prose, without what the model had been told."
    )
    first = table_of(
        "lab.attempts", "Attempts", rows, len(attempts), "answers", note, {"n": "answers", "valid": "valid"}
    )
    errors = [
        {"condition": condition, "error": "passed" if error == "none" else error.replace("_", " "), "n": n}
        for (condition, error), n in sorted(Counter((row.condition, row.error_class) for row in attempts).items())
    ]
    note = "Infrastructure is a fault of this machine, never of the model."
    second = table_of("lab.errors", "What went wrong", errors, len(attempts), "answers", note, {"n": "answers"})
    return Part("attempts", "Attempts", "What comes with each attempt?", Outcome([], [first, second]))


def _mean(values: Sequence[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return fmean(defined) if defined else None


# -- activations -------------------------------------------------------------------------------------------------------


def _projections(rows: Sequence[ProjectionRow]) -> Part:
    grouped: dict[tuple[str, int, str, int, str], list[ProjectionRow]] = {}
    for row in rows:
        if row.coordinate is not None:
            grouped.setdefault((row.direction, row.layer, row.span, row.attempt, row.condition), []).append(row)
    fields = ("direction", "layer", "span", "attempt", "condition")
    told = [
        dict(zip(fields, key, strict=True))
        | {"n": len(of), "cosine": _mean([r.cosine for r in of]), "coordinate": _mean([r.coordinate for r in of])}
        for key, of in sorted(grouped.items())
    ]
    note = "Of the unsteered model, in median norms of the layer. Levels of two models do not compare."
    table = table_of(
        "lab.projections",
        "Projections",
        told,
        len(rows),
        "projections",
        note,
        {"n": "prompts", "attempt": "before attempt"},
    )
    limits = ["Later prompts are longer and of episodes that failed: compare attempts within a task."]
    return Part(
        "projections", "Projections", "Where do prompts lie along the directions?", Outcome([], [table], [], limits)
    )


def _checks(rows: Sequence[ManipulationRow]) -> Part:
    told = [
        {
            "condition": row.condition, "n": row.n, "verdict": row.verdict or None, "kl": short(row.kl),
            "noise": short(row.noise), "shift": short(row.shift), "anti": row.anti_steered,
        }
        for row in rows
    ]  # fmt: skip
    table = table_of("lab.manipulation", "Manipulation checks", told, len(rows), "conditions", labels={"n": "prompts"})
    says = {
        "nothing": "moved the next token no more than rounding does: what follows is no test of it.",
        "not testable": "could not be checked: its prompts hold no token where it acts. Nothing is known of it.",
    }
    limits = [f"{row.condition!r} {says[row.verdict]}" for row in rows if row.verdict in says]
    question = "Did steering move the model at all?"
    return Part("manipulation", "Manipulation checks", question, Outcome([], [table], [], limits))
