"""`tune`: a search over knobs, run, shown, or told what it would run next."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from agentsignals.cli.output import json_text, printable, table
from agentsignals.errors import StoreError
from agentsignals.experiments.claims import Plain, Value
from agentsignals.experiments.replication import Verdict, replicate
from agentsignals.experiments.tuning import Search, SearchStatus, drive, read_plan, search_status, treatment_text
from agentsignals.experiments.tuning.plan import Run
from agentsignals.questions.compare import Estimate
from agentsignals.store import Store

_LISTED = 15
"""Candidates in the table; --json has all."""


def run_tune(options: argparse.Namespace) -> int:
    search = Search(read_plan(options.plan), options.out, None if options.store is None else Path(options.store))
    if options.dry_run:
        return _would_run(search, options.json)
    if not options.show:
        drive(search, lambda begun: None if options.quiet else _say(search, begun))
    made = search_status(search)
    print(json_text(made) if options.json else in_words(made, search))
    return 0


def _would_run(search: Search, as_json: bool) -> int:
    following = search.proposal()
    if following is None:
        print(json_text({"run": None}) if as_json else "nothing: the search is over")
        return 0
    words = (following.treatment, following.task, search.output(following))
    argv, variables = search.plan.argv(*words), search.plan.variables(*words)
    if as_json:
        print(json_text({"run": following, "argv": argv, "environment": variables}))
    else:
        before = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
        print(printable(" ".join([*before, shlex.join(argv)])))
    return 0


def _say(search: Search, begun: Run) -> None:
    phase = "held out" if begun.phase == "held_out" else "search"
    line = f"run {begun.number} of at most {search.plan.budget.runs}, {phase}, task {begun.task}:"
    line += f" {treatment_text(begun.treatment)}"
    print(printable(line), file=sys.stderr, flush=True)


def in_words(made: SearchStatus, search: Search) -> str:
    """Return the state of a search as sentences and a table."""

    cost = f"{'≥' if made.unpriced else ''}${made.cost_usd:,.2f}" if made.attempts > made.unpriced else "cost unknown"
    extra = "".join(f", {n} {what}" for n, what in ((made.interrupted, "interrupted"), (made.failed, "failed")) if n)
    head = [
        f"answer      {made.answer}",
        f"outcome     {made.outcome}, of a trial: solved by one of its attempts",
        f"candidates  {len(made.tried):,} of {made.candidates:,} tried, by {made.sampler}",
        f"runs        {made.runs:,} of at most {made.budget_runs:,}{extra}; {cost}, {made.wall_time_s:,.0f} s",
        f"default     {treatment_text(made.default)}",
    ]
    if made.over:
        head.append(f"ended       {made.over}")
    head += [f"left out    {n:,}: {why}" for why, n in made.without.items()]
    parts = ["\n".join(printable(line) for line in head)]
    if made.confirmed is not None:
        sides = (("winner", made.winner, made.confirmed.winner), ("default", made.default, made.confirmed.default))
        rows = [
            (name, treatment_text(treatment or {}), _share(side), side.tasks, side.n) for name, treatment, side in sides
        ]
        parts.append(
            "confirmed, on held-out tasks\n" + table(("", "knobs", "solved, 95%", "tasks", "trials"), rows, 70)
            + f"\np {made.confirmed.difference.p:.3g} ({made.confirmed.difference.test})"
        )  # fmt: skip
    if made.tried:
        rows_tried = [
            (
                treatment_text(row.treatment),
                row.runs,
                f"{row.solved} of {row.trials}",
                f"{row.expected:.0%}",
                row.dropped,
            )
            for row in made.tried[:_LISTED]
        ]
        names = ("knobs", "runs", "solved", "expected", "dropped")
        parts.append(
            "in the search: what the winner was chosen by, so too high of the first lines\n"
            + table(names, rows_tried, 70)
        )
    if made.caveats:
        parts.append("\n".join(printable(f"mind: {line}") for line in made.caveats))
    if made.verdict == "under way":
        parts.append(f"the same command without --show goes on; its folder is {printable(str(search.folder))}")
    return "\n\n".join(parts)


def _share(side: Estimate) -> str:
    if side.value is None:
        return "–"
    spread = f" [{side.low:.0%}, {side.high:.0%}]" if side.low is not None and side.high is not None else ""
    return f"{side.value:.0%}{spread}"


# `replicate`: published claims against computed values.

_LONGEST_NOTE = 240


def run_replicate(options: argparse.Namespace) -> int:
    verdicts = replicate(options.claims, options.data, _store(options))
    print(json_text(verdicts) if options.json else _text(verdicts))
    news = [v.claim for v in verdicts if v.status == "fail" and not v.prior_result]
    if news:
        more = f" and {len(news) - 5} more" if len(news) > 5 else ""
        print(f"agentsignals: {len(news)} CLAIMS FAILED: {', '.join(news[:5])}{more}", file=sys.stderr)
    statuses = {v.status for v in verdicts}
    if statuses <= {"untestable"}:
        print("agentsignals: not one claim could be tested", file=sys.stderr)
        return 1
    return 1 if "fail" in statuses or (options.strict and "untestable" in statuses) else 0


def _store(options: argparse.Namespace) -> Store | None:
    """The store that is named; with none named, the usual one if there is one and the claims have no data of theirs."""

    if options.store:
        return Store(options.store)
    try:
        return Store()
    except StoreError:
        return None


def _text(verdicts: list[Verdict]) -> str:
    rows = [
        (
            v.status.upper() if v.status == "fail" else v.status,
            v.claim,
            _value_text(v.expected),
            _value_text(v.computed),
            v.n,
        )
        for v in verdicts
    ]
    lines = [table(("status", "claim", "expected", "computed", "n"), rows, 80), *_reasons(verdicts)]
    counted = {status: sum(v.status == status for v in verdicts) for status in ("pass", "fail", "untestable")}
    expected_failures = sum(v.status == "fail" and bool(v.prior_result) for v in verdicts)
    lines += [
        "",
        f"{counted['pass']} pass, {counted['fail']} fail ({expected_failures} of them known not to reproduce),"
        f" {counted['untestable']} untestable",
    ]
    return "\n".join(lines)


def _reasons(verdicts: list[Verdict]) -> list[str]:
    """Why claims failed, one by one; why others are untestable, one line a reason."""

    lines = [f"{v.claim}: {v.note}" for v in verdicts if v.status == "fail"]
    without: dict[str, list[str]] = {}
    for v in verdicts:
        if v.status == "untestable":
            without.setdefault(v.why, []).append(v.claim)
    for why, claims in without.items():
        lines.append(f"{claims[0]}{f' and {len(claims) - 1} more' if len(claims) > 1 else ''}: {why}")
    return ["", *(_short(printable(line)) for line in lines)] if lines else []


def _value_text(value: Value | None) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_figure(number)}" for name, number in value.items())
    return "" if value is None else _figure(value)


def _figure(value: Plain) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.4g}" if isinstance(value, float) else f"{value}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_NOTE else text[: _LONGEST_NOTE - 1] + "…"
