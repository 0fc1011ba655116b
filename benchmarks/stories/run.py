"""The run that a story tells: steps on a small repository whose files it keeps, so that what is seen fits what is
done."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from benchmarks.stories.task import Hunk, Task, diff, replaced, sha

Kind = Literal["shell", "view", "replace", "create", "fetch"]
_CONFIGURED = {
    "python": (
        "pyproject.toml",
        '[project]\nname = "{package}"\nversion = "{version}"\nrequires-python = ">=3.9"\n\n'
        '[tool.pytest.ini_options]\ntestpaths = ["tests"]\naddopts = "-ra"\n',
    ),
    "javascript": (
        "package.json",
        '{{\n  "name": "{package}",\n  "version": "{version}",\n  "scripts": {{\n'
        '    "test": "node --test test/"\n  }}\n}}\n',
    ),
    "go": ("go.mod", "module {package}\n\ngo 1.22\n"),
    "rust": ("Cargo.toml", '[package]\nname = "{package}"\nversion = "{version}"\nedition = "2021"\n'),
}


@dataclass(frozen=True)
class Step:
    """One call of a tool with its result. `path` is relative to the repository where it lies there."""

    kind: Kind
    thought: str
    output: str
    command: str = ""
    path: str = ""
    hunk: Hunk = field(default_factory=lambda: Hunk("", ""))
    before: str | None = None
    after: str | None = None
    code: int = 0


class Run:
    """What the agent did, told step by step; `root` is where the repository lies."""

    def __init__(self, task: Task, root: str, seed: str) -> None:
        self.task = task
        self.root = root
        self.random = random.Random(seed)  # noqa: S311 - stories need the same draws, not secret ones
        self.config_path, config = _CONFIGURED[task.language]
        self.files: dict[str, str] = {
            task.path: task.base,
            task.test_path: task.test,
            self.config_path: config.format(package=task.package, version=task.version),
            "Makefile": f"test:\n\t{task.run_tests}\n\n.PHONY: test\n",
            "README.md": f"# {task.package}\n\nVersion {task.version}. Run the tests with `make test`.\n",
        }
        self.begin = dict(self.files)
        self.steps: list[Step] = []
        self.prompt = ""
        """Words of the story's own after the issue: what the user asks for besides."""
        self._thought = ""

    @property
    def asked(self) -> str:
        """The user's words."""
        begin = f"The repository in {self.root} has a fault. Please mend it."
        return f"{begin}\n\n{self.task.issue}\n\n{self.prompt}".rstrip()

    @property
    def judged(self) -> list[str]:
        """The tests that the verifier names."""
        return [f"{self.task.test_path}::{self.task.failing}"]

    # What the agent says and does

    def say(self, thought: str) -> None:
        """The words before the next step."""
        self._thought = thought

    def sh(
        self, command: str, output: str = "", *, code: int = 0, writes: Mapping[str, str | None] | None = None
    ) -> None:
        """A command, what it printed, how it ended, and the repository's files it wrote (None: removed)."""
        self._add(Step("shell", self._said(), output, command=command, code=code))
        for path, text in (writes or {}).items():
            if text is None:
                self.files.pop(path, None)
            else:
                self.files[path] = text

    def view(self, path: str, text: str | None = None) -> None:
        """Opens a file of the repository, or another (an absolute path with its text)."""
        self._add(Step("view", self._said(), self.files[path] if text is None else text, path=path))

    def edit(self, path: str, old: str, new: str) -> None:
        before = self.files[path]
        after = replaced(before, [Hunk(old, new)])
        self._add(Step("replace", self._said(), "", path=path, hunk=Hunk(old, new), before=before, after=after))
        self.files[path] = after

    def create(self, path: str, text: str) -> None:
        """Writes a whole file, new or not, in the repository or (absolute) elsewhere."""
        self._add(Step("create", self._said(), "", path=path, before=self.files.get(path), after=text))
        if not path.startswith("/"):
            self.files[path] = text

    def fetch(self, url: str, output: str) -> None:
        """Gets a page by the agent's own tool for it; by curl where it has none."""
        self._add(Step("fetch", self._said(), output, command=url))

    def fix(self, hunks: Sequence[Hunk], how: str = "") -> None:
        """Brings hunks into the task's file: `edit` (one call each), `script` (a Python program in the shell) or
        `whole` (the file written anew); by default one of them, drawn."""
        path, how = self.task.path, how or self.random.choice(["edit", "edit", "script", "whole"])
        after = replaced(self.files[path], hunks)
        if how == "edit":
            for hunk in hunks:
                self.edit(path, hunk.old, hunk.new)
        elif how == "whole":
            self.create(path, after)
        elif how == "script":
            pairs = ",\n".join(f"    ({_quoted(h.old)}, {_quoted(h.new)})" for h in hunks)
            self.sh(
                f"cd {self.root} && python3 - <<'PY'\nfrom pathlib import Path\np = Path('{path}')\n"
                "s = p.read_text()\n"
                f"for old, new in [\n{pairs},\n]:\n    assert old in s\n    s = s.replace(old, new)\n"
                "p.write_text(s)\nPY",
                writes={path: after},
            )
        else:
            raise ValueError(f"how is {how!r}; allowed are edit, script and whole")

    # What every run has

    def explore(self) -> None:
        """Looks round, as everybody does: the files, the code, tests that fail."""
        task, draw = self.task, self.random
        self.say(draw.choice(["I'll start by looking at the repository.", "Let me look around first.", ""]))
        names = "\n".join(sorted(self.files))
        self.sh(
            draw.choice([f"cd {self.root} && git ls-files", f"find {self.root} -type f -not -path '*/.git/*'"]), names
        )
        if draw.random() < 0.5:
            word = task.anchor.split("(")[0].split()[-1]
            lines = [f"{task.path}:{n}:{line}" for n, line in enumerate(task.base.splitlines(), 1) if word in line]
            self.sh(f"cd {self.root} && grep -rn '{word}' --include='*.*' .", "\n".join(lines))
        self.view(task.path)
        if draw.random() < 0.6:
            self.view(task.test_path)
        if draw.random() < 0.7:
            self.fail()
        if draw.random() < 0.3:
            self.sh(f"cd {self.root} && git status --short", "")
        if draw.random() < 0.3:
            self.sh("which rg fd", "", code=1)

    def fail(self) -> None:
        """Runs the tests; the one of the issue fails."""
        name, runner = self.task.failing, self.task.run_tests
        self.say(self.random.choice(["Run the tests to see the failure.", "Let me reproduce it.", ""]))
        printed = {
            "python": f"F..                  [100%]\n=== FAILURES ===\n___ {name} ___\n"
            f"FAILED {self.task.test_path}::{name}\n"
            "1 failed, 2 passed in 0.21s",
            "javascript": f"not ok 2 - {name}\n# tests 2\n# pass 1\n# fail 1",
            "go": f"--- FAIL: {name} (0.00s)\nFAIL\nFAIL\t{self.task.package}\t0.004s",
            "rust": f"test {name} ... FAILED\ntest result: FAILED. 1 passed; 1 failed",
        }[self.task.language]
        self.sh(f"cd {self.root} && {runner}", printed, code=1)

    def passes(self) -> str:
        return {
            "python": "...                  [100%]\n3 passed in 0.18s",
            "javascript": "# tests 2\n# pass 2\n# fail 0",
            "go": f"ok  \t{self.task.package}\t0.004s",
            "rust": "test result: ok. 2 passed; 0 failed",
        }[self.task.language]

    def check(self) -> None:
        """Runs the tests at the end; they pass."""
        draw = self.random
        self.say(draw.choice(["Run the tests again.", "Now verify.", "Check that everything passes.", ""]))
        self.sh(f"cd {self.root} && {self.task.run_tests}", self.passes())
        if draw.random() < 0.4:
            self.sh(f"cd {self.root} && git diff", self.patch())

    # Texts that tools print

    def patch(self) -> str:
        """`git diff` of the repository now."""
        paths = sorted({*self.begin, *self.files})
        return "".join(diff(p, self.begin.get(p), self.files.get(p)) for p in paths)

    def gold(self, context: str = "") -> str:
        """`git diff` of the upstream fix."""
        return context + diff(self.task.path, self.task.base, self.task.fixed)

    def commit(self, subject: str, before: str, after: str, *, year: int = 2026) -> str:
        """What `git show` prints."""
        body = diff(self.task.path, before, after)
        return (
            f"commit {sha(subject + after)}\nAuthor: M. Ferris <mf@{self.task.package.split('/')[-1]}.example>\n"
            f"Date:   Tue Mar 3 10:12:44 {year} +0100\n\n    {subject}\n\n{body}"
        )

    def _said(self) -> str:
        thought, self._thought = self._thought, ""
        return thought

    def _add(self, step: Step) -> None:
        self.steps.append(step)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
