"""`serve`: the store as a page on this machine."""

from __future__ import annotations

import argparse
import shlex
import tempfile
import webbrowser
from contextlib import ExitStack
from html import escape
from pathlib import Path

from agentsignals import private_files
from agentsignals.cli.output import json_text, tell
from agentsignals.errors import UsageError
from agentsignals.labels.gold import GoldFile
from agentsignals.sources import local
from agentsignals.store import disk, resolve_folder
from agentsignals.ui.live import sources_of
from agentsignals.ui.pages.labels import Annotations
from agentsignals.ui.server import started


def run_serve(options: argparse.Namespace) -> int:
    """Serves until Ctrl-C, which is how it ends."""
    if options.sources:
        resolve_folder(options.store, create=True)
    annotations = None
    if options.annotate is not None:
        annotations = Annotations(GoldFile(options.annotate))
    with (
        started(options.store, options.port, annotations, with_token=not options.no_token) as server,
        ExitStack() as held,
    ):
        # What is watched: the sources named, else the folders of this machine that the store was read from.
        specs, gone = [] if options.no_watch else list(options.sources), list[str]()
        if elsewhere := [spec for spec in specs if not local.accepts(spec)]:
            raise UsageError(f"{elsewhere[0]!r} is no file, folder or agent.", "Name one to watch, or add --no-watch.")
        is_remote = server.snapshots.folder in disk.remote_stores  # each change would be sent to where it lies
        if not (options.no_watch or specs or is_remote):
            specs, gone = sources_of(server.snapshots.current().store.manifest)
        if gone and not options.quiet:
            named = " ".join(shlex.quote(spec) for spec in gone)
            tell(f"Not watching {named}: not found here. To watch other folders: agentsignals serve FOLDER")
        if specs:
            server.live.watch(specs, options.store)
        if options.json:
            about = {"url": server.address, "store": str(server.snapshots.folder), "watches": specs}
            print(json_text(about), flush=True)
        else:
            watches = f", watches {', '.join(specs)}" if specs else ""
            print(f"{server.address}  serves {server.snapshots.folder}{watches}; Ctrl-C ends it", flush=True)
        if options.open:
            url = server.address
            if server.access.token:  # other users see a program's arguments, so the token goes by a file
                folder = tempfile.TemporaryDirectory(prefix="agentsignals-", ignore_cleanup_errors=True)
                leads_there = Path(held.enter_context(folder)) / "open.html"
                private_files.write(leads_there, f'<meta http-equiv="refresh" content="0;url={escape(url)}">')
                url = leads_there.as_uri()
            with private_files.as_person():
                webbrowser.open(url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0
