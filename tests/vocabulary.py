"""Lists the fields of formats from files that were met: `python -m tests.vocabulary [FORMAT …] [--from FOLDER …]`.

Reads the samples (not the broken ones) and, where it is there, the corpus, and adds what it finds to
`formats/fields/<format>.txt`: nothing that was listed is taken away. READ the diff: a name of the list is a field of
the format, never somebody's data. A place whose keys are data is written `*`. A field that no sample has, or that
changes nothing that is read of the samples, is written with `~`: it is known, not read. `--marks` writes these anew and
nothing else. List no format of which there are only made-up files: each real one would be new. `--halves` lists from
half of the files and says what the other half then has that is unknown: how often a version that was met gives a false
alarm.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from pathlib import Path
from typing import Any

import msgspec

from agentsignals import formats as fields
from agentsignals.formats import formats
from agentsignals.formats.conformance import SPOILT
from agentsignals.ingest import plan as planning
from agentsignals.sources import Unreadable, read
from agentsignals.store.index import Manifest
from tests.golden import SAMPLES

ROOT = Path(__file__).parents[1]
CORPUS = ROOT.parent / "shared" / "corpus"
FOLDER = Path(fields.__file__).parent / "fields"
_OPEN = (
    "input arguments args orig_args parsedArgs parameters params properties input_schema kwargs toolUseResult"
    " structuredContent structured_content response rawInput rawOutput answers env headers metadata extra annotations"
    " changes trackedFileBackups permission tools dynamic_tools modelUsage modelMetrics toolTelemetry systemPayload"
    " replacement_history"
)
OPEN = frozenset(_OPEN.split())
"""Objects by name whose keys are data, or another program's."""
EXTENSIONS = {"pi": frozenset(("data", "details"))}
"""The same of one format: what its extensions write."""
_MANY, _FEW = 8, 3


class Met:
    """An object as it was met: its keys, in which files."""

    def __init__(self) -> None:
        self.inside: dict[str, Met] = {}
        self.files: set[str] = set()
        self.is_number = False

    def add(self, value: Any, file: str) -> None:
        self.is_number |= isinstance(value, int | float)
        if isinstance(value, list):
            for item in value:
                self.add(item, file)
        elif isinstance(value, dict):
            for name, inner in value.items():
                below = self.inside.setdefault(name, Met())
                below.files.add(file)
                below.add(inner, file)

    @property
    def holds_data(self) -> bool:
        """Whether the keys are data: many can't be fields, or most of many are of one file alone."""
        if sum(not fields.IS_FIELD.match(name) for name in self.inside) > len(self.inside) / 4:
            return True
        rare = [met for met in self.inside.values() if len(met.files) == 1]
        every = set().union(*(met.files for met in self.inside.values())) if self.inside else set()
        return len(every) > _FEW and len(self.inside) >= _MANY and len(rare) > len(self.inside) / 2

    def words(self, left_out: frozenset[str], depth: int = fields.MOST_DEPTH) -> fields.Vocabulary | None:
        inside = {n: m for n, m in self.inside.items() if fields.IS_FIELD.match(n)}
        return {
            n: None
            if (n in left_out and not m.is_number) or not depth or m.holds_data
            else m.words(left_out, depth - 1)
            for n, m in inside.items()
        }


def records(data: bytes) -> Iterator[Any]:
    """Every record of a file."""
    try:
        yield msgspec.json.decode(data)
    except msgspec.DecodeError:
        for line in data.splitlines():
            try:
                yield msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue


def files_by_format(folders: Iterable[Path]) -> dict[str, dict[str, bytes]]:
    """The content of every file that a format claims."""
    plan = planning.make_plan([str(f) for f in folders if f.exists()], Manifest())
    found: dict[str, dict[str, bytes]] = defaultdict(dict)
    members = [m for shard in plan.shards for family in shard for m in family.files if m.format is not None]
    for member, data in zip(members, read([m.file for m in members]), strict=True):
        is_spoilt = any(part.startswith(SPOILT) for part in Path(member.file.uri).parts)
        if not isinstance(data, Unreadable) and not is_spoilt:
            found[str(member.format)][member.file.uri] = bytes(data)
    return found


