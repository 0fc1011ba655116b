"""The end of a tool call, by one rule for every agent: status, outcome, error class, exit code."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, cached_property

from msgspec import Struct

from agentsignals.formats.profile import Profile
from agentsignals.model import CallOutcome, CallStatus, ShellKind, ToolCall, ToolClass
from agentsignals.shell.outputs import found_nothing, grep_decides_exit, search_mode, without_zero_counts

_TOKEN = re.compile(
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
        self._source, self._flags = source, flags
        self.words = words_of(source)

    @cached_property
    def _search(self) -> Callable[[str], re.Match[str] | None]:
        return re.compile(self._source, self._flags).search

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
    """Return the words of one alternative: those of its rarest necessary part."""
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


def _status(code: int) -> str:
    """Return a pattern of an HTTP status that is named as one. `429` alone may count lines."""
    return (
        r"(?:status|http|code|error|failed|returned|response)\W{0,4}"
        rf"(?:(?:code|of|with)\W{{0,3}}|/[\d.]{{1,4}} )?{code}\b"
        rf"|^\W{{0,2}}{code}(?:\s*$|:)|\b{code}:? (?:not found|too many|error|client|resource)|\({code}\)"
    )


_BOTH = {
    "rate_limit": rf"\brate.?limit|too many requests|{_status(429)}|quota (?:exceeded|exhausted)"
    r"|exceeded your (?:current )?quota"
    r"|overloaded_error|resource_exhausted",
    "merge_conflict": r"conflict \((?:content|add|modify|rename|delete)|merge conflict|automatic merge failed"
    r"|could not apply|non-fast-forward|not possible to fast-forward|you have unmerged paths|needs merge|\[rejected\]",
    "edit_mismatch": r"failed to find expected lines|hunk #\d+ failed|patch does not apply",
    "wrong_kind_of_path": r"\beisdir\b|\benotdir\b|is a directory\b|not a directory\b"
    r"|illegal operation on a directory",
    "disk_full": r"\benospc\b|no space left on device|disk quota exceeded",
    "network": r"econnrefused|econnreset|\benotfound|could not resolve host|getaddrinfo|connection (?:refused|reset"
    r"|aborted)|network is unreachable|socket hang up|temporary failure in name resolution|no route to host"
    r"|remote end hung up|tls handshake|certificate verify failed|fetch failed|name or service not known",
    "timeout": r"timed out|etimedout|deadline exceeded|timeouterror|timeoutexpired|operation timeout",
}  # fmt: skip
"""Words of programs and tools alike."""
_ARGUMENTS = (
    r"inputvalidationerror|invalid_type|invalid (?:tool )?(?:arguments?|parameters?|params|input|usage|request\b)"
    r"|invalid `\w+`|validation failed|schema validation|failed to (?:parse|validate) (?:\w+ ){0,3}(?:arguments"
    r"|parameters|input|params|expression)|parameters? (?:\S+ )?(?:is|are) (?:missing|required|not allowed|invalid)"
    r"|missing (?:required|mandatory)|required (?:parameter|property|field|argument)|must have required property"
    r"|params? must (?:have|be)|is expected as|(?:unexpected|unknown|unrecognized|unrecognised|illegal"
    r"|invalid) (?:argument|option|flag|parameter|field|json field)\b|unrecognized arguments"
    r"|unknown (?:shorthand )?flag|no such option|got unexpected|wrong number of arguments"
    r"|jsondecodeerror: .{0,40}arguments|must be (?:a|an) (?:string|number|integer|boolean|array|object|absolute path"
    r"|valid)|zoderror|too_small|should be (?:within|smaller|greater)|(?:mutually exclusive|were all set)"
)
_NOT_FOUND = (
    r"no such file|file not found|\benoent\b|command not found|did not match any file|http 404|error 404"
    r"|404 not found|\be404\b|\"status\":\"404\"|modulenotfounderror|module_not_found|cannot find module"
    r"|no module named|no matches found:|unknown revision|not a git repository|repository not found"
    r"|repository '[^']{0,300}' not found|needed a single revision|no pull requests found|no issues? found"
    r"|couldn't find remote ref|package_path_not_exported|no (?:active|agent) \S+(?: \S+)? found|cannot be found"
)
_PERMISSION = (
    r"permission denied|operation not permitted|\beacces\b|\beperm\b|requested permissions|not allowed (?:to|by)\b"
    r"|import of \S+ is not allowed|access (?:is )?denied|unauthori[sz]ed|\b401\b.{0,20}(?:bad credentials|unauth)"
    r"|bad credentials|authentication failed|eneedauth|\be40[13]\b|http 40[13]|error 40[13]|403 forbidden"
    r"|resource protected|must be logged in|not logged in|read-only file system|sandbox.{0,40}(?:denied"
    r"|not permitted)"
)
_BLOCKED = (
    r"\bblocked\b|\bhook (?:error|denied|blocked|failed)|(?:pre|post)tooluse|denied by (?:a )?(?:hook|policy|rule)"
    r"|\bpolicy (?:violation|denied)|guard (?:failed|blocked|denied)"
)
_COMPILES = (
    r"syntaxerror|indentationerror|compil(?:ation|e) (?:failed|error)|\d compile errors?|build failed"
    r"|cannot find symbol|undefined reference to|undeclared identifier|code parsing failed"
    r"|unexpected (?:end of file|eof|token)|parse error: |syntax error|unterminated string"
)
_COMPILER = (
    r"\berror (?:cs|fs|bc|c|lnk)\d{4}\b|\berror ts\d+|error\[e\d{4}\]|could not compile|\[build failed\]"
    r"|^\W{0,3}\S+:\d+:\d+: (?:fatal )?error:|\.(?:java|c|h|cc|cpp|m|hs):\d+: (?:fatal )?error\b"
    r"|\[error\] \S+\.(?:java|kt|scala|groovy):\[?\d+[,:]\d+|^e: (?:file://)?/?\S+\.kts?\b|compilation error\b"
    r"|:(?:compile|kapt)\w+ failed$|compile\w{0,20}\) compilation failed|^\*\* \((?:compile|syntax|token)\w*error\)"
    r"|^(?:vet: )?\S+\.go:\d+:\d+: (?!open )\S|failed to compile|can't resolve '|transform failed with"
    r"|build failed with \d+ errors?|ld returned 1 exit status|linker command failed|symbol\(s\) not found for"
    r"|error: cannot find '[^'\n]+' in scope|php parse error"
)
"""Only a compiler prints these."""
_LINTER = (
    r"^found \d+ errors?(?:\.$| in \d+ files? \(checked)|\b[1-9]\d* problems? \(\d+ errors?|would reformat\b"
    r"|would be reformatted|code style issues? (?:found )?in|\b[1-9]\d* offenses? detected|clippy::"
    r"|\.py:\d+:\d+:? [a-z]{1,6}\d{2,5}\b|^\S+:\d+(?::\d+)?: error: [^\n]*\[[\w-]+\]$"
    r"|^\s+\d+:\d+\s+(?:error|warning)\s|^\d+ issues:$"
)
_SOME = r"\b[1-9]\d{0,6}"
_TESTED = r"(?:tests?|examples?|specs?|scenarios?|test cases?|subtests|cases|assertions?)"
FAILED_TESTS = (
    rf"^(?![^\n]*(?:suites?|files?)\b)[^\n]*{_SOME} failed\b[,;|) ]{{1,4}}\d+ (?:passed|skipped)\b"
    rf"|^(?![^\n]*(?:suites?|files?)\b)[^\n]*\b\d+ (?:passed|ok|succeeded)\b[,;| ]{{1,4}}{_SOME} (?:failed|fail)\b"
    rf"|^[=\s]*{_SOME} (?:failed|failing|fail)\b(?:$|[ ,]+(?:in \d|\d+ [a-z]+ in \d|\(|=))"
    rf"|{_SOME} (?:[a-z]+ )?{_TESTED} (?:have |has |out of \d+ )?(?:failed|failing)\b|{_SOME} of \d+ failed\b"
    rf"|\b\d+ {_TESTED}(?: completed| run)?[,:/ ]{{1,3}}(?:\d+ \w+[,/ ]{{1,3}}){{0,4}}"
    rf"{_SOME} (?:failed|failures?|failing)\b"
    rf"|\b(?:tests run|tests|test count|cases)\b[^\n]{{0,80}}?(?:failures?|errors|failed|fail)[:= ]{{1,6}}{_SOME}"
    rf"|(?:runs|assertions|successes|executed \d+ tests?) ?[,/] (?:with )?(?:\d+ \w+ ?[,/] )?{_SOME} (?:failure|error)"
    rf"|^{_SOME} failures?(?:, \d+ errors?|! in )|^\*\*\* {_SOME} (?:tests? failed|failures? (?:is|are) detected)"
    rf"|failed: +{_SOME}, passed:|^(?:# |. )fail(?:ed)? {_SOME}|scenarios? \([^)\n]*{_SOME} failed"
    rf"|{_SOME} failed [|] |failed [|] \d+ passed|\[ fail {_SOME} [|]|{_SOME} fails? locally"
    r"|\[  failed  \]|test result: failed|^failed \((?:failures|errors)=|^\s*--- fail: |^fail\t\S+\t[\d.]+s"
    r"|^not ok \d|^(?:failed|error) \S+::\S|test failed, to rerun pass|^fail: test\w* \(|^#? +failed test '"
    r"|there (?:are|were) (?:failing tests|test failures)|^(?:failures|errors)!$|the following tests failed:"
    r"|^test run failed|^failed!  - |\*\* ?test failed ?\*\*|some tests (?:failed|did not pass)|^result: fail$"
    r"|sbt\.testfailedexception|failed \d+/\d+ (?:subtests|test)|^test suite [^\n]*: fail$|//\S+ +failed in \d"
    r"|^\s*● [^\n]+ › |^\s*(?:[^\w\s] )?fail +\S+ > |executed \d+ of \d+ [^\n]{0,20}\(\d+ failed\)"
)
"""Results of a test runner of which at least one is a failure. A suite that could not be loaded is none."""
FAILED_TESTS_SAY = ("fail", "error", "not ok", "did not pass", "●")
"""Each line that `FAILED_TESTS` matches holds one of these."""
_NO_TESTS = (
    r"no tests? (?:found|ran\b|were found|executed|specified|suite found|files? found|matched|matching|to run)"
    r"|collected 0 items|missing script|\bscript not found|command \"[^\"\n]+\" not found|no such command"
    r"|no rule to make target|task '[^'\n]+' not found|the task \"[^\"\n]+\" could not be found|unknown task"
    r"|executable file not found|executable doesn't exist|could not find executable|could not open input file"
    r"|not recognized as (?:an internal|the name)|specified command or file was not found|could not find gem"
    r"|could not find '?[\w-]+'? \(|could not locate gemfile|no required module provides|can't find crate"
    r"|specify a project or solution|no go files in|cannot find main module|no such target"
    r"|no target named|cannot load such file"
)
"""There was no runner, no script or no test."""
_OFFLINE = (
    r"eai_again|dial tcp|unknown ?host|could not transfer artifact|failed to lookup address|max retries exceeded"
    r"|spurious network error|network error|unable to load the service index|nodename nor servname|no internet"
    r"|ssl certificate problem|temporary failure resolving|could not connect to server"
)
NETWORK_SAYS = f"{_BOTH['network']}|{_OFFLINE}"
_KILLED = (
    r"^killed$|: killed\b|: +\d+ killed |signal: (?:9|15|killed|terminated)|\bsig(?:kill|term)\b|out of memory"
    r"|outofmemoryerror|cannot allocate memory|std::bad_alloc|^memoryerror\b|oom-?kill|java heap space"
)
_FAILS = Pattern(
    r"\bfail(?:s|ed|ure|ures|ing)?\b|assertion ?error|\bassertion\b|[✗✘✕]"
    r"|^[.fesx]*f[.fesx]*(?: +\[ *\d+%\])?$",
    re.MULTILINE,
)
"""A test program says that something failed, in words of its own or in part of its results."""
_UNLOADED = Pattern(
    r"suite failed to run|error collecting|errors? during collection|outside of examples|failed to import test"
    r"|failed to load|\[setup failed\]"
)
"""No test ran: the file that holds them raised."""
_PLACE = re.compile(r"\w:\d+\b|\(\d+,\d+\)")
_RAISES = (
    r"traceback \(most recent call last\)|^panic: |thread '[^']{0,80}' panicked|segmentation fault|core dumped"
    r"|node\.js v\d|unhandled (?:promise )?rejection|uncaught (?:\w+ )?(?:error|exception)|exception in thread"
    r"|code execution failed|\b\w{2,40}(?:error|exception)\b(?::|\()|is not a function|is not defined\b"
)

TOOL_SAYS = {
    "sibling_cancelled": r"sibling tool call errored|cancelled: parallel tool call",
    "blocked": _BLOCKED,
    "not_read_first": r"has not been read yet|must read the file|must first read|file must be read|read it first",
    "edit_mismatch": r"string to replace not found|no changes (?:to make|made)|verification failed"
    r"|could not find (?:the (?:exact )?text|edits\[|old)|old_?string not found|(?:text|string) not found in"
    r"|did not match"
    r"|has been modified since|unexpectedly modified|occurrences? of the (?:text|string)|matches of the string"
    r"|multiple occurrences|no replacement was performed|did not appear verbatim|(?:strings?|texts?"
    r"|new\w{0,20}`?) are (?:identical|the same)|must be unique|overlapping edits"
    f"|{_BOTH['edit_mismatch']}",
    "invalid_arguments": _ARGUMENTS,
    "too_large": r"exceeds (?:the )?max(?:imum)?|file (?:is )?too large|too (?:many tokens|long to)|output too large"
    r"|exceeds? .{0,30}limit of",
    "rate_limit": _BOTH["rate_limit"],
    "wrong_kind_of_path": _BOTH["wrong_kind_of_path"],
    "not_found": rf"{_NOT_FOUND}|does not exist|{_status(404)}|unknown (?:skill|tool|agent|command)"
    r"|(?:tool|skill|agent|session|process|shell|task) \S{0,80} ?(?:was )?(?:not found|already stopped|not available)"
    r"|no such (?:tool|skill|agent|session|process)|is not a (?:known|prompt-based|valid) (?:tool|skill)"
    r"|was already stopped|no (?:\w+ ){1,3}(?:exists|is running)",
    "permission": _PERMISSION,
    "merge_conflict": _BOTH["merge_conflict"],
    "disk_full": _BOTH["disk_full"],
    "timeout": rf"{_BOTH['timeout']}|timeout",
    "network": _BOTH["network"],
    "compile_error": _COMPILES,
    "exception": _RAISES,
}
COMMAND_SAYS = (
    ("lint_failed", _LINTER),
    ("compile_error", _COMPILER),
    ("merge_conflict", _BOTH["merge_conflict"]),
    ("edit_mismatch", _BOTH["edit_mismatch"]),
    ("rate_limit", r"\b(?:api|secondary)? ?rate limit (?:exceeded|reached|hit)|too many requests|http 429|error 429"),
    ("wrong_kind_of_path", r"\beisdir\b|\benotdir\b|: is a directory$|: not a directory$"),
    ("network", NETWORK_SAYS),
    ("not_found", f"{_NOT_FOUND}|{_NO_TESTS}"),
    ("permission", _PERMISSION),
    ("disk_full", _BOTH["disk_full"]),
    ("timeout", r"timed out|etimedout|deadline exceeded"),
    (
        "invalid_arguments",
        r"(?:unknown|unrecognized|illegal|invalid|unexpected) (?:shorthand )?(?:argument|option|flag"
        r"|command|json field|search query|request|usage)\b|unrecognized arguments|^usage: |no such option|http 422"
        r"|failed to parse jq|were all set|option requires|unmatched ['\"(]|parse error (?:near|in|on)|jq: error",
    ),
    ("killed", _KILLED),
    ("compile_error", _COMPILES),
    ("exception", _RAISES),
)
"""Stricter than for a tool: a command's output is any text, and much of it names a timeout or a 404 in passing. Words
that only a test runner, a linter or a compiler prints come first: what they report may name anything."""
_BY_PROGRAM = ("test_failed", "lint_failed", "compile_error")
_SHELL_SAYS = re.compile(
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
    head, both = text[:HEAD_CHARS].lower(), ends(text)
    if not ran(text, code):
        said = _class_of(head, _tool_table())
        if shell_kind is None or said in _NEVER_RAN:
            return said or "other"
        printed = "test_failed" if _tests_failed(both) else _class_of(both, _command_table())
        return printed if printed in _BY_PROGRAM else said or "other"
    if GAVE_UP in both:
        return "timeout"
    if _SHELL_SAYS.search(head[:_EDGE_CHARS]):
        return "not_found"
    if _UNLOADED.is_in(both):  # unittest counts a file that it could not import as an error of a test
        both = both.replace("failed (errors=", "")
    printed = "test_failed" if _tests_failed(both) else _class_of(both, _command_table())
    if code in _SIGNALLED and printed not in _BY_PROGRAM:
        return "killed"
    if printed not in (None, "exception", "timeout"):
        return printed
    if (by_code := _BY_CODE.get(code or 0)) is not None:
        return by_code
    if class_ == "test" and not _UNLOADED.is_in(both) and _FAILS.is_in(both):
        return "test_failed"
    if printed is None and shell_kind == "build" and _PLACE.search(both):
        return "lint_failed"
    return printed or "exit_nonzero"


def _tests_failed(text: str) -> bool:
    """Return whether an output holds results of a test runner with a failure. Only lines that may are looked at."""
    lines = [line for line in text.split("\n") if any(map(line.__contains__, FAILED_TESTS_SAY))]
    return bool(lines) and _tests_pattern().is_in("\n".join(lines))


@cache
def _tests_pattern() -> Pattern:
    return Pattern(FAILED_TESTS, re.MULTILINE)


_NEVER_RAN = ("sibling_cancelled", "blocked", "invalid_arguments", "rate_limit")


def _class_of(text: str, table: tuple[tuple[str, Pattern], ...]) -> str | None:
    return next((name for name, says in table if says.is_in(text)), None)


@cache
def _tool_table() -> tuple[tuple[str, Pattern], ...]:
    return tuple((name, Pattern(words, re.MULTILINE)) for name, words in TOOL_SAYS.items())


@cache
def _command_table() -> tuple[tuple[str, Pattern], ...]:
    return tuple((name, Pattern(words, re.MULTILINE)) for name, words in COMMAND_SAYS)


# -- status and outcome (design/formats.md#how-a-call-ended), exit codes (design/signals.md#tool-classes)

EXIT_CODE = re.compile(
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
    """Return the end of a failed call. A command may print `timed out` about anything; its agent says it of the
    call."""
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
