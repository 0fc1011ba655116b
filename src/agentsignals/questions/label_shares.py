"""Shares from labels: sentiment by one labeller, pushback, and what a classifier's labels stand for; and turns that the
person cut short.

Word rules give a lower bound. A classifier's share is the mean of its calibrated probabilities. Any other labeller's
share is reported as labelled.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from math import fsum
from typing import Any, NamedTuple

from msgspec.structs import replace

from agentsignals.errors import SourceError
from agentsignals.model import CLASSIFIER, ENCODER, RULES, labeller_rank
from agentsignals.questions.estimates import ClusteredShare, Estimate, Sample, clustered_share, count
from agentsignals.questions.question import Finding, Inputs, Outcome, Row, formatted
from agentsignals.questions.sql import read_queries
from agentsignals.stats.agent_traces import UNJUDGED, Conversation, Message, Part, label, main_labeller
from agentsignals.stats.intervals import widened, wilson
from agentsignals.stats.validation import HALF, NEVER_VALIDATED, figures_of, labeller_figure, share_text
from agentsignals.words.classifier import classifier_of
from agentsignals.words.lexicon import unmatched_class

_SQL = read_queries(__file__, unjudged=", ".join(f"'{kind}'" for kind in sorted(UNJUDGED)), rules=RULES)
QUERIES = _SQL["sentiment"]
"""Queries for `labelled`."""
PUSHBACK_LABELS = _SQL["pushback"]["labels"]
"""Query for `pushback_finding`."""

NO_LABELS = (
    "No message has a sentiment label yet. Run `agentsignals labels label sentiment --by LABELLER`, or `--from FILE`"
    " for published labels."
)
OUTPUT = "Sentiment labels are not feelings: two labellers of one dataset agreed with a kappa of 0.43 (agent-traces)."
SENTIMENT = "corpus.sentiment_label"
FEW_PLACES = "Intervals clustered by project are too narrow if the effective number of projects is below about ten."


class Labelled:
    """One labeller's conversations."""

    def __init__(self, labeller: str, conversations: list[Conversation], places: dict[str, str]) -> None:
        self.labeller = labeller
        self.conversations = conversations
        self.places = places
        """The place of each session whose place is known."""

    def estimate(self, count: Callable[[Conversation], Part | None]) -> ClusteredShare:
        """Return a share over these conversations, from each one's part of it."""
        counted = ((conversation.session_id, count(conversation)) for conversation in self.conversations)
        share = clustered_share([(name, *part) for name, part in counted if part is not None], self.places)
        return replace(share, note="; ".join(part for part in (share.note, self.unjudged()) if part))

    def unjudged(self) -> str:
        """Return the share of these conversations' messages that have no label, as a note; empty where all have one."""
        n = sum(len(conversation.messages) for conversation in self.conversations)
        missing = n - sum(len(conversation.labelled) for conversation in self.conversations)
        # Those that run in this process judge English only.
        is_local = self.labeller.partition(":")[0] in (RULES, CLASSIFIER, ENCODER)
        why = ": another language, or not asked about" if is_local else ""
        return f"{formatted(missing / n, 'share')} of messages not judged{why}" if missing else ""

    def finding(self, estimate: Estimate, id: str, *words: str, **more: Any) -> Finding:  # noqa: A002  (the finding's field)
        """Return the figure as a finding whose command uses the same labeller."""
        study = id.partition(".")[0]
        command = f"agentsignals report --study {study} --labeller {shlex.quote(self.labeller)} -o {study}.json"
        validation = validation_of(self.labeller, "sentiment")
        return estimate.finding(id, *words, command=command, validation=validation, **more)

    def limits(self) -> list[str]:
        """Return the limits that hold for every figure over these labels."""
        of_place = Counter(self.places.get(c.session_id) for c in self.conversations for _ in c.labelled)
        n = of_place.total()
        of_place.pop(None, None)
        unjudged = self.unjudged()
        by = f"Sentiment labels by {self.labeller}" + (f"; {unjudged}." if unjudged else ".")
        limits = [by, OUTPUT, FEW_PLACES]
        if self.labeller == RULES:
            limits.append("Rules find a part of what people feel: their counts are lower bounds, their rates too low.")
        most = max(of_place.values(), default=0)
        if 2 * most > n:
            limits.append(
                f"{most / n:.0%} of the labelled messages are from one project, so these figures may not generalize."
            )
        return limits


def labelled(inputs: Inputs) -> Labelled | None:
    """Return the conversations of the labeller asked for, else of the one with most labels. None without labels."""
    by_labeller: dict[str, dict[tuple[str, int], Row]] = {}
    for row in inputs.rows["labels"]:
        by_labeller.setdefault(row["labeller"], {})[row["session_id"], row["turn"]] = row
    messages: dict[str, list[Row]] = {}
    for row in inputs.rows["messages"]:
        messages.setdefault(row["session_id"], []).append(row)
    counts = {
        name: (sum(label(row["value"]) is not None for row in rows.values()), max(r["at"] or 0 for r in rows.values()))
        for name, rows in by_labeller.items()
    }
    name = inputs.labeller or main_labeller(counts)
    if name is None or name not in by_labeller:
        return None
    values = {key: label(row["value"]) for key, row in by_labeller[name].items()}
    judged = {session_id for session_id, _ in values}
    conversations = [
        Conversation(s, [Message(r["turn"] + 1, values.get((s, r["turn"])), r["model"]) for r in rows])
        for s, rows in messages.items()
        if s in judged
    ]
    places = {s: place for s, rows in messages.items() if (place := rows[0]["place"]) is not None}
    return Labelled(name, conversations, places) if any(c.labelled for c in conversations) else None


