"""`compare`: candidates under their treatments."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentsignals.cli.verb import Verb

if TYPE_CHECKING:
    from agentsignals.analysis.compare import Candidate, Comparison, Estimate, Pair
    from agentsignals.analysis.compare.gate import Gate

_LISTED = 25
"""Candidates in the tables; --json has all."""
_WIDEST, _REASONS = 70, 3


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--by", metavar="COLUMN", nargs="+", default=[], action="extend",
        help="what makes a candidate: model, agent, run, a cap, a knob (default: treatments that differ)")  # fmt: skip
    add(
        "--baseline",
        metavar="NAME",
        help="the candidate the others are held against (default: one of that name, else most known outcomes)",
    )
    add("--outcome", metavar="WHAT", default="reward",
        help="reward (default), resolved, or a signal of attempts: SIGNAL, SIGNAL=VALUE, SIGNAL>=NUMBER")  # fmt: skip
    add("--treatments", metavar="FILE", type=Path,
        help="who was tried, by folder, where the run does not record it (YAML or JSON; docs/compare.md)")  # fmt: skip
    add("--anyway", action="store_true", help="compare candidates that had other tasks, data sets or limits")
    add("--where", metavar="SQL", default="true", help="a condition over the columns of `sessions` and `attempts`")
    add("--fail-if", metavar="CONDITION", action="append", default=[],
        help="a gate: exit 1 where a candidate meets it, 3 where that can't be told, else 0; may be repeated:"
        " 'solve_rate < baseline - 0.05', 'regressions > 0', 'cost_usd > 1.2 * baseline'")  # fmt: skip
    add("--decide-by", choices=("interval", "value"), default="interval",
        help="what must meet a condition: the whole 95%% interval (default), or the estimate")  # fmt: skip
    add("--junit", metavar="FILE", type=Path, help="also write the gate's outcome as JUnit XML")


def run(options: argparse.Namespace) -> int:
    import agentsignals
    from agentsignals.analysis.compare.gate import gate, parsed
    from agentsignals.cli.output import json_text
    from agentsignals.errors import UsageError
    from agentsignals.store import Store

    for condition in options.fail_if:
        parsed(condition)  # a slip is said before anything is read
    if options.junit and not options.fail_if:
        raise UsageError("--junit writes what came of a gate: none is named.", "--fail-if 'regressions > 0' makes one.")
    comparison = agentsignals.compare(
        Store(options.store),
        options.by,
        baseline=options.baseline,
        outcome=options.outcome,
        treatments=options.treatments,
        anyway=options.anyway,
        where=options.where,
    )
    if not options.fail_if:
        print(json_text(comparison) if options.json else in_words(comparison))
        return 0
    by_value = options.decide_by == "value"
    checked = gate(comparison, options.fail_if, baseline=options.baseline, by_value=by_value)
    if options.junit:
        from agentsignals.cli import junit

        junit.write(options.junit, checked)
    if options.json:
        from msgspec.structs import asdict

        outcome = {**asdict(checked), "exit_code": checked.exit_code}
        print(json_text({**asdict(comparison), "gate": outcome}))
    else:
        print(f"{in_words(comparison)}\n\n{of_gate(checked)}")
    return checked.exit_code


def of_gate(checked: Gate) -> str:
    """What came of the gate, the verdicts that matter most first."""
    from agentsignals.cli.output import printable

    order = ("met", "cannot tell", "not met")
    lines = [f"gate        {checked.ending.upper()}, decided by {checked.decided_by}"]
    lines += [
        f"  {check.verdict:11}  {check.condition}  {check.candidate}: {check.because}"
        for check in sorted(checked.checks, key=lambda check: order.index(check.verdict))
    ]
    return "\n".join(printable(line) for line in lines)


def in_words(comparison: Comparison) -> str:
    """The comparison as tables and sentences."""
    from agentsignals.cli.output import printable

    what = "share of first attempts" if comparison.yes_or_no else "mean of first attempts"
    head = [
        f"outcome     {comparison.outcome} ({comparison.signal}), {what}",
        f"candidates  {len(comparison.candidates):,} by {', '.join(comparison.by)},"
        f" of {comparison.attempts:,} attempts",
    ]
    if comparison.validation:
        head.append(f"rests on    {comparison.validation}")
    if comparison.pairs:
        head.append(f"baseline    {comparison.baseline}")
    head += [f"UNLIKE      {reason}" for reason in comparison.unlike]
    if comparison.common_tasks is not None:
        shares = f"of the {comparison.common_tasks:,} tasks that all tried"
        head.append(
            f"rates       {shares if comparison.common_tasks else 'each of its own tasks: none is shared by all'}"
        )
    if comparison.unrecorded:
        head.append(f"left out    {comparison.unrecorded:,} attempts that do not record who was tried")
    shown = comparison.candidates[:_LISTED]
    parts = ["\n".join(printable(line) for line in head), _candidates(shown, comparison.yes_or_no)]
    if any(candidate.retries for candidate in shown):
        parts.append(f"retries, apart: only what failed is tried again\n{_retries(shown, comparison.yes_or_no)}")
    parts.append(f"what first attempts took: median, 95% interval\n{_took(shown)}{_without(comparison)}")
    if comparison.yes_or_no:
        parts.append(f"for each one solved, with what the failed ones took\n{_per_solved(shown)}")
    if comparison.pairs:
        parts += _pairs(comparison)
    if len(comparison.candidates) > _LISTED:
        parts.append(f"and {len(comparison.candidates) - _LISTED} more candidates (--json has all)")
    if comparison.warnings:
        parts.append("\n".join(printable(f"mind: {warning}") for warning in comparison.warnings))
    return "\n\n".join(parts)


def _pairs(comparison: Comparison) -> list[str]:
    matched = [pair for pair in comparison.pairs if pair.paired.tasks]
    alone = [pair for pair in comparison.pairs if pair.unpaired.candidate.n and pair.unpaired.baseline.n]
    parts = []
    if matched:
        shown = _paired(matched[:_LISTED], comparison.yes_or_no)
        parts.append(f"against the baseline, first attempts within matched tasks\n{shown}")
    if alone:
        shown = _unpaired(alone[:_LISTED], comparison.yes_or_no)
        parts.append(f"first attempts at tasks that only one of the two has: not the same tasks\n{shown}")
    return parts


def _candidates(shown: Sequence[Candidate], yes_or_no: bool) -> str:
    from agentsignals.cli.output import table

    rows = [
        (c.name, c.attempts, c.tasks, c.first.n, sum(c.absent.values()), sum(c.infrastructure.values()),
         *_estimate(c.first, yes_or_no), c.first.method, _bounds(c))
        for c in shown
    ]  # fmt: skip
    names = ("candidate", "attempts", "tasks", "known", "not judged", "infrastructure", _rate(yes_or_no), "95%",
             "interval", "worst to best")  # fmt: skip
    return table(names, rows, _WIDEST)


def _bounds(candidate: Candidate) -> str:
    """What the missing outcomes allow; empty where none is missing."""
    bounds = candidate.bounds
    return "" if bounds is None or bounds.worst == bounds.best else f"{_share(bounds.worst)} to {_share(bounds.best)}"


def _per_solved(shown: Sequence[Candidate]) -> str:
    from agentsignals.analysis.compare import MEASURES
    from agentsignals.analysis.figures import formatted
    from agentsignals.cli.output import table

    rows = []
    for candidate in shown:
        spent = candidate.per_solved
        cells = (
            f"{formatted(p.value, MEASURES[name][1], p.at_least)}{f' (n {p.n:,})' if 0 < p.n < p.of else ''}"
            for name, p in spent.items()
        )
        rows.append((candidate.name, *cells))
    return table(("candidate", *(name.replace("_", " ") for name in shown[0].per_solved)), rows, _WIDEST)


def _retries(shown: Sequence[Candidate], yes_or_no: bool) -> str:
    from agentsignals.cli.output import table

    rows = []
    for candidate in shown:
        if not candidate.retries:
            continue
        within = ", ".join(f"{w.attempts}: {_share(w.solved.value)}" for w in candidate.within)
        recovery = candidate.recovery
        recovered = ""
        if recovery is not None:
            of = f"{recovery.failed:,} failed, {recovery.retried:,} retried"
            recovered = f"{_share(recovery.solved.value)}{_spread(recovery.solved, True)} of {of}"
        rows.append((candidate.name, candidate.retries, *_estimate(candidate.retry, yes_or_no), within, recovered))
    names = ("candidate", "retries", _rate(yes_or_no), "95%", "solved within", "recovered")
    return table(names, rows, _WIDEST)


def _took(shown: Sequence[Candidate]) -> str:
    from agentsignals.analysis.compare import MEASURES
    from agentsignals.analysis.figures import formatted
    from agentsignals.cli.output import table

    rows = []
    for candidate in shown:
        cells = []
        for name, (_, kind) in MEASURES.items():
            taken = candidate.took[name]
            spread = "" if taken.low is None else f" [{formatted(taken.low, kind)}, {formatted(taken.high, kind)}]"
            few = f" (n {taken.n:,})" if 0 < taken.n < candidate.first_attempts else ""
            cells.append(f"{formatted(taken.median, kind, taken.at_least)}{spread}{few}")
        rows.append((candidate.name, *cells))
    return table(("candidate", *(name.replace("_", " ") for name in MEASURES)), rows, _WIDEST)


def _without(comparison: Comparison) -> str:
    """Of how many first attempts a measure is missing, and mostly why."""
    lines = []
    for name in comparison.candidates[0].took:
        absent: Counter[str] = Counter()
        for candidate in comparison.candidates:
            absent.update(candidate.took[name].absent)
        if absent:
            reasons = ", ".join(f"{n:,} {reason.replace('_', ' ')}" for reason, n in absent.most_common(_REASONS))
            lines.append(f"\nno {name.replace('_', ' ')}: {absent.total():,} first attempts ({_printable(reasons)})")
    return "".join(lines)


def _printable(text: str) -> str:
    from agentsignals.cli.output import printable

    return printable(text)


def _paired(pairs: Sequence[Pair], yes_or_no: bool) -> str:
    from agentsignals.cli.output import table

    rows = []
    for pair in pairs:
        p = pair.paired
        spread = "" if p.low is None or p.high is None else f"{_gap(p.low, yes_or_no)} to {_gap(p.high, yes_or_no)}"
        row = (pair.candidate, p.tasks, _gap(p.value, yes_or_no), spread, p.gained, p.lost, p.p, pair.q, p.test)
        rows.append(row)
    return table(("candidate", "tasks", "difference", "95%", "better", "worse", "p", "q", "test"), rows, _WIDEST)


def _unpaired(pairs: Sequence[Pair], yes_or_no: bool) -> str:
    from agentsignals.cli.output import table

    rows = []
    for pair in pairs:
        u = pair.unpaired
        sides = [(side.n, _figure(side.value, yes_or_no)) for side in (u.candidate, u.baseline)]
        spread = "" if u.low is None or u.high is None else f"{_gap(u.low, yes_or_no)} to {_gap(u.high, yes_or_no)}"
        rows.append((pair.candidate, *sides[0], *sides[1], _gap(u.value, yes_or_no), spread))
    names = ("candidate", "its own n", "its own", "baseline's n", "baseline's", "difference", "95%")
    return table(names, rows, _WIDEST)


def _rate(yes_or_no: bool) -> str:
    return "share" if yes_or_no else "mean"


def _estimate(estimate: Estimate, yes_or_no: bool) -> tuple[str, str]:
    return _figure(estimate.value, yes_or_no), _spread(estimate, yes_or_no).strip()


def _spread(estimate: Estimate, yes_or_no: bool) -> str:
    if estimate.low is None or estimate.high is None:
        return ""
    return f" [{_figure(estimate.low, yes_or_no)}, {_figure(estimate.high, yes_or_no)}]"


def _share(value: float | None) -> str:
    return _figure(value, True)


def _figure(value: float | None, yes_or_no: bool) -> str:
    return "–" if value is None else f"{value:.1%}" if yes_or_no else f"{value:.4g}"


def _gap(value: float | None, yes_or_no: bool) -> str:
    return "–" if value is None else f"{value * 100:+.1f} points" if yes_or_no else f"{value:+.4g}"


VERB = Verb(
    "compare",
    "candidates under their treatments: paired where tasks match, first attempts apart from retries",
    "compare --by model --outcome resolved",
    arguments,
    run,
)
