"""`drivers`: which signals go with success within task and treatment."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agentsignals.cli.verb import Verb

if TYPE_CHECKING:
    from agentsignals.questions.drivers import Contrast, Drivers
    from agentsignals.questions.drivers.predictors import Models

_LISTED, _REASONS, _WORTH, _ALL = 40, 6, 12, 1000


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--by", metavar="COLUMN", nargs="+", default=[], action="extend",
        help="what makes a treatment: model, agent, a cap, a knob (default: treatments that differ)")  # fmt: skip
    add("--outcome", metavar="WHAT", default="reward",
        help="reward (default), resolved, or a yes or no: SIGNAL, SIGNAL=VALUE, SIGNAL>=NUMBER")  # fmt: skip
    add("--treatments", metavar="FILE", type=Path,
        help="who was tried, by folder, where the run does not record it (YAML or JSON; docs/compare.md)")  # fmt: skip
    add("--within", choices=("treatment", "task"),
        help="what two attempts that are held against each other share: task and treatment, or the task alone, with"
        " treatments' means taken off (default: the first, where six tasks were solved and failed so)")  # fmt: skip
    add("--keep", metavar="SIGNAL", nargs="+", default=[], action="extend",
        help="let in a signal that reads the gold patch, or was set aside as a near copy of the outcome")  # fmt: skip
    add("--false-discoveries", metavar="SHARE", type=float, default=0.05,
        help="the share of wrong ones to expect among the signals named (default 0.05)")  # fmt: skip
    add("--no-models", action="store_true", help="contrasts alone, without what the extra `drivers` adds")
    add("--where", metavar="SQL", default="true", help="a condition over the columns of `sessions` and `attempts`")
    add("--markdown", action="store_true", help="the result as Markdown")


def run(options: argparse.Namespace) -> int:
    import agentsignals
    from agentsignals.cli.output import json_text
    from agentsignals.errors import UsageError
    from agentsignals.redaction import without_keys_in
    from agentsignals.store import Store

    if not 0 < options.false_discoveries < 1:
        raise UsageError(f"--false-discoveries {options.false_discoveries:g} is no share between 0 and 1.", "0.05")
    made = agentsignals.drivers(
        Store(options.store),
        options.by,
        outcome=options.outcome,
        treatments=options.treatments,
        within=options.within,
        keep=options.keep,
        false_discoveries=options.false_discoveries,
        models=not options.no_models,
        where=options.where,
    )
    made = without_keys_in(made)
    print(json_text(made) if options.json else in_words(made, markdown=options.markdown))
    return 0


class _Part(NamedTuple):
    title: str
    names: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    widest: int = 70


def in_words(made: Drivers, *, markdown: bool = False) -> str:
    """The answer, what it rests on, and what speaks against it, as a terminal's text or as Markdown."""
    from agentsignals.cli.output import printable, table

    head = [
        f"outcome: {made.outcome}; treatments by {', '.join(made.by)}",
        f"asked: {made.attempts:,} first attempts ({made.solved:,} solved) at {made.tasks:,} tasks under"
        f" {made.treatments:,} treatments",
        f"tasks both solved and failed: {made.mixed['treatment']:,} under one treatment, {made.mixed['task']:,} at all;"
        f" pairs share {'task and treatment' if made.within == 'treatment' else 'the task'}",
    ]
    if made.left_out:
        reasons = "; ".join(f"{n:,} {reason}" for reason, n in list(made.left_out.items())[:_REASONS])
        head.append(f"left out: {sum(made.left_out.values()):,} attempts ({reasons})")
    foot = [f"mind: {warning}" for warning in made.warnings]
    few = sum(c.p is None for c in made.contrasts)
    if few:
        foot.append(f"of {few:,} signals fewer than six tasks have pairs: not shown, but in --json")
    if made.without_models:
        foot.insert(0, f"no models: {made.without_models}")
    if markdown:
        from agentsignals.ui.markdown import plain_lines, plain_table

        lines = ["# What goes with success", plain_lines(made.answer), plain_lines(head)]
        for part in _parts(made):
            lines += [plain_lines([part.title.capitalize()], "## "), plain_table(part.names, part.rows)]
        return "\n\n".join([*lines, plain_lines(foot)])
    blocks = ["\n".join(printable(line) for line in made.answer), "\n".join(printable(line) for line in head)]
    blocks += [f"{part.title}\n{table(part.names, part.rows, part.widest)}" for part in _parts(made)]
    return "\n\n".join([*blocks, "\n".join(printable(line) for line in foot)])


