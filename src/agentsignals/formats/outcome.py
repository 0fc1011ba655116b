"""The end of a tool call, by one rule for every agent: status, outcome, error class, exit code."""

import re
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path

from msgspec import Struct

from agentsignals.formats.profile import Profile
from agentsignals.model import CallOutcome, CallStatus, ShellKind, ToolCall, ToolClass
from agentsignals.model.lazy import deferred_pattern
from agentsignals.shell.commands import found_nothing, grep_decides_exit, search_mode, without_zero_counts

_TOKEN = deferred_pattern(
    r"[\w '\"-]+(?![*+?{])|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]"
    r"|\(\?:|\(\?[=!]|\(\?<[=!]|[()|.^$]|(?:[*+?]|\{\d*,?\d*\})[?+]?|.",
    re.DOTALL,
)
_OPTIONAL = ("?", "*", "{0", "{,")
_QUANTIFIER = re.compile(r"[*+?]|\{[\d,]").match
_NO_LITERAL = frozenset(".^$()|")
_TELLING = 3
"""Length of a word that is rare enough to tell."""


class Pattern:
    """A pattern that is tried only on texts that hold one of its words: that search is many times faster."""

    def __init__(self, source: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        self.source, self._flags = source, flags

    @cached_property
    def words(self) -> tuple[str, ...]:
        return words_of(self.source)

    @cached_property
    def _search(self) -> Callable[[str], re.Match[str] | None]:
        return re.compile(self.source, self._flags).search

    def is_in(self, text: str) -> bool:
        """Return whether it matches anywhere."""
        return (not self.words or any(map(text.__contains__, self.words))) and self._search(text) is not None


def words_of(pattern: str) -> tuple[str, ...]:
    """Return texts of which each match of a pattern holds at least one. None if it can match without.

    The pattern must have no named groups and no flags.
    """
    words, _ = _alternatives(_TOKEN.findall(pattern), 0)
    # What holds another one of them holds nothing more.
    return tuple(sorted(w for w in words if not any(other in w for other in words if other != w)))


def _alternatives(tokens: list[str], at: int) -> tuple[frozenset[str], int]:
    """Return the words from `at` to the closing parenthesis or the end, and where that is."""
    words: frozenset[str] = frozenset()
    is_free = False  # one of the alternatives needs no word
    while True:
        fresh, at = _sequence(tokens, at)
        is_free = is_free or not fresh
        words |= fresh
        if at == len(tokens) or tokens[at] == ")":
            return frozenset() if is_free else words, at
        at += 1


def _sequence(tokens: list[str], at: int) -> tuple[frozenset[str], int]:
    """Return the most telling words of a part of a pattern, one of which each match holds, and where the part ends."""
    parts: list[frozenset[str]] = []
    run = ""
    while at < len(tokens) and tokens[at] not in ("|", ")"):
        token, literal, part = tokens[at], "", frozenset[str]()
        if token[0] == "(":
            part, at = _alternatives(tokens, at + 1)
            part = part if token in ("(", "(?:") else frozenset()
        elif token[0] == "\\":
            literal = "" if token[1].isalnum() else token[1]
        elif token[0] != "[" and token not in _NO_LITERAL:
            literal = token
        at += 1
        times = tokens[at] if at < len(tokens) and _QUANTIFIER(tokens[at]) else ""
        at += bool(times)
        if times.startswith(_OPTIONAL):
            literal, part = "", frozenset()
        run += literal
        if times or not literal:
            parts += [frozenset((run,)), part]
            run = ""
    parts.append(frozenset((run,)))
    return max((part for part in parts if part and "" not in part), key=_weight, default=frozenset()), at


def _weight(words: frozenset[str]) -> tuple[bool, int, int]:
    least = min(map(len, words))
    return least >= _TELLING, -len(words), least


# -- error classes: one table of words for every agent (design/signals.md#error-classes), which profiles extend

HEAD_CHARS = 2_000
"""Characters of a result that are read from either end: its subject comes first, the error last."""
GAVE_UP = "command timed out after"
_STATUS = (
    r"(?:status|http|code|error|failed|returned|response)\W{{0,4}}"
    r"(?:(?:code|of|with)\W{{0,3}}|/[\d.]{{1,4}} )?{0}\b"
    r"|^\W{{0,2}}{0}(?:\s*$|:)|\b{0}:? (?:not found|too many|error|client|resource)|\({0}\)"
)
"""Pattern of an HTTP status that is named as one."""
Classes = tuple[tuple[str, Pattern], ...]
"""Error classes with their patterns. The first that fits counts."""


class ErrorWords(Struct, frozen=True):
    """The patterns of `outcome.toml`."""

    failed_tests: Pattern
    failed_tests_say: tuple[str, ...]
    fails: Pattern
    unloaded: Pattern
    tool: Classes
    command: Classes
    network: str


@cache
def error_words() -> ErrorWords:
    """Return the words of failures. They are read with the first failed call."""
    import tomllib  # noqa: PLC0415  (only for failed calls)

    held = tomllib.loads(Path(__file__).with_name("outcome.toml").read_text("utf-8"))

    def text(patterns: list[str]) -> str:
        return "|".join(re.sub(r"@(\w+)", named, pattern) for pattern in patterns)

    def named(name: re.Match[str]) -> str:
        kind, _, code = name[1].partition("status_")
        return text(held["shared"][kind]) if kind else _STATUS.format(code)

    def pattern(patterns: list[str]) -> Pattern:
        return Pattern(text(patterns), re.MULTILINE)

    tool, command = (tuple((row["class"], pattern(row["says"])) for row in held[who]) for who in ("tool", "command"))
    failed, fails, unloaded = (pattern(held[name]) for name in ("failed_tests", "fails", "unloaded"))
    network = text(["@network", "@offline"])
    return ErrorWords(failed, tuple(held["failed_tests_say"]), fails, unloaded, tool, command, network)


_PLACE = deferred_pattern(r"\w:\d+\b|\(\d+,\d+\)")
_BY_PROGRAM = ("test_failed", "lint_failed", "compile_error")
_SHELL_SAYS = deferred_pattern(
    r"^(?:\(eval\)|(?:/\S+/)?[a-z]*sh):[^\n]*(?:no such file or directory|not found)", re.MULTILINE
)
"""The shell itself found no folder or program, so that what was to be run never ran; in lower case."""
_EDGE_CHARS = 400
_BY_CODE = {126: "permission", 127: "not_found"}
"""POSIX, "Exit Status for Commands": found and not to be run; not found."""
_SIGNALLED = (137, 143)
"""Exit codes of a shell whose command was ended by SIGKILL or SIGTERM."""


def ends(text: str) -> str:
    """Return both ends of a result, in lower case."""
    head = text[:HEAD_CHARS].lower()
    return head if len(text) <= HEAD_CHARS else head + "\n" + text[-HEAD_CHARS:].lower()


def ran(text: str, code: int | None) -> bool:
    """Return whether a command ran and ended with a failure. Some agents state its exit code on the last line."""
    return (
        bool(code)
        or text[:HEAD_CHARS].lower().lstrip().startswith(("exit code", "error: exit code"))
        or ("exited with code" in ends(text))
    )


def error_class(text: str, class_: ToolClass, shell_kind: ShellKind | None, code: int | None = None) -> str:
    """Return the error class of a failed call: `exit_nonzero` or `other` if nothing more precise shows.

    The output of a command tells what failed, whatever program was asked to run: a script of any name may run tests.
    """
    head, both, words = text[:HEAD_CHARS].lower(), ends(text), error_words()
    has_run = ran(text, code)
    if has_run and GAVE_UP in both:
        return "timeout"
    if has_run and _SHELL_SAYS.search(head[:_EDGE_CHARS]):
        return "not_found"
    said = None if has_run else _class_of(head, words.tool)
    if not has_run and (shell_kind is None or said in _NEVER_RAN):
        return said or "other"
    is_unloaded = has_run and words.unloaded.is_in(both)
    if is_unloaded:  # unittest counts a file that it could not import as an error of a test
        both = both.replace("failed (errors=", "")
    lines = [line for line in both.split("\n") if any(map(line.__contains__, words.failed_tests_say))]
    has_failed_tests = bool(lines) and words.failed_tests.is_in("\n".join(lines))
    printed = "test_failed" if has_failed_tests else _class_of(both, words.command)
    if not has_run:
        return printed if printed in _BY_PROGRAM else said or "other"
    if code in _SIGNALLED and printed not in _BY_PROGRAM:
        return "killed"
    if printed not in (None, "exception", "timeout"):
        return printed
    if (by_code := _BY_CODE.get(code or 0)) is not None:
        return by_code
    if class_ == "test" and not is_unloaded and words.fails.is_in(both):
        return "test_failed"
    if printed is None and shell_kind == "build" and _PLACE.search(both):
        return "lint_failed"
    return printed or "exit_nonzero"


_NEVER_RAN = ("sibling_cancelled", "blocked", "invalid_arguments", "rate_limit")


def _class_of(text: str, classes: Classes) -> str | None:
    return next((name for name, says in classes if says.is_in(text)), None)


# -- status and outcome (design/formats.md#how-a-call-ended), exit codes (design/signals.md#tool-classes)

EXIT_CODE = deferred_pattern(
    r"\A(?:Error: )?Exit code:? (-?\d+)\b|^Process exited with code (-?\d+)\b|completed with exit code (-?\d+)>"
    r"|^(?:Command exited with code|exit status:?|Exit Code:|(?:Error: )?Command failed \(exit code:) (-?\d+)\b",
    re.MULTILINE,
)
"""Forms in which Claude Code, Codex, Copilot CLI, Pi and others print the exit code of a shell command."""


class Ending(Struct, frozen=True, gc=False):
    """The end of a call, with the error class if it failed."""

    status: CallStatus
    outcome: CallOutcome | None
    error: str | None = None


_DONE, _NOTHING_FOUND = Ending("ok", "done"), Ending("ok", "nothing_found")


def ending(  # noqa: PLR0913  (what a result can say)
    call: ToolCall, text: str, status: CallStatus, code: int | None, error: str | None, profile: Profile
) -> Ending:
    """Return how a call ended. `status` is what the record says by itself, `error` the class that it names.

    An exit code other than 0 is a failure whatever the record says, unless a search found nothing or somebody stopped
    the command.
    """
    stopped: CallStatus | None = None
    if profile.stopped and call.shell_kind is not None and status in ("ok", "error"):
        both = text if len(text) <= 2 * _EDGE_CHARS else text[:_EDGE_CHARS] + "\n" + text[-_EDGE_CHARS:]
        stopped = next((status for status, words in profile.stopped for word in words if word in both), None)
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
    """Return the end of a failed call. Any command may print `timed out`; its agent says it of the call."""
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
"""Exit code of GNU `timeout` when time was up (its manual), and of agents that stop a command."""
_OF_PROGRAMS = ("exception", "killed", *_BY_PROGRAM)
_BY_EXIT = ("exit_nonzero", "test_failed", "lint_failed")


def _nothing_found(call: ToolCall, text: str, code: int | None, failed: bool, profile: Profile) -> bool:
    """Return whether a search ended without a hit.

    A tool says so. A command printed nothing, or no count but 0, and its exit code tells, or else that it did not fail.
    """
    if call.command is None or call.shell_kind is None:
        return call.class_ == "search" and text.lstrip().startswith(profile.nothing_found)
    if search_mode(call.command) is None:
        return False
    if code == 1 and grep_decides_exit(call.command):
        return True
    # A silent result holds only what the program writes around a command's output.
    if len(text) > HEAD_CHARS or _frame(profile.frame).sub("", without_zero_counts(call.command, text)).strip():
        return False
    return found_nothing(call.command, code) if code else not failed and search_mode(call.command) == "prints"


@cache
def _frame(lines: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"^(?:{line})$" for line in (*_FRAME, *lines)), re.MULTILINE)


_FRAME = (r"(?:Error: )?Exit code:? -?\d+", r"\(no output\)", r"\(empty\)")
"""Lines that several agents write alike."""


def exit_code(text: str) -> int | None:
    """Return the exit code that a shell result states, or None. Both ends of a long text are searched."""
    ends = text if len(text) <= 2 * HEAD_CHARS else text[:HEAD_CHARS] + "\n" + text[-HEAD_CHARS:]
    word = ends.find("xit")  # every way of saying it has this; a pattern takes long to get where a search is at once
    match = EXIT_CODE.search(ends, ends.rfind("\n", 0, word) + 1) if word >= 0 else None
    return int(next(group for group in match.groups() if group is not None)) if match else None
