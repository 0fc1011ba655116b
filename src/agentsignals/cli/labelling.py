"""Verbs about labels: `label`, `annotate`, `agree`, `study`, `validate`."""

from __future__ import annotations

import argparse
import sys
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict

from agentsignals import private_files
from agentsignals.cli.analyze import selected_store, store_with_sessions
from agentsignals.cli.output import Bar, Printed, counted, fields, json_text, print_result, printable, table, tell
from agentsignals.errors import EmbedderError, ExportError, LabelError, UsageError, install_command
from agentsignals.labels import annotation, batch, gold, matching
from agentsignals.labels.agreement import Comparison, Several
from agentsignals.labels.annotation import to_settle
from agentsignals.labels.labellers import (
    DEFAULT_WINDOW_TOKENS,
    LABELLERS,
    Labeller,
    default_labeller,
    labeller,
    quality,
)
from agentsignals.labels.labellers.openai import ChatServer
from agentsignals.labels.prompting import prompting
from agentsignals.labels.refusals import Refusals, differing_lines, refusals_in
from agentsignals.labels.run import Estimate, Summary, estimate, versioned
from agentsignals.labels.run import run as judge
from agentsignals.labels.tasks import Task, task, tasks
from agentsignals.labels.topics import Summary as TopicsSummary
from agentsignals.labels.topics import label_topics
from agentsignals.labels.units import Selection, Unit, plain, units
from agentsignals.labels.validation import never_validated, validate
from agentsignals.model import CLASSIFIER, ENCODER, RULES
from agentsignals.network import LOCAL_NOTICE, MASKED_NOTICE
from agentsignals.questions.compare.attempts import chosen
from agentsignals.questions.label_shares import trust
from agentsignals.questions.question import interval, part_text, times
from agentsignals.redaction import Redactor, redacted_in
from agentsignals.stats.agreement import Estimate as AgreementEstimate
from agentsignals.stats.intervals import SEED
from agentsignals.stats.validation import Figure
from agentsignals.store import Store
from agentsignals.store.secrets import known_secrets, pseudonym_key
from agentsignals.views.second_reader import AUDIT_TASK
from agentsignals.words.classifier import classifier_of
from agentsignals.words.vectors import redacting

# `label`: judgements by rules, by models, or out of a published data set.

_TOPIC, _CLUSTERS = "topic", "clusters"
_TOPIC_ROW = (_TOPIC, "turn", "what prompts are about: groups of similar ones, --by clusters",
              "words that distinguish them", _CLUSTERS, "", "")  # fmt: skip
"""Topics in the list of tasks."""
_NOT_WITH_TOPICS = ("limit", "dry_run", "source", "labeller", "column", "gold", "sample", "examples",
                    "export_batch", "import_batch", "batch_form", "again")  # fmt: skip
_FLAGS = {"source": "from", "gold": "export-gold"}
"""Options whose attribute is called otherwise."""


def run_label(options: argparse.Namespace) -> int:
    if options.task is None:
        names = ("task", "of", "says", "values", "default", "measured", "prompt")
        judged = []
        for t in tasks().values():
            try:
                by = default_labeller(t)
            except UsageError:
                by = ""
            values = ", ".join(t.values) or "a number"
            judged.append((t.name, t.level, t.says, values, by, quality(by, t) if by else "", t.prompt_hash))
        listed = [*judged, _TOPIC_ROW]
        as_objects = [dict(zip(names, row, strict=True)) for row in listed]
        print(json_text(as_objects) if options.json else table(names, listed, 90))
        return 0
    if options.task == _TOPIC:
        return _find_topics(options)
    _check_label(options)
    wanted = task(options.task)
    if options.source is not None:
        store = Store(options.store)
        if gold.is_gold(options.source):
            taken = annotation.take(store, options.source, options.labeller, wanted, options.column)
        else:
            taken = matching.take(store, options.source, options.labeller, wanted.name)
        labels, missing = times(taken.labels, "label"), times(taken.unmatched_labels, "label")
        rows = [
            ("imported", f"{labels} of {times(taken.sessions, 'session')}, {taken.moved:,} by text"),
            ("elsewhere", f"{missing} of {times(taken.unmatched_sessions, 'session')} not in the store"),
            ("skipped", counted(taken.skipped, most_first=True)),
        ]
        print(json_text(taken) if options.json else fields(rows))
        return 0
    if options.gold is not None:
        return _export_gold(options, wanted)
    return _judge(options, wanted, Store(options.store))


