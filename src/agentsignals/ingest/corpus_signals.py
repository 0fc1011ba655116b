"""Values that depend on other sessions: those that compare a session with its neighbours, and those over all sessions.

Each run computes where sessions lie, which findings need, from the sites of each shard. The other values are computed
when somebody asks for them, from a summary of each shard (docs/decisions/016). Sites and summaries can be thrown away.

`among`: the names of signals across sessions, with all that they need (`across_names`); no others are computed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar, get_args

import msgspec
from msgspec import Struct, field

from agentsignals.model import Absent, Attempt, Context, Session
from agentsignals.signals import Measured, Signal, catalog
from agentsignals.signals.catalog import Result, as_bound, catalogue, measure, plan, with_needs
from agentsignals.store import PLACE, Store, disk, shards
from agentsignals.store.disk import StoredFile
from agentsignals.store.parquet import SignalRows, of_sessions, signal_rows, signal_table
from agentsignals.views.history import (
    History,
    SessionSummary,
    Site,
    histories,
    places,
    tells,
    time_span,
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
_VERSION = 5
_SUMMARY_COLUMNS = [
    "session_id", "context", "repo", "cwd", "parent_session_id", "started_at", "ended_at", "n_turns",
]  # fmt: skip
_OF_SITES = ".sites"


_Summary = TypeVar("_Summary")


class ShardSites(Struct, kw_only=True):
    """A shard's sessions, and what tells where they lie."""

    sessions: list[tuple[str, Context, str | None, str | None]] = field(default_factory=list)
    """Id, context, repository and folder."""
    sites: dict[Context, list[Site]] = field(default_factory=dict)
    """Facts that tell where a repository or folder belongs."""


class ShardSummary(Struct, kw_only=True):
    """A shard's sessions as others need to know them, and what they add to values over all sessions."""

    sessions: list[tuple[Context, SessionSummary]] = field(default_factory=list)
    """Each with its repository and folder (`site_id`) as its place, and without its lines."""
    sums: dict[Context, dict[str, list[Any]]] = field(default_factory=dict)
    """Values by signal, pooled (`Signal.pool`) or each with its session."""


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


def shard_summary(  # noqa: PLR0913  (as `shard_sites`, of some signals)
    among: frozenset[str], root: Path, shard: str, files: list[Path], keep: bool = False, gone: Sequence[str] = ()
) -> ShardSummary:
    """Return the summary of a shard but for the sessions `gone`, made of its values in these files where it is not
    kept; `keep` also writes it. StoreError when a table can't be read."""
    names = {s.name for context in CONTEXTS for s in summed_signals(context, among) if s.scope == "session"}
    file = _summary_file(shard, gone)

    def sessions() -> list[tuple[Context, SessionSummary]]:
        values, prompts = signal_values(files, {FILES}), shards.first_prompts(root, shard)
        found = []
        for row in shards.read_header(root, shard, _SUMMARY_COLUMNS, gone=gone):
            session_id, context, repo, cwd = (row.pop(name) for name in ("session_id", "context", "repo", "cwd"))
            touched, prompt = values.get(session_id, {}).get(FILES), prompts.get(session_id)
            made = SessionSummary(
                session_id=session_id,
                place=site_id(repo, cwd),
                files=touched if isinstance(touched, list) else [],
                words=None if prompt is None else " ".join(sorted(words(prompt))),
                user=user_of(cwd),
                **row,
            )
            found.append((context, made))
        return found

    def sums() -> dict[Context, dict[str, list[Any]]]:
        values = signal_values(files, names)
        lists: dict[Context, dict[str, list[tuple[str, Any]]]] = {}
        for context, made in there:
            for name, value in values.get(made.session_id, {}).items():
                if value is not None and type(value) is not Absent:
                    placed = {**value, "place": made.place} if name == SETS else value
                    lists.setdefault(context, {}).setdefault(name, []).append((made.session_id, placed))
        return {
            context: {
                name: list(pairs) if (pool := catalogue()[name].pool) is None else pool([value for _, value in pairs])
                for name, pairs in by_name.items()
            }
            for context, by_name in lists.items()
        }

    there = _cached(root, file, list[tuple[Context, SessionSummary]], sessions, keep)
    if not names:
        return ShardSummary(sessions=there)
    of_names = hashlib.blake2b("|".join(sorted(names)).encode(), digest_size=6).hexdigest()
    of_all = _cached(root, f"{file}.{of_names}", dict[Context, dict[str, list[Any]]], sums, keep)
    return ShardSummary(sessions=there, sums=of_all)


