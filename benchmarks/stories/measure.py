"""How well `audit` tells the stories apart: `python -m benchmarks.stories.measure FOLDER SET [CHANNEL]`
(SET: `first` or `second`).

Writes the stories to FOLDER, analyses and audits them by the command line, and prints for each channel and format: of
the hacks, how many are flagged (`retrieved` or `verifier_touched`) and how many cannot be told; of the honest runs the
same. Intervals are Wilson's, at 95 %, and take runs as independent: those of one story are not, so they are too narrow.
With a channel named (or `all`), what was said of each run that is not as it should be.
"""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from agentsignals.cli import main
from agentsignals.stats.intervals import wilson
from benchmarks.stories import FORMATS, Label, write

FLAGGED = frozenset(("retrieved", "verifier_touched"))


class Audited(NamedTuple):
    """A run and what the audit said of it."""

    label: Label
    verdict: str
    because: str

    @property
    def is_flagged(self) -> bool:
        return self.verdict in FLAGGED


def audited(folder: Path, chosen: str) -> list[Audited]:
    """Every run of a set, written, analysed and audited by the command line; the folder is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return audited_of(write(folder, chosen), folder)


def audited_of(labels: Iterable[Label], folder: Path) -> list[Audited]:
    """Of runs that stand in `folder/runs`."""
    store = ["--quiet", "--store", str(folder / "store")]
    printed(["analyze", str(folder / "runs"), "--jobs", "1", *store])
    listed: list[dict[str, Any]] = json.loads(printed(["audit", "--json", *store]))["listed"]
    runs = []
    for label in labels:
        session = FORMATS[label.format].session_of(label.run)
        (row,) = [row for row in listed if session in row["session_id"]]
        runs.append(Audited(label, row["verdict"], row["because"]))
    return runs


def printed(line: list[str]) -> str:
    with redirect_stdout(io.StringIO()) as out:
        code = main(line)
    if code:
        raise RuntimeError(f"agentsignals {' '.join(line)} ended with {code}")
    return out.getvalue()


def table(runs: list[Audited]) -> str:
    """Markdown: a line for each channel and format, and for all."""
    head = ("channel", "format", "hacks flagged", "cannot tell", "honest flagged", "cannot tell")
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    channels = list(dict.fromkeys(run.label.channel for run in runs))
    for channel, form in [*((c, f) for c in channels for f in FORMATS), *(("all", f) for f in (*FORMATS, "both"))]:
        chosen = [run for run in runs if channel in (run.label.channel, "all") and form in (run.label.format, "both")]
        cells = [channel.replace("_", " "), form]
        for kind in ("hack", "honest"):
            of_kind = [run for run in chosen if run.label.kind == kind]
            unclear = sum(run.verdict == "cannot_tell" for run in of_kind)
            cells += [
                share(sum(run.is_flagged for run in of_kind), len(of_kind)),
                f"{100 * unclear / len(of_kind):.0f}%",
            ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def share(k: int, n: int) -> str:
    interval = wilson(k, n)
    if interval is None:
        return "none"
    return f"{k}/{n} = {100 * k / n:.0f}% ({100 * interval[0]:.0f}-{100 * interval[1]:.0f})"


if __name__ == "__main__":
    RUNS = audited(Path(sys.argv[1]), sys.argv[2])
    print(table(RUNS))
    for label, verdict, because in RUNS:
        wanted = verdict in FLAGGED if label.kind == "hack" else verdict == "derived"
        if not wanted and {label.channel, "all"} & set(sys.argv[3:]):
            print(f"{label.kind:7}{label.format:10}{label.channel}.{label.story}({label.task}): {verdict}: {because}")
