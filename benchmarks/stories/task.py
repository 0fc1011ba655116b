"""A task of the stories: a small repository with a fault, the fix upstream has, and one that somebody else would write.

A task is a TOML file in `tasks/`: what the repository is called (`repository`, `package`, `version` at the fault,
`fixed_version`), its one file (`path`, `base`), its tests (`test_path`, `test`, of which `failing` fails), the `issue`,
the fix as hunks to replace (`gold`) and another fix that takes nothing from it (`own`). `rename` maps names of the gold
fix to others, for stories that disguise a copy; `anchor`, `argument` and `cases` serve those that special-case inputs.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

FOLDER = Path(__file__).parent / "tasks"
_RUNNERS = {
    "python": "python -m pytest -q",
    "javascript": "npm test --silent",
    "go": "go test ./...",
    "rust": "cargo test --quiet",
}


@dataclass(frozen=True)
class Hunk:
    """A piece of a file and what it becomes."""

    old: str
    new: str


@dataclass(frozen=True, kw_only=True)
class Task:
    """See the module."""

    name: str
    language: str
    repository: str
    package: str
    version: str
    fixed_version: str
    path: str
    test_path: str
    failing: str
    anchor: str
    argument: str
    cases: list[list[str]]
    rename: dict[str, str]
    issue: str
    base: str
    test: str
    gold: list[Hunk]
    own: list[Hunk]

    @cached_property
    def fixed(self) -> str:
        """The file as upstream has it after the fix."""
        return replaced(self.base, self.gold)

    @cached_property
    def core(self) -> list[Hunk]:
        """The heart of the gold fix: its first hunk, and what that imports."""
        return [self.gold[0], *(h for h in self.gold[1:] if "import" in h.new)]

    @cached_property
    def disguised(self) -> list[Hunk]:
        """The gold fix with its names changed."""
        return [Hunk(h.old, self._renamed(h.new)) for h in self.gold]

    def _renamed(self, text: str) -> str:
        for old, new in self.rename.items():
            text = re.sub(rf"\b{re.escape(old)}\b", new, text)
        return text

    @property
    def file_name(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    @property
    def instance(self) -> str:
        return f"{self.repository.replace('/', '__')}-{int(sha(self.name)[:4], 16) % 900 + 100}"

    @property
    def number(self) -> int:
        return int(self.instance.rsplit("-", 1)[1])

    @property
    def run_tests(self) -> str:
        return _RUNNERS[self.language]


def sha(text: str) -> str:
    """Forty hex digits, as a commit has them."""
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def replaced(text: str, hunks: Sequence[Hunk]) -> str:
    """The text with its hunks applied; each must be there once."""
    for hunk in hunks:
        if text.count(hunk.old) != 1:
            raise ValueError(f"a hunk stands {text.count(hunk.old)} times in the text, not once:\n{hunk.old}")
        text = text.replace(hunk.old, hunk.new)
    return text


def diff(path: str, before: str | None, after: str | None) -> str:
    """What `git diff` prints of a file; None where there is none."""
    if before == after:
        return ""
    old = f"a/{path}" if before is not None else "/dev/null"
    new = f"b/{path}" if after is not None else "/dev/null"
    lines = difflib.unified_diff(
        (before or "").splitlines(keepends=True), (after or "").splitlines(keepends=True), old, new
    )
    kind = "new file mode 100644\n" if before is None else "deleted file mode 100644\n" if after is None else ""
    index = f"{kind}index {sha(before or '')[:7]}..{sha(after or '')[:7]}" + (" 100644" if not kind else "")
    return f"diff --git a/{path} b/{path}\n{index}\n" + "".join(lines)


def tasks(*more: Path) -> list[Task]:
    """All of them, by name, and those of more folders."""
    return [_read(path) for folder in (FOLDER, *more) for path in sorted(folder.glob("*.toml"))]


def _read(path: Path) -> Task:
    fields = tomllib.loads(path.read_text(encoding="utf-8"))
    fields["issue"] = fields["issue"].strip()
    for fix in ("gold", "own"):
        fields[fix] = [_hunk(fields["base"], h["old"], h["new"]) for h in fields[fix]]
    return Task(name=path.stem, **fields)


def _hunk(base: str, old: str, new: str) -> Hunk:
    """TOML ends a piece with a line break; one that is part of a line has none."""
    return Hunk(old, new) if old in base else Hunk(old.rstrip("\n"), new.rstrip("\n"))
