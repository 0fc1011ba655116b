"""Read what test runners and their scripts leave: which tests ended how, and whether any test ran at all.

One reader for CTRF, JUnit XML, the output of pytest and other runners, and plain scripts. Programs that were not there
are known by the complaint of a shell, an interpreter or a container, whatever they are called.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal
from xml.parsers import expat

from msgspec import Struct, field

from agentsignals.formats.outcome import NETWORK_SAYS
from agentsignals.model import Verification

_LOOKED_AT = 4 * 1024 * 1024
"""Bytes of a log that are read, from its end: runners sum up there."""
_LINE_CHARS = 2_000
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>])")
_NAMED_FAILURES = 3
_SHOWN = 300
"""Characters of a line that is quoted."""

State = Literal["ran", "not_run", "fault", ""]
"""`ran`: a test ended, or a runner summed up. `not_run`: it broke off before. `fault`: the machine ended it. Empty: a
script's own words, which judge or not."""


class TestLog(Struct):
    """What the output of a verifier shows."""

    state: State = ""
    passed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    line: int = 1
    """Line that shows the state; of a script's own words the last."""
    text: str = ""
    is_partial: bool = False
    """A summary counts failures, and no failed test is named."""
    fault: str = ""
    """Fault of the machine: `out of memory`, `disk full`, `no container`."""
    module: str | None = None
    """Module that the tests' own file could not import, so that no test was collected."""

    @property
    def verification(self) -> Verification | None:
        """Return the log as the result of a verifier; None where it shows none."""
        if self.passed or self.failed:
            return Verification(
                passed=self.passed,
                failed=None if self.is_partial else self.failed,
                message=self.text if self.is_partial else "",
            )
        if self.state == "not_run":
            return Verification(status="not_run", message=self.text, missing_module=self.module)
        return Verification(message=self.text) if self.text and not self.fault else None


# -- tests by name, in the words of each runner

_PASSED = frozenset(("passed", "pass", "ok", "xfail", "✓", "✔", "√", "expected failure"))
_SKIPPED = frozenset(("skipped", "skip", "ignored", "pending", "todo", "disabled", "xpass"))
_ENDS = r"PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS"
_WORDS = r"PASS(?:ED)?|FAIL(?:ED)?|OK|ERROR"
_NAMED = tuple(
    re.compile(pattern)
    for pattern in (
        rf"^(?P<end>{_ENDS})\s+(?P<name>\S+?::.+?|test_\w+)(?: - .*)?$",  # pytest -r
        rf"^(?P<name>\S+?::.+?) (?P<end>{_ENDS})(?:\s+\[ *\d+%\])?$",  # pytest -v
        r"^(?P<name>\w+ \([\w.]+\))(?: \[.*\])? \.\.\. (?P<end>ok|FAIL|ERROR|skipped|expected failure)\b",  # unittest
        r"^(?P<end>(?:not )?ok) \d+(?: -)? (?P<name>[^#\n]+?)(?:\s+# (?P<directive>SKIP|TODO)\b.*)?$",  # TAP, bats
        r"^\s*--- (?P<end>PASS|FAIL|SKIP): (?P<name>\S+)",  # go test -v
        r"^test (?P<name>\S.*?) \.\.\. (?P<end>ok|FAILED|ignored)\b",  # cargo test
        r"^\[ +(?P<end>OK|FAILED) +\] (?P<name>[\w/]+\.[\w/]+)",  # googletest
        r"^\s*\d+/\d+ Test +#\d+: (?P<name>\S+) \.*\s*\**(?P<end>Passed|Failed|Timeout|Exception|Not Run)",  # ctest
        r"^\s+(?P<end>Passed|Failed|Skipped) (?P<name>\S.*?) \[[\d.,< ]+m?s\]$",  # dotnet test
        r"^(?P<name>\S+ > .+) (?P<end>PASSED|FAILED|SKIPPED)$",  # gradle
        r"^rspec (?P<name>\./\S+) # .+(?P<end>)$",  # rspec lists what failed
    )
)
_PLAINLY_NAMED = tuple(
    re.compile(pattern)
    for pattern in (
        r"^\s*(?P<end>[✓✔√✕✗✘×])\s+(?:\d+ )?(?P<name>\S.*?)(?: \(?\d+(?:\.\d+)? ?m?s\)?)?$",  # jest, vitest, mocha
        rf"^\[?(?P<end>{_WORDS})\]?[:\s-]+\s*(?P<name>\w*(?:test|Test|check|spec)[\w./:\[\]-]*)(?: - .*)?$",
        rf"^(?P<name>\w*(?:test|Test|check|spec)[\w./\[\]-]*)\s*(?::|\.{{2,}}|->|=>)\s*(?P<end>{_WORDS})$",
    )
)
"""Lines that any program prints, too: read where no runner of the first kind names a test."""
_MAYBE_NAMED = re.compile(
    r"PASS|FAIL|[Pp]assed|[Ff]ailed|\b(?:ok|OK|SKIP|skipped|ignored)\b|ERROR|XFAIL|Timeout|Not Run|[✓✔√✕✗✘×]|^rspec "
)
_SUMMARY = re.compile(
    r"^=*\s*(?:.*\b)?\d+ (?:passed|failed|xfailed|xpassed)\b.* in [\d.:]+ ?s?\b.*$"  # pytest
    r"|^Ran [1-9]\d* tests? in |^test result: (?:ok|FAILED)\.|^Tests?:\s+.*\b\d+ total\b|^\s*\d+ (?:passing|failing)\b"
    r"|^(?:ok|FAIL)\s+\S+\s+(?:[\d.]+s|\(cached\)|\[build failed\])|\bTests run: [1-9]\d*, Failures: \d+"
    r"|^\d+ examples?, \d+ failures?|^Tests: [1-9]\d*, Assertions: \d+|^OK \(\d+ tests?"
    r"|\d+% tests passed, \d+ tests failed"
    r"|^\s*(?:Passed|Failed)!\s+- Failed: +\d+|^\[  (?:PASSED|FAILED)  \] [1-9]\d* tests?"
)
"""Lines in which a runner sums up tests that ran."""
_FAILURES = re.compile(
    r"\b[1-9]\d* (?:failed|failing|failures?|errors?)\b|\b(?:Failures|Errors|Failed): *[1-9]|^FAIL|FAILED\b"
)
"""A summary that counts failures."""
_OF_PYTEST = re.compile(r" in [\d.:]+ ?s?\b[^a-z]*$")
_UNNAMED = re.compile(r"^(?P<file>\S*\w)\s[.FEsxX]+(?:\s+\[ *\d+%\])?$")
"""A line of pytest's progress, a letter a test."""

