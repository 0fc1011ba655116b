"""`export` writes sessions in formats that others read; `share` writes one session, or a team's figures, for others,
with secrets masked, and shows what a team's file holds."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentsignals import export
from agentsignals.cli.output import Bar, fields, json_text, print_result, printable, table
from agentsignals.errors import UsageError
from agentsignals.export import Exported, cannot_write
from agentsignals.export.team import Team, encode, team
from agentsignals.model import Session
from agentsignals.questions.question import times
from agentsignals.redaction import Redactor
from agentsignals.redaction.values import RandomValues
from agentsignals.store import Store, disk
from agentsignals.store.query import rows
from agentsignals.store.secrets import known_secrets, pseudonym_key, record_ids
from agentsignals.ui import sharing
from agentsignals.ui.raw_record import pictures_of
from agentsignals.ui.sharing import Shared
from agentsignals.ui.snapshot import Snapshot


def run_export(options: argparse.Namespace) -> int:
    if options.to is None:
        offered = [(name, writer.describes) for name, writer in sorted(export.WRITERS.all().items())]
        plain = [{"format": name, "describes": describes} for name, describes in offered]
        print(json_text(plain) if options.json else table(["format", ""], offered))
        return 0
    if options.output is None:
        raise UsageError("No output folder is named.", f"agentsignals export --to {options.to} -o FOLDER")
    writer = export.WRITERS.get(options.to)
    store = Store(options.store)
    _, matching = rows(store, f"SELECT session_id FROM sessions WHERE ({options.where})")  # noqa: S608  (the person's own SQL)
    if not matching:
        raise UsageError(
            "No session in the store meets the condition.", "`agentsignals sessions` lists the sessions there are."
        )
    ids = [str(row[0]) for row in matching]
    masks = options.redact if options.redact is not None else isinstance(writer, export.WholeWriter) and writer.redacts
    with Bar(options.quiet) as bar:
        redactor = None
        if masks:
            others = None
            if getattr(writer, "every_text", False):  # it finds the secrets of the sessions that it writes as it goes
                sessions, written = store.manifest.sessions.items(), set(ids)
                others = sorted({entry.shard for name, entry in sessions if name not in written})
            known = known_secrets(store, others, bar)
            drawn = RandomValues(record_ids(store, ids)) if getattr(writer, "masks_random", False) else None
            redactor = Redactor(pseudonym_key(), known=known, random=drawn)
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

            def counted() -> Iterator[Session]:
                for n, session in enumerate(store.read(set(ids))):
                    bar("writing", n, len(ids))
                    yield session

            done = export.write(counted(), writer, Path(options.output), redactor)
    return print_result(options, done, _text)


def _text(done: Exported) -> str:
    lines = [f"written     {times(done.files, 'file')} of {times(done.sessions, 'session')} in {done.folder}"]
    if done.tables:
        lines.append("rows        " + ", ".join(f"{n:,} {name}" for name, n in done.tables.items()))
    if done.masked is not None:
        counts = ", ".join(f"{n:,} {kind}" for kind, n in sorted(done.masked.items()))
        lines.append(f"masked      {counts or 'nothing that looks like a secret'}")
    if done.without_transcript:
        lines.append(f"left out    {times(done.without_transcript, 'attempt')} whose conversation was not collected")
    lines += [f"note        {printable(note)}" for note in done.notes]
    if done.loses:
        lines.append(f"{'conversations' if done.tables else done.format} cannot hold:")
        lines += [f"  - {loss}" for loss in done.loses]
    return "\n".join(lines)


# `share`: one session as one file to hand on; or a team's figures, without any text.


def run_share(options: argparse.Namespace) -> int:
    asked = [bool(options.session), options.team, options.check is not None]
    if sum(asked) != 1 or (options.check is None) == (options.out is None) or (options.pictures and not asked[0]):
        raise UsageError(
            "Give one of: a session, --team, or --check FILE.",
            "agentsignals share SESSION --out session.html",
        )
    if options.session:
        path = sharing.free_path(options.out, ".html")
        store = Store(options.store)
        session = store.session(options.session)
        pictures = pictures_of(Snapshot(store), session) if options.pictures else None
        with Bar(options.quiet) as bar:
            drawn = RandomValues(record_ids(store, [session.session_id]))
            redactor = Redactor(pseudonym_key(), known=known_secrets(store, progress=bar), random=drawn)
        done = sharing.write(session, path, redactor, pictures=pictures)
        return print_result(options, done, _shared_text)
    if options.team:
        path = sharing.free_path(options.out, ".html", ".json")
        store = Store(options.store)

        def objects(query: str) -> list[dict[str, Any]]:
            names, values = rows(store, query)
            return [dict(zip(names, row, strict=True)) for row in values]

        made = team(objects)
        try:
            disk.write_atomically(path, encode(made) if path.suffix.lower() == ".json" else sharing.document(made))
        except OSError as problem:
            raise cannot_write(path, problem) from problem
    path = path if options.team else Path(options.check)
    checked = sharing.checked(path)  # as it lies on the disk
    print(json_text(checked.proof) if options.json else _proof_text(checked, path, wrote=options.team))
    return 0


def _shared_text(done: Shared) -> str:
    counts = ", ".join(f"{n:,} {kind}" for kind, n in sorted(done.masked.items()))
    return fields(
        [
            ("written", f"{times(done.entries, 'entry', 'entries')}, {done.bytes / 1e6:.1f} MB, to {done.file}"),
            ("masked", counts or "nothing that looks like a secret"),
            (
                "left out",
                done.left_out and f"{times(done.left_out, 'entry', 'entries')} at its end, for which there was no room",
            ),
            ("pictures", done.pictures and f"{done.pictures:,}, not masked: nothing looks into them"),
            (
                "left out",
                done.pictures_left_out and f"{times(done.pictures_left_out, 'picture')}, for which there was no room",
            ),
            ("warning", "patterns find the shapes of secrets, not their meaning: read the file before you share it"),
        ]
    )


def _proof_text(made: Team, path: Path, *, wrote: bool) -> str:
    proof = made.proof
    return fields(
        [
            (
                "written" if wrote else "checked",
                f"{times(len(made.cells), 'group')}, {times(len(made.spreads), 'distribution')}: {path}",
            ),
            ("no text", f"{proof.strings:,} strings, each of the {proof.words:,} words of {proof.vocabulary[:16]}…"),
            ("numbers", f"{proof.numbers:,}, counts or of four digits"),
            ("left out", f"{times(proof.cells_left_out, 'group')} of a week with fewer than {made.fewest} sessions"),
        ]
    )