def _parts(made: Drivers) -> Iterator[_Part]:
    tested = [c for c in made.contrasts if c.p is not None]
    if tested:
        names = ("signal", "solved had more", "95%", "q", "tasks", "pairs of", "median solved", "failed", "absent")
        title = "signals at solved and failed attempts that share so much: correlations"
        yield _Part(title, (*names, "moves with"), [_contrast(c) for c in tested[:_LISTED]])
    if made.near_copies:
        rows = [(c.signal, f"{c.auc:.3f}", c.how, c.n) for c in made.near_copies]
        yield _Part(
            "set aside: tells the outcome almost by itself (--keep lets it in)", ("signal", "AUC", "how", "n"), rows
        )
    if made.models is not None:
        yield from _models(made.models)
    if made.excluded:
        because: dict[str, list[str]] = {}
        for entry in made.excluded:
            because.setdefault(entry.because, []).append(entry.signal)
        yield _Part(
            "not asked", ("because it", "signals"), [(why, ", ".join(paths)) for why, paths in because.items()], _ALL
        )


def _contrast(c: Contrast) -> tuple[Any, ...]:
    near = ", ".join(f"{name} ({rho:+.2f})" for name, rho in c.moves_with.items())
    same = "".join(f"{name} (the same); " for name in c.same_as)
    share = "–" if c.superiority is None else f"{c.superiority:.0%}"
    q = "–" if c.q is None else f"{c.q:.2g}"
    medians = tuple("–" if m is None else f"{m:.4g}" for m in (c.solved_median, c.failed_median))
    pairs = f"{c.solved:,} and {c.failed:,}"
    return c.signal, share, _ends(c.low, c.high, ".0%"), q, c.tasks, pairs, *medians, c.absent, f"{same}{near}"


def _ends(low: float | None, high: float | None, form: str) -> str:
    return "" if low is None or high is None else f"{low:{form}} to {high:{form}}"


def _signed(value: float | None, form: str = "+.4f") -> str:
    return "" if value is None else f"{value:{form}}"


def _models(models: Models) -> Iterator[_Part]:
    scores = [
        (s.features, s.model, f"{s.brier:.4f}", _signed(s.auc, ".3f"), _signed(s.gain), _ends(s.low, s.high, "+.4f"))
        for s in models.scores
    ]
    title = f"foretold of tasks that the model had not seen: {models.attempts:,} attempts, {models.tasks:,} tasks," + (
        f" {models.folds} folds of tasks, {models.repeats} times; gain over {models.best_baseline}"
    )
    yield _Part(title, ("by", "model", "Brier", "AUC", "gain", "95%"), scores)
    worth = [("all of them", models.jointly)] if models.jointly else []
    worth += [(", ".join(i.signals), i) for i in models.importance]
    rows = [(name, i.model, f"{i.value:+.4f}", _ends(i.low, i.high, "+.4f")) for name, i in worth]
    names = ("signals", "model", "rise of Brier", "95%")
    if rows:
        yield _Part("what foretelling loses where values are dealt out anew", names, rows[:_WORTH])
    yield _Part(
        "calibration of baselines and signals, logistic",
        ("foretold", "solved", "95%", "n"),
        [(f"{r.foretold:.0%}", f"{r.solved:.0%}", _ends(r.low, r.high, ".0%"), r.n) for r in models.reliability],
    )


VERB = Verb(
    "drivers",
    "which signals go with success within task and treatment: correlations, against honest baselines",
    "drivers --by model --outcome resolved --markdown",
    arguments,
    run,
)