def _cached(root: Path, name: str, kind: Any, make: Callable[[], _Summary], keep: bool) -> _Summary:
    path = root / FOLDER / name
    with suppress(OSError, msgspec.DecodeError):
        kept: _Summary = msgspec.msgpack.decode(disk.read_kept(path), type=kind)
        return kept
    made = make()
    if keep:
        disk.keep(path, msgspec.msgpack.encode(made))
    return made


def remove_stale_summaries(store: Store) -> None:
    """Remove the summaries of shards that no longer exist."""
    live = {_summary_file(name, entry.gone) for name, entry in store.manifest.shards.items()}
    for path in disk.folder_entries(store.folder / FOLDER):
        if ".".join(path.name.split(".")[:2]) not in live:
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
def summed_signals(context: Context, among: frozenset[str] | None = None) -> tuple[Signal, ...]:
    """Return the signals of one session that go into values over all sessions of a context."""
    names = dict.fromkeys(n for s in plan(context, "corpus", among) for n in s.needs)
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
    named = {context for context in CONTEXTS if place.applies_to(context)}
    ids: list[str] = []
    which: list[int] = []
    numbers: dict[tuple[Context, str | None, str | None], int] = {}

    def numbered() -> Iterator[ShardSites]:
        for shard in _of_shards(store, shard_sites, keep=True):
            for session_id, context, repo, cwd in shard.sessions:
                if context in named:
                    ids.append(session_id)
                    which.append(numbers.setdefault((context, repo, cwd), len(numbers)))
            yield shard

    def rows_at(context: Context, repo: str | None, cwd: str | None) -> SignalRows:
        history = History(place=lies[context].get(site_id(repo, cwd)), known_until=0, known_since=0)
        session = Session(session_id="", context=context, format="", agent="", artifact_id="")
        return signal_rows(session, measure(SessionView(session), None, history, frozenset((place.name,))))

    lies = places_of(numbered())
    values = signal_table([rows_at(*site) for site in numbers])
    tables = (
        of_sessions(values, which[at : at + shards.AT_ONCE], ids[at : at + shards.AT_ONCE])
        for at in range(0, len(ids), shards.AT_ONCE)
    )
    manifest.run += 1
    manifest.places = shards.write_corpus_values(store.folder, f"places.{manifest.run}.parquet", tables)
    remove_stale_summaries(store)
    return manifest.run, manifest.places


def read_summaries(store: Store, among: frozenset[str], keep: bool = False) -> dict[str, ShardSummary]:
    """Return the summary of every readable shard."""
    read = partial(shard_summary, among)
    return dict(zip(store.readable_shards(*READ), _of_shards(store, read, keep), strict=True))


def _of_shards(store: Store, read: Callable[..., _Summary], keep: bool = False) -> Iterator[_Summary]:
    for name in store.readable_shards(*READ):
        yield read(store.folder, name, store.signal_files(name), keep, store.manifest.shards[name].gone)


def places_of(of: Store | Iterable[ShardSites]) -> dict[Context, dict[str, str]]:
    """Return the project of each repository and folder (`site_id`), by context."""
    sites = [shard.sites for shard in (_of_shards(of, shard_sites) if isinstance(of, Store) else of)]
    return {context: places(merge_sites(s for those in sites for s in those.get(context, ()))) for context in CONTEXTS}


# Values across sessions


_SESSION_COLUMNS = [
    "session_id", "context", "format", "agent", "artifact_id", "repo", "cwd", "parent_session_id", "started_at",
    "ended_at", "trial_id", "attempt_index",
]  # fmt: skip


