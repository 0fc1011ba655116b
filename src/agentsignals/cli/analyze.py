"""Verbs that read traces: `analyze`, `measure`, `demo`, and `agentsignals` alone."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from agentsignals.cli.output import Bar, Reading, figure, json_text, named_in, printable, tell
from agentsignals.errors import NothingFound
from agentsignals.formats import homes
from agentsignals.questions.question import AT_LEAST, times
from agentsignals.store import Store, resolve_folder, sidecars
from agentsignals.store.index import INDEX_FILE, main_context

if TYPE_CHECKING:
    from agentsignals.ingest.pipeline import Summary
    from agentsignals.ingest.plan import UnknownFields
    from agentsignals.questions.ranking import Findings
    from agentsignals.questions.ranking import Summary as StoreSummary

_UNREAD_LINES = 6
"""Kinds of unread files that are named in words."""


@cache
def skip_advice() -> dict[str, str]:
    """Return what to do about what was skipped, by reason."""
    import tomllib  # only where something was skipped

    return tomllib.loads(Path(__file__).with_name("skip_advice.toml").read_text("utf-8"))


NEW_FIELDS = "no figure uses them; a newer version may"


def drift_line(unknown: UnknownFields) -> str:
    """Say what an agent writes that it did not before."""
    n = len(unknown.fields)
    shown = ", ".join(unknown.fields[:_SHOWN]) + (" …" if n > _SHOWN else "")
    whose = f"{unknown.format} {unknown.version}".strip()
    return printable(f"{n:,} unknown fields in {times(unknown.files, 'file')} of {whose} ({shown})")


_SHOWN = 4


def run_analyze(options: argparse.Namespace) -> int:
    from agentsignals.ingest import pipeline  # not where `today` prints a status line
    from agentsignals.sources import OUT_OF_MEMORY

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
    for what, n in summary.internal_errors.items():
        often = f" ({n:,} times)" if n > 1 else ""
        cause = "not enough memory" if OUT_OF_MEMORY in what else "a bug in agentsignals"
        print(f"agentsignals: skipped, {cause}: {printable(what)}{often}", file=sys.stderr)
    if not summary.sessions:
        nothing = _nothing_in(options.sources, summary)
        if not options.json:
            raise nothing
        error = {"kind": nothing.kind, "message": nothing.message, "hint": nothing.hint}
        print(json_text({**msgspec.structs.asdict(_without_secrets(summary)), "error": error}))
        return nothing.exit_code
    select_sessions(store, options)
    if options.report:
        from agentsignals.ui import report

        summary.report = str(report.write(store, Path(options.report)))
    _say(summary, options, store, named_again(options))
    return 1 if options.strict and summary.skipped.keys() - {"not_sessions"} else 0


FIRST_STEPS = (
    "`agentsignals analyze FOLDER` reads another folder.\n`agentsignals demo` analyzes sample sessions.\n"
    "`agentsignals doctor` lists the folders of every agent that can be read."
)


def _nothing_in(sources: list[str], summary: Summary) -> NothingFound:
    """Return the error of a run that found no session: what was looked at, and why nothing of it is one."""
    elsewhere = [name for name in sources if not os.path.lexists(name)]
    agents = {name: ", ".join(homes().get(name, ())) for name in elsewhere}  # which loads what paths need not
    named = ", ".join(f"{name} ({agents[name]})" if agents.get(name) else name for name in sources)
    reasons = [printable(line) for line in _unread(summary)]
    return NothingFound(
        f"No session was found in {named or 'the folders of agents'}.", "\n".join([*reasons, FIRST_STEPS])
    )


def store_with_sessions(options: argparse.Namespace) -> Store:
    """Open the store that a verb names, limited to the sessions that its filters select. NothingFound where it holds
    none of them."""
    store = selected_store(options)
    if not store.contexts():
        raise NothingFound(f"The store {store.folder} holds no session.", FIRST_STEPS)
    return store


def selected_store(options: argparse.Namespace) -> Store:
    """Open the store that a verb names, limited to the sessions that its filters select."""
    store = Store(options.store)
    select_sessions(store, options)
    return store


FILTERS = ("since", "until", "project", "model")
"""Options that select sessions, on every verb that lists or sums."""


def select_sessions(store: Store, options: argparse.Namespace) -> None:
    """Limit a store to the sessions that the filters of a verb select."""
    asked = {name: text for name in FILTERS if (text := getattr(options, name, None)) is not None}
    if asked:
        from agentsignals.store.selection import select

        select(store, tell=tell, **asked)


def named_again(options: argparse.Namespace) -> str:
    """Return the options that name the same store and sessions in another command; empty for all of the default one."""
    named = {name: getattr(options, name, None) for name in ("store", *FILTERS)}
    return "".join(f" --{name} {shlex.quote(str(text))}" for name, text in named.items() if text)


def _without_secrets(summary: Summary) -> Summary:
    """Redact a summary: versions, kinds and names of files come from traces. The caller named the store's folder and
    the report's file, so these stay."""
    from agentsignals.redaction import redacted_in

    return msgspec.structs.replace(redacted_in(summary), store=summary.store, report=summary.report)


