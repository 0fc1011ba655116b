"""Verbs about repositories: `attribute`, `collect`, `scan`, `discover`, `receipt`, `rules`, `witness`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from agentsignals.cli.output import Bar, figure, json_text, printable, table
from agentsignals.cli.printing import Printed
from agentsignals.errors import UsageError
from agentsignals.ingest import collection as several
from agentsignals.ingest.collection import (
    Collection,
    Filters,
    RepositoryResults,
    attribute_repository,
    collect,
    import_sarif,
    repository_receipt,
    repository_rules,
    scan_repositories,
    scan_repository,
    witness_repository,
)
from agentsignals.ingest.repository_addresses import discover, named_repositories
from agentsignals.questions.written_lines import Rate
from agentsignals.redaction import without_keys_in
from agentsignals.repositories.attribute import Attribution
from agentsignals.repositories.commit_figures import Share
from agentsignals.repositories.receipt import CheckRun, Place, Receipt
from agentsignals.repositories.rule_report import RuleRow, RulesReport
from agentsignals.repositories.sarif import Imported
from agentsignals.repositories.scan import OfLanguage, Scan
from agentsignals.repositories.scanners import scanner
from agentsignals.repositories.witness_comparison import Compared, Witnessed
from agentsignals.sources import hub, read_exclusions
from agentsignals.sources.hub import DataSet


def shown(results: RepositoryResults[Any], text: Callable[[Any], str], *, as_json: bool) -> int:
    """Prints what came of each repository; the exit code is 1 where none was done."""

    if as_json:
        print(json_text(results))
    else:
        failures = [f"failed      {printable(f.repo)}: {printable(f.reason)}" for f in results.failed]
        print("\n\n".join([*map(text, results.repositories), *(["\n".join(failures)] if failures else [])]))
    return 0 if results.repositories else 1


# `attribute`: whose lines the commits of a repository added, and what became of them.


def run_attribute(options: argparse.Namespace) -> int:
    how = {"afresh": options.afresh, "jobs": options.jobs, "engine": options.engine}
    if len(options.repositories) == 1:
        result = attribute_repository(options.repositories[0], options.store, **how)
        print(json_text(result) if options.json else _text(result))
        return 0
    bar = Bar(options.quiet)
    try:
        _, results = several.attribute_repositories(options.repositories, options.store, progress=bar, **how)
    finally:
        bar.close()
    return shown(results, _text, as_json=options.json)


def _text(result: Attribution) -> str:
    record, survived = result.agreement_with_record, result.survival
    missing = f", {result.sessions_missing:,} missing" if result.sessions_missing else ""
    linked = f"{result.checkpoints_linked:,} of {result.checkpoints:,} linked to commits"
    rows = [
        ("repository", printable(result.repo) + (" (unchanged since the last time)" if result.unchanged else "")),
        ("checkpoints", linked + _reasons(result.unlinked)),
        ("commits", f"{result.commits:,} attributed of {result.commits_seen:,}"),
        ("sessions", f"{result.sessions:,}{missing}"),
        ("agent's", _bounds(result.share)),
        ("estimate", _estimate(result)),
        ("lines", ", ".join(f"{n:,} {tag}" for tag, n in sorted(result.lines.items(), key=lambda p: -p[1])) or "none"),
        ("modes", "; ".join(f"{basis}: {_counts(modes)}" for basis, modes in result.modes.items())),
        ("record", f"mean difference {_number(record.mae, ' points')} on {record.n:,} comparable commits,"
                   f" {record.within_interval:,} of them within the replay's bounds"
                   f" ({_number(record.unknown_mae, '')} on {record.unknown_n:,} that have unknown lines)"),
        ("", f"on all {record.all_rows:,} with a record {_number(record.all_mae, ' points')}; by the recorded lines, of"
             f" what was committed, {_number(record.lines_mae, ' points')} on {record.lines_n:,}"),
        *(("" if n else "apart by", f"{count:,} {cause}") for n, (cause, count) in enumerate(record.causes.items())),
        ("written", f"{figure(survived.eventual.produced)} lines, {_share(survived.eventual.efficiency)} reached a"
                    f" commit (Eq 2), {_share(survived.eventual.survival)} of those left standing (Eq 3)"),
        ("alive today", f"{_share(survived.alive_at_head.agent_rate)} of agents' committed lines,"
                        f" {_share(survived.alive_at_head.other_rate)} of others"),
    ]  # fmt: skip
    return "\n".join(f"{name:<12}{text}" for name, text in rows)


def _reasons(unlinked: dict[str, int]) -> str:
    return f" ({', '.join(f'{n:,} {reason}' for reason, n in unlinked.items())})" if unlinked else ""


def _counts(modes: dict[str, int]) -> str:
    return ", ".join(f"{n:,} {mode}" for mode, n in modes.items()) or "none"


def _bounds(share: Share) -> str:
    """The agents' share of the lines that somebody wrote, as bounds: never one number that leaves out the unknown."""
    if share.low is None or share.high is None:
        return "no line has an author"
    unknown = f"{100 * share.unknown / share.n:.1f} % unknown"
    return f"{100 * share.low:.1f} to {100 * share.high:.1f} % of {share.n:,} authored lines; {unknown}"