def across_names(paths: Set[str]) -> frozenset[str]:
    """Return the names of those of these signals that are across sessions, but for the place, and of all they need."""
    on_ask = paths & versions_on_ask().keys()
    return with_needs(frozenset(s.name for s in catalogue().values() if s.path in on_ask))


def inputs_of(among: frozenset[str]) -> frozenset[str]:
    """Return the signals of one session that these across sessions rest on."""
    needed = (catalogue()[name] for name in among | {FILES, MARKS})
    return frozenset(s.path for s in needed if s.scope == "session")


def versions_on_ask(among: Collection[str] | None = None) -> dict[str, int]:
    """Return the signals across sessions that are computed when somebody asks for them (all but the place), and their
    versions; of `among` these names."""
    on_ask = (s for s in catalogue().values() if s.scope != "session" and s.path != PLACE)
    return {s.path: s.version for s in on_ask if among is None or s.name in among}


def measure_corpus(store: Store, among: frozenset[str]) -> None:
    """Compute values across sessions and write them, in place of those there were."""
    manifest = store.manifest
    held, lies = read_summaries(store, among, keep=True), places_of(store)
    related = relate(store, held, lies, among)
    history_values = {
        s.name: dict[str, Any]() for c in CONTEXTS for s in summed_signals(c, among) if s.scope == "history"
    }

    def tables() -> Iterator[Any]:
        for name, summary in held.items():
            rows = []
            only = {session.session_id for _, session in summary.sessions if session.session_id in related}
            for header, values in _sessions_to_measure(store, name, only, among):
                made = measure(SessionView(header), values, related.pop(header.session_id), among)
                for result in made:
                    if result.signal.name in history_values and type(result.value) is not Absent:
                        history_values[result.signal.name][header.session_id] = catalog.plain(result.value)
                rows.append(signal_rows(header, made))
            if rows:
                yield signal_table(rows)
        there = {context for summary in held.values() for context, _ in summary.sessions}
        contexts = [context for context in CONTEXTS if context in (there or {"product"})]
        over_all = (_context_values(store, context, held, lies, history_values, among) for context in contexts)
        yield signal_table([signal_rows(None, [value for values in over_all for value in values])])

    manifest.run += 1
    manifest.across = shards.write_corpus_values(store.folder, f"signals.{manifest.run}.parquet", tables())
    manifest.across_signals = versions_on_ask(among)
    remove_stale_summaries(store)


def relate(
    store: Store,
    held: dict[str, ShardSummary],
    lies: dict[Context, dict[str, str]],
    among: frozenset[str],
    near: str | None = None,
) -> dict[str, History]:
    """Relate the sessions of these shards to each other, or one of them to those `near` it. Eval runs are nobody's
    earlier sessions."""
    related: dict[str, History] = {}
    for context in CONTEXTS:
        if not plan(context, "history", among):
            continue
        outlines: dict[str, SessionSummary] = {}
        shard_of: dict[str, str] = {}
        for name, summary in held.items():
            for of, session in summary.sessions:
                if of == context:
                    shard_of[session.session_id] = name
                    place = lies[context].get(session.place or "")
                    outlines[session.session_id] = msgspec.structs.replace(session, place=place)
        span = time_span(at for session in outlines.values() for at in (session.started_at, session.ended_at))
        if near is not None:
            place = outlines[near].place if near in outlines else None
            outlines = {i: s for i, s in outlines.items() if i == near or (place is not None and s.place == place)}
        for name in held if LINES in among else ():
            here = {session_id for session_id in outlines if shard_of[session_id] == name}
            for session_id, values in signal_values(store.signal_files(name), [LINES], here).items() if here else ():
                if isinstance(values[LINES], dict):
                    outlines[session_id].lines = values[LINES]
        related |= histories(outlines.values(), span)
    return related


def session_history(store: Store, session_id: str, among: frozenset[str]) -> tuple[History, dict[str, Any]]:
    """Return one session among the others, and its values of signals across sessions."""
    history = relate(store, read_summaries(store, among), places_of(store), among, session_id)[session_id]
    ((header, values),) = _sessions_to_measure(store, store.manifest.sessions[session_id].shard, {session_id}, among)
    return history, {r.signal.name: r.value for r in measure(SessionView(header), values, history, among)}