# -- programs and modules that were not there

_WORKSPACE = re.compile(
    r"^(?:\.{1,2}/|/(?!(?:usr|bin|sbin|opt|root|home|tests?|verifier|venv|\.venv|installed-agent|nix|tmp)/)[^/\s:]+/)"
)
"""Paths of the work itself: that a program of it is missing is what a test was to find out."""
_SHELL = r"-?(?:\S*/)?(?:[a-z]*sh|\S+\.(?:sh|bash)|run|test|verify|check)(?:\[\d+\])?:(?: (?:line )?\d+:)? "
_COMPLAINTS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"^{_SHELL}(?P<p>[^\s:]+): (?:command )?not found$",
        rf"^{_SHELL}(?P<p>[^\s:]+): (?:[Nn]o such file or directory"
        r"|Permission denied|[Cc]annot execute\b.*|Exec format error|(?:bad|required file) .*|Is a directory)$",
        r"^-?(?:[a-z]*sh): (?:command not found|[Uu]nknown command):? (?P<p>\S+)$",
        r"^(?P<p>[\w.+-]+): (?:command )?not found$",
        r"^(?:\S*/)?env: [‘'\"]?(?P<p>[^\s‘’'\":]+)[’'\"]?: (?:No such file or directory|Permission denied)",
        r"^Command [‘'\"](?P<p>[^\s‘’'\"]+)[’'\"] not found\b",
        r"exec: \"(?P<p>[^\"\n]+)\": (?:executable file not found|stat |permission denied)",
        r"^(?P<run>\S*python[\d.]*): No module named [‘'\"]?(?P<p>[\w.-]+)",
        r"^(?P<run>\S*python[\d.]*): can't open file [‘'\"](?P<p>[^’'\"]+)",
        r"^Error: Cannot find module [‘'\"](?P<p>/(?:usr|opt|root|home|nix)/[^’'\"]+)",
        r"^(?:(?:(?:timeout|nohup): )?failed to run command|sudo:) ?[‘'\"]?(?P<p>[^\s‘’'\":]+)"
        r"[’'\"]?: (?:command not found|No such file or directory|Permission denied)",
    )
)
_RUNNERS = re.compile(
    r"(?:^|/)(?:py\.?test[\d.-]*|uvx?|pipx?\d?|tox|nox|hatch|poetry|npm|npx|pnpm|yarn|bun|bunx|node|deno|jest|vitest|mocha"
    r"|cargo|go|mvn|mvnw|gradle|gradlew|ctest|bats|prove|rspec|bundle|phpunit|composer|dotnet|python[\d.]*|unittest|nose2?)$"
)
"""Programs that run tests: without them none ran, whatever a script printed afterwards."""
_EXIT = re.compile(
    r"^(?:\W*(?:the )?(?:verifier|tests?|runner|command|script|process|container|shell|job)\b[^\d\n]*?)?\W*"
    r"\b(?:exit(?:ed)?(?: with)?|return(?:ed)?|rc|status)(?: (?:code|status))?[\s:=]*(?P<code>\d{1,3})\b",
    re.IGNORECASE,
)
"""An exit code of what judges, or of nothing in particular."""
_NOT_FOUND, _CANNOT_RUN, _KILLED = 127, 126, 137
"""POSIX, "Exit Status for Commands"; 128 and the number of the signal."""
_DOWNLOAD = re.compile(
    rf"{NETWORK_SAYS}|could(?:n't| not) (?:connect|fetch|download|find a version)|network request\b"
    r"|failed to (?:connect|fetch|download|resolve|lookup)|unable to (?:locate package|access|connect|resolve|fetch)"
    r"|connection timed out|no matching distribution found|no solution found when resolving|could not get lock"
    r"|not found in the package registry|dns error|error sending request for url|proxyconnect|not closed cleanly"
    r"|^e: (?:package|failed|unable|the repository)",
    re.IGNORECASE,
)
_LOCAL = re.compile(
    r"\b(?:localhost|127\.0\.0\.1|0\.0\.0\.0|10\.\d+\.\d+\.\d+|192\.168\.\d+\.\d+|host\.docker\.internal)\b|\[?::1\]?|unix://"
    r"|(?:connect to|https?://|resolve host:?) *(?!server\b)[\w-]+(?=$|[:/\s,])"
)
"""A server of the work itself, which a test was to reach: on this machine, or named without a domain."""
_NOBODY_THERE = re.compile(r"refused|reset by peer", re.IGNORECASE)
_DOMAIN = re.compile(
    r"[\w-]\.(?:com|org|net|io|dev|ai|edu|gov|cloud|app|cn|de|uk|eu|ru|jp)\b"
    r"|connect to [\w-]+\.[\w.-]+|registry|mirror|proxy",
    re.IGNORECASE,
)
_FAULTS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        ("disk full", r"no space left on device|disk quota exceeded|\benospc\b"),
        ("out of memory", r"cannot allocate memory|\bout of memory\b|\boom[- ]?kill|^killed\b|signal: killed"
         r"|: line \d+: +\d+ killed\b|java\.lang\.outofmemoryerror: |memory cgroup"),
        ("no container", r"oci runtime|error response from daemon|cannot connect to the docker daemon|no such container"
         r"|container \S+ is not running"),
    )
)  # fmt: skip
_XTRACE = re.compile(r"^\++ |^\s*$|^[-=_*~]{3,}$|^(?:root|\w+)@[\w.-]+:[^#$]*[#$]")

