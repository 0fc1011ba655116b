"""Signals that claim a meaning, measured against gold files and planted cases."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import msgspec

from agentsignals.errors import SourceError
from agentsignals.formats import Input, by_name
from agentsignals.formats.builder import session_of
from agentsignals.labels import gold
from agentsignals.labels import matching as agree
from agentsignals.labels.tasks import Task, task
from agentsignals.model import RULES, Absent, Artifact, Attempt
from agentsignals.signals import Measured
from agentsignals.signals.catalog import by_path, catalogue, explain, validation, values
from agentsignals.stats.agreement import agreement
from agentsignals.stats.intervals import Interval, wilson
from agentsignals.stats.validation import NEVER_VALIDATED, Case, Figure, Planted, planted
from agentsignals.views.history import History
from agentsignals.views.session import SessionView
from agentsignals.words.classifier import ClassCounts, shipped

UNSAID = "no verdict"
BY_TASK = {
    "pushback": ("chat.pushback_type", ("pushback_swechat4", "pushback")),
    "sentiment": ("corpus.sentiment_label", ("sentiment",)),
}
"""The signal whose rules do a task of judging, and the columns a gold file may have its labels in."""
PLANTED = "planted cases"
_LATER = 48 * 3600 * 1_000_000
"""So long after the end the store still speaks: what would have followed is not there."""


def validate(gold_files: Iterable[Path | str] = ()) -> list[Figure]:
    """Every class of every signal with planted cases, then of those that the files have labels of."""
    by_signal: dict[str, list[tuple[str, str]]] = {}
    for family in planted():
        pairs = [(_named(family, case), case.truth or UNSAID) for case in family.cases]
        by_signal.setdefault(family.signal, []).extend(pairs)
    measured = [figure for path, pairs in by_signal.items() for figure in _figures(path, PLANTED, pairs)]
    measured += _of_classifier("chat.prompt_intent", "prompt_intent")
    for path in gold_files:
        of_file = [figure for name in BY_TASK for figure in _of_gold(Path(path), task(name))]
        if not of_file:
            columns = sorted(column for _, names in BY_TASK.values() for column in names)
            raise SourceError(
                f"{path} has no column of labels to compare signals with.", f"Columns: {', '.join(columns)}."
            )
        measured += of_file
    return sorted(measured, key=lambda f: (f.signal, f.truth != PLANTED, f.truth, f.value))


def _of_gold(path: Path, judged: Task) -> Iterator[Figure]:
    signal, columns = BY_TASK[judged.name]
    for column in columns:
        try:
            labels = gold.read(path, judged, column)
        except SourceError:
            if not path.is_file():
                raise
            continue  # without that column
        has_texts = agree.text_labeller(RULES, labels, judged) is not None
        compared = agree.with_gold(judged, RULES, labels) if has_texts else None
        if compared is not None and compared.n:
            pairs = [(a, b) for a, row in compared.confusion.items() for b, n in row.items() for _ in range(n)]
            yield from _figures(
                signal, f"{path.name}, labelled by {compared.gold or 'somebody it does not name'}", pairs
            )
            return


def _of_classifier(signal: str, task_name: str) -> Iterator[Figure]:
    """The figures of a signal that the shipped classifier computes: those of its training, on projects left out."""
    model = shipped(task_name)
    held_out = None if model is None else model.held_out
    if model is None or held_out is None or held_out.kappa is None:
        return
    truth = f"{held_out.projects} projects, each left out of training, read by {', '.join(model.annotators)}"
    right = sum(of.hits for of in held_out.classes.values())
    for value, of in held_out.classes.items():
        yield _figure(signal, truth, value, of, held_out.n, right, held_out.kappa)


def _figures(signal: str, truth: str, pairs: list[tuple[str, str]]) -> Iterator[Figure]:
    """Yield for each value how often the signal agrees with the truth. `pairs`: what the signal says, and the truth."""
    both = agreement(pairs)
    same = sum(a == b for a, b in pairs)
    kappa = None if both is None or both.kappa is None else round(both.kappa, 3)
    for value in sorted({label for pair in pairs for label in pair} - {UNSAID}):
        counts = ClassCounts(
            true=sum(b == value for _, b in pairs),
            named=sum(a == value for a, _ in pairs),
            hits=sum(a == b == value for a, b in pairs),
        )
        yield _figure(signal, truth, value, counts, len(pairs), same, kappa)


def _figure(  # noqa: PLR0913  (what a figure is made of)
    signal: str, truth: str, value: str, of: ClassCounts, n: int, same: int, kappa: float | None
) -> Figure:
    return Figure(
        signal=signal,
        version=by_path(signal).version,
        value=value,
        truth=truth,
        n=n,
        named=of.named,
        true=of.true,
        precision=round(of.hits / of.named, 3) if of.named else None,
        precision_interval=_rounded(wilson(of.hits, of.named)),
        recall=round(of.hits / of.true, 3) if of.true else None,
        recall_interval=_rounded(wilson(of.hits, of.true)),
        agreement=round(same / n, 3),
        agreement_interval=_rounded(wilson(same, n)),
        kappa=kappa,
    )


def _rounded(interval: Interval | None) -> Interval | None:
    return interval and (round(interval[0], 3), round(interval[1], 3))


def _named(family: Planted, case: Case) -> str:
    """Return the signal's value for a planted session."""
    if case.attempt is not None:
        session = session_of([])
        session.context, session.attempt = "eval", msgspec.convert({"root": "planted", **case.attempt}, Attempt)
    elif not family.format:
        session = session_of(case.parts)
    else:
        lines = b"".join(msgspec.json.encode(record) + b"\n" for record in (*family.before, *case.records))
        artifact = Artifact(
            artifact_id="planted",
            source="planted",
            path="planted.jsonl",
            format=family.format,
            sha256="",
            bytes=len(lines),
        )
        session = by_name(family.format).read([Input(lines, artifact)]).sessions[0]
    view = SessionView(session)
    signal = by_path(family.signal)
    ended = view.session.ended_at or 0
    history = History(place="planted", known_until=ended + _LATER, known_since=0)
    known_values = values(view)
    value = explain(signal, view, known_values, history if signal.scope == "history" else None)[0]
    if isinstance(value, list):  # by turn: what it says of the last
        value = value[-1].value if isinstance(value[-1], Measured) else value[-1]
    if isinstance(value, Absent):
        return UNSAID
    if family.yes_from is not None:
        return "yes" if value >= family.yes_from else "no"
    return str(value)


def never_validated(measured: Collection[str] = ()) -> list[str]:
    """Paths of signals that guess a meaning and that no figure, here or among `measured`, is of."""
    unmeasured = (s.path for s in catalogue().values() if validation(s).startswith(NEVER_VALIDATED))
    return sorted(path for path in unmeasured if path not in measured)