def written(words: fields.Vocabulary, not_read: Set[str], place: str = "") -> str:
    """Return the text of a vocabulary."""
    names = sorted(words)
    below = {name: f"{place}.{name}" if place else name for name in names}
    marked = [f"{name}{fields.NOT_READ * (below[name] in not_read)}" for name in names]
    lines = [f"{place or '.'}: {' '.join(marked)}\n"]
    for name in names:
        if words[name] is None:
            lines.append(f"{below[name]}: *\n")
        elif words[name]:
            lines.append(written(words[name], not_read, below[name]))
    return "".join(lines)


def places_of(words: fields.Vocabulary, place: str = "") -> Iterator[str]:
    """Yield the place of each field."""
    for name, inside in words.items():
        below = f"{place}.{name}" if place else name
        yield below
        yield from places_of(inside or {}, below)


def read_in_samples(name: str) -> set[str]:
    """Return the places, whatever the type of their records, whose fields are read of a sample."""
    from benchmarks.upstream.compare import sampled  # noqa: PLC0415  (it imports this module)

    read = {re.sub(r"\[[^\]]*\]", "", place.partition(": ")[2]) for place in sampled(name).read}
    parts = [place.split(".") for place in read]
    return {".".join(names[:n]) for names in parts for n in range(1, len(names) + 1)}


def listed(name: str, files: dict[str, bytes]) -> fields.Vocabulary:
    met = Met()
    for uri, data in files.items():
        for record in records(data):
            met.add(record, uri)
    return met.words(OPEN | EXTENSIONS.get(name, frozenset())) or {}


def joined(one: fields.Vocabulary, other: fields.Vocabulary) -> fields.Vocabulary:
    """Both; what is data in one is data."""
    both = {}
    for name in one.keys() | other.keys():
        below = one.get(name, {}), other.get(name, {})
        both[name] = None if None in below else joined(*below)
    return both


def unknown(files: dict[str, bytes], words: fields.Vocabulary, *, whole: bool) -> dict[str, set[str]]:
    """The fields that are not among these words, each with its files; of the whole of each, or as a run looks at it."""
    found: dict[str, set[str]] = defaultdict(set)
    for uri, data in files.items():
        met: set[str] = set()
        looked_at = records(data) if whole else fields.examined_records(data, hashlib.sha256(data).hexdigest())
        for record in looked_at:
            fields.walk_fields(record, words, "", met, fields.MOST_DEPTH)
        for name in met:
            found[name].add(uri)
    return found


def halves(name: str, files: dict[str, bytes], *, whole: bool) -> tuple[int, dict[str, set[str]]]:
    """How many files are in one half, and the fields of these that the other half doesn't have, with their files."""
    first = {u: d for u, d in files.items() if hashlib.sha256(d).digest()[0] % 2}
    rest = {u: d for u, d in files.items() if u not in first}
    return len(rest), unknown(rest, listed(name, first), whole=whole)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("formats", nargs="*", metavar="FORMAT")
    parser.add_argument("--from", dest="folders", nargs="+", type=Path, default=[SAMPLES, CORPUS])
    parser.add_argument("--halves", action="store_true")
    parser.add_argument("--marks", action="store_true")
    options = parser.parse_args()
    wanted = options.formats or sorted(path.stem for path in FOLDER.glob("*.txt"))
    found = {} if options.marks else files_by_format(options.folders)
    for name in [n for n in wanted if n in formats() and (options.marks or found.get(n))]:
        if options.halves:
            for how, whole in (("read whole", True), ("as a run looks", False)):
                n, new = halves(name, found[name], whole=whole)
                affected = len(set().union(*new.values()))
                print(
                    f"{name}, {how}: {affected} of {n} files have fields that the other half doesn't have: {len(new)}"
                )
                print("".join(f"    {field} in {len(uris)}\n" for field, uris in sorted(new.items())), end="")
            continue
        words = fields.vocabulary(name) or {}
        if not options.marks:
            words = joined(listed(name, found[name]), words)
        every = set(places_of(words))
        not_read = every - read_in_samples(name)
        (FOLDER / f"{name}.txt").write_text(written(words, not_read), encoding="utf-8")
        print(f"{name}: {len(found.get(name, ()))} files, {len(every)} fields, {len(not_read)} of them not read")


if __name__ == "__main__":
    main()
