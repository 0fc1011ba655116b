"""Train a classifier from gold files, and measure it on projects left out of training (packages numpy and
scikit-learn: extra `drivers`; with --encoder, the extra `encoder`, too).

    python -m agentsignals.labels.training pushback gold.jsonl more.jsonl --out pushback.json
    python -m agentsignals.labels.training pushback,sentiment gold.jsonl --encoder --out FOLDER

The same files give the same `classifier`, and on one machine the same `encoder`. Rows without a `project` make a
project of their session. With --encoder, one net is fine-tuned for all tasks: without each of five groups of projects,
and with all, or once without the file --unseen.
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
from agentsignals.labels import fine_tuning, gold
from agentsignals.labels.labellers.encoder import NET_FILE, Pair, write_net
from agentsignals.labels.tasks import Task
from agentsignals.labels.tasks import task as task_of
from agentsignals.labels.units import answer_end_in
from agentsignals.model import CLASSIFIER, ENCODER, Turn
from agentsignals.stats.agreement import kappa_estimate
from agentsignals.stats.intervals import Z, t_quantile
from agentsignals.stats.validation import LabellerFigure
from agentsignals.words.classifier import (
    TEXT_KINDS,
    VERSION,
    Calibration,
    ClassCounts,
    HeldOut,
    Model,
    Others,
    features,
    session_mark,
    softmax,
)
from agentsignals.words.lexicon import RULES_BY_TASK, is_english
from agentsignals.words.text import count_tokens

MIN_SESSIONS, MIN_PROJECTS = 3, 2
"""A feature counts that stands in messages of so many sessions and projects: what one person or project writes alone
teaches little about others, and does not get into the file."""
FOLDS, FEWEST_PROJECTS = 5, 5
STRENGTH = 0.3
"""Inverse strength of the ridge; set by hand, out of .1, .3 and 1."""
TEXT_WEIGHT = 4.0
"""Weight of word features relative to marks and rules; set once, by hand."""
WORDS_WEIGHT = 0.5
"""Weight of the words' scores relative to the fine-tuned encoder's; set by hand (docs/labels.md#which-labeller)."""
CURVE = (0.25, 0.5)
"""Shares of the sessions that the learning curve is measured with, beside all."""
FEWEST_RANDOM = 8
"""Random rows that a project needs to say how far off a share is."""
RARE_WEIGHT = 0.5
"""Exponent of the weight of rare classes: 0 weighs rows alike, 1 classes. Set once, out of 0, .5 and 1."""
_ROUNDS, _TOLERANCE = 500, 1e-3
_SMALLEST = 0.05
"""Features whose weights are all below this are left out of the file."""
_DECIMALS = 2
"""Decimals of a weight: a message has some hundred features, whose rounding errors cancel out."""
Features = dict[str, float]
Place = tuple[str, int | None]
"""Session and turn."""


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
    turn: int | None = None
    pair: Pair = Pair("", "")
    """The end of the answer before it, and its text."""
    file: str = ""

    @property
    def place(self) -> Place:
        return self.session_id, self.turn


class Judged(NamedTuple):
    example: Example
    predicted: str
    scores: dict[str, float]


def examples(
    paths: Sequence[Path | str], task: Task, column: str | None = None, *, english: bool = False
) -> list[Example]:
    """The labelled messages of gold files that the task is about. UsageError where they are no messages. `english`:
    those alone."""
    if task.level != "turn" or not task.values or task.name not in RULES_BY_TASK:
        raise UsageError(
            f"No classifier can be trained for {task.name}.", f"Choose one of: {', '.join(RULES_BY_TASK)}."
        )
    return [
        _example(task, row, Path(path).name)
        for path in paths
        for row in gold.read(path, task, column).rows
        if row.text and row.label and (row.turn or 1) >= task.min_turns and (not english or is_english(row.text))
    ]


def _example(task: Task, row: gold.GoldRow, file: str) -> Example:
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
    answer = answer_end_in(row.before or "")
    return Example(
        label=str(row.label),
        session_id=row.session_id,
        project=row.project or f"session {row.session_id}",
        random=(row.stratum or "").endswith("random"),
        annotator=row.annotator or "somebody the file does not name",
        rules=RULES_BY_TASK[task.name](turn).value,
        counted=features(turn, answer if task.shows == "exchange" else None),
        turn=row.turn,
        pair=Pair(answer, text),
        file=file,
    )


def fitted(held: Sequence[Example], task: Task, share: float = 1.0, strength: float = STRENGTH) -> Model:
    """Return the model of these examples. `share`: of their sessions, in an order without meaning."""
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
        raise UsageError("All labelled examples have the same label.", "Label messages with at least two labels.")
    try:
        from sklearn.feature_extraction import DictVectorizer  # noqa: PLC0415  (a second to load, only for training)
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    except ImportError as problem:
        raise LabelError(
            "Training needs the package scikit-learn.", f"Install it: {install_command('drivers')}"
        ) from problem
    made = DictVectorizer(sort=True)
    counts = Counter(labels)
    weight = {name: (len(labels) / (len(counts) * n)) ** RARE_WEIGHT for name, n in counts.items()}
    regression = LogisticRegression(C=strength, class_weight=weight, max_iter=_ROUNDS, tol=_TOLERANCE)
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
        kind=CLASSIFIER,
        features_version=VERSION,
        classes=classes,
        intercept=[round(number, _DECIMALS) for number in intercept],
        weights={name: row for name, row in weights.items() if max(map(abs, row[1:])) >= _SMALLEST},
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
        name: log((1 + len(learnt)) / (1 + n)) + 1 if _is_text(name) else 1.0
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


def left_out(
    held: Sequence[Example], task: Task, groups: Sequence[set[str]], nets: Nets | None = None
) -> tuple[list[Judged], dict[float, float | None]]:
    """Judge the examples of each group of projects by a model trained on all others. Also return kappa by the share of
    the sessions that the models were trained on; with `nets`, of all of them alone."""
    by_share = defaultdict[float, list[Judged]](list)
    for group in groups if nets is None else nets.groups:
        rest, out = [e for e in held if e.project not in group], [e for e in held if e.project in group]
        for share in (*CURVE, 1.0) if nets is None else (1.0,):
            model = fitted(rest, task, share)
            model = model if nets is None else with_net(model, nets.sha256)
            for e in out:
                judged = e.counted if nets is None else e.counted | nets.left_out[e.place][task.name]
                scores = dict(zip(model.classes, model.scores(judged), strict=True))
                by_share[share].append(Judged(e, max(scores, key=scores.__getitem__), scores))
        print(f"left out {len(out)} rows of {len(group)} projects", file=sys.stderr)
    return by_share[1.0], {share: _kappa(of).get("value") for share, of in by_share.items()}


# -- The fine-tuned encoder


class Nets(NamedTuple):
    """The net that goes into the file, and the features that a net made of messages of projects it had not seen."""

    sha256: str
    """Digest of the net's file."""
    groups: list[set[str]]
    """Projects that were left out together."""
    left_out: dict[Place, dict[str, Features]]
    """Features by message and task."""
    sessions: list[str]
    """Marks of the sessions that the kept net was trained on, by whatever task's label."""


def fine_tuned(by_task: dict[str, list[Example]], folder: Path, unseen: str) -> Nets:
    """Train the nets, and write the one that is kept into a folder. `unseen`: the file that is not trained on."""
    rows: dict[Place, Example] = {}
    labels: dict[Place, dict[str, str]] = defaultdict(dict)
    for name, held in by_task.items():
        for e in held:
            rows.setdefault(e.place, e)
            labels[e.place][name] = e.label
    every = sorted(rows.values(), key=lambda e: e.file)
    classes = {name: sorted(task_of(name).values) for name in by_task}
    below = dict(zip((e.place for e in every), fine_tuning.lower_layers([e.pair for e in every]), strict=True))
    learnt = [e for e in every if e.file != unseen]
    groups = folds(learnt, FOLDS) if len(learnt) == len(every) else [{e.project for e in every if e.file == unseen}]
    found = dict[Place, dict[str, Features]]()
    for group in groups:
        rest, out = [e for e in every if e.project not in group], [e for e in every if e.project in group]
        tensors = fine_tuning.fine_tuned([labels[e.place] for e in rest], [below[e.place] for e in rest], classes)
        judged = fine_tuning.judged(tensors, classes, [below[e.place] for e in out])
        found |= dict(zip((e.place for e in out), judged, strict=True))
    if len(learnt) == len(every):
        tensors = fine_tuning.fine_tuned([labels[e.place] for e in every], [below[e.place] for e in every], classes)
    seen = sorted({session_mark(e.session_id) for e in learnt})
    return Nets(write_net(folder / NET_FILE, tensors, classes), groups, found, seen)


def with_net(model: Model, sha256: str) -> Model:
    """Return the model whose scores are a fine-tuned encoder's, plus those of a classifier of words by their weight."""

    def less(weights: Iterable[float]) -> list[float]:
        return [round(WORDS_WEIGHT * weight, _DECIMALS + 1) for weight in weights]

    of_words = {
        name: [row[0], *less(row[1:])]
        for name, row in model.weights.items()
        if WORDS_WEIGHT * max(map(abs, row[1:])) >= _SMALLEST
    }
    of_net = {f"n:{name}": [1.0, *(float(name == other) for other in model.classes)] for name in model.classes}
    return msgspec.structs.replace(
        model, kind=ENCODER, net=sha256, intercept=less(model.intercept), weights=of_words | of_net
    )


# -- Calibration: probabilities whose mean is a share


def calibrated(judged: Sequence[Judged], classes: Sequence[str]) -> Calibration | None:
    """Return the calibration on the random rows of projects left out; None without such rows of two projects.

    Without the largest project: the others are judged by models trained on nearly all rows, as a project of one's own
    is. Each project's error is that of a calibration on the other projects.
    """
    largest = Counter(j.example.project for j in judged).most_common(1)[0][0]
    rows = [j for j in judged if j.example.random and j.example.project != largest]
    by_project: dict[str, list[Judged]] = {}
    for j in rows:
        by_project.setdefault(j.example.project, []).append(j)
    if len(by_project) < 2:
        return None
    slope, offsets = _scaled(rows, classes)
    made = Calibration(
        slope=round(slope, 3),
        offsets=[round(offset, 3) for offset in offsets],
        share_errors=[],
        rows=len(rows),
        projects=len(by_project),
    )
    squares, weights, measured = [0.0] * len(classes), 0, 0
    for project, of in by_project.items():
        if len(of) < FEWEST_RANDOM:
            continue
        slope, offsets = _scaled([j for j in rows if j.example.project != project], classes)
        chances = [
            softmax([slope * j.scores.get(name, -_FAR) + at for name, at in zip(classes, offsets, strict=True)])
            for j in of
        ]
        weights, measured = weights + len(of), measured + 1
        for at, name in enumerate(classes):
            error = sum(chance[at] - (j.example.label == name) for j, chance in zip(of, chances, strict=True)) / len(of)
            by_chance = sum(chance[at] * (1 - chance[at]) for chance in chances) / len(of) ** 2
            squares[at] += len(of) * (error * error - by_chance)
    if measured < 2:
        return msgspec.structs.replace(made, share_errors=[_UNKNOWN_ERROR] * len(classes))
    # Few projects: no class is trusted to be better than all together, and the quantile is Student's.
    shares = [sum(j.example.label == name for j in rows) / len(rows) for name in classes]
    spreads = [share * (1 - share) for share in shares]
    together = max(0.0, sum(squares)) / weights / sum(spreads)
    wider = t_quantile(measured - 1) / Z
    errors = [
        wider * max(square / weights, together * spread, 0.0) ** 0.5
        for square, spread in zip(squares, spreads, strict=True)
    ]
    return msgspec.structs.replace(made, share_errors=[round(error, 4) for error in errors])


_UNKNOWN_ERROR = 0.5
"""Where it can't be measured: such a share's interval is everything."""


_FAR = 20.0
"""Minus this: the score of a class that a model has never seen."""
_STEPS, _STEP, _PULL = 200, 2.0, 2.0
"""Steps of the descent, their length, and the pull of the offsets towards 0, in rows."""


def _scaled(rows: Sequence[Judged], classes: Sequence[str]) -> tuple[float, list[float]]:
    """Return the slope and the offsets with the highest likelihood of these rows' labels."""
    import numpy as np  # noqa: PLC0415  (comes with scikit-learn)

    scores = np.array([[max(-_FAR, j.scores.get(name, -_FAR)) for name in classes] for j in rows])
    truth = np.array([[float(j.example.label == name) for name in classes] for j in rows])
    slope, offsets = 1.0, np.zeros(len(classes))
    for _ in range(_STEPS):
        scaled = slope * scores + offsets
        chances = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        residuals = chances / chances.sum(axis=1, keepdims=True) - truth
        shifts = residuals.sum(axis=0) + _PULL * offsets
        slope = max(0.05, slope - 0.1 * _STEP * float((residuals * scores).sum()) / len(rows))
        offsets = offsets - _STEP * shifts / len(rows)
    return slope, [float(offset) for offset in offsets]


def held_out(judged: Sequence[Judged], classes: Sequence[str]) -> HeldOut:
    """Return the figures that go into the model's file."""
    largest = Counter(j.example.project for j in judged).most_common(1)[0][0]
    kappa, others = _kappa(judged, "session_id"), [j for j in judged if j.example.project != largest]
    of_others = _kappa(others)
    return HeldOut(
        n=len(judged),
        sessions=len({j.example.session_id for j in judged}),
        projects=len({j.example.project for j in judged}),
        kappa=kappa.get("value"),
        low=kappa.get("low"),
        high=kappa.get("high"),
        others=Others(n=len(others), kappa=of_others.pop("value"), **of_others) if of_others else None,
        classes={name: counts_of(judged, name) for name in classes},
    )


def random_rows(judged: Sequence[Judged], classes: Sequence[str]) -> dict[str, Any]:
    """Return the random rows of projects left out: project (0: the largest), class, class named, scores, file."""
    projects = [name for name, _ in Counter(j.example.project for j in judged).most_common()]
    files = sorted({j.example.file for j in judged})
    rows = [
        [projects.index(j.example.project), j.example.label, j.predicted, scores, files.index(j.example.file)]
        for j in judged
        if j.example.random
        for scores in [[round(j.scores.get(name, -_FAR), 2) for name in classes]]
    ]
    return {"classes": classes, "files": files, "rows": rows}


def figures_by_file(judged: Sequence[Judged], model: Model) -> dict[str, LabellerFigure]:
    """Return the model's figures on the random rows of each file, as `stats/validation/labellers.json` holds them."""
    made = {}
    for file in sorted({j.example.file for j in judged}):
        rows = [j for j in judged if j.example.file == file and j.example.random]
        kappa = kappa_estimate((j.example.project, j.predicted, j.example.label) for j in rows)
        if kappa is not None:
            made[file] = LabellerFigure(
                task=model.task,
                labeller=model.kind,
                n=len(rows),
                projects=len({j.example.project for j in rows}),
                kappa=round(kappa.value, 2),
                low=round(kappa.low or 0.0, 2),
                high=round(kappa.high or 0.0, 2),
                version=model.version,
                held_out=True,
                classes={name: (of.named, of.hits) for name in model.classes for of in [counts_of(rows, name)]},
            )
    return made


def counts_of(judged: Sequence[Judged], name: str) -> ClassCounts:
    return ClassCounts(
        true=sum(j.example.label == name for j in judged),
        named=sum(j.predicted == name for j in judged),
        hits=sum(j.predicted == j.example.label == name for j in judged),
    )


def trained(
    paths: Sequence[Path | str], task: Task, held: Sequence[Example], nets: Nets | None = None, unseen: str = ""
) -> tuple[Model, dict[str, Any], list[Judged]]:
    """Return the model of the examples with its figures on projects left out, a report, and the predictions there.
    `paths`: the files that the examples are from. `unseen`: the file that is not trained on."""
    others = {e.project for e in held if e.file == unseen}
    judged, curve = left_out(held, task, [others] if others else folds(held, FOLDS), nets)
    model = fitted([e for e in held if e.project not in others], task)
    if nets is not None:
        model = msgspec.structs.replace(with_net(model, nets.sha256), sessions=nets.sessions)
    model = msgspec.structs.replace(
        model,
        trained_on={
            Path(path).name: hashlib.sha256(Path(path).read_bytes()).hexdigest()
            for path in paths
            if Path(path).name != unseen
        },
        annotators=sorted({e.annotator for e in held}),
        held_out=held_out(judged, task.values),
        calibration=calibrated(judged, model.classes),
    )
    # Kappa with intervals over all projects left out, and over all but the largest; by class; the learning curve.
    largest, rows = Counter(j.example.project for j in judged).most_common(1)[0]
    frequent = Counter(j.example.label for j in judged).most_common(1)[0][0]
    by = {
        "majority": [j._replace(predicted=frequent) for j in judged],
        "rules": [j._replace(predicted=j.example.rules) for j in judged],
        model.kind: list(judged),
    }
    report = {
        "largest": {"project": largest, "rows": rows},
        "all": {name: _figures(of) for name, of in by.items()},
        "without_largest": {name: _figures([j for j in of if j.example.project != largest]) for name, of in by.items()},
        "classes": {
            name: {by_: msgspec.to_builtins(counts_of(of, name)) for by_, of in by.items()} for name in task.values
        },
        "curve": {f"{share:.0%}": value for share, value in curve.items()},
        "files": msgspec.to_builtins(figures_by_file(judged, model)),
        "version": model.version,
        "rows": model.rows,
    }
    return model, report, judged


def _figures(judged: Sequence[Judged]) -> dict[str, Any]:
    return {
        "n": len(judged),
        "sessions": len({j.example.session_id for j in judged}),
        "agreement": _rounded(sum(j.predicted == j.example.label for j in judged) / max(1, len(judged))),
        "kappa": _kappa(judged) or None,
    }


def _kappa(judged: Iterable[Judged], cluster: str = "project") -> dict[str, Any]:
    """Return Cohen's kappa with its interval over projects, or sessions (`session_id`); empty where it is undefined."""
    estimate = kappa_estimate((getattr(j.example, cluster), j.predicted, j.example.label) for j in judged)
    return {} if estimate is None else {k: _rounded(v) for k, v in msgspec.to_builtins(estimate).items()}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m agentsignals.labels.training")
    parser.add_argument("tasks", metavar="TASK[,TASK…]", help=", ".join(RULES_BY_TASK))
    parser.add_argument("gold", metavar="FILE", nargs="+", help="gold files with `text`, and `project` where known")
    parser.add_argument("--column", metavar="NAME", help="where the label stands (default: the task's own)")
    parser.add_argument("--out", metavar="FILE", required=True, help="the model's file; of --encoder, the folder")
    parser.add_argument("--unseen", metavar="FILE", help="one of the gold files: measure on it, train on the others")
    parser.add_argument("--left-out", metavar="FILE", help="also write each random row's project, label and scores")
    parser.add_argument(
        "--encoder", action="store_true", help="for the labeller `encoder`: fine-tune one for all tasks"
    )
    options = parser.parse_args(arguments)
    try:
        tasks, out = [task_of(name) for name in options.tasks.split(",")], Path(options.out)
        if len(tasks) > 1 and not options.encoder:
            raise UsageError(f"{options.tasks} are several tasks.", "Train one classifier at a time, or use --encoder.")
        if len(tasks) > 1 and options.column:
            raise UsageError(
                f"--column {options.column} names one column for {len(tasks)} tasks.",
                "Leave it out, and name each column as its task; or train one task at a time.",
            )
        names, unseen = [Path(path).name for path in options.gold], Path(options.unseen or "").name
        if twice := [name for name, n in Counter(names).items() if n > 1]:
            raise UsageError(f"Two gold files are called {twice[0]}.", "Give each file a name of its own.")
        if unseen and unseen not in names:
            raise UsageError(
                f"--unseen {options.unseen} is none of the gold files.", f"Name one of: {', '.join(options.gold)}."
            )
        by_task = {task.name: examples(options.gold, task, options.column, english=options.encoder) for task in tasks}
        if min(len({e.project for e in held}) for held in by_task.values()) < FEWEST_PROJECTS:
            raise UsageError(
                "The examples come from too few projects.", f"Label messages of at least {FEWEST_PROJECTS} projects."
            )
        nets = fine_tuned(by_task, out, unseen) if options.encoder else None
        made = {task.name: trained(options.gold, task, by_task[task.name], nets, unseen) for task in tasks}
    except AgentSignalsError as problem:
        print(f"{problem} {problem.hint}", file=sys.stderr)
        return 2
    for name, (model, _, _) in made.items():
        path = out / f"{name}.{ENCODER}.json" if options.encoder else out
        private_files.write(path, msgspec.json.encode(model) + b"\n")
    if options.left_out:
        kept = {name: random_rows(judged, model.classes) for name, (model, _, judged) in made.items()}
        private_files.write(Path(options.left_out), msgspec.json.encode(kept).replace(b"],[", b"],\n[") + b"\n")
    reports = {name: report for name, (_, report, _) in made.items()}
    print(msgspec.json.format(msgspec.json.encode(reports)).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
