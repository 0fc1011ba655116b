"""`scan`: which weaknesses came with the commits of a repository, and with whose lines."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from agentsignals.cli.over_repositories import shown, with_engine
from agentsignals.cli.verb import Verb
from agentsignals.errors import UsageError

if TYPE_CHECKING:
    from agentsignals.questions.written_lines import Rate
    from agentsignals.repositories.sarif import Imported
    from agentsignals.repositories.scan import OfLanguage, Scan

_SHOWN = 12


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("repositories", metavar="REPO", nargs="+", help="a repository's folder or address")
    parser.add_argument(
        "--scanner", metavar="NAME", help="rules (ours, always there), bandit, ruff or semgrep, when installed"
    )
    parser.add_argument("--config", metavar="FILE", help="a file or folder of rules, for semgrep")
    parser.add_argument("--sarif", metavar="FILE", help="take in a scanner's report instead of scanning")
    parser.add_argument("--afresh", action="store_true", help="scan also files that were scanned before")
    with_engine(parser)


def run(options: argparse.Namespace) -> int:
    from agentsignals.cli.output import Bar, json_text
    from agentsignals.ingest.collection import import_sarif, scan_repositories, scan_repository
    from agentsignals.repositories.scanners import scanner

    if options.sarif is not None:
        if options.scanner or options.config:
            raise UsageError("A scanner and a scanner's report came.", "Give --scanner or --sarif.")
        if len(options.repositories) > 1:
            raise UsageError("A scanner's report is of one repository.", "Name one with --sarif.")
        taken = import_sarif(options.repositories[0], Path(options.sarif), options.store, jobs=options.jobs)
        print(json_text(taken) if options.json else _text_of_report(taken))
        return 0
    chosen = scanner(options.scanner or "rules", options.config)
    bar = Bar(options.quiet)
    how = {"afresh": options.afresh, "jobs": options.jobs, "engine": options.engine, "progress": bar}
    try:
        if len(options.repositories) > 1:
            results = scan_repositories(options.repositories, chosen, options.store, **how)
        else:
            summary = scan_repository(options.repositories[0], chosen, options.store, **how)
    finally:
        bar.close()
    if len(options.repositories) > 1:
        return shown(results, _text, as_json=options.json)
    print(json_text(summary) if options.json else _text(summary))
    return 0


def _text(summary: Scan) -> str:
    from agentsignals.cli.output import printable, table

    new = "nothing new to scan" if summary.unchanged else f"{summary.scanned:,} scanned now"
    left_out = f"; {summary.commits_left_out:,} commits left out: files of theirs are missing"
    rows = [
        ("repository", printable(summary.repo)),
        ("scanner", f"{summary.scanner} {printable(summary.scanner_version)}"),
        ("scanned", f"{summary.files:,} files as {summary.commits:,} linked commits changed them; {new}"),
        ("skipped", _counts(summary.skipped) + (left_out if summary.commits_left_out else "")),
        ("findings", f"{summary.introduced:,} introduced, {summary.fixed:,} fixed, {summary.moved:,} moved"),
        ("on lines of", _counts(summary.owners) + " (by the replay)"),
        ("rules", _counts(summary.rules)),
        ("weaknesses", _counts(summary.cwes)),
    ]
    heads = ("attribution", "by", "group", "files", "lines", "introduced", "per 1 000", "95 % interval", "fixed")
    shown = [_line(rate) for rate in summary.rates]
    notes = "Findings of a static scanner are not confirmed weaknesses. Rates of different rule sets don't compare."
    planted = ("language", "files", "introduced", "recall on planted code", "precision on planted code")
    languages = table(planted, [_language_line(entry) for entry in summary.languages])
    head = "\n".join(f"{n:<12}{text}" for n, text in rows)
    return f"{head}\n\n{languages}\n{summary.recall_caveat}\n\n{table(heads, shown)}\n{notes}"


def _language_line(entry: OfLanguage) -> tuple[object, ...]:
    measured = ("unknown", "unknown") if entry.planted is None else (entry.planted.recall, entry.planted.precision)
    return (entry.language, entry.files, entry.introduced, *measured)


def _line(rate: Rate) -> tuple[object, ...]:
    interval = "" if rate.introduced_low is None else f"{rate.introduced_low:.2f} to {rate.introduced_high:.2f}"
    per = "" if rate.introduced_rate is None else f"{rate.introduced_rate:.2f}"
    return (rate.attribution, rate.by, rate.group, rate.files, rate.lines, rate.introduced, per, interval, rate.fixed)


def _text_of_report(report: Imported) -> str:
    from agentsignals.cli.output import printable

    rows = [
        ("repository", printable(report.repo)),
        ("findings", f"{report.findings:,} present ({_counts(report.scanners)})"),
        ("on lines of", _counts(report.owners) + " (by the replay)"),
        ("skipped", _counts(report.skipped)),
    ]
    return "\n".join(f"{name:<12}{text}" for name, text in rows)


def _counts(counted: dict[str, int]) -> str:
    from agentsignals.cli.output import printable

    counts = [f"{n:,} {printable(name)}" for name, n in counted.items()]
    more = f", {len(counts) - _SHOWN} more" if len(counts) > _SHOWN else ""
    return (", ".join(counts[:_SHOWN]) or "none") + more


VERB = Verb("scan", "which weaknesses came with a repository's commits, and with whose lines", "scan .", arguments, run)
