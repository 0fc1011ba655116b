"""The table of formats over a folder of traces: `python -m benchmarks.formats [FOLDER]`, as Markdown.

By format: what it rests on (its card), files and their size, sessions, records read, what was skipped by reason, fields
that no file had before, versions met; below it, what no format reads. Without a folder: the corpus beside the
repository.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from agentsignals.formats import formats
from agentsignals.formats.bounds import REASONS
from agentsignals.ingest import pipeline
from agentsignals.ingest.pipeline import Summary
from agentsignals.store import Store

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
_FILES = (
    "SELECT format, count(*) AS files, sum(bytes) AS bytes, sum(records) AS records,"
    " list(skipped_reasons) AS reasons FROM artifacts WHERE format IS NOT NULL GROUP BY format"
)

_COLUMNS = (
    *("format", "rests on", "files", "MB", "sessions", "records read"),
    *("records skipped", "values refused", "unknown fields", "versions"),
)


def table(summary: Summary, store: Store) -> list[str]:
    """A row a format, those without a file too."""
    files = {row[0]: row[1:] for row in store.sql(_FILES).fetchall()}
    sessions = dict(store.sql("SELECT format, count(*) FROM sessions GROUP BY format").fetchall())
    lines = [f"| {' | '.join(_COLUMNS)} |", f"| --- | --- |{' --: |' * 4}{' --- |' * 4}"]
    for name, made in formats().items():
        n, size, records, reasons = files.get(name, (0, 0, 0, []))
        counted: Counter[str] = Counter()
        for text in reasons:
            counted.update(json.loads(text))
        new = [u for u in summary.unknown_fields if u.format == name]
        met = list(summary.versions.get(name, {}))
        cells: tuple[Any, ...] = (
            name,
            made.card.rests_on if made.card is not None else "no card",
            f"{n:,}",
            f"{size / 1e6:,.1f}",
            f"{sessions.get(name, 0):,}",
            f"{records - sum(v for k, v in counted.items() if k not in REASONS):,}",
            _counts({k: v for k, v in counted.items() if k not in REASONS}),
            _counts({k: v for k, v in counted.items() if k in REASONS}),
            "; ".join(f"{len(u.fields)} in {u.files} files of {u.version or 'no version'}" for u in new),
            f"{met[0]} to {met[-1]}" if len(met) > 1 else "".join(met),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _counts(counted: dict[str, int]) -> str:
    return ", ".join(f"{n:,} {reason}" for reason, n in sorted(counted.items(), key=lambda pair: -pair[1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=CORPUS)
    with tempfile.TemporaryDirectory() as place:
        summary, store = pipeline.ingest_into([str(parser.parse_args().folder)], place, jobs=1)
        print("\n".join(table(summary, store)))
    print(f"\nNot read ({summary.other_files:,} files that are no traces beside them):\n")
    for unread in summary.unread:
        print(f"* {unread.files:,} {unread.reason.replace('_', ' ')}: {unread.what or unread.example}")


if __name__ == "__main__":
    main()
