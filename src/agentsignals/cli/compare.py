"""The verb `compare`: candidates of eval runs as tables and sentences, and a gate's outcome as JUnit XML."""

from __future__ import annotations

import argparse
import html
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import asdict

import agentsignals
from agentsignals.cli.analyze import named_again, selected_store
from agentsignals.cli.output import Printed, json_text, print_result, printable
from agentsignals.errors import ExportError, UsageError
from agentsignals.questions.compare import Comparison, treatments_option
from agentsignals.questions.compare.attempts import MEASURES
from agentsignals.questions.compare.candidate import SPENT, Candidate, Estimate
from agentsignals.questions.compare.gate import Gate, gate, parse_condition
from agentsignals.questions.compare.pairs import Pair, gap_text, weight_text, without_tasks
from agentsignals.questions.question import MISSING, formatted, interval, signed, times
from agentsignals.redaction import redacted_in
from agentsignals.stats.intervals import FEWEST_CLUSTERS
from agentsignals.store import disk

_RESULTS = {"met": "failure", "cannot tell": "error"}


def _write_junit(path: Path, checked: Gate) -> None:
    """Write a test case for each condition and candidate (https://github.com/testmoapp/junitxml).

    A condition that is met is a failure, one that can't be told an error: neither is a pass. ExportError where the file
    can't be written.
    """

    def attribute(text: str) -> str:  # names come out of traces: without what XML has no way to say, and escaped
        return html.escape(printable(text))

    verdicts = Counter(check.verdict for check in checked.checks)
    counts = f'tests="{len(checked.checks)}" failures="{verdicts["met"]}" errors="{verdicts["cannot tell"]}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites {counts}>",
        f'<testsuite name="agentsignals compare" {counts} skipped="0">',
    ]
    for check in checked.checks:
        because, result = attribute(check.because), _RESULTS.get(check.verdict)
        inside = f"<system-out>{because}</system-out>"
        if result:
            inside = f'<{result} message="{check.verdict}: {because}"/>'
        candidate, name = attribute(check.candidate or "no candidate"), attribute(f"not ({check.condition})")
        lines.append(f'<testcase classname="{candidate}" name="{name}">{inside}</testcase>')
    try:
        disk.write_atomically(path, "\n".join([*lines, "</testsuite>", "</testsuites>", ""]).encode())
    except OSError as problem:
        raise ExportError(f"{path} can't be written: {problem.strerror or problem}.", "Name another file.") from problem


# A comparison in words: the same parts as aligned text and as Markdown.

_LACKING = 4
_LISTED = 25
"""Candidates in the tables; --json has all."""
_NAMED = 12
"""Tasks that are named of those that tell nothing; --json has all."""
_WIDEST, _REASONS = 70, 3
_ALWAYS = 3
"""Columns of the table of power that are shown although they may be empty."""
_VERDICTS = ("met", "cannot tell", "not met")
"""Verdicts of a gate, those that matter most first."""

Row = tuple[Any, ...]


class Part(NamedTuple):
    """A table with its sentences; either may be empty."""

    title: str
    names: tuple[str, ...] = ()
    rows: Sequence[Row] = ()
    lines: Sequence[str] = ()
    before: str = ""
    """In text, what each line begins with."""
    notes: Mapping[str, str] = {}
    """Sentences about columns, by name: each is printed where its column is."""


_OPTIONAL = (
    *("worst to best", "interval", "infrastructure", "not judged", "known", "tasks", "attempts", "its own n"),
    *("baseline's n", "too few runs", "weighted p", "test", "break-even", "more", "less", "same direction"),
    *("detectable", "retries"),
)
"""Columns that a narrow terminal goes without first."""


def comparison_text(
    comparison: Comparison, checked: Gate | None = None, *, as_markdown: bool = False, named: str = ""
) -> str:
    """Return the comparison as tables and sentences, and what came of the gate. `named`: the options that name the
    store and the sessions, for commands that are shown."""
    answer = Printed(markdown=as_markdown, widest=_WIDEST)
    if as_markdown:
        answer.lines(["Candidates compared"], "# ")
    for part in _parts(comparison, checked, named):
        title = part.title or ("What speaks against it" if part.before else "")
        answer.part(title if as_markdown else part.title, part.names, part.rows, part.lines, part.before, _OPTIONAL,
                    part.notes)  # fmt: skip
    return str(answer)


