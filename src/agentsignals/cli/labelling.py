"""`label --export-batch` and `--import-batch`: files of requests and results instead of calls."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from agentsignals.cli.output import Bar, json_text, printable, table
from agentsignals.errors import ExportError, UsageError
from agentsignals.labels import annotation, batch, gold
from agentsignals.labels import annotation as human_labels
from agentsignals.labels import matching as agree
from agentsignals.labels import matching as published
from agentsignals.labels.agreement import Comparison, Several
from agentsignals.labels.annotation import Annotated, to_settle
from agentsignals.labels.labellers import DEFAULT_WINDOW_TOKENS, Labeller, labeller
from agentsignals.labels.labellers.openai import ChatServer
from agentsignals.labels.prompting import Prompting, prompting
from agentsignals.labels.run import Estimate, Progress, Summary, estimate, versioned
from agentsignals.labels.run import run as judge
from agentsignals.labels.tasks import Task, task, tasks
from agentsignals.labels.topics import Named, label_topics
from agentsignals.labels.topics import Summary as TopicsSummary
from agentsignals.labels.units import Selection, Unit, plain, units
from agentsignals.labels.validation import never_validated, validate
from agentsignals.redaction import Redactor
from agentsignals.stats.agreement import Estimate as AgreementEstimate
from agentsignals.stats.intervals import SEED
from agentsignals.stats.validation import Figure
from agentsignals.store import Store
from agentsignals.store.pseudonym_key import pseudonym_key

_FORMS = ("openai", "anthropic")


def is_about(options: argparse.Namespace) -> bool:
    """Return whether a batch file is written or read. UsageError where another option excludes that."""
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
    """Return the lines of a summary that are about the files."""
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


def is_about_topics(options: argparse.Namespace) -> bool:
    """Return whether the options ask for topics. UsageError where they ask for topics and something else."""
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


def _run_topics(options: argparse.Namespace) -> int:
    """Finds topics, and says which."""

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
    print(f"agentsignals: {printable(what)}", file=sys.stderr)


def _text(summary: TopicsSummary) -> str:
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
    shown = [
        line
        for topic in summary.topics
        for line in [f"{topic.number:>5}  “{printable(example.excerpt)}”" for example in topic.examples]
    ]
    return "\n".join([*lines, "", table(names, rows, 90), *(["", "in the middle of each", *shown] if shown else [])])


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


def run_label(options: argparse.Namespace) -> int:
    if options.task is None:
        return _list(options)
    if is_about_topics(options):
        return _run_topics(options)
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
    return "\n".join(f"{name:10}  {printable(str(value))}" for name, value in rows if value)


def _counts_label(counts: dict[str, int]) -> str:
    return ", ".join(f"{n:,} {reason.replace('_', ' ')}" for reason, n in sorted(counts.items(), key=lambda p: -p[1]))


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
    print(json_text(summary) if options.json else _text_annotate(summary, wanted))
    return 0


def _transcripts(store: Store, wanted: Task) -> Callable[[str], str]:
    """A session as a judge with an endless window is shown it."""

    def shown(session_id: str) -> str:
        unit = next(units(wanted, store.session(session_id), sys.maxsize))
        return "".join(unit.parts) if isinstance(unit, Unit) else f"(the task is not about it: {unit.reason})"

    return shown


def _text_annotate(summary: Annotated, wanted: Task) -> str:
    rows = [
        ("labelled", f"{summary.labelled:,} by {summary.labeller}, codebook {wanted.prompt_hash}"),
        ("before", summary.before and f"{summary.before:,} had this person's label already"),
        ("agreed", summary.agreed and f"{summary.agreed:,} that both had labelled alike were taken over"),
        ("left", summary.left and f"{summary.left:,}; run again to go on"),
        ("not found", ", ".join(f"{n:,} {reason.replace('_', ' ')}" for reason, n in summary.not_found.items())),
    ]
    return "\n".join(f"{name:10}  {value}" for name, value in rows if value)


# `agree`: how far two labellers agree, or one with a gold file.

_SHOWN_PATTERNS = 12
_EXCERPT = 100


def run_agree(options: argparse.Namespace) -> int:
    wanted = task(options.task)
    _check_agree(options)
    if len(options.others) > 1:
        several = agree.among(Store(options.store), wanted, [options.first, *options.others])
        print(json_text(several) if options.json else _several(several))
        return 0 if several.n else 1
    result = _compared(options, wanted)
    print(json_text(result) if options.json else _text_agree(result))
    return 0 if result.n else 1


def _check_agree(options: argparse.Namespace) -> None:
    if bool(options.others) == (options.gold is not None):
        raise UsageError("Agreement is of two: another labeller, or --gold FILE.", "agree sentiment rules human:ann")
    if options.gold is None and options.column is not None:
        raise UsageError("--column belongs to --gold.", "Leave it out.")
    if options.settle is not None and len(options.others) != 1:
        raise UsageError("--settle is for two labellers.", "agree sentiment human:ann human:ben --settle settle.jsonl")
    if len({options.first, *options.others}) <= len(options.others):
        raise UsageError("A labeller is named twice.", "Everybody agrees with themselves.")


def _compared(options: argparse.Namespace, wanted: Task) -> Comparison:
    if options.others:
        store, other = Store(options.store), options.others[0]
        if options.settle is not None:
            both = agree.pairs(store, wanted, options.first, other)
            gold.write(options.settle, to_settle(wanted, options.first, other, both))
        return agree.between(store, wanted, options.first, other)
    gold_labels = gold.read(options.gold, wanted, options.column)
    opened_store = None if agree.judges_texts(options.first, gold_labels) else Store(options.store)
    return agree.with_gold(wanted, options.first, gold_labels, opened_store)


def _several(result: Several) -> str:
    names = ("first", "second", "n", "agreement", "kappa", "AC1")
    pairs = [(p.a, p.b, p.n, _figure(p.agreement), _estimate(p.kappa), _estimate(p.ac1)) for p in result.pairs]
    of = f"Krippendorff's alpha ({result.alpha_of})"
    head = f"{result.task}: {result.n:,} labelled by two or more; {of} {_estimate(result.alpha)}"
    mind = dict.fromkeys(f"mind: {warning}" for p in result.pairs for warning in p.warnings)
    return "\n\n".join([printable(head), table(names, pairs), *map(printable, mind)])


def _text_agree(comparison: Comparison) -> str:
    kappa, scores = comparison.kappa, comparison.scores
    rows: list[tuple[str, Any]] = [
        ("task", f"{comparison.task}: {comparison.a} (rows) and {comparison.b} (columns)"),
        ("gold by", comparison.gold),
        (
            "of both",
            f"{comparison.n:,} in {comparison.sessions:,} sessions" if comparison.n else "nothing: no label of both",
        ),
        ("left out", ", ".join(f"{n:,} {reason.replace('_', ' ')}" for reason, n in comparison.left_out.items())),
    ]
    if comparison.agreement is not None and comparison.chance is not None:
        within = _interval(comparison.agreement_interval, "{:.0%}")
        rows.append(("agreement", f"{comparison.agreement:.1%}{within}, by chance {comparison.chance:.1%}"))
        rows.append(("kappa", _estimate(kappa) if kappa else "not defined: chance explains all"))
        rows += [("weighted", comparison.weighted_kappa and _estimate(comparison.weighted_kappa))]
        rows += [("AC1", comparison.ac1 and _estimate(comparison.ac1))]
    if comparison.weighted_back is not None:
        back = comparison.weighted_back
        rows.append(
            ("of all", f"agreement {back.agreement:.1%}, kappa {_estimate(back.kappa)} of {back.things:,.0f} weighted")
        )
    if scores is not None:
        apart = f"{scores.mean_difference:+.2f}{_interval(scores.mean_difference_interval, '{:+.2f}')}"
        figure = f"ICC {_estimate(scores.icc)}, Spearman {_estimate(scores.spearman)}"
        rows.append(("scores", f"{figure}, mean difference {apart} (n {scores.n:,})"))
    rows += [("mind", warning) for warning in comparison.warnings]
    parts = ["\n".join(f"{name:10}  {printable(str(value))}" for name, value in rows if value)]
    if comparison.confusion:
        names = list(comparison.confusion)
        parts.append(table(["", *names], [[a, *(comparison.confusion[a][b] for b in names)] for a in names]))
        columns = ("class", f"n by {comparison.b}", f"n by {comparison.a}", "precision", "recall", "F1")
        per_class = [
            (
                k,
                c.n,
                c.predicted,
                f"{_figure(c.precision)}{_interval(c.precision_interval)}",
                f"{_figure(c.recall)}{_interval(c.recall_interval)}",
                f"{_figure(c.f1)}{_interval(c.f1_interval)}",
            )
            for k, c in comparison.per_class.items()
        ]
        parts.append(table(columns, per_class))
    if comparison.patterns:
        lines = ["where they disagree"]
        for pattern in comparison.patterns[:_SHOWN_PATTERNS]:
            lines.append(printable(f"{pattern.a} → {pattern.b}: {pattern.n:,} ({pattern.share:.1%})"))
            lines += [f"    “{printable(e.excerpt)[:_EXCERPT]}”" for e in pattern.examples if e.excerpt]
        hidden = len(comparison.patterns) - _SHOWN_PATTERNS
        parts.append("\n".join([*lines, f"and {hidden} rarer patterns (--json has all)"] if hidden > 0 else lines))
    return "\n\n".join(parts)


def _interval(ends: tuple[float | None, float | None] | None, form: str = "{:.2f}") -> str:
    return "" if ends is None or ends[0] is None else f" [{form.format(ends[0])}, {form.format(ends[1])}]"


def _estimate(estimate: AgreementEstimate | None) -> str:
    return "–" if estimate is None else f"{estimate.value:.2f}{_interval((estimate.low, estimate.high))}"


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


# `validate`: how often signals that claim a meaning are right, where the truth is at hand.


def run_validate(options: argparse.Namespace) -> int:
    figures = validate(options.gold)
    if options.write:
        try:
            Path(options.write).write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=1) + b"\n")
        except OSError as problem:
            raise ExportError(
                f"{options.write} can't be written: {problem.strerror}.", "Name another file."
            ) from problem
    unmeasured = never_validated({figure.signal for figure in figures})
    print(
        json_text({"figures": figures, "never_validated": unmeasured})
        if options.json
        else _text_validate(figures, unmeasured)
    )
    return 0


def _text_validate(figures: list[Figure], unmeasured: list[str]) -> str:
    names = ("signal", "class", "n", "named", "true", "precision", "recall", "kappa", "truth")
    rows = [
        (
            f.signal,
            f.value,
            f.n,
            f.named,
            f.true,
            _share(f.precision, f.precision_interval),
            _share(f.recall, f.recall_interval),
            "–" if f.kappa is None else f"{f.kappa:.2f}",
            f.truth,
        )
        for f in figures
    ]
    parts = [table(names, rows, 100)]
    low = [f"{f.signal} {f.value}: {f.precision:.0%} ({f.truth})" for f in figures if f.misleads]
    if low:
        parts.append("named wrongly more often than rightly\n" + "\n".join(f"    {printable(line)}" for line in low))
    parts.append(f"never validated, though they claim a meaning: {', '.join(unmeasured) or 'none'}")
    return "\n\n".join(parts)


def _share(share: float | None, interval: tuple[float, float] | None) -> str:
    if share is None:
        return "–"
    return f"{share:.2f}" + (f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else "")
