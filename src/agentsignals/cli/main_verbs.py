"""What each verb does: a call into the library, and its result as text or JSON."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from agentsignals.cli.doctor import NEW_FIELDS, SKIP_ADVICE, drift_line
from agentsignals.cli.first_findings import LINES, findings_of, last_lines
from agentsignals.cli.output import MAX_CELL, Bar, figure, is_cut, json_text, printable, table, write_csv
from agentsignals.errors import QueryError, SourceError, StoreError
from agentsignals.formats import homes
from agentsignals.ingest import pipeline
from agentsignals.ingest.pipeline import Summary
from agentsignals.model.prices import CostLine
from agentsignals.sources.local import found_homes
from agentsignals.store import Store, place
from agentsignals.store.index import INDEX_FILE

_UNREAD_LINES = 6
"""Kinds of unread files that are named in words."""
MOST_ROWS = 1_000_000
"""Rows of a query that are held at once, which a table and a JSON document need; CSV is written row by row."""


def run(options: argparse.Namespace) -> int:
    """Runs a verb of the main job; gives the exit code."""
    return _VERBS[options.verb](options)


def _analyze(options: argparse.Namespace) -> int:
    if options.report:
        from agentsignals.ui import check_report

        check_report(Path(options.report))
    bar = Bar(options.quiet)
    names = ("jobs", "engine", "embedder")
    settings = {name: getattr(options, name) for name in names} | {"force_format": options.format, "progress": bar}
    if options.wait is not None:
        settings["wait_s"] = options.wait
    if options.exclude:
        from agentsignals import sources as exclusions

        settings["exclude"] = exclusions.read_exclusions(options.exclude)
    try:
        summary, store = pipeline.analyze_into(options.sources, options.store, tell=_tell, **settings)
    finally:
        bar.close()
    if options.report:
        from agentsignals.ui import report

        summary.report = str(report.write(store, Path(options.report)))
    _warn(summary)
    _say(summary, options, store, options.store)
    return 1 if options.strict and summary.skipped else 0


def _say(summary: Summary, options: argparse.Namespace, store: Store, folder: Path | str | None) -> None:
    """Print what was read, and below it what stands out."""
    if not options.json:
        print(_summary_text(summary), flush=True)
    if getattr(options, "no_report", False):
        if options.json:
            print(json_text(summary))
        return
    from agentsignals.cli.first_findings import findings_of, last_lines

    made = findings_of(store, getattr(options, "jobs", None))
    if options.json:
        print(json_text({**msgspec.structs.asdict(summary), "findings": made}))
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
    cost = f"{bound}${summary.cost_usd:,.2f} over {priced:,} sessions with a known price"
    rows = [
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
    rows += _met(summary)
    if summary.silent_sessions:
        silent = ", ".join(f"{n:,} {name}" for name, n in sorted(summary.silent_sessions.items()))
        rows.append(("silent", f"{silent}: sessions without a prompt, a call or a token; another agent's, perhaps"))
    if summary.lower_bounds:
        rows.append(
            (
                "at least",
                f"{summary.lower_bounds:,} sessions log output in mid-stream; their visible text alone comes to about"
                f" {summary.visible_output_tokens:,} tokens ({VISIBLE_ERROR})",
            )
        )
    if summary.stored_sessions != summary.sessions:
        rows.append(("held", f"{summary.stored_sessions:,} sessions in the store, of all sources"))
    if summary.deleted_files:
        rows.append(
            (
                "deleted",
                f"{summary.deleted_files:,} files are gone; the store keeps the {summary.deleted_sessions:,} sessions"
                " that were in no other: agentsignals forget --deleted",
            )
        )
    if summary.repeated:
        rows.append(("repeated", f"{summary.repeated:,} artifacts hold what another one holds, counted once"))
    if summary.excluded_sessions or summary.excluded_sources:
        rows.append(("excluded", f"{summary.excluded_sources:,} sources, {summary.excluded_sessions:,} sessions"))
    if summary.restored_sessions:
        rows.append(("restored", f"{summary.restored_sessions:,} sessions of damaged parts were read again"))
    if summary.lost_sessions:
        lost = summary.lost_sessions
        rows.append(
            ("lost", f"{len(lost):,} sessions whose sources are gone: {', '.join(lost[:5])}{' …' * (len(lost) > 5)}")
        )
    if summary.report:
        rows.append(("report", _written(summary.report)))
    return "\n".join(f"{name:10}  {value}" for name, value in rows)


def _met(summary: Summary) -> list[tuple[str, str]]:
    """The first and the last version that was met of each format, what is not read, and what is new in what is."""
    spans = ((name, list(met), sum(met.values())) for name, met in summary.versions.items())
    met_by = (f"{name} {met[0]}{f' to {met[-1]}' if len(met) > 1 else ''} ({n:,} files)" for name, met, n in spans)
    rows = [("versions", printable(", ".join(met_by)))] if summary.versions else []
    rows += [("not read", line) for line in _unread(summary)]
    new = summary.unknown_fields[:_UNREAD_LINES]
    return rows + [("new fields", f"{drift_line(unknown)}: {NEW_FIELDS}") for unknown in new]


def _unread(summary: Summary) -> list[str]:
    """What the files are that no format reads, a line a kind; and where there is no session, why."""
    lines = []
    for group in summary.unread[:_UNREAD_LINES]:
        what = f"{group.files:,} {group.what or group.reason.replace('_', ' ')}"
        whose = f", in {group.agent}'s folder" if group.agent else ""
        lines.append(printable(f"{what}{whose}, as {group.example}: {SKIP_ADVICE.get(group.reason, group.reason)}"))
    rest = summary.unread[_UNREAD_LINES:]
    if rest:
        files = sum(group.files for group in rest)
        lines.append(f"{files:,} of {len(rest):,} more kinds: --json names them, and the page Files of `serve`")
    if not summary.sessions and not summary.unread:
        lines.append(_why_nothing(summary))
    return lines


def _why_nothing(summary: Summary) -> str:
    if summary.formats:
        return f"what was read tells of sessions that are not here: {', '.join(sorted(summary.formats))}"
    if summary.other_files:
        return "no file there begins as a trace does, neither as JSON nor as an archive"
    return "there is no file"


def _written(report: str) -> str:
    """Where the report is, and what it does without."""
    from agentsignals.ui.report import without_charts

    hint = without_charts(report)
    return f"{report}\n{'':10}  {hint}" if hint else report


def _warn(summary: Summary) -> None:
    for what, n in summary.internal_errors.items():
        times = f" ({n:,} times)" if n > 1 else ""
        print(f"agentsignals: set aside, by an error of this program: {printable(what)}{times}", file=sys.stderr)


def _tell(what: str) -> None:
    print(f"agentsignals: {printable(what)}", file=sys.stderr)


def _measure(options: argparse.Namespace) -> int:
    bar = Bar(options.quiet)
    try:
        wait = {} if options.wait is None else {"wait_s": options.wait}
        done = pipeline.measure(options.store, bar, embedder=options.embedder, tell=_tell, **wait)
    finally:
        bar.close()
    sessions, values, signals = (f"{done[name]:,} {name}" for name in ("sessions", "values", "signals"))
    print(
        json_text(done) if options.json else f"{sessions} measured anew: {values} of {signals} are others than before"
    )
    return 0


def _inventory(options: argparse.Namespace) -> int:
    from agentsignals.signals.catalog import caption, inventory

    rows = inventory(options.text, options.context, options.high_value, options.status, _with_values(options))
    if options.json:
        print(json_text(rows))
        return 0
    shown = [(r["path"], r["context"], r["level"], r["type"], r["unit"], r["status"], r["basis"],
              caption(r["path"]).removeprefix(r["basis"] + ", "), r["description"]) for r in rows]  # fmt: skip
    print(table(("path", "context", "level", "type", "unit", "status", "basis", "validation", "meaning"), shown, 70))
    print(f"{len(rows)} signals")
    return 0


def _with_values(options: argparse.Namespace) -> set[str]:
    """The signals that the store has values of; none where there is no store, or, with a warning, none to be read."""
    from agentsignals.store.query import rows

    try:
        store = Store(options.store)
    except StoreError as problem:
        root = place(options.store)
        if root.is_dir() and any(root.iterdir()):
            import logging

            logging.getLogger("agentsignals.store").warning("%s %s", problem.message, problem.hint)
        return set()
    return {path for (path,) in rows(store, "SELECT DISTINCT signal FROM signals WHERE absent IS NULL")[1]}


def _show(options: argparse.Namespace) -> int:
    session = Store(options.store).session(options.session)
    if options.json:
        print(json_text(session))
        return 0
    from agentsignals.cli.timeline import timeline

    print(timeline(session, options.all))
    return 0


def _explain(options: argparse.Namespace) -> int:
    from agentsignals.ingest.measure import explain
    from agentsignals.questions.formatting import AT_LEAST
    from agentsignals.views.session import EXCERPT_CHARS

    explanation = explain(Store(options.store), options.session, options.signal)
    if options.json:
        print(json_text(explanation))
        return 0
    text = (
        f"absent: {explanation.absent['reason']} {explanation.absent['detail']}".rstrip()
        if explanation.absent
        else json_text(explanation.value)
    )
    bound = AT_LEAST if explanation.detail.get("at_least") else ""
    print(f"{explanation.signal} = {bound}{printable(text) if len(text) < 2000 else printable(text[:2000]) + '…'}")
    print(f"session    {printable(explanation.session)}")
    print(f"rule       {printable(explanation.rule)} (version {explanation.version})")
    if explanation.basis != "record" or explanation.validation:
        print(f"basis      {explanation.basis}; {explanation.validation or 'no meaning is claimed'}")
    if explanation.detail:
        print(f"detail     {printable(msgspec.json.encode(explanation.detail).decode())}")
    if explanation.bill:
        print(_bill(explanation.bill) + "\n")
    rows = [(i.role, i.seq, i.line, i.artifact, i.excerpt) for i in explanation.evidence]
    print(table(("role", "seq", "line", "artifact", "excerpt"), rows, EXCERPT_CHARS))
    for name, path in sorted(explanation.artifacts.items()):
        print(f"artifact   {name} = {printable(path)}")
    return 0


def _bill(lines: list[CostLine]) -> str:
    """What a session used and paid, line by line, and what of it adds up to the value."""
    from agentsignals.model.prices import exact_digits, total_line
    from agentsignals.questions.formatting import AT_LEAST

    def cells(line: CostLine, what: str) -> tuple[Any, ...]:
        bound = AT_LEAST if line.at_least else ""
        usd = f"{bound}{exact_digits(line.usd)}" if line.usd is not None else ""
        price = exact_digits(line.usd_each_million)
        return what, line.whose, line.model, line.kind, line.calls or None, f"{bound}{line.amount}", price, usd

    rows = [cells(line, "in the value" if line.counts else "beside") for line in lines]
    rows.append(cells(total_line(lines), "sum"))
    return table(("bill", "whose", "model", "kind", "calls", "tokens", "USD a million", "USD"), rows)


def _query(options: argparse.Namespace) -> int:
    from agentsignals.store.query import stream

    store = Store(options.store)
    if "findings" in options.sql.lower():
        from agentsignals.questions import findings

        findings.every_context(store)
    names, values = stream(store, options.sql, options.context)
    if options.csv and not options.json:
        write_csv(sys.stdout, names, values)
        return 0
    held = list(islice(values, MOST_ROWS + 1))
    if len(held) > MOST_ROWS:
        raise QueryError(f"The answer has more than {MOST_ROWS:,} rows.", "Add LIMIT, or take them with --csv.")
    if options.json:
        print(json_text([dict(zip(names, row, strict=True)) for row in held]))
        return 0
    print(table(names, held))
    if any(is_cut(value) for row in held for value in row):
        print(f"(cells are cut at {MAX_CELL} characters: --csv or --json has all)")
    return 0


def _report(options: argparse.Namespace) -> int:
    from agentsignals.ui import report

    choices = {name: getattr(options, name) for name in ("context", "labeller")}
    choices["baseline"] = Path(options.baseline) if options.baseline else None
    written = report.write(Store(options.store), Path(options.output), options.study, **choices)
    print(json_text({"report": str(written)}) if options.json else f"report      {_written(str(written))}")
    return 0


def _demo(options: argparse.Namespace) -> int:
    from agentsignals.cli import demo_corpus
    from agentsignals.ui import report

    folder = Path(options.folder)
    bar = Bar(options.quiet)
    sources = demo_corpus.make_corpus(folder / "corpus")
    place_of_it = options.store or folder / "store"
    try:
        summary, store = pipeline.analyze_into([str(sources)], place_of_it, progress=bar)
    finally:
        bar.close()
    summary.report = str(report.write(store, folder / "report.html").resolve())
    _say(summary, options, store, place_of_it)
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from agentsignals.cli.doctor import DAMAGED, checks

    checked = checks(options.store, repair=options.repair)
    if options.json:
        print(json_text(checked, with_damage=False))
    else:
        print(
            table(
                ("check", "status", "found", "what to do"),
                [(c.name, c.status, c.finding, c.advice) for c in checked],
                90,
            )
        )
    return 1 if any(c.name in DAMAGED and c.status == "problem" for c in checked) else 0


_VERBS: dict[str, Callable[[argparse.Namespace], int]] = {
    "analyze": _analyze,
    "measure": _measure,
    "inventory": _inventory,
    "show": _show,
    "explain": _explain,
    "query": _query,
    "report": _report,
    "demo": _demo,
    "doctor": _doctor,
}


# `agentsignals` alone: reads what the agents on this machine keep, and says what stands out. Nothing leaves it.

SENTENCES = 5
_DEMO = "agentsignals demo"


def run_start(options: argparse.Namespace) -> int:
    """Reads this machine into the store, and prints its findings and what to type next. Where no agent's folder is
    there, those of what the store holds; SourceError where it holds nothing either."""
    there = found_homes()
    summary = None
    if there:
        bar = Bar(options.quiet or not sys.stderr.isatty())
        try:
            summary = pipeline.analyze(sorted(there), options.store, progress=bar)
        finally:
            bar.close()
    store = Store(options.store) if (place(options.store) / INDEX_FILE).exists() else None
    if store is None or not store.manifest.sessions:
        raise SourceError(
            "No session was found on this machine.", f"{_looked_for()} `{_DEMO}` shows what there would be."
        )
    made = findings_of(store)
    if options.json:
        print(json_text({"agents": sorted(there), "store": str(store.folder), "read": summary, "findings": made}))
        return 0
    read = f"read {', '.join(sorted(there))}: {summary.sessions:,} sessions" if summary else "no agent's folder is here"
    print(printable(f"{read}; store {store.folder}"))
    print(f"\n{last_lines(store, made, options.store, SENTENCES, SENTENCES + LINES)}")
    return 0


def _looked_for() -> str:
    """Every folder in which an agent would keep its sessions."""
    folders = "; ".join(f"{agent}: {', '.join(where)}" for agent, where in homes().items())
    return f"Looked for {folders}. Name a file or folder: `agentsignals analyze FOLDER`."