def _parts(comparison: Comparison, checked: Gate | None, named: str) -> Iterator[Part]:
    """Yield the sections of a comparison as `compare` prints them, first the answer, last the gate."""
    yes = comparison.yes_or_no
    rate = "share" if yes else "mean"
    shown, pairs = comparison.candidates[:_LISTED], comparison.pairs[:_LISTED]
    yield Part("", lines=list(_head(comparison)))
    if comparison.conclusions:
        concluded = {conclusion.candidate: conclusion for conclusion in comparison.conclusions}
        sharing = [concluded[pair.candidate] for pair in pairs if pair.paired.tasks]
        lines = [f"{c.word.upper()}: {c.sentence}" for c in sharing]
        nothing = without_tasks(comparison.pairs)
        lines += [f"NOTHING SHARED: {nothing}"] if nothing else []
        if comparison.unlike:
            lines.append("These candidates differ in other settings, too (see above), which may explain a difference.")
        yield Part(f"conclusions, compared with {printable(comparison.baseline or '')}", lines=lines, before="  ")

    rows: list[Row] = []
    for c in shown:
        bounds = ""  # what missing outcomes allow; none where none is missing
        if c.bounds is not None and c.bounds.worst != c.bounds.best:
            bounds = interval(c.bounds.worst, c.bounds.best, "{:.1%}")
        rows.append((c.name, *_estimate(c.first, yes), c.attempts, c.tasks, c.first.n, sum(c.absent.values()),
                     sum(c.infrastructure.values()), c.first.method, bounds))  # fmt: skip
    names: tuple[str, ...] = ("candidate", rate, "95%", "attempts", "tasks", "known", "not judged", "infrastructure",
                              "interval", "worst to best")  # fmt: skip
    yield Part("candidates", names, rows)
    if any(c.zeros.judged < c.zeros.n for c in shown):
        columns = [name for name in _ZEROS if any(getattr(c.zeros, name) for c in shown)]
        rows = [
            (c.name, f"{c.zeros.judged:,} of {c.zeros.n:,}", *(getattr(c.zeros, name) for name in columns))
            for c in shown
            if c.zeros.n
        ]
        names = ("candidate", "failures", *(_ZEROS[name] for name in columns))
        yield Part("attempts with reward 0, by cause", names, rows)

    if any(candidate.retries for candidate in shown):
        yield _retries(shown, yes)
    if any(candidate.passes for candidate in shown):
        rows = [
            (c.name, p.k, *_estimate(p.pass_at_k, True), *_estimate(p.pass_hat_k, True), p.pass_at_k.tasks, p.left_out)
            for c in shown
            for p in c.passes
        ]
        names = ("candidate", "k", "pass@k", "95%", "pass^k", "95%", "tasks", "too few runs")
        weight = "  Each task counts the same here, and each attempt in the share above: pass@1 can differ from it."
        told = {
            "pass@k": "at least one of k runs solves the task",
            "pass^k": "all k runs solve the task",
            "too few runs": "tasks with fewer than k judged runs, which are not counted",
        }
        yield Part("repeated runs: pass@k and pass^k, mean and interval over tasks", names, rows, [weight], notes=told)
    matched = [pair for pair in pairs if pair.paired.tasks]
    if matched:
        yield _paired(matched, comparison)
    tested = [pair for pair in matched if pair.paired.tasks >= FEWEST_CLUSTERS]
    if tested:
        yield _power(tested, yes)
    if any(t.p is not None for pair in matched for t in pair.took.values()):
        yield _took_within(matched, comparison)
    silent = comparison.silent
    if silent.tasks:
        lines = [
            f"identical for all candidates: {len(silent.solved) + len(silent.failed):,} of"
            f" {times(silent.tasks, 'task')} with outcomes of several candidates. "
            f"{f'Only the other {silent.telling:,}' if silent.telling else 'None'} can show a difference."
        ]
        words = ("solved by all", "solved by none") if yes else ("identical for all", "")
        for word, tasks in zip(words, (silent.solved, silent.failed), strict=True):
            if tasks:
                more = f" and {len(tasks) - _NAMED:,} more (--json has all)" if len(tasks) > _NAMED else ""
                lines.append(f"{word}, {len(tasks):,}: {', '.join(tasks[:_NAMED])}{more}")
        yield Part("tasks with identical outcomes", lines=lines, before="  ")

    alone = [pair for pair in pairs if pair.unpaired.candidate.n and pair.unpaired.baseline.n]
    if alone:
        rows = []
        for pair in alone:
            u = pair.unpaired
            sides = (x for side in (u.candidate, u.baseline) for x in (side.n, _figure(side.value, yes)))
            rows.append((pair.candidate, *sides, gap_text(u.value, yes), _ends(u.low, u.high, yes)))
        names = ("candidate", "its own n", "its own", "baseline's n", "baseline's", "difference", "95%")
        yield Part("attempts at tasks that only one of the two tried", names, rows)

    yield _took(shown, comparison)
    if yes:
        spent = [name for name in SPENT if any(c.per_solved[name].n for c in shown)]
        rows = [
            (
                c.name,
                *(formatted(p.value, MEASURES[name][1], p.at_least) for name in spent if (p := c.per_solved[name])),
            )
            for c in shown
        ]
        if spent:
            title = "sum over all judged attempts, divided by the number of solved ones"
            yield Part(title, ("candidate", *map(_measure, spent)), rows)
    if len(comparison.candidates) > _LISTED:
        yield Part("", lines=[f"and {len(comparison.candidates) - _LISTED} more (--json has all)"])
    if comparison.other_groups:
        lines = []
        for group in comparison.other_groups[:_LISTED]:
            more = f" and {len(group.candidates) - _LACKING:,} more" if len(group.candidates) > _LACKING else ""
            listed = f"{', '.join(group.candidates[:_LACKING])}{more}"
            size = f"{times(group.attempts, 'attempt')} at {times(group.tasks, 'task')}"
            lines.append(f"  {listed} ({size}): {'. '.join(group.reasons)}.")
            lines += [f"    {group.command}{named}"] if group.command else []
        if len(comparison.other_groups) > _LISTED:
            lines.append(f"  and {len(comparison.other_groups) - _LISTED:,} more groups (--json has all)")
        yield Part("not compared: other tasks, datasets or limits", lines=lines)
    if comparison.warnings:
        yield Part("", lines=comparison.warnings, before="warning: ")
    if checked is not None:
        checks = sorted(checked.checks, key=lambda check: _VERDICTS.index(check.verdict))
        lines = [f"  {check.verdict:11}  {check.condition}  {check.candidate}: {check.because}" for check in checks]
        lines += [f"  not checked  {name}: no shared task with the baseline" for name in checked.not_compared]
        yield Part(f"gate        {checked.ending.upper()}, decided by {checked.decided_by}", lines=lines)


