"""Verbs that read traces: `analyze`, `measure`, `demo`, and `agentsignals` alone."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import textwrap
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from agentsignals.cli.output import Bar, Reading, figure, json_text, printable, tell, written_as
from agentsignals.errors import SourceError
from agentsignals.formats import homes
from agentsignals.ingest import pipeline
from agentsignals.ingest.pipeline import Summary
from agentsignals.ingest.plan import UnknownFields
from agentsignals.questions.ranking import Findings, ResolvedGroup, decode_findings, too_few_sessions
from agentsignals.sources import OUT_OF_MEMORY
from agentsignals.sources.local import found_homes
from agentsignals.store import Store, findings_cache, resolve_folder
from agentsignals.store.index import INDEX_FILE, main_context

_UNREAD_LINES = 6
"""Kinds of unread files that are named in words."""


@cache
def skip_advice() -> dict[str, str]:
    """Return what to do about what was skipped, by reason."""
    import tomllib  # only where something was skipped

    return tomllib.loads(Path(__file__).with_name("skip_advice.toml").read_text("utf-8"))


NEW_FIELDS = "what they say is in no figure; a newer agentsignals may read them"


def drift_line(unknown: UnknownFields) -> str:
    """Say what an agent writes that it did not before."""
    n = len(unknown.fields)
    shown = ", ".join(unknown.fields[:_SHOWN]) + (" …" if n > _SHOWN else "")
    whose = f"{unknown.format} {unknown.version}".strip()
    return printable(f"{n:,} unknown fields in {unknown.files:,} files of {whose} ({shown})")


_SHOWN = 4


def run_analyze(options: argparse.Namespace) -> int:
    if options.report:
        from agentsignals.ui import check_report

        check_report(Path(options.report))
    settings = {name: getattr(options, name) for name in ("jobs", "engine")} | {"embedder": _embedder(options)}
    settings["force_format"] = options.format
    if options.wait is not None:
        settings["wait_s"] = options.wait
    if options.exclude:
        from agentsignals.sources import read_exclusions

        settings["exclude"] = read_exclusions(options.exclude)
    with Reading(options.quiet) as bar:
        summary, store = pipeline.analyze_into(
            options.sources, options.store, tell=tell, progress=bar, so_far=bar.heard, **settings
        )
    if options.report:
        from agentsignals.ui import report

        summary.report = str(report.write(store, Path(options.report)))
    for what, n in summary.internal_errors.items():
        times = f" ({n:,} times)" if n > 1 else ""
        cause = "for want of memory" if OUT_OF_MEMORY in what else "by an error of this program"
        print(f"agentsignals: set aside, {cause}: {printable(what)}{times}", file=sys.stderr)
    _say(summary, options, store, options.store)
    return 1 if options.strict and summary.skipped.keys() - {"not_sessions"} else 0


def _without_secrets(summary: Summary) -> Summary:
    """Redact a summary: versions, kinds and names of files come from traces. The caller named the store's folder and
    the report's file, so these stay."""
    from agentsignals.redaction import redacted_in

    return msgspec.structs.replace(redacted_in(summary), store=summary.store, report=summary.report)


def _say(summary: Summary, options: argparse.Namespace, store: Store, folder: Path | str | None) -> None:
    if not options.json:
        print(_summary_text(summary), flush=True)
    if getattr(options, "no_report", False):
        if options.json:
            print(json_text(_without_secrets(summary)))
        return
    made = findings_of(store, getattr(options, "jobs", None))
    if options.json:
        print(json_text({**msgspec.structs.asdict(_without_secrets(summary)), "findings": made}))
    elif made.sessions:
        print(f"\n{last_lines(store, made, None if folder is None else str(folder))}")