def _check_label(options: argparse.Namespace) -> None:
    """Refuse options of `labels label` that do not go together."""
    if options.by == _CLUSTERS or options.names or options.embedder or options.method:
        flags = f"--by {_CLUSTERS}, --names, --method and --embedder"
        raise UsageError(f"{flags} only work with the task {_TOPIC}.", f"Run labels label {_TOPIC} --by {_CLUSTERS}.")
    writes, reads = options.export_batch is not None, options.import_batch is not None
    others = {"--from": options.source, "--export-gold": options.gold, "--dry-run": options.dry_run}
    foreign = [name for name, value in others.items() if value]
    if writes and reads:
        raise UsageError("--export-batch and --import-batch cannot be combined.", "Give one of them.")
    if (options.batch_form or options.again) and not writes:
        raise UsageError("--batch-form and --again only work with --export-batch.", "Leave them out.")
    if (writes or reads) and foreign:
        raise UsageError(f"{foreign[0]} cannot be combined with --export-batch or --import-batch.", "Leave it out.")
    if (options.source is None) != (options.labeller is None):
        raise UsageError("--from and --labeller only work together.", "Give both: --from data/ --labeller qwen3")
    for name, value in (("--by", options.by), ("--export-gold", options.gold)):
        if options.source is not None and value is not None:
            raise UsageError(f"--from and {name} cannot be combined.", "Give one of them.")
    if options.gold is None and (options.sample is not None or options.seed is not None):
        raise UsageError("--sample and --seed only work with --export-gold.", "Add --export-gold or leave them out.")
    _above_zero(options, "limit", "sample", "concurrency", "per_minute", "window", "timeout")


def _above_zero(options: argparse.Namespace, *names: str) -> None:
    for name in names:
        if (number := getattr(options, name)) is not None and number <= 0:
            raise UsageError(f"--{name.replace('_', '-')} {number:g} is not above 0.", "Give a positive number.")


def _labeller(options: argparse.Namespace, name: str, **more: Any) -> Labeller:
    return labeller(
        name,
        concurrency=options.concurrency,
        per_minute=options.per_minute,
        window=options.window,
        timeout_s=options.timeout,
        **more,
    )


def _judge(options: argparse.Namespace, wanted: Task, store: Store) -> int:
    """Label a task's items by a labeller: only the estimated cost, a batch file, or the labels themselves."""
    in_files = options.export_batch is not None or options.import_batch is not None
    by = _labeller(options, options.by or default_labeller(wanted), redact=options.redact)
    selection, masks = _asked(options, by, options.where, options.limit)
    mask = Redactor(pseudonym_key(), known=known_secrets(store)).plain if masks else plain
    asked = prompting(wanted, options.examples, options.column, mask)
    versioned(wanted, by, asked)
    if options.dry_run:
        cost = estimate(store, wanted, by, selection, options.window or DEFAULT_WINDOW_TOKENS, asked)
        to = _goes(by, masks) if in_files or by.leaves or isinstance(by, ChatServer) else ""
        return _print_estimate(options, by, cost, to)
    if not in_files:
        _say_who(options, wanted, by, masks)
    with Bar(options.quiet) as bar:
        if not in_files:
            summary = judge(store, wanted, by, selection, bar, asked)
        elif not isinstance(by, ChatServer):
            raise UsageError(f"{by.name} can't use batch files.", "Use --by openai:MODEL, also for Claude models.")
        else:
            how_asked = {"window": options.window, "prompting": asked}
            if options.import_batch is not None:
                summary = batch.take(store, wanted, by, selection, bar, options.import_batch, **how_asked)
            else:
                how_asked |= {"form": options.batch_form, "again": options.again}
                summary = batch.write(store, wanted, by, selection, bar, options.export_batch, **how_asked)
    print(json_text(summary) if options.json else _summary_text(summary))
    return 1 if summary.failed and not summary.labelled and not summary.unanswered else 0