def _estimate(result: Attribution) -> str:
    share, record = result.share, result.agreement_with_record
    if share.likely is None:
        return "none: no line is seen to be an agent's or a person's"
    if not share.unknown:
        return f"{100 * share.likely:.1f} %: no line is unknown"
    error = (
        f"{record.unknown_mae:.1f} points off the record on {record.unknown_n:,} such commits here"
        if record.unknown_mae is not None
        else "no comparable commit here tells how far off it is"
    )
    return f"{100 * share.likely:.1f} % with an unknown line counted for half; {error}"


def _number(value: float | None, unit: str) -> str:
    return "unknown" if value is None else f"{value:.1f}{unit}"


def _share(value: float | None) -> str:
    return "an unknown share" if value is None else f"{100 * value:.1f} %"


# `collect`: repositories with checkpoints, brought into the store and kept up to date.


def run_collect(options: argparse.Namespace) -> int:
    if options.list:
        listed = named_repositories(options.repositories)
        print(json_text(listed) if options.json else "\n".join(printable(c.place) for c in listed))
        return 0
    filters = Filters(
        not options.no_forks,
        options.min_checkpoints,
        options.min_commits,
        options.min_linked,
        not options.no_machine_prompts,
    )
    bar = Bar(options.quiet)
    try:
        collection = collect(options.repositories, options.store, filters, jobs=options.jobs, progress=bar)
    finally:
        bar.close()
    print(json_text(collection) if options.json else _text_collect(collection))
    return (
        1
        if collection.repositories and all(repository.status == "failed" for repository in collection.repositories)
        else 0
    )


def _text_collect(collection: Collection) -> str:
    names = ("repository", "status", "checkpoints", "new", "commits", "new", "linked", "sessions", "why")
    rows = [
        (o.repo, o.status, o.checkpoints, o.new_checkpoints, o.commits, o.new_commits, o.linked, o.sessions, o.reason)
        for o in collection.repositories
    ]
    lines = [table(names, rows), ""]
    lines.append(", ".join(f"{n:,} {status}" for status, n in collection.by_status.items()) or "no repository")
    if collection.by_status.keys() == {"unchanged"}:
        lines.append("nothing is new")
    if collection.machine_sessions:
        n_sessions = collection.sessions + collection.sessions_left_out
        lines.append(
            f"{collection.machine_sessions:,} of {n_sessions:,} sessions were begun by a program"
            f" (label machine_prompts), {collection.sessions_left_out:,} of them left out"
        )
    if collection.filtered:
        lines.append("left out: " + ", ".join(f"{n:,} {reason}" for reason, n in collection.filtered.items()))
    return "\n".join(lines)