# -- tests that were not collected

_UNCOLLECTED = re.compile(
    r"^=*\s*(?:no tests ran|collected 0 items)\b|^ERROR: (?:file or directory not found|not found): |^INTERNALERROR>"
    r"|^ImportError while loading conftest|: error: (?:unrecognized arguments|argument )"
    r"|\bInterrupted: \d+ errors? during collection"
    r"|^No tests found|^Ran 0 tests|^no test files$|\bNo tests to run\b"
)
_MODULE = re.compile(r"^(?:E\s+)?(?:ModuleNotFoundError|ImportError): No module named [‘'\"]?(?P<p>[\w.]+)")
_RAISED = re.compile(r"^(?P<file>[^\s:]+\.\w+):\d+: (?:in <module>|\w+)|^\s*File \"(?P<path>[^\"]+)\", line \d+")
_RAISED_BY = re.compile(r"^E\s+(?P<what>\w*(?:Error|Exception)\b.*)")
_OF_VERIFIER = re.compile(r"(?:^|/)(?:tests?|verifier|oracle|solution)/|(?:^|/)(?:test_[^/]*|conftest|[^/]*_test)\.py$")
_OF_PACKAGES = re.compile(r"/(?:site|dist)-packages/|/lib/python[\d.]+/|importlib")


