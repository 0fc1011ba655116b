"""`tune`: a search over knobs, run, shown, or told what it would run next."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agentsignals.cli.verb import Verb

if TYPE_CHECKING:
    from agentsignals.experiments.tuning import Search, SearchStatus
    from agentsignals.experiments.tuning.plan import Run
    from agentsignals.questions.compare import Estimate

_LISTED = 15
"""Candidates in the table; --json has all."""


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("plan", metavar="PLAN", type=Path, help="a TOML file: command, knobs, tasks, budget (docs/tune.md)")
    add(
        "--out", metavar="FOLDER", type=Path, required=True, help="the search's folder: a new one, or one to go on with"
    )
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--show", action="store_true", help="say how the search stands, and start nothing")
    choice.add_argument("--dry-run", action="store_true", help="say what would be run next, and start nothing")


def run(options: argparse.Namespace) -> int:
    from agentsignals.cli.output import json_text
    from agentsignals.experiments.tuning import Search, read_plan, search_status

    search = Search(read_plan(options.plan), options.out, None if options.store is None else Path(options.store))
    if options.dry_run:
        return _would_run(search, options.json)
    if not options.show:
        from agentsignals.experiments.tuning import drive

        drive(search, lambda begun: None if options.quiet else _say(search, begun))
    made = search_status(search)
    print(json_text(made) if options.json else in_words(made, search))
    return 0


def _would_run(search: Search, as_json: bool) -> int:
    import shlex

    from agentsignals.cli.output import json_text, printable

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
    from agentsignals.cli.output import printable
    from agentsignals.experiments.tuning import treatment_text

    phase = "held out" if begun.phase == "held_out" else "search"
    line = f"run {begun.number} of at most {search.plan.budget.runs}, {phase}, task {begun.task}:"
    line += f" {treatment_text(begun.treatment)}"
    print(printable(line), file=sys.stderr, flush=True)


def in_words(made: SearchStatus, search: Search) -> str:
    """How a search stands, as sentences and a table."""
    from agentsignals.cli.output import printable, table
    from agentsignals.experiments.tuning import treatment_text

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


VERB = Verb(
    "tune",
    "search over knobs: which treatment to run next, until the budget is spent; then a confirmation",
    "tune plan.toml --out search",
    arguments,
    run,
)