def read_passes(options: argparse.Namespace) -> int | None:
    """Let the second reader of `audit` read the passes, after saying what that costs, and compute the signals that
    rest on its labels. Return the exit status where there is no more to say: a dry run prints the estimate alone, and
    a reader that gave no answer is told on stderr."""
    from agentsignals.ingest import pipeline

    _above_zero(options, "concurrency", "per_minute", "window", "timeout")
    store, wanted = selected_store(options), task(AUDIT_TASK)
    by = _labeller(options, options.reader, redact=options.redact)
    if not isinstance(by, ChatServer):
        raise UsageError(f"{by.name} can't read passes.", "Use --reader openai:MODEL[@URL].")
    selection, masks = _asked(options, by, f"session_id IN ({chosen(options.where)})", None)
    # A dry run sends nothing, not even the question how long the model's window is.
    window = options.window or (DEFAULT_WINDOW_TOKENS if options.dry_run else by.window())
    cost = estimate(store, wanted, by, selection, window)
    if options.dry_run:
        return _print_estimate(options, by, cost, _goes(by, masks))
    _say_who(options, wanted, by, masks)
    price = "" if cost.cost_usd is None else f", about ${cost.cost_usd:,.2f}"
    tell(
        f"{times(cost.units, 'pass', 'passes')} to read, {cost.kept:,} read before: {times(cost.calls, 'call')},"
        f" ~{cost.input_tokens:,} tokens in, ~{cost.output_tokens:,} out{price}"
    )
    with Bar(options.quiet) as bar:
        summary = judge(store, wanted, by, selection, bar)
        pipeline.measure(options.store, bar, tell=tell)
    if summary.failed:
        n = times(sum(summary.failed.values()), "pass was", "passes were")
        tell(f"{n} not read ({counted(summary.failed, most_first=True)}); the next run asks again")
    return 1 if summary.failed and not summary.labelled else None


def _asked(options: argparse.Namespace, by: Labeller, where: str, limit: int | None) -> tuple[Selection, bool]:
    """Return the items that a labeller is asked about, and whether texts are masked on their way to it."""
    in_files = getattr(options, "export_batch", None) is not None or getattr(options, "import_batch", None) is not None
    sends = in_files or by.leaves or isinstance(by, ChatServer)
    masks = sends and (in_files or by.leaves if options.redact is None else options.redact)
    return Selection(where, limit, redact=masks), masks


def _say_who(options: argparse.Namespace, wanted: Task, by: Labeller, masks: bool) -> None:
    """Say what goes where before anything does, and how good the labeller is."""
    if by.leaves or isinstance(by, ChatServer):
        tell(f"texts of the sessions go to {_goes(by, masks)}, for labels by {by.model}")
    elif by.model is None and not options.quiet:
        measured = quality(by.name, wanted)
        tell(f"labelling by {by.name}, on this machine: {measured or 'its quality was never measured'}")
        if by.name == RULES:
            tell("rules find only part of each class, so their counts are lower bounds; the rest is counted as at most")
        elif options.by is None and by.name == CLASSIFIER and (better := classifier_of(ENCODER, wanted.name)):
            tell(f"better: encoder, {better.measured}. {install_command('encoder')}")


def _goes(by: Labeller, masks: bool) -> str:
    unmasked = "as they are" if by.leaves else f"{LOCAL_NOTICE}; --redact masks them"
    return f"{by.run_figures().get('url')}, {MASKED_NOTICE if masks else unmasked}"


