"""Shares of messages that an imperfect judge names: word rules give a flag, a classifier a share that is corrected by
what it finds and takes wrongly on projects it was not made from, anybody else a share as labelled."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from importlib.resources import files
from pathlib import Path

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from agentsignals.analysis.behind import Part
from agentsignals.analysis.clusters import PlacedShare, placed_share
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.grouped import count
from agentsignals.analysis.study import Finding, Inputs, Row
from agentsignals.model import CLASSIFIER, ENCODER, RULES, trust
from agentsignals.stats.prevalence import OfClass, corrected
from agentsignals.stats.proportions import wilson
from agentsignals.validation import NEVER_VALIDATED, figures_of, share_text

PUSHBACK, NONE = "chat.pushback_type", "non_pushback"
_TASK = "pushback"
LABELS = (
    "SELECT session_id, turn, labeller, value FROM labels JOIN sessions USING (session_id)"
    f" WHERE task = '{_TASK}' AND turn IS NOT NULL AND seq IS NULL AND value IS NOT NULL"
    f" AND split_part(labeller, ':', 1) <> '{RULES}'"
    " QUALIFY row_number() OVER (PARTITION BY session_id, turn, labeller ORDER BY created_at DESC NULLS LAST) = 1"
    " ORDER BY session_id, turn, labeller"
)
"""One row a labelled message and labeller; the rules' labels are the signal's over again."""
ENOUGH = 0.5
"""Of the prompts asked about, a labeller's share from which its labels stand for them (this project's choice)."""

Place = tuple[str, int]
"""Session and turn of a message."""


class _Measured(Struct):
    random: dict[str, OfClass] = field(default_factory=dict)


class _Model(Struct):
    """What is read of a classifier's file here."""

    held_out: _Measured | None = None
    annotators: list[str] = field(default_factory=list)


@cache
def rules_find() -> str:
    """How much of what readers call pushback the word rules find, and how often they are right, out of
    `validation/figures.json`: an objection of one kind that is called another counts as found."""
    recalls, hits, named = [], 0, 0
    for figure in figures_of(PUSHBACK):
        if figure.value == NONE and figure.truth != "planted cases" and figure.recall is not None:
            object_, missed = figure.n - figure.true, figure.named - round(figure.recall * figure.true)
            right = object_ - missed
            recalls.append(f"{share_text(right / object_, wilson(right, object_))} (n {object_})")
            hits, named = hits + right, named + figure.n - figure.named
    right_in = share_text(hits / named, wilson(hits, named))
    return f"rules: recall {', '.join(recalls)} of what a reader calls pushback, right in {right_in} of what they name"


def of_classes(labeller: str, task: str) -> dict[str, OfClass]:
    """What a classifier does on random rows of projects left out, by class; empty of anybody else, and where its file
    is gone or holds no such figures."""
    model = _model(labeller, task)
    return model.held_out.random if model and model.held_out else {}


def _model(labeller: str, task: str) -> _Model | None:
    kind, _, name = labeller.partition(":")
    if kind not in (CLASSIFIER, ENCODER):
        return None
    # The file is data of the labels' stage, which stands above this one: read, not imported.
    file = Path(name) if name else files("agentsignals").joinpath("labels", "classifier", f"{task}.{kind}.json")
    if not file.is_file():
        return None
    try:
        return msgspec.json.decode(file.read_bytes(), type=_Model)
    except msgspec.DecodeError:  # whatever lies there now is no classifier: nothing is known of the one that judged
        return None


def as_judged(estimate: PlacedShare, labeller: str, of: OfClass | None) -> PlacedShare:
    """A counted share as what it stands for. `of`: what the labeller does in this class, where that was measured."""
    if of is None:
        unknown = f"by {labeller}, whose recall and false alarms nobody measured here"
        return replace(estimate, note="; ".join(part for part in (unknown, estimate.note) if part))
    right = corrected(
        int(estimate.k), int(estimate.n), hits=of.hits, true=of.true, false_alarms=of.false_alarms, others=of.others
    )
    interval = None if right.low is None or right.high is None else (right.low, right.high)
    note = f"by {labeller}, corrected by its recall and false alarms: {right.in_words()}"
    return replace(estimate, value=right.share, interval=interval, note=note)


def validation_of(labeller: str, task: str) -> str:
    """What stands beside a share by a labeller, for how often it is right."""
    model = _model(labeller, task)
    if model is None or model.held_out is None or not model.held_out.random:
        return f"{labeller}, {NEVER_VALIDATED} here"
    readers = ", ".join(model.annotators) or "whoever made its gold"
    return f"{labeller}: recall and false alarms in the note are against {readers}"


def objections(  # noqa: PLR0913  (a finding's words, in the order they are read)
    inputs: Inputs,
    flagged: Mapping[Place, bool],
    name: str,
    title: str,
    of: str,
    note: str = "",
) -> Finding:
    """The finding of prompts that object. `flagged`: the prompts asked about, each with what the rules say of it. The
    rows need `labels` (`LABELS`). Its share is that of the most trusted labeller of `ENOUGH` of them
    (of the one asked for, where it is among these); without any it is what the rules find, as a count at least."""
    by_labeller: dict[str, list[Row]] = {}
    for row in inputs.rows["labels"]:
        if (row["session_id"], row["turn"]) in flagged:
            by_labeller.setdefault(row["labeller"], []).append(row)
    able = [labeller for labeller, rows in by_labeller.items() if len(rows) >= ENOUGH * len(flagged)]
    flags = sum(flagged.values())
    if not able:
        parts = partial(_flags, flagged)
        return count(flags if flagged else None, len(flagged), behind=parts).finding(
            name, title, of, f"a flag, no share: {rules_find()}", unit="prompts", at_least=True, signals=(PUSHBACK,)
        )
    labeller = max(able, key=lambda n: (n == inputs.labeller, trust(n), len(by_labeller[n])))
    counted = [(row["session_id"], float(row["value"] != NONE), 1.0) for row in by_labeller[labeller]]
    none = of_classes(labeller, _TASK).get(NONE)
    # To object is not to be of the class `non_pushback`: what is a hit of the one is no false alarm of the other.
    measured = none and OfClass(
        true=none.others,
        hits=none.others - none.false_alarms,
        others=none.true,
        false_alarms=none.true - none.hits,
    )
    share = as_judged(placed_share(counted, inputs.places), labeller, measured)
    beside = f"the rules flag {flags:,} of {len(flagged):,}"
    notes = "; ".join(part for part in (note, beside) if part)
    return share.finding(name, title, of, notes, validation=validation_of(labeller, _TASK))


def _flags(flagged: Mapping[Place, bool]) -> list[Part]:
    return [(session_id, float(flag), 1.0) for (session_id, _), flag in flagged.items()]


def by_rules(k: float, n: float, of: str) -> str:
    """`at least 3 of 10 prompts`: what the rules find, in words, for a mark's tip."""
    return f"at least {formatted(k, 'count')} of {formatted(n, 'count')} {of}"
