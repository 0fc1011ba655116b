"""`forget`: sessions that the store is to hold no longer."""

from __future__ import annotations

import argparse

from agentsignals.cli.verb import Verb


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sessions", metavar="SESSION", nargs="*", help="its id, or a unique beginning of it")
    parser.add_argument("--deleted", action="store_true", help="those whose files are gone")


def run(options: argparse.Namespace) -> int:
    from agentsignals.cli.output import json_text, printable
    from agentsignals.errors import UsageError
    from agentsignals.ingest.maintenance import forget

    if not options.sessions and not options.deleted:
        raise UsageError("No session was named.", "Name sessions, or give --deleted for those whose files are gone.")
    gone = forget(options.store, options.sessions, deleted=options.deleted)
    if options.json:
        print(json_text(gone))
        return 0
    print(f"forgotten   {len(gone.sessions):,} sessions")
    if gone.still_there:
        print(f"still there {len(gone.still_there):,} of their files, which the next run over them reads again:")
        print("\n".join(f"            {printable(uri)}" for uri in gone.still_there))
    return 0


VERB = Verb(
    "forget", "take sessions out of the store, or those whose files are gone", "forget --deleted", arguments, run
)
