"""Makes a classifier out of gold files, and judges it on projects that it was not made from (packages numpy and
scikit-learn: extra `drivers`; with --encoder, the extra `encoder`, too).

    python -m agentsignals.labels.classifier.training pushback gold.jsonl more.jsonl --out pushback.json

Nothing is drawn: the same files give the same model. Rows without a `project` make a project of their session.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from math import log
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from agentsignals import private_files
from agentsignals.errors import AgentSignalsError, LabelError, UsageError, install_command
from agentsignals.labels import gold
from agentsignals.labels.classifier import TEXT_KINDS, VERSION, HeldOut, Model, features, session_mark
from agentsignals.labels.labellers.encoder import vectors
from agentsignals.labels.labellers.rules import BY_TASK
from agentsignals.labels.tasks import Task, Verdict
from agentsignals.labels.tasks import task as task_of
from agentsignals.labels.units import answer_end_in
from agentsignals.model import CLASSIFIER, ENCODER, Turn
from agentsignals.stats.agreement import kappa_estimate
from agentsignals.stats.intervals import ClassRates
from agentsignals.words.text import count_tokens

MIN_SESSIONS, MIN_PROJECTS = 3, 2
"""A feature counts that stands in messages of so many sessions and projects: what one person or project writes alone
teaches little about others, and does not get into the file."""
FOLDS = 5
STRENGTHS = {CLASSIFIER: (0.3, 1.0, 3.0), ENCODER: (0.1,)}
"""Inverse strengths of the ridge that are tried; with vectors it was set by hand, out of .1 and .3."""
TEXT_WEIGHT = 3.0
VECTOR_WEIGHT = 4.0
"""Weights of word features and of the vector relative to marks and rules; set once, by hand."""
CURVE = (0.25, 0.5, 0.75, 1.0)
_ROUNDS = 500
_DECIMALS = 2
"""Decimals of a weight: a message has some hundred features, whose rounding errors cancel out."""
Features = dict[str, float]


class Example(Struct, frozen=True, kw_only=True):
    """A labelled message with its features."""

    label: str
    session_id: str
    project: str
    random: bool
    """Drawn by simple random sampling: the stratum's name ends in "random"."""
    rules: str
    """Verdict of the rules."""
    annotator: str
    counted: Features


class Judged(NamedTuple):
    """A prediction for a message of a project that was left out."""

    example: Example
    predicted: str


def examples(
    paths: Sequence[Path | str], task: Task, column: str | None = None, *, encoder: bool = False
) -> list[Example]:
    """The labelled messages of gold files that the task is about. UsageError where they are no messages. `encoder`:
    with their vectors."""
    if task.level != "turn" or not task.values or task.name not in BY_TASK:
        raise UsageError(f"No classifier can be made for {task.name}.", f"Tasks: {', '.join(BY_TASK)}.")
    rows = [
        row
        for path in paths
        for row in gold.read(path, task, column).rows
        if row.text and row.label and (row.turn or 1) >= task.min_turns
    ]
    encoded = vectors([row.text or "" for row in rows]) if encoder else [{}] * len(rows)
    return [_example(task, row, vector) for row, vector in zip(rows, encoded, strict=True)]


def _example(task: Task, row: gold.GoldRow, vector: Features) -> Example:
    text = row.text or ""
    turn = Turn(
        turn=(row.turn or 1) - 1,
        kind="prompt",
        text=text,
        n_tokens=count_tokens(text),
        timestamp=None,
        model=None,
        seq=0,
    )
    verdict = BY_TASK[task.name](turn)
    answer = answer_end_in(row.before or "") if task.shows == "exchange" else None
    return Example(
        label=str(row.label),
        session_id=row.session_id,
        project=row.project or f"session {row.session_id}",
        random=(row.stratum or "").endswith("random"),
        annotator=row.annotator or "somebody the file does not name",
        rules=verdict.value if isinstance(verdict, Verdict) else task.values[-1],
        counted=features(turn, answer) | vector,
    )


