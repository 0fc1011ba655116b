"""`agentsignals` alone: reads what the agents on this machine keep, and says what stands out. Nothing leaves it."""

from __future__ import annotations

import argparse
import sys

from agentsignals.cli.last_lines import LINES, findings_of, last_lines
from agentsignals.cli.output import Bar, json_text, printable
from agentsignals.errors import SourceError
from agentsignals.formats import homes
from agentsignals.ingest import pipeline
from agentsignals.sources.local import found_homes
from agentsignals.store import Store, place
from agentsignals.store.manifest import NAME

SENTENCES = 5
_DEMO = "agentsignals demo"


def run(options: argparse.Namespace) -> int:
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
    store = Store(options.store) if (place(options.store) / NAME).exists() else None
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
