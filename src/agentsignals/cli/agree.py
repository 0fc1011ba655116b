"""`agree`: how far two labellers agree, or one with a gold file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from agentsignals.cli.verb import Verb
from agentsignals.errors import UsageError

if TYPE_CHECKING:
    from agentsignals.labels.agreement import Comparison, Several
    from agentsignals.labels.task import Task
    from agentsignals.stats.agreement import Estimate

_SHOWN_PATTERNS = 12
_EXCERPT = 100


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("task", metavar="TASK", help="what was judged; `agentsignals label` lists the tasks")
    add("first", metavar="LABELLER", help="rules, a model as `label` named it, human:NAME …")
    add("others", metavar="OTHER", nargs="*", help="another labeller of the store, or several")
    add("--gold", metavar="FILE", help="instead of another: labels in a file (.jsonl, .csv), taken as the truth")
    add("--column", metavar="NAME", help="with --gold: where the label stands (default: label, TASK_label or TASK)")
    add("--settle", metavar="FILE", help="also write both labels to a new gold file, for `annotate` to settle")


def run(options: argparse.Namespace) -> int:
    from agentsignals.cli.output import json_text
    from agentsignals.labels.tasks import task

    wanted = task(options.task)
    _check(options)
    if len(options.others) > 1:
        from agentsignals.labels import matching as agree
        from agentsignals.store import Store

        several = agree.among(Store(options.store), wanted, [options.first, *options.others])
        print(json_text(several) if options.json else _several(several))
        return 0 if several.n else 1
    result = _compared(options, wanted)
    print(json_text(result) if options.json else _text(result))
    return 0 if result.n else 1


def _check(options: argparse.Namespace) -> None:
    if bool(options.others) == (options.gold is not None):
        raise UsageError("Agreement is of two: another labeller, or --gold FILE.", "agree sentiment rules human:ann")
    if options.gold is None and options.column is not None:
        raise UsageError("--column belongs to --gold.", "Leave it out.")
    if options.settle is not None and len(options.others) != 1:
        raise UsageError("--settle is for two labellers.", "agree sentiment human:ann human:ben --settle settle.jsonl")
    if len({options.first, *options.others}) <= len(options.others):
        raise UsageError("A labeller is named twice.", "Everybody agrees with themselves.")


def _compared(options: argparse.Namespace, wanted: Task) -> Comparison:
    from agentsignals.labels import gold
    from agentsignals.labels import matching as agree
    from agentsignals.store import Store

    if options.others:
        store, other = Store(options.store), options.others[0]
        if options.settle is not None:
            from agentsignals.labels.annotation import to_settle

            both = agree.pairs(store, wanted, options.first, other)
            gold.write(options.settle, to_settle(wanted, options.first, other, both))
        return agree.between(store, wanted, options.first, other)
    gold_labels = gold.read(options.gold, wanted, options.column)
    opened_store = None if agree.judges_texts(options.first, gold_labels) else Store(options.store)
    return agree.with_gold(wanted, options.first, gold_labels, opened_store)


def _several(result: Several) -> str:
    from agentsignals.cli.output import printable, table

    names = ("first", "second", "n", "agreement", "kappa", "AC1")
    pairs = [(p.a, p.b, p.n, _figure(p.agreement), _estimate(p.kappa), _estimate(p.ac1)) for p in result.pairs]
    of = f"Krippendorff's alpha ({result.alpha_of})"
    head = f"{result.task}: {result.n:,} labelled by two or more; {of} {_estimate(result.alpha)}"
    mind = dict.fromkeys(f"mind: {warning}" for p in result.pairs for warning in p.warnings)
    return "\n\n".join([printable(head), table(names, pairs), *map(printable, mind)])


def _text(comparison: Comparison) -> str:
    from agentsignals.cli.output import printable, table

    kappa, scores = comparison.kappa, comparison.scores
    rows: list[tuple[str, Any]] = [
        ("task", f"{comparison.task}: {comparison.a} (rows) and {comparison.b} (columns)"),
        ("gold by", comparison.gold),
        (
            "of both",
            f"{comparison.n:,} in {comparison.sessions:,} sessions" if comparison.n else "nothing: no label of both",
        ),
        ("left out", ", ".join(f"{n:,} {reason.replace('_', ' ')}" for reason, n in comparison.left_out.items())),
    ]
    if comparison.agreement is not None and comparison.chance is not None:
        within = _interval(comparison.agreement_interval, "{:.0%}")
        rows.append(("agreement", f"{comparison.agreement:.1%}{within}, by chance {comparison.chance:.1%}"))
        rows.append(("kappa", _estimate(kappa) if kappa else "not defined: chance explains all"))
        rows += [("weighted", comparison.weighted_kappa and _estimate(comparison.weighted_kappa))]
        rows += [("AC1", comparison.ac1 and _estimate(comparison.ac1))]
    if comparison.weighted_back is not None:
        back = comparison.weighted_back
        rows.append(
            ("of all", f"agreement {back.agreement:.1%}, kappa {_estimate(back.kappa)} of {back.things:,.0f} weighted")
        )
    if scores is not None:
        apart = f"{scores.mean_difference:+.2f}{_interval(scores.mean_difference_interval, '{:+.2f}')}"
        figure = f"ICC {_estimate(scores.icc)}, Spearman {_estimate(scores.spearman)}"
        rows.append(("scores", f"{figure}, mean difference {apart} (n {scores.n:,})"))
    rows += [("mind", warning) for warning in comparison.warnings]
    parts = ["\n".join(f"{name:10}  {printable(str(value))}" for name, value in rows if value)]
    if comparison.confusion:
        names = list(comparison.confusion)
        parts.append(table(["", *names], [[a, *(comparison.confusion[a][b] for b in names)] for a in names]))
        columns = ("class", f"n by {comparison.b}", f"n by {comparison.a}", "precision", "recall", "F1")
        per_class = [
            (
                k,
                c.n,
                c.predicted,
                f"{_figure(c.precision)}{_interval(c.precision_interval)}",
                f"{_figure(c.recall)}{_interval(c.recall_interval)}",
                f"{_figure(c.f1)}{_interval(c.f1_interval)}",
            )
            for k, c in comparison.per_class.items()
        ]
        parts.append(table(columns, per_class))
    if comparison.patterns:
        parts.append("\n".join(_patterns(comparison)))
    return "\n\n".join(parts)


def _patterns(comparison: Comparison) -> list[str]:
    from agentsignals.cli.output import printable

    lines = ["where they disagree"]
    for pattern in comparison.patterns[:_SHOWN_PATTERNS]:
        lines.append(printable(f"{pattern.a} → {pattern.b}: {pattern.n:,} ({pattern.share:.1%})"))
        lines += [f"    “{printable(e.excerpt)[:_EXCERPT]}”" for e in pattern.examples if e.excerpt]
    hidden = len(comparison.patterns) - _SHOWN_PATTERNS
    return [*lines, f"and {hidden} rarer patterns (--json has all)"] if hidden > 0 else lines


def _interval(ends: tuple[float | None, float | None] | None, form: str = "{:.2f}") -> str:
    return "" if ends is None or ends[0] is None else f" [{form.format(ends[0])}, {form.format(ends[1])}]"


def _estimate(estimate: Estimate | None) -> str:
    return "–" if estimate is None else f"{estimate.value:.2f}{_interval((estimate.low, estimate.high))}"


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


VERB = Verb("agree", "how far two labellers agree", "agree sentiment rules --gold gold.jsonl", arguments, run)
