"""Values that depend on other sessions: those that compare a session with its neighbours, and those over all sessions.

Each run computes where sessions lie, which findings need, from the sites of each shard. The other values are computed
when somebody asks for them. Then the shards that changed are read; of each other shard a summary of its sums, and of
their sessions those whose neighbours changed (docs/decisions/016). Sites, summaries and neighbours can be thrown away.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar, get_args

import msgspec
from msgspec import Struct, field

from agentsignals import private_files
from agentsignals.errors import StoreError
from agentsignals.model import Absent, Attempt, Context, Session
from agentsignals.signals import Measured, Signal
from agentsignals.signals.catalog import Result, as_bound, catalogue, measure, plan, with_needs
from agentsignals.store import PLACE, Store, disk, shards
from agentsignals.store.disk import StoredFile
from agentsignals.store.parquet import SignalRows, signal_rows, signal_table
from agentsignals.views.history import (
    History,
    SessionSummary,
    Site,
    compare,
    histories,
    places,
    tells,
    user_of,
)
from agentsignals.views.session import SessionView
from agentsignals.words.lexicon import words

# Summaries of shards

FOLDER = "briefs"
CONTEXTS: tuple[Context, ...] = get_args(Context)
FILES = "touched_files"
"""Signal with the files that a session touched."""
LINES = "edited_line_prints"
"""Signal with the lines that a session changed."""
MARKS = "repository_marks"
"""Signal with the repository that Git commands named."""
SETS = "metric_inputs"
"""Signal that is counted by project."""
READ = ("sessions", "signals", "turns")
"""Tables that a summary is made from."""
_VERSION = 3
_SUMMARY_COLUMNS = [
    "session_id", "context", "repo", "cwd", "parent_session_id", "started_at", "ended_at", "n_turns",
]  # fmt: skip
_OF_SITES = ".sites"


class SessionRecord(Struct, array_like=True, kw_only=True, gc=False):
    """A session as others need to know it; times in microseconds since 1970 UTC."""

    session_id: str
    context: Context
    repo: str | None
    cwd: str | None
    parent_session_id: str | None
    started_at: int | None
    ended_at: int | None
    n_turns: int | None
    lines: int
    """Hash of the lines that it changed; 0 where there are none."""

    @property
    def is_human(self) -> bool:
        return self.parent_session_id is None and self.n_turns != 0


class ComparedText(Struct, array_like=True, gc=False):
    """Files and words by which two sessions are compared."""

    files: list[str]
    words: str | None
    """Words of the first prompt, in one text: a tenth of the memory of many. None without a prompt."""


_Summary = TypeVar("_Summary")


class ShardSites(Struct, kw_only=True):
    """A shard's sessions, and what tells where they lie."""

    sessions: list[tuple[str, Context, str | None, str | None]] = field(default_factory=list)
    """Id, context, repository and folder."""
    sites: dict[Context, list[Site]] = field(default_factory=dict)
    """Facts that tell where a repository or folder belongs."""


class ShardSummary(Struct, kw_only=True):
    """A shard's sessions, and what they add to values over all sessions."""

    sessions: list[SessionRecord] = field(default_factory=list)
    sums: dict[Context, dict[str, list[Any]]] = field(default_factory=dict)
    """Values by signal, pooled (`Signal.pool`) or each with its session."""
    texts: bytes = b""
    """Compressed `ComparedText`s, in the order of the sessions."""


