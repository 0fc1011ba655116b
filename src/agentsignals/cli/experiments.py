"""Verbs about experiments: `tune`, `replicate`."""

from __future__ import annotations

import argparse
import shlex
import sys
from contextlib import suppress
from pathlib import Path

from agentsignals.cli.output import json_text, print_result, printable, table
from agentsignals.errors import StoreError
from agentsignals.experiments.replication import Plain, Value, Verdict, replicate
from agentsignals.experiments.tuning import Search, SearchStatus, drive, read_plan, search_status, treatment_text
from agentsignals.experiments.tuning.plan import Run
from agentsignals.questions.question import cut, interval
from agentsignals.store import Store

_LISTED = 15
"""Candidates in the table; --json has all."""


def run_tune(options: argparse.Namespace) -> int:
    search = Search(read_plan(options.plan), options.out, None if options.store is None else Path(options.store))
    if options.dry_run:
        following = search.proposal()
        if following is None:
            print(json_text({"run": None}) if options.json else "nothing: the search is over")
            return 0
        words = (following.treatment, following.task, search.output(following))
        argv, variables = search.plan.argv(*words), search.plan.variables(*words)
        before = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
        as_json = {"run": following, "argv": argv, "environment": variables}
        print(json_text(as_json) if options.json else printable(" ".join([*before, shlex.join(argv)])))
        return 0

    def tell(begun: Run) -> None:
        phase = "held out" if begun.phase == "held_out" else "search"
        line = f"run {begun.number} of at most {search.plan.budget.runs}, {phase}, task {begun.task}:"
        if not options.quiet:
            print(printable(f"{line} {treatment_text(begun.treatment)}"), file=sys.stderr, flush=True)

    if not options.show:
        drive(search, tell)
    made = search_status(search)
    return print_result(options, made, lambda of: _status_text(of, search))


def _status_text(made: SearchStatus, search: Search) -> str:
    """Show how far a search is: best candidates, cost, confirmation, caveats."""
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
        rows = []
        for name, treatment, side in sides:
            share = "–" if side.value is None else f"{side.value:.0%}"
            share += interval(side.low, side.high, shown=" ({})")
            rows.append((name, treatment_text(treatment or {}), share, side.tasks, side.n))
        parts.append(
            "confirmed, on held-out tasks\n" + table(("", "settings", "solved, 95%", "tasks", "trials"), rows, 70)
            + f"\np {made.confirmed.difference.p:.3g} ({made.confirmed.difference.test})"
        )  # fmt: skip
    if made.tried:
        rows_tried = [
            (treatment_text(r.treatment), r.runs, f"{r.solved} of {r.trials}", f"{r.expected:.0%}", r.dropped)
            for r in made.tried[:_LISTED]
        ]
        names = ("settings", "runs", "solved", "expected", "dropped")
        parts.append(
            "in the search: the winner was chosen by these shares, so the first ones are too high\n"
            + table(names, rows_tried, 70)
        )
    if made.caveats:
        parts.append("\n".join(printable(f"warning: {line}") for line in made.caveats))
    if made.verdict == "under way":
        parts.append(f"the same command without --show goes on; its folder is {printable(str(search.folder))}")
    return "\n\n".join(parts)


# `replicate`: published claims against computed values.

_LONGEST_NOTE = 240


def run_replicate(options: argparse.Namespace) -> int:
    # The store that is named; with none named, the usual one if there is one and the claims have no data of theirs.
    store = Store(options.store) if options.store else None
    if store is None:
        with suppress(StoreError):
            store = Store()
    verdicts = replicate(options.claims, options.data, store)
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


def _text(verdicts: list[Verdict]) -> str:
    rows, reasons, without = [], [], dict[str, list[str]]()
    for v in verdicts:
        status = v.status.upper() if v.status == "fail" else v.status
        rows.append((status, v.claim, _value_text(v.expected), _value_text(v.computed), v.n))
        if v.status == "fail":
            reasons.append(f"{v.claim}: {v.note}")
        elif v.status == "untestable":
            without.setdefault(v.why, []).append(v.claim)
    for why, claims in without.items():  # one line a reason
        reasons.append(f"{claims[0]}{f' and {len(claims) - 1} more' if len(claims) > 1 else ''}: {why}")
    lines = [table(("status", "claim", "expected", "computed", "n"), rows, 80)]
    lines += ["", *(cut(printable(line), _LONGEST_NOTE) for line in reasons)] if reasons else []
    counted = {status: sum(v.status == status for v in verdicts) for status in ("pass", "fail", "untestable")}
    expected_failures = sum(v.status == "fail" and bool(v.prior_result) for v in verdicts)
    lines += [
        "",
        f"{counted['pass']} pass, {counted['fail']} fail ({expected_failures} of them known not to reproduce),"
        f" {counted['untestable']} untestable",
    ]
    return "\n".join(lines)


def _value_text(value: Value | None) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_figure(number)}" for name, number in value.items())
    return "" if value is None else _figure(value)


def _figure(value: Plain) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.4g}" if isinstance(value, float) else f"{value}"