def _head(comparison: Comparison) -> Iterator[str]:
    """Yield the lines above a comparison: outcome, candidates, baseline, what is left out."""
    retries = ", retries excluded" if any(candidate.retries for candidate in comparison.candidates) else ""
    what = f"{'share' if comparison.yes_or_no else 'mean'} of attempts{retries}"
    yield f"outcome     {comparison.outcome} ({comparison.signal}), {what}"
    attempts = times(comparison.attempts, "attempt")
    yield f"candidates  {len(comparison.candidates):,} by {', '.join(comparison.by)}, of {attempts}"
    if comparison.validation:
        yield f"rests on    {comparison.validation}"
    if comparison.pairs:
        yield f"baseline    {comparison.baseline}"
    if comparison.regression_weight != 1:
        yield f"regression  weighted {comparison.regression_weight:g} times an improvement"
    for reason in comparison.unlike:
        yield f"UNLIKE      {reason}"
    if comparison.common_tasks is not None:
        lacking = [f"{c.name} {c.missing_tasks:,}" for c in comparison.candidates if c.missing_tasks]
        more = f" and {len(lacking) - _LACKING:,} more" if len(lacking) > _LACKING else ""
        shares = f"of {comparison.common_tasks:,} common tasks; tasks missing: {', '.join(lacking[:_LACKING])}{more}"
        yield f"rates       {shares if comparison.common_tasks else 'each of its own tasks: none is shared by all'}"
    if comparison.unrecorded:
        yield f"left out    {times(comparison.unrecorded, 'attempt')} without a recorded candidate"
    if comparison.proposed_treatments:
        yield f"no model    folder names may contain it: {treatments_option(comparison.proposed_treatments)}"


_ZEROS = {"tests": "failed by tests"} | {
    name: name.replace("_", " ")
    for name in ("no_artifact", "limit", "agent_not_started", "verifier_not_run", "infrastructure", "not_judged")
}
"""Kinds of recorded zeros, as a table names them."""


