"""Read what test runners and their scripts leave: which tests ended how, and whether any test ran at all.

One reader for CTRF, JUnit XML, the output of pytest and other runners, and plain scripts. Programs that were not there
are known by the complaint of a shell, an interpreter or a container, whatever they are called.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal
from xml.parsers import expat

from msgspec import Struct, field

from agentsignals.formats.outcome import error_words
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
    """Test results read from a verifier's output."""

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


def _load() -> tuple[dict[str, list[re.Pattern[str]]], dict[str, re.Pattern[str]], dict[str, re.Pattern[str]]]:
    held = tomllib.loads(Path(__file__).with_name("test_report.toml").read_text("utf-8"))
    shared = {"@shell": held.pop("shell"), "@network": error_words().network}

    def made(pattern: str) -> re.Pattern[str]:
        for name, text in shared.items():
            pattern = pattern.replace(name, text)
        return re.compile(pattern.replace("\n", "|"))

    faults = {name: made(pattern) for name, pattern in held.pop("faults").items()}
    lists = {name: [made(pattern) for pattern in each] for name, each in held.items() if isinstance(each, list)}
    return lists, {name: made(pattern) for name, pattern in held.items() if isinstance(pattern, str)}, faults


_LISTS, _LINES, _FAULTS = _load()


def _says(name: str, line: str) -> re.Match[str] | None:
    return _LINES[name].search(line)


_NOT_FOUND, _CANNOT_RUN, _KILLED = 127, 126, 137
"""POSIX, "Exit Status for Commands"; 128 and the number of the signal."""


def missing_program(line: str) -> str | None:
    """Return the program that a shell, an interpreter or a container could not start; None for any other line."""
    found = next((m for pattern in _LISTS["complaints"] if (m := pattern.search(line)) is not None), None)
    return found["p"] if found is not None and not _says("workspace", line) else None


def _is_download(line: str) -> bool:
    if _says("download", line) is None or _says("local", line) is not None:
        return False
    return _says("nobody_there", line) is None or _says("domain", line) is not None


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
    last = before_last = 0  # the last lines with something to say
    complaints: list[tuple[int, str, str]] = []
    """Programs that were not there, and what could not be downloaded: line, text, program."""
    uncollected: tuple[int, str] | None = None
    raised_in: str | None = None
    raised: tuple[int, str, str | None] | None = None
    """What a collection raised: line, error, file."""
    faults: list[tuple[int, str, str]] = []
    lines = [raw.rstrip("\r").rpartition("\r")[2][:_LINE_CHARS].rstrip() for raw in text.split("\n")]
    for number, line in enumerate(lines, 1):
        if not line or _says("xtrace", line):
            continue
        maybe = _says("maybe_named", line) is not None and not (_says("download", line) and "::" not in line)
        patterns = (*_LISTS["named"], *_LISTS["plainly_named"]) if maybe else ()
        found = next((m for pattern in patterns if (m := pattern.search(line)) is not None), None)
        if found is not None:
            end, name = found["end"].lower(), found["name"].strip()
            is_skipped = end in _SKIPPED or found.groupdict().get("directive") is not None
            of = plain if found.re in _LISTS["plainly_named"] else tests
            of[name] = None if is_skipped else end in _PASSED and of.get(name) is not False
            last, log.line, log.text = number, number, line
            continue
        before_last, last = last, number
        if _says("summary", line):
            summed_up, log.line, log.text = True, number, line
            of_pytest = of_pytest or _says("of_pytest", line) is not None
            has_failures = has_failures or _says("failures", line) is not None
            continue
        progress = progress or _says("unnamed", line) is not None
        if _says("uncollected", line) and uncollected is None:
            uncollected = number, line
        if (place := _says("raised", line)) is not None:
            path = place["file"] or place["path"]
            raised_in = path if not _says("of_packages", path) else raised_in
        if (error := _says("raised_by", line)) is not None:
            raised = number, error["what"], raised_in
        if (program := missing_program(line)) is not None:
            if not _says("workspace", program):
                complaints.append((number, line, program))
            continue
        ended = _says("exit", line)
        code = int(ended["code"]) if ended is not None else 0
        goes_on = False
        if complaints and complaints[-1][0] == before_last:  # indented, a cause, or by the same program
            first = complaints[-1][1].split(None, 2)[:2]
            by_same = len(first) == 2 and line.split(None, 2)[:2] == first
            goes_on = line[:1].isspace() or line.lower().startswith("caused by") or by_same
        if code in (_NOT_FOUND, _CANNOT_RUN) or goes_on or _is_download(line):
            complaints.append((number, line, ""))
        elif code == _KILLED or any(says.search(line) for says in _FAULTS.values()):
            name = next((name for name, says in _FAULTS.items() if says.search(line)), "out of memory")
            faults.append((number, line, name))
    tests = tests if tests or of_pytest else plain
    log.passed = [name for name, is_good in tests.items() if is_good]
    log.failed = [name for name, is_good in tests.items() if is_good is False]
    # The line that shows why no test was collected, unless the work under test is the cause: its own file raised, or it
    # lacks a name that the tests import from it.
    if raised is not None and uncollected is not None:
        at, what, raised_by = raised
        module = _says("module", what)
        if module is not None and (raised_by is None or _says("of_verifier", raised_by)):
            log.module, uncollected = module["p"], (at, what)
        elif all(number >= at for number, _, _ in complaints):
            uncollected = None
    is_killed = bool(faults) and faults[-1][0] == last
    shown: tuple[State, tuple[int, str]] | None = None
    if log.passed or log.failed or summed_up:
        log.state = "ran"
        log.is_partial = has_failures and not log.failed
        if is_killed and not summed_up and not log.failed:  # it was ended among tests that passed
            shown, log.passed, log.fault = ("fault", faults[-1][:2]), [], faults[-1][2]
        log.module = None
    elif uncollected is not None:
        shown = "not_run", uncollected
    elif (runner := next((c for c in complaints if _says("runners", c[2])), None)) is not None:
        shown = "not_run", runner[:2]
    elif is_killed:
        shown, log.fault = ("fault", faults[-1][:2]), faults[-1][2]
    elif complaints and complaints[-1][0] == last and not progress:
        shown = "not_run", ([c for c in complaints if c[2]] or complaints)[-1][:2]
    elif last:
        shown = "", (last, lines[last - 1])
    if shown is not None:
        log.state, (log.line, log.text) = shown
    log.line += before
    log.text = log.text.strip()[:_SHOWN]
    return log