def missing_program(line: str) -> str | None:
    """Return the program that a shell, an interpreter or a container could not start; None for any other line."""
    found = next((m for pattern in _COMPLAINTS if (m := pattern.search(line)) is not None), None)
    return found["p"] if found is not None and not _WORKSPACE.search(line) else None


def _is_download(line: str) -> bool:
    """Return whether something could not be had from a server that is no part of the work."""
    if _DOWNLOAD.search(line) is None or _LOCAL.search(line) is not None:
        return False
    return _NOBODY_THERE.search(line) is None or _DOMAIN.search(line) is not None


def text_of(data: memoryview | bytes, most: int = _LOOKED_AT) -> tuple[str, int]:
    """Return the end of a log without terminal codes, and the lines before it."""
    start = max(len(data) - most, 0)
    text = bytes(data[start:]).decode("utf-8", "replace")
    return _ESCAPES.sub("", text), bytes(data[:start]).count(b"\n")


def read_log(data: memoryview | bytes) -> TestLog:
    """Read the output of a verifier."""
    text, before = text_of(data)
    log = TestLog()
    tests: dict[str, bool | None] = {}
    plain: dict[str, bool | None] = {}
    summed_up = progress = has_failures = of_pytest = False
    last = before_last = 0
    """The last line with something to say."""
    complaints: list[tuple[int, str, str]] = []
    """Programs that were not there, and what could not be downloaded: line, text, program."""
    uncollected: tuple[int, str] | None = None
    raised_in: str | None = None
    raised: tuple[int, str, str | None] | None = None
    """What a collection raised: line, error, file."""
    faults: list[tuple[int, str, str]] = []
    lines = [raw.rstrip("\r").rpartition("\r")[2][:_LINE_CHARS].rstrip() for raw in text.split("\n")]
    for number, line in enumerate(lines, 1):
        if not line or _XTRACE.search(line):
            continue
        maybe = _MAYBE_NAMED.search(line) is not None and not (_DOWNLOAD.search(line) and "::" not in line)
        patterns = (*_NAMED, *_PLAINLY_NAMED) if maybe else ()
        found = next((m for pattern in patterns if (m := pattern.search(line)) is not None), None)
        if found is not None:
            end, name = found["end"].lower(), found["name"].strip()
            is_skipped = end in _SKIPPED or found.groupdict().get("directive") is not None
            of = plain if found.re in _PLAINLY_NAMED else tests
            of[name] = None if is_skipped else end in _PASSED and of.get(name) is not False
            last, log.line, log.text = number, number, line
            continue
        before_last, last = last, number
        if _SUMMARY.search(line):
            summed_up, log.line, log.text = True, number, line
            of_pytest = of_pytest or _OF_PYTEST.search(line) is not None
            has_failures = has_failures or _FAILURES.search(line) is not None
            continue
        progress = progress or _UNNAMED.search(line) is not None
        if _UNCOLLECTED.search(line) and uncollected is None:
            uncollected = number, line
        if (place := _RAISED.search(line)) is not None:
            path = place["file"] or place["path"]
            raised_in = path if not _OF_PACKAGES.search(path) else raised_in
        if (error := _RAISED_BY.search(line)) is not None:
            raised = number, error["what"], raised_in
        if (program := missing_program(line)) is not None:
            if not _WORKSPACE.search(program):
                complaints.append((number, line, program))
            continue
        ended = _EXIT.search(line)
        code = int(ended["code"]) if ended is not None else 0
        goes_on = bool(complaints) and complaints[-1][0] == before_last and _goes_on(line, complaints[-1][1])
        if code in (_NOT_FOUND, _CANNOT_RUN) or goes_on or _is_download(line):
            complaints.append((number, line, ""))
        elif code == _KILLED or any(says.search(line) for _, says in _FAULTS):
            name = next((name for name, says in _FAULTS if says.search(line)), "out of memory")
            faults.append((number, line, name))
    tests = tests if tests or of_pytest else plain
    log.passed = [name for name, is_good in tests.items() if is_good]
    log.failed = [name for name, is_good in tests.items() if is_good is False]
    if log.passed or log.failed or summed_up:
        log.state = "ran"
        log.is_partial = has_failures and not log.failed
        if faults and not summed_up and not log.failed and faults[-1][0] == last:
            _show(log, "fault", *faults[-1])  # it was ended among tests that passed
            log.passed = []
    elif (shown := _not_collected(uncollected, raised, complaints, log)) is not None:
        _show(log, "not_run", *shown)
    elif (runner := next((c for c in complaints if _RUNNERS.search(c[2])), None)) is not None:
        _show(log, "not_run", *runner[:2])
    elif faults and faults[-1][0] == last:
        _show(log, "fault", *faults[-1])
    elif complaints and complaints[-1][0] == last and not progress:
        named = [c for c in complaints if c[2]]
        _show(log, "not_run", *(named or complaints)[-1][:2])
    elif last:
        _show(log, "", last, lines[last - 1])
    log.line += before
    log.text = log.text.strip()[:_SHOWN]
    return log