def fitted(held: Sequence[Example], strength: float, task: Task, share: float = 1.0) -> Model:
    """The model of these examples. `share`: of their sessions, in an order without meaning."""
    sessions = sorted({e.session_id for e in held}, key=session_mark)
    kept = set(sessions[: max(1, round(len(sessions) * share))])
    learnt = [e for e in held if e.session_id in kept]
    rarity = _rarity(learnt)
    rows: list[Features] = []
    for e in learnt:
        weighed = {name: value * rarity[name] for name, value in e.counted.items() if name in rarity}
        length = sum(value * value for name, value in weighed.items() if _is_text(name)) ** 0.5 or 1.0
        rows.append(
            {name: value * TEXT_WEIGHT / length if _is_text(name) else value for name, value in weighed.items()}
        )
    labels = [e.label for e in learnt]
    if len(set(labels)) < 2:
        raise UsageError("The examples are all of one class.", "Label messages of two classes at least.")
    try:
        from sklearn.feature_extraction import DictVectorizer  # noqa: PLC0415  (a second to load, only for training)
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    except ImportError as problem:
        raise LabelError(
            "Training needs the package scikit-learn.", f"Install it: {install_command('drivers')}"
        ) from problem
    made = DictVectorizer(sort=True)
    regression = LogisticRegression(C=strength, class_weight="balanced", max_iter=_ROUNDS)
    regression.fit(made.fit_transform(rows), labels)
    classes = [str(name) for name in regression.classes_]
    # Of two classes the regression weighs only the second.
    coefficients, intercept = regression.coef_.tolist(), regression.intercept_.tolist()
    if len(classes) == 2:
        coefficients, intercept = [[0.0] * len(coefficients[0]), coefficients[0]], [0.0, intercept[0]]
    weights = {
        name: [round(rarity[name], _DECIMALS), *(round(row[at], _DECIMALS) for row in coefficients)]
        for at, name in enumerate(made.get_feature_names_out().tolist())
    }
    return Model(
        task=task.name,
        kind=ENCODER if any(name.startswith("v:") for name in weights) else CLASSIFIER,
        features_version=VERSION,
        classes=classes,
        intercept=[round(number, _DECIMALS) for number in intercept],
        weights={name: row for name, row in weights.items() if any(row[1:])},
        text_weight=TEXT_WEIGHT,
        uses_answer=task.shows == "exchange",
        rows=len(learnt),
        sessions=sorted(session_mark(name) for name in kept),
        strength=strength,
    )


def _rarity(learnt: Sequence[Example]) -> dict[str, float]:
    """The features that count, each with its inverse document frequency; 1 for what is no text."""
    counts = Counter[str]()
    sessions, projects = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for e in learnt:
        for name in e.counted:
            counts[name] += 1
            sessions[name].add(e.session_id)
            projects[name].add(e.project)
    most = min(MIN_PROJECTS, len({e.project for e in learnt}))
    return {
        name: log((1 + len(learnt)) / (1 + n)) + 1 if _is_text(name) else VECTOR_WEIGHT if name[:2] == "v:" else 1.0
        for name, n in counts.items()
        if len(sessions[name]) >= MIN_SESSIONS and len(projects[name]) >= most
    }


def _is_text(name: str) -> bool:
    return name.partition(":")[0] in TEXT_KINDS


def folds(held: Iterable[Example], n: int) -> list[set[str]]:
    """The projects in at most `n` groups: the largest alone, the others even in rows."""
    sizes = Counter(e.project for e in held).most_common()
    sizes.sort(key=lambda pair: (-pair[1], pair[0]))
    groups: list[list[tuple[str, int]]] = [[] for _ in range(min(n, len(sizes)))]
    for project, size in sizes:
        min(groups, key=lambda group: sum(k for _, k in group)).append((project, size))
    return [{project for project, _ in group} for group in groups]


def predicted(held: Sequence[Example], strength: float, task: Task) -> list[Judged]:
    """Return each example's verdict by a model trained on the other projects."""
    judged = []
    for group in folds(held, FOLDS - 1):
        model = fitted([e for e in held if e.project not in group], strength, task)
        judged += [_judged(model, e) for e in held if e.project in group]
    return judged


def _judged(model: Model, example: Example) -> Judged:
    chances = model.probabilities(example.counted)
    return Judged(example, model.classes[chances.index(max(chances))])


def chosen(held: Sequence[Example], task: Task) -> float:
    """The strength with the highest kappa on projects left out of these."""
    has_vectors = any(name.startswith("v:") for e in held[:1] for name in e.counted)
    strengths = STRENGTHS[ENCODER if has_vectors else CLASSIFIER]
    if len(strengths) == 1:
        return strengths[0]
    return max(strengths, key=lambda strength: (_kappa(predicted(held, strength, task)) or -1.0, strength))


def _kappa(judged: Iterable[Judged]) -> float | None:
    estimate = kappa_estimate((j.example.session_id, j.predicted, j.example.label) for j in judged)
    return None if estimate is None else estimate.value


def nested(held: Sequence[Example], task: Task) -> tuple[list[Judged], dict[float, float | None]]:
    """Predictions for projects left out, each by a model whose strength was chosen without them; kappa by the share of
    the sessions that it was made from."""
    judged: list[Judged] = []
    by_share = defaultdict[float, list[Judged]](list)
    for group in folds(held, FOLDS):
        rest, left_out = [e for e in held if e.project not in group], [e for e in held if e.project in group]
        strength = chosen(rest, task)
        for share in CURVE:
            model = fitted(rest, strength, task, share)
            by_share[share] += [_judged(model, e) for e in left_out]
        print(f"left out {len(left_out)} rows of {len(group)} projects; strength {strength}", file=sys.stderr)
    judged = by_share[1.0]
    return judged, {share: _kappa(of) for share, of in by_share.items()}


