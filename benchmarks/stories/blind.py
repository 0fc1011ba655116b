"""The sets that writers sent who had read neither rules nor stories (`blind/*.json`), told in Harbor's format.

    python -m benchmarks.stories.blind [SET.json ...]

prints for each set how many hacks and honest runs have which verdict, and what was said of those that are not as they
should be; without files of all sets, and of `honest.json`, whose runs are planted beside what the rules look for by one
who knows them. An entry has a task, the tests that judge, files of the repository, and steps (`bash`, `read`, `edit`,
`write`) with what they printed. The figures of docs/audit.md are of the rules before these sets were seen.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from benchmarks.stories import Label, harbor
from benchmarks.stories.measure import FLAGGED, Audited, audited_of
from benchmarks.stories.run import Run, Step
from benchmarks.stories.task import Hunk

SETS = [*sorted((Path(__file__).parent / "blind").glob("*.json")), Path(__file__).parent / "honest.json"]
_KINDS = {"bash": "shell", "read": "view", "edit": "replace", "write": "create"}


class _Sent(Run):
    """A run as its entry tells it."""

    def __init__(self, entry: dict[str, Any]) -> None:
        self.entry = entry
        self.task = SimpleNamespace(name=entry["id"])  # type: ignore[assignment]  # of a task only its name is asked
        self.files = dict(entry["repo_files"])
        self.steps = [self._step(told) for told in entry["steps"]]

    @property
    def asked(self) -> str:
        return str(self.entry["task"])

    @property
    def judged(self) -> list[str]:
        listed = []
        for test in self.entry["judged_tests"]:
            found = re.findall(r"^\s*(?:async )?def (test\w*)", self.entry["repo_files"].get(test, ""), re.MULTILINE)
            listed += [test] if "::" in test else [f"{test}::{name}" for name in found or ["test_all"]]
        return listed

    def _step(self, told: dict[str, Any]) -> Step:
        path, hunk = told.get("path", ""), Hunk(told.get("old", ""), told.get("new", ""))
        before = self.files.get(path)
        after = (
            told["content"]
            if told["tool"] == "write"
            else (before or "").replace(hunk.old, hunk.new, 1)
            if hunk.old
            else before
        )
        if told["tool"] in ("write", "edit"):
            self.files[path] = after or ""
        output = told.get("output") or (before or "" if told["tool"] == "read" else "")
        return Step(_KINDS[told["tool"]], "", output, told.get("command", ""), path, hunk, before, after)  # type: ignore[arg-type]


def written(folder: Path, file: Path) -> list[Label]:
    """Write every run of a set below `folder/runs`, and return what each is."""
    labels = []
    for entry in json.loads(file.read_text("utf-8")):
        harbor.write(_Sent(entry), entry["id"], folder / "runs")
        about = {"channel": str(entry["channel"]), "story": entry["why"], "task": entry["id"], "kind": entry["kind"]}
        wanted = "derived" if entry["kind"] == "honest" else "verifier_touched"
        labels.append(Label(run=entry["id"], format="harbor", verdict=wanted, **about))
    return labels


def audited(folder: Path, file: Path) -> list[Audited]:
    """Every run of a set."""
    return audited_of(written(folder, file), folder)


if __name__ == "__main__":
    for chosen in map(Path, sys.argv[1:] or SETS):
        with TemporaryDirectory() as made:
            told = audited(Path(made), chosen)
        counts = Counter((run.label.kind, "flagged" if run.is_flagged else run.verdict) for run in told)
        print(chosen.stem, *(f"{kind} {verdict} {n}" for (kind, verdict), n in sorted(counts.items())), sep="  ")
        for label, verdict, because in told:
            if verdict not in FLAGGED if label.kind == "hack" else verdict != "derived":
                print(f"  {label.kind:7}{label.channel} {label.run}: {verdict}: {because[:200]}")
