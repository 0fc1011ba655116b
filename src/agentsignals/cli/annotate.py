"""`annotate`: a person labels messages or sessions, at a terminal."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from agentsignals.cli.verb import Verb
from agentsignals.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentsignals.labels.annotation import Annotated
    from agentsignals.labels.task import Task
    from agentsignals.store import Store


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("task", metavar="TASK", help="what is judged; `agentsignals label` lists the tasks")
    add("--as", dest="person", metavar="NAME", required=True, help="who labels; the labels are human:NAME's")
    add("--gold", metavar="FILE", help="what to label (`label --export-gold`), or to settle (`agree --settle`)")
    add("--sample", type=int, metavar="N", help="without --gold: a sample of so many (default 100)")
    add("--seed", type=int, metavar="N", help="of the sample: two people with the same seed label the same things")


class _Terminal:
    """Who sits before it. Shown on stderr: stdout is for the result."""

    def show(self, text: str) -> None:
        from agentsignals.cli.output import printable

        print("\n".join(printable(line) for line in text.split("\n")), file=sys.stderr)

    def answer(self, asked: str) -> str | None:
        print(asked, end="", file=sys.stderr, flush=True)
        try:
            line = sys.stdin.readline()
        except UnicodeDecodeError:
            return ""
        return line.rstrip("\r\n") if line else None


def run(options: argparse.Namespace) -> int:
    from agentsignals.cli.output import json_text
    from agentsignals.labels import annotation, gold
    from agentsignals.labels import annotation as human_labels
    from agentsignals.labels.tasks import task
    from agentsignals.stats.intervals import SEED
    from agentsignals.store import Store

    if options.gold is not None and (options.sample is not None or options.seed is not None):
        raise UsageError("--sample and --seed choose what --gold already names.", "Leave them out.")
    if options.sample is not None and options.sample <= 0:
        raise UsageError(f"--sample {options.sample} is not above 0.", "Give a positive number.")
    wanted, labeller = task(options.task), human_labels.name_of(options.person)
    store = Store(options.store)
    if options.gold is not None:
        rows = gold.read(options.gold, wanted, unlabelled=True).rows
    else:
        seed = options.seed if options.seed is not None else SEED
        rows = human_labels.sample(store, wanted, options.sample or human_labels.SIZE, seed=seed)
    summary = annotation.annotate(store, wanted, labeller, rows, _Terminal(), _transcripts(store, wanted))
    print(json_text(summary) if options.json else _text(summary, wanted))
    return 0


def _transcripts(store: Store, wanted: Task) -> Callable[[str], str]:
    """A session as a judge with an endless window is shown it."""
    from agentsignals.labels.units import Unit, units

    def shown(session_id: str) -> str:
        unit = next(units(wanted, store.session(session_id), sys.maxsize))
        return "".join(unit.parts) if isinstance(unit, Unit) else f"(the task is not about it: {unit.reason})"

    return shown


def _text(summary: Annotated, wanted: Task) -> str:
    rows = [
        ("labelled", f"{summary.labelled:,} by {summary.labeller}, codebook {wanted.prompt_hash}"),
        ("before", summary.before and f"{summary.before:,} had this person's label already"),
        ("agreed", summary.agreed and f"{summary.agreed:,} that both had labelled alike were taken over"),
        ("left", summary.left and f"{summary.left:,}; run again to go on"),
        ("not found", ", ".join(f"{n:,} {reason.replace('_', ' ')}" for reason, n in summary.not_found.items())),
    ]
    return "\n".join(f"{name:10}  {value}" for name, value in rows if value)


VERB = Verb("annotate", "label by hand, at a terminal", "annotate sentiment --as ann --sample 100", arguments, run)
