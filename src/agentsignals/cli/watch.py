"""`watch`: the session at work as a line on the terminal; with `--hook` what an agent's hook calls."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from agentsignals.cli.verb import Verb

if TYPE_CHECKING:
    from agentsignals.model import Session
    from agentsignals.sources import RawFile

_EVERY_S = 2.0
_SHARE = 0.05
"""Looking for the file at work and reading it takes no more of one core."""
_TRIED = 20
"""Files, the last changed first, of which one is a transcript."""
_MOST_BYTES = 512 * 1024 * 1024


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "source",
        metavar="SOURCE",
        nargs="?",
        help="a transcript, a folder or an agent's name (default: the agents on this machine)",
    )
    add("--once", action="store_true", help="say how it stands now, and end")
    add("--hook", action="store_true", help="answer the hook event on stdin: is this a loop? (docs/watch.md)")


def run(options: argparse.Namespace) -> int:
    """Until Ctrl-C; once where that, or JSON, is asked for."""
    if options.hook:
        from agentsignals.cli import hook

        return hook.run()
    from agentsignals.cli.output import json_text
    from agentsignals.ingest.pipeline import default_sources

    specs = [options.source] if options.source else default_sources()
    if options.json or options.once:
        state = _state(_at_work(specs)[1])
        print(json_text(state) if options.json else _line(state))
        return 0
    before: tuple[Any, ...] = ()
    while True:
        began = time.process_time()
        file, session = _at_work(specs)
        if (now := (file.uri, file.bytes, file.stamp)) != before:
            before = now
            print(_line(_state(session)), flush=True)
        time.sleep(max(_EVERY_S, (time.process_time() - began) / _SHARE))


def _at_work(specs: list[str]) -> tuple[RawFile, Session]:
    """The transcript that was changed last, and its session. SourceError where there is none."""
    import heapq

    from agentsignals.errors import FormatError, SourceError
    from agentsignals.ingest.pipeline import session_from_database, session_from_tail
    from agentsignals.sources import RawFile, open_source, path_of

    files = (f for spec in specs for f in open_source(spec) if isinstance(f, RawFile) and f.source == "local")
    for file in heapq.nlargest(_TRIED, files, key=lambda f: f.stamp or 0):
        try:
            return file, session_from_database(file) if file.container else session_from_tail(
                path_of(file.uri), _MOST_BYTES
            )
        except (FormatError, OSError):
            continue
    raise SourceError(f"No transcript is in {', '.join(specs)}.", "Name a transcript, a folder or an agent.")


def _state(session: Session) -> dict[str, Any]:
    """How a session stands."""
    from agentsignals.cli.hook import in_words
    from agentsignals.model import prices
    from agentsignals.stats.validation.benchmarks import loops
    from agentsignals.store.tables import totals
    from agentsignals.views.repeats import standing

    prices.apply(session)
    sums = totals(session)
    measured = loops()
    alarm = standing(session, measured.limits)
    return {
        "session": session.session_id,
        "agent": session.agent,
        "prompts": sums["n_prompts"],
        "calls": len(session.tool_calls),
        "failed": sum(call.status == "error" for call in session.tool_calls),
        "cost_usd": sums["cost_usd"],
        "at_least": sums["visible_output_tokens"] is not None,
        "loop": None if alarm is None else in_words(alarm.kind, alarm.times, alarm.name),
        "caveat": measured.in_words,
    }


def _line(state: dict[str, Any]) -> str:
    from agentsignals.cli.output import figure, printable
    from agentsignals.questions.formatting import formatted

    cost = formatted(state["cost_usd"], "usd", state["at_least"]) if state["cost_usd"] is not None else "cost unknown"
    loop = f"is this a loop? {state['loop']} ({state['caveat']})" if state["loop"] else "no loop seen"
    counts = f"{figure(state['prompts'])} prompts, {state['calls']:,} calls, {state['failed']:,} failed"
    return printable(f"{time.strftime('%H:%M:%S')}  {state['agent']} {state['session'][:8]}  {counts}, {cost}: {loop}")


VERB = Verb("watch", "the session at work, live; or its hook's answer: is this a loop?", "watch --once", arguments, run)