def _goes_on(line: str, complaint: str) -> bool:
    """Return whether a line is part of the complaint before it: indented, a cause, or by the same program."""
    first = complaint.split(None, 2)[:2]
    return (
        line[:1].isspace()
        or line.lower().startswith("caused by")
        or (len(first) == 2 and line.split(None, 2)[:2] == first)
    )


def _show(log: TestLog, state: State, line: int, text: str, fault: str = "") -> None:
    log.state, log.line, log.text, log.fault = state, line, text, fault


def _not_collected(
    uncollected: tuple[int, str] | None,
    raised: tuple[int, str, str | None] | None,
    complaints: list[tuple[int, str, str]],
    log: TestLog,
) -> tuple[int, str] | None:
    """Return the line that shows why no test was collected, unless the work under test is the cause: its own file
    raised, or it lacks a name that the tests import from it."""
    if uncollected is None:
        return None
    if raised is None:
        return uncollected
    line, error, path = raised
    module = _MODULE.search(error)
    if module is not None and (path is None or _OF_VERIFIER.search(path)):
        log.module = module["p"]
        return line, error
    return uncollected if any(number < line for number, _, _ in complaints) else None


# -- a program that was to act

_PROMPT = re.compile(
    r"^(?:\([\w.-]+\) )?(?:[\w.-]+@[\w.-]+:[^#$\n]{0,200}|(?:ba|z|da)?sh-[\d.]+|(?:/[\w./-]*|~) )"
    r"[#$%] ?(?P<command>.*)$"
)
_SEGMENTS = re.compile(r"&&|\|\||[;|&\n]")
_SETTING = re.compile(r"^(?:\w+=\S*|exec|sudo|env|nohup|time|timeout \S+|stdbuf \S+|command|eval)\s+")
_SET_UP = frozenset((
    "source", ".", "bash", "sh", "zsh", "cd", "export", "set", "unset", "echo", "printf", "clear", "mkdir", "chmod",
    "cp", "mv", "rm", "ls", "cat", "touch", "which", "command", "apt", "apt-get", "apk", "yum", "dnf", "brew", "pip",
    "pip3", "pipx", "uv", "npm", "curl", "wget", "git", "tmux", "stty", "reset", "exit", "true", "sleep", "alias", "ln",
    "tar", "hash", "type", "asciinema",
))  # fmt: skip
"""Programs that prepare an agent's start."""
_AGENT_LOOKED_AT = 256 * 1024


