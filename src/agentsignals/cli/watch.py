"""`watch`: the session at work as a line on the terminal, with a warning where its calls repeat."""

from __future__ import annotations

import argparse
import re
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentsignals.model import Session
    from agentsignals.sources import RawFile

_TOOL = re.compile(r"[A-Za-z][\w.-]{0,39}", re.ASCII)
WORDS = {
    "failing": "{times} attempts at the same call with {tool} failed, and none succeeded in between",
    "alike": "{times} calls failed with the same result, the last one with {tool}",
    "same": "{tool} was called {times} times with the same arguments and results, and no edit in between",
    "undone": "{times} edits restored what an earlier edit had removed",
    "mostly": "{times} of the last {lately} calls failed",
}
_EVERY_S = 2.0
_SHARE = 0.05
"""Looking for the file at work and reading it takes no more of one core."""
_TRIED = 20
"""Files, the last changed first, of which one is a transcript."""
_MOST_BYTES = 512 * 1024 * 1024


def run_watch(options: argparse.Namespace) -> int:
    """Until Ctrl-C; once where that, or JSON, is asked for."""
    from agentsignals.cli.output import print_result
    from agentsignals.ingest.pipeline import default_sources

    specs = [options.source] if options.source else default_sources()
    upgrades = _upgrades(options.store)
    if options.json or options.once:
        state = _state(_at_work(specs)[1], upgrades)
        return print_result(options, state, lambda state: "\n".join([_line(state), *_upgrade_lines(state)]))
    before: tuple[Any, ...] = ()
    told: list[str] = []
    while True:
        began = time.process_time()
        file, session = _at_work(specs)
        if (now := (file.uri, file.bytes, file.stamp)) != before:
            before = now
            state = _state(session, upgrades)
            print(_line(state), flush=True)
            if told != (told := _upgrade_lines(state)) and told:
                print("\n".join(told), flush=True)
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
    raise SourceError(f"No session log was found in {', '.join(specs)}.", "Name a log file, a folder or an agent.")


def _upgrades(folder: str | None) -> dict[str, list[str]]:
    """Return what changed with a version or model, by agent, from the findings that the store keeps; nothing without a
    store, or with one that can't be read."""
    from agentsignals.cli.output import tell
    from agentsignals.errors import StoreError
    from agentsignals.questions.ranking import decode_findings
    from agentsignals.store import Store, resolve_folder, sidecars
    from agentsignals.store.index import INDEX_FILE

    found: dict[str, list[str]] = {}
    if not (resolve_folder(folder) / INDEX_FILE).exists():
        return found
    try:
        kept = decode_findings(sidecars.read_cache(Store(folder), "product"))
    except StoreError as problem:
        tell(f"What changed with the agent's versions is not shown: {problem.message}", problem.hint)
        return found
    for answer in kept.answers if kept is not None else ():
        topic, _, rest = answer.about.partition(".")
        if topic == "upgrade":
            found.setdefault(rest.rpartition(".")[0], []).append(answer.sentence)
    return found


def _upgrade_lines(state: dict[str, Any]) -> list[str]:
    from agentsignals.cli.output import printable

    return [printable(f"          changed: {sentence}") for sentence in state["changed"]]


def _state(session: Session, upgrades: dict[str, list[str]]) -> dict[str, Any]:
    """Return what `watch` shows of a session: cost, tokens, whether it repeats itself, what changed with its agent."""
    from agentsignals.formats import maker_of
    from agentsignals.model import prices
    from agentsignals.stats.validation import loops
    from agentsignals.store.tables import totals
    from agentsignals.views.repeats import standing

    prices.apply(session, maker_of)
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
        "changed": upgrades.get(session.agent, []),
    }


def _line(state: dict[str, Any]) -> str:
    from agentsignals.cli.output import printable
    from agentsignals.questions.question import formatted, times

    cost = formatted(state["cost_usd"], "usd", state["at_least"]) if state["cost_usd"] is not None else "cost unknown"
    loop = f"is this a loop? {state['loop']} ({state['caveat']})" if state["loop"] else "no loop seen"
    counts = f"{times(state['prompts'], 'prompt')}, {times(state['calls'], 'call')}, {state['failed']:,} failed"
    return printable(f"{time.strftime('%H:%M:%S')}  {state['agent']} {state['session'][:8]}  {counts}, {cost}: {loop}")


def in_words(kind: str, times: int, name: str) -> str:
    """An alarm as a clause. The tool's name is the trace's: it is said where it is a name, and quoted."""
    from agentsignals.views.repeats import LATELY

    tool = f'"{name}"' if _TOOL.fullmatch(name) else "a tool"
    text = WORDS[kind].format(times=times, tool=tool, lately=LATELY)
    return text[:1].upper() + text[1:]
