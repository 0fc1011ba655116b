"""`label --export-batch` and `--import-batch`: files of requests and results instead of calls."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from agentsignals.errors import UsageError

if TYPE_CHECKING:
    from agentsignals.labels.labellers import Labeller
    from agentsignals.labels.live import Progress
    from agentsignals.labels.prompting import Prompting
    from agentsignals.labels.run import Summary
    from agentsignals.labels.selection import Selection
    from agentsignals.labels.task import Task
    from agentsignals.store import Store

_FORMS = ("openai", "anthropic")


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `label` that are about batch files."""
    add = parser.add_argument
    add("--export-batch", metavar="FILE", help="write what has no answer yet as a batch of requests; ask nothing")
    add("--batch-form", choices=_FORMS, help="of that file (default: anthropic for claude models, else openai)")
    add("--again", action="store_true", help="with --export-batch: also what an earlier batch has no result of")
    add(
        "--import-batch",
        metavar="FILE",
        action="append",
        help="label by a file of results; may be given again for another file (errors)",
    )


def is_about(options: argparse.Namespace) -> bool:
    """Whether a batch file is written or read. UsageError where that goes with nothing else that was said."""
    writes, reads = options.export_batch is not None, options.import_batch is not None
    others = {"--from": options.source, "--export-gold": options.gold, "--dry-run": options.dry_run}
    foreign = [name for name, value in others.items() if value]
    if writes and reads:
        raise UsageError("--export-batch writes a file, --import-batch reads one.", "One at a time.")
    if (options.batch_form or options.again) and not writes:
        raise UsageError("--batch-form and --again belong to --export-batch.", "Leave them out.")
    if (writes or reads) and foreign:
        raise UsageError(f"{foreign[0]} has no meaning for batch files.", "Leave it out.")
    return writes or reads


def judged(  # noqa: PLR0913  (as a run)
    options: argparse.Namespace,
    store: Store,
    wanted: Task,
    by: Labeller,
    selection: Selection,
    bar: Progress,
    asked: Prompting,
) -> Summary:
    """Writes or reads the file that the options name."""
    from agentsignals.labels import batch
    from agentsignals.labels.labellers.openai import ChatServer

    if not isinstance(by, ChatServer):
        raise UsageError(f"{by.name} takes no batch files.", "They are for --by openai:MODEL, claude models too.")
    if options.import_batch is not None:
        return batch.take(
            store, wanted, by, selection, bar, options.import_batch, window=options.window, prompting=asked
        )
    return batch.write(
        store,
        wanted,
        by,
        selection,
        bar,
        options.export_batch,
        form=options.batch_form,
        window=options.window,
        prompting=asked,
        again=options.again,
    )


def lines(summary: Summary) -> list[tuple[str, str]]:
    """What a summary says of the files."""
    figures = summary.run_figures
    about = []
    if "files" in figures:
        held = (
            f"{figures['requests']:,} requests in {', '.join(figures['files'])}"
            if figures["files"]
            else "nothing to ask"
        )
        waiting = f"; {figures['waiting']:,} wait for results of an earlier one" if figures["waiting"] else ""
        about.append(("batch", held + waiting))
    counted = [f"{n:,} {name.replace('_', ' ')}" for name, n in figures.items() if isinstance(n, int)]
    if "taken" in figures or "answered_before" in figures:
        about.append(("results", ", ".join(counted)))
    return about
