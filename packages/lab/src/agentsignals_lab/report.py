"""Reports of runs: a retry loop's findings, any experiment's summaries and tables; and logs of Inspect.

Episodes are held against each other over the tasks that both sides have. Rates of one sample a task have Wilson's
interval; of several samples, which are alike, Student's over tasks. Answers that the machine could not run count
nowhere; the tables say how many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
from agentsignals import private_files
from agentsignals.errors import LabError
from agentsignals.questions import charts
from agentsignals.questions.question import Chart, Column, Finding, Form, Kind, Outcome, Table
from agentsignals.stats.intervals import Interval, rate_interval
from agentsignals.stats.paired import benjamini_hochberg, holm, mcnemar
from agentsignals.ui.document import Section
from msgspec import Struct

from agentsignals_lab import statistics
from agentsignals_lab.conditions import BASELINE, Condition, beside, over_steered
from agentsignals_lab.retry_loop import AttemptRow, EpisodeRow, ManipulationRow, ProjectionRow
from agentsignals_lab.retry_runs import MARK, name_of
from agentsignals_lab.runs import Run, read_any
from agentsignals_lab.statistics import caveat

RETRY_LOOP = "retry_loop"

Conditions = dict[str, list[EpisodeRow]]
Of = Callable[[EpisodeRow], bool | None]

OUTCOMES: dict[str, Of] = {
    "full pass": lambda row: row.full_pass,
    "visible pass": lambda row: row.visible_pass,
    "hardcoded": lambda row: row.hardcoded,
}
"""Outcomes by which conditions are compared."""


def conditions_of(episodes: Sequence[EpisodeRow]) -> Conditions:
    """Episodes by condition, the baseline first, else as they came."""
    by_condition: dict[str, list[EpisodeRow]] = {}
    for row in episodes:
        by_condition.setdefault(row.condition, []).append(row)
    return dict(sorted(by_condition.items(), key=lambda pair: pair[0] != BASELINE.name))


class Rate(Struct, frozen=True):
    """A share of yes among answers that are known."""

    yes: int
    n: int
    tasks: int
    interval: Interval | None

    @property
    def value(self) -> float | None:
        return self.yes / self.n if self.n else None

    @property
    def interval_text(self) -> str | None:
        """Its interval in words."""
        return None if self.interval is None else f"{self.interval[0]:.1%} to {self.interval[1]:.1%}"


def rate(rows: Sequence[EpisodeRow], of: Of) -> Rate:
    """The share with that outcome, and its interval: over tasks where one has several samples."""
    by_task: dict[str, list[bool]] = {}
    for row in rows:
        if (value := of(row)) is not None:
            by_task.setdefault(row.task, []).append(value)
    parts = [(sum(values), len(values)) for values in by_task.values()]
    yes, n = sum(k for k, _ in parts), sum(m for _, m in parts)
    return Rate(yes, n, len(parts), rate_interval(parts))


_KINDS: dict[Kind, tuple[str, ...]] = {
    "code": ("condition", "direction", "span"),
    "count": ("episodes", "tasks", "attempt", "n", "unknown", "pairs", "layer"),
    "number": ("attempts", "tokens", "frustration", "desperation", "give_up", "markers", "cosine", "coordinate"),
    "share": ("visible", "hidden", "full", "hardcoded", "valid", "anti"),
    "figure": (
        "recovered", "difference", "p", "q", "mcnemar", "random", "random_adjusted", "kl", "noise", "shift",
    ),
}  # fmt: skip
_KIND_OF = {key: kind for kind, keys in _KINDS.items() for key in keys}
_LABELS = {
    "visible": "visible pass", "hidden": "hidden pass", "full": "full pass", "interval": "95% interval",
    "valid": "valid answers", "unknown": "not run", "span": "tokens of", "cosine": "mean cosine",
    "coordinate": "mean coordinate", "frustration": "frustration per 100 words",
    "desperation": "desperation per 100 words", "give_up": "giving up per 100 words",
    "markers": "published marker score", "verdict": "the check says", "kl": "KL, nats", "noise": "KL of rounding",
    "shift": "projection shift, median norms", "anti": "moved the other way", "q": "p over conditions",
    "mcnemar": "McNemar p", "changed": "gained and lost", "random": "p random",
    "random_adjusted": "p random adjusted",
}  # fmt: skip


def table_of(  # noqa: PLR0913  (what a table is of)
    name: str,
    title: str,
    rows: Sequence[Mapping[str, Any]],
    n: int,
    of: str,
    note: str = "",
    labels: Mapping[str, str] | None = None,
) -> Table:
    """A table of a report: its columns are the keys of its rows, which are told by `labels` or the usual words."""
    told = {**_LABELS, **(labels or {})}
    columns = tuple(Column(key, told.get(key, key), _KIND_OF.get(key, "text")) for key in (rows[0] if rows else ()))
    return Table(
        id=name, title=title, columns=columns, rows=[list(row.values()) for row in rows], n=n, of=of, note=note
    )


_CHANCE_NOTE = (
    "p random: of the random directions at the same place and dose, the share that changes as much, either way;"
    " adjusted: Holm's, over all that have one."
)
_PAIRED_NOTE = (
    "Intervals are over tasks, p flips whole tasks; the p over conditions is Benjamini and Hochberg's, an outcome at"
    " a time. McNemar's takes pairs as independent: given only where each task has one."
)


class Paired(Struct, frozen=True, kw_only=True):
    """Two groups of episodes over the tasks and samples that both have."""

    name: str
    outcome: str
    difference: statistics.Difference
    mcnemar: float | None
    """Exact two-sided p, which takes pairs as independent; None where a task has several samples."""
    unpaired: int
    """Episodes without a partner, or whose partner or self was not run."""
    gained: int
    lost: int


def paired(name: str, outcome: str, treated: Sequence[EpisodeRow], control: Sequence[EpisodeRow]) -> Paired | None:
    """Treated less control; None when no task and sample is in both."""
    of = OUTCOMES[outcome]
    ours = {(row.task, row.sample): value for row in treated if (value := of(row)) is not None}
    theirs = {(row.task, row.sample): value for row in control if (value := of(row)) is not None}
    keys = [key for key in ours if key in theirs]
    if not keys:
        return None
    left, right, tasks = [ours[k] for k in keys], [theirs[k] for k in keys], [task for task, _ in keys]
    gained, lost = sum(ours[k] and not theirs[k] for k in keys), sum(theirs[k] and not ours[k] for k in keys)
    return Paired(
        name=name,
        outcome=outcome,
        difference=statistics.paired_difference(left, right, tasks),
        mcnemar=mcnemar(gained, lost) if len(set(tasks)) == len(tasks) else None,
        unpaired=len(treated) + len(control) - 2 * len(keys),
        gained=gained,
        lost=lost,
    )


Chance = dict[tuple[str, str], tuple[float, float]]
"""p random and the same adjusted, by condition and outcome."""


def by_chance(comparisons: Sequence[Paired], conditions: Sequence[Condition], broken: Collection[str]) -> Chance:
    """Each condition that steers, against random directions at its place and dose. Conditions that broke the model, on
    either side, do not count."""
    named = {condition.name: condition for condition in conditions if condition.name not in broken}
    moved = {(c.name, c.outcome): abs(c.difference.value) for c in comparisons if c.name in named}
    shares: dict[tuple[str, str], float] = {}
    for (name, outcome), value in moved.items():
        of = named[name]
        like = [
            other
            for (beside, same), other in moved.items()
            if same == outcome and named[beside].is_control and named[beside].place == of.place
        ]
        if of.steers and not of.is_control and like:
            shares[name, outcome] = statistics.p_random(value, like)
    return dict(zip(shares, zip(shares.values(), holm(list(shares.values())), strict=True), strict=True))


def paired_table(name: str, title: str, comparisons: Sequence[Paired], chance: Chance | None = None) -> Table:
    """The table of paired differences, with p values corrected over conditions for each outcome."""
    adjusted: dict[int, float] = {}
    for outcome in OUTCOMES:
        numbers = [n for n, one in enumerate(comparisons) if one.outcome == outcome and one.difference.tasks > 1]
        q_values = benjamini_hochberg([comparisons[n].difference.p for n in numbers]) if numbers else []
        adjusted |= dict(zip(numbers, q_values, strict=True))
    rows = []
    for number, one in enumerate(comparisons):
        d, random = one.difference, (chance or {}).get((one.name, one.outcome), (None, None))
        # Pairs that all changed alike vary by nothing: that is no certainty.
        interval = None if isnan(d.low) or d.low == d.high else f"{100 * d.low:+.1f} to {100 * d.high:+.1f} points"
        row = {
            "condition": one.name, "outcome": one.outcome, "pairs": d.n, "tasks": d.tasks,
            "difference": f"{100 * d.value:+.1f} points", "interval": interval,
            "p": None if d.tasks < 2 else short(d.p), "q": short(adjusted.get(number)), "mcnemar": short(one.mcnemar),
            "changed": f"+{one.gained}, -{one.lost}",
        }  # fmt: skip
        rows.append(row | ({"random": short(random[0]), "random_adjusted": short(random[1])} if chance else {}))
    n = max((one.difference.n for one in comparisons), default=0)
    return table_of(name, title, rows, n, "pairs", f"{_PAIRED_NOTE} {_CHANCE_NOTE if chance else ''}".strip())


def short(value: float | None) -> str | None:
    """A figure with three digits."""
    return None if value is None else f"{value:.3g}"


def episodes_of(run: Run) -> list[EpisodeRow]:
    """A retry loop's finished episodes. LabError for another experiment's run, or when there are none."""
    if run.config.experiment != RETRY_LOOP:
        raise LabError(
            f"{run.folder} is a run of {run.config.experiment}, not of a retry loop.",
            "Name a run that `lab agent` wrote.",
        )
    rows = run.table("episodes", EpisodeRow).rows
    if not rows:
        raise LabError(f"{run.folder} has no finished episode.", "Run the same command again: it continues.")
    return rows


def asked_of(run: Run) -> list[Condition]:
    """The conditions that a retry loop was begun with."""
    return msgspec.convert(run.config.settings.get("conditions", []), list[Condition])


_FEW_TASKS = 60
"""Fewer tasks tell little: about 390 trials an arm show .50 against .60 (design/lab.md#power)."""


def part(name: str, title: str, question: str, told: Outcome) -> Section:
    """A section of a report."""
    return Section(
        study=name,
        title=title,
        question=question,
        context="eval",
        findings=told.findings,
        tables=told.tables,
        charts=list(filter(None, told.charts)),
        limits=list(told.limits or ()),
    )


def parts(run: Run) -> list[Section]:
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


# -- by condition ------------------------------------------------------------------------------------------------------


def _by_condition(folder: Path, episodes: Sequence[EpisodeRow], attempts: Sequence[AttemptRow]) -> Section:
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
                command=f"agentsignals lab report {folder}",
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
    limits.append("Passing visible tests can be cheating: read hidden passes and the hardcoding flag beside them.")
    if (tasks := len({row.task for row in episodes})) < _FEW_TASKS:
        limits.append(f"{tasks} tasks: only large differences show. About 390 trials an arm tell .50 from .60.")
    chart = _chart("lab.full_pass", "Full pass by condition", charts.dots(""), points, len(episodes), "episodes")
    return part(
        "conditions", "Conditions", "How do episodes end under each condition?",
        Outcome(findings, [table], [chart] if len(points) > 1 else [], limits),
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


def _chart(  # noqa: PLR0913  (what a chart is of)
    name: str, title: str, form: Form, marks: list[dict[str, Any]], n: int, of: str
) -> Chart:
    says = "; ".join(str(mark["tip"]) for mark in marks)
    return Chart(id=name, title=title, says=says, form=form, marks=marks, n=n, of=of)


# -- against the baseline ----------------------------------------------------------------------------------------------


def _against(
    episodes: Sequence[EpisodeRow], attempts: Sequence[AttemptRow], conditions: Sequence[Condition]
) -> Section:
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
    return part("against", title, "What does a condition change, task by task?", Outcome([], tables, [], limits))


# -- by attempt --------------------------------------------------------------------------------------------------------


def _by_attempt(attempts: Sequence[AttemptRow]) -> Section:
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
    return part("attempts", "Attempts", "What comes with each attempt?", Outcome([], [first, second]))


def _mean(values: Sequence[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return fmean(defined) if defined else None


# -- activations -------------------------------------------------------------------------------------------------------


def _projections(rows: Sequence[ProjectionRow]) -> Section:
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
    return part(
        "projections", "Projections", "Where do prompts lie along the directions?", Outcome([], [table], [], limits)
    )


def _checks(rows: Sequence[ManipulationRow]) -> Section:
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
    return part("manipulation", "Manipulation checks", question, Outcome([], [table], [], limits))


MOST_ROWS = 500
"""Most rows of a table in a report; all are in its file."""
_LONGEST_CELL = 200
_NOTES = {
    "effects": "Effect: outcome in the cell less without it, with a 95 % interval over tasks and p by flipping tasks;"
    " q: adjusted over the table but for dev (Benjamini and Hochberg). Part: dev chose the layer and dose, test judges"
    " them. Opposed: the share of scenes that moved the other way. Of a patch, denoise puts states of the worse tone"
    " into the better tone's prompt, noise the other way; share: of what the tones differ by; unfit: scenes left out,"
    " whose place has more tokens in one tone than in the other.",
    "items": "The outcome of each scene in a cell and without it.",
    "chosen": "A direction at the layer and dose that went furthest beyond random directions on half of the tasks,"
    " judged on the others. Up and down: at plus and minus the dose. Specific: p adjusted (Holm) is at most .05, the"
    " interval leaves out 0, and minus the dose does not do the same.",
    "suppression": "Left: what remains of the tones' difference when the place is hidden; 1: all of it, 0: nothing.",
    "patching": "Carried from: the first layer at which the place carries half of the tones' difference, both ways;"
    " empty where none does.",
    "separation": "AUROC on texts, or scenes, that the direction was not learnt from. Layer -1: words alone, the"
    " control. Null high: the 95th percentile of shuffled labels; p best: against the best layer of each shuffle.",
    "probe": "Mean over the tokens of a stretch. Coordinate: in the layer's median norms; z: over random directions.",
    "trends": "Last stage less first, in z of the whole prompt, paired by task.",
    "calibration": "Norms by layer that doses are fractions of; tokens above the sink norm are left out.",
}
"""What the columns of an experiment's tables mean."""


def sections(run: Run) -> list[Section]:
    """Return the parts of a run's report: a retry loop's findings, else summaries and tables. LabError when it
    holds nothing."""
    if run.config.experiment == RETRY_LOOP:
        return [*parts(run), _ground(run)]
    made = [section for section in (_summaries(run), _tables(run)) if section.tables]
    if not made:
        raise LabError(f"{run.folder} holds no result yet.", "Run the same command again: it continues.")
    return [*made, _ground(run)]


def _summaries(run: Run) -> Section:
    tables = []
    for path in sorted(run.folder.glob("*.json")):
        if path.name in ("config.json", "manifest.json"):
            continue
        try:
            summary = msgspec.json.decode(path.read_bytes())
        except (OSError, msgspec.DecodeError) as problem:
            raise LabError(
                f"{path} can't be read: {problem}", "Run the experiment again: it writes the file."
            ) from problem
        tables.append(_flat(path.stem, summary))
    return part("summaries", "Summaries", "What came of it?", Outcome([], tables))


def _flat(name: str, document: Any) -> Table:
    rows = [[key, _cell(value)] for key, value in _leaves(document, "")]
    columns = (Column("name", "name", "code"), Column("value", "value", "figure"))
    return Table(
        id=f"lab.{name}", title=_title(name), columns=columns, rows=rows[:MOST_ROWS], n=len(rows), of="values",
        note=_NOTES.get(name, ""),
    )  # fmt: skip


def _leaves(document: Any, under: str) -> list[tuple[str, Any]]:
    """Values by the path to them. JSON that we wrote is not deep."""
    if isinstance(document, dict) and document:
        return [
            leaf for key, value in document.items() for leaf in _leaves(value, f"{under}.{key}" if under else str(key))
        ]
    if isinstance(document, list) and any(isinstance(value, dict | list) for value in document):
        return [leaf for n, value in enumerate(document) for leaf in _leaves(value, f"{under}[{n}]")]
    return [(under, document)]


def _tables(run: Run) -> Section:
    tables = []
    for path in sorted((run.folder / "rows").glob("*.jsonl")):
        rows = read_any(path)
        columns = tuple(
            Column(name, name.replace("_", " "), _kind(name, [row[name] for row in rows])) for name in (rows or [{}])[0]
        )
        cut = f"The first {MOST_ROWS} of {len(rows)}; all are in rows/{path.name}." if len(rows) > MOST_ROWS else ""
        note = f"{_NOTES.get(path.stem, '')} {cut}".strip()
        shown = [[_cell(value) for value in row.values()] for row in rows[:MOST_ROWS]]
        tables.append(
            Table(id=f"lab.rows.{path.stem}", title=_title(path.stem), columns=columns, rows=shown, n=len(rows),
                  of="rows", note=note)
        )  # fmt: skip
    # What was found is a few rows, what it was found in are many: the answer comes first.
    tables.sort(key=lambda table: (table.n, table.id))
    filled = [table for table in tables if table.rows]
    return part(
        "rows",
        "Rows",
        "What was measured?",
        Outcome([], filled, [*_layer_curves(run), *_effects(run), *_stage_curves(run)]),
    )


def _layer_curves(run: Run) -> Iterator[Chart]:
    """A chart of AUROC by layer for each place that directions are judged on, a line a recipe and source."""
    rows = _objects(run, "separation")
    for place in dict.fromkeys(row["judged_on"] for row in rows):
        here = [row for row in rows if row["judged_on"] == place]
        names = list(dict.fromkeys(f"{row['recipe']} from {row['learnt_from']}" for row in here))
        marks = []
        for row in here:
            name = f"{row['recipe']} from {row['learnt_from']}"
            tip = f"{name}, layer {row['layer']}: {row['auroc']:.3f}"
            ends = {end: row[end] for end in ("low", "high")}
            marks.append({"name": name, "at": row["layer"], "value": row["auroc"], **ends, "tip": tip})
        form, title = charts.intervals_by_position("layer", "AUROC", names), f"Separation on held-out {place} by layer"
        yield _chart(f"lab.auroc.{place}", title, form, marks, len(marks), "rows")


def _effects(run: Run) -> Iterator[Chart]:
    """A chart of the effect by dose for each source, place, outcome and layer steered, on the judging tasks; and one of
    all other effects for each intervention and outcome."""
    by_chart: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for row in _objects(run, "effects"):
        if row["part"] == "dev" or row["effect"] is None:
            continue
        if row["intervention"] == "steer":
            title = f"Effect by dose: {row['source']} at {row['place']}, layer {row['layer']}, {row['outcome']}"
            name = f"{row['dose']:+g}"
        else:
            title = f"Effect of {row['intervention']} on {row['outcome']}"
            layer = "" if row["layer"] is None else f"layer {row['layer']}"
            name = ", ".join(filter(None, (row["place"], row["source"], layer, row["tone"])))
        by_chart.setdefault(title, []).append((name, row))
    for number, (title, named) in enumerate(by_chart.items()):
        marks = [
            {
                "name": name, "value": row["effect"], "low": row["low"], "high": row["high"],
                "tip": f"{name}: {row['effect']:+.3f}",
            }
            for name, row in named
        ]  # fmt: skip
        yield _chart(f"lab.effect.{number}", title, charts.dots("effect", "number"), marks, len(marks), "cells")


def _stage_curves(run: Run) -> Iterator[Chart]:
    """A chart for each layer of whole prompts' mean z by stage of a failure, a line a direction."""
    rows = [row for row in _objects(run, "probe") if row["span"] == "all"]
    stages, names = (list(dict.fromkeys(row[field] for row in rows)) for field in ("stage", "direction"))
    for layer in dict.fromkeys(row["layer"] for row in rows):
        marks = []
        for name, (at, stage) in product(names, enumerate(stages)):
            values = [r["z"] for r in rows if (r["layer"], r["direction"], r["stage"]) == (layer, name, stage)]
            tip = f"{name}, {stage}: {fmean(values):+.2f}"
            marks.append({"name": name, "at": at, "value": fmean(values), "low": None, "high": None, "tip": tip})
        form = charts.intervals_by_position("stage", "z over random directions", names)
        title = f"Projection by stage, layer {layer}: {', '.join(stages)}"
        yield _chart(f"lab.stages.{layer}", title, form, marks, len(rows), "prompts")


def _objects(run: Run, name: str) -> list[dict[str, Any]]:
    return read_any(run.folder / "rows" / f"{name}.jsonl")


def _kind(name: str, values: Sequence[Any]) -> Kind:
    if name in ("condition", "task", "direction", "name", "tone"):
        return "code"
    return "text" if any(isinstance(value, str) for value in values) else "figure"


def _title(name: str) -> str:
    words = name.replace("_", " ").replace("-", " ")
    return words[:1].upper() + words[1:]


def _cell(value: Any) -> str | None:
    """A value in words: a float with four digits, text cut, lists as JSON."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        value = [round(item, 4) if isinstance(item, float) else item for item in value]
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST_CELL else text[: _LONGEST_CELL - 1] + "…"


def _ground(run: Run) -> Section:
    """Return the settings and manifest of a run."""
    tables = [_flat("settings", run.config.settings), _flat("manifest", msgspec.to_builtins(run.manifest))]
    return part("ground", "What it stands on", "Which settings, model and versions?", Outcome([], tables))


_SCORES = ("full_pass", "visible_pass", "hidden_pass", "hardcoded")
"""The first is the headline."""
_STOPPED = {"stop": "stop", "length": "max_tokens"}


def write_logs(run: Run, folder: Path) -> list[Path]:
    """Writes CONDITION.json for each condition into the folder. LabError for a run that is no retry loop, or has no
    finished episode."""
    episodes_of(run)
    by_condition: dict[str, list[list[dict[str, Any]]]] = {}
    for path in sorted((run.folder / "traces").glob("*/*.jsonl")):
        records = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
        if "final" in records[-1]:  # an episode that is over
            by_condition.setdefault(records[0]["condition"]["name"], []).append(records)
    private_files.make_folder(folder)
    written = []
    for name, episodes in by_condition.items():
        path = folder / f"{name_of(name, '', 0).split('/')[0]}.json"
        private_files.write(
            path, msgspec.json.format(msgspec.json.encode(_log(run, name, episodes)), indent=1).decode()
        )
        written.append(path)
    return written


def _log(run: Run, condition: str, episodes: Sequence[list[dict[str, Any]]]) -> dict[str, Any]:
    header = episodes[0][0]
    model = str(run.manifest.model.get("name") or "unknown")
    samples = [_sample(model, records) for records in episodes]
    scores = []
    for name in _SCORES:
        values = [float(one["scores"][name]["value"]) for one in samples if name in one["scores"]]
        if values:
            accuracy = {"accuracy": {"name": "accuracy", "value": fmean(values), "params": {}}}
            scores.append({"name": name, "scorer": name, "params": {}, "metrics": accuracy})
    name_of_run = f"{header['run_id']}-{condition}"
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": name_of_run, "run_id": header["run_id"], "task_id": name_of_run, "task": "agentsignals_retry",
            "task_version": header[MARK], "created": run.manifest.started_at, "model": model,
            "task_args": {"condition": condition, "attempts": header["max_attempts"]},
            "model_generate_config": {"max_tokens": header["max_new_tokens"],
                                      **{name: header[name] for name in ("temperature", "top_p", "seed")}},
            "dataset": {"name": "tasks", "samples": len({one["id"] for one in samples}),
                        "sample_ids": sorted({one["id"] for one in samples})},
            "headline_metric": {"scorer": _SCORES[0], "metric": "accuracy"},
            "config": {"epochs": max(one["epoch"] for one in samples)},
            "packages": run.manifest.packages,
            "metadata": {"condition": header["condition"], "evaluator": header["evaluator"], "texts": header["texts"]},
        },
        "results": {"total_samples": len(samples), "completed_samples": len(samples), "scores": scores},
        "stats": {"started_at": run.manifest.started_at, "model_usage": _usage(model, samples)},
        "samples": samples,
    }  # fmt: skip


def _sample(model: str, records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One episode. A score that is not known, since the machine could not run the answer, is left out."""
    header, final = records[0], records[-1]["final"]
    attempts = [record["attempt"] for record in records if "attempt" in record]
    messages = [_message(model, record["message"]) for record in records if "message" in record]
    first = next(n for n, one in enumerate(messages) if one["role"] == "assistant")
    last = attempts[-1]
    choice = {"message": [one for one in messages if one["role"] == "assistant"][-1],
              "stop_reason": _STOPPED.get(last["finish"], "unknown")}  # fmt: skip
    told = [one for one in attempts if one["tokens"] is not None and one["prompt_tokens"] is not None]
    put_in, out = sum(one["prompt_tokens"] for one in told), sum(one["tokens"] for one in told)
    usage = {"input_tokens": put_in, "output_tokens": out, "total_tokens": put_in + out}
    return {
        "id": final["task"],
        "epoch": final["sample"] + 1,
        "input": messages[:first],
        "target": "",
        "messages": messages,
        "output": {"model": model, "choices": [choice]},
        "scores": {
            name: {"value": final[name], "answer": last["source"], "explanation": last["error"] or None}
            for name in _SCORES
            if final[name] is not None
        },
        "metadata": {"family": header["task"]["family"], "attempts": attempts,
                     **{name: final[name] for name in ("failed_first", "recovered", "regressed", "repeated")}},
        "model_usage": {model: usage} if told else {},
    }  # fmt: skip


def _message(model: str, message: dict[str, Any]) -> dict[str, Any]:
    text = "".join(piece["text"] for piece in message["pieces"])
    made = {"role": message["speaker"], "content": text}
    return {**made, "source": "generate", "model": model} if message["speaker"] == "assistant" else made


def _usage(model: str, samples: Iterable[dict[str, Any]]) -> dict[str, Any]:
    of_samples = [one["model_usage"][model] for one in samples if one["model_usage"]]
    names = ("input_tokens", "output_tokens", "total_tokens")
    return {model: {name: sum(one[name] for one in of_samples) for name in names}} if of_samples else {}
