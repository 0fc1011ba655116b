"""How many planted secrets leave: each kind, in each writing, by each outlet; and harmless texts that are changed.

    python -m benchmarks.planted

Secrets and writings are those of the tests. People and agents both say them, in one store, which goes out by every
door: exports of each format, a gold file and the report. A secret has left where eight characters
in a row of it, in letters of any case, or forty of another writing of it, stand in what came out.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
from tests.labels.stores import store_of
from tests.redaction.planted import KINDS, Secret, pieces
from tests.redaction.test_edges import AFTER, BEFORE
from tests.redaction.test_edges import HARMLESS as EDGES
from tests.redaction.test_forms import HARMLESS as CODE
from tests.redaction.test_issuers import HARMLESS as SHAPES
from tests.redaction.test_issuers import WRITINGS as ALONE

from agentsignals import export
from agentsignals.cli import main as run
from agentsignals.redaction import redacted


def _followed(after: str, text: str) -> str:
    return text + after


WRITINGS: dict[str, Callable[[str], str]] = {
    **ALONE,
    **{f"after {name}": partial(str.__add__, before) for name, before in BEFORE.items()},
    **{f"before {name}": partial(_followed, after) for name, after in AFTER.items()},
}
PROBE = "a1b2c3d4e5f6g7h8"
DECODED = tuple(name for name, write in ALONE.items() if PROBE not in write(PROBE).lower())
"""Writings in which a secret's own characters don't stand."""
PART_CHARS = 8
INNER_CHARS = 40
"""Of another writing: escapes take six characters for one."""


def alike(text: str, other: str) -> int:
    """How many characters two texts begin with in common."""
    return next((n for n, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), len(text))


class Planted:
    """A secret in a writing."""

    def __init__(self, kind: str, writing: str) -> None:
        self.kind, self.writing = kind, writing
        self.secret: Secret = KINDS[kind](random.Random(f"{kind} {writing}"))  # noqa: S311  (draws, no secret)
        before, after = self.secret.around
        begins = f"{self.secret.name}=" if self.secret.name else ""
        self.text, other = (
            WRITINGS[writing](f"{begins}{before}{value}{after}")
            for value in (self.secret.value, self.secret.value.swapcase()[::-1])
        )
        # What the writing makes of the secret is what another secret in its place would change.
        first, last = alike(self.text, other), len(self.text) - alike(self.text[::-1], other[::-1])
        middle = (first + last) // 2
        inner = self.text[max(first, middle - INNER_CHARS // 2) : min(last, middle + INNER_CHARS // 2)]
        self._inner = inner if writing in DECODED else None

    def leaves(self, parts: set[str], out: str, low: str) -> bool:
        """Whether a part of it is in a text. `parts`: all of its parts of eight characters, in small letters."""
        told = (p.lower() for p in pieces(self.secret))
        plain = any(p in parts if len(p) == PART_CHARS else p in low for p in told)
        return plain or (self._inner is not None and self._inner in out)


def outlets(store: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """Each way out by name, with all that came out of it."""
    asked = [(to, "sts") for to in export.WRITERS.places if to != "baseline"] + [("hub", "found")]
    for to, transcripts in asked:
        out = folder / f"{to}-{transcripts}"
        line = ["export", "--to", to, "-o", str(out), "--store", str(store), "--redact", "--transcripts", transcripts]
        refused = run([*line, "--quiet"])
        yield f"{to}, {transcripts}" if to == "hub" else to, "refused" if refused else texts(out)
    gold = folder / "gold.jsonl"
    run(["label", "sentiment", "--export-gold", str(gold), "--sample", "100000", "--store", str(store)])
    yield "gold file", gold.read_text("utf-8")
    page = folder / "report.html"
    run(["report", "-o", str(page), "--store", str(store), "--quiet"])
    yield "report", page.read_text("utf-8")


def texts(folder: Path) -> str:
    """What every file of a folder says."""
    return "\n".join(
        json.dumps(pq.read_table(p).to_pylist(), default=str, ensure_ascii=False)
        if p.suffix == ".parquet"
        else p.read_text("utf-8")
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    )


def main() -> None:
    planted = [Planted(kind, writing) for writing in WRITINGS for kind in KINDS]
    said = ["\n\n".join(one.text for one in planted[at : at + 8]) for at in range(0, len(planted), 8)]
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_DATA_HOME"] = name
        store = store_of(Path(name) / "in", *(said[n::8] for n in range(8)), answer="I ran it:\n" + said[0]).folder
        rows = []
        for outlet, out in outlets(store, Path(name)):
            low = out.lower()
            parts = {low[n : n + PART_CHARS] for n in range(len(low))}
            left = [one for one in planted if one.leaves(parts, out, low)]
            rows.append((outlet, len(out), left))
    print(f"{len(KINDS)} kinds x {len(WRITINGS)} writings: {len(planted):,} secrets")
    for outlet, size, left in rows:
        print(f"{outlet:12} {size / 1e6:6.1f} MB, {len(left):4} left")
    for writing in WRITINGS:
        of = Counter(one.kind for _, _, left in rows for one in left if one.writing == writing)
        if of:
            print(f"  in {writing}: " + ", ".join(sorted(of)))
    changed = [text for text in (*SHAPES, *CODE, *EDGES) if redacted(text) != text]
    print(f"harmless texts: {len(SHAPES) + len(CODE) + len(EDGES)}, changed {len(changed)}")


if __name__ == "__main__":
    main()
