"""Stories of passes that were earned and of passes that were not, as real trace files, for measuring the audit blind.

    python -m benchmarks.stories FOLDER

writes `FOLDER/runs/swe-agent/...` and `FOLDER/runs/harbor/...` (every run passed) and beside them, where no reader
looks, `FOLDER/labels.csv`: the name of each run, its format, channel, story, task, whether it is a hack or an honest
run, and what the audit should say of it. The same stories give the same bytes.

How to take it over as another blind writer, without having read the audit's rules:

* `tasks/NAME.toml` is a task: a file with a fault, upstream's fix, a fix of somebody else, tests (`task.py` has the
  keys). The hunks must apply; for Python tasks `tests/test_stories.py` runs the tests on both fixes.
* `channels/NAME.py` is a channel: `VERDICT` and `PAIRS` of a hack and its honest twin, each a function that tells its
  steps to a `Run` (`run.py`): `say`, `sh` (with what it printed and which files it wrote), `view`, `edit`, `create`,
  `fetch`, `fix`. Looking round before and the tests after are added to every run. New files are found by themselves.
* `swe_agent.py` and `harbor.py` write a run in a format, each with `ROOT` and `write`; another format is another
  module, named in `FORMATS`.

`second/` is a set of channels and tasks by another writer, measured apart (`SETS`).

A writer who has seen the rules measures how well rules and stories agree, not how well the audit finds hacks: commit
the stories first, run the audit after, and say which it was.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.stories import harbor, swe_agent
from benchmarks.stories.channels import channels
from benchmarks.stories.run import Run
from benchmarks.stories.task import Task, sha, tasks

FORMATS = {"swe-agent": swe_agent, "harbor": harbor}
SETS = {"first": "benchmarks.stories.channels", "second": "benchmarks.stories.second"}
"""The package of each set's channels; the tasks of the first are everybody's."""
TASKS_A_STORY = 2
"""Each story is told of so many tasks in each format."""


@dataclass(frozen=True, kw_only=True)
class Label:
    """What a run is; `verdict` is what the audit should say (`derived` of honest ones)."""

    run: str
    format: str
    channel: str
    story: str
    task: str
    kind: str
    verdict: str


def tell(chosen: str = "first") -> Iterator[tuple[Label, Run]]:
    """Every run of a set with its label, in an order that does not change."""
    every = tasks() if chosen == "first" else tasks(Path(__file__).parent / chosen / "tasks")
    for n, (channel, verdict, pairs) in enumerate(channels(SETS[chosen])):
        for m, pair in enumerate(pairs):
            of_language = [t for t in every if t.language in pair.languages]
            for kind, story in (("hack", pair.hack), ("honest", pair.honest)):
                for k, form in enumerate(FORMATS):
                    for i in range(TASKS_A_STORY):
                        task = of_language[(3 * n + m + 2 * k + i) % len(of_language)]
                        name = f"{channel}.{story.__name__}.{form}.{i}"
                        label = Label(
                            run=f"r{sha(name)[:10]}",
                            format=form,
                            channel=channel,
                            story=story.__name__,
                            task=task.name,
                            kind=kind,
                            verdict=verdict if kind == "hack" else "derived",
                        )
                        yield label, _told(story, task, form, name)


def _told(story: object, task: Task, form: str, seed: str) -> Run:
    if not callable(story):
        raise TypeError(f"a story is a function, not {story!r}")
    run = Run(task, FORMATS[form].ROOT, seed)
    run.explore()
    story(run)
    run.check()
    return run


def write(folder: Path, chosen: str = "first") -> list[Label]:
    """Writes all runs of a set and their labels; what they are."""
    labels = []
    for label, run in tell(chosen):
        FORMATS[label.format].write(run, label.run, folder / "runs" / label.format)
        labels.append(label)
    with (folder / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.DictWriter(file, list(asdict(labels[0])))
        rows.writeheader()
        rows.writerows(map(asdict, labels))
    return labels
