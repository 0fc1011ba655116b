"""`what-if`: what the sessions of a period would have cost with another cache, model, context or plan."""

from __future__ import annotations

import argparse
import shlex
from datetime import UTC
from math import inf

from agentsignals.cli.analyze import select_sessions, store_with_sessions
from agentsignals.cli.output import print_result, printable, table
from agentsignals.errors import NothingFound, UsageError
from agentsignals.questions.question import formatted, interval, times
from agentsignals.questions.what_if import FEWEST_CONTEXT_TOKENS, Scenario, WhatIf, what_if
from agentsignals.store.index import main_context


def run_what_if(options: argparse.Namespace) -> int:
    if options.context_limit < FEWEST_CONTEXT_TOKENS:
        raise UsageError(
            f"--context-limit {options.context_limit} is too short for an agent's start and a summary.",
            f"Give {FEWEST_CONTEXT_TOKENS:,} tokens or more.",
        )
    if options.subscription is not None and not 0 < options.subscription < inf:
        raise UsageError(f"--subscription {options.subscription:g} is no price.", "Give USD a month, such as 100.")
    store = store_with_sessions(options)
    context = options.context or main_context(store.contexts())
    if options.since is None and options.until is None:  # this month, or the last one with a session
        from agentsignals.store.query import rows

        ((last,),) = rows(store, "SELECT max(started_at) FROM sessions", context)[1]
        if last is not None:
            options.since = options.until = f"{last.replace(tzinfo=UTC).astimezone():%Y-%m}"
            store.only = None
            select_sessions(store, options)
    made = what_if(
        store,
        context=context,
        model=options.to,
        work=options.work,
        subagents=options.subagents,
        context_tokens=options.context_limit,
        subscription=options.subscription,
    )
    if not made.cost_usd:
        raise NothingFound("No model call of these sessions has a cost.", "docs/prices.md says how to add prices.")
    return print_result(options, made, lambda made: _text(made, options.store))


def _text(made: WhatIf, folder: str | None) -> str:
    cost = formatted(made.cost_usd, "usd", made.at_least)
    span = f", {made.first} to {made.last}" if made.first else " without a time"
    lines = [f"{times(made.sessions, 'session')}{span}: {cost} at API prices", ""]
    rows = [
        (
            number,
            printable(scenario.name),
            formatted(scenario.cost_usd, "usd", made.at_least and scenario.id != "subscription"),
            f"{'<= ' if made.at_least and scenario.id == 'subscription' else ''}"
            f"{scenario.cost_usd / made.cost_usd - 1:+.1%}",
            interval(scenario.low_usd, scenario.high_usd, lambda usd: formatted(usd, "usd")),
        )
        for number, scenario in enumerate(made.scenarios, 1)
    ]
    lines.append(table(("", "instead", "cost", "change", "bounds"), rows))
    for number, scenario in enumerate(made.scenarios, 1):
        lines += ["", *_below(number, scenario, f" --store {shlex.quote(str(folder))}" if folder else "")]
    lines += ["", *(f"not shown: {name}: {why}" for name, why in made.not_asked.items())]
    if made.unpriced:
        lines.append(f"{times(made.unpriced, 'call')} without a price are in no figure.")
    if made.recorded:
        lines.append(
            f"The agent recorded the cost of {times(made.recorded, 'call')}. It is scaled in proportion to list prices."
        )
    return "\n".join(lines)


def _below(number: int, scenario: Scenario, named: str) -> list[str]:
    lines = [f"{number}. Exact: {scenario.exact}."]
    if scenario.assumed:
        lines.append(f"   Assumed: {scenario.assumed}.")
    if scenario.break_even is not None:
        lines.append(
            f"   {times(scenario.calls, 'call')} that cost {formatted(scenario.calls_usd, 'usd')}."
            f" They would cost the same with {scenario.break_even:.2f} times as many tokens."
        )
    if scenario.unpriced:
        lines.append(f"   {times(scenario.unpriced, 'call')} without such a price keep their cost.")
    for moved in scenario.largest:
        now, then = (usd if usd is None else formatted(usd, "usd") for usd in (moved.cost_usd, moved.then_usd))
        if now != then:
            amounts = now if then is None else f"{now} to {then}"
            lines.append(printable(f"   {amounts}: agentsignals show {shlex.quote(moved.session_id)}{named}"))
    return lines