def no_labels(inputs: Inputs) -> Outcome:
    """Return the result of a study of labels where there are none: how to make them."""
    if not inputs.labeller:
        return Outcome(limits=[NO_LABELS])
    names = sorted({row["labeller"] for row in inputs.rows["labels"]})
    there = f"labels are by {', '.join(names)}" if names else "there are no labels"
    return Outcome(limits=[f"No message has a sentiment label by {inputs.labeller}: {there}."])


# -- pushback ----------------------------------------------------------------------------------------------------------


PUSHBACK, NONE = "chat.pushback_type", "non_pushback"
_TASK = "pushback"
ENOUGH = 0.5
"""A labeller must have labelled this share of the prompts to stand for them (this project's choice)."""

MessageKey = tuple[str, int]
"""Session and turn of a message."""


@cache
def rules_recall_text() -> str:
    """Return recall and precision of the pushback rules from `stats/validation/figures.json`, as text.

    An objection named as another kind of objection counts as found.
    """
    recalls, hits, named = [], 0, 0
    for figure in figures_of(PUSHBACK):
        if figure.value == NONE and figure.truth != "planted cases" and figure.recall is not None:
            object_, missed = figure.n - figure.true, figure.named - round(figure.recall * figure.true)
            right = object_ - missed
            recalls.append(f"{share_text(right / object_, wilson(right, object_))} of {object_}")
            hits, named = hits + right, named + figure.n - figure.named
    right_in = share_text(hits / named, wilson(hits, named))
    return f"word rules: recall {' and '.join(recalls)} prompts a language model calls pushback, precision {right_in}"


def calibration_of(labeller: str, task: str) -> dict[str, float]:
    """Return the standard deviation of a classifier's shares in other projects, by class; empty for other labellers,
    and for a classifier without a calibration."""
    with suppress(SourceError):  # its file is gone, or is none
        model = classifier_of(labeller, task)
        if model is not None and model.calibration is not None:
            return dict(zip(model.classes, model.calibration.share_errors, strict=True))
    return {}


def probable_share(
    counted: ClusteredShare, probable: ClusteredShare, chances: Sequence[float], labeller: str, share_error: float
) -> ClusteredShare:
    """Return the share behind a classifier's count: the mean of its calibrated probabilities.

    `counted`: by its labels. `probable`: by the probabilities, which are `chances`. The interval is `probable`'s,
    widened by what the probabilities leave open and by the calibration's error in other projects.
    """
    interval, n = probable.interval, len(chances)
    if not n:
        return counted
    share = fsum(chances) / n
    if interval is not None:
        interval = widened(share, interval, fsum(p * (1 - p) for p in chances) / n**2 + share_error**2)
    note = f"mean probability by {labeller}, which named {counted.k / n:.0%}"
    return replace(counted, value=share, interval=interval, note=f"{note}; {probable.note}")


def as_labelled(share: ClusteredShare, labeller: str) -> ClusteredShare:
    """Return a share as its labeller labelled it, with a note that its errors are not known."""
    unknown = f"by {labeller}, {NEVER_VALIDATED}"
    return replace(share, note="; ".join(part for part in (unknown, share.note) if part))


def made_from(labeller: str, task: str) -> Callable[[str], bool]:
    """Return a function that says whether a labeller was made from a session's labels: they say nothing of it. A
    classifier whose file is gone may be made from any."""
    try:
        model = classifier_of(labeller, task)
    except SourceError:
        return lambda _: True
    return model.has_seen if model is not None else lambda _: False


def validation_of(labeller: str, task: str) -> str:
    """Return what was measured of a labeller at a task: on unseen projects, else on those left out of its training."""
    model = None
    with suppress(SourceError):
        model = classifier_of(labeller, task)
    figure = labeller_figure(task, labeller)
    if figure is None and model is not None:
        return f"{labeller}: {model.measured}"
    if figure is None:
        return f"{labeller}, {NEVER_VALIDATED}; run `agentsignals labels agree {task} LABELLER --gold FILE`"
    right = ", ".join(f"{value} {trust(task, labeller, value).in_words()}" for value in figure.classes)
    return f"{labeller}: {figure.text('' if model is None else model.version)}; {right}"


TASK_BY_SIGNAL = {"chat.prompt_intent": "prompt_intent", PUSHBACK: _TASK, SENTIMENT: "sentiment"}
"""The tasks whose labels signals show, by the signal."""
FEWEST_JUDGED = 10
"""Labels of a class that a precision needs."""