def _summary_text(summary: Summary) -> str:
    from agentsignals.questions.formatting import AT_LEAST
    from agentsignals.views.usage import VISIBLE_ERROR

    skipped = ", ".join(f"{n:,} {reason}" for reason, n in sorted(summary.skipped.items())) or "none"
    formats = ", ".join(f"{n:,} {name}" for name, n in sorted(summary.formats.items(), key=lambda p: -p[1]))
    bound = AT_LEAST if summary.lower_bounds else ""
    tokens = (
        f"{summary.input_tokens:,} in, {bound}{summary.output_tokens:,} out, {summary.cache_read_tokens:,} cache read,"
        f" {summary.cache_write_tokens:,} cache write"
    )
    priced = summary.sessions - summary.unpriced_sessions
    cost_bound = AT_LEAST if summary.partly_priced else bound
    cost = f"{cost_bound}${summary.cost_usd:,.2f} over {priced:,} sessions with a known price"
    if summary.partly_priced:
        cost += f"; {summary.partly_priced:,} of them leave out a part without a price (column `unpriced`)"
    rows: list[tuple[str, Any]] = [
        ("artifacts", f"{summary.artifacts:,} ({formats}); {summary.parsed:,} read, {summary.unchanged:,} unchanged"),
        ("sessions", figure(summary.sessions) + (f", {summary.attempts:,} attempts" if summary.attempts else "")),
        ("prompts", figure(summary.prompts)),
        ("tool calls", figure(summary.tool_calls)),
        ("edits", figure(summary.edits)),
        ("tokens", tokens),
        ("cost", cost),
        ("skipped", skipped + (f"; {summary.other_files:,} files that are no traces" if summary.other_files else "")),
        ("store", summary.store),
    ]
    # The first and the last version of each format, the files that are not read, and new fields in those that are.
    spans = ((name, list(met), sum(met.values())) for name, met in summary.versions.items())
    met_by = (f"{name} {met[0]}{f' to {met[-1]}' if len(met) > 1 else ''} ({n:,} files)" for name, met, n in spans)
    rows.append(("versions", printable(", ".join(met_by))))
    rows += [("not read", line) for line in _unread(summary)]
    rows += [("new fields", f"{drift_line(u)}: {NEW_FIELDS}") for u in summary.unknown_fields[:_UNREAD_LINES]]
    copies = [f"{summary.repeated:,} files are copies or earlier states of others"] if summary.repeated else []
    copies += [f"{summary.repeated_records:,} further records repeat others"] if summary.repeated_records else []
    silent = ", ".join(f"{n:,} {name}" for name, n in sorted(summary.silent_sessions.items()))
    in_mid_stream = (
        f"{summary.lower_bounds:,} sessions log output in mid-stream; their visible text alone comes to about"
        f" {summary.visible_output_tokens:,} tokens ({VISIBLE_ERROR})"
    )
    deleted = (
        f"{summary.deleted_files:,} files are gone; the store keeps the {summary.deleted_sessions:,} sessions that were"
        " in no other: agentsignals forget --deleted"
    )
    excluded = f"{summary.excluded_sources:,} sources, {summary.excluded_sessions:,} sessions"
    lost = summary.lost_sessions
    named = f"{', '.join(lost[:5])}{' …' * (len(lost) > 5)}"
    held = f"{summary.stored_sessions:,} sessions in the store, of all sources"
    rows += [
        ("silent", silent and f"{silent}: sessions without a prompt, a call or a token; another agent's, perhaps"),
        ("at least", in_mid_stream if summary.lower_bounds else ""),
        ("held", held if summary.stored_sessions != summary.sessions else ""),
        ("deleted", deleted if summary.deleted_files else ""),
        ("repeated", copies and f"{'; '.join(copies)}: each counts once"),
        ("excluded", excluded if summary.excluded_sessions or summary.excluded_sources else ""),
        ("restored", summary.restored_sessions
         and f"{summary.restored_sessions:,} sessions of damaged parts were read again"),
        ("lost", lost and f"{len(lost):,} sessions whose sources are gone: {named}"),
        ("report", summary.report and written_as(summary.report)),
    ]  # fmt: skip
    return "\n".join(f"{name:10}  {value}" for name, value in rows if value)


def _unread(summary: Summary) -> list[str]:
    lines = []
    for group in summary.unread[:_UNREAD_LINES]:
        what = f"{group.files:,} {group.what or group.reason.replace('_', ' ')}"
        whose = f", in {group.agent}'s folder" if group.agent else ""
        lines.append(printable(f"{what}{whose}, as {group.example}: {skip_advice().get(group.reason, group.reason)}"))
    rest = summary.unread[_UNREAD_LINES:]
    if rest:
        files = sum(group.files for group in rest)
        lines.append(f"{files:,} of {len(rest):,} more kinds: --json names them, and the page Files of `serve`")
    if not summary.sessions and not summary.unread:
        if summary.formats:
            lines.append(f"what was read tells of sessions that are not here: {', '.join(sorted(summary.formats))}")
        elif summary.other_files:
            lines.append("no file there begins as a trace does, neither as JSON nor as an archive")
        else:
            lines.append("there is no file")
    return lines


