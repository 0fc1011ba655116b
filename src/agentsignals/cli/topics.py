"""`label topic`: what prompts are about, found over the whole store rather than judged one by one."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from agentsignals.errors import UsageError

if TYPE_CHECKING:
    from agentsignals.labels.labellers import Labeller
    from agentsignals.topics import Summary, Topic
    from agentsignals.topics.naming import Named

_TASK, _LABELLER = "topic", "clusters"
LISTED = (
    _TASK,
    "turn",
    "what prompts are about: groups of alike ones, --by clusters",
    "words that tell them apart",
    "",
)
"""The task's row in the list of tasks."""
_FOREIGN = (
    "limit",
    "dry_run",
    "source",
    "labeller",
    "column",
    "gold",
    "sample",
    "no_redact",
    "examples",
    "label_first",
    "export_batch",
    "import_batch",
    "batch_form",
    "again",
    "answers",
)
"""Options of `label` that mean nothing here."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `label` that topics alone have."""
    add = parser.add_argument
    add("--names", metavar="LABELLER", help="with topic: the model that names them, as openai:MODEL[@URL]")
    add("--method", metavar="NAME", help="with topic: k-means (default), or umap+hdbscan (extra topics)")
    add("--embedder", metavar="NAME[:MODEL]", help="with topic: what compares prompts (default: the store's)")


def is_about(options: argparse.Namespace) -> bool:
    """Whether the options ask for topics. UsageError where they ask for them and for something else."""
    if options.task == _TASK:
        if options.by not in (None, _LABELLER):
            raise UsageError(
                f"Topics are found by {_LABELLER}, not judged by {options.by}.",
                f"label topic --by {_LABELLER} --names {options.by}",
            )
        for name in _FOREIGN:
            if getattr(options, name):
                flag = {"source": "from", "gold": "export-gold"}.get(name, name.replace("_", "-"))
                raise UsageError(f"--{flag} has no meaning for topics.", "Leave it out.")
        return True
    if options.by == _LABELLER or options.names or options.embedder or options.method:
        flags = f"--by {_LABELLER}, --names, --method and --embedder"
        raise UsageError(f"{flags} belong to the task {_TASK}.", f"label {_TASK} --by {_LABELLER}")
    return False


def run(options: argparse.Namespace) -> int:
    """Finds topics, and says which."""
    from agentsignals.cli.output import json_text
    from agentsignals.stats.estimates import SEED
    from agentsignals.store import Store
    from agentsignals.topics import label_topics

    namer = _namer(options)
    summary = label_topics(
        Store(options.store),
        options.where,
        embedder=options.embedder,
        method=options.method,
        seed=SEED if options.seed is None else options.seed,
        namer=namer,
        tell=_say,
    )
    print(json_text(summary) if options.json else _text(summary))
    return 0


def _namer(options: argparse.Namespace) -> Labeller | None:
    if options.names is None:
        return None
    from agentsignals.labels.labellers import labeller

    by = labeller(
        options.names,
        concurrency=options.concurrency,
        per_minute=options.per_minute,
        window=options.window,
        timeout_s=options.timeout,
    )
    if by.leaves:
        masked = "secrets, addresses and user names masked"
        _say(f"prompts go to {by.run_figures().get('url')}, {masked}, for names of topics by {by.model}")
    return by


def _say(what: str) -> None:
    from agentsignals.cli.output import printable

    print(f"agentsignals: {printable(what)}", file=sys.stderr)


def _text(summary: Summary) -> str:
    from agentsignals.cli.output import printable, table

    left = sum(summary.left_out.values())
    listed: list[tuple[str, Any]] = [
        (
            "left out",
            left and f"{summary.left_out_share:.1%} of {summary.prompts:,} prompts: {_counts(summary.left_out)}",
        ),
        ("compared", f"{summary.compared:,}"),
        ("task", f"{summary.task}, by {summary.labeller}, version {summary.version}"),
        ("method", f"{summary.method} over {summary.embedder}, seed {summary.seed}"),
        ("no topic", f"{summary.noise:,}, {summary.noise_share:.1%} of those compared"),
        ("named", summary.naming and _named(summary.naming)),
        ("next", "`agentsignals measure` makes chat.prompt_topic_cluster of them"),
    ]
    lines = [f"{name:10}  {printable(str(value))}" for name, value in listed if value]
    rows = [[t.number, t.n, t.sessions, ", ".join(t.words), *([t.name] if t.name else [])] for t in summary.topics]
    names = ["topic", "prompts", "sessions", "words"]
    if summary.naming is not None:
        names.append("name")
        rows = [row if len(row) == len(names) else [*row, ""] for row in rows]
    shown = [line for topic in summary.topics for line in _examples(topic)]
    return "\n".join([*lines, "", table(names, rows, 90), *(["", "in the middle of each", *shown] if shown else [])])


def _examples(topic: Topic) -> list[str]:
    from agentsignals.cli.output import printable

    return [f"{topic.number:>5}  “{printable(example.excerpt)}”" for example in topic.examples]


def _named(naming: Named) -> str:
    failed = f"; {_counts(naming.failed)}, run again to ask again" if naming.failed else ""
    return (
        f"{naming.names:,} by {naming.by}, {naming.kept:,} of them kept from an earlier run; {naming.calls:,} calls,"
        f" {naming.input_tokens:,} tokens in, {naming.output_tokens:,} out{failed}"
    )


def _counts(counts: dict[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{n:,} {reason.replace('_', ' ')}" for reason, n in ordered)