def _retries(shown: Sequence[Candidate], yes: bool) -> Part:
    rows = []
    for candidate in shown:
        if not candidate.retries:
            continue
        within = ", ".join(f"{w.attempts}: {_figure(w.solved.value, True)}" for w in candidate.within)
        recovery = candidate.recovery
        recovered = ""
        if recovery is not None:
            of = f"{recovery.failed:,} failed, {recovery.retried:,} retried"
            share, ends = _estimate(recovery.solved, True)
            recovered = f"{share}{f' ({ends})' * bool(ends)} of {of}"
        rows.append((candidate.name, candidate.retries, *_estimate(candidate.retry, yes), within, recovered))
    names = ("candidate", "retries", "share" if yes else "mean", "95%", "solved within", "recovered")
    return Part("retries, reported separately because only failures are retried", names, rows)


def _paired(pairs: Sequence[Pair], comparison: Comparison) -> Part:
    """Return the section of differences within matched tasks, a row a candidate."""
    yes, weighted = comparison.yes_or_no, comparison.regression_weight != 1
    rows = []
    for pair in pairs:
        p, w = pair.paired, pair.weighed
        even = ""
        if w is not None and p.gained + p.lost:
            even = f"{weight_text(w.break_even)}{interval(w.low, w.high, weight_text, ' ({})') * (w.low != w.high)}"
        row = (pair.candidate, p.tasks, gap_text(p.value, yes), _ends(p.low, p.high, yes), p.gained, p.lost, p.p,
               pair.p_adjusted, p.test, even)  # fmt: skip
        rows.append((*row, w.p if w else None, pair.weighed_p_adjusted) if weighted else row)
    up_down = ("better", "worse") if comparison.more_is_better else ("higher", "lower")
    able = sum(pair.p_adjusted is not None for pair in comparison.pairs)
    names: tuple[str, ...] = (
        "candidate",
        "tasks",
        "difference",
        "95%",
        *up_down,
        "p",
        "adjusted",
        "test",
        "break-even",
    )
    notes = {
        "difference": "mean over matched tasks, each with the same weight; not the difference of the two shares above",
        "adjusted": f"p by Holm's method, over {times(able, 'candidate')} with six or more common tasks",
        "break-even": "improvements that one regression costs where both candidates are worth the same, with its 95%"
        " interval",
    }
    if weighted:
        names = (*names, "weighted p", "adjusted")
    return Part("compared with the baseline within matched tasks", names, rows, notes=notes)


def _power(pairs: Sequence[Pair], yes: bool) -> Part:
    """Return the section on power: the difference that these tasks could show, and how many tasks would be enough."""
    rows = []
    for pair in pairs:
        power = pair.power
        if power is None:
            continue
        split = "none can" if power.must_agree is None else f"{power.must_agree} of {power.changed}"
        split = split if power.method == "exact McNemar" else ""
        write = partial(gap_text, yes_or_no=yes, signed=False)
        shows = write(power.detectable) + interval(power.low, power.high, write, " ({})") * (power.low != power.high)
        rows.append((pair.candidate, pair.paired.tasks, power.changed, split, shows, power.tasks_needed,
                     power.attempts_needed, power.tasks_for_telling))  # fmt: skip
    names = ("candidate", "tasks", "changed", "same direction", "detectable", "tasks needed", "or runs a task",
             "tasks for 10 points")  # fmt: skip
    kept = [n for n in range(len(names)) if n < _ALWAYS or any(row[n] not in (None, "") for row in rows)]
    level = max((pair.power.level for pair in pairs if pair.power is not None), default=0.05)
    notes = {
        "changed": "tasks with different outcomes for the two candidates",
        "same direction": f"changed tasks that must favour one candidate for a two-sided p below {level:.2g}",
        "detectable": "smallest difference that these tasks detect with 80% power; in brackets, if any, at the ends of"
        " the 95% interval of the share of changed tasks",
        "tasks needed": "to detect the difference seen with 80% power",
        "or runs a task": "runs of these tasks that would detect it; – where no number does",
    }
    cells = [tuple(MISSING if row[n] is None else row[n] for n in kept) for row in rows]
    return Part("power: tasks and runs needed", tuple(names[n] for n in kept), cells, notes=notes)