def _summary_text(summary: Summary) -> str:
    labelled = f"{times(summary.labelled, 'label')} in {times(summary.sessions, 'session')}"
    if summary.kept or summary.repeated:
        labelled += f"; {summary.kept:,} from answers of an earlier run, {summary.repeated:,} repeated in this one"
    failed, older, figures = counted(summary.failed, most_first=True), summary.of_earlier_prompts, summary.run_figures
    cost = "unknown cost" if summary.cost_usd is None else f"${summary.cost_usd:,.2f}"
    spent = f"{summary.calls:,}, {summary.input_tokens:,} tokens in, {summary.output_tokens:,} out, {cost}"
    spent += f"; {summary.loosely_parsed:,} answers not strictly JSON" if summary.loosely_parsed else ""
    spent += f"; {summary.unwrapped:,} extracted from other text" if summary.unwrapped else ""
    batches, results = "", ""
    if "files" in figures:
        batches = f"{figures['requests']:,} requests in {', '.join(figures['files'])}" if figures["files"] else ""
        batches = batches or "nothing to ask"
        batches += f"; {figures['waiting']:,} wait for the results of an earlier batch" if figures["waiting"] else ""
    if "taken" in figures or "answered_before" in figures:
        results = counted({name: n for name, n in figures.items() if isinstance(n, int)})
    servers = []
    for url, of_it in figures.get("servers", {}).items():
        aside = f"; paused {of_it['set_aside']:,} times: {of_it['last_problem']}" if "set_aside" in of_it else ""
        servers.append(("server", f"{url}: {of_it['answers']:,} answers to {of_it['calls']:,} calls{aside}"))
    counts = []
    for value, n in sorted(summary.counts.items(), key=lambda pair: -pair[1]):
        of = trust(summary.task, summary.labeller, value)
        counts.append(f"{of.bound} {n:,} {value}".lstrip() + (f" ({words})" if (words := of.in_words()) else ""))
    return fields(
        [
            ("task", f"{summary.task}, by {summary.labeller}, version {summary.prompt_hash}"),
            ("labelled", labelled),
            ("not asked", counted(summary.not_asked, most_first=True)),
            ("no verdict", counted(summary.no_verdict, most_first=True)),
            ("failed", failed and f"{failed}; run again to ask again"),
            ("batch", batches),
            ("results", results),
            ("unanswered", summary.unanswered and f"{summary.unanswered:,}"),
            ("calls", summary.calls and spent),
            ("answered", counted(summary.served_models, most_first=True)),
            *servers,
            ("masked", counted(summary.redacted, most_first=True)),
            ("older", older and f"{times(older, 'label')} of an earlier prompt are still in use"),
            ("measured", summary.measured),
            ("counts", "" if summary.shares else ", ".join(counts)),
            *((f"share {name}", share.in_words()) for name, share in summary.shares.items()),
            ("next", summary.labelled and "`agentsignals measure` computes the signals that use labels"),
        ]
    )


def _print_estimate(options: argparse.Namespace, by: Labeller, e: Estimate, to: str) -> int:
    is_unpriced = e.cost_usd is None
    cost = "unknown: the price of the model is not in the table" if is_unpriced else f"${e.cost_usd:,.2f}"
    text = fields(
        [
            ("task", f"{e.task}, by {e.labeller}"),
            ("to judge", f"{e.units:,}, {e.long:,} of them longer than a window of {e.window:,} tokens"),
            ("not asked", counted(e.not_asked, most_first=True)),
            ("known", f"{e.kept:,} answers of earlier runs, {e.repeated:,} repeated questions"),
            ("calls", f"{e.calls:,}, about {e.input_tokens:,} tokens in, {e.output_tokens:,} out"),
            ("cost", by.model is not None and f"{cost} (an estimate; a model that thinks uses more)"),
            ("goes to", to),
        ]
    )
    print(json_text({**asdict(e), "goes_to": to}) if options.json else text)
    return 0


def _export_gold(options: argparse.Namespace, wanted: Task) -> int:
    rows = annotation.sample(
        Store(options.store),
        wanted,
        options.sample or annotation.SIZE,
        where=options.where,
        by=options.by or RULES,
        seed=options.seed if options.seed is not None else SEED,
        mask=options.redact is not False,
    )
    n = gold.write(options.gold, rows, masked=options.redact is not False)
    strata = len({row.stratum for row in rows})
    if options.json:
        print(json_text({"file": options.gold, "rows": n, "strata": strata}))
        return 0
    print(f"written     {times(n, 'row')}, each a {wanted.level}, of {strata:,} strata to {options.gold}")
    print(f"next        agentsignals labels annotate {wanted.name} --as NAME --gold {options.gold}")
    return 0


# `label topic`: what prompts are about, found over the whole store rather than judged one by one.


