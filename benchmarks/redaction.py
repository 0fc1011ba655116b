"""How fast texts are masked, and what is masked in them: CPU time, one process.

    python -m benchmarks.redaction FOLDER [--most-mb N]

FOLDER holds traces (*.jsonl, *.json). `lines` is what an export of files as found does; `plain` masks each text value.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agentsignals.redaction import Redactor

SUFFIXES = (".jsonl", ".json")


def files(folder: Path, most_bytes: int) -> list[str]:
    """The texts of the folder's traces, in order of their paths, up to so many bytes."""
    told, read = [], 0
    for path in sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES and p.is_file()):
        if read >= most_bytes:
            break
        told.append(path.read_text("utf-8", "replace"))
        read += path.stat().st_size
    return told


def strings(value: Any) -> Iterator[str]:
    """Every text in a JSON value, names not."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from strings(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from strings(one)


def values(text: str) -> Iterator[str]:
    """The texts of a file: of its records, of its one document, or itself."""
    for part in text.split("\n"):
        try:
            yield from strings(json.loads(part))
        except (ValueError, RecursionError):
            yield part


def timed(mask: Callable[[str], str], texts: list[str]) -> float:
    """Millions of characters a CPU second."""
    started = time.process_time()
    for text in texts:
        mask(text)
    return sum(map(len, texts)) / (time.process_time() - started) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--most-mb", type=int, default=1000)
    options = parser.parse_args()
    texts = files(options.folder, options.most_mb * 10**6)
    told = [value for text in texts for value in values(text)]
    for name, redactor, chosen in (("lines", Redactor(), texts), ("plain", Redactor(), told)):
        speed = timed(redactor.lines if name == "lines" else redactor.plain, chosen)
        print(f"{name}: {len(chosen):,} texts, {sum(map(len, chosen)) / 1e6:,.1f} MB, {speed:,.1f} MB/s")
        print("  masked " + ", ".join(f"{n:,} {kind}" for kind, n in sorted(redactor.counts.items())))


if __name__ == "__main__":
    main()
