"""`watch --hook`: what an agent's hook calls before or after each tool call. It answers on stdout and ends with 0.

The contract is the one of Claude Code's hooks (https://code.claude.com/docs/en/hooks), which others share: an event as
JSON on stdin, an answer as JSON on stdout; a silent end with 0 lets the agent go on. What goes back is our words and
numbers alone: the trace's text may have been written by anybody.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from agentsignals.model import Session
    from agentsignals.sources import RawFile


LONGEST_S = 2.0
"""After so long the agent goes on without an answer."""
_MOST_INPUT = 32 * 1024 * 1024
_BEFORE, _AFTER = "PreToolUse", ("PostToolUse", "PostToolUseFailure")
_TOOL = re.compile(r"[A-Za-z][\w.-]{0,39}", re.ASCII)
WORDS = {
    "failing": "{times} attempts at the same call with {tool} failed, and none succeeded in between",
    "alike": "{times} calls failed with the same result, the last one with {tool}",
    "same": "{tool} was called {times} times with the same arguments and results, and no edit in between",
    "undone": "{times} edits restored what an earlier edit had removed",
    "mostly": "{times} of the last {lately} calls failed",
}
_ADVICE = "Summarize what you learned, then try another approach or ask."


class HookEvent(Struct):
    """The fields of a hook event on stdin that are used."""

    hook_event_name: str = ""
    transcript_path: str = ""
    tool_name: str = ""
    tool_input: Any = None


def run() -> int:
    """Answers the event on stdin. Whatever fails is said on stderr alone: no failure of ours is the agent's."""

    def over(number: int, frame: object) -> None:
        raise TimeoutError(f"more than {LONGEST_S:g} seconds")

    has_clock = hasattr(signal, "setitimer")
    if has_clock:
        before = signal.signal(signal.SIGALRM, over)
        signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
    try:
        text = answer(sys.stdin.buffer.read(_MOST_INPUT))
    except Exception as problem:  # noqa: BLE001  (as the docstring says)
        print(f"agentsignals: no answer: {type(problem).__name__}: {problem}", file=sys.stderr)
        return 0
    finally:
        if has_clock:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
    if text:
        print(text)
    return 0


def answer(event: bytes) -> str:
    """The JSON to answer an event with; empty where there is nothing to say."""
    from agentsignals.ingest.pipeline import session_from_tail
    from agentsignals.stats.validation import loops
    from agentsignals.views.repeats import standing

    asked = msgspec.json.decode(event, type=HookEvent)
    if asked.hook_event_name not in (_BEFORE, *_AFTER):
        return ""
    measured = loops()
    alarm = standing(session_from_tail(asked.transcript_path), measured.limits)
    if alarm is None:
        return ""
    words = f"Is this a loop? {in_words(alarm.kind, alarm.times, alarm.name)}. {_ADVICE} ({measured.in_words})"
    reply: dict[str, Any] = {"systemMessage": f"agentsignals: {words}"}
    about: dict[str, Any] = {"hookEventName": asked.hook_event_name}
    if not measured.may_block:
        about["additionalContext"] = words
    elif asked.hook_event_name == _BEFORE and _repeats(asked, alarm.name, alarm.thing):
        about |= {"permissionDecision": "deny", "permissionDecisionReason": words}
    elif asked.hook_event_name in _AFTER:
        reply |= {"decision": "block", "reason": words}
    else:
        about["additionalContext"] = words
    return msgspec.json.encode({**reply, "hookSpecificOutput": about}).decode()


def in_words(kind: str, times: int, name: str) -> str:
    """An alarm as a clause. The tool's name is the trace's: it is said where it is a name, and quoted."""
    from agentsignals.views.repeats import LATELY

    tool = f'"{name}"' if _TOOL.fullmatch(name) else "a tool"
    text = WORDS[kind].format(times=times, tool=tool, lately=LATELY)
    return text[:1].upper() + text[1:]


def _repeats(asked: HookEvent, name: str, what: str) -> bool:
    """Return whether the call that is about to be made repeats what the session repeats."""
    from agentsignals.model import ToolCall
    from agentsignals.views.repeats import thing

    passed = asked.tool_input if isinstance(asked.tool_input, dict) else {}
    command = passed.get("command")
    if isinstance(command, str):
        coming = ToolCall(seq=0, turn=None, step=None, thread="", call_id="", name=name, class_="shell")
        coming.command = command
        return thing(coming) == what
    path = what.removeprefix(f"{name} ")
    return (
        asked.tool_name == name and path != "" and any(isinstance(v, str) and v.endswith(path) for v in passed.values())
    )


# `watch`: the session at work as a line on the terminal; with `--hook` what an agent's hook calls.

_EVERY_S = 2.0
_SHARE = 0.05
"""Looking for the file at work and reading it takes no more of one core."""
_TRIED = 20
"""Files, the last changed first, of which one is a transcript."""
_MOST_BYTES = 512 * 1024 * 1024


def run_watch(options: argparse.Namespace) -> int:
    """Until Ctrl-C; once where that, or JSON, is asked for."""
    if options.hook:
        return run()
    from agentsignals.cli.output import print_result
    from agentsignals.ingest.pipeline import default_sources

    specs = [options.source] if options.source else default_sources()
    if options.json or options.once:
        state = _state(_at_work(specs)[1])
        return print_result(options, state, _line)
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
    raise SourceError(f"No session log is in {', '.join(specs)}.", "Name a log file, a folder or an agent.")


def _state(session: Session) -> dict[str, Any]:
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
    }


def _line(state: dict[str, Any]) -> str:
    from agentsignals.cli.output import figure, printable
    from agentsignals.questions.formatting import formatted

    cost = formatted(state["cost_usd"], "usd", state["at_least"]) if state["cost_usd"] is not None else "cost unknown"
    loop = f"is this a loop? {state['loop']} ({state['caveat']})" if state["loop"] else "no loop seen"
    counts = f"{figure(state['prompts'])} prompts, {state['calls']:,} calls, {state['failed']:,} failed"
    return printable(f"{time.strftime('%H:%M:%S')}  {state['agent']} {state['session'][:8]}  {counts}, {cost}: {loop}")
