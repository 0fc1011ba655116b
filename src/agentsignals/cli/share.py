"""`share`: one session as one file to hand on; or a team's figures, without any text."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentsignals.cli.verb import Verb
from agentsignals.errors import UsageError

if TYPE_CHECKING:
    from agentsignals.export.team import Team
    from agentsignals.store import Store
    from agentsignals.ui.sharing import Shared


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("session", metavar="SESSION", nargs="?", help="its id, or the beginning of it")
    add("-o", "--out", metavar="FILE", help="a new file: .html; for a team also .json")
    add("--pictures", action="store_true", help="of a session its pictures, too: what they show can't be masked")
    add("--team", action="store_true", help="instead: counts, costs, failures, outcomes and signals; no text at all")
    add("--check", metavar="FILE", help="instead: look whether a team's file holds no text, word by word")


def run(options: argparse.Namespace) -> int:
    from agentsignals.cli.output import json_text

    asked = [bool(options.session), options.team, options.check is not None]
    if sum(asked) != 1 or (options.check is None) == (options.out is None) or (options.pictures and not asked[0]):
        raise UsageError("A session, --team or --check FILE is shared, each by itself.", f"For example: {VERB.example}")
    if options.session:
        done = _session(options)
        print(json_text(done) if options.json else _text(done))
    else:
        made, path = _team(options)
        print(json_text(made.proof) if options.json else _proof(made, path, wrote=options.team))
    return 0


def _session(options: argparse.Namespace) -> Shared:
    from agentsignals.redaction import Redactor
    from agentsignals.store import Store
    from agentsignals.store.pseudonym_key import pseudonym_key
    from agentsignals.ui import sharing as shared_session
    from agentsignals.ui.raw_record import pictures_of
    from agentsignals.ui.snapshot import Reading

    path = shared_session.free_path(options.out, ".html")
    store = Store(options.store)
    session = store.session(options.session)
    pictures = pictures_of(Reading(store), session) if options.pictures else None
    return shared_session.write(session, path, Redactor(pseudonym_key()), pictures=pictures)


def _team(options: argparse.Namespace) -> tuple[Team, Path]:
    """What was written, or is in the file that is checked. What was written is checked as it lies on the disk."""
    from agentsignals.export import cannot_write
    from agentsignals.export.team import encode, team
    from agentsignals.store import Store, disk
    from agentsignals.ui import sharing as team_page
    from agentsignals.ui.sharing import free_path

    if options.check is not None:
        return team_page.checked(Path(options.check)), Path(options.check)
    path = free_path(options.out, ".html", ".json")
    store = Store(options.store)
    made = team(lambda query: _rows(store, query))
    try:
        disk.write_atomically(path, encode(made) if path.suffix.lower() == ".json" else team_page.document(made))
    except OSError as problem:
        raise cannot_write(path, problem) from problem
    return team_page.checked(path), path


def _rows(store: Store, query: str) -> list[dict[str, Any]]:
    from agentsignals.store.query import rows

    names, values = rows(store, query)
    return [dict(zip(names, row, strict=True)) for row in values]


def _text(done: Shared) -> str:
    counts = ", ".join(f"{n:,} {kind}" for kind, n in sorted(done.masked.items()))
    rows = [
        ("written", f"{done.entries:,} entries, {done.bytes / 1e6:.1f} MB, to {done.file}"),
        ("masked", counts or "nothing that looks like a secret"),
        ("left out", done.left_out and f"{done.left_out:,} entries at its end, for which there was no room"),
        ("pictures", done.pictures and f"{done.pictures:,}, not masked: nothing looks into them"),
        ("left out", done.pictures_left_out and f"{done.pictures_left_out:,} pictures, for which there was no room"),
        ("mind", "patterns know the shapes of secrets, not their meaning: look through it before you hand it on"),
    ]
    return "\n".join(f"{name:10}  {value}" for name, value in rows if value)


def _proof(made: Team, path: Path, *, wrote: bool) -> str:
    proof = made.proof
    rows = [
        ("written" if wrote else "checked", f"{len(made.cells):,} groups, {len(made.spreads):,} distributions: {path}"),
        ("no text", f"{proof.strings:,} strings, each of the {proof.words:,} words of {proof.vocabulary[:16]}…"),
        ("numbers", f"{proof.numbers:,}, counts or of four digits"),
        ("left out", f"{proof.cells_left_out:,} groups of a week with fewer than {made.fewest} sessions"),
    ]
    return "\n".join(f"{name:10}  {value}" for name, value in rows)


VERB = Verb("share", "one masked session, or a team's figures, as one file", "share SESSION --out session.html",
            arguments, run)  # fmt: skip