def _embedder(options: argparse.Namespace) -> str | None:
    from agentsignals.words.vectors import redacting

    return redacting(options.embedder) if options.redact else options.embedder


def run_measure(options: argparse.Namespace) -> int:
    wait = {} if options.wait is None else {"wait_s": options.wait}
    with Bar(options.quiet) as bar:
        done = pipeline.measure(options.store, bar, embedder=_embedder(options), every=options.all, tell=tell, **wait)
    sessions, values, signals = (f"{done[name]:,} {name}" for name in ("sessions", "values", "signals"))
    text = f"{sessions} measured anew: {values} of {signals} are new or changed"
    print(json_text(done) if options.json else text)
    return 0


def run_demo(options: argparse.Namespace) -> int:
    from agentsignals.cli import demo_corpus
    from agentsignals.ui import report

    folder = Path(options.folder)
    sources = demo_corpus.make_corpus(folder / "corpus")
    place = options.store or folder / "store"
    with Reading(options.quiet) as bar:
        summary, store = pipeline.analyze_into([str(sources)], place, progress=bar, so_far=bar.heard)
    summary.report = str(report.write(store, folder / "report.html").resolve())
    _say(summary, options, store, place)
    return 0


# `agentsignals` alone: reads what the agents on this machine keep, and says what stands out. Nothing leaves it.

SENTENCES = 5
_DEMO = "agentsignals demo"


def run_start(options: argparse.Namespace) -> int:
    """Reads this machine into the store, and prints its findings and what to type next. Where no agent's folder is
    there, those of what the store holds; SourceError where it holds nothing either."""
    there = found_homes()
    summary = None
    if there:
        with Reading(options.quiet or not sys.stderr.isatty()) as bar:
            summary = pipeline.analyze(sorted(there), options.store, progress=bar, so_far=bar.heard)
    store = Store(options.store) if (resolve_folder(options.store) / INDEX_FILE).exists() else None
    if store is None or not store.manifest.sessions:
        folders = "; ".join(f"{agent}: {', '.join(where)}" for agent, where in homes().items())
        hint = f"Looked for {folders}. Name a file or folder: `agentsignals analyze FOLDER`."
        raise SourceError("No session was found on this machine.", f"{hint} `{_DEMO}` shows what there would be.")
    read = f"read {', '.join(sorted(there))}: {summary.sessions:,} sessions" if summary else "no agent's folder is here"
    if not options.json:
        print(printable(f"{read}; store {store.folder}"), flush=True)
    made = findings_of(store)
    if options.json:
        of_run = None if summary is None else _without_secrets(summary)
        print(json_text({"agents": sorted(there), "store": str(store.folder), "read": of_run, "findings": made}))
        return 0
    print(f"\n{last_lines(store, made, options.store, SENTENCES, SENTENCES + LINES)}")
    return 0


# The end of an analysis: the first findings, what was paid, what to type next.

SENTENCES = 3
LINES = 10
"""A screen's end. Where sentences are long there are fewer of them."""
OF = {"product": "sessions", "eval": "attempts"}
"""The unit of each context."""
_JOINED = "\N{NO-BREAK SPACE}"
"""Within a command, which stays on a line."""


def findings_of(store: Store, jobs: int | None = None) -> Findings:
    """Return the findings of the store. Where they are cached, or a few files changed since, nothing that computes is
    loaded; too few sessions are not computed. `jobs`: with more than one, a background process computes half."""
    context = main_context(store.manifest)
    made = too_few_sessions(store.manifest.contexts(), context) or decode_findings(findings_cache.read(store, context))
    if made is not None:
        return made
    before, changed = findings_cache.recent(store, context) or (None, 0)
    made = decode_findings(before)
    if made is not None:
        return replace(made, changed_files=changed)
    from agentsignals.ingest.engine.local import in_background
    from agentsignals.ingest.pipeline import default_jobs
    from agentsignals.questions import findings

    return findings.findings(store, beside=in_background if (jobs or default_jobs()) > 1 else None)


