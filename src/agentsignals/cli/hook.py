"""`watch --hook`: what an agent's hook calls before or after each tool call. It answers on stdout and ends with 0.

The contract is the one of Claude Code's hooks (https://code.claude.com/docs/en/hooks), which others share: an event as
JSON on stdin, an answer as JSON on stdout; a silent end with 0 lets the agent go on. What goes back is our words and
numbers alone: the trace's text may have been written by anybody.
"""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from msgspec import Struct

LONGEST_S = 2.0
"""After so long the agent goes on without an answer."""
_MOST_INPUT = 32 * 1024 * 1024
_BEFORE, _AFTER = "PreToolUse", ("PostToolUse", "PostToolUseFailure")
_TOOL = re.compile(r"[A-Za-z][\w.-]{0,39}", re.ASCII)
WORDS = {
    "failing": "{times} attempts at one thing with {tool} failed and none between them worked",
    "alike": "{times} calls, the last of {tool}, failed with one and the same result",
    "same": "{tool} was called {times} times with equal arguments and equal results, with no edit between",
    "undone": "{times} edits put back what an edit before them had taken away",
    "mostly": "{times} of the last {lately} calls failed",
}
_ADVICE = "Say what was learnt so far; then try another way, or ask."


class HookEvent(Struct):
    """What the agent says on stdin; other fields are passed over."""

    hook_event_name: str = ""
    transcript_path: str = ""
    tool_name: str = ""
    tool_input: Any = None


def run() -> int:
    """Answers the event on stdin. Whatever fails is said on stderr alone: no failure of ours is the agent's."""
    try:
        with _at_most(LONGEST_S):
            text = answer(sys.stdin.buffer.read(_MOST_INPUT))
    except Exception as problem:  # noqa: BLE001  (as the docstring says)
        print(f"agentsignals: no answer: {type(problem).__name__}: {problem}", file=sys.stderr)
        return 0
    if text:
        print(text)
    return 0


def answer(event: bytes) -> str:
    """The JSON to answer an event with; empty where there is nothing to say."""
    from agentsignals.ingest.pipeline import session_from_tail
    from agentsignals.stats.validation.benchmarks import loops
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
    """Whether the call that is about to be made is of the thing that is repeated."""
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


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raises TimeoutError inside when it takes longer; where there is no such clock, nothing."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def over(number: int, frame: object) -> None:
        raise TimeoutError(f"more than {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
