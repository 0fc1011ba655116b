"""Verbs about repositories: `attribute`, `collect`, `scan`, `discover`, `receipt`, `rules`, `witness`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agentsignals.cli.output import Bar, Printed, fields, figure, json_text, print_result, printable, table
from agentsignals.errors import UsageError
from agentsignals.ingest import collection as ingest
from agentsignals.ingest.collection import Filters, RepositoryResults, discover, named_repositories
from agentsignals.questions.question import interval, times
from agentsignals.redaction import redacted_in
from agentsignals.repositories.attribute import Attribution
from agentsignals.repositories.receipt import Place, Receipt
from agentsignals.repositories.rule_report import RuleRow, RulesReport
from agentsignals.repositories.scan import Scan
from agentsignals.repositories.scanners import scanner
from agentsignals.repositories.witness_comparison import Compared, Witnessed
from agentsignals.sources import hub, read_exclusions


def _shown(results: RepositoryResults[Any], text: Callable[[Any], str], *, as_json: bool) -> int:
    """Print the result of each repository; the exit code is 1 where none was done."""
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
        result = ingest.attribute_repository(options.repositories[0], options.store, **how)
        return print_result(options, result, _attribution)
    with Bar(options.quiet) as bar:
        _, results = ingest.attribute_repositories(options.repositories, options.store, progress=bar, **how)
    return _shown(results, _attribution, as_json=options.json)


def _attribution(result: Attribution) -> str:
    """Show the agents' share of a repository's lines as bounds, with survival and agreement with other records."""
    share, record, survived = result.share, result.agreement_with_record, result.survival

    def points(value: float | None, unit: str = " points") -> str:
        return "unknown" if value is None else f"{value:.1f}{unit}"

    def part(value: float | None) -> str:
        return "an unknown share" if value is None else f"{100 * value:.1f} %"

    # The agents' share of the lines that somebody wrote, as bounds: never one number that leaves out the unknown.
    bounds = "no line has an author"
    if share.low is not None and share.high is not None:
        unknown = f"{100 * share.unknown / share.n:.1f} % unknown"
        bounds = f"{100 * share.low:.1f} to {100 * share.high:.1f} % of {share.n:,} authored lines; {unknown}"
    if share.likely is None:
        estimate = "none: no line is attributed to an agent or a person"
    elif not share.unknown:
        estimate = f"{100 * share.likely:.1f} %: no line is unknown"
    else:
        error = "no comparable commit measures its error"
        if record.unknown_mae is not None:
            error = f"{record.unknown_mae:.1f} points off the record on {record.unknown_n:,} such commits here"
        estimate = f"{100 * share.likely:.1f} % with unknown lines counted as half; {error}"
    missing = f", {result.sessions_missing:,} missing" if result.sessions_missing else ""
    reasons = ", ".join(f"{n:,} {reason}" for reason, n in result.unlinked.items())
    lines = ", ".join(f"{n:,} {tag}" for tag, n in sorted(result.lines.items(), key=lambda pair: -pair[1]))
    modes = [
        f"{basis}: {', '.join(f'{n:,} {mode}' for mode, n in counts.items()) or 'none'}"
        for basis, counts in result.modes.items()
    ]
    eventual, alive = survived.eventual, survived.alive_at_head
    rows = [
        ("repository", result.repo + (" (unchanged since the last run)" if result.unchanged else "")),
        ("checkpoints", f"{result.checkpoints_linked:,} of {result.checkpoints:,} linked to commits"
                        f"{f' ({reasons})' if reasons else ''}"),
        ("commits", f"{result.commits:,} attributed of {result.commits_seen:,}"),
        ("sessions", f"{result.sessions:,}{missing}"),
        ("agent's", bounds),
        ("estimate", estimate),
        ("lines", lines or "none"),
        ("modes", "; ".join(modes)),
        ("record", f"mean difference {points(record.mae)} on {record.n:,} comparable commits,"
                   f" {record.within_interval:,} of them within the replay's bounds"
                   f" ({points(record.unknown_mae, '')} on {record.unknown_n:,} that have unknown lines)"),
        ("", f"on all {record.all_rows:,} with a record {points(record.all_mae)}; by the recorded lines, of"
             f" what was committed, {points(record.lines_mae)} on {record.lines_n:,}"),
        *(("" if n else "apart by", f"{count:,} {cause}") for n, (cause, count) in enumerate(record.causes.items())),
        ("written", f"{figure(eventual.produced)} lines, {part(eventual.efficiency)} reached a commit (Eq 2),"
                    f" {part(eventual.survival)} of those left standing (Eq 3)"),
        ("alive today", f"{part(alive.agent_rate)} of agents' committed lines, {part(alive.other_rate)} of others"),
    ]  # fmt: skip
    return "\n".join(f"{name:<12}{printable(text)}" for name, text in rows)


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
    with Bar(options.quiet) as bar:
        collection = ingest.collect(options.repositories, options.store, filters, jobs=options.jobs, progress=bar)
    if options.json:
        print(json_text(collection))
    else:
        names = ("repository", "status", "checkpoints", "new", "commits", "new", "linked", "sessions", "why")
        rows = [
            (o.repo, o.status, o.checkpoints, o.new_checkpoints, o.commits, o.new_commits, o.linked, o.sessions,
             o.reason)
            for o in collection.repositories
        ]  # fmt: skip
        lines = [table(names, rows), ""]
        lines.append(", ".join(f"{n:,} {status}" for status, n in collection.by_status.items()) or "no repository")
        if collection.by_status.keys() == {"unchanged"}:
            lines.append("nothing new")
        if collection.machine_sessions:
            n_sessions = collection.sessions + collection.sessions_left_out
            lines.append(
                f"{collection.machine_sessions:,} of {times(n_sessions, 'session')} were started by a program"
                f" (label machine_prompts), {collection.sessions_left_out:,} of them left out"
            )
        if collection.filtered:
            lines.append("left out: " + ", ".join(f"{n:,} {reason}" for reason, n in collection.filtered.items()))
        print("\n".join(lines))
    repositories = collection.repositories
    return 1 if repositories and all(repository.status == "failed" for repository in repositories) else 0


# `scan`: which weaknesses came with the commits of a repository, and with whose lines.

_SHOWN = 12


def run_scan(options: argparse.Namespace) -> int:
    if options.sarif is not None:
        if options.scanner or options.config:
            raise UsageError("--scanner and --sarif cannot be combined.", "Give --scanner or --sarif.")
        if len(options.repositories) > 1:
            raise UsageError("--sarif imports the report of one repository.", "Name only one repository.")
        taken = ingest.import_sarif(options.repositories[0], Path(options.sarif), options.store, jobs=options.jobs)
        print(
            json_text(taken)
            if options.json
            else fields(
                [
                    ("repository", taken.repo),
                    ("findings", f"{taken.findings:,} present ({_first(taken.scanners)})"),
                    ("on lines of", _first(taken.owners) + " (by the replay)"),
                    ("skipped", _first(taken.skipped)),
                ],
                " ",
            )
        )
        return 0
    chosen = scanner(options.scanner or "rules", options.config)
    several = len(options.repositories) > 1
    with Bar(options.quiet) as bar:
        how = {"afresh": options.afresh, "jobs": options.jobs, "engine": options.engine, "progress": bar}
        if several:
            results = ingest.scan_repositories(options.repositories, chosen, options.store, **how)
        else:
            summary = ingest.scan_repository(options.repositories[0], chosen, options.store, **how)
    if several:
        return _shown(results, _scan, as_json=options.json)
    return print_result(options, summary, _scan)


def _scan(summary: Scan) -> str:
    new = "nothing new to scan" if summary.unchanged else f"{summary.scanned:,} scanned now"
    left_out = f"; {times(summary.commits_left_out, 'commit')} left out: their files are missing"
    head = fields(
        [
            ("repository", summary.repo),
            ("scanner", f"{summary.scanner} {summary.scanner_version}"),
            ("scanned", f"{times(summary.files, 'file')} as {summary.commits:,} linked commits changed them; {new}"),
            ("skipped", _first(summary.skipped) + (left_out if summary.commits_left_out else "")),
            ("findings", f"{summary.introduced:,} introduced, {summary.fixed:,} fixed, {summary.moved:,} moved"),
            ("on lines of", _first(summary.owners) + " (by the replay)"),
            ("rules", _first(summary.rules)),
            ("weaknesses", _first(summary.cwes)),
        ],
        " ",
    )
    languages = [
        (
            s.language,
            s.files,
            s.introduced,
            *((s.planted.recall, s.planted.precision) if s.planted else ("unknown",) * 2),
        )
        for s in summary.languages
    ]
    rates = [
        (
            *(r.attribution, r.by, r.group, r.files, r.lines, r.introduced),
            "" if r.introduced_rate is None else f"{r.introduced_rate:.2f}",
            interval(r.introduced_low, r.introduced_high, "{:.2f}"),
            r.fixed,
        )
        for r in summary.rates
    ]
    planted = ("language", "files", "introduced", "recall on planted code", "precision on planted code")
    names = ("attribution", "by", "group", "files", "lines", "introduced", "per 1 000", "95 % interval", "fixed")
    notes = (
        "Findings of a static scanner are not confirmed weaknesses. Rates of different rule sets are not comparable."
    )
    return f"{head}\n\n{table(planted, languages)}\n{summary.recall_caveat}\n\n{table(names, rates)}\n{notes}"


def _first(counts: dict[str, int]) -> str:
    listed = [f"{n:,} {name}" for name, n in counts.items()]
    more = f", {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return (", ".join(listed[:_SHOWN]) or "none") + more


# `discover`: where traces could be read from, before anything of them is fetched.
#
# `hub`: data sets on the Hugging Face Hub. `repos`: repositories with checkpoints, among those that are named.


def run_discover(options: argparse.Namespace) -> int:
    if options.place == "repos":
        return _repositories(options)
    if options.names:
        raise UsageError("`discover hub` takes no names of repositories.", "Search the Hub with --search or --owner.")
    if options.limit is not None and options.limit < 0:
        raise UsageError(f"--limit {options.limit} is below 0.", "Give a number of data sets.")
    if options.untagged and not (options.search or options.owner or options.tag):
        raise UsageError("--untagged alone would list the whole Hub.", "Add --search, --owner or --tag.")
    left_out = read_exclusions(options.exclude) if options.exclude else frozenset()
    tags = [*([] if options.untagged else [hub.TRACES]), *options.tag]
    wanted = []
    for found in hub.with_agents_and_duplicates(hub.search_datasets(tags, options.search, options.owner)):
        licences = [licence.strip().lower() for licence in (found.licence or "none").split(",")]
        has_licence = options.license is None or options.license.lower() in licences
        has_agent = options.harness is None or options.harness.lower() in found.harnesses
        if has_licence and has_agent and not (options.distinct and found.duplicate_of):
            wanted.append(found)
    kept = [d for d in wanted if d.name not in left_out][: options.limit]
    if not options.quiet and len(wanted) > len(kept) and left_out:
        print(f"discover: {sum(d.name in left_out for d in wanted):,} left out by {options.exclude}", file=sys.stderr)
    if options.json:
        print(json_text(kept))
        return 0
    rows = []
    for d in kept:
        remarks = [f"files of {d.duplicate_of}"] * bool(d.duplicate_of) + ["gated"] * bool(d.gated)
        licence = d.licence or "none stated"
        harnesses = ", ".join(d.harnesses)
        rows.append((d.name, len(hub.traces_of(d)), d.bytes, licence, harnesses, d.downloads, "; ".join(remarks)))
    print(table(("data set", "trace files", "bytes", "licence", "harnesses", "downloads", "remark"), rows, 70))
    again = sum(d.duplicate_of is not None for d in kept)
    unlicensed = sum(d.licence is None for d in kept)
    print(f"{len(kept):,} data sets, {again:,} of them duplicate another; {unlicensed:,} state no licence")
    if kept:
        print(f"read one with: agentsignals analyze hub:{printable(kept[0].name)}")
    return 0


def _repositories(options: argparse.Namespace) -> int:
    if not options.names:
        raise UsageError(
            "No repository is named.",
            "Give OWNER/NAME, an address, a folder of clones, a text file with one repository a line, or"
            " a JSON file saved from a search.",
        )
    found = discover(options.names)
    if options.json:
        print(json_text(found))
        return 0
    names = ("repository", "checkpoints in", "commits", "naming one", "remark")
    rows = []
    for d in found:
        layouts = ", ".join(f"{n:,} {kind} refs" for kind, n in d.layouts.items())
        remark = d.trouble or ("fork" if d.is_fork else None if d.is_here else "not fetched")
        rows.append((d.place, layouts, d.commits, d.naming, remark))
    print(table(names, rows, 70))
    n = sum(bool(d.layouts) for d in found)
    print(f"{times(len(found), 'repository', 'repositories')}, {n:,} with checkpoints")
    if any(d.layouts or not d.is_here for d in found):
        print(f"collect them with: agentsignals repo collect {' '.join(printable(name) for name in options.names)}")
    return 0


# `receipt`: what an agent did for a commit, a branch or a pull request, on one page for its review.

_RESULTS = {"hidden": "ran; the command hides its result", "unknown": "ran; the log does not record its result"}
_KINDS = {"test": "test", "build": "build, linter or type checker"}


def run_receipt(options: argparse.Namespace) -> int:
    receipt = ingest.repository_receipt(options.repository, options.revision, options.store, jobs=options.jobs)
    made = redacted_in(receipt)
    return print_result(options, made, lambda of: _receipt(of, options.markdown))


def _receipt(made: Receipt, as_markdown: bool) -> str:
    named = [f"{sha[:10]} {made.subjects.get(sha, '')}" for sha in made.commits[:5]]
    more = [f"and {len(made.commits) - 5} more commits"] if len(made.commits) > 5 else []
    answer = Printed(markdown=as_markdown, widest=70, cut=True)
    answer.lines(["What the transcripts show of:"], "## ")
    answer.lines([*named, *more])
    answer.lines(_receipt_sentences(made))

    def at(place: Place) -> str:
        return f"{place.session_id[:13]} {place.seq}"

    checks = []
    for c in made.checks:
        changes = f"{c.edits_after} {'change' if c.edits_after == 1 else 'changes'}"
        since = f"{changes}: {', '.join(c.files_after[:3])}{', …' if len(c.files_after) > 3 else ''}"
        result = _RESULTS.get(c.result, c.result) + (" (of a part)" if c.is_part else "")
        checks.append((c.name, c.runs, result, since if c.edits_after else "nothing", at(c.place)))
    names: tuple[str, ...] = ("check", "runs", "the last", "changed since", "session and event")
    answer.table(names, checks, "Checks before the commit")
    failed = [(f.command, f.error_class or "", at(f.place)) for f in made.failed]
    answer.table(("command", "why", "session and event"), failed, "Failed, without a later success")
    answer.table(("file", "lines"), list(made.owners.files_unknown.items()), "Lines of unknown origin")
    for title, paths, n in (
        ("Committed, but changed by no logged call", made.committed_not_changed, made.committed_not_changed_n),
        ("Changed, but not committed", made.changed_not_committed, made.changed_not_committed_n),
        ("Read, but not changed", made.read_not_changed, made.read_not_changed_n),
    ):
        rest = [(f"and {n - len(paths)} more",)] if n > len(paths) else []
        answer.table(("file",), [*((path,) for path in paths), *rest], title)
    names = ("session", "agent", "model", "prompts", "interrupts", "refused calls", "USD")
    sessions = [
        (s.session_id, s.agent, s.model or "", s.prompts, s.interrupts, s.refused, s.cost_usd) for s in made.sessions
    ]
    answer.table(names, sessions, "Sessions")
    return str(answer)


def _receipt_sentences(made: Receipt) -> Iterator[str]:
    """Yield what a receipt says in sentences: whose lines, missing transcripts, checks not run, weaknesses."""
    o = made.owners
    n, n_sessions, missing = o.agent + o.person + o.unknown, len(made.sessions), len(made.sessions_missing)
    if not made.sessions:
        yield "The store has no transcript of these commits, so how they were made is unknown."
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
    if missing:
        yield f"The transcripts of {missing} contributing sessions are missing."
    if made.sessions:
        if made.kinds_not_run:
            yield "No transcript shows a run of a " + ", nor of a ".join(_KINDS[k] for k in made.kinds_not_run) + "."
        if stale := [run.name for run in made.checks if run.edits_after]:
            yield f"Not run since the last change: {', '.join(stale)}."
        if failed := [run.name for run in made.checks if run.result == "failed"]:
            yield f"Failed when last run: {', '.join(failed)}."
        if made.not_run:
            yield f"Run by other sessions of this repository, not by these: {', '.join(made.not_run[:8])}."
        if made.cost_usd is None:
            yield "The cost is unknown: some model calls have no price."
        else:
            whose = "The sessions"
            if made.sessions_priced != n_sessions:
                whose = f"{made.sessions_priced} of {n_sessions} sessions (the rest have no price)"
            least = " at least" if any(s.cost_at_least for s in made.sessions if s.cost_usd is not None) else ""
            shared = sum(s.other_commits > 0 for s in made.sessions)
            rest = f"; {shared} of them also made other commits" if shared else ""
            rest += f"; {missing} more have no transcript here" if missing else ""
            yield f"{whose} cost{least} {made.cost_usd:,.2f} USD as a whole{rest}."
    if made.weaknesses is None:
        yield "These commits were not scanned; `agentsignals repo scan` reads those of sessions, in its languages."
    else:
        part = "" if made.commits_scanned == len(made.commits) else f" of {made.commits_scanned} of the commits"
        yield f"A scan{part} found {times(len(made.weaknesses), 'weakness', 'weaknesses')} introduced."


# `rules`: the mechanical rules of instruction files, whether sessions kept them, what their introduction changed.

_LISTED, _OF_ONE = 25, 5


def run_rules(options: argparse.Namespace) -> int:
    if options.file and not options.repository:
        raise UsageError("--file needs a repository.", "Name it: `agentsignals repo rules . --file …`.")
    report = ingest.repository_rules(options.repository, options.store, file=options.file, jobs=options.jobs)
    made = redacted_in(report)
    return print_result(options, made, lambda of: rules_text(of, as_markdown=options.markdown))


def rules_text(made: RulesReport, *, as_markdown: bool = False) -> str:
    def name(row: RuleRow) -> str:
        return f"{row.place}: {row.file}:{row.line}" if row.place is not None else f"{row.file}:{row.line}"

    answer = Printed(markdown=as_markdown, widest=90, cut=True)
    where = made.repo or "What the store's traces show"
    n, others = len(made.rules), sum(file["not_mechanical"] for file in made.files.values())
    head = [
        f"{where}: {times(made.sessions, 'session')}, {len(made.files):,} instruction files, {n:,} mechanical rules."
    ]
    if others:
        head.append(f"{others:,} other sentences cannot be checked in commands, edits and commits.")
    if not made.files and made.repo:
        head.append("Neither its history nor a trace contains an instruction file.")
    elif not made.files:
        head.append("No trace holds the text of an instruction file: name a repository.")
    answer.lines(head, "")
    listed = made.rules[:_LISTED]
    answer.table(
        ("rule", "says", "in force", "always kept", "broken", "no occasion", "cannot tell", "times kept",
         "times broken"),
        [(name(r), r.text, r.exposed, r.kept, r.broken, r.no_occasion, sum(r.cannot_tell.values()), r.occasions_kept,
          r.occasions_broken) for r in listed],
        "rules",
    )  # fmt: skip
    broken = [
        (name(row), session.session_id, mark.seq, mark.line, f"{mark.because}: {mark.text}")
        for row in made.rules
        for session in [s for s in row.sessions if s.exposure == "exposed" and s.verdict == "broken"][:_OF_ONE]
        for mark in session.marks[:1]
    ]
    names: tuple[str, ...] = ("rule", "session", "event", "line", "what")
    answer.table(names, broken[:_LISTED], "broken, the first time in a session")
    untold = [(name(r), why, n) for r in made.rules for why, n in (*r.cannot_tell.items(), *r.not_exposed.items())]
    answer.table(("rule", "why", "sessions"), untold[:_LISTED], "cannot tell, and not in force")
    effects = []
    for row in listed:
        change, said = row.effect.change, f"{row.effect.verdict.replace('_', ' ')}: {row.effect.because}"
        before = after = level = ""
        if change is not None:
            before, after = f"n = {change.n_before}", f"n = {change.n_after}"
            if change.level is not None and change.level_interval is not None:
                before, after = f"{change.before:.0%} ({before})", f"{change.after:.0%} ({after})"
                level = f"{change.level:+.0%} ({interval(*change.level_interval, '{:+.0%}')})"
        effects.append((name(row), (row.since or "")[:10], before, after, level, said))
    names = ("rule", "since", "before", "after", "change against the trend", "said")
    answer.table(
        names, effects, "kept before and after the rule was added (share of its occasions, one value per session)"
    )
    meanwhile = [
        f"{name(row)}: meanwhile {'; '.join(row.effect.meanwhile)}"
        for row in made.rules
        if row.effect.meanwhile and row.effect.change is not None and row.effect.change.level is not None
    ]
    answer.lines([*meanwhile, *made.cautions])
    return str(answer)


# `witness`: what others recorded of a repository's lines, beside our replay.

_EXAMPLES = 3
"""Examples of a reason."""


def run_witness(options: argparse.Namespace) -> int:
    witnessed = ingest.witness_repository(options.repository, options.store, jobs=options.jobs)
    result = redacted_in(witnessed)
    return print_result(options, result, lambda of: _witnessed(of, options.markdown))


def _witnessed(result: Witnessed, as_markdown: bool) -> str:
    """Show each tool that recorded line authors in a repository, how it compares, and why lines differ."""
    answer = Printed(markdown=as_markdown)
    answer.lines(
        [f"{result.repo}: {times(result.commits, 'commit')}, {result.commits_replayed:,} of them replayed"], ""
    )
    if not result.witnesses:
        answer.lines(["No other tool recorded line authors here: no git-ai notes, no Agent Trace file."], "")
    for c in result.witnesses:
        answer.lines([f"{c.witness}: {c.describes}"], "## ")
        answer.lines(_witness_sentences(c))
        columns = list(dict.fromkeys(owner for counts in c.owners.values() for owner in counts))
        owners = [(ours, *(n.get(o, 0) for o in columns)) for ours, n in c.owners.items()]
        answer.table(("", *columns), owners, "lines by owner: the replay's down, the witness's across")
        reasons = []
        for reason, n in c.reasons.items():
            lines = [line for line in c.examples if line.reason == reason][:_EXAMPLES]
            reasons.append((reason, n, "; ".join(f"{e.commit_sha[:8]} {e.path}:{e.line}" for e in lines)))
        answer.table(("reason", "lines", "for example"), reasons, "why they differ")
    return str(answer)


def _witness_sentences(c: Compared) -> Iterator[str]:
    """Yield how another tool's attribution compares with ours: records, lines stated, agreement."""
    versions = ", ".join(f"{version} {n:,}" for version, n in list(c.versions.items())[:5])
    yield (
        f"{times(c.records, 'record')} of {times(c.commits, 'commit')} ({versions}): {c.commits_gone:,} of these are on"
        f" no branch, {c.commits_carried:,} were carried over from another commit"
    )
    yield "lines stated: " + (", ".join(f"{owner} {n:,}" for owner, n in c.stated.items()) or "none")
    if c.problems:
        yield "not read or not placed: " + ", ".join(f"{n:,} {reason}" for reason, n in c.problems.items())
    if c.share is None:
        yield (f"Nothing to compare: {times(c.commits_both, 'commit')} have both, but no line has an owner in both.")
    else:
        ends = interval(c.low, c.high, "{:.1%}", ", {}") or ", no interval from so few commits"
        yield (
            f"{times(c.commits_both, 'shared commit')} with {times(c.lines, 'line')}. Both name an owner for"
            f" {times(c.compared, 'line')} and agree on {c.share:.1%}{ends}. Other lines are not compared"
        )
    if c.sessions_same or c.sessions_other:
        yield f"of the agents' lines {c.sessions_same:,} are given to the same session, {c.sessions_other:,} to another"
    if c.recovered:
        agree = f"; the replay gives {c.recovered_same:,} the same owner, {c.recovered_other:,} another"
        yield (
            f"{times(c.recovered, 'line')} of {times(c.recovered_commits, 'commit')} without a record have an owner"
            f" again, by their text in rewritten commits{agree}"
        )
    if c.commits_not_here:
        yield f"{times(c.commits_not_here, 'commit')} with a record are not in this clone"