def _find_topics(options: argparse.Namespace) -> int:
    if options.by not in (None, _CLUSTERS):
        raise UsageError(f"{options.by} can name topics, not find them.", f"Use --by {_CLUSTERS} --names {options.by}.")
    for name in _NOT_WITH_TOPICS:
        if getattr(options, name):
            flag = _FLAGS.get(name, name.replace("_", "-"))
            raise UsageError(f"--{flag} cannot be used with topics.", "Leave it out.")
    if options.redact is False:
        raise UsageError("--no-redact cannot be used with topics: their prompts are always masked.", "Leave it out.")
    namer = None if options.names is None else _labeller(options, options.names)
    if namer is not None and (namer.leaves or isinstance(namer, ChatServer)):
        tell(f"prompts go to {_goes(namer, True)}, for names of topics by {namer.model}")
    summary = label_topics(
        Store(options.store),
        options.where,
        embedder=redacting(options.embedder) if options.redact else options.embedder,
        method=options.method,
        seed=SEED if options.seed is None else options.seed,
        namer=namer,
        tell=tell,
    )
    return print_result(options, summary, _topics_text)


def _topics_text(summary: TopicsSummary) -> str:
    naming, named = summary.naming, ""
    if naming:
        failed = f"; {counted(naming.failed, most_first=True)}, run again to ask again" if naming.failed else ""
        named = (
            f"{naming.names:,} by {naming.by}, {naming.kept:,} of them kept from an earlier run;"
            f" {times(naming.calls, 'call')}, {naming.input_tokens:,} tokens in, {naming.output_tokens:,} out{failed}"
        )
    reasons = counted(summary.left_out, most_first=True)
    left_out = f"{summary.left_out_share:.1%} of {times(summary.prompts, 'prompt')}: {reasons}"
    head = fields(
        [
            ("left out", sum(summary.left_out.values()) and left_out),
            ("compared", f"{summary.compared:,}"),
            ("task", f"{summary.task}, by {summary.labeller}, version {summary.version}"),
            ("method", f"{summary.method} over {summary.embedder}, seed {summary.seed}"),
            ("no topic", f"{summary.noise:,}, {summary.noise_share:.1%} of those compared"),
            ("named", named),
            ("next", "`agentsignals measure` computes chat.prompt_topic_cluster from them"),
        ]
    )
    names = ("topic", "prompts", "sessions", "words", "name")[: 4 if naming is None else 5]
    rows = [(t.number, t.n, t.sessions, ", ".join(t.words), t.name or "")[: len(names)] for t in summary.topics]
    shown = [f"{t.number:>5}  “{printable(example.excerpt or '')}”" for t in summary.topics for example in t.examples]
    return "\n".join(
        [head, "", table(names, rows, 90), *(["", "typical prompts of each topic", *shown] if shown else [])]
    )


# `annotate`: a person labels messages or sessions, at a terminal.


class _Terminal:
    """The terminal and the person at it. It shows on stderr: stdout is for the result."""

    def show(self, text: str) -> None:
        print("\n".join(printable(line) for line in text.split("\n")), file=sys.stderr)

    def answer(self, asked: str) -> str | None:
        print(asked, end="", file=sys.stderr, flush=True)
        try:
            line = sys.stdin.readline()
        except UnicodeDecodeError:
            return ""
        return line.rstrip("\r\n") if line else None


def run_annotate(options: argparse.Namespace) -> int:
    if options.gold is not None and (options.sample is not None or options.seed is not None):
        raise UsageError("--sample and --seed draw items, but --gold already names a file of items.", "Leave them out.")
    _above_zero(options, "sample")
    wanted, person = task(options.task), annotation.name_of(options.person)
    store = Store(options.store)
    if options.gold is not None:
        rows = gold.read(options.gold, wanted, unlabelled=True).rows
    else:
        seed = options.seed if options.seed is not None else SEED
        rows = annotation.sample(store, wanted, options.sample or annotation.SIZE, seed=seed)

    def transcript(session_id: str) -> str:
        """Return a session as a judge with an endless window is shown it."""
        unit = next(units(wanted, store.session(session_id), sys.maxsize))
        return "".join(unit.parts) if isinstance(unit, Unit) else f"(this labelling task does not apply: {unit.reason})"

    summary = annotation.annotate(store, wanted, person, rows, _Terminal(), transcript)
    shown = [
        ("labelled", f"{summary.labelled:,} by {summary.labeller}, codebook {wanted.prompt_hash}"),
        ("before", summary.before and f"{summary.before:,} were labelled by this person before"),
        ("agreed", summary.agreed and f"{summary.agreed:,} with equal labels of both were adopted"),
        ("left", summary.left and f"{summary.left:,}; run again to go on"),
        ("not found", counted(summary.not_found)),
    ]
    print(json_text(summary) if options.json else fields(shown))
    return 0