def shard_sites(root: Path, shard: str, files: list[Path], keep: bool = False, gone: Sequence[str] = ()) -> ShardSites:
    """Return the sites of a shard but for the sessions `gone`, made of its values in these files where they are not
    kept; `keep` also writes them. StoreError when a table can't be read."""

    def made() -> ShardSites:
        values = signal_values(files, [FILES, MARKS])
        found = ShardSites()
        sites: dict[Context, list[Site]] = {}
        for row in shards.read_header(root, shard, ["session_id", "context", "repo", "cwd"], gone=gone):
            session_id, context, repo, cwd = row["session_id"], row["context"], row["repo"], row["cwd"]
            touched, marks = (values.get(session_id, {}).get(name) for name in (FILES, MARKS))
            site = Site(session_id=site_id(repo, cwd), repo=repo, cwd=cwd)
            if isinstance(marks, dict):
                site.remotes, site.commits = marks.get("remotes", []), marks.get("commits", [])
            site.files = list(filter(tells, touched)) if isinstance(touched, list) else []
            sites.setdefault(context, []).append(site)
            found.sessions.append((session_id, context, repo, cwd))
        found.sites = {context: merge_sites(of) for context, of in sites.items()}
        return found

    return _cached(root, f"{_summary_file(shard, gone)}{_OF_SITES}", ShardSites, made, keep)


def shard_summary(
    root: Path, shard: str, files: list[Path], keep: bool = False, gone: Sequence[str] = ()
) -> ShardSummary:
    """Return the summary of a shard but for the sessions `gone`, made of its values in these files where it is not
    kept; `keep` also writes it. StoreError when a table can't be read."""

    def made() -> ShardSummary:
        names = {s.name for context in CONTEXTS for s in summed_signals(context) if s.scope == "session"}
        values = signal_values(files, names | {FILES, LINES})
        prompts = shards.first_prompts(root, shard)
        summary = ShardSummary()
        texts: list[ComparedText] = []
        lists: dict[Context, dict[str, list[tuple[str, Any]]]] = {}
        for row in shards.read_header(root, shard, _SUMMARY_COLUMNS, gone=gone):
            entry = SessionRecord(**row, lines=0)
            measured = values.get(entry.session_id, {})
            touched, lines = (measured.get(name) for name in (FILES, LINES))
            if isinstance(lines, dict) and lines:
                encoded_lines = msgspec.msgpack.encode(lines, order="sorted")
                entry.lines = int.from_bytes(hashlib.blake2b(encoded_lines, digest_size=7).digest()) or 1
            touched = touched if isinstance(touched, list) else []
            prompt = prompts.get(entry.session_id)
            texts.append(ComparedText(touched, None if prompt is None else " ".join(sorted(words(prompt)))))
            for signal in summed_signals(entry.context):
                value = measured.get(signal.name)
                if value is not None and type(value) is not Absent:
                    if signal.name == SETS:
                        value = {**value, "place": site_id(entry.repo, entry.cwd)}
                    lists.setdefault(entry.context, {}).setdefault(signal.name, []).append((entry.session_id, value))
            summary.sessions.append(entry)
        for context, by_name in lists.items():
            summary.sums[context] = {
                name: list(pairs) if (pool := catalogue()[name].pool) is None else pool([value for _, value in pairs])
                for name, pairs in by_name.items()
            }
        summary.texts = zlib.compress(msgspec.msgpack.encode(texts), 1)
        return summary

    return _cached(root, _summary_file(shard, gone), ShardSummary, made, keep)


def _cached(root: Path, name: str, kind: type[_Summary], make: Callable[[], _Summary], keep: bool) -> _Summary:
    path = root / FOLDER / name
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.msgpack.decode(disk.read_checked(path), type=kind)
    made = make()
    if keep:
        try:
            private_files.make_folder(path.parent)
            disk.write_atomically(path, disk.with_checksum(msgspec.msgpack.encode(made)))
        except OSError as problem:
            raise disk.cannot_write(root, problem) from problem
    return made


def remove_stale_summaries(store: Store) -> None:
    """Remove the summaries of shards that no longer exist."""
    live = {_summary_file(name, entry.gone) for name, entry in store.manifest.shards.items()}
    for path in disk.folder_entries(store.folder / FOLDER):
        if path.name.removesuffix(_OF_SITES) not in live:
            path.unlink(missing_ok=True)


def _summary_file(shard: str, gone: Sequence[str]) -> str:
    left = hashlib.blake2b("|".join(gone).encode(), digest_size=6).hexdigest() if gone else ""
    return f"{shard}.{_stamp()}{left}"