def _say(summary: Summary, options: argparse.Namespace, store: Store, named: str) -> None:
    """Print what was read and, unless the report is left out, the summary of the store with its first findings."""
    if not options.json:
        print(_summary_text(summary, with_cost=getattr(options, "no_report", False)), flush=True)
    if getattr(options, "no_report", False):
        if options.json:
            print(json_text(_without_secrets(summary)))
        return
    if not (options.json or store.manifest.sessions):
        return
    made, summed = summary_of(store, getattr(options, "jobs", None))
    if options.json:
        plain = msgspec.structs.asdict(_without_secrets(summary))
        print(json_text({**plain, "findings": made, "summary": summed}))
    else:
        print(f"\n{last_lines(store, summed, named)}")


def _summary_text(summary: Summary, with_cost: bool) -> str:
    """What was read, a line a subject; the cost only where no summary of the store follows, which also adds what
    harnesses state."""
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
    cost = f"{cost_bound}${summary.cost_usd:,.2f} over {times(priced, 'session')} with a known price"
    rows: list[tuple[str, Any]] = [
        ("artifacts", f"{summary.artifacts:,} ({formats})"),
        ("files", f"{summary.parsed:,} read now, {summary.unchanged:,} as they were when they were read before"),
        (
            "sessions",
            figure(summary.sessions) + (f", {times(summary.attempts, 'attempt')}" if summary.attempts else ""),
        ),
        ("prompts", figure(summary.prompts)),
        ("tool calls", figure(summary.tool_calls)),
        ("edits", figure(summary.edits)),
        ("tokens", tokens),
        *([("cost", cost)] if with_cost else []),
        (
            "skipped",
            skipped + (f"; {times(summary.other_files, 'file')} without traces" if summary.other_files else ""),
        ),
        ("store", summary.store),
    ]
    # The first and the last version of each format, the files that are not read, and new fields in those that are.
    spans = ((name, list(met), sum(met.values())) for name, met in summary.versions.items())
    met_by = (
        f"{name} {met[0]}{f' to {met[-1]}' if len(met) > 1 else ''} ({times(n, 'file')})" for name, met, n in spans
    )
    rows.append(("versions", printable(", ".join(met_by))))
    rows += [("not read", line) for line in _unread(summary)]
    rows += [("new fields", f"{drift_line(u)}: {NEW_FIELDS}") for u in summary.unknown_fields[:_UNREAD_LINES]]
    copies = [f"copies or earlier states of other files: {summary.repeated:,}"] if summary.repeated else []
    copies += [f"further repeated records: {summary.repeated_records:,}"] if summary.repeated_records else []
    silent = ", ".join(f"{n:,} {name}" for name, n in sorted(summary.silent_sessions.items()))
    in_mid_stream = (
        f"{times(summary.lower_bounds, 'session')} with output logged in mid-stream; the visible text alone comes to"
        f" about {summary.visible_output_tokens:,} tokens ({VISIBLE_ERROR})"
    )
    deleted = (
        f"source files that no longer exist: {summary.deleted_files:,}. The store keeps their sessions"
        f" ({summary.deleted_sessions:,}); agentsignals forget --deleted removes them"
    )
    excluded = f"{times(summary.excluded_sources, 'source')}, {times(summary.excluded_sessions, 'session')}"
    lost = summary.lost_sessions
    named = f"{', '.join(lost[:5])}{' …' * (len(lost) > 5)}"
    held = f"{times(summary.stored_sessions, 'session')} in the store, of all sources"
    rows += [
        ("silent", silent and f"{silent}: sessions without a prompt, a call or a token, perhaps of another agent"),
        ("at least", in_mid_stream if summary.lower_bounds else ""),
        ("no price", summary.partly_priced and f"part of what {times(summary.partly_priced, 'session')} used: their"
         " cost is a lower bound (column `unpriced`)"),
        ("held", held if summary.stored_sessions != summary.sessions else ""),
        ("deleted", deleted if summary.deleted_files else ""),
        ("repeated", copies and f"{'; '.join(copies)}: each counts once"),
        ("excluded", excluded if summary.excluded_sessions or summary.excluded_sources else ""),
        ("restored", summary.restored_sessions
         and f"{times(summary.restored_sessions, 'session')} of damaged parts were read again"),
        ("lost", lost and f"{times(len(lost), 'session')} whose sources are gone: {named}"),
        ("report", summary.report),
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
        if summary.skipped:
            lines += [f"{n:,} {skip_advice().get(reason, reason)}" for reason, n in sorted(summary.skipped.items())]
        elif summary.formats:
            lines.append(f"files about sessions that are not here: {', '.join(sorted(summary.formats))}")
        elif summary.other_files:
            n = summary.other_files
            lines.append(f"{times(n, 'file')}, none of them JSON or an archive of traces")
        else:
            lines.append("no file")
    return lines


def _embedder(options: argparse.Namespace) -> str | None:
    from agentsignals.words.vectors import redacting

    return redacting(options.embedder) if options.redact else options.embedder


def run_measure(options: argparse.Namespace) -> int:
    from agentsignals.ingest import pipeline

    wait = {} if options.wait is None else {"wait_s": options.wait}
    with Bar(options.quiet) as bar:
        done = pipeline.measure(options.store, bar, embedder=_embedder(options), every=options.all, tell=tell, **wait)
    sessions, values, signals = (f"{done[name]:,} {name}" for name in ("sessions", "values", "signals"))
    text = f"{sessions} recomputed: {values} of {signals} are new or changed"
    print(json_text(done) if options.json else text)
    return 0


def run_demo(options: argparse.Namespace) -> int:
    from agentsignals.cli import demo_corpus
    from agentsignals.ingest import pipeline
    from agentsignals.ui import report

    folder = Path(options.folder)
    sources = demo_corpus.make_corpus(folder / "corpus")
    place = options.store or folder / "store"
    with Reading(options.quiet) as bar:
        summary, store = pipeline.analyze_into([str(sources)], place, progress=bar, so_far=bar.heard)
    summary.report = str(report.write(store, folder / "report.html").resolve())
    _say(summary, options, store, f" --store {shlex.quote(str(place))}")
    return 0


# `agentsignals` alone: reads what the agents on this machine keep, and says what stands out. Nothing leaves it.


def run_start(options: argparse.Namespace) -> int:
    """Reads this machine into the store, and prints its findings and what to type next. Where no agent's folder is
    there, those of what the store holds; NothingFound where it holds nothing either."""
    from agentsignals.ingest import pipeline
    from agentsignals.sources.local import found_homes

    there = found_homes()
    summary = None
    if there:
        with Reading(options.quiet or not sys.stderr.isatty()) as bar:
            summary = pipeline.analyze(sorted(there), options.store, progress=bar, so_far=bar.heard)
    store = Store(options.store) if (resolve_folder(options.store) / INDEX_FILE).exists() else None
    if store is None or not store.manifest.sessions:
        looked_for = f"Looked for the folders of {len(homes())} agents: {', '.join(homes())}."
        raise NothingFound("No session was found on this machine.", f"{looked_for}\n{FIRST_STEPS}")
    if not options.json:
        read = (
            f"read {', '.join(sorted(there))}: {times(summary.sessions, 'session')}; store {store.folder}"
            if summary
            else f"no agent's logs are on this machine; these sessions were read before, into {store.folder}"
        )
        print(printable(read), flush=True)
    made, summed = summary_of(store)
    if options.json:
        of_run = None if summary is None else _without_secrets(summary)
        held = {"agents": sorted(there), "store": str(store.folder), "read": of_run, "findings": made}
        print(json_text({**held, "summary": summed}))
        return 0
    print(f"\n{last_lines(store, summed, named_again(options))}")
    return 0


# The end of an analysis: the first findings, what was paid, what to type next.


def findings_of(store: Store, context: str | None = None, jobs: int | None = None) -> Findings:
    """Return the findings of a context, the main one if none is named. Where they are cached, or a few files changed
    since, nothing that computes is loaded. `jobs`: with more than one, a background process computes half."""
    from agentsignals.questions.ranking import decode_findings

    context = context or main_context(store.contexts())
    made = decode_findings(sidecars.read_cache(store, context))
    if made is not None:
        return made
    before, changed = sidecars.recent_cache(store, context) or (None, 0)
    made = decode_findings(before)
    if made is not None:
        return replace(made, changed_files=changed)
    from agentsignals.ingest.engine.local import in_background
    from agentsignals.ingest.pipeline import default_jobs
    from agentsignals.questions import findings

    return findings.findings(store, context, beside=in_background if (jobs or default_jobs()) > 1 else None)


def summary_of(store: Store, jobs: int | None = None) -> tuple[Findings, StoreSummary]:
    """Return the findings of the store's main context, and the summary of all."""
    from agentsignals.questions.ranking import summary

    main = findings_of(store, None, jobs)
    others = [findings_of(store, other.context, jobs) for other in main.elsewhere]
    return main, summary([main, *others])


def elsewhere_lines(made: Findings) -> list[str]:
    """Return a line for each other context of the store, with the command that asks of it."""
    return [
        f"not in these findings: {times(other.sessions, *_OTHERS[other.context])}: {other.command}"
        for other in made.elsewhere
    ]


_OTHERS = {"product": ("session of people", "sessions of people"), "eval": ("eval attempt",)}
_CONTEXTS = {"product": "People's sessions", "eval": "Eval runs"}
MOST_RESOLVED = 6
"""Lines of candidates at the end of an analysis."""


def last_lines(store: Store, made: StoreSummary, named: str = "") -> str:
    """The summary and the next commands. `named`: the options that name the store and the sessions."""
    from agentsignals.questions.ranking import head_text, resolved_text

    lines: list[str] = []
    for part in made.contexts:
        lines += ["" for _ in lines[:1]]
        name = f"{_CONTEXTS[part.context]}: " if len(made.contexts) > 1 else ""
        lines += [f"{name}{head_text(part)}", *resolved_text(part.resolved, MOST_RESOLVED)]
        for at, finding in enumerate(part.findings):
            told = " · ".join(filter(None, (finding.told_amount, finding.do or finding.again)))
            lines += [f"{at + 1}. {finding.sentence}", f"   {told}"]
        if not part.findings and not part.resolved:
            lines.append(f"No findings: {part.no_findings}.")
        if part.changed_files:
            files = f"{part.changed_files:,} of {times(len(store.manifest.files), 'file')}"
            lines.append(f"Computed before {files} changed; `{part.command}` recomputes it.")
    return "\n".join([*(named_in(printable(line), named) for line in lines), "", *next_lines(made, named)])


def next_lines(made: StoreSummary, named: str) -> list[str]:
    """Return the commands to type next, a line each. `serve` shows all sessions of a store."""
    asked = [part.command for part in made.contexts] or ["agentsignals findings"]
    for part in made.contexts:
        if part.context == "eval":  # where no two candidates are recorded, the group says how to tell them apart
            asked.append(next((group.command for group in part.resolved if group.command), "agentsignals evals"))
    store = re.match(r" --store (?:'[^']*'|\S)+|", named)
    commands = [f"{command}{named}" for command in (*asked, "agentsignals report -o report.html")]
    commands.append(f"agentsignals serve --open{store[0] if store else ''}")
    return [f"{'' if n else 'next:':6}{command}" for n, command in enumerate(commands)]
