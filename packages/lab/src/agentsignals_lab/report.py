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
from agentsignals.questions.question import Chart, Column, Finding, Outcome, Table
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

_CONDITION = (
    Column("condition", "condition", "code"),
    Column("episodes", "episodes", "count"),
    Column("tasks", "tasks", "count"),
    Column("attempts", "attempts", "number"),
    Column("visible", "visible pass", "share"),
    Column("hidden", "hidden pass", "share"),
    Column("full", "full pass", "share"),
    Column("interval", "95% interval"),
    Column("recovered", "recovered", "figure"),
    Column("hardcoded", "hardcoded", "share"),
    Column("valid", "valid answers", "share"),
    Column("unknown", "not run", "count"),
)


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
    table = Table(
        id="lab.conditions", title="Conditions", columns=_CONDITION, rows=rows, n=len(episodes), of="episodes",
        note="Passes are of the last attempt. Recovered: of the episodes whose first attempt failed its visible tests.",
    )  # fmt: skip
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


def _condition_row(name: str, episodes: Sequence[EpisodeRow], full: Rate, valid: float | None) -> list[Any]:
    failed = [row for row in episodes if row.failed_first]
    recovered = f"{sum(row.recovered for row in failed)} of {len(failed)}"
    return [
        name,
        len(episodes),
        len({row.task for row in episodes}),
        fmean(row.attempts for row in episodes),
        rate(episodes, OUTCOMES["visible pass"]).value,
        rate(episodes, lambda row: row.hidden_pass).value,
        full.value,
        full.interval_text,
        recovered,
        rate(episodes, OUTCOMES["hardcoded"]).value,
        valid,
        sum(row.full_pass is None for row in episodes),
    ]


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

_ATTEMPT = (
    Column("condition", "condition", "code"),
    Column("attempt", "attempt", "count"),
    Column("n", "answers", "count"),
    Column("visible", "visible pass", "share"),
    Column("valid", "valid", "share"),
    Column("hardcoded", "hardcoded", "share"),
    Column("tokens", "tokens", "number"),
    Column("frustration", "frustration per 100 words", "number"),
    Column("desperation", "desperation per 100 words", "number"),
    Column("give_up", "giving up per 100 words", "number"),
    Column("markers", "published marker score", "number"),
)


def _by_attempt(attempts: Sequence[AttemptRow]) -> Part:
    grouped: dict[tuple[str, int], list[AttemptRow]] = {}
    for row in attempts:
        grouped.setdefault((row.condition, row.attempt), []).append(row)
    order = sorted(grouped, key=lambda key: (key[0] != BASELINE.name, key[0], key[1]))
    rows = [_attempt_row(*key, grouped[key]) for key in order]
    errors = Counter((row.condition, row.error_class) for row in attempts)
    first = Table(
        id="lab.attempts", title="Attempts", columns=_ATTEMPT, rows=rows, n=len(attempts), of="answers",
        note="Later attempts are of the episodes that still failed: their rates are not those of all. Words are counted"
        " in prose, without what the model had been told.",
    )  # fmt: skip
    second = Table(
        id="lab.errors",
        title="What went wrong",
        columns=(
            Column("condition", "condition", "code"),
            Column("error", "error"),
            Column("n", "answers", "count"),
        ),
        rows=[[c, "passed" if e == "none" else e.replace("_", " "), n] for (c, e), n in sorted(errors.items())],
        n=len(attempts),
        of="answers",
        note="Infrastructure is a fault of this machine, never of the model.",
    )
    return Part("attempts", "Attempts", "What comes with each attempt?", Outcome([], [first, second]))


def _attempt_row(condition: str, attempt: int, attempts: Sequence[AttemptRow]) -> list[Any]:
    return [
        condition,
        attempt,
        len(attempts),
        _mean([row.visible_pass for row in attempts]),
        fmean(row.valid_python for row in attempts),
        fmean(row.hardcoded for row in attempts),
        _mean([row.tokens for row in attempts]),
        _mean([row.frustration_per_100_words for row in attempts]),
        _mean([row.desperation_per_100_words for row in attempts]),
        _mean([row.give_up_per_100_words for row in attempts]),
        fmean(row.marker_score for row in attempts),
    ]


def _mean(values: Sequence[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return fmean(defined) if defined else None


# -- activations -------------------------------------------------------------------------------------------------------


def _projections(rows: Sequence[ProjectionRow]) -> Part:
    grouped: dict[tuple[str, int, str, int, str], list[ProjectionRow]] = {}
    for row in rows:
        if row.coordinate is not None:
            grouped.setdefault((row.direction, row.layer, row.span, row.attempt, row.condition), []).append(row)
    table_rows = [
        [*key, len(group), _mean([row.cosine for row in group]), _mean([row.coordinate for row in group])]
        for key, group in sorted(grouped.items())
    ]
    columns = (
        Column("direction", "direction", "code"),
        Column("layer", "layer", "count"),
        Column("span", "tokens of", "code"),
        Column("attempt", "before attempt", "count"),
        Column("condition", "condition", "code"),
        Column("n", "prompts", "count"),
        Column("cosine", "mean cosine", "number"),
        Column("coordinate", "mean coordinate", "number"),
    )
    table = Table(
        id="lab.projections", title="Projections", columns=columns, rows=table_rows, n=len(rows), of="projections",
        note="Of the unsteered model, in median norms of the layer. Levels of two models do not compare.",
    )  # fmt: skip
    limits = ["Later prompts are longer and of episodes that failed: compare attempts within a task."]
    return Part(
        "projections", "Projections", "Where do prompts lie along the directions?", Outcome([], [table], [], limits)
    )


def _checks(rows: Sequence[ManipulationRow]) -> Part:
    columns = (
        Column("condition", "condition", "code"),
        Column("n", "prompts", "count"),
        Column("verdict", "the check says"),
        Column("kl", "KL, nats", "figure"),
        Column("noise", "KL of rounding", "figure"),
        Column("shift", "projection shift, median norms", "figure"),
        Column("anti", "moved the other way", "share"),
    )
    table_rows = [
        [r.condition, r.n, r.verdict or None, _short(r.kl), _short(r.noise), _short(r.shift), r.anti_steered]
        for r in rows
    ]
    table = Table(
        id="lab.manipulation",
        title="Manipulation checks",
        columns=columns,
        rows=table_rows,
        n=len(rows),
        of="conditions",
    )
    says = {
        "nothing": "moved the next token no more than rounding does: what follows is no test of it.",
        "not testable": "could not be checked: its prompts hold no token where it acts. Nothing is known of it.",
    }
    limits = [f"{row.condition!r} {says[row.verdict]}" for row in rows if row.verdict in says]
    question = "Did steering move the model at all?"
    return Part("manipulation", "Manipulation checks", question, Outcome([], [table], [], limits))


def _short(value: float | None) -> str | None:
    return None if value is None else f"{value:.3g}"