def signal_values(files: list[Path], names: Iterable[str], only: set[str] | None = None) -> dict[str, dict[str, Any]]:
    """Return session-level values of these signals (by function name) out of the files of a shard, of all its sessions
    or `only` of these."""
    called = {catalogue()[name].path: name for name in names}
    values: dict[str, dict[str, Any]] = {}
    for session_id, path, value, absent, why in shards.read_values(files, set(called), only):
        values.setdefault(session_id, {})[called[path]] = (
            _absent(absent, why or "") if absent else msgspec.json.decode(value or "")
        )
    return values


_absent = lru_cache(maxsize=4096)(Absent)
"""Cached: sessions have the same few reasons."""


@cache
def summed_signals(context: Context) -> tuple[Signal, ...]:
    """Return the signals of one session that go into values over all sessions of a context."""
    names = dict.fromkeys(n for s in plan(context, "corpus") for n in s.needs)
    return tuple(catalogue()[n] for n in names)


@cache
def _stamp() -> str:
    """Hash of what a summary depends on: the corpus signals, the signals they need, this module."""
    versions = [(s.path, s.version) for s in catalogue().values() if s.scope != "session"]
    asked = [(context, s.path) for context in CONTEXTS for s in summed_signals(context)]
    return hashlib.blake2b(repr((_VERSION, versions, asked)).encode(), digest_size=6).hexdigest()


def site_id(repo: str | None, cwd: str | None) -> str:
    """Name the sites of one repository and folder."""
    return repr((repo, cwd))


def merge_sites(sites: Iterable[Site]) -> list[Site]:
    """Merge the sites of each repository and folder."""
    merged: dict[tuple[str | None, str | None], tuple[list[int], set[str], set[str], set[str]]] = {}
    for site in sites:
        counts, remotes, commits, files = merged.setdefault((site.repo, site.cwd), ([], set(), set(), set()))
        counts.append(site.sessions)
        remotes.update(site.remotes)
        commits.update(site.commits)
        files.update(site.files)
    return [
        Site(
            session_id=site_id(repo, cwd),
            repo=repo,
            cwd=cwd,
            remotes=sorted(remotes),
            commits=sorted(commits),
            files=sorted(files),
            sessions=sum(counts),
        )
        for (repo, cwd), (counts, remotes, commits, files) in merged.items()
    ]


# Where sessions lie


def measure_places(store: Store) -> tuple[int, StoredFile | None]:
    """Compute where each session lies and write it. Return what the index records: the run, and the file."""
    manifest, place = store.manifest, catalogue()["place"]
    held = read_sites(store, keep=True)
    lies = places_of(held)
    rows: dict[tuple[Context, str | None, str | None], SignalRows] = {}

    def tables() -> Iterator[Any]:
        for shard in held.values():
            yield signal_table([value_of(*session) for session in shard.sessions if place.applies_to(session[1])])

    def value_of(session_id: str, context: Context, repo: str | None, cwd: str | None) -> SignalRows:
        row = rows.get((context, repo, cwd))
        if row is None:
            history = History(place=lies[context].get(site_id(repo, cwd)), known_until=0, known_since=0)
            session = Session(session_id=session_id, context=context, format="", agent="", artifact_id="")
            results = measure(SessionView(session), None, history, frozenset(("place",)))
            row = rows[context, repo, cwd] = signal_rows(session, results)
        return msgspec.structs.replace(row, session_id=session_id)

    manifest.run += 1
    manifest.places = shards.write_corpus_values(store.folder, f"places.{manifest.run}.parquet", tables())
    remove_stale_summaries(store)
    return manifest.run, manifest.places


def read_sites(store: Store, keep: bool = False) -> dict[str, ShardSites]:
    """Return the sites of every readable shard."""
    return _of_shards(store, shard_sites, keep)


def read_summaries(store: Store, keep: bool = False) -> dict[str, ShardSummary]:
    """Return the summary of every readable shard."""
    return _of_shards(store, shard_summary, keep)


