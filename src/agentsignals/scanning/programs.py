"""Scanners that are programs of others, run when they are installed: bandit, ruff's S rules, semgrep.

Files are written into a folder of their own; nothing of a repository is run, and none of its settings is read.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from agentsignals.errors import ScanError
from agentsignals.scanning.languages import language_of
from agentsignals.scanning.ruff_cwes import CWE_OF
from agentsignals.scanning.scanner import Level, ScanFinding, Scanned, SourceFile, marked

_SECONDS = 900
_LEVELS: dict[str, Level] = {
    "low": "low", "medium": "medium", "high": "high", "info": "low", "inventory": "low", "experiment": "low",
    "warning": "medium", "error": "high", "critical": "high", "undefined": "low", "note": "low", "none": "low",
}  # fmt: skip


def level(severity: object) -> Level:
    """A scanner's word for how bad or how sure, as one of ours; `low` for what is not known."""
    return _LEVELS.get(str(severity).lower(), "low")


class Program:
    """A scanner that is a program. `config`: a file or folder of rules, for those that take one."""

    at_once = 500

    def __init__(self, name: str, config: Path | None = None) -> None:
        self.id = name
        self._config = config
        self._path = _program_path(name)
        output = _output([self._path, "--version"], None)
        self.version = " ".join(output.decode("utf-8", "replace").split("\n")[0].split())[:40]
        if config is not None:
            self.version += f" {_hash_of(config)}"

    def takes(self, path: str) -> bool:
        language = language_of(path)
        return language == "python" if self.id in ("bandit", "ruff") else language is not None

    def scan(self, files: Sequence[SourceFile]) -> list[Scanned]:
        with tempfile.TemporaryDirectory(prefix="agentsignals-scan-") as folder:
            root = Path(folder).resolve()
            (root / ".semgrepignore").touch()  # without it semgrep leaves out tests and more of its own accord
            names = {_written(root, n, file): n for n, file in enumerate(files)}
            findings: dict[int, list[ScanFinding]] = defaultdict(list)
            lines = [file.data.decode("utf-8", "replace").splitlines() for file in files]
            for path, finding in self._output_of(root):
                n = names.get(path)
                if n is not None:
                    findings[n].append(marked(finding, lines[n]))
            return [Scanned(sorted(findings[n], key=lambda f: (f.line, f.rule))) for n in range(len(files))]

    def _output_of(self, root: Path) -> list[tuple[str, ScanFinding]]:
        output = _output([self._path, *self._words(root)], root, accepted=(0, 1))
        try:
            return _READERS[self.id](msgspec.json.decode(output))
        except (msgspec.DecodeError, KeyError, TypeError, AttributeError) as unlike:
            raise ScanError(
                f"{self.id} answered what is not understood: {unlike!r}.", "Is it a newer version?"
            ) from None

    def _words(self, root: Path) -> list[str]:
        if self.id == "bandit":
            return ["-r", str(root), "-f", "json", "-q", "--exit-zero"]
        if self.id == "ruff":
            return ["check", "--isolated", "--no-cache", "--exit-zero", "--select", "S", "--output-format", "json",
                    str(root)]  # fmt: skip
        return ["scan", "--config", str(self._config), "--json", "--metrics=off", "--disable-version-check", "--quiet",
                "--no-git-ignore", str(root)]  # fmt: skip


def _program_path(name: str) -> str:
    beside = Path(sys.executable).with_name(name)
    path = shutil.which(name) or (str(beside) if beside.exists() else None)
    if path is None:
        raise ScanError(
            f"The program {name} is not installed.", f"`pip install {name}`, or scan with `--scanner rules`."
        )
    return path