# `refusals`: what people refused, and what was kept instead.

_LISTED_REFUSALS = 25


def run_refusals(options: argparse.Namespace) -> int:
    made = redacted_in(refusals_in(selected_store(options), options.where))
    return print_result(options, made, refusals_text)


def refusals_text(made: Refusals) -> str:
    counts = []
    for rule in made.rules:
        reasons = "; ".join(f"{n:,} {why}" for why, n in rule.no_pair.items())
        measured = part_text(rule.right, rule.read, rule.precision_low, rule.precision_high)
        counts.append((rule.rule.replace("_", " "), rule.refusals, rule.pairs, reasons, measured))
    listed = [
        (pair.rule.removeprefix("refused_"), pair.words, *differing_lines(pair), pair.session_id, pair.refused_seq)
        for pair in made.pairs[:_LISTED_REFUSALS]
    ]
    answer = Printed(markdown=False, widest=60)
    answer.table(("rule", "refused", "pairs", "without a pair", "right, of pairs read"), counts, widest=120)
    if listed:
        answer.table(("refused", "words", "refused line", "kept line", "session", "event"), listed, "pairs")
        left = len(made.pairs) - len(listed)
        export = "`agentsignals export --to training --kind refusals` writes them for training (docs/training.md)."
        answer.lines([*([f"and {left:,} more (--json has all)"] if left else []), export])
    return str(answer)


# `agree`: how far two labellers agree, or one with a gold file.

_SHOWN_PATTERNS = 12
_EXCERPT = 100


def run_agree(options: argparse.Namespace) -> int:
    wanted, first, others = task(options.task), options.first, options.others
    if not others and options.gold is None:
        raise UsageError("Agreement needs a second labeller or --gold FILE.", "Add one, such as human:ann.")
    if options.settle is not None and options.gold is not None:
        raise UsageError("--settle and --gold cannot be combined.", "Leave one of them out.")
    if options.gold is None and options.column is not None:
        raise UsageError("--column only works with --gold.", "Leave it out.")
    if options.settle is not None and len(others) != 1:
        example = f"agentsignals labels agree {wanted.name} human:ann human:ben --settle FILE"
        raise UsageError("--settle needs two labellers.", example)
    if len({first, *others}) <= len(others):
        raise UsageError(f"A labeller is named twice: {', '.join([first, *others])}.", "Name different labellers.")
    if options.gold is not None:
        return _agree_with_gold(options, wanted, [first, *others])
    if len(others) > 1:
        several = matching.among(Store(options.store), wanted, [first, *others])
        print(json_text(several) if options.json else _several_text(several))
        return 0 if several.n else 1
    store = Store(options.store)
    if options.settle is not None:
        both = matching.pairs(store, wanted, first, others[0])
        gold.write(options.settle, to_settle(wanted, first, others[0], both, known_secrets(store)))
    result = matching.between(store, wanted, first, others[0])
    print(json_text(result) if options.json else _agreement_text(result))
    return 0 if result.n else 1


def _agree_with_gold(options: argparse.Namespace, wanted: Task, names: list[str]) -> int:
    """Compare labellers with a gold file. Exit 1, with the reasons, where one has no label of its rows."""
    labels = gold.read(options.gold, wanted, options.column)

    @cache
    def opened() -> Store:
        return Store(options.store)

    results, problem = [], None
    for name in names:
        try:
            results.append(matching.with_gold(wanted, name, labels, opened))
        except (EmbedderError, LabelError) as missing:  # the others are compared all the same
            problem = missing
            tell(f"{name}: {missing.message} {missing.hint}")
    if problem is not None and not results:
        raise problem
    alone = results[0] if len(names) == 1 else None
    if options.json:
        print(json_text(alone or {"task": wanted.name, "gold": options.gold, "labellers": results}))
    elif alone is not None:
        print(_agreement_text(alone))
    else:
        print("\n\n".join([_of_gold_text(results), *(_agreement_text(result) for result in results)]))
    for result in results:
        if not result.n:
            why = counted(result.left_out, most_first=True) or "the file has no labelled row"
            names_text = ", ".join(sorted(LABELLERS.all()))
            needs_text = f" Rows that are not in the store need `text`, for labellers that read it ({names_text})."
            lacks_text = any(row.text is None for row in labels.rows)
            rows = times(len(labels.rows), "row")
            tell(f"{result.a} has no label of the {rows} of {options.gold}: {why}.{needs_text if lacks_text else ''}")
    return 0 if problem is None and all(result.n for result in results) else 1


