"""Scanners: files in, findings out. They know no repository, no commit and no author. Our own rules run in this
process; programs of others (bandit, ruff's S rules, semgrep) run where they are installed."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

from agentsignals import private_files
from agentsignals.errors import ScanError, UsageError
from agentsignals.model.registry import no_such
from agentsignals.repositories.weakness_rules import Level, Text, rules, rules_for
from agentsignals.repositories.weakness_rules.python import module_of

Place = Literal["code", "test", "vendored"]

_DECLARED = tomllib.loads(Path(__file__).with_name("scanners.toml").read_text("utf-8"))
_LANGUAGES = {ending: name for name, endings in _DECLARED["languages"].items() for ending in endings.split()}
_CWE_OF = {rule: cwe for cwe, named in _DECLARED["ruff"].items() for rule in named.split()}
_LEVELS: dict[str, Level] = {word: level for level, words in _DECLARED["levels"].items() for word in words.split()}
_DOCKER = re.compile(r"(?:Dockerfile|Containerfile)(?:\.[\w.-]+)?")
_TEST = re.compile(
    r"(?:^|/)(?:tests?|__tests__|testdata|fixtures?|specs?|e2e|examples?|__mocks__|mocks?)/"
    r"|(?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.\w+$|\.(?:test|spec|stories)\.\w+$"
)
_VENDORED = re.compile(
    r"(?:^|/)(?:node_modules|vendor|third_party|dist|build|\.venv|venv|site-packages|bower_components|\.yarn)/"
    r"|\.min\.(?:js|css|html)$|(?:_pb2|\.pb|\.generated|_generated)\.\w+$|(?:^|/)(?:package-lock\.json|pnpm-lock\.yaml)$"
)


def language_of(path: str) -> str | None:
    """The language of a file by its name; None for what no rule is about."""
    name = PurePosixPath(path).name
    if _DOCKER.fullmatch(name):
        return "dockerfile"
    return _LANGUAGES.get(name.rpartition(".")[2].lower()) if "." in name else None


def place_of(path: str) -> Place:
    """`vendored`: others' code, or made by a program: not scanned; `test`: tests, samples, examples: counted apart."""
    if _VENDORED.search(path):
        return "vendored"
    return "test" if _TEST.search(path) else "code"


def level(severity: object) -> Level:
    """A scanner's word for how bad or how sure, as one of ours; `low` for what is not known."""
    return _LEVELS.get(str(severity).lower(), "low")


class SourceFile(Struct, frozen=True):
    path: str
    data: bytes


class ScanFinding(Struct, gc=False, kw_only=True):
    rule: str
    line: int
    end_line: int
    message: str
    cwe: tuple[str, ...]
    """`CWE-78`, …; empty when the scanner names none."""
    severity: Level
    confidence: Level
    text: str = ""
    """Matched text, at most 200 characters."""
    match: str = ""
    around: str = ""
    """Names the matched text with the lines around it."""


class Scanned(Struct):
    """Findings in one file. `skipped` says why there are none: `not_text`, `too_large`, `minified`, `missing` from
    the clone, or `unparsed` when only some rules could be applied."""

    findings: list[ScanFinding]
    skipped: str | None = None