def _output(words: list[str], folder: Path | None, accepted: tuple[int, ...] = (0,)) -> bytes:
    try:
        done = subprocess.run(  # noqa: S603  (no shell; the words are ours and the names of files we wrote)
            words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, cwd=folder, check=False
        )
    except subprocess.TimeoutExpired:
        raise ScanError(f"{Path(words[0]).name} took more than {_SECONDS} s.", "Scan with fewer rules.") from None
    except OSError as problem:
        raise ScanError(f"{Path(words[0]).name} can't be run: {problem.strerror}.", "Install it again.") from None
    if done.returncode not in accepted:
        message = "".join(c if c.isprintable() else " " for c in done.stderr.decode("utf-8", "replace")[-300:]).strip()
        raise ScanError(f"{Path(words[0]).name} failed: {message or done.returncode}", "Run it by itself to see why.")
    return done.stdout


def _written(root: Path, n: int, file: SourceFile) -> str:
    """Writes a file under a name that means the same to a scanner, and can lead nowhere else."""
    parts = [p for p in PurePosixPath(file.path).parts if p not in ("..", ".", "/")]
    safe = ["".join(c if c.isalnum() or c in "-_. " else "_" for c in p).lstrip("-.")[-80:] or "_" for p in parts[-6:]]
    kept = [
        f".{s}" if p.startswith(".") and not p.startswith("..") else s for p, s in zip(parts[-6:], safe, strict=True)
    ]
    path = root / str(n) / Path(*kept)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file.data)
    return str(path)


def _hash_of(config: Path) -> str:
    """Names a rule set: a file, or all files of a folder."""
    files = sorted(p for p in config.rglob("*") if p.is_file()) if config.is_dir() else [config]
    hasher = hashlib.blake2b(digest_size=6)
    for path in files:
        hasher.update(path.name.encode() + b"\0" + path.read_bytes())
    return hasher.hexdigest()


def _bandit(report: Any) -> list[tuple[str, ScanFinding]]:
    findings = []
    for issue in report["results"]:
        lines = issue.get("line_range") or [issue["line_number"]]
        cwe = (issue.get("issue_cwe") or {}).get("id")
        findings.append(
            (
                str(issue["filename"]),
                ScanFinding(
                    rule=str(issue["test_id"]),
                    line=int(lines[0]),
                    end_line=int(lines[-1]),
                    message=str(issue["issue_text"]),
                    cwe=(f"CWE-{cwe}",) if cwe else (),
                    severity=level(issue["issue_severity"]),
                    confidence=level(issue["issue_confidence"]),
                ),
            )
        )
    return findings


def _ruff(report: Any) -> list[tuple[str, ScanFinding]]:
    findings = []
    for issue in report:
        rule = str(issue["code"] or "")
        if not rule.startswith("S"):  # what can't be parsed is told as a finding, too
            continue
        first, last = issue["location"]["row"], issue["end_location"]["row"]
        message, cwe = str(issue["message"]), CWE_OF.get(rule)
        findings.append(
            (
                str(issue["filename"]),
                ScanFinding(
                    rule=rule,
                    line=int(first),
                    end_line=int(last),
                    message=message,
                    cwe=(cwe,) if cwe else (),
                    severity="medium",
                    confidence="medium",
                ),
            )
        )
    return findings


def _semgrep(report: Any) -> list[tuple[str, ScanFinding]]:
    findings = []
    for issue in report["results"]:
        extra = issue["extra"]
        about = extra.get("metadata") or {}
        listed = about.get("cwe") or []
        cwes = [listed] if isinstance(listed, str) else listed
        findings.append(
            (
                str(issue["path"]),
                ScanFinding(
                    rule=str(issue["check_id"]).rpartition(".")[2],
                    line=int(issue["start"]["line"]),
                    end_line=int(issue["end"]["line"]),
                    message=str(extra["message"]),
                    cwe=tuple(str(c).partition(":")[0].strip() for c in cwes),
                    severity=level(extra.get("severity")),
                    confidence=level(about.get("confidence", "medium")),
                ),
            )
        )
    return findings


_READERS = {"bandit": _bandit, "ruff": _ruff, "semgrep": _semgrep}
PROGRAMS = tuple(_READERS)