def program_not_there(data: memoryview | bytes, agent: str = "") -> tuple[int, str] | None:
    """Return the line of a terminal or an agent's log which shows that the agent's program could not be started.

    An agent that works meets missing programs, too: they are its own commands' then. So in a terminal the program must
    be that of the last command typed, with none that ran before it but set-up; elsewhere the log must end there, and be
    nothing else or name the agent (`agent`, as its log is called).
    """
    text, before = text_of(data, _AGENT_LOOKED_AT)
    lines = [line.rstrip("\r").rstrip() for line in text.split("\n")]
    starts = [n for n, line in enumerate(lines) if _PROMPT.search(line)]
    if starts:
        shown: tuple[int, str] | None = None
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            prompt = _PROMPT.search(lines[start])
            typed = "\n".join([prompt["command"] if prompt else "", *lines[start + 1 : end]])
            programs = list(_programs(typed))
            output = [(n, line) for n, line in enumerate(lines[start + 1 : end], start + 2) if line.strip()]
            missing = next(
                ((n, line) for n, line in reversed(output[-3:]) if (p := missing_program(line)) and _same(p, programs)),
                None,
            )
            if missing is not None:
                shown = missing
            elif programs and (shown is not None or (output and programs[0] not in _SET_UP)):
                return None  # something ran, or somebody went on
        return (shown[0] + before, shown[1].strip()[:_SHOWN]) if shown is not None else None
    told = [(n, line) for n, line in enumerate(lines, 1) if line.strip() and not _XTRACE.search(line)]
    if not told or any(line.lstrip().startswith("{") for _, line in told):
        return None
    number, line = told[-1]
    program = missing_program(line)
    if program is None or _WORKSPACE.search(program):
        return None
    short = program.rpartition("/")[2]
    is_agent = bool(agent) and (
        agent.startswith(short) or short.startswith(agent) or short in re.split(r"[-_.]", agent)
    )
    is_all = all(missing_program(line) or _is_download(line) for _, line in told)
    return (number + before, line.strip()[:_SHOWN]) if is_agent or is_all else None


def _programs(typed: str) -> Iterator[str]:
    """Yield the programs of a command line, without what is set for them."""
    for segment in _SEGMENTS.split(typed[:_LINE_CHARS]):
        words = segment.strip()
        while (setting := _SETTING.match(words)) is not None:
            words = words[setting.end() :].lstrip()
        if words:
            program, _, rest = words.partition(" ")
            yield program
            if (module := re.match(r"(?:-\w+ )*-m (\S+)", rest)) is not None:
                yield module[1]


def _same(program: str, programs: Iterable[str]) -> bool:
    return any(program in (one, one.rpartition("/")[2]) or one.endswith("/" + program) for one in programs)


# -- reports


def tests_text(tests: Verification) -> str:
    """Return how many tests passed and failed, and the first that failed."""
    failed = tests.failed or []
    named = f": {', '.join(failed[:_NAMED_FAILURES])}{', …' if len(failed) > _NAMED_FAILURES else ''}" if failed else ""
    return f"{len(tests.passed or ())} tests pass, {len(failed)} fail{named}"[:_SHOWN]


def read_ctrf(tests: Iterable[dict[str, Any]], own_failure: Callable[[dict[str, Any]], str | None]) -> Verification:
    """Read the tests of a CTRF report. `own_failure`: what broke in the verifier itself, if a test failed by that."""
    listed = list(tests)
    named = {
        end: [str(t.get("name")) for t in listed if t.get("status") == end and t.get("name")]
        for end in ("passed", "failed")
    }
    if not listed:
        return Verification(status="not_run", message="the report lists no test", passed=[], failed=[])
    made = Verification(passed=named["passed"], failed=named["failed"])
    broken = [own_failure(test) for test in listed if test.get("status") == "failed"]
    if broken and all(broken):
        made.status, made.message = "crashed", broken[0] or ""
    return made


class _JUnit:
    """Collects the test cases of a JUnit report."""

    def __init__(self) -> None:
        self.tests: dict[str, bool | None] = {}
        self._name: str | None = None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "testcase":
            of, name = attributes.get("classname", ""), attributes.get("name", "")
            self._name = f"{of}.{name}" if of and name else name or of
            self.tests.setdefault(self._name, True)
        elif self._name is not None and tag in ("failure", "error"):
            self.tests[self._name] = False
        elif self._name is not None and tag == "skipped" and self.tests[self._name]:
            self.tests[self._name] = None

    def end(self, tag: str) -> None:
        if tag == "testcase":
            self._name = None


def read_junit(data: memoryview | bytes) -> Verification | None:
    """Read a JUnit report; None if it is no XML. Entities of its own are refused."""
    report, parser = _JUnit(), expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise expat.ExpatError("it declares an entity")

    parser.StartElementHandler, parser.EndElementHandler, parser.EntityDeclHandler = report.start, report.end, refuse
    try:
        parser.Parse(bytes(data), True)
    except (expat.ExpatError, ValueError):
        return None
    if not report.tests:
        return Verification(status="not_run", message="the report lists no test", passed=[], failed=[])
    return Verification(
        passed=[name for name, end in report.tests.items() if end],
        failed=[name for name, end in report.tests.items() if end is False],
    )
