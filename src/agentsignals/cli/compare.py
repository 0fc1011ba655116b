"""`compare`: candidates under their treatments."""

from __future__ import annotations

import argparse
from pathlib import Path

from agentsignals.cli.verb import Verb


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
    add("--regression-weight", metavar="W", type=float, default=1.0,
        help="what a task that only the baseline solves counts; one of the candidate's counts 1 (default)")  # fmt: skip
    add("--anyway", action="store_true", help="compare candidates that had other tasks, data sets or limits")
    add("--markdown", action="store_true", help="the same as Markdown, for a pull request or a page")
    add("--where", metavar="SQL", default="true", help="a condition over the columns of `sessions` and `attempts`")
    add("--fail-if", metavar="CONDITION", action="append", default=[],
        help="a gate: exit 1 where a candidate meets it, 3 where that can't be told, else 0; may be repeated:"
        " 'solve_rate < baseline - 0.05', 'regressions > 0', 'cost_usd > 1.2 * baseline'")  # fmt: skip
    add("--decide-by", choices=("interval", "value"), default="interval",
        help="what must meet a condition: the whole 95%% interval (default), or the estimate")  # fmt: skip
    add("--junit", metavar="FILE", type=Path, help="also write the gate's outcome as JUnit XML")


def run(options: argparse.Namespace) -> int:
    import agentsignals
    from agentsignals.cli.comparison import as_markdown, in_words
    from agentsignals.cli.output import json_text
    from agentsignals.errors import UsageError
    from agentsignals.questions.compare.gate import gate, parse_condition
    from agentsignals.redaction import without_keys_in
    from agentsignals.store import Store

    for condition in options.fail_if:
        parse_condition(condition)  # a slip is said before anything is read
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
        regression_weight=options.regression_weight,
    )
    render = as_markdown if options.markdown else in_words
    if not options.fail_if:
        comparison = without_keys_in(comparison)
        print(json_text(comparison) if options.json else render(comparison))
        return 0
    by_value = options.decide_by == "value"
    checked = without_keys_in(gate(comparison, options.fail_if, baseline=options.baseline, by_value=by_value))
    comparison = without_keys_in(comparison)
    if options.junit:
        from agentsignals.cli import comparison as junit

        junit.write(options.junit, checked)
    if options.json:
        from msgspec.structs import asdict

        outcome = {**asdict(checked), "exit_code": checked.exit_code}
        print(json_text({**asdict(comparison), "gate": outcome}))
    else:
        print(render(comparison, checked))
    return checked.exit_code


VERB = Verb(
    "compare",
    "candidates under their treatments: paired where tasks match, first attempts apart from retries",
    "compare --by model --outcome resolved",
    arguments,
    run,
)