def _of_shards(store: Store, read: Callable[..., _Summary], keep: bool) -> dict[str, _Summary]:
    entries = store.manifest.shards
    return {
        name: read(store.folder, name, store.signal_files(name), keep, entries[name].gone)
        for name in store.readable_shards(*READ)
    }


def places_of(held: dict[str, ShardSites]) -> dict[Context, dict[str, str]]:
    """Return the project of each repository and folder (`site_id`), by context."""
    return {
        context: places(merge_sites(site for shard in held.values() for site in shard.sites.get(context, ())))
        for context in CONTEXTS
    }


# Neighbours of sessions


class Neighbours(Struct, array_like=True, kw_only=True, gc=False):
    """A session's relation to the other sessions, as the last run found it."""

    session_id: str
    shard: str
    """Shard that its values were written with."""
    is_human: bool
    started_at: int | None
    lines: int
    """Hash of the lines that it changed; 0 where there are none."""
    next_shard: str
    """Shard that the values of the next session were written with."""
    place: str | None
    known_until: int
    known_since: int
    n_prior: int
    n_prior_same_user: int
    next_id: str | None
    next_started_at: int | None
    next_shares_file: bool | None = None
    next_similarity: float | None = None
    same_lines: dict[str, list[str]] = {}

    def history(self) -> History:
        """Return the fields that signals get."""
        return History(**{name: getattr(self, name) for name in History.__struct_fields__})


class NeighbourTable(Struct):
    """Neighbours of all sessions; `changed`: sessions that are new, changed or have other neighbours."""

    now: list[Neighbours] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    """Sessions that the store no longer holds."""
    places: dict[Context, dict[str, str]] = field(default_factory=dict)
    """Project of each repository and folder (`site_id`), by context."""


class _Kept(Struct):
    versions: dict[str, int]
    neighbours: list[Neighbours]


def read_neighbours(store: Store, versions: dict[str, int]) -> dict[str, Neighbours] | None:
    """Return the neighbours that the last run found, by session. None where there are none, or signals have other
    versions."""
    part = store.manifest.neighbours
    if part is None or disk.what_is_wrong(str(store.folder / part.file), part):
        return None
    with suppress(OSError, msgspec.DecodeError):
        kept = msgspec.msgpack.decode((store.folder / part.file).read_bytes(), type=_Kept)
        if kept.versions == versions:
            return {neighbours.session_id: neighbours for neighbours in kept.neighbours}
    return None


def find_neighbours(store: Store, summaries: dict[str, ShardSummary], former: dict[str, Neighbours]) -> NeighbourTable:
    """Relate the sessions of these shards to each other. Eval runs are nobody's earlier sessions."""
    made = NeighbourTable(places=places_of(read_sites(store)))
    where = {entry.session_id: name for name, summary in summaries.items() for entry in summary.sessions}
    made.gone = former.keys() - where.keys()
    for context in CONTEXTS:
        here = [entry for summary in summaries.values() for entry in summary.sessions if entry.context == context]
        if here and plan(context, "history"):
            _find_in_context(store, here, where, former, made, made.places[context])
    # Compare the sessions that changed with the sessions that followed them.
    pairs = [s for s in made.now if s.session_id in made.changed and s.next_id is not None]
    wanted = {session_id for s in pairs for session_id in (s.session_id, s.next_id)}
    texts: dict[str, SessionSummary] = {}
    for name in {where[session_id] for session_id in wanted if session_id is not None}:
        encoded = zlib.decompress(summaries[name].texts)
        compared = msgspec.msgpack.decode(encoded, type=list[ComparedText])
        for entry, text in zip(summaries[name].sessions, compared, strict=True):
            if entry.session_id in wanted:
                words_of = None if text.words is None else frozenset(text.words.split())
                texts[entry.session_id] = SessionSummary(
                    session_id="", place=None, started_at=None, ended_at=None, files=text.files, words=words_of
                )
    for neighbours in pairs:
        history = neighbours.history()
        compare(history, texts[neighbours.session_id], texts[neighbours.next_id or ""])
        neighbours.next_shares_file, neighbours.next_similarity = history.next_shares_file, history.next_similarity
    return made