_SHARE = 7
"""Columns of a share, right-aligned."""


def resolved_lines(groups: Sequence[ResolvedGroup], most: int | None = None) -> list[str]:
    """Return what each candidate resolved, a line each under its group; at most so many lines."""
    lines: list[str] = []
    for n, group in enumerate(groups):
        tasks = f"{group.tasks:,} task{'' if group.tasks == 1 else 's'}"
        apart = ", not comparable with the others" if n else ""
        lines.append(f"Resolved, {', '.join([*group.datasets[:_DATASETS], tasks])}{apart}:")
        for c in group.candidates:
            share = "–" if c.share is None else f"{c.share:.0%}"
            ends = "" if c.low is None or c.high is None else f"{c.low:.0%} to {c.high:.0%}"
            solved = "" if c.share is None else f"{round(c.share * c.judged):,} of {c.judged:,}"
            lacking = f", {c.not_judged:,} not judged" if c.not_judged else ""
            lines.append(f"{share:>{_SHARE}}  {ends:13}{solved:>12}  {c.name}{lacking}")
        if group.command and n:
            lines.append(f"         {group.command}")
    if most is None or len(lines) <= most:
        return lines
    left = sum(not line.startswith("Resolved") for line in lines[most - 1 :])
    return [*lines[: most - 1], f"{'':{_SHARE}}  and {left:,} more: agentsignals findings"]


def elsewhere_lines(made: Findings) -> list[str]:
    """Return a line for each other context of the store, with the command that asks of it."""
    return [
        f"{other.sessions:,} {_OTHERS[other.context]} not in these findings: {other.command}"
        for other in made.elsewhere
    ]


_DATASETS = 3
_OTHERS = {"product": "sessions of people are", "eval": "eval attempts are"}
MOST_RESOLVED = 6
"""Lines of candidates at the end of an analysis."""


def last_lines(store: Store, made: Findings, folder: str | None, most: int = SENTENCES, lines: int = LINES) -> str:
    """The first sentences with the bill and the next commands, at most so many lines at the terminal's width; whole
    ones where there is no terminal. `folder`: the store as it was named."""
    width = shutil.get_terminal_size((0, 0)).columns
    n = sum(made.looked_at.values())
    resolved = [printable(line) for line in resolved_lines(made.resolved, MOST_RESOLVED)]
    lines += len(resolved)
    sentences = [printable(f"{at + 1}. {answer.sentence}") for at, answer in enumerate(made.answers[:most])]
    if not sentences:
        left_out = "; ".join(f"{name}: {why}" for name, why in made.left_out.items())
        sentences = [f"Nothing stands out: {n:,} candidates were looked at{f' ({left_out})' if left_out else ''}."]
    if made.changed_files:
        files = f"{made.changed_files:,} of {len(store.manifest.files):,} files"
        sentences[-1] += f" (This was before {files} changed: `agentsignals findings` looks at all.)"
    bill = printable(f"{made.sessions:,} {OF[made.context]}{f'; {made.bill}' if made.bill else ''}")
    commands = " | ".join(command.replace(" ", _JOINED) for command in next_commands(store, folder))
    others = [f"{line}{f' --store {shlex.quote(folder)}' if folder else ''}" for line in elsewhere_lines(made)]
    end = [
        *_wrapped(bill, width),
        *others,
        *(line.replace(_JOINED, " ") for line in _wrapped(f"next: {commands}", width)),
    ]
    shown = [_wrapped(sentence, width) for sentence in sentences]
    while len(shown) > 1 and sum(map(len, shown)) + len(end) > lines:
        shown.pop()
    return "\n".join([*resolved, *(line for sentence in shown for line in sentence), *end])


def next_commands(store: Store, folder: str | None) -> list[str]:
    """Return the commands to type next, for the store as it was named."""
    named = f" --store {shlex.quote(folder)}" if folder else ""
    return [f"agentsignals {verb}{named}" for verb in ("findings", "report -o report.html", "serve --open")]


def _wrapped(text: str, width: int) -> list[str]:
    if not width:
        return [text]
    return textwrap.wrap(text, max(width, 20), subsequent_indent="   ", break_on_hyphens=False, break_long_words=False)
