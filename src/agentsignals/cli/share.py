"""`share`: one session as one file to hand on."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from agentsignals.cli.verb import Verb

if TYPE_CHECKING:
    from agentsignals.ui.shared_session import Shared


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="its id, or the beginning of it")
    parser.add_argument("-o", "--out", metavar="FILE", required=True, help="a new file, .html")


def run(options: argparse.Namespace) -> int:
    from agentsignals.cli.output import json_text
    from agentsignals.redaction import Redactor
    from agentsignals.store import Store
    from agentsignals.store.pseudonym_key import pseudonym_key
    from agentsignals.ui import shared_session

    path = shared_session.free_path(options.out)
    session = Store(options.store).session(options.session)
    done = shared_session.write(session, path, Redactor(pseudonym_key()))
    print(json_text(done) if options.json else _text(done))
    return 0


def _text(done: Shared) -> str:
    counts = ", ".join(f"{n:,} {kind}" for kind, n in sorted(done.masked.items()))
    rows = [
        ("written", f"{done.entries:,} entries, {done.bytes / 1e6:.1f} MB, to {done.file}"),
        ("masked", counts or "nothing that looks like a secret"),
        ("left out", done.left_out and f"{done.left_out:,} entries at its end, for which there was no room"),
        ("mind", "patterns know the shapes of secrets, not their meaning: look through it before you hand it on"),
    ]
    return "\n".join(f"{name:10}  {value}" for name, value in rows if value)


VERB = Verb("share", "one session as one masked file to hand on", "share SESSION --out session.html", arguments, run)
