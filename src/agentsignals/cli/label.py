"""`label --export-batch` and `--import-batch`: files of requests and results instead of calls."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from agentsignals.cli.verb import Verb
from agentsignals.errors import UsageError

if TYPE_CHECKING:
    from agentsignals.labels.labellers import Labeller
    from agentsignals.labels.prompting import Prompting
    from agentsignals.labels.run import Estimate, Progress, Summary
    from agentsignals.labels.task import Task
    from agentsignals.labels.topic_names import Named
    from agentsignals.labels.topics import Summary as TopicsSummary
    from agentsignals.labels.topics import Topic
    from agentsignals.labels.units import Selection
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


# `label topic`: what prompts are about, found over the whole store rather than judged one by one.

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


def arguments_topics(parser: argparse.ArgumentParser) -> None:
    """The options of `label` that topics alone have."""
    add = parser.add_argument
    add("--names", metavar="LABELLER", help="with topic: the model that names them, as openai:MODEL[@URL]")
    add("--method", metavar="NAME", help="with topic: k-means (default), or umap+hdbscan (extra topics)")
    add("--embedder", metavar="NAME[:MODEL]", help="with topic: what compares prompts (default: the store's)")


def is_about_topics(options: argparse.Namespace) -> bool:
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
    from agentsignals.labels.topics import label_topics
    from agentsignals.stats.intervals import SEED
    from agentsignals.store import Store

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


def _text(summary: TopicsSummary) -> str:
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


# `label`: judgements by rules, by models, or out of a published data set.

_DEFAULT = "rules"


def arguments_label(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("task", metavar="TASK", nargs="?", help="what is judged; without one the tasks are listed")
    add(
        "--by",
        metavar="LABELLER",
        help="rules (default: no model, no network), classifier (a small model that is shipped, no network) or"
        " classifier:FILE (one of your own), openai:MODEL[@URL[,URL…]] (any servers that speak OpenAI's protocol),"
        " vllm:MODEL or local:MODEL (in this process), hf:MODEL (a text classifier); clusters for the task topic",
    )
    add("--where", metavar="SQL", default="true", help="a condition over the columns of `sessions`")
    add("--limit", type=int, metavar="N", help="at most so many messages or sessions")
    add("--dry-run", action="store_true", help="say what would be asked and what it would cost; ask nothing")
    add("--concurrency", type=int, metavar="N", help="calls under way at once, at each address (default 8)")
    add("--per-minute", type=float, metavar="N", help="at most so many calls a minute")
    add("--window", type=int, metavar="TOKENS", help="how much the model can read (default: what the server says)")
    add("--timeout", type=float, metavar="SECONDS", help="for one call (default 120)")
    add("--examples", metavar="FILE", help="show the model some of each class out of a gold file; they are not judged")
    add("--label-first", action="store_true", help="ask for the verdict before its reason")
    add("--answers", type=int, metavar="N", help="so many answers to each question; what most of them say is the label")
    add("--no-redact", action="store_true", help="send texts to a server elsewhere as they are")
    add(
        "--from",
        dest="source",
        metavar="FILE",
        help="take labels instead: published ones (Parquet, or a folder of it), or a gold file (.jsonl, .csv)",
    )
    add("--labeller", metavar="NAME", help="with --from: who gave these labels; people are human:NAME")
    add("--column", metavar="NAME", help="with a gold file (--from, --examples): where the label stands")
    add("--export-gold", dest="gold", metavar="FILE", help="write things for people to label instead (.jsonl, .csv)")
    add("--sample", type=int, metavar="N", help="with --export-gold: how many (default 100), evenly of the labels --by")
    add("--seed", type=int, metavar="N", help="with --export-gold: of the sample; of topics: of the groups")
    arguments(parser)
    arguments_topics(parser)


def run_label(options: argparse.Namespace) -> int:
    from agentsignals.labels.tasks import task
    from agentsignals.store import Store

    if options.task is None:
        return _list(options)
    if is_about_topics(options):
        return run(options)
    in_files = is_about(options)
    _check(options)
    wanted = task(options.task)
    if options.source is not None:
        return _take(options, wanted)
    if options.gold is not None:
        return _export(options, wanted)
    return _judge(options, wanted, Store(options.store), in_files=in_files)


def _check(options: argparse.Namespace) -> None:
    if (options.source is None) != (options.labeller is None):
        raise UsageError("--from and --labeller belong together.", "label sentiment --from data/ --labeller qwen3")
    if options.source is not None and options.by is not None:
        raise UsageError("Labels come --from a file or --by a labeller, not both.", "Leave one out.")
    if options.gold is not None and options.source is not None:
        raise UsageError("--from reads labels, --export-gold writes what has none.", "One at a time.")
    if options.gold is None and (options.sample is not None or options.seed is not None):
        raise UsageError("--sample and --seed belong to --export-gold.", "label sentiment --export-gold gold.jsonl")
    for name in ("limit", "sample", "concurrency", "per_minute", "window", "timeout"):
        number = getattr(options, name)
        if number is not None and number <= 0:
            raise UsageError(f"--{name.replace('_', '-')} {number:g} is not above 0.", "Give a positive number.")


def _judge(options: argparse.Namespace, wanted: Task, store: Store, *, in_files: bool) -> int:
    from agentsignals.cli.output import Bar, json_text
    from agentsignals.labels.labellers import DEFAULT_WINDOW_TOKENS, labeller
    from agentsignals.labels.prompting import prompting
    from agentsignals.labels.run import run as judge
    from agentsignals.labels.run import versioned
    from agentsignals.labels.units import Selection, plain
    from agentsignals.redaction import Redactor
    from agentsignals.store.pseudonym_key import pseudonym_key

    by = labeller(
        options.by or _DEFAULT,
        concurrency=options.concurrency,
        per_minute=options.per_minute,
        window=options.window,
        timeout_s=options.timeout,
        redact=not options.no_redact,
    )
    masks = (by.leaves or in_files) and not options.no_redact
    selection = Selection(options.where, options.limit, redact=masks)
    asked = prompting(
        wanted,
        examples=options.examples,
        column=options.column,
        label_first=options.label_first,
        answers=options.answers,
        mask=Redactor(pseudonym_key()).plain if masks else plain,
    )
    versioned(wanted, by, asked)
    if options.dry_run:
        from agentsignals.labels.run import estimate

        cost = estimate(store, wanted, by, selection, options.window or DEFAULT_WINDOW_TOKENS, asked)
        print(json_text(cost) if options.json else _estimate_text(cost, by, masked=not options.no_redact))
        return 0
    if not in_files:
        _announce(options, by)
    bar = Bar(options.quiet)
    try:
        if in_files:
            summary = judged(options, store, wanted, by, selection, bar, asked)
        else:
            summary = judge(store, wanted, by, selection, bar, asked)
    finally:
        bar.close()
    if options.json:
        print(json_text(summary))
    else:
        print(_summary_text(summary))
    return 1 if summary.failed and not summary.labelled and not summary.unanswered else 0


def _take(options: argparse.Namespace, wanted: Task) -> int:
    from agentsignals.cli.output import json_text
    from agentsignals.labels import annotation as human_labels
    from agentsignals.labels import gold
    from agentsignals.labels import matching as published
    from agentsignals.store import Store

    store = Store(options.store)
    if gold.is_gold(options.source):
        taken = human_labels.take(store, options.source, options.labeller, wanted, options.column)
    else:
        taken = published.take(store, options.source, options.labeller, wanted.name)
    if options.json:
        print(json_text(taken))
        return 0
    print(f"taken       {taken.labels:,} labels of {taken.sessions:,} sessions, {taken.moved:,} found by their text")
    print(f"elsewhere   {taken.unmatched_labels:,} labels of {taken.unmatched_sessions:,} sessions not in the store")
    if taken.skipped:
        print(f"skipped     {_counts_label(taken.skipped)}")
    return 0


def _export(options: argparse.Namespace, wanted: Task) -> int:
    from agentsignals.cli.output import json_text
    from agentsignals.labels import annotation as human_labels
    from agentsignals.labels import gold
    from agentsignals.stats.intervals import SEED
    from agentsignals.store import Store

    rows = human_labels.sample(
        Store(options.store),
        wanted,
        options.sample or human_labels.SIZE,
        where=options.where,
        by=options.by or _DEFAULT,
        seed=options.seed if options.seed is not None else SEED,
        mask=not options.no_redact,
    )
    n = gold.write(options.gold, rows, masked=not options.no_redact)
    strata = len({row.stratum for row in rows})
    if options.json:
        print(json_text({"file": options.gold, "rows": n, "strata": strata}))
        return 0
    print(f"written     {n:,} rows, each a {wanted.level}, of {strata:,} strata to {options.gold}")
    print(f"next        agentsignals annotate {wanted.name} --as NAME --gold {options.gold}")
    return 0


def _list(options: argparse.Namespace) -> int:
    from agentsignals.cli.output import json_text, table
    from agentsignals.labels.tasks import tasks

    names = ("task", "of", "says", "values", "prompt")
    judged = [(t.name, t.level, t.says, ", ".join(t.values) or "a number", t.prompt_hash) for t in tasks().values()]
    listed = [*judged, LISTED]
    print(
        json_text([dict(zip(names, row, strict=True)) for row in listed]) if options.json else table(names, listed, 90)
    )
    return 0


def _announce(options: argparse.Namespace, by: Labeller) -> None:
    """Says what goes where before anything does, and that rules are only rules."""
    if by.model is None:
        if not options.quiet:
            _say_label("judging by rules: no model, no network. Rules miss much; the summary says how much.")
    elif by.leaves:
        how = "as they are" if options.no_redact else "secrets, addresses and user names masked"
        _say_label(f"texts of the sessions go to {by.run_figures().get('url')}, {how}, for labels by {by.model}")


def _say_label(what: str) -> None:
    from agentsignals.cli.output import printable

    print(f"agentsignals: {printable(what)}", file=sys.stderr)


def _summary_text(summary: Summary) -> str:
    labelled = f"{summary.labelled:,} of {summary.sessions:,} sessions"
    if summary.kept or summary.repeated:
        labelled += f"; {summary.kept:,} by answers of an earlier run, {summary.repeated:,} asked before in this one"
    rows: list[tuple[str, Any]] = [
        ("task", f"{summary.task}, by {summary.labeller}, version {summary.prompt_hash}"),
        ("labelled", labelled),
        ("not asked", _counts_label(summary.not_asked)),
        ("no verdict", _counts_label(summary.no_verdict)),
        ("failed", _counts_label(summary.failed) and f"{_counts_label(summary.failed)}; run again to ask again"),
        *lines(summary),
        ("unanswered", summary.unanswered and f"{summary.unanswered:,}"),
        ("calls", summary.calls and _spent(summary)),
        ("answered", _counts_label(summary.served_models)),
        *(("server", _server(url, figures)) for url, figures in summary.run_figures.get("servers", {}).items()),
        ("masked", _counts_label(summary.redacted)),
        (
            "older",
            summary.of_earlier_prompts and f"{summary.of_earlier_prompts:,} labels of another prompt still stand",
        ),
        ("measured", summary.measured),
        *((f"share {name}", share.in_words()) for name, share in summary.shares.items()),
        ("next", summary.labelled and "`agentsignals measure` computes the signals that rest on labels"),
    ]
    return _rows(rows)


def _spent(summary: Summary) -> str:
    cost = "unknown cost" if summary.cost_usd is None else f"${summary.cost_usd:,.2f}"
    loose = f"; {summary.loosely_parsed:,} answers not strictly JSON" if summary.loosely_parsed else ""
    loose += f"; {summary.unwrapped:,} cut out of other words" if summary.unwrapped else ""
    return f"{summary.calls:,}, {summary.input_tokens:,} tokens in, {summary.output_tokens:,} out, {cost}{loose}"


def _server(url: str, figures: dict[str, Any]) -> str:
    aside = f"; set aside {figures['set_aside']:,} times: {figures['last_problem']}" if "set_aside" in figures else ""
    return f"{url}: {figures['answers']:,} answers to {figures['calls']:,} calls{aside}"


def _estimate_text(estimate: Estimate, by: Labeller, *, masked: bool) -> str:
    cost = (
        "unknown: the price of the model is not in the table"
        if estimate.cost_usd is None
        else f"${estimate.cost_usd:,.2f}"
    )
    rows: list[tuple[str, Any]] = [
        ("task", f"{estimate.task}, by {estimate.labeller}"),
        (
            "to judge",
            f"{estimate.units:,}, {estimate.long:,} of them longer than a window of {estimate.window:,} tokens",
        ),
        ("not asked", _counts_label(estimate.not_asked)),
        ("known", f"{estimate.kept:,} answers of earlier runs, {estimate.repeated:,} repeated questions"),
        ("calls", f"{estimate.calls:,}, about {estimate.input_tokens:,} tokens in, {estimate.output_tokens:,} out"),
        ("cost", by.model is not None and f"{cost} (an estimate; a model that thinks uses more)"),
        ("goes to", by.leaves and f"{by.run_figures().get('url')}, {'masked' if masked else 'as it is'}"),
    ]
    return _rows(rows)


def _rows(rows: list[tuple[str, Any]]) -> str:
    from agentsignals.cli.output import printable

    return "\n".join(f"{name:10}  {printable(str(value))}" for name, value in rows if value)


def _counts_label(counts: dict[str, int]) -> str:
    return ", ".join(f"{n:,} {reason.replace('_', ' ')}" for reason, n in sorted(counts.items(), key=lambda p: -p[1]))


VERB = Verb(
    "label",
    "judge messages or sessions by rules or a model",
    "label sentiment --by openai:qwen3@http://127.0.0.1:8000/v1",
    arguments_label,
    run_label,
)