def _took_within(pairs: Sequence[Pair], comparison: Comparison) -> Part:
    """Return the section on usage (cost, tokens, time) within matched tasks, a row a candidate and measure."""
    family = sum(t.p is not None for pair in comparison.pairs for t in pair.took.values())
    rows = []
    for pair in pairs:
        for name, t in pair.took.items():
            kind = MEASURES[name][1]
            if t.p is not None:
                ends = interval(t.low, t.high, partial(signed, kind=kind))
                rows.append((pair.candidate, _measure(name), t.tasks, signed(t.value, kind), ends, t.more,
                             t.less, t.p, t.p_adjusted))  # fmt: skip
    names = ("candidate", "measure", "tasks", "median difference", "95%", "more", "less", "p", "adjusted")
    notes = {
        "p": "sign test",
        "adjusted": f"Holm's method, over {family:,} pairs of a candidate and a measure with six or more tasks",
    }
    return Part("usage, compared with the baseline within matched tasks", names, rows, notes=notes)


def _took(shown: Sequence[Candidate], comparison: Comparison) -> Part:
    """Return what attempts took; how many lack a measure, and mostly why, once for measures that lack alike."""
    rows: list[Row] = []
    lacking: dict[str, list[str]] = {}
    for name in MEASURES:
        absent: Counter[str] = Counter()
        for candidate in comparison.candidates:
            absent.update(candidate.took[name].absent)
        if absent:
            reasons = ", ".join(f"{n:,} {reason.replace('_', ' ')}" for reason, n in absent.most_common(_REASONS))
            lacking.setdefault(f"{times(absent.total(), 'attempt')} ({reasons})", []).append(f"no {_measure(name)}")
    lines = [f"  {', '.join(names)}: {told}" for told, names in lacking.items()]
    measures = {name: kind for name, (_, kind) in MEASURES.items() if any(c.took[name].n for c in shown)}
    for candidate in shown:
        cells = []
        for name, kind in measures.items():
            taken = candidate.took[name]
            spread = interval(taken.low, taken.high, partial(formatted, kind=kind), " ({})")
            few = f" (n {taken.n:,})" if 0 < taken.n < taken.n + sum(taken.absent.values()) else ""
            cells.append(f"{formatted(taken.median, kind, taken.at_least)}{spread}{few}")
        rows.append((candidate.name, *cells))
    if not measures:
        return Part("usage", lines=lines)
    return Part("usage: median, 95% interval", ("candidate", *map(_measure, measures)), rows, lines)


def _measure(name: str) -> str:
    """Name a measure without its unit, which its values have."""
    return name.removesuffix("_usd").removesuffix("_s").replace("_", " ")


def _ends(low: float | None, high: float | None, yes: bool) -> str:
    """Return an interval of a difference; of shares without the unit, which the difference beside it has."""
    return interval(low, high, lambda end: gap_text(end, yes).removesuffix(" points"))


def _estimate(estimate: Estimate, yes: bool) -> tuple[str, str]:
    """Return an estimate and its interval, which may be empty."""
    return _figure(estimate.value, yes), interval(estimate.low, estimate.high, "{:.0%}" if yes else "{:.4g}")


def _figure(value: float | None, yes: bool) -> str:
    return "–" if value is None else f"{value:.1%}" if yes else f"{value:.4g}"


# `compare`: candidates under their treatments.


def run_compare(options: argparse.Namespace) -> int:
    for condition in options.fail_if:
        parse_condition(condition)  # a slip is said before anything is read
    if options.junit and not options.fail_if:
        raise UsageError(
            "--junit writes the result of --fail-if, which is missing.", "Add it: --fail-if 'regressions > 0'."
        )
    comparison = agentsignals.compare(
        selected_store(options),
        options.by,
        baseline=options.baseline,
        outcome=options.outcome,
        treatments=options.treatments,
        anyway=options.anyway,
        where=options.where,
        regression_weight=options.regression_weight,
        only=options.only,
    )
    named = named_again(options)
    if not options.fail_if:
        comparison = redacted_in(comparison)
        return print_result(options, comparison, partial(comparison_text, as_markdown=options.markdown, named=named))
    by_value = options.decide_by == "value"
    checked = redacted_in(gate(comparison, options.fail_if, baseline=options.baseline, by_value=by_value))
    comparison = redacted_in(comparison)
    if options.junit:
        _write_junit(options.junit, checked)
    if options.json:
        outcome = {**asdict(checked), "exit_code": checked.exit_code}
        print(json_text({**asdict(comparison), "gate": outcome}))
    else:
        print(comparison_text(comparison, checked, as_markdown=options.markdown, named=named))
    return checked.exit_code