class Scanner(Protocol):
    """Findings of two versions don't compare: whatever changes what is found is part of `version`."""

    @property
    def id(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def at_once(self) -> int: ...

    def takes(self, path: str) -> bool: ...

    def scan(self, files: Sequence[SourceFile]) -> list[Scanned]:
        """One answer a file, in their order. ScanError when the scanner itself does not work."""
        ...


_AROUND = 2
"""Lines before and after a finding that tell it from an equal one elsewhere in the file
(design/attribution.md#weaknesses)."""
_KEPT_CHARS = 200


def marked(finding: ScanFinding, lines: Sequence[str], matched: str | None = None) -> ScanFinding:
    """The finding with its text and the names by which it is known again in another version of the file."""
    first, last = max(finding.line - 1, 0), min(finding.end_line, len(lines))
    text = matched if matched is not None else "\n".join(lines[first:last])
    finding.text = " ".join(text.split())[:_KEPT_CHARS]
    finding.match = name_of(text)
    finding.around = name_of("\n".join(lines[max(first - _AROUND, 0) : last + _AROUND]))
    return finding


def name_of(text: str) -> str:
    """A short name of a text without its white space."""
    plain = "".join(text.split())
    return hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


_SECONDS = 900


class Program:
    """A scanner that is a program. `config`: a file or folder of rules, for those that take one.

    Files are written into a folder of their own; nothing of a repository is run, and none of its settings is read.
    """

    at_once = 500

    def __init__(self, name: str, config: Path | None = None) -> None:
        self.id = name
        self._config = config
        beside = Path(sys.executable).with_name(name)
        path = shutil.which(name) or (str(beside) if beside.exists() else None)
        if path is None:
            raise ScanError(
                f"The program {name} is not installed.", f"Run `pip install {name}`, or scan with `--scanner rules`."
            )
        self._path = path
        output = self._run(["--version"], None)
        self.version = " ".join(output.decode("utf-8", "replace").split("\n")[0].split())[:40]
        if config is not None:  # the rule set is a part of the version: a file, or all files of a folder
            files = sorted(p for p in config.rglob("*") if p.is_file()) if config.is_dir() else [config]
            hasher = hashlib.blake2b(digest_size=6)
            for file in files:
                hasher.update(file.name.encode() + b"\0" + file.read_bytes())
            self.version += f" {hasher.hexdigest()}"

    def takes(self, path: str) -> bool:
        language = language_of(path)
        return language == "python" if self.id in ("bandit", "ruff") else language is not None

    def scan(self, files: Sequence[SourceFile]) -> list[Scanned]:
        with tempfile.TemporaryDirectory(prefix="agentsignals-scan-") as folder:
            root = Path(folder).resolve()
            (root / ".semgrepignore").touch()  # without it semgrep leaves out tests and more of its own accord
            names = {}
            for n, file in enumerate(files):
                # Under a name that means the same to a scanner, and can lead nowhere else.
                parts = [p for p in PurePosixPath(file.path).parts if p not in ("..", ".", "/")]
                safe = [
                    "".join(c if c.isalnum() or c in "-_. " else "_" for c in p).lstrip("-.")[-80:] or "_"
                    for p in parts[-6:]
                ]
                pairs = zip(parts[-6:], safe, strict=True)
                path = root.joinpath(
                    str(n), *(f".{s}" if p.startswith(".") and not p.startswith("..") else s for p, s in pairs)
                )
                private_files.make_folder(path.parent)
                private_files.write(path, file.data)
                names[str(path)] = n
            config = ["--config", str(self._config)] if self._config is not None else []
            arguments, reader = _PROGRAMS[self.id]
            output = self._run([*arguments.split(), *config, str(root)], root, accepted=(0, 1))
        findings: dict[int, list[ScanFinding]] = defaultdict(list)
        lines = [file.data.decode("utf-8", "replace").splitlines() for file in files]
        try:
            found = list(reader(msgspec.json.decode(output)))
        except (msgspec.DecodeError, KeyError, TypeError, AttributeError) as unlike:
            raise ScanError(
                f"The output of the scanner {self.id} is not understood: {unlike!r}.", "Install an older version of it."
            ) from None
        for name, finding in found:
            if (at := names.get(name)) is not None:
                findings[at].append(marked(finding, lines[at]))
        return [Scanned(sorted(findings[n], key=lambda f: (f.line, f.rule))) for n in range(len(files))]

    def _run(self, words: list[str], folder: Path | None, accepted: tuple[int, ...] = (0,)) -> bytes:
        name = Path(self._path).name
        try:
            done = subprocess.run(  # noqa: S603  (no shell; the words are ours and the names of files we wrote)
                [self._path, *words],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                cwd=folder,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ScanError(f"The scanner {name} took more than {_SECONDS} s.", "Scan with fewer rules.") from None
        except OSError as problem:
            raise ScanError(f"The scanner {name} can't be run: {problem.strerror}.", "Install it again.") from None
        if done.returncode not in accepted:
            told = done.stderr.decode("utf-8", "replace")[-300:]
            message = "".join(c if c.isprintable() else " " for c in told).strip()
            raise ScanError(f"{name} failed: {message or f'exit code {done.returncode}'}", "Run it alone to see why.")
        return done.stdout


def _found(rule: str, lines: Sequence[Any], message: Any, cwe: Sequence[str], rating: tuple[Any, Any]) -> ScanFinding:
    severity, confidence = map(level, rating)
    return ScanFinding(
        rule=rule, line=int(lines[0]), end_line=int(lines[-1]), message=str(message), cwe=tuple(cwe),
        severity=severity, confidence=confidence,
    )  # fmt: skip


def _bandit(report: Any) -> Iterator[tuple[str, ScanFinding]]:
    for issue in report["results"]:
        lines = issue.get("line_range") or [issue["line_number"]]
        cwe = (issue.get("issue_cwe") or {}).get("id")
        rating = issue["issue_severity"], issue["issue_confidence"]
        finding = _found(str(issue["test_id"]), lines, issue["issue_text"], [f"CWE-{cwe}"] if cwe else [], rating)
        yield str(issue["filename"]), finding


def _ruff(report: Any) -> Iterator[tuple[str, ScanFinding]]:
    for issue in report:
        rule = str(issue["code"] or "")
        if rule.startswith("S"):  # what can't be parsed is told as a finding, too
            lines = issue["location"]["row"], issue["end_location"]["row"]
            cwes = [_CWE_OF[rule]] if rule in _CWE_OF else []
            yield str(issue["filename"]), _found(rule, lines, issue["message"], cwes, ("medium", "medium"))


def _semgrep(report: Any) -> Iterator[tuple[str, ScanFinding]]:
    for issue in report["results"]:
        extra = issue["extra"]
        about = extra.get("metadata") or {}
        listed = about.get("cwe") or []
        cwes = [str(c).partition(":")[0].strip() for c in ([listed] if isinstance(listed, str) else listed)]
        rule, lines = str(issue["check_id"]).rpartition(".")[2], (issue["start"]["line"], issue["end"]["line"])
        rating = extra.get("severity"), about.get("confidence", "medium")
        yield str(issue["path"]), _found(rule, lines, extra["message"], cwes, rating)


_PROGRAMS: dict[str, tuple[str, Callable[[Any], Iterator[tuple[str, ScanFinding]]]]] = {
    "bandit": ("-f json -q --exit-zero -r", _bandit),
    "ruff": ("check --isolated --no-cache --exit-zero --select S --output-format json", _ruff),
    "semgrep": ("scan --json --metrics=off --disable-version-check --quiet --no-git-ignore", _semgrep),
}
"""Arguments of each program, and what reads its answer."""

_LARGEST_BYTES = 1_000_000
"""Larger files are data, or made by a program."""
_LONGEST_LINE = 5_000
"""A file with a longer line is minified, or data."""
_MOST_OF_A_RULE = 200
"""Findings of one rule in one file; more say nothing more."""


class OwnRules:
    """Our own rules as a scanner."""

    id = "rules"
    at_once = 50

    @cached_property
    def version(self) -> str:
        """Changes with any rule's version."""
        identity = ",".join(f"{rule.id}@{rule.version}" for rule in rules())
        return f"{len(rules())}-{hashlib.blake2b(identity.encode(), digest_size=4).hexdigest()}"

    def takes(self, path: str) -> bool:
        return language_of(path) is not None

    def scan(self, files: Sequence[SourceFile]) -> list[Scanned]:
        return [scan_one(file.path, file.data) for file in files]


def scan_one(path: str, data: bytes) -> Scanned:
    """Apply our own rules to a file."""
    language = language_of(path)
    if language is None:
        return Scanned([])
    if len(data) > _LARGEST_BYTES:
        return Scanned([], "too_large")
    if b"\0" in data[:8000]:
        return Scanned([], "not_text")
    plain = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    lines = plain.split("\n")
    if max(map(len, lines)) > _LONGEST_LINE:
        return Scanned([], "minified")
    text = Text(path, language, plain)
    findings: list[ScanFinding] = []
    for rule in rules_for(language):
        seen: set[int] = set()
        for begin, end in rule.find(text):
            line = text.line_at(begin)
            if line in seen:  # one finding a rule and line, or a long line would weigh more than its neighbours
                continue
            seen.add(line)
            finding = ScanFinding(
                rule=rule.id, line=line, end_line=text.line_at(max(end - 1, begin)), message=rule.message,
                cwe=rule.cwe, severity=rule.severity, confidence=rule.confidence,
            )  # fmt: skip
            findings.append(marked(finding, lines, text.text[begin:end]))
            if len(seen) >= _MOST_OF_A_RULE:
                break
    findings.sort(key=lambda finding: (finding.line, finding.rule))
    return Scanned(findings, "unparsed" if language == "python" and module_of(plain) is None else None)


NAMES = (OwnRules.id, *_PROGRAMS)


def scanner(name: str, config: str | None = None) -> Scanner:
    """The scanner of that name. UsageError for a name that is none, and for rules that are missing or not wanted;
    ScanError when its program is not installed.
    """
    if name not in NAMES:
        raise UsageError(*no_such("scanner", name, NAMES))
    if (name == "semgrep") != (config is not None):
        reason = "has no rules of its own" if config is None else "accepts no other rules"
        raise UsageError(
            f"The scanner {name} {reason}.", "`--scanner semgrep --config FILE` scans with your own rules."
        )
    if config is None:
        return OwnRules() if name == OwnRules.id else Program(name)
    path = Path(config).expanduser().absolute()
    if not path.exists():  # semgrep would take a name for one of its registry's, and ask the network
        raise UsageError(
            f"{config!r} is not a file or folder of rules.", "Name files on this machine: rules are not downloaded."
        )
    return Program(name, path)
