"""The scanners by name: our own rules, in this process, and programs of others that are installed (bandit, ruff's S
rules, semgrep)."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from agentsignals import private_files
from agentsignals.errors import ScanError, UsageError
from agentsignals.repositories.scanner import Level, ScanFinding, Scanned, Scanner, SourceFile, language_of, marked
from agentsignals.repositories.weakness_rules import rules, rules_for
from agentsignals.repositories.weakness_rules.python import module_of
from agentsignals.repositories.weakness_rules.rule import Text

_RULES_OF = {
    "CWE-78": "S602 S603 S604 S605 S606 S607 S609 S601 S404",
    "CWE-89": "S608 S610 S611",
    "CWE-94": "S612 S702",
    "CWE-95": "S102 S307",
    "CWE-79": "S308 S701 S704",
    "CWE-22": "S202",
    "CWE-259": "S105 S106 S107",
    "CWE-295": "S323 S501 S507",
    "CWE-319": "S312 S321 S401 S402 S508",
    "CWE-326": "S505 S509",
    "CWE-327": "S304 S305 S413 S502 S503 S504",
    "CWE-328": "S303 S324",
    "CWE-330": "S311",
    "CWE-377": "S108 S306",
    "CWE-400": "S113",
    "CWE-489": "S201",
    "CWE-502": "S301 S302 S403 S506",
    "CWE-605": "S104",
    "CWE-611": "S313 S314 S315 S316 S317 S318 S319 S320 S405 S406 S407 S408 S409 S410 S411",
    "CWE-732": "S103",
    "CWE-939": "S310",
}
_CWE_OF = {rule: cwe for cwe, rules in _RULES_OF.items() for rule in rules.split()}
"""The weakness that each of ruff's S rules is about, which its output does not name (MITRE's list, by title). Rules
without an entry are about robustness (`assert`, swallowed exceptions), or about an import alone."""

_SECONDS = 900
_LEVELS: dict[str, Level] = {
    "low": "low", "medium": "medium", "high": "high", "info": "low", "inventory": "low", "experiment": "low",
    "warning": "medium", "error": "high", "critical": "high", "undefined": "low", "note": "low", "none": "low",
}  # fmt: skip


def level(severity: object) -> Level:
    """A scanner's word for how bad or how sure, as one of ours; `low` for what is not known."""
    return _LEVELS.get(str(severity).lower(), "low")


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
                f"The program {name} is not installed.", f"`pip install {name}`, or scan with `--scanner rules`."
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
            names = {_written(root, n, file): n for n, file in enumerate(files)}
            config = ["--config", str(self._config)] if self._config is not None else []
            output = self._run([*_ARGUMENTS[self.id], *config, str(root)], root, accepted=(0, 1))
            findings: dict[int, list[ScanFinding]] = defaultdict(list)
            lines = [file.data.decode("utf-8", "replace").splitlines() for file in files]
            try:
                found = list(_READERS[self.id](msgspec.json.decode(output)))
            except (msgspec.DecodeError, KeyError, TypeError, AttributeError) as unlike:
                raise ScanError(
                    f"{self.id} answered what is not understood: {unlike!r}.", "Is it a newer version?"
                ) from None
            for path, finding in found:
                n = names.get(path)
                if n is not None:
                    findings[n].append(marked(finding, lines[n]))
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
            raise ScanError(f"{name} took more than {_SECONDS} s.", "Scan with fewer rules.") from None
        except OSError as problem:
            raise ScanError(f"{name} can't be run: {problem.strerror}.", "Install it again.") from None
        if done.returncode not in accepted:
            told = done.stderr.decode("utf-8", "replace")[-300:]
            message = "".join(c if c.isprintable() else " " for c in told).strip()
            raise ScanError(f"{name} failed: {message or done.returncode}", "Run it by itself to see why.")
        return done.stdout