# -- a program that was to act

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
    starts = [n for n, line in enumerate(lines) if _says("prompt", line)]
    if starts:
        shown: tuple[int, str] | None = None
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            prompt = _says("prompt", lines[start])
            typed = "\n".join([prompt["command"] if prompt else "", *lines[start + 1 : end]])
            programs = list(_programs(typed))
            output = [(n, line) for n, line in enumerate(lines[start + 1 : end], start + 2) if line.strip()]
            missing = None
            for n, line in output[-3:]:
                if (program := missing_program(line)) and any(f"/{p}".endswith(f"/{program}") for p in programs):
                    missing = n, line
            if missing is not None:
                shown = missing
            elif programs and (shown is not None or (output and programs[0] not in _SET_UP)):
                return None  # something ran, or somebody went on
        return (shown[0] + before, shown[1].strip()[:_SHOWN]) if shown is not None else None
    told = [(n, line) for n, line in enumerate(lines, 1) if line.strip() and not _says("xtrace", line)]
    if not told or any(line.lstrip().startswith("{") for _, line in told):
        return None
    number, line = told[-1]
    program = missing_program(line)
    if program is None or _says("workspace", program):
        return None
    short = program.rpartition("/")[2]
    is_agent = bool(agent) and (
        agent.startswith(short) or short.startswith(agent) or short in re.split(r"[-_.]", agent)
    )
    is_all = all(missing_program(line) or _is_download(line) for _, line in told)
    return (number + before, line.strip()[:_SHOWN]) if is_agent or is_all else None


def _programs(typed: str) -> Iterator[str]:
    for segment in _LINES["segments"].split(typed[:_LINE_CHARS]):
        words = segment.strip()
        while (setting := _LINES["setting"].match(words)) is not None:
            words = words[setting.end() :].lstrip()
        if words:
            program, _, rest = words.partition(" ")
            yield program
            if (module := re.match(r"(?:-\w+ )*-m (\S+)", rest)) is not None:
                yield module[1]


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


def read_junit(data: memoryview | bytes) -> Verification | None:
    """Read a JUnit report; None if it is no XML. Entities of its own are refused."""
    tests: dict[str, bool | None] = {}
    case: list[str] = []
    """The test case that is open."""

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag == "testcase":
            case[:] = [".".join(filter(None, (attributes.get("classname"), attributes.get("name"))))]
            tests.setdefault(case[0], True)
        elif case and tag in ("failure", "error"):
            tests[case[0]] = False
        elif case and tag == "skipped" and tests[case[0]]:
            tests[case[0]] = None

    def refuse(*_: object) -> None:
        raise expat.ExpatError("it declares an entity")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EntityDeclHandler = start, refuse
    parser.EndElementHandler = lambda tag: case.clear() if tag == "testcase" else None
    try:
        parser.Parse(bytes(data), True)
    except (expat.ExpatError, ValueError):
        return None
    if not tests:
        return Verification(status="not_run", message="the report lists no test", passed=[], failed=[])
    return Verification(
        passed=[name for name, end in tests.items() if end],
        failed=[name for name, end in tests.items() if end is False],
    )
