"""What an agent wrote, compared with what our reader reads: record types, fields, values, and the sums that were sent.

A field counts as *read* when what the reader makes of the files changes with it: it is left out, and its values are
altered, once each in all records of a type. No list says so by hand. A field is *tested* when a sample in
`tests/formats` has it, and a value of an enumeration when a sample has that value there.
"""

from __future__ import annotations

import copy
import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Set
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from tests.golden import SAMPLES
from tests.vocabulary import EXTENSIONS, OPEN

from agentsignals.formats import IS_FIELD, Input, format_named, formats, vocabulary
from agentsignals.ingest import plan as planning
from agentsignals.model import Artifact, Session
from agentsignals.sources import Unreadable, read
from agentsignals.store.index import Manifest

_UNREAD = ("unrecognised", "agent_not_read", "newer_database", "unknown_database", "other_export")
_IS_VALUE = re.compile(r"[A-Za-z][A-Za-z_.:-]{0,39}\Z")
_IS_FREE = re.compile(
    r"(?i)(?:text|content|title|message|summary|description|cwd|branch|slug|nickname|path|file|output|cmd|command|query"
    r"|hostname|directory|prompt|word|preview|arguments|input|url|uri|version|instructions|label|editor|originator|model|id)$"
)
"""Names of fields whose values are words, paths or names, of which each is new."""
_KINDS = ("type", "role", "kind", "event", "method")
_MOST_VALUES = 24


class Report(Struct, kw_only=True):
    """What one agent's newest version wrote and how it was read."""

    agent: str
    package: str = ""
    version: str = ""
    problem: str = ""
    """Why it could not be run. Empty if it was."""
    formats: list[str] = []
    files: int = 0
    records: int = 0
    skipped: dict[str, int] = {}
    unread_files: list[str] = []
    """Files of sessions that no format reads."""
    sent: dict[str, int] = {}
    found: dict[str, int] = {}
    """The same sums, as the reader has them. A sum that it does not state is missing."""
    new_types: list[str] = []
    """Record types that no sample and no list of fields has."""
    new_fields: list[str] = []
    new_values: list[str] = []
    """Values of enumerations that no sample has, in fields that are read."""
    untested: list[str] = []
    """Fields that are read though no sample has them."""
    not_read: list[str] = []
    """Fields that are known, and change nothing."""
    read: int = 0
    """How many fields are read and tested."""
    columns: list[str] = []
    """Columns of its database that are not asked for."""

    @property
    def wrong(self) -> list[str]:
        """Sums that differ from what was sent."""
        return [
            f"{name}: {self.sent[name]:,} sent, {value:,} read"
            for name, value in self.found.items()
            if value not in (self.sent[name], self.sent.get(f"{name} without titles", self.sent[name]))
        ]

    @property
    def differs(self) -> bool:
        return bool(
            self.new_types or self.new_fields or self.new_values or self.skipped or self.unread_files or self.wrong
        )

    def summary(self) -> str:
        found = {
            "record type": self.new_types, "new field": self.new_fields, "new value": self.new_values,
            "unread file": self.unread_files, "wrong sum": self.wrong, "skip reason": list(self.skipped),
        }  # fmt: skip
        said = [f"{len(names)} {what}{'s' if len(names) > 1 else ''}" for what, names in found.items() if names]
        known = f"{self.read} fields read and tested, {len(self.not_read)} known and not read"
        return f"{', '.join(said) or 'nothing new'}; {known}"