def _find_in_context(  # noqa: PLR0913  (one call: all that a place depends on)
    store: Store,
    here: list[SessionRecord],
    where: dict[str, str],
    former: dict[str, Neighbours],
    made: NeighbourTable,
    by_site: dict[str, str],
) -> None:
    outlines = {
        entry.session_id: SessionSummary(
            session_id=entry.session_id,
            place=by_site.get(site_id(entry.repo, entry.cwd)),
            started_at=entry.started_at,
            ended_at=entry.ended_at,
            parent_session_id=entry.parent_session_id,
            user=user_of(entry.cwd),
            n_turns=entry.n_turns,
        )
        for entry in here
    }
    # Lines are read only for the places in which a session that changed lines came, went or changed.
    changed: set[str | None] = {former[session_id].place for session_id in made.gone if former[session_id].lines}
    for entry in here:
        before, place = former.get(entry.session_id), outlines[entry.session_id].place
        if before is None:
            changed |= {place} if entry.lines else set()
        elif (entry.lines or before.lines) and (place, entry.started_at, entry.is_human, entry.lines) != (
            before.place, before.started_at, before.is_human, before.lines
        ):  # fmt: skip
            changed |= {place, before.place}
    with_lines: dict[str, set[str]] = defaultdict(set)
    for entry in here:
        if entry.lines and outlines[entry.session_id].place in changed:
            with_lines[where[entry.session_id]].add(entry.session_id)
    for name, wanted in with_lines.items():
        for session_id, values in signal_values(store.signal_files(name), [LINES], wanted).items():
            outlines[session_id].lines = values[LINES]
    by_session = histories(outlines.values())
    outlines.clear()  # of a large store they take as much as what is made of them
    for entry in here:
        history, before = by_session.pop(entry.session_id), former.get(entry.session_id)
        if before is not None:
            history.next_shares_file, history.next_similarity = before.next_shares_file, before.next_similarity
            if history.place not in changed:
                history.same_lines = before.same_lines
        neighbours = Neighbours(
            session_id=entry.session_id,
            shard=where[entry.session_id],
            is_human=entry.is_human,
            started_at=entry.started_at,
            lines=entry.lines,
            next_shard=where[history.next_id] if history.next_id is not None else "",
            **{name: getattr(history, name) for name in History.__struct_fields__},
        )
        if neighbours != before:
            neighbours.next_shares_file = neighbours.next_similarity = None
            made.changed.add(entry.session_id)
        made.now.append(neighbours)


_SESSION_COLUMNS = [
    "session_id", "context", "format", "agent", "artifact_id", "repo", "cwd", "parent_session_id", "started_at",
    "ended_at", "trial_id", "attempt_index",
]  # fmt: skip


def corpus_versions() -> dict[str, int]:
    """Return the signals across sessions and their versions."""
    return {s.path: s.version for s in catalogue().values() if s.scope != "session"}


@cache
def corpus_inputs() -> frozenset[str]:
    """Return the signals of one session that those across sessions rest on."""
    across = frozenset(s.name for s in catalogue().values() if s.scope != "session")
    needed = (catalogue()[name] for name in with_needs(across | {FILES, LINES, MARKS}))
    return frozenset(s.path for s in needed if s.scope == "session")


def versions_on_ask() -> dict[str, int]:
    """Return the signals across sessions that are computed when somebody asks for one, and their versions."""
    return {path: version for path, version in corpus_versions().items() if path != PLACE}


def measure_corpus(store: Store) -> None:
    """Compute the history and corpus signals that changed and write them."""
    manifest, now = store.manifest, corpus_versions()
    before = read_neighbours(store, now) if manifest.across is not None else None
    manifest.run += 1
    try:
        _measure(store, before, now)
    except StoreError:
        if before is None:
            raise
        _measure(store, None, now)  # the former values can't be read
    manifest.across_signals = versions_on_ask()
    remove_stale_summaries(store)