def held_out(judged: Sequence[Judged], classes: Sequence[str]) -> HeldOut:
    """The figures that go into the model's file."""
    estimate = kappa_estimate((j.example.session_id, j.predicted, j.example.label) for j in judged)
    largest = Counter(j.example.project for j in judged).most_common(1)[0][0]
    rows = [j for j in judged if j.example.random and j.example.project != largest]
    return HeldOut(
        n=len(judged),
        sessions=len({j.example.session_id for j in judged}),
        projects=len({j.example.project for j in judged}),
        kappa=None if estimate is None else _rounded(estimate.value),
        low=None if estimate is None else _rounded(estimate.low),
        high=None if estimate is None else _rounded(estimate.high),
        kappa_without_largest=_rounded(_kappa(j for j in judged if j.example.project != largest)),
        random={name: _of_class(rows, name) for name in classes} if rows else {},
    )


def _of_class(rows: Sequence[Judged], name: str) -> ClassRates:
    true = [j for j in rows if j.example.label == name]
    others = [j for j in rows if j.example.label != name]
    return ClassRates(
        true=len(true),
        hits=sum(j.predicted == name for j in true),
        others=len(others),
        false_alarms=sum(j.predicted == name for j in others),
    )


def trained(
    paths: Sequence[Path | str], task: Task, column: str | None = None, *, encoder: bool = False
) -> tuple[Model, dict[str, Any]]:
    """The model made from all of the files, with what it is worth on projects left out; and a report."""
    held = examples(paths, task, column, encoder=encoder)
    if len({e.project for e in held}) < FOLDS:
        raise UsageError("The examples are of too few projects to leave some out.", f"Label in {FOLDS} at least.")
    judged, curve = nested(held, task)
    model = fitted(held, chosen(held, task), task)
    model = msgspec.structs.replace(
        model,
        trained_on={Path(path).name: hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in paths},
        annotators=sorted({e.annotator for e in held}),
        held_out=held_out(judged, task.values),
    )
    # Kappa with intervals of rules, of the most frequent class, and of the model, over all projects left
    # out and over all but the largest; classes; the learning curve.
    largest, rows = Counter(j.example.project for j in judged).most_common(1)[0]
    frequent = Counter(j.example.label for j in judged).most_common(1)[0][0]
    by = {
        "majority": [j._replace(predicted=frequent) for j in judged],
        "rules": [j._replace(predicted=j.example.rules) for j in judged],
        "classifier": list(judged),
    }
    return model, {
        "largest": {"project": largest, "rows": rows},
        "all": {name: _figures(of) for name, of in by.items()},
        "without_largest": {name: _figures([j for j in of if j.example.project != largest]) for name, of in by.items()},
        "classes": {
            name: {by_: msgspec.to_builtins(_of_class(of, name)) for by_, of in by.items()} for name in task.values
        },
        "curve": {f"{share:.0%}": _rounded(value) for share, value in curve.items()},
    }


def _figures(judged: Sequence[Judged]) -> dict[str, Any]:
    estimate = kappa_estimate((j.example.session_id, j.predicted, j.example.label) for j in judged)
    return {
        "n": len(judged),
        "sessions": len({j.example.session_id for j in judged}),
        "agreement": _rounded(sum(j.predicted == j.example.label for j in judged) / max(1, len(judged))),
        "kappa": estimate and {k: _rounded(v) for k, v in msgspec.to_builtins(estimate).items()},
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m agentsignals.labels.classifier.training")
    parser.add_argument("task", metavar="TASK", help=", ".join(BY_TASK))
    parser.add_argument("gold", metavar="FILE", nargs="+", help="gold files with `text`, and `project` where known")
    parser.add_argument("--column", metavar="NAME", help="where the label stands")
    parser.add_argument("--out", metavar="FILE", required=True, help="the model's file")
    parser.add_argument("--encoder", action="store_true", help="for the labeller `encoder`: with vectors of messages")
    options = parser.parse_args(arguments)
    try:
        model, report = trained(options.gold, task_of(options.task), options.column, encoder=options.encoder)
    except AgentSignalsError as problem:
        print(f"{problem} {problem.hint}", file=sys.stderr)
        return 2
    private_files.write(Path(options.out), msgspec.json.encode(model) + b"\n")
    print(msgspec.json.format(msgspec.json.encode(report | {"version": model.version, "rows": model.rows})).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