class Trust(NamedTuple):
    is_shown: bool
    """False: the class is wrong as often as right, or was measured on too few labels."""
    precision: float | None = None
    """Share of this labeller's labels of the class that are right; None for people, and where it is not known."""
    n: int = 0
    """Labels that the precision was measured on."""
    bound: str = ""
    """What a count of word rules is to the true one: `at least`, or `at most` for the class of what no rule matches."""

    def in_words(self) -> str:
        """Return how far to trust a label of the class; empty for people and language models."""
        if self.precision is None:
            return "" if self.is_shown else "not measured"
        return f"{self.precision:.0%} of {self.n:,} right" if self.is_shown else "wrong in half or more"


def trust(task: str, labeller: str, value: str) -> Trust:
    """Return whether a label of this class may be shown as such, and how often such labels were right.

    A classifier is measured on projects left out of training and on unseen ones, by today's weights; rules on messages
    that their author had not read. Labels of people and of language models are shown as they are, without a precision;
    those of a classifier off the shelf are not shown.
    """
    try:
        model = classifier_of(labeller, task)
    except SourceError:  # its file is gone, and what it was measured on with it
        return Trust(False)
    if model is None and labeller != RULES:
        return Trust(labeller_rank(labeller) > labeller_rank(ENCODER))
    figure, right, n, own = labeller_figure(task, labeller), 0, 0, None if model is None else model.held_out
    if figure is not None and figure.version == ("" if model is None else model.version):
        n, right = figure.classes.get(value, (0, 0))
        own = None if figure.held_out else own  # its random rows, of which this is the figure, and chosen ones
    if own is not None and (of := own.classes.get(value)):
        right, n = right + of.hits, n + of.named
    if n < FEWEST_JUDGED:
        return Trust(False)
    is_shown = right > HALF * n
    is_rest = labeller == RULES and value == unmatched_class(task)
    bound = "at most" if is_rest else "at least" if labeller == RULES and is_shown else ""
    return Trust(is_shown, right / n, n, bound)


def pushback_finding(  # noqa: PLR0913  (a finding's words, in the order they are read)
    inputs: Inputs,
    flagged: Mapping[MessageKey, bool],
    name: str,
    title: str,
    of: str,
    note: str = "",
) -> Finding:
    """Return the finding of prompts that object. `flagged`: the rules' verdict by prompt; rows need `labels`.

    The share comes from the most trusted labeller that labelled `ENOUGH` of them, preferably the one asked for. Without
    one it is the rules' count, as a lower bound.
    """
    by_labeller: dict[str, list[Row]] = {}
    for row in inputs.rows["labels"]:
        if (row["session_id"], row["turn"]) in flagged:
            by_labeller.setdefault(row["labeller"], []).append(row)
    able = [labeller for labeller, rows in by_labeller.items() if len(rows) >= ENOUGH * len(flagged)]
    flags = sum(flagged.values())
    if not able:
        parts = [(session_id, float(flag), 1.0) for (session_id, _), flag in flagged.items()]
        return count(flags if flagged else None, len(flagged), evidence=parts).finding(
            name,
            f"{title} (found by word rules)",
            of,
            f"lower bound: {rules_recall_text()}",
            unit="prompts",
            at_least=True,
            signals=(PUSHBACK,),
        )
    labeller = max(able, key=lambda n: (n == inputs.labeller, labeller_rank(n), len(by_labeller[n])))
    rows = by_labeller[labeller]
    sample = Sample([row["session_id"] for row in rows], inputs.places)
    share, errors = sample.share([float(row["value"] != NONE) for row in rows]), calibration_of(labeller, _TASK)
    chances = [1 - row["quiet"] for row in rows if row["quiet"] is not None]
    if errors and len(chances) == len(rows):
        share = probable_share(share, sample.share(chances), chances, labeller, errors[NONE])
    else:
        share = as_labelled(share, labeller)
    beside = f"word rules find {flags:,} of {len(flagged):,}"
    notes = inputs.noted("; ".join(part for part in (note, beside) if part), (PUSHBACK,))
    return share.finding(name, title, of, notes, validation=validation_of(labeller, _TASK))


def at_least_text(k: float, n: float, of: str) -> str:
    """Format a rules' count for a tip: `at least 3 of 10 prompts`."""
    return f"at least {formatted(k, 'count')} of {formatted(n, 'count')} {of}"


# -- turns cut short ---------------------------------------------------------------------------------------------------


CUT_SHORT = "chat.hard_interruption"


def cut_short(rows: Iterable[Row], places: Mapping[str, str]) -> ClusteredShare:
    """Return the share of turns that were cut short. Rows: a turn each, with session_id and `cut`, which is None where
    it was not measured."""
    known = [row for row in rows if row["cut"] is not None]
    return Sample([row["session_id"] for row in known], dict(places)).among([bool(row["cut"]) for row in known], True)


def cut_short_finding(share: ClusteredShare, id: str) -> Finding:  # noqa: A002  (the finding's field)
    means = "an interruption, a refused call, or a queued stop"
    return share.finding(id, "Turns cut short", "turns", means, signals=(CUT_SHORT,))
