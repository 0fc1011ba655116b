"""Scanners: files in, findings out; and the language and kind of place of a file, by its path alone. It knows
no repository, no commit and no author."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Literal, Protocol

from msgspec import Struct

Place = Literal["code", "test", "vendored"]

_BY_ENDING = {
    "python": "py pyi pyw",
    "javascript": "js jsx mjs cjs ts tsx mts cts vue svelte",
    "go": "go",
    "shell": "sh bash zsh ksh",
    "html": "html htm xhtml",
    "yaml": "yml yaml",
    "java": "java kt kts scala groovy",
    "csharp": "cs",
    "php": "php phtml",
    "ruby": "rb rake erb",
    "c": "c h cc cpp cxx hpp hh m mm",
    "rust": "rs",
    "terraform": "tf",
    "dockerfile": "dockerfile containerfile",
}
_LANGUAGES = {ending: language for language, endings in _BY_ENDING.items() for ending in endings.split()}
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


Level = Literal["low", "medium", "high"]
_AROUND = 2
"""Lines before and after a finding that tell it from an equal one elsewhere in the file
(design/attribution.md#weaknesses)."""
_KEPT_CHARS = 200


class SourceFile(Struct, frozen=True):
    """A file as a commit has it."""

    path: str
    data: bytes


class ScanFinding(Struct, gc=False, kw_only=True):
    """One finding of a scanner in one file."""

    rule: str
    line: int
    """1-based."""
    end_line: int
    message: str
    cwe: tuple[str, ...]
    """`CWE-78`, …; empty when the scanner names none."""
    severity: Level
    confidence: Level
    text: str = ""
    """Matched text, at most 200 characters."""
    match: str = ""
    """Names the matched text without its white space."""
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
    def at_once(self) -> int:
        """Files worth handing over together."""
        ...

    def takes(self, path: str) -> bool:
        """Return whether files of this name are scanned. The name alone decides, as for counting added lines."""
        ...

    def scan(self, files: Sequence[SourceFile]) -> list[Scanned]:
        """One answer a file, in their order. ScanError when the scanner itself does not work."""
        ...


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