def _of_gold_text(results: list[Comparison]) -> str:
    """All labellers in one table, below one that always names the most frequent class, on the rows that most judged."""
    over = "projects" if any(result.projects for result in results) else "sessions"
    widest = max(results, key=lambda result: result.n)
    most = sorted(widest.per_class.items(), key=lambda pair: -pair[1].n)[:1] if widest.n else []
    rows: list[tuple[Any, ...]] = [
        (f"always {name}", widest.n, f"{of.n / widest.n:.2f}", "0.00", "", "") for name, of in most
    ]
    rows += [
        (
            result.a,
            result.n,
            _figure(result.agreement, result.agreement_interval),
            _estimate(result.kappa),
            _estimate(result.ac1),
            ", ".join(f"{name} {_figure(of.f1)}" for name, of in result.per_class.items() if of.n),
        )
        for result in results
    ]
    head = f"{results[0].task}, against {results[0].gold}; 95% intervals over {over}"
    return f"{printable(head)}\n\n{table(('labeller', 'n', 'agreement', 'kappa', 'AC1', 'F1 by class'), rows, 90)}"


def _several_text(result: Several) -> str:
    names = ("first", "second", "n", "agreement", "kappa", "AC1")
    pairs = [(p.a, p.b, p.n, _figure(p.agreement), _estimate(p.kappa), _estimate(p.ac1)) for p in result.pairs]
    alpha = f"Krippendorff's alpha ({result.alpha_of}) {_estimate(result.alpha)}"
    head = f"{result.task}: {result.n:,} labelled by two or more; {alpha}"
    warnings = dict.fromkeys(f"warning: {warning}" for p in result.pairs for warning in p.warnings)
    return "\n\n".join([printable(head), table(names, pairs), *map(printable, warnings)])


def _agreement_text(comparison: Comparison) -> str:
    c, scores, back = comparison, comparison.scores, comparison.weighted_back
    places = f" of {times(c.projects, 'project')}" if c.projects else ""
    both = f"{c.n:,} in {times(c.sessions, 'session')}{places}" if c.n else "no item has labels of both"
    rows: list[tuple[str, Any]] = [
        ("task", f"{c.task}: {c.a} (rows) and {c.b} (columns)"),
        ("gold by", c.gold),
        ("of both", both),
        ("left out", counted(c.left_out)),
    ]
    if c.agreement is not None and c.chance is not None:
        within = _interval(c.agreement_interval, "{:.0%}")
        rows += [
            ("agreement", f"{c.agreement:.1%}{within}, by chance {c.chance:.1%}"),
            ("kappa", _estimate(c.kappa) if c.kappa else "undefined: chance alone explains it"),
            ("weighted", c.weighted_kappa and _estimate(c.weighted_kappa)),
            ("AC1", c.ac1 and _estimate(c.ac1)),
        ]
    if back is not None:
        weighted = f"agreement {back.agreement:.1%}, kappa {_estimate(back.kappa)} of {back.things:,.0f} weighted"
        rows.append(("of all", weighted))
    if scores is not None:
        apart = f"{scores.mean_difference:+.2f}{_interval(scores.mean_difference_interval, '{:+.2f}')}"
        figure = f"ICC {_estimate(scores.icc)}, Spearman {_estimate(scores.spearman)}"
        rows.append(("scores", f"{figure}, mean difference {apart} (n {scores.n:,})"))
    parts = [fields([*rows, *(("warning", warning) for warning in c.warnings)])]
    if c.confusion:
        names = list(c.confusion)
        parts.append(table(["", *names], [[a, *(c.confusion[a][b] for b in names)] for a in names]))
        columns = ("class", f"n by {c.b}", f"n by {c.a}", "precision", "recall", "F1")
        per_class = [
            (name, k.n, k.predicted, _figure(k.precision, k.precision_interval), _figure(k.recall, k.recall_interval),
             _figure(k.f1, k.f1_interval))
            for name, k in c.per_class.items()
        ]  # fmt: skip
        parts.append(table(columns, per_class))
    if c.patterns:
        lines = ["where they disagree"]
        for pattern in c.patterns[:_SHOWN_PATTERNS]:
            named = f", {pattern.name}" if pattern.name else ""
            lines.append(printable(f"{pattern.a} → {pattern.b}{named}: {pattern.n:,} ({pattern.share:.1%})"))
            lines += [f"    “{printable(e.excerpt)[:_EXCERPT]}”" for e in pattern.examples if e.excerpt]
        if (hidden := len(c.patterns) - _SHOWN_PATTERNS) > 0:
            lines.append(f"and {hidden} rarer patterns (--json has all)")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _interval(ends: tuple[float | None, float | None] | None, form: str = "{:.2f}") -> str:
    return interval(*(ends or (None, None)), form, " ({})")


