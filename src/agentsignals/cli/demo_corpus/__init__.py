"""A small made-up corpus in several formats, so that everything can be tried without traces of one's own."""

from __future__ import annotations

from pathlib import Path

from agentsignals.cli.demo_corpus.story import stories
from agentsignals.cli.demo_corpus.writers import write


def make_corpus(folder: Path) -> Path:
    """Writes the sample sessions under the folder, a folder a format; the same files every time."""
    for story in stories():
        write(story, folder)
    return folder
