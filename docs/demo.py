"""Writes docs/demo.html, the report of the demo's sessions: `python -m docs.demo`. A slow test tells if it is stale."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from agentsignals.cli import demo_corpus
from agentsignals.ingest import pipeline
from agentsignals.ui import report

PAGE = Path(__file__).with_name("demo.html")


def demo_page() -> str:
    """Return the report, without when it was made."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch).resolve()
        demo_corpus.make_corpus(folder / "corpus")
        _, store = pipeline.analyze_into([str(folder / "corpus")], folder / "store", jobs=1)
        text = report.write(store, folder / "report.html").read_text("utf-8")
    return re.sub(r"Made [-\d]+ [\d:]+ UTC", "Made of the demo", text, count=1)


if __name__ == "__main__":
    PAGE.write_text(demo_page(), "utf-8")