# `scan`: which weaknesses came with the commits of a repository, and with whose lines.

_SHOWN = 12


def run_scan(options: argparse.Namespace) -> int:
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
        return shown(results, _text_scan, as_json=options.json)
    print(json_text(summary) if options.json else _text_scan(summary))
    return 0


def _text_scan(summary: Scan) -> str:
    new = "nothing new to scan" if summary.unchanged else f"{summary.scanned:,} scanned now"
    left_out = f"; {summary.commits_left_out:,} commits left out: files of theirs are missing"
    rows = [
        ("repository", printable(summary.repo)),
        ("scanner", f"{summary.scanner} {printable(summary.scanner_version)}"),
        ("scanned", f"{summary.files:,} files as {summary.commits:,} linked commits changed them; {new}"),
        ("skipped", _counts_scan(summary.skipped) + (left_out if summary.commits_left_out else "")),
        ("findings", f"{summary.introduced:,} introduced, {summary.fixed:,} fixed, {summary.moved:,} moved"),
        ("on lines of", _counts_scan(summary.owners) + " (by the replay)"),
        ("rules", _counts_scan(summary.rules)),
        ("weaknesses", _counts_scan(summary.cwes)),
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
    rows = [
        ("repository", printable(report.repo)),
        ("findings", f"{report.findings:,} present ({_counts_scan(report.scanners)})"),
        ("on lines of", _counts_scan(report.owners) + " (by the replay)"),
        ("skipped", _counts_scan(report.skipped)),
    ]
    return "\n".join(f"{name:<12}{text}" for name, text in rows)


def _counts_scan(counted: dict[str, int]) -> str:
    counts = [f"{n:,} {printable(name)}" for name, n in counted.items()]
    more = f", {len(counts) - _SHOWN} more" if len(counts) > _SHOWN else ""
    return (", ".join(counts[:_SHOWN]) or "none") + more


# `discover`: where traces could be read from, before anything of them is fetched.
#
# `hub`: data sets on the Hugging Face Hub. `repos`: repositories with checkpoints, among those that are named.


def run_discover(options: argparse.Namespace) -> int:
    if options.place == "repos":
        return _repositories(options)
    if options.names:
        raise UsageError("Only repositories are looked for by name.", "Search the Hub with --search or --owner.")
    if options.limit is not None and options.limit < 0:
        raise UsageError(f"--limit {options.limit} came; it counts data sets.", "Give 0 or more.")
    if options.untagged and not (options.search or options.owner or options.tag):
        raise UsageError("--untagged alone would list the whole Hub.", "Add --search, --owner or --tag.")
    left_out = read_exclusions(options.exclude) if options.exclude else frozenset()
    tags = [*([] if options.untagged else [hub.TRACES]), *options.tag]
    listed = hub.with_agents_and_duplicates(hub.search_datasets(tags, options.search, options.owner))
    wanted = [d for d in listed if _is_wanted(d, options)]
    kept = [d for d in wanted if d.name not in left_out][: options.limit]
    if not options.quiet and len(wanted) > len(kept) and left_out:
        print(f"discover: {sum(d.name in left_out for d in wanted):,} left out by {options.exclude}", file=sys.stderr)
    if options.json:
        print(json_text(kept))
        return 0
    rows = [
        (
            d.name,
            hub.count_traces(d),
            d.bytes,
            d.licence or "none stated",
            ", ".join(d.harnesses),
            d.downloads,
            _remark(d),
        )
        for d in kept
    ]
    print(table(("data set", "trace files", "bytes", "licence", "harnesses", "downloads", "remark"), rows, 70))
    again = sum(d.duplicate_of is not None for d in kept)
    unlicensed = sum(d.licence is None for d in kept)
    print(f"{len(kept):,} data sets, {again:,} of them hold the files of another; {unlicensed:,} state no licence")
    if kept:
        print(f"read one with: agentsignals analyze hub:{printable(kept[0].name)}")
    return 0


def _repositories(options: argparse.Namespace) -> int:
    if not options.names:
        raise UsageError("No repository is named.", "Name a folder of clones, a list, or a saved search result.")
    data_sets = discover(options.names)
    if options.json:
        print(json_text(data_sets))
        return 0
    names = ("repository", "checkpoints in", "commits", "naming one", "remark")
    rows = [
        (
            d.place,
            ", ".join(f"{n:,} {kind} refs" for kind, n in d.layouts.items()),
            d.commits,
            d.naming,
            d.trouble or ("fork" if d.is_fork else None if d.is_here else "not fetched"),
        )
        for d in data_sets
    ]
    print(table(names, rows, 70))
    holding = [d for d in data_sets if d.layouts or not d.is_here]
    print(f"{len(data_sets):,} repositories, {sum(bool(d.layouts) for d in data_sets):,} of them hold checkpoints")
    if holding:
        print(f"bring them in with: agentsignals collect {' '.join(printable(name) for name in options.names)}")
    return 0


def _is_wanted(data_set: DataSet, options: argparse.Namespace) -> bool:
    if options.license is not None:
        stated = [s.strip().lower() for s in (data_set.licence or "none").split(",")]
        if options.license.lower() not in stated:
            return False
    if options.harness is not None and options.harness.lower() not in data_set.harnesses:
        return False
    return not (options.distinct and data_set.duplicate_of)


def _remark(data_set: DataSet) -> str:
    remarks = [f"files of {data_set.duplicate_of}"] if data_set.duplicate_of else []
    return "; ".join([*remarks, *(["gated"] if data_set.gated else [])])


# `receipt`: what an agent did for a commit, a branch or a pull request, on one page for its review.

_WIDEST = 70


def run_receipt(options: argparse.Namespace) -> int:
    made = without_keys_in(repository_receipt(options.repository, options.revision, options.store, jobs=options.jobs))
    print(json_text(made) if options.json else _page(made, options.markdown))
    return 0


_Table = tuple[str, Sequence[str], list[Sequence[Any]]]


def _page(made: Receipt, as_markdown: bool) -> str:
    named = [f"{sha[:10]} {made.subjects.get(sha, '')}" for sha in made.commits[:5]]
    more = [f"and {len(made.commits) - 5} more commits"] if len(made.commits) > 5 else []
    answer = Printed(markdown=as_markdown, widest=_WIDEST, cut=True)
    answer.lines(["What the transcripts show of:"], "## ")
    answer.lines([*named, *more])
    answer.lines(_says(made))
    for title, names, rows in _tables(made):
        answer.table(names, rows, title)
    return str(answer)


def _says(made: Receipt) -> Iterator[str]:
    o = made.owners
    n = o.agent + o.person + o.unknown
    if not made.sessions:
        yield "No transcript is at hand for these commits: nothing can be said of how they were made."
    if made.attributed < len(made.commits):
        yield f"{len(made.commits) - made.attributed} of {len(made.commits)} commits are linked to no session."
    if n and o.low is not None and o.high is not None:
        yield (
            f"Of {n:,} added lines with an author {o.agent:,} are an agent's, {o.person:,} a person's, {o.unknown:,}"
            f" ({100 * o.unknown / n:.0f} %) nobody knows: the agent's share is between {100 * o.low:.0f} and"
            f" {100 * o.high:.0f} %."
        )
    if o.nobody:
        yield f"{o.nobody:,} more were moved, were there before, or are generated."
    if made.sessions_missing:
        yield f"{len(made.sessions_missing)} sessions had a part whose transcripts are not here."
    if made.sessions:
        yield from _checked(made)
    if made.sessions:
        yield _cost(made)
    if made.weaknesses is None:
        yield "No scan has looked at these commits (`agentsignals scan` reads those of sessions, in its languages)."
    else:
        part = "" if made.commits_scanned == len(made.commits) else f" of {made.commits_scanned} of the commits"
        yield f"A scan{part} found {len(made.weaknesses):,} weaknesses introduced."


def _cost(made: Receipt) -> str:
    n, missing = len(made.sessions), len(made.sessions_missing)
    if made.cost_usd is None:
        return "What the sessions cost is not known: model calls that used tokens have no price."
    whose = (
        "The sessions"
        if made.sessions_priced == n
        else f"{made.sessions_priced} of {n} sessions, the others without a price,"
    )
    least = " at least" if any(s.cost_at_least for s in made.sessions if s.cost_usd is not None) else ""
    shared = sum(s.other_commits > 0 for s in made.sessions)
    rest = f"; {shared} of them also made other commits" if shared else ""
    rest += f"; {missing} whose transcripts are not here cost more" if missing else ""
    return f"{whose} cost{least} {made.cost_usd:,.2f} USD as a whole{rest}."


def _checked(made: Receipt) -> Iterator[str]:
    if made.kinds_not_run:
        words = {"test": "test", "build": "build, linter or type checker"}
        yield "No transcript shows a run of a " + ", nor of a ".join(words[k] for k in made.kinds_not_run) + "."
    stale = [run.name for run in made.checks if run.edits_after]
    if stale:
        yield f"Not run since the last change: {', '.join(stale)}."
    failed = [run.name for run in made.checks if run.result == "failed"]
    if failed:
        yield f"Failed when last run: {', '.join(failed)}."
    if made.not_run:
        yield f"Run by other sessions of this repository, not by these: {', '.join(made.not_run[:8])}."


_RESULTS = {"hidden": "ran; its line does not tell how it ended", "unknown": "ran; the log does not say how it ended"}


def _tables(made: Receipt) -> list[_Table]:
    checks: list[Sequence[Any]] = [
        (
            c.name,
            c.runs,
            (_RESULTS.get(c.result, c.result) + (" (of a part)" if c.is_part else "")),
            _since(c),
            _at(c.place),
        )
        for c in made.checks
    ]
    sessions: list[Sequence[Any]] = [
        (s.session_id, s.agent, s.model or "", s.prompts, s.interrupts, s.refused, s.cost_usd) for s in made.sessions
    ]
    return [
        ("Checks before the commit", ("check", "runs", "the last", "changed since", "session and event"), checks),
        (
            "Failed, and not seen to succeed since",
            ("command", "why", "session and event"),
            [(f.command, f.error_class or "", _at(f.place)) for f in made.failed],
        ),
        ("Lines nobody knows", ("file", "lines"), list(made.owners.files_unknown.items())),
        _files("Committed, and changed by no call", made.committed_not_changed, made.committed_not_changed_n),
        _files("Changed, and not committed", made.changed_not_committed, made.changed_not_committed_n),
        _files("Read, and not changed", made.read_not_changed, made.read_not_changed_n),
        ("Sessions", ("session", "agent", "model", "prompts", "interrupts", "refused calls", "USD"), sessions),
    ]


def _files(title: str, paths: list[str], n: int) -> _Table:
    rest = [(f"and {n - len(paths)} more",)] if n > len(paths) else []
    return title, ("file",), [*((path,) for path in paths), *rest]


def _since(check: CheckRun) -> str:
    if not check.edits_after:
        return "nothing"
    files = ", ".join(check.files_after[:3]) + (", …" if len(check.files_after) > 3 else "")
    return f"{check.edits_after} {'change' if check.edits_after == 1 else 'changes'}: {files}"


def _at(place: Place) -> str:
    return f"{place.session_id[:13]} {place.seq}"


# `rules`: the mechanical rules of instruction files, whether sessions kept them, what their introduction changed.

_LISTED, _OF_ONE, _WIDEST_RULES = 25, 5, 90


def run_rules(options: argparse.Namespace) -> int:
    if options.file and not options.repository:
        raise UsageError(
            "--file is a file of a repository.", "Name the repository, too: `agentsignals rules . --file …`."
        )
    made = without_keys_in(repository_rules(options.repository, options.store, file=options.file, jobs=options.jobs))
    print(json_text(made) if options.json else rules_text(made, as_markdown=options.markdown))
    return 0


_Table_rules = tuple[str, Sequence[str], list[tuple[Any, ...]]]


def rules_text(made: RulesReport, *, as_markdown: bool = False) -> str:
    """The report as tables and sentences."""

    answer = Printed(markdown=as_markdown, widest=_WIDEST_RULES, cut=True)
    answer.lines(_head(made), "")
    for title, names, rows in _tables_rules(made):
        answer.table(names, rows, title)
    answer.lines([*_meanwhile(made), *made.cautions])
    return str(answer)


def _head(made: RulesReport) -> Iterator[str]:
    where = made.repo or "What the store's traces show"
    n, others = len(made.rules), sum(file["not_mechanical"] for file in made.files.values())
    yield f"{where}: {made.sessions:,} sessions, {len(made.files):,} instruction files, {n:,} mechanical rules."
    if others:
        yield f"{others:,} other sentences ask what commands, edits and commits can't show; they are not judged."
    if not made.files:
        yield (
            "No instruction file is in its history, or in a trace."
            if made.repo
            else ("No trace holds the text of an instruction file: name a repository.")
        )


def _tables_rules(made: RulesReport) -> Iterator[_Table_rules]:
    yield (
        "rules",
        ("rule", "says", "in force", "always kept", "broken", "no occasion", "cannot tell", "times kept",
         "times broken"),
        [(_name(r), r.text, r.exposed, r.kept, r.broken, r.no_occasion, sum(r.cannot_tell.values()), r.occasions_kept,
          r.occasions_broken) for r in made.rules[:_LISTED]],
    )  # fmt: skip
    broken = [
        (_name(row), session.session_id, mark.seq, mark.line, f"{mark.because}: {mark.text}")
        for row in made.rules
        for session in [s for s in row.sessions if s.exposure == "exposed" and s.verdict == "broken"][:_OF_ONE]
        for mark in session.marks[:1]
    ]
    yield "broken, the first time in a session", ("rule", "session", "event", "line", "what"), broken[:_LISTED]
    yield (
        "cannot tell, and not in force",
        ("rule", "why", "sessions"),
        [(_name(r), why, n) for r in made.rules for why, n in (*r.cannot_tell.items(), *r.not_exposed.items())][
            :_LISTED
        ],
    )
    yield (
        "kept before and after a rule came (shares of its occasions, a session a value)",
        ("rule", "since", "before", "after", "change beside the trend", "said"),
        [_effect(r) for r in made.rules[:_LISTED]],
    )


def _effect(row: RuleRow) -> tuple[Any, ...]:
    change, effect = row.effect.change, row.effect
    judged = f"{effect.verdict.replace('_', ' ')}: {effect.because}"
    if change is None or change.level is None or change.level_interval is None:
        n = (f"n = {change.n_before}", f"n = {change.n_after}") if change is not None else ("", "")
        return _name(row), (row.since or "")[:10], *n, "", judged
    low, high = change.level_interval
    return (
        _name(row), (row.since or "")[:10], f"{change.before:.0%} (n = {change.n_before})",
        f"{change.after:.0%} (n = {change.n_after})", f"{change.level:+.0%} [{low:+.0%}, {high:+.0%}]", judged,
    )  # fmt: skip


def _meanwhile(made: RulesReport) -> Iterator[str]:
    for row in made.rules:
        change = row.effect.change
        if row.effect.meanwhile and change is not None and change.level is not None:
            yield f"{_name(row)}: meanwhile {'; '.join(row.effect.meanwhile)}"


def _name(row: RuleRow) -> str:
    return f"{row.place}: {row.file}:{row.line}" if row.place is not None else f"{row.file}:{row.line}"


# `witness`: what others recorded of a repository's lines, beside our replay.

_LISTED_WITNESS = 3
"""Examples of a reason."""


def run_witness(options: argparse.Namespace) -> int:
    result = without_keys_in(witness_repository(options.repository, options.store, jobs=options.jobs))
    print(json_text(result) if options.json else _report(result, options.markdown))
    return 0


def _report(result: Witnessed, as_markdown: bool) -> str:
    answer = Printed(markdown=as_markdown)
    answer.lines([f"{result.repo}: {result.commits:,} commits, {result.commits_replayed:,} of them replayed"], "")
    if not result.witnesses:
        answer.lines(["Nobody else left a record: no notes of git-ai, no Agent Trace file."], "")
    for compared in result.witnesses:
        answer.lines([f"{compared.witness}: {compared.describes}"], "## ")
        answer.lines(_sentences(compared))
        for title, names, rows in _tables_witness(compared):
            answer.table(names, rows, title)
    return str(answer)


def _sentences(c: Compared) -> Iterator[str]:
    versions = ", ".join(f"{version} {n:,}" for version, n in list(c.versions.items())[:5])
    yield (
        f"{c.records:,} records; they speak of {c.commits:,} commits ({versions}): no branch leads to"
        f" {c.commits_gone:,} of these, {c.commits_carried:,} were carried over from another"
    )
    yield "lines stated: " + (", ".join(f"{owner} {n:,}" for owner, n in c.stated.items()) or "none")
    if c.problems:
        yield "not read or not placed: " + ", ".join(f"{n:,} {reason}" for reason, n in c.problems.items())
    if c.share is None:
        yield (
            f"Compared: nothing. The two speak of {c.commits_both:,} commits in common, and of no line of them both say"
            " whose it is."
        )
    else:
        interval = (
            f", {100 * c.low:.1f} to {100 * c.high:.1f} %"
            if c.low is not None and c.high is not None
            else (", no interval from so few commits")
        )
        yield (
            f"{c.commits_both:,} commits in common with {c.lines:,} lines; of {c.compared:,} both say whose they are,"
            f" and agree on {100 * c.share:.1f} %{interval}. Where one says nothing nothing is compared: see the tables"
        )
    if c.sessions_same or c.sessions_other:
        yield f"of the agents' lines {c.sessions_same:,} are given to the same session, {c.sessions_other:,} to another"
    if c.recovered:
        agree = f"; the replay says the same of {c.recovered_same:,}, another owner of {c.recovered_other:,}"
        yield (
            f"{c.recovered:,} lines of {c.recovered_commits:,} commits without a record have an owner again, by their"
            f" text in commits that were rewritten{agree}"
        )
    if c.commits_not_here:
        yield f"{c.commits_not_here:,} commits with a record are not in this clone: nothing of them comes back"


def _tables_witness(c: Compared) -> list[_Table]:
    columns = list(dict.fromkeys(owner for counts in c.owners.values() for owner in counts))
    owners: list[Sequence[Any]] = [(ours, *(n.get(o, 0) for o in columns)) for ours, n in c.owners.items()]
    reasons: list[Sequence[Any]] = []
    for reason, n in c.reasons.items():
        lines = [line for line in c.examples if line.reason == reason][:_LISTED_WITNESS]
        reasons.append((reason, n, "; ".join(f"{e.commit_sha[:8]} {e.path}:{e.line}" for e in lines)))
    return [
        ("lines by owner: the replay's down, the witness's across", ("", *columns), owners),
        ("why they differ", ("reason", "lines", "for example"), reasons),
    ]