def compared(agent: str, told: dict[str, Any], sources: list[Path], *, counts_tokens: bool) -> Report:
    """Compare the files below these places with what is read of them."""
    report = Report(agent=agent)
    plan = planning.make_plan([str(s) for s in sources if s.exists()], Manifest())
    groups = [group for shard in plan.shards for group in shard]
    sessions: list[Session] = []
    paths: dict[str, Paths] = {}
    for group in groups:
        files = [m for m in group.files if m.format is not None and not m.lent]
        data = {
            m.file.uri: (str(m.format), bytes(raw))
            for m, raw in zip(files, read([m.file for m in files]), strict=True)
            if not isinstance(raw, Unreadable)
        }
        for name in sorted({name for name, _ in data.values()}):
            own = {uri: raw for uri, (claimed, raw) in data.items() if claimed == name}
            records = {uri: records_of(raw) for uri, raw in own.items()}
            made, artifacts = read_as(name, own)
            sessions += made
            report.files += len(own)
            report.records += sum(a.records for a in artifacts)
            for artifact in artifacts:
                for reason, n in artifact.skipped_reasons.items():
                    report.skipped[reason] = report.skipped.get(reason, 0) + n
            report.formats = sorted({*report.formats, name})
            paths.setdefault(name, Paths()).look(name, [(uri, *r) for uri, r in records.items()])
    unread = [m for group in groups for m in group.files if m.format is None and m.reason in _UNREAD]
    report.unread_files = [f"{Path(m.file.uri).name}: {m.detail or m.reason}" for m in unread]
    for name, met in paths.items():
        _sort_out(report, name, met)
    for source in sources:
        report.columns += sorted(_columns(source))
    _sums(report, told, sessions)
    if counts_tokens:
        report.found = {name: n for name, n in report.found.items() if "tokens" not in name}
    return report


def records_of(data: bytes) -> tuple[list[Any], bool]:
    """Return the records of a file, and whether it has one a line."""
    try:
        return [msgspec.json.decode(data)], False
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = []
        for line in data.splitlines():
            try:
                found.append(msgspec.json.decode(line))
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
        return found, True


def read_as(name: str, files: dict[str, bytes]) -> tuple[list[Session], list[Artifact]]:
    """Read files that belong together as one format."""
    chosen = format_named(name)
    assert chosen is not None
    artifacts = [
        Artifact(artifact_id=uri, source="upstream", path=uri, format=name, sha256=f"{n:064}", bytes=len(data))
        for n, (uri, data) in enumerate(files.items())
    ]
    reading = chosen.read([Input(data, artifact) for data, artifact in zip(files.values(), artifacts, strict=True)])
    return reading.sessions, artifacts


class Paths:
    """The fields of records by their place, `type: a.b[item type].c`, with their values; and which of them are read."""

    def __init__(self) -> None:
        self.values: dict[str, set[str]] = defaultdict(set)
        self.types: set[str] = set()
        self.read: set[str] = set()

    def look(self, name: str, files: list[tuple[str, list[Any], bool]], only: Set[str] | None = None) -> None:
        """Add the fields of files that belong together, and try which of them are read: all, or those named."""
        here: dict[str, set[str]] = defaultdict(set)
        for _, records, _ in files:
            for record in records:
                self.types.add(kind_of(record))
                for place, value in places(record, name):
                    here[place].add(value)
        tried = here.keys() - self.read if only is None else here.keys() & only - self.read
        before = _picture(name, files, lambda record: record) if tried else b""
        for place, values in here.items():
            if place in tried and any(
                _picture(name, files, lambda record, how=how, place=place: _changed(record, name, place, how)) != before
                for how in (_left_out, _altered)
            ):
                self.read.add(place)
            self.values[place] |= values


def kind_of(record: Any) -> str:
    """Return the type of a record, as it names itself: `response_item/function_call`."""
    named = []
    for _ in range(2):
        if not isinstance(record, dict):
            break
        named += [str(record[key]) for key in _KINDS if isinstance(record.get(key), str)][:1]
        record = next((record[key] for key in ("payload", "params", "data") if isinstance(record.get(key), dict)), None)
    return "/".join(named)


