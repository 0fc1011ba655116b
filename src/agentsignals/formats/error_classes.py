"""Why a call failed, in one table of words for every agent (design/signals.md#error-classes); an agent's profile adds
the words that only it uses."""

from __future__ import annotations

import re
from functools import cache

from agentsignals.formats.literals import Pattern
from agentsignals.model import ShellKind, ToolClass

HEAD_CHARS = 2_000
"""So much is looked at from either end of a result: what it is about comes first, what broke stands last."""
GAVE_UP = "command timed out after"


def _status(code: int) -> str:
    """An HTTP status where it is named as one: `429` alone may count lines."""
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
    r"|could not apply"
    r"|non-fast-forward|not possible to fast-forward|you have unmerged paths|needs merge"
    r"|\[rejected\]",
    "edit_mismatch": r"failed to find expected lines|hunk #\d+ failed|patch does not apply",
    "wrong_kind_of_path": r"\beisdir\b|\benotdir\b|is a directory\b|not a directory\b"
    r"|illegal operation on a directory",
    "disk_full": r"\benospc\b|no space left on device|disk quota exceeded",
    "network": r"econnrefused|econnreset|enotfound|could not resolve host|getaddrinfo|connection (?:refused"
    r"|reset|aborted)"
    r"|network is unreachable|socket hang up|temporary failure in name resolution|no route to host|remote end hung up"
    r"|tls handshake|certificate verify failed|fetch failed|name or service not known",
    "timeout": r"timed out|etimedout|deadline exceeded|timeouterror|timeoutexpired|operation timeout",
}  # fmt: skip
"""What programs and tools say alike."""
_ARGUMENTS = (
    r"inputvalidationerror|invalid_type|invalid (?:tool )?(?:arguments?|parameters?|params|input|usage|request\b)"
    r"|invalid `\w+`|validation failed|schema validation|failed to (?:parse|validate) (?:\w+ ){0,3}(?:arguments"
    r"|parameters"
    r"|input|params|expression)"
    r"|parameters? (?:\S+ )?(?:is|are) (?:missing|required|not allowed|invalid)|missing (?:required|mandatory)"
    r"|required (?:parameter|property|field|argument)|must have required property|params? must (?:have|be)"
    r"|is expected as|(?:unexpected|unknown|unrecognized|unrecognised|illegal|invalid) (?:argument|option|flag"
    r"|parameter"
    r"|field|json field)\b|unrecognized arguments|unknown (?:shorthand )?flag|no such option|got unexpected"
    r"|wrong number of arguments|jsondecodeerror: .{0,40}arguments|must be (?:a|an) (?:string|number|integer"
    r"|boolean|array|object|absolute path|valid)|zoderror|too_small|should be (?:within|smaller|greater)"
    r"|(?:mutually exclusive|were all set)"
)
_NOT_FOUND = (
    r"no such file|file not found|\benoent\b|command not found|did not match any file|http 404|error 404"
    r"|404 not found|\be404\b|\"status\":\"404\"|modulenotfounderror|module_not_found|cannot find module"
    r"|no module named"
    r"|no matches found:|unknown revision|not a git repository|repository not found"
    r"|repository '[^']{0,300}' not found"
    r"|needed a single revision|no pull requests found|no issues? found|couldn't find remote ref"
    r"|package_path_not_exported"
    r"|no (?:active|agent) \S+(?: \S+)? found|cannot be found"
)
_PERMISSION = (
    r"permission denied|operation not permitted|\beacces\b|\beperm\b|requested permissions|not allowed (?:to"
    r"|by)\b|import of \S+ is not allowed"
    r"|access (?:is )?denied|unauthori[sz]ed|\b401\b.{0,20}(?:bad credentials|unauth)|bad credentials"
    r"|authentication failed"
    r"|eneedauth|\be40[13]\b|http 40[13]|error 40[13]|403 forbidden|resource protected|must be logged in"
    r"|not logged in"
    r"|read-only file system|sandbox.{0,40}(?:denied|not permitted)"
)
_BLOCKED = (
    r"\bblocked\b|\bhook (?:error|denied|blocked|failed)|(?:pre|post)tooluse|denied by (?:a )?(?:hook|policy|rule)"
    r"|\bpolicy (?:violation|denied)|guard (?:failed|blocked|denied)"
)
_COMPILES = (
    r"syntaxerror|error ts\d{3,5}|error\[e\d{4}\]|compil(?:ation|e) (?:failed|error)|\d compile errors?"
    r"|could not compile|build failed"
    r"|cannot find symbol|undefined reference to|undeclared identifier|code parsing failed"
    r"|unexpected (?:end of file|eof|token)|syntax error|unterminated string"
)
_TESTS = (
    r"\b[1-9]\d* (?:tests? |examples?, )?(?:failed|failing|failures?)\b|test(?:s|ing)? failed|\bfailed tests?[/:.]"
    r"|assertion ?error|--- fail:|short test summary info|tests? suites?: [1-9]\d* failed"
)
_RAISES = (
    r"traceback \(most recent call last\)|^panic: |thread '[^']{0,80}' panicked|segmentation fault|core dumped"
    r"|node\.js v\d"
    r"|unhandled (?:promise )?rejection|uncaught (?:\w+ )?(?:error|exception)|exception in thread"
    r"|code execution failed"
    r"|\b\w{2,40}(?:error|exception)\b(?::|\()|is not a function|is not defined\b"
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
COMMAND_SAYS = {
    "merge_conflict": _BOTH["merge_conflict"],
    "edit_mismatch": _BOTH["edit_mismatch"],
    "rate_limit": r"\b(?:api|secondary)? ?rate limit (?:exceeded|reached|hit)|too many requests|http 429|error 429",
    "wrong_kind_of_path": r"\beisdir\b|\benotdir\b|: is a directory$|: not a directory$",
    "not_found": _NOT_FOUND,
    "permission": _PERMISSION,
    "disk_full": _BOTH["disk_full"],
    "timeout": r"timed out|etimedout|deadline exceeded",
    "network": _BOTH["network"],
    "test_failed": _TESTS,
    "invalid_arguments": r"(?:unknown|unrecognized|illegal|invalid|unexpected) (?:shorthand )?(?:argument"
    r"|option|flag|command"
    r"|json field|search query|request|usage)\b|unrecognized arguments|^usage: |no such option|http 422"
    r"|failed to parse jq|were all set|option requires"
    r"|unmatched ['\"(]|parse error (?:near|in|on)|jq: error",
    "compile_error": _COMPILES,
    "exception": _RAISES,
}
"""Stricter than for a tool: a command's output is any text, and much of it names a timeout or a 404 in passing."""
_SHELL_SAYS = re.compile(
    r"^(?:\(eval\)|(?:/\S+/)?[a-z]*sh):[^\n]*(?:no such file or directory|not found)", re.MULTILINE
)
"""The shell itself found no folder or program, so that what was to be run never ran; in lower case."""
_BEGINNING = 400
_BY_CODE = {126: "permission", 127: "not_found"}
"""POSIX, "Exit Status for Commands": found and not to be run; not found."""


def ends(text: str) -> str:
    """Both ends of a result, in lower case."""
    head = text[:HEAD_CHARS].lower()
    return head if len(text) <= HEAD_CHARS else head + "\n" + text[-HEAD_CHARS:].lower()


def ran(text: str, code: int | None) -> bool:
    """Whether a command ran and ended with a failure; some agents state its exit code on the last line."""
    return (
        bool(code)
        or text[:HEAD_CHARS].lower().lstrip().startswith(("exit code", "error: exit code"))
        or ("exited with code" in ends(text))
    )


def error_class(text: str, class_: ToolClass, shell_kind: ShellKind | None, code: int | None = None) -> str:
    """The class of a failed call; `exit_nonzero` or `other` when nothing more precise shows."""
    head, both = text[:HEAD_CHARS].lower(), ends(text)
    if not ran(text, code):
        return _class_of(head, "tool") or "other"
    if GAVE_UP in both:
        return "timeout"
    if _SHELL_SAYS.search(head[:_BEGINNING]):
        return "not_found"
    if class_ == "test":
        return "test_failed"
    if shell_kind == "build":
        return "lint_failed"
    return _class_of(both, "command") or _BY_CODE.get(code or 0) or "exit_nonzero"


def _class_of(text: str, who: str) -> str | None:
    return next((name for name, says in _table(who) if says.is_in(text)), None)


@cache
def _table(who: str) -> tuple[tuple[str, Pattern], ...]:
    table = TOOL_SAYS if who == "tool" else COMMAND_SAYS
    return tuple((name, Pattern(words, re.MULTILINE)) for name, words in table.items())
