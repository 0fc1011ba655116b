"""`export`: sessions out of the store, in formats that others read."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from agentsignals.cli.verb import Verb
from agentsignals.errors import UsageError

if TYPE_CHECKING:
    from agentsignals.cli.output import Bar
    from agentsignals.export import Exported
    from agentsignals.model import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", metavar="FORMAT", help="what is written; without one the formats are listed")
    parser.add_argument("-o", "--output", metavar="DIR", help="a new or empty folder; baseline: a file")
    parser.add_argument("--where", metavar="SQL", default="true", help="a condition over the columns of `sessions`")
    parser.add_argument(
        "--redact",
        action=argparse.BooleanOptionalAction,
        help="mask keys, passwords, mail addresses and names in home folders (default: for parquet, hub, training)",
    )
    parser.add_argument(
        "--license", metavar="ID", help="hub, training: the licence that the card states (mit, cc-by-4.0 …)"
    )
    parser.add_argument("--title", metavar="TEXT", help="hub, training: the card's title")
    parser.add_argument(
        "--transcripts",
        choices=("sts", "found", "none"),
        default="sts",
        help="hub: conversations in the Hub's simple format (default), the files as found, or none",
    )
    parser.add_argument(
        "--kind",
        choices=("accepted", "preferences", "steps"),
        default="accepted",
        help="training: solved attempts as chats (default), pairs of a solved and a failed one, or steps with labels",
    )
    parser.add_argument(
        "--without-benchmarks", action="store_true", help="training: leave out what is of a known benchmark"
    )


def run(options: argparse.Namespace) -> int:
    from agentsignals import export
    from agentsignals.cli.output import Bar, json_text
    from agentsignals.redaction import Redactor
    from agentsignals.store import Store
    from agentsignals.store.pseudonym_key import pseudonym_key
    from agentsignals.store.query import rows

    if options.to is None:
        return _list(options)
    if options.output is None:
        raise UsageError("Where to is not said.", f"export --to {options.to} -o FOLDER")
    writer = export.WRITERS.get(options.to)
    store = Store(options.store)
    _, matching = rows(store, f"SELECT session_id FROM sessions WHERE ({options.where})")  # noqa: S608  (the person's own SQL)
    if not matching:
        raise UsageError("No session in the store meets the condition.", "See `agentsignals sessions`.")
    ids = [str(row[0]) for row in matching]
    masks = options.redact if options.redact is not None else isinstance(writer, export.WholeWriter) and writer.redacts
    redactor = Redactor(pseudonym_key()) if masks else None
    bar = Bar(options.quiet)
    try:
        if isinstance(writer, export.WholeWriter):
            choice = export.Choice(
                redactor=redactor,
                licence=options.license,
                title=options.title,
                transcripts=options.transcripts,
                kind=options.kind,
                without_benchmarks=options.without_benchmarks,
                tick=bar,
            )
            done = writer.write(store, ids, Path(options.output), choice)
        else:
            sessions = _counted(store.read(set(ids)), len(ids), bar)
            done = export.write(sessions, writer, Path(options.output), redactor)
    finally:
        bar.close()
    print(json_text(done) if options.json else _text(done))
    return 0


def _list(options: argparse.Namespace) -> int:
    from agentsignals.cli.output import json_text, table
    from agentsignals.export import WRITERS

    rows = [(name, writer.describes) for name, writer in sorted(WRITERS.all().items())]
    print(json_text([{"format": n, "describes": d} for n, d in rows]) if options.json else table(["format", ""], rows))
    return 0


def _text(done: Exported) -> str:
    from agentsignals.cli.output import printable

    lines = [f"written     {done.files:,} files of {done.sessions:,} sessions in {done.folder}"]
    if done.tables:
        lines.append("rows        " + ", ".join(f"{n:,} {name}" for name, n in done.tables.items()))
    if done.masked is not None:
        counts = ", ".join(f"{n:,} {kind}" for kind, n in sorted(done.masked.items()))
        lines.append(f"masked      {counts or 'nothing that looks like a secret'}")
    if done.without_transcript:
        lines.append(f"left out    {done.without_transcript:,} attempts whose conversation was not collected")
    lines += [f"note        {printable(note)}" for note in done.notes]
    if done.loses:
        lines.append(f"{'conversations' if done.tables else done.format} can't carry:")
        lines += [f"  - {loss}" for loss in done.loses]
    return "\n".join(lines)


def _counted(sessions: Iterator[Session], total: int, bar: Bar) -> Iterator[Session]:
    for n, session in enumerate(sessions):
        bar("writing", n, total)
        yield session


VERB = Verb("export", "sessions in formats that others read", "export --to atif -o trajectories", arguments, run)