def places(record: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yield each field of a record with its value, where that may be one of an enumeration; else with its JSON type."""
    yield from ((place, _value(place, holder[key])) for holder, key, place in _spots(record, kind_of(record), name))


def _spots(value: Any, place: str, name: str, depth: int = 12) -> Iterator[tuple[Any, str, str]]:
    """Yield (object, key, place) of each field; inside of an object whose keys are data none."""
    if isinstance(value, list):
        for item in value:
            kind = (
                next((str(item[k]) for k in _KINDS if isinstance(item.get(k), str)), "")
                if isinstance(item, dict)
                else ""
            )
            yield from _spots(item, f"{place}[{kind}]", name, depth)
    elif isinstance(value, dict) and depth:
        for key, inner in list(value.items()):
            if not IS_FIELD.match(key):
                continue
            below = f"{place}{': ' if ':' not in place else '.'}{key}"
            yield value, key, below
            if key not in OPEN and key not in EXTENSIONS.get(name, ()):
                yield from _spots(inner, below, name, depth - 1)


def _value(place: str, value: Any) -> str:
    if isinstance(value, str) and _IS_VALUE.match(value) and not _IS_FREE.search(place):
        return value
    return {str: "text", bool: "true or false", int: "number", float: "number", list: "list", dict: "object"}.get(
        type(value), "null"
    ).upper()


def _left_out(holder: dict[str, Any], key: str) -> None:
    del holder[key]


def _altered(holder: dict[str, Any], key: str) -> None:
    value = holder[key]
    if isinstance(value, bool):
        holder[key] = not value
    elif isinstance(value, int | float):
        holder[key] = value + 1
    elif isinstance(value, str):
        holder[key] = (
            f"{value[:-1]}{'a' if value[-1:].isdigit() and not value[-1:].isalpha() else '1'}"
            if _is_id(value)
            else f"x{value}"
        )
    elif value is None:
        holder[key] = "x"
    elif isinstance(value, list):
        holder[key] = value[:-1]
    elif isinstance(value, dict):
        value.clear()


def _is_id(value: str) -> bool:
    return bool(re.fullmatch(r"[0-9a-zA-Z_-]{8,}", value)) and any(c.isdigit() for c in value)


def _changed(record: Any, name: str, place: str, how: Callable[[dict[str, Any], str], None]) -> Any:
    if not place.startswith(f"{kind_of(record)}: "):
        return record
    record = copy.deepcopy(record)
    for holder, key, at in list(_spots(record, kind_of(record), name)):
        if at == place and key in holder:
            how(holder, key)
    return record


def _picture(name: str, files: list[tuple[str, list[Any], bool]], change: Callable[[Any], Any]) -> bytes:
    """Return what the reader makes of changed files."""
    given = {}
    for uri, records, by_line in files:
        made = [msgspec.json.encode(change(record)) for record in records]
        given[uri] = b"\n".join(made) + b"\n" if by_line else made[0] if made else b""
    try:
        sessions, artifacts = read_as(name, given)
    except Exception as problem:  # noqa: BLE001  (a reader that falls over reads the field)
        return repr(problem).encode()
    kept = [(a.records, a.skipped_reasons) for a in artifacts]
    return msgspec.json.encode((sessions, kept))


@cache
def samples_of(name: str) -> list[list[tuple[str, list[Any], bool]]]:
    """Return the samples of a format, those that belong together as one."""
    folder = SAMPLES / name
    plan = planning.make_plan([str(folder)], Manifest()) if folder.exists() else planning.Plan()
    found = []
    for group in (group for shard in plan.shards for group in shard):
        files = [m.file for m in group.files if m.format == name]
        found.append(
            [
                (file.uri, *records_of(bytes(raw)))
                for file, raw in zip(files, read(files), strict=True)
                if not isinstance(raw, Unreadable)
            ]
        )
    return found


def sampled(name: str, only: Set[str] | None = None) -> Paths:
    """Return the fields and values of a format's samples, and which of them are read there: all, or of those named."""
    met = Paths()
    for files in samples_of(name):
        met.look(name, files, only)
    return met


def _sort_out(report: Report, name: str, met: Paths) -> None:
    samples, words = sampled(name, met.values.keys() - met.read), vocabulary(name)
    met.read |= samples.read
    met.read |= {p for p in met.values if any(q.startswith((f"{p}.", f"{p}[")) for q in met.read)}
    report.new_types += sorted(t for t in met.types - samples.types if t)
    for place, values in sorted(met.values.items()):
        is_sampled = place in samples.values
        if is_sampled and place in met.read:
            report.read += 1
            every = values | samples.values[place]
            if len(every) <= _MOST_VALUES:
                unseen = {v for v in values - samples.values[place] if not v.isupper()}
                report.new_values += [f"{place} = {v}" for v in sorted(unseen)]
        elif place in met.read:
            report.untested.append(place)
        elif is_sampled or words is None or _is_listed(place, words):  # without a list samples tell no rare field
            report.not_read.append(place)
        elif not any(place.startswith(f"{above}.") or place.startswith(f"{above}[") for above in report.new_fields):
            report.new_fields.append(place)


def _is_listed(place: str, words: dict[str, Any]) -> bool:
    """Whether a list of fields has a place, of whichever type of record."""
    node: Any = words
    for name in re.sub(r"\[[^\]]*\]", "", place.partition(": ")[2]).split("."):
        if node is None:
            return True
        if name not in node:
            return False
        node = node[name]
    return True


def _columns(source: Path) -> Iterator[str]:
    """Yield the columns of an agent's databases that its format does not ask for."""
    for path in sorted(source.rglob("*.db")) if source.is_dir() else []:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as asked:
            tables = [row[0] for row in asked.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            there = {t: {row[1] for row in asked.execute(f'PRAGMA table_info("{t}")')} for t in tables}
            filled = {t for t in tables if asked.execute(f'SELECT 1 FROM "{t}" LIMIT 1').fetchone()}
        for held in (database for made in formats().values() for database in made.databases):
            wanted = {
                t: {*held.columns.get(t, ()), *held.some_have.get(t, ())} for t in {*held.columns, *held.some_have}
            }
            if all(set(of) <= there.get(table, set()) for table, of in held.columns.items()):
                yield from (f"{path.name}: {t}.{c}" for t in wanted.keys() & filled for c in there[t] - wanted[t])
                yield from (
                    f"{path.name}: {t} (whole table)"
                    for t in filled - wanted.keys()
                    if not t.startswith("sqlite") and "_fts" not in t
                )
                break


def _sums(report: Report, told: dict[str, Any], sessions: list[Session]) -> None:
    """Compare the sums that were sent with those of the sessions."""
    asked = [s for s in told["sent"] if not s["is_title"]]
    report.sent = {
        "prompts": len(told["commands"]),
        "calls": sum(s["calls"] for s in asked),
        "failed calls": 1 if any(s["calls"] for s in asked) else 0,
    }
    for name, of in (
        ("input tokens", "input"),
        ("cached tokens", "cached"),
        ("cache-write tokens", "written"),
        ("output tokens", "output"),
    ):
        report.sent[name] = sum(s[of] for s in told["sent"])
        report.sent[f"{name} without titles"] = sum(s[of] for s in asked)
    steps = [step for s in sessions for step in s.steps]
    calls = [call for s in sessions for call in s.tool_calls]
    report.found = {
        "prompts": sum(len(s.turns) for s in sessions),
        "calls": len(calls),
        "failed calls": sum(c.status == "error" for c in calls),
    }
    if any(s.input_tokens is not None for s in steps):
        cached = sum(s.cache_read_tokens or 0 for s in steps)
        report.found["input tokens"] = cached + sum((s.input_tokens or 0) + (s.cache_write_tokens or 0) for s in steps)
        report.found["cached tokens"] = cached
        if written := sum(s.cache_write_tokens or 0 for s in steps):  # of three interfaces few agents log it
            report.found["cache-write tokens"] = written
    if any(s.output_tokens is not None for s in steps):
        report.found["output tokens"] = sum(s.output_tokens or 0 for s in steps)
