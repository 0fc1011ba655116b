"""What became of a tool call, by one rule for every agent: status and outcome
(design/formats.md#how-a-call-ended), error classes and exit codes (design/signals.md#tool-classes)."""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

from agentsignals.formats.error_classes import GAVE_UP, HEAD_CHARS, ends, error_class, ran
from agentsignals.formats.literals import Pattern
from agentsignals.formats.profile import Profile
from agentsignals.model import CallOutcome, CallStatus, ToolCall
from agentsignals.shell.searches import found_nothing, search_of, tells_alone, without_zeros

EXIT_CODE = re.compile(
    r"\A(?:Error: )?Exit code:? (-?\d+)\b"
    r"|^Process exited with code (-?\d+)\b"
    r"|completed with exit code (-?\d+)>"
    r"|^(?:Command exited with code|exit status:?|Exit Code:|(?:Error: )?Command failed \(exit code:) (-?\d+)\b",
    re.MULTILINE,
)
"""How Claude Code, Codex, Copilot CLI, Pi and others print the exit code of a shell command."""

_BEGINNING = 400


class Ending(Struct, frozen=True, gc=False):
    """How a call ended; the error class where it failed."""

    status: CallStatus
    outcome: CallOutcome | None
    error: str | None = None


_DONE, _NOTHING_FOUND = Ending("ok", "done"), Ending("ok", "nothing_found")


def ending(  # noqa: PLR0913  (what a result can say)
    call: ToolCall, text: str, status: CallStatus, code: int | None, error: str | None, profile: Profile
) -> Ending:
    """How a call ended. `status` is what the record says by itself, and `error` the class that it names; an exit code
    other than 0 is a failure whatever the record says, unless a search found nothing or somebody stopped the command.
    """
    stopped: CallStatus | None = None
    if profile.stopped and call.shell_kind is not None and status in ("ok", "error"):
        stopped = _stopped(text, profile)
        status = "cancelled" if stopped == "cancelled" else status
    failed = status == "error" or bool(code) or stopped == "error"
    if status in _NOT_CARRIED_OUT:
        ended = Ending(status, _NOT_CARRIED_OUT[status])
    elif status == "none" or (status == "unknown" and code is None):
        ended = Ending(status, None)
    elif _nothing_found(call, text, code, failed, profile):
        ended = _NOTHING_FOUND
    elif not failed:
        ended = _DONE
    elif stopped == "error" or code == _TIMEOUT_EXITS:
        ended = Ending("error", "timed_out", "timeout")
    else:
        ended = _failure(call, text, code, error, profile)
    return ended


def _failure(call: ToolCall, text: str, code: int | None, error: str | None, profile: Profile) -> Ending:
    """A call that failed. A command that ran may say `timed out` of anything: its agent alone says it of the call."""
    if error is None and code is None:
        both = ends(text)
        error = next((name for name, says in _failures(profile.failures) if says.is_in(both)), None)
    class_ = error or error_class(text, call.class_, call.shell_kind, code)
    if class_ == "other" and call.class_ in profile.blocks_in_any_words:
        class_ = "blocked"
    has_run = bool(code) or class_ in _BY_EXIT or (error is None and ran(text, code))
    has_run = has_run or (call.shell_kind is not None and class_ in _OF_PROGRAMS)
    if class_ == "timeout" and (not has_run or GAVE_UP in ends(text)):
        return Ending("error", "timed_out", class_)
    return Ending("error", "exit_nonzero" if has_run else "error_result", class_)


@cache
def _failures(table: tuple[tuple[str, tuple[str, ...]], ...]) -> tuple[tuple[str, Pattern], ...]:
    return tuple((name, Pattern(pattern)) for name, patterns in table for pattern in patterns)


_NOT_CARRIED_OUT: dict[CallStatus, CallOutcome] = {"rejected": "refused", "cancelled": "cancelled"}
_TIMEOUT_EXITS = 124
"""`timeout` of GNU coreutils exits so when time was up (its manual), and so do agents that stop a command."""
_OF_PROGRAMS = ("exception", "compile_error")
_BY_EXIT = ("exit_nonzero", "test_failed", "lint_failed")


def _nothing_found(call: ToolCall, text: str, code: int | None, failed: bool, profile: Profile) -> bool:
    """A search that ended without a hit: by a tool's words; of a command that printed nothing, or no count but 0, by
    its exit code, or, where the record has none, because it did not fail."""
    if call.command is None or call.shell_kind is None:
        return call.class_ == "search" and text.lstrip().startswith(profile.nothing_found)
    if search_of(call.command) is None:
        return False
    if code == 1 and tells_alone(call.command):
        return True
    if len(text) > HEAD_CHARS or not _silent(without_zeros(call.command, text), profile.frame):
        return False
    return found_nothing(call.command, code) if code else not failed and search_of(call.command) == "prints"


def _silent(text: str, frame: tuple[str, ...]) -> bool:
    """Whether a result holds no output of a command: nothing but what the program writes around it."""
    return not _frame(frame).sub("", text).strip()


@cache
def _frame(lines: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"^(?:{line})$" for line in (*_FRAME, *lines)), re.MULTILINE)


_FRAME = (r"(?:Error: )?Exit code:? -?\d+", r"\(no output\)", r"\(empty\)")
"""What several agents write alike."""


def _stopped(text: str, profile: Profile) -> CallStatus | None:
    ends = text if len(text) <= 2 * _BEGINNING else text[:_BEGINNING] + "\n" + text[-_BEGINNING:]
    return next((status for status, words in profile.stopped for word in words if word in ends), None)


def exit_code(text: str) -> int | None:
    """The exit code a shell result states, None when it states none. Looks at both ends of a long text."""
    ends = text if len(text) <= 2 * HEAD_CHARS else text[:HEAD_CHARS] + "\n" + text[-HEAD_CHARS:]
    word = ends.find("xit")  # every way of saying it has this; a pattern takes long to get where a search is at once
    match = EXIT_CODE.search(ends, ends.rfind("\n", 0, word) + 1) if word >= 0 else None
    return int(next(group for group in match.groups() if group is not None)) if match else None