def _measure(store: Store, before: dict[str, Neighbours] | None, now: dict[str, int]) -> None:
    manifest = store.manifest
    held = read_summaries(store, keep=True)
    made = find_neighbours(store, held, before or {})

    def tables() -> Iterator[Any]:
        """Yield the values across sessions: unchanged ones, new ones, and those of the whole store."""
        history_values = _empty_histories(CONTEXTS)
        if before is not None and manifest.across is not None:
            kept = shards.read_corpus_values(store.folder, manifest.across, made.changed | made.gone)
            yield from _collecting(kept, history_values)
        yield from _collecting(_history_tables(store, held, made), history_values)
        there = {entry.context for summary in held.values() for entry in summary.sessions}
        contexts = [context for context in CONTEXTS if context in (there or {"product"})]
        values = [
            value
            for context in contexts
            for value in _context_values(store, context, held, made.places, history_values)
        ]
        yield signal_table([signal_rows(None, values)])

    file = f"signals.{manifest.run}.parquet"
    manifest.across = shards.write_corpus_values(store.folder, file, tables())
    path, data = store.folder / f"standings.{manifest.run}.msgpack", msgspec.msgpack.encode(_Kept(now, made.now))
    try:
        disk.write_atomically(path, data)
        manifest.neighbours = StoredFile(
            len(data), len(made.now), disk.digest(data), path.stat().st_mtime_ns, path.name
        )
    except OSError as problem:
        raise disk.cannot_write(store.folder, problem) from problem


def _empty_histories(contexts: Iterable[Context]) -> dict[str, dict[str, Any]]:
    """Return an empty dict of values by session for each history signal that goes into values over all sessions."""
    return {s.name: {} for context in contexts for s in summed_signals(context) if s.scope == "history"}


def _collecting(tables: Iterator[Any], history_values: dict[str, dict[str, Any]]) -> Iterator[Any]:
    """Pass tables of values on, and collect those that go into values over all sessions."""
    paths = {catalogue()[name].path: name for name in history_values}
    for table in tables:
        for session_id, path, value, absent, _ in shards.filter_values(table, set(paths), None) if paths else ():
            if not absent:
                history_values[paths[path]][session_id] = msgspec.json.decode(value or "")
        yield table


def session_history(store: Store, session_id: str) -> tuple[History, dict[str, Any]]:
    """Return the neighbours of one session, and its values of signals across sessions."""
    now, entry = corpus_versions(), store.manifest.sessions[session_id]
    kept = read_neighbours(store, now) if store.manifest.across_signals else None
    if kept is None:
        kept = {s.session_id: s for s in find_neighbours(store, read_summaries(store), {}).now}
    history = kept[session_id].history()
    ((header, values),) = _sessions_to_measure(store, entry.shard, {session_id})
    return history, {r.signal.name: r.value for r in measure(SessionView(header), values, history)}


class CorpusValue(Struct):
    """A value over all sessions of a context, and its inputs."""

    value: Any
    detail: dict[str, Any]
    sessions: int
    inputs: dict[str, dict[str, Any]]
    """Inputs by session, of the first sessions in order of id."""