_ARGUMENTS = {
    "bandit": ["-f", "json", "-q", "--exit-zero", "-r"],
    "ruff": ["check", "--isolated", "--no-cache", "--exit-zero", "--select", "S", "--output-format", "json"],
    "semgrep": ["scan", "--json", "--metrics=off", "--disable-version-check", "--quiet", "--no-git-ignore"],
}


def _written(root: Path, n: int, file: SourceFile) -> str:
    """Writes a file under a name that means the same to a scanner, and can lead nowhere else."""
    parts = [p for p in PurePosixPath(file.path).parts if p not in ("..", ".", "/")]
    safe = ["".join(c if c.isalnum() or c in "-_. " else "_" for c in p).lstrip("-.")[-80:] or "_" for p in parts[-6:]]
    kept = [
        f".{s}" if p.startswith(".") and not p.startswith("..") else s for p, s in zip(parts[-6:], safe, strict=True)
    ]
    path = root / str(n) / Path(*kept)
    private_files.make_folder(path.parent)
    private_files.write(path, file.data)
    return str(path)


def _found(rule: str, lines: Sequence[Any], message: Any, cwe: Iterable[str], rating: tuple[Any, Any]) -> ScanFinding:
    """A finding of a program. `rating`: its words for how bad and how sure."""
    return ScanFinding(
        rule=rule,
        line=int(lines[0]),
        end_line=int(lines[-1]),
        message=str(message),
        cwe=tuple(cwe),
        severity=level(rating[0]),
        confidence=level(rating[1]),
    )


def _bandit(report: Any) -> Iterator[tuple[str, ScanFinding]]:
    for issue in report["results"]:
        lines = issue.get("line_range") or [issue["line_number"]]
        cwe = (issue.get("issue_cwe") or {}).get("id")
        cwes = (f"CWE-{cwe}",) if cwe else ()
        rating = issue["issue_severity"], issue["issue_confidence"]
        yield str(issue["filename"]), _found(str(issue["test_id"]), lines, issue["issue_text"], cwes, rating)


def _ruff(report: Any) -> Iterator[tuple[str, ScanFinding]]:
    for issue in report:
        rule = str(issue["code"] or "")
        if rule.startswith("S"):  # what can't be parsed is told as a finding, too
            lines = issue["location"]["row"], issue["end_location"]["row"]
            cwes = (_CWE_OF[rule],) if rule in _CWE_OF else ()
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


_READERS = {"bandit": _bandit, "ruff": _ruff, "semgrep": _semgrep}


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
                rule=rule.id,
                line=line,
                end_line=text.line_at(max(end - 1, begin)),
                message=rule.message,
                cwe=rule.cwe,
                severity=rule.severity,
                confidence=rule.confidence,
            )
            findings.append(marked(finding, lines, text.text[begin:end]))
            if len(seen) >= _MOST_OF_A_RULE:
                break
    findings.sort(key=lambda finding: (finding.line, finding.rule))
    return Scanned(findings, "unparsed" if language == "python" and module_of(plain) is None else None)


NAMES = (OwnRules.id, *_READERS)


def scanner(name: str, config: str | None = None) -> Scanner:
    """The scanner of that name. UsageError for a name that is none, and for rules that are missing or not wanted;
    ScanError when its program is not installed.
    """
    if name not in NAMES:
        raise UsageError(f"There is no scanner {name!r}.", f"The scanners: {', '.join(NAMES)}.")
    if (name == "semgrep") != (config is not None):
        reason = "brings no rules of its own" if config is None else "takes no rules of others"
        raise UsageError(
            f"The scanner {name} {reason}.", "`--scanner semgrep --config FILE` scans with rules of yours."
        )
    if config is None:
        return OwnRules() if name == OwnRules.id else Program(name)
    path = Path(config).expanduser().absolute()
    if not path.exists():  # semgrep would take a name for one of its registry's, and ask the network
        raise UsageError(f"{config!r} is no file or folder of rules.", "Rules lie in files; a registry is never asked.")
    return Program(name, path)