def _estimate(estimated: AgreementEstimate | None) -> str:
    return "–" if estimated is None else _figure(estimated.value, (estimated.low, estimated.high))


def _figure(value: float | None, ends: tuple[float | None, float | None] | None = None) -> str:
    return ("–" if value is None else f"{value:.2f}") + _interval(ends)


# `study`: two labellers over one store, where they disagree, and a page.


def run_study(options: argparse.Namespace) -> int:
    from agentsignals.ui import check_report, report

    wanted, store, output = task(options.task), store_with_sessions(options), Path(options.output)
    check_report(output, (wanted.name,))
    _above_zero(options, "limit", "concurrency", "timeout")
    names, summaries = [options.by or default_labeller(wanted), options.against], []
    if len({name.partition("@")[0] for name in names}) < len(names):
        raise UsageError(f"--by and --against name the same labeller, {names[0]}.", "Name two different ones.")
    made = [
        labeller(name, concurrency=options.concurrency, timeout_s=options.timeout)
        for name in names
        if name.partition(":")[0] in LABELLERS.places
    ]
    for by in made:
        _say_who(options, wanted, by, by.leaves)
        with Bar(options.quiet) as bar:
            selection = Selection(options.where, options.limit, redact=by.leaves)
            summaries.append(judge(store, wanted, by, selection, bar))
    first, second = (name.partition("@")[0] for name in names)
    compared = matching.between(store, wanted, second, first)
    written = report.write(store, output, (wanted.name,), labeller=first)
    if options.json:
        print(json_text({"labelled": summaries, "agreement": compared, "report": str(written)}))
    else:
        print("\n\n".join([*map(_summary_text, summaries), _agreement_text(compared), f"report      {written}"]))
    return 0 if compared.n else 1


# `validate`: how often signals that claim a meaning are right, where the truth is at hand.


def run_validate(options: argparse.Namespace) -> int:
    figures = validate(options.gold)
    if options.write:
        text = msgspec.json.format(msgspec.json.encode(figures), indent=1) + b"\n"
        try:
            private_files.write(Path(options.write), text)
        except OSError as problem:
            said = f"{options.write} can't be written: {problem.strerror}."
            raise ExportError(said, "Name another file.") from problem
    unmeasured = never_validated({figure.signal for figure in figures})
    as_json = {"figures": figures, "never_validated": unmeasured}
    print(json_text(as_json) if options.json else _validation_text(figures, unmeasured))
    return 0


def _validation_text(figures: list[Figure], unmeasured: list[str]) -> str:
    names = ("signal", "class", "n", "named", "true", "precision", "recall", "kappa", "truth")
    rows = [
        (f.signal, f.value, f.n, f.named, f.true, _figure(f.precision, f.precision_interval),
         _figure(f.recall, f.recall_interval), _figure(f.kappa), f.truth)
        for f in figures
    ]  # fmt: skip
    parts = [table(names, rows, 100)]
    low = [f"{f.signal} {f.value}: {f.precision:.0%} ({f.truth})" for f in figures if f.misleads]
    if low:
        parts.append("wrong more often than right\n" + "\n".join(f"    {printable(line)}" for line in low))
    parts.append(f"never validated, although they claim a meaning: {', '.join(unmeasured) or 'none'}")
    return "\n\n".join(parts)