def corpus_value(store: Store, signal: Signal, context: Context, most: int) -> CorpusValue:
    """Return a signal over all sessions of a context, with the inputs of `most` sessions."""
    held, lies = read_summaries(store), places_of(read_sites(store))
    history_values = _empty_histories([context])
    if history_values and store.manifest.across is not None:
        for _ in _collecting(shards.read_corpus_values(store.folder, store.manifest.across), history_values):
            pass
    (result,) = (r for r in _context_values(store, context, held, lies, history_values) if r.signal.path == signal.path)
    there = {
        e.session_id: (name, e) for name, summary in held.items() for e in summary.sessions if e.context == context
    }
    first = {session_id: there[session_id] for session_id in sorted(there)[:most]}
    values: dict[str, dict[str, Any]] = {session_id: {} for session_id in first}
    for name in {name for name, _ in first.values()}:
        only = {session_id for session_id, (of, _) in first.items() if of == name}
        values |= signal_values(store.signal_files(name), [n for n in signal.needs if n not in history_values], only)
    for session_id, (_, entry) in first.items():
        values[session_id] |= {n: of[session_id] for n, of in history_values.items() if session_id in of}
        if isinstance(sets := values[session_id].get(SETS), dict):
            values[session_id][SETS] = {**sets, "place": lies[context][site_id(entry.repo, entry.cwd)]}
    inputs = {session_id: {n: values[session_id].get(n) for n in signal.needs} for session_id in first}
    return CorpusValue(result.value, result.detail or {}, len(there), inputs)


def _history_tables(store: Store, held: dict[str, ShardSummary], made: NeighbourTable) -> Iterator[Any]:
    """Yield the rows of sessions with changed neighbours, shard by shard."""
    by_id = {s.session_id: s for s in made.now if s.session_id in made.changed}
    for name, summary in held.items():
        only = {entry.session_id for entry in summary.sessions if entry.session_id in by_id}
        rows = []
        for header, values in _sessions_to_measure(store, name, only):
            history = by_id[header.session_id].history()
            results = [r for r in measure(SessionView(header), values, history) if r.signal.path != PLACE]
            rows.append(signal_rows(header, results))
        if rows:
            yield signal_table(rows)


def _sessions_to_measure(store: Store, shard: str, only: set[str]) -> Iterator[tuple[Session, dict[str, Any]]]:
    """Yield these sessions of a shard in order of id, without their rows, with the values that signals across sessions
    need."""
    if not only:
        return
    values = signal_values(store.signal_files(shard), _history_inputs(), only)
    for row in sorted(
        shards.read_header(store.folder, shard, _SESSION_COLUMNS, only), key=lambda row: str(row["session_id"])
    ):
        trial_id, index = row.pop("trial_id"), row.pop("attempt_index")
        attempt = Attempt(root="", trial_id=trial_id, attempt_index=index) if trial_id is not None else None
        yield Session(**row, attempt=attempt), values.get(row["session_id"], {})


@cache
def _history_inputs() -> frozenset[str]:
    """Return the session signals that signals across sessions need."""
    signals = catalogue()
    needs = {n for context in CONTEXTS for s in plan(context, "history") for n in s.needs}
    return frozenset(n for n in needs if signals[n].scope == "session")


def _context_values(
    store: Store,
    context: Context,
    held: dict[str, ShardSummary],
    lies: dict[Context, dict[str, str]],
    history_values: dict[str, dict[str, Any]],
) -> list[Result]:
    # The values that go into those over all sessions: pooled, else in order of session id.
    there = {entry.session_id for summary in held.values() for entry in summary.sessions if entry.context == context}
    lists: dict[str, list[Any]] = {}
    for s in summed_signals(context):
        if s.scope != "session":
            of = history_values[s.name]
            lists[s.name] = [of[session_id] for session_id in sorted(there & of.keys())]
            continue
        parts = [part for summary in held.values() for part in summary.sums.get(context, {}).get(s.name, ())]
        if s.name == SETS:  # a data set is a place, which only the sessions together tell
            parts = [{**part, "place": lies[context][part["place"]]} for part in parts]
        elif s.pool is None:
            parts = [value for _, value in sorted(parts, key=lambda pair: str(pair[0]))]
        lists[s.name] = parts
    is_bound = store.manifest.has_lower_bounds(context, held)
    results = []
    for declared in plan(context, "corpus"):
        value = declared.function(*[lists[need] for need in declared.needs])
        if declared.grows_with_output and is_bound:
            value = as_bound(value)
        detail = value.detail if isinstance(value, Measured) else None
        if context == "eval":
            detail = {**(detail or {}), "context": context}
        results.append(Result(declared, value.value if isinstance(value, Measured) else value, detail))
    return results