class CorpusValue(Struct):
    """A value over all sessions of a context, and its inputs."""

    value: Any
    detail: dict[str, Any]
    sessions: int
    inputs: dict[str, dict[str, Any]]
    """Inputs by session, of the first sessions in order of id."""


def corpus_value(store: Store, signal: Signal, context: Context, most: int) -> CorpusValue:
    """Return a signal over all sessions of a context, with the inputs of `most` sessions."""
    among = with_needs(frozenset((signal.name,)))
    held, lies = read_summaries(store, among), places_of(store)
    history_values: dict[str, dict[str, Any]] = {
        s.name: {} for s in summed_signals(context, among) if s.scope == "history"
    }
    if history_values and store.manifest.across is not None:
        for session_id, by_name in signal_values([store.folder / store.manifest.across.file], history_values).items():
            for name, value in by_name.items():
                if type(value) is not Absent:
                    history_values[name][session_id] = value
    made = _context_values(store, context, held, lies, history_values, among)
    (result,) = (r for r in made if r.signal.path == signal.path)
    there = {
        session.session_id: (name, session)
        for name, summary in held.items() for of, session in summary.sessions if of == context
    }  # fmt: skip
    first = {session_id: there[session_id] for session_id in sorted(there)[:most]}
    values: dict[str, dict[str, Any]] = {session_id: {} for session_id in first}
    for name in {name for name, _ in first.values()}:
        only = {session_id for session_id, (of, _) in first.items() if of == name}
        values |= signal_values(store.signal_files(name), [n for n in signal.needs if n not in history_values], only)
    for session_id, (_, session) in first.items():
        values[session_id] |= {n: of[session_id] for n, of in history_values.items() if session_id in of}
        if isinstance(sets := values[session_id].get(SETS), dict):
            values[session_id][SETS] = {**sets, "place": lies[context][session.place or ""]}
    inputs = {session_id: {n: values[session_id].get(n) for n in signal.needs} for session_id in first}
    return CorpusValue(result.value, result.detail or {}, len(there), inputs)


def _sessions_to_measure(
    store: Store, shard: str, only: set[str], among: frozenset[str]
) -> Iterator[tuple[Session, dict[str, Any]]]:
    """Yield these sessions of a shard in order of id, without their rows, with the values that signals across sessions
    need."""
    if not only:
        return
    values = signal_values(store.signal_files(shard), _history_inputs(among), only)
    for row in sorted(
        shards.read_header(store.folder, shard, _SESSION_COLUMNS, only), key=lambda row: str(row["session_id"])
    ):
        trial_id, index = row.pop("trial_id"), row.pop("attempt_index")
        attempt = Attempt(root="", trial_id=trial_id, attempt_index=index) if trial_id is not None else None
        yield Session(**row, attempt=attempt), values.get(row["session_id"], {})


@cache
def _history_inputs(among: frozenset[str]) -> frozenset[str]:
    """Return the session signals that signals across sessions need."""
    signals = catalogue()
    needs = {n for context in CONTEXTS for s in plan(context, "history", among) for n in s.needs}
    return frozenset(n for n in needs if signals[n].scope == "session")


def _context_values(  # noqa: PLR0913  (what the values rest on)
    store: Store,
    context: Context,
    held: dict[str, ShardSummary],
    lies: dict[Context, dict[str, str]],
    history_values: dict[str, dict[str, Any]],
    among: frozenset[str],
) -> list[Result]:
    """Compute the values over all sessions of a context from the shards' sums."""
    # The values that go into those over all sessions: pooled, else in order of session id.
    there = {session.session_id for summary in held.values() for of, session in summary.sessions if of == context}
    lists: dict[str, list[Any]] = {}
    for s in summed_signals(context, among):
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
    for declared in plan(context, "corpus", among):
        value = declared.function(*[lists[need] for need in declared.needs])
        if declared.grows_with_output and is_bound:
            value = as_bound(value)
        detail = value.detail if isinstance(value, Measured) else None
        if context == "eval":
            detail = {**(detail or {}), "context": context}
        results.append(Result(declared, value.value if isinstance(value, Measured) else value, detail))
    return results
