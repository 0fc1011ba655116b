"""A run of any experiment as tables: its summaries, and the rows of its tables as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from statistics import fmean
from typing import Any

import msgspec
from agentsignals.errors import LabError
from agentsignals.questions import charts
from agentsignals.questions.question import Chart, Column, Kind, Outcome, Table

from agentsignals_lab.comparing import RETRY_LOOP
from agentsignals_lab.report import Part, parts
from agentsignals_lab.runs import Run
from agentsignals_lab.runs.table import read_any

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


def sections(run: Run) -> list[Part]:
    """Return the parts of a run's report: a retry loop's findings, else summaries and tables. LabError when it
    holds nothing."""
    if run.config.experiment == RETRY_LOOP:
        return [*parts(run), _ground(run)]
    made = [part for part in (_summaries(run), _tables(run)) if part.outcome.tables]
    if not made:
        raise LabError(f"{run.folder} holds no result yet.", "Run the same command again: it continues.")
    return [*made, _ground(run)]


def _summaries(run: Run) -> Part:
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
    return Part("summaries", "Summaries", "What came of it?", Outcome([], tables))


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


def _tables(run: Run) -> Part:
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
    return Part(
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
        marks = [
            {
                "name": f"{row['recipe']} from {row['learnt_from']}", "at": row["layer"], "value": row["auroc"],
                "low": row["low"], "high": row["high"], "tip": f"layer {row['layer']}: {row['auroc']:.3f}",
            }
            for row in here
        ]  # fmt: skip
        form = charts.intervals_by_position("layer", "AUROC", names)
        title = f"Separation on held-out {place} by layer"
        says = "; ".join(f"{mark['name']}, {mark['tip']}" for mark in marks)
        yield Chart(id=f"lab.auroc.{place}", title=title, says=says, form=form, marks=marks, n=len(marks), of="rows")


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
        says = "; ".join(str(mark["tip"]) for mark in marks)
        form = charts.dots("effect", "number")
        yield Chart(id=f"lab.effect.{number}", title=title, says=says, form=form, marks=marks, n=len(marks), of="cells")


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
        says = "; ".join(str(mark["tip"]) for mark in marks)
        yield Chart(id=f"lab.stages.{layer}", title=title, says=says, form=form, marks=marks, n=len(rows), of="prompts")


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


def _ground(run: Run) -> Part:
    """Return the settings and manifest of a run."""
    tables = [_flat("settings", run.config.settings), _flat("manifest", msgspec.to_builtins(run.manifest))]
    return Part("ground", "What it stands on", "Which settings, model and versions?", Outcome([], tables))
